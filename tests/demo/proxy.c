/* SPDX-License-Identifier: 0BSD */
/*
 * A bad network between MQTT clients and a broker: of the acknowledgements that
 * pass (PUBACK, PUBREC, PUBREL, PUBCOMP, in both directions) one in N is
 * swallowed, of the messages one in 2 N is torn; then the connection breaks.
 * After that there is peace for a while, so that who connects again, and gets
 * all at once what has piled up, gets somewhere.
 *
 *     proxy N SEED TARGET     prints the port that it listens at; at SIGTERM,
 *                             how much it has swallowed and torn
 *     proxy                   prints a port that is free, and ends
 */
#define _POSIX_C_SOURCE 200809L
#include <arpa/inet.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { PAIRS = 64, ROOM = 4096 };
enum { PUBLISH = 3, PUBACK = 4, PUBCOMP = 7 };
enum { PEACE_MS = 250 };

// One direction of a connection: bytes that are not a whole packet yet
typedef struct way {
    int     from, to;
    size_t  len;
    uint8_t bytes[ROOM];
} way;

static way ways[PAIRS][2];      // from 0: free
static uint32_t seed;
static unsigned one_in, swallowed, torn;
static long long peace_until;
static volatile sig_atomic_t stop;

static void on_signal(int number)
{
    (void)number;
    stop = 1;
}

/* xorshift32 of Marsaglia. */
static int one_of(unsigned n)
{
    seed ^= seed << 13;
    seed ^= seed >> 17;
    seed ^= seed << 5;
    return seed % n == 0;
}

static long long now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (long long)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static struct sockaddr_in loopback(uint16_t port)
{
    struct sockaddr_in a;

    memset(&a, 0, sizeof a);
    a.sin_family = AF_INET;
    a.sin_port = htons(port);
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return a;
}

/* A listening socket at a free port, which is printed. */
static int listen_anywhere(void)
{
    struct sockaddr_in a = loopback(0);
    socklen_t len = sizeof a;
    int s = socket(AF_INET, SOCK_STREAM, 0);

    if (s < 0 || bind(s, (struct sockaddr *)&a, sizeof a) || listen(s, 16) ||
        getsockname(s, (struct sockaddr *)&a, &len)) {
        perror("proxy");
        exit(1);
    }
    printf("%u\n", (unsigned)ntohs(a.sin_port));
    fflush(stdout);
    return s;
}

static void break_pair(way pair[2])
{
    close(pair[0].from);
    close(pair[1].from);
    memset(pair, 0, 2 * sizeof *pair);
}

static int send_all(int to, const uint8_t *p, size_t len)
{
    while (len) {
        ssize_t n = send(to, p, len, MSG_NOSIGNAL);
        if (n <= 0)
            return 0;
        p += n;
        len -= (size_t)n;
    }
    return 1;
}

/* Bytes of the packet that p begins with; 0 if that is not known yet. */
static size_t packet_len(const uint8_t *p, size_t len)
{
    size_t rest = 0;

    for (size_t i = 1; i < len && i < 5; i++) {
        rest |= (size_t)(p[i] & 127) << 7 * (i - 1);
        if (!(p[i] & 128))
            return 1 + i + rest;
    }
    return 0;
}

/* Hands a packet on.  False if the connection is to break. */
static int pass(way *w, size_t len)
{
    int type = w->bytes[0] >> 4;

    if (now_ms() < peace_until)
        return send_all(w->to, w->bytes, len);
    if (type >= PUBACK && type <= PUBCOMP && one_of(one_in)) {
        swallowed++;
        peace_until = now_ms() + PEACE_MS;
        return 0;
    }
    if (type == PUBLISH && one_of(2 * one_in)) {
        torn++;
        peace_until = now_ms() + PEACE_MS;
        send_all(w->to, w->bytes, len / 2);
        return 0;
    }
    return send_all(w->to, w->bytes, len);
}

/* Takes what has come, and hands on what is whole. */
static int pump(way *w)
{
    ssize_t n = read(w->from, w->bytes + w->len, ROOM - w->len);
    size_t len;

    if (n <= 0)
        return 0;
    w->len += (size_t)n;
    while ((len = packet_len(w->bytes, w->len)) != 0 && len <= w->len) {
        if (!pass(w, len))
            return 0;
        w->len -= len;
        memmove(w->bytes, w->bytes + len, w->len);
    }
    return w->len < ROOM;
}

static void take(int listener, uint16_t target)
{
    struct sockaddr_in a = loopback(target);
    int client = accept(listener, NULL, NULL);
    int broker = socket(AF_INET, SOCK_STREAM, 0);
    int i = 0;

    while (i < PAIRS && ways[i][0].from)
        i++;
    if (client < 0 || broker < 0 || i == PAIRS ||
        connect(broker, (struct sockaddr *)&a, sizeof a)) {
        close(client);
        close(broker);
        return;
    }
    ways[i][0].from = ways[i][1].to = client;
    ways[i][1].from = ways[i][0].to = broker;
}

int main(int argc, char **argv)
{
    struct sigaction action = { .sa_handler = on_signal };
    int listener = listen_anywhere();

    if (argc < 4)
        return 0;
    one_in = (unsigned)atoi(argv[1]);
    seed = (uint32_t)atoi(argv[2]) | 1;
    sigaction(SIGTERM, &action, NULL);
    while (!stop) {
        struct pollfd fds[1 + 2 * PAIRS];
        fds[0].fd = listener;
        for (int i = 0; i < 2 * PAIRS; i++)
            fds[1 + i].fd = ways[i / 2][0].from ? ways[i / 2][i % 2].from : -1;
        for (int i = 0; i < 1 + 2 * PAIRS; i++) {
            fds[i].events = POLLIN;
            fds[i].revents = 0;
        }
        if (poll(fds, 1 + 2 * PAIRS, -1) < 0)
            continue;
        for (int i = 0; i < 2 * PAIRS; i++)
            if (fds[1 + i].revents && ways[i / 2][0].from &&
                !pump(&ways[i / 2][i % 2]))
                break_pair(ways[i / 2]);
        if (fds[0].revents)
            take(listener, (uint16_t)atoi(argv[3]));
    }
    printf("swallowed %u torn %u\n", swallowed, torn);
    return 0;
}
