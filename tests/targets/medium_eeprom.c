/* SPDX-License-Identifier: 0BSD
   The EEPROM of the AVR, all of it but address 0, by the port that is in
   examples/port/. */
#include "medium.h"
#include "port/avr_eeprom.h"

#include <avr/io.h>

enum { SECTORS = 8 };

const idem_storage medium =
    AVR_EEPROM_STORAGE(1, E2END / SECTORS, SECTORS);

void medium_start(void)
{
}
