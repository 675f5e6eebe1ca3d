/* SPDX-License-Identifier: 0BSD */
/*
 * Writes journals by chance, for a reader that knows the manual alone:
 *
 *     history FIRST COUNT
 *
 * prints a line for each seed: a JSON object with how the journal is configured,
 * the storage's bytes in hex, and what a table says that is opened on them.  The
 * same seeds give the same lines on every machine.
 *
 * A history is calls and restarts; power fails in programs and erases.  In one
 * of four a bit of the storage is wrong in the end.  In one of two there are
 * accounts, and two of three senders number their commands.
 */
#define IDEM_IMPLEMENTATION
#include "idem.h"
#include "storage/flash.h"
#include "inside.h"

#include <stdio.h>
#include <stdlib.h>

enum { KEY_MAX = 12, RESPONSE_MAX = 20, STATE_MAX = 8, RETENTION = 30000 };
enum { KEYS_MAX = 12, CALLS = 150, SIZE_MAX_BYTES = 64 * 1024 };
enum { EPOCH = 25, NUMBER_BYTES = 8 };  // numbers of a sender in an epoch

typedef struct medium {
    int kind;
    uint32_t sector_size, granule;
    uint8_t erased;
} medium;

static const medium media[] = {
    { FLASH_NOR, 640, 1, 0xFF },     { FLASH_NOR, 704, 8, 0xFF },
    { FLASH_NOR, 768, 16, 0xFF },    { FLASH_NOR, 640, 4, 0x00 },
    { FLASH_INPLACE, 640, 1, 0x00 }, { FLASH_INPLACE, 700, 1, 0xFF },
};

static const char *const scopes[] = { "", "a", "pump" };
enum { SCOPES = sizeof scopes / sizeof scopes[0] };

static uint32_t random_state;
static flash chip;
static uint32_t chip_memory[FLASH_MEMORY(SIZE_MAX_BYTES / 8, 8) / 4];
static idem_storage storage;
static idem_config config;
static idem_table table;
static uint32_t memory[8192];
static uint32_t now;
static uint32_t counted;        // so far senders are in their numbers

// Claims that may be current, and the keys that they are for
static idem_claim claims[KEYS_MAX];

static void die(const char *what, int result)
{
    fprintf(stderr, "history: %s: %d\n", what, result);
    exit(1);
}

/* 0 .. n - 1 */
static uint32_t chance(uint32_t n)
{
    random_state += UINT32_C(0x9E3779B9);
    return flash_mix(random_state) % n;
}

/* ---------------------------------------------------------------------------
   the device
   ------------------------------------------------------------------------ */

static void make_device(void)
{
    const medium *m = &media[chance(sizeof media / sizeof media[0])];
    unsigned i;

    memset(&config, 0, sizeof config);
    config.capacity = 1 + chance(KEYS_MAX);
    config.key_max = KEY_MAX;
    config.response_max = RESPONSE_MAX;
    config.state_max = chance(2) ? STATE_MAX : 0;
    for (i = 0; i < sizeof config.secret; i++)
        config.secret[i] = (uint8_t)(1 + chance(255));
    config.storage = &storage;
    config.lease_ms = 500;
    config.retention_ms = RETENTION;
    config.full = (uint8_t)(chance(4) ? IDEM_EVICT_OLDEST : IDEM_REJECT);
    config.volatile_claims = chance(8) == 0;
    config.durability = chance(4) ? IDEM_EACH : IDEM_BATCH;
    config.senders = chance(2) ? SCOPES : 0;
    counted = 0;

    memset(&storage, 0, sizeof storage);
    storage.ctx = &chip;
    storage.read = flash_read;
    storage.prog = flash_prog;
    storage.erase = m->kind == FLASH_INPLACE ? NULL : flash_erase;
    storage.sector_size = m->sector_size;
    storage.prog_size = (uint16_t)m->granule;
    storage.erased = m->erased;
    storage.sector_count =
        IDEM_SECTORS(config.capacity + config.senders, config.key_max,
                     config.response_max, config.state_max, m->sector_size,
                     m->granule) + chance(3);

    memset(&chip, 0, sizeof chip);
    chip.kind = m->kind;
    chip.sector_size = m->sector_size;
    chip.sector_count = storage.sector_count;
    chip.prog_size = m->granule;
    chip.erased = m->erased;
    chip.seed = random_state;
    if (m->sector_size * storage.sector_count > SIZE_MAX_BYTES ||
        flash_init(&chip, chip_memory))
        die("medium", (int)storage.sector_count);
    now = chance(1000000);
}

