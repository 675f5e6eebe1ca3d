/* SPDX-License-Identifier: 0BSD */
/*
 * idem.h in a file beside everything else that keeps such a promise on a Linux
 * machine: the same commands, each claim durable before it is executed, each
 * outcome before it is answered (store.h).
 *
 *   sh tests/bench/build_durable.sh && build/bench_durable [--short] [folder]
 *                              the folder is where the files go, "build" by
 *                              default: a disk, not a RAM disk
 *
 * Disks vary by the minute, so all take turns, a batch each, after the floor:
 * two times pwrite and fdatasync, into a file full of zeros.  The medians of a
 * turn make a ratio to the floor; of all turns the median is told, with the
 * least and the most.
 * Nothing expires meanwhile: what others need to forget keys costs them
 * nothing here.
 *
 * Wrong answers fail it, times never do: each store must tell claimed keys
 * (IDEM_BUSY), finished ones (with the right outcome), other payloads, and
 * refuse an outcome with another token, before, during and after it is
 * measured, and after it was closed and opened.
 */
#define _XOPEN_SOURCE 700

#define IDEM_FILE_STORAGE
#define IDEM_IMPLEMENTATION
#include "idem.h"
#include "tests/bench/store.h"

#include <errno.h>
#include <limits.h>
#include <sys/stat.h>

/* READ_AHEAD: memory beyond what the table needs makes opening faster */
enum { CAPACITY = 150000, SECTOR_SIZE = 262144, READ_AHEAD = 65536 };

static const uint8_t secret[16] = {
    0x5b, 0x0e, 0x91, 0x27, 0xd4, 0x66, 0x8f, 0x13,
    0x77, 0xc2, 0x3a, 0xe8, 0x19, 0xbd, 0x40, 0xf5,
};

/* ---------------------------------------------------------------------------
   What the stores share
   ------------------------------------------------------------------------ */
uint64_t self_written(void)
{
    FILE *f = fopen("/proc/self/io", "r");
    unsigned long long bytes = 0;
    char line[128];

    while (f && fgets(line, sizeof line, f))
        sscanf(line, "wchar: %llu", &bytes);
    if (f)
        fclose(f);
    return bytes;
}

