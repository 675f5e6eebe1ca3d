/* SPDX-License-Identifier: 0BSD */
/* Requests to DynamoDB, signed with credentials.  These are in the file that
 * AWS_SHARED_CREDENTIALS_FILE names, if it is set (section AWS_PROFILE or
 * "default"), so that another program can renew them; otherwise in
 * AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN. */
#define _POSIX_C_SOURCE 200809L
#include "dynamodb.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THROTTLED = 100 };           /* a meaning */

/* -------------------------------------------------------------- credentials */

enum { KEY, SECRET, SESSION, CREDENTIALS };
static const char *const in_file[] = { "aws_access_key_id",
    "aws_secret_access_key", "aws_session_token" };
static const char *const variables[] = { "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN" };

/* Each thread opens its own fleet, so they are nobody else's. */
typedef struct credentials {
    char     value[CREDENTIALS][FLEET_CREDENTIAL];
} credentials;

static void set(credentials *c, int which, const char *value)
{
    snprintf(c->value[which], sizeof c->value[which], "%s", value ? value : "");
}

/* Takes a line of the file, "name = value". */
static void take_line(credentials *c, const char *name, const char *value)
{
    for (int i = 0; i < CREDENTIALS; i++)
        if (!strcmp(name, in_file[i]))
            set(c, i, value);
}

static int read_file(credentials *c, const char *path)
{
    const char *profile = getenv("AWS_PROFILE");
    char line[FLEET_CREDENTIAL + 200], part[100] = "", name[100];
    char value[FLEET_CREDENTIAL];
    FILE *file = fopen(path, "r");

    if (!file)
        return 0;
    while (fgets(line, sizeof line, file))
        if (sscanf(line, " [%99[^]]]", part) != 1 &&
            !strcmp(part, profile ? profile : "default") &&
            sscanf(line, " %99[a-z_] = %8191s", name, value) == 2)
            take_line(c, name, value);
    fclose(file);
    return 1;
}

/* Reads them as they are now; returns whether there are any.  One that fills
   its place may have been truncated. */
static int read_credentials(credentials *c, const char *path)
{
    for (int i = 0; i < CREDENTIALS; i++)
        set(c, i, path ? "" : getenv(variables[i]));
    if (path && !read_file(c, path))
        return 0;
    for (int i = 0; i < CREDENTIALS; i++)
        if (strlen(c->value[i]) == FLEET_CREDENTIAL - 1)
            return 0;
    return *c->value[KEY] && *c->value[SECRET];
}

/* --------------------------------------------------------------- connection */

