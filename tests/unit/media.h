/* SPDX-License-Identifier: 0BSD */
/*
 * The media that unit tests are run on: one of each kind.
 */
#ifndef MEDIA_H
#define MEDIA_H

#include "../model/medium.h"

static const medium nor = { "NOR", FLASH_NOR, 0, 1, 512, 0xFF };
static const medium nor_8 = { "granules of 8", FLASH_NOR, 0, 8, 512, 0xFF };
static const medium ecc = { "ECC", FLASH_ECC, 0, 16, 1024, 0xFF };
static const medium zeros = { "erased to zeros", FLASH_NOR, 0, 4, 512, 0x00 };
static const medium eeprom = { "EEPROM", FLASH_INPLACE, 0, 1, 500, 0xFF };
static const medium cached = { "file", FLASH_INPLACE, CACHE, 4, 512, 0x00 };
static const medium wide = { "granules of 64", FLASH_ECC, 0, 64, 2048, 0xFF };
static const medium *const media[] = { &nor, &nor_8, &ecc, &zeros, &eeprom,
                                       &cached, &wide };

#endif /* MEDIA_H */
