/* SPDX-License-Identifier: 0BSD */
/*
 * Cuts the power at every storage operation of many short workloads, leaves the
 * operation torn in every way that flash.h knows, starts again, and checks
 * every promise with the model of tests/model.  explore.h has the search,
 * workloads.h the workloads.
 *
 *     build/crash                 minutes; --short: seconds
 *     build/crash --states N      samples with one seed after the other, three
 *                                 cuts deep, until there are that many states
 *
 * A violation has a path: the operation that was cut and the variant in which
 * it was left, then the same of the recovery's operations.  The last line of
 * the output has the command that shows it again:
 *
 *     build/crash --geometry nor8 --workload "Ba Ca" --cut 5/2 --variant 3/0
 */
#define _DEFAULT_SOURCE

#define IDEM_STATIC
#define IDEM_IMPLEMENTATION
#include "idem.h"

#include "explore.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

enum { REPORTS = 5 };               // violations that are printed in full

static const extent extents[] = {
    { 2, 2, { UINT32_MAX, 16, 40 }, { 1, 100, 400 }, 0, 3, 3 },
    { 2, 1, { UINT32_MAX, 16, 40 }, { 4, 400, 400 }, 0, 2, 16 },
    { 3, 1, { UINT32_MAX, 40, 40 }, { 4, 40, 80 }, 1, 3, 97 },
};

// The options of the command line, or NULL.
static struct {
    const char *brief, *first, *geometry, *workload, *states;
    const char *depth, *seed, *draws, *cut, *variant;
} option;

static const struct { const char *name, **value; int alone; } options[] = {
    { "--short", &option.brief, 1 }, { "--first", &option.first, 1 },
    { "--geometry", &option.geometry, 0 },
    { "--workload", &option.workload, 0 }, { "--states", &option.states, 0 },
    { "--depth", &option.depth, 0 }, { "--seed", &option.seed, 0 },
    { "--draws", &option.draws, 0 }, { "--cut", &option.cut, 0 },
    { "--variant", &option.variant, 0 },
};

// What the processes share: by geometry, and in the end of all.
static struct {
    tally of[COUNT(geometries)], all;
    int ended;
} *shared;

/* -------------------------------------------------------------- >>reporting */

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

    if (part->violations++ >= REPORTS && !*tracing())
        longjmp(m->end, 1);
    printf("violation: %s (%s:%d)\n"
           "    build/crash --geometry %s --workload \"%s\"", what, file, line,
           run.geometry->m.name, run.workload);
    if (m->depth) {
        print_path("--cut", m, 0);
        print_path("--variant", m, 1);
    }
    printf(" --seed %u --draws %u\n", (unsigned)run.seed,
           (unsigned)run.how.draws);
    device_print(&m->d);
    fflush(stdout);
    if (option.first) {
        shared->ended = 1;
        _exit(1);
    }
    longjmp(m->end, 1);
}

/* The library crashed or hangs; nothing can go on. */
static void on_signal(int number)
{
    (void)number;
    option.first = "";
    broken("a signal: the library crashed or hangs", __FILE__, __LINE__);
}

/* Adds what came of a geometry. */
static void add_tally(tally *to, const tally *from)
{
    for (unsigned d = 0; d <= DEPTH_MAX; d++)
        to->states_of[d] += from->states_of[d];
    to->states += from->states;
    to->cuts += from->cuts;
    to->violations += from->violations;
    to->unfit += from->unfit;
    to->lossy += from->lossy;
}

/* Prints what came of a geometry, or of all. */
static void print_tally(const char *name, const tally *t)
{
    printf("%-6s %9llu states, %8llu operations cut, %llu violations", name,
           (unsigned long long)t->states, (unsigned long long)t->cuts,
           (unsigned long long)t->violations);
    if (run.how.depth > 2)
        printf(", cut once %llu, twice %llu, thrice %llu",
               (unsigned long long)t->states_of[1],
               (unsigned long long)t->states_of[2],
               (unsigned long long)t->states_of[3]);
    if (t->unfit)
        printf(", %llu workloads do not fit", (unsigned long long)t->unfit);
    if (t->lossy)
        printf(", %llu losses counted after two unstable tears",
               (unsigned long long)t->lossy);
    printf("\n");
    fflush(stdout);
}

