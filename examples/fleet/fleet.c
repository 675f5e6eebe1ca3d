/* SPDX-License-Identifier: 0BSD */
/* What is the same for every store: arguments, names, fingerprints, answers. */
#include "store.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { LEASE_MS = 30000, RETENTION_MS = 24 * 60 * 60 * 1000, ATTEMPTS = 3 };

static const fleet_store *const stores[] = { &fleet_redis, &fleet_postgres,
                                             &fleet_dynamodb };

int fleet_fail(fleet *f, int result, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(f->reason, sizeof f->reason, format, arguments);
    va_end(arguments);
    f->reason[strcspn(f->reason, "\n")] = 0;
    return result;
}

/* ------------------------------------------------------------------ opening */

static uint64_t hash(const fleet *f, const void *data, size_t len)
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
             FLEET_VERSION, hash(f, "secret", 6), since);
}

int fleet_take_mark(fleet *f, const char *mark)
{
    const char *space = strrchr(mark, ' ');

    f->since = 0;
    if (space)
        sscanf(space, "%" SCNd64, &f->since);
    fleet_make_mark(f, f->since);
    return strcmp(f->mark, mark) == 0;
}

/* NULL, or what is wrong with a config that is right for idem.h. */
static const char *unfit(const idem_config *c)
{
    if (c->storage)
        return "config.storage: the store of a fleet is its URL";
    if (c->state_max)
        return "config.state_max: a fleet keeps no application state";
    if (c->full || c->quota || c->durability || c->volatile_claims)
        return "config: full, quota, durability and volatile_claims are not "
               "for a fleet";
    if (c->lock || c->unlock)
        return "config.lock: a fleet belongs to one thread";
    if (c->lease_ms == IDEM_LEASE_NONE)
        return "config.lease_ms: a lease without end would outlive its holder";
    return NULL;
}

