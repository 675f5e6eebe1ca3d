/* SPDX-License-Identifier: 0BSD */
/*
 * What a table with a journal may answer, whatever has happened to it; written
 * from the promises in the manual of idem.h.
 *
 * Of each key there is a set of versions that may be true now, and a set of
 * those that the next opening may find.  A call that failed, or that a cut
 * interrupted, has happened for the next opening, or not.  Whatever is answered
 * must fit a version; and when that was written, nothing else stays possible.
 *
 * Time is known from above: the table counts no more than the tick went ahead.
 * So what must be remembered is known for certain; what may be forgotten is not
 * looked at more closely.
 */
#ifndef PROMISES_H
#define PROMISES_H

#include "device.h"

enum { VERSIONS = 24 };                 // in a set
enum { RETENTION_DEFAULT = 86400000, ATTEMPTS_DEFAULT = 3 };

#define FOR_EVER UINT64_MAX

typedef struct version {
    int      status;                    // 0: the key is unknown
    unsigned payload, attempts;
    uint64_t token;                     // of the current claim, or 0
    uint64_t lease_end;                 // not over before
    uint64_t from;                      // retention begins not before
    uint32_t number;                    // of the response
    int32_t  code;
    int      owed;
} version;

typedef struct versions {
    unsigned count;
    int      any;                       // there were too many: all may be true
    version  of[VERSIONS];
} versions;

typedef struct promises {
    const idem_config *config;
    uint64_t clock;                     // logical time, at most
    uint32_t tick;
    uint64_t token;                     // the largest that was granted
    int      failed;                    // a call did, and since then nothing
                                        // was written
    int      wrote;                     // something was since then, durably
    int      began;                     // something was written in this boot
    versions now[KEYS], next[KEYS];
    versions state, next_state;         // by number
} promises;

typedef struct promised_call {
    char what;                          // B begin, C complete, R release,
                                        // N renew, X forget, D delivered,
                                        // Y sync
    unsigned key, payload;
    uint32_t lease;                     // begin, renew
    uint32_t number;                    // complete: of the response
    idem_claim claim;                   // begin: granted; others: used
    const idem_reply *reply;            // begin
    const idem_outcome *outcome;        // complete
} promised_call;

/* ----------------------------------------------------------------- versions */

static inline int version_same(const version *a, const version *b)
{
    return a->status == b->status && a->payload == b->payload &&
           a->attempts == b->attempts && a->token == b->token &&
           a->lease_end == b->lease_end && a->from == b->from &&
           a->number == b->number && a->code == b->code && a->owed == b->owed;
}

static inline void versions_add(versions *set, const version *v)
{
    unsigned i;

    for (i = 0; i < set->count; i++)
        if (version_same(&set->of[i], v))
            return;
    if (set->count == VERSIONS)
        set->any = 1;
    else
        set->of[set->count++] = *v;
}

static inline void versions_merge(versions *to, const versions *from)
{
    unsigned i;

    to->any |= from->any;
    for (i = 0; i < from->count; i++)
        versions_add(to, &from->of[i]);
}

static inline void versions_only(versions *set, const version *v)
{
    set->count = 1;
    set->any = 0;
    set->of[0] = *v;
}

/* --------------------------------------------------------------------- time */

static inline void promises_pass(promises *p, uint32_t ms)
{
    p->clock += ms;
}

/* A step back of up to 65.5 s is waited out, a longer one is followed. */
static inline void promises_tick(promises *p, uint32_t now)
{
    uint32_t passed = now - p->tick;

    if (passed < UINT32_C(0x80000000))
        promises_pass(p, passed);
    else if (0 - passed <= UINT32_C(0x10000))
        return;
    p->tick = now;
}

/* True if the key may be unknown, if this is what was known of it. */
static inline int version_gone(const promises *p, const version *v)
{
    uint32_t retention = p->config->retention_ms ? p->config->retention_ms
                                                 : RETENTION_DEFAULT;

    if (!v->status)
        return 1;
    if (v->from == FOR_EVER)
        return 0;
    if (v->status != IDEM_IN_PROGRESS && !v->owed &&
        p->config->full == IDEM_EVICT_OLDEST)
        return 1;
    return p->clock >= v->from && p->clock - v->from >= retention;
}

/* True if the lease may be over. */
static inline int version_late(const promises *p, const version *v)
{
    return !v->token || p->clock >= v->lease_end;
}

static inline void version_lease(const promises *p, version *v, uint32_t lease)
{
    uint64_t end = lease == IDEM_LEASE_NONE ? FOR_EVER : p->clock + lease;

    if (v->lease_end != FOR_EVER)
        v->lease_end = v->from = end;
}

/* ------------------------------------------------------------------ answers */

static inline unsigned promises_attempts(const promises *p)
{
    return p->config->max_attempts ? p->config->max_attempts
                                   : ATTEMPTS_DEFAULT;
}

