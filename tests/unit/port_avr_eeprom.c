/* SPDX-License-Identifier: 0BSD
   examples/port/avr_eeprom.h on a model of an EEPROM: it is busy after each
   write, may lose a write, and reports nothing. */
#include "chip.h"
#include "examples/port/avr_eeprom.h"

enum { FIRST = 1, SECTOR = 400, SECTORS = 8 };

static const idem_storage storage = AVR_EEPROM_STORAGE(FIRST, SECTOR, SECTORS);
static int busy;

static void power(void)
{
    busy = 0;
}

static uint32_t place(const void *address)
{
    assert_true((uintptr_t)address >= FIRST);
    return (uint32_t)((uintptr_t)address - FIRST);
}

void eeprom_read_block(void *dst, const void *src, size_t n)
{
    is(busy, 0);
    if (flash_read(&medium, place(src), dst, (uint32_t)n))
        memset(dst, 0x5A, n);           // power is off
}

void eeprom_update_block(const void *src, void *dst, size_t n)
{
    if (!chip_protected)
        flash_prog(&medium, place(dst), src, (uint32_t)n);
    busy = 1;
}

void eeprom_busy_wait(void)
{
    busy = 0;
}

static void make(void)
{
    chip_storage = &storage;
    chip_power = power;
    chip_make(FLASH_INPLACE, SECTOR, SECTORS, 1);
}
