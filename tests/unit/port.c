/* SPDX-License-Identifier: 0BSD
   The check of ports (examples/port/check.h) accepts good ones, and says of
   each of many bad ones what is wrong with it. */
#include "idem.h"
#include "examples/port/check.h"
#include "storage/flash.h"

#include "test.h"

// What people do wrong.
enum {
    NOTHING,
    RETURNS_LENGTH, WRONG_ERASED, READ_TOO_LONG, READ_ALIGNED, READ_SHORT,
    PAGES_WRAP, ADDRESS_16_BIT, SECTORS_OVERLAP, CHANGES_SOURCE, SOURCE_ALIGNED,
    GRANULE_TOO_SMALL, ERASE_TOO_MUCH, ERASE_TOO_LITTLE, ERASE_NOT_AWAITED,
    ERASE_NEVER_ENDS, STALE_CACHE, NOT_SYNCED, ONLY_CLEARS_BITS, TOO_FEW,
    LAST_SECTOR_MISSING, BAD_GRANULE
};

typedef struct port {
    flash medium;
    idem_storage storage;
    void *memory;
    int fault;
    uint8_t cache[256];             // STALE_CACHE: of address 0 on
    int cached;
    int erases_left;                // ERASE_NOT_AWAITED, _NEVER_ENDS
    uint32_t erasing;
    uint8_t *shadow;                // NOT_SYNCED
} port;

static int port_read_bad(void *ctx, uint32_t at, void *dst, uint32_t len)
{
    port *p = (port *)ctx;
    int result;

    if (p->fault == READ_ALIGNED)
        at &= ~3u;
    if (p->fault == READ_SHORT && len > 128)
        len = 128;
    if (p->fault == STALE_CACHE && at + len <= sizeof p->cache) {
        if (!p->cached)
            flash_read(&p->medium, 0, p->cache, sizeof p->cache);
        p->cached = 1;
        memcpy(dst, p->cache + at, len);
        return 0;
    }
    if (p->erases_left && p->fault == ERASE_NOT_AWAITED && --p->erases_left == 0)
        flash_erase(&p->medium, p->erasing);
    result = flash_read(&p->medium, at, dst, len);
    if (p->fault == READ_TOO_LONG)
        ((uint8_t *)dst)[len] = 0;
    return result ? result : p->fault == RETURNS_LENGTH ? (int)len : 0;
}

/* One granule of those that really are there, which is 8 bytes. */
static int port_prog_small(port *p, uint32_t at, const void *src, uint32_t len)
{
    uint8_t old[8];
    uint32_t granule = at & ~7u;

    flash_read(&p->medium, granule, old, sizeof old);
    for (unsigned i = 0; i < sizeof old; i++)
        if (old[i] != 0xFF)
            return -1;
    return flash_prog(&p->medium, at, src, len);
}

static int port_prog_bad(void *ctx, uint32_t at, const void *src, uint32_t len)
{
    port *p = (port *)ctx;
    const uint8_t *from = (const uint8_t *)src;

    switch (p->fault) {
    case ADDRESS_16_BIT:
        return flash_prog(&p->medium, at & 0xFFFF, src, len);
    case SECTORS_OVERLAP:
        at = at / 4096 * 2048 + at % 4096;
        return flash_prog(&p->medium, at, src, len);
    case CHANGES_SOURCE:
        *(uint8_t *)(uintptr_t)src ^= 1;
        break;
    case SOURCE_ALIGNED:
        from = (const uint8_t *)((uintptr_t)from & ~(uintptr_t)3);
        break;
    case GRANULE_TOO_SMALL:
        return port_prog_small(p, at, src, len);
    case PAGES_WRAP:
        for (uint32_t i = 0; i < len; i++)
            flash_prog(&p->medium, (at & ~255u) | ((at + i) & 255), from + i,
                       1);
        return 0;
    case ONLY_CLEARS_BITS:
        for (uint32_t i = 0; i < len; i++) {
            uint8_t byte;
            flash_read(&p->medium, at + i, &byte, 1);
            byte &= from[i];
            flash_prog(&p->medium, at + i, &byte, 1);
        }
        return 0;
    case LAST_SECTOR_MISSING:
        if (at / 4096 == p->storage.sector_count - 1)
            return -1;
        break;
    default:
        break;
    }
    return flash_prog(&p->medium, at, from, len);
}

static int port_erase_bad(void *ctx, uint32_t sector)
{
    port *p = (port *)ctx;

    p->erasing = sector;
    switch (p->fault) {
    case ERASE_TOO_MUCH:
        flash_erase(&p->medium, sector ^ 1);
        break;
    case ERASE_TOO_LITTLE:
        // The flash knows no erase of a part: the rest is made as it was.
        {
            uint8_t old[2048];
            flash_read(&p->medium, sector * 4096 + 2048, old, sizeof old);
            flash_erase(&p->medium, sector);
            if (old[0] == 0xFF)
                return 0;
            return flash_prog(&p->medium, sector * 4096 + 2048, old,
                              sizeof old);
        }
    case ERASE_NOT_AWAITED:
        p->erases_left = 30;
        return 0;
    default:
        break;
    }
    return flash_erase(&p->medium, sector);
}

static int port_erasing_bad(void *ctx)
{
    port *p = (port *)ctx;

    return p->fault == ERASE_NEVER_ENDS;
}

/* A reset: what was not synced goes. */
static void port_restart(void *ctx)
{
    port *p = (port *)ctx;

    if (p->fault == NOT_SYNCED)
        flash_load(&p->medium, 8192, p->shadow, 4096);
}

