/* SPDX-License-Identifier: 0BSD */
/*
 * A storage medium in memory that loses power, wears out and lies.  The tests
 * of the journal rely on it.  The four callbacks are those of littlefs.  It
 * knows nothing of idem.h, takes its memory from the caller, needs memcpy and
 * memset, and does the same for the same seed and the same calls.
 *
 * >>medium   FLASH_NOR      a program moves bits away from the erased value
 *                           only; a granule is programmed once between erases
 *            FLASH_ECC      the same; a second program is an error, and so is
 *                           reading a granule that was torn
 *            FLASH_INPLACE  EEPROM, FRAM, file: no erase, old bytes below; with
 *                           `durable` and `stamps` given, a write-back cache: a
 *                           program is durable from the next sync on
 * >>cut      flash_cut(f, n, variant): power goes in the n-th program or erase
 *            (with cut_syncs also sync) from now, which is left torn in one of
 *            f->variants ways.  Then every call fails until flash_boot.
 * >>fault    flash_fail: a callback fails.  f->bad[sector]: a sector does.
 *            flash_flip, flash_load, flash_fill, flash_noise, flash_truncate:
 *            the image is damaged, replaced or truncated between two boots.
 *
 * Every cut of a workload in every variant:
 *
 *     for (n = 0, count = 1; count; n++)
 *         for (v = 0, count = 1; v < count; v++) {
 *             begin anew; flash_cut(&f, n, v); run the workload
 *             count = f.variants;     // 0: there are less than n operations
 *             if (count) { flash_boot(&f); recover; check }
 *         }
 *
 * The same in one run: a `watch` sees each operation before it happens, makes
 * copies with flash_copy and cuts those in it.
 *
 * After a cut or a failure, the granule that was being programmed, and the
 * sector that was being erased, count as programmed, even if they read blank:
 * only an erase that finishes ends that.
 *
 * Unstable bits have three moods: the bytes as they were meant, as they were
 * before, and a mixture.  The mood changes with each boot, or with each read.
 */
#ifndef FLASH_H
#define FLASH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { FLASH_NOR, FLASH_ECC, FLASH_INPLACE };
enum { FLASH_READ, FLASH_PROG, FLASH_ERASE, FLASH_SYNC, FLASH_CALLS };

// What callbacks return.
enum {
    FLASH_OK = 0,
    FLASH_E_OFF = -1,           // no power
    FLASH_E_FAULT = -2,         // as flash_fail or f->bad asked for
    FLASH_E_ECC = -3,           // torn, or programmed a second time
    FLASH_E_MISUSE = -4         // a violation, nothing done
};

// What a caller must not do.  All are counted, in f->violations.
enum {
    FLASH_V_NONE,
    FLASH_V_BOUNDS,             // outside the medium
    FLASH_V_ALIGN,              // part of a granule, or nothing
    FLASH_V_CROSS,              // a program over the end of a sector
    FLASH_V_ERASE,              // a medium that has none
    FLASH_V_TWICE,              // a second program
    FLASH_V_TORN,               // a program of what a cut or failure left
    FLASH_V_VARIANT,            // of the test: there are fewer
    FLASH_V_COUNT
};

// How an interrupted operation is left.  The bracket is how often each kind
// occurs: P in a program of n bytes, E in an erase, D is f->draws.
enum {
    FLASH_NOTHING,              // [P 1, E 1] it had not begun
    FLASH_ALL,                  // [P 1, E 1] done, not reported
    FLASH_PREFIX,               // [P n - 1, E D] the front part done
    FLASH_SUFFIX,               // [P D, E D] the back part done
    FLASH_BUT_ONE,              // [P D] all but one byte: all n with D = n
    FLASH_ONE,                  // [P D] one byte: all n with D = n
    FLASH_BITS,                 // [P D, E D] each bit done or not
    FLASH_BLANK,                // [P 1, not in place] begun, nothing to see
    FLASH_ZERO,                 // [E 1] the opposite of the erased value
    FLASH_NOISE,                // [P D in place: one granule, E D] any bytes
    FLASH_UNSTABLE_BOOT,        // [P D, E D] unstable as one, mood by boot; all
                                // six orders of moods with D = 6
    FLASH_UNSTABLE_READ,        // [P D, E D] the same, mood by read
    FLASH_UNSTABLE_APIECE,      // [P D, E D] each granule its mood, by boot
    FLASH_LOSE_TAIL,            // [unsynced] the first programs and no more
    FLASH_LOSE_SOME,            // [D if unsynced] any of them, any blocks
    FLASH_TORN_KINDS
};

// How a call fails.  HALF: a read, program or erase stops half way; a sync
// fails and no later sync makes durable what it should have (as fsync may).
enum { FLASH_UNDONE = 1, FLASH_DONE, FLASH_HALF, FLASH_SILENT };

