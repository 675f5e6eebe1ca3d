/* SPDX-License-Identifier: 0BSD */
/*
 * What a journal costs.
 *
 *   build/bench_journal
 *
 * counts what it does to its storage, beside the least that is safe.  Nothing
 * is timed: the same code prints the same numbers on every machine.
 *
 *   W1  8 sectors x 4096, 128 live keys of 16 bytes; 20,000 commands, every
 *       tenth a duplicate of a random live key, the others claim and complete a
 *       fresh key with a response of 16 bytes and a random code of 16 bits, for
 *       which the oldest expires.
 *
 * W1 is run again with the numbers of one sender instead of its keys.  Then
 * with each number of live keys, up to the most that eight sectors accept: none
 * may cost much more than its neighbours.
 *
 *   build/bench_journal [--short] FOLDER
 *
 * measures it in a file in a folder (on a disk, not a RAM disk), beside the
 * floor.
 *
 *   M4  A durable claim and a durable completion with a 16-byte key, payload
 *       and response.  The floor: pwrite + fdatasync, twice, of as many bytes,
 *       into a file that is as large and full of zeros.  Then 64 in flight:
 *       claimed, synced, completed, synced.
 *   M5  Opening a file with many finished keys, which the system has cached, in
 *       processor time; and how often the journal is read.
 *   Q1  50,000 keys of 100 senders with a quota, one of which floods: what a
 *       refused command costs, beside a duplicate; in RAM, and in a file, which
 *       is not read.
 *
 * Disks vary by the minute, so all take turns, and only figures of the same
 * turn make a ratio; medians.  Wrong answers fail it, times never do.
 */
#define _GNU_SOURCE 1
#define _POSIX_C_SOURCE 200809L

#define IDEM_FILE_STORAGE
#define IDEM_IMPLEMENTATION
#include "idem.h"

#include "tests/bench/common.h"

#include <fcntl.h>

enum {
    COMMANDS = 20000,
    DUPLICATE_EVERY = 10,
    FLASH_SECTOR = 4096,
    FLASH_SECTORS = 8,
    CAPACITY_MAX = 1000,
    FILE_SECTOR = 262144,
    RESPONSE_LEN = KEY_LEN,         // the key itself
    DAY_MS = 86400000,
    M4_KEYS = 10000,
    DEPTH = 64,                     // in flight
    ONE_BY_ONE = 16,                // commands in a turn
    READ_AHEAD = 65536,             // memory beyond what a table needs
    SENDERS = 100,
    Q1_KEYS = 50000,
    QUOTA = Q1_KEYS / SENDERS
};

/* ---------------------------------------------------------------------------
   A table, and what is done to its storage
   ------------------------------------------------------------------------ */
struct device {
    idem_config config;
    int is_numbered;                // numbers, not keys of 16 bytes
    int has_codes;                  // random ones
    idem_table table;
    void *memory;
    size_t memory_size;
    uint64_t number;                // next key
    idem_storage medium, storage;   // and the same, counted
    idem_file file;
    char path[PATH_LEN];
    uint8_t *bytes;                 // of what is no file
    uint32_t *read;                 // bytes, of each sector
    uint64_t written, erases;       // bytes
    double us;                      // modelled
    double longest_us;              // a call that somebody waits for
};

/* A SPI NOR like the W25Q64JV, typical values, not measured: a bus of 50 MHz,
   one bit wide; to program, command and address for each page of 256 that is
   touched, then 30 us + 2.5 us for each further byte, at most 0.4 ms; 45 ms to
   erase 4 KB.  Polling its status is not counted. */
static double bus_us(uint32_t bytes)
{
    return bytes * 0.16;
}

static double prog_us(uint32_t at, uint32_t len)
{
    uint32_t end = at + len;
    double us = 0;

    while (at < end) {
        uint32_t n = 256 - at % 256 < end - at ? 256 - at % 256 : end - at;
        double array = 30 + (n - 1) * 2.5;
        us += bus_us(5 + n) + (array < 400 ? array : 400);
        at += n;
    }
    return us;
}

static int counted_read(void *ctx, uint32_t at, void *dst, uint32_t len)
{
    struct device *d = ctx;

    d->read[at / d->storage.sector_size] += len;
    d->us += bus_us(4 + len);
    return d->medium.read(d->medium.ctx, at, dst, len);
}

