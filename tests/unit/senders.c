/* SPDX-License-Identifier: 0BSD */
/*
 * Numbers instead of keys, quotas, accounts (>>senders of the manual), for one
 * boot: their edges, and who has which account.  What becomes old, and when, is
 * in numbers.c; the same over restarts in journal_senders.c.
 */
#include "fixture.h"

enum { LAST = UINT32_MAX };             // of the sequences

static void open_senders(fixture *f, uint32_t senders, uint32_t capacity,
                         uint8_t policy)
{
    f->config.senders = senders;
    f->config.capacity = capacity;
    f->config.full = policy;
    fixture_open(f, 0);
}

static idem_request number_of(const fixture *f, const char *scope,
                              uint32_t epoch, uint32_t sequence)
{
    idem_request rq = request_of(f, scope, "", "pour");

    rq.key = NULL;
    rq.epoch = epoch;
    rq.sequence = sequence;
    return rq;
}

static int number_from(fixture *f, const char *scope, uint32_t epoch,
                       uint32_t sequence, uint32_t now)
{
    idem_request rq = number_of(f, scope, epoch, sequence);

    return begin_request(f, &rq, now);
}

/* Of a sender that does not matter. */
static int number(fixture *f, uint32_t epoch, uint32_t sequence, uint32_t now)
{
    return number_from(f, "panel", epoch, sequence, now);
}

static idem_claim done(fixture *f, const char *scope, uint32_t epoch,
                       uint32_t sequence, uint32_t now)
{
    is(number_from(f, scope, epoch, sequence, now), IDEM_EXECUTE);
    is(complete(f, &f->claim, "poured", now), IDEM_OK);
    return f->claim;
}

static int find_number(fixture *f, uint32_t epoch, uint32_t sequence,
                       uint32_t now)
{
    idem_request rq = number_of(f, "panel", epoch, sequence);

    return find_request(f, &rq, now);
}

static int forget_number(fixture *f, uint32_t epoch, uint32_t sequence,
                         uint32_t now)
{
    idem_request rq = number_of(f, "panel", epoch, sequence);

    return checked(f, idem_forget(&f->table, &rq, now));
}

/* Idle time: what is over is dropped, whoever asks for it later. */
static void drop_what_is_over(fixture *f, uint32_t now)
{
    while (maintain(f, now) == IDEM_MORE)
        ;
}

/* ---------------------------------------------------------------------------
   what a number is
   ------------------------------------------------------------------------ */
TEST(a_sender_of_which_nothing_is_known_may_begin_anywhere)
{
    static const uint32_t anywhere[] = { 1, 2, 77, 0x80000000u, LAST - 1,
                                         LAST };

    for (size_t e = 0; e < COUNT(anywhere); e++)
        for (size_t s = 0; s < COUNT(anywhere); s++) {
            open_senders(f, 1, 4, IDEM_REJECT);
            (void)done(f, "panel", anywhere[e], anywhere[s], 0);
            open_senders(f, 1, 4, IDEM_REJECT);
            (void)done(f, "panel", 0, anywhere[s], 0);
            is(number(f, 0, anywhere[s], 0), IDEM_REPLAY);
        }
}

/* The bytes of a key may be those of a number; it is another key. */
TEST(a_number_is_no_key_of_the_same_bytes)
{
    static const char bytes[8] = { 9, 0, 0, 0, 3, 0, 0, 0 };
    idem_request rq;

    open_senders(f, 1, 4, IDEM_REJECT);
    (void)done(f, "panel", 3, 9, 0);
    rq = request_of(f, "panel", "", "pour");
    rq.key = bytes;
    rq.key_len = sizeof bytes;
    is(begin_request(f, &rq, 0), IDEM_EXECUTE);
    is(number(f, 3, 9, 0), IDEM_REPLAY);
    is(live(f, 0), 2);
    is(number(f, 3, 9, RETENTION), IDEM_TOO_OLD);
    is(complete(f, &f->claim, "x", 0), IDEM_E_FENCED);
    // A key is forgotten when its retention is over, and executed again.
    is(begin_request(f, &rq, RETENTION + LEASE), IDEM_EXECUTE);
}

