/* SPDX-License-Identifier: 0BSD */
/*
 * Counts what idem.h does to a storage medium, beside the floor of the design
 * and beside what is usually written instead.  Nothing is timed: the same code
 * prints the same numbers on every machine.
 *
 *   gcc -std=gnu99 -O2 -I. tests/bench/flash.c -o build/bench_flash
 *   build/bench_flash --short  W1 and W2: two seconds
 *   build/bench_flash          the other designs too: half a minute
 *   build/bench_flash --long [commands]
 *                              besides, a million mixed commands on each of
 *                              twenty media: some minutes
 *
 * Slot numbers have 16 bits if it is built with -DIDEM_WIDE=0, as firmware is:
 * RAM differs, nothing else does.
 *
 * The exit status is 1 if W1 or W2 misses a budget of the design at granules of
 * 1, 8 or 16 bytes: bytes programmed and erases at most 1.05 x the floor, with
 * idle calls no erase while a caller waits, a duplicate answered without
 * programming, without erasing and with at most two reads; if in the long run a
 * call waits for two erases, a completion for one, anything for one after idle
 * calls; if it is refused room, or any answer is wrong.
 *
 * W1  8 sectors x 4096, 128 live keys of 16 bytes, responses of 16; 20,000
 *     commands, every tenth a duplicate of a random live key, the others claim
 *     and complete a fresh key, for which the oldest expires.
 * W2  64 live keys, responses of 64.
 * Retention is the default 24 h, so commands come 675 s (W2: 1350 s) apart.
 * That makes the times in the records longer or shorter; so there is a table of
 * other retentions.
 */
#define _POSIX_C_SOURCE 200809L

#define IDEM_IMPLEMENTATION
#include "idem.h"

#include "tests/bench/common.h"
#include "tests/flash.h"

enum {
    COMMANDS = 20000,
    DUPLICATE_EVERY = 10,
    DAY_MS = 86400000,
    SECTOR_SIZE = 4096,
    SECTOR_COUNT = 8,
    SECTORS_MAX = 256,
    ENDURANCE = 100000              // erases that a sector bears
};

static int missed;                  // budgets

static uint32_t padded(uint32_t len, uint32_t granule)
{
    return (len + granule - 1) / granule * granule;
}

/* ---------------------------------------------------------------------------
   The medium: the emulator of the tests, and what each call costs
   ------------------------------------------------------------------------ */
enum { PROGRAMS, BYTES, ERASES, READS, READ_BYTES, SPI_NS, MCU_NS, COSTS };

/* Calls for which costs are told apart */
enum { BEGIN, COMPLETE, RELEASE, DUPLICATE, IDLE, OPEN, CALLS };

struct tally {
    uint64_t sum[COSTS];
    uint64_t worst[COSTS];          // in one call; each may be of another
};

struct medium {
    flash flash;
    void *memory;
    uint64_t spent[COSTS];
    uint64_t charged[COSTS];        // of it, to a call
    struct tally tally[CALLS];
};

struct geometry {
    const char *name;
    int kind;
    uint32_t granule;
};

static const struct geometry geometries[] = {
    { "1", FLASH_NOR, 1 },
    { "8", FLASH_NOR, 8 },
    { "16", FLASH_NOR, 16 },
    { "256", FLASH_NOR, 256 },
    { "in place", FLASH_INPLACE, 1 },
};

/* Time in a SPI NOR like the W25Q64JV, typical values, from memory and not
   checked against a data sheet: a bus of 50 MHz, one bit wide; a program is
   1 + 1 + 3 + n bytes for each page of 256 it touches, then tBP1 30 us +
   (n - 1) x tBP2 2.5 us but at most tPP 0.4 ms; tSE 45 ms for a sector of 4 KB.
   Polling the status is not counted. */
static uint64_t spi_bus_ns(uint64_t bytes)
{
    return bytes * 160;
}

static uint64_t spi_program_ns(uint32_t at, uint32_t len)
{
    uint64_t ns = 0;

    while (len > 0) {
        uint32_t n = 256 - at % 256 < len ? 256 - at % 256 : len;
        uint64_t array = 30000 + (uint64_t)(n - 1) * 2500;
        ns += spi_bus_ns(5 + n) + (array < 400000 ? array : 400000);
        at += n;
        len -= n;
    }
    return ns;
}

static uint64_t spi_erase_ns(void)
{
    return spi_bus_ns(5) + 45000000;
}

/* Time in a microcontroller's own flash like the STM32L476's, typical values,
   not checked either: 81.69 us for a double word of 8 bytes, 22.02 ms for a
   page of 2 KB, so twice that for one of our sectors; 25 ns to read 8 bytes, a
   guess.  Such flash bears 10,000 erases. */
static uint64_t mcu_program_ns(uint32_t len)
{
    return padded(len, 8) / 8 * UINT64_C(81690);
}

static uint64_t mcu_erase_ns(uint32_t sector_size)
{
    return sector_size / 2048 * UINT64_C(22020000);
}

static int medium_read(void *ctx, uint32_t at, void *dst, uint32_t len)
{
    struct medium *m = ctx;

    m->spent[READS]++;
    m->spent[READ_BYTES] += len;
    m->spent[SPI_NS] += spi_bus_ns(4 + (uint64_t)len);
    m->spent[MCU_NS] += padded(len, 8) / 8 * UINT64_C(25);
    return flash_read(&m->flash, at, dst, len);
}

static int medium_prog(void *ctx, uint32_t at, const void *src, uint32_t len)
{
    struct medium *m = ctx;

    m->spent[PROGRAMS]++;
    m->spent[BYTES] += len;
    m->spent[SPI_NS] += spi_program_ns(at, len);
    m->spent[MCU_NS] += mcu_program_ns(len);
    return flash_prog(&m->flash, at, src, len);
}

static int medium_erase(void *ctx, uint32_t sector)
{
    struct medium *m = ctx;

    m->spent[ERASES]++;
    m->spent[SPI_NS] += spi_erase_ns();
    m->spent[MCU_NS] += mcu_erase_ns(m->flash.sector_size);
    return flash_erase(&m->flash, sector);
}

static int medium_sync(void *ctx)
{
    struct medium *m = ctx;

    return flash_sync(&m->flash);
}

