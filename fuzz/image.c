/* SPDX-License-Identifier: 0BSD */
/*
 * Any bytes as a journal's image: opened, looked at, written to, opened again.
 *
 * The image is what a table has written, then changed by the input; or made by
 * the input, with headers and records whose CRC is right: without, nearly all
 * of it would be passed over.  In the first case no response is ever given to
 * another key or payload, for each says whose it is; and what is completed
 * afterwards is still there after the next opening.  Always: every call ends in
 * a bounded number of steps, and every invariant holds.
 */
#include "device.h"

enum { CALLS_MAX = 60, STEPS_MAX = 200 };

static int forged;                      // records may be of the input's making
static uint32_t number;                 // of the latest response
static uint32_t known[KEYS];            // of the one that a key must have, or 0

/* ---------------------------------------------------------------- the calls */

/* A forged record may have a token that was never granted (K4). */
static void check_device(void)
{
    int invariant = idem_check(&the.table);

    if (invariant)
        trace("idem_check: %d\n", invariant);
    PROMISE(!invariant || (forged && invariant == 9));
    PROMISE(!the.medium.violations_of[FLASH_V_BOUNDS]);
    PROMISE(!the.medium.violations_of[FLASH_V_ALIGN]);
    PROMISE(!the.medium.violations_of[FLASH_V_CROSS]);
}

/* A response that was not forged is one of this key and payload's. */
static void check_reply(const idem_reply *reply, unsigned key,
                        unsigned payload)
{
    uint8_t bytes[RESPONSE_MAX];
    const uint8_t *given = reply->buffer;
    uint32_t given_number;

    PROMISE(reply->response_len <= RESPONSE_MAX);
    if (forged)
        return;
    memcpy(&given_number, given + 2, sizeof given_number);
    PROMISE(reply->response_len ==
            response_of(bytes, key, payload, given_number));
    PROMISE(!memcmp(bytes, given, reply->response_len));
    PROMISE(given_number <= number);
}

/* Asks for a key; if it is to be executed, completes, releases, or neither. */
static void command(unsigned key, unsigned how)
{
    unsigned payload = how & 1;
    uint8_t bytes[RESPONSE_MAX], state[STATE_MAX] = { 1, 2, 3, 4 };
    idem_request rq = request_of(key, payload);
    idem_reply reply = { .buffer = bytes, .buffer_size = sizeof bytes };
    idem_outcome outcome = { .response = bytes, .failed = how >> 1 & 1,
                             .confirm = how >> 2 & 1, .code = (int)how };
    idem_claim claim;
    int result = idem_begin(&the.table, &claim, &reply, &rq, the.now);

    trace("begin key %u payload %u: %s\n", key, payload, idem_text(result));
    check_device();
    if (result == IDEM_REPLAY)
        check_reply(&reply, key, payload);
    if (result != IDEM_EXECUTE && result != IDEM_RECOVER)
        return;
    known[key] = 0;
    if (how & 8 && !(how & 16)) {
        result = idem_release(&the.table, &claim, the.now);
        PROMISE(result == IDEM_OK || forged);
    } else if (!(how & 16)) {
        outcome.response_len = response_of(bytes, key, payload, ++number);
        if (how & 32 && the.config.state_max) {
            outcome.state = state;
            outcome.state_len = sizeof state;
        }
        result = idem_complete(&the.table, &claim, &outcome, the.now);
        PROMISE(result == IDEM_OK || forged);
        known[key] = number;
    }
    check_device();
}

/* Looks at all there is, in every way. */
static void look(void)
{
    uint8_t id[KEY_MAX], bytes[RESPONSE_MAX];
    idem_entry entry = { .id = id, .id_size = sizeof id };
    unsigned count = 0;
    int result;

    while ((result = idem_next(&the.table, &entry, the.now)) !=
           IDEM_E_NOT_FOUND) {
        size_t len = sizeof bytes;
        PROMISE(result == IDEM_OK || forged);
        PROMISE(++count <= the.config.capacity);
        PROMISE(forged || key_of(&entry) < KEYS);
        if (entry.status == IDEM_IN_PROGRESS)
            continue;
        result = idem_response(&the.table, bytes, &len, &entry.claim, 0);
        PROMISE(result == IDEM_OK || forged);
        PROMISE(result != IDEM_OK || len == entry.response_len);
    }
    memset(&entry, 0, sizeof entry);
    count = 0;
    while (count <= the.table.pending &&
           idem_pending(&the.table, &entry, the.now) == IDEM_OK)
        count++;
    PROMISE(forged || count <= the.table.pending);
    check_device();
}

