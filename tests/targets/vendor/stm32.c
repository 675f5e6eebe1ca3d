/* SPDX-License-Identifier: 0BSD
   The STM32's port is used once as its comment says; stm32_it.c has the handler,
   as the vendor's tool puts it into a file of its own. */
#include "stm32l4xx_hal.h"
#define STM32_FLASH_IMPLEMENTATION
#include "port/stm32_flash.h"

static const stm32_flash last = {
#ifdef FLASH_BANK_2
    .bank = FLASH_BANK_2,
#endif
    .page = 8
};

extern const idem_storage stm32_storage;

const idem_storage stm32_storage = STM32_FLASH_STORAGE(
    &last, IDEM_SECTORS(16, 16, 8, 0, STM32_FLASH_PAGE, STM32_FLASH_WORD));