// f->torn_noise where granules are programmed one after the other.
enum { FLASH_ONE_TORN = 2 };

// What is wrong with a sector: bits of f->bad[sector].
enum {
    FLASH_BAD_READ = 1,         // reading fails
    FLASH_BAD_PROG = 2,         // programming fails, nothing done
    FLASH_BAD_ERASE = 4,        // erasing fails, nothing done
    FLASH_STUCK_PROG = 8,       // programming does nothing and returns 0
    FLASH_STUCK_ERASE = 16      // erasing does nothing and returns 0
};

// f->marks of a byte: the same in all bytes of a granule.
enum {
    FLASH_PROGRAMMED = 1,
    FLASH_MAYBE_TORN = 2,       // by an operation that was cut or failed
    FLASH_TORN = 4,             // ECC: does not read
    FLASH_BY_READ = 8,          // the mood of its unstable bits
    FLASH_APIECE = 16,
    FLASH_MOOD = 32             // times 0 .. 5: start and step of the moods
};

// A write-back cache loses blocks of this size on its own.
#define FLASH_BLOCK 512u
#define FLASH_DROPPED UINT16_MAX

// Bytes of memory, aligned for uint32_t, that flash_init takes.
#define FLASH_MEMORY(sector_size, sector_count)                                \
    ((3 * (size_t)(sector_size) + 8) * (sector_count))

// One operation: the sector's address and size if it is an erase.
typedef struct flash_op {
    int         call;
    uint32_t    at;
    const void *src;            // NULL but in a program
    uint32_t    len;
} flash_op;

typedef struct flash flash;

struct flash {
    // Set by the caller before flash_init.
    int       kind;
    uint32_t  sector_size;
    uint32_t  sector_count;
    uint32_t  prog_size;        // the granule; divides sector_size
    uint8_t   erased;           // value of an erased byte
    // Set by the caller at any time.
    uint32_t  seed;
    uint32_t  draws;            // variants of each drawn kind; 0 is 1
    int       cut_syncs;        // a sync is an operation to cut, too
    int       torn_noise;       // ECC: a torn granule reads as noise, no error;
                                // FLASH_ONE_TORN: the others are not torn
    void    (*watch)(void *arg, const flash *f, const flash_op *op);
    void     *watch_arg;
    // For reading.
    int       off;              // no power
    uint32_t  size;
    uint32_t  boots, ops, cuts;
    uint32_t  variants;         // of the operation that was cut
    uint32_t  reads, read_bytes, progs, prog_bytes, erases, syncs;
    uint32_t  unsynced;         // programs since the latest sync
    uint32_t  violations, violations_of[FLASH_V_COUNT];
    int       first;            // violation, where, and before which operation
    uint32_t  first_at, first_op;
    uint8_t  *bytes;            // as meant by the latest operation on each
    uint8_t  *unstable;         // bits of them that are unstable
    uint8_t  *marks;
    uint8_t  *bad;              // sectors
    uint32_t *sector_erases;
    // Set by the caller before flash_init, or NULL.
    uint8_t  *read_map;         // size bytes, reads since boot
    uint8_t  *durable;          // size bytes, what a sync made durable
    uint16_t *stamps;           // with it: size entries, the unsynced program
    // Inside.
    int       armed;
    uint32_t  cut_in, cut_variant;
    int       soft;             // some byte may not read as it is in bytes
    struct { int how, forever; uint32_t in; } faults[FLASH_CALLS];
};

/* ------------------------------------- >>basics  chance, memory, violations */

/* The finalizer of MurmurHash3. */
static inline uint32_t flash_mix(uint32_t x)
{
    x = (x ^ x >> 16) * UINT32_C(0x85EBCA6B);
    x = (x ^ x >> 13) * UINT32_C(0xC2B2AE35);
    return x ^ x >> 16;
}

/* Chance, the same for the same seed, x and y. */
static inline uint32_t flash_chance(const flash *f, uint32_t x, uint32_t y)
{
    return flash_mix(flash_mix(flash_mix(f->seed + 1) + x) + y);
}

/* Notes a violation of the caller; returns what to answer. */
static inline int flash_violate(flash *f, int what, uint32_t at)
{
    if (!f->violations++) {
        f->first = what;
        f->first_at = at;
        f->first_op = f->ops;
    }
    f->violations_of[what]++;
    return FLASH_E_MISUSE;
}

/* What the first violation was. */
static inline const char *flash_text(const flash *f)
{
    static const char *const texts[FLASH_V_COUNT] = {
        "no violation",
        "outside the medium",
        "not whole granules",
        "program over the end of a sector",
        "erase of a medium without erase",
        "granule programmed twice",
        "possibly torn granule programmed",
        "no such variant",
    };
    return texts[f->first];
}

