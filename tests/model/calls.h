/* SPDX-License-Identifier: 0BSD */
/*
 * Workloads by chance: calls of every kind on a device (device.h), in phases
 * that fill and empty its table, with a tick that stops, jumps and goes
 * backwards, restarts, power cuts and failing callbacks.  A test makes the
 * device, sets what its workload is like, and plays.  The same seed does the
 * same again.
 */
#ifndef CALLS_H
#define CALLS_H

#include "device.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define PICK(array) ((array)[chance((uint32_t)COUNT(array))])

#ifndef KEYS_MAX
#define KEYS_MAX 1000
#endif

/* Cuts, and boots in which a callback fails, in a row without a call that has
   written.  The manual says what three may do (>>recovery, >>eeprom). */
enum { HARM_MAX = 2 };

static device the;
static known keys[KEYS_MAX];

static struct {
    // What the workload is like.
    int      cuts, fails;           // the power goes; callbacks fail
    int      many_retentions;       // requests ask for many
    unsigned strange;               // one tick in so many is; 0: none
    int      mistakes;              // calls that are refused as they are
    int      idle;                  // idle work is done after each call
    void   (*change)(void);         // what another boot may have, or NULL
    // How far it is.
    unsigned phase, left;
    unsigned cursor;                // the next key to fill the table with
    unsigned held[KEYS_MAX];        // keys claimed, some of them no more
    unsigned holding;
    unsigned last_key;
    // What it came to.
    unsigned long calls, restarts, cut, failures;
    unsigned long answered[IDEM_EXHAUSTED + 1];
} play;

/* ------------------------------------------------------------------ chance */

static uint64_t chance_state;

static inline void chance_start(uint32_t seed)
{
    chance_state = spread(seed + UINT64_C(1));
}

/* xorshift64*, of Marsaglia and Vigna. */
static inline uint32_t chance_word(void)
{
    chance_state ^= chance_state >> 12;
    chance_state ^= chance_state << 25;
    chance_state ^= chance_state >> 27;
    return (uint32_t)(chance_state * UINT64_C(2685821657736338717) >> 32);
}

/* One of the numbers below `count`; 0 if there are none. */
static inline uint32_t chance(uint32_t count)
{
    return count ? chance_word() % count : 0;
}

static inline int one_in(uint32_t count)
{
    return chance(count) == 0;
}

/* Short and long ones equally often, below 2^bits. */
static inline uint32_t chance_long(unsigned bits)
{
    return chance_word() >> (32 - 1 - chance(bits));
}

/* -------------------------------------------------------------------- time */

/* When the next key, of some, is over, or its lease is; or FOR_EVER. */
static inline uint64_t next_end(void)
{
    uint64_t next = FOR_EVER;

    for (unsigned n = 0; n < 20; n++) {
        const known *k = &keys[chance(the.model.count)];
        const version *v = &k->now.of[0];
        uint64_t end = v->status == IDEM_IN_PROGRESS && !v->cut ? v->lease_end
                                                                : v->from;
        if (!k->now.count || !v->status || end == FOR_EVER)
            continue;
        if (end <= the.model.clock)
            end += v->retention;
        if (end > the.model.clock && end < next)
            next = end;
    }
    return next;
}

/* What a tick must not do, and does. */
static inline uint32_t strange_step(void)
{
    static const uint32_t edges[] = {
        UINT32_MAX, TICK_HALF, TICK_HALF + 1, TICK_HALF - 1, TICK_HALF / 2,
        UINT32_C(1) << 28, (UINT32_C(1) << 28) - 1,
        0u - TICK_JITTER + 1, 0u - TICK_JITTER, 0u - TICK_JITTER - 1,
    };

    switch (chance(4)) {
    case 0: return PICK(edges);
    case 1: return 0u - chance_long(32);
    case 2: return chance_long(31);
    default: return chance_word();
    }
}

/* Time for the next call. */
static inline void tick_on(void)
{
    unsigned kind = chance(16);
    uint64_t end;

    if (play.strange && one_in(play.strange)) {
        the.now += strange_step();
    } else if (play.strange && kind < 2) {
        end = next_end();
        if (end != FOR_EVER && end - the.model.clock < TICK_HALF)
            the.now += (uint32_t)(end - the.model.clock) + chance(3) - 1;
    } else if (kind < 5) {
        the.now += chance(5);
    }
}

