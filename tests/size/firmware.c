/* SPDX-License-Identifier: 0BSD
   All of the header as firmware compiles it: measured, not run. */
#define IDEM_IMPLEMENTATION
#include "idem.h"
