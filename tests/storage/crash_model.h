/* SPDX-License-Identifier: 0BSD */
/*
 * What a table with a journal may answer when the power goes at any instant,
 * written from the promises in the manual of idem.h: it knows the calls that
 * were made and what they answered, and nothing of how a journal works.
 *
 * A world is one thing that may be true: what is remembered of each key, and
 * the application's state.  The model is the set of all worlds that are still
 * possible.  A call that a cut interrupts has happened or has not: each world
 * becomes two.  An answer that is relied upon leaves the worlds that would have
 * given it; if none would have, a promise is broken.
 *
 * What is only looked at, or refused, leaves all worlds (S10: it need not be
 * confirmed yet) until this boot has written something.  In batch mode every
 * call since the last sync has happened or has not, each for itself.
 *
 * The record of what a cut interrupted may read as nothing at one opening and
 * as whole at a later one.  If the call has happened, an answer that relies on
 * it ends the worlds in which it has not.  If it seems not to have happened, an
 * answer that writes ends those in which it has; one that writes nothing does
 * not: they are `late`.  (Every replay would have to write otherwise.)
 *
 * Time is known within bounds: `real` is all that has passed, `sure` what the
 * journal has seen for certain.  Retention is not over before it is in the one,
 * and over once it is in the other.
 */
#ifndef CRASH_MODEL_H
#define CRASH_MODEL_H

#include "idem.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { KEYS = 4, CAPACITY = 3, KEY_MAX = 4, STATE_MAX = 4 };
enum { RESPONSE_USUAL = 4, RESPONSE_MAX = 20 };
enum { ATTEMPTS = 3 };
enum { LEASE = 1000, RETENTION = 100000 };

#define WORLDS 1024             // that are possible at the same time
#define PAST   INT64_MIN        // the lease ended with an earlier boot

// What is remembered of a key.
typedef struct known {
    int      status;            // 0: the key is unknown
    int      payload;           // which of two it was begun with
    unsigned attempts;
    uint64_t token;             // current claim; 0: nobody has it
    int64_t  lease_end;         // in progress, real time
    int64_t  from_real;         // when retention began, or begins
    int64_t  from_sure;
    unsigned nth;               // finished: its place in order of completion
    int      owed;
    int32_t  code;
    size_t   len;
    uint8_t  response[RESPONSE_MAX];
} known;

typedef struct world {
    known   keys[KEYS];
    int     late;               // has what was in flight at a cut
    size_t  state_len;
    uint8_t state[STATE_MAX];
} world;

typedef struct worlds {
    unsigned count;
    int      overflow;          // there was no room for one
    world    of[WORLDS];
} worlds;

// A call: what it was, and what came of it.
typedef struct model_call {
    char     what;              // B begin, C complete, R release, N renew,
                                // X forget, D delivered, M maintain, Y sync
    unsigned key;
    int      payload;           // begin
    idem_claim claim;           // begin: granted; others: used
    const idem_reply *reply;    // begin, once it has answered
    known    outcome;           // complete: status, code, response, owed, nth
    int      has_state;         // complete
    size_t   state_len;
    uint8_t  state[STATE_MAX];
} model_call;

// All that looking shows.
typedef struct view {
    known    keys[KEYS];        // status, payload, attempts, code, response
    uint32_t age[KEYS];
    int      unreadable;        // some response did not read
    size_t   owed;              // keys in owing[], oldest completion first
    unsigned owing[KEYS];
    size_t   state_len;
    uint8_t  state[STATE_MAX];
} view;

typedef struct model {
    const idem_config *config;
    int64_t  real, sure;
    int64_t  seen;              // `sure` as the table was told last
    int64_t  written;           // `seen` at the latest record
    int64_t  kept_time;         // the same of the latest durable one
    uint64_t token;             // the largest granted, over all boots
    unsigned completions;
    int      wrote;             // this boot did, durably
    int      unsynced;          // batch mode: there is something to sync
    worlds   late;              // not live in this boot, perhaps in the next
    worlds   live;              // what this boot may be in
    worlds   kept;              // batch mode: what the next may find
} model;

/* ------------------------------------------------------------------ worlds */

