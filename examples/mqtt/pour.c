/* SPDX-License-Identifier: 0BSD */
/* cc -I../.. pour.c -lmosquitto -o pour && ./pour 2026-11-20/1 5
 *
 * Sends commands to pumpd, each with its idempotency key, and asks again with
 * the same key until there is an answer: whatever is lost or restarted between,
 * the pump pours once.  Prints key, ml, reason code and text of each answer.
 * idem_retry decides when to ask again, and when to stop.  The deadline begins
 * anew at each start: start it again with the same key and --id, and with what
 * is left of the first --deadline (python/outbox.py takes care of that); later
 * pumpd may have forgotten the key, and under another --id it never knew it. */
#define _POSIX_C_SOURCE 200809L
#define IDEM_STATIC
#define IDEM_IMPLEMENTATION
#include "idem.h"
#include "command.h"
#include "connection.h"
#include <unistd.h>

enum { TOPIC = 128 };

static const char help[] =
    "pour [options] KEY ML ...       or lines \"KEY ML\" on standard input\n"
    "asks pumpd to pour, and repeats that until there is an answer\n\n"
    CONNECTION_OPTIONS
    "  --id NAME           sends to pump/NAME/command, hears pump/NAME/answer\n"
    "                      (panel)\n"
    "  --retry MS          how long an answer may take (2000)\n"
    "  --deadline S        when it gives up (43200, which is the most)\n"
    "  --property          the key goes in a user property\n\n"
    "exit status: 0 all poured, 1 it could not run or gave up, 2 not all\n";

typedef struct sender {
    connection broker;
    int      property;
    uint32_t retry_ms, deadline_s;
    struct mosquitto *m;
    int      result;            // of the connection
    int      ready;             // the broker has our subscription
    char     topic[TOPIC], answer_topic[TOPIC];
    const char *key, *ml;       // the command under way
    long long first_ms;         // when it began
    uint32_t times;             // how often it was asked since
    int      in_hand;           // the broker has not acknowledged the last
    int      refused;           // .. or why it did not take the one before
    int      listening;         // for an answer
    int      verdict;           // what idem_retry answered
    long long due;              // when that ends, or it is asked
    unsigned seed;
    char     reason[12], text[128];
    int      failed;            // 1: not all have poured
} sender;

static void die(const char *what)
{
    fprintf(stderr, "pour: %s\n", what);
    exit(1);
}

/* ------------------------------------------------------------------ answers */

/* Copies a user property, or nothing if it is not there. */
static void read_property(char *dst, size_t size, const char *name,
                          const mosquitto_property *p)
{
    char *value = command_property(p, name);

    snprintf(dst, size, "%s", value ? value : "");
    free(value);
}

static long long elapsed_ms(const sender *s)
{
    return clock_ms() - s->first_ms;
}

/* After an answer, as a result of idem.h has it, or silence */
static void decide(sender *s, int answer, uint32_t retry_after_ms)
{
    idem_patience patience = { 0 };
    idem_sent sent = { 0 };
    uint32_t delay;

    patience.base_ms = s->retry_ms;
    patience.cap_ms = 4 * patience.base_ms;
    patience.deadline_ms = s->deadline_s * 1000;
    sent.times = s->times;
    sent.elapsed_ms = clock_elapsed(elapsed_ms(s));
    sent.retry_after_ms = retry_after_ms;
    sent.random = (uint32_t)rand_r(&s->seed) << 16 ^ (uint32_t)rand_r(&s->seed);
    s->verdict = idem_retry(&delay, &patience, &sent, answer);
    s->listening = 0;
    s->due = clock_ms() + delay;
}

/* A reason code, as a result of idem.h; none is silence. */
static int read_reason(const char *reason)
{
    if (strlen(reason) != 4 || strncmp(reason, "0x", 2) != 0 ||
        strspn(reason + 2, "0123456789abcdef") != 2)
        return IDEM_SILENCE;
    return strtol(reason, NULL, 16) == QUOTA ? IDEM_BUSY
                                             : IDEM_OK;     // that is final
}

/* An answer counts if it is to the command under way: one to an earlier command
   may come twice, also to one with that key, which is refused now. */