/* A restart; what a cut left unstable settles. */
static void boot(void)
{
    static uint8_t bytes[SIZE_MAX_BYTES];
    int result;

    flash_boot(&chip);
    flash_read(&chip, 0, bytes, chip.size);
    flash_load(&chip, 0, bytes, chip.size);
    memset(claims, 0, sizeof claims);
    now = chance(1000000);
    result = idem_open(&table, &config, memory, sizeof memory, now);
    if (result != IDEM_OK && result != IDEM_E_FORMAT)
        die("open", result);
    // Cuts in the very first headers may leave what nobody knows.
    if (result == IDEM_E_FORMAT &&
        idem_format(&table, &config, memory, sizeof memory, now) != IDEM_OK)
        die("format", result);
}

/* Keys have scopes of several lengths; a key's payload is always the same.  A
   number is some way behind, or ahead of, those before. */
static idem_request request_of(unsigned number)
{
    static char key[8];
    idem_request request;

    memset(&request, 0, sizeof request);
    snprintf(key, sizeof key, "k%u", number);
    request.scope = scopes[number % SCOPES];
    request.scope_len = strlen(scopes[number % SCOPES]);
    if (config.senders && number % SCOPES) {
        request.epoch = counted / EPOCH;
        request.sequence = 1 + counted % EPOCH * 2 + number / SCOPES;
    } else {
        request.key = key;
        request.key_len = strlen(key);
    }
    request.payload = key;
    request.payload_len = strlen(key);
    return request;
}

/* ---------------------------------------------------------------------------
   calls; what they answer is for other tests
   ------------------------------------------------------------------------ */

static void begin(unsigned number)
{
    idem_request request = request_of(number);
    idem_reply reply;
    idem_claim claim;
    int result;

    memset(&reply, 0, sizeof reply);
    request.response_size = (uint16_t)(chance(2) ? 0 : 1 + chance(RESPONSE_MAX));
    request.retention_ms = chance(3) ? 0 : 1 + chance(2 * RETENTION);
    request.lease_ms = chance(5) ? 0 : IDEM_LEASE_NONE;
    result = idem_begin(&table, &claim, &reply, &request, now);
    if (result == IDEM_EXECUTE || result == IDEM_RECOVER)
        claims[number] = claim;
    if (result == IDEM_REPLAY && chance(2))
        idem_delivered(&table, &reply.claim);
}

/* Completes that key's claim, or that of one of the next keys. */
static void complete(unsigned number)
{
    static const char text[] = "response, not so long";
    idem_outcome outcome;
    unsigned shift = chance(32), i;

    memset(&outcome, 0, sizeof outcome);
    outcome.response = text;
    outcome.response_len = chance(3) ? chance(RESPONSE_MAX + 1) : 0;
    if (config.state_max && chance(2)) {
        outcome.state = text + chance(8);
        outcome.state_len = chance(STATE_MAX + 1);
    }
    outcome.code = chance(2) ? 0 : (int32_t)(chance(UINT32_MAX) >> shift);
    outcome.failed = chance(4) == 0;
    outcome.confirm = chance(4) == 0;
    for (i = 0; i < KEYS_MAX && !claims[number].token; i++)
        number = (number + 1) % KEYS_MAX;
    idem_complete(&table, &claims[number], &outcome, now);
    claims[number].token = 0;
}

static void call(void)
{
    unsigned number = chance(KEYS_MAX);
    idem_request request = request_of(number);

    counted += chance(4) == 0;
    now += chance(4) ? chance(200) : chance(20) ? chance(3000) : RETENTION;
    switch (chance(16)) {
    case 0:  idem_release(&table, &claims[number], now); break;
    case 1:  idem_forget(&table, &request, now); break;
    case 2:
    case 3:  idem_maintain(&table, now); break;
    case 4:  idem_elapse(&table, chance(2000)); break;
    case 10: idem_sync(&table); break;
    case 5:
    case 6:
    case 7:
    case 8:
    case 9:  begin(number); break;
    default: complete(number);
    }
}

static void live(void)
{
    uint32_t calls = 1 + chance(CALLS);

    boot();
    while (calls--) {
        if (chance(8) == 0) {
            uint32_t n = chance(6);
            flash_cut(&chip, n, chance(FLASH_SWAY_BOOT));
        }
        call();
        if (chip.off || chance(12) == 0)
            boot();
    }
    flash_boot(&chip);
    if (chance(4) == 0) {
        uint32_t at = chance(chip.size);
        flash_flip(&chip, at, chance(8));
    }
}

