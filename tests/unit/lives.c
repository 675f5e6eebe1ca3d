/* SPDX-License-Identifier: 0BSD */
/*
 * Random lives of a table in which callbacks fail now and then, power is cut,
 * and the tick jumps, stops and goes back: every answer keeps the promises of
 * the manual (tests/model).  `make fuzz PART=lives` runs more of them.
 *
 * IDEM_SEED in the environment: run only that life.
 */

#include "unit.h"

#include "../model/calls.h"

enum { LIVES_TESTED = 3000 };

TEST(s1_to_s10_hold_whatever_fails_and_whenever)
{
    const char *only = getenv("IDEM_SEED");
    uint32_t end = only ? (uint32_t)strtoul(only, NULL, 10) + 1 : LIVES_TESTED;

    for (life = only ? end - 1 : 0; life != end; life++)
        run(NULL);
}
