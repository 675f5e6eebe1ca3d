/* SPDX-License-Identifier: 0BSD */
/*
 * What Frama-C's value analysis (Eva) runs: every public call, in any order, on
 * a table whose tick, requests, claims and storage are anything.  Eva follows
 * all of them at once; that there is no alarm says that no execution of what is
 * below reads or writes outside an object, shifts too far, overflows, uses what
 * was not set, or calls what is no function.
 *
 *     EVA_OPEN   only the opening, of an image of which every byte is anything
 *     EVA_CALLS  the calls, without a journal
 */
#include <stdint.h>

#define IDEM_STATIC
#define IDEM_IMPLEMENTATION
#include "idem.h"

#include "__fc_builtin.h"

enum { CAPACITY = 2, KEY_MAX = 4, RESPONSE_MAX = 4, STATE_MAX = 4 };
enum { SECTOR = 512, SECTORS = 3, GRANULE = 8 };
enum { SIZE = IDEM_JOURNAL_MEMORY_SIZE(CAPACITY, KEY_MAX, RESPONSE_MAX,
                                       STATE_MAX, SECTORS, GRANULE) };

static uint32_t memory[SIZE / 4];
static idem_table table;

static uint32_t any32(void)
{
    return Frama_C_unsigned_int_interval(0, UINT32_MAX);
}

static void any_bytes(uint8_t *p, uint32_t len)
{
    Frama_C_make_unknown((char *)p, len);
}

static int any_result(void)
{
    return Frama_C_interval(-2, 2);
}

#ifdef EVA_OPEN
/* A storage that gives anything, whatever was written, and fails at will; that
   what is asked of it is inside is an assertion. */
static int any_read(void *ctx, uint32_t at, void *dst, uint32_t len)
{
    (void)ctx;
    //@ assert inside: at + len <= SECTOR * SECTORS;
    any_bytes(dst, len);
    return any_result();
}

static int any_prog(void *ctx, uint32_t at, const void *src, uint32_t len)
{
    const uint8_t *p = src;
    uint32_t i;

    (void)ctx;
    //@ assert inside: at + len <= SECTOR * SECTORS;
    for (i = 0; i < len; i++)
        //@ assert set: \initialized(p + i);
        ;
    return any_result();
}

static int any_erase(void *ctx, uint32_t sector)
{
    (void)ctx;
    //@ assert inside: sector < SECTORS;
    return any_result();
}

static const idem_storage storage = {
    .read = any_read, .prog = any_prog, .erase = any_erase,
    .sector_size = SECTOR, .sector_count = SECTORS, .prog_size = GRANULE,
    .erased = 0xFF };
#endif

static idem_config config = {
    .capacity = CAPACITY, .key_max = KEY_MAX, .response_max = RESPONSE_MAX,
    .state_max = STATE_MAX, .quota = 1,
#ifdef EVA_OPEN
    .storage = &storage,
#endif
    .secret = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16 } };

static uint8_t scope[KEY_MAX], key[KEY_MAX], payload[16], bytes[8], text[16];

/* A claim that may be one, or anything. */
static idem_claim any_claim(idem_claim claim)
{
    if (any_result() == 0) {
        claim.token = any32();
        claim.slot = any32();
        claim.attempt = any32();
    }
    return claim;
}

static void any_call(void)
{
    static idem_claim claim;
    static idem_entry entry;
    idem_reply reply = { .buffer = text, .buffer_size = sizeof text };
    idem_claim used = any_claim(claim);
    idem_outcome outcome = { .response = bytes, .state = bytes };
    idem_request rq = { .scope = scope, .key = key, .payload = payload };
    size_t len = any32() % sizeof text;

    any_bytes(scope, sizeof scope);
    any_bytes(key, sizeof key);
    any_bytes(payload, sizeof payload);
    any_bytes(bytes, sizeof bytes);
    rq.scope_len = any32() % (sizeof scope + 1);
    rq.key_len = any32() % (sizeof key + 1);
    rq.payload_len = any32() % (sizeof payload + 1);
    rq.lease_ms = any32();
    rq.retention_ms = any32();
    rq.age_ms = any32();
    outcome.response_len = any32() % (sizeof bytes + 1);
    outcome.state_len = any32() % (sizeof bytes + 1);
    outcome.confirm = (uint8_t)any32();
    entry.id = text;
    entry.id_size = len;
    switch (Frama_C_interval(0, 13)) {
    case 0: idem_begin(&table, &claim, &reply, &rq, any32()); break;
    case 1: idem_complete(&table, &used, &outcome, any32()); break;
    case 2: idem_release(&table, &used, any32()); break;
    case 3: idem_renew(&table, &used, any32(), any32()); break;
    case 4: idem_sync(&table); break;
    case 5: idem_maintain(&table, any32()); break;
    case 6: idem_elapse(&table, any32()); break;
    case 7: idem_find(&table, &entry, &rq, any32()); break;
    case 8: idem_next(&table, &entry, any32()); break;
    case 9: idem_pending(&table, &entry, any32()); break;
    case 10: idem_delivered(&table, &used); break;
    case 11: idem_response(&table, text, &len, &used, any32()); break;
    case 12: idem_state(&table, text, &len); break;
    case 13: idem_forget(&table, &rq, any32()); break;
    }
}

int main(void)
{
    int i;

    any_bytes(config.secret, sizeof config.secret);
    if (idem_open(&table, &config, memory, sizeof memory, any32()) < 0)
        return 1;
#ifndef EVA_OPEN
    for (i = 0; i < 8; i++)
        any_call();
#endif
    return 0;
}
