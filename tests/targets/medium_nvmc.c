/* SPDX-License-Identifier: 0BSD
   The internal flash of a nRF51 (microbit): pages of 1 KB, programmed by words,
   bits only go from 1 to 0.  QEMU keeps it in memory: so each word is copied to
   a file of the host, flash.bin, as soon as the flash has it, as it reads
   then.  A machine that is killed in between was killed before the step. */
#include "medium.h"

#include <string.h>

uintptr_t semihost(uintptr_t operation, const void *arguments);

enum { OPEN = 0x01, WRITE = 0x05, SEEK = 0x0A };
enum { READ_WRITE_BINARY = 3 };         // "r+b"

#define READY  (*(volatile uint32_t *)0x4001E400u)
#define CONFIG (*(volatile uint32_t *)0x4001E504u)
#define ERASE  (*(volatile uint32_t *)0x4001E508u)

enum { READING, WRITING, ERASING };     // CONFIG
enum { FLASH_AT = 0x3C000, PAGE = 1024, PAGES = 5 };

static uintptr_t file;

static void copy(uint32_t at, uint32_t len)
{
    uintptr_t seek[2] = { file, at };
    uintptr_t write[3] = { file, FLASH_AT + at, len };

    semihost(SEEK, seek);
    semihost(WRITE, write);
}

static void wait(void)
{
    while (!READY)
        ;
}

static int nvmc_read(void *ctx, uint32_t at, void *dst, uint32_t len)
{
    (void)ctx;
    memcpy(dst, (const void *)(uintptr_t)(FLASH_AT + at), len);
    return 0;
}

static int nvmc_prog(void *ctx, uint32_t at, const void *src, uint32_t len)
{
    volatile uint32_t *word = (volatile uint32_t *)(uintptr_t)(FLASH_AT + at);
    const uint8_t *from = src;

    (void)ctx;
    CONFIG = WRITING;
    for (uint32_t i = 0; i < len; i += 4, word++) {
        uint32_t value;
        memcpy(&value, from + i, sizeof value);
        *word = value;
        wait();
        copy(at + i, sizeof value);
    }
    CONFIG = READING;
    return 0;
}

static int nvmc_erase(void *ctx, uint32_t sector)
{
    (void)ctx;
    CONFIG = ERASING;
    ERASE = FLASH_AT + sector * PAGE;
    wait();
    CONFIG = READING;
    copy(sector * PAGE, PAGE);
    return 0;
}

const idem_storage medium = {
    .read = nvmc_read, .prog = nvmc_prog, .erase = nvmc_erase,
    .sector_size = PAGE, .sector_count = PAGES, .prog_size = 4,
    .erased = 0xFF, .verify = 1
};

void medium_start(void)
{
    static const char name[] = "flash.bin";
    uintptr_t open[3] = { (uintptr_t)name, READ_WRITE_BINARY, sizeof name - 1 };

    file = semihost(OPEN, open);
}
