/* SPDX-License-Identifier: 0BSD */
/*
 * Shows that many threads can share a sync (S2, S4, S10): idem_sync without the
 * lock, and examples/group.h.  Only records written before the sync began count
 * as durable; if a sync fails, it fails for all that wait for it, and for a
 * call that begins a sector meanwhile; one sync runs at a time; of threads that
 * want the same keys each is executed once (S1); shared data is written only
 * under a lock (run it with gcc -fsanitize=thread, too).
 *
 * First all in one thread: during a sync other calls are made, each of their
 * operations is cut, and each sync fails.  Then with threads, on the storage
 * emulator and on a file.
 */
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif
#include <errno.h>
#include <sched.h>
#include <unistd.h>

#include "test.h"

/* The kernel's sync of a file: may fail, and reports it once. */
static int kernel_sync(int fd);

#define fdatasync kernel_sync
#define IDEM_FILE_STORAGE
#define IDEM_STATIC
#define IDEM_IMPLEMENTATION
#include "idem.h"
#undef fdatasync

#include "examples/group.h"
#include "examples/port/threads.h"
#include "model/media.h"

// What one thread does alone a thread sanitizer need not watch.
#ifdef __SANITIZE_THREAD__
enum { SEEDS = 1, STEP = 40 };
#else
enum { SEEDS = 3, STEP = 1 };
#endif
enum { KEYS = 24, THREADS = 8, ROUNDS = 30, SECTOR = 512 };

/* ---------------------------------------------------------------- >>storage */

// Sees every access to the emulator; a thread that syncs leaves it at times.
static pthread_mutex_t bus = PTHREAD_MUTEX_INITIALIZER;
// Held for a sync, and for its error, which stays.
static pthread_mutex_t syncing = PTHREAD_MUTEX_INITIALIZER;
static int sync_error;

static flash cells;
static void (*aside)(int after);    // other calls, while a sync goes on
static pthread_mutex_t table_lock;
static int locked;                  // under table_lock: it is held
static int refusals;                // which call the lock refuses; 0: none
static int unlocked_ops;            // callbacks that ran outside the lock

static int lock(void *ctx)
{
    int result = refusals && --refusals == 0 ? ETIMEDOUT : threads_lock(ctx);

    locked = result == 0;
    return result;
}

static void unlock(void *ctx)
{
    locked = 0;
    threads_unlock(ctx);
}

static int medium_read(void *ctx, uint32_t at, void *dst, uint32_t len)
{
    int result;

    pthread_mutex_lock(&bus);
    result = flash_read(ctx, at, dst, len);
    pthread_mutex_unlock(&bus);
    return result;
}

static int medium_prog(void *ctx, uint32_t at, const void *src, uint32_t len)
{
    int result;

    unlocked_ops += !locked;
    pthread_mutex_lock(&bus);
    result = flash_prog(ctx, at, src, len);
    pthread_mutex_unlock(&bus);
    return result;
}

/* Makes durable what was programmed before it began. */
static int sync_one_at_a_time(void *ctx)
{
    int result;

    pthread_mutex_lock(&syncing);
    pthread_mutex_lock(&bus);
    if (!sync_error)
        sync_error = flash_sync(ctx);
    pthread_mutex_unlock(&bus);
    for (int i = 0; i < 3; i++)
        (void)sched_yield();
    result = sync_error;
    pthread_mutex_unlock(&syncing);
    return result;
}

static int medium_sync(void *ctx)
{
    unlocked_ops += !locked;
    return sync_one_at_a_time(ctx);
}

static int medium_sync_unlocked(void *ctx)
{
    int result;

    if (aside)
        aside(0);
    result = sync_one_at_a_time(ctx);
    if (aside)
        aside(1);
    return result;
}

/* ------------------------------------------------------------------ >>table */

static idem_storage storage = {
    .ctx = &cells, .read = medium_read, .prog = medium_prog,
    .sync = medium_sync, .sync_unlocked = medium_sync_unlocked,
    .sector_size = SECTOR, .sector_count = 12, .prog_size = 4 };
