/* SPDX-License-Identifier: 0BSD */
/*
 * A journal in a file, beside the floor and beside SQLite (Debian:
 * libsqlite3-dev; left out where it is not).
 *
 *   build/bench_durable [--short] [folder]
 *                              the folder is where the files go, "build" by
 *                              default: a disk, not a RAM disk
 *
 *   M4  A durable claim and a durable completion with a 16-byte key, payload
 *       and response.  The floor: pwrite + fdatasync, twice, of as many bytes,
 *       into a file that is as large and full of zeros.  Then 64 in flight:
 *       claimed, synced, completed, synced.
 *   M5  Opening a file with so many finished keys that the system has in
 *       memory, in processor time, and how often it reads the journal.
 *   Q1  50,000 keys of 100 senders with a quota, one of which floods: what a
 *       refused command costs, beside a duplicate; in RAM, and in a file, which
 *       is not read.
 *
 * Disks vary by the minute, so all take turns, and only figures of the same
 * turn make a ratio; medians.  Wrong answers fail it, times never do.
 */
#define _POSIX_C_SOURCE 200809L

#define IDEM_FILE_STORAGE
#define IDEM_IMPLEMENTATION
#include "idem.h"

#include "tests/bench/common.h"

#include <fcntl.h>
#include <unistd.h>
#ifdef BENCH_SQLITE
#include <sqlite3.h>
#endif

enum {
    RESPONSE_LEN = 16,
    SECTOR_SIZE = 262144,
    DAY_MS = 86400000,
    M4_KEYS = 10000,
    DEPTH = 64,                     // in flight
    ONE_BY_ONE = 16,                // commands in a turn
    READ_AHEAD = 65536,             // memory beyond what a table needs
    SENDERS = 100,
    Q1_KEYS = 50000,
    QUOTA = Q1_KEYS / SENDERS
};

static void check(int is_right, const char *what)
{
    if (!is_right)
        fail("%s", what);
}

static void file_path(char path[512], const char *folder, const char *name)
{
    snprintf(path, 512, "%s/bench_%s", folder, name);
    unlink(path);
}

/* ---------------------------------------------------------------------------
   idem.h, with callbacks that count
   ------------------------------------------------------------------------ */
struct device {
    char path[512];
    idem_file file;
    idem_storage storage;           // the file's, counted
    uint32_t *read;                 // bytes, of each sector
    uint64_t written;               // bytes
    idem_config config;
    idem_table table;
    void *memory;
    size_t memory_size;
    uint64_t number;                // next key
};

static int counted_read(void *ctx, uint32_t at, void *dst, uint32_t len)
{
    struct device *d = ctx;

    d->read[at / SECTOR_SIZE] += len;
    return d->file.storage.read(d->file.storage.ctx, at, dst, len);
}

static int counted_prog(void *ctx, uint32_t at, const void *src, uint32_t len)
{
    struct device *d = ctx;

    d->written += len;
    return d->file.storage.prog(d->file.storage.ctx, at, src, len);
}

static int counted_sync(void *ctx)
{
    struct device *d = ctx;

    return d->file.storage.sync(d->file.storage.ctx);
}

static void device_open_file(struct device *d, const char *folder,
                             const char *name, int durability)
{
    uint32_t sectors = IDEM_SECTORS(d->config.capacity + d->config.senders,
                                    KEY_LEN, RESPONSE_LEN, 0, SECTOR_SIZE, 1);

    file_path(d->path, folder, name);
    check(idem_file_open(&d->file, d->path, SECTOR_SIZE, sectors) == IDEM_OK,
          "cannot open the file");
    d->storage = d->file.storage;
    d->storage.ctx = d;
    d->storage.read = counted_read;
    d->storage.prog = counted_prog;
    d->storage.sync = counted_sync;
    d->config.storage = &d->storage;
    d->config.durability = (uint8_t)durability;
    d->read = calloc(sectors, sizeof *d->read);
    check(d->read != NULL, "out of memory");
}

