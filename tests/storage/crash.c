/* SPDX-License-Identifier: 0BSD */
/*
 * Cuts the power at every storage operation of many short workloads, leaves the
 * operation torn in every way that flash.h knows, starts again, and looks
 * whether every promise still holds.  What holds is what the model of
 * crash_model.h says, which knows the calls and nothing of the journal.
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
 * With --strict no call that seems not to have happened may turn out later to
 * have (crash_model.h).
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

#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "crash_model.h"
#include "flash.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

enum { DEPTH_MAX = 3 };             // cuts on one path
enum { OLD_CLAIMS = 8 };            // that are tried again after restarts
enum { READS_MAX = 1 << 20 };       // in one call: it does not end
enum { PATIENCE = 60 };             // seconds for one cut: it does not end
enum { READS_OPENING = 9 };         // of a byte
enum { REPLAY_READS = 0 };          // of a duplicate
enum { SWAYS_MAX = 2 };             // cuts of that kind, and a loss may be told
enum { REPORTS = 5 };               // violations that are told of in full
enum { UNREADABLE = -1 };           // known.status, when looking fails

#define SECRET "sixteen secrets."

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
    NOISE = 1,                      // a torn granule of ECC reads as noise,
    ALL_NOISE = 64,                 // all of a program may
    CACHE = 2,                      // programs are durable from a sync on
    SPLIT = 4,                      // erasing is polled
    VERIFY = 8,                     // what was programmed is read back
    STATELESS = 16,                 // there is no application state
    LATE = 32                       // the headers are written before any cut
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
    // The medium, its memory, and what looks at it.
    flash medium;
    uint8_t *bytes, *durable, *read_map;
    uint16_t *stamps;
    int erasing;                // polls until a split erase is done
    uint32_t sector;            // that it erases
    int misused;                // the sector was, meanwhile
    int read_failed;            // since the latest opening
    uint32_t reads;             // in this call
    int blank;                  // at the opening, as far as can be seen
    // The table.
    idem_storage storage;
    idem_config config;
    idem_table table;
    uint32_t *memory;
    size_t memory_size;
    uint32_t tick;
    // What is known of it.
    model model;
    model_call call;
    int calling;                // the call has not returned yet
    int acknowledged;           // something was, ever
    int idle;                   // there is no idle work left
    idem_claim held[KEYS], before[KEYS];    // the latest of each, one before
    idem_claim old[OLD_CLAIMS]; // of earlier boots
    unsigned olds;
    // Where it is.
    unsigned depth;             // cuts so far
    unsigned cut, variant;      // the latest of them
    unsigned sways;             // cuts that read differently from boot to boot
    unsigned ops;               // that could be cut since then
    uint32_t mix;               // chance, from the path
    int cutting;
    int failed;                 // a violation was reported
    const char *events;         // that are run
    const char *event;          // the present one
} machine;

static machine machines[DEPTH_MAX + 1];
static machine *active;             // of them, for on_signal

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
    int trace;
    int terminal;               // shows progress
    int marathon;               // the first machine is cut itself:
    unsigned cut_in, cuts;      // in so many operations, so many times so far
} run;

// What the command line asks for.
static struct {
    int      brief, full;       // --short, --long
    int      strict;
    int      first;             // the first violation is the end
    const char *geometry, *workload;
    unsigned longest;           // sequence
    unsigned one_in;            // of so many sequences on one geometry
    uint64_t states;            // that are enough, in all; 0: one round
} option;

// What came of it.
typedef struct tally {
    uint64_t states_of[DEPTH_MAX + 1];  // with so many cuts
    uint64_t states, cuts, violations, unreadable, blank_doubts, unfit;
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

/* Reports a violation, the first on this machine only. */
static void wrong(machine *m, const char *format, ...)
{
    va_list args;

    if (m->failed)
        return;
    m->failed = 1;
    part.violations++;
    if (total.violations + part.violations > REPORTS && !run.trace)
        return;
    printf("violation: ");
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    printf("\n    in \"%s\" at \"%.3s\"\n    build/crash --geometry %s "
           "--workload \"%s\"", m->events ? m->events : "",
           m->event ? m->event : "", run.geometry->name, run.workload);
    if (m->depth) {
        print_path("--cut", m, 0);
        print_path("--variant", m, 1);
    }
    printf(" --seed %u --draws %u\n", (unsigned)run.seed,
           (unsigned)run.draws);
    fflush(stdout);
    if (option.first)
        _exit(1);
}

/* The library crashed or hangs; nothing can go on. */
static void on_signal(int number)
{
    wrong(active, "signal %d", number);
    _exit(1);
}

/* Says what happens, when one path is looked at. */
static void trace(const machine *m, const char *format, ...)
{
    va_list args;

    if (!run.trace)
        return;
    printf("%*s", (int)(2 + 4 * m->depth), "");
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    printf("\n");
}

/* ------------------------------------------- >>storage  callbacks of idem.h */

/* An endless call would never come back to be reported. */
static void count_read(machine *m)
{
    if (++m->reads < READS_MAX)
        return;
    wrong(m, "a call does not end");
    exit(1);
}