/* Forgets how the bytes from `at` came to be: they are stable and durable, and
   count as programmed where they are not blank. */
static inline void flash_settle(flash *f, uint32_t at, uint32_t len)
{
    uint32_t from = at - at % f->prog_size;

    for (uint32_t g = from; g < at + len; g += f->prog_size) {
        uint8_t mark = 0;
        for (uint32_t i = g; i < g + f->prog_size; i++)
            if (f->bytes[i] != f->erased)
                mark = FLASH_PROGRAMMED;
        memset(f->marks + g, mark, f->prog_size);
    }
    memset(f->unstable + at, 0, len);
    if (!f->durable)
        return;
    memcpy(f->durable + at, f->bytes + at, len);
    memset(f->stamps + at, 0, len * sizeof *f->stamps);
}

/* Makes a blank medium of the kind and geometry in *f, everything else in which
   is zero or set by the caller.  Returns 0, or -1 if that cannot be. */
static inline int flash_init(flash *f, void *memory)
{
    if (!f->prog_size || !f->sector_size || f->sector_size % f->prog_size ||
        !f->sector_count)
        return -1;
    if (!f->durable != !f->stamps || (f->durable && f->kind != FLASH_INPLACE))
        return -1;
    f->size = f->sector_size * f->sector_count;
    f->sector_erases = (uint32_t *)memory;
    f->bytes = (uint8_t *)(f->sector_erases + f->sector_count);
    f->unstable = f->bytes + f->size;
    f->marks = f->unstable + f->size;
    f->bad = f->marks + f->size;
    memset(memory, 0, FLASH_MEMORY(f->sector_size, f->sector_count));
    memset(f->bytes, f->erased, f->size);
    flash_settle(f, 0, f->size);
    if (f->read_map)
        memset(f->read_map, 0, f->size);
    return 0;
}

/* Makes `to`, of the same geometry and with memory of its own for the same
   things, what `from` is, but for the watch. */
static inline void flash_copy(flash *to, const flash *from)
{
    flash mine = *to;

    *to = *from;
    to->watch = NULL;
    memcpy(&to->bytes, &mine.bytes,
           offsetof(flash, armed) - offsetof(flash, bytes));
    memcpy(to->sector_erases, from->sector_erases,
           FLASH_MEMORY(from->sector_size, from->sector_count));
    if (to->read_map)
        memcpy(to->read_map, from->read_map, from->size);
    if (!to->durable)
        return;
    memcpy(to->durable, from->durable, from->size);
    memcpy(to->stamps, from->stamps, from->size * sizeof *from->stamps);
}

/* -------------------------------- >>whole  operations that nothing disturbs */

/* What becomes of a byte that is programmed, or erased if there is no src. */
static inline uint8_t flash_meant(const flash *f, uint8_t old,
                                  const uint8_t *src)
{
    if (!src)
        return f->erased;
    if (f->kind == FLASH_INPLACE)
        return *src;
    return f->erased ^ ((old ^ f->erased) | (*src ^ f->erased));
}

/* The number of the latest unsynced program, or of the next. */
static inline uint16_t flash_stamp(flash *f, int next)
{
    f->unsynced += next && f->unsynced < FLASH_DROPPED - 1;
    return (uint16_t)f->unsynced;
}

static inline void flash_put(flash *f, const flash_op *op)
{
    const uint8_t *src = (const uint8_t *)op->src;

    for (uint32_t i = 0; i < op->len; i++) {
        uint32_t at = op->at + i;
        f->bytes[at] = flash_meant(f, f->bytes[at], src + i);
        // What is programmed now is firm.
        f->unstable[at] &= f->kind == FLASH_INPLACE ? 0 : ~(src[i] ^ f->erased);
        f->marks[at] |= FLASH_PROGRAMMED;
        if (f->durable)
            f->stamps[at] = flash_stamp(f, !i);
    }
}

static inline void flash_wipe(flash *f, const flash_op *op)
{
    memset(f->bytes + op->at, f->erased, op->len);
    memset(f->unstable + op->at, 0, op->len);
    memset(f->marks + op->at, 0, op->len);
}

/* The next byte from here on that is not durable, or the size. */
static inline uint32_t flash_next_stamped(const flash *f, uint32_t at)
{
    static const uint16_t none[64];

    while (at < f->size && !f->stamps[at])
        at += at % 64 || f->size - at < 64 ||
              memcmp(f->stamps + at, none, sizeof none) ? 1 : 64;
    return at;
}

