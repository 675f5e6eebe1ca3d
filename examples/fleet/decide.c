/* SPDX-License-Identifier: 0BSD */
/* The calls on a store that cannot decide by itself: that only reads a record,
 * and puts another in its place if it is still there (DynamoDB; etcd, S3 and
 * Cosmos DB are such stores).  The put is the step. */
#include "store.h"

#include <stdlib.h>
#include <string.h>

#define ARG(name) strtoll(c->arg[FLEET_ARG_##name], NULL, 10)

/* What to answer; IDEM_OK, EXECUTE and RECOVER: once the record is changed. */
static int decide(const fleet *f, const fleet_call *c)
{
    const fleet_record *r = &c->has;
    int over = fleet_is_over(r), finished = r->state > IDEM_IN_PROGRESS;
    int64_t age = ARG(age), reach = r->now - f->since;

    if (c->what == FLEET_DELIVERED)
        return over || !finished ? IDEM_E_NOT_FOUND : IDEM_OK;
    if (c->what != FLEET_CLAIM)
        return over || finished ? IDEM_E_FENCED : IDEM_OK;
    if (over)
        return (age && (age >= ARG(retention) || age >= reach)) ||
               (r->state && strchr(c->id, '#')) ? IDEM_TOO_OLD : IDEM_EXECUTE;
    if (r->fingerprint != (uint64_t)ARG(fingerprint))
        return IDEM_MISMATCH;
    if (finished)
        return IDEM_REPLAY;
    if (r->now < r->until)
        return IDEM_BUSY;
    return r->attempts >= ARG(limit) ? IDEM_EXHAUSTED : IDEM_RECOVER;
}

/* What a claim has of its own. */
static int claim(fleet *f, fleet_call *c, int answer)
{
    fleet_record *r = &c->has;

    strcpy(r->id, c->id);
    r->attempts = answer == IDEM_EXECUTE ? 1 : r->attempts + 1;
    r->fingerprint = (uint64_t)ARG(fingerprint);
    r->retention = ARG(retention) + f->store->grace_ms;
    r->reserved = (size_t)ARG(reserved);
    return f->store->take_token(f, &r->token);
}

/* The state that a call wants, with what belongs to it. */
static int change(const fleet *f, fleet_call *c)
{
    fleet_record *r = &c->has;
    int64_t lease_end = r->now + ARG(lease) + f->store->grace_ms;

    r->owed = (int)ARG(owed);
    if (c->what == FLEET_DELIVERED)
        return IDEM_OK;
    r->state = (int)ARG(state);
    r->code = (int32_t)ARG(code);
    r->response = c->arg[FLEET_ARG_response];
    if (r->state != IDEM_IN_PROGRESS)
        r->until = r->now;
    else if (r->until < lease_end)
        r->until = lease_end;
    return strlen(r->response) > 2 * r->reserved ? IDEM_E_TOO_LARGE : IDEM_OK;
}

/* The next that is owed, and not over. */
static int find_owed(fleet *f, fleet_call *c)
{
    int result;

    do
        result = f->store->read(f, c, FLEET_OWED);
    while (result == IDEM_OK && c->has.state && fleet_is_over(&c->has));
    return result;
}

/* Changes the record as was decided; MORE: it is no longer the one decided on,
   so all is done again. */
static int swap(fleet *f, fleet_call *c, int answer)
{
    fleet_record old = c->has;
    int result = c->what == FLEET_CLAIM ? claim(f, c, answer) : IDEM_OK;

    if (result == IDEM_OK)
        result = change(f, c);
    if (result == IDEM_OK)
        result = f->store->put(f, c, &old);
    return result == IDEM_OK ? answer : result;
}

int fleet_decide(fleet *f, fleet_call *c)
{
    int way = *c->id ? FLEET_BY_ID : FLEET_BY_TOKEN, answer;
    int result = f->store->read(f, c, way);

    if (result != IDEM_OK || c->what == FLEET_FIND)
        return result;
    if (c->what == FLEET_PENDING)
        return find_owed(f, c);
    answer = decide(f, c);
    if (answer == IDEM_REPLAY)
        fleet_hand_over(c);
    if (answer < IDEM_OK || answer > IDEM_RECOVER)
        return answer;
    return swap(f, c, answer);
}
