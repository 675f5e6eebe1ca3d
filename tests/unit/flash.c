/* SPDX-License-Identifier: 0BSD */
/*
 * Shows that the storage emulator, model/flash.h, does what is in its manual:
 * the rules of each medium, the variants of each cut, the same each time; each
 * fault; each violation is found.  The tests of the journal rely on it, so the
 * state that a cut leaves is computed here a second time, in another way.
 *
 * Short tests are a line of words:
 *
 *     p0,8=11 e1 s    program 8 bytes at 0, each 0x11; erase sector 1; sync
 *     r0,8=11         read: each is 0x11
 *     l0,8=11 F0,8=11 ^0,7 truncate8  load, fill; flip bit 7; truncate
 *     c0,2 o2 b       the next operation is cut, in variant 2; the power goes;
 *                     it comes back
 *     !p2:half x1=4   the second program from now fails, with P that and all
 *                     later ones; sector 1 has fault 4
 *     y               from now on syncs are cut, too
 *     n2 u1 w2 m3     operations; unsynced ones; variants; the reads, since
 *                     boot, of the byte that was read most
 *     v1:twice        violations, all of this kind; v1,60: the first at 60
 *
 * After a colon is the answer of a call that must not succeed.
 */
#include "test.h"

#include "../model/flash.h"

enum { SECTOR = 64, SECTORS = 4, SIZE = SECTOR * SECTORS };
enum { DRAWS = 6 };
enum { CACHE = FLASH_INPLACE + 1 };     // in place, and a cache before it

typedef struct medium {
    flash f;
    uint32_t memory[FLASH_MEMORY(SECTOR, SECTORS) / 4];
    uint8_t  read_map[SIZE];
    uint8_t  durable[SIZE];
    uint16_t stamps[SIZE];
} medium;

static medium one, two, three;

static flash *renew(medium *m, int kind, uint32_t granule, uint8_t erased)
{
    flash *f = &m->f;

    memset(m, 0xA5, sizeof *m);
    memset(f, 0, sizeof *f);
    f->kind = kind == CACHE ? FLASH_INPLACE : kind;
    f->sector_size = SECTOR;
    f->sector_count = SECTORS;
    f->prog_size = granule;
    f->erased = erased;
    f->seed = 7;
    f->draws = DRAWS;
    f->read_map = m->read_map;
    f->durable = kind == CACHE ? m->durable : NULL;
    f->stamps = kind == CACHE ? m->stamps : NULL;
    is(flash_init(f, m->memory), 0);
    is(f->size, SIZE);
    return f;
}

static flash *fresh(int kind, uint32_t granule)
{
    return renew(&one, kind, granule, kind == CACHE ? 0 : 0xFF);
}

/* -------------------------------------------------------------------- lines */

static const struct { const char *name; int number; } names[] = {
    { "off", FLASH_E_OFF }, { "fault", FLASH_E_FAULT }, { "ecc", FLASH_E_ECC },
    { "misuse", FLASH_E_MISUSE }, { "undone", FLASH_UNDONE },
    { "done", FLASH_DONE }, { "half", FLASH_HALF }, { "silent", FLASH_SILENT },
    { "bounds", FLASH_V_BOUNDS }, { "align", FLASH_V_ALIGN },
    { "cross", FLASH_V_CROSS }, { "erase", FLASH_V_ERASE },
    { "twice", FLASH_V_TWICE }, { "torn", FLASH_V_TORN },
};

/* The number after a colon; 0 if there is none. */
static int number_of(const char *word)
{
    size_t len = strcspn(word, ": ");

    if (word[len] != ':')
        return 0;
    word += len + 1;
    for (size_t i = 0; i < COUNT(names); i++)
        if (strlen(names[i].name) == strcspn(word, " ") &&
            !strncmp(word, names[i].name, strlen(names[i].name)))
            return names[i].number;
    fail_msg("no name: %s", word);
    return 0;
}

/* Reads bytes that are all the same. */
static int read_same(flash *f, uint32_t at, uint32_t len, int byte)
{
    uint8_t bytes[SIZE + 1];
    int result;

    memset(bytes, ~byte, sizeof bytes);
    result = flash_read(f, at, bytes, len);
    for (uint32_t i = 0; !result && i < len; i++)
        is(bytes[i], byte);
    return result;
}

