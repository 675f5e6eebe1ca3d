/* SPDX-License-Identifier: 0BSD */
/* An effect that takes time, and whose result can be seen afterwards: a pump
 * and its log.  Include it after journal.h.
 *
 * A command leaves two durable lines in the log: "begins" before the pump runs,
 * "poured" when it has stopped.  After a crash they show:
 *
 *     neither line     the pump has not run: the command may be executed
 *     both lines       it has poured: only the outcome is missing
 *     "begins" alone   some of it, nobody knows how much: look at the cup
 *
 * The log is the sensor, so it must be the one that belongs to the journal, and
 * whole.  Its first line names the journal; a log without it is refused.  Do
 * not rotate it. */
#ifndef STATION_PUMP_H
#define STATION_PUMP_H

#include "../clock.h"
#include "journal.h"
#include <sys/stat.h>

// Digits of scope and key, a sign between, a number of 21 characters.
enum { PUMP_ID = 2 * 255 + 1 + 21 + 1, PUMP_LINE = PUMP_ID + 32 };

/* What the log has of a command, and so what is to be done with it */
enum {
    PUMP_MAY_POUR,
    PUMP_HAS_POURED,
    PUMP_LOOK_AT_THE_CUP
};

typedef struct pump {
    const char *path;
    int      fd;
    off_t    size;              // of the log, at least
    uint32_t ml_ms;             // for 1 ml
    int      running;
    long long since_ms;         // while it is running, by a clock of its own
    uint32_t for_ms;
    long     ml;
    char     id[PUMP_ID];
    idem_claim claim;           // for the caller
} pump;

/* A command's name in the log: scope and key in hexadecimal digits, or scope,
   epoch and sequence. */
static inline void pump_id(char id[PUMP_ID], const idem_request *r)
{
    static const char digits[] = "0123456789abcdef";
    const uint8_t *scope = (const uint8_t *)r->scope;
    const uint8_t *key = (const uint8_t *)r->key;
    size_t at = 0, i;

    if (r->scope_len + r->key_len > 255)
        journal_die("pump", "a name is too long");  // more than any key_max
    for (i = 0; i < r->scope_len; i++, at += 2) {
        id[at] = digits[scope[i] >> 4];
        id[at + 1] = digits[scope[i] & 15];
    }
    id[at++] = '/';
    for (i = 0; i < r->key_len; i++, at += 2) {
        id[at] = digits[key[i] >> 4];
        id[at + 1] = digits[key[i] & 15];
    }
    id[at] = 0;
    if (r->key_len == 0)
        snprintf(id + at, PUMP_ID - at, "%lu.%lu", (unsigned long)r->epoch,
                 (unsigned long)r->sequence);
}

/* The log's first line: a hash under the journal's secret. */
static inline void pump_first_line(char line[PUMP_LINE], const idem_config *c)
{
    idem_fingerprint_state state;
    uint64_t hash;

    idem_fingerprint_init(&state, c);
    idem_fingerprint_update(&state, "log", 3);
    hash = idem_fingerprint_final(&state);
    snprintf(line, PUMP_LINE, "log %08lx%08lx\n", (unsigned long)(hash >> 32),
             (unsigned long)(hash & 0xFFFFFFFF));
}

/* Adds a line, durably.  Ends the program if that fails: whether the line is
   there is not known, and the next start looks. */
static inline void pump_write(pump *p, const char *line)
{
    size_t len = strlen(line);

    ssize_t written = write(p->fd, line, len);

    if (written < 0 || fdatasync(p->fd) != 0)
        journal_die(p->path, strerror(errno));
    if ((size_t)written < len)
        journal_die(p->path, "the disk is full");
    p->size += (off_t)len;
}

/* Begins the log of a new journal.  One that power has left without its whole
   first line is begun again. */
static inline void pump_begin_log(pump *p, const char *first)
{
    if (ftruncate(p->fd, 0) != 0)
        journal_die(p->path, strerror(errno));
    pump_write(p, first);
    if (!folder_sync(p->path))
        journal_die(p->path, strerror(errno));
}

/* Opens the log of an open journal; makes it if that is new.  A last line that
   a full disk or power has left half written is ended; nobody relied on it. */
