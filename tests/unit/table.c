/* SPDX-License-Identifier: 0BSD */
/*
 * Shows the table under the keys: its index in every order of insertion and
 * removal that a tiny one can see, clusters and the wrap round its end
 * included; that a key is its scope and its bytes, exactly (S3); and that
 * idem_check finds each invariant broken, so the tests that rely on it can
 * fail.
 *
 * Invariants: T1 to T3 of >>index, and the number of each by idem_check.  The
 * only test that looks inside; everything else is in the functions on top.
 */
#include "fixture.h"

/* ---------------------------------------------------------------------------
   inside
   ------------------------------------------------------------------------ */
static unsigned home_of(const fixture *f, const char *key)
{
    uint32_t hash = idemi_hash_id(&f->config, "panel", 5, key, strlen(key));

    return idemi_index_home(&f->table, idemi_index_hash(hash));
}

static unsigned number_of(const fixture *f, const char *key)
{
    for (unsigned i = 0; i < f->table.capacity; i++) {
        const idem_body *body = idemi_slot_own(idemi_slot_at(&f->table, i));
        const unsigned char *id = idemi_slot_id(&f->table, i);
        if (idemi_slot_at(&f->table, i)->state &&
            body->key_len == strlen(key) &&
            memcmp(id + body->scope_len, key, body->key_len) == 0)
            return i;
    }
    fail();
    return 0;
}

static idem_slot *slot_of(const fixture *f, const char *key)
{
    return idemi_slot_at(&f->table, number_of(f, key));
}

static idem_body *body_of(const fixture *f, const char *key)
{
    return idemi_slot_own(idemi_slot_at(&f->table, number_of(f, key)));
}

/* ---------------------------------------------------------------------------
   T1 to T3: every order
   ------------------------------------------------------------------------ */
enum { KEYS = 4, ORDERS = 24 };
typedef char names[KEYS][8];

/* The n-th order of four things. */
static void order_of(int n, int order[KEYS])
{
    int rest[KEYS] = { 0, 1, 2, 3 };

    for (int left = KEYS; left > 0; left--) {
        int pick = n % left;
        n /= left;
        order[KEYS - left] = rest[pick];
        rest[pick] = rest[left - 1];
    }
}

/* Searches for keys with these homes. */
static void find_keys(const fixture *f, const unsigned homes[KEYS], names keys)
{
    unsigned tries = 0;

    for (int i = 0; i < KEYS; i++)
        do
            (void)snprintf(keys[i], sizeof keys[i], "%u", tries++ % 10000000);
        while (home_of(f, keys[i]) != homes[i]);
}

/* Exactly the keys of the set are there. */
static void assert_set(fixture *f, names keys, unsigned set)
{
    for (int i = 0; i < KEYS; i++)
        assert_int_equal(find(f, "panel", keys[i], 0),
                         set >> i & 1 ? IDEM_OK : IDEM_E_NOT_FOUND);
}

static void insert_and_remove(fixture *f, names keys, const int in[KEYS],
                              const int out[KEYS])
{
    idem_claim claims[KEYS];
    unsigned set = 0;

    for (int i = 0; i < KEYS; i++) {
        assert_int_equal(ask(f, keys[in[i]], 0), IDEM_EXECUTE);
        claims[in[i]] = f->claim;
        set |= 1u << in[i];
        assert_set(f, keys, set);
    }
    for (int i = 0; i < KEYS; i++) {
        assert_int_equal(release(f, &claims[out[i]], 0), IDEM_OK);
        set &= ~(1u << out[i]);
        assert_set(f, keys, set);
    }
}