/* While a sector is being erased, only others are to be used. */
static void check_erasing(machine *m, uint32_t at)
{
    m->misused |= m->erasing && at / m->medium.sector_size == m->sector;
}

// The four of them, as in struct idem_storage, and erasing.
static int storage_read(void *ctx, uint32_t at, void *dst, uint32_t len)
{
    machine *m = (machine *)ctx;
    int result;

    count_read(m);
    check_erasing(m, at);
    result = flash_read(&m->medium, at, dst, len);
    m->read_failed |= result != 0;
    return result;
}

static int storage_prog(void *ctx, uint32_t at, const void *src, uint32_t len)
{
    machine *m = (machine *)ctx;

    check_erasing(m, at);
    return flash_prog(&m->medium, at, src, len);
}

/* With a split erase, it happens when it is done. */
static int storage_erase(void *ctx, uint32_t sector)
{
    machine *m = (machine *)ctx;

    m->misused |= m->erasing != 0;
    if (!m->storage.erasing)
        return flash_erase(&m->medium, sector);
    m->erasing = 2;
    m->sector = sector;
    return 0;
}

static int storage_erasing(void *ctx)
{
    machine *m = (machine *)ctx;

    count_read(m);
    if (!m->erasing)
        return 0;
    if (--m->erasing)
        return 1;
    return flash_erase(&m->medium, m->sector);
}

static int storage_sync(void *ctx)
{
    machine *m = (machine *)ctx;

    return flash_sync(&m->medium);
}

/* -------------------------------------------- >>opening  a machine, a table */

/* Whether every byte may read erased, so that nobody can see any doubt. */
static int medium_blank(const flash *f)
{
    for (uint32_t i = 0; i < f->size; i++)
        if (((f->bytes[i] ^ f->erased) & (uint8_t)~f->weak[i]) ||
            (f->marks[i] & FLASH_TORN))
            return 0;
    return 1;
}

/* The storage was used as it may be. */
static void check_storage(machine *m)
{
    flash *f = &m->medium;

    if (m->misused)
        wrong(m, "a sector was used while it was being erased");
    // On wholly blank storage doubt cannot be seen.
    if (m->blank && f->violations == f->violations_of[FLASH_V_DOUBT]) {
        part.blank_doubts += f->violations;
        f->violations = f->violations_of[FLASH_V_DOUBT] = 0;
    }
    if (f->violations)
        wrong(m, "%s at %u", flash_text(f), (unsigned)f->first_at);
}

/* Two cuts that read differently from boot to boot may lose something, if that
   is told.  What is known then is not in the model: this path ends here. */
static void tell_loss(machine *m)
{
    if (!m->failed)
        part.told++;
    m->failed = 1;
}

/* What must be so after every call. */
static void check_machine(machine *m)
{
    int broken = idem_check(&m->table);

    check_storage(m);
    if (broken)
        wrong(m, "idem_check is %d", broken);
    if (m->table.stats.lost && m->sways >= SWAYS_MAX)
        tell_loss(m);
    else if (m->table.stats.lost)
        wrong(m, "stats.lost is %u", (unsigned)m->table.stats.lost);
    // What cannot be seen is found out when a program fails.
    if (m->table.stats.retired && !m->blank)
        wrong(m, "stats.retired is %u", (unsigned)m->table.stats.retired);
    if (m->model.live.overflow || m->model.kept.overflow)
        wrong(m, "of the test: too many worlds");
}

/* Opens the table: changes nothing, reads no byte twice, finds no loss. */
static void open_table(machine *m)
{
    flash *f = &m->medium;
    uint32_t ops = f->progs + f->erases;
    int result;

    m->tick = f->boots * 7919u;
    m->read_failed = 0;
    m->reads = 0;
    m->idle = 0;
    m->blank = !m->acknowledged && medium_blank(f);
    memset(m->memory, 0xA5, m->memory_size);
    memset(m->read_map, 0, f->size);
    f->read_map = m->read_map;
    result = idem_open(&m->table, &m->config, m->memory, m->memory_size,
                       m->tick);
    f->read_map = NULL;
    trace(m, "open: %s", idem_text(result));
    if (result != IDEM_OK) {
        wrong(m, "idem_open is %d (%s)", result, idem_text(result));
        return;
    }
    if (f->progs + f->erases != ops)
        wrong(m, "opening changed the storage");
    for (uint32_t at = 0; at < f->size && !m->read_failed; at++)
        if (m->read_map[at] > READS_OPENING)
            wrong(m, "opening read byte %u %u times", (unsigned)at,
                  m->read_map[at]);
    check_machine(m);
}

/* What restarts between two calls: claims become old. */
static void restart_claims(machine *m)
{
    for (unsigned k = 0; k < KEYS; k++)
        if (m->held[k].token)
            m->old[m->olds++ % OLD_CLAIMS] = m->held[k];
    memset(m->held, 0, sizeof m->held);
    memset(m->before, 0, sizeof m->before);
}

