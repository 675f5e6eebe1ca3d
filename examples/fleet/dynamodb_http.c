/* SPDX-License-Identifier: 0BSD */
#define _POSIX_C_SOURCE 200809L
#include "dynamodb_http.h"

#include <curl/curl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { DRIFT_ONE_IN = 2000 };       /* more than any clock gains */

typedef struct connection {
    CURL    *curl;
    char     endpoint[300], signing[300], session[2048];
    char    *text;              /* of the answer that is being read */
    size_t   len;
    int64_t  ahead;             /* server's time, less our monotonic one, */
    int64_t  noted;             /* as it was found out at that */
    char     why[CURL_ERROR_SIZE];
} connection;

/* --------------------------------------------------------------------- time */

static int64_t monotonic_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

int64_t dynamodb_now(const fleet *f)
{
    return monotonic_ms() + ((const connection *)f->connection)->ahead;
}

/* An answer that was sent in the second that its header "Date" names: what we
   take for the server's time must be in it; and rather early in it, so what our
   clock may have run too fast is taken off. */
static void note_time(connection *c)
{
    struct curl_header *date;
    int64_t second, now = monotonic_ms();

    if (curl_easy_header(c->curl, "Date", 0, CURLH_HEADER, -1, &date) !=
        CURLHE_OK)
        return;
    second = (int64_t)curl_getdate(date->value, NULL) * 1000;
    if (now - c->noted >= DRIFT_ONE_IN) {
        c->ahead -= (now - c->noted) / DRIFT_ONE_IN;
        c->noted = now;
    }
    if (now + c->ahead < second)
        c->ahead = second - now;
    else if (now + c->ahead > second + 999)
        c->ahead = second + 999 - now;
}

/* ------------------------------------------------------------------ answers */

static size_t take(char *data, size_t one, size_t len, void *ctx)
{
    connection *c = (connection *)ctx;
    char *text = (char *)realloc(c->text, c->len + len + 1);

    (void)one;
    if (!text)
        return 0;
    memcpy(text + c->len, data, len);
    c->text = text;
    c->len += len;
    text[c->len] = 0;
    return len;
}

const char *dynamodb_text(const cJSON *object, const char *name)
{
    const cJSON *field = cJSON_GetObjectItem(object, name);

    return cJSON_IsString(field) ? field->valuestring : "";
}

/* What an error of DynamoDB's means. */
static int judge(fleet *f, const cJSON *answer)
{
    static const struct error {
        const char *name;
        int result;
    } errors[] = { { "ConditionalCheckFailedException", IDEM_BUSY },
                   { "ResourceInUseException", IDEM_BUSY },
                   { "ResourceNotFoundException", IDEM_E_FORMAT },
                   { "ValidationException", IDEM_E_FORMAT } };
    const char *type = dynamodb_text(answer, "__type");
    const char *name = strrchr(type, '#');
    int result = IDEM_E_STORAGE;

    name = name ? name + 1 : type;
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        if (!strcmp(name, errors[i].name))
            result = errors[i].result;
    return fleet_fail(f, result, "DynamoDB: %s: %s", name,
                      dynamodb_text(answer, "message"));
}

/* ----------------------------------------------------------------- requests */

