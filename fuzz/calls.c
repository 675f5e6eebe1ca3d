/* SPDX-License-Identifier: 0BSD */
/*
 * Calls in any order, with ticks that stop, jump and go backwards, restarts,
 * power cuts in any operation, and callbacks that fail; against a model of the
 * promises (promises.h) that knows calls and answers only.
 */
#include "device.h"
#include "promises.h"

enum { CALLS_MAX = 200, CLAIMS = 4, LONG_TICK = 0x40000000 };

/* The journal is proof against any number of cuts between two calls that wrote
   if no more than one of them leaves what reads differently from boot to boot
   (it sways), and against two of those; but not against a third cut after them.
   Then the ring tells of the loss, as it does after two and callbacks that
   fail. */
enum { CUTS_SAFE = 2, SWAYS_SAFE = 1 };
enum { RING = 1 };

static promises model;
static idem_claim claims[CLAIMS];       // some of those that were granted,
static unsigned claimed[CLAIMS];        // and on which keys
static unsigned cut_variant;
static unsigned cuts, sways;            // since a call wrote
static unsigned swayed;                 // the same, when a call began
static int swaying;                     // the cut that is next sways
static uint32_t last_number;            // of a response
static int faulty;                      // a callback may fail in this boot
static int faults;                      // or could, since a call erased
static int unreadable;                  // .. one that reads
static uint32_t erases_before_boot;
static int acknowledged;                // something was, at some time
static int blank;                       // .. and the medium was, when opened

/* Leaves an operation torn in one of the ways there are. */
static void choose_variant(void *arg, const flash *f, const flash_op *op)
{
    uint32_t count = flash_variants(f, op);
    uint32_t variant = count ? cut_variant % count : 0, k;
    int torn = flash_torn_kind(f, op, variant, &k);

    (void)arg;
    the.medium.cut_variant = variant;
    swaying = torn >= FLASH_SWAY_BOOT && torn <= FLASH_SWAY_APIECE;
}

/* True if any cut is allowed, and with the ring any failure. */
static int safe(void)
{
    return cuts < CUTS_SAFE || sways <= SWAYS_SAFE;
}

/* Whether every byte may read erased. */
static int medium_is_blank(void)
{
    const flash *f = &the.medium;
    uint32_t at;

    for (at = 0; at < f->size; at++)
        if (((f->bytes[at] ^ f->erased) & ~f->weak[at] & 0xFF) ||
            f->marks[at] & FLASH_TORN)
            return 0;
    return 1;
}

/* The storage is used as it may be.  On blank storage nobody can see what a cut
   left in doubt; it is found out by failing. */
static void check_medium(void)
{
    if (blank)
        the.medium.violations -= the.medium.violations_of[FLASH_V_DOUBT];
    the.medium.violations_of[FLASH_V_DOUBT] = 0;
    if (the.medium.violations)
        trace("%s\n", flash_text(&the.medium));
    PROMISE(!the.medium.violations);
}

/* What must hold after every call. */
static void check_device(void)
{
    int invariant = idem_check(&the.table);

    check_medium();
    PROMISE(!the.table.stats.lost || unreadable);
    if (invariant)
        trace("idem_check: %d\n", invariant);
    PROMISE(!invariant);
}

/* The tick, for a call that is told it. */
static uint32_t told(void)
{
    promises_tick(&model, the.now);
    return the.now;
}

/* Looks at a key; nothing is claimed. */
static void look(unsigned key)
{
    uint8_t id[KEY_MAX];
    idem_entry entry = { .id = id, .id_size = sizeof id };
    idem_request rq = request_of(key, 0);
    int result = idem_find(&the.table, &entry, &rq, told());

    if (result == IDEM_E_STORAGE && faulty)
        return;
    trace("look at key %u: %s\n", key, idem_text(result));
    PROMISE(result == IDEM_OK || result == IDEM_E_NOT_FOUND);
    PROMISE(result != IDEM_OK || key_of(&entry) == key);
    PROMISE(promises_shown(&model, key, result == IDEM_OK ? &entry : NULL));
}

static void look_at_state(void)
{
    uint32_t state = 0;
    size_t len = sizeof state;

    PROMISE(idem_state(&the.table, &state, &len) == IDEM_OK);
    PROMISE(!len || len == sizeof state);
    PROMISE(promises_state(&model, state));
}

