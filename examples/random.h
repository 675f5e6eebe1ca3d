/* SPDX-License-Identifier: 0BSD */
/* Random bytes for secrets, on a system that has /dev/urandom. */
#ifndef RANDOM_H
#define RANDOM_H

#include <stdio.h>

/* Returns whether all of dst was filled. */
static inline int random_fill(void *dst, size_t size)
{
    FILE *source = fopen("/dev/urandom", "rb");
    size_t got = source ? fread(dst, 1, size, source) : 0;

    if (source)
        fclose(source);
    return got == size;
}

#endif
