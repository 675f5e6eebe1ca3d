/* SPDX-License-Identifier: 0BSD */
/*
 * Extreme configurations: the smallest tables and the largest, sectors and
 * responses of every size, months of time, numbers near their ends; and calls,
 * restarts, power cuts and failing callbacks on them, in any order (chance.h).
 *
 *     extremes profiles SEED COUNT
 *
 * And extreme lives, on small rings, most of them the smallest that is accepted,
 * with restarts in a row, claims that stay open or are claimed again after a
 * restart, and outcomes of every length.  They test L3: at most one erase in a
 * call, none if there was idle time, one more in the first write of a boot; and
 * L2: nothing uses up the ring.  (device.h checks both after every call.)
 *
 *     extremes rings SEED COUNT
 *
 * There is a device for each seed, which prints everything that happens to it.
 * The first violation ends the run and is printed with its seed: with TRACE=1 in
 * the environment `extremes KIND SEED 1` shows the calls that lead to it.
 */
#define IDEM_ASSERT(x) PROMISE(x)
// A handler's outcome that is too long is among the calls.
#define IDEM_MISUSE() ((void)0)
#include "../model/promise.h"

#define IDEM_STATIC
#define IDEM_IMPLEMENTATION
#include "idem.h"

#define KEYS_MAX 98400
#define VERSIONS 8
#include "../model/chance.h"

enum { SECTORS_LEAST = 5 };
enum { MEDIUM_MAX = 24 << 20 };     // bytes
enum { CALLS_LEAST = 3000, CALLS_PER_KEY = 3 };
enum { RING_MAX = 1 << 22, RING_SECTORS = 400 };
enum { CLAIMS = 300 };
enum { BOOTS_MAX = 400 };           // of a row
enum { FILLING = 9 };               // boots of a row that fill the ring before
enum { ROWS = 4 };                  // kinds of rows; twice, with completions

static uint32_t seed;
static const char *name;            // a profile, or a ring
static uint32_t used;               // keys of a ring, but in a row
static int      row;                // how boots in a row go, 0: they do not
static unsigned boot;
static int keeps_retention;     // the default stays as it is

/* -------------------------------------------- >>profiles  what is extreme */

#define RETENTIONS "0/1000/60000/2592000000"    // the last: IDEM_RETENTION_MAX
#define SMALL "granule=1/4/8"

// Where the number of a cell becomes longer there are fewer and more.
#if IDEM_WIDE
#define LARGE "60000/65520-65549"
#else
#define LARGE "20000"
#endif

// What every profile starts from.
static const char defaults[] =
    "capacity=16 key=16 response=16 attempts=0/1/3/255 retention=" RETENTIONS
    " lease=0/1/4294967295/536870912 evict=0/0/1 batch=0/0/0/1"
    " scopes=1/3/20 polls=3/3/1000 kind=0/0/1/2"
    " erased=255/0 verify=0/0/0/1 granule=1/2/4/8/16/32/64/128/256"
    " size=256/264/528/1056/4096/4488/8000/65536/131328/262144";

static const struct { const char *name, *modes; } profiles[] = {
    { "few keys", "capacity=1-4 response=0-39 state=0/0-59" },
    { "many sectors", "capacity=1-300/2000 key=8-15 response=0-19 size=256 "
      "sectors=300/1000/5000/65535 " SMALL },
    { "many keys", "capacity=250-299/5000/32767/" LARGE " key=10 response=4 "
      "size=1056/4096/16896/65536/262144 " SMALL },
    { "long responses", "capacity=1-6 key=255 response=0/20000/65535/65535 "
      "state=0/20000/65535/65535 size=262144" },
    { "large granules", "capacity=1-60 state=0-99 granule=256 "
      "size=1792/2048/4096/262144" },
    { "quotas", "capacity=20-319 key=255 scopes=1-20 quota=1-10/1-159 "
      "evict=0/1" },
    { "open claims", "capacity=100-999 key=8 response=0-29 "
      "size=256/264/512/1056/4096 granule=1/8" },
    { "batches", "batch capacity=100-999/100-3000 key=8 response=0-29" },
    { "in place", "capacity=1-300 kind=2" },
    { "in memory", "ram capacity=32767/1-2000/1-2000 key=1/2/8/255 "
      "response=0-99 state=0-99" },
    { "many retentions", "capacity=1-300" },
    { "anything", "capacity=1-10/1-10/1-300/1-400 key=1-255 response=0-299 "
      "state=0-199" },
};

