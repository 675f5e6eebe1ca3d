/* SPDX-License-Identifier: 0BSD */
/* cc -I../.. -I/usr/include/postgresql consumer.c fleet.c redis*.c \
 *    postgres*.c dynamodb*.c -lrdkafka -lhiredis -lpq -lcurl -lcjson \
 *    -o consumer
 * ./consumer --brokers localhost:9092 --store redis://localhost
 *
 * A consumer of Kafka that executes each record of a topic once, wherever it is
 * killed.  A record needs no key of its own: topic and partition are the scope,
 * its offset is the key.  The offset is committed after the outcome, so what
 * was not committed comes again, and is a repeat.
 *
 * A topic that is deleted and made again gives the same offsets to other
 * records: give its fleet another name too.
 */
#define _POSIX_C_SOURCE 200809L
#define IDEM_IMPLEMENTATION
#include "fleet.h"

#include <errno.h>
#include <fcntl.h>
#include <librdkafka/rdkafka.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { LINE = 512, HOUR_MS = 3600 * 1000, RETRY_MS = 100 };

static const char help[] =
    "consumer [options]\n"
    "executes each record of a topic once\n\n"
    "  --brokers LIST      (127.0.0.1:9092)\n"
    "  --topic NAME        (commands)\n"
    "  --group NAME        shares the topic among those of its name (pumps)\n"
    "  --partition N       takes this one, and shares nothing\n"
    "  --session-ms MS     the group takes who says nothing for so long for\n"
    "                      dead (10000)\n"
    "  --store URL         what all consumers share (redis://127.0.0.1)\n"
    "  --secret FILE       16 random bytes, the same for all (fleet.secret)\n"
    "  --lease-ms MS       for one record (10000)\n"
    "  --log FILE          what was executed (pump.log)\n"
    "  --idle-ms MS        ends when nothing has come for so long (0: never)\n";

typedef struct consumer {
    const char *brokers, *topic, *group, *session_ms, *store, *secret, *log;
    const char *partition;
    int      idle_ms, lease_ms;
    int      log_fd;
    fleet    f;
    idem_config config;
    rd_kafka_t *kafka;
} consumer;

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

static void die(const char *what, const char *why)
{
    fprintf(stderr, "consumer: %s: %s\n", what, why);
    exit(1);
}

/* --------------------------------------------------------------- the effect */

// A record, and where it is executed
typedef struct work {
    const consumer *c;
    const rd_kafka_message_t *record;
} work;

/* The line that a record leaves in the log; returns its length. */
static size_t log_line(char *line, size_t size, const rd_kafka_message_t *r)
{
    int len = snprintf(line, size, "%s/%d %lld %.*s\n",
                       rd_kafka_topic_name(r->rkt), (int)r->partition,
                       (long long)r->offset, (int)(r->len < 256 ? r->len : 256),
                       (const char *)r->payload);

    return (size_t)len < size ? (size_t)len : size - 1;
}

static void do_it(const work *w)
{
    char line[LINE];
    size_t len = log_line(line, sizeof line, w->record);

    if (write(w->c->log_fd, line, len) != (ssize_t)len ||
        fdatasync(w->c->log_fd) != 0)
        die(w->c->log, strerror(errno));    // unknown: recover at the restart
}

/* Looks at the world: whether a record that was cut short had been executed. */
static int was_done(const work *w)
{
    char line[LINE], other[LINE];
    FILE *f = fopen(w->c->log, "r");
    int found = 0;

    if (!f)
        die(w->c->log, strerror(errno));
    log_line(line, sizeof line, w->record);
    while (!found && fgets(other, sizeof other, f))
        found = strcmp(line, other) == 0;
    fclose(f);
    return found;
}

static int execute(void *ctx, idem_outcome *outcome,
                   const idem_request *request, const idem_claim *claim,
                   int answer, uint32_t *now_ms)
{
    const work *w = (const work *)ctx;
    int done = answer == IDEM_RECOVER && was_done(w);

    (void)outcome, (void)request, (void)claim, (void)now_ms;
    if (!done)
        do_it(w);
    if (answer == IDEM_RECOVER)
        fprintf(stderr, "consumer: offset %lld: cut short before, it was %s\n",
                (long long)w->record->offset, done ? "done" : "not done");
    return 0;
}

/* ------------------------------------------------------------------ records */

/* Runs a record until its outcome is known: somebody may be at it, or the store
   away for a while.  False if it has to be given up now, and comes again. */
static int settle(consumer *c, const rd_kafka_message_t *record)
{
    unsigned char key[8];
    char scope[200];
    work w = { c, record };
    idem_reply reply = { .buffer = NULL };
    idem_request request = { .scope = scope, .key = key, .key_len = sizeof key,
                             .payload = record->payload,
                             .payload_len = record->len };
    idem_claim claim;
    int result;

    fleet_offset_key(key, (uint64_t)record->offset);
    request.scope_len =
        (size_t)snprintf(scope, sizeof scope, "%s/%d",
                         rd_kafka_topic_name(record->rkt),
                         (int)record->partition);
    while (!stop) {
        result = fleet_run(&c->f, &claim, &reply, &request, execute, &w);
        if (result == IDEM_EXECUTE || result == IDEM_RECOVER ||
            result == IDEM_REPLAY)
            return 1;
        if (result != IDEM_BUSY && result != IDEM_E_STORAGE &&
            result != IDEM_E_FENCED)
            die(idem_text(result), c->f.reason);    // skip nothing
        pause_ms(result == IDEM_BUSY && reply.retry_after_ms < RETRY_MS
                     ? (long)reply.retry_after_ms : RETRY_MS);
    }
    return 0;
}

