/* SPDX-License-Identifier: 0BSD
   Reads the bytes of a journal that image.c wrote, perhaps another version of
   it on another machine, on the N-th medium. */
#define IDEM_IMPLEMENTATION
#include "idem.h"
#include "image.h"

#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    int n = argc > 1 ? atoi(argv[1]) : 0;
    size_t len = fread(image_bytes, 1, sizeof image_bytes, stdin);

    if (n < 1 || n > IMAGE_MEDIA ||
        len != image_size(&image_media[n - 1])) {
        fprintf(stderr, "usage: golden MEDIUM < JOURNAL\n");
        return 2;
    }
    if (image_reads(&image_media[n - 1]))
        return 0;
    fprintf(stderr, "FAILED: the journal does not say what it must\n");
    return 1;
}
