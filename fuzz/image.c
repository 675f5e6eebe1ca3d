/* SPDX-License-Identifier: 0BSD */
/*
 * Any bytes as a journal's image: opened, looked at, written to, opened again.
 *
 * The image is what a table has written, then damaged by the input; or forged,
 * with bits changed in headers and records whose check is right again: without,
 * nearly all of it would be passed over.  In the first case no response is ever
 * given to another key or payload, for each says whose it is; and what is done
 * afterwards is still there after the next opening.  Always: every call ends in
 * a bounded number of steps, and every invariant holds.
 */
#include "device.h"

enum { CALLS_MAX = 60, STEPS_MAX = 200 };
enum { WRITES = 64, WRITE_MAX = 256 };  // that are known, and bytes of each

static int forged;                      // records may be of the input's making
static uint32_t number;                 // of the latest response
static uint32_t expected[KEYS];         // of the one that a key has, or 0

/* ------------------------------------------------------------ what is asked */

/* Scope and key of a number, in `id`, and one of two payloads. */
static idem_request request_of(unsigned key, unsigned payload)
{
    static uint8_t id[ID_MAX];
    idem_request rq;

    memset(&rq, 0, sizeof rq);
    device_name(&the, &rq, key, id);
    rq.has_fingerprint = 1;
    rq.fingerprint = payload;
    the.operations = 0;
    return rq;
}

/* A response says whose it is: key, payload, number. */
static size_t response_of(uint8_t *bytes, unsigned key, unsigned payload,
                          uint32_t of)
{
    bytes[0] = (uint8_t)key;
    bytes[1] = (uint8_t)payload;
    memcpy(bytes + 2, &of, sizeof of);
    memset(bytes + 6, (int)of, RESPONSE_MAX - 6);
    return 6 + of % (RESPONSE_MAX - 5);
}

/* ---------------------------------------------------------------- the calls */

/* A forged record may have a token that was never granted (K4), a forged header
   may need sectors that are gone (J). */
static void check_table(void)
{
    int invariant = idem_check(the.table);

    if (invariant)
        trace("idem_check: %d\n", invariant);
    PROMISE(!invariant || (forged && (invariant == 9 || invariant >= 14)));
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
    int result = idem_begin(the.table, &claim, &reply, &rq, the.now);

    trace("begin key %u payload %u: %s\n", key, payload, idem_text(result));
    check_table();
    if (result == IDEM_REPLAY)
        check_reply(&reply, key, payload);
    if (result != IDEM_EXECUTE && result != IDEM_RECOVER)
        return;
    expected[key] = 0;
    if (how & 8 && !(how & 16)) {
        result = idem_release(the.table, &claim, the.now);
        PROMISE(result == IDEM_OK || forged);
    } else if (!(how & 16)) {
        outcome.response_len = response_of(bytes, key, payload, ++number);
        if (how & 32 && the.config.state_max) {
            outcome.state = state;
            outcome.state_len = sizeof state;
        }
        result = idem_complete(the.table, &claim, &outcome, the.now);
        PROMISE(result == IDEM_OK || forged);
        expected[key] = number;
    }
    check_table();
}

/* Looks at all there is, in every way. */
static void look(void)
{
    uint8_t id[ID_MAX], bytes[RESPONSE_MAX];
    idem_entry entry = { .id = id, .id_size = sizeof id };
    unsigned count = 0;
    int result;

    while ((result = idem_next(the.table, &entry, the.now)) !=
           IDEM_E_NOT_FOUND) {
        size_t len = sizeof bytes;
        PROMISE(result == IDEM_OK || forged);
        PROMISE(++count <= the.config.capacity);
        PROMISE(forged || device_named(&the, &entry) < KEYS);
        if (entry.status == IDEM_IN_PROGRESS)
            continue;
        result = idem_response(the.table, bytes, &len, &entry.claim, 0);
        PROMISE(result == IDEM_OK || forged);
        PROMISE(result != IDEM_OK || len == entry.response_len);
    }
    memset(&entry, 0, sizeof entry);
    count = 0;
    while (count <= the.table->pending &&
           idem_pending(the.table, &entry, the.now) == IDEM_OK)
        count++;
    PROMISE(forged || count <= the.table->pending);
    check_table();
}

static void one_call(input *in)
{
    unsigned what = input_byte(in), who = input_byte(in);
    idem_request rq = request_of(who % KEYS, 0);
    unsigned steps = 0;
    int result;

    the.operations = 0;
    switch (what & 7) {
    default:
        command(who % KEYS, what >> 2);
        break;
    case 3:
        while (idem_maintain(the.table, the.now) == IDEM_MORE)
            PROMISE(++steps < STEPS_MAX);
        break;
    case 4:
        result = idem_forget(the.table, &rq, the.now);
        trace("forget key %u: %s\n", who % KEYS, idem_text(result));
        if (result == IDEM_OK)
            expected[who % KEYS] = 0;
        break;
    case 5:
        look();
        break;
    case 6:
        the.now += who * 97;
        break;
    }
    check_table();
}

static void calls(input *in)
{
    unsigned count = 0;

    while (in->left && count++ < CALLS_MAX)
        one_call(in);
}

/* ---------------------------------------------------------------- the image */

/* What was programmed, each header and record by itself: where, and in the
   sector with which sequence. */
typedef struct written {
    uint32_t at, len, sequence;
} written;

static written writes[WRITES];
static unsigned writes_count;

