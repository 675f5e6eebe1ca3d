/* SPDX-License-Identifier: 0BSD */
/*
 * Measures the journal of idem.h in a file.
 *
 *   gcc -std=gnu99 -O2 -I. tests/bench/file.c -o build/bench_file
 *   build/bench_file [--short] [directory]
 *                              the directory is where the files go, "build" by
 *                              default: a disk, not a RAM disk
 *   build/bench_file --one 100000 build
 *                              M5 alone, one opening after another, for
 *                              profilers; so many keys were ever written
 *
 * M4  A durable claim and a durable completion with a 16-byte key, payload and
 *     response, beside the floor: pwrite + fdatasync, twice, of as many bytes
 *     one after the other, into a file that is as large and full of zeros.
 *     Then in batches: so many claims, idem_sync, as many completions,
 *     idem_sync; beside the same commands one by one.
 * M5  Opening a file with 100,000 finished keys that the system has in memory,
 *     and the first duplicate afterwards: when just these keys were ever
 *     written, and when the file has gone round, so that there are old records
 *     among them and behind them.
 *
 * Disks vary by the minute, so all subjects take turns, a few commands each;
 * only figures of the same turn make a ratio; the medians have the smallest and
 * the largest beside them.  How often a storage callback was called is counted,
 * and is the same every time.  Wrong answers fail it; times never do.
 */
#define _POSIX_C_SOURCE 200809L

#define IDEM_FILE_STORAGE
#define IDEM_IMPLEMENTATION
#include "idem.h"

#include <fcntl.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "tests/bench/common.h"

enum {
    RESPONSE_LEN = 16,
    KEYS = 100000,
    SECTOR_SIZE = 262144,
    DAY_MS = 86400000,
    KEY_MS = DAY_MS / KEYS,
    TURN = 64,                      // commands of a subject in one turn
    OPENS_MAX = 51
};

/* ---------------------------------------------------------------------------
   A table in a file, with callbacks that count
   ------------------------------------------------------------------------ */
struct counts {
    uint64_t reads, read_bytes, programs, bytes, syncs;
};

struct device {
    idem_file file;
    idem_storage storage;           // the file's, counted
    struct counts counts;
    idem_config config;
    idem_table table;
    void *memory;
    size_t memory_size;
    uint64_t number;                // next key
};

static int counted_read(void *ctx, uint32_t at, void *dst, uint32_t len)
{
    struct device *d = ctx;

    d->counts.reads++;
    d->counts.read_bytes += len;
    return d->file.storage.read(d->file.storage.ctx, at, dst, len);
}

static int counted_prog(void *ctx, uint32_t at, const void *src, uint32_t len)
{
    struct device *d = ctx;

    d->counts.programs++;
    d->counts.bytes += len;
    return d->file.storage.prog(d->file.storage.ctx, at, src, len);
}

static int counted_sync(void *ctx)
{
    struct device *d = ctx;

    d->counts.syncs++;
    return d->file.storage.sync(d->file.storage.ctx);
}

/* How many sectors a table of that capacity takes */
static uint32_t sectors_for(uint32_t capacity)
{
    static const idem_file none;
    struct device *d = calloc(1, sizeof *d);
    uint32_t sectors = 1000;

    if (!d)
        fail("sectors: out of memory");
    d->file = none;
    d->storage.read = counted_read;
    d->storage.prog = counted_prog;
    d->storage.sector_size = SECTOR_SIZE;
    d->storage.sector_count = sectors;
    d->storage.prog_size = 1;
    d->config.capacity = capacity;
    d->config.key_max = KEY_LEN;
    d->config.response_max = RESPONSE_LEN;
    d->config.storage = &d->storage;
    memset(d->config.secret, 7, sizeof d->config.secret);
    // With one sector too few idem_open tells how many would do.
    d->storage.sector_count = 1;
    idem_open(&d->table, &d->config, NULL, 0, 0);
    d->memory = malloc(d->table.needed);
    if (d->memory && idem_open(&d->table, &d->config, d->memory,
                               d->table.needed, 0) == IDEM_E_SPACE)
        sectors = (uint32_t)d->table.needed;
    free(d->memory);
    free(d);
    return sectors;
}