static void run_word(flash *f, const char *word)
{
    uint8_t bytes[SIZE];
    unsigned at = 0, n = 0, byte = 0;
    int expected = number_of(word), result = expected;
    const char *numbers = word + 1 +
                          strspn(word + 1, "abcdefghijklmnopqrstuvwxyz");

    if (sscanf(numbers, "%u,%u=%x", &at, &n, &byte) == 1)
        (void)sscanf(numbers, "%*u=%x", &byte);
    memset(bytes, (int)byte, sizeof bytes);
    switch (*word) {
    case 'p': result = flash_prog(f, at, bytes, n); break;
    case 'e': result = flash_erase(f, at); break;
    case 's': result = flash_sync(f); break;
    case 'r': result = read_same(f, at, n, (int)byte); break;
    case 'l': flash_load(f, at, bytes, n); break;
    case 'F': flash_fill(f, at, n, (int)byte); break;
    case '^': flash_flip(f, at, n); break;
    case 't': flash_truncate(f, at); break;
    case 'c': flash_cut(f, at, n); break;
    case 'o': flash_off(f, at); break;
    case 'b': flash_boot(f); break;
    case '!':                   // nothing after a colon: no more
        flash_fail(f, (int)(strchr("rpesRPES", word[1]) - "rpesRPES") % 4,
                   (uint32_t)strtoul(word + 2, NULL, 10), expected,
                   word[1] < 'a');
        break;
    case 'x': f->bad[at] = (uint8_t)byte; break;
    case 'y': f->cut_syncs = 1; break;
    case 'n': is(f->ops, at); break;
    case 'u': is(f->unsynced, at); break;
    case 'w': is(f->variants, at); break;
    case 'm': is(flash_most_read(f), at); break;
    case 'v':
        is(f->violations, at);
        is(f->violations_of[expected], at);
        is(at ? f->first : 0, expected);
        is(n ? f->first_at : 0, n);
        break;
    default: fail_msg("no word: %s", word);
    }
    is(result, expected);
}

static void run(flash *f, const char *line)
{
    for (const char *word = line; *word; word += strspn(word, " ")) {
        run_word(f, word);
        word += strcspn(word, " ");
    }
}

