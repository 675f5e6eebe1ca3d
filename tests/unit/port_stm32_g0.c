/* SPDX-License-Identifier: 0BSD
   A G0: the second bank has its own register of ECC flags. */
#define STAND_IN_G0
#include "stm32.h"
