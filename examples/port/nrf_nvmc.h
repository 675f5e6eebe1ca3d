/* SPDX-License-Identifier: 0BSD
   Internal flash of nRF52 as a storage of idem.h, over Nordic's nrfx_nvmc.

       #include "nrf_nvmc.h"

       static const idem_storage storage = NRF_NVMC_STORAGE(0x76000, SECTORS);

   A word may be programmed twice between erases, and on an nRF52832 a block of
   512 bytes 181 times.  With a granule of one word each word is programmed
   once, a block 128 times.  The CPU stands still for 41 us a word and for 85 ms
   an erase.

   The driver reports no failure: so verify is set, and each erased page is read
   back.

   The first address is above the program: take the pages out of FLASH in the
   linker's script, so that a program that has grown into them does not link.
   The end is below a bootloader and its settings: on an nRF52 all calls that
   reach into one fail.  While a SoftDevice runs the flash belongs to it: then
   write with sd_flash_write and sd_flash_page_erase instead. */
#ifndef IDEM_NRF_NVMC_H
#define IDEM_NRF_NVMC_H

#include "idem.h"

#include <nrfx_nvmc.h>
#include <string.h>

enum { NRF_NVMC_WORD = 4 };
#ifndef NRF_NVMC_PAGE                   /* nRF51: 1024, nRF5340 network: 2048 */
#define NRF_NVMC_PAGE 4096
#endif

/* `first` is the address of the first page, a constant; so is SECTORS.  A first
   address inside a page does not compile, nor 0 sectors, which is what
   IDEM_SECTORS answers if there is no solution. */
#define NRF_NVMC_STORAGE(first, sectors)                                       \
    { .ctx = (void *)(uintptr_t)(first), .read = nrf_nvmc_read,                \
      .prog = nrf_nvmc_prog, .erase = nrf_nvmc_erase,                          \
      .sector_size = sizeof(char[(first) % NRF_NVMC_PAGE == 0 ? 1 : -1]) *     \
                     NRF_NVMC_PAGE,                                            \
      .sector_count = sizeof(char[(sectors) > 0 ? 1 : -1]) * (sectors),        \
      .prog_size = NRF_NVMC_WORD, .erased = 0xFF, .verify = 1 }

/* True if the flash has these bytes, and pages of that size, and no bootloader
   there: Nordic's has where it begins in the first word for its firmware. */
static inline int nrf_nvmc_fits(const void *ctx, uint32_t at, uint32_t len)
{
    uint32_t from = (uint32_t)((uintptr_t)ctx + at);

#ifdef NRF52_SERIES
    if (from + len > NRF_UICR->NRFFW[0])
        return 0;
#endif
    return nrfx_nvmc_flash_page_size_get() == NRF_NVMC_PAGE &&
           nrfx_nvmc_fits_memory_check(from, 0, len);
}

static inline int nrf_nvmc_read(void *ctx, uint32_t at, void *dst, uint32_t len)
{
    if (!nrf_nvmc_fits(ctx, at, len))
        return -1;
    memcpy(dst, (const uint8_t *)ctx + at, len);
    return 0;
}

static inline int nrf_nvmc_prog(void *ctx, uint32_t at, const void *src,
                                uint32_t len)
{
    uintptr_t to = (uintptr_t)ctx + at;
    uint32_t word, i;

    if (!nrf_nvmc_fits(ctx, at, len))
        return -1;
    for (i = 0; i < len; i += NRF_NVMC_WORD) {
        memcpy(&word, (const uint8_t *)src + i, sizeof word);
        nrfx_nvmc_word_write((uint32_t)(to + i), word);
    }
    while (!nrfx_nvmc_write_done_check())
        ;
    return 0;
}

/* What nrfx_nvmc_page_erase returns for success depends on its version. */
static inline int nrf_nvmc_erase(void *ctx, uint32_t sector)
{
    const uint8_t *page = (const uint8_t *)ctx + sector * NRF_NVMC_PAGE;
    uint32_t word, i;

    if (!nrf_nvmc_fits(ctx, sector * NRF_NVMC_PAGE, NRF_NVMC_PAGE))
        return -1;
    (void)nrfx_nvmc_page_erase((uint32_t)(uintptr_t)page);
    for (i = 0; i < NRF_NVMC_PAGE; i += sizeof word) {
        memcpy(&word, page + i, sizeof word);
        if (word != UINT32_C(0xFFFFFFFF))
            return -1;
    }
    return 0;
}

#endif /* IDEM_NRF_NVMC_H */
