/* SPDX-License-Identifier: 0BSD
   Objects whose sizes are the RAM of tables with 16-byte keys and responses. */
#include "idem.h"

char table_journal[sizeof(idem_table) + sizeof(idem_journal)];
char keys_16[IDEM_MEMORY_SIZE(16, 16, 16, 0)];
char keys_116[IDEM_MEMORY_SIZE(116, 16, 16, 0)];
char journal_16[IDEM_JOURNAL_MEMORY_SIZE(16, 16, 16, 0, 8)];
char journal_116[IDEM_JOURNAL_MEMORY_SIZE(116, 16, 16, 0, 8)];
/* What each sender adds */
char sender_alone[sizeof(idem_sender)];
char sender_journal[IDEM_SENDERS_MEMORY_SIZE(1)];
/* and what each key and sender adds with a quota under IDEM_EVICT_OLDEST */
char quota_1[IDEM_QUOTA_MEMORY_SIZE(1, 1) - IDEM_QUOTA_MEMORY_SIZE(1, 0)];
/* All that a program has of 16 keys: the table, its memory; then 4 senders too,
   with a quota under IDEM_EVICT_OLDEST */
char ram_alone[sizeof(idem_table) + IDEM_MEMORY_SIZE(16, 16, 16, 0)];
char ram_journal[sizeof(idem_table) +
                 IDEM_JOURNAL_MEMORY_SIZE(16, 16, 16, 0, 8)];
char ram_senders[sizeof(idem_table) +
                 IDEM_JOURNAL_MEMORY_SIZE(16, 16, 16, 0, 8) +
                 IDEM_SENDERS_MEMORY_SIZE(4) + IDEM_QUOTA_MEMORY_SIZE(16, 4)];
/* README's example */
char example_memory[IDEM_JOURNAL_MEMORY_SIZE(120, 24, 16, 0, 8)];
char example_sectors[IDEM_SECTORS(120, 24, 16, 0, 4096, 8)];
