/* SPDX-License-Identifier: 0BSD */
/*
 * Costs that do not depend on what is in the table beside: an opening, on the
 * order in which outcomes came, and a sender that took over another's entry in
 * the journal, on the keys of others; a new key of a sender at its quota, with
 * eviction, on the outcomes of others, and on its own undelivered ones.
 *
 *     build/costs             prints them; returns 1 if one does
 */
#define IDEM_STATIC
#define IDEM_IMPLEMENTATION
#include "idem.h"
#include "blocks.h"
#include "model/media.h"

#include <stdio.h>

enum { KEYS = 4000, MOST = 2, COMMANDS = 100, QUOTA = 10 };

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
static uint64_t cost_of_opening(unsigned step)
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

static void execute_request(idem_table *table, const idem_request *rq,
                            int confirm, uint32_t now)
{
    idem_outcome outcome = { .confirm = (uint8_t)confirm };
    idem_claim claim;
    idem_reply reply;

    expect(idem_begin(table, &claim, &reply, rq, now), IDEM_EXECUTE);
    expect(idem_complete(table, &claim, &outcome, now), IDEM_OK);
}

/* A command of a sender, whose scope is its number. */
static void execute(idem_table *table, uint32_t sender, uint32_t key,
                    int confirm)
{
    idem_request rq = { .scope = &sender, .scope_len = sizeof sender,
                        .key = &key, .key_len = sizeof key };

    execute_request(table, &rq, confirm, key);
}

/* Opens an empty table in memory that it returns. */
static void *open_new(idem_table *table, const idem_config *config)
{
    size_t size = idem_memory_size(config);
    void *memory = medium_allocate(size);

    expect(idem_open(table, config, memory, size, 0), IDEM_OK);
    return memory;
}

/* Basic blocks of a command of each sender in turn, all at their quota,
   whose keys begin at a number. */
static uint64_t cost_of_evictions(idem_table *table, uint32_t senders,
                                  uint32_t key)
{
    blocks = 0;
    for (uint32_t i = 0; i < COMMANDS; i++, key++)
        execute(table, key % senders, key, 0);
    expect((int)table->stats.evicted, COMMANDS);
    return blocks / COMMANDS;
}

/* .. of two senders, with that many outcomes of others in the table, older and
   newer ones */
static uint64_t cost_at_quota(uint32_t others)
{
    idem_config config = { .capacity = others + 2 * QUOTA, .key_max = 8,
                           .senders = 2 * (others / QUOTA + 2),
                           .full = IDEM_EVICT_OLDEST, .quota = QUOTA,
                           .secret = "sixteen secrets" };
    idem_table table;
    void *memory = open_new(&table, &config);
    uint32_t key = 0;
    uint64_t cost;

    for (; key < others / 2; key++)
        execute(&table, 2 + key / QUOTA, key, 0);
    for (uint32_t i = 0; i < 2 * QUOTA; i++, key++)
        execute(&table, key % 2, key, 0);
    for (uint32_t i = others / 2; i < others; i++, key++)
        execute(&table, 2 + i / QUOTA, key, 0);
    cost = cost_of_evictions(&table, 2, key);
    free(memory);
    return cost;
}

/* .. of one, with that many of its outcomes undelivered */
static uint64_t cost_undelivered(uint32_t undelivered)
{
    idem_config config = { .capacity = undelivered + 2, .key_max = 8,
                           .senders = 2, .full = IDEM_EVICT_OLDEST,
                           .quota = undelivered + 1,
                           .secret = "sixteen secrets" };
    idem_table table;
    void *memory = open_new(&table, &config);
    uint32_t key = 0;
    uint64_t cost;

    for (; key <= undelivered; key++)
        execute(&table, 0, key, key < undelivered);
    cost = cost_of_evictions(&table, 1, key);
    free(memory);
    return cost;
}

/* Basic blocks to open a journal with that many outcomes of one sender, and then
   a number of each of many senders: each took over the entry of another, whose
   number had been evicted. */
static uint64_t cost_of_opening_senders(uint32_t others, uint32_t senders)
{
    enum { ENTRIES = 9 };
    idem_config config = { .capacity = others + ENTRIES - 2, .key_max = 12,
                           .senders = ENTRIES, .full = IDEM_EVICT_OLDEST,
                           .storage = &sectors, .secret = "sixteen secrets" };
    idem_table table;
    void *memory;

    sectors.sector_count = 5;
    sectors.sector_count = idem_sector_count(&config) + 40;
    expect(medium_make(&cells, &sectors, 0), 0);
    memory = open_new(&table, &config);
    for (uint32_t key = 1; key <= others; key++)
        execute(&table, 0, key, 1);
    for (uint32_t sender = 1; sender <= senders; sender++) {
        idem_request rq = { .scope = &sender, .scope_len = sizeof sender,
                            .sequence = 1 };
        execute_request(&table, &rq, 0, 0);
    }
    expect((int)table.stats.senders_evicted, (int)senders - ENTRIES + 1);
    blocks = 0;
    expect(idem_open(&table, &config, memory, idem_memory_size(&config), 0),
           IDEM_OK);
    free(memory);
    medium_end(&cells);
    return blocks;
}

/* .. for each of these senders */
static uint64_t cost_of_takeover(uint32_t others)
{
    return (cost_of_opening_senders(others, 10 * COMMANDS) -
            cost_of_opening_senders(others, COMMANDS)) / (9 * COMMANDS);
}

int main(void)
{
    double in_order = (double)cost_of_opening(1) / KEYS;
    double not = (double)cost_of_opening(2) / KEYS;
    uint64_t few = cost_at_quota(20), many = cost_at_quota(KEYS);
    uint64_t kept = cost_undelivered(KEYS);
    uint64_t alone = cost_of_takeover(20), beside = cost_of_takeover(KEYS);

    printf("opening, %d keys: %.1f basic blocks each; in another order, %.1f\n"
           "a command at the quota: %u basic blocks; beside %d outcomes, %u; of "
           "a sender with as many undelivered, %u\n"
           "opening, a sender that took an entry over: %u basic blocks; beside "
           "%d outcomes, %u\n",
           KEYS, in_order, not, (unsigned)few, KEYS, (unsigned)many,
           (unsigned)kept, (unsigned)alone, KEYS, (unsigned)beside);
    return not > MOST * in_order || many > MOST * few || kept > MOST * few ||
           beside > MOST * alone;
}
