/* SPDX-License-Identifier: 0BSD
   As much of ST's HAL as examples/port/stm32_flash.h names, in the form that it
   has for a family: an L476; or STAND_IN_G4 (two banks that may be read as one),
   _G0 (the second bank's ECC flags in a register of its own), _WB (no banks), _U5
   (words of 16 bytes, a cache). */
#ifndef STM32L4XX_HAL_H
#define STM32L4XX_HAL_H

#include <stdint.h>

typedef enum { HAL_OK, HAL_ERROR, HAL_BUSY, HAL_TIMEOUT } HAL_StatusTypeDef;

typedef struct {
    volatile uint32_t SR, ECCR, OPTR;
#ifdef STAND_IN_G0
    volatile uint32_t ECC2R;
#endif
} FLASH_TypeDef;

typedef struct {
    uint32_t TypeErase;
#ifndef STAND_IN_WB
    uint32_t Banks;
#endif
    uint32_t Page;
    uint32_t NbPages;
} FLASH_EraseInitTypeDef;

#define FLASH_TYPEERASE_PAGES    ((uint32_t)0x00)
#ifndef STAND_IN_WB
#define FLASH_BANK_1             ((uint32_t)0x01)
#define FLASH_BANK_2             ((uint32_t)0x02)
#endif

#if defined STAND_IN_WB
#define FLASH_PAGE_SIZE          0x00001000U
#elif defined STAND_IN_U5
#define FLASH_PAGE_SIZE          0x2000U
#else
#define FLASH_PAGE_SIZE          ((uint32_t)0x800)
#endif
#if defined STAND_IN_G4
#define FLASH_PAGE_SIZE_128_BITS 0x1000U
#define FLASH_OPTR_BFB2          (0x1UL << 20U)
#define FLASH_OPTR_DBANK         (0x1UL << 22U)
#define FLASH_ECCR_ECCD2         (0x1UL << 29U)
#elif defined STAND_IN_G0
#define FLASH_OPTR_nSWAP_BANK    (0x1UL << 20U)
#define FLASH_OPTR_DUAL_BANK     (0x1UL << 21U)
#elif defined STAND_IN_U5
#define FLASH_OPTR_SWAP_BANK     (0x1UL << 20U)
#define FLASH_OPTR_DUALBANK      (0x1UL << 21U)
#elif !defined STAND_IN_WB
#define FLASH_OPTR_BFB2          (0x1UL << 20U)
#define FLASH_OPTR_DUALBANK      (0x1UL << 21U)
#endif
#define FLASH_ECCR_ECCD          (0x1UL << 31U)
#ifdef STAND_IN_G0
#define FLASH_ECC2R_ECCD         (0x1UL << 31U)
#define FLASH_SR_CLEAR           0xC3FBU
#else
#define FLASH_FLAG_SR_ERRORS     0xC3FAU
#endif
#define __HAL_FLASH_CLEAR_FLAG(flag) (FLASH->SR = (flag))

#ifdef STAND_IN_U5
#define FLASH_TYPEPROGRAM_QUADWORD   1U
#define HAL_ICACHE_MODULE_ENABLED
HAL_StatusTypeDef HAL_ICACHE_Invalidate(void);
HAL_StatusTypeDef HAL_FLASH_Program(uint32_t TypeProgram, uint32_t Address,
                                    uint32_t DataAddress);
#else
#define FLASH_TYPEPROGRAM_DOUBLEWORD ((uint32_t)0x00)
HAL_StatusTypeDef HAL_FLASH_Program(uint32_t TypeProgram, uint32_t Address,
                                    uint64_t Data);
#endif

/* A test sets these: where the model's registers and memory are. */
#ifndef FLASH
#define FLASH_R_BASE    0x40022000UL
#define FLASH           ((FLASH_TypeDef *)FLASH_R_BASE)
#define FLASH_BASE      0x08000000UL
#define FLASH_SIZE      0x00100000UL
#define FLASH_BANK_SIZE 0x00080000UL
#define __DSB()         __asm__ volatile("" : : : "memory")
#define __ISB()         __asm__ volatile("" : : : "memory")
#endif

HAL_StatusTypeDef HAL_FLASH_Unlock(void);
HAL_StatusTypeDef HAL_FLASH_Lock(void);
HAL_StatusTypeDef HAL_FLASHEx_Erase(FLASH_EraseInitTypeDef *pEraseInit,
                                    uint32_t *PageError);

#endif
