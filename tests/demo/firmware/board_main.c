/* SPDX-License-Identifier: 0BSD */
/*
 * The device as firmware without an operating system: device.c on a nRF51
 * (BBC micro:bit: Cortex-M0, 256 KB of flash, 16 KB of RAM).  The line is its
 * UART, the journal is in its own flash, which medium_nvmc.c keeps in a file
 * when QEMU is the machine.  That is killed, which is a power cut.
 *
 * The label printer is a file of the host, written and read by semihosting: it
 * is outside, keeps what it has printed whatever happens here, and has a sensor
 * that sees it.
 *
 * It is run with three numbers, as board.h has them: the seed of the times that
 * commands take; 0, or to do without idem.h: 1 answers first, 2 last; and how
 * many ms it was off (known from a clock with a battery).
 */
#include "board.h"
#include "board_flash.h"
#include "device.h"
#include "flash_file.h"
#include "medium.h"
#include "naive.h"

#define REGISTER(at) (*(volatile uint32_t *)(at))

/* ---------------------------------------------------------------------------
   time: TIMER0, 32 bits, counts microseconds
   ------------------------------------------------------------------------ */

#define TIMER_START     REGISTER(0x40008000u)
#define TIMER_CAPTURE   REGISTER(0x40008040u)
#define TIMER_BITMODE   REGISTER(0x40008508u)
#define TIMER_PRESCALER REGISTER(0x40008510u)
#define TIMER_CC        REGISTER(0x40008540u)

enum { BITS_32 = 3, FROM_16_MHZ = 4 };

static void timer_start(void)
{
    TIMER_BITMODE = BITS_32;
    TIMER_PRESCALER = FROM_16_MHZ;
    TIMER_START = 1;
}

static uint32_t micros(void)
{
    TIMER_CAPTURE = 1;
    return TIMER_CC;
}

void board_wait_us(uint32_t us)
{
    uint32_t from = micros();

    while (micros() - from < us)
        ;
}

/* Added up, so that it wraps where 32 bits do and not after 71 minutes.  (To be
   called once in these at least.) */
static uint32_t millis(void)
{
    static uint32_t ms, at_us;
    uint32_t passed = (micros() - at_us) / 1000;

    at_us += passed * 1000;
    return ms += passed;
}

/* What a command takes: up to 8 ms.  Xorshift; any seed but 0 will do. */
static void work(void *ctx)
{
    static uint32_t x;

    (void)ctx;
    if (!x)
        x = board_argument(0) | 0x10000;
    x ^= x << 13;
    x ^= x >> 17;
    x ^= x << 5;
    board_wait_us(x % 8000);
}

/* ---------------------------------------------------------------------------
   the line: UART0, whose interrupt fills a ring
   ------------------------------------------------------------------------ */

#define UART_STARTRX  REGISTER(0x40002000u)
#define UART_STARTTX  REGISTER(0x40002008u)
#define UART_RXDRDY   REGISTER(0x40002108u)
#define UART_TXDRDY   REGISTER(0x4000211Cu)
#define UART_INTENSET REGISTER(0x40002304u)
#define UART_INTENCLR REGISTER(0x40002308u)
#define UART_ENABLE   REGISTER(0x40002500u)
#define UART_RXD      REGISTER(0x40002518u)
#define UART_TXD      REGISTER(0x4000251Cu)
#define NVIC_ISER     REGISTER(0xE000E100u)

enum { UART_ON = 4, RXDRDY = 1 << 2 };
enum { RING = 256 };                    // a power of 2

/* Only the interrupt moves head, only uart_get moves tail; both wrap by
   themselves, head - tail is what is in between. */
static volatile uint8_t ring[RING];
static volatile uint16_t head, tail;

static int is_full(void)
{
    return (uint16_t)(head - tail) == RING;
}

/* When the ring is full, bytes stay in the UART, which holds off the sender,
   until uart_get has made room. */
void board_interrupt(void)
{
    while (UART_RXDRDY) {
        if (is_full()) {
            UART_INTENCLR = RXDRDY;
            return;
        }
        UART_RXDRDY = 0;
        ring[head % RING] = (uint8_t)UART_RXD;
        head = (uint16_t)(head + 1);
    }
}

static void uart_start(void)
{
    UART_ENABLE = UART_ON;
    UART_INTENSET = RXDRDY;
    NVIC_ISER = 1u << BOARD_INTERRUPT;
    UART_STARTTX = 1;
    UART_STARTRX = 1;
}

static int uart_get(uint8_t *byte)
{
    if (head == tail)
        return 0;
    *byte = ring[tail % RING];
    tail = (uint16_t)(tail + 1);
    UART_INTENSET = RXDRDY;
    return 1;
}

/* Sleeps until there is a byte.  What comes between the look and the sleep is
   pending, which ends the sleep though interrupts are off. */
static void uart_wait(void)
{
    __asm__ volatile ("cpsid i" ::: "memory");
    if (head == tail)
        __asm__ volatile ("wfi" ::: "memory");
    __asm__ volatile ("cpsie i" ::: "memory");
}

