/* SPDX-License-Identifier: 0BSD */
/*
 * What a table may answer, written from the promises in the manual of idem.h:
 * it knows the calls that were made and what they answered, and nothing of
 * slots, sectors and records.  All tests that go through calls, restarts, power
 * cuts and failures are judged by it; device.h makes the calls.
 *
 * Of each key there is a set of versions that may be true now, and a set of
 * those that the next opening may find.  A call that failed, or that a cut
 * interrupted, has happened for the next opening, or not.  Whatever is answered
 * must fit a version that may be true; the others are not, as long as this boot
 * lasts (S10).  Once this boot has written durably, what is true now is all
 * that the next opening may find.  Without faults each set has one version, and
 * the answer is known exactly.
 *
 * A write that a cut interrupted may be invisible at one opening and appear at
 * a later one, if nothing was written and no begin answered in between: that
 * version is `late`.
 *
 * In batch mode each call since the last sync has happened or not, for itself.
 * But state and outcome of one completion come together.
 *
 * IDEM_RECOVER is certain: an attempt was interrupted, and no outcome recorded.
 * Without a loss IDEM_UNCERTAIN is never answered; after one device.h holds each
 * claim against the retention for which it must be reported.
 *
 * Eviction has an upper bound: a finished key that was not seen since a call
 * that evicted may be gone, unless it is younger than a key of its scope that
 * is still there.  In a small table without storage it is exact.
 *
 * With fewer entries than senders, and without eviction, a new sender may be
 * refused because it gets none; nothing else changes.
 */
#ifndef MODEL_H
#define MODEL_H

#include "idem.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifndef VERSIONS
#define VERSIONS 24             // in a set
#endif

enum { SCOPES = 20 };
enum { LEASE_DEFAULT = 30000, RETENTION_DEFAULT = 86400000 };
enum { ATTEMPTS_DEFAULT = 3, ATTEMPTS_MOST = 255 };
enum { EXACT_KEYS = 1000 };     // up to this many, each can be looked at

#define FOR_EVER UINT64_MAX
#define TICK_JITTER UINT32_C(0xFE00)        // a step back that is waited out
#define TICK_HALF   UINT32_C(0x80000000)    // the least that counts as one

// True if a key is known.
enum { GONE, MAYBE, KNOWN };

enum { IN_BOOT = 1, FOR_GOOD };

// In which boot the call of a late version was.
enum { BEFORE = 1, NOW };

typedef struct version {
    uint8_t  status;            // 0: the key is unknown
    uint8_t  cut;               // in progress: a restart cut it short
    uint8_t  undelivered;
    uint8_t  late;
    uint8_t  attempts;
    uint16_t len;               // of the response; in progress, reserved; of
                                // an interrupted claim, for nothing
    uint32_t retention;         // that was asked for
    uint64_t fingerprint;
    uint32_t number;            // of the completion; gives the response's bytes
    int32_t  code;
    uint64_t lease_end;         // in progress
    uint64_t from, to;          // finished or cut: retention began not before,
                                // and not after
    idem_claim claim;           // token 0: not known in this boot
    uint32_t call;              // that made it
    unsigned key;               // of state: with which it came
} version;

typedef struct versions {
    uint8_t  count;
    uint8_t  any;               // there were too many: all may be true
    version  of[VERSIONS];
} versions;

typedef struct known {
    versions now, next;
    uint64_t number;            // that is the key, epoch and sequence; 0: none
    uint8_t  claimed;           // granted, or may be, and not given back since
    uint8_t  left;              // expired, or evicted: may have been a floor
    uint8_t  executed;          // granted or refused for certain: the number
                                // must not be granted, IN_BOOT or FOR_GOOD
    uint16_t scope;
    uint64_t refused;           // when the number was, in this boot; 0: was not
    uint8_t  is_old;            // .. in an earlier one: it is so for good
    uint32_t unsynced;          // the next that was written since the last
                                // sync, plus one; or itself
    uint32_t shown;             // the latest call that answered with it
    uint32_t set;               // by which call it became what it is
    uint32_t changed;           // the latest that set it, or tried to
    uint32_t attempted;         // the latest that failed and may be done
} known;

// A key that was evicted in this boot, the one that was completed last.
typedef struct gone {
    uint64_t from;              // when it was completed
    uint32_t changed;           // by which call; 0: there is none
} gone;

typedef struct model {
    const idem_config *config;
    known   *keys;
    unsigned count;             // of keys
    int      few_entries;       // for senders
    int      faulty;            // callbacks have failed in this boot
    int      unread;            // a callback failed in this call
    int      wrote;             // this boot did, durably
    uint32_t wrote_at;          // .. the latest call that did
    uint64_t clock;             // logical time
    uint64_t stands;            // .. and where it stands, if a journal has it
    uint32_t tick;              // of the last call
    uint64_t behind;            // ms by which it is below where it was once
    int settled;                // a call has followed that step back
    uint32_t backwards;
    uint64_t opened;            // clock at the latest opening
    uint32_t opened_at;         // which call came before that
    uint64_t evicted_until[SCOPES]; // exact: the newest completion evicted
    uint32_t epoch[SCOPES];     // the newest with a granted claim
    uint32_t epoch_most[SCOPES];    // .. or may have been
    uint8_t  forgetting[SCOPES];    // a call to forget it failed in this boot,
                                    // and may be found done by the next
    uint64_t written;           // time of the latest record that is durable
    uint64_t unsynced_time;     // .. that is from the next sync on
    uint32_t unsynced;          // a key that was written since the last one,
                                // plus one
    uint64_t token;             // the largest that was granted
    uint32_t calls;
    uint32_t evicted;           // the latest call that may have evicted
    uint32_t evicting;          // .. that failed in this boot: the next opening
                                // may find that it has evicted
    int      nearly_full;       // a set is nearly full: only a sync helps
    versions now, next;         // application state: length, number, call, key
    uint32_t state_attempted;   // the latest call that failed and may be done
    int      state_unsynced;    // one was written since the last sync
    gone     gone[SCOPES];      // by scope
} model;

// A call: what is asked, defaults filled in, and what came of it.
typedef struct asked {
    char     what;              // B begin, C complete, R release, N renew,
                                // X forget, D delivered, Y sync, M maintain,
                                // K a handler keeps its claim
    unsigned key;
    uint64_t fingerprint;       // B
    uint32_t lease_ms;          // B, N
    uint32_t retention_ms, age_ms;          // B
    uint16_t reserved;          // B
    version  outcome;           // C: status, len, number, code, undelivered
    int      has_state;         // C
    version  state;
    idem_claim claim;           // C, R, N, D, K: used; B: granted
    const idem_reply *reply;    // B, K
    const void *buffer;         // B: where a response is copied, or NULL
    size_t   buffer_size;       // B
    uint32_t evicted;           // B: keys
} asked;

/* -------------------------------------------------------------------- bytes */

// A response that a test has made itself, and the number that it goes by.
static struct { uint32_t number; uint8_t bytes[256]; } numbered_own;