/* The power goes: a split erase that is not done yet is torn, in one variant or
   another. */
static void tear_erase(flash *f, uint32_t sector)
{
    flash_cut(f, 0, f->ops % 7);
    flash_erase(f, sector);
    f->off = f->armed = 0;
}

/* A restart between two calls. */
static void restart(machine *m)
{
    trace(m, "restart");
    if (m->erasing)
        tear_erase(&m->medium, m->sector);
    m->erasing = 0;
    restart_claims(m);
    model_restart(&m->model, &m->model, NULL);
    flash_boot(&m->medium);
    open_table(m);
}

/* ---------------------------------------------------- >>calls  to the table */

// The keys' scopes and bytes, and the payloads, with their fingerprints.
static const char *const scopes[KEYS] = { "s", "", "s", "two" };
static const char *const names[KEYS] = { "a", "bb", "c3", "d" };
static const char *const payloads[2] = { "pour", "stir" };
static uint64_t fingerprints[2];

/* The request that begins, finds or forgets a key. */
static idem_request request_of(unsigned key, int payload)
{
    idem_request rq;

    memset(&rq, 0, sizeof rq);
    rq.scope = scopes[key];
    rq.scope_len = strlen(scopes[key]);
    rq.key = names[key];
    rq.key_len = strlen(names[key]);
    rq.payload = payloads[payload];
    rq.payload_len = strlen(payloads[payload]);
    return rq;
}

/* Which key the bytes are that idem_next or idem_pending gave, or KEYS. */
static unsigned key_of(const idem_entry *entry, const char *id)
{
    unsigned k;

    for (k = 0; k < KEYS; k++) {
        size_t len = strlen(scopes[k]);
        if (entry->scope_len == len && !memcmp(id, scopes[k], len) &&
            entry->key_len == strlen(names[k]) &&
            !memcmp(id + len, names[k], entry->key_len))
            break;
    }
    return k;
}

/* A result's name. */
static const char *result_name(int result)
{
#define RESULT_NAME(name, value, text)                                         \
    case name:                                                                 \
        return #name;

    switch (result) {
        IDEM_RESULTS(RESULT_NAME)
    default:
        return "no result";
    }
}

/* Shows what the model holds possible of a key. */
static void print_worlds(const machine *m, unsigned key)
{
    for (unsigned i = 0; i < m->model.live.count; i++) {
        const world *w = &m->model.live.of[i];
        const known *k = &w->keys[key];
        trace(m, "possible: %c has status %d, payload %d, attempts %u, "
              "code %d, owed %d, lease %s; state %02X", (int)('a' + key),
              k->status, k->payload, k->attempts, (int)k->code, k->owed,
              k->lease_end > m->model.real ? "live" : "over", w->state[0]);
    }
}

/* Begins a call of a kind on a key: what its operations are in flight of. */
static model_call *call_begin(machine *m, char what, unsigned key)
{
    m->tick++;
    model_pass(&m->model, 1);
    if (what != 'D' && what != 'Y')
        model_tell(&m->model);
    memset(&m->call, 0, sizeof m->call);
    m->call.what = what;
    m->call.key = key;
    m->reads = 0;
    m->calling = 1;
    return &m->call;
}

/* What a call may cost, given the medium as it was before.  Where doubt cannot
   be seen it is found out by failing. */
static void check_cost(machine *m, const flash *was)
{
    uint32_t erases = m->medium.erases - was->erases;
    char what = m->call.what;

    if (erases > 1 + !m->model.wrote && !m->blank)
        wrong(m, "%u erases in one call", (unsigned)erases);
    if (m->idle && what == 'B' && erases && m->model.wrote)
        wrong(m, "an erase in spite of idle work");
    if (what == 'B')
        m->idle = 0;
}

/* The call has answered; the medium was as in *was. */
static int call_end(machine *m, const flash *was, int result)
{
    const model_call *c = &m->call;

    trace(m, "%c%c: %s, %u operations%s", c->what, (int)('a' + c->key),
          result_name(result), (unsigned)(m->medium.ops - was->ops),
          m->medium.off ? ", the power went" : "");
    if (m->medium.off) {
        check_storage(m);
        return result;
    }
    m->calling = 0;
    check_machine(m);
    check_cost(m, was);
    if (c->what == 'B' && c->claim.token && c->claim.token <= m->model.token)
        wrong(m, "token %u after %u", (unsigned)c->claim.token,
              (unsigned)m->model.token);
    m->acknowledged |= model_writes(&m->model, c, result);
    if (!model_step(&m->model, c, result)) {
        wrong(m, "%c%c cannot be %s", c->what, (int)('a' + c->key),
              result_name(result));
        print_worlds(m, c->key);
    }
    if (option.strict || (c->what != 'M' && m->medium.progs != was->progs))
        model_settle(&m->model);
    return result;
}

