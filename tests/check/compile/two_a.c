/* SPDX-License-Identifier: 0BSD
   Two translation units, one implementation: this is the one that has it. */
#include "idem.h"
#define IDEM_IMPLEMENTATION
#include "idem.h"
#include "idem.h"
