/* SPDX-License-Identifier: 0BSD */
/* DynamoDB's requests, signed and in JSON; its time; its table. */
#define _POSIX_C_SOURCE 200809L
#include "dynamodb.h"

#include <curl/curl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { BODY = 1 << 18, ANSWER = 1 << 19 };      /* responses take 1 << 17 */

typedef struct connection {
    CURL    *curl;
    struct curl_slist *headers;     /* all but that of the operation */
    char     body[BODY], answer[ANSWER];
    size_t   len;
    int64_t  second, noted;         /* the server's time, ms; and ours then */
} connection;

static int64_t monotonic_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

int64_t dynamodb_now(const fleet *f)
{
    connection *c = (connection *)f->connection;

    return c->second + monotonic_ms() - c->noted;
}

static size_t take(char *data, size_t one, size_t len, void *ctx)
{
    connection *c = (connection *)ctx;

    (void)one;
    if (len >= sizeof c->answer - c->len)
        return 0;
    memcpy(c->answer + c->len, data, len);
    c->len += len;
    return len;
}

static CURLcode post(connection *c, const char *operation)
{
    struct curl_slist header = { NULL, c->headers };
    struct curl_header *date;
    char target[80];
    CURLcode code;

    snprintf(target, sizeof target, "X-Amz-Target: DynamoDB_20120810.%s",
             operation);
    header.data = target;
    curl_easy_setopt(c->curl, CURLOPT_HTTPHEADER, &header);
    curl_easy_setopt(c->curl, CURLOPT_POSTFIELDS, c->body);
    c->len = 0;
    code = curl_easy_perform(c->curl);
    if (!curl_easy_header(c->curl, "Date", 0, CURLH_HEADER, -1, &date)) {
        c->second = (int64_t)curl_getdate(date->value, NULL) * 1000;
        c->noted = monotonic_ms();
    }
    return code;
}

static const char *text(const cJSON *object, const char *name)
{
    const char *found = cJSON_GetStringValue(cJSON_GetObjectItem(object, name));

    return found ? found : "";
}

int dynamodb_request(fleet *f, cJSON **answer, const char *operation,
                     const char *format, ...)
{
    connection *c = (connection *)f->connection;
    va_list arguments;
    CURLcode code;
    cJSON *json;
    const char *type;
    int result = IDEM_E_STORAGE;

    va_start(arguments, format);
    vsnprintf(c->body, sizeof c->body, format, arguments);
    va_end(arguments);
    code = post(c, operation);
    if (code)
        return fleet_fail(f, result, "DynamoDB: %s", curl_easy_strerror(code));
    json = cJSON_ParseWithLength(c->answer, c->len);
    type = text(json, "__type");
    if (json && !*type)
        result = IDEM_OK;
    else if (strstr(type, "ConditionalCheckFailed") ||
             strstr(type, "ResourceInUse"))
        result = IDEM_BUSY;
    else if (strstr(type, "ResourceNotFound") || strstr(type, "Validation"))
        result = IDEM_E_FORMAT;
    if (result != IDEM_OK)
        fleet_fail(f, result, "DynamoDB: %s: %s", type,
                   text(json, "message"));
    if (answer)
        *answer = json;
    else
        cJSON_Delete(json);
    return result;
}

const char *dynamodb_attribute(const cJSON *item, const char *name)
{
    const cJSON *value = cJSON_GetObjectItem(item, name);

    return text(value, value && value->child ? value->child->string : "");
}

/* ------------------------------------------------------------------ opening */

/* Credentials are those of the environment; a region, or for a stand-in
   host:port. */
