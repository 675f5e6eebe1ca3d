/* SPDX-License-Identifier: 0BSD
   A board that is a process: this machine, or another under qemu-user. */
#include "board.h"

#include <stdio.h>
#include <stdlib.h>

static int count;
static char **numbers;

int program(void);

void board_text(const char *text)
{
    fputs(text, stdout);
    fflush(stdout);
}

void board_exit(int status)
{
    exit(status);
}

uint32_t board_argument(int n)
{
    return n + 1 < count ? (uint32_t)strtoul(numbers[n + 1], NULL, 0) : 0;
}

int main(int argc, char **argv)
{
    count = argc;
    numbers = argv;
    return program();
}
