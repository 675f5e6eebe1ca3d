/* SPDX-License-Identifier: 0BSD
   A U5: words of 16 bytes, pages of 8 KB, a cache. */
#define STAND_IN_U5
#include "stm32.h"
