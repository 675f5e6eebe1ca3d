/* SPDX-License-Identifier: 0BSD */
/*
 * examples/port/stm32_flash.h on a model of the internal flash: words with ECC.
 * A torn one raises an NMI when it is read, and a flag for the lower or the
 * upper half is set.  Error flags that another driver left fail the next
 * operation.  There is a program for each family: port_stm32_l4.c ...
 */
#ifndef STM32_H
#define STM32_H

#include "chip.h"

typedef struct { volatile uint32_t SR, ECCR, OPTR, ECC2R; } stm32_registers;
static stm32_registers registers;

// The first bank, or with no banks the pages before the journal, is the
// program's.
enum { SECTORS = 8, PAGE_FIRST = 3 };

#define FLASH           (&registers)
#define FLASH_BASE      ((uintptr_t)medium.bytes - PAGE_FIRST * STM32_FLASH_PAGE - BANK)
#define FLASH_BANK_SIZE ((uintptr_t)BANK)
#define FLASH_SIZE      ((uint32_t)(BANK ? 2 * BANK : 0x80000))
#define __DSB()         ((void)0)
#define __ISB()         ((void)0)

static void *stm32_copy(void *dst, const void *src, size_t len);
void NMI_Handler(void);

#include "stm32l4xx_hal.h"

#ifdef FLASH_BANK_2
enum { BANK = 0x80000 };
#else
enum { BANK = 0 };
#endif
#ifdef HAL_ICACHE_MODULE_ENABLED
enum { CACHES = 1 };
#else
enum { CACHES = 0 };
#endif
enum { OLD_ERROR = 0x80 };              // before a start, for instance

// Option bits of a part with two banks, as it leaves the factory.
#if defined FLASH_OPTR_DBANK
enum { OPTIONS = FLASH_OPTR_DBANK };
#elif defined FLASH_OPTR_DUAL_BANK
enum { OPTIONS = FLASH_OPTR_DUAL_BANK | FLASH_OPTR_nSWAP_BANK };
#elif defined FLASH_OPTR_DUALBANK
enum { OPTIONS = FLASH_OPTR_DUALBANK };
#else
enum { OPTIONS = 0 };
#endif

#define memcpy stm32_copy
#define STM32_FLASH_IMPLEMENTATION
#include "examples/port/stm32_flash.h"
#undef memcpy

// Two banks that are read as one have their pages in a row; an erase then takes
// no notice of the bank.
#ifdef FLASH_PAGE_SIZE_128_BITS
enum { ONE_BANK = STM32_FLASH_PAGE == FLASH_PAGE_SIZE_128_BITS };
#else
enum { ONE_BANK = 0 };
#endif
enum { BEFORE = PAGE_FIRST + ONE_BANK * BANK / STM32_FLASH_PAGE };

static stm32_flash where;
static const idem_storage storage = STM32_FLASH_STORAGE(&where, SECTORS);

static int locked, cached, nmis, hangs;
static int worn;                        // words take nothing, unreported

static void power(void)
{
    memset(&registers, 0, sizeof registers);
    registers.SR = OLD_ERROR;
    registers.OPTR = ONE_BANK ? 0 : OPTIONS;
    stm32_flash_state = STM32_FLASH_IDLE;
    locked = 1;
    cached = worn = 0;
}

/* The one that the vendor's tool makes, with the call in it. */
void NMI_Handler(void)
{
    if (stm32_flash_nmi())
        return;
    hangs++;
}

/* The flag of a word that is torn. */
static void raise_nmi(uint32_t at)
{
#if defined FLASH_ECCR_ECCD2
    registers.ECCR |= at / 8 % 2 ? FLASH_ECCR_ECCD2 : FLASH_ECCR_ECCD;
#elif defined FLASH_ECC2R_ECCD
    (void)at;
    registers.ECC2R |= FLASH_ECC2R_ECCD;
#else
    (void)at;
    registers.ECCR |= FLASH_ECCR_ECCD;
#endif
    nmis++;
    NMI_Handler();
    // The flags are cleared by writing 1: what is left here was written.
    registers.ECCR = registers.ECC2R = 0;
}

/* A load from the flash, or from anywhere else. */
static void *stm32_copy(void *dst, const void *src, size_t len)
{
    uintptr_t at = (uintptr_t)src - (uintptr_t)medium.bytes;

    if (at >= medium.size)
        return memcpy(dst, src, len);
    is(cached, 0);
    if (flash_read(&medium, (uint32_t)at, dst, (uint32_t)len) == FLASH_OK)
        return dst;
    for (size_t i = 0; i < len; i++)
        if (flash_read(&medium, (uint32_t)(at + i), (uint8_t *)dst + i, 1) ==
            FLASH_E_ECC)
            raise_nmi((uint32_t)(at + i));
    return dst;
}

HAL_StatusTypeDef HAL_FLASH_Unlock(void)
{
    locked = 0;
    return HAL_OK;
}

HAL_StatusTypeDef HAL_FLASH_Lock(void)
{
    locked = 1;
    return HAL_OK;
}

/* An error's flag that is still there fails the operation and is cleared.  The
   port clears flags by writing 1: then the register is not what it was. */
static HAL_StatusTypeDef begins(void)
{
    int refused = registers.SR == OLD_ERROR || locked || chip_protected;

    registers.SR = 0;
    return refused ? HAL_ERROR : HAL_OK;
}

