/* SPDX-License-Identifier: 0BSD */
/*
 * Cuts the power at every storage operation of many short workloads, leaves the
 * operation torn in every way that flash.h knows, starts again, and looks
 * whether every promise still holds: what the model of tests/model says.
 *
 *     build/crash                 minutes; --short: seconds, --long: hours
 *     build/crash --states N      samples with one seed after the other, three
 *                                 cuts deep, until there are so many states
 *     build/crash --list          workloads, contexts, geometries
 *
 * A workload is run once; each of its operations is cut in copies.  Each copy
 * recovers and goes on with one of the epilogues, and the operations of that
 * are cut in copies again (--depth 2), and so on.  So what made a violation is
 * a path: which operation was cut and which variant it was left in, then which
 * of the recovery's.  Its last line says how to see it again:
 *
 *     build/crash --geometry nor8 --workload "Ba Ca" --cut 5/2 --variant 3/0
 *
 * A workload is a line of events (>>events), with modes before them:
 *
 *     batch volatile evict    what the configuration has
 *     echo    responses may be long enough for what I does
 *     |       what is before it is not cut
 *     Ba Wa   begin key a; with another payload than B
 *     Ca Fa   complete; fail
 *     Za      complete with an empty response
 *     Sa Oa   complete with new state; owed to somebody
 *     Qa      complete with new state, owed
 *     Ia      complete; the response is what the storage has of the claim
 *             that was granted last
 *     ca      complete with the claim before the last: fenced
 *     Ra Na   release; renew
 *     Xa Da   forget; delivered
 *     Aa      whatever it takes to have a finished, then duplicates of it
 *     L T     a lease, a retention passes; E  a lease, told by idem_elapse
 *     M       idle work until there is no more; m  one step of it
 *     Y P     sync; a restart between two calls
 *     K9      nine times: claim and give back or complete and forget key d
 *     J9      the same, each time after a restart
 *     ! ?     old claims are fenced; all that can be looked at is right
 */
#define _POSIX_C_SOURCE 200809L

#define IDEM_STATIC
#define IDEM_IMPLEMENTATION
#include "idem.h"

#include <setjmp.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../model/device.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

enum { KEYS = 4, CAPACITY = 3, KEY_MAX = 4, STATE_MAX = 4 };
enum { RESPONSE_USUAL = 4, RESPONSE_MAX = 20 };
enum { ATTEMPTS = 3 };
enum { LEASE = 1000, RETENTION = 100000 };
enum { DEPTH_MAX = 3 };             // cuts on one path
enum { PATIENCE = 60 };             // seconds for one cut: it does not end
enum { REPORTS = 5 };               // violations that are told of in full

/* -------------------------------------------- >>geometries  where it is run */

typedef struct geometry {
    const char *name;
    int      kind;
    uint32_t granule, sector_size;
    uint32_t sector_count;          // or as many as it takes
    uint8_t  erased;
    uint8_t  flags;
    uint8_t  spare;                 // bytes of memory more than needed
} geometry;

enum {
    VERIFY = 32,                    // what was programmed is read back
    STATELESS = 64,                 // there is no application state
    LATE = 128                      // the headers are written before any cut
};

static const geometry geometries[] = {
    { "nor1",   FLASH_NOR,     1,   512,  4, 0xFF, 0,              0 },
    { "nor8",   FLASH_NOR,     8,   512,  8, 0xFF, 0,              0 },
    { "nor16",  FLASH_NOR,     16,  512,  4, 0xFF, 0,              64 },
    { "nor256", FLASH_NOR,     256, 2560, 4, 0xFF, 0,              0 },
    { "nor0",   FLASH_NOR,     4,   384,  4, 0x00, 0,              0 },
    { "tiny",   FLASH_NOR,     1,   288,  4, 0xFF, STATELESS,      0 },
    { "large",  FLASH_NOR,     1,   4096, 4, 0xFF, 0,              255 },
    { "split",  FLASH_NOR,     2,   448,  4, 0xFF, SPLIT | VERIFY, 0 },
    { "ecc8",   FLASH_ECC,     8,   512,  4, 0xFF, 0,              0 },
    { "ecc16",  FLASH_ECC,     16,  1024, 5, 0xFF, NOISE | VERIFY, 0 },
    { "noise",  FLASH_ECC,     16,  1024, 5, 0xFF, ALL_NOISE | LATE, 0 },
    { "ecc-odd", FLASH_ECC,    16,  640,  5, 0xFF, 0,              4 },
    { "eeprom", FLASH_INPLACE, 1,   320,  4, 0xFF, 0,              0 },
    { "fram",   FLASH_INPLACE, 4,   512,  5, 0x00, VERIFY,         0 },
    { "file",   FLASH_INPLACE, 1,   512,  4, 0x00, CACHE,          64 },
};

/* -------------------------------------------------------- >>workloads  what */

typedef struct workload {
    const char *name;
    const char *events;
} workload;

