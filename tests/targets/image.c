/* SPDX-License-Identifier: 0BSD
   What all machines must do alike: hashes, the life of a key, and a journal
   that is written by a fixed script, so that all write the same bytes.  The
   script has every kind of record in it, restarts, and enough commands for the
   ring of sectors to rotate.  On one medium its commands have numbers for keys.

   Prints a digest of hashes; then, on each of several media, writes the
   journal, reads it, and prints a digest of its bytes.  With argument N only on
   the N-th medium (1 is the first), and it prints the bytes.  Built with
   IMAGE_READS it reads the bytes of such a journal, perhaps of another version
   on another machine, instead of writing them.  Built with IMAGE_ALONE, for
   machines that can do little, it has no media: run.sh gives it a header
   without a journal. */
#define IDEM_IMPLEMENTATION
#include "idem.h"
#include "tests/inside.h"
#include "board.h"

#include <string.h>
#ifdef IMAGE_READS
#include <stdio.h>
enum { READS = 1 };
#define INPUT(bytes, size) fread(bytes, 1, size, stdin)
#else
enum { READS = 0 };
#define INPUT(bytes, size) 0
#endif

enum { KEYS = 4, KEY_MAX = 8, RESPONSE_MAX = 16, STATE_MAX = 4 };
enum { SECTOR = 768, SIZE = 6 * SECTOR, GRANULE_MAX = 16 };
enum { ROTATED = 80, SENDERS = 1 };
enum { LEASE = 1000 };
#define RETENTION UINT32_C(1000000)
#define CODE INT32_C(1048577)           // of three bytes
#define EPOCH UINT32_C(0x1234567)
#define TEXT(text) text, sizeof text - 1

static idem_config config = {
    .capacity = KEYS, .key_max = KEY_MAX, .response_max = RESPONSE_MAX,
    .state_max = STATE_MAX, .lease_ms = LEASE, .retention_ms = RETENTION,
    .secret = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16 }
};
#ifdef IMAGE_ALONE
static uint32_t memory[IDEM_MEMORY_SIZE(KEYS, KEY_MAX, RESPONSE_MAX,
                                        STATE_MAX) / 4];
#else
static uint32_t memory[IDEM_JOURNAL_MEMORY_SIZE(
    KEYS, KEY_MAX, RESPONSE_MAX, STATE_MAX, GRANULE_MAX) / 4 +
    IDEM_SENDERS_MEMORY_SIZE(SENDERS) / 4];
#endif
static idem_table table;
static idem_claim claim;
static char response[RESPONSE_MAX];
static idem_reply reply;
static uint32_t now;

int program(void);

/* -------------------------------------------------------------------- calls */

static int open_table(void)
{
    return idem_open(&table, &config, memory, sizeof memory, now);
}

static idem_request request;

static void request_for(const char *key, const char payload[9])
{
    memset(&request, 0, sizeof request);
    request.payload = payload;
    request.payload_len = 9;
    request.buffer = response;
    request.buffer_size = sizeof response;
    if (config.senders) {
        request.epoch = EPOCH;
        request.sequence = (uint32_t)key[0] << 16 | (uint32_t)key[1];
    } else {
        request.scope = "pump";
        request.scope_len = 4;
        request.key = key;
        request.key_len = 2;
    }
}

static int begin(const char *key, uint16_t response_size,
                 uint32_t retention_ms)
{
    request_for(key, "pour 5 ml");
    request.response_size = response_size;
    request.retention_ms = retention_ms;
    return idem_begin(&table, &claim, &reply, &request, now += 10);
}

static int is_refused(const char *key)
{
    request_for(key, "pour 6 ml");
    return idem_begin(&table, &claim, &reply, &request, now += 10) ==
           IDEM_MISMATCH;
}

static int forget(const char *key)
{
    request_for(key, "pour 5 ml");
    return idem_forget(&table, &request, now += 10) == IDEM_OK;
}

static int complete_as(const idem_claim *held, const char *text, size_t len,
                       int32_t code, const char *state, int confirm)
{
    idem_outcome outcome;

    memset(&outcome, 0, sizeof outcome);
    outcome.response = text;
    outcome.response_len = len;
    outcome.code = code;
    outcome.failed = code < 0;
    outcome.confirm = (uint8_t)confirm;
    outcome.state = state;
    outcome.state_len = state ? STATE_MAX : 0;
    return idem_complete(&table, held, &outcome, now += 10);
}