/* Asks for a key, with one of two payloads; keeps the claim if there is one. */
static int begin(machine *m, unsigned key, int payload)
{
    idem_request rq = request_of(key, payload);
    uint8_t buffer[RESPONSE_MAX];
    idem_reply reply;
    idem_claim claim;
    model_call *c = call_begin(m, 'B', key);
    flash was = m->medium;
    uint32_t failed = 0;
    int result;

    memset(&reply, 0, sizeof reply);
    reply.buffer = buffer;
    reply.buffer_size = sizeof buffer;
    c->payload = payload;
    // Where doubt cannot be seen, a program may fail: the next sector is next.
    do
        result = idem_begin(&m->table, &claim, &reply, &rq, m->tick);
    while (result == IDEM_E_STORAGE && m->blank && !m->medium.off &&
           ++failed < m->medium.sector_count);
    if (m->medium.off)
        return call_end(m, &was, result);
    c->claim = claim;
    c->reply = &reply;
    if (claim.token) {
        m->before[key] = m->held[key];
        m->held[key] = claim;
    }
    return call_end(m, &was, result);
}

/* Copies the bytes of the claim that was granted last; returns how many. */
static size_t echo(const machine *m, uint8_t *bytes)
{
    const flash *f = &m->medium;
    uint64_t token = m->model.token;
    uint64_t sequence = token / f->sector_size;
    uint32_t at = (uint32_t)(sequence % f->sector_count * f->sector_size +
                             token % f->sector_size);

    memcpy(bytes, f->bytes + at, RESPONSE_MAX);
    return RESPONSE_MAX;
}

/* Completes with an outcome that no other call has, in the manner of the
   event. */
static void complete(machine *m, unsigned key, char event)
{
    unsigned nth = ++m->model.completions;
    idem_outcome outcome;
    model_call *c = call_begin(m, 'C', key);
    flash was = m->medium;
    known *k = &c->outcome;

    c->claim = event == 'c' ? m->before[key] : m->held[key];
    k->status = event == 'F' ? IDEM_FAILED : IDEM_COMPLETED;
    k->nth = nth;
    k->code = (int32_t)(nth * 65537);
    k->owed = event == 'O' || event == 'Q';
    k->len = event == 'Z' ? 0 : 1 + nth % RESPONSE_USUAL;
    for (size_t i = 0; i < k->len; i++)
        k->response[i] = (uint8_t)(nth + 16 * i);
    if (event == 'I')
        k->len = echo(m, k->response);
    c->has_state = (event == 'S' || event == 'Q') && m->config.state_max;
    c->state_len = 1 + nth % STATE_MAX;
    for (size_t i = 0; i < c->state_len; i++)
        c->state[i] = (uint8_t)(nth - 16 * i);

    memset(&outcome, 0, sizeof outcome);
    outcome.response = k->response;
    outcome.response_len = k->len;
    outcome.code = k->code;
    outcome.failed = k->status == IDEM_FAILED;
    outcome.confirm = (uint8_t)k->owed;
    outcome.state = c->has_state ? c->state : NULL;
    outcome.state_len = c->has_state ? c->state_len : 0;
    call_end(m, &was, idem_complete(&m->table, &c->claim, &outcome, m->tick));
}

/* Gives the latest claim on a key back. */
static void release(machine *m, unsigned key)
{
    model_call *c = call_begin(m, 'R', key);
    flash was = m->medium;

    c->claim = m->held[key];
    call_end(m, &was, idem_release(&m->table, &c->claim, m->tick));
}

/* Lengthens the latest claim on a key. */
static void renew(machine *m, unsigned key)
{
    model_call *c = call_begin(m, 'N', key);
    flash was = m->medium;

    c->claim = m->held[key];
    call_end(m, &was, idem_renew(&m->table, &c->claim, 2 * LEASE, m->tick));
}

/* Removes a key. */
static void forget(machine *m, unsigned key)
{
    idem_request rq = request_of(key, 0);
    flash was = m->medium;

    call_begin(m, 'X', key);
    call_end(m, &was, idem_forget(&m->table, &rq, m->tick));
}

/* Confirms the delivery of the key's outcome, if it is owed. */
static void delivered(machine *m, unsigned key)
{
    char id[16];
    idem_entry entry;
    flash was = m->medium;

    memset(&entry, 0, sizeof entry);
    entry.id = id;
    entry.id_size = sizeof id;
    model_tell(&m->model);
    do
        if (idem_pending(&m->table, &entry, m->tick) != IDEM_OK)
            return;
    while (key_of(&entry, id) != key);
    call_begin(m, 'D', key);
    call_end(m, &was, idem_delivered(&m->table, &entry.claim));
}

/* One step of idle work. */
static int maintain(machine *m)
{
    flash was = m->medium;

    call_begin(m, 'M', 0);
    return call_end(m, &was, idem_maintain(&m->table, m->tick));
}

/* Makes durable what a batch holds. */
static void synchronise(machine *m)
{
    flash was = m->medium;

    call_begin(m, 'Y', 0);
    call_end(m, &was, idem_sync(&m->table));
}

