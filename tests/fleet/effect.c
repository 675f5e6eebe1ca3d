/* SPDX-License-Identifier: 0BSD */
/* effect FOLDER: what the log of examples/fleet/effect.c shows when it was
 * truncated, half-written or replaced.  Each case has its own process, which it
 * may end. */
#define _POSIX_C_SOURCE 200809L
#define IDEM_IMPLEMENTATION
#include "effect.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char path[300], other[310];
static int passed, failed;

/* What somebody does to the log between two looks */
static void nothing(void) { }

static void cut(void)
{
    if (truncate(path, 80) != 0)
        _exit(9);
}

static void empty(void)
{
    if (truncate(path, 0) != 0)
        _exit(9);
}

static void rotate(void)
{
    int fd = rename(path, other) == 0 ? open(path, O_WRONLY | O_CREAT, 0644)
                                      : -1;

    if (fd < 0)
        _exit(9);
    close(fd);
}

static void remove_it(void) { unlink(path); }

static void write_half(void)
{
    int fd = open(path, O_WRONLY | O_APPEND);

    if (fd < 0 || write(fd, "begins pump-2", 13) != 13)
        _exit(9);
    close(fd);
}

/* As one who is suspended while he writes: not the lock of this process */
static void keep_locked(void)
{
    if (flock(open(path, O_RDWR), LOCK_EX) != 0)
        _exit(9);
}

static void begin_again(void)
{
    effect_begin("pump-1", "5 ml", effect_place());
}

/* Has begun and ended pump-1, lets `what` happen, and begins another. */
static int run(void (*what)(void), const char *id, const char *text,
               long from)
{
    long before;

    effect_open(path);
    before = effect_place();
    if (effect_begin("pump-1", "5 ml", before) != EFFECT_NONE)
        return 9;
    effect_end("pump-1", "5 ml");
    what();
    return effect_begin(id, text, from < 0 ? effect_place() : from);
}

/* In a process; 1: it ended itself. */
static void expect(const char *name, int want, void (*what)(void),
                   const char *id, long from)
{
    const char *text = strcmp(name, "another amount") ? "5 ml" : "6 ml";
    int status = 0;

    unlink(path);
    fflush(stdout);
    if (fork() == 0) {
        effect_make(path);
        _exit(10 + run(what, id, text, from));
    }
    wait(&status);
    if (WIFEXITED(status) && WEXITSTATUS(status) == want) {
        passed++;
        return;
    }
    failed++;
    printf("effect: %s: %d, not %d\n", name, WEXITSTATUS(status), want);
}

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    snprintf(path, sizeof path, "%.280s/sensor", argv[1]);
    snprintf(other, sizeof other, "%s.1", path);
    expect("a new one", 10 + EFFECT_NONE, nothing, "pump-2", 0);
    expect("it is there", 10 + EFFECT_DONE, nothing, "pump-1", 0);
    expect("another amount", 10 + EFFECT_BEGUN, nothing, "pump-1", 0);
    expect("begun again, when it was forgotten", 10 + EFFECT_BEGUN, begin_again,
           "pump-1", 0);
    expect("only a part of the name", 10 + EFFECT_NONE, nothing, "pump", 0);
    expect("another came before the claim", 10 + EFFECT_NONE, nothing, "pump-1",
           -1);
    expect("a half line is none", 10 + EFFECT_NONE, write_half, "pump-2", 0);
    expect("a half line does not become another's", 10 + EFFECT_NONE,
           write_half, "pump-2?", -1);
    expect("truncated", 1, cut, "pump-2", 0);
    expect("emptied", 1, empty, "pump-2", 0);
    expect("rotated", 1, rotate, "pump-2", 0);
    expect("removed", 1, remove_it, "pump-2", 0);
    expect("locked for ever", 1, keep_locked, "pump-2", 0);
    printf("effect: %d checks passed, %d failed\n", passed, failed);
    return failed != 0;
}
