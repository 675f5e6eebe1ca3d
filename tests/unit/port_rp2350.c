/* SPDX-License-Identifier: 0BSD
   The same for an RP2350 whose program runs from a partition. */
#define STAND_IN_RP2350
#include "port_rp2040.c"