static const workload workloads[] = {
    { "claim",      "Ba" },
    { "complete",   "Ba Ca" },
    { "fail",       "Ba Fa Bb Zb" },
    { "release",    "Ba Ra Ba Ra" },
    { "two",        "Ba Bb Ca Cb" },
    { "takeover",   "Ba L Ba ca Ca" },
    { "renewed",    "Ba Na L Ba L Ba Ca" },
    { "forget",     "Ba Ca Xa Ba Ca" },
    { "forget-cut", "Ba L Xa Ba P Xa Ba" },
    { "delivery",   "Ba Oa Bb Ob Da Db" },
    { "delivered",  "Ba Qa Da Xa Bb Ob P Db" },
    { "state",      "Ba Sa Bb Sb Xa" },
    { "retention",  "Ba Ca Bb T Bc Cc Ba Ca" },
    { "slot-reuse", "Ba Ca Bb Cb Bc Cc T Bd Cd Bb" },
    { "full",       "Ba Bb Bc Bd Cc Bd Xc Bd Cd" },
    { "elapse",     "Ba E Ba Ca E T Ba" },
    { "exhausted",  "Ba P Ba P Ba P Ba P Bb Cb Xa Ba" },
    { "reboots",    "Ba Ca P P Bb P P P Ba Bb Cb P" },
    { "cut-over",   "Ba Bb Cb P Bc Cc T Bd Cd P" },
    { "duplicates", "Ba Ba Ca Ba Ba P Ba Ba" },
    { "mismatch",   "Ba Wa Ca Wa P Wa Ba" },
    { "idle",       "Ba M Ca M Bb Ob M P M Aa Db" },
    { "ring",       "K4 Ba Sa Bb K14 Ob Bc K6" },
    { "ring-idle",  "Ba Sa Bb Ob M K3 M K3 M K3 M Bc M K4" },
    { "ring-cut",   "Ba P Bb Ob P K5 P K5 P K5 P Bc Cc K4" },
    { "ring-boots", "Ba Sa Bb Ob J14" },
    { "ring-heads", "Ba Sa P Bb Qb J5 M J4 Xa J5" },
    { "evict",      "evict Ba Ca Bb Ob Bc Cc Bd Cd Ba P Ba" },
    { "evict-ring", "evict K2 Ba Ca Bb Cb Bc Sc Bd Cd Ba Ca K6 Ab Ac" },
    { "batch",      "batch Ba Bb Y Ca Ob Y Xa" },
    { "batch-long", "batch Ba Ca Xa Ba Sa Bb Y Sb Bc Rc" },
    { "batch-slot", "batch Ba Y Ra Bb Cb Y L Ba Y" },
    { "batch-take", "batch Ba Y L Ba Sa Bb Y Xa Bc Cc Y" },
    { "batch-ring", "batch Ba Sa Y K2 Bb Ob Y K3 Y K3 Y" },
    { "volatile",   "volatile Ba Ca Bb P Bb Sb L Bc L Bc Cc" },
    { "volatile-k", "volatile Ba Ca K6 Bb K6 Ob P Xa" },
    { "echo",       "echo Ba Bb Cb Bc Cc Ia" },
    { "ram",        "Ba Ca Bb Ob P Ba Db Xa" },
};

// Where the systematic sequences begin.
static const char *const contexts[] = {
    "|",
    "Ba Ca P |",
    "Ba Sa Bb |",
    "Ba Oa Bb P |",
    "Bb Ob Ba L K3 |",
    "Ba Sa P Bb Cb J7 |",
    "batch Ba Sa Y |",
    "volatile Ba Ca |",
    "evict Bc Cc Bd Cd Ba |",
};

// What is done after a recovery, by turns.
static const char *const epilogues[] = {
    "! Aa Ab Ac Ad ? P ? Aa Ab Ac",
    "P ? M Ad Ab Aa Ac ? P P ? Aa Ad Ab",
    "! Bb Ab L Bb Ab Aa Xa Aa ? P ? Aa Ab Ac",
    "Ba Ra Ba Ca Bb Rb Ac ? P ? Aa Ab Ac",
    "Xa Xb ? Aa Ab P ? Aa Ab Ac",
    "P P Da Db Ac Xc Bc Sc ? P ? Aa Ab Ac",
    "Wa Wb Wc ? P Wa Wb Wc Xa ? Aa Ab Ac",
    "Ba P Ba P Aa P ? K3 Ab P ? Ac Ab",
};

/* ----------------------------------------------------- >>machine  what runs */

typedef struct machine {
    device d;
    known keys[KEYS];
    idem_claim held[KEYS], before[KEYS];    // the latest of each, one before
    // Where it is.
    unsigned depth;             // cuts so far
    unsigned cut, variant;      // the latest of them
    unsigned ops;               // that could be cut since then
    uint32_t mix;               // chance, from the path
    int cutting;
    const char *events;         // that are run
    const char *event;          // the present one
    jmp_buf end;                // of this path: a promise is broken, or all
                                // is lost
} machine;

static machine machines[DEPTH_MAX + 1];
static machine *active;             // of them

// What is run at present, and how far it is cut.
static struct {
    const geometry *geometry;
    const char *workload;
    unsigned depth;             // cuts on one path, at most
    unsigned first_ops[DEPTH_MAX];  // how many operations are cut, by depth
    unsigned one_in[DEPTH_MAX];     // so many variants
    unsigned path;              // length of the path that is asked for, or 0
    unsigned cut[DEPTH_MAX], variant[DEPTH_MAX];
    uint32_t seed, draws;
    int terminal;               // shows progress
    int marathon;               // the first machine is cut itself:
    unsigned cut_in, cuts;      // in so many operations, so many times so far
} run;