static void t1_t2_t3_hold_whatever_the_order_of_coming_and_going(void **state)
{
    // Apart, all at one home, the same round the end, and two clusters that
    // meet there.
    enum { LAST = (int)IDEMI_WORDS * KEYS - 1 };
    static const unsigned homes[][KEYS] = {
        { 0, 2, 4, 6 }, { 3, 3, 3, 3 }, { LAST, LAST, LAST, LAST },
        { LAST - 1, LAST - 1, LAST, 0 },
        { LAST - 2, LAST - 1, LAST - 1, LAST - 2 }, { LAST, 0, LAST, 1 },
    };
    fixture *f = (fixture *)*state;

    for (uint8_t secret = 1; secret < 4; secret++)
        for (size_t i = 0; i < COUNT(homes); i++) {
            names keys;
            f->config.secret[0] = f->config.secret[8] = secret;
            fixture_open(f, 0);
            assert_int_equal(f->table.index_size, LAST + 1);
            find_keys(f, homes[i], keys);
            for (int pair = 0; pair < ORDERS * ORDERS; pair++) {
                int in[KEYS], out[KEYS];
                order_of(pair / ORDERS, in);
                order_of(pair % ORDERS, out);
                insert_and_remove(f, keys, in, out);
            }
        }
}

static void t1_t2_t3_hold_in_larger_tables_of_any_size(void **state)
{
    fixture *f = (fixture *)*state;
    uint32_t seed = 19;

    for (uint32_t capacity = 1; capacity < 120; capacity += 7) {
        char key[8];
        f->config.capacity = capacity;
        fixture_open(f, 0);
        for (int i = 0; i < 600; i++) {
            int room = f->table.used < capacity;
            (void)snprintf(key, sizeof key, "%u",
                           (unsigned)(dice(&seed) % (2 * capacity)));
            if (find(f, "panel", key, 0) == IDEM_OK)
                assert_int_equal(forget(f, "panel", key, 0), IDEM_OK);
            else if (room)
                (void)finish(f, "panel", key, 0);
            else
                assert_int_equal(ask(f, key, 0), IDEM_E_FULL);
        }
        assert_true(f->table.stats.full > 0);
    }
}

/* Keys have homes all over the index: each is found next to its own. */
static void keys_are_found_near_their_homes(void **state)
{
    enum { MANY = 1000 };
    fixture *f = (fixture *)*state;
    unsigned past = 0;

    f->config.capacity = MANY;
    fixture_open(f, 0);
    for (unsigned i = 0; i < MANY; i++) {
        char key[8];
        (void)snprintf(key, sizeof key, "%u", i);
        (void)finish(f, "panel", key, 0);
    }
    for (unsigned at = 0; at < f->table.index_size; at++)
        if (f->table.index[at].slot)
            past += idemi_index_past(&f->table, at,
                                     idemi_index_slot(&f->table, at));
    assert_in_range(past, 1, MANY);     // 0.5 each on average, with two words
}

/* With IDEM_WIDE a word counts how far past its home it is, up to 7. */
static void t2_holds_for_keys_that_all_have_one_home(void **state)
{
    enum { ALIKE = 20 };
    fixture *f = (fixture *)*state;
    char keys[ALIKE][8];
    unsigned tries = 0;
    uint32_t seed = 7;

    f->config.capacity = 24;
    fixture_open(f, 0);
    for (int i = 0; i < ALIKE; i++)
        do
            (void)snprintf(keys[i], sizeof keys[i], "%u", tries++ % 10000000);
        while (home_of(f, keys[i]) != f->table.index_size - 3);
    for (int i = 0; i < 2000; i++) {
        const char *key = keys[dice(&seed) % ALIKE];
        if (find(f, "panel", key, 0) == IDEM_OK)
            assert_int_equal(forget(f, "panel", key, 0), IDEM_OK);
        else
            (void)finish(f, "panel", key, 0);
    }
}

/* ---------------------------------------------------------------------------
   identity
   ------------------------------------------------------------------------ */
struct identity {
    const char *scope;
    size_t scope_len;
    const char *key;
    size_t key_len;
};

