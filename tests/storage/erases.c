/* SPDX-License-Identifier: 0BSD */
/*
 * L3: at most one erase in a call, none if there was idle time, and one more in
 * a boot's first that writes; and L2: nothing uses up the ring.  On random small
 * rings, most of them the smallest that is accepted, with restarts in a row,
 * claims that stay open or are taken up again after a restart, and outcomes of
 * every length.
 *
 *     erases [SEED [COUNT]]     one ring for each seed; the first that is wrong
 *                               ends the run
 */
#define IDEM_STATIC
#define IDEM_IMPLEMENTATION
#include "idem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MEDIUM = 1 << 22, MEMORY = 1 << 20 };    // bytes
enum { CLAIMS = 300, SECTORS_MAX = 400, LONGEST = 8192 };
enum { FILLING = 9 };               // boots of a row that fill the ring before
enum { TOLD = 5 };                  // of what is wrong
enum { ROWS = 4 };                  // kinds of rows; twice, with completions

static uint8_t  medium[MEDIUM];
static uint32_t sector_size;
static struct { unsigned erases; unsigned long bytes; } cost;   // of the call
static uint64_t state;              // of the dice

static struct {
    idem_storage storage;
    idem_config  config;
    idem_table   table;
    uint32_t     keys;              // that are used
    int          row;               // how boots in a row go, 0: they do not
    int          idle;              // idem_maintain has its time
    unsigned     boot;
    int          written;           // this boot has
    uint32_t     now;
    idem_claim   claims[CLAIMS];
    unsigned     held;
} the;

static struct {
    unsigned long rings, begins, wrong;
    unsigned long erases, programs, bytes, most;    // most bytes in a call
} sum;

static uint32_t chance(uint32_t below)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return below ? (uint32_t)(state >> 20) % below : 0;
}

static int medium_read(void *ctx, uint32_t at, void *dst, uint32_t len)
{
    (void)ctx;
    memcpy(dst, medium + at, len);
    return 0;
}

static int medium_prog(void *ctx, uint32_t at, const void *src, uint32_t len)
{
    (void)ctx;
    for (uint32_t i = 0; i < len; i++)
        medium[at + i] &= ((const uint8_t *)src)[i];
    sum.programs++;
    sum.bytes += len;
    cost.bytes += len;
    return 0;
}

static int medium_erase(void *ctx, uint32_t sector)
{
    (void)ctx;
    memset(medium + sector * sector_size, 0xFF, sector_size);
    sum.erases++;
    cost.erases++;
    return 0;
}

static int reopen(void)
{
    static uint32_t memory[MEMORY / 4];

    the.held = 0;
    the.written = 0;
    return idem_open(&the.table, &the.config, memory, sizeof memory, the.now);
}

/* A configuration and a ring for it, blank; whether there is one. */
static int configure(void)
{
    idem_config *c = &the.config;
    idem_storage *m = &the.storage;
    uint32_t granule = 1u << chance(9), least, most;

    memset(&the, 0, sizeof the);
    memset(medium, 0xFF, sizeof medium);
    m->read = medium_read;
    m->prog = medium_prog;
    m->erase = medium_erase;
    m->erased = 0xFF;
    m->prog_size = (uint16_t)granule;
    least = (256 + granule - 1) / granule;
    most = (chance(3) ? 2048 : 6000) / granule;
    if (most <= least)
        most = least + 1;
    sector_size = m->sector_size = (least + chance(most - least)) * granule;
    c->storage = m;
    c->capacity = 1 + chance(chance(2) ? 8 : chance(2) ? 40 : 280);
    c->key_max = (uint8_t)(8 + chance(chance(2) ? 8 : 100));
    c->response_max =
        (uint16_t)(chance(3) ? sector_size / 8 + chance(sector_size / 2)
                             : chance(60));
    c->state_max = (uint16_t)(chance(2)   ? 0
                              : chance(3) ? chance(16)
                                          : chance(sector_size / 3));
    c->lease_ms = chance(2) ? IDEM_LEASE_NONE : 50 + chance(1000000);
    c->retention_ms = chance(2) ? IDEM_RETENTION_MAX : 100 + chance(3000);
    c->max_attempts = 255;
    c->volatile_claims = chance(3) == 0;
    c->full = (uint8_t)chance(2);
    memset(c->secret, 7, sizeof c->secret);
    the.keys = c->capacity + 1 + chance(c->capacity + 2);
    the.row = chance(3) ? 1 + (int)chance(2 * ROWS) : 0;
    the.idle = chance(4) == 0;
    m->sector_count = IDEM_SECTORS(c->capacity, c->key_max, c->response_max,
                                   c->state_max, sector_size, granule);
    if (!m->sector_count)
        return 0;
    m->sector_count += chance(2) ? 0 : chance(6);
    return m->sector_count < SECTORS_MAX &&
           m->sector_count * sector_size < MEDIUM && reopen() == IDEM_OK;
}

