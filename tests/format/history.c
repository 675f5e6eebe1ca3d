/* SPDX-License-Identifier: 0BSD */
/*
 * Writes random journals, for a reader that knows the manual alone:
 *
 *     history FIRST COUNT
 *
 * prints a line for each seed: a JSON object with the configuration of the
 * journal, the storage's bytes in hex, and what a table finds in them.  The
 * same seeds give the same lines on every machine.
 *
 * A history is calls, restarts and power cuts (tests/model/chance.h).  In one
 * of four a bit of the storage is wrong in the end; in one of ten a sector, or
 * its header; in one of ten the storage read as blank for a time; in one of
 * eight there is less room in the end.  In one of two there are senders, and
 * every second one numbers its commands.
 */
#define IDEM_STATIC
#define IDEM_IMPLEMENTATION
#include "idem.h"

#include "model/chance.h"

enum { KEY_MAX = 12, RESPONSE_MAX = 20, STATE_MAX = 8 };
enum { CALLS = 900, SIZE = 64 * 1024, NUMBER_BYTES = 8 };
static const char *const scopes[] = { "", "a", "ab", "abc" };
static const unsigned epochs[] = { 2, 5, 50 };

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
    idem_config *c = &the.config;
    idem_storage *s = &the.storage;

    choose_modes("capacity=1-12 key=12 response=20 state=0/8 lease=500 "
                 "retention=30000 evict=0/1/1/1 batch=0/0/0/1 "
                 "senders=0/4 scopes=4");
    device_plug(&the, &PICK(media));
    for (size_t i = 0; i < sizeof c->secret; i++)
        c->secret[i] = (uint8_t)(1 + chance(255));
    s->sector_count = device_sectors(&the) + chance(3);
    PROMISE(s->sector_size * s->sector_count <= SIZE);
    the.medium.seed = seed;
    the.per_epoch = PICK(epochs);
    play.cuts = 1;
    device_make(&the, keys, 3 * c->capacity + 20);
}

/* Damages the storage, which has `bytes`: a sector or a part of its header, or
   what stands in another sector is written over them. */
static void damage(uint8_t *bytes)
{
    flash *f = &the.medium;
    uint32_t size = the.storage.sector_size;
    uint8_t *sector = bytes + chance(the.storage.sector_count) * size;
    uint8_t *other = bytes + chance(the.storage.sector_count) * size;
    uint8_t *at = sector + chance(HEADER_BYTES - 4);

    switch (chance(4)) {
    case 0: memset(sector, the.storage.erased, size); break;
    case 1: memmove(sector, other, size); break;
    case 2: memmove(sector, other, HEADER_BYTES); break;
    default: memset(at, (int)chance(256), 4);
    }
    flash_load(f, 0, bytes, f->size);
}

/* The storage reads as blank, and a journal is begun; then it reads as before,
   but where that was written. */
static void begin_anew(const uint8_t *bytes)
{
    static const char id[] = "anew";
    flash *f = &the.medium;
    uint32_t size = the.storage.sector_size;
    idem_request rq = { .scope = id, .scope_len = 1, .key = id + 1 };
    idem_claim claim;
    idem_reply reply = { 0 };

    flash_fill(f, 0, f->size, the.storage.erased);
    if (idem_open(the.table, &the.config, the.memory, the.memory_size, 0) < 0)
        broken("blank storage is not opened", __FILE__, __LINE__);
    for (uint32_t calls = 1 + chance(40); calls > 0; calls--) {
        rq.key_len = 1 + calls % 3;
        int result = idem_begin(the.table, &claim, &reply, &rq, calls);
        if (result >= IDEM_EXECUTE && result <= IDEM_UNCERTAIN && one_in(2))
            (void)idem_release(the.table, &claim, calls);
    }
    for (uint32_t at = 0; at < f->size; at += size) {
        uint32_t i = 0;
        while (i < size && f->bytes[at + i] == the.storage.erased)
            i++;
        if (i == size)
            flash_load(f, at, bytes + at, size);
    }
}