// What the command line asks for.
static struct {
    int      brief, full;       // --short, --long
    int      first;             // the first violation is the end
    int      trace;
    const char *geometry, *workload;
    unsigned longest;           // sequence
    unsigned one_in;            // of so many sequences on one geometry
    uint64_t states;            // that are enough, in all; 0: one round
} option;

// What came of it.
typedef struct tally {
    uint64_t states_of[DEPTH_MAX + 1];  // with so many cuts
    uint64_t states, cuts, violations, unfit;
    uint64_t told;              // states in which two such cuts lost something
} tally;

static tally total, part;

/* Prints a path's numbers: "5/2". */
static void print_path(const char *name, const machine *m, int variants)
{
    printf(" %s ", name);
    for (unsigned d = 1; d <= m->depth; d++)
        printf("%s%u", d > 1 ? "/" : "",
               variants ? machines[d].variant : machines[d].cut);
}

/* Reports a violation; the path ends here. */
static void broken(const char *what, const char *file, int line)
{
    machine *m = active;

    part.violations++;
    if (total.violations + part.violations > REPORTS && !*tracing())
        longjmp(m->end, 1);
    printf("violation: %s (%s:%d)\n    in \"%s\" at \"%.3s\"\n"
           "    build/crash --geometry %s --workload \"%s\"", what, file, line,
           m->events ? m->events : "", m->event ? m->event : "",
           run.geometry->name, run.workload);
    if (m->depth) {
        print_path("--cut", m, 0);
        print_path("--variant", m, 1);
    }
    printf(" --seed %u --draws %u\n", (unsigned)run.seed,
           (unsigned)run.draws);
    device_tell(&m->d);
    fflush(stdout);
    if (option.first)
        _exit(1);
    longjmp(m->end, 1);
}

/* The library crashed or hangs; nothing can go on. */
static void on_signal(int number)
{
    (void)number;
    option.first = 1;
    broken("a signal: a crash, or no end", __FILE__, __LINE__);
}

/* Two cuts that read differently from boot to boot may lose something, if that
   is told: this path ends here. */
static void end_if_lost(machine *m)
{
    if (!m->d.lost)
        return;
    part.told++;
    longjmp(m->end, 1);
}

/* What restarts between two calls. */
static void restart(machine *m)
{
    device *d = &m->d;

    memset(m->held, 0, sizeof m->held);
    memset(m->before, 0, sizeof m->before);
    device_stop(d);
    d->now = d->medium.boots * 7919u;
    device_start(d);
    end_if_lost(m);
}

/* ----------------------------------------------------------------- >>events */

/* Asks for a key, with one of two payloads; keeps the claim if there is one.
   Where doubt cannot be seen, a program may fail: the next sector is next. */
static int begin(machine *m, unsigned key, unsigned payload)
{
    device *d = &m->d;
    idem_request more;
    idem_claim claim;
    uint32_t failed = 0;
    int result;

    memset(&more, 0, sizeof more);
    do {
        d->now++;
        result = device_begin(d, &claim, key, payload, &more);
    } while (result == IDEM_E_STORAGE && d->blank && !d->medium.off &&
             ++failed < d->medium.sector_count);
    if (claim.token) {
        m->before[key] = m->held[key];
        m->held[key] = claim;
    }
    return result;
}

/* The bytes that the storage has of the claim that was granted last. */
static const uint8_t *echo(const machine *m)
{
    const flash *f = &m->d.medium;
    uint64_t token = m->d.model.token;
    uint64_t sequence = token / f->sector_size;

    return f->bytes + sequence % f->sector_count * f->sector_size +
           token % f->sector_size;
}

/* Completes with an outcome that no other call has, in the manner of the
   event. */
static void complete(machine *m, unsigned key, char event)
{
    unsigned nth = m->d.number + 1;
    idem_outcome how;

    memset(&how, 0, sizeof how);
    how.response_len = event == 'Z' ? 0 : 1 + nth % RESPONSE_USUAL;
    how.code = (int32_t)(nth * 65537);
    how.failed = event == 'F';
    how.confirm = event == 'O' || event == 'Q';
    if (event == 'I') {
        how.response = echo(m);
        how.response_len = RESPONSE_MAX;
    }
    if ((event == 'S' || event == 'Q') && m->d.config.state_max) {
        how.state = "";
        how.state_len = 1 + nth % STATE_MAX;
    }
    m->d.now++;
    device_complete(&m->d, event == 'c' ? &m->before[key] : &m->held[key], key,
                    &how);
}

/* Confirms the delivery of the key's outcome, if it is owed. */
static void delivered(machine *m, unsigned key)
{
    device *d = &m->d;
    char id[KEY_MAX];
    idem_entry entry;
    int result;

    memset(&entry, 0, sizeof entry);
    entry.id = id;
    entry.id_size = sizeof id;
    device_before(d, 'L', key);
    do
        result = idem_pending(d->table, &entry, d->now);
    while (result == IDEM_OK && device_named(d, &entry) != key);
    device_looked(d, "pending", result);
    if (result == IDEM_OK)
        device_delivered(d, &entry.claim, key);
}

