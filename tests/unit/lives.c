/* SPDX-License-Identifier: 0BSD */
/*
 * Lives of a table in which callbacks fail now and then, power is cut, and the
 * tick does what it likes: whatever is answered keeps the promises of the
 * manual (tests/model).  `make fuzz PART=lives` lives more of them.
 *
 * In the environment, IDEM_SEED is the only life to live.
 */

#include "test.h"

#include "../model/calls.h"

enum { LIVES_TESTED = 3000 };

TEST(s1_to_s10_hold_whatever_fails_and_whenever)
{
    const char *only = getenv("IDEM_SEED");
    uint32_t end = only ? (uint32_t)strtoul(only, NULL, 10) + 1 : LIVES_TESTED;

    for (life = only ? end - 1 : 0; life != end; life++)
        run(NULL);
}
