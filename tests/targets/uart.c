/* SPDX-License-Identifier: 0BSD
   An AVR under simavr.c, which puts the arguments into two registers that have
   no other use, and finds the exit status in a third; or an STM8 under sstm8 of
   ucsim, which has no arguments, and prints the status as a last line.  Text
   goes out by the serial port. */
#include "board.h"

#ifdef __AVR__
#include <avr/io.h>
#include <avr/sleep.h>
#define STATUS  UCSR0A
#define DATA    UDR0
#define SPEED   UBRR0
#define CONTROL UCSR0B
enum { SENT = 1 << UDRE0, TRANSMIT = 1 << TXEN0, FASTEST = 0 };
#else
#define STATUS  (*(volatile uint8_t *)0x5230)
#define DATA    (*(volatile uint8_t *)0x5231)
#define SPEED   (*(volatile uint8_t *)0x5232)
#define CONTROL (*(volatile uint8_t *)0x5235)
enum { SENT = 0x40, TRANSMIT = 0x08, FASTEST = 1 };
#endif

int program(void);

static void wait(void)
{
    while (!(STATUS & SENT))
        ;
}

void board_text(const char *text)
{
    while (*text) {
        wait();
        DATA = (uint8_t)*text++;
    }
}

/* The simulators end where the program can never go on: interrupts are off. */
void board_exit(int status)
{
#ifdef __AVR__
    GPIOR2 = (uint8_t)status;
    sleep_enable();
#else
    board_text("status ");
    board_number((uint32_t)status);
    board_text("\n");
#endif
    wait();
    for (;;)
#ifdef __AVR__
        sleep_cpu();
#else
        __asm__("halt");
#endif
}

uint32_t board_argument(int n)
{
#ifdef __AVR__
    if (n < 2)
        return n ? GPIOR1 : GPIOR0;
#endif
    (void)n;
    return 0;
}

int main(void)
{
    SPEED = FASTEST;
    CONTROL = TRANSMIT;
    board_exit(program());
    return 0;
}