static const struct line {
    const char *name;
    int kind;
    uint32_t granule;
    uint8_t erased;
    const char *line;
} lines[] = {
    { "programs only move bits away from the erased value", FLASH_NOR, 4, 0xFF,
      "p8,4=0c r8,4=0c v0 p8,4=0a r8,4=08 v1:twice r7,1=ff r12,1=ff" },
    { "a granule is programmed once until it is erased", FLASH_NOR, 8, 0xFF,
      "p64,8=33 p72,8=11 v0 p64,24=22 v1:twice e0 p64,8=22 v2:twice "
      "e1 r0,256=ff p64,24=22 v2:twice r64,24=22" },
    { "in place overwrites and has no erase", FLASH_INPLACE, 1, 0xFF,
      "p3,5=0 p4,2=fe r3,1=0 r4,2=fe r6,1=0 v0 e0:misuse v1:erase r3,1=0" },

    { "outside is a violation that does nothing", FLASH_NOR, 4, 0xFF,
      "p256,4:misuse v1,256:bounds p252,8:misuse p4294967292,8:misuse "
      "p4,4294967295:misuse r256,4:misuse r252,8:misuse r4294967292,8:misuse "
      "r4,4294967295:misuse e4:misuse v9,256:bounds n0 r0,256=ff" },
    { "a part of a granule is a violation that does nothing",
      FLASH_NOR, 4, 0xFF,
      "p1,4:misuse v1,1:align p4,6:misuse p8,0:misuse v3,1:align n0 "
      "r0,256=ff r256,0" },
    { "a program over the end of a sector is a violation", FLASH_NOR, 4, 0xFF,
      "p60,8:misuse v1,60:cross n0 r0,256=ff" },

    { "a cut comes at its operation and lasts until boot", FLASH_NOR, 1, 0xFF,
      "c2,0 s p0,1=0 e3 s r0,1=0 p2,1=0:off s:off r0,1:off e3:off p0,1=0:off "
      "n3 b r0,1=0 r2,1=ff p8,1=0 e0 r8,1=ff v0" },
    { "a sync is cut if asked", FLASH_NOR, 1, 0xFF, "c0,0 s y s:off w2" },

    { "a callback fails from its call on for ever, or until reset", FLASH_NOR,
      1, 0xFF,
      "!R1:undone r0,1=ff p0,1=0 r0,1:fault r0,1:fault !r r0,1=0 !P1:undone "
      "p1,1=0 p2,1=0:fault p3,1=0:fault !p p4,1=0 !E1:undone e1 e1:fault "
      "e1:fault !e e1 !S1:undone s s:fault s:fault !s s v0" },
    { "a failing program may do all, or report that it did", FLASH_NOR, 2, 0xFF,
      "!p:done p0,8=1:fault r0,8=1 p0,8=1 v1:twice e0 "
      "!p:silent p0,8=1 r0,8=ff p0,8=1 v2:twice" },
    { "a failing program may do nothing or half with ECC", FLASH_ECC, 4, 0xFF,
      "!p:undone p0,8=1:fault r0,8=ff p0,8=1:ecc v1:torn e0 "
      "!p:half p0,8=1:fault r0,4=1 r4,4=ff p0,8=1:ecc v2:torn" },
    // Variant 2 + n is n + 1 bytes.
    { "a torn granule does not read with ECC", FLASH_ECC, 8, 0xFF,
      "c0,2 p64,24=11:off b r64,8:ecc r64,1:ecc r71,1:ecc r72,16=ff e1 "
      "c0,9 p64,24=11:off b r64,8=11 r72,16=ff e1 c0,11 p64,24=11:off b "
      "r64,8=11 r72,8:ecc r76,8:ecc r79,1:ecc r71,1=11 r80,8=ff r64,24:ecc" },
    { "a failing erase may do half", FLASH_NOR, 4, 0xFF,
      "p0,64=11 !e:half e0:fault r0,32=ff r32,32=11 p0,4=22 v1:torn" },
    { "an erase may do nothing and report that it did", FLASH_NOR, 4, 0xFF,
      "p0,64=11 !e:silent e0 r0,64=11 p0,4=22 v0" },
    { "a bad sector is bad alone", FLASH_NOR, 4, 0xFF,
      "p64,8=11 x1=1 r60,8:fault r56,8=ff r128,4=ff r64,0 "      // reading
      "x1=6 p72,4=0:fault p0,4=0 e1:fault e2 r64,8=11 r72,4=ff " // the others
      "x1=18 p76,4=0 r76,4=ff e1 r64,8=11 "                      // stuck
      "x1=0 p64,4=12 r64,4=10 v0" },    // it reported that it is erased

    { "a cache outlives a restart", CACHE, 1, 0, "p0,8=1 b r0,8=1 u1 s u0" },
    { "a cache keeps what was synced or not cut", CACHE, 1, 0,
      "p0,8=2 o0 b r0,8=2 p0,8=3 o2 b r0,8=2" },
    { "a program that is torn is torn in a cache, too", CACHE, 1, 0,
      "p0,8=2 s p8,8=4 c0,2 p0,8=4:off b r0,1=4 r1,7=2 r8,8=4 v0" },
    { "a failing sync may do nothing", CACHE, 1, 0,
      "p0,8=1 !s:undone s:fault r0,8=1 u1 p8,1=1 o2 b r0,9=0" },
    { "a failing sync may do all", CACHE, 1, 0,
      "p0,8=1 !s:done s:fault r0,8=1 u0 p8,1=1 o2 b r0,8=1 r8,1=0" },
    { "a sync may do nothing and report that it did", CACHE, 1, 0,
      "p0,8=1 !s:silent s r0,8=1 u1 p8,1=1 o2 b r0,9=0" },
    { "a failing sync may drop what reads well until a cut", CACHE, 1, 0,
      "p0,8=1 !s:half s:fault r0,8=1 u0 p8,1=1 o2 b r0,9=0" },
    { "no later sync makes durable what was dropped", CACHE, 1, 0,
      "p0,8=1 !s:half s:fault p8,1=1 s o0 b r0,8=0 r8,1=1" },

    { "images are replaced", FLASH_NOR, 4, 0xFF,
      "l4,4=1 l2,2=ff l14,4=2 r2,2=ff r4,4=1 r8,6=ff r14,4=2 r18,1=ff "
      "p0,4=0 p8,4=0 v0 p4,4=0 v1:twice p12,4=0 v2:twice p16,4=0 v3:twice "
      "F64,64=55 r64,64=55 r63,1=ff r128,1=ff p64,4=0 v4:twice" },
    { "images are damaged", FLASH_NOR, 4, 0xFF,
      "F64,64=55 ^64,7 r64,1=d5 truncate68 r64,1=d5 r67,1=55 r68,188=ff "
      "p68,4=0 p64,4=0 v1:twice" },
    { "bit rot is durable", CACHE, 1, 0, "p0,1=1 s ^0,7 o2 b r0,1=81" },
};

