/* SPDX-License-Identifier: 0BSD
   As much of Zephyr's flash driver as examples/port/zephyr.h names. */
#ifndef ZEPHYR_DRIVERS_FLASH_H
#define ZEPHYR_DRIVERS_FLASH_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct device;

struct flash_pages_info {
    off_t start_offset;
    size_t size;
    uint32_t index;
};

#define CONFIG_FLASH_PAGE_LAYOUT 1
int flash_get_page_info_by_offs(const struct device *dev, off_t offset,
                                struct flash_pages_info *info);

#endif
