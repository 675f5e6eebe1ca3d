/* SPDX-License-Identifier: 0BSD */
/* Connections to PostgreSQL: opening, and waiting for answers. */
#define _POSIX_C_SOURCE 200809L
#include "postgres.h"
#include "postgres_sql.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------ sending */

/* Waits until more can be sent or was received, but not for ever: libpq's own
   waiting would not end where a server falls silent.  False if it failed. */
static int wait_for(const fleet *f, PGconn *sql, short events)
{
    struct pollfd ready = { .fd = PQsocket(sql), .events = events };
    int n = poll(&ready, 1, f->timeout_ms);

    return n && (n > 0 || errno == EINTR) && PQconsumeInput(sql);
}

/* Sends the rest, and waits for the answer; NULL if it failed. */
static PGresult *await(const fleet *f, PGconn *sql)
{
    PGresult *result = NULL, *next;
    int left;

    while ((left = PQflush(sql)) != 0)
        if (left < 0 || !wait_for(f, sql, POLLIN | POLLOUT))
            return NULL;
    do {
        while (PQisBusy(sql))
            if (!wait_for(f, sql, POLLIN)) {
                PQclear(result);
                return NULL;
            }
        next = PQgetResult(sql);
        if (next)
            PQclear(result);
        result = next ? next : result;
    } while (next);
    return result;
}

/* What an error of the server means here, by its SQLSTATE. */
static int meaning(const char *state)
{
    if (!strcmp(state, "40001") || !strcmp(state, "40P01"))
        return IDEM_MORE;               // a deadlock, or another was first
    if (!strcmp(state, "26000") || !strcmp(state, "42P05"))
        return IDEM_E_STORAGE;          // a pooler has changed the session
    if (!strcmp(state, "53100"))
        return IDEM_E_FULL;
    return strncmp(state, "42", 2) ? IDEM_E_STORAGE : IDEM_E_FORMAT;
}

/* Takes the answer to what was sent.  NULL: *result is why.  A connection that
   broke, and a server that is a replica now, are left. */
static PGresult *take(fleet *f, PGconn *sql, int sent, int *result)
{
    connection *c = (connection *)f->connection;
    PGresult *r = sent ? await(f, sql) : NULL;
    const char *state = PQresultErrorField(r, PG_DIAG_SQLSTATE);
    const char *why = PQerrorMessage(sql);

    *result = IDEM_OK;
    if (PQresultStatus(r) == PGRES_TUPLES_OK ||
        PQresultStatus(r) == PGRES_COMMAND_OK)
        return r;
    *result = state ? meaning(state) : IDEM_E_STORAGE;
    fleet_fail(f, *result, "PostgreSQL: %s", *why ? why : "no answer");
    if (sql == c->sql && (!r || PQstatus(sql) != CONNECTION_OK ||
                          (state && (!strcmp(state, "25006") ||
                                     *result == IDEM_E_STORAGE))))
        fleet_close(f);
    PQclear(r);
    return NULL;
}

/* Sends one or several statements that take nothing. */
static PGresult *ask(fleet *f, const char *text, int *result)
{
    connection *c = (connection *)f->connection;
    char out[STATEMENT];

    snprintf(out, sizeof out, text, c->table, c->tokens);
    return take(f, c->sql, PQsendQuery(c->sql, out), result);
}

PGresult *fleet_postgres_run(fleet *f, void *transaction, int which, int count,
                             const char *const *values, int *result)
{
    connection *c = (connection *)f->connection;
    char out[STATEMENT], name[16];
    int sent;

    snprintf(out, sizeof out, statements[which], c->table, c->tokens);
    if (transaction) {
        sent = PQsendQueryParams((PGconn *)transaction, out, count, NULL,
                                 values, NULL, NULL, 0);
        return take(f, (PGconn *)transaction, sent, result);
    }
    sprintf(name, "idem_%d", which);
    if (!(c->prepared >> which & 1)) {
        PGresult *r = take(f, c->sql, PQsendPrepare(c->sql, name, out, 0, NULL),
                           result);
        if (!r)
            return NULL;
        PQclear(r);
        c->prepared |= 1u << which;
    }
    sent = PQsendQueryPrepared(c->sql, name, count, values, NULL, NULL, 0);
    return take(f, c->sql, sent, result);
}

/* ------------------------------------------------------------------ opening */

/* What is set for this session, and what it must have then.  A pooler may give
   each transaction another one, without the settings and the statements; it has
   given libpq a process number of its own. */
static const char settings[] =
    "SET synchronous_commit = on; SET default_transaction_isolation ="
    " 'read committed'; SET enable_seqscan = off; SET jit = off;"
    "SET idle_in_transaction_session_timeout = 60000;"
    "SET lock_timeout = %d; SET statement_timeout = %d";
static const char check[] =
    "SELECT CASE WHEN pg_is_in_recovery() THEN 'it is a replica' "
    "WHEN current_setting('fsync') <> 'on' THEN 'fsync is off' "
    "WHEN current_setting('full_page_writes') <> 'on' THEN"
    " 'full_page_writes is off' "
    "WHEN current_setting('synchronous_commit') <> 'on' OR"
    " current_setting('transaction_isolation') <> 'read committed' THEN"
    " 'it does not keep the settings of a session' "
    "WHEN pg_backend_pid() <> %d THEN 'a pooler stands between' ELSE '' END";

