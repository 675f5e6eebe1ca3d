/* SPDX-License-Identifier: 0BSD */
/* Sends statements to PostgreSQL, does not wait for ever, and reads what they
 * answer.  In their text @ is the fleet's name, # the time in ms. */
#ifndef FLEET_POSTGRES_SEND_H
#define FLEET_POSTGRES_SEND_H

#include "store.h"

#include <libpq-fe.h>

enum { POSTGRES_ARGUMENTS = 8 };

typedef struct postgres_arguments {
    int     n;
    const char *at[POSTGRES_ARGUMENTS];
    int     len[POSTGRES_ARGUMENTS], binary[POSTGRES_ARGUMENTS];
    char    text[POSTGRES_ARGUMENTS][24];
} postgres_arguments;

void postgres_add_bytes(postgres_arguments *a, const void *data, size_t len);
void postgres_add_number(postgres_arguments *a, int64_t number);

/* Sends a statement; or several, without arguments.  *answer is to be cleared
   if the result is IDEM_OK. */
int postgres_ask(fleet *f, PGconn *sql, PGresult **answer, const char *text,
                 const postgres_arguments *a);

/* The same for one that answers a number, which means a result. */
int postgres_run(fleet *f, PGconn *sql, const char *text,
                 const postgres_arguments *a);

/* The same for one that answers the time, a claim or not, and FIELDS. */
int postgres_look(fleet *f, fleet_record *r, const char *text,
                  const postgres_arguments *a);

int64_t postgres_number(const PGresult *answer, int column);

#endif
