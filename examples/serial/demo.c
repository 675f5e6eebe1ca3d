/* SPDX-License-Identifier: 0BSD */
/*
 * make demo: a controller and a device, two processes with a bad serial line
 * between them.  The line loses, repeats, delays and corrupts frames; the
 * device is killed with kill -9 again and again, even in the middle of a
 * command.  Then the files are audited.  Three times the same: with idem.h, and
 * without it, answering before or after executing.
 *
 * The device with idem.h is then started a day later, when it has forgotten its
 * responses, and all commands are sent once more: a random key is new again, a
 * number is known to be old.
 *
 *     controller <-> pty <-> line (here) <-> pty <-> device <-> flash, labels
 */
#include "audit.h"
#include "device.h"
#include "host.h"
#include "line.h"
#include "traffic.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define PATH_SIZE 512

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
    "refused, all keys new; 1 if not so; 2 if it could not run\n";

static struct {
    uint32_t    count, seed, kill_ms, early_ms;
    uint32_t    first_run, last_run;
    line_rates  rates;
    char        bin[PATH_SIZE];             /* where our programs are */
    const char *device;                     /* another one, or NULL */
    uint32_t    numbers;                    /* 1: instead of keys */
} options;

/* The three devices that are compared */
#define RUNS 3
static const struct {
    const char *name;
    const char *dir;
    const char *no_idem;        /* the device's option, or NULL */
} kinds[RUNS] = {
    { "with idem.h", "with-idem", NULL },
    { "answers first", "answers-first", "first" },
    { "answers last", "answers-last", "last" }
};

typedef struct end {
    int  master;                /* ours */
    int  slave;                 /* kept open: nothing is lost with the device */
    char name[128];
} end;

typedef struct run {
    uint32_t kind;
    char     dir[PATH_SIZE];
    uint32_t seed;
    end      to_controller, to_device;
    line     down, up;          /* to the device, and back */
    pid_t    controller, device;
    int      progress;          /* the controller's */
    uint32_t answered;
    uint32_t kills;
    uint32_t start_ms, shown_ms;
    uint32_t kill_at;
    int      kill_waits;        /* 1: for the device's first answer */
    int      status;            /* the controller's */
    int      over;
    int      again;             /* 1: a day later, and nobody is killed */
    audit    found;
    audit_again found_again;
} run;

/* ---------------------------------------------------------------------------
   processes and terminals
   ------------------------------------------------------------------------ */

static void open_end(end *e)
{
    e->master = posix_openpt(O_RDWR | O_NOCTTY);
    if (e->master < 0 || grantpt(e->master) < 0 || unlockpt(e->master) < 0)
        host_die("pseudo terminal");
    snprintf(e->name, sizeof e->name, "%s", ptsname(e->master));
    e->slave = open(e->name, O_RDWR | O_NOCTTY);
    if (e->slave < 0 || host_make_raw(e->slave) < 0 ||
        fcntl(e->master, F_SETFL, O_NONBLOCK) < 0)
        host_die(e->name);
    fcntl(e->master, F_SETFD, FD_CLOEXEC);
    fcntl(e->slave, F_SETFD, FD_CLOEXEC);
}

static void close_end(const end *e)
{
    close(e->master);
    close(e->slave);
}

/* Starts the program arguments[0]; out, if not -1, becomes its standard
   output. */
static pid_t start(const char *const *arguments, int out)
{
    pid_t pid;

    fflush(stdout);
    pid = fork();
    if (pid < 0)
        host_die("fork");
    if (pid == 0) {
        if (out >= 0)
            dup2(out, 1);
        // execv promises not to change them.
        execv(arguments[0], (char *const *)(uintptr_t)arguments);
        host_die(arguments[0]);
    }
    return pid;
}

