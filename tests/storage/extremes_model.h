/* SPDX-License-Identifier: 0BSD */
/*
 * What a table may answer, of whatever size and configuration it is; written
 * from the promises in the manual of idem.h.  (fuzz/promises.h says the same of
 * six keys, and knows time from above only.  Here there are 98,000, time is
 * known to the millisecond, and the configuration changes between boots.)
 *
 * Of each key there is a set of versions that may be true now, and a set of
 * those that the next opening may find.  A call that failed, or that a cut
 * interrupted, has happened for the next opening, or not.  Whatever is answered
 * must fit a version that may be true; the others are not, as long as this boot
 * lasts.  What is written durably is all that the next opening may find.
 *
 * Eviction is known from above: whatever was finished, and not told of since a
 * call that evicted, may be gone; but for what is younger than one of its scope
 * that is found to be there.
 */
#ifndef EXTREMES_MODEL_H
#define EXTREMES_MODEL_H

#include "idem.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { VERSIONS = 8, STATES = 12 };     // in a set
enum { SCOPES = 20 };
enum { LEASE_DEFAULT = 30000, RETENTION_DEFAULT = 86400000 };
enum { ATTEMPTS_DEFAULT = 3, ATTEMPTS_MOST = 255 };

#define FOR_EVER UINT64_MAX

// Whether a key is known.
enum { GONE, MAYBE, KNOWN };

// In which boot the call of a late version was.
enum { BEFORE = 1, NOW };

typedef struct version {
    uint8_t  status;            // 0: the key is unknown
    uint8_t  cut;               // in progress: a restart cut it short
    uint8_t  owed;
    uint8_t  late;              // of a call that failed or was cut short: may
                                // be found, until a later boot has written
    uint8_t  attempts;
    uint16_t len;               // of the response; in progress, reserved
    uint32_t retention;         // that was asked for
    uint64_t fingerprint;
    uint32_t number;            // tells the response's bytes
    int32_t  code;
    uint64_t lease_end;         // in progress
    uint64_t from, to;          // finished or cut: retention began not before,
                                // and not after
    idem_claim claim;           // token 0: not known in this boot
} version;

typedef struct versions {
    uint8_t  count;
    uint8_t  any;               // there were too many: all may be true
    version  of[VERSIONS];
} versions;

typedef struct known known;

struct known {
    versions now, next;
    uint16_t scope;
    uint8_t  is_volatile;       // what is true now was not written
    uint8_t  is_unsynced;       // is in the list of those
    uint8_t  attempted;         // a call of this boot failed that may be done
    uint8_t  came_again;        // after what was known of it was over
    known   *unsynced;          // the next one in it
    uint32_t told;              // by which call the table told of it last
    uint32_t set;               // by which call it became what it is
    uint32_t changed;           // the latest that set it, or tried to
};

// A key that was evicted in this boot, the one that was completed last.
typedef struct gone {
    uint64_t from;              // when it was completed
    uint32_t changed;           // by which call; 0: there is none
} gone;

// Application state.
typedef struct state {
    uint16_t len;
    uint32_t number;
} state;

typedef struct states {
    unsigned count;
    int      any;
    state    of[STATES];
} states;

typedef struct model {
    const idem_config *config;
    known   *keys;
    unsigned count;             // of keys
    int      faulty;            // callbacks have failed in this boot
    int      was_volatile;      // claims have been
    int      unread;            // a callback failed in this call
    int      wrote;             // this boot did, durably
    uint64_t clock;             // logical time
    uint64_t opened;            // .. at the latest opening
    uint32_t opened_at;         // which call came before that
    uint64_t written;           // of the latest record that is durable
    uint64_t unsynced_time;     // .. that is from the next sync on
    known   *unsynced;          // keys that were written since the last one
    uint64_t token;             // the largest that was granted
    uint32_t calls;
    uint32_t evicted;           // the latest call that may have evicted
    uint32_t evicting;          // .. that failed in this boot: the next opening
                                // may find that it has evicted
    int      crowded;           // a set is nearly full: only a sync helps
    states   now, next;
    gone     gone[SCOPES];      // by scope
} model;