static void medium_open(struct medium *m, const struct geometry *g,
                        uint32_t sector_size, uint32_t sector_count)
{
    static uint8_t read_map[SECTOR_SIZE * SECTORS_MAX];

    memset(m, 0, sizeof *m);
    m->flash.kind = g->kind;
    m->flash.sector_size = sector_size;
    m->flash.sector_count = sector_count;
    m->flash.prog_size = g->granule;
    m->flash.erased = 0xFF;
    m->flash.read_map = read_map;
    m->memory = malloc(FLASH_MEMORY(sector_size, sector_count));
    if (!m->memory || (size_t)sector_size * sector_count > sizeof read_map ||
        flash_init(&m->flash, m->memory))
        fail("no such medium");
}

static void medium_close(struct medium *m)
{
    if (m->flash.violations)
        fail("the medium was misused: %s", flash_text(&m->flash));
    free(m->memory);
}

/* Charges what was spent since the last charge to a call. */
static void medium_charge(struct medium *m, int call)
{
    struct tally *tally = &m->tally[call];
    int i;

    for (i = 0; i < COSTS; i++) {
        uint64_t cost = m->spent[i] - m->charged[i];
        tally->sum[i] += cost;
        if (cost > tally->worst[i])
            tally->worst[i] = cost;
    }
    memcpy(m->charged, m->spent, sizeof m->charged);
}

/* Erases while a caller waited for an answer */
static uint64_t medium_foreground(const struct medium *m)
{
    return m->tally[BEGIN].sum[ERASES] + m->tally[COMPLETE].sum[ERASES] +
           m->tally[RELEASE].sum[ERASES] + m->tally[DUPLICATE].sum[ERASES];
}

/* ---------------------------------------------------------------------------
   A device: a table on a medium
   ------------------------------------------------------------------------ */
struct device {
    struct medium medium;
    idem_storage storage;
    idem_config config;
    idem_table table;
    void *memory;
    size_t memory_size;
};

/* Prepares everything but the opening.  The medium has at least so many
   sectors, more if the table needs more. */
static void device_prepare(struct device *d, const struct geometry *g,
                           uint32_t sectors)
{
    idem_storage *s = &d->storage;

    memset(s, 0, sizeof *s);
    s->ctx = &d->medium;
    s->read = medium_read;
    s->prog = medium_prog;
    s->erase = g->kind == FLASH_INPLACE ? NULL : medium_erase;
    s->sync = medium_sync;
    s->sector_size = SECTOR_SIZE;
    s->sector_count = SECTORS_MAX;
    s->prog_size = (uint16_t)g->granule;
    s->erased = 0xFF;
    memset(d->config.secret, 7, sizeof d->config.secret);
    d->config.storage = s;

    // Too few sectors are told first when there is memory for many.
    idem_open(&d->table, &d->config, NULL, 0, 0);
    d->memory_size = d->table.needed;
    d->memory = malloc(d->memory_size);
    if (!d->memory)
        fail("out of memory");
    s->sector_count = sectors;
    while (idem_open(&d->table, &d->config, d->memory, d->memory_size, 0) ==
               IDEM_E_SPACE && d->table.needed > s->sector_count &&
           d->table.needed <= SECTORS_MAX)
        s->sector_count = (uint32_t)d->table.needed;
    idem_open(&d->table, &d->config, NULL, 0, 0);
    d->memory_size = d->table.needed;
    medium_open(&d->medium, g, SECTOR_SIZE, s->sector_count);
}

/* Switches it on, at first or again. */
static void device_boot(struct device *d, uint32_t now_ms)
{
    int result;

    flash_boot(&d->medium.flash);
    memset(d->memory, 0xA5, d->memory_size);
    result = idem_open(&d->table, &d->config, d->memory, d->memory_size,
                       now_ms);
    medium_charge(&d->medium, OPEN);
    if (result != IDEM_OK)
        fail("cannot open: %s", idem_text(result));
    if (flash_most_read(&d->medium.flash) > 1)
        fail("a byte was read %u times at open",
             flash_most_read(&d->medium.flash));
}

static void device_idle(struct device *d, uint32_t now_ms)
{
    int result;

    do {
        result = idem_maintain(&d->table, now_ms);
        medium_charge(&d->medium, IDLE);
    } while (result == IDEM_MORE);
    if (result != IDEM_OK)
        fail("idle: %s", idem_text(result));
}

static void device_close(struct device *d)
{
    int broken = idem_check(&d->table);

    if (broken)
        fail("idem_check answers %d", broken);
    medium_close(&d->medium);
    free(d->memory);
}

/* ---------------------------------------------------------------------------
   W1 and W2
   ------------------------------------------------------------------------ */

/* The shortest records that are safe, as the design counts them: a claim is 36
   bytes beside nothing, an outcome 10 beside the response, each padded to
   granules.  That gives the bytes of its section 8 at 1, 8 and 16; the erases
   there are taken as printed.  At 256 the same formula; a sector holds what
   one granule of header leaves.  In place nothing is erased. */
enum { FLOOR_CLAIM = 36, FLOOR_OUTCOME = 10 };

struct workload {
    const char *name;
    uint32_t live;
    uint32_t response_len;
    double erases[3];               // per 1000 commands, section 8
};

static const struct workload workloads[] = {
    { "W1", 128, 16, { 13.7, 15.9, 17.7 } },
    { "W2", 64, 64, { 24.4, 26.6, 28.4 } },
};

static double floor_bytes(const struct workload *w, uint32_t granule)
{
    return (1000 - 1000 / DUPLICATE_EVERY) *
           (double)(padded(FLOOR_CLAIM, granule) +
                    padded(FLOOR_OUTCOME + w->response_len, granule));
}

static double floor_erases(const struct workload *w, size_t geometry)
{
    uint32_t granule = geometries[geometry].granule;

    if (geometries[geometry].kind == FLASH_INPLACE)
        return 0;
    if (geometry < COUNT(w->erases))
        return w->erases[geometry];
    return floor_bytes(w, granule) / (SECTOR_SIZE - granule);
}

/* What a key's command is made of */
struct command {
    uint8_t key[KEY_LEN];
    uint8_t response[64];
};

