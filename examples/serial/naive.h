/* SPDX-License-Identifier: 0BSD */
/* The same device without idem.h: it executes what arrives.  It answers first
   and then executes, or the other way round; neither helps.  Portable as
   device.c is. */
#ifndef NAIVE_H
#define NAIVE_H

#include "device.h"

/* Adds a line "scope key ml\n", a pour, to what outlasts a restart; so that
   there is no half of a line, whenever power goes. */
typedef void naive_ledger(const char *line, size_t len);

typedef struct naive {
    const device_port *port;
    protocol_decoder   decoder;
    int                answers_first;
    naive_ledger      *ledger;
    uint32_t           pours;
    uint32_t           ml;
    uint32_t           labels;
    uint8_t            blanks;      /* in the line that is remembered */
    uint32_t           number;      /* after the second */
} naive;

/* labels is how many there are.  Keeps port and ledger. */
void naive_start(naive *n, const device_port *port, naive_ledger *ledger,
                 uint32_t labels, int answers_first);

/* Takes the next character of what the ledger recorded before. */
void naive_remember(naive *n, char c);

/* As device_receive */
void naive_receive(naive *n, uint8_t byte);

#endif
