/* SPDX-License-Identifier: 0BSD */
/* Shared by gateway.c and consumer.c: an effect, a log that shows it afterwards,
 * and the secret of the fleet, from a file.
 *
 * The log is the sensor.  It has two lines for each effect, "begins ID TEXT"
 * before and "ends ID TEXT" after it, both durable.  If an effect has begun and
 * not ended, nobody knows how far it came.  The first line is the log's name: a
 * log that is missing, empty or replaced has lost lines, and then "no line"
 * does not mean "nothing was done".  So the log is made once, by effect_make,
 * and a program that finds none ends.  All programs that share a store share
 * the log, even on several machines: another log does not have the effects
 * that they have begun.  So a program whose log has another name is refused,
 * as with another secret.  The last line of an ID decides.  Do not use an ID
 * again for another effect, even after its retention: after a crash its old
 * lines would decide about it.  No ID is another one followed by a blank and
 * more.
 *
 * It also fences: effect_begin looks and writes under the file's lock.  So a
 * gateway that was suspended until another took over finds that the other has
 * begun.  One that is suspended while it has the lock stops all: they end with
 * that reason, after a minute. */
#ifndef FLEET_EFFECT_H
#define FLEET_EFFECT_H

#include "fleet.h"

enum { EFFECT_LINE = 1200 };         /* bytes of the longest line, and a NUL */

/* What the log has of an effect */
enum { EFFECT_NONE, EFFECT_BEGUN, EFFECT_DONE };

/* Ends the program. */
void effect_die(const char *what, const char *why);

/* Makes a log that is not there yet; opens one for the functions below.  They
   end the program if the log fails them: another one will look. */
void effect_make(const char *path);
void effect_open(const char *path);

/* How long the log is now: to be asked for before the claim is. */
long effect_place(void);

/* Begins an effect, unless the log has it from that place on: that of before
   the claim if the key is new, or 0 if an earlier attempt may have left
   something.
     EFFECT_NONE    begun now: make it, then call effect_end
     EFFECT_BEGUN   begun by another, who has not ended it, or with another
                    text: do not make it
     EFFECT_DONE    made by another */
int effect_begin(const char *id, const char *text, long place);
void effect_end(const char *id, const char *text);

/* Looks an effect up in the log. */
int effect_look(const char *id, const char *text);

/* The number of an option, up to `most`; ends the program if it is none. */
int effect_number(const char *option, const char *text, int most);

/* The URL of the store: as the option has it, or else FLEET_STORE of the
   environment.  Others see options, and there may be a password in it. */
const char *effect_store(const char *option);

/* Reads the secret, which a fleet has for one log: open that before. */
void effect_read_secret(idem_config *config, const char *path);

/* Ends the program if a fleet was not opened. */
void effect_need(const fleet *f, int result);

#endif
