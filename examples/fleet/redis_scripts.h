/* SPDX-License-Identifier: 0BSD */
/* The calls of redis.c, in Lua.  All of them start with the mark and NAME; what
 * else they take is told at each.  They answer a word, or a record and before
 * it whether it was claimed now, the time, and its name.  With NAME,
 *     NAME:mark      whose it is, and since when
 *     NAME:token     the last number given, to a claim or an owed outcome
 *     NAME:k:ID      a key's record, a hash; ends with its retention
 *     NAME:t:TOKEN   the name of the record that has this token, likewise
 *     NAME:owed      tokens of the outcomes that are owed, in order */
#ifndef FLEET_REDIS_SCRIPTS_H
#define FLEET_REDIS_SCRIPTS_H

/* What is completed, released or renewed has its room already, so these run
   also where maxmemory is reached. */
#define FITS "#!lua flags=allow-oom\n"

/* Numbers are microseconds, or one more than the last: so they also go on where
   a failover lost the last ones. */
#define HEAD \
    "local name = ARGV[2]\n" \
    "if redis.call('GET', name .. ':mark') ~= ARGV[1] then\n" \
    "  return {'foreign'} end\n" \
    "local t = redis.call('TIME')\n" \
    "local us = t[1] * 1000000 + t[2]\n" \
    "local now = math.floor(us / 1000)\n" \
    "local function number()\n" \
    "  local last = redis.call('GET', name .. ':token') or 0\n" \
    "  local n = string.format('%.0f', math.max(us, last + 1))\n" \
    "  redis.call('SET', name .. ':token', n)\n" \
    "  return n end\n" \
    "local function field(key, f) return redis.call('HGET', key, f) end\n" \
    "local function keep(key, token, till)\n" \
    "  redis.call('PEXPIREAT', key, till)\n" \
    "  redis.call('PEXPIREAT', name .. ':t:' .. token, till) end\n" \
    "local function named(token)\n" \
    "  return redis.call('GET', name .. ':t:' .. token) end\n" \
    "local function held(token)\n" \
    "  local key = named(token)\n" \
    "  return key and field(key, 's') == '1' and key end\n" \
    "local function tell(claimed, key)\n" \
    "  return {claimed, now, key, unpack(redis.call('HMGET', key,\n" \
    "    's', 't', 'a', 'f', 'u', 'r', 'm', 'c', 'o', 'b'))} end\n"

/* fleet_may_claim, in Lua: ID, fingerprint, lease, retention, reserved,
   attempts allowed, age, since when the store remembers */
static const char claim_script[] = HEAD
    "local key = name .. ':k:' .. ARGV[3]\n"
    "local r = redis.call('HMGET', key, 's', 't', 'a', 'f', 'u')\n"
    "local age, retention = tonumber(ARGV[9]), tonumber(ARGV[6])\n"
    "if r[1] then\n"
    "  if r[1] ~= '1' or r[4] ~= ARGV[4] or now < tonumber(r[5])\n"
    "    or tonumber(r[3]) >= tonumber(ARGV[8]) then return tell(0, key) end\n"
    "elseif redis.call('EXISTS', key) == 1 then return {'foreign'}\n"
    "elseif age > 0 and (age >= retention or age >= now - ARGV[10]) then\n"
    "  return tell(0, key) end\n"
    "local token = number()\n"
    "redis.call('HSET', key, 's', 1, 't', token, 'a', (r[3] or 0) + 1,\n"
    "  'f', ARGV[4], 'u', now + ARGV[5], 'r', retention, 'm', ARGV[7],\n"
    "  'c', 0, 'o', 0, 'b', '')\n"
    "redis.call('SET', name .. ':t:' .. token, key)\n"
    "if r[2] then redis.call('DEL', name .. ':t:' .. r[2]) end\n"
    "keep(key, token, now + ARGV[5] + retention)\n"
    "return tell(1, key)\n";

/* token, status, code, owed, response */
static const char complete_script[] = FITS HEAD
    "local key = held(ARGV[3])\n"
    "if not key then return {'fenced'} end\n"
    "if #ARGV[7] > tonumber(field(key, 'm')) then return {'large'} end\n"
    "redis.call('HSET', key, 's', ARGV[4], 'c', ARGV[5], 'o', ARGV[6],\n"
    "  'b', ARGV[7], 'u', now)\n"
    "keep(key, ARGV[3], now + field(key, 'r'))\n"
    "if ARGV[6] == '1' then\n"
    "  local n = number()\n"
    "  redis.call('HSET', key, 'n', n)\n"
    "  redis.call('ZADD', name .. ':owed', n, ARGV[3]) end\n"
    "return {'ok'}\n";

/* token */
static const char release_script[] = FITS HEAD
    "local key = held(ARGV[3])\n"
    "if not key then return {'fenced'} end\n"
    "redis.call('DEL', key, name .. ':t:' .. ARGV[3])\n"
    "return {'ok'}\n";

/* token, lease */
static const char renew_script[] = FITS HEAD
    "local key = held(ARGV[3])\n"
    "if not key then return {'fenced'} end\n"
    "local till = math.max(tonumber(field(key, 'u')), now + ARGV[4])\n"
    "redis.call('HSET', key, 'u', till)\n"
    "keep(key, ARGV[3], till + field(key, 'r'))\n"
    "return {'ok'}\n";

/* ID */
static const char find_script[] = FITS HEAD
    "return tell(0, name .. ':k:' .. ARGV[3])\n";

/* token of the one before */
static const char pending_script[] = FITS HEAD
    "local owed, from = name .. ':owed', '-inf'\n"
    "local after = named(ARGV[3])\n"
    "local n = after and field(after, 'n')\n"
    "if n then from = '(' .. n end\n"
    "while true do\n"
    "  local token = redis.call('ZRANGE', owed, from, '+inf', 'BYSCORE',\n"
    "    'LIMIT', 0, 1)[1]\n"
    "  if not token then return {'none'} end\n"
    "  local key = named(token)\n"
    "  if key then return tell(0, key) end\n"
    "  redis.call('ZREM', owed, token) end\n";     // its retention is over

/* token */
static const char delivered_script[] = FITS HEAD
    "local key = named(ARGV[3])\n"
    "if not key or field(key, 's') == '1' then return {'none'} end\n"
    "redis.call('HSET', key, 'o', 0)\n"
    "redis.call('ZREM', name .. ':owed', ARGV[3])\n"
    "return {'ok'}\n";

/* The time in ms, as text; alone it starts without a mark. */
static const char time_script[] =
    "local t = redis.call('TIME')\n"
    "return string.format('%.0f', t[1] * 1000 + t[2] / 1000)\n";

#endif
