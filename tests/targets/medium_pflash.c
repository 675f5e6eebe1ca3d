/* SPDX-License-Identifier: 0BSD
   Parallel NOR flash with the Intel command set, which QEMU's `virt` machines
   have in a file of the host: two chips of 16 bits side by side, blocks of
   256 KB.

   A program there replaces bits, so what no NOR flash could do is refused here.
   And an erase happens at once there; here a sector's bits are all programmed
   before, word by word, as chips do, so that it can be cut short. */
#include "medium.h"

// The second of two; and a granule, which is ours to choose.
#ifdef __riscv
#define FLASH_AT 0x22000000u
enum { GRANULE = 16 };
#else
#define FLASH_AT 0x04000000u
enum { GRANULE = 8 };
#endif

enum { BLOCK = 0x40000 };
enum { READY = 0x800080, FAILED = 0x380038 };
enum {
    PROGRAM = 0x400040, CLEAR = 0x500050, ERASE = 0x200020, CONFIRM = 0xD000D0,
    ARRAY = 0xFF00FF
};

/* Sectors are short, so that they are soon full; the rest of a block is not
   used. */
enum { SECTOR = 1024, SECTORS = 5 };

static volatile uint32_t *word_at(uint32_t at)
{
    uintptr_t block = at / SECTOR * (uintptr_t)BLOCK;

    return (volatile uint32_t *)(FLASH_AT + block + at % SECTOR);
}

/* Waits, goes back to reading; 0 if the chips are content. */
static int finish(volatile uint32_t *word)
{
    uint32_t status;

    do
        status = *word;
    while ((status & READY) != READY);
    *word = CLEAR;
    *word = ARRAY;
    return (status & FAILED) != 0;
}

static int program_word(volatile uint32_t *word, uint32_t value)
{
    if (~*word & value)
        return -1;                      // only an erase sets bits
    *word = PROGRAM;
    *word = value;
    return finish(word);
}

static int pflash_read(void *ctx, uint32_t at, void *dst, uint32_t len)
{
    uint8_t *to = dst;

    (void)ctx;
    for (uint32_t i = 0; i < len; i++, at++)
        to[i] = (uint8_t)(*word_at(at & ~3u) >> 8 * (at & 3));
    return 0;
}

static int pflash_prog(void *ctx, uint32_t at, const void *src, uint32_t len)
{
    const uint8_t *from = src;

    (void)ctx;
    for (uint32_t i = 0; i < len; i += 4) {
        uint32_t value = from[i] | (uint32_t)from[i + 1] << 8 |
                         (uint32_t)from[i + 2] << 16 |
                         (uint32_t)from[i + 3] << 24;
        if (program_word(word_at(at + i), value))
            return -1;
    }
    return 0;
}

static int pflash_erase(void *ctx, uint32_t sector)
{
    volatile uint32_t *word = word_at(sector * SECTOR);

    (void)ctx;
    for (uint32_t i = 0; i < SECTOR / 4; i++)
        if (program_word(word + i, 0))
            return -1;
    *word = ERASE;
    *word = CONFIRM;
    return finish(word);
}

const idem_storage medium = {
    .read = pflash_read, .prog = pflash_prog, .erase = pflash_erase,
    .sector_size = SECTOR, .sector_count = SECTORS, .prog_size = GRANULE,
    .erased = 0xFF
};

void medium_start(void)
{
}
