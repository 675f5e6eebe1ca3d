/* SPDX-License-Identifier: 0BSD */
/*
 * The header, compiled once for all unit tests: every call ends with idem_check
 * (IDEM_DEBUG), and a broken invariant ends the program.  Callers' mistakes,
 * which the tests make on purpose, are only counted.
 */
#include "unit.h"

unsigned unit_misuse;
int unit_unchecked;
void (*unit_copying)(void);

// An assertion that no condition can make true, !"...", is a caller's mistake.
#define IDEM_ASSERT(x)                                                         \
    (#x[0] == '!' ? (void)unit_misuse++                                        \
                  : unit_unchecked || (x) ? (void)0 : broken(#x))

static void broken(const char *what)
{
    fprintf(stderr, "idem.h asserts: %s\n", what);
    abort();
}

static void *copy(void *dst, const void *src, size_t len)
{
    if (unit_copying)
        unit_copying();
    return memcpy(dst, src, len);
}

#define IDEM_MEMCPY copy
#define IDEM_MEMSET memset
#define IDEM_MEMCMP memcmp
#define IDEM_DEBUG
#define IDEM_IMPLEMENTATION
#include "idem.h"
#include "inside.h"