// A begin: what was asked, defaults filled in.
typedef struct asked {
    unsigned key;
    uint64_t fingerprint;
    uint32_t lease_ms, retention_ms, age_ms;
    uint16_t reserved;
} asked;

/* -------------------------------------------------------------------- bytes */

/* The byte at `at` of the response, or state, with this number. */
static inline uint8_t numbered_byte(uint32_t number, size_t at)
{
    return (uint8_t)((number * UINT32_C(2654435761) >> 8 * (at & 3)) ^ at * 7);
}

static inline void numbered_fill(void *bytes, size_t len, uint32_t number)
{
    for (size_t i = 0; i < len; i++)
        ((uint8_t *)bytes)[i] = numbered_byte(number, i);
}

/* Whether these are the bytes from `at` on. */
static inline int numbered_is(const void *bytes, size_t at, size_t len,
                              uint32_t number)
{
    for (size_t i = 0; i < len; i++)
        if (((const uint8_t *)bytes)[i] != numbered_byte(number, at + i))
            return 0;
    return 1;
}

/* ----------------------------------------------------------------- versions */

static const version unknown = { 0 };

static inline int version_same(const version *a, const version *b)
{
    return a->status == b->status && a->cut == b->cut && a->owed == b->owed &&
           a->attempts == b->attempts &&
           a->len == b->len && a->retention == b->retention &&
           a->fingerprint == b->fingerprint && a->number == b->number &&
           a->code == b->code && a->lease_end == b->lease_end &&
           a->from == b->from && a->to == b->to &&
           a->claim.token == b->claim.token;
}

static inline void versions_add(versions *set, const version *v)
{
    for (unsigned i = 0; i < set->count; i++)
        if (version_same(&set->of[i], v)) {
            if (v->late > set->of[i].late)
                set->of[i].late = v->late;
            return;
        }
    set->any |= set->count == VERSIONS;
    if (set->count < VERSIONS)
        set->of[set->count++] = *v;
}

static inline void versions_only(versions *set, const version *v)
{
    set->count = 1;
    set->any = 0;
    set->of[0] = *v;
}

static inline void states_add(states *set, const state *s)
{
    for (unsigned i = 0; i < set->count; i++)
        if (set->of[i].len == s->len && set->of[i].number == s->number)
            return;
    if (set->count == STATES)
        set->any = 1;
    else
        set->of[set->count++] = *s;
}

static inline int version_finished(const version *v)
{
    return v->status > IDEM_IN_PROGRESS;
}

static inline uint32_t model_retention(const model *m)
{
    return m->config->retention_ms ? m->config->retention_ms
                                   : RETENTION_DEFAULT;
}

/* Whether the key is known if this is what was known of it last. */
static inline int version_known(const model *m, const version *v)
{
    int running = v->status == IDEM_IN_PROGRESS && !v->cut;
    uint64_t from = running ? v->lease_end : v->from;
    uint64_t to = running ? v->lease_end : v->to;

    if (!v->status)
        return GONE;
    if (from == FOR_EVER || m->clock < from + v->retention)
        return KNOWN;
    return m->clock < to + v->retention ? MAYBE : GONE;
}

/* Whether it may have been evicted since the table told of it. */
static inline int version_evicted(const model *m, const known *k,
                                  const version *v)
{
    return version_finished(v) && !v->owed && k->told < m->evicted;
}

static inline int version_unknown(const model *m, const known *k,
                                  const version *v)
{
    return version_known(m, v) < KNOWN || version_evicted(m, k, v);
}

/* The most that the table may know of a key, or the least. */
static inline int model_known(const model *m, const known *k, int most)
{
    int result = most ? GONE : KNOWN;

    if (k->now.any)
        return most ? KNOWN : GONE;
    for (unsigned i = 0; i < k->now.count; i++) {
        const version *v = &k->now.of[i];
        int is = version_known(m, v);
        if (!most && version_evicted(m, k, v))
            is = GONE;
        if (most ? is > result : is < result)
            result = is;
    }
    return result;
}

