/* SPDX-License-Identifier: 0BSD */
/* The items of a fleet's table in DynamoDB: what is in them, reading them, and
 * the table itself.  For NAME in the URL there is a table NAME with items
 *     slot -1, id "fleet"   mk the mark, tk the last token given
 *     slot, id (in hex)     st state, tk token, nr attempts, fp fingerprint,
 *                           un until, re retention, rs reserved, co code,
 *                           bo response (x, hex), ex when it may go (TTL), and
 *                           pl its place in the index "owed", while ow is there
 * A claim's slot and token find its item. */
#ifndef FLEET_DYNAMODB_ITEM_H
#define FLEET_DYNAMODB_ITEM_H

#include "dynamodb_http.h"

#include <inttypes.h>

/* Parts of requests, for printf */
#define TABLE "\"TableName\":\"%s\""
#define KEY "\"Key\":{\"slot\":{\"N\":\"%" PRIu32 "\"},\"id\":{\"S\":\"%s\"}}"
#define MARK_KEY "\"Key\":{\"slot\":{\"N\":\"-1\"},\"id\":{\"S\":\"fleet\"}}"
#define N(name) "\"" name "\":{\"N\":\"%" PRId64 "\"}"
#define U(name) "\"" name "\":{\"N\":\"%" PRIu64 "\"}"
#define S(name) "\"" name "\":{\"S\":\"%s\"}"

typedef char dynamodb_id[2 * FLEET_ID_MAX + 1];

char *dynamodb_to_hex(char *dst, const void *data, size_t len);

/* The text of an item's attribute, "" if there is none. */
const char *dynamodb_attribute(const cJSON *item, const char *name);

/* Reads the item of a key; without a state if there is none. */
int dynamodb_find(fleet *f, fleet_record *r, const fleet_wish *w);

/* The first item of a query's answer, and its id; IDEM_E_NOT_FOUND: none. */
int dynamodb_first(fleet *f, fleet_record *r, cJSON *answer, dynamodb_id id);

/* The item that a claim names, or IDEM_E_NOT_FOUND; the same of a claim that is
   to be current, or IDEM_E_FENCED. */
int dynamodb_find_claim(fleet *f, fleet_record *r, const idem_claim *c,
                        dynamodb_id id);
int dynamodb_find_held(fleet *f, fleet_record *r, const idem_claim *c,
                       dynamodb_id id);

/* Connects, and takes the table or makes it. */
int dynamodb_open(fleet *f);

#endif