static idem_config config;
static idem_table table;
static void *memory;
static idem_file file;

static int open_table(void)
{
    size_t size = IDEM_JOURNAL_MEMORY_SIZE(KEYS, 4, 4, 0, 4);

    free(memory);
    memory = medium_allocate(size);
    return idem_open(&table, &config, memory, size, 0);
}

static void configure(const idem_storage *of, int durability)
{
    static const idem_config plain = {
        .capacity = KEYS, .key_max = 4, .response_max = 4,
        .max_attempts = 255, .secret = { 1, 2, 3, 4, 5, 6, 7, 8, 9 },
        .lock_ctx = &table_lock, .lock = lock, .unlock = unlock };

    config = plain;
    config.storage = of;
    config.durability = (uint8_t)durability;
    is(threads_init(&table_lock), 0);
    refusals = unlocked_ops = 0;
}

static void begin_anew(int durability)
{
    medium_end(&cells);
    cells.kind = FLASH_INPLACE;
    cells.draws = 3;
    cells.cut_syncs = 1;
    is(medium_make(&cells, &storage, CACHE), 0);
    sync_error = 0;
    aside = NULL;
    configure(&storage, durability);
    is(open_table(), IDEM_OK);
}

/* The power is gone, with what was not durable; or it goes now. */
static void power_cut(uint32_t variant)
{
    flash_op op = { FLASH_SYNC, 0, NULL, 0 };

    flash_fail(&cells, FLASH_SYNC, 0, 0, 0);
    if (!cells.off)
        flash_off(&cells, variant < flash_variants(&cells, &op) ? variant : 0);
    flash_boot(&cells);
    sync_error = 0;
    aside = NULL;
    is(open_table(), IDEM_OK);
    is(table.stats.lost, 0);
    is(cells.violations, 0);
}

static int begin(idem_claim *claim, uint32_t key)
{
    uint32_t stored = 0;
    idem_request rq = { .key = &key, .key_len = 4, .buffer = &stored,
                        .buffer_size = 4 };
    idem_reply reply;
    int result = idem_begin(&table, claim, &reply, &rq, 0);

    return result == IDEM_REPLAY && stored != key ? IDEM_E_NOT_FOUND : result;
}

static int complete(const idem_claim *claim, uint32_t key)
{
    idem_outcome outcome = { .response = &key, .response_len = 4 };

    return idem_complete(&table, claim, &outcome, 0);
}

/* --------------------------------------------- >>aside  all in one thread */

// What a key may be found to be after a cut: all that it has been since a sync.
enum { FREE = 1, CLAIMED = 2, DONE = 4 };

static struct { idem_claim claim; int is, may_be, noted; } keys[KEYS];
static uint32_t chance, ended;      // random; 1: a call failed, nothing counts

static uint32_t dice(uint32_t n)
{
    chance = flash_mix(chance + 1);
    return chance % n;
}

static void became(uint32_t key, int state)
{
    keys[key].is = state;
    keys[key].may_be |= state;
    keys[key].noted |= state;
}

/* Some call about some key, as its life goes on.  A call that failed has
   happened for the next boot, or not. */
static void some_call(void)
{
    uint32_t key = dice(KEYS);
    int result = IDEM_OK, to = FREE;

    if (keys[key].is == FREE) {
        to = CLAIMED;
        result = begin(&keys[key].claim, key);
    } else if (keys[key].is == CLAIMED && dice(3)) {
        to = DONE;
        result = complete(&keys[key].claim, key);
    } else if (keys[key].is == CLAIMED) {
        result = idem_release(&table, &keys[key].claim, 0);
    } else {
        idem_request rq = { .key = &key, .key_len = 4 };
        result = idem_forget(&table, &rq, 0);
    }
    if (result < 0)
        is(result, IDEM_E_STORAGE);
    ended |= result < 0;
    became(key, to);
}

static void some_calls(int after)
{
    uint32_t n = dice(2) ? dice(1 + 12 * (uint32_t)after) : 0;

    while (n-- > 0 && !ended)
        some_call();
}