/* Opens the table; `extra` bytes of memory more than needed. */
static void device_boot(struct device *d, size_t extra)
{
    idem_open(&d->table, &d->config, NULL, 0, 0);
    if (d->memory_size != d->table.needed + extra) {
        free(d->memory);
        d->memory_size = d->table.needed + extra;
        d->memory = malloc(d->memory_size);
        if (!d->memory)
            fail("open: out of memory");
        memset(d->memory, 0xA5, d->memory_size);
    }
    memset(&d->counts, 0, sizeof d->counts);
    if (idem_open(&d->table, &d->config, d->memory, d->memory_size, 0) !=
        IDEM_OK)
        fail("open: cannot open the table");
}

static void device_open(struct device *d, const char *path, uint32_t capacity,
                        int durability, int in_ram)
{
    uint32_t sectors = sectors_for(capacity);

    memset(d, 0, sizeof *d);
    if (idem_file_open(&d->file, path, SECTOR_SIZE, sectors) != IDEM_OK)
        fail("%s: cannot open the file", path);
    d->storage = d->file.storage;
    d->storage.ctx = d;
    d->storage.read = counted_read;
    d->storage.prog = counted_prog;
    d->storage.sync = counted_sync;
    d->config.capacity = capacity;
    d->config.key_max = KEY_LEN;
    d->config.response_max = RESPONSE_LEN;
    d->config.durability = (uint8_t)durability;
    d->config.in_ram = (uint8_t)in_ram;
    d->config.storage = &d->storage;
    memset(d->config.secret, 7, sizeof d->config.secret);
    device_boot(d, 0);
    memset(&d->counts, 0, sizeof d->counts);
}

static void device_close(struct device *d)
{
    int broken = idem_check(&d->table);

    if (broken) {
        fprintf(stderr, "bench_file: idem_check answers %d\n", broken);
        exit(1);
    }
    idem_file_close(&d->file);
    free(d->memory);
}

static int begin(struct device *d, uint64_t number, idem_claim *claim,
                 uint32_t now_ms)
{
    uint8_t key[KEY_LEN], response[RESPONSE_LEN];
    idem_request request = { .key = key, .key_len = KEY_LEN, .payload = key,
                             .payload_len = KEY_LEN };
    idem_reply reply = { .buffer = response, .buffer_size = RESPONSE_LEN };
    int result;

    make_key(key, number);
    result = idem_begin(&d->table, claim, &reply, &request, now_ms);
    if (result == IDEM_REPLAY && (reply.response_len != RESPONSE_LEN ||
                                  memcmp(response, key, RESPONSE_LEN) != 0))
        fail("begin: another response");
    return result;
}

static void claim_key(struct device *d, uint64_t number, idem_claim *claim,
                      uint32_t now_ms)
{
    if (begin(d, number, claim, now_ms) != IDEM_EXECUTE)
        fail("begin: an answer is wrong");
}

static void complete_key(struct device *d, uint64_t number,
                         const idem_claim *claim, uint32_t now_ms)
{
    uint8_t response[KEY_LEN];
    idem_outcome outcome = { .response = response,
                             .response_len = RESPONSE_LEN };

    make_key(response, number);
    if (idem_complete(&d->table, claim, &outcome, now_ms) != IDEM_OK)
        fail("complete: an answer is wrong");
}

/* ---------------------------------------------------------------------------
   M4
   ------------------------------------------------------------------------ */

/* Commands come so that after as many as there are slots the oldest is over. */
enum { M4_CAPACITY = 10000, STEP_MS = DAY_MS / M4_CAPACITY };

static const int batches[] = { 1, 8, 64 };

/* The floor: a file and where to write next */
struct bare {
    int fd;
    uint32_t at, size;
};

static void bare_open(struct bare *b, const char *path, uint32_t size)
{
    static const uint8_t zeros[65536];
    uint32_t at;

    b->fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    b->at = 0;
    b->size = size;
    for (at = 0; b->fd >= 0 && at < size; at += sizeof zeros)
        if (pwrite(b->fd, zeros, sizeof zeros, at) != (ssize_t)sizeof zeros)
            fail("%s: cannot write", path);
    if (b->fd < 0 || fsync(b->fd) < 0)
        fail("%s: cannot open", path);
}

