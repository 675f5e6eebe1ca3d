/* SPDX-License-Identifier: 0BSD */
/*
 * Shows S6 with a journal: two things go wrong with time, of every kind, before
 * every two calls of short workloads, restarts among them.  Each call is
 * compared with the truth of journal.h, whose clock follows the rule of the
 * manual (>>time) in 64 bits.  With IDEM_CALLS in the environment, which makes
 * test_model.c short, every seventh pair will do.
 */
#define IDEM_IMPLEMENTATION
#include "idem.h"

#include "fixture.h"
#include "flash.h"
#include "journal.h"

#define HALF   UINT32_C(0x80000000)     // of the tick's range
#define JITTER UINT32_C(65536)          // a step back that is waited out

enum { NORMAL = 10 };                   // ms between two calls

static const struct anomaly {
    const char *name;
    char        what;                   // T tick, W set the tick, E, P
    uint32_t    ms;
} anomalies[] = {
    { "stops",            'T', 0 - (uint32_t)NORMAL },
    { "back by 1",        'T', 0 - (uint32_t)NORMAL - 1 },
    { "back, waited out", 'T', 0 - JITTER },
    { "back, followed",   'T', 0 - JITTER - 2 * NORMAL },
    { "back by days",     'T', 0 - UINT32_C(500000000) },
    { "half the range",   'T', HALF },
    { "almost half",      'T', HALF - 2 * NORMAL },
    { "jumps ahead",      'T', 95 },
    { "jumps far ahead",  'T', 1200 },
    { "starts over",      'W', 0 },
    { "is about to wrap", 'W', UINT32_MAX - NORMAL },
    { "time was off",     'E', 300 },
    { "restart",          'P', 0 },
};

static const char *const workloads[] = {
    "B0 C0 B0 B1 N1 B1 C1 B0 B1",
    "B0 B0 R0 B0 B1 C0 B0 X0 B0",
    "B0 B1 C1 M B0 C0 D1 B1 B0",
};

enum { CALLS = 9 };

static const geometry media[] = {
    { "nor",      FLASH_NOR,     4, 512, 10, 0xFF, 0, 0, 0 },
    { "in place", FLASH_INPLACE, 1, 512, 10, 0x00, 1, 0, 0 },
};

// The tick as the manual has it.
typedef struct follower {
    uint32_t tick;              // the last one followed
    uint32_t top;               // up to where time was counted
} follower;

/* What a call with this tick adds to the clock. */
static uint32_t follow(follower *f, uint32_t tick)
{
    uint32_t passed = tick - f->tick;
    uint32_t below = f->top - f->tick;

    if (passed >= HALF) {
        if (f->tick - tick > JITTER)
            f->tick = tick;
        return 0;
    }
    f->tick = tick;
    if (passed < below)
        return passed;
    f->top = tick;
    return passed - below;
}

/* Something is wrong with time, before the next call. */
static void disturb(device *d, follower *f, const struct anomaly *a)
{
    switch (a->what) {
    case 'T': d->now += a->ms; break;
    case 'W': d->now = a->ms; break;
    case 'E': device_elapse(d, a->ms); break;
    default:
        device_restart(d);
        f->tick = f->top = d->now;
    }
}

/* Does the work with anomaly a before call i and b before call j. */
static void work_with(device *d, const char *workload, int i, int j,
                      const struct anomaly *a, const struct anomaly *b)
{
    follower f = { d->now, d->now };

    for (int call = 0; call < CALLS; call++) {
        unsigned key = workload[1] >= '0' ? (unsigned)(workload[1] - '0') : 0;
        // A restart and an elapse show the table no tick: none is pending.
        if (call == i && a->what != 'T' && a->what != 'W')
            disturb(d, &f, a);
        if (call == j && b->what != 'T' && b->what != 'W')
            disturb(d, &f, b);
        d->now += NORMAL;
        if (call == i && (a->what == 'T' || a->what == 'W'))
            disturb(d, &f, a);
        if (call == j && (b->what == 'T' || b->what == 'W'))
            disturb(d, &f, b);
        d->shown = d->now - follow(&f, d->now);
        if (*workload == 'N')
            device_renew(d, key, 150);
        else
            (void)play_event(d, *workload, key);
        device_look(d);
        workload += workload[1] >= '0' ? 3 : 2;
    }
}

static void s6_no_two_anomalies_shorten_anything_over_restarts(void **state)
{
    device *d = (device *)*state;
    unsigned long pairs = 0, runs = 0;
    unsigned one_in = getenv("IDEM_CALLS") ? 7 : 1;

    d->still = 1;
    for (size_t m = 0; m < COUNT(media); m++)
        for (size_t w = 0; w < COUNT(workloads); w++)
            for (int i = 0; i < CALLS; i++)
                for (int j = i; j < CALLS; j++)
                    for (size_t pair = 0;
                         pair < COUNT(anomalies) * COUNT(anomalies); pair++) {
                        if (pairs++ % one_in)
                            continue;
                        device_start(d, &media[m]);
                        memset(&d->truth, 0, sizeof d->truth);
                        d->shown = d->now;
                        work_with(d, workloads[w], i, j,
                                  &anomalies[pair / COUNT(anomalies)],
                                  &anomalies[pair % COUNT(anomalies)]);
                        runs++;
                    }
    printf("anomalies: %lu pairs, %lu calls\n", runs, runs * CALLS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            s6_no_two_anomalies_shorten_anything_over_restarts, device_setup,
            device_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
