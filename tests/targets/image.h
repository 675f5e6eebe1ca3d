/* SPDX-License-Identifier: 0BSD
   A journal that is written by a fixed script, so that all machines write the
   same bytes.  The script has every kind of record in it, restarts, and enough
   commands for the ring of sectors to turn.  On one medium its commands have
   numbers for keys.  To be included after idem.h. */
#ifndef IMAGE_H
#define IMAGE_H

#include "idem.h"

#include <string.h>

enum { IMAGE_KEYS = 4, IMAGE_RESPONSE = 16, IMAGE_STATE = 4 };
enum { IMAGE_SECTOR = 768, IMAGE_SIZE = 6 * IMAGE_SECTOR, IMAGE_GRANULE = 16 };
enum { IMAGE_TURNS = 80, IMAGE_SENDERS = 1 };
#define IMAGE_CODE INT32_C(1048577)     // of three bytes
#define IMAGE_EPOCH UINT32_C(0x1234567)

typedef struct image_medium {
    const char *name;
    uint16_t granule;
    uint8_t  erases, erased;
    uint8_t  senders;           // 0: keys
} image_medium;

// At most IMAGE_GRANULE.
static const image_medium image_media[] = {
    { "eeprom",  1,  0, 0xFF, 0 },
    { "nor1",    1,  1, 0xFF, 0 },
    { "nor8",    8,  1, 0xFF, 0 },
    { "nor16",   16, 1, 0xFF, 0 },
    { "zero4",   4,  1, 0x00, 0 },
    { "numbers", 1,  1, 0xFF, IMAGE_SENDERS },
};
enum { IMAGE_MEDIA = sizeof image_media / sizeof image_media[0] };

static uint8_t image_bytes[IMAGE_SIZE];
static uint32_t image_memory[IDEM_JOURNAL_MEMORY_SIZE(
    IMAGE_KEYS, 8, IMAGE_RESPONSE, IMAGE_STATE, IMAGE_GRANULE) / 4 +
    IDEM_SENDERS_MEMORY_SIZE(IMAGE_SENDERS) / 4];
static idem_storage image_storage;
static idem_table image_table;
static idem_claim image_claim;
static char image_response[IMAGE_RESPONSE];
static idem_reply image_reply;
static uint32_t image_now;

static idem_config image_config = {
    .capacity = IMAGE_KEYS, .key_max = 8, .response_max = IMAGE_RESPONSE,
    .state_max = IMAGE_STATE, .lease_ms = 1000, .retention_ms = 1000000,
    .secret = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16 },
    .storage = &image_storage
};

static inline int image_read(void *ctx, uint32_t at, void *dst, uint32_t len)
{
    (void)ctx;
    memcpy(dst, image_bytes + at, (size_t)len);
    return 0;
}

static inline int image_prog(void *ctx, uint32_t at, const void *src,
                             uint32_t len)
{
    (void)ctx;
    memcpy(image_bytes + at, src, (size_t)len);
    return 0;
}

static inline int image_erase(void *ctx, uint32_t sector)
{
    (void)ctx;
    memset(image_bytes + sector * image_storage.sector_size,
           image_storage.erased, (size_t)image_storage.sector_size);
    return 0;
}

static inline int image_open(void)
{
    return idem_open(&image_table, &image_config, image_memory,
                     sizeof image_memory, image_now);
}

/* Bytes of the medium: as few sectors as the table asks for */
static inline uint32_t image_size(const image_medium *m)
{
    return IMAGE_SECTOR * IDEM_SECTORS(IMAGE_KEYS + (uint32_t)m->senders, 8,
                                       IMAGE_RESPONSE, IMAGE_STATE,
                                       IMAGE_SECTOR, m->granule);
}

/* Puts the medium into the machine, with whatever image_bytes hold. */
static inline void image_insert(const image_medium *m)
{
    memset(&image_storage, 0, sizeof image_storage);
    image_storage.read = image_read;
    image_storage.prog = image_prog;
    image_storage.erase = m->erases ? image_erase : NULL;
    image_storage.sector_size = IMAGE_SECTOR;
    image_storage.sector_count = image_size(m) / IMAGE_SECTOR;
    image_storage.prog_size = m->granule;
    image_storage.erased = m->erased;
    image_config.senders = m->senders;
}

static inline void image_name(idem_request *request, const char *key)
{
    memset(request, 0, sizeof *request);
    if (image_config.senders) {
        request->epoch = IMAGE_EPOCH;
        request->sequence = (uint32_t)key[0] << 16 | (uint32_t)key[1];
        return;
    }
    request->scope = "pump";
    request->scope_len = 4;
    request->key = key;
    request->key_len = 2;
}

