/* SPDX-License-Identifier: 0BSD */
/* The clock of a sender's waits, and of a pump.  It goes on while the process is
   suspended and while the machine sleeps: a deadline and a pump do not wait for
   that, and an age that left it out would be too small.  Not a table's tick,
   which has 32 bits. */
#ifndef CLOCK_H
#define CLOCK_H

#include <stdint.h>
#include <time.h>

/* Milliseconds, from anywhere on */
static inline long long clock_ms(void)
{
    struct timespec t;

#ifdef CLOCK_BOOTTIME
    clock_gettime(CLOCK_BOOTTIME, &t);
#else
    clock_gettime(CLOCK_MONOTONIC, &t);
#endif
    return (long long)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* A time that has passed, as idem_sent takes it: no more than 32 bits hold. */
static inline uint32_t clock_elapsed(long long ms)
{
    return ms < UINT32_MAX ? (uint32_t)ms : UINT32_MAX;
}

enum { CLOCK_TURN_MS = 50 };

/* Pauses, for a turn at most: the machine may sleep meanwhile, and what is to
   end then must not wait for the rest. */
static inline void clock_turn(long long ms)
{
    long turn = CLOCK_TURN_MS;
    struct timespec t = { 0, (ms < turn ? (long)ms : turn) * 1000000 };

    nanosleep(&t, NULL);
}

/* Waits for a time.  A signal does not end it early, and a machine that
   sleeps does not lengthen it. */
static inline void clock_wait(long long ms)
{
    long long end = clock_ms() + ms, left;

    while ((left = end - clock_ms()) > 0)
        clock_turn(left);
}

/* An epoch for a sender's numbers: this second, once it is over.  So whoever
   begins another one after that has another, if the clock is not set back. */
static inline uint32_t clock_epoch(void)
{
    time_t now = time(NULL);

    while (time(NULL) == now)
        clock_turn(CLOCK_TURN_MS);
    return (uint32_t)now;
}

#endif
