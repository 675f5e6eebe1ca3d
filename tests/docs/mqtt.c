/* SPDX-License-Identifier: 0BSD */
/* A handler of MQTT messages, from the manual alone: MQTT 5 with libmosquitto;
   a reason code, as the manual's >>replying has it, goes with each answer. */
#include "idem.h"
#include <mosquitto.h>
#include <mqtt_protocol.h>
#include <stdlib.h>
#include <string.h>

extern idem_table table;
extern uint32_t millis(void);
extern idem_handler move_arm;
void on_message(struct mosquitto *m, void *ctx,
                const struct mosquitto_message *message,
                const mosquitto_property *properties);

static const char *reason(int result, const idem_reply *reply)
{
    switch (result) {
    case IDEM_EXECUTE:
    case IDEM_RECOVER:
    case IDEM_REPLAY:   return reply->code ? "0x83" : "0x00";
    case IDEM_BUSY:
    case IDEM_E_FULL:   return "0x97";
    case IDEM_MISMATCH: return "0x99";
    default:            return "0x83";
    }
}

void on_message(struct mosquitto *m, void *ctx,
                const struct mosquitto_message *message,
                const mosquitto_property *properties)
{
    char text[64];
    char *topic = NULL;
    void *key = NULL;
    uint16_t key_len = 0;
    mosquitto_property *answer = NULL;
    idem_claim claim;
    idem_reply reply = { .buffer = text, .buffer_size = sizeof text };
    idem_request request = {
        .scope = message->topic, .scope_len = strlen(message->topic),
        .payload = message->payload,
        .payload_len = (size_t)message->payloadlen };
    int result;

    mosquitto_property_read_binary(properties, MQTT_PROP_CORRELATION_DATA, &key,
                                   &key_len, false);
    mosquitto_property_read_string(properties, MQTT_PROP_RESPONSE_TOPIC, &topic,
                                   false);
    request.key = key;
    request.key_len = key_len;              // none: IDEM_E_ARG, not asserted
    result = idem_run(&table, &claim, &reply, &request, move_arm, ctx,
                      millis());
    mosquitto_property_add_binary(&answer, MQTT_PROP_CORRELATION_DATA, key,
                                  key_len);
    mosquitto_property_add_string_pair(&answer, MQTT_PROP_USER_PROPERTY,
                                       "reason", reason(result, &reply));
    if (topic && result != IDEM_E_STORAGE)  // not known: the sender asks again
        mosquitto_publish_v5(m, NULL, topic, (int)reply.response_len, text, 0,
                             false, answer);
    mosquitto_property_free_all(&answer);
    free(topic);
    free(key);
}
