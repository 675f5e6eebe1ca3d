/* SPDX-License-Identifier: 0BSD
   SPI NOR flash as a storage of idem.h: W25Q, MX25, GD25, AT25SF and whatever
   else understands the five commands below.

       static spi_nor chip = { .transfer = board_transfer, .bus = &SPI1,
                               .base = 0x100000, .patience = 4000000 };
       static const idem_storage storage = SPI_NOR_STORAGE(&chip, 8);

   An erase (50 to 400 ms) is only started; idem_maintain asks from then on
   whether it has finished, and read and prog wait for it. */
#ifndef SPI_NOR_H
#define SPI_NOR_H

#include "idem.h"

#define SPI_NOR_PAGE   256u             /* a program stays inside one */
#define SPI_NOR_SECTOR 4096u

enum {
    SPI_NOR_PROGRAM = 0x02, SPI_NOR_READ = 0x03, SPI_NOR_STATUS = 0x05,
    SPI_NOR_ENABLE = 0x06, SPI_NOR_ERASE = 0x20
};

typedef struct spi_nor {
    /* Selects the chip, sends head, then sends len bytes of out or receives as
       many into in (the other is NULL), deselects.  Returns 0 if all went. */
    int    (*transfer)(void *bus, const uint8_t *head, size_t head_len,
                       const uint8_t *out, uint8_t *in, size_t len);
    void    *bus;
    uint32_t base;              /* where the journal begins, a whole sector */
    uint32_t patience;          /* how often the status is asked for, before
                                   the chip is given up */
} spi_nor;

/* Granules of one byte: such chips have no ECC, and any byte may be programmed
   by itself.  Chips with ECC want 8 or 16; their manuals say so. */
#define SPI_NOR_STORAGE(chip, sectors)                                         \
    { .ctx = (chip), .read = spi_nor_read, .prog = spi_nor_prog,               \
      .erase = spi_nor_erase, .erasing = spi_nor_erasing,                      \
      .sector_size = SPI_NOR_SECTOR, .sector_count = (sectors),                \
      .prog_size = 1, .erased = 0xFF, .verify = 1 }

/* 0 if the chip does nothing, 1 while it programs or erases, < 0 if the bus
   fails. */
static inline int spi_nor_erasing(void *ctx)
{
    spi_nor *chip = (spi_nor *)ctx;
    uint8_t head = SPI_NOR_STATUS, status = 0;

    if (chip->transfer(chip->bus, &head, 1, NULL, &status, 1))
        return -1;
    return status & 1;
}

static inline int spi_nor_wait(spi_nor *chip)
{
    int busy = 1;

    for (uint32_t i = 0; busy == 1 && i < chip->patience; i++)
        busy = spi_nor_erasing(chip);
    return busy;
}

/* One command with an address, once the chip is idle. */
static inline int spi_nor_command(spi_nor *chip, uint8_t command, uint32_t at,
                                  const uint8_t *out, uint8_t *in, size_t len)
{
    uint32_t from = chip->base + at;
    uint8_t enable = SPI_NOR_ENABLE;
    uint8_t head[4] = { command, (uint8_t)(from >> 16), (uint8_t)(from >> 8),
                        (uint8_t)from };

    if (spi_nor_wait(chip))
        return -1;
    if (command != SPI_NOR_READ &&
        chip->transfer(chip->bus, &enable, 1, NULL, NULL, 0))
        return -1;
    return chip->transfer(chip->bus, head, sizeof head, out, in, len);
}

static inline int spi_nor_read(void *ctx, uint32_t at, void *dst, uint32_t len)
{
    return spi_nor_command((spi_nor *)ctx, SPI_NOR_READ, at, NULL,
                           (uint8_t *)dst, len);
}

/* Page by page: behind a page's end the chip goes on at the page's start. */
static inline int spi_nor_prog(void *ctx, uint32_t at, const void *src,
                               uint32_t len)
{
    spi_nor *chip = (spi_nor *)ctx;
    const uint8_t *from = (const uint8_t *)src;

    while (len) {
        uint32_t part = SPI_NOR_PAGE - at % SPI_NOR_PAGE;
        if (part > len)
            part = len;
        if (spi_nor_command(chip, SPI_NOR_PROGRAM, at, from, NULL, part))
            return -1;
        at += part;
        from += part;
        len -= part;
    }
    return spi_nor_wait(chip);
}

static inline int spi_nor_erase(void *ctx, uint32_t sector)
{
    return spi_nor_command((spi_nor *)ctx, SPI_NOR_ERASE,
                           sector * SPI_NOR_SECTOR, NULL, NULL, 0);
}

#endif /* SPI_NOR_H */
