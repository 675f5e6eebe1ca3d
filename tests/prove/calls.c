/* SPDX-License-Identifier: 0BSD */
/* What Frama-C's value analysis runs of the calls (tests/prove.sh): a table
 * without storage is opened, then any calls come in any order and number, with
 * any arguments at any time, until nothing new is to be seen.  Any is: every
 * value at once.  No alarm says that none of all these runs reads or writes
 * outside an object, overflows, shifts too far, divides by zero, or uses what
 * was not set.
 *
 * Small in size, not in what may be in it: 2 keys, of up to 3 bytes.  The table
 * is in one object: that one part of it does not run into another is seen only
 * by what that does to the links and numbers there.  Lengths up to 5 go with 5
 * bytes; of a request's pointers one at most is NULL.
 */
#define IDEM_STATIC
#define IDEM_NO_JOURNAL
#include "idem.h"

#include "any.h"

enum { CAPACITY = 2, KEY_MAX = 3, RESPONSE_MAX = 3, STATE_MAX = 2 };

static uint32_t memory[IDEM_MEMORY_SIZE(CAPACITY, KEY_MAX, RESPONSE_MAX,
                                        STATE_MAX) / 4];

#define IDEM_IMPLEMENTATION
#include "idem.h"
#include "specs.h"

static idem_config config;
static idem_table table;

static int refuse_or_not(void *ctx)
{
    (void)ctx;
    return (int)below(2);
}

static void unlock(void *ctx)
{
    (void)ctx;
}

static void configure(void)
{
    config.capacity = CAPACITY;
    config.key_max = KEY_MAX;
    config.response_max = RESPONSE_MAX;
    config.state_max = STATE_MAX;
    config.lease_ms = any();
    config.retention_ms = any();
    config.quota = any();
    config.max_attempts = any_byte();
    config.full = any_byte();
    config.durability = any_byte();
    config.secret[0] = any_byte();
    config.secret[15] = any_byte();
    if (below(2)) {
        config.lock = refuse_or_not;
        config.unlock = unlock;
    }
}

static idem_request request;
static uint8_t bytes[5];
static idem_claim claim;
static idem_reply reply;
static idem_outcome outcome;
static idem_entry entry;
static uint8_t buffer[5];

static void any_bytes(void)
{
    unsigned i;

    //@ loop unroll 5;
    for (i = 0; i < sizeof bytes; i++)
        bytes[i] = any_byte();
}

/* Arbitrary bytes: of any length; or (absent) NULL, and none, or some. */
static const void *some(size_t *len, int null)
{
    *len = below(sizeof bytes + 1);
    if (null == 0)
        return bytes;
    if (null == 1)
        *len = 0;
    else
        *len = 1 + below(sizeof bytes);
    return NULL;
}

/* Arbitrary; `null` says which of its three pointers is NULL, if one is. */
static void any_request(unsigned null)
{
    request.scope = some(&request.scope_len, null / 3 == 1 ? null % 3 : 0);
    request.key = some(&request.key_len, null / 3 == 2 ? null % 3 : 0);
    request.payload = some(&request.payload_len, null / 3 == 3 ? null % 3 : 0);
    request.fingerprint = (uint64_t)any() << 32 | any();
    request.has_fingerprint = any_byte();
    request.response_size = (uint16_t)any();
    request.lease_ms = any();
    request.retention_ms = any();
    request.age_ms = any();
}

/* Arbitrary, of a slot; or of one that there is none. */
static void any_claim(idem_claim *c, uint32_t slot)
{
    c->token = (uint64_t)any() << 32 | any();
    c->slot = slot;
    if (slot == CAPACITY)
        c->slot = Frama_C_unsigned_int_interval(CAPACITY, UINT32_MAX);
    c->attempt = any();
}

static void any_outcome(idem_outcome *o, unsigned null)
{
    o->response = some(&o->response_len, null / 3 == 1 ? null % 3 : 0);
    o->state = some(&o->state_len, null / 3 == 2 ? null % 3 : 0);
    o->code = (int32_t)any();
    o->failed = any_byte();
    o->confirm = any_byte();
}

static int handler(void *ctx, idem_outcome *o, const idem_request *rq,
                   const idem_claim *c, int answer, uint32_t *now_ms)
{
    (void)ctx, (void)rq, (void)c, (void)answer;
    any_outcome(o, *(unsigned *)ctx);
    *now_ms = any();
    return (int)below(2);
}

static void any_entry(void)
{
    any_claim(&entry.claim, below(CAPACITY + 1));
    entry.id_size = below(sizeof buffer + 1);
    entry.cursor = any();
    entry.id = buffer;
    if (below(2))
        entry.id = NULL;
}

static void any_reply(void)
{
    reply.buffer_size = below(sizeof buffer + 1);
    reply.buffer = buffer;
    if (below(2))
        reply.buffer = NULL;
}

static void call_request(void)
{
    unsigned null = below(12), handled = below(9);

    //@ split null;
    any_bytes();
    any_request(null);
    //@ split request.scope_len;
    switch (below(4)) {
    case 0:
        any_reply();
        idem_begin(&table, &claim, &reply, &request, any());
        break;
    case 1:
        any_reply();
        //@ split handled;
        idem_run(&table, &claim, &reply, &request, handler, &handled, any());
        break;
    case 2:
        any_entry();
        idem_find(&table, &entry, &request, any());
        break;
    default:
        idem_forget(&table, &request, any());
        break;
    }
}

static void call_claim(void)
{
    size_t len = below(sizeof buffer + 1);
    unsigned slot = below(CAPACITY + 1), null = below(9);

    //@ split slot;
    any_claim(&claim, slot);
    switch (below(5)) {
    case 0:
        any_bytes();
        //@ split null;
        any_outcome(&outcome, null);
        idem_complete(&table, &claim, &outcome, any());
        break;
    case 1: idem_release(&table, &claim, any()); break;
    case 2: idem_renew(&table, &claim, any(), any()); break;
    case 3: idem_delivered(&table, &claim); break;
    default:
        idem_response(&table, below(2) ? buffer : NULL, &len, &claim, any());
        break;
    }
}

static void call_other(void)
{
    size_t len = below(sizeof buffer + 1);
    uint32_t horizon;

    switch (below(8)) {
    case 0: idem_maintain(&table, any()); break;
    case 1: idem_sync(&table); break;
    case 2: idem_elapse(&table, any()); break;
    case 3: idem_state(&table, buffer, &len); break;
    case 4: idem_horizon(&table, &horizon, any()); break;
    case 5:
        any_entry();
        idem_next(&table, &entry, any());
        break;
    case 6:
        any_entry();
        idem_pending(&table, &entry, any());
        break;
    default: idem_check(&table); break;
    }
}

static void call(void)
{
    switch (below(3)) {
    case 0: call_request(); break;
    case 1: call_claim(); break;
    default: call_other(); break;
    }
}

int main(void)
{
    configure();
    if (idem_open(&table, &config, memory, sizeof memory, any()) != IDEM_OK)
        return 1;
    while (below(2))
        call();
    return 0;
}
