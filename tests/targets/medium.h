/* SPDX-License-Identifier: 0BSD
   The storage that a board has: medium_*.c provide it. */
#ifndef MEDIUM_H
#define MEDIUM_H

#include "idem.h"

extern const idem_storage medium;

/* Makes it ready for use. */
void medium_start(void);

#endif /* MEDIUM_H */
