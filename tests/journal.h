/* SPDX-License-Identifier: 0BSD */
/*
 * A device: a table whose journal is on a simulated medium, and the truth about
 * it: what a table must answer, by the manual alone, when nothing is damaged.
 * Every call through here is compared with that, and with what it may cost.
 *
 * The truth knows one thing of how a journal works: after a restart the logical
 * clock goes on from the newest time that was written, and every program writes
 * the time.  And one that a journal may do: a claim that a restart cut short
 * counts, from the next restart on, from the first program between the two; so
 * its key may be remembered longer than it must.
 *
 * To be included after idem.h, fixture.h and flash.h.
 */
#ifndef IDEM_JOURNAL_TESTS_H
#define IDEM_JOURNAL_TESTS_H

#include "ready.h"

enum { KEYS = 28, RESPONSES = 160, STATES = 24 };

#define ENDLESS UINT64_MAX

// A medium, and how a table is told of it.
typedef struct geometry {
    const char *name;
    int      kind;              // as in struct flash
    uint32_t granule, sector_size;
    uint32_t sector_count;      // or what idem_open asks for, if that is more
    uint8_t  erased;
    uint8_t  in_ram;
    uint8_t  verify;
    uint8_t  no_sync;           // the storage has no such callback
} geometry;

// What must be remembered of a key.
typedef struct known {
    int      status;            // 0: unknown
    int      payload;           // which of several it was begun with
    unsigned attempts;
    uint64_t token;             // of its latest claim
    int      held;              // in progress: claimed in this boot
    uint64_t lease_end;         // in progress; or ENDLESS
    uint64_t slack;             // so much longer it may be remembered, or not
    uint64_t completed;
    uint64_t retention;
    uint16_t reserved;
    unsigned len;
    uint8_t  response[RESPONSES];
    int32_t  code;
    int      owed;
    idem_claim claim;           // the latest that was granted
} known;

typedef struct truth {
    uint64_t clock;             // logical, of the latest call
    uint64_t written;           // logical, of the latest program
    uint64_t opened, wrote;     // logical, of this boot's opening, and of its
    int      has_written;       // first program
    uint64_t token;             // the largest of all boots
    size_t   state_len;
    uint8_t  state[STATES];
    known    keys[KEYS];
    known    below[KEYS];       // what a volatile claim has replaced
} truth;

typedef struct device {
    fixture  f;                 // first, so that it is a test's fixture too
    flash    medium;
    idem_storage storage;
    void    *medium_memory;
    uint8_t *read_map;
    uint8_t *durable;
    uint16_t *stamps;
    uint32_t now;               // the tick
    uint32_t shown;             // the tick that the table was shown last
    truth    truth;
    int      payload;           // what the next begin is about
    int      idle;              // there is idle time after every call
    int      unsure;            // faults: IDEM_E_STORAGE may be an answer
    int      still;             // time stands still
    known    tried;             // what the latest call refused so would have
    unsigned tried_key;         // made of a key,
    size_t   tried_state_len;   // and of the state
    uint8_t  tried_state[STATES];
    uint32_t polls;             // split erase: how often it says "not yet"
    uint32_t polled, polls_left;
    int      erasing;           // a split erase is under way, of this
    uint32_t erasing_sector;
    uint32_t seed;
    // Of the latest call
    uint32_t reads, progs, erases, read_bytes;
} device;

/* ------------------------------------------------------------------- medium */

static inline uint32_t device_sectors(device *d)
{
    idem_storage storage = d->storage;
    idem_config config = d->f.config;
    uint32_t needed;
    void *memory;

    storage.sector_count = 1;
    config.storage = &storage;
    assert_int_equal(idem_open(&d->f.table, &config, NULL, 0, 0),
                     IDEM_E_MEMORY);
    memory = malloc(d->f.table.needed);
    assert_non_null(memory);
    assert_int_equal(idem_open(&d->f.table, &config, memory, d->f.table.needed,
                               0), IDEM_E_SPACE);
    needed = (uint32_t)d->f.table.needed;
    free(memory);
    return needed;
}

static inline void device_free_medium(device *d)
{
    free(d->medium_memory);
    free(d->read_map);
    free(d->durable);
    free(d->stamps);
    d->medium_memory = NULL;
    d->read_map = d->durable = NULL;
    d->stamps = NULL;
}

/* Gives the device a blank medium, as large as d->f.config needs it if the
   geometry does not say.  False if no number of sectors would do. */
