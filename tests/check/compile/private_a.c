/* SPDX-License-Identifier: 0BSD
   Two private copies in one program: they must not meet when linked. */
#define IDEM_STATIC
#define IDEM_IMPLEMENTATION
#include "idem.h"

const char *other(int result);

int main(void)
{
    return idem_text(IDEM_OK)[0] != other(IDEM_OK)[0];
}
