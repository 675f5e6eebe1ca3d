/* SPDX-License-Identifier: 0BSD */
/* cc -I../.. pumpd.c memory.c broker.c pump.c -lmosquitto -o pumpd
 * ./pumpd --journal pump.journal --log pump.log &
 *
 * A daemon in front of a pump: takes commands over MQTT 5, pours each of them
 * once, and answers each as often as it is asked.  Start your own from it.
 *
 * A command is a PUBLISH to pump/<sender>/command, "5" in it means 5 ml, with
 * its idempotency key as correlation data (or user property "key").  The topic
 * is the scope, and its answer goes to pump/<sender>/answer: a broker's access
 * list lets each sender write to the one and read the other of its own only.
 * The answer has the correlation data and user properties: "reason", an MQTT 5
 * reason code, "ml", the amount, if there was one, and "retry-after-ms" if the
 * sender can ask again.
 *
 * The pump (pump.h) is its own sensor.  The total of all pours is application
 * state: it is committed in one step with the outcome.  The name of the pump's
 * log is in the state too, so that another log is noticed.
 */
#define _POSIX_C_SOURCE 200809L
#include "pumpd.h"

static const char help[] =
    "pumpd [options]\n"
    "executes commands that arrive over MQTT, each once\n\n"
    CONNECTION_OPTIONS
    "  --id NAME           of this client (pumpd)\n"
    "  --journal FILE      the journal (pump.journal); the secret is in\n"
    "                      FILE.secret, both are made if neither is there\n"
    "  --log FILE          log of the pours (pump.log)\n"
    "  --ml-ms MS          how long the pump takes for 1 ml (0)\n"
    "  --no-idem           without idem.h: executes repeats too\n";

static volatile sig_atomic_t stop;

static void on_signal(int number)
{
    (void)number;
    stop = 1;
}

uint32_t pumpd_millis(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint32_t)((uint64_t)t.tv_sec * 1000 +
                      (uint64_t)t.tv_nsec / 1000000);
}

void pumpd_die(const char *what, const char *why)
{
    fprintf(stderr, "pumpd: %s: %s\n", what, why);
    exit(1);
}

/* ----------------------------------------------------------------- the pump */

int pumpd_end(idem_outcome *outcome, int reason, const char *text)
{
    outcome->failed = reason != POURED;
    outcome->code = reason;
    outcome->response = text;
    outcome->response_len = strlen(text);
    return IDEM_HANDLED;
}

/* What is known of a command that was interrupted, or that may be among what
   the journal has lost. */
static int look(pumpd *d, const pump_order *order, int answer)
{
    static const char *const words[] = { "had not poured", "had begun to pour",
                                         "had poured" };
    int found = pump_look(&d->pump, order);

    if (found == PUMP_BLIND)
        pumpd_die(d->log, d->pump.why); // pour nothing, answer nothing
    fprintf(stderr, "pumpd: %s: interrupted before%s, it %s\n", order->topic,
            answer == IDEM_UNCERTAIN ? ", or forgotten" : "", words[found]);
    // No line means something only if the log has all lines.  Of an interrupted
    // command it has: those from another log have been given up.
    if (found == PUMP_NOTHING && answer == IDEM_UNCERTAIN && !d->log_is_whole)
        found = PUMP_BEGAN;
    return found;
}

/* Executes a command that idem_run has claimed.  Its state and its outcome
   become durable together, or neither. */
static int execute(idem_job *job)
{
    static char text[RESPONSE_MAX + 1];
    static pumpd_state next;
    command *c = (command *)job->ctx;
    pumpd *d = c->device;
    pump_order order = { c->topic, c->key, c->key_len, command_amount(c) };
    int found = PUMP_NOTHING;

    if (job->answer == IDEM_EXECUTE &&
        connection_is_late(&d->broker, IN_HAND_S))
        return IDEM_NOT_DONE;
    if (!order.ml)
        return pumpd_end(&job->outcome, INVALID, "not 1 to 1000 ml");
    if (job->answer != IDEM_EXECUTE)
        found = look(d, &order, job->answer);
    if (found == PUMP_BEGAN)
        return pumpd_end(&job->outcome, SPECIFIC, "check the cup");
    if (found == PUMP_NOTHING && pump_pour(&d->pump, &order) != 0)
        pumpd_die(d->log, d->pump.why); // the next start looks
    next = d->state;
    // What the journal has lost is in the total already.
    if (found == PUMP_NOTHING || job->answer == IDEM_RECOVER)
        next.total += (uint64_t)order.ml;
    next.log = d->pump.mark;
    next.log_is_whole = d->log_is_whole;
    job->outcome.state = &next;
    job->outcome.state_len = sizeof next;
    snprintf(text, sizeof text, "poured %ld ml", order.ml);
    return pumpd_end(&job->outcome, POURED, text);
}

