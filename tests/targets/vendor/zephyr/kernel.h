/* SPDX-License-Identifier: 0BSD
   As much of Zephyr's kernel as examples/port/zephyr.h names. */
#ifndef ZEPHYR_KERNEL_H
#define ZEPHYR_KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct k_mutex { int count; };
typedef struct { int64_t ticks; } k_timeout_t;
#define K_FOREVER ((k_timeout_t){ -1 })
#define K_MUTEX_DEFINE(name) struct k_mutex name = { 0 }

int k_mutex_lock(struct k_mutex *mutex, k_timeout_t timeout);
int k_mutex_unlock(struct k_mutex *mutex);
bool k_is_in_isr(void);
uint32_t k_uptime_get_32(void);

#endif
