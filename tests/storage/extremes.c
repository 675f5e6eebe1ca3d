/* SPDX-License-Identifier: 0BSD */
/*
 * Extreme configurations: the smallest tables and the largest, sectors and
 * responses of every size, months of time, numbers near their ends; and calls,
 * restarts, power cuts and failing callbacks on them, in any order.  What is
 * answered must be what the model of extremes_model.h says.
 *
 *     extremes [SEED [COUNT]]     one configuration for each seed
 *
 * The seed of a configuration tells everything that happens to it.  The first
 * violation ends the run and is told with its seed: with TRACE=1 in the
 * environment `extremes SEED` shows the calls that lead to it.
 */
#define IDEM_ASSERT(x) ((x) ? (void)0 : broken(#x, __LINE__))
static void broken(const char *what, int line);

#define IDEM_STATIC
#define IDEM_IMPLEMENTATION
#include "idem.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "extremes_model.h"
#include "inside.h"
#include "flash.h"

#define PROMISE(condition)                                                     \
    ((condition) ? (void)0 : broken(#condition, __LINE__))

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define PICK(array) ((array)[chance((uint32_t)COUNT(array))])

enum { SECTORS_LEAST = 4 };
enum { MEDIUM_MAX = 24 << 20 };     // bytes
enum { KEYS_MAX = 98400, LEN_MAX = 65535, ID_MAX = 255 };
enum { GUARD = 64, GUARD_BYTE = 0xC3 };     // behind the table's memory
#define TICK_JITTER UINT32_C(0x10000)       // a step back that is waited out
#define TICK_HALF   UINT32_C(0x80000000)    // the least that counts as one

enum { TELL_MS = 60000 };           // a minute
#define SILENT_MAX  UINT32_C(0xD0000000)    // ms without a record: 40 days
enum { OLD_CLAIMS = 16 };           // that are tried again
enum { CALLS_LEAST = 3000, CALLS_PER_KEY = 3 };
enum { OPERATIONS_MAX = 3000000 };  // of the storage, in one call

/* Cuts, and boots in which a callback fails, in a row without a call that has
   written.  The manual says what three may do (>>recovery, >>eeprom). */
enum { HARM_MAX = 2 };

static struct {
    // The configuration.
    uint32_t     seed;
    const char  *profile;
    idem_storage storage;
    idem_config  config;
    unsigned     scopes;
    int          turns_volatile;    // claims may become volatile between boots
    int          keeps_retention;   // the default stays as it is
    int          many_retentions;   // requests ask for many
    int          cuts, fails;       // the power goes; callbacks fail
    int          runs_out;          // of sequences: new claims may be refused
    unsigned     polls;             // until an erase is done, at most
    // The device.
    flash        medium;
    idem_table   table;
    void        *medium_memory, *cache_memory, *memory;
    size_t       memory_size;
    uint32_t     now;               // the tick
    uint32_t     erasing, polls_left;   // sector, plus one
    int          reads_fail;
    int          sync_failed;
    int          confirmed;         // what an answer relied on, in this boot
    int          acknowledged;      // something is on the medium for certain
    unsigned     harm;
    uint64_t     cut_at;            // logical time of a cut, the latest; what
                                    // it interrupted may yet be found
    // This call.
    int          opening;
    uint64_t     told, told_before; // logical time of the latest record, and
                                    // before this call
    int          callback;          // what one returned that was not 0
    uint32_t     operations, progs, erases;
    uint32_t     erases_before_boot;
    uint32_t     evicted;           // the counter before it
    // All of them.
    uint32_t     number;            // the last of a response
    unsigned     last_key;
    unsigned     held[KEYS_MAX];    // keys claimed, some of them no more
    unsigned     holding;
    idem_claim   old[OLD_CLAIMS];   // claims that are used up
    unsigned     olds;
} the;

static model truth;
static known keys[KEYS_MAX];
static unsigned long calls, restarts, cuts, failures, configurations;
static unsigned long answered[IDEM_EXHAUSTED + 1];
static uint8_t buffer[LEN_MAX + 1], state_buffer[LEN_MAX + 1];

/* ---------------------------------------------------- >>basics  chance, end */

/* 2^64 divided by the golden ratio, odd. */
#define GOLDEN UINT64_C(0x9E3779B97F4A7C15)

static uint64_t chance_state;

static void chance_start(uint32_t seed)
{
    chance_state = (seed + UINT64_C(1)) * GOLDEN;
}

/* xorshift64*, of Marsaglia and Vigna. */
static uint32_t chance_word(void)
{
    chance_state ^= chance_state >> 12;
    chance_state ^= chance_state << 25;
    chance_state ^= chance_state >> 27;
    return (uint32_t)(chance_state * UINT64_C(2685821657736338717) >> 32);
}

/* One of the numbers below `count`; 0 if there are none. */
static uint32_t chance(uint32_t count)
{
    return count ? chance_word() % count : 0;
}

/* Another number for each, up to the largest. */
static uint64_t spread(uint64_t number)
{
    return number * GOLDEN;
}

static int one_in(uint32_t count)
{
    return chance(count) == 0;
}

static void tell_configuration(void)
{
    const idem_config *c = &the.config;
    const idem_storage *s = &the.storage;

    printf("seed %u, %s: capacity %u, key %u, response %u, state %u, "
           "lease %u, retention %u, quota %u, attempts %u, full %u, "
           "durability %u, volatile %u, scopes %u\n",
           the.seed, the.profile, c->capacity, c->key_max, c->response_max,
           c->state_max, c->lease_ms, c->retention_ms, c->quota,
           c->max_attempts, c->full, c->durability, c->volatile_claims,
           the.scopes);
    if (c->storage)
        printf("    %u sectors of %u, granule %u, erased %02X, verify %u, "
               "kind %d%s%s%s, sequence %u\n",
               s->sector_count, s->sector_size, s->prog_size, s->erased,
               s->verify, the.medium.kind, s->erasing ? ", split" : "",
               s->sync ? ", sync" : "", the.medium.durable ? ", cache" : "",
               the.table.journal ? the.table.journal->sequence : 0);
}

static void tell_version(const char *when, const version *v)
{
    printf("    %s: status %u%s%s, attempts %u, length %u, retention %u, "
           "fingerprint %llu, lease until %llu, from %llu to %llu, known %d\n",
           when, v->status, v->cut ? " cut" : "", v->owed ? " owed" : "",
           v->attempts, v->len, v->retention,
           (unsigned long long)v->fingerprint,
           (unsigned long long)v->lease_end,
           (unsigned long long)v->from, (unsigned long long)v->to,
           version_known(&truth, v));
}

static void tell_key(void)
{
    const known *k = &keys[the.last_key];

    printf("    key %u, scope %u, clock %llu\n", the.last_key, k->scope,
           (unsigned long long)truth.clock);
    for (unsigned i = 0; i < k->now.count; i++)
        tell_version("now", &k->now.of[i]);
    for (unsigned i = 0; i < k->next.count; i++)
        tell_version("next", &k->next.of[i]);
}

static void broken(const char *what, int line)
{
    printf("BROKEN, in call %u, line %d: %s\n", truth.calls, line, what);
    if (the.medium.violations)
        printf("    the medium: %s at %u\n", flash_text(&the.medium),
               the.medium.first_at);
    tell_configuration();
    tell_key();
    exit(1);
}

/* Whether to say what happens: TRACE=1 in the environment. */
static int is_traced(void)
{
    static int wanted = -1;

    if (wanted < 0)
        wanted = getenv("TRACE") != NULL;
    return wanted;
}

static void trace(const char *format, ...)
{
    va_list args;

    if (!is_traced())
        return;
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
}

static void *enough_memory(size_t size)
{
    void *memory = malloc(size ? size : 1);

    if (!memory) {
        fputs("extremes: no memory\n", stderr);
        exit(2);
    }
    return memory;
}

/* ------------------------------------------------------------ >>callbacks */

static int operated(int result)
{
    PROMISE(++the.operations < OPERATIONS_MAX);
    if (result)
        the.callback = result;
    if (result && result != FLASH_E_OFF && result != FLASH_E_ECC) {
        truth.faulty = 1;
        failures++;
    }
    return result;
}

/* Nothing touches a sector while it is erased. */
static int is_erasing(uint32_t at)
{
    return the.erasing && at / the.storage.sector_size == the.erasing - 1;
}

static int medium_read(void *ctx, uint32_t at, void *dst, uint32_t len)
{
    PROMISE(len > 0);
    PROMISE(!is_erasing(at) && !is_erasing(at + len - 1));
    return operated(flash_read(ctx, at, dst, len));
}

static int medium_prog(void *ctx, uint32_t at, const void *src, uint32_t len)
{
    PROMISE(!the.opening && !is_erasing(at));
    the.progs++;
    return operated(flash_prog(ctx, at, src, len));
}

static int medium_erase(void *ctx, uint32_t sector)
{
    if (the.medium.off)
        return operated(FLASH_E_OFF);
    PROMISE(!the.opening && !the.erasing);
    the.erases++;
    if (!the.storage.erasing)
        return operated(flash_erase(ctx, sector));
    the.erasing = sector + 1;
    the.polls_left = chance(the.polls + 1);
    return operated(FLASH_OK);
}

static int medium_erasing(void *ctx)
{
    uint32_t sector = the.erasing - 1;

    PROMISE(the.erasing);
    if (the.medium.off)
        return operated(FLASH_E_OFF);
    if (the.polls_left) {
        the.polls_left--;
        return 1;
    }
    the.erasing = 0;
    return operated(flash_erase(ctx, sector));
}

static int medium_sync(void *ctx)
{
    int result = flash_sync(ctx);

    if (result)
        the.sync_failed = 1;
    return operated(result);
}

/* Leaves what a cut interrupts torn in one of the ways there are: of any kind,
   or most would be front parts. */
static void choose_variant(void *arg, const flash *f, const flash_op *op)
{
    uint32_t variant = 0, count;
    int torn;

    (void)arg;
    if (!f->armed || f->cut_in)
        return;
    do {
        torn = (int)chance(FLASH_TORN_KINDS);
        count = flash_torn_count(f, op, torn);
    } while (!count);
    for (int kind = 0; kind < torn; kind++)
        variant += flash_torn_count(f, op, kind);
    the.medium.cut_variant = variant + chance(count);
}

/* -------------------------------------------- >>profiles  what is extreme */

static const uint32_t sector_sizes[] = {
    256, 264, 528, 1056, 4096, 4488, 8000, 65536, 131328, 262144
};
static const uint16_t granules[] = { 1, 2, 4, 8, 16, 32, 64, 128, 256 };

static void any_sectors(void)
{
    the.storage.sector_size = PICK(sector_sizes);
    the.storage.prog_size = PICK(granules);
}

static void few_keys(void)
{
    the.config.capacity = 1 + chance(4);
    the.config.response_max = (uint16_t)chance(40);
    the.config.state_max = (uint16_t)(one_in(2) ? 0 : chance(60));
    any_sectors();
}

static void many_sectors(void)
{
    static const uint32_t counts[] = { 300, 1000, 5000, 65535 };
    static const uint16_t small[] = { 1, 4, 8 };

    the.config.capacity = one_in(2) ? 1 + chance(300) : 2000;
    the.config.response_max = (uint16_t)chance(20);
    the.config.key_max = (uint8_t)(8 + chance(8));
    the.storage.sector_size = 256;
    the.storage.prog_size = PICK(small);
    the.storage.sector_count = PICK(counts);
}

/* About 254 and 65,534 the number of a cell becomes longer. */
static void many_keys(void)
{
    const uint32_t capacities[] = {
        250 + chance(50), 5000, 32767,
        !IDEM_WIDE ? 20000 : one_in(2) ? 60000 : 65520 + chance(30)
    };
    static const uint32_t sizes[] = { 1056, 4096, 16896, 65536, 262144 };
    static const uint16_t small[] = { 1, 4, 8 };

    the.config.capacity = PICK(capacities);
    the.config.key_max = 10;
    the.config.response_max = 4;
    the.storage.sector_size = PICK(sizes);
    the.storage.prog_size = PICK(small);
}

static void long_responses(void)
{
    static const uint16_t lengths[] = { 0, 20000, 65535, 65535 };

    the.config.capacity = 1 + chance(6);
    the.config.key_max = 255;
    the.config.response_max = PICK(lengths);
    the.config.state_max = PICK(lengths);
    the.storage.sector_size = 262144;
    the.storage.prog_size = PICK(granules);
}

static void large_granules(void)
{
    static const uint32_t sizes[] = { 1792, 2048, 4096, 262144 };

    the.config.capacity = 1 + chance(60);
    the.config.state_max = (uint16_t)chance(100);
    the.storage.sector_size = PICK(sizes);
    the.storage.prog_size = 256;
}

static void quotas(void)
{
    the.config.capacity = 20 + chance(300);
    the.config.key_max = 255;
    the.scopes = 1 + chance(SCOPES);
    the.config.quota = 1 + chance(the.config.capacity / 2);
    the.config.full = one_in(2) ? IDEM_EVICT_OLDEST : IDEM_REJECT;
    any_sectors();
    if (the.storage.sector_size < 2048)
        the.config.key_max = 20;
}

static void open_claims(void)
{
    static const uint32_t sizes[] = { 256, 264, 512, 1056, 4096 };

    the.config.capacity = 100 + chance(900);
    the.config.key_max = 8;
    the.config.response_max = (uint16_t)chance(30);
    the.config.volatile_claims = 1;
    the.storage.sector_size = PICK(sizes);
    the.storage.prog_size = one_in(2) ? 1 : 8;
}

static void batches(void)
{
    the.config.capacity = 100 + chance(900);
    the.config.key_max = 8;
    the.config.response_max = (uint16_t)chance(30);
    the.config.durability = IDEM_BATCH;
    any_sectors();
}

static void in_place(void)
{
    the.config.capacity = 1 + chance(300);
    the.medium.kind = FLASH_INPLACE;
    any_sectors();
}

static void in_memory(void)
{
    static const uint8_t longest[] = { 1, 2, 8, 255 };

    the.config.storage = NULL;
    the.config.capacity = one_in(3) ? 32767 : 1 + chance(2000);
    the.config.key_max = PICK(longest);
    the.config.response_max = (uint16_t)chance(100);
    the.config.state_max = (uint16_t)chance(100);
}

static void many_retentions(void)
{
    the.config.capacity = 1 + chance(300);
    the.many_retentions = the.keeps_retention = 1;
    any_sectors();
}

static void anything(void)
{
    the.config.capacity = 1 + chance(one_in(2) ? 10 : one_in(2) ? 300 : 3000);
    the.config.key_max = (uint8_t)(1 + chance(255));
    the.config.response_max = (uint16_t)chance(300);
    the.config.state_max = (uint16_t)chance(200);
    if (the.config.capacity > 400) {
        the.config.key_max = (uint8_t)(3 + chance(12));
        the.config.response_max %= 20;
    }
    any_sectors();
}

static const struct { const char *name; void (*make)(void); } profiles[] = {
    { "few keys", few_keys },
    { "many sectors", many_sectors },
    { "many keys", many_keys },
    { "long responses", long_responses },
    { "large granules", large_granules },
    { "quotas", quotas },
    { "open claims", open_claims },
    { "batches", batches },
    { "in place", in_place },
    { "in memory", in_memory },
    { "many retentions", many_retentions },
    { "anything", anything },
};

static const uint32_t retentions[] = { 0, 1000, 60000, IDEM_RETENTION_MAX };

/* What every profile starts from. */
static void usual_configuration(void)
{
    static const uint8_t attempts[] = { 0, 1, 3, 255 };
    static const uint32_t leases[] = { 0, 1, IDEM_LEASE_NONE, IDEM_LEASE_MAX };
    static const uint8_t erased[] = { 0xFF, 0x00, 0x5A };
    static const int kinds[] = { FLASH_NOR, FLASH_NOR, FLASH_ECC,
                                 FLASH_INPLACE };
    static const unsigned scopes[] = { 1, 3, SCOPES };
    idem_config *c = &the.config;

    memcpy(c->secret, "sixteen secrets.", sizeof c->secret);
    c->storage = &the.storage;
    c->capacity = c->key_max = c->response_max = 16;
    c->max_attempts = PICK(attempts);
    c->retention_ms = PICK(retentions);
    c->lease_ms = PICK(leases);
    c->full = one_in(3) ? IDEM_EVICT_OLDEST : IDEM_REJECT;
    c->durability = one_in(4) ? IDEM_BATCH : IDEM_EACH;
    c->volatile_claims = one_in(6);
    the.storage.erased = PICK(erased);
    the.storage.verify = one_in(4);
    the.medium.kind = PICK(kinds);
    the.scopes = PICK(scopes);
    the.polls = one_in(3) ? 1000 : 3;
    the.turns_volatile = (int)chance(2);
    the.keeps_retention = (int)chance(2);
    the.cuts = (int)chance(2);
    the.fails = the.cuts && one_in(3);
}

/* --------------------------------------------- >>making  a device out of it */

static size_t memory_needed(void)
{
    const idem_config *c = &the.config;

    if (!c->storage)
        return IDEM_MEMORY_SIZE(c->capacity, c->key_max, c->response_max,
                                c->state_max);
    return IDEM_JOURNAL_MEMORY_SIZE(c->capacity, c->key_max, c->response_max,
                                    c->state_max, the.storage.prog_size);
}

/* Memory as idem_open asks for, which is never more than the macro says; or
   somewhat more, which makes opening faster. */
static void make_memory(void)
{
    static const uint32_t units[] = { 0, 4, 70000 };
    idem_table t;

    PROMISE(idem_open(&t, &the.config, NULL, 0, 0) == IDEM_E_MEMORY);
    PROMISE(t.needed <= memory_needed());
    the.memory_size = t.needed + chance(4) * PICK(units);
    free(the.memory);
    the.memory = enough_memory(the.memory_size + GUARD);
    memset((uint8_t *)the.memory + the.memory_size, GUARD_BYTE, GUARD);
}

/* The sectors that there must be; 0: they are too small. */
static uint32_t storage_needed(void)
{
    const idem_config *c = &the.config;

    return IDEM_SECTORS(c->capacity, c->key_max, c->response_max, c->state_max,
                        the.storage.sector_size, the.storage.prog_size);
}

static uint32_t sectors_at_most(void)
{
    uint32_t most = MEDIUM_MAX / the.storage.sector_size;

    return most < 65535 ? most : 65535;
}

/* With one less than there must be idem_open says how many that is. */
static void one_sector_less(void)
{
    uint32_t sectors = the.storage.sector_count;

    the.storage.sector_count = storage_needed() - 1;
    if (the.storage.sector_count >= SECTORS_LEAST) {
        make_memory();
        PROMISE(idem_open(&the.table, &the.config, the.memory,
                          the.memory_size, 0) == IDEM_E_SPACE);
        PROMISE(the.table.needed == storage_needed());
    }
    the.storage.sector_count = sectors;
}

/* As many sectors as there must be, some more, or as many as wanted.  Larger
   ones, and fewer keys with less state, until that is possible. */
static void make_storage(void)
{
    uint32_t wanted = the.storage.sector_count;
    uint32_t least = storage_needed();

    while (!least && the.storage.sector_size < 131072) {
        the.storage.sector_size *= 2;
        least = storage_needed();
    }
    while (!least || least > sectors_at_most()) {
        PROMISE(the.config.capacity > 1 || the.config.response_max);
        the.config.capacity -= the.config.capacity / 2;
        the.config.response_max -= !least * the.config.response_max / 4;
        the.config.state_max /= 2;
        least = storage_needed();
    }
    if (least < wanted)
        least = wanted;
    else if (one_in(2))
        least += chance(one_in(2) ? 4 : 300);
    if (least > sectors_at_most())
        least = sectors_at_most();
    the.storage.sector_count = least;
    one_sector_less();
}

/* A write-back cache takes long to sync if it is large. */
static void make_cache(void)
{
    size_t size = (size_t)the.storage.sector_size * the.storage.sector_count;

    if (the.medium.kind != FLASH_INPLACE || !the.storage.sync || size > 40000)
        return;
    the.cache_memory = enough_memory(size * 3);
    the.medium.stamps = (uint16_t *)the.cache_memory;
    the.medium.durable = (uint8_t *)(the.medium.stamps + size);
}

static void make_medium(void)
{
    idem_storage *s = &the.storage;
    flash *f = &the.medium;

    f->sector_size = s->sector_size;
    f->sector_count = s->sector_count;
    f->prog_size = s->prog_size;
    f->erased = s->erased;
    f->draws = 3;
    f->watch = choose_variant;
    f->seed = the.seed;
    f->cut_syncs = s->sync != NULL;
    make_cache();
    the.medium_memory =
        enough_memory(FLASH_MEMORY(s->sector_size, s->sector_count));
    PROMISE(flash_init(f, the.medium_memory) == 0);
}

/* The callbacks that this medium has. */
static void make_callbacks(void)
{
    idem_storage *s = &the.storage;

    s->ctx = &the.medium;
    s->read = medium_read;
    s->prog = medium_prog;
    if (the.medium.kind != FLASH_INPLACE)
        s->erase = medium_erase;
    if (s->erase && one_in(4))
        s->erasing = medium_erasing;
    if (the.config.durability == IDEM_BATCH || one_in(3))
        s->sync = medium_sync;
}

/* What the profile has left open, or cannot be. */
static void adapt(void)
{
    idem_storage *s = &the.storage;

    if (!the.config.storage) {
        the.config.volatile_claims = the.turns_volatile = 0;
        the.cuts = the.fails = 0;
        return;
    }
    while (s->sector_size % s->prog_size)
        s->prog_size /= 2;
    the.turns_volatile |= the.config.volatile_claims;
    make_callbacks();
    make_storage();
    make_medium();
}

/* Bytes that a key's number takes, little-endian, with which it begins. */
static size_t number_len(void)
{
    return the.config.key_max < 4 ? the.config.key_max : 4;
}

/* Whether there is room for a scope of two bytes beside it. */
static int has_scopes(void)
{
    return the.config.key_max >= 6;
}

/* How many keys there are to be asked for: more than fit. */
static unsigned keys_wanted(void)
{
    unsigned count = the.config.capacity + the.config.capacity / 2 + 3;
    unsigned most = the.config.key_max == 1 ? 256 : KEYS_MAX;

    if (the.config.key_max == 2 && count > 65536)
        count = 65536;
    return count < most ? count : most;
}

static void make_device(void)
{
    unsigned which = the.seed % COUNT(profiles);

    the.profile = profiles[which].name;
    usual_configuration();
    profiles[which].make();
    adapt();
    make_memory();
    memset(&the.table, 0, sizeof the.table);
    model_init(&truth, &the.config, keys, keys_wanted());
    // Short keys leave no room for a scope.
    for (unsigned i = 0; i < truth.count; i++)
        keys[i].scope = (uint16_t)chance(has_scopes() ? the.scopes : 1);
}

static void unmake_device(void)
{
    free(the.medium_memory);
    free(the.cache_memory);
    free(the.memory);
}

/* ---------------------------------------------------- >>asking  keys, calls */

/* Scope and key of a number; every eighth key is as long as may be. */
static void name_key(idem_request *rq, unsigned key, uint8_t *id)
{
    unsigned scope = keys[key].scope, max = the.config.key_max;
    size_t scope_len = !scope ? 0 : max < 40 ? 2 : 1 + scope;
    size_t least = number_len(), len = max - scope_len;

    if (key % 8)
        len = least + key * 7 % (len - least + 1);
    memset(id, (int)scope, scope_len);
    memset(id + scope_len, (int)key, len);
    for (size_t i = 0; i < least; i++)
        id[scope_len + i] = (uint8_t)(key >> 8 * i);
    rq->scope = id;
    rq->scope_len = scope_len;
    rq->key = id + scope_len;
    rq->key_len = len;
    the.last_key = key;
}

/* The key that an entry tells of. */
static unsigned named_key(const idem_entry *e)
{
    const uint8_t *id = (const uint8_t *)e->id;
    uint8_t own[ID_MAX];
    idem_request rq;
    unsigned key = 0;

    for (size_t i = 0; i < number_len(); i++)
        key |= (unsigned)id[e->scope_len + i] << 8 * i;
    PROMISE(key < truth.count);
    name_key(&rq, key, own);
    PROMISE(e->scope_len == rq.scope_len && e->key_len == rq.key_len);
    PROMISE(!memcmp(id, own, rq.scope_len + rq.key_len));
    return key;
}

static void trace_entry(const idem_entry *e)
{
    trace("    status %d, attempts %u, length %u, fingerprint %llu, age %u, "
          "left %u, code %ld, owed %d\n",
          e->status, e->attempts, (unsigned)e->response_len,
          (unsigned long long)e->fingerprint, e->age_ms, e->left_ms,
          (long)e->code, e->undelivered);
}

/* Whether the table's time, which is 32 bits, is the model's. */
static int time_is_right(void)
{
    return inside_clock(&the.table) == (uint32_t)truth.clock;
}

static void tell_tick(uint32_t now)
{
    uint32_t horizon;

    PROMISE(idem_horizon(&the.table, &horizon, now) == IDEM_OK);
    PROMISE(time_is_right());
}

/* A tick goes back, and up again: that is no time. */
static void sway_tick(void)
{
    static const uint32_t farthest[] = { TICK_JITTER, TICK_HALF };
    uint32_t back = PICK(farthest);

    tell_tick(the.now - (one_in(3) ? back : chance(back)));
    tell_tick(the.now);
}

/* Logical time goes on, and stands where the journal has told of none for
   longer than anything is remembered. */
static void advance(uint32_t ms)
{
    if (the.config.storage) {
        uint32_t silent = (uint32_t)truth.clock - inside_told(&the.table);
        PROMISE(silent <= SILENT_MAX);
        if (ms > SILENT_MAX - silent)
            ms = SILENT_MAX - silent;
    }
    truth.clock += ms;
}

/* Time passes, and the table is told. */
static void pass(uint32_t ms)
{
    if (one_in(10))
        sway_tick();
    the.now += ms;
    advance(ms);
    tell_tick(the.now);
}

/* Before a call; time stands still. */
static void calling_now(void)
{
    the.callback = 0;
    the.told_before = the.told;
    the.operations = the.progs = the.erases = 0;
    the.evicted = the.table.stats.evicted;
    truth.calls++;
    calls++;
}

/* Before a call. */
static void calling(void)
{
    if (one_in(3))
        pass(chance(5));
    calling_now();
}

/* Looking through a large table takes long. */
static int checks(void)
{
    uint32_t capacity = the.config.capacity;

    return truth.calls % (1 + capacity / 30 + capacity / 500 * 100) == 0;
}

/* Erases in a call: one; until a boot has erased, two. */
static uint32_t erases_at_most(void)
{
    if (!the.config.storage)
        return 0;
    return the.erases == the.medium.erases - the.erases_before_boot ? 2 : 1;
}

/* Whether nothing was written behind the table's memory. */
static int guarded(void)
{
    const uint8_t *guard = (const uint8_t *)the.memory + the.memory_size;

    for (unsigned i = 0; i < GUARD; i++)
        if (guard[i] != GUARD_BYTE)
            return 0;
    return 1;
}

/* What must hold after a call, whatever it has answered. */
static void called(const char *what, int result)
{
    idem_table *t = &the.table;

    trace("%u %s key %u: %s; clock %llu, %u programs, %u erases%s\n",
          truth.calls, what, the.last_key, idem_text(result),
          (unsigned long long)truth.clock, the.progs, the.erases,
          the.medium.off ? ", the power went" : "");
    if (the.config.full == IDEM_EVICT_OLDEST && result == IDEM_E_STORAGE)
        truth.evicted = truth.evicting = truth.calls;
    PROMISE(!the.medium.violations && guarded());
    PROMISE(the.erases <= erases_at_most() || truth.faulty);
    if (the.callback)
        PROMISE(t->storage_error == the.callback);
    truth.unread = the.callback != 0;
    the.told = the.progs ? truth.clock : the.told;
    if (the.medium.off)
        return;
    PROMISE(time_is_right());
    PROMISE(!t->stats.lost || the.reads_fail);
    if (checks())
        PROMISE(!idem_check(t));
}

/* After a call that writes no record, whatever comes. */
static void looked(const char *what, int result)
{
    called(what, result);
    PROMISE(!the.progs && !the.erases);
}

/* Whether the call has failed, as it may. */
static int failed(int result)
{
    if (result == IDEM_E_STORAGE)
        PROMISE(the.callback || the.sync_failed);
    else if (result == IDEM_E_SPACE)
        PROMISE(truth.faulty || the.runs_out);
    else
        return 0;
    return 1;
}

/* Something was written durably: what was in doubt is over. */
static void settled(void)
{
    the.harm = 0;
    the.acknowledged = the.config.storage != NULL;
}

/* A call has written. */
static void wrote(void)
{
    if (the.config.durability == IDEM_EACH)
        settled();
}

static void hold(unsigned key)
{
    if (the.holding < KEYS_MAX)
        the.held[the.holding++] = key;
}

static void keep_old(const idem_claim *claim)
{
    if (claim->token)
        the.old[the.olds++ % OLD_CLAIMS] = *claim;
}

/* ------------------------------------------------------------ >>calls */

static void choose_lease(idem_request *rq)
{
    static const uint32_t longest[] = { 100, 100000, IDEM_LEASE_MAX };

    if (one_in(10))
        rq->lease_ms = IDEM_LEASE_NONE;
    else if (one_in(3))
        rq->lease_ms = 1 + chance(PICK(longest));
}

/* None of them is a default that the configuration may come to have. */
static void choose_retention(idem_request *rq)
{
    static const uint32_t nine[] = { 1, 31, 1007, 1257, 1507, 100000, 170000,
                                     240000, IDEM_RETENTION_MAX - 1 };

    if (the.many_retentions && one_in(2))
        rq->retention_ms = 1003 + 997 * chance(30);
    else if (one_in(2))
        rq->retention_ms = PICK(nine);
}

/* Where it matters: at the ends of what memory may reach. */
static void choose_age(asked *a)
{
    uint64_t since = truth.clock - truth.opened + chance(2);

    if (!one_in(30))
        return;
    switch (chance(4)) {
    case 0: a->age_ms = 1 + chance(5000); break;
    case 1: a->age_ms = 1 + chance(200000); break;
    case 2: a->age_ms = a->retention_ms - chance(2); break;
    case 3: a->age_ms = since < UINT32_MAX ? (uint32_t)since : 0; break;
    }
}

static asked ask(idem_request *rq, unsigned key)
{
    asked a = { 0 };

    choose_lease(rq);
    choose_retention(rq);
    if (one_in(3))
        rq->response_size = (uint16_t)chance(the.config.response_max + 1u);
    rq->has_fingerprint = 1;
    // Another payload differs in one bit.
    rq->fingerprint = spread(key) ^ (uint64_t)one_in(30) << chance(64);
    a.key = key;
    a.fingerprint = rq->fingerprint;
    a.lease_ms = rq->lease_ms ? rq->lease_ms
                 : the.config.lease_ms ? the.config.lease_ms : LEASE_DEFAULT;
    a.retention_ms = rq->retention_ms ? rq->retention_ms
                                      : model_retention(&truth);
    a.reserved = rq->response_size ? rq->response_size
                                   : the.config.response_max;
    choose_age(&a);
    rq->age_ms = a.age_ms;
    return a;
}

/* A begin that granted nothing writes nothing; but once in a boot what it
   relies on, and the time if it is refused for want of room. */
static void only_confirmed(int result)
{
    int tells = result == IDEM_E_FULL && truth.clock - the.told_before >= TELL_MS;

    PROMISE(!the.progs || !the.confirmed || tells || truth.faulty);
    the.confirmed |= the.progs > 0;
    if (tells && the.progs && !the.callback)
        model_wrote(&truth);
}

static void answer_begin(known *k, const asked *a, int result,
                         const idem_claim *claim, const idem_reply *reply)
{
    version *was = model_only(k);
    idem_claim before = was ? was->claim : unknown.claim;

    PROMISE(result >= IDEM_EXECUTE && result <= IDEM_EXHAUSTED
                ? ++answered[result] : result == IDEM_E_FULL);
    PROMISE(model_begun(&truth, k, a, result, claim, reply));
    if (result == IDEM_E_FULL)
        PROMISE(model_full(&truth, k));
    if (result == IDEM_TOO_OLD)
        PROMISE(model_too_old(&truth, a));
    if (result == IDEM_REPLAY)
        model_replayed(k, reply);
    if (result == IDEM_REPLAY || result == IDEM_MISMATCH ||
        result == IDEM_EXHAUSTED)
        model_confirmed(&truth, k);
    if (result != IDEM_EXECUTE && result != IDEM_RECOVER) {
        only_confirmed(result);
        return;
    }
    PROMISE(result == IDEM_RECOVER || model_young(&truth, k, a));
    PROMISE(model_granted(&truth, k, a, result, claim));
    keep_old(&before);
    hold(a->key);
    if (!the.config.volatile_claims)
        wrote();
}

/* A begin may have evicted one key to grant a claim on this one, also if that
   could not be written then; nothing else evicts. */
static void note_eviction(const known *k, int result)
{
    uint32_t evicted = the.table.stats.evicted - the.evicted;

    if (!evicted)
        return;
    truth.evicted = truth.calls;
    PROMISE(evicted == 1 && the.config.full == IDEM_EVICT_OLDEST);
    PROMISE(result == IDEM_EXECUTE || result == IDEM_E_STORAGE);
    PROMISE(model_no_room(&truth, k, MOST));
}

static void begin(unsigned key)
{
    uint8_t id[ID_MAX];
    idem_request rq = { 0 };
    idem_reply reply = { .buffer = buffer, .buffer_size = sizeof buffer };
    idem_claim claim;
    asked a = ask(&rq, key);
    int result;

    name_key(&rq, key, id);
    calling();
    result = idem_begin(&the.table, &claim, &reply, &rq, the.now);
    called("begin", result);
    note_eviction(&keys[key], result);
    if (failed(result))
        model_begin_attempted(&truth, &keys[key], &a);
    else
        answer_begin(&keys[key], &a, result, &claim, &reply);
}

/* Short ones more often, if long ones are allowed. */
static uint16_t some_len(uint16_t most)
{
    if (most > 2000 && !one_in(4))
        most = 40;
    return (uint16_t)(one_in(2) ? most : chance(most + 1u));
}

static state choose_state(idem_outcome *out)
{
    state s = { 0, 0 };

    if (!the.config.state_max || !one_in(3))
        return s;
    s.len = some_len(the.config.state_max);
    s.number = ++the.number;
    numbered_fill(state_buffer, s.len, s.number);
    out->state = state_buffer;
    out->state_len = s.len;
    return s;
}

static void choose_outcome(idem_outcome *out, version *v)
{
    memset(out, 0, sizeof *out);
    v->len = some_len(v->len);
    v->number = ++the.number;
    v->code = one_in(2) ? 0 : (int32_t)(spread(v->number) >> 32);
    v->owed = one_in(5);
    v->status = one_in(4) ? IDEM_FAILED : IDEM_COMPLETED;
    v->lease_end = 0;
    numbered_fill(buffer, v->len, v->number);
    out->response = buffer;
    out->response_len = v->len;
    out->code = v->code;
    out->failed = v->status == IDEM_FAILED;
    out->confirm = v->owed;
}

/* The key's current claim in this boot, or NULL. */
static version *claimed(unsigned key)
{
    version *v = model_only(&keys[key]);

    the.last_key = key;
    return v && v->status == IDEM_IN_PROGRESS && !v->cut ? v : NULL;
}

/* A response longer than what is reserved, or a state than there may be: the
   claim stays. */
static void complete_too_long(const version *claim)
{
    idem_outcome out = { .response = buffer, .state = state_buffer };
    int result;

    if (one_in(2))
        out.response_len = claim->len + 1u;
    else
        out.state_len = the.config.state_max + 1u;
    calling();
    result = idem_complete(&the.table, &claim->claim, &out, the.now);
    looked("too long", result);
    PROMISE(failed(result) || result == IDEM_E_TOO_LARGE ||
            (result == IDEM_E_FENCED &&
             version_known(&truth, claim) < KNOWN));
}

static void complete(unsigned key)
{
    version *claim = claimed(key), done;
    idem_claim used;
    idem_outcome out;
    state s;
    int result, known_before;

    if (!claim)
        return;
    if (one_in(30))
        complete_too_long(claim);
    done = *claim;
    used = claim->claim;
    choose_outcome(&out, &done);
    s = choose_state(&out);
    calling();
    known_before = version_known(&truth, claim);
    result = idem_complete(&the.table, &used, &out, the.now);
    called("complete", result);
    done.from = done.to = truth.clock;
    if (result == IDEM_E_FENCED) {
        PROMISE(known_before < KNOWN);
        return;
    }
    if (!failed(result)) {
        PROMISE(result == IDEM_OK);
        model_set(&truth, &keys[key], &done, 1);
        model_wrote(&truth);
        keep_old(&used);
        wrote();
    } else {
        PROMISE(result == IDEM_E_STORAGE);
        model_attempted(&truth, &keys[key], &done);
    }
    if (s.number)
        model_state(&truth, &s, result == IDEM_OK);
}

static void release(unsigned key)
{
    version *claim = claimed(key);
    idem_claim used;
    int result;

    if (!claim)
        return;
    used = claim->claim;
    calling();
    result = idem_release(&the.table, &used, the.now);
    called("release", result);
    if (result == IDEM_E_FENCED)
        PROMISE(version_known(&truth, claim) < KNOWN);
    else if (failed(result))
        model_attempted(&truth, &keys[key], &unknown);
    else {
        PROMISE(result == IDEM_OK);
        if (!keys[key].is_volatile)
            wrote();
        model_removed(&truth, &keys[key]);
        keep_old(&used);
    }
}

static void renew(unsigned key)
{
    version *claim = claimed(key);
    idem_request rq = { 0 };
    int result;

    if (!claim)
        return;
    choose_lease(&rq);
    if (!rq.lease_ms)
        rq.lease_ms = 1000;
    calling();
    result = idem_renew(&the.table, &claim->claim, rq.lease_ms, the.now);
    looked("renew", result);
    if (result == IDEM_E_FENCED)
        PROMISE(version_known(&truth, claim) < KNOWN);
    else if (!failed(result)) {
        PROMISE(result == IDEM_OK);
        model_renewed(&keys[key], model_lease_end(&truth, rq.lease_ms));
    }
}

/* Claims that are used up are fenced, for ever. */
static void try_old(void)
{
    idem_claim *claim = &the.old[chance(OLD_CLAIMS)];
    idem_outcome out = { 0 };
    int result;

    if (!claim->token)
        return;
    calling();
    switch (chance(3)) {
    case 0: result = idem_complete(&the.table, claim, &out, the.now); break;
    case 1: result = idem_release(&the.table, claim, the.now); break;
    default: result = idem_renew(&the.table, claim, 1000, the.now);
    }
    called("fenced", result);
    PROMISE(failed(result) || result == IDEM_E_FENCED);
}

static void forget(unsigned key)
{
    uint8_t id[ID_MAX];
    idem_request rq = { 0 };
    known *k = &keys[key];
    version *v = model_only(k);
    int result;

    name_key(&rq, key, id);
    calling();
    result = idem_forget(&the.table, &rq, the.now);
    called("forget", result);
    if (failed(result)) {
        model_attempted(&truth, k, &unknown);
    } else if (result == IDEM_OK) {
        PROMISE(model_forgets(&truth, k, result));
        if (v)
            keep_old(&v->claim);
        if (!k->is_volatile)
            wrote();
        model_removed(&truth, k);
    } else if (result == IDEM_E_NOT_FOUND)
        PROMISE(model_shown(&truth, k, NULL));
    else {
        PROMISE(result == IDEM_BUSY);
        PROMISE(model_forgets(&truth, k, result));
    }
}

static void deliver(unsigned key)
{
    known *k = &keys[key];
    version *v = model_only(k), done;
    int result;

    the.last_key = key;
    if (!v || !version_finished(v) || !v->claim.token)
        return;
    done = *v;
    done.owed = 0;
    calling();
    result = idem_delivered(&the.table, &v->claim);
    called("delivered", result);
    if (failed(result))
        model_attempted(&truth, k, &done);
    else if (result == IDEM_E_NOT_FOUND)
        PROMISE(version_unknown(&truth, k, v));
    else {
        PROMISE(result == IDEM_OK);
        if (!v->owed)
            return;
        model_set(&truth, k, &done, 1);
        model_wrote(&truth);
        wrote();
    }
}

static void look(unsigned key)
{
    uint8_t id[ID_MAX], found[ID_MAX];
    idem_request rq = { 0 };
    idem_entry e = { .id = found, .id_size = sizeof found };
    int result;

    name_key(&rq, key, id);
    calling();
    result = idem_find(&the.table, &e, &rq, the.now);
    looked("find", result);
    if (failed(result))
        return;
    PROMISE(result == IDEM_OK || result == IDEM_E_NOT_FOUND);
    PROMISE(result != IDEM_OK || named_key(&e) == key);
    if (result == IDEM_OK)
        trace_entry(&e);
    PROMISE(model_shown(&truth, &keys[key], result == IDEM_OK ? &e : NULL));
}

static void look_at_response(unsigned key)
{
    version *v = model_only(&keys[key]);
    size_t at, len = chance(100) + 1, expected = len;
    int result;

    the.last_key = key;
    if (!v || !version_finished(v) || !v->claim.token)
        return;
    at = chance(v->len + 2u);
    if (at >= v->len)
        expected = 0;
    else if (expected > v->len - at)
        expected = v->len - at;
    calling();
    result = idem_response(&the.table, buffer, &len, &v->claim, at);
    looked("response", result);
    if (failed(result))
        return;
    if (result == IDEM_E_NOT_FOUND) {
        PROMISE(version_unknown(&truth, &keys[key], v));
        return;
    }
    PROMISE(result == IDEM_OK && len == expected);
    PROMISE(numbered_is(buffer, at, len, v->number));
}

static void look_at_state(void)
{
    size_t len = sizeof state_buffer;
    int result;

    calling();
    result = idem_state(&the.table, state_buffer, &len);
    looked("state", result);
    if (failed(result))
        return;
    PROMISE(result == IDEM_OK);
    PROMISE(model_state_shown(&truth, state_buffer, len));
}

/* Those that are owed, each once: the oldest completion comes first. */
static void look_at_pending(void)
{
    uint8_t id[ID_MAX];
    idem_entry e = { .id = id, .id_size = sizeof id };
    uint32_t age = UINT32_MAX, before = truth.calls;
    unsigned key;
    int result, unread = 0;

    for (;;) {
        calling_now();
        result = idem_pending(&the.table, &e, the.now);
        looked("pending", result);
        unread |= the.callback != 0;
        if (failed(result))
            return;
        if (result == IDEM_E_NOT_FOUND)
            break;
        PROMISE(result == IDEM_OK && e.undelivered && e.age_ms <= age);
        PROMISE(truth.calls - before <= the.table.pending);
        key = named_key(&e);
        PROMISE(keys[key].told <= before);
        PROMISE(model_shown(&truth, &keys[key], &e));
        age = e.age_ms;
    }
    // What cannot be read is stepped over.
    for (key = 0; key < truth.count && !unread; key++)
        PROMISE(keys[key].told > before || !model_owed(&truth, &keys[key]));
}

/* All that are known, each once. */
static void look_at_all(void)
{
    uint8_t id[ID_MAX];
    idem_entry e = { .id = id, .id_size = sizeof id };
    unsigned count = 0, key;
    int result;

    calling();
    while ((result = idem_next(&the.table, &e, the.now)) == IDEM_OK) {
        PROMISE(++count <= the.config.capacity);
        key = named_key(&e);
        PROMISE(keys[key].told < truth.calls);
        PROMISE(model_shown(&truth, &keys[key], &e));
    }
    looked("next", result);
    if (failed(result))
        return;
    PROMISE(result == IDEM_E_NOT_FOUND);
    for (key = 0; key < truth.count; key++)
        PROMISE(keys[key].told == truth.calls ||
                model_known(&truth, &keys[key], 0) < KNOWN);
}

/* One step, or all there is to do. */
static void maintain(int all)
{
    int result = IDEM_MORE;

    for (unsigned n = 0; result == IDEM_MORE && (all || !n); n++) {
        PROMISE(n < 200000);
        calling();
        result = idem_maintain(&the.table, the.now);
        called("maintain", result);
        if (failed(result))
            return;
        PROMISE(result == IDEM_OK || result == IDEM_MORE);
    }
}

static void synchronise(void)
{
    int result;

    calling();
    result = idem_sync(&the.table);
    looked("sync", result);
    if (failed(result))
        return;
    PROMISE(result == IDEM_OK);
    if (truth.unsynced)
        settled();
    model_synced(&truth);
}

static void elapse(uint32_t ms)
{
    calling();
    advance(ms);
    PROMISE(idem_elapse(&the.table, ms) == IDEM_OK);
    looked("elapse", IDEM_OK);
}

/* ----------------------------------------------------------- >>restarts */

static void open_table(void)
{
    memset(the.memory, 0xA5, the.memory_size);
    memset(&the.table, (int)chance(256), sizeof the.table);
    the.now = chance_word();
    the.operations = 0;
    the.erases_before_boot = the.medium.erases;
    the.opening = 1;
    PROMISE(idem_open(&the.table, &the.config, the.memory, the.memory_size,
                      the.now) == IDEM_OK);
    the.opening = 0;
    PROMISE(!the.table.stats.lost && guarded());
    PROMISE(!idem_check(&the.table));
    the.holding = 0;
    the.told = truth.clock;
    the.sync_failed = the.reads_fail = the.confirmed = 0;
}

static void change_retention(void)
{
    if (the.keeps_retention)
        return;
    the.config.retention_ms = one_in(5) ? 5 : PICK(retentions);
}

/* With a quota each new key costs a look at all of them. */
static void change_quota(void)
{
    uint32_t capacity = the.config.capacity;

    the.config.quota =
        one_in(2) || capacity > 5000 ? 0 : 1 + chance(capacity);
}

/* What may be another in the next boot. */
static void change_configuration(void)
{
    static const uint8_t attempts[] = { 0, 1, 5, 255 };
    idem_config *c = &the.config;

    switch (1 + chance(7)) {
    case 1: c->full = !c->full; break;
    case 2: c->durability = the.storage.sync && !c->durability; break;
    case 3: c->volatile_claims = the.turns_volatile && one_in(2); break;
    case 4: change_quota(); break;
    case 5: change_retention(); break;
    case 6: c->max_attempts = PICK(attempts); break;
    case 7: the.storage.verify = !the.storage.verify; break;
    }
}

static void no_more_failures(void)
{
    for (int call = 0; call < FLASH_CALLS; call++)
        flash_fail(&the.medium, call, 0, 0, 0);
}

/* The power has gone, or goes now, as far as the medium can tell. */
static void stop_medium(void)
{
    flash *f = &the.medium;

    no_more_failures();
    if (the.erasing && !f->off) {
        flash_cut(f, 0, 0);
        flash_erase(f, the.erasing - 1);
    }
    the.erasing = 0;
    // What a restart has read of a cache may not be lost later.
    if (f->durable && !f->off)
        flash_off(f, 0);
    flash_boot(f);
}

/* Without storage nothing is known any more. */
static void start_anew(void)
{
    uint32_t so_far = truth.calls;

    model_init(&truth, &the.config, keys, truth.count);
    truth.calls = truth.opened_at = so_far;
}

/* No claim of this boot is current in the next. */
static void keep_claims(void)
{
    for (unsigned n = 0; n < OLD_CLAIMS / 2 && the.holding; n++) {
        const version *claim = claimed(the.held[chance(the.holding)]);
        if (claim)
            keep_old(&claim->claim);
    }
}

/* Then what was interrupted is asked for again, or not. */
static void restart(void)
{
    uint64_t before = truth.clock, clock;
    unsigned interrupted = the.last_key;

    restarts++;
    trace("restart\n");
    if (the.medium.off) {
        cuts++;
        the.harm++;
        the.cut_at = before > the.cut_at ? before : the.cut_at;
    }
    if (the.config.storage)
        stop_medium();
    keep_claims();
    model_stops(&truth);
    if (one_in(3))
        change_configuration();
    make_memory();
    open_table();
    if (is_traced())
        tell_configuration();
    clock = before + (uint32_t)(inside_clock(&the.table) - (uint32_t)before);
    if (clock > before && clock > the.cut_at)
        clock -= UINT64_C(1) << 32;
    if (the.config.storage) {
        PROMISE(clock >= truth.written);
        PROMISE(clock <= before || clock <= the.cut_at);
        model_starts(&truth, clock);
    } else
        start_anew();
    // What was never written does not tell how far tokens were granted.
    if (!the.acknowledged) {
        truth.token = 0;
        memset(the.old, 0, sizeof the.old);
    }
    for (unsigned i = 0; i < 20; i++)
        look(truth.count <= 20 ? i % truth.count : chance(truth.count));
    look_at_state();
    if (one_in(2))
        begin(interrupted);
}

/* ------------------------------------------------------------ >>running */

/* Sequences so far on, or clocks, that the upper halves of numbers count. */
static void start_far(void)
{
    uint32_t months = chance(4) * 8;

    if (!the.config.storage)
        return;
    if (one_in(4))
        for (uint32_t i = 0; i < months; i++)
            elapse(UINT32_MAX - chance(1000));
    if (the.acknowledged || one_in(2))
        return;
    the.runs_out = (int)chance(2);
    inside_start_far(&the.table, the.runs_out ? UINT32_MAX - chance(300)
                                              : chance_word() >> 1);
}

/* Whether something is about to go wrong. */
static int is_armed(void)
{
    int armed = the.medium.armed;

    for (int call = 0; call < FLASH_CALLS; call++)
        armed |= the.medium.faults[call].how;
    return armed;
}

/* Something is about to go wrong, now and then. */
static void arm(void)
{
    static const int hows[] = { FLASH_UNDONE, FLASH_DONE, FLASH_HALF };
    static const uint32_t soon[] = { 3, 50, 500 };
    flash *f = &the.medium;

    if (!the.acknowledged || the.harm >= HARM_MAX || is_armed())
        return;
    if (the.fails && one_in(4)) {
        int call = (int)chance(FLASH_CALLS);
        the.reads_fail |= call == FLASH_READ;
        the.harm++;
        flash_fail(f, call, chance(PICK(soon)), PICK(hows), one_in(4));
    } else if (the.cuts && one_in(2))
        flash_cut(f, chance(PICK(soon)), 0);
}

static unsigned any_key(void)
{
    if (the.holding && one_in(3))
        return the.held[chance(the.holding)];
    return chance(truth.count);
}

/* What takes long in a large table is rare in it. */
static int affordable(unsigned often)
{
    return one_in(1 + the.config.capacity / often);
}

static void any_call(void)
{
    unsigned which = chance(100), key = any_key();

    if (which < 30)      begin(key);
    else if (which < 45) complete(key);
    else if (which < 50) release(key);
    else if (which < 55) renew(key);
    else if (which < 60) forget(key);
    else if (which < 67) deliver(key);
    else if (which < 73) look(key);
    else if (which < 78) look_at_response(key);
    else if (which < 80) try_old();
    else if (which < 88) maintain(one_in(4) && affordable(20));
    else if (which < 91) affordable(100) ? synchronise() : (void)0;
    else if (which < 93) look_at_state();
    else if (which < 94) affordable(20) ? look_at_pending() : (void)0;
    else if (which < 95) affordable(20) ? look_at_all() : (void)0;
    else if (which < 97) elapse(chance(one_in(5) ? 100000000 : 1000));
    else if (affordable(300)) restart();
}

/* Takes one of the keys claimed last. */
static unsigned take_held(unsigned among)
{
    unsigned at, key;

    if (among > the.holding)
        among = the.holding;
    at = the.holding - 1 - chance(among);
    key = the.held[at];
    the.held[at] = the.held[--the.holding];
    return key;
}

/* What is done for some time: other mixtures fill and empty a table. */
enum { FILL, DRAIN, MIX, PAIRS, ANY, PHASES = ANY + 2 };

static unsigned cursor;             // the next key to fill the table with

static void call_in(unsigned phase)
{
    unsigned some = chance(100);

    if (phase == FILL && some < 95)
        begin(cursor++ % truth.count);
    else if (phase == DRAIN && some < 80 && the.holding)
        some < 70 ? complete(take_held(4)) : release(take_held(4));
    else if (phase == MIX && some < 50)
        begin(chance(truth.count));
    else if (phase == MIX && some < 90 && the.holding)
        complete(take_held(the.holding));
    else if (phase == PAIRS && some < 40)
        begin(any_key());
    else if (phase == PAIRS && some < 80 && the.holding)
        some < 70 ? complete(take_held(1)) : release(take_held(1));
    else
        any_call();
}

/* Time passes, of any length. */
static void wait_some(void)
{
    static const uint32_t longest[] = { 1000, 1000, 100000, 90000000,
                                        0x7FFFFFFF };

    pass(chance(PICK(longest)));
}

/* In a large table a restart takes long. */
static int goes_wrong(void)
{
    return one_in(20 + the.config.capacity / 10);
}

static void run(void)
{
    unsigned long count =
        CALLS_LEAST + (unsigned long)the.config.capacity * CALLS_PER_KEY;
    unsigned phase = FILL, left = 0;

    for (unsigned long n = 0; n < count; n++) {
        if (the.medium.off || (the.sync_failed && one_in(20))) {
            restart();
            arm();
            continue;
        }
        // What is lost is no fault of the table's if reading fails for long.
        if (the.table.stats.lost)
            return;
        if (truth.crowded && the.config.durability == IDEM_BATCH) {
            synchronise();
            truth.crowded = 0;
            continue;
        }
        if (!left--) {
            phase = chance(PHASES);
            left = 1 + chance(the.config.capacity * 2 + 20);
            if (one_in(3))
                wait_some();
            no_more_failures();
            arm();
        } else if (goes_wrong())
            arm();
        call_in(phase);
    }
    PROMISE(the.medium.off || !idem_check(&the.table));
}

static void run_seed(uint32_t seed)
{
    memset(&the, 0, sizeof the);
    the.seed = seed;
    chance_start(seed);
    make_device();
    if (is_traced())
        tell_configuration();
    open_table();
    start_far();
    cursor = 0;
    run();
    unmake_device();
    configurations++;
}

/* What never came was not tested. */
static int all_answers_came(void)
{
    for (int answer = IDEM_EXECUTE; answer <= IDEM_EXHAUSTED; answer++)
        if (!answered[answer]) {
            printf("FAILED: never answered: %s\n", idem_text(answer));
            return 0;
        }
    return 1;
}

int main(int argc, char **argv)
{
    uint32_t seed = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 1;
    uint32_t count = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10)
                     : argc > 1 ? 1 : 10 * (uint32_t)COUNT(profiles);

    for (uint32_t i = 0; i < count; i++)
        run_seed(seed + i);
    printf("extremes: seeds %u to %u: %lu configurations, %lu calls, "
           "%lu restarts, %lu cuts, %lu failed callbacks: no promise broken\n",
           seed, seed + count - 1, configurations, calls, restarts, cuts,
           failures);
    return count >= COUNT(profiles) && !all_answers_came();
}
