/* SPDX-License-Identifier: 0BSD */
/*
 * The stupid truth about a table of idem.h, written from its manual, to compare
 * the table with: an unsorted array that is always looked through from one end
 * to the other, 64-bit time that never wraps, 64-bit tokens, plain bytes, no
 * hash, nothing kept that is over.
 *
 * The functions are those of idem.h, with model_ for idem_.  The token of a
 * claim is the table's choice, and told to the model; where the manual leaves
 * the table a range, the model gives the end of it.
 */
#ifndef MODEL_H
#define MODEL_H

#include "idem.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

// The largest configuration and the longest payload that fit into a model.
#define MODEL_KEYS     256
#define MODEL_ID       255
#define MODEL_PAYLOAD  16
#define MODEL_RESPONSE 320
#define MODEL_STATE    16

// The defaults and the step of maintenance that the manual names.
#define MODEL_LEASE_MS     30000u
#define MODEL_RETENTION_MS 86400000u
#define MODEL_ATTEMPTS     3u
#define MODEL_MAINTAIN     64u

#define MODEL_NEVER UINT64_MAX

typedef struct model_key {
    uint8_t  id[MODEL_ID];      // scope, then key
    size_t   scope_len;
    size_t   key_len;
    int      has_fingerprint;   // else the payload is what was asked for
    uint64_t fingerprint;
    uint8_t  payload[MODEL_PAYLOAD];
    size_t   payload_len;
    int      status;
    uint64_t token;             // of the latest claim
    uint32_t attempts;
    uint64_t lease_end;         // in progress; or MODEL_NEVER
    uint64_t retention;
    size_t   reserved;          // in progress: bytes for the response
    uint64_t completed;         // when
    uint64_t nth;               // completion of the table it was
    uint8_t  response[MODEL_RESPONSE];
    size_t   response_len;
    int32_t  code;
    int      undelivered;
} model_key;

typedef struct model {
    const idem_config *config;
    uint64_t    clock;          // ms since the opening
    uint32_t    tick;
    uint64_t    lost;           // ms by which it is below where it was once
    model_key   keys[MODEL_KEYS];
    size_t      count;
    uint64_t    reach;          // what was completed by then may be forgotten:
                                // the opening, or the newest one evicted
    uint64_t    completions;
    uint32_t    maintained;     // slots in this round of maintenance
    uint8_t     state[MODEL_STATE];
    size_t      state_len;
    idem_stats  stats;          // expired, undelivered: as soon as it is over
} model;

/* ------------------------------------------------------------------ time */

/* When the key is dropped: one retention after completion or end of lease. */
static inline uint64_t model_due(const model_key *k)
{
    if (k->status != IDEM_IN_PROGRESS)
        return k->completed + k->retention;
    if (k->lease_end == MODEL_NEVER)
        return MODEL_NEVER;
    return k->lease_end + k->retention;
}

static inline uint32_t model_lease_left(const model *m, const model_key *k)
{
    if (k->lease_end == MODEL_NEVER)
        return IDEM_LEASE_NONE;
    return k->lease_end > m->clock ? (uint32_t)(k->lease_end - m->clock) : 0;
}

static inline void model_remove(model *m, model_key *k)
{
    *k = m->keys[--m->count];
}

/* Drops all that is over. */
static inline void model_drop(model *m)
{
    size_t i = 0;

    while (i < m->count) {
        model_key *k = &m->keys[i];
        if (m->clock < model_due(k)) {
            i++;
            continue;
        }
        m->stats.expired++;
        m->stats.undelivered += k->undelivered != 0;
        model_remove(m, k);
    }
}

static inline void model_elapse(model *m, uint32_t off_ms)
{
    m->clock += off_ms;
    model_drop(m);
}

