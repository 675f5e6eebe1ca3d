/* SPDX-License-Identifier: 0BSD */
/* cc -D_XOPEN_SOURCE=700 -I.. sender.c serial/protocol.c serial/host.c \
 *     -o sender && ./sender LINE outbox commands
 *
 * The sender's half: lets the demo's device (serial/) execute each line of a
 * file once, over a line that loses, repeats and delays, and however often this
 * program is killed.
 *
 * Its outbox is a table in a file.  A command enters it as an outcome: the key
 * is its number, the response has the bytes to send, `confirm` keeps it until
 * there is an answer, and the state is the counter of numbers.  All this is one
 * record, so a number is used for one command only, and line n is always
 * command n: append to the file, and begin another outbox for another one.  If
 * the program is killed before that record, the next start takes the command
 * again; if after it, it sends the same bytes.
 */
#define _POSIX_C_SOURCE 200809L
#define IDEM_FILE_STORAGE
#define IDEM_IMPLEMENTATION
#include "idem.h"
#include "clock.h"
#include "secret.h"
#include "serial/host.h"
#include "serial/protocol.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const char help[] =
    "sender LINE OUTBOX COMMANDS\n"
    "lets the device execute each line of COMMANDS once\n\n"
    "  LINE       a terminal, unix:PATH or tcp:HOST:PORT\n"
    "  OUTBOX     a file, and OUTBOX.secret, made if there are none\n"
    "  COMMANDS   lines: \"pour ML\" or \"label TEXT\"\n\n"
    "prints the result of each; after a kill, those of the last ones again\n"
    "exit status: 0 all that it printed are done, 1 not all, 2 it could not "
    "run\n";

/* At most OPEN commands are under way; the table has room for as many more that
   are delivered; the oldest of them makes room. */
enum { OPEN = 4, KEYS = 2 * OPEN, SECTOR = 4096 };
enum { PAYLOAD_MAX = 32, STATE = PROTOCOL_NUMBER_SIZE };
enum {
    SECTORS = IDEM_SECTORS(KEYS, PROTOCOL_NUMBER_SIZE, PAYLOAD_MAX, STATE,
                           SECTOR, 1)
};
typedef char sectors_too_small[SECTORS > 0 ? 1 : -1];

static const char scope[] = "panel";
#define ANSWER_MS 60            /* the longest time of an answer */
static const idem_patience patience = {
    .base_ms = 60, .cap_ms = 1000, .deadline_ms = 12 * 60 * 60 * 1000
};

static const char *path_of_outbox, *path_of_commands;
static idem_file file;
static idem_config config = {
    .capacity = KEYS, .key_max = PROTOCOL_NUMBER_SIZE,
    .response_max = PAYLOAD_MAX, .state_max = STATE,
    .retention_ms = IDEM_RETENTION_MAX,
    .full = IDEM_EVICT_OLDEST   /* never what is not delivered */
};
static idem_table table;
static uint32_t memory[IDEM_JOURNAL_MEMORY_SIZE(KEYS, PROTOCOL_NUMBER_SIZE,
                                                PAYLOAD_MAX, STATE, 1) / 4];

/* A command that is not answered yet */
typedef struct command {
    idem_claim claim;           /* names it in the outbox */
    uint8_t    number[PROTOCOL_NUMBER_SIZE];
    uint8_t    payload[PAYLOAD_MAX];
    size_t     payload_len;
    long long  first_ms;        /* when it entered the outbox */
    uint32_t   times;           /* it was sent since the start */
    int        listening;       /* 1: for its answer */
    int        failed;          /* 1: a final failure, */
    int        look;            /* .. or nobody knows */
    long long  due;             /* when that ends, or it is sent */
} command;

static struct {
    int      line;
    FILE    *commands;
    uint8_t  counter[STATE];    /* epoch:4, sequence:4, the last one used */
    command  open[KEYS];        /* OPEN; or what a build with more has left */
    uint32_t open_count;
    uint32_t random;
    int      failed;            /* 1: a command was not executed, or may not
                                   have been */
} s;

