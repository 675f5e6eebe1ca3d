/* SPDX-License-Identifier: 0BSD */
/*
 * A device under test: a medium (flash.h), a configuration, a table on it, and
 * the model of what that may answer (model.h).  Each call here is made to the
 * table and the model, and what must hold after every call is checked.
 * The test decides which calls are made; before it includes this, it defines
 * whether it implements the header, and broken() (promise.h).
 *
 *     set storage, config, medium.kind, flags, scopes; device_make(d, keys)
 *     device_open(d); device_begin(d, ...) ...
 *     device_stop(d), device_start(d): a restart, even after a power cut
 *     device_end(d)
 */
#ifndef DEVICE_H
#define DEVICE_H

#include "idem.h"

#include "promise.h"

#include "media.h"
#include "../inside.h"
#include "model.h"
#include "words.h"

enum { ID_MAX = 255 };
enum { BYTES_MORE = 256 };          // than a response may have, for pieces
enum { GUARD = 64, GUARD_BYTE = 0xC3 };     // after the given memory
enum { SILENCE_MS = 60000 };        // a minute
#ifndef OPERATIONS_MAX
#define OPERATIONS_MAX 3000000      // of the storage, in one call
#endif
// Of a byte, while opening; and more of a torn header that comes and goes
enum { READS_OPENING = 12, READS_TORN = 30 };
enum { UNSTABLE_SAFE = 1 };         // see device_may_lose
enum { OLD_CLAIMS = 16 };           // that are tried again
enum { DAMAGED = 1, JUDGED };       // of damaged
enum { HEADER_BYTES = 56 };         // of a sector of a journal
enum { NO_WORD = -2000 };           // is no answer

#define SECRET "sixteen secrets."

typedef struct device {
    // The device, and what tests set before device_make.
    idem_storage storage;
    idem_config  config;
    flash        medium;
    int          flags;             // of the medium
    unsigned     keys, scopes;      // how many; of keys 0: see device_make
    unsigned     per_epoch;         // numbers, if there are senders; 0: 50
    unsigned     first_numbers;     // the first scope does, and not the second
    unsigned     most_number;       // or all, but for a key of each
    unsigned     polls;             // until an erase is done, at most
    // What tests set at any time.
    int          reads_fail;        // they may, in this boot
    int          fails;             // any callback may
    int          runs_out;          // of sequences: claims may be refused
    size_t       buffer_size;       // of requests
    void       (*change)(void);     // of the configuration, between two boots
    uint32_t   (*pick)(uint32_t);   // one of n: modes may be by chance
    int        (*word)(const call *);    // what else a line may have, and
                                    // its answer; or NO_WORD
    int          in_ram;            // there is no storage
    // For tests to read.
    idem_table  *table, tables[2];
    uint32_t     senders;           // that the table was opened with
    idem_reply   reply;             // .. begin's
    idem_info    shown;             // by the latest look at a key
    const char  *line, *at;         // of calls that runs, and its next word
    int          marked;            // there was a bar in it
    uint32_t     now;               // the tick
    unsigned     spoilt;            // outcomes of handlers, too large
    int          lost;              // and counted, as it may be: nothing more is
                                    // known
    int          damaged;           // by the test, which has the answers;
                                    // of an outcome only what is in it is known;
                                    // JUDGED: that the test judges, too
    int          blank;             // at the opening, as far as can be seen
    int          sync_failed;
    uint64_t     floors[SCOPES];    // that the boot before had recorded
    uint32_t     headers;           // that were programmed
    idem_claim  *held, *before;     // by key: the latest claim of this boot,
                                    // and the one before it
    uint32_t     tear;              // how the next cut leaves an operation
    // .. and what a copy takes over, from here on (device_follow).
    model        model;
    asked        call;              // the latest
    int          calling;           // it has not returned yet
    int          answer, has_answered;      // of the latest call
    versions     asked_of;          // its key's, before the call
    unsigned     harm;              // cuts, and boots with failures, since a
                                    // call wrote
    unsigned     unstable;          // cuts that read differently from boot to
                                    // boot, since the opening after one that
                                    // wrote; of these before its write
    unsigned     unstable_before;
    int          ever_unstable;
    int          acknowledged;      // something was, ever
    uint32_t     number;            // the latest of an outcome
    idem_claim   old[OLD_CLAIMS];   // claims that are used up
    unsigned     olds;
    uint32_t     erasing, polls_left;   // sector, plus one
    uint64_t     cut_at;            // logical time of a cut, the latest; what
                                    // it interrupted may yet be found
    int          ever_failed;
    int          ever_lost;
    uint32_t     uncertain_ms;      // of logical time, in which records that were
    uint32_t     uncertain_at;      // lost make claims uncertain; from when on
    uint32_t     retention_most;    // the longest default so far
    // Inside.
    void        *memory;
    uint8_t     *bytes, *state_bytes;   // of responses, of state
    size_t       memory_size, more;
    uint8_t     *read_map;          // of the medium, if it counts
    int          opening;
    int          rewritten;         // the newest record was, in this boot
    unsigned     may_leave;         // epochs and keys that may have raised a
                                    // floor in this boot, which is not written
    int          idle;              // idle work was done right before
    uint64_t     last_time;         // logical time of the latest record
    uint64_t     latest;            // no record has a time after it ..
    uint64_t     tried;             // .. but one that was tried, and failed
    int          callback;          // what one returned that was not 0
    uint32_t     operations, progs, erases, reads;
    uint32_t     erases_before_boot;
    int          boot_failed;       // a callback has, since an erase
    int          failed_before;     // .. in a boot before this one erased
    idem_stats   stats;             // expected, where that is exact
    uint32_t     balance;           // used + stats.expired
} device;

/* ------------------------------------------------------------ >>callbacks */

static inline int device_operated(device *d, int result)
{
    PROMISE(++d->operations < OPERATIONS_MAX);
    if (result)
        d->callback = result;
    if (result && result != FLASH_E_OFF && result != FLASH_E_ECC)
        d->model.faulty = d->boot_failed = d->ever_failed = 1;
    return result;
}

/* Nothing touches a sector while it is erased. */
static inline int device_is_erasing(const device *d, uint32_t at)
{
    return d->erasing && at / d->storage.sector_size == d->erasing - 1;
}

static inline int device_read(void *ctx, uint32_t at, void *dst, uint32_t len)
{
    device *d = (device *)ctx;

    PROMISE(len > 0);
    PROMISE(!device_is_erasing(d, at) && !device_is_erasing(d, at + len - 1));
    d->reads++;
    return device_operated(d, flash_read(&d->medium, at, dst, len));
}

static inline int device_prog(void *ctx, uint32_t at, const void *src,
                              uint32_t len)
{
    device *d = (device *)ctx;

    PROMISE(!d->opening && !device_is_erasing(d, at));
    d->progs++;
    d->headers += at % d->storage.sector_size == 0;
    return device_operated(d, flash_prog(&d->medium, at, src, len));
}

/* With a split erase, it happens when it is done. */
static inline int device_erase(void *ctx, uint32_t sector)
{
    device *d = (device *)ctx;

    if (d->medium.off)
        return device_operated(d, FLASH_E_OFF);
    PROMISE(!d->opening && !d->erasing);
    d->erases++;
    if (!d->storage.erasing)
        return device_operated(d, flash_erase(&d->medium, sector));
    d->erasing = sector + 1;
    d->polls_left = d->polls;
    return device_operated(d, FLASH_OK);
}

static inline int device_erase_polled(void *ctx)
{
    device *d = (device *)ctx;
    uint32_t sector = d->erasing - 1;

    if (d->medium.off)
        return device_operated(d, FLASH_E_OFF);
    PROMISE(d->erasing);
    PROMISE(++d->operations < OPERATIONS_MAX);
    if (d->polls_left) {
        d->polls_left--;
        return 1;
    }
    d->erasing = 0;
    return device_operated(d, flash_erase(&d->medium, sector));
}

static inline int device_sync_called(void *ctx)
{
    device *d = (device *)ctx;
    int result = flash_sync(&d->medium);

    d->sync_failed |= result != 0;
    return device_operated(d, result);
}

/* Leaves what a cut interrupts torn in the way of d->tear: of any kind, or most
   would be front parts. */
