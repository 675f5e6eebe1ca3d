/* SPDX-License-Identifier: 0BSD */
/*
 * M6: commands that are durable, by many threads at once.
 *
 *   build/bench_group [--short] FOLDER        (on a disk, not a RAM disk)
 *
 * Each thread claims a fresh key of 16 bytes, waits until the claim is durable,
 * completes it with a response of 16 bytes, waits until that is durable, and
 * goes on.  Who does it:
 *
 *   IDEM_EACH   one table, one file: two syncs for each command, one by one
 *   group       the same with IDEM_BATCH and examples/group.h
 *   SQLite      WAL, synchronous FULL, a connection for each thread; INSERT OR
 *               IGNORE, then UPDATE of the key's row if the token is the
 *               claim's; each a transaction
 *   RocksDB     get, put, put; each put synced with the others that wait (its
 *               own group commit).  Nothing keeps two from claiming one key
 *
 * None but the tables drops what has expired.  All take turns, and only figures
 * of one turn make a ratio; medians.  Wrong answers fail it, times never do.
 *
 *   build/bench_group --wear FOLDER
 *
 * Bytes that SQLite and LMDB write for W1 (journal.c): 128 live keys, each
 * claimed and completed, in two transactions; the claim deletes the oldest key;
 * every tenth command is a duplicate, which only reads.  Counted by the kernel (Linux), as
 * bytes handed to write calls, checkpoints included.  The same library writes
 * the same number on every machine.  Nothing is synced here: that takes
 * seconds, and changes no byte that is written.
 */
#define _GNU_SOURCE 1
#define _POSIX_C_SOURCE 200809L

#define IDEM_FILE_STORAGE
#define IDEM_IMPLEMENTATION
#include "idem.h"

#include "examples/group.h"
#include "examples/port/threads.h"
#include "tests/bench/common.h"

enum {
    CAPACITY = 200000,
    RESPONSE_LEN = 16,
    SECTOR = 262144,
    THREADS_MAX = 16,
    LIVE = 128,                     // keys of W1, and what is counted of it
    COMMANDS = 1000,
    DUPLICATE_EVERY = 10
};

static char folder[PATH_LEN - 32];
static pthread_mutex_t counting = PTHREAD_MUTEX_INITIALIZER;
static uint64_t numbers;            // of keys, all fresh
static int stopped;
static int wears;                   // only bytes are counted: W1

/* True if the claim of a number deletes a key, that of LIVE numbers before. */
static int drops(uint64_t number)
{
    return wears && number >= LIVE;
}

/* ------------------------------------------------------------------ idem.h */
static idem_config config = {
    .capacity = CAPACITY, .key_max = KEY_LEN, .response_max = RESPONSE_LEN,
    .full = IDEM_EVICT_OLDEST, .secret = { 1, 2, 3, 4, 5, 6, 7, 8, 9 },
    .lock = threads_lock, .unlock = threads_unlock };
static pthread_mutex_t table_lock;
static idem_file file;
static idem_table table;
static void *memory;
static group all;

static void table_open(int durability)
{
    static const group fresh = GROUP_INITIALIZER;
    size_t size = IDEM_JOURNAL_MEMORY_SIZE(CAPACITY, KEY_LEN, RESPONSE_LEN, 0,
                                           1);
    char path[PATH_LEN];

    all = fresh;
    file_path(path, folder, "group_journal");
    memory = calloc(1, size);
    config.durability = (uint8_t)durability;
    config.storage = &file.storage;
    config.lock_ctx = &table_lock;
    check(memory && threads_init(&table_lock) == 0 &&
              idem_file_open(&file, path, SECTOR,
                             IDEM_SECTORS(CAPACITY, KEY_LEN, RESPONSE_LEN, 0,
                                          SECTOR, 1)) == IDEM_OK &&
              idem_open(&table, &config, memory, size, 0) == IDEM_OK, path);
}

static void each_open(void) { table_open(IDEM_EACH); }
static void group_open(void) { table_open(IDEM_BATCH); }

static void table_close(void)
{
    check(idem_check(&table) == 0, "idem_check");
    idem_file_close(&file);
    free(memory);
}

static void group_wait(void)
{
    if (config.durability == IDEM_BATCH)
        check(group_sync(&all, &table) == IDEM_OK, "group_sync");
}

static void table_command(uint64_t number)
{
    uint8_t key[KEY_LEN];
    idem_request rq = { .key = key, .key_len = KEY_LEN,
                        .payload = key, .payload_len = KEY_LEN };
    idem_outcome outcome = { .response = key, .response_len = RESPONSE_LEN };
    idem_reply reply;
    idem_claim claim;

    make_key(key, number);
    check(idem_begin(&table, &claim, &reply, &rq, 0) == IDEM_EXECUTE, "begin");
    group_wait();
    check(idem_complete(&table, &claim, &outcome, 0) == IDEM_OK, "complete");
    group_wait();
}