static void make_command(struct command *c, uint64_t number)
{
    uint64_t words[2] = { mix(number), mix(~number) };
    size_t i;

    memcpy(c->key, words, sizeof words);
    for (i = 0; i < sizeof c->response; i++)
        c->response[i] = (uint8_t)(words[1] >> i % 57);
}

static int begin(struct device *d, idem_claim *claim, uint8_t response[64],
                 const struct command *c, uint32_t now_ms)
{
    idem_request request = { .key = c->key, .key_len = KEY_LEN,
                             .payload = c->key, .payload_len = KEY_LEN };
    idem_reply reply = { .buffer = response, .buffer_size = 64 };

    return idem_begin(&d->table, claim, &reply, &request, now_ms);
}

static void fresh(struct device *d, const struct workload *w, uint64_t number,
                  uint32_t now_ms)
{
    struct command c;
    uint8_t response[64];
    idem_claim claim;
    idem_outcome outcome = { .response = c.response,
                             .response_len = w->response_len };
    int result;

    make_command(&c, number);
    result = begin(d, &claim, response, &c, now_ms);
    medium_charge(&d->medium, BEGIN);
    if (result != IDEM_EXECUTE)
        fail("%s: begin of key %lu: %s", w->name, (unsigned long)number,
             idem_text(result));
    result = idem_complete(&d->table, &claim, &outcome, now_ms);
    medium_charge(&d->medium, COMPLETE);
    if (result != IDEM_OK)
        fail("%s: complete: %s", w->name, idem_text(result));
}

static void duplicate(struct device *d, const struct workload *w,
                      uint64_t number, uint32_t now_ms)
{
    struct command c;
    uint8_t response[64];
    idem_claim claim;
    int result;

    make_command(&c, number);
    result = begin(d, &claim, response, &c, now_ms);
    medium_charge(&d->medium, DUPLICATE);
    if (result != IDEM_REPLAY ||
        memcmp(response, c.response, w->response_len) != 0)
        fail("%s: duplicate of key %lu: %s", w->name, (unsigned long)number,
             idem_text(result));
}

struct figures {
    const struct workload *w;
    size_t geometry;
    int idle;
    uint32_t retention_ms;
    uint32_t sectors;
    struct tally tally[CALLS];
    double bytes, erases;           // per 1000 commands
    double foreground;
    uint32_t wear_least, wear_most;
    uint64_t journal_bytes;         // from the oldest sector needed on
    size_t per_key, fixed;          // RAM
};

/* Bytes of RAM that one more key takes */
static size_t ram_per_key(const struct device *d)
{
    idem_config config = d->config;
    idem_table table;
    size_t some;

    config.capacity = 128;
    idem_open(&table, &config, NULL, 0, 0);
    some = table.needed;
    config.capacity = 256;
    idem_open(&table, &config, NULL, 0, 0);
    return (table.needed - some) / 128;
}

/* Runs a workload on a device that is opened by it, and closed by the caller.
   Returns how many keys there were. */
static uint64_t run(struct device *d, const struct workload *w, size_t geometry,
                    int idle, uint32_t retention_ms)
{
    uint32_t step_ms = retention_ms / w->live, now_ms = 0, i;
    uint64_t number = 0;

    memset(d, 0, sizeof *d);
    d->config.capacity = w->live;
    d->config.key_max = KEY_LEN;
    d->config.response_max = (uint16_t)w->response_len;
    d->config.retention_ms = step_ms * w->live;
    device_prepare(d, &geometries[geometry], SECTOR_COUNT);
    device_boot(d, 0);
    for (i = 0; i < COMMANDS; i++) {
        if (i % DUPLICATE_EVERY == DUPLICATE_EVERY - 1) {
            uint32_t live = number < w->live ? (uint32_t)number : w->live;
            duplicate(d, w, number - 1 - below(live, mix(i)), now_ms);
        } else {
            now_ms = (uint32_t)number * step_ms;
            fresh(d, w, number++, now_ms);
        }
        if (idle)
            device_idle(d, now_ms);
    }
    return number;
}

static struct figures measure(const struct workload *w, size_t geometry,
                              int idle, uint32_t retention_ms)
{
    struct figures f = { .w = w, .geometry = geometry, .idle = idle,
                         .retention_ms = retention_ms };
    struct device d;
    uint64_t number = run(&d, w, geometry, idle, retention_ms);
    uint32_t i;

    f.sectors = d.storage.sector_count;
    f.bytes = 1000.0 * (double)d.medium.spent[BYTES] / COMMANDS;
    f.erases = 1000.0 * (double)d.medium.spent[ERASES] / COMMANDS;
    f.foreground = 1000.0 * (double)medium_foreground(&d.medium) / COMMANDS;
    memcpy(f.tally, d.medium.tally, sizeof f.tally);
    flash_wear(&d.medium.flash, &f.wear_least, &f.wear_most);

    memset(&d.medium.tally[OPEN], 0, sizeof d.medium.tally[OPEN]);
    device_boot(&d, 0);
    f.tally[OPEN] = d.medium.tally[OPEN];
    f.journal_bytes = idemi_journal_distance(&d.table, d.table.journal->tail,
                                             d.table.journal->head) *
                          (uint64_t)SECTOR_SIZE + d.table.journal->end;
    f.per_key = ram_per_key(&d);
    f.fixed = d.memory_size - f.per_key * w->live;
    for (i = 1; i <= w->live; i++)
        duplicate(&d, w, number - i, 0);
    device_close(&d);
    return f;
}

/* -------------------------------------------------------------- printing */
static void print_start(const struct figures *f)
{
    printf("| %s | %s | %u | %s |", f->w->name, geometries[f->geometry].name,
           (unsigned)f->sectors, f->idle ? "yes" : "no");
}

static void print_ratio(double is, double least)
{
    if (least > 0)
        printf(" %.1f | %.3f |", least, is / least);
    else
        printf(" %.1f | - |", least);
}

