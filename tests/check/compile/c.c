/* SPDX-License-Identifier: 0BSD
   The header and its implementation, alone, in whatever C it is compiled as. */
#define IDEM_IMPLEMENTATION
#include "idem.h"
