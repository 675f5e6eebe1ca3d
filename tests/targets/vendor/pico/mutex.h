/* SPDX-License-Identifier: 0BSD
   As much of the pico-sdk as examples/port/rp2040_flash.h names. */
#ifndef _PICO_MUTEX_H
#define _PICO_MUTEX_H

#include <stdbool.h>
#include <stdint.h>

typedef struct { int8_t owner; } mutex_t;

void mutex_init(mutex_t *mtx);
bool mutex_enter_timeout_ms(mutex_t *mtx, uint32_t timeout_ms);
void mutex_exit(mutex_t *mtx);

#endif
