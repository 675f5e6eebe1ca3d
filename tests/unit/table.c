/* SPDX-License-Identifier: 0BSD */
/*
 * Shows the table under the keys: its index in every order of insertion and
 * removal that a tiny one can see, clusters and the wrap round its end
 * included; that a key is its scope and its bytes, exactly (S3); and that
 * idem_check finds each invariant broken, so the tests that rely on it can
 * fail.
 */
#include "fixture.h"

#include "inside.h"

static unsigned home_of(const fixture *f, const char *key)
{
    return inside_home(&f->table, "panel", key);
}

/* ---------------------------------------------------- T1 to T3: every order */

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

/* Searches for a key with this home, behind those that were tried. */
static void find_key(const fixture *f, unsigned home, char key[8],
                     unsigned *tries)
{
    do
        (void)snprintf(key, 8, "%u", (*tries)++ % 10000000);
    while (home_of(f, key) != home);
}

/* Exactly the keys of the set are there. */
static void assert_set(fixture *f, names keys, unsigned set)
{
    for (int i = 0; i < KEYS; i++)
        is(find(f, "panel", keys[i], 0),
           set >> i & 1 ? IDEM_OK : IDEM_E_NOT_FOUND);
}

static void insert_and_remove(fixture *f, names keys, const int in[KEYS],
                              const int out[KEYS])
{
    idem_claim claims[KEYS];
    unsigned set = 0;

    for (int i = 0; i < KEYS; i++) {
        is(ask(f, keys[in[i]], 0), IDEM_EXECUTE);
        claims[in[i]] = f->claim;
        set |= 1u << in[i];
        assert_set(f, keys, set);
    }
    for (int i = 0; i < KEYS; i++) {
        is(release(f, &claims[out[i]], 0), IDEM_OK);
        set &= ~(1u << out[i]);
        assert_set(f, keys, set);
    }
}

TEST(t1_t2_t3_hold_whatever_the_order_of_coming_and_going)
{
    const unsigned last = inside_positions(&f->table) - 1;
    // Apart, all at one home, the same round the end, and two clusters that
    // meet there.
    const unsigned homes[][KEYS] = {
        { 0, 2, 4, 6 }, { 3, 3, 3, 3 }, { last, last, last, last },
        { last - 1, last - 1, last, 0 },
        { last - 2, last - 1, last - 1, last - 2 }, { last, 0, last, 1 },
    };

    for (uint8_t secret = 1; secret < 4; secret++)
        for (size_t i = 0; i < COUNT(homes); i++) {
            names keys;
            unsigned tries = 0;
            f->config.secret[0] = f->config.secret[8] = secret;
            fixture_open(f, 0);
            for (int key = 0; key < KEYS; key++)
                find_key(f, homes[i][key], keys[key], &tries);
            for (int pair = 0; pair < ORDERS * ORDERS; pair++) {
                int in[KEYS], out[KEYS];
                order_of(pair / ORDERS, in);
                order_of(pair % ORDERS, out);
                insert_and_remove(f, keys, in, out);
            }
        }
}

/* A key that is there goes, and one that is not comes, if there is room. */
static void toggle(fixture *f, const char *key)
{
    if (find(f, "panel", key, 0) == IDEM_OK)
        is(forget(f, "panel", key, 0), IDEM_OK);
    else if (f->table.used < f->config.capacity)
        (void)finish(f, "panel", key, 0);
    else
        is(ask(f, key, 0), IDEM_E_FULL);
}

static void open_of(fixture *f, uint32_t capacity)
{
    f->config.capacity = capacity;
    fixture_open(f, 0);
}

TEST(keys_have_homes_all_over_the_index)
{
    enum { MANY = 1000 };
    static char seen[8 * MANY];
    unsigned positions, taken = 0;

    open_of(f, MANY);
    positions = inside_positions(&f->table);
    assert_in_range(positions, 2 * MANY, sizeof seen);
    for (unsigned i = 0; i < MANY; i++) {
        unsigned home;
        char key[8];
        (void)snprintf(key, sizeof key, "%u", i);
        home = home_of(f, key);
        assert_true(home < positions);
        taken += !seen[home];
        seen[home] = 1;
    }
    assert_in_range(taken, 700, MANY);  // of 2000 places at random: 787
}

/* With IDEM_WIDE a word counts how far past its home it is, up to 7. */
TEST(t2_holds_for_keys_that_all_have_one_home)
{
    enum { ALIKE = 20 };
    char keys[ALIKE][8];
    unsigned tries = 0;
    uint32_t seed = 7;

    open_of(f, 24);
    for (int i = 0; i < ALIKE; i++)
        find_key(f, inside_positions(&f->table) - 3, keys[i], &tries);
    for (int i = 0; i < 2000; i++)
        toggle(f, keys[dice(&seed) % ALIKE]);
}

/* ----------------------------------------------------------------- identity */

struct identity { const char *scope; size_t scope_len;
                  const char *key; size_t key_len; };