/* ----------------------------------------------------------------- commands */

/* Executes a command once, and answers it. */
static void take_command(struct mosquitto *m, command *c)
{
    pumpd *d = c->device;
    char response[RESPONSE_MAX];
    idem_reply reply;
    idem_request request = {
        .scope = c->topic, .scope_len = strlen(c->topic),
        .key = c->key, .key_len = c->key_len,
        .payload = c->payload, .payload_len = c->payload_len,
        .buffer = response, .buffer_size = sizeof response };
    size_t len = sizeof d->state;
    const char *text;
    int result = idem_run(&d->table, &reply, &request, execute, c,
                          pumpd_millis);

    if (result == IDEM_E_STORAGE || reply.claim.token)
        pumpd_need(d, result);          // it may have poured
    pumpd_need(d, idem_state(&d->table, &d->state, &len));
    if (result == IDEM_DONE || result == IDEM_REPLAY) {
        command_answer(c, m, command_reason(result, &reply), 0, response,
                       reply.response_len);
        return;
    }
    text = idem_text(result);
    fprintf(stderr, "pumpd: %s: %s\n", c->topic, text);
    command_answer(c, m, command_reason(result, &reply), reply.retry_after_ms,
                   text, strlen(text));
}

/* What most daemons do: executes whatever comes. */
static void take_command_blindly(struct mosquitto *m, command *c)
{
    pump_order order = { c->topic, c->key, c->key_len, command_amount(c) };
    char text[RESPONSE_MAX];

    if (order.ml && pump_pour(&c->device->pump, &order) != 0)
        pumpd_die(c->device->log, c->device->pump.why);
    c->device->state.total += (uint64_t)order.ml;
    snprintf(text, sizeof text, "poured %ld ml", order.ml);
    command_answer(c, m, order.ml ? POURED : INVALID, 0, text, strlen(text));
}

void pumpd_take(struct mosquitto *m, command *c)
{
    if (c->device->no_idem)
        take_command_blindly(m, c);
    else
        take_command(m, c);
}

/* ------------------------------------------------------------------ running */

static void parse(pumpd *d, char **argv)
{
    for (argv++; *argv; argv++) {
        const char *name = *argv, *value = argv[1];
        if (!strcmp(name, "--help")) {
            fputs(help, stdout);
            exit(0);
        }
        if (!strcmp(name, "--no-idem")) {
            d->no_idem = 1;
            continue;
        }
        if (!value)
            pumpd_die(name, "no value, or no such option; see --help");
        argv++;
        if (!strcmp(name, "--journal"))
            d->journal = value;
        else if (!strcmp(name, "--log"))
            d->log = value;
        else if (!strcmp(name, "--ml-ms"))
            d->pump.ml_ms =
                connection_number(&d->broker, name, value, 0, 1000000);
        else if (!connection_option(&d->broker, name, value))
            pumpd_die(name, "no such option; see --help");
    }
}

int main(int argc, char **argv)
{
    static pumpd d = {
        .broker = { .program = "pumpd", .host = "127.0.0.1", .id = "pumpd",
                    .port = 1883, .qos = 1 },
        .journal = "pump.journal", .log = "pump.log", .stop = &stop };
    struct sigaction action;

    (void)argc;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_signal;
    parse(&d, argv);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    pumpd_open(&d);
    puts("ready");                      // from now on a signal ends it well
    fflush(stdout);
    pumpd_run(&d);
    if (!d.no_idem && idem_file_close(&d.file) != IDEM_OK)
        pumpd_die(d.journal, strerror(d.file.error));
    free(d.memory);
    printf("total %llu ml\n", (unsigned long long)d.state.total);
    return 0;
}
