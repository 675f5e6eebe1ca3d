/* SPDX-License-Identifier: 0BSD */
/*
 * Calls in any order, with ticks that stop, jump and go backwards, restarts,
 * power cuts in any operation, and callbacks that fail; against the model of
 * the promises (device.h).
 */
#ifndef CALLS_H
#define CALLS_H

#include "small.h"

enum { CALLS_MAX = 200 };

static void run(input *in)
{
    if (!small_choose(in))
        return;
    device_open(&the);
    play_calls(CALLS_MAX);
    device_end(&the);
}

#endif /* CALLS_H */