/* The byte at `at` of the response, or state, with this number. */
static inline uint8_t numbered_byte(uint32_t number, size_t at)
{
    if (number && number == numbered_own.number)
        return numbered_own.bytes[at % sizeof numbered_own.bytes];
    return (uint8_t)((number * UINT32_C(2654435761) >> 8 * (at & 3)) ^ at * 7);
}

static inline void numbered_fill(void *bytes, size_t len, uint32_t number)
{
    for (size_t i = 0; i < len; i++)
        ((uint8_t *)bytes)[i] = numbered_byte(number, i);
}

/* True if these are the bytes from `at` on. */
static inline int numbered_is(const void *bytes, size_t at, size_t len,
                              uint32_t number)
{
    for (size_t i = 0; i < len; i++)
        if (((const uint8_t *)bytes)[i] != numbered_byte(number, at + i))
            return 0;
    return 1;
}

/* --------------------------------------------------------------------- time */

/* Logical time goes on; it stops where a journal has recorded none for longer
   than anything is remembered. */
static inline void model_advance(model *m, uint32_t ms)
{
    m->clock += ms;
    if (m->stands && m->clock > m->stands)
        m->clock = m->stands;
}

/* The start of every call that has the time: a step back of up to 65.0 s is
   waited out, a longer one followed, without counting the way up again. */
static inline void model_tick(model *m, uint32_t now)
{
    uint32_t ahead = now - m->tick, back = m->tick - now;
    uint32_t behind = (uint32_t)m->behind;

    if (ahead >= TICK_HALF) {
        m->backwards++;
        if (back > TICK_JITTER) {
            m->tick = now;
            m->behind = back + (m->settled ? 0 : m->behind);
        }
        m->settled = back <= TICK_JITTER;
        return;
    }
    m->tick = now;
    if (ahead < behind && ahead >= behind - ahead) {
        m->tick += behind - ahead;
        m->behind = 0;
        return;
    }
    m->settled |= ahead > 0 && ahead < behind;
    model_advance(m, ahead >= behind ? ahead - behind : ahead);
    m->behind = ahead >= behind ? 0 : m->behind - ahead;
}

static inline uint32_t model_retention(const model *m)
{
    return m->config->retention_ms ? m->config->retention_ms
                                   : RETENTION_DEFAULT;
}

static inline unsigned model_attempts(const model *m)
{
    return m->config->max_attempts ? m->config->max_attempts
                                   : ATTEMPTS_DEFAULT;
}

static inline uint64_t model_lease_end(const model *m, uint32_t lease_ms)
{
    return lease_ms == IDEM_LEASE_NONE ? FOR_EVER : m->clock + lease_ms;
}

/* ----------------------------------------------------------------- versions */

static const version unknown = { 0 };

static inline int version_same(const version *a, const version *b)
{
    return a->status == b->status && a->cut == b->cut &&
           a->undelivered == b->undelivered &&
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
            if (v->call > set->of[i].call)
                set->of[i].call = v->call;
            return;
        }
    set->any |= set->count == VERSIONS;
    if (set->count < VERSIONS)
        set->of[set->count++] = *v;
}

static inline void versions_merge(versions *to, const versions *from)
{
    to->any |= from->any;
    for (unsigned i = 0; i < from->count; i++)
        versions_add(to, &from->of[i]);
}

/* Empties a set.  (Zeroing it whole would take long.) */
static inline void versions_clear(versions *set)
{
    set->count = set->any = 0;
}

static inline void versions_only(versions *set, const version *v)
{
    set->count = 1;
    set->any = 0;
    set->of[0] = *v;
}

/* No more than there is: most of a set is empty. */
static inline void versions_copy(versions *to, const versions *from)
{
    to->count = from->count;
    to->any = from->any;
    memcpy(to->of, from->of, from->count * sizeof from->of[0]);
}

static inline int version_finished(const version *v)
{
    return v->status > IDEM_IN_PROGRESS;
}

/* True if the key is a number of an older epoch than its sender's: for
   certain, or it may be (MAYBE). */
static inline int model_past(const model *m, const known *k)
{
    uint32_t epoch = (uint32_t)(k->number >> 32);

    return !k->number                        ? GONE
           : epoch < m->epoch[k->scope]      ? KNOWN
           : epoch < m->epoch_most[k->scope] ? MAYBE : GONE;
}

/* True if the key is known if this is what was known of it last.  What is not
   finished expires with its epoch, but may lie about. */
static inline int version_known(const model *m, const known *k,
                                const version *v)
{
    int running = v->status == IDEM_IN_PROGRESS && !v->cut;
    int past = version_finished(v) ? GONE : model_past(m, k);
    uint64_t from = running ? v->lease_end : v->from;
    uint64_t to = running ? v->lease_end : v->to;

    if (!v->status)
        return GONE;
    if (from == FOR_EVER || m->clock < from + v->retention)
        return past ? MAYBE : KNOWN;
    return m->clock < to + v->retention ? MAYBE : GONE;
}

/* True if it takes no room although it may lie about: it expired when its
   sender began an epoch, and makes room for the next key. */
static inline int version_fenced(const model *m, const known *k,
                                 const version *v)
{
    return !version_finished(v) && model_past(m, k) == KNOWN;
}

/* True if it may have been evicted since the table last showed it. */
static inline int version_evicted(const model *m, const known *k,
                                  const version *v)
{
    return version_finished(v) && !v->undelivered && k->shown < m->evicted;
}

static inline int version_unknown(const model *m, const known *k,
                                  const version *v)
{
    return version_known(m, k, v) < KNOWN || version_evicted(m, k, v);
}

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

/* Time that was lost in a batch makes what was in it younger. */
static inline int version_has_age(const model *m, const version *v,
                                  uint32_t age)
{
    uint64_t from = v->from < m->clock ? v->from : m->clock;
    uint64_t to = v->to < m->clock ? v->to : m->clock;

    return age <= m->clock - from && age >= m->clock - to;
}

static inline void version_aged(const model *m, version *v, uint32_t age)
{
    v->from = v->to = m->clock - age;
}

/* The attempts after one more: they are counted up to 255. */
static inline uint8_t version_again(const version *v)
{
    return (uint8_t)(v->attempts + (v->attempts < ATTEMPTS_MOST));
}

/* ----------------------------------------------------------------- counting */

/* The most that the table may know of a key, or the least. */
static inline int model_known(const model *m, const known *k, int most)
{
    int result = most ? GONE : KNOWN;

    if (k->now.any)
        return most ? KNOWN : GONE;
    for (unsigned i = 0; i < k->now.count; i++) {
        const version *v = &k->now.of[i];
        int is = version_known(m, k, v);
        if (!most && version_evicted(m, k, v))
            is = GONE;
        if (most ? is > result : is < result)
            result = is;
    }
    return result;
}