static void print_volume(const struct figures *f, size_t count)
{
    printf("\nPer 1000 commands.  Wear: erases of a sector in %d commands; "
           "worn out: commands\nuntil the most erased one has %d.\n\n"
           "| | granule | sectors | idle calls | bytes programmed | floor | "
           "ratio | erases | floor | ratio | while a caller waits | "
           "wear: min | mean | max | worn out |\n"
           "|---|---|--:|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n",
           COMMANDS, ENDURANCE);
    for (; count > 0; count--, f++) {
        uint32_t granule = geometries[f->geometry].granule;
        print_start(f);
        printf(" %.0f |", f->bytes);
        print_ratio(f->bytes, floor_bytes(f->w, granule));
        printf(" %.2f |", f->erases);
        print_ratio(f->erases, floor_erases(f->w, f->geometry));
        printf(" %.2f | %u | %.1f | %u |", f->foreground,
               (unsigned)f->wear_least,
               f->erases * COMMANDS / 1000 / f->sectors,
               (unsigned)f->wear_most);
        if (f->wear_most)
            printf(" %.1f million |\n",
                   (double)ENDURANCE / f->wear_most * COMMANDS / 1e6);
        else
            printf(" - |\n");
    }
}

static void print_call(const struct tally *t)
{
    printf(" %lu, %lu, %lu, %lu (%lu) |", (unsigned long)t->worst[PROGRAMS],
           (unsigned long)t->worst[BYTES], (unsigned long)t->worst[ERASES],
           (unsigned long)t->worst[READS], (unsigned long)t->worst[READ_BYTES]);
}

static void print_calls(const struct figures *f, size_t count)
{
    printf("\nThe most in one call: programs, bytes programmed, erases, reads "
           "(bytes read).\nEach may be of another call.\n\n"
           "| | granule | sectors | idle calls | begin | complete | "
           "idem_maintain | duplicate |\n"
           "|---|---|--:|---|---|---|---|---|\n");
    for (; count > 0; count--, f++) {
        print_start(f);
        print_call(&f->tally[BEGIN]);
        print_call(&f->tally[COMPLETE]);
        if (f->idle)
            print_call(&f->tally[IDLE]);
        else
            printf(" - |");
        print_call(&f->tally[DUPLICATE]);
        printf("\n");
    }
}

static void print_time(const struct tally *tally, int cost)
{
    double sum = (double)(tally[BEGIN].sum[cost] + tally[COMPLETE].sum[cost] +
                          tally[IDLE].sum[cost]);
    double fresh = COMMANDS - COMMANDS / DUPLICATE_EVERY;

    printf(" %.2f | %.2f | %.2f | %.3f |", sum / fresh / 1e6,
           (double)tally[BEGIN].worst[cost] / 1e6,
           (double)tally[COMPLETE].worst[cost] / 1e6,
           (double)tally[DUPLICATE].sum[cost] /
               (COMMANDS / DUPLICATE_EVERY) / 1e6);
}

static void print_times(const struct figures *f, size_t count)
{
    printf("\nModelled milliseconds in the medium, a SPI NOR and the flash "
           "of a microcontroller.\nCommand: all that is done for a fresh one, "
           "idle work and erases too.\n\n"
           "| | granule | sectors | idle calls | SPI NOR: command | "
           "worst begin | worst complete | duplicate | MCU flash: command | "
           "worst begin | worst complete | duplicate |\n"
           "|---|---|--:|---|--:|--:|--:|--:|--:|--:|--:|--:|\n");
    for (; count > 0; count--, f++) {
        if (geometries[f->geometry].kind == FLASH_INPLACE)
            continue;
        print_start(f);
        print_time(f->tally, SPI_NS);
        if (geometries[f->geometry].granule % 8 == 0 &&
            geometries[f->geometry].granule < 256)
            print_time(f->tally, MCU_NS);
        else
            printf(" - | - | - | - |");
        printf("\n");
    }
}

static void print_open(const struct figures *f, size_t count)
{
    printf("\nOpening after the run, with the least memory.  No byte is read "
           "twice (that would\nfail).  Journal: from the oldest sector needed "
           "to the end of the newest.\n\n"
           "| | granule | sectors | idle calls | journal | read at open | "
           "reads | RAM per key | RAM besides | idem_table |\n"
           "|---|---|--:|---|--:|--:|--:|--:|--:|--:|\n");
    for (; count > 0; count--, f++) {
        const uint64_t *open = f->tally[OPEN].sum;
        print_start(f);
        printf(" %lu | %lu | %lu | %lu | %lu | %lu |\n",
               (unsigned long)f->journal_bytes,
               (unsigned long)open[READ_BYTES], (unsigned long)open[READS],
               (unsigned long)f->per_key, (unsigned long)f->fixed,
               (unsigned long)sizeof(idem_table));
    }
    printf("\nIDEM_WIDE %d.\n", IDEM_WIDE);
}

/* -------------------------------------------------------------- budgets */
static void expect(int met, const struct figures *f, const char *what,
                   double is, double limit)
{
    if (met)
        return;
    missed++;
    printf("- missed: %s, granule %s, %s idle calls: %s %.4f, at most %.4f\n",
           f->w->name, geometries[f->geometry].name,
           f->idle ? "with" : "without", what, is, limit);
}

static void judge(const struct figures *f)
{
    const uint64_t *duplicate = f->tally[DUPLICATE].worst;
    uint32_t granule = geometries[f->geometry].granule;
    double bytes = f->bytes / floor_bytes(f->w, granule);
    double erases = f->erases / floor_erases(f->w, f->geometry);

    expect(bytes <= 1.05, f, "bytes / floor", bytes, 1.05);
    expect(erases <= 1.05, f, "erases / floor", erases, 1.05);
    expect(!f->idle || f->foreground == 0, f, "erases that a caller waits for",
           f->foreground, 0);
    expect(duplicate[PROGRAMS] == 0, f, "programs for a duplicate",
           (double)duplicate[PROGRAMS], 0);
    expect(duplicate[ERASES] == 0, f, "erases for a duplicate",
           (double)duplicate[ERASES], 0);
    expect(duplicate[READS] <= 2, f, "reads for a duplicate",
           (double)duplicate[READS], 2);
}

/* How long keys are remembered, so how far apart commands come, makes the times
   in the records longer or shorter. */