/* Whether it is known for certain, and so is that its delivery is owed. */
static inline int model_owed(const model *m, const known *k)
{
    int owed = model_known(m, k, 0) == KNOWN;

    for (unsigned i = 0; i < k->now.count; i++)
        owed &= version_finished(&k->now.of[i]) && k->now.of[i].owed;
    return owed;
}

/* Whether it may be a key that no eviction ends. */
static inline int model_held(const model *m, const known *k)
{
    for (unsigned i = 0; i < k->now.count; i++) {
        const version *v = &k->now.of[i];
        if (version_known(m, v) && (!version_finished(v) || v->owed))
            return 1;
    }
    return k->now.any;
}

/* ------------------------------------------------------------------- counts */

enum { LEAST, MOST, HELD };

/* How many keys beside this one are known, all or those in its scope. */
static inline unsigned model_others(const model *m, const known *but, int what,
                                    int in_scope)
{
    unsigned count = 0;

    for (unsigned i = 0; i < m->count; i++) {
        const known *k = &m->keys[i];
        if (k == but || (in_scope && k->scope != but->scope))
            continue;
        count += what == HELD    ? model_held(m, k)
                 : what == MOST ? model_known(m, k, 1) > GONE
                                 : model_known(m, k, 0) == KNOWN;
    }
    return count;
}

/* Counting all the keys of a large table takes long: it is not always done. */
static inline int model_counts(const model *m)
{
    return m->calls % (1 + m->count / 100) == 0;
}

/* Whether those that count leave no room for another key. */
static inline int model_no_room(const model *m, const known *k, int what)
{
    return !model_counts(m) ||
           model_others(m, k, what, 0) >= m->config->capacity ||
           (m->config->quota &&
            model_others(m, k, what, 1) >= m->config->quota);
}

/* Whether another key may be refused. */
static inline int model_full(const model *m, const known *k)
{
    return model_no_room(m, k, m->config->full == IDEM_EVICT_OLDEST ? HELD
                                                                    : MOST);
}

/* Whether there was room for another key.  If one has made room, its scope may
   still have more than a quota that was larger in the boot before; and a key
   that cannot be read is in nobody's. */
static inline int model_room(const model *m, const known *k)
{
    return !model_counts(m) ||
           (model_others(m, k, LEAST, 0) < m->config->capacity &&
            (!m->config->quota || m->evicted == m->calls || m->unread ||
             model_others(m, k, LEAST, 1) < m->config->quota));
}

/* ----------------------------------------------------------------- eviction */

/* The one version that is true, if the table has told of it, or NULL. */
static inline version *model_only(known *k)
{
    return k->now.count == 1 && !k->now.any ? &k->now.of[0] : NULL;
}

/* The same, if it is an outcome that may be evicted. */
static inline const version *model_evictable(known *k)
{
    const version *v = model_only(k);

    return v && version_finished(v) && !v->owed ? v : NULL;
}

/* The key is found to be unknown: if its retention goes on, it was evicted. */
static inline void model_missed(model *m, known *k)
{
    const version *v = model_evictable(k);
    gone *g = &m->gone[k->scope];

    if (v && version_known(m, v) == KNOWN && v->from >= g->from) {
        g->from = v->from;
        g->changed = k->changed;
    }
}

/* The table has told of a key; false if a younger one of its scope was evicted
   that it could have been evicted for, all the time. */
static inline int model_told(model *m, known *k)
{
    const version *v = model_evictable(k);
    const gone *g = &m->gone[k->scope];

    k->told = m->calls;
    return !v || v->from >= g->from || k->changed >= g->changed;
}

/* ------------------------------------------------- what calls make of a key */

/* The next sync makes durable what was written of a key. */
static inline void model_unsynced(model *m, known *k)
{
    if (k->is_unsynced)
        return;
    k->is_unsynced = 1;
    k->unsynced = m->unsynced;
    m->unsynced = k;
}

