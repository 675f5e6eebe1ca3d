/* SPDX-License-Identifier: 0BSD */
/*
 * Shows what idem_retry tells a sender: for each answer whether it stops, and
 * that waits double up to the cap, are spread over all of that, are never
 * shorter than the device asks for, and end before the deadline; at every
 * extreme of every number, beside the same sums in 64 bits.
 */
#include "unit.h"

#include <limits.h>

enum { SECOND = 1000, MINUTE = 60 * SECOND, HOUR = 60 * MINUTE };

static const idem_patience usual;

static uint32_t delay;

static int retry(const idem_patience *patience, const idem_sent *sent,
                 int answer)
{
    delay = 0;
    return idem_retry(&delay, patience, sent, answer);
}

/* The wait after silence, the longest there is. */
static uint32_t longest(const idem_patience *patience, uint32_t times)
{
    idem_sent sent = { 0 };

    sent.times = times;
    is(retry(patience, &sent, IDEM_SILENCE), IDEM_AGAIN);
    return delay;
}

/* ---------------------------------------------------------------------------
   answers
   ------------------------------------------------------------------------ */

static int is_done(int answer)
{
    return answer == IDEM_OK || answer == IDEM_EXECUTE ||
           answer == IDEM_RECOVER || answer == IDEM_REPLAY;
}

static int is_refused(int answer)
{
    return answer == IDEM_MISMATCH || answer == IDEM_TOO_OLD ||
           answer == IDEM_EXHAUSTED || answer == IDEM_E_ARG ||
           answer == IDEM_E_TOO_LARGE;
}

static void says(int answer, const idem_sent *sent)
{
    int result = retry(&usual, sent, answer);

    if (is_done(answer))
        is(result, IDEM_DONE);
    else if (is_refused(answer))
        is(result, IDEM_REFUSED);
    else
        is(result, sent->elapsed_ms ? IDEM_GIVE_UP : IDEM_AGAIN);
    is(delay == UINT32_MAX, result != IDEM_AGAIN);
}

/* Also those that are none: a newer device may know more. */
TEST(every_answer_has_its_verdict_whatever_the_time_is)
{
    idem_sent now = { 0 }, late = { 0 };
    int answer;

    late.elapsed_ms = UINT32_MAX;
    for (answer = -200; answer <= 300; answer++) {
        says(answer, &now);
        says(answer, &late);
    }
    says(INT_MAX, &now);
    says(INT_MIN, &now);
}

#define RESULT(name, value, text) name,

TEST(what_it_says_is_no_result_and_silence_is_none)
{
    static const int results[] = { IDEM_RESULTS(RESULT) };
    size_t i;

    for (i = 0; i < COUNT(results); i++) {
        assert_true(results[i] < IDEM_AGAIN || results[i] > IDEM_GIVE_UP);
        assert_int_not_equal(results[i], IDEM_SILENCE);
    }
    assert_true(IDEM_SILENCE <= INT8_MAX);      // as a byte of a message
}

/* ---------------------------------------------------------------------------
   waits
   ------------------------------------------------------------------------ */

TEST(waits_double_up_to_the_cap)
{
    static const uint32_t waits[] = { 1, 1, 2, 4, 8, 16, 32, 60, 60, 60 };
    idem_patience odd = { .base_ms = 7, .cap_ms = 100 };
    idem_patience low = { .base_ms = 100, .cap_ms = 7 };
    uint32_t times;

    for (times = 0; times < COUNT(waits); times++)
        is(longest(&usual, times), waits[times] * SECOND);
    is(longest(&usual, UINT32_MAX), MINUTE);
    is(longest(&odd, 4), 56);
    is(longest(&odd, 5), 100);
    is(longest(&low, 1), 7);
    is(longest(&low, 9), 7);
}

/* Of equal shares of the random numbers each gives an equal share of waits:
   from 1 ms up, every one of them. */
TEST(waits_are_spread_over_all_there_is)
{
    const idem_patience patience = { .base_ms = 256, .cap_ms = 256 };
    idem_sent sent = { 0 };
    uint32_t share;

    for (share = 0; share < 256; share++) {
        sent.random = share << 24;
        is(retry(&patience, &sent, IDEM_SILENCE), IDEM_AGAIN);
        is(delay, 256 - share);
        sent.random |= 0xFFFFFF;
        is(retry(&patience, &sent, IDEM_SILENCE), IDEM_AGAIN);
        is(delay, 256 - share);
    }
}