static inline void pump_open(pump *p, const journal *j)
{
    char line[PUMP_LINE], first[PUMP_LINE] = "", last = '\n';
    size_t len;
    ssize_t got;

    p->fd = open(p->path, O_RDWR | O_APPEND | O_CLOEXEC |
                              (journal_is_new(j) ? O_CREAT : 0), 0644);
    if (p->fd < 0)
        journal_die(p->path, strerror(errno));
    pump_first_line(line, &j->config);
    len = strlen(line);
    got = pread(p->fd, first, len, 0);
    if (got < 0)
        journal_die(p->path, strerror(errno));
    if ((size_t)got < len && memcmp(first, line, (size_t)got) == 0 &&
        journal_is_new(j)) {
        pump_begin_log(p, line);
        return;
    }
    if (strcmp(first, line) != 0)
        journal_die(p->path, "not the log of this journal, or emptied: "
                             "restore the log that was there");
    p->size = lseek(p->fd, 0, SEEK_END);
    if ((size_t)p->size > len && journal_is_new(j))
        journal_die(p->path, "has commands, but the journal is new: restore "
                             "that, or remove the log too");
    if (pread(p->fd, &last, 1, p->size - 1) != 1)
        journal_die(p->path, strerror(errno));
    if (last != '\n')
        pump_write(p, "\n");
}

/* Ends the program if the log was replaced or shortened under us. */
static inline void pump_check(const pump *p)
{
    struct stat opened, named;

    if (fstat(p->fd, &opened) != 0 || stat(p->path, &named) != 0)
        journal_die(p->path, strerror(errno));
    if (opened.st_ino != named.st_ino || opened.st_dev != named.st_dev ||
        opened.st_size < p->size)
        journal_die(p->path, "replaced or truncated: restore the log that "
                             "was there");
}

/* The line of a command that has poured; returns its length. */
static inline int pump_poured(char line[PUMP_LINE], const char *id, long ml)
{
    return snprintf(line, PUMP_LINE, "poured %s %ld\n", id, ml);
}

/* What to do with a command whose claim was granted: on IDEM_RECOVER and
   IDEM_UNCERTAIN the log decides.  Its last line counts; a line of another
   amount is one of this key.  A line may be older than the claim: a sender must
   not use a key again after its retention (README.md). */
static inline int pump_look(const pump *p, int answer, const char *id, long ml)
{
    char begins[PUMP_LINE], poured[PUMP_LINE], line[PUMP_LINE];
    size_t len;
    int found = PUMP_MAY_POUR;
    FILE *f;

    pump_check(p);
    if (answer == IDEM_EXECUTE)
        return PUMP_MAY_POUR;
    snprintf(begins, sizeof begins, "begins %s ", id);
    pump_poured(poured, id, ml);
    len = strlen(begins);               // as far, both name the command
    f = fopen(p->path, "r");
    if (!f)
        journal_die(p->path, strerror(errno));
    while (fgets(line, sizeof line, f))
        if (strcmp(line, poured) == 0)
            found = PUMP_HAS_POURED;
        else if (strncmp(line, begins, len) == 0 ||
                 strncmp(line, poured, len) == 0)
            found = PUMP_LOOK_AT_THE_CUP;
    if (ferror(f))
        journal_die(p->path, "cannot be read");
    fclose(f);
    return found;
}

/* Starts the pump. */
static inline void pump_start(pump *p, const idem_claim *claim, const char *id,
                              long ml)
{
    char line[PUMP_LINE];

    snprintf(line, sizeof line, "begins %s %ld\n", id, ml);
    pump_write(p, line);
    snprintf(p->id, sizeof p->id, "%s", id);
    p->claim = *claim;
    p->ml = ml;
    p->running = 1;
    p->since_ms = clock_ms();
    p->for_ms = (uint32_t)ml * p->ml_ms;
}

/* Milliseconds until it stops */
static inline uint32_t pump_left(const pump *p)
{
    long long passed = clock_ms() - p->since_ms;

    return p->running && passed < p->for_ms ? p->for_ms - (uint32_t)passed : 0;
}

/* True once, when the pump has stopped. */
static inline int pump_stops(pump *p)
{
    char line[PUMP_LINE];

    if (!p->running || pump_left(p) > 0)
        return 0;
    pump_poured(line, p->id, p->ml);
    pump_write(p, line);
    p->running = 0;
    return 1;
}

/* The millilitres of a command, 1 to 1000; 0 if it is none. */
static inline long pump_amount(const void *text, size_t len)
{
    char copy[8], *end;
    long ml;

    if (len == 0 || len >= sizeof copy)
        return 0;
    memcpy(copy, text, len);
    copy[len] = 0;
    if (strspn(copy, "0123456789") != len)
        return 0;
    ml = strtol(copy, &end, 10);
    return *end || ml > 1000 ? 0 : ml;
}

#endif
