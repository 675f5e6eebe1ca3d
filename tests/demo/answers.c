/* SPDX-License-Identifier: 0BSD */
/* Which answers examples/sender.c takes for its own, and what it prints of
   them: several senders share a line, and may use the same numbers.
       answers_test OUTBOX      the name of a new file */
#define main sender_main
#include "examples/sender.c"
#undef main

static uint8_t result = PROTOCOL_DONE;
static uint8_t refusal;                 /* the payload of PROTOCOL_REFUSED */

static void hear(const char *from, uint8_t kind, size_t key_len, uint32_t left)
{
    protocol_message m = {
        .kind = kind, .result = result,
        .scope_len = (uint8_t)strlen(from), .key_len = (uint8_t)key_len,
        .scope = (const uint8_t *)from, .key = s.open[0].number,
        .payload = &refusal, .payload_len = result == PROTOCOL_REFUSED
    };

    take_answer(&m, clock_ms());
    if (s.open_count == left)
        return;
    fprintf(stderr, "answers: of scope \"%s\": %u commands left, not %u\n",
            from, (unsigned)s.open_count, (unsigned)left);
    exit(1);
}

/* The next command ends so, and the sender's exit status is this. */
static void ends(uint8_t with, int failed)
{
    result = with;
    s.failed = 0;
    put((const uint8_t *)"p\005\000", 3, clock_ms());
    hear(scope, PROTOCOL_ANSWER, PROTOCOL_NUMBER_SIZE, 0);
    if (s.failed == failed)
        return;
    fprintf(stderr, "answers: result %u: status %d\n", with, s.failed);
    exit(1);
}

/* A refusal is never "done", whatever number is in it. */
static void refuse(void)
{
    static const uint8_t no_refusals[] = { IDEM_OK, IDEM_REPLAY, IDEM_DONE };

    put((const uint8_t *)"p\005\000", 3, clock_ms());
    result = PROTOCOL_REFUSED;
    for (size_t i = 0; i < sizeof no_refusals; i++) {
        refusal = no_refusals[i];
        hear(scope, PROTOCOL_ANSWER, PROTOCOL_NUMBER_SIZE, 1);
    }
    refusal = IDEM_TOO_OLD;
    hear(scope, PROTOCOL_ANSWER, PROTOCOL_NUMBER_SIZE, 0);
    result = PROTOCOL_DONE;
}

/* An outbox may have more commands than are taken now, of a build with a larger
   OPEN. */
static void reopen_all(const char *path)
{
    int i;

    for (i = 0; i < KEYS; i++) {
        s.open_count = 0;
        put((const uint8_t *)"p\005\000", 3, clock_ms());
    }
    s.open_count = 0;
    (void)idem_file_close(&file);
    open_outbox(path);
    if (s.open_count == KEYS && s.open[KEYS - 1].payload_len == 3)
        return;
    fprintf(stderr, "answers: %u commands of %u\n", (unsigned)s.open_count,
            (unsigned)KEYS);
    exit(1);
}

/* Enters a command, and acts at such times: the line is silent. */
static void act_at(const long long at[4])
{
    s.line = open("/dev/null", O_WRONLY);
    s.commands = fopen("/dev/null", "r");
    put((const uint8_t *)"p\005\000", 3, at[0]);
    for (int i = 0; i < 4; i++)
        (void)act(at[i]);
    fclose(s.commands);
    close(s.line);
}

/* A machine that sleeps for a month goes on at once: it asks once more, and
   gives up. */
static void sleep_for_a_month(void)
{
    long long now = clock_ms(), later = now + 30 * 86400000LL;

    act_at((long long[]){ now, now + ANSWER_MS, later, later + ANSWER_MS });
    if (s.open_count == 0)
        return;
    fputs("answers: after a month it goes on waiting\n", stderr);
    exit(1);
}

/* On a machine that has run for two months it asks again after silence, and not
   before. */
static void run_for_two_months(void)
{
    long long now = 60 * 86400000LL;

    act_at((long long[]){ now, now + ANSWER_MS - 1, now + ANSWER_MS,
                          now + 2 * ANSWER_MS });
    if (s.open_count != 1 || s.open[0].times != 2) {
        fputs("answers: after two months it does not wait\n", stderr);
        exit(1);
    }
    hear(scope, PROTOCOL_ANSWER, PROTOCOL_NUMBER_SIZE, 0);
}

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    open_outbox(argv[1]);
    put((const uint8_t *)"p\005\000", 3, clock_ms());
    hear("other", PROTOCOL_ANSWER, PROTOCOL_NUMBER_SIZE, 1);
    hear("", PROTOCOL_ANSWER, PROTOCOL_NUMBER_SIZE, 1);
    hear("panels", PROTOCOL_ANSWER, PROTOCOL_NUMBER_SIZE, 1);
    hear("pane", PROTOCOL_ANSWER, PROTOCOL_NUMBER_SIZE, 1);
    hear(scope, PROTOCOL_NUMBERED, PROTOCOL_NUMBER_SIZE, 1);
    hear(scope, PROTOCOL_ANSWER, PROTOCOL_NUMBER_SIZE - 1, 1);
    hear(scope, PROTOCOL_ANSWER, PROTOCOL_NUMBER_SIZE, 0);
    ends(PROTOCOL_DONE, 0);
    ends(PROTOCOL_FAILED, 1);
    ends(PROTOCOL_LOOK, 1);
    refuse();
    sleep_for_a_month();
    run_for_two_months();
    reopen_all(argv[1]);
    puts("answers: those of its own scope and number");
    return 0;
}
