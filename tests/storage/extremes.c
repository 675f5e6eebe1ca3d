/* SPDX-License-Identifier: 0BSD */
/*
 * Extreme configurations: the smallest tables and the largest, sectors and
 * responses of every size, months of time, numbers near their ends; and calls,
 * restarts, power cuts and failing callbacks on them, in any order (chance.h).
 *
 *     extremes [SEED [COUNT]]     one configuration for each seed
 *
 * The seed of a configuration tells everything that happens to it.  The first
 * violation ends the run and is told with its seed: with TRACE=1 in the
 * environment `extremes SEED` shows the calls that lead to it.
 */
#define IDEM_ASSERT(x) PROMISE(x)
#include "../model/promise.h"

#define IDEM_STATIC
#define IDEM_IMPLEMENTATION
#include "idem.h"

#define KEYS_MAX 98400
#define VERSIONS 8
#include "../model/chance.h"

enum { SECTORS_LEAST = 4 };
enum { MEDIUM_MAX = 24 << 20 };     // bytes
enum { CALLS_LEAST = 3000, CALLS_PER_KEY = 3 };

static uint32_t    seed;
static const char *profile;
static int         turns_volatile;  // claims may become volatile between boots
static int         keeps_retention; // the default stays as it is

static void tell_configuration(void)
{
    const idem_config *c = &the.config;
    const idem_storage *s = &the.storage;

    printf("seed %u, %s: capacity %u, key %u, response %u, state %u, "
           "lease %u, retention %u, quota %u, attempts %u, full %u, "
           "durability %u, volatile %u, scopes %u\n",
           seed, profile, c->capacity, c->key_max, c->response_max,
           c->state_max, c->lease_ms, c->retention_ms, c->quota,
           c->max_attempts, c->full, c->durability, c->volatile_claims,
           the.scopes);
    if (c->storage)
        printf("    %u sectors of %u, granule %u, erased %02X, verify %u, "
               "kind %d%s%s%s\n",
               s->sector_count, s->sector_size, s->prog_size, s->erased,
               s->verify, the.medium.kind, s->erasing ? ", split" : "",
               s->sync ? ", sync" : "", the.medium.durable ? ", cache" : "");
}

static void broken(const char *what, const char *file, int line)
{
    printf("violation: %s, %s:%d\n", what, file, line);
    tell_configuration();
    device_tell(&the);
    exit(1);
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
    the.config.key_max = (uint16_t)(8 + chance(8));
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
    the.config.senders = the.scopes;
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
    play.many_retentions = keeps_retention = 1;
    any_sectors();
}

