/* SPDX-License-Identifier: 0BSD */
/*
 * Counts what a journal does to its storage, beside the least that is safe.
 * Nothing is timed: the same code prints the same numbers on every machine.
 *
 *   W1  8 sectors x 4096, 128 live keys of 16 bytes; 20,000 commands, every
 *       tenth a duplicate of a random live key, the others claim and complete a
 *       fresh key with a response of 16 bytes and a random code of 16 bits, for
 *       which the oldest expires.
 *   W2  64 live keys, responses of 64.
 *
 * W1 is made once more with numbers, of one sender, instead of its keys.
 *
 * Then the same with as many live keys as so many sectors accept, and fewer: no
 * capacity may cost much more than its neighbours.
 */
#define _POSIX_C_SOURCE 200809L

#define IDEM_IMPLEMENTATION
#include "idem.h"

#include "tests/bench/common.h"

enum {
    COMMANDS = 20000,
    DUPLICATE_EVERY = 10,
    SECTOR_SIZE = 4096,
    SECTOR_COUNT = 8,
    SECTORS_MAX = 64,
    CAPACITY_MAX = 1000,
    RESPONSE_MAX = 64,
    DAY_MS = 86400000
};

/* ---------------------------------------------------------------------------
   The medium: bytes, and what was done to them
   ------------------------------------------------------------------------ */
static struct {
    uint8_t bytes[SECTOR_SIZE * SECTORS_MAX];
    uint64_t programmed, erases;
    double us;                      // modelled
} medium;

/* A SPI NOR like the W25Q64JV, typical values, not measured: a bus of 50 MHz,
   one bit wide; to program, command and address for each page of 256 that is
   touched, then 30 us + 2.5 us for each further byte, at most 0.4 ms; 45 ms to
   erase 4 KB.  Polling its status is not counted. */
static double bus_us(uint32_t bytes)
{
    return bytes * 0.16;
}

static int medium_read(void *ctx, uint32_t at, void *dst, uint32_t len)
{
    (void)ctx;
    memcpy(dst, medium.bytes + at, len);
    medium.us += bus_us(4 + len);
    return 0;
}

static int medium_prog(void *ctx, uint32_t at, const void *src, uint32_t len)
{
    uint32_t end = at + len;

    (void)ctx;
    memcpy(medium.bytes + at, src, len);
    medium.programmed += len;
    while (at < end) {
        uint32_t n = 256 - at % 256 < end - at ? 256 - at % 256 : end - at;
        double array = 30 + (n - 1) * 2.5;
        medium.us += bus_us(5 + n) + (array < 400 ? array : 400);
        at += n;
    }
    return 0;
}

static int medium_erase(void *ctx, uint32_t sector)
{
    (void)ctx;
    memset(medium.bytes + sector * SECTOR_SIZE, 0xFF, SECTOR_SIZE);
    medium.erases++;
    medium.us += bus_us(5) + 45000;
    return 0;
}

/* ---------------------------------------------------------------------------
   Workloads
   ------------------------------------------------------------------------ */

/* The floor: 36 bytes for a claim, 10 for an outcome beside its response (its
   code is free there), each padded to granules; and the erases that this takes
   where each sector has a header. */
struct workload {
    const char *name;
    uint32_t live, response_len;
    int is_numbered;                // 1: a number, not a key of 16 bytes
    double floor_kb[3], floor_erases[3];    // per 1000, by granule
};

static const struct workload workloads[] = {
    { "W1", 128, 16, 0, { 55.8, 64.8, 72.0 }, { 13.7, 15.9, 17.7 } },
    { "W2", 64, 64, 0, { 99.0, 108.0, 115.0 }, { 24.4, 26.6, 28.4 } },
};

static const uint32_t granules[] = { 1, 8, 16 };

/* Calls that somebody waits for: the longest, and erases in all of them */
struct figures {
    double kb, erases;              // per 1000 commands
    double longest_ms;
    uint64_t most_erases;           // in one call
};

static idem_storage storage;
static idem_config config;
static idem_table table;
static uint32_t memory[CAPACITY_MAX * 40];

static uint32_t sectors(const struct workload *w, uint32_t live,
                        uint32_t granule)
{
    uint32_t asked = IDEM_SECTORS(live, KEY_LEN, w->response_len, 0,
                                  SECTOR_SIZE, granule);

    return asked > SECTOR_COUNT ? asked : SECTOR_COUNT;
}

