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
 * A history is calls, restarts and power cuts (tests/model/chance.h).  In one
 * of four a bit of the storage is wrong in the end.  In one of two there are
 * accounts, and every second sender numbers its commands.
 */
#define IDEM_STATIC
#define IDEM_IMPLEMENTATION
#include "idem.h"

#include "model/chance.h"

enum { KEY_MAX = 12, RESPONSE_MAX = 20, STATE_MAX = 8, RETENTION = 30000 };
enum { CAPACITY_MAX = 12, CALLS = 900, SIZE = 64 * 1024 };
enum { SENDERS = 4, NUMBER_BYTES = 8 };
static const char *const scopes[SENDERS] = { "", "a", "ab", "abc" };

static const medium media[] = {
    { "", FLASH_NOR, 0, 1, 640, 0xFF },     { "", FLASH_NOR, 0, 8, 704, 0xFF },
    { "", FLASH_NOR, 0, 16, 768, 0xFF },    { "", FLASH_NOR, 0, 4, 640, 0x00 },
    { "", FLASH_INPLACE, 0, 1, 640, 0x00 },
    { "", FLASH_INPLACE, 0, 1, 700, 0xFF },
};

static uint32_t seed;

static void broken(const char *what, const char *file, int line)
{
    fprintf(stderr, "history: seed %u: %s, %s:%d\n", (unsigned)seed, what, file,
            line);
    exit(1);
}

static void make_device(void)
{
    static const unsigned epochs[] = { 2, 5, 50 };
    const medium *m = &PICK(media);
    idem_config *c = &the.config;
    idem_storage *s = &the.storage;

    memset(&the, 0, sizeof the);
    c->capacity = 1 + chance(CAPACITY_MAX);
    c->key_max = KEY_MAX;
    c->response_max = RESPONSE_MAX;
    c->state_max = one_in(2) ? STATE_MAX : 0;
    for (size_t i = 0; i < sizeof c->secret; i++)
        c->secret[i] = (uint8_t)(1 + chance(255));
    c->storage = s;
    c->lease_ms = 500;
    c->retention_ms = RETENTION;
    c->full = one_in(4) ? IDEM_REJECT : IDEM_EVICT_OLDEST;
    c->volatile_claims = one_in(8);
    c->durability = one_in(4) ? IDEM_BATCH : IDEM_EACH;
    c->senders = one_in(2) ? SENDERS : 0;
    s->sector_size = m->sector_size;
    s->prog_size = m->granule;
    s->erased = m->erased;
    s->sector_count = device_sectors(&the) + chance(3);
    PROMISE(s->sector_size * s->sector_count <= SIZE);
    the.medium.kind = m->kind;
    the.medium.seed = seed;
    the.scopes = SENDERS;
    the.per_epoch = PICK(epochs);
    play.cuts = 1;
    device_make(&the, keys, 3 * c->capacity + 20);
}

/* What a table did that lived; its bytes as they read in the end. */
static void live(void)
{
    static uint8_t bytes[SIZE];
    flash *f = &the.medium;

    the.now = chance(1000000);
    device_open(&the);
    play_calls(1 + chance(CALLS));
    flash_boot(f);
    flash_read(f, 0, bytes, f->size);
    flash_load(f, 0, bytes, f->size);
    if (one_in(4)) {
        uint32_t at = chance(f->size);
        flash_flip(f, at, chance(8));
    }
    f->watch = NULL;
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

static void print_device(void)
{
    const idem_config *c = &the.config;
    const idem_storage *s = &the.storage;
    const struct { const char *name; uint32_t value; } numbers[] = {
        { "seed", seed }, { "hash", IDEM_HASH }, { "capacity", c->capacity },
        { "key_max", c->key_max }, { "response_max", c->response_max },
        { "state_max", c->state_max }, { "retention", c->retention_ms },
        { "sector_size", s->sector_size }, { "sector_count", s->sector_count },
        { "granule", s->prog_size }, { "erased", s->erased },
        { "batch", c->durability == IDEM_BATCH },
    };

    printf("{");
    for (size_t i = 0; i < COUNT(numbers); i++)
        printf("\"%s\": %lu, ", numbers[i].name,
               (unsigned long)numbers[i].value);
    print_hex("secret", c->secret, sizeof c->secret);
    printf(", ");
    print_hex("bytes", the.medium.bytes, the.medium.size);
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
        idem_response(the.table, response, &len, &entry->claim, 0);
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
    for (i = 0; i < SENDERS; i++) {
        uint64_t floor = opened ? inside_floor(the.table, scopes[i]) : 0;
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
    int result = idem_open(the.table, &the.config, the.memory,
                           the.memory_size, 0);

    printf(", \"opened\": %d, \"keys\": [", result == IDEM_OK);
    memset(&entry, 0, sizeof entry);
    entry.id = id;
    entry.id_size = sizeof id;
    while (result == IDEM_OK && idem_next(the.table, &entry, 0) == IDEM_OK) {
        printf("%s", comma);
        print_key(&entry);
        comma = ", ";
    }
    printf("], ");
    if (result != IDEM_OK || idem_state(the.table, state, &len) != IDEM_OK)
        len = 0;
    print_floors(result == IDEM_OK);
    print_hex("state", state, len);
    printf(", \"lost\": %d}\n",
           result == IDEM_OK && the.table->stats.lost != 0);
}

int main(int argc, char **argv)
{
    uint32_t count = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 0) : 1;

    seed = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 0) : 1;
    for (; count--; seed++) {
        chance_start(seed);
        make_device();
        live();
        print_device();
        print_table();
        device_end(&the);
    }
    return 0;
}
