/* SPDX-License-Identifier: 0BSD */
/* The same calls on whatever keeps the promises: idem.h in RAM or in a file, or
 * a fleet.  What idem.h is told as a tick is really waited for in a fleet. */
#ifndef SUBJECT_H
#define SUBJECT_H

#define _POSIX_C_SOURCE 200809L
#define IDEM_FILE_STORAGE
#include "fleet.h"

typedef enum kind { RAM, JOURNAL, REDIS, POSTGRES, DYNAMODB, KINDS } kind;

typedef struct subject {
    kind     kind;
    const char *place;          /* path of the file, or URL */
    idem_config config;
    fleet    f;
    idem_table table;
    idem_file file;
    void    *memory;
    uint32_t now;
} subject;

/* Opens what `place` names: "ram", "file:PATH" or a URL. */
int  subject_open(subject *s, const char *place, const idem_config *config);
void subject_close(subject *s);
int  subject_is_fleet(const subject *s);

/* Lets `ms` pass, and what more it takes to be sure of it. */
void subject_wait(subject *s, uint32_t ms);

/* A call of either: idem.h is told the time, the store of a fleet has its own.
   (But idem_delivered wants none.) */
#define SUBJECT(s, call, ...)                                                  \
    (subject_is_fleet(s) ? fleet_##call(&(s)->f, __VA_ARGS__)                  \
                         : idem_##call(&(s)->table, __VA_ARGS__, (s)->now))

#endif
