/* SPDX-License-Identifier: 0BSD */
/* The flash of the board; and what takes its time. */
#ifndef BOARD_FLASH_H
#define BOARD_FLASH_H

#include "idem.h"

/* What medium.h has, but slow.  board_flash.c has device.c too. */
extern const idem_storage board_flash;

void board_wait_us(uint32_t us);

#endif