static void print_retentions(void)
{
    static const struct { const char *name; uint32_t ms; } retentions[] = {
        { "2 min", 120000 },
        { "1 h", 3600000 },
        { "24 h", DAY_MS },
        { "30 days", 30 * (uint32_t)DAY_MS },
    };
    size_t w, g, r;

    printf("\nOther retentions, with idle calls: bytes / floor, erases / floor."
           "\n\n| | granule |");
    for (r = 0; r < COUNT(retentions); r++)
        printf(" %s |", retentions[r].name);
    printf("\n|---|---|---|---|---|---|\n");
    for (w = 0; w < COUNT(workloads); w++)
        for (g = 0; g < COUNT(workloads[w].erases); g++) {
            printf("| %s | %s |", workloads[w].name, geometries[g].name);
            for (r = 0; r < COUNT(retentions); r++) {
                struct figures f = measure(&workloads[w], g, 1,
                                           retentions[r].ms);
                printf(" %.3f, %.3f |",
                       f.bytes / floor_bytes(f.w, geometries[g].granule),
                       f.erases / floor_erases(f.w, g));
            }
            printf("\n");
        }
}

static void measure_all(void)
{
    static struct figures all[2 * COUNT(workloads) * COUNT(geometries)];
    size_t count = 0, w, g, i;
    int idle;

    for (w = 0; w < COUNT(workloads); w++)
        for (g = 0; g < COUNT(geometries); g++)
            for (idle = 1; idle >= 0; idle--)
                all[count++] = measure(&workloads[w], g, idle, DAY_MS);
    print_volume(all, count);
    print_calls(all, count);
    print_times(all, count);
    print_open(all, count);
    print_retentions();
    printf("\nBudgets of W1 and W2 at granules 1, 8, 16: bytes and erases at "
           "most 1.05 x floor,\nno erase while a caller waits if there are "
           "idle calls, duplicates 0 programs,\n0 erases, 2 reads\n\n");
    for (i = 0; i < count; i++)
        if (all[i].geometry < COUNT(workloads[0].erases))
            judge(&all[i]);
    if (!missed)
        printf("- all met\n");
}

/* ---------------------------------------------------------------------------
   What is usually written instead.  Each keeps what a duplicate needs (key,
   fingerprint, expiry, response) and writes it at the claim and again at the
   completion; an index in RAM is taken for granted, so only writing counts.
   The bytes written are of no matter, so they are zeros.
   ------------------------------------------------------------------------ */
struct naive {
    const char *name;
    void (*write)(struct medium *m, const struct workload *w, uint64_t number,
                  int completed);
};

static const uint8_t zeros[SECTOR_SIZE];

/* key 16, fingerprint 8, expiry 4, state 1, response */
static uint32_t naive_entry(const struct workload *w)
{
    return KEY_LEN + 13 + w->response_len;
}

static void naive_erase(struct medium *m, uint32_t sector)
{
    if (medium_erase(m, sector) != FLASH_OK)
        fail("erase");
}

static void naive_prog(struct medium *m, uint32_t at, uint32_t len)
{
    if (medium_prog(m, at, zeros, padded(len, m->flash.prog_size)) != FLASH_OK)
        fail("program");
}

/* The page that has the key's entry is erased and written.  A power cut loses
   all the entries in it. */
static void rewrite_page(struct medium *m, const struct workload *w,
                         uint64_t number, int completed)
{
    uint32_t in_page = SECTOR_SIZE / naive_entry(w);
    uint32_t page = (uint32_t)(number % w->live) / in_page;
    uint32_t rest = w->live - page * in_page;

    (void)completed;
    naive_erase(m, page);
    naive_prog(m, page * SECTOR_SIZE,
               (rest < in_page ? rest : in_page) * naive_entry(w));
}

/* Two copies of the table in turns, behind a header with sequence number and
   checksum that is written last.  All sectors are used: as many copies as there
   is room for, at least two. */
static void ping_pong(struct medium *m, const struct workload *w,
                      uint64_t number, int completed)
{
    uint32_t header = padded(8, m->flash.prog_size);
    uint32_t in_page = (SECTOR_SIZE - header) / naive_entry(w);
    uint32_t pages = (w->live + in_page - 1) / in_page, page;
    uint32_t copies = m->flash.sector_count / pages;
    uint32_t first = (uint32_t)((2 * number + (uint64_t)completed) % copies) *
                     pages;

    for (page = 0; page < pages; page++)
        naive_erase(m, first + page);
    for (page = 0; page < pages; page++) {
        uint32_t rest = w->live - page * in_page;
        naive_prog(m, (first + page) * SECTOR_SIZE + header,
                   (rest < in_page ? rest : in_page) * naive_entry(w));
    }
    naive_prog(m, first * SECTOR_SIZE, header);
}

/* A line for each change, as short as the floor's records.  When half of the
   sectors is full, the other half is erased and every live entry copied there;
   whoever asks just then waits for all of it. */
static struct {
    uint32_t half, at;              // sector, byte; at 0: not begun
} lines;

/* Goes to where a line fits: in this half, or to its end. */
static void line_fits(struct medium *m, uint32_t len)
{
    uint32_t rest = SECTOR_SIZE - lines.at % SECTOR_SIZE;

    if (padded(len, m->flash.prog_size) > rest)
        lines.at += rest;
}

static void line_add(struct medium *m, uint32_t len)
{
    len = padded(len, m->flash.prog_size);
    naive_prog(m, lines.half * SECTOR_SIZE + lines.at, len);
    lines.at += len;
}

static void copy_and_append(struct medium *m, const struct workload *w,
                            uint64_t number, int completed)
{
    uint32_t half = m->flash.sector_count / 2, i;
    uint32_t whole = FLOOR_CLAIM + w->response_len;
    uint32_t live = number < w->live ? (uint32_t)number : w->live;
    uint32_t len = completed ? FLOOR_OUTCOME + w->response_len : FLOOR_CLAIM;

    if (number == 0 && !completed)
        lines.half = lines.at = 0;
    line_fits(m, len);
    if (lines.at >= half * SECTOR_SIZE) {
        lines.half = half - lines.half;
        lines.at = padded(8, m->flash.prog_size);
        for (i = 0; i < half; i++)
            naive_erase(m, lines.half + i);
        for (i = 0; i < live; i++) {
            line_fits(m, whole);
            line_add(m, whole);
        }
        naive_prog(m, lines.half * SECTOR_SIZE, 8);
        line_fits(m, len);
    } else if (lines.at == 0)
        lines.at = padded(8, m->flash.prog_size);
    line_add(m, len);
}

