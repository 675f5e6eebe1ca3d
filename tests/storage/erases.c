/* SPDX-License-Identifier: 0BSD */
/*
 * L3: at most one erase in a call, none if there was idle time, and one more in
 * a boot's first that writes; and L2: nothing uses up the ring.  (device.h
 * checks both after every call.)  On random small rings, most of them the smallest
 * that is accepted, with restarts in a row, claims that stay open or are taken
 * up again after a restart, and outcomes of every length.
 *
 *     erases [SEED [COUNT]]     one ring for each seed; the first that is wrong
 *                               ends the run
 */
#define IDEM_STATIC
#define IDEM_IMPLEMENTATION
#include "idem.h"

#define VERSIONS 4
#include "../model/chance.h"

enum { MEDIUM = 1 << 22 };          // bytes
enum { CLAIMS = 300, SECTORS_MAX = 400 };
enum { BOOTS_MAX = 400 };           // of a row
enum { FILLING = 9 };               // boots of a row that fill the ring before
enum { ROWS = 4 };                  // kinds of rows; twice, with completions

static uint32_t seed;
static uint32_t usual;              // keys that are used but in a row
static int      row;                // how boots in a row go, 0: they do not
static unsigned boot;

static const char ring[] =
    "attempts=255 capacity=1-8/1-8/1-40/1-280 key=8-15/8-107 "
    "response=0-59/32-700/64-2000 state=0/0/0-15/0-900 volatile=0/0/1 "
    "evict=0/1 lease=4294967295/50-1000049 retention=2592000000/100-3099 "
    "granule=1/2/4/8/16/32/64/128/256 size=256-2047/256-2047/256-5999";

static void broken(const char *what, const char *file, int line)
{
    printf("violation: %s, %s:%d\n    seed %u, boot %u, row %d, idle %d\n",
           what, file, line, seed, boot, row, play.idle);
    device_tell(&the);
    exit(1);
}

/* A configuration and a ring for it, blank; whether there is one. */
static int configure(void)
{
    idem_storage *s = &the.storage;

    choose_modes(ring);
    s->sector_size -= s->sector_size % s->prog_size;
    usual = the.config.capacity + 1 + chance(the.config.capacity + 2);
    row = chance(3) ? 1 + (int)chance(2 * ROWS) : 0;
    play.idle = one_in(4);
    s->sector_count = device_sectors(&the);
    if (!s->sector_count)
        return 0;
    s->sector_count += chance(2) ? 0 : chance(6);
    if (s->sector_count >= SECTORS_MAX ||
        s->sector_count * s->sector_size >= MEDIUM)
        return 0;
    device_make(&the, keys, usual + BOOTS_MAX + 1);
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
        return chance(usual);
    switch (row % ROWS) {
    case 0:  return 0;
    case 1:  return boot % usual;
    case 2:  return usual;
    default: return usual + boot;
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
static void live(void)
{
    static const unsigned kinds[] = { 3, 4, 6, 10 };
    unsigned style = PICK(kinds);
    unsigned boots = 20 + chance(80) + (row && one_in(8) ? 300 : 0);
    unsigned calls = chance(2) ? 1 + chance(3) : 1 + chance(60);

    for (boot = 0; boot < boots; boot++) {
        unsigned left = chance(calls + 1) + (chance(10) ? 0 : chance(100));
        reopen();
        if (row)
            left = boot < FILLING ? 1 + chance(2 * usual) : 1;
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
        make('B', CLAIMS + chance(usual));
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

int main(int argc, char **argv)
{
    unsigned long first = argc > 1 ? strtoul(argv[1], NULL, 10) : 1;
    unsigned long count = argc > 2 ? strtoul(argv[2], NULL, 10) : 1;
    unsigned long rings = 0;

    for (seed = (uint32_t)first; seed < first + count; seed++) {
        chance_start(seed);
        if (!configure())
            continue;
        rings++;
        chance(4) ? live() : repeat();
        play.calls += the.model.calls;
        device_end(&the);
    }
    printf("erases: seeds %lu to %lu: %lu rings, %lu calls: passed\n", first,
           first + count - 1, rings, play.calls);
    return !rings;
}
