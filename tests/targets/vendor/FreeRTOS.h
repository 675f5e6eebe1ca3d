/* SPDX-License-Identifier: 0BSD
   As much of FreeRTOS as examples/port/freertos.h names. */
#ifndef FREERTOS_H
#define FREERTOS_H

#include <stdint.h>

#define configUSE_16_BIT_TICKS 0
#define configTICK_RATE_HZ 1000
#define pdTRUE 1
#define pdMS_TO_TICKS(ms) ((TickType_t)(ms))

typedef uint32_t TickType_t;
typedef long BaseType_t;
typedef struct QueueDefinition *SemaphoreHandle_t;

SemaphoreHandle_t xSemaphoreCreateMutex(void);
BaseType_t xSemaphoreTake(SemaphoreHandle_t semaphore, TickType_t ticks);
BaseType_t xSemaphoreGive(SemaphoreHandle_t semaphore);
TickType_t xTaskGetTickCount(void);

#endif
