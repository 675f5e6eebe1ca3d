/* SPDX-License-Identifier: 0BSD */
/*
 * The flash of the board: what medium_nvmc.c has, taking the times of the data
 * sheet, since QEMU's is done at once; and an erase goes through all that it
 * can leave when it is interrupted.
 *
 * device.c is here too: so the compiler knows the flash, and leaves out the
 * code that it does not need.
 */
#include "board_flash.h"
#include "flash_file.h"
#include "medium.h"

// The pages that the linker set aside.
typedef char flash_is_large_enough
    [FLASH_SECTORS >= DEVICE_SECTORS(FLASH_SECTOR, FLASH_GRANULE) ? 1 : -1];

enum { WORD = 4, WORD_US = 46, ERASE_US = 22300 };

static int slow_read(void *ctx, uint32_t at, void *dst, uint32_t len)
{
    return medium.read(ctx, at, dst, len);
}

static int slow_prog(void *ctx, uint32_t at, const void *src, uint32_t len)
{
    const uint8_t *from = (const uint8_t *)src;
    uint32_t i;

    for (i = 0; i < len; i += WORD) {
        int result = medium.prog(ctx, at + i, from + i, WORD);

        if (result != 0)
            return result;
        board_wait_us(WORD_US);
    }
    return 0;
}

static int slow_erase(void *ctx, uint32_t sector)
{
    static const uint8_t programmed[WORD] = { 0 };
    uint32_t i;

    for (i = 0; i < FLASH_SECTOR; i += WORD) {
        int result = medium.prog(ctx, sector * FLASH_SECTOR + i, programmed,
                                 WORD);

        if (result != 0)
            return result;
        board_wait_us(ERASE_US / (FLASH_SECTOR / WORD));
    }
    return medium.erase(ctx, sector);
}

const idem_storage board_flash = {
    .read = slow_read, .prog = slow_prog, .erase = slow_erase,
    .sector_size = FLASH_SECTOR, .sector_count = FLASH_SECTORS,
    .prog_size = FLASH_GRANULE, .erased = 0xFF, .verify = 1
};

#define DEVICE_STORAGE board_flash
#include "device.c"
