/* SPDX-License-Identifier: 0BSD
   Lock and tick of idem.h under FreeRTOS.

       static idem_config config = { ..., .lock = freertos_lock,
                                     .unlock = freertos_unlock };
       config.lock_ctx = xSemaphoreCreateMutex();
       idem_open(&table, &config, memory, sizeof memory, freertos_millis());

   Not from interrupts: they hand the command to a task. */
#ifndef IDEM_FREERTOS_H
#define IDEM_FREERTOS_H

#include "FreeRTOS.h"
#include "semphr.h"
#include "task.h"

#include <stdint.h>

#if configUSE_16_BIT_TICKS
#error "a tick of 16 bits wraps within minutes: count its wraps yourself"
#endif
#if 1000 % configTICK_RATE_HZ
#error "milliseconds would not wrap at 2^32: keep a 64-bit count of ticks"
#endif

/* An erase may be waited for; after that long something has gone wrong, for
   instance a task that waits for itself. */
#define FREERTOS_LOCK_MS 2000

static inline int freertos_lock(void *mutex)
{
    return xSemaphoreTake((SemaphoreHandle_t)mutex,
                          pdMS_TO_TICKS(FREERTOS_LOCK_MS)) == pdTRUE ? 0 : -1;
}

static inline void freertos_unlock(void *mutex)
{
    xSemaphoreGive((SemaphoreHandle_t)mutex);
}

/* Wraps where ticks do, since a tick is a whole number of milliseconds. */
static inline uint32_t freertos_millis(void)
{
    return (uint32_t)xTaskGetTickCount() * (1000u / configTICK_RATE_HZ);
}

#endif /* IDEM_FREERTOS_H */