/* True if it succeeds */
static int complete(const char *text, size_t len, int32_t code,
                    const char *state, int confirm)
{
    return complete_as(&claim, text, len, code, state, confirm) == IDEM_OK;
}

static int replays(const char *key, const char *text, size_t len, int32_t code)
{
    return begin(key, 0, 0) == IDEM_REPLAY && reply.response_len == len &&
           reply.code == code &&
           reply.status == (code < 0 ? IDEM_FAILED : IDEM_COMPLETED) &&
           memcmp(response, text, len) == 0;
}

/* ------------------------------------------------------------ life of a key */

static int starts(uint32_t tick)
{
    config.storage = NULL;
    config.senders = 0;
    now = tick;
    return open_table() == IDEM_OK;
}

/* Claimed, interrupted, taken over, finished; nobody else may finish it. */
static int a_key_lives(uint32_t tick)
{
    idem_claim first;
    int good = starts(tick);

    good &= begin("aa", 0, 0) == IDEM_EXECUTE;
    first = claim;
    good &= begin("aa", 0, 0) == IDEM_BUSY;
    good &= reply.retry_after_ms == LEASE - 10;
    good &= is_refused("aa");
    now += LEASE;
    good &= begin("aa", 0, 0) == IDEM_RECOVER && claim.attempt == 2;
    good &= complete_as(&first, TEXT("1"), 1, NULL, 0) == IDEM_E_FENCED;
    first = claim;
    good &= complete(TEXT("poured"), CODE, NULL, 0);
    good &= complete_as(&first, TEXT("2"), 2, NULL, 0) == IDEM_E_FENCED;
    good &= replays("aa", TEXT("poured"), CODE);
    return good && is_refused("aa") && idem_check(&table) == 0;
}

/* The table is full until one is given back, and until a retention ends. */
static int a_full_table_refuses(uint32_t tick)
{
    int good = starts(tick);

    for (unsigned i = 0; i < KEYS; i++) {
        good &= begin(&"aabbccdd"[2 * i], 0, 0) == IDEM_EXECUTE;
        good &= i == KEYS - 1 || complete(TEXT("poured"), 0, NULL, 0);
    }
    good &= begin("ee", 0, 0) == IDEM_E_FULL;
    good &= begin("aa", 0, 0) == IDEM_REPLAY;
    now += LEASE;
    good &= begin("dd", 0, 0) == IDEM_RECOVER;
    good &= idem_release(&table, &claim, now += 10) == IDEM_OK;
    good &= begin("ee", 0, 0) == IDEM_EXECUTE;
    good &= replays("aa", TEXT("poured"), 0);
    now += RETENTION;
    good &= begin("aa", 0, 0) == IDEM_EXECUTE;
    return good && idem_check(&table) == 0;
}

static int attempts_end(uint32_t tick)
{
    int good = starts(tick);

    good &= begin("aa", 0, 0) == IDEM_EXECUTE;
    for (int i = 0; i < 2; i++) {
        now += LEASE;
        good &= begin("aa", 0, 0) == IDEM_RECOVER;
    }
    now += LEASE;
    good &= begin("aa", 0, 0) == IDEM_EXHAUSTED;
    good &= forget("aa") && begin("aa", 0, 0) == IDEM_EXECUTE;
    // A tick that goes back shortens nothing.
    now -= 100000;
    return good && begin("aa", 0, 0) == IDEM_BUSY && idem_check(&table) == 0;
}

/* Each life begins shortly before the tick wraps, and elsewhere. */
static int keys_live(void)
{
    // Not const: sdcc would place it above the range of 16 bits.
    static uint32_t ticks[] = { 0, 0x7FFFFFC0, 0xFFFFFFC0, 0xFFFFFFFF };
    int good = 1;

    for (unsigned i = 0; i < sizeof ticks / sizeof ticks[0]; i++)
        good &= a_key_lives(ticks[i]) && a_full_table_refuses(ticks[i]) &&
                attempts_end(ticks[i]);
    return good;
}

/* ----------------------------------------------------------------- printing */

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

static void hex(uint8_t byte)
{
    char text[3] = "";

    text[0] = "0123456789abcdef"[byte >> 4];
    text[1] = "0123456789abcdef"[byte & 15];
    board_text(text);
}