/* True if one half of the sectors holds all live entries and more. */
static int lines_hold(const struct workload *w, const struct geometry *g)
{
    uint32_t whole = padded(FLOOR_CLAIM + w->response_len, g->granule);

    return w->live * whole < (SECTOR_COUNT / 2 - 1) * SECTOR_SIZE;
}

static const struct naive naives[] = {
    { "page rewritten for each change", rewrite_page },
    { "two copies in turns", ping_pong },
    { "lines, copied when full", copy_and_append },
};

static void plot_instead(const char *what, const char *name,
                         const struct workload *w, const struct geometry *g,
                         double value)
{
    char plot[32];

    snprintf(plot, sizeof plot, "flash_%s_%s_%s", what, w->name, g->name);
    plot_value(plot, name, g->name, value);
}

static void print_instead(const char *name, const struct workload *w,
                          const struct geometry *g, const struct medium *m,
                          const struct medium *ours)
{
    uint32_t least, most;
    uint64_t worst[COSTS];
    int i;

    for (i = 0; i < COSTS; i++) {
        worst[i] = m->tally[COMPLETE].worst[i];
        if (m->tally[BEGIN].worst[i] > worst[i])
            worst[i] = m->tally[BEGIN].worst[i];
    }
    flash_wear(&m->flash, &least, &most);
    printf("| %s | %s | %s | %.0f | %.1f | %.1f | %.1f | %lu, %lu | %.1f | "
           "%.1f | %.2f |\n", w->name, g->name, name,
           1000.0 * (double)m->spent[BYTES] / COMMANDS,
           (double)m->spent[BYTES] / (double)ours->spent[BYTES],
           1000.0 * (double)m->spent[ERASES] / COMMANDS,
           (double)m->spent[ERASES] / (double)ours->spent[ERASES],
           (unsigned long)worst[BYTES], (unsigned long)worst[ERASES],
           (double)worst[SPI_NS] / 1e6,
           (double)m->spent[SPI_NS] / 1e6 / COMMANDS,
           (double)ENDURANCE / most * COMMANDS / 1e6);
    plot_instead("bytes", name, w, g, 1000.0 * (double)m->spent[BYTES] /
                                          COMMANDS);
    plot_instead("worst", name, w, g, (double)worst[SPI_NS] / 1e6);
    plot_instead("life", name, w, g,
                 (double)ENDURANCE / most * COMMANDS / 1e6);
}

/* The same commands; duplicates write nothing here either. */
static void measure_naive(const struct naive *naive, const struct workload *w,
                          const struct geometry *g, const struct medium *ours)
{
    struct medium m;
    uint64_t number = 0;
    uint32_t i;

    if (naive->write == copy_and_append && !lines_hold(w, g)) {
        printf("| %s | %s | %s | does not fit |\n", w->name, g->name,
               naive->name);
        return;
    }
    medium_open(&m, g, SECTOR_SIZE, SECTOR_COUNT);
    for (i = 0; i < COMMANDS; i++) {
        if (i % DUPLICATE_EVERY == DUPLICATE_EVERY - 1)
            continue;
        naive->write(&m, w, number, 0);
        medium_charge(&m, BEGIN);
        naive->write(&m, w, number++, 1);
        medium_charge(&m, COMPLETE);
    }
    print_instead(naive->name, w, g, &m, ours);
    medium_close(&m);
}

static void compare_all(void)
{
    size_t w, g, n;

    printf("\nThe same commands, per 1000 of them, written in other ways.  "
           "Times: of the SPI NOR.\n\n"
           "| | granule | | bytes programmed | x | erases | x | "
           "worst call: bytes, erases | ms | mean ms | worn out, million |\n"
           "|---|---|---|--:|--:|--:|--:|--:|--:|--:|--:|\n");
    for (w = 0; w < COUNT(workloads); w++)
        for (g = 0; geometries[g].kind == FLASH_NOR; g++) {
            struct device d;
            run(&d, &workloads[w], g, 1, DAY_MS);
            plot_instead("bytes", "floor", &workloads[w], &geometries[g],
                         floor_bytes(&workloads[w], geometries[g].granule));
            print_instead("idem.h, idle calls", &workloads[w], &geometries[g],
                          &d.medium, &d.medium);
            for (n = 0; n < COUNT(naives); n++)
                measure_naive(&naives[n], &workloads[w], &geometries[g],
                              &d.medium);
            device_close(&d);
        }
}

/* ---------------------------------------------------------------------------
   The long run: mixed retentions, claims completed in any order, up to as many
   outstanding as there are slots, given back, taken over, cut short by
   restarts; with idle calls and without by turns.  Nothing may be refused for
   want of room in the storage.
   ------------------------------------------------------------------------ */
enum { LONG_SLOTS = 320, LONG_RECENT = 64, PHASE = 2000,
       MEAN_MS = 2000000, LONG_RETENTION = 600000 };

struct setup {
    const char *name;
    uint32_t capacity, key_max, response_max;
};

static const struct setup setups[] = {
    { "64 keys", 64, 32, 48 },
    { "300 keys", 300, 24, 16 },
};

/* An outstanding claim, or a finished key */
struct held {
    uint64_t number;
    idem_claim claim;
    uint32_t retention_ms;
    uint64_t lease_ends;            // 0: never
    uint64_t completed;
    uint32_t response_len;
};

struct run {
    struct device d;
    const struct setup *setup;
    uint64_t bits;                  // chance
    uint64_t now;                   // ms
    uint64_t number;                // next key
    struct held held[LONG_SLOTS];   // outstanding
    uint32_t count;
    struct held recent[LONG_RECENT];
    int rising;
    int rested;                     // idle work was done since the last call
    uint64_t rested_erases;         // while a caller waited all the same
    uint32_t most;                  // outstanding at once
    uint64_t full, boots, replayed;
    uint64_t floor;                 // bytes
};

static uint32_t chance(struct run *r, uint32_t n)
{
    r->bits = mix(r->bits);
    return (uint32_t)below(n, r->bits);
}

