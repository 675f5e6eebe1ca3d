/* SPDX-License-Identifier: 0BSD */
/* Between fleet.c, which knows idem.h, and the stores, which know their client
 * libraries.  Everything goes to a store and comes from it as text that needs
 * no quotes: numbers, hexadecimal bytes, and
 *     id    SCOPE:KEY, or SCOPE#NUMBER: the epoch and the sequence, 16 digits
 *     mark  names the fleet that a store belongs to, and when it was made
 * A store either makes a call in one atomic step by itself (Redis), or reads a
 * record and writes it back if nobody has changed it meanwhile; for such a
 * store decide.c has the calls (PostgreSQL, DynamoDB). */
#ifndef FLEET_STORE_H
#define FLEET_STORE_H

#include "fleet.h"

/* Tokens are those of the store, of 64 bits. */
typedef char fleet_needs_tokens_of_64_bits[sizeof(idem_token) == 8 ? 1 : -1];

enum { FLEET_VERSION = 3 };         /* of the data in the stores */
enum { FLEET_TRIES = 20 };          /* of a step that others come between */
enum { FLEET_ID = 2 * 255 + 2 };    /* chars of the longest id, and a NUL */
enum { FLEET_WAIT_MS = 20 };        /* before the next try; then doubles */

/* FIND: by id.  LOSE: note that records were lost. */
enum { FLEET_CLAIM, FLEET_COMPLETE, FLEET_RELEASE, FLEET_RENEW, FLEET_FIND,
       FLEET_PENDING, FLEET_DELIVERED, FLEET_LOSE, FLEET_CALLS };

/* What a call takes: numbers, but for those that are marked as text.  Times are
   in milliseconds. */
#define FLEET_ARGUMENTS(X)                                                     \
    X(mark)             /* text */                                             \
    X(id)               /* text */                                             \
    X(slot)             /* a hash of the id */                                 \
    X(token)            /* of a claim; of the one before (pending) */          \
    X(fingerprint)                                                             \
    X(lease)                                                                   \
    X(retention)                                                               \
    X(reserved)         /* bytes of the response */                            \
    X(limit)            /* attempts allowed */                                 \
    X(age)                                                                     \
    X(since)            /* when the store was made */                          \
    X(uncertain)        /* how long after a loss claims are IDEM_UNCERTAIN */  \
    X(state)            /* wanted, as idem_reply.status; 0: none */            \
    X(code)                                                                    \
    X(pending)                                                                 \
    X(response)         /* text */

/* What a store keeps of a key, beside its id and its response. */
#define FLEET_FIELDS(X)                                                        \
    X(state)            /* 0: given back */                                    \
    X(token)                                                                   \
    X(attempts)                                                                \
    X(fingerprint)                                                             \
    X(until)            /* in progress: end of the lease; else when it ended */\
    X(retention)        /* from then on */                                     \
    X(reserved)                                                                \
    X(code)                                                                    \
    X(pending)

#define FLEET_ARGUMENT(name) FLEET_ARG_##name,
#define FLEET_FIELD(name) FLEET_GOT_##name,
enum { FLEET_ARGUMENTS(FLEET_ARGUMENT) FLEET_ARGS };

/* What a call gets from the store, in this order.  floor: the highest number
   that has left, of the record's scope; lost: when records were lost. */
enum { FLEET_GOT_answer, FLEET_GOT_now, FLEET_GOT_id, FLEET_GOT_response,
       FLEET_GOT_lost, FLEET_GOT_floor, FLEET_FIELDS(FLEET_FIELD) FLEET_GOT };

/* The same as numbers */
typedef struct fleet_record {
    int64_t  now, lost;             /* store's ms */
    char     id[FLEET_ID], floor[17];
    int      state;
    uint64_t token;
    uint32_t attempts;
    uint64_t fingerprint;
    int64_t  until, retention;
    size_t   reserved, response_len;
    int32_t  code;
    int      pending;
    const char *response;           /* while the store's answer is there */
} fleet_record;

typedef struct fleet_call {
    int      what;                  /* FLEET_CLAIM and so on */
    void    *transaction;           /* complete: the caller's own, or NULL */
    const char *arg[FLEET_ARGS];
    char     number[FLEET_ARGS][24];
    char     id[FLEET_ID];
    fleet_record has;               /* out */
    void    *buffer;                /* where a response goes, if it fits */
    size_t   buffer_size;
} fleet_call;

