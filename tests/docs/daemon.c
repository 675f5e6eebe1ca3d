/* SPDX-License-Identifier: 0BSD */
/* A daemon with a file, from the manual alone: runs one command four times, the
   last two after a restart; prints what was executed. */
#define _POSIX_C_SOURCE 200809L
#define IDEM_FILE_STORAGE
#define IDEM_IMPLEMENTATION
#include "idem.h"
#include <stdio.h>
#include <string.h>

enum { KEYS = 600, KEY_MAX = 40, RESPONSE_MAX = 60, SECTOR = 16384 };
enum { SECTORS = IDEM_SECTORS(KEYS, KEY_MAX, RESPONSE_MAX, 0, SECTOR, 1) };

static idem_file file;
static idem_table table;
static idem_config config = {
    .capacity = KEYS, .key_max = KEY_MAX, .response_max = RESPONSE_MAX,
    .secret = { 0x42, 0x1d, 0x9a, 0x70, 0xc6, 0x3e, 0xf8, 0x05,
                0xb1, 0x57, 0x2c, 0xe9, 0x84, 0x6d, 0x13, 0xda },
    .retention_ms = 60 * 60 * 1000
};
static uint32_t memory[IDEM_JOURNAL_MEMORY_SIZE(KEYS, KEY_MAX, RESPONSE_MAX, 0,
                                                1) / 4];

static int start(const char *path, uint32_t now_ms)
{
    int result = idem_file_open(&file, path, SECTOR, SECTORS);

    if (result != IDEM_OK) {
        printf("%s: %s: %s\n", path, idem_text(result), strerror(file.error));
        return 0;
    }
    config.storage = &file.storage;
    result = idem_open(&table, &config, memory, sizeof memory, now_ms);
    if (result != IDEM_OK)
        printf("%s: %s\n", path, idem_text(result));
    return result == IDEM_OK;
}

static int command(const char *key, uint32_t now_ms)
{
    char answer[RESPONSE_MAX];
    idem_claim claim;
    idem_reply reply = { .buffer = answer, .buffer_size = sizeof answer };
    idem_request request = { .key = key, .key_len = strlen(key),
                             .payload = "open", .payload_len = 4 };
    idem_outcome outcome = { .response = "opened", .response_len = 6 };
    int result = idem_begin(&table, &claim, &reply, &request, now_ms);

    if (result == IDEM_EXECUTE)
        return idem_complete(&table, &claim, &outcome, now_ms) == IDEM_OK;
    if (result != IDEM_REPLAY || memcmp(answer, "opened", 6) != 0)
        printf("%s: %s\n", key, idem_text(result));
    return 0;
}

int main(int argc, char **argv)
{
    int executed = 0;

    if (argc != 2 || !start(argv[1], 0))
        return 1;
    executed += command("a", 1) + command("a", 2);
    if (idem_file_close(&file) != IDEM_OK || !start(argv[1], 9))
        return 1;
    executed += command("a", 10) + command("a", 11);
    printf("executed %d\n", executed);
    return executed != 1 || idem_file_close(&file) != IDEM_OK;
}
