/* SPDX-License-Identifier: 0BSD
   The same for the first ESP32. */
#define STAND_IN_ESP32
#include "port_esp_idf.c"
