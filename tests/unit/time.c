/* SPDX-License-Identifier: 0BSD */
/*
 * Shows S6: time never shortens a lease or a retention, whatever the tick does:
 * wrap, stop, go back, start over.  Only a tick that really runs ahead can.
 *
 * The truth is a clock of 64 bits that follows the rule of the manual (>>time):
 * add what the tick has advanced, or nothing if that is half its range or more;
 * a step back of more than 65,536 ms is a new start, and a leap back to where
 * the tick was is not counted.  It has no window that anything could leave, so
 * years of it also show that nothing comes back that was dropped.
 */
#include "fixture.h"

#define DAY  UINT32_C(86400000)
#define HOUR UINT32_C(3600000)
#define HALF UINT32_C(0x80000000)       // of the tick's range

#define JITTER UINT32_C(65536)          // a step back that is waited out

typedef struct truth {
    uint32_t tick;              // the last one followed
    uint32_t top;               // up to where time was counted
    uint64_t ms;
} truth;

static void follow(truth *clock, uint32_t tick)
{
    uint32_t passed = tick - clock->tick;
    uint32_t below = clock->top - clock->tick;

    if (passed >= HALF) {
        if (clock->tick - tick > JITTER)
            clock->tick = tick;
        return;
    }
    clock->ms += passed < below ? passed : passed - below;
    if (passed >= below)
        clock->top = tick;
    clock->tick = tick;
}

/* ---------------------------------------------------------------------------
   one thing wrong with the tick
   ------------------------------------------------------------------------ */

/* Opens a table at `now`, with a claim on "lease" and a finished "kept". */
static void start(fixture *f, uint32_t now)
{
    fixture_open(f, now);
    assert_int_equal(ask(f, "lease", now), IDEM_EXECUTE);
    (void)finish(f, "panel", "kept", now);
}

/* Both end exactly when they would have, had the tick been at `now` when they
   had `spent` ms behind them. */
static void assert_ends(fixture *f, uint32_t now, uint32_t spent)
{
    uint32_t origin = now - spent;

    assert_int_equal(ask(f, "lease", now), IDEM_BUSY);
    assert_int_equal(f->reply.retry_after_ms, LEASE - spent);
    assert_int_equal(ask(f, "lease", origin + LEASE - 1), IDEM_BUSY);
    assert_int_equal(ask(f, "lease", origin + LEASE), IDEM_RECOVER);
    assert_int_equal(ask(f, "kept", origin + RETENTION - 1), IDEM_REPLAY);
    assert_int_equal(f->reply.age_ms, RETENTION - 1);
    assert_int_equal(ask(f, "kept", origin + RETENTION), IDEM_EXECUTE);
}

static void s6_the_tick_may_wrap_at_any_point_of_a_lease_and_a_retention(
    void **state)
{
    fixture *f = (fixture *)*state;

    for (uint32_t k = 0; k < RETENTION + 3; k++) {
        start(f, UINT32_MAX - k);
        assert_ends(f, UINT32_MAX - k, 0);
        assert_int_equal(f->table.stats.backwards, 0);
    }
}

/* The same after a step back from `high`: waited out, or followed. */
static void assert_ends_after_step_back(fixture *f, uint32_t high,
                                        uint32_t back, uint32_t spent)
{
    assert_int_equal(ask(f, "lease", high - back), IDEM_BUSY);
    assert_int_equal(f->reply.retry_after_ms, LEASE - spent);
    assert_int_equal(f->table.stats.backwards, 1);
    assert_ends(f, back <= JITTER ? high : high - back, spent);
}

static void s6_a_tick_that_goes_back_only_lengthens(void **state)
{
    static const uint32_t back[] = {
        1, 2, 39, 40, 41, LEASE, RETENTION, JITTER - 1, JITTER, JITTER + 1,
        DAY, HALF - 1, HALF,
    };
    static const uint32_t starts[] = { 0, 1000, HALF, UINT32_MAX - 20 };
    fixture *f = (fixture *)*state;

    for (size_t i = 0; i < COUNT(back); i++)
        for (size_t j = 0; j < COUNT(starts); j++) {
            uint32_t now = starts[j] + 40;
            start(f, starts[j]);
            assert_int_equal(ask(f, "lease", now), IDEM_BUSY);
            assert_ends_after_step_back(f, now, back[i], 40);
        }
}

static void s6_a_tick_that_starts_over_only_lengthens(void **state)
{
    static const uint32_t starts[] = {
        1, LEASE, RETENTION, JITTER, JITTER + 1, DAY, HALF
    };
    fixture *f = (fixture *)*state;

    for (size_t i = 0; i < COUNT(starts); i++) {
        start(f, starts[i]);
        assert_ends_after_step_back(f, starts[i], starts[i], 0);
    }
}