/* Makes durable what no failed sync has dropped. */
static inline void flash_flush(flash *f)
{
    uint32_t at = f->unsynced ? flash_next_stamped(f, 0) : f->size;

    for (; at < f->size; at = flash_next_stamped(f, at + 1))
        if (f->stamps[at] != FLASH_DROPPED) {
            f->durable[at] = f->bytes[at];
            f->stamps[at] = 0;
        }
    f->unsynced = 0;
}

/* What is not durable yet will never be, though it reads well until a cut. */
static inline void flash_drop(flash *f)
{
    uint32_t at = f->unsynced ? flash_next_stamped(f, 0) : f->size;

    for (; at < f->size; at = flash_next_stamped(f, at + 1))
        f->stamps[at] = FLASH_DROPPED;
    f->unsynced = 0;
}

static inline void flash_do(flash *f, const flash_op *op)
{
    if (op->call == FLASH_PROG)
        flash_put(f, op);
    else if (op->call == FLASH_ERASE)
        flash_wipe(f, op);
    else
        flash_flush(f);
}

/* ------------ >>torn  operations that a cut leaves in one of their variants */

/* How many variants of this kind the operation has. */
static inline uint32_t flash_torn_count(const flash *f, const flash_op *op,
                                        int torn)
{
    int prog = op->call == FLASH_PROG, erase = op->call == FLASH_ERASE;
    int inplace = f->kind == FLASH_INPLACE;
    uint32_t draws = f->draws ? f->draws : 1;
    uint32_t parts = op->len > 1 ? draws : 0;

    switch (torn) {
    case FLASH_NOTHING:
    case FLASH_ALL:         return 1;
    case FLASH_PREFIX:      return prog ? op->len - 1 : parts;
    case FLASH_SUFFIX:      return parts;
    case FLASH_BUT_ONE:
    case FLASH_ONE:         return prog ? parts : 0;
    case FLASH_BLANK:       return prog && !inplace ? 1 : 0;
    case FLASH_ZERO:        return erase ? 1 : 0;
    case FLASH_NOISE:       return erase || (prog && inplace) ? draws : 0;
    case FLASH_LOSE_TAIL:   return f->unsynced;
    case FLASH_LOSE_SOME:   return f->unsynced ? draws : 0;
    default:                return prog || erase ? draws : 0;
    }
}

/* How many variants the operation has, now. */
static inline uint32_t flash_variants(const flash *f, const flash_op *op)
{
    uint32_t count = 0;

    for (int torn = 0; torn < FLASH_TORN_KINDS; torn++)
        count += flash_torn_count(f, op, torn);
    return count;
}

/* The kind of a variant, and in *k which one of that kind; or -1. */
static inline int flash_torn_kind(const flash *f, const flash_op *op,
                                  uint32_t variant, uint32_t *k)
{
    for (int torn = 0; torn < FLASH_TORN_KINDS; torn++) {
        uint32_t count = flash_torn_count(f, op, torn);
        *k = variant;
        if (variant < count)
            return torn;
        variant -= count;
    }
    return -1;
}

/* True if it is left unstable. */
static inline int flash_is_unstable(int torn)
{
    return torn >= FLASH_UNSTABLE_BOOT && torn <= FLASH_UNSTABLE_APIECE;
}

/* The byte of the operation at which the k-th variant of a kind divides it. */
static inline uint32_t flash_edge(const flash *f, const flash_op *op, int torn,
                                  uint32_t k)
{
    if (torn == FLASH_PREFIX && op->call == FLASH_PROG)
        return k + 1;
    if (torn == FLASH_PREFIX || torn == FLASH_SUFFIX)
        return k ? 1 + flash_chance(f, f->ops, k) % (op->len - 1) : op->len / 2;
    // A new byte for each k, so that k = 0 .. len - 1 are all of them.
    return (flash_chance(f, f->ops, 0) % op->len + k) % op->len;
}

/* What a torn operation leaves in its i-th byte. */
static inline uint8_t flash_torn_byte(const flash *f, const flash_op *op,
                                      int torn, uint32_t k, uint32_t i,
                                      uint8_t old, uint8_t meant)
{
    uint32_t edge = flash_edge(f, op, torn, k);
    uint8_t noise = (uint8_t)flash_chance(f, f->ops + (k + 1) * 65537u, i);

    switch (torn) {
    case FLASH_PREFIX:  return i < edge ? meant : old;
    case FLASH_SUFFIX:  return i >= edge ? meant : old;
    case FLASH_BUT_ONE: return i != edge ? meant : old;
    case FLASH_ONE:     return i == edge ? meant : old;
    case FLASH_BITS:    return old ^ ((old ^ meant) & noise);
    case FLASH_ZERO:    return (uint8_t)~f->erased;
    case FLASH_NOISE:
        if (op->call == FLASH_ERASE || i / f->prog_size == edge / f->prog_size)
            return noise;
        return i < edge ? meant : old;
    default:            return old;
    }
}

