/* SPDX-License-Identifier: 0BSD */
/*
 * A device (device.h) and calls (call.h) that the bytes of an input (input.h)
 * choose.  A call is a byte, what it is in the lower half and for
 * whom in the upper, and what else is to be said of it.
 */
#ifndef BYTES_H
#define BYTES_H

#define IDEM_STATIC
#define IDEM_IMPLEMENTATION
#include "idem.h"

#include "input.h"

#define OPERATIONS_MAX 20000            // a call without end is no time-out
#include "call.h"

enum { KEY_MAX = 4, RESPONSE_MAX = 12, STATE_MAX = 4, CAPACITY_MAX = 5 };
enum { KEYS_LEAST = 6, KEYS = 13, PAYLOADS = 2, SECTORS_MAX = 20 };

enum { LIFE_BYTES = 400 };
enum { LONG_TICK = 0x40000000 };

static const medium geometries[] = {
    { "", FLASH_NOR,     0,              1,  384,  0xFF },
    { "", FLASH_NOR,     0,              8,  512,  0xFF },
    { "", FLASH_NOR,     SPLIT | VERIFY, 4,  512,  0x00 },
    { "", FLASH_NOR,     SPLIT,          16, 768,  0xFF },
    { "", FLASH_NOR,     VERIFY,         32, 1024, 0xFF },
    { "", FLASH_ECC,     0,              8,  512,  0xFF },
    { "", FLASH_INPLACE, 0,              1,  384,  0xFF },
    { "", FLASH_INPLACE, CACHE | VERIFY, 4,  512,  0x00 },
};

static device the;
static known keys[KEYS];

/* Senders, of which without eviction some may find no entry: every second one
   numbers its commands, or all do beside a key. */
static void choose_senders(input *in)
{
    unsigned how = input_byte(in), numbers = input_byte(in);

    the.scopes = 2 + how % 3;
    the.config.senders = 1 + (how >> 2) % 4;
    if (the.config.full == IDEM_EVICT_OLDEST &&
        the.config.senders < the.scopes)
        the.config.senders = the.scopes;
    the.config.quota = how >> 4 & 3 ? 1 + (how >> 4 & 3) : 0;
    the.config.capacity += (how >> 6) * 4;
    the.config.key_max = (uint16_t)(7 + the.scopes);
    the.per_epoch = 2 + (numbers & 3);
    the.most_number = numbers >> 3 & 1;
    the.keys = KEYS_LEAST + (numbers >> 5);
}

static void choose_config(input *in)
{
    idem_config *config = &the.config;
    unsigned modes = input_byte(in);

    config->capacity = 1 + input_below(in, CAPACITY_MAX);
    config->key_max = KEY_MAX;
    config->response_max = RESPONSE_MAX;
    config->state_max = modes & 1 ? STATE_MAX : 0;
    config->volatile_claims = (modes & 6) == 6;
    config->durability = modes & 8 ? IDEM_BATCH : IDEM_EACH;
    config->full = modes & 16 ? IDEM_EVICT_OLDEST : IDEM_REJECT;
    if (modes & 32)
        choose_senders(in);
    config->retention_ms = modes & 64 ? 5000 : 0;
    config->lease_ms = 1000;
    the.more = modes & 128 ? 256 : 0;
}

// The life that these bytes are, if they are by chance.
static uint32_t life;
static int is_life;

static void print_device(void)
{
    device_print(&the);
    if (is_life)
        printf("life %u: IDEM_SEED=%u runs it alone\n", life, life);
}

/* Makes a blank device, with as many sectors as it takes, or one more; false if
   there is none of what the input chose. */
static int choose_device(input *in)
{
    const medium *m = &geometries[input_below(in, COUNT(geometries))];
    unsigned more = input_below(in, 2);

    device_reset(&the);
    device_plug(&the, m);
    the.scopes = 2;
    the.keys = KEYS_LEAST;
    choose_config(in);
    the.polls = 1;
    the.medium.draws = 2;
    the.storage.sector_count = device_sectors(&the) + more;
    if (!device_sectors(&the) || the.storage.sector_count > SECTORS_MAX)
        return 0;
    device_make(&the, keys, KEYS);
    print_more = print_device;
    the.now = input_word(in);
    return 1;
}

static void input_begin(input *in, call *c)
{
    static const uint32_t retentions[] = { 0, 0, 1500, 100000 };
    unsigned how = input_byte(in);

    c->payload = how % PAYLOADS;
    if (how & 2)
        c->lease = how & 4 ? IDEM_LEASE_NONE : 10;
    c->retention = retentions[how >> 3 & 3];
}

static void input_outcome(input *in, call *c)
{
    unsigned how = input_byte(in);

    c->code = how & 7;
    c->failed = how >> 3 & 1;
    c->confirm = how >> 4 & 1;
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

    c->what = WAIT;
    c->key = how & 8 ? 0 - step : step;
}

/* The next call of an input. */
static call input_call(input *in)
{
    static const char kinds[] = "BBBBCCCRNXDmtGP*";
    unsigned what = input_byte(in), who = what >> 4;
    call c = call_of(kinds[what & 15], who % the.model.count);
    int odd = who & 1;

    switch (c.what) {
    case 'B': input_begin(in, &c); break;
    case 'C':
        c.what = who < 2 * KEYS_LEAST ? 'C' : 'c';
        input_outcome(in, &c);
        break;
    case 'D':
        c.what = odd ? 'D' : 'Y';
        c.key = (who >> 1) % the.model.count;
        break;
    case 'N': c.lease = 2000; break;
    case 'X':
        if (who >= 2 * KEYS_LEAST)
            c.what = 'n';
        break;
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

/* The calls of an input, at most so many.  What is lost is no fault of the
   table's if reading fails for long. */
static void play_input(input *in, unsigned most,
                       int (*make)(device *, const call *))
{
    while (in->left && most-- && !the.lost) {
        call c = input_call(in);
        make(&the, &c);
        if (the.medium.off && !the.lost)
            call_line(&the, "P ?");
    }
}

/* Bytes by chance: what needs many steps, each of which shows a fuzzer nothing
   new. */
static inline void live(void)
{
    static uint8_t bytes[LIFE_BYTES];
    uint32_t chance = life * UINT32_C(0x9E3779B1);

    for (unsigned i = 0; i < LIFE_BYTES; i++) {
        chance = flash_mix(chance + 1);
        bytes[i] = (uint8_t)(chance >> 13);
    }
    is_life = 1;
    run_bytes(bytes, LIFE_BYTES);
    life++;
}

#endif /* BYTES_H */
