/* SPDX-License-Identifier: 0BSD */
/* cc -I../.. -I/usr/include/postgresql consumer.c effect.c fleet.c connect.c \
 *    text.c decide.c redis.c postgres.c postgres_connection.c dynamodb.c \
 *    dynamodb_http.c -lrdkafka -lhiredis -lpq -lcurl -ljansson -o consumer
 * (umask 077; head -c 16 /dev/urandom >fleet.secret)
 * ./consumer --new-log pump.log
 * ./consumer --brokers localhost:9092 --store redis://localhost
 *
 * A consumer of Kafka that executes each record of a topic once, wherever it is
 * killed.  A record needs no key of its own: topic and partition are the scope,
 * its offset is the sequence.  The offset is committed after the outcome, so
 * what was not committed comes again, and is a repeat.
 *
 * A topic that is deleted and made again gives the same offsets to other
 * records: give its fleet another name too.
 */
#define _POSIX_C_SOURCE 200809L
#define IDEM_IMPLEMENTATION
#include "effect.h"

#include <librdkafka/rdkafka.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RETRY_MS = 100 };

// Options, and what they are if they are not given
static struct option {
    const char *name, *value, *help;
} options[] = {
    { "--brokers", "127.0.0.1:9092", "" },
    { "--topic", "commands", "" },
    { "--group", "pumps", "shares the topic among those of its name" },
    { "--partition", "", "takes this one, and shares nothing" },
    { "--session-ms", "10000", "a consumer silent for longer is dead" },
    { "--store", "", "what all consumers share; or FLEET_STORE of the "
      "environment, where a password belongs; or redis://127.0.0.1" },
    { "--secret", "fleet.secret", "file of 16 random bytes, shared too" },
    { "--lease-ms", "10000", "for one record" },
    { "--log", "pump.log", "log of the effects, shared too; --new-log makes "
      "it, once" },
    { "--idle-ms", "0", "ends after this long without a record; 0: never" }
};
enum { BROKERS, TOPIC, GROUP, PARTITION, SESSION_MS, STORE, SECRET, LEASE,
       LOG, IDLE_MS, OPTIONS };

static idem_config config = {
    .capacity = 1,                      // not looked at
    .key_max = 255,
    .max_attempts = 255 };              // each is looked up in the log first
static fleet f;
static rd_kafka_t *kafka;
static volatile sig_atomic_t stop;
static long place;                      // in the log, before a claim

static const char *option(int which)
{
    return options[which].value;
}

static int number(int which)
{
    return effect_number(options[which].name, option(which), IDEM_LEASE_MAX);
}

static void on_signal(int signal_number)
{
    (void)signal_number;
    stop = 1;
}

/* --------------------------------------------------------------- the effect */

/* What the log calls a record: where it stands. */
static const char *name_of(const rd_kafka_message_t *r)
{
    static char name[EFFECT_LINE / 2];

    snprintf(name, sizeof name, "%.250s/%d %lld", rd_kafka_topic_name(r->rkt),
             (int)r->partition, (long long)r->offset);
    return name;
}

/* The begin of a record's text, to be shown */
static const char *text_of(const rd_kafka_message_t *r)
{
    static char text[201];
    const char *from = (const char *)r->payload;
    size_t i;

    for (i = 0; i < r->len && i < sizeof text - 1; i++)
        text[i] = (char)(from[i] < ' ' || from[i] > '~' ? '.' : from[i]);
    text[i] = 0;
    return text;
}

/* Prints what the log has of a record that was interrupted. */
static void report(const rd_kafka_message_t *record, int found)
{
    static const char *const states[] = { [EFFECT_NONE] = "not done",
        [EFFECT_BEGUN] = "begun: check", [EFFECT_DONE] = "done" };

    fprintf(stderr, "consumer: offset %lld: interrupted before, it was %s\n",
            (long long)record->offset, states[found]);
}

/* Executes, unless the log has it already. */
static int execute(idem_job *job)
{
    const rd_kafka_message_t *record = (const rd_kafka_message_t *)job->ctx;
    int again = job->answer != IDEM_EXECUTE;
    int found = effect_begin(name_of(record), text_of(record),
                             again ? 0 : place);

    if (found == EFFECT_NONE)
        effect_end(name_of(record), text_of(record));
    if (again || found != EFFECT_NONE)
        report(record, found);
    job->outcome.failed = found == EFFECT_BEGUN;
    return IDEM_HANDLED;
}

/* True if the log has a record that the store has forgotten.  Nobody completes
   it any more: so who is to check it hears of it here. */
static int is_in_log(const rd_kafka_message_t *record)
{
    int found = effect_look(name_of(record), text_of(record));

    if (found == EFFECT_BEGUN)
        report(record, found);
    return found != EFFECT_NONE;
}

/* ------------------------------------------------------------------ records */

/* Runs a record until its outcome is known: somebody may be at it, or the store
   away for a while.  False if it has to be given up now, and comes again. */
