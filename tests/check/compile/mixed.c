/* SPDX-License-Identifier: 0BSD
   A file that opens a table of another file, public.c; it is refused if they
   were compiled with different options: the exit status is 1. */
#include "idem.h"

IDEM_DEFINE_MEMORY(small, 4, 8, 0, 0, 0);

int main(void);

int main(void)
{
    static const idem_config config = {
        small_capacity, small_senders, small_key_max, small_response_max,
        small_state_max, 0, NULL, 0, 0, NULL, NULL, NULL, 0, 0, 0,
        { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16 }
    };
    static idem_table table;
    int result = idem_open(&table, &config, small_memory, sizeof small_memory,
                           0);

    return result == IDEM_OK ? 0 : result == IDEM_E_ARG ? 1 : 2;
}
