/* SPDX-License-Identifier: 0BSD */
/* A fleet in Redis 7 (one server and its replicas, no Cluster): each call is
 * one script of redis_scripts.h, and nothing else runs while it runs. */
#define _POSIX_C_SOURCE 200809L
#include "redis_send.h"
#include "redis_scripts.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PORT = 6379 };

static int claim(fleet *f, fleet_record *record, const fleet_wish *w)
{
    redis_command c;

    redis_start(&c, f, claim_script);
    redis_add(&c, w->id, w->id_len);
    redis_add_number(&c, w->fingerprint);
    redis_add_number(&c, w->lease);
    redis_add_number(&c, w->retention);
    redis_add_number(&c, w->reserved);
    redis_add_number(&c, w->max_attempts);
    redis_add_number(&c, w->age);
    redis_add_number(&c, (uint64_t)f->since);
    return redis_run(f, &c, record);
}

static int complete(fleet *f, const idem_claim *which, const idem_outcome *o)
{
    char code[12];
    redis_command c;

    redis_start(&c, f, complete_script);
    redis_add_number(&c, which->token);
    redis_add_number(&c, o->failed ? IDEM_FAILED : IDEM_COMPLETED);
    redis_add(&c, code,
              (size_t)snprintf(code, sizeof code, "%" PRId32, o->code));
    redis_add_number(&c, o->confirm ? 1 : 0);
    redis_add(&c, o->response, o->response_len);
    return redis_run(f, &c, NULL);
}

/* A script that needs a token alone, or a number besides. */
static int run_token(fleet *f, const char *script, const idem_claim *which,
                     uint64_t number, fleet_record *record)
{
    redis_command c;

    redis_start(&c, f, script);
    redis_add_number(&c, which->token);
    redis_add_number(&c, number);
    return redis_run(f, &c, record);
}

static int release(fleet *f, const idem_claim *which)
{
    return run_token(f, release_script, which, 0, NULL);
}

static int renew(fleet *f, const idem_claim *which, uint32_t lease)
{
    return run_token(f, renew_script, which, lease, NULL);
}

static int find(fleet *f, fleet_record *record, const fleet_wish *w)
{
    redis_command c;

    redis_start(&c, f, find_script);
    redis_add(&c, w->id, w->id_len);
    return redis_run(f, &c, record);
}

static int pending(fleet *f, fleet_record *record, const idem_claim *after)
{
    return run_token(f, pending_script, after, 0, record);
}

static int delivered(fleet *f, const idem_claim *which)
{
    return run_token(f, delivered_script, which, 0, NULL);
}

/* ------------------------------------------------------------------ opening */

/* Connects as the URL says; NULL if it says nothing that can be. */
static redisContext *dial(const char *url)
{
    static const struct timeval patience = { FLEET_TIMEOUT_MS / 1000, 0 };
    char host[256] = "";
    const char *at = strrchr(url, '@');
    const char *where = at ? at + 1 : url + strlen(fleet_redis.scheme);
    redisContext *redis;
    int port = PORT;

    if (*where == '/')
        redis = redisConnectUnixWithTimeout(where, patience);
    else if (sscanf(where, "%255[^:]:%d", host, &port) >= 1)
        redis = redisConnectWithTimeout(host, port, patience);
    else
        return NULL;
    if (redis && !redis->err)
        redisSetTimeout(redis, patience);
    return redis;
}

/* One command of opening: the last of its answer, in `text`.  False if it is
   refused, and then `text` says why. */
static int ask(redisContext *redis, char *text, size_t size,
               const char *format, ...)
{
    va_list arguments;
    redisReply *r, *last;
    int done;

    va_start(arguments, format);
    r = (redisReply *)redisvCommand(redis, format, arguments);
    va_end(arguments);
    last = r && r->type == REDIS_REPLY_ARRAY && r->elements
               ? r->element[r->elements - 1] : r;
    done = r && r->type != REDIS_REPLY_ERROR;
    snprintf(text, size, "%s",
             !r ? redis->errstr : last->str ? last->str : "");
    freeReplyObject(r);
    return done;
}

/* Finds a setting with which the server would forget; a hosted one that does
   not tell its settings is believed. */
static const char *forgets(redisContext *redis)
{
    static const char *const must[][2] = { { "appendonly", "yes" },
                                           { "appendfsync", "always" },
                                           { "maxmemory-policy",
                                             "noeviction" } };
    char is[64];

    for (size_t i = 0; i < sizeof must / sizeof *must; i++)
        if (ask(redis, is, sizeof is, "CONFIG GET %s", must[i][0]) &&
            strcmp(is, must[i][1]) != 0)
            return must[i][0];
    return NULL;
}

static int open_marked(fleet *f, redisContext *redis)
{
    const char *url = f->url + strlen(fleet_redis.scheme);
    const char *at = strrchr(url, '@'), *wrong;
    char text[256], mark[sizeof f->mark];
    size_t len = at ? (size_t)(at - url) - 1 : 0;

    if (at && (*url != ':' ||
               !ask(redis, text, sizeof text, "AUTH %b", url + 1, len)))
        return fleet_fail(f, IDEM_E_STORAGE, "Redis: the password is refused");
    wrong = forgets(redis);
    if (wrong)
        return fleet_fail(f, IDEM_E_STORAGE, "Redis would forget: its %s must "
                          "be set as README.md says", wrong);
    if (!ask(redis, text, sizeof text, "EVAL %s 0", time_script))
        return fleet_fail(f, IDEM_E_STORAGE, "Redis: %s", text);
    fleet_make_mark(f, strtoll(text, NULL, 10));
    if (!ask(redis, text, sizeof text, "SET %s:mark %s NX", f->name, f->mark) ||
        !ask(redis, mark, sizeof mark, "GET %s:mark", f->name))
        return fleet_fail(f, IDEM_E_STORAGE, "Redis: %s", text);
    if (!fleet_take_mark(f, mark))
        return fleet_fail(f, IDEM_E_FORMAT, "%s:mark in Redis is not this "
                          "fleet's: \"%s\"", f->name, mark);
    return IDEM_OK;
}

static int open_redis(fleet *f)
{
    redisContext *redis = dial(f->url);

    f->connection = redis;
    if (!redis || redis->err)           // the URL is not told: a password
        return fleet_fail(f, IDEM_E_STORAGE, "Redis: %s",
                          redis ? redis->errstr : "no host in the URL");
    return open_marked(f, redis);
}

static void close_redis(fleet *f)
{
    redisFree((redisContext *)f->connection);
}

const fleet_store fleet_redis = {
    .scheme = "redis://", .open = open_redis, .close = close_redis,
    .claim = claim, .complete = complete, .release = release, .renew = renew,
    .find = find, .pending = pending, .delivered = delivered
};
