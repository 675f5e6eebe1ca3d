/* SPDX-License-Identifier: 0BSD */
/* How a command and its answer stand in holding registers, for gateway.c and
 * master.c.  Each master has a window of its own, 32 registers from 32 x N on:
 *
 *     +0, +1   epoch           the command.  All five are written at once, with
 *     +2, +3   sequence        function 16 or 23: a number that was written in
 *     +4       ml              two halves would be a number of no command
 *
 *     +16, +17 epoch           the answer, to be read with function 3 or 23:
 *     +18, +19 sequence        to this number
 *     +20      status          see below
 *     +21      retry           100 ms, for STATUS_RETRY
 *     +22      reason          a result of idem.h as 16 bits, for people
 *
 * The high word of a number comes first.  Writing the same command again is how
 * to ask whether it is done. */
#ifndef REGISTERS_H
#define REGISTERS_H

#include <stdint.h>

enum { WINDOWS = 8, WINDOW = 32, COMMAND_LEN = 5, ANSWER_AT = 16,
       ANSWER_LEN = 7 };

enum {
    STATUS_NONE,                // nothing was asked since the gateway started
    STATUS_POURED,
    STATUS_RETRY,               // no outcome yet: write the same again
    STATUS_REFUSED,             // not done, and never will be
    STATUS_LOOK                 // nobody knows: look at the cup
};

/* As they are in a message */
static inline unsigned registers_word(const uint8_t *at)
{
    return (unsigned)at[0] << 8 | at[1];
}

static inline uint32_t registers_number(const uint8_t *at)
{
    return (uint32_t)registers_word(at) << 16 | registers_word(at + 2);
}

/* As libmodbus has them */
static inline uint32_t registers_get(const uint16_t *at)
{
    return (uint32_t)at[0] << 16 | at[1];
}

static inline void registers_set(uint16_t *at, uint32_t number)
{
    at[0] = (uint16_t)(number >> 16);
    at[1] = (uint16_t)number;
}

#endif
