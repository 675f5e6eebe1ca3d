/* SPDX-License-Identifier: 0BSD */
/*
 * Makes a fuzz harness of a function that runs an input (tests/model/input.h),
 *
 *     static void run(input *in);
 *
 * for libFuzzer, for AFL++, whose driver calls LLVMFuzzerTestOneInput
 * persistently, and with -DREPLAY a program that runs files.
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

#ifdef REPLAY
int main(int argc, char **argv)
{
    static uint8_t bytes[65536];

    for (int i = 1; i < argc; i++) {
        FILE *file = fopen(argv[i], "rb");
        if (!file) {
            perror(argv[i]);
            return 2;
        }
        LLVMFuzzerTestOneInput(bytes, fread(bytes, 1, sizeof bytes, file));
        fclose(file);
    }
    return 0;
}
#endif

#endif /* HARNESS_H */
