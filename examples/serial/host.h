/* SPDX-License-Identifier: 0BSD */
/* POSIX functions for the programs of this example. */
#ifndef HOST_H
#define HOST_H

#include <stddef.h>
#include <stdint.h>

/* Milliseconds, from anywhere on: a tick */
uint32_t host_millis(void);
void host_sleep_us(uint32_t us);

/* The next number, uniform below `below`; the same for the same seed. */
uint32_t host_random(uint32_t *seed, uint32_t below);

/* Opens "unix:PATH" or "tcp:HOST:PORT" by connecting, anything else as a
   terminal, which becomes raw: no echo, no translation.  Reads and writes do
   not block, and a line that is closed raises no SIGPIPE from then on.  Returns
   the descriptor, or -1 after printing the cause. */
int host_open_line(const char *name);
int host_make_raw(int fd);

/* Reads what there is within timeout_ms (-1: for ever).  Returns the bytes, 0
   if there were none, -1 with errno if the other end is gone. */
int host_read(int fd, void *dst, size_t size, int timeout_ms);

/* Writes as much as goes; the rest is lost, as on a line without flow
   control.  Returns whether it was all. */
int host_write(int fd, const void *src, size_t len);

/* Prints what failed, with errno, and ends the program. */
void host_die(const char *what);

/* The number of an option, or the end of the program. */
uint32_t host_number(const char *text, uint32_t most);

/* Prints the help that was asked for, or that is needed; returns the program's
   exit status. */
int host_help(int argc, char **argv, const char *help);

#endif