TEST(waits_come_on_top_of_what_the_device_asks_for)
{
    idem_sent sent = { .times = 3, .retry_after_ms = 30 * SECOND };

    is(retry(&usual, &sent, IDEM_BUSY), IDEM_AGAIN);
    is(delay, 34 * SECOND);
    sent.random = UINT32_MAX;
    is(retry(&usual, &sent, IDEM_E_FULL), IDEM_AGAIN);
    is(delay, 30 * SECOND + 1);
    sent.retry_after_ms = IDEM_LEASE_NONE;      // it may be finished any moment
    is(retry(&usual, &sent, IDEM_BUSY), IDEM_AGAIN);
    is(delay, 1);
    sent.retry_after_ms = IDEM_LEASE_NONE - 1;  // as told, and that is too late
    is(retry(&usual, &sent, IDEM_BUSY), IDEM_GIVE_UP);
}

TEST(nothing_is_sent_after_the_deadline)
{
    const idem_patience patience = { .base_ms = 10, .deadline_ms = 1000 };
    idem_sent sent = { .times = 1 };

    sent.elapsed_ms = 990;
    is(retry(&patience, &sent, IDEM_SILENCE), IDEM_AGAIN);
    is(delay, 10);
    for (sent.elapsed_ms = 991; sent.elapsed_ms < 1010; sent.elapsed_ms++)
        is(retry(&patience, &sent, IDEM_SILENCE), IDEM_GIVE_UP);
    sent.elapsed_ms = 12 * HOUR - SECOND;
    is(retry(&usual, &sent, IDEM_SILENCE), IDEM_AGAIN);
    sent.elapsed_ms++;
    is(retry(&usual, &sent, IDEM_SILENCE), IDEM_GIVE_UP);
}

/* Someone who follows it with nobody there: sends so often, and stops. */
TEST(a_sender_without_an_answer_ends)
{
    idem_sent sent = { 0 };

    for (sent.times = 1; retry(&usual, &sent, IDEM_SILENCE) == IDEM_AGAIN;
         sent.times++) {
        assert_true(sent.times < 1000);
        sent.elapsed_ms += delay;
    }
    assert_true(sent.elapsed_ms <= 12 * HOUR);
    assert_true(sent.elapsed_ms + MINUTE > 12 * HOUR);
}

/* ---------------------------------------------------------------------------
   extremes
   ------------------------------------------------------------------------ */

/* The same in 64 bits, which nothing here overflows; 0 for giving up. */
static uint64_t expected(const idem_patience *p, const idem_sent *s)
{
    uint64_t cap = p->cap_ms ? p->cap_ms : MINUTE;
    uint64_t wait = p->base_ms ? p->base_ms : SECOND;
    uint64_t deadline = p->deadline_ms ? p->deadline_ms : 12 * HOUR;
    uint64_t told = s->retry_after_ms == IDEM_LEASE_NONE ? 0
                                                         : s->retry_after_ms;
    uint32_t i;

    for (i = 1; i < s->times && wait < cap; i++)
        wait *= 2;
    if (wait > cap)
        wait = cap;
    wait -= wait * s->random / (UINT64_C(1) << 32);
    return s->elapsed_ms + told + wait <= deadline ? told + wait : 0;
}

static const uint32_t extremes[] = {
    0, 1, 2, 3, 1000, 0x7FFFFFFF, 0x80000000, 0x80000001, 0xFFFFFFFE, 0xFFFFFFFF
};

/* The number whose digits, in the base of how many extremes there are, say
   which of them each argument is. */
static uint32_t pick(unsigned long *number)
{
    uint32_t extreme = extremes[*number % COUNT(extremes)];

    *number /= COUNT(extremes);
    return extreme;
}

TEST(no_sum_overflows_at_any_extreme)
{
    unsigned long number, i;

    for (number = 0; number < 10000000; number += 7) {
        idem_patience p;
        idem_sent s;
        uint64_t is;

        i = number;
        p.base_ms = pick(&i);
        p.cap_ms = pick(&i);
        p.deadline_ms = pick(&i);
        s.times = pick(&i);
        s.elapsed_ms = pick(&i);
        s.retry_after_ms = pick(&i);
        s.random = pick(&i);
        is = expected(&p, &s);
        is(retry(&p, &s, IDEM_SILENCE), is ? IDEM_AGAIN : IDEM_GIVE_UP);
        is(delay, is ? is : UINT32_MAX);
    }
    is(COUNT(extremes), 10);
}

TEST(null_is_the_callers_mistake)
{
    const idem_sent sent = { 0 };
    unsigned misuse = unit_misuse;

    is(idem_retry(NULL, &usual, &sent, 0), IDEM_E_ARG);
    is(idem_retry(&delay, NULL, &sent, 0), IDEM_E_ARG);
    is(idem_retry(&delay, &usual, NULL, 0), IDEM_E_ARG);
    is(unit_misuse, misuse + 3);
}