/* All of them, in one table, are different keys. */
static void assert_all_different(fixture *f, const struct identity *ids,
                                 size_t count)
{
    idem_request rq = request_of(f, "", "", "pour");

    f->config.capacity = (uint32_t)count;
    fixture_open(f, 0);
    for (int round = 0; round < 2; round++)
        for (size_t i = 0; i < count; i++) {
            rq.scope = ids[i].scope;
            rq.scope_len = ids[i].scope_len;
            rq.key = ids[i].key;
            rq.key_len = ids[i].key_len;
            assert_int_equal(begin_request(f, &rq, 0),
                             round ? IDEM_BUSY : IDEM_EXECUTE);
        }
}

static void s3_a_key_is_its_scope_and_its_bytes_exactly(void **state)
{
    static const struct identity ids[] = {
        { "", 0, "abc", 3 },       { "a", 1, "bc", 2 },
        { "ab", 2, "c", 1 },       { "", 0, "ab", 2 },
        { "ab", 2, "ab", 2 },      { "cd", 2, "ab", 2 },
        { "", 0, "a", 1 },         { "", 0, "a\0", 2 },
        { "", 0, "a\0b", 3 },      { "", 0, "a\0c", 3 },
        { "", 0, "\0", 1 },        { "", 0, "\0\0", 2 },
        { "\0", 1, "\0", 1 },      { "a", 1, "\0", 1 },
        { "a\0", 2, "b", 1 },      { "", 0, "\xff", 1 },
        { "", 0, "ABC", 3 },
    };

    assert_all_different((fixture *)*state, ids, COUNT(ids));
}

static void s3_keys_of_255_bytes_are_compared_to_the_last(void **state)
{
    static char a[256], b[256];
    const struct identity ids[] = {
        { NULL, 0, a, 255 }, { NULL, 0, b, 255 },  { NULL, 0, a, 254 },
        { a, 254, a, 1 },    { a, 254, b + 254, 1 }, { a, 1, b, 254 },
        { b + 254, 1, b, 254 },
    };
    fixture *f = (fixture *)*state;

    memset(a, 'x', sizeof a);
    memset(b, 'x', sizeof b);
    b[254] = 'y';
    f->config.key_max = 255;
    assert_all_different(f, ids, COUNT(ids));
}

static void a_key_over_key_max_is_refused_not_cut(void **state)
{
    static char bytes[300];
    fixture *f = (fixture *)*state;
    idem_request rq = request_of(f, "", "", "");

    for (unsigned max = 254; max < 256; max++) {
        f->config.key_max = (uint8_t)max;
        fixture_open(f, 0);
        rq.scope = rq.key = bytes;
        for (size_t len = 1; len < 300; len++) {
            rq.key_len = len;
            rq.scope_len = max + 1u - len;
            if (len > max)
                rq.scope_len = 0;
            assert_int_equal(begin_request(f, &rq, 0), IDEM_E_TOO_LARGE);
        }
        rq.key_len = 2;
        rq.scope_len = (size_t)-1;          // the sum is 1
        assert_int_equal(begin_request(f, &rq, 0), IDEM_E_TOO_LARGE);
        assert_int_equal(f->table.used, 0);
    }
}

static uint64_t fingerprint_of(const fixture *f, const char *payload)
{
    idem_fingerprint_state hash;

    idem_fingerprint_init(&hash, &f->config);
    idem_fingerprint_update(&hash, payload, strlen(payload));
    return idem_fingerprint_final(&hash);
}

static void s9_homes_and_fingerprints_are_decided_by_the_secret(void **state)
{
    fixture *f = (fixture *)*state;
    uint64_t fingerprint;
    unsigned homes[12];
    int moved = 0;

    f->config.capacity = 1000;
    fixture_open(f, 0);
    fingerprint = fingerprint_of(f, "pour");
    for (uint32_t i = 0; i < COUNT(homes); i++)
        homes[i] = home_of(f, nth(i));
    // Small machines take one half for each.
    f->config.secret[0] ^= 1;
    f->config.secret[8] ^= 1;
    for (uint32_t i = 0; i < COUNT(homes); i++)
        moved += home_of(f, nth(i)) != homes[i];
    if (IDEM_HASH == IDEM_HASH_FNV) {
        assert_int_equal(moved, 0);
        assert_true(fingerprint_of(f, "pour") == fingerprint);
    } else {
        assert_in_range(moved, 10, 12);
        assert_true(fingerprint_of(f, "pour") != fingerprint);
    }
}

