/* SPDX-License-Identifier: 0BSD */
#include "host.h"
#include "../clock.h"
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

uint32_t host_millis(void)
{
    return (uint32_t)clock_ms();
}

void host_sleep_us(uint32_t us)
{
    struct timespec time;

    time.tv_sec = us / 1000000;
    time.tv_nsec = (long)(us % 1000000) * 1000;
    nanosleep(&time, NULL);
}

/* Splitmix32: any seed will do. */
uint32_t host_random(uint32_t *seed, uint32_t below)
{
    uint32_t z = *seed += 0x9E3779B9u;

    z = (z ^ z >> 16) * 0x21F0AAADu;
    z = (z ^ z >> 15) * 0x735A2D97u;
    return (uint32_t)((uint64_t)(z ^ z >> 15) * below >> 32);
}

void host_die(const char *what)
{
    perror(what);
    exit(2);
}

uint32_t host_number(const char *text, uint32_t most)
{
    char *end;
    unsigned long value = strtoul(text ? text : "", &end, 10);

    if (!text || *text < '0' || *text > '9' || *end || value > most) {
        fprintf(stderr, "\"%s\" is not a number up to %lu\n",
                text ? text : "", (unsigned long)most);
        exit(2);
    }
    return (uint32_t)value;
}

int host_help(int argc, char **argv, const char *help)
{
    int asked = argc == 2 && strcmp(argv[1], "--help") == 0;

    fputs(help, asked ? stdout : stderr);
    return asked ? 0 : 2;
}

/* ---------------------------------------------------------------------------
   lines
   ------------------------------------------------------------------------ */

int host_make_raw(int fd)
{
    struct termios t;

    if (tcgetattr(fd, &t) < 0)
        return -1;
    t.c_iflag = IGNBRK;
    t.c_oflag = 0;
    t.c_lflag = 0;
    t.c_cflag = (t.c_cflag & ~(tcflag_t)(CSIZE | PARENB)) | CS8 | CREAD |
                CLOCAL;
    t.c_cc[VMIN] = 1;
    t.c_cc[VTIME] = 0;
    return tcsetattr(fd, TCSANOW, &t);
}

static int connect_unix(const char *path)
{
    struct sockaddr_un address;
    int fd;

    memset(&address, 0, sizeof address);
    address.sun_family = AF_UNIX;
    if (strlen(path) >= sizeof address.sun_path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    strcpy(address.sun_path, path);
    fd = socket(AF_UNIX, SOCK_STREAM, 0);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&address,
                           sizeof address) == 0)
        return fd;
    return -1;
}

/* *why is set where errno does not have it. */
static int connect_tcp(const char *host_and_port, const char **why)
{
    char host[256];
    const char *port = strrchr(host_and_port, ':');
    struct addrinfo hints, *found, *a;
    int fd = -1, result;

    if (!port || (size_t)(port - host_and_port) >= sizeof host) {
        *why = "HOST:PORT, of at most 255 characters, is expected";
        return -1;
    }
    memcpy(host, host_and_port, (size_t)(port - host_and_port));
    host[port - host_and_port] = 0;
    memset(&hints, 0, sizeof hints);
    hints.ai_socktype = SOCK_STREAM;
    result = getaddrinfo(host, port + 1, &hints, &found);
    if (result != 0) {
        *why = gai_strerror(result);
        return -1;
    }
    for (a = found; a && fd < 0; a = a->ai_next) {
        fd = socket(a->ai_family, a->ai_socktype, a->ai_protocol);
        if (fd >= 0 && connect(fd, a->ai_addr, a->ai_addrlen) < 0) {
            close(fd);
            fd = -1;
        }
    }
    freeaddrinfo(found);
    return fd;
}

int host_open_line(const char *name)
{
    const char *why = NULL;
    struct stat is;
    int fd;

    signal(SIGPIPE, SIG_IGN);           // a socket that was closed: host_read
    if (strncmp(name, "unix:", 5) == 0)
        fd = connect_unix(name + 5);
    else if (strncmp(name, "tcp:", 4) == 0)
        fd = connect_tcp(name + 4, &why);
    else
        fd = open(name, O_RDWR | O_NOCTTY | O_NONBLOCK);    // without a carrier
    if (fd >= 0 && fstat(fd, &is) == 0 && S_ISREG(is.st_mode)) {
        why = "a file, whose content would be overwritten";
        close(fd);
        fd = -1;
    }
    if (fd < 0 || (isatty(fd) && host_make_raw(fd) < 0) ||
        fcntl(fd, F_SETFL, O_NONBLOCK) < 0) {
        fprintf(stderr, "%s: %s\n", name, why ? why : strerror(errno));
        return -1;
    }
    return fd;
}

int host_read(int fd, void *dst, size_t size, int timeout_ms)
{
    struct pollfd wait;
    ssize_t len;

    wait.fd = fd;
    wait.events = POLLIN;
    if (poll(&wait, 1, timeout_ms) <= 0)
        return 0;
    len = read(fd, dst, size);
    if (len < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : -1;
    if (len == 0)
        errno = EPIPE;
    return len > 0 ? (int)len : -1;
}

int host_write(int fd, const void *src, size_t len)
{
    return write(fd, src, len) == (ssize_t)len;
}
