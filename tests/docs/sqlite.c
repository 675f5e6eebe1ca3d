/* SPDX-License-Identifier: 0BSD */
/* Where no library is needed: the effect is in a database, and the key goes in
   its transaction.  A copy that dies before the commit has done nothing. */
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

static int sql(sqlite3 *db, const char *text)
{
    return sqlite3_exec(db, text, NULL, NULL, NULL) == SQLITE_OK;
}

/* True if the key was not there. */
static int remember(sqlite3 *db, const char *key)
{
    sqlite3_stmt *s;
    int changed = -1;

    if (sqlite3_prepare_v2(db, "INSERT INTO done(key, answer) VALUES (?1, "
                               "'poured') ON CONFLICT DO NOTHING", -1, &s,
                           NULL) == SQLITE_OK) {
        sqlite3_bind_text(s, 1, key, -1, SQLITE_STATIC);
        if (sqlite3_step(s) == SQLITE_DONE)
            changed = sqlite3_changes(db);
    }
    sqlite3_finalize(s);
    return changed;
}

/* 1 executed, 0 done before, -1 nothing was done; dies: before the commit. */
static int pour(sqlite3 *db, const char *key, int dies)
{
    int is_new;

    if (!sql(db, "BEGIN IMMEDIATE"))
        return -1;
    is_new = remember(db, key);
    if (is_new == 1 && sql(db, "UPDATE tank SET ml = ml - 5") && !dies &&
        sql(db, "COMMIT"))
        return 1;
    sql(db, "ROLLBACK");
    return is_new == 0 ? 0 : -1;
}

static int ml(sqlite3 *db)
{
    sqlite3_stmt *s;
    int left = -1;

    if (sqlite3_prepare_v2(db, "SELECT ml FROM tank", -1, &s, NULL) ==
            SQLITE_OK && sqlite3_step(s) == SQLITE_ROW)
        left = sqlite3_column_int(s, 0);
    sqlite3_finalize(s);
    return left;
}

int main(void)
{
    sqlite3 *db;
    int right;

    if (sqlite3_open(":memory:", &db) != SQLITE_OK ||
        !sql(db, "CREATE TABLE done(key TEXT PRIMARY KEY, answer TEXT);"
                 "CREATE TABLE tank(ml INTEGER);"
                 "INSERT INTO tank VALUES (100)"))
        return 1;
    right = pour(db, "42", 1) == -1 && ml(db) == 100 &&
            pour(db, "42", 0) == 1 && pour(db, "42", 0) == 0 &&
            pour(db, "43", 0) == 1 && ml(db) == 90;
    printf("%d ml left\n", ml(db));
    sqlite3_close(db);
    return !right;
}