/* The start of every call that has the time. */
static inline void model_tick(model *m, uint32_t now_ms)
{
    uint32_t ahead = now_ms - m->tick;
    uint32_t back = m->tick - now_ms;

    if (ahead >= UINT32_C(1) << 31) {
        m->stats.backwards++;
        if (back > 65536) {
            m->tick = now_ms;
            m->lost += back;
        }
        return;
    }
    m->tick = now_ms;
    // A step that makes good all that was lost was no step ahead for that part.
    if (ahead >= (uint32_t)m->lost) {
        model_elapse(m, ahead - (uint32_t)m->lost);
        m->lost = 0;
    } else {
        model_elapse(m, ahead);
        m->lost -= ahead;
    }
}

/* ------------------------------------------------------------------ keys */

static inline int model_bytes_equal(const void *a, size_t a_len,
                                    const void *b, size_t b_len)
{
    return a_len == b_len && (a_len == 0 || memcmp(a, b, a_len) == 0);
}

static inline void model_copy(void *dst, const void *src, size_t len)
{
    if (len)
        memcpy(dst, src, len);
}

static inline int model_has_scope(const model_key *k, const idem_request *rq)
{
    return model_bytes_equal(k->id, k->scope_len, rq->scope, rq->scope_len);
}

/* The live key of a request, or NULL. */
static inline model_key *model_lookup(model *m, const idem_request *rq)
{
    size_t i;

    for (i = 0; i < m->count; i++) {
        model_key *k = &m->keys[i];
        if (model_has_scope(k, rq) &&
            model_bytes_equal(k->id + k->scope_len, k->key_len, rq->key,
                              rq->key_len))
            return k;
    }
    return NULL;
}

/* The live key whose latest claim has that token, or NULL. */
static inline model_key *model_named(model *m, uint64_t token)
{
    size_t i;

    for (i = 0; i < m->count; i++)
        if (m->keys[i].token == token)
            return &m->keys[i];
    return NULL;
}

static inline model_key *model_current(model *m, uint64_t token)
{
    model_key *k = model_named(m, token);

    if (k && k->status == IDEM_IN_PROGRESS)
        return k;
    m->stats.fenced++;
    return NULL;
}

static inline model_key *model_outcome(model *m, uint64_t token)
{
    model_key *k = model_named(m, token);

    return k && k->status != IDEM_IN_PROGRESS ? k : NULL;
}

/* The oldest completion that may be evicted, of the request's scope or, with
   NULL, of any; or NULL. */
static inline model_key *model_evictable(model *m, const idem_request *rq)
{
    model_key *oldest = NULL;
    size_t i;

    for (i = 0; i < m->count; i++) {
        model_key *k = &m->keys[i];
        if (k->status == IDEM_IN_PROGRESS || k->undelivered ||
            (rq && !model_has_scope(k, rq)))
            continue;
        if (!oldest || k->nth < oldest->nth)
            oldest = k;
    }
    return oldest;
}

static inline uint32_t model_live(const model *m, const idem_request *rq)
{
    uint32_t live = 0;
    size_t i;

    for (i = 0; i < m->count; i++)
        live += !rq || model_has_scope(&m->keys[i], rq);
    return live;
}

static inline uint32_t model_pending_count(const model *m)
{
    uint32_t owed = 0;
    size_t i;

    for (i = 0; i < m->count; i++)
        owed += m->keys[i].undelivered != 0;
    return owed;
}

/* -------------------------------------------------------------- eviction */

/* Drops a key before its time: what was sent when it completed, or earlier, is
   unknown from now on without being new. */
static inline void model_evict(model *m, model_key *k)
{
    if (k->completed > m->reach)
        m->reach = k->completed;
    m->stats.evicted++;
    model_remove(m, k);
}

static inline uint64_t model_retention_of(const model *m,
                                          const idem_request *rq)
{
    uint32_t ms = rq ? rq->retention_ms : 0;

    if (!ms)
        ms = m->config->retention_ms;
    return ms ? ms : MODEL_RETENTION_MS;
}

/* True if an unknown key is as old as an outcome may become, or was sent when
   memory does not reach that far. */
static inline int model_too_old(const model *m, const idem_request *rq)
{
    return rq->age_ms && (rq->age_ms >= model_retention_of(m, rq) ||
                          rq->age_ms >= m->clock - m->reach);
}