static inline int device_medium(device *d, const geometry *g)
{
    flash *m = &d->medium;

    assert_int_equal(m->violations, 0);
    device_free_medium(d);
    memset(m, 0, sizeof *m);
    m->kind = g->kind;
    m->prog_size = g->granule;
    m->sector_size = g->sector_size;
    m->erased = g->erased;
    m->seed = 1;
    d->f.config.in_ram |= g->in_ram;
    d->f.config.storage = &d->storage;
    memset(&d->storage, 0, sizeof d->storage);
    d->storage.ctx = m;
    d->storage.read = flash_read;
    d->storage.prog = flash_prog;
    d->storage.erase = g->kind == FLASH_INPLACE ? NULL : flash_erase;
    d->storage.sync = g->no_sync ? NULL : flash_sync;
    d->storage.sector_size = g->sector_size;
    d->storage.prog_size = (uint16_t)g->granule;
    d->storage.erased = g->erased;
    d->storage.verify = g->verify;
    m->sector_count = device_sectors(d);
    if (!m->sector_count)
        return 0;
    if (m->sector_count < g->sector_count)
        m->sector_count = g->sector_count;
    d->storage.sector_count = m->sector_count;
    d->medium_memory = malloc(FLASH_MEMORY(m->sector_size, m->sector_count));
    d->read_map = (uint8_t *)malloc((size_t)m->sector_size * m->sector_count);
    assert_non_null(d->medium_memory);
    assert_non_null(d->read_map);
    m->read_map = d->read_map;
    assert_int_equal(flash_init(m, d->medium_memory), 0);
    memset(&d->truth, 0, sizeof d->truth);
    return 1;
}

/* Puts a cache that loses what was not synced before the medium, in place. */
static inline void device_cache(device *d)
{
    flash *m = &d->medium;
    size_t size = (size_t)m->sector_size * m->sector_count;

    d->durable = (uint8_t *)malloc(size);
    d->stamps = (uint16_t *)malloc(size * sizeof *d->stamps);
    assert_non_null(d->durable);
    assert_non_null(d->stamps);
    m->durable = d->durable;
    m->stamps = d->stamps;
    assert_int_equal(flash_init(m, d->medium_memory), 0);
}

/* The callbacks of a medium whose erases take time.  While one is under way,
   nothing of its sector is touched. */
static inline int split_read(void *ctx, uint32_t at, void *dst, uint32_t len)
{
    device *d = (device *)ctx;

    assert_false(d->erasing && at / d->medium.sector_size == d->erasing_sector);
    return flash_read(&d->medium, at, dst, len);
}

static inline int split_prog(void *ctx, uint32_t at, const void *src,
                             uint32_t len)
{
    device *d = (device *)ctx;

    assert_false(d->erasing && at / d->medium.sector_size == d->erasing_sector);
    return flash_prog(&d->medium, at, src, len);
}

static inline int split_erase(void *ctx, uint32_t sector)
{
    device *d = (device *)ctx;
    int result = flash_erase(&d->medium, sector);

    assert_false(d->erasing);
    if (result == 0) {
        d->erasing = 1;
        d->erasing_sector = sector;
        d->polls_left = d->polls;
    }
    return result;
}

static inline int split_erasing(void *ctx)
{
    device *d = (device *)ctx;

    d->polled++;
    assert_true(d->erasing);
    if (d->polls_left) {
        d->polls_left--;
        return 1;
    }
    d->erasing = 0;
    return 0;
}

static inline int split_sync(void *ctx)
{
    return flash_sync(&((device *)ctx)->medium);
}

static inline void device_split(device *d, uint32_t polls)
{
    d->storage.ctx = d;
    d->storage.read = split_read;
    d->storage.prog = split_prog;
    d->storage.erase = split_erase;
    d->storage.erasing = split_erasing;
    if (d->storage.sync)
        d->storage.sync = split_sync;
    d->polls = polls;
}

static inline uint8_t *device_image(const device *d)
{
    uint8_t *image = (uint8_t *)malloc(d->medium.size);

    assert_non_null(image);
    memcpy(image, d->medium.bytes, d->medium.size);
    return image;
}

/* -------------------------------------------------------------------- truth */

static inline uint64_t known_due(const known *k)
{
    if (k->status != IDEM_IN_PROGRESS)
        return k->completed + k->retention;
    return k->lease_end == ENDLESS ? ENDLESS : k->lease_end + k->retention;
}