/* A tick goes back, and up again: that is no time. */
static inline void sway_tick(void)
{
    static const uint32_t farthest[] = { TICK_JITTER, TICK_HALF };
    uint32_t back = PICK(farthest), now = the.now;

    if (the.model.tick != now)
        device_tick(&the, now);
    device_tick(&the, now - (one_in(3) ? back : chance(back)));
    device_tick(&the, now);
}

/* Time passes, of any length, and the table is told. */
static inline void wait_some(void)
{
    static const uint32_t longest[] = { 1000, 1000, 100000, 90000000,
                                        0x7FFFFFFF };

    if (one_in(10))
        sway_tick();
    device_tick(&the, the.now + chance(PICK(longest)));
}

/* ------------------------------------------------------------------- calls */

static inline void hold(unsigned key)
{
    if (play.holding < KEYS_MAX)
        play.held[play.holding++] = key;
}

/* Takes one of the keys claimed last. */
static inline unsigned take_held(unsigned among)
{
    unsigned at, key;

    if (among > play.holding)
        among = play.holding;
    at = play.holding - 1 - chance(among);
    key = play.held[at];
    play.held[at] = play.held[--play.holding];
    return key;
}

static inline unsigned any_key(void)
{
    if (play.holding && one_in(3))
        return play.held[chance(play.holding)];
    return chance(the.model.count);
}

static inline uint32_t choose_lease(void)
{
    static const uint32_t longest[] = { 100, 100000, IDEM_LEASE_MAX };

    return one_in(10) ? IDEM_LEASE_NONE
           : one_in(3) ? 1 + chance(PICK(longest)) : 0;
}

/* None of them is a default that the configuration may come to have. */
static inline uint32_t choose_retention(void)
{
    static const uint32_t nine[] = { 1, 31, 1007, 1257, 1507, 100000, 170000,
                                     240000, IDEM_RETENTION_MAX - 1 };

    if (play.many_retentions && one_in(2))
        return 1003 + 997 * chance(30);
    return one_in(2) ? PICK(nine) : 0;
}

/* Where it matters: at the ends of what memory may reach. */
static inline uint32_t choose_age(uint32_t retention)
{
    uint64_t since = the.model.clock - the.model.opened + chance(2);
    uint64_t reach = the.model.clock - the.model.reach + chance(3) - 1;

    if (!one_in(20))
        return 0;
    switch (chance(5)) {
    case 0: return 1 + chance(5000);
    case 1: return 1 + chance(200000);
    case 2: return (retention ? retention : model_retention(&the.model)) -
                   chance(2);
    case 3: return reach < UINT32_MAX ? (uint32_t)reach : 0;
    default: return since < UINT32_MAX ? (uint32_t)since : 0;
    }
}

static inline idem_request choose_request(void)
{
    idem_request more;

    memset(&more, 0, sizeof more);
    more.lease_ms = choose_lease();
    more.retention_ms = choose_retention();
    more.age_ms = choose_age(more.retention_ms);
    if (one_in(3))
        more.response_size = (uint16_t)chance(the.config.response_max + 1u);
    return more;
}

static inline unsigned choose_payload(void)
{
    return one_in(30) ? 1 + chance(64) : 0;
}

static inline int begin(unsigned key)
{
    idem_request more = choose_request();
    idem_claim claim;
    version *v = model_only(&keys[key]);
    idem_claim before = v ? v->claim : unknown.claim;
    int result;

    play.last_key = key;
    the.buffer_size = one_in(8) ? chance(12) : LEN_MAX;
    tick_on();
    result = device_begin(&the, &claim, key, choose_payload(), &more);
    if (result >= IDEM_EXECUTE && result <= IDEM_EXHAUSTED)
        play.answered[result]++;
    if (claim.token) {
        device_keep_old(&the, &before);
        hold(key);
    }
    return result;
}

/* The key's current claim in this boot, or NULL. */
static inline const idem_claim *claimed(unsigned key)
{
    const version *v = model_only(&keys[key]);

    play.last_key = key;
    return v && v->status == IDEM_IN_PROGRESS && v->claim.token ? &v->claim
                                                                : NULL;
}

/* Short ones more often, if long ones are allowed. */
static inline uint16_t some_len(uint16_t most)
{
    if (most > 2000 && !one_in(4))
        most = 40;
    return (uint16_t)(one_in(2) ? most : chance(most + 1u));
}

