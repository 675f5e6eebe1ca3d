/* SPDX-License-Identifier: 0BSD
   The check of ports (examples/port/check.h) accepts good ones, and prints of
   each of many bad ones what is wrong with it. */
#include "idem.h"
#include "examples/port/check.h"
#include "model/flash.h"

#include "test.h"

enum { SECTOR = 4096, SECTORS = 20 };

// What people do wrong, and words that must be printed for it.
#define BADS(X)                                                                \
    X(RETURNS_LENGTH, "a length is no success", "a length for example")        \
    X(WRONG_ERASED, "another erased value", "the right value")         \
    X(READ_TOO_LONG, "reading too much", "more than it is asked for")          \
    X(READ_ALIGNED, "reading words only", "read begin at an odd place")     \
    X(READ_SHORT, "reading too little", "does read read all")             \
    X(PAGES_WRAP, "pages that wrap", "cross a page")                           \
    X(ADDRESS_16_BIT, "addresses of 16 bits", "does not read back")            \
    X(SECTORS_OVERLAP, "sectors that overlap", "does not read back")           \
    X(CHANGES_SOURCE, "a source that is changed", "changes the bytes")         \
    X(SOURCE_ALIGNED, "a source taken for aligned", "does not read back")      \
    X(GRANULE_TOO_SMALL, "a granule too small", "prog_size too small")         \
    X(ERASE_TOO_MUCH, "an erase of too much", "less than what is erased at")   \
    X(ERASE_TOO_LITTLE, "an erase of too little", "less than sector_size")     \
    X(ERASE_NOT_AWAITED, "an erase not awaited", "must wait")                  \
    X(ERASE_IGNORES, "a program that an erase ignores", "is erased do not")    \
    X(ERASE_NEVER_ENDS, "an erase that never ends", "never returns 0: it ")   \
    X(STALE_CACHE, "a cache not invalidated", "does not read back")            \
    X(NOT_SYNCED, "a cache not written", "gone after a restart")               \
    X(TAKEN_FOR_EEPROM, "flash taken for EEPROM", "needs an erase")            \
    X(TOO_FEW, "too few sectors", "sector_count")                              \
    X(LAST_SECTOR_MISSING, "a sector that is not there", "fails")              \
    X(BAD_GRANULE, "an impossible granule", "prog_size")

#define FAULT(fault, name, words) fault,
enum { NOTHING, BADS(FAULT) };

#define BAD(fault, name, words) { name, fault, words },
static const struct bad {
    const char *name;
    int fault;
    const char *words;
} bads[] = { BADS(BAD) };

typedef struct port {
    flash medium;
    idem_storage storage;
    int fault;
    uint8_t cache[256];             // STALE_CACHE: of address 0 on
    int cached;
    int erases_left;                // ERASE_NOT_AWAITED, ERASE_IGNORES
    uint32_t erasing;
} port;

static port the_port;
static uint32_t memory[FLASH_MEMORY(SECTOR, SECTORS) / 4];

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
    if (p->erases_left && --p->erases_left == 0)
        flash_erase(&p->medium, p->erasing);
    result = flash_read(&p->medium, at, dst, len);
    if (p->fault == READ_TOO_LONG)
        ((uint8_t *)dst)[len] = 0;
    return result ? result : p->fault == RETURNS_LENGTH ? (int)len : 0;
}

/* True if a granule of those that really are there, 8 bytes, is blank. */
static int is_blank(port *p, uint32_t at)
{
    uint8_t is[8];

    flash_read(&p->medium, at & ~7u, is, sizeof is);
    return !memcmp(is, "\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF", sizeof is);
}

static int port_prog_bad(void *ctx, uint32_t at, const void *src, uint32_t len)
{
    port *p = (port *)ctx;
    const uint8_t *from = (const uint8_t *)src;

    switch (p->fault) {
    case ERASE_IGNORES:
        if (p->erases_left)
            return 0;
        break;
    case ADDRESS_16_BIT: at &= 0xFFFF; break;
    case SECTORS_OVERLAP: at = at / SECTOR * 2048 + at % SECTOR; break;
    case CHANGES_SOURCE: *(uint8_t *)(uintptr_t)src ^= 1; break;
    case SOURCE_ALIGNED: from -= (uintptr_t)from & 3; break;
    case GRANULE_TOO_SMALL:
        if (!is_blank(p, at))
            return -1;
        break;
    case PAGES_WRAP:
        for (uint32_t i = 0; i < len; i++)
            flash_prog(&p->medium, (at & ~255u) | ((at + i) & 255), from + i,
                       1);
        return 0;
    case LAST_SECTOR_MISSING:
        if (at / SECTOR == SECTORS - 1)
            return -1;
        break;
    }
    return flash_prog(&p->medium, at, from, len);
}