/* The marks of a torn granule's unstable bits: the order of their moods.
   The first of the six orders is the worst, meant and then as before. */
static inline uint8_t flash_unstable_marks(const flash *f, int torn, uint32_t k)
{
    uint32_t step = 1 + k / 3 % 2;
    uint32_t now = torn == FLASH_UNSTABLE_READ ? f->reads : f->boots;
    uint32_t start = (k + 3 - (now + 1) % 3 * step % 3) % 3;

    return (uint8_t)(FLASH_MOOD * (2 * start + step - 1) |
                     (torn == FLASH_UNSTABLE_READ ? FLASH_BY_READ : 0) |
                     (torn == FLASH_UNSTABLE_APIECE ? FLASH_APIECE : 0));
}

/* Tears the granule at the i-th byte of the operation. */
static inline void flash_tear_granule(flash *f, const flash_op *op, int torn,
                                      uint32_t k, uint32_t i)
{
    const uint8_t *src = (const uint8_t *)op->src;
    int unstable = flash_is_unstable(torn);
    int as_old = 1, as_meant = 1;
    uint8_t *marks = f->marks + op->at + i, mark = *marks;

    for (uint32_t end = i + f->prog_size; i < end; i++) {
        uint32_t at = op->at + i;
        uint8_t old = f->bytes[at];
        uint8_t meant = flash_meant(f, old, src ? src + i : NULL);
        uint8_t is = flash_torn_byte(f, op, torn, k, i, old, meant);
        as_old &= is == old;
        as_meant &= is == meant;
        if (is != old)
            f->unstable[at] = 0;
        if (unstable)
            f->unstable[at] |= old ^ meant;
        f->bytes[at] = unstable ? meant : is;
    }
    mark |= FLASH_PROGRAMMED | FLASH_MAYBE_TORN;
    if (unstable)
        mark = (mark & (FLASH_BY_READ - 1)) | flash_unstable_marks(f, torn, k);
    if (as_meant)
        mark &= (uint8_t)~FLASH_TORN;
    else if (!as_old && f->kind == FLASH_ECC)
        mark |= FLASH_TORN;
    memset(marks, mark, f->prog_size);
}

/* Leaves a program or an erase torn.  What lies after the granule at which a
   front part ends has not been begun. */
static inline void flash_tear(flash *f, const flash_op *op, int torn,
                              uint32_t k)
{
    uint32_t edge = flash_edge(f, op, torn, k), start = 0, end = op->len;

    if (torn == FLASH_NOTHING)
        return;
    if (torn == FLASH_PREFIX && op->call == FLASH_PROG)
        end = edge + 1;
    if (f->torn_noise == FLASH_ONE_TORN && op->call == FLASH_PROG) {
        flash_op whole = *op;
        whole.len = start = edge - edge % f->prog_size;
        flash_put(f, &whole);
        end = edge + 1;
    }
    for (uint32_t i = start; i < end; i += f->prog_size)
        flash_tear_granule(f, op, torn, k, i);
    for (uint32_t i = 0; f->durable && i < end; i++)
        f->stamps[op->at + i] = flash_stamp(f, !i);
    f->soft = 1;
}

/* True if an unsynced byte outlasts the cut. */
static inline int flash_outlasts(const flash *f, int torn, uint32_t k,
                                 uint32_t at)
{
    uint16_t stamp = f->stamps[at];

    if (stamp == FLASH_DROPPED)
        return 0;
    if (torn == FLASH_LOSE_TAIL)
        return stamp <= k;
    if (torn == FLASH_LOSE_SOME)
        return flash_chance(f, f->ops + (k + 1) * 65537u,
                            stamp * 65537u + at / FLASH_BLOCK) & 1;
    return 1;
}

/* A cut under a write-back cache.  The operation that was cut has a stamp if it
   was torn, and is lost or not like the others. */
static inline void flash_lose(flash *f, int torn, uint32_t k)
{
    uint32_t at = flash_next_stamped(f, 0);

    for (; at < f->size; at = flash_next_stamped(f, at + 1))
        if (!flash_outlasts(f, torn, k, at))
            f->bytes[at] = f->durable[at];
    memcpy(f->durable, f->bytes, f->size);
    memset(f->stamps, 0, f->size * sizeof *f->stamps);
    f->unsynced = 0;
}

