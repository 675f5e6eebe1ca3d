/* SPDX-License-Identifier: 0BSD */
/* A journal for two keys whose storage reads any bytes, other ones each time,
   and sometimes fails: of as few sectors as will do, of nine granules; a
   granule is as long as the longest record. */
#include "any.h"

enum { CAPACITY = 2, KEY_MAX = 2, RESPONSE_MAX = 3, STATE_MAX = 2,
       GRANULE = 64, SECTOR = 9 * GRANULE, SECTORS = 5, FRONT = GRANULE };

#include "table.h"

/* Where opening.c met what last, and how long it was.  States in which that
   differs are not mixed. */
static uint32_t met;

static int read_any(void *ctx, uint32_t at, void *dst, uint32_t len)
{
    (void)ctx;
    met = 0;
    //@ assert inside: at <= SECTORS * SECTOR - len;
    Frama_C_make_unknown(dst, len);
    return (int)any();
}

static int erase_any(void *ctx, uint32_t sector)
{
    (void)ctx;
    //@ assert erased: sector < SECTORS;
    return (int)any();
}

/* An opening writes nothing. */
static int never(void *ctx, uint32_t at, const void *src, uint32_t len)
{
    //@ assert never: \false;
    (void)ctx, (void)at, (void)src, (void)len;
    return 1;
}

static const idem_storage storage = {
    .read = read_any, .prog = never, .erase = erase_any,
    .sector_size = SECTOR,
    .sector_count = SECTORS, .prog_size = GRANULE, .erased = 0xFF };

static uint32_t memory[IDEM_JOURNAL_MEMORY_SIZE(
    CAPACITY, KEY_MAX, RESPONSE_MAX, STATE_MAX, GRANULE) / 4];

static void configure_journal(void)
{
    configure(&storage);
    config.quota = 0;
}
