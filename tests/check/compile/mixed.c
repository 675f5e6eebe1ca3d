/* SPDX-License-Identifier: 0BSD
   A file that does no more than complete the claims of another, public.c: it
   links with that only if both are compiled with the same options. */
#include "idem.h"

int main(void);

int main(void)
{
    static const idem_claim claim = { 0 };
    static const idem_outcome outcome = { 0 };
    static idem_table table;

    return idem_text(IDEM_OK)[0] != 'd' ||
           idem_complete(&table, &claim, &outcome, 0) != IDEM_E_ARG;
}