/* Now and then longer than reserved, or with more state than there may be. */
static inline idem_outcome choose_outcome(uint16_t reserved)
{
    idem_outcome how;

    memset(&how, 0, sizeof how);
    how.response_len = some_len(reserved);
    how.code = one_in(2) ? 0 : (int32_t)chance_word();
    how.confirm = one_in(5);
    how.failed = one_in(4);
    if (the.config.state_max && one_in(3)) {
        how.state = "";
        how.state_len = some_len(the.config.state_max);
    }
    if (one_in(30) && reserved < LEN_MAX)
        how.response_len = reserved + 1u;
    else if (one_in(30) && how.state && the.config.state_max < LEN_MAX)
        how.state_len = the.config.state_max + 1u;
    return how;
}

static inline void complete(unsigned key)
{
    const idem_claim *current = claimed(key);
    idem_claim claim;
    idem_outcome how;

    if (!current)
        return;
    claim = *current;
    how = choose_outcome(keys[key].now.of[0].len);
    tick_on();
    device_complete(&the, &claim, key, &how);
}

/* All of it in one call. */
static inline void run_whole(unsigned key)
{
    idem_request more = choose_request();
    idem_outcome how = choose_outcome(
        more.response_size ? more.response_size : the.config.response_max);

    play.last_key = key;
    tick_on();
    device_run(&the, key, choose_payload(), &more, one_in(6) ? NULL : &how,
               one_in(4) ? chance(200000) : chance(3));
}

/* A table may be moved while no call is under way. */
static inline void move(void)
{
    idem_table *from = the.table;

    the.table = from == the.tables ? &the.tables[1] : the.tables;
    *the.table = *from;
    memset(from, 0x5A, sizeof *from);
}

static inline void release(unsigned key)
{
    const idem_claim *current = claimed(key);
    idem_claim claim;

    if (!current)
        return;
    claim = *current;
    tick_on();
    device_release(&the, &claim, key);
}

static inline void renew(unsigned key)
{
    const idem_claim *current = claimed(key);
    uint32_t lease = choose_lease();
    idem_claim claim;

    if (!current)
        return;
    claim = *current;
    tick_on();
    device_renew(&the, &claim, key, lease ? lease : 1000);
}

/* Claims that are used up are fenced, for ever; so is one that is forged. */
static inline void try_old(void)
{
    idem_claim claim = the.old[chance(OLD_CLAIMS)];

    tick_on();
    if (one_in(4)) {
        const idem_claim *current = claimed(any_key());
        if (!current)
            return;
        claim = *current;
        switch (chance(3)) {
        case 0: claim.slot = (claim.slot + 1) % (the.config.capacity + 1);
                break;
        case 1: claim.slot = one_in(2) ? UINT32_MAX : the.config.capacity;
                break;
        default: claim.token ^= (idem_token)1
                                << (8 * sizeof claim.token - 1 - chance(8));
        }
    }
    device_try(&the, &claim, chance(3));
}

static inline void deliver(unsigned key)
{
    version *v = model_only(&keys[key]);
    idem_claim claim;

    if (!v || !version_finished(v) || !v->claim.token)
        return;
    claim = v->claim;
    device_delivered(&the, &claim, key);
}

static inline void forget(unsigned key)
{
    tick_on();
    device_forget(&the, key);
}

/* One step, or all there is to do. */
static inline void maintain(int all)
{
    int result = IDEM_MORE;

    for (unsigned n = 0; result == IDEM_MORE && (all || !n); n++) {
        PROMISE(n < 200000);
        result = device_maintain(&the);
    }
}

/* Each attempt is cut short, until none is allowed any more. */
static inline void wear_out(unsigned key)
{
    for (unsigned n = 0; n < 256 && !the.medium.off && !the.lost; n++) {
        int result = begin(key);
        const idem_claim *claim = claimed(key);
        uint32_t left = claim ? version_left(&the.model, &keys[key].now.of[0])
                              : IDEM_LEASE_NONE;
        if ((result != IDEM_EXECUTE && result != IDEM_RECOVER) ||
            left == IDEM_LEASE_NONE)
            return;
        device_tick(&the, the.now + left);
    }
}