static void consume(consumer *c)
{
    int idle = 0;

    while (!stop && (!c->idle_ms || idle < c->idle_ms)) {
        rd_kafka_message_t *record = rd_kafka_consumer_poll(c->kafka, RETRY_MS);
        idle = record && !record->err ? 0 : idle + RETRY_MS;
        if (!record)
            continue;
        // What cannot be committed, because the partition is another's now,
        // comes again there, and is a repeat.
        if (record->err)
            fprintf(stderr, "consumer: %s\n", rd_kafka_message_errstr(record));
        else if (settle(c, record))
            rd_kafka_commit_message(c->kafka, record, 0);
        rd_kafka_message_destroy(record);
    }
}

/* ------------------------------------------------------------------ opening */

static void set(rd_kafka_conf_t *conf, const char *name, const char *value)
{
    char why[256];

    if (rd_kafka_conf_set(conf, name, value, why, sizeof why) !=
        RD_KAFKA_CONF_OK)
        die(name, why);
}

/* Takes part in the group, or takes one partition. */
static void take_topic(const consumer *c)
{
    rd_kafka_topic_partition_list_t *list =
        rd_kafka_topic_partition_list_new(1);
    rd_kafka_resp_err_t error;

    if (c->partition) {
        rd_kafka_topic_partition_list_add(list, c->topic, atoi(c->partition))
            ->offset = RD_KAFKA_OFFSET_STORED;
        error = rd_kafka_assign(c->kafka, list);
    } else {
        rd_kafka_topic_partition_list_add(list, c->topic,
                                          RD_KAFKA_PARTITION_UA);
        error = rd_kafka_subscribe(c->kafka, list);
    }
    rd_kafka_topic_partition_list_destroy(list);
    if (error)
        die(c->topic, rd_kafka_err2str(error));
}

static void open_kafka(consumer *c)
{
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    char why[256];

    set(conf, "bootstrap.servers", c->brokers);
    set(conf, "group.id", c->group);
    set(conf, "session.timeout.ms", c->session_ms);
    set(conf, "heartbeat.interval.ms", "200");
    set(conf, "enable.auto.commit", "false");
    set(conf, "auto.offset.reset", "earliest");
    c->kafka = rd_kafka_new(RD_KAFKA_CONSUMER, conf, why, sizeof why);
    if (!c->kafka)
        die(c->brokers, why);
    rd_kafka_poll_set_consumer(c->kafka);
    take_topic(c);
}

static void open_fleet(consumer *c)
{
    int fd = open(c->secret, O_RDONLY), result;
    ssize_t size = sizeof c->config.secret;

    if (fd < 0 || read(fd, c->config.secret, (size_t)size) != size)
        die(c->secret, "cannot be read, or is shorter than 16 bytes");
    close(fd);
    c->config.capacity = 1;             // not looked at
    c->config.key_max = 255;
    c->config.lease_ms = (uint32_t)c->lease_ms;
    c->config.retention_ms = HOUR_MS;   // as long as an offset may go back
    c->config.max_attempts = 255;       // each is looked up in the log first
    result = fleet_open(&c->f, c->store, &c->config);
    if (result != IDEM_OK)
        die(idem_text(result), c->f.reason);
}

/* Where the value of an option goes: text, or else a number. */
static const char **text_of(consumer *c, const char *name)
{
    return !strcmp(name, "--brokers")      ? &c->brokers
           : !strcmp(name, "--topic")      ? &c->topic
           : !strcmp(name, "--group")      ? &c->group
           : !strcmp(name, "--partition")  ? &c->partition
           : !strcmp(name, "--session-ms") ? &c->session_ms
           : !strcmp(name, "--store")      ? &c->store
           : !strcmp(name, "--secret")     ? &c->secret
           : !strcmp(name, "--log")        ? &c->log
                                           : NULL;
}

static int *number_of(consumer *c, const char *name)
{
    return !strcmp(name, "--idle-ms")    ? &c->idle_ms
           : !strcmp(name, "--lease-ms") ? &c->lease_ms
                                         : NULL;
}

static void parse(consumer *c, char **argv)
{
    for (argv++; *argv; argv++) {
        const char *name = *argv, **text = text_of(c, name);
        int *number = number_of(c, name);
        if (!strcmp(name, "--help")) {
            fputs(help, stdout);
            exit(0);
        }
        if ((!text && !number) || !*++argv)
            die(name, "what?  see --help");
        if (text)
            *text = *argv;
        else
            *number = atoi(*argv);
    }
}

int main(int argc, char **argv)
{
    static consumer c = { .brokers = "127.0.0.1:9092", .topic = "commands",
                          .group = "pumps", .session_ms = "10000",
                          .store = "redis://127.0.0.1",
                          .secret = "fleet.secret", .log = "pump.log",
                          .lease_ms = 10000 };
    struct sigaction action;

    (void)argc;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_signal;
    parse(&c, argv);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    signal(SIGPIPE, SIG_IGN);           // hiredis writes to what may be broken
    c.log_fd = open(c.log, O_WRONLY | O_CREAT | O_APPEND, 0644);
    if (c.log_fd < 0)
        die(c.log, strerror(errno));
    open_fleet(&c);
    open_kafka(&c);
    consume(&c);
    rd_kafka_consumer_close(c.kafka);
    rd_kafka_destroy(c.kafka);
    fleet_close(&c.f);
    return 0;
}