static int counted_prog(void *ctx, uint32_t at, const void *src, uint32_t len)
{
    struct device *d = ctx;

    d->written += len;
    d->us += prog_us(at, len);
    return d->medium.prog(d->medium.ctx, at, src, len);
}

static int counted_erase(void *ctx, uint32_t sector)
{
    struct device *d = ctx;

    d->erases++;
    d->us += bus_us(5) + 45000;
    return d->medium.erase(d->medium.ctx, sector);
}

static int counted_sync(void *ctx)
{
    struct device *d = ctx;

    return d->medium.sync(d->medium.ctx);
}

static int bytes_read(void *bytes, uint32_t at, void *dst, uint32_t len)
{
    memcpy(dst, (uint8_t *)bytes + at, len);
    return 0;
}

static int bytes_prog(void *bytes, uint32_t at, const void *src, uint32_t len)
{
    memcpy((uint8_t *)bytes + at, src, len);
    return 0;
}

static int bytes_erase(void *bytes, uint32_t sector)
{
    memset((uint8_t *)bytes + sector * FLASH_SECTOR, 0xFF, FLASH_SECTOR);
    return 0;
}

static uint32_t sectors(const idem_config *c, uint32_t size, uint32_t granule)
{
    return IDEM_SECTORS(c->capacity + c->senders, KEY_LEN, c->response_max, 0,
                        size, granule);
}

static int fits_in_flash(const idem_config *c, uint32_t granule)
{
    return sectors(c, FLASH_SECTOR, granule) <= FLASH_SECTORS;
}

static void device_add_flash(struct device *d, uint32_t granule)
{
    uint32_t count = FLASH_SECTORS;

    check(fits_in_flash(&d->config, granule),
          "W1 is in 8 sectors, and these keys need more");
    d->bytes = malloc((size_t)count * FLASH_SECTOR);
    check(d->bytes != NULL, "out of memory");
    memset(d->bytes, 0xFF, (size_t)count * FLASH_SECTOR);
    d->medium = (idem_storage){
        .ctx = d->bytes, .read = bytes_read, .prog = bytes_prog,
        .erase = bytes_erase, .sector_size = FLASH_SECTOR,
        .sector_count = count, .prog_size = (uint16_t)granule, .erased = 0xFF };
}

static void device_add_file(struct device *d, const char *folder,
                            const char *name)
{
    file_path(d->path, folder, name);
    check(idem_file_open(&d->file, d->path, FILE_SECTOR,
                         sectors(&d->config, FILE_SECTOR, 1)) == IDEM_OK,
          "cannot open the file");
    d->medium = d->file.storage;
}

/* Without a medium it is in RAM. */
static void device_open(struct device *d)
{
    idem_config *c = &d->config;

    c->key_max = KEY_LEN;
    c->retention_ms = DAY_MS / c->capacity * c->capacity;
    memset(c->secret, 7, sizeof c->secret);
    if (d->medium.read) {
        d->storage = d->medium;
        d->storage.ctx = d;
        d->storage.read = counted_read;
        d->storage.prog = counted_prog;
        d->storage.erase = d->medium.erase ? counted_erase : NULL;
        d->storage.sync = d->medium.sync ? counted_sync : NULL;
        d->read = calloc(d->storage.sector_count, sizeof *d->read);
        check(d->read != NULL, "out of memory");
        c->storage = &d->storage;
    }
    d->memory_size = READ_AHEAD + IDEM_SENDERS_MEMORY_SIZE(c->senders) +
        IDEM_JOURNAL_MEMORY_SIZE(c->capacity, KEY_LEN, c->response_max, 0, 16);
    d->memory = malloc(d->memory_size);
    check(d->memory && idem_open(&d->table, c, d->memory, d->memory_size, 0) ==
                           IDEM_OK, "cannot open the table");
}

static void device_close(struct device *d)
{
    check(idem_check(&d->table) == 0, "idem_check complains");
    if (*d->path) {
        idem_file_close(&d->file);
        unlink(d->path);
    }
    free(d->bytes);
    free(d->memory);
    free(d->read);
}

