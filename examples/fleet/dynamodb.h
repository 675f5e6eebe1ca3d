/* SPDX-License-Identifier: 0BSD */
/* Between dynamodb.c, which has the calls, and dynamodb_http.c. */
#ifndef FLEET_DYNAMODB_H
#define FLEET_DYNAMODB_H

#include "store.h"

#include <curl/curl.h>
#include <jansson.h>

enum { FLEET_CREDENTIAL = 8192 };   /* AWS gives session tokens of 4096 bytes */

typedef struct connection {
    CURL    *curl;
    char     session[FLEET_CREDENTIAL + 32];    /* a header, or "" */
    char     body[1 << 18];         /* a response takes 1 << 17 */
    char     text[1 << 19];         /* the last answer, */
    json_t  *answer;
    char     now[24];               /* and its ms */
    char     error[80];             /* its type, if it is none */
    int64_t  looked;                /* fleet_ms when the mark was last read */
    char     lost[24];              /* when records were lost, from there */
} connection;

/* For a region, or a stand-in's host:port; with the credentials as they are
   now.  IDEM_OK, IDEM_E_STORAGE. */
int fleet_dynamodb_connect(fleet *f);
void fleet_dynamodb_close(fleet *f);

/* Asks something of the table, in printf's words, with ' in place of "; again
   and again, later each time, while it throttles, for as long as the timeout.
     IDEM_OK         `answer` and `now` are set
     IDEM_MORE       a condition does not hold; a table is there already
     IDEM_E_FORMAT   no such table, or it has another schema
     IDEM_E_STORAGE  everything else.  The connection is closed if that was for
                     want of rights: credentials expire, and are read again */
int fleet_dynamodb_ask(fleet *f, const char *operation, const char *format,
                       ...);

#endif