static void broken(const char *what, const char *file, int line)
{
    printf("violation: %s, %s:%d\n%s, boot %u, row %d, idle %d\n"
           "again: TRACE=1 build/%s %u 1\n", what, file, line, name, boot, row,
           play.idle, strcmp(name, "a ring") ? "extremes profiles" : "erases rings", seed);
    device_print(&the);
    exit(1);
}

/* --------------------------------------------- >>making  a device out of it */

static uint32_t sectors_at_most(void)
{
    uint32_t most = MEDIUM_MAX / the.storage.sector_size;

    return most < 65535 ? most : 65535;
}

/* With one less than there must be idem_open returns how many that is. */
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
    if (the.config.quota)
        the.config.senders = the.scopes;
    if (!the.config.storage) {
        play.cuts = play.fails = 0;
        return;
    }
    while (s->sector_size % s->prog_size)
        s->prog_size /= 2;
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
    unsigned which = seed % COUNT(profiles), wanted;

    name = profiles[which].name;
    choose_modes(defaults);
    call_modes(&the, profiles[which].modes);
    play.many_retentions = !strcmp(name, "many retentions");
    keeps_retention = play.many_retentions || one_in(2);
    play.cuts = !one_in(4);
    play.fails = play.cuts && one_in(2);
    adapt();
    the.more = chance(4) * PICK(units);
    the.medium.draws = 3;
    the.medium.seed = seed;
    wanted = the.config.capacity + the.config.capacity / 2 + 3;
    wanted = wanted < KEYS_MAX ? wanted : KEYS_MAX;
    device_make(&the, keys, device_keys(&the, wanted));
}

/* What may be another in the next boot. */
static void change_configuration(void)
{
    static const char *const changes[] = {
        "evict=0/1", "batch=0/1", "quota=0/1-16",
        "retention=5/" RETENTIONS, "attempts=0/1/5/255", "verify=0/1",
    };
    size_t which = chance(3 * COUNT(changes));

    if (which >= COUNT(changes) ||
        (*changes[which] == 'b' && !the.storage.sync) ||
        (*changes[which] == 'q' && !the.config.senders) ||
        (*changes[which] == 'r' && keeps_retention))
        return;
    call_modes(&the, changes[which]);
}

/* Sequences so far on, or clocks, that the upper halves of numbers count. */
static void start_far(void)
{
    uint32_t months = chance(4) * 8, last;

    if (!the.config.storage)
        return;
    if (one_in(4))
        for (uint32_t i = 0; i < months; i++)
            device_elapse(&the, UINT32_MAX - chance(1000));
    if (the.acknowledged || one_in(2))
        return;
    the.runs_out = (int)chance(2);
    last = inside_last_sequence(the.table);
    inside_start_far(the.table, the.runs_out ? last - chance(300)
                                              : chance_word() % (last / 2));
}

static int run_seed(uint32_t number)
{
    seed = number;
    chance_start(seed);
    make_device();
    the.change = change_configuration;
    the.now = chance_word();
    device_open(&the);
    start_far();
    play_calls(CALLS_LEAST +
               (unsigned long)the.config.capacity * CALLS_PER_KEY);
    device_end(&the);
    return 1;
}

/* ------------------------------------------------------- >>rings that rotate */

static const char ring[] =
    "attempts=255 capacity=1-8/1-8/1-40/1-280 key=8-15/8-107 "
    "response=0-59/32-700/64-2000 state=0/0/0-15/0-900 "
    "evict=0/1 lease=4294967295/50-1000049 retention=2592000000/100-3099 "
    "granule=1/2/4/8/16/32/64/128/256 size=256-2047/256-2047/256-5999";

/* A configuration and a ring for it, blank; whether there is one. */
static int make_ring(void)
{
    idem_storage *s = &the.storage;

    name = "a ring";
    choose_modes(ring);
    s->sector_size -= s->sector_size % s->prog_size;
    used = the.config.capacity + 1 + chance(the.config.capacity + 2);
    row = chance(3) ? 1 + (int)chance(2 * ROWS) : 0;
    play.idle = one_in(4);
    s->sector_count = device_sectors(&the);
    if (!s->sector_count)
        return 0;
    s->sector_count += chance(2) ? 0 : chance(6);
    if (s->sector_count >= RING_SECTORS ||
        s->sector_count * s->sector_size >= RING_MAX)
        return 0;
    device_make(&the, keys, used + BOOTS_MAX + 1);
    device_open(&the);
    play.holding = play.last_key = 0;
    return 1;
}

