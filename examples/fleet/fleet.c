/* SPDX-License-Identifier: 0BSD */
/* The calls, which are the same for every store. */
#include "store.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static int wrong(fleet *f, int result)
{
    return fleet_fail(f, result, "%s", idem_text(result));
}

static int grants(int answer)
{
    return answer >= IDEM_EXECUTE && answer <= IDEM_UNCERTAIN;
}

/* What is left of a lease that began then, as seen from here; 1 at least. */
static uint32_t rest_of(int64_t lease, int64_t start)
{
    int64_t rest = lease - (fleet_ms() - start);

    return (uint32_t)(rest > 0 ? rest : 1);
}

int fleet_begin(fleet *f, idem_claim *claim, idem_reply *reply,
                const idem_request *request)
{
    fleet_call c;
    int64_t start, lease;
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
    c.buffer = request->buffer;
    c.buffer_size = request->buffer_size;
    start = fleet_ms();
    lease = fleet_lease(f, request->lease_ms);
    result = fleet_ask(f, &c);
    if (grants(result)) {
        strcpy(f->last_id, c.id);
        f->last_token = c.has.token;
        f->last_end = c.has.until - lease + c.has.retention;
        f->last_finished = 0;
        if (fleet_ms() - start > lease / 2) {
            reply->retry_after_ms = rest_of(lease, start);
            return IDEM_BUSY;
        }
    }
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
    fleet_put(&c, FLEET_ARG_pending, o->confirm ? 1 : 0);
    result = fleet_ask(f, &c);
    free(hex);
    if (result == IDEM_OK && claim->token == f->last_token && !transaction)
        f->last_finished = 1;
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
    fleet_put(&c, FLEET_ARG_lease, fleet_lease(f, lease));
    return fleet_ask(f, &c);
}

int fleet_release(fleet *f, const idem_claim *claim)
{
    int result = ask_of(f, FLEET_RELEASE, claim, 0);

    if (result == IDEM_OK && claim->token == f->last_token)
        f->last_token = 0;              // it may go
    return result;
}

int fleet_renew(fleet *f, const idem_claim *claim, uint32_t lease_ms)
{
    return ask_of(f, FLEET_RENEW, claim, lease_ms);
}

int fleet_delivered(fleet *f, const idem_claim *claim)
{
    return ask_of(f, FLEET_DELIVERED, claim, 0);
}

/* Asks for a key, and describes it. */
static int look(fleet *f, fleet_call *c, idem_info *info)
{
    int result = fleet_ask(f, c);

    if (result == IDEM_OK && fleet_has_expired(&c->has))
        return wrong(f, IDEM_E_NOT_FOUND);
    if (result == IDEM_OK)
        fleet_describe(f, info, &c->has);
    return result;
}

int fleet_find(fleet *f, idem_info *info, const idem_request *request)
{
    fleet_call c;
    int result;

    fleet_start(&c, FLEET_FIND, NULL);
    result = info ? fleet_put_key(f, &c, request) : IDEM_E_ARG;
    return result == IDEM_OK ? look(f, &c, info) : wrong(f, result);
}

int fleet_pending(fleet *f, idem_info *info)
{
    fleet_call c;

    fleet_start(&c, FLEET_PENDING, info ? &info->claim : NULL);
    return info ? look(f, &c, info) : wrong(f, IDEM_E_ARG);
}

/* ---------------------------------------------------------------------- run */

/* Completes, or releases if there is no outcome: again and again, for as long
   as a lease.  What the first try did is found done. */
static int settle(fleet *f, const idem_claim *claim, const idem_outcome *o)
{
    int64_t end = fleet_ms() + fleet_lease(f, 0);
    int wait = FLEET_WAIT_MS, result;

    do {
        result = o ? fleet_complete(f, claim, o) : fleet_release(f, claim);
        if (result != IDEM_E_STORAGE)
            break;
        fleet_back_off(&wait);
    } while (fleet_ms() < end);
    return result;
}

/* An outcome that is refused was a mistake, but no answer after it may be
   that nothing was executed: so a failure is recorded before it is asserted. */
static int record(fleet *f, idem_reply *reply, const idem_request *request,
                  idem_outcome *o)
{
    int result = settle(f, &reply->claim, o);

    if (result == IDEM_E_ARG || result == IDEM_E_TOO_LARGE) {
        memset(o, 0, sizeof *o);
        o->failed = 1;
        o->code = IDEM_CODE_INVALID;
        result = settle(f, &reply->claim, o);
        assert(!"the handler's outcome was not to be recorded: a failure is");
    }
    if (result != IDEM_OK)
        return result == IDEM_E_ARG ? IDEM_E_FENCED : result;
    reply->response_len = o->response_len;
    reply->status = o->failed ? IDEM_FAILED : IDEM_COMPLETED;
    reply->code = o->code;
    if (o->response_len && request->buffer && o->response != request->buffer &&
        o->response_len <= request->buffer_size)
        memcpy(request->buffer, o->response, o->response_len);
    return IDEM_DONE;
}

int fleet_run(fleet *f, idem_reply *reply, const idem_request *request,
              idem_handler *handler, void *ctx)
{
    int64_t start = fleet_ms();
    idem_job job;
    int answer, result;

    if (!reply || !handler)
        return wrong(f, IDEM_E_ARG);
    answer = fleet_begin(f, &reply->claim, reply, request);
    if (!grants(answer))
        return answer;
    memset(&job, 0, sizeof job);
    job.ctx = ctx;
    job.request = request;
    job.claim = &reply->claim;
    job.answer = answer;
    switch (handler(&job)) {
    case IDEM_HANDLED:
        return record(f, reply, request, &job.outcome);
    case IDEM_NOT_DONE:
        result = settle(f, &reply->claim, NULL);
        return result == IDEM_OK ? IDEM_RELEASED : result;
    }
    reply->retry_after_ms = rest_of(fleet_lease(f, request->lease_ms), start);
    return IDEM_BUSY;                   // the claim is kept
}
