/* SPDX-License-Identifier: 0BSD */
/* cc -I../.. coapd.c -lcoap-3-notls -o coapd
 * ./coapd &
 * KEY=$(od -An -N16 -tx1 /dev/urandom | tr -d ' ')
 * coap-client-notls -m post -O 65001,0x$KEY -e 5 coap://127.0.0.1/pour
 *
 * A CoAP server in front of a pump: POST or PUT /pour with "5" pours 5 ml, once
 * for each key, however often the request arrives.  POST /3/0/4 restarts the
 * server, as LwM2M's Reboot does, once for each message.  README.md explains
 * the key.  Start your own server from it.
 */
#define _GNU_SOURCE 1           // Linux: a sync takes less
#define _POSIX_C_SOURCE 200809L
#define IDEM_FILE_STORAGE
#define IDEM_IMPLEMENTATION
#include "idem.h"
#include "../station/station.h"
#include "request.h"

// A sender that has used up its quota shuts out nobody else.
enum { SENDERS = 64, QUOTA = 250, CAPACITY = SENDERS * QUOTA };
enum { SESSIONS = 4 * SENDERS };    // of libcoap: a port takes one for minutes

static const char help[] =
    "coapd [options]\n"
    "executes commands that arrive over CoAP, each once\n\n"
    "  --boots FILE     gets a line at each start (coap.boots)\n";

// A libcoap handler has no argument of ours.
static station the = { .port = 5683, .j.path = "coap.journal",
                       .p.path = "coap.log" };
static const char *boots = "coap.boots";
static coap_async_t *waiting;       // the request that the pump runs for
static int reboot;                  // it is to restart: nothing begins

/* ------------------------------------------------------------------ answers */

static void respond(coap_pdu_t *response, int code, const void *text,
                    size_t len)
{
    coap_pdu_set_code(response, (coap_pdu_code_t)code);
    if (len)
        coap_add_data(response, len, (const uint8_t *)text);
}

static int code_of(int result)
{
    switch (result) {
    case IDEM_MISMATCH:     return COAP_RESPONSE_CODE_UNPROCESSABLE;
    case IDEM_TOO_OLD:      return COAP_RESPONSE_CODE_PRECONDITION_FAILED;
    case IDEM_E_ARG:
    case IDEM_E_TOO_LARGE:  return COAP_RESPONSE_CODE_BAD_REQUEST;
    case IDEM_EXHAUSTED:    return COAP_RESPONSE_CODE_INTERNAL_ERROR;
    default:                return COAP_RESPONSE_CODE_SERVICE_UNAVAILABLE;
    }
}

/* Answers what was not executed now: with the outcome, or why there is none. */
static void answer(coap_pdu_t *response, int result, const command *c,
                   const idem_reply *reply)
{
    const char *text = idem_text(result);
    uint32_t wait_ms = reply->retry_after_ms;
    uint8_t seconds[4];

    if (result == IDEM_REPLAY) {
        respond(response, (int)reply->code, c->response, reply->response_len);
        return;
    }
    if (result == IDEM_E_STORAGE)
        journal_need(&the.j, result);
    if (result == IDEM_BUSY || result == IDEM_RELEASED)
        wait_ms = pump_left(&the.p);
    if (code_of(result) == COAP_RESPONSE_CODE_SERVICE_UNAVAILABLE)
        coap_add_option(response, COAP_OPTION_MAXAGE,
                        coap_encode_var_safe(seconds, sizeof seconds,
                                             1 + wait_ms / 1000), seconds);
    respond(response, code_of(result), text, strlen(text));
}

/* Records an outcome, and answers with it. */
static void finish(coap_pdu_t *response, const idem_claim *claim, int code,
                   const char *text)
{
    station_complete(&the, claim, code, code != COAP_RESPONSE_CODE_CHANGED,
                     text);
    respond(response, code, text, strlen(text));
}

/* The pump runs for somebody else, or the server is to end: what begins now
   would be cut off.  Nothing has happened. */
static void give_back(coap_pdu_t *response, const idem_claim *claim)
{
    idem_reply none = { 0 };

    station_release(&the, claim);
    answer(response, IDEM_RELEASED, NULL, &none);
}

/* --------------------------------------------------------------------- pour */

/* The pump takes its time, so the request is acknowledged, and answered when
   the pump stops: libcoap calls on_pour again then. */
static void start_pump(coap_session_t *session, const coap_pdu_t *message,
                       coap_pdu_t *response, const idem_claim *claim,
                       const char *id, long ml)
{
    if (reboot || !station_may_begin(&the)) {
        give_back(response, claim);
        return;
    }
    pump_start(&the.p, claim, id, ml);
    waiting = command_wait(session, message);
}

static void on_pour(coap_resource_t *resource, coap_session_t *session,
                    const coap_pdu_t *message, const coap_string_t *query,
                    coap_pdu_t *response)
{
    char id[PUMP_ID], text[STATION_TEXT];
    command c;
    idem_claim claim;
    idem_reply reply;
    int result, found;
    long ml;

    (void)query;
    if (!command_read(&c, &the.j.config, resource, session, message)) {
        respond(response, COAP_RESPONSE_CODE_BAD_REQUEST, NULL, 0);
        return;
    }
    result = idem_begin(&the.j.table, &claim, &reply, &c.request,
                        journal_millis());
    if (!station_granted(result)) {
        answer(response, result, &c, &reply);
        return;
    }
    ml = pump_amount(c.request.payload, c.request.payload_len);
    if (!ml) {
        finish(response, &claim, COAP_RESPONSE_CODE_BAD_REQUEST,
               "not 1 to 1000 ml");
        return;
    }
    pump_id(id, &c.request);
    found = pump_look(&the.p, result, id, ml);
    // Message ids come again: a line may be of an older command.
    if (found == PUMP_LOOK_AT_THE_CUP || (found && c.no_key)) {
        finish(response, &claim, COAP_RESPONSE_CODE_INTERNAL_ERROR,
               "interrupted: look at the cup");
    } else if (found == PUMP_HAS_POURED) {
        station_poured(text, ml);
        finish(response, &claim, COAP_RESPONSE_CODE_CHANGED, text);
    } else {
        start_pump(session, message, response, &claim, id, ml);
    }
}

