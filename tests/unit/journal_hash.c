/* SPDX-License-Identifier: 0BSD */
/*
 * A journal of another hash is refused.  This file has a second header with
 * another hash, FNV-1a unless all tests have that, under other names; and the
 * one that all tests have.
 */
#include <stdint.h>
#if IDEM_HASH == 3
#define COMPILED 3
#elif IDEM_HASH == 2 || (!defined(IDEM_HASH) && UINTPTR_MAX <= 0xFFFFFFFFu)
#define COMPILED 2
#else
#define COMPILED 1
#endif
#if COMPILED == 3
#define OTHER 1
#else
#define OTHER 3
#endif
#undef IDEM_HASH
#define IDEM_HASH OTHER
#define IDEM_STATIC
#define IDEM_IMPLEMENTATION
#define idem_open_ other_open
#define idem_begin other_begin
#define idem_explain other_explain
#include "idem.h"
#undef idem_open_
#undef idem_begin
#undef idem_explain

typedef int opening(idem_table *, const idem_config *, void *, size_t, uint32_t,
                    uint32_t);
typedef int beginning(idem_table *, idem_claim *, idem_reply *,
                      const idem_request *, uint32_t);
typedef const char *explaining(const idem_config *);

extern opening idem_open_;
extern beginning idem_begin;
extern explaining idem_explain;

typedef struct header {
    opening *open;
    beginning *begin;
    explaining *explain;
    int hash;
} header;

static const header other = { other_open, other_begin, other_explain, OTHER };
static const header compiled = { idem_open_, idem_begin, idem_explain,
                                 COMPILED };

#include "configured.h"

static uint32_t memory[IDEM_JOURNAL_MEMORY_SIZE(4, 16, 16, 0, 8) / 4];
static idem_table table;
static idem_claim claim;
static idem_reply reply;
static const idem_request request = { .key = "a", .key_len = 1 };
static const idem_config config = {
    .capacity = 4, .key_max = 16, .response_max = 16,
    .secret = "sixteen secrets", .storage = &storage,
};

/* Opens the table as a file of that build. */
static int opened(const header *h, int hash)
{
    // Bits 10 and up of a build are its hash; it may be less than here.
    int64_t build = (int64_t)IDEM_BUILD + (hash - OTHER) * 1024;

    return h->open(&table, &config, memory, sizeof memory, 0,
                   (uint32_t)build);
}

/* A journal that one made the other refuses, and explains why. */
static void is_refused(const header *by, const header *to)
{
    begin_new_storage();
    is(opened(by, by->hash), IDEM_OK);
    is(by->begin(&table, &claim, &reply, &request, 0), IDEM_EXECUTE);
    assert_null(by->explain(&config));
    is(opened(to, to->hash), IDEM_E_FORMAT);
    assert_non_null(to->explain(&config));
    assert_non_null(strstr(to->explain(&config), "hash"));
}

TEST(a_journal_of_another_hash_is_refused)
{
    is_refused(&other, &compiled);
    is_refused(&compiled, &other);
}

/* .. whose table may be smaller: it is not touched. */
TEST(a_file_of_another_build_is_refused)
{
    idem_table before;

    memset(&table, 0x5A, sizeof table);
    before = table;
    is(opened(&compiled, other.hash), IDEM_E_ARG);
    is(opened(&other, compiled.hash), IDEM_E_ARG);
    assert_memory_equal(&table, &before, sizeof table);
}