/* The power comes back, or the machine restarts. */
static void restart(void)
{
    unsigned key;
    int call;

    check_medium();
    for (call = 0; call < FLASH_CALLS; call++)
        flash_fail(&the.medium, call, 0, 0, 0);
    // What a sync that failed has dropped is not read again.
    if (the.medium.durable && !the.medium.off)
        flash_off(&the.medium, 0);
    flash_boot(&the.medium);
    erases_before_boot = the.medium.erases;
    promises_restart(&model);
    model.tick = the.now;
    unreadable = 0;
    faulty = blank = !acknowledged && medium_is_blank();
    // What was never written does not tell how far tokens were granted.
    if (!acknowledged) {
        model.token = 0;
        memset(claims, 0, sizeof claims);
    }
    trace("restart\n");
    call = device_open();
    // Erases that failed half way, before anything was acknowledged, look like
    // somebody else's data, or do not read.
    if ((call == IDEM_E_FORMAT || call == IDEM_E_STORAGE) && !acknowledged)
        call = idem_format(&the.table, &the.config, table_memory,
                           the.memory_size, the.now);
    PROMISE(call == IDEM_OK);
    if (cuts > CUTS_SAFE && sways > SWAYS_SAFE && the.table.stats.lost)
        return;
    PROMISE(the.table.stats.lost == 0);
    check_device();
    for (key = 0; key < KEYS; key++)
        look(key);
    look_at_state();
}

/* The call has answered, or was cut short.  An answer of the storage's failure
   needs one. */
static void settle(const promised_call *c, int result)
{
    trace("%c key %u payload %u token %llu: %s%s\n", c->what, c->key,
          c->payload, (unsigned long long)c->claim.token, idem_text(result),
          the.medium.off ? ", the power went" : "");
    if (the.medium.off) {
        promises_in_flight(&model, c);
        cuts++;
        sways += (unsigned)swaying;
        swayed = sways;
        return;
    }
    check_device();
    if (the.table.stats.lost)
        return;
    if (result == IDEM_E_STORAGE || result == IDEM_E_SPACE) {
        PROMISE(faulty);
        promises_in_flight(&model, c);
        return;
    }
    PROMISE(promises_answered(&model, c, result));
    if (promises_writes(c, result))
        cuts = sways = 0;
    acknowledged |= the.config.volatile_claims
                        ? c->what == 'C' && result == IDEM_OK
                        : c->what != 'Y' && promises_writes(c, result);
}

/* No call waits for more than an erase, or a boot's first for one more; and for
   one more after each tear that read as a header at one boot only.  Where
   doubt cannot be seen, or a callback fails, it is found out by failing. */
static void check_erases(uint32_t before)
{
    uint32_t most = before == erases_before_boot ? 2 + swayed : 1;

    if (acknowledged && !faults)
        PROMISE(the.medium.erases - before <= most);
    if (the.medium.erases != before)
        faults = faulty;
    swayed = sways;
}

static void begin(input *in, unsigned key)
{
    unsigned how = input_byte(in), payload = how % PAYLOADS;
    uint8_t bytes[RESPONSE_MAX];
    idem_request rq = request_of(key, payload);
    idem_reply reply = { .buffer = bytes, .buffer_size = sizeof bytes };
    uint32_t erases = the.medium.erases;
    promised_call c = { .what = 'B', .key = key, .payload = payload,
                        .reply = &reply };
    idem_claim claim;
    int result;

    if (how & 2)
        rq.lease_ms = how & 4 ? IDEM_LEASE_NONE : 10;
    c.lease = how & 2 ? rq.lease_ms : the.config.lease_ms;
    result = idem_begin(&the.table, &claim, &reply, &rq, told());
    c.claim = claim;
    settle(&c, result);
    check_erases(erases);
    if (claim.token) {
        claims[how >> 3 & (CLAIMS - 1)] = claim;
        claimed[how >> 3 & (CLAIMS - 1)] = key;
    }
}

static void complete(input *in, unsigned which)
{
    unsigned how = input_byte(in);
    uint8_t bytes[RESPONSE_MAX];
    uint32_t erases = the.medium.erases;
    promised_call c = { .what = 'C', .key = claimed[which],
                        .claim = claims[which] };
    idem_outcome outcome = { .response = bytes, .code = how & 7,
                             .failed = how >> 3 & 1, .confirm = how >> 4 & 1 };

    c.number = ++last_number;
    c.outcome = &outcome;
    outcome.response_len = response_of(bytes, c.key, 0, last_number);
    if (how & 32 && the.config.state_max) {
        outcome.state = &c.number;
        outcome.state_len = sizeof c.number;
    }
    settle(&c, idem_complete(&the.table, &c.claim, &outcome, told()));
    check_erases(erases);
}

