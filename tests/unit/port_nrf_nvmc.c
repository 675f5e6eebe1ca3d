/* SPDX-License-Identifier: 0BSD
   examples/port/nrf_nvmc.h on a model of an nRF52's flash: mapped into memory,
   programmed word by word, each of them once; and nothing is reported. */
#include "chip.h"

#define NRF_UICR (&registers)
#include <nrfx_nvmc.h>
static NRF_UICR_Type registers;
#include "examples/port/nrf_nvmc.h"

enum { SECTORS = 8 };

static idem_storage storage = NRF_NVMC_STORAGE(0, SECTORS);
static uint32_t page_size, flash_size;

/* Registers have 32 bits, this machine's addresses may have more. */
static uint32_t offset(uint32_t address)
{
    return address - (uint32_t)(uintptr_t)medium.bytes;
}

uint32_t nrfx_nvmc_flash_page_size_get(void)
{
    return page_size;
}

bool nrfx_nvmc_fits_memory_check(uint32_t address, bool uicr_allowed,
                                 uint32_t len)
{
    assert_false(uicr_allowed);
    return offset(address) <= flash_size && len <= flash_size - offset(address);
}

nrfx_err_t nrfx_nvmc_page_erase(uint32_t address)
{
    assert_true(offset(address) % NRF_NVMC_PAGE == 0);
    if (!chip_protected)
        flash_erase(&medium, offset(address) / NRF_NVMC_PAGE);
    return NRFX_SUCCESS;
}

void nrfx_nvmc_word_write(uint32_t address, uint32_t value)
{
    if (!chip_protected)
        flash_prog(&medium, offset(address), &value, sizeof value);
}

bool nrfx_nvmc_write_done_check(void)
{
    static int asked;

    return asked++ % 3 == 2;
}

static void make(void)
{
    page_size = NRF_NVMC_PAGE;
    flash_size = SECTORS * NRF_NVMC_PAGE;
    registers.NRFFW[0] = UINT32_MAX;
    chip_make(FLASH_NOR, NRF_NVMC_PAGE, SECTORS, NRF_NVMC_WORD);
    storage.ctx = medium.bytes;
    chip_storage = &storage;
}

TEST(pages_of_another_size_are_not_erased)
{
    make();
    page_size = 2048;
    is(nrf_nvmc_erase(medium.bytes, 0), -1);
    is(nrf_nvmc_prog(medium.bytes, 0, "word", 4), -1);
    is(medium.ops, 0);
}

/* A load from there would be a fault of the bus. */
TEST(a_journal_must_not_end_above_the_flash)
{
    make();
    flash_size -= NRF_NVMC_PAGE;
    is(chip_open(), IDEM_E_STORAGE);
    is(idem_format(&chip_table, &chip_config, chip_memory, CHIP_MEMORY, 0),
       IDEM_E_STORAGE);
    is(nrf_nvmc_read(medium.bytes, flash_size - 4, &page_size, 4), 0);
    is(nrf_nvmc_read(medium.bytes, flash_size - 4, &page_size, 8), -1);
    is(nrf_nvmc_prog(medium.bytes, flash_size, "word", 4), -1);
    is(nrf_nvmc_erase(medium.bytes, SECTORS - 1), -1);
}

TEST(a_journal_must_not_reach_into_a_bootloader)
{
    uint32_t word = 0;

    make();
    registers.NRFFW[0] = (uint32_t)(uintptr_t)medium.bytes + medium.size;
    is(chip_open(), IDEM_OK);
    registers.NRFFW[0] -= 4;
    is(chip_open(), IDEM_E_STORAGE);
    is(idem_format(&chip_table, &chip_config, chip_memory, CHIP_MEMORY, 0),
       IDEM_E_STORAGE);
    is(nrf_nvmc_prog(medium.bytes, medium.size - 8, &word, 4), 0);
    is(nrf_nvmc_prog(medium.bytes, medium.size - 4, &word, 4), -1);
    is(nrf_nvmc_erase(medium.bytes, SECTORS - 1), -1);
}
