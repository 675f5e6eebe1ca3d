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

    memset(&f->entry, 0, sizeof f->entry);
    memset(f->id, 0, sizeof f->id);
    f->entry.id = f->id;
    f->entry.id_size = sizeof f->id - 1;
    return checked(f, idem_find(&f->table, &f->entry, &rq, now));
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

TEST(each_sender_has_its_own_numbers)
{
    static const char *const scopes[] = { "", "p", "panel", "panels" };

    open_senders(f, 4, 8, IDEM_REJECT);
    for (uint32_t i = 0; i < COUNT(scopes); i++) {
        (void)done(f, scopes[i], i, 10 * (i + 1), 0);
        (void)done(f, scopes[i], i, 10 * (i + 1) - 1, 0);
    }
    for (uint32_t i = 0; i < COUNT(scopes); i++) {
        is(number_from(f, scopes[i], i, 10 * (i + 1), RETENTION), IDEM_TOO_OLD);
        is(number_from(f, scopes[i], i, 10 * (i + 1) + 1, RETENTION),
           IDEM_EXECUTE);
    }
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
    without = f->table.needed;
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
   quota
   ------------------------------------------------------------------------ */
TEST(a_quota_limits_numbers_as_it_does_keys)
{
    idem_claim claim;

    f->config.quota = 2;
    open_senders(f, 2, 4, IDEM_REJECT);
    (void)done(f, "panel", 0, 10, 0);
    is(ask(f, "key", 0), IDEM_EXECUTE);
    claim = f->claim;
    is(number(f, 0, 11, 0), IDEM_E_FULL);
    is(f->reply.retry_after_ms, 0);
    is(number(f, 0, 10, 0), IDEM_REPLAY);
    is(number_from(f, "other", 0, 11, 0), IDEM_EXECUTE);
    is(release(f, &claim, 0), IDEM_OK);
    is(number(f, 0, 11, 0), IDEM_EXECUTE);
    is(number(f, 0, 12, 0), IDEM_E_FULL);
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
    // Nobody asks for it: what is over of another is seen by idle work.
    is(maintain(f, RETENTION), IDEM_OK);
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

/* ---------------------------------------------------------------------------
   each its own reach
   ------------------------------------------------------------------------ */
TEST(what_one_sender_evicts_makes_no_other_too_old)
{
    uint32_t horizon;

    f->config.quota = 2;
    open_senders(f, 2, 8, IDEM_EVICT_OLDEST);
    is(elapse(f, RETENTION), IDEM_OK);
    is(idem_horizon(&f->table, &horizon, 0), IDEM_OK);
    is(horizon, RETENTION);
    (void)done(f, "other", 0, 1, 0);
    for (uint32_t n = 1; n <= 5; n++)
        (void)done(f, "panel", 0, n, n);
    f->request.age_ms = 8;                  // 3 was evicted, at 3; it is 10
    is(number(f, 0, 50, 10), IDEM_TOO_OLD);
    is(number_from(f, "other", 0, 50, 10), IDEM_EXECUTE);
    f->request.age_ms = 6;
    is(number(f, 0, 50, 10), IDEM_EXECUTE);
    is(idem_horizon(&f->table, &horizon, 10), IDEM_OK);
    is(horizon, 6);                         // 4 went: the shortest of all
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
    for (unsigned seen = 0; seen < 3; ) {
        is(idem_next(&f->table, &entry, 0), IDEM_OK);
        is(entry.sequence, entry.key_len ? 0 : 0x11223344);
        is(entry.epoch, entry.key_len ? 0 : 0x55667788);
        seen |= entry.key_len ? 1 : 2;
        if (seen == 3)
            break;
    }
    is(forget_number(f, 0x55667788, 0x11223344, 0), IDEM_OK);
    is(find_number(f, 0x55667788, 0x11223344, 0), IDEM_E_NOT_FOUND);
    // An id that is one byte too short for a number is not touched.
    (void)done(f, "panel", 0x55667788, 0x11223344, 0);
    memset(f->id, '.', sizeof f->id);
    f->entry.id_size = sizeof bytes - 1;
    {
        idem_request rq = number_of(f, "panel", 0x55667788, 0x11223344);
        is(idem_find(&f->table, &f->entry, &rq, 0), IDEM_OK);
    }
    is(f->id[0], '.');
}

/* ---------------------------------------------------------------------------
   vectors: what others ask of a window of counters, asked of a floor
   ------------------------------------------------------------------------ */
enum { ALL_OVER = -100 };               // a step: so far all is over

typedef struct step {
    uint32_t sequence;
    int answer;                         // or ALL_OVER
} step;

static void walk(fixture *f, const step *steps, size_t count)
{
    uint32_t now = 0;

    for (size_t i = 0; i < count; i++) {
        int answer = IDEM_OK;
        if (steps[i].answer == ALL_OVER) {
            now += RETENTION;
            drop_what_is_over(f, now);
            continue;
        }
        answer = number(f, 0, steps[i].sequence, now);
        if (answer != steps[i].answer)
            fail_msg("step %u: %s", (unsigned)i, idem_text(answer));
        if (answer == IDEM_EXECUTE)
            is(complete(f, &f->claim, "x", now), IDEM_OK);
    }
}

/* The 34 values of WireGuard's counter selftest, with T its width and one, each
   one higher as 0 is no sequence.  Where its window has moved on, here all
   before is over.  What is behind a window but above the floor is executed, and
   what comes again while it is known is replayed. */
TEST(vectors_of_a_counter_one_by_one)
{
    enum { T = 8128 + 1 };
    static const step steps[] = {
        { 1, IDEM_EXECUTE }, { 2, IDEM_EXECUTE }, { 2, IDEM_REPLAY },
        { 10, IDEM_EXECUTE }, { 9, IDEM_EXECUTE }, { 8, IDEM_EXECUTE },
        { 8, IDEM_REPLAY }, { T + 1, IDEM_EXECUTE }, { T, IDEM_EXECUTE },
        { T, IDEM_REPLAY }, { T - 1, IDEM_EXECUTE }, { 3, IDEM_EXECUTE },
        { 3, IDEM_REPLAY },
        { 0, ALL_OVER },
        { T + 17, IDEM_EXECUTE }, { 4, IDEM_TOO_OLD }, { T + 17, IDEM_REPLAY },
        { 0, ALL_OVER },
        { 4 * T + 1, IDEM_EXECUTE }, { 3 * T + 2, IDEM_EXECUTE },
        { 11, IDEM_TOO_OLD }, { 3 * T + 1, IDEM_EXECUTE },
        { 3 * T, IDEM_EXECUTE }, { 3 * T + 3, IDEM_EXECUTE },
        { 3 * T + 2, IDEM_REPLAY }, { 1, IDEM_TOO_OLD },
        { 0, IDEM_E_ARG },                      // past the last one
        { LAST, IDEM_EXECUTE }, { 0, IDEM_E_ARG }, { LAST, IDEM_REPLAY },
        { LAST - 1, IDEM_EXECUTE }, { 1, IDEM_TOO_OLD }, { 2, IDEM_TOO_OLD },
        { LAST - 1, IDEM_REPLAY }, { LAST - 2, IDEM_EXECUTE },
        { 1, IDEM_TOO_OLD },
        { 0, ALL_OVER },
        { LAST - 2, IDEM_TOO_OLD }, { LAST, IDEM_TOO_OLD }, { 1, IDEM_TOO_OLD },
    };

    open_senders(f, 1, 24, IDEM_REJECT);
    walk(f, steps, COUNT(steps));
}

/* Its six loops, over a width W: numbers in the order of a row, each new. */
TEST(vectors_of_a_counter_in_loops)
{
    enum { W = 64 };
    static const struct {
        uint32_t first, last;           // counted up, or down
        uint32_t then, again;           // one more that is new, one that is not
    } loops[] = {
        { 2, W + 1, 1, 1 },
        { 3, W + 2, 2, 2 },
        { W + 2, 1, 0, 1 },
        { W + 3, 2, 0, W + 3 },
        { W + 1, 1, W + 2, W + 2 },
        { W + 1, 2, 1, W + 1 },
    };

    for (size_t i = 0; i < COUNT(loops); i++) {
        uint32_t n = loops[i].first, highest = W + 3;
        open_senders(f, 1, W + 4, IDEM_REJECT);
        for (;; n += loops[i].first < loops[i].last ? 1u : UINT32_MAX) {
            (void)done(f, "panel", 0, n, 0);
            is(number(f, 0, n, 0), IDEM_REPLAY);
            if (n == loops[i].last)
                break;
        }
        if (loops[i].then)
            (void)done(f, "panel", 0, loops[i].then, 0);
        is(number(f, 0, loops[i].again, 0), IDEM_REPLAY);
        (void)done(f, "panel", 0, highest + 1, 0);
        drop_what_is_over(f, RETENTION);
        for (n = 1; n <= highest + 1; n++)
            is(number(f, 0, n, RETENTION), IDEM_TOO_OLD);
        is(number(f, 0, highest + 2, RETENTION), IDEM_EXECUTE);
    }
}

/* RFC 6479 moves its window in blocks; what tells an error there is a jump of
   its width, one less, and one more. */
TEST(vectors_of_a_jump_by_the_width_of_a_window)
{
    static const uint32_t widths[] = { 32, 64, 1024, 8128, 8192, 1u << 16 };

    for (size_t w = 0; w < COUNT(widths); w++)
        for (uint32_t more = 0; more < 3; more++) {
            uint32_t from = 100, to = from + widths[w] - 1 + more;
            open_senders(f, 1, 8, IDEM_REJECT);
            (void)done(f, "panel", 0, from, 0);
            (void)done(f, "panel", 0, to, 1);
            is(number(f, 0, from, 1), IDEM_REPLAY);
            (void)done(f, "panel", 0, from + 1, 1);
            (void)done(f, "panel", 0, from - 1, 1);
            (void)done(f, "panel", 0, to - 1, 1);
            is(number(f, 0, from, RETENTION), IDEM_TOO_OLD);
            is(number(f, 0, from - 2, RETENTION), IDEM_TOO_OLD);
            (void)done(f, "panel", 0, from + 2, RETENTION);
            is(number(f, 0, to, RETENTION + 1), IDEM_TOO_OLD);
            is(number(f, 0, to - 2, RETENTION + 1), IDEM_TOO_OLD);
            (void)done(f, "panel", 0, to + 1, RETENTION + 1);
        }
}

/* ---------------------------------------------------------------------------
   never twice
   ------------------------------------------------------------------------ */

/* Against a memory that forgets nothing, whatever is evicted, over or given
   back: of what a completed number is answered, never that it is new. */
TEST(s4_no_number_that_was_completed_is_ever_executed_again)
{
    enum { SENDERS = 3, EPOCHS = 4, NUMBERS = 80 };
    static uint8_t completed[SENDERS][EPOCHS][NUMBERS];
    static const char *const scopes[SENDERS] = { "a", "b", "c" };
    uint32_t seed = 29, old = 0;

    f->config.quota = 4;
    open_senders(f, SENDERS, 8, IDEM_EVICT_OLDEST);
    memset(completed, 0, sizeof completed);
    for (uint32_t i = 0; i < 40000; i++) {
        uint32_t now = i * 10, who = dice(&seed) % SENDERS;
        uint32_t epoch = i / 10000 - (i >= 10000 && !(dice(&seed) % 8));
        uint32_t sequence = 1 + i % 10000 / 160 + dice(&seed) % 3 -
                            (i % 10000 >= 800) * (dice(&seed) % 4);
        int answer = number_from(f, scopes[who], epoch, sequence, now);
        uint8_t *is = &completed[who][epoch][sequence];
        assert_false(*is && answer == IDEM_EXECUTE);
        old += answer == IDEM_TOO_OLD;
        if (answer != IDEM_EXECUTE && answer != IDEM_RECOVER)
            continue;
        if (dice(&seed) % 4) {
            is(complete(f, &f->claim, "", now), IDEM_OK);
            *is = 1;
        } else if (answer == IDEM_EXECUTE && dice(&seed) % 2)
            is(release(f, &f->claim, now), IDEM_OK);
    }
    assert_true(old > 1000);
    assert_true(f->table.stats.expired + f->table.stats.evicted > 300);
}
