/* SPDX-License-Identifier: 0BSD
   An EEPROM in memory; its power goes before the byte that is one too many. */
#ifndef STAND_IN_EEPROM_H
#define STAND_IN_EEPROM_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

static uint8_t eeprom[4096];
static long bytes_left = -1;            // until the power goes; < 0: never

static inline void eeprom_read_block(void *dst, const void *at, size_t size)
{
    memcpy(dst, eeprom + (uintptr_t)at, size);
}

static inline void eeprom_update_block(const void *src, void *at, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        if (bytes_left == 0)
            throw "the power goes";
        bytes_left -= bytes_left > 0;
        eeprom[(uintptr_t)at + i] = ((const uint8_t *)src)[i];
    }
}

static inline void eeprom_busy_wait(void)
{
}

#endif
