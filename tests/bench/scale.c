/* SPDX-License-Identifier: 0BSD */
/*
 * What size and options do to idem.h: the cost of a command from 16 to a
 * million keys, of opening against the length of the journal, of a fuller
 * table, of each option.  The journal is in plain memory that copies and never
 * waits: what is timed is the library.  Bytes, programs and reads are counted.
 *
 *   gcc -std=gnu99 -O2 -I. tests/bench/scale.c -o build/bench_scale
 *   build/bench_scale [--short]
 *
 * Hash and width of the index are chosen when it is compiled (IDEM_HASH,
 * IDEM_WIDE): scale.sh builds them all; with --row each prints one row alone.
 *
 * A command claims and completes a fresh key of 16 bytes with a payload and a
 * response of 16; the oldest key expires for it.  Every answer is checked.
 */
#define _POSIX_C_SOURCE 200809L

#define IDEM_IMPLEMENTATION
#include "idem.h"
#include "tests/bench/common.h"

enum { RESPONSE_LEN = 16, SECTOR_SIZE = 65536, REPS = 7, REPS_SHORT = 3 };

static int reps = REPS;

/* ---------------------------------------------------------------------------
   A table, and the medium that it may have
   ------------------------------------------------------------------------ */
struct setup {
    const char *name;
    int journal, in_ram, batch, verify, volatile_claims;
};

static const struct setup setups[] = {
    { "without journal", 0, 0, 0, 0, 0 },
    { "journal", 1, 0, 0, 0, 0 },
    { "journal, in_ram", 1, 1, 0, 0, 0 },
    { "journal, in_ram, batch", 1, 1, 1, 0, 0 },
    { "journal, in_ram, verify", 1, 1, 0, 1, 0 },
    { "journal, in_ram, volatile claims", 1, 1, 0, 0, 1 },
};

enum { NO_JOURNAL, JOURNAL, IN_RAM };

struct device {
    idem_storage storage;
    idem_config config;
    idem_table table;
    uint8_t *bytes;
    void *memory;
    size_t memory_size;
    uint64_t reads, programs, programmed;
    uint64_t number;                // next key
    uint64_t live;                  // keys that are remembered
};

static int medium_read(void *ctx, uint32_t at, void *dst, uint32_t len)
{
    struct device *d = ctx;

    d->reads++;
    memcpy(dst, d->bytes + at, len);
    return 0;
}

static int medium_prog(void *ctx, uint32_t at, const void *src, uint32_t len)
{
    struct device *d = ctx;

    d->programs++;
    d->programmed += len;
    memcpy(d->bytes + at, src, len);
    return 0;
}

static void *allocate(size_t size)
{
    void *block = malloc(size);

    if (!block)
        fail("out of memory");
    return memset(block, 0, size);
}

/* Opens the table on what the medium holds. */
static void device_boot(struct device *d)
{
    idem_open(&d->table, &d->config, NULL, 0, 0);
    free(d->memory);
    d->memory_size = d->table.needed;
    d->memory = allocate(d->memory_size);
    if (idem_open(&d->table, &d->config, d->memory, d->memory_size, 0) !=
        IDEM_OK)
        fail("cannot open");
}

/* A medium as small as the table takes, or as many times larger */
static void device_medium(struct device *d, const struct setup *setup,
                          uint32_t times)
{
    idem_storage *s = &d->storage;

    s->ctx = d;
    s->read = medium_read;
    s->prog = medium_prog;
    s->sector_size = SECTOR_SIZE;
    s->sector_count = 1;
    s->prog_size = 1;
    s->erased = 0;
    s->verify = (uint8_t)setup->verify;
    d->config.storage = s;
    idem_open(&d->table, &d->config, NULL, 0, 0);
    d->memory = allocate(d->table.needed);
    if (idem_open(&d->table, &d->config, d->memory, d->table.needed, 0) !=
        IDEM_E_SPACE)
        fail("cannot be sized");
    s->sector_count = (uint32_t)d->table.needed * times;
    d->bytes = allocate((size_t)SECTOR_SIZE * s->sector_count);
}

/* Keys are remembered for as many milliseconds as there are to be live ones. */
static void device_open(struct device *d, const struct setup *setup,
                        uint64_t capacity, uint64_t live, uint32_t times)
{
    memset(d, 0, sizeof *d);
    d->live = live;
    d->config.capacity = (uint32_t)capacity;
    d->config.key_max = KEY_LEN;
    d->config.response_max = RESPONSE_LEN;
    d->config.retention_ms = (uint32_t)live;
    d->config.in_ram = (uint8_t)setup->in_ram;
    d->config.durability = setup->batch ? IDEM_BATCH : IDEM_EACH;
    d->config.volatile_claims = (uint8_t)setup->volatile_claims;
    memset(d->config.secret, 7, sizeof d->config.secret);
    if (setup->journal)
        device_medium(d, setup, times);
    device_boot(d);
}

