/* SPDX-License-Identifier: 0BSD */
/* A connection to an MQTT broker: its options, and messages about its failures.
   For pumpd.c, pour.c, and the gateway of a fleet. */
#ifndef CONNECTION_H
#define CONNECTION_H

#include "../clock.h"
#include <errno.h>
#include <mosquitto.h>
#include <mqtt_protocol.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct connection {
    const char *program;        // for messages
    const char *host, *id;
    int      port, qos;
    int      reported;          // what is wrong, as printed since the
    int      refused;           // broker last took us; why it refuses us
    int      taken_over;        // the broker reports: by a client with our id
    int      short_lives;       // connections in a row that ended in SHORT_MS
    long long accepted_ms;      // when the last one was; 0: not yet
    long long empty_ms;         // when nothing waited in its socket
} connection;

// No command is longer, nor an answer: the broker is to drop what is.  What
// does not fit into memory would come again at each connection, and nothing
// else.
enum { PACKET_MAX = 131072 };

// That many short connections in a row are hardly the network's fault.
enum { SHORT_MS = 1000, SHORT_LIVES = 20 };

#define CONNECTION_OPTIONS                                                     \
    "  --host H --port P   of the broker (127.0.0.1, 1883)\n"                  \
    "  --qos N             0 to 2 (1)\n"

static inline void connection_pause(long ms)
{
    struct timespec t = { ms / 1000, ms % 1000 * 1000000 };

    nanosleep(&t, NULL);
}

static inline void connection_die(const connection *c, const char *what,
                                  const char *why)
{
    fprintf(stderr, "%s: %s: %s\n", c->program, what, why);
    exit(1);
}

/* The number of an option, or the end of the program. */
static inline long connection_number(const connection *c, const char *name,
                                     const char *value, long least, long most)
{
    char *end, limits[64];
    long n;

    errno = 0;
    n = strtol(value, &end, 10);
    snprintf(limits, sizeof limits, "a number from %ld to %ld", least, most);
    if (end == value || *end || errno || n < least || n > most)
        connection_die(c, name, limits);
    return n;
}

/* Takes an option if it is one of CONNECTION_OPTIONS, or --id; returns whether
   it was. */
static inline int connection_option(connection *c, const char *name,
                                    const char *value)
{
    if (!strcmp(name, "--host"))
        c->host = value;
    else if (!strcmp(name, "--port"))
        c->port = (int)connection_number(c, name, value, 1, 65535);
    else if (!strcmp(name, "--qos"))
        c->qos = (int)connection_number(c, name, value, 0, 2);
    else if (!strcmp(name, "--id"))
        c->id = value;
    else
        return 0;
    return 1;
}

/* Prints what is wrong with the connection, when that is something else. */
static inline void connection_report(connection *c, int result)
{
    const char *why = result != MOSQ_ERR_ERRNO ? mosquitto_strerror(result)
                      : errno                  ? strerror(errno)
                                               : "the connection broke";

    if (result != c->reported && result != MOSQ_ERR_SUCCESS)
        fprintf(stderr, "%s: %s:%d: %s; trying again\n", c->program, c->host,
                c->port, why);
    if (result != MOSQ_ERR_SUCCESS)
        c->reported = result;
}

/* Connects for the first time.  The broker keeps what comes while we are away
   for session_s. */
static inline int connection_first(connection *c, struct mosquitto *m,
                                   uint32_t session_s)
{
    mosquitto_property *properties = NULL;
    int result;

    c->empty_ms = clock_ms();
    mosquitto_property_add_int32(&properties, MQTT_PROP_MAXIMUM_PACKET_SIZE,
                                 PACKET_MAX);
    if (session_s)
        mosquitto_property_add_int32(&properties,
                                     MQTT_PROP_SESSION_EXPIRY_INTERVAL,
                                     session_s);
    result = mosquitto_connect_bind_v5(m, c->host, c->port, 30, NULL,
                                       properties);
    mosquitto_property_free_all(&properties);
    return result;
}

/* After each turn of libmosquitto: notes if all that had come was read.  (With
   TLS ask SSL_pending(mosquitto_ssl_get(m)) too: that has read ahead.) */
static inline void connection_look(connection *c, struct mosquitto *m)
{
    struct pollfd in = { mosquitto_socket(m), POLLIN, 0 };
    long long now = clock_ms();

    if (poll(&in, 1, 0) == 0)           // even if there is no connection
        c->empty_ms = now;
}

/* True if a message that was read last may have come longer ago than that: its
   answer may be forgotten, so it must not be executed, and its sender asks
   again.  A program that is suspended, or that others keep busy, reads such
   ones.  Ask with the claim, before the effect: a program may be suspended
   between an earlier look and the claim. */
static inline int connection_is_late(const connection *c, int seconds)
{
    return clock_ms() - c->empty_ms > 1000LL * seconds;
}

/* For the callback of a connection: returns whether the broker took it. */
static inline int connection_accepted(connection *c, int result)
{
    if (result != 0 && result != c->refused)
        fprintf(stderr, "%s: the broker refuses: %s; trying again\n",
                c->program, mosquitto_reason_string(result));
    c->refused = result;
    if (result == 0) {
        c->reported = MOSQ_ERR_SUCCESS;
        c->accepted_ms = clock_ms();
    }
    return result == 0;
}

/* Counts connections that ended at once. */
static inline void connection_count(connection *c)
{
    long long lived = clock_ms() - c->accepted_ms;

    if (!c->accepted_ms)
        return;
    c->accepted_ms = 0;
    c->short_lives = lived < SHORT_MS ? c->short_lives + 1 : 0;
}

/* Waits before the next attempt to connect.  Two clients with one id end each
   other's connection, each time that one of them connects.  Not every broker
   reports it; in any case limit its rate, and report it to a person. */
static inline void connection_wait(connection *c)
{
    connection_count(c);
    if (c->taken_over || c->short_lives >= SHORT_LIVES) {
        fprintf(stderr, "%s: the broker ends each connection at once: %s "
                "another client with the id %s.  Each needs its own: --id\n",
                c->program, c->taken_over ? "there is" : "is there", c->id);
        connection_pause(4900);
        c->short_lives = 0;
    }
    connection_pause(c->refused ? 1000 : 100);
    c->taken_over = 0;
}

/* For the callback of a disconnection, which comes twice: with the broker's
   reason, and then as the connection is lost. */
static inline void connection_ended(connection *c, int reason)
{
    if (reason == MQTT_RC_SESSION_TAKEN_OVER)
        c->taken_over = 1;
}

#endif
