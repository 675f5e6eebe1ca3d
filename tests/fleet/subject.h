/* SPDX-License-Identifier: 0BSD */
/* The same calls on each subject: idem.h in RAM or in a file, or a fleet.  Time
 * passes when a test asks: idem.h gets another tick, the clock of a store is
 * set ahead (servers/ahead.c).  The code of idem.h is here, once. */
#ifndef SUBJECT_H
#define SUBJECT_H

#define _POSIX_C_SOURCE 200809L
#define IDEM_FILE_STORAGE
#define IDEM_IMPLEMENTATION
#include "fleet.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SECTOR = 4096, SECTORS = 256 };

/* DynamoDB's time is known to the second: a lease is made a second longer, and
   who looks may be a second late. */
enum { SLACK_MS = 1, DYNAMODB_SLACK_MS = 2100 };

typedef enum kind { RAM, JOURNAL, REDIS, POSTGRES, DYNAMODB } kind;

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

/* A call of either: idem.h is given the time, a fleet's store has its own.
   (But idem_delivered wants none.) */
#define SUBJECT(s, call, ...)                                                  \
    (subject_is_fleet(s) ? fleet_##call(&(s)->f, __VA_ARGS__)                  \
                         : idem_##call(&(s)->table, __VA_ARGS__, (s)->now))

static uint32_t subject_tick;       // of the one whose handler runs

static inline uint32_t subject_now(void)
{
    return subject_tick;
}

static inline int subject_is_fleet(const subject *s)
{
    return s->kind >= REDIS;
}

/* What "ram", "file:PATH" or a URL names. */
static inline kind subject_kind(const char *place)
{
    static const char *const with[] = { "ram", "file:", "redis:", "postgres",
                                        "dynamodb:" };
    kind k = RAM;

    while (k < DYNAMODB && strncmp(place, with[k], strlen(with[k])) != 0)
        k++;
    return k;
}

static inline int subject_open_table(subject *s)
{
    const idem_config *c = &s->config;
    size_t size = IDEM_JOURNAL_MEMORY_SIZE(c->capacity, c->key_max,
                                           c->response_max, 0, 1) +
                  IDEM_SENDERS_MEMORY_SIZE(c->senders);
    int result = IDEM_OK;

    if (s->kind == JOURNAL) {
        result = idem_file_open(&s->file, s->place + 5, SECTOR, SECTORS);
        s->config.storage = &s->file.storage;
    }
    s->memory = malloc(size);
    if (result == IDEM_OK)
        result = idem_open(&s->table, c, s->memory, size, s->now);
    return result;
}

static inline int subject_open(subject *s, const char *place,
                               const idem_config *config)
{
    memset(s, 0, sizeof *s);
    s->file.fd = -1;
    s->kind = subject_kind(place);
    s->place = place;
    s->config = *config;
    return subject_is_fleet(s) ? fleet_open(&s->f, place, &s->config)
                               : subject_open_table(s);
}

static inline void subject_close(subject *s)
{
    if (subject_is_fleet(s))
        fleet_close(&s->f);
    else if (s->kind == JOURNAL && s->file.fd >= 0)
        idem_file_close(&s->file);
    free(s->memory);
}

/* How far a store's clock is ahead is in the file of its name in $CLOCKS. */
static inline int subject_open_clock(const subject *s)
{
    static const char *const names[] = { "", "", "redis", "postgres",
                                         "dynamodb" };
    const char *folder = getenv("CLOCKS");
    char path[300];

    snprintf(path, sizeof path, "%s/%s.ahead", folder ? folder : "",
             names[s->kind]);
    return open(path, O_RDWR);
}

/* Lets `ms` pass, and what more it takes to be sure of it. */
static inline void subject_wait(subject *s, uint32_t ms)
{
    uint32_t slack = s->kind == DYNAMODB ? DYNAMODB_SLACK_MS : SLACK_MS;
    int64_t us;
    int fd;

    if (!subject_is_fleet(s)) {
        s->now += ms;
        return;
    }
    fd = subject_open_clock(s);
    if (fd < 0 || pread(fd, &us, sizeof us, 0) != sizeof us)
        exit(2);
    us += ((int64_t)ms + slack) * 1000;
    if (pwrite(fd, &us, sizeof us, 0) != sizeof us)
        exit(2);
    close(fd);
}

#endif