/* Without a folder it is in RAM; with senders they have a quota. */
static void device_open(struct device *d, const char *folder, const char *name,
                        uint32_t capacity, uint32_t senders, int durability)
{
    *d = (struct device){ .config = {
        .capacity = capacity, .key_max = KEY_LEN, .response_max = RESPONSE_LEN,
        .senders = senders, .quota = senders ? QUOTA : 0 } };
    memset(d->config.secret, 7, sizeof d->config.secret);
    if (folder)
        device_open_file(d, folder, name, durability);
    d->memory_size = READ_AHEAD + IDEM_SENDERS_MEMORY_SIZE(senders) +
        IDEM_JOURNAL_MEMORY_SIZE(capacity, KEY_LEN, RESPONSE_LEN, 0, 1);
    d->memory = malloc(d->memory_size);
    check(d->memory && idem_open(&d->table, &d->config, d->memory,
                                 d->memory_size, 0) == IDEM_OK,
          "cannot open the table");
}

static void device_close(struct device *d)
{
    check(idem_check(&d->table) == 0, "idem_check complains");
    if (d->read) {
        idem_file_close(&d->file);
        unlink(d->path);
    }
    free(d->memory);
    free(d->read);
}

/* The time of a command: after as many as there are slots the oldest is over. */
static uint32_t device_now(const struct device *d)
{
    return (uint32_t)d->number * (DAY_MS / d->config.capacity);
}

/* Senders, if there are any, send by turns. */
static int device_begin(struct device *d, uint64_t number, idem_claim *claim)
{
    uint8_t key[KEY_LEN], response[RESPONSE_LEN];
    uint8_t sender = (uint8_t)(number % SENDERS);
    idem_request request = { .key = key, .key_len = KEY_LEN, .payload = key,
                             .payload_len = KEY_LEN };
    idem_reply reply = { .buffer = response, .buffer_size = RESPONSE_LEN };
    int result;

    make_key(key, number);
    if (d->config.senders) {
        request.scope = &sender;
        request.scope_len = 1;
        request.key_len--;
    }
    result = idem_begin(&d->table, claim, &reply, &request, device_now(d));
    check(result != IDEM_REPLAY || memcmp(response, key, RESPONSE_LEN) == 0,
          "another response");
    return result;
}

static void device_complete(struct device *d, uint64_t number,
                            const idem_claim *claim)
{
    uint8_t response[KEY_LEN];
    idem_outcome outcome = { .response = response,
                             .response_len = RESPONSE_LEN };

    make_key(response, number);
    check(idem_complete(&d->table, claim, &outcome, device_now(d)) == IDEM_OK,
          "complete");
}

static void device_sync(struct device *d)
{
    check(!d->config.storage || idem_sync(&d->table) == IDEM_OK, "sync");
}

static void device_commands(struct device *d, int count)
{
    idem_claim claims[DEPTH];
    int i;

    for (i = 0; i < count; i++)
        check(device_begin(d, d->number + (uint64_t)i, &claims[i]) ==
                  IDEM_EXECUTE, "begin");
    device_sync(d);
    for (i = 0; i < count; i++)
        device_complete(d, d->number + (uint64_t)i, &claims[i]);
    device_sync(d);
    d->number += (uint64_t)count;
}

/* ---------------------------------------------------------------------------
   Who takes part in M4: each executes so many commands, durable together
   ------------------------------------------------------------------------ */
static struct device each, batch;

static void run_each(int count)
{
    device_commands(&each, count);
}

static void run_batch(int count)
{
    device_commands(&batch, count);
}

static struct {
    int fd;
    uint32_t at, size;
} bare;

static void bare_open(const char *folder, uint32_t size)
{
    static const uint8_t zeros[SECTOR_SIZE];
    char path[512];
    uint32_t at;

    file_path(path, folder, "bare");
    bare.fd = open(path, O_RDWR | O_CREAT, 0600);
    bare.size = size;
    for (at = 0; at < size; at += sizeof zeros)
        check(pwrite(bare.fd, zeros, sizeof zeros, at) ==
                  (ssize_t)sizeof zeros, "cannot write");
    check(fsync(bare.fd) == 0, "cannot sync");
    unlink(path);
}

static void bare_write(uint32_t len)
{
    static const uint8_t bytes[64] = { 1 };

    if (bare.at + len > bare.size)
        bare.at = 0;
    check(pwrite(bare.fd, bytes, len, bare.at) == (ssize_t)len &&
              fdatasync(bare.fd) == 0, "cannot write");
    bare.at += len;
}

static void run_bare(int count)
{
    for (; count > 0; count--) {
        bare_write(36);
        bare_write(26);
    }
}

#ifdef BENCH_SQLITE
/* In WAL mode with synchronous=FULL; those in flight are one transaction.  It
   keeps of a key what idem.h keeps, and looks a token up before it completes. */
static sqlite3 *db;
static sqlite3_stmt *insert, *finish;
static uint64_t db_number;

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