/* ---------------------------------------------------------------------------
   idem_check can fail
   ------------------------------------------------------------------------ */
static void word_without_a_slot(fixture *f)             // T1
{
    unsigned at = 0;

    while (f->table.index[at].slot)
        at++;
    f->table.index[at].slot = 1;
}

static void slot_without_a_word(fixture *f)             // T2
{
    unsigned at = 0;

    while (!f->table.index[at].slot)
        at++;
    f->table.index[at].slot = 0;
}

static void lease_too_long(fixture *f)                  // C1
{
    slot_of(f, "claimed")->time = f->table.clock + IDEM_LEASE_MAX + 1;
}

static void completion_to_come(fixture *f)              // C2
{
    slot_of(f, "old")->time = f->table.clock + 1;
}

static void over_before_the_last_sweep(fixture *f)      // C3
{
    slot_of(f, "old")->time = f->table.swept - RETENTION - 1;
}

static void claim_that_is_owed(fixture *f)              // K1
{
    slot_of(f, "claimed")->state |= IDEMI_UNDELIVERED;
}

static void response_over_the_limit(fixture *f)         // K2
{
    body_of(f, "old")->response_len = RESPONSE_MAX + 1;
}

static void one_owed_too_many(fixture *f)               // K3
{
    f->table.pending++;
}

static void claim_without_an_attempt(fixture *f)        // K4
{
    slot_of(f, "claimed")->terms = 0;
}

static void completions_out_of_order(fixture *f)        // O1
{
    slot_of(f, "old")->time += 20;
}

static void free_slot_lost(fixture *f)                  // O2
{
    f->table.free = f->table.capacity;
}

static void bound_too_late(fixture *f)                  // O3
{
    f->table.soonest = f->table.clock + IDEM_RETENTION_MAX;
}

static void newest_end_lost(fixture *f)                 // O1
{
    f->table.links[f->table.capacity].older = (idem_number)f->table.capacity;
}

static void token_never_granted(fixture *f)             // K4
{
    body_of(f, "claimed")->token = 77;
}

static void hash_of_another_key(fixture *f)             // T2
{
    idem_body *body = body_of(f, "claimed");

    body->scope_len--;
    body->key_len++;
}

static void word_with_another_hash(fixture *f)          // T2
{
    slot_of(f, "claimed")->hash ^= 1;
}

static void index_full_of_another(fixture *f)           // T2
{
    unsigned other = 0;

    while (slot_of(f, "claimed") == idemi_slot_at(&f->table, other))
        other++;
    for (unsigned at = 0; at < f->table.index_size; at++)
        f->table.index[at].slot = (other + 1) & 0x7FFF;
}

static void slot_without_a_status(fixture *f)           // K1
{
    slot_of(f, "claimed")->state = IDEMI_UNDELIVERED;
}

static void claim_of_no_known_kind(fixture *f)          // K1
{
    slot_of(f, "claimed")->state |= 0x40;
}

static void key_that_is_empty(fixture *f)               // K2
{
    body_of(f, "old")->key_len = 0;
}

static void key_over_the_limit(fixture *f)              // K2
{
    body_of(f, "old")->key_len = KEY_MAX;
}

static void one_used_too_many(fixture *f)               // K3
{
    f->table.used++;
}

static void one_claimed_too_many(fixture *f)            // K3
{
    f->table.claimed++;
}

static void one_stale_too_many(fixture *f)              // K3
{
    f->table.stale++;
}

static idem_link *link_of(fixture *f, unsigned slot)
{
    return &f->table.links[slot];
}