/* Before a call. */
static void measure(void)
{
    memset(&cost, 0, sizeof cost);
}

/* After a call: what it answered, and what it cost at most. */
static void judge(const char *what, int result, unsigned most)
{
    if (cost.bytes > sum.most)
        sum.most = cost.bytes;
    if (strcmp(what, "maintain"))
        most += !the.written;
    the.written |= cost.bytes > 0;
    if (cost.erases <= most && result != IDEM_E_SPACE &&
        result != IDEM_E_STORAGE)
        return;
    if (++sum.wrong > TOLD)
        return;
    printf("boot %u: %s is %d, %u erases: capacity %u, granule %u, %u sectors "
           "of %u, state %u, volatile %u, row %d, idle %d, "
           "%u claims held\n", the.boot, what, result, cost.erases,
           (unsigned)the.config.capacity, the.storage.prog_size,
           (unsigned)the.storage.sector_count, (unsigned)sector_size,
           the.config.state_max, the.config.volatile_claims, the.row, the.idle,
           the.held);
}

/* The number of the key of a call. */
static uint32_t which(void)
{
    if (!the.row || the.boot < FILLING)
        return chance(the.keys);
    switch (the.row % ROWS) {
    case 0:  return 0;
    case 1:  return the.boot % the.keys;
    case 2:  return the.keys;
    default: return the.keys + the.boot;
    }
}

/* A request with the key of that number, until the next one. */
static idem_request request_of(uint32_t number)
{
    static char key[12];
    idem_request rq = { 0 };

    rq.key = key;
    rq.key_len = (size_t)snprintf(key, sizeof key, "k%u", (unsigned)number);
    return rq;
}

static void begin(uint32_t number)
{
    idem_request rq = request_of(number);
    idem_reply reply = { 0 };
    idem_claim claim;
    int result;

    rq.payload = "pour";
    rq.payload_len = 4;
    rq.response_size =
        (uint16_t)(chance(3) ? 0 : chance(the.config.response_max + 1u));
    rq.retention_ms =
        chance(4) ? 0 : chance(2) ? 100 + chance(5000) : IDEM_RETENTION_MAX;
    measure();
    result = idem_begin(&the.table, &claim, &reply, &rq, the.now);
    sum.begins++;
    if ((result == IDEM_EXECUTE || result == IDEM_RECOVER) &&
        the.held < CLAIMS)
        the.claims[the.held++] = claim;
    judge("begin", result, !the.idle);
}

/* Completes or releases one of the claims that are held. */
static void finish(unsigned number)
{
    static const uint8_t bytes[LONGEST];
    const idem_claim *claim = &the.claims[number];
    uint16_t most = the.config.response_max;
    idem_outcome out = { 0 };

    measure();
    if (chance(6)) {
        out.response = bytes;
        out.response_len = chance(2) ? most : chance(most + 1u);
        if (the.config.state_max && chance(2)) {
            out.state = bytes;
            out.state_len = chance(the.config.state_max + 1u);
        }
        out.code = chance(3) ? 0 : (int32_t)chance(UINT32_C(1) << 30);
        out.confirm = chance(4) == 0;
        out.failed = chance(5) == 0;
        judge("complete", idem_complete(&the.table, claim, &out, the.now),
              !the.idle);
    } else
        judge("release", idem_release(&the.table, claim, the.now),
              !the.idle);
    the.claims[number] = the.claims[--the.held];
}

