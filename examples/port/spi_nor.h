/* SPDX-License-Identifier: 0BSD
   SPI NOR flash as a storage of idem.h: W25Q, MX25, GD25, AT25SF and every
   other chip with the commands below.

       static spi_nor chip = { .transfer = board_transfer, .bus = &SPI1,
                               .base = 0x100000, .patience = 4000000 };
       static const idem_storage storage = SPI_NOR_STORAGE(&chip, SECTORS);

       const char *wrong = spi_nor_start(&storage);    // before idem_open
       if (wrong)
           puts(wrong);

   Until it has found that the journal can be there, all callbacks fail.

   An erase (50 to 400 ms) is only started; idem_maintain asks from then on
   whether it has finished, and read and prog wait for it.  A chip that is
   protected ignores an erase and reports nothing: so each erased sector is read
   once, 4 KB.

   The read command (03) has a lower clock than the others, on many chips 33 to
   50 MHz: the bus must not be faster. */
#ifndef SPI_NOR_H
#define SPI_NOR_H

#include "idem.h"

enum { SPI_NOR_PAGE = 256 };            /* a program stays inside one */
enum { SPI_NOR_SECTOR = 4096 };

enum {
    SPI_NOR_STATUS = 0x05, SPI_NOR_ENABLE = 0x06, SPI_NOR_ID = 0x9F,
    SPI_NOR_WAKE = 0xAB, SPI_NOR_PARAMETERS = 0x5A,
    SPI_NOR_READ = 0x03, SPI_NOR_PROGRAM = 0x02, SPI_NOR_ERASE = 0x20,
    /* the same with 4 address bytes */
    SPI_NOR_READ_4 = 0x13, SPI_NOR_PROGRAM_4 = 0x12, SPI_NOR_ERASE_4 = 0x21
};

enum { SPI_NOR_BUSY = 0x01, SPI_NOR_PROTECTED = 0x1C };     /* status bits */

typedef struct spi_nor {
    /* Selects the chip, sends head, then sends len bytes of out or receives as
       many into in (the other is NULL), deselects.  Returns 0 on success. */
    int    (*transfer)(void *bus, const uint8_t *head, size_t head_len,
                       const uint8_t *out, uint8_t *in, size_t len);
    void    *bus;
    uint32_t base;              /* where the journal begins: a sector's start */
    uint32_t patience;          /* status reads until a busy chip is given up:
                                   shorter than a watchdog's time, or transfer
                                   feeds it; longer than an erase */
    uint8_t  address_bytes;     /* 4: commands with 4 address bytes, which chips
                                   of 32 MB and more have.  3: the journal
                                   ends at or below 16 MB, and nobody switches
                                   the chip to 4 (command B7): it stays so when
                                   the processor starts again, and takes the
                                   first byte of a program for its address */
    uint32_t asked;             /* status reads since it was idle */
    uint32_t erased;            /* 1 + sector whose erase is not checked yet */
    uint8_t  started;           /* 1: the journal can be there */
} spi_nor;

/* SECTORS is a constant; 0, for which IDEM_SECTORS finds no solution, does not
   compile.  Granules of one byte: such chips have no ECC, and any byte may be
   programmed by itself.  Chips with ECC need 8 or 16, as in their manuals. */
#define SPI_NOR_STORAGE(chip, sectors)                                         \
    { .ctx = (chip), .read = spi_nor_read, .prog = spi_nor_prog,               \
      .erase = spi_nor_erase, .erasing = spi_nor_erasing,                      \
      .sector_size = SPI_NOR_SECTOR,                                           \
      .sector_count = sizeof(char[(sectors) > 0 ? 1 : -1]) * (sectors),        \
      .prog_size = 1, .erased = 0xFF, .verify = 1 }

/* 0 if the chip is idle, 1 while it programs or erases, < 0 if the bus fails or
   the chip has been busy for `patience` status reads.  Then each call is one
   status read, until the chip is idle again. */
static inline int spi_nor_busy(spi_nor *chip)
{
    uint8_t head = SPI_NOR_STATUS, status = SPI_NOR_BUSY;

    if ((chip->transfer)(chip->bus, &head, 1, NULL, &status, 1))
        return -1;
    if (!(status & SPI_NOR_BUSY)) {
        chip->asked = 0;
        return 0;
    }
    if (chip->asked >= chip->patience)
        return -1;
    chip->asked++;
    return 1;
}