/* All of them, in one table, are different keys. */
static void assert_all_different(fixture *f, const struct identity *ids,
                                 size_t count)
{
    open_of(f, (uint32_t)count);
    for (size_t i = 0; i < 2 * count; i++) {
        const struct identity *id = &ids[i % count];
        idem_request rq = { .scope = id->scope, .scope_len = id->scope_len,
                            .key = id->key, .key_len = id->key_len };
        is(begin_request(f, &rq, 0), i < count ? IDEM_EXECUTE : IDEM_BUSY);
    }
}

TEST(s3_a_key_is_its_scope_and_its_bytes_exactly)
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

    assert_all_different(f, ids, COUNT(ids));
}

TEST(s3_keys_of_255_bytes_are_compared_to_the_last)
{
    static char a[256], b[256];
    const struct identity ids[] = {
        { NULL, 0, a, 255 }, { NULL, 0, b, 255 },  { NULL, 0, a, 254 },
        { a, 254, a, 1 },    { a, 254, b + 254, 1 }, { a, 1, b, 254 },
        { b + 254, 1, b, 254 },
    };

    memset(a, 'x', sizeof a);
    memset(b, 'x', sizeof b);
    b[254] = 'y';
    f->config.key_max = 255;
    assert_all_different(f, ids, COUNT(ids));
}

TEST(a_key_over_key_max_is_refused_not_cut)
{
    static char bytes[300];
    idem_request rq = { .scope = bytes, .key = bytes };

    for (size_t max = 254; max < 256; max++) {
        f->config.key_max = (uint16_t)max;
        fixture_open(f, 0);
        for (rq.key_len = 1; rq.key_len < 300; rq.key_len++) {
            rq.scope_len = rq.key_len > max ? 0 : max + 1 - rq.key_len;
            is(begin_request(f, &rq, 0), IDEM_E_TOO_LARGE);
        }
        rq.key_len = 2;
        rq.scope_len = (size_t)-1;          // the sum is 1
        is(begin_request(f, &rq, 0), IDEM_E_TOO_LARGE);
    }
}

// A scope and a key, made of a number, of several lengths each
typedef struct candidate {
    unsigned hash;
    char scope[4];
    char key[12];
} candidate;

static int by_hash(const void *a, const void *b)
{
    unsigned x = ((const candidate *)a)->hash;
    unsigned y = ((const candidate *)b)->hash;

    return (x > y) - (x < y);
}

/* Two keys of which the index knows the same are still two; enough of them that
   some pairs differ in their scopes only by bytes or by length, and some in
   their keys.  (A hash of 32 bits: one pair in 10,000 keys squared.) */
TEST(s3_two_keys_with_one_hash_are_two_keys)
{
    enum { MANY = 600000, ENOUGH = 60 };
    static const char *const scopes[] = { "a", "b", "ab", "" };
    candidate *all = (candidate *)calloc(MANY, sizeof *all);
    unsigned pairs = 0;

    assert_non_null(all);
    for (unsigned n = 0; n < MANY; n++) {
        candidate *c = &all[n];
        strcpy(c->scope, scopes[n % COUNT(scopes)]);
        (void)snprintf(c->key, sizeof c->key, "%0*u", 6 + (int)(n / 2 % 3),
                       n / 2);
        c->hash = inside_hash(&f->table, c->scope, c->key);
    }
    qsort(all, MANY, sizeof *all, by_hash);
    for (size_t n = 1; n < MANY && pairs < ENOUGH; n++) {
        const candidate *a = &all[n - 1], *b = &all[n];
        if (a->hash != b->hash)
            continue;
        fixture_open(f, 0);
        is(begin(f, a->scope, a->key, "pour", 0), IDEM_EXECUTE);
        is(find(f, b->scope, b->key, 0), IDEM_E_NOT_FOUND);
        is(begin(f, b->scope, b->key, "pour", 0), IDEM_EXECUTE);
        is(begin(f, a->scope, a->key, "pour", 0), IDEM_BUSY);
        is(begin(f, b->scope, b->key, "pour", 0), IDEM_BUSY);
        pairs++;
    }
    free(all);
    assert_true(pairs > 10);
}

static uint64_t fingerprint_of(const fixture *f, const char *payload)
{
    idem_fingerprint_state hash;

    idem_fingerprint_init(&hash, &f->config);
    idem_fingerprint_update(&hash, payload, strlen(payload));
    return idem_fingerprint_final(&hash);
}

TEST(s9_homes_and_fingerprints_are_decided_by_the_secret)
{
    uint64_t fingerprint;
    unsigned homes[12];
    int moved = 0;

    open_of(f, 1000);
    fingerprint = fingerprint_of(f, "pour");
    for (uint32_t i = 0; i < COUNT(homes); i++)
        homes[i] = home_of(f, nth(i));
    // Small machines take one half for each.
    f->config.secret[0] ^= 1;
    f->config.secret[8] ^= 1;
    for (uint32_t i = 0; i < COUNT(homes); i++)
        moved += home_of(f, nth(i)) != homes[i];
    if (IDEM_HASH == IDEM_HASH_FNV) {
        is(moved, 0);
        assert_true(fingerprint_of(f, "pour") == fingerprint);
    } else {
        assert_in_range(moved, 10, 12);
        assert_true(fingerprint_of(f, "pour") != fingerprint);
    }
}

