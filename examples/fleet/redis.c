/* SPDX-License-Identifier: 0BSD */
/* A fleet in Redis 7 (one server and its replicas, no Cluster): each call is
 * one script, and nothing else runs meanwhile.  With NAME there are
 *     NAME:mark      whose it is, and since when
 *     NAME:token     the last token given, to a claim or an owed outcome
 *     NAME:k:ID      a key's record, a hash; ends with its retention
 *     NAME:t:TOKEN   the ID of the record that has this token; ends likewise
 *     NAME:owed      tokens of the outcomes that are owed, in order
 *     NAME:n:SCOPE   the scope's live numbers, by when their retention ends
 *     NAME:floor     of each scope, the highest number that has left */
#define _POSIX_C_SOURCE 200809L
#include "store.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <string.h>

/* ------------------------------------------------------------------ scripts */

#define IN_LUA(name, type) ", " #name
#define IN_QUOTES(name) ", '" #name "'"

/* What all scripts start with.  Tokens are microseconds, or one more than the
   last: so they also grow where a failover lost the last ones. */
#define HEAD \
    "local name" FLEET_ARGUMENTS(IN_LUA, , ) " = unpack(ARGV)\n" \
    "local call = redis.call\n" \
    "if call('GET', name .. ':mark') ~= mark then return {'-9'} end\n" \
    "local t = call('TIME')\n" \
    "local us, now = t[1] * 1e6 + t[2], t[1] * 1e3 + math.floor(t[2] / 1e3)\n" \
    "local function key(id) return name .. ':k:' .. id end\n" \
    "local function get(id, field) return call('HGET', key(id), field) end\n" \
    "local function named() return call('GET', name .. ':t:' .. token) end\n" \
    "local function tell(answer, id)\n" \
    "  return {answer, string.format('%.0f', now), id, unpack(call('HMGET',\n" \
    "    key(id), 'response'" FLEET_FIELDS(IN_QUOTES) "))} end\n" \
    "local function grow()\n" \
    "  us = math.max(us, 1 + (call('GET', name .. ':token') or 0))\n" \
    "  local token = string.format('%.0f', us)\n" \
    "  call('SET', name .. ':token', token)\n" \
    "  return token end\n" \
    "local function split(id) return id:match('^(%x*)#(%x*)$') end\n" \
    "local function floor(scope)\n"     /* what has left raises it now */ \
    "  local numbers = name .. ':n:' .. scope\n" \
    "  local highest = call('HGET', name .. ':floor', scope) or ''\n" \
    "  local gone = call('ZRANGE', numbers, '-inf', now, 'BYSCORE')\n" \
    "  for _, n in ipairs(gone) do\n" \
    "    if n > highest then highest = n end\n" \
    "    call('HSET', name .. ':floor', scope, highest)\n" \
    "    call('ZREM', numbers, n) end\n" \
    "  return highest end\n" \
    "local function is_past(id)\n"      /* of an epoch that is over */ \
    "  local scope, n = split(id)\n" \
    "  return n and n:sub(1, 8) < floor(scope):sub(1, 8) end\n" \
    "local function held()\n" \
    "  local id = named()\n" \
    "  return id and get(id, 'state') == '1' and not is_past(id) and id end\n" \
    "local function keep(id, till)\n" \
    "  local scope, n = split(id)\n" \
    "  if n then call('ZADD', name .. ':n:' .. scope, till, n) end\n" \
    "  call('PEXPIREAT', key(id), till)\n" \
    "  call('PEXPIREAT', name .. ':t:' .. token, till) end\n"

/* What is completed, released or renewed has its room already, so these run
   also where maxmemory is reached. */
#define FITS "#!lua flags=allow-oom\n" HEAD
#define HELD FITS "local id = held() if not id then return {'-4'} end\n"