static void bare_write(struct bare *b, uint32_t len)
{
    uint8_t bytes[64];

    memset(bytes, (int)b->at | 1, sizeof bytes);
    if (b->at + len > b->size)
        b->at = 0;
    if (pwrite(b->fd, bytes, len, b->at) != (ssize_t)len ||
        fdatasync(b->fd) < 0)
        fail("bare file: cannot write");
    b->at += len;
}

/* Microseconds of one command; the bytes are those of idem.h's records. */
static double bare_us(struct bare *b)
{
    double start = now_us();

    bare_write(b, 36);
    bare_write(b, 29);
    return now_us() - start;
}

static double each_us(struct device *d)
{
    uint32_t now_ms = (uint32_t)d->number * STEP_MS;
    double start = now_us();
    idem_claim claim;

    claim_key(d, d->number, &claim, now_ms);
    complete_key(d, d->number, &claim, now_ms);
    d->number++;
    return now_us() - start;
}

/* Microseconds for one command, of a batch of TURN / batch batches */
static double batch_us(struct device *d, int batch)
{
    double start = now_us();
    idem_claim claims[TURN];
    int i, j;

    for (i = 0; i < TURN; i += batch, d->number += (uint64_t)batch) {
        uint32_t now_ms = (uint32_t)d->number * STEP_MS;
        for (j = 0; j < batch; j++)
            claim_key(d, d->number + (uint64_t)j, &claims[j], now_ms);
        if (idem_sync(&d->table) != IDEM_OK)
            fail("batch: sync");
        for (j = 0; j < batch; j++)
            complete_key(d, d->number + (uint64_t)j, &claims[j], now_ms);
        if (idem_sync(&d->table) != IDEM_OK)
            fail("batch: sync");
    }
    return (now_us() - start) / TURN;
}

static void print_counts(const struct device *d)
{
    double commands = (double)d->number;

    printf(" %.3f | %.1f | %.3f | %.3f |\n",
           (double)d->counts.programs / commands,
           (double)d->counts.bytes / commands,
           (double)d->counts.syncs / commands,
           (double)d->counts.reads / commands);
}

enum { BARE, EACH, EACH_RAM, BATCH, SUBJECTS = BATCH + COUNT(batches) };

static struct device devices[SUBJECTS];

/* One turn of every subject: those that go one by one change places after each
   command, and their medians are what the turn has to say of them. */
static void take_turn(double us[SUBJECTS], struct bare *bare)
{
    struct sample commands[BATCH] = { { .count = 0 } };
    int i, s;

    for (i = 0; i < TURN * BATCH; i++) {
        s = (i + i / BATCH) % BATCH;
        sample_add(&commands[s],
                   s == BARE ? bare_us(bare) : each_us(&devices[s]));
    }
    for (s = 0; s < BATCH; s++)
        us[s] = sample_median(&commands[s]);
    for (; s < SUBJECTS; s++)
        us[s] = batch_us(&devices[s], batches[s - BATCH]);
}

static void print_m4(struct sample *us, struct sample *to_bare,
                     struct sample *to_each)
{
    int s;

    printf("| | us | / bare | times as fast as one by one | pwrites | bytes | "
           "fdatasyncs | preads |\n|---|--:|--:|--:|--:|--:|--:|--:|\n");
    for (s = 0; s < SUBJECTS; s++) {
        if (s == BARE)
            printf("| bare |");
        else if (s < BATCH)
            printf("| one by one%s |", s == EACH_RAM ? ", in_ram" : "");
        else
            printf("| %d in a batch, in_ram |", batches[s - BATCH]);
        print_sample(&us[s], " %.1f (%.1f..%.1f) |");
        print_sample(&to_bare[s], " %.3f (%.3f..%.3f) |");
        if (s < BATCH)
            printf(" |");
        else
            print_sample(&to_each[s], " %.1f (%.1f..%.1f) |");
        if (s == BARE)
            printf(" 2 | 65 | 2 | 0 |\n");
        else
            print_counts(&devices[s]);
    }
    printf("\n| budget | limit | measured | |\n|---|--:|--:|---|\n"
           "| one by one / bare | <= 1.05 | %.3f | %s |\n"
           "| %d in a batch: times as fast | >= 20 | %.1f | %s |\n",
           sample_median(&to_bare[EACH_RAM]),
           sample_median(&to_bare[EACH_RAM]) <= 1.05 ? "met" : "missed",
           batches[COUNT(batches) - 1],
           sample_median(&to_each[SUBJECTS - 1]),
           sample_median(&to_each[SUBJECTS - 1]) >= 20 ? "met" : "missed");
}

