/* SPDX-License-Identifier: 0BSD
   What a program under tests/targets/ needs of the machine that it runs on:
   start.c (Cortex-M, Cortex-A, RISC-V), avr.c, stm8.c and host.c provide it. */
#ifndef BOARD_H
#define BOARD_H

#include <stdint.h>

/* Hands text to whoever ran the program, at once: what was handed over outlasts
   the machine. */
void board_text(const char *text);

/* What start.c asks of the host by semihosting: what the answer means depends
   on the operation. */
uintptr_t semihost(uintptr_t operation, const void *arguments);

/* The program's, if it has an interrupt */
void board_interrupt(void);

/* Ends the run with this exit status. */
void board_exit(int status);

/* The n-th number that the program was run with, from 0 on; 0 if there are not
   so many. */
uint32_t board_argument(int n);

/* A number as text, somewhere in `digits`. */
static inline const char *board_digits(char digits[11], uint32_t number)
{
    char *at = digits + 10;

    *at = 0;
    do
        *--at = (char)('0' + number % 10);
    while ((number /= 10) != 0);
    return at;
}

static inline void board_number(uint32_t number)
{
    char digits[11];

    board_text(board_digits(digits, number));
}

#endif /* BOARD_H */
