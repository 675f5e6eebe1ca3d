/* SPDX-License-Identifier: 0BSD */
/* Commands over MQTT 5, and their answers: for pumpd.c, and a gateway of a
   fleet.  Include it after idem.h, and define struct device. */
#ifndef COMMAND_H
#define COMMAND_H

#include <mosquitto.h>
#include <mqtt_protocol.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Reason codes of answers; those of idem.h's results are in its >>replying.
enum {
    POURED = 0x00,
    SPECIFIC = 0x83,            // implementation specific error
    QUOTA = 0x97,
    INVALID = 0x99,             // payload format
    RETAINED = 0x9A             // retain not supported
};

// A sender asks for a command for DEADLINE_S at most, and asks the broker to
// drop what it then still has (message expiry interval), for the broker keeps
// that as long as we are connected, however busy; while we are away it keeps it
// for SESSION_S.  What we have in our socket it cannot drop any more: that we
// drop ourselves, after IN_HAND_S (connection.h).  An answer is remembered for
// longer than all three: a copy that comes later would be executed once more.
// The broker counts from when it reads, by its clock on the wall: it must not
// stand still for half an hour or more, nor may that be set back by as much.
enum { DEADLINE_S = 43200, SESSION_S = 39600, IN_HAND_S = 1800,
       RETENTION_S = 86400 };
typedef char late_copies_are_known
    [DEADLINE_S + SESSION_S + IN_HAND_S < RETENTION_S ? 1 : -1];

// One command, taken out of its message.
typedef struct command {
    struct device *device;
    const char *topic, *payload;
    size_t   payload_len;
    void    *key;
    uint16_t key_len;
} command;

/* For the callback of a subscription: returns whether the broker granted it.
   If not, nothing would ever come, and nobody would know why. */
static inline int command_granted(const char *program, int count,
                                  const int *granted)
{
    int i;

    for (i = 0; i < count; i++)
        if (granted[i] >= 0x80) {
            fprintf(stderr, "%s: the broker refuses the subscription: %s\n",
                    program, mosquitto_reason_string(granted[i]));
            return 0;
        }
    return 1;
}

/* The value of the user property `wanted`, to be freed; NULL if it is not
   there. */
static inline char *command_property(const mosquitto_property *p,
                                     const char *wanted)
{
    char *name = NULL, *value = NULL, *found = NULL;
    bool again = false;

    while (!found && (p = mosquitto_property_read_string_pair(
                          p, MQTT_PROP_USER_PROPERTY, &name, &value,
                          again)) != NULL) {
        if (!strcmp(name, wanted))
            found = value;
        else
            free(value);
        free(name);
        again = true;
    }
    return found;
}

/* The key is the correlation data, or else the user property "key". */
static inline void command_read_key(command *c, const mosquitto_property *p)
{
    if (mosquitto_property_read_binary(p, MQTT_PROP_CORRELATION_DATA, &c->key,
                                       &c->key_len, false))
        return;
    c->key = command_property(p, "key");
    c->key_len = c->key ? (uint16_t)strlen((char *)c->key) : 0;
}

/* Takes a command out of a message, which must stay meanwhile.  Whether the
   broker thinks it delivers twice means nothing: a sender that asks again sends
   a new message.  So the DUP flag is not looked at. */
static inline void command_open(command *c, struct device *device,
                                const struct mosquitto_message *message,
                                const mosquitto_property *properties)
{
    memset(c, 0, sizeof *c);
    c->device = device;
    c->topic = message->topic;
    c->payload = (const char *)message->payload;
    c->payload_len = (size_t)message->payloadlen;
    command_read_key(c, properties);
}

static inline void command_close(command *c)
{
    free(c->key);
}

/* The millilitres of a command, 1 to 1000; 0 if it is none. */
static inline long command_amount(const command *c)
{
    char text[8];
    long ml;

    if (c->payload_len == 0 || c->payload_len >= sizeof text)
        return 0;
    memcpy(text, c->payload, c->payload_len);
    text[c->payload_len] = 0;
    if (strspn(text, "0123456789") != c->payload_len)
        return 0;
    ml = strtol(text, NULL, 10);
    return ml > 1000 ? 0 : ml;
}

static inline int command_reason(int result, const idem_reply *reply)
{
    switch (result) {
    case IDEM_DONE:
    case IDEM_REPLAY:       return reply->code;         // the outcome's own
    case IDEM_MISMATCH:     return INVALID;
    case IDEM_TOO_OLD:
    case IDEM_EXHAUSTED:
    case IDEM_E_ARG:
    case IDEM_E_TOO_LARGE:  return SPECIFIC;
    default:                return QUOTA;               // ask again
    }
}

/* The topic of a command's answer, to be freed: pump/<sender>/answer.  The
   sender does not choose it.  A response topic would be written to with our
   rights, so it could be another sender's, or that of a command. */
static inline char *command_answer_topic(const command *c)
{
    static const char last[] = "command", answer[] = "answer";
    size_t len = strlen(c->topic), from = len - (sizeof last - 1);
    char *topic = NULL;

    if (len >= sizeof last - 1 && !strcmp(c->topic + from, last))
        topic = (char *)malloc(len + 1);
    if (topic) {
        memcpy(topic, c->topic, from);
        memcpy(topic + from, answer, sizeof answer);
    }
    return topic;
}

/* Publishes an answer, with QoS 0: if it gets lost, the sender asks again.  It
   has the amount too: a sender that uses a key for two commands would take
   the answer to one for that to the other. */
static inline void command_answer(const command *c, struct mosquitto *m,
                                  int reason, uint32_t retry_ms,
                                  const void *text, size_t len)
{
    mosquitto_property *properties = NULL;
    char *topic = command_answer_topic(c);
    char number[12];

    if (!topic)
        return;
    mosquitto_property_add_binary(&properties, MQTT_PROP_CORRELATION_DATA,
                                  c->key, c->key_len);
    snprintf(number, sizeof number, "0x%02x", (unsigned)reason);
    mosquitto_property_add_string_pair(&properties, MQTT_PROP_USER_PROPERTY,
                                       "reason", number);
    snprintf(number, sizeof number, "%lu", (unsigned long)retry_ms);
    if (retry_ms)
        mosquitto_property_add_string_pair(&properties,
                                           MQTT_PROP_USER_PROPERTY,
                                           "retry-after-ms", number);
    if (command_amount(c)) {
        snprintf(number, sizeof number, "%.*s", (int)c->payload_len,
                 c->payload);
        mosquitto_property_add_string_pair(&properties,
                                           MQTT_PROP_USER_PROPERTY, "ml",
                                           number);
    }
    mosquitto_publish_v5(m, NULL, topic, (int)len, text, 0, false, properties);
    mosquitto_property_free_all(&properties);
    free(topic);
}

#endif
