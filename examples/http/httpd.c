/* SPDX-License-Identifier: 0BSD */
/* cc -I../.. httpd.c -lmicrohttpd -lpthread -o httpd
 * umask 077                 # only you may read these files.  Tokens are in
 *                           # files, for ps shows every command line
 * echo "panel $(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')" > http.tokens
 * sed 's/panel /Authorization: Bearer /' http.tokens > panel.header
 * ./httpd & curl -i http://127.0.0.1:8080/pours -d 5 -H @panel.header \
 *     -H "Idempotency-Key: \"$(cat /proc/sys/kernel/random/uuid)\""
 *
 * An HTTP server in front of a pump: POST /pours with "5" pours 5 ml, once for
 * each Idempotency-Key of each client, with a thread for each connection.  A
 * repeated request gets the first one's status, headers and body.  README.md
 * has the status codes.  Start your own server from it.
 */
#define _GNU_SOURCE 1           // Linux: a sync takes less
#define _XOPEN_SOURCE 700
#define IDEM_FILE_STORAGE
#define IDEM_IMPLEMENTATION
#include "idem.h"
#include "../group.h"
#include "../port/threads.h"
#include "../station/station.h"
#include "clients.h"
#include "exchange.h"

#include <arpa/inet.h>

// A client that has used up its quota shuts out nobody else.
enum { QUOTA = 250, CAPACITY = CLIENTS * QUOTA };
enum { CONNECTIONS = 64, IDLE_S = 10 };

static const char help[] =
    "httpd [options]\n"
    "executes commands that arrive over HTTP, each once\n\n"
    "  --tokens FILE    lines \"NAME TOKEN\", of clients (http.tokens)\n";

static station the = { .port = 8080, .j.path = "http.journal",
                       .p.path = "http.log" };
static clients known;

// The table has one lock; the pump another, which is held while it pours.
static pthread_mutex_t table_lock, pump_lock = PTHREAD_MUTEX_INITIALIZER;

// Requests that have come as a whole, and wait for their answers
static pthread_mutex_t count_lock = PTHREAD_MUTEX_INITIALIZER;
static int unanswered;

static int count(int more)
{
    int now;

    pthread_mutex_lock(&count_lock);
    now = unanswered += more;
    pthread_mutex_unlock(&count_lock);
    return now;
}

// Those who wait for the disk, which one sync serves.
static group waiting = GROUP_INITIALIZER;

/* Waits until all that was written is durable; or the program ends, and the
   next start finds out what is. */
static void wait_for_disk(void)
{
    journal_need(&the.j, group_sync(&waiting, &the.j.table));
}

/* ------------------------------------------------------------------ answers */

static enum MHD_Result answer(struct MHD_Connection *c, int result,
                              const exchange *e)
{
    const char *text = idem_text(result);
    uint32_t wait_ms = e->reply.retry_after_ms;

    if (wait_ms == IDEM_LEASE_NONE)     // until the pump stops, soon
        wait_ms = 0;
    if (e->reply.claim.token)           // it may have poured: a restart looks
        journal_need(&the.j, result);
    switch (result) {
    case IDEM_DONE:
    case IDEM_REPLAY:
        return exchange_replay(c, e);
    case IDEM_BUSY:
        return exchange_refuse(c, MHD_HTTP_CONFLICT, 1 + wait_ms / 1000, text);
    case IDEM_MISMATCH:
        return exchange_refuse(c, MHD_HTTP_UNPROCESSABLE_CONTENT, 0, text);
    case IDEM_TOO_OLD:
        return exchange_refuse(c, MHD_HTTP_GONE, 0, text);
    case IDEM_EXHAUSTED:
        return exchange_refuse(c, MHD_HTTP_INTERNAL_SERVER_ERROR, 0, text);
    case IDEM_E_ARG:
    case IDEM_E_TOO_LARGE:
        return exchange_refuse(c, MHD_HTTP_BAD_REQUEST, 0, text);
    case IDEM_E_STORAGE:                // after a restart it is known
        journal_need(&the.j, result);
    }
    return exchange_refuse(c, MHD_HTTP_SERVICE_UNAVAILABLE, 1 + wait_ms / 1000,
                           text);
}

/* --------------------------------------------------------------------- pour */

