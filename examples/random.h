/* SPDX-License-Identifier: 0BSD */
/* Random bytes for secrets, on a system that has /dev/urandom. */
#ifndef RANDOM_H
#define RANDOM_H

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <unistd.h>

enum { RANDOM_WAIT_MS = 60000 };

/* Waits until the system has gathered noise.  A Linux that has just started may
   not have: then urandom has the same bytes in all devices, and random none. */
static inline int random_wait(void)
{
    struct pollfd random;
    int ready;

    random.fd = open("/dev/random", O_RDONLY);
    random.events = POLLIN;
    if (random.fd < 0)
        return 0;
    ready = poll(&random, 1, RANDOM_WAIT_MS);
    close(random.fd);
    if (ready == 0)
        errno = EAGAIN;
    return ready == 1;
}

/* Returns whether all of dst was filled; if not, errno has the cause. */
static inline int random_fill(void *dst, size_t size)
{
    FILE *source = random_wait() ? fopen("/dev/urandom", "rb") : NULL;
    size_t got = source ? fread(dst, 1, size, source) : 0;

    if (source)
        fclose(source);
    return got == size;
}

#endif