static inline void device_tear(void *arg, const flash *f, const flash_op *op)
{
    device *d = (device *)arg;
    uint32_t variant = 0, count;
    int torn = (int)(d->tear % FLASH_TORN_KINDS);

    if (!f->armed || f->cut_in)
        return;
    while (!(count = flash_torn_count(f, op, torn)))
        torn = (torn + 1) % FLASH_TORN_KINDS;
    for (int kind = 0; kind < torn; kind++)
        variant += flash_torn_count(f, op, kind);
    d->medium.cut_variant = variant + d->tear / FLASH_TORN_KINDS % count;
    // A sender that is forgotten may have no entry then, to be rewritten.
    d->unstable += flash_is_unstable(torn) *
                   (d->call.what == 'Q' && !model_keeps_numbers(&d->model)
                        ? 1 + UNSTABLE_SAFE
                        : 1);
    d->ever_unstable |= flash_is_unstable(torn);
    // Of what a batch has in a cache any record may come and go, and only the
    // newest is rewritten.
    d->lost |= flash_is_unstable(torn) && f->unsynced > 1 &&
               d->config.durability == IDEM_BATCH;
}

/* --------------------------------------------- >>making  a device, its keys */

/* Memory as idem_open asks for, which is never more than the macro's; and
   `more`, which makes opening faster. */
static inline void device_make_memory(device *d)
{
    const idem_config *c = &d->config;
    size_t most =
        c->storage ? IDEM_JOURNAL_MEMORY_SIZE(c->capacity, c->key_max,
                                              c->response_max, c->state_max,
                                              c->storage->prog_size)
                   : IDEM_MEMORY_SIZE(c->capacity, c->key_max, c->response_max,
                                      c->state_max);
    idem_table t;

    d->senders = c->senders;
    most += IDEM_SENDERS_MEMORY_SIZE(c->senders);
    if (c->quota && c->full == IDEM_EVICT_OLDEST)
        most += IDEM_QUOTA_MEMORY_SIZE(c->capacity, c->senders);
    PROMISE(idem_open(&t, c, NULL, 0, 0) == IDEM_E_MEMORY);
    PROMISE(t.needed <= most && t.needed == idem_memory_size(c));
    PROMISE(!c->storage || idem_sector_count(c) ==
                               medium_sectors(c, c->storage));
    free(d->memory);
    d->memory_size = t.needed + d->more;
    d->memory = medium_allocate(d->memory_size + GUARD);
    memset((uint8_t *)d->memory + d->memory_size, GUARD_BYTE, GUARD);
}

static inline uint32_t device_sectors(const device *d)
{
    return medium_sectors(&d->config, &d->storage);
}

/* A device with defaults. */
static inline void device_reset(device *d)
{
    memset(d, 0, sizeof *d);
    memcpy(d->config.secret, SECRET, sizeof d->config.secret);
    d->config.storage = &d->storage;
    d->storage.erased = 0xFF;
    d->scopes = 1;
    numbered_own.number = 0;
}

/* The storage is one of these. */
static inline void device_plug(device *d, const medium *m)
{
    d->flags |= m->flags;
    d->medium.kind = m->kind;
    d->storage.sector_size = m->sector_size;
    d->storage.prog_size = m->granule;
    d->storage.erased = m->erased;
    d->storage.verify = (m->flags & VERIFY) != 0;
}

/* A blank medium, as the storage describes it. */
static inline void device_make_medium(device *d)
{
    idem_storage *s = &d->storage;
    flash *f = &d->medium;

    s->ctx = d;
    s->read = device_read;
    s->prog = device_prog;
    s->erase = f->kind == FLASH_INPLACE ? NULL : device_erase;
    s->erasing = s->erase && d->flags & SPLIT ? device_erase_polled : NULL;
    if (d->flags & CACHE || d->config.durability == IDEM_BATCH)
        s->sync = device_sync_called;
    f->cut_syncs = s->sync != NULL;
    f->watch = device_tear;
    f->watch_arg = d;
    PROMISE(medium_make(f, s, d->flags) == 0);
    // Only openings are counted.
    d->read_map = f->read_map;
    f->read_map = NULL;
}

/* Bytes of a key's number, little-endian, with which it ends. */
static inline size_t device_number_len(const device *d)
{
    size_t left = d->config.key_max - (d->scopes - 1u);

    return left < 4 ? left : 4;
}

/* How many of the wanted keys can differ. */
static inline unsigned device_keys(const device *d, unsigned wanted)
{
    uint64_t most = (uint64_t)d->scopes << 8 * device_number_len(d);

    return wanted < most ? wanted : (unsigned)most;
}

/* True if a key is a number, if there are senders, and room: every second
   sender's is, or all are but the last of each. */
static inline int device_numbers(const device *d, unsigned key)
{
    if (!d->config.senders || d->config.key_max < 8 + d->scopes - 1)
        return 0;
    return d->most_number
               ? key + d->scopes < d->model.count
               : key % d->scopes % 2 == (d->scopes > 1 && !d->first_numbers);
}

/* Of a key that is one: epoch and sequence. */
static inline uint64_t device_number(const device *d, unsigned key)
{
    unsigned number = key / d->scopes, per = d->per_epoch ? d->per_epoch : 50;

    return device_numbers(d, key)
               ? (uint64_t)(number / per) << 32 | (number % per + 1)
               : 0;
}

/* Of a buffer for responses; there are two. */
static inline size_t device_bytes(const device *d)
{
    return d->config.response_max + BYTES_MORE;
}

static inline void device_make(device *d, known *keys, unsigned count)
{
    count = d->keys ? d->keys : count;
    d->table = d->tables;
    d->buffer_size = LEN_MAX;
    if (d->config.storage)
        device_make_medium(d);
    device_make_memory(d);
    d->bytes = (uint8_t *)medium_allocate(2 * device_bytes(d));
    d->state_bytes =
        (uint8_t *)medium_allocate(d->config.state_max + BYTES_MORE);
    d->held = (idem_claim *)medium_allocate(count * sizeof *d->held);
    d->before = (idem_claim *)medium_allocate(count * sizeof *d->before);
    model_init(&d->model, &d->config, keys, count, d->scopes);
    for (unsigned key = 0; key < count; key++)
        keys[key].number = device_number(d, key);
}

static inline void device_end(device *d)
{
    d->medium.read_map = d->read_map;
    medium_end(&d->medium);
    free(d->memory);
    free(d->bytes);
    free(d->state_bytes);
    free(d->held);
    free(d->before);
    d->held = d->before = NULL;
    d->bytes = d->state_bytes = NULL;
    d->memory = NULL;
    d->read_map = NULL;
}

/* Another number for each, up to the largest. */
static inline uint64_t spread(uint64_t number)
{
    return number * UINT64_C(0x9E3779B97F4A7C15);
}

/* Scope and key of a number.  As many keys as there are scopes have the same
   bytes together, and only the border, or only the scope, differs.
   Some are as long as may be. */
static inline void device_name(const device *d, idem_request *rq, unsigned key,
                               uint8_t *id)
{
    unsigned scope = key % d->scopes, number = key / d->scopes;
    size_t len = number % 2 ? scope : d->scopes - 1u;
    size_t least = device_number_len(d);

    for (size_t i = 0; i < len; i++)
        id[i] = (uint8_t)('a' + i);
    rq->scope = scope ? id : NULL;
    rq->scope_len = scope;
    if (device_numbers(d, key)) {
        rq->epoch = (uint32_t)(device_number(d, key) >> 32);
        rq->sequence = (uint32_t)device_number(d, key);
        rq->key = NULL;
        rq->key_len = 0;
        return;
    }
    rq->epoch = rq->sequence = 0;
    while (number % 8 == 1 && len + least < d->config.key_max)
        id[len++] = 'x';
    for (size_t i = 0; i < least; i++)
        id[len++] = (uint8_t)(number >> 8 * i);
    rq->key = id + scope;
    rq->key_len = len - scope;
}

/* The key that is shown. */
static inline unsigned device_named(const device *d, const idem_info *e)
{
    const uint8_t *id = (const uint8_t *)e->id;
    size_t len = e->scope_len + e->key_len, least = device_number_len(d);
    uint8_t own[ID_MAX];
    idem_request rq = { 0 };
    unsigned key = 0, per = d->per_epoch ? d->per_epoch : 50;

    if (!e->key_len) {
        key = (e->epoch * per + e->sequence - 1) * d->scopes +
              (unsigned)e->scope_len;
        PROMISE(key < d->model.count && e->sequence &&
                d->model.keys[key].number ==
                    ((uint64_t)e->epoch << 32 | e->sequence));
        for (size_t i = 0; i < 8; i++)
            PROMISE(id[e->scope_len + i] ==
                    (uint8_t)((i < 4 ? e->sequence : e->epoch) >> 8 * (i % 4)));
        return key;
    }
    PROMISE(!e->epoch && !e->sequence);
    for (size_t i = 0; i < least; i++)
        key |= (unsigned)id[len - least + i] << 8 * i;
    key = key * d->scopes + (unsigned)e->scope_len;
    PROMISE(e->scope_len < d->scopes && key < d->model.count);
    device_name(d, &rq, key, own);
    PROMISE(e->key_len == rq.key_len && !memcmp(id, own, len));
    return key;
}

