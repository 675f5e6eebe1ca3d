/* SPDX-License-Identifier: 0BSD */
#include "traffic.h"
#include "host.h"
#include "protocol.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SENDERS 3
static const char *const senders[SENDERS] = { "panel", "phone", "cloud" };

static int numbered;

/* Keys look random, but differ for those who know how they are made: a
   product with an odd number has its inverse. */
static uint32_t scramble(uint32_t number)
{
    return (number ^ 0x5A17C3E9u) * 0x9E3779B1u;
}

static uint32_t unscramble(uint32_t key)
{
    return (key * 0x0E8B2F51u) ^ 0x5A17C3E9u;
}

void traffic_number(void)
{
    numbered = 1;
}

void traffic_make(traffic_command *command, uint32_t seed, uint32_t index)
{
    static const char *const drinks[] = {
        "espresso", "green tea", "lemonade", "tonic water", "cold brew"
    };
    uint32_t draw = seed ^ index * 0x01000193u;

    memset(command, 0, sizeof *command);
    strcpy(command->scope, senders[index % SENDERS]);
    command->epoch = 1;
    command->sequence = index / SENDERS + 1;
    if (numbered)
        snprintf(command->key, sizeof command->key, "#1.%u",
                 (unsigned)command->sequence);
    else
        snprintf(command->key, sizeof command->key, "%08x",
                 (unsigned)scramble(index / SENDERS));
    if (host_random(&draw, 3) > 0) {
        command->ml = (uint16_t)(1 + host_random(&draw, 500));
        command->payload[0] = 'p';
        protocol_put16(command->payload + 1, command->ml);
        command->payload_len = 3;
    } else {
        const char *drink = drinks[host_random(&draw, 5)];

        snprintf((char *)command->payload, sizeof command->payload,
                 "l%s for table %u", drink, (unsigned)host_random(&draw, 40));
        command->payload_len = (uint8_t)strlen((char *)command->payload);
    }
}

/* The index of the sender, or SENDERS */
static uint32_t find_sender(const void *scope, size_t scope_len)
{
    uint32_t sender;

    for (sender = 0; sender < SENDERS; sender++)
        if (strlen(senders[sender]) == scope_len &&
            memcmp(senders[sender], scope, scope_len) == 0)
            break;
    return sender;
}

/* Which of its sender's commands a text names, if it is the key of one. */
static uint32_t find_text(const char *text, size_t len)
{
    char copy[16] = "";

    if (len < 4 || len >= sizeof copy)
        return TRAFFIC_NONE;
    memcpy(copy, text, len);
    return numbered ? (uint32_t)strtoul(copy + 3, NULL, 10) - 1
                    : unscramble((uint32_t)strtoul(copy, NULL, 16));
}

uint32_t traffic_find(const void *scope, size_t scope_len, const void *key,
                      size_t key_len)
{
    const uint8_t *bytes = (const uint8_t *)key;
    uint32_t sender = find_sender(scope, scope_len), index;
    int binary = numbered && key_len == PROTOCOL_NUMBER_SIZE;
    traffic_command command;

    index = binary ? protocol_get32(bytes + 4) - 1
                   : find_text((const char *)key, key_len);
    if (sender == SENDERS || index >= TRAFFIC_NONE / SENDERS)
        return TRAFFIC_NONE;
    index = index * SENDERS + sender;
    traffic_make(&command, 0, index);
    if (binary ? protocol_get32(bytes) != command.epoch
               : strlen(command.key) != key_len ||
                 memcmp(command.key, key, key_len) != 0)
        return TRAFFIC_NONE;
    return index;
}