/* The key's status as the table must see it now. */
static inline int truth_status(const truth *t, unsigned key)
{
    const known *k = &t->keys[key];

    return k->status && t->clock < known_due(k) ? k->status : 0;
}

static inline unsigned truth_live(const truth *t)
{
    unsigned count = 0;

    for (unsigned k = 0; k < KEYS; k++)
        count += truth_status(t, k) != 0;
    return count;
}

/* What idem_begin must answer. */
static inline int truth_answer(const device *d, unsigned key)
{
    const truth *t = &d->truth;
    const known *k = &t->keys[key];
    unsigned attempts = d->f.config.max_attempts;

    if (!truth_status(t, key))
        return truth_live(t) == d->f.config.capacity ? IDEM_E_FULL
                                                     : IDEM_EXECUTE;
    if (k->payload != d->payload)
        return IDEM_MISMATCH;
    if (k->status != IDEM_IN_PROGRESS)
        return IDEM_REPLAY;
    if (t->clock < k->lease_end)
        return IDEM_BUSY;
    return k->attempts >= (attempts ? attempts : 3) ? IDEM_EXHAUSTED
                                                    : IDEM_RECOVER;
}

/* All claims are cut short, and the clock goes back to what was written. */
static inline void truth_restart(truth *t)
{
    uint64_t opened = t->opened;
    uint64_t slack = t->has_written ? t->wrote - opened : 0;

    t->clock = t->opened = t->written;
    t->has_written = 0;
    for (unsigned i = 0; i < KEYS; i++) {
        known *k = &t->keys[i];
        if (k->status != IDEM_IN_PROGRESS)
            continue;
        if (!k->held) {
            if (k->lease_end == opened)
                k->slack += slack;
            continue;
        }
        k->held = 0;
        // One that is over may be remembered or not: see device_learn.
        if (t->clock < known_due(k))
            k->lease_end = t->clock;
    }
}

/* -------------------------------------------------------------------- calls */

static inline const char *key_name(unsigned key)
{
    static const char names[KEYS][4] = {
        "k00", "k01", "k02", "k03", "k04", "k05", "k06", "k07", "k08", "k09",
        "k10", "k11", "k12", "k13", "k14", "k15", "k16", "k17", "k18", "k19",
        "k20", "k21", "k22", "k23", "k24", "k25", "k26", "k27"
    };
    return names[key];
}

static inline const char *payload_text(int payload)
{
    static const char *const texts[] = { "pour 5 ml", "pour 9 ml" };

    return texts[payload];
}

static inline idem_request device_request(const device *d, unsigned key)
{
    return request_of(&d->f, "panel", key_name(key), payload_text(d->payload));
}

static inline void device_before(device *d)
{
    d->reads = d->medium.reads;
    d->read_bytes = d->medium.read_bytes;
    d->progs = d->medium.progs;
    d->erases = d->medium.erases;
}

/* After each call: the truth's clock, and what the call did to the medium. */
static inline int device_after(device *d, int result)
{
    d->reads = d->medium.reads - d->reads;
    d->read_bytes = d->medium.read_bytes - d->read_bytes;
    d->progs = d->medium.progs - d->progs;
    d->erases = d->medium.erases - d->erases;
    if (d->progs) {
        d->truth.written = d->truth.clock;
        if (!d->truth.has_written)
            d->truth.wrote = d->truth.clock;
        d->truth.has_written = 1;
    }
    assert_int_equal(idem_check(&d->f.table), 0);
    assert_null(unready(&d->f.table));
    if (d->medium.violations)
        fail_msg("violation: %s", flash_text(&d->medium));
    // L3: at most one erase happens inside a call.
    if (!d->unsure)
        assert_in_range(d->erases, 0, 1);
    return result;
}

/* What may be remembered longer, or not, is looked up once it is due. */
static inline void device_settle(device *d)
{
    for (unsigned i = 0; i < KEYS; i++) {
        known *k = &d->truth.keys[i];
        uint64_t late = d->truth.clock - known_due(k) + 1;
        if (k->status != IDEM_IN_PROGRESS || truth_status(&d->truth, i) ||
            k->slack < late)
            continue;
        if (find(&d->f, "panel", key_name(i), d->now) == IDEM_OK) {
            k->lease_end += late;
            k->slack -= late;
        } else {
            k->status = 0;
        }
    }
}

/* Before each call: the table is shown the tick. */
static inline void device_tick(device *d)
{
    d->truth.clock += d->now - d->shown;
    d->shown = d->now;
    device_settle(d);
}

