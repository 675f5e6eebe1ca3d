/* SPDX-License-Identifier: 0BSD
   As much of the pico-sdk as examples/port/rp2040_flash.h names. */
#ifndef _PICO_FLASH_H
#define _PICO_FLASH_H

#include <stdbool.h>
#include <stdint.h>

enum { PICO_OK = 0, PICO_ERROR_TIMEOUT = -2, PICO_ERROR_NOT_PERMITTED = -4 };

bool flash_safe_execute_core_init(void);
int flash_safe_execute(void (*func)(void *), void *param,
                       uint32_t enter_exit_timeout_ms);

#endif
