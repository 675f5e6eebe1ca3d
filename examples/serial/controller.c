/* SPDX-License-Identifier: 0BSD */
/* The controller: sends commands and repeats each until it is answered.  It
   knows nothing of idem.h; its part is that a repeat has the same key. */
#include "host.h"
#include "protocol.h"
#include "traffic.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OPEN_MAX 64
#define FIRST_PATIENCE_MS 60
#define LAST_PATIENCE_MS 500

static const char help[] =
    "controller LINE [options]\n"
    "sends commands over a line, repeats each until it is answered\n\n"
    "  LINE            a terminal (stty sets its speed), unix:PATH or\n"
    "                  tcp:HOST:PORT\n"
    "  --count N       commands (400)\n"
    "  --seed N        which commands (1)\n"
    "  --window N      so many at the same time (6)\n"
    "  --patience S    give up if so long none is answered (120)\n"
    "  --linger MS     listen so long for late answers at the end (0)\n"
    "  --log FILE      write every answer there: command, result, payload\n"
    "  --progress 1    a line for each command that is answered\n\n"
    "exit status: 0 all done, 1 some failed or refused, 3 gave up\n";

/* A command that is not answered yet */
typedef struct pending {
    uint32_t index;
    uint32_t due;               /* when it is sent, or sent again */
    uint32_t patience;
} pending;

static struct {
    int      line;
    uint32_t count, seed, window, patience_s, linger_ms;
    FILE    *log;
    int      progress;
    pending  open[OPEN_MAX];
    uint32_t open_count;
    uint32_t begun, answered, done, sent, answers;
    uint32_t last_ms;           /* when a command was answered last */
} c;

static void send_command(pending *p, uint32_t now)
{
    uint8_t frame[PROTOCOL_FRAME_MAX];
    protocol_message m;
    traffic_command command;

    traffic_make(&command, c.seed, p->index);
    memset(&m, 0, sizeof m);
    m.kind = PROTOCOL_COMMAND;
    m.scope = (const uint8_t *)command.scope;
    m.scope_len = (uint8_t)strlen(command.scope);
    m.key = (const uint8_t *)command.key;
    m.key_len = (uint8_t)strlen(command.key);
    m.payload = command.payload;
    m.payload_len = command.payload_len;
    host_write(c.line, frame, protocol_encode(frame, &m));
    c.sent++;
    p->due = now + p->patience;
    p->patience += p->patience / 2;
    if (p->patience > LAST_PATIENCE_MS)
        p->patience = LAST_PATIENCE_MS;
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

static void close_command(pending *p, const protocol_message *m, uint32_t now)
{
    *p = c.open[--c.open_count];
    c.answered++;
    c.done += m->result == PROTOCOL_DONE;
    c.last_ms = now;
    if (c.progress) {
        printf("%u\n", (unsigned)c.answered);
        fflush(stdout);
    }
}

static void take_answer(const protocol_message *m, uint32_t now)
{
    uint32_t i, index = traffic_find(m->scope, m->scope_len, m->key,
                                     m->key_len);

    if (m->kind != PROTOCOL_ANSWER || index >= c.begun)
        return;
    c.answers++;
    if (m->result != PROTOCOL_WAIT)
        log_answer(index, m);
    for (i = 0; i < c.open_count; i++) {
        if (c.open[i].index != index)
            continue;
        if (m->result != PROTOCOL_WAIT)
            close_command(&c.open[i], m, now);
        else if (m->payload_len == 2)
            c.open[i].due = now + protocol_get16(m->payload);
        return;
    }
}

/* Opens new commands, sends what is due; returns for how long there is nothing
   to do. */
static int send_what_is_due(uint32_t now)
{
    int32_t wait = 1000;
    uint32_t i;

    while (c.open_count < c.window && c.begun < c.count) {
        pending *p = &c.open[c.open_count++];

        p->index = c.begun++;
        p->due = now;
        p->patience = FIRST_PATIENCE_MS;
    }
    for (i = 0; i < c.open_count; i++) {
        if ((int32_t)(now - c.open[i].due) >= 0)
            send_command(&c.open[i], now);
        if ((int32_t)(c.open[i].due - now) < wait)
            wait = (int32_t)(c.open[i].due - now);
    }
    return wait;
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
            take_answer(&m, host_millis());
    return len < 0 ? -1 : 0;
}

static int run(void)
{
    uint32_t now = host_millis(), end;

    c.last_ms = now;
    while (c.answered < c.count) {
        int gone = listen_for(send_what_is_due(now)) < 0;

        now = host_millis();
        if (gone || now - c.last_ms > c.patience_s * 1000) {
            fprintf(stderr, "controller: no answer to %u commands\n",
                    (unsigned)(c.count - c.answered));
            return 3;
        }
    }
    end = now + c.linger_ms;
    while ((int32_t)(end - host_millis()) > 0 && listen_for(20) == 0)
        ;
    if (!c.progress)
        printf("%u commands: %u done; %u frames sent, %u answers received\n",
               (unsigned)c.count, (unsigned)c.done, (unsigned)c.sent,
               (unsigned)c.answers);
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
    else if (strcmp(name, "--patience") == 0)
        c.patience_s = host_number(value, 100000);
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
    if (argc < 2 || i != argc || argv[1][0] == '-')
        return host_help(argc, argv, help);
    c.line = host_open_line(argv[1]);
    if (c.line < 0)
        return 2;
    i = run();
    if (c.log && fclose(c.log) != 0)
        host_die("log");
    return i;
}