/* Numbers that they return are results of idem.h. */
static const char *const scripts[FLEET_CALLS] = {
    [FLEET_CLAIM] = HEAD
    "local scope, n = split(id)\n"
    "local was, last, made, of, till = unpack(call('HMGET', key(id),\n"
    "  'state', 'token', 'attempts', 'fingerprint', 'until'))\n"
    "if not was then\n"
    "  if call('EXISTS', key(id)) == 1 then return {'-9'} end\n"
    "  local a, r = tonumber(age), tonumber(retention)\n"
    "  if a > 0 and (a >= r or a >= now - since) or n and n <= floor(scope)\n"
    "    then return {'7'} end\n"
    "elseif of ~= fingerprint then return {'6'}\n"
    "elseif was ~= '1' then return tell('4', id)\n"
    "elseif is_past(id) then return {'7'}\n"
    "elseif now < tonumber(till) then return tell('5', id)\n"
    "elseif tonumber(made) >= tonumber(limit) then return {'8'} end\n"
    "token = grow()\n"
    "call('HSET', key(id), 'state', 1, 'token', token, 'attempts',\n"
    "  (made or 0) + 1, 'fingerprint', fingerprint, 'until', now + lease,\n"
    "  'retention', retention, 'reserved', reserved, 'code', 0, 'owed', 0,\n"
    "  'response', '')\n"
    "call('SET', name .. ':t:' .. token, id)\n"
    "if last then call('DEL', name .. ':t:' .. last) end\n"
    "keep(id, now + lease + retention)\n"
    "if n and n:sub(1, 8) .. '00000000' > floor(scope) then\n" // a new epoch
    "  call('HSET', name .. ':floor', scope, n:sub(1, 8) .. '00000000') end\n"
    "return tell(was and '2' or '1', id)\n",

    [FLEET_COMPLETE] = HELD
    "if #response > 2 * get(id, 'reserved') then return {'-2'} end\n"
    "call('HSET', key(id), 'state', state, 'code', code, 'owed', owed,\n"
    "  'response', response, 'until', now)\n"
    "keep(id, now + get(id, 'retention'))\n"
    "if owed == '1' then\n"
    "  call('HSET', key(id), 'place', grow())\n"
    "  call('ZADD', name .. ':owed', get(id, 'place'), token) end\n"
    "return {'0'}\n",

    [FLEET_RELEASE] = HELD
    "local scope, n = split(id)\n"
    "if n then call('ZREM', name .. ':n:' .. scope, n) end\n"
    "call('DEL', key(id), name .. ':t:' .. token)\n"
    "return {'0'}\n",

    [FLEET_RENEW] = HELD
    "local till = math.max(tonumber(get(id, 'until')), now + lease)\n"
    "call('HSET', key(id), 'until', till)\n"
    "keep(id, till + get(id, 'retention'))\n"
    "return {'0'}\n",

    [FLEET_FIND] = FITS "return tell('0', id)\n",

    [FLEET_PENDING] = FITS
    "local owed = name .. ':owed'\n"
    "local place = named() and get(named(), 'place')\n"
    "while true do\n"
    "  token = call('ZRANGE', owed, place and '(' .. place or '-inf',\n"
    "    '+inf', 'BYSCORE', 'LIMIT', 0, 1)[1]\n"
    "  if not token then return {'-5'} end\n"
    "  if named() then return tell('0', named()) end\n"
    "  call('ZREM', owed, token) end\n",            // its retention is over

    [FLEET_DELIVERED] = FITS
    "local id = named()\n"
    "if not id or get(id, 'state') == '1' then return {'-5'} end\n"
    "call('HSET', key(id), 'owed', 0)\n"
    "call('ZREM', name .. ':owed', token)\n"
    "return {'0'}\n"
};

/* Takes the key, and a mark that ends with 0 in place of the time. */
static const char mark_script[] =
    "local t = redis.call('TIME')\n"
    "local now = string.format('%.0f', t[1] * 1000 + t[2] / 1000)\n"
    "redis.call('SET', ARGV[1], ARGV[2]:sub(1, -2) .. now, 'NX')\n"
    "return redis.call('GET', ARGV[1])\n";

