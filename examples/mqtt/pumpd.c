/* SPDX-License-Identifier: 0BSD */
/* cc -I../.. pumpd.c -lmosquitto -o pumpd
 * ./pumpd --journal pump.journal --log pump.log &
 *
 * A daemon in front of a pump: takes commands over MQTT 5, pours each of them
 * once, and answers each as often as it is asked.  Start your own from it.
 *
 * A command is a PUBLISH to pump/<sender>/command, "5" in it means 5 ml, with
 *     correlation data   its idempotency key (or user property "key")
 *     response topic     where the answer goes
 * The topic is the scope: a broker's access list lets each sender write to its
 * own only.  The answer has the correlation data and user properties: "reason",
 * an MQTT 5 reason code, and "retry-after-ms" if it is worth asking again.
 *
 * The pump is a log: what was poured is a line in it.  That is also the sensor
 * that tells, after a crash, whether a command that was cut short had poured.
 * The total of all that was poured is application state: it is committed in one
 * step with the outcome.
 */
#define _POSIX_C_SOURCE 200809L
#define IDEM_FILE_STORAGE
#define IDEM_IMPLEMENTATION
#include "idem.h"
#include "../reason.h"
#include "command.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { CAPACITY = 2000, KEY_MAX = 160, RESPONSE_MAX = 48 };
enum { SECTOR = 65536, TOTAL = sizeof(uint64_t) };
enum {
    SECTORS = IDEM_SECTORS(CAPACITY, KEY_MAX, RESPONSE_MAX, TOTAL, SECTOR, 1)
};
// The broker keeps what comes while we are away so long; as long a key is
// remembered after its answer.
enum { SESSION_S = 86400 };

static const char help[] =
    "pumpd [options]\n"
    "pours what is asked for over MQTT, each command once\n\n"
    "  --host H --port P   of the broker (127.0.0.1, 1883)\n"
    "  --qos N             0 to 2, of the subscription (1)\n"
    "  --id NAME           of this client (pumpd)\n"
    "  --journal FILE      what it remembers (pump.journal); the secret is in\n"
    "                      FILE.secret, both are made if neither is there\n"
    "  --log FILE          what was poured (pump.log)\n"
    "  --ml-ms MS          how long the pump takes for 1 ml (0)\n"
    "  --no-idem           execute whatever comes, to see what happens\n";

typedef struct device {
    const char *host, *id, *journal, *log;
    int      port, qos, ml_ms, no_idem;
    int      log_fd;
    uint64_t total;
    idem_file file;
    idem_config config;
    idem_table table;
    void    *memory;
} pump;

static volatile sig_atomic_t stop;

static void on_signal(int number)
{
    (void)number;
    stop = 1;
}

static uint32_t millis(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint32_t)((uint64_t)t.tv_sec * 1000 +
                      (uint64_t)t.tv_nsec / 1000000);
}

static void pause_ms(long ms)
{
    struct timespec t = { ms / 1000, ms % 1000 * 1000000 };

    nanosleep(&t, NULL);
}

static void die(const char *what, const char *why)
{
    fprintf(stderr, "pumpd: %s: %s\n", what, why);
    exit(1);
}

static void die_of(const pump *p, int result)
{
    fputs("pumpd: ", stderr);
    reason_print(p->journal, result, &p->table, &p->config);
    exit(1);
}

/* ----------------------------------------------------------------- the pump */

/* The line that a command leaves in the log; returns its length. */
static size_t log_line(char *line, size_t size, const command *c, long ml)
{
    const unsigned char *key = (const unsigned char *)c->key;
    int at = snprintf(line, size, "%s ", c->topic);

    for (size_t i = 0; i < c->key_len; i++)
        at += snprintf(line + at, size - (size_t)at, "%02x", key[i]);
    return (size_t)(at + snprintf(line + at, size - (size_t)at, " %ld\n", ml));
}

/* Opens the log.  A line in it that was cut short, by a full disk or by power,
   is ended: what is poured next is a line of its own. */
static void open_log(pump *p)
{
    char last = '\n';
    off_t size;

    p->log_fd = open(p->log, O_RDWR | O_CREAT | O_APPEND, 0644);
    if (p->log_fd < 0)
        die(p->log, strerror(errno));
    size = lseek(p->log_fd, 0, SEEK_END);
    if (size > 0 && pread(p->log_fd, &last, 1, size - 1) == 1 && last != '\n' &&
        write(p->log_fd, "\n", 1) != 1)
        die(p->log, strerror(errno));
}

