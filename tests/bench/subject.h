/* SPDX-License-Identifier: 0BSD */
/*
 * What bench.c and the tables that it compares have in common: the commands,
 * the interface, and what every peer keeps of a key.  C and C++.
 */
#ifndef BENCH_SUBJECT_H
#define BENCH_SUBJECT_H

#include "idem.h"
#include "tests/bench/common.h"

enum {
    PAYLOAD_LEN = 16,
    RESPONSE_LEN = 16,
    LEASE_MS = 30000
};

#ifdef __cplusplus
extern "C" {
#endif

/* Memory, counted, and touched when it is handed out */
extern size_t allocated;
void *counted_realloc(void *old_block, size_t size);
void *counted_alloc(size_t size);
void counted_free(void *block);

/* ---------------------------------------------------------------------------
   Commands, each made from its number
   ------------------------------------------------------------------------ */
struct command {
    unsigned char key[KEY_LEN];
    unsigned char payload[PAYLOAD_LEN];
    unsigned char response[RESPONSE_LEN];
};

static inline void make_command(struct command *c, uint64_t number)
{
    uint64_t words[2] = { mix(number), mix(~number) };

    memcpy(c->key, words, sizeof words);
    words[0] += 1;
    memcpy(c->payload, words, sizeof words);
    words[1] += 1;
    memcpy(c->response, words, sizeof words);
}

/* SipHash-1-3 of a key, SipHash-2-4 of a payload: with the rounds compiled in,
   as idem.h has them inside. */
uint32_t hash_key(const void *key);
uint64_t hash_payload(const void *payload);

/* ---------------------------------------------------------------------------
   Subjects: all answer with the results of idem.h.
   ------------------------------------------------------------------------ */

/* A claim: idem.h's, or what a peer holds on to */
struct ticket {
    idem_claim claim;
    uint64_t token;
    uint32_t at, hash;
    struct node *node;
};

struct subject {
    const char *name;
    void (*open)(size_t keys, uint32_t retention_ms);
    void (*close)(void);
    int (*begin)(struct ticket *ticket, unsigned char *response,
                 const struct command *c, uint32_t now_ms);
    int (*complete)(const struct ticket *ticket, const struct command *c,
                    uint32_t now_ms);
    int (*known)(const struct command *c);  // looks only
    void (*expire)(uint32_t now_ms);        // drops what is over
    size_t (*live)(uint32_t now_ms);        // keys that are not over
    size_t (*bytes)(void);                  // of memory
    unsigned slower;            // times: so many steps fewer; 1, or 16
};

extern const struct subject stb_subject, glib_subject, glib_default_subject,
    map_subject, map_default_subject, sqlite_subject;

/* ---------------------------------------------------------------------------
   What the peers keep of a key, and do with it
   ------------------------------------------------------------------------ */
struct entry {
    uint64_t fingerprint;
    uint64_t token;
    uint32_t until;             // in progress: end of lease; else of retention
    int32_t code;
    uint16_t response_len;
    uint8_t status;
    uint8_t attempts;
    unsigned char response[RESPONSE_LEN];
};

extern uint32_t entry_retention_ms;
extern uint64_t entry_token;

static inline int entry_over(uint32_t until, uint32_t now_ms)
{
    return (int32_t)(now_ms - until) >= 0;
}

static inline void entry_claim(struct entry *e, struct ticket *ticket,
                               uint32_t now_ms)
{
    e->status = IDEM_IN_PROGRESS;
    e->attempts++;
    e->until = now_ms + LEASE_MS;
    e->token = ticket->token = ++entry_token;
}

static inline int entry_first(struct entry *e, struct ticket *ticket,
                              uint64_t fingerprint, uint32_t now_ms)
{
    e->fingerprint = fingerprint;
    e->attempts = 0;
    entry_claim(e, ticket, now_ms);
    return IDEM_EXECUTE;
}

static inline int entry_again(struct entry *e, struct ticket *ticket,
                              unsigned char *response, uint64_t fingerprint,
                              uint32_t now_ms)
{
    if (e->fingerprint != fingerprint)
        return IDEM_MISMATCH;
    if (e->status != IDEM_IN_PROGRESS) {
        memcpy(response, e->response, e->response_len);
        return IDEM_REPLAY;
    }
    if (!entry_over(e->until, now_ms))
        return IDEM_BUSY;
    if (e->attempts >= 3)
        return IDEM_EXHAUSTED;
    entry_claim(e, ticket, now_ms);
    return IDEM_RECOVER;
}

static inline int entry_complete(struct entry *e, const struct ticket *ticket,
                                 const struct command *c, uint32_t now_ms)
{
    if (e->token != ticket->token || e->status != IDEM_IN_PROGRESS)
        return IDEM_E_FENCED;
    e->status = IDEM_COMPLETED;
    e->code = 0;
    e->until = now_ms + entry_retention_ms;
    e->response_len = RESPONSE_LEN;
    memcpy(e->response, c->response, RESPONSE_LEN);
    return IDEM_OK;
}

/* Completed keys, the oldest first: a ring */
struct due {
    unsigned char key[KEY_LEN];
    uint32_t hash;              // khash+ alone
    uint32_t until;
};

void queue_open(size_t size);
void queue_close(void);
struct due *queue_put(const unsigned char *key, uint32_t until);

/* Takes the oldest out if it is over; or NULL. */
const struct due *queue_take(uint32_t now_ms);

/* Before a peer is opened, and the memory it takes by counted_alloc */
void peer_open(uint32_t retention_ms);
size_t peer_bytes(void);

/* Memory in use by malloc, for peers whose allocator cannot be replaced: call
   it before the table is made, too. */
size_t heap_bytes(void);

#ifdef __cplusplus
}
#endif
#endif
