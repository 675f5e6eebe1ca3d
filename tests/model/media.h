/* SPDX-License-Identifier: 0BSD */
/*
 * The storage emulator (flash.h) as the storage of a table: its kinds, its
 * memory, and how many sectors a configuration takes.
 */
#ifndef MEDIA_H
#define MEDIA_H

#include "idem.h"

/* The medium is not what is tested: a fuzzer spends no time on it. */
#ifdef __clang__
#pragma clang attribute push(__attribute__((no_sanitize(                       \
    "address", "undefined"))), apply_to = function)
#endif
#include "flash.h"
#ifdef __clang__
#pragma clang attribute pop
#endif

#include <stdio.h>
#include <stdlib.h>

// What a medium has beside its geometry.
enum {
    NOISE = 1,                      // a torn granule of ECC reads as noise,
    ALL_NOISE = 2,                  // all of a program may
    CACHE = 4,                      // programs are durable from a sync on
    SPLIT = 8,                      // erasing is polled
    READ_MAP = 16,                  // what an opening reads is counted
    VERIFY = 32                     // what was programmed is read back
};

typedef struct medium {
    const char *name;
    int      kind, flags;           // kind: as in struct flash
    uint16_t granule;
    uint32_t sector_size;
    uint8_t  erased;
} medium;

static inline void *medium_allocate(size_t size)
{
    void *memory = calloc(1, size + 1);

    if (!memory) {
        fputs("out of memory\n", stderr);
        exit(2);
    }
    return memory;
}

/* The sectors that there must be; 0: they are too small. */
static inline uint32_t medium_sectors(const idem_config *c,
                                      const idem_storage *s)
{
    return IDEM_SECTORS(c->capacity + c->senders, c->key_max, c->response_max,
                        c->state_max, s->sector_size, s->prog_size);
}

/* Makes a blank medium of f->kind, with the geometry of a storage and memory of
   its own.  Returns 0, or -1 if that cannot be. */
static inline int medium_make(flash *f, const idem_storage *s, int flags)
{
    size_t size = (size_t)s->sector_size * s->sector_count;

    f->sector_size = s->sector_size;
    f->sector_count = s->sector_count;
    f->prog_size = s->prog_size;
    f->erased = s->erased;
    f->torn_noise = flags & ALL_NOISE ? 1
                    : flags & NOISE   ? FLASH_ONE_TORN : 0;
    if (flags & READ_MAP)
        f->read_map = (uint8_t *)medium_allocate(size);
    if (flags & CACHE && f->kind == FLASH_INPLACE) {
        f->durable = (uint8_t *)medium_allocate(size);
        f->stamps = (uint16_t *)medium_allocate(2 * size);
    }
    return flash_init(f, medium_allocate(FLASH_MEMORY(s->sector_size,
                                                      s->sector_count)));
}

static inline void medium_end(flash *f)
{
    free(f->sector_erases);
    free(f->read_map);
    free(f->durable);
    free(f->stamps);
    memset(f, 0, sizeof *f);
}

#endif /* MEDIA_H */
