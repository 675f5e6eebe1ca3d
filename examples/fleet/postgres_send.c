/* SPDX-License-Identifier: 0BSD */
#define _POSIX_C_SOURCE 200809L
#include "postgres_send.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { STATEMENT = 4000 };

void postgres_add_bytes(postgres_arguments *a, const void *data, size_t len)
{
    a->at[a->n] = (const char *)(len ? data : "");
    a->len[a->n] = (int)len;
    a->binary[a->n++] = 1;
}

void postgres_add_number(postgres_arguments *a, int64_t number)
{
    snprintf(a->text[a->n], sizeof *a->text, "%" PRId64, number);
    a->at[a->n] = a->text[a->n];
    a->len[a->n] = a->binary[a->n] = 0;
    a->n++;
}

/* Writes a statement out: @ and # as they are said above. */
static const char *write_out(const fleet *f, char *dst, const char *sql)
{
    static const char now[] =
        "(extract(epoch FROM clock_timestamp()) * 1000)::bigint";
    size_t at = 0;

    for (; *sql && at < STATEMENT - sizeof now; sql++)
        at += (size_t)snprintf(dst + at, STATEMENT - at,
                               *sql == '@' || *sql == '#' ? "%s" : "%.1s",
                               *sql == '@' ? f->name : *sql == '#' ? now : sql);
    return dst;
}

static int64_t monotonic_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Waits for the answer to what was sent, but not for ever; NULL if it failed.
   libpq's own waiting would not end where a server falls silent. */
static PGresult *await(PGconn *sql)
{
    int64_t end = monotonic_ms() + FLEET_TIMEOUT_MS;
    struct pollfd readable = { .fd = PQsocket(sql), .events = POLLIN };
    PGresult *result = NULL, *next;

    for (;;) {
        while (PQisBusy(sql)) {
            int64_t left = end - monotonic_ms();
            if (left <= 0 ||
                (poll(&readable, 1, (int)left) < 0 && errno != EINTR) ||
                !PQconsumeInput(sql)) {
                PQclear(result);
                return NULL;
            }
        }
        next = PQgetResult(sql);
        if (!next)
            return result;
        PQclear(result);
        result = next;
    }
}

/* What a statement's number means that answers no record. */
static const struct meaning {
    int result;
    const char *words;
} meaning[] = { { IDEM_OK, "" },
                { IDEM_E_FENCED, "the claim is not current" },
                { IDEM_E_TOO_LARGE, "response over what is reserved" },
                { IDEM_E_NOT_FOUND, "no such outcome" },
                { IDEM_MORE, "" } };

/* Whether the database has a table or a column less than it should. */
static int is_foreign(const PGresult *answer)
{
    const char *state = PQresultErrorField(answer, PG_DIAG_SQLSTATE);

    return state && !strncmp(state, "42", 2);
}

int postgres_ask(fleet *f, PGconn *sql, PGresult **answer, const char *text,
               const postgres_arguments *a)
{
    static const Oid bytea = 17, bigint = 20;
    char statement[STATEMENT];
    Oid types[POSTGRES_ARGUMENTS];
    int result, sent;

    for (int i = 0; a && i < a->n; i++)
        types[i] = a->binary[i] ? bytea : bigint;
    write_out(f, statement, text);
    sent = a ? PQsendQueryParams(sql, statement, a->n, types, a->at, a->len,
                                 a->binary, 0)
             : PQsendQuery(sql, statement);
    *answer = sent ? await(sql) : NULL;
    if (PQresultStatus(*answer) == PGRES_TUPLES_OK ||
        PQresultStatus(*answer) == PGRES_COMMAND_OK)
        return IDEM_OK;
    result = is_foreign(*answer) ? IDEM_E_FORMAT : IDEM_E_STORAGE;
    fleet_fail(f, result, "PostgreSQL: %s",
               *PQerrorMessage(sql) ? PQerrorMessage(sql) : "no answer");
    if ((!*answer || PQstatus(sql) != CONNECTION_OK) && sql == f->connection)
        fleet_close(f);
    PQclear(*answer);
    return result;
}

int postgres_run(fleet *f, PGconn *sql, const char *text,
                 const postgres_arguments *a)
{
    PGresult *answer;
    const struct meaning *m;
    int result = postgres_ask(f, sql, &answer, text, a);

    if (result != IDEM_OK)
        return result;
    m = &meaning[atoi(PQgetvalue(answer, 0, 0))];
    PQclear(answer);
    return fleet_fail(f, m->result, "%s", m->words);
}

int64_t postgres_number(const PGresult *answer, int column)
{
    return strtoll(PQgetvalue(answer, 0, column), NULL, 10);
}

/* Takes FIELDS, and the two before them. */
static void read_record(fleet_record *r, const PGresult *a)
{
    size_t len;
    unsigned char *bytes;

    r->now = postgres_number(a, 0);
    r->claimed = (int)postgres_number(a, 1);
    r->state = (int)postgres_number(a, 3);
    r->token = (idem_token)postgres_number(a, 4);
    r->attempts = (uint32_t)postgres_number(a, 5);
    r->fingerprint = (uint64_t)postgres_number(a, 6);
    r->until = postgres_number(a, 7);
    r->retention = postgres_number(a, 8);
    r->reserved = (size_t)postgres_number(a, 9);
    r->code = (int32_t)postgres_number(a, 10);
    r->owed = (int)postgres_number(a, 11);
    bytes = PQunescapeBytea((unsigned char *)PQgetvalue(a, 0, 2), &len);
    r->id_len = bytes && len <= sizeof r->id ? len : 0;
    if (r->id_len)
        memcpy(r->id, bytes, r->id_len);
    PQfreemem(bytes);
    bytes = PQunescapeBytea((unsigned char *)PQgetvalue(a, 0, 12), &len);
    fleet_keep_response(r, bytes, bytes ? len : 0);
    PQfreemem(bytes);
}

int postgres_look(fleet *f, fleet_record *r, const char *text,
                  const postgres_arguments *a)
{
    PGresult *answer;
    int result = postgres_ask(f, (PGconn *)f->connection, &answer, text, a);

    if (result != IDEM_OK)
        return result;
    if (PQntuples(answer))
        read_record(r, answer);
    else
        result = fleet_fail(f, IDEM_E_NOT_FOUND, "there are no more");
    PQclear(answer);
    return result;
}
