/* SPDX-License-Identifier: 0BSD
   The internal flash of a nRF51 (microbit): pages of 1 KB, programmed by words,
   bits only go from 1 to 0.  QEMU keeps it in memory: so each word is copied to
   a file of the host as soon as the flash has it, as it reads then.  A machine
   that is killed in between was killed before the step.

   NVMC_AT    where it is
   NVMC_NONE  a board without it, on which other memory does the same.  There a
              sector's bits are all programmed before it is erased, word by
              word, as chips do, so that a power cut can interrupt it. */
#include "board.h"
#include "medium.h"

#include <string.h>

#ifndef NVMC_PAGES
#define NVMC_PAGES 5
#define NVMC_FILE "flash.bin"
#endif
#ifndef NVMC_GRANULE
#define NVMC_GRANULE 4
#endif

enum { OPEN = 0x01, WRITE = 0x05, SEEK = 0x0A };
enum { READ_WRITE_BINARY = 3 };         // "r+b"

enum { READING, WRITING, ERASING };     // CONFIG
enum { PAGE = 1024 };
enum { WORD = sizeof(uint32_t) };

static uintptr_t file;

static void copy(uint32_t at, uint32_t len)
{
    uintptr_t seek[2] = { file, at };
    uintptr_t write[3] = { file, NVMC_AT + at, len };

    semihost(SEEK, seek);
    semihost(WRITE, write);
}

static int nvmc_read(void *ctx, uint32_t at, void *dst, uint32_t len)
{
    (void)ctx;
    memcpy(dst, (const void *)(uintptr_t)(NVMC_AT + at), len);
    return 0;
}

static volatile uint32_t *word_at(uint32_t at)
{
    return (volatile uint32_t *)(uintptr_t)(NVMC_AT + at);
}

#ifdef NVMC_NONE
enum { READY = 1 };
static uint32_t CONFIG;
#else
#define READY  (*(volatile uint32_t *)0x4001E400u)
#define CONFIG (*(volatile uint32_t *)0x4001E504u)
#define ERASE  (*(volatile uint32_t *)0x4001E508u)
#endif

static void wait(void)
{
    while (!READY)
        ;
}

static void write_word(uint32_t at, uint32_t value)
{
    *word_at(at) &= value;
    wait();
    copy(at, WORD);
}

static void erase_page(uint32_t at)
{
#ifdef NVMC_NONE
    for (uint32_t i = 0; i < PAGE; i += WORD)
        write_word(at + i, 0);
    memset((void *)(uintptr_t)(NVMC_AT + at), 0xFF, PAGE);
#else
    ERASE = NVMC_AT + at;
    wait();
#endif
    copy(at, PAGE);
}

static int nvmc_prog(void *ctx, uint32_t at, const void *src, uint32_t len)
{
    const uint8_t *from = src;

    (void)ctx;
    CONFIG = WRITING;
    for (uint32_t i = 0; i < len; i += WORD) {
        uint32_t value;
        memcpy(&value, from + i, WORD);
        write_word(at + i, value);
    }
    CONFIG = READING;
    return 0;
}

static int nvmc_erase(void *ctx, uint32_t sector)
{
    (void)ctx;
    CONFIG = ERASING;
    erase_page(sector * PAGE);
    CONFIG = READING;
    return 0;
}

const idem_storage medium = {
    .read = nvmc_read, .prog = nvmc_prog, .erase = nvmc_erase,
    .sector_size = PAGE, .sector_count = NVMC_PAGES, .prog_size = NVMC_GRANULE,
    .erased = 0xFF, .verify = NVMC_GRANULE == 4     // on one board, not on all
};

void medium_start(void)
{
    static const char name[] = NVMC_FILE;
    uintptr_t open[3] = { (uintptr_t)name, READ_WRITE_BINARY, sizeof name - 1 };

    file = semihost(OPEN, open);
}