/* True if a call was refused because of a fault, and all is as it was. */
static inline int device_refused(const device *d, int result)
{
    return d->unsure && (result == IDEM_E_STORAGE || result == IDEM_E_SPACE);
}

/* The same for a call that would have changed a key, which after a restart may
   be changed. */
static inline int device_refused_key(device *d, int result, unsigned key,
                                     const known *changed)
{
    if (!device_refused(d, result))
        return 0;
    d->tried = *changed;
    d->tried_key = key;
    d->tried_state_len = d->truth.state_len;
    memcpy(d->tried_state, d->truth.state, sizeof d->tried_state);
    return 1;
}

static inline int device_maintain(device *d)
{
    int result;

    device_tick(d);
    device_before(d);
    result = device_after(d, idem_maintain(&d->f.table, d->now));
    if (!device_refused(d, result))
        assert_true(result == IDEM_OK || result == IDEM_MORE);
    return result;
}

/* Idle time, as long as it is used. */
static inline void device_rest(device *d)
{
    unsigned left = 10000;

    while (device_maintain(d) == IDEM_MORE)
        assert_int_not_equal(left--, 0);
}

static inline void device_pause(device *d)
{
    if (d->idle)
        device_rest(d);
}

/* The reply to a duplicate, in every detail. */
static inline void device_check_reply(device *d, const known *k)
{
    const idem_reply *r = &d->f.reply;

    assert_int_equal(r->status, k->status);
    assert_int_equal(r->code, k->code);
    assert_int_equal(r->response_len, k->len);
    if (k->len <= r->buffer_size && k->len)
        assert_memory_equal(r->buffer, k->response, k->len);
    assert_int_equal(r->age_ms, d->truth.clock - k->completed);
    assert_int_equal(r->claim.token, k->token);
    assert_int_equal(r->claim.attempt, k->attempts);
}

/* What a key is once it is claimed, at an answer. */
static inline known device_granted(const device *d, unsigned key, int answer)
{
    const truth *t = &d->truth;
    const idem_request *rq = &d->f.request;
    uint32_t lease = rq->lease_ms ? rq->lease_ms : d->f.config.lease_ms;
    known k;

    memset(&k, 0, sizeof k);
    k.status = IDEM_IN_PROGRESS;
    k.payload = d->payload;
    k.attempts = answer == IDEM_RECOVER ? t->keys[key].attempts + 1 : 1;
    k.held = 1;
    k.lease_end = lease == IDEM_LEASE_NONE ? ENDLESS : t->clock + lease;
    k.retention =
        rq->retention_ms ? rq->retention_ms : d->f.config.retention_ms;
    k.reserved = rq->response_size ? rq->response_size
                                   : d->f.config.response_max;
    k.claim = d->f.claim;
    k.token = d->f.claim.token;
    return k;
}

static inline void device_grant(device *d, unsigned key, int answer)
{
    truth *t = &d->truth;
    known *k = &t->keys[key];

    if (k->status != IDEM_IN_PROGRESS)
        t->below[key] = *k;
    *k = device_granted(d, key, answer);
    assert_int_equal(d->f.claim.attempt, k->attempts);
    assert_true(k->token > t->token);
    t->token = k->token;
}

/* Begins; compares the answer and all that comes with it. */
static inline int device_begin(device *d, unsigned key)
{
    idem_request rq = device_request(d, key);
    const known *k = &d->truth.keys[key];
    static const idem_claim none;
    known changed;
    int expected, result;

    device_tick(d);
    expected = truth_answer(d, key);
    device_before(d);
    result = device_after(d, begin_request(&d->f, &rq, d->now));
    if (d->idle)
        assert_int_equal(d->erases, 0);
    changed = device_granted(d, key, expected);
    if (device_refused_key(d, result, key, &changed)) {
        assert_memory_equal(&d->f.claim, &none, sizeof none);
        return result;
    }
    assert_int_equal(result, expected);
    if (result == IDEM_EXECUTE || result == IDEM_RECOVER)
        device_grant(d, key, result);
    else
        assert_memory_equal(&d->f.claim, &none, sizeof none);
    if (result == IDEM_REPLAY)
        device_check_reply(d, k);
    if (result == IDEM_BUSY)
        assert_int_equal(d->f.reply.retry_after_ms,
                         k->lease_end == ENDLESS
                             ? IDEM_LEASE_NONE
                             : k->lease_end - d->truth.clock);
    device_pause(d);
    return result;
}

