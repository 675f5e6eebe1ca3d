/* SPDX-License-Identifier: 0BSD   cc -std=c99 -I.. hello.c -o hello */
#define IDEM_IMPLEMENTATION
#include "idem.h"
#include <stdio.h>
#include <string.h>

/* keys, bytes of scope and key, of a response; no state, no senders */
IDEM_DEFINE_MEMORY(pump, 64, 24, 16, 0, 0);
static idem_config config = {
    .capacity = pump_capacity, .key_max = pump_key_max,
    .response_max = pump_response_max,
    .retention_ms = 10 * 60 * 1000 /* a sender may repeat for ten minutes */
};
static idem_table table;

static void command(const char *key, const char *payload, uint32_t now_ms)
{
    char answer[16];
    idem_claim claim;
    idem_reply reply;
    idem_outcome outcome = { .response = "poured", .response_len = 6 };
    idem_request request = { .key = key, .key_len = strlen(key),
        .payload = payload, .payload_len = strlen(payload),
        .buffer = answer, .buffer_size = sizeof answer };
    int result = idem_begin(&table, &claim, &reply, &request, now_ms);

    printf("%s %-10s %s\n", key, payload, idem_text(result));
    if (result == IDEM_REPLAY && reply.response_len <= sizeof answer)
        printf("              answer: %.*s\n", (int)reply.response_len, answer);
    if (result == IDEM_EXECUTE)
        puts("              PUMP RUNS");
    else if (result == IDEM_RECOVER || result == IDEM_UNCERTAIN) {
        outcome.failed = 1; /* it may have poured before: never pour twice */
        outcome.response = "check!";
    } else
        return;
    if (idem_complete(&table, &claim, &outcome, now_ms + 100) != IDEM_OK)
        puts("              not recorded: do not report it as done");
}

/* 16 random bytes; a device with a journal is given them when it is made. */
static int make_secret(void)
{
    FILE *source = fopen("/dev/urandom", "rb");
    size_t got = source ? fread(config.secret, 1, 16, source) : 0;

    if (source)
        fclose(source);
    return got == 16;
}

int main(void)
{
    int result = IDEM_E_ARG;

    if (make_secret())
        result = idem_open(&table, &config, pump_memory, sizeof pump_memory,
                           0);
    if (result != IDEM_OK) {
        const char *why = idem_explain(&config);
        printf("%s: %s\n", idem_text(result), why ? why : "");
        return 1;
    }
    command("42", "pour 5 ml", 1000);
    command("42", "pour 5 ml", 3000); /* sent again: the answer was lost */
    command("43", "pour 5 ml", 4000); /* a second helping is another key */
    command("42", "pour 9 ml", 5000); /* a bug of the sender's */
    return 0;
}
