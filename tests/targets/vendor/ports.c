/* SPDX-License-Identifier: 0BSD
   Every port is used once as its comment says, for a compiler; stm32.c has that
   of the STM32, whose HAL has names in common with the pico-sdk. */
#include "idem.h"
#include "port/freertos.h"
#include "port/zephyr.h"
#include "port/spi_nor.h"
#include "port/interrupts.h"
#include "port/nrf_nvmc.h"
#include "port/rp2040_flash.h"
#include "port/esp_idf.h"
#include "port/check.h"

enum { KEYS = 32, KEY_MAX = 16, RESPONSE_MAX = 8 };
#define SECTORS(size, granule)                                                 \
    IDEM_SECTORS(KEYS, KEY_MAX, RESPONSE_MAX, 0, size, granule)

void use(void);

static zephyr_flash zephyr;
static spi_nor chip = { .base = 0x100000, .patience = 4000000 };
static idem_storage partition;
static mutex_t mutex;
static K_MUTEX_DEFINE(zephyr_mutex);
static interrupts_state state;

static const idem_storage storages[] = {
    ZEPHYR_STORAGE(&zephyr, 4096, SECTORS(4096, 8), 8),
    SPI_NOR_STORAGE(&chip, SECTORS(4096, 1)),
    NRF_NVMC_STORAGE(0x76000, SECTORS(4096, 4)),
    RP2040_FLASH_STORAGE(0x1E0000, SECTORS(4096, 1)),
};

static idem_config configs[] = {
    { .lock = freertos_lock, .unlock = freertos_unlock },
    { .lock_ctx = &zephyr_mutex, .lock = zephyr_lock, .unlock = zephyr_unlock },
    { .lock_ctx = &state, .lock = interrupts_lock,
      .unlock = interrupts_unlock },
    { .lock_ctx = &mutex, .lock = rp2040_lock, .unlock = rp2040_unlock },
};

void use(void)
{
    static StaticSemaphore_t place;
    static idem_table table;
    uint32_t at, now_ms = freertos_millis();
    int opened = esp_idf_storage(&partition, "idem", SECTORS(ESP_IDF_SECTOR,
                                                             ESP_IDF_GRANULE));

    configs[0].lock_ctx = xSemaphoreCreateMutexStatic(&place);
    configs[0].storage = &partition;
    opened |= zephyr_flash_start(&storages[0], FIXED_PARTITION_ID(idem));
    if (opened == 0 && !spi_nor_start(&storages[1]) &&
        !port_check(&storages[1], NULL, NULL, &at))
        for (unsigned i = 0; i < sizeof configs / sizeof configs[0]; i++)
            opened |= idem_open(&table, &configs[i], NULL, 0, now_ms);
}
