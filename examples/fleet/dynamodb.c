/* SPDX-License-Identifier: 0BSD */
/* A fleet in DynamoDB, which has no scripts: decide.c decides, a conditional
 * put is the atomic step.  For NAME in the URL there is a table NAME with items
 *     slot, id        a key's record, the fields of store.h under their names;
 *                     place, changes each time; due, if undelivered: the
 *                     index "pending" has these by place; ex, its end (TTL)
 *     "mark", "mark"  mk the mark, lo when records were lost
 * There are no floors: the item of a number is never dropped.  Each key has its
 * own tokens: the time, or more, so that they increase; so there is no item
 * that every claim writes. */
#define _POSIX_C_SOURCE 200809L
#include "dynamodb.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LOOK_MS = 1000 };            /* age of a read mark, at most */
enum { TOKENS = 1000000 };          /* in a second */

/* --------------------------------------------------------------------- mark */

#define MARK "'Key':{'slot':{'S':'mark'},'id':{'S':'mark'}},"

/* Reads the mark; IDEM_MORE if there is none. */
static int read_mark(fleet *f, const char **mark)
{
    connection *c;
    const char *lost = "";
    int result = fleet_dynamodb_ask(f, "GetItem",
                                    MARK "'ConsistentRead':true}");

    *mark = NULL;
    if (result != IDEM_OK)
        return result;
    c = (connection *)f->connection;
    json_unpack(c->answer, "{s:{s:{s:s}, s?{s:s}}}", "Item", "mk", "S", mark,
                "lo", "S", &lost);
    snprintf(c->lost, sizeof c->lost, "%s", lost);
    c->looked = fleet_ms();
    return *mark ? IDEM_OK : IDEM_MORE;
}

/* Looks whether the table is the one that was opened, not in each call. */
static int look_at_mark(fleet *f)
{
    connection *c = (connection *)f->connection;
    const char *mark;
    int result;

    if (fleet_ms() - c->looked < LOOK_MS)
        return IDEM_OK;
    result = read_mark(f, &mark);
    if (result == IDEM_MORE ||
        (result == IDEM_OK && strcmp(mark, f->mark) != 0))
        result = fleet_fail(f, IDEM_E_FORMAT, "DynamoDB: %s was emptied",
                            f->name);
    return result;
}

static int lose(fleet *f)
{
    connection *c = (connection *)f->connection;
    int result = fleet_dynamodb_ask(f, "UpdateItem", MARK
        "'UpdateExpression':'SET lo = :lo','ConditionExpression':'mk = :mark',"
        "'ExpressionAttributeValues':{':lo':{'S':'%s'},':mark':{'S':'%s'}}}",
        c->now, f->mark);

    if (result == IDEM_OK)
        c->looked = 0;
    return result;
}

/* -------------------------------------------------------------------- items */

/* Where a record is among the undelivered: by time, to the second. */
static const char *place(char dst[48], const fleet_record *r)
{
    sprintf(dst, "%016jx%016jx%d", (uintmax_t)r->until, (uintmax_t)r->token,
            r->state);
    return dst;
}

static const char *const ways[] = {
    [FLEET_BY_ID] = "slot = :a AND id = :b','ConsistentRead':true",
    [FLEET_BY_TOKEN] = ("slot = :a','FilterExpression':'#token = :b',"
    "'ExpressionAttributeNames':{'#token':'token'},'ConsistentRead':true"),
    [FLEET_BY_PENDING] =
        "due = :a AND place > :b','IndexName':'pending','Limit':1" };
#define MEMBER(name) ", s:{s:s}"
#define INTO(name) , #name, "S", &got[FLEET_GOT_##name]

static int read_item(fleet *f, fleet_call *c, int way)
{
    connection *to;
    char last[48];
    const char *const b[] = { c->id, c->arg[FLEET_ARG_token],
                              place(last, &c->has) };
    const char *got[FLEET_GOT] = { NULL };
    int result = look_at_mark(f);

    if (result == IDEM_OK)
        result = fleet_dynamodb_ask(f, "Query", "'KeyConditionExpression':'%s,"
            "'ExpressionAttributeValues':{':a':{'S':'%s'},':b':{'S':'%s'}}}",
            ways[way], way == FLEET_BY_PENDING ? "1" : c->arg[FLEET_ARG_slot],
            b[way]);
    if (result != IDEM_OK)
        return result;
    to = (connection *)f->connection;
    // Two of one hash and one token are nobody's.
    if (json_array_size(json_object_get(to->answer, "Items")) == 1)
        json_unpack(to->answer, "{s:[{s:{s:s}, s:{s:s}" FLEET_FIELDS(MEMBER)
                    "}]}", "Items", "id", "S", &got[FLEET_GOT_id], "response",
                    "S", &got[FLEET_GOT_response] FLEET_FIELDS(INTO));
    got[FLEET_GOT_now] = to->now;
    got[FLEET_GOT_lost] = to->lost;
    return fleet_take(c, got);
}

