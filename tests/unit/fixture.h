/* SPDX-License-Identifier: 0BSD */
/*
 * What the tests of idem.h share: one table, in memory of exactly the size that
 * it asks for (so the address sanitizer sees one byte too many), and calls that
 * make a request out of strings.  Every call ends with idem_check.
 *
 * Uses nothing that is not promised.
 */
#ifndef IDEM_FIXTURE_H
#define IDEM_FIXTURE_H

#include "unit.h"

// A test that is given a fixture, f.
#undef TEST
#define TEST(name)                                                             \
    TEST_WITH(name, fixture_setup, fixture_teardown,                           \
              __attribute__((unused)) fixture *f, (fixture *)*state)

// The configuration that a test begins with.  A retention this short is exact.
enum { CAPACITY = 4, KEY_MAX = 24, RESPONSE_MAX = 16, STATE_MAX = 8 };
enum { LEASE = 100, RETENTION = 1000 };

typedef struct fixture {
    idem_config config;         // what fixture_open takes
    idem_request request;       // what begin asks, beside its arguments
    idem_outcome outcome;       // what complete tells, beside its arguments
    idem_table table;
    void *memory;
    idem_claim claim;           // of the last begin
    idem_reply reply;
    char buffer[64];            // of the last reply; ends with a zero
    idem_entry entry;           // of the last find
    char id[64];
} fixture;

/* Opens the table, at whatever time, as f->config says.  May be repeated. */
static inline void fixture_open(fixture *f, uint32_t now)
{
    size_t size;

    free(f->memory);
    is(idem_open(&f->table, &f->config, NULL, 0, now), IDEM_E_MEMORY);
    size = f->table.needed;
    f->memory = malloc(size);
    assert_non_null(f->memory);
    memset(f->memory, 0xA5, size);
    is(idem_open(&f->table, &f->config, f->memory, size, now), IDEM_OK);
    is(idem_check(&f->table), 0);
}

static inline int fixture_setup(void **state)
{
    fixture *f = (fixture *)calloc(1, sizeof *f);

    if (!f)
        return -1;
    f->config.capacity = CAPACITY;
    f->config.key_max = KEY_MAX;
    f->config.response_max = RESPONSE_MAX;
    f->config.state_max = STATE_MAX;
    f->config.lease_ms = LEASE;
    f->config.retention_ms = RETENTION;
    memcpy(f->config.secret, "sixteen secrets.", sizeof f->config.secret);
    *state = f;
    fixture_open(f, 0);
    return 0;
}

static inline int fixture_teardown(void **state)
{
    fixture *f = (fixture *)*state;

    free(f->memory);
    free(f);
    return 0;
}

/* Every invariant holds after every call, whatever it answered. */
static inline int checked(const fixture *f, int result)
{
    is(idem_check(&f->table), 0);
    return result;
}

static inline idem_request request_of(const fixture *f, const char *scope,
                                      const char *key, const char *payload)
{
    idem_request rq = f->request;

    rq.scope = scope;
    rq.scope_len = strlen(scope);
    rq.key = key;
    rq.key_len = strlen(key);
    rq.payload = payload;
    rq.payload_len = strlen(payload);
    return rq;
}

/* Claim and reply hold garbage before, so what is not written is seen. */
static inline int begin_request(fixture *f, const idem_request *rq,
                                uint32_t now)
{
    memset(&f->claim, 0xEE, sizeof f->claim);
    memset(&f->reply, 0xEE, sizeof f->reply);
    memset(f->buffer, 0, sizeof f->buffer);
    f->reply.buffer = f->buffer;
    f->reply.buffer_size = sizeof f->buffer - 1;
    return checked(f, idem_begin(&f->table, &f->claim, &f->reply, rq, now));
}

static inline int begin(fixture *f, const char *scope, const char *key,
                        const char *payload, uint32_t now)
{
    idem_request rq = request_of(f, scope, key, payload);

    return begin_request(f, &rq, now);
}

/* A begin whose scope and payload do not matter. */
static inline int ask(fixture *f, const char *key, uint32_t now)
{
    return begin(f, "panel", key, "pour", now);
}

/* Response NULL: none, and no pointer either. */
static inline int complete(fixture *f, const idem_claim *claim,
                           const char *response, uint32_t now)
{
    idem_outcome outcome = f->outcome;

    outcome.response = response;
    outcome.response_len = response ? strlen(response) : 0;
    return checked(f, idem_complete(&f->table, claim, &outcome, now));
}

static inline int release(fixture *f, const idem_claim *claim, uint32_t now)
{
    return checked(f, idem_release(&f->table, claim, now));
}

static inline int renew(fixture *f, const idem_claim *claim, uint32_t lease,
                        uint32_t now)
{
    return checked(f, idem_renew(&f->table, claim, lease, now));
}

static inline int maintain(fixture *f, uint32_t now)
{
    return checked(f, idem_maintain(&f->table, now));
}

static inline int elapse(fixture *f, uint32_t off_ms)
{
    return checked(f, idem_elapse(&f->table, off_ms));
}

static inline int find_request(fixture *f, const idem_request *rq, uint32_t now)
{
    memset(&f->entry, 0, sizeof f->entry);
    memset(f->id, 0, sizeof f->id);
    f->entry.id = f->id;
    f->entry.id_size = sizeof f->id - 1;
    return checked(f, idem_find(&f->table, &f->entry, rq, now));
}

static inline int find(fixture *f, const char *scope, const char *key,
                       uint32_t now)
{
    idem_request rq = request_of(f, scope, key, "");

    return find_request(f, &rq, now);
}

static inline int forget(fixture *f, const char *scope, const char *key,
                         uint32_t now)
{
    idem_request rq = request_of(f, scope, key, "");

    return checked(f, idem_forget(&f->table, &rq, now));
}

/* A key that is begun and completed in one millisecond; its used-up claim. */
static inline idem_claim finish(fixture *f, const char *scope, const char *key,
                                uint32_t now)
{
    is(begin(f, scope, key, "pour", now), IDEM_EXECUTE);
    is(complete(f, &f->claim, "poured", now), IDEM_OK);
    return f->claim;
}

/* Short keys for tests that need several. */
static inline const char *nth(uint32_t n)
{
    static const char names[][2] = {
        "a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l",
    };

    assert_true(n < COUNT(names));
    return names[n];
}

/* How many keys are live. */
static inline uint32_t live(fixture *f, uint32_t now)
{
    idem_entry entry = { .id = NULL };
    uint32_t count = 0;

    while (checked(f, idem_next(&f->table, &entry, now)) == IDEM_OK)
        count++;
    return count;
}

/* xorshift32 of Marsaglia; never 0 if it was not. */
static inline uint32_t dice(uint32_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 17;
    *seed ^= *seed << 5;
    return *seed;
}

#endif /* IDEM_FIXTURE_H */