static void open_table(const struct workload *w, uint32_t live,
                       uint32_t granule)
{
    int result;

    memset(&medium, 0, sizeof medium);
    memset(medium.bytes, 0xFF, sizeof medium.bytes);
    storage = (idem_storage){
        .read = medium_read, .prog = medium_prog, .erase = medium_erase,
        .sector_size = SECTOR_SIZE, .sector_count = sectors(w, live, granule),
        .prog_size = (uint16_t)granule, .erased = 0xFF };
    config = (idem_config){
        .capacity = live, .key_max = KEY_LEN,
        .response_max = (uint16_t)w->response_len, .storage = &storage,
        .retention_ms = DAY_MS / live * live,
        .senders = w->is_numbered ? 1 : 0 };
    memset(config.secret, 7, sizeof config.secret);
    result = idem_open(&table, &config, memory, sizeof memory, 0);
    if (result != IDEM_OK)
        fail("%s, %u keys: cannot open: %s", w->name, (unsigned)live,
             idem_text(result));
}

static void idle(uint32_t now_ms)
{
    int result;

    do
        result = idem_maintain(&table, now_ms);
    while (result == IDEM_MORE);
    if (result != IDEM_OK)
        fail("idle: %s", idem_text(result));
}

/* A call begins: afterwards `waited` says what it took. */
static double call_us;
static uint64_t call_erases;

static void start(void)
{
    call_us = medium.us;
    call_erases = medium.erases;
}

static void waited(struct figures *f)
{
    double ms = (medium.us - call_us) / 1000;
    uint64_t erases = medium.erases - call_erases;

    if (ms > f->longest_ms)
        f->longest_ms = ms;
    if (erases > f->most_erases)
        f->most_erases = erases;
}

static void make_response(uint8_t response[RESPONSE_MAX], uint64_t number)
{
    unsigned i;

    for (i = 0; i < RESPONSE_MAX; i++)
        response[i] = (uint8_t)(mix(number + 7) >> i % 57);
}

static int begin(const struct workload *w, idem_claim *claim, uint64_t number,
                 uint8_t *response, uint32_t now_ms, struct figures *f)
{
    uint8_t key[KEY_LEN];
    idem_request request = { .payload = key, .payload_len = KEY_LEN };
    idem_reply reply = { .buffer = response, .buffer_size = RESPONSE_MAX };
    int result;

    make_key(key, number);
    if (w->is_numbered) {
        request.epoch = 1;
        request.sequence = (uint32_t)number + 1;
    } else {
        request.key = key;
        request.key_len = KEY_LEN;
    }
    start();
    result = idem_begin(&table, claim, &reply, &request, now_ms);
    waited(f);
    return result;
}

static void fresh(const struct workload *w, uint64_t number, uint32_t now_ms,
                  struct figures *f)
{
    uint8_t response[RESPONSE_MAX];
    idem_claim claim;
    idem_outcome outcome = { .response = response,
                             .response_len = w->response_len,
                             .code = (uint16_t)mix(number) };
    int result = begin(w, &claim, number, response, now_ms, f);

    if (result != IDEM_EXECUTE)
        fail("%s: begin: %s", w->name, idem_text(result));
    make_response(response, number);
    start();
    result = idem_complete(&table, &claim, &outcome, now_ms);
    waited(f);
    if (result != IDEM_OK)
        fail("%s: complete: %s", w->name, idem_text(result));
}

static void duplicate(const struct workload *w, uint64_t number,
                      uint32_t now_ms, struct figures *f)
{
    uint8_t response[RESPONSE_MAX] = { 0 }, expected[RESPONSE_MAX];
    uint64_t programmed = medium.programmed;
    idem_claim claim;
    int result = begin(w, &claim, number, response, now_ms, f);

    make_response(expected, number);
    if (result != IDEM_REPLAY ||
        memcmp(response, expected, w->response_len) != 0)
        fail("%s: a duplicate: %s", w->name, idem_text(result));
    if (medium.programmed != programmed)
        fail("%s: a duplicate programs", w->name);
}