/* What a key is begun with, by itself or by hash; payload 0 is its own, others
   differ in little.  Returns the fingerprint. */
static inline uint64_t device_payload(const device *d, idem_request *rq,
                                      unsigned key, unsigned payload)
{
    static uint8_t bytes[16];
    idem_fingerprint_state hash;
    size_t len = 1 + key % 9, first = key % (len + 1);

    rq->has_fingerprint = key % 3 > 0;
    rq->fingerprint = spread(key) ^ (payload ? UINT64_C(1) << payload % 64 : 0);
    if (rq->has_fingerprint)
        return rq->fingerprint;
    memset(bytes, (int)key, sizeof bytes);
    bytes[len - 1] ^= (uint8_t)payload;
    rq->payload = bytes;
    rq->payload_len = len;
    // One that arrives in pieces is the same.
    idem_fingerprint_init(&hash, &d->config);
    idem_fingerprint_update(&hash, bytes, first);
    idem_fingerprint_update(&hash, bytes + first, len - first);
    return idem_fingerprint_final(&hash);
}

/* ------------------------------------------------ >>printing  what is known */

static inline void device_print_set(const device *d, const char *when,
                                    const known *k, const versions *set)
{
    for (unsigned i = 0; i < set->count; i++) {
        const version *v = &set->of[i];
        printf("    %s: status %u%s%s%s, attempts %u, length %u, retention %u, "
               "number %u, made in %u, lease until %llu, from %llu to %llu, "
               "known %d\n", when, v->status, v->cut ? " cut" : "",
               v->undelivered ? " undelivered" : "", v->late ? " late" : "",
               v->attempts,
               v->len, v->retention, v->number, v->call,
               (unsigned long long)v->lease_end, (unsigned long long)v->from,
               (unsigned long long)v->to, version_known(&d->model, k, v));
    }
}

static inline void device_print_configuration(const device *d)
{
    const idem_config *c = &d->config;
    const idem_storage *s = &d->storage;

    printf("    capacity %u, key %u, response %u, state %u, lease %u, "
           "retention %u, senders %u, quota %u, attempts %u, full %u, "
           "durability %u, scopes %u\n",
           c->capacity, c->key_max, c->response_max, c->state_max, c->lease_ms,
           c->retention_ms, c->senders, c->quota, c->max_attempts, c->full,
           c->durability, d->scopes);
    if (c->storage)
        printf("    %u sectors of %u, granule %u, erased %02X, verify %u, "
               "kind %d%s%s%s\n",
               s->sector_count, s->sector_size, s->prog_size, s->erased,
               s->verify, d->medium.kind, s->erasing ? ", split" : "",
               s->sync ? ", sync" : "", d->medium.durable ? ", cache" : "");
}

/* What the latest call asked for. */
static inline void device_print_asked(const device *d)
{
    static const char calls[] = "BCRNXDYMFLS";
    static const char *const names[] = {
        "begin", "complete", "release", "renew", "forget", "delivered", "sync",
        "maintain", "use of a claim that is used up", "look at a key",
        "look at what is beside the keys", "no call",
    };
    const asked *a = &d->call;
    const char *at = a->what ? strchr(calls, a->what) : NULL;

    printf("    asked: call %u, %s", d->model.calls,
           names[at ? at - calls : (int)sizeof calls - 1]);
    printf(", key %u of scope %u, logical time %llu ms", a->key,
           d->model.keys[a->key].scope, (unsigned long long)d->model.clock);
    if (a->what == 'B')
        printf(", lease %u ms, retention %u ms, age %u ms, response of %u",
               a->lease_ms, a->retention_ms, a->age_ms, a->reserved);
    if (a->what == 'C')
        printf(", %s, code %ld, response of %u, %s state",
               a->outcome.status == IDEM_FAILED ? "failed" : "completed",
               (long)a->outcome.code, a->outcome.len,
               a->has_state ? "with" : "no");
    printf("\n    answered: %s",
           d->has_answered ? answer_name(d->answer) : "not yet");
    if (a->what == 'B' && d->has_answered && d->answer == IDEM_REPLAY)
        printf(", status %d, code %ld, response of %u, age %u ms",
               a->reply->status, (long)a->reply->code,
               (unsigned)a->reply->response_len, a->reply->age_ms);
    if (a->claim.token)
        printf(", claim %llu, attempt %u", (unsigned long long)a->claim.token,
               (unsigned)a->claim.attempt);
    printf("%s%s\n", d->callback ? "; a callback failed" : "",
           d->medium.off ? "; the power went" : "");
}

/* The answers that a version allows. */
static inline void device_allowed(const device *d, const known *k,
                                  const version *v, int allowed[], int *count)
{
    static const int others[] = { IDEM_OK, IDEM_BUSY, IDEM_E_FENCED,
                                  IDEM_E_TOO_LARGE, IDEM_E_NOT_FOUND };
    const model *m = &d->model;
    const asked *a = &d->call;

    *count = 0;
    if (a->what != 'B') {
        for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
            version after = *v;
            if (version_answer(m, k, &after, a, others[i]))
                allowed[(*count)++] = others[i];
        }
        return;
    }
    if (version_unknown(m, k, v)) {
        allowed[(*count)++] = IDEM_EXECUTE;
        if (model_too_old(m, k, a))
            allowed[(*count)++] = IDEM_TOO_OLD;
        if (model_full(m, k))
            allowed[(*count)++] = IDEM_E_FULL;
    }
    if (!version_known(m, k, v))
        return;
    allowed[(*count)++] =
        v->fingerprint != a->fingerprint ? IDEM_MISMATCH
        : version_finished(v)            ? IDEM_REPLAY
        : !version_late(m, v)            ? IDEM_BUSY
        : v->attempts >= model_attempts(m) ? IDEM_EXHAUSTED : IDEM_RECOVER;
}

/* The promise that an answer breaks where another one is allowed. */
static inline const char *device_broken(int answer, int allowed)
{
    int granted = model_grants(answer);

    if (answer == allowed && answer == IDEM_REPLAY)
        return "S3: a response is given to its own key alone, byte for byte";
    if (answer == allowed)
        return "S1, S3, S6, S7: the answer is right, but not its claim, "
               "bytes, times or effect";
    if (answer == IDEM_REPLAY)
        return "S3: no response is given to another key or fingerprint";
    if (allowed == IDEM_MISMATCH)
        return "S3: IDEM_MISMATCH comes before any other answer";
    if (allowed == IDEM_REPLAY)
        return "S2: a recorded outcome is replayed until its retention ends";
    if (granted && allowed == IDEM_BUSY)
        return "S1: at most one claim on a key is current";
    if (allowed == IDEM_UNCERTAIN || answer == IDEM_UNCERTAIN)
        return "S4: after a loss, and only then, a claim is uncertain";
    if (allowed == IDEM_RECOVER || allowed == IDEM_EXHAUSTED)
        return "S4: an interrupted command is not executed as a new one";
    if (answer == IDEM_E_FENCED || allowed == IDEM_E_FENCED)
        return "S1: a claim that is current is obeyed, and no other";
    if (answer == IDEM_E_FULL || answer == IDEM_E_SPACE)
        return "S7: as many keys are admitted as the capacity is";
    if (allowed == IDEM_BUSY || answer == IDEM_BUSY)
        return "S6, L2: a lease lasts as long as it was granted, and no longer";
    return "S6, S10: an answer stays true until a call or time changes it";
}

/* What was recorded, if a replay differs; or its first byte that does. */
static inline void device_print_recorded(const asked *a, const version *v)
{
    const uint8_t *bytes = (const uint8_t *)a->buffer;
    size_t len = a->reply->response_len, at = 0;

    if (a->reply->status != v->status || a->reply->code != v->code ||
        len != v->len)
        printf("    recorded: status %u, code %ld, response of %u\n",
               v->status, (long)v->code, v->len);
    if (len != v->len || !bytes || len > a->buffer_size)
        return;
    while (at < len && bytes[at] == numbered_byte(v->number, at))
        at++;
    if (at < len)
        printf("    response: byte %u of %u is %02X; %02X was recorded\n",
               (unsigned)at, (unsigned)len, bytes[at],
               numbered_byte(v->number, at));
}

