/* SPDX-License-Identifier: 0BSD */
/*
 * Shows, with threads that share one table through its lock hooks, that no key
 * is executed by two at once or twice in all (S1, S4).  api.c shows that each
 * call takes the lock; life.c and clock.c have late holders and late ticks.
 *
 * The effects are plain integers: only the table's answers keep two threads
 * from writing one at the same time, so a race that the thread sanitizer finds
 * is a claim that was granted twice.  Run it with gcc -fsanitize=thread, too.
 */
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif
#include <errno.h>
#include <pthread.h>
#include <sched.h>

#include "scenario.h"
#include "examples/port/threads.h"

enum { THREADS = 4, NUMBERS = 500 };

static pthread_mutex_t mutex;
static uint32_t effects[NUMBERS];

/* What one thread works on, and what it saw; failures are counted, for cmocka
   asserts in the main thread only. */
struct worker {
    pthread_t thread;
    uint32_t seed;
    uint32_t done;              // completions that were accepted
    uint32_t wrong;             // answers that must not come
};

static uint32_t dice(struct worker *w)
{
    return w->seed = flash_mix(w->seed + 1);
}

/* Begins a key that is a number; it is the response too. */
static int begin_numbered(idem_claim *claim, uint32_t *stored, uint32_t number)
{
    idem_reply reply;
    idem_request rq = {
        .key = &number, .key_len = sizeof number,
        .payload = &number, .payload_len = sizeof number,
        .buffer = stored, .buffer_size = sizeof *stored,
    };

    return idem_begin(the.table, claim, &reply, &rq, the.now);
}

/* Asks for a key until it is finished, whoever finishes it. */
static void see_to(struct worker *w, uint32_t number)
{
    idem_claim claim;
    uint32_t stored;
    idem_outcome outcome = {
        .response = &number, .response_len = sizeof number,
    };

    for (;;) {
        switch (begin_numbered(&claim, &stored, number)) {
        case IDEM_EXECUTE:
            if (dice(w) % 4 == 0) {
                // A transient failure: whoever comes next starts anew.
                w->wrong += idem_release(the.table, &claim, the.now) != IDEM_OK;
                break;
            }
            effects[number]++;
            w->wrong += idem_renew(the.table, &claim, 0, the.now) != IDEM_OK;
            if (dice(w) % 8 == 0)
                (void)sched_yield();
            w->wrong += idem_complete(the.table, &claim, &outcome, the.now) !=
                        IDEM_OK;
            w->done++;
            return;
        case IDEM_BUSY:
            (void)sched_yield();
            break;
        case IDEM_REPLAY:
            w->wrong += stored != number;
            return;
        default:
            w->wrong++;
            return;
        }
    }
}

static void *see_to_all(void *arg)
{
    struct worker *w = (struct worker *)arg;

    // All begin at nearly the same place, so they meet often.
    for (uint32_t i = 0; i < NUMBERS; i++) {
        see_to(w, i ^ (dice(w) % 4));
        if (i % 16 == 0)
            (void)idem_maintain(the.table, the.now);
    }
    // What the permutation left out.
    for (uint32_t i = 0; i < NUMBERS; i++)
        see_to(w, i);
    return NULL;
}

/* Shared flash: every callback comes from one thread at a time, and what all of
   them did is there after a restart. */
TEST(s1_s2_s4_threads_that_share_a_journal_execute_every_key_once)
{
    idem_claim claim;
    uint32_t stored;
    struct worker workers[THREADS];
    uint32_t done = 0;

    device_on(&nor_8, "capacity=500 key=4 response=4 state=0 size=16384");
    is(threads_init(&mutex), 0);
    the.config.lock_ctx = &mutex;
    the.config.lock = threads_lock;
    the.config.unlock = threads_unlock;
    memset(effects, 0, sizeof effects);
    for (uint32_t i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){ .seed = i + 1 };
        is(pthread_create(&workers[i].thread, NULL, see_to_all, &workers[i]),
           0);
    }
    for (uint32_t i = 0; i < THREADS; i++) {
        is(pthread_join(workers[i].thread, NULL), 0);
        is(workers[i].wrong, 0);
        done += workers[i].done;
    }
    is(idem_check(the.table), 0);
    // Who holds it is refused, and does not wait for itself.
    is(threads_lock(&mutex), 0);
    is(threads_lock(&mutex), EDEADLK);
    threads_unlock(&mutex);
    is(pthread_mutex_destroy(&mutex), 0);
    the.config.lock = NULL;
    the.config.unlock = NULL;
    is(done, NUMBERS);
    for (uint32_t i = 0; i < NUMBERS; i++)
        is(effects[i], 1);
    is(the.table->used, NUMBERS);
    is(the.table->stats.fenced, 0);
    is(reopen(), IDEM_OK);
    is(the.table->used, NUMBERS);
    for (uint32_t i = 0; i < NUMBERS; i++)
        is(begin_numbered(&claim, &stored, i), IDEM_REPLAY);
    is(the.medium.violations, 0);
}
