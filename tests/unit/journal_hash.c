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
#define OTHER 1
#else
#define OTHER 3
#endif
#undef IDEM_HASH
#define IDEM_HASH OTHER
#define IDEM_STATIC
#define IDEM_IMPLEMENTATION
#define idem_explain other_explain
#include "idem.h"
#undef idem_explain

typedef int opening(idem_table *, const idem_config *, void *, size_t, uint32_t);
typedef int beginning(idem_table *, idem_claim *, idem_reply *,
                      const idem_request *, uint32_t);
typedef const char *explaining(const idem_config *);

static opening *const other_open = idem_open;
static beginning *const other_begin = idem_begin;

#undef idem_open
#undef idem_begin
#define idem_open USUAL(open)
#define idem_begin USUAL(begin)
extern opening idem_open;
extern beginning idem_begin;
extern explaining idem_explain;

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

/* A journal that one made the other refuses, and says why. */
static void is_told(opening *open, beginning *begin, explaining *explain,
                    opening *open_by_other, explaining *explain_by_other)
{
    medium = (flash){ .kind = FLASH_NOR, .sector_size = SIZE,
                      .sector_count = SECTORS, .prog_size = 8, .erased = 0xFF };
    is(flash_init(&medium, medium_memory), 0);
    is(open(&table, &config, memory, sizeof memory, 0), IDEM_OK);
    is(begin(&table, &claim, &reply, &request, 0), IDEM_EXECUTE);
    assert_null(explain(&config));
    is(open_by_other(&table, &config, memory, sizeof memory, 0), IDEM_E_FORMAT);
    assert_non_null(explain_by_other(&config));
    assert_non_null(strstr(explain_by_other(&config), "hash"));
}

TEST(a_journal_of_another_hash_is_told)
{
    is_told(other_open, other_begin, other_explain, idem_open, idem_explain);
    is_told(idem_open, idem_begin, idem_explain, other_open, other_explain);
}