/* This is true now; and written, or not. */
static inline void model_set(model *m, known *k, const version *v, int written)
{
    int exact = written && m->config->durability == IDEM_EACH;

    // What came in its place before may be durable without this.  And the
    // attempt before a volatile one is forgotten with that.
    if (!written || (!exact && model_known(m, k, 0) < KNOWN))
        versions_add(&k->next, &unknown);
    // A volatile claim may be written with what is known of its key before.
    if (!written && v->status)
        versions_add(&k->next, v);
    if (exact) {
        versions_only(&k->next, v);
        k->attempted = 0;
    } else if (written) {
        for (unsigned i = 0; i < k->now.count; i++)
            versions_add(&k->next, &k->now.of[i]);
        versions_add(&k->next, v);
        k->next.any |= k->now.any;
        model_unsynced(m, k);
    }
    versions_only(&k->now, v);
    k->is_volatile = !written;
    k->told = k->set = k->changed = m->calls;
    m->crowded |= k->next.count >= VERSIONS - 2;
}

/* A call was refused or cut short that would have made this true: the next
   opening may find it. */
static inline void model_attempted(model *m, known *k, const version *v)
{
    version tried = *v;

    tried.late = NOW;
    versions_add(&k->next, &tried);
    k->attempted = 1;
    k->changed = m->calls;
    m->crowded |= k->next.count >= VERSIONS - 2;
}

/* The time of what was just written will be found again. */
static inline void model_wrote(model *m)
{
    if (m->config->durability == IDEM_EACH) {
        m->written = m->clock;
        m->wrote = 1;
    } else
        m->unsynced_time = m->clock;
}

static inline unsigned model_attempts(const model *m)
{
    return m->config->max_attempts ? m->config->max_attempts
                                   : ATTEMPTS_DEFAULT;
}

/* The attempts after one more: they are counted up to 255. */
static inline uint8_t version_again(const version *v)
{
    return (uint8_t)(v->attempts + (v->attempts < ATTEMPTS_MOST));
}

static inline uint64_t model_lease_end(const model *m, uint32_t lease_ms)
{
    return lease_ms == IDEM_LEASE_NONE ? FOR_EVER : m->clock + lease_ms;
}

static inline version model_claim(const model *m, const asked *a,
                                  uint8_t attempts)
{
    version v = unknown;

    v.status = IDEM_IN_PROGRESS;
    v.attempts = attempts;
    v.fingerprint = a->fingerprint;
    v.retention = a->retention_ms;
    v.len = a->reserved;
    v.lease_end = model_lease_end(m, a->lease_ms);
    return v;
}

/* ---------------------------------------------------------------- begin */

static inline int version_late(const model *m, const version *v)
{
    return v->cut || m->clock >= v->lease_end;
}

static inline uint32_t version_left(const model *m, const version *v)
{
    if (version_late(m, v))
        return 0;
    return v->lease_end == FOR_EVER ? IDEM_LEASE_NONE
                                    : (uint32_t)(v->lease_end - m->clock);
}

static inline int version_is_reply(const model *m, const version *v,
                                   const idem_reply *reply)
{
    return version_finished(v) && reply->status == v->status &&
           reply->code == v->code && reply->response_len == v->len &&
           reply->age_ms == m->clock - v->from &&
           numbered_is(reply->buffer, 0, v->len, v->number);
}

/* Whether a begin that neither replays nor finds the key unknown may be
   answered so. */
static inline int version_in_progress(const model *m, const version *v,
                                      int result, const idem_claim *claim,
                                      const idem_reply *reply)
{
    int exhausted = v->attempts >= model_attempts(m);

    if (v->status != IDEM_IN_PROGRESS)
        return 0;
    switch (result) {
    case IDEM_BUSY:
        return !version_late(m, v) &&
               reply->retry_after_ms == version_left(m, v);
    case IDEM_RECOVER:
        return version_late(m, v) && !exhausted &&
               claim->attempt == version_again(v);
    case IDEM_EXHAUSTED:
        return version_late(m, v) && exhausted;
    }
    return 0;
}

