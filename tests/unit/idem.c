/* SPDX-License-Identifier: 0BSD */
/*
 * The header, compiled once for all unit tests: every call ends with idem_check
 * (IDEM_DEBUG), and a broken invariant ends the program.  Callers' mistakes,
 * which the tests make on purpose, are only counted.
 */
#define _POSIX_C_SOURCE 200809L
#define IDEM_FILE_STORAGE
#include "idem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// As unit.h has them for the tests
unsigned unit_misuse, unit_compared;
void (*unit_copying)(const void *src);

// A function, so that none of its branches is one of the header's.
#define IDEM_ASSERT(x) asserted((x), #x)
#define IDEM_MISUSE() ((void)unit_misuse++)

static void asserted(int holds, const char *what)
{
    if (!holds) {
        fprintf(stderr, "idem.h asserts: %s\n", what);
        abort();
    }
}

static void *copy(void *dst, const void *src, size_t len)
{
    if (unit_copying)
        unit_copying(src);
    return memcpy(dst, src, len);
}

static int compare(const void *a, const void *b, size_t len)
{
    unit_compared++;
    return memcmp(a, b, len);
}

#define IDEM_MEMCPY copy
#define IDEM_MEMSET memset
#define IDEM_MEMCMP compare
#define IDEM_DEBUG
#define IDEM_IMPLEMENTATION
#include "idem.h"
#include "inside.h"
