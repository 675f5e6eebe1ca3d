/* SPDX-License-Identifier: 0BSD
   What menuconfig writes for a chip; STAND_IN_ESP32: the first of them. */
#ifdef STAND_IN_ESP32
#define CONFIG_IDF_TARGET_ESP32 1
#else
#define CONFIG_IDF_TARGET_ESP32S3 1
#endif