static void start_controller(run *r)
{
    char program[PATH_SIZE + 16], log[PATH_SIZE + 16], count[16], seed[16];
    const char *arguments[] = {
        program, r->to_controller.name, "--count", count, "--seed", seed,
        "--log", log, "--progress", "1", "--linger", "700", "--numbers",
        options.numbers ? "1" : "0", NULL
    };
    int ends[2];

    snprintf(program, sizeof program, "%s/controller", options.bin);
    snprintf(count, sizeof count, "%u", (unsigned)options.count);
    snprintf(seed, sizeof seed, "%u", (unsigned)options.seed);
    snprintf(log, sizeof log, "%s/answers%s", r->dir,
             r->again ? "-again" : "");
    if (pipe(ends) < 0)
        host_die("pipe");
    fcntl(ends[0], F_SETFD, FD_CLOEXEC);
    r->controller = start(arguments, ends[1]);
    close(ends[1]);
    r->progress = ends[0];
}

/* Plans the next kill: mostly some time after the device's first answer, so
   that there is progress on the slowest machine; now and then at once, while
   it is starting. */
static void plan_kill(run *r)
{
    uint32_t now = host_millis();

    r->kill_waits = host_random(&r->seed, 8) > 0;
    r->kill_at = r->kill_waits
        ? 1 + host_random(&r->seed, 2 * options.kill_ms)
        : now + host_random(&r->seed, options.early_ms);
}

static void start_device(run *r)
{
    char program[PATH_SIZE + 16], seed[16], away[16];
    const char *arguments[] = {
        options.device ? options.device : program,
        "--line", r->to_device.name, "--dir", r->dir, "--seed", seed,
        "--away", away,
        kinds[r->kind].no_idem ? "--no-idem" : NULL, kinds[r->kind].no_idem,
        NULL
    };

    snprintf(program, sizeof program, "%s/device", options.bin);
    snprintf(away, sizeof away, "%lu",
             r->again ? (unsigned long)DEVICE_RETENTION_MS : 0ul);
    snprintf(seed, sizeof seed, "%u", (unsigned)host_random(&r->seed, 65536));
    r->device = start(arguments, -1);
    plan_kill(r);
}

static void kill_device(run *r)
{
    kill(r->device, SIGKILL);
    if (waitpid(r->device, NULL, 0) != r->device)
        host_die("device");
}

/* The device must not end by itself. */
static void look_after_device(run *r, uint32_t now)
{
    if (waitpid(r->device, NULL, WNOHANG) != 0) {
        fputs("\nthe device ended by itself\n", stderr);
        exit(2);
    }
    if (!options.kill_ms || r->again || r->kill_waits ||
        (int32_t)(now - r->kill_at) < 0 || r->answered == options.count)
        return;
    kill_device(r);
    r->kills++;
    host_sleep_us(host_random(&r->seed, 10000));
    start_device(r);
}

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
   a run
   ------------------------------------------------------------------------ */

static void show_progress(run *r, uint32_t now, int last)
{
    char bar[] = "............";
    uint32_t part = r->answered * (uint32_t)(sizeof bar - 1) / options.count;

    if (!last && (!isatty(1) || now - r->shown_ms < 100))
        return;
    r->shown_ms = now;
    memset(bar, '#', part);
    printf("%s%-13s [%s] %4u done %5u frames %4u lost %3u killed %3u s%s",
           isatty(1) ? "\r" : "",
           r->again ? "a day later" : kinds[r->kind].name, bar,
           (unsigned)r->answered, (unsigned)sent(r), (unsigned)lost(r),
           (unsigned)r->kills, (unsigned)((now - r->start_ms) / 1000),
           last ? "\n" : "");
    fflush(stdout);
}

/* Counts the lines that the controller writes; its end is the run's. */
static void read_progress(run *r)
{
    char text[256];
    ssize_t i, len = read(r->progress, text, sizeof text);

    for (i = 0; i < len; i++)
        r->answered += text[i] == '\n';
    r->over = len == 0;
}

static void carry(line *l, int from, uint32_t now)
{
    uint8_t bytes[512];
    int len = host_read(from, bytes, sizeof bytes, 0);

    if (len > 0)
        line_take(l, bytes, (size_t)len, now);
}

