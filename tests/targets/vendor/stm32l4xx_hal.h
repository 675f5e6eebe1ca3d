/* SPDX-License-Identifier: 0BSD
   As much of ST's header as examples/port/stm32_flash.h names, so that it can
   be compiled without it. */
#ifndef STM32L4XX_HAL_H
#define STM32L4XX_HAL_H

#include <stdint.h>

typedef enum { HAL_OK, HAL_ERROR, HAL_BUSY, HAL_TIMEOUT } HAL_StatusTypeDef;
typedef struct { volatile uint32_t ECCR; } FLASH_TypeDef;
typedef struct {
    uint32_t TypeErase, Banks, Page, NbPages;
} FLASH_EraseInitTypeDef;

extern FLASH_TypeDef *const FLASH;
#define FLASH_ECCR_ECCD             0x80000000u
#define FLASH_BANK_2                2u
#define FLASH_TYPEERASE_PAGES       0u
#define FLASH_TYPEPROGRAM_DOUBLEWORD 0u
#define FLASH_TYPEPROGRAM_QUADWORD  1u

void __DSB(void);
HAL_StatusTypeDef HAL_FLASH_Unlock(void);
HAL_StatusTypeDef HAL_FLASH_Lock(void);
HAL_StatusTypeDef HAL_FLASH_Program(uint32_t type, uint32_t at, uint64_t data);
HAL_StatusTypeDef HAL_FLASHEx_Erase(FLASH_EraseInitTypeDef *erase,
                                    uint32_t *failed);

#endif
