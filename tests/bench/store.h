/* SPDX-License-Identifier: 0BSD */
/*
 * What durable.c and the stores that it compares have in common.  All do the
 * same job: a claim is durable before begin() returns, an outcome before
 * complete() returns; a duplicate is answered with the stored outcome; a key
 * that comes with another payload is refused, by the fingerprint that is kept
 * with it; an outcome counts only with the token of the claim.
 */
#ifndef BENCH_STORE_H
#define BENCH_STORE_H

#include "idem.h"
#include "tests/bench/common.h"

enum { PAYLOAD_LEN = 16, RESPONSE_LEN = 16, LEASE_MS = 30000,
       RETENTION_MS = 86400000, JOBS_MAX = 1000 };

/* A command under way */
struct job {
    uint8_t key[KEY_LEN];
    uint8_t payload[PAYLOAD_LEN];
    uint8_t response[RESPONSE_LEN]; // what executing it gives
    uint64_t fingerprint;           // of the payload
    uint64_t token;                 // of the claim
    uint32_t slot;                  // likewise, idem.h's
    uint32_t attempt;
    uint8_t stored[RESPONSE_LEN];   // IDEM_REPLAY: what the store has
    int answer;                     // of begin() or complete(), as idem.h's
};

struct store {
    const char *name;
    /* Opens what is in a folder, or makes it; a server is started.  Returns
       NULL, or why it cannot be measured. */
    const char *(*open)(const char *folder);
    void (*close)(void);
    /* So many commands in flight: durable together. */
    void (*begin)(struct job *jobs, int count);
    void (*complete)(struct job *jobs, int count);
    /* Bytes that were written so far, as the store or the system counts */
    uint64_t (*written)(void);
};

extern const struct store lmdb_store, leveldb_store, sqlite_store, redis_store,
    postgres_store;

/* Bytes that this process has handed to write calls */
uint64_t self_written(void);

/* What stores without a kind of token of their own use: greater each time, also
   after a restart. */
uint64_t new_token(void);

/* Starts and stops a server (server.sh); what runs at the end of the program is
   stopped then.  server_start returns 0, or something else if it cannot. */
int server_start(const char *which, const char *folder);
void server_stop(const char *which);

/* What stores keep as bytes: the value of a key. */
struct value {
    uint64_t fingerprint;
    uint64_t token;
    uint64_t until_ms;
    uint8_t status;                 // IDEM_IN_PROGRESS or IDEM_COMPLETED
    uint8_t response[RESPONSE_LEN];
};

/* The value of a new claim, which the job gets. */
static inline struct value value_claim(struct job *job)
{
    struct value v;

    memset(&v, 0, sizeof v);        // padding is stored as well
    v.fingerprint = job->fingerprint;
    v.token = job->token = new_token();
    v.until_ms = (uint64_t)(now_us() / 1000) + LEASE_MS;
    v.status = IDEM_IN_PROGRESS;
    job->answer = IDEM_EXECUTE;
    return v;
}

/* Answers a job whose key is known. */
static inline void value_answer(const struct value *v, struct job *job)
{
    if (v->fingerprint != job->fingerprint)
        job->answer = IDEM_MISMATCH;
    else if (v->status == IDEM_IN_PROGRESS)
        job->answer = IDEM_BUSY;
    else {
        memcpy(job->stored, v->response, RESPONSE_LEN);
        job->answer = IDEM_REPLAY;
    }
}

/* Makes the value of a claim that of its outcome, if the claim is current;
   returns whether. */
static inline int value_complete(struct value *v, struct job *job)
{
    job->answer = IDEM_E_FENCED;
    if (v->status != IDEM_IN_PROGRESS || v->token != job->token)
        return 0;
    v->status = IDEM_COMPLETED;
    v->until_ms = (uint64_t)(now_us() / 1000) + RETENTION_MS;
    memcpy(v->response, job->response, RESPONSE_LEN);
    job->answer = IDEM_OK;
    return 1;
}

#endif
