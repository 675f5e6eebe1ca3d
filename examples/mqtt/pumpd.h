/* SPDX-License-Identifier: 0BSD */
/* The parts of pumpd: memory.c has its memory, broker.c its connection, pumpd.c
   the rest. */
#ifndef PUMPD_H
#define PUMPD_H

#define IDEM_FILE_STORAGE
#include "idem.h"
#include "command.h"
#include "connection.h"
#include "pump.h"

#include <signal.h>

enum { KEY_MAX = 160, RESPONSE_MAX = 48 };

// Application state
typedef struct pumpd_state {
    uint64_t total;             // ml
    pump_mark log;
    uint64_t log_is_whole;      // 1: it has been this one from the start
} pumpd_state;

typedef struct device {
    connection broker;
    const char *journal, *log;
    int      no_idem;
    const volatile sig_atomic_t *stop;  // not 0: a signal has come
    pump_driver pump;
    pumpd_state state;
    uint64_t log_is_whole;      // of the log that there is now
    idem_file file;
    idem_config config;
    idem_table table;
    void    *memory;
} pumpd;

/* Ends the daemon. */
void pumpd_die(const char *what, const char *why);

/* Ends it if a call of idem.h has failed.  What that call was about may be done
   or not: the next start finds out. */
void pumpd_need(const pumpd *d, int result);

uint32_t pumpd_millis(void);

/* Prints how a command ended.  `text` must stay. */
int pumpd_end(idem_outcome *outcome, int reason, const char *text);

/* Opens journal and log, or ends the daemon. */
void pumpd_open(pumpd *d);

/* Takes commands until a signal has come, and the pump has stopped. */
void pumpd_run(pumpd *d);

/* A command has come: executes it once, and answers it. */
void pumpd_take(struct mosquitto *m, command *c);

#endif
