/* SPDX-License-Identifier: 0BSD */
#define _POSIX_C_SOURCE 200809L
#include "effect.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *log_path;
static int log_fd;

void effect_die(const char *what, const char *why)
{
    fprintf(stderr, "%s: %s\n", what, why);
    exit(1);
}

void effect_open(const char *path)
{
    log_path = path;
    log_fd = open(path, O_WRONLY | O_CREAT | O_APPEND, 0644);
    if (log_fd < 0)
        effect_die(path, strerror(errno));
}

void effect_do(const char *line)
{
    size_t len = strlen(line);

    if (write(log_fd, line, len) != (ssize_t)len || fdatasync(log_fd) != 0)
        effect_die(log_path, strerror(errno));
}

int effect_was_done(const char *line)
{
    char other[EFFECT_LINE];
    FILE *log = fopen(log_path, "r");
    int found = 0;

    if (!log)
        effect_die(log_path, strerror(errno));  // blind: do nothing
    while (!found && fgets(other, sizeof other, log))
        found = strcmp(line, other) == 0;
    fclose(log);
    return found;
}

void effect_read_secret(idem_config *config, const char *path)
{
    int fd = open(path, O_RDONLY);
    ssize_t size = sizeof config->secret;

    if (fd < 0 || read(fd, config->secret, (size_t)size) != size)
        effect_die(path, "cannot be read, or is shorter than 16 bytes");
    close(fd);
}