/* Sets what is stored and sent: status, headers that matter, body. */
static int set_outcome(idem_job *job, int status, const char *text)
{
    exchange *e = (exchange *)job->ctx;
    char location[40] = "";

    if (status == MHD_HTTP_CREATED)
        snprintf(location, sizeof location, "Location: /pours/%llu\n",
                 (unsigned long long)job->claim->token);
    snprintf(e->response, sizeof e->response,
             "%sContent-Type: text/plain\n\n%s\n", location, text);
    job->outcome.response_len = strlen(e->response);
    job->outcome.response = e->response;
    job->outcome.code = status;
    job->outcome.failed = status >= MHD_HTTP_BAD_REQUEST;
    return IDEM_HANDLED;
}

/* Executes a command that idem_run has claimed.  idem_run holds no lock now, so
   other requests are answered; a second pour waits for the pump, and is given
   back if a signal has come meanwhile. */
static int pour(idem_job *job)
{
    const exchange *e = (exchange *)job->ctx;
    long ml = pump_amount(e->body, e->body_len);
    char id[PUMP_ID], text[STATION_TEXT];
    int found;

    if (!ml)
        return set_outcome(job, MHD_HTTP_BAD_REQUEST, "not 1 to 1000 ml");
    wait_for_disk();                    // the claim, before the effect
    pump_id(id, job->request);
    pthread_mutex_lock(&pump_lock);
    found = pump_look(&the.p, job->answer, id, ml);
    if (found == PUMP_MAY_POUR && station_stop) {
        pthread_mutex_unlock(&pump_lock);
        return IDEM_NOT_DONE;
    }
    if (found == PUMP_MAY_POUR) {
        pump_start(&the.p, job->claim, id, ml);
        while (!pump_stops(&the.p))
            clock_turn(pump_left(&the.p));
    }
    pthread_mutex_unlock(&pump_lock);
    if (found == PUMP_LOOK_AT_THE_CUP)
        return set_outcome(job, MHD_HTTP_INTERNAL_SERVER_ERROR,
                           "interrupted: look at the cup");
    station_poured(text, ml);
    return set_outcome(job, MHD_HTTP_CREATED, text);
}

/* ----------------------------------------------------------------- requests */

typedef struct fields {
    const char *name;
    int      count;
} fields;

static enum MHD_Result count_field(void *ctx, enum MHD_ValueKind kind,
                                   const char *name, const char *value)
{
    fields *f = (fields *)ctx;

    (void)kind, (void)value;
    f->count += strcasecmp(name, f->name) == 0;
    return MHD_YES;
}

/* How many fields of that name there are */
static int count_fields(struct MHD_Connection *c, const char *name)
{
    fields f = { name, 0 };

    MHD_get_connection_values(c, MHD_HEADER_KIND, count_field, &f);
    return f.count;
}

static const char *header(struct MHD_Connection *c, const char *name)
{
    return MHD_lookup_connection_value(c, MHD_HEADER_KIND, name);
}

/* Begins an exchange with its headers.  Nobody's body is read before it is
   known whose it is. */
static enum MHD_Result begin(struct MHD_Connection *c, exchange *e,
                             const char *url, const char *method)
{
    const char *len = header(c, MHD_HTTP_HEADER_CONTENT_LENGTH);

    if (strcmp(url, "/pours") != 0)
        return exchange_refuse(c, MHD_HTTP_NOT_FOUND, 0, "only POST /pours");
    if (strcmp(method, "POST") != 0)
        return exchange_refuse(c, MHD_HTTP_METHOD_NOT_ALLOWED, 0, "POST only");
    e->client = clients_find(&known,
                             header(c, MHD_HTTP_HEADER_AUTHORIZATION));
    if (!e->client)
        return exchange_refuse(c, MHD_HTTP_UNAUTHORIZED, 0,
                               "no client has this token");
    // libmicrohttpd takes the first: who meant the other one sent another
    // amount.
    if (count_fields(c, MHD_HTTP_HEADER_CONTENT_LENGTH) +
            count_fields(c, MHD_HTTP_HEADER_TRANSFER_ENCODING) > 1)
        return exchange_refuse(c, MHD_HTTP_BAD_REQUEST, 0,
                               "the body has two lengths");
    if (len && strtoull(len, NULL, 10) > sizeof e->body)
        return exchange_refuse(c, MHD_HTTP_CONTENT_TOO_LARGE, 0,
                               "the body is too long");
    return MHD_YES;
}

