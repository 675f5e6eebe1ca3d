/* SPDX-License-Identifier: 0BSD */
/*
 * Every callback fails at every one of its calls, once or from then on, having
 * done nothing, half or all; in the course of every sequence of a few events,
 * with the head at every offset between two rotations.  Then a restart: what was
 * answered is still true.
 *
 *     failures                        all paths
 *     failures ONE_IN                 each n-th
 *     failures ONE_IN FIRST           from this one on
 *
 * A violation names its path: TRACE=1 failures 1 PATH shows the calls.
 */
#include "../model/small.h"

#include <inttypes.h>
#include <signal.h>

enum { WARM_MAX = 24, FAILS = 256 };

/* What follows the failure.  Key a is claimed before, b is finished, as long as
   there is room for it. */
static const char *const events[] = {
    "Bf", "Qa", "Cf", "Ra", "Xb", "m", "Db", "P",
    "cut0,tear=17",               // the power goes in the next operation
    "cut2,tear=77",               // .. in the third from here
    "fail1",                       // the next program fails, nothing done
    "fail2,how=2",                 // the next erase, half done
};

enum { EVENTS = sizeof events / sizeof *events };
enum { SEQUENCES = (EVENTS + 1) * (EVENTS + 1) * (EVENTS + 1) };
enum { GEOMETRIES = sizeof geometries / sizeof *geometries };

/* With state; claims not written; in batches.  The oldest completion makes
   room. */
static const char *const modes[] = {
    "evict state=4", "evict volatile", "evict batch",
};

enum { MODES = sizeof modes / sizeof *modes };

static uint64_t number;         // of the path

/* A broken promise: prints what broke it. */
static void keep(int signal_number)
{
    (void)signal_number;
    fprintf(stderr, "FAILED; again: TRACE=1 build/failures 1 %" PRIu64 "\n",
            number);
    _Exit(1);
}

/* Makes the calls of a line, with restarts where the power goes. */
static void make_all(const char *line)
{
    call c;

    while (!the.lost && (c = call_read(&line)).what) {
        call_make(&the, &c);
        if (the.medium.off && !the.lost)
            call_line(&the, "P ?");
    }
}

/* Two keys as the events want them; then others come and go. */
static void warm_up(unsigned count)
{
    static const char *const others[] = { "Bc Cc", "Bd Cd", "Be Ce" };

    make_all("Bb Ob Ba,lease");
    for (unsigned i = 0; i < count; i++)
        make_all(others[i % 3]);
}

/* The callback that a number says fails. */
static void let_fail(unsigned what)
{
    call c = call_of('%', what % FLASH_CALLS);

    c.at = what >> 2 & 7;
    c.how = what % 3;
    c.forever = what >> 7;
    call_make(&the, &c);
}

/* The next digit of a number, below `count`. */
static unsigned digit(uint64_t *rest, unsigned count)
{
    unsigned value = (unsigned)(*rest % count);

    *rest /= count;
    return value;
}

/* True if the events of a number are those of a smaller one. */
static int is_known(unsigned sequence)
{
    for (; sequence > 0; sequence /= EVENTS + 1)
        if (sequence % (EVENTS + 1) == 0)
            return 1;
    return 0;
}

/* Goes the path of a number; then restarts, with a claim and its outcome
   between them.  False if it is that of a smaller one. */
static int go(void)
{
    uint64_t rest = number;
    unsigned sequence = digit(&rest, SEQUENCES), what = digit(&rest, FAILS);
    unsigned warm = digit(&rest, WARM_MAX), mode = digit(&rest, MODES);

    if (is_known(sequence))
        return 0;
    choose_modes(small);
    call_modes(&the, modes[mode]);
    if (!small_make(&geometries[rest], 0))
        return 1;
    device_open(&the);
    warm_up(warm);
    let_fail(what);
    for (; sequence > 0; sequence /= EVENTS + 1)
        make_all(events[sequence % (EVENTS + 1) - 1]);
    make_all("P Bc Cc P ?");
    PROMISE(the.lost || !idem_check(the.table));
    PROMISE(the.medium.ops > warm);
    device_end(&the);
    return 1;
}

int main(int argc, char **argv)
{
    uint64_t all = (uint64_t)SEQUENCES * FAILS * WARM_MAX * MODES * GEOMETRIES;
    uint64_t step = argc > 1 ? strtoul(argv[1], NULL, 10) : 1;
    unsigned long paths = 0;

    signal(SIGABRT, keep);
    number = argc > 2 ? strtoull(argv[2], NULL, 10) : 0;
    for (; step > 0 && number < all; number += step)
        paths += (unsigned long)go();
    printf("failures: %lu paths, no promise broken\n", paths);
    return !paths;
}
