/* SPDX-License-Identifier: 0BSD */
/* A fleet in DynamoDB.  What may be claimed is decided here, and written on the
 * condition that nothing has changed since it was read: the write is the step.
 * dynamodb_item.h says what is in the items. */
#include "dynamodb_item.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* How much longer leases and retentions are made than was asked for: gateways
   know the store's time to the second. */
enum { GRACE_MS = 1000 };

/* A token: from the item that has the mark, which must be ours. */
static int take_token(fleet *f, idem_token *token)
{
    cJSON *answer = NULL;
    int result = dynamodb_call(f, &answer, "UpdateItem", "{" TABLE "," MARK_KEY
        ",\"UpdateExpression\":\"ADD tk :one\",\"ConditionExpression\":"
        "\"mk = :mark\",\"ExpressionAttributeValues\":{" N(":one") ","
        S(":mark") "},\"ReturnValues\":\"UPDATED_NEW\"}", f->name, INT64_C(1),
        f->mark);

    if (result == IDEM_BUSY)
        return fleet_fail(f, IDEM_E_FORMAT, "the table %s in DynamoDB was "
                          "emptied, or is not this fleet's", f->name);
    if (result == IDEM_OK)
        *token = strtoull(
            dynamodb_attribute(cJSON_GetObjectItem(answer, "Attributes"), "tk"),
            NULL, 10);
    cJSON_Delete(answer);
    return result;
}

/* Writes a claim if the item is as it was read, or is no more.  IDEM_BUSY: it
   is not. */
static int write_claim(fleet *f, fleet_record *r, const fleet_wish *w)
{
    fleet_record seen = *r;
    dynamodb_id id;
    int result = take_token(f, &r->token);

    if (result != IDEM_OK)
        return result;
    r->claimed = 1;
    r->attempts = fleet_is_over(&seen) ? 1 : seen.attempts + 1;
    r->until = r->now + w->lease + GRACE_MS;
    r->retention = (int64_t)w->retention + GRACE_MS;
    return dynamodb_call(f, NULL, "UpdateItem", "{" TABLE "," KEY
        ",\"UpdateExpression\":\"SET st = :st, tk = :tk, nr = :nr, fp = :fp, "
        "un = :un, re = :re, rs = :rs, co = :co, ex = :ex REMOVE ow, bo\""
        ",\"ConditionExpression\":\"attribute_not_exists(st) OR "
        "(tk = :last AND st = :was AND un = :then)\","
        "\"ExpressionAttributeValues\":{" U(":last") "," N(":was") ","
        N(":then") "," N(":st") "," U(":tk") "," N(":nr") "," U(":fp") ","
        N(":un") "," N(":re") "," N(":rs") "," N(":co") "," N(":ex") "}}",
        f->name, w->slot, dynamodb_to_hex(id, w->id, w->id_len),
        seen.token, (int64_t)seen.state, seen.until,
        (int64_t)IDEM_IN_PROGRESS, r->token, (int64_t)r->attempts,
        w->fingerprint, r->until, r->retention, (int64_t)w->reserved,
        INT64_C(0), (r->until + r->retention) / 1000 + 1);
}

static int claim(fleet *f, fleet_record *r, const fleet_wish *w)
{
    int result, answer;

    for (int i = 0; i < FLEET_TRIES; i++) {
        result = dynamodb_find(f, r, w);
        if (result != IDEM_OK)
            return result;
        answer = fleet_may_claim(f, r, w);
        if (answer != IDEM_EXECUTE && answer != IDEM_RECOVER)
            return IDEM_OK;
        result = write_claim(f, r, w);
        if (result != IDEM_BUSY)
            return result;
        r->claimed = 0;
    }
    return fleet_fail(f, IDEM_BUSY, "others came between");
}

/* The writes to an item that a claim names, if it still has that token.  What
   came between is told as `otherwise`. */
static int write_item(fleet *f, const idem_claim *c, const char *id,
                      int otherwise, const char *update, const char *states,
                      const char *values)
{
    int result = dynamodb_call(f, NULL, "UpdateItem", "{" TABLE "," KEY
        ",\"UpdateExpression\":\"%s\",\"ConditionExpression\":"
        "\"tk = :tk AND st %s :busy\",\"ExpressionAttributeValues\":{%s"
        U(":tk") "," N(":busy") "}}", f->name, c->slot, id, update, states,
        values, c->token, (int64_t)IDEM_IN_PROGRESS);

    return result == IDEM_BUSY
               ? fleet_fail(f, otherwise, "%s", idem_text(otherwise)) : result;
}

