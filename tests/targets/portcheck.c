/* SPDX-License-Identifier: 0BSD
   examples/port/check.h on a board's own storage. */
#include "idem.h"
#include "board.h"
#include "medium.h"
#include "port/check.h"

int program(void);

int program(void)
{
    uint32_t at = 0;
    const char *wrong;

    medium_start();
    wrong = port_check(&medium, NULL, NULL, &at);
    if (wrong) {
        board_text("FAILED: ");
        board_text(wrong);
        board_text(" at ");
        board_number(at);
        board_text("\n");
        return 1;
    }
    board_text("port check passed\n");
    return 0;
}
