/* SPDX-License-Identifier: 0BSD */
/* The same where the system can be asked for less than stat answers. */
#define _GNU_SOURCE
#include "file.c"
