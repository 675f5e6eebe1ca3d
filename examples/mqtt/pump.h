/* SPDX-License-Identifier: 0BSD */
/* The pump of pumpd.c, and its sensor.  It only waits, and writes lines into a
 * log:
 *
 *     pumpd log 91c2be07d4a85f36                    a name: which log it is
 *     begins pump/panel/command 6b31 250 ml         durable before it pours
 *     ends pump/panel/command 6b31 250 ml           and after it
 *
 * The log stands for the counter of a real pump: after a crash it shows whether
 * a command has poured, or has begun to.  It must be complete for that.  A log
 * that was replaced, rotated or truncated has lost lines: then "no line" does
 * not mean "nothing was poured".  So its user keeps a pump_mark somewhere else:
 * the name and the length of the log.  (Nobody notices the loss of lines that
 * came after that mark was stored.)
 */
#ifndef PUMP_H
#define PUMP_H

#include <stddef.h>
#include <stdint.h>

/* What is to be poured, and for whom */
typedef struct pump_order {
    const char *topic;
    const void *key;
    size_t      key_len;
    long        ml;
} pump_order;

/* Which log, and how many bytes of it there are at least */
typedef struct pump_mark {
    uint64_t id, length;
} pump_mark;

typedef struct pump_driver {
    const char *path;
    int      fd;
    long     ml_ms;             /* how long the pump takes for 1 ml */
    pump_mark mark;             /* of the log, now */
    const char *why;            /* after a failure, what it is */
} pump_driver;

/* Opens the log, or makes it.  An incomplete line, left by a full disk or a
   power cut, is ended and does not count.  0, or -1: `why`. */
int pump_open(pump_driver *p, const char *path);

/* True if the log has no line of a command. */
int pump_is_new(const pump_driver *p);

/* True if the log is the one of that mark, and has all that it had then. */
int pump_has(const pump_driver *p, const pump_mark *mark);

/* Pours.  0: it has poured; -1: nobody knows how much (`why`). */
int pump_pour(pump_driver *p, const pump_order *order);

/* What the log has of an order.  PUMP_BLIND: it cannot be read (`why`). */
enum { PUMP_BLIND = -1, PUMP_NOTHING = 0, PUMP_BEGAN = 1, PUMP_ENDED = 2 };
int pump_look(pump_driver *p, const pump_order *order);

#endif