/* FNV-1a, which is enough to see if two images differ */
static uint64_t add_byte(uint64_t digest, uint8_t byte)
{
    return (digest ^ byte) * UINT64_C(0x100000001b3);
}

#define DIGEST_INIT UINT64_C(0xcbf29ce484222325)

static void print_digest(const char *name, uint64_t digest)
{
    board_text(name);
    board_text(" ");
    for (int shift = 56; shift >= 0; shift -= 8)
        hex((uint8_t)(digest >> shift));
    board_text("\n");
}

/* Of the hashes of 0 to 63 bytes, in both strengths, under the key 00 01 02 ...
   (That they are those of their authors tests/unit/hash.h shows.) */
static void print_hashes(void)
{
    static idem_config hashed;
    static uint8_t data[64];
    uint64_t digest = DIGEST_INIT;

    for (unsigned i = 0; i < sizeof hashed.secret; i++)
        hashed.secret[i] = (uint8_t)i;
    for (unsigned len = 0; len < 2 * sizeof data; len++) {
        idem_fingerprint_state state;
        uint64_t hash;
        data[len / 2] = (uint8_t)(len / 2);
        inside_hash_init(&state, &hashed, len % 2);
        inside_hash_update(&state, data, len / 2);
        hash = inside_hash_final(&state);
        for (unsigned i = 0; i < 64; i += 8)
            digest = add_byte(digest, (uint8_t)(hash >> i));
    }
    print_digest("hashes", digest);
}

/* ------------------------------------------------------------------- media */
#ifndef IMAGE_ALONE

static idem_storage storage;

#define ERASED storage.erased
#include "ram.h"

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
        .read = ram_read, .prog = ram_prog,
        .erase = m->erases ? ram_erase : NULL, .sector_size = SECTOR,
        .sector_count = sectors(m), .prog_size = m->granule,
        .erased = m->erased };
    config.storage = &storage;
    config.senders = m->senders;
}

/* True if the journal in `bytes`, which write_journal wrote, reads as it must.
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

/* A key that comes and goes, one way or the other: the journal rotates. */
static int rotate(int n)
{
    if (begin("tt", 0, 0) != IDEM_EXECUTE)
        return 0;
    if (n % 3)
        return idem_release(&table, &claim, now += 10) == IDEM_OK;
    return complete(TEXT("turn"), n, NULL, 0) &&
           forget("tt");
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
    for (n = 0; n < ROTATED; n++)
        good &= rotate(n);
    good &= begin("cc", 0, 0) == IDEM_RECOVER;
    good &= idem_maintain(&table, now += 10) >= 0;
    good &= complete(TEXT("sixteen bytes..."), CODE, "st 2", 0);
    good &= begin("bb", 0, 0) == IDEM_REPLAY;
    good &= idem_delivered(&table, &reply.claim) == IDEM_OK;
    good &= begin("dd", 4, 0) == IDEM_EXECUTE;
    return good && idem_check(&table) == 0;
}

static void print_bytes(uint32_t size)
{
    for (uint32_t i = 0; i < size; i++) {
        hex(bytes[i]);
        if (i % 32 == 31)
            board_text("\n");
    }
}

static void print_image(uint32_t size, const char *name)
{
    uint64_t digest = DIGEST_INIT;

    for (uint32_t i = 0; i < size; i++)
        digest = add_byte(digest, bytes[i]);
    print_digest(name, digest);
}

static void write_and_read(unsigned which, int prints_bytes)
{
    const medium *m = &media[which];
    uint32_t size = sectors(m) * SECTOR;

    demand(write_journal(m), "write");
    if (prints_bytes)
        print_bytes(size);
    else
        print_image(size, m->name);
    demand(read_journal(m), "read");
}

/* The journal that comes in */
static void read_it(uint32_t number)
{
    size_t len = INPUT(bytes, SIZE);

    demand(number >= 1 && number <= MEDIA, "name a medium");
    demand(len == sectors(&media[number - 1]) * SECTOR, "get all of it");
    demand(read_journal(&media[number - 1]), "read");
}
#endif

int program(void)
{
    uint32_t asked = board_argument(0);

    if (!asked) {
        print_hashes();
        demand(keys_live(), "live");
    }
#ifndef IMAGE_ALONE
    if (READS)
        read_it(asked);
    for (unsigned i = 0; i < MEDIA && !READS; i++)
        if (!asked || asked == i + 1)
            write_and_read(i, asked != 0);
#endif
    return 0;
}