static inline int version_begin(const model *m, const known *k,
                                const version *v, const asked *a, int result,
                                const idem_claim *claim,
                                const idem_reply *reply)
{
    switch (result) {
    case IDEM_EXECUTE:
    case IDEM_TOO_OLD:
    case IDEM_E_FULL:
        return version_unknown(m, k, v);
    case IDEM_MISMATCH:
        return version_known(m, v) && v->fingerprint != a->fingerprint;
    case IDEM_REPLAY:
        return version_known(m, v) && v->fingerprint == a->fingerprint &&
               version_is_reply(m, v, reply);
    }
    return version_known(m, v) && v->fingerprint == a->fingerprint &&
           version_in_progress(m, v, result, claim, reply);
}

/* Leaves those versions that would have answered a begin so; false if none
   would have. */
static inline int model_begun(model *m, known *k, const asked *a,
                              int result, const idem_claim *claim,
                              const idem_reply *reply)
{
    versions fit = { 0 };

    for (unsigned i = 0; i < k->now.count; i++)
        if (version_begin(m, k, &k->now.of[i], a, result, claim, reply))
            fit.of[fit.count++] = k->now.of[i];
    if (!fit.count)
        return k->now.any;
    fit.any = k->now.any;
    k->now = fit;
    if (result == IDEM_EXECUTE || result == IDEM_E_FULL ||
        result == IDEM_TOO_OLD)
        model_missed(m, k);
    else
        return model_told(m, k);
    return 1;
}

/* A claim was granted; false if it is none that may be. */
static inline int model_granted(model *m, known *k, const asked *a, int result,
                                const idem_claim *claim)
{
    version v = model_claim(m, a, (uint8_t)claim->attempt);

    if (claim->token <= m->token)
        return 0;
    if (result == IDEM_EXECUTE && (claim->attempt != 1 || !model_room(m, k)))
        return 0;
    for (unsigned i = 0; result == IDEM_EXECUTE && i < k->now.count; i++)
        k->came_again |= k->now.of[i].status != 0;
    m->token = claim->token;
    v.claim = *claim;
    model_set(m, k, &v, !m->config->volatile_claims);
    if (!m->config->volatile_claims)
        model_wrote(m);
    return 1;
}

/* An outcome was replayed: this is its name. */
static inline void model_replayed(known *k, const idem_reply *reply)
{
    for (unsigned i = 0; i < k->now.count; i++)
        k->now.of[i].claim = reply->claim;
}

/* A begin has relied on what is known of the key: whatever was in doubt of it
   when the table was opened is so no more.  But what a cut interrupted, and is
   not to be seen, may yet show up at an opening before which nothing was
   written. */
static inline void model_confirmed(const model *m, known *k)
{
    versions was = k->next;
    int done = m->wrote;

    if (m->config->durability == IDEM_BATCH || k->attempted || k->is_volatile)
        return;
    for (unsigned i = 0; i < k->now.count; i++)
        done |= k->now.of[i].late;
    k->next = k->now;
    for (unsigned i = 0; i < was.count && !done; i++)
        if (was.of[i].late)
            versions_add(&k->next, &was.of[i]);
}

/* Whether the sender tells of a time before the opening, and what had been
   evicted or executed by then is not known. */
static inline int model_before(const model *m, const asked *a)
{
    return a->age_ms >= m->clock - m->opened &&
           (m->config->full == IDEM_EVICT_OLDEST || !m->config->storage);
}

/* Whether memory may not reach as far back as the request. */
static inline int model_too_old(const model *m, const asked *a)
{
    return a->age_ms && (a->age_ms >= a->retention_ms || model_before(m, a) ||
                         m->evicted > m->opened_at);
}

/* Whether it may: to after the completions of this scope that are evicted. */
static inline int model_young(const model *m, const known *k, const asked *a)
{
    const gone *g = &m->gone[k->scope];

    return !a->age_ms ||
           (a->age_ms < a->retention_ms && !model_before(m, a) &&
            !(g->changed && a->age_ms >= m->clock - g->from));
}