/* ---------------------------------------------------------------------------
   the outbox
   ------------------------------------------------------------------------ */

/* Anything that fails here ends the program: what is not in the outbox is not
   sent, and what is stays there. */
static void need(int result)
{
    if (result >= 0)
        return;
    fprintf(stderr, "%s: ", path_of_outbox);
    reason_print("outbox", result, &table, &config);
    exit(2);
}

/* Adds the outcomes that idem_pending lists to the commands under way.  Their
   age does not count the time when this program did not run, and it need not:
   the device never executes a number that it has forgotten.  It would execute
   such a key again.  So an outbox of keys stores the time of the first send, by
   the clock on the wall, as python/outbox.py does. */
static void reopen(const idem_info *info, const uint8_t *id, long long now)
{
    command *c = &s.open[s.open_count++];

    memset(c, 0, sizeof *c);
    c->claim = info->claim;
    memcpy(c->number, id + info->scope_len, sizeof c->number);
    c->payload_len = sizeof c->payload;
    need(idem_response(&table, c->payload, &c->payload_len, &c->claim, 0));
    c->first_ms = now - info->age_ms;
    c->due = now;
}

/* The numbers of an outbox without a state begin in an epoch above all that
   were used before, if the clock was never set back. */
static void open_outbox(const char *path)
{
    uint8_t id[PROTOCOL_NUMBER_SIZE];
    idem_info info = { .id = id, .id_size = sizeof id };
    long long now = clock_ms();
    size_t len = sizeof s.counter;

    path_of_outbox = path;
    if (secret_open_file(&config, &file, path, SECTOR, SECTORS) != IDEM_OK)
        exit(2);
    need(idem_open(&table, &config, memory, sizeof memory, (uint32_t)now));
    if (table.stats.lost) {
        fprintf(stderr, "%s: damaged: a number might be used again.  Find out "
                "which were executed, then begin a new outbox\n", path);
        exit(2);
    }
    need(idem_state(&table, s.counter, &len));
    if (len == 0)
        protocol_put32(s.counter, clock_epoch());
    while (idem_pending(&table, &info, (uint32_t)now) == IDEM_OK)
        reopen(&info, id, now);
}

/* Takes a command: with the next number, durable when it returns. */
static void put(const uint8_t *payload, size_t len, long long now)
{
    command *c = &s.open[s.open_count++];
    idem_request request = { .key = c->number, .key_len = sizeof c->number,
                             .payload = payload, .payload_len = len };
    idem_outcome outcome = { .response = payload, .response_len = len,
                             .state = s.counter, .state_len = sizeof s.counter,
                             .confirm = 1 };
    idem_reply reply;
    int result;

    memset(c, 0, sizeof *c);
    protocol_put32(s.counter + 4, protocol_get32(s.counter + 4) + 1);
    memcpy(c->number, s.counter, sizeof c->number);
    memcpy(c->payload, payload, len);
    c->payload_len = len;
    c->first_ms = c->due = now;
    // A kill between the next two calls leaves a claim on this number.  Nothing
    // was sent with it, and the next command may be another one.
    result = idem_forget(&table, &request, (uint32_t)now);
    if (result != IDEM_E_NOT_FOUND)
        need(result);
    need(idem_begin(&table, &c->claim, &reply, &request, (uint32_t)now));
    need(idem_complete(&table, &c->claim, &outcome, (uint32_t)now));
}

/* ---------------------------------------------------------------------------
   commands and answers
   ------------------------------------------------------------------------ */

/* "pour 250" or "label green tea" as the device's payload; 0: neither */
static size_t parse(uint8_t *payload, const char *text)
{
    size_t len = strlen(text);

    if (strncmp(text, "pour ", 5) == 0) {
        payload[0] = 'p';
        protocol_put16(payload + 1, (uint16_t)host_number(text + 5, 65535));
        return 3;
    }
    if (strncmp(text, "label ", 6) != 0 || len - 5 > PAYLOAD_MAX)
        return 0;
    payload[0] = 'l';
    memcpy(payload + 1, text + 6, len - 6);
    return len - 5;
}

