/* SPDX-License-Identifier: 0BSD
   Stand-in for avr-libc's header of an ATmega2560: as much as the port uses. */
#ifndef STAND_IN_AVR_IO_H
#define STAND_IN_AVR_IO_H

#define E2END 0xFFF

#endif
