/* SPDX-License-Identifier: 0BSD   cc -std=c99 -I.. hello.c -o hello */
#define IDEM_IMPLEMENTATION
#include "idem.h"
#include <stdio.h>
#include <string.h>

/* keys, bytes of scope and key, of a response; no state, no senders */
IDEM_DEFINE_MEMORY(pump, 64, 24, 16, 0, 0);
static const idem_config config = {
    .capacity = pump_capacity, .key_max = pump_key_max,
    .response_max = pump_response_max,
    .secret = { 0x8c, 0x3f, 0x71, 0x0d, 0xe2, 0x95, 0x4a, 0xb6, /* random, */
                0x1e, 0xd8, 0x07, 0x63, 0xfa, 0x2b, 0x90, 0x54 }, /* yours */
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

int main(void)
{
    int result = idem_open(&table, &config, pump_memory, sizeof pump_memory, 0);

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
