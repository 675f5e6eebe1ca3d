/* SPDX-License-Identifier: 0BSD */
#include "traffic.h"
#include "host.h"
#include "protocol.h"
#include <stdio.h>
#include <string.h>

#define SENDERS 3
static const char *const senders[SENDERS] = { "panel", "phone", "cloud" };

void traffic_make(traffic_command *command, uint32_t seed, uint32_t index)
{
    static const char *const drinks[] = {
        "espresso", "green tea", "lemonade", "tonic water", "cold brew"
    };
    uint32_t draw = seed ^ index * 0x01000193u;

    memset(command, 0, sizeof *command);
    strcpy(command->scope, senders[index % SENDERS]);
    snprintf(command->key, sizeof command->key, "%05u",
             (unsigned)(index / SENDERS));
    if (host_random(&draw, 3) > 0) {
        command->ml = (uint16_t)(1 + host_random(&draw, 500));
        command->payload[0] = 'p';
        protocol_put16(command->payload + 1, command->ml);
        command->payload_len = 3;
    } else {
        command->payload_len = (uint8_t)snprintf(
            (char *)command->payload, sizeof command->payload,
            "l%s for table %u", drinks[host_random(&draw, 5)],
            (unsigned)host_random(&draw, 40));
    }
}

uint32_t traffic_find(const void *scope, size_t scope_len, const void *key,
                      size_t key_len)
{
    const char *digits = (const char *)key;
    uint32_t sender, number = 0;
    size_t i;

    for (sender = 0; sender < SENDERS; sender++)
        if (strlen(senders[sender]) == scope_len &&
            memcmp(senders[sender], scope, scope_len) == 0)
            break;
    if (sender == SENDERS || key_len != 5)
        return TRAFFIC_NONE;
    for (i = 0; i < key_len; i++) {
        if (digits[i] < '0' || digits[i] > '9')
            return TRAFFIC_NONE;
        number = number * 10 + (uint32_t)(digits[i] - '0');
    }
    return number * SENDERS + sender;
}
