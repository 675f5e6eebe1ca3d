/* SPDX-License-Identifier: 0BSD */
/* A fleet in Redis 7: one server and its replicas, no Cluster.  Each call is
 * one script; they and what is in Redis are in redis_lua.h. */
#define _POSIX_C_SOURCE 200809L
#include "store.h"
#include "redis_lua.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct connection {
    redisContext *redis;
    char     sha[FLEET_CALLS][41];  /* of a script that the server has; or "" */
} connection;

/* A part of the URL, percent-decoded */
typedef struct address {
    char     user[128], password[256], host[256], database[8];
    const char *socket;             /* a path; NULL: host and port */
    int      port;
} address;

/* -------------------------------------------------------------------- calls */

static int is_error(const redisReply *r, const char *kind)
{
    return r && r->type == REDIS_REPLY_ERROR &&
           !strncmp(r->str, kind, strlen(kind));
}

/* Prints why, and leaves a useless connection: it broke; or this server
   cannot do it (READONLY, LOADING, NOAUTH and so on), perhaps another can,
   under the same name. */
static int failed(fleet *f, const redisReply *r)
{
    connection *c = (connection *)f->connection;
    int result = is_error(r, "OOM")         ? IDEM_E_FULL
                 : is_error(r, "WRONGTYPE") ? IDEM_E_FORMAT
                                            : IDEM_E_STORAGE;

    fleet_fail(f, result, "Redis: %s", !r ? c->redis->errstr
               : r->type == REDIS_REPLY_ERROR ? r->str : "not an answer");
    if (result == IDEM_E_STORAGE)
        fleet_close(f);
    return result;
}

/* Loads a script into the server, if it is not known to be there. */
static int load(fleet *f, int what)
{
    connection *c = (connection *)f->connection;
    redisReply *r;
    int result = IDEM_OK;

    if (*c->sha[what])
        return IDEM_OK;
    r = (redisReply *)redisCommand(c->redis, "SCRIPT LOAD %s", scripts[what]);
    if (r && r->type == REDIS_REPLY_STRING)
        snprintf(c->sha[what], sizeof c->sha[what], "%s", r->str);
    else
        result = failed(f, r);
    freeReplyObject(r);
    return result;
}

static int run(fleet *f, fleet_call *c)
{
    connection *to = (connection *)f->connection;
    const char *words[4 + FLEET_ARGS] = { "EVALSHA", NULL, "0", f->name };
    const char *got[FLEET_GOT] = { NULL };
    redisReply *r;
    int result = load(f, c->what);

    if (result != IDEM_OK)
        return result;
    words[1] = to->sha[c->what];
    memcpy(words + 4, c->arg, sizeof c->arg);
    r = (redisReply *)redisCommandArgv(to->redis, 4 + FLEET_ARGS, words, NULL);
    if (is_error(r, "NOSCRIPT")) {      // flushed, or a replica took over
        *to->sha[c->what] = 0;
        result = IDEM_MORE;
    } else if (!r || r->type != REDIS_REPLY_ARRAY) {
        result = failed(f, r);
    } else {
        for (size_t i = 0; i < r->elements && i < FLEET_GOT; i++)
            got[i] = r->element[i]->str;
        result = fleet_take(c, got);
    }
    freeReplyObject(r);
    return result;
}

/* ---------------------------------------------------------------------- URL */

/* Copies up to `end`, with %40 and so on decoded; returns whether it fits. */
static int decode(char *dst, size_t size, const char *text, const char *end)
{
    while (text < end) {
        char hex[3] = { 0 };
        if (size-- == 1)
            return 0;
        *dst = *text;
        if (*text == '%') {
            memcpy(hex, text + 1, end - text > 2 ? 2 : 0);
            *dst = (char)strtol(hex, NULL, 16);
            if (strspn(hex, "0123456789abcdefABCDEF") != 2 || !*dst)
                return 0;
            text += 2;
        }
        dst++, text++;
    }
    *dst = 0;
    return 1;
}

/* [[user]:password@]host[:port][/database], or a socket's path as the host. */
static int parse(address *a, const char *text)
{
    const char *at = strrchr(text, '@'), *colon = strchr(text, ':'), *end;
    long port = 6379;

    memset(a, 0, sizeof *a);
    if (at && (!colon || colon > at ||
               !decode(a->user, sizeof a->user, text, colon) ||
               !decode(a->password, sizeof a->password, colon + 1, at)))
        return 0;
    text = at ? at + 1 : text;
    if (*text == '/') {
        a->socket = text;
        return 1;
    }
    end = *text == '[' ? strchr(text, ']') : text + strcspn(text, ":/");
    text += *text == '[';
    if (!end || end == text || !decode(a->host, sizeof a->host, text, end))
        return 0;
    end += *end == ']';
    if (*end == ':')
        port = strtol(end + 1, (char **)&end, 10);
    if (port < 1 || port > 65535 || (*end && *end != '/'))
        return 0;
    a->port = (int)port;
    end += *end == '/';
    return strlen(end) == strspn(end, "0123456789") &&
           decode(a->database, sizeof a->database, end, end + strlen(end));
}

