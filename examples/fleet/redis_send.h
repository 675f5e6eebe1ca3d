/* SPDX-License-Identifier: 0BSD */
/* Runs scripts in Redis, and reads what they answer. */
#ifndef FLEET_REDIS_SEND_H
#define FLEET_REDIS_SEND_H

#include "store.h"

#include <hiredis/hiredis.h>

enum { REDIS_ARGUMENTS = 16 };

/* EVAL and its arguments; numbers are kept as text in it.  Not to be copied. */
typedef struct redis_command {
    int     n;
    const char *at[REDIS_ARGUMENTS];
    size_t  len[REDIS_ARGUMENTS];
    char    text[REDIS_ARGUMENTS][24];
} redis_command;

/* Starts the command that runs a script; its names are made by itself. */
void redis_start(redis_command *c, const fleet *f, const char *script);
void redis_add(redis_command *c, const void *data, size_t len);
void redis_add_number(redis_command *c, uint64_t number);

/* Runs it; *record is set if it tells one. */
int redis_run(fleet *f, const redis_command *c, fleet_record *record);

#endif
