/* SPDX-License-Identifier: 0BSD */
/*
 * Lives of a table in which callbacks fail now and then, power is cut, and the
 * tick does what it likes: whatever is answered keeps the promises of the
 * manual (tests/model).  The calls are the fuzzer's, by chance, the same in
 * every run.
 */

#include "test.h"

#include "../../fuzz/calls.c"

enum { LIVES = 6000, LIFE = 400 };

TEST(s1_to_s10_hold_whatever_fails_and_whenever)
{
    static uint8_t bytes[LIFE];

    for (uint32_t life = 0; life < LIVES; life++) {
        uint32_t chance = life * UINT32_C(0x9E3779B1);
        input in = { bytes, LIFE };
        for (unsigned i = 0; i < LIFE; i++) {
            chance = flash_mix(chance + 1);
            bytes[i] = (uint8_t)(chance >> 13);
        }
        run(&in);
    }
}