/* Syncs; what was done meanwhile is not durable for that. */
static void some_sync(void)
{
    for (uint32_t key = 0; key < KEYS; key++)
        keys[key].noted = keys[key].is;
    if (idem_sync(&table) != IDEM_OK)
        ended = 1;
    else
        for (uint32_t key = 0; key < KEYS; key++)
            keys[key].may_be = keys[key].noted;
}

/* Everything is as one of the calls since the last sync has left it. */
static void assert_kept(void)
{
    for (uint32_t key = 0; key < KEYS; key++) {
        idem_claim claim;
        int result = begin(&claim, key);
        int found = result == IDEM_EXECUTE ? FREE
                    : result == IDEM_RECOVER ? CLAIMED
                    : result == IDEM_REPLAY ? DONE : 0;
        if (!(found & keys[key].may_be))
            print_error("key %u: %s, may be %d\n", (unsigned)key,
                        idem_text(result), keys[key].may_be);
        assert_true(found & keys[key].may_be);
    }
}

/* A life of calls and syncs, with others beside each sync. */
static void live(uint32_t seed)
{
    begin_anew(IDEM_BATCH);
    chance = seed;
    ended = 0;
    for (uint32_t key = 0; key < KEYS; key++) {
        keys[key].may_be = 0;
        became(key, FREE);
    }
}

static void go_on(void)
{
    aside = some_calls;
    for (int round = 0; round < ROUNDS && !ended; round++) {
        some_call();
        if (!ended && dice(2))
            some_sync();
    }
    is(unlocked_ops, 0);
}

TEST(s2_s4_power_cuts_beside_a_sync_lose_nothing_that_was_durable)
{
    uint32_t rings = 0, cuts = 0;

    for (uint32_t seed = 1; seed <= SEEDS; seed++)
        for (uint32_t n = 0, off = 1; off; n += STEP)
            for (uint32_t v = 0, count = 1; v < count; v += 1 + count / 6) {
                live(seed);
                flash_cut(&cells, n, v);
                go_on();
                off = (uint32_t)cells.off;
                rings += cells.progs > 2 * storage.sector_count;
                count = off ? cells.variants : 1;
                cuts += off;
                power_cut(2 + v);
                assert_kept();
            }
    assert_true(cuts > 20 && rings > 0);
}

/* UNDONE, DONE or HALF: and no later sync can mend that. */
TEST(s2_s4_s10_a_sync_that_fails_beside_other_calls_fails_them_all)
{
    for (int how = FLASH_UNDONE; how <= FLASH_HALF; how++)
        for (uint32_t n = 0, failed = 1; failed; n += STEP) {
            live(n);
            flash_fail(&cells, FLASH_SYNC, n, how, 0);
            go_on();
            failed = (uint32_t)(sync_error != 0);
            if (failed) {
                idem_claim claim;
                is(idem_sync(&table), IDEM_E_STORAGE);
                is(begin(&claim, KEYS), IDEM_E_STORAGE);
            }
            power_cut(2 + n);
            assert_kept();
        }
}

static void begin_b(int after)
{
    idem_claim claim;

    if (after)
        is(begin(&claim, 'b'), IDEM_EXECUTE);
}

TEST(s2_what_is_written_during_a_sync_is_durable_with_the_next)
{
    idem_claim claim;

    for (int twice = 0; twice < 2; twice++) {
        begin_anew(IDEM_BATCH);
        is(begin(&claim, 'a'), IDEM_EXECUTE);
        aside = begin_b;
        is(idem_sync(&table), IDEM_OK);
        aside = NULL;
        if (twice) {
            uint32_t syncs = cells.syncs;
            is(idem_sync(&table), IDEM_OK);
            is(idem_sync(&table), IDEM_OK);     // has nothing to do
            is(cells.syncs, syncs + 1);
        }
        power_cut(2);                           // loses all
        is(begin(&claim, 'a'), IDEM_RECOVER);
        is(begin(&claim, 'b'), twice ? IDEM_RECOVER : IDEM_EXECUTE);
    }
}

