/* SPDX-License-Identifier: 0BSD
   As much of Zephyr as examples/port/zephyr.h names. */
#ifndef ZEPHYR_KERNEL_H
#define ZEPHYR_KERNEL_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct k_mutex { int count; };
typedef struct { int64_t ticks; } k_timeout_t;
#define K_FOREVER ((k_timeout_t){ -1 })

int k_mutex_lock(struct k_mutex *mutex, k_timeout_t timeout);
int k_mutex_unlock(struct k_mutex *mutex);
uint32_t k_uptime_get_32(void);

struct flash_area;

int flash_area_open(unsigned char id, const struct flash_area **area);
int flash_area_read(const struct flash_area *area, off_t at, void *dst,
                    size_t len);
int flash_area_write(const struct flash_area *area, off_t at, const void *src,
                     size_t len);
int flash_area_erase(const struct flash_area *area, off_t at, size_t len);

#endif
