/* SPDX-License-Identifier: 0BSD */
#include "run.h"
#include "device.h"
#include "host.h"
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

run_options options;
const run_kind kinds[RUNS] = {
    { "with idem.h", "with-idem", NULL },
    { "answers first", "answers-first", "first" },
    { "answers last", "answers-last", "last" }
};

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
           (unsigned)r->answered, (unsigned)(r->down.frames + r->up.frames),
           (unsigned)(r->down.lost + r->up.lost),
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

static void forward(line *l, int from, uint32_t now)
{
    uint8_t bytes[512];
    int len = host_read(from, bytes, sizeof bytes, 0);

    if (len > 0)
        line_take(l, bytes, (size_t)len, now);
}

/* One round: wait, forward and deliver frames, kill. */
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
    forward(&r->down, r->to_controller.master, now);
    if (wait[1].revents && r->kill_waits) {
        r->kill_waits = 0;
        r->kill_at += now;
    }
    forward(&r->up, r->to_device.master, now);
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

void run_make(run *r, uint32_t kind)
{
    prepare(r, kind);
    remove_old(r->dir);
    let_run(r);
    if (audit_make(&r->found, r->dir, options.seed, options.count,
                   !kinds[kind].no_idem) < 0)
        exit(1);
}

void run_again(run *r)
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
