/* SPDX-License-Identifier: 0BSD */
/* cc -I../.. gateway.c -lmodbus -o gateway
 * ./gateway --port 1502
 *
 * A Modbus TCP gateway in front of a pump.  A master numbers its commands, and
 * writes number and amount into its window of registers (registers.h); each
 * number pours once, whatever is lost, repeated or restarted, and even if it
 * comes long after its outcome was forgotten.  Start your own gateway from it.
 *
 * A Modbus message does not name its sender, so each window is one.  The
 * network must decide who may write to which window (Modbus/TCP Security, a
 * firewall, a serial line each).
 */
#define _GNU_SOURCE 1           // Linux: a sync takes less
#define _POSIX_C_SOURCE 200809L
#define IDEM_FILE_STORAGE
#define IDEM_IMPLEMENTATION
#include "idem.h"
#include "../station/station.h"
#include "registers.h"

#include <fcntl.h>
#include <modbus/modbus.h>
#include <poll.h>

// A window may have QUOTA numbers that are remembered, so all of them fit.
enum { QUOTA = 200, CAPACITY = WINDOWS * QUOTA, KEY_MAX = 1 + 8 };
enum { CONNECTIONS = 4 * WINDOWS };
enum { WRITE_MANY = 0x10, WRITE_AND_READ = 0x17 };

static const char help[] =
    "gateway [options]\n"
    "executes commands that arrive over Modbus TCP, each number once\n\n"
    "  --retention S    how long an outcome is kept (86400)\n";

static station the = { .port = 1502, .j.path = "modbus.journal",
                       .p.path = "modbus.log" };
static modbus_t *bus;
static modbus_mapping_t *registers;

// The listener, then connections; and when each was heard last.
static struct pollfd polled[1 + CONNECTIONS];   // fd -1: none
static uint32_t heard_ms[1 + CONNECTIONS];

/* ------------------------------------------------------------------ answers */

static void answer(const idem_request *r, int status, uint32_t retry_ms,
                   int result)
{
    uint16_t *at = registers->tab_registers +
                   WINDOW * *(const uint8_t *)r->scope + ANSWER_AT;

    registers_set(at, r->epoch);
    registers_set(at + 2, r->sequence);
    at[4] = (uint16_t)status;
    at[5] = (uint16_t)(retry_ms > 6553500 ? 0xFFFF : (retry_ms + 99) / 100);
    at[6] = (uint16_t)(int16_t)result;
}

/* The answer for a command that was not executed now. */
static void answer_result(const idem_request *r, int result,
                          const idem_reply *reply)
{
    uint32_t left = 1 + pump_left(&the.p);

    switch (result) {
    case IDEM_REPLAY:
        answer(r, (int)reply->code, 0, result);
        break;
    case IDEM_E_FULL:           // of this window: it may be long
        answer(r, STATUS_RETRY, reply->retry_after_ms, result);
        break;
    case IDEM_TOO_OLD:
    case IDEM_EXHAUSTED:
        answer(r, STATUS_LOOK, 0, result);
        break;
    case IDEM_MISMATCH:
    case IDEM_E_ARG:
    case IDEM_E_TOO_LARGE:
        answer(r, STATUS_REFUSED, 0, result);
        break;
    default:                    // after IDEM_E_SPACE: it may have poured
        answer(r, STATUS_RETRY, left, result);
    }
}

static void finish(const idem_request *r, const idem_claim *claim, int status,
                   int result)
{
    station_complete(&the, claim, status, status != STATUS_POURED, "");
    answer(r, status, 0, result);
}

/* ----------------------------------------------------------------- commands */

/* Executes a command that was claimed, after a look at the log. */
static void execute(const idem_request *r, const idem_claim *claim, int result,
                    long ml)
{
    char id[PUMP_ID];

    pump_id(id, r);
    switch (pump_look(&the.p, result, id, ml)) {
    case PUMP_HAS_POURED:
        finish(r, claim, STATUS_POURED, result);
        return;
    case PUMP_LOOK_AT_THE_CUP:
        finish(r, claim, STATUS_LOOK, result);
        return;
    }
    if (station_may_begin(&the)) {
        pump_start(&the.p, claim, id, ml);
    } else {
        station_release(&the, claim);
        result = IDEM_RELEASED;
    }
    answer(r, STATUS_RETRY, 1 + pump_left(&the.p), result);
}

/* Takes the command that is about to be written to a window. */
static void take_command(uint8_t window, const uint8_t *written)
{
    unsigned ml = registers_word(written + 8);
    idem_request r = { .scope = &window, .scope_len = 1,
                       .epoch = registers_number(written),
                       .sequence = registers_number(written + 4),
                       .payload = written + 8, .payload_len = 2,
                       .lease_ms = IDEM_LEASE_NONE };
    idem_reply reply = { 0 };
    idem_claim claim;
    int result;

    if (r.sequence == 0 || ml == 0 || ml > 1000) {
        answer(&r, STATUS_REFUSED, 0, IDEM_E_ARG);
        return;
    }
    result = idem_begin(&the.j.table, &claim, &reply, &r, journal_millis());
    if (result == IDEM_E_STORAGE)
        journal_need(&the.j, result);
    if (station_granted(result))
        execute(&r, &claim, result, (long)ml);
    else
        answer_result(&r, result, &reply);
}

/* ------------------------------------------------------------------- Modbus */

/* True if a write is one whole command, and what is to be read with it is
   there: after an exception nothing has been executed. */
