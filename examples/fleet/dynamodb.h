/* SPDX-License-Identifier: 0BSD */
/* Between dynamodb.c, which knows items, and dynamodb_request.c. */
#ifndef FLEET_DYNAMODB_H
#define FLEET_DYNAMODB_H

#include "store.h"

#include <cjson/cJSON.h>
#include <inttypes.h>

/* Parts of requests, for printf: nothing in them needs quotes */
#define TABLE "{\"TableName\":\"%s\""
#define MARK_KEY "\"Key\":{\"slot\":{\"N\":\"-1\"},\"id\":{\"S\":\"fleet\"}}"
#define VALUES ",\"ExpressionAttributeValues\":"
#define N(name) "\"" name "\":{\"N\":\"%" PRId64 "\"}"
#define S(name) "\"" name "\":{\"S\":\"%s\"}"

/* Connects as URL and environment say, and takes the table or makes it. */
int dynamodb_open(fleet *f);
void dynamodb_close(fleet *f);

/* Calls an operation with a body in printf's words.  *answer, if it is asked
   for, is to be deleted, whatever the result.
     IDEM_BUSY       a condition does not hold; a table is there already
     IDEM_E_FORMAT   no such table, or it has another shape
     IDEM_E_STORAGE  everything else */
int dynamodb_request(fleet *f, cJSON **answer, const char *operation,
                     const char *format, ...);

/* The server's time in ms: up to a second behind it, for its answers tell it to
   the second; never before it. */
int64_t dynamodb_now(const fleet *f);

/* The text of an item's attribute; "" if there is none. */
const char *dynamodb_attribute(const cJSON *item, const char *name);

#endif