/* Time passes, or not. */
static void pass(unsigned longest)
{
    the.now += chance(3) ? 0 : chance(longest);
}

/* The number of the key of a call. */
static uint32_t which(void)
{
    if (!row || boot < FILLING)
        return chance(used);
    switch (row % ROWS) {
    case 0:  return 0;
    case 1:  return boot % used;
    case 2:  return used;
    default: return used + boot;
    }
}

/* Completes or releases one of the keys that are held. */
static void finish(unsigned among)
{
    if (play.holding)
        make(chance(6) ? 'C' : 'R', take_held(among));
}

/* A call; in a row of boots each begins one command, and may complete it. */
static void one_call(unsigned kinds)
{
    unsigned kind = chance(kinds);

    pass(chance(4) ? 20 : 1500);
    if (row && boot >= FILLING) {
        make('B', which());
        if (row > ROWS)
            finish(1);
    } else if (kind < 3 || !play.holding) {
        make('B', which());
    } else if (kind < 8) {
        finish(play.holding);
    } else {
        make(kind == 8 ? 'm' : 'X', which());
    }
}

static void reopen(void)
{
    play.holding = 0;
    make('P', 0);
}

/* Boots with calls of every kind, or in a row. */
static void boot_often(void)
{
    static const unsigned kinds[] = { 3, 4, 6, 10 };
    unsigned style = PICK(kinds);
    unsigned boots = 20 + chance(80) + (row && one_in(8) ? 300 : 0);
    unsigned calls = chance(2) ? 1 + chance(3) : 1 + chance(60);

    for (boot = 0; boot < boots; boot++) {
        unsigned left = chance(calls + 1) + (chance(10) ? 0 : chance(100));
        reopen();
        if (row)
            left = boot < FILLING ? 1 + chance(2 * used) : 1;
        for (; left > 0; left--)
            one_call(style);
    }
}

/* Others fill the ring.  Then boots take up the same commands again, as many as
   the table has room for or fewer. */
static void repeat(void)
{
    unsigned most = the.config.capacity < CLAIMS ? the.config.capacity : CLAIMS;
    unsigned some = 1 + chance(chance(2) ? most : most / 4 + 1);
    unsigned boots = 20 + chance(60), odds = 2 + chance(8), first = 0;

    for (unsigned n = 0; n < 3 * the.config.capacity; n++) {
        pass(300);
        make('B', CLAIMS + chance(used));
        finish(play.holding);
    }
    for (boot = 1; boot < boots; boot++) {
        unsigned count = chance(2) ? some : 1 + chance(some);
        if (chance(12))
            reopen();
        pass(1500);
        for (unsigned n = 0; n < count; n++) {
            make('B', (first + n) % the.model.count);
            if (one_in(odds))
                finish(play.holding);
        }
        for (unsigned left = chance(3) ? 0 : play.holding; left > 0; left--)
            finish(1);
        first += chance(4) ? 0 : chance(some + 1);
    }
}

/* True if there is one of that seed. */
static int run_ring(uint32_t number)
{
    seed = number;
    chance_start(seed);
    if (!make_ring())
        return 0;
    chance(4) ? boot_often() : repeat();
    play.calls += the.model.calls;
    device_end(&the);
    return 1;
}

/* What never came was not tested. */
static int all_answers_came(void)
{
    for (int answer = IDEM_EXECUTE; answer <= IDEM_EXHAUSTED; answer++)
        if (answer != IDEM_UNCERTAIN && !play.answered[answer]) {
            printf("FAILED: never answered: %s\n", idem_text(answer));
            return 0;
        }
    return 1;
}

int main(int argc, char **argv)
{
    uint32_t first = argc > 3 ? (uint32_t)strtoul(argv[2], NULL, 10) : 0;
    uint32_t count = argc > 3 ? (uint32_t)strtoul(argv[3], NULL, 10) : 0;
    int rings = argc > 1 && !strcmp(argv[1], "rings");
    unsigned long devices = 0;

    for (uint32_t i = first; i < first + count; i++)
        devices += (unsigned)(rings ? run_ring(i) : run_seed(i));
    printf("%s: seeds %u to %u, %lu devices, %lu calls, %lu restarts, %lu cuts, "
           "%lu failures: no promise broken\n", rings ? "rings" : "extremes",
           first, first + count - 1, devices, play.calls, play.restarts,
           play.cut, play.failures);
    return !devices ||
           (!rings && count >= COUNT(profiles) && !all_answers_came());
}
