/* SPDX-License-Identifier: 0BSD */
/*
 * Shows what idem_retry returns: for each answer whether it stops, and
 * that waits double up to the cap, are spread over all of that, are never
 * shorter than the device asks for, and end before the deadline; at every
 * extreme of every number, beside the same sums in 64 bits.
 */
#include "unit.h"

#include <limits.h>

enum { SECOND = 1000, MINUTE = 60 * SECOND, HOUR = 60 * MINUTE };

static const idem_patience defaults;

static uint32_t delay;

static int retry(const idem_patience *patience, const idem_sent *sent,
                 int answer)
{
    delay = 0;
    return idem_retry(&delay, patience, sent, answer);
}

/* IDEM_RESEND for those that do not end it. */
static int verdict_on(int answer)
{
    static const int done[] = { IDEM_OK, IDEM_DONE, IDEM_REPLAY };
    static const int look[] = { IDEM_UNCERTAIN, IDEM_TOO_OLD, IDEM_EXHAUSTED };
    static const int refused[] = { IDEM_MISMATCH, IDEM_E_ARG,
                                   IDEM_E_TOO_LARGE };
    int verdict = IDEM_RESEND;

    for (size_t i = 0; i < COUNT(done); i++)
        verdict = answer == done[i] ? IDEM_DONE : verdict;
    for (size_t i = 0; i < COUNT(look); i++)
        verdict = answer == look[i] ? IDEM_LOOK : verdict;
    for (size_t i = 0; i < COUNT(refused); i++)
        verdict = answer == refused[i] ? IDEM_REFUSED : verdict;
    return verdict;
}

/* Also those that are none: a newer device may know more. */
TEST(every_answer_has_its_verdict_whatever_the_time_is)
{
    static const idem_sent sent[] = { { 0 }, { .elapsed_ms = UINT32_MAX } };

    for (int answer = -200; answer <= 302; answer++)
        for (int late = 0; late < 2; late++) {
            int given = answer == 301 ? INT_MAX : answer == 302 ? INT_MIN
                                                               : answer;
            int verdict = verdict_on(given);
            if (verdict == IDEM_RESEND && late)
                verdict = IDEM_GIVE_UP;
            is(retry(&defaults, &sent[late], given), verdict);
            is(delay == UINT32_MAX, verdict != IDEM_RESEND);
        }
}

#define RESULT(name, value, text) name,

/* But IDEM_DONE, which means the same. */
TEST(its_results_are_no_results_of_calls_nor_is_silence)
{
    static const int results[] = { IDEM_RESULTS(RESULT) };

    for (size_t i = 0; i < COUNT(results); i++) {
        assert_true(results[i] < IDEM_RESEND || results[i] > IDEM_GIVE_UP);
        assert_int_not_equal(results[i], IDEM_SILENCE);
    }
    assert_true(IDEM_SILENCE <= INT8_MAX);      // as a byte of a message
}

