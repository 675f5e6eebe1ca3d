/* SPDX-License-Identifier: 0BSD */
/*
 * Every unit test includes this: idem.h, which idem.c compiles once for all of
 * them, and test.h.
 */
#ifndef UNIT_H
#define UNIT_H

#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif
#define IDEM_FILE_STORAGE
#include "idem.h"

#include "test.h"

#include <inttypes.h>

// Callers' mistakes, counted by IDEM_MISUSE since the program began.
extern unsigned unit_misuse;

// How often bytes were compared.
extern unsigned unit_compared;

// If not NULL, called before the library copies bytes from there.
extern void (*unit_copying)(const void *src);

#endif /* UNIT_H */
