/* SPDX-License-Identifier: 0BSD
   Internal flash of STM32 parts with ECC as a storage of idem.h, over ST's HAL:
   words of 8 bytes (L4, L5, G0, G4, WB, WL) or of 16 (U5: STM32_QUADWORD).

       #include "stm32l4xx_hal.h"
       #include "stm32_flash.h"

       static const stm32_flash last = { .base = 0x080FC000,
                                         .bank = FLASH_BANK_2, .page = 248 };
       static const idem_storage storage = STM32_FLASH_STORAGE(&last, 8);

       void NMI_Handler(void)
       {
           if (!stm32_flash_nmi())
               for (;;)
                   ;
       }

   A word whose programming was cut short may have two wrong bits, which the ECC
   cannot mend: reading it raises an NMI.  Without the handler above the device
   hangs, at every start, in what a power cut has left.

   The CPU stands still while it fetches from the bank that is programmed or
   erased (22 ms a page): take a page of the other bank where there are two. */
#ifndef STM32_FLASH_H
#define STM32_FLASH_H

#include "idem.h"

#include <string.h>

#ifdef STM32_QUADWORD
enum { STM32_WORD = 16, STM32_PAGE = 8192 };
#else
enum { STM32_WORD = 8, STM32_PAGE = 2048 };
#endif

typedef struct stm32_flash {
    uint32_t base;              /* address of the first page */
    uint32_t bank;
    uint32_t page;              /* its number in the bank */
} stm32_flash;

#define STM32_FLASH_STORAGE(where, pages)                                      \
    { .ctx = (void *)(uintptr_t)(where), .read = stm32_flash_read,             \
      .prog = stm32_flash_prog, .erase = stm32_flash_erase,                    \
      .sector_size = STM32_PAGE, .sector_count = (pages),                      \
      .prog_size = STM32_WORD, .erased = 0xFF }

static volatile int stm32_flash_torn;

/* To be called by the NMI's handler; true if the NMI was this. */
static inline int stm32_flash_nmi(void)
{
    if (!(FLASH->ECCR & FLASH_ECCR_ECCD))
        return 0;
    FLASH->ECCR = FLASH->ECCR | FLASH_ECCR_ECCD;    // written 1 to clear
    stm32_flash_torn = 1;
    return 1;
}

/* Fails if a word in it is torn; the library then reads the others alone. */
static inline int stm32_flash_read(void *ctx, uint32_t at, void *dst,
                                   uint32_t len)
{
    const stm32_flash *f = (const stm32_flash *)ctx;

    stm32_flash_torn = 0;
    memcpy(dst, (const void *)(uintptr_t)(f->base + at), len);
    __DSB();
    return stm32_flash_torn;
}

static inline HAL_StatusTypeDef stm32_flash_word(uint32_t address,
                                                 const uint8_t *src)
{
    uint64_t words[STM32_WORD / 8];     // aligned, which src need not be

    memcpy(words, src, sizeof words);
#ifdef STM32_QUADWORD
    return HAL_FLASH_Program(FLASH_TYPEPROGRAM_QUADWORD, address,
                             (uint32_t)(uintptr_t)words);
#else
    return HAL_FLASH_Program(FLASH_TYPEPROGRAM_DOUBLEWORD, address, words[0]);
#endif
}

static inline int stm32_flash_prog(void *ctx, uint32_t at, const void *src,
                                   uint32_t len)
{
    const stm32_flash *f = (const stm32_flash *)ctx;
    HAL_StatusTypeDef status = HAL_OK;
    uint32_t i;

    HAL_FLASH_Unlock();
    for (i = 0; i < len && status == HAL_OK; i += STM32_WORD)
        status = stm32_flash_word(f->base + at + i, (const uint8_t *)src + i);
    HAL_FLASH_Lock();
    return status != HAL_OK;
}

static inline int stm32_flash_erase(void *ctx, uint32_t sector)
{
    const stm32_flash *f = (const stm32_flash *)ctx;
    FLASH_EraseInitTypeDef erase = { .TypeErase = FLASH_TYPEERASE_PAGES,
                                     .Banks = f->bank,
                                     .Page = f->page + sector, .NbPages = 1 };
    uint32_t failed;
    HAL_StatusTypeDef status;

    HAL_FLASH_Unlock();
    status = HAL_FLASHEx_Erase(&erase, &failed);
    HAL_FLASH_Lock();
    return status != HAL_OK;
}

#endif /* STM32_FLASH_H */
