/* SPDX-License-Identifier: 0BSD */
#define _POSIX_C_SOURCE 200809L
#include "pump.h"
#include "../clock.h"
#include "../folder.h"
#include "../random.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

// A log's first line is the title and a name of 16 digits.
static const char title[] = "pumpd log ";
enum { TITLE = sizeof title - 1, DIGITS = 16, HEADER = TITLE + DIGITS + 1 };

static int failed(pump_driver *p, const char *why)
{
    p->why = why;
    return -1;
}

/* Appends to the log, durably. */
static int append(pump_driver *p, const char *text, size_t len)
{
    ssize_t written = write(p->fd, text, len);

    if (written < 0)
        return failed(p, strerror(errno));
    p->mark.length += (uint64_t)written;
    if ((size_t)written < len)
        return failed(p, "the disk is full");
    return fdatasync(p->fd) == 0 ? 0 : failed(p, strerror(errno));
}

/* 0 if the file that has the log's name is the one that is open, and nobody
   else has written to it or cut it short. */
static int check_place(pump_driver *p)
{
    struct stat named, opened;

    if (stat(p->path, &named) != 0 || fstat(p->fd, &opened) != 0)
        return failed(p, strerror(errno));
    if (named.st_dev != opened.st_dev || named.st_ino != opened.st_ino)
        return failed(p, "replaced by another file: restore the log");
    if ((uint64_t)opened.st_size != p->mark.length)
        return failed(p, "somebody else wrote to it, or truncated it");
    return 0;
}

/* ------------------------------------------------------------------ opening */

/* Begins a log in a file that is empty, or has a truncated first line. */
static int begin_log(pump_driver *p)
{
    char header[HEADER + 1];

    if (!random_fill(&p->mark.id, sizeof p->mark.id))
        return failed(p, "/dev/urandom: no random bytes");
    snprintf(header, sizeof header, "%s%016" PRIx64 "\n", title, p->mark.id);
    p->mark.length = 0;
    if (ftruncate(p->fd, 0) != 0 || !folder_sync(p->path))
        return failed(p, strerror(errno));
    return append(p, header, HEADER);
}

int pump_open(pump_driver *p, const char *path)
{
    char header[HEADER + 1] = "", last = '\n', *end;
    ssize_t len;
    off_t size;

    p->path = path;
    p->fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (p->fd < 0)
        return failed(p, strerror(errno));
    size = lseek(p->fd, 0, SEEK_END);
    len = pread(p->fd, header, HEADER, 0);
    if (size < 0 || len < 0 ||
        (size > 0 && pread(p->fd, &last, 1, size - 1) != 1))
        return failed(p, strerror(errno));
    if (strncmp(header, title, (size_t)len < sizeof title - 1
                                   ? (size_t)len : sizeof title - 1) != 0)
        return failed(p, "not a log of pumpd");
    if (len < HEADER)
        return begin_log(p);
    p->mark.id = strtoull(header + TITLE, &end, 16);
    if (end != header + HEADER - 1 || *end != '\n')
        return failed(p, "not a log of pumpd");
    p->mark.length = (uint64_t)size;
    return last == '\n' ? 0 : append(p, "\n", 1);
}

int pump_is_new(const pump_driver *p)
{
    return p->mark.length == HEADER;
}

int pump_has(const pump_driver *p, const pump_mark *mark)
{
    return p->mark.id == mark->id && p->mark.length >= mark->length;
}

/* -------------------------------------------------------------------- lines */

/* The line of an order, to be freed; NULL: `why`.  Bytes of the topic that
   could be taken for another part of a line are written as numbers. */
static char *make_line(pump_driver *p, const char *what,
                       const pump_order *order)
{
    const unsigned char *key = (const unsigned char *)order->key;
    const unsigned char *at = (const unsigned char *)order->topic;
    char *line = NULL;
    size_t size = 0, i;
    FILE *text = open_memstream(&line, &size);

    if (!text) {
        failed(p, strerror(errno));
        return NULL;
    }
    fprintf(text, "%s ", what);
    for (; *at; at++)
        fprintf(text, *at > ' ' && *at <= '~' && *at != '\\' ? "%c" : "\\x%02x",
                *at);
    putc(' ', text);
    for (i = 0; i < order->key_len; i++)
        fprintf(text, "%02x", key[i]);
    fprintf(text, " %ld ml\n", order->ml);
    if (fclose(text) != 0) {
        free(line);
        failed(p, strerror(errno));
        return NULL;
    }
    return line;
}

/* Adds a line to the log, durably, and checks that it is in the log. */
static int enter(pump_driver *p, const char *what, const pump_order *order)
{
    char *line = make_line(p, what, order);
    int result = line ? append(p, line, strlen(line)) : -1;

    free(line);
    return result == 0 ? check_place(p) : -1;
}

int pump_pour(pump_driver *p, const pump_order *order)
{
    // Without this line nothing is poured: so who finds none knows that nothing
    // was.
    if (enter(p, "begins", order) != 0)
        return -1;
    clock_wait(order->ml * p->ml_ms);   // the pump runs
    return enter(p, "ends", order);
}

/* How much of a line is not the amount: verb, topic and key. */
static size_t name_length(const char *line)
{
    size_t len = 0;
    int word;

    for (word = 0; word < 3; word++)
        len += strcspn(line + len, " ") + 1;
    return len;
}

/* The last line decides.  The line of another amount is one of this key, too.
   A line may be older than the claim: a sender must not use a key again after
   its retention (README.md). */
int pump_look(pump_driver *p, const pump_order *order)
{
    char *begins = make_line(p, "begins", order);
    char *ends = make_line(p, "ends", order);
    char *line = NULL;
    size_t size = 0;
    FILE *log = fopen(p->path, "r");
    int found = PUMP_NOTHING;

    if (!log)
        failed(p, strerror(errno));
    if (!log || !begins || !ends || check_place(p) != 0)
        found = PUMP_BLIND;
    while (found >= PUMP_NOTHING && getline(&line, &size, log) > 0) {
        if (strncmp(line, begins, name_length(begins)) == 0)
            found = PUMP_BEGAN;
        else if (strcmp(line, ends) == 0)
            found = PUMP_ENDED;
    }
    // Even without an error of the file: there may be no memory for a line.
    if (found != PUMP_BLIND && !feof(log))
        found = failed(p, strerror(errno));     // PUMP_BLIND
    if (log)
        fclose(log);
    free(begins);
    free(ends);
    free(line);
    return found;
}