/* The request of a key: everything about it follows from its number. */
static void make_request(const struct run *r, uint64_t number,
                         uint8_t id[64], idem_request *request)
{
    uint64_t words[4] = { mix(number), mix(~number), number, 0 };
    uint32_t len = 8 + (uint32_t)below(r->setup->key_max - 7, words[0]);

    memset(request, 0, sizeof *request);
    memcpy(id, words, sizeof words);
    request->scope = id;
    request->scope_len = words[0] % 5;
    request->key = id + request->scope_len;
    request->key_len = len - request->scope_len;
    request->payload = id;
    request->payload_len = 24;
}

static uint8_t response_byte(uint64_t number, uint32_t i)
{
    return (uint8_t)(mix(number + 7) >> i % 57);
}

static int long_begin(struct run *r, struct held *h, uint8_t *response)
{
    uint8_t id[64];
    idem_request request;
    idem_reply reply = { .buffer = response, .buffer_size = 64 };
    int result;

    make_request(r, h->number, id, &request);
    request.retention_ms = h->retention_ms;
    request.lease_ms = h->lease_ends ? 0 : IDEM_LEASE_NONE;
    result = idem_begin(&r->d.table, &h->claim, &reply, &request,
                        (uint32_t)r->now);
    medium_charge(&r->d.medium, BEGIN);
    if (result < 0 && result != IDEM_E_FULL)
        fail("long: begin with %u outstanding: %s", (unsigned)r->count,
             idem_text(result));
    if (result == IDEM_EXECUTE || result == IDEM_RECOVER) {
        r->floor += padded(20 + (uint32_t)(request.scope_len +
                                           request.key_len),
                           r->d.medium.flash.prog_size);
        if (h->lease_ends)
            h->lease_ends = r->now + 30000;
    }
    if (result == IDEM_REPLAY)
        h->response_len = (uint32_t)reply.response_len;
    return result;
}

static void hold(struct run *r, const struct held *h)
{
    r->held[r->count++] = *h;
    if (r->count > r->most)
        r->most = r->count;
}

/* A fresh key; when the table is full, time passes. */
static void long_claim(struct run *r)
{
    static const uint32_t minutes[] = { 1, 2, 0, 30, 0, 60, 7, 13, 5, 3 };
    struct held h = { .number = r->number };
    uint8_t response[64];
    int result;

    h.retention_ms = minutes[chance(r, COUNT(minutes))] * 60000;
    h.lease_ends = chance(r, 2);
    result = long_begin(r, &h, response);
    if (result == IDEM_EXECUTE) {
        r->number++;
        hold(r, &h);
    } else if (result == IDEM_E_FULL) {
        r->full++;
        r->rising = 0;
        r->now += r->count ? 0 : 60000;
    } else
        fail("long: a fresh key: %s", idem_text(result));
}

/* True if a claim was over for a whole retention. */
static int is_gone(const struct run *r, const struct held *h)
{
    uint32_t retention_ms = h->retention_ms ? h->retention_ms : LONG_RETENTION;

    return h->lease_ends && r->now >= h->lease_ends + retention_ms;
}

/* Ends a random claim: completed, or once in 16 given back. */
static void long_end(struct run *r)
{
    uint32_t i = chance(r, r->count), at;
    struct held h = r->held[i];
    uint8_t response[64];
    idem_outcome outcome = { .response = response };
    uint32_t granule = r->d.medium.flash.prog_size;
    int result, call = chance(r, 16) ? COMPLETE : RELEASE;

    r->held[i] = r->held[--r->count];
    if (call == RELEASE) {
        result = idem_release(&r->d.table, &h.claim, (uint32_t)r->now);
        r->floor += padded(FLOOR_OUTCOME, granule);
    } else {
        outcome.response_len = chance(r, r->setup->response_max + 1);
        outcome.code = (int32_t)chance(r, 2);
        for (at = 0; at < outcome.response_len; at++)
            response[at] = response_byte(h.number, at);
        result = idem_complete(&r->d.table, &h.claim, &outcome,
                               (uint32_t)r->now);
        r->floor += padded(FLOOR_OUTCOME + (uint32_t)outcome.response_len,
                           granule);
        h.completed = r->now;
        h.response_len = (uint32_t)outcome.response_len;
    }
    medium_charge(&r->d.medium, call);
    if (result == IDEM_E_FENCED && is_gone(r, &h))
        return;
    if (result != IDEM_OK)
        fail("long: end of a claim with %u outstanding: %s",
             (unsigned)r->count, idem_text(result));
    if (h.completed)
        r->recent[chance(r, LONG_RECENT)] = h;
}

/* A duplicate of one of the recent keys, that must be remembered still */
static void long_duplicate(struct run *r)
{
    struct held h = r->recent[chance(r, LONG_RECENT)];
    uint32_t retention_ms = h.retention_ms ? h.retention_ms : LONG_RETENTION;
    uint32_t len = h.response_len, i;
    uint8_t response[64];
    int result;

    if (!h.number || r->now >= h.completed + retention_ms)
        return;
    result = long_begin(r, &h, response);
    if (result != IDEM_REPLAY || h.response_len != len)
        fail("long: a duplicate: %s", idem_text(result));
    for (i = 0; i < len; i++)
        if (response[i] != response_byte(h.number, i))
            fail("long: another response");
    r->replayed++;
}

/* A random claim is begun again by another holder: BUSY, or taken over. */
static void long_again(struct run *r)
{
    struct held *h = &r->held[chance(r, r->count)];
    struct held other = *h;
    uint8_t response[64];
    int result = long_begin(r, &other, response);

    if (result == IDEM_RECOVER || (result == IDEM_EXECUTE && is_gone(r, h)))
        *h = other;
    else if (result != IDEM_BUSY && result != IDEM_EXHAUSTED &&
             !(result == IDEM_E_FULL && is_gone(r, h)))
        fail("long: begun again: %s", idem_text(result));
}

