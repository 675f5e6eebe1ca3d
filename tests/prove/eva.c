/* SPDX-License-Identifier: 0BSD */
/*
 * What Frama-C's value analysis (Eva) runs.  It follows all executions at once,
 * with every value that an argument may have; that it has no alarm says that
 * none of them reads or writes outside an object, overflows, shifts too far, or
 * uses what was not set.
 *
 *     EVA_HASH     the hashes and the CRC, of any bytes in two pieces of all
 *                  lengths that differ in how words are filled; and the texts
 *                  of all answers
 *     else         the headers of sectors, taken apart from any bytes whatever
 *
 * Taking records apart is not run, for Eva cannot relate a position to the end
 * of the bytes: WP proves that (contracts.acsl).  All else is run by calls.c:
 * the table alone; formatting and opening cells and a ring, and the calls on
 * them; and files by file.c.  Left out is the CRC by an instruction of x86-64.
 */
#define IDEM_STATIC
#define IDEM_IMPLEMENTATION
#include "idem.h"

#include "any.h"

enum { SECTOR = 512, SECTORS = 3, GRANULE = 8 };

static uint8_t bytes[128];

static void any_bytes(void)
{
    unsigned i;

    //@ loop unroll 128;
    for (i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)below(256);
}

#ifdef EVA_HASH
/* The hash of two pieces. */
static void hash(uint32_t first, uint32_t second)
{
    idem_siphash_state sip;
    idem_halfsiphash_state half;
    uint32_t crc;

    idem_siphash_init(&sip, bytes, 2, 4);
    idem_siphash_update(&sip, bytes, first);
    idem_siphash_update(&sip, bytes + first, second);
    idem_siphash_final(&sip);
    idem_halfsiphash_init(&half, bytes, 2, 4, 64);
    idem_halfsiphash_update(&half, bytes, first);
    idem_halfsiphash_update(&half, bytes + first, second);
    idem_halfsiphash_final(&half);
    idem_siphash(bytes, 2, 4, bytes, first + second);
    idem_halfsiphash(bytes, 2, 4, 64, bytes, first + second);
    idem_fnv1a32_update(idem_fnv1a32(bytes, first), bytes, second);
    idem_fnv1a64_update(idem_fnv1a64(bytes, first), bytes, second);
    crc = idemi_crc_update(below(UINT32_MAX), bytes, first);
    idemi_crc_update(crc, bytes + first, second);
}

int main(void)
{
    uint32_t first, second;

    any_bytes();
    //@ loop unroll 10;
    for (first = 0; first <= 9; first++)
        //@ loop unroll 18;
        for (second = 0; second <= 17; second++)
            hash(first, second);
    return *idem_text((int)any());
}
#else
static const idem_storage storage = {
    .sector_size = SECTOR, .sector_count = SECTORS, .prog_size = GRANULE,
    .erased = 0xFF };
static const idem_config config = {
    .capacity = 4, .key_max = 8, .response_max = 8, .storage = &storage };

/* A journal with what taking apart looks at. */
static struct {
    idem_journal journal;
    idem_sector  sectors[SECTORS];
} memory;
static idem_table table;

static void set_up(void)
{
    unsigned i;

    table.config = &config;
    table.capacity = config.capacity;
    table.journal = &memory.journal;
    table.in = bytes;
    memory.journal.front = 2 * idemi_storage_granules(&table, IDEMI_HEADER);
    memory.journal.shift = 9;
    memory.journal.check = below(UINT32_MAX);
    memory.journal.record_max = 96;
    for (i = 0; i < SECTORS; i++)
        memory.sectors[i].sequence = below(UINT32_MAX);
}

int main(void)
{
    int result;

    any_bytes();
    set_up();
    result = idemi_recover_header(&table, bytes);
    result += idemi_recover_similar(bytes, bytes + 40, below(40));
    result += idemi_recover_looks(&table, bytes);
    result += idemi_recover_mend(&table, bytes);
    return result;
}
#endif
