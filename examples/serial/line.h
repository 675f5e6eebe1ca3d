/* SPDX-License-Identifier: 0BSD */
/* One direction of a bad line: frames come in, and go out, or not, or twice, or
   late, or with other bits.  It knows only that a zero ends a frame. */
#ifndef LINE_H
#define LINE_H

#include "protocol.h"

#define LINE_QUEUE 256
#define LINE_CHUNK (2 * PROTOCOL_FRAME_MAX)

/* In percent of all frames */
typedef struct line_rates {
    uint32_t lose;
    uint32_t repeat;            /* the second comes up to LINE_LATE_MS later */
    uint32_t delay;             /* by up to LINE_DELAY_MS: others overtake it */
    uint32_t corrupt;
} line_rates;

#define LINE_DELAY_MS 60
#define LINE_LATE_MS 400

typedef struct line_frame {
    uint32_t number;            /* in the order of arrival */
    uint32_t due;
    size_t   len;
    uint8_t  bytes[LINE_CHUNK + 1];
} line_frame;

typedef struct line {
    line_rates rates;
    uint32_t   seed;
    line_frame coming;          /* what is not ended yet */
    line_frame queue[LINE_QUEUE];
    unsigned   queued;
    uint32_t   newest;          /* number of the newest that went out */
    /* counters */
    uint32_t   frames, lost, repeated, corrupted, overtaken;
} line;

/* Takes bytes from the one end. */
void line_take(line *l, const uint8_t *bytes, size_t len, uint32_t now);

/* Hands what is due to the other end.  Returns for how many ms nothing is. */
int line_deliver(line *l, int fd, uint32_t now);

#endif
