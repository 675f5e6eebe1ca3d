/* SPDX-License-Identifier: 0BSD */
/*
 * Makes a fuzz harness of a function that runs an input (tests/model/input.h),
 *
 *     static void run(input *in);
 *
 * for libFuzzer, and for AFL++, whose driver calls LLVMFuzzerTestOneInput
 * persistently.
 */
#ifndef HARNESS_H
#define HARNESS_H

#include "../tests/model/input.h"

static void run(input *in);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    input in = { data, size };

    run(&in);
    return 0;
}

#endif /* HARNESS_H */
