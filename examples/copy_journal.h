/* SPDX-License-Identifier: 0BSD */
/* Copies the keys and the state of one table into another, by the public
   interface alone: from flash to a file, or from one geometry to another.  For
   migrate.c, or for two tables of your own: call copy_journal.  Both need the
   same secret and IDEM_HASH: a table keeps only the hash of a payload. */
#ifndef COPY_JOURNAL_H
#define COPY_JOURNAL_H

#include "idem.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The tick is moved on by this for each attempt of an interrupted key, of all
   keys at once: by half a second at most. */
enum { ATTEMPT_MS = 2 };

/* A key, with room for scope and key */
typedef struct key {
    idem_info info;
    unsigned char id[UINT8_MAX];
} key;

static void *allocate(size_t size)
{
    void *memory = malloc(size ? size : 1);

    if (!memory) {
        fprintf(stderr, "migrate: memory: %s\n", strerror(errno));
        exit(1);
    }
    return memory;
}

static int is_interrupted(const key *k)
{
    return k->info.status == IDEM_IN_PROGRESS;
}

/* In the order in which they are to be begun: the oldest completion first, as
   it is to be evicted and delivered; interrupted keys last.  Of numbers the
   older epoch first: after a newer one it would be refused. */
static int compare(const void *a, const void *b)
{
    const idem_info *x = &((const key *)a)->info;
    const idem_info *y = &((const key *)b)->info;
    int x_open = is_interrupted((const key *)a);
    int y_open = is_interrupted((const key *)b);

    if (x_open != y_open)
        return x_open - y_open;
    if (x->age_ms != y->age_ms)
        return x->age_ms < y->age_ms ? 1 : -1;
    return (x->epoch > y->epoch) - (x->epoch < y->epoch);
}

/* All keys of a table that have not expired; their number. */
static size_t list_keys(key **keys, idem_table *from, uint32_t now_ms)
{
    idem_info info;
    size_t count = 0;
    unsigned char id[UINT8_MAX];

    memset(&info, 0, sizeof info);
    info.id = id;
    info.id_size = sizeof id;
    *keys = (key *)allocate(from->used * sizeof **keys);
    while (idem_next(from, &info, now_ms) == IDEM_OK) {
        if (info.status != IDEM_IN_PROGRESS && info.left_ms == 0)
            continue;
        (*keys)[count].info = info;
        memcpy((*keys)[count].id, id, sizeof id);
        count++;
    }
    qsort(*keys, count, sizeof **keys, compare);
    return count;
}

static idem_request request_of(const key *k)
{
    idem_request request;

    memset(&request, 0, sizeof request);
    request.scope = k->id;
    request.scope_len = k->info.scope_len;
    request.key = k->id + k->info.scope_len;
    request.key_len = k->info.key_len;
    request.epoch = k->info.epoch;             // of a number, which is no key
    request.sequence = k->info.sequence;
    request.fingerprint = k->info.fingerprint;
    request.has_fingerprint = 1;
    return request;
}

/* Claims a key in the new table: IDEM_OK, or why it is not claimed. */
static int claim_again(idem_table *to, idem_claim *claim,
                       const idem_request *request, uint32_t now_ms)
{
    idem_reply reply;
    int result = idem_begin(to, claim, &reply, request, now_ms);

    return result == IDEM_EXECUTE || result == IDEM_RECOVER ||
           result == IDEM_UNCERTAIN ? IDEM_OK : result;
}

/* moves_ms: by this the tick is moved on after it, which does not shorten
   its retention: the new one is longer, if 30 days allow it. */