static void no_thread(void) { }

/* ------------------------------------------------------------------ SQLite */
#ifdef BENCH_SQLITE
#include <sqlite3.h>

static char db_path[PATH_LEN];
static __thread sqlite3 *db;
static __thread sqlite3_stmt *insert, *finish, *drop, *find, *begin, *commit;

static void db_run(const char *sql)
{
    check(sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK, sql);
}

static sqlite3_stmt *db_prepare(const char *sql)
{
    sqlite3_stmt *s;

    check(sqlite3_prepare_v2(db, sql, -1, &s, NULL) == SQLITE_OK, sql);
    return s;
}

static void db_connect(void)
{
    check(sqlite3_open(db_path, &db) == SQLITE_OK, db_path);
    sqlite3_busy_timeout(db, 60000);
    db_run(wears ? "pragma synchronous = off" : "pragma synchronous = full");
    db_run("pragma journal_mode = wal;"
           "create table if not exists keys (key blob primary key, "
           "fingerprint, token, until, response blob) without rowid");
    insert = db_prepare("insert or ignore into keys values "
                        "(?1, ?2, ?2, ?2, null)");
    finish = db_prepare("update keys set response = ?1, until = ?2 "
                        "where key = ?1 and token = ?2");
    drop = db_prepare("delete from keys where key = ?1");
    find = db_prepare("select response from keys where key = ?1");
    begin = db_prepare("begin immediate");
    commit = db_prepare("commit");
}

static void db_disconnect(void)
{
    sqlite3_stmt *s;

    while ((s = sqlite3_next_stmt(db, NULL)) != NULL)
        sqlite3_finalize(s);
    sqlite3_close(db);
}

static void db_remove(void)
{
    char path[PATH_LEN];

    file_path(path, folder, "group_sqlite-wal");
    file_path(path, folder, "group_sqlite-shm");
    file_path(db_path, folder, "group_sqlite");
}

static void db_open(void)
{
    db_remove();
    db_connect();
    db_disconnect();
}

static void db_step(sqlite3_stmt *s, int result)
{
    check(sqlite3_step(s) == result, "SQLite: a step");
    sqlite3_reset(s);
}

/* Runs a statement on the key of a number, which must be there. */
static void db_do(sqlite3_stmt *s, uint64_t number, int result)
{
    uint8_t key[KEY_LEN];

    make_key(key, number);
    sqlite3_bind_blob(s, 1, key, KEY_LEN, SQLITE_STATIC);
    if (sqlite3_bind_parameter_count(s) == 2)
        sqlite3_bind_int64(s, 2, (sqlite3_int64)mix(number));
    db_step(s, result);
    check(result == SQLITE_ROW || sqlite3_changes(db) == 1, "SQLite: a change");
}

static void db_command(uint64_t number)
{
    db_step(begin, SQLITE_DONE);
    if (drops(number))
        db_do(drop, number - LIVE, SQLITE_DONE);
    db_do(insert, number, SQLITE_DONE);
    db_step(commit, SQLITE_DONE);
    db_step(begin, SQLITE_DONE);
    db_do(finish, number, SQLITE_DONE);
    db_step(commit, SQLITE_DONE);
}

static void db_duplicate(uint64_t number)
{
    db_do(find, number, SQLITE_ROW);
}
#endif

/* -------------------------------------------------------------------- LMDB */
#ifdef BENCH_LMDB
#include <lmdb.h>

static MDB_env *env;
static MDB_dbi dbi;

static void lmdb_open(void)
{
    char path[PATH_LEN];
    MDB_txn *txn;

    file_path(path, folder, "group_lmdb-lock");
    file_path(path, folder, "group_lmdb");
    check(!mdb_env_create(&env) &&
              !mdb_env_set_mapsize(env, (size_t)1 << 28) &&
              !mdb_env_open(env, path, MDB_NOSUBDIR | MDB_NOSYNC, 0600) &&
              !mdb_txn_begin(env, NULL, 0, &txn) &&
              !mdb_dbi_open(txn, NULL, 0, &dbi) && !mdb_txn_commit(txn), path);
}