/* All that can be seen is as the model has it; looking changes nothing. */
static void look(machine *m)
{
    for (unsigned k = 0; k < KEYS; k++) {
        device_look(&m->d, k);
        device_look_at_response(&m->d, k, 0, RESPONSE_MAX);
    }
    device_look_at_all(&m->d);
    device_look_at_pending(&m->d, 0);
    device_look_at_state(&m->d);
}

/* Whether only a sync makes durable. */
static int in_batch(const machine *m)
{
    return m->d.config.durability == IDEM_BATCH;
}

/* Brings a key to its end, as an application would: execute after the sync,
   answer after the sync; then a duplicate costs nothing. */
static void achieve(machine *m, unsigned key)
{
    device *d = &m->d;
    int result = begin(m, key, 0);

    if (in_batch(m) && !d->medium.off)
        device_sync(d);
    if (d->medium.off)
        return;
    if (result == IDEM_EXECUTE || result == IDEM_RECOVER) {
        complete(m, key, 'C');
        if (in_batch(m) && !d->medium.off)
            device_sync(d);
        result = IDEM_REPLAY;
    }
    if (result != IDEM_REPLAY || d->medium.off)
        return;
    PROMISE(begin(m, key, 0) == IDEM_REPLAY);
    PROMISE(!d->progs && !d->erases);
}

/* Idle work until there is none. */
static void rest(machine *m)
{
    unsigned steps = 0;

    do
        m->d.now++;
    while (device_maintain(&m->d) == IDEM_MORE && !m->d.medium.off &&
           ++steps < 1000);
    PROMISE(steps < 1000);
}

/* Turns the journal over with records that nobody needs; or, with restarts,
   with heads. */
static void churn(machine *m, unsigned times, int restarts)
{
    unsigned key = KEYS - 1;

    for (unsigned i = 0; i < times && !m->d.medium.off; i++) {
        int result, granted;
        if (restarts)
            restart(m);
        result = begin(m, key, 0);
        granted = result == IDEM_EXECUTE || result == IDEM_RECOVER;
        if (m->d.medium.off || (!granted && result != IDEM_REPLAY))
            return;
        m->d.now++;
        if (granted && i % 2 == 0) {
            device_release(&m->d, &m->held[key], key);
            continue;
        }
        if (granted)
            complete(m, key, 'C');
        if (!m->d.medium.off)
            device_forget(&m->d, key);
    }
}

/* All claims that are used up are fenced. */
static void check_fenced(machine *m)
{
    for (unsigned i = 0; i < 3 * OLD_CLAIMS; i++)
        if (m->d.old[i / 3].token)
            device_try(&m->d, &m->d.old[i / 3], i);
}

/* Does one event on a key, or on none. */
static void step(machine *m, char event, unsigned key)
{
    device *d = &m->d;

    d->now += !!strchr("RNXm", event);
    switch (event) {
    case 'B': case 'W': begin(m, key, event == 'W'); break;
    case 'R': device_release(d, &m->held[key], key); break;
    case 'N': device_renew(d, &m->held[key], key, 2 * LEASE); break;
    case 'X': device_forget(d, key); break;
    case 'D': delivered(m, key); break;
    case 'A': achieve(m, key); break;
    case 'L': d->now += LEASE; break;
    case 'T': d->now += RETENTION; break;
    case 'E': device_elapse(d, LEASE); break;
    case 'M': rest(m); break;
    case 'm': device_maintain(d); break;
    case 'Y': device_sync(d); break;
    case 'P': restart(m); break;
    case '!': check_fenced(m); break;
    case '?': look(m); break;
    case '|': m->cutting = 1; break;
    default:  complete(m, key, event); break;
    }
    end_if_lost(m);
}

/* Runs a line of events, to its end or, in a marathon, a cut. */
static void run_events(machine *m, const char *events)
{
    m->events = m->event = events;
    while (*m->event && !m->d.medium.off) {
        char event = *m->event;
        if (event == ' ') {
            m->event++;
        } else if (event == 'K' || event == 'J') {
            churn(m, (unsigned)strtoul(m->event + 1, NULL, 10), event == 'J');
            m->event += 1 + strspn(m->event + 1, "0123456789");
        } else {
            unsigned keyed = !!strchr("ABCDFINOQRSWXZc", event);
            step(m, event, keyed ? (unsigned)(m->event[1] - 'a') : 0);
            m->event += 1 + keyed;
        }
    }
}

/* ---------------------------------------------------- >>cuts  every of them */

/* Recovers after a cut, and goes on. */
static void recover(machine *m)
{
    const char *then = epilogues[(m->cut + m->variant) % COUNT(epilogues)];

    active = m;
    alarm(PATIENCE);
    trace("%*scut in operation %u, variant %u\n", (int)(4 * m->depth), "",
          m->cut, m->variant);
    part.states++;
    part.states_of[m->depth]++;
    m->events = m->event = "?";
    if (!setjmp(m->end)) {
        device_start(&m->d);
        end_if_lost(m);
        look(m);
        run_events(m, then);
    }
    active = m - 1;
}

