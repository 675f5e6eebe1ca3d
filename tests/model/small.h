/* SPDX-License-Identifier: 0BSD */
/*
 * Calls that are random (chance.h), or chosen by a fuzzer's bytes (input.h), on
 * small devices: few keys, which are used again, and a ring that soon wraps.
 */
#ifndef SMALL_H
#define SMALL_H

// Who has included the header, and not IDEM_STATIC, is linked with it.
#if !defined IDEM_H || defined IDEM_STATIC
#define IDEM_STATIC
#define IDEM_IMPLEMENTATION
#include "idem.h"
#endif

#include "input.h"

#define OPERATIONS_MAX 20000            // a call without end is no time-out
#define KEYS_MAX 13
#include "chance.h"

enum { KEY_MAX = 4, RESPONSE_MAX = 12, SECTORS_MAX = 20 };

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

static const char small[] = "capacity=4 key=4 response=12 lease=1000 scopes=2 "
                            "keys=6 polls=1";
static const char kinds[] = "capacity=1-5 state=0/4 batch=0/1 evict=0/1 "
                            "retention=0/5000";
// Some of them may find no entry.
static const char senders[] = "scopes=2-4 senders=1-4 quota=0/2-4 keys=6-13 "
                              "most=2-5 all=0/1";

static uint32_t life;           // its number, if no input chooses

static void print_device(void)
{
    device_print(&the);
    if (!chance_bytes)
        printf("life %u: IDEM_SEED=%u runs it alone\n", life, life);
}

static inline void choose_senders(void)
{
    call_modes(&the, senders);
    the.config.capacity += 4 * chance(4);
    the.config.key_max = (uint16_t)(7 + the.scopes);
}

/* Makes a blank device, with as many sectors as it takes, and `more`; false if
   there is none of what was chosen. */
static int small_make(const medium *m, uint32_t more)
{
    device_plug(&the, m);
    the.medium.draws = 2;
    the.storage.sector_count = device_sectors(&the) + more;
    if (!device_sectors(&the) || the.storage.sector_count > SECTORS_MAX)
        return 0;
    device_make(&the, keys, KEYS_MAX);
    print_more = print_device;
    return 1;
}

/* .. of any kind, on which anything may go wrong at any time: that of an input,
   or of a life. */
static inline int small_choose(const input *in)
{
    if (in && !in->left)
        return 0;
    chance_bytes = in ? in->at : NULL;
    chance_left = in ? in->left : 0;
    chance_start(life);
    choose_modes(small);
    call_modes(&the, kinds);
    if (one_in(2))
        choose_senders();
    the.more = one_in(2) ? 256 : 0;
    the.now = chance_word();
    play.tight = 1;
    play.calm = one_in(3) ? 1 + one_in(4) : 0;
    play.cuts = play.fails = !play.calm;
    play.strange = play.calm ? 0 : 100;
    return small_make(&PICK(geometries), chance(2));
}

#endif /* SMALL_H */
