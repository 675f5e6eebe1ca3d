/* SPDX-License-Identifier: 0BSD
   Reads the hexadecimal bytes of a journal that image.c wrote, perhaps another
   version of it on another machine, on the N-th medium. */
#define IDEM_IMPLEMENTATION
#include "idem.h"
#include "image.h"

#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    int n = argc > 1 ? atoi(argv[1]) : 0;
    unsigned byte;
    size_t len = 0;

    while (len < sizeof image_bytes && scanf("%2x", &byte) == 1)
        image_bytes[len++] = (uint8_t)byte;
    if (n < 1 || n > IMAGE_MEDIA ||
        len != image_size(&image_media[n - 1])) {
        fprintf(stderr, "usage: golden MEDIUM < FILE.hex\n");
        return 2;
    }
    if (image_reads(&image_media[n - 1]))
        return 0;
    fprintf(stderr, "FAILED: the journal does not say what it must\n");
    return 1;
}
