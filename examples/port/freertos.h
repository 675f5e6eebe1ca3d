/* SPDX-License-Identifier: 0BSD
   Lock and tick of idem.h under FreeRTOS.

       static StaticSemaphore_t place;
       static idem_config config = { ..., .lock = freertos_lock,
                                     .unlock = freertos_unlock };
       config.lock_ctx = xSemaphoreCreateMutexStatic(&place);
       idem_open(&table, &config, memory, sizeof memory, freertos_millis());

   Do not call it from interrupts: let them hand the command to a task.  (One of
   more than configMAX_SYSCALL_INTERRUPT_PRIORITY cannot do that either.) */
#ifndef IDEM_FREERTOS_H
#define IDEM_FREERTOS_H

#ifdef ESP_PLATFORM
#include "freertos/FreeRTOS.h"
#include "freertos/semphr.h"
#include "freertos/task.h"
#else
#include "FreeRTOS.h"
#include "semphr.h"
#include "task.h"
#endif

#include <stdint.h>

/* Types, because configTICK_RATE_HZ may have a cast in it, which #if does not
   understand.  A tick of 16 bits wraps within minutes: count its wraps, in a
   timer or the tick hook.  A tick of a part of a millisecond (1024 Hz), or of
   32 bits that makes milliseconds which do not wrap at 2^32, likewise. */
typedef char freertos_ticks_have_32_bits[sizeof(TickType_t) >= 4 ? 1 : -1];
typedef char freertos_ticks_are_milliseconds
    [1000 % configTICK_RATE_HZ == 0 ? 1 : -1];

/* An erase may be waited for; after that long something has gone wrong, for
   instance a task that waits for itself. */
#define FREERTOS_LOCK_MS 2000

static inline int freertos_lock(void *mutex)
{
    if (!mutex)                         // there was no memory to create it
        return -1;
    return xSemaphoreTake((SemaphoreHandle_t)mutex,
                          pdMS_TO_TICKS(FREERTOS_LOCK_MS)) == pdTRUE ? 0 : -1;
}

static inline void freertos_unlock(void *mutex)
{
    xSemaphoreGive((SemaphoreHandle_t)mutex);
}

/* Wraps at 2^32, because a tick is a whole number of milliseconds. */
static inline uint32_t freertos_millis(void)
{
    return (uint32_t)xTaskGetTickCount() *
           (uint32_t)(1000u / configTICK_RATE_HZ);
}

#endif /* IDEM_FREERTOS_H */