static void lmdb_put(MDB_txn *txn, uint64_t number, int is_finished)
{
    uint8_t bytes[KEY_LEN];
    struct value v = { .fingerprint = mix(number), .token = number };
    MDB_val key = { KEY_LEN, bytes }, value = { sizeof v, &v };

    make_key(bytes, number);
    if (is_finished)
        memcpy(v.response, bytes, KEY_LEN);
    check(!mdb_put(txn, dbi, &key, &value, is_finished ? 0 : MDB_NOOVERWRITE),
          "LMDB: put");
}

static void lmdb_command(uint64_t number)
{
    uint8_t bytes[KEY_LEN];
    MDB_val key = { KEY_LEN, bytes };
    MDB_txn *txn;

    check(!mdb_txn_begin(env, NULL, 0, &txn), "LMDB: begin");
    make_key(bytes, number - LIVE);
    check(!drops(number) || !mdb_del(txn, dbi, &key, NULL), "LMDB: delete");
    lmdb_put(txn, number, 0);
    check(!mdb_txn_commit(txn) && !mdb_txn_begin(env, NULL, 0, &txn),
          "LMDB: claim");
    lmdb_put(txn, number, 1);
    check(!mdb_txn_commit(txn), "LMDB: complete");
}

static void lmdb_duplicate(uint64_t number)
{
    uint8_t bytes[KEY_LEN];
    MDB_val key = { KEY_LEN, bytes }, value;
    MDB_txn *txn;

    make_key(bytes, number);
    check(!mdb_txn_begin(env, NULL, MDB_RDONLY, &txn) &&
              !mdb_get(txn, dbi, &key, &value), "LMDB: a duplicate");
    mdb_txn_abort(txn);
}
#endif

/* ----------------------------------------------------------------- RocksDB */
#ifdef BENCH_ROCKSDB
#include <rocksdb/c.h>

static rocksdb_t *rocks;
static rocksdb_writeoptions_t *writing;
static rocksdb_readoptions_t *reading;

static void rocks_open(void)
{
    rocksdb_options_t *options = rocksdb_options_create();
    char path[PATH_LEN], *error = NULL;

    file_path(path, folder, "group_rocksdb");
    rocksdb_destroy_db(options, path, &error);
    free(error);
    error = NULL;
    rocksdb_options_set_create_if_missing(options, 1);
    rocks = rocksdb_open(options, path, &error);
    check(!error, "RocksDB");
    rocksdb_options_destroy(options);
    writing = rocksdb_writeoptions_create();
    rocksdb_writeoptions_set_sync(writing, 1);
    reading = rocksdb_readoptions_create();
}

static void rocks_close(void)
{
    rocksdb_readoptions_destroy(reading);
    rocksdb_writeoptions_destroy(writing);
    rocksdb_close(rocks);
}

static void rocks_put(const uint8_t key[KEY_LEN], const struct value *v)
{
    char *error = NULL;

    rocksdb_put(rocks, writing, (const char *)key, KEY_LEN, (const char *)v,
                sizeof *v, &error);
    check(!error, "RocksDB: put");
}

static void rocks_command(uint64_t number)
{
    uint8_t key[KEY_LEN];
    struct value v = { .token = 1 };
    char *error = NULL;
    size_t len;

    make_key(key, number);
    check(!rocksdb_get(rocks, reading, (const char *)key, KEY_LEN, &len,
                       &error) && !error, "RocksDB: get");
    rocks_put(key, &v);
    memcpy(v.response, key, RESPONSE_LEN);
    rocks_put(key, &v);
}
#endif

/* --------------------------------------------------------------- measuring */
struct subject {
    const char *name;
    void (*open)(void), (*close)(void);
    void (*thread_begin)(void), (*thread_end)(void);
    void (*command)(uint64_t number);
    double budget, moonshot;        // with 16 threads: group's time to theirs
};

enum { GROUP };

static const struct subject subjects[] = {
    { "group", group_open, table_close, no_thread, no_thread, table_command,
      0, 0 },
    { "IDEM_EACH", each_open, table_close, no_thread, no_thread, table_command,
      1 / 3.5, 1 / 4. },
#ifdef BENCH_SQLITE
    { "SQLite", db_open, no_thread, db_connect, db_disconnect, db_command,
      1 / 8., 1 / 10. },
#endif
#ifdef BENCH_ROCKSDB
    { "RocksDB", rocks_open, rocks_close, no_thread, no_thread, rocks_command,
      1 / 1.5, 1 / 1.8 },
#endif
};

struct worker {
    pthread_t thread;
    const struct subject *subject;
    uint64_t done;
};

/* The number of the next key; 0: enough. */
static uint64_t next_number(void)
{
    uint64_t number;

    pthread_mutex_lock(&counting);
    number = stopped ? 0 : ++numbers;
    pthread_mutex_unlock(&counting);
    return number;
}

