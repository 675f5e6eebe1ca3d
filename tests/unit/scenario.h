/* SPDX-License-Identifier: 0BSD */
/*
 * Scenarios: promises of a table as lines of calls, each with its answer; where
 * there is none, the model checks it (tests/model/call.h).  A scenario is a
 * test of its own, run on each kind of medium; or once, in RAM.
 *
 *     { "what it shows", "modes Ba:execute Ca:ok P Ba:replay" }
 *
 * "times=9" in front runs the rest of the line nine times; "nor: Ba", on that
 * medium alone.
 * In "fail1,at=@,how=#" (a program fails) # stands for 0 to 2, @ for 0 to 11,
 * one after the other.
 *
 * With bars, "before | cut | after", power is cut in each storage operation of
 * the middle, in at most some twenty variants of each, and `after` is run after
 * the restart.  In the end the table must be as in the model, even after one
 * more restart.
 *
 * A test may do more than calls: damage the medium, let callbacks fail at the
 * place of an earlier program, count.  A line goes on where the one before
 * ended:
 *
 *     device *d = device_on(&nor, "Ba Ca Bb Cb");
 *     damage(newest().at, newest().len, ANYTHING);
 *     run("P lost1 Ba:replay Bb:recover");
 *
 * .. which may be a scenario, too:
 *
 *     "Ba Ca Bb Cb note damage P lost1 Ba:replay Bb:recover"
 *
 *     note1   notes the newest record, or the n-th operation of the latest call
 *             before that, or, back, of the call before
 *     damage1 damages what was noted: how, as in enum; at: the bit that is
 *             flipped; back: what came after it
 *     restore undoes the last LOST
 *     unjudged format     the model takes the device for damaged; the journal
 *             is formatted
 *     rotated untouched   the latest call began a sector; it did not touch the
 *             storage, or: n
 *     loss evicted1 dead  a loss is counted; senders_evicted is 1; as many
 *             sectors of the ring are dead as must be
 *     uncertain9 pa       unknown keys are uncertain for, or up to: n; which
 *             attempt a claim is: n
 *     cut2    the power goes, before that operation, as words.h has it; after
 *             the call that it interrupts the line goes on
 *
 * After damage the model knows only the outcomes that a key has had: an answer
 * that the line does not have must be execute or ok.  Where a record is, is
 * known from the program that wrote it.
 */
#ifndef SCENARIO_H
#define SCENARIO_H

#include "unit.h"

#include "../model/call.h"

// One medium of each kind; and one whose sectors are large, one with a sync, and
// one whose sectors are as large as 16 bits of a token count.
static const medium nor = { "nor", FLASH_NOR, 0, 1, 512, 0xFF };
static const medium nor_8 = { "nor_8", FLASH_NOR, 0, 8, 512, 0xFF };
static const medium ecc = { "ecc", FLASH_ECC, 0, 16, 1024, 0xFF };
static const medium zeros = { "zeros", FLASH_NOR, SPLIT, 4, 512, 0x00 };
static const medium eeprom = { "eeprom", FLASH_INPLACE, 0, 1, 500, 0xFF };
static const medium cached = { "cached", FLASH_INPLACE, CACHE, 4, 512, 0x00 };
static const medium wide = { "wide", FLASH_ECC, 0, 64, 2048, 0xFF };
static const medium roomy = { "roomy", FLASH_NOR, 0, 8, 4096, 0xFF };
static const medium synced = { "synced", FLASH_NOR, CACHE, 8, 512, 0xFF };
static const medium *const media[] = { &nor, &nor_8, &ecc, &zeros, &eeprom,
                                       &cached, &wide };
static const medium vast = { "vast", FLASH_NOR, 0, 1, 65536, 0xFF };
static const medium *const more_media[] = { &roomy, &synced, &vast };

enum { LEASE = 100, RETENTION = 100000 };
enum { KEY_MAX = 16, RESPONSE_MAX = 24, STATE_MAX = 6 };
enum { KEYS_SCENARIO = 20, KEYS_TEST = 96 };    // the last one is K's

// A program or an erase, as it was asked for.
typedef struct operation {
    int call;
    uint32_t at, len;
} operation;

static device the;
static known keys[KEYS_TEST];
static const medium *on;
static char running[1000];                 // for broken()
enum { SHOWN_MAX = 1 };                 // failures that are printed in full

// What the latest call did that wrote.
static struct {
    uint32_t call, count, header_len;
    operation of[512], before;  // the last one of the call before that wrote
} wrote;

