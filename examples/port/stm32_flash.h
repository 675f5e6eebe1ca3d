/* SPDX-License-Identifier: 0BSD
   Internal flash of STM32 parts with ECC as a storage of idem.h, over ST's HAL:
   words of 8 bytes (L4, L5, G0, G4, WB, WL, U0) or of 16 (U5, WBA).  Not C0,
   WBA2 and H5.  All calls fail if the banks are swapped, or may be (option bit
   BFB2), or if there is one where two are meant.

   In every file that uses it:           in one of them:
       #include "stm32l4xx_hal.h"            #define STM32_FLASH_IMPLEMENTATION
       #include "stm32_flash.h"              #include "stm32_flash.h"

       static const stm32_flash last = { .bank = FLASH_BANK_2, .page = 248 };
       static const idem_storage storage = STM32_FLASH_STORAGE(&last, SECTORS);

   In the file that has NMI_Handler, stm32l4xx_it.c:

       void NMI_Handler(void)
       {
           if (stm32_flash_nmi())
               return;
           for (;;)
               ;
       }

   Take the journal's pages out of FLASH in the linker's script: a program that
   has grown into them must not link, for the journal would erase it.

   A word whose programming a power cut interrupted may have two wrong bits,
   which the ECC cannot correct: reading it raises an NMI.  Without that call
   the device hangs at every start after such a cut.  Two tables with journals
   in this flash need one lock: else the NMI of one may come while the other
   reads.

   The CPU waits while it fetches from a bank that is programmed or erased (22
   ms a page): if there are two banks, take pages of the other one.  A WB's
   radio core uses the same flash: while it runs take ST's semaphores around
   each prog and erase, as its example BLE_RfWithFlash does, or links break.

   A part that reads its two banks as one (option bit DBANK is 0: G4, L5, L4+)
   has larger pages, all of them of FLASH_BANK_1: before the header
       #define STM32_FLASH_PAGE FLASH_PAGE_SIZE_128_BITS */
#ifndef STM32_FLASH_H
#define STM32_FLASH_H

#include "idem.h"

#include <string.h>

#if !defined FLASH_ECCR_ECCD || defined FLASH_DOUBLEWORD_SUPPORT
#error "include the HAL before; a part without ECC, or one not supported"
#endif

#ifndef STM32_FLASH_PAGE
#define STM32_FLASH_PAGE FLASH_PAGE_SIZE
#endif
#ifdef FLASH_TYPEPROGRAM_QUADWORD
enum { STM32_FLASH_WORD = 16 };
#else
enum { STM32_FLASH_WORD = 8 };
#endif

// The flags of words that cannot be corrected: where 128 bits are read at once,
// the upper half has its own; so has the second bank of a G0.
#ifdef FLASH_ECCR_ECCD2
#define STM32_FLASH_ECCD (FLASH_ECCR_ECCD | FLASH_ECCR_ECCD2)
#else
#define STM32_FLASH_ECCD FLASH_ECCR_ECCD
#endif

// True if an erase names the bank.
#if defined FLASH_BANK_2 ||                                                    \
    (defined FLASH_BANK_1 && !defined STM32WBAxx_HAL_FLASH_H)
#define STM32_FLASH_BANKS
#endif

// Option bits of two banks: those that are 1 if there are two, and whether they
// are swapped.
#if defined FLASH_OPTR_DUALBANK         /* L4, U5 */
#define STM32_FLASH_TWO FLASH_OPTR_DUALBANK
#elif defined FLASH_OPTR_DUAL_BANK      /* G0, WBA */
#define STM32_FLASH_TWO FLASH_OPTR_DUAL_BANK
#elif defined FLASH_OPTR_DB1M           /* L4+ */
#define STM32_FLASH_TWO FLASH_OPTR_DB1M
#elif defined FLASH_OPTR_DB256K         /* L5 */
#define STM32_FLASH_TWO FLASH_OPTR_DB256K
#else                                   /* G4 */
#define STM32_FLASH_TWO 0u
#endif
#if defined FLASH_OPTR_SWAP_BANK        /* L5, U5, WBA */
#define STM32_FLASH_SWAPS(options) ((options) & FLASH_OPTR_SWAP_BANK)
#elif defined FLASH_OPTR_nSWAP_BANK     /* G0 */
#define STM32_FLASH_SWAPS(options) (~(options) & FLASH_OPTR_nSWAP_BANK)
#elif defined FLASH_OPTR_BFB2           /* L4, G4 */
#define STM32_FLASH_SWAPS(options) ((options) & FLASH_OPTR_BFB2)
#else
#define STM32_FLASH_SWAPS(options) 0u
#endif

