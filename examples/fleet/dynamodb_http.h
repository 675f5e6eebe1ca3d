/* SPDX-License-Identifier: 0BSD */
/* DynamoDB's HTTP, signed, and the time that it tells. */
#ifndef FLEET_DYNAMODB_HTTP_H
#define FLEET_DYNAMODB_HTTP_H

#include "store.h"

#include <cjson/cJSON.h>

/* Takes f->url, and the credentials of the environment: AWS_ACCESS_KEY_ID,
   AWS_SECRET_ACCESS_KEY and, if there is one, AWS_SESSION_TOKEN. */
int  dynamodb_connect(fleet *f);
void dynamodb_disconnect(fleet *f);

/* Calls an operation with a body in printf's words.  *answer, if it is asked
   for, is to be deleted, whatever the result.
     IDEM_BUSY       a condition does not hold; a table is there already
     IDEM_E_FORMAT   no such table, or it has another shape
     IDEM_E_STORAGE  everything else */
int dynamodb_call(fleet *f, cJSON **answer, const char *operation,
                  const char *format, ...);

/* The text of a field, "" if there is none. */
const char *dynamodb_text(const cJSON *object, const char *name);

/* The server's time in ms: at most a second behind it, for its answers tell it
   to the second; never before it. */
int64_t dynamodb_now(const fleet *f);

#endif