static void order_that_leads_nowhere(fixture *f)        // O1
{
    unsigned oldest = link_of(f, f->table.capacity)->newer;

    link_of(f, oldest)->newer = (idem_number)(f->table.capacity + 1);
}

static void order_with_another_way_back(fixture *f)     // O1
{
    unsigned oldest = link_of(f, f->table.capacity)->newer;

    link_of(f, link_of(f, oldest)->newer)->older = (idem_number)oldest + 1;
}

static void order_of_a_claim(fixture *f)                // O1
{
    slot_of(f, "old")->state = IDEMI_IN_PROGRESS;
}

static void free_list_that_leads_nowhere(fixture *f)    // O2
{
    f->table.free = (idem_number)(f->table.capacity + 1);
}

static void free_slot_in_use(fixture *f)                // O2
{
    f->table.free = (idem_number)link_of(f, f->table.capacity)->newer;
}

static void free_list_without_end(fixture *f)           // O2
{
    link_of(f, f->table.free)->newer = f->table.free;
}

static void capacity_of_another(fixture *f)
{
    f->config.capacity++;
}

static void index_of_another(fixture *f)
{
    f->table.index_size--;
}

static void stride_of_another(fixture *f)
{
    f->table.stride += 4;
}

static void state_of_another(fixture *f)
{
    f->table.state_len = STATE_MAX + 1;
}

static const struct { int number; void (*plant)(fixture *); } corruptions[] = {
    { 1, word_without_a_slot },      { 2, slot_without_a_word },
    { 3, lease_too_long },           { 4, completion_to_come },
    { 5, over_before_the_last_sweep }, { 6, claim_that_is_owed },
    { 7, response_over_the_limit },  { 8, one_owed_too_many },
    { 9, claim_without_an_attempt }, { 10, completions_out_of_order },
    { 10, newest_end_lost },         { 11, free_slot_lost },
    { 12, bound_too_late },          { 9, token_never_granted },
    { 13, index_of_another },        { 13, stride_of_another },
    { 13, state_of_another },        { 2, hash_of_another_key },
    { 2, word_with_another_hash },   { 6, slot_without_a_status },
    { 6, claim_of_no_known_kind },   { 7, key_that_is_empty },
    { 7, key_over_the_limit },       { 8, one_used_too_many },
    { 8, one_claimed_too_many },     { 8, one_stale_too_many },
    { 10, order_that_leads_nowhere }, { 10, order_with_another_way_back },
    { 10, order_of_a_claim },        { 11, free_list_that_leads_nowhere },
    { 11, free_slot_in_use },        { 11, free_list_without_end },
    { 13, capacity_of_another },     { 2, index_full_of_another },
};

static void idem_check_names_what_was_corrupted(void **state)
{
    fixture *f = (fixture *)*state;

    for (size_t i = 0; i < COUNT(corruptions); i++) {
        f->config.capacity = CAPACITY;
        fixture_open(f, 0);
        (void)maintain(f, 0x30000000);      // sweeps behind it
        (void)finish(f, "panel", "old", 0x30000000);
        (void)finish(f, "panel", "new", 0x3000000A);
        assert_int_equal(ask(f, "claimed", 0x3000001E), IDEM_EXECUTE);
        assert_int_equal(idem_check(&f->table), 0);
        corruptions[i].plant(f);
        assert_int_equal(idem_check(&f->table), corruptions[i].number);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(t1_t2_t3_hold_whatever_the_order_of_coming_and_going),
        TEST(t1_t2_t3_hold_in_larger_tables_of_any_size),
        TEST(keys_are_found_near_their_homes),
        TEST(t2_holds_for_keys_that_all_have_one_home),
        TEST(s3_a_key_is_its_scope_and_its_bytes_exactly),
        TEST(s3_keys_of_255_bytes_are_compared_to_the_last),
        TEST(a_key_over_key_max_is_refused_not_cut),
        TEST(s9_homes_and_fingerprints_are_decided_by_the_secret),
        TEST(idem_check_names_what_was_corrupted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
