/* SPDX-License-Identifier: 0BSD */
/* Requests of idem.h as text, and the answers of a store as those of idem.h. */
#include "store.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LEASE_MS = 30000, RETENTION_MS = 24 * 60 * 60 * 1000, ATTEMPTS = 3 };

int fleet_fail(fleet *f, int result, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(f->reason, sizeof f->reason, format, arguments);
    va_end(arguments);
    f->reason[strcspn(f->reason, "\n")] = 0;
    return result;
}

uint64_t fleet_hash(const fleet *f, const void *data, size_t len)
{
    idem_fingerprint_state state;

    idem_fingerprint_init(&state, f->config);
    idem_fingerprint_update(&state, data, len);
    return idem_fingerprint_final(&state);
}

void fleet_make_mark(fleet *f, int64_t since)
{
    f->since = since;
    snprintf(f->mark, sizeof f->mark, "idem fleet %d %016" PRIx64 " %" PRId64,
             FLEET_VERSION, fleet_hash(f, "secret", 6), since);
}

int fleet_take_mark(fleet *f, const char *mark)
{
    const char *space = strrchr(mark, ' ');

    fleet_make_mark(f, space ? strtoll(space, NULL, 10) : 0);
    return !strcmp(f->mark, mark)
               ? IDEM_OK
               : fleet_fail(f, IDEM_E_FORMAT, "the store has another fleet's "
                            "data under %s: \"%s\"", f->name, mark);
}

/* ------------------------------------------------------------ what is asked */

void fleet_put(fleet_call *c, int arg, int64_t number)
{
    snprintf(c->number[arg], sizeof c->number[arg], "%" PRId64, number);
    c->arg[arg] = c->number[arg];
}

void fleet_start(fleet_call *c, int what, const idem_claim *claim)
{
    memset(c, 0, sizeof *c);
    c->what = what;
    for (int i = 0; i < FLEET_ARGS; i++)
        c->arg[i] = "0";
    c->arg[FLEET_ARG_response] = "";
    c->arg[FLEET_ARG_id] = c->id;
    if (what == FLEET_CLAIM || what == FLEET_RENEW)
        fleet_put(c, FLEET_ARG_state, IDEM_IN_PROGRESS);
    if (claim) {
        fleet_put(c, FLEET_ARG_slot, claim->slot);
        fleet_put(c, FLEET_ARG_token, (int64_t)claim->token);
    }
}

int fleet_has_bytes(const void *data, size_t len)
{
    return data || !len;
}

char *fleet_to_hex(char *dst, const void *data, size_t len)
{
    const unsigned char *bytes = (const unsigned char *)data;

    for (size_t i = 0; i < len; i++, dst += 2)
        sprintf(dst, "%02x", bytes[i]);
    *dst = 0;
    return dst;
}

static void from_hex(void *dst, const char *hex, size_t len)
{
    static const char digits[] = "0123456789abcdef";
    unsigned char *bytes = (unsigned char *)dst;

    for (size_t i = 0; i < len; i++)
        bytes[i] = (unsigned char)((strchr(digits, hex[2 * i]) - digits) * 16 +
                                   (strchr(digits, hex[2 * i + 1]) - digits));
}

static uint32_t slot_of(const fleet *f, const char *id)
{
    return (uint32_t)fleet_hash(f, id, strlen(id));
}

int fleet_put_key(const fleet *f, fleet_call *c, const idem_request *rq)
{
    size_t len = rq && rq->sequence ? 8 : rq ? rq->key_len : 0;
    char *at = c->id;

    if (!len || !fleet_has_bytes(rq->scope, rq->scope_len) ||
        !fleet_has_bytes(rq->key, rq->key_len) || (rq->sequence && rq->key_len))
        return IDEM_E_ARG;
    if (len > f->config->key_max || rq->scope_len > f->config->key_max - len)
        return IDEM_E_TOO_LARGE;
    at = fleet_to_hex(at, rq->scope, rq->scope_len);
    *at++ = rq->sequence ? '#' : ':';
    if (rq->sequence)
        sprintf(at, "%08" PRIx32 "%08" PRIx32, rq->epoch, rq->sequence);
    else
        fleet_to_hex(at, rq->key, rq->key_len);
    fleet_put(c, FLEET_ARG_slot, slot_of(f, c->id));
    return IDEM_OK;
}

static uint32_t or_default(uint32_t value, uint32_t other, uint32_t last)
{
    return value ? value : other ? other : last;
}

uint32_t fleet_lease(const fleet *f, uint32_t lease_ms)
{
    return or_default(lease_ms, f->config->lease_ms, LEASE_MS);
}

uint32_t fleet_retention(const fleet *f, uint32_t retention_ms)
{
    return or_default(retention_ms, f->config->retention_ms, RETENTION_MS);
}