/* What the model allows, by each version of the key that may be true. */
static inline void device_print_allowed(const device *d)
{
    const known *k = &d->model.keys[d->call.key];
    const char *which = NULL;
    int allowed[8], count;

    if (d->lost || d->damaged || !strchr("BCRNXD", d->call.what))
        return;
    printf("    allowed:");
    for (unsigned i = 0; i < d->asked_of.count; i++) {
        const version *v = &d->asked_of.of[i];
        device_allowed(d, k, v, allowed, &count);
        for (int n = 0; n < count; n++) {
            if (d->uncertain_ms && model_grants(allowed[n]))
                allowed[n] = IDEM_UNCERTAIN;
            printf("%s%s", i + (unsigned)n ? ", " : " ",
                   answer_name(allowed[n]));
            if (!which || allowed[n] == d->answer)
                which = device_broken(d->answer, allowed[n]);
        }
        printf("%s", !version_known(&d->model, k, v)  ? " (unknown)"
                     : v->status == IDEM_COMPLETED    ? " (completed)"
                     : v->status == IDEM_FAILED       ? " (failed)"
                     : v->cut                         ? " (interrupted)"
                                                      : " (in progress)");
    }
    printf("%s\n", d->asked_of.any ? ", or anything" : "");
    for (unsigned i = 0; i < d->asked_of.count; i++)
        if (d->call.what == 'B' && d->has_answered &&
            d->answer == IDEM_REPLAY && version_finished(&d->asked_of.of[i]))
            device_print_recorded(&d->call, &d->asked_of.of[i]);
    if (which && d->has_answered)
        printf("    promise: %s\n", which);
}

/* What the latest call asked, what it was answered and what is allowed; then
   the device, and what the model holds possible of the key. */
static inline void device_print(const device *d)
{
    const known *k = &d->model.keys[d->call.key];
    const idem_info *e = &d->shown;

    if (d->model.keys && d->model.calls) {
        device_print_asked(d);
        device_print_allowed(d);
    }
    if (d->line)
        printf("    in \"%s\" before \"%s\"\n", d->line, d->at);
    device_print_configuration(d);
    if (!d->model.keys)
        return;
    device_print_set(d, "now", k, &k->now);
    if (k->now.count != k->next.count ||
        memcmp(k->now.of, k->next.of, k->now.count * sizeof *k->now.of) != 0)
        device_print_set(d, "after a restart", k, &k->next);
    for (unsigned i = 0; i < d->model.now.count; i++)
        printf("    state: number %u, %u bytes\n", d->model.now.of[i].number,
               d->model.now.of[i].len);
    if (strchr("LG", d->call.what))
        printf("    shown: status %d, attempts %u, length %u, age %u, left %u, "
               "code %ld, undelivered %d\n", e->status, e->attempts,
               (unsigned)e->response_len, e->age_ms, e->left_ms,
               (long)e->code, e->undelivered);
}

/* ------------------------------------------- >>checks  before, after a call */

/* True if every byte may read erased, so that nobody can see a torn write. */
static inline int device_is_blank(const device *d)
{
    const flash *f = &d->medium;

    for (uint32_t i = 0; i < f->size; i++)
        if (((f->bytes[i] ^ f->erased) & (uint8_t)~f->unstable[i]) ||
            (f->marks[i] & FLASH_TORN))
            return 0;
    return 1;
}

/* Bytes read differently from boot to boot. */
static inline int device_is_unstable(const device *d)
{
    for (uint32_t i = 0; i < d->medium.size; i++)
        if (d->medium.unstable[i])
            return 1;
    return 0;
}

/* The storage was used as it may be.  On blank storage a torn write cannot be
   seen; it is found out by failing. */
static inline void device_check_medium(device *d)
{
    flash *f = &d->medium;

    if (d->blank && f->violations == f->violations_of[FLASH_V_TORN])
        f->violations = f->violations_of[FLASH_V_TORN] = 0;
    if (f->violations)
        broken(flash_text(f), __FILE__, __LINE__);
}

/* Any number of cuts in a row is survived if no more than one of them leaves
   what reads differently from boot to boot (it is unstable).  Two of those may have
   been in one head, and lose something, if that is counted: even at an opening
   after one at which that head read well, and something was acknowledged.  One
   does where callbacks fail besides: sectors that were skipped are dead ones
   that another head may need.  So may a read that fails.  Nothing is known
   then. */
static inline int device_may_lose(const device *d)
{
    return d->reads_fail || d->unstable > (d->ever_failed ? 0 : UNSTABLE_SAFE);
}

/* Something was written, and acknowledged. */
static inline void device_harmless(device *d)
{
    d->harm = 0;
    d->unstable_before = d->unstable;
}

static inline void device_check_lost(device *d)
{
    if (!d->table->stats.lost || d->damaged)
        return;
    PROMISE(device_may_lose(d));
    d->lost = 1;
}

/* Erases in a call: one, and none after idle work.  In a boot's first: one, one
   more after a cut, a third after two cuts, and another one for each tear that
   read as a header at one boot only.  What failed, and was begun in vain, costs
   more; much later, too, if its header reads well only then. */
static inline void device_check_erases(const device *d)
{
    int first = d->erases == d->medium.erases - d->erases_before_boot;

    if (!d->config.storage || d->blank || d->boot_failed || d->damaged ||
        (first && (d->failed_before || (d->ever_failed && d->ever_unstable))))
        return;
    if (first)
        PROMISE(d->erases <= 1 + (d->harm < 2 ? d->harm : 2) + d->unstable);
    else
        PROMISE(d->erases <= (d->idle && d->call.what != 'M' ? 0u : 1u));
}

/* Looking through a large table takes long. */
static inline int device_checks(const device *d)
{
    uint32_t capacity = d->config.capacity;

    return d->model.calls % (1 + capacity / 30 + capacity / 500 * 100) == 0;
}

/* True if nothing was written after some memory. */
static inline int device_guarded(const void *memory, size_t size)
{
    for (unsigned i = 0; i < GUARD; i++)
        if (((const uint8_t *)memory)[size + i] != GUARD_BYTE)
            return 0;
    return 1;
}

/* The counters; an expired key that is dropped is one or the other. */
static inline void device_check_stats(device *d)
{
    const idem_stats *is = &d->table->stats;

    PROMISE(is->full == d->stats.full && is->fenced == d->stats.fenced);
    PROMISE(!memcmp(is->answers, d->stats.answers, sizeof is->answers));
    PROMISE(is->backwards == d->model.backwards);
    PROMISE(d->table->used + is->expired == d->balance);
    PROMISE(d->table->used <= d->config.capacity);
}

/* What must be so at any time. */
static inline void device_check(device *d)
{
    idem_table *t = d->table;

    PROMISE(device_guarded(d->memory, d->memory_size));
    if (d->damaged == JUDGED)
        return;
    device_check_medium(d);
    device_check_lost(d);
    PROMISE(!t->stats.skipped || d->blank || d->ever_failed ||
            d->medium.kind == FLASH_ECC || d->damaged);
    PROMISE(inside_clock(t) == (uint32_t)d->model.clock || d->damaged);
    if (!d->lost && device_checks(d))
        PROMISE(!idem_check(t));
}

/* How long a journal may be silent until the clock stands, ms */
#define SILENT_MAX UINT32_C(0xC0000000)

/* Begins a call of a kind on a key. */
static inline asked *device_before(device *d, char what, unsigned key)
{
    d->callback = 0;
    d->operations = d->progs = d->erases = d->reads = 0;
    d->model.calls++;
    d->calling = 1;
    memset(&d->call, 0, sizeof d->call);
    d->call.what = what;
    d->call.key = key;
    d->has_answered = 0;
    versions_copy(&d->asked_of, &d->model.keys[key].now);
    if (d->config.storage)
        d->model.stands =
            d->model.clock + SILENT_MAX -
            ((uint32_t)d->model.clock - inside_last_time(d->table));
    if (!strchr("DYS", what))
        model_tick(&d->model, d->now);
    return &d->call;
}

/* A claim is IDEM_UNCERTAIN for as long after a loss as it must be, and never
   else (S4). */