static void one_call(input *in)
{
    unsigned what = input_byte(in), who = input_byte(in);
    idem_request rq = request_of(who % KEYS, 0);
    unsigned steps = 0;
    int result;

    the.used = 0;
    switch (what & 7) {
    default:
        command(who % KEYS, what >> 2);
        break;
    case 3:
        while (idem_maintain(&the.table, the.now) == IDEM_MORE)
            PROMISE(++steps < STEPS_MAX);
        break;
    case 4:
        result = idem_forget(&the.table, &rq, the.now);
        trace("forget key %u: %s\n", who % KEYS, idem_text(result));
        if (result == IDEM_OK)
            known[who % KEYS] = 0;
        break;
    case 5:
        look();
        break;
    case 6:
        the.now += who * 97;
        break;
    }
    check_device();
}

static void calls(input *in)
{
    unsigned count = 0;

    while (in->left && count++ < CALLS_MAX)
        one_call(in);
}

/* ---------------------------------------------------------------- the image */

/* Where the input writes, and whose CRC it is given */
typedef struct pen {
    input *in;
    uint32_t sector, at;                // offset
    uint32_t sequence, check;
} pen;

/* CRC-32C, bit by bit, from the manual. */
static uint32_t crc(uint32_t start, const uint8_t *p, uint32_t len)
{
    unsigned bit;

    for (; len > 0; len--, p++)
        for (start ^= *p, bit = 0; bit < 8; bit++)
            start = start >> 1 ^ (start & 1 ? UINT32_C(0x82F63B78) : 0);
    return start;
}

static void store(uint8_t *p, uint32_t word)
{
    p[0] = (uint8_t)word;
    p[1] = (uint8_t)(word >> 8);
    p[2] = (uint8_t)(word >> 16);
    p[3] = (uint8_t)(word >> 24);
}

/* Writes at the pen, to whole granules, inside the sector. */
static void put(pen *p, const uint8_t *bytes, uint32_t len)
{
    uint32_t size = the.medium.sector_size, granule = the.medium.prog_size;
    uint32_t to = p->sector * size + p->at;

    if (len > size - p->at)
        len = size - p->at;
    flash_load(&the.medium, to, bytes, len);
    p->at += (len + granule - 1) / granule * granule;
    if (p->at >= size)
        p->at = 0;
}

/* A header (>>format), its fields small numbers of the input's. */
static void put_header(pen *p)
{
    uint8_t h[40] = "idem\1";
    unsigned log2 = 0;

    while (the.medium.prog_size >> log2 > 1)
        log2++;
    h[5] = (uint8_t)(IDEM_HASH | log2 << 4);
    store(h + 6, the.medium.sector_size | the.medium.sector_count << 24);
    h[10] = (uint8_t)(the.medium.sector_count >> 8);
    h[11] = (uint8_t)p->check;
    h[12] = (uint8_t)(p->check >> 8);
    h[13] = input_byte(p->in);
    h[14] = input_byte(p->in);
    h[15] = input_byte(p->in);
    p->sequence = input_byte(p->in);
    if (p->sequence > 250)              // near the end of all
        p->sequence -= 256;
    store(h + 16, p->sequence);
    store(h + 20, input_byte(p->in) * 1000u);
    h[26] = (uint8_t)input_below(p->in, the.medium.sector_count);
    h[27] = input_byte(p->in);
    // Two sectors that are not needed, as every writer leaves.
    h[28] = (uint8_t)input_below(p->in, the.medium.sector_count - 2);
    store(h + 30, input_byte(p->in) * 4u);
    store(h + 33, input_byte(p->in) * 4u);
    store(h + 36, crc(UINT32_MAX, h, 36));
    put(p, h, sizeof h);
}

/* A record, of what the input says. */
static void put_record(pen *p)
{
    uint8_t r[100];
    uint32_t len = 0, body = input_byte(p->in) % 64, more;

    r[len++] = input_byte(p->in) | 0x80;
    if (r[0] & 0x10)
        r[len++] = input_byte(p->in);
    more = (uint32_t)input_bytes(p->in, r + len + 1, body);
    r[len++] = (uint8_t)more;
    len += more;
    store(r + len, crc(p->check ^ p->sequence * UINT32_C(0x9E3779B1) ^
                       ~p->at, r, len));
    put(p, r, len + 4);
}

static void put_bytes(pen *p)
{
    uint8_t bytes[64];

    put(p, bytes,
        (uint32_t)input_bytes(p->in, bytes, input_below(p->in, 64)));
}