/* The power goes in this operation. */
static inline void flash_go_off(flash *f, const flash_op *op, uint32_t variant)
{
    uint32_t k;
    int torn = flash_torn_kind(f, op, variant, &k);
    int lose = torn == FLASH_LOSE_TAIL || torn == FLASH_LOSE_SOME;

    f->variants = flash_variants(f, op);
    if (torn < 0)
        flash_violate(f, FLASH_V_VARIANT, op->at);
    else if (torn == FLASH_ALL || (lose && op->call == FLASH_PROG))
        flash_do(f, op);
    else if (!lose && op->call != FLASH_SYNC)
        flash_tear(f, op, torn, k);
    if (f->durable)
        flash_lose(f, torn, k);
    f->off = 1;
    f->cuts++;
}

/* -------------------------------- >>calls  what the tested library is given */

/* Shows an operation before anything is changed by it. */
static inline void flash_show(const flash *f, const flash_op *op)
{
    if (f->watch)
        f->watch(f->watch_arg, f, op);
}

/* Counts an operation that may be cut; true if this one is. */
static inline int flash_counted(flash *f, const flash_op *op)
{
    if (f->armed && f->cut_in-- == 0)
        flash_go_off(f, op, f->cut_variant);
    f->ops++;
    return f->off;
}

/* How this call fails, or 0. */
static inline int flash_how(flash *f, int call, uint32_t at, uint32_t len)
{
    static const uint8_t fails[FLASH_CALLS] = {
        FLASH_BAD_READ, FLASH_BAD_PROG, FLASH_BAD_ERASE, 0
    };
    static const uint8_t stuck[FLASH_CALLS] = {
        0, FLASH_STUCK_PROG, FLASH_STUCK_ERASE, 0
    };
    int how = f->faults[call].how;

    if (how && f->faults[call].in) {
        f->faults[call].in--;
        how = 0;
    } else if (how && !f->faults[call].forever) {
        f->faults[call].how = 0;
    }
    for (uint32_t s = at / f->sector_size; !how && len; s++) {
        how = f->bad[s] & fails[call] ? FLASH_UNDONE :
              f->bad[s] & stuck[call] ? FLASH_SILENT : 0;
        if ((s + 1) * f->sector_size >= at + len)
            break;
    }
    return how;
}

/* Does an operation as well as the fault allows. */
static inline int flash_operate(flash *f, const flash_op *op)
{
    int how = flash_how(f, op->call, op->at, op->len);
    int torn = how == FLASH_HALF && op->len > 1 ? FLASH_PREFIX : FLASH_BLANK;

    if (!how || how == FLASH_DONE)
        flash_do(f, op);
    else if (op->call == FLASH_SYNC && how == FLASH_HALF)
        flash_drop(f);
    else if (op->call == FLASH_PROG && how == FLASH_SILENT)
        // By what the caller knows it is programmed.
        for (uint32_t i = 0; i < op->len; i++)
            f->marks[op->at + i] |= FLASH_PROGRAMMED;
    else if (op->call == FLASH_PROG)
        flash_tear(f, op, torn, op->len / 2 - 1);
    else if (op->call == FLASH_ERASE && how == FLASH_SILENT)
        // By what the caller knows it may be programmed.
        for (uint32_t i = 0; i < op->len; i++)
            f->marks[op->at + i] &= (uint8_t)~(FLASH_PROGRAMMED |
                                                     FLASH_MAYBE_TORN);
    else if (op->call == FLASH_ERASE && how == FLASH_HALF)
        flash_tear(f, op, FLASH_PREFIX, 0);
    return how && how != FLASH_SILENT ? FLASH_E_FAULT : FLASH_OK;
}

/* How the unstable bits of a byte read: 0 as meant, 1 as before, 2 mixed.  Each
   three reads are in another order: who reads again after as many reads as
   divide by three does not read the same for ever. */
static inline uint32_t flash_mood(const flash *f, uint32_t at)
{
    uint8_t mark = f->marks[at];
    uint32_t order = mark / FLASH_MOOD;
    uint32_t when = mark & FLASH_BY_READ ? f->reads + f->reads / 3 : f->boots;
    uint32_t own = flash_chance(f, 0, at / f->prog_size) % 3;

    return (order / 2 + when % 3 * (1 + order % 2) +
            (mark & FLASH_APIECE ? own : 0)) % 3;
}

/* True if no code word of an ECC covers the granule as it reads now. */
static inline int flash_is_torn(const flash *f, uint32_t at)
{
    uint32_t from = at - at % f->prog_size;

    if (f->kind != FLASH_ECC)
        return 0;
    if (f->marks[at] & FLASH_TORN)
        return 1;
    for (uint32_t i = from; i < from + f->prog_size; i++)
        if (f->unstable[i] && flash_mood(f, i) == 2)
            return 1;
    return 0;
}