static void put(void *ctx, uint8_t byte)
{
    (void)ctx;
    UART_TXD = byte;
    while (!UART_TXDRDY)
        ;
    UART_TXDRDY = 0;
}

/* ---------------------------------------------------------------------------
   files of the host
   ------------------------------------------------------------------------ */

enum { OPEN = 0x01, WRITE = 0x05, READ = 0x06, SEEK = 0x0A, LENGTH = 0x0C };
enum { APPEND_BINARY = 11 };            // "a+b"

static uintptr_t labels_file, ledger_file;

static uintptr_t open_file(const char *name, size_t len)
{
    uintptr_t open[3] = { (uintptr_t)name, APPEND_BINARY, len };

    return semihost(OPEN, open);
}

static void go_to(uintptr_t file, uintptr_t at)
{
    uintptr_t seek[2] = { file, at };

    semihost(SEEK, seek);
}

/* Goes to the end first: in QEMU 7.2 the mode does not see to that. */
static void append(uintptr_t file, const char *text, size_t len)
{
    uintptr_t write[3] = { file, (uintptr_t)text, len };

    go_to(file, semihost(LENGTH, &file));
    semihost(WRITE, write);
}

/* The next character of the file, from its beginning if `first`; -1: no more */
static int next(uintptr_t file, int first)
{
    static char bytes[64];
    static size_t at, len;

    if (first) {
        go_to(file, 0);
        at = len = 0;
    }
    if (at == len) {
        uintptr_t read[3] = { file, (uintptr_t)bytes, sizeof bytes };

        at = 0;
        len = sizeof bytes - semihost(READ, read);
    }
    return at < len ? bytes[at++] : -1;
}

/* ---------------------------------------------------------------------------
   the label printer: a line a label.  A label that was interrupted is completed
   with VOID when the printer starts, as a real one feeds paper.
   ------------------------------------------------------------------------ */

static uint32_t labels;

static void printer_start(void)
{
    int c, last = '\n';

    labels_file = open_file("labels", 6);
    for (c = next(labels_file, 1); c >= 0; c = next(labels_file, 0)) {
        labels += c == '\n';
        last = c;
    }
    if (last != '\n') {
        append(labels_file, " VOID\n", 6);
        labels++;
    }
}

static uint32_t print(void *ctx, const char *label, size_t len)
{
    work(ctx);
    append(labels_file, label, len / 2);
    work(ctx);
    append(labels_file, label + len / 2, len - len / 2);
    append(labels_file, "\n", 1);
    work(ctx);
    return ++labels;
}

static uint32_t printed(void *ctx, const char *label, size_t len)
{
    uint32_t number = 1;
    size_t at = 0;
    int c, same = 1;

    (void)ctx;
    for (c = next(labels_file, 1); c >= 0; c = next(labels_file, 0)) {
        if (c != '\n') {
            same = same && at < len && label[at] == c;
            at++;
            continue;
        }
        if (same && at == len)
            return number;
        number++;
        same = 1;
        at = 0;
    }
    return 0;
}

/* ---------------------------------------------------------------------------
   running
   ------------------------------------------------------------------------ */

/* A real device is given its secret when it is made; this one when it is built.
   One that is in the source is nobody's. */
#ifndef DEVICE_SECRET
#error "DEVICE_SECRET: 16 random bytes, separated by commas, of this device"
#endif
static const uint8_t secret[] = { DEVICE_SECRET };
static const device_port port = { NULL, put, millis, work, print, printed,
                                  secret };

/* Returns only if it cannot begin. */
static int run(uint32_t away_ms)
{
    static uint32_t memory[DEVICE_MEMORY_SIZE(FLASH_GRANULE) / 4];
    static device d;
    uint8_t byte;
    int result;

    medium_start();
    result = device_start(&d, &port, &board_flash, memory, sizeof memory);
    if (result == IDEM_OK)
        result = idem_elapse(&d.table, away_ms);
    if (result != IDEM_OK) {
        const char *why = idem_explain(&d.config);

        board_text(idem_text(result));
        board_text(why ? ": " : ", would do: ");
        if (why)
            board_text(why);
        else
            board_number((uint32_t)d.table.needed);
        return 2;
    }
    for (;;)
        if (uart_get(&byte))
            device_receive(&d, byte);
        else if (!device_idle(&d))
            uart_wait();
}

static void enter(const char *line, size_t len)
{
    append(ledger_file, line, len);
}

/* Never returns. */
static void run_naive(int answers_first)
{
    static naive n;
    uint8_t byte;
    int c;

    naive_start(&n, &port, enter, labels, answers_first);
    ledger_file = open_file("ledger", 6);
    for (c = next(ledger_file, 1); c >= 0; c = next(ledger_file, 0))
        naive_remember(&n, (char)c);
    for (;;)
        if (uart_get(&byte))
            naive_receive(&n, byte);
        else
            uart_wait();
}

int program(void)
{
    uint32_t naive_mode = board_argument(1);

    timer_start();
    uart_start();
    printer_start();
    if (naive_mode)
        run_naive(naive_mode == 1);
    return run(board_argument(2));
}
