/* SPDX-License-Identifier: 0BSD */
/*
 * A device under a fuzzer: a medium (tests/storage/flash.h) and a configuration
 * chosen by the input, and a table on it.  Every call is bounded: a storage that
 * is used without end is a violation, not a time-out.
 */
#ifndef DEVICE_H
#define DEVICE_H

#define IDEM_STATIC
#define IDEM_IMPLEMENTATION
#include "idem.h"

#include "harness.h"

/* The medium is not what is tested: no time is spent on it. */
#ifdef __clang__
#pragma clang attribute push(__attribute__((no_sanitize(                       \
    "address", "undefined", "coverage"))), apply_to = function)
#endif
#include "flash.h"
#include "inside.h"
#ifdef __clang__
#pragma clang attribute pop
#endif

enum { KEY_MAX = 4, RESPONSE_MAX = 12, STATE_MAX = 4, CAPACITY_MAX = 5 };
enum { SECTOR_MAX = 1024, SECTORS_MAX = 20, GRANULE_MAX = 32 };
enum { OPERATIONS_MAX = 20000 };        // of the storage, in one call
enum { KEYS = 6, PAYLOADS = 2 };

typedef struct geometry {
    int kind;
    uint16_t granule, sector_size;
    uint8_t erased, verify, split, cached;
} geometry;

static const geometry geometries[] = {
    { FLASH_NOR,     1,  384,  0xFF, 0, 0, 0 },
    { FLASH_NOR,     8,  512,  0xFF, 0, 0, 0 },
    { FLASH_NOR,     4,  512,  0x00, 1, 1, 0 },
    { FLASH_NOR,     16, 768,  0xFF, 0, 1, 0 },
    { FLASH_NOR,     32, 1024, 0xFF, 1, 0, 0 },
    { FLASH_ECC,     8,  512,  0xFF, 0, 0, 0 },
    { FLASH_INPLACE, 1,  384,  0xFF, 0, 0, 0 },
    { FLASH_INPLACE, 4,  512,  0x00, 1, 0, 1 },
};

typedef struct device {
    flash        medium;
    idem_storage storage;
    idem_config  config;
    idem_table   table;
    size_t       memory_size;
    uint32_t     now;               // the tick
    uint32_t     used;              // operations of the storage in this call
    unsigned     busy;              // polls until an erase is done
} device;

static device the;
static uint32_t medium_memory[FLASH_MEMORY(SECTOR_MAX, SECTORS_MAX) / 4];
static uint8_t durable[SECTOR_MAX * SECTORS_MAX];
static uint16_t stamps[SECTOR_MAX * SECTORS_MAX];
static uint32_t table_memory[IDEM_JOURNAL_MEMORY_SIZE(
    CAPACITY_MAX, KEY_MAX, RESPONSE_MAX, STATE_MAX, GRANULE_MAX) / 4 + 64];

/* ------------------------------------------------------------ the callbacks */

static void count_operation(void)
{
    PROMISE(++the.used < OPERATIONS_MAX);
}

static int device_read(void *ctx, uint32_t at, void *dst, uint32_t len)
{
    count_operation();
    return flash_read(ctx, at, dst, len);
}

static int device_prog(void *ctx, uint32_t at, const void *src, uint32_t len)
{
    count_operation();
    return flash_prog(ctx, at, src, len);
}

static int device_erase(void *ctx, uint32_t sector)
{
    count_operation();
    the.busy = 2;
    return flash_erase(ctx, sector);
}

static int device_erasing(void *ctx)
{
    (void)ctx;
    count_operation();
    the.busy -= the.busy > 0;
    return the.busy > 0;
}

static int device_sync(void *ctx)
{
    count_operation();
    return flash_sync(ctx);
}

/* ---------------------------------------------------------- making a device */

static void make_medium(const geometry *g, uint32_t size, uint32_t sectors)
{
    flash *f = &the.medium;
    idem_storage *s = &the.storage;

    f->kind = g->kind;
    f->sector_size = s->sector_size = size;
    f->sector_count = s->sector_count = sectors;
    f->prog_size = g->granule;
    f->erased = s->erased = g->erased;
    f->draws = 2;
    if (g->cached) {
        f->durable = durable;
        f->stamps = stamps;
    }
    s->prog_size = g->granule;
    s->verify = g->verify;
    s->ctx = f;
    s->read = device_read;
    s->prog = device_prog;
    if (g->kind != FLASH_INPLACE)
        s->erase = device_erase;
    if (g->split)
        s->erasing = device_erasing;
    if (g->cached)
        s->sync = device_sync;
}