static inline void device_check_certain(device *d, int result)
{
    uint32_t passed = inside_clock(d->table) - d->uncertain_at;

    d->uncertain_at += passed;
    d->uncertain_ms -= passed < d->uncertain_ms ? passed : d->uncertain_ms;
    PROMISE(d->call.what != 'B' || !model_grants(result) ||
            (result == IDEM_UNCERTAIN) == (d->uncertain_ms > 0));
}

/* For how long that is, at an opening: a loss that it finds counts from now on,
   one that an earlier boot has found goes on, perhaps with a longer default. */
static inline void device_check_uncertain(device *d)
{
    idem_table *t = d->table;
    uint32_t retention = model_retention(&d->model);

    if (d->retention_most < retention)
        d->retention_most = retention;
    // A header that somebody has made up has what he likes.
    d->ever_lost |= t->stats.lost > 0 || d->damaged == JUDGED;
    PROMISE(idem_uncertain(t, &d->uncertain_ms, d->now) == IDEM_OK);
    PROMISE(!t->stats.lost || d->damaged == JUDGED ||
            (d->uncertain_ms >= retention &&
             d->uncertain_ms <= d->retention_most));
    PROMISE(d->ever_lost || !d->uncertain_ms);
    d->uncertain_at = inside_clock(t);
}

/* What the call adds to the counters. */
static inline void device_count(device *d, const asked *a, int result)
{
    if (a->what == 'B' && result >= 0)
        d->stats.answers[result]++;
    d->stats.full += a->what == 'B' && result == IDEM_E_FULL;
    d->stats.fenced += result == IDEM_E_FENCED;
    d->balance += a->what == 'B' && result == IDEM_EXECUTE;
    d->balance -= a->evicted;
    d->balance -= strchr("RX", a->what) && result == IDEM_OK;
}

/* What the report of a failure names from now on, until the next call. */
static inline void device_note(device *d, int answer)
{
    d->answer = answer;
    d->has_answered = 1;
}

/* What must hold after a call, whatever it has answered. */
static inline void device_after(device *d, const char *what, int result)
{
    asked *a = &d->call;

    device_note(d, result);
    trace("%u %s %c key %u: %s; clock %llu, %u programs, %u erases%s\n",
          d->model.calls, what, a->what, a->key, idem_text(result),
          (unsigned long long)d->model.clock, d->progs, d->erases,
          d->medium.off ? ", the power went" : "");
    if (d->callback)
        PROMISE(d->table->storage_error == d->callback);
    d->model.unread = d->callback != 0;
    if (d->medium.off) {
        device_check_medium(d);
        return;
    }
    d->calling = 0;
    device_check_erases(d);
    if (d->erases) {
        d->failed_before = d->boot_failed;
        d->boot_failed = d->fails;
    }
    d->idle = a->what == 'M' && result == IDEM_OK && !d->callback;
    // A relocation in idle time has no time.
    if (d->progs && a->what != 'M')
        d->last_time = d->model.clock;
    if (d->progs)
        d->tried = d->model.clock;
    if (d->config.storage)
        d->latest = d->model.clock -
                    ((uint32_t)d->model.clock - inside_last_time(d->table));
    device_count(d, a, result);
    device_check_certain(d, result);
    device_check(d);
    if (!d->lost && !d->damaged)
        device_check_stats(d);
}

/* After a call that writes no record, whatever comes. */
static inline void device_looked(device *d, const char *what, int result)
{
    device_after(d, what, result);
    PROMISE(!d->progs && !d->erases);
}

/* True if the call has failed, as it may, or nobody was there to hear what it
   answered; then it may be found done. */
static inline int device_failed(device *d, int result)
{
    if (d->medium.off)
        ;
    else if (result == IDEM_E_STORAGE)
        PROMISE(d->callback || d->sync_failed || d->damaged);
    else if (result == IDEM_E_SPACE)
        PROMISE(d->model.faulty || d->runs_out || d->blank || d->damaged);
    else
        return 0;
    PROMISE(d->medium.off || !d->call.evicted);
    model_in_flight(&d->model, &d->call);
    return 1;
}

/* The same of a device that was damaged: what is replayed is an outcome that
   the key has had since it was forgotten. */
static inline void device_judge_outcome(device *d, int result)
{
    const asked *a = &d->call;
    versions *had = &d->model.keys[a->key].now;
    int is_one = 0;

    if (a->what == 'X' && result == IDEM_OK)
        versions_clear(had);
    if (a->what == 'C')
        versions_add(had, &a->outcome);
    if (a->what != 'B' || result != IDEM_REPLAY || d->damaged == JUDGED)
        return;
    for (unsigned i = 0; i < had->count; i++)
        is_one |= version_has_reply(&had->of[i], a);
    PROMISE(is_one);
}

/* The call on a key has answered: does the model agree? */
static inline void device_judge(device *d, int result)
{
    asked *a = &d->call;

    if (d->damaged) {
        device_judge_outcome(d, result);
        return;
    }
    if (d->lost || device_failed(d, result))
        return;
    PROMISE(model_answered(&d->model, a, result));
    if (d->progs && !d->callback && a->what != 'M')
        model_wrote(&d->model);
    if (d->config.storage && model_changes(a, result)) {
        d->acknowledged = 1;
        if (d->config.durability == IDEM_EACH)
            device_harmless(d);
    }
}

static inline void device_answered(device *d, const char *what, int result)
{
    device_after(d, what, result);
    device_judge(d, result);
}

static inline void device_keep_old(device *d, const idem_claim *claim)
{
    if (claim->token)
        d->old[d->olds++ % OLD_CLAIMS] = *claim;
}

/* A claim was granted: one before it is used up. */
static inline void device_hold(device *d, unsigned key, const idem_claim *claim)
{
    device_keep_old(d, &d->held[key]);
    d->before[key] = d->held[key];
    d->held[key] = *claim;
}

/* ----------------------------------------------------------------- >>calls */

/* A begin that granted nothing writes nothing; but once in a boot what it
   relies on, the time if it is refused for want of room, and that a number is
   too old: not more often than epochs have begun and keys left, unless another
   number of its sender may be known.  Near the end of the tokens it looks for
   some in another sector, in vain. */
static inline void device_check_rewritten(device *d, unsigned key, int result,
                                          uint64_t last_time)
{
    const known *k = &d->model.keys[key];
    int records_time =
        result == IDEM_E_FULL && d->model.clock - last_time >= SILENCE_MS;

    d->may_leave += 2 * (result == IDEM_EXECUTE);
    if (model_grants(result) || result == IDEM_E_SPACE || d->medium.off ||
        d->damaged)
        return;
    if (d->progs && d->rewritten && k->number && result == IDEM_TOO_OLD) {
        records_time = model_has_other_number(&d->model, k);
        if (!records_time && d->may_leave) {
            records_time = 1;
            d->may_leave--;
        }
    }
    PROMISE(!d->progs || !d->rewritten || records_time || d->model.faulty ||
            d->blank);
    // But a rotation may read, also one that only erases, and fails.
    PROMISE(result != IDEM_REPLAY || d->progs || d->erases || !d->reads);
    d->rewritten |= d->progs > 0;
}

/* A begin: its request, and what is asked with it, defaults filled in. */
static inline asked *device_ask(device *d, idem_request *rq, unsigned key,
                                unsigned payload, uint8_t *id)
{
    const idem_config *c = &d->config;
    asked *a = device_before(d, 'B', key);

    device_name(d, rq, key, id);
    a->fingerprint = device_payload(d, rq, key, payload);
    a->lease_ms = rq->lease_ms ? rq->lease_ms
                  : c->lease_ms ? c->lease_ms : LEASE_DEFAULT;
    a->retention_ms = rq->retention_ms ? rq->retention_ms
                                       : model_retention(&d->model);
    a->reserved = rq->response_size ? rq->response_size : c->response_max;
    a->age_ms = rq->age_ms;
    memset(&d->reply, 0x5A, sizeof d->reply);
    memset(d->bytes, GUARD_BYTE, 2 * device_bytes(d));
    rq->buffer = d->bytes;
    rq->buffer_size = d->buffer_size < c->response_max ? d->buffer_size
                                                       : c->response_max;
    a->buffer = rq->buffer;
    a->buffer_size = rq->buffer_size;
    a->reply = &d->reply;
    return a;
}

