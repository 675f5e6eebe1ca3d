/* SPDX-License-Identifier: 0BSD */
/* The contract of idem.h for several processes on several machines: what was
 * executed is remembered in a store that they share.  A handler written for
 * idem_run runs unchanged in fleet_run.
 *
 *     fleet f;
 *     if (fleet_open(&f, "postgres://db.plant/gateways", &config) != IDEM_OK)
 *         die(f.reason);
 *     result = fleet_run(&f, &reply, &request, handler, ctx);
 *
 * A store is one of these, and a name for what the fleet keeps in it after "#"
 * (a to z, 0 to 9 and _, "idem" if there is none):
 *     redis://[:password@]host[:port][#name]   or redis:///path/of/its.socket
 *     postgres://...                   whatever libpq takes
 *     dynamodb://region                or dynamodb://host:port, over plain HTTP
 *
 * The config is that of idem.h.  All gateways of a fleet need the same secret
 * and the same IDEM_HASH: fingerprints are compared.  Of it a fleet uses
 * key_max, response_max, secret, lease_ms, retention_ms and max_attempts;
 * capacity and senders must be legal, and are not looked at.  Other fields must
 * be zero.
 *
 * What differs from idem.h, and why:
 *   time       is the store's own, in milliseconds.  If it is set forward while
 *              the store runs, leases and retentions end early by as much.
 *   leases     do not end with a restart, for others may hold them: what a
 *              killed gateway had in hand is IDEM_BUSY until its lease is over,
 *              then IDEM_RECOVER.  IDEM_LEASE_NONE is refused, for the same
 *              reason: nothing could ever end it.  So keep leases short, and
 *              renew them.
 *   age_ms     memory reaches back to when the store was made, at most: what
 *              is unknown and older is IDEM_TOO_OLD.
 *   state      there is none: outcome.state is refused.  The application's own
 *              rows take its place (fleet_complete_in).
 *   numbers    request.sequence needs no config.senders: any scope may number
 *              its commands.  DynamoDB keeps no floors (README.md).
 *   capacity   is the store's; IDEM_E_FULL comes from Redis alone, if it has
 *              reached maxmemory.
 *   errors     IDEM_E_STORAGE: the store cannot be reached, or went away in the
 *              call.  Execute nothing, report nothing as done, repeat the call;
 *              it connects again by itself.  What the call began may be found
 *              done: a begin then answers IDEM_BUSY, a complete IDEM_E_FENCED,
 *              and the next begin IDEM_REPLAY.
 *              IDEM_E_FORMAT, of every call: what is in the store under the
 *              name is not, or no more, this fleet's: another version, another
 *              secret, another's data, or emptied.  Open it again if that is
 *              what you want.
 *
 * What each store may lose is in README.md beside this file.
 *
 * A fleet belongs to one thread; open one for each.  Programs should ignore
 * SIGPIPE: hiredis writes to connections that may be broken.
 *
 * Link: fleet.c, text.c, decide.c and the stores, -lhiredis -lpq -lcurl
 * -ljansson, and one file with IDEM_IMPLEMENTATION.  To leave a store out, take
 * it out of the list at the top of fleet.c; with PostgreSQL goes what
 * fleet_complete_in does, with DynamoDB decide.c. */
#ifndef FLEET_H
#define FLEET_H

#include "idem.h"

#ifdef __cplusplus
extern "C" {
#endif

struct fleet_store;

typedef struct fleet {
    const idem_config *config;
    const struct fleet_store *store;
    void    *connection;        /* the store's; NULL: broken */
    int64_t  since;             /* store's ms at which it was made */
    char     url[512];          /* without the name */
    char     name[41];
    char     mark[80];          /* what says in the store whose it is */
    char     reason[256];       /* why a call failed, in words; promised */
} fleet;

/* Connects, and makes what the store needs if there is nothing yet.
     IDEM_OK
     IDEM_E_ARG      the config, or the URL
     IDEM_E_FORMAT   what is there is something else; it is not touched
     IDEM_E_STORAGE  the store cannot be reached, or refuses
   After a failure nothing is open, and f->reason says why. */
int fleet_open(fleet *f, const char *url, const idem_config *config);
void fleet_close(fleet *f);

/* As idem_begin, _complete, _release, _renew, _run, _find, _pending and
   _delivered; each may answer IDEM_E_STORAGE and IDEM_E_FORMAT besides.  No
   answer but those of begin grants a claim.  None is IDEM_UNCERTAIN: a store
   that has lost something does not say so (README.md). */
int fleet_begin(fleet *f, idem_claim *claim, idem_reply *reply,
                const idem_request *request);
int fleet_complete(fleet *f, const idem_claim *claim,
                   const idem_outcome *outcome);
int fleet_release(fleet *f, const idem_claim *claim);
int fleet_renew(fleet *f, const idem_claim *claim, uint32_t lease_ms);
int fleet_run(fleet *f, idem_reply *reply, const idem_request *request,
              idem_handler *handler, void *ctx);
int fleet_find(fleet *f, idem_entry *entry, const idem_request *request);
int fleet_pending(fleet *f, idem_entry *entry);
int fleet_delivered(fleet *f, const idem_claim *claim);

/* As fleet_complete, within a transaction of the caller's own on a PostgreSQL
   connection of his own (PGconn), to the database of the fleet: the outcome is
   there when he commits, together with his rows, or neither is.  Nothing is
   sent again or connected again here.  If it answers anything but IDEM_OK he
   is to roll back; the claim is then what it was. */
int fleet_complete_in(fleet *f, void *transaction, const idem_claim *claim,
                      const idem_outcome *outcome);

#ifdef __cplusplus
}
#endif
#endif
