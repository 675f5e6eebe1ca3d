/* SPDX-License-Identifier: 0BSD */
/* A fleet in PostgreSQL: each call is one statement of postgres_sql.h.  For
 * NAME in the URL there are a table, whose comment is the mark, and a sequence.
 * A row that is released stays, without a state, until fleet_maintain: so a
 * token is always given under the lock of its row, and grows with each. */
#include "postgres_send.h"
#include "postgres_sql.h"

#include <inttypes.h>
#include <stdio.h>

/* ---------------------------------------------------------------- the calls */

static int claim(fleet *f, fleet_record *record, const fleet_wish *w)
{
    postgres_arguments a = { .n = 0 };
    int result;

    postgres_add_bytes(&a, w->id, w->id_len);
    postgres_add_number(&a, (int64_t)w->fingerprint);
    postgres_add_number(&a, w->lease);
    postgres_add_number(&a, w->retention);
    postgres_add_number(&a, w->reserved);
    postgres_add_number(&a, w->max_attempts);
    postgres_add_number(&a, w->age);
    postgres_add_number(&a, f->since);
    for (int i = 0; i < FLEET_TRIES; i++) {
        result = postgres_look(f, record, claim_sql, &a);
        if (result != IDEM_OK || record->claimed)
            return result;
        // What a statement sees is as it was at its start: what came since was
        // in its way, but it cannot tell it.
        result = fleet_may_claim(f, record, w);
        if (result != IDEM_EXECUTE && result != IDEM_RECOVER)
            return IDEM_OK;
    }
    return fleet_fail(f, IDEM_BUSY, "others came between");
}

static int complete_in(fleet *f, void *transaction, const idem_claim *which,
                       const idem_outcome *o)
{
    postgres_arguments a = { .n = 0 };

    postgres_add_number(&a, (int64_t)which->token);
    postgres_add_number(&a, o->failed ? IDEM_FAILED : IDEM_COMPLETED);
    postgres_add_number(&a, o->code);
    postgres_add_number(&a, o->confirm ? 1 : 0);
    postgres_add_bytes(&a, o->response, o->response_len);
    return postgres_run(f, (PGconn *)transaction, complete_sql, &a);
}

static int complete(fleet *f, const idem_claim *which, const idem_outcome *o)
{
    return complete_in(f, f->connection, which, o);
}

/* A statement that needs a token alone. */
static int run_token(fleet *f, const char *text, const idem_claim *which)
{
    postgres_arguments a = { .n = 0 };

    postgres_add_number(&a, (int64_t)which->token);
    return postgres_run(f, (PGconn *)f->connection, text, &a);
}

static int release(fleet *f, const idem_claim *which)
{
    return run_token(f, release_sql, which);
}

static int delivered(fleet *f, const idem_claim *which)
{
    return run_token(f, delivered_sql, which);
}

static int renew(fleet *f, const idem_claim *which, uint32_t lease)
{
    postgres_arguments a = { .n = 0 };

    postgres_add_number(&a, (int64_t)which->token);
    postgres_add_number(&a, lease);
    return postgres_run(f, (PGconn *)f->connection, renew_sql, &a);
}

static int find(fleet *f, fleet_record *record, const fleet_wish *w)
{
    postgres_arguments a = { .n = 0 };

    postgres_add_bytes(&a, w->id, w->id_len);
    return postgres_look(f, record, find_sql, &a);
}

static int pending(fleet *f, fleet_record *record, const idem_claim *after)
{
    postgres_arguments a = { .n = 0 };

    postgres_add_number(&a, (int64_t)after->token);
    return postgres_look(f, record, pending_sql, &a);
}

static int maintain(fleet *f)
{
    postgres_arguments a = { .n = 0 };

    return postgres_run(f, (PGconn *)f->connection, maintain_sql, &a);
}

/* ------------------------------------------------------------------ opening */

/* Several statements of which only the failure is of interest. */
static int do_all(fleet *f, const char *text)
{
    PGresult *answer;
    int result = postgres_ask(f, (PGconn *)f->connection, &answer, text, NULL);

    if (result == IDEM_OK)
        PQclear(answer);
    return result;
}

/* Makes the table, and marks it. */
static int make(fleet *f, int64_t now)
{
    char comment[160];
    int result = do_all(f, make_sql);

    fleet_make_mark(f, now);
    snprintf(comment, sizeof comment, "COMMENT ON TABLE @ IS '%s'", f->mark);
    return result == IDEM_OK ? do_all(f, comment) : result;
}

/* Takes the table that there is, or makes it: in one transaction. */
static int take_table(fleet *f)
{
    PGresult *answer;
    int result = do_all(f, session_sql);

    if (result == IDEM_OK)
        result = do_all(f, lock_sql);
    if (result == IDEM_OK)
        result = postgres_ask(f, (PGconn *)f->connection, &answer, look_sql,
                              NULL);
    if (result != IDEM_OK)
        return result;
    if (*PQgetvalue(answer, 0, 1) == 'f')
        result = make(f, postgres_number(answer, 0));
    else if (!fleet_take_mark(f, PQgetvalue(answer, 0, 2)))
        result = fleet_fail(f, IDEM_E_FORMAT, "the table %s in PostgreSQL is "
                            "not this fleet's: its comment is \"%s\"", f->name,
                            PQgetvalue(answer, 0, 2));
    PQclear(answer);
    return result == IDEM_OK ? do_all(f, "COMMIT") : result;
}

static int open_postgres(fleet *f)
{
    const char *const names[] = { "connect_timeout", "dbname", NULL };
    const char *const values[] = { "5", f->url, NULL };

    f->connection = PQconnectdbParams(names, values, 1);
    if (PQstatus((PGconn *)f->connection) != CONNECTION_OK)
        return fleet_fail(f, IDEM_E_STORAGE, "PostgreSQL: %s",
                          PQerrorMessage((PGconn *)f->connection));
    return take_table(f);
}

static void close_postgres(fleet *f)
{
    PQfinish((PGconn *)f->connection);
}

const fleet_store fleet_postgres = {
    .scheme = "postgres://", .open = open_postgres, .close = close_postgres,
    .claim = claim, .complete = complete, .complete_in = complete_in,
    .release = release, .renew = renew, .find = find, .pending = pending,
    .delivered = delivered, .maintain = maintain
};