/* True if of a response all was copied that fits, and else no byte. */
static inline int device_copied(const device *d, const idem_request *rq,
                                int result)
{
    size_t len = d->reply.response_len;
    int fits = result == IDEM_REPLAY && rq->buffer && len <= rq->buffer_size;

    return device_guarded(rq->buffer ? rq->buffer : d->bytes, fits ? len : 0);
}

/* idem_begin; every other time in a burst, between requests that name nothing
   and are refused. */
static inline int device_ask_table(device *d, idem_claim *claim,
                                   const idem_request *rq)
{
    enum { IT = 1, BURST = 3 };
    static const idem_claim none;
    const idem_request requests[BURST] = { [IT] = *rq };
    idem_reply replies[BURST];
    int answers[BURST], result;

    if (d->model.calls % 2)
        return idem_begin(d->table, claim, &d->reply, rq, d->now);
    memset(replies, 0x5A, sizeof replies);
    result = idem_begin_many(d->table, answers, replies, requests, BURST,
                             d->now);
    PROMISE(answers[0] == IDEM_E_ARG && answers[2] == IDEM_E_ARG);
    PROMISE(!replies[0].claim.token && !replies[2].claim.token);
    PROMISE(result == IDEM_OK || result == answers[IT]);
    d->reply = replies[IT];
    *claim = answers[IT] == IDEM_REPLAY ? none : replies[IT].claim;
    return answers[IT];
}

/* Asks for a key with one of the payloads; *more has leases and so on.  The
   claim is zero unless it was granted. */
static inline int device_begin(device *d, idem_claim *claim, unsigned key,
                               unsigned payload, const idem_request *more)
{
    uint8_t id[ID_MAX];
    idem_request rq = *more;
    const idem_reply *reply = &d->reply;
    asked *a = device_ask(d, &rq, key, payload, id);
    uint32_t evicted = d->table->stats.evicted;
    uint64_t last_time = d->last_time;
    int result;

    memset(claim, 0x5A, sizeof *claim);
    result = device_ask_table(d, claim, &rq);
    a->claim = *claim;
    a->evicted = d->table->stats.evicted - evicted;
    device_answered(d, "begin", result);
    PROMISE(device_copied(d, &rq, result));
    PROMISE(!claim->token == !model_changes(a, result));
    if (claim->token) {
        PROMISE(!reply->status && !reply->response_len && !reply->code);
        PROMISE(!reply->age_ms && !reply->retry_after_ms);
        PROMISE(memcmp(claim, &reply->claim, sizeof *claim) == 0);
        device_hold(d, key, claim);
    }
    PROMISE(claim->token || (!claim->slot && !claim->attempt));
    device_check_rewritten(d, key, result, last_time);
    return result;
}

/* Makes an outcome that no other call has: how long, and what else. */
static inline void device_outcome(device *d, idem_outcome *out,
                                  const idem_outcome *how)
{
    asked *a = &d->call;
    version *v = &a->outcome;

    *out = *how;
    v->status = how->failed ? IDEM_FAILED : IDEM_COMPLETED;
    v->len = (uint16_t)how->response_len;
    v->number = ++d->number;
    v->code = how->code;
    v->undelivered = how->confirm != 0;
    if (how->response) {
        numbered_own.number = v->number;
        memcpy(numbered_own.bytes, how->response, v->len);
    }
    numbered_fill(d->bytes, v->len, v->number);
    out->response = d->bytes;
    if (!how->state)
        return;
    a->has_state = 1;
    a->state.len = (uint16_t)how->state_len;
    a->state.number = d->number;
    a->state.call = d->model.calls;
    a->state.key = a->key;
    numbered_fill(d->state_bytes, how->state_len, d->number);
    out->state = d->state_bytes;
}

/* A call with a claim: C complete, R release, N renew, D delivered.  Of them
   only complete has an outcome, and renew a lease. */
static inline int device_use(device *d, char what, const idem_claim *claim,
                             unsigned key, const idem_outcome *how,
                             uint32_t lease_ms)
{
    asked *a = device_before(d, what, key);
    idem_outcome out;
    int result;

    a->claim = *claim;
    a->lease_ms = lease_ms;
    if (what == 'C')
        device_outcome(d, &out, how);
    switch (what) {
    case 'C': result = idem_complete(d->table, claim, &out, d->now); break;
    case 'R': result = idem_release(d->table, claim, d->now); break;
    case 'N':
        // The default is asked for by nothing.
        if (lease_ms == d->config.lease_ms)
            lease_ms = 0;
        result = idem_renew(d->table, claim, lease_ms, d->now);
        break;
    default:  result = idem_delivered(d->table, claim);
    }
    device_answered(d, "use", result);
    PROMISE(what != 'N' || (!d->progs && !d->erases));
    if (result == IDEM_OK && strchr("CR", what))
        device_keep_old(d, &a->claim);
    return result;
}

// What the handler of idem_run does, and its arguments.
typedef struct device_job {
    device *d;
    const idem_outcome *how;
    int returns;                // IDEM_HANDLED: with *how
    uint32_t ms;                // that it takes
    uint32_t evicted;           // before
    int answer;                 // IDEM_OK: it was not called
} device_job;

// idem_run asks for the time of no device.
static const device *device_running;

static inline uint32_t device_now(void)
{
    return device_running->now;
}

/* An outcome that cannot be recorded becomes a failure: the effect has
   happened. */
static inline void device_spoilt(device *d)
{
    known *k = &d->model.keys[d->call.key];
    version *v = &d->call.outcome, was;

    if (!model_only(k))
        return;
    was = *model_only(k);
    if (!version_use(&d->model, k, &was, &d->call, IDEM_E_TOO_LARGE))
        return;
    d->spoilt++;
    model_tick(&d->model, d->now);              // for the second completion
    v->status = IDEM_FAILED;
    v->len = 0;
    v->code = IDEM_CODE_INVALID;
    d->call.has_state = 0;
    d->call.state.len = 0;
}

static inline int device_handle(idem_job *job)
{
    device_job *j = (device_job *)job->ctx;
    device *d = j->d;
    unsigned key = d->call.key;
    asked *a;

    j->answer = job->answer;
    device_note(d, j->answer);
    d->call.claim = *job->claim;
    d->call.evicted = d->table->stats.evicted - j->evicted;
    device_count(d, &d->call, j->answer);
    device_check_certain(d, j->answer);
    device_judge(d, j->answer);
    device_hold(d, key, job->claim);
    if (d->progs)
        d->tried = d->last_time = d->model.clock;
    d->now += j->ms;
    a = device_before(d, j->returns == IDEM_HANDLED    ? 'C'
                         : j->returns == IDEM_NOT_DONE ? 'R' : 'K', key);
    a->claim = *job->claim;
    a->reply = &d->reply;
    if (j->returns == IDEM_HANDLED) {
        device_outcome(d, &job->outcome, j->how);
        device_spoilt(d);
    }
    return j->returns;
}

/* A begin, and if it is granted what follows, in one call. */
static inline void device_run(device *d, unsigned key, unsigned payload,
                              const idem_request *more,
                              const idem_outcome *how, int returns, uint32_t ms)
{
    uint8_t id[ID_MAX];
    idem_request rq = *more;
    asked *a = device_ask(d, &rq, key, payload, id);
    device_job j = { d, how, returns, ms, d->table->stats.evicted, IDEM_OK };
    int result, ended;
    int as_returned = returns == IDEM_HANDLED    ? IDEM_DONE
                      : returns == IDEM_NOT_DONE ? IDEM_RELEASED : IDEM_BUSY;

    // The response is in the buffer already, or elsewhere, or there is none.
    if (d->number % 3)
        rq.buffer = d->number % 3 > 1 ? NULL : d->bytes + device_bytes(d);
    a->buffer = rq.buffer;
    device_running = d;
    result = idem_run(d->table, &d->reply, &rq, device_handle, &j, device_now);
    a->claim = d->reply.claim;
    if (!j.answer) {
        device_answered(d, "run", result);
        PROMISE(device_copied(d, &rq, result));
        return;
    }
    d->may_leave += 2 * (j.answer == IDEM_EXECUTE);
    ended = result == as_returned && returns != IDEM_CANNOT_TELL ? IDEM_OK
                                                                 : result;
    device_answered(d, "ran", ended);
    if (ended != IDEM_OK)
        return;
    a->buffer = rq.buffer;
    a->buffer_size = rq.buffer_size;
    PROMISE(returns != IDEM_HANDLED ||
            version_is_reply(&d->model, &d->model.keys[key].now.of[0], a));
    PROMISE(returns != IDEM_HANDLED || !rq.buffer || rq.buffer == d->bytes ||
            device_copied(d, &rq, IDEM_REPLAY));
    device_keep_old(d, &a->claim);
}