/* Copies a piece to where it does not belong. */
static void put_copy(pen *p)
{
    uint8_t bytes[256];
    uint32_t from = input_word(p->in) % the.medium.size;
    uint32_t len = input_byte(p->in);

    if (len > the.medium.size - from)
        len = the.medium.size - from;
    memcpy(bytes, the.medium.bytes + from, len);
    put(p, bytes, len);
}

/* What random damage does. */
static void damage(input *in)
{
    flash *f = &the.medium;
    unsigned what = input_byte(in);
    uint32_t at = input_word(in) % f->size, len = input_byte(in) + 1u;

    if (len > f->size - at)
        len = f->size - at;
    trace("damage %u at %u, %u bytes\n", what & 7, (unsigned)at, (unsigned)len);
    switch (what & 7) {
    case 0: case 1: case 2:
        flash_flip(f, at, what >> 3 & 7);
        break;
    case 3: flash_fill(f, at, len, f->erased); break;
    case 4: flash_fill(f, at, len, 0xFF & ~f->erased); break;
    case 5: flash_noise(f, at, len, what); break;
    case 6: f->bad[at / f->sector_size] ^= FLASH_BAD_READ; break;
    default:
        if (f->kind == FLASH_ECC)
            f->marks[at] |= FLASH_TORN;
        f->soft = 1;
    }
}

/* Moves the pen; a sector's sequence is known from its last header. */
static void seek(pen *p)
{
    flash *f = &the.medium;

    p->sector = input_below(p->in, f->sector_count);
    p->at = input_below(p->in, 8) * f->prog_size * 40;
    if (p->at >= f->sector_size)
        p->at = 0;
}

/* Changes the image; returns whether the input has more to do. */
static int scribble(pen *p)
{
    unsigned what = input_byte(p->in) % 8;

    if (what == 7 || !p->in->left)
        return 0;
    trace("scribble %u at %u in sector %u\n", what, (unsigned)p->at,
          (unsigned)p->sector);
    if (!forged || what == 0)
        damage(p->in);
    else if (what == 1)
        seek(p);
    else if (what == 2)
        put_header(p);
    else if (what == 3)
        put_bytes(p);
    else if (what == 4)
        put_copy(p);
    else
        put_record(p);
    return 1;
}

/* ---------------------------------------------------------------------- run */

/* Finds what is known. */
static int open_again(void)
{
    unsigned key;
    int result;

    result = device_open();
    trace("open: %s, lost %u\n", idem_text(result),
          (unsigned)the.table.stats.lost);
    if (result != IDEM_OK)
        return result;
    check_device();
    look();
    for (key = 0; key < KEYS; key++) {
        idem_entry entry = { .id = NULL };
        idem_request rq = request_of(key, 0);
        if (forged || !known[key] || the.config.full == IDEM_EVICT_OLDEST ||
            the.config.retention_ms)
            continue;
        PROMISE(idem_find(&the.table, &entry, &rq, the.now) == IDEM_OK);
        PROMISE(entry.status != IDEM_IN_PROGRESS);
    }
    return result;
}

static void run(input *in)
{
    pen mine = { in, 0, 0, 0, 0 };
    unsigned before;
    int result, unreadable;

    if (!device_make(in))
        return;
    number = 0;
    memset(known, 0, sizeof known);
    forged = input_byte(in) & 1;
    trace("%s\n", forged ? "forged" : "damaged");
    before = input_byte(in) % 32;
    PROMISE(device_open() == IDEM_OK);
    mine.check = the.table.journal->check;
    for (; before > 0 && in->left; before--)
        one_call(in);
    if (the.config.durability == IDEM_BATCH)
        idem_sync(&the.table);
    while (scribble(&mine))
        ;
    memset(known, 0, sizeof known);
    result = open_again();
    // What is written from now on can be read.  What could not be may turn out
    // to be another's, as long as nothing is written.
    unreadable = memchr(the.medium.bad, FLASH_BAD_READ,
                        the.medium.sector_count) != NULL;
    memset(the.medium.bad, 0, the.medium.sector_count);
    PROMISE(result == IDEM_OK || result == IDEM_E_FORMAT);
    if (result != IDEM_OK)
        return;
    calls(in);
    result = idem_sync(&the.table);
    PROMISE(result == IDEM_OK || forged);
    unreadable = unreadable && the.table.journal->blank;
    result = open_again();
    PROMISE(result == IDEM_OK || forged ||
            (result == IDEM_E_FORMAT && unreadable));
}
