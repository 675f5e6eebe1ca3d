/* SPDX-License-Identifier: 0BSD */
/* The same device without idem.h: it executes what arrives.  It answers first
   and then executes, or the other way round; neither helps. */
#ifndef NAIVE_H
#define NAIVE_H

#include "device.h"

typedef struct naive {
    const device_port *port;
    protocol_decoder   decoder;
    int                answers_first;
    const char        *ledger;      /* a file: a line "scope key ml" a pour */
    uint32_t           pours;
    uint32_t           ml;
    uint32_t           labels;
} naive;

/* Reads the ledger; labels is how many there are.  Keeps port and path. */
void naive_start(naive *n, const device_port *port, const char *ledger,
                 uint32_t labels, int answers_first);

/* As device_receive */
void naive_receive(naive *n, uint8_t byte);

#endif
