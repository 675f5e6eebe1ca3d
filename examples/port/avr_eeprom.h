/* SPDX-License-Identifier: 0BSD
   The EEPROM of an AVR as a storage of idem.h, with avr-libc.

       static const idem_storage storage = AVR_EEPROM_STORAGE(
           0, 512, IDEM_SECTORS(8, 12, 4, 0, 512, 1));

   The journal of so few keys takes 3 KB: for an ATmega with 4 KB, which the
   1284P and the 2560 have.

   A byte is erased and programmed in one step of 3.4 ms, in which the device
   must not be reset by a brown-out: switch its detector on. */
#ifndef AVR_EEPROM_H
#define AVR_EEPROM_H

#include "idem.h"

#include <avr/eeprom.h>

/* `first` is the address at which the journal begins.  No erase: programming
   replaces what is there. */
#define AVR_EEPROM_STORAGE(first, size, sectors)                               \
    { .ctx = (void *)(uintptr_t)(first), .read = avr_eeprom_read,              \
      .prog = avr_eeprom_prog, .sector_size = (size),                          \
      .sector_count = (sectors), .prog_size = 1, .erased = 0xFF }

static inline int avr_eeprom_read(void *ctx, uint32_t at, void *dst,
                                  uint32_t len)
{
    const uint8_t *from = (const uint8_t *)ctx + at;

    eeprom_read_block(dst, from, (size_t)len);
    return 0;
}

/* The last byte takes until the EEPROM is ready again. */
static inline int avr_eeprom_prog(void *ctx, uint32_t at, const void *src,
                                  uint32_t len)
{
    uint8_t *to = (uint8_t *)ctx + at;

    eeprom_update_block(src, to, (size_t)len);
    eeprom_busy_wait();
    return 0;
}

#endif /* AVR_EEPROM_H */