/* Equal but for times, which world_add merges. */
static inline int known_same(const known *a, const known *b)
{
    return a->status == b->status && a->payload == b->payload &&
           a->attempts == b->attempts && a->token == b->token &&
           a->lease_end == b->lease_end && a->nth == b->nth &&
           a->owed == b->owed && a->code == b->code && a->len == b->len &&
           !memcmp(a->response, b->response, a->len);
}

static inline int world_same(const world *a, const world *b)
{
    for (unsigned k = 0; k < KEYS; k++)
        if (!known_same(&a->keys[k], &b->keys[k]))
            return 0;
    return a->state_len == b->state_len &&
           !memcmp(a->state, b->state, a->state_len);
}

/* Adds a world that may be there already, with other bounds of time: then the
   wider ones count. */
static inline void world_add(worlds *set, const world *w)
{
    unsigned i = 0;

    while (i < set->count && !world_same(&set->of[i], w))
        i++;
    if (i == WORLDS) {
        set->overflow = 1;
        return;
    }
    if (i == set->count) {
        set->of[set->count++] = *w;
        return;
    }
    set->of[i].late |= w->late;
    for (unsigned k = 0; k < KEYS; k++) {
        known *mine = &set->of[i].keys[k];
        if (w->keys[k].from_real < mine->from_real)
            mine->from_real = w->keys[k].from_real;
        if (w->keys[k].from_sure > mine->from_sure)
            mine->from_sure = w->keys[k].from_sure;
    }
}

/* Copies no more than there is. */
static inline void worlds_copy(worlds *to, const worlds *from)
{
    to->count = from->count;
    to->overflow = from->overflow;
    memmove(to->of, from->of, from->count * sizeof from->of[0]);
}

/* -------------------------------------------------------------------- time */

static inline void model_pass(model *m, int64_t ms)
{
    m->real += ms;
    m->sure += ms;
}

/* The table is told the time. */
static inline void model_tell(model *m)
{
    m->seen = m->sure;
}

static inline int model_maybe_over(const model *m, const known *k)
{
    return m->real - k->from_real >= RETENTION;
}

static inline int model_surely_over(const model *m, const known *k)
{
    return m->sure - k->from_sure >= RETENTION;
}

static inline int model_may_know(const model *m, const known *k)
{
    return k->status && !model_surely_over(m, k);
}

static inline int model_may_not_know(const model *m, const known *k)
{
    return !k->status || model_maybe_over(m, k);
}

/* ----------------------------------------------------------------- answers */

/* Has an outcome that may be evicted, the oldest; or NULL. */
static inline known *world_oldest(world *w)
{
    known *oldest = NULL;

    for (unsigned i = 0; i < KEYS; i++) {
        known *k = &w->keys[i];
        if (!k->status || k->status == IDEM_IN_PROGRESS || k->owed)
            continue;
        if (!oldest || k->nth < oldest->nth)
            oldest = k;
    }
    return oldest;
}

/* How many keys beside this one are known: at most, or at least. */
static inline unsigned world_others(const model *m, const world *w,
                                    const known *but, int at_most)
{
    unsigned count = 0;

    for (unsigned i = 0; i < KEYS; i++) {
        const known *k = &w->keys[i];
        if (k != but)
            count += at_most ? model_may_know(m, k)
                             : !model_may_not_know(m, k);
    }
    return count;
}

/* Makes room for one more key, if the table could; returns 0 if not. */
static inline int world_make_room(const model *m, world *w, const known *k)
{
    known *oldest;

    if (m->config->full != IDEM_EVICT_OLDEST)
        return world_others(m, w, k, 0) < CAPACITY;
    if (world_others(m, w, k, 1) < CAPACITY)
        return 1;
    oldest = world_oldest(w);
    if (!oldest)
        return 0;
    memset(oldest, 0, sizeof *oldest);
    return 1;
}

/* Whether the table may refuse one more key. */
static inline int world_is_full(const model *m, world *w, const known *k)
{
    return world_others(m, w, k, 1) >= CAPACITY &&
           (m->config->full != IDEM_EVICT_OLDEST || !world_oldest(w));
}

static inline void model_lease(const model *m, known *k, int64_t ms)
{
    k->lease_end = m->real + ms;
    k->from_real = m->real + ms;
    k->from_sure = m->sure + ms;
}

