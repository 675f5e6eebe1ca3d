/* SPDX-License-Identifier: 0BSD   cc -std=c99 -I.. hello.c -o hello */
#define IDEM_IMPLEMENTATION
#include "idem.h"
#include <stdio.h>
#include <string.h>
#include <time.h>

/* keys, bytes of scope and key, of a response; no state, no senders */
IDEM_DEFINE_MEMORY(pump, 64, 24, 16, 0, 0);
static idem_config config = { IDEM_SIZES(pump) };
static idem_table table;

/* your tick, ms since any moment: HAL_GetTick, millis; clock() is a demo */
static uint32_t now(void)
{
    return (uint32_t)((uint64_t)clock() * 1000 / CLOCKS_PER_SEC);
}

static int pour(idem_job *job)
{
    job->outcome.failed = job->answer != IDEM_EXECUTE; /* may have run before */
    job->outcome.response = job->outcome.failed ? "check!" : "poured";
    job->outcome.response_len = 6;
    if (!job->outcome.failed)
        puts("PUMP RUNS");
    return IDEM_HANDLED;
}

static void command(const char *key, const char *payload)
{
    char response[17] = "";
    idem_request request = { .key = key, .key_len = strlen(key),
        .payload = payload, .payload_len = strlen(payload),
        .buffer = response, .buffer_size = sizeof response - 1 };
    idem_reply reply;
    int result = idem_run(&table, &reply, &request, pour, NULL, now);
    printf("%s %s: \"%s\", %s\n", key, payload, response, idem_text(result));
}

int main(void)
{
    FILE *random = fopen("/dev/urandom", "rb"); /* for the secret */

    if (!random || fread(config.secret, 1, 16, random) != 16 ||
        idem_open(&table, &config, pump_memory, sizeof pump_memory, now()) < 0)
        return 1; /* idem_explain returns why */
    command("42", "pour 5 ml");
    command("42", "pour 5 ml"); /* sent again: the answer was lost */
    command("43", "pour 5 ml"); /* 5 ml more: a new command has a new key */
    command("42", "pour 9 ml"); /* a bug in the sender */
}