static int run(fleet *f, fleet_call *c)
{
    redisContext *redis = (redisContext *)f->connection;
    const char *words[4 + FLEET_ARGS] = { "EVAL", scripts[c->what], "0" };
    const char *told[FLEET_TOLD] = { NULL };
    redisReply *r;
    int result;

    words[3] = f->name;
    memcpy(words + 4, c->arg, sizeof c->arg);
    r = (redisReply *)redisCommandArgv(redis, 4 + FLEET_ARGS, words, NULL);
    if (!r) {
        result = fleet_fail(f, IDEM_E_STORAGE, "Redis: %s", redis->errstr);
        fleet_close(f);
    } else if (r->type != REDIS_REPLY_ARRAY) {
        result = !strncmp(r->str, "OOM", 3)         ? IDEM_E_FULL
                 : !strncmp(r->str, "WRONGTYPE", 9) ? IDEM_E_FORMAT
                                                    : IDEM_E_STORAGE;
        fleet_fail(f, result, "Redis: %s", r->str);
    } else {
        for (size_t i = 0; i < r->elements && i < FLEET_TOLD; i++)
            told[i] = r->element[i]->str;
        result = fleet_tell(c, told);
    }
    freeReplyObject(r);
    return result;
}

/* ------------------------------------------------------------------ opening */

/* Connects as the URL says; NULL if it says nothing that can be.  If a password
   is refused, so is all that follows. */
static redisContext *dial(const char *url)
{
    static const struct timeval patience = { FLEET_TIMEOUT_MS / 1000, 0 };
    const char *at = strrchr(url, '@'), *where = at ? at + 1 : url;
    redisContext *redis = NULL;
    char host[256];
    int port = 6379;

    if (*where == '/')
        redis = redisConnectUnixWithTimeout(where, patience);
    else if (sscanf(where, "%255[^:]:%d", host, &port) >= 1)
        redis = redisConnectWithTimeout(host, port, patience);
    if (!redis || redis->err)
        return redis;
    redisSetTimeout(redis, patience);
    if (at && *url == ':')
        freeReplyObject(redisCommand(redis, "AUTH %b", url + 1,
                                     (size_t)(at - url) - 1));
    return redis;
}

/* Refuses a server that would forget; a hosted one that does not tell its
   settings is believed. */
static int check_settings(fleet *f, redisContext *redis)
{
    static const char *const must[] = { "appendonly", "yes", "appendfsync",
        "always", "maxmemory-policy", "noeviction" };
    redisReply *r = (redisReply *)redisCommand(
        redis, "CONFIG GET appendonly appendfsync maxmemory-policy");
    int result = IDEM_OK;

    for (size_t i = 0; r && i < r->elements; i += 2)
        for (size_t m = 0; m < sizeof must / sizeof *must; m += 2)
            if (!strcmp(r->element[i]->str, must[m]) &&
                strcmp(r->element[i + 1]->str, must[m + 1]) != 0)
                result = fleet_fail(f, IDEM_E_STORAGE, "Redis would forget: "
                                    "its %s is not %s", must[m], must[m + 1]);
    freeReplyObject(r);
    return result;
}

static int open_redis(fleet *f)
{
    redisContext *redis = dial(f->url + strlen(fleet_redis.scheme));
    redisReply *r;
    int result;

    f->connection = redis;              // the URL is not told: a password
    if (!redis || redis->err)
        return fleet_fail(f, IDEM_E_STORAGE, "Redis: %s",
                          redis ? redis->errstr : "no host in the URL");
    result = check_settings(f, redis);
    if (result != IDEM_OK)
        return result;
    fleet_make_mark(f, 0);
    r = (redisReply *)redisCommand(redis, "EVAL %s 0 %s:mark %s", mark_script,
                                   f->name, f->mark);
    if (!r || r->type != REDIS_REPLY_STRING)
        result = fleet_fail(f, IDEM_E_STORAGE, "Redis: %s",
                            r ? r->str : redis->errstr);
    else
        result = fleet_take_mark(f, r->str);
    freeReplyObject(r);
    return result;
}

static void close_redis(fleet *f)
{
    redisFree((redisContext *)f->connection);
}

const fleet_store fleet_redis = { .scheme = "redis://", .open = open_redis,
                                  .close = close_redis, .call = run };