/* Time passes that the next call sees, or that is told of. */
static void pass(machine *m, uint32_t ms, int told)
{
    model_pass(&m->model, ms);
    if (!told) {
        m->tick += ms;
        return;
    }
    m->model.seen += ms;
    if (idem_elapse(&m->table, ms) != IDEM_OK)
        wrong(m, "idem_elapse failed");
}

/* --------------------------------------------------------- >>looking at all */

/* Looks a key up. */
static void look_key(machine *m, view *v, unsigned key)
{
    idem_request rq = request_of(key, 0);
    known *k = &v->keys[key];
    idem_entry entry;
    int result;

    memset(&entry, 0, sizeof entry);
    result = idem_find(&m->table, &entry, &rq, m->tick);
    if (result == IDEM_E_NOT_FOUND)
        return;
    k->status = result == IDEM_OK ? entry.status : UNREADABLE;
    if (result != IDEM_OK)
        return;
    k->payload = entry.fingerprint == fingerprints[1];
    if (entry.fingerprint != fingerprints[k->payload])
        wrong(m, "a fingerprint of no payload");
    k->attempts = entry.attempts;
    if (k->status == IDEM_IN_PROGRESS)
        return;
    k->code = entry.code;
    k->owed = entry.undelivered;
    k->len = sizeof k->response;
    v->age[key] = entry.age_ms;
    if (idem_response(&m->table, k->response, &k->len, &entry.claim, 0) < 0)
        k->status = UNREADABLE;
    else if (k->len != entry.response_len)
        wrong(m, "a response of another length");
}

/* The keys that idem_next shows are those that were found. */
static void look_next(machine *m, const view *v)
{
    int left[KEYS], result;
    char id[16];
    idem_entry entry;

    for (unsigned k = 0; k < KEYS; k++)
        left[k] = v->keys[k].status != 0;
    memset(&entry, 0, sizeof entry);
    entry.id = id;
    entry.id_size = sizeof id;
    while ((result = idem_next(&m->table, &entry, m->tick)) == IDEM_OK) {
        unsigned k = key_of(&entry, id);
        if (k == KEYS || !left[k]--)
            wrong(m, "idem_next shows a key that idem_find does not");
        if (m->failed)
            return;
    }
    for (unsigned k = 0; k < KEYS && result == IDEM_E_NOT_FOUND; k++)
        if (left[k])
            wrong(m, "idem_next does not show key %c", (int)('a' + k));
}

/* The outcomes that are owed, in their order. */
static void look_pending(machine *m, view *v)
{
    char id[16];
    idem_entry entry;

    memset(&entry, 0, sizeof entry);
    entry.id = id;
    entry.id_size = sizeof id;
    while (idem_pending(&m->table, &entry, m->tick) == IDEM_OK) {
        unsigned k = key_of(&entry, id);
        if (k == KEYS || v->owed == KEYS || !v->keys[k].owed)
            wrong(m, "idem_pending shows what is not owed");
        if (m->failed)
            return;
        v->owing[v->owed++] = k;
    }
}

/* All that can be seen is as the model has it; looking changes nothing. */
static void look(machine *m)
{
    uint32_t ops = m->medium.ops;
    view v;

    memset(&v, 0, sizeof v);
    model_tell(&m->model);
    m->reads = 0;
    for (unsigned k = 0; k < KEYS; k++) {
        look_key(m, &v, k);
        trace(m, "%c: status %d, attempts %u, code %d, owed %d",
              (int)('a' + k), v.keys[k].status, v.keys[k].attempts,
              (int)v.keys[k].code, v.keys[k].owed);
        v.unreadable += v.keys[k].status == UNREADABLE;
    }
    look_next(m, &v);
    look_pending(m, &v);
    v.state_len = sizeof v.state;
    if (idem_state(&m->table, v.state, &v.state_len) != IDEM_OK)
        wrong(m, "the state does not read");
    trace(m, "state: %u bytes, %02X", (unsigned)v.state_len, v.state[0]);
    if (m->medium.ops != ops)
        wrong(m, "looking changed the storage");
    check_machine(m);
    if (v.unreadable) {
        // Only what is not confirmed yet may be so weak.
        part.unreadable++;
        if (m->model.wrote)
            wrong(m, "a record does not read");
        return;
    }
    if (model_look(&m->model, &v))
        return;
    wrong(m, "what can be looked at is not possible");
    for (unsigned k = 0; k < KEYS; k++)
        print_worlds(m, k);
}

/* No claim of an earlier boot is current, and trying costs nothing. */
static void check_fenced(machine *m)
{
    uint32_t ops = m->medium.ops;
    unsigned count = m->olds < OLD_CLAIMS ? m->olds : OLD_CLAIMS;
    idem_outcome outcome;

    memset(&outcome, 0, sizeof outcome);
    for (unsigned i = 0; i < count; i++) {
        const idem_claim *claim = &m->old[i];
        if (idem_complete(&m->table, claim, &outcome, m->tick) !=
                IDEM_E_FENCED ||
            idem_renew(&m->table, claim, LEASE, m->tick) != IDEM_E_FENCED ||
            idem_release(&m->table, claim, m->tick) != IDEM_E_FENCED)
            wrong(m, "the claim with token %u is not fenced",
                  (unsigned)claim->token);
    }
    if (m->medium.ops != ops)
        wrong(m, "a fenced claim changed the storage");
}

