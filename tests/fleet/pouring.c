/* SPDX-License-Identifier: 0BSD */
/* pouring: when the pump of examples/fleet/gateway_pump.c stops.  The clock is
 * the test's own, so nothing waits. */
#define _POSIX_C_SOURCE 200809L
#define IDEM_IMPLEMENTATION
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static long long at_ms = 1, awake_ms, asleep_ms;

static int get_time(clockid_t clock, struct timespec *t)
{
    (void)clock;
    t->tv_sec = (time_t)(at_ms / 1000);
    t->tv_nsec = (long)(at_ms % 1000 * 1000000);
    return 0;
}

/* The machine sleeps meanwhile, if it is to. */
static int pause_for(const struct timespec *t, struct timespec *left)
{
    (void)left;
    awake_ms += t->tv_sec * 1000LL + t->tv_nsec / 1000000;
    at_ms += t->tv_sec * 1000LL + t->tv_nsec / 1000000 + asleep_ms;
    asleep_ms = 0;
    return 0;
}

#define clock_gettime get_time
#define nanosleep pause_for
#include "examples/fleet/gateway_pump.c"

enum { LEASE_MS = 10000, TIMEOUT_MS = 5000, POUR_MS = 60000 };

static int silences, refusals, fenced;  // of the store, one after another
static int silent_ms = TIMEOUT_MS;
static int ended;                       // lines of the log

int fleet_renew(fleet *f, const idem_claim *claim, uint32_t lease_ms)
{
    (void)f, (void)claim, (void)lease_ms;
    if (silences > 0) {
        silences--;
        at_ms += silent_ms;
        return IDEM_E_STORAGE;
    }
    if (refusals > 0) {
        refusals--;
        return IDEM_E_STORAGE;
    }
    return fenced ? IDEM_E_FENCED : IDEM_OK;
}

int effect_begin(const char *id, const char *text, long place)
{
    (void)id, (void)text, (void)place;
    return EFFECT_NONE;
}

void effect_end(const char *id, const char *text)
{
    (void)id, (void)text;
    ended++;
}

long effect_place(void)
{
    return 0;
}

void effect_die(const char *what, const char *why)
{
    printf("pouring: %s: %s\n", what, why);
    exit(1);
}

/* Pours with a lease that was asked for now.  It comes to its end, or stops
   while the lease is held; with the machine awake for that time at most. */
static void expect(const char *name, int to_its_end, long long awake_most_ms)
{
    static gateway g = { .ml_ms = POUR_MS, .lease_ms = LEASE_MS,
                         .f = { .timeout_ms = TIMEOUT_MS } };
    command c = { .device = &g, .topic = "pump/a/command", .payload = "1",
                  .payload_len = 1, .key = "k", .key_len = 1 };
    idem_claim claim = { .token = 1 };
    idem_job job = { .ctx = &c, .claim = &claim, .answer = IDEM_EXECUTE };
    long long begun = at_ms;
    int result;

    ended = 0;
    awake_ms = 0;
    g.held_ms = at_ms + LEASE_MS;
    result = gateway_execute(&job);
    if (result == (to_its_end ? IDEM_HANDLED : IDEM_CANNOT_TELL) &&
        ended == to_its_end && awake_ms <= awake_most_ms &&
        (to_its_end || at_ms - begun <= LEASE_MS))
        return;
    printf("pouring: %s: %d, stopped after %lld ms, %lld of them awake\n", name,
           result, at_ms - begun, awake_ms);
    exit(1);
}

int main(void)
{
    if (!freopen("/dev/null", "w", stderr))
        return 2;
    expect("a store that answers", 1, POUR_MS);
    refusals = 1;
    expect("it refuses once", 1, POUR_MS);
    refusals = 1000;
    expect("it always refuses", 0, POUR_MS);
    refusals = 0;
    silences = 1000;
    expect("it is silent", 0, POUR_MS);
    silences = 1;
    silent_ms = POUR_MS;
    expect("it is silent until the pump has stopped", 1, LEASE_MS / 4);
    fenced = 1;
    expect("another has taken over", 0, POUR_MS);
    fenced = 0;
    asleep_ms = 2 * POUR_MS;
    expect("the machine sleeps", 1, 100);
    puts("pouring: 7 checks passed, 0 failed");
    return 0;
}
