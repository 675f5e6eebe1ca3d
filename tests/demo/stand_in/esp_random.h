/* SPDX-License-Identifier: 0BSD
   As much of ESP-IDF as the sketch Hello.ino names. */
#include <stddef.h>

void esp_fill_random(void *dst, size_t size);