static void run_row(void **state)
{
    const struct line *l = (const struct line *)*state;

    run(renew(&one, l->kind, l->granule, l->erased), l->line);
}

TESTS(lines, run_row)

TEST(impossible_media_are_refused)
{
    static const struct { unsigned granule; int cached, kind, is; } all[] = {
        // cached: with bytes that are durable, and with stamps
        { 0, 0, FLASH_NOR, -1 }, { 5, 0, FLASH_NOR, -1 },
        { 4, 1, FLASH_NOR, -1 }, { 4, 2, FLASH_NOR, -1 },
        { 4, 1, FLASH_INPLACE, -1 }, { 4, 2, FLASH_INPLACE, 0 },
    };
    flash f = *fresh(FLASH_NOR, 4);

    assert_string_equal(flash_text(&f), "no violation");
    for (size_t i = 0; i < COUNT(all); i++) {
        f.prog_size = all[i].granule;
        f.kind = all[i].kind;
        f.durable = all[i].cached > 0 ? one.durable : NULL;
        f.stamps = all[i].cached > 1 ? one.stamps : NULL;
        is(flash_init(&f, one.memory), all[i].is);
    }
    f.sector_count = 0;
    is(flash_init(&f, one.memory), -1);
}

/* How many variants there are of each kind, as in the header's list: n for
   one less than the bytes, D for those that are drawn. */
TEST(variants_are_as_many_of_each_kind_as_listed)
{
    static const struct { int kind, call; const char *list; } rows[] = {
        { FLASH_NOR, FLASH_PROG, "11nDDDD100DDD00" },
        { FLASH_ECC, FLASH_ERASE, "11DD00D01DDDD00" },
        { FLASH_INPLACE, FLASH_PROG, "11nDDDD00DDDD00" },
    };

    for (size_t i = 0; i < COUNT(rows); i++)
        for (uint32_t len = 1; len < 25; len++) {
            flash *f = fresh(rows[i].kind, 1);
            flash_op op = { rows[i].call, 0, NULL, len };
            for (int torn = 0; torn < FLASH_TORN_KINDS; torn++) {
                char c = rows[i].list[torn];
                int parts = torn >= FLASH_PREFIX && torn <= FLASH_ONE;
                is((int)flash_torn_count(f, &op, torn),
                   len == 1 && parts ? 0 : c == 'n' ? (int)len - 1 :
                   c == 'D' ? DRAWS : c - '0');
            }
        }
}

/* --------------------------------------------------------------------- torn */

enum { AT = SECTOR, LEN = 24 };

static uint8_t before[SECTOR], meant[SECTOR];

/* Programs LEN bytes at AT, or erases the sector there, cut in the k-th variant
   of a kind, and boots; returns the length, or 0 if there is no such variant.
   What was there goes into `before`, what is meant into `meant`. */
static uint32_t tear(flash *f, int call, int torn, uint32_t k)
{
    int erase = call == FLASH_ERASE, used = erase || f->kind == FLASH_INPLACE;
    flash_op op = { call, AT, erase ? NULL : meant, erase ? SECTOR : LEN };
    uint32_t v = 0, nth;

    if (k >= flash_torn_count(f, &op, torn))
        return 0;
    for (int i = 0; i < SECTOR; i++)
        meant[i] = (uint8_t)(erase ? f->erased : 0x40 + i);
    memset(before, used ? 0x69 : f->erased, SECTOR);
    if (used)
        is(flash_prog(f, AT, before, op.len), 0);
    while (flash_torn_kind(f, &op, v, &nth) != torn || nth != k)
        v++;
    flash_cut(f, 0, v);
    is(erase ? flash_erase(f, 1) : flash_prog(f, AT, meant, LEN), FLASH_E_OFF);
    is(f->off, 1);
    is(f->variants, flash_variants(f, &op));
    flash_boot(f);
    return op.len;
}

// What became of bytes that were to be changed.
struct torn {
    uint32_t done, kept;        // are as meant; as before
    uint32_t done_front, kept_front;    // .. in a row from the front
    uint32_t strange;           // have a bit that is neither
};