static inline int spi_nor_wait(spi_nor *chip)
{
    int busy = 1;

    while (busy == 1)
        busy = spi_nor_busy(chip);
    return busy;
}

/* True if the chip can be asked for these bytes: with 3 address bytes those
   above 16 MB are others, the program's perhaps. */
static inline int spi_nor_reaches(const spi_nor *chip, uint32_t at,
                                  uint32_t len)
{
    uint32_t last = chip->address_bytes == 4 ? UINT32_C(0xFFFFFFFF)
                                             : UINT32_C(0x00FFFFFF);

    return chip->base % SPI_NOR_SECTOR == 0 && chip->base <= last &&
           at <= last - chip->base && len - 1 <= last - chip->base - at;
}

/* One command with an address, once the chip is idle; `command_4` is the same
   one with 4 address bytes. */
static inline int spi_nor_command(spi_nor *chip, uint8_t command,
                                  uint8_t command_4, uint32_t at,
                                  const uint8_t *out, uint8_t *in, size_t len)
{
    uint32_t from = chip->base + at;
    uint8_t enable = SPI_NOR_ENABLE;
    uint8_t four[5] = { command_4, (uint8_t)(from >> 24),
                        (uint8_t)(from >> 16), (uint8_t)(from >> 8),
                        (uint8_t)from };
    uint8_t three[4] = { command, four[2], four[3], four[4] };

    if (spi_nor_wait(chip))
        return -1;
    if (command != SPI_NOR_READ &&
        (chip->transfer)(chip->bus, &enable, 1, NULL, NULL, 0))
        return -1;
    return chip->address_bytes == 4
               ? (chip->transfer)(chip->bus, four, sizeof four, out, in, len)
               : (chip->transfer)(chip->bus, three, sizeof three, out, in, len);
}

static inline int spi_nor_read(void *ctx, uint32_t at, void *dst, uint32_t len)
{
    spi_nor *chip = (spi_nor *)ctx;

    if (!chip->started || !spi_nor_reaches(chip, at, len))
        return -1;
    return spi_nor_command(chip, SPI_NOR_READ, SPI_NOR_READ_4, at, NULL,
                           (uint8_t *)dst, len);
}

/* Page by page: after a page's end the chip goes on at the page's start. */
static inline int spi_nor_prog(void *ctx, uint32_t at, const void *src,
                               uint32_t len)
{
    spi_nor *chip = (spi_nor *)ctx;
    const uint8_t *from = (const uint8_t *)src;

    if (!chip->started || !spi_nor_reaches(chip, at, len))
        return -1;
    while (len) {
        uint32_t part = SPI_NOR_PAGE - at % SPI_NOR_PAGE;
        if (part > len)
            part = len;
        if (spi_nor_command(chip, SPI_NOR_PROGRAM, SPI_NOR_PROGRAM_4, at, from,
                            NULL, part))
            return -1;
        at += part;
        from += part;
        len -= part;
    }
    return spi_nor_wait(chip);
}

static inline int spi_nor_erase(void *ctx, uint32_t sector)
{
    spi_nor *chip = (spi_nor *)ctx;
    uint32_t at = sector * SPI_NOR_SECTOR;

    if (!chip->started || !spi_nor_reaches(chip, at, SPI_NOR_SECTOR) ||
        spi_nor_command(chip, SPI_NOR_ERASE, SPI_NOR_ERASE_4, at, NULL, NULL,
                        0))
        return -1;
    chip->erased = sector + 1;
    return 0;
}

static inline int spi_nor_is_blank(spi_nor *chip, uint32_t sector)
{
    uint8_t bytes[64];
    uint32_t at = sector * SPI_NOR_SECTOR, end = at + SPI_NOR_SECTOR;

    for (; at < end; at += sizeof bytes) {
        if (spi_nor_read(chip, at, bytes, sizeof bytes))
            return 0;
        for (size_t i = 0; i < sizeof bytes; i++)
            if (bytes[i] != 0xFF)
                return 0;
    }
    return 1;
}