static void release(unsigned which)
{
    promised_call c = { .what = 'R', .key = claimed[which],
                        .claim = claims[which] };

    settle(&c, idem_release(&the.table, &c.claim, told()));
}

static void renew(unsigned which)
{
    promised_call c = { .what = 'N', .key = claimed[which],
                        .claim = claims[which], .lease = 2000 };

    settle(&c, idem_renew(&the.table, &c.claim, 2000, told()));
}

static void forget(unsigned key)
{
    promised_call c = { .what = 'X', .key = key };
    idem_request rq = request_of(key, 0);

    settle(&c, idem_forget(&the.table, &rq, told()));
}

/* Delivers the oldest outcome that is owed. */
static void deliver(void)
{
    uint8_t id[KEY_MAX];
    idem_entry entry = { .id = id, .id_size = sizeof id };
    promised_call c = { .what = 'D' };
    int result = idem_pending(&the.table, &entry, told());

    if (result != IDEM_OK) {
        PROMISE(result == IDEM_E_NOT_FOUND || faulty);
        return;
    }
    c.key = key_of(&entry);
    PROMISE(c.key < KEYS && entry.undelivered);
    settle(&c, idem_delivered(&the.table, &entry.claim));
}

static void maintain(void)
{
    int result = idem_maintain(&the.table, told());

    if (the.medium.off)
        return;
    check_device();
    trace("maintain: %s\n", idem_text(result));
    PROMISE(result == IDEM_OK || result == IDEM_MORE || faulty);
}

static void synchronise(void)
{
    promised_call c = { .what = 'Y' };

    settle(&c, idem_sync(&the.table));
}

/* Lets one of the callbacks fail. */
static void let_fail(input *in)
{
    unsigned what = input_byte(in);
    static const int hows[] = { FLASH_UNDONE, FLASH_DONE, FLASH_HALF };

    faulty = faults = 1;
    unreadable |= what % FLASH_CALLS == FLASH_READ;
    trace("from now on %u fails\n", what);
    flash_fail(&the.medium, (int)(what % FLASH_CALLS), what >> 2 & 7,
               hows[what % 3], what >> 7);
}

/* The tick goes on, stops, jumps or goes backwards. */
static void pass(input *in)
{
    static const uint32_t steps[] = { 1, 9, 400, 1000, 4000, 60000,
                                      LONG_TICK, 0x7FFFFFFF };
    unsigned how = input_byte(in);
    uint32_t step = steps[how & 7] + (how >> 4);

    if (how & 8)
        step = 0 - step;
    the.now += step;
    trace("tick %+ld\n", (long)(int32_t)step);
}

static void elapse(input *in)
{
    uint32_t ms = input_word(in) >> (input_byte(in) & 31);

    PROMISE(idem_elapse(&the.table, ms) == IDEM_OK);
    promises_pass(&model, ms);
}

static void one_call(input *in)
{
    unsigned what = input_byte(in), who = what >> 4;

    the.used = 0;
    switch (what & 15) {
    case 0: case 1: case 2: case 3:
        begin(in, who % KEYS);
        break;
    case 4: case 5: case 6:
        complete(in, who % CLAIMS);
        break;
    case 7: release(who % CLAIMS); break;
    case 8: renew(who % CLAIMS); break;
    case 9: forget(who % KEYS); break;
    case 10: who & 1 ? deliver() : synchronise(); break;
    case 11: maintain(); break;
    case 12: who & 1 ? elapse(in) : pass(in); break;
    case 13: look(who % KEYS); break;
    case 14: restart(); break;
    case 15:
        if (who & 1) {
            if (!RING || safe())
                let_fail(in);
        } else {
            cut_variant = input_byte(in);
            if (RING || safe())
                flash_cut(&the.medium, who >> 1, 0);
        }
    }
}

static void run(input *in)
{
    unsigned calls = 0;

    if (!device_make(in))
        return;
    the.medium.watch = choose_variant;
    the.medium.cut_syncs = the.storage.sync != NULL;
    memset(claims, 0, sizeof claims);
    memset(claimed, 0, sizeof claimed);
    faulty = faults = unreadable = acknowledged = blank = 0;
    cut_variant = last_number = cuts = sways = swayed = 0;
    erases_before_boot = 0;
    swaying = 0;
    promises_init(&model, &the.config);
    model.tick = the.now;
    PROMISE(device_open() == IDEM_OK);
    // What is lost is no fault of the table's if reading fails for long.
    while (in->left && calls++ < CALLS_MAX && !the.table.stats.lost) {
        one_call(in);
        if (the.medium.off && !the.table.stats.lost)
            restart();
    }
}
