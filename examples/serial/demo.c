/* SPDX-License-Identifier: 0BSD */
/*
 * make demo: a controller and a device, two processes with a bad serial line
 * between them.  The line loses, repeats, delays and corrupts frames; the
 * device is killed with kill -9 again and again, even in the middle of a
 * command.  Then the files are audited.  There are three runs: with idem.h, and
 * twice without it, answering before or after executing.
 *
 * The device with idem.h is then started a day later, when it has forgotten its
 * responses, and all commands are sent once more: a random key is new again, a
 * number is known to be old.
 *
 *     controller <-> pty <-> line (here) <-> pty <-> device <-> flash, labels
 */
#include "host.h"
#include "run.h"
#include "traffic.h"
#include <stdio.h>
#include <string.h>

static const char help[] =
    "demo [options]\n"
    "commands over a bad line to a device that is killed all the time\n\n"
    "  --count N     commands, up to 1000 (400)\n"
    "  --seed N      of the commands, the line and the kills (1)\n"
    "  --lose P      percent of frames that are lost (15)\n"
    "  --repeat P    percent that come twice, the second much later (10)\n"
    "  --delay P     percent that others overtake (15)\n"
    "  --corrupt P   percent with a byte that is wrong, missing or new (5)\n"
    "  --kill MS     mean time between two kills, 0: none (80)\n"
    "  --early MS    longest time until a kill at the start (6)\n"
    "  --only N      one run: 0 with idem.h, 1 answers first, 2 answers last\n"
    "  --numbers 1   senders number their commands, instead of keys\n"
    "  --device PROG another device: is started as PROG --line TERMINAL\n"
    "                --dir DIR --seed N --away MS, and leaves the same files\n"
    "                (in DIR)\n"
    "  --help        this\n\n"
    "The seed decides on commands, faults and kills; what meets what, the\n"
    "machine decides.\n\n"
    "exit status: 0 if with idem.h everything was done exactly once and\n"
    "answered truly, and without it not, and a day later all numbers were\n"
    "refused, all keys new; 1 if not; 2 if it could not run\n";

/* ---------------------------------------------------------------------------
   what is counted
   ------------------------------------------------------------------------ */

typedef uint32_t figure(const run *r);

static uint32_t commands(const run *r) { return r->found.commands; }
static uint32_t sent(const run *r) { return r->down.frames + r->up.frames; }
static uint32_t again(const run *r) { return r->down.frames - options.count; }
static uint32_t lost(const run *r) { return r->down.lost + r->up.lost; }
static uint32_t twins(const run *r)
{
    return r->down.repeated + r->up.repeated;
}
static uint32_t damaged(const run *r)
{
    return r->down.corrupted + r->up.corrupted;
}
static uint32_t late(const run *r)
{
    return r->down.overtaken + r->up.overtaken;
}
static uint32_t kills(const run *r) { return r->kills; }
static uint32_t once(const run *r) { return r->found.once; }
static uint32_t twice(const run *r) { return r->found.twice; }
static uint32_t never(const run *r) { return r->found.never; }
static uint32_t wrong(const run *r) { return r->found.wrong; }

/* ---------------------------------------------------------------------------
   the table
   ------------------------------------------------------------------------ */

static const struct {
    const char *name;
    figure     *of;
} rows[] = {
    { "commands", commands },
    { "frames sent, both ways", sent },
    { "  commands sent again", again },
    { "  lost by the line", lost },
    { "  repeated by the line", twins },
    { "  corrupted", damaged },
    { "  overtaken by others", late },
    { "device killed (kill -9)", kills },
    { "executed once", once },
    { "executed twice or more", twice },
    { "lost: answered, not executed", never },
    { "answered with the wrong response", wrong }
};

static void print_table(const run *runs)
{
    uint32_t k;
    size_t i;

    printf("\n%-34s", "");
    for (k = options.first_run; k <= options.last_run; k++)
        printf("%14s", k == 0 ? kinds[k].name : "without:");
    printf("\n%-34s", "");
    for (k = options.first_run; k <= options.last_run; k++)
        printf("%14s", k == 0 ? "" : kinds[k].name);
    putchar('\n');
    for (i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        printf("%-34s", rows[i].name);
        for (k = options.first_run; k <= options.last_run; k++)
            printf("%14u", (unsigned)rows[i].of(&runs[k]));
        putchar('\n');
    }
}