static struct torn look(const uint8_t *bytes, uint32_t len)
{
    struct torn left = { 0 };

    for (uint32_t i = 0; i < len; i++) {
        left.done_front += left.done == i && bytes[i] == meant[i];
        left.kept_front += left.kept == i && bytes[i] == before[i];
        left.done += bytes[i] == meant[i];
        left.kept += bytes[i] == before[i];
        left.strange += ((bytes[i] ^ before[i]) & (bytes[i] ^ meant[i])) != 0;
    }
    return left;
}

/* Any bytes: in most of a sector that is erased; in a granule that is
   programmed, and what is after it is as before. */
static int is_noise(const uint8_t *bytes, uint32_t len, uint32_t edge,
                    uint32_t granule)
{
    uint32_t after = edge - edge % granule + granule;

    return len == SECTOR ? look(bytes, len).strange > SECTOR / 2 :
           after >= len || !memcmp(bytes + after, before, len - after);
}

static int is_torn_as_variant(const flash *f, int torn, uint32_t k,
                           const uint8_t *bytes, uint32_t len)
{
    struct torn left = look(bytes, len);
    int divided = left.done && left.kept && left.done + left.kept == len;

    switch (torn) {
    case FLASH_NOTHING:
    case FLASH_BLANK:   return left.kept == len;
    case FLASH_ALL:     return left.done == len;
    case FLASH_PREFIX:
        return divided && left.done_front == left.done &&
               (len == SECTOR || left.done == k + 1);
    case FLASH_SUFFIX:  return divided && left.kept_front == left.kept;
    case FLASH_BUT_ONE: return divided && left.kept == 1;
    case FLASH_ONE:     return divided && left.done == 1;
    case FLASH_BITS:    return !left.strange && left.done + left.kept < len;
    case FLASH_ZERO:
        return (bytes[0] ^ f->erased) == 0xFF &&
               !memcmp(bytes, bytes + 1, len - 1);
    case FLASH_NOISE:
        return is_noise(bytes, len, left.done_front, f->prog_size);
    default:
        return !left.strange && !memcmp(f->bytes + AT, meant, len);
    }
}

/* What was being programmed counts as programmed, and nothing of a sector may
   be until an erase ends. */
static void torn_counts(flash *f, int call, int torn, uint32_t k, uint32_t len)
{
    int whole = call == FLASH_PROG ? FLASH_ALL : FLASH_NOTHING;
    int what = torn == whole ? FLASH_V_TWICE : FLASH_V_TORN;
    uint32_t taken = 0;

    for (uint32_t g = 0; g < len; g += f->prog_size) {
        int free = call == FLASH_ERASE ? torn == FLASH_ALL :
                   torn == FLASH_NOTHING || (torn == FLASH_PREFIX && g > k + 1);
        is(flash_prog(f, AT + g, before, f->prog_size),
           free || f->kind == FLASH_NOR ? 0 : FLASH_E_ECC);
        taken += !free;
        is(f->violations, taken);
        is(f->violations_of[what], taken);
    }
    is(flash_erase(f, AT / SECTOR), 0);
    is(read_same(f, AT, SECTOR, f->erased), 0);
    run(f, "p64,64=69 r64,64=69");
    is(f->violations, taken);
}

static void check_torn_variant(int kind, uint32_t granule, uint8_t erased,
                            int call, int torn)
{
    for (uint32_t k = 0; k < LEN; k++) {
        flash *f = renew(&one, kind, granule, erased);
        uint8_t bytes[SECTOR];
        uint32_t len;
        f->torn_noise = 1;
        run(f, "p128,64=69");
        len = tear(f, call, torn, k);
        if (!len)
            return;
        is(flash_read(f, AT, bytes, len), 0);
        if (kind == FLASH_ECC)          // not as reading may return them
            memcpy(bytes, f->bytes + AT, len);
        assert_true(is_torn_as_variant(f, torn, k, bytes, len));
        is(read_same(f, AT - 1, 1, erased), 0);
        is(read_same(f, AT + len, 1, len == LEN ? erased : 0x69), 0);
        is(f->violations, 0);
        if (kind != FLASH_INPLACE)
            torn_counts(f, call, torn, k, len);
    }
}

