/* SPDX-License-Identifier: 0BSD */
/* cc -I../.. -I/usr/include/postgresql gateway.c effect.c fleet.c text.c \
 *    redis.c postgres.c dynamodb.c -lmosquitto -lhiredis -lpq -lcurl \
 *    -ljansson -o gateway
 * ./gateway --id g1 --store redis://localhost &
 * ./gateway --id g2 --store redis://localhost &
 *
 * One of several gateways in front of pumps: the broker gives each command to
 * one of them (a shared subscription), each command is executed once by all
 * together.  Commands and answers are those of ../mqtt/pumpd.c, so pour.c there
 * is the sender; so is what executes a command, but for the total.
 *
 * What has to be looked after in a fleet: a gateway that is suspended for
 * longer than its lease, just before the effect, still has it when it wakes up,
 * while another has taken over.  Only the pump can refuse that: hand it
 * claim->token, and let it refuse what is smaller than the largest it has seen
 * for that key.  Here the lease is longer than any suspension in the test.
 */
#define _POSIX_C_SOURCE 200809L
#define IDEM_IMPLEMENTATION
#include "effect.h"
#include "../mqtt/command.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { RESPONSE_MAX = 48, LEASE_MS = 3000, HOUR_MS = 3600 * 1000 };

static const char help[] =
    "gateway [options]\n"
    "one of several that pour what is asked for over MQTT, once\n\n"
    "  --host H --port P   of the broker (127.0.0.1, 1883)\n"
    "  --id NAME           of this gateway (gateway)\n"
    "  --store URL         what all gateways share (redis://127.0.0.1)\n"
    "  --secret FILE       16 random bytes, the same for all (gateway.secret)\n"
    "  --log FILE          what was poured (pump.log)\n"
    "  --ml-ms MS          how long the pump takes for 1 ml (0)\n"
    "  --no-idem           execute whatever comes, to see what happens\n";

typedef struct device {
    const char *host, *id, *store, *secret, *log;
    int      port, ml_ms, no_idem;
    fleet    f;
    idem_config config;
} gateway;

static volatile sig_atomic_t stop;

static void on_signal(int number)
{
    (void)number;
    stop = 1;
}

static void pause_ms(long ms)
{
    struct timespec t = { ms / 1000, ms % 1000 * 1000000 };

    nanosleep(&t, NULL);
}

/* ----------------------------------------------------------------- the pump */

/* The line that a command leaves in the log. */
static const char *line_of(const command *c, long ml)
{
    static char line[EFFECT_LINE];
    const unsigned char *key = (const unsigned char *)c->key;
    int at = snprintf(line, sizeof line, "%.100s ", c->topic);

    for (size_t i = 0; i < c->key_len && i < 160; i++)
        at += sprintf(line + at, "%02x", key[i]);
    sprintf(line + at, " %ld\n", ml);
    return line;
}

/* The effect. */
static void pour(const command *c, long ml)
{
    pause_ms(ml * c->device->ml_ms);
    effect_do(line_of(c, ml));
}

/* A handler of idem.h: it does not know that it runs in a fleet. */
static int execute(idem_job *job)
{
    static char response[RESPONSE_MAX];
    command *c = (command *)job->ctx;
    idem_outcome *outcome = &job->outcome;
    long ml = command_amount(c);

    outcome->response = response;
    if (!ml) {
        outcome->failed = 1;
        outcome->code = INVALID;
        outcome->response_len =
            (size_t)snprintf(response, sizeof response, "not 1 to 1000 ml");
        return IDEM_HANDLED;
    }
    if (job->answer != IDEM_EXECUTE && effect_was_done(line_of(c, ml)))
        fprintf(stderr, "gateway: %s: interrupted before, it had poured\n",
                c->topic);
    else
        pour(c, ml);
    outcome->response_len =
        (size_t)snprintf(response, sizeof response, "poured %ld ml", ml);
    return IDEM_HANDLED;
}

/* ------------------------------------------------------------------ answers */

/* Executes a command, unless one of the fleet has, and answers it. */
static void take_command(struct mosquitto *m, command *c)
{
    char response[RESPONSE_MAX];
    idem_reply reply;
    idem_request request = {
        .scope = c->topic, .scope_len = strlen(c->topic),
        .key = c->key, .key_len = c->key_len,
        .payload = c->payload, .payload_len = c->payload_len,
        .buffer = response, .buffer_size = sizeof response };
    const char *text;
    int result = fleet_run(&c->device->f, &reply, &request, execute, c);

    if (result == IDEM_DONE || result == IDEM_REPLAY) {
        command_answer(c, m, command_reason(result, &reply), 0, response,
                       reply.response_len);
        return;
    }
    text = idem_text(result);
    if (result < 0)
        fprintf(stderr, "gateway: %s: %s; %s\n", c->topic, text,
                c->device->f.reason);
    // Whether it was done the store will know; the sender asks again.
    if (result != IDEM_E_STORAGE && result != IDEM_E_FENCED)
        command_answer(c, m, command_reason(result, &reply),
                       reply.retry_after_ms, text, strlen(text));
}

