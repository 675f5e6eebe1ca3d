/* SPDX-License-Identifier: 0BSD */
/* What idem_retry answers to lines "base cap deadline times elapsed retry_after
   random answer": the same lines, each with verdict and delay. */
#define IDEM_STATIC
#define IDEM_IMPLEMENTATION
#include "idem.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define NAMED(name, value, text) { #name, value },

static const struct {
    const char *name;
    int value;
} results[] = { IDEM_RESULTS(NAMED) { "IDEM_SILENCE", IDEM_SILENCE } };

static int value_of(const char *name)
{
    size_t i;

    for (i = 0; i < sizeof results / sizeof results[0]; i++)
        if (!strcmp(results[i].name + strlen("IDEM_"), name))
            return results[i].value;
    return 99;                          // of a newer device
}

static const char *word_of(int verdict)
{
    switch (verdict) {
    case IDEM_DONE:     return "done";
    case IDEM_RESEND:   return "resend";
    case IDEM_LOOK:     return "look";
    case IDEM_REFUSED:  return "refused";
    case IDEM_GIVE_UP:  return "give-up";
    default:            return "?";
    }
}

int main(void)
{
    idem_patience p = { 0 };
    idem_sent s = { 0 };
    char line[200], answer[32];
    uint32_t delay;
    int verdict;

    while (fgets(line, sizeof line, stdin)) {
        if (line[0] == '#') {
            fputs(line, stdout);
            continue;
        }
        if (sscanf(line, "%" SCNu32 " %" SCNu32 " %" SCNu32 " %" SCNu32
                   " %" SCNu32 " %" SCNu32 " %" SCNu32 " %31s", &p.base_ms,
                   &p.cap_ms, &p.deadline_ms, &s.times, &s.elapsed_ms,
                   &s.retry_after_ms, &s.random, answer) != 8)
            return 1;
        verdict = idem_retry(&delay, &p, &s, value_of(answer));
        printf("%" PRIu32 " %" PRIu32 " %" PRIu32 " %" PRIu32 " %" PRIu32
               " %" PRIu32 " %" PRIu32 " %s %s", p.base_ms, p.cap_ms,
               p.deadline_ms, s.times, s.elapsed_ms, s.retry_after_ms,
               s.random, answer, word_of(verdict));
        if (verdict == IDEM_RESEND)
            printf(" %" PRIu32, delay);
        putchar('\n');
    }
    return 0;
}
