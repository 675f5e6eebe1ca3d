/* SPDX-License-Identifier: 0BSD
   A private copy: it must not meet public.c's when they are linked. */
#define IDEM_STATIC
#define IDEM_IMPLEMENTATION
#include "idem.h"

int main(void)
{
    return idem_text(IDEM_OK)[0] != 'd';
}
