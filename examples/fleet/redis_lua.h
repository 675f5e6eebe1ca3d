/* SPDX-License-Identifier: 0BSD */
/* The scripts of redis.c: each is a call; Redis runs nothing else meanwhile.
 * With NAME there are
 *     NAME:fleet      a hash: mark, whose it is and since when; token, the last
 *                     one given; lost, when records were lost
 *     NAME:k:SLOT     a hash: the records of the ids that have this hash (one,
 *                     as a rule), each a line of numbers; ends with its
 *                     retention
 *     NAME:pending    SLOT:TOKEN of the undelivered outcomes, in order
 *     NAME:n:SCOPE    the scope's live numbers, by when their retention ends
 *     NAME:floor      of each scope, the highest number that has left
 * The record of a released key stays, with state 0, until its time. */
#ifndef FLEET_REDIS_LUA_H
#define FLEET_REDIS_LUA_H

#define IN_LUA(name) ", " #name

/* What all scripts start with.  Tokens are microseconds, or one more than the
   last: so they also grow where a failover lost the last ones.  (`till` is the
   record's `until`, which is a word of Lua.)  floor: numbers whose retention is
   over raise it, the 100 that ended first and the 100 that ended last, for
   there may be millions.  One that has not raised it yet is unreleased. */
#define HEAD                                                                   \
    "local name" FLEET_ARGUMENTS(IN_LUA) " = unpack(ARGV)\n"                   \
    "local call, fleet = redis.call, name .. ':fleet'\n"                       \
    "local has, lost, last = unpack(call('HMGET', fleet, 'mark',\n"            \
    "  'lost', 'token'))\n"                                                    \
    "if has ~= mark then return {'-9'} end\n"                                  \
    "local t = call('TIME')\n"                                                 \
    "local us, now = t[1] * 1e6 + t[2], t[1] * 1e3 + math.floor(t[2] / 1e3)\n" \
    "local function bucket(slot) return name .. ':k:' .. slot end\n"           \
    "local function text(number) return string.format('%.0f', number) end\n"   \
    "local function parse(line)\n"                                             \
    "  local r = {}\n"                                                         \
    "  r.state, r.token, r.attempts, r.fingerprint, r.till, r.retention,\n"    \
    "    r.reserved, r.code, r.pending, r.place, r.response = line:match(\n"   \
    "    '^(%d) (%d+) (%d+) (-?%d+) (%d+) (%d+) (%d+) (-?%d+) (%d) (%d+) '\n"  \
    "    .. '(%x*)$')\n"                                                       \
    "  return r end\n"                                                         \
    "local function put(slot, id, r)\n"                                        \
    "  call('HSET', bucket(slot), id, table.concat({r.state, r.token,\n"       \
    "    r.attempts, r.fingerprint, r.till, r.retention, r.reserved,\n"        \
    "    r.code, r.pending, r.place, r.response}, ' ')) end\n"                 \
    "local function named(slot, token)\n"                                      \
    "  local all = call('HGETALL', bucket(slot))\n"                            \
    "  for i = 1, #all, 2 do\n"                                                \
    "    local r = parse(all[i + 1])\n"                                        \
    "    if r.token == token then return all[i], r end end end\n"              \
    "local function over(r)\n"                                                 \
    "  return r.state == '0' or now >= r.till + r.retention end\n"             \
    "local function answer(how, id, r)\n"                                      \
    "  return {how, text(now), id, r.response, lost or '', '', r.state,\n"     \
    "    r.token, r.attempts, r.fingerprint, r.till, r.retention,\n"           \
    "    r.reserved, r.code, r.pending} end\n"                                 \
    "local function grow()\n"                                                  \
    "  last = text(math.max(us, 1 + (last or 0)))\n"                           \
    "  call('HSET', fleet, 'token', last)\n"                                   \
    "  return last end\n"                                                      \
    "local function split(id) return id:match('^(%x*)#(%x*)$') end\n"          \
    "local function raise(scope, n)\n"                                         \
    "  call('HSET', name .. ':floor', scope, n) end\n"                         \
    "local function floor(scope)\n"                                            \
    "  local was = call('HGET', name .. ':floor', scope) or ''\n"              \
    "  local highest, numbers = was, name .. ':n:' .. scope\n"                 \
    "  local first = call('ZRANGE', numbers, '-inf', now, 'BYSCORE',\n"        \
    "    'LIMIT', 0, 100)\n"                                                   \
    "  if #first == 0 then return was end\n"                                   \
    "  local final = #first < 100 and {} or call('ZRANGE', numbers, now,\n"    \
    "    '-inf', 'BYSCORE', 'REV', 'LIMIT', 0, 100)\n"                         \
    "  for _, n in ipairs(first) do if n > highest then highest = n end end\n" \
    "  for _, n in ipairs(final) do if n > highest then highest = n end end\n" \
    "  if highest > was then raise(scope, highest) end\n"                      \
    "  call('ZREM', numbers, unpack(first))\n"                                 \
    "  return highest end\n"                                                   \
    "local function unreleased(scope, n)\n"                                    \
    "  return call('ZSCORE', name .. ':n:' .. scope, n) end\n"                 \
    "local function past(id)\n"         /* of an older epoch */                \
    "  local scope, n = split(id)\n"                                           \
    "  return n and n:sub(1, 8) < floor(scope):sub(1, 8) end\n"                \
    "local function keep(id, r)\n"      /* until it expires, at least */       \
    "  local scope, n = split(id)\n"                                           \
    "  local ends = r.till + r.retention\n"                                    \
    "  if n then call('ZADD', name .. ':n:' .. scope, ends, n) end\n"          \
    "  if call('PEXPIREAT', bucket(slot), ends, 'NX') == 0 then\n"             \
    "    call('PEXPIREAT', bucket(slot), ends, 'GT') end end\n"

