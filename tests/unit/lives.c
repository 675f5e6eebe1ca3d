/* SPDX-License-Identifier: 0BSD */
/*
 * Lives of a table in which callbacks fail now and then, power is cut, and the
 * tick does what it likes: whatever is answered keeps the promises of the
 * manual (tests/model).  `make fuzz PART=lives` lives more of them.
 */

#include "test.h"

#include "../../fuzz/lives.c"

enum { LIVES_TESTED = 6000 };

TEST(s1_to_s10_hold_whatever_fails_and_whenever)
{
    while (life < LIVES_TESTED)
        live();
}