/* One limit of the configuration is lower than what was written had. */
static void choose_less(void)
{
    idem_config *c = &the.config;

    switch (chance(4)) {
    case 0: c->capacity = 1 + chance(c->capacity); break;
    case 1: c->key_max = (uint8_t)(8 + chance(c->key_max - 7)); break;
    case 2: c->response_max = (uint16_t)chance(c->response_max); break;
    default: c->state_max = (uint16_t)chance(c->state_max + 1);
    }
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
    if (one_in(10))
        damage(bytes);
    else if (one_in(9))
        begin_anew(bytes);
    if (one_in(8))
        choose_less();
}

/* ---------------------------------------------------------------------------
   what there is in the end
   ------------------------------------------------------------------------ */

static void print_hex(const char *name, const void *bytes, size_t len)
{
    printf("\"%s\": \"", name);
    for (size_t i = 0; i < len; i++)
        printf("%02x", ((const uint8_t *)bytes)[i]);
    printf("\", ");
}

static void print_number(const char *name, int64_t number)
{
    printf("\"%s\": %lld, ", name, (long long)number);
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

    for (size_t i = 0; i < COUNT(numbers); i++)
        print_number(numbers[i].name, numbers[i].value);
    print_hex("secret", c->secret, sizeof c->secret);
    print_hex("bytes", the.medium.bytes, the.medium.size);
}

static void print_key(const idem_info *info)
{
    uint8_t response[RESPONSE_MAX];
    size_t len = sizeof response;

    print_hex("scope", info->id, info->scope_len);
    print_hex("key", (const uint8_t *)info->id + info->scope_len,
              info->key_len ? info->key_len : NUMBER_BYTES);
    print_number("status", info->status);
    print_number("attempts", info->attempts);
    if (info->status != IDEM_IN_PROGRESS) {
        idem_response(the.table, response, &len, &info->claim, 0);
        print_hex("response", response, len);
        print_number("code", info->code);
        print_number("age", info->age_ms);
        print_number("left", info->left_ms);
        print_number("undelivered", info->undelivered);
    }
    printf("\"fingerprint\": %llu, \"is_number\": %d}",
           (unsigned long long)info->fingerprint, info->key_len == 0);
}

/* How far each sender is. */
static void print_floors(int opened)
{
    printf("\"floors\": {");
    for (size_t i = 0; i < COUNT(scopes); i++) {
        uint64_t floor = opened ? inside_floor(the.table, scopes[i]) : 0;
        printf("%s\"%s\": [%lu, %lu]", i ? ", " : "", scopes[i],
               (unsigned long)(floor >> 32),
               (unsigned long)(floor & UINT32_MAX));
    }
    printf("}, ");
}

static void print_table(void)
{
    uint8_t id[KEY_MAX], state[STATE_MAX];
    size_t len = sizeof state;
    const char *before = "{";
    idem_info info = { .id = id, .id_size = sizeof id };
    int opened = idem_open(the.table, &the.config, the.memory,
                           the.memory_size, 0) == IDEM_OK;

    print_number("opened", opened);
    printf("\"keys\": [");
    while (opened && idem_next(the.table, &info, 0) == IDEM_OK) {
        printf("%s", before);
        print_key(&info);
        before = ", {";
    }
    printf("], ");
    if (!opened || idem_state(the.table, state, &len) != IDEM_OK)
        len = 0;
    print_floors(opened);
    print_hex("state", state, len);
    printf("\"lost\": %d", opened && the.table->stats.lost);
}

int main(int argc, char **argv)
{
    uint32_t count = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 0) : 1;

    seed = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 0) : 1;
    for (; count--; seed++) {
        chance_start(seed);
        make_device();
        live();
        printf("{");
        print_device();
        print_table();
        printf("}\n");
        device_end(&the);
    }
    return 0;
}
