/* SPDX-License-Identifier: 0BSD
   In the forms in which it is found: as STM32CubeMX writes it, with casts, and
   (STAND_IN_WIDTH) as newer kernels name the width of a tick. */
#ifndef STAND_IN_HZ
#define STAND_IN_HZ 1000
#endif
#define configTICK_RATE_HZ ((TickType_t)STAND_IN_HZ)
#ifdef STAND_IN_WIDTH
#define configTICK_TYPE_WIDTH_IN_BITS STAND_IN_WIDTH
#elif !defined configUSE_16_BIT_TICKS
#define configUSE_16_BIT_TICKS 0
#endif