static inline int model_grant(const model *m, known *k, const model_call *c)
{
    k->status = IDEM_IN_PROGRESS;
    k->payload = c->payload;
    k->attempts++;
    k->token = c->claim.token;
    model_lease(m, k, LEASE);
    // A call in flight tells nothing.
    return !c->reply || (c->claim.attempt == k->attempts &&
                         c->claim.token > m->token);
}

/* Whether a reply is this outcome. */
static inline int model_is_reply(const model *m, const known *k,
                                 const idem_reply *reply)
{
    return reply->status == k->status && reply->code == k->code &&
           reply->response_len == k->len &&
           !memcmp(reply->buffer, k->response, k->len) &&
           reply->age_ms <= m->real - k->from_real &&
           reply->age_ms >= m->sure - k->from_sure;
}

/* A begin of a key that is known. */
static inline int model_begin_known(const model *m, known *k,
                                    const model_call *c, int result)
{
    int live = m->real < k->lease_end;

    if (k->payload != c->payload)
        return result == IDEM_MISMATCH;
    if (k->status != IDEM_IN_PROGRESS)
        return result == IDEM_REPLAY && model_is_reply(m, k, c->reply);
    if (live)
        return result == IDEM_BUSY &&
               c->reply->retry_after_ms == k->lease_end - m->real;
    if (k->attempts >= ATTEMPTS)
        return result == IDEM_EXHAUSTED;
    return result == IDEM_RECOVER && model_grant(m, k, c);
}

static inline int model_begin(const model *m, world *w, const model_call *c,
                              int result)
{
    known *k = &w->keys[c->key];

    if (result != IDEM_EXECUTE && result != IDEM_E_FULL)
        return model_may_know(m, k) && model_begin_known(m, k, c, result);
    if (!model_may_not_know(m, k))
        return 0;
    if (result == IDEM_E_FULL)
        return world_is_full(m, w, k);
    memset(k, 0, sizeof *k);
    return world_make_room(m, w, k) && model_grant(m, k, c);
}

/* A complete, release or renew: whether its claim is current, and if not, may
   only be fenced. */
static inline int model_use(const model *m, world *w, const model_call *c,
                            int result)
{
    known *k = &w->keys[c->key];
    int current = k->status == IDEM_IN_PROGRESS && k->token &&
                  k->token == c->claim.token;

    if (result == IDEM_E_FENCED)
        return !current || model_maybe_over(m, k);
    if (result != IDEM_OK || !current || !model_may_know(m, k))
        return 0;
    if (c->what == 'R') {
        memset(k, 0, sizeof *k);
    } else if (c->what == 'N') {
        model_lease(m, k, 2 * LEASE);
    } else {
        int payload = k->payload;
        unsigned attempts = k->attempts;
        *k = c->outcome;
        k->payload = payload;
        k->attempts = attempts;
        k->from_real = m->real;
        k->from_sure = m->sure;
    }
    if (c->has_state) {
        w->state_len = c->state_len;
        memcpy(w->state, c->state, c->state_len);
    }
    return 1;
}

static inline int model_forget(const model *m, world *w, const model_call *c,
                               int result)
{
    known *k = &w->keys[c->key];
    int live = k->status == IDEM_IN_PROGRESS && m->real < k->lease_end;

    if (result == IDEM_E_NOT_FOUND)
        return model_may_not_know(m, k);
    if (!model_may_know(m, k))
        return 0;
    if (result == IDEM_BUSY)
        return live;
    memset(k, 0, sizeof *k);
    return result == IDEM_OK && !live;
}

static inline int model_delivered(const model *m, world *w, const model_call *c,
                                  int result)
{
    known *k = &w->keys[c->key];

    if (result != IDEM_OK || !model_may_know(m, k) ||
        k->status == IDEM_IN_PROGRESS)
        return 0;
    k->owed = 0;
    return 1;
}

/* Whether the call may answer so in this world, which becomes what it is
   afterwards. */
static inline int model_answer(const model *m, world *w, const model_call *c,
                               int result)
{
    switch (c->what) {
    case 'B': return model_begin(m, w, c, result);
    case 'X': return model_forget(m, w, c, result);
    case 'D': return model_delivered(m, w, c, result);
    case 'Y': return result == IDEM_OK;
    case 'M': return result == IDEM_OK || result == IDEM_MORE;
    default:  return model_use(m, w, c, result);
    }
}

