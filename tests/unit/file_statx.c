/* SPDX-License-Identifier: 0BSD */
/* The same with statx, which can ask for less than stat. */
#define _GNU_SOURCE
#include "file.c"
