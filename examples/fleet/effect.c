/* SPDX-License-Identifier: 0BSD */
#define _DEFAULT_SOURCE
#include "effect.h"
#include "../clock.h"
#include "../folder.h"
#include "../random.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

// A log's first line is the title and a name of 16 digits.
static const char title[] = "fleet log, never to be cut or replaced: ";
enum { TITLE = sizeof title - 1, HEADER = TITLE + 16 + 1 };

static const char *log_path;
static int log_fd;
static uint64_t log_name;
static off_t log_seen;              // bytes there were at least

void effect_die(const char *what, const char *why)
{
    fprintf(stderr, "%s: %s\n", what, why);
    exit(1);
}

/* Appends, durably.  If it fails, whether it is there is not known. */
static void append(const char *text, size_t len)
{
    ssize_t written = write(log_fd, text, len);

    if (written < 0 || fdatasync(log_fd) != 0)
        effect_die(log_path, strerror(errno));
    if ((size_t)written < len)
        effect_die(log_path, "the disk is full");
    log_seen += written;
}

void effect_make(const char *path)
{
    char header[HEADER + 1];

    if (!random_fill(&log_name, sizeof log_name))
        effect_die("/dev/urandom", "no random name for a log");
    snprintf(header, sizeof header, "%s%016" PRIx64 "\n", title, log_name);
    log_path = path;
    log_fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND, 0644);
    if (log_fd < 0)
        effect_die(path, strerror(errno));
    append(header, HEADER);
    if (!folder_sync(path))
        effect_die(path, strerror(errno));
    close(log_fd);
}

void effect_open(const char *path)
{
    char header[HEADER + 1] = "", *end = header;

    log_path = path;
    log_fd = open(path, O_RDWR | O_APPEND);
    if (log_fd < 0)
        effect_die(path, errno != ENOENT ? strerror(errno)
                   : "no log: nobody knows which commands were executed.  "
                     "Restore it, or if none was, make one (--new-log)");
    if (pread(log_fd, header, HEADER, 0) == HEADER &&
        memcmp(header, title, TITLE) == 0)
        log_name = strtoull(header + TITLE, &end, 16);
    if (end != header + HEADER - 1 || *end != '\n')
        effect_die(path, "not a whole log: restore the one that was there");
}

/* ------------------------------------------------------------------ locking */

/* A minute; others hold it for a look and a line. */
#ifndef LOCK_TURNS
#define LOCK_TURNS 30000
#endif
enum { LOCK_TURN_MS = 2 };

/* Takes the lock, or ends the program: whoever is suspended while he holds it
   must not stop all others without a word. */
static void lock(void)
{
    int turns = LOCK_TURNS;

    while (flock(log_fd, LOCK_EX | LOCK_NB) != 0) {
        if (errno != EWOULDBLOCK && errno != EINTR)
            effect_die(log_path, strerror(errno));
        if (turns-- == 0)
            effect_die(log_path, "locked by another for a minute: is one of "
                                 "the fleet suspended?");
        clock_turn(LOCK_TURN_MS);
    }
}

static void unlock(void)
{
    flock(log_fd, LOCK_UN);
}

/* Takes the log, and looks whether it is still the one that was opened, with
   all that it had.  Ends a line that a full disk or a power cut left
   half-written: it is none. */
static void take_log(void)
{
    struct stat opened, named;
    char last;

    lock();
    if (fstat(log_fd, &opened) != 0 || stat(log_path, &named) != 0)
        effect_die(log_path, strerror(errno));
    if (opened.st_dev != named.st_dev || opened.st_ino != named.st_ino)
        effect_die(log_path, "replaced: restore the log that was there");
    if (opened.st_size < log_seen || opened.st_size < HEADER)
        effect_die(log_path, "truncated: restore the log that was there");
    log_seen = opened.st_size;
    if (pread(log_fd, &last, 1, log_seen - 1) != 1)
        effect_die(log_path, strerror(errno));
    if (last != '\n')
        append("?\n", 2);
}

long effect_place(void)
{
    take_log();
    unlock();
    return (long)log_seen;
}

/* ------------------------------------------------------------------ effects */

/* Writes a line, or the begin of one if `text` is "". */
static void make_line(char line[EFFECT_LINE], const char *what, const char *id,
                      const char *text)
{
    int len = snprintf(line, EFFECT_LINE, "%s %s %s", what, id, text);

    if (len < 0 || len >= EFFECT_LINE - 1)
        effect_die(log_path, "too long a line");
}

/* What the log has of an effect, from a place on. */
static int look(const char *id, const char *text, long place)
{
    char begins[EFFECT_LINE], ends[EFFECT_LINE], line[EFFECT_LINE];
    FILE *log = fopen(log_path, "r");
    int found = EFFECT_NONE;

    if (!log || fseek(log, place, SEEK_SET) != 0)
        effect_die(log_path, strerror(errno));  // blind: do nothing
    make_line(begins, "begins", id, "");
    make_line(ends, "ends", id, text);
    while (fgets(line, sizeof line, log)) {
        line[strcspn(line, "\n")] = 0;
        if (!strncmp(line, begins, strlen(begins)))
            found = EFFECT_BEGUN;
        else if (!strcmp(line, ends))
            found = EFFECT_DONE;
    }
    if (ferror(log))
        effect_die(log_path, strerror(errno));
    fclose(log);
    return found;
}

static void enter(const char *what, const char *id, const char *text)
{
    char line[EFFECT_LINE];

    make_line(line, what, id, text);
    strcat(line, "\n");
    append(line, strlen(line));
}

int effect_begin(const char *id, const char *text, long place)
{
    int found;

    take_log();
    found = look(id, text, place);
    if (found == EFFECT_NONE)
        enter("begins", id, text);
    unlock();
    return found;
}

void effect_end(const char *id, const char *text)
{
    take_log();
    enter("ends", id, text);
    unlock();
}

int effect_look(const char *id, const char *text)
{
    int found;

    take_log();
    found = look(id, text, 0);
    unlock();
    return found;
}

int effect_number(const char *option, const char *text, int most)
{
    char *end;
    long n = strtol(text, &end, 10);

    if (*text < '0' || *text > '9' || *end || n > most)
        effect_die(option, "not a number, or too large");
    return (int)n;
}

const char *effect_store(const char *option)
{
    const char *found = getenv("FLEET_STORE");

    return *option ? option : found ? found : "redis://127.0.0.1";
}

void effect_need(const fleet *f, int result)
{
    if (result != IDEM_OK)
        effect_die(f->reason, result != IDEM_E_FORMAT ? idem_text(result)
                   : "another log than theirs, another secret or version");
}

void effect_read_secret(idem_config *config, const char *path)
{
    char bytes[sizeof config->secret + 1];
    int fd = open(path, O_RDONLY);
    ssize_t len = fd < 0 ? -1 : read(fd, bytes, sizeof bytes);

    if (len < 0)
        effect_die(path, strerror(errno));
    // Digits of a secret are longer than it, and half of them half as random.
    if (len != sizeof config->secret)
        effect_die(path, "not 16 bytes: the secret of the fleet");
    memcpy(config->secret, bytes, sizeof config->secret);
    for (size_t i = 0; i < sizeof log_name; i++)
        config->secret[i] ^= (uint8_t)(log_name >> 8 * i);
    close(fd);
}