/* -------------------------------------------------------------- the set */

/* Whether an answer of this call is there after a restart (or, in batch mode,
   may be): it was written. */
static inline int model_writes(const model *m, const model_call *c, int result)
{
    int granted = result == IDEM_EXECUTE || result == IDEM_RECOVER;

    if (c->what == 'B')
        return granted && !m->config->volatile_claims;
    if ((c->what == 'R' || c->what == 'X') && m->config->volatile_claims)
        return 0;
    return result == IDEM_OK && strchr("CRXD", c->what);
}

/* Adds to `to` what becomes of world `from` when what the call changed between
   two others happens in it. */
static inline void world_add_changed(worlds *to, const world *from,
                                     const world *before, const world *after)
{
    world w = *from;

    for (unsigned k = 0; k < KEYS; k++)
        if (!known_same(&before->keys[k], &after->keys[k]))
            w.keys[k] = after->keys[k];
    if (before->state_len != after->state_len ||
        memcmp(before->state, after->state, after->state_len)) {
        w.state_len = after->state_len;
        memcpy(w.state, after->state, sizeof w.state);
    }
    world_add(to, &w);
}

/* Batch mode: whatever the next boot might have found, it may now also find
   with this call in it. */
static inline void model_keep(model *m, const model_call *c, int result)
{
    unsigned kept = m->kept.count;

    for (unsigned i = 0; i < m->live.count; i++) {
        world after = m->live.of[i];
        if (!model_answer(m, &after, c, result))
            continue;
        for (unsigned j = 0; j < kept; j++)
            world_add_changed(&m->kept, &m->kept.of[j], &m->live.of[i],
                              &after);
    }
}

/* Whether the call may answer so. */
static inline int model_could(const model *m, const model_call *c, int result)
{
    int could = 0;

    for (unsigned i = 0; i < m->live.count && !could; i++) {
        world w = m->live.of[i];
        could = model_answer(m, &w, c, result);
    }
    return could;
}

/* The call has answered: leaves the worlds in which it could.  Returns 0, and
   leaves all, if there is none. */
static inline int model_step(model *m, const model_call *c, int result)
{
    int writes = model_writes(m, c, result);
    int batch = m->config->durability == IDEM_BATCH;
    unsigned count = m->live.count;

    if (!model_could(m, c, result))
        return 0;
    // Nobody relies upon a refusal.
    if (result < 0 && !m->wrote)
        return 1;
    if (batch && writes)
        model_keep(m, c, result);
    // What is added never overtakes what is still to be asked.
    m->live.count = 0;
    for (unsigned i = 0; i < count; i++) {
        world w = m->live.of[i];
        if (model_answer(m, &w, c, result))
            world_add(&m->live, &w);
        else if (w.late)
            world_add(&m->late, &m->live.of[i]);
    }
    if (c->claim.token > m->token)
        m->token = c->claim.token;
    if (writes) {
        m->written = m->seen;
        m->unsynced = 1;
    }
    if (m->unsynced && (!batch || c->what == 'Y')) {
        if (batch)
            worlds_copy(&m->kept, &m->live);
        m->wrote = 1;
        m->kept_time = m->written;
        m->unsynced = 0;
    }
    return 1;
}

/* Something was written since the restart: what a cut interrupted before has
   happened or never will. */
static inline void model_settle(model *m)
{
    m->late.count = 0;
    for (unsigned i = 0; i < m->live.count; i++)
        m->live.of[i].late = 0;
}

/* ------------------------------------------------------------ looking, cuts */

/* Whether a key looks so in this world. */
static inline int model_shows_key(const model *m, const known *k,
                                  const known *seen, uint32_t age,
                                  int unreadable)
{
    if (!seen->status)
        return model_may_not_know(m, k);
    if (!model_may_know(m, k) || seen->status != k->status ||
        seen->payload != k->payload || seen->attempts != k->attempts)
        return 0;
    if (seen->status == IDEM_IN_PROGRESS)
        return 1;
    return seen->code == k->code && seen->owed == k->owed &&
           seen->len == k->len &&
           (unreadable || !memcmp(seen->response, k->response, k->len)) &&
           age <= m->real - k->from_real && age >= m->sure - k->from_sure;
}

