/* SPDX-License-Identifier: 0BSD */
/*
 * Exploration: a workload is run once; each of its storage operations is cut in
 * copies of the machine, torn in every variant that flash.h knows.  Each copy
 * recovers, must look as in the model, goes on with one of the epilogues, and
 * the operations of that are cut in copies again, and so on.  A path is which
 * operation was cut and which variant it was left in, then which of the
 * recovery's.
 *
 * Who includes this sets in `run` how far it goes, and defines broken(), which
 * jumps to the end of the active path, and workloads (workloads.h).
 */
#ifndef EXPLORE_H
#define EXPLORE_H

#include "../model/call.h"

#include "workloads.h"

#include <setjmp.h>
#include <sys/time.h>
#include <unistd.h>

enum { KEYS = 4, CAPACITY = 3, KEY_MAX = 4, STATE_MAX = 4 };
enum { RESPONSE_MAX = 4 };
enum { ATTEMPTS = 3 };
enum { LEASE = 1000, RETENTION = 100000 };
enum { DEPTH_MAX = 3 };             // cuts on one path
enum { PATIENCE = 60 };             // seconds for one cut: it does not end

typedef struct machine {
    device d;
    known keys[KEYS];
    unsigned depth;             // cuts so far
    unsigned cut, variant;      // the latest of them
    unsigned ops;               // that could be cut since then
    uint32_t mix;               // chance, from the path
    jmp_buf end;                // of this path: a promise is broken, or all
                                // is lost
} machine;

static machine machines[DEPTH_MAX + 1];
static machine *active;             // of them

// How much of what could be cut is: minutes, --short, --states.
typedef struct extent {
    unsigned depth;             // cuts on one path, at most
    uint32_t draws;
    unsigned first_ops[DEPTH_MAX];  // how many operations are cut, by depth
    unsigned one_in[DEPTH_MAX];     // variants that are taken
    int      evenly;            // about as many variants of each operation
    unsigned longest;           // sequence
    unsigned sequences;         // one of this many on one geometry
} extent;

// What is run at present, and how far it is cut.
static struct {
    const geometry *geometry;
    const char *workload;
    extent   how;
    unsigned path;              // length of the path that is asked for, or 0
    unsigned cut[DEPTH_MAX], variant[DEPTH_MAX];
    uint32_t seed;
    int marathon;               // the first machine is cut itself:
    unsigned cut_in, cuts;      // the operations to cut in, cuts so far
} run;

// What came of a geometry.
typedef struct tally {
    uint64_t states_of[DEPTH_MAX + 1];  // by number of cuts
    uint64_t states, cuts, violations, unfit;
    uint64_t lossy;             // states in which two such cuts lost something
} tally;

static tally *part;
static const volatile int *ended;   // somewhere, with the first violation

/* Makes the calls of a line, to its end or, in a marathon, a cut.  Two cuts
   that read differently from boot to boot may lose a record, if it is counted:
   then this path ends. */
static void run_line(machine *m, const char *line)
{
    call_line(&m->d, line);
    if (!m->d.lost)
        return;
    part->lossy++;
    longjmp(m->end, 1);
}

/* ---------------------------------------------------- >>cuts  every of them */

/* The next two sectors fail, until the next restart. */
static void run_failing(machine *m)
{
    static const uint8_t hows[] = { FLASH_BAD_PROG, FLASH_BAD_ERASE };
    flash *f = &m->d.medium;
    uint32_t next = inside_sequence(m->d.table) + 1;

    m->d.fails = m->d.boot_failed = 1;
    for (uint32_t i = 0; i < 2; i++)
        f->bad[(next + i) % f->sector_count] = hows[m->mix >> i & 1];
    run_line(m, "Bb Bb Cb Cb Xa Ba");
    memset(f->bad, 0, f->sector_count);
    run_line(m, "Ba Ca P ?");
}

/* Ends what follows if it has no end: after a time of the processor, so
   that a busy or stopped machine is no failure. */
static void limit_time(void)
{
    static const struct itimerval limit = { { 0, 0 }, { PATIENCE, 0 } };

    setitimer(ITIMER_VIRTUAL, &limit, NULL);
}

/* Recovers after a cut, and goes on. */
static void recover(machine *m)
{
    active = m;
    limit_time();
    trace("%*scut in operation %u, variant %u\n", (int)(4 * m->depth), "",
          m->cut, m->variant);
    part->states++;
    part->states_of[m->depth]++;
    if (!setjmp(m->end)) {
        memset(m->d.medium.bad, 0, m->d.medium.sector_count);
        run_line(m, "P,ms=0 ?");
        if (run.geometry->m.flags & TWICE)
            run_failing(m);
        run_line(m, epilogues[(m->cut + m->variant) % COUNT(epilogues)]);
    }
    active = m - 1;
}

