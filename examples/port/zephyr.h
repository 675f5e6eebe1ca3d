/* SPDX-License-Identifier: 0BSD
   Lock, tick and storage of idem.h under Zephyr: a flash partition of the
   devicetree.

       static K_MUTEX_DEFINE(mutex);
       static zephyr_flash flash;
       static const idem_storage storage = ZEPHYR_STORAGE(&flash, 4096, SECTORS,
                                                          8);
       static const idem_config config = { ..., .storage = &storage,
                                     .lock_ctx = &mutex, .lock = zephyr_lock,
                                     .unlock = zephyr_unlock };

       if (zephyr_flash_start(&storage, FIXED_PARTITION_ID(idem)) == 0)
           idem_open(&table, &config, memory, sizeof memory,
                     k_uptime_get_32());

   Sector size and granule are those of the partition's flash: its devicetree
   node has erase-block-size and write-block-size.  With FLASH_PAGE_LAYOUT the
   start looks whether sectors are whole pages; else port/check.h does.  Drivers
   do not report each program that fails: so verify is set.

   On an STM32 with ECC a word whose programming a power cut interrupted raises
   an NMI when it is read, and Zephyr's handler does not return: the device
   would hang at every start.  Give it one that does (stm32_flash.h has the
   registers). */
#ifndef IDEM_ZEPHYR_H
#define IDEM_ZEPHYR_H

#include "idem.h"

#include <errno.h>
#include <zephyr/drivers/flash.h>
#include <zephyr/kernel.h>
#include <zephyr/storage/flash_map.h>

/* Handed to the callbacks; zephyr_flash_start fills it. */
typedef struct zephyr_flash {
    const struct flash_area *area;
    uint32_t sector_size;
} zephyr_flash;

/* SECTORS is a constant; 0, for which IDEM_SECTORS finds no solution, does not
   compile. */
#define ZEPHYR_STORAGE(flash, size, sectors, granule)                          \
    { .ctx = (flash), .read = zephyr_read, .prog = zephyr_prog,                \
      .erase = zephyr_erase, .sector_size = (size),                            \
      .sector_count = sizeof(char[(sectors) > 0 ? 1 : -1]) * (sectors),        \
      .prog_size = (granule), .erased = 0xFF, .verify = 1 }

/* The mutex may be taken twice by one thread; the table refuses such a call.
   An interrupt can neither wait for it nor own it: let it hand the command to a
   thread. */
static inline int zephyr_lock(void *mutex)
{
    if (k_is_in_isr())
        return -EWOULDBLOCK;
    return k_mutex_lock((struct k_mutex *)mutex, K_FOREVER);
}

static inline void zephyr_unlock(void *mutex)
{
    k_mutex_unlock((struct k_mutex *)mutex);
}

/* True if no page that is erased at once reaches beyond a sector. */
static inline int zephyr_pages_fit(const idem_storage *storage,
                                   const struct flash_area *area)
{
#ifdef CONFIG_FLASH_PAGE_LAYOUT
    struct flash_pages_info page;
    uint32_t i;

    for (i = 0; i < storage->sector_count; i++) {
        off_t at = area->fa_off + (off_t)(i * storage->sector_size);

        if (flash_get_page_info_by_offs(area->fa_dev, at, &page) != 0 ||
            page.start_offset != at || storage->sector_size % page.size != 0)
            return 0;
    }
#endif
    (void)area;
    (void)storage;
    return 1;
}

/* Opens the partition.  -EINVAL: the storage does not fit it: it is longer, has
   smaller granules, sectors that are not whole pages, or another value of
   erased bytes. */
static inline int zephyr_flash_start(const idem_storage *storage, uint8_t id)
{
    zephyr_flash *map = (zephyr_flash *)storage->ctx;
    const struct flash_area *area;
    int result = flash_area_open(id, &area);

    map->area = NULL;
    if (result != 0)
        return result;
    if (storage->sector_size == 0 ||
        storage->sector_count > area->fa_size / storage->sector_size ||
        storage->prog_size % flash_area_align(area) != 0 ||
        storage->erased != flash_area_erased_val(area) ||
        !zephyr_pages_fit(storage, area))
        return -EINVAL;
    map->area = area;
    map->sector_size = storage->sector_size;
    return 0;
}

static inline int zephyr_read(void *ctx, uint32_t at, void *dst, uint32_t len)
{
    const zephyr_flash *map = (const zephyr_flash *)ctx;

    return map->area ? flash_area_read(map->area, (off_t)at, dst, len)
                     : -ENODEV;
}

static inline int zephyr_prog(void *ctx, uint32_t at, const void *src,
                              uint32_t len)
{
    const zephyr_flash *map = (const zephyr_flash *)ctx;

    return map->area ? flash_area_write(map->area, (off_t)at, src, len)
                     : -ENODEV;
}

/* A protected chip ignores an erase, and not every driver reports it. */
static inline int zephyr_erase(void *ctx, uint32_t sector)
{
    const zephyr_flash *map = (const zephyr_flash *)ctx;
    uint32_t at = sector * map->sector_size, end = at + map->sector_size, i;
    uint8_t bytes[64];
    int result = map->area ? flash_area_erase(map->area, (off_t)at,
                                              map->sector_size) : -ENODEV;

    for (; result == 0 && at < end; at += sizeof bytes) {
        result = flash_area_read(map->area, (off_t)at, bytes, sizeof bytes);
        for (i = 0; i < sizeof bytes && result == 0; i++)
            if (bytes[i] != 0xFF)
                result = -EIO;
    }
    return result;
}

#endif /* IDEM_ZEPHYR_H */
