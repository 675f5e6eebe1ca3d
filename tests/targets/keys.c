/* SPDX-License-Identifier: 0BSD
   How many keys fit an EEPROM or FRAM of a size, and with which size of
   sector: the one with which most do, the smallest of these. */
#include "idem.h"

#include <stdio.h>

/* Keys that fit sectors of one size, which divide the storage: powers of two */
static uint32_t keys_with(uint32_t size, uint32_t sector, unsigned key,
                          unsigned response)
{
    uint32_t keys = 0, count = 1;

    for (; count && count <= size / sector; keys++)
        count = IDEM_SECTORS(keys + 1, key, response, 0, sector, 1);
    return keys - 1;
}

static void print_most(uint32_t size, unsigned key, unsigned response)
{
    uint32_t best = 0, best_sector = 0;

    for (uint32_t sector = 64; sector <= size / 4; sector *= 2) {
        uint32_t keys = keys_with(size, sector, key, response);
        if (keys > best) {
            best = keys;
            best_sector = sector;
        }
    }
    if (best)
        printf(" %u (%u) |", (unsigned)best, (unsigned)best_sector);
    else
        printf(" - |");
}

int main(void)
{
    static const unsigned lengths[][2] = {
        { 8, 0 }, { 8, 8 }, { 8, 16 }, { 16, 8 }, { 16, 16 },
    };
    enum { COLUMNS = sizeof lengths / sizeof lengths[0] };
    uint32_t size;
    unsigned i;

    printf("| keys (size of a sector) |");
    for (i = 0; i < COLUMNS; i++)
        printf(" key %u, response %u |", lengths[i][0], lengths[i][1]);
    printf("\n|---|");
    for (i = 0; i < COLUMNS; i++)
        printf("--:|");
    for (size = 1024; size <= 65536; size *= 2) {
        printf("\n| %u KB |", (unsigned)(size / 1024));
        for (i = 0; i < COLUMNS; i++)
            print_most(size, lengths[i][0], lengths[i][1]);
    }
    printf("\n");
    return 0;
}