/* Of a new key the same part of the second each time: so it grows from second
   to second even where the item has gone. */
static idem_token next_token(const fleet *f, const fleet_record *r)
{
    uint64_t token = (idem_token)r->now / 1000 * TOKENS +
                       fleet_hash(f, r->id, strlen(r->id)) % TOKENS;

    return token > r->token ? token : r->token + 1;
}

#define FIELD(name) "'" #name "':{'S':'%jd'},"
#define VALUE(name) (intmax_t)r->name,

static int put_item(fleet *f, fleet_call *c, const fleet_record *old)
{
    fleet_record *r = &c->has;
    intmax_t end = (r->until + r->retention) / 1000 + 1;
    char now[48], was[48];

    if (c->what == FLEET_CLAIM)
        r->token = next_token(f, r);
    return fleet_dynamodb_ask(f, "PutItem", "'Item':{" FLEET_FIELDS(FIELD)
        "'slot':{'S':'%s'},'id':{'S':'%s'},'response':{'S':'%s'},"
        "'ex':{'N':'%jd'},%s'place':{'S':'%s'}},"
        "'ConditionExpression':'attribute_not_exists(slot) OR place = :was',"
        "'ExpressionAttributeValues':{':was':{'S':'%s'}}}",
        FLEET_FIELDS(VALUE) c->arg[FLEET_ARG_slot], r->id, r->response,
        fleet_number(r->id) ? 0 : end, r->pending ? "'due':{'S':'1'}," : "",
        place(now, r), place(was, old));
}

/* ------------------------------------------------------------------ opening */

#define STRING(name) "{'AttributeName':'" name "','AttributeType':'S'}"
#define KEYS(hash, range) "'KeySchema':[{'AttributeName':'" hash "'," \
    "'KeyType':'HASH'},{'AttributeName':'" range "','KeyType':'RANGE'}]"

static const char table[] = "'BillingMode':'PAY_PER_REQUEST',"
    "'AttributeDefinitions':[" STRING("slot") "," STRING("id") ","
    STRING("due") "," STRING("place") "]," KEYS("slot", "id") ","
    "'GlobalSecondaryIndexes':[{'IndexName':'pending'," KEYS("due", "place") ","
    "'Projection':{'ProjectionType':'ALL'}}]}";

/* Takes the mark, or makes it: only one of all who try does. */
static int take_mark(fleet *f)
{
    connection *c = (connection *)f->connection;
    const char *mark;
    int result = read_mark(f, &mark);

    if (result == IDEM_OK)
        return fleet_take_mark(f, mark);
    if (result != IDEM_MORE)
        return result;
    fleet_make_mark(f, strtoll(c->now, NULL, 10));
    result = fleet_dynamodb_ask(f, "UpdateItem", MARK "'UpdateExpression':"
        "'SET mk = if_not_exists(mk, :mark)','ExpressionAttributeValues':"
        "{':mark':{'S':'%s'}}}", f->mark);
    return result == IDEM_OK ? IDEM_MORE : result;      // reads it
}

/* Makes the table, if nobody else does just now. */
static int make_table(fleet *f)
{
    int result = fleet_dynamodb_ask(f, "CreateTable", "%s", table);

    return result == IDEM_MORE ? IDEM_OK : result;
}

/* Takes the table, which needs no right to make one; makes it if there is none,
   and waits until it can be used. */
static int open_dynamodb(fleet *f)
{
    int result = fleet_dynamodb_connect(f), is_made = 0;

    if (result != IDEM_OK)
        return result;
    for (int i = 0; i < 600; i++) {
        result = take_mark(f);
        if (result == IDEM_E_FORMAT && strstr(f->reason, "ResourceNotFound")) {
            result = is_made ? IDEM_MORE : make_table(f);
            is_made = 1;
            if (result == IDEM_OK)
                result = IDEM_MORE;
        }
        if (result != IDEM_MORE)
            break;
        poll(NULL, 0, i ? 100 : 0);
    }
    // Whoever makes it switches its TTL on; if he may not, it grows, and the
    // refusal has closed the connection.
    if (result == IDEM_OK && is_made)
        fleet_dynamodb_ask(f, "UpdateTimeToLive", "'TimeToLiveSpecification':"
                           "{'AttributeName':'ex','Enabled':true}}");
    if (result == IDEM_OK && !f->connection) {
        result = fleet_dynamodb_connect(f);
        if (result == IDEM_OK)
            result = take_mark(f);
    }
    return result == IDEM_MORE ? IDEM_E_STORAGE : result;
}

const fleet_store fleet_dynamodb = {
    .schemes = { "dynamodb://" }, .open = open_dynamodb,
    .close = fleet_dynamodb_close, .call = fleet_decide,
    .grace_ms = 1000,               // its time is up to a second late
    .read = read_item, .put = put_item, .lose = lose };
