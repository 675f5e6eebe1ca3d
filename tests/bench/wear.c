/* SPDX-License-Identifier: 0BSD */
/*
 * Bytes that SQLite and LMDB write for W1 (journal.c): 128 live keys of 16
 * bytes, each claimed in one durable transaction and completed in another with
 * a response of 16 bytes; the claim deletes the oldest key; every tenth command
 * is a duplicate, which only reads.
 *
 *   build/bench_wear FOLDER
 *
 * Counted by the kernel (Linux), as bytes handed to write calls, checkpoints
 * included.  The same library writes the same number on every machine.  Nothing
 * is synced here: that takes seconds, and changes no byte that is written.
 */
#define _POSIX_C_SOURCE 200809L

#include "tests/bench/common.h"

#include <lmdb.h>
#include <sqlite3.h>

enum { LIVE = 128, COMMANDS = 1000, DUPLICATE_EVERY = 10 };

/* Bytes that this process has handed to write calls, ever */
static uint64_t written(void)
{
    char line[128];
    unsigned long long bytes = 0;
    FILE *file = fopen("/proc/self/io", "r");

    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "wchar: %llu", &bytes) == 1)
            break;
    check(file && bytes, "/proc/self/io cannot be read");
    fclose(file);
    return bytes;
}

/* ---------------------------------------------------------------------------
   SQLite: WAL, pages and checkpoints as they come
   ------------------------------------------------------------------------ */
static sqlite3 *db;
static sqlite3_stmt *add, *finish, *drop, *find;

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

/* Runs a statement on the key of a number, which must be there. */
static void step(sqlite3_stmt *s, uint64_t number, int result)
{
    uint8_t key[KEY_LEN];

    make_key(key, number);
    sqlite3_bind_blob(s, 1, key, KEY_LEN, SQLITE_STATIC);
    if (sqlite3_bind_parameter_count(s) == 2)
        sqlite3_bind_int64(s, 2, (sqlite3_int64)mix(number));
    check(sqlite3_step(s) == result, "SQLite");
    check(result == SQLITE_ROW || sqlite3_changes(db) == 1, "SQLite changes");
    sqlite3_reset(s);
}

static void sqlite_open(const char *folder)
{
    char path[PATH_LEN];

    file_path(path, folder, "wear.db-wal");
    file_path(path, folder, "wear.db-shm");
    file_path(path, folder, "wear.db");
    check(sqlite3_open(path, &db) == SQLITE_OK, path);
    db_run("pragma journal_mode = wal; pragma synchronous = off;"
           "create table keys (key blob primary key, fingerprint, token, "
           "until, response blob) without rowid");
    add = db_prepare("insert into keys values (?1, ?2, ?2, ?2, null)");
    finish = db_prepare("update keys set response = ?1, until = ?2 "
                        "where key = ?1 and token = ?2");
    drop = db_prepare("delete from keys where key = ?1");
    find = db_prepare("select response from keys where key = ?1");
}

static void sqlite_command(uint64_t number)
{
    db_run("begin immediate");
    if (number >= LIVE)
        step(drop, number - LIVE, SQLITE_DONE);
    step(add, number, SQLITE_DONE);
    db_run("commit");
    step(finish, number, SQLITE_DONE);
}

static void sqlite_duplicate(uint64_t number)
{
    step(find, number, SQLITE_ROW);
}

/* ---------------------------------------------------------------------------
   LMDB
   ------------------------------------------------------------------------ */
static MDB_env *env;
static MDB_dbi keys;

static void lmdb_open(const char *folder)
{
    char path[PATH_LEN];
    MDB_txn *txn;

    file_path(path, folder, "wear.mdb-lock");
    file_path(path, folder, "wear.mdb");
    check(mdb_env_create(&env) == 0 &&
              mdb_env_open(env, path, MDB_NOSUBDIR | MDB_NOSYNC, 0600) == 0 &&
              mdb_txn_begin(env, NULL, 0, &txn) == 0 &&
              mdb_dbi_open(txn, NULL, 0, &keys) == 0 &&
              mdb_txn_commit(txn) == 0, path);
}

static void lmdb_put(MDB_txn *txn, uint64_t number, int is_finished)
{
    uint8_t bytes[KEY_LEN];
    struct value v = { .fingerprint = mix(number), .token = number };
    MDB_val key = { KEY_LEN, bytes }, value = { sizeof v, &v };

    make_key(bytes, number);
    if (is_finished)
        memcpy(v.response, bytes, KEY_LEN);
    check(mdb_put(txn, keys, &key, &value, is_finished ? 0 : MDB_NOOVERWRITE)
              == 0, "LMDB: put");
}

static void lmdb_command(uint64_t number)
{
    uint8_t bytes[KEY_LEN];
    MDB_val key = { KEY_LEN, bytes };
    MDB_txn *txn;

    check(mdb_txn_begin(env, NULL, 0, &txn) == 0, "LMDB: begin");
    if (number >= LIVE) {
        make_key(bytes, number - LIVE);
        check(mdb_del(txn, keys, &key, NULL) == 0, "LMDB: delete");
    }
    lmdb_put(txn, number, 0);
    check(mdb_txn_commit(txn) == 0 && mdb_txn_begin(env, NULL, 0, &txn) == 0,
          "LMDB: claim");
    lmdb_put(txn, number, 1);
    check(mdb_txn_commit(txn) == 0, "LMDB: complete");
}

static void lmdb_duplicate(uint64_t number)
{
    uint8_t bytes[KEY_LEN];
    MDB_val key = { KEY_LEN, bytes }, value;
    MDB_txn *txn;

    make_key(bytes, number);
    check(mdb_txn_begin(env, NULL, MDB_RDONLY, &txn) == 0 &&
              mdb_get(txn, keys, &key, &value) == 0, "LMDB: a duplicate");
    mdb_txn_abort(txn);
}

/* ------------------------------------------------------------------------ */

/* Makes LIVE keys known, then counts what COMMANDS write. */
static void measure(const char *name, void (*command)(uint64_t number),
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

int main(int argc, char **argv)
{
    if (argc != 2)
        fail("a folder is needed");
    sqlite_open(argv[1]);
    measure("SQLite", sqlite_command, sqlite_duplicate);
    lmdb_open(argv[1]);
    measure("LMDB", lmdb_command, lmdb_duplicate);
    return 0;
}
