/* SPDX-License-Identifier: 0BSD */
/* cc -I../.. -I/usr/include/postgresql gateway.c gateway_pump.c effect.c \
 *    fleet.c connect.c text.c decide.c redis.c postgres.c \
 *    postgres_connection.c dynamodb.c dynamodb_http.c \
 *    -lmosquitto -lhiredis -lpq -lcurl -ljansson -o gateway
 * (umask 077; head -c 16 /dev/urandom >gateway.secret)
 * ./gateway --new-log pump.log
 * ./gateway --id g1 --store redis://localhost &
 * ./gateway --id g2 --store redis://localhost &
 *
 * One of several gateways in front of pumps: the broker gives each command to
 * one of them (a shared subscription), each command is executed once by all
 * together.  Commands and answers are those of ../mqtt/pumpd.c, so pour.c there
 * is the sender.
 *
 * While it pours it renews its lease.  If it cannot, it stops, for another
 * gateway may take over.  If it is suspended for longer than its lease, just
 * before it pours, another has taken over: then it finds in the log, which
 * fences (effect.h), that the other has begun, and does not pour.  If your pump
 * has a memory, give it job->claim->token, and let it refuse a token below the
 * largest that it has seen for that key.
 */
#define _POSIX_C_SOURCE 200809L
#define IDEM_IMPLEMENTATION
#include "gateway.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char help[] =
    "gateway [options]\n"
    "one of several gateways: each command over MQTT is executed once\n\n"
    "  --host H --port P   of the broker (127.0.0.1, 1883)\n"
    "  --id NAME           of this gateway (gateway)\n"
    "  --store URL         what all gateways share (FLEET_STORE of the\n"
    "                      environment, or redis://127.0.0.1); others see an\n"
    "                      option, so a password belongs there\n"
    "  --secret FILE       16 random bytes, the same for all (gateway.secret)\n"
    "  --log FILE          log of the pours, the same for all (pump.log)\n"
    "  --new-log FILE      makes a log and ends\n"
    "  --lease-ms MS       how long others wait if this one dies (10000)\n"
    "  --ml-ms MS          how long the pump takes for 1 ml (0)\n"
    "  --no-idem           without a store: executes repeats too\n";

static volatile sig_atomic_t stop;

static void on_signal(int number)
{
    (void)number;
    stop = 1;
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
    int result;

    c->device->place = effect_place();
    c->device->held_ms = clock_ms() + c->device->lease_ms;
    result = fleet_run(&c->device->f, &reply, &request, gateway_execute, c);
    if (result == IDEM_DONE || result == IDEM_REPLAY) {
        // A gateway with a larger response_max may have recorded a longer one,
        // which is not in the buffer.
        command_answer(c, m, command_reason(result, &reply), 0, response,
                       reply.response_len <= sizeof response
                           ? reply.response_len : 0);
        return;
    }
    text = idem_text(result);
    if (result < 0)
        fprintf(stderr, "gateway: %s: %s; %s\n", c->topic, text,
                c->device->f.reason);
    // Where the handler was called, or may have been, the sender hears nothing,
    // and asks again: the store will know.
    if (result == IDEM_BUSY ||
        (!reply.claim.token && result != IDEM_E_STORAGE))
        command_answer(c, m, command_reason(result, &reply),
                       reply.retry_after_ms, text, strlen(text));
}

/* What most gateways do: execute whatever comes. */
static void take_command_blindly(struct mosquitto *m, command *c)
{
    long ml = command_amount(c);
    char text[RESPONSE_MAX];

    if (ml)
        gateway_pour_blindly(c, ml);
    snprintf(text, sizeof text, "poured %ld ml", ml);
    command_answer(c, m, ml ? POURED : INVALID, 0, text, strlen(text));
}

/* --------------------------------------------------------------------- MQTT */

static void on_message(struct mosquitto *m, void *ctx,
                       const struct mosquitto_message *message,
                       const mosquitto_property *properties)
{
    gateway *g = (gateway *)ctx;
    command c;

    // A retained one comes again whenever a gateway subscribes, even after its
    // retention.
    if (message->retain)
        return;
    command_open(&c, g, message, properties);
    if (g->no_idem)
        take_command_blindly(m, &c);
    else
        take_command(m, &c);
    command_close(&c);
}

static void on_connect(struct mosquitto *m, void *ctx, int result, int flags,
                       const mosquitto_property *properties)
{
    (void)flags, (void)properties;
    if (connection_accepted(&((gateway *)ctx)->broker, result))
        mosquitto_subscribe_v5(m, NULL, "$share/fleet/pump/+/command", 1, 0,
                               NULL);
}

static void on_disconnect(struct mosquitto *m, void *ctx, int reason,
                          const mosquitto_property *properties)
{
    (void)m, (void)properties;
    connection_ended(&((gateway *)ctx)->broker, reason);
}