/* The time of a command: the oldest key expires when all slots are in use. */
static uint32_t device_now(const struct device *d, uint64_t number)
{
    return (uint32_t)number * (DAY_MS / d->config.capacity);
}

static void larger(double *most, double is)
{
    if (is > *most)
        *most = is;
}

/* Senders, if there are any, send by turns. */
static int device_begin(struct device *d, uint64_t number, idem_claim *claim,
                        uint32_t now_ms)
{
    uint8_t key[KEY_LEN], response[RESPONSE_LEN];
    uint8_t sender = (uint8_t)(number % SENDERS);
    idem_request request = { .key = key, .key_len = KEY_LEN, .payload = key,
                             .payload_len = KEY_LEN, .buffer = response,
                             .buffer_size = RESPONSE_LEN };
    idem_reply reply;
    double us = d->us;
    int result;

    make_key(key, number);
    if (d->is_numbered) {
        request.key_len = 0;
        request.epoch = 1;
        request.sequence = (uint32_t)number + 1;
    } else if (d->config.senders) {
        request.scope = &sender;
        request.scope_len = 1;
        request.key_len--;
    }
    result = idem_begin(&d->table, claim, &reply, &request, now_ms);
    larger(&d->longest_us, d->us - us);
    check(result != IDEM_REPLAY || memcmp(response, key, KEY_LEN) == 0,
          "another response");
    return result;
}

static void device_complete(struct device *d, uint64_t number,
                            const idem_claim *claim, uint32_t now_ms)
{
    uint8_t response[RESPONSE_LEN];
    idem_outcome outcome = {
        .response = response, .response_len = RESPONSE_LEN,
        .code = d->has_codes ? (uint16_t)mix(number) : 0 };
    double us = d->us;

    make_key(response, number);
    check(idem_complete(&d->table, claim, &outcome, now_ms) == IDEM_OK,
          "complete");
    larger(&d->longest_us, d->us - us);
}

/* The next command, from its claim to its completion */
static void device_command(struct device *d)
{
    uint32_t now_ms = device_now(d, d->number);
    idem_claim claim;

    check(device_begin(d, d->number, &claim, now_ms) == IDEM_EXECUTE, "begin");
    device_complete(d, d->number++, &claim, now_ms);
}

/* ---------------------------------------------------------------------------
   W1: what is counted
   ------------------------------------------------------------------------ */

/* The floor: 36 bytes for a claim, 10 for an outcome beside its response (its
   code is free there), each padded to granules; and the erases that this takes
   where each sector has a header. */
static const struct granule {
    uint32_t size;
    double minimal_kb, minimal_erases;  // per 1000 commands
} granules[] = { { 1, 55.8, 13.7 }, { 8, 64.8, 15.9 }, { 16, 72.0, 17.7 } };

enum { LIVE = 128 };

struct figures {
    double kb, erases;              // per 1000 commands
    double longest_ms;
};

static idem_config flash_config(uint32_t live, int is_numbered)
{
    return (idem_config){ .capacity = live, .response_max = RESPONSE_LEN,
                          .senders = is_numbered ? 1 : 0 };
}

static void idle(struct device *d, uint32_t now_ms)
{
    int result;

    do
        result = idem_maintain(&d->table, now_ms);
    while (result == IDEM_MORE);
    check(result == IDEM_OK, "idle");
}

/* Of one of the live keys */
static void duplicate(struct device *d, uint64_t chance, uint32_t now_ms)
{
    uint32_t live = d->config.capacity;
    uint32_t known = d->number < live ? (uint32_t)d->number : live;
    idem_claim claim;

    check(device_begin(d, d->number - 1 - below(known, chance), &claim,
                       now_ms) == IDEM_REPLAY, "a duplicate");
}