/* True if the key may take room. */
static inline int model_takes_room(const model *m, const known *k)
{
    int takes = k->now.any;

    for (unsigned i = 0; i < k->now.count; i++)
        takes |= version_known(m, k, &k->now.of[i]) > GONE &&
                 !version_fenced(m, k, &k->now.of[i]);
    return takes;
}

/* True if another number of its sender may be known. */
static inline int model_has_other_number(const model *m, const known *than)
{
    for (unsigned i = 0; i < m->count; i++) {
        const known *k = &m->keys[i];
        if (k != than && k->scope == than->scope && k->number &&
            model_known(m, k, 1) > GONE)
            return 1;
    }
    return 0;
}

/* True if it is known for certain that it is there and undelivered. */
static inline int model_undelivered(const model *m, const known *k)
{
    int undelivered = model_known(m, k, 0) == KNOWN;

    for (unsigned i = 0; i < k->now.count; i++)
        undelivered &= version_finished(&k->now.of[i]) &&
                       k->now.of[i].undelivered;
    return undelivered;
}

/* True if it may be a key that no eviction ends. */
static inline int model_held(const model *m, const known *k)
{
    for (unsigned i = 0; i < k->now.count; i++) {
        const version *v = &k->now.of[i];
        if (version_known(m, k, v) && (!version_finished(v) || v->undelivered))
            return 1;
    }
    return k->now.any;
}

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
        count += what == HELD ? (unsigned)model_held(m, k)
                              : what == MOST ? (unsigned)model_takes_room(m, k)
                                             : model_known(m, k, 0) == KNOWN;
    }
    return count;
}

/* Counting all the keys of a large table takes long: it is not always done. */
static inline int model_counts(const model *m)
{
    return m->calls % (1 + m->count / 100) == 0;
}

/* True if those that count leave no room for another key. */
static inline int model_no_room(const model *m, const known *k, int what)
{
    return model_others(m, k, what, 0) >= m->config->capacity ||
           (m->config->quota &&
            model_others(m, k, what, 1) >= m->config->quota);
}

/* True if what is known of a sender's numbers stays: no other takes its entry
   over. */
static inline int model_keeps_numbers(const model *m)
{
    return !m->few_entries || m->config->full == IDEM_REJECT;
}

/* True if other senders may have all entries: those with keys, and those with
   numbers that are known to be old; of these with eviction only the newest
   record's. */
static inline int model_no_entry(const model *m, const known *k)
{
    unsigned with_keys = 0, with_floor = 0;

    for (unsigned scope = 0; m->few_entries && scope < SCOPES; scope++) {
        int has_key = 0, has_floor = m->epoch_most[scope] > 0;
        for (unsigned i = 0; i < m->count; i++) {
            const known *of = &m->keys[i];
            if (of->scope != scope)
                continue;
            has_key |= model_known(m, of, 1) > GONE;
            has_floor |= of->number && (of->claimed || of->left);
        }
        with_keys += has_key && scope != k->scope;
        with_floor += !has_key && has_floor && scope != k->scope;
    }
    if (!model_keeps_numbers(m) && with_floor > 1)
        with_floor = 1;
    return m->few_entries && with_keys + with_floor >= m->config->senders;
}

/* True if another key may be refused. */
static inline int model_full(const model *m, const known *k)
{
    return !model_counts(m) || model_no_entry(m, k) ||
           model_no_room(m, k, m->config->full == IDEM_EVICT_OLDEST ? HELD
                                                                    : MOST);
}

/* True if there was room for another key.  If one has made room, its scope may
   still have more than a quota that was larger in the boot before; a key
   that cannot be read is in nobody's, and one that was read when others had all
   entries is not counted. */
static inline int model_room(const model *m, const known *k)
{
    return !model_counts(m) ||
           (model_others(m, k, LEAST, 0) < m->config->capacity &&
            (!m->config->quota || m->evicted == m->calls || m->unread ||
             (m->few_entries && m->opened_at) ||
             model_others(m, k, LEAST, 1) < m->config->quota));
}

/* ----------------------------------------------------------------- eviction */

/* The one version that is true, if the table has shown it, or NULL. */
static inline version *model_only(known *k)
{
    return k->now.count == 1 && !k->now.any ? &k->now.of[0] : NULL;
}

/* The same, if it is an outcome that may be evicted. */
static inline version *model_evictable(known *k)
{
    version *v = model_only(k);

    return v && version_finished(v) && !v->undelivered ? v : NULL;
}

/* True if everything is known exactly. */
static inline int model_exact(const model *m)
{
    return !m->config->storage && m->count <= EXACT_KEYS && !m->few_entries;
}

/* The key is found to be unknown: if its retention goes on, it was evicted. */
static inline void model_missed(model *m, known *k)
{
    const version *v = model_evictable(k);
    gone *g = &m->gone[k->scope];

    k->left |= k->claimed;
    if (v && version_known(m, k, v) == KNOWN && v->from >= g->from) {
        g->from = v->from;
        g->changed = k->set;
    }
}

/* The table has shown a key; false if a younger one of its scope was evicted
   that it could have been evicted for, all the time.  One that was read when
   others had all entries is not counted, and no quota evicts it. */
static inline int model_showed(model *m, known *k)
{
    const version *v = model_evictable(k);
    const gone *g = &m->gone[k->scope];

    k->shown = m->calls;
    return !v || v->from >= g->from || k->changed >= g->changed ||
           (m->config->quota && m->few_entries && m->opened_at);
}

/* True if an outcome goes before another: of one millisecond the one that was
   completed first; of a scope at its quota, that could go first. */
static inline int version_goes_first(const version *a, const version *b,
                                     int over)
{
    return over && a->from == b->from ? a->call < b->call
                                      : a->number < b->number;
}

/* The oldest completion makes room: of the scope if that has its quota. */
static inline int model_evicts_exactly(model *m, known *but)
{
    int over = m->config->quota &&
               model_others(m, but, MOST, 1) >= m->config->quota;
    known *oldest = NULL;

    for (unsigned i = 0; i < m->count; i++) {
        known *k = &m->keys[i];
        const version *v = model_evictable(k);
        if (k == but || !v || !version_known(m, k, v) ||
            (over && k->scope != but->scope))
            continue;
        if (!oldest || version_goes_first(v, &oldest->now.of[0], over))
            oldest = k;
    }
    if (!oldest)
        return 0;
    for (unsigned i = 0; i < SCOPES; i++)
        if ((!m->config->senders || i == oldest->scope) &&
            oldest->now.of[0].from > m->evicted_until[i])
            m->evicted_until[i] = oldest->now.of[0].from;
    versions_only(&oldest->now, &unknown);
    return 1;
}

/* A begin has evicted keys to grant a claim on this one; false if it may not.
   Nothing else evicts. */
static inline int model_evicts(model *m, known *k, const asked *a, int result)
{
    if (a->evicted != 1 || m->config->full != IDEM_EVICT_OLDEST ||
        result != IDEM_EXECUTE ||
        (model_counts(m) && !model_no_room(m, k, MOST)))
        return 0;
    if (model_exact(m))
        return model_evicts_exactly(m, k);
    m->evicted = m->calls;
    return 1;
}

