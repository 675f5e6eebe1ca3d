/* SPDX-License-Identifier: 0BSD */
/* A fleet in DynamoDB.  A call reads an item, decides, and puts what becomes of
 * it if it is still in its place: the put is the step.  For NAME in the URL
 * there is a table NAME with items
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

/* How much longer leases and retentions are made than was asked for: answers
   tell the time to the second, up to a second late. */
enum { GRACE_MS = 1000 };

typedef struct connection {
    CURL    *curl;
    struct curl_slist headers[3];
    char     operation[80], session[2048];      /* the first, the last */
    char     body[1 << 18];         /* a response takes 1 << 17 */
    char     text[1 << 19];         /* the last answer, */
    json_t  *answer;
    char     now[24];               /* and the ms that it tells */
} connection;

/* ----------------------------------------------------------------- requests */

/* Posts the body, and takes the answer.  Returns "", or what went wrong. */
static const char *post(connection *c)
{
    FILE *out = fmemopen(c->text, sizeof c->text - 1, "w");
    CURLcode code = CURLE_OUT_OF_MEMORY;
    struct curl_header *date;

    c->text[0] = 0;                 // in case the answer is empty
    if (out) {
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
    int start = sprintf(c->body, "{'TableName':'%s',", f->name);
    int result = IDEM_E_STORAGE;
    const char *type, *why = "";
    va_list arguments;

    sprintf(c->operation, "X-Amz-Target: DynamoDB_20120810.%s", operation);
    va_start(arguments, format);
    vsnprintf(c->body + start, sizeof c->body - (size_t)start, format,
              arguments);
    va_end(arguments);
    for (char *at = c->body; (at = strchr(at, '\'')) != NULL;)
        *at = '"';
    type = post(c);
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

#define BY_ID "slot = :a AND id = :b','ConsistentRead':true"
#define BY_TOKEN "slot = :a','FilterExpression':'#token = :b'," \
    "'ExpressionAttributeNames':{'#token':'token'},'ConsistentRead':true"
#define BY_PLACE "due = :a AND place > :b','IndexName':'owed','Limit':1"
#define MEMBER(name) ", s:{s:s}"
#define INTO(name) , #name, "S", &told[FLEET_TOLD_##name]

/* Reads the record of an id; of a claim, for by chance ids share a slot; or the
   first that is owed behind a place. */
static int read_item(fleet *f, fleet_call *c, const char *how, uint32_t a,
                     const char *b)
{
    connection *to = (connection *)f->connection;
    const char *told[FLEET_TOLD] = { NULL };
    int result = request(f, "Query", "'KeyConditionExpression':'%s,"
        "'ExpressionAttributeValues':{':a':{'S':'%u'},':b':{'S':'%s'}}}",
        how, (unsigned)a, b);

    json_unpack(to->answer, "{s:[{s:{s:s}, s:{s:s}" FLEET_FIELDS(MEMBER) "}]}",
                "Items", "id", "S", &told[FLEET_TOLD_id],
                "response", "S", &told[FLEET_TOLD_response] FLEET_FIELDS(INTO));
    told[FLEET_TOLD_now] = to->now;
    fleet_tell(c, told);
    return result;
}

#define FIELD(name) "'" #name "':{'S':'%jd'},"
#define VALUE(name) (intmax_t)r->name,

/* Puts what a record has become, if it is still where it was. */
static int put_item(fleet *f, const fleet_call *c, const char *was)
{
    const fleet_record *r = &c->has;
    intmax_t end = (r->until + r->retention) / 1000 + 1;
    char now[48];

    return request(f, "PutItem", "'Item':{" FLEET_FIELDS(FIELD)
        "'slot':{'S':'%u'},'id':{'S':'%s'},'response':{'S':'%s'},"
        "'ex':{'N':'%jd'},%s'place':{'S':'%s'}},"
        "'ConditionExpression':'attribute_not_exists(slot) OR place = :was',"
        "'ExpressionAttributeValues':{':was':{'S':'%s'}}}",
        FLEET_FIELDS(VALUE) (unsigned)c->slot, r->id, r->response,
        strchr(r->id, '#') ? 0 : end, r->owed ? "'due':{'S':'1'}," : "",
        place(now, r), was);
}

/* ----------------------------------------------------------------- deciding */

#define ARG(name) strtoll(c->arg[FLEET_ARG_##name], NULL, 10)

/* What to answer; IDEM_OK, EXECUTE and RECOVER: once the record is changed. */
static int decide(const fleet *f, const fleet_call *c)
{
    const fleet_record *r = &c->has;
    int over = fleet_is_over(r), finished = r->state > IDEM_IN_PROGRESS;
    int64_t age = ARG(age), reach = r->now - f->since;

    if (c->what == FLEET_DELIVERED)
        return over || !finished ? IDEM_E_NOT_FOUND : IDEM_OK;
    if (c->what != FLEET_CLAIM)
        return over || finished ? IDEM_E_FENCED : IDEM_OK;
    if (over)
        return (age && (age >= ARG(retention) || age >= reach)) ||
               (r->state && strchr(c->id, '#')) ? IDEM_TOO_OLD : IDEM_EXECUTE;
    if (r->fingerprint != (uint64_t)ARG(fingerprint))
        return IDEM_MISMATCH;
    if (finished)
        return IDEM_REPLAY;
    if (r->now < r->until)
        return IDEM_BUSY;
    return r->attempts >= ARG(limit) ? IDEM_EXHAUSTED : IDEM_RECOVER;
}

/* What a claim has of its own. */
static int claim(fleet *f, fleet_call *c, int answer)
{
    fleet_record *r = &c->has;

    strcpy(r->id, c->id);
    r->attempts = answer == IDEM_EXECUTE ? 1 : r->attempts + 1;
    r->fingerprint = (uint64_t)ARG(fingerprint);
    r->retention = ARG(retention) + GRACE_MS;
    r->reserved = (size_t)ARG(reserved);
    return update_mark(f, TAKE, 1, &r->token);
}

/* The state that a call wants, with what belongs to it. */
static int change(fleet_call *c)
{
    fleet_record *r = &c->has;
    int64_t lease_end = r->now + ARG(lease) + GRACE_MS;

    r->owed = (int)ARG(owed);
    if (c->what == FLEET_DELIVERED)
        return IDEM_OK;
    r->state = (int)ARG(state);
    r->code = (int32_t)ARG(code);
    r->response = c->arg[FLEET_ARG_response];
    if (r->state != IDEM_IN_PROGRESS)
        r->until = r->now;
    else if (r->until < lease_end)
        r->until = lease_end;
    return strlen(r->response) > 2 * r->reserved ? IDEM_E_TOO_LARGE : IDEM_OK;
}

/* The next that is owed, and not over. */
static int find_owed(fleet *f, fleet_call *c)
{
    char last[48];
    int result;

    do
        result = read_item(f, c, BY_PLACE, 1, place(last, &c->has));
    while (result == IDEM_OK && c->has.state && fleet_is_over(&c->has));
    return result;
}

/* Tries a call; the condition of its put may not hold. */
static int run(fleet *f, fleet_call *c)
{
    const char *token = c->arg[FLEET_ARG_token];
    int result = *c->id ? read_item(f, c, BY_ID, c->slot, c->id)
                        : read_item(f, c, BY_TOKEN, c->slot, token);
    int answer = decide(f, c);
    char was[48];

    if (result != IDEM_OK || c->what == FLEET_FIND)
        return result;
    if (c->what == FLEET_PENDING)
        return find_owed(f, c);
    if (answer == IDEM_REPLAY)
        fleet_hand_over(c);
    if (answer < IDEM_OK || answer > IDEM_RECOVER)
        return answer;
    place(was, &c->has);
    if (c->what == FLEET_CLAIM)
        result = claim(f, c, answer);
    if (result == IDEM_OK)
        result = change(c);
    if (result == IDEM_OK)
        result = put_item(f, c, was);
    return result == IDEM_OK ? answer : result;
}

/* ------------------------------------------------------------------ opening */

static const char table[] = "'BillingMode':'PAY_PER_REQUEST',"
    "'AttributeDefinitions':[{'AttributeName':'slot','AttributeType':'S'},"
    "{'AttributeName':'id','AttributeType':'S'},"
    "{'AttributeName':'due','AttributeType':'S'},"
    "{'AttributeName':'place','AttributeType':'S'}],"
    "'KeySchema':[{'AttributeName':'slot','KeyType':'HASH'},"
    "{'AttributeName':'id','KeyType':'RANGE'}],"
    "'GlobalSecondaryIndexes':[{'IndexName':'owed',"
    "'KeySchema':[{'AttributeName':'due','KeyType':'HASH'},"
    "{'AttributeName':'place','KeyType':'RANGE'}],"
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
    curl_easy_setopt(c->curl, CURLOPT_HTTPHEADER, c->headers);
    c->headers[0].data = c->operation;
    c->headers[0].next = &c->headers[1];
    c->headers[1].data = (char *)"Content-Type: application/x-amz-json-1.0";
    c->headers[1].next = session ? &c->headers[2] : NULL;
    c->headers[2].data = c->session;
    snprintf(c->session, sizeof c->session, "X-Amz-Security-Token: %s",
             session ? session : "");
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

const fleet_store fleet_dynamodb = { "dynamodb://", open_dynamodb,
                                     close_dynamodb, run };
