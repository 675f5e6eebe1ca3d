/* SPDX-License-Identifier: 0BSD
   examples/port/spi_nor.h on a model of a chip: it needs a write enable, wraps
   in its pages, folds addresses, is busy for a while, may be asleep, protected
   or gone, and reports nothing of all that. */
#include "chip.h"
#include "examples/port/spi_nor.h"

enum { SECTORS = 8, MB = 1 << 20 };

static struct model {
    uint32_t at;                    // where the emulated sectors are
    uint32_t size;                  // of the chip
    int four;                       // it takes 4 address bytes for any command
    int asleep, gone;
    int enabled;
    int busy;                       // status reads that an operation takes
    uint32_t density;               // its size, as reported; 0: it is silent
    uint8_t pulled;                 // what a line reads that nobody drives
    unsigned long polls;
    uint32_t elsewhere;             // programs and erases beside the journal
} model;

static spi_nor nor;
static const idem_storage storage = SPI_NOR_STORAGE(&nor, SECTORS);

static void power(void)
{
    model.enabled = model.busy = 0;
    nor.erased = 0;
}

/* The bytes that follow the head as the chip takes them: address, then data. */
static uint32_t address(const uint8_t *head, size_t bytes)
{
    uint32_t at = 0;

    for (size_t i = 1; i <= bytes; i++)
        at = at << 8 | head[i];
    return at % model.size;
}

static void program(uint32_t at, const uint8_t *out, size_t len)
{
    size_t room = SPI_NOR_PAGE - at % SPI_NOR_PAGE;

    if (at < model.at || at - model.at >= medium.size) {
        model.elsewhere++;
        return;
    }
    assert_true(len <= room);       // else it goes on at the page's start
    flash_prog(&medium, at - model.at, out, (uint32_t)len);
}

static void erase(uint32_t at)
{
    if (at < model.at || at - model.at >= medium.size)
        model.elsewhere++;
    else
        flash_erase(&medium, (at - model.at) / SPI_NOR_SECTOR);
}

static void answer(uint8_t *in, size_t len, const uint8_t *what)
{
    memset(in, model.pulled, len);
    if (what)
        memcpy(in, what, len < 2 ? len : 2);
}

/* A chip's description: the table that has its size is at 0x30. */
static void parameters(uint32_t at, uint8_t *in, size_t len)
{
    uint8_t all[0x40] = "SFDP\6\1\0\xFF" "\0\6\1\4\x30\0\0\xFF";

    for (int i = 0; i < 4; i++)
        all[0x34 + i] = (uint8_t)(model.density >> 8 * i);
    assert_true(at + len <= sizeof all);
    memset(in, model.pulled, len);
    if (model.density)
        memcpy(in, all + at, len);
}

static int transfer(void *bus, const uint8_t *head, size_t head_len,
                    const uint8_t *out, uint8_t *in, size_t len)
{
    static const uint8_t id[] = { 0xEF, 0x40 };
    uint8_t status[2] = { (uint8_t)((model.busy > 0) | chip_protected << 2), 0 };
    int wide = head[0] == SPI_NOR_READ_4 || head[0] == SPI_NOR_PROGRAM_4 ||
               head[0] == SPI_NOR_ERASE_4;
    uint32_t at = 0;

    is(bus, 0);
    model.polls += head[0] == SPI_NOR_STATUS;
    if (model.asleep && head[0] == SPI_NOR_WAKE)
        model.asleep--;
    if (model.gone || model.asleep) {
        if (in)
            answer(in, len, NULL);
        return 0;
    }
    if (head[0] == SPI_NOR_STATUS) {
        model.busy -= model.busy > 0;
        answer(in, len, status);
        return 0;
    }
    if (model.busy) {
        if (in)
            answer(in, len, NULL);
        return 0;
    }
    if (head[0] == SPI_NOR_PARAMETERS) {
        is(head_len, 5);            // 3 of an address, one for nothing
        parameters(address(head, 3), in, len);
        return 0;
    }
    if (head_len > 1 && head[0] != SPI_NOR_WAKE) {
        is(head_len, wide ? 5 : 4);
        at = address(head, head_len - 1);
    }
    switch (head[0]) {
    case SPI_NOR_ENABLE: model.enabled = 1; return 0;
    case SPI_NOR_ID: answer(in, len, id); return 0;
    case SPI_NOR_WAKE: return 0;
    case SPI_NOR_READ:
    case SPI_NOR_READ_4:
        memset(in, 0xA5, len);      // of the neighbours
        if (at >= model.at && at - model.at < medium.size)
            flash_read(&medium, at - model.at, in, (uint32_t)len);
        return 0;
    default: break;
    }
    if (model.enabled && !chip_protected) {
        if (head[0] == SPI_NOR_PROGRAM || head[0] == SPI_NOR_PROGRAM_4)
            program(at, out, len);
        else
            erase(at);
        model.busy = 3;
    }
    model.enabled = 0;
    return 0;
}