static struct figures run(uint32_t live, int is_numbered, uint32_t granule,
                          int is_idle)
{
    struct device d = { .config = flash_config(live, is_numbered),
                        .has_codes = 1, .is_numbered = is_numbered };
    struct figures f;
    uint32_t now_ms = 0, i;

    device_add_flash(&d, granule);
    device_open(&d);
    if (is_idle)
        idle(&d, 0);
    for (i = 0; i < COMMANDS; i++) {
        if (i % DUPLICATE_EVERY == DUPLICATE_EVERY - 1) {
            duplicate(&d, mix(i), now_ms);
        } else {
            now_ms = device_now(&d, d.number);
            device_command(&d);
        }
        if (is_idle)
            idle(&d, now_ms);
        if (i == 0)                 // a boot's first write may cost one more
            d.longest_us = 0;
    }
    f = (struct figures){ (double)d.written / COMMANDS,
                          1000.0 * (double)d.erases / COMMANDS,
                          d.longest_us / 1000 };
    device_close(&d);
    return f;
}

/* The most keys that a table accepts in these sectors */
static uint32_t largest(uint32_t granule)
{
    idem_config c = flash_config(2, 0);

    while (c.capacity <= CAPACITY_MAX && fits_in_flash(&c, granule))
        c.capacity++;
    return c.capacity - 1;
}

/* Write amplification at 1/8, 2/8 .. 8/8 of the largest capacity: the worst */
static double sweep(const struct granule *g, uint32_t *at)
{
    uint32_t most = largest(g->size), i;
    double worst = 0;

    for (i = 1; i <= 8; i++) {
        uint32_t live = most * i / 8;
        double is = run(live, 0, g->size, 1).kb / g->minimal_kb;
        if (is > worst) {
            worst = is;
            *at = live;
        }
    }
    return worst;
}

/* What keys of 16 bytes, or numbers, cost: storage for a thousand commands */
static void count_bytes(const struct granule *g, int is_numbered)
{
    struct figures f = run(LIVE, is_numbered, g->size, 1);
    const char *what = is_numbered ? "numbers" : "keys of 16 bytes";

    print_row(f.kb * 1000, 0, 0, "W1, granule %u, %s: bytes of 1000 commands",
              (unsigned)g->size, what);
    print_row(f.erases, 0, 0, "W1, granule %u, %s: erases of 1000 commands",
              (unsigned)g->size, what);
}

static void measure_flash(const struct granule *g)
{
    struct figures f = run(LIVE, 0, g->size, 1);
    unsigned granule = (unsigned)g->size;
    uint32_t at = 0;
    double worst = sweep(g, &at);

    print_row(f.kb / g->minimal_kb, 1.05, 1.02,
              "W1, granule %u: write amplification", granule);
    print_row(f.erases / g->minimal_erases, 1.05, 1.02,
              "W1, granule %u: erase amplification", granule);
    print_row(worst, 1.5, 0,
              "W1, granule %u: write amplification at the worst capacity (%u "
              "of %u keys)", granule, (unsigned)at, (unsigned)largest(g->size));
}

static void count_flash(void)
{
    size_t g;

    measure_flash(&granules[0]);
    measure_flash(&granules[2]);
    for (g = 0; g < COUNT(granules); g++) {
        count_bytes(&granules[g], 0);
        count_bytes(&granules[g], 1);
    }
    print_row(run(LIVE, 0, 1, 1).longest_ms, 0.5, 0.3,
              "longest call, SPI NOR, with idle time, ms");
    print_row(run(LIVE, 0, 1, 0).longest_ms, 50, 46,
              "longest call, SPI NOR, without, ms");
}

/* ---------------------------------------------------------------------------
   Who takes part in M4: each executes `count` commands, durable together
   ------------------------------------------------------------------------ */
static struct device each, batch;

/* Without a folder it is in RAM; with senders they have a quota. */
static void open_file(struct device *d, const char *folder, const char *name,
                      uint32_t capacity, uint16_t senders, int durability)
{
    *d = (struct device){ .config = {
        .capacity = capacity, .response_max = RESPONSE_LEN,
        .senders = senders, .quota = senders ? QUOTA : 0 } };
    if (folder) {
        device_add_file(d, folder, name);
        d->config.durability = (uint8_t)durability;
    }
    device_open(d);
}

static void device_sync(struct device *d)
{
    check(!d->config.storage || idem_sync(&d->table) == IDEM_OK, "sync");
}