/* Takes the command out of a request; or the reason why not. */
static const char *read_command(struct MHD_Connection *c, exchange *e)
{
    const char *value = header(c, "Idempotency-Key");
    size_t key_len = sizeof e->key;

    if (count_fields(c, "Idempotency-Key") != 1)
        return "one Idempotency-Key is required";
    if (idem_key_http(e->key, &key_len, value, strlen(value)) != IDEM_OK)
        return "Idempotency-Key is not one string in quotes";
    e->request.scope = e->client;
    e->request.scope_len = strlen(e->client);
    e->request.key = e->key;
    e->request.key_len = key_len;
    e->request.payload = e->body;       // there is one method and path
    e->request.payload_len = e->body_len;
    e->request.lease_ms = IDEM_LEASE_NONE;      // a thread is never given up
    e->request.buffer = e->response;
    e->request.buffer_size = sizeof e->response;
    return NULL;
}

static enum MHD_Result on_request(void *ctx, struct MHD_Connection *c,
                                  const char *url, const char *method,
                                  const char *version, const char *data,
                                  size_t *data_len, void **own)
{
    exchange *e = (exchange *)*own;
    const char *why;
    int result;

    (void)ctx, (void)version;
    if (!e) {
        *own = e = (exchange *)calloc(1, sizeof *e);
        return e ? begin(c, e, url, method) : MHD_NO;
    }
    if (*data_len) {
        if (*data_len > sizeof e->body - e->body_len)
            return MHD_NO;              // chunks without an end: closes
        memcpy(e->body + e->body_len, data, *data_len);
        e->body_len += *data_len;
        *data_len = 0;
        return MHD_YES;
    }
    e->has_come = 1;
    count(1);
    why = read_command(c, e);
    if (why)
        return exchange_refuse(c, MHD_HTTP_BAD_REQUEST, 0, why);
    result = idem_run(&the.j.table, &e->reply, &e->request, pour, e,
                      journal_millis);
    wait_for_disk();                    // what the answer relies on
    return answer(c, result, e);
}

static void on_end(void *ctx, struct MHD_Connection *c, void **own,
                   enum MHD_RequestTerminationCode code)
{
    const exchange *e = (const exchange *)*own;

    (void)ctx, (void)c, (void)code;
    if (e && e->has_come)
        count(-1);
    free(*own);
}

static struct MHD_Daemon *start_http(void)
{
    struct sockaddr_in at;
    struct MHD_Daemon *d;

    memset(&at, 0, sizeof at);
    at.sin_family = AF_INET;
    at.sin_port = htons((uint16_t)the.port);
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    d = MHD_start_daemon(
        MHD_USE_THREAD_PER_CONNECTION | MHD_USE_INTERNAL_POLLING_THREAD |
            MHD_USE_ITC,
        (uint16_t)the.port, NULL, NULL, on_request, NULL,
        MHD_OPTION_SOCK_ADDR, &at,
        MHD_OPTION_CONNECTION_LIMIT, (unsigned)CONNECTIONS,
        MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)IDLE_S,
        MHD_OPTION_NOTIFY_COMPLETED, on_end, NULL, MHD_OPTION_END);
    if (!d)
        journal_die("httpd: the port", strerror(errno));
    return d;
}

int main(int argc, char **argv)
{
    const char *tokens = "http.tokens";
    struct MHD_Daemon *d;
    int listening;

    (void)argc;
    station_parse(&the, argv, help, "--tokens", &tokens);
    clients_read(&known, tokens);
    the.j.config.capacity = CAPACITY;
    the.j.config.key_max = KEY_MAX;
    the.j.config.response_max = RESPONSE_MAX;
    the.j.config.senders = CLIENTS;
    the.j.config.quota = QUOTA;
    the.j.config.durability = IDEM_BATCH;
    the.j.config.lock_ctx = &table_lock;
    the.j.config.lock = threads_lock;
    the.j.config.unlock = threads_unlock;
    if (threads_init(&table_lock) != 0)
        journal_die("httpd", "no mutex");
    station_open(&the);
    d = start_http();
    station_ready();
    while (!station_stop) {
        idem_maintain(&the.j.table, journal_millis());
        clock_turn(CLOCK_TURN_MS);
    }
    listening = MHD_quiesce_daemon(d);
    while (count(0) > 0)                // a stop would close their connections
        clock_turn(CLOCK_TURN_MS);
    MHD_stop_daemon(d);
    close(listening);
    station_close(&the);
    return 0;
}
