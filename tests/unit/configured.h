/* SPDX-License-Identifier: 0BSD */
/*
 * What tests with a header of their own share: a medium and its storage.  To be
 * included between the header's interface and the configuration.
 */
#ifndef CONFIGURED_H
#define CONFIGURED_H

#include "../model/flash.h"
#include "test.h"

enum { SIZE = 512, SECTORS = IDEM_SECTORS(4, 16, 16, 4, SIZE, 8) };

static flash medium;
static uint32_t medium_memory[FLASH_MEMORY(SIZE, SECTORS) / 4];
static const idem_storage storage = {
    .ctx = &medium, .read = flash_read, .prog = flash_prog,
    .erase = flash_erase, .sector_size = SIZE, .sector_count = SECTORS,
    .prog_size = 8, .erased = 0xFF,
};

static void begin_new_storage(void)
{
    medium = (flash){ .kind = FLASH_NOR, .sector_size = SIZE,
                      .sector_count = SECTORS, .prog_size = 8, .erased = 0xFF };
    is(flash_init(&medium, medium_memory), 0);
}

#endif