static void run_device(struct device *d, int count)
{
    uint32_t now_ms = device_now(d, d->number);
    idem_claim claims[DEPTH];
    int i;

    for (i = 0; i < count; i++)
        check(device_begin(d, d->number + (uint64_t)i, &claims[i], now_ms) ==
                  IDEM_EXECUTE, "begin");
    device_sync(d);
    for (i = 0; i < count; i++)
        device_complete(d, d->number + (uint64_t)i, &claims[i], now_ms);
    device_sync(d);
    d->number += (uint64_t)count;
}

static struct {
    int fd;
    uint32_t at, size;
} bare;

static void bare_open(const char *folder, uint32_t size)
{
    static const uint8_t zeros[FILE_SECTOR];
    char path[PATH_LEN];
    uint32_t at;

    file_path(path, folder, "bare");
    bare.fd = open(path, O_RDWR | O_CREAT, 0600);
    bare.size = size;
    for (at = 0; at < size; at += sizeof zeros)
        check(pwrite(bare.fd, zeros, sizeof zeros, at) ==
                  (ssize_t)sizeof zeros, "cannot write");
    check(fsync(bare.fd) == 0, "cannot sync");
    unlink(path);
}

static void bare_write(uint32_t len)
{
    static const uint8_t bytes[64] = { 1 };

    if (bare.at + len > bare.size)
        bare.at = 0;
    check(pwrite(bare.fd, bytes, len, bare.at) == (ssize_t)len &&
              fdatasync(bare.fd) == 0, "cannot write");
    bare.at += len;
}

static void run_bare(struct device *d, int count)
{
    (void)d;
    for (; count > 0; count--) {
        bare_write(36);
        bare_write(26);
    }
}

struct subject {
    const char *name;
    void (*run)(struct device *d, int count);
    struct device *device;
    int depth;
    double budget, moonshot;        // times the floor
};

static const struct subject subjects[] = {
    { "two bare writes", run_bare, NULL, 1, 0, 0 },
    { "one at a time", run_device, &each, 1, 1.05, 1.00 },
    { "64 in flight", run_device, &batch, DEPTH, 0.03, 0.02 },
};

/* Microseconds of a command of each: those that go one by one change places
   after each command, and their medians are the figures of the turn. */
static void take_turn(double us[COUNT(subjects)])
{
    struct sample samples[COUNT(subjects)];
    size_t i, s;

    memset(samples, 0, sizeof samples);
    for (i = 0; i < ONE_BY_ONE * COUNT(subjects); i++) {
        const struct subject *subject;
        double start;
        s = (i + i / COUNT(subjects)) % COUNT(subjects);
        subject = &subjects[s];
        if (subject->depth > 1 && samples[s].count == 4)
            continue;
        start = now_us();
        subject->run(subject->device, subject->depth);
        sample_add(&samples[s], (now_us() - start) / subject->depth);
    }
    for (s = 0; s < COUNT(subjects); s++)
        us[s] = sample_median(&samples[s]);
}

static void measure_m4(const char *folder, int turns)
{
    static struct sample us[COUNT(subjects)], ratios[COUNT(subjects)];
    double turn_us[COUNT(subjects)];
    size_t s;
    int i;

    open_file(&each, folder, "each", M4_KEYS, 0, IDEM_EACH);
    open_file(&batch, folder, "batch", M4_KEYS, 0, IDEM_BATCH);
    bare_open(folder, FILE_SECTOR * each.storage.sector_count);
    for (i = -1; i < turns; i++) {
        take_turn(turn_us);
        for (s = 0; i >= 0 && s < COUNT(subjects); s++) {   // first: warms up
            sample_add(&us[s], turn_us[s]);
            sample_add(&ratios[s], turn_us[s] / turn_us[0]);
        }
    }
    print_row(sample_median(&us[0]), 0, 0, "M4, durable: two bare writes, us");
    for (s = 1; s < COUNT(subjects); s++)
        print_row(sample_median(&ratios[s]), subjects[s].budget,
                  subjects[s].moonshot, "M4, durable: %s, x that",
                  subjects[s].name);
    device_close(&each);
    device_close(&batch);
    close(bare.fd);
}

/* ---------------------------------------------------------------------------
   M5
   ------------------------------------------------------------------------ */
static void fill(struct device *d, uint32_t keys)
{
    while (d->number < keys)
        device_command(d);
    device_sync(d);
}

/* How often a sector was read: on average, of those with records, and the one
   that was read most */