/* True if the request's age is before the opening, and what had been
   evicted or executed by then is not known. */
static inline int model_before(const model *m, const asked *a)
{
    return a->age_ms >= m->clock - m->opened &&
           (m->config->full == IDEM_EVICT_OLDEST || !m->config->storage);
}

/* True if the number of a key may be at or below its sender's floor: a key of
   an epoch that came later, or with a larger number, was claimed. */
static inline int model_passed(const model *m, const known *k)
{
    int passed = model_past(m, k);

    for (unsigned i = 0; k->number && i < m->count; i++)
        passed |= m->keys[i].scope == k->scope &&
                  (m->keys[i].claimed || m->keys[i].left) &&
                  m->keys[i].number >= k->number;
    return passed;
}

/* True if the key's outcome may have been evicted since the request. */
static inline int model_too_old(const model *m, const known *k, const asked *a)
{
    return model_passed(m, k) ||
           (a->age_ms &&
            (a->age_ms >= a->retention_ms || model_before(m, a) ||
             (model_exact(m)
                  ? a->age_ms >= m->clock - m->evicted_until[k->scope]
                  : m->evicted > m->opened_at)));
}

/* True if it may: to after the completions of this scope that are evicted; a
   number that was executed is so never again. */
static inline int model_young(const model *m, const known *k, const asked *a)
{
    const gone *g = &m->gone[k->scope];

    if (k->number && (k->executed || model_past(m, k) == KNOWN))
        return 0;
    if (!a->age_ms)
        return 1;
    if (model_exact(m))
        return a->age_ms < a->retention_ms && !model_before(m, a) &&
               a->age_ms < m->clock - m->evicted_until[k->scope];
    return a->age_ms < a->retention_ms && !model_before(m, a) &&
           !(g->changed && a->age_ms >= m->clock - g->from);
}

/* The time since the newest evicted completion, in an exact model. */
static inline uint32_t model_horizon(const model *m)
{
    uint64_t age = m->clock - m->evicted_until[0];

    for (unsigned i = 1; i < SCOPES; i++)
        if (m->clock - m->evicted_until[i] < age)
            age = m->clock - m->evicted_until[i];
    return age < model_retention(m) ? (uint32_t)age : model_retention(m);
}

/* The longest wait that a sender who finds no room may be answered.  With
   eviction any claim that is completed makes room: nobody knows when. */
static inline uint64_t model_wait(const model *m, const known *but)
{
    if (m->config->full == IDEM_EVICT_OLDEST)
        return 0;
    int over = m->config->quota &&
               model_others(m, but, MOST, 1) >= m->config->quota;
    uint64_t wait = UINT32_MAX;

    for (unsigned i = 0; i < m->count; i++) {
        const known *k = &m->keys[i];
        const version *v = &k->now.of[0];
        uint64_t end = v->status == IDEM_IN_PROGRESS ? v->lease_end : v->from;
        if (!version_known(m, k, v) || version_fenced(m, k, v) ||
            end == FOR_EVER || (over && k->scope != but->scope))
            continue;
        if (end + v->retention - m->clock < wait)
            wait = end + v->retention - m->clock;
    }
    return wait;
}

/* ---------------------------------------------------- state beside outcomes */

/* True if the state may be there, with what is known of the key that it came
   with: no version is that old. */
static inline int state_stays(const versions *set, const version *s,
                              const known *k, unsigned key)
{
    int after = 0, with = 1;

    for (unsigned i = 0; i < k->now.count; i++) {
        after |= k->now.of[i].call >= s->call;
        with = k->now.of[i].number ? k->now.of[i].call : 0;
    }
    if (s->number && s->key == key)
        return after;
    // If that completion is there, nothing older is; that its key is not, shows
    // nothing.
    for (unsigned i = 0; k->now.count == 1 && i < set->count; i++)
        if (set->of[i].key == key && set->of[i].number &&
            set->of[i].call == (uint32_t)with && s->call < (uint32_t)with)
            return 0;
    return 1;
}

/* State and outcome of one completion come together. */
static inline void model_link(model *m, const known *k)
{
    versions fit;
    unsigned key = (unsigned)(k - m->keys);

    versions_clear(&fit);
    if (m->now.count < 2 || m->now.any || k->now.any)
        return;
    for (unsigned i = 0; i < m->now.count; i++)
        if (state_stays(&m->now, &m->now.of[i], k, key))
            fit.of[fit.count++] = m->now.of[i];
    versions_copy(&m->now, &fit);
}

/* A state was recorded after another one of the same batch: that one, of which
   it is made, is durable with its outcome. */
static inline void model_state_before(model *m)
{
    const version *s = &m->now.of[0];
    known *k = &m->keys[s->key];
    versions later;

    versions_clear(&later);
    if (!m->state_unsynced || m->now.count != 1 || m->now.any || m->faulty ||
        !s->number || k->next.any)
        return;
    for (unsigned i = 0; i < k->next.count; i++)
        if (k->next.of[i].call >= s->call)
            versions_add(&later, &k->next.of[i]);
    if (later.count)
        versions_copy(&k->next, &later);
    versions_copy(&m->next, &m->now);
}

/* State was given, and the call answered, or failed. */
static inline void model_state(model *m, const version *s, int done)
{
    if (done && m->config->durability == IDEM_BATCH) {
        model_state_before(m);
        m->state_unsynced = 1;
    }
    if (!done)
        m->state_attempted = m->calls;
    if (!done || m->config->durability == IDEM_BATCH) {
        versions_merge(&m->next, &m->now);
        versions_add(&m->next, s);
        m->nearly_full |= m->next.count >= VERSIONS - 2;
    }
    if (!done)
        return;
    versions_only(&m->now, s);
    if (m->config->durability == IDEM_EACH)
        versions_only(&m->next, s);
}

/* Leaves those states that are these bytes; false if there are none. */
static inline int model_state_shown(model *m, const void *bytes, size_t len)
{
    versions fit;

    versions_clear(&fit);
    for (unsigned i = 0; i < m->now.count; i++)
        if (m->now.of[i].len == len &&
            numbered_is(bytes, 0, len, m->now.of[i].number))
            versions_add(&fit, &m->now.of[i]);
    if (!fit.count)
        return m->now.any;
    versions_copy(&m->now, &fit);
    return 1;
}

/* ------------------------------------------------- what calls make of a key */

/* What is true now is all that will be found; but that a number has left is
   forgotten with its sender's entry: then its claim may be found again. */
static inline void model_settled(const model *m, known *k)
{
    versions was;

    versions_clear(&was);
    if (k->number && !model_keeps_numbers(m))
        versions_copy(&was, &k->next);
    versions_copy(&k->next, &k->now);
    for (unsigned i = 0; i < was.count; i++)
        if (was.of[i].cut && was.of[i].call >= k->set)
            versions_add(&k->next, &was.of[i]);
}