/* ----------------------------------------------------------------- begin */

/* IDEM_E_ARG or IDEM_E_TOO_LARGE if scope and key are not right, else OK. */
static inline int model_id_right(const model *m, const idem_request *rq)
{
    if (!rq->key || !rq->key_len || (!rq->scope && rq->scope_len))
        return IDEM_E_ARG;
    if (rq->scope_len > m->config->key_max ||
        rq->scope_len + rq->key_len > m->config->key_max)
        return IDEM_E_TOO_LARGE;
    return IDEM_OK;
}

static inline int model_lease_right(uint32_t lease_ms)
{
    return lease_ms <= IDEM_LEASE_MAX || lease_ms == IDEM_LEASE_NONE;
}

/* The same for a whole request. */
static inline int model_request_right(const model *m, const idem_request *rq)
{
    int result = model_id_right(m, rq);

    if (result < 0)
        return result;
    if ((!rq->payload && rq->payload_len) || !model_lease_right(rq->lease_ms) ||
        rq->retention_ms > IDEM_RETENTION_MAX)
        return IDEM_E_ARG;
    if (rq->response_size > m->config->response_max)
        return IDEM_E_TOO_LARGE;
    return IDEM_OK;
}

static inline int model_same_command(const model_key *k,
                                     const idem_request *rq)
{
    if (k->has_fingerprint != (rq->has_fingerprint != 0))
        return 0;
    if (k->has_fingerprint)
        return k->fingerprint == rq->fingerprint;
    return model_bytes_equal(k->payload, k->payload_len, rq->payload,
                             rq->payload_len);
}

/* The end of a lease that starts now. */
static inline uint64_t model_lease_end(const model *m, uint32_t lease_ms)
{
    if (!lease_ms)
        lease_ms = m->config->lease_ms;
    if (!lease_ms)
        lease_ms = MODEL_LEASE_MS;
    return lease_ms == IDEM_LEASE_NONE ? MODEL_NEVER : m->clock + lease_ms;
}

static inline void model_grant(const model *m, model_key *k, idem_claim *claim,
                               const idem_request *rq, uint64_t token)
{
    k->status = IDEM_IN_PROGRESS;
    k->token = token;
    k->attempts++;
    k->lease_end = model_lease_end(m, rq->lease_ms);
    k->retention = model_retention_of(m, rq);
    k->reserved =
        rq->response_size ? rq->response_size : m->config->response_max;
    claim->token = token;
    claim->attempt = k->attempts;
}

/* What a reply says of an outcome; its buffer is where the model has the
   response. */
static inline void model_replay(model *m, model_key *k, idem_reply *reply)
{
    reply->buffer = k->response;
    reply->response_len = k->response_len;
    reply->status = k->status;
    reply->code = k->code;
    reply->age_ms = (uint32_t)(m->clock - k->completed);
    reply->claim.token = k->token;
    reply->claim.attempt = k->attempts;
}

static inline int model_again(model *m, model_key *k, idem_claim *claim,
                              idem_reply *reply, const idem_request *rq,
                              uint64_t token)
{
    uint32_t max = m->config->max_attempts;

    if (!model_same_command(k, rq))
        return IDEM_MISMATCH;
    if (k->status != IDEM_IN_PROGRESS) {
        model_replay(m, k, reply);
        return IDEM_REPLAY;
    }
    if (m->clock < k->lease_end) {
        reply->retry_after_ms = model_lease_left(m, k);
        return IDEM_BUSY;
    }
    if (k->attempts >= (max ? max : MODEL_ATTEMPTS))
        return IDEM_EXHAUSTED;
    model_grant(m, k, claim, rq, token);
    return IDEM_RECOVER;
}

/* IDEM_E_FULL; in the reply, when the first of the scope's keys (with NULL: of
   all) will be dropped: the table may not tell the sender to wait longer. */
