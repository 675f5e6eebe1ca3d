/* SPDX-License-Identifier: 0BSD
   As much of the pico-sdk as examples/port/rp2040_flash.h names.  A test says
   where the flash is, and how large. */
#ifndef _HARDWARE_FLASH_H
#define _HARDWARE_FLASH_H

#include <stddef.h>
#include <stdint.h>

#ifndef XIP_BASE
#define XIP_BASE              0x10000000u
#define PICO_FLASH_SIZE_BYTES (2 * 1024 * 1024)
#ifdef STAND_IN_RP2350
#define XIP_NOCACHE_NOALLOC_NOTRANSLATE_BASE 0x1c000000u
#endif
#endif
#define FLASH_PAGE_SIZE   (1u << 8)
#define FLASH_SECTOR_SIZE (1u << 12)

void flash_range_erase(uint32_t flash_offs, size_t count);
void flash_range_program(uint32_t flash_offs, const uint8_t *data,
                         size_t count);

#endif
