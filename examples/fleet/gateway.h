/* SPDX-License-Identifier: 0BSD */
/* Between gateway.c, which speaks MQTT, and gateway_pump.c, which pours. */
#ifndef FLEET_GATEWAY_H
#define FLEET_GATEWAY_H

#include "effect.h"
#include "../mqtt/command.h"
#include "../mqtt/connection.h"

enum { KEY_MAX = 160, RESPONSE_MAX = 48 };

typedef struct device {
    connection broker;
    const char *store, *secret, *log;
    int      ml_ms, lease_ms, no_idem;
    long     place;                     /* in the log, before the claim */
    long long held_ms;                  /* until then the lease is ours */
    fleet    f;
    idem_config config;
} gateway;

/* A handler of idem.h; its ctx is a command. */
int gateway_execute(idem_job *job);

/* Pours, whoever has poured before. */
void gateway_pour_blindly(const command *c, long ml);

#endif