static int is_clean(const audit *a)
{
    return a->once == a->commands && !a->twice && !a->never && !a->wrong &&
           !a->strange;
}

/* True if a device without idem.h must have gone wrong: it is given enough
   reason to, and the audit sees it.  By chance it goes right with 1 or 2. */
static int is_hard(void)
{
    return options.count >= 100 && options.kill_ms && options.kill_ms <= 500 &&
           options.rates.lose >= 5;
}

/* What is promised of a day later: a number is refused; a key is new. */
static int judge_again(const audit_again *a)
{
    printf("Sent again a day later, to a device that had forgotten all "
           "responses,\n%u were executed once more, %u refused as too old.\n",
           (unsigned)a->executed, (unsigned)a->refused);
    return options.numbers
        ? a->executed == 0 && a->refused == options.count
        : a->executed == options.count && a->refused == 0;
}

static int judge(const run *runs)
{
    uint32_t k;
    int good = 1;

    for (k = options.first_run; k <= options.last_run; k++) {
        int clean = is_clean(&runs[k].found);

        if (k == 0 ? !clean : clean && is_hard())
            good = 0;
        if (runs[k].found.strange)
            printf("\n%s: %u effects in its files that no command asked for\n",
                   kinds[k].name, (unsigned)runs[k].found.strange);
        if (k == 0 && clean)
            printf("\nWith idem.h each command was executed once, and always "
                   "answered the same;\na kill interrupted %u attempts.\n",
                   (unsigned)runs[k].found.interrupted);
        if (k == 0 && !judge_again(&runs[k].found_again))
            good = 0;
    }
    puts(good ? "" : "\nFAILED: see the table above");
    return good ? 0 : 1;
}

/* ---------------------------------------------------------------------------
   options
   ------------------------------------------------------------------------ */

static int take_option(const char *name, const char *value)
{
    static const struct {
        const char *name;
        uint32_t   *to;
        uint32_t    most;
    } known[] = {
        { "--count", &options.count, AUDIT_COMMANDS_MAX },
        { "--seed", &options.seed, UINT32_MAX },
        { "--lose", &options.rates.lose, 90 },
        { "--repeat", &options.rates.repeat, 100 },
        { "--delay", &options.rates.delay, 100 },
        { "--corrupt", &options.rates.corrupt, 90 },
        { "--kill", &options.kill_ms, 60000 },
        { "--early", &options.early_ms, 60000 },
        { "--numbers", &options.numbers, 1 }
    };
    size_t i;

    for (i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strcmp(name, known[i].name) == 0) {
            *known[i].to = host_number(value, known[i].most);
            return 0;
        }
    if (strcmp(name, "--device") == 0) {
        options.device = value;
        return 0;
    }
    if (strcmp(name, "--only") != 0)
        return -1;
    options.first_run = options.last_run = host_number(value, RUNS - 1);
    return 0;
}

int main(int argc, char **argv)
{
    static const line_rates default_rates = { 15, 10, 15, 5 };
    static run runs[RUNS];
    const char *slash = strrchr(argv[0], '/');
    uint32_t k;
    int i;

    options.count = 400;
    options.seed = 1;
    options.kill_ms = 80;
    options.early_ms = 6;
    options.rates = default_rates;
    options.last_run = RUNS - 1;
    snprintf(options.bin, sizeof options.bin, "%.*s",
             slash ? (int)(slash - argv[0]) : 1, slash ? argv[0] : ".");
    for (i = 1; i + 1 < argc; i += 2)
        if (take_option(argv[i], argv[i + 1]) < 0)
            break;
    if (i != argc || options.count == 0)
        return host_help(argc, argv, help);
    if (options.numbers)
        traffic_number();
    printf("%u commands with %s over a line that loses %u %%, repeats %u %%,\n"
           "delays %u %%, corrupts %u %%, to a device killed every %u ms; seed "
           "%u\n\n",
           (unsigned)options.count, options.numbers ? "numbers" : "random keys",
           (unsigned)options.rates.lose, (unsigned)options.rates.repeat,
           (unsigned)options.rates.delay, (unsigned)options.rates.corrupt,
           (unsigned)options.kill_ms, (unsigned)options.seed);
    for (k = options.first_run; k <= options.last_run; k++)
        run_make(&runs[k], k);
    if (options.first_run == 0)
        run_again(&runs[0]);
    print_table(runs);
    printf("\nthe files are in %s/*/\n", options.bin);
    return judge(runs);
}
