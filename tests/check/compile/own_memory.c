/* SPDX-License-Identifier: 0BSD
   Without <string.h>: the three functions are the user's. */
#include <stddef.h>

void *my_copy(void *dst, const void *src, size_t len);
void *my_set(void *dst, int value, size_t len);
int my_compare(const void *a, const void *b, size_t len);

#define IDEM_MEMCPY my_copy
#define IDEM_MEMSET my_set
#define IDEM_MEMCMP my_compare
#define IDEM_IMPLEMENTATION
#include "idem.h"