/* The next line, without its end; 0 if there is none.  One that is too long is
   refused: its rest would be another command; so is one without an end, which
   may be truncated. */
static int next_line(char *text, size_t size)
{
    size_t len;

    if (!fgets(text, (int)size, s.commands)) {
        if (ferror(s.commands))
            host_die(path_of_commands);
        return 0;
    }
    len = strcspn(text, "\n");
    if (!text[len]) {
        fprintf(stderr, "a line is too long, or has no newline: %s\n", text);
        exit(2);
    }
    text[len] = 0;
    return 1;
}

/* Takes as many commands as may be under way. */
static void take_commands(long long now)
{
    uint8_t payload[PAYLOAD_MAX];
    char text[80];

    while (s.open_count < OPEN && next_line(text, sizeof text)) {
        size_t len = parse(payload, text);

        if (!len) {
            fprintf(stderr, "not a command, see --help: %s\n", text);
            exit(2);
        }
        put(payload, len, now);
    }
}

/* True if a line is the command that was taken with the last number, or the
   outbox does not have that any more. */
static int is_last(const char *text)
{
    uint8_t payload[PAYLOAD_MAX], taken[PAYLOAD_MAX];
    size_t len = sizeof taken;
    idem_request last = { .key = s.counter, .key_len = sizeof s.counter };
    idem_info info = { 0 };

    if (idem_find(&table, &info, &last, host_millis()) != IDEM_OK)
        return 1;
    need(idem_response(&table, taken, &len, &info.claim, 0));
    return len == parse(payload, text) && memcmp(taken, payload, len) == 0;
}

/* Goes to the line after the last that was taken.  Of another file all lines up
   to that would be passed over. */
static void open_commands(const char *path)
{
    uint32_t taken = protocol_get32(s.counter + 4);
    char text[80] = "";

    path_of_commands = path;
    s.commands = fopen(path, "r");
    if (!s.commands)
        host_die(path);
    while (taken > 0 && next_line(text, sizeof text))
        taken--;
    if (taken == 0 && is_last(text))
        return;
    fprintf(stderr, "%s: not the commands of this outbox: begin another\n",
            path);
    exit(2);
}

static void send_command(command *c, long long now)
{
    uint8_t frame[PROTOCOL_FRAME_MAX];
    protocol_message m = {
        .kind = PROTOCOL_NUMBERED, .result = 0, .scope_len = sizeof scope - 1,
        .key_len = sizeof c->number, .payload_len = (uint8_t)c->payload_len,
        .scope = (const uint8_t *)scope, .key = c->number,
        .payload = c->payload
    };

    host_write(s.line, frame, protocol_encode(frame, &m));
    c->times++;
    c->listening = 1;
    c->due = now + ANSWER_MS;
}

/* It ended: prints that, then removes it from the outbox.  Killed in between,
   it is sent once more, and answered the same. */
static void close_command(command *c, const char *how)
{
    printf("%u: %s\n", (unsigned)protocol_get32(c->number + 4), how);
    if (fflush(stdout) != 0 || ferror(stdout))
        host_die("stdout");
    need(idem_delivered(&table, &c->claim));
    s.failed |= c->failed;
    *c = s.open[--s.open_count];
}

/* After an answer, or silence */
static void decide(command *c, int answer, uint32_t retry_after_ms,
                   long long now)
{
    idem_sent sent = { .times = c->times,
                       .elapsed_ms = clock_elapsed(now - c->first_ms),
                       .retry_after_ms = retry_after_ms,
                       .random = host_random(&s.random, UINT32_MAX) };
    uint32_t delay;

    c->listening = 0;
    switch (idem_retry(&delay, &patience, &sent, answer)) {
    case IDEM_RESEND:
        c->due = now + delay;
        break;
    case IDEM_DONE:
        close_command(c, c->look ? "nobody knows: look at the cup"
                         : c->failed ? "failed" : "done");
        break;
    case IDEM_LOOK:
    case IDEM_REFUSED:
        c->failed = 1;
        close_command(c, idem_text(answer));
        break;
    default:
        c->failed = 1;
        close_command(c, "given up; perhaps done, perhaps not");
    }
}