static void sync_beside(int after)
{
    (void)after;
    aside = NULL;
    is(idem_sync(&table), IDEM_OK);
}

TEST(s10_a_sync_that_fails_is_reported_even_if_one_beside_it_has_succeeded)
{
    idem_claim claim;

    begin_anew(IDEM_BATCH);
    is(begin(&claim, 'a'), IDEM_EXECUTE);
    aside = sync_beside;
    flash_fail(&cells, FLASH_SYNC, 1, FLASH_UNDONE, 0);
    is(idem_sync(&table), IDEM_E_STORAGE);
}

static int syncs_unlocked;

static void count_sync(int after)
{
    syncs_unlocked += after;
}

/* Nothing is synced any more, so nobody waits for that. */
TEST(after_a_failed_sync_none_is_begun)
{
    idem_claim claim;

    begin_anew(IDEM_BATCH);
    aside = count_sync;
    syncs_unlocked = 0;
    is(begin(&claim, 1), IDEM_EXECUTE);
    flash_fail(&cells, FLASH_SYNC, 0, FLASH_UNDONE, 1);
    is(idem_sync(&table), IDEM_E_STORAGE);
    is(idem_sync(&table), IDEM_E_STORAGE);
    is(syncs_unlocked, 1);
}

TEST(a_lock_that_refuses_after_a_sync_is_reported_and_the_next_sync_is_done)
{
    idem_claim claim;

    begin_anew(IDEM_BATCH);
    is(begin(&claim, 'a'), IDEM_EXECUTE);
    refusals = 2;
    is(idem_sync(&table), IDEM_E_LOCK);
    is(idem_sync(&table), IDEM_OK);
    power_cut(2);
    is(begin(&claim, 'a'), IDEM_RECOVER);
}

TEST(in_each_mode_all_syncs_are_under_the_lock)
{
    idem_claim claim;
    uint32_t syncs;

    begin_anew(IDEM_EACH);
    is(begin(&claim, 'a'), IDEM_EXECUTE);
    is(complete(&claim, 'a'), IDEM_OK);
    syncs = cells.syncs;
    is(idem_sync(&table), IDEM_OK);
    is(cells.syncs, syncs);
    is(unlocked_ops, 0);
}

TEST(without_sync_unlocked_a_sync_is_under_the_lock)
{
    idem_storage plain = storage;
    idem_claim claim;
    uint32_t syncs;

    begin_anew(IDEM_BATCH);
    plain.sync_unlocked = NULL;
    config.storage = &plain;
    is(open_table(), IDEM_OK);
    is(begin(&claim, 'a'), IDEM_EXECUTE);
    syncs = cells.syncs;
    is(idem_sync(&table), IDEM_OK);
    is(cells.syncs, syncs + 1);
    is(unlocked_ops, 0);
}

/* --------------------------------------------------------------- >>threads */

static group all;

// Each thread has keys of its own, which it alone knows.
static struct worker {
    pthread_t thread;
    uint32_t first, random;
    int answered[KEYS / THREADS];   // what it was answered: a state, or DONE
    int effects[KEYS / THREADS];
    int wrong;
} workers[THREADS];

/* Executes a key and replays it, each answer after a sync; 0: one failed. */
static int execute(struct worker *w, uint32_t i)
{
    idem_claim claim;
    uint32_t key = w->first + i;
    int result = begin(&claim, key);

    if (result < 0 || group_sync(&all, &table) != IDEM_OK)
        return 0;
    w->wrong += result != IDEM_EXECUTE;
    w->answered[i] = CLAIMED;
    w->effects[i]++;
    if (complete(&claim, key) != IDEM_OK ||
        group_sync(&all, &table) != IDEM_OK)
        return 0;
    w->answered[i] = DONE;
    result = begin(&claim, key);
    if (result < 0 || group_sync(&all, &table) != IDEM_OK)
        return 0;
    w->wrong += result != IDEM_REPLAY;
    return 1;
}

