/* SPDX-License-Identifier: 0BSD */
/* What examples/serial/controller.c prints of each result of a command: "nobody
   knows" is not a failure, and a person must look (words.sh). */
#define main controller_main
#include "examples/serial/controller.c"
#undef main
#include <fcntl.h>
#include <unistd.h>

static void hear(uint32_t index, uint8_t result)
{
    traffic_command command;
    static const uint8_t done = IDEM_DONE;      // which is no refusal
    protocol_message m = { .kind = PROTOCOL_ANSWER, .result = result,
                           .payload = &done,
                           .payload_len = result == PROTOCOL_REFUSED };

    traffic_make(&command, c.seed, index);
    m.scope = (const uint8_t *)command.scope;
    m.scope_len = (uint8_t)strlen(command.scope);
    m.key = (const uint8_t *)command.key;
    m.key_len = (uint8_t)strlen(command.key);
    take_answer(&m, clock_ms());
}

/* A machine sleeps this time before it asks again: it is too late for that. */
static void sleeps(long long ms)
{
    memset(&c, 0, sizeof c);
    c.count = c.window = 1;
    c.patience_s = 100;
    c.line = open("/dev/null", O_WRONLY);
    (void)act(0);                       // takes the command
    (void)act(0);                       // sends it
    (void)act(ANSWER_MS);               // silence
    (void)act(ms);
    close(c.line);
    if (c.given_up == 1 && c.sent == 1)
        return;
    fprintf(stderr, "controller: after %lld ms: sent %u times\n", ms,
            (unsigned)c.sent);
    exit(1);
}

int main(void)
{
    sleeps(101000);
    sleeps(30 * 86400000LL);
    sleeps(UINT32_MAX + 60000LL);
    memset(&c, 0, sizeof c);
    c.count = c.window = 4;
    c.patience_s = 100;
    open_commands(clock_ms());
    hear(0, PROTOCOL_DONE);
    hear(1, PROTOCOL_LOOK);
    hear(1, PROTOCOL_LOOK);             // a repeated frame
    hear(2, PROTOCOL_FAILED);
    c.open[0].first_ms = clock_ms();    // the last one may be asked for again
    hear(3, PROTOCOL_REFUSED);
    if (c.answered != 3) {
        fputs("controller: a refusal is taken for an outcome\n", stderr);
        return 1;
    }
    hear(3, PROTOCOL_DONE);
    return run();
}
