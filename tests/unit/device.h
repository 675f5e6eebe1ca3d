/* SPDX-License-Identifier: 0BSD */
/*
 * A device: a simulated medium, a table whose journal is on it, and a tick.  A
 * test tells a story with it, a line for each thing that happens:
 *
 *     device *d = device_on(&nor);
 *     finish(d, "a");
 *     restart(d);
 *     replays(d, "a");
 *
 * A key's response and code follow from the key, so whether a replay is right
 * needs no notes.  Behind every call idem_check holds, no byte was programmed
 * twice, and what the call did to the medium is in d->erases, d->progs,
 * d->reads, d->syncs, and program by program in d->wrote.
 *
 * Uses what idem.h promises and the medium's calls, nothing else: where a
 * record is, is known from the program that wrote it.
 */
#ifndef DEVICE_H
#define DEVICE_H

#include "idem.h"
#include "media.h"
#include "test.h"

enum { LEASE = 100, RETENTION = 100000 };
enum { KEY_MAX = 16, RESPONSE_MAX = 24, STATE_MAX = 8 };

// A program or an erase, as it was asked for.
typedef struct operation {
    int call;
    uint32_t at, len;
} operation;

typedef struct device {
    flash medium;               // the first, for callbacks that take just that
    idem_storage storage;
    idem_config config;         // what the next restart takes
    idem_table table;
    idem_request ask;           // what begin asks, beside key and payload
    idem_outcome tell;          // what complete tells, beside response and code
    uint32_t now;
    idem_claim claim;           // of the last begin
    idem_reply reply;
    uint8_t answer[256];        // the response in it
    idem_entry entry;           // of the last find
    uint8_t id[256];
    // Of the last call
    uint32_t reads, progs, erases, syncs;
    operation wrote[512];
    uint32_t writes;
    uint32_t header_len;        // of the newest program at a sector's start
    // For the whole of a test
    uint32_t dead_at, dead_len; // bytes that cannot be read
    uint32_t polls, polls_left; // how often an erase says "not yet"
    int late_error;             // what the next erase says in the end, once
    void *memory;
    uint32_t seed;
} device;

/* ------------------------------------------------------------------ answers */

static inline void answers_at(int is, int expected, const char *call,
                              const char *file, int line)
{
    if (is == expected)
        return;
    print_error("%s: %s, not %s\n", call, idem_text(is), idem_text(expected));
    _fail(file, line);
}

