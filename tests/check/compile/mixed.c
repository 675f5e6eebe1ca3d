/* SPDX-License-Identifier: 0BSD
   A file that uses the table of another, two_a.c: it links with that only if
   both are compiled with the same options. */
#include "idem.h"

int main(void);

int main(void)
{
    static const idem_request request = { 0 };
    static idem_table table;
    idem_claim claim;
    idem_reply reply = { 0 };

    return idem_begin(&table, &claim, &reply, &request, 0) != IDEM_E_ARG;
}
