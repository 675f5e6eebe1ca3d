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

static void broken(const char *what, const char *file, int line)
{
    const idem_config *c = &the.config;

    printf("violation: %s, %s:%d\n    seed %u, boot %u: capacity %u, granule "
           "%u, %u sectors of %u, state %u, volatile %u, row %d, idle %d\n",
           what, file, line, seed, boot, c->capacity, the.storage.prog_size,
           the.storage.sector_count, the.storage.sector_size, c->state_max,
           c->volatile_claims, row, play.idle);
    device_tell(&the);
    exit(1);
}

static void choose_limits(void)
{
    idem_config *c = &the.config;
    uint32_t size = the.storage.sector_size;

    c->capacity = 1 + chance(chance(2) ? 8 : chance(2) ? 40 : 280);
    c->key_max = (uint16_t)(8 + chance(chance(2) ? 8 : 100));
    c->response_max =
        (uint16_t)(chance(3) ? size / 8 + chance(size / 2) : chance(60));
    c->state_max = (uint16_t)(chance(2)   ? 0
                              : chance(3) ? chance(16) : chance(size / 3));
    c->lease_ms = chance(2) ? IDEM_LEASE_NONE : 50 + chance(1000000);
    c->retention_ms = chance(2) ? IDEM_RETENTION_MAX : 100 + chance(3000);
    c->max_attempts = 255;
    c->volatile_claims = chance(3) == 0;
    c->full = (uint8_t)chance(2);
    memcpy(c->secret, SECRET, sizeof c->secret);
}

/* A configuration and a ring for it, blank; whether there is one. */
static int configure(void)
{
    idem_storage *s = &the.storage;
    uint32_t granule = 1u << chance(9), least, most;

    memset(&the, 0, sizeof the);
    least = (256 + granule - 1) / granule;
    most = (chance(3) ? 2048 : 6000) / granule;
    if (most <= least)
        most = least + 1;
    s->erased = 0xFF;
    s->prog_size = (uint16_t)granule;
    s->sector_size = (least + chance(most - least)) * granule;
    the.scopes = 1;
    the.config.storage = s;
    choose_limits();
    usual = the.config.capacity + 1 + chance(the.config.capacity + 2);
    row = chance(3) ? 1 + (int)chance(2 * ROWS) : 0;
    play.idle = chance(4) == 0;
    s->sector_count = device_sectors(&the);
    if (!s->sector_count)
        return 0;
    s->sector_count += chance(2) ? 0 : chance(6);
    if (s->sector_count >= SECTORS_MAX ||
        s->sector_count * s->sector_size >= MEDIUM)
        return 0;
    device_make(&the, keys,
                usual + BOOTS_MAX + 1);
    device_open(&the);
    play.holding = play.last_key = 0;
    return 1;
}

static void idle(void)
{
    if (play.idle)
        maintain(1);
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
    unsigned key = take_held(among);

    chance(6) ? complete(key) : release(key);
}

/* A call; in a row of boots each begins one command, and may complete it. */
static void one_call(unsigned kinds)
{
    unsigned kind = chance(kinds);

    if (row && boot >= FILLING) {
        begin(which());
        idle();                 // or the head may be full again
        if (row > ROWS && play.holding)
            finish(1);
    } else if (kind < 3 || !play.holding) {
        begin(which());
    } else if (kind < 8) {
        finish(play.holding);
    } else if (kind == 8) {
        maintain(0);
    } else {
        simple('X', which());
    }
}

static void reopen(void)
{
    device_stop(&the);
    play.holding = 0;
    device_start(&the);
}

/* Boots with calls of every kind, or in a row. */
static void live(void)
{
    static const unsigned kinds[] = { 3, 4, 6, 10 };
    unsigned style = kinds[chance(4)];
    unsigned boots = 20 + chance(80) + (row && !chance(8) ? 300 : 0);
    unsigned calls = chance(2) ? 1 + chance(3) : 1 + chance(60);

    for (boot = 0; boot < boots; boot++) {
        unsigned left = chance(calls + 1) + (chance(10) ? 0 : chance(100));
        reopen();
        if (row)
            left = boot < FILLING ? 1 + chance(2 * usual) : 1;
        for (idle(); left > 0; left--) {
            the.now += chance(3) ? 0 : chance(chance(4) ? 20 : 1500);
            one_call(style);
            idle();
        }
    }
}

/* Others fill the ring. */
static void fill(void)
{
    for (unsigned n = 0; n < 3 * the.config.capacity; n++) {
        the.now += chance(2) ? 0 : chance(300);
        begin(CLAIMS + chance(usual));
        idle();
        if (play.holding)
            finish(play.holding);
        idle();
    }
}

/* Boots that take up the same commands again, as many as the table has room for
   or fewer. */
static void repeat(void)
{
    unsigned most = the.config.capacity < CLAIMS ? the.config.capacity : CLAIMS;
    unsigned some = 1 + chance(chance(2) ? most : most / 4 + 1);
    unsigned boots = 20 + chance(60), odds = 2 + chance(8), first = 0;

    fill();
    for (boot = 1; boot < boots; boot++) {
        unsigned count = chance(2) ? some : 1 + chance(some);
        if (chance(12))
            reopen();
        idle();
        the.now += chance(3) ? 0 : chance(1500);
        for (unsigned n = 0; n < count; n++) {
            begin((first + n) % the.model.count);
            idle();
            if (play.holding && !chance(odds))
                finish(play.holding);
            idle();
        }
        for (unsigned left = chance(3) ? 0 : play.holding; left > 0; left--) {
            finish(1);
            idle();
        }
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
