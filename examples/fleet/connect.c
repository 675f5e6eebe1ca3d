/* SPDX-License-Identifier: 0BSD */
/* What is the same for every store: opening it by its URL, and asking it. */
#define _POSIX_C_SOURCE 200809L
#include "store.h"
#include "../clock.h"

#include <string.h>
#include <time.h>

enum { TIMEOUT_MS = 5000, LEASE_MIN_MS = 1000 };
enum { WAIT_MAX_MS = 1000 };

static const fleet_store *const stores[] = { &fleet_redis, &fleet_postgres,
                                             &fleet_dynamodb };

int64_t fleet_ms(void)
{
    return clock_ms();
}

void fleet_back_off(int *ms)
{
    struct timespec t = { *ms / 1000, *ms % 1000 * 1000000L };

    nanosleep(&t, NULL);
    *ms = 2 * *ms < WAIT_MAX_MS ? 2 * *ms : WAIT_MAX_MS;
}

/* ------------------------------------------------------------------ opening */

/* NULL, or what is wrong with a config that is right for idem.h. */
static const char *unfit(const idem_config *c)
{
    if (c->storage || c->state_max || c->full || c->quota || c->durability)
        return "config: storage, state_max, full, quota and durability must be "
               "zero in a fleet";
    if (c->lock || c->unlock)
        return "config.lock: a fleet belongs to one thread";
    if (c->lease_ms == IDEM_LEASE_NONE)
        return "config.lease_ms: a lease without end would outlive its holder: "
               "set 1000 or more";
    if (c->lease_ms && c->lease_ms < LEASE_MIN_MS)
        return "config.lease_ms: at least 1000, to wait for the store";
    return NULL;
}

/* Takes the URL apart; false if it cannot be one. */
static int parse(fleet *f, const char *url)
{
    size_t len = strcspn(url, "#");
    const char *name = url[len] ? url + len + 1 : "idem";

    if (len >= sizeof f->url || !*name || strlen(name) >= sizeof f->name ||
        strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_") != strlen(name))
        return 0;
    memcpy(f->url, url, len);
    strcpy(f->name, name);
    for (size_t i = 0; i < sizeof stores / sizeof *stores; i++)
        for (int k = 0; k < 2 && stores[i]->schemes[k]; k++)
            if (!strncmp(url, stores[i]->schemes[k],
                         strlen(stores[i]->schemes[k])))
                f->store = stores[i];
    return f->store != NULL;
}

int fleet_open(fleet *f, const char *url, const idem_config *config)
{
    const char *why = idem_explain(config);
    int result;

    memset(f, 0, sizeof *f);
    f->config = config;
    if (!why)
        why = unfit(config);
    if (why)
        return fleet_fail(f, IDEM_E_ARG, "%s", why);
    if (!strncmp(url, "rediss:", 7))
        return fleet_fail(f, IDEM_E_ARG, "rediss: there is no TLS here; "
                          "connect to a tunnel with redis://");
    if (!parse(f, url))
        return fleet_fail(f, IDEM_E_ARG, "not a URL of a store, or a bad "
                          "#name: see fleet.h");
    f->timeout_ms = (int)(fleet_lease(f, 0) / 2);
    if (f->timeout_ms > TIMEOUT_MS)
        f->timeout_ms = TIMEOUT_MS;
    result = f->store->open(f);
    if (result != IDEM_OK)
        fleet_close(f);
    return result;
}

void fleet_close(fleet *f)
{
    if (f->connection)
        f->store->close(f);
    f->connection = NULL;
}

/* ------------------------------------------------------------------- asking */

static int call(fleet *f, fleet_call *c)
{
    fleet_put(c, FLEET_ARG_since, f->since);
    c->arg[FLEET_ARG_mark] = f->mark;
    f->reason[0] = 0;
    return f->store->call(f, c);
}

/* Looks whether the store has what it acknowledged last. */
static int look_back(fleet *f)
{
    fleet_call c;
    int result;

    fleet_start(&c, FLEET_FIND, NULL);
    strcpy(c.id, f->last_id);
    fleet_put(&c, FLEET_ARG_slot, (uint32_t)fleet_hash(f, c.id, strlen(c.id)));
    result = call(f, &c);
    if (result == IDEM_E_FORMAT) {      // it is there, and damaged
        f->lost = 1;
        return IDEM_OK;
    }
    if (result == IDEM_OK && c.has.now < f->last_end)
        f->lost |= c.has.token < f->last_token ||
                   (c.has.token == f->last_token && f->last_finished &&
                    c.has.state == IDEM_IN_PROGRESS);
    return result;
}

/* Connects again.  If the store was made since, or does not have what it had,
   that is a loss, and noted there. */
static int connect_again(fleet *f)
{
    int64_t since = f->since;
    int result = f->store->open(f);
    fleet_call c;

    if (result == IDEM_OK && f->since != since)
        f->lost = 1;
    else if (result == IDEM_OK && f->last_token)
        result = look_back(f);
    if (result == IDEM_OK && f->lost) {
        fleet_start(&c, FLEET_LOSE, NULL);
        result = call(f, &c);
    }
    if (result == IDEM_OK) {
        f->last_token = f->lost ? 0 : f->last_token;
        f->lost = 0;
    } else {
        f->since = f->lost ? 0 : since;
        fleet_close(f);
    }
    return result;
}

int fleet_ask(fleet *f, fleet_call *c)
{
    int tries = FLEET_TRIES, again = 0, result;
    int64_t since;

    do {
        since = f->since;
        result = f->connection ? IDEM_OK : connect_again(f);
        if (result == IDEM_OK)
            result = call(f, c);
        if (result == IDEM_E_FORMAT && !again && !c->transaction) {
            again = 1;                  // emptied, perhaps: looks once
            fleet_close(f);
            result = connect_again(f);
            if (result == IDEM_OK)
                result = f->since != since ? IDEM_MORE : IDEM_E_FORMAT;
        }
    } while (result == IDEM_MORE && --tries);
    if (result == IDEM_MORE && c->what != FLEET_CLAIM)
        return fleet_fail(f, IDEM_E_STORAGE, "others changed it during each "
                          "try: repeat the call");
    if (result == IDEM_E_FULL && c->what != FLEET_CLAIM)
        result = IDEM_E_STORAGE;        // the claim stays, repeat the call
    if (result < 0 && !f->reason[0])
        return fleet_fail(f, result, "%s", idem_text(result));
    return result == IDEM_MORE ? IDEM_BUSY : result;
}