/* A byte as it reads now, or -1. */
static inline int flash_read_byte(const flash *f, uint32_t at)
{
    static const uint8_t none_all[2] = { 0, 255 };
    uint8_t by_read = f->marks[at] & FLASH_BY_READ, mask;
    uint32_t when = by_read ? f->reads : f->boots, mood;

    if (flash_is_torn(f, at))
        return f->torn_noise ? (uint8_t)flash_chance(f, f->reads, at) : -1;
    if (!f->unstable[at])
        return f->bytes[at];
    mood = flash_mood(f, at);
    mask = mood < 2 ? none_all[mood] : (uint8_t)flash_chance(f, ~when, at);
    return f->bytes[at] ^ (f->unstable[at] & mask);
}

/* True if no granule of these bytes is torn or unstable. */
static inline int flash_is_stable(const flash *f, uint32_t at, uint32_t len)
{
    uint32_t end = at + len;
    uint8_t found = 0;

    at -= at % f->prog_size;
    end += (f->prog_size - end % f->prog_size) % f->prog_size;
    for (uint32_t i = at; i < end; i++)
        found |= f->unstable[i] | (f->marks[i] & FLASH_TORN);
    return !found;
}

/* Reads what may be torn or unstable.  After an error dst holds noise. */
static inline int flash_read_softly(const flash *f, uint32_t at, uint8_t *dst,
                                    uint32_t len)
{
    int result = FLASH_OK;

    if (flash_is_stable(f, at, len)) {
        memcpy(dst, f->bytes + at, len);
        return FLASH_OK;
    }
    for (uint32_t i = 0; i < len; i++) {
        int byte = flash_read_byte(f, at + i);
        if (byte < 0)
            result = FLASH_E_ECC;
        dst[i] = (uint8_t)byte;
    }
    for (uint32_t i = 0; result && i < len; i++)
        dst[i] = (uint8_t)flash_chance(f, f->reads, i);
    return result;
}

static inline int flash_outside(const flash *f, uint32_t at, uint32_t len)
{
    return at > f->size || len > f->size - at;
}

/* Counts a read of each of these bytes, up to 255. */
static inline void flash_count_reads(uint8_t *counts, uint32_t len)
{
    for (uint32_t i = 0; i < len; i++)
        counts[i] = (uint8_t)(counts[i] + (counts[i] < UINT8_MAX));
}

static inline int flash_read(void *ctx, uint32_t at, void *dst, uint32_t len)
{
    flash *f = (flash *)ctx;
    int how, result = FLASH_OK;

    if (f->off)
        return FLASH_E_OFF;
    if (flash_outside(f, at, len))
        return flash_violate(f, FLASH_V_BOUNDS, at);
    f->reads++;
    f->read_bytes += len;
    if (f->read_map)
        flash_count_reads(f->read_map + at, len);
    how = flash_how(f, FLASH_READ, at, len);
    if (how == FLASH_SILENT || how == FLASH_UNDONE)
        len = 0;
    else if (how == FLASH_HALF)
        len /= 2;
    if (f->soft)
        result = flash_read_softly(f, at, (uint8_t *)dst, len);
    else if (len)
        memcpy(dst, f->bytes + at, len);
    return how && how != FLASH_SILENT ? FLASH_E_FAULT : result;
}

/* The violation in a program, or none. */
static inline int flash_misuse(const flash *f, const flash_op *op)
{
    if (flash_outside(f, op->at, op->len))
        return FLASH_V_BOUNDS;
    if (!op->len || op->at % f->prog_size || op->len % f->prog_size)
        return FLASH_V_ALIGN;
    if (op->at % f->sector_size + op->len > f->sector_size)
        return FLASH_V_CROSS;
    return FLASH_V_NONE;
}

/* FLASH_V_TWICE or FLASH_V_TORN if a granule is not free, where in *at. */
static inline int flash_taken(const flash *f, const flash_op *op, uint32_t *at)
{
    for (uint32_t i = 0; i < op->len; i += f->prog_size) {
        *at = op->at + i;
        if (f->marks[*at] & FLASH_MAYBE_TORN)
            return FLASH_V_TORN;
        if (f->marks[*at] & FLASH_PROGRAMMED)
            return FLASH_V_TWICE;
    }
    return FLASH_V_NONE;
}

/* True if every byte is really erased: an erase may have lied. */
static inline int flash_is_blank(const flash *f, uint32_t at, uint32_t len)
{
    for (uint32_t i = at; i < at + len; i++)
        if (f->bytes[i] != f->erased || f->unstable[i])
            return 0;
    return 1;
}