/* The effect.  False if nobody knows whether it happened; errno says why. */
static int pour(const command *c, long ml)
{
    char line[512];
    size_t len = log_line(line, sizeof line, c, ml), at = 0;
    ssize_t written;

    pause_ms(ml * c->device->ml_ms);
    while (at < len) {
        written = write(c->device->log_fd, line + at, len - at);
        if (written < 0)
            return 0;
        at += (size_t)written;
    }
    return fdatasync(c->device->log_fd) == 0;
}

/* Looks at the world: whether a command had poured before it was cut short. */
static int has_poured(const command *c, long ml)
{
    char line[512], other[512];
    FILE *f = fopen(c->device->log, "r");
    int found = 0;

    if (!f)
        die(c->device->log, strerror(errno));   // blind: pour and say nothing
    log_line(line, sizeof line, c, ml);
    while (!found && fgets(other, sizeof other, f))
        found = strcmp(line, other) == 0;
    fclose(f);
    return found;
}

/* Executes a command that idem_run has claimed.  Its state, the total, and its
   outcome become durable together, or neither. */
static int execute(idem_job *job)
{
    static char response[RESPONSE_MAX];
    static uint64_t total;
    command *c = (command *)job->ctx;
    idem_outcome *outcome = &job->outcome;
    long ml = command_amount(c);
    int again = job->answer != IDEM_EXECUTE, poured;

    outcome->response = response;
    if (!ml) {
        outcome->failed = 1;
        outcome->code = INVALID;
        outcome->response_len =
            (size_t)snprintf(response, sizeof response, "not 1 to 1000 ml");
        return IDEM_HANDLED;
    }
    poured = again && has_poured(c, ml);
    if (again)
        fprintf(stderr, "pumpd: %s: interrupted before, it had %spoured\n",
                c->topic, poured ? "" : "not ");
    if (!poured && !pour(c, ml))
        die(c->device->log, strerror(errno));   // unknown: recover, restarted
    total = c->device->total + (uint64_t)ml;
    outcome->state = &total;
    outcome->state_len = sizeof total;
    outcome->response_len =
        (size_t)snprintf(response, sizeof response, "poured %ld ml", ml);
    return IDEM_HANDLED;
}

/* ------------------------------------------------------------------ answers */

/* Executes a command once, and answers it. */
static void take_command(struct mosquitto *m, command *c)
{
    char response[RESPONSE_MAX];
    idem_reply reply;
    idem_request request = {
        .scope = c->topic, .scope_len = strlen(c->topic),
        .key = c->key, .key_len = c->key_len,
        .payload = c->payload, .payload_len = c->payload_len,
        .buffer = response, .buffer_size = sizeof response };
    size_t len = sizeof c->device->total;
    const char *text;
    int result = idem_run(&c->device->table, &reply, &request, execute, c,
                          millis);

    idem_state(&c->device->table, &c->device->total, &len);
    if (result == IDEM_DONE || result == IDEM_REPLAY) {
        command_answer(c, m, command_reason(result, &reply), 0, response,
                       reply.response_len);
        return;
    }
    // What failed may be done or not: be started again, and recover.
    if (result == IDEM_E_STORAGE)
        die_of(c->device, result);
    text = idem_text(result);
    fprintf(stderr, "pumpd: %s: %s\n", c->topic, text);
    command_answer(c, m, command_reason(result, &reply), reply.retry_after_ms,
                   text, strlen(text));
}

/* What most daemons do: executes whatever comes. */
static void take_command_blindly(struct mosquitto *m, command *c)
{
    long ml = command_amount(c);
    char text[RESPONSE_MAX];

    if (ml && !pour(c, ml))
        die(c->device->log, strerror(errno));
    c->device->total += (uint64_t)ml;
    snprintf(text, sizeof text, "poured %ld ml", ml);
    command_answer(c, m, ml ? POURED : INVALID, 0, text, strlen(text));
}

/* --------------------------------------------------------------------- MQTT */

static void on_message(struct mosquitto *m, void *ctx,
                       const struct mosquitto_message *message,
                       const mosquitto_property *properties)
{
    command c;

    command_open(&c, (pump *)ctx, message, properties);
    if (c.device->no_idem)
        take_command_blindly(m, &c);
    else
        take_command(m, &c);
    command_close(&c);
}

