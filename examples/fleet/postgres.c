/* SPDX-License-Identifier: 0BSD */
/* A fleet in PostgreSQL: decide.c decides, an INSERT or UPDATE of one row is
 * the atomic step.  A new key and its completion take one statement each
 * (at_once).  The statements, and the table, are in postgres_sql.h. */
#include "postgres.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { VALUES = 20, CLAIMS_A_SWEEP = 64 };

/* Where numbers for a statement are written. */
typedef struct values {
    const char *at[VALUES];
    char     text[VALUES][24];
    int      count;
} values;

static void add(values *v, const char *text)
{
    v->at[v->count++] = text;
}

static void add_number(values *v, int64_t number)
{
    snprintf(v->text[v->count], sizeof v->text[0], "%" PRId64, number);
    add(v, v->text[v->count]);
}

/* ------------------------------------------------------------------ records */

/* Writes the scope of an id that has a number, and returns it; or NULL. */
static const char *scope_of(char dst[FLEET_ID], const char *id)
{
    const char *number = fleet_number(id);

    if (!number)
        return NULL;
    snprintf(dst, FLEET_ID, "%.*s", (int)(number - 1 - id), id);
    return dst;
}

static int read_row(fleet *f, fleet_call *c, int way)
{
    static const int which[] = { [FLEET_BY_ID] = BY_ID,
                                 [FLEET_BY_TOKEN] = BY_TOKEN,
                                 [FLEET_BY_PENDING] = PENDING };
    connection *to = (connection *)f->connection;
    const char *got[FLEET_GOT] = { NULL };
    char scope[FLEET_ID];
    values v = { .count = 0 };
    PGresult *r;
    int result;

    add(&v, c->arg[FLEET_ARG_mark]);
    add(&v, c->arg[FLEET_ARG_slot]);
    add(&v, way == FLEET_BY_ID ? c->id : c->arg[FLEET_ARG_token]);
    if (way == FLEET_BY_ID)
        add(&v, scope_of(scope, c->id));
    r = fleet_postgres_run(f, c->transaction, which[way], v.count, v.at,
                           &result);
    if (!r)
        return result;
    // One row, as long as the mark is there.
    if (PQntuples(r) == 1) {
        for (int n = 0; n < PQnfields(r) && n < FLEET_GOT; n++)
            got[n] = PQgetvalue(r, 0, n);
        fleet_take(c, got);
        PQclear(to->row);
        to->row = r;
        return IDEM_OK;
    }
    PQclear(r);
    return fleet_fail(f, IDEM_E_FORMAT, "PostgreSQL: %s was emptied", f->name);
}

/* Drops expired rows, twice as many as came since the last time.  If it
   fails the next one does it. */
static void sweep(fleet *f)
{
    connection *c = (connection *)f->connection;
    int result;

    if (c->claims++ % CLAIMS_A_SWEEP == 0)
        PQclear(fleet_postgres_run(f, NULL, SWEEP, 0, NULL, &result));
}

static void add_new(values *v, const fleet_record *r, const char *scope)
{
    const char *number = fleet_number(r->id);

    add(v, scope);
    add(v, number);
    add_number(v, number && strncmp(r->floor, number, 8) < 0);
    add_number(v, (int64_t)r->fingerprint);
    add_number(v, r->until);
    add_number(v, r->retention);
    add_number(v, (int64_t)r->reserved);
}

static void add_changed(values *v, const fleet_call *c, const fleet_record *old)
{
    const fleet_record *r = &c->has;

    add_number(v, (int64_t)old->token);
    add_number(v, old->state);
    add_number(v, old->until);
    add_number(v, old->pending);
    add_number(v, c->what == FLEET_CLAIM);
    add_number(v, r->state);
    add_number(v, r->attempts);
    add_number(v, (int64_t)r->fingerprint);
    add_number(v, r->until);
    add_number(v, r->retention);
    add_number(v, (int64_t)r->reserved);
    add_number(v, r->code);
    add_number(v, r->pending);
    add(v, r->response);
}