/* Keys, or those of a scope, that may be known beside one. */
static inline unsigned promises_others(const promises *p, unsigned key,
                                       int same_scope)
{
    idem_request mine = request_of(key, 0);
    unsigned others = 0, i, k;

    for (k = 0; k < KEYS; k++) {
        idem_request rq = request_of(k, 0);
        int known = p->now[k].any;
        for (i = 0; i < p->now[k].count; i++)
            known |= p->now[k].of[i].status != 0;
        if (k != key && known &&
            (!same_scope || (rq.scope_len == mine.scope_len &&
                             !memcmp(rq.scope, mine.scope, rq.scope_len))))
            others++;
    }
    return others;
}

static inline int promises_full(const promises *p, unsigned key)
{
    return promises_others(p, key, 0) >= p->config->capacity ||
           (p->config->quota &&
            promises_others(p, key, 1) >= p->config->quota);
}

static inline int version_is_reply(const promises *p, const version *v,
                                   unsigned key, const idem_reply *reply)
{
    uint8_t bytes[RESPONSE_MAX];
    size_t len = response_of(bytes, key, 0, v->number);

    return reply->status == v->status && reply->code == v->code &&
           reply->response_len == len && !memcmp(reply->buffer, bytes, len) &&
           reply->age_ms <= p->clock - v->from;
}

/* Makes a version what a begin that claims the key leaves. */
static inline void version_claim(const promises *p, version *v,
                                 const promised_call *c, unsigned attempts)
{
    memset(v, 0, sizeof *v);
    v->status = IDEM_IN_PROGRESS;
    v->payload = c->payload;
    v->attempts = attempts;
    v->token = c->claim.token;
    version_lease(p, v, c->lease);
}

/* Each of these: whether the call may answer so if this version is true, which
   becomes what it is afterwards. */
static inline int version_begin(const promises *p, version *v,
                                const promised_call *c, int result)
{
    switch (result) {
    case IDEM_E_FULL:
        return version_gone(p, v) && promises_full(p, c->key);
    case IDEM_EXECUTE:
        if (!version_gone(p, v))
            return 0;
        version_claim(p, v, c, 1);
        return 1;
    case IDEM_MISMATCH:
        return v->status && v->payload != c->payload;
    }
    if (!v->status || v->payload != c->payload)
        return 0;
    switch (result) {
    case IDEM_REPLAY:
        return v->status != IDEM_IN_PROGRESS &&
               (!c->reply || version_is_reply(p, v, c->key, c->reply));
    case IDEM_BUSY:
        return v->status == IDEM_IN_PROGRESS && v->token;
    case IDEM_EXHAUSTED:
        return v->status == IDEM_IN_PROGRESS && version_late(p, v) &&
               v->attempts >= promises_attempts(p);
    case IDEM_RECOVER:
        if (v->status != IDEM_IN_PROGRESS || !version_late(p, v) ||
            v->attempts >= promises_attempts(p))
            return 0;
        version_claim(p, v, c, v->attempts + 1);
        return 1;
    }
    return 0;
}

static inline int version_use(const promises *p, version *v,
                              const promised_call *c, int result)
{
    int current = v->status == IDEM_IN_PROGRESS && v->token &&
                  v->token == c->claim.token;

    if (result == IDEM_E_FENCED)
        return !current || version_gone(p, v);
    if (result != IDEM_OK || !current)
        return 0;
    if (c->what == 'R')
        memset(v, 0, sizeof *v);
    else if (c->what == 'N')
        version_lease(p, v, c->lease);
    else {
        v->status = c->outcome->failed ? IDEM_FAILED : IDEM_COMPLETED;
        v->token = v->lease_end = 0;
        v->from = p->clock;
        v->number = c->number;
        v->code = c->outcome->code;
        v->owed = c->outcome->confirm;
    }
    return 1;
}

static inline int version_forget(const promises *p, version *v, int result)
{
    int claimed = v->status == IDEM_IN_PROGRESS;

    if (result == IDEM_E_NOT_FOUND)
        return version_gone(p, v);
    if (result == IDEM_BUSY)
        return claimed && v->token;
    if (result != IDEM_OK || !v->status || (claimed && !version_late(p, v)))
        return 0;
    memset(v, 0, sizeof *v);
    return 1;
}

static inline int version_answer(const promises *p, version *v,
                                 const promised_call *c, int result)
{
    switch (c->what) {
    case 'B': return version_begin(p, v, c, result);
    case 'X': return version_forget(p, v, result);
    case 'D':
        if (v->status < IDEM_COMPLETED)
            return 0;
        v->owed = 0;
        return result == IDEM_OK;
    default: return version_use(p, v, c, result);
    }
}

/* ---------------------------------------------------------------- the calls */

/* Whether only what one call wrote is durable afterwards. */
static inline int promises_exact(const promises *p)
{
    return p->config->durability == IDEM_EACH && !p->config->volatile_claims;
}