/* This boot has written since: that is so. */
static inline void model_refresh(const model *m, known *k)
{
    if (m->config->durability == IDEM_BATCH || !m->wrote ||
        k->attempted >= m->wrote_at)
        return;
    model_settled(m, k);
}

/* A call has written durably. */
static inline void model_durable(model *m)
{
    m->written = m->clock;
    m->wrote = 1;
    m->wrote_at = m->calls;
}

/* A begin was answered, so by now this boot has written where all ends that its
   opening found. */
static inline void model_relied(model *m)
{
    if (!m->config->storage || m->wrote || m->faulty ||
        m->config->durability == IDEM_BATCH)
        return;
    m->wrote = 1;
    m->wrote_at = m->calls;
}

/* The time of what was just written will be found again. */
static inline void model_wrote(model *m)
{
    if (m->config->durability == IDEM_EACH)
        model_durable(m);
    else
        m->unsynced_time = m->clock;
}

/* Adds that the key is unknown: since now, if something is known of it. */
static inline void model_add_gone(const model *m, const known *k,
                                  versions *set)
{
    version v = unknown;

    for (unsigned i = 0; i < k->now.count; i++)
        if (k->now.of[i].status)
            v.call = m->calls;
    versions_add(set, &v);
}

/* The next sync makes durable what was written of a key. */
static inline void model_unsynced(model *m, known *k)
{
    uint32_t self = (uint32_t)(k - m->keys) + 1;

    if (k->unsynced)
        return;
    k->unsynced = m->unsynced ? m->unsynced : self;
    m->unsynced = self;
}

/* One of these is true now, and written. */
static inline void model_set(model *m, known *k, const versions *set)
{
    int each = m->config->durability == IDEM_EACH;
    versions is;

    versions_clear(&is);
    for (unsigned i = 0; i < set->count; i++) {
        version v = set->of[i];
        v.late = 0;
        v.call = m->calls;
        versions_add(&is, &v);
    }
    // What came in its place before may be durable without this.
    if (!each && model_known(m, k, 0) < KNOWN)
        model_add_gone(m, k, &k->next);
    if (each) {
        versions_copy(&k->next, &is);
        k->attempted = 0;
    } else {
        versions_merge(&k->next, &k->now);
        versions_merge(&k->next, &is);
        model_unsynced(m, k);
    }
    versions_copy(&k->now, &is);
    k->shown = k->set = k->changed = m->calls;
    m->nearly_full |= k->next.count >= VERSIONS - 2;
    model_wrote(m);
}

/* A call was refused or interrupted that would have made this true: the next
   opening may find it. */
static inline void model_attempted(model *m, known *k, const version *v)
{
    version tried = *v;

    tried.late = NOW;
    tried.call = m->calls;
    versions_add(&k->next, &tried);
    k->attempted = k->changed = m->calls;
    m->nearly_full |= k->next.count >= VERSIONS - 2;
}

/* Something has been relied on: whatever was uncertain of the key when the table
   was opened is so no more.  But what a cut interrupted, and is not to be seen,
   may yet show up at an opening before which nothing was written; where callbacks
   fail, also beside what is seen. */
static inline void model_relied_on(const model *m, known *k)
{
    versions was;
    int done = m->wrote;

    if (m->config->durability == IDEM_BATCH || k->attempted)
        return;
    versions_copy(&was, &k->next);
    for (unsigned i = 0; i < k->now.count; i++)
        done |= k->now.of[i].late && !m->faulty;
    model_settled(m, k);
    for (unsigned i = 0; i < was.count && !done; i++)
        if (was.of[i].late)
            versions_add(&k->next, &was.of[i]);
}

/* Only these are true, of those that were held possible. */
static inline void model_narrow(model *m, known *k, const versions *fit)
{
    if (fit->count)
        versions_copy(&k->now, fit);
    model_link(m, k);
    model_refresh(m, k);
}

/* ------------------------------------------------------------------ answers */

static inline version version_claim(const model *m, const asked *a,
                                    unsigned attempts)
{
    version v = unknown;

    v.status = IDEM_IN_PROGRESS;
    v.attempts = (uint8_t)attempts;
    v.fingerprint = a->fingerprint;
    v.retention = a->retention_ms;
    v.len = a->reserved;
    v.lease_end = model_lease_end(m, a->lease_ms);
    v.claim = a->claim;
    return v;
}

/* True if this outcome is in a reply; a buffer too short stays empty. */
static inline int version_has_reply(const version *v, const asked *a)
{
    const idem_reply *reply = a->reply;

    return version_finished(v) && reply->status == v->status &&
           reply->code == v->code && reply->response_len == v->len &&
           (!a->buffer || a->buffer_size < v->len ||
            numbered_is(a->buffer, 0, v->len, v->number));
}

/* .. and all else in it is that of this version. */
static inline int version_is_reply(const model *m, const version *v,
                                   const asked *a)
{
    return version_has_reply(v, a) &&
           version_has_age(m, v, a->reply->age_ms) &&
           a->reply->claim.attempt == v->attempts;
}

/* A begin of a key that is not finished; a call in flight shows nothing. */
static inline int version_taken(const model *m, const known *k, version *v,
                                const asked *a, int result)
{
    int exhausted = v->attempts >= model_attempts(m);
    uint8_t again = version_again(v);

    if (v->status != IDEM_IN_PROGRESS || model_past(m, k) == KNOWN)
        return 0;
    switch (result) {
    case IDEM_BUSY:
        return !version_late(m, v) &&
               a->reply->retry_after_ms == version_left(m, v);
    case IDEM_EXHAUSTED:
        return version_late(m, v) && exhausted;
    case IDEM_RECOVER:
        if (!version_late(m, v) || exhausted ||
            (a->reply && a->claim.attempt != again))
            return 0;
        *v = version_claim(m, a, again);
        return 1;
    }
    return 0;
}

static inline int version_begin(const model *m, const known *k, version *v,
                                const asked *a, int result)
{
    switch (result) {
    case IDEM_EXECUTE:
    case IDEM_TOO_OLD:
    case IDEM_E_FULL:
        if (!version_unknown(m, k, v))
            return 0;
        if (result == IDEM_EXECUTE)
            *v = version_claim(m, a, 1);
        return 1;
    case IDEM_MISMATCH:
        return version_known(m, k, v) && v->fingerprint != a->fingerprint;
    case IDEM_REPLAY:
        if (!version_known(m, k, v) || v->fingerprint != a->fingerprint ||
            !version_is_reply(m, v, a))
            return 0;
        v->claim = a->reply->claim;
        version_aged(m, v, a->reply->age_ms);
        return 1;
    }
    return version_known(m, k, v) && v->fingerprint == a->fingerprint &&
           version_taken(m, k, v, a, result);
}

