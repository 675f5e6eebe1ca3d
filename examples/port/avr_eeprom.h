/* SPDX-License-Identifier: 0BSD
   The EEPROM of an AVR as a storage of idem.h, with avr-libc.

       static const idem_storage storage = AVR_EEPROM_STORAGE(
           1, 400, IDEM_SECTORS(6, 12, 4, 0, 400, 1));

   The journal of a few keys takes 3 to 4 KB: for an ATmega with 4 KB, which the
   1284P and the 2560 have.

   It begins at address 1 or above: when the supply falls below what the CPU
   needs, the address register may read as 0, and a byte that is being written
   goes there.  A byte is erased and programmed in one step of 3.4 ms; the
   brown-out detector must be on, so that none is begun below that voltage.
   Nothing reports a worn cell, so verify is set. */
#ifndef AVR_EEPROM_H
#define AVR_EEPROM_H

#include "idem.h"

#include <avr/eeprom.h>
#include <avr/io.h>

/* `first` is the address at which the journal begins, not 0, a constant as the
   others are.  A journal that ends beyond the EEPROM does not compile, nor one
   of 0 sectors, which is what IDEM_SECTORS answers if there is no solution.  No
   erase: programming replaces what is there. */
#define AVR_EEPROM_STORAGE(first, size, sectors)                               \
    { .ctx = (void *)(uintptr_t)(first), .read = avr_eeprom_read,              \
      .prog = avr_eeprom_prog,                                                 \
      .sector_size = (size) * sizeof(char[(first) > 0 &&                       \
                      (first) + (size) * 1ul * (sectors) <= E2END + 1ul        \
                                              ? 1 : -1]),                      \
      .sector_count = sizeof(char[(sectors) > 0 ? 1 : -1]) * (sectors),        \
      .prog_size = 1, .erased = 0xFF, .verify = 1 }

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