/* ---------------------------------------------------------------- >>options */

/* Prints how to call the program. */
static int usage(void)
{
    fputs("crash [--short] [--first]                  names: workloads.h\n"
          "      [--geometry NAME] [--workload NAME|LINE] [--depth 1..3]\n"
          "      [--seed N] [--draws N] [--states N]\n"
          "      [--cut N[/N]] [--variant N[/N]]    one path, with its scenario\n",
          stderr);
    return 2;
}

/* Takes all options.  Returns 0, or -1 if one is not right. */
static int read_options(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        size_t o = 0;
        while (o < COUNT(options) && strcmp(argv[i], options[o].name))
            o++;
        if (o == COUNT(options) || (!options[o].alone && ++i == argc))
            return -1;
        *options[o].value = argv[i];
    }
    return 0;
}

/* The number that an option has, or another. */
static uint64_t number_of(const char *given, uint64_t otherwise)
{
    return given ? strtoull(given, NULL, 10) : otherwise;
}

/* Reads "5/2"; returns how many numbers there are. */
static unsigned read_path(unsigned *path, const char *text)
{
    unsigned count = 0;
    char *end;

    while (text && count < DEPTH_MAX) {
        path[count++] = (unsigned)strtoul(text, &end, 10);
        text = *end == '/' ? end + 1 : NULL;
    }
    return count;
}

/* Sets the extent of the run; 0 if that is not possible. */
static int set_extent(void)
{
    extent *how = &run.how;

    *how = extents[option.states ? 2 : option.brief ? 1 : 0];
    how->depth = (unsigned)number_of(option.depth, how->depth);
    how->draws = (uint32_t)number_of(option.draws, how->draws);
    run.seed = (uint32_t)number_of(option.seed, 1);
    read_path(run.variant, option.variant);
    run.path = read_path(run.cut, option.cut);
    if (run.path) {
        how->depth = run.path;
        for (unsigned d = 0; d < DEPTH_MAX; d++)
            how->first_ops[d] = UINT32_MAX;
        *tracing() = 1;
    }
    return how->depth >= 1 && how->depth <= DEPTH_MAX;
}

/* ---------------------------------------------------------------- >>running */

/* Runs what is asked for on one geometry. */
static void run_geometry(const geometry *g)
{
    const char *wanted = option.workload;
    int found = 0;

    for (size_t i = 0; i < COUNT(workloads); i++) {
        if (wanted && strcmp(wanted, workloads[i].name))
            continue;
        run_workload(g, workloads[i].line);
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

/* Runs it in a process of its own: in rounds, each with another seed, until
   there are enough states; or once. */
static void spawn(const geometry *g)
{
    uint64_t enough = number_of(option.states, 0);

    if (!option.geometry)
        enough /= COUNT(geometries);
    fflush(stdout);
    if (fork())
        return;
    part = &shared->of[g - geometries];
    do {
        run_geometry(g);
        run.seed++;
    } while (part->states < enough);
    print_tally(g->m.name, part);
    _exit(0);
}

/* Waits for a process; whether it did not come to its end. */
static int died(void)
{
    int status;

    return wait(&status) > 0 && status && !*ended;
}

int main(int argc, char **argv)
{
    long processors = sysconf(_SC_NPROCESSORS_ONLN), running = 0;
    int lost = 0;

    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE,
                  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED || read_options(argc, argv) < 0 || !set_extent())
        return usage();
    ended = &shared->ended;
    signal(SIGSEGV, on_signal);
    signal(SIGABRT, on_signal);
    signal(SIGVTALRM, on_signal);
    for (size_t i = 0; i < COUNT(geometries); i++) {
        if (option.geometry ? strcmp(option.geometry, geometries[i].m.name)
                            : geometries[i].m.flags & NAMED)
            continue;
        if (running == processors) {
            lost += died();
            running--;
        }
        spawn(&geometries[i]);
        running++;
    }
    for (; running > 0; running--)
        lost += died();
    for (size_t i = 0; i < COUNT(geometries); i++)
        add_tally(&shared->all, &shared->of[i]);
    print_tally("crash", &shared->all);
    if (lost)
        printf("%d geometries ended early: killed, or a crash\n", lost);
    return shared->all.violations || lost;
}