static void on_subscribe(struct mosquitto *m, void *ctx, int mid, int count,
                         const int *granted, const mosquitto_property *p)
{
    (void)m, (void)ctx, (void)mid, (void)p;
    if (!command_granted("gateway", count, granted))
        exit(1);
    puts("ready");
    fflush(stdout);
}

static void run(gateway *g)
{
    connection *broker = &g->broker;
    struct mosquitto *m;
    int result;

    mosquitto_lib_init();
    m = mosquitto_new(broker->id, true, g); // what a killed one had is resent
    if (!m)
        effect_die("mosquitto_new", strerror(errno));
    mosquitto_int_option(m, MOSQ_OPT_PROTOCOL_VERSION, MQTT_PROTOCOL_V5);
    mosquitto_int_option(m, MOSQ_OPT_TCP_NODELAY, 1);
    mosquitto_connect_v5_callback_set(m, on_connect);
    mosquitto_subscribe_v5_callback_set(m, on_subscribe);
    mosquitto_disconnect_v5_callback_set(m, on_disconnect);
    mosquitto_message_v5_callback_set(m, on_message);
    result = connection_first(broker, m, 0);
    while (!stop) {
        connection_report(broker, result);
        if (result != MOSQ_ERR_SUCCESS) {
            connection_wait(broker);
            result = mosquitto_reconnect(m);
        }
        if (result == MOSQ_ERR_SUCCESS)
            result = mosquitto_loop(m, 100, 1);
        connection_look(broker, m);
    }
    mosquitto_disconnect(m);
    mosquitto_destroy(m);
    mosquitto_lib_cleanup();
}

/* ------------------------------------------------------------------ opening */

static void open_fleet(gateway *g)
{
    effect_read_secret(&g->config, g->secret);
    g->config.capacity = 1;             // not looked at
    g->config.key_max = KEY_MAX;
    g->config.response_max = RESPONSE_MAX;
    g->config.lease_ms = (uint32_t)g->lease_ms;
    g->config.retention_ms = RETENTION_S * UINT32_C(1000);
    g->config.max_attempts = 255;       // each is looked up in the log first
    effect_need(&g->f, fleet_open(&g->f, effect_store(g->store), &g->config));
}

static gateway this_one = {
    .broker = { .program = "gateway", .host = "127.0.0.1", .id = "gateway",
                .port = 1883 },
    .store = "", .secret = "gateway.secret",
    .log = "pump.log", .lease_ms = 10000 };

/* Where the value of an option goes: text, or else a number. */
static const struct {
    const char *name, **text;
    int      *number, most;
} options[] = {
    { "--host", &this_one.broker.host, NULL, 0 },
    { "--id", &this_one.broker.id, NULL, 0 },
    { "--store", &this_one.store, NULL, 0 },
    { "--log", &this_one.log, NULL, 0 },
    { "--secret", &this_one.secret, NULL, 0 },
    { "--port", NULL, &this_one.broker.port, 65535 },
    { "--ml-ms", NULL, &this_one.ml_ms, 1000000 },
    { "--lease-ms", NULL, &this_one.lease_ms, IDEM_LEASE_MAX } };
enum { LEASE_MIN_MS = 1000 };
enum { OPTIONS = sizeof options / sizeof *options };

static void parse(gateway *g, char **argv)
{
    int i = 0;

    for (argv++; *argv && i < OPTIONS; argv++) {
        if (!strcmp(*argv, "--no-idem")) {
            g->no_idem = 1;
            continue;
        }
        for (i = 0; i < OPTIONS && strcmp(*argv, options[i].name) != 0; i++)
            continue;
        if (!argv[1] || i == OPTIONS)
            break;
        argv++;
        if (options[i].text)
            *options[i].text = *argv;
        else
            *options[i].number = effect_number(options[i].name, *argv,
                                               options[i].most);
    }
    if (*argv && !strcmp(*argv, "--new-log") && argv[1]) {
        effect_make(argv[1]);
        exit(0);
    }
    if (*argv) {
        fputs(help, stdout);
        exit(strcmp(*argv, "--help") != 0);
    }
    if (g->lease_ms < LEASE_MIN_MS)     // it is renewed in each eighth
        effect_die("--lease-ms", "at least 1000");
}

int main(int argc, char **argv)
{
    gateway *g = &this_one;
    struct sigaction action;

    (void)argc;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_signal;
    parse(g, argv);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    signal(SIGPIPE, SIG_IGN);           // hiredis writes to what may be broken
    effect_open(g->log);
    if (!g->no_idem)
        open_fleet(g);
    run(g);
    if (!g->no_idem)
        fleet_close(&g->f);
    return 0;
}
