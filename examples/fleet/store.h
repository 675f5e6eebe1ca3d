/* SPDX-License-Identifier: 0BSD */
/* Between fleet.c, which knows idem.h, and the stores, which know their client
 * libraries.  A store does a call in one atomic step, and decides by itself, in
 * that step, whether a key may be claimed.  All goes to it and comes from it as
 * text, in which nothing needs quotes: numbers, hexadecimal bytes, and
 *     id    SCOPE:KEY, or SCOPE#NUMBER: the epoch and the sequence, 16 digits
 *     mark  by which a store says whose it is, and since when it remembers */
#ifndef FLEET_STORE_H
#define FLEET_STORE_H

#include "fleet.h"

enum { FLEET_VERSION = 2 };         /* of what is in the stores */
enum { FLEET_TIMEOUT_MS = 5000 };   /* a store that says nothing for so long is
                                       down */
enum { FLEET_TRIES = 20 };          /* of a step that others come between */
enum { FLEET_ID = 2 * 255 + 2 };    /* chars of the longest id, and a NUL */

enum { FLEET_CLAIM, FLEET_COMPLETE, FLEET_RELEASE, FLEET_RENEW, FLEET_FIND,
       FLEET_PENDING, FLEET_DELIVERED, FLEET_CALLS };

enum { FLEET_BY_ID,
       FLEET_BY_TOKEN,              /* of the claim */
       FLEET_OWED };                /* the first behind the record last read */

/* What every call takes: NUMBER or TEXT.  Times are in milliseconds. */
#define FLEET_ARGUMENTS(X, NUMBER, TEXT)                                       \
    X(id, TEXT)                                                                \
    X(token, NUMBER)        /* of a claim; of the one before (pending) */      \
    X(fingerprint, NUMBER)                                                     \
    X(lease, NUMBER)                                                           \
    X(retention, NUMBER)                                                       \
    X(reserved, NUMBER)     /* bytes of the response */                        \
    X(limit, NUMBER)        /* attempts allowed */                             \
    X(age, NUMBER)                                                             \
    X(since, NUMBER)        /* when the store was made */                      \
    X(state, NUMBER)        /* wanted, as idem_reply.status; 0: none */        \
    X(code, NUMBER)                                                            \
    X(owed, NUMBER)                                                            \
    X(response, TEXT)                                                          \
    X(mark, TEXT)

/* What a store keeps of a key, beside its id and its response. */
#define FLEET_FIELDS(X)                                                        \
    X(state)                /* 0: given back */                                \
    X(token)                                                                   \
    X(attempts)                                                                \
    X(fingerprint)                                                             \
    X(until)                /* in progress: end of the lease; else when that   \
                               was */                                          \
    X(retention)            /* from then on */                                 \
    X(reserved)                                                                \
    X(code)                                                                    \
    X(owed)

#define FLEET_ARGUMENT(name, type) FLEET_ARG_##name,
#define FLEET_FIELD(name) FLEET_TOLD_##name,
enum { FLEET_ARGUMENTS(FLEET_ARGUMENT, , ) FLEET_ARGS };
enum { FLEET_TOLD_answer, FLEET_TOLD_now, FLEET_TOLD_id, FLEET_TOLD_response,
       FLEET_FIELDS(FLEET_FIELD) FLEET_TOLD };

/* The same as numbers */
typedef struct fleet_record {
    int64_t now;                    /* store's ms */
    char     id[FLEET_ID];
    int      state;
    idem_token token;
    uint32_t attempts;
    uint64_t fingerprint;
    int64_t  until, retention;
    size_t   reserved, response_len;
    int32_t  code;
    int      owed;
    const char *response;           /* while what the store told is there */
} fleet_record;

typedef struct fleet_call {
    int      what;                  /* FLEET_CLAIM and so on */
    void    *transaction;           /* complete: the caller's own, or NULL */
    uint32_t slot;                  /* a hash of the id */
    const char *arg[FLEET_ARGS];
    char     number[FLEET_ARGS][24];
    char     id[FLEET_ID];
    fleet_record has;               /* out */
    void    *buffer;                /* where a response goes, if it fits */
    size_t   buffer_size;
} fleet_call;

typedef struct fleet_store {
    const char *scheme;             /* "redis://" */
    int  (*open)(fleet *f);         /* sets connection, mark and since */
    void (*close)(fleet *f);
    int  (*call)(fleet *f, fleet_call *c);          /* answers as idem.h; MORE:
                                       another came between, so call again */
    /* Of a store whose call is fleet_decide; each answers as a call does, and
       MORE if `old` is no longer there. */
    int64_t grace_ms;               /* by which leases and retentions are made
                                       longer */
    int  (*read)(fleet *f, fleet_call *c, int way); /* FLEET_BY_ID and so on;
                                       none: a state of 0 */
    int  (*take_token)(fleet *f, idem_token *token);
    int  (*put)(fleet *f, const fleet_call *c, const fleet_record *old);
} fleet_store;

extern const fleet_store fleet_redis, fleet_postgres, fleet_dynamodb;

/* Does a call for a store that cannot decide: decide.c. */
int fleet_decide(fleet *f, fleet_call *c);

/* ----------------------------------------------------- text.c, for stores */

/* Takes what a store tells, and returns the answer that is in it.  What is not
   told is NULL or "". */
int fleet_tell(fleet_call *c, const char *const told[FLEET_TOLD]);

/* Puts the response where a begin wants it: so does an answer of REPLAY. */
void fleet_hand_over(const fleet_call *c);

/* True if nothing is known of a key any more. */
int fleet_is_over(const fleet_record *record);

/* Makes the mark; or takes that which is there: IDEM_E_FORMAT if it is not this
   fleet's, but another version's or secret's. */
void fleet_make_mark(fleet *f, int64_t since);
int fleet_take_mark(fleet *f, const char *mark);

/* Notes why, in printf's words, and returns `result`. */
int fleet_fail(fleet *f, int result, const char *format, ...);

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
void fleet_put_lease(const fleet *f, fleet_call *c, uint32_t lease_ms);

/* What idem_begin tells beside its answer; what idem_find tells. */
void fleet_answer(const fleet_call *c, int answer, idem_claim *claim,
                  idem_reply *reply);
void fleet_describe(const fleet *f, idem_entry *e, const fleet_record *r);

#endif