static void m4_path(char path[512], const char *directory, int subject)
{
    snprintf(path, 512, "%s/bench_m4_%d.idem", directory, subject);
}

static void measure_m4(const char *directory, int turns)
{
    static struct sample us[SUBJECTS], to_bare[SUBJECTS], to_each[SUBJECTS];
    double turn_us[SUBJECTS];
    struct bare bare;
    char path[512];
    int s, i;

    for (s = EACH; s < SUBJECTS; s++) {
        m4_path(path, directory, s);
        unlink(path);
        device_open(&devices[s], path, M4_CAPACITY,
                    s < BATCH ? IDEM_EACH : IDEM_BATCH, s != EACH);
    }
    m4_path(path, directory, BARE);
    bare_open(&bare, path, SECTOR_SIZE * devices[EACH].storage.sector_count);

    for (i = -1; i < turns; i++) {
        take_turn(turn_us, &bare);
        for (s = 0; i >= 0 && s < SUBJECTS; s++) {  // the first warms up
            sample_add(&us[s], turn_us[s]);
            sample_add(&to_bare[s], turn_us[s] / turn_us[BARE]);
            sample_add(&to_each[s], turn_us[EACH_RAM] / turn_us[s]);
        }
    }
    printf("\nM4: microseconds a command, %d turns of %d commands each; "
           "medians (least..most).\n\n", turns, TURN);
    print_m4(us, to_bare, to_each);

    close(bare.fd);
    for (s = BARE; s < SUBJECTS; s++) {
        if (s != BARE)
            device_close(&devices[s]);
        m4_path(path, directory, s);
        unlink(path);
    }
}

/* ---------------------------------------------------------------------------
   M5
   ------------------------------------------------------------------------ */

/* Claims and completes keys up to that number; the oldest of KEYS is over when
   another comes. */
static void fill(struct device *d, uint64_t until)
{
    enum { AT_ONCE = 50 };
    idem_claim claims[AT_ONCE];
    int i;

    for (; d->number < until; d->number += AT_ONCE) {
        uint32_t now_ms = (uint32_t)d->number * KEY_MS;
        for (i = 0; i < AT_ONCE; i++)
            claim_key(d, d->number + (uint64_t)i, &claims[i], now_ms);
        for (i = 0; i < AT_ONCE; i++)
            complete_key(d, d->number + (uint64_t)i, &claims[i], now_ms);
    }
    if (idem_sync(&d->table) != IDEM_OK)
        fail("M5: sync");
}

/* Microseconds of a duplicate of that key */
static double duplicate_us(struct device *d, uint64_t number)
{
    idem_claim claim;
    double start = now_us();

    if (begin(d, number, &claim, 0) != IDEM_REPLAY)
        fail("duplicate: an answer is wrong");
    return now_us() - start;
}

/* Of processor time, the system's for reading included: nothing waits here,
   but for others on the same machine. */
static double open_us(struct device *d)
{
    double start = clock_us(CLOCK_PROCESS_CPUTIME_ID);

    if (idem_open(&d->table, &d->config, d->memory, d->memory_size, 0) !=
        IDEM_OK)
        fail("M5: cannot open the table");
    return clock_us(CLOCK_PROCESS_CPUTIME_ID) - start;
}

static void m5_path(char path[512], const char *directory)
{
    snprintf(path, 512, "%s/bench_m5.idem", directory);
}

static void m5_open(struct device *d, const char *path, uint64_t keys)
{
    unlink(path);
    device_open(d, path, KEYS, IDEM_BATCH, 1);
    fill(d, keys);
}