typedef struct named {
    uint64_t hash;
    uint32_t number;
} named;

/* By the low half of the hash. */
static int by_half(const void *a, const void *b)
{
    uint32_t x = (uint32_t)((const named *)a)->hash;
    uint32_t y = (uint32_t)((const named *)b)->hash;

    return x < y ? -1 : x > y;
}

/* An account is found by a hash of the scope, which is that of a payload: two
   scopes with one half of it alike are sought among many. */
TEST(who_has_half_a_hash_of_another_is_another)
{
    enum { MANY = 300000 };
    static named names[MANY];
    char one[12], other[12];
    unsigned pairs = 0;

    for (uint32_t i = 0; i < MANY; i++) {
        idem_fingerprint_state hash;
        int len = snprintf(one, sizeof one, "%u", (unsigned)i);
        idem_fingerprint_init(&hash, &f->config);
        idem_fingerprint_update(&hash, one, (size_t)len);
        names[i].hash = idem_fingerprint_final(&hash);
        names[i].number = i;
    }
    qsort(names, MANY, sizeof *names, by_half);
    for (uint32_t i = 1; i < MANY; i++) {
        if (by_half(&names[i - 1], &names[i]) != 0)
            continue;
        (void)snprintf(one, sizeof one, "%u", (unsigned)names[i - 1].number);
        (void)snprintf(other, sizeof other, "%u", (unsigned)names[i].number);
        open_senders(f, 2, 4, IDEM_REJECT);
        (void)done(f, one, 1, 10, 0);
        drop_what_is_over(f, RETENTION);
        is(number_from(f, one, 1, 9, RETENTION), IDEM_TOO_OLD);
        (void)done(f, other, 0, 1, RETENTION);
        pairs++;
    }
    assert_in_range(pairs, 1, 40);
}

TEST(sequences_do_not_wrap_an_epoch_goes_on)
{
    open_senders(f, 1, 4, IDEM_REJECT);
    (void)done(f, "panel", 7, LAST, 0);
    is(number(f, 7, 0, 0), IDEM_E_ARG);
    drop_what_is_over(f, RETENTION);
    is(number(f, 7, 1, RETENTION), IDEM_TOO_OLD);
    is(number(f, 7, LAST, RETENTION), IDEM_TOO_OLD);
    is(number(f, 7, 0, RETENTION), IDEM_E_ARG);
    (void)done(f, "panel", 8, 1, RETENTION);
    (void)done(f, "panel", LAST, 1, RETENTION);
    (void)done(f, "panel", LAST, LAST, RETENTION);
    drop_what_is_over(f, 2 * RETENTION);
    for (uint32_t sequence = 1; sequence; sequence <<= 1)
        is(number(f, LAST, sequence, 2 * RETENTION), IDEM_TOO_OLD);
}

/* The sender's mistake, as no key is: nobody is told. */
TEST(a_sequence_of_0_is_no_key)
{
    unsigned before = unit_misuse;

    open_senders(f, 1, 4, IDEM_REJECT);
    is(number(f, 5, 0, 0), IDEM_E_ARG);
    is(f->claim.token, 0);
    is(find_number(f, 5, 0, 0), IDEM_E_ARG);
    is(forget_number(f, 5, 0, 0), IDEM_E_ARG);
    is(unit_misuse, before);
    is(f->table.used, 0);
    // With a key an epoch means nothing.
    f->request.epoch = 5;
    (void)finish(f, "panel", "key", 0);
    f->request.epoch = 6;
    is(ask(f, "key", 0), IDEM_REPLAY);
    f->request.epoch = 0;
    is(number(f, 1, 1, 0), IDEM_EXECUTE);
}