static inline int image_begin(const char *key, uint16_t response_size,
                              uint32_t retention_ms)
{
    idem_request request;

    image_name(&request, key);
    request.payload = "pour 5 ml";
    request.payload_len = 9;
    request.response_size = response_size;
    request.retention_ms = retention_ms;
    image_reply.buffer = image_response;
    image_reply.buffer_size = sizeof image_response;
    return idem_begin(&image_table, &image_claim, &image_reply, &request,
                      image_now += 10);
}

static inline int image_complete(const char *response, size_t len,
                                 int32_t code, const char *state, int confirm)
{
    idem_outcome outcome;

    memset(&outcome, 0, sizeof outcome);
    outcome.response = response;
    outcome.response_len = len;
    outcome.code = code;
    outcome.failed = code < 0;
    outcome.confirm = (uint8_t)confirm;
    outcome.state = state;
    outcome.state_len = state ? 4 : 0;
    return idem_complete(&image_table, &image_claim, &outcome, image_now += 10);
}

/* A key that comes and goes, one way or the other. */
static inline int image_turn(int n)
{
    idem_request request;

    if (image_begin("tt", 0, 0) != IDEM_EXECUTE)
        return 0;
    if (n % 3)
        return idem_release(&image_table, &image_claim, image_now += 10) ==
               IDEM_OK;
    if (image_complete("turn", 4, n, NULL, 0) != IDEM_OK)
        return 0;
    image_name(&request, "tt");
    return idem_forget(&image_table, &request, image_now += 10) == IDEM_OK;
}

/* Writes the journal from blank; false if a call answered anything else than
   it must. */
static inline int image_write(const image_medium *m)
{
    int n, good = 1;

    memset(image_bytes, m->erased, sizeof image_bytes);
    image_insert(m);
    image_now = UINT32_C(0xFFFFF000);
    good &= image_open() == IDEM_OK;
    if (m->senders) {           // over at once, and the sender's floor
        good &= image_begin("AA", 0, 1) == IDEM_EXECUTE;
        good &= image_complete("old", 3, 0, NULL, 0) == IDEM_OK;
    }
    good &= image_begin("aa", 0, 0) == IDEM_EXECUTE;
    good &= image_complete("poured", 6, 0, NULL, 0) == IDEM_OK;
    good &= image_begin("bb", 8, 500000) == IDEM_EXECUTE;
    good &= image_complete("no water", 8, -5, "st 1", 1) == IDEM_OK;
    good &= image_begin("cc", 0, 0) == IDEM_EXECUTE;
    image_now = 77;
    good &= image_open() == IDEM_OK;
    for (n = 0; n < IMAGE_TURNS; n++)
        good &= image_turn(n);
    good &= image_begin("cc", 0, 0) == IDEM_RECOVER;
    good &= idem_maintain(&image_table, image_now += 10) >= 0;
    good &= image_complete("sixteen bytes...", 16, IMAGE_CODE, "st 2", 0) ==
            IDEM_OK;
    good &= image_begin("bb", 0, 0) == IDEM_REPLAY;
    good &= idem_delivered(&image_table, &image_reply.claim) == IDEM_OK;
    good &= image_begin("dd", 4, 0) == IDEM_EXECUTE;
    return good && idem_check(&image_table) == 0;
}

static inline int image_replays(const char *key, const char *response,
                                size_t len, int32_t code)
{
    return image_begin(key, 0, 0) == IDEM_REPLAY &&
           image_reply.response_len == len && image_reply.code == code &&
           image_reply.status == (code < 0 ? IDEM_FAILED : IDEM_COMPLETED) &&
           memcmp(image_response, response, len) == 0;
}

/* Whether the journal in image_bytes, which image_write wrote, says what it
   must.  It is written to. */
static inline int image_reads(const image_medium *m)
{
    char state[IMAGE_STATE];
    size_t len = sizeof state;
    int good = 1;

    image_insert(m);
    image_now = 5;
    good &= image_open() == IDEM_OK && image_table.stats.lost == 0;
    good &= idem_state(&image_table, state, &len) == IDEM_OK;
    good &= len == 4 && memcmp(state, "st 2", 4) == 0;
    if (m->senders) {
        good &= image_begin("AA", 0, 0) == IDEM_TOO_OLD;
        good &= image_begin("A@", 0, 0) == IDEM_TOO_OLD;
    }
    good &= image_replays("aa", "poured", 6, 0);
    good &= image_replays("bb", "no water", 8, -5);
    good &= image_replays("cc", "sixteen bytes...", 16, IMAGE_CODE);
    good &= image_begin("dd", 0, 0) == IDEM_RECOVER;
    good &= image_table.used == 4 && image_table.pending == 0;
    return good && idem_check(&image_table) == 0;
}

#endif /* IMAGE_H */
