/* SPDX-License-Identifier: 0BSD
   As much of FreeRTOS as examples/port/freertos.h names. */
#ifndef FREERTOS_H
#define FREERTOS_H

#include <stdint.h>

#define TICK_TYPE_WIDTH_16_BITS 0
#define TICK_TYPE_WIDTH_32_BITS 1
#define TICK_TYPE_WIDTH_64_BITS 2

#include "FreeRTOSConfig.h"

#ifndef configTICK_TYPE_WIDTH_IN_BITS
#if configUSE_16_BIT_TICKS == 1
#define configTICK_TYPE_WIDTH_IN_BITS TICK_TYPE_WIDTH_16_BITS
#else
#define configTICK_TYPE_WIDTH_IN_BITS TICK_TYPE_WIDTH_32_BITS
#endif
#endif

#if configTICK_TYPE_WIDTH_IN_BITS == TICK_TYPE_WIDTH_16_BITS
typedef uint16_t TickType_t;
#elif configTICK_TYPE_WIDTH_IN_BITS == TICK_TYPE_WIDTH_32_BITS
typedef uint32_t TickType_t;
#else
typedef uint64_t TickType_t;
#endif

#define pdTRUE ((BaseType_t)1)
#define pdMS_TO_TICKS(xTimeInMs)                                               \
    ((TickType_t)(((uint64_t)(xTimeInMs) * (uint64_t)configTICK_RATE_HZ) /     \
                  (uint64_t)1000U))

typedef long BaseType_t;
typedef struct { void *pvDummy[20]; } StaticSemaphore_t;
typedef struct QueueDefinition *QueueHandle_t;
typedef QueueHandle_t SemaphoreHandle_t;

/* Macros, as in semphr.h */
QueueHandle_t xQueueCreateMutexStatic(const uint8_t ucQueueType,
                                      StaticSemaphore_t *pxStaticQueue);
BaseType_t xQueueSemaphoreTake(QueueHandle_t xQueue, TickType_t xTicksToWait);
BaseType_t xQueueGenericSend(QueueHandle_t xQueue,
                             const void *const pvItemToQueue,
                             TickType_t xTicksToWait,
                             const BaseType_t xCopyPosition);
#define xSemaphoreCreateMutexStatic(pxMutexBuffer)                             \
    xQueueCreateMutexStatic(((uint8_t)1U), (pxMutexBuffer))
#define xSemaphoreTake(xSemaphore, xBlockTime)                                 \
    xQueueSemaphoreTake((xSemaphore), (xBlockTime))
#define xSemaphoreGive(xSemaphore)                                             \
    xQueueGenericSend((QueueHandle_t)(xSemaphore), 0, ((TickType_t)0U),        \
                      ((BaseType_t)0))

TickType_t xTaskGetTickCount(void);

#endif
