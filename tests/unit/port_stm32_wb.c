/* SPDX-License-Identifier: 0BSD
   A WB: pages of 4 KB, no banks. */
#define STAND_IN_WB
#include "stm32.h"
