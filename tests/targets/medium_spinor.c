/* SPDX-License-Identifier: 0BSD
   SPI NOR flash behind the controller of an AST1030, by the port that is in
   examples/port/. */
#include "medium.h"
#include "port/spi_nor.h"

#define CONTROLLER 0x7E620000u
#define CONFIGURE  (*(volatile uint32_t *)CONTROLLER)
#define SELECT     (*(volatile uint32_t *)(CONTROLLER + 0x10))
#define WIRE       (*(volatile uint8_t *)0x80000000u)

enum { WRITABLE = 1 << 16 };
enum { BY_HAND = 3, DESELECTED = 4 };   // of SELECT

static int transfer(void *bus, const uint8_t *head, size_t head_len,
                    const uint8_t *out, uint8_t *in, size_t len)
{
    (void)bus;
    SELECT = BY_HAND;
    while (head_len--)
        WIRE = *head++;
    for (; out && len; len--)
        WIRE = *out++;
    for (; in && len; len--)
        *in++ = WIRE;
    SELECT = BY_HAND | DESELECTED;
    return 0;
}

static spi_nor chip = { .transfer = transfer, .patience = 1000000 };

const idem_storage medium = SPI_NOR_STORAGE(&chip, 8);

void medium_start(void)
{
    CONFIGURE |= WRITABLE;
    (void)spi_nor_start(&medium);       // if it fails, so does all else
}
