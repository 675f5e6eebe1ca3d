/* SPDX-License-Identifier: 0BSD
   As much of ESP-IDF as the sketch Hello.ino names. */
void bootloader_random_enable(void);
void bootloader_random_disable(void);