/* What most gateways do: execute whatever comes. */
static void take_command_blindly(struct mosquitto *m, command *c)
{
    long ml = command_amount(c);
    char text[RESPONSE_MAX];

    if (ml)
        pour(c, ml);
    snprintf(text, sizeof text, "poured %ld ml", ml);
    command_answer(c, m, ml ? POURED : INVALID, 0, text, strlen(text));
}

/* --------------------------------------------------------------------- MQTT */

static void on_message(struct mosquitto *m, void *ctx,
                       const struct mosquitto_message *message,
                       const mosquitto_property *properties)
{
    command c;

    command_open(&c, (gateway *)ctx, message, properties);
    if (c.device->no_idem)
        take_command_blindly(m, &c);
    else
        take_command(m, &c);
    command_close(&c);
}

static void on_connect(struct mosquitto *m, void *ctx, int result, int flags,
                       const mosquitto_property *properties)
{
    (void)ctx, (void)flags, (void)properties;
    if (result == 0)
        mosquitto_subscribe_v5(m, NULL, "$share/fleet/pump/+/command", 1, 0,
                               NULL);
    else
        fprintf(stderr, "gateway: the broker refuses: %s\n",
                mosquitto_reason_string(result));
}

static void on_subscribe(struct mosquitto *m, void *ctx, int mid, int count,
                         const int *granted, const mosquitto_property *p)
{
    (void)m, (void)ctx, (void)mid, (void)count, (void)granted, (void)p;
    puts("ready");
    fflush(stdout);
}

static void run(gateway *g)
{
    struct mosquitto *m;
    int result;

    mosquitto_lib_init();
    m = mosquitto_new(g->id, true, g);      // what a killed one had is resent
    if (!m)
        effect_die("mosquitto_new", strerror(errno));
    mosquitto_int_option(m, MOSQ_OPT_PROTOCOL_VERSION, MQTT_PROTOCOL_V5);
    mosquitto_int_option(m, MOSQ_OPT_TCP_NODELAY, 1);
    mosquitto_connect_v5_callback_set(m, on_connect);
    mosquitto_subscribe_v5_callback_set(m, on_subscribe);
    mosquitto_message_v5_callback_set(m, on_message);
    result = mosquitto_connect_bind_v5(m, g->host, g->port, 30, NULL, NULL);
    while (!stop) {
        if (result != MOSQ_ERR_SUCCESS) {
            pause_ms(100);
            result = mosquitto_reconnect(m);
        }
        if (result == MOSQ_ERR_SUCCESS)
            result = mosquitto_loop(m, 100, 1);
    }
    mosquitto_disconnect(m);
    mosquitto_destroy(m);
    mosquitto_lib_cleanup();
}

/* ------------------------------------------------------------------ opening */

static void open_fleet(gateway *g)
{
    int result;

    effect_read_secret(&g->config, g->secret);
    g->config.capacity = 1;             // not looked at
    g->config.key_max = 160;
    g->config.response_max = RESPONSE_MAX;
    g->config.lease_ms = LEASE_MS;
    g->config.retention_ms = HOUR_MS;
    g->config.max_attempts = 255;       // each is looked up in the log first
    result = fleet_open(&g->f, g->store, &g->config);
    if (result != IDEM_OK)
        effect_die(idem_text(result), g->f.reason);
}

/* Where the value of an option goes: text, or else a number. */
static const char **text_of(gateway *g, const char *name)
{
    return !strcmp(name, "--host")     ? &g->host
           : !strcmp(name, "--id")     ? &g->id
           : !strcmp(name, "--store")  ? &g->store
           : !strcmp(name, "--secret") ? &g->secret
           : !strcmp(name, "--log")    ? &g->log
                                       : NULL;
}

static int *number_of(gateway *g, const char *name)
{
    return !strcmp(name, "--port")    ? &g->port
           : !strcmp(name, "--ml-ms") ? &g->ml_ms
                                      : NULL;
}

static void parse(gateway *g, char **argv)
{
    for (argv++; *argv; argv++) {
        const char *name = *argv, **text = text_of(g, name);
        int *number = number_of(g, name);
        if (!strcmp(name, "--help")) {
            fputs(help, stdout);
            exit(0);
        }
        if (!strcmp(name, "--no-idem")) {
            g->no_idem = 1;
            continue;
        }
        if ((!text && !number) || !*++argv)
            effect_die(name, "what?  see --help");
        if (text)
            *text = *argv;
        else
            *number = atoi(*argv);
    }
}

int main(int argc, char **argv)
{
    static gateway g = { .host = "127.0.0.1", .id = "gateway",
                         .store = "redis://127.0.0.1",
                         .secret = "gateway.secret", .log = "pump.log",
                         .port = 1883 };
    struct sigaction action;

    (void)argc;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_signal;
    parse(&g, argv);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    signal(SIGPIPE, SIG_IGN);           // hiredis writes to what may be broken
    effect_open(g.log);
    if (!g.no_idem)
        open_fleet(&g);
    run(&g);
    if (!g.no_idem)
        fleet_close(&g.f);
    return 0;
}