/* ----------------------------------------------------------------- >>events */

/* A duplicate of a finished command costs almost nothing, once the outcome is
   confirmed. */
static void duplicate(machine *m, unsigned key, int payload)
{
    flash was = m->medium;

    if (begin(m, key, payload) != IDEM_REPLAY)
        wrong(m, "a duplicate was not replayed");
    if (m->medium.ops != was.ops)
        wrong(m, "a duplicate changed the storage");
    if (m->medium.reads - was.reads > REPLAY_READS)
        wrong(m, "a duplicate took %u reads",
              (unsigned)(m->medium.reads - was.reads));
}

/* Whether only a sync makes durable. */
static int in_batch(const machine *m)
{
    return m->config.durability == IDEM_BATCH;
}

/* Brings a key to its end, as an application would: execute after the sync,
   answer after the sync. */
static void achieve(machine *m, unsigned key)
{
    int result = begin(m, key, 0);

    if (in_batch(m) && !m->medium.off)
        synchronise(m);
    if (m->failed || m->medium.off)
        return;
    if (result == IDEM_EXECUTE || result == IDEM_RECOVER) {
        complete(m, key, 'C');
        if (in_batch(m) && !m->medium.off)
            synchronise(m);
        result = IDEM_REPLAY;
    }
    if (result == IDEM_REPLAY && !m->failed && !m->medium.off)
        duplicate(m, key, 0);
}

/* Idle work until there is none. */
static void rest(machine *m)
{
    unsigned steps = 0;

    while (maintain(m) == IDEM_MORE && !m->failed && !m->medium.off)
        if (++steps > 1000)
            wrong(m, "idle work does not end");
    m->idle = 1;
}

/* Turns the journal over with records that nobody needs; or, with restarts,
   with heads. */
static void churn(machine *m, unsigned times, int restarts)
{
    unsigned key = KEYS - 1;

    for (unsigned i = 0; i < times && !m->failed && !m->medium.off; i++) {
        int result, granted;
        if (restarts)
            restart(m);
        if (m->failed)
            return;
        result = begin(m, key, 0);
        granted = result == IDEM_EXECUTE || result == IDEM_RECOVER;
        if (m->medium.off || (!granted && result != IDEM_REPLAY))
            return;
        if (granted && i % 2 == 0) {
            release(m, key);
            continue;
        }
        if (granted)
            complete(m, key, 'C');
        if (!m->medium.off)
            forget(m, key);
    }
}

/* Does one event on a key, or on none. */
static void step(machine *m, char event, unsigned key)
{
    switch (event) {
    case 'B': case 'W': begin(m, key, event == 'W'); break;
    case 'R': release(m, key); break;
    case 'N': renew(m, key); break;
    case 'X': forget(m, key); break;
    case 'D': delivered(m, key); break;
    case 'A': achieve(m, key); break;
    case 'L': pass(m, LEASE, 0); break;
    case 'T': pass(m, RETENTION, 0); break;
    case 'E': pass(m, LEASE, 1); break;
    case 'M': rest(m); break;
    case 'm': maintain(m); break;
    case 'Y': synchronise(m); break;
    case 'P': restart(m); break;
    case '!': check_fenced(m); break;
    case '?': look(m); break;
    case '|': m->cutting = 1; break;
    default:  complete(m, key, event); break;
    }
}

