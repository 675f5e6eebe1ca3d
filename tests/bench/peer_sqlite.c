/* SPDX-License-Identifier: 0BSD */
/* SQLite (libsqlite3-dev) in memory: prepared statements on one table without
   rowid, each a transaction of its own. */
#define _POSIX_C_SOURCE 200809L

#include "tests/bench/subject.h"

#include <sqlite3.h>

static sqlite3 *db;
static sqlite3_stmt *insert, *look, *finish, *drop, *count;

static sqlite3_stmt *prepare(const char *sql)
{
    sqlite3_stmt *s;

    if (sqlite3_prepare_v2(db, sql, -1, &s, NULL) != SQLITE_OK)
        fail("SQLite: %s", sqlite3_errmsg(db));
    return s;
}

/* Steps a statement to its next row (1) or its end (0). */
static int step(sqlite3_stmt *s)
{
    int result = sqlite3_step(s);

    if (result != SQLITE_ROW && result != SQLITE_DONE)
        fail("SQLite: %s", sqlite3_errmsg(db));
    return result == SQLITE_ROW;
}

static void bind_bytes(sqlite3_stmt *s, int at, const void *bytes, int len)
{
    sqlite3_bind_blob(s, at, bytes, len, SQLITE_STATIC);
}

static void mem_open(size_t keys, uint32_t retention_ms)
{
    (void)keys;
    peer_open(retention_ms);
    if (sqlite3_open(":memory:", &db) != SQLITE_OK ||
        sqlite3_exec(db,
                     "create table keys (key blob primary key, fingerprint int,"
                     " status int, token int, until int, attempts int, code "
                     "int, response blob) without rowid;"
                     "create index by_until on keys (until);",
                     NULL, NULL, NULL) != SQLITE_OK)
        fail("SQLite: %s", sqlite3_errmsg(db));
    insert = prepare("insert or ignore into keys values (?, ?, 1, ?, ?, 1, 0, "
                     "null)");
    look = prepare("select fingerprint, status, until, response from keys "
                   "where key = ?");
    finish = prepare("update keys set status = 2, until = ?, response = ? "
                     "where key = ? and token = ? and status = 1");
    drop = prepare("delete from keys where until <= ? and status <> 1");
    count = prepare("select count(*) from keys");
}

static void mem_close(void)
{
    sqlite3_finalize(insert);
    sqlite3_finalize(look);
    sqlite3_finalize(finish);
    sqlite3_finalize(drop);
    sqlite3_finalize(count);
    sqlite3_close(db);
}

/* The answer about a key that is there.  What is over is not looked for: no
   lease ends in these workloads. */
static int again(unsigned char *response, const struct command *c,
                 uint64_t fingerprint)
{
    int result = IDEM_BUSY;

    bind_bytes(look, 1, c->key, KEY_LEN);
    if (!step(look))
        fail("SQLite: a key that is there is not found");
    if ((uint64_t)sqlite3_column_int64(look, 0) != fingerprint)
        result = IDEM_MISMATCH;
    else if (sqlite3_column_int(look, 1) != IDEM_IN_PROGRESS) {
        memcpy(response, sqlite3_column_blob(look, 3),
               (size_t)sqlite3_column_bytes(look, 3));
        result = IDEM_REPLAY;
    }
    sqlite3_reset(look);
    return result;
}

static int mem_begin(struct ticket *ticket, unsigned char *response,
                     const struct command *c, uint32_t now_ms)
{
    uint64_t fingerprint = hash_payload(c->payload);

    ticket->token = ++entry_token;
    bind_bytes(insert, 1, c->key, KEY_LEN);
    sqlite3_bind_int64(insert, 2, (sqlite3_int64)fingerprint);
    sqlite3_bind_int64(insert, 3, (sqlite3_int64)ticket->token);
    sqlite3_bind_int64(insert, 4, (sqlite3_int64)now_ms + LEASE_MS);
    step(insert);
    sqlite3_reset(insert);
    return sqlite3_changes(db) ? IDEM_EXECUTE
                               : again(response, c, fingerprint);
}

static int mem_complete(const struct ticket *ticket, const struct command *c,
                        uint32_t now_ms)
{
    sqlite3_bind_int64(finish, 1, (sqlite3_int64)now_ms + entry_retention_ms);
    bind_bytes(finish, 2, c->response, RESPONSE_LEN);
    bind_bytes(finish, 3, c->key, KEY_LEN);
    sqlite3_bind_int64(finish, 4, (sqlite3_int64)ticket->token);
    step(finish);
    sqlite3_reset(finish);
    return sqlite3_changes(db) ? IDEM_OK : IDEM_E_FENCED;
}

static int mem_known(const struct command *c)
{
    int known;

    bind_bytes(look, 1, c->key, KEY_LEN);
    known = step(look);
    sqlite3_reset(look);
    return known;
}

static void mem_expire(uint32_t now_ms)
{
    sqlite3_bind_int64(drop, 1, (sqlite3_int64)now_ms);
    step(drop);
    sqlite3_reset(drop);
}

static size_t mem_live(uint32_t now_ms)
{
    size_t live;

    mem_expire(now_ms);
    step(count);
    live = (size_t)sqlite3_column_int64(count, 0);
    sqlite3_reset(count);
    return live;
}

static size_t mem_bytes(void)
{
    return (size_t)sqlite3_memory_used();
}

const struct subject sqlite_subject = {
    "SQLite :memory:", mem_open, mem_close, mem_begin, mem_complete, mem_known,
    mem_expire, mem_live, mem_bytes, 16 };