static void s6_a_tick_that_goes_back_for_one_call_is_not_counted_twice(
    void **state)
{
    static const uint32_t back[] = {
        1, LEASE, RETENTION, JITTER, JITTER + 1, 2 * JITTER, DAY, HALF / 2,
    };
    fixture *f = (fixture *)*state;

    for (size_t i = 0; i < COUNT(back); i++) {
        start(f, 1000);
        assert_int_equal(ask(f, "lease", 1040), IDEM_BUSY);
        assert_int_equal(ask(f, "lease", 1040 - back[i]), IDEM_BUSY);
        assert_ends(f, 1041, 41);
        // Twice back, and only part of the way is made up at first.
        start(f, 1000);
        assert_int_equal(ask(f, "lease", 1000 - back[i] / 2), IDEM_BUSY);
        assert_int_equal(ask(f, "lease", 1000 - back[i]), IDEM_BUSY);
        assert_ends(f, 1002, 2);
    }
}

/* Threads that read the tick before they take the lock overtake one another:
   if each step back were followed, each way up would count again. */
static void s6_ticks_that_overtake_one_another_do_not_add_up(void **state)
{
    fixture *f = (fixture *)*state;

    start(f, 1000);
    for (int i = 0; i < 50000; i++) {
        assert_int_equal(maintain(f, 1001), IDEM_OK);
        assert_int_equal(maintain(f, 1000), IDEM_OK);
    }
    assert_ends(f, 1001, 1);
}

static void s6_a_tick_that_stands_still_ends_nothing(void **state)
{
    fixture *f = (fixture *)*state;

    start(f, 77);
    for (int i = 0; i < 3000; i++) {
        assert_int_equal(ask(f, "lease", 77), IDEM_BUSY);
        assert_int_equal(ask(f, "kept", 77), IDEM_REPLAY);
        assert_int_equal(maintain(f, 77), IDEM_OK);
    }
    assert_ends(f, 77, 0);
}

static void s6_half_the_ticks_range_counts_as_backwards_and_less_as_ahead(
    void **state)
{
    fixture *f = (fixture *)*state;

    start(f, 5);
    assert_ends(f, 5 + HALF, 0);
    start(f, 5);
    assert_int_equal(ask(f, "kept", 5 + HALF - 1), IDEM_EXECUTE);
    assert_int_equal(ask(f, "lease", 5 + HALF - 1), IDEM_EXECUTE);
    assert_int_equal(f->table.stats.backwards, 0);
}

/* ---------------------------------------------------------------------------
   two things wrong, anywhere in a short piece of work
   ------------------------------------------------------------------------ */
enum { STEPS = 10, NORMAL = 10 };

static const struct anomaly {
    uint32_t keep;              // the bits of the tick that stay
    uint32_t add;
} anomalies[] = {
    { UINT32_MAX, 0 - (uint32_t)NORMAL },       // it stands still
    { UINT32_MAX, 0 - (uint32_t)NORMAL - 1 },
    { UINT32_MAX, 0 - (uint32_t)1000 },
    { UINT32_MAX, 0 - DAY },
    { UINT32_MAX, HALF },
    { 0, 0 },
    { 0, UINT32_MAX },
    { UINT32_MAX, 60 },                         // ahead: this may shorten
    { UINT32_MAX, HALF - 1 - NORMAL },
};

struct work {
    truth clock;
    uint32_t now;
    idem_claim claim;           // of the call before
    uint64_t kept;              // when "kept" was completed,
    uint64_t leased;            // "lease" granted
};

/* One step of the work; "endless" is held from step 3 on. */
static void do_step(fixture *f, struct work *w, int step)
{
    uint32_t now = w->now;

    f->request.lease_ms = step == 3 ? IDEM_LEASE_NONE : LEASE;
    switch (step) {
    case 0:
        assert_int_equal(ask(f, "kept", now), IDEM_EXECUTE);
        break;
    case 1:
        w->kept = w->clock.ms;
        // Where the tick ran a day ahead the claim was dropped: start anew.
        if (complete(f, &w->claim, "poured", now) == IDEM_E_FENCED)
            (void)finish(f, "panel", "kept", now);
        break;
    case 2:
        w->leased = w->clock.ms;
        assert_int_equal(ask(f, "lease", now), IDEM_EXECUTE);
        break;
    case 3:
        assert_int_equal(ask(f, "endless", now), IDEM_EXECUTE);
        break;
    case 4:
        assert_int_equal(renew(f, &w->claim, LEASE, now), IDEM_OK);
        break;
    case 5:
        assert_int_equal(ask(f, "other", now), IDEM_EXECUTE);
        break;
    case 6:
        assert_int_equal(maintain(f, now), IDEM_OK);
        break;
    default:
        (void)find(f, "panel", "kept", now);
    }
    w->claim = f->claim;
}

