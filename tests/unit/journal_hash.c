/* SPDX-License-Identifier: 0BSD */
/*
 * A journal of another hash is refused, and told so.  This file has a header of
 * its own with another hash, FNV-1a unless all have that, under other names; and
 * the one that all have beside.
 */
#include <stdint.h>
#if IDEM_HASH == 3
#define USUAL(name) IDEMI_NAMED(name, fnv)
#elif IDEM_HASH == 2 || (!defined(IDEM_HASH) && UINTPTR_MAX <= 0xFFFFFFFFu)
#define USUAL(name) IDEMI_NAMED(name, halfsiphash)
#else
#define USUAL(name) IDEMI_NAMED(name, siphash)
#endif
#if IDEM_HASH == 3
#undef IDEM_HASH
#define IDEM_HASH 1
#else
#undef IDEM_HASH
#define IDEM_HASH 3
#endif
#define IDEM_STATIC
#define IDEM_IMPLEMENTATION
#define idem_explain other_explain
#include "idem.h"
#undef idem_explain

static int (*const other_open)(idem_table *, const idem_config *, void *, size_t,
                               uint32_t) = idem_open;
static int (*const other_begin)(idem_table *, idem_claim *, idem_reply *,
                                const idem_request *, uint32_t) = idem_begin;

#undef idem_open
#undef idem_begin
#define idem_open USUAL(open)
#define idem_begin USUAL(begin)
extern int idem_open(idem_table *table, const idem_config *config,
                     void *memory, size_t size, uint32_t now_ms);
extern int idem_begin(idem_table *table, idem_claim *claim, idem_reply *reply,
                      const idem_request *request, uint32_t now_ms);
extern const char *idem_explain(const idem_config *config);

#include "../storage/flash.h"
#include "test.h"

enum { SIZE = 512, SECTORS = IDEM_SECTORS(4, 16, 16, 0, SIZE, 8) };

static flash medium;
static uint32_t medium_memory[FLASH_MEMORY(SIZE, SECTORS) / 4];
static uint32_t memory[IDEM_JOURNAL_MEMORY_SIZE(4, 16, 16, 0, 8) / 4];
static idem_table table;
static idem_claim claim;
static idem_reply reply;
static const idem_request request = { .key = "a", .key_len = 1 };
static const idem_storage storage = {
    .ctx = &medium, .read = flash_read, .prog = flash_prog,
    .erase = flash_erase, .sector_size = SIZE, .sector_count = SECTORS,
    .prog_size = 8, .erased = 0xFF,
};
static const idem_config config = {
    .capacity = 4, .key_max = 16, .response_max = 16,
    .secret = "sixteen secrets", .storage = &storage,
};

static void start(void)
{
    memset(&medium, 0, sizeof medium);
    medium.kind = FLASH_NOR;
    medium.sector_size = SIZE;
    medium.sector_count = SECTORS;
    medium.prog_size = 8;
    medium.erased = 0xFF;
    is(flash_init(&medium, medium_memory), 0);
}

TEST(another_hash_is_told_from_the_default)
{
    start();
    is(other_open(&table, &config, memory, sizeof memory, 0), 0);
    is(other_begin(&table, &claim, &reply, &request, 0), IDEM_EXECUTE);
    assert_null(other_explain(&config));
    is(idem_open(&table, &config, memory, sizeof memory, 0), IDEM_E_FORMAT);
    assert_non_null(idem_explain(&config));
    assert_non_null(strstr(idem_explain(&config), "hash"));
}

TEST(the_default_is_told_from_another_hash)
{
    start();
    is(idem_open(&table, &config, memory, sizeof memory, 0), 0);
    is(idem_begin(&table, &claim, &reply, &request, 0), IDEM_EXECUTE);
    assert_null(idem_explain(&config));
    is(other_open(&table, &config, memory, sizeof memory, 0), IDEM_E_FORMAT);
    assert_non_null(other_explain(&config));
    assert_non_null(strstr(other_explain(&config), "hash"));
}