static int is_command(const uint8_t *pdu, int write)
{
    unsigned at = registers_word(pdu + write);
    unsigned from = registers_word(pdu + 1), count = registers_word(pdu + 3);

    if (pdu[0] == WRITE_AND_READ &&
        (count == 0 || count > MODBUS_MAX_WR_READ_REGISTERS ||
         from + count > WINDOWS * WINDOW))
        return 0;
    return at % WINDOW == 0 && at / WINDOW < WINDOWS &&
           registers_word(pdu + write + 2) == COMMAND_LEN &&
           pdu[write + 4] == 2 * COMMAND_LEN;
}

/* Answers a request; -1 if it cannot be sent.  A command's answer is in the
   registers before libmodbus reads them, so function 23 has it at once. */
static int serve(const uint8_t *adu, int len)
{
    const uint8_t *pdu = adu + modbus_get_header_length(bus);
    int write = pdu[0] == WRITE_MANY ? 1 : pdu[0] == WRITE_AND_READ ? 5 : 0;

    if (pdu[0] == MODBUS_FC_READ_HOLDING_REGISTERS)
        return modbus_reply(bus, adu, len, registers);
    if (!write)
        return modbus_reply_exception(bus, adu,
                                      MODBUS_EXCEPTION_ILLEGAL_FUNCTION);
    if (!is_command(pdu, write))
        return modbus_reply_exception(bus, adu,
                                      MODBUS_EXCEPTION_ILLEGAL_DATA_ADDRESS);
    take_command((uint8_t)(registers_word(pdu + write) / WINDOW),
                 pdu + write + 5);
    return modbus_reply(bus, adu, len, registers);
}

/* Reads and answers one request of a connection; 0 if that has ended. */
static int serve_connection(int fd)
{
    uint8_t adu[MODBUS_TCP_MAX_ADU_LENGTH];
    int len;

    modbus_set_socket(bus, fd);
    len = modbus_receive(bus, adu);
    return len == 0 || (len > 0 && serve(adu, len) >= 0);
}

/* Ends the connection that is silent for longest, and returns its place: that
   of a master that lost power never ends by itself. */
static int drop_silent(uint32_t now)
{
    int i, place = 1;

    for (i = 2; i <= CONNECTIONS; i++)
        if (polled[place].fd < 0 ||
            (polled[i].fd >= 0 && now - heard_ms[i] > now - heard_ms[place]))
            place = i;
    if (polled[place].fd >= 0)
        close(polled[place].fd);
    polled[place].fd = -1;
    return place;
}

/* Takes a connection; if there are as many as may be, or as the system allows,
   in place of another. */
static void accept_connection(void)
{
    uint32_t now = journal_millis();
    int place = 1, fd = modbus_tcp_accept(bus, &polled[0].fd);

    while (place <= CONNECTIONS && polled[place].fd >= 0)
        place++;
    if (place > CONNECTIONS ||
        (fd < 0 && (errno == EMFILE || errno == ENFILE)))
        place = drop_silent(now);
    if (fd < 0)                         // it is still there for the next turn
        return;
    // A master that does not read its answers is not waited for.  One that asks
    // when it has read the last one has room for the next.
    fcntl(fd, F_SETFL, O_NONBLOCK);
    polled[place].fd = fd;
    heard_ms[place] = now;
}

/* Has the pump stop when it is time.  (What pours by itself, and not into a
   log, has a timer of its own for that: a message may be waited for.) */
static void attend_pump(void)
{
    if (pump_stops(&the.p))
        station_complete(&the, &the.p.claim, STATUS_POURED, 0, "");
}

static void run(int listener)
{
    int i;

    for (i = 0; i <= CONNECTIONS; i++) {
        polled[i].fd = i ? -1 : listener;
        polled[i].events = POLLIN;
    }
    while (station_runs(&the)) {
        int ready = poll(polled, 1 + CONNECTIONS, 20);
        if (ready < 0 && errno != EINTR)    // fewer files are allowed than that
            journal_die("poll", strerror(errno));
        for (i = 1; i <= CONNECTIONS && ready > 0; i++)
            if (polled[i].revents) {
                heard_ms[i] = journal_millis();
                if (!serve_connection(polled[i].fd)) {
                    close(polled[i].fd);
                    polled[i].fd = -1;
                }
                attend_pump();
            }
        if (ready > 0 && polled[0].revents)
            accept_connection();
        attend_pump();
        idem_maintain(&the.j.table, journal_millis());
    }
}

int main(int argc, char **argv)
{
    const char *retention = "86400";
    int listener;

    (void)argc;
    station_parse(&the, argv, help, "--retention", &retention);
    the.j.config.capacity = CAPACITY;
    the.j.config.key_max = KEY_MAX;
    the.j.config.senders = WINDOWS;
    the.j.config.quota = QUOTA;
    the.j.config.retention_ms =
        1000 * station_number("--retention", retention,
                              IDEM_RETENTION_MAX / 1000);
    station_open(&the);
    bus = modbus_new_tcp("127.0.0.1", the.port);
    registers = modbus_mapping_new(0, 0, WINDOWS * WINDOW, 0);
    if (!bus || !registers)
        journal_die("gateway", modbus_strerror(errno));
    // A request comes at once, and whole: meanwhile nobody else is served.
    modbus_set_indication_timeout(bus, 0, 100000);
    modbus_set_byte_timeout(bus, 0, 0);
    // libmodbus waits this time after some errors; 0 is not allowed.
    modbus_set_response_timeout(bus, 0, 1);
    listener = modbus_tcp_listen(bus, 8);
    if (listener < 0)
        journal_die("gateway", modbus_strerror(errno));
    station_ready();
    run(listener);
    close(listener);
    modbus_mapping_free(registers);
    modbus_free(bus);
    station_close(&the);
    return 0;
}