static inline int model_full(const model *m, idem_reply *reply,
                             const idem_request *rq)
{
    uint64_t wait = UINT32_MAX;
    size_t i;

    for (i = 0; i < m->count; i++) {
        const model_key *k = &m->keys[i];
        if ((!rq || model_has_scope(k, rq)) && model_due(k) - m->clock < wait)
            wait = model_due(k) - m->clock;
    }
    reply->retry_after_ms = (uint32_t)wait;
    return IDEM_E_FULL;
}

/* Makes room for one more key, of the request's scope if its quota is used up,
   or of any if the table is full.  IDEM_OK or IDEM_E_FULL. */
static inline int model_room(model *m, idem_reply *reply,
                             const idem_request *rq)
{
    int over = m->config->quota && model_live(m, rq) >= m->config->quota;
    const idem_request *whose = over ? rq : NULL;
    model_key *oldest;

    if (!over && m->count < m->config->capacity)
        return IDEM_OK;
    oldest = model_evictable(m, whose);
    if (m->config->full != IDEM_EVICT_OLDEST || !oldest)
        return model_full(m, reply, whose);
    model_evict(m, oldest);
    return IDEM_OK;
}

static inline int model_first(model *m, idem_claim *claim, idem_reply *reply,
                              const idem_request *rq, uint64_t token)
{
    model_key *k;

    if (model_too_old(m, rq))
        return IDEM_TOO_OLD;
    if (model_room(m, reply, rq) < 0)
        return IDEM_E_FULL;
    k = &m->keys[m->count++];
    memset(k, 0, sizeof *k);
    model_copy(k->id, rq->scope, rq->scope_len);
    model_copy(k->id + rq->scope_len, rq->key, rq->key_len);
    k->scope_len = rq->scope_len;
    k->key_len = rq->key_len;
    k->has_fingerprint = rq->has_fingerprint != 0;
    k->fingerprint = rq->fingerprint;
    model_copy(k->payload, rq->payload, rq->payload_len);
    k->payload_len = rq->payload_len;
    model_grant(m, k, claim, rq, token);
    return IDEM_EXECUTE;
}

/* *claim and *reply are what is to be expected in the table's; claim.slot is
   the table's own affair, retry_after_ms at IDEM_E_FULL the most it may be.
   The token is the one that the table granted, if it did. */
static inline int model_begin(model *m, idem_claim *claim, idem_reply *reply,
                              const idem_request *rq, uint64_t token,
                              uint32_t now_ms)
{
    int result = model_request_right(m, rq);
    model_key *k;

    memset(claim, 0, sizeof *claim);
    memset(reply, 0, sizeof *reply);
    if (result < 0)
        return result;
    model_tick(m, now_ms);
    k = model_lookup(m, rq);
    result = k ? model_again(m, k, claim, reply, rq, token)
               : model_first(m, claim, reply, rq, token);
    if (result >= 0)
        m->stats.answers[result]++;
    else
        m->stats.full++;
    return result;
}

/* ---------------------------------------------------------------- claims */

static inline int model_complete(model *m, uint64_t token,
                                 const idem_outcome *out, uint32_t now_ms)
{
    model_key *k;

    model_tick(m, now_ms);
    k = model_current(m, token);
    if (!k)
        return IDEM_E_FENCED;
    if (out->response_len > k->reserved ||
        out->state_len > m->config->state_max)
        return IDEM_E_TOO_LARGE;
    k->status = out->failed ? IDEM_FAILED : IDEM_COMPLETED;
    k->completed = m->clock;
    k->nth = m->completions++;
    k->code = out->code;
    model_copy(k->response, out->response, out->response_len);
    k->response_len = out->response_len;
    k->undelivered = out->confirm != 0;
    if (out->state) {
        model_copy(m->state, out->state, out->state_len);
        m->state_len = out->state_len;
    }
    return IDEM_OK;
}

static inline int model_release(model *m, uint64_t token, uint32_t now_ms)
{
    model_key *k;

    model_tick(m, now_ms);
    k = model_current(m, token);
    if (!k)
        return IDEM_E_FENCED;
    model_remove(m, k);
    return IDEM_OK;
}