/* With 0 as random number the wait is the longest there is. */
TEST(waits_double_up_to_the_cap_on_top_of_what_is_asked_for_until_too_late)
{
    static const struct {
        idem_patience patience;     // base, cap, deadline
        idem_sent sent;             // times, elapsed, retry_after, random
        uint32_t delay;             // or 0: give up
    } cases[] = {
        { { 0 }, { .times = 0 }, SECOND },
        { { 0 }, { .times = 1 }, SECOND },
        { { 0 }, { .times = 3 }, 4 * SECOND },
        { { 0 }, { .times = 6 }, 32 * SECOND },
        { { 0 }, { .times = 7 }, MINUTE },
        { { 0 }, { .times = UINT32_MAX }, MINUTE },
        { { 7, 100, 0 }, { .times = 4 }, 56 },
        { { 7, 100, 0 }, { .times = 5 }, 100 },
        { { 100, 7, 0 }, { .times = 1 }, 7 },
        { { 0 }, { 3, 0, 30 * SECOND, 0 }, 34 * SECOND },
        { { 0 }, { 3, 0, 30 * SECOND, UINT32_MAX }, 30 * SECOND + 1 },
        // It may be finished any moment; as answered, and that is too late
        { { 0 }, { 3, 0, IDEM_LEASE_NONE, UINT32_MAX }, 1 },
        { { 0 }, { 3, 0, IDEM_LEASE_NONE - 1, UINT32_MAX }, 0 },
        { { 10, 0, 1000 }, { .times = 1, .elapsed_ms = 990 }, 10 },
        { { 10, 0, 1000 }, { .times = 1, .elapsed_ms = 991 }, 9 },
        { { 10, 0, 1000 }, { .times = 1, .elapsed_ms = 999 }, 1 },
        { { 10, 0, 1000 }, { .times = 1, .elapsed_ms = 1000 }, 0 },
        { { 10, 0, 1000 }, { 1, 900, 99, 0 }, 100 },
        { { 10, 0, 1000 }, { 1, 900, 100, 0 }, 0 },
        { { 0 }, { .times = 1, .elapsed_ms = 12 * HOUR - SECOND }, SECOND },
        { { 0 }, { .times = 1, .elapsed_ms = 12 * HOUR }, 0 },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        is(retry(&cases[i].patience, &cases[i].sent,
                 !cases[i].sent.retry_after_ms ? IDEM_SILENCE :
                 i % 2 ? IDEM_BUSY : IDEM_E_FULL),
           cases[i].delay ? IDEM_RESEND : IDEM_GIVE_UP);
        is(delay, cases[i].delay ? cases[i].delay : UINT32_MAX);
    }
}

/* The same in 64 bits, which nothing here overflows; 0 for giving up. */
static uint64_t expected(const idem_patience *p, const idem_sent *s)
{
    uint64_t cap = p->cap_ms ? p->cap_ms : MINUTE;
    uint64_t wait = p->base_ms ? p->base_ms : SECOND;
    uint64_t deadline = p->deadline_ms ? p->deadline_ms : 12 * HOUR;
    uint64_t after = s->retry_after_ms == IDEM_LEASE_NONE ? 0
                                                         : s->retry_after_ms;

    for (uint32_t i = 1; i < s->times && wait < cap; i++)
        wait *= 2;
    if (wait > cap)
        wait = cap;
    wait -= wait * s->random / (UINT64_C(1) << 32);
    if (s->elapsed_ms + after >= deadline)
        return 0;
    if (s->elapsed_ms + after + wait > deadline)
        wait = deadline - s->elapsed_ms - after;
    return after + wait;
}

TEST(no_sum_overflows_at_any_extreme)
{
    static const uint32_t extremes[10] = {
        0, 1, 2, 3, 1000, 0x7FFFFFFF, 0x80000000, 0x80000001, 0xFFFFFFFE,
        0xFFFFFFFF
    };

    // Each decimal digit of a number chooses which of them an argument is.
    for (unsigned long number = 0; number < 10000000; number += 7) {
        unsigned long i = number;
        uint32_t pick[7];
        uint64_t is;
        for (int n = 0; n < 7; n++, i /= 10)
            pick[n] = extremes[i % 10];
        const idem_patience p = { pick[0], pick[1], pick[2] };
        const idem_sent s = { pick[3], pick[4], pick[5], pick[6] };
        is = expected(&p, &s);
        is(retry(&p, &s, IDEM_SILENCE), is ? IDEM_RESEND : IDEM_GIVE_UP);
        is(delay, is ? is : UINT32_MAX);
    }
}

TEST(null_is_the_callers_mistake)
{
    const idem_sent sent = { 0 };
    unsigned misuse = unit_misuse;

    is(idem_retry(NULL, &defaults, &sent, 0), IDEM_E_ARG);
    is(idem_retry(&delay, NULL, &sent, 0), IDEM_E_ARG);
    is(idem_retry(&delay, &defaults, NULL, 0), IDEM_E_ARG);
    is(unit_misuse, misuse + 3);
}