static void on_connect(struct mosquitto *m, void *ctx, int result, int flags,
                       const mosquitto_property *properties)
{
    const pump *p = (const pump *)ctx;

    (void)flags, (void)properties;
    if (result == 0)
        mosquitto_subscribe_v5(m, NULL, "pump/+/command", p->qos, 0, NULL);
    else
        fprintf(stderr, "pumpd: the broker refuses: %s\n",
                mosquitto_reason_string(result));
}

static const char *why(int result)
{
    if (result != MOSQ_ERR_ERRNO)
        return mosquitto_strerror(result);
    return errno ? strerror(errno) : "the connection broke";
}

/* Says what is wrong with the connection, once each time. */
static void tell_connection(const pump *p, int result)
{
    static int told = MOSQ_ERR_SUCCESS;

    if (result != told && result != MOSQ_ERR_SUCCESS)
        fprintf(stderr, "pumpd: %s:%d: %s; trying again\n", p->host, p->port,
                why(result));
    told = result;
}

static struct mosquitto *new_client(pump *p)
{
    struct mosquitto *m = mosquitto_new(p->id, false, p);   // a session stays

    if (!m)
        die("mosquitto_new", strerror(errno));
    mosquitto_int_option(m, MOSQ_OPT_PROTOCOL_VERSION, MQTT_PROTOCOL_V5);
    mosquitto_connect_v5_callback_set(m, on_connect);
    mosquitto_message_v5_callback_set(m, on_message);
    return m;
}

static int connect_first(struct mosquitto *m, const pump *p)
{
    mosquitto_property *properties = NULL;
    int result;

    mosquitto_property_add_int32(&properties,
                                 MQTT_PROP_SESSION_EXPIRY_INTERVAL, SESSION_S);
    result = mosquitto_connect_bind_v5(m, p->host, p->port, 30, NULL,
                                       properties);
    mosquitto_property_free_all(&properties);
    return result;
}

/* After the connection broke.  With QoS 2 libmosquitto keeps over that what it
   has in hand, also what the broker knows nothing of any more; when that is as
   much as it takes at once, it calls whatever comes a protocol error, for ever.
   A new client has nothing in hand: what is lost with it the sender repeats. */
static int connect_again(struct mosquitto **m, pump *p, int result)
{
    pause_ms(100);
    if (result != MOSQ_ERR_PROTOCOL)
        return mosquitto_reconnect(*m);
    mosquitto_destroy(*m);
    *m = new_client(p);
    return connect_first(*m, p);
}

static void run(pump *p)
{
    struct mosquitto *m;
    int result;

    mosquitto_lib_init();
    m = new_client(p);
    result = connect_first(m, p);
    while (!stop) {
        tell_connection(p, result);
        if (result != MOSQ_ERR_SUCCESS)
            result = connect_again(&m, p, result);
        if (result == MOSQ_ERR_SUCCESS)
            result = mosquitto_loop(m, 100, 1);
        if (!p->no_idem)
            idem_maintain(&p->table, millis());
    }
    mosquitto_disconnect(m);
    mosquitto_destroy(m);
    mosquitto_lib_cleanup();
}

/* ------------------------------------------------------------------ opening */

static void read_random(void *dst, size_t len)
{
    int fd = open("/dev/urandom", O_RDONLY);

    if (fd < 0 || read(fd, dst, len) != (ssize_t)len)
        die("/dev/urandom", strerror(errno));
    close(fd);
}

/* Makes a name in a folder durable. */
static void sync_folder_of(const char *path)
{
    char folder[512];
    const char *slash = strrchr(path, '/');
    int fd;

    snprintf(folder, sizeof folder, "%.*s.",
             slash ? (int)(slash + 1 - path) : 0, path);
    fd = open(folder, O_RDONLY);
    if (fd < 0 || fsync(fd) != 0)
        die(folder, strerror(errno));
    close(fd);
}

/* Makes the secret whole or not at all, whenever this process is killed: under
   a name of its own first.  The last step is a link, which fails where rename
   would replace: the secret of a daemon that was started at the same time. */
