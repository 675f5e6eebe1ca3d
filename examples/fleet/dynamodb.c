/* SPDX-License-Identifier: 0BSD */
/* A fleet in DynamoDB.  A call reads an item, decides, and puts the new one on
 * the condition that nothing has changed since it was read: the put is the
 * step.  For NAME in the URL there is a table NAME with items
 *     slot -1, id "fleet"   mk the mark, tk the last token given
 *     slot, id              what `fields` names; ex when it may go (TTL); and
 *                           pl, its place in the index "owed", if ow is there
 * A claim's slot and token find its item.  There are no floors: the item of a
 * number never goes. */
#include "dynamodb.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* How much longer leases and retentions are made than was asked for: the time
   that DynamoDB tells is up to a second behind. */
enum { GRACE_MS = 1000 };

/* In the order of what is told (store.h), from the id on */
static const char *const fields[] = { "id", "bo", "st", "tk", "nr", "fp", "un",
                                      "re", "rs", "co", "ow" };

/* -------------------------------------------------------------------- items */

/* The place of an outcome among those that are owed: by time. */
static const char *place(char dst[40], int64_t until, idem_token token)
{
    snprintf(dst, 40, "%016" PRIx64 "%016" PRIx64, (uint64_t)until, token);
    return dst;
}

/* Takes the item, or the first of the items, of *answer: text, of that. */
static void take_item(fleet *f, fleet_call *c, const cJSON *answer, char *now,
                      const char *told[FLEET_TOLD])
{
    const cJSON *item = cJSON_GetObjectItem(answer, "Item");

    if (!item)
        item = cJSON_GetArrayItem(cJSON_GetObjectItem(answer, "Items"), 0);
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        told[FLEET_TOLD_id + i] = dynamodb_attribute(item, fields[i]);
    if (*told[FLEET_TOLD_response])
        told[FLEET_TOLD_response]++;    // the x
    sprintf(now, "%" PRId64, dynamodb_now(f));
    told[FLEET_TOLD_now] = now;
    fleet_tell(c, told);
}

/* Asks for the item of an id, or of a claim: a slot has one, or by chance two.
   So it does for the outcome after which a pending one is looked for. */
static int read_item(fleet *f, fleet_call *c, cJSON **answer)
{
    if (c->what == FLEET_CLAIM || c->what == FLEET_FIND)
        return dynamodb_request(f, answer, "GetItem", TABLE ",\"Consistent"
            "Read\":true,\"Key\":{" N("slot") "," S("id") "}}", f->name,
            (int64_t)c->slot, c->id);
    return dynamodb_request(f, answer, "Query", TABLE ",\"ConsistentRead\":true"
        ",\"KeyConditionExpression\":\"slot = :s\",\"FilterExpression\":"
        "\"tk = :t\"" VALUES "{" N(":s") ",\":t\":{\"N\":\"%s\"}}}", f->name,
        (int64_t)c->slot, c->arg[FLEET_ARG_token]);
}

/* Asks for the first owed outcome that is behind that. */
static int read_owed(fleet *f, fleet_call *c, cJSON **answer)
{
    char after[40];

    place(after, c->has.until, c->has.token);
    cJSON_Delete(*answer);
    *answer = NULL;
    return dynamodb_request(f, answer, "Query", TABLE ",\"IndexName\":\"owed\","
        "\"Limit\":1,\"KeyConditionExpression\":\"ow = :ow AND pl > :pl\""
        VALUES "{" S(":ow") "," S(":pl") "}}", f->name, "1", after);
}

/* Puts what a record has become, if its item is still what it was, or is no
   more.  IDEM_BUSY: it is not. */
static int write_item(fleet *f, const fleet_call *c, const fleet_record *was,
                      const char *response)
{
    const fleet_record *r = &c->has;
    int64_t end = (r->until + r->retention) / 1000 + 1;
    char owed[100] = "", at[40];

    if (r->owed)
        snprintf(owed, sizeof owed, S("ow") "," S("pl") ",", "1",
                 place(at, r->until, r->token));
    return dynamodb_request(f, NULL, "PutItem", TABLE ",\"Item\":{%s"
        N("slot") "," S("id") ",\"bo\":{\"S\":\"x%s\"}," N("st") "," N("tk") ","
        N("nr") "," N("fp") "," N("un") "," N("re") "," N("rs") "," N("co") ","
        N("ex")
        "},\"ConditionExpression\":\"attribute_not_exists(st) OR (tk = :tk AND "
        "st = :st AND un = :un)\"" VALUES "{" N(":tk") "," N(":st") ","
        N(":un") "}}", f->name, owed, (int64_t)c->slot, r->id, response,
        (int64_t)r->state, (int64_t)r->token, (int64_t)r->attempts,
        (int64_t)r->fingerprint, r->until, r->retention, (int64_t)r->reserved,
        (int64_t)r->code, strchr(r->id, '#') ? 0 : end, (int64_t)was->token,
        (int64_t)was->state, was->until);
}

/* A token: from the item that has the mark, which must be ours. */
static int take_token(fleet *f, idem_token *token)
{
    cJSON *answer = NULL;
    int result = dynamodb_request(f, &answer, "UpdateItem", TABLE "," MARK_KEY
        ",\"UpdateExpression\":\"ADD tk :one\",\"ConditionExpression\":"
        "\"mk = :mark\"" VALUES "{" N(":one") "," S(":mark") "},"
        "\"ReturnValues\":\"UPDATED_NEW\"}", f->name, INT64_C(1), f->mark);

    if (result == IDEM_BUSY)
        result = fleet_fail(f, IDEM_E_FORMAT, "the table %s in DynamoDB was "
                            "emptied, or is not this fleet's", f->name);
    *token = strtoull(dynamodb_attribute(
                          cJSON_GetObjectItem(answer, "Attributes"), "tk"),
                      NULL, 10);
    cJSON_Delete(answer);
    return result;
}

