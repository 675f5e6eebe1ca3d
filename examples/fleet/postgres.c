/* SPDX-License-Identifier: 0BSD */
/* A fleet in PostgreSQL: each call is one statement.  NAME is a table, whose
 * comment is the mark; NAME_token has the tokens, NAME_floor the floors.
 * A row that is released stays for a while, with state 0: so a token is given
 * under the lock of its row.  A claim drops two rows that are over. */
#define _POSIX_C_SOURCE 200809L
#include "store.h"

#include <errno.h>
#include <libpq-fe.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STATEMENT = 12000, BIGINT = 20, TEXT = 25 };

/* --------------------------------------------------------------- statements */

/* In them @ is NAME, ~ the mark, % the time, :token an argument of store.h;
   numbers that they answer are results of idem.h.  The time is that at which it
   is asked for: a statement that waited for a lock sees it as it is then. */
#define OVER "(r.state = 0 OR r.until + r.retention <= %)"
#define SCOPE(id) "split_part(" id ", '#', 1)"
#define NUMBER(id) "split_part(" id ", '#', 2)"             /* '' if a key */
#define FLOOR(id) "coalesce((SELECT l.number FROM @_floor l" \
    " WHERE l.scope = " SCOPE(id) "), '')"
#define AS_COLUMN(name) ", r." #name
#define TOLD "%, r.id, encode(r.response, 'hex')" FLEET_FIELDS(AS_COLUMN)

/* Whether a number's epoch is over; whether one is not above the floor, which
   rows raise that are over, also before they are dropped. */
#define PAST "left(" NUMBER("r.id") ", 8) < left(" FLOOR("r.id") ", 8)"
#define OLD NUMBER(":id") " <> '' AND (" NUMBER(":id") " <= " FLOOR(":id") \
    " OR EXISTS (SELECT FROM @ o WHERE o.id >= :id AND o.id < " SCOPE(":id") \
    " || '$' AND o.state > 0 AND o.until + o.retention <= %))"

/* What to answer, 0 if it may be claimed. */
#define ANSWER "CASE WHEN r.id IS NULL OR " OVER " THEN CASE WHEN :age > 0 " \
    "AND (:age >= :retention OR :age >= % - :since) OR " OLD " THEN 7 ELSE 0 " \
    "END WHEN r.fingerprint <> :fingerprint THEN 6 WHEN r.state > 1 THEN 4 " \
    "WHEN " PAST " THEN 7 WHEN r.until > % THEN 5 " \
    "WHEN r.attempts >= :limit THEN 8 ELSE 0 END"
#define HELD "r.token = :token AND r.state = 1 AND NOT " OVER " AND NOT " PAST
#define CHANGE(how, error) "WITH done AS (UPDATE @ r SET " how " RETURNING 1)" \
    " SELECT CASE count(*) WHEN 0 THEN " error " ELSE 0 END FROM done"

