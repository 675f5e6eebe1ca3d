/* SPDX-License-Identifier: 0BSD */
#ifndef TASK_H
#define TASK_H

TickType_t xTaskGetTickCount(void);

#endif
