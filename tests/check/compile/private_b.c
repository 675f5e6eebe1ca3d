/* SPDX-License-Identifier: 0BSD
   Two private copies in one program: the other. */
#define IDEM_STATIC
#define IDEM_IMPLEMENTATION
#include "idem.h"

const char *other(int result);

const char *other(int result)
{
    return idem_text(result);
}