/* Complete, release, renew, keep: the claim is current, or may only be fenced. */
static inline int version_use(const model *m, const known *k, version *v,
                              const asked *a, int result)
{
    int current = v->status == IDEM_IN_PROGRESS && !v->cut &&
                  a->claim.token && v->claim.token == a->claim.token &&
                  v->claim.slot == a->claim.slot;
    version was = *v;

    if (result == IDEM_E_FENCED)
        return !current || version_known(m, k, v) < KNOWN;
    if (!current || !version_known(m, k, v) || model_past(m, k) == KNOWN)
        return 0;
    if (a->what == 'K')
        return result == IDEM_BUSY &&
               a->reply->retry_after_ms == version_left(m, v);
    if (result == IDEM_E_TOO_LARGE)
        return a->what == 'C' && (a->outcome.len > v->len ||
                                  a->state.len > m->config->state_max);
    if (result != IDEM_OK)
        return 0;
    if (a->what == 'R') {
        *v = unknown;
    } else if (a->what == 'C') {
        *v = a->outcome;
        v->attempts = was.attempts;
        v->retention = was.retention;
        v->fingerprint = was.fingerprint;
        v->claim = was.claim;
        v->from = v->to = m->clock;
        return a->outcome.len <= was.len &&
               a->state.len <= m->config->state_max;
    } else if (v->lease_end < model_lease_end(m, a->lease_ms)) {
        v->lease_end = model_lease_end(m, a->lease_ms);
    }
    return 1;
}

/* A live claim is not to be removed. */
static inline int version_forget(const model *m, const known *k, version *v,
                                 int result)
{
    int live = v->status == IDEM_IN_PROGRESS && !version_late(m, v);

    if (result == IDEM_E_NOT_FOUND)
        return version_unknown(m, k, v);
    if (!version_known(m, k, v) || result != (live ? IDEM_BUSY : IDEM_OK))
        return 0;
    if (result == IDEM_OK)
        *v = unknown;
    return 1;
}

static inline int version_deliver(const model *m, const known *k, version *v,
                                  const asked *a, int result)
{
    int named = version_finished(v) && (!v->claim.token ||
                                        v->claim.token == a->claim.token);

    if (result == IDEM_E_NOT_FOUND)
        return !named || version_unknown(m, k, v);
    if (result != IDEM_OK || !named || !version_known(m, k, v))
        return 0;
    v->undelivered = 0;
    return 1;
}

/* True if the call may answer so if this version is true, which becomes what it
   is afterwards. */
static inline int version_answer(const model *m, const known *k, version *v,
                                 const asked *a, int result)
{
    switch (a->what) {
    case 'B': return version_begin(m, k, v, a, result);
    case 'X': return version_forget(m, k, v, result);
    case 'D': return version_deliver(m, k, v, a, result);
    default:  return version_use(m, k, v, a, result);
    }
}

/* True if a begin that is answered so grants a claim. */
static inline int model_grants(int result)
{
    return result == IDEM_EXECUTE || result == IDEM_RECOVER ||
           result == IDEM_UNCERTAIN;
}

/* True if the answer means that the call has changed, and recorded, something. */
static inline int model_changes(const asked *a, int result)
{
    return a->what == 'B' ? model_grants(result)
                          : result == IDEM_OK && strchr("CRXD", a->what);
}

/* A renewed claim is not written; what is found of it ended with the boot. */
static inline void model_renewed(known *k)
{
    const version *v = &k->now.of[0];

    for (unsigned i = 0; i < k->next.count; i++)
        if (k->next.of[i].claim.token == v->claim.token &&
            k->next.of[i].status == IDEM_IN_PROGRESS)
            k->next.of[i].lease_end = v->lease_end;
}

/* A number is claimed, for certain or perhaps: its sender's epoch goes on. */
static inline void model_claims(model *m, known *k, int certain)
{
    uint32_t epoch = (uint32_t)(k->number >> 32);

    k->claimed = 1;
    if (epoch > m->epoch_most[k->scope])
        m->epoch_most[k->scope] = epoch;
    if (!certain || !model_keeps_numbers(m))
        return;
    if (epoch > m->epoch[k->scope])
        m->epoch[k->scope] = epoch;
    k->executed = m->config->storage && m->config->durability == IDEM_EACH
                      ? FOR_GOOD : IN_BOOT;
}

/* A call has answered: whether the number of its key may be executed again. */
static inline void model_numbered(model *m, known *k, const asked *a,
                                  int result)
{
    if (a->what == 'B' && model_changes(a, result))
        model_claims(m, k, 1);
    else if (a->what == 'C' && result == IDEM_OK && m->config->storage &&
             m->config->durability == IDEM_EACH && model_keeps_numbers(m))
        k->executed = FOR_GOOD;
    else if (strchr("RX", a->what) && result == IDEM_OK)
        k->executed = k->claimed = 0;
}

/* A number was refused for itself: it is so for good (S10), once the time of
   that is recorded. */
static inline void model_refused(model *m, known *k, const asked *a)
{
    if (!k->number || a->age_ms || !model_keeps_numbers(m))
        return;
    if (!k->executed)
        k->executed = IN_BOOT;
    if (!m->config->storage || m->config->durability != IDEM_EACH ||
        m->forgetting[k->scope])
        return;
    k->refused = m->clock;
}

/* Checks of a begin beside the version; false if it may not be. */
static inline int model_begun(model *m, known *k, const asked *a, int result)
{
    switch (result) {
    case IDEM_EXECUTE:
        model_missed(m, k);
        return a->claim.attempt == 1 && model_room(m, k) &&
               (model_exact(m) || model_young(m, k, a));
    case IDEM_E_FULL:
        model_missed(m, k);
        return model_full(m, k) && !(k->number && k->executed) &&
               (!model_exact(m) ||
                a->reply->retry_after_ms <= model_wait(m, k));
    case IDEM_TOO_OLD:
        model_missed(m, k);
        model_refused(m, k, a);
        return model_too_old(m, k, a);
    case IDEM_REPLAY:
    case IDEM_MISMATCH:
    case IDEM_EXHAUSTED:
        model_relied_on(m, k);
        break;
    }
    return model_showed(m, k);
}

/* A set that may be anything has become this. */
static inline void model_guess(const model *m, const asked *a, int result,
                               versions *after)
{
    version v = version_claim(m, a, a->claim.attempt);

    if (a->what == 'X' && result == IDEM_OK)
        versions_only(after, &unknown);
    else if (a->what == 'B' && model_changes(a, result))
        versions_only(after, &v);
}