static int settle(rd_kafka_message_t *record)
{
    char scope[300];
    idem_reply reply;
    idem_request request = { .scope = scope, .payload = record->payload,
                             .payload_len = record->len };
    int result;

    // An offset has 63 bits, a sequence 32 and is not 0: so there are 2^32 - 1
    // offsets in an epoch.  A later one has a higher number, or a newer epoch.
    request.epoch = (uint32_t)(record->offset / UINT32_MAX);
    request.sequence = (uint32_t)(record->offset % UINT32_MAX) + 1;
    // One that is cut to fit here is over key_max.
    snprintf(scope, sizeof scope, "%s/%d", rd_kafka_topic_name(record->rkt),
             (int)record->partition);
    request.scope_len = strlen(scope);
    for (int silent = 0; !stop;) {
        place = effect_place();
        result = fleet_run(&f, &reply, &request, execute, record);
        if (result == IDEM_DONE || result == IDEM_REPLAY ||
            (result == IDEM_TOO_OLD && is_in_log(record)))
            return 1;
        if (result != IDEM_BUSY && result != IDEM_E_STORAGE &&
            result != IDEM_E_FENCED)
            effect_die(idem_text(result), f.reason);    // skip nothing
        if (result == IDEM_E_STORAGE && !silent++)
            fprintf(stderr, "consumer: offset %lld: %s; trying again\n",
                    (long long)record->offset, f.reason);
        poll(NULL, 0, result == IDEM_BUSY && reply.retry_after_ms < RETRY_MS
                          ? (int)reply.retry_after_ms : RETRY_MS);
    }
    return 0;
}

static void consume(void)
{
    int idle = 0, enough = number(IDLE_MS);

    while (!stop && (!enough || idle < enough)) {
        rd_kafka_message_t *record = rd_kafka_consumer_poll(kafka, RETRY_MS);
        idle = record && !record->err ? 0 : idle + RETRY_MS;
        if (!record)
            continue;
        // What cannot be committed, because the partition is another's now,
        // comes again there, and is a repeat.
        if (record->err)
            fprintf(stderr, "consumer: %s\n", rd_kafka_message_errstr(record));
        else if (settle(record))
            rd_kafka_commit_message(kafka, record, 0);
        rd_kafka_message_destroy(record);
    }
}

/* ------------------------------------------------------------------ opening */

static void set(rd_kafka_conf_t *conf, const char *name, const char *value)
{
    char why[256];

    if (rd_kafka_conf_set(conf, name, value, why, sizeof why) !=
        RD_KAFKA_CONF_OK)
        effect_die(name, why);
}

/* Takes part in the group, or takes one partition. */
static void take_topic(void)
{
    int alone = *option(PARTITION) != 0;
    rd_kafka_topic_partition_list_t *list =
        rd_kafka_topic_partition_list_new(1);
    rd_kafka_resp_err_t error;

    rd_kafka_topic_partition_list_add(
        list, option(TOPIC),
        alone ? number(PARTITION) : RD_KAFKA_PARTITION_UA)
        ->offset = RD_KAFKA_OFFSET_STORED;
    error = alone ? rd_kafka_assign(kafka, list)
                  : rd_kafka_subscribe(kafka, list);
    rd_kafka_topic_partition_list_destroy(list);
    if (error)
        effect_die(option(TOPIC), rd_kafka_err2str(error));
}

static void open_kafka(void)
{
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    char why[256];

    set(conf, "bootstrap.servers", option(BROKERS));
    set(conf, "group.id", option(GROUP));
    set(conf, "session.timeout.ms", option(SESSION_MS));
    set(conf, "heartbeat.interval.ms", "200");
    set(conf, "enable.auto.commit", "false");
    set(conf, "auto.offset.reset", "earliest");
    kafka = rd_kafka_new(RD_KAFKA_CONSUMER, conf, why, sizeof why);
    if (!kafka)
        effect_die(option(BROKERS), why);
    rd_kafka_poll_set_consumer(kafka);
    take_topic();
}

static void parse(char **argv)
{
    int i;

    for (argv++; *argv; argv++) {
        for (i = 0; i < OPTIONS && strcmp(*argv, options[i].name) != 0; i++)
            continue;
        if (i == OPTIONS || !argv[1])
            break;
        options[i].value = *++argv;
    }
    if (!*argv)
        return;
    for (i = 0; i < OPTIONS; i++)
        printf("%-13s %s (%s)\n", options[i].name, options[i].help,
               options[i].value);
    exit(strcmp(*argv, "--help") != 0);
}

int main(int argc, char **argv)
{
    (void)argc;
    if (argv[1] && argv[2] && !strcmp(argv[1], "--new-log")) {
        effect_make(argv[2]);
        return 0;
    }
    parse(argv);
    signal(SIGTERM, on_signal);
    signal(SIGINT, on_signal);
    signal(SIGPIPE, SIG_IGN);           // hiredis writes to what may be broken
    effect_open(option(LOG));
    effect_read_secret(&config, option(SECRET));
    config.lease_ms = (uint32_t)number(LEASE);
    effect_need(&f, fleet_open(&f, effect_store(option(STORE)), &config));
    open_kafka();
    consume();
    rd_kafka_consumer_close(kafka);
    rd_kafka_destroy(kafka);
    fleet_close(&f);
    return 0;
}
