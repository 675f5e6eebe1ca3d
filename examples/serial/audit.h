/* SPDX-License-Identifier: 0BSD */
/* Finds out what really happened: from the files of the device (its flash or
   its ledger, and the labels), and from the answers that the controller got. */
#ifndef AUDIT_H
#define AUDIT_H

#include <stdint.h>

#define AUDIT_COMMANDS_MAX 1000u

typedef struct audit {
    uint32_t commands;
    uint32_t once;
    uint32_t twice;             /* or more often */
    uint32_t never;             /* though it was answered, or asked for */
    uint32_t wrong;             /* commands with an answer that is not true, not
                                   the same each time, or missing */
    uint32_t strange;           /* things in the files that nobody asked for */
    uint32_t interrupted;       /* attempts that a kill ended; only idem.h
                                   knows */
} audit;

/* What became of the same commands, sent again when their responses were
   forgotten */
typedef struct audit_again {
    uint32_t executed;
    uint32_t refused;           /* as too old, and never answered otherwise */
} audit_again;

/* dir has `answers`, and what the device left: with idem.h `flash` and
   `labels`, without it `ledger` and `labels`.  Returns 0, or -1 after printing
   what cannot be read. */
int audit_make(audit *a, const char *dir, uint32_t seed, uint32_t commands,
               int with_idem);

/* The pours and labels that a device with idem.h has made: to be asked for
   before and after. */
uint32_t audit_effects(const char *dir);

/* dir has `answers-again` too; effects are those before. */
int audit_make_again(audit_again *a, const char *dir, uint32_t commands,
                     uint32_t effects);

#endif
