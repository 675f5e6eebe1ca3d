/* SPDX-License-Identifier: 0BSD */
/*
 * Shows that the bytes of a journal, and the hashes, are those of golden/.  If
 * two fields changed places, reading and writing would still agree, and no
 * other test would fail.  If the format must change, tests/format/format.sh
 * writes new ones.
 */
#include "test.h"

#include "targets/image.c"

#if IDEM_HASH == IDEM_HASH_SIPHASH
#define HASH "siphash"
#elif IDEM_HASH == IDEM_HASH_HALFSIPHASH
#define HASH "halfsiphash"
#else
#define HASH "fnv"
#endif

static char printed[1000], kept[sizeof printed];

/* The board: what is printed is compared. */
void board_text(const char *text)
{
    assert_true(strlen(printed) + strlen(text) < sizeof printed);
    strcat(printed, text);
}

void board_exit(int status)
{
    is(status, 0);
}

uint32_t board_argument(int n)
{
    (void)n;
    return 0;
}

TEST(all_bytes_are_those_that_are_kept)
{
    FILE *file = fopen("tests/targets/golden/" HASH ".txt", "r");

    assert_non_null(file);
    kept[fread(kept, 1, sizeof kept - 1, file)] = 0;
    is(fclose(file), 0);
    is(program(), 0);
    assert_string_equal(printed, kept);
}
