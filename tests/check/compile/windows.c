/* SPDX-License-Identifier: 0BSD
   The header after windows.h, with the macros that it leaves defined. */
#define near
#define far
#define small char
#define interface struct
#define min(a, b) ((a) < (b) ? (a) : (b))
#define max(a, b) ((a) > (b) ? (a) : (b))
#define IN
#define OUT
#define OPTIONAL
#define CONST const
#define VOID void
#define TRUE 1
#define FALSE 0
#define IDEM_IMPLEMENTATION
#include "idem.h"
