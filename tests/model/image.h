/* SPDX-License-Identifier: 0BSD */
/*
 * Any bytes as a journal's image: opened, looked at, written to, opened again.
 *
 * A table wrote the image; then the input damages it, or forges it: it changes
 * bits in headers and records and corrects their checks, for otherwise nearly
 * all would be skipped.  A damaged image never gives a response to another key
 * or payload, and later calls are still there after the next opening.  With
 * both, every call ends in a bounded number of steps, and every invariant
 * holds.
 */
#ifndef IMAGE_H
#define IMAGE_H

#include "small.h"

enum { CALLS_MAX = 80, LIFE_MAX = 40 };
enum { WRITES = 64, WRITE_MAX = 256 };  // that are known, and bytes of each
enum { OUTCOMES = CALLS_MAX + LIFE_MAX + 1 };

static int forged;                      // records may be of the input's making

// What was completed, by number: an outcome, and what it is of.
static struct { unsigned key; version v; } outcomes[OUTCOMES];

// By key: the fingerprint of its latest claim; and what is known of it by the
// calls since the damage.
static uint64_t fingerprints[KEYS_MAX];
static struct { int claimed, lasting, finished; } since[KEYS_MAX];

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

    device_tear(arg, f, op);
    if (op->call != FLASH_PROG || op->len > WRITE_MAX)
        return;
    w->at = op->at;
    w->len = op->len;
    w->sequence = inside_sequence(the.table);
    writes_count++;
}

/* One of the latest. */
static const written *some_write(void)
{
    unsigned count = writes_count < WRITES ? writes_count : WRITES;

    return count ? &writes[chance(count)] : NULL;
}

/* Writes something again in its own place or another's, with some bits changed
   and a check that is right.  After it are less bytes than a granule that the
   check is not of. */
static void forge(void)
{
    flash *f = &the.medium;
    const written *from = some_write(), *to = some_write();
    unsigned count = chance(5);
    uint8_t was[WRITE_MAX], is[WRITE_MAX];
    uint32_t len;

    if (!from || from->at % f->sector_size == 0)
        to = from;
    if (!to || to->at % f->sector_size + from->len > f->sector_size)
        return;
    len = from->len - chance(f->prog_size);
    memcpy(was, f->bytes + from->at, from->len);
    memcpy(is, was, from->len);
    for (; count > 0; count--) {
        unsigned at = chance(len);
        is[at] ^= (uint8_t)chance(256);
    }
    inside_sign(the.table, was, from->sequence, from->at % f->sector_size,
                is, to->sequence, to->at % f->sector_size, len);
    trace("forge %u bytes of %u at %u\n", (unsigned)len, (unsigned)from->at,
          (unsigned)to->at);
    flash_load(f, to->at, is, from->len);
}

/* Copies a piece to where it does not belong. */
static void copy(void)
{
    flash *f = &the.medium;
    uint32_t from = chance(f->size), to = chance(f->size);
    uint32_t len = chance(256), end = from < to ? to : from;
    uint8_t bytes[256];

    if (len > f->size - end)
        len = f->size - end;
    memcpy(bytes, f->bytes + from, len);
    flash_load(f, to, bytes, len);
}

/* Moves all to a higher address, or to the next one, as where a partition has
   another start. */
static void move(void)
{
    flash *f = &the.medium;
    uint32_t by = one_in(2) ? f->sector_size * (1 + chance(3))
                            : f->prog_size * (1 + chance(64));
    uint8_t *was = (uint8_t *)medium_allocate(f->size);

    by = by < f->size ? by : 0;
    memcpy(was, f->bytes, f->size);
    flash_fill(f, 0, by, f->erased);
    flash_load(f, by, was, f->size - by);
    free(was);
    trace("move by %u bytes\n", (unsigned)by);
}

