/* SPDX-License-Identifier: 0BSD */
/*
 * What a block of the manual that shows only a part of a program relies on.
 */
#include "idem.h"

enum { SECTORS = 8 };

int flash_read(void *ctx, uint32_t at, void *dst, uint32_t len);
int flash_prog(void *ctx, uint32_t at, const void *src, uint32_t len);
int flash_erase(void *ctx, uint32_t sector);
