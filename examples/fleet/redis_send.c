/* SPDX-License-Identifier: 0BSD */
#include "redis_send.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void redis_add(redis_command *c, const void *data, size_t len)
{
    c->at[c->n] = (const char *)(len ? data : "");
    c->len[c->n++] = len;
}

void redis_add_number(redis_command *c, uint64_t number)
{
    int len = snprintf(c->text[c->n], sizeof *c->text, "%" PRIu64, number);

    redis_add(c, c->text[c->n], (size_t)len);
}

void redis_start(redis_command *c, const fleet *f, const char *script)
{
    c->n = 0;
    redis_add(c, "EVAL", 4);
    redis_add(c, script, strlen(script));
    redis_add(c, "0", 1);
    redis_add(c, f->mark, strlen(f->mark));
    redis_add(c, f->name, strlen(f->name));
}

static int starts(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

/* What a script says in a word, or an error. */
static int answer(fleet *f, const char *word)
{
    if (starts(word, "ok"))
        return IDEM_OK;
    if (starts(word, "fenced"))
        return fleet_fail(f, IDEM_E_FENCED, "the claim is not current");
    if (starts(word, "large"))
        return fleet_fail(f, IDEM_E_TOO_LARGE, "over what is reserved");
    if (starts(word, "none"))
        return fleet_fail(f, IDEM_E_NOT_FOUND, "no such outcome");
    if (starts(word, "foreign") || starts(word, "WRONGTYPE"))
        return fleet_fail(f, IDEM_E_FORMAT, "%s:* in Redis was emptied, or is "
                          "not this fleet's", f->name);
    return fleet_fail(f, starts(word, "OOM") ? IDEM_E_FULL : IDEM_E_STORAGE,
                      "Redis: %s", word);
}

static int64_t number(const redisReply *r, size_t i)
{
    const redisReply *e = r->element[i];

    return e->str ? strtoll(e->str, NULL, 10) : e->integer;
}

/* Takes what `tell` in the scripts tells. */
static void read_record(const fleet *f, fleet_record *r, const redisReply *a)
{
    size_t prefix = strlen(f->name) + 3;
    const redisReply *key = a->element[2], *response = a->element[12];

    r->claimed = (int)number(a, 0);
    r->now = number(a, 1);
    r->id_len = key->len - prefix;
    if (r->id_len <= sizeof r->id)
        memcpy(r->id, key->str + prefix, r->id_len);
    r->state = (int)number(a, 3);
    r->token = (idem_token)number(a, 4);
    r->attempts = (uint32_t)number(a, 5);
    r->fingerprint = r->state ? strtoull(a->element[6]->str, NULL, 10) : 0;
    r->until = number(a, 7);
    r->retention = number(a, 8);
    r->reserved = (size_t)number(a, 9);
    r->code = (int32_t)number(a, 10);
    r->owed = (int)number(a, 11);
    fleet_keep_response(r, response->str, response->str ? response->len : 0);
}

int redis_run(fleet *f, const redis_command *c,
              fleet_record *record)
{
    redisContext *redis = (redisContext *)f->connection;
    redisReply *r;
    int result = IDEM_OK;

    r = (redisReply *)redisCommandArgv(redis, c->n, (const char **)c->at,
                                       c->len);
    if (!r) {
        result = fleet_fail(f, IDEM_E_STORAGE, "Redis: %s", redis->errstr);
        fleet_close(f);
    } else if (r->type != REDIS_REPLY_ARRAY)
        result = answer(f, r->str ? r->str : "an answer that cannot be");
    else if (r->elements == 1)
        result = answer(f, r->element[0]->str);
    else if (record)
        read_record(f, record, r);
    freeReplyObject(r);
    return result;
}
