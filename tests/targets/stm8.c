/* SPDX-License-Identifier: 0BSD
   An STM8 under sstm8 of ucsim: text goes out by the serial port, the status as
   a last line. */
#include "board.h"

#define UART_STATUS  (*(volatile uint8_t *)0x5230)
#define UART_DATA    (*(volatile uint8_t *)0x5231)
#define UART_SPEED   (*(volatile uint8_t *)0x5232)
#define UART_CONTROL (*(volatile uint8_t *)0x5235)

enum { SENT = 0x40, TRANSMIT = 0x08 };

int program(void);

void board_text(const char *text)
{
    while (*text) {
        while (!(UART_STATUS & SENT))
            ;
        UART_DATA = (uint8_t)*text++;
    }
}

/* The simulator ends where the program can never go on. */
void board_exit(int status)
{
    board_text("status ");
    board_number((uint32_t)status);
    board_text("\n");
    while (!(UART_STATUS & SENT))
        ;
    __asm__("halt");
    for (;;)
        ;
}

uint32_t board_argument(int n)
{
    (void)n;
    return 0;
}

void main(void)
{
    UART_SPEED = 1;
    UART_CONTROL = TRANSMIT;
    board_exit(program());
}