static inline int flash_prog(void *ctx, uint32_t at, const void *src,
                             uint32_t len)
{
    flash *f = (flash *)ctx;
    flash_op op = { FLASH_PROG, at, src, len };
    int what;

    if (f->off)
        return FLASH_E_OFF;
    what = flash_misuse(f, &op);
    if (what)
        return flash_violate(f, what, at);
    flash_show(f, &op);
    f->progs++;
    f->prog_bytes += len;
    if (f->kind != FLASH_INPLACE && (what = flash_taken(f, &op, &at)) != 0)
        flash_violate(f, what, at);
    if (f->kind == FLASH_ECC && (what || !flash_is_blank(f, op.at, len)))
        return FLASH_E_ECC;
    return flash_counted(f, &op) ? FLASH_E_OFF : flash_operate(f, &op);
}

static inline int flash_erase(void *ctx, uint32_t sector)
{
    flash *f = (flash *)ctx;
    flash_op op = { FLASH_ERASE, sector * f->sector_size, NULL,
                    f->sector_size };

    if (f->off)
        return FLASH_E_OFF;
    if (sector >= f->sector_count)
        return flash_violate(f, FLASH_V_BOUNDS, sector);
    if (f->kind == FLASH_INPLACE)
        return flash_violate(f, FLASH_V_ERASE, op.at);
    flash_show(f, &op);
    f->erases++;
    f->sector_erases[sector]++;
    return flash_counted(f, &op) ? FLASH_E_OFF : flash_operate(f, &op);
}

static inline int flash_sync(void *ctx)
{
    flash *f = (flash *)ctx;
    flash_op op = { FLASH_SYNC, 0, NULL, 0 };

    if (f->off)
        return FLASH_E_OFF;
    if (f->cut_syncs)
        flash_show(f, &op);
    f->syncs++;
    if (f->cut_syncs && flash_counted(f, &op))
        return FLASH_E_OFF;
    return flash_operate(f, &op);
}

/* --------------------------------- >>test  what the test does to the medium */

/* Arms a cut at the n-th operation from now, 0 the next. */
static inline void flash_cut(flash *f, uint32_t n, uint32_t variant)
{
    f->armed = 1;
    f->cut_in = n;
    f->cut_variant = variant;
}

/* The power goes between two operations.  The variants are those of a sync: of
   a cache everything is kept (0, 1), or some is lost. */
static inline void flash_off(flash *f, uint32_t variant)
{
    flash_op op = { FLASH_SYNC, 0, NULL, 0 };

    flash_go_off(f, &op, variant);
}

/* Power comes back; or the machine restarts, and a cache is not lost.  Disarms
   a cut, but no fault. */
static inline void flash_boot(flash *f)
{
    f->off = 0;
    f->armed = 0;
    f->boots++;
    if (f->read_map)
        memset(f->read_map, 0, f->size);
}

/* Makes the n-th call from now fail, 0 the next, and if `forever` all after it.
   How 0 ends it. */
static inline void flash_fail(flash *f, int call, uint32_t n, int how,
                              int forever)
{
    f->faults[call].how = how;
    f->faults[call].in = n;
    f->faults[call].forever = forever;
}

/* Bit rot. */
static inline void flash_flip(flash *f, uint32_t at, unsigned bit)
{
    f->bytes[at] ^= (uint8_t)(1u << bit);
    if (f->durable)
        f->durable[at] ^= (uint8_t)(1u << bit);
}

/* From anywhere, its own bytes, too. */
static inline void flash_load(flash *f, uint32_t at, const void *src,
                              uint32_t len)
{
    memmove(f->bytes + at, src, len);
    flash_settle(f, at, len);
}

static inline void flash_fill(flash *f, uint32_t at, uint32_t len, int byte)
{
    memset(f->bytes + at, byte, len);
    flash_settle(f, at, len);
}

static inline void flash_noise(flash *f, uint32_t at, uint32_t len,
                               uint32_t seed)
{
    for (uint32_t i = at; i < at + len; i++)
        f->bytes[i] = (uint8_t)flash_mix(flash_mix(seed + 1) + i);
    flash_settle(f, at, len);
}

/* Everything from `at` on is lost. */
static inline void flash_truncate(flash *f, uint32_t at)
{
    flash_fill(f, at, f->size - at, f->erased);
}

/* The fewest and the most erases of a sector. */
static inline void flash_wear(const flash *f, uint32_t *least, uint32_t *most)
{
    *least = UINT32_MAX;
    *most = 0;
    for (uint32_t s = 0; s < f->sector_count; s++) {
        if (f->sector_erases[s] < *least)
            *least = f->sector_erases[s];
        if (f->sector_erases[s] > *most)
            *most = f->sector_erases[s];
    }
}

/* How often the most read byte was read since the latest boot. */
static inline unsigned flash_most_read(const flash *f)
{
    unsigned most = 0;

    for (uint32_t i = 0; i < f->size; i++)
        if (f->read_map[i] > most)
            most = f->read_map[i];
    return most;
}

#endif /* FLASH_H */
