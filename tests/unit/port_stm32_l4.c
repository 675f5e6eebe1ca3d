/* SPDX-License-Identifier: 0BSD
   An L4: two banks, words of 8 bytes. */
#include "stm32.h"
