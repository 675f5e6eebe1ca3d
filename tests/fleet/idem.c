/* SPDX-License-Identifier: 0BSD */
/* The code of idem.h, once. */
#define _POSIX_C_SOURCE 200809L
#define IDEM_FILE_STORAGE
#define IDEM_IMPLEMENTATION
#include "idem.h"