static double m5_rows(struct device *d, int in_ram, int opens)
{
    static const size_t extras[] = { 0, 4096, 65536, 1048576 };
    double best = 0;
    size_t e;
    int i;

    d->config.in_ram = (uint8_t)in_ram;
    for (e = 0; e < COUNT(extras); e++) {
        struct sample open = { .count = 0 }, duplicate = { .count = 0 };
        struct counts counts;
        device_boot(d, extras[e]);
        counts = d->counts;
        for (i = 0; i < opens; i++) {
            uint64_t number = d->number - KEYS + mix((uint64_t)i) % (KEYS / 2);
            sample_add(&open, open_us(d) / 1000);
            if (d->table.used < KEYS)
                fail("M5: a key is missing");
            sample_add(&duplicate, duplicate_us(d, number));
        }
        printf("| %lu | %s | %lu | %lu | %lu |", (unsigned long)d->number,
               in_ram ? "yes" : "no", (unsigned long)extras[e],
               (unsigned long)counts.reads, (unsigned long)counts.read_bytes);
        print_sample(&open, " %.2f (%.2f..%.2f) |");
        print_sample(&duplicate, " %.2f (%.2f..%.2f) |\n");
        if (e == 0 || sample_median(&open) < best)
            best = sample_median(&open);
    }
    return best;
}

static void print_newest(struct device *d)
{
    struct counts before;
    double us;

    device_boot(d, 0);
    before = d->counts;
    us = duplicate_us(d, d->number - 1);
    printf("\nThe duplicate of the newest key, that has to be written again "
           "first: %.0f us,\n%lu pwrites, %lu fdatasyncs.\n", us,
           (unsigned long)(d->counts.programs - before.programs),
           (unsigned long)(d->counts.syncs - before.syncs));
}

static void measure_m5(const char *directory, int opens)
{
    static const uint64_t keys[] = { KEYS, 5 * KEYS / 2 };
    static struct device d;
    double m5 = 0, ms;
    char path[512];
    size_t k;

    m5_path(path, directory);
    printf("\nM5: milliseconds of processor time to open, medians of %d "
           "(least..most).\nKeys: ever written, of which %d live.  Extra: "
           "bytes of memory more than needed.\n\n"
           "| keys | in_ram | extra | preads | bytes read | open, ms | "
           "first duplicate, us |\n|--:|---|--:|--:|--:|--:|--:|\n",
           opens, KEYS);
    for (k = 0; k < COUNT(keys); k++) {
        m5_open(&d, path, keys[k]);
        ms = m5_rows(&d, 0, opens);
        if (k == 0)
            m5 = ms;
        m5_rows(&d, 1, opens);
        if (k == COUNT(keys) - 1) {
            printf("\n%lu sectors of %d bytes.\n",
                   (unsigned long)d.storage.sector_count, SECTOR_SIZE);
            print_newest(&d);
        }
        device_close(&d);
        unlink(path);
    }
    printf("\n| budget | limit | measured | |\n|---|--:|--:|---|\n");
    // M5 is the first row; the others have written more, or copy keys and
    // responses too, which M5 does not ask for.
    printf("| open, %lu keys, ms | <= 10 | %.2f | %s |\n",
           (unsigned long)keys[0], m5, m5 <= 10 ? "met" : "missed");
}

/* Opens again and again. */
static int one(const char *directory, uint64_t keys)
{
    static struct device d;
    double best = 1e9;
    char path[512];
    int i;

    m5_path(path, directory);
    m5_open(&d, path, keys);
    d.config.in_ram = 0;
    device_boot(&d, 65536);
    for (i = 0; i < 20; i++) {
        double us = open_us(&d);
        best = us < best ? us : best;
    }
    printf("M5: %.2f ms at best\n", best / 1000);
    device_close(&d);
    unlink(path);
    return 0;
}

static void print_facts(const char *directory)
{
    struct utsname system;

    printf("- compiler: %s\n", __VERSION__);
    if (uname(&system) == 0)
        printf("- system: %s %s %s\n", system.sysname, system.release,
               system.machine);
    printf("- files in %s\n", directory);
}

int main(int argc, char **argv)
{
    const char *directory = "build";
    int is_short = 0, i;

    if (argc == 4 && strcmp(argv[1], "--one") == 0)
        return one(argv[3], strtoul(argv[2], NULL, 10));
    for (i = 1; i < argc; i++)
        if (strcmp(argv[i], "--short") == 0)
            is_short = 1;
        else
            directory = argv[i];
    print_facts(directory);
    measure_m4(directory, is_short ? 9 : 51);
    measure_m5(directory, is_short ? 5 : OPENS_MAX);
    return 0;
}
