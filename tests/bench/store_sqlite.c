/* SPDX-License-Identifier: 0BSD */
/* SQLite (libsqlite3-dev) in WAL mode with synchronous=FULL: those in flight
   are one transaction. */
#define _POSIX_C_SOURCE 200809L

#include "tests/bench/store.h"

#include <sqlite3.h>

static sqlite3 *db;
static sqlite3_stmt *insert, *look, *finish;

static void run(const char *sql)
{
    if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK)
        fail("SQLite: %s", sqlite3_errmsg(db));
}

static sqlite3_stmt *prepare(const char *sql)
{
    sqlite3_stmt *s;

    if (sqlite3_prepare_v2(db, sql, -1, &s, NULL) != SQLITE_OK)
        fail("SQLite: %s", sqlite3_errmsg(db));
    return s;
}

/* Runs a statement that has no rows; returns how many it changed. */
static int change(sqlite3_stmt *s)
{
    if (sqlite3_step(s) != SQLITE_DONE)
        fail("SQLite: %s", sqlite3_errmsg(db));
    sqlite3_reset(s);
    return sqlite3_changes(db);
}

static const char *open_sqlite(const char *folder)
{
    char path[600];

    snprintf(path, sizeof path, "%s/keys.db", folder);
    if (sqlite3_open(path, &db) != SQLITE_OK)
        fail("SQLite: %s", sqlite3_errmsg(db));
    run("pragma journal_mode = wal; pragma synchronous = full;"
        "create table if not exists keys (key blob primary key, value blob) "
        "without rowid");
    insert = prepare("insert or ignore into keys values (?, ?)");
    look = prepare("select value from keys where key = ?");
    finish = prepare("update keys set value = ?2 where key = ?1");
    return NULL;
}

static void close_sqlite(void)
{
    sqlite3_finalize(insert);
    sqlite3_finalize(look);
    sqlite3_finalize(finish);
    sqlite3_close(db);
}

static void bind(sqlite3_stmt *s, const struct job *job, const struct value *v)
{
    sqlite3_bind_blob(s, 1, job->key, KEY_LEN, SQLITE_STATIC);
    if (v)
        sqlite3_bind_blob(s, 2, v, sizeof *v, SQLITE_STATIC);
}

/* Reads the value of a key that is there. */
static void get(struct value *v, const struct job *job)
{
    bind(look, job, NULL);
    if (sqlite3_step(look) != SQLITE_ROW ||
        sqlite3_column_bytes(look, 0) != (int)sizeof *v)
        fail("SQLite: %s", sqlite3_errmsg(db));
    memcpy(v, sqlite3_column_blob(look, 0), sizeof *v);
    sqlite3_reset(look);
}

static void begin_sqlite(struct job *jobs, int count)
{
    int i;

    run("begin immediate");
    for (i = 0; i < count; i++) {
        struct value v = value_claim(&jobs[i]);
        bind(insert, &jobs[i], &v);
        if (!change(insert)) {
            get(&v, &jobs[i]);
            value_answer(&v, &jobs[i]);
        }
    }
    run("commit");
}

static void complete_sqlite(struct job *jobs, int count)
{
    int i;

    run("begin immediate");
    for (i = 0; i < count; i++) {
        struct value v;
        get(&v, &jobs[i]);
        if (value_complete(&v, &jobs[i])) {
            bind(finish, &jobs[i], &v);
            change(finish);
        }
    }
    run("commit");
}

const struct store sqlite_store = { "SQLite", open_sqlite, close_sqlite,
                                    begin_sqlite, complete_sqlite,
                                    self_written };