static uint32_t dead_at, dead_len;      // bytes that cannot be read

static void broken(const char *what, const char *file, int line)
{
    static unsigned failures;

    print_error("%s:%d: %s\non %s: %s\n", file, line, what, on->name, running);
    if (failures++ < SHOWN_MAX)
        device_print(&the);
    fail();
    abort();
}

/* ----------------------------------------------------------------- >>devices */

static int scenario_word(const call *c);

static inline void watch_writes(void *arg, const flash *f, const flash_op *op)
{
    if (op->call == FLASH_SYNC)
        return;
    if (wrote.call != ((device *)arg)->model.calls && wrote.count) {
        wrote.before = wrote.of[wrote.count - 1];
        wrote.count = 0;
    }
    wrote.call = ((device *)arg)->model.calls;
    if (op->call == FLASH_PROG && op->at % f->sector_size == 0)
        wrote.header_len = op->len;
    if (wrote.count < COUNT(wrote.of))
        wrote.of[wrote.count++] = (operation){ op->call, op->at, op->len };
}

static inline int read_alive(void *ctx, uint32_t at, void *dst, uint32_t len)
{
    int result = device_read(ctx, at, dst, len);

    if (!dead_len || at >= dead_at + dead_len || dead_at >= at + len)
        return result;
    memset(dst, 0x5A, len);
    return 77;
}

/* The device, anew, with that many keys, on such a medium, with the modes of a
   line; returns the rest of that. */
static const char *make_device(const medium *m, unsigned count,
                               const char *line)
{
    uint32_t sectors;

    device_end(&the);
    device_reset(&the);
    device_plug(&the, m);
    memset(&wrote, 0, sizeof wrote);
    dead_len = 0;
    on = m;
    (void)call_modes(&the, "capacity=8 key=16 response=24 state=6 scopes=2 "
                           "lease=100 retention=100000 polls=2");
    line = call_modes(&the, line);
    sectors = device_sectors(&the);
    assert_true(sectors || the.in_ram);
    if (the.storage.sector_count < sectors)
        the.storage.sector_count = sectors;
    device_make(&the, keys, count);
    the.medium.watch = watch_writes;    // a cut's variant is asked for
    the.medium.draws = 2;
    the.storage.read = read_alive;
    the.word = scenario_word;
    the.now = UINT32_MAX - 5;
    device_open(&the);
    return line;
}

/* A copy of a line in which the digits stand that are wanted. */
static const char *filled(const char *line, unsigned how, unsigned at)
{
    static char text[1000];
    size_t len = 0;

    for (; *line && len < sizeof text - 12; line++)
        if (*line == '@')
            len += (size_t)sprintf(text + len, "%u", at);
        else
            text[len++] = (char)(*line == '#' ? '0' + (int)how : *line);
    text[len] = 0;
    return text;
}

/* After a call during which the power went, the next word. */
static inline void run_line(const char *line)
{
    call_line(&the, line);
    while (the.medium.off && *(the.at += strspn(the.at, " ")))
        call_line(&the, the.at);
}

static inline void run(const char *line)
{
    snprintf(running, sizeof running, "%s", line);
    run_line(line);
}

/* .. in which @ is a number. */
static inline void run_of(const char *line, unsigned n)
{
    run(filled(line, 0, n));
}

/* The test's device on such a medium; its modes and first calls. */
static inline device *device_on(const medium *m, const char *line)
{
    run(make_device(m, KEYS_TEST, line));
    return &the;
}

/* A call; what it answers, which may be anything. */
static inline int answer(char what, unsigned key)
{
    call c = call_of(what, key);

    return call_table(&the, &c);
}

/* Begins what no letter names; its reply is the device's. */
static inline int begin_request(idem_claim *claim, const idem_request *rq)
{
    memset(&the.reply, 0x5A, sizeof the.reply);
    return idem_begin(the.table, claim, &the.reply, rq, the.now);
}

/* The power goes and comes; what the opening answers. */
static inline int reopen(void)
{
    the.damaged = 1;
    return call_restart(&the, 0);
}

/* ----------------------------------------------------- >>wrote  by a call */

/* The program that was done last: that of the newest record, if the call did
   not rotate. */
static inline operation newest(void)
{
    assert_int_not_equal(wrote.count, 0);
    return wrote.of[wrote.count - 1];
}

/* Where the sector begins that was written to last. */
static inline uint32_t newest_sector(void)
{
    return newest().at - newest().at % the.medium.sector_size;
}

