/* SPDX-License-Identifier: 0BSD
   The file of a program that has the implementation for all of it. */
#include "idem.h"
#define IDEM_IMPLEMENTATION
#include "idem.h"
#include "idem.h"