/* Runs a line of events, until a violation or, in a marathon, a cut. */
static void run_events(machine *m, const char *events)
{
    m->events = m->event = events;
    while (*m->event && !m->failed && !m->medium.off) {
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
    active = m;
    alarm(PATIENCE);
    trace(m, "cut in operation %u, variant %u", m->cut, m->variant);
    flash_boot(&m->medium);
    m->events = m->event = "?";
    open_table(m);
    if (!m->failed)
        look(m);
    if (!m->failed)
        run_events(m, epilogues[(m->cut + m->variant) % COUNT(epilogues)]);
    active = m - 1;
    part.states++;
    part.states_of[m->depth]++;
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

/* Leaves a copy of the machine torn in the middle of an operation; it goes on
   from there.  Nothing happens if the medium refuses the operation anyway. */
static void cut_variant(machine *m, const flash_op *op, unsigned at,
                        unsigned variant)
{
    machine *c = m + 1;
    flash *f = &c->medium;

    flash_copy(f, &m->medium);
    if (m->erasing)
        tear_erase(f, m->sector);
    flash_cut(f, 0, variant);
    if (op->call == FLASH_PROG)
        flash_prog(f, op->at, op->src, op->len);
    else if (op->call == FLASH_ERASE)
        flash_erase(f, op->at / f->sector_size);
    else
        flash_off(f, variant);
    if (!f->off)
        return;
    f->watch = m->medium.watch;
    f->watch_arg = c;
    f->violations = 0;
    memset(f->violations_of, 0, sizeof f->violations_of);
    model_restart(&c->model, &m->model, m->calling ? &m->call : NULL);
    memcpy(c->held, m->held, sizeof c->held);
    memcpy(c->old, m->old, sizeof c->old);
    c->olds = m->olds;
    restart_claims(c);
    c->acknowledged = m->acknowledged;
    c->sways = m->sways + is_unstable(&m->medium, op, variant);
    c->erasing = c->misused = c->calling = c->failed = 0;
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
    int torn = flash_torn_kind(&m->medium, op, variant, &k);

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
    unsigned variants = flash_variants(&m->medium, op);
    unsigned chosen = 0;

    if (m->depth >= run.depth || at >= run.first_ops[m->depth] || m->failed ||
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
        flash_cut(&m->medium, 0, run.cuts * 31 % flash_variants(f, op));
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

/* Memory, cleared; there always is some. */
static void *allocate(size_t size)
{
    void *memory = calloc(1, size);

    if (memory)
        return memory;
    fputs("no memory\n", stderr);
    exit(2);
}

/* Lets go of a machine's memory. */
static void machine_free(machine *m)
{
    free(m->bytes);
    free(m->durable);
    free(m->stamps);
    free(m->read_map);
    free(m->memory);
    m->bytes = m->durable = m->read_map = NULL;
    m->stamps = NULL;
    m->memory = NULL;
}

/* Makes the medium, blank. */
static void make_medium(machine *m, const geometry *g, uint32_t sectors)
{
    flash *f = &m->medium;
    uint32_t size = g->sector_size * sectors;

    machine_free(m);
    memset(f, 0, sizeof *f);
    f->kind = g->kind;
    f->sector_size = g->sector_size;
    f->sector_count = sectors;
    f->prog_size = g->granule;
    f->erased = g->erased;
    f->seed = run.seed;
    f->draws = g->flags & CACHE ? 4 * run.draws : run.draws;
    f->torn_noise = g->flags & ALL_NOISE ? 1
                  : g->flags & NOISE     ? FLASH_ONE_TORN : 0;
    f->cut_syncs = !!(g->flags & CACHE);
    m->bytes = (uint8_t *)allocate(
        FLASH_MEMORY(f->sector_size, f->sector_count));
    m->read_map = (uint8_t *)allocate(size);
    if (g->flags & CACHE) {
        m->durable = (uint8_t *)allocate(size);
        m->stamps = (uint16_t *)allocate(size * sizeof *m->stamps);
    }
    f->durable = m->durable;
    f->stamps = m->stamps;
    if (flash_init(f, m->bytes) < 0) {
        fputs("impossible geometry\n", stderr);
        exit(2);
    }
}

/* Configures the table, for a geometry and the modes of a workload. */
static void make_config(machine *m, const geometry *g, const char *text)
{
    idem_storage *s = &m->storage;

    memset(s, 0, sizeof *s);
    s->ctx = m;
    s->read = storage_read;
    s->prog = storage_prog;
    s->erase = g->kind == FLASH_INPLACE ? NULL : storage_erase;
    s->erasing = g->flags & SPLIT ? storage_erasing : NULL;
    s->sync = g->flags & CACHE ? storage_sync : NULL;
    s->sector_size = m->medium.sector_size;
    s->sector_count = m->medium.sector_count;
    s->prog_size = (uint16_t)g->granule;
    s->erased = g->erased;
    s->verify = !!(g->flags & VERIFY);
    memset(&m->config, 0, sizeof m->config);
    m->config.capacity = CAPACITY;
    m->config.key_max = KEY_MAX;
    m->config.response_max = RESPONSE_USUAL;
    m->config.state_max = g->flags & STATELESS ? 0 : STATE_MAX;
    m->config.max_attempts = ATTEMPTS;
    m->config.lease_ms = LEASE;
    m->config.retention_ms = RETENTION;
    memcpy(m->config.secret, SECRET, sizeof m->config.secret);
    m->config.storage = s;
    set_modes(&m->config, text);
}

/* Makes a machine; as many sectors as it takes.  Returns their number, or 0 if
   no number would do. */
static uint32_t make_machine(machine *m, const geometry *g, uint32_t sectors,
                             const char *text)
{
    int result;

    for (;;) {
        make_medium(m, g, sectors);
        make_config(m, g, text);
        result = idem_open(&m->table, &m->config, NULL, 0, 0);
        if (result == IDEM_E_MEMORY) {
            m->memory_size = m->table.needed + g->spare;
            m->memory = (uint32_t *)allocate(m->memory_size);
            result = idem_open(&m->table, &m->config, m->memory,
                               m->memory_size, 0);
        }
        if (result == IDEM_OK)
            return sectors;
        if (result != IDEM_E_SPACE || m->table.needed <= sectors)
            return 0;
        sectors = (uint32_t)m->table.needed;
    }
}

/* Makes the machines of a workload and starts the first; NULL if it does not
   fit. */
static machine *start(const geometry *g, const char *text)
{
    uint32_t sectors = g->sector_count;
    machine *m = machines;

    run.geometry = g;
    run.workload = text;
    active = m;
    alarm(PATIENCE);
    if (run.terminal)
        fprintf(stderr, "\r%-8s %-60.60s\r", g->name, text);
    for (unsigned d = 0; d <= run.depth; d++) {
        sectors = make_machine(&machines[d], g, sectors, text);
        if (!sectors) {
            part.unfit++;
            return NULL;
        }
        machines[d].depth = d;
        machines[d].medium.watch = watch;
        machines[d].medium.watch_arg = &machines[d];
    }
    model_init(&m->model, &m->config);
    memset(m->held, 0, sizeof m->held);
    memset(m->before, 0, sizeof m->before);
    m->olds = m->ops = 0;
    m->erasing = m->misused = m->calling = m->failed = m->acknowledged = 0;
    m->sways = 0;
    m->mix = flash_mix(run.seed);
    open_table(m);
    m->cutting = 0;
    if (g->flags & LATE)
        churn(m, 1, 0);
    return m;
}

/* Lets go of all machines. */
static void finish(void)
{
    for (unsigned d = 0; d <= run.depth; d++)
        machine_free(&machines[d]);
}

/* Runs a workload; cuts it all, or what follows the bar. */
static void run_workload(const geometry *g, const char *text)
{
    machine *m = start(g, text);

    if (!m)
        return;
    m->cutting = !strchr(text, '|');
    run_events(m, set_modes(&m->config, text));
    if (!m->failed)
        look(m);
    if (!m->failed)
        cut_end(m);
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

/* Cuts each boot in one of its first operations, a thousand times in a row;
   then lets it run: all is still true, and work goes on.  With `first` it is
   always the first operation, so nothing ever gets done before. */
static void run_marathon(const geometry *g, int first)
{
    static const char *const lines[] = {
        "Aa", "Ab", "Xa", "Ba Ra", "Aa Ac", "M", "Xb", "Ba Sa", "Bb Ob Db",
    };
    machine *m = start(g, first ? "marathon-first" : "marathon");
    unsigned boots;

    if (!m)
        return;
    run.marathon = 1;
    run.cuts = 0;
    m->cutting = 0;
    for (boots = 0; run.cuts < MARATHON && !m->failed; boots++) {
        run.cut_in = first ? 0 : boots % 11;
        run_events(m, lines[boots % COUNT(lines)]);
        run.cut_in = UINT32_MAX;
        if (m->failed)
            break;
        if (m->medium.off) {
            run.cuts++;
            model_restart(&m->model, &m->model, m->calling ? &m->call : NULL);
        } else {
            model_restart(&m->model, &m->model, NULL);
        }
        if (m->medium.off)
            part.states++;
        m->calling = 0;
        restart_claims(m);
        flash_boot(&m->medium);
        open_table(m);
        if (!m->failed)
            look(m);
        if (boots > 100 * MARATHON)
            wrong(m, "of the test: hardly anything to cut");
    }
    run.marathon = 0;
    part.cuts += run.cuts;
    for (unsigned e = 0; e < COUNT(epilogues) && !m->failed; e++)
        run_events(m, epilogues[e]);
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
    fputs("crash [--short | --long] [--list] [--first] [--strict] [--trace]\n"
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
        { "--first", &option.first }, { "--strict", &option.strict },
        { "--trace", &run.trace },
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
        run.trace = 1;
    }
    return run.depth >= 1 && run.depth <= DEPTH_MAX ? 0 : -1;
}

/* Runs what is asked for on one geometry. */
static void run_geometry(const geometry *g)
{
    const char *asked = option.workload;
    int found = 0;

    for (size_t i = 0; i < COUNT(workloads); i++) {
        if (asked && strcmp(asked, workloads[i].name))
            continue;
        run_workload(g, workloads[i].events);
        found = 1;
    }
    if (!asked || !strcmp(asked, "marathon"))
        run_marathon(g, 0);
    if (!asked || !strcmp(asked, "marathon-first"))
        run_marathon(g, 1);
    if (asked && !found && strncmp(asked, "marathon", 8))
        run_workload(g, asked);
    for (size_t i = 0; i < COUNT(contexts) && !asked; i++)
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
    total.unreadable += from->unreadable;
    total.blank_doubts += from->blank_doubts;
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
    if (t->unreadable)
        printf(", %llu looks at what did not read",
               (unsigned long long)t->unreadable);
    if (t->blank_doubts)
        printf(", %llu doubts on blank storage",
               (unsigned long long)t->blank_doubts);
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

/* Computes what idem_find tells of the payloads. */
static void set_fingerprints(void)
{
    idem_fingerprint_state state;
    idem_config config;

    memset(&config, 0, sizeof config);
    memcpy(config.secret, SECRET, sizeof config.secret);
    for (unsigned i = 0; i < COUNT(payloads); i++) {
        idem_fingerprint_init(&state, &config);
        idem_fingerprint_update(&state, payloads[i], strlen(payloads[i]));
        fingerprints[i] = idem_fingerprint_final(&state);
    }
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
    set_fingerprints();
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
