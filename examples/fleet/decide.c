/* SPDX-License-Identifier: 0BSD */
/* The calls on a store that can only read a record, and replace it if it has
 * not changed (PostgreSQL and DynamoDB; etcd, S3 and Cosmos DB are such stores
 * too).  The conditional put makes a call atomic: if it fails, because the
 * record has changed, the call begins again with the new record. */
#include "store.h"

#include <stdlib.h>
#include <string.h>

#define ARG(name) strtoll(c->arg[FLEET_ARG_##name], NULL, 10)

const char *fleet_number(const char *id)
{
    const char *sign = strchr(id, '#');

    return sign ? sign + 1 : NULL;
}

/* True if a newer epoch has begun than that of the record's number. */
static int is_past(const fleet_record *r)
{
    const char *number = fleet_number(r->id);

    return number && strncmp(number, r->floor, 8) < 0;
}

/* True if an unknown key is too old to be new. */
static int is_old(const fleet *f, const fleet_call *c)
{
    const fleet_record *r = &c->has;
    const char *number = fleet_number(c->id);
    int64_t age = ARG(age);

    // A number whose record has expired is not below the floor before it is
    // dropped.
    return (age && (age >= ARG(retention) || age >= r->now - f->since)) ||
           (number && (r->state || strcmp(number, r->floor) <= 0));
}

/* True if a claim may be granted, and how. */
static int decide_claim(const fleet *f, const fleet_call *c)
{
    const fleet_record *r = &c->has;
    int lost = r->lost && r->now < r->lost + ARG(uncertain);

    if (fleet_has_expired(r))
        return is_old(f, c) ? IDEM_TOO_OLD
                            : lost ? IDEM_UNCERTAIN : IDEM_EXECUTE;
    if (r->fingerprint != (uint64_t)ARG(fingerprint))
        return IDEM_MISMATCH;
    if (r->state > IDEM_IN_PROGRESS)
        return IDEM_REPLAY;
    if (is_past(r))
        return IDEM_TOO_OLD;
    if (r->now < r->until)
        return IDEM_BUSY;
    if (r->attempts >= ARG(limit))
        return IDEM_EXHAUSTED;
    return lost ? IDEM_UNCERTAIN : IDEM_RECOVER;
}

/* True if it was done before: a release, or a complete with that very outcome,
   that is repeated because its answer was lost.  The record was found by the
   token. */
static int is_repeated(const fleet_call *c)
{
    const fleet_record *r = &c->has;

    if (c->what == FLEET_RELEASE)
        return r->token && !r->state;
    return c->what == FLEET_COMPLETE && !fleet_has_expired(r) &&
           r->state == ARG(state) &&
           r->code == ARG(code) &&
           !strcmp(r->response, c->arg[FLEET_ARG_response]);
}

/* What to answer; IDEM_OK: once the record is changed. */
static int decide(const fleet_call *c)
{
    const fleet_record *r = &c->has;

    if (fleet_has_expired(r))
        return c->what == FLEET_DELIVERED ? IDEM_E_NOT_FOUND : IDEM_E_FENCED;
    if (c->what == FLEET_DELIVERED)
        return r->state > IDEM_IN_PROGRESS ? IDEM_OK : IDEM_E_NOT_FOUND;
    if (r->state != IDEM_IN_PROGRESS || is_past(r))
        return IDEM_E_FENCED;
    return c->what == FLEET_COMPLETE &&
                   strlen(c->arg[FLEET_ARG_response]) > 2 * r->reserved
               ? IDEM_E_TOO_LARGE : IDEM_OK;
}

/* The record as the call wants it. */
static void change(const fleet *f, fleet_call *c)
{
    fleet_record *r = &c->has;
    int64_t grace = f->store->grace_ms, end = r->now + ARG(lease) + grace;

    if (c->what == FLEET_CLAIM) {
        r->attempts = fleet_has_expired(r) ? 1 : r->attempts + 1;
        strcpy(r->id, c->id);
        r->fingerprint = (uint64_t)ARG(fingerprint);
        r->retention = ARG(retention) + grace;
        r->reserved = (size_t)ARG(reserved);
    }
    r->pending = (int)ARG(pending);
    if (c->what == FLEET_DELIVERED)
        return;
    r->state = (int)ARG(state);
    r->code = (int32_t)ARG(code);
    r->response = c->arg[FLEET_ARG_response];
    if (r->state != IDEM_IN_PROGRESS)
        r->until = r->now;
    else if (r->until < end || c->what == FLEET_CLAIM)
        r->until = end;
}

/* Drops a record that has expired from the undelivered, unless it is another
   now. */
static int drop(fleet *f, const fleet_call *c)
{
    fleet_call d = *c;
    int result;

    fleet_put(&d, FLEET_ARG_slot,
              (uint32_t)fleet_hash(f, d.has.id, strlen(d.has.id)));
    d.has.pending = 0;
    result = f->store->put(f, &d, &c->has);
    return result == IDEM_MORE ? IDEM_OK : result;
}

/* The next that is undelivered, and has not expired.  Those that have are
   dropped on the way, so they are read once, and not all of them at a time. */
static int find_pending(fleet *f, fleet_call *c)
{
    int left = 20, result;

    for (;;) {
        result = f->store->read(f, c, FLEET_BY_PENDING);
        if (result != IDEM_OK || !c->has.state || !fleet_has_expired(&c->has))
            return result;
        if (left-- == 0)
            return IDEM_MORE;
        result = drop(f, c);
        if (result != IDEM_OK)
            return result;
    }
}

int fleet_decide(fleet *f, fleet_call *c)
{
    int way = *c->id ? FLEET_BY_ID : FLEET_BY_TOKEN, answer, result;
    fleet_record old;

    if (c->what == FLEET_LOSE)
        return f->store->lose(f);
    result = f->store->at_once ? f->store->at_once(f, c) : IDEM_MORE;
    if (result != IDEM_MORE)
        return result;
    result = f->store->read(f, c, way);
    if (result != IDEM_OK || c->what == FLEET_FIND)
        return result;
    if (c->what == FLEET_PENDING)
        return find_pending(f, c);
    if (is_repeated(c))
        return IDEM_OK;
    answer = c->what == FLEET_CLAIM ? decide_claim(f, c) : decide(c);
    if (answer == IDEM_REPLAY)
        fleet_hand_over(c);
    // Once it was answered that a number is below the floor, it stays so.
    if (answer == IDEM_TOO_OLD && fleet_number(c->id) && f->store->raise) {
        result = f->store->raise(f, c);
        return result == IDEM_OK ? answer : result;
    }
    if (answer < IDEM_OK || answer > IDEM_UNCERTAIN)
        return answer;
    old = c->has;
    change(f, c);
    result = f->store->put(f, c, &old);
    return result == IDEM_OK ? answer : result;
}
