/* SPDX-License-Identifier: 0BSD */
/* Between fleet.c, which knows idem.h, and the stores, which know their client
 * libraries.  A store does each of these calls in one atomic step; whether a
 * key may be claimed it decides itself, in the step that claims it. */
#ifndef FLEET_STORE_H
#define FLEET_STORE_H

#include "fleet.h"

enum { FLEET_VERSION = 1 };         /* of what is in the stores */
enum { FLEET_TIMEOUT_MS = 5000 };   /* a store that says nothing for so long is
                                       down */
enum { FLEET_TRIES = 20 };          /* of a step that others come between */
enum { FLEET_ID_MAX = 256 };

/* What is asked for: a key, and the claim wanted on it */
typedef struct fleet_wish {
    unsigned char id[FLEET_ID_MAX]; /* the scope's length, scope, key */
    size_t   id_len;
    uint32_t slot;                  /* a hash of the id */
    uint64_t fingerprint;
    uint32_t lease, retention;      /* ms */
    uint32_t age;
    unsigned reserved, max_attempts;
} fleet_wish;

/* What the store has of a key */
typedef struct fleet_record {
    int      claimed;               /* 1: by the call that tells it */
    int64_t  now;                   /* store's ms */
    int      state;                 /* 0: none; IDEM_IN_PROGRESS and so on */
    idem_token token;
    uint32_t attempts;
    uint64_t fingerprint;
    int64_t  until;                 /* in progress: end of the lease; finished:
                                       when that was */
    int64_t  retention;             /* ms from then on */
    size_t   reserved;
    int32_t  code;
    int      owed;
    size_t   response_len;
    void    *response;              /* in: where it goes if it fits, or NULL, */
    uint64_t only_for;              /* and if the fingerprint is this */
    size_t   response_size;
    unsigned char id[FLEET_ID_MAX]; /* of what pending tells */
    size_t   id_len;
} fleet_record;

typedef struct fleet_store {
    const char *scheme;             /* "redis://" */
    int  (*open)(fleet *f);         /* sets connection, mark and since */
    void (*close)(fleet *f);
    /* Claims if that may be (fleet_may_claim says when), or else tells what is
       there.  IDEM_OK: *record is set; IDEM_BUSY: others came between, in all
       of the tries. */
    int  (*claim)(fleet *f, fleet_record *record, const fleet_wish *wish);
    int  (*complete)(fleet *f, const idem_claim *claim,
                     const idem_outcome *outcome);
    int  (*complete_in)(fleet *f, void *transaction, const idem_claim *claim,
                        const idem_outcome *outcome);   /* or NULL */
    int  (*release)(fleet *f, const idem_claim *claim);
    int  (*renew)(fleet *f, const idem_claim *claim, uint32_t lease);
    int  (*find)(fleet *f, fleet_record *record, const fleet_wish *wish);
    int  (*pending)(fleet *f, fleet_record *record, const idem_claim *after);
    int  (*delivered)(fleet *f, const idem_claim *claim);
    int  (*maintain)(fleet *f);                         /* or NULL */
} fleet_store;

extern const fleet_store fleet_redis, fleet_postgres, fleet_dynamodb;

/* True if nothing is known of a key any more. */
int fleet_is_over(const fleet_record *record);

/* The rule for claims: IDEM_EXECUTE or IDEM_RECOVER if this wish may claim the
   key, or what to answer instead.  Stores that decide in a language of their
   own say the same in it. */
int fleet_may_claim(const fleet *f, const fleet_record *record,
                    const fleet_wish *wish);

/* Makes the mark, by which a store says whose it is, from when it was made; or
   takes that time from a mark that is there.  False if that is not this
   fleet's: another version or secret. */
void fleet_make_mark(fleet *f, int64_t since);
int fleet_take_mark(fleet *f, const char *mark);

/* Notes why, in printf's words, and returns `result`. */
int fleet_fail(fleet *f, int result, const char *format, ...);

/* Keeps a response in a record of which the rest is set, if there is room for
   it.  Not if it is over, or another payload's: S3. */
void fleet_keep_response(fleet_record *record, const void *data, size_t len);

#endif