static int port_erase_bad(void *ctx, uint32_t sector)
{
    port *p = (port *)ctx;

    switch (p->fault) {
    case ERASE_TOO_MUCH: flash_erase(&p->medium, sector ^ 1); break;
    case ERASE_TOO_LITTLE:
        flash_fill(&p->medium, sector * SECTOR, SECTOR / 2, 0xFF);
        return 0;
    case ERASE_NOT_AWAITED:
    case ERASE_IGNORES:
        p->erasing = sector;
        p->erases_left = p->fault == ERASE_IGNORES ? 1 : 50;
        return 0;
    }
    return flash_erase(&p->medium, sector);
}

static int port_erasing_bad(void *ctx)
{
    port *p = (port *)ctx;

    if (p->erases_left && --p->erases_left == 0)
        flash_erase(&p->medium, p->erasing);
    return p->fault == ERASE_NEVER_ENDS;
}

/* A reset: what was not synced goes. */
static void port_restart(void *ctx)
{
    static const uint8_t before[SECTOR];
    port *p = (port *)ctx;

    if (p->fault == NOT_SYNCED)
        flash_load(&p->medium, 2 * SECTOR, before, SECTOR);
}

/* A port to a medium. */
static port *make(int kind, uint32_t granule, uint8_t erased)
{
    port *p = &the_port;

    memset(p, 0, sizeof *p);
    p->medium.kind = kind;
    p->medium.erased = p->storage.erased = erased;
    p->medium.sector_size = p->storage.sector_size = SECTOR;
    p->medium.sector_count = p->storage.sector_count = SECTORS;
    p->medium.prog_size = granule;
    is(flash_init(&p->medium, memory), 0);
    p->storage.prog_size = (uint16_t)granule;
    p->storage.ctx = p;
    p->storage.read = port_read_bad;
    p->storage.prog = port_prog_bad;
    p->storage.erase = kind == FLASH_INPLACE ? NULL : port_erase_bad;
    return p;
}

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

TEST(good_ports_are_accepted)
{
    accept(make(FLASH_NOR, 1, 0xFF));
    accept(make(FLASH_NOR, 8, 0xFF));
    accept(make(FLASH_ECC, 16, 0xFF));
    accept(make(FLASH_NOR, 256, 0x00));
    accept(make(FLASH_INPLACE, 1, 0xFF));
    accept(make(FLASH_INPLACE, 32, 0x00));
    make(FLASH_NOR, 4, 0xFF)->storage.erasing = port_erasing_bad;
    accept(&the_port);
}

/* Something is wrong, and the words are printed for it. */
static void refuse(void **state)
{
    const struct bad *bad = (const struct bad *)*state;
    int fault = bad->fault;
    port *p = make(FLASH_NOR, 1, 0xFF);
    uint32_t at = 0;
    const char *wrong;

    p->fault = fault;
    if (fault == TAKEN_FOR_EEPROM)
        p->storage.erase = NULL;
    p->storage.erased = fault == WRONG_ERASED ? 0 : 0xFF;
    p->storage.erasing = fault == ERASE_NEVER_ENDS || fault == ERASE_IGNORES
                             ? port_erasing_bad : NULL;
    p->storage.sector_count = fault == TOO_FEW ? 3 : SECTORS;
    p->storage.prog_size = fault == BAD_GRANULE ? 3 : 1;
    wrong = port_check(&p->storage, port_restart, p, &at);
    assert_true(wrong != NULL);
    if (!strstr(wrong, bad->words))
        printf("reported: %s (at %u)\n", wrong, (unsigned)at);
    assert_true(strstr(wrong, bad->words) != NULL);
}

TESTS(bads, refuse)

/* ------------------------------------------------------------- neighbours */

