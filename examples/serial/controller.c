/* SPDX-License-Identifier: 0BSD */
/* The controller: sends commands and repeats each, with the same key, until it
   is answered.  From idem.h it uses only idem_retry, which decides when to
   repeat, and when to stop. */
#define IDEM_STATIC
#define IDEM_IMPLEMENTATION
#include "idem.h"
#include "../clock.h"
#include "host.h"
#include "protocol.h"
#include "traffic.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OPEN_MAX 64
#define ANSWER_MS 60            /* the longest time of an answer */
#define FIRST_WAIT_MS 60
#define LAST_WAIT_MS 500
#define PATIENCE_MAX_S 43200    /* the device remembers a key for twice that */

static const char help[] =
    "controller LINE [options]\n"
    "sends commands over a line, repeats each until it is answered\n\n"
    "  LINE            a terminal (stty sets its speed), unix:PATH or\n"
    "                  tcp:HOST:PORT\n"
    "  --count N       commands (400)\n"
    "  --seed N        which commands (1)\n"
    "  --window N      commands at the same time (6)\n"
    "  --numbers 1     senders number their commands, instead of keys\n"
    "  --patience S    give a command up after S seconds (120), 43200 at most\n"
    "  --linger MS     listen for late answers at the end (0)\n"
    "  --log FILE      write every answer there: command, result, payload\n"
    "  --progress 1    a line for each command that is answered\n\n"
    "exit status: 0 all done, 1 some failed, were refused, or nobody knows,\n"
    "3 gave up\n";

/* A command that is not answered yet */
typedef struct pending {
    uint32_t index;
    long long first_ms;         /* when it was sent first, */
    uint32_t times;             /* and how often since */
    int      listening;         /* 1: for its answer */
    long long due;              /* when that ends, or it is sent */
} pending;

static struct {
    int      line;
    uint32_t count, seed, window, patience_s, linger_ms, random;
    FILE    *log;
    int      progress, numbers;
    pending  open[OPEN_MAX];
    uint32_t open_count;
    uint32_t begun, answered, given_up, done, looks, sent, answers;
} c;

static void send_command(pending *p, long long now)
{
    uint8_t frame[PROTOCOL_FRAME_MAX], number[PROTOCOL_NUMBER_SIZE];
    protocol_message m;
    traffic_command command;

    traffic_make(&command, c.seed, p->index);
    memset(&m, 0, sizeof m);
    m.kind = PROTOCOL_COMMAND;
    m.scope = (const uint8_t *)command.scope;
    m.scope_len = (uint8_t)strlen(command.scope);
    m.key = (const uint8_t *)command.key;
    m.key_len = (uint8_t)strlen(command.key);
    if (c.numbers) {
        protocol_put32(number, command.epoch);
        protocol_put32(number + 4, command.sequence);
        m.kind = PROTOCOL_NUMBERED;
        m.key = number;
        m.key_len = sizeof number;
    }
    m.payload = command.payload;
    m.payload_len = command.payload_len;
    host_write(c.line, frame, protocol_encode(frame, &m));
    c.sent++;
    if (p->times++ == 0)
        p->first_ms = now;
    p->listening = 1;
    p->due = now + ANSWER_MS;
}

static void log_answer(uint32_t index, const protocol_message *m)
{
    unsigned i;

    if (!c.log)
        return;
    fprintf(c.log, "%u %u ", (unsigned)index, m->result);
    for (i = 0; i < m->payload_len; i++)
        fprintf(c.log, "%02x", m->payload[i]);
    fputc('\n', c.log);
}

static void close_command(pending *p, int verdict)
{
    *p = c.open[--c.open_count];
    if (verdict == IDEM_GIVE_UP) {
        c.given_up++;
        return;
    }
    c.answered++;
    if (c.progress) {
        printf("%u\n", (unsigned)c.answered);
        fflush(stdout);
    }
}

/* After an answer to a command, or silence: it is closed, or sent later. */
static int decide(pending *p, int answer, uint32_t retry_after_ms,
                  long long now)
{
    idem_patience patience = { 0 };
    idem_sent sent = { 0 };
    uint32_t delay;
    int verdict;

    patience.base_ms = FIRST_WAIT_MS;
    patience.cap_ms = LAST_WAIT_MS;
    patience.deadline_ms = c.patience_s * 1000;
    sent.times = p->times;
    sent.elapsed_ms = clock_elapsed(now - p->first_ms);
    sent.retry_after_ms = retry_after_ms;
    sent.random = host_random(&c.random, UINT32_MAX);
    verdict = idem_retry(&delay, &patience, &sent, answer);
    p->listening = 0;
    p->due = now + delay;
    if (verdict != IDEM_RESEND)
        close_command(p, verdict);
    return verdict;
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
    *retry_after_ms = 0;
    switch (m->result) {
    case PROTOCOL_DONE:
    case PROTOCOL_FAILED:
    case PROTOCOL_LOOK:
        return IDEM_OK;
    case PROTOCOL_WAIT:
        if (m->payload_len == 2)
            *retry_after_ms = protocol_get16(m->payload);
        return IDEM_BUSY;
    case PROTOCOL_REFUSED:
        return m->payload_len == 1 ? read_refusal((int8_t)m->payload[0])
                                   : IDEM_SILENCE;
    default:
        return IDEM_SILENCE;
    }
}

