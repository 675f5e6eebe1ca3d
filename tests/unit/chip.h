/* SPDX-License-Identifier: 0BSD */
/*
 * Tests for each port of examples/port/ on a model of its chip: the storage
 * emulator behind the vendor's functions, with the chip's peculiarities.  A
 * port_*.c has the model, `make` (a blank, intact chip), `chip_storage` (the
 * port's storage on it), and sets chip_power if something
 * happens when power comes.
 */
#ifndef CHIP_H
#define CHIP_H

#include "unit.h"

#include "model/flash.h"
#include "examples/port/check.h"

enum { CHIP_KEYS = 6, CHIP_COMMANDS = 40, CHIP_MEMORY = 4096 };

static flash medium;                // its contents
static const idem_storage *chip_storage;
static int chip_protected;          // programs and erases do nothing
static void make(void);
static void (*chip_power)(void);

static idem_table chip_table;
static uint32_t chip_memory[CHIP_MEMORY / 4];
static idem_config chip_config;

static void chip_powered(void)
{
    if (chip_power)
        chip_power();
}

/* Makes a blank chip; its memory is given back with the program's. */
static void chip_make(int kind, uint32_t sector_size, uint32_t sectors,
                      uint32_t granule)
{
    static void *memory;

    free(memory);
    memset(&medium, 0, sizeof medium);
    medium.kind = kind;
    medium.erased = 0xFF;
    medium.sector_size = sector_size;
    medium.sector_count = sectors;
    medium.prog_size = granule;
    memory = calloc(1, FLASH_MEMORY(sector_size, sectors));
    assert_non_null(memory);
    is(flash_init(&medium, memory), 0);
    chip_protected = 0;
    chip_powered();
}

static int chip_open(void)
{
    memset(&chip_config, 0, sizeof chip_config);
    chip_config.capacity = CHIP_KEYS;
    chip_config.key_max = 8;
    chip_config.response_max = 8;
    chip_config.secret[0] = chip_config.secret[8] = 1;
    chip_config.retention_ms = 1000;
    chip_config.full = IDEM_EVICT_OLDEST;
    chip_config.storage = chip_storage;
    return idem_open(&chip_table, &chip_config, chip_memory, CHIP_MEMORY, 0);
}

static int chip_begin(idem_claim *claim, idem_reply *reply, uint32_t key)
{
    idem_request request;

    memset(&request, 0, sizeof request);
    memset(reply, 0, sizeof *reply);
    request.key = &key;
    request.key_len = sizeof key;
    return idem_begin(&chip_table, claim, reply, &request, 0);
}

static int chip_complete(const idem_claim *claim, uint32_t key)
{
    idem_outcome outcome;

    memset(&outcome, 0, sizeof outcome);
    outcome.response = "12345678";
    outcome.response_len = 8;
    outcome.code = (uint16_t)(key + 1);
    return idem_complete(&chip_table, claim, &outcome, 0);
}

/* Commands until one fails; returns how many were acknowledged. */
static uint32_t chip_work(void)
{
    uint32_t key;
    idem_claim claim;
    idem_reply reply;

    for (key = 0; key < CHIP_COMMANDS; key++) {
        if (chip_begin(&claim, &reply, key) < 0 ||
            chip_complete(&claim, key) < 0)
            break;
        while (idem_maintain(&chip_table, 0) == IDEM_MORE)
            ;
    }
    return key;
}

/* After a restart the last command that was acknowledged is replayed, and the
   one after it is granted or replayed, and can be completed. */
static void chip_audit(uint32_t acknowledged)
{
    idem_claim claim;
    idem_reply reply;
    int result;

    is(chip_open(), IDEM_OK);
    is(idem_check(&chip_table), IDEM_OK);
    if (acknowledged) {
        is(chip_begin(&claim, &reply, acknowledged - 1), IDEM_REPLAY);
        is(reply.code, acknowledged);
    }
    result = chip_begin(&claim, &reply, acknowledged);
    if (result != IDEM_REPLAY) {
        assert_true(result == IDEM_EXECUTE || result == IDEM_RECOVER);
        is(chip_complete(&claim, acknowledged), IDEM_OK);
    }
}

/* Power goes at each operation, and leaves it torn in several ways. */
static void chip_cuts(void (*blank)(void))
{
    uint32_t n, variant, acknowledged, count = 1;

    for (n = 0; count; n++)
        for (variant = 0, count = 1; variant < count;
             variant += 1 + count / 5) {
            (blank)();
            is(chip_open(), IDEM_OK);
            flash_cut(&medium, n, variant);
            acknowledged = chip_work();
            count = medium.variants;      // 0: there are no n operations
            if (!count)
                is(acknowledged, CHIP_COMMANDS);
            flash_boot(&medium);
            chip_powered();
            chip_audit(acknowledged);
            is(medium.violations, 0);
        }
    assert_true(n > 2 * CHIP_COMMANDS);
}

static void chip_works(void)
{
    is(chip_open(), IDEM_OK);
    is(chip_work(), CHIP_COMMANDS);
}

/* Neither an opening nor a format touches the chip. */
static inline void chip_is_left_alone(void)
{
    is(chip_open(), IDEM_E_STORAGE);
    is(idem_format(&chip_table, &chip_config, chip_memory, CHIP_MEMORY, 0),
       IDEM_E_STORAGE);
    is(medium.ops, 0);
}

/* The cells do not take the end of a command, and the port reports it. */
static void chip_fails(int *how)
{
    idem_claim claim;
    idem_reply reply;

    make();
    chip_works();
    is(chip_begin(&claim, &reply, CHIP_COMMANDS), IDEM_EXECUTE);
    *how = 1;
    is(chip_complete(&claim, CHIP_COMMANDS), IDEM_E_STORAGE);
    *how = 0;
    is(chip_complete(&claim, CHIP_COMMANDS), IDEM_OK);
    chip_audit(CHIP_COMMANDS + 1);
}

/* The port check finds nothing. */
static void chip_is_accepted(void)
{
    uint32_t at = 0;
    const char *wrong = port_check(chip_storage, NULL, NULL, &at);

    if (wrong)
        printf("%s (at %u)\n", wrong, (unsigned)at);
    assert_null(wrong);
    is(medium.violations, 0);
}

TEST(the_port_check_accepts_it)
{
    make();
    chip_is_accepted();
}

TEST(power_goes_at_each_operation)
{
    chip_cuts(make);
}

TEST(a_write_that_did_nothing_is_a_failure)
{
    chip_fails(&chip_protected);
}

TEST(a_protected_chip_cannot_be_formatted)
{
    make();
    chip_works();
    chip_protected = 1;
    is(idem_format(&chip_table, &chip_config, chip_memory, CHIP_MEMORY, 0),
       IDEM_E_STORAGE);
    chip_protected = 0;
    chip_audit(CHIP_COMMANDS);
}

#endif /* CHIP_H */
