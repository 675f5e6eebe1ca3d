/* SPDX-License-Identifier: 0BSD */
#include <zephyr/kernel.h>
