/* SPDX-License-Identifier: 0BSD */
/*
 * Shows, with threads that share one table through its lock hooks, that no key
 * is executed by two at once or twice in all (S1, S4), that of many holders of
 * one key only one completes it, and that ticks read before the lock is taken do
 * not make the clock run ahead (S6).
 *
 * The effects are plain integers: only the table's answers keep two threads
 * from writing one at the same time, so a race that the thread sanitizer finds
 * is a claim that was granted twice.  Run it with gcc -fsanitize=thread, too.
 */
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif
#include <pthread.h>
#include <sched.h>

#include "fixture.h"
#include "flash.h"

enum { THREADS = 4, KEYS = 500 };

static pthread_mutex_t mutex;

static int lock(void *ctx)
{
    return pthread_mutex_lock((pthread_mutex_t *)ctx);
}

static void unlock(void *ctx)
{
    (void)pthread_mutex_unlock((pthread_mutex_t *)ctx);
}

/* A table that threads may share; run_workers takes the lock away again. */
static void open_shared(fixture *f, uint32_t capacity)
{
    pthread_mutexattr_t kind;

    is(pthread_mutexattr_init(&kind), 0);
    is(pthread_mutexattr_settype(&kind, PTHREAD_MUTEX_ERRORCHECK), 0);
    is(pthread_mutex_init(&mutex, &kind), 0);
    (void)pthread_mutexattr_destroy(&kind);
    f->config.capacity = capacity;
    f->config.lock_ctx = &mutex;
    f->config.lock = lock;
    f->config.unlock = unlock;
    fixture_open(f, 0);
}

/* What one thread works on, and what it saw; failures are counted, for cmocka
   asserts in the main thread only. */
struct worker {
    pthread_t thread;
    fixture *f;
    uint32_t seed;
    uint32_t done;              // completions that were accepted
    uint32_t fenced;            // and that were not
    uint32_t wrong;             // answers that must not come
};

/* Starts the threads, waits for them, and adds up what they did. */
static struct worker run_workers(fixture *f, void *(*work)(void *))
{
    struct worker workers[THREADS];
    struct worker all = { .f = f };

