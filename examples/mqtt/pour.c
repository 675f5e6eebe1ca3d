/* SPDX-License-Identifier: 0BSD */
/* cc -I../.. pour.c -lmosquitto -o pour && ./pour 2026-11-20/1 5
 *
 * Sends commands to pumpd, each with its idempotency key, and asks again with
 * the same key until there is an answer: whatever is lost or restarted between,
 * the pump pours once.  Prints key, ml, reason code and text of each answer.
 * When to ask again, and when to stop, is what idem_retry says.
 */
#define _POSIX_C_SOURCE 200809L
#define IDEM_STATIC
#define IDEM_IMPLEMENTATION
#include "idem.h"
#include <errno.h>
#include <mosquitto.h>
#include <mqtt_protocol.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const char help[] =
    "pour [options] KEY ML ...       or lines \"KEY ML\" on standard input\n"
    "asks pumpd to pour, again and again until there is an answer\n\n"
    "  --host H --port P   of the broker (127.0.0.1, 1883)\n"
    "  --qos N             0 to 2 (1)\n"
    "  --id NAME           sends to pump/NAME/command, hears pump/NAME/answer\n"
    "                      (panel)\n"
    "  --retry MS          so long an answer may take; then asks again (2000)\n"
    "  --deadline S        gives up after so long (43200, half of what pumpd\n"
    "                      remembers)\n"
    "  --property          the key goes in a user property\n";

typedef struct sender {
    const char *host, *id;
    int      port, qos, property;
    long     retry_ms;
    uint32_t deadline_s;
    struct mosquitto *m;
    int      result;            // of the connection
    int      ready;             // the broker has our subscription
    char     answer_topic[128];
    // The command under way
    const char *key, *ml;
    long long first_ms;         // when it began
    uint32_t times;             // how often it was asked since
    int      listening;         // for an answer
    int      verdict;           // what idem_retry says
    long long due;              // when that is over, or it is asked
    unsigned seed;
    char     reason[12], text[128];
} sender;

static long long now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (long long)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void die(const char *what)
{
    fprintf(stderr, "pour: %s\n", what);
    exit(1);
}

/* ------------------------------------------------------------------ answers */

/* Copies the user property `name`, if it is there. */
static void read_property(char *dst, size_t size, const char *wanted,
                          const mosquitto_property *p)
{
    char *name = NULL, *value = NULL;
    bool again = false;

    while ((p = mosquitto_property_read_string_pair(
                p, MQTT_PROP_USER_PROPERTY, &name, &value, again)) != NULL) {
        if (!strcmp(name, wanted))
            snprintf(dst, size, "%s", value);
        free(name);
        free(value);
        again = true;
    }
}

/* After an answer, as a result of idem.h has it, or silence */
static void decide(sender *s, int answer, uint32_t retry_after_ms)
{
    idem_patience patience = { 0 };
    idem_sent sent = { 0 };
    uint32_t delay;

    patience.base_ms = (uint32_t)s->retry_ms;
    patience.cap_ms = 4 * patience.base_ms;
    patience.deadline_ms = s->deadline_s * 1000;
    sent.times = s->times;
    sent.elapsed_ms = (uint32_t)(now_ms() - s->first_ms);
    sent.retry_after_ms = retry_after_ms;
    sent.random = (uint32_t)rand_r(&s->seed) << 16 ^ (uint32_t)rand_r(&s->seed);
    s->verdict = idem_retry(&delay, &patience, &sent, answer);
    s->listening = 0;
    s->due = now_ms() + delay;
}

/* An answer counts if it is to the command under way: one to an earlier command
   may come twice. */
static void on_message(struct mosquitto *m, void *ctx,
                       const struct mosquitto_message *message,
                       const mosquitto_property *properties)
{
    sender *s = (sender *)ctx;
    char wait[12] = "";
    void *key = NULL;
    uint16_t len = 0;

    (void)m;
    mosquitto_property_read_binary(properties, MQTT_PROP_CORRELATION_DATA, &key,
                                   &len, false);
    if (key && s->key && len == strlen(s->key) && !memcmp(key, s->key, len)) {
        read_property(wait, sizeof wait, "retry-after-ms", properties);
        read_property(s->reason, sizeof s->reason, "reason", properties);
        snprintf(s->text, sizeof s->text, "%.*s", message->payloadlen,
                 (const char *)message->payload);
        decide(s, *wait ? IDEM_BUSY : IDEM_OK, (uint32_t)atol(wait));
    }
    free(key);
}

static void on_subscribe(struct mosquitto *m, void *ctx, int id, int count,
                         const int *granted, const mosquitto_property *p)
{
    sender *s = (sender *)ctx;

    (void)m, (void)id, (void)count, (void)granted, (void)p;
    s->ready = 1;
    if (s->times == 0)
        s->due = 0;
}

static void on_connect(struct mosquitto *m, void *ctx, int result, int flags,
                       const mosquitto_property *p)
{
    sender *s = (sender *)ctx;

    (void)flags, (void)p;
    if (result == 0)
        mosquitto_subscribe_v5(m, NULL, s->answer_topic, s->qos, 0, NULL);
    else
        fprintf(stderr, "pour: the broker refuses: %s\n",
                mosquitto_reason_string(result));
}

