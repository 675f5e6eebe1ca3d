/* SPDX-License-Identifier: 0BSD
   Lock, tick and storage of idem.h under Zephyr: a flash partition of the
   devicetree.

       static K_MUTEX_DEFINE(mutex);
       static zephyr_flash flash = { .sector_size = 4096 };
       static const idem_storage storage = ZEPHYR_STORAGE(&flash, 4096, 8, 8);
       static const idem_config config = { ..., .storage = &storage,
                                     .lock_ctx = &mutex, .lock = zephyr_lock,
                                     .unlock = zephyr_unlock };

       flash_area_open(FIXED_PARTITION_ID(idem_partition), &flash.area);
       idem_open(&table, &config, memory, sizeof memory, k_uptime_get_32());

   Sector size and granule are those of the partition's flash:
   flash_get_page_info_by_offs and flash_area_align tell them. */
#ifndef IDEM_ZEPHYR_H
#define IDEM_ZEPHYR_H

#include "idem.h"

#include <zephyr/kernel.h>
#include <zephyr/storage/flash_map.h>

/* What the callbacks are handed. */
typedef struct zephyr_flash {
    const struct flash_area *area;
    uint32_t sector_size;
} zephyr_flash;

#define ZEPHYR_STORAGE(flash, size, sectors, granule)                          \
    { .ctx = (flash), .read = zephyr_read, .prog = zephyr_prog,                \
      .erase = zephyr_erase, .sector_size = (size),                            \
      .sector_count = (sectors), .prog_size = (granule), .erased = 0xFF }

/* The mutex may be taken twice by one thread; the table refuses such a call. */
static inline int zephyr_lock(void *mutex)
{
    return k_mutex_lock((struct k_mutex *)mutex, K_FOREVER);
}

static inline void zephyr_unlock(void *mutex)
{
    k_mutex_unlock((struct k_mutex *)mutex);
}

static inline int zephyr_read(void *ctx, uint32_t at, void *dst, uint32_t len)
{
    const zephyr_flash *flash = (const zephyr_flash *)ctx;

    return flash_area_read(flash->area, (off_t)at, dst, len);
}

static inline int zephyr_prog(void *ctx, uint32_t at, const void *src,
                              uint32_t len)
{
    const zephyr_flash *flash = (const zephyr_flash *)ctx;

    return flash_area_write(flash->area, (off_t)at, src, len);
}

static inline int zephyr_erase(void *ctx, uint32_t sector)
{
    const zephyr_flash *flash = (const zephyr_flash *)ctx;

    return flash_area_erase(flash->area, (off_t)(sector * flash->sector_size),
                            flash->sector_size);
}

#endif /* IDEM_ZEPHYR_H */
