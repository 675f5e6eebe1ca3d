/* SPDX-License-Identifier: 0BSD
   Storage that is memory: SIZE bytes in sectors of SECTOR, erased to ERASED.
   Define these before you include this. */
#ifndef RAM_H
#define RAM_H

#include "idem.h"

#include <string.h>

static uint8_t bytes[SIZE];

static int ram_read(void *ctx, uint32_t at, void *dst, uint32_t len)
{
    (void)ctx;
    memcpy(dst, bytes + at, (size_t)len);
    return 0;
}

static int ram_prog(void *ctx, uint32_t at, const void *src, uint32_t len)
{
    (void)ctx;
    memcpy(bytes + at, src, (size_t)len);
    return 0;
}

static int ram_erase(void *ctx, uint32_t sector)
{
    (void)ctx;
    memset(bytes + sector * SECTOR, ERASED, SECTOR);
    return 0;
}

#endif /* RAM_H */