static void *work(void *arg)
{
    struct worker *w = (struct worker *)arg;

    for (uint32_t i = 0; i < KEYS / THREADS && execute(w, i); i++)
        ;
    return NULL;
}

static void run_threads(void *(*work_of_one)(void *))
{
    static const group fresh = GROUP_INITIALIZER;

    all = fresh;
    memset(workers, 0, sizeof workers);
    for (uint32_t i = 0; i < THREADS; i++) {
        workers[i].first = i * (KEYS / THREADS);
        is(pthread_create(&workers[i].thread, NULL, work_of_one,
                          &workers[i]), 0);
    }
    for (uint32_t i = 0; i < THREADS; i++) {
        is(pthread_join(workers[i].thread, NULL), 0);
        is(workers[i].wrong, 0);
    }
    is(unlocked_ops, 0);
}

/* What was answered is so, and what had an effect is known. */
static void assert_answers_hold(void)
{
    for (uint32_t key = 0; key < KEYS; key++) {
        const struct worker *w = &workers[key / (KEYS / THREADS)];
        uint32_t i = key - w->first;
        idem_claim claim;
        int result = begin(&claim, key);
        assert_true(result == IDEM_REPLAY || result == IDEM_EXECUTE ||
                    result == IDEM_RECOVER);
        assert_true(w->effects[i] <= 1);
        assert_true(w->answered[i] != DONE || result == IDEM_REPLAY);
        assert_true(!w->effects[i] || result != IDEM_EXECUTE);
    }
}

static uint32_t effects[KEYS];

/* Asks for a key until it is finished, whoever finishes it.  One attempt in
   four is given back: who comes next starts anew. */
static void see_to(struct worker *w, uint32_t key)
{
    for (;;) {
        idem_claim claim;
        int result = begin(&claim, key);
        if (result == IDEM_BUSY) {
            (void)sched_yield();
            continue;
        }
        w->wrong += result != IDEM_EXECUTE && result != IDEM_REPLAY;
        if (result != IDEM_EXECUTE)
            return;
        if ((w->random = flash_mix(w->random + 1)) % 4 == 0) {
            w->wrong += idem_release(&table, &claim, 0) != IDEM_OK;
            continue;
        }
        effects[key]++;
        w->wrong += idem_renew(&table, &claim, 0, 0) != IDEM_OK;
        if (w->random % 8 == 1)
            (void)sched_yield();
        w->wrong += complete(&claim, key) != IDEM_OK;
        return;
    }
}

/* All begin at nearly the same place, so they meet often; then what that order
   has left out. */
static void *share(void *arg)
{
    struct worker *w = (struct worker *)arg;

    w->random = w->first;
    for (uint32_t i = 0; i < 2 * KEYS; i++)
        see_to(w, i < KEYS ? i ^ (w->random & 3) : i - KEYS);
    w->wrong += idem_maintain(&table, 0) < 0;
    return NULL;
}

TEST(s1_s2_s4_threads_that_share_keys_execute_each_once)
{
    for (int round = 0; round < 20; round++) {
        begin_anew(IDEM_EACH);
        memset(effects, 0, sizeof effects);
        run_threads(share);
        is(idem_check(&table), 0);
        is(table.stats.fenced, 0);
        power_cut(2);
        is(table.used, KEYS);
        for (uint32_t key = 0; key < KEYS; key++) {
            idem_claim claim;
            is(effects[key], 1);
            is(begin(&claim, key), IDEM_REPLAY);
        }
    }
}

/* .. and does not wait for itself. */
TEST(who_holds_the_lock_is_refused)
{
    pthread_mutex_t mutex;

    is(threads_init(&mutex), 0);
    is(threads_lock(&mutex), 0);
    is(threads_lock(&mutex), EDEADLK);
    threads_unlock(&mutex);
    is(pthread_mutex_destroy(&mutex), 0);
}

TEST(s2_s4_power_cuts_in_the_middle_of_a_group)
{
    for (uint32_t n = 0, off = 1; off && n < 400; n += 7) {
        begin_anew(IDEM_BATCH);
        flash_cut(&cells, n, n % 2);           // not begun; or done
        run_threads(work);
        off = (uint32_t)cells.off;
        power_cut(2 + n % 3);
        assert_answers_hold();
    }
}