/* Does the work with anomaly a before step i and b before step j. */
static void work_with(fixture *f, uint32_t tick, int i, int j,
                      const struct anomaly *a, const struct anomaly *b)
{
    struct work w = { .clock = { .tick = tick, .top = tick } };
    uint64_t age;

    fixture_open(f, tick);
    for (int step = 0; step < STEPS; step++) {
        tick += NORMAL;
        if (step == i)
            tick = (tick & a->keep) + a->add;
        if (step == j)
            tick = (tick & b->keep) + b->add;
        follow(&w.clock, tick);
        w.now = tick;
        do_step(f, &w, step);
    }
    age = w.clock.ms - w.kept;
    assert_int_equal(ask(f, "kept", tick),
                     age < RETENTION ? IDEM_REPLAY : IDEM_EXECUTE);
    age = w.clock.ms - w.leased;
    assert_int_equal(ask(f, "lease", tick),
                     age < LEASE               ? IDEM_BUSY
                     : age < LEASE + RETENTION ? IDEM_RECOVER
                                               : IDEM_EXECUTE);
    assert_int_equal(ask(f, "endless", tick), IDEM_BUSY);
}

static void s6_no_two_anomalies_shorten_anything(void **state)
{
    static const uint32_t starts[] = { 0x20000000, 0xFFFFFFF0 };
    fixture *f = (fixture *)*state;

    for (size_t s = 0; s < COUNT(starts); s++)
        for (int i = 0; i < STEPS; i++)
            for (int j = i; j < STEPS; j++)
                for (size_t a = 0; a < COUNT(anomalies); a++)
                    for (size_t b = 0; b < COUNT(anomalies); b++)
                        work_with(f, starts[s], i, j, &anomalies[a],
                                  &anomalies[b]);
}

/* ---------------------------------------------------------------------------
   long times
   ------------------------------------------------------------------------ */
static const uint32_t strides[] = {
    HOUR, 7 * HOUR + 1, DAY, UINT32_C(0x10000000), UINT32_C(0x20000000),
    24 * DAY, HALF - 1,
};

static void s6_a_month_of_retention_ends_in_time_whatever_the_steps(
    void **state)
{
    fixture *f = (fixture *)*state;

    f->request.retention_ms = IDEM_RETENTION_MAX;
    for (size_t i = 0; i < COUNT(strides); i++) {
        truth clock = { 0 };
        fixture_open(f, 0);
        (void)finish(f, "panel", "k", 0);
        while (clock.ms < IDEM_RETENTION_MAX) {
            assert_int_equal(find(f, "panel", "k", clock.tick), IDEM_OK);
            follow(&clock, clock.tick + strides[i]);
            assert_int_equal(maintain(f, clock.tick), IDEM_OK);
        }
        assert_int_equal(f->table.used, 0);
        assert_int_equal(ask(f, "k", clock.tick), IDEM_EXECUTE);
    }
}

static void s6_deadlines_are_exact_wherever_the_logical_clock_stands(
    void **state)
{
    fixture *f = (fixture *)*state;

    // 2^26 ms apart, so the sweep intervals and the wrap of 32 bits of logical
    // time are met from all sides.
    for (uint32_t phase = 0; phase < 64; phase++)
        for (uint32_t k = 0; k < 2; k++) {
            fixture_open(f, 0);
            assert_int_equal(elapse(f, (phase << 26) - k * RETENTION / 2),
                             IDEM_OK);
            start(f, 0);
            assert_ends(f, 0, 0);
        }
}

static void s6_time_off_is_added_at_once_also_49_days(void **state)
{
    fixture *f = (fixture *)*state;

    start(f, 0);
    assert_int_equal(elapse(f, 40), IDEM_OK);
    assert_ends(f, 0, 40);

    start(f, 0);
    f->request.lease_ms = IDEM_LEASE_NONE;
    assert_int_equal(ask(f, "endless", 0), IDEM_EXECUTE);
    f->request.lease_ms = IDEM_LEASE_MAX;
    f->request.retention_ms = IDEM_RETENTION_MAX;
    assert_int_equal(ask(f, "longest", 0), IDEM_EXECUTE);
    assert_int_equal(elapse(f, UINT32_MAX), IDEM_OK);
    assert_int_equal(ask(f, "lease", 0), IDEM_EXECUTE);
    assert_int_equal(ask(f, "kept", 0), IDEM_EXECUTE);
    assert_int_equal(ask(f, "longest", 0), IDEM_EXECUTE);
    assert_int_equal(ask(f, "endless", 0), IDEM_BUSY);
}

