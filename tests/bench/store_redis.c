/* SPDX-License-Identifier: 0BSD */
/* Redis (redis-server, libhiredis-dev) on a unix socket, appendfsync always.
   A claim is SET NX GET with an expiry, an outcome a script that compares what
   is there with the claim; commands in flight are pipelined.  An answer is sent
   after the file was synced. */
#define _POSIX_C_SOURCE 200809L

#include "tests/bench/store.h"

#include <hiredis/hiredis.h>

/* Outcome for claim; 1 if the claim was current */
static const char complete_script[] =
    "if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end "
    "redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3]) return 1";

static redisContext *connection;
static char script[64];

static redisReply *must(void *reply)
{
    redisReply *r = reply;

    if (!r)
        fail("Redis: %s", connection->errstr);
    if (r->type == REDIS_REPLY_ERROR)
        fail("Redis: %s", r->str);
    return r;
}

static redisReply *next_reply(void)
{
    void *reply = NULL;

    redisGetReply(connection, &reply);
    return must(reply);
}

/* True when the server has read its file and answers. */
static int is_ready(const char *path)
{
    redisReply *r;
    int ready;

    connection = redisConnectUnix(path);
    if (!connection || connection->err) {
        redisFree(connection);
        return 0;
    }
    r = redisCommand(connection, "PING");
    ready = r && r->type != REDIS_REPLY_ERROR;
    freeReplyObject(r);
    if (!ready)
        redisFree(connection);
    return ready;
}

static const char *open_redis(const char *folder)
{
    char path[600];
    double start = now_us();
    redisReply *r;

    if (server_start("redis", folder))
        return "redis-server is not installed";
    snprintf(path, sizeof path, "%s/redis.sock", folder);
    while (!is_ready(path)) {
        if (now_us() - start > 60e6)
            return "the server does not answer";
        pause_ms(1);
    }
    r = must(redisCommand(connection, "SCRIPT LOAD %s", complete_script));
    snprintf(script, sizeof script, "%s", r->str);
    freeReplyObject(r);
    return NULL;
}

static void close_redis(void)
{
    redisFree(connection);
    server_stop("redis");
}

static void begin_redis(struct job *jobs, int count)
{
    int i;

    for (i = 0; i < count; i++) {
        struct value v = value_claim(&jobs[i]);
        v.until_ms = 0;         // the server's expiry; so a claim is known
        redisAppendCommand(connection, "SET %b %b NX GET PX %d", jobs[i].key,
                           (size_t)KEY_LEN, &v, sizeof v, RETENTION_MS);
    }
    for (i = 0; i < count; i++) {
        redisReply *r = next_reply();
        if (r->type == REDIS_REPLY_STRING) {
            struct value v;
            memcpy(&v, r->str, sizeof v);
            value_answer(&v, &jobs[i]);
        }
        freeReplyObject(r);
    }
}

static void complete_redis(struct job *jobs, int count)
{
    int i;

    for (i = 0; i < count; i++) {
        struct value claim, v;
        memset(&claim, 0, sizeof claim);
        claim.fingerprint = jobs[i].fingerprint;
        claim.token = jobs[i].token;
        claim.status = IDEM_IN_PROGRESS;
        v = claim;
        value_complete(&v, &jobs[i]);
        redisAppendCommand(connection, "EVALSHA %s 1 %b %b %b %d", script,
                           jobs[i].key, (size_t)KEY_LEN, &claim, sizeof claim,
                           &v, sizeof v, RETENTION_MS);
    }
    for (i = 0; i < count; i++) {
        redisReply *r = next_reply();
        jobs[i].answer = r->integer == 1 ? IDEM_OK : IDEM_E_FENCED;
        freeReplyObject(r);
    }
}

/* The length of the append-only file */
static uint64_t written_redis(void)
{
    redisReply *r = must(redisCommand(connection, "INFO persistence"));
    const char *size = strstr(r->str, "aof_current_size:");
    uint64_t bytes = size ? strtoull(size + 17, NULL, 10) : 0;

    freeReplyObject(r);
    return bytes;
}

const struct store redis_store = { "Redis", open_redis, close_redis,
                                   begin_redis, complete_redis,
                                   written_redis };