/* A begin was refused, or cut short: it may have claimed the key. */
static inline void model_begin_attempted(model *m, known *k, const asked *a)
{
    unsigned count = k->now.count;

    if (m->config->volatile_claims)
        return;
    for (unsigned i = 0; i < count; i++) {
        const version *v = &k->now.of[i];
        version claimed = model_claim(m, a, version_again(v));
        if (v->status == IDEM_IN_PROGRESS && version_known(m, v))
            model_attempted(m, k, &claimed);
        claimed.attempts = 1;
        if (version_unknown(m, k, v))
            model_attempted(m, k, &claimed);
    }
    k->next.any |= k->now.any;
}

/* ------------------------------------------------------------- other calls */

/* Whether what looking shows of a key is this; NULL, that it is unknown. */
static inline int version_shown(const model *m, const known *k,
                                const version *v, const idem_entry *e)
{
    uint64_t age = m->clock - v->from;

    if (!e)
        return version_unknown(m, k, v);
    if (!version_known(m, v) || e->status != v->status ||
        e->fingerprint != v->fingerprint || e->attempts != v->attempts ||
        e->response_len != v->len)
        return 0;
    if (!version_finished(v))
        return e->left_ms == version_left(m, v);
    return e->code == v->code && e->undelivered == v->owed &&
           e->age_ms == age &&
           age + e->left_ms == v->retention;
}

/* Leaves those versions that looking may show so; false if there are none. */
static inline int model_shown(model *m, known *k, const idem_entry *e)
{
    versions fit = { 0 };

    for (unsigned i = 0; i < k->now.count; i++)
        if (version_shown(m, k, &k->now.of[i], e))
            fit.of[fit.count++] = k->now.of[i];
    if (!fit.count)
        return k->now.any;
    for (unsigned i = 0; e && i < fit.count; i++)
        if (version_finished(&fit.of[i]))
            fit.of[i].claim = e->claim;
    fit.any = k->now.any;
    k->now = fit;
    if (e)
        return model_told(m, k);
    model_missed(m, k);
    return 1;
}

/* Whether idem_forget may answer so: a live claim is not to be removed. */
static inline int model_forgets(const model *m, const known *k, int result)
{
    for (unsigned i = 0; i < k->now.count; i++) {
        const version *v = &k->now.of[i];
        int live = v->status == IDEM_IN_PROGRESS && !version_late(m, v);
        if (version_known(m, v) && result == (live ? IDEM_BUSY : IDEM_OK))
            return 1;
    }
    return k->now.any;
}

static inline void model_renewed(known *k, uint64_t lease_end)
{
    version *v = &k->now.of[0];

    if (lease_end <= v->lease_end)
        return;
    v->lease_end = lease_end;
    for (unsigned i = 0; i < k->next.count; i++)
        if (k->next.of[i].claim.token == v->claim.token &&
            k->next.of[i].status == IDEM_IN_PROGRESS)
            k->next.of[i].lease_end = lease_end;
}

/* The key is unknown.  A claim that was not written leaves what was before. */
static inline void model_removed(model *m, known *k)
{
    model_set(m, k, &unknown, !k->is_volatile);
    if (!k->is_volatile)
        model_wrote(m);
}

/* Application state was given, and the call answered, or failed. */
static inline void model_state(model *m, const state *s, int done)
{
    if (!done || m->config->durability == IDEM_BATCH) {
        for (unsigned i = 0; i < m->now.count; i++)
            states_add(&m->next, &m->now.of[i]);
        states_add(&m->next, s);
        m->next.any |= m->now.any;
    }
    if (!done)
        return;
    m->now.count = 1;
    m->now.any = 0;
    m->now.of[0] = *s;
    if (m->config->durability == IDEM_EACH)
        m->next = m->now;
}

/* Leaves those states that are these bytes; false if there are none. */
static inline int model_state_shown(model *m, const void *bytes, size_t len)
{
    states fit = { 0 };

    for (unsigned i = 0; i < m->now.count; i++)
        if (m->now.of[i].len == len &&
            numbered_is(bytes, 0, len, m->now.of[i].number))
            states_add(&fit, &m->now.of[i]);
    if (!fit.count)
        return m->now.any;
    m->now = fit;
    return 1;
}

