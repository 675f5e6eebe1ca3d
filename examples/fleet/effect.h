/* SPDX-License-Identifier: 0BSD */
/* What gateway.c and consumer.c share: an effect that can be seen afterwards, a
 * line in a log; and the secret of the fleet, from a file. */
#ifndef FLEET_EFFECT_H
#define FLEET_EFFECT_H

#include "fleet.h"

enum { EFFECT_LINE = 512 };         /* bytes of the longest line, and a NUL */

/* Ends the program. */
void effect_die(const char *what, const char *why);

/* Opens the log for the two below. */
void effect_open(const char *path);

/* Adds a line that ends with a newline, durably.  If it fails the program ends:
   whether it is there is not known, and another will look. */
void effect_do(const char *line);

/* Looks at the world: whether a line is there. */
int effect_was_done(const char *line);

void effect_read_secret(idem_config *config, const char *path);

#endif