/* A call and what it must answer. */
#define answers(call, expected)                                                \
    answers_at(call, expected, #call, __FILE__, __LINE__)

/* ------------------------------------------------------------------- medium */

static inline void device_watch(void *arg, const flash *f, const flash_op *op)
{
    device *d = (device *)arg;
    operation *o = &d->wrote[d->writes];

    if (op->call == FLASH_PROG && op->at % f->sector_size == 0)
        d->header_len = op->len;
    if (d->writes == COUNT(d->wrote))
        return;
    o->call = op->call;
    o->at = op->at;
    o->len = op->len;
    d->writes++;
}

static inline int device_read(void *ctx, uint32_t at, void *dst, uint32_t len)
{
    device *d = (device *)ctx;
    int result = flash_read(&d->medium, at, dst, len);

    assert_int_not_equal(len, 0);
    if (d->dead_len && at < d->dead_at + d->dead_len && d->dead_at < at + len) {
        memset(dst, 0x5A, len);
        return 77;
    }
    return result;
}

static inline int device_erase(void *ctx, uint32_t sector)
{
    device *d = (device *)ctx;

    d->polls_left = d->polls;
    return flash_erase(&d->medium, sector);
}

static inline int device_erasing(void *ctx)
{
    device *d = (device *)ctx;
    int error = d->late_error;

    if (d->polls_left > 0) {
        d->polls_left--;
        return 1;
    }
    d->late_error = 0;
    return error;
}

static inline uint32_t device_sectors(const device *d)
{
    return medium_sectors(&d->config, &d->storage);
}

static inline void *device_alloc(size_t size)
{
    return memset(medium_allocate(size), 0xA5, size);
}

static inline void device_free(device *d)
{
    free(d->memory);
    d->memory = NULL;
    medium_end(&d->medium);
}

/* A blank medium of as many sectors as d->config asks for, or more. */
static inline void device_medium(device *d, const medium *m, uint32_t sectors)
{
    idem_storage *s = &d->storage;

    device_free(d);
    memset(s, 0, sizeof *s);
    s->ctx = d;
    s->read = device_read;
    s->prog = flash_prog;
    s->erase = m->kind == FLASH_INPLACE ? NULL : device_erase;
    s->sync = m->flags & CACHE ? flash_sync : NULL;
    s->sector_size = m->sector_size;
    s->prog_size = m->granule;
    s->erased = m->erased;
    s->sector_count = device_sectors(d);
    assert_int_not_equal(s->sector_count, 0);
    if (s->sector_count < sectors)
        s->sector_count = sectors;
    d->config.storage = s;
    d->medium.kind = m->kind;
    d->medium.seed = d->seed;
    d->medium.watch = device_watch;
    d->medium.watch_arg = d;
    is(medium_make(&d->medium, s, m->flags | READ_MAP), 0);
    d->dead_len = 0;
}

/* -------------------------------------------------------------------- calls */

static inline void device_before(device *d)
{
    d->reads = d->medium.reads;
    d->progs = d->medium.progs;
    d->erases = d->medium.erases;
    d->syncs = d->medium.syncs;
    d->writes = 0;
}

/* What a call did to the medium; its answer is handed through. */
static inline int device_after(device *d, int result)
{
    d->reads = d->medium.reads - d->reads;
    d->progs = d->medium.progs - d->progs;
    d->erases = d->medium.erases - d->erases;
    d->syncs = d->medium.syncs - d->syncs;
    if (result != IDEM_E_ARG)               // else it may be closed
        is(idem_check(&d->table), 0);
    if (d->medium.violations)
        fail_msg("violation: %s", flash_text(&d->medium));
    return result;
}

/* Opens the table, in memory of exactly the size that it asks for. */
static inline int device_open(device *d)
{
    size_t size;
    int result;

    free(d->memory);
    d->memory = NULL;
    answers(idem_open(&d->table, &d->config, NULL, 0, d->now), IDEM_E_MEMORY);
    size = d->table.needed;
    d->memory = device_alloc(size);
    device_before(d);
    result = idem_open(&d->table, &d->config, d->memory, size, d->now);
    if (result == IDEM_OK)
        device_after(d, result);
    is(d->writes, 0);                       // opening never writes
    return result;
}

/* The power goes and comes; the tick begins anywhere. */
static inline int reopen(device *d)
{
    flash_boot(&d->medium);
    d->now = flash_mix(d->now + 1);
    return device_open(d);
}

#define restart(d) answers(reopen(d), IDEM_OK)

/* A device with what d->config and d->storage say, on a blank medium. */
static inline void device_start(device *d, const medium *m, uint32_t sectors)
{
    device_medium(d, m, sectors);
    d->now = UINT32_MAX - 5;
    answers(device_open(d), IDEM_OK);
}

static inline void device_defaults(device *d)
{
    memset(&d->config, 0, sizeof d->config);
    memset(&d->ask, 0, sizeof d->ask);
    memset(&d->tell, 0, sizeof d->tell);
    d->config.capacity = 8;
    d->config.key_max = KEY_MAX;
    d->config.response_max = RESPONSE_MAX;
    d->config.state_max = STATE_MAX;
    memcpy(d->config.secret, "sixteen secrets.", 16);
    d->config.lease_ms = LEASE;
    d->config.retention_ms = RETENTION;
    d->seed = 1;
    d->polls = 0;
}

// Each test's.
static device the_device;

/* The test's device, anew and open on such a medium, blank. */
static inline device *device_on(const medium *m)
{
    device_defaults(&the_device);
    device_start(&the_device, m, 0);
    return &the_device;
}

static inline int device_setup(void **state)
{
    (void)state;
    memset(&the_device, 0, sizeof the_device);
    return 0;
}

static inline int device_teardown(void **state)
{
    (void)state;
    device_free(&the_device);
    return 0;
}

#undef TEST
#define TEST(name) TEST_WITH(name, device_setup, device_teardown, void, )

static inline idem_request request_for(const device *d, const char *key,
                                       const char *payload)
{
    idem_request rq = d->ask;

    if (!rq.scope_len) {
        rq.scope = "panel";
        rq.scope_len = 5;
    }
    rq.key = key;
    rq.key_len = strlen(key);
    rq.payload = payload;
    rq.payload_len = strlen(payload);
    return rq;
}

static inline int begin_request(device *d, const idem_request *rq)
{
    memset(&d->claim, 0xEE, sizeof d->claim);
    memset(&d->reply, 0xEE, sizeof d->reply);
    d->reply.buffer = d->answer;
    d->reply.buffer_size = sizeof d->answer;
    device_before(d);
    return device_after(
        d, idem_begin(&d->table, &d->claim, &d->reply, rq, d->now));
}

static inline int begin_with(device *d, const char *key, const char *payload)
{
    idem_request rq = request_for(d, key, payload);

    return begin_request(d, &rq);
}

static inline int begin(device *d, const char *key)
{
    return begin_with(d, key, "pour");
}

/* The bytes that a key is answered with: as many as it says in its first
   character, so that lengths differ. */
static inline size_t response_of(const char *key, uint8_t *bytes)
{
    size_t len = (unsigned char)key[0] % (RESPONSE_MAX + 1u), i;

    for (i = 0; i < len; i++)
        bytes[i] = (uint8_t)flash_mix((unsigned char)key[0] * 64u +
                                      (unsigned char)key[1] * 16384u +
                                      (uint32_t)i);
    return len;
}

static inline int32_t code_of(const char *key)
{
    return (int32_t)flash_mix((unsigned char)key[0]) >> (key[0] & 31);
}

static inline int complete_as(device *d, const idem_claim *claim,
                              const char *key)
{
    uint8_t bytes[RESPONSE_MAX];
    idem_outcome out = d->tell;

    out.response = bytes;
    out.response_len = response_of(key, bytes);
    out.code = code_of(key);
    device_before(d);
    return device_after(d, idem_complete(&d->table, claim, &out, d->now));
}

/* Completes what was begun last, with the outcome of that key. */
static inline int complete(device *d, const char *key)
{
    return complete_as(d, &d->claim, key);
}

static inline int release(device *d, const idem_claim *claim)
{
    device_before(d);
    return device_after(d, idem_release(&d->table, claim, d->now));
}

static inline int renew(device *d, const idem_claim *claim, uint32_t lease_ms)
{
    device_before(d);
    return device_after(d, idem_renew(&d->table, claim, lease_ms, d->now));
}

static inline int forget(device *d, const char *key)
{
    idem_request rq = request_for(d, key, "");

    device_before(d);
    return device_after(d, idem_forget(&d->table, &rq, d->now));
}

static inline int maintain(device *d)
{
    device_before(d);
    return device_after(d, idem_maintain(&d->table, d->now));
}

static inline int sync_all(device *d)
{
    device_before(d);
    return device_after(d, idem_sync(&d->table));
}

static inline int find(device *d, const char *key)
{
    idem_request rq = request_for(d, key, "");

    memset(&d->entry, 0, sizeof d->entry);
    d->entry.id = d->id;
    d->entry.id_size = sizeof d->id;
    device_before(d);
    return device_after(d, idem_find(&d->table, &d->entry, &rq, d->now));
}

/* ------------------------------------------------------------------ stories */

#define finish(d, key)                                                         \
    (answers(begin(d, key), IDEM_EXECUTE), answers(complete(d, key), IDEM_OK))

/* True if the last begin's reply has the outcome of this key. */
static inline int is_outcome_of(const device *d, const char *key)
{
    uint8_t bytes[RESPONSE_MAX];
    size_t len = response_of(key, bytes);

    return d->reply.response_len == len && d->reply.code == code_of(key) &&
           !memcmp(d->answer, bytes, len);
}

#define replays(d, key)                                                        \
    (answers(begin(d, key), IDEM_REPLAY),                                      \
     assert_true(is_outcome_of(d, key)))

/* Idle time, as long as it is used. */
static inline uint32_t rest(device *d)
{
    uint32_t left = 10000, erases = 0;

    while (maintain(d) == IDEM_MORE) {
        erases += d->erases;
        assert_int_not_equal(left--, 0);
    }
    return erases + d->erases;
}

/* True if the last call wrote a header: a program at the start of a sector. */
static inline int turned(const device *d)
{
    uint32_t i;

    for (i = 0; i < d->writes; i++)
        if (d->wrote[i].call == FLASH_PROG &&
            d->wrote[i].at % d->medium.sector_size == 0)
            return 1;
    return 0;
}

/* Commands that leave nothing behind, until so many sectors were begun. */
static inline void turn(device *d, unsigned sectors)
{
    while (sectors > 0) {
        int full, answer = begin(d, "~");
        assert_true(answer == IDEM_EXECUTE || answer == IDEM_RECOVER);
        full = turned(d);
        answers(release(d, &d->claim), IDEM_OK);
        sectors -= full || turned(d);
    }
}

/* Names for many keys; each good until the eighth after it. */
static inline const char *nth(uint32_t n)
{
    static char names[8][8];
    static unsigned next;
    char *name = names[next++ % 8];

    sprintf(name, "%c%u", 'A' + (int)(n % 50), (unsigned)n);
    return name;
}

/* xorshift32 of Marsaglia, from 0 to below n. */
static inline uint32_t dice(device *d, uint32_t n)
{
    d->seed ^= d->seed << 13;
    d->seed ^= d->seed >> 17;
    d->seed ^= d->seed << 5;
    return d->seed % n;
}

/* How many keys are live. */
static inline uint32_t live(device *d)
{
    idem_entry e;
    uint32_t count = 0;

    memset(&e, 0, sizeof e);
    while (idem_next(&d->table, &e, d->now) == IDEM_OK)
        count++;
    return count;
}

/* The program that was done last: that of the newest record, if the call did
   not turn. */
static inline operation newest(const device *d)
{
    assert_int_not_equal(d->writes, 0);
    return d->wrote[d->writes - 1];
}

/* A medium as it was, to be damaged once more. */
typedef struct snapshot {
    flash medium;
    uint8_t *memory;
    size_t size;
} snapshot;

static inline snapshot save(const device *d)
{
    snapshot s;

    s.medium = d->medium;
    s.size = FLASH_MEMORY(d->medium.sector_size, d->medium.sector_count);
    s.memory = (uint8_t *)device_alloc(s.size);
    memcpy(s.memory, d->medium.sector_erases, s.size);
    return s;
}

static inline void load(device *d, const snapshot *s)
{
    d->medium = s->medium;
    memcpy(d->medium.sector_erases, s->memory, s->size);
    d->dead_len = 0;
}

#endif