/* Cuts an operation in one variant; a copy of the machine goes on. */
static void cut_variant(machine *m, const flash_op *op, unsigned at,
                        unsigned variant)
{
    machine *c = m + 1;
    flash *f = &c->d.medium;
    uint32_t k;
    int torn = flash_torn_kind(&m->d.medium, op, variant, &k);

    flash_copy(f, &m->d.medium);
    flash_go_off(f, op, variant);
    f->ops++;
    f->watch = m->d.medium.watch;
    f->watch_arg = c;
    device_follow(&c->d, &m->d);
    if (m->d.calling)
        model_in_flight(&c->d.model, &m->d.call);
    c->d.unstable += flash_is_unstable(torn);
    c->d.marked = 1;
    c->ops = 0;
    c->cut = at;
    c->variant = variant;
    c->mix = flash_mix(m->mix + flash_mix(at * 65537 + variant));
    recover(c);
}

/* True if the variant is one of those to be looked at.  Of a torn program there
   is one for every byte that may be the last; of a lost cache there are few. */
static int is_chosen(const machine *m, const flash_op *op, unsigned at,
                     unsigned variant, unsigned variants)
{
    unsigned one_in = run.how.one_in[m->depth];
    uint32_t k;
    int torn = flash_torn_kind(&m->d.medium, op, variant, &k);

    if (run.path)
        return variant == run.variant[m->depth];
    if (one_in == 1)
        return 1;
    if (run.how.evenly)
        one_in += one_in * variants / 16;
    else if (torn == FLASH_PREFIX)
        one_in *= 4;
    else if (torn == FLASH_LOSE_TAIL || torn == FLASH_LOSE_SOME)
        one_in = (one_in + 7) / 8;
    return flash_mix(m->mix + flash_mix(at * 65537 + variant)) % one_in == 0;
}

/* Cuts an operation that is about to happen in every variant. */
static void cut_operation(machine *m, const flash_op *op)
{
    unsigned at = m->ops++;
    unsigned variants = flash_variants(&m->d.medium, op);
    unsigned chosen = 0;

    if (m->depth >= run.how.depth || at >= run.how.first_ops[m->depth] ||
        (run.path && at != run.cut[m->depth]))
        return;
    for (unsigned v = 0; v < variants; v++)
        if (is_chosen(m, op, at, v, variants)) {
            cut_variant(m, op, at, v);
            chosen++;
        }
    part->cuts += chosen > 0;
}

/* What flash.h shows before each operation. */
static void watch(void *arg, const flash *f, const flash_op *op)
{
    machine *m = (machine *)arg;

    if (m->d.marked)
        cut_operation(m, op);
    if (run.marathon && run.cut_in-- == 0)
        flash_cut(&m->d.medium, 0, run.cuts * 31 % flash_variants(f, op));
}

/* ------------------------------------------------------- >>runs  a workload */

/* Makes a machine, with at least that many sectors.  Returns their number, or 0
   if no number would do. */
static uint32_t make_machine(machine *m, uint32_t sectors)
{
    const geometry *g = run.geometry;
    device *d = &m->d;
    idem_config *c = &d->config;

    memset(m, 0, sizeof *m);
    device_reset(d);
    device_plug(d, &g->m);
    d->flags |= READ_MAP;
    d->scopes = 2;
    d->more = g->spare;
    d->polls = 1;
    d->medium.seed = run.seed;
    d->medium.draws = (g->m.flags & CACHE ? 4 : 1) * run.how.draws;
    c->capacity = CAPACITY;
    c->key_max = KEY_MAX;
    c->response_max = RESPONSE_MAX;
    c->state_max = g->m.flags & STATELESS ? 0 : STATE_MAX;
    c->max_attempts = ATTEMPTS;
    c->lease_ms = LEASE;
    c->retention_ms = RETENTION;
    call_modes(d, run.workload);
    if (!device_sectors(d))
        return 0;
    d->storage.sector_count =
        sectors > device_sectors(d) ? sectors : device_sectors(d);
    device_make(d, m->keys, KEYS);
    d->medium.watch = watch;
    d->medium.watch_arg = m;
    return d->storage.sector_count;
}

/* Makes the machines of a workload; the first, or NULL if it does not fit. */
static machine *start(const geometry *g, const char *text)
{
    uint32_t sectors = g->sector_count;

    if (*ended)
        _exit(0);
    run.geometry = g;
    run.workload = text;
    active = machines;
    limit_time();
    for (unsigned d = 0; d <= run.how.depth; d++) {
        sectors = make_machine(&machines[d], sectors);
        if (!sectors) {
            part->unfit++;
            return NULL;
        }
        machines[d].depth = d;
    }
    machines->mix = flash_mix(run.seed);
    return machines;
}

/* Opens the first machine's table. */
static void open_first(machine *m)
{
    device_open(&m->d);
    if (run.geometry->m.flags & LATE)
        run_line(m, "K1");
}

/* Lets go of all machines. */
static void finish(void)
{
    for (unsigned d = 0; d <= run.how.depth; d++)
        device_end(&machines[d].d);
}

/* Runs a workload; cuts it all, or what follows the bar; and the end of it. */
static void run_workload(const geometry *g, const char *text)
{
    static const flash_op end = { FLASH_SYNC, 0, NULL, 0 };
    machine *m = start(g, text);

    if (!m)
        return;
    if (!setjmp(m->end)) {
        open_first(m);
        m->d.marked = !strchr(text, '|');
        run_line(m, call_modes(&m->d, text));
        run_line(m, "?");
        cut_operation(m, &end);
    }
    finish();
}