static double mean_read(const struct device *d)
{
    uint64_t all = 0;
    uint32_t sectors = 0, i;

    for (i = 0; i < d->storage.sector_count; i++)
        if (d->read[i] > FILE_SECTOR / 2) {
            all += d->read[i];
            sectors++;
        }
    return (double)all / sectors / FILE_SECTOR;
}

static double most_read(const struct device *d)
{
    uint32_t most = 0, i;

    for (i = 0; i < d->storage.sector_count; i++)
        if (d->read[i] > most)
            most = d->read[i];
    return (double)most / FILE_SECTOR;
}

static void measure_m5(const char *folder, uint32_t keys, int times,
                       double budget, double moonshot)
{
    static struct device d;
    struct sample ms = { .count = 0 };
    uint32_t now_ms;
    int i;

    open_file(&d, folder, "open", keys, 0, IDEM_BATCH);
    fill(&d, keys);
    now_ms = device_now(&d, keys);
    for (i = 0; i < times; i++) {
        double start = clock_us(CLOCK_PROCESS_CPUTIME_ID);
        idem_claim claim;
        memset(d.read, 0, d.storage.sector_count * sizeof *d.read);
        check(idem_open(&d.table, &d.config, d.memory, d.memory_size,
                        now_ms) == IDEM_OK, "cannot open again");
        sample_add(&ms, (clock_us(CLOCK_PROCESS_CPUTIME_ID) - start) / 1000);
        check(d.table.used == keys, "a key is missing");
        check(device_begin(&d, keys / 2 + below(keys / 2, mix((uint64_t)i)),
                           &claim, now_ms) == IDEM_REPLAY, "a duplicate");
    }
    print_row(sample_median(&ms), budget, moonshot,
              "M5, opening %u keys, warm file, ms", (unsigned)keys);
    print_row(mean_read(&d), 1.25, 1,
              "M5, opening %u keys: times the journal is read",
              (unsigned)keys);
    print_row(most_read(&d), 0, 0,
              "M5, opening %u keys: times its head is read",
              (unsigned)keys);
    device_close(&d);
}

/* ---------------------------------------------------------------------------
   Q1
   ------------------------------------------------------------------------ */

/* Microseconds that commands of one sender take, all of one answer: some of its
   numbers by turns */
static double flood(struct device *d, uint64_t first, uint64_t some, int answer)
{
    double start = clock_us(CLOCK_PROCESS_CPUTIME_ID);
    idem_claim claim;
    uint64_t i;

    for (i = 0; i < Q1_KEYS; i++)
        check(device_begin(d, (first + i % some) * SENDERS, &claim,
                           device_now(d, d->number)) == answer,
              "Q1: another answer");
    return clock_us(CLOCK_PROCESS_CPUTIME_ID) - start;
}

/* One slot more than keys: the table is not full. */
static void measure_q1(const char *folder, const char *where)
{
    static struct device d;
    struct sample ratios = { .count = 0 };
    int turn;

    open_file(&d, folder, "q1", Q1_KEYS + 1, SENDERS, IDEM_BATCH);
    fill(&d, Q1_KEYS);
    if (folder)
        memset(d.read, 0, d.storage.sector_count * sizeof *d.read);
    for (turn = 0; turn < 11; turn++) {
        double duplicate = flood(&d, 0, QUOTA, IDEM_REPLAY);
        sample_add(&ratios,
                   flood(&d, Q1_KEYS, Q1_KEYS, IDEM_E_FULL) / duplicate);
    }
    check(!folder || most_read(&d) == 0, "Q1: the storage was read");
    print_row(sample_median(&ratios), 2, 0,
              "Q1, %s, refused by the quota: x a duplicate", where);
    device_close(&d);
}

int main(int argc, char **argv)
{
    int is_short = argc > 2;
    const char *folder = argv[argc - 1];

    if (argc < 2) {
        count_flash();
        return 0;
    }
    measure_q1(NULL, "in RAM");
    measure_q1(folder, "in a file");
    measure_m4(folder, is_short ? 3 : 31);
    measure_m5(folder, 100000, is_short ? 5 : 31, 15.8, 14);
    if (!is_short)
        measure_m5(folder, 1000000, 5, 0, 0);
    return 0;
}
