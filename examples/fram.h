/* SPDX-License-Identifier: 0BSD */
/* The device of patterns.c.  Its journal is in FRAM, here a static array, and
   nothing else survives power_on.  To be included in one file: it has the
   implementation of idem.h too. */
#ifndef FRAM_H
#define FRAM_H

#include "idem.h"
#include "random.h"
#include "reason.h"
#include <string.h>

enum {
    KEYS = 8, KEY_MAX = 16, RESPONSE_MAX = 16, SECTOR = 1024,
    SECTORS = IDEM_SECTORS(KEYS, KEY_MAX, RESPONSE_MAX, 0, SECTOR, 1)
};

static unsigned char fram[SECTORS * SECTOR];

static int fram_read(void *ctx, uint32_t at, void *dst, uint32_t len)
{
    (void)ctx;
    memcpy(dst, fram + at, len);
    return 0;
}

static int fram_write(void *ctx, uint32_t at, const void *src, uint32_t len)
{
    (void)ctx;
    memcpy(fram + at, src, len);
    return 0;
}

static const idem_storage fram_storage = {
    .read = fram_read, .prog = fram_write,
    .sector_size = SECTOR, .sector_count = SECTORS, .prog_size = 1
};

/* All but the secret is known when compiling (idem.h, >>sizing). */
static const idem_config fixed = {
    .capacity = KEYS, .key_max = KEY_MAX, .response_max = RESPONSE_MAX,
    .max_attempts = 3, .storage = &fram_storage, .lease_ms = 1000,
    .retention_ms = 60 * 60 * 1000
};
#define IDEM_CONFIG fixed
#define IDEM_IMPLEMENTATION
#include "idem.h"

static idem_config config;              /* with the secret */
static idem_table table;
static uint32_t memory[IDEM_JOURNAL_MEMORY_SIZE(KEYS, KEY_MAX, RESPONSE_MAX, 0,
                                                1) / 4];
static uint32_t now_ms;

static int power_on(void)
{
    int result;

    memset((void *)&table, 0x55, sizeof table); // RAM forgets
    memset(memory, 0x55, sizeof memory);
    result = idem_open(&table, &config, memory, sizeof memory, now_ms);
    if (result != IDEM_OK)
        reason_print("FRAM", result, &table, &config);
    return result;
}

static int first_power_on(void)
{
    memset(fram, 0, sizeof fram);
    config = fixed;
    if (!random_fill(config.secret, sizeof config.secret))
        return IDEM_E_ARG;      // a device: when it is made
    return power_on();
}

static int begin(idem_claim *claim, idem_reply *reply, const char *key)
{
    idem_request request = { .key = key, .key_len = strlen(key),
                             .payload = key, .payload_len = strlen(key) };

    return idem_begin(&table, claim, reply, &request, now_ms++);
}

/* The response of an outcome that a reply names */
static const char *response(const idem_claim *claim)
{
    static char text[RESPONSE_MAX + 1];
    size_t len = RESPONSE_MAX;

    (void)idem_response(&table, text, &len, claim, 0);
    text[len] = 0;
    return text;
}

static int complete(const idem_claim *claim, const char *response)
{
    idem_outcome outcome = { .response = response,
                             .response_len = strlen(response) };

    return idem_complete(&table, claim, &outcome, now_ms++);
}

#endif
