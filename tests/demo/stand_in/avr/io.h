/* SPDX-License-Identifier: 0BSD
   Of an ATmega2560. */
#define E2END 0xFFF