/* True if a claim is current. */
static inline int device_is_current(const device *d, unsigned key,
                                    const idem_claim *claim)
{
    const known *k = &d->truth.keys[key];

    return truth_status(&d->truth, key) == IDEM_IN_PROGRESS && k->held &&
           k->token == claim->token;
}

/* Completes with d->f.outcome and a response of some bytes. */
static inline int device_complete_as(device *d, unsigned key,
                                     const idem_claim *claim, unsigned len)
{
    known *k = &d->truth.keys[key], changed = *k;
    idem_outcome out = d->f.outcome;
    uint8_t *response = changed.response;
    int expected = IDEM_E_FENCED, result;

    assert_true(len <= RESPONSES);
    for (unsigned i = 0; i < len; i++)
        response[i] = (uint8_t)flash_mix((uint32_t)claim->token * 251u + i);
    out.response = len ? response : NULL;
    out.response_len = len;
    device_tick(d);
    if (device_is_current(d, key, claim))
        expected = len > k->reserved ? IDEM_E_TOO_LARGE : IDEM_OK;
    device_before(d);
    result = device_after(
        d, idem_complete(&d->f.table, claim, &out, d->now));
    // S7: completion never waits for an erase.
    if (!d->unsure)
        assert_int_equal(d->erases, 0);
    changed.status = out.failed ? IDEM_FAILED : IDEM_COMPLETED;
    changed.held = 0;
    changed.completed = d->truth.clock;
    changed.len = len;
    changed.code = out.code;
    changed.owed = out.confirm != 0;
    if (device_refused_key(d, result, key, &changed)) {
        if (out.state) {
            d->tried_state_len = out.state_len;
            memcpy(d->tried_state, out.state, out.state_len);
        }
        return result;
    }
    assert_int_equal(result, expected);
    if (result == IDEM_OK) {
        *k = changed;
        if (out.state) {
            d->truth.state_len = out.state_len;
            memcpy(d->truth.state, out.state, out.state_len);
        }
    }
    device_pause(d);
    return result;
}

static inline int device_complete(device *d, unsigned key, unsigned len)
{
    idem_claim claim = d->truth.keys[key].claim;

    return device_complete_as(d, key, &claim, len);
}

static inline int device_release(device *d, unsigned key,
                                 const idem_claim *claim)
{
    known *k = &d->truth.keys[key], changed = *k;
    int expected, result;

    device_tick(d);
    expected = device_is_current(d, key, claim) ? IDEM_OK : IDEM_E_FENCED;
    device_before(d);
    result = device_after(d, idem_release(&d->f.table, claim, d->now));
    changed.status = 0;
    if (device_refused_key(d, result, key, &changed))
        return result;
    assert_int_equal(result, expected);
    if (result == IDEM_OK)
        *k = changed;
    device_pause(d);
    return result;
}

static inline int device_renew(device *d, unsigned key, uint32_t lease_ms)
{
    known *k = &d->truth.keys[key];
    idem_claim claim = k->claim;
    uint64_t end;
    int expected, result;

    device_tick(d);
    expected = device_is_current(d, key, &claim) ? IDEM_OK : IDEM_E_FENCED;
    device_before(d);
    result = device_after(d, idem_renew(&d->f.table, &claim, lease_ms, d->now));
    assert_int_equal(result, expected);
    end = lease_ms == IDEM_LEASE_NONE ? ENDLESS : d->truth.clock + lease_ms;
    if (result == IDEM_OK && end > k->lease_end)
        k->lease_end = end;
    assert_int_equal(d->progs, 0);
    device_pause(d);
    return result;
}

static inline int device_forget(device *d, unsigned key)
{
    idem_request rq = device_request(d, key);
    known *k = &d->truth.keys[key], changed = *k;
    int expected, result;

    device_tick(d);
    expected = truth_status(&d->truth, key) ? IDEM_OK : IDEM_E_NOT_FOUND;
    if (expected == IDEM_OK && k->status == IDEM_IN_PROGRESS &&
        d->truth.clock < k->lease_end)
        expected = IDEM_BUSY;
    device_before(d);
    result = device_after(d, idem_forget(&d->f.table, &rq, d->now));
    changed.status = 0;
    if (device_refused_key(d, result, key, &changed))
        return result;
    assert_int_equal(result, expected);
    if (result == IDEM_OK)
        *k = changed;
    device_pause(d);
    return result;
}