// A chip in which the storage has neighbours.  Its addresses fold at its end,
// an erase clears a page, and protected sectors ignore program and erase.
enum { SMALL = 256, CHIP = 32, WINDOW = 8 };    // bytes, sectors, sectors

typedef struct chip {
    const char *name;
    uint32_t base;                  // sector at which the storage begins
    uint32_t page;                  // sectors that are erased at once
    uint32_t open;                  // sectors from here on are protected
    uint32_t blank, blanks;         // the rest of the chip holds code
    const char *words;              // NULL: nothing is wrong
} chip;

static uint8_t chip_bytes[CHIP * SMALL];

static const chip chips[] = {
    { "all is well", 12, 1, CHIP, 12, 8, NULL },
    { "a storage that ends beyond the chip", 28, 1, CHIP, 28, 4, "not blank" },
    { "a base that is another's", 2, 1, CHIP, 12, 8, "not blank" },
    { "pages of two sectors", 12, 2, CHIP, 12, 8, "less than what is erased" },
    { "pages of four, across the base", 10, 4, CHIP, 10, 8, "less than what" },
    { "a chip that is protected", 12, 1, 0, 12, 8, "protected" },
    { "a chip that is protected in part", 12, 1, 18, 12, 8, "protected" },
};

static uint8_t *chip_byte(const chip *c, uint32_t at)
{
    return &chip_bytes[(c->base * SMALL + at) % sizeof chip_bytes];
}

static int chip_read(void *ctx, uint32_t at, void *dst, uint32_t len)
{
    for (uint32_t i = 0; i < len; i++)
        ((uint8_t *)dst)[i] = *chip_byte((const chip *)ctx, at + i);
    return 0;
}

static int chip_prog(void *ctx, uint32_t at, const void *src, uint32_t len)
{
    const chip *c = (const chip *)ctx;

    for (uint32_t i = 0; i < len && c->base + at / SMALL < c->open; i++)
        *chip_byte(c, at + i) &= ((const uint8_t *)src)[i];
    return 0;
}

static int chip_erase(void *ctx, uint32_t sector)
{
    const chip *c = (const chip *)ctx;
    uint32_t from = (c->base + sector) % CHIP / c->page * c->page;

    if (c->base + sector < c->open)
        memset(chip_bytes + from * SMALL, 0xFF, c->page * SMALL);
    return 0;
}

/* Neighbours hold code, and none of it goes. */
static void check_beside_code(void **state)
{
    const chip *c = (const chip *)*state;
    idem_storage s = { .ctx = (void *)(uintptr_t)c, .read = chip_read,
        .prog = chip_prog, .erase = chip_erase, .sector_size = SMALL,
        .sector_count = WINDOW, .prog_size = 1, .erased = 0xFF };
    uint32_t at;
    const char *wrong;

    memset(chip_bytes, 0x5A, sizeof chip_bytes);
    memset(chip_bytes + c->blank * SMALL, 0xFF, c->blanks * SMALL);
    wrong = port_check(&s, NULL, NULL, &at);
    assert_true(!wrong == !c->words);
    if (wrong && !strstr(wrong, c->words))
        printf("reported: %s (at %u)\n", wrong, (unsigned)at);
    assert_true(!wrong || strstr(wrong, c->words));
    for (at = 0; at < sizeof chip_bytes; at++)
        if (at / SMALL < c->blank || at / SMALL >= c->blank + c->blanks)
            is(chip_bytes[at], 0x5A);
}

TESTS(chips, check_beside_code)

TEST(clear_makes_blank_what_a_check_refuses)
{
    static const chip c = { "", 12, 1, CHIP, 12, 8, NULL };
    idem_storage s = { .ctx = (void *)(uintptr_t)&c, .read = chip_read,
        .prog = chip_prog, .erase = chip_erase, .sector_size = SMALL,
        .sector_count = WINDOW, .prog_size = 1, .erased = 0xFF };
    uint32_t at;

    memset(chip_bytes, 0x5A, sizeof chip_bytes);
    assert_non_null(port_check(&s, NULL, NULL, &at));
    is(chip_bytes[12 * SMALL], 0x5A);
    assert_null(port_clear(&s, &at));
    assert_null(port_check(&s, NULL, NULL, &at));
    is(chip_bytes[12 * SMALL - 1], 0x5A);
    is(chip_bytes[20 * SMALL], 0x5A);
}
