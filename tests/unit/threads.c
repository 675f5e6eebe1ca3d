/* SPDX-License-Identifier: 0BSD */
/*
 * Shows, with threads that share one table through its lock hooks, that no key
 * is executed by two at once or twice in all (S1, S4).  That each call takes the
 * lock is in api.c, what late holders and late ticks come to in life.c and
 * clock.c.
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
static uint32_t effects[KEYS];

static int lock(void *ctx)
{
    return pthread_mutex_lock((pthread_mutex_t *)ctx);
}

static void unlock(void *ctx)
{
    (void)pthread_mutex_unlock((pthread_mutex_t *)ctx);
}

/* What one thread works on, and what it saw; failures are counted, for cmocka
   asserts in the main thread only. */
struct worker {
    pthread_t thread;
    idem_table *table;
    uint32_t seed;
    uint32_t done;              // completions that were accepted
    uint32_t wrong;             // answers that must not come
};

/* Begins a key that is a number. */
static int begin_numbered(idem_table *t, idem_claim *claim, idem_reply *reply,
                          uint32_t number)
{
    idem_request rq = {
        .key = &number, .key_len = sizeof number,
        .payload = &number, .payload_len = sizeof number,
    };

    return idem_begin(t, claim, reply, &rq, 0);
}

/* Asks for a key until it is finished, whoever finishes it. */
static void see_to(struct worker *w, uint32_t number)
{
    idem_table *t = w->table;
    idem_claim claim;
    uint32_t stored;
    idem_reply reply = { .buffer = &stored, .buffer_size = sizeof stored };
    idem_outcome outcome = {
        .response = &number, .response_len = sizeof number,
    };

    for (;;) {
        switch (begin_numbered(t, &claim, &reply, number)) {
        case IDEM_EXECUTE:
            if (dice(&w->seed) % 4 == 0) {
                // A transient failure: whoever comes next starts anew.
                w->wrong += idem_release(t, &claim, 0) != IDEM_OK;
                break;
            }
            effects[number]++;
            w->wrong += idem_renew(t, &claim, 0, 0) != IDEM_OK;
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
            (void)idem_maintain(w->table, 0);
    }
    // What the permutation left out.
    for (uint32_t i = 0; i < KEYS; i++)
        see_to(w, i);
    return NULL;
}

static void execute_every_key_once(fixture *f)
{
    struct worker workers[THREADS];
    pthread_mutexattr_t kind;
    uint32_t done = 0;

    is(pthread_mutexattr_init(&kind), 0);
    is(pthread_mutexattr_settype(&kind, PTHREAD_MUTEX_ERRORCHECK), 0);
    is(pthread_mutex_init(&mutex, &kind), 0);
    (void)pthread_mutexattr_destroy(&kind);
    f->config.capacity = KEYS;
    f->config.lock_ctx = &mutex;
    f->config.lock = lock;
    f->config.unlock = unlock;
    fixture_open(f, 0);
    memset(effects, 0, sizeof effects);
    for (uint32_t i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){ .table = &f->table, .seed = i + 1 };
        is(pthread_create(&workers[i].thread, NULL, see_to_all, &workers[i]),
           0);
    }
    for (uint32_t i = 0; i < THREADS; i++) {
        is(pthread_join(workers[i].thread, NULL), 0);
        is(workers[i].wrong, 0);
        done += workers[i].done;
    }
    is(idem_check(&f->table), 0);
    is(pthread_mutex_destroy(&mutex), 0);
    f->config.lock = NULL;
    f->config.unlock = NULL;
    is(done, KEYS);
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
        is(begin_numbered(&f->table, &f->claim, &f->reply, i), IDEM_REPLAY);
    is(medium.violations, 0);
    f->config.storage = NULL;
    free(memory);
}
