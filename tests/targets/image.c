/* SPDX-License-Identifier: 0BSD
   A journal that is written by a fixed script, so that all machines write the
   same bytes.  The script has every kind of record in it, restarts, and enough
   commands for the ring of sectors to turn.  On one medium its commands have
   numbers for keys.

   Writes it on each of several media, reads it, and tells a digest of its
   bytes.  With argument N on the N-th medium (1 is the first), and tells the
   bytes.
   Built with IMAGE_READS it reads the bytes of such a journal, perhaps of
   another version on another machine, instead of writing them. */
#define IDEM_IMPLEMENTATION
#include "idem.h"
#include "board.h"

#include <string.h>

enum { KEYS = 4, KEY_MAX = 8, RESPONSE_MAX = 16, STATE_MAX = 4 };
enum { SECTOR = 768, SIZE = 6 * SECTOR, GRANULE_MAX = 16 };
enum { TURNS = 80, SENDERS = 1 };
#define CODE INT32_C(1048577)           // of three bytes
#define EPOCH UINT32_C(0x1234567)
#define TEXT(text) text, sizeof text - 1

typedef struct medium {
    const char *name;
    uint16_t granule;
    uint8_t  erases, erased;
    uint8_t  senders;                   // 0: keys
} medium;

static const medium media[] = {
    { "eeprom",  1,  0, 0xFF, 0 },
    { "nor1",    1,  1, 0xFF, 0 },
    { "nor8",    8,  1, 0xFF, 0 },
    { "nor16",   GRANULE_MAX, 1, 0xFF, 0 },
    { "zero4",   4,  1, 0x00, 0 },
    { "numbers", 1,  1, 0xFF, SENDERS },
};
enum { MEDIA = sizeof media / sizeof media[0] };

static uint8_t bytes[SIZE];
static uint32_t memory[IDEM_JOURNAL_MEMORY_SIZE(
    KEYS, KEY_MAX, RESPONSE_MAX, STATE_MAX, GRANULE_MAX) / 4 +
    IDEM_SENDERS_MEMORY_SIZE(SENDERS) / 4];
static idem_storage storage;
static idem_table table;
static idem_claim claim;
static char response[RESPONSE_MAX];
static idem_reply reply = { .buffer = response,
                            .buffer_size = sizeof response };
static uint32_t now;

static idem_config config = {
    .capacity = KEYS, .key_max = KEY_MAX, .response_max = RESPONSE_MAX,
    .state_max = STATE_MAX, .lease_ms = 1000, .retention_ms = 1000000,
    .secret = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16 },
    .storage = &storage
};

int program(void);

/* ------------------------------------------------------------------- medium */

static int medium_read(void *ctx, uint32_t at, void *dst, uint32_t len)
{
    (void)ctx;
    memcpy(dst, bytes + at, (size_t)len);
    return 0;
}

static int medium_prog(void *ctx, uint32_t at, const void *src, uint32_t len)
{
    (void)ctx;
    memcpy(bytes + at, src, (size_t)len);
    return 0;
}

static int medium_erase(void *ctx, uint32_t sector)
{
    (void)ctx;
    memset(bytes + sector * SECTOR, storage.erased, SECTOR);
    return 0;
}

/* As few sectors as the table asks for */
static uint32_t sectors(const medium *m)
{
    return IDEM_SECTORS(KEYS + (uint32_t)m->senders, KEY_MAX, RESPONSE_MAX,
                        STATE_MAX, SECTOR, m->granule);
}

/* Puts the medium into the machine, with whatever `bytes` hold. */
static void insert(const medium *m)
{
    storage = (idem_storage){
        .read = medium_read, .prog = medium_prog,
        .erase = m->erases ? medium_erase : NULL, .sector_size = SECTOR,
        .sector_count = sectors(m), .prog_size = m->granule,
        .erased = m->erased };
    config.senders = m->senders;
}

/* -------------------------------------------------------------------- calls */

static int open_table(void)
{
    return idem_open(&table, &config, memory, sizeof memory, now);
}

static idem_request request_of(const char *key)
{
    if (config.senders)
        return (idem_request){
            .epoch = EPOCH,
            .sequence = (uint32_t)key[0] << 16 | (uint32_t)key[1] };
    return (idem_request){ .scope = "pump", .scope_len = 4, .key = key,
                           .key_len = 2 };
}

static int begin(const char *key, uint16_t response_size,
                 uint32_t retention_ms)
{
    idem_request request = request_of(key);

    request.payload = "pour 5 ml";
    request.payload_len = 9;
    request.response_size = response_size;
    request.retention_ms = retention_ms;
    return idem_begin(&table, &claim, &reply, &request, now += 10);
}

static int replays(const char *key, const char *text, size_t len, int32_t code)
{
    return begin(key, 0, 0) == IDEM_REPLAY && reply.response_len == len &&
           reply.code == code &&
           reply.status == (code < 0 ? IDEM_FAILED : IDEM_COMPLETED) &&
           memcmp(response, text, len) == 0;
}

/* Whether the journal in `bytes`, which write_journal wrote, says what it must.
   It is written to. */
