/* SPDX-License-Identifier: 0BSD */
#include "subject.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SECTOR = 4096, SECTORS = 256 };

/* DynamoDB's time is known to the second: a lease is made a second longer, and
   who looks may be a second behind. */
enum { SLACK_MS = 100, DYNAMODB_SLACK_MS = 2100 };

static int starts(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

static kind kind_of(const char *place)
{
    return starts(place, "file:")       ? JOURNAL
           : starts(place, "redis:")    ? REDIS
           : starts(place, "postgres:") ? POSTGRES
           : starts(place, "dynamodb:") ? DYNAMODB
                                        : RAM;
}

int subject_is_fleet(const subject *s)
{
    return s->kind >= REDIS;
}

static int open_table(subject *s)
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

int subject_open(subject *s, const char *place, const idem_config *config)
{
    memset(s, 0, sizeof *s);
    s->file.fd = -1;
    s->kind = kind_of(place);
    s->place = place;
    s->config = *config;
    return subject_is_fleet(s) ? fleet_open(&s->f, place, &s->config)
                               : open_table(s);
}

void subject_close(subject *s)
{
    if (subject_is_fleet(s))
        fleet_close(&s->f);
    else if (s->kind == JOURNAL && s->file.fd >= 0)
        idem_file_close(&s->file);
    free(s->memory);
}

void subject_wait(subject *s, uint32_t ms)
{
    uint32_t slack = s->kind == DYNAMODB ? DYNAMODB_SLACK_MS : SLACK_MS;
    struct timespec t = { (ms + slack) / 1000,
                          (long)((ms + slack) % 1000) * 1000000 };

    if (subject_is_fleet(s))
        nanosleep(&t, NULL);
    else
        s->now += ms;
}
