/* SPDX-License-Identifier: 0BSD
   As much of Nordic's driver as examples/port/nrf_nvmc.h names; the erase
   answers as that of nrfx 3, where success is not 0. */
#ifndef NRFX_NVMC_H__
#define NRFX_NVMC_H__

#include <stdbool.h>
#include <stdint.h>

typedef enum { NRFX_SUCCESS = 0x0BAD0000 } nrfx_err_t;

/* The registers that a debugger programs; NRFFW[0]: where a bootloader is */
typedef struct { volatile uint32_t NRFFW[15]; } NRF_UICR_Type;
#define NRF52_SERIES
#ifndef NRF_UICR
#define NRF_UICR ((NRF_UICR_Type *)0x10001014UL)
#endif

uint32_t nrfx_nvmc_flash_page_size_get(void);
bool nrfx_nvmc_fits_memory_check(uint32_t address, bool uicr_allowed,
                                 uint32_t len);
nrfx_err_t nrfx_nvmc_page_erase(uint32_t address);
void nrfx_nvmc_word_write(uint32_t address, uint32_t value);
bool nrfx_nvmc_write_done_check(void);

#endif