static inline int device_forget(device *d, unsigned key)
{
    uint8_t id[ID_MAX];
    idem_request rq;
    version *v = model_only(&d->model.keys[key]);
    int result;

    device_before(d, 'X', key);
    device_name(d, &rq, key, id);
    if (v)
        device_keep_old(d, &v->claim);
    result = idem_forget(d->table, &rq, d->now);
    if (v && result != IDEM_OK && v->claim.token)
        memset(&d->old[--d->olds % OLD_CLAIMS], 0, sizeof d->old[0]);
    device_answered(d, "forget", result);
    return result;
}

/* The sender of a key is forgotten. */
static inline int device_forget_sender(device *d, unsigned key)
{
    uint8_t id[ID_MAX];
    idem_request rq = { 0 };
    unsigned scope = key % d->scopes;
    uint32_t before;
    int result;

    // Without senders it is a request without a key.
    device_before(d, d->config.senders ? 'Q' : 'S', key);
    device_name(d, &rq, key, id);
    rq.key = NULL;
    rq.key_len = 0;
    rq.epoch = rq.sequence = 0;
    before = d->table->used + d->table->stats.expired;
    result = idem_forget(d->table, &rq, d->now);
    if (result == IDEM_OK)
        d->balance -= before - d->table->used - d->table->stats.expired;
    device_after(d, "forget the sender", result);
    if (!d->config.senders)
        PROMISE(result == IDEM_E_ARG);
    if (d->damaged && result == IDEM_OK)
        for (unsigned i = scope; i < d->model.count; i += d->scopes)
            versions_clear(&d->model.keys[i].now);
    if (!d->config.senders || d->damaged || d->lost)
        return result;
    if (device_failed(d, result)) {
        model_may_have_forgot(&d->model, scope);
        return result;
    }
    PROMISE(model_forgot(&d->model, scope, result));
    if (result == IDEM_OK && d->config.storage) {
        model_wrote(&d->model);
        d->acknowledged = 1;
        if (d->config.durability == IDEM_EACH)
            device_harmless(d);
    }
    return result;
}

/* A claim that is used up, or was never granted, is fenced. */
static inline void device_try(device *d, const idem_claim *claim, unsigned how)
{
    idem_outcome out = { 0 };
    int result;

    device_before(d, 'F', 0);
    switch (how % 3) {
    case 0: result = idem_complete(d->table, claim, &out, d->now); break;
    case 1: result = idem_release(d->table, claim, d->now); break;
    default: result = idem_renew(d->table, claim, 1000, d->now);
    }
    device_looked(d, "fenced", result);
    PROMISE(result == IDEM_E_FENCED ||
            (result == IDEM_E_STORAGE && d->sync_failed) || d->medium.off);
}

/* One step of idle work. */
static inline int device_maintain(device *d)
{
    int result;

    device_before(d, 'M', 0);
    result = idem_maintain(d->table, d->now);
    device_after(d, "maintain", result);
    PROMISE(device_failed(d, result) || result == IDEM_OK ||
            result == IDEM_MORE);
    return result;
}

static inline int device_sync(device *d)
{
    int result;

    device_before(d, 'Y', 0);
    result = idem_sync(d->table);
    device_looked(d, "sync", result);
    if (device_failed(d, result))
        return result;
    PROMISE(result == IDEM_OK);
    if (d->model.unsynced) {
        device_harmless(d);
        d->acknowledged = 1;
    }
    model_synced(&d->model);
    return result;
}

/* Time that the tick missed. */
static inline void device_elapse(device *d, uint32_t ms)
{
    device_before(d, 'S', 0);
    model_advance(&d->model, ms);
    PROMISE(idem_elapse(d->table, ms) == IDEM_OK);
    device_looked(d, "elapse", IDEM_OK);
}

/* ---------------------------------------------------------------- >>looking */

/* The whole of a response, or a piece, is as it must be. */
static inline void device_look_at_response(device *d, unsigned key, size_t at,
                                           size_t most)
{
    version *v = model_only(&d->model.keys[key]);
    size_t len = most, expected = most;
    int result;

    if (!v || !version_finished(v) || !v->claim.token)
        return;
    if (at >= v->len)
        expected = 0;
    else if (expected > v->len - at)
        expected = v->len - at;
    device_before(d, 'S', key);
    memset(d->bytes + most, GUARD_BYTE, GUARD);
    result = idem_response(d->table, d->bytes, &len, &v->claim, at);
    device_looked(d, "response", result);
    PROMISE(device_guarded(d->bytes, most));
    if (result == IDEM_E_NOT_FOUND)
        PROMISE(version_unknown(&d->model, &d->model.keys[key], v));
    else
        PROMISE(result == IDEM_OK && len == expected &&
                numbered_is(d->bytes, at, len, v->number));
}

static inline int device_look(device *d, unsigned key)
{
    uint8_t id[ID_MAX], found[ID_MAX];
    idem_request rq = { 0 };
    idem_info e, before;
    int result, fits = d->model.calls % 4 > 0;

    memset(&e, 0x5A, sizeof e);
    memset(found, GUARD_BYTE, sizeof found);
    device_before(d, 'L', key);
    device_name(d, &rq, key, id);
    e.id = found;
    e.id_size = rq.scope_len + (rq.key ? rq.key_len : 8) - !fits;
    before = e;
    result = idem_find(d->table, &e, &rq, d->now);
    device_looked(d, "find", result);
    PROMISE(result == IDEM_OK || (result == IDEM_E_NOT_FOUND &&
                                  !memcmp(&e, &before, sizeof e)));
    d->shown = e;
    PROMISE(result != IDEM_OK || (fits ? device_named(d, &e) == key
                                       : device_guarded(found, 0)));
    PROMISE(d->damaged || model_shown(&d->model, &d->model.keys[key],
                        result == IDEM_OK ? &e : NULL));
    return result;
}

static inline void device_look_at_state(device *d)
{
    size_t len = d->config.state_max, less;
    int result;

    device_before(d, 'S', 0);
    result = idem_state(d->table, d->state_bytes, &len);
    device_looked(d, "state", result);
    PROMISE(result == IDEM_OK);
    PROMISE(model_state_shown(&d->model, d->state_bytes, len));
    if (!len)
        return;
    // Into less no byte is copied.
    less = len - 1;
    memset(d->state_bytes, GUARD_BYTE, GUARD);
    PROMISE(idem_state(d->table, d->state_bytes, &less) == IDEM_E_TOO_LARGE);
    PROMISE(less == len && device_guarded(d->state_bytes, 0));
}

/* The undelivered ones, each once: the oldest completion comes first.  One in
   `deliver` is delivered on the way, if that is not 0. */
static inline void device_look_at_pending(device *d, unsigned deliver)
{
    uint8_t id[ID_MAX];
    idem_info e = { .id = id, .id_size = sizeof id };
    uint32_t before = d->model.calls, pending = d->table->pending;
    uint64_t latest = 0, now;
    unsigned key, n = 0;
    int result;

    for (;;) {
        const version *v;
        device_before(d, 'L', 0);
        result = idem_pending(d->table, &e, d->now);
        device_looked(d, "pending", result);
        if (result == IDEM_E_NOT_FOUND)
            break;
        PROMISE(result == IDEM_OK && e.undelivered && n++ < pending);
        key = device_named(d, &e);
        PROMISE(model_shown(&d->model, &d->model.keys[key], &e));
        v = model_only(&d->model.keys[key]);
        // Of those of one millisecond a restart may change the order.
        now = !v ? latest : model_exact(&d->model) ? v->number : v->from;
        PROMISE(now >= latest);
        latest = now;
        if (deliver && (n + before) % deliver == 0)
            device_use(d, 'D', &e.claim, key, NULL, 0);
        if (d->medium.off || d->lost)
            return;
    }
    for (key = 0; key < d->model.count; key++)
        PROMISE(d->model.keys[key].shown > before ||
                !model_undelivered(&d->model, &d->model.keys[key]));
}

