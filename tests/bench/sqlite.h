/* SPDX-License-Identifier: 0BSD */
/* SQLite for a benchmark that has a check(), which ends it at a failure. */
#ifndef BENCH_SQLITE_H
#define BENCH_SQLITE_H

#include <sqlite3.h>

static sqlite3 *db;

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

#endif
