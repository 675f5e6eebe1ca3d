/* SPDX-License-Identifier: 0BSD */
#ifndef ZEPHYR_FLASH_MAP_H
#define ZEPHYR_FLASH_MAP_H

#include <stddef.h>
#include <sys/types.h>

struct flash_area;

int flash_area_open(unsigned char id, const struct flash_area **area);
int flash_area_read(const struct flash_area *area, off_t at, void *dst,
                    size_t len);
int flash_area_write(const struct flash_area *area, off_t at, const void *src,
                     size_t len);
int flash_area_erase(const struct flash_area *area, off_t at, size_t len);

#endif