/* --------------------------------------------------------------- >>marathon */

enum { MARATHON = 1000 };           // cuts in a row

/* One boot of it, which the cut ends; or the last restart. */
static void run_boot(machine *m, unsigned boot, int first)
{
    static const char *const lines[] = {
        "Aa", "Ab", "Xa", "Ba Ra", "Aa Ac", "M", "Xb", "Ba Sa", "Bb Ob Db",
    };

    run.cut_in = first ? 0 : boot % 11;
    run_line(m, lines[boot % COUNT(lines)]);
    run.cut_in = UINT32_MAX;
    run.cuts += m->d.medium.off != 0;
    part->states += m->d.medium.off != 0;
    run_line(m, "P,ms=0 ?");
}

/* Cuts each boot in one of its first operations, a thousand times in a row;
   then lets it run: all is still true, and work goes on.  With `first` it is
   always the first operation, so nothing ever gets done before. */
static void run_marathon(const geometry *g, int first)
{
    machine *m = start(g, first ? "marathon-first" : "marathon");

    if (!m)
        return;
    run.cuts = 0;
    run.cut_in = UINT32_MAX;
    run.marathon = 1;
    if (!setjmp(m->end)) {
        open_first(m);
        for (unsigned boot = 0; run.cuts < MARATHON; boot++) {
            PROMISE(boot < 100 * MARATHON);     // of the test: none to cut
            run_boot(m, boot, first);
        }
        run.marathon = 0;
        for (unsigned e = 0; e < COUNT(epilogues); e++)
            run_line(m, epilogues[e]);
    }
    run.marathon = 0;
    part->cuts += run.cuts;
    finish();
}

/* ---------------------------------------- >>systematic  all short sequences */

// What a sequence needs to know of a key, so that each call does something.
enum { UNKNOWN, CLAIMED, OVER, CUT, FINISHED, PENDING, STATUSES };

/* What becomes of a key by a call; -1, or no column: it does nothing to it. */
static int becomes(int status, char what)
{
    static const struct { const char *calls; int to[STATUSES]; } rows[] = {
        { "B",  { CLAIMED, -1, CLAIMED, CLAIMED, FINISHED, -1 } },
        { "CS", { -1, FINISHED, FINISHED, -1, -1, -1 } },
        { "O",  { -1, PENDING, PENDING, -1, -1, -1 } },
        { "R",  { -1, UNKNOWN, UNKNOWN, -1, -1, -1 } },
        { "X",  { -1, -1, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN } },
        { "D",  { -1, -1, -1, -1, -1, FINISHED } },
        { "L",  { -1, OVER, -1, -1, -1, -1 } },
        { "P",  { UNKNOWN, CUT, CUT, CUT, FINISHED, PENDING } },
    };

    for (size_t i = 0; i < COUNT(rows); i++)
        if (strchr(rows[i].calls, what))
            return rows[i].to[status];
    return status;
}

/* Applies a call to the keys' status; returns 0 if it does nothing. */
static int applies(int *status, const char *word)
{
    int keyed = word[1] >= 'a', does = 0;

    for (unsigned k = 0; k < KEYS; k++) {
        int next = becomes(status[k], *word);
        if ((keyed && word[1] != 'a' + (int)k) || next < 0)
            continue;
        does = 1;
        status[k] = next;
    }
    return does;
}

// One sequence after the other.
typedef struct sequences {
    const geometry *geometry;
    unsigned number;            // of the next, with an offset by geometry
                                // and seed
    int      batch;
    char     text[96];
} sequences;

/* Runs all sequences that the text so far begins. */
static void run_sequences(sequences *s, const int *status, unsigned length)
{
    size_t end = strlen(s->text);

    for (unsigned i = 0; i < COUNT(alphabet); i++) {
        const char *word = alphabet[i];
        int after[KEYS];
        memcpy(after, status, sizeof after);
        if (!applies(after, word) || (*word == 'Y' && !s->batch) ||
            s->text[end - 1] == *word)
            continue;
        // As long as nothing was done, the one key is as good as the other.
        if (word[1] == 'b' && s->text[end - 1] == '|' && end == 1)
            continue;
        sprintf(s->text + end, " %s", word);
        if (s->number++ % run.how.sequences == 0)
            run_workload(s->geometry, s->text);
        if (length + 1 < run.how.longest)
            run_sequences(s, after, length + 1);
        s->text[end] = 0;
    }
}

/* Some of the sequences of calls in one context. */
static void run_context(const geometry *g, const char *context)
{
    sequences s = { g, (unsigned)(g - geometries) + run.seed - 1,
                    !strncmp(context, "batch", 5), { 0 } };
    int status[KEYS] = { UNKNOWN };

    strcpy(s.text, context);
    for (const char *word = context; *word; word++)
        if (strchr("BCSORXDLP", *word))
            applies(status, word);
    run_sequences(&s, status, 0);
}

#endif /* EXPLORE_H */
