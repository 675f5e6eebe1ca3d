/* SPDX-License-Identifier: 0BSD
   Opens a journal that another version of the header wrote:

       refused SECTOR_SIZE PROG_SIZE < JOURNAL

   It must be refused, in words that name the version, and not be written to.
   idem_format, and nothing less, makes it a journal of this version. */
#define IDEM_IMPLEMENTATION
#include "idem.h"

#include <stdio.h>
#include <stdlib.h>

enum { SIZE = 64 * 1024 };
static idem_storage storage;
#define SECTOR storage.sector_size
#define ERASED storage.erased
#include "targets/ram.h"

static uint8_t before[SIZE];
static uint32_t memory[IDEM_JOURNAL_MEMORY_SIZE(1, 8, 16, 4, 16) / 4];
static const idem_config config = {
    .capacity = 1, .key_max = 8, .response_max = 16, .state_max = 4,
    .secret = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16 },
    .storage = &storage
};

static void demand(int good, const char *what)
{
    if (good)
        return;
    fprintf(stderr, "FAILED: %s\n", what);
    exit(1);
}

static int open_table(idem_table *table)
{
    return idem_open(table, &config, memory, sizeof memory, 0);
}

int main(int argc, char **argv)
{
    size_t len = fread(bytes, 1, sizeof bytes, stdin);
    const char *words;
    idem_table table;

    demand(argc == 3, "refused SECTOR_SIZE PROG_SIZE < JOURNAL");
    storage = (idem_storage){
        .read = ram_read, .prog = ram_prog, .erase = ram_erase,
        .sector_size = (uint32_t)strtoul(argv[1], NULL, 0),
        .prog_size = (uint16_t)strtoul(argv[2], NULL, 0), .erased = 0xFF };
    demand(SECTOR && len && len % SECTOR == 0, "get all of it");
    storage.sector_count = (uint32_t)len / SECTOR;
    memcpy(before, bytes, len);

    demand(open_table(&table) == IDEM_E_FORMAT, "it is not refused");
    words = idem_explain(&config);
    demand(words && strncmp(words, "version:", 8) == 0,
           words ? words : "nothing is explained");
    demand(!memcmp(before, bytes, len), "it was written to");
    demand(idem_format(&table, &config, memory, sizeof memory, 0) ==
               IDEM_OK,
           "it cannot be formatted");
    demand(open_table(&table) == IDEM_OK && !idem_explain(&config),
           "it cannot be opened when it is formatted");
    return 0;
}