/* The pump has stopped: records that, and has the request answered. */
static void on_stopped(void)
{
    char text[STATION_TEXT];

    station_poured(text, the.p.ml);
    station_complete(&the, &the.p.claim, COAP_RESPONSE_CODE_CHANGED, 0, text);
    if (waiting)
        coap_async_trigger(waiting);
    waiting = NULL;
}

/* ------------------------------------------------------------------- reboot */

/* Completes and answers before it restarts: completed after it, it never would
   be, for the restart interrupts every attempt.  On IDEM_RECOVER it was not
   completed, so the server did not restart for it. */
static void on_reboot(coap_resource_t *resource, coap_session_t *session,
                      const coap_pdu_t *message, const coap_string_t *query,
                      coap_pdu_t *response)
{
    command c;
    idem_claim claim;
    idem_reply reply;
    int result;

    (void)query;
    if (!command_read(&c, &the.j.config, resource, session, message)) {
        respond(response, COAP_RESPONSE_CODE_BAD_REQUEST, NULL, 0);
        return;
    }
    result = idem_begin(&the.j.table, &claim, &reply, &c.request,
                        journal_millis());
    if (!station_granted(result)) {
        answer(response, result, &c, &reply);
        return;
    }
    if (result == IDEM_UNCERTAIN) {         // it may have, and been forgotten
        finish(response, &claim, COAP_RESPONSE_CODE_INTERNAL_ERROR,
               "look at its uptime");
        return;
    }
    if (reboot || !station_may_begin(&the)) {
        give_back(response, &claim);
        return;
    }
    finish(response, &claim, COAP_RESPONSE_CODE_CHANGED, "");
    reboot = 1;
}

/* --------------------------------------------------------------------- main */

static void note_start(void)
{
    int fd = open(boots, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);

    if (fd < 0 || write(fd, "start\n", 6) != 6 || fsync(fd) != 0)
        journal_die(boots, strerror(errno));
    close(fd);
}

static void add_resource(coap_context_t *context, const char *path,
                         coap_method_handler_t handler)
{
    coap_resource_t *r = coap_resource_init(coap_make_str_const(path), 0);

    coap_register_handler(r, COAP_REQUEST_POST, handler);
    if (handler == on_pour)
        coap_register_handler(r, COAP_REQUEST_PUT, handler);
    coap_add_resource(context, r);
}

/* libcoap would share the port with another server.  That would hear nothing
   more, and this one does not know what that has executed. */
static int port_is_free(const coap_address_t *at)
{
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    int is_free = fd >= 0 && bind(fd, &at->addr.sa, at->size) == 0;

    if (fd >= 0)
        close(fd);
    return is_free;
}

static coap_context_t *start_coap(void)
{
    coap_context_t *context;
    coap_address_t at;

    coap_startup();
    coap_set_log_level(LOG_EMERG);  // else each bad packet is a line of the log
    coap_address_init(&at);
    at.addr.sin.sin_family = AF_INET;
    at.addr.sin.sin_port = htons((uint16_t)the.port);
    at.addr.sin.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    at.size = sizeof at.addr.sin;
    if (!port_is_free(&at))
        journal_die("coapd: the port", strerror(errno));
    context = coap_new_context(NULL);
    if (!context || !coap_new_endpoint(context, &at, COAP_PROTO_UDP))
        journal_die("coapd", "cannot listen on the port");
    coap_context_set_max_idle_sessions(context, SESSIONS);
    coap_register_option(context, OPTION_KEY);
    add_resource(context, "pour", on_pour);
    add_resource(context, "3/0/4", on_reboot);
    return context;
}

static void run(coap_context_t *context)
{
    while (station_runs(&the) && !reboot) {
        uint32_t left = the.p.running ? 1 + pump_left(&the.p) : 100;
        if (coap_io_process(context, left < 100 ? left : 100) < 0)
            journal_die("coapd", "coap_io_process failed");
        if (pump_stops(&the.p))
            on_stopped();
        idem_maintain(&the.j.table, journal_millis());
    }
    coap_io_process(context, COAP_IO_NO_WAIT);  // the answer is on its way
}

/* Restarts the server, unless a signal has come: one that comes now ends it. */
static void start_again(char **argv)
{
    signal(SIGTERM, SIG_DFL);
    signal(SIGINT, SIG_DFL);
    if (station_stop)
        return;
    execv("/proc/self/exe", argv);
    journal_die("/proc/self/exe", strerror(errno));
}

int main(int argc, char **argv)
{
    coap_context_t *context;

    (void)argc;
    station_parse(&the, argv, help, "--boots", &boots);
    the.j.config.capacity = CAPACITY;
    the.j.config.key_max = COMMAND_KEY_MAX;
    the.j.config.response_max = STATION_TEXT;
    the.j.config.senders = SENDERS;
    the.j.config.quota = QUOTA;
    station_open(&the);
    note_start();
    context = start_coap();
    station_ready();
    run(context);
    coap_free_context(context);
    coap_cleanup();
    station_close(&the);
    if (reboot)
        start_again(argv);
    return 0;
}