TEST(s2_s4_s10_a_failed_sync_in_the_middle_of_a_group)
{
    for (uint32_t n = 0, failed = 1; failed; n += 2) {
        begin_anew(IDEM_BATCH);
        flash_fail(&cells, FLASH_SYNC, n, FLASH_HALF, 0);
        run_threads(work);
        failed = (uint32_t)(sync_error != 0);
        if (failed)
            is(group_sync(&all, &table), IDEM_E_STORAGE);
        power_cut(2 + n % 3);
        assert_answers_hold();
    }
}

/* ------------------------------------------------------------------ >>file */

enum { PATIENCE_NS = 100000000 };

static pthread_mutex_t kernel = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t met = PTHREAD_COND_INITIALIZER;
static int kernel_syncs, in_kernel, at_once, failing, after_failure;
static int waits;                   // the next sync, for one beside it

/* Waits until another sync goes on, which is not to be.  That takes a while only
   where all is well. */
static void wait_for_another(void)
{
    struct timespec until;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += PATIENCE_NS;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    while (!at_once && !pthread_cond_timedwait(&met, &kernel, &until))
        ;
}

static int kernel_sync(int fd)
{
    int fails;

    (void)fd;
    pthread_mutex_lock(&kernel);
    at_once += in_kernel++ > 0;
    pthread_cond_signal(&met);
    fails = ++kernel_syncs == failing;
    after_failure += failing && kernel_syncs > failing;
    if (waits)
        wait_for_another();
    waits = 0;
    pthread_mutex_unlock(&kernel);
    for (int i = 0; i < 3; i++)
        (void)sched_yield();
    pthread_mutex_lock(&kernel);
    in_kernel--;
    pthread_mutex_unlock(&kernel);
    errno = EIO;
    return fails ? -1 : 0;
}

static void *sync_file(void *unused)
{
    (void)unused;
    is(file.storage.sync_unlocked(file.storage.ctx), 0);
    return NULL;
}

TEST(a_sync_of_a_file_waits_for_the_one_before)
{
    char path[] = "/tmp/idem-group-XXXXXX";
    int fd = mkstemp(path);
    pthread_t threads[2];

    assert_true(fd >= 0);
    is(close(fd), 0);
    is(idem_file_open(&file, path, SECTOR, 12), IDEM_OK);
    at_once = failing = 0;
    waits = 1;
    for (int i = 0; i < 2; i++)
        is(pthread_create(&threads[i], NULL, sync_file, NULL), 0);
    for (int i = 0; i < 2; i++)
        is(pthread_join(threads[i], NULL), 0);
    is(at_once, 0);
    is(waits, 0);
    is(idem_file_close(&file), IDEM_OK);
    is(remove(path), 0);
}

TEST(a_file_is_synced_by_one_at_a_time_until_that_fails)
{
    char path[] = "/tmp/idem-group-XXXXXX";
    int fd = mkstemp(path), failed = 1;
    idem_claim claim;

    assert_true(fd >= 0);
    is(close(fd), 0);
    for (failing = 3; failed; failing += 7) {
        is(truncate(path, 0), 0);
        is(idem_file_open(&file, path, SECTOR, 12), IDEM_OK);
        kernel_syncs = at_once = after_failure = 0;
        configure(&file.storage, IDEM_BATCH);
        is(open_table(), IDEM_OK);
        run_threads(work);
        is(at_once, 0);
        is(after_failure, 0);
        failed = kernel_syncs == failing;
        is(file.error, failed ? EIO : 0);
        if (failed) {
            is(group_sync(&all, &table), IDEM_E_STORAGE);
            // Opening the table alone does not make the file be believed.
            is(open_table(), IDEM_OK);
            is(begin(&claim, KEYS), IDEM_E_STORAGE);
        }
        is(idem_file_close(&file), IDEM_OK);
    }
    is(remove(path), 0);
}