static int read_journal(const medium *m)
{
    char state[STATE_MAX];
    size_t len = sizeof state;
    int good = 1;

    insert(m);
    now = 5;
    good &= open_table() == IDEM_OK && table.stats.lost == 0;
    good &= idem_state(&table, state, &len) == IDEM_OK;
    good &= len == STATE_MAX && memcmp(state, "st 2", STATE_MAX) == 0;
    if (m->senders) {
        good &= begin("AA", 0, 0) == IDEM_TOO_OLD;
        good &= begin("A@", 0, 0) == IDEM_TOO_OLD;
    }
    good &= replays("aa", TEXT("poured"), 0);
    good &= replays("bb", TEXT("no water"), -5);
    good &= replays("cc", TEXT("sixteen bytes..."), CODE);
    good &= begin("dd", 0, 0) == IDEM_RECOVER;
    good &= table.used == KEYS && table.pending == 0;
    return good && idem_check(&table) == 0;
}

/* Ends the program if that did not succeed. */
static void demand(int good, const char *what)
{
    if (good)
        return;
    board_text("FAILED: to ");
    board_text(what);
    board_text("\n");
    board_exit(1);
}

#ifdef IMAGE_READS
#include <stdio.h>

int program(void)
{
    uint32_t n = board_argument(0);
    size_t len = fread(bytes, 1, SIZE, stdin);

    demand(n >= 1 && n <= MEDIA, "name a medium");
    demand(len == sectors(&media[n - 1]) * SECTOR, "get all of it");
    demand(read_journal(&media[n - 1]), "read");
    return 0;
}

#else

/* Whether it succeeds */
static int complete(const char *text, size_t len, int32_t code,
                    const char *state, int confirm)
{
    idem_outcome outcome = {
        .response = text, .response_len = len, .code = code,
        .failed = code < 0, .confirm = (uint8_t)confirm, .state = state,
        .state_len = state ? STATE_MAX : 0 };

    return idem_complete(&table, &claim, &outcome, now += 10) == IDEM_OK;
}

/* A key that comes and goes, one way or the other. */
static int turn(int n)
{
    idem_request request = request_of("tt");

    if (begin("tt", 0, 0) != IDEM_EXECUTE)
        return 0;
    if (n % 3)
        return idem_release(&table, &claim, now += 10) == IDEM_OK;
    return complete(TEXT("turn"), n, NULL, 0) &&
           idem_forget(&table, &request, now += 10) == IDEM_OK;
}

/* Writes the journal from blank; false if a call answered anything else than
   it must. */
static int write_journal(const medium *m)
{
    int n, good = 1;

    memset(bytes, m->erased, sizeof bytes);
    insert(m);
    now = UINT32_C(0xFFFFF000);
    good &= open_table() == IDEM_OK;
    if (m->senders) {           // over at once, and the sender's floor
        good &= begin("AA", 0, 1) == IDEM_EXECUTE;
        good &= complete(TEXT("old"), 0, NULL, 0);
    }
    good &= begin("aa", 0, 0) == IDEM_EXECUTE;
    good &= complete(TEXT("poured"), 0, NULL, 0);
    good &= begin("bb", 8, 500000) == IDEM_EXECUTE;
    good &= complete(TEXT("no water"), -5, "st 1", 1);
    good &= begin("cc", 0, 0) == IDEM_EXECUTE;
    now = 77;
    good &= open_table() == IDEM_OK;
    for (n = 0; n < TURNS; n++)
        good &= turn(n);
    good &= begin("cc", 0, 0) == IDEM_RECOVER;
    good &= idem_maintain(&table, now += 10) >= 0;
    good &= complete(TEXT("sixteen bytes..."), CODE, "st 2", 0);
    good &= begin("bb", 0, 0) == IDEM_REPLAY;
    good &= idem_delivered(&table, &reply.claim) == IDEM_OK;
    good &= begin("dd", 4, 0) == IDEM_EXECUTE;
    return good && idem_check(&table) == 0;
}

static void hex(uint8_t byte)
{
    static const char digits[] = "0123456789abcdef";
    char text[3] = { digits[byte >> 4], digits[byte & 15] };

    board_text(text);
}

static void tell_bytes(uint32_t size)
{
    for (uint32_t i = 0; i < size; i++) {
        hex(bytes[i]);
        if (i % 32 == 31)
            board_text("\n");
    }
}

/* By FNV-1a, which is enough to tell one image from another */
static void tell_digest(const medium *m, uint32_t size)
{
    uint64_t digest = UINT64_C(0xcbf29ce484222325);

    for (uint32_t i = 0; i < size; i++)
        digest = (digest ^ bytes[i]) * UINT64_C(0x100000001b3);
    board_text(m->name);
    board_text(" ");
    for (int shift = 56; shift >= 0; shift -= 8)
        hex((uint8_t)(digest >> shift));
    board_text("\n");
}

int program(void)
{
    uint32_t asked = board_argument(0);

    for (unsigned i = 0; i < MEDIA; i++) {
        const medium *m = &media[i];
        uint32_t size = sectors(m) * SECTOR;
        if (asked && asked != i + 1)
            continue;
        demand(write_journal(m), "write");
        if (asked)
            tell_bytes(size);
        else
            tell_digest(m, size);
        demand(read_journal(m), "read");
    }
    return 0;
}

#endif