/* ---------------------------------------------------------------------------
   what there is in the end
   ------------------------------------------------------------------------ */

static void print_hex(const char *name, const void *bytes, size_t len)
{
    const uint8_t *from = (const uint8_t *)bytes;
    size_t i;

    printf("\"%s\": \"", name);
    for (i = 0; i < len; i++)
        printf("%02x", from[i]);
    printf("\"");
}

static void print_device(uint32_t seed)
{
    printf("{\"seed\": %lu, \"hash\": %d, ", (unsigned long)seed, IDEM_HASH);
    printf("\"capacity\": %u, \"key_max\": %u, \"response_max\": %u, "
           "\"state_max\": %u, \"retention\": %u, ", (unsigned)config.capacity,
           config.key_max, config.response_max, config.state_max,
           (unsigned)config.retention_ms);
    printf("\"sector_size\": %u, \"sector_count\": %u, \"granule\": %u, "
           "\"erased\": %u, \"erases\": %d, \"batch\": %d, ",
           (unsigned)storage.sector_size, (unsigned)storage.sector_count,
           storage.prog_size, storage.erased, storage.erase != NULL,
           config.durability == IDEM_BATCH);
    print_hex("secret", config.secret, sizeof config.secret);
    printf(", ");
    print_hex("bytes", chip.bytes, chip.size);
}

static void print_key(const idem_entry *entry)
{
    uint8_t response[RESPONSE_MAX];
    size_t len = sizeof response;

    printf("{");
    print_hex("scope", entry->id, entry->scope_len);
    printf(", ");
    print_hex("key", (const uint8_t *)entry->id + entry->scope_len,
              entry->key_len ? entry->key_len : NUMBER_BYTES);
    printf(", \"is_number\": %d, ", entry->key_len == 0);
    printf("\"status\": %d, \"attempts\": %u, ", entry->status,
           (unsigned)entry->attempts);
    printf("\"fingerprint\": %llu", (unsigned long long)entry->fingerprint);
    if (entry->status != IDEM_IN_PROGRESS) {
        idem_response(&table, response, &len, &entry->claim, 0);
        printf(", \"code\": %ld, \"age\": %lu, \"left\": %lu, \"owed\": %d, ",
               (long)entry->code, (unsigned long)entry->age_ms,
               (unsigned long)entry->left_ms, entry->undelivered);
        print_hex("response", response, len);
    }
    printf("}");
}

/* How far each sender is that has an account. */
static void print_floors(int opened)
{
    const char *comma = "";
    unsigned i;

    printf("\"floors\": {");
    for (i = 0; i < SCOPES; i++) {
        uint64_t floor = opened ? inside_floor(&table, scopes[i]) : 0;
        if (!floor)
            continue;
        printf("%s", comma);
        printf("\"%s\": [%lu, %lu]", scopes[i], (unsigned long)(floor >> 32),
               (unsigned long)(floor & UINT32_MAX));
        comma = ", ";
    }
    printf("}, ");
}

static void print_table(void)
{
    uint8_t id[KEY_MAX], state[STATE_MAX];
    size_t len = sizeof state;
    const char *comma = "";
    idem_entry entry;
    int result = idem_open(&table, &config, memory, sizeof memory, 0);

    printf(", \"opened\": %d, \"keys\": [", result == IDEM_OK);
    memset(&entry, 0, sizeof entry);
    entry.id = id;
    entry.id_size = sizeof id;
    while (result == IDEM_OK && idem_next(&table, &entry, 0) == IDEM_OK) {
        printf("%s", comma);
        print_key(&entry);
        comma = ", ";
    }
    printf("], ");
    if (result != IDEM_OK || idem_state(&table, state, &len) != IDEM_OK)
        len = 0;
    print_floors(result == IDEM_OK);
    print_hex("state", state, len);
    printf(", \"lost\": %d}\n", result == IDEM_OK && table.stats.lost != 0);
}

int main(int argc, char **argv)
{
    uint32_t seed = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 0) : 1;
    uint32_t count = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 0) : 1;

    for (; count--; seed++) {
        random_state = flash_mix(seed);
        make_device();
        live();
        print_device(seed);
        print_table();
    }
    return 0;
}
