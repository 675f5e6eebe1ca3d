/* SPDX-License-Identifier: 0BSD */
/*
 * The header, compiled once for all unit tests: every call ends with idem_check
 * (IDEM_DEBUG), and a broken invariant ends the program.  Callers' mistakes,
 * which the tests make on purpose, are only counted.
 */
#define _POSIX_C_SOURCE 200809L

#include <stdio.h>
#include <stdlib.h>

unsigned unit_misuse;

// An assertion that no condition can make true, !"...", is a caller's mistake.
#define IDEM_ASSERT(x) ((x) ? (void)0 : asserted(#x))

static void asserted(const char *what)
{
    if (what[0] == '!') {
        unit_misuse++;
        return;
    }
    fprintf(stderr, "idem.h asserts: %s\n", what);
    abort();
}

#define IDEM_DEBUG
#define IDEM_FILE_STORAGE
#define IDEM_IMPLEMENTATION
#include "idem.h"
#include "tests/inside.h"
