/* SPDX-License-Identifier: 0BSD */
/* The connection of pumpd to the broker. */
#define _POSIX_C_SOURCE 200809L
#include "pumpd.h"

static void on_message(struct mosquitto *m, void *ctx,
                       const struct mosquitto_message *message,
                       const mosquitto_property *properties)
{
    static const char retained[] = "a command must not be retained";
    pumpd *d = (pumpd *)ctx;
    command c;

    // One call of mosquitto_loop may bring several.  After a signal they are
    // left, as if they came later: their senders ask again.
    if (*d->stop)
        return;
    command_open(&c, d, message, properties);
    // A broker gives a retained message to everybody who comes, for ever: also
    // when its key is forgotten.
    if (message->retain)
        command_answer(&c, m, RETAINED, 0, retained, sizeof retained - 1);
    else
        pumpd_take(m, &c);
    command_close(&c);
}

/* Subscribes to commands: without our own messages, without those retained
   before, and with a mark on those that are published as retained. */
static void on_connect(struct mosquitto *m, void *ctx, int result, int flags,
                       const mosquitto_property *properties)
{
    pumpd *d = (pumpd *)ctx;

    (void)flags, (void)properties;
    if (connection_accepted(&d->broker, result))
        mosquitto_subscribe_v5(m, NULL, "pump/+/command", d->broker.qos,
                               MQTT_SUB_OPT_NO_LOCAL |
                                   MQTT_SUB_OPT_SEND_RETAIN_NEVER |
                                   MQTT_SUB_OPT_RETAIN_AS_PUBLISHED, NULL);
}

static void on_subscribe(struct mosquitto *m, void *ctx, int id, int count,
                         const int *granted, const mosquitto_property *p)
{
    (void)m, (void)ctx, (void)id, (void)p;
    if (!command_granted("pumpd", count, granted))
        exit(1);
}

static void on_disconnect(struct mosquitto *m, void *ctx, int reason,
                          const mosquitto_property *properties)
{
    (void)m, (void)properties;
    connection_ended(&((pumpd *)ctx)->broker, reason);
}

static struct mosquitto *new_client(pumpd *d)
{
    struct mosquitto *m = mosquitto_new(d->broker.id, false, d);

    if (!m)                             // false: the broker keeps a session
        pumpd_die("mosquitto_new", strerror(errno));
    mosquitto_int_option(m, MOSQ_OPT_PROTOCOL_VERSION, MQTT_PROTOCOL_V5);
    mosquitto_connect_v5_callback_set(m, on_connect);
    mosquitto_subscribe_v5_callback_set(m, on_subscribe);
    mosquitto_disconnect_v5_callback_set(m, on_disconnect);
    mosquitto_message_v5_callback_set(m, on_message);
    return m;
}

/* After the connection broke: with a new client, which has nothing in hand.
   With QoS 2 libmosquitto keeps over that what waits to be released, even if
   the broker has forgotten it.  One that is kept is given to us when a later
   message has its number, perhaps after its answer was forgotten; and when
   there are as many as it takes at once, whatever comes is a protocol error,
   for ever.  What is lost with a client the sender repeats. */
static int connect_again(struct mosquitto **m, pumpd *d)
{
    connection_wait(&d->broker);
    mosquitto_destroy(*m);
    *m = new_client(d);
    return connection_first(&d->broker, *m, SESSION_S);
}

void pumpd_run(pumpd *d)
{
    struct mosquitto *m;
    int result;

    mosquitto_lib_init();
    m = new_client(d);
    result = connection_first(&d->broker, m, SESSION_S);
    while (!*d->stop) {
        connection_report(&d->broker, result);
        if (result != MOSQ_ERR_SUCCESS)
            result = connect_again(&m, d);
        if (result == MOSQ_ERR_SUCCESS)
            result = mosquitto_loop(m, 100, 1);
        connection_look(&d->broker, m);
        if (!d->no_idem)
            idem_maintain(&d->table, pumpd_millis());
    }
    mosquitto_disconnect(m);
    mosquitto_destroy(m);
    mosquitto_lib_cleanup();
}