/* What is completed, released or renewed has its room already, so these run
   even where maxmemory is reached. */
#define FITS "#!lua flags=allow-oom\n" HEAD
#define HELD FITS                                                              \
    "local id, r = named(slot, token)\n"                                       \
    "local function held()\n"                                                  \
    "  return r and r.state == '1' and not over(r) and not past(id) end\n"

/* Numbers that they return are results of idem.h: 1 EXECUTE, 2 RECOVER,
   3 UNCERTAIN, 4 REPLAY, 5 BUSY, 6 MISMATCH, 7 TOO_OLD, 8 EXHAUSTED; -2
   E_TOO_LARGE, -4 E_FENCED, -5 E_NOT_FOUND, -9 E_FORMAT; 11 MORE: call again,
   for others wait while a script runs. */
typedef char scripts_have_these_numbers
    [IDEM_EXECUTE == 1 && IDEM_RECOVER == 2 && IDEM_UNCERTAIN == 3 &&
     IDEM_REPLAY == 4 && IDEM_BUSY == 5 && IDEM_MISMATCH == 6 &&
     IDEM_TOO_OLD == 7 && IDEM_EXHAUSTED == 8 && IDEM_E_TOO_LARGE == -2 &&
     IDEM_E_FENCED == -4 && IDEM_E_NOT_FOUND == -5 && IDEM_E_FORMAT == -9 &&
     IDEM_MORE == 11 ? 1 : -1];