/* A command has ended, so or so. */
static void end_command(uint32_t index, unsigned result)
{
    traffic_command command;

    c.done += result == PROTOCOL_DONE;
    if (result != PROTOCOL_LOOK)
        return;
    c.looks++;
    traffic_make(&command, c.seed, index);
    fprintf(stderr, "controller: %s %s: nobody knows: look at the cup\n",
            command.scope, command.key);
}

static void take_answer(const protocol_message *m, long long now)
{
    uint32_t i, index = traffic_find(m->scope, m->scope_len, m->key,
                                     m->key_len), retry_after_ms;
    int answer = read_answer(m, &retry_after_ms);

    if (m->kind != PROTOCOL_ANSWER || index >= c.begun)
        return;
    c.answers++;
    if (m->result != PROTOCOL_WAIT)
        log_answer(index, m);
    for (i = 0; i < c.open_count; i++) {
        if (c.open[i].index != index)
            continue;
        if (decide(&c.open[i], answer, retry_after_ms, now) == IDEM_DONE)
            end_command(index, m->result);
        return;
    }
}

static void open_commands(long long now)
{
    while (c.open_count < c.window && c.begun < c.count) {
        pending *p = &c.open[c.open_count++];

        memset(p, 0, sizeof *p);
        p->index = c.begun++;
        p->due = now;
    }
}

/* Too late for another time, though it was not when that was decided: a machine
   may sleep in between. */
static int is_late(const pending *p, long long now)
{
    return p->times > 0 && now - p->first_ms > 1000LL * c.patience_s;
}

/* Does what is due; returns for how long there is nothing to do. */
static int act(long long now)
{
    long long wait = 1000;
    uint32_t i;

    // From the last on: one that is closed is replaced by the last.
    for (i = c.open_count; i-- > 0;) {
        if (now < c.open[i].due)
            continue;
        if (c.open[i].listening || is_late(&c.open[i], now))
            (void)decide(&c.open[i], IDEM_SILENCE, 0, now);
        else
            send_command(&c.open[i], now);
    }
    open_commands(now);
    for (i = 0; i < c.open_count; i++)
        if (c.open[i].due - now < wait)
            wait = c.open[i].due - now;
    return (int)wait;
}

/* Takes what comes within wait_ms.  Returns -1 if the line is gone. */
static int listen_for(int wait_ms)
{
    static protocol_decoder decoder;
    protocol_message m;
    uint8_t bytes[256];
    int i, len = host_read(c.line, bytes, sizeof bytes, wait_ms);

    for (i = 0; i < len; i++)
        if (protocol_decode(&decoder, &m, bytes[i]))
            take_answer(&m, clock_ms());
    return len < 0 ? -1 : 0;
}

static int run(void)
{
    long long now = clock_ms(), end;

    while (c.answered + c.given_up < c.count) {
        int gone = listen_for(act(now)) < 0;

        now = clock_ms();
        if (gone)
            c.given_up = c.count - c.answered;
    }
    if (c.given_up) {
        fprintf(stderr, "controller: no answer to %u commands\n",
                (unsigned)c.given_up);
        return 3;
    }
    end = now + c.linger_ms;
    while (clock_ms() < end && listen_for(20) == 0)
        ;
    if (!c.progress)
        printf("%u commands: %u done, %u to be looked at; %u frames sent, "
               "%u answers received\n", (unsigned)c.count, (unsigned)c.done,
               (unsigned)c.looks, (unsigned)c.sent, (unsigned)c.answers);
    return c.done == c.count ? 0 : 1;
}

static int take_option(const char *name, const char *value)
{
    if (strcmp(name, "--count") == 0)
        c.count = host_number(value, 99999);
    else if (strcmp(name, "--seed") == 0)
        c.seed = host_number(value, UINT32_MAX);
    else if (strcmp(name, "--window") == 0)
        c.window = host_number(value, OPEN_MAX);
    else if (strcmp(name, "--numbers") == 0)
        c.numbers = (int)host_number(value, 1);
    else if (strcmp(name, "--patience") == 0)
        c.patience_s = host_number(value, PATIENCE_MAX_S);
    else if (strcmp(name, "--linger") == 0)
        c.linger_ms = host_number(value, 100000);
    else if (strcmp(name, "--progress") == 0)
        c.progress = (int)host_number(value, 1);
    else if (strcmp(name, "--log") == 0 && (c.log = fopen(value, "w")) == NULL)
        host_die(value);
    else if (strcmp(name, "--log") != 0)
        return -1;
    return 0;
}

int main(int argc, char **argv)
{
    int i;

    c.count = 400;
    c.seed = 1;
    c.window = 6;
    c.patience_s = 120;
    for (i = 2; i + 1 < argc; i += 2)
        if (take_option(argv[i], argv[i + 1]) < 0)
            break;
    if (c.window == 0) {                // nothing would ever be sent
        fputs("controller: --window: a number from 1 to 64\n", stderr);
        return 2;
    }
    if (c.patience_s == 0) {
        fputs("controller: --patience: a number from 1 to 43200\n", stderr);
        return 2;
    }
    if (argc < 2 || i != argc || argv[1][0] == '-')
        return host_help(argc, argv, help);
    c.line = host_open_line(argv[1]);
    if (c.line < 0)
        return 2;
    c.random = c.seed;
    if (c.numbers)
        traffic_number();
    i = run();
    if (c.log && fclose(c.log) != 0)
        host_die("log");
    return i;
}