static int setup(void **state)
{
    port *p = (port *)calloc(1, sizeof *p);

    if (!p)
        return -1;
    p->medium.kind = FLASH_NOR;
    p->medium.erased = 0xFF;
    p->medium.sector_size = 4096;
    p->medium.sector_count = 20;
    p->medium.prog_size = 1;
    p->shadow = (uint8_t *)calloc(1, 4096);
    p->memory = malloc(FLASH_MEMORY(4096, 20));
    if (!p->memory || !p->shadow || flash_init(&p->medium, p->memory))
        return -1;
    p->storage.ctx = p;
    p->storage.read = port_read_bad;
    p->storage.prog = port_prog_bad;
    p->storage.erase = port_erase_bad;
    p->storage.sector_size = 4096;
    p->storage.sector_count = 20;
    p->storage.prog_size = 1;
    p->storage.erased = 0xFF;
    *state = p;
    return 0;
}

static int teardown(void **state)
{
    port *p = (port *)*state;

    free(p->memory);
    free(p->shadow);
    free(p);
    return 0;
}

// A test that is given a port, p.
#undef TEST
#define TEST(name) TEST_WITH(name, setup, teardown, port *p, (port *)*state)

/* Nothing is wrong, and the storage is blank in the end. */
static void accept(port *p)
{
    uint32_t at = 0;
    const char *wrong = port_check(&p->storage, port_restart, p, &at);
    uint8_t byte;

    if (wrong)
        printf("%s (at %u)\n", wrong, (unsigned)at);
    assert_true(wrong == NULL);
    is(p->medium.violations, 0);
    for (at = 0; at < p->medium.size; at++) {
        flash_read(&p->medium, at, &byte, 1);
        is(byte, p->storage.erased);
    }
}

/* Something is wrong, and these words are said of it. */
static void refuse(port *p, int fault, const char *words)
{
    uint32_t at = 0;
    const char *wrong;

    p->fault = fault;
    wrong = port_check(&p->storage, port_restart, p, &at);
    assert_true(wrong != NULL);
    if (!strstr(wrong, words))
        printf("said: %s (at %u)\n", wrong, (unsigned)at);
    assert_true(strstr(wrong, words) != NULL);
}

/* The medium anew, of another kind. */
static void make(port *p, int kind, uint32_t granule, uint8_t erased)
{
    p->medium.kind = kind;
    p->medium.prog_size = granule;
    p->medium.erased = erased;
    is(flash_init(&p->medium, p->memory), 0);
    p->storage.prog_size = (uint16_t)granule;
    p->storage.erased = erased;
    p->storage.erase = kind == FLASH_INPLACE ? NULL : port_erase_bad;
}

TEST(good_ports_are_accepted)
{
    accept(p);
    make(p, FLASH_NOR, 8, 0xFF);
    accept(p);
    make(p, FLASH_ECC, 16, 0xFF);
    accept(p);
    make(p, FLASH_NOR, 256, 0x00);
    accept(p);
    make(p, FLASH_INPLACE, 1, 0xFF);
    accept(p);
    make(p, FLASH_INPLACE, 32, 0x00);
    accept(p);
    make(p, FLASH_NOR, 4, 0xFF);
    p->storage.erasing = port_erasing_bad;
    accept(p);
}

#define BAD(name, fault, words)                                                \
    TEST(name) { refuse(p, fault, words); }

BAD(a_length_is_no_success, RETURNS_LENGTH, "a length for example")
BAD(reading_too_much, READ_TOO_LONG, "more than it is asked for")
BAD(reading_words_only, READ_ALIGNED, "read from an odd place")
BAD(reading_too_little, READ_SHORT, "does not read as")
BAD(pages_that_wrap, PAGES_WRAP, "cross a page")
BAD(addresses_of_16_bits, ADDRESS_16_BIT, "does not read back")
BAD(sectors_that_overlap, SECTORS_OVERLAP, "does not read back")
BAD(a_source_that_is_changed, CHANGES_SOURCE, "changes the bytes")
BAD(a_source_taken_for_aligned, SOURCE_ALIGNED, "does not read back")
BAD(a_granule_too_small, GRANULE_TOO_SMALL, "prog_size too small")
BAD(an_erase_of_too_much, ERASE_TOO_MUCH, "less than what is erased at once")
BAD(an_erase_of_too_little, ERASE_TOO_LITTLE, "less than sector_size")
BAD(an_erase_not_awaited, ERASE_NOT_AWAITED, "must wait")
BAD(a_cache_not_invalidated, STALE_CACHE, "does not read back")
BAD(a_cache_not_written, NOT_SYNCED, "gone after a restart")
BAD(a_sector_that_is_not_there, LAST_SECTOR_MISSING, "fails")

TEST(an_erase_that_never_ends)
{
    p->storage.erasing = port_erasing_bad;
    refuse(p, ERASE_NEVER_ENDS, "never says that it has finished");
}

TEST(another_erased_value)
{
    p->storage.erased = 0x00;
    refuse(p, WRONG_ERASED, "is that the right value");
}

TEST(flash_taken_for_eeprom)
{
    make(p, FLASH_INPLACE, 1, 0xFF);
    refuse(p, ONLY_CLEARS_BITS, "needs an erase");
}

TEST(impossible_geometries)
{
    p->storage.sector_count = 3;
    refuse(p, TOO_FEW, "sector_count");
    p->storage.sector_count = 20;
    p->storage.prog_size = 3;
    refuse(p, BAD_GRANULE, "prog_size");
}