static void make_config(input *in)
{
    static const uint8_t secret[16] = "sixteen secrets.";
    idem_config *config = &the.config;
    unsigned modes = input_byte(in);

    config->capacity = 1 + input_below(in, CAPACITY_MAX);
    config->key_max = KEY_MAX;
    config->response_max = RESPONSE_MAX;
    config->state_max = modes & 1 ? STATE_MAX : 0;
    config->volatile_claims = (modes & 6) == 6;
    config->durability = modes & 8 ? IDEM_BATCH : IDEM_EACH;
    config->full = modes & 16 ? IDEM_EVICT_OLDEST : IDEM_REJECT;
    config->quota = modes & 32 ? 2 : 0;
    config->retention_ms = modes & 64 ? 5000 : 0;
    the.memory_size = modes & 128 ? sizeof table_memory : 0;
    config->lease_ms = 1000;
    memcpy(config->secret, secret, sizeof secret);
    config->storage = &the.storage;
}

static int device_open(void)
{
    memset(table_memory, 0xA5, the.memory_size);
    the.used = 0;
    the.busy = 0;
    return idem_open(&the.table, &the.config, table_memory, the.memory_size,
                     the.now);
}

/* Makes a medium of as many sectors as it takes, or one more; false if those
   are too many. */
static int make_enough(const geometry *g, unsigned more)
{
    uint32_t sectors = IDEM_SECTORS(the.config.capacity, KEY_MAX, RESPONSE_MAX,
                                    the.config.state_max, g->sector_size,
                                    g->granule);

    make_medium(g, g->sector_size, sectors + more);
    return sectors && sectors + more <= SECTORS_MAX;
}

/* Makes a blank device; false if there is none of what the input chose. */
static int device_make(input *in)
{
    const geometry *g =
        &geometries[input_below(in, sizeof geometries / sizeof *geometries)];
    unsigned more = input_below(in, 2);

    memset(&the, 0, sizeof the);
    make_config(in);
    if (!make_enough(g, more))
        return 0;
    if (!the.memory_size &&
        idem_open(&the.table, &the.config, NULL, 0, 0) == IDEM_E_MEMORY)
        the.memory_size = the.table.needed;
    PROMISE(flash_init(&the.medium, medium_memory) == 0);
    the.now = input_word(in);
    return 1;
}

/* ----------------------------------------------------------- what is asked */

/* Key 0 and 1, 2 and 3 .. differ in the scope alone, or in the border. */
static idem_request request_of(unsigned key, unsigned payload)
{
    static const char *const scopes[KEYS] = { "", "s", "sa", "s", "", "t" };
    static const char *const names[KEYS] = { "a", "a", "b", "ab", "b", "d" };
    idem_request rq;

    memset(&rq, 0, sizeof rq);
    rq.scope = scopes[key];
    rq.scope_len = strlen(scopes[key]);
    rq.key = names[key];
    rq.key_len = strlen(names[key]);
    rq.has_fingerprint = 1;
    rq.fingerprint = payload;
    return rq;
}

/* Which key it is that an entry tells of, or KEYS. */
static unsigned key_of(const idem_entry *entry)
{
    unsigned key;

    for (key = 0; key < KEYS; key++) {
        idem_request rq = request_of(key, 0);
        const uint8_t *id = entry->id;
        if (entry->scope_len == rq.scope_len && entry->key_len == rq.key_len &&
            !memcmp(id, rq.scope, rq.scope_len) &&
            !memcmp(id + rq.scope_len, rq.key, rq.key_len))
            break;
    }
    return key;
}

/* A response says whose it is: key, payload, number. */
static size_t response_of(uint8_t *bytes, unsigned key, unsigned payload,
                          uint32_t number)
{
    bytes[0] = (uint8_t)key;
    bytes[1] = (uint8_t)payload;
    memcpy(bytes + 2, &number, sizeof number);
    memset(bytes + 6, (int)number, RESPONSE_MAX - 6);
    return 6 + number % (RESPONSE_MAX - 5);
}

#endif /* DEVICE_H */