typedef struct stm32_flash {
    uint32_t bank;              /* FLASH_BANK_1, FLASH_BANK_2; 0 if the part has
                                   no such names */
    uint32_t page;              /* first page, counted in the bank */
} stm32_flash;

/* SECTORS is a constant; 0, for which IDEM_SECTORS finds no solution, does not
   compile.  The chip does not report a word that its cells did not take, so
   verify is set. */
#define STM32_FLASH_STORAGE(where, sectors)                                    \
    { .ctx = (void *)(uintptr_t)(where), .read = stm32_flash_read,             \
      .prog = stm32_flash_prog, .erase = stm32_flash_erase,                    \
      .sector_size = STM32_FLASH_PAGE,                                         \
      .sector_count = sizeof(char[(sectors) > 0 ? 1 : -1]) * (sectors),        \
      .prog_size = STM32_FLASH_WORD, .erased = 0xFF, .verify = 1 }

/* To be called by the NMI's handler: 1 if the NMI was a torn word that was read
   here.  Such a word anywhere else, in code, remains the handler's. */
int stm32_flash_nmi(void);

enum { STM32_FLASH_IDLE, STM32_FLASH_READING, STM32_FLASH_TORN };
extern volatile uint8_t stm32_flash_state;

/* The bytes of the bank; 0 if bank or pages are not what they are taken for: an
   erase would be one of other pages, the program's perhaps. */
static inline uint32_t stm32_flash_size(const stm32_flash *f)
{
#ifdef FLASH_BANK_2
    uint32_t options = FLASH->OPTR;

#if defined FLASH_OPTR_DBANK && defined FLASH_PAGE_SIZE_128_BITS
    if (!(options & FLASH_OPTR_DBANK))
        return STM32_FLASH_PAGE == FLASH_PAGE_SIZE_128_BITS &&
               f->bank == FLASH_BANK_1 ? FLASH_SIZE : 0;
#endif
    if (STM32_FLASH_SWAPS(options) || STM32_FLASH_PAGE != FLASH_PAGE_SIZE)
        return 0;
    if (f->bank == FLASH_BANK_2)
        return (options & STM32_FLASH_TWO) == STM32_FLASH_TWO &&
               FLASH_BANK_SIZE < FLASH_SIZE ? FLASH_BANK_SIZE : 0;
    return f->bank == FLASH_BANK_1 ? FLASH_BANK_SIZE : 0;
#else
    (void)f;
    return FLASH_SIZE;
#endif
}

/* True if the bank has these bytes: an erase of a page beyond its end would be
   one of another page, the program's perhaps. */
static inline int stm32_flash_fits(const stm32_flash *f, uint32_t at,
                                   uint32_t len)
{
    uint32_t size = stm32_flash_size(f), first = f->page;

    if (first >= size / STM32_FLASH_PAGE)
        return 0;
    size -= first * STM32_FLASH_PAGE;
    return len <= size && at <= size - len;
}

static inline uintptr_t stm32_flash_address(const stm32_flash *f, uint32_t at)
{
    uintptr_t first = FLASH_BASE;

#ifdef FLASH_BANK_2
    if (f->bank == FLASH_BANK_2)
        first += FLASH_BANK_SIZE;
#endif
    return first + f->page * STM32_FLASH_PAGE + at;
}