static void db_open(const char *folder)
{
    char path[512];

    file_path(path, folder, "sqlite.db");
    check(sqlite3_open(path, &db) == SQLITE_OK, path);
    db_run("pragma journal_mode = wal; pragma synchronous = full;"
           "create table keys (key blob primary key, fingerprint, token, "
           "until, response blob) without rowid");
    insert = db_prepare("insert or ignore into keys values (?1, ?2, ?2, ?2, "
                        "null)");
    finish = db_prepare("update keys set response = ?1, until = ?2 "
                        "where key = ?1 and token = ?2");
}

static void db_close(const char *folder)
{
    char path[512];

    sqlite3_finalize(insert);
    sqlite3_finalize(finish);
    sqlite3_close(db);
    file_path(path, folder, "sqlite.db");
}

static void db_change(sqlite3_stmt *s, int count)
{
    int i;

    db_run("begin immediate");
    for (i = 0; i < count; i++) {
        uint64_t number = db_number + (uint64_t)i;
        uint8_t key[KEY_LEN];
        make_key(key, number);
        sqlite3_bind_blob(s, 1, key, KEY_LEN, SQLITE_STATIC);
        sqlite3_bind_int64(s, 2, (sqlite3_int64)mix(number));
        check(sqlite3_step(s) == SQLITE_DONE && sqlite3_changes(db) == 1,
              "SQLite");
        sqlite3_reset(s);
    }
    db_run("commit");
}

static void run_sqlite(int count)
{
    db_change(insert, count);
    db_change(finish, count);
    db_number += (uint64_t)count;
}
#endif

struct subject {
    const char *name;
    void (*run)(int count);
    int depth;
    double budget, moonshot;        // times the floor
};

static const struct subject subjects[] = {
    { "two bare writes", run_bare, 1, 0, 0 },
    { "one at a time", run_each, 1, 1.05, 1.00 },
    { "64 in flight", run_batch, DEPTH, 0.03, 0.02 },
#ifdef BENCH_SQLITE
    { "SQLite, one at a time", run_sqlite, 1, 0, 0 },
    { "SQLite, 64 in flight", run_sqlite, DEPTH, 0, 0 },
#endif
};

/* Microseconds of a command of each: those that go one by one change places
   after each command, and their medians are what the turn has to say. */
static void take_turn(double us[COUNT(subjects)])
{
    struct sample samples[COUNT(subjects)];
    size_t i, s;

    memset(samples, 0, sizeof samples);
    for (i = 0; i < ONE_BY_ONE * COUNT(subjects); i++) {
        const struct subject *subject;
        double start;
        s = (i + i / COUNT(subjects)) % COUNT(subjects);
        subject = &subjects[s];
        if (subject->depth > 1 && samples[s].count == 4)
            continue;
        start = now_us();
        subject->run(subject->depth);
        sample_add(&samples[s], (now_us() - start) / subject->depth);
    }
    for (s = 0; s < COUNT(subjects); s++)
        us[s] = sample_median(&samples[s]);
}

static void measure_m4(const char *folder, int turns)
{
    static struct sample us[COUNT(subjects)], ratios[COUNT(subjects)];
    double turn_us[COUNT(subjects)];
    size_t s;
    int i;

    device_open(&each, folder, "each", M4_KEYS, 0, IDEM_EACH);
    device_open(&batch, folder, "batch", M4_KEYS, 0, IDEM_BATCH);
    bare_open(folder, SECTOR_SIZE * each.storage.sector_count);
#ifdef BENCH_SQLITE
    db_open(folder);
#endif
    for (i = -1; i < turns; i++) {
        take_turn(turn_us);
        for (s = 0; i >= 0 && s < COUNT(subjects); s++) {   // first: warms up
            sample_add(&us[s], turn_us[s]);
            sample_add(&ratios[s], turn_us[s] / turn_us[0]);
        }
    }
    print_row(sample_median(&us[0]), 0, 0, "M4, durable: two bare writes, us");
    for (s = 1; s < COUNT(subjects); s++)
        print_row(sample_median(&ratios[s]), subjects[s].budget,
                  subjects[s].moonshot, "M4, durable: %s, x that",
                  subjects[s].name);
    device_close(&each);
    device_close(&batch);
    close(bare.fd);
#ifdef BENCH_SQLITE
    db_close(folder);
#endif
}

/* ---------------------------------------------------------------------------
   M5
   ------------------------------------------------------------------------ */
