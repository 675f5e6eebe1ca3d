/* SPDX-License-Identifier: 0BSD */
/*
 * Shows the table under the keys: its index in every order of insertion and
 * removal that a tiny one can have, with clusters and the wrap at its end; that
 * a key is its scope and its bytes, exactly (S3); and that idem_check finds
 * each broken invariant, so that the tests that rely on it can fail.
 */
#include "scenario.h"

static unsigned home_of(const char *key)
{
    return inside_home(the.table, "panel", key);
}

static idem_claim claim;            // of the latest begin

static idem_request request(const char *scope, const char *key)
{
    return (idem_request){ .scope = scope, .scope_len = strlen(scope),
                           .key = key, .key_len = strlen(key) };
}

static int begin(const char *scope, const char *key)
{
    idem_request rq = request(scope, key);

    return begin_request(&claim, &rq);
}

static int find(const char *scope, const char *key)
{
    idem_request rq = request(scope, key);
    idem_info info = { .id = NULL };

    return idem_find(the.table, &info, &rq, the.now);
}

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

/* Searches for a key with this home, after those that were tried. */
static void find_key(unsigned home, char key[8], unsigned *tries)
{
    do
        (void)snprintf(key, 8, "%u", (*tries)++ % 10000000);
    while (home_of(key) != home);
}

/* Exactly the keys of the set are there. */
static void assert_set(names four, unsigned set)
{
    for (int i = 0; i < KEYS; i++)
        is(find("panel", four[i]),
           set >> i & 1 ? IDEM_OK : IDEM_E_NOT_FOUND);
}

static void insert_and_remove(names four, const int in[KEYS],
                              const int out[KEYS])
{
    idem_claim claims[KEYS];
    unsigned set = 0;

    for (int i = 0; i < KEYS; i++) {
        is(begin("panel", four[in[i]]), IDEM_EXECUTE);
        claims[in[i]] = claim;
        assert_set(four, set |= 1u << in[i]);
    }
    for (int i = 0; i < KEYS; i++) {
        is(idem_release(the.table, &claims[out[i]], the.now), IDEM_OK);
        assert_set(four, set &= ~(1u << out[i]));
    }
}

TEST(t1_t2_t3_hold_whatever_the_order_of_coming_and_going)
{
    // Apart, all at one home, the same round the end, and two clusters that
    // meet there; negative: before the end.
    static const unsigned homes[][KEYS] = {
        { 0, 2, 4, 6 }, { 3, 3, 3, 3 }, { -1u, -1u, -1u, -1u },
        { -2u, -2u, -1u, 0 }, { -3u, -2u, -2u, -3u }, { -1u, 0, -1u, 1 },
    };

    for (uint8_t secret = 1; secret < 4; secret++)
        for (size_t i = 0; i < COUNT(homes); i++) {
            names four;
            unsigned positions, tries = 0;
            device_on(&nor, "ram capacity=4");
            the.config.secret[0] = the.config.secret[8] = secret;
            positions = inside_positions(the.table);
            for (int key = 0; key < KEYS; key++)
                find_key((homes[i][key] + positions) % positions, four[key],
                         &tries);
            for (int pair = 0; pair < ORDERS * ORDERS; pair++) {
                int in[KEYS], out[KEYS];
                order_of(pair / ORDERS, in);
                order_of(pair % ORDERS, out);
                insert_and_remove(four, in, out);
            }
        }
}

TEST(keys_have_homes_all_over_the_index)
{
    enum { MANY = 1000 };
    static char seen[8 * MANY];
    unsigned positions, taken = 0;

    device_on(&nor, "ram capacity=1000");
    positions = inside_positions(the.table);
    assert_in_range(positions, 2 * MANY, sizeof seen);
    for (unsigned i = 0; i < MANY; i++) {
        unsigned home = home_of(filled("@", 0, i));
        assert_true(home < positions);
        taken += !seen[home];
        seen[home] = 1;
    }
    assert_in_range(taken, 700, MANY);  // of 2000 places at random: 787
}

/* A key that is there goes, and one that is not comes. */
static void toggle(const char *key)
{
    idem_request rq = request("panel", key);
    static const idem_outcome outcome;

    if (idem_forget(the.table, &rq, the.now) == IDEM_OK)
        return;
    is(begin_request(&claim, &rq), IDEM_EXECUTE);
    is(idem_complete(the.table, &claim, &outcome, the.now), IDEM_OK);
}

