/* SPDX-License-Identifier: 0BSD */
/* A run of the demo: starts controller and device, is the bad line between
   them, kills the device, and has the files audited. */
#ifndef RUN_H
#define RUN_H

#include "audit.h"
#include "line.h"
#include <sys/types.h>

#define PATH_SIZE 512

typedef struct run_options {
    uint32_t    count, seed, kill_ms, early_ms;
    uint32_t    first_run, last_run;
    line_rates  rates;
    char        bin[PATH_SIZE];             /* where our programs are */
    const char *device;                     /* another one, or NULL */
    uint32_t    numbers;                    /* 1: instead of keys */
} run_options;
extern run_options options;

/* The three devices that are compared */
#define RUNS 3
typedef struct run_kind {
    const char *name;
    const char *dir;
    const char *no_idem;        /* the device's option, or NULL */
} run_kind;
extern const run_kind kinds[RUNS];

typedef struct end {
    int  master;                /* ours */
    int  slave;                 /* kept open: nothing is lost with the device */
    char name[128];
} end;

typedef struct run {
    uint32_t kind;
    char     dir[PATH_SIZE];
    uint32_t seed;
    end      to_controller, to_device;
    line     down, up;          /* to the device, and back */
    pid_t    controller, device;
    int      progress;          /* the controller's */
    uint32_t answered;
    uint32_t kills;
    uint32_t start_ms, shown_ms;
    uint32_t kill_at;
    int      kill_waits;        /* 1: for the device's first answer */
    int      status;            /* the controller's */
    int      over;
    int      again;             /* 1: a day later, and nobody is killed */
    audit    found;
    audit_again found_again;
} run;

/* Runs one of the kinds, and audits it; ends the program if that cannot be. */
void run_make(run *r, uint32_t kind);

/* The same commands to the same device, that of idem.h, a day later */
void run_again(run *r);

#endif
