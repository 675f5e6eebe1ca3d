/* SPDX-License-Identifier: 0BSD */
/*
 * An input, as a row of numbers: a fuzzer's, or a file's.  A broken promise
 * ends the process, and so the fuzzer finds it.
 */
#ifndef INPUT_H
#define INPUT_H

#include "promise.h"

#include <stdint.h>
#include <string.h>

// What a harness knows of a violation beside the promise, if anything
static void (*print_more)(void);

/* What fails ends the process, which is what a fuzzer looks for. */
static void broken(const char *what, const char *file, int line)
{
    fprintf(stderr, "violation: %s:%d: %s\n", file, line, what);
    if (print_more)
        print_more();
    fflush(stdout);
    abort();
}

/* The bytes of an input, taken from the front; after the end zeros. */
typedef struct input {
    const uint8_t *at;
    size_t left;
} input;

static inline uint8_t input_byte(input *in)
{
    if (!in->left)
        return 0;
    in->left--;
    return *in->at++;
}

/* One of the numbers below `count`. */
static inline unsigned input_below(input *in, unsigned count)
{
    return input_byte(in) % count;
}

/* Copies as many bytes as there are; returns how many. */
static inline size_t input_bytes(input *in, void *dst, size_t len)
{
    if (len > in->left)
        len = in->left;
    memcpy(dst, in->at, len);
    in->at += len;
    in->left -= len;
    return len;
}

#endif /* INPUT_H */