/* Calls that are refused, and change nothing. */
static inline void mistake(void)
{
    idem_table *t = the.table;
    idem_claim claim = { 1, 0, 0 };
    idem_reply reply = { 0 };
    idem_outcome out = { 0 };
    idem_entry entry = { 0 };
    idem_request rq = { 0 };
    size_t len = 1;
    unsigned kind = chance(20);
    int result, expected = kind < 2 ? IDEM_E_TOO_LARGE : IDEM_E_ARG;

    device_before(&the, 'S', 0);
    rq.key = rq.payload = "key";
    rq.key_len = rq.payload_len = 1;
    switch (kind) {
    case 0: rq.key_len = the.config.key_max + 1u; break;
    case 1: rq.scope_len = SIZE_MAX - chance(4); rq.scope = ""; break;
    case 2: rq.key_len = 0; break;
    case 3: rq.key = NULL; break;
    case 4: rq.scope_len = 1; break;
    case 5: rq.payload = NULL; break;
    case 6: rq.lease_ms = IDEM_LEASE_MAX + 1; break;
    case 7: rq.lease_ms = IDEM_LEASE_NONE - 1; break;
    case 8: rq.retention_ms = IDEM_RETENTION_MAX + 1; break;
    case 9: out.response_len = 1; break;
    case 10: out.state_len = 1; break;
    }
    switch (kind) {
    default: result = idem_begin(t, &claim, &reply, &rq, the.now); break;
    case 9: case 10:
        result = idem_complete(t, &claim, &out, the.now); break;
    case 11: result = idem_complete(t, &claim, NULL, the.now); break;
    case 12:
        result = idem_renew(t, &claim, IDEM_LEASE_NONE - 1, the.now); break;
    case 13: result = idem_release(t, NULL, the.now); break;
    case 14: rq.key_len = 0; result = idem_find(t, &entry, &rq, the.now);
             break;
    case 15: rq.key_len = 0; result = idem_forget(t, &rq, the.now); break;
    case 16: result = idem_response(t, NULL, &len, &claim, 0); break;
    case 17: result = idem_state(t, NULL, &len); break;
    case 18: result = idem_begin(t, &claim, &reply, NULL, the.now); break;
    case 19: result = idem_begin(t, NULL, &reply, &rq, the.now); break;
    }
    PROMISE(result == expected);
    PROMISE(kind >= 9 || !claim.token);
    device_looked(&the, "mistake", result);
}

/* ---------------------------------------------------------------- restarts */

static inline void some_looks(unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        device_look(&the, the.model.count <= count ? i % the.model.count
                                                   : chance(the.model.count));
    device_look_at_state(&the);
}

/* Then what was interrupted is asked for again, or not. */
static inline void restart(void)
{
    unsigned interrupted = play.last_key;

    play.restarts++;
    play.cut += the.medium.off != 0;
    device_stop(&the);
    if (play.change && one_in(3))
        play.change();
    device_make_memory(&the);
    the.now = chance_word();
    play.holding = 0;
    device_start(&the);
    if (the.lost)
        return;
    some_looks(20);
    if (one_in(2))
        begin(interrupted);
}

/* Leaves what a cut interrupts torn in one of the ways there are: of any kind,
   or most would be front parts. */
static inline void choose_variant(void *arg, const flash *f,
                                  const flash_op *op)
{
    uint32_t variant = 0, count;
    int torn;

    (void)arg;
    if (!f->armed || f->cut_in)
        return;
    do {
        torn = (int)chance(FLASH_TORN_KINDS);
        count = flash_torn_count(f, op, torn);
    } while (!count);
    for (int kind = 0; kind < torn; kind++)
        variant += flash_torn_count(f, op, kind);
    the.medium.cut_variant = variant + chance(count);
    the.sways += torn >= FLASH_SWAY_BOOT && torn <= FLASH_SWAY_APIECE;
}

static inline void no_more_failures(void)
{
    for (int call = 0; call < FLASH_CALLS; call++)
        flash_fail(&the.medium, call, 0, 0, 0);
}

/* Whether something is about to go wrong. */
static inline int is_armed(void)
{
    int armed = the.medium.armed;

    for (int call = 0; call < FLASH_CALLS; call++)
        armed |= the.medium.faults[call].how;
    return armed;
}