/* The call on a key has answered so; false if it may not. */
static inline int model_answered(model *m, const asked *a, int result)
{
    known *k = &m->keys[a->key];
    versions fit, after;
    int granted = a->what == 'B' && model_changes(a, result);

    versions_clear(&fit);
    versions_clear(&after);
    // Before an eviction, which moves the eviction time.
    if ((a->what == 'B' && k->is_old && result != IDEM_TOO_OLD) ||
        (granted && a->claim.token <= m->token) ||
        (a->what == 'B' && result == IDEM_EXECUTE && !model_young(m, k, a)) ||
        (a->evicted && !model_evicts(m, k, a, result)))
        return 0;
    for (unsigned i = 0; i < k->now.count; i++) {
        version v = k->now.of[i];
        if (!version_answer(m, k, &v, a, result))
            continue;
        fit.of[fit.count++] = a->what == 'B' && result == IDEM_REPLAY
                                  ? v : k->now.of[i];
        versions_add(&after, &v);
    }
    if (!fit.count && !k->now.any)
        return 0;
    fit.any = k->now.any;
    if (a->what == 'B' && (result >= 0 || result == IDEM_E_FULL))
        model_relied(m);
    model_narrow(m, k, &fit);
    if (a->what == 'B' && !model_begun(m, k, a, result))
        return 0;
    if (granted)
        m->token = a->claim.token;
    if (k->now.any && !fit.count)
        model_guess(m, a, result, &after);
    if (a->what == 'N' && result == IDEM_OK) {
        versions_copy(&k->now, &after);
        model_renewed(k);
    } else if (model_changes(a, result) && after.count &&
               !(a->what == 'D' && fit.count == 1 && !fit.of[0].undelivered)) {
        model_set(m, k, &after);
    }
    if (result == IDEM_OK && a->has_state)
        model_state(m, &a->state, 1);
    model_numbered(m, k, a, result);
    return 1;
}

/* A number may have been refused: that records that the expired others of its
   sender are gone. */
static inline void model_may_have_refused(model *m, const known *but)
{
    for (unsigned i = 0; but->number && i < m->count; i++) {
        known *k = &m->keys[i];
        int over = 0;
        for (unsigned n = 0; n < k->now.count; n++)
            over |= k->now.of[n].status &&
                    version_known(m, k, &k->now.of[n]) < KNOWN;
        if (over && k->number && k->scope == but->scope)
            model_attempted(m, k, &unknown);
    }
}

/* The call was refused, or interrupted: it may have happened. */
static inline void model_in_flight(model *m, const asked *a)
{
    static const int results[] = { IDEM_OK, IDEM_EXECUTE, IDEM_RECOVER };
    known *k = &m->keys[a->key];
    unsigned count = k->now.count;
    asked silent = *a;

    if (!strchr("BCRXD", a->what))
        return;
    silent.reply = NULL;
    if (a->what == 'B') {
        model_claims(m, k, 0);
        model_may_have_refused(m, k);
    }
    if (strchr("RX", a->what))
        k->executed = 0;
    // In this boot all that was to make room is there (S7).
    if (a->what == 'B' && m->config->full == IDEM_EVICT_OLDEST)
        m->evicting = m->calls;
    if (a->what == 'B')
        memset(&silent.claim, 0, sizeof silent.claim);
    for (unsigned i = 0; i < count; i++)
        for (unsigned r = 0; r < 3; r++) {
            version v = k->now.of[i];
            if ((a->what == 'B') == (r > 0) &&
                version_answer(m, k, &v, &silent, results[r]))
                model_attempted(m, k, &v);
        }
    k->next.any |= k->now.any;
    if (a->has_state)
        model_state(m, &a->state, 0);
}

/* ------------------------------------------------- a sender that is forgotten */

/* True if a claim on a key may be live, or is for certain. */
static inline int model_live(const model *m, const known *k, int certain)
{
    int result = certain && k->now.count && !k->now.any;

    for (unsigned i = 0; i < k->now.count; i++) {
        const version *v = &k->now.of[i];
        int is = v->status == IDEM_IN_PROGRESS && !version_late(m, v) &&
                 model_past(m, k) <= (certain ? GONE : MAYBE);
        result = certain ? result && is : result || is;
    }
    return result || (!certain && k->now.any);
}

/* Nothing that this boot does not know of the numbers of a scope is certain. */
static inline void model_forget_numbers(model *m, unsigned scope)
{
    m->epoch[scope] = 0;
    for (unsigned i = 0; i < m->count; i++) {
        known *k = &m->keys[i];
        if (k->scope == scope)
            k->refused = k->executed = k->is_old = 0;
    }
}

/* The call to forget a sender has answered so; false if it may not.  After a
   restart one that has keys may have no entry: then it is not found. */
static inline int model_forgot(model *m, unsigned scope, int result)
{
    int may_be_live = 0;
    versions none;

    versions_only(&none, &unknown);
    for (unsigned i = 0; i < m->count; i++) {
        known *k = &m->keys[i];
        if (k->scope != scope)
            continue;
        may_be_live |= model_live(m, k, 0);
        if ((result == IDEM_OK && model_live(m, k, 1)) ||
            (result == IDEM_E_NOT_FOUND && !m->few_entries &&
             ((k->number && k->executed) || model_known(m, k, 0) == KNOWN)))
            return 0;
    }
    if (result != IDEM_OK)
        return result == IDEM_E_NOT_FOUND ||
               (result == IDEM_BUSY && may_be_live);
    model_forget_numbers(m, scope);
    m->epoch_most[scope] = 0;
    for (unsigned i = 0; i < m->count; i++) {
        known *k = &m->keys[i];
        if (k->scope != scope)
            continue;
        k->claimed = k->left = 0;
        model_set(m, k, &none);
    }
    return 1;
}

/* It failed, or was interrupted: it may have happened. */
static inline void model_may_have_forgot(model *m, unsigned scope)
{
    model_forget_numbers(m, scope);
    m->forgetting[scope] = 1;
    for (unsigned i = 0; i < m->count; i++)
        if (m->keys[i].scope == scope)
            model_attempted(m, &m->keys[i], &unknown);
}

/* ------------------------------------------------------------------ looking */

/* True if what looking shows of a key is this; NULL, that it is unknown. */
static inline int version_shown(const model *m, const known *k,
                                const version *v, const idem_info *e)
{
    if (!e)
        return version_unknown(m, k, v);
    if (!version_known(m, k, v) || e->status != v->status ||
        e->fingerprint != v->fingerprint || e->attempts != v->attempts ||
        e->response_len != v->len)
        return 0;
    if (!version_finished(v))
        return e->left_ms == version_left(m, v) && !e->claim.token &&
               !e->code && !e->age_ms && !e->undelivered;
    return e->code == v->code && e->undelivered == v->undelivered &&
           version_has_age(m, v, e->age_ms) &&
           e->age_ms + (uint64_t)e->left_ms == v->retention &&
           e->claim.attempt == v->attempts &&
           (!v->claim.token || (v->claim.token == e->claim.token &&
                                v->claim.slot == e->claim.slot));
}

/* Leaves those versions that looking may show so; false if there are none. */
static inline int model_shown(model *m, known *k, const idem_info *e)
{
    versions fit;

    versions_clear(&fit);
    for (unsigned i = 0; i < k->now.count; i++)
        if (version_shown(m, k, &k->now.of[i], e))
            fit.of[fit.count++] = k->now.of[i];
    if (!fit.count)
        return k->now.any;
    for (unsigned i = 0; e && i < fit.count; i++)
        if (version_finished(&fit.of[i])) {
            fit.of[i].claim = e->claim;
            version_aged(m, &fit.of[i], e->age_ms);
        }
    fit.any = k->now.any;
    model_narrow(m, k, &fit);
    if (e)
        return model_showed(m, k);
    model_missed(m, k);
    return 1;
}