/* How many programs the latest call that wrote did before that of a header, in
   its rotation: the records that it relocated.  -1: it did not rotate. */
static inline int relocated(void)
{
    int count = 0;

    for (uint32_t i = 0; i < wrote.count; i++) {
        if (wrote.of[i].call != FLASH_PROG)
            continue;
        if (wrote.of[i].at % the.medium.sector_size == 0)
            return count;
        count++;
    }
    return -1;
}

/* ------------------------------------------------------------------ >>damage */

// LOST: as if it had never been, to those who only read.  HEADER: that of its
// sector, beyond what a bit could mend.  OTHER_HEADER: there stands that of the
// sector before.
enum { ANYTHING, ZEROS, DEAD, HOWS, BLANK = HOWS, LOST, FLIP, HEADER,
       OTHER_HEADER };

static inline void damage(uint32_t at, uint32_t len, int how)
{
    the.damaged = 1;
    if (how == ANYTHING)
        flash_noise(&the.medium, at, len, at);
    else if (how != DEAD)
        flash_fill(&the.medium, at, len, how == ZEROS ? 0 : the.medium.erased);
    else {
        dead_at = at;
        dead_len = len;
    }
}

static inline void flip(uint32_t at, unsigned bit)
{
    the.damaged = 1;
    flash_flip(&the.medium, at, bit);
}

static struct { operation of; uint8_t bytes[512]; } hidden;

static inline void lose(operation of)
{
    assert_true(of.len <= sizeof hidden.bytes);
    hidden.of = of;
    memcpy(hidden.bytes, the.medium.bytes + of.at, of.len);
    memset(the.medium.bytes + of.at, the.medium.erased, of.len);
    the.damaged = 1;
}

static inline void lose_header(uint32_t sector)
{
    damage(sector + 16, 16, ANYTHING);
}

static inline void copy_header(uint32_t sector)
{
    const uint8_t *before = the.medium.bytes + sector -
                            (sector ? the.medium.sector_size : 0);

    the.damaged = 1;
    flash_load(&the.medium, sector, before, HEADER_BYTES);
}

/* Makes the sum of a header right. */
static inline void set_sum(uint8_t *header)
{
    enum { SUM = 14 };
    uint32_t sum = 0;

    memset(header + SUM, 0, 2);
    for (unsigned i = 0; i < HEADER_BYTES; i += 2)
        sum += header[i] + ((uint32_t)header[i + 1] << 8);
    sum = 0xFFFF - (sum & 0xFFFF) - (sum >> 16);
    header[SUM] = (uint8_t)sum;
    header[SUM + 1] = (uint8_t)(sum >> 8);
}

/* .. of what was the newest record once. */
static inline void spoil(operation of, const call *c)
{
    uint32_t sector = of.at - of.at % the.medium.sector_size;

    if (c->back) {
        of.at += of.len;
        of.len = newest().at + newest().len - of.at;
    }
    switch (c->how) {
    case LOST:   lose(of); break;
    case FLIP:   flip(of.at + c->at / 8, c->at % 8); break;
    case HEADER: lose_header(sector); break;
    case OTHER_HEADER: copy_header(sector); break;
    default:     damage(of.at, of.len, (int)c->how);
    }
}

static int format(void)
{
    int result;

    the.damaged = 1;
    device_make_memory(&the);
    result = idem_format(the.table, &the.config, the.memory, the.memory_size,
                         the.now);
    PROMISE(!the.medium.violations);
    if (result == IDEM_OK)
        device_check_uncertain(&the);
    return result;
}

/* .. a failure is reported, and the table is closed. */
static int formatted(void)
{
    int result = format();

    PROMISE(result == IDEM_OK ||
            (the.table->storage_error == FLASH_E_FAULT &&
             idem_maintain(the.table, the.now) == IDEM_E_ARG));
    return result;
}

