/* SPDX-License-Identifier: 0BSD
   A G4 whose banks are two. */
#define STAND_IN_G4
#include "stm32.h"