/* Whether the variant reads differently from boot to boot, or from read to
   read. */
static int is_unstable(const flash *f, const flash_op *op, unsigned variant)
{
    uint32_t k;
    int torn = flash_torn_kind(f, op, variant, &k);

    return torn == FLASH_SWAY_BOOT || torn == FLASH_SWAY_READ ||
           torn == FLASH_SWAY_APIECE;
}

/* Tears an operation on a copy of a medium; false if that refuses it anyway. */
static int tear(flash *f, const flash_op *op, unsigned variant)
{
    flash_cut(f, 0, variant);
    if (op->call == FLASH_PROG)
        flash_prog(f, op->at, op->src, op->len);
    else if (op->call == FLASH_ERASE)
        flash_erase(f, op->at / f->sector_size);
    else
        flash_off(f, variant);
    return f->off;
}

/* Leaves a copy of the machine torn in the middle of an operation; it goes on
   from there. */
static void cut_variant(machine *m, const flash_op *op, unsigned at,
                        unsigned variant)
{
    machine *c = m + 1;
    flash *f = &c->d.medium;

    flash_copy(f, &m->d.medium);
    // A split erase that is not done yet is torn too.
    if (m->d.erasing && op->call != FLASH_ERASE) {
        flash_cut(f, 0, f->ops % 7);
        flash_erase(f, m->d.erasing - 1);
        f->off = f->armed = 0;
    }
    if (!tear(f, op, variant))
        return;
    f->watch = m->d.medium.watch;
    f->watch_arg = c;
    f->violations = 0;
    memset(f->violations_of, 0, sizeof f->violations_of);
    device_follow(&c->d, &m->d);
    if (m->d.calling)
        model_in_flight(&c->d.model, &m->d.call);
    c->d.sways += (unsigned)is_unstable(&m->d.medium, op, variant);
    memset(c->held, 0, sizeof c->held);
    memset(c->before, 0, sizeof c->before);
    c->cutting = 0;
    device_stop(&c->d);
    c->d.now = f->boots * 7919u;
    c->cutting = 1;
    c->ops = 0;
    c->cut = at;
    c->variant = variant;
    c->mix = flash_mix(m->mix + flash_mix(at * 65537 + variant));
    recover(c);
}

/* Whether the variant is one of those to be looked at.  Of a torn program there
   is one for every byte that may be the last; of a lost cache there are few. */
static int is_chosen(const machine *m, const flash_op *op, unsigned at,
                     unsigned variant, unsigned variants)
{
    unsigned one_in = run.one_in[m->depth];
    uint32_t k;
    int torn = flash_torn_kind(&m->d.medium, op, variant, &k);

    if (run.path)
        return variant == run.variant[m->depth];
    if (one_in == 1)
        return 1;
    // Sampling takes as many of an operation, however many variants it has.
    if (option.states)
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

    if (m->depth >= run.depth || at >= run.first_ops[m->depth] ||
        (run.path && at != run.cut[m->depth]))
        return;
    for (unsigned v = 0; v < variants; v++)
        if (is_chosen(m, op, at, v, variants)) {
            cut_variant(m, op, at, v);
            chosen++;
        }
    part.cuts += chosen > 0;
}

/* What flash.h shows before each operation. */
static void watch(void *arg, const flash *f, const flash_op *op)
{
    machine *m = (machine *)arg;

    if (m->cutting)
        cut_operation(m, op);
    if (run.marathon && run.cut_in-- == 0)
        flash_cut(&m->d.medium, 0, run.cuts * 31 % flash_variants(f, op));
}

/* The power goes after all that was run. */
static void cut_end(machine *m)
{
    flash_op op = { FLASH_SYNC, 0, NULL, 0 };

    m->events = m->event = "(end)";
    cut_operation(m, &op);
}

/* ------------------------------------------------------- >>runs  a workload */

/* Sets the modes that a workload begins with; returns its events. */
static const char *set_modes(idem_config *config, const char *text)
{
    static const char *const modes[] = { "batch", "volatile", "evict",
                                         "echo" };
    unsigned mode;

    do {
        for (mode = 0; mode < COUNT(modes); mode++)
            if (!strncmp(text, modes[mode], strlen(modes[mode])))
                break;
        if (mode < COUNT(modes))
            text += strlen(modes[mode]);
        if (mode == 0)
            config->durability = IDEM_BATCH;
        else if (mode == 1)
            config->volatile_claims = 1;
        else if (mode == 2)
            config->full = IDEM_EVICT_OLDEST;
        else if (mode == 3)
            config->response_max = RESPONSE_MAX;
        while (*text == ' ')
            text++;
    } while (mode < COUNT(modes));
    return text;
}

/* Makes a machine, with at least so many sectors.  Returns their number, or 0
   if no number would do. */