static void make(void)
{
    memset(&model, 0, sizeof model);
    memset(&nor, 0, sizeof nor);
    model.at = 1 * MB;
    model.size = 32 * MB;
    model.pulled = 0xFF;
    nor.transfer = transfer;
    nor.base = 1 * MB;
    nor.patience = 1000;
    chip_storage = &storage;
    chip_power = power;
    chip_make(FLASH_NOR, SPI_NOR_SECTOR, SECTORS, 1);
    assert_true(spi_nor_start(&storage) == NULL);
}

/* What spi_nor_start reports is this; NULL: nothing is wrong. */
static void starts(const char *words)
{
    const char *wrong = spi_nor_start(&storage);

    if (wrong && (!words || !strstr(wrong, words)))
        printf("reported: %s\n", wrong);
    assert_true(words ? wrong && strstr(wrong, words) : !wrong);
}

TEST(the_port_check_accepts_it_with_4_address_bytes)
{
    make();
    nor.address_bytes = 4;
    starts(NULL);
    chip_is_accepted();
}

TEST(above_16_mb_needs_4_address_bytes)
{
    make();
    nor.base = model.at = 17 * MB;
    starts("16 MB");
    chip_is_left_alone();
    is(model.elsewhere, 0);
    nor.address_bytes = 4;
    starts(NULL);
    chip_is_accepted();
    chip_works();
    is(model.elsewhere, 0);
}

TEST(a_journal_must_not_end_above_16_mb_nor_begin_inside_a_sector)
{
    make();
    nor.base = 16 * MB - (SECTORS - 1) * SPI_NOR_SECTOR;
    starts("16 MB");
    nor.base = 16 * MB - SECTORS * SPI_NOR_SECTOR;
    starts(NULL);
    nor.base = 1 * MB + 256;
    starts("not a sector's start");
    is(chip_open(), IDEM_E_STORAGE);
}

/* It folds addresses: the journal would be where something else is. */
TEST(a_journal_must_not_end_above_the_end_of_the_chip)
{
    make();
    model.density = 16 * MB - 1;                // bits, less 1
    nor.base = 2 * MB - SECTORS * SPI_NOR_SECTOR;
    starts(NULL);
    nor.base += SPI_NOR_SECTOR;
    starts("the chip is smaller");
    // Nor does a program that goes on all the same erase what is there.
    chip_is_left_alone();
    is(model.elsewhere, 0);
    nor.base = 8 * MB;
    starts("the chip is smaller");
    nor.address_bytes = 4;
    nor.base = UINT32_C(512) * MB - SECTORS * SPI_NOR_SECTOR;
    model.density = UINT32_C(1) << 31 | 32;     // 2 to that many
    starts(NULL);
    nor.base += SPI_NOR_SECTOR;
    starts("the chip is smaller");
    nor.base = UINT32_C(0xFFFF0000);
    for (uint32_t n = 3; n < 35; n++) {         // 2 to the 3: one byte
        model.density = UINT32_C(1) << 31 | n;
        starts("the chip is smaller");
    }
    model.density = UINT32_C(1) << 31 | 35;
    starts(NULL);
    model.density = 0;
    starts(NULL);
}

TEST(a_chip_that_was_not_started_is_not_used)
{
    make();
    nor.started = 0;
    model.polls = 0;
    is(chip_open(), IDEM_E_STORAGE);
    is(spi_nor_erase(&nor, 0), -1);
    is(medium.ops + model.elsewhere + model.polls, 0);
    starts(NULL);
    is(chip_open(), IDEM_OK);
}

TEST(a_chip_that_stays_busy_is_given_up)
{
    make();
    chip_works();
    model.busy = 1 << 30;
    model.polls = 0;
    is(chip_open(), IDEM_E_STORAGE);
    assert_true(model.polls < 20 * nor.patience);   // reads, not each of them
}

/* It falls off the bus while it erases. */
TEST(an_erase_that_never_ends_is_given_up)
{
    make();
    is(spi_nor_erase(&nor, 0), 0);
    model.gone = 1;
    model.polls = 0;
    while (spi_nor_erasing(&nor) == 1)
        ;
    is(spi_nor_erasing(&nor), -1);
    assert_true(model.polls <= nor.patience + 2);
    model.gone = model.busy = 0;
    is(spi_nor_erase(&nor, 0), 0);
    while (spi_nor_erasing(&nor) == 1)
        ;
    is(spi_nor_erasing(&nor), 0);
}

TEST(a_chip_that_is_protected_is_reported)
{
    make();
    starts(NULL);
    chip_protected = 1;
    starts("protected");
}

/* Its line reads as 0 or as 1 until it has woken up. */
TEST(a_chip_that_sleeps_is_woken)
{
    for (int pulled = 0; pulled < 2; pulled++) {
        make();
        model.pulled = pulled ? 0xFF : 0;
        model.asleep = 1;
        starts(NULL);
        is(chip_open(), IDEM_OK);
        model.gone = 1;
        starts("no chip answers");
        assert_true(chip_open() < 0);
        is(idem_format(&chip_table, &chip_config, chip_memory, CHIP_MEMORY, 0),
           IDEM_E_STORAGE);
    }
}
