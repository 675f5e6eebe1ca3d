/* SPDX-License-Identifier: 0BSD */
/* Every value at once, for Frama-C's value analysis. */
#include <stdint.h>

#include "__fc_builtin.h"

static uint32_t any(void)
{
    return Frama_C_unsigned_int_interval(0, UINT32_MAX);
}

static uint32_t below(uint32_t end)
{
    return Frama_C_unsigned_int_interval(0, end - 1);
}

static uint8_t any_byte(void)
{
    return (uint8_t)below(256);
}