static void note_write(void *arg, const flash *f, const flash_op *op)
{
    written *w = &writes[writes_count % WRITES];

    (void)arg;
    (void)f;
    if (op->call != FLASH_PROG || op->len > WRITE_MAX)
        return;
    w->at = op->at;
    w->len = op->len;
    w->sequence = inside_sequence(the.table);
    writes_count++;
}

/* One of the latest. */
static const written *some_write(input *in)
{
    unsigned count = writes_count < WRITES ? writes_count : WRITES;

    return count ? &writes[input_below(in, count)] : NULL;
}

/* Writes something again in its own place or another's, with some bits changed
   and a check that is right.  Behind it are less bytes than a granule that the
   check is not of. */
static void forge(input *in)
{
    flash *f = &the.medium;
    const written *from = some_write(in), *to = some_write(in);
    unsigned count = input_below(in, 5);
    uint8_t was[WRITE_MAX], is[WRITE_MAX];
    uint32_t len;

    if (!from || from->at % f->sector_size == 0)
        to = from;
    if (!to || to->at % f->sector_size + from->len > f->sector_size)
        return;
    len = from->len - input_below(in, f->prog_size);
    memcpy(was, f->bytes + from->at, from->len);
    memcpy(is, was, from->len);
    for (; count > 0; count--) {
        unsigned at = input_byte(in) % len;
        is[at] ^= input_byte(in);
    }
    inside_seal(the.table, was, from->sequence, from->at % f->sector_size,
                is, to->sequence, to->at % f->sector_size, len);
    trace("forge %u bytes of %u at %u\n", (unsigned)len, (unsigned)from->at,
          (unsigned)to->at);
    flash_load(f, to->at, is, from->len);
}

/* Copies a piece to where it does not belong. */
static void copy(input *in)
{
    flash *f = &the.medium;
    uint32_t from = input_word(in) % f->size, to = input_word(in) % f->size;
    uint32_t len = input_byte(in), end = from < to ? to : from;
    uint8_t bytes[256];

    if (len > f->size - end)
        len = f->size - end;
    memcpy(bytes, f->bytes + from, len);
    flash_load(f, to, bytes, len);
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

/* Changes the image; returns whether the input has more to do. */
static int scribble(input *in)
{
    unsigned what = input_byte(in) % 8;

    if (what == 7 || !in->left)
        return 0;
    if (what < 2)
        damage(in);
    else if (what == 2)
        copy(in);
    else {
        forged = 1;
        forge(in);
    }
    return 1;
}

/* A smaller table has to do with what a larger one has written. */
static void shrink(input *in)
{
    forged = 1;
    the.config.capacity = 1 + input_below(in, the.config.capacity);
    the.config.key_max = (uint16_t)(1 + input_below(in, KEY_MAX));
    the.config.response_max = (uint16_t)input_below(in, RESPONSE_MAX + 1);
    the.config.state_max = (uint16_t)(the.config.state_max / 2);
}

/* ---------------------------------------------------------------------- run */

static int open_image(void)
{
    memset(the.memory, 0xA5, the.memory_size);
    the.operations = 0;
    the.erasing = 0;
    return idem_open(the.table, &the.config, the.memory, the.memory_size,
                     the.now);
}

/* Finds what is known. */
static int open_again(void)
{
    unsigned key;
    int result;

    result = open_image();
    trace("open: %s, lost %u\n", idem_text(result),
          (unsigned)the.table->stats.lost);
    if (result != IDEM_OK)
        return result;
    check_table();
    look();
    for (key = 0; key < KEYS; key++) {
        idem_entry entry = { .id = NULL };
        idem_request rq = request_of(key, 0);
        if (forged || !expected[key] || the.config.full == IDEM_EVICT_OLDEST ||
            the.config.retention_ms)
            continue;
        PROMISE(idem_find(the.table, &entry, &rq, the.now) == IDEM_OK);
        PROMISE(entry.status != IDEM_IN_PROGRESS);
    }
    return result;
}

static int is_unreadable(void)
{
    return the.medium.kind == FLASH_ECC ||
           memchr(the.medium.bad, FLASH_BAD_READ, the.medium.sector_count);
}

/* Whatever a table is left with by another life. */
static void live(input *in)
{
    unsigned left = input_byte(in) % 32;

    PROMISE(open_image() == IDEM_OK);
    the.medium.watch = note_write;
    for (; left > 0 && in->left; left--)
        one_call(in);
    if (the.config.durability == IDEM_BATCH)
        idem_sync(the.table);
    the.medium.watch = NULL;
}

static void run_image(input *in)
{
    unsigned unreadable;
    uint32_t progs;
    int result;

    forged = 0;
    number = writes_count = 0;
    memset(expected, 0, sizeof expected);
    live(in);
    while (scribble(in))
        ;
    if (input_byte(in) & 1)
        shrink(in);
    memset(expected, 0, sizeof expected);
    result = open_again();
    unreadable = is_unreadable();
    // What is written from now on can be read.  What could not be may turn out
    // to be another's, as long as nothing is written.
    memset(the.medium.bad, 0, the.medium.sector_count);
    progs = the.medium.progs;
    PROMISE(result == IDEM_OK || result == IDEM_E_FORMAT || forged ||
            (result == IDEM_E_STORAGE && unreadable));
    if (result != IDEM_OK)
        return;
    calls(in);
    result = idem_sync(the.table);
    PROMISE(result == IDEM_OK || forged);
    unreadable = unreadable && progs == the.medium.progs;
    result = open_again();
    PROMISE(result == IDEM_OK || forged ||
            (result == IDEM_E_FORMAT && unreadable));
}

static void run(input *in)
{
    if (!choose_device(in))
        return;
    run_image(in);
    device_end(&the);
}