/* All that are known, each once. */
static inline void device_look_at_all(device *d)
{
    uint8_t id[ID_MAX];
    idem_info e = { .id = id, .id_size = sizeof id };
    unsigned count = 0, key;
    int result;

    device_before(d, 'L', 0);
    while ((result = idem_next(d->table, &e, d->now)) == IDEM_OK) {
        PROMISE(++count <= d->config.capacity);
        key = device_named(d, &e);
        PROMISE(d->model.keys[key].shown < d->model.calls);
        PROMISE(model_shown(&d->model, &d->model.keys[key], &e));
        model_tick(&d->model, d->now);
    }
    device_looked(d, "next", result);
    PROMISE(result == IDEM_E_NOT_FOUND);
    for (key = 0; key < d->model.count; key++)
        PROMISE(d->model.keys[key].shown == d->model.calls ||
                model_known(&d->model, &d->model.keys[key], 0) < KNOWN);
}

/* A call with the time alone. */
static inline void device_tick(device *d, uint32_t now)
{
    uint32_t horizon;

    d->now = now;
    device_before(d, 'L', 0);
    PROMISE(idem_horizon(d->table, &horizon, now) == IDEM_OK);
    device_looked(d, "horizon", IDEM_OK);
    if (model_exact(&d->model))
        PROMISE(horizon == model_horizon(&d->model));
}

/* --------------------------------------------------------------- >>restarts */

/* Opening reads no byte often, a little more often where some are unstable. */
static inline void device_check_reads(const device *d)
{
    const flash *f = &d->medium;
    uint8_t most = 0, unstable = 0;

    for (uint32_t i = 0; i < f->size; i++) {
        most = d->read_map[i] > most ? d->read_map[i] : most;
        unstable |= f->unstable[i];
    }
    PROMISE(most <= READS_OPENING + (unstable ? READS_TORN : 0));
}

/* Opens the table: changes nothing, reads no byte often, finds no loss. */
static inline int device_open(device *d)
{
    flash *f = &d->medium;
    int result;

    memset(d->memory, 0xA5, d->memory_size);
    memset(d->table, 0x5A, sizeof *d->table);
    d->operations = 0;
    d->callback = 0;
    d->erases_before_boot = f->erases;
    d->blank = d->config.storage && !d->acknowledged && device_is_blank(d);
    d->opening = 1;
    f->read_map = d->read_map;
    if (d->read_map)
        memset(d->read_map, 0, d->medium.size);
    result = idem_open(d->table, &d->config, d->memory, d->memory_size, d->now);
    f->read_map = NULL;
    d->opening = 0;
    trace("open: %s\n", idem_text(result));
    if (d->read_map && !d->callback)
        device_check_reads(d);
    // Erases that failed half way, before anything was acknowledged, look like
    // somebody else's data, or do not read.
    if (result != IDEM_OK && d->ever_failed && !d->acknowledged) {
        result = idem_format(d->table, &d->config, d->memory, d->memory_size,
                             d->now);
        d->model.token = 0;
        memset(d->old, 0, sizeof d->old);
        d->erases_before_boot = f->erases;
    }
    PROMISE(result == IDEM_OK || d->damaged);
    d->model.tick = d->now;
    d->model.backwards = 0;
    memset(&d->stats, 0, sizeof d->stats);
    d->balance = d->table->used + d->table->stats.expired;
    d->last_time = d->model.clock;
    d->sync_failed = d->rewritten = d->idle = d->calling = 0;
    d->may_leave = d->config.capacity;
    d->failed_before |= d->boot_failed;
    d->boot_failed = d->fails;
    if (result == IDEM_OK)
        device_check_uncertain(d);
    device_check_lost(d);
    PROMISE(d->lost || result != IDEM_OK || d->damaged == JUDGED ||
            !idem_check(d->table));
    return result;
}

/* The power has gone, or goes now, as far as the medium knows. */
static inline void device_stop_medium(device *d)
{
    flash *f = &d->medium;
    void (*watch)(void *, const flash *, const flash_op *) = f->watch;

    f->watch = NULL;
    for (int kind = 0; kind < FLASH_CALLS; kind++)
        flash_fail(f, kind, 0, 0, 0);
    // An erase that goes on is torn too.
    if (d->erasing) {
        f->off = 0;
        flash_cut(f, 0, f->ops % 7);
        flash_erase(f, d->erasing - 1);
    }
    d->erasing = 0;
    // What a restart has read of a cache may not be lost later.
    if (f->durable && !f->off)
        flash_off(f, 0);
    flash_boot(f);
    f->watch = watch;
}

/* Makes what is known of a device that of another, but for the medium. */
static inline void device_follow(device *to, const device *from)
{
    known *own = to->model.keys;

    memcpy(&to->model, &from->model,
           offsetof(device, memory) - offsetof(device, model));
    to->model.keys = own;
    to->model.config = &to->config;
    memcpy(own, from->model.keys, from->model.count * sizeof *own);
    memcpy(to->held, from->held, from->model.count * sizeof *to->held);
    to->lost = 0;
}

/* How far a scope's numbers are refused, which the next boot will know. */
static inline uint64_t device_floor(const device *d, unsigned scope)
{
    idem_request rq = { 0 };
    uint8_t id[ID_MAX];

    device_name(d, &rq, scope, id);
    id[rq.scope_len] = 0;
    return inside_saved_floor(d->table, (const char *)id);
}

/* What is recorded, if this boot has rewritten what it found, and its latest
   call is known to have ended; a claim that failed may be found, and with it
   that it took over an entry.  The configuration may be the next boot's. */
static inline void device_keep_floors(device *d)
{
    uint32_t next = d->config.senders;
    int is_certain = !d->medium.off && !d->lost && !d->damaged &&
                     !d->model.faulty && d->model.wrote &&
                     d->config.durability == IDEM_EACH;

    d->config.senders = d->senders;
    for (unsigned i = 0; i < d->scopes; i++)
        d->floors[i] = is_certain ? device_floor(d, i) : 0;
    d->config.senders = next;
}

/* What was refused for good is refused by each later boot (S10), until a call
   takes its sender's entry over. */
static inline void device_check_floors(const device *d)
{
    for (unsigned i = 0; i < d->scopes && d->config.senders; i++)
        PROMISE(device_floor(d, i) >= d->floors[i]);
}

/* Before a restart, with or without a cut, of this table. */
static inline void device_stop(device *d)
{
    trace("restart\n");
    if (!d->config.storage)
        return;
    device_keep_floors(d);
    if (d->medium.off) {
        d->harm++;
        if (d->model.clock > d->cut_at)
            d->cut_at = d->model.clock;
    }
    device_stop_medium(d);
    model_stops(&d->model);
}

/* No claim of this boot is current in the next. */
static inline void device_keep_claims(device *d)
{
    size_t size = d->model.count * sizeof *d->held;

    memcpy(d->before, d->held, size);
    memset(d->held, 0, size);
    for (unsigned i = 0; i < d->model.count && i < OLD_CLAIMS / 2; i++) {
        const version *v = model_only(&d->model.keys[i]);
        if (v && v->status == IDEM_IN_PROGRESS && !v->cut)
            device_keep_old(d, &v->claim);
    }
}

/* The next boot, which finds the time again; without storage, nothing. */
static inline int device_start(device *d)
{
    uint64_t before = d->model.faulty ? d->tried : d->latest, clock;
    uint32_t calls = d->model.calls;
    int result;

    device_keep_claims(d);
    d->reads_fail = d->fails = 0;
    result = device_open(d);
    if (d->lost || d->damaged)
        return result;
    if (result == IDEM_OK && d->config.storage)
        device_check_floors(d);
    clock = before + (uint32_t)(inside_clock(d->table) - (uint32_t)before);
    if (clock > before && clock > d->cut_at)
        clock -= UINT64_C(1) << 32;
    if (d->config.storage) {
        PROMISE(clock >= d->model.written);
        // It may be 2^32 ms less, and the table's clock does not show: nothing
        // is known then.
        if (clock - d->model.written >= UINT64_C(1) << 32) {
            d->lost = 1;
            return result;
        }
        PROMISE(clock <= before || clock <= d->cut_at);
        model_starts(&d->model, clock);
        d->latest = d->tried = clock;
        // After failures skipped sectors are still there.
        if (!d->ever_failed || !device_is_unstable(d))
            d->unstable -= d->unstable_before;
        d->unstable_before = 0;
        return result;
    }
    model_init(&d->model, &d->config, d->model.keys, d->model.count,
               d->scopes);
    d->model.tick = d->now;
    d->model.calls = d->model.opened_at = calls;
    memset(d->old, 0, sizeof d->old);
    return result;
}

#endif /* DEVICE_H */
