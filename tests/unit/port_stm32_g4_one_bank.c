/* SPDX-License-Identifier: 0BSD
   A G4 whose banks are read as one: pages of 4 KB, two ECC flags. */
#define STAND_IN_G4
#define STM32_FLASH_PAGE FLASH_PAGE_SIZE_128_BITS
#include "stm32.h"