TEST(a_sequence_with_a_key_or_without_senders_is_a_misuse)
{
    unsigned before = unit_misuse;
    idem_request rq;

    rq = number_of(f, "panel", 0, 1);
    is(begin_request(f, &rq, 0), IDEM_E_ARG);
    is(forget_number(f, 0, 1, 0), IDEM_E_ARG);
    is(unit_misuse, before + 2);
    open_senders(f, 1, 4, IDEM_REJECT);
    before = unit_misuse;
    rq.key = "k";
    rq.key_len = 1;
    is(begin_request(f, &rq, 0), IDEM_E_ARG);
    is(idem_find(&f->table, &f->entry, &rq, 0), IDEM_E_ARG);
    is(unit_misuse, before + 2);
    is(f->table.used, 0);
    rq.key_len = 0;
    is(begin_request(f, &rq, 0), IDEM_EXECUTE);
}

TEST(a_number_takes_8_bytes_of_key_max)
{
    char scope[KEY_MAX + 1];

    open_senders(f, 1, 4, IDEM_REJECT);
    memset(scope, 's', sizeof scope);
    scope[KEY_MAX - 7] = 0;
    is(number_from(f, scope, 0, 1, 0), IDEM_E_TOO_LARGE);
    scope[KEY_MAX - 8] = 0;
    is(number_from(f, scope, 0, 1, 0), IDEM_EXECUTE);
    f->config.key_max = 7;
    fixture_open(f, 0);
    is(number_from(f, "", 0, 1, 0), IDEM_E_TOO_LARGE);
    f->config.key_max = 8;
    fixture_open(f, 0);
    (void)done(f, "", LAST, LAST, 0);
    is(number_from(f, "", LAST, LAST, 0), IDEM_REPLAY);
}

TEST(an_account_takes_the_memory_that_the_manual_says)
{
    size_t without;

    is(sizeof(idem_sender), IDEM_WIDE ? 28 : 24);
    is(IDEM_SENDERS_MEMORY_SIZE(3), 3 * (sizeof(idem_sender) + 4));
    is(idem_open(&f->table, &f->config, NULL, 0, 0), IDEM_E_MEMORY);
    without = f->table.needed;
    f->config.senders = 3;
    is(idem_open(&f->table, &f->config, NULL, 0, 0), IDEM_E_MEMORY);
    is(f->table.needed, without + 3 * sizeof(idem_sender));
}

/* ---------------------------------------------------------------------------
   the floor
   ------------------------------------------------------------------------ */
TEST(above_the_floor_in_any_order_with_gaps_of_any_width)
{
    static const uint32_t jumps[] = { 1000, 50, 0x7FFFFFFF, 51, 0x80000000u,
                                      LAST, 52, LAST - 1, 999, 0xFFFF };

    open_senders(f, 1, 16, IDEM_REJECT);
    (void)done(f, "panel", 0, 49, 0);
    is(number(f, 0, 49, RETENTION), IDEM_TOO_OLD);
    for (size_t i = 0; i < COUNT(jumps); i++)
        (void)done(f, "panel", 0, jumps[i], RETENTION);
    for (size_t i = 0; i < COUNT(jumps); i++)
        is(number(f, 0, jumps[i], RETENTION), IDEM_REPLAY);
    for (uint32_t n = 1; n < 50; n++)
        is(number(f, 0, n, RETENTION), IDEM_TOO_OLD);
    is(f->table.used, COUNT(jumps));
}

/* ---------------------------------------------------------------------------
   more senders than accounts
   ------------------------------------------------------------------------ */
TEST(who_has_nothing_to_remember_makes_room)
{
    open_senders(f, 2, 8, IDEM_REJECT);
    (void)done(f, "panel", 0, 10, 0);
    (void)finish(f, "b", "key", 0);
    is(number_from(f, "c", 0, 1, 0), IDEM_E_FULL);
    is(begin(f, "c", "key", "pour", 0), IDEM_E_FULL);
    is(f->reply.retry_after_ms, 0);
    is(f->table.stats.crowded, 2);
    is(f->table.stats.full, 2);
    is(begin(f, "b", "key", "pour", 0), IDEM_REPLAY);
    // Nobody asks for it, but it is in the way, and over.
    is(number_from(f, "c", 0, 1, RETENTION), IDEM_EXECUTE);
    is(f->table.stats.crowded, 2);
    // A number is remembered, though no key is.
    is(number_from(f, "d", 0, 1, RETENTION), IDEM_E_FULL);
    is(number(f, 0, 10, RETENTION), IDEM_TOO_OLD);
    is(f->table.stats.crowded, 3);
}