static void device_close(struct device *d)
{
    int broken = d->config.capacity <= 100000 ? idem_check(&d->table) : 0;

    if (broken)
        fail("idem_check answers %d", broken);
    free(d->bytes);
    free(d->memory);
}

/* ---------------------------------------------------------------------------
   Commands
   ------------------------------------------------------------------------ */
static int begin(struct device *d, idem_claim *claim, uint64_t number,
                 uint32_t now_ms)
{
    uint8_t key[KEY_LEN], response[RESPONSE_LEN];
    idem_request request = { .key = key, .key_len = KEY_LEN, .payload = key,
                             .payload_len = KEY_LEN };
    idem_reply reply = { .buffer = response, .buffer_size = sizeof response };
    int result;

    make_key(key, number);
    result = idem_begin(&d->table, claim, &reply, &request, now_ms);
    if (result == IDEM_REPLAY && memcmp(response, key, sizeof response) != 0)
        fail("another response");
    return result;
}

static void fresh(struct device *d, uint64_t count)
{
    uint64_t until = d->number + count;

    for (; d->number < until; d->number++) {
        uint32_t now_ms = (uint32_t)d->number;
        uint8_t response[RESPONSE_LEN];
        idem_outcome outcome = { .response = response,
                                 .response_len = sizeof response };
        idem_claim claim;
        int result = begin(d, &claim, d->number, now_ms);
        make_key(response, d->number);
        if (result != IDEM_EXECUTE ||
            idem_complete(&d->table, &claim, &outcome, now_ms) != IDEM_OK)
            fail("a fresh key: %s", idem_text(result));
    }
}

static void replay(struct device *d, uint64_t count)
{
    idem_claim claim;
    uint64_t i;

    for (i = 0; i < count; i++) {
        uint64_t back = 1 + below(d->live - 1, mix(i + d->number));
        if (begin(d, &claim, d->number - back, (uint32_t)d->number - 1) !=
            IDEM_REPLAY)
            fail("a duplicate is not known");
    }
}

/* Nanoseconds of processor time a command */
static double timed(struct device *d, void (*run)(struct device *, uint64_t),
                    uint64_t count)
{
    double start = clock_us(CLOCK_PROCESS_CPUTIME_ID);

    run(d, count);
    return (clock_us(CLOCK_PROCESS_CPUTIME_ID) - start) * 1e3 / (double)count;
}

struct cost {
    struct sample fresh, replay;
    double programs, bytes, reads;  // a fresh command, a duplicate
};

/* A table of that capacity in which so many keys are live, after every slot has
   been used */
static void measure(struct cost *c, const struct setup *setup,
                    uint64_t capacity, uint64_t live, uint64_t count)
{
    struct device d;
    uint64_t before, bytes;
    int i;

    memset(c, 0, sizeof *c);
    device_open(&d, setup, capacity, live, 1);
    fresh(&d, capacity + live);
    for (i = 0; i < reps; i++) {
        before = d.programs;
        bytes = d.programmed;
        sample_add(&c->fresh, timed(&d, fresh, count));
        c->programs = (double)(d.programs - before) / (double)count;
        c->bytes = (double)(d.programmed - bytes) / (double)count;
        before = d.reads;
        sample_add(&c->replay, timed(&d, replay, count));
        c->reads = (double)(d.reads - before) / (double)count;
    }
    device_close(&d);
}

static void print_cost(struct cost *c)
{
    print_sample(&c->fresh, " %.0f (%.0f..%.0f) |");
    print_sample(&c->replay, " %.0f (%.0f..%.0f) |");
}

/* ---------------------------------------------------------------------------
   The tables
   ------------------------------------------------------------------------ */
static const struct setup *const sized[] = {
    &setups[NO_JOURNAL], &setups[JOURNAL], &setups[IN_RAM] };

static void measure_sizes(uint64_t most)
{
    struct cost c;
    uint64_t keys;
    size_t s;

    printf("\nNanoseconds a command by the number of keys, all slots live: "
           "fresh, duplicate\n\n| keys |");
    for (s = 0; s < COUNT(sized); s++)
        printf(" %s: fresh | duplicate |", sized[s]->name);
    printf("\n|--:|--:|--:|--:|--:|--:|--:|\n");
    for (keys = 16; keys <= most; keys *= 4) {
        char label[24];
        snprintf(label, sizeof label, "%lu", (unsigned long)keys);
        printf("| %s |", label);
        for (s = 0; s < COUNT(sized); s++) {
            measure(&c, sized[s], keys, keys, keys < 20000 ? 20000 : keys / 2);
            print_cost(&c);
            plot_row("scale_keys", sized[s]->name, label, &c.fresh);
        }
        printf("\n");
        fflush(stdout);
    }
}