/* A word that only scenarios have. */
static int scenario_word(const call *c)
{
    static operation then[10];
    uint32_t ms = 0;

    switch (c->what) {
    case 'z':
        PROMISE(c->n < wrote.count);
        then[c->key % COUNT(then)] = c->back ? wrote.before
                                             : wrote.of[wrote.count - 1 - c->n];
        break;
    case 'h':
        memcpy(the.medium.bytes + hidden.of.at, hidden.bytes, hidden.of.len);
        break;
    case 'b': spoil(then[c->key % COUNT(then)], c); break;
    case 'i': return formatted();
    case 'x': the.damaged = 1; break;
    case 'V': PROMISE(wrote.call == the.model.calls && relocated() >= 0); break;
    case '=': PROMISE(!(the.reads + the.progs + the.erases) == !c->n); break;
    case 'u': PROMISE(the.table->stats.lost > 0); break;
    case 'r': PROMISE(inside_dead(the.table) >= 3); break;
    case 'y': PROMISE(the.table->stats.senders_evicted == c->key); break;
    case 'p': PROMISE(the.held[c->key].attempt == c->n); break;
    case 'q':
        PROMISE(idem_uncertain(the.table, &ms, the.now) == IDEM_OK);
        PROMISE(c->n ? ms > 0 && ms <= c->n : ms == c->key);
        break;
    default: return NO_WORD;
    }
    return IDEM_OK;
}

// A medium as it was, to be damaged once more.
static struct { flash medium; void *memory; } saved;

static inline void save(void)
{
    size_t size = FLASH_MEMORY(the.medium.sector_size, the.medium.sector_count);

    free(saved.memory);
    saved.medium = the.medium;
    saved.memory = medium_allocate(size);
    memcpy(saved.memory, the.medium.sector_erases, size);
}

static inline void load(void)
{
    the.medium = saved.medium;
    memcpy(the.medium.sector_erases, saved.memory,
           FLASH_MEMORY(the.medium.sector_size, the.medium.sector_count));
    dead_len = 0;
}

/* ----------------------------------------------------------------- >>scenarios */

typedef struct scenario {
    const char *name, *line;
} scenario;

/* Runs the part of a line up to a bar or its end; returns the rest. */
static const char *run_part(const char *line)
{
    char part[500];
    size_t len = strcspn(line, "|");

    assert_true(len < sizeof part);
    memcpy(part, line, len);
    part[len] = 0;
    call_line(&the, part);
    return line + len + (line[len] != 0);
}

static void run_end(void)
{
    if (the.damaged)
        return;
    call_line(&the, "? P ?");
    answer('B', KEYS_SCENARIO - 1);
    call_line(&the, "?");
    is(the.lost, 0);
}

/* Runs it with a cut; returns how many variants there are of the n-th
   operation, 0: there are fewer. */
static uint32_t run_cut(const medium *m, const char *line, uint32_t nth,
                        uint32_t variant)
{
    uint32_t variants;

    line = run_part(make_device(m, KEYS_SCENARIO, line));
    flash_cut(&the.medium, nth, variant);
    line = run_part(line);
    variants = the.medium.off ? the.medium.variants : 0;
    call_line(&the, "P ?");
    call_line(&the, line);
    run_end();
    return variants;
}

/* Runs it with a cut in each operation. */
static void run_cuts(const medium *m, const char *line)
{
    uint32_t count = 1;

    for (uint32_t n = 0; count; n++)
        for (uint32_t v = 0, step = 1; v < count || !v; v += step) {
            count = run_cut(m, line, n, v);
            step = 1 + count / 20;
        }
}

static void run_whole(const medium *m, const char *line)
{
    unsigned times = 1;

    if (sscanf(line, "times=%u", &times) == 1)
        line += strcspn(line, " ");
    for (line = make_device(m, KEYS_SCENARIO, line); times > 0; times--)
        run_line(line);
    run_end();
}

/* The medium that a line names, and then is run on alone; or NULL. */
static const medium *named(const char **line)
{
    size_t len = strcspn(*line, ": ");

    for (size_t m = 0; m < COUNT(media) + COUNT(more_media); m++) {
        const medium *is = m < COUNT(media) ? media[m]
                                            : more_media[m - COUNT(media)];
        if ((*line)[len] == ':' && strlen(is->name) == len &&
            !strncmp(is->name, *line, len)) {
            *line += len + 1;
            return is;
        }
    }
    return NULL;
}

/* A test of a scenario. */
static inline void run_scenario(void **state)
{
    const char *line = ((const scenario *)*state)->line;
    const medium *only = named(&line);
    unsigned hows = strchr(line, '#') ? 3 : 1, ats = strchr(line, '@') ? 12 : 1;

    snprintf(running, sizeof running, "%s", line);
    for (size_t m = 0; m < COUNT(media); m++) {
        const medium *there = only ? only : media[m];
        if (strchr(line, '|'))
            run_cuts(there, line);
        else
            for (unsigned n = 0; n < hows * ats; n++)
                run_whole(there, filled(line, n % hows, n / hows));
        if (!the.config.storage || only)
            return;                     // no other medium matters
    }
}

#endif /* SCENARIO_H */