/* Every holder is gone; half of the commands come again. */
static void long_restart(struct run *r)
{
    struct held cut[LONG_SLOTS];
    uint32_t count = r->count, i;
    uint8_t response[64];

    memcpy(cut, r->held, sizeof cut);
    r->count = 0;
    r->boots++;
    device_boot(&r->d, (uint32_t)r->now);
    for (i = 0; i < count; i++) {
        struct held h = cut[i];
        int result;
        if (chance(r, 2))
            continue;
        result = long_begin(r, &h, response);
        if (result == IDEM_RECOVER || (result == IDEM_EXECUTE &&
                                       is_gone(r, &cut[i])))
            hold(r, &h);
        else if (result != IDEM_EXHAUSTED &&
                 !(result == IDEM_E_FULL && is_gone(r, &cut[i])))
            fail("long: after a restart: %s", idem_text(result));
    }
}

/* One event.  The phase says how many claims may be outstanding; between its
   ends their number rises and falls. */
static void long_step(struct run *r, uint64_t step)
{
    uint32_t capacity = r->setup->capacity;
    uint32_t limits[4] = { 1, 8, capacity, capacity / 2 };
    uint32_t limit = limits[step / PHASE % COUNT(limits)];

    uint64_t erases = medium_foreground(&r->d.medium);

    // Slow and fast by turns: now many keys expire, now the table fills.
    r->now += chance(r, step / 512 % 2 ? 2000 : 2 * MEAN_MS / capacity);
    if (r->count >= limit)
        r->rising = 0;
    if (r->count == 0)
        r->rising = 1;
    switch (chance(r, 20)) {
    case 0:
        long_duplicate(r);
        break;
    case 1:
        if (r->count)
            long_again(r);
        break;
    case 2:
        if (r->count)
            long_end(r);
        break;
    default:
        if (r->rising)
            long_claim(r);
        else
            long_end(r);
    }
    if (r->rested)
        r->rested_erases += medium_foreground(&r->d.medium) - erases;
    r->rested = 0;
    if (chance(r, 4096) == 0)
        long_restart(r);
    else if (step / (4 * PHASE) % 2) {
        device_idle(&r->d, (uint32_t)r->now);
        r->rested = 1;
    }
    if (step % 4096 == 0 && idem_check(&r->d.table))
        fail("long: idem_check answers %d", idem_check(&r->d.table));
}

static void print_long(const struct run *r, const struct geometry *g)
{
    const struct medium *m = &r->d.medium;
    uint32_t least, most;

    flash_wear(&m->flash, &least, &most);
    printf("| %s | %s | %u | %lu | %lu | %u | %lu | %lu | %.3f | %.1f | %.3f | "
           "%.2f | %lu | %u..%u |", r->setup->name, g->name,
           (unsigned)r->d.storage.sector_count, (unsigned long)r->number,
           (unsigned long)r->boots, (unsigned)r->most,
           (unsigned long)r->full, (unsigned long)r->replayed,
           (double)m->spent[BYTES] / (double)r->floor,
           1000.0 * (double)m->spent[ERASES] / (double)r->number,
           (double)m->spent[ERASES] * SECTOR_SIZE / (double)r->floor,
           1000.0 * (double)medium_foreground(m) / (double)r->number,
           (unsigned long)r->rested_erases, (unsigned)least, (unsigned)most);
    print_call(&m->tally[BEGIN]);
    print_call(&m->tally[COMPLETE]);
    print_call(&m->tally[RELEASE]);
    print_call(&m->tally[IDLE]);
    printf("\n");
    fflush(stdout);
}

/* L3 and S7 of the design */
static void judge_long(const struct run *r, const struct geometry *g)
{
    const struct medium *m = &r->d.medium;
    uint64_t begin = m->tally[BEGIN].worst[ERASES];
    uint64_t complete = m->tally[COMPLETE].worst[ERASES];

    if (r->rested_erases == 0 && begin <= 1 && complete == 0)
        return;
    missed++;
    printf("\n- missed: %s, granule %s: erases in one begin %lu, at most 1; "
           "in one complete %lu,\n  after idle calls %lu, none\n\n",
           r->setup->name, g->name, (unsigned long)begin,
           (unsigned long)complete, (unsigned long)r->rested_erases);
}

static void measure_long(const struct setup *setup, const struct geometry *g,
                         uint32_t times, uint64_t commands)
{
    static struct run r;
    uint64_t step;

    memset(&r, 0, sizeof r);
    r.setup = setup;
    r.bits = 1;
    r.number = 1;
    r.d.config.capacity = setup->capacity;
    r.d.config.key_max = (uint8_t)setup->key_max;
    r.d.config.response_max = (uint16_t)setup->response_max;
    r.d.config.retention_ms = LONG_RETENTION;
    r.d.config.max_attempts = 200;
    device_prepare(&r.d, g, 3);
    if (times > 1) {
        uint32_t sectors = times * r.d.storage.sector_count;
        free(r.d.memory);
        free(r.d.medium.memory);
        device_prepare(&r.d, g, sectors);
    }
    device_boot(&r.d, 0);
    for (step = 0; r.number < commands; step++)
        long_step(&r, step);
    print_long(&r, g);
    judge_long(&r, g);
    device_close(&r.d);
}

static void measure_long_all(uint64_t commands)
{
    size_t s, g;
    uint32_t times;

    printf("\nMixed commands, restarts, up to as many claims outstanding as "
           "there are slots; in\nas few sectors as the table takes, and in "
           "twice as many.  The floor has no headers,\nand nothing carried "
           "forward.\n\n"
           "| | granule | sectors | keys | restarts | outstanding | full | "
           "replays | bytes / floor | erases per 1000 | x floor | while a "
           "caller waits | of them after idle calls | wear | begin | "
           "complete | release | idem_maintain |"
           "\n|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|---|"
           "---|---|---|\n");
    for (s = 0; s < COUNT(setups); s++)
        for (g = 0; g < COUNT(geometries); g++)
            for (times = 1; times <= 2; times++)
                measure_long(&setups[s], &geometries[g], times, commands);
}

int main(int argc, char **argv)
{
    uint64_t commands = 0;
    int is_short = 0, i;

    for (i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--short") == 0)
            is_short = 1;
        else if (strcmp(argv[i], "--long") == 0)
            commands = i + 1 < argc ? strtoul(argv[++i], NULL, 10) : 1000000;
        else
            return 2;
    }
    measure_all();
    if (!is_short)
        compare_all();
    if (commands)
        measure_long_all(commands);
    return missed != 0;
}