uint64_t new_token(void)
{
    static uint64_t last;
    struct timespec t;
    uint64_t now;

    clock_gettime(CLOCK_REALTIME, &t);
    now = (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
    last = now > last ? now : last + 1;
    return last;
}

static struct {
    const char *name;               // NULL: none
    char folder[512];
} servers[2];

static int server(const char *which, const char *what, const char *folder)
{
    char line[800];

    snprintf(line, sizeof line, "sh tests/bench/server.sh %s %s '%s'", which,
             what, folder);
    fflush(stdout);
    return system(line);
}

void server_stop(const char *which)
{
    size_t i;

    for (i = 0; i < COUNT(servers); i++)
        if (servers[i].name && strcmp(servers[i].name, which) == 0) {
            server(which, "stop", servers[i].folder);
            servers[i].name = NULL;
        }
}

static void stop_all(void)
{
    server_stop("redis");
    server_stop("postgres");
}

int server_start(const char *which, const char *folder)
{
    size_t i = servers[0].name != NULL;

    if (server(which, "start", folder))
        return -1;
    servers[i].name = which;
    snprintf(servers[i].folder, sizeof servers[i].folder, "%s", folder);
    return 0;
}

/* Makes a command from its number. */
static void make_job(struct job *job, uint64_t number)
{
    memset(job, 0, sizeof *job);
    make_key(job->key, number);
    make_key(job->payload, number + 1);
    make_key(job->response, number + 2);
    job->fingerprint = idem_siphash(secret, 2, 4, job->payload, PAYLOAD_LEN);
}

/* ---------------------------------------------------------------------------
   idem.h: batch mode, where each batch ends in idem_sync; with one command in
   a batch that is what IDEM_EACH does
   ------------------------------------------------------------------------ */
static struct {
    idem_file file;
    idem_config config;
    idem_table table;
    void *memory;
} own;

static uint32_t own_now(void)
{
    return (uint32_t)(now_us() / 1000);
}

/* Asks the table how many sectors it takes, and how much memory. */
static uint32_t own_sectors(void)
{
    idem_storage wide = { .read = idemi_file_read, .prog = idemi_file_prog,
                          .sector_size = SECTOR_SIZE, .sector_count = 1,
                          .prog_size = 1 };
    uint32_t sectors;
    void *memory;

    own.config.storage = &wide;
    idem_open(&own.table, &own.config, NULL, 0, 0);
    memory = malloc(own.table.needed);
    if (!memory || idem_open(&own.table, &own.config, memory, own.table.needed,
                             0) != IDEM_E_SPACE)
        fail("idem.h: cannot be sized");
    sectors = (uint32_t)own.table.needed;
    free(memory);
    return sectors;
}

static const char *open_own(const char *folder)
{
    char path[600];
    uint32_t sectors;
    size_t size;

    memset(&own, 0, sizeof own);
    own.config.capacity = CAPACITY;
    own.config.key_max = KEY_LEN;
    own.config.response_max = RESPONSE_LEN;
    own.config.durability = IDEM_BATCH;
    memcpy(own.config.secret, secret, sizeof secret);
    sectors = own_sectors();
    snprintf(path, sizeof path, "%s/keys.idem", folder);
    if (idem_file_open(&own.file, path, SECTOR_SIZE, sectors) != IDEM_OK)
        fail("idem.h: cannot open %s", path);
    own.config.storage = &own.file.storage;
    idem_open(&own.table, &own.config, NULL, 0, 0);
    size = own.table.needed + READ_AHEAD;
    own.memory = malloc(size);
    if (!own.memory || idem_open(&own.table, &own.config, own.memory, size,
                                 own_now()) != IDEM_OK)
        fail("idem.h: cannot open the table");
    return NULL;
}

static void close_own(void)
{
    if (idem_check(&own.table))
        fail("idem.h: idem_check answers %d", idem_check(&own.table));
    idem_file_close(&own.file);
    free(own.memory);
}

static void sync_own(void)
{
    if (idem_sync(&own.table) != IDEM_OK)
        fail("idem.h: sync");
}

static void begin_own(struct job *jobs, int count)
{
    int i, granted = 0;

    for (i = 0; i < count; i++) {
        struct job *job = &jobs[i];
        idem_request request = { .key = job->key, .key_len = KEY_LEN,
                                 .payload = job->payload,
                                 .payload_len = PAYLOAD_LEN };
        idem_reply reply = { .buffer = job->stored,
                             .buffer_size = RESPONSE_LEN };
        idem_claim claim;
        job->answer = idem_begin(&own.table, &claim, &reply, &request,
                                 own_now());
        job->token = claim.token;
        job->slot = claim.slot;
        job->attempt = claim.attempt;
        granted |= job->answer == IDEM_EXECUTE;
    }
    if (granted)
        sync_own();
}

static void complete_own(struct job *jobs, int count)
{
    int i;

    for (i = 0; i < count; i++) {
        struct job *job = &jobs[i];
        idem_outcome outcome = { .response = job->response,
                                 .response_len = RESPONSE_LEN };
        idem_claim claim = { job->token, job->slot, job->attempt };
        job->answer = idem_complete(&own.table, &claim, &outcome, own_now());
    }
    sync_own();
}

static const struct store own_store = { "idem.h", open_own, close_own,
                                        begin_own, complete_own,
                                        self_written };

static const struct store *const stores[] = {
    &own_store,
#ifdef BENCH_SQLITE
    &sqlite_store,
#endif
#ifdef BENCH_LMDB
    &lmdb_store,
#endif
#ifdef BENCH_LEVELDB
    &leveldb_store,
#endif
#ifdef BENCH_REDIS
    &redis_store,
#endif
#ifdef BENCH_POSTGRES
    &postgres_store,
#endif
};

/* ---------------------------------------------------------------------------
   One store under measurement
   ------------------------------------------------------------------------ */
static const int depths[] = { 1, 8, 64 };
static const int rounds[] = { 16, 8, 4 };     // of a turn

struct subject {
    const struct store *store;
    char folder[512];
    int is_open;
    uint64_t number;                            // next key
    struct sample us[COUNT(depths)];            // a command
    struct sample to_bare[COUNT(depths)];
    uint64_t bytes[COUNT(depths)], commands[COUNT(depths)];
    struct sample open_ms, first_us;
};

static struct job jobs[JOBS_MAX];

static void expect(const struct subject *s, const struct job *job, int answer,
                   const char *what)
{
    if (job->answer != answer)
        fail("%s: %s: %s", s->store->name, what, idem_text(job->answer));
}

/* Claims and completes fresh keys, so many together. */
static void run_batch(struct subject *s, int count)
{
    int i;

    for (i = 0; i < count; i++)
        make_job(&jobs[i], s->number++);
    s->store->begin(jobs, count);
    for (i = 0; i < count; i++)
        expect(s, &jobs[i], IDEM_EXECUTE, "a fresh key");
    s->store->complete(jobs, count);
    for (i = 0; i < count; i++)
        expect(s, &jobs[i], IDEM_OK, "complete");
}

/* A duplicate of a finished key, and the same key with another payload */
static void check_finished(struct subject *s, uint64_t number)
{
    struct job job;

    make_job(&job, number);
    s->store->begin(&job, 1);
    expect(s, &job, IDEM_REPLAY, "a duplicate");
    if (memcmp(job.stored, job.response, RESPONSE_LEN) != 0)
        fail("%s: another response", s->store->name);
    make_job(&job, number);
    job.payload[0] ^= 1;
    job.fingerprint = idem_siphash(secret, 2, 4, job.payload, PAYLOAD_LEN);
    s->store->begin(&job, 1);
    expect(s, &job, IDEM_MISMATCH, "another payload");
}

/* The life of a key, with everything that must be refused */
static void check_life(struct subject *s)
{
    struct job job, again;

    make_job(&job, s->number);
    make_job(&again, s->number);
    s->store->begin(&job, 1);
    expect(s, &job, IDEM_EXECUTE, "a fresh key");
    s->store->begin(&again, 1);
    expect(s, &again, IDEM_BUSY, "a claimed key");
    again = job;
    again.token++;
    s->store->complete(&again, 1);
    expect(s, &again, IDEM_E_FENCED, "another token");
    s->store->complete(&job, 1);
    expect(s, &job, IDEM_OK, "complete");
    s->store->complete(&job, 1);
    expect(s, &job, IDEM_E_FENCED, "complete again");
    check_finished(s, s->number++);
}

/* ---------------------------------------------------------------------------
   The floor
   ------------------------------------------------------------------------ */
enum { BARE_SIZE = 16777216 };

static struct {
    int fd;
    off_t at;
} bare;

static void bare_open(const char *folder)
{
    static const uint8_t zeros[65536];
    char path[600];
    off_t at;

    snprintf(path, sizeof path, "%s/bare", folder);
    bare.fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    for (at = 0; bare.fd >= 0 && at < BARE_SIZE; at += sizeof zeros)
        if (pwrite(bare.fd, zeros, sizeof zeros, at) != (ssize_t)sizeof zeros)
            fail("%s: cannot be written", path);
    if (bare.fd < 0 || fsync(bare.fd) < 0)
        fail("%s: cannot be written", path);
}

static void bare_write(size_t len)
{
    static const uint8_t bytes[64] = { 1 };

    if (bare.at + (off_t)len > BARE_SIZE)
        bare.at = 0;
    if (pwrite(bare.fd, bytes, len, bare.at) != (ssize_t)len ||
        fdatasync(bare.fd) < 0)
        fail("the bare file cannot be written");
    bare.at += (off_t)len;
}

/* Microseconds of a command with as many bytes as idem.h's records have */
static double bare_us(void)
{
    double start = now_us();

    bare_write(36);
    bare_write(29);
    return now_us() - start;
}

/* ---------------------------------------------------------------------------
   Commands
   ------------------------------------------------------------------------ */
static double batch_us(struct subject *s, size_t depth)
{
    int count = depths[depth];
    uint64_t before = s->store->written();
    double start = now_us(), us;

    run_batch(s, count);
    us = (now_us() - start) / count;
    s->bytes[depth] += s->store->written() - before;
    s->commands[depth] += (uint64_t)count;
    return us;
}

/* Puts numbers from 0 on in an order that depends on the seed: who comes after
   whom matters, since a sync may wait for what another left to be written. */
static void shuffle(size_t *order, size_t count, uint32_t seed)
{
    size_t i;

    for (i = 0; i < count; i++) {
        size_t at = mix(seed * 64 + (uint32_t)i) % (i + 1);
        order[i] = order[at];
        order[at] = i;
    }
}

/* So many rounds in which each has one batch; of a turn the medians count. */
static void take_turn(struct subject *subjects, size_t depth, int is_warm,
                      struct sample *floor_us)
{
    struct sample us[COUNT(stores)], least = { .count = 0 };
    static uint32_t turns;
    size_t order[COUNT(stores) + 1];
    int round;
    size_t i;

    memset(us, 0, sizeof us);
    for (round = 0; round < rounds[depth]; round++) {
        shuffle(order, COUNT(order), turns++);
        for (i = 0; i < COUNT(order); i++) {
            size_t s = order[i];
            if (s == COUNT(stores))
                sample_add(&least, bare_us());
            else if (subjects[s].is_open)
                sample_add(&us[s], batch_us(&subjects[s], depth));
        }
    }
    for (i = 0; i < COUNT(stores); i++) {
        struct subject *s = &subjects[i];
        if (!s->is_open)
            continue;
        check_finished(s, below(s->number, mix(s->number)));
        if (is_warm) {
            sample_add(&s->us[depth], sample_median(&us[i]));
            sample_add(&s->to_bare[depth],
                       sample_median(&us[i]) / sample_median(&least));
        }
    }
    if (is_warm && depth == 0)
        sample_add(floor_us, sample_median(&least));
}

static void print_commands(struct subject *subjects, struct sample *floor_us)
{
    size_t d, i;
    char plot[32];

    printf("\nMicroseconds a command: claim and outcome durable.  Medians of "
           "turns (least..most).\nBare: two times pwrite and fdatasync, of the "
           "same turn.  Bytes: what was handed to write\ncalls; of Redis "
           "its file, of PostgreSQL its log.\n\n"
           "| in flight | | us | / bare | bytes |\n|--:|---|--:|--:|--:|\n"
           "| 1 | bare |");
    print_sample(floor_us, " %.0f (%.0f..%.0f) | 1 | 65 |\n");
    for (d = 0; d < COUNT(depths); d++) {
        snprintf(plot, sizeof plot, "durable_%d", depths[d]);
        for (i = 0; i < COUNT(stores); i++) {
            struct subject *s = &subjects[i];
            if (!s->is_open)
                continue;
            printf("| %d | %s |", depths[d], s->store->name);
            print_sample(&s->us[d], " %.0f (%.0f..%.0f) |");
            print_sample(&s->to_bare[d], " %.2f (%.2f..%.2f) |");
            printf(" %.0f |\n",
                   (double)s->bytes[d] / (double)s->commands[d]);
            plot_row(plot, s->store->name, "us", &s->to_bare[d]);
        }
    }
    fflush(stdout);
}

static void measure_commands(struct subject *subjects, int turns)
{
    struct sample floor_us = { .count = 0 };
    int turn;
    size_t d;

    for (turn = -1; turn < turns; turn++)       // the first warms up
        for (d = 0; d < COUNT(depths); d++)
            take_turn(subjects, d, turn >= 0, &floor_us);
    print_commands(subjects, &floor_us);
}

/* ---------------------------------------------------------------------------
   Opening
   ------------------------------------------------------------------------ */
static void reopen(struct subject *s)
{
    uint64_t number = s->number / 2;
    struct job job;
    double start;

    s->store->close();
    start = now_us();
    if (s->store->open(s->folder))
        fail("%s: cannot be opened again", s->store->name);
    sample_add(&s->open_ms, (now_us() - start) / 1000);
    make_job(&job, number);
    start = now_us();
    s->store->begin(&job, 1);
    sample_add(&s->first_us, now_us() - start);
    expect(s, &job, IDEM_REPLAY, "the first duplicate");
    check_finished(s, below(s->number, mix(s->number + 1)));
}

static void measure_open(struct subject *subjects, uint64_t keys, int times)
{
    size_t i;
    int t;

    for (i = 0; i < COUNT(stores); i++)
        while (subjects[i].is_open && subjects[i].number < keys)
            run_batch(&subjects[i], JOBS_MAX);
    for (t = 0; t < times; t++)
        for (i = 0; i < COUNT(stores); i++)
            if (subjects[i].is_open)
                reopen(&subjects[i]);
    printf("\nOpening with %lu keys, files in the system's memory; of a "
           "server, starting it.  Then\nthe first duplicate.\n\n"
           "| | open, ms | first duplicate, us |\n|---|--:|--:|\n",
           (unsigned long)keys);
    for (i = 0; i < COUNT(stores); i++) {
        struct subject *s = &subjects[i];
        if (!s->is_open)
            continue;
        printf("| %s |", s->store->name);
        print_sample(&s->open_ms, " %.1f (%.1f..%.1f) |");
        print_sample(&s->first_us, " %.0f (%.0f..%.0f) |\n");
        plot_row("durable_open", s->store->name, "ms", &s->open_ms);
    }
}

/* ---------------------------------------------------------------------------
   The program
   ------------------------------------------------------------------------ */
static void open_all(struct subject *subjects, const char *folder)
{
    size_t i;

    for (i = 0; i < COUNT(stores); i++) {
        struct subject *s = &subjects[i];
        const char *why;
        s->store = stores[i];
        snprintf(s->folder, sizeof s->folder, "%s/%s", folder,
                 s->store->name);
        if (mkdir(s->folder, 0755) < 0)
            fail("%s: %s", s->folder, strerror(errno));
        why = s->store->open(s->folder);
        s->is_open = !why;
        if (why)
            printf("- skipped: %s: %s\n", s->store->name, why);
        else
            check_life(s);
    }
}

/* A new folder in that one: its name begins with a slash, for libpq. */
static void make_folder(char folder[400], const char *where)
{
    char path[PATH_MAX];

    if (!realpath(where, path))
        fail("%s: %s", where, strerror(errno));
    snprintf(folder, 400, "%s/durable.XXXXXX", path);
    if (!mkdtemp(folder) || chmod(folder, 0755) < 0)
        fail("%s: %s", where, strerror(errno));
}

static void remove_folder(const char *folder)
{
    char line[500];

    snprintf(line, sizeof line, "rm -rf '%s'", folder);
    if (system(line))
        fail("%s: cannot be removed", folder);
}

int main(int argc, char **argv)
{
    static struct subject subjects[COUNT(stores)];
    const char *where = "build";
    char folder[400];
    int is_short = 0, i;

    for (i = 1; i < argc; i++)
        if (strcmp(argv[i], "--short") == 0)
            is_short = 1;
        else
            where = argv[i];
    make_folder(folder, where);
    atexit(stop_all);
    bare_open(folder);
    open_all(subjects, folder);
    measure_commands(subjects, is_short ? 5 : 21);
    measure_open(subjects, is_short ? 10000 : 100000, is_short ? 3 : 5);
    for (i = 0; i < (int)COUNT(stores); i++)
        if (subjects[i].is_open) {
            check_life(&subjects[i]);
            subjects[i].store->close();
        }
    remove_folder(folder);
    return 0;
}