/* Confirms the delivery of a key's outcome. */
static inline int device_deliver(device *d, unsigned key)
{
    known *k = &d->truth.keys[key], changed = *k;
    idem_claim claim = k->claim;
    int expected = IDEM_E_NOT_FOUND, result;

    if (truth_status(&d->truth, key) && k->status != IDEM_IN_PROGRESS &&
        k->token == claim.token)
        expected = IDEM_OK;
    device_before(d);
    result = device_after(d, idem_delivered(&d->f.table, &claim));
    changed.owed = 0;
    if (device_refused_key(d, result, key, &changed))
        return result;
    assert_int_equal(result, expected);
    if (result == IDEM_OK)
        *k = changed;
    device_pause(d);
    return result;
}

static inline int device_sync(device *d)
{
    int result;

    device_before(d);
    result = device_after(d, idem_sync(&d->f.table));
    if (device_refused(d, result))
        return result;
    assert_int_equal(result, IDEM_OK);
    return result;
}

static inline void device_elapse(device *d, uint32_t ms)
{
    device_before(d);
    assert_int_equal(device_after(d, idem_elapse(&d->f.table, ms)), IDEM_OK);
    d->truth.clock += ms;
    device_pause(d);
}

/* ------------------------------------------------------------------ looking */

/* idem_find must tell the truth about a key. */
static inline void device_look_at(device *d, unsigned key)
{
    const known *k = &d->truth.keys[key];
    const idem_entry *e = &d->f.entry;
    int status = truth_status(&d->truth, key);
    uint64_t clock = d->truth.clock;

    assert_int_equal(find(&d->f, "panel", key_name(key), d->now),
                     status ? IDEM_OK : IDEM_E_NOT_FOUND);
    if (!status)
        return;
    assert_int_equal(e->status, status);
    assert_int_equal(e->attempts, k->attempts);
    assert_int_equal(e->scope_len, 5);
    assert_int_equal(e->key_len, 3);
    assert_memory_equal(d->f.id, "panel", 5);
    assert_memory_equal(d->f.id + 5, key_name(key), 3);
    if (status == IDEM_IN_PROGRESS) {
        assert_int_equal(e->response_len, k->reserved);
        assert_int_equal(e->claim.token, 0);
        assert_int_equal(e->left_ms, k->lease_end == ENDLESS ? IDEM_LEASE_NONE
                         : k->lease_end > clock ? k->lease_end - clock : 0);
        return;
    }
    assert_int_equal(e->code, k->code);
    assert_int_equal(e->response_len, k->len);
    assert_int_equal(e->age_ms, clock - k->completed);
    assert_int_equal(e->left_ms, known_due(k) - clock);
    assert_int_equal(e->undelivered, k->owed);
    assert_int_equal(e->claim.token, k->token);
    // In pieces, from the end to the start.
    for (size_t at = k->len + 5u, len; at-- > 0;) {
        uint8_t piece[3];
        len = sizeof piece;
        assert_int_equal(idem_response(&d->f.table, piece, &len, &e->claim, at),
                         IDEM_OK);
        assert_int_equal(len, at >= k->len ? 0 :
                         k->len - at < sizeof piece ? k->len - at
                                                    : sizeof piece);
        assert_memory_equal(piece, k->response + (len ? at : 0), len);
        at -= at > 2 ? 2 : 0;
    }
}

/* All that is owed, the oldest first. */
static inline void device_look_at_pending(device *d)
{
    idem_entry e = { .id = d->f.id, .id_size = sizeof d->f.id };
    unsigned owed = 0, listed = 0;
    uint32_t age = UINT32_MAX;

    for (unsigned k = 0; k < KEYS; k++)
        owed += truth_status(&d->truth, k) && d->truth.keys[k].owed;
    while (idem_pending(&d->f.table, &e, d->now) == IDEM_OK) {
        assert_true(e.undelivered);
        assert_true(e.age_ms <= age);
        age = e.age_ms;
        assert_in_range(++listed, 1, owed);
    }
    assert_int_equal(listed, owed);
}

/* Everything that can be looked at is true, and looking writes nothing. */
static inline void device_look(device *d)
{
    uint8_t state[STATES];
    size_t len = sizeof state;

    device_tick(d);
    device_before(d);
    for (unsigned k = 0; k < KEYS; k++)
        device_look_at(d, k);
    assert_int_equal(live(&d->f, d->now), truth_live(&d->truth));
    device_look_at_pending(d);
    assert_int_equal(idem_state(&d->f.table, state, &len), IDEM_OK);
    assert_int_equal(len, d->truth.state_len);
    assert_memory_equal(state, d->truth.state, len);
    device_after(d, 0);
    assert_int_equal(d->progs, 0);
    assert_int_equal(d->erases, 0);
}