static void fill(struct device *d, uint32_t keys)
{
    idem_claim claim;

    for (; d->number < keys; d->number++) {
        check(device_begin(d, d->number, &claim) == IDEM_EXECUTE, "begin");
        device_complete(d, d->number, &claim);
    }
    device_sync(d);
}

/* How often the sector was read that was read most */
static double most_read(const struct device *d)
{
    uint32_t most = 0, i;

    for (i = 0; i < d->storage.sector_count; i++)
        if (d->read[i] > most)
            most = d->read[i];
    return (double)most / SECTOR_SIZE;
}

static void measure_m5(const char *folder, uint32_t keys, int times,
                       double budget, double moonshot)
{
    static struct device d;
    struct sample ms = { .count = 0 };
    double us;
    int i;

    device_open(&d, folder, "open", keys, 0, IDEM_BATCH);
    us = clock_us(CLOCK_PROCESS_CPUTIME_ID);
    fill(&d, keys);
    us = clock_us(CLOCK_PROCESS_CPUTIME_ID) - us;
    for (i = 0; i < times; i++) {
        double start = clock_us(CLOCK_PROCESS_CPUTIME_ID);
        idem_claim claim;
        memset(d.read, 0, d.storage.sector_count * sizeof *d.read);
        check(idem_open(&d.table, &d.config, d.memory, d.memory_size,
                        device_now(&d)) == IDEM_OK, "cannot open again");
        sample_add(&ms, (clock_us(CLOCK_PROCESS_CPUTIME_ID) - start) / 1000);
        check(d.table.used == keys, "a key is missing");
        check(device_begin(&d, keys / 2 + below(keys / 2, mix((uint64_t)i)),
                           &claim) == IDEM_REPLAY, "a duplicate");
    }
    print_row(sample_median(&ms), budget, moonshot,
              "M5, opening %u keys, warm file, ms", (unsigned)keys);
    print_row(most_read(&d), 2, 1,
              "M5, opening %u keys: times the journal is read",
              (unsigned)keys);
    print_row(us / keys, 0, 0, "M5, writing %u keys, us for each",
              (unsigned)keys);
    print_row((double)d.written / keys, 0, 0,
              "M5, writing %u keys, bytes for each", (unsigned)keys);
    device_close(&d);
}

/* ---------------------------------------------------------------------------
   Q1
   ------------------------------------------------------------------------ */

/* Microseconds that commands of one sender take, all of one answer: some of its
   numbers by turns */
static double flood(struct device *d, uint64_t first, uint64_t some, int answer)
{
    double start = clock_us(CLOCK_PROCESS_CPUTIME_ID);
    idem_claim claim;
    uint64_t i;

    for (i = 0; i < Q1_KEYS; i++)
        check(device_begin(d, (first + i % some) * SENDERS, &claim) == answer,
              "Q1: another answer");
    return clock_us(CLOCK_PROCESS_CPUTIME_ID) - start;
}

/* One slot more than keys: the table is not full. */
static void measure_q1(const char *folder, const char *where)
{
    static struct device d;
    struct sample ratios = { .count = 0 };
    int turn;

    device_open(&d, folder, "q1", Q1_KEYS + 1, SENDERS, IDEM_BATCH);
    fill(&d, Q1_KEYS);
    if (folder)
        memset(d.read, 0, d.storage.sector_count * sizeof *d.read);
    for (turn = 0; turn < 11; turn++) {
        double duplicate = flood(&d, 0, QUOTA, IDEM_REPLAY);
        sample_add(&ratios,
                   flood(&d, Q1_KEYS, Q1_KEYS, IDEM_E_FULL) / duplicate);
    }
    check(!folder || most_read(&d) == 0, "Q1: the storage was read");
    print_row(sample_median(&ratios), 2, 0,
              "Q1, %s, refused by the quota: x a duplicate", where);
    device_close(&d);
}

int main(int argc, char **argv)
{
    const char *folder = "build";
    int is_short = 0, i;

    for (i = 1; i < argc; i++)
        if (strcmp(argv[i], "--short") == 0)
            is_short = 1;
        else
            folder = argv[i];
    measure_q1(NULL, "in RAM");
    measure_q1(folder, "in a file");
    measure_m4(folder, is_short ? 3 : 31);
    measure_m5(folder, 100000, is_short ? 5 : 31, 10, 6);
    if (!is_short)
        measure_m5(folder, 1000000, 5, 0, 0);
    return 0;
}