/* Fails if a word in it is torn; the library then reads the others alone. */
static inline int stm32_flash_read(void *ctx, uint32_t at, void *dst,
                                   uint32_t len)
{
    const stm32_flash *f = (const stm32_flash *)ctx;
    int torn;

    if (!stm32_flash_fits(f, at, len))
        return -1;
#ifdef HAL_ICACHE_MODULE_ENABLED
    // It may have bytes from before a program or an erase.
    if (HAL_ICACHE_Invalidate() != HAL_OK)
        return -1;
#endif
    // The NMI is taken between the two stores, whatever compiler and core do.
    stm32_flash_state = STM32_FLASH_READING;
    __DSB();
    memcpy(dst, (const void *)stm32_flash_address(f, at), len);
    __DSB();
    __ISB();
    torn = stm32_flash_state == STM32_FLASH_TORN;
    stm32_flash_state = STM32_FLASH_IDLE;
    return torn;
}

/* Errors that an earlier operation left, another's or the loading of the option
   bytes at the reset, would fail the next one. */
static inline void stm32_flash_unlock(void)
{
    HAL_FLASH_Unlock();
#ifdef FLASH_FLAG_SR_ERRORS
    __HAL_FLASH_CLEAR_FLAG(FLASH_FLAG_SR_ERRORS);
#else                                   // G0, U0
    FLASH->SR = FLASH_SR_CLEAR;
#endif
}

static inline HAL_StatusTypeDef stm32_flash_word(uintptr_t address,
                                                 const uint8_t *src)
{
    uint64_t words[STM32_FLASH_WORD / 8];   // aligned, which src need not be

    memcpy(words, src, sizeof words);
#ifdef FLASH_TYPEPROGRAM_QUADWORD
    return HAL_FLASH_Program(FLASH_TYPEPROGRAM_QUADWORD, (uint32_t)address,
                             (uint32_t)(uintptr_t)words);
#else
    return HAL_FLASH_Program(FLASH_TYPEPROGRAM_DOUBLEWORD, (uint32_t)address,
                             words[0]);
#endif
}

static inline int stm32_flash_prog(void *ctx, uint32_t at, const void *src,
                                   uint32_t len)
{
    const stm32_flash *f = (const stm32_flash *)ctx;
    HAL_StatusTypeDef status = HAL_OK;
    uint32_t i;

    if (!stm32_flash_fits(f, at, len))
        return -1;
    stm32_flash_unlock();
    for (i = 0; i < len && status == HAL_OK; i += STM32_FLASH_WORD)
        status = stm32_flash_word(stm32_flash_address(f, at + i),
                                  (const uint8_t *)src + i);
    HAL_FLASH_Lock();
    return status != HAL_OK;
}

static inline int stm32_flash_erase(void *ctx, uint32_t sector)
{
    const stm32_flash *f = (const stm32_flash *)ctx;
    FLASH_EraseInitTypeDef erase;
    uint32_t failed;
    HAL_StatusTypeDef status;

    if (!stm32_flash_fits(f, sector * STM32_FLASH_PAGE, STM32_FLASH_PAGE))
        return -1;
    memset(&erase, 0, sizeof erase);
    erase.TypeErase = FLASH_TYPEERASE_PAGES;
#ifdef STM32_FLASH_BANKS
    erase.Banks = f->bank;
#endif
    erase.Page = f->page + sector;
    erase.NbPages = 1;
    stm32_flash_unlock();
    status = HAL_FLASHEx_Erase(&erase, &failed);
    HAL_FLASH_Lock();
    return status != HAL_OK;
}

#endif /* STM32_FLASH_H */

#if defined STM32_FLASH_IMPLEMENTATION && !defined STM32_FLASH_IMPLEMENTED
#define STM32_FLASH_IMPLEMENTED
volatile uint8_t stm32_flash_state;

int stm32_flash_nmi(void)
{
    uint32_t torn = FLASH->ECCR & STM32_FLASH_ECCD;
#ifdef FLASH_ECC2R_ECCD
    uint32_t torn2 = FLASH->ECC2R & FLASH_ECC2R_ECCD;
#else
    const uint32_t torn2 = 0;
#endif

    if (stm32_flash_state == STM32_FLASH_IDLE || !(torn || torn2))
        return 0;
    FLASH->ECCR = FLASH->ECCR | torn;       // written 1 to clear
#ifdef FLASH_ECC2R_ECCD
    FLASH->ECC2R = FLASH->ECC2R | torn2;
#endif
    stm32_flash_state = STM32_FLASH_TORN;
    return 1;
}
#endif