static const char *const scripts[FLEET_CALLS] = {
    [FLEET_CLAIM] = HEAD
    "local scope, n = split(id)\n"
    "local line = call('HGET', bucket(slot), id)\n"
    "local r = line and parse(line) or { state = '0' }\n"
    "if not r.state then return {'-9'} end\n"
    "local made, a = 0, tonumber(age)\n"
    "if over(r) then\n"
    "  if a > 0 and (a >= tonumber(retention) or a >= now - since) or\n"
    "    n and (n <= floor(scope) or unreleased(scope, n)) then\n"
    "    return {'7'} end\n"
    "elseif r.fingerprint ~= fingerprint then return {'6'}\n"
    "elseif r.state ~= '1' then return answer('4', id, r)\n"
    "elseif past(id) then return {'7'}\n"
    "elseif now < tonumber(r.till) then return answer('5', id, r)\n"
    "elseif tonumber(r.attempts) >= tonumber(limit) then return {'8'}\n"
    "else made = r.attempts end\n"
    "r = { state = 1, token = grow(), attempts = made + 1,\n"
    "  fingerprint = fingerprint, till = text(now + lease),\n"
    "  retention = retention, reserved = reserved, code = 0, pending = 0,\n"
    "  place = 0, response = '' }\n"
    "put(slot, id, r)\n"
    "keep(id, r)\n"
    "if n and n:sub(1, 8) .. '00000000' > floor(scope) then\n" // a new epoch
    "  raise(scope, n:sub(1, 8) .. '00000000') end\n"
    "r.state, r.attempts = '1', text(r.attempts)\n"
    "r.code, r.pending = '0', '0'\n"
    "return answer(lost and now < lost + uncertain and '3'\n"
    "  or made == 0 and '1' or '2', id, r)\n",

    // A complete that is repeated, as its answer was lost, is done already.
    [FLEET_COMPLETE] = HELD
    "if r and not over(r) and r.state == state and r.code == code and\n"
    "  r.response == response then return {'0'} end\n"
    "if not held() then return {'-4'} end\n"
    "if #response > 2 * r.reserved then return {'-2'} end\n"
    "local late = now > tonumber(r.till)\n"
    "r.state, r.code, r.pending, r.response = state, code, pending, response\n"
    "r.till = text(now)\n"
    "if pending == '1' then\n"
    "  r.place = grow()\n"
    "  call('ZADD', name .. ':pending', r.place, slot .. ':' .. token) end\n"
    "put(slot, id, r)\n"
    "if late or id:find('#') then keep(id, r) end\n"
    "return {'0'}\n",

    [FLEET_RELEASE] = HELD
    "if r and r.state == '0' then return {'0'} end\n"
    "if not held() then return {'-4'} end\n"
    "local scope, n = split(id)\n"
    "if n then call('ZREM', name .. ':n:' .. scope, n) end\n"
    "r.state = 0\n"
    "put(slot, id, r)\n"
    "return {'0'}\n",

    [FLEET_RENEW] = HELD
    "if not held() then return {'-4'} end\n"
    "r.till = text(math.max(tonumber(r.till), now + lease))\n"
    "put(slot, id, r)\n"
    "keep(id, r)\n"
    "return {'0'}\n",

    [FLEET_FIND] = FITS
    "local line = call('HGET', bucket(slot), id)\n"
    "return answer('0', id, line and parse(line) or {})\n",

    [FLEET_PENDING] = FITS
    "local pending = name .. ':pending'\n"
    "local id, r = named(slot, token)\n"
    "local place = r and r.place or 0\n"
    "for _ = 1, 2000 do\n"
    "  local next = call('ZRANGE', pending, '(' .. place, '+inf', 'BYSCORE',\n"
    "    'LIMIT', 0, 1)[1]\n"
    "  if not next then return {'-5'} end\n"
    "  id, r = named(next:match('(%d+):(%d+)'))\n"
    "  if r and not over(r) then return answer('0', id, r) end\n"
    "  call('ZREM', pending, next) end\n"           // it has expired
    "return {'11'}\n",

    [FLEET_DELIVERED] = HELD
    "if not r or over(r) or r.state == '1' then return {'-5'} end\n"
    "r.pending = 0\n"
    "put(slot, id, r)\n"
    "call('ZREM', name .. ':pending', slot .. ':' .. token)\n"
    "return {'0'}\n",

    [FLEET_LOSE] = FITS
    "call('HSET', fleet, 'lost', text(now))\n"
    "return {'0'}\n"
};

/* Makes the mark, if there is none, out of one that ends with 0 in place of the
   time. */
static const char mark_script[] =
    "local t, key = redis.call('TIME'), ARGV[1] .. ':fleet'\n"
    "local now = string.format('%.0f', t[1] * 1000 + t[2] / 1000)\n"
    "redis.call('HSETNX', key, 'mark', ARGV[2]:sub(1, -2) .. now)\n"
    "return redis.call('HGET', key, 'mark')\n";

#endif