static void set_options(connection *c, const char *where)
{
    const char *session = getenv("AWS_SESSION_TOKEN");
    int stand_in = strchr(where, ':') != NULL;
    char text[2100];

    snprintf(text, sizeof text,
             stand_in ? "http://%s/" : "https://dynamodb.%s.amazonaws.com/",
             where);
    curl_easy_setopt(c->curl, CURLOPT_URL, text);
    snprintf(text, sizeof text, "aws:amz:%s:dynamodb",
             stand_in ? "us-east-1" : where);
    curl_easy_setopt(c->curl, CURLOPT_AWS_SIGV4, text);
    curl_easy_setopt(c->curl, CURLOPT_USERNAME,
                     getenv("AWS_ACCESS_KEY_ID"));
    curl_easy_setopt(c->curl, CURLOPT_PASSWORD,
                     getenv("AWS_SECRET_ACCESS_KEY"));
    curl_easy_setopt(c->curl, CURLOPT_TIMEOUT_MS, (long)FLEET_TIMEOUT_MS);
    curl_easy_setopt(c->curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(c->curl, CURLOPT_WRITEFUNCTION, take);
    curl_easy_setopt(c->curl, CURLOPT_WRITEDATA, c);
    c->headers = curl_slist_append(
        NULL, "Content-Type: application/x-amz-json-1.0");
    snprintf(text, sizeof text, "X-Amz-Security-Token: %s",
             session ? session : "");
    if (session)
        c->headers = curl_slist_append(c->headers, text);
}

static int set_up(fleet *f)
{
    connection *c;

    if (!getenv("AWS_ACCESS_KEY_ID") || !getenv("AWS_SECRET_ACCESS_KEY"))
        return fleet_fail(f, IDEM_E_ARG, "DynamoDB: AWS_ACCESS_KEY_ID or "
                          "AWS_SECRET_ACCESS_KEY is not set");
    c = (connection *)calloc(1, sizeof *c);
    f->connection = c;
    if (c)
        c->curl = curl_easy_init();
    if (!c || !c->curl)
        return fleet_fail(f, IDEM_E_STORAGE, "no memory for curl");
    set_options(c, f->url + strlen(f->store->scheme));
    return IDEM_OK;
}

void dynamodb_close(fleet *f)
{
    connection *c = (connection *)f->connection;

    curl_easy_cleanup(c->curl);
    curl_slist_free_all(c->headers);
    free(c);
}

/* ---------------------------------------------------------------- the table */

#define DEFINE(name, type) \
    "{\"AttributeName\":\"" name "\",\"AttributeType\":\"" type "\"}"
#define SCHEMA(hash, range) "\"KeySchema\":[" \
    "{\"AttributeName\":\"" hash "\",\"KeyType\":\"HASH\"}," \
    "{\"AttributeName\":\"" range "\",\"KeyType\":\"RANGE\"}]"

static int make_table(fleet *f)
{
    return dynamodb_request(f, NULL, "CreateTable", TABLE
        ",\"BillingMode\":\"PAY_PER_REQUEST\",\"AttributeDefinitions\":["
        DEFINE("slot", "N") "," DEFINE("id", "S") "," DEFINE("ow", "S") ","
        DEFINE("pl", "S") "]," SCHEMA("slot", "id") ","
        "\"GlobalSecondaryIndexes\":[{\"IndexName\":\"owed\"," SCHEMA("ow",
        "pl") ",\"Projection\":{\"ProjectionType\":\"ALL\"}}]}", f->name);
}

/* Waits until a table that is being made, by whomever, can be used. */
static int await_table(fleet *f)
{
    for (int i = 0; i < 600; i++) {
        cJSON *answer = NULL;
        int result = dynamodb_request(f, &answer, "DescribeTable", TABLE "}",
                                      f->name);
        int active = !strcmp(text(cJSON_GetObjectItem(answer, "Table"),
                                  "TableStatus"), "ACTIVE");
        cJSON_Delete(answer);
        if (result != IDEM_OK || active)
            return result;
        poll(NULL, 0, 100);
    }
    return fleet_fail(f, IDEM_E_STORAGE, "the table %s in DynamoDB is not "
                      "active", f->name);
}

/* Takes the mark; in the same step makes it if there is none. */
static int take_mark(fleet *f)
{
    cJSON *answer = NULL;
    const char *mark;
    int result;

    fleet_make_mark(f, dynamodb_now(f));
    result = dynamodb_request(f, &answer, "UpdateItem", TABLE "," MARK_KEY
        ",\"UpdateExpression\":\"SET mk = if_not_exists(mk, :mk), tk = "
        "if_not_exists(tk, :tk)\"" VALUES "{" S(":mk") "," N(":tk") "},"
        "\"ReturnValues\":\"ALL_NEW\"}", f->name, f->mark, f->since * 1000);
    mark = dynamodb_attribute(cJSON_GetObjectItem(answer, "Attributes"), "mk");
    if (result == IDEM_OK && !fleet_take_mark(f, mark))
        result = fleet_fail(f, IDEM_E_FORMAT, "the table %s in DynamoDB is not "
                            "this fleet's: \"%s\"", f->name, mark);
    cJSON_Delete(answer);
    return result;
}

int dynamodb_open(fleet *f)
{
    int result = set_up(f), made;

    if (result == IDEM_OK)
        result = make_table(f);
    made = result == IDEM_OK;
    if (made || result == IDEM_BUSY)                // busy: it is there
        result = await_table(f);
    if (made && result == IDEM_OK)      // not fatal: then the table grows
        dynamodb_request(f, NULL, "UpdateTimeToLive", TABLE ",\"TimeToLive"
            "Specification\":{\"AttributeName\":\"ex\",\"Enabled\":true}}",
            f->name);
    return result == IDEM_OK ? take_mark(f) : result;
}