/* Of a volatile claim nothing is left.  What was over before it may be not over
   any more, for the clock has gone back. */
static inline void device_give_up(device *d)
{
    for (unsigned i = 0; i < KEYS; i++) {
        known *k = &d->truth.keys[i];
        if (k->status != IDEM_IN_PROGRESS)
            continue;
        k->status = 0;
        if (find(&d->f, "panel", key_name(i), d->now) == IDEM_OK)
            *k = d->truth.below[i];
    }
}

/* A claim of an earlier boot that was over before the restart may still be
   remembered, as one cut short, or not. */
static inline void device_learn(device *d)
{
    for (unsigned i = 0; i < KEYS; i++) {
        known *k = &d->truth.keys[i];
        if (k->status != IDEM_IN_PROGRESS || truth_status(&d->truth, i))
            continue;
        k->status = 0;
        if (find(&d->f, "panel", key_name(i), d->now) != IDEM_OK)
            continue;
        k->status = IDEM_IN_PROGRESS;
        k->lease_end = d->truth.clock;
        k->slack = 0;
    }
}

/* ----------------------------------------------------------------- restarts */

/* Opens the table in memory of exactly the size that it takes plus `spare`, and
   returns what idem_open does. */
static inline int device_open_with(device *d, size_t spare)
{
    fixture *f = &d->f;
    size_t size;
    int result;

    free(f->memory);
    f->memory = NULL;
    assert_int_equal(idem_open(&f->table, &f->config, NULL, 0, d->now),
                     IDEM_E_MEMORY);
    size = f->table.needed + spare;
    f->memory = malloc(size);
    assert_non_null(f->memory);
    memset(f->memory, 0xA5, size);
    device_before(d);
    result = idem_open(&f->table, &f->config, f->memory, size, d->now);
    d->shown = d->now;
    d->reads = d->medium.reads - d->reads;
    d->read_bytes = d->medium.read_bytes - d->read_bytes;
    // Opening never programs and never erases.
    assert_int_equal(d->medium.progs, d->progs);
    assert_int_equal(d->medium.erases, d->erases);
    if (result == IDEM_OK) {
        assert_int_equal(idem_check(&f->table), 0);
        assert_null(unready(&f->table));
    }
    return result;
}

static inline int device_open(device *d)
{
    return device_open_with(d, 0);
}

/* Destroys what the medium holds; the table is open and empty. */
static inline void device_format(device *d)
{
    fixture *f = &d->f;
    size_t size;

    assert_int_equal(idem_open(&f->table, &f->config, NULL, 0, 0),
                     IDEM_E_MEMORY);
    size = f->table.needed;
    free(f->memory);
    f->memory = malloc(size);
    assert_non_null(f->memory);
    assert_int_equal(idem_format(&f->table, &f->config, f->memory, size,
                                 d->now), IDEM_OK);
    assert_int_equal(idem_check(&f->table), 0);
    memset(&d->truth, 0, sizeof d->truth);
    d->shown = d->now;
}

/* The machine restarts, between two calls; the medium loses nothing.  The tick
   goes on anywhere. */
static inline void device_restart(device *d)
{
    truth_restart(&d->truth);
    flash_boot(&d->medium);
    d->erasing = 0;
    d->now = flash_mix(d->now + 1);
    assert_int_equal(device_open(d), IDEM_OK);
    // It reads each byte at most once; what does not read, twice.
    assert_in_range(flash_most_read(&d->medium), 0,
                    d->f.table.storage_error ? 2 : 1);
    assert_int_equal(d->f.table.stats.lost, 0);
    if (d->f.config.volatile_claims)
        device_give_up(d);
    device_learn(d);
    device_look(d);
    device_pause(d);
}

/* The same after faults that are over: what a call did that was refused last
   may be there, all of it. */
