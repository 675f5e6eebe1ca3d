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
 * A store is one of these, and a name for the fleet's data in it after "#" (a
 * to z, 0 to 9 and _, "idem" if there is none):
 *     redis://[[user]:password@]host[:port][/database][#name]
 *     redis:///path/of/its.socket           or redis://:password@/path
 *     postgres://...  postgresql://...      whatever libpq takes
 *     dynamodb://region                     or dynamodb://host:port, plain HTTP
 * User and password may have %40 for @ and so on; an IPv6 address stands in [].
 * rediss:// is refused: hiredis has no TLS here, put a tunnel before it.
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
 *   leases     do not end with a restart, for others may hold them: a command
 *              whose gateway was killed is IDEM_BUSY until its lease ends, then
 *              IDEM_RECOVER.  IDEM_LEASE_NONE is refused, for nothing could end
 *              it; so is a config.lease_ms below 1000.  Keep leases short, and
 *              renew them while the effect lasts.
 *   begin      is IDEM_BUSY if the answer took longer than half the lease: too
 *              little of it is left.  The claim stays in the store, so the next
 *              attempt is IDEM_RECOVER.  A store that
 *              does not answer is given up after half of config.lease_ms, 5 s
 *              at most: IDEM_E_STORAGE.
 *   age_ms     memory reaches back to when the store was made, at most: what
 *              is unknown and older is IDEM_TOO_OLD.
 *   uncertain  a loss is noticed by the fleets that were open then: the store
 *              was emptied, or does not have what it had last acknowledged to
 *              this fleet (an older state was restored; a replica took over
 *              that had not got it).  It is noted in the store, for all:
 *              IDEM_UNCERTAIN instead of IDEM_EXECUTE and IDEM_RECOVER, for
 *              config.retention_ms.  A loss while no fleet is open is not
 *              noticed.
 *   state      there is none: outcome.state is refused.  The application's own
 *              rows take its place (fleet_complete_in).
 *   numbers    request.sequence needs no config.senders: any scope may number
 *              its commands.  DynamoDB keeps no floors (README.md).  If more
 *              than 100 numbers of a scope have expired, and no claim has
 *              dropped them yet, the last of them raise the floor first.
 *   capacity   is the store's; IDEM_E_FULL comes from Redis that has reached
 *              maxmemory, and from PostgreSQL on a full disk.  Claims can be
 *              completed then, and outcomes are replayed.
 *   errors     IDEM_E_STORAGE: the store cannot be reached, or went away in the
 *              call.  Execute nothing, report nothing as done, repeat the call;
 *              it connects again by itself.  The failed call may have been
 *              done: then a begin answers IDEM_BUSY, a complete IDEM_OK (the
 *              same outcome with the same claim does not count twice).
 *              IDEM_E_FORMAT, from every call: the data in the store under the
 *              name are not of this fleet: another version, another secret,
 *              another program.
 *
 * What each store may lose is in README.md beside this file.
 *
 * A fleet belongs to one thread; open one for each.  Programs should ignore
 * SIGPIPE: hiredis writes to connections that may be broken.
 *
 * Link: fleet.c, connect.c, text.c, decide.c and the stores, -lhiredis -lpq
 * -lcurl -ljansson, and one file with IDEM_IMPLEMENTATION.  To leave a store
 * out, remove it from the list at the top of connect.c; fleet_complete_in needs
 * PostgreSQL. */
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
    int      timeout_ms;        /* of each of its answers */
    int64_t  since;             /* store's ms at which it was made */
    char     url[512];          /* without the name */
    char     name[41];
    char     mark[80];          /* whose it is, as the store has it */
    char     reason[256];       /* why a call failed, in words; promised */

    /* The last claim that was granted here: it must still be in the store when
       it is connected again. */
    char     last_id[512];
    idem_token last_token;      /* 0: none */
    int64_t  last_end;          /* store's ms at which it may go, if it is
                                   completed at once */
    int      last_finished;
    int      lost;              /* a loss that the store has not noted yet */
} fleet;

/* Connects, and makes what the store needs if there is nothing yet.
     IDEM_OK
     IDEM_E_ARG      the config, or the URL
     IDEM_E_FORMAT   what is there is something else; it is not touched
     IDEM_E_STORAGE  the store cannot be reached, or refuses
   After a failure nothing is open, and f->reason has the cause. */
int fleet_open(fleet *f, const char *url, const idem_config *config);
void fleet_close(fleet *f);

/* As idem_begin, _complete, _release, _renew, _run, _find, _pending and
   _delivered; each may answer IDEM_E_STORAGE and IDEM_E_FORMAT besides.  No
   answer but those of begin grants a claim.  fleet_run repeats a complete or a
   release for as long as a lease while the store does not answer; a handler
   that lasts longer than half the lease renews its job's claim. */
int fleet_begin(fleet *f, idem_claim *claim, idem_reply *reply,
                const idem_request *request);
int fleet_complete(fleet *f, const idem_claim *claim,
                   const idem_outcome *outcome);
int fleet_release(fleet *f, const idem_claim *claim);
int fleet_renew(fleet *f, const idem_claim *claim, uint32_t lease_ms);
int fleet_run(fleet *f, idem_reply *reply, const idem_request *request,
              idem_handler *handler, void *ctx);
int fleet_find(fleet *f, idem_info *info, const idem_request *request);
int fleet_pending(fleet *f, idem_info *info);
int fleet_delivered(fleet *f, const idem_claim *claim);

/* As fleet_complete, within a transaction of the caller's own on a PostgreSQL
   connection of his own (PGconn), to the database of the fleet: the outcome is
   there when he commits, together with his rows, or neither is.  Whether his
   commit is durable is his (synchronous_commit).  Nothing is sent again here.
   If it answers anything but IDEM_OK he is to roll back; the claim is then what
   it was. */
int fleet_complete_in(fleet *f, void *transaction, const idem_claim *claim,
                      const idem_outcome *outcome);

#ifdef __cplusplus
}
#endif
#endif
