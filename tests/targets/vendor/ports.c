/* SPDX-License-Identifier: 0BSD
   Every port is used once as its comment says, for a compiler. */
#include "idem.h"
#ifdef QUADWORD
#define STM32_QUADWORD
#endif
#include "stm32l4xx_hal.h"
#include "port/stm32_flash.h"
#include "port/freertos.h"
#include "port/zephyr.h"
#include "port/spi_nor.h"
#include "port/interrupts.h"
#include "port/check.h"

void NMI_Handler(void);
void use(void);

static const stm32_flash last = { .base = 0x080FC000, .bank = FLASH_BANK_2,
                                  .page = 248 };
static zephyr_flash zephyr = { .sector_size = 4096 };
static spi_nor chip = { .patience = 1000 };
static interrupts_state state;

static const idem_storage storages[] = {
    STM32_FLASH_STORAGE(&last, 8),
    ZEPHYR_STORAGE(&zephyr, 4096, 8, 8),
    SPI_NOR_STORAGE(&chip, 8),
};

static idem_config configs[] = {
    { .lock = freertos_lock, .unlock = freertos_unlock },
    { .lock = zephyr_lock, .unlock = zephyr_unlock },
    { .lock = interrupts_lock, .unlock = interrupts_unlock,
      .lock_ctx = &state },
};

void NMI_Handler(void)
{
    if (!stm32_flash_nmi())
        for (;;)
            ;
}

void use(void)
{
    static idem_table table;
    uint32_t at;

    configs[0].lock_ctx = xSemaphoreCreateMutex();
    flash_area_open(1, &zephyr.area);
    port_check(&storages[0], NULL, NULL, &at);
    idem_open(&table, &configs[0], NULL, 0, freertos_millis());
    idem_open(&table, &configs[1], NULL, 0, k_uptime_get_32());
}
