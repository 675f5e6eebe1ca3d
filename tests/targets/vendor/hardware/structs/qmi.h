/* SPDX-License-Identifier: 0BSD
   As much of the pico-sdk as examples/port/rp2040_flash.h names.  There the
   registers are a macro; here a test has them. */
#ifndef _HARDWARE_STRUCTS_QMI_H
#define _HARDWARE_STRUCTS_QMI_H

#include <stdint.h>

typedef struct { volatile uint32_t atrans[8]; } qmi_hw_t;

extern qmi_hw_t *const qmi_hw;

#endif