static void measure_load(void)
{
    static const int percents[] = { 10, 25, 50, 75, 90, 100 };
    enum { CAPACITY = 65536 };
    struct cost c;
    size_t i;

    printf("\nNanoseconds a command by how full a table of %d slots is\n\n"
           "| live, %% of the slots | fresh | duplicate |\n|--:|--:|--:|\n",
           CAPACITY);
    for (i = 0; i < COUNT(percents); i++) {
        char label[24];
        snprintf(label, sizeof label, "%d", percents[i]);
        measure(&c, &setups[NO_JOURNAL], CAPACITY,
                (uint64_t)CAPACITY * (uint64_t)percents[i] / 100, 50000);
        printf("| %s |", label);
        print_cost(&c);
        printf("\n");
        plot_row("scale_load", "fresh", label, &c.fresh);
        plot_row("scale_load", "duplicate", label, &c.replay);
    }
}

/* Opens what was written by so many commands in a ring of so many sectors. */
static void measure_open(uint64_t most)
{
    uint64_t keys;
    uint32_t times;

    printf("\nMilliseconds to open, by what the journal holds: keys ever "
           "written, half of them live;\nthe ring as small as it can be, or "
           "four times that\n\n"
           "| keys | ring, bytes | journal, bytes | open, ms |\n"
           "|--:|--:|--:|--:|\n");
    for (keys = 100; keys <= most; keys *= 10)
        for (times = 1; times <= 4; times += 3) {
            struct sample ms = { .count = 0 };
            struct device d;
            char label[24];
            int i;
            device_open(&d, &setups[JOURNAL], keys, keys / 2, times);
            fresh(&d, keys);
            for (i = 0; i < reps; i++) {
                double start = clock_us(CLOCK_PROCESS_CPUTIME_ID);
                if (idem_open(&d.table, &d.config, d.memory, d.memory_size,
                              (uint32_t)d.number - 1) != IDEM_OK)
                    fail("cannot open");
                start = clock_us(CLOCK_PROCESS_CPUTIME_ID) - start;
                sample_add(&ms, start / 1e3);
            }
            replay(&d, 10);
            snprintf(label, sizeof label, "%lu", (unsigned long)d.programmed);
            printf("| %lu | %lu | %s |", (unsigned long)keys,
                   (unsigned long)SECTOR_SIZE * d.storage.sector_count, label);
            print_sample(&ms, " %.3f (%.3f..%.3f) |\n");
            if (times == 1)
                plot_row("scale_open", "open", label, &ms);
            device_close(&d);
        }
}

static void measure_options(void)
{
    enum { CAPACITY = 10000, COMMANDS = 20000 };
    struct cost c;
    size_t s;

    printf("\nEach option: %d slots, all live.  Per command\n\n"
           "| | fresh, ns | duplicate, ns | programs | bytes | reads for a "
           "duplicate |\n|---|--:|--:|--:|--:|--:|\n", CAPACITY);
    for (s = 0; s < COUNT(setups); s++) {
        measure(&c, &setups[s], CAPACITY, CAPACITY, COMMANDS);
        printf("| %s |", setups[s].name);
        print_cost(&c);
        printf(" %.3f | %.1f | %.2f |\n", c.programs, c.bytes, c.reads);
        plot_row("options", setups[s].name, "ns", &c.fresh);
    }
}

/* The row of this build in scale.sh's table of builds */
static void print_row(const char *name)
{
    struct cost c;

    measure(&c, &setups[NO_JOURNAL], 10000, 10000, 20000);
    printf("| %s |", name);
    print_cost(&c);
    printf("\n");
    plot_row("builds", name, "ns", &c.fresh);
}

int main(int argc, char **argv)
{
    int is_short = argc > 1 && strcmp(argv[1], "--short") == 0;

    if (argc == 3 && strcmp(argv[1], "--row") == 0) {
        print_row(argv[2]);
        return 0;
    }
    if (is_short)
        reps = REPS_SHORT;
    measure_sizes(is_short ? 20000 : 1 << 20);
    measure_load();
    measure_open(is_short ? 10000 : 100000);
    measure_options();
    return 0;
}
