/* SPDX-License-Identifier: 0BSD
   An AVR under simavr.c, which puts the arguments into two registers that have
   no other use, and finds the exit status in a third. */
#include "board.h"

#include <avr/interrupt.h>
#include <avr/io.h>
#include <avr/sleep.h>

int program(void);

void board_text(const char *text)
{
    while (*text) {
        while (!(UCSR0A & (1 << UDRE0)))
            ;
        UDR0 = (uint8_t)*text++;
    }
}

/* Asleep with interrupts off is the end. */
void board_exit(int status)
{
    while (!(UCSR0A & (1 << UDRE0)))
        ;
    GPIOR2 = (uint8_t)status;
    cli();
    sleep_enable();
    for (;;)
        sleep_cpu();
}

uint32_t board_argument(int n)
{
    return n == 0 ? GPIOR0 : n == 1 ? GPIOR1 : 0;
}

int main(void)
{
    UBRR0 = 0;
    UCSR0B = 1 << TXEN0;
    board_exit(program());
    return 0;
}