int fleet_put_request(const fleet *f, fleet_call *c, const idem_request *rq)
{
    const idem_config *k = f->config;

    c->buffer = rq->buffer;
    c->buffer_size = rq->buffer_size;
    if (!fleet_has_bytes(rq->payload, rq->payload_len) ||
        rq->lease_ms > IDEM_LEASE_MAX || rq->retention_ms > IDEM_RETENTION_MAX)
        return IDEM_E_ARG;
    if (rq->response_size > k->response_max)
        return IDEM_E_TOO_LARGE;
    fleet_put(c, FLEET_ARG_fingerprint,
        (int64_t)(rq->has_fingerprint
                      ? rq->fingerprint
                      : fleet_hash(f, rq->payload, rq->payload_len)));
    fleet_put(c, FLEET_ARG_lease, fleet_lease(f, rq->lease_ms));
    fleet_put(c, FLEET_ARG_retention, fleet_retention(f, rq->retention_ms));
    fleet_put(c, FLEET_ARG_uncertain, fleet_retention(f, 0));
    fleet_put(c, FLEET_ARG_reserved,
              or_default(rq->response_size, k->response_max, 0));
    fleet_put(c, FLEET_ARG_limit,
              or_default(k->max_attempts, ATTEMPTS, ATTEMPTS));
    fleet_put(c, FLEET_ARG_age, rq->age_ms);
    return IDEM_OK;
}

/* ------------------------------------------------------- what a store has */

int fleet_has_expired(const fleet_record *r)
{
    return !r->state || r->until + r->retention <= r->now;
}

static int64_t number(const char *text)
{
    return text ? strtoll(text, NULL, 10) : 0;
}

void fleet_hand_over(const fleet_call *c)
{
    const fleet_record *r = &c->has;

    if (c->buffer && r->response_len <= c->buffer_size)
        from_hex(c->buffer, r->response, r->response_len);
}

static void copy(char *dst, size_t size, const char *text)
{
    snprintf(dst, size, "%s", text ? text : "");
}

#define TAKE(name) r->name = number(got[FLEET_GOT_##name]);

int fleet_take(fleet_call *c, const char *const got[FLEET_GOT])
{
    fleet_record *r = &c->has;
    const char *response = got[FLEET_GOT_response];
    int answer = (int)number(got[FLEET_GOT_answer]);

    r->now = number(got[FLEET_GOT_now]);
    r->lost = number(got[FLEET_GOT_lost]);
    copy(r->id, sizeof r->id, got[FLEET_GOT_id]);
    copy(r->floor, sizeof r->floor, got[FLEET_GOT_floor]);
    FLEET_FIELDS(TAKE)
    r->response = response ? response : "";
    r->response_len = strlen(r->response) / 2;
    if (answer == IDEM_REPLAY)
        fleet_hand_over(c);
    return answer;
}

static void name_claim(idem_claim *claim, const fleet_record *r, uint32_t slot)
{
    claim->token = r->token;
    claim->slot = slot;
    claim->attempt = r->attempts;
}

void fleet_answer(const fleet_call *c, int answer, idem_claim *claim,
                  idem_reply *reply)
{
    const fleet_record *r = &c->has;
    uint32_t slot = (uint32_t)number(c->arg[FLEET_ARG_slot]);

    if (answer >= IDEM_EXECUTE && answer <= IDEM_UNCERTAIN)
        name_claim(claim, r, slot);
    if (answer == IDEM_BUSY)            // or others came between, all the time
        reply->retry_after_ms =
            (uint32_t)(r->until > r->now ? r->until - r->now : 1);
    if (answer != IDEM_REPLAY)
        return;
    name_claim(&reply->claim, r, slot);
    reply->response_len = r->response_len;
    reply->status = r->state;
    reply->code = r->code;
    reply->age_ms = (uint32_t)(r->now > r->until ? r->now - r->until : 0);
}

void fleet_describe(const fleet *f, idem_info *e, const fleet_record *r)
{
    size_t scope = strcspn(r->id, ":#"), all = strlen(r->id) - 1;
    int is_number = r->id[scope] == '#', finished = r->state > IDEM_IN_PROGRESS;
    int64_t left = r->until - r->now, age = finished && left < 0 ? -left : 0;

    e->scope_len = scope / 2;
    e->key_len = is_number ? 0 : (all - scope) / 2;
    e->epoch = e->sequence = 0;
    if (is_number)
        sscanf(r->id + scope + 1, "%8" SCNx32 "%8" SCNx32, &e->epoch,
               &e->sequence);
    if (e->id && all / 2 <= e->id_size) {
        from_hex(e->id, r->id, scope / 2);
        from_hex((char *)e->id + scope / 2, r->id + scope + 1,
                 (all - scope) / 2);
    }
    e->fingerprint = r->fingerprint;
    e->status = r->state;
    e->code = finished ? r->code : 0;
    e->response_len = finished ? r->response_len : r->reserved;
    e->age_ms = (uint32_t)age;
    left += finished ? r->retention : 0;
    e->left_ms = (uint32_t)(left > 0 ? left : 0);
    e->attempts = r->attempts;
    e->undelivered = finished && r->pending;
    memset(&e->claim, 0, sizeof e->claim);
    if (finished)
        name_claim(&e->claim, r, slot_of(f, r->id));
}
