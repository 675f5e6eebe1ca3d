/* SPDX-License-Identifier: 0BSD */
/*
 * Random workloads: calls of every kind (call.h) on a device, in phases that
 * fill and empty its table, with a tick that stops, jumps and goes backwards,
 * restarts, power cuts and failing callbacks.  A test makes the device, sets
 * the parameters of its workload, and plays.  A seed chooses the calls, the
 * same each time, or a fuzzer's bytes do.
 */
#ifndef CHANCE_H
#define CHANCE_H

#include "call.h"

#define PICK(array) ((array)[chance((uint32_t)COUNT(array))])

#ifndef KEYS_MAX
#define KEYS_MAX 1000
#endif

/* Cuts, and boots in which a callback fails, in a row without a call that has
   written.  The manual has what three may do (>>recovery). */
enum { HARM_MAX = 2 };

static device the;
static known keys[KEYS_MAX];

static struct {
    // What the workload is like.
    int      cuts, fails;           // the power goes; callbacks fail
    int      many_retentions;       // requests ask for many
    unsigned strange;               // one tick in this many is; 0: none
    int      mistakes;              // calls that are refused as they are
    int      idle;                  // idle work is done after each call
    int      tight;                 // at any time, and soon
    int      calm;                  // time passes, and boots end as they may;
                                    // 2: up to weeks
    const char *kinds;              // of calls, if not the default ones
    int      (*make)(device *, const call *);   // call_make, if not another
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

static inline void make(char what, uint32_t key);
static inline int make_call(call c);

/* ------------------------------------------------------------------ chance */

static uint64_t chance_state;

static inline void chance_start(uint32_t seed)
{
    chance_state = spread(seed + UINT64_C(1));
}

// Bytes that choose instead, a fuzzer's; after their end zeros.
static const uint8_t *chance_bytes;
static size_t chance_left;

static inline uint32_t chance_take(unsigned bytes)
{
    uint32_t number = 0;

    for (; bytes > 0 && chance_left; bytes--, chance_left--)
        number = number << 8 | *chance_bytes++;
    return number;
}

static inline int chance_is_over(void)
{
    return chance_bytes && !chance_left;
}

/* xorshift64*, of Marsaglia and Vigna. */
static inline uint32_t chance_word(void)
{
    if (chance_bytes)
        return chance_take(4);
    chance_state ^= chance_state >> 12;
    chance_state ^= chance_state << 25;
    chance_state ^= chance_state >> 27;
    return (uint32_t)(chance_state * UINT64_C(2685821657736338717) >> 32);
}

/* One of the numbers below `count`; 0 if there are none. */
static inline uint32_t chance(uint32_t count)
{
    if (count < 2)
        return 0;
    return (chance_bytes && count <= 256 ? chance_take(1) : chance_word()) %
           count;
}

/* Zeros mean no. */
static inline int one_in(uint32_t count)
{
    return chance(count) + 1 == count;
}

/* The device is made anew; then these modes, by chance, and more to come. */
static inline void choose_modes(const char *line)
{
    device_reset(&the);
    the.pick = chance;
    call_modes(&the, line);
}

/* Short and long ones equally often, below 2^bits. */
static inline uint32_t chance_long(unsigned bits)
{
    return chance_word() >> (32 - 1 - chance(bits));
}

/* -------------------------------------------------------------------- time */

/* When the next key, of some, expires, or its lease ends; or FOR_EVER. */
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

/* Time until the next call. */
static inline uint32_t some_time(void)
{
    unsigned kind = chance(16);
    uint64_t end;

    if (play.strange && one_in(play.strange))
        return strange_step();
    if (play.strange && kind < 2) {
        end = next_end();
        if (end != FOR_EVER && end - the.model.clock < TICK_HALF)
            return (uint32_t)(end - the.model.clock) + chance(3) - 1;
        return 0;
    }
    return kind < 4 ? chance(5) : 0;
}

/* A call after `ms` more. */
static inline void pass_time(uint32_t ms)
{
    call c = call_of('H', 0);

    c.ms = ms;
    make_call(c);
}

/* A tick goes back, and up again: that is no time. */
static inline void jitter_tick(void)
{
    static const uint32_t farthest[] = { TICK_JITTER, TICK_HALF };
    uint32_t back = PICK(farthest);

    back = one_in(3) ? back : chance(back);
    if (the.model.tick != the.now)
        pass_time(0);
    pass_time(0u - back);
    pass_time(back);
}

/* A call after a time of any length. */
static inline void wait_some(void)
{
    static const uint32_t longest[] = { 1000, 1000, 100000, 90000000,
                                        0x7FFFFFFF };

    if (one_in(10))
        jitter_tick();
    pass_time(chance(PICK(longest)));
}

/* ------------------------------------------------------------------- calls */

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

/* Where it matters: around the time until which outcomes were evicted. */
static inline uint32_t choose_age(uint32_t retention)
{
    uint64_t since = the.model.clock - the.model.opened + chance(2);
    uint64_t until = the.model.evicted_until[chance(the.scopes)];
    uint64_t age = the.model.clock - until + chance(3) - 1;

    // A plain key that is too old saves the floor of its sender's numbers.
    if (the.most_number || !one_in(20))
        return 0;
    switch (chance(5)) {
    case 0: return 1 + chance(5000);
    case 1: return 1 + chance(200000);
    case 2: return (retention ? retention : model_retention(&the.model)) -
                   chance(2);
    case 3: return age < UINT32_MAX ? (uint32_t)age : 0;
    default: return since < UINT32_MAX ? (uint32_t)since : 0;
    }
}

/* Short ones more often, if long ones are allowed. */
static inline uint16_t some_len(uint16_t most)
{
    if (most > 2000 && !one_in(4))
        most = 40;
    return (uint16_t)(one_in(2) ? most : chance(most + 1u));
}

/* True if the key's claim of this boot is current. */
static inline int is_claimed(unsigned key)
{
    const version *v = model_only(&keys[key]);

    return v && v->status == IDEM_IN_PROGRESS && v->claim.token;
}

/* What a begin asks for. */
static inline void choose_request(call *c)
{
    c->payload = one_in(30) ? 1 + chance(64) : 0;
    c->lease = choose_lease();
    c->retention = choose_retention();
    c->age = choose_age(c->retention);
    c->reserve = one_in(3) ? chance(the.config.response_max + 1u) : 0;
    c->buffer = one_in(8) ? chance(12) : LEN_MAX;
}

/* Now and then longer than reserved, or with more state than there may be. */
static inline void choose_outcome(call *c, uint32_t reserved)
{
    c->len = some_len((uint16_t)reserved);
    c->code = one_in(2) ? 0 : chance_word();
    c->confirm = one_in(3);
    c->failed = one_in(4);
    if (the.config.state_max && one_in(3))
        c->state = some_len(the.config.state_max);
    if (one_in(30) && reserved < LEN_MAX)
        c->len = reserved + 1u;
    else if (one_in(30) && c->state != NONE && the.config.state_max < LEN_MAX)
        c->state = the.config.state_max + 1u;
}

/* A call of this kind on a key, and its other fields. */
static inline call choose_call(char what, uint32_t key)
{
    call c = call_of(what, key);

    switch (what) {
    case 'B': choose_request(&c); break;
    case 'C':
        choose_outcome(&c, is_claimed(key) ? keys[key].now.of[0].len
                                           : the.config.response_max);
        break;
    case 'U':
        choose_request(&c);
        choose_outcome(&c, c.reserve ? c.reserve : the.config.response_max);
        c.back = one_in(6);
        c.keep = one_in(8);
        c.takes = one_in(4) ? chance(200000) : chance(3);
        break;
    case 'N':
        c.lease = choose_lease();
        c.lease += c.lease ? 0 : 1000;
        break;
    case 'g':
        c.at = one_in(20) ? AUTO : chance(60);
        c.most = 1 + chance(100);
        break;
    case 'E': c.n = chance(one_in(5) ? 100000000 : 1000); break;
    case 'P': c.n = chance_word(); break;
    case 'f': c.key = chance(OLD_CLAIMS); c.how = chance(12); break;
    case 'j': c.how = chance(12); c.n = chance(3); break;
    case 'o': c.n = chance(3); break;
    case 'e': c.n = chance(18); break;
    }
    if (strchr("BCURNXfjG", what))
        c.ms = some_time();
    return c;
}

/* Makes a call, and what follows from it. */
static inline int make_call(call c)
{
    int result;

    if (strchr("BCURN", c.what))
        play.last_key = c.key;
    result = play.make ? play.make(&the, &c) : call_make(&the, &c);
    if (c.what == 'B' && result >= IDEM_EXECUTE && result <= IDEM_EXHAUSTED)
        play.answered[result]++;
    if (c.what == 'B' && model_grants(result) && play.holding < KEYS_MAX)
        play.held[play.holding++] = c.key;
    if (play.idle && c.what != 'M' && !the.medium.off && !the.lost)
        make('M', 0);
    return result;
}

/* .. of this kind on a key, if it may do something. */
static inline void make(char what, uint32_t key)
{
    if (!strchr("CRNj", what) || the.damaged || is_claimed(key))
        make_call(choose_call(what, key));
}

/* Each attempt is interrupted, until none is allowed any more. */
static inline void wear_out(unsigned key)
{
    for (unsigned n = 0; n < 256 && !the.medium.off && !the.lost; n++) {
        int result = make_call(choose_call('B', key));
        uint32_t left = is_claimed(key)
                            ? version_left(&the.model, &keys[key].now.of[0])
                            : IDEM_LEASE_NONE;
        if ((result != IDEM_EXECUTE && result != IDEM_RECOVER) ||
            left == IDEM_LEASE_NONE)
            return;
        pass_time(left);
    }
}

/* ---------------------------------------------------------------- restarts */

/* Then what was interrupted is asked for again, or not. */
static inline void restart(void)
{
    unsigned interrupted = play.last_key, count = the.model.count;

    play.restarts++;
    play.cut += the.medium.off != 0;
    play.holding = 0;
    make('P', 0);
    if (count <= 20 && !the.lost)
        make('?', 0);
    for (unsigned i = 0; count > 20 && i < 20 && !the.lost; i++)
        make('G', chance(count));
    if (the.lost)
        return;
    make('s', 0);
    // What ends now, ends before the first record of the boot.
    if (one_in(4)) {
        pass_time(chance(3000));
        make('M', 0);
    }
    if (one_in(2))
        make('B', interrupted);
}

/* True if something is about to go wrong. */
static inline int is_armed(void)
{
    int armed = the.medium.armed;

    for (int kind = 0; kind < FLASH_CALLS; kind++)
        armed |= the.medium.faults[kind].how;
    return armed;
}

/* Something is about to go wrong, now and then. */
static inline void arm(void)
{
    static const uint32_t soon[] = { 3, 50, 500 };
    unsigned within = play.tight ? 8 : PICK(soon);
    call c;

    if (!play.tight &&
        (!the.acknowledged || the.harm >= HARM_MAX || is_armed()))
        return;
    if (play.fails && one_in(4)) {
        c = call_of('%', chance(FLASH_CALLS));
        c.at = chance(within);
        c.how = chance(3);
        c.forever = one_in(4);
        the.harm++;
        play.failures++;
    } else if (play.cuts && one_in(2)) {
        c = call_of('*', chance(within));
        c.tear = chance_word();
    } else {
        return;
    }
    make_call(c);
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
    // Each as often as its letter is there; _ is wear_out.
    static const char kinds_by_default[] =
        "BBBBBBBBBBBBBBBBBBBBBBBBBUUUUCCCCCCCCCCCCCCCRRRRRNNNNNXXXXXddddddd"
        "GGGGGGgggggefmmmmmmMMYYYssoaEE_PPv";
    static const char slow_calls[] = "MoaYP";
    static const unsigned often[] = { 20, 20, 20, 100, 300 };
    const char *kinds = play.kinds ? play.kinds : kinds_by_default;
    char what = kinds[chance((uint32_t)strlen(kinds))];
    unsigned key = any_key();
    const char *slow = strchr(slow_calls, what);

    if (slow && !affordable(often[slow - slow_calls]))
        return;
    if (what == 'e' && !play.mistakes)
        what = 'f';
    if (what == 'X' && one_in(6))
        what = 'n';
    if (what == 'f' && one_in(4) && is_claimed(key))
        what = 'j';
    if (what == 'P')
        restart();
    else if (what != '_')
        make(what, key);
    else if (one_in(9))
        wear_out(key);
}

/* What is done for some time: other mixtures fill and empty a table. */
enum { FILL, DRAIN, MIX, PAIRS, ANY, PHASES = ANY + 2 };

static inline void call_in(unsigned phase)
{
    unsigned some = chance(100);
    char ends = some < 70 || phase == MIX ? 'C' : 'R';

    if (phase == FILL && some < 95)
        make('B', play.cursor++ % the.model.count);
    else if (phase == DRAIN && some < 80 && play.holding)
        make(ends, take_held(4));
    else if (phase == MIX && some < 50)
        make('B', chance(the.model.count));
    else if (phase == MIX && some < 90 && play.holding)
        make(ends, take_held(play.holding));
    else if (phase == PAIRS && some < 40)
        make('B', any_key());
    else if (phase == PAIRS && some < 80 && play.holding)
        make(ends, take_held(1));
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
    make('w', 0);
    arm();
}

/* So that keys expire between two calls, two records, two boots. */
static inline void let_time_pass(void)
{
    static const uint32_t longest[] = { 3000, 3000, 10000, 200000 };
    static const uint32_t silent[] = { 10000, 200000, 1u << 28, TICK_HALF };

    if (!the.lost && one_in(8))
        pass_time(chance(play.calm > 1 ? PICK(silent) : PICK(longest)));
    if (!the.lost && one_in(20))
        restart();
}

/* Makes a call, or what has to come before another; in a large table a restart
   takes long. */
static inline void play_one(void)
{
    if (the.medium.off || (the.sync_failed && one_in(20))) {
        restart();
        arm();
    } else if (the.model.nearly_full && the.config.durability == IDEM_BATCH) {
        make('Y', 0);
        the.model.nearly_full = 0;
    } else if (!play.left--) {
        next_phase();
    } else {
        if (one_in(play.tight ? 10 : 20 + the.config.capacity / 10 +
                                     the.config.response_max / 100))
            arm();
        call_in(play.phase);
        if (play.calm)
            let_time_pass();
    }
}

/* `count` calls, or as many as an input has; what is lost is no fault of the
   table's if reading fails for long, and nothing is known from then on. */
static inline void play_calls(unsigned long count)
{
    play.phase = FILL;
    play.left = play.cursor = play.holding = play.last_key = 0;
    for (uint32_t start = the.model.calls, steps = 0;
         (play.tight ? steps++ : the.model.calls - start) < count &&
         !the.lost && !chance_is_over();)
        play_one();
    if (play.tight && the.medium.off && !the.lost)
        restart();
    play.calls += the.model.calls;
    PROMISE(the.medium.off || the.lost || the.damaged == JUDGED ||
            !idem_check(the.table));
}

#endif /* CHANCE_H */
