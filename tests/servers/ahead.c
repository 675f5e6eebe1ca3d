/* SPDX-License-Identifier: 0BSD */
/* To be preloaded into a store: its clock is ahead by as many microseconds as
 * the first 8 bytes of the file $AHEAD have, at any moment.  So a test does not
 * wait for a lease to end: it sets the clock ahead.  (libfaketime does the
 * same, but does not start with jemalloc, which redis-server has.)  What is
 * measured with CLOCK_MONOTONIC stays as it is; with $AHEAD_ALL all clocks are
 * ahead, as in a process that was suspended for that time. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile int64_t *ahead;
static int all;

__attribute__((constructor)) static void map(void)
{
    const char *path = getenv("AHEAD");
    int fd = path ? open(path, O_RDONLY) : -1;
    void *page = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof *ahead, PROT_READ,
                                            MAP_SHARED, fd, 0);

    if (page == MAP_FAILED)
        _exit(127);
    ahead = (volatile int64_t *)page;
    all = getenv("AHEAD_ALL") != NULL;
    close(fd);
}

int clock_gettime(clockid_t clock, struct timespec *t)
{
    int result = (int)syscall(SYS_clock_gettime, clock, t);
    int64_t us = ahead ? *ahead : 0;

    if (result == 0 && (all || clock == CLOCK_REALTIME ||
                        clock == CLOCK_REALTIME_COARSE)) {
        us += t->tv_nsec / 1000;
        t->tv_sec += us / 1000000;
        t->tv_nsec = us % 1000000 * 1000 + t->tv_nsec % 1000;
    }
    return result;
}

int gettimeofday(struct timeval *restrict t, void *restrict zone)
{
    struct timespec now;

    (void)zone;
    clock_gettime(CLOCK_REALTIME, &now);
    t->tv_sec = now.tv_sec;
    t->tv_usec = now.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *t)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    if (t)
        *t = now.tv_sec;
    return now.tv_sec;
}
