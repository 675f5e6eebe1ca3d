/* SPDX-License-Identifier: 0BSD */
/*
 * The same lives with the journal of IDEM_CELLS.
 */
#define IDEM_CELLS
#include "test_failures.c"