TEST(with_eviction_the_idlest_without_keys_makes_room)
{
    const uint32_t hour = 3600000;

    open_senders(f, 3, 8, IDEM_EVICT_OLDEST);
    (void)done(f, "a", 0, 10, 0);
    (void)done(f, "b", 0, 10, hour);
    (void)done(f, "c", 0, 10, 2 * hour);
    is(maintain(f, 3 * hour), IDEM_OK);
    (void)done(f, "a", 0, 11, 3 * hour);
    (void)done(f, "d", 0, 10, 3 * hour);                // b goes
    is(f->table.stats.crowded, 1);
    is(number_from(f, "a", 0, 10, 3 * hour), IDEM_TOO_OLD);
    is(number_from(f, "c", 0, 10, 3 * hour), IDEM_TOO_OLD);
    is(number_from(f, "a", 0, 11, 3 * hour), IDEM_REPLAY);
    (void)done(f, "e", 0, 10, 3 * hour);                // c goes
    is(f->table.stats.crowded, 2);
    // All have keys now: none goes.
    is(number_from(f, "b", 0, 11, 3 * hour), IDEM_E_FULL);
    is(f->table.stats.crowded, 3);
    is(number_from(f, "a", 0, 11, 3 * hour), IDEM_REPLAY);
}

/* How idle somebody is, is told right for years. */
TEST(a_sender_in_use_is_never_forgotten_for_another)
{
    const uint32_t day = 86400000;
    char scope[8];

    open_senders(f, 2, 4, IDEM_EVICT_OLDEST);
    for (uint32_t n = 1; n < 400; n++) {
        is(elapse(f, day), IDEM_OK);
        (void)done(f, "good", 0, n, 0);
        is(elapse(f, day), IDEM_OK);
        is(maintain(f, 0), IDEM_OK);
        (void)snprintf(scope, sizeof scope, "%u", (unsigned)n);
        (void)done(f, scope, 0, n, 0);
        is(number_from(f, "good", 0, n, 0), IDEM_TOO_OLD);
    }
    is(f->table.stats.crowded, 398);
}

/* Of one that was forgotten all who are unknown have the reach. */
TEST(the_reach_of_a_forgotten_sender_is_that_of_the_unknown)
{
    f->config.quota = 1;
    open_senders(f, 1, 8, IDEM_EVICT_OLDEST);
    is(elapse(f, 2 * RETENTION), IDEM_OK);
    (void)done(f, "panel", 0, 1, 0);
    (void)done(f, "panel", 0, 2, 10);
    is(forget_number(f, 0, 2, 20), IDEM_OK);
    is(number_from(f, "other", 0, 1, 20), IDEM_EXECUTE);
    is(f->table.stats.crowded, 1);
    f->request.age_ms = 20;
    is(number(f, 0, 3, 20), IDEM_TOO_OLD);
    f->request.age_ms = 19;                 // the one account has a live key
    is(number(f, 0, 3, 20), IDEM_E_FULL);
    is(f->table.stats.crowded, 2);
}

/* ---------------------------------------------------------------------------
   looking
   ------------------------------------------------------------------------ */
