/* SPDX-License-Identifier: 0BSD
   Stand-in for the header of avr-libc, with its signatures: as much as the port
   uses. */
#ifndef STAND_IN_AVR_EEPROM_H
#define STAND_IN_AVR_EEPROM_H

#include <stddef.h>

void eeprom_read_block(void *dst, const void *src, size_t n);
void eeprom_update_block(const void *src, void *dst, size_t n);
void eeprom_busy_wait(void);

#endif
