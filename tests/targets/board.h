/* SPDX-License-Identifier: 0BSD
   What a program under tests/targets/ needs of the machine that it runs on:
   start.c (Cortex-M, Cortex-A, RISC-V), uart.c (AVR, STM8) and host.c provide
   it. */
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

/* The n-th number that the program was run with, from 0 on; 0 if there is
   none. */
uint32_t board_argument(int n);

static inline void board_number(uint32_t number)
{
    char digits[11];
    char *at = digits + sizeof digits - 1;

    *at = 0;
    do
        *--at = (char)('0' + number % 10);
    while ((number /= 10) != 0);
    board_text(at);
}

#endif /* BOARD_H */