static uint32_t make_machine(machine *m, const geometry *g, uint32_t sectors,
                             const char *text)
{
    device *d = &m->d;
    idem_config *c = &d->config;

    memset(m, 0, sizeof *m);
    d->flags = g->flags | READ_MAP;
    d->scopes = 2;
    d->more = g->spare;
    d->polls = 1;
    d->medium.kind = g->kind;
    d->medium.seed = run.seed;
    d->medium.draws = g->flags & CACHE ? 4 * run.draws : run.draws;
    d->storage.sector_size = g->sector_size;
    d->storage.prog_size = (uint16_t)g->granule;
    d->storage.erased = g->erased;
    d->storage.verify = !!(g->flags & VERIFY);
    c->capacity = CAPACITY;
    c->key_max = KEY_MAX;
    c->response_max = RESPONSE_USUAL;
    c->state_max = g->flags & STATELESS ? 0 : STATE_MAX;
    c->max_attempts = ATTEMPTS;
    c->lease_ms = LEASE;
    c->retention_ms = RETENTION;
    memcpy(c->secret, SECRET, sizeof c->secret);
    c->storage = &d->storage;
    set_modes(c, text);
    if (!device_sectors(d))
        return 0;
    d->storage.sector_count =
        sectors > device_sectors(d) ? sectors : device_sectors(d);
    device_make(d, m->keys, KEYS);
    return d->storage.sector_count;
}

/* Makes the machines of a workload; the first, or NULL if it does not fit. */
static machine *start(const geometry *g, const char *text)
{
    uint32_t sectors = g->sector_count;
    machine *m = machines;

    run.geometry = g;
    run.workload = text;
    active = m;
    alarm(PATIENCE);
    numbered_own.number = 0;
    if (run.terminal)
        fprintf(stderr, "\r%-8s %-60.60s\r", g->name, text);
    for (unsigned d = 0; d <= run.depth; d++) {
        sectors = make_machine(&machines[d], g, sectors, text);
        if (!sectors) {
            part.unfit++;
            return NULL;
        }
        machines[d].depth = d;
        machines[d].d.medium.watch = watch;
        machines[d].d.medium.watch_arg = &machines[d];
    }
    m->mix = flash_mix(run.seed);
    return m;
}

/* Opens the first machine's table. */
static void open_first(machine *m)
{
    device_open(&m->d);
    if (run.geometry->flags & LATE)
        churn(m, 1, 0);
}

/* Lets go of all machines. */
static void finish(void)
{
    for (unsigned d = 0; d <= run.depth; d++)
        device_end(&machines[d].d);
}

/* Runs a workload; cuts it all, or what follows the bar. */
static void run_workload(const geometry *g, const char *text)
{
    machine *m = start(g, text);

    if (!m)
        return;
    if (!setjmp(m->end)) {
        open_first(m);
        m->cutting = !strchr(text, '|');
        run_events(m, set_modes(&m->d.config, text));
        look(m);
        cut_end(m);
    }
    finish();
}

/* ---------------------------------------- >>systematic  all short sequences */

// What a sequence needs to know of a key, so that each event does something.
enum { UNKNOWN, CLAIMED, OVER, CUT, FINISHED, OWED };

// The events of a sequence; in batch mode with a sync.
static const char *const alphabet[] = {
    "Ba", "Ca", "Sa", "Oa", "Ra", "Xa", "Da",
    "Bb", "Cb", "Sb", "Ob", "Rb", "Xb", "Db",
    "L", "M", "P", "Y",
};

/* What becomes of a key; -1 if the event does nothing to it. */
static int becomes(int status, char event)
{
    int held = status == CLAIMED || status == OVER;

    switch (event) {
    case 'B': return status == CLAIMED || status == OWED ? -1 :
                     status == FINISHED ? FINISHED : CLAIMED;
    case 'C':
    case 'S': return held ? FINISHED : -1;
    case 'O': return held ? OWED : -1;
    case 'R': return held ? UNKNOWN : -1;
    case 'X': return status == UNKNOWN || status == CLAIMED ? -1 : UNKNOWN;
    case 'D': return status == OWED ? FINISHED : -1;
    case 'L': return status == CLAIMED ? OVER : -1;
    case 'P': return held ? CUT : status;
    default:  return status;
    }
}

/* Applies an event to the keys' status; returns 0 if it does nothing. */
static int applies(int *status, const char *event)
{
    int does = *event != 'L';

    for (unsigned k = 0; k < KEYS; k++) {
        int next = becomes(status[k], *event);
        if (event[1] >= 'a' && event[1] != 'a' + (int)k)
            continue;
        if (event[1] >= 'a')
            does = next >= 0;
        else
            does |= next >= 0;
        if (next >= 0)
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
        const char *event = alphabet[i];
        int after[KEYS];
        memcpy(after, status, sizeof after);
        if (!applies(after, event) || (*event == 'Y' && !s->batch) ||
            s->text[end - 1] == *event)
            continue;
        // As long as nothing was done, the one key is as good as the other.
        if (event[1] == 'b' && s->text[end - 1] == '|' && end == 1)
            continue;
        sprintf(s->text + end, " %s", event);
        if (s->number++ % option.one_in == 0)
            run_workload(s->geometry, s->text);
        if (length + 1 < option.longest)
            run_sequences(s, after, length + 1);
        s->text[end] = 0;
    }
}

