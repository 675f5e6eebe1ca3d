/* SPDX-License-Identifier: 0BSD */
/* A gateway of 50,000 keys, from the manual alone: many senders, a quota for
   each, batches that become durable together. */
#define _POSIX_C_SOURCE 200809L
#define IDEM_FILE_STORAGE
#define IDEM_IMPLEMENTATION
#include "idem.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KEYS = 50000, KEY_MAX = 48, RESPONSE_MAX = 32, SECTOR = 65536 };
enum { BATCH = 1000, SENDERS = 100 };

static idem_file file;
static idem_table table;
static idem_config config = {
    .capacity = KEYS, .key_max = KEY_MAX, .response_max = RESPONSE_MAX,
    .secret = { 0x42, 0x1d, 0x9a, 0x70, 0xc6, 0x3e, 0xf8, 0x05,
                0xb1, 0x57, 0x2c, 0xe9, 0x84, 0x6d, 0x13, 0xda },
    .retention_ms = 60 * 60 * 1000, .full = IDEM_REJECT,
    .senders = SENDERS, .quota = KEYS / SENDERS, .durability = IDEM_BATCH
};

static int begin(idem_claim *claim, int number)
{
    char scope[16], key[16];
    idem_reply reply = { 0 };
    idem_request request = { .scope = scope, .key = key };

    request.scope_len = (size_t)snprintf(scope, sizeof scope, "s%d",
                                         number % SENDERS);
    request.key_len = (size_t)snprintf(key, sizeof key, "%d", number);
    return idem_begin(&table, claim, &reply, &request, (uint32_t)number);
}

/* Claims a batch, syncs, executes, completes, syncs, answers; how many. */
static int batch(int from)
{
    static idem_claim claims[BATCH];
    static int answers[BATCH];
    idem_outcome outcome = { .response = "ok", .response_len = 2 };
    int i, executed = 0;

    for (i = 0; i < BATCH; i++)
        answers[i] = begin(&claims[i], from + i);
    if (idem_sync(&table) != IDEM_OK)
        return -1;
    for (i = 0; i < BATCH; i++)
        if (answers[i] == IDEM_EXECUTE)
            executed += idem_complete(&table, &claims[i], &outcome,
                                      (uint32_t)(from + i)) == IDEM_OK;
    while (idem_maintain(&table, (uint32_t)(from + BATCH)) == IDEM_MORE)
        ;
    return idem_sync(&table) == IDEM_OK ? executed : -1;
}

int main(int argc, char **argv)
{
    size_t size = IDEM_JOURNAL_MEMORY_SIZE(KEYS, KEY_MAX, RESPONSE_MAX, 0, 1) +
                  IDEM_SENDERS_MEMORY_SIZE(SENDERS);
    void *memory = malloc(size);
    idem_claim claim;
    int i, executed = 0;

    if (argc != 2 || idem_file_open(&file, argv[1], SECTOR,
            IDEM_SECTORS(KEYS + SENDERS, KEY_MAX, RESPONSE_MAX, 0, SECTOR,
                         1)) != IDEM_OK)
        return 1;
    config.storage = &file.storage;
    if (idem_open(&table, &config, memory, size, 0) != IDEM_OK)
        return 1;
    for (i = 0; i < KEYS; i += BATCH)
        executed += batch(i);
    if (idem_open(&table, &config, memory, size, KEYS) != IDEM_OK)
        return 1;
    executed += batch(0);                       // known: none is executed
    printf("executed %d, then %s\n", executed,
           idem_text(begin(&claim, KEYS)));
    return executed != KEYS || begin(&claim, KEYS) != IDEM_E_FULL ||
           idem_file_close(&file) != IDEM_OK;
}