/* Takes the URL apart; false if it cannot be one. */
static int parse(fleet *f, const char *url)
{
    const char *name = strchr(url, '#');
    size_t len = name ? (size_t)(name - url) : strlen(url);

    name = name ? name + 1 : "idem";
    if (len >= sizeof f->url || !*name || strlen(name) >= sizeof f->name ||
        strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_") != strlen(name))
        return 0;
    memcpy(f->url, url, len);
    strcpy(f->name, name);
    for (size_t i = 0; i < sizeof stores / sizeof *stores; i++)
        if (!strncmp(url, stores[i]->scheme, strlen(stores[i]->scheme)))
            f->store = stores[i];
    return f->store != NULL;
}

int fleet_open(fleet *f, const char *url, const idem_config *config)
{
    const char *wrong;
    int result;

    memset(f, 0, sizeof *f);
    f->config = config;
    wrong = idem_explain(config);
    if (!wrong)
        wrong = unfit(config);
    if (wrong)
        return fleet_fail(f, IDEM_E_ARG, "%s", wrong);
    if (!parse(f, url))
        return fleet_fail(f, IDEM_E_ARG, "no URL of a store, or a bad name");
    result = f->store->open(f);
    if (result != IDEM_OK)
        fleet_close(f);
    return result;
}

void fleet_close(fleet *f)
{
    if (f->connection)
        f->store->close(f);
    f->connection = NULL;
}

/* The start of every call: a connection that broke is made anew.  What is there
   then must be the store that was opened, not one that was made since. */
static int ready(fleet *f, int valid)
{
    int64_t since = f->since;
    int result;

    if (!valid)
        return fleet_fail(f, IDEM_E_ARG, "%s", idem_text(IDEM_E_ARG));
    if (f->connection)
        return IDEM_OK;
    result = f->store->open(f);
    if (result == IDEM_OK && f->since != since)
        result = fleet_fail(f, IDEM_E_FORMAT,
                            "the store was emptied, or is another one");
    if (result != IDEM_OK)
        fleet_close(f);
    f->since = since;
    return result;
}

/* ------------------------------------------------------------------ records */

int fleet_is_over(const fleet_record *r)
{
    return !r->state || r->until + r->retention <= r->now;
}

int fleet_may_claim(const fleet *f, const fleet_record *r, const fleet_wish *w)
{
    if (fleet_is_over(r)) {
        int too_old = w->age && (w->age >= w->retention ||
                                 (int64_t)w->age >= r->now - f->since);
        return too_old ? IDEM_TOO_OLD : IDEM_EXECUTE;
    }
    if (r->fingerprint != w->fingerprint)
        return IDEM_MISMATCH;
    if (r->state != IDEM_IN_PROGRESS)
        return IDEM_REPLAY;
    if (r->now < r->until)
        return IDEM_BUSY;
    return r->attempts >= w->max_attempts ? IDEM_EXHAUSTED : IDEM_RECOVER;
}

void fleet_keep_response(fleet_record *r, const void *data, size_t len)
{
    int wanted = r->fingerprint == r->only_for && !fleet_is_over(r);

    r->response_len = len;
    if (wanted && len && r->response && len <= r->response_size)
        memcpy(r->response, data, len);
}

static int has_bytes(const void *data, size_t len)
{
    return data || !len;
}

static int is_lease(uint32_t lease_ms)
{
    return lease_ms <= IDEM_LEASE_MAX;
}

static uint32_t or_default(uint32_t value, uint32_t other, uint32_t last)
{
    return value ? value : other ? other : last;
}

/* Names the key of a request. */
static int name_key(const fleet *f, fleet_wish *w, const idem_request *rq)
{
    if (!has_bytes(rq->scope, rq->scope_len) ||
        !has_bytes(rq->key, rq->key_len) || !rq->key_len)
        return IDEM_E_ARG;
    if (rq->key_len > f->config->key_max ||
        rq->scope_len > f->config->key_max - rq->key_len)
        return IDEM_E_TOO_LARGE;
    memset(w, 0, sizeof *w);
    w->id[0] = (unsigned char)rq->scope_len;
    if (rq->scope_len)
        memcpy(w->id + 1, rq->scope, rq->scope_len);
    memcpy(w->id + 1 + rq->scope_len, rq->key, rq->key_len);
    w->id_len = 1 + rq->scope_len + rq->key_len;
    w->slot = (uint32_t)hash(f, w->id, w->id_len);
    return IDEM_OK;
}

/* Makes a wish of a request, with the defaults of the config. */
static int make_wish(const fleet *f, fleet_wish *w, const idem_request *rq)
{
    const idem_config *c = f->config;
    int result = name_key(f, w, rq);

    if (result != IDEM_OK)
        return result;
    if (!has_bytes(rq->payload, rq->payload_len) || !is_lease(rq->lease_ms) ||
        rq->retention_ms > IDEM_RETENTION_MAX)
        return IDEM_E_ARG;
    if (rq->response_size > c->response_max)
        return IDEM_E_TOO_LARGE;
    w->fingerprint = rq->has_fingerprint
                         ? rq->fingerprint
                         : hash(f, rq->payload, rq->payload_len);
    w->lease = or_default(rq->lease_ms, c->lease_ms, LEASE_MS);
    w->retention = or_default(rq->retention_ms, c->retention_ms, RETENTION_MS);
    w->age = rq->age_ms;
    w->reserved = or_default(rq->response_size, c->response_max, 0);
    w->max_attempts = or_default(c->max_attempts, ATTEMPTS, ATTEMPTS);
    return IDEM_OK;
}

/* ---------------------------------------------------------------- the calls */

static void name_claim(idem_claim *claim, const fleet_record *r, uint32_t slot)
{
    claim->token = r->token;
    claim->slot = slot;
    claim->attempt = r->attempts;
}

static void tell_replay(idem_reply *reply, const fleet_record *r, uint32_t slot)
{
    name_claim(&reply->claim, r, slot);
    reply->response_len = r->response_len;
    reply->status = r->state;
    reply->code = r->code;
    reply->age_ms = (uint32_t)(r->now > r->until ? r->now - r->until : 0);
}

int fleet_begin(fleet *f, idem_claim *claim, idem_reply *reply,
                const idem_request *request)
{
    idem_reply asked;
    fleet_record r = { .claimed = 0 };
    fleet_wish wish;
    int result;

    if (!claim || !reply || !request)
        return fleet_fail(f, IDEM_E_ARG, "%s", idem_text(IDEM_E_ARG));
    asked = *reply;
    memset(reply, 0, sizeof *reply);
    memset(claim, 0, sizeof *claim);
    reply->buffer = r.response = asked.buffer;
    reply->buffer_size = r.response_size = asked.buffer_size;
    result = make_wish(f, &wish, request);
    if (result != IDEM_OK)
        return fleet_fail(f, result, "%s", idem_text(result));
    r.only_for = wish.fingerprint;
    result = ready(f, 1);
    if (result == IDEM_OK)
        result = f->store->claim(f, &r, &wish);
    if (result == IDEM_BUSY)
        reply->retry_after_ms = 1;
    if (result != IDEM_OK)
        return result;
    if (r.claimed) {
        name_claim(claim, &r, wish.slot);
        return r.attempts == 1 ? IDEM_EXECUTE : IDEM_RECOVER;
    }
    result = fleet_may_claim(f, &r, &wish);
    if (result == IDEM_REPLAY)
        tell_replay(reply, &r, wish.slot);
    if (result == IDEM_BUSY)
        reply->retry_after_ms = (uint32_t)(r.until - r.now);
    return result;
}

static int is_outcome(const idem_outcome *o)
{
    return o && has_bytes(o->response, o->response_len) && !o->state &&
           !o->state_len;
}

int fleet_complete(fleet *f, const idem_claim *claim,
                   const idem_outcome *outcome)
{
    int result = ready(f, claim && is_outcome(outcome));

    if (result == IDEM_OK && outcome->response_len > f->config->response_max)
        result = fleet_fail(f, IDEM_E_TOO_LARGE, "response over response_max");
    return result == IDEM_OK ? f->store->complete(f, claim, outcome) : result;
}

int fleet_complete_in(fleet *f, void *transaction, const idem_claim *claim,
                      const idem_outcome *outcome)
{
    if (!f->store->complete_in || !transaction || !claim ||
        !is_outcome(outcome))
        return fleet_fail(f, IDEM_E_ARG, "no transaction that could be used");
    return f->store->complete_in(f, transaction, claim, outcome);
}

int fleet_release(fleet *f, const idem_claim *claim)
{
    int result = ready(f, claim != NULL);

    return result == IDEM_OK ? f->store->release(f, claim) : result;
}

int fleet_renew(fleet *f, const idem_claim *claim, uint32_t lease_ms)
{
    uint32_t lease = or_default(lease_ms, f->config->lease_ms, LEASE_MS);
    int result = ready(f, claim && is_lease(lease_ms));

    return result == IDEM_OK ? f->store->renew(f, claim, lease) : result;
}

/* Begin granted a claim: the handler, then complete or release. */
static int handle(fleet *f, const idem_claim *claim, idem_reply *reply,
                  const idem_request *request, idem_handler *handler, void *ctx,
                  int answer)
{
    fleet_record r = { .token = claim->token, .attempts = claim->attempt };
    idem_outcome outcome;
    uint32_t now_ms = 0;
    int result;

    memset(&outcome, 0, sizeof outcome);
    if (handler(ctx, &outcome, request, claim, answer, &now_ms) != 0) {
        result = fleet_release(f, claim);
        return result == IDEM_OK ? IDEM_RELEASED : result;
    }
    result = fleet_complete(f, claim, &outcome);
    if (result != IDEM_OK)
        return result;
    r.state = outcome.failed ? IDEM_FAILED : IDEM_COMPLETED;
    r.code = outcome.code;
    r.response_len = outcome.response_len;
    if (outcome.response_len && reply->buffer &&
        outcome.response != reply->buffer &&
        outcome.response_len <= reply->buffer_size)
        memcpy(reply->buffer, outcome.response, outcome.response_len);
    tell_replay(reply, &r, claim->slot);
    return answer;
}

int fleet_run(fleet *f, idem_claim *claim, idem_reply *reply,
              const idem_request *request, idem_handler *handler, void *ctx)
{
    int answer = fleet_begin(f, claim, reply, request);

    if (answer != IDEM_EXECUTE && answer != IDEM_RECOVER)
        return answer;
    return handle(f, claim, reply, request, handler, ctx, answer);
}

/* Describes a key as idem_find does. */
static void describe(idem_entry *e, const fleet_record *r,
                     const unsigned char *id, size_t id_len, uint32_t slot)
{
    int64_t left = r->until - r->now;
    int finished = r->state != IDEM_IN_PROGRESS;

    e->scope_len = id[0];
    e->key_len = id_len - 1 - id[0];
    if (e->id && id_len - 1 <= e->id_size)
        memcpy(e->id, id + 1, id_len - 1);
    e->fingerprint = r->fingerprint;
    e->status = r->state;
    e->code = finished ? r->code : 0;
    e->response_len = finished ? r->response_len : r->reserved;
    e->age_ms = (uint32_t)(finished && left < 0 ? -left : 0);
    if (finished)
        left += r->retention;
    e->left_ms = (uint32_t)(left > 0 ? left : 0);
    e->attempts = r->attempts;
    e->undelivered = finished && r->owed;
    memset(&e->claim, 0, sizeof e->claim);
    if (finished)
        name_claim(&e->claim, r, slot);
}

int fleet_find(fleet *f, idem_entry *entry, const idem_request *request)
{
    fleet_record r = { .response = NULL };
    fleet_wish wish;
    int result = name_key(f, &wish, request);

    if (result != IDEM_OK)
        return fleet_fail(f, result, "%s", idem_text(result));
    result = ready(f, 1);
    if (result == IDEM_OK)
        result = f->store->find(f, &r, &wish);
    if (result != IDEM_OK)
        return result;
    if (fleet_is_over(&r))
        return fleet_fail(f, IDEM_E_NOT_FOUND, "no such key");
    describe(entry, &r, wish.id, wish.id_len, wish.slot);
    return IDEM_OK;
}

int fleet_pending(fleet *f, idem_entry *entry)
{
    fleet_record r = { .response = NULL };
    int result = ready(f, 1);

    if (result == IDEM_OK)
        result = f->store->pending(f, &r, &entry->claim);
    if (result == IDEM_OK)
        describe(entry, &r, r.id, r.id_len, (uint32_t)hash(f, r.id, r.id_len));
    return result;
}

int fleet_delivered(fleet *f, const idem_claim *claim)
{
    int result = ready(f, claim != NULL);

    return result == IDEM_OK ? f->store->delivered(f, claim) : result;
}

int fleet_maintain(fleet *f)
{
    int result = ready(f, 1);

    return result == IDEM_OK && f->store->maintain ? f->store->maintain(f)
                                                   : result;
}

void fleet_offset_key(unsigned char key[8], uint64_t offset)
{
    for (int i = 0; i < 8; i++)
        key[i] = (unsigned char)(offset >> (56 - 8 * i));
}