/* Whether the world looks so. */
static inline int model_shows(const model *m, const world *w, const view *v)
{
    for (unsigned k = 0; k < KEYS; k++)
        if (!model_shows_key(m, &w->keys[k], &v->keys[k], v->age[k],
                             v->unreadable))
            return 0;
    for (size_t i = 1; i < v->owed; i++)
        if (w->keys[v->owing[i - 1]].nth > w->keys[v->owing[i]].nth)
            return 0;
    return v->state_len == w->state_len &&
           !memcmp(v->state, w->state, w->state_len);
}

/* The table looks so.  Returns 0 if it cannot. */
static inline int model_look(model *m, const view *v)
{
    unsigned fit = 0;

    for (unsigned i = 0; i < m->live.count; i++) {
        if (!model_shows(m, &m->live.of[i], v))
            continue;
        if (m->wrote)
            m->live.of[fit] = m->live.of[i];
        fit++;
    }
    if (m->wrote && fit)
        m->live.count = fit;
    return fit > 0;
}

/* What a restart makes of a world. */
static inline void world_restart(const model *m, world *w)
{
    for (unsigned i = 0; i < KEYS; i++) {
        known *k = &w->keys[i];
        k->token = 0;
        if (k->status != IDEM_IN_PROGRESS || k->lease_end == PAST)
            continue;
        if (m->config->volatile_claims) {
            memset(k, 0, sizeof *k);
            continue;
        }
        // The journal need not know of renewals, nor when the power went.
        if (k->lease_end > m->real)
            k->from_real = m->real;
        k->from_sure = m->sure;
        k->lease_end = PAST;
    }
}

/* The worlds in which a call in flight has happened, beside those in which it
   has not. */
static inline void model_in_flight(worlds *to, const model *from,
                                   const model_call *c)
{
    static const int changes[] = { IDEM_OK, IDEM_EXECUTE, IDEM_RECOVER };
    int batch = from->config->durability == IDEM_BATCH;
    unsigned kept = to->count;

    for (unsigned i = 0; i < from->live.count; i++)
        for (unsigned a = 0; a < sizeof changes / sizeof changes[0]; a++) {
            world after = from->live.of[i];
            if (!model_answer(from, &after, c, changes[a]))
                continue;
            after.late = 1;
            if (!batch)
                world_add(to, &after);
            for (unsigned j = 0; batch && j < kept; j++)
                world_add_changed(to, &to->of[j], &from->live.of[i], &after);
        }
}

/* Makes `to` what is known after a restart of `from`, which was in the middle
   of a call, or of none (NULL); the two may be one. */
static inline void model_restart(model *to, const model *from,
                                 const model_call *c)
{
    int batch = from->config->durability == IDEM_BATCH;

    to->config = from->config;
    to->real = from->real;
    to->sure = to->seen = to->written = from->kept_time;
    to->kept_time = from->kept_time;
    to->token = from->token;
    to->completions = from->completions;
    to->wrote = 0;
    to->unsynced = 0;
    worlds_copy(&to->kept, batch ? &from->kept : &from->live);
    for (unsigned i = 0; i < from->late.count; i++)
        world_add(&to->kept, &from->late.of[i]);
    if (c)
        model_in_flight(&to->kept, from, c);
    to->live.count = to->late.count = 0;
    for (unsigned i = 0; i < to->kept.count; i++) {
        world_restart(to, &to->kept.of[i]);
        world_add(&to->live, &to->kept.of[i]);
    }
    to->live.overflow |= to->kept.overflow;
    worlds_copy(&to->kept, &to->live);
}

/* Nothing is remembered yet. */
static inline void model_init(model *m, const idem_config *config)
{
    memset(m, 0, offsetof(model, late));
    m->config = config;
    m->late.count = m->late.overflow = 0;
    m->live.count = m->kept.count = 1;
    m->live.overflow = m->kept.overflow = 0;
    memset(m->live.of, 0, sizeof m->live.of[0]);
    memset(m->kept.of, 0, sizeof m->kept.of[0]);
}

#endif /* CRASH_MODEL_H */