/* Something is about to go wrong, now and then. */
static inline void arm(void)
{
    static const int hows[] = { FLASH_UNDONE, FLASH_DONE, FLASH_HALF };
    static const uint32_t soon[] = { 3, 50, 500 };
    flash *f = &the.medium;

    if (!the.acknowledged || the.harm >= HARM_MAX || is_armed())
        return;
    if (play.fails && one_in(4)) {
        int call = (int)chance(FLASH_CALLS);
        the.reads_fail |= call == FLASH_READ;
        the.fails = the.boot_failed = 1;
        the.harm++;
        flash_fail(f, call, chance(PICK(soon)), PICK(hows), one_in(4));
        play.failures++;
    } else if (play.cuts && one_in(2)) {
        flash_cut(f, chance(PICK(soon)), 0);
    }
}

/* ----------------------------------------------------------------- playing */

/* What takes long in a large table, or with long records, is rare in it. */
static inline int affordable(unsigned often)
{
    return one_in(1 + (the.config.capacity + the.config.response_max / 50u) /
                          often);
}

static inline void any_call(void)
{
    unsigned which = chance(100), key = any_key();

    if (which < 1)       move();
    else if (which < 26) begin(key);
    else if (which < 30) run_whole(key);
    else if (which < 45) complete(key);
    else if (which < 50) release(key);
    else if (which < 55) renew(key);
    else if (which < 60) forget(key);
    else if (which < 67) deliver(key);
    else if (which < 73) tick_on(), device_look(&the, key);
    else if (which < 78)
        device_look_at_response(&the, key, one_in(20) ? SIZE_MAX : chance(60),
                                1 + chance(100));
    else if (which < 80) play.mistakes && one_in(2) ? mistake() : try_old();
    else if (which < 88) maintain(one_in(4) && affordable(20));
    else if (which < 91) affordable(100) ? (void)device_sync(&the) : (void)0;
    else if (which < 93) device_look_at_state(&the);
    else if (which < 94)
        affordable(20) ? device_look_at_pending(&the, chance(3)) : (void)0;
    else if (which < 95) affordable(20) ? device_look_at_all(&the) : (void)0;
    else if (which < 97)
        device_elapse(&the, chance(one_in(5) ? 100000000 : 1000));
    else if (which < 98) one_in(9) ? wear_out(key) : (void)0;
    else if (affordable(300)) restart();
}

/* What is done for some time: other mixtures fill and empty a table. */
enum { FILL, DRAIN, MIX, PAIRS, ANY, PHASES = ANY + 2 };

static inline void call_in(unsigned phase)
{
    unsigned some = chance(100);

    if (phase == FILL && some < 95)
        begin(play.cursor++ % the.model.count);
    else if (phase == DRAIN && some < 80 && play.holding)
        some < 70 ? complete(take_held(4)) : release(take_held(4));
    else if (phase == MIX && some < 50)
        begin(chance(the.model.count));
    else if (phase == MIX && some < 90 && play.holding)
        complete(take_held(play.holding));
    else if (phase == PAIRS && some < 40)
        begin(any_key());
    else if (phase == PAIRS && some < 80 && play.holding)
        some < 70 ? complete(take_held(1)) : release(take_held(1));
    else
        any_call();
}

/* Another phase, and perhaps another time. */
static inline void next_phase(void)
{
    play.phase = chance(PHASES);
    play.left = 1 + chance(the.config.capacity * 2 + 20);
    if (one_in(3))
        wait_some();
    no_more_failures();
    arm();
}

/* Makes a call, or what has to come before another; in a large table a restart
   takes long. */
static inline void play_one(void)
{
    if (the.medium.off || (the.sync_failed && one_in(20))) {
        restart();
        arm();
    } else if (the.model.crowded && the.config.durability == IDEM_BATCH) {
        device_sync(&the);
        the.model.crowded = 0;
    } else if (!play.left--) {
        next_phase();
    } else {
        if (one_in(20 + the.config.capacity / 10 +
                   the.config.response_max / 100))
            arm();
        call_in(play.phase);
        if (play.idle && !the.medium.off && !the.lost)
            maintain(1);
    }
}

/* So many calls; what is lost is no fault of the table's if reading fails for
   long, and nothing is known from then on. */
static inline void play_calls(unsigned long count)
{
    play.phase = FILL;
    play.left = play.cursor = play.holding = play.last_key = 0;
    for (uint32_t start = the.model.calls;
         the.model.calls - start < count && !the.lost;)
        play_one();
    play.calls += the.model.calls;
    PROMISE(the.medium.off || the.lost || !idem_check(the.table));
}

#endif /* CALLS_H */