static const char *const statements[FLEET_CALLS] = {
    // What may be claimed is looked at again when it is locked.  0: what came
    // since the statement began was in its way, but it cannot see it.  Rows go
    // a minute late: a statement under way may still have a token for one.
    [FLEET_CLAIM] = "WITH seen AS (SELECT " ANSWER " AS answer, r.*"
    "  FROM (SELECT) one LEFT JOIN @ r ON r.id = :id),"
    " claimed AS (INSERT INTO @ AS r (id, state, token, attempts, fingerprint,"
    "  until, retention, reserved) SELECT :id, 1, nextval('@_token'), 1,"
    "  :fingerprint, % + :lease, :retention, :reserved FROM seen WHERE"
    "  answer = 0 ON CONFLICT (id) DO UPDATE SET state = 1, code = 0, owed = 0,"
    "  token = nextval('@_token'), fingerprint = :fingerprint, attempts ="
    "  CASE WHEN " OVER " THEN 1 ELSE r.attempts + 1 END, until = % + :lease,"
    "  retention = :retention, reserved = :reserved, response = ''"
    "  WHERE " ANSWER " = 0 RETURNING r.*),"
    " dropped AS (DELETE FROM @ WHERE id IN (SELECT id FROM @ r"
    "  WHERE r.until + r.retention < (SELECT % - 60000) AND r.id <> :id"
    "  AND EXISTS (SELECT FROM claimed) ORDER BY r.until + r.retention LIMIT 2"
    "  FOR UPDATE SKIP LOCKED) RETURNING id, state),"
    " raised AS (INSERT INTO @_floor AS l"
    "  SELECT " SCOPE("id") ", max(" NUMBER("id") ") FROM (SELECT id FROM"
    "  dropped WHERE state > 0 UNION ALL SELECT left(id, -8) || '00000000'"
    "  FROM claimed) x WHERE " NUMBER("id") " > " FLOOR("id")
    "  GROUP BY 1 ORDER BY 1 ON CONFLICT (scope) DO UPDATE"
    "  SET number = greatest(l.number, excluded.number))"
    " SELECT answer, " TOLD " FROM (SELECT least(attempts, 2) AS answer, *"
    "  FROM claimed UNION ALL SELECT * FROM seen"
    "  WHERE NOT EXISTS (SELECT FROM claimed)) r",

    [FLEET_COMPLETE] = CHANGE("state = :state, code = :code, owed = :owed,"
    " response = decode(:response, 'hex'), until = %"
    " WHERE " HELD " AND length(:response) <= 2 * r.reserved",
    "CASE WHEN EXISTS (SELECT FROM @ r WHERE " HELD
    " AND length(:response) > 2 * r.reserved) THEN -2 ELSE -4 END"),

    [FLEET_RELEASE] = CHANGE("state = 0, until = % WHERE " HELD, "-4"),
    [FLEET_RENEW] = CHANGE("until = greatest(until, % + :lease) WHERE " HELD,
    "-4"),
    [FLEET_FIND] = "SELECT 0, " TOLD " FROM @ r WHERE r.id = :id",
    [FLEET_PENDING] = "SELECT 0, " TOLD " FROM @ r WHERE r.owed = 1 AND NOT "
    OVER " AND (r.until, r.token) > (SELECT coalesce(max(until), 0),"
    "  coalesce(max(token), 0) FROM @ WHERE token = :token AND state > 1)"
    " ORDER BY r.until, r.token LIMIT 1",
    [FLEET_DELIVERED] = CHANGE("owed = 0 WHERE r.token = :token"
    " AND r.state > 1 AND NOT " OVER, "-5")
};

/* Whoever opens first makes it; the others wait for that, and look then. */
static const char look[] =
    "BEGIN; SELECT pg_advisory_xact_lock(hashtext('idem fleet'));"
    "SELECT %, coalesce(to_regclass('@')::text, ''),"
    " coalesce(obj_description(to_regclass('@'), 'pg_class'), '')";
/* Tokens start above those of a table that was dropped. */
static const char make[] = "CREATE TABLE @ (id text COLLATE \"C\" PRIMARY KEY,"
    " state int NOT NULL, token bigint NOT NULL UNIQUE, attempts int NOT NULL,"
    " fingerprint bigint NOT NULL, until bigint NOT NULL,"
    " retention bigint NOT NULL, reserved int NOT NULL,"
    " code int NOT NULL DEFAULT 0, owed int NOT NULL DEFAULT 0,"
    " response bytea NOT NULL DEFAULT '');"
    "CREATE INDEX ON @ (until, token) WHERE owed = 1;"
    "CREATE INDEX ON @ ((until + retention));"
    "CREATE TABLE IF NOT EXISTS @_floor (scope text COLLATE \"C\" PRIMARY KEY,"
    " number text COLLATE \"C\" NOT NULL);"
    "CREATE SEQUENCE @_token OWNED BY @.token;"
    "SELECT setval('@_token', 1000 * %); COMMENT ON TABLE @ IS '~'";

/* ------------------------------------------------------------------ sending */

#define NAME(name, type) #name,
#define TYPE(name, type) type,
static const char *const names[] = { FLEET_ARGUMENTS(NAME, , ) };
static const Oid types[] = { FLEET_ARGUMENTS(TYPE, BIGINT, TEXT) };

/* Writes a statement out. */
static const char *write_out(const fleet *f, char *dst, const char *sql)
{
    static const char now[] =
        "(extract(epoch FROM clock_timestamp()) * 1000)::bigint";
    char *at = dst;

    for (; *sql; sql++) {
        int arg = *sql == ':' ? 0 : FLEET_ARGS;
        while (arg < FLEET_ARGS &&
               strncmp(sql + 1, names[arg], strlen(names[arg])) != 0)
            arg++;
        if (strchr("@~%", *sql))
            at += sprintf(at, "%s", *sql == '@' ? f->name
                                    : *sql == '~' ? f->mark : now);
        else if (arg < FLEET_ARGS)
            at += sprintf(at, "$%d", arg + 1);
        else
            *at++ = *sql;
        sql += arg < FLEET_ARGS ? strlen(names[arg]) : 0;
    }
    *at = 0;
    return dst;
}