static const char *why(int result)
{
    if (result != MOSQ_ERR_ERRNO)
        return mosquitto_strerror(result);
    return errno ? strerror(errno) : "the connection broke";
}

/* Says what is wrong with the connection, when that is something else. */
static void tell_connection(const sender *s)
{
    static int told = MOSQ_ERR_SUCCESS;

    if (s->result == told || s->result == MOSQ_ERR_SUCCESS)
        return;
    fprintf(stderr, "pour: %s:%d: %s; trying again\n", s->host, s->port,
            why(s->result));
    told = s->result;
}

/* ----------------------------------------------------------------- commands */

static void ask(sender *s)
{
    mosquitto_property *p = NULL;
    char topic[128];

    snprintf(topic, sizeof topic, "pump/%s/command", s->id);
    mosquitto_property_add_string(&p, MQTT_PROP_RESPONSE_TOPIC,
                                  s->answer_topic);
    if (s->property)
        mosquitto_property_add_string_pair(&p, MQTT_PROP_USER_PROPERTY, "key",
                                           s->key);
    else
        mosquitto_property_add_binary(&p, MQTT_PROP_CORRELATION_DATA, s->key,
                                      (uint16_t)strlen(s->key));
    mosquitto_publish_v5(s->m, NULL, topic, (int)strlen(s->ml), s->ml, s->qos,
                         false, p);
    mosquitto_property_free_all(&p);
    s->times++;
    s->listening = 1;
    s->due = now_ms() + s->retry_ms;
}

/* Sends a command until there is an answer, or it is too late for one. */
static void command(sender *s, const char *key, const char *ml)
{
    struct timespec pause = { 0, 50000000 };

    s->key = key;
    s->ml = ml;
    s->first_ms = now_ms();
    s->times = 0;
    s->listening = 0;
    s->due = 0;
    s->verdict = IDEM_RESEND;
    while (s->verdict == IDEM_RESEND) {
        tell_connection(s);
        if (s->result != MOSQ_ERR_SUCCESS) {
            s->ready = 0;
            nanosleep(&pause, NULL);
            s->result = mosquitto_reconnect(s->m);
        }
        if (now_ms() >= s->due) {
            if (s->listening || !s->ready)
                decide(s, IDEM_SILENCE, 0);
            else
                ask(s);
        }
        if (s->result == MOSQ_ERR_SUCCESS)
            s->result = mosquitto_loop(s->m, 20, 1);
    }
    if (s->verdict == IDEM_GIVE_UP)
        die("given up: perhaps it was poured, perhaps not");
    printf("%s %s %s %s\n", key, ml, s->reason, s->text);
    fflush(stdout);
}

static void start(sender *s)
{
    mosquitto_lib_init();
    snprintf(s->answer_topic, sizeof s->answer_topic, "pump/%s/answer", s->id);
    s->m = mosquitto_new(s->id, true, s);
    if (!s->m)
        die("cannot make a client");
    mosquitto_int_option(s->m, MOSQ_OPT_PROTOCOL_VERSION, MQTT_PROTOCOL_V5);
    mosquitto_connect_v5_callback_set(s->m, on_connect);
    mosquitto_subscribe_v5_callback_set(s->m, on_subscribe);
    mosquitto_message_v5_callback_set(s->m, on_message);
    s->result = mosquitto_connect_bind_v5(s->m, s->host, s->port, 30, NULL,
                                          NULL);
}

/* Takes the options, and returns what follows them. */
static char **parse(sender *s, char **argv)
{
    while (*++argv && !strncmp(*argv, "--", 2)) {
        const char *name = *argv;
        if (!strcmp(name, "--help")) {
            fputs(help, stdout);
            exit(0);
        }
        if (!strcmp(name, "--property")) {
            s->property = 1;
            continue;
        }
        if (!argv[1])
            die("an option without a value; see --help");
        argv++;
        if (!strcmp(name, "--host"))
            s->host = *argv;
        else if (!strcmp(name, "--id"))
            s->id = *argv;
        else if (!strcmp(name, "--port"))
            s->port = atoi(*argv);
        else if (!strcmp(name, "--qos"))
            s->qos = atoi(*argv);
        else if (!strcmp(name, "--retry"))
            s->retry_ms = atol(*argv);
        else if (!strcmp(name, "--deadline"))
            s->deadline_s = (uint32_t)atol(*argv);
        else
            die("no such option; see --help");
    }
    return argv;
}

int main(int argc, char **argv)
{
    sender s = { .host = "127.0.0.1", .id = "panel", .port = 1883, .qos = 1,
                 .retry_ms = 2000, .deadline_s = 43200 };
    char key[128], ml[32];

    (void)argc;
    argv = parse(&s, argv);
    s.seed = (unsigned)now_ms() ^ (unsigned)getpid();
    start(&s);
    if (!*argv)
        while (scanf("%127s %31s", key, ml) == 2)
            command(&s, key, ml);
    for (; argv[0] && argv[1]; argv += 2)
        command(&s, argv[0], argv[1]);
    mosquitto_disconnect(s.m);
    mosquitto_destroy(s.m);
    mosquitto_lib_cleanup();
    return 0;
}
