/* SPDX-License-Identifier: 0BSD */
/* A fleet in DynamoDB, which has no scripts: decide.c decides, a put on a
 * condition is the step.  For NAME in the URL there is a table NAME with items
 *     slot, id        a key's record, the fields of store.h under their names;
 *                     place, another after each change; due, if it is owed: the
 *                     index "owed" has these by place; ex, when it may go (TTL)
 *     "mark", "mark"  mk the mark, tk the last token given
 * There are no floors: the item of a number never goes. */
#define _POSIX_C_SOURCE 200809L
#include "store.h"

#include <curl/curl.h>
#include <jansson.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct connection {
    CURL    *curl;
    char     session[2048];         /* a header, or "" */
    char     body[1 << 18];         /* a response takes 1 << 17 */
    char     text[1 << 19];         /* the last answer, */
    json_t  *answer;
    char     now[24];               /* and the ms that it tells */
} connection;

/* ----------------------------------------------------------------- requests */

/* Posts the body, and takes the answer.  Returns "", or what went wrong. */
static const char *post(connection *c, char *target)
{
    static char json[] = "Content-Type: application/x-amz-json-1.0";
    struct curl_slist session = { c->session, NULL };
    struct curl_slist type = { json, *c->session ? &session : NULL };
    struct curl_slist headers = { target, &type };
    FILE *out = fmemopen(c->text, sizeof c->text - 1, "w");
    CURLcode code = CURLE_OUT_OF_MEMORY;
    struct curl_header *date;

    c->text[0] = 0;                 // in case the answer is empty
    if (out) {
        curl_easy_setopt(c->curl, CURLOPT_HTTPHEADER, &headers);
        curl_easy_setopt(c->curl, CURLOPT_WRITEDATA, out);
        code = curl_easy_perform(c->curl);
        fclose(out);
    }
    if (!code && !curl_easy_header(c->curl, "Date", 0, CURLH_HEADER, -1, &date))
        sprintf(c->now, "%jd000", (intmax_t)curl_getdate(date->value, NULL));
    json_decref(c->answer);
    c->answer = code ? NULL : json_loads(c->text, 0, NULL);
    return code ? curl_easy_strerror(code) : "";
}

/* Asks something of the table, in printf's words, with ' in place of ".
     IDEM_MORE       a condition does not hold; a table is there already
     IDEM_E_FORMAT   no such table, or it has another shape
     IDEM_E_STORAGE  everything else */
static int request(fleet *f, const char *operation, const char *format, ...)
{
    connection *c = (connection *)f->connection;
    char target[80];
    int start = sprintf(c->body, "{'TableName':'%s',", f->name);
    int result = IDEM_E_STORAGE;
    const char *type, *why = "";
    va_list arguments;

    sprintf(target, "X-Amz-Target: DynamoDB_20120810.%s", operation);
    va_start(arguments, format);
    vsnprintf(c->body + start, sizeof c->body - (size_t)start, format,
              arguments);
    va_end(arguments);
    for (char *at = c->body; (at = strchr(at, '\'')) != NULL;)
        *at = '"';
    type = post(c, target);
    json_unpack(c->answer, "{s:s, s?s}", "__type", &type, "message", &why);
    if (c->answer && !*type)
        return IDEM_OK;
    if (strstr(type, "ConditionalCheckFailed") || strstr(type, "InUse"))
        result = IDEM_MORE;
    if (strstr(type, "ResourceNotFound") || strstr(type, "Validation"))
        result = IDEM_E_FORMAT;
    return fleet_fail(f, result, "DynamoDB: %s %s", type, why);
}

/* -------------------------------------------------------------------- items */

/* Makes the mark and the first token, if there are none; takes the next token,
   if the mark is ours. */
#define MAKE "SET mk = if_not_exists(mk, :mark), tk = if_not_exists(tk, :n)'"
#define TAKE "ADD tk :n','ConditionExpression':'mk = :mark'"

static int update_mark(fleet *f, const char *how, int64_t n, idem_token *token)
{
    const char *mark = "", *given = "";
    int result = request(f, "UpdateItem", "'Key':{'slot':{'S':'mark'},"
        "'id':{'S':'mark'}},'UpdateExpression':'%s,'ReturnValues':'ALL_NEW',"
        "'ExpressionAttributeValues':{':mark':{'S':'%s'},':n':{'N':'%jd'}}}",
        how, f->mark, (intmax_t)n);

    if (result < 0)
        return result;
    json_unpack(((connection *)f->connection)->answer, "{s:{s:{s:s}, s:{s:s}}}",
                "Attributes", "mk", "S", &mark, "tk", "N", &given);
    *token = strtoull(given, NULL, 10);
    return fleet_take_mark(f, mark);
}

/* Where a record is among those that are owed: by time, to the second. */
static const char *place(char dst[48], const fleet_record *r)
{
    sprintf(dst, "%016jx%016jx%d", (uintmax_t)r->until, (uintmax_t)r->token,
            r->state);
    return dst;
}

static int take_token(fleet *f, idem_token *token)
{
    return update_mark(f, TAKE, 1, token);
}

static const char *const ways[] = {
    [FLEET_BY_ID] = "slot = :a AND id = :b','ConsistentRead':true",
    [FLEET_BY_TOKEN] = "slot = :a','FilterExpression':'#token = :b',"
    "'ExpressionAttributeNames':{'#token':'token'},'ConsistentRead':true",
    [FLEET_OWED] = "due = :a AND place > :b','IndexName':'owed','Limit':1" };
#define MEMBER(name) ", s:{s:s}"
#define INTO(name) , #name, "S", &told[FLEET_TOLD_##name]

