/* SPDX-License-Identifier: 0BSD
   Behind the words that windows.h leaves defined. */
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