static void anything(void)
{
    the.config.capacity = 1 + chance(one_in(2) ? 10 : one_in(2) ? 300 : 3000);
    the.config.key_max = (uint16_t)(1 + chance(255));
    the.config.response_max = (uint16_t)chance(300);
    the.config.state_max = (uint16_t)chance(200);
    if (the.config.capacity > 400) {
        the.config.key_max = (uint16_t)(3 + chance(12));
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
    turns_volatile = (int)chance(2);
    keeps_retention = (int)chance(2);
    play.cuts = (int)chance(2);
    play.fails = play.cuts && one_in(3);
}

/* --------------------------------------------- >>making  a device out of it */

static uint32_t sectors_at_most(void)
{
    uint32_t most = MEDIUM_MAX / the.storage.sector_size;

    return most < 65535 ? most : 65535;
}

/* With one less than there must be idem_open says how many that is. */
static void one_sector_less(void)
{
    uint32_t sectors = the.storage.sector_count;
    idem_table t;

    the.storage.sector_count = device_sectors(&the) - 1;
    if (the.storage.sector_count >= SECTORS_LEAST) {
        device_make_memory(&the);
        PROMISE(idem_open(&t, &the.config, the.memory, the.memory_size, 0) ==
                IDEM_E_SPACE);
        PROMISE(t.needed == device_sectors(&the));
    }
    the.storage.sector_count = sectors;
}

/* As many sectors as there must be, some more, or as many as wanted.  Larger
   ones, and fewer keys with less state, until that is possible. */
static void choose_sectors(void)
{
    uint32_t wanted = the.storage.sector_count;
    uint32_t least = device_sectors(&the);

    while (!least && the.storage.sector_size < 131072) {
        the.storage.sector_size *= 2;
        least = device_sectors(&the);
    }
    while (!least || least > sectors_at_most()) {
        PROMISE(the.config.capacity > 1 || the.config.response_max);
        the.config.capacity -= the.config.capacity / 2;
        the.config.response_max -= !least * the.config.response_max / 4;
        the.config.state_max /= 2;
        least = device_sectors(&the);
    }
    if (least < wanted)
        least = wanted;
    else if (one_in(2))
        least += chance(one_in(2) ? 4 : 300);
    if (least > sectors_at_most())
        least = sectors_at_most();
    the.storage.sector_count = least;
}

/* What the profile has left open, or cannot be. */
static void adapt(void)
{
    idem_storage *s = &the.storage;
    int inplace = the.medium.kind == FLASH_INPLACE;

    while (the.scopes > 1 && the.scopes + 3 > the.config.key_max)
        the.scopes--;
    if (!the.config.storage) {
        the.config.volatile_claims = turns_volatile = 0;
        play.cuts = play.fails = 0;
        return;
    }
    while (s->sector_size % s->prog_size)
        s->prog_size /= 2;
    turns_volatile |= the.config.volatile_claims;
    the.flags |= one_in(4) ? SPLIT : 0;
    if (the.config.durability == IDEM_BATCH || one_in(3))
        s->sync = device_sync_called;
    choose_sectors();
    // A write-back cache takes long to sync if it is large.
    if (inplace && s->sync && s->sector_size * s->sector_count <= 40000)
        the.flags |= CACHE;
    s->read = device_read;
    s->prog = device_prog;
    s->erase = inplace ? NULL : device_erase;
    s->ctx = &the;
    one_sector_less();
}

static void make_device(void)
{
    static const uint32_t units[] = { 0, 4, 70000 };
    unsigned which = seed % COUNT(profiles);
    unsigned wanted;

    profile = profiles[which].name;
    usual_configuration();
    profiles[which].make();
    adapt();
    the.more = chance(4) * PICK(units);
    the.medium.draws = 3;
    the.medium.seed = seed;
    wanted = the.config.capacity + the.config.capacity / 2 + 3;
    wanted = wanted < KEYS_MAX ? wanted : KEYS_MAX;
    device_make(&the, keys, device_keys(&the, wanted));
}

static void change_quota(void)
{
    uint32_t capacity = the.config.capacity;

    the.config.quota =
        one_in(2) || !the.config.senders ? 0 : 1 + chance(capacity);
}

/* What may be another in the next boot. */
static void change_configuration(void)
{
    static const uint8_t attempts[] = { 0, 1, 5, 255 };
    idem_config *c = &the.config;

    switch (chance(21)) {
    case 1: c->full = !c->full; break;
    case 2: c->durability = the.storage.sync && !c->durability; break;
    case 3: c->volatile_claims = turns_volatile && one_in(2); break;
    case 4: change_quota(); break;
    case 5:
        if (!keeps_retention)
            c->retention_ms = one_in(5) ? 5 : PICK(retentions);
        break;
    case 6: c->max_attempts = PICK(attempts); break;
    case 7: the.storage.verify = !the.storage.verify; break;
    }
}

/* Sequences so far on, or clocks, that the upper halves of numbers count. */
static void start_far(void)
{
    uint32_t months = chance(4) * 8;

    if (!the.config.storage)
        return;
    if (one_in(4))
        for (uint32_t i = 0; i < months; i++)
            device_elapse(&the, UINT32_MAX - chance(1000));
    if (the.acknowledged || one_in(2))
        return;
    the.runs_out = (int)chance(2);
    inside_start_far(the.table, the.runs_out ? UINT32_MAX - chance(300)
                                              : chance_word() >> 1);
}

static void run_seed(uint32_t number)
{
    memset(&the, 0, sizeof the);
    seed = number;
    play.many_retentions = 0;
    the.change = change_configuration;
    chance_start(seed);
    make_device();
    if (*tracing())
        tell_configuration();
    the.now = chance_word();
    device_open(&the);
    start_far();
    play_calls(CALLS_LEAST +
               (unsigned long)the.config.capacity * CALLS_PER_KEY);
    device_end(&the);
}

/* What never came was not tested. */
static int all_answers_came(void)
{
    for (int answer = IDEM_EXECUTE; answer <= IDEM_EXHAUSTED; answer++)
        if (!play.answered[answer]) {
            printf("FAILED: never answered: %s\n", idem_text(answer));
            return 0;
        }
    return 1;
}

int main(int argc, char **argv)
{
    uint32_t first = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 1;
    uint32_t count = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10)
                     : argc > 1 ? 1 : 10 * (uint32_t)COUNT(profiles);

    for (uint32_t i = 0; i < count; i++)
        run_seed(first + i);
    printf("extremes: seeds %u to %u, %lu calls, %lu restarts, %lu cuts, "
           "%lu failures: no promise broken\n", first, first + count - 1,
           play.calls, play.restarts, play.cut, play.failures);
    return count >= COUNT(profiles) && !all_answers_came();
}