/* The schema's name is quoted, if that is needed. */
static const char look[] =
    "SELECT pg_advisory_xact_lock(hashtext('idem fleet'));"
    " SELECT " NOW ", quote_ident(current_schema()),"
    " to_regclass(quote_ident(current_schema()) || '.%s') IS NOT NULL";

/* What is in the first row under a number; "" if there is none. */
static const char *field(const PGresult *r, int number)
{
    return r && PQntuples(r) == 1 ? PQgetvalue(r, 0, number) : "";
}

/* Sets, and looks whether it was. */
static int set_up(fleet *f)
{
    connection *c = (connection *)f->connection;
    char text[STATEMENT];
    PGresult *r;
    int result;

    snprintf(text, sizeof text, settings, f->timeout_ms, f->timeout_ms);
    r = take(f, c->sql, PQsendQuery(c->sql, text), &result);
    if (!r)
        return result;
    PQclear(r);
    snprintf(text, sizeof text, check, PQbackendPID(c->sql));
    r = take(f, c->sql, PQsendQuery(c->sql, text), &result);
    if (r && *field(r, 0))
        result = fleet_fail(f, IDEM_E_STORAGE, "PostgreSQL: %s", field(r, 0));
    PQclear(r);
    return result;
}

/* Takes the mark that there is, or makes one.  A table without was emptied:
   that is a loss. */
static int take_mark(fleet *f, int64_t now, int is_made)
{
    char text[STATEMENT];
    int result, has_mark;
    PGresult *r = ask(f, "SELECT convert_from(response, 'UTF8') FROM %1$s "
                      "WHERE slot = 0 AND id = ''", &result);

    has_mark = r && PQntuples(r) == 1;
    if (has_mark)
        result = fleet_take_mark(f, field(r, 0));
    PQclear(r);
    if (result == IDEM_E_FORMAT && !has_mark)
        return fleet_fail(f, result, "the table %s is not a fleet's: it has "
                          "other columns", f->name);
    if (has_mark || result != IDEM_OK)
        return result;
    fleet_make_mark(f, now);
    snprintf(text, sizeof text, "INSERT INTO %%1$s (slot, id, due, until, "
             "response) VALUES (0, '', 9000000000000, %s, '%s')",
             is_made ? "0" : NOW, f->mark);
    PQclear(ask(f, text, &result));
    return result;
}

/* Takes the table, or makes it: in one transaction.  Tokens leap ahead: so they
   do not go back where a replica has taken over that had not got the last. */
static int take_table(fleet *f)
{
    connection *c = (connection *)f->connection;
    char text[STATEMENT];
    int result, is_there;
    int64_t now;
    PGresult *r;

    snprintf(text, sizeof text, look, f->name);
    r = take(f, c->sql, PQsendQuery(c->sql, text), &result);
    if (!r)
        return result;
    now = strtoll(field(r, 0), NULL, 10);
    is_there = *field(r, 2) == 't';
    snprintf(c->table, sizeof c->table, "%s.%s", field(r, 1), f->name);
    snprintf(c->tokens, sizeof c->tokens, "%s_token", c->table);
    PQclear(r);
    if (!is_there)
        PQclear(ask(f, make, &result));
    if (result == IDEM_OK)
        result = take_mark(f, now, !is_there);
    if (result == IDEM_OK)
        PQclear(ask(f, "SELECT setval('%2$s', greatest(nextval('%2$s') + "
                    "1000000, 1000 * " NOW "))", &result));
    return result;
}

/* False if the URL is none, or if a / or @ in its password was not written as
   %2F or %40, so that a part of that is taken for a port or a host: libpq's
   error has them. */
static int is_url(const char *url)
{
    PQconninfoOption *all = PQconninfoParse(url, NULL), *o;
    int good = all != NULL;

    for (o = all; o && o->keyword; o++)
        if (o->val && *o->val &&
            (!strcmp(o->keyword, "host")    // a path may have one, or begin so
                 ? *o->val != '/' && strchr(o->val + 1, '@')
                 : !strcmp(o->keyword, "port") &&
                       o->val[strspn(o->val, "0123456789,")]))
            good = 0;
    PQconninfoFree(all);
    return good;
}

int fleet_postgres_open(fleet *f)
{
    // In a list of hosts, the one that takes writes.
    static const char *const keys[] = { "connect_timeout", "dbname",
        "target_session_attrs", NULL };
    const char *const values[] = { "5", f->url, "read-write", NULL };
    connection *c = (connection *)calloc(1, sizeof *c);
    int result;

    f->connection = c;
    if (!c)
        return fleet_fail(f, IDEM_E_STORAGE, "no memory for a connection");
    if (!is_url(f->url))
        return fleet_fail(f, IDEM_E_ARG, "not a URL of PostgreSQL");
    c->sql = PQconnectdbParams(keys, values, 1);
    if (PQstatus(c->sql) != CONNECTION_OK || PQsetnonblocking(c->sql, 1))
        return fleet_fail(f, IDEM_E_STORAGE, "PostgreSQL: %s",
                          PQerrorMessage(c->sql));
    result = set_up(f);
    if (result == IDEM_OK)
        PQclear(ask(f, "BEGIN", &result));
    if (result == IDEM_OK)
        result = take_table(f);
    if (result == IDEM_OK)
        PQclear(ask(f, "COMMIT", &result));
    return result;
}

void fleet_postgres_close(fleet *f)
{
    connection *c = (connection *)f->connection;

    PQclear(c->row);
    PQfinish(c->sql);
    free(c);
}