static void on_message(struct mosquitto *m, void *ctx,
                       const struct mosquitto_message *message,
                       const mosquitto_property *properties)
{
    sender *s = (sender *)ctx;
    char wait[12] = "", reason[sizeof s->reason] = "", ml[12] = "";
    void *key = NULL;
    uint16_t len = 0;

    (void)m;
    mosquitto_property_read_binary(properties, MQTT_PROP_CORRELATION_DATA, &key,
                                   &len, false);
    read_property(reason, sizeof reason, "reason", properties);
    read_property(ml, sizeof ml, "ml", properties);
    if (key && s->key && len == strlen(s->key) && !memcmp(key, s->key, len) &&
        (!*ml || !strcmp(ml, s->ml)) && read_reason(reason) != IDEM_SILENCE) {
        read_property(wait, sizeof wait, "retry-after-ms", properties);
        snprintf(s->reason, sizeof s->reason, "%s", reason);
        snprintf(s->text, sizeof s->text, "%.*s", message->payloadlen,
                 message->payload ? (const char *)message->payload : "");
        for (char *c = s->text; *c; c++)
            *c = *c < ' ' || *c > '~' ? '.' : *c;
        decide(s, read_reason(reason), (uint32_t)strtoul(wait, NULL, 10));
    }
    free(key);
}

static void on_publish(struct mosquitto *m, void *ctx, int id, int reason,
                       const mosquitto_property *p)
{
    sender *s = (sender *)ctx;

    (void)m, (void)id, (void)p;
    s->in_hand = 0;
    if (reason >= 0x80 && reason != s->refused)     // by an access list, or so
        fprintf(stderr, "pour: the broker refuses the command: %s; trying "
                "again\n", mosquitto_reason_string(reason));
    s->refused = reason;
}

static void on_subscribe(struct mosquitto *m, void *ctx, int id, int count,
                         const int *granted, const mosquitto_property *p)
{
    sender *s = (sender *)ctx;

    (void)m, (void)id, (void)p;
    s->ready = command_granted("pour", count, granted);
    if (s->times == 0)
        s->due = 0;
}

static void on_connect(struct mosquitto *m, void *ctx, int result, int flags,
                       const mosquitto_property *p)
{
    sender *s = (sender *)ctx;

    (void)flags, (void)p;
    if (connection_accepted(&s->broker, result))
        mosquitto_subscribe_v5(m, NULL, s->answer_topic, s->broker.qos, 0,
                               NULL);
}

static void on_disconnect(struct mosquitto *m, void *ctx, int reason,
                          const mosquitto_property *p)
{
    (void)m, (void)p;
    connection_ended(&((sender *)ctx)->broker, reason);
}

/* A client that is new at each connection: one that was connected before would
   send again what it has in hand, and ask the broker to keep it for as long as
   at its first time. */
static void connect_anew(sender *s)
{
    mosquitto_destroy(s->m);
    s->m = mosquitto_new(s->broker.id, true, s);
    if (!s->m)
        die("cannot make a client with this --id");
    mosquitto_int_option(s->m, MOSQ_OPT_PROTOCOL_VERSION, MQTT_PROTOCOL_V5);
    mosquitto_connect_v5_callback_set(s->m, on_connect);
    mosquitto_disconnect_v5_callback_set(s->m, on_disconnect);
    mosquitto_publish_v5_callback_set(s->m, on_publish);
    mosquitto_subscribe_v5_callback_set(s->m, on_subscribe);
    mosquitto_message_v5_callback_set(s->m, on_message);
    s->ready = 0;
    s->in_hand = 0;
    s->result = connection_first(&s->broker, s->m, 0);
}

/* ----------------------------------------------------------------- commands */

/* The broker is to drop what it still has when the time ends: a daemon may
   be away, or have much to do.  0 would be without end. */
static void ask(sender *s, long long left_ms)
{
    mosquitto_property *p = NULL;
    int result;

    mosquitto_property_add_int32(&p, MQTT_PROP_MESSAGE_EXPIRY_INTERVAL,
                                 (uint32_t)((left_ms + 999) / 1000));
    if (s->property)
        mosquitto_property_add_string_pair(&p, MQTT_PROP_USER_PROPERTY, "key",
                                           s->key);
    else
        mosquitto_property_add_binary(&p, MQTT_PROP_CORRELATION_DATA, s->key,
                                      (uint16_t)strlen(s->key));
    s->in_hand = 1;
    result = mosquitto_publish_v5(s->m, NULL, s->topic, (int)strlen(s->ml),
                                  s->ml, s->broker.qos, false, p);
    if (result == MOSQ_ERR_INVAL || result == MOSQ_ERR_PAYLOAD_SIZE ||
        result == MOSQ_ERR_OVERSIZE_PACKET ||
        result == MOSQ_ERR_QOS_NOT_SUPPORTED)   // and nothing was sent
        die(mosquitto_strerror(result));
    mosquitto_property_free_all(&p);
    s->times++;
    s->listening = 1;
    s->due = clock_ms() + s->retry_ms;
}