static int copy_finished(idem_table *to, idem_table *from, const key *k,
                         uint32_t moves_ms, uint32_t now_ms)
{
    idem_request request = request_of(k);
    uint32_t left_ms = k->info.left_ms;
    size_t len = k->info.response_len;
    void *response = allocate(len);
    idem_outcome outcome;
    idem_claim claim;
    int result;

    if (len > UINT16_MAX) {
        free(response);
        return IDEM_E_TOO_LARGE;
    }
    memset(&outcome, 0, sizeof outcome);
    outcome.response = response;
    outcome.code = k->info.code;
    outcome.failed = k->info.status == IDEM_FAILED;
    outcome.confirm = k->info.undelivered != 0;
    request.retention_ms = left_ms < IDEM_RETENTION_MAX - moves_ms
                               ? left_ms + moves_ms : IDEM_RETENTION_MAX;
    request.response_size = (uint16_t)len;
    result = idem_response(from, response, &len, &k->info.claim, 0);
    outcome.response_len = len;
    if (result == IDEM_OK)
        result = claim_again(to, &claim, &request, now_ms);
    if (result == IDEM_OK)
        result = idem_complete(to, &claim, &outcome, now_ms);
    free(response);
    return result;
}

/* Its next attempt, with a lease that ends before the tick is moved on.  What
   is left of its retention is not known: it is remembered for as long as can
   be. */
static int copy_attempt(idem_table *to, const key *k, uint32_t now_ms)
{
    idem_request request = request_of(k);
    idem_claim claim;
    int result;

    request.lease_ms = ATTEMPT_MS;
    request.retention_ms = IDEM_RETENTION_MAX;
    result = claim_again(to, &claim, &request, now_ms);
    // The new table allows fewer attempts: it has had all of them.
    return result == IDEM_EXHAUSTED ? IDEM_OK : result;
}

/* The state comes with a completion, here that of a key which is forgotten
   again before those of the journal come. */
static int copy_state(idem_table *to, idem_table *from, size_t size,
                      uint32_t now_ms)
{
    idem_request request = { .key = "", .key_len = 1 };
    idem_outcome outcome;
    idem_claim claim;
    void *state = allocate(size);
    int result;

    memset(&outcome, 0, sizeof outcome);
    result = idem_state(from, state, &size);
    outcome.state = state;
    outcome.state_len = size;
    if (result == IDEM_OK && size) {
        result = claim_again(to, &claim, &request, now_ms);
        if (result == IDEM_OK)
            result = idem_complete(to, &claim, &outcome, now_ms);
        if (result == IDEM_OK)
            result = idem_forget(to, &request, now_ms);
    }
    free(state);
    return result;
}

/* The most attempts of an interrupted key */
static uint32_t most_attempts(const key *keys, size_t count)
{
    uint32_t most = 0;
    size_t i;

    for (i = 0; i < count; i++)
        if (is_interrupted(&keys[i]) && keys[i].info.attempts > most)
            most = keys[i].info.attempts;
    return most;
}

/* Copies all there is into a table that has no key.  IDEM_OK: their number;
   otherwise the cause of one that was not, or IDEM_E_FULL: the new table has
   evicted some for others.  IDEM_UNCERTAIN: none was, as unknown keys may be
   lost ones.  now_ms: the tick, of both tables; it is moved on. */
static int copy_journal(idem_table *to, idem_table *from, size_t *copied,
                        uint32_t *now_ms)
{
    key *keys;
    size_t count, finished, at = 0;
    uint32_t left_ms, attempts, i;
    int result = idem_uncertain(from, &left_ms, *now_ms);

    *copied = 0;
    if (result < 0 || left_ms)
        return result < 0 ? result : IDEM_UNCERTAIN;
    count = list_keys(&keys, from, *now_ms);
    attempts = most_attempts(keys, count);
    result = copy_state(to, from, from->config->state_max, *now_ms);
    for (; at < count && !is_interrupted(&keys[at]) && result == IDEM_OK; at++)
        result = copy_finished(to, from, &keys[at], attempts * ATTEMPT_MS,
                               *now_ms);
    finished = at;
    for (i = 0; i < attempts && result == IDEM_OK; i++, *now_ms += ATTEMPT_MS)
        for (at = finished; at < count && result == IDEM_OK; at++)
            if (i < keys[at].info.attempts)
                result = copy_attempt(to, &keys[at], *now_ms);
    if (result == IDEM_OK)
        result = idem_sync(to);     // a batch, too, is durable now
    if (result == IDEM_OK && to->used != count)
        result = IDEM_E_FULL;
    free(keys);
    *copied = at;
    return result;
}

#endif
