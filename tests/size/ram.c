/* SPDX-License-Identifier: 0BSD
   Objects whose sizes are the RAM of tables with 16-byte keys and responses. */
#include "idem.h"

char table_struct[sizeof(idem_table)];
char memory_16[IDEM_MEMORY_SIZE(16, 16, 16, 0)];
char memory_64[IDEM_MEMORY_SIZE(64, 16, 16, 0)];
char memory_256[IDEM_MEMORY_SIZE(256, 16, 16, 0)];
#if SIZE_MAX > 65535        /* else no object is so large */
char memory_1024[IDEM_MEMORY_SIZE(1024, 16, 16, 0)];
#endif

/* Per key, what is neither the user's nor stored for him: of slot and body all
   but fingerprint, code, time, retention and three lengths; and what finds it. */
char beyond_stored[sizeof(idem_slot) + sizeof(idem_body) -
                   (8 + 4 + 4 + 4 + 2 + 1 + 1) + sizeof(idem_link) +
                   IDEMI_WORDS * sizeof(idem_word)];

/* Per key, with a journal: all of it. */
char journal_key[sizeof(idem_slot) + sizeof(idem_place) + sizeof(idem_link) +
                 IDEMI_WORDS * sizeof(idem_word)];
char journal_64[IDEM_JOURNAL_MEMORY_SIZE(64, 16, 16, 0, 8, 8)];
