/* SPDX-License-Identifier: 0BSD */
/* The pump of gateway.c: it only waits, and writes lines into the log. */
#define _POSIX_C_SOURCE 200809L
#include "gateway.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { NAME = EFFECT_LINE - 40 };

/* What the log calls a command, in dst of NAME bytes.  A topic is the
   sender's: what is not plain in it must not look like another part of a
   line. */
static const char *name_of(char *dst, const command *c)
{
    const unsigned char *key = (const unsigned char *)c->key;
    const unsigned char *at = (const unsigned char *)c->topic;
    FILE *text = fmemopen(dst, NAME, "w");

    if (!text)
        effect_die("name of a command", strerror(errno));
    for (; *at; at++)
        fprintf(text, *at > ' ' && *at <= '~' && *at != '\\' ? "%c" : "\\x%02x",
                *at);
    fputc(' ', text);
    for (size_t i = 0; i < c->key_len; i++)
        fprintf(text, "%02x", key[i]);
    if (fclose(text) != 0)
        effect_die("name of a command", "too long");
    return dst;
}

/* Pours, and renews the lease in each eighth of it; returns whether it came to
   its end.  It stops where a renewal failed, and the next might end after the
   lease, when another may take over, if it waits for one answer of the store.
   A pump runs on while a renewal waits: that time counts.  (One that pours has
   a timer of its own, for a renewal may outlast it.) */
static int pour(const command *c, long ml, const idem_claim *claim)
{
    gateway *g = c->device;
    long long end = clock_ms() + ml * g->ml_ms, rest, asked;
    long slice = g->lease_ms / 8;
    int result = IDEM_OK;

    while ((rest = end - clock_ms()) > 0) {
        if (result == IDEM_E_FENCED ||
            (result != IDEM_OK &&
             clock_ms() + slice + g->f.timeout_ms > g->held_ms)) {
            fprintf(stderr, "gateway: %s: stopped, the lease is not held: %s\n",
                    c->topic, g->f.reason);
            return 0;
        }
        clock_wait(rest < slice ? rest : slice);
        if (rest <= slice)
            continue;
        asked = clock_ms();
        result = fleet_renew(&g->f, claim, 0);
        if (result == IDEM_OK)
            g->held_ms = asked + g->lease_ms;
    }
    return 1;
}

/* Sets how a command ended.  `text` must stay. */
static int end_as(idem_outcome *outcome, int reason, const char *text)
{
    outcome->failed = reason != POURED;
    outcome->code = reason;
    outcome->response = text;
    outcome->response_len = strlen(text);
    return IDEM_HANDLED;
}

int gateway_execute(idem_job *job)
{
    static char response[RESPONSE_MAX], name[NAME], amount[24];
    command *c = (command *)job->ctx;
    idem_outcome *outcome = &job->outcome;
    long ml = command_amount(c);
    int found;

    if (job->answer == IDEM_EXECUTE &&
        connection_is_late(&c->device->broker, IN_HAND_S))
        return IDEM_NOT_DONE;
    if (!ml)
        return end_as(outcome, INVALID, "not 1 to 1000 ml");
    snprintf(amount, sizeof amount, "%ld ml", ml);
    found = effect_begin(name_of(name, c), amount,
                         job->answer == IDEM_EXECUTE ? c->device->place : 0);
    if (found == EFFECT_NONE) {
        if (!pour(c, ml, job->claim))
            return IDEM_CANNOT_TELL;
        effect_end(name, amount);
    }
    if (found != EFFECT_NONE)
        fprintf(stderr, "gateway: %s: interrupted before, %s\n", c->topic,
                found == EFFECT_DONE ? "it had poured" : "it had begun");
    if (found == EFFECT_BEGUN)          // by one who did not come to the end
        return end_as(outcome, SPECIFIC, "check the cup");
    snprintf(response, sizeof response, "poured %s", amount);
    return end_as(outcome, POURED, response);
}

void gateway_pour_blindly(const command *c, long ml)
{
    char name[NAME], amount[24];

    snprintf(amount, sizeof amount, "%ld ml", ml);
    effect_begin(name_of(name, c), amount, effect_place());
    clock_wait(ml * c->device->ml_ms);
    effect_end(name, amount);
}