static inline int spi_nor_erasing(void *ctx)
{
    spi_nor *chip = (spi_nor *)ctx;
    int busy = spi_nor_busy(chip);
    uint32_t erased = chip->erased;

    if (busy == 1)
        return 1;
    chip->erased = 0;
    return busy || (erased && !spi_nor_is_blank(chip, erased - 1)) ? -1 : 0;
}

/* Reads two numbers of the chip's description (JESD216, "SFDP"), the lowest
   byte first. */
static inline int spi_nor_parameters(spi_nor *chip, uint32_t at,
                                     uint32_t numbers[2])
{
    uint8_t head[5] = { SPI_NOR_PARAMETERS, (uint8_t)(at >> 16),
                        (uint8_t)(at >> 8), (uint8_t)at, 0 };
    uint8_t in[8];

    if ((chip->transfer)(chip->bus, head, sizeof head, NULL, in, sizeof in))
        return -1;
    for (int i = 0; i < 2; i++)
        numbers[i] = in[4 * i] | (uint32_t)in[4 * i + 1] << 8 |
                     (uint32_t)in[4 * i + 2] << 16 |
                     (uint32_t)in[4 * i + 3] << 24;
    return 0;
}

/* The chip's last address; the highest there is if the chip has no SFDP, as
   some old ones: the last byte of an identity means a size for some makers
   only.  < 0 if the bus fails. */
static inline int spi_nor_last(spi_nor *chip, uint32_t *last)
{
    uint32_t numbers[2], size;

    *last = UINT32_C(0xFFFFFFFF);
    if (spi_nor_parameters(chip, 0, numbers))
        return -1;
    if (numbers[0] != UINT32_C(0x50444653))         // "SFDP"
        return 0;
    if (spi_nor_parameters(chip, 8, numbers) ||
        spi_nor_parameters(chip, numbers[1] & 0xFFFFFF, numbers))
        return -1;
    size = numbers[1] & UINT32_C(0x7FFFFFFF);
    if (!(numbers[1] >> 31))
        *last = size / 8;           // in bits, less 1
    else if (size - 3 < 32)
        *last = (UINT32_C(1) << (size - 3)) - 1;    // 2^size bits
    return 0;
}

/* Wakes the chip, and looks whether a journal can be there.  NULL: it can; else
   the reason why not.  (Blocks that are protected may be others: that is only
   reported.) */
static inline const char *spi_nor_start(const idem_storage *storage)
{
    spi_nor *chip = (spi_nor *)storage->ctx;
    uint8_t head[4] = { SPI_NOR_WAKE, 0, 0, 0 }, id[2] = { 0, 0 }, status = 0;
    uint32_t left = chip->patience, last;

    chip->started = 0;
    if (storage->sector_count > UINT32_C(0xFFFFFFFF) / SPI_NOR_SECTOR ||
        !spi_nor_reaches(chip, 0, storage->sector_count * SPI_NOR_SECTOR))
        return "base is not a sector's start, or the journal ends above 16 MB "
               "and address_bytes is not 4";
    if ((chip->transfer)(chip->bus, head, sizeof head, NULL, NULL, 0))
        return "the bus fails";
    // It takes up to 100 us to wake, and has no identity while it is busy.
    for (head[0] = SPI_NOR_ID; left && id[0] == id[1] &&
                               (id[0] == 0 || id[0] == 0xFF); left--)
        if ((chip->transfer)(chip->bus, head, 1, NULL, id, sizeof id))
            return "the bus fails";
    if (!left)
        return "no chip answers";
    head[0] = SPI_NOR_STATUS;
    if (spi_nor_wait(chip) ||
        (chip->transfer)(chip->bus, head, 1, NULL, &status, 1))
        return "the chip stays busy";
    if (spi_nor_last(chip, &last))
        return "the bus fails";
    if (chip->base > last ||
        storage->sector_count * SPI_NOR_SECTOR - 1 > last - chip->base)
        return "the chip is smaller than base and sectors need";
    chip->started = 1;
    if (status & SPI_NOR_PROTECTED)
        return "blocks of the chip are protected against writing";
    return NULL;
}

#endif /* SPI_NOR_H */
