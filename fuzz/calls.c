/* SPDX-License-Identifier: 0BSD */
/*
 * Calls in any order, with ticks that stop, jump and go backwards, restarts,
 * power cuts in any operation, and callbacks that fail; against the model of
 * the promises (tests/model).  A call is a byte, what it is in the lower half
 * and for whom in the upper, and what else is to be said of it.
 */
#include "device.h"

#include "../tests/model/call.h"

enum { CALLS_MAX = 200, LONG_TICK = 0x40000000 };

static void input_begin(input *in, call *c)
{
    unsigned how = input_byte(in);

    c->payload = how % PAYLOADS;
    if (how & 2)
        c->lease = how & 4 ? IDEM_LEASE_NONE : 10;
}

static void input_outcome(input *in, call *c)
{
    unsigned how = input_byte(in);

    c->code = how & 7;
    c->failed = how >> 3 & 1;
    c->owed = how >> 4 & 1;
    c->len = 6 + the.number % (RESPONSE_MAX - 5);
    if (how & 32 && the.config.state_max)
        c->state = STATE_MAX;
}

/* One of the callbacks fails. */
static void input_failure(input *in, call *c)
{
    unsigned what = input_byte(in);

    c->what = '%';
    c->key = what % FLASH_CALLS;
    c->at = what >> 2 & 7;
    c->how = what % 3;
    c->forever = what >> 7;
}

static void input_cut(input *in, call *c, unsigned operations)
{
    c->what = '*';
    c->key = operations;
    c->tear = input_byte(in);
}

/* The tick goes on, stops, jumps or goes backwards. */
static void input_time(input *in, call *c)
{
    static const uint32_t steps[] = { 1, 9, 400, 1000, 4000, 60000,
                                      LONG_TICK, 0x7FFFFFFF };
    unsigned how = input_byte(in);
    uint32_t step = steps[how & 7] + (how >> 4);

    c->ms = how & 8 ? 0 - step : step;
}

/* The next call of an input. */
static call input_call(input *in)
{
    static const char kinds[] = "BBBBCCCRNXDmtGP*";
    unsigned what = input_byte(in), who = what >> 4;
    call c = call_of(kinds[what & 15], who % KEYS);
    int odd = who & 1;

    switch (c.what) {
    case 'B': input_begin(in, &c); break;
    case 'C':
        c.what = who < 2 * KEYS ? 'C' : 'c';
        input_outcome(in, &c);
        break;
    case 'D':
        c.what = odd ? 'D' : 'Y';
        c.key = (who >> 1) % KEYS;
        break;
    case 'N': c.lease = 2000; break;
    case 't':
        if (!odd) {
            input_time(in, &c);
        } else {
            c.what = 'E';
            c.n = input_word(in);
            c.n >>= input_byte(in) & 31;
        }
        break;
    case '*': odd ? input_failure(in, &c) : input_cut(in, &c, who >> 1); break;
    }
    return c;
}

static void run(input *in)
{
    unsigned calls = 0;

    if (!choose_device(in))
        return;
    device_open(&the);
    // What is lost is no fault of the table's if reading fails for long.
    while (in->left && calls++ < CALLS_MAX && !the.lost) {
        call c = input_call(in);
        call_make(&the, &c);
        if (the.medium.off && !the.lost)
            call_line(&the, "P ?");
    }
    PROMISE(the.lost || !idem_check(the.table));
    device_end(&the);
}