static int put_row(fleet *f, fleet_call *c, const fleet_record *old)
{
    char scope[FLEET_ID];
    values v = { .count = 0 };
    int result, is_new = !old->token;
    PGresult *r;

    if (is_new)
        add(&v, c->arg[FLEET_ARG_mark]);
    add(&v, c->arg[FLEET_ARG_slot]);
    add(&v, c->has.id);
    if (is_new)
        add_new(&v, &c->has, scope_of(scope, c->has.id));
    else
        add_changed(&v, c, old);
    r = fleet_postgres_run(f, c->transaction, is_new ? INSERT : UPDATE,
                           v.count, v.at, &result);
    if (!r)
        return result;
    if (PQntuples(r) != 1)
        result = IDEM_MORE;
    else
        c->has.token = strtoull(PQgetvalue(r, 0, 0), NULL, 10);
    PQclear(r);
    if (result == IDEM_OK && c->what == FLEET_CLAIM)
        sweep(f);
    return result;
}

/* The common case of a key; IDEM_MORE if it is another one, for decide.c. */
static int at_once(fleet *f, fleet_call *c)
{
    static const int claim[] = { FLEET_ARG_mark, FLEET_ARG_slot, FLEET_ARG_id,
        FLEET_ARG_fingerprint, FLEET_ARG_lease, FLEET_ARG_retention,
        FLEET_ARG_reserved, FLEET_ARG_age, FLEET_ARG_since,
        FLEET_ARG_uncertain };
    static const int complete[] = { FLEET_ARG_mark, FLEET_ARG_slot,
        FLEET_ARG_token, FLEET_ARG_state, FLEET_ARG_code, FLEET_ARG_pending,
        FLEET_ARG_response };
    int is_claim = c->what == FLEET_CLAIM, result;
    values v = { .count = 0 };
    PGresult *r;

    if ((!is_claim && c->what != FLEET_COMPLETE) ||
        (is_claim && fleet_number(c->id)))
        return IDEM_MORE;
    for (size_t i = 0; i < (is_claim ? sizeof claim / sizeof *claim
                                     : sizeof complete / sizeof *complete); i++)
        add(&v, c->arg[is_claim ? claim[i] : complete[i]]);
    r = fleet_postgres_run(f, c->transaction,
                           is_claim ? CLAIM_NEW : COMPLETE_KEY, v.count, v.at,
                           &result);
    if (!r)
        return result;
    result = PQntuples(r) != 1 ? IDEM_MORE : is_claim ? IDEM_EXECUTE : IDEM_OK;
    if (result == IDEM_EXECUTE) {
        c->has.token = strtoull(PQgetvalue(r, 0, 0), NULL, 10);
        c->has.until = strtoll(PQgetvalue(r, 0, 1), NULL, 10);
        c->has.retention = strtoll(c->arg[FLEET_ARG_retention], NULL, 10);
        c->has.attempts = 1;
    }
    PQclear(r);
    if (result == IDEM_EXECUTE)
        sweep(f);
    return result;
}

static int raise_floor(fleet *f, const fleet_call *c)
{
    char scope[FLEET_ID];
    const char *const v[] = { scope_of(scope, c->id), c->has.floor };
    int result = IDEM_OK;

    if (*c->has.floor)
        PQclear(fleet_postgres_run(f, NULL, RAISE, 2, v, &result));
    return result;
}

static int lose(fleet *f)
{
    int result;

    PQclear(fleet_postgres_run(f, NULL, LOSE, 0, NULL, &result));
    return result;
}

const fleet_store fleet_postgres = {
    .schemes = { "postgres://", "postgresql://" }, .open = fleet_postgres_open,
    .close = fleet_postgres_close, .call = fleet_decide, .at_once = at_once,
    .read = read_row, .put = put_row, .raise = raise_floor, .lose = lose };