static void forget(uint32_t number)
{
    idem_request rq = request_of(number);

    measure();
    judge("forget", idem_forget(&the.table, &rq, the.now), !the.idle);
}

static void restart(void)
{
    measure();
    judge("open", reopen(), 0);
}

static void maintain(void)
{
    measure();
    judge("maintain", idem_maintain(&the.table, the.now), 1);
}

static void idle(void)
{
    while (the.idle && idem_maintain(&the.table, the.now) == IDEM_MORE)
        ;
}

/* A call; in a row of boots each begins one command, and may complete it. */
static void call(unsigned kinds)
{
    unsigned kind = chance(kinds), number = chance(the.held);

    if (the.row && the.boot >= FILLING) {
        begin(which());
        idle();                 // or the head may be full again
        if (the.row > ROWS && the.held)
            finish(the.held - 1);
    } else if (kind < 3 || !the.held) {
        begin(which());
    } else if (kind < 8) {
        finish(number);
    } else if (kind == 8) {
        maintain();
    } else {
        forget(which());
    }
}

/* Boots with calls of every kind, or in a row. */
static void live(void)
{
    static const unsigned kinds[] = { 3, 4, 6, 10 };
    unsigned style = kinds[chance(4)];
    unsigned boots = 20 + chance(80) + (the.row && !chance(8) ? 300 : 0);
    unsigned calls = chance(2) ? 1 + chance(3) : 1 + chance(60);

    for (the.boot = 0; the.boot < boots; the.boot++) {
        unsigned left = chance(calls + 1) + (chance(10) ? 0 : chance(100));
        restart();
        if (the.row)
            left = the.boot < FILLING ? 1 + chance(2 * the.keys) : 1;
        for (idle(); left > 0; left--) {
            the.now += chance(3) ? 0 : chance(chance(4) ? 20 : 1500);
            call(style);
            idle();
        }
    }
}

/* Boots that take up the same commands again, as many as the table has room for
   or fewer, after others have filled the ring. */
static void repeat(void)
{
    unsigned most = the.config.capacity < CLAIMS ? the.config.capacity : CLAIMS;
    unsigned some = 1 + chance(chance(2) ? most : most / 4 + 1);
    unsigned boots = 20 + chance(60), odds = 2 + chance(8), first = 0;

    for (unsigned n = 0; n < 3 * the.config.capacity; n++) {
        the.now += chance(2) ? 0 : chance(300);
        begin(CLAIMS + chance(the.keys));
        idle();
        if (the.held)
            finish(0);
        idle();
    }
    for (the.boot = 1; the.boot < boots; the.boot++) {
        unsigned count = chance(2) ? some : 1 + chance(some);
        if (chance(12))
            restart();
        idle();
        the.now += chance(3) ? 0 : chance(1500);
        for (unsigned n = 0; n < count; n++) {
            begin(first + n);
            idle();
            if (the.held && !chance(odds))
                finish(chance(the.held));
            idle();
        }
        for (unsigned left = chance(3) ? 0 : the.held; left > 0; left--) {
            finish(the.held - 1);
            idle();
        }
        first += chance(4) ? 0 : chance(some + 1);
    }
}

int main(int argc, char **argv)
{
    unsigned long seed = argc > 1 ? strtoul(argv[1], NULL, 10) : 1;
    unsigned long count = argc > 2 ? strtoul(argv[2], NULL, 10) : 1;
    int good;

    for (unsigned long n = 0; n < count && !sum.wrong; n++) {
        state = (seed + n) * UINT64_C(0x9E3779B97F4A7C15) + 12345;
        for (unsigned i = 0; i < 10; i++)
            chance(1);
        if (configure()) {
            sum.rings++;
            if (chance(4))
                live();
            else
                repeat();
        }
        if (sum.wrong)
            printf("that was seed %lu\n", seed + n);
    }
    printf("seeds %lu to %lu: %lu rings, %lu begins, %lu erases, "
           "%lu programs, %lu bytes, %lu at most in a call\n", seed,
           seed + count - 1, sum.rings, sum.begins, sum.erases, sum.programs,
           sum.bytes, sum.most);
    good = sum.rings && !sum.wrong;
    printf("erases: %s\n", good ? "passed" : "FAILED");
    return !good;
}