/* Waits for the answer to what was sent, but not for ever; NULL if it failed.
   libpq's own waiting would not end where a server falls silent. */
static PGresult *await(PGconn *sql)
{
    struct pollfd readable = { .fd = PQsocket(sql), .events = POLLIN };
    PGresult *result = NULL, *next;

    do {
        while (PQisBusy(sql)) {
            int n = poll(&readable, 1, FLEET_TIMEOUT_MS);
            if (!n || (n < 0 && errno != EINTR) || !PQconsumeInput(sql)) {
                PQclear(result);
                return NULL;
            }
        }
        next = PQgetResult(sql);
        if (next)
            PQclear(result);
        result = next ? next : result;
    } while (next);
    return result;
}

/* Sends a statement; or several, without arguments.  NULL: *result is why. */
static PGresult *ask(fleet *f, PGconn *sql, const char *text,
                     const fleet_call *c, int *result)
{
    char statement[STATEMENT];
    const char *out = write_out(f, statement, text), *state, *why;
    int sent = c ? PQsendQueryParams(sql, out, FLEET_ARGS, types, c->arg, NULL,
                                     NULL, 0) : PQsendQuery(sql, out);
    PGresult *r = sent ? await(sql) : NULL;

    *result = IDEM_OK;
    if (PQresultStatus(r) == PGRES_TUPLES_OK ||
        PQresultStatus(r) == PGRES_COMMAND_OK)
        return r;
    state = PQresultErrorField(r, PG_DIAG_SQLSTATE);
    why = PQerrorMessage(sql);          // 42: another table, or other columns
    *result = state && !strncmp(state, "42", 2) ? IDEM_E_FORMAT
                                                : IDEM_E_STORAGE;
    fleet_fail(f, *result, "PostgreSQL: %s", *why ? why : "no answer");
    if ((!r || PQstatus(sql) != CONNECTION_OK) && sql == f->connection)
        fleet_close(f);
    PQclear(r);
    return NULL;
}

static int run(fleet *f, fleet_call *c)
{
    PGconn *sql = (PGconn *)(c->transaction ? c->transaction : f->connection);
    const char *told[FLEET_TOLD] = { "-5" };        // no row: no such key
    int result;
    PGresult *r = ask(f, sql, statements[c->what], c, &result);

    for (int n = 0; PQntuples(r) && n < PQnfields(r); n++)
        told[n] = PQgetvalue(r, 0, n);
    if (r)
        result = fleet_tell(c, told);
    PQclear(r);
    return c->what == FLEET_CLAIM && result == 0 ? IDEM_MORE : result;
}

/* ------------------------------------------------------------------ opening */

/* Takes the table that there is, or makes it: in one transaction. */
static int open_postgres(fleet *f)
{
    static const char *const keys[] = { "connect_timeout", "options", "dbname",
                                        NULL };
    const char *const values[] = { "5", "-c statement_timeout=4000 "
        "-c synchronous_commit=on -c default_transaction_isolation="
        "read\\ committed", f->url, NULL };
    PGconn *sql = PQconnectdbParams(keys, values, 1);
    PGresult *r;
    int result;

    f->connection = sql;
    if (PQstatus(sql) != CONNECTION_OK)
        return fleet_fail(f, IDEM_E_STORAGE, "PostgreSQL: %s",
                          PQerrorMessage(sql));
    r = ask(f, sql, look, NULL, &result);
    if (r && !*PQgetvalue(r, 0, 1)) {
        fleet_make_mark(f, strtoll(PQgetvalue(r, 0, 0), NULL, 10));
        PQclear(ask(f, sql, make, NULL, &result));
    } else if (r)
        result = fleet_take_mark(f, PQgetvalue(r, 0, 2));
    PQclear(r);
    if (result == IDEM_OK)
        PQclear(ask(f, sql, "COMMIT", NULL, &result));
    return result;
}

static void close_postgres(fleet *f)
{
    PQfinish((PGconn *)f->connection);
}

const fleet_store fleet_postgres = {
    .scheme = "postgres://", .open = open_postgres, .close = close_postgres,
    .call = run };