    for (uint32_t i = 0; i < THREADS; i++) {
        memset(&workers[i], 0, sizeof workers[i]);
        workers[i].f = f;
        workers[i].seed = i + 1;
        is(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
    }
    for (uint32_t i = 0; i < THREADS; i++) {
        is(pthread_join(workers[i].thread, NULL), 0);
        all.done += workers[i].done;
        all.fenced += workers[i].fenced;
        all.wrong += workers[i].wrong;
    }
    is(idem_check(&f->table), 0);
    is(pthread_mutex_destroy(&mutex), 0);
    f->config.lock = NULL;
    f->config.unlock = NULL;
    is(all.wrong, 0);
    return all;
}

/* Begins a key that is a number. */
static int begin_numbered(idem_table *t, idem_claim *claim, idem_reply *reply,
                          uint32_t number, uint32_t now)
{
    idem_request rq = {
        .key = &number, .key_len = sizeof number,
        .payload = &number, .payload_len = sizeof number,
    };

    return idem_begin(t, claim, reply, &rq, now);
}

/* ---------------------------------------------------------------- once each */
static uint32_t effects[KEYS];

/* Asks for a key until it is finished, whoever finishes it. */
static void see_to(struct worker *w, uint32_t number)
{
    idem_table *t = &w->f->table;
    idem_claim claim;
    uint32_t stored;
    idem_reply reply = { .buffer = &stored, .buffer_size = sizeof stored };
    idem_outcome outcome = {
        .response = &number, .response_len = sizeof number,
    };

    for (;;) {
        switch (begin_numbered(t, &claim, &reply, number, 0)) {
        case IDEM_EXECUTE:
            if (dice(&w->seed) % 4 == 0) {
                // A transient failure: whoever comes next starts anew.
                w->wrong += idem_release(t, &claim, 0) != IDEM_OK;
                break;
            }
            effects[number]++;
            if (dice(&w->seed) % 8 == 0)
                (void)sched_yield();
            w->wrong += idem_complete(t, &claim, &outcome, 0) != IDEM_OK;
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
    for (uint32_t i = 0; i < KEYS; i++) {
        see_to(w, i ^ (dice(&w->seed) % 4));
        if (i % 16 == 0)
            (void)idem_maintain(&w->f->table, 0);
    }
    // What the permutation left out.
    for (uint32_t i = 0; i < KEYS; i++)
        see_to(w, i);
    return NULL;
}

static void execute_every_key_once(fixture *f)
{
    open_shared(f, KEYS);
    memset(effects, 0, sizeof effects);
    is(run_workers(f, see_to_all).done, KEYS);
    for (uint32_t i = 0; i < KEYS; i++)
        is(effects[i], 1);
    is(f->table.used, KEYS);
    is(f->table.stats.fenced, 0);
}

TEST(s1_s4_threads_execute_every_key_once)
{
    execute_every_key_once(f);
}

/* Shared flash: every callback comes from one thread at a time, and what all of
   them did is there after a restart. */
TEST(s1_s2_s4_threads_share_a_journal)
{
    enum { SECTOR = 16384, SECTORS = IDEM_SECTORS(KEYS, 4, 4, 0, SECTOR, 8) };
    flash medium = {
        .kind = FLASH_NOR, .sector_size = SECTOR, .sector_count = SECTORS,
        .prog_size = 8, .erased = 0xFF,
    };
    idem_storage storage = {
        .ctx = &medium, .read = flash_read, .prog = flash_prog,
        .erase = flash_erase, .sector_size = SECTOR, .sector_count = SECTORS,
        .prog_size = 8, .erased = 0xFF,
    };
    void *memory = malloc(FLASH_MEMORY(SECTOR, SECTORS));

    assert_non_null(memory);
    is(flash_init(&medium, memory), 0);
    f->config.storage = &storage;
    f->config.key_max = f->config.response_max = sizeof(uint32_t);
    f->config.state_max = 0;
    execute_every_key_once(f);
    flash_boot(&medium);
    fixture_open(f, 0);
    is(f->table.used, KEYS);
    f->reply.buffer_size = 0;
    for (uint32_t i = 0; i < KEYS; i++)
        is(begin_numbered(&f->table, &f->claim, &f->reply, i, 0), IDEM_REPLAY);
    is(medium.violations, 0);
    f->config.storage = NULL;
    free(memory);
}

/* ------------------------------------------------------------- many holders */

/* Time that only goes forward, however many threads make it go; who reads it
   may be overtaken before using it. */
static uint32_t later(struct worker *w)
{
    static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
    static uint32_t tick;
    uint32_t now;

    (void)pthread_mutex_lock(&guard);
    now = ++tick;
    (void)pthread_mutex_unlock(&guard);
    if (dice(&w->seed) % 4 == 0)
        (void)sched_yield();
    return now;
}

static uint32_t completions[KEYS];

/* Claims each key for a moment, and often is too late with what follows. */
static void *race_for_all(void *arg)
{
    static const idem_outcome outcome = { .code = 1 };
    struct worker *w = (struct worker *)arg;
    idem_table *t = &w->f->table;

    for (uint32_t i = 0; i < 4 * KEYS; i++) {
        uint32_t number = i / 40;
        idem_reply reply = { .buffer = NULL };
        idem_claim claim;
        int complete_it = dice(&w->seed) % 8 == 0;
        int answer = begin_numbered(t, &claim, &reply, number, later(w));
        if (answer != IDEM_EXECUTE && answer != IDEM_RECOVER) {
            w->wrong += answer != IDEM_BUSY && answer != IDEM_REPLAY;
            continue;
        }
        if (dice(&w->seed) % 4)
            (void)sched_yield();
        answer = complete_it ? idem_complete(t, &claim, &outcome, later(w))
                             : idem_renew(t, &claim, 2, later(w));
        w->fenced += answer == IDEM_E_FENCED;
        w->wrong += answer != IDEM_OK && answer != IDEM_E_FENCED;
        if (complete_it && answer == IDEM_OK) {
            completions[number]++;
            w->done++;
        }
    }
    return NULL;
}

/* And the clock does not run ahead of the tick. */
TEST(s1_s4_s6_of_many_holders_of_a_key_one_completes_it)
{
    struct worker all = { .seed = 1 };
    uint32_t first = later(&all);

    f->config.lease_ms = 1;
    f->config.retention_ms = IDEM_RETENTION_MAX;
    f->config.max_attempts = 255;
    open_shared(f, KEYS);
    (void)finish(f, "panel", "k", first);
    memset(completions, 0, sizeof completions);
    all = run_workers(f, race_for_all);
    assert_in_range(all.done, 1, 4 * KEYS / 40);
    for (uint32_t i = 0; i < KEYS; i++)
        assert_in_range(completions[i], 0, 1);
    // Nobody released, so no key was new twice; and there was a race.
    is(f->table.stats.answers[IDEM_EXECUTE], 1 + 4 * KEYS / 40);
    assert_true(f->table.stats.answers[IDEM_RECOVER] > 0);
    is(f->table.stats.fenced, all.fenced);
    assert_true(all.fenced > 0);
    assert_true(f->table.stats.backwards > 0);
    all.seed = 1;
    all.done = later(&all);
    is(begin(f, "panel", "k", "pour", all.done), IDEM_REPLAY);
    is(f->reply.age_ms, all.done - first);
}