/* All sequences of events in one context. */
static void run_context(const geometry *g, const char *context)
{
    sequences s;
    int status[KEYS] = { UNKNOWN };

    memset(&s, 0, sizeof s);
    s.geometry = g;
    s.number = (unsigned)(g - geometries) + run.seed - 1;
    s.batch = !strncmp(context, "batch", 5);
    strcpy(s.text, context);
    for (const char *event = context; *event; event++)
        if (strchr("BCSORXDLP", *event))
            applies(status, event);
    run_sequences(&s, status, 0);
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
    run_events(m, lines[boot % COUNT(lines)]);
    run.cut_in = UINT32_MAX;
    run.cuts += m->d.medium.off != 0;
    part.states += m->d.medium.off != 0;
    restart(m);
    look(m);
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
            run_events(m, epilogues[e]);
    }
    run.marathon = 0;
    part.cuts += run.cuts;
    finish();
}

/* ---------------------------------------------------------------- >>options */

/* Reads "5/2"; returns how many numbers there are. */
static unsigned read_path(unsigned *path, const char *text)
{
    unsigned count = 0;
    char *end;

    while (count < DEPTH_MAX) {
        path[count++] = (unsigned)strtoul(text, &end, 10);
        if (*end != '/')
            break;
        text = end + 1;
    }
    return count;
}

/* Prints what there is to run. */
static void list(void)
{
    for (size_t i = 0; i < COUNT(geometries); i++) {
        const geometry *g = &geometries[i];
        static const char *const kinds[] = { "NOR", "ECC", "in place" };
        printf("geometry %-6s %s, granule %u, sectors of %u, erased 0x%02X%s"
               "%s%s%s%s\n", g->name, kinds[g->kind], (unsigned)g->granule,
               (unsigned)g->sector_size, g->erased,
               g->flags & (NOISE | ALL_NOISE) ? ", torn reads as noise" : "",
               g->flags & CACHE ? ", cache" : "",
               g->flags & SPLIT ? ", erase is polled" : "",
               g->flags & VERIFY ? ", verified" : "",
               g->flags & STATELESS ? ", no state" : "");
    }
    for (size_t i = 0; i < COUNT(workloads); i++)
        printf("workload %-11s %s\n", workloads[i].name, workloads[i].events);
    for (size_t i = 0; i < COUNT(contexts); i++)
        printf("context  %s\n", contexts[i]);
}

/* Says how to call the program. */
static int usage(void)
{
    fputs("crash [--short | --long] [--list] [--first] [--trace]\n"
          "      [--geometry NAME] [--workload NAME|EVENTS] [--depth 1..3]\n"
          "      [--seed N] [--draws N] [--states N]\n"
          "      [--cut N[/N]] [--variant N[/N]]    one path, with its story\n",
          stderr);
    return 2;
}

/* Sets the extent of one round of many: wide and thin, three cuts deep. */
static void set_sampling(void)
{
    run.depth = 3;
    run.draws = 1;
    run.first_ops[1] = run.first_ops[2] = 40;
    run.one_in[0] = 4;
    run.one_in[1] = 40;
    run.one_in[2] = 80;
    option.longest = 3;
    option.one_in = 97;
}

/* Sets the extent of the run, as far as options do not. */
static void set_extent(void)
{
    int brief = option.brief, full = option.full;

    run.seed = 1;
    run.depth = full ? 3 : 2;
    run.draws = brief ? 1 : full ? 6 : 2;
    run.first_ops[0] = UINT32_MAX;
    run.first_ops[1] = full ? 40 : 16;
    run.first_ops[2] = 40;
    run.one_in[0] = brief ? 4 : 1;
    run.one_in[1] = brief ? 400 : full ? 20 : 100;
    run.one_in[2] = 400;
    option.longest = brief ? 2 : 3;
    option.one_in = brief ? 16 : full ? 1 : 3;
    if (option.states)
        set_sampling();
}

/* Sets a switch; returns 0 if there is none of that name. */
static int read_switch(const char *name)
{
    static const struct { const char *name; int *value; } switches[] = {
        { "--short", &option.brief }, { "--long", &option.full },
        { "--first", &option.first }, { "--trace", &option.trace },
    };

    for (size_t i = 0; i < COUNT(switches); i++)
        if (!strcmp(name, switches[i].name))
            return *switches[i].value = 1;
    return 0;
}

/* Sets what has a value; returns 0 if there is nothing of that name. */
static int read_value(const char *name, const char *value)
{
    if (!strcmp(name, "--geometry"))
        option.geometry = value;
    else if (!strcmp(name, "--workload"))
        option.workload = value;
    else if (!strcmp(name, "--depth"))
        run.depth = (unsigned)strtoul(value, NULL, 10);
    else if (!strcmp(name, "--seed"))
        run.seed = (uint32_t)strtoul(value, NULL, 10);
    else if (!strcmp(name, "--draws"))
        run.draws = (uint32_t)strtoul(value, NULL, 10);
    else if (!strcmp(name, "--states"))
        option.states = strtoull(value, NULL, 10);
    else if (!strcmp(name, "--cut"))
        run.path = read_path(run.cut, value);
    else if (!strcmp(name, "--variant"))
        read_path(run.variant, value);
    else
        return 0;
    return 1;
}

