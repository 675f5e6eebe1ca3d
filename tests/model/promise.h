/* SPDX-License-Identifier: 0BSD */
/*
 * How a broken promise ends a test, and how a test prints its calls.  A file
 * that includes this defines broken(), which does not return.
 */
#ifndef PROMISE_H
#define PROMISE_H

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static void broken(const char *what, const char *file, int line);

#define PROMISE(condition)                                                     \
    ((condition) ? (void)0 : broken(#condition, __FILE__, __LINE__))

/* True if what happens is printed; at first, if TRACE is in the environment. */
static inline int *tracing(void)
{
    static int wanted = -1;

    if (wanted < 0)
        wanted = getenv("TRACE") != NULL;
    return &wanted;
}

static inline void trace(const char *format, ...)
{
    va_list args;

    if (!*tracing())
        return;
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
}

#endif /* PROMISE_H */