/* The place of an outcome among those that are owed: by time. */
static const char *place(char text[40], int64_t until, idem_token token)
{
    snprintf(text, 40, "%016" PRIx64 "%016" PRIx64, (uint64_t)until, token);
    return text;
}

/* The values of an outcome, for write_item. */
static char *outcome_values(const fleet_record *r, const idem_claim *c,
                            const idem_outcome *o)
{
    char text[40], *values = (char *)malloc(2 * o->response_len + 400);
    int at;

    if (!values)
        return NULL;
    at = sprintf(values, N(":st") "," N(":co") "," N(":un") "," N(":ex") ",",
                 (int64_t)(o->failed ? IDEM_FAILED : IDEM_COMPLETED),
                 (int64_t)o->code, r->now, (r->now + r->retention) / 1000 + 1);
    if (o->confirm)
        at += sprintf(values + at, S(":ow") "," S(":pl") ",", "owed",
                      place(text, r->now, c->token));
    at += sprintf(values + at, "\":bo\":{\"S\":\"x");
    dynamodb_to_hex(values + at, o->response, o->response_len);
    strcat(values + at, "\"},");
    return values;
}

static int complete(fleet *f, const idem_claim *c, const idem_outcome *o)
{
    fleet_record r = { .response = NULL };
    dynamodb_id id;
    char *values;
    int result = dynamodb_find_held(f, &r, c, id);

    if (result == IDEM_OK && o->response_len > r.reserved)
        result = fleet_fail(f, IDEM_E_TOO_LARGE, "over what is reserved");
    if (result != IDEM_OK)
        return result;
    values = outcome_values(&r, c, o);
    if (!values)
        return fleet_fail(f, IDEM_E_STORAGE, "no memory for a response");
    result = write_item(f, c, id, IDEM_E_FENCED,
                        o->confirm ? "SET st = :st, co = :co, un = :un, "
                                     "ex = :ex, bo = :bo, ow = :ow, pl = :pl"
                                   : "SET st = :st, co = :co, un = :un, "
                                     "ex = :ex, bo = :bo", "=", values);
    free(values);
    return result;
}

static int release(fleet *f, const idem_claim *c)
{
    fleet_record r = { .response = NULL };
    dynamodb_id id;
    int result = dynamodb_find_held(f, &r, c, id);

    return result == IDEM_OK
               ? write_item(f, c, id, IDEM_E_FENCED, "SET st = :st", "=",
                            "\":st\":{\"N\":\"0\"},")
               : result;
}

static int renew(fleet *f, const idem_claim *c, uint32_t lease)
{
    fleet_record r = { .response = NULL };
    dynamodb_id id;
    char values[80];
    int64_t until;
    int result = dynamodb_find_held(f, &r, c, id);

    if (result != IDEM_OK)
        return result;
    until = r.now + lease + GRACE_MS;
    if (until <= r.until)
        return IDEM_OK;
    snprintf(values, sizeof values, N(":un") "," N(":ex") ",", until,
             (until + r.retention) / 1000 + 1);
    return write_item(f, c, id, IDEM_E_FENCED, "SET un = :un, ex = :ex", "=",
                      values);
}

static int delivered(fleet *f, const idem_claim *c)
{
    fleet_record r = { .response = NULL };
    dynamodb_id id;
    int result = dynamodb_find_claim(f, &r, c, id);

    return result == IDEM_OK
               ? write_item(f, c, id, IDEM_E_NOT_FOUND, "REMOVE ow", ">", "")
               : result;
}

static int pending(fleet *f, fleet_record *r, const idem_claim *after)
{
    dynamodb_id id;
    char text[40];
    int result = dynamodb_find_claim(f, r, after, id);

    if (result != IDEM_OK && result != IDEM_E_NOT_FOUND)
        return result;
    place(text, result == IDEM_OK ? r->until : 0, r->token);
    do {
        cJSON *answer = NULL;
        result = dynamodb_call(f, &answer, "Query", "{" TABLE
            ",\"IndexName\":\"owed\",\"Limit\":1,\"KeyConditionExpression\":"
            "\"ow = :ow AND pl > :pl\",\"ExpressionAttributeValues\":{" S(":ow")
            "," S(":pl") "}}", f->name, "owed", text);
        if (result == IDEM_OK)
            result = dynamodb_first(f, r, answer, id);
        cJSON_Delete(answer);
        place(text, r->until, r->token);
    } while (result == IDEM_OK && fleet_is_over(r));
    return result;
}

const fleet_store fleet_dynamodb = {
    .scheme = "dynamodb://", .open = dynamodb_open,
    .close = dynamodb_disconnect, .claim = claim, .complete = complete,
    .release = release, .renew = renew, .find = dynamodb_find,
    .pending = pending,
    .delivered = delivered
};