/* With IDEM_WIDE a word counts how far past its home it is, up to 7. */
TEST(t2_holds_for_keys_that_all_have_one_home)
{
    enum { ALIKE = 20 };
    char alike[ALIKE][8];
    unsigned tries = 0;
    uint32_t chance = 7;

    device_on(&nor, "ram capacity=24");
    for (int i = 0; i < ALIKE; i++)
        find_key(inside_positions(the.table) - 3, alike[i], &tries);
    for (int i = 0; i < 2000; i++)
        toggle(alike[(chance = flash_mix(chance + 1)) % ALIKE]);
}

struct identity { const char *scope; size_t scope_len;
                  const char *key; size_t key_len; };

/* All of them, in one table, are different keys. */
static void assert_all_different(const struct identity *ids, size_t count)
{
    device_on(&nor, filled("ram key=255 capacity=@", 0, (unsigned)count));
    for (size_t i = 0; i < 2 * count; i++) {
        const struct identity *id = &ids[i % count];
        idem_request rq = { .scope = id->scope, .scope_len = id->scope_len,
                            .key = id->key, .key_len = id->key_len };
        is(begin_request(&claim, &rq), i < count ? IDEM_EXECUTE : IDEM_BUSY);
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

    assert_all_different(ids, COUNT(ids));
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
    assert_all_different(ids, COUNT(ids));
}

// A scope and a key, made of a number, of several lengths each
typedef struct candidate {
    const char *scope;
    char key[12];
} candidate;

static candidate candidate_of(unsigned n)
{
    static const char *const scopes[] = { "a", "b", "ab", "" };
    candidate c = { .scope = scopes[n % COUNT(scopes)] };

    (void)snprintf(c.key, sizeof c.key, "%0*u", 6 + (int)(n / 2 % 3), n / 2);
    return c;
}

static unsigned hash_of(unsigned n)
{
    candidate c = candidate_of(n);

    return inside_hash(the.table, c.scope, c.key);
}

/* Two keys with the same hash in the index are still two; enough of them that
   some pairs differ in their scopes only by bytes or by length, and some in
   their keys.  (A hash of 32 bits: one pair in 10,000 keys squared.) */
TEST(s3_two_keys_with_one_hash_are_two_keys)
{
    enum { MANY = 600000 };
    static unsigned seen[1 << 21];      // the number of the latest such hash
    unsigned pairs = 0;

    device_on(&nor, "ram");
    for (unsigned n = 1; n < MANY; n++) {
        unsigned hash = hash_of(n), *other = &seen[hash % COUNT(seen)];
        if (*other && hash_of(*other) == hash) {
            candidate a = candidate_of(*other), b = candidate_of(n);
            device_on(&nor, "ram");
            is(begin(a.scope, a.key), IDEM_EXECUTE);
            is(find(b.scope, b.key), IDEM_E_NOT_FOUND);
            is(begin(b.scope, b.key), IDEM_EXECUTE);
            is(begin(a.scope, a.key), IDEM_BUSY);
            is(begin(b.scope, b.key), IDEM_BUSY);
            pairs++;
        }
        *other = n;
    }
    assert_true(pairs > 10);
}

static uint64_t fingerprint_of_pour(void)
{
    idem_fingerprint_state hash;

    idem_fingerprint_init(&hash, &the.config);
    idem_fingerprint_update(&hash, "pour", 4);
    return idem_fingerprint_final(&hash);
}

TEST(s9_homes_and_fingerprints_are_decided_by_the_secret)
{
    uint64_t fingerprint;
    unsigned homes[12];
    int moved = 0, same = IDEM_HASH == IDEM_HASH_FNV;

    device_on(&nor, "ram capacity=1000");
    fingerprint = fingerprint_of_pour();
    for (uint32_t i = 0; i < COUNT(homes); i++)
        homes[i] = home_of(filled("@", 0, i));
    // Small machines take one half for each.
    the.config.secret[0] ^= 1;
    the.config.secret[8] ^= 1;
    for (uint32_t i = 0; i < COUNT(homes); i++)
        moved += home_of(filled("@", 0, i)) != homes[i];
    assert_in_range(moved, same ? 0 : 10, same ? 0 : 12);
    is(fingerprint_of_pour() == fingerprint, same);
}

/* Keys in every state: old, undelivered, new, claimed, endless; free slots, of
   which the first was in use.  It sweeps after the time. */
static void open_to_break(void)
{
    device_on(&nor, "ram evict quota=4 senders=4 m,ms=805306368 Ba Bb Cb "
                    "Bc,ms=10 Oc Bd,ms=10 Cd Be,ms=10 Bf,lease Ra");
}

// Of the journal are 16 to 18, and the last.
enum { NUMBERS = 21, JOURNAL = 16, NO_JOURNAL = 19 };

/* A number that idem_check can return, and does, is crossed off. */
static void check_crossing(char found[NUMBERS + 1])
{
    int number = idem_check(the.table);

    assert_in_range(number, 0, NUMBERS);
    found[number] = 1;
}

/* Whatever bit of the table flips, idem_check ends, in memory that is the
   table's (a sanitizer checks), and every invariant can be found broken. */
TEST(idem_check_finds_each_invariant_broken)
{
    char found[NUMBERS + 1] = { 0 };

    open_to_break();
    for (size_t i = 0; i < 8 * the.memory_size; i++) {
        ((uint8_t *)the.memory)[i / 8] ^= (uint8_t)(1u << i % 8);
        check_crossing(found);
        ((uint8_t *)the.memory)[i / 8] ^= (uint8_t)(1u << i % 8);
    }
    for (unsigned n = 0; inside_flip(the.table, n / 32, n % 32); n++) {
        check_crossing(found);
        (void)inside_flip(the.table, n / 32, n % 32);
    }
    is(idem_check(the.table), 0);
    for (int number = 1; number <= NUMBERS; number++)
        if (!found[number] && number < NUMBERS &&
            (number < JOURNAL || number >= NO_JOURNAL))
            fail_msg("never found broken: %d", number);
}

/* Nor does it stumble over stretches that were overwritten. */
TEST(idem_check_ends_whatever_was_overwritten)
{
    static const int bytes[] = { 0x00, 0x01, 0x7F, 0xFF };
    char found[NUMBERS + 1] = { 0 }, kept[4096], *memory;
    size_t size;

    open_to_break();
    memory = (char *)the.memory;
    size = the.memory_size;
    assert_in_range(size, 1, sizeof kept);
    memcpy(kept, memory, size);
    for (size_t i = 0; i < COUNT(bytes); i++)
        for (size_t from = 0; from < size; from += 4) {
            for (size_t to = from + 4; to <= size; to += 4) {
                memset(memory + to - 4, bytes[i], 4);
                check_crossing(found);
            }
            memcpy(memory, kept, size);
        }
    is(idem_check(the.table), 0);
}

static idem_slot *slot_of(const idem_table *t, unsigned slot)
{
    return (idem_slot *)(void *)(t->slots + slot * t->stride);
}

enum { SWEEP_MS = 1 << 28 };

/* It names the one that is broken: here in an index in which not all keys are at
   home. */
TEST(idem_check_returns_which)
{
    idem_table *t = device_on(&nor, "ram capacity=16 Ba Bb Bc Bd Be Bf Bg Bh Bi "
                                    "Bj Bk Bl Bm Bn Ao")->table;

    for (idem_word *word = t->index; (uint8_t *)word < t->state; word++) {
        const idem_word right = *word;
        idem_slot *s;
        if (!word->slot)
            continue;
        s = slot_of(t, word->slot - 1u);
        s->hash ^= 1;
        is(idem_check(t), 2);
        s->hash ^= 1;
        word->slot = 0;
        is(idem_check(t), 2);
        *word = right;
#if IDEM_WIDE
        word->tag ^= 1;
        is(idem_check(t), 2);
        *word = right;
        word->offset ^= 1;
        is(idem_check(t), 2);
        *word = right;
#endif
    }
    t->links[t->capacity].older ^= 1;
    is(idem_check(t), 10);
    t->links[t->capacity].older ^= 1;
    t->swept = t->clock - SWEEP_MS + 1;
    is(idem_check(t), 0);
    t->swept--;
    is(idem_check(t), 20);
    t->swept = t->clock;
    t->free = (idem_short)t->capacity;
    is(idem_check(t), 11);
}

/* .. in the own order of a sender: one that is undelivered. */
TEST(idem_check_returns_which_of_a_senders_order)
{
    idem_table *t = device_on(&nor, "ram evict quota=4 senders=2 scopes=2 "
                                    "Ba Ca Bb Cb")->table;

    slot_of(t, t->links[t->capacity].newer)->flags ^= 4;
    t->pending++;
    is(idem_check(t), 19);
}

/* .. and here in a slot: a bit that means nothing there, a time too late, an
   outcome that has no place in the order, a token that was not granted. */
TEST(idem_check_returns_which_of_a_slot)
{
    idem_table *t;

    open_to_break();
    t = the.table;
    for (unsigned slot = 0; slot < t->capacity; slot++) {
        idem_slot *s = slot_of(t, slot);
        int is_outcome = s->flags & 2, is_endless = s->flags & 8;
        unsigned misplaced = is_outcome ? 0xD8 : 0xC4;
        const idem_slot right = *s;
        if (!s->flags)
            continue;
        for (unsigned bit = 1; bit < 0x100; bit *= 2) {
            s->flags ^= (uint8_t)(misplaced & bit);
            is(idem_check(t), misplaced & bit ? 6 : 0);
            *s = right;
        }
        s->time = t->clock + (is_outcome ? 1 : IDEM_LEASE_MAX + 1);
        is(idem_check(t), is_endless ? 0 : is_outcome ? 4 : 3);
        *s = right;
        if (slot == t->links[t->capacity].newer) {
            idem_link *link = &t->links[slot];
            link->older ^= 1;
            is(idem_check(t), 10);
            link->older ^= 1;
            s->time = t->clock;
            is(idem_check(t), 10);
            *s = right;
            s->flags ^= 3;
            is(idem_check(t), 10);
            *s = right;
        }
    }
    t->token--;
    is(idem_check(t), 9);
}

/* After the slots are the links: whatever those are, no claim is current
   there. */
TEST(s1_a_claim_after_the_last_slot_is_fenced)
{
    static const idem_outcome outcome = { 0 };
    unsigned like_a_claim = 0;

    for (unsigned i = 0; i < 64; i++) {
        device *d = device_on(&nor, "ram capacity=10 B0,ms=0 B1,ms=0 B2,ms=0 "
                                    "B3,ms=0 B4,ms=0 B5,ms=0 B6,ms=0 B7,ms=0");
        idem_claim forged = { 0, d->table->capacity, 1 };
        const idem_slot *s = slot_of(d->table, forged.slot);
        for (unsigned n = 0; n < 8; n++) {
            call c = call_of(i >> n % 6 & 1 ? 'C' : 'R', (i * 5 + n * 3) % 8);
            c.ms = 0;
            call_table(d, &c);
        }
        forged.token = s->token;
#if IDEM_WIDE
        forged.token |= (uint64_t)s->token_high << 32;
#endif
        if (!forged.token)
            continue;
        like_a_claim += s->flags & 1;
        is(idem_complete(d->table, &forged, &outcome, d->now), IDEM_E_FENCED);
        is(idem_release(d->table, &forged, d->now), IDEM_E_FENCED);
    }
    assert_true(like_a_claim > 0);
}

TEST(idem_check_counts_what_is_promised)
{
    open_to_break();
    is(the.table->used, 5);
    is(the.table->pending, 1);
    for (int n = 0; n < 2; n++) {
        uint32_t *count = n ? &the.table->pending : &the.table->used;
        ++*count;
        assert_int_not_equal(idem_check(the.table), 0);
        --*count;
    }
    is(idem_check(the.table), 0);
}

/* .. where entries of senders would stand. */
TEST(opening_writes_nothing_in_front_of_its_memory)
{
    static uint32_t words[1000];
    device *d = device_on(&nor, "ram");

    memset(words, 0x5A, sizeof words);
    assert_in_range(d->memory_size, 1, sizeof words / 2);
    is(idem_open(d->table, &d->config, words + COUNT(words) / 2, d->memory_size,
                 0), IDEM_OK);
    for (size_t i = 0; i < COUNT(words) / 2; i++)
        is(words[i], 0x5A5A5A5A);
}

/* A device may receive and answer in the same bytes. */
TEST(a_response_may_be_copied_over_its_request)
{
    char bytes[8] = "42 5 ml";
    idem_request rq = { .key = bytes, .key_len = 2, .payload = bytes + 3,
                        .payload_len = 4, .buffer = bytes, .buffer_size = 8 };
    idem_outcome outcome = { .response = "poured", .response_len = 6 };
    idem_claim its;

    device_on(&nor, "ram key=8 response=8");
    is(begin_request(&its, &rq), IDEM_EXECUTE);
    is(idem_complete(the.table, &its, &outcome, the.now), IDEM_OK);
    is(begin_request(&its, &rq), IDEM_REPLAY);
    assert_memory_equal(bytes, "poured", 6);
}
