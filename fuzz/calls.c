/* SPDX-License-Identifier: 0BSD */
/*
 * Calls in any order, with ticks that stop, jump and go backwards, restarts,
 * power cuts in any operation, and callbacks that fail; against the model of
 * the promises (tests/model).
 */
#include "device.h"

enum { CALLS_MAX = 200, CLAIMS = 4, LONG_TICK = 0x40000000 };

static idem_claim claims[CLAIMS];       // some of those that were granted,
static unsigned claimed[CLAIMS];        // and on which keys
static unsigned cut_variant;

/* Leaves an operation torn in one of the ways there are. */
static void choose_variant(void *arg, const flash *f, const flash_op *op)
{
    uint32_t count = flash_variants(f, op);
    uint32_t variant = count ? cut_variant % count : 0, k;
    int torn = flash_torn_kind(f, op, variant, &k);

    (void)arg;
    the.medium.cut_variant = variant;
    if (f->armed && !f->cut_in)
        the.sways += torn >= FLASH_SWAY_BOOT && torn <= FLASH_SWAY_APIECE;
}

/* The power comes back, or the machine restarts. */
static void restart(void)
{
    device_stop(&the);
    device_start(&the);
    for (unsigned key = 0; key < KEYS && !the.lost; key++)
        device_look(&the, key);
    if (!the.lost)
        device_look_at_state(&the);
}

static void begin(input *in, unsigned key)
{
    unsigned how = input_byte(in);
    idem_request more;
    idem_claim claim;

    memset(&more, 0, sizeof more);
    if (how & 2)
        more.lease_ms = how & 4 ? IDEM_LEASE_NONE : 10;
    device_begin(&the, &claim, key, how % PAYLOADS, &more);
    if (claim.token) {
        claims[how >> 3 & (CLAIMS - 1)] = claim;
        claimed[how >> 3 & (CLAIMS - 1)] = key;
    }
}

static void complete(input *in, unsigned which)
{
    unsigned how = input_byte(in);
    idem_outcome outcome;

    memset(&outcome, 0, sizeof outcome);
    outcome.code = how & 7;
    outcome.failed = how >> 3 & 1;
    outcome.confirm = how >> 4 & 1;
    outcome.response_len = 6 + the.number % (RESPONSE_MAX - 5);
    if (how & 32 && the.config.state_max) {
        outcome.state = "";
        outcome.state_len = STATE_MAX;
    }
    device_complete(&the, &claims[which], claimed[which], &outcome);
}

/* Delivers the oldest outcome that is owed, or what looks like it. */
static void deliver(void)
{
    uint8_t id[KEY_MAX];
    idem_entry entry;
    int result;

    memset(&entry, 0, sizeof entry);
    entry.id = id;
    entry.id_size = sizeof id;
    device_before(&the, 'L', 0);
    result = idem_pending(the.table, &entry, the.now);
    device_looked(&the, "pending", result);
    PROMISE(result == IDEM_OK || result == IDEM_E_NOT_FOUND);
    PROMISE(result != IDEM_OK || entry.undelivered);
    if (result == IDEM_OK)
        device_delivered(&the, &entry.claim, device_named(&the, &entry));
}

/* Lets one of the callbacks fail. */
static void let_fail(input *in)
{
    static const int hows[] = { FLASH_UNDONE, FLASH_DONE, FLASH_HALF };
    unsigned what = input_byte(in);

    the.fails = the.boot_failed = 1;
    the.reads_fail |= what % FLASH_CALLS == FLASH_READ;
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

    the.now += how & 8 ? 0 - step : step;
}

static void elapse(input *in)
{
    uint32_t ms = input_word(in);

    device_elapse(&the, ms >> (input_byte(in) & 31));
}

static void one_call(input *in)
{
    unsigned what = input_byte(in), who = what >> 4, which = who % CLAIMS;

    switch (what & 15) {
    case 0: case 1: case 2: case 3:
        begin(in, who % KEYS);
        break;
    case 4: case 5: case 6:
        complete(in, which);
        break;
    case 7: device_release(&the, &claims[which], claimed[which]); break;
    case 8: device_renew(&the, &claims[which], claimed[which], 2000); break;
    case 9: device_forget(&the, who % KEYS); break;
    case 10: who & 1 ? deliver() : (void)device_sync(&the); break;
    case 11: device_maintain(&the); break;
    case 12: who & 1 ? elapse(in) : pass(in); break;
    case 13: device_look(&the, who % KEYS); break;
    case 14: restart(); break;
    case 15:
        if (who & 1) {
            let_fail(in);
        } else {
            cut_variant = input_byte(in);
            flash_cut(&the.medium, who >> 1, 0);
        }
    }
}

static void run(input *in)
{
    unsigned calls = 0;

    if (!choose_device(in))
        return;
    the.medium.watch = choose_variant;
    memset(claims, 0, sizeof claims);
    memset(claimed, 0, sizeof claimed);
    cut_variant = 0;
    device_open(&the);
    // What is lost is no fault of the table's if reading fails for long.
    while (in->left && calls++ < CALLS_MAX && !the.lost) {
        one_call(in);
        if (the.medium.off && !the.lost)
            restart();
    }
    PROMISE(the.lost || !idem_check(the.table));
    device_end(&the);
}
