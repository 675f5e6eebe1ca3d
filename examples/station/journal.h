/* SPDX-License-Identifier: 0BSD */
/* A table with a journal in a file, for a daemon: opened, or refused with a
   reason.  Include it after idem.h, which needs IDEM_FILE_STORAGE. */
#ifndef STATION_JOURNAL_H
#define STATION_JOURNAL_H

#include "../reason.h"
#include "../secret.h"
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

enum { JOURNAL_SECTOR = 65536 };
enum { JOURNAL_STEP_MS = 10000 };   // longer than any wait between two calls

typedef struct journal {
    const char *path;
    idem_config config;         // filled in before journal_open, but for
    idem_file   file;           // secret and storage
    idem_table  table;
    void       *memory;
} journal;

/* The table's tick, for any thread.  It stands while this process is suspended:
   meanwhile copies of commands wait in its sockets, and no outcome may be
   forgotten before they are read.  A late tick does no harm (>>time). */
static inline uint32_t journal_millis(void)
{
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    static uint64_t last, tick;
    uint64_t now, passed, most = JOURNAL_STEP_MS;
    struct timespec t;

    pthread_mutex_lock(&mutex);
    clock_gettime(CLOCK_MONOTONIC, &t);
    now = (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
    passed = now - last;
    last = now;
    now = tick += passed < most ? passed : most;
    pthread_mutex_unlock(&mutex);
    return (uint32_t)now;
}

static inline void journal_die(const char *what, const char *why)
{
    fprintf(stderr, "%s: %s\n", what, why);
    exit(1);
}

/* Ends the program if a call has failed.  Nobody knows whether what it was to
   write is there: the next start finds out. */
static inline void journal_need(const journal *j, int result)
{
    if (result >= 0)
        return;
    reason_print(j->path, result, &j->table, &j->config);
    exit(1);
}

static inline void journal_open(journal *j)
{
    const idem_config *c = &j->config;
    uint32_t keys = c->capacity + c->senders;
    uint32_t sectors = (uint32_t)IDEM_SECTORS(
        keys, c->key_max, c->response_max, c->state_max, JOURNAL_SECTOR, 1);
    size_t size;

    if (secret_open_file(&j->config, &j->file, j->path, JOURNAL_SECTOR,
                         sectors) != IDEM_OK)
        exit(1);
    size = idem_memory_size(c);
    j->memory = malloc(size);
    journal_need(j, idem_open(&j->table, &j->config, j->memory, size,
                              journal_millis()));
}

/* True if nothing was ever written to it. */
static inline int journal_is_new(const journal *j)
{
    return secret_is_blank(j->path, j->file.storage.erased);
}

static inline void journal_close(journal *j)
{
    if (idem_file_close(&j->file) != IDEM_OK)
        journal_die(j->path, strerror(j->file.error));
    free(j->memory);
}

#endif