/* --------------------------------------------------------- syncs, restarts */

/* What was written of a key is durable. */
static inline void model_key_synced(model *m, known *k)
{
    if (m->faulty)
        return;
    if (k->executed)
        k->executed = FOR_GOOD;
    model_settled(m, k);
    if (k->shown < m->evicted)
        model_add_gone(m, k, &k->next);
}

/* Everything that was written is durable. */
static inline void model_synced(model *m)
{
    m->nearly_full = 0;
    m->state_unsynced = 0;
    if (m->unsynced_time) {
        m->wrote = 1;
        m->wrote_at = m->calls;
    }
    if (m->unsynced_time > m->written)
        m->written = m->unsynced_time;
    for (int last = !m->unsynced; !last;) {
        known *k = &m->keys[m->unsynced - 1];
        last = k->unsynced == m->unsynced;
        m->unsynced = k->unsynced;
        k->unsynced = 0;
        model_key_synced(m, k);
    }
    m->unsynced = 0;
    // What a cut interrupted may yet show up, if nothing was written since.
    if (!m->faulty && m->wrote)
        versions_copy(&m->next, &m->now);
}

/* Before a restart: what has expired, or was to be evicted, may be gone. */
static inline void model_stops(model *m)
{
    if (m->config->durability == IDEM_EACH && m->wrote &&
        m->state_attempted < m->wrote_at)
        versions_copy(&m->next, &m->now);
    for (unsigned i = 0; i < m->count; i++) {
        known *k = &m->keys[i];
        versions *next = &k->next;
        int over;
        model_refresh(m, k);
        over = 0;
        for (unsigned n = 0; n < k->now.count; n++)
            over |= k->now.of[n].status && version_unknown(m, k, &k->now.of[n]);
        for (unsigned n = 0; n < next->count; n++)
            over |= (next->of[n].status &&
                     version_known(m, k, &next->of[n]) < KNOWN) ||
                    (version_finished(&next->of[n]) &&
                     !next->of[n].undelivered &&
                     k->set < m->evicting);
        if (over) {
            k->left |= k->claimed;
            model_add_gone(m, k, next);
        }
    }
}

/* A version after a restart.  When its claim was interrupted is written
   with the next record; before, a later restart does it again, perhaps with the
   clock further back: the record with the time was torn. */
static inline version version_restarted(const model *m, const version *v)
{
    version is = *v;

    is.claim.token = 0;
    is.late = v->late == NOW || (v->late && !m->wrote) ? BEFORE : 0;
    if (v->status != IDEM_IN_PROGRESS)
        return is;
    if (!v->cut)
        is.from = is.to = m->clock;
    else if (!m->wrote && m->clock > v->to)
        is.to = m->clock;
    else if (!m->wrote && m->clock < v->from)
        is.from = m->clock;
    is.cut = 1;
    is.len = 0;
    is.lease_end = 0;
    return is;
}

/* One key of those, `before` was the clock, and is `clock` now. */
static inline void model_key_starts(model *m, known *k, uint64_t before,
                                    uint64_t clock)
{
    uint64_t lost = before > clock ? before - clock : 0;

    k->now.count = 0;
    k->now.any = k->next.any;
    if (k->refused && k->refused <= clock) {
        k->executed = FOR_GOOD;
        k->is_old = 1;
    }
    if (k->is_old) {
        version left = unknown;
        left.call = m->calls;
        versions_only(&k->next, &left);
    }
    if (k->executed == IN_BOOT)
        k->executed = 0;
    k->refused = 0;
    k->claimed &= m->config->storage != NULL;
    k->left &= m->config->storage != NULL;
    k->unsynced = k->attempted = 0;
    for (unsigned n = 0; n < k->next.count; n++) {
        int was;
        version is;
        m->clock = before;
        was = version_known(m, k, &k->next.of[n]);
        m->clock = clock;
        is = version_restarted(m, &k->next.of[n]);
        // Not of what is durable for certain.  What was lost before it may have
        // had time that has passed: then it is dated later.
        if (version_finished(&is) && is.from >= m->written &&
            m->config->durability == IDEM_BATCH) {
            if (is.from > m->written)
                is.from -= lost < is.from ? lost : is.from;
            if (is.to < clock)
                is.to = clock;
        }
        versions_add(&k->now, &is);
        if (was < KNOWN && version_known(m, k, &is)) {
            version over = unknown;
            over.call = m->calls;
            versions_add(&k->now, &over);
        }
    }
    versions_copy(&k->next, &k->now);
}

static inline void model_starts(model *m, uint64_t clock)
{
    uint64_t before = m->clock;

    m->nearly_full = m->faulty = 0;
    // An eviction that is not to be seen may yet show up, as its claim may.
    if (m->wrote && m->evicting <= m->opened_at)
        m->evicting = 0;
    m->behind = 0;
    m->settled = 0;
    memset(m->forgetting, 0, sizeof m->forgetting);
    m->unsynced = 0;
    // What was evicted for a claim that is not durable is there again.
    memset(m->gone, 0, sizeof m->gone);
    for (unsigned i = 0; i < m->count; i++)
        model_key_starts(m, &m->keys[i], before, clock);
    m->clock = m->opened = clock;
    for (unsigned i = 0; i < SCOPES; i++)
        m->evicted_until[i] = clock;
    // What is not certain to be durable may be forgotten.
    if (!m->config->storage || m->config->durability == IDEM_BATCH)
        memset(m->epoch, 0, sizeof m->epoch);
    if (!m->config->storage)
        memset(m->epoch_most, 0, sizeof m->epoch_most);
    m->wrote = 0;
    m->unsynced_time = 0;
    m->state_attempted = 0;
    m->state_unsynced = 0;
    m->opened_at = m->calls;
    versions_copy(&m->now, &m->next);
}

/* Nothing is known of any key. */
static inline void model_init(model *m, const idem_config *config, known *keys,
                              unsigned count, unsigned scopes)
{
    memset(m, 0, sizeof *m);
    m->config = config;
    m->keys = keys;
    m->count = count;
    m->few_entries = config->senders && config->senders < scopes;
    versions_only(&m->now, &unknown);
    versions_only(&m->next, &unknown);
    for (unsigned i = 0; i < count; i++) {
        known *k = &keys[i];
        versions_only(&k->now, &unknown);
        versions_only(&k->next, &unknown);
        k->claimed = k->executed = k->left = 0;
        k->is_old = 0;
        k->refused = 0;
        k->unsynced = k->attempted = k->shown = k->set = k->changed = 0;
        k->scope = (uint16_t)(i % scopes);
    }
}

#endif /* MODEL_H */