static inline void device_restart_after(device *d)
{
    known *k = &d->truth.keys[d->tried_key];
    const idem_entry *e = &d->f.entry;

    d->unsure = 0;
    d->erasing = 0;
    memset(d->medium.faults, 0, sizeof d->medium.faults);
    truth_restart(&d->truth);
    flash_boot(&d->medium);
    assert_int_equal(device_open(d), IDEM_OK);
    assert_int_equal(d->f.table.stats.lost, 0);
    (void)find(&d->f, "panel", key_name(d->tried_key), d->now);
    if (d->tried.claim.slot != UINT32_MAX &&
        (e->status != k->status ||
         (k->status && (e->attempts != k->attempts ||
                        e->undelivered != k->owed)))) {
        assert_int_equal(e->status, d->tried.status);
        *k = d->tried;
        k->held = 0;
        k->lease_end = d->truth.clock;
        d->truth.state_len = d->tried_state_len;
        memcpy(d->truth.state, d->tried_state, sizeof d->tried_state);
    }
    device_look(d);
}

/* A blank medium of a geometry, opened. */
static inline void device_start(device *d, const geometry *g)
{
    assert_true(device_medium(d, g));
    d->now = flash_mix(g->granule + g->sector_size);
    assert_int_equal(device_open(d), IDEM_OK);
}

/* ------------------------------------------------------------------ scripts */

enum { MOMENTS = 120 };

// What was true after each call of a script, the first before all of them.
typedef struct history {
    unsigned count;
    truth    of[MOMENTS];
} history;

/* One event of a script on a key:
     B C    begin, complete                 F    fail, with a code
     E L    complete with the empty and the longest response
     S O    complete with new state, with delivery owed
     R X    release, forget                 D    delivered
   and without a key:
     T      400 ms pass                     M    idle time
     P      a restart                       Y    sync
   Returns what the call answered. */
static inline int play_event(device *d, char what, unsigned key)
{
    static char state[2] = "s";
    known *k = &d->truth.keys[key];
    idem_outcome *out = &d->f.outcome;

    memset(out, 0, sizeof *out);
    out->failed = what == 'F';
    out->code = what == 'F' ? -5 : what == 'L' ? INT32_MIN : 0;
    out->confirm = what == 'O';
    if (what == 'S') {
        state[1] = (char)k->token;
        out->state = state;
        out->state_len = sizeof state;
    }
    d->now += !d->still;
    switch (what) {
    case 'B': return device_begin(d, key);
    case 'C':
    case 'F':
    case 'S':
    case 'O': return device_complete(d, key, 1u + key % 4);
    case 'E': return device_complete(d, key, 0);
    case 'L': return device_complete(d, key, d->f.config.response_max);
    case 'R': return device_release(d, key, &k->claim);
    case 'X': return device_forget(d, key);
    case 'D': return device_deliver(d, key);
    case 'T': d->now += 400; return 0;
    case 'M': device_rest(d); return 0;
    case 'P': device_restart(d); return 0;
    default:  return device_sync(d);
    }
}

/* The next event of a script; 0 at its end. */
static inline char script_next(const char **script, unsigned *key)
{
    char what;

    while (**script == ' ')
        ++*script;
    what = **script;
    *script += what != 0;
    for (*key = 0; **script >= '0' && **script <= '9'; ++*script)
        *key = *key * 10 + (unsigned)(**script - '0');
    return what;
}

/* Plays a script, each call of which must succeed, and keeps what was true. */
static inline void play(device *d, history *h, const char *script)
{
    unsigned key;
    int result;
    char what;

    if (h && !h->count)
        h->of[h->count++] = d->truth;
    while ((what = script_next(&script, &key)) != 0) {
        if ((result = play_event(d, what, key)) < 0)
            fail_msg("%c%u: %s", what, key, idem_text(result));
        if (!h || what == 'T' || what == 'M')
            continue;
        assert_true(h->count < MOMENTS);
        h->of[h->count++] = d->truth;
    }
}

static inline int device_setup(void **state)
{
    device *d = (device *)calloc(1, sizeof *d);

    if (!d)
        return -1;
    d->f.config.capacity = 4;
    d->f.config.key_max = 24;
    d->f.config.response_max = 16;
    d->f.config.state_max = 8;
    d->f.config.lease_ms = 100;
    d->f.config.retention_ms = 1000;
    memcpy(d->f.config.secret, "sixteen secrets.", 16);
    d->seed = 0x2545F491;
    *state = d;
    return 0;
}

static inline int device_teardown(void **state)
{
    device *d = (device *)*state;
    int failed = d->medium.violations != 0;

    device_free_medium(d);
    free(d->f.memory);
    free(d);
    return failed ? -1 : 0;
}

#endif /* IDEM_JOURNAL_TESTS_H */