static HAL_StatusTypeDef program(uint32_t address, const void *data)
{
    uint32_t at = address - (uint32_t)(uintptr_t)medium.bytes;

    if (begins() != HAL_OK)
        return HAL_ERROR;
    cached = CACHES;
    if (worn)
        return HAL_OK;
    return flash_prog(&medium, at, data, STM32_FLASH_WORD) ? HAL_ERROR : HAL_OK;
}

HAL_StatusTypeDef HAL_FLASHEx_Erase(FLASH_EraseInitTypeDef *erase,
                                    uint32_t *failed)
{
    is(erase->TypeErase, FLASH_TYPEERASE_PAGES);
    is(erase->NbPages, 1);
#ifdef FLASH_BANK_2
    is(erase->Banks, ONE_BANK ? FLASH_BANK_1 : FLASH_BANK_2);
#endif
    *failed = UINT32_MAX;
    if (begins() != HAL_OK)
        return HAL_ERROR;
    cached = CACHES;
    return flash_erase(&medium, erase->Page - BEFORE) ? HAL_ERROR : HAL_OK;
}

#ifdef STAND_IN_U5
HAL_StatusTypeDef HAL_ICACHE_Invalidate(void)
{
    cached = 0;
    return HAL_OK;
}

/* The data's address has 32 bits; on this machine it is near this one's. */
HAL_StatusTypeDef HAL_FLASH_Program(uint32_t type, uint32_t address,
                                    uint32_t data)
{
    uintptr_t here = (uintptr_t)&type;
    uintptr_t from = here + (uintptr_t)(int32_t)(data - (uint32_t)here);

    is(type, FLASH_TYPEPROGRAM_QUADWORD);
    is(data % 4, 0);
    return program(address, (const void *)from);
}
#else
HAL_StatusTypeDef HAL_FLASH_Program(uint32_t type, uint32_t address,
                                    uint64_t data)
{
    is(type, FLASH_TYPEPROGRAM_DOUBLEWORD);
    return program(address, &data);
}
#endif

static void make(void)
{
#ifdef FLASH_BANK_2
    where.bank = ONE_BANK ? FLASH_BANK_1 : FLASH_BANK_2;
#endif
    where.page = BEFORE;
    chip_storage = &storage;
    chip_power = power;
    chip_make(FLASH_ECC, STM32_FLASH_PAGE, SECTORS, STM32_FLASH_WORD);
}

/* Some of the cuts of the test before left words that raise the NMI; none hung
   the device. */
TEST(torn_words_raise_the_nmi)
{
    assert_true(nmis > 0);
    is(hangs, 0);
}

/* In the program's code, for instance: the handler stops there. */
TEST(a_torn_word_that_is_not_of_the_journal_is_not_swallowed)
{
    make();
    hangs = 0;
    raise_nmi(0);
    is(hangs, 1);
}

/* The chip reports that a word was not erased, or is protected, but not that
   its cells did not take it. */
TEST(a_worn_word_is_a_failure)
{
    chip_fails(&worn);
}

/* From a debugger, or another part of the program. */
TEST(an_old_error_does_not_fail_the_next_operation)
{
    make();
    is(chip_open(), IDEM_OK);
    registers.SR = OLD_ERROR;
    is(chip_work(), CHIP_COMMANDS);
}

/* The chip takes the number of a page beyond the bank's end for another's. */
TEST(a_journal_ends_in_its_bank)
{
    uint32_t size = ONE_BANK || !BANK ? FLASH_SIZE : (uint32_t)FLASH_BANK_SIZE;
    uint32_t pages = size / STM32_FLASH_PAGE;

    make();
    where.page = pages - 1;
    assert_true(storage.erase(&where, 1) != 0);
    is(medium.ops, 0);
    where.page = pages;
    chip_is_left_alone();
    where.page = UINT32_MAX;
    chip_is_left_alone();
}

#ifdef FLASH_BANK_2
TEST(a_bank_that_is_none_is_not_touched)
{
    make();
    where.bank = 0;
    chip_is_left_alone();
    where.bank = FLASH_BANK_1 | FLASH_BANK_2;
    chip_is_left_alone();
}

/* An erase would be one of the first bank, that of the program. */
TEST(swapped_banks_are_not_touched)
{
    make();
    registers.OPTR ^= UINT32_C(1) << 20;
    if (!ONE_BANK)
        chip_is_left_alone();
}
#endif

#if defined FLASH_OPTR_DUALBANK || defined FLASH_OPTR_DUAL_BANK
/* Nor is there one where all pages are of the first: an erase takes no notice
   of the bank, and so one of the program's. */
TEST(a_second_bank_that_is_not_there_is_not_touched)
{
    make();
    registers.OPTR ^= UINT32_C(1) << 21;
    chip_is_left_alone();
}
#endif

#ifdef STAND_IN_G4
TEST(pages_of_another_size_are_not_touched)
{
    make();
    registers.OPTR ^= FLASH_OPTR_DBANK;
    chip_is_left_alone();
}

/* Where there is one, an erase takes the page of the whole flash for it. */
TEST(a_bank_that_is_not_there_is_not_touched)
{
    make();
    where.bank = FLASH_BANK_2;
    where.page = PAGE_FIRST;
    if (ONE_BANK)
        chip_is_left_alone();
    else
        is(chip_open(), IDEM_OK);
}
#endif

#endif /* STM32_H */