/* Returns 0, or -1 if the command line is not right. */
static int read_options(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        if (!read_switch(argv[i]) && i + 1 < argc)
            read_value(argv[i], argv[i + 1]);
    set_extent();
    for (int i = 1; i < argc; i++)
        if (!read_switch(argv[i]) &&
            (i + 1 == argc || !read_value(argv[i], argv[i + 1]) || !++i))
            return -1;
    if (run.path) {
        run.depth = run.path;
        option.trace = 1;
    }
    *tracing() |= option.trace;
    return run.depth >= 1 && run.depth <= DEPTH_MAX ? 0 : -1;
}

/* Runs what is asked for on one geometry. */
static void run_geometry(const geometry *g)
{
    const char *wanted = option.workload;
    int found = 0;

    for (size_t i = 0; i < COUNT(workloads); i++) {
        if (wanted && strcmp(wanted, workloads[i].name))
            continue;
        run_workload(g, workloads[i].events);
        found = 1;
    }
    if (!wanted || !strcmp(wanted, "marathon"))
        run_marathon(g, 0);
    if (!wanted || !strcmp(wanted, "marathon-first"))
        run_marathon(g, 1);
    if (wanted && !found && strncmp(wanted, "marathon", 8))
        run_workload(g, wanted);
    for (size_t i = 0; i < COUNT(contexts) && !wanted; i++)
        run_context(g, contexts[i]);
}

/* Runs it in rounds, each with a seed of its own, until there are enough
   states; or once. */
static void run_rounds(const geometry *g)
{
    uint64_t enough = option.states;

    if (!option.geometry)
        enough /= COUNT(geometries);
    do {
        run_geometry(g);
        run.seed++;
    } while (part.states < enough);
}

/* Adds what came of a geometry. */
static void add_tally(const tally *from)
{
    for (unsigned d = 0; d <= DEPTH_MAX; d++)
        total.states_of[d] += from->states_of[d];
    total.states += from->states;
    total.cuts += from->cuts;
    total.violations += from->violations;
    total.unfit += from->unfit;
    total.told += from->told;
}

/* Says what came of a geometry, or of all. */
static void print_tally(const char *name, const tally *t)
{
    printf("%-6s %9llu states, %8llu operations cut, %llu violations", name,
           (unsigned long long)t->states, (unsigned long long)t->cuts,
           (unsigned long long)t->violations);
    if (run.depth > 2)
        printf(", cut once %llu, twice %llu, thrice %llu",
               (unsigned long long)t->states_of[1],
               (unsigned long long)t->states_of[2],
               (unsigned long long)t->states_of[3]);
    if (t->unfit)
        printf(", %llu workloads do not fit", (unsigned long long)t->unfit);
    if (t->told)
        printf(", %llu losses told after two unstable tears",
               (unsigned long long)t->told);
    printf("\n");
    fflush(stdout);
}

/* Runs a geometry in a process of its own, which writes to `out` what came of
   it.  Returns the process. */
static pid_t spawn(const geometry *g, int out)
{
    pid_t child;

    fflush(stdout);
    child = fork();
    if (child)
        return child;
    memset(&part, 0, sizeof part);
    run_rounds(g);
    print_tally(g->name, &part);
    _exit(write(out, &part, sizeof part) != sizeof part);
}

/* Runs all geometries, as many at a time as there are processors.  Returns how
   many did not come to their end. */
static int run_all(void)
{
    pid_t children[COUNT(geometries)] = { 0 };
    long room = sysconf(_SC_NPROCESSORS_ONLN);
    size_t next = 0;
    int ends[2], status, lost = 0;

    if (pipe(ends) < 0)
        return 1;
    for (size_t done = 0; done < COUNT(geometries); done++) {
        while (next < COUNT(geometries) && next < done + (size_t)room) {
            children[next] = spawn(&geometries[next], ends[1]);
            next++;
        }
        pid_t child = wait(&status);
        for (size_t i = 0; i < next; i++)
            if (children[i] == child)
                children[i] = 0;
        lost += status != 0;
        if (!status && read(ends[0], &part, sizeof part) == sizeof part)
            add_tally(&part);
        for (size_t i = 0; i < next && status && option.first; i++)
            if (children[i])
                kill(children[i], SIGKILL);
        if (status && option.first)
            break;
    }
    return lost;
}

int main(int argc, char **argv)
{
    int lost = 0;

    if (argc == 2 && !strcmp(argv[1], "--list")) {
        list();
        return 0;
    }
    if (read_options(argc, argv) < 0)
        return usage();
    run.terminal = isatty(2);
    signal(SIGSEGV, on_signal);
    signal(SIGABRT, on_signal);
    signal(SIGALRM, on_signal);
    if (!option.geometry)
        lost = run_all();
    for (size_t i = 0; i < COUNT(geometries) && option.geometry; i++)
        if (!strcmp(option.geometry, geometries[i].name))
            run_rounds(&geometries[i]);
    if (option.geometry)
        add_tally(&part);
    print_tally("crash", &total);
    if (lost)
        printf("%d geometries did not come to their end\n", lost);
    return total.violations || lost;
}