TEST(torn_writes_are_as_their_variant_states)
{
    static const uint32_t granules[] = { 1, 2, 8 };
    static const uint8_t erased[] = { 0xFF, 0x00 };

    for (int kind = FLASH_NOR; kind <= FLASH_INPLACE; kind++)
        for (size_t i = 0; i < COUNT(granules) * COUNT(erased); i++)
            for (int torn = 0; torn < FLASH_LOSE_TAIL; torn++)
                for (int call = FLASH_PROG; call <= FLASH_ERASE; call++)
                    if (kind != FLASH_INPLACE || call == FLASH_PROG)
                        check_torn_variant(kind, granules[i / 2], erased[i % 2],
                                        call, torn);
}

/* .. or, if asked, noise that is another each time. */
TEST(a_torn_granule_may_read_as_noise_with_ecc)
{
    flash *f = fresh(FLASH_ECC, 8);
    uint8_t first[LEN], again[LEN];

    f->torn_noise = 1;
    run(f, "c0,11 p64,24=11:off b r64,8=11 r80,8=ff");
    is(flash_read(f, AT, first, LEN), 0);
    is(flash_read(f, AT, again, LEN), 0);
    assert_memory_equal(first, again, 8);
    assert_memory_not_equal(first + 8, again + 8, 8);
    assert_memory_equal(first + 16, again + 16, 8);
}

/* ------------------------------------------------------------ unstable bits */

/* How a torn program reads: 0 as meant, 1 as before, 2 neither; that does not
   read at all with ECC. */
static int mood_of(flash *f)
{
    uint8_t bytes[LEN];
    int result = flash_read(f, AT, bytes, LEN);
    int mood = !memcmp(bytes, meant, LEN) ? 0 :
               !memcmp(bytes, before, LEN) ? 1 : 2;

    is(result, mood == 2 && f->kind == FLASH_ECC ? FLASH_E_ECC : 0);
    is(result || !look(bytes, LEN).strange, 1);
    return mood;
}

TEST(bits_unstable_by_boot_take_all_orders_of_moods)
{
    for (int kind = FLASH_NOR; kind <= FLASH_INPLACE; kind++)
        for (uint32_t boots = 0; boots < 4; boots++) {
            int orders = 0;
            for (uint32_t k = 0; k < 6; k++) {
                flash *f = fresh(kind, 8);
                int mood[4];
                f->boots = boots;
                is(tear(f, FLASH_PROG, FLASH_UNSTABLE_BOOT, k), LEN);
                for (int i = 0; i < 4; i++, flash_boot(f)) {
                    mood[i] = mood_of(f);
                    is(mood_of(f), mood[i]);
                    assert_true(i == 0 || mood[i] != mood[i - 1]);
                }
                is(mood[3], mood[0]);
                is(mood[0] + mood[1] + mood[2], 3);
                assert_true(k || (mood[0] == 0 && mood[1] == 1));
                orders |= 1 << (mood[0] * 3 + mood[1]);
            }
            is(orders, 0xEE);                   // all pairs but equal ones
        }
}

/* -------------------------------------------------- the same again, and all */

/* A program of n bytes has nothing, all, blank, each front part, and 7 kinds
   that are drawn; an erase has nothing, all, zero, and 7 drawn. */
enum { WORK_STATES = (3 + 15) + 2 * (3 + 7) + 3 + 4 * 7 * DRAWS };

/* Three programs and an erase. */
static void work(flash *f)
{
    uint8_t src[16];

    for (int i = 0; i < 16; i++)
        src[i] = (uint8_t)(i * 37);
    (void)(flash_prog(f, 0, src, 16) || flash_prog(f, 16, src, 8) ||
           flash_erase(f, 0) || flash_prog(f, 8, src, 8));
}

/* The same in a run of its own, with a cut. */
static flash *cut_work(uint32_t seed, uint32_t n, uint32_t variant)
{
    flash *f = renew(&three, FLASH_NOR, 4, 0xFF);

    f->seed = seed;
    flash_cut(f, n, variant);
    work(f);
    return f;
}

static uint32_t states, differ;

