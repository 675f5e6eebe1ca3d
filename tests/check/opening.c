/* SPDX-License-Identifier: 0BSD */
/*
 * The cost of an opening does not depend on the order in which outcomes came.
 *
 *     build/opening           prints it; returns 1 if it does
 */
#define IDEM_STATIC
#define IDEM_IMPLEMENTATION
#include "idem.h"
#include "blocks.h"
#include "model/media.h"

#include <stdio.h>

enum { KEYS = 4000, MOST = 2 };

static flash cells;
static idem_storage sectors = {
    .ctx = &cells, .read = flash_read, .prog = flash_prog,
    .erase = flash_erase, .sector_size = 4096, .prog_size = 1, .erased = 0xFF };

static void expect(int result, int expected)
{
    if (result == expected)
        return;
    fprintf(stderr, "%s\n", idem_text(result));
    exit(2);
}

/* Basic blocks to open a journal whose outcomes were all relocated.  Those of
   every `step`-th slot, from each start on, were completed one after the
   other. */
static uint64_t cost(unsigned step)
{
    static idem_claim claims[KEYS];
    idem_config config = { .capacity = KEYS + 1, .key_max = 4,
                           .storage = &sectors, .secret = "sixteen secrets" };
    idem_reply reply;
    idem_outcome outcome = { 0 };
    idem_table table;
    uint32_t key = 0, now = 0, last;
    idem_request rq = { .key = &key, .key_len = 4 };
    void *memory;
    size_t size;

    sectors.sector_count = 5;
    sectors.sector_count = idem_sector_count(&config);
    expect(medium_make(&cells, &sectors, 0), 0);
    size = idem_memory_size(&config);
    memory = medium_allocate(size);
    expect(idem_open(&table, &config, memory, size, now), IDEM_OK);
    for (; key < KEYS; key++)
        expect(idem_begin(&table, &claims[key], &reply, &rq, now),
               IDEM_EXECUTE);
    for (unsigned start = 0; start < step; start++)
        for (unsigned i = start; i < KEYS; i += step)
            expect(idem_complete(&table, &claims[i], &outcome, now += 10),
                   IDEM_OK);
    last = table.journal->sequence + sectors.sector_count;
    while (table.journal->sequence < last) {
        expect(idem_begin(&table, claims, &reply, &rq, ++now), IDEM_EXECUTE);
        expect(idem_release(&table, claims, now), IDEM_OK);
    }
    blocks = 0;
    expect(idem_open(&table, &config, memory, size, now), IDEM_OK);
    free(memory);
    medium_end(&cells);
    return blocks;
}

int main(void)
{
    double in_order = (double)cost(1) / KEYS, others = (double)cost(2) / KEYS;

    printf("opening, %d keys: %.1f basic blocks each; in another order, %.1f\n",
           KEYS, in_order, others);
    return others > MOST * in_order;
}