/* Sends a body, and keeps the answer's text. */
static CURLcode post(connection *c, const char *operation, const char *body)
{
    struct curl_slist *headers = NULL;
    char target[80];
    CURLcode result;

    snprintf(target, sizeof target, "X-Amz-Target: DynamoDB_20120810.%s",
             operation);
    headers = curl_slist_append(headers, target);
    headers = curl_slist_append(headers,
                                "Content-Type: application/x-amz-json-1.0");
    if (*c->session)
        headers = curl_slist_append(headers, c->session);
    curl_easy_setopt(c->curl, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(c->curl, CURLOPT_POSTFIELDS, body);
    c->len = 0;
    c->why[0] = 0;
    result = curl_easy_perform(c->curl);
    curl_easy_setopt(c->curl, CURLOPT_HTTPHEADER, NULL);
    curl_slist_free_all(headers);
    return result;
}

static char *format_body(const char *format, va_list arguments)
{
    va_list again;
    char *body;
    int len;

    va_copy(again, arguments);
    len = vsnprintf(NULL, 0, format, again);
    va_end(again);
    body = len < 0 ? NULL : (char *)malloc((size_t)len + 1);
    if (body)
        vsnprintf(body, (size_t)len + 1, format, arguments);
    return body;
}

int dynamodb_call(fleet *f, cJSON **answer, const char *operation,
                  const char *format, ...)
{
    connection *c = (connection *)f->connection;
    va_list arguments;
    char *body;
    cJSON *json;
    CURLcode code;
    long status = 0;
    int result = IDEM_OK;

    va_start(arguments, format);
    body = format_body(format, arguments);
    va_end(arguments);
    if (!body)
        return fleet_fail(f, IDEM_E_STORAGE, "no memory for a request");
    code = post(c, operation, body);
    free(body);
    if (code != CURLE_OK)
        return fleet_fail(f, IDEM_E_STORAGE, "DynamoDB: %s",
                          *c->why ? c->why : curl_easy_strerror(code));
    note_time(c);
    curl_easy_getinfo(c->curl, CURLINFO_RESPONSE_CODE, &status);
    json = c->len ? cJSON_ParseWithLength(c->text, c->len) : NULL;
    if (status != 200)
        result = judge(f, json);
    else if (!json)
        result = fleet_fail(f, IDEM_E_STORAGE, "DynamoDB: no JSON");
    if (answer)
        *answer = json;
    else
        cJSON_Delete(json);
    return result;
}

/* --------------------------------------------------------------- connecting */

/* A region, or for a stand-in host:port. */
static void set_endpoint(connection *c, const char *where)
{
    int stand_in = strchr(where, ':') != NULL;

    snprintf(c->endpoint, sizeof c->endpoint,
             stand_in ? "http://%s/" : "https://dynamodb.%s.amazonaws.com/",
             where);
    snprintf(c->signing, sizeof c->signing, "aws:amz:%s:dynamodb",
             stand_in ? "us-east-1" : where);
}

static void set_options(connection *c, const char *id, const char *secret)
{
    curl_easy_setopt(c->curl, CURLOPT_URL, c->endpoint);
    curl_easy_setopt(c->curl, CURLOPT_AWS_SIGV4, c->signing);
    curl_easy_setopt(c->curl, CURLOPT_USERNAME, id);
    curl_easy_setopt(c->curl, CURLOPT_PASSWORD, secret);
    curl_easy_setopt(c->curl, CURLOPT_TIMEOUT_MS, (long)FLEET_TIMEOUT_MS);
    curl_easy_setopt(c->curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(c->curl, CURLOPT_WRITEFUNCTION, take);
    curl_easy_setopt(c->curl, CURLOPT_WRITEDATA, c);
    curl_easy_setopt(c->curl, CURLOPT_ERRORBUFFER, c->why);
}

int dynamodb_connect(fleet *f)
{
    const char *where = f->url + strlen(f->store->scheme);
    const char *id = getenv("AWS_ACCESS_KEY_ID");
    const char *secret = getenv("AWS_SECRET_ACCESS_KEY");
    const char *session = getenv("AWS_SESSION_TOKEN");
    connection *c;

    if (!id || !secret || strlen(where) > 200)
        return fleet_fail(f, IDEM_E_ARG, "DynamoDB: AWS_ACCESS_KEY_ID or "
                          "AWS_SECRET_ACCESS_KEY is not set");
    c = (connection *)calloc(1, sizeof *c);
    f->connection = c;
    if (c)
        c->curl = curl_easy_init();
    if (!c || !c->curl)
        return fleet_fail(f, IDEM_E_STORAGE, "no memory for curl");
    if (session)
        snprintf(c->session, sizeof c->session, "X-Amz-Security-Token: %s",
                 session);
    set_endpoint(c, where);
    set_options(c, id, secret);
    return IDEM_OK;
}

void dynamodb_disconnect(fleet *f)
{
    connection *c = (connection *)f->connection;

    curl_easy_cleanup(c->curl);
    free(c->text);
    free(c);
}