/* ------------------------------------------------------------------ opening */

/* One command of opening, which must be answered with OK. */
static int command(fleet *f, redisReply *r)
{
    int result = r && r->type == REDIS_REPLY_STATUS ? IDEM_OK : failed(f, r);

    freeReplyObject(r);
    return result;
}

static int dial(fleet *f, connection *c, const address *a)
{
    struct timeval patience = { f->timeout_ms / 1000,
                                f->timeout_ms % 1000 * 1000L };
    int result = IDEM_OK;

    c->redis = a->socket ? redisConnectUnixWithTimeout(a->socket, patience)
                         : redisConnectWithTimeout(a->host, a->port, patience);
    if (!c->redis || c->redis->err)     // the URL is not shown: a password
        return fleet_fail(f, IDEM_E_STORAGE, "Redis: %s",
                          c->redis ? c->redis->errstr : "no memory");
    redisSetTimeout(c->redis, patience);
    if (*a->user)
        result = command(f, (redisReply *)redisCommand(
                                c->redis, "AUTH %s %s", a->user, a->password));
    else if (*a->password)
        result = command(f, (redisReply *)redisCommand(c->redis, "AUTH %s",
                                                       a->password));
    if (result != IDEM_OK)              // without AUTH it repeats the password
        return fleet_fail(f, result, "Redis: it does not take the password");
    if (*a->database)
        result = command(f, (redisReply *)redisCommand(c->redis, "SELECT %s",
                                                       a->database));
    return result;
}

/* True unless an answer of CONFIG GET has another value. */
static int has_setting(const redisReply *r, const char *name, const char *value)
{
    for (size_t i = 0; i + 1 < r->elements; i += 2)
        if (!strcmp(r->element[i]->str, name))
            return !strcmp(r->element[i + 1]->str, value);
    return 1;
}

/* Refuses a server that would forget.  INFO has all but how often it syncs; a
   hosted server that hides CONFIG is believed that. */
static int check_settings(fleet *f, redisContext *redis)
{
    static const char *const must[][2] = {
        { "aof_enabled:1", "set appendonly yes" },
        { "maxmemory_policy:noeviction", "set maxmemory-policy noeviction" },
        { "role:master", "it is a replica, connect to its master" },
        { "cluster_enabled:0", "Redis Cluster is not supported" } };
    static const char *const config[][2] = { { "appendfsync", "always" },
        { "no-appendfsync-on-rewrite", "no" } };
    redisReply *r = (redisReply *)redisCommand(redis, "INFO");
    int result = IDEM_OK;

    if (!r || r->type != REDIS_REPLY_STRING)
        result = failed(f, r);
    for (size_t i = 0; i < sizeof must / sizeof *must && !result; i++)
        if (!strstr(r->str, must[i][0]))
            result = fleet_fail(f, IDEM_E_STORAGE, "Redis would forget: %s",
                                must[i][1]);
    freeReplyObject(r);
    if (result != IDEM_OK)
        return result;
    r = (redisReply *)redisCommand(redis, "CONFIG GET *append*");
    if (!r)
        result = failed(f, r);
    for (size_t i = 0; i < sizeof config / sizeof *config && !result; i++)
        if (!has_setting(r, config[i][0], config[i][1]))
            result = fleet_fail(f, IDEM_E_STORAGE, "Redis would forget: set "
                                "%s %s", config[i][0], config[i][1]);
    freeReplyObject(r);
    return result;
}

static int take_mark(fleet *f, redisContext *redis)
{
    redisReply *r;
    int result;

    fleet_make_mark(f, 0);
    r = (redisReply *)redisCommand(redis, "EVAL %s 0 %s %s", mark_script,
                                   f->name, f->mark);
    if (r && r->type == REDIS_REPLY_ERROR && strstr(r->str, "WRONGTYPE"))
        result = fleet_fail(f, IDEM_E_FORMAT, "%s:fleet in Redis is not a "
                            "fleet's: of another type", f->name);
    else
        result = r && r->type == REDIS_REPLY_STRING ? fleet_take_mark(f, r->str)
                                                    : failed(f, r);
    freeReplyObject(r);
    return result;
}

static int open_redis(fleet *f)
{
    connection *c = (connection *)calloc(1, sizeof *c);
    address a;
    int result;

    f->connection = c;
    if (!c)
        return fleet_fail(f, IDEM_E_STORAGE, "no memory for a connection");
    if (!parse(&a, f->url + strlen(fleet_redis.schemes[0])))
        return fleet_fail(f, IDEM_E_ARG, "not a URL of Redis");
    result = dial(f, c, &a);
    if (result == IDEM_OK)
        result = check_settings(f, c->redis);
    return result == IDEM_OK ? take_mark(f, c->redis) : result;
}

static void close_redis(fleet *f)
{
    connection *c = (connection *)f->connection;

    redisFree(c->redis);
    free(c);
}

const fleet_store fleet_redis = { .schemes = { "redis://" }, .open = open_redis,
                                  .close = close_redis, .call = run };