static inline int model_renew(model *m, uint64_t token, uint32_t lease_ms,
                              uint32_t now_ms)
{
    model_key *k;
    uint64_t end;

    if (!model_lease_right(lease_ms))
        return IDEM_E_ARG;
    model_tick(m, now_ms);
    k = model_current(m, token);
    if (!k)
        return IDEM_E_FENCED;
    end = model_lease_end(m, lease_ms);
    if (end > k->lease_end)
        k->lease_end = end;
    return IDEM_OK;
}

/* -------------------------------------------------------- idle and looking */

static inline int model_maintain(model *m, uint32_t now_ms)
{
    model_tick(m, now_ms);
    m->maintained += MODEL_MAINTAIN;
    if (m->maintained < m->config->capacity)
        return IDEM_MORE;
    m->maintained = 0;
    return IDEM_OK;
}

/* *found is the key, if the result is IDEM_OK. */
static inline int model_find(model *m, const model_key **found,
                             const idem_request *rq, uint32_t now_ms)
{
    int result = model_id_right(m, rq);

    if (result < 0)
        return result;
    model_tick(m, now_ms);
    *found = model_lookup(m, rq);
    return *found ? IDEM_OK : IDEM_E_NOT_FOUND;
}

static inline int model_forget(model *m, const idem_request *rq,
                               uint32_t now_ms)
{
    int result = model_id_right(m, rq);
    model_key *k;

    if (result < 0)
        return result;
    model_tick(m, now_ms);
    k = model_lookup(m, rq);
    if (!k)
        return IDEM_E_NOT_FOUND;
    if (k->status == IDEM_IN_PROGRESS && m->clock < k->lease_end)
        return IDEM_BUSY;
    model_remove(m, k);
    return IDEM_OK;
}

/* The next undelivered outcome after the one that the token names; from the
   start if it names none, or none any more. */
static inline int model_pending(model *m, const model_key **found,
                                uint64_t after, uint32_t now_ms)
{
    const model_key *last;
    size_t i;

    model_tick(m, now_ms);
    last = model_outcome(m, after);
    *found = NULL;
    for (i = 0; i < m->count; i++) {
        const model_key *k = &m->keys[i];
        if (k->undelivered && (!last || k->nth > last->nth) &&
            (!*found || k->nth < (*found)->nth))
            *found = k;
    }
    return *found ? IDEM_OK : IDEM_E_NOT_FOUND;
}

static inline int model_delivered(model *m, uint64_t token)
{
    model_key *k = model_outcome(m, token);

    if (!k)
        return IDEM_E_NOT_FOUND;
    k->undelivered = 0;
    return IDEM_OK;
}

/* *piece is where the bytes are; *len as in idem_response. */
static inline int model_response(model *m, const uint8_t **piece, size_t *len,
                                 uint64_t token, size_t at)
{
    const model_key *k = model_outcome(m, token);

    if (!k || at >= k->response_len) {
        *len = 0;
        return k ? IDEM_OK : IDEM_E_NOT_FOUND;
    }
    *piece = k->response + at;
    if (*len > k->response_len - at)
        *len = k->response_len - at;
    return IDEM_OK;
}

static inline int model_state(const model *m, size_t *len)
{
    size_t size = *len;

    *len = m->state_len;
    return size < m->state_len ? IDEM_E_TOO_LARGE : IDEM_OK;
}

static inline uint32_t model_horizon(model *m, uint32_t now_ms)
{
    uint64_t retention, reaches;

    model_tick(m, now_ms);
    retention = model_retention_of(m, NULL);
    reaches = m->clock - m->reach;
    return (uint32_t)(reaches < retention ? reaches : retention);
}

static inline void model_open(model *m, const idem_config *config,
                              uint32_t now_ms)
{
    memset(m, 0, sizeof *m);
    m->config = config;
    m->tick = now_ms;
}

#endif
