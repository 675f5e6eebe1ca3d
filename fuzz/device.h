/* SPDX-License-Identifier: 0BSD */
/*
 * A device (tests/model/device.h) that the input of a fuzzer chooses.
 */
#ifndef FUZZ_DEVICE_H
#define FUZZ_DEVICE_H

#define IDEM_STATIC
#define IDEM_IMPLEMENTATION
#include "idem.h"

#include "harness.h"

#define OPERATIONS_MAX 20000            // a call without end is no time-out
#include "../tests/model/device.h"

enum { KEY_MAX = 4, RESPONSE_MAX = 12, STATE_MAX = 4, CAPACITY_MAX = 5 };
enum { KEYS = 6, PAYLOADS = 2, SECTORS_MAX = 20 };

typedef struct geometry {
    int kind;
    uint16_t granule, sector_size;
    uint8_t erased, verify, flags;
} geometry;

static const geometry geometries[] = {
    { FLASH_NOR,     1,  384,  0xFF, 0, 0 },
    { FLASH_NOR,     8,  512,  0xFF, 0, 0 },
    { FLASH_NOR,     4,  512,  0x00, 1, SPLIT },
    { FLASH_NOR,     16, 768,  0xFF, 0, SPLIT },
    { FLASH_NOR,     32, 1024, 0xFF, 1, 0 },
    { FLASH_ECC,     8,  512,  0xFF, 0, 0 },
    { FLASH_INPLACE, 1,  384,  0xFF, 0, 0 },
    { FLASH_INPLACE, 4,  512,  0x00, 1, CACHE },
};

static device the;
static known keys[KEYS];

static void choose_config(input *in)
{
    idem_config *config = &the.config;
    unsigned modes = input_byte(in);

    config->capacity = 1 + input_below(in, CAPACITY_MAX);
    config->key_max = KEY_MAX;
    config->response_max = RESPONSE_MAX;
    config->state_max = modes & 1 ? STATE_MAX : 0;
    config->volatile_claims = (modes & 6) == 6;
    config->durability = modes & 8 ? IDEM_BATCH : IDEM_EACH;
    config->full = modes & 16 ? IDEM_EVICT_OLDEST : IDEM_REJECT;
    // Every second scope numbers its commands then.
    if (modes & 32) {
        config->key_max = 9;
        config->senders = config->quota = 2;
    }
    config->retention_ms = modes & 64 ? 5000 : 0;
    config->lease_ms = 1000;
    memcpy(config->secret, SECRET, sizeof config->secret);
    config->storage = &the.storage;
    the.more = modes & 128 ? 256 : 0;
}

/* Makes a blank device, with as many sectors as it takes, or one more; false if
   there is none of what the input chose. */
static int choose_device(input *in)
{
    const geometry *g =
        &geometries[input_below(in, sizeof geometries / sizeof *geometries)];
    unsigned more = input_below(in, 2);

    memset(&the, 0, sizeof the);
    choose_config(in);
    the.flags = g->flags;
    the.scopes = 2;
    the.per_epoch = 2;
    the.polls = 1;
    the.medium.kind = g->kind;
    the.medium.draws = 2;
    the.storage.sector_size = g->sector_size;
    the.storage.prog_size = g->granule;
    the.storage.erased = g->erased;
    the.storage.verify = g->verify;
    the.storage.sector_count = device_sectors(&the) + more;
    if (!device_sectors(&the) || the.storage.sector_count > SECTORS_MAX)
        return 0;
    device_make(&the, keys, KEYS);
    the.now = input_word(in);
    return 1;
}

#endif /* FUZZ_DEVICE_H */