/* A refusal's result of idem.h, but for one that is none: nobody may take it
   for done. */
static int read_refusal(int result)
{
    return result == IDEM_OK || result == IDEM_REPLAY || result == IDEM_DONE
               ? IDEM_SILENCE : result;
}

/* A message's answer, as a result of idem.h */
static int read_answer(const protocol_message *m, uint32_t *retry_after_ms)
{
    if (m->result == PROTOCOL_DONE || m->result == PROTOCOL_FAILED ||
        m->result == PROTOCOL_LOOK)
        return IDEM_OK;
    if (m->result == PROTOCOL_WAIT && m->payload_len == 2) {
        *retry_after_ms = protocol_get16(m->payload);
        return IDEM_BUSY;
    }
    if (m->result == PROTOCOL_REFUSED && m->payload_len == 1)
        return read_refusal((int8_t)m->payload[0]);
    return IDEM_SILENCE;
}

static void take_answer(const protocol_message *m, long long now)
{
    uint32_t i, retry_after_ms = 0;
    int answer = read_answer(m, &retry_after_ms);

    // Others on the line count as we do: the scope shows whose answer it is.
    if (m->kind != PROTOCOL_ANSWER || m->scope_len != sizeof scope - 1 ||
        memcmp(m->scope, scope, m->scope_len) != 0 ||
        m->key_len != PROTOCOL_NUMBER_SIZE)
        return;
    for (i = 0; i < s.open_count; i++)
        if (memcmp(s.open[i].number, m->key, PROTOCOL_NUMBER_SIZE) == 0) {
            s.open[i].look = m->result == PROTOCOL_LOOK;
            s.open[i].failed = m->result == PROTOCOL_FAILED ||
                               m->result == PROTOCOL_LOOK;
            decide(&s.open[i], answer, retry_after_ms, now);
            return;
        }
}

/* ---------------------------------------------------------------------------
   running
   ------------------------------------------------------------------------ */

/* Does what is due; returns for how long there is nothing to do. */
static int act(long long now)
{
    long long wait = 1000;
    uint32_t i;

    // From the last on: one that is closed is replaced by the last.
    for (i = s.open_count; i-- > 0;) {
        command *c = &s.open[i];

        if (now < c->due)
            continue;
        if (c->listening)
            decide(c, IDEM_SILENCE, 0, now);
        else
            send_command(c, now);
    }
    take_commands(now);
    for (i = 0; i < s.open_count; i++)
        if (s.open[i].due - now < wait)
            wait = s.open[i].due - now;
    return (int)wait;
}

static void run(void)
{
    static protocol_decoder decoder;
    protocol_message m;
    uint8_t bytes[256];
    int wait, i, len;

    for (;;) {
        wait = act(clock_ms());
        if (s.open_count == 0)
            return;
        len = host_read(s.line, bytes, sizeof bytes, wait);
        if (len < 0)
            host_die("the line was closed");
        for (i = 0; i < len; i++)
            if (protocol_decode(&decoder, &m, bytes[i]))
                take_answer(&m, clock_ms());
        (void)idem_maintain(&table, host_millis());
    }
}

int main(int argc, char **argv)
{
    if (argc != 4)
        return host_help(argc, argv, help);
    s.line = host_open_line(argv[1]);
    if (s.line < 0)
        return 2;
    s.random = (uint32_t)time(NULL) ^ (uint32_t)getpid();
    open_outbox(argv[2]);
    open_commands(argv[3]);
    run();
    return s.failed;
}
