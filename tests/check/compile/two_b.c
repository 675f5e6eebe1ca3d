/* SPDX-License-Identifier: 0BSD
   Two translation units, one implementation: this is the other. */
#include "idem.h"

int main(void)
{
    return idem_text(IDEM_OK)[0] != 'd';
}