/* Ways to find a record.  PENDING: the first after the record last read. */
enum { FLEET_BY_ID, FLEET_BY_TOKEN, FLEET_BY_PENDING };

/* Answers are those of idem.h, and IDEM_MORE: another came between, call again.
   IDEM_E_FORMAT: what is there is not what was opened. */
typedef struct fleet_store {
    const char *schemes[2];         /* "redis://" */
    int  (*open)(fleet *f);         /* sets connection, mark and since */
    void (*close)(fleet *f);
    int  (*call)(fleet *f, fleet_call *c);

    /* Of a store whose call is fleet_decide: */
    int  (*at_once)(fleet *f, fleet_call *c);   /* without reading first, or
                                       IDEM_MORE; may be NULL */
    int64_t grace_ms;               /* by which leases and retentions are made
                                       longer */
    int  (*read)(fleet *f, fleet_call *c, int way); /* none: a state of 0, and
                                       no token */
    int  (*put)(fleet *f, fleet_call *c, const fleet_record *old); /* c->has in
                                       its place; sets the token of a claim */
    int  (*raise)(fleet *f, const fleet_call *c);   /* makes c->has.floor last;
                                       NULL: it has no floors */
    int  (*lose)(fleet *f);
} fleet_store;

extern const fleet_store fleet_redis, fleet_postgres, fleet_dynamodb;

/* Makes a call for a store that cannot decide: decide.c. */
int fleet_decide(fleet *f, fleet_call *c);

/* The number in an id, 16 digits; NULL if it has a key. */
const char *fleet_number(const char *id);

/* ----------------------------------------------------- text.c, for stores */

/* Takes what a store got, and returns the answer that is in it.  What is not
   there is NULL or "". */
int fleet_take(fleet_call *c, const char *const got[FLEET_GOT]);

/* Copies the response where a begin wants it: so does an answer of REPLAY. */
void fleet_hand_over(const fleet_call *c);

/* True if nothing is known of a key any more. */
int fleet_has_expired(const fleet_record *record);

/* Makes the mark; or takes that which is there: IDEM_E_FORMAT if it is not this
   fleet's, but another version's or secret's. */
void fleet_make_mark(fleet *f, int64_t since);
int fleet_take_mark(fleet *f, const char *mark);

/* Notes why, in printf's words, and returns `result`. */
int fleet_fail(fleet *f, int result, const char *format, ...);

/* ------------------------------------------------- connect.c, for fleet.c */

/* Asks the store; connects again if that broke, or if the store is not the one
   that was opened. */
int fleet_ask(fleet *f, fleet_call *c);

/* Of this machine, even while it sleeps: the store's time is what counts, but
   how long a call took is seen from here. */
int64_t fleet_ms(void);

/* Waits, and makes the next wait twice as long. */
void fleet_back_off(int *ms);

/* ----------------------------------------------------- text.c, for fleet.c */

int fleet_has_bytes(const void *data, size_t len);
uint64_t fleet_hash(const fleet *f, const void *data, size_t len);

/* Writes bytes in hexadecimal, and returns where they end. */
char *fleet_to_hex(char *dst, const void *data, size_t len);

/* Starts a call, and gives it what it takes: a number; the key of a request, or
   its number; what else a claim is asked with, with the config's defaults. */
void fleet_start(fleet_call *c, int what, const idem_claim *claim);
void fleet_put(fleet_call *c, int arg, int64_t number);
int fleet_put_key(const fleet *f, fleet_call *c, const idem_request *rq);
int fleet_put_request(const fleet *f, fleet_call *c, const idem_request *rq);

/* The lease or retention of a request; of 0 that of the config, or default. */
uint32_t fleet_lease(const fleet *f, uint32_t lease_ms);
uint32_t fleet_retention(const fleet *f, uint32_t retention_ms);

/* What idem_begin answers beside its result; what idem_find answers. */
void fleet_answer(const fleet_call *c, int answer, idem_claim *claim,
                  idem_reply *reply);
void fleet_describe(const fleet *f, idem_info *e, const fleet_record *r);

#endif