/* One round: wait, carry what came, deliver what is due, kill. */
static void step(run *r)
{
    struct pollfd wait[3];
    uint32_t now = host_millis();
    int down = line_deliver(&r->down, r->to_device.master, now);
    int up = line_deliver(&r->up, r->to_controller.master, now);
    int most = down < up ? down : up;

    wait[0].fd = r->to_controller.master;
    wait[1].fd = r->to_device.master;
    wait[2].fd = r->progress;
    wait[0].events = wait[1].events = wait[2].events = POLLIN;
    if (poll(wait, 3, most < 5 ? most : 5) < 0 && errno != EINTR)
        host_die("poll");
    now = host_millis();
    carry(&r->down, r->to_controller.master, now);
    if (wait[1].revents && r->kill_waits) {
        r->kill_waits = 0;
        r->kill_at += now;
    }
    carry(&r->up, r->to_device.master, now);
    if (wait[2].revents)
        read_progress(r);
    look_after_device(r, now);
    show_progress(r, now, 0);
}

static void remove_old(const char *dir)
{
    static const char *const names[] = {
        "flash", "secret", "labels", "ledger", "answers", "answers-again"
    };
    char path[PATH_SIZE + 16];
    size_t i;

    for (i = 0; i < sizeof names / sizeof names[0]; i++) {
        snprintf(path, sizeof path, "%s/%s", dir, names[i]);
        unlink(path);
    }
}

static void prepare(run *r, uint32_t kind)
{
    memset(r, 0, sizeof *r);
    r->kind = kind;
    r->seed = options.seed;
    r->down.rates = r->up.rates = options.rates;
    r->down.seed = options.seed * 2;
    r->up.seed = options.seed * 2 + 1;
    if ((size_t)snprintf(r->dir, sizeof r->dir, "%s/%s", options.bin,
                         kinds[kind].dir) >= sizeof r->dir)
        host_die("a path that is too long");
    if (mkdir(r->dir, 0700) < 0 && errno != EEXIST)
        host_die(r->dir);
    open_end(&r->to_controller);
    open_end(&r->to_device);
    r->start_ms = host_millis();
}

/* Until the controller has its answers, and has listened for late ones. */
static void let_run(run *r)
{
    start_device(r);
    start_controller(r);
    while (!r->over)
        step(r);
    kill_device(r);
    if (waitpid(r->controller, &r->status, 0) != r->controller)
        host_die("controller");
    show_progress(r, host_millis(), 1);
    close(r->progress);
    close_end(&r->to_controller);
    close_end(&r->to_device);
    if (!WIFEXITED(r->status) || WEXITSTATUS(r->status) > 1) {
        fputs("the controller gave up\n", stderr);
        exit(2);
    }
}

static void make_run(run *r, uint32_t kind)
{
    prepare(r, kind);
    remove_old(r->dir);
    let_run(r);
    if (audit_make(&r->found, r->dir, options.seed, options.count,
                   !kinds[kind].no_idem) < 0)
        exit(1);
}

/* The same commands to the same device, that of idem.h, a day later */
static void run_again(run *r)
{
    static run again;
    uint32_t effects;

    prepare(&again, 0);
    again.again = 1;
    effects = audit_effects(again.dir);
    let_run(&again);
    if (audit_make_again(&r->found_again, again.dir, options.count,
                         effects) < 0)
        exit(1);
}

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
            printf("\n%s: %u things in its files that nobody asked for\n",
                   kinds[k].name, (unsigned)runs[k].found.strange);
        if (k == 0 && clean)
            printf("\nWith idem.h each command was executed once, and always "
                   "answered the same;\n%u times a kill had cut one short.\n",
                   (unsigned)runs[k].found.interrupted);
        if (k == 0 && !judge_again(&runs[k].found_again))
            good = 0;
    }
    puts(good ? "" : "\nNOT AS IT SHOULD BE");
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
    static const line_rates usual = { 15, 10, 15, 5 };
    static run runs[RUNS];
    const char *slash = strrchr(argv[0], '/');
    uint32_t k;
    int i;

    options.count = 400;
    options.seed = 1;
    options.kill_ms = 80;
    options.early_ms = 6;
    options.rates = usual;
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
        make_run(&runs[k], k);
    if (options.first_run == 0)
        run_again(&runs[0]);
    print_table(runs);
    printf("\nthe files are in %s/*/\n", options.bin);
    return judge(runs);
}