/* What random damage does. */
static void damage(void)
{
    flash *f = &the.medium;
    unsigned what = chance(256);
    uint32_t at = chance(f->size), len = chance(256) + 1u;

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
static int scribble(void)
{
    unsigned what = chance(8);

    if (what == 7 || chance_is_over())
        return 0;
    if (what < 2)
        damage();
    else if (what == 2)
        one_in(4) ? move() : copy();
    else {
        forged = 1;
        forge();
    }
    return 1;
}

/* A smaller table has to do with what a larger one has written. */
static void shrink(void)
{
    forged = 1;
    the.config.capacity = 1 + chance(the.config.capacity);
    the.config.key_max =
        (uint16_t)(the.scopes + chance(KEY_MAX - 1));
    the.config.response_max = (uint16_t)chance(RESPONSE_MAX + 1);
    the.config.state_max = (uint16_t)(the.config.state_max / 2);
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

/* Looks at all there is, in every way. */
static void look(void)
{
    uint8_t id[ID_MAX], bytes[RESPONSE_MAX];
    idem_info info = { .id = id, .id_size = sizeof id };
    unsigned count = 0;
    int result;

    while ((result = idem_next(the.table, &info, the.now)) !=
           IDEM_E_NOT_FOUND) {
        size_t len = sizeof bytes;
        PROMISE(result == IDEM_OK || forged);
        PROMISE(++count <= the.config.capacity);
        PROMISE(forged || device_named(&the, &info) < the.model.count);
        if (info.status == IDEM_IN_PROGRESS)
            continue;
        result = idem_response(the.table, bytes, &len, &info.claim, 0);
        PROMISE(result == IDEM_OK || forged);
        PROMISE(result != IDEM_OK || len == info.response_len);
    }
    memset(&info, 0, sizeof info);
    count = 0;
    while (count <= the.table->pending &&
           idem_pending(the.table, &info, the.now) == IDEM_OK)
        count++;
    PROMISE(forged || count <= the.table->pending);
    check_table();
}

/* What was replayed is an outcome of this key and payload. */
static int is_own(unsigned key)
{
    for (uint32_t n = 1; n <= the.number; n++)
        if (outcomes[n].key == key &&
            outcomes[n].v.fingerprint == the.call.fingerprint &&
            version_has_reply(&outcomes[n].v, &the.call))
            return 1;
    return 0;
}

/* True if an outcome has more than the table has room for. */
static int is_too_long(const call *c)
{
    return c->len > the.config.response_max ||
           (c->state != NONE && c->state > the.config.state_max);
}

/* What a call and its answer show.  The holder of a number of an older epoch is
   fenced. */
static void note(const call *c, int result)
{
    unsigned key = c->key;

    if (c->what == 'B' && result == IDEM_REPLAY)
        PROMISE(forged || is_own(key));
    if (c->what == 'B' && model_changes(&the.call, result)) {
        since[key].claimed = !the.config.senders && !c->reserve;
        since[key].lasting = !c->retention;
        since[key].finished = 0;
        fingerprints[key] = the.call.fingerprint;
    } else if (c->what == 'C') {
        PROMISE(result == IDEM_OK || forged || !the.damaged ||
                !since[key].claimed || is_too_long(c));
        outcomes[the.number].key = key;
        outcomes[the.number].v = the.call.outcome;
        outcomes[the.number].v.fingerprint = fingerprints[key];
        since[key].finished |= result == IDEM_OK && since[key].lasting;
        since[key].claimed = 0;
    } else if (strchr("RX", c->what) && result == IDEM_OK) {
        since[key].claimed = since[key].finished = 0;
    } else if (c->what == 'n') {
        memset(since, 0, sizeof since);
    }
}

/* A call; when time has passed any holder may be fenced, and any key gone.  Once
   the image is damaged nothing else goes wrong, and what can only
   be seen is looked at. */
static int make_or_look(device *d, const call *c)
{
    int result = IDEM_OK;

    if (c->ms || c->what == 'E')
        memset(since, 0, sizeof since);
    if (d->damaged && strchr("PD*%?s", c->what)) {
        look();
    } else {
        result = call_make(d, c);
        note(c, result);
    }
    if (d->damaged)
        check_table();
    return result;
}

/* ---------------------------------------------------------------------- run */

/* Finds what is known. */
static int open_again(void)
{
    int result = call_restart(&the, 0);

    if (result != IDEM_OK)
        return result;
    look();
    for (unsigned key = 0; key < the.model.count; key++)
        if (since[key].finished && !forged && !the.config.retention_ms &&
            the.config.full == IDEM_REJECT) {
            PROMISE(device_look(&the, key) == IDEM_OK);
            PROMISE(the.shown.status != IDEM_IN_PROGRESS);
        }
    return result;
}

/* Something may not read, or otherwise the next time. */
static int is_unreadable(void)
{
    return the.medium.kind == FLASH_ECC || the.unstable ||
           memchr(the.medium.bad, FLASH_BAD_READ, the.medium.sector_count);
}

/* Opens what the input has left, works with it, and opens it again. */
static void run_image(void)
{
    int result = open_again(), unreadable = is_unreadable();
    uint32_t progs = the.medium.progs;
    const char *words = idem_explain(&the.config);

    // What is written from now on can be read.  What could not be may turn out
    // to be another's, as long as nothing is written.
    memset(the.medium.bad, 0, the.medium.sector_count);
    trace("idem_explain: %s\n", words ? words : "(nothing)");
    PROMISE(unreadable || forged || words || result == IDEM_OK);
    PROMISE(result == IDEM_OK || result == IDEM_E_FORMAT || forged ||
            (result == IDEM_E_STORAGE && unreadable));
    if (result != IDEM_OK)
        return;
    // Where no record is left of the tokens that were granted, they are again.
    for (unsigned key = 0; key < the.model.count; key++)
        if (the.before[key].token > the.table->token)
            memset(&the.before[key], 0, sizeof the.before[key]);
    play_calls(CALLS_MAX);
    PROMISE(idem_sync(the.table) == IDEM_OK || forged);
    unreadable = unreadable && progs == the.medium.progs;
    result = open_again();
    PROMISE(result == IDEM_OK || forged ||
            (result == IDEM_E_FORMAT && unreadable));
}

static void run(input *in)
{
    if (!small_choose(in))
        return;
    forged = 0;
    writes_count = 0;
    memset(since, 0, sizeof since);
    play.make = make_or_look;
    play.kinds = "BBBBCCCRNXDYmEGP";
    device_open(&the);
    the.medium.watch = note_write;
    play_calls(chance(LIFE_MAX));
    if (the.config.durability == IDEM_BATCH && !the.lost)
        idem_sync(the.table);
    while (scribble())
        ;
    if (one_in(2))
        shrink();
    the.damaged = JUDGED;
    memset(since, 0, sizeof since);
    run_image();
    device_end(&the);
}

#endif /* IMAGE_H */