static void set_options(const fleet *f, connection *c, const credentials *k)
{
    const char *where = f->url + strlen(fleet_dynamodb.schemes[0]);
    int stand_in = strchr(where, ':') != NULL;

    sprintf(c->body, stand_in ? "http://%s/"
                              : "https://dynamodb.%s.amazonaws.com/", where);
    curl_easy_setopt(c->curl, CURLOPT_URL, c->body);
    sprintf(c->body, "aws:amz:%s:dynamodb", stand_in ? "us-east-1" : where);
    curl_easy_setopt(c->curl, CURLOPT_AWS_SIGV4, c->body);
    curl_easy_setopt(c->curl, CURLOPT_USERNAME, k->value[KEY]);
    curl_easy_setopt(c->curl, CURLOPT_PASSWORD, k->value[SECRET]);
    curl_easy_setopt(c->curl, CURLOPT_TIMEOUT_MS, (long)f->timeout_ms);
    curl_easy_setopt(c->curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(c->curl, CURLOPT_POSTFIELDS, c->body);
    if (*k->value[SESSION])
        snprintf(c->session, sizeof c->session, "X-Amz-Security-Token: %s",
                 k->value[SESSION]);
}

int fleet_dynamodb_connect(fleet *f)
{
    connection *c = (connection *)calloc(1, sizeof *c);
    const char *path = getenv("AWS_SHARED_CREDENTIALS_FILE");
    credentials k;

    f->connection = c;
    if (c)
        c->curl = curl_easy_init();
    if (!c || !c->curl)
        return fleet_fail(f, IDEM_E_STORAGE, "no memory for curl");
    if (!read_credentials(&k, path))
        return fleet_fail(f, IDEM_E_STORAGE, "DynamoDB: no credentials, or too "
                          "long ones, in %s", path ? path : "AWS_ACCESS_KEY_ID "
                          "and AWS_SECRET_ACCESS_KEY");
    set_options(f, c, &k);
    return IDEM_OK;
}

void fleet_dynamodb_close(fleet *f)
{
    connection *c = (connection *)f->connection;

    curl_easy_cleanup(c->curl);
    json_decref(c->answer);
    free(c);
}

/* ----------------------------------------------------------------- requests */

/* Posts the body, and takes the answer.  Returns the HTTP status; 0 if there
   was none, and error is why. */
static long post(connection *c, char *target)
{
    static char json[] = "Content-Type: application/x-amz-json-1.0";
    struct curl_slist session = { c->session, NULL };
    struct curl_slist type = { json, *c->session ? &session : NULL };
    struct curl_slist headers = { target, &type };
    FILE *out = fmemopen(c->text, sizeof c->text - 1, "w");
    CURLcode code = CURLE_OUT_OF_MEMORY;
    struct curl_header *date;
    long status = 0;

    c->text[0] = c->now[0] = c->error[0] = 0;
    if (out) {
        curl_easy_setopt(c->curl, CURLOPT_HTTPHEADER, &headers);
        curl_easy_setopt(c->curl, CURLOPT_WRITEDATA, out);
        code = curl_easy_perform(c->curl);
        fclose(out);
    }
    json_decref(c->answer);
    c->answer = code ? NULL : json_loads(c->text, 0, NULL);
    if (code) {
        snprintf(c->error, sizeof c->error, "%s", curl_easy_strerror(code));
        return 0;
    }
    curl_easy_getinfo(c->curl, CURLINFO_RESPONSE_CODE, &status);
    if (!curl_easy_header(c->curl, "Date", 0, CURLH_HEADER, -1, &date) &&
        curl_getdate(date->value, NULL) > 0)
        sprintf(c->now, "%jd000", (intmax_t)curl_getdate(date->value, NULL));
    return status;
}

/* What an answer other than 200 means: by the type of its error, if it has one
   (a proxy's has none), or else by its status. */
static int meaning(const char *type, long status)
{
    if (strstr(type, "ConditionalCheckFailed") || strstr(type, "InUse"))
        return IDEM_MORE;
    if (strstr(type, "ResourceNotFound") || strstr(type, "Validation"))
        return IDEM_E_FORMAT;
    if (strstr(type, "Throttling") || strstr(type, "ThroughputExceeded") ||
        strstr(type, "LimitExceeded") || status == 429 || status == 503)
        return THROTTLED;
    return IDEM_E_STORAGE;
}

/* True if it was for the credentials. */
static int is_refused(const char *type)
{
    return strstr(type, "ExpiredToken") || strstr(type, "AccessDenied") ||
           strstr(type, "UnrecognizedClient") || strstr(type, "Signature");
}

int fleet_dynamodb_ask(fleet *f, const char *operation, const char *format, ...)
{
    connection *c = (connection *)f->connection;
    char target[80];
    int start = sprintf(c->body, "{'TableName':'%s',", f->name), len, result;
    int wait = FLEET_WAIT_MS;
    int64_t end = fleet_ms() + f->timeout_ms;
    const char *type, *why;
    va_list arguments;
    long status;

    sprintf(target, "X-Amz-Target: DynamoDB_20120810.%s", operation);
    va_start(arguments, format);
    len = vsnprintf(c->body + start, sizeof c->body - (size_t)start, format,
                    arguments);
    va_end(arguments);
    if (len < 0 || (size_t)len >= sizeof c->body - (size_t)start)
        return fleet_fail(f, IDEM_E_TOO_LARGE, "too much for a request");
    for (char *at = c->body; (at = strchr(at, '\'')) != NULL;)
        *at = '"';
    do {
        status = post(c, target);
        type = why = "";
        if (status == 200 && json_is_object(c->answer) && *c->now)
            return IDEM_OK;
        json_unpack(c->answer, "{s?s, s?s}", "__type", &type, "message", &why);
        result = status == 200 ? IDEM_E_STORAGE : meaning(type, status);
        if (result == THROTTLED)
            fleet_back_off(&wait);
    } while (result == THROTTLED && fleet_ms() < end);
    result = result == THROTTLED ? IDEM_E_STORAGE : result;
    fleet_fail(f, result, "DynamoDB: status %ld %s %s", status,
               status ? type : c->error, why);
    if (result == IDEM_E_STORAGE && (status == 403 || is_refused(type)))
        fleet_close(f);
    return result;
}