/* What was written of a key is durable. */
static inline void model_key_synced(model *m, known *k)
{
    k->is_unsynced = 0;
    if (k->is_volatile || m->faulty)
        return;
    k->next = k->now;
    if (k->told < m->evicted)
        versions_add(&k->next, &unknown);
}

/* Everything that was written is durable. */
static inline void model_synced(model *m)
{
    m->crowded = 0;
    m->wrote |= m->unsynced_time != 0;
    if (m->unsynced_time > m->written)
        m->written = m->unsynced_time;
    for (; m->unsynced; m->unsynced = m->unsynced->unsynced)
        model_key_synced(m, m->unsynced);
    // What a cut interrupted may yet show up, if nothing was written since.
    if (!m->faulty && m->wrote)
        m->next = m->now;
}

/* ------------------------------------------------------------------ restart */

/* Before a restart: what is over, or was to be evicted, may be gone. */
static inline void model_stops(model *m)
{
    m->was_volatile |= m->config->volatile_claims;
    for (unsigned i = 0; i < m->count; i++) {
        versions *next = &m->keys[i].next;
        int over = model_known(m, &m->keys[i], 0) < KNOWN;
        // A claim that is not written replaces nothing in the storage: what was
        // known of the key in another slot may be there yet.
        next->any |= m->was_volatile && m->keys[i].came_again;
        for (unsigned n = 0; n < next->count; n++)
            over |= version_known(m, &next->of[n]) < KNOWN ||
                    (version_finished(&next->of[n]) && !next->of[n].owed &&
                     m->keys[i].set < m->evicting);
        if (over)
            versions_add(next, &unknown);
    }
}

/* What a restart makes of a version.  When its claim was cut short is written
   with the next record; before, a later restart does it again, perhaps with the
   clock further back: what told the time was torn. */
static inline version version_restarted(const model *m, const version *v)
{
    version is = *v;

    is.claim.token = 0;
    is.late = v->late == NOW || (v->late && !m->wrote) ? BEFORE : 0;
    if (v->status != IDEM_IN_PROGRESS)
        return is;
    if (!v->cut)
        is.from = is.to = m->clock;
    else if (m->clock > v->to)
        is.to = m->clock;
    else if (m->clock < v->from)
        is.from = m->clock;
    is.cut = 1;
    is.lease_end = 0;
    return is;
}

static inline void model_starts(model *m, uint64_t clock)
{
    uint64_t before = m->clock;

    m->crowded = m->faulty = 0;
    m->evicting = 0;
    m->unsynced_time = 0;
    m->unsynced = NULL;
    // What was evicted for a claim that was not written is there again.
    memset(m->gone, 0, sizeof m->gone);
    for (unsigned i = 0; i < m->count; i++) {
        known *k = &m->keys[i];
        k->now.count = 0;
        k->now.any = k->next.any;
        k->is_volatile = k->is_unsynced = k->attempted = 0;
        for (unsigned n = 0; n < k->next.count; n++) {
            int was;
            version is;
            m->clock = before;
            was = version_known(m, &k->next.of[n]);
            m->clock = clock;
            is = version_restarted(m, &k->next.of[n]);
            versions_add(&k->now, &is);
            if (was < KNOWN && version_known(m, &is))
                versions_add(&k->now, &unknown);
        }
        k->next = k->now;
    }
    m->clock = m->opened = clock;
    m->wrote = 0;
    m->opened_at = m->calls;
    m->now = m->next;
}

static inline void model_init(model *m, const idem_config *config, known *keys,
                              unsigned count)
{
    memset(m, 0, sizeof *m);
    m->config = config;
    m->keys = keys;
    m->count = count;
    m->now.count = m->next.count = 1;
    for (unsigned i = 0; i < count; i++) {
        versions_only(&keys[i].now, &unknown);
        versions_only(&keys[i].next, &unknown);
        keys[i].is_volatile = keys[i].is_unsynced = 0;
        keys[i].attempted = keys[i].came_again = 0;
        keys[i].told = keys[i].set = keys[i].changed = 0;
    }
}

#endif /* EXTREMES_MODEL_H */