static int read_item(fleet *f, fleet_call *c, int way)
{
    connection *to = (connection *)f->connection;
    char last[48];
    const char *const b[] = { c->id, c->arg[FLEET_ARG_token],
                              place(last, &c->has) };
    const char *told[FLEET_TOLD] = { NULL };
    int result = request(f, "Query", "'KeyConditionExpression':'%s,"
        "'ExpressionAttributeValues':{':a':{'S':'%u'},':b':{'S':'%s'}}}",
        ways[way], way == FLEET_OWED ? 1 : (unsigned)c->slot, b[way]);

    json_unpack(to->answer, "{s:[{s:{s:s}, s:{s:s}" FLEET_FIELDS(MEMBER) "}]}",
                "Items", "id", "S", &told[FLEET_TOLD_id],
                "response", "S", &told[FLEET_TOLD_response] FLEET_FIELDS(INTO));
    told[FLEET_TOLD_now] = to->now;
    fleet_tell(c, told);
    return result;
}

#define FIELD(name) "'" #name "':{'S':'%jd'},"
#define VALUE(name) (intmax_t)r->name,

static int put_item(fleet *f, const fleet_call *c, const fleet_record *old)
{
    const fleet_record *r = &c->has;
    intmax_t end = (r->until + r->retention) / 1000 + 1;
    char now[48], was[48];

    return request(f, "PutItem", "'Item':{" FLEET_FIELDS(FIELD)
        "'slot':{'S':'%u'},'id':{'S':'%s'},'response':{'S':'%s'},"
        "'ex':{'N':'%jd'},%s'place':{'S':'%s'}},"
        "'ConditionExpression':'attribute_not_exists(slot) OR place = :was',"
        "'ExpressionAttributeValues':{':was':{'S':'%s'}}}",
        FLEET_FIELDS(VALUE) (unsigned)c->slot, r->id, r->response,
        strchr(r->id, '#') ? 0 : end, r->owed ? "'due':{'S':'1'}," : "",
        place(now, r), place(was, old));
}

/* ------------------------------------------------------------------ opening */

#define STRING(name) "{'AttributeName':'" name "','AttributeType':'S'}"
#define KEYS(hash, range) "'KeySchema':[{'AttributeName':'" hash "'," \
    "'KeyType':'HASH'},{'AttributeName':'" range "','KeyType':'RANGE'}]"

static const char table[] = "'BillingMode':'PAY_PER_REQUEST',"
    "'AttributeDefinitions':[" STRING("slot") "," STRING("id") ","
    STRING("due") "," STRING("place") "]," KEYS("slot", "id") ","
    "'GlobalSecondaryIndexes':[{'IndexName':'owed'," KEYS("due", "place") ","
    "'Projection':{'ProjectionType':'ALL'}}]}";

/* For a region, or a stand-in's host:port; credentials of the environment. */
static void set_options(connection *c, const char *where)
{
    const char *session = getenv("AWS_SESSION_TOKEN");
    int stand_in = strchr(where, ':') != NULL;

    sprintf(c->body, stand_in ? "http://%s/"
                              : "https://dynamodb.%s.amazonaws.com/", where);
    curl_easy_setopt(c->curl, CURLOPT_URL, c->body);
    sprintf(c->body, "aws:amz:%s:dynamodb", stand_in ? "us-east-1" : where);
    curl_easy_setopt(c->curl, CURLOPT_AWS_SIGV4, c->body);
    curl_easy_setopt(c->curl, CURLOPT_USERNAME, getenv("AWS_ACCESS_KEY_ID"));
    curl_easy_setopt(c->curl, CURLOPT_PASSWORD,
                     getenv("AWS_SECRET_ACCESS_KEY"));
    curl_easy_setopt(c->curl, CURLOPT_TIMEOUT_MS, (long)FLEET_TIMEOUT_MS);
    curl_easy_setopt(c->curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(c->curl, CURLOPT_POSTFIELDS, c->body);
    if (session)
        snprintf(c->session, sizeof c->session, "X-Amz-Security-Token: %s",
                 session);
}

/* Makes table and mark, if nobody has; waits until the table can be used. */
static int open_dynamodb(fleet *f)
{
    connection *c = (connection *)calloc(1, sizeof *c);
    idem_token first;
    int result = IDEM_MORE;

    f->connection = c;
    if (c)
        c->curl = curl_easy_init();
    if (!c || !c->curl)
        return fleet_fail(f, IDEM_E_STORAGE, "no memory for curl");
    set_options(c, f->url + strlen(fleet_dynamodb.scheme));
    for (int i = 0; i < 600 && result == IDEM_MORE; i++) {
        poll(NULL, 0, i ? 100 : 0);
        result = request(f, "CreateTable", "%s", table);
        if (result < 0)
            return result;
        fleet_make_mark(f, strtoll(c->now, NULL, 10));
        result = update_mark(f, MAKE, f->since * 1000, &first);
        if (result == IDEM_E_FORMAT && strstr(f->reason, "ResourceNotFound"))
            result = IDEM_MORE;
    }
    if (result == IDEM_OK)              // refused, if it is on: no harm
        request(f, "UpdateTimeToLive", "'TimeToLiveSpecification':"
                "{'AttributeName':'ex','Enabled':true}}");
    return result == IDEM_MORE ? IDEM_E_STORAGE : result;
}

static void close_dynamodb(fleet *f)
{
    connection *c = (connection *)f->connection;

    curl_easy_cleanup(c->curl);
    json_decref(c->answer);
    free(c);
}

const fleet_store fleet_dynamodb = {
    .scheme = "dynamodb://", .open = open_dynamodb, .close = close_dynamodb,
    .call = fleet_decide, .grace_ms = 1000, // its time is up to a second late
    .read = read_item, .take_token = take_token, .put = put_item };