static void make_secret(const char *path, pump *p)
{
    uint8_t *secret = p->config.secret;
    size_t size = sizeof p->config.secret;
    char fresh[512];
    int fd;

    snprintf(fresh, sizeof fresh, "%s.%ld", path, (long)getpid());
    read_random(secret, size);
    unlink(fresh);
    fd = open(fresh, O_WRONLY | O_CREAT | O_EXCL, 0600);
    if (fd < 0 || write(fd, secret, size) != (ssize_t)size ||
        fsync(fd) != 0 || close(fd) != 0)
        die(fresh, strerror(errno));
    if (link(fresh, path) != 0 && errno != EEXIST)
        die(path, strerror(errno));
    unlink(fresh);
    sync_folder_of(path);
}

/* Reads the table's secret, which is beside the journal; makes it if neither is
   there. */
static void open_secret(pump *p)
{
    char path[480];
    size_t size = sizeof p->config.secret;
    ssize_t len;
    int fd;

    if (snprintf(path, sizeof path, "%s.secret", p->journal) >=
        (int)sizeof path)
        die(p->journal, "too long a name");
    if (access(path, F_OK) != 0 && access(p->journal, F_OK) != 0)
        make_secret(path, p);
    fd = open(path, O_RDONLY);
    if (fd < 0)
        die(path, errno == ENOENT ? "the journal is there, its secret is not: "
                                    "restore it, or remove the journal too"
                                  : strerror(errno));
    len = read(fd, p->config.secret, size);
    if (len < 0)
        die(path, strerror(errno));
    if (len == 0)
        die(path, "empty; restore it, or remove it and the journal");
    if (len < (ssize_t)size)
        die(path, "shorter than 16 bytes; restore it, or remove it and the "
                  "journal");
    close(fd);
}

static void open_journal(pump *p)
{
    size_t size = IDEM_JOURNAL_MEMORY_SIZE(CAPACITY, KEY_MAX, RESPONSE_MAX,
                                           TOTAL, 1);
    size_t len = sizeof p->total;
    int result;

    open_secret(p);
    p->config.capacity = CAPACITY;
    p->config.key_max = KEY_MAX;
    p->config.response_max = RESPONSE_MAX;
    p->config.state_max = TOTAL;
    p->config.retention_ms = SESSION_S * UINT32_C(1000);
    p->config.max_attempts = 255;   // each is looked up in the log first
    p->memory = malloc(size);
    result = idem_file_open(&p->file, p->journal, SECTOR, SECTORS);
    if (result != IDEM_OK) {
        fputs("pumpd: ", stderr);
        reason_print_file(p->journal, result, &p->file);
        exit(1);
    }
    p->config.storage = &p->file.storage;
    result = idem_open(&p->table, &p->config, p->memory, size, millis());
    if (result == IDEM_OK)
        result = idem_state(&p->table, &p->total, &len);
    if (result != IDEM_OK)
        die_of(p, result);
}

static void parse(pump *p, char **argv)
{
    for (argv++; *argv; argv++) {
        const char *name = *argv, *value = argv[1];
        if (!strcmp(name, "--help")) {
            fputs(help, stdout);
            exit(0);
        }
        if (!strcmp(name, "--no-idem")) {
            p->no_idem = 1;
            continue;
        }
        if (!value)
            die(name, "what?  see --help");
        argv++;
        if (!strcmp(name, "--host"))
            p->host = value;
        else if (!strcmp(name, "--port"))
            p->port = atoi(value);
        else if (!strcmp(name, "--qos"))
            p->qos = atoi(value);
        else if (!strcmp(name, "--id"))
            p->id = value;
        else if (!strcmp(name, "--journal"))
            p->journal = value;
        else if (!strcmp(name, "--log"))
            p->log = value;
        else if (!strcmp(name, "--ml-ms"))
            p->ml_ms = atoi(value);
        else
            die(name, "what?  see --help");
    }
}

int main(int argc, char **argv)
{
    static pump p = { .host = "127.0.0.1", .id = "pumpd",
                      .journal = "pump.journal", .log = "pump.log",
                      .port = 1883, .qos = 1 };
    struct sigaction action;

    (void)argc;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_signal;
    parse(&p, argv);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    open_log(&p);
    if (!p.no_idem)
        open_journal(&p);
    puts("ready");                      // from now on a signal ends it well
    fflush(stdout);
    run(&p);
    if (!p.no_idem && idem_file_close(&p.file) != IDEM_OK)
        die(p.journal, strerror(p.file.error));
    free(p.memory);
    printf("total %llu ml\n", (unsigned long long)p.total);
    return 0;
}