static struct figures run(const struct workload *w, uint32_t live,
                          uint32_t granule, int is_idle)
{
    static const struct figures none;
    struct figures f = none;
    uint64_t number = 0;
    uint32_t now_ms = 0, i;

    open_table(w, live, granule);
    if (is_idle)
        idle(0);
    for (i = 0; i < COMMANDS; i++) {
        if (i % DUPLICATE_EVERY == DUPLICATE_EVERY - 1) {
            uint32_t known = number < live ? (uint32_t)number : live;
            duplicate(w, number - 1 - below(known, mix(i)), now_ms, &f);
        } else {
            now_ms = (uint32_t)number * (DAY_MS / live);
            fresh(w, number++, now_ms, &f);
        }
        if (is_idle)
            idle(now_ms);
        if (i == 0)
            f = none;           // a boot's first write may cost one more
    }
    f.kb = (double)medium.programmed / COMMANDS;
    f.erases = 1000.0 * (double)medium.erases / COMMANDS;
    if (idem_check(&table))
        fail("%s: idem_check answers %d", w->name, idem_check(&table));
    return f;
}

/* The most keys that a table accepts in these sectors */
static uint32_t largest(const struct workload *w, uint32_t granule)
{
    uint32_t live = 1;

    while (live < CAPACITY_MAX && sectors(w, live + 1, granule) == SECTOR_COUNT)
        live++;
    return live;
}

/* Bytes x floor at 1/8, 2/8 .. 8/8 of the largest capacity: the most of these */
static double sweep(const struct workload *w, size_t g, uint32_t *at)
{
    uint32_t most = largest(w, granules[g]), i;
    double worst = 0;

    for (i = 1; i <= 8; i++) {
        uint32_t live = most * i / 8;
        double is = run(w, live, granules[g], 1).kb / w->floor_kb[g];
        if (is > worst) {
            worst = is;
            *at = live;
        }
    }
    return worst;
}

/* What numbers cost, beside keys of 16 bytes: storage for a thousand commands */
static void compare_numbers(size_t g)
{
    struct workload w1 = workloads[0];

    for (w1.is_numbered = 0; w1.is_numbered < 2; w1.is_numbered++) {
        struct figures f = run(&w1, w1.live, granules[g], 1);
        char name[64];

        snprintf(name, sizeof name, "W1, granule %u, %s", (unsigned)granules[g],
                 w1.is_numbered ? "numbers" : "keys of 16 bytes");
        print_row(f.kb * 1000, 0, 0, "%s: bytes of 1000 commands", name);
        print_row(f.erases, 0, 0, "%s: erases of 1000 commands", name);
    }
}

// The longest calls of granule 1, and whether L3 is broken.
static double rested_ms, longest_ms;
static int broken;

static void larger(double *most, double ms)
{
    if (ms > *most)
        *most = ms;
}

static void measure(const struct workload *w, size_t g)
{
    struct figures with = run(w, w->live, granules[g], 1);
    struct figures without = run(w, w->live, granules[g], 0);
    uint32_t at = 0;
    double worst = sweep(w, g, &at);
    unsigned granule = (unsigned)granules[g];
    unsigned count = (unsigned)sectors(w, w->live, granule);
    char name[32];

    snprintf(name, sizeof name, "%s, granule %u", w->name, granule);
    if (count > SECTOR_COUNT)
        print_row(count, SECTOR_COUNT, 0, "%s: sectors", name);
    print_row(with.kb / w->floor_kb[g], 1.05, 1.02, "%s: bytes x floor", name);
    print_row(without.kb / w->floor_kb[g], 1.05, 1.02,
              "%s: bytes x floor, no idle time", name);
    print_row(with.erases / w->floor_erases[g], 1.05, 1.02,
              "%s: erases x floor", name);
    print_row(worst, 1.5, 0, "%s: bytes x floor at the worst capacity (%u of "
              "%u keys)", name, (unsigned)at, (unsigned)largest(w, granule));
    if (granule == 1) {
        larger(&rested_ms, with.longest_ms);
        larger(&longest_ms, without.longest_ms);
    }
    if (with.most_erases || without.most_erases > 1) {
        printf("L3 is broken: %s: %u erases in a call with idle time, %u "
               "without\n", name, (unsigned)with.most_erases,
               (unsigned)without.most_erases);
        broken = 1;
    }
}

int main(void)
{
    size_t w, g;

    for (w = 0; w < COUNT(workloads); w++)
        for (g = 0; g < COUNT(granules); g++)
            measure(&workloads[w], g);
    for (g = 0; g < COUNT(granules); g++)
        compare_numbers(g);
    print_row(rested_ms, 0.5, 0.3, "longest call, SPI NOR, with idle time, ms");
    print_row(longest_ms, 50, 46, "longest call, SPI NOR, without, ms");
    return broken;
}
