/* SPDX-License-Identifier: 0BSD
   Writes a journal on each of several media, reads it, and tells a digest of
   its bytes, which must be the same on all machines.  With argument N the N-th
   medium's bytes instead (1 is the first). */
#define IDEM_IMPLEMENTATION
#include "idem.h"
#include "board.h"
#include "image.h"

int program(void);

static void hex(uint8_t byte)
{
    static const char digits[] = "0123456789abcdef";
    char text[3];

    text[0] = digits[byte >> 4];
    text[1] = digits[byte & 15];
    text[2] = 0;
    board_text(text);
}

static void tell_bytes(uint32_t size)
{
    for (uint32_t i = 0; i < size; i++) {
        hex(image_bytes[i]);
        if (i % 32 == 31)
            board_text("\n");
    }
}

/* FNV-1a, which is enough to tell one image from another. */
static uint64_t digest_of(uint32_t size)
{
    uint64_t digest = UINT64_C(0xcbf29ce484222325);

    for (uint32_t i = 0; i < size; i++)
        digest = (digest ^ image_bytes[i]) * UINT64_C(0x100000001b3);
    return digest;
}

static void tell_digest(const image_medium *m, uint32_t size)
{
    uint64_t digest = digest_of(size);
    int shift;

    board_text(m->name);
    board_text(" ");
    for (shift = 56; shift >= 0; shift -= 8)
        hex((uint8_t)(digest >> shift));
    board_text("\n");
}

int program(void)
{
    uint32_t asked = board_argument(0);

    for (unsigned i = 0; i < IMAGE_MEDIA; i++) {
        const image_medium *m = &image_media[i];
        uint32_t size = image_size(m);
        if (asked && asked != i + 1)
            continue;
        if (!image_write(m)) {
            board_text("FAILED: to write\n");
            return 1;
        }
        if (asked)
            tell_bytes(size);
        else
            tell_digest(m, size);
        if (!image_reads(m)) {
            board_text("FAILED: to read\n");
            return 1;
        }
    }
    return 0;
}
