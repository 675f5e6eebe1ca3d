/* SPDX-License-Identifier: 0BSD
   examples/port/rp2040_flash.h on a model of the flash that a program runs
   from: whole pages are programmed, in parts of them too; the other core must
   have been parked, and the program itself stays. */
#include <stdint.h>

static uintptr_t xip;               // where the flash is mapped
#define XIP_BASE              xip
#ifdef STAND_IN_RP2350
enum { PARTITION = 4096 };          // which the program runs from
#define XIP_NOCACHE_NOALLOC_NOTRANSLATE_BASE (xip - PARTITION)
#else
enum { PARTITION = 0 };
#endif
#define PICO_FLASH_SIZE_BYTES (15 * 4096)

#include "chip.h"

char *binary_end;                   // the linker's symbol
#define __flash_binary_end (*binary_end)
#include "examples/port/rp2040_flash.h"

enum { SECTORS = 8, PROGRAM = 4 * 4096 };

static const idem_storage storage = RP2040_FLASH_STORAGE(PROGRAM, SECTORS);
static int parked, other_answers;
#ifdef STAND_IN_RP2350
static qmi_hw_t registers = { { PARTITION / 4096 } };
qmi_hw_t *const qmi_hw = &registers;
#endif

bool flash_safe_execute_core_init(void)
{
    return true;
}

int flash_safe_execute(void (*func)(void *), void *param, uint32_t timeout_ms)
{
    assert_true(timeout_ms > 0);
    if (!other_answers)
        return PICO_ERROR_TIMEOUT;
    parked = 1;
    (func)(param);
    parked = 0;
    return PICO_OK;
}

bool mutex_enter_timeout_ms(mutex_t *mtx, uint32_t timeout_ms)
{
    return mtx->owner++ == 0 && timeout_ms > 0;
}

void mutex_exit(mutex_t *mtx)
{
    mtx->owner--;
}

void flash_range_erase(uint32_t at, size_t count)
{
    assert_true(parked && at >= PROGRAM && at % 4096 == 0 && count == 4096);
    if (!chip_protected)
        flash_erase(&medium, (at - PROGRAM) / 4096);
}

/* Bytes of 0xFF program nothing. */
void flash_range_program(uint32_t at, const uint8_t *data, size_t count)
{
    size_t i, from;

    assert_true(parked && at >= PROGRAM && at % 256 == 0 && count == 256);
    for (i = 0; i < count && !chip_protected; i++) {
        for (from = i; i < count && data[i] != 0xFF; i++)
            ;
        if (i > from)
            flash_prog(&medium, at - PROGRAM + (uint32_t)from, data + from,
                       (uint32_t)(i - from));
    }
}

static void make(void)
{
    other_answers = 1;
    chip_make(FLASH_NOR, 4096, SECTORS, 1);
    xip = (uintptr_t)medium.bytes - PROGRAM + PARTITION;
    binary_end = (char *)medium.bytes;
    chip_storage = &storage;
}

/* Nothing is written while the other core runs. */
TEST(another_core_that_is_not_parked_is_a_failure)
{
    make();
    is(chip_open(), IDEM_OK);
    other_answers = 0;
    is(chip_work(), 0);
    is(medium.ops, 0);
    other_answers = 1;
    chip_works();
}

TEST(the_program_is_not_overwritten)
{
    make();
    binary_end = (char *)medium.bytes + 1;
    chip_is_left_alone();
}

/* An update that has fewer keys: what was executed is not new. */
TEST(fewer_sectors_at_the_same_address_are_refused)
{
    static const idem_storage fewer = RP2040_FLASH_STORAGE(PROGRAM, 6);
    idem_claim claim;
    idem_reply reply;

    make();
    is(chip_open(), IDEM_OK);
    is(chip_begin(&claim, &reply, 1), IDEM_EXECUTE);
    chip_storage = &fewer;
    is(chip_open(), IDEM_E_FORMAT);
}

TEST(the_lock_is_refused_to_who_holds_it)
{
    mutex_t mutex = { 0 };

    is(rp2040_lock(&mutex), 0);
    assert_true(rp2040_lock(&mutex) != 0);
    rp2040_unlock(&mutex);
}