static void *work(void *arg)
{
    struct worker *w = (struct worker *)arg;
    uint64_t number;

    w->subject->thread_begin();
    while ((number = next_number()) != 0) {
        w->subject->command(number);
        w->done++;
    }
    w->subject->thread_end();
    return NULL;
}

/* Microseconds for each command */
static double measure(const struct subject *s, int threads, long ms)
{
    static struct worker workers[THREADS_MAX];
    struct timespec pause = { ms / 1000, ms % 1000 * 1000000 };
    uint64_t done = 0;
    double start;
    int i;

    s->open();
    stopped = 0;
    start = now_us();
    for (i = 0; i < threads; i++) {
        workers[i] = (struct worker){ .subject = s };
        check(pthread_create(&workers[i].thread, NULL, work, &workers[i]) == 0,
              "no thread");
    }
    nanosleep(&pause, NULL);
    pthread_mutex_lock(&counting);
    stopped = 1;
    pthread_mutex_unlock(&counting);
    for (i = 0; i < threads; i++) {
        pthread_join(workers[i].thread, NULL);
        done += workers[i].done;
    }
    start = now_us() - start;
    s->close();
    check(done > 0, "nothing was done");
    return start / (double)done;
}

static void compare(int threads, int turns, long ms)
{
    struct sample each[COUNT(subjects)], ratios[COUNT(subjects)];
    size_t i;
    int turn;

    memset(each, 0, sizeof each);
    memset(ratios, 0, sizeof ratios);
    for (turn = 0; turn < turns; turn++) {
        double us[COUNT(subjects)];
        for (i = 0; i < COUNT(subjects); i++) {
            size_t s = (i + (size_t)turn) % COUNT(subjects);
            us[s] = measure(&subjects[s], threads, ms);
        }
        for (i = 0; i < COUNT(subjects); i++) {
            sample_add(&each[i], 1e6 / us[i]);
            sample_add(&ratios[i], us[GROUP] / us[i]);
        }
    }
    for (i = 0; i < COUNT(subjects); i++)
        print_row(sample_median(&each[i]), 0, 0,
                  "M6, durable, %d thread%s: %s, commands a second", threads,
                  threads > 1 ? "s" : "", subjects[i].name);
    for (i = GROUP + 1; i < COUNT(subjects); i++)
        print_row(sample_median(&ratios[i]),
                  threads == 16 ? subjects[i].budget : 0,
                  threads == 16 ? subjects[i].moonshot : 0,
                  "M6, durable, %d thread%s: x %s", threads,
                  threads > 1 ? "s" : "", subjects[i].name);
}

/* -------------------------------------------------------- the bytes of W1 */
#if defined BENCH_SQLITE && defined BENCH_LMDB
/* Bytes that this process has handed to write calls, ever */
static uint64_t written(void)
{
    char line[128];
    unsigned long long bytes = 0;
    FILE *io = fopen("/proc/self/io", "r");

    while (io && fgets(line, sizeof line, io))
        if (sscanf(line, "wchar: %llu", &bytes) == 1)
            break;
    check(io && bytes, "/proc/self/io cannot be read");
    fclose(io);
    return bytes;
}

/* Makes LIVE keys known, then counts what COMMANDS write. */
static void count_bytes(const char *name, void (*command)(uint64_t number),
                        void (*duplicate)(uint64_t number))
{
    uint64_t number, before;
    int i;

    for (number = 0; number < LIVE; number++)
        command(number);
    before = written();
    for (i = 0; i < COMMANDS; i++)
        if (i % DUPLICATE_EVERY == DUPLICATE_EVERY - 1)
            duplicate(number - 1 - below(LIVE, mix((uint64_t)i)));
        else
            command(number++);
    print_row((double)(written() - before), 0, 0,
              "W1, %s: bytes of 1000 commands", name);
}

static void wear(void)
{
    db_remove();
    db_connect();
    count_bytes("SQLite", db_command, db_duplicate);
    lmdb_open();
    count_bytes("LMDB", lmdb_command, lmdb_duplicate);
}
#else
static void wear(void) { }
#endif

int main(int argc, char **argv)
{
    static const int threads[] = { 1, THREADS_MAX };
    int is_short = argc > 2;
    size_t i;

    if (argc < 2)
        fail("a folder is needed");
    snprintf(folder, sizeof folder, "%s", argv[argc - 1]);
    wears = strcmp(argv[1], "--wear") == 0;
    if (wears)
        wear();
    for (i = 0; i < COUNT(threads) && !wears; i++)
        compare(threads[i], is_short ? 1 : 7, is_short ? 200 : 1000);
    return 0;
}
