/* SPDX-License-Identifier: 0BSD */
/*
 * What the benchmarks share: chance, clocks, medians, the table.  Define
 * _POSIX_C_SOURCE before the first #include.
 */
#ifndef BENCH_COMMON_H
#define BENCH_COMMON_H

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

enum { KEY_LEN = 16, SAMPLE_MAX = 64, PATH_LEN = 512 };

/* Ends the program: an answer was wrong, or nothing can be measured. */
static inline void fail(const char *format, ...)
{
    va_list args;

    fflush(stdout);
    fprintf(stderr, "bench: ");
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fprintf(stderr, "\n");
    exit(1);
}

static inline void check(int is_right, const char *what)
{
    if (!is_right)
        fail("%s", what);
}

/* Of a file in a folder, which is new */
static inline void file_path(char path[PATH_LEN], const char *folder,
                             const char *name)
{
    snprintf(path, PATH_LEN, "%s/bench_%s", folder, name);
    unlink(path);
}

/* What databases keep of a key beside its bytes: as much as idem.h does */
struct value {
    uint64_t fingerprint, token;
    uint32_t until, code;
    uint8_t  response[KEY_LEN];
};

/* The output function of SplitMix64: a bijection */
static inline uint64_t mix(uint64_t x)
{
    x += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

/* A number below n, out of random bits */
static inline uint64_t below(uint64_t n, uint64_t bits)
{
    return (bits >> 32) * n >> 32;
}

/* The key with that number: no two are alike. */
static inline void make_key(uint8_t key[KEY_LEN], uint64_t number)
{
    uint64_t words[2] = { mix(number), mix(~number) };

    memcpy(key, words, sizeof words);
}

static inline double clock_us(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static inline double now_us(void)
{
    return clock_us(CLOCK_MONOTONIC);
}

/* ---------------------------------------------------------------------------
   Medians
   ------------------------------------------------------------------------ */
struct sample {
    double values[SAMPLE_MAX];
    int count;
};

static inline void sample_add(struct sample *s, double value)
{
    if (s->count == SAMPLE_MAX)
        fail("too many values");
    s->values[s->count++] = value;
}

static inline int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* The median; afterwards the values are in order. */
static inline double sample_median(struct sample *s)
{
    if (!s->count)
        fail("no values");
    qsort(s->values, (size_t)s->count, sizeof(double), by_value);
    return (s->values[(s->count - 1) / 2] + s->values[s->count / 2]) / 2;
}

/* ---------------------------------------------------------------------------
   The table that bench.sh begins: a figure beside its budget and moonshot, of
   which none (0) are printed where there is none.
   ------------------------------------------------------------------------ */
static inline void print_row(double value, double budget, double moonshot,
                             const char *format, ...)
{
    double limits[3] = { value, budget, moonshot };
    va_list args;
    int i;

    printf("| ");
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    for (i = 0; i < 3; i++)
        if (i == 0 || limits[i] > 0)
            printf(" | %.*f", limits[i] < 10 ? 2 : limits[i] < 100 ? 1 : 0,
                   limits[i]);
        else
            printf(" |");
    printf(" |%s\n", budget > 0 && value > budget * 1.0005 ? " missed" : "");
    fflush(stdout);
}

#endif