/* What becomes of a key that nobody looks at, `count` times `stride` later. */
static void assert_fate(fixture *f, uint32_t lease, uint32_t retention,
                        uint32_t stride, int count)
{
    uint64_t ms = 0;
    int found;

    f->request.lease_ms = lease ? lease : 1;
    f->request.retention_ms = retention;
    fixture_open(f, 0);
    if (lease)
        assert_int_equal(ask(f, "k", 0), IDEM_EXECUTE);
    else
        (void)finish(f, "panel", "k", 0);
    for (; count > 0; count--, ms += stride)
        assert_int_equal(elapse(f, stride), IDEM_OK);
    found = find(f, "panel", "k", 0);
    assert_int_equal(found, ms < (uint64_t)lease + retention
                                ? IDEM_OK
                                : IDEM_E_NOT_FOUND);
    if (ms < lease)
        assert_int_equal(f->entry.left_ms, lease - ms);
    else
        assert_true(!lease || f->entry.left_ms == 0);
}

static void s4_s6_what_nobody_looks_at_for_years_is_not_resurrected(
    void **state)
{
    static const struct { uint32_t lease, retention; } keys[] = {
        { 0, 1 },                       // finished
        { 0, DAY },
        { 0, IDEM_RETENTION_MAX },
        { 1, 1 },                       // abandoned
        { 1, IDEM_RETENTION_MAX },
        { IDEM_LEASE_MAX, 1 },
        { IDEM_LEASE_MAX, IDEM_RETENTION_MAX },
    };
    fixture *f = (fixture *)*state;

    for (size_t i = 0; i < COUNT(keys); i++)
        for (size_t j = 0; j < COUNT(strides); j++)
            for (int count = 0; count < 40; count++)
                assert_fate(f, keys[i].lease, keys[i].retention, strides[j],
                            count);
}

static void s6_ten_years_of_busy_work_keep_every_deadline(void **state)
{
    fixture *f = (fixture *)*state;
    truth clock = { 0 };
    uint32_t seed = 3;

    fixture_open(f, 0);
    while (clock.ms < UINT64_C(3650) * DAY) {
        uint32_t retention = 1 + dice(&seed) % IDEM_RETENTION_MAX;
        uint32_t stride = dice(&seed) % (20 * DAY);
        uint64_t end;
        idem_claim claim;
        f->request.retention_ms = retention;
        f->request.lease_ms = 1 + dice(&seed) % IDEM_LEASE_MAX;
        assert_int_equal(ask(f, "k", clock.tick), IDEM_EXECUTE);
        claim = f->claim;
        assert_int_equal(complete(f, &claim, "", clock.tick), IDEM_OK);
        end = clock.ms + retention;
        for (; clock.ms < end; follow(&clock, clock.tick + stride + 1))
            assert_int_equal(ask(f, "k", clock.tick), IDEM_REPLAY);
    }
}

static void a_retention_of_any_length_ends_to_the_millisecond(void **state)
{
    fixture *f = (fixture *)*state;
    uint32_t seed = 5;

    for (int i = 0; i < 5000; i++) {
        uint32_t ms = 1 + (dice(&seed) >> i % 32) % IDEM_RETENTION_MAX;
        if (i == 0)
            ms = IDEM_RETENTION_MAX;
        f->request.retention_ms = ms;
        fixture_open(f, 0);
        (void)finish(f, "panel", "k", 0);
        assert_int_equal(find(f, "panel", "k", 0), IDEM_OK);
        assert_int_equal(f->entry.left_ms, ms);
        assert_int_equal(elapse(f, ms - 1), IDEM_OK);
        assert_int_equal(ask(f, "k", 0), IDEM_REPLAY);
        assert_int_equal(ask(f, "k", 1), IDEM_EXECUTE);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(s6_the_tick_may_wrap_at_any_point_of_a_lease_and_a_retention),
        TEST(s6_a_tick_that_goes_back_only_lengthens),
        TEST(s6_a_tick_that_starts_over_only_lengthens),
        TEST(s6_a_tick_that_goes_back_for_one_call_is_not_counted_twice),
        TEST(s6_ticks_that_overtake_one_another_do_not_add_up),
        TEST(s6_a_tick_that_stands_still_ends_nothing),
        TEST(s6_half_the_ticks_range_counts_as_backwards_and_less_as_ahead),
        TEST(s6_no_two_anomalies_shorten_anything),
        TEST(s6_a_month_of_retention_ends_in_time_whatever_the_steps),
        TEST(s6_deadlines_are_exact_wherever_the_logical_clock_stands),
        TEST(s6_time_off_is_added_at_once_also_49_days),
        TEST(s4_s6_what_nobody_looks_at_for_years_is_not_resurrected),
        TEST(s6_ten_years_of_busy_work_keep_every_deadline),
        TEST(a_retention_of_any_length_ends_to_the_millisecond),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