/* Whether what is true now is all that the next opening may find. */
static inline void promises_durable(promises *p)
{
    unsigned k;

    for (k = 0; k < KEYS; k++)
        p->next[k] = p->now[k];
    p->next_state = p->state;
    p->wrote = 1;
}

/* Whether the call, which has answered so, has written. */
static inline int promises_writes(const promised_call *c, int result)
{
    if (c->what == 'B')
        return result == IDEM_EXECUTE || result == IDEM_RECOVER;
    return result == IDEM_OK && c->what != 'N';
}

/* The call has failed, or was cut short: the next opening may find it. */
static inline void promises_in_flight(promises *p, const promised_call *c)
{
    static const int results[] = { IDEM_OK, IDEM_EXECUTE, IDEM_RECOVER };
    version state = { 0 };
    unsigned i, r;

    p->wrote = 0;
    p->failed = 1;
    if (c->what == 'Y')
        return;
    for (i = 0; i < p->now[c->key].count; i++)
        for (r = 0; r < 3; r++) {
            version v = p->now[c->key].of[i];
            if (version_answer(p, &v, c, results[r]))
                versions_add(&p->next[c->key], &v);
        }
    if (c->outcome && c->outcome->state) {
        state.number = c->number;
        versions_add(&p->next_state, &state);
    }
}

/* The call has answered so.  False if it may not. */
static inline int promises_answered(promises *p, const promised_call *c,
                                    int result)
{
    versions fit = { 0 }, *now = &p->now[c->key];
    version state = { 0 };
    unsigned i;

    if (c->what == 'Y') {
        if (result == IDEM_OK && !p->config->volatile_claims && !p->failed &&
            p->began)
            promises_durable(p);
        return result == IDEM_OK;
    }
    for (i = 0; i < now->count; i++) {
        version v = now->of[i];
        if (version_answer(p, &v, c, result))
            versions_add(&fit, &v);
    }
    if (!fit.count && !now->any)
        return 0;
    // Who only looked has confirmed nothing.
    if (c->what == 'X' && result == IDEM_E_NOT_FOUND)
        return 1;
    if (c->claim.token && c->what == 'B') {
        if (c->claim.token <= p->token)
            return 0;
        p->token = c->claim.token;
    }
    fit.any = now->any;
    *now = fit;
    if (result == IDEM_OK && c->outcome && c->outcome->state) {
        state.number = c->number;
        versions_only(&p->state, &state);
    }
    if (promises_writes(c, result)) {
        p->failed = 0;
        p->began = 1;
    }
    if (!promises_exact(p)) {
        versions_merge(&p->next[c->key], now);
        versions_merge(&p->next_state, &p->state);
    } else if (promises_writes(c, result) || p->wrote)
        promises_durable(p);
    return 1;
}

/* Whether looking may show this of a key; NULL: that it is unknown. */
static inline int promises_shown(const promises *p, unsigned key,
                                 const idem_entry *e)
{
    const versions *set = &p->now[key];
    unsigned i;

    for (i = 0; i < set->count; i++) {
        const version *v = &set->of[i];
        if (!e ? version_gone(p, v)
               : v->status == e->status && v->payload == e->fingerprint &&
                 v->attempts == e->attempts && v->code == e->code &&
                 v->owed == e->undelivered)
            return 1;
    }
    return set->any;
}

static inline int promises_state(const promises *p, uint32_t number)
{
    unsigned i;

    for (i = 0; i < p->state.count; i++)
        if (p->state.of[i].number == number)
            return 1;
    return p->state.any;
}

/* What a restart leaves of a version. */
static inline void version_restart(const promises *p, version *v)
{
    v->token = v->lease_end = 0;
    if (v->status != IDEM_IN_PROGRESS)
        return;
    if (p->config->volatile_claims)
        memset(v, 0, sizeof *v);
    else if (v->from > p->clock)
        v->from = p->clock;
}

static inline void promises_restart(promises *p)
{
    unsigned k, i;

    for (k = 0; k < KEYS; k++) {
        versions was = p->next[k];
        p->now[k].count = 0;
        p->now[k].any = was.any;
        for (i = 0; i < was.count; i++) {
            version_restart(p, &was.of[i]);
            versions_add(&p->now[k], &was.of[i]);
        }
        p->next[k] = p->now[k];
    }
    p->state = p->next_state;
    p->wrote = p->failed = p->began = 0;
}

static inline void promises_init(promises *p, const idem_config *config)
{
    version none = { 0 };
    unsigned k;

    memset(p, 0, sizeof *p);
    p->config = config;
    // Times long ago are before the first.
    p->clock = UINT64_C(1) << 40;
    for (k = 0; k < KEYS; k++) {
        versions_only(&p->now[k], &none);
        versions_only(&p->next[k], &none);
    }
    versions_only(&p->state, &none);
    versions_only(&p->next_state, &none);
}

#endif /* PROMISES_H */