/* ----------------------------------------------------------------- deciding */

static int64_t number(const fleet_call *c, int arg)
{
    return strtoll(c->arg[arg], NULL, 10);
}

/* The answer to a begin, or 0 if it may claim. */
static int may_claim(const fleet *f, const fleet_call *c)
{
    const fleet_record *r = &c->has;
    int64_t age = number(c, FLEET_ARG_age);

    if (fleet_is_over(r))
        return (age && (age >= number(c, FLEET_ARG_retention) ||
                        age >= r->now - f->since)) ||
                       (r->state && strchr(c->id, '#')) ? IDEM_TOO_OLD : 0;
    if ((int64_t)r->fingerprint != number(c, FLEET_ARG_fingerprint))
        return IDEM_MISMATCH;
    if (r->state != IDEM_IN_PROGRESS)
        return IDEM_REPLAY;
    if (r->now < r->until)
        return IDEM_BUSY;
    return r->attempts >= number(c, FLEET_ARG_limit) ? IDEM_EXHAUSTED : 0;
}

/* Makes a claim of a record.  The token is taken before it is written, but a
   write on a condition that still holds is a step of its own. */
static int claim(fleet *f, fleet_call *c)
{
    fleet_record *r = &c->has;
    int result = take_token(f, &r->token);

    r->attempts = fleet_is_over(r) ? 1 : r->attempts + 1;
    r->state = IDEM_IN_PROGRESS;
    strcpy(r->id, c->id);
    r->fingerprint = (uint64_t)number(c, FLEET_ARG_fingerprint);
    r->until = dynamodb_now(f) + number(c, FLEET_ARG_lease) + GRACE_MS;
    r->retention = number(c, FLEET_ARG_retention) + GRACE_MS;
    r->reserved = (size_t)number(c, FLEET_ARG_reserved);
    r->code = r->owed = 0;
    return result;
}

/* What becomes of a record that a claim names. */
static int change(fleet_call *c)
{
    fleet_record *r = &c->has;
    int delivered = c->what == FLEET_DELIVERED;
    int64_t lease_end = r->now + number(c, FLEET_ARG_lease) + GRACE_MS;

    if (fleet_is_over(r) || (r->state > IDEM_IN_PROGRESS) != delivered)
        return delivered ? IDEM_E_NOT_FOUND : IDEM_E_FENCED;
    if (delivered)
        r->owed = 0;
    else if (c->what == FLEET_RELEASE)
        r->state = 0;
    else if (c->what == FLEET_RENEW)
        r->until = lease_end > r->until ? lease_end : r->until;
    else if (strlen(c->arg[FLEET_ARG_response]) > 2 * r->reserved)
        return IDEM_E_TOO_LARGE;
    else {
        r->state = (int)number(c, FLEET_ARG_state);
        r->code = (int32_t)number(c, FLEET_ARG_code);
        r->owed = (int)number(c, FLEET_ARG_owed);
        r->until = r->now;
    }
    return IDEM_OK;
}

/* Tries a call; IDEM_MORE if others came between. */
static int attempt(fleet *f, fleet_call *c, cJSON **answer)
{
    const char *told[FLEET_TOLD] = { "0" };
    char now[24];
    fleet_record was;
    int result = read_item(f, c, answer);

    if (result != IDEM_OK)
        return result;
    take_item(f, c, *answer, now, told);
    while (c->what == FLEET_PENDING) {
        result = read_owed(f, c, answer);
        if (result != IDEM_OK)
            return result;
        take_item(f, c, *answer, now, told);
        if (!c->has.state || !fleet_is_over(&c->has))
            return c->has.state ? IDEM_OK : IDEM_E_NOT_FOUND;
    }
    was = c->has;
    if (c->what == FLEET_CLAIM)
        result = may_claim(f, c);
    if (result == IDEM_REPLAY) {
        told[FLEET_TOLD_answer] = "3";  // so the response goes to its place
        fleet_tell(c, told);
    }
    if (result != IDEM_OK || c->what == FLEET_FIND)
        return result;
    result = c->what == FLEET_CLAIM ? claim(f, c) : change(c);
    if (result == IDEM_OK)
        result = write_item(f, c, &was,
                            c->what == FLEET_COMPLETE
                                ? c->arg[FLEET_ARG_response]
                                : c->what == FLEET_CLAIM
                                      ? "" : told[FLEET_TOLD_response]);
    if (result == IDEM_BUSY)
        return IDEM_MORE;
    if (result == IDEM_OK && c->what == FLEET_CLAIM)
        return c->has.attempts == 1 ? IDEM_EXECUTE : IDEM_RECOVER;
    return result;
}

static int run(fleet *f, fleet_call *c)
{
    int result = IDEM_MORE;

    for (int i = 0; i < FLEET_TRIES && result == IDEM_MORE; i++) {
        cJSON *answer = NULL;
        result = attempt(f, c, &answer);
        cJSON_Delete(answer);
    }
    return result == IDEM_MORE ? IDEM_BUSY : result;
}

const fleet_store fleet_dynamodb = { "dynamodb://", dynamodb_open,
                                     dynamodb_close, run };
