/* SPDX-License-Identifier: 0BSD */
/* Between postgres.c, which has the calls, and postgres_connection.c. */
#ifndef FLEET_POSTGRES_H
#define FLEET_POSTGRES_H

#include "store.h"
#include <libpq-fe.h>

/* The statements of postgres_sql.h */
enum { STATEMENT = 4000 };          /* chars of the longest, written out */
enum { CLAIM_NEW, COMPLETE_KEY, BY_ID, BY_TOKEN, PENDING, INSERT, UPDATE, RAISE,
       SWEEP, LOSE, STATEMENTS };

/* The server's time, in ms */
#define NOW "(extract(epoch FROM clock_timestamp()) * 1000)::bigint"

typedef struct connection {
    PGconn  *sql;
    PGresult *row;              /* the last that was read: has the response */
    char     table[160];        /* with its schema, for fleet_complete_in may
                                   have another search_path */
    char     tokens[170];
    unsigned prepared;          /* bits by statement */
    unsigned claims;            /* since it was opened */
} connection;

int fleet_postgres_open(fleet *f);
void fleet_postgres_close(fleet *f);

/* Runs a statement: prepared once on our own connection, as text on one of the
   caller's (in whose transaction it is).  NULL: *result is why; the connection
   is closed if it broke. */
PGresult *fleet_postgres_run(fleet *f, void *transaction, int which, int count,
                             const char *const *values, int *result);

#endif
