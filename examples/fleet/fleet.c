/* SPDX-License-Identifier: 0BSD */
/* What is the same for every store: opening it by its URL, and the calls. */
#include "store.h"

#include <stdlib.h>
#include <string.h>

static const fleet_store *const stores[] = { &fleet_redis, &fleet_postgres,
                                             &fleet_dynamodb };

static int wrong(fleet *f, int result)
{
    return fleet_fail(f, result, "%s", idem_text(result));
}

/* ------------------------------------------------------------------ opening */

/* NULL, or what is wrong with a config that is right for idem.h. */
static const char *unfit(const idem_config *c)
{
    if (c->storage || c->state_max || c->full || c->quota || c->durability ||
        c->volatile_claims)
        return "config: storage, state_max, full, quota, durability and "
               "volatile_claims are not for a fleet";
    if (c->lock || c->unlock)
        return "config.lock: a fleet belongs to one thread";
    if (c->lease_ms == IDEM_LEASE_NONE)
        return "config.lease_ms: a lease without end would outlive its holder";
    return NULL;
}

/* Takes the URL apart; false if it cannot be one. */
static int parse(fleet *f, const char *url)
{
    size_t len = strcspn(url, "#");
    const char *name = url[len] ? url + len + 1 : "idem";

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
    const char *why = idem_explain(config);
    int result;

    memset(f, 0, sizeof *f);
    f->config = config;
    if (!why)
        why = unfit(config);
    if (why)
        return fleet_fail(f, IDEM_E_ARG, "%s", why);
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

/* Asks the store.  A connection that broke is made anew; what is there then
   must be the store that was opened, not one that was made since. */
static int ask(fleet *f, fleet_call *c)
{
    int64_t since = f->since;
    int connected = f->connection || c->transaction, tries = FLEET_TRIES;
    int result = connected ? IDEM_OK : f->store->open(f);

    if (result == IDEM_OK && f->since != since)
        result = fleet_fail(f, IDEM_E_FORMAT, "the store was made anew");
    f->since = since;
    if (result != IDEM_OK) {
        fleet_close(f);
        return result;
    }
    fleet_put(c, FLEET_ARG_since, since);
    c->arg[FLEET_ARG_mark] = f->mark;
    f->reason[0] = 0;
    do
        result = f->store->call(f, c);
    while (result == IDEM_MORE && --tries);
    if (result < 0 && !f->reason[0])
        return wrong(f, result);
    return result == IDEM_MORE ? IDEM_BUSY : result;
}

/* ---------------------------------------------------------------- the calls */

int fleet_begin(fleet *f, idem_claim *claim, idem_reply *reply,
                const idem_request *request)
{
    fleet_call c;
    int result;

    if (!claim || !reply)
        return wrong(f, IDEM_E_ARG);
    memset(claim, 0, sizeof *claim);
    memset(reply, 0, sizeof *reply);
    fleet_start(&c, FLEET_CLAIM, NULL);
    result = fleet_put_key(f, &c, request);
    if (result == IDEM_OK)
        result = fleet_put_request(f, &c, request);
    if (result != IDEM_OK)
        return wrong(f, result);
    result = ask(f, &c);
    fleet_answer(&c, result, claim, reply);
    return result;
}

static int complete(fleet *f, void *transaction, const idem_claim *claim,
                    const idem_outcome *o)
{
    fleet_call c;
    char *hex;
    int result;

    if (!claim || !o || !fleet_has_bytes(o->response, o->response_len) ||
        o->state || o->state_len)
        return wrong(f, IDEM_E_ARG);
    if (o->response_len > f->config->response_max)
        return fleet_fail(f, IDEM_E_TOO_LARGE, "response over response_max");
    hex = (char *)malloc(2 * o->response_len + 1);
    if (!hex)
        return fleet_fail(f, IDEM_E_STORAGE, "no memory for a response");
    fleet_to_hex(hex, o->response, o->response_len);
    fleet_start(&c, FLEET_COMPLETE, claim);
    c.transaction = transaction;
    c.arg[FLEET_ARG_response] = hex;
    fleet_put(&c, FLEET_ARG_state, o->failed ? IDEM_FAILED : IDEM_COMPLETED);
    fleet_put(&c, FLEET_ARG_code, o->code);
    fleet_put(&c, FLEET_ARG_owed, o->confirm ? 1 : 0);
    result = ask(f, &c);
    free(hex);
    return result;
}

int fleet_complete(fleet *f, const idem_claim *claim,
                   const idem_outcome *outcome)
{
    return complete(f, NULL, claim, outcome);
}

int fleet_complete_in(fleet *f, void *transaction, const idem_claim *claim,
                      const idem_outcome *outcome)
{
    return transaction && f->store == &fleet_postgres
               ? complete(f, transaction, claim, outcome)
               : wrong(f, IDEM_E_ARG);
}

/* A call that needs no more than a claim. */
static int ask_of(fleet *f, int what, const idem_claim *claim, uint32_t lease)
{
    fleet_call c;

    if (!claim || lease > IDEM_LEASE_MAX)
        return wrong(f, IDEM_E_ARG);
    fleet_start(&c, what, claim);
    fleet_put_lease(f, &c, lease);
    return ask(f, &c);
}

int fleet_release(fleet *f, const idem_claim *claim)
{
    return ask_of(f, FLEET_RELEASE, claim, 0);
}

int fleet_renew(fleet *f, const idem_claim *claim, uint32_t lease_ms)
{
    return ask_of(f, FLEET_RENEW, claim, lease_ms);
}

int fleet_delivered(fleet *f, const idem_claim *claim)
{
    return ask_of(f, FLEET_DELIVERED, claim, 0);
}

/* Asks for a key, and tells of it. */
static int look(fleet *f, fleet_call *c, idem_entry *entry)
{
    int result = ask(f, c);

    if (result == IDEM_OK && fleet_is_over(&c->has))
        return wrong(f, IDEM_E_NOT_FOUND);
    if (result == IDEM_OK)
        fleet_describe(f, entry, &c->has);
    return result;
}

int fleet_find(fleet *f, idem_entry *entry, const idem_request *request)
{
    fleet_call c;
    int result;

    fleet_start(&c, FLEET_FIND, NULL);
    result = entry ? fleet_put_key(f, &c, request) : IDEM_E_ARG;
    return result == IDEM_OK ? look(f, &c, entry) : wrong(f, result);
}

int fleet_pending(fleet *f, idem_entry *entry)
{
    fleet_call c;

    fleet_start(&c, FLEET_PENDING, entry ? &entry->claim : NULL);
    return entry ? look(f, &c, entry) : wrong(f, IDEM_E_ARG);
}

/* Records what a handler has filled in, whatever it is: the effect has
   happened. */
static int record(fleet *f, idem_reply *reply, const idem_request *rq,
                  idem_outcome *o)
{
    int result = fleet_complete(f, &reply->claim, o);

    if (result == IDEM_E_ARG || result == IDEM_E_TOO_LARGE) {
        uint8_t confirm = o->confirm;
        memset(o, 0, sizeof *o);
        o->failed = 1;
        o->code = IDEM_CODE_INVALID;
        o->confirm = confirm;
        result = fleet_complete(f, &reply->claim, o);
    }
    if (result != IDEM_OK)
        return result;
    reply->response_len = o->response_len;
    reply->status = o->failed ? IDEM_FAILED : IDEM_COMPLETED;
    reply->code = o->code;
    if (o->response_len && rq->buffer && o->response != rq->buffer &&
        o->response_len <= rq->buffer_size)
        memcpy(rq->buffer, o->response, o->response_len);
    return IDEM_DONE;
}

/* A handler cannot tell: the claim stays, and its lease says for how long. */
static int keep(fleet *f, idem_reply *reply, const idem_request *request)
{
    idem_entry e = { .id = NULL };
    int result = fleet_find(f, &e, request);

    if (result == IDEM_E_NOT_FOUND ||
        (result == IDEM_OK && (e.status != IDEM_IN_PROGRESS ||
                               e.attempts != reply->claim.attempt)))
        return wrong(f, IDEM_E_FENCED);
    reply->retry_after_ms = e.left_ms;
    return result == IDEM_OK ? IDEM_BUSY : result;
}

int fleet_run(fleet *f, idem_reply *reply, const idem_request *request,
              idem_handler *handler, void *ctx)
{
    idem_job job = { .ctx = ctx, .request = request };
    int result;

    if (!reply || !handler)
        return wrong(f, IDEM_E_ARG);
    job.claim = &reply->claim;
    job.answer = fleet_begin(f, &reply->claim, reply, request);
    if (job.answer != IDEM_EXECUTE && job.answer != IDEM_RECOVER)
        return job.answer;
    switch (handler(&job)) {
    case IDEM_HANDLED:
        return record(f, reply, request, &job.outcome);
    case IDEM_NOT_DONE:
        result = fleet_release(f, &reply->claim);
        return result == IDEM_OK ? IDEM_RELEASED : result;
    default:
        return keep(f, reply, request);
    }
}