/* ------------------------------------------------------ idem_check can fail */

enum {
    BREAKABLE = 8,
    BREAKABLE_SIZE =
        IDEM_MEMORY_SIZE(BREAKABLE, KEY_MAX, RESPONSE_MAX, STATE_MAX)
};

/* Keys in every state: old, new, owed, claimed, endless; and free slots, of
   which the first was in use. */
static void open_to_break(fixture *f)
{
    const uint32_t now = 0x30000000;        // sweeps behind it
    idem_claim gone;

    open_of(f, BREAKABLE);
    (void)maintain(f, now);
    is(ask(f, "given back", now), IDEM_EXECUTE);
    gone = f->claim;
    (void)finish(f, "panel", "old", now);
    f->outcome.confirm = 1;
    (void)finish(f, "panel", "owed", now + 10);
    f->outcome.confirm = 0;
    (void)finish(f, "panel", "new", now + 20);
    is(ask(f, "claimed", now + 30), IDEM_EXECUTE);
    f->request.lease_ms = IDEM_LEASE_NONE;
    is(ask(f, "endless", now + 30), IDEM_EXECUTE);
    f->request.lease_ms = 0;
    is(release(f, &gone, now + 30), IDEM_OK);
}

enum { NUMBERS = 13 };              // without a journal

/* A number that idem_check can say, and does, is crossed off. */
static void check_crossing(const fixture *f, char found[NUMBERS + 1])
{
    int number = idem_check(&f->table);

    assert_in_range(number, 0, NUMBERS);
    found[number] = 1;
}

/* Whatever bit of the table flips, idem_check ends, in memory that is the
   table's (so the sanitizer says), and every invariant can be found broken. */
TEST(idem_check_finds_each_invariant_broken)
{
    char found[NUMBERS + 1] = { 0 };

    open_to_break(f);
    for (size_t i = 0; i < 8 * BREAKABLE_SIZE; i++) {
        ((uint8_t *)f->memory)[i / 8] ^= (uint8_t)(1u << i % 8);
        check_crossing(f, found);
        ((uint8_t *)f->memory)[i / 8] ^= (uint8_t)(1u << i % 8);
    }
    for (unsigned n = 0; inside_flip(&f->table, n / 32, n % 32); n++) {
        check_crossing(f, found);
        (void)inside_flip(&f->table, n / 32, n % 32);
    }
    is(idem_check(&f->table), 0);
    for (int number = 1; number <= NUMBERS; number++)
        if (!found[number])
            fail_msg("never found broken: %d", number);
}

/* Nor does it stumble over stretches that were overwritten. */
TEST(idem_check_ends_whatever_was_overwritten)
{
    static const int bytes[] = { 0x00, 0x01, 0x7F, 0xFF };
    char found[NUMBERS + 1] = { 0 }, kept[BREAKABLE_SIZE], *memory;

    open_to_break(f);
    memory = (char *)f->memory;
    memcpy(kept, memory, sizeof kept);
    for (size_t i = 0; i < COUNT(bytes); i++)
        for (size_t from = 0; from < sizeof kept; from += 4) {
            for (size_t to = from + 4; to <= sizeof kept; to += 4) {
                memset(memory + to - 4, bytes[i], 4);
                check_crossing(f, found);
            }
            memcpy(memory, kept, sizeof kept);
        }
    is(idem_check(&f->table), 0);
}

TEST(idem_check_counts_what_is_promised)
{
    open_to_break(f);
    is(f->table.used, 5);
    is(f->table.pending, 1);
    f->table.used++;
    assert_int_not_equal(idem_check(&f->table), 0);
    f->table.used--;
    f->table.pending++;
    assert_int_not_equal(idem_check(&f->table), 0);
    f->table.pending--;
    is(idem_check(&f->table), 0);
}

/* What fills its place to the last byte does not fit into one that is smaller by
   one: of state, response, scope and key; nor is there one slot more. */
TEST(idem_check_compares_with_the_configuration)
{
    const idem_config right = f->config;

    f->outcome.state = "12345678";
    f->outcome.state_len = STATE_MAX;
    is(ask(f, "a key of 19 bytes..", 0), IDEM_EXECUTE);
    is(complete(f, &f->claim, "sixteen bytes...", 0), IDEM_OK);
    for (int n = 0; n < 4; n++) {
        f->config.state_max -= n == 0;
        f->config.response_max -= n == 1;
        f->config.key_max -= n == 2;
        f->config.capacity += n == 3;
        assert_int_not_equal(idem_check(&f->table), 0);
        f->config = right;
    }
    is(idem_check(&f->table), 0);
}