/* Asks once more, or decides after silence.  It may be too late to ask, though
   it was not when that was decided: a machine may sleep in between.  Nor is it
   time before the broker has acknowledged the last one: libmosquitto may keep
   the next one until then, and sends it with the time that was left before. */
static void act(sender *s)
{
    long long left_ms = 1000LL * s->deadline_s - elapsed_ms(s);

    if (s->listening || !s->ready || left_ms <= 0)
        decide(s, IDEM_SILENCE, 0);
    else if (!s->in_hand)
        ask(s, left_ms);
}

/* Sends a command until there is an answer, or it is too late for one. */
static void run(sender *s, const char *key, const char *ml)
{
    if (!*key || strlen(key) > UINT16_MAX)
        die("a key has 1 to 65535 bytes");
    if (s->property && mosquitto_validate_utf8(key, (int)strlen(key)))
        die("--property: the key is not text in UTF-8");
    s->key = key;
    s->ml = ml;
    s->first_ms = clock_ms();
    s->times = 0;
    s->listening = 0;
    s->due = 0;
    for (s->verdict = IDEM_RESEND; s->verdict == IDEM_RESEND;) {
        connection_report(&s->broker, s->result);
        if (s->result != MOSQ_ERR_SUCCESS) {
            connection_wait(&s->broker);
            connect_anew(s);
        }
        if (clock_ms() >= s->due)
            act(s);
        if (s->verdict == IDEM_RESEND && s->result == MOSQ_ERR_SUCCESS)
            s->result = mosquitto_loop(s->m, 20, 1);
    }
    if (s->verdict == IDEM_GIVE_UP)
        die("given up: nobody knows whether it was poured");
    s->failed |= strtol(s->reason, NULL, 16) != POURED;
    printf("%s %s %s %s\n", key, ml, s->reason, s->text);
    if (fflush(stdout) != 0 || ferror(stdout))
        die("the answer cannot be printed");
}

/* Runs the lines of standard input. */
static void run_lines(sender *s)
{
    char *line = NULL, *key, *ml;
    size_t size = 0;

    while (getline(&line, &size, stdin) > 0) {
        if (!strchr(line, '\n'))
            die("the last line has no newline: it may be incomplete");
        key = strtok(line, " \t\r\n");
        ml = key ? strtok(NULL, " \t\r\n") : NULL;
        if (key && (!ml || strtok(NULL, " \t\r\n")))
            die("a line is KEY ML");
        if (key)
            run(s, key, ml);
    }
    if (!feof(stdin))                   // the rest is not known
        connection_die(&s->broker, "standard input", strerror(errno));
    free(line);
}

/* A topic that was truncated would be another sender's. */
static void make_topic(char *topic, const sender *s, const char *last)
{
    int len = snprintf(topic, TOPIC, "pump/%s/%s", s->broker.id, last);

    if (strpbrk(s->broker.id, "+#/"))
        die("--id is part of a topic: it must not have + # or /");
    if (len < 0 || len >= TOPIC)
        die("--id is too long");
}

static void start(sender *s)
{
    mosquitto_lib_init();
    make_topic(s->topic, s, "command");
    make_topic(s->answer_topic, s, "answer");
    connect_anew(s);
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
            die("an option has no value; see --help");
        argv++;
        if (!strcmp(name, "--retry"))
            s->retry_ms = (uint32_t)connection_number(&s->broker, name, *argv,
                                                      1, 3600000);
        else if (!strcmp(name, "--deadline"))
            s->deadline_s = (uint32_t)connection_number(
                &s->broker, name, *argv, 1, DEADLINE_S);
        else if (!connection_option(&s->broker, name, *argv))
            die("no such option; see --help");
    }
    return argv;
}

int main(int argc, char **argv)
{
    sender s = { .broker = { .program = "pour", .host = "127.0.0.1",
                             .id = "panel", .port = 1883, .qos = 1 },
                 .retry_ms = 2000, .deadline_s = DEADLINE_S };
    char **end = argv + argc;

    argv = parse(&s, argv);
    if ((end - argv) % 2 != 0)
        die("a KEY without its ML; see --help");
    s.seed = (unsigned)clock_ms() ^ (unsigned)getpid();
    start(&s);
    if (!*argv)
        run_lines(&s);
    for (; *argv; argv += 2)
        run(&s, argv[0], argv[1]);
    mosquitto_disconnect(s.m);
    mosquitto_destroy(s.m);
    mosquitto_lib_cleanup();
    return s.failed ? 2 : 0;
}