TEST(a_number_is_found_shown_and_forgotten_by_itself)
{
    static const unsigned char bytes[13] = {
        'p', 'a', 'n', 'e', 'l', 0x44, 0x33, 0x22, 0x11, 0x88, 0x77, 0x66, 0x55
    };
    idem_entry entry = { .id = f->id, .id_size = sizeof f->id };
    idem_request rq;

    open_senders(f, 1, 4, IDEM_REJECT);
    (void)done(f, "panel", 0x55667788, 0x11223344, 0);
    is(find_number(f, 0x55667788, 0x11223344, 0), IDEM_OK);
    is(f->entry.epoch, 0x55667788);
    is(f->entry.sequence, 0x11223344);
    is(f->entry.scope_len, 5);
    is(f->entry.key_len, 0);
    assert_memory_equal(f->id, bytes, sizeof bytes);
    is(find_number(f, 0x55667788, 0x11223345, 0), IDEM_E_NOT_FOUND);
    is(find_number(f, 0x55667787, 0x11223344, 0), IDEM_E_NOT_FOUND);
    is(forget_number(f, 0x55667787, 0x11223344, 0), IDEM_E_NOT_FOUND);
    (void)finish(f, "panel", "key", 0);
    for (int n = 0; n < 2; n++) {
        is(idem_next(&f->table, &entry, 0), IDEM_OK);
        is(entry.sequence, entry.key_len ? 0 : 0x11223344);
        is(entry.epoch, entry.key_len ? 0 : 0x55667788);
    }
    is(forget_number(f, 0x55667788, 0x11223344, 0), IDEM_OK);
    is(find_number(f, 0x55667788, 0x11223344, 0), IDEM_E_NOT_FOUND);
    // An id that is one byte too short for a number is not touched.
    (void)done(f, "panel", 0x55667788, 0x11223344, 0);
    memset(f->id, '.', sizeof f->id);
    f->entry.id_size = sizeof bytes - 1;
    rq = number_of(f, "panel", 0x55667788, 0x11223344);
    is(idem_find(&f->table, &f->entry, &rq, 0), IDEM_OK);
    is(f->id[0], '.');
}

/* ---------------------------------------------------------------------------
   vectors: what others ask of a window of counters, asked of a floor
   ------------------------------------------------------------------------ */

/* The 34 values of WireGuard's counter selftest, with T its width and one, each
   one higher as 0 is no sequence.  Where its window has moved on, here all
   before is over (NONE).  What is behind a window but above the floor is
   executed, and what comes again while it is known is replayed. */
TEST(vectors_of_a_counter_one_by_one)
{
    enum { T = 8128 + 1, E = IDEM_EXECUTE, R = IDEM_REPLAY, OLD = IDEM_TOO_OLD,
           ARG = IDEM_E_ARG, NONE = -100 };
    static const struct { uint32_t sequence; int answer; } steps[] = {
        { 1, E }, { 2, E }, { 2, R }, { 10, E }, { 9, E }, { 8, E }, { 8, R },
        { T + 1, E }, { T, E }, { T, R }, { T - 1, E }, { 3, E }, { 3, R },
        { 0, NONE }, { T + 17, E }, { 4, OLD }, { T + 17, R },
        { 0, NONE }, { 4 * T + 1, E }, { 3 * T + 2, E }, { 11, OLD },
        { 3 * T + 1, E }, { 3 * T, E }, { 3 * T + 3, E }, { 3 * T + 2, R },
        { 1, OLD }, { 0, ARG },                 // past the last one
        { LAST, E }, { 0, ARG }, { LAST, R }, { LAST - 1, E }, { 1, OLD },
        { 2, OLD }, { LAST - 1, R }, { LAST - 2, E }, { 1, OLD },
        { 0, NONE }, { LAST - 2, OLD }, { LAST, OLD }, { 1, OLD },
    };
    uint32_t now = 0;

    open_senders(f, 1, 24, IDEM_REJECT);
    for (size_t i = 0; i < COUNT(steps); i++) {
        int answer = steps[i].answer;
        now += answer == NONE ? RETENTION : 0;
        drop_what_is_over(f, now);
        if (answer != NONE)
            is(number(f, 0, steps[i].sequence, now), answer);
        if (answer == E)
            is(complete(f, &f->claim, "x", now), IDEM_OK);
    }
}