/* Compares each cut in a copy with the same cut in a run of its own. */
static void compare_cuts(void *arg, const flash *f, const flash_op *op)
{
    is(arg == &states, 1);
    for (uint32_t v = 0; v < flash_variants(f, op); v++) {
        flash *copy = renew(&two, FLASH_NOR, 4, 0xFF);
        flash *again = cut_work(7, f->ops, v);
        flash_copy(copy, f);
        flash_cut(copy, 0, v);
        is(op->call == FLASH_PROG ? flash_prog(copy, op->at, op->src, op->len)
                                  : flash_erase(copy, op->at / op->len),
           FLASH_E_OFF);
        is(again->variants, flash_variants(f, op));
        for (int boot = 0; boot < 3; boot++) {
            assert_memory_equal(two.memory, three.memory, sizeof two.memory);
            flash_boot(copy);
            flash_boot(again);
        }
        again = cut_work(8, f->ops, v);
        differ += memcmp(copy->bytes, again->bytes, SIZE) != 0;
        states++;
    }
}

TEST(a_watch_can_cut_copies_and_the_same_seed_leaves_the_same_bytes)
{
    flash *f = fresh(FLASH_NOR, 4);

    states = differ = 0;
    f->watch = compare_cuts;
    f->watch_arg = &states;
    work(f);
    is(f->ops, 4);
    is(states, WORK_STATES);
    assert_in_range(differ, 4 * DRAWS, states);
}

/* ------------------------------------------------------------------- faults */

/* 3 programs after a sync; the power fails in the one after, in a sync, or
   between. */
TEST(a_cache_loses_what_was_not_synced)
{
    for (int where = 0; where < 3; where++)
        for (uint32_t kept = 0; kept < 3; kept++) {
            flash *f = fresh(CACHE, 1);
            flash_op op = { where ? FLASH_SYNC : FLASH_PROG, 99, "", !where };
            uint32_t v = 0, k;
            run(f, "y p0,4=9 s p0,1=1 p1,1=2 p2,1=3 u3");
            while (flash_torn_kind(f, &op, v, &k) != FLASH_LOSE_TAIL ||
                   k != kept)
                v++;
            is(flash_torn_count(f, &op, FLASH_LOSE_TAIL), 3);
            is(flash_torn_count(f, &op, FLASH_LOSE_SOME), DRAWS);
            if (where < 2)
                flash_cut(f, 0, v);
            else
                flash_off(f, v);
            run(f, where == 0 ? "p99,1=7:off b" : "s:off b");
            for (uint32_t i = 0; i < 3; i++)
                is(read_same(f, i, 1, i < kept ? (int)i + 1 : 9), 0);
            run(f, "r3,1=9 r99,1=0 u0 v0");
        }
}

/* ------------------------------------------------------- noise and counters */

TEST(noise_is_the_same_for_the_same_seed)
{
    flash *f = fresh(FLASH_NOR, 4);
    uint8_t first[SIZE];

    for (uint32_t i = 0; i < 3; i++) {
        flash_noise(f, 0, SIZE, i % 2);
        if (i == 0)
            memcpy(first, f->bytes, SIZE);
        is(memcmp(first, f->bytes, SIZE) != 0, i == 1);
    }
    run(f, "p252,4=0 v1:twice");
}

TEST(everything_is_counted)
{
    flash *f = fresh(FLASH_NOR, 4);
    uint32_t least, most;

    flash_wear(f, &least, &most);
    is(least + most, 0);
    run(f, "p0,8=0 p8,4=0 e0 e1 e2 e0 e1 e2 e1 e2 e3 s r0,16=ff r3,5=ff n11 "
            "p1,4:misuse");
    is(f->progs, 2);
    is(f->prog_bytes, 12);
    is(f->erases, 9);
    is(f->syncs, 1);
    is(f->reads, 2);
    is(f->read_bytes, 21);
    assert_memory_equal(f->sector_erases, ((uint32_t[]){ 2, 3, 3, 1 }), 16);
    flash_wear(f, &least, &most);
    is(least, 1);
    is(most, 3);
    run(f, "e0 e0 e0 r256,0 c0,0 e0:off b c0,0 e0:off b");
    flash_wear(f, &least, &most);
    is(most, 7);
    is(f->cuts, 2);
    is(f->boots, 2);
}

TEST(the_read_map_counts_each_byte_since_boot)
{
    flash *f = fresh(FLASH_NOR, 4);

    run(f, "m0 r0,10=ff r10,246=ff m1 r9,2=ff m2");
    assert_memory_equal(f->read_map + 8, "\1\2\2\1", 4);
    for (int i = 0; i < 300; i++)
        run(f, "r0,1=ff");
    run(f, "m255 b m0");
}
