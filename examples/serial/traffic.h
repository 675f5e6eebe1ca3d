/* SPDX-License-Identifier: 0BSD */
/* The commands for the device, the same for the same seed: the controller sends
   them, and the audit computes them again. */
#ifndef TRAFFIC_H
#define TRAFFIC_H

#include <stddef.h>
#include <stdint.h>

typedef struct traffic_command {
    char     scope[8];          /* who asks; each has keys of its own */
    char     key[16];           /* as labels have it: random digits, or with
                                   numbers "#1.42" */
    uint32_t epoch, sequence;   /* what it is called with numbers */
    uint8_t  payload[32];
    uint8_t  payload_len;
    uint16_t ml;                /* 0: it is a label */
} traffic_command;

/* From now on commands have numbers, not keys. */
void traffic_number(void);

/* Command number `index`, from 0 */
void traffic_make(traffic_command *command, uint32_t seed, uint32_t index);

/* The index of the command with this scope and key: its characters, which need
   not end with 0, or the bytes of its number.  TRAFFIC_NONE if there never is
   one. */
#define TRAFFIC_NONE UINT32_MAX
uint32_t traffic_find(const void *scope, size_t scope_len, const void *key,
                      size_t key_len);

#endif
