/* SPDX-License-Identifier: 0BSD
   Opens a journal's file and closes it again:  file_open [HOW]
   HOW 1: prints the length of the file; 2: waits for the end of stdin */
#include "tests/targets/board.h"
#include "tests/targets/medium.h"

#include <stdio.h>

int medium_end(void);
int program(void);

int program(void)
{
    if (board_argument(0) == 1) {
        board_number(medium.sector_size * medium.sector_count);
        return 0;
    }
    medium_start();
    while (board_argument(0) == 2 && getchar() != EOF)
        ;
    return medium_end();
}
