/* SPDX-License-Identifier: 0BSD */
/*
 * Cuts the power at every storage operation of many short workloads, leaves the
 * operation torn in every way that flash.h knows, starts again, and looks
 * whether every promise still holds: what the model of tests/model says.  How
 * it goes is in explore.h, what is run in workloads.h.
 *
 *     build/crash                 minutes; --short: seconds
 *     build/crash --states N      samples with one seed after the other, three
 *                                 cuts deep, until there are so many states
 *
 * What made a violation is a path: which operation was cut and which variant it
 * was left in, then which of the recovery's.  Its last line says how to see it
 * again:
 *
 *     build/crash --geometry nor8 --workload "Ba Ca" --cut 5/2 --variant 3/0
 */
#define _POSIX_C_SOURCE 200809L

#define IDEM_STATIC
#define IDEM_IMPLEMENTATION
#include "idem.h"

#include "explore.h"

#include <signal.h>
#include <sys/wait.h>

enum { REPORTS = 5 };               // violations that are told of in full

// What the command line asks for.
static struct {
    uint32_t brief;             // --short
    uint32_t first;             // the first violation is the end
    const char *geometry, *workload;
    unsigned longest;           // sequence
    unsigned one_in;            // of so many sequences on one geometry
    uint64_t states;            // that are enough, in all; 0: one round
} option;

static tally total;

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

    part.violations++;
    if (total.violations + part.violations > REPORTS && !*tracing())
        longjmp(m->end, 1);
    printf("violation: %s (%s:%d)\n    in \"%s\" at \"%.3s\"\n"
           "    build/crash --geometry %s --workload \"%s\"", what, file, line,
           m->line ? m->line : "", m->at ? m->at : "", run.geometry->name,
           run.workload);
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

/* ---------------------------------------------------------------- >>options */

/* Says how to call the program. */
static int usage(void)
{
    fputs("crash [--short] [--first]                  names: workloads.h\n"
          "      [--geometry NAME] [--workload NAME|LINE] [--depth 1..3]\n"
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
    run.evenly = 1;
    option.longest = 3;
    option.one_in = 97;
}

/* Sets the extent of the run, as far as options do not. */
static void set_extent(void)
{
    int brief = option.brief;

    run.seed = 1;
    run.depth = 2;
    run.draws = brief ? 1 : 2;
    run.first_ops[0] = UINT32_MAX;
    run.first_ops[1] = 16;
    run.first_ops[2] = 40;
    run.one_in[0] = brief ? 4 : 1;
    run.one_in[1] = brief ? 400 : 100;
    run.one_in[2] = 400;
    option.longest = brief ? 2 : 3;
    option.one_in = brief ? 16 : 3;
    if (option.states)
        set_sampling();
}

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

/* Takes an option; returns how many arguments it was, 0 if there is none of
   that name. */
static int read_option(const char *name, const char *value)
{
    static const struct { const char *name; uint32_t *value; } numbers[] = {
        { "--short", &option.brief }, { "--first", &option.first },
        { "--depth", &run.depth }, { "--seed", &run.seed },
        { "--draws", &run.draws },
    };

    for (size_t i = 0; i < COUNT(numbers); i++)
        if (!strcmp(name, numbers[i].name)) {
            if (i >= 2 && !value)
                return 0;
            *numbers[i].value = i < 2 ? 1 : (uint32_t)strtoul(value, NULL, 10);
            return i < 2 ? 1 : 2;
        }
    if (!value)
        return 0;
    if (!strcmp(name, "--geometry"))
        option.geometry = value;
    else if (!strcmp(name, "--workload"))
        option.workload = value;
    else if (!strcmp(name, "--states"))
        option.states = strtoull(value, NULL, 10);
    else if (!strcmp(name, "--cut"))
        run.path = read_path(run.cut, value);
    else if (!strcmp(name, "--variant"))
        read_path(run.variant, value);
    else
        return 0;
    return 2;
}

/* Takes all options: once for the extent that some ask for, once more for what
   others change in it.  Returns 0, or -1 if the command line is not right. */
static int read_options(int argc, char **argv)
{
    for (int pass = 0; pass < 2; pass++) {
        for (int i = 1, taken; i < argc; i += taken) {
            taken = read_option(argv[i], i + 1 < argc ? argv[i + 1] : NULL);
            if (!taken)
                return -1;
        }
        if (!pass)
            set_extent();
    }
    if (run.path) {
        run.depth = run.path;
        for (unsigned d = 0; d < DEPTH_MAX; d++)
            run.first_ops[d] = UINT32_MAX;
        *tracing() = 1;
    }
    return run.depth >= 1 && run.depth <= DEPTH_MAX ? 0 : -1;
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
        run_context(g, contexts[i], option.longest, option.one_in);
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

    if (read_options(argc, argv) < 0)
        return usage();
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
