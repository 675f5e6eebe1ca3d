/* SPDX-License-Identifier: 0BSD */
/*
 * Shows that the simulated medium of storage/flash.h does what it says: each
 * medium its rules, each cut its variants, the same each time, each fault, each
 * violation found.  The tests of the journal believe it, so what a cut must
 * leave is worked out here once more, the long way.
 */
#include "test.h"

#include "../storage/flash.h"

enum { SECTOR = 64, SECTORS = 4, SIZE = SECTOR * SECTORS };
enum { DRAWS = 6 };

typedef struct medium {
    flash f;
    uint32_t memory[FLASH_MEMORY(SECTOR, SECTORS) / 4];
    uint8_t  read_map[SIZE];
    uint8_t  durable[SIZE];
    uint16_t stamps[SIZE];
} medium;

static medium one, two;

static flash *renew(medium *m, int kind, uint32_t granule, uint8_t erased)
{
    memset(m, 0, sizeof *m);
    memset(m->memory, 0xA5, sizeof m->memory);
    memset(m->read_map, 0xA5, sizeof m->read_map);
    memset(m->durable, 0xA5, sizeof m->durable);
    memset(m->stamps, 0xA5, sizeof m->stamps);
    m->f.kind = kind;
    m->f.sector_size = SECTOR;
    m->f.sector_count = SECTORS;
    m->f.prog_size = granule;
    m->f.erased = erased;
    m->f.seed = 7;
    m->f.draws = DRAWS;
    m->f.read_map = m->read_map;
    is(flash_init(&m->f, m->memory), 0);
    return &m->f;
}

static flash *fresh(int kind, uint32_t granule)
{
    return renew(&one, kind, granule, 0xFF);
}

static flash *fresh_cache(medium *m)
{
    renew(m, FLASH_INPLACE, 1, 0);
    m->f.durable = m->durable;
    m->f.stamps = m->stamps;
    is(flash_init(&m->f, m->memory), 0);
    return &m->f;
}

static void assert_byte(flash *f, uint32_t at, int expected)
{
    uint8_t byte = (uint8_t)~expected;

    is(flash_read(f, at, &byte, 1), 0);
    is(byte, expected);
}

static void assert_bytes(flash *f, uint32_t at, int expected, uint32_t len)
{
    for (uint32_t i = 0; i < len; i++)
        assert_byte(f, at + i, expected);
}

/* Programs len bytes of one value; asserts the result. */
static void put(flash *f, uint32_t at, int byte, uint32_t len, int expected)
{
    uint8_t src[SECTOR];

    memset(src, byte, len);
    is(flash_prog(f, at, src, len), expected);
}

/* All violations so far: count of this one, and no other. */
static void assert_only(const flash *f, int what, uint32_t count)
{
    is(f->violations, count);
    is(f->violations_of[what], count);
}

/* ------------------------------------------------------------------- medium */

TEST(a_new_medium_is_blank)
{
    static const uint8_t erased[] = { 0xFF, 0x00, 0x5A };

    for (size_t i = 0; i < COUNT(erased); i++) {
        flash *f = renew(&one, FLASH_NOR, 4, erased[i]);
        is(f->size, SIZE);
        assert_bytes(f, 0, erased[i], SIZE);
    }
}

TEST(impossible_media_are_refused)
{
    flash f;

    renew(&one, FLASH_NOR, 4, 0xFF);
    f = one.f;
    f.prog_size = 0;
    is(flash_init(&f, one.memory), -1);
    f.prog_size = 5;
    is(flash_init(&f, one.memory), -1);
    f.prog_size = 4;
    f.durable = one.durable;
    is(flash_init(&f, one.memory), -1);
    f.stamps = one.stamps;      // but NOR has no cache
    is(flash_init(&f, one.memory), -1);
    f.kind = FLASH_INPLACE;
    is(flash_init(&f, one.memory), 0);
    f.sector_count = 0;
    is(flash_init(&f, one.memory), -1);
}

TEST(programs_only_move_bits_away_from_the_erased_value)
{
    static const uint8_t expected[][2] = {
        { 0xFF, 0x0C & 0x0A }, { 0x00, 0x0C | 0x0A },
        // Of 0x0F: 0C moves the bits 03, 0A the bits 05.
        { 0x0F, 0x0F ^ 0x07 },
    };

    for (size_t i = 0; i < COUNT(expected); i++) {
        flash *f = renew(&one, FLASH_NOR, 4, expected[i][0]);
        put(f, 8, 0x0C, 4, 0);
        assert_bytes(f, 8, 0x0C, 4);
        assert_only(f, FLASH_V_TWICE, 0);
        put(f, 8, 0x0A, 4, 0);
        assert_bytes(f, 8, expected[i][1], 4);
        assert_only(f, FLASH_V_TWICE, 1);
        assert_byte(f, 7, expected[i][0]);
        assert_byte(f, 12, expected[i][0]);
    }
}

TEST(a_granule_is_programmed_once_until_it_is_erased)
{
    flash *f = fresh(FLASH_NOR, 8);

    put(f, 64, 0xFF, 8, 0);             // blank bytes are programmed, too
    put(f, 72, 0x11, 8, 0);
    assert_only(f, FLASH_V_TWICE, 0);
    put(f, 64, 0x22, 8, 0);
    assert_only(f, FLASH_V_TWICE, 1);
    put(f, 64, 0x22, 24, 0);            // one violation a program
    assert_only(f, FLASH_V_TWICE, 2);
    is(flash_erase(f, 0), 0);
    put(f, 64, 0x22, 8, 0);
    assert_only(f, FLASH_V_TWICE, 3);
    is(flash_erase(f, 1), 0);
    assert_bytes(f, 0, 0xFF, SIZE);
    put(f, 64, 0x22, 24, 0);
    assert_only(f, FLASH_V_TWICE, 3);
    assert_bytes(f, 64, 0x22, 24);
}

TEST(ecc_refuses_a_second_program)
{
    flash *f = fresh(FLASH_ECC, 8);

    put(f, 0, 0xF0, 8, 0);
    put(f, 0, 0xF0, 16, FLASH_E_ECC);
    assert_only(f, FLASH_V_TWICE, 1);
    assert_bytes(f, 0, 0xF0, 8);
    assert_bytes(f, 8, 0xFF, 8);
    put(f, 8, 0x0F, 8, 0);
    is(f->ops, 2);
}

TEST(in_place_overwrites_and_has_no_erase)
{
    flash *f = fresh(FLASH_INPLACE, 1);

    put(f, 3, 0x00, 5, 0);
    put(f, 4, 0xFE, 2, 0);
    assert_byte(f, 3, 0x00);
    assert_bytes(f, 4, 0xFE, 2);
    assert_byte(f, 6, 0x00);
    is(f->violations, 0);
    is(flash_erase(f, 0), FLASH_E_MISUSE);
    assert_only(f, FLASH_V_ERASE, 1);
    assert_byte(f, 3, 0x00);
}

TEST(misuse_is_a_violation_and_does_nothing)
{
    static const struct {
        uint32_t at, len;
        int what;
    } cases[] = {
        { SIZE, 4, FLASH_V_BOUNDS }, { SIZE - 4, 8, FLASH_V_BOUNDS },
        { UINT32_MAX - 3, 8, FLASH_V_BOUNDS },
        { 4, UINT32_MAX, FLASH_V_BOUNDS },
        { 1, 4, FLASH_V_ALIGN }, { 4, 6, FLASH_V_ALIGN },
        { 8, 0, FLASH_V_ALIGN }, { SECTOR - 4, 8, FLASH_V_CROSS },
    };
    uint8_t byte = 0;

    for (size_t i = 0; i < COUNT(cases); i++) {
        flash *f = fresh(FLASH_NOR, 4);
        assert_string_equal(flash_text(f), "no violation");
        is(flash_prog(f, cases[i].at, "\0\0\0\0\0\0\0", cases[i].len),
           FLASH_E_MISUSE);
        assert_only(f, cases[i].what, 1);
        is(f->first, cases[i].what);
        is(f->first_at, cases[i].at);
        is(f->ops + f->progs, 0);
        assert_bytes(f, 0, 0xFF, SIZE);
        if (cases[i].what == FLASH_V_BOUNDS) {
            is(flash_read(f, cases[i].at, &byte, cases[i].len), FLASH_E_MISUSE);
            assert_only(f, FLASH_V_BOUNDS, 2);
            is(byte, 0);
        }
        is(flash_erase(f, SECTORS), FLASH_E_MISUSE);
        is(f->first, cases[i].what);
    }
}

/* --------------------------------------------------------------------- cuts */

TEST(a_cut_comes_at_its_operation_and_lasts_until_boot)
{
    for (uint32_t n = 0; n < 4; n++) {
        flash *f = fresh(FLASH_NOR, 1);
        uint8_t byte;
        flash_cut(f, n, FLASH_NOTHING);
        for (uint32_t i = 0; i < 4; i++) {
            is(flash_sync(f), i > n ? FLASH_E_OFF : 0);
            is(flash_read(f, 0, &byte, 1), i > n ? FLASH_E_OFF : 0);
            if (i & 1)
                is(flash_erase(f, 3), i >= n ? FLASH_E_OFF : 0);
            else
                put(f, i, 0, 1, i >= n ? FLASH_E_OFF : 0);
        }
        is(f->ops, n + 1);
        is(f->off, 1);
        flash_boot(f);
        is(f->off, 0);
        is(f->boots, 1);
        is(f->cuts, 1);
        assert_byte(f, 0, n > 0 ? 0 : 0xFF);
        assert_byte(f, 2, n > 2 ? 0 : 0xFF);
        put(f, 8, 0, 1, 0);             // the cut is over
        is(flash_erase(f, 0), 0);
        is(f->violations, 0);
    }
}

TEST(a_sync_is_cut_if_asked)
{
    flash *f = fresh(FLASH_NOR, 1);

    flash_cut(f, 0, 0);
    is(flash_sync(f), 0);
    f->cut_syncs = 1;
    is(flash_sync(f), FLASH_E_OFF);
    is(f->variants, 2);
}

/* The number of variants of each kind, as the header's list says. */
static uint32_t listed(const flash *f, int torn, int call, uint32_t len)
{
    static const char table[FLASH_TORN_KINDS][3] = {
        // P E, with n for len - 1, D for draws
        "11", "11", "nD", "DD", "D0", "D0", "DD", "10", "01", "0D", "DD", "DD",
        "DD", "00", "00",
    };
    char c = table[torn][call == FLASH_ERASE];

    if (f->kind == FLASH_INPLACE && torn == FLASH_BLANK)
        return 0;
    if (f->kind == FLASH_INPLACE && torn == FLASH_NOISE)
        return DRAWS;
    if (len == 1 && torn >= FLASH_PREFIX && torn <= FLASH_ONE)
        return 0;
    return c == 'n' ? len - 1 : c == 'D' ? DRAWS : (uint32_t)(c - '0');
}

TEST(variants_are_as_many_of_each_kind_as_listed)
{
    static const uint32_t lens[] = { 1, 2, 8, 24 };

    for (int kind = FLASH_NOR; kind <= FLASH_INPLACE; kind++)
        for (size_t i = 0; i < COUNT(lens); i++)
            for (int call = FLASH_PROG; call <= FLASH_ERASE; call++) {
                flash *f = fresh(kind, 1);
                flash_op op = { call, 0, NULL, lens[i] };
                uint32_t count[FLASH_TORN_KINDS] = { 0 }, k;
                if (call == FLASH_ERASE)
                    op.len = SECTOR;
                for (uint32_t v = 0; v < flash_variants(f, &op); v++) {
                    int torn = flash_torn_kind(f, &op, v, &k);
                    assert_in_range(torn, 0, FLASH_TORN_KINDS - 1);
                    is(k, count[torn]);
                    count[torn]++;
                }
                for (int torn = 0; torn < FLASH_TORN_KINDS; torn++)
                    is(count[torn], listed(f, torn, call, op.len));
            }
}

/* ------------------------------------------------------------ torn programs */

enum { AT = 64, LEN = 24 };

/* Programs LEN bytes at AT, cut in the k-th variant of a kind, and boots.  The
   bytes before are 0x33 in place, else erased; those meant go into `meant`. */
static void tear(flash *f, int torn, uint32_t k, uint8_t *before,
                 uint8_t *meant)
{
    flash_op op = { FLASH_PROG, AT, meant, LEN };
    uint32_t v = 0, nth;

    memset(before, f->erased, LEN);
    if (f->kind == FLASH_INPLACE) {
        memset(before, 0x33, LEN);
        put(f, AT, 0x33, LEN, 0);
    }
    for (int i = 0; i < LEN; i++)
        meant[i] = (uint8_t)(0x40 + i);
    while (flash_torn_kind(f, &op, v, &nth) != torn || nth != k)
        v++;
    flash_cut(f, 0, v);
    is(flash_prog(f, AT, meant, LEN), FLASH_E_OFF);
    is(f->off, 1);
    flash_boot(f);
}

/* How many bytes of [from, to) are as expected. */
static int alike(const uint8_t *is, const uint8_t *expected, int from, int to)
{
    int count = 0;

    for (int i = from; i < to; i++)
        count += is[i] == expected[i];
    return count;
}

/* Every bit is as before or as meant. */
static int between(const uint8_t *is, const uint8_t *before,
                   const uint8_t *meant)
{
    for (int i = 0; i < LEN; i++)
        if ((is[i] ^ before[i]) & (is[i] ^ meant[i]))
            return 0;
    return 1;
}

static int all_alike(const uint8_t *is, const uint8_t *expected)
{
    return alike(is, expected, 0, LEN) == LEN;
}

static int is_torn_as_said(int torn, int k, const uint8_t *is,
                           const uint8_t *before, const uint8_t *meant,
                           int granule)
{
    int done = alike(is, meant, 0, LEN), edge;

    switch (torn) {
    case FLASH_NOTHING:
    case FLASH_BLANK:   return all_alike(is, before);
    case FLASH_ALL:     return all_alike(is, meant);
    case FLASH_PREFIX:
        return alike(is, meant, 0, k + 1) == k + 1 &&
               alike(is, before, k + 1, LEN) == LEN - k - 1;
    case FLASH_SUFFIX:
        edge = LEN - done;
        return done && edge && alike(is, before, 0, edge) == edge &&
               alike(is, meant, edge, LEN) == done;
    case FLASH_BUT_ONE:
        return done == LEN - 1 && alike(is, before, 0, LEN) == 1;
    case FLASH_ONE:
        return done == 1 && alike(is, before, 0, LEN) == LEN - 1;
    case FLASH_BITS:
        return between(is, before, meant) && done < LEN &&
               !all_alike(is, before);
    case FLASH_NOISE:
        for (edge = 0; edge < LEN && is[edge] == meant[edge]; edge++)
            ;
        edge -= edge % granule;
        return alike(is, before, edge + granule, LEN) == LEN - edge - granule;
    default:
        return between(is, before, meant);
    }
}

TEST(a_torn_program_leaves_what_its_variant_says)
{
    static const uint8_t erased[] = { 0xFF, 0x00 };

    for (int kind = FLASH_NOR; kind <= FLASH_INPLACE; kind++)
        for (size_t e = 0; e < COUNT(erased) * 3; e++)
            for (int torn = 0; torn < FLASH_LOSE_TAIL; torn++) {
                static const uint32_t granules[] = { 1, 2, 8 };
                uint8_t before[LEN], meant[LEN], is[LEN];
                flash *f = renew(&one, kind, granules[e / 2], erased[e % 2]);
                flash_op op = { FLASH_PROG, AT, meant, LEN };
                uint32_t count = flash_torn_count(f, &op, torn);
                for (uint32_t k = 0; k < count; k++) {
                    f = renew(&one, kind, granules[e / 2], erased[e % 2]);
                    f->torn_noise = 1;
                    tear(f, torn, k, before, meant);
                    if (kind == FLASH_ECC)      // past what reading may say
                        memcpy(is, f->bytes + AT, LEN);
                    else
                        is(flash_read(f, AT, is, LEN), 0);
                    assert_true(is_torn_as_said(torn, (int)k, is, before, meant,
                                                (int)f->prog_size));
                    is(f->bytes[AT - 1], f->erased);
                    is(f->bytes[AT + LEN], f->erased);
                    is(f->violations, 0);
                }
            }
}

TEST(what_was_being_programmed_counts_as_programmed)
{
    for (int kind = FLASH_NOR; kind <= FLASH_ECC; kind++)
        for (int torn = 0; torn < FLASH_LOSE_TAIL; torn++)
            for (uint32_t k = 0; k < LEN - 1; k++)
                for (uint32_t g = 0; g < LEN; g += 8) {
                    uint8_t before[LEN], meant[LEN];
                    flash *f = fresh(kind, 8);
                    flash_op op = { FLASH_PROG, AT, meant, LEN };
                    int free, what;
                    if (k >= flash_torn_count(f, &op, torn))
                        continue;
                    tear(f, torn, k, before, meant);
                    free = torn == FLASH_NOTHING ||
                           (torn == FLASH_PREFIX && g > k + 1);
                    what = torn == FLASH_ALL ? FLASH_V_TWICE : FLASH_V_DOUBT;
                    put(f, AT + g, 0, 8,
                        free || kind == FLASH_NOR ? 0 : FLASH_E_ECC);
                    assert_only(f, what, !free);
                    is(flash_erase(f, AT / SECTOR), 0);
                    put(f, AT + g, 0, 8, 0);
                    assert_bytes(f, AT + g, 0, 8);
                    assert_only(f, what, !free);
                }
}

TEST(reading_a_torn_granule_is_an_error_with_ecc)
{
    for (uint32_t k = 0; k < LEN - 1; k++)
        for (uint32_t i = 0; i < LEN; i++) {
            uint8_t before[LEN], meant[LEN], byte = 0, again[8];
            flash *f = fresh(FLASH_ECC, 8);
            int torn = (k + 1) % 8 && i / 8 == (k + 1) / 8;
            tear(f, FLASH_PREFIX, k, before, meant);
            is(flash_read(f, AT + i, &byte, 1), torn ? FLASH_E_ECC : 0);
            if (!torn)
                is(byte, i <= k ? meant[i] : 0xFF);
            // A read that touches it fails, whole; without it none does.
            is(flash_read(f, AT, before, LEN), (k + 1) % 8 ? FLASH_E_ECC : 0);
            for (uint32_t g = 0; g < LEN; g += 8)
                is(memcmp(before + g, f->bytes + AT + g, 8) != 0,
                   (k + 1) % 8 != 0);
            f->torn_noise = 1;
            is(flash_read(f, AT + i / 8 * 8, before, 8), 0);
            is(flash_read(f, AT + i / 8 * 8, again, 8), 0);
            is(memcmp(before, again, 8) != 0, torn);
        }
}

/* ------------------------------------------------------------ unstable bits */

/* 0 as meant, 1 as before, 2 neither. */
static int mood_of(flash *f, const uint8_t *before, const uint8_t *meant)
{
    uint8_t is[LEN];

    is(flash_read(f, AT, is, LEN), 0);
    assert_true(between(is, before, meant));
    return all_alike(is, meant) ? 0 : all_alike(is, before) ? 1 : 2;
}

TEST(bits_unstable_by_boot_take_all_orders_of_moods)
{
    uint8_t before[LEN], meant[LEN];

    for (int kind = FLASH_NOR; kind <= FLASH_INPLACE; kind += FLASH_INPLACE)
        for (uint32_t boots = 0; boots < 4; boots++) {
            int orders = 0;
            for (uint32_t k = 0; k < 6; k++) {
                flash *f = fresh(kind, 8);
                int mood[4];
                f->boots = boots;
                tear(f, FLASH_SWAY_BOOT, k, before, meant);
                for (int i = 0; i < 4; i++, flash_boot(f)) {
                    mood[i] = mood_of(f, before, meant);
                    is(mood_of(f, before, meant), mood[i]);
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

TEST(an_unstable_granule_reads_well_or_not_at_all_with_ecc)
{
    uint8_t before[LEN], meant[LEN], is[LEN];

    for (uint32_t k = 0; k < 6; k++) {
        flash *f = fresh(FLASH_ECC, 8);
        int moods = 0;
        tear(f, FLASH_SWAY_BOOT, k, before, meant);
        for (int i = 0; i < 3; i++, flash_boot(f))
            if (flash_read(f, AT, is, LEN) == FLASH_E_ECC)
                moods |= 4;
            else
                moods |= all_alike(is, meant) ? 1 :
                         all_alike(is, before) ? 2 : 8;
        is(moods, 7);
    }
}

/* -------------------------------------------------------------- torn erases */

/* Erases a sector full of 0x69, cut in the k-th variant of a kind, and boots;
   the sector as it is stored then. */
static const uint8_t *tear_erase(flash *f, int torn, uint32_t k)
{
    flash_op op = { FLASH_ERASE, SECTOR, NULL, SECTOR };
    uint32_t v = 0, nth;

    put(f, SECTOR, 0x69, SECTOR, 0);
    put(f, 2 * SECTOR, 0x69, SECTOR, 0);
    while (flash_torn_kind(f, &op, v, &nth) != torn || nth != k)
        v++;
    flash_cut(f, 0, v);
    is(flash_erase(f, 1), FLASH_E_OFF);
    is(f->variants, flash_variants(f, &op));
    flash_boot(f);
    assert_byte(f, SECTOR - 1, f->erased);
    assert_byte(f, 2 * SECTOR, 0x69);
    return f->bytes + SECTOR;
}

/* How many bytes from `from` on have this value, in a row. */
static int run_of(const uint8_t *bytes, int from, int value)
{
    int i = from;

    while (i < SECTOR && bytes[i] == value)
        i++;
    return i - from;
}

static int is_erased_as_said(int torn, const uint8_t *is, uint8_t erased)
{
    int other = 0, mixed = 0, part;

    for (int i = 0; i < SECTOR; i++) {
        other += is[i] != 0x69 && is[i] != erased;
        mixed += ((is[i] ^ 0x69) & (is[i] ^ erased)) != 0;
    }
    switch (torn) {
    case FLASH_NOTHING: return run_of(is, 0, 0x69) == SECTOR;
    case FLASH_ALL:     return run_of(is, 0, erased) == SECTOR;
    case FLASH_PREFIX:
        part = run_of(is, 0, erased);
        return part && part < SECTOR && run_of(is, part, 0x69) == SECTOR - part;
    case FLASH_SUFFIX:
        part = run_of(is, 0, 0x69);
        return part && part < SECTOR &&
               run_of(is, part, erased) == SECTOR - part;
    case FLASH_BITS:    return other && !mixed;
    case FLASH_ZERO:    return run_of(is, 0, (uint8_t)~erased) == SECTOR;
    case FLASH_NOISE:   return mixed > SECTOR / 2;
    default:            return run_of(is, 0, erased) == SECTOR;
    }
}

TEST(a_torn_erase_leaves_what_its_variant_says)
{
    static const uint8_t erased[] = { 0xFF, 0x00 };

    for (int kind = FLASH_NOR; kind <= FLASH_ECC; kind++)
        for (size_t e = 0; e < COUNT(erased); e++)
            for (int torn = 0; torn < FLASH_LOSE_TAIL; torn++)
                for (uint32_t k = 0; k < DRAWS; k++) {
                    flash *f = renew(&one, kind, 8, erased[e]);
                    flash_op op = { FLASH_ERASE, SECTOR, NULL, SECTOR };
                    int free = torn == FLASH_ALL;
                    int what = torn ? FLASH_V_DOUBT : FLASH_V_TWICE;
                    if (k >= flash_torn_count(f, &op, torn))
                        continue;
                    assert_true(is_erased_as_said(torn, tear_erase(f, torn, k),
                                                  erased[e]));
                    // Nothing of it may be programmed until an erase ends.
                    for (uint32_t i = 0; i < SECTOR; i += 8)
                        put(f, SECTOR + i, 0x69, 8,
                            free || kind == FLASH_NOR ? 0 : FLASH_E_ECC);
                    assert_only(f, what, free ? 0 : SECTOR / 8);
                    is(flash_erase(f, 1), 0);
                    assert_bytes(f, SECTOR, erased[e], SECTOR);
                    put(f, SECTOR, 0x69, SECTOR, 0);
                    assert_bytes(f, SECTOR, 0x69, SECTOR);
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

TEST(the_same_seed_and_calls_leave_the_same_bytes)
{
    uint32_t ops = 0, states = 0, differ = 0, count = 1;

    for (uint32_t n = 0; count; n++)
        for (uint32_t v = count = 0; v == 0 || v < count; v++) {
            uint8_t a[SIZE], b[SIZE];
            flash *f = renew(&one, FLASH_NOR, 4, 0xFF);
            flash *g = renew(&two, FLASH_NOR, 4, 0xFF);
            flash_cut(f, n, v);
            flash_cut(g, n, v);
            work(f);
            work(g);
            count = f->variants;
            if (!count)
                break;
            ops += v == 0;
            states++;
            for (int boot = 0; boot < 3; boot++) {
                flash_boot(f);
                flash_boot(g);
                is(flash_read(f, 0, a, SIZE), 0);
                is(flash_read(g, 0, b, SIZE), 0);
                assert_memory_equal(a, b, SIZE);
            }
            is(f->violations, 0);
            renew(&two, FLASH_NOR, 4, 0xFF);
            g->seed = 8;
            flash_cut(g, n, v);
            work(g);
            differ += memcmp(f->bytes, g->bytes, SIZE) != 0;
        }
    is(ops, 4);
    is(states, WORK_STATES);
    assert_in_range(differ, 4 * DRAWS, states);
}

/* Compares each cut in a copy with the same cut in a run of its own. */
typedef struct comparison {
    medium *copy, *again;
    uint32_t states;
} comparison;

static void compare_cuts(void *arg, const flash *f, const flash_op *op)
{
    comparison *c = (comparison *)arg;

    for (uint32_t v = 0; v < flash_variants(f, op); v++) {
        flash *copy = renew(c->copy, FLASH_NOR, 4, 0xFF);
        flash *again = renew(c->again, FLASH_NOR, 4, 0xFF);
        flash_copy(copy, f);
        flash_cut(copy, 0, v);
        if (op->call == FLASH_PROG)
            is(flash_prog(copy, op->at, op->src, op->len), FLASH_E_OFF);
        else
            is(flash_erase(copy, op->at / op->len), FLASH_E_OFF);
        flash_cut(again, f->ops, v);
        work(again);
        assert_memory_equal(c->copy->memory, c->again->memory,
                            sizeof c->copy->memory);
        is(copy->ops, again->ops);
        is(copy->prog_bytes, again->prog_bytes);
        is(copy->erases, again->erases);
        is(copy->violations, 0);
        c->states++;
    }
}

TEST(a_watch_can_cut_copies)
{
    static medium third;
    comparison c = { &two, &third, 0 };
    flash *f = fresh(FLASH_NOR, 4);

    f->watch = compare_cuts;
    f->watch_arg = &c;
    work(f);
    is(f->off, 0);
    is(f->ops, 4);
    is(c.states, WORK_STATES);
}

/* ------------------------------------------------------------------- faults */

TEST(a_callback_fails_at_its_call_once_or_for_ever)
{
    for (int call = 0; call < FLASH_CALLS; call++)
        for (uint32_t n = 0; n < 3; n++)
            for (int forever = 0; forever < 2; forever++) {
                flash *f = fresh(FLASH_NOR, 1);
                flash_fail(f, call, n, FLASH_UNDONE, forever);
                for (uint32_t i = 0; i < 5; i++) {
                    int bad = i == n || (forever && i > n);
                    uint8_t byte = 0;
                    int r[FLASH_CALLS];
                    r[FLASH_READ] = flash_read(f, 0, &byte, 1);
                    r[FLASH_PROG] = flash_prog(f, i, &byte, 1);
                    r[FLASH_ERASE] = flash_erase(f, 3);
                    r[FLASH_SYNC] = flash_sync(f);
                    for (int c = 0; c < FLASH_CALLS; c++)
                        is(r[c], c == call && bad ? FLASH_E_FAULT : 0);
                }
                flash_fail(f, call, 0, 0, 0);
                put(f, 10, 0, 1, 0);
                is(f->violations, 0);
            }
}

TEST(a_failing_program_is_done_or_half_done_or_not)
{
    static const struct {
        int how, result, done, what;    // what: of a second program there
    } cases[] = {
        { FLASH_UNDONE, FLASH_E_FAULT, 0, FLASH_V_DOUBT },
        { FLASH_DONE, FLASH_E_FAULT, 8, FLASH_V_TWICE },
        { FLASH_HALF, FLASH_E_FAULT, 4, FLASH_V_DOUBT },
        { FLASH_SILENT, FLASH_OK, 0, FLASH_V_TWICE },
    };

    for (size_t i = 0; i < COUNT(cases); i++)
        for (int kind = FLASH_NOR; kind <= FLASH_INPLACE; kind++) {
            flash *f = fresh(kind, kind == FLASH_ECC ? 4 : 2);
            uint32_t done = (uint32_t)cases[i].done;
            flash_fail(f, FLASH_PROG, 0, cases[i].how, 0);
            put(f, 0, 0x11, 8, cases[i].result);
            assert_bytes(f, 0, 0x11, done);
            assert_bytes(f, done, 0xFF, 8 - done);
            put(f, 0, 0x11, 8, kind == FLASH_ECC ? FLASH_E_ECC : 0);
            assert_only(f, cases[i].what, kind != FLASH_INPLACE);
        }
    flash *f = fresh(FLASH_ECC, 8);
    uint8_t byte;
    flash_fail(f, FLASH_PROG, 0, FLASH_HALF, 0);
    put(f, 0, 0x11, 8, FLASH_E_FAULT);
    is(flash_read(f, 0, &byte, 1), FLASH_E_ECC);
}

TEST(a_failing_erase_is_done_or_half_done_or_not)
{
    static const struct {
        int how, result, erased;
    } cases[] = {
        { FLASH_UNDONE, FLASH_E_FAULT, 0 },
        { FLASH_DONE, FLASH_E_FAULT, SECTOR },
        { FLASH_HALF, FLASH_E_FAULT, SECTOR / 2 },
        { FLASH_SILENT, FLASH_OK, 0 },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        flash *f = fresh(FLASH_NOR, 4);
        uint32_t erased = (uint32_t)cases[i].erased;
        put(f, 0, 0x11, SECTOR, 0);
        flash_fail(f, FLASH_ERASE, 0, cases[i].how, 0);
        is(flash_erase(f, 0), cases[i].result);
        assert_bytes(f, 0, 0xFF, erased);
        assert_bytes(f, erased, 0x11, SECTOR - erased);
        put(f, 0, 0x22, 4, 0);
        is(f->violations,
           cases[i].how == FLASH_UNDONE || cases[i].how == FLASH_HALF);
    }
}

TEST(a_bad_sector_is_bad_alone)
{
    flash *f = fresh(FLASH_NOR, 4);
    uint8_t is[8];

    put(f, SECTOR, 0x11, 8, 0);
    f->bad[1] = FLASH_BAD_READ;
    is(flash_read(f, SECTOR - 4, is, 8), FLASH_E_FAULT);
    is(flash_read(f, SECTOR - 8, is, 8), 0);
    is(flash_read(f, 2 * SECTOR, is, 8), 0);
    is(flash_read(f, SECTOR, is, 0), 0);
    f->bad[1] = FLASH_BAD_PROG | FLASH_BAD_ERASE;
    put(f, SECTOR + 8, 0, 4, FLASH_E_FAULT);
    put(f, 0, 0, 4, 0);
    is(flash_erase(f, 1), FLASH_E_FAULT);
    is(flash_erase(f, 2), 0);
    assert_bytes(f, SECTOR, 0x11, 8);
    assert_bytes(f, SECTOR + 8, 0xFF, 4);
    f->bad[1] = FLASH_STUCK_PROG | FLASH_STUCK_ERASE;
    put(f, SECTOR + 12, 0, 4, 0);
    assert_bytes(f, SECTOR + 12, 0xFF, 4);
    is(flash_erase(f, 1), 0);
    assert_bytes(f, SECTOR, 0x11, 8);
    f->bad[1] = 0;
    put(f, SECTOR, 0x12, 4, 0);         // it was told that it is erased
    assert_bytes(f, SECTOR, 0x10, 4);
    is(f->violations, 0);
}

/* -------------------------------------------------------------------- cache */

TEST(a_cache_loses_what_was_not_synced)
{
    // 3 programs behind a sync; the power goes in the one after, in a sync, or
    // between.
    for (int where = 0; where < 3; where++)
        for (uint32_t kept = 0; kept < 3; kept++) {
            flash *f = fresh_cache(&one);
            flash_op op = { FLASH_PROG, 99, "", 1 };
            uint32_t v = 0, k;
            f->cut_syncs = 1;
            put(f, 0, 9, 4, 0);
            is(flash_sync(f), 0);
            for (uint32_t i = 0; i < 3; i++)
                put(f, i, (int)i + 1, 1, 0);
            is(f->unsynced, 3);
            op.call = where ? FLASH_SYNC : FLASH_PROG;
            op.len = where ? 0 : 1;
            while (flash_torn_kind(f, &op, v, &k) != FLASH_LOSE_TAIL ||
                   k != kept)
                v++;
            is(flash_torn_count(f, &op, FLASH_LOSE_TAIL), 3);
            is(flash_torn_count(f, &op, FLASH_LOSE_SOME), DRAWS);
            if (where < 2)
                flash_cut(f, 0, v);
            if (where == 0)
                put(f, 99, 7, 1, FLASH_E_OFF);
            else if (where == 1)
                is(flash_sync(f), FLASH_E_OFF);
            else
                flash_off(f, v);
            flash_boot(f);
            for (uint32_t i = 0; i < 3; i++)
                assert_byte(f, i, i < kept ? (int)i + 1 : 9);
            assert_byte(f, 3, 9);
            assert_byte(f, 99, 0);
            is(f->unsynced, 0);
            is(f->violations, 0);
        }
}

TEST(a_cache_keeps_what_was_synced_or_not_cut)
{
    flash *f = fresh_cache(&one);

    put(f, 0, 1, 8, 0);
    flash_boot(f);                      // a restart: the cache lives
    assert_bytes(f, 0, 1, 8);
    is(f->unsynced, 1);
    is(flash_sync(f), 0);
    is(f->unsynced, 0);
    put(f, 0, 2, 8, 0);
    flash_off(f, FLASH_NOTHING);
    flash_boot(f);
    assert_bytes(f, 0, 2, 8);           // all of it reached the medium
    put(f, 0, 3, 8, 0);
    flash_off(f, 2);                    // none of it
    flash_boot(f);
    assert_bytes(f, 0, 2, 8);
    // A program that is torn is as it is torn, and what was before it stays.
    put(f, 8, 4, 8, 0);
    flash_cut(f, 0, FLASH_PREFIX);
    put(f, 0, 4, 8, FLASH_E_OFF);
    flash_boot(f);
    assert_byte(f, 0, 4);
    assert_bytes(f, 1, 2, 7);
    assert_bytes(f, 8, 4, 8);
}

TEST(a_failed_sync_is_done_or_not_or_drops)
{
    static const int hows[] = { FLASH_UNDONE, FLASH_DONE, FLASH_SILENT,
                                FLASH_HALF };

    for (size_t i = 0; i < COUNT(hows); i++)
        for (int again = 0; again < 2; again++) {
            flash *f = fresh_cache(&one);
            put(f, 0, 1, 8, 0);
            flash_fail(f, FLASH_SYNC, 0, hows[i], 0);
            is(flash_sync(f), hows[i] == FLASH_SILENT ? 0 : FLASH_E_FAULT);
            assert_bytes(f, 0, 1, 8);
            is(f->unsynced, hows[i] == FLASH_UNDONE || hows[i] == FLASH_SILENT);
            put(f, 8, 1, 1, 0);
            if (again)
                is(flash_sync(f), 0);
            else
                flash_cut(f, 0, 0);
            flash_off(f, again ? 0 : 2);        // 2: none of what is unsynced
            flash_boot(f);
            assert_byte(f, 8, again);
            assert_bytes(f, 0, hows[i] == FLASH_DONE ||
                               (again && hows[i] != FLASH_HALF), 8);
        }
}

/* ------------------------------------------------------------------- damage */

TEST(images_can_be_damaged_and_replaced)
{
    flash *f = fresh(FLASH_NOR, 4);

    flash_load(f, 2, "\xFF\xFF\x01\x02", 4);
    assert_byte(f, 3, 0xFF);
    assert_byte(f, 4, 1);
    put(f, 0, 0, 4, 0);                 // blank still
    is(f->violations, 0);
    put(f, 4, 0, 4, 0);
    assert_only(f, FLASH_V_TWICE, 1);
    flash_fill(f, SECTOR, SECTOR, 0x55);
    assert_bytes(f, SECTOR, 0x55, SECTOR);
    assert_byte(f, 2 * SECTOR, 0xFF);
    flash_flip(f, SECTOR, 7);
    assert_byte(f, SECTOR, 0xD5);
    flash_truncate(f, SECTOR + 4);
    assert_byte(f, SECTOR + 3, 0x55);
    assert_bytes(f, SECTOR + 4, 0xFF, SIZE - SECTOR - 4);
    put(f, SECTOR + 4, 0, 4, 0);
    put(f, SECTOR, 0, 4, 0);
    assert_only(f, FLASH_V_TWICE, 2);
    flash_noise(f, 0, SIZE, 1);
    memcpy(two.read_map, f->bytes, SIZE);
    flash_noise(f, 0, SIZE, 2);
    assert_memory_not_equal(two.read_map, f->bytes, SIZE);
    flash_noise(f, 0, SIZE, 1);
    assert_memory_equal(two.read_map, f->bytes, SIZE);
    put(f, SIZE - 4, 0, 4, 0);
    assert_only(f, FLASH_V_TWICE, 3);
}

/* ----------------------------------------------------------------- counters */

TEST(everything_is_counted)
{
    flash *f = fresh(FLASH_NOR, 4);
    uint32_t least, most;
    uint8_t is[16];

    put(f, 0, 0, 8, 0);
    put(f, 8, 0, 4, 0);
    for (uint32_t i = 0; i < 9; i++)
        is(flash_erase(f, i % 3 + (i > 5)), 0);
    is(flash_sync(f), 0);
    is(flash_read(f, 0, is, 16), 0);
    is(flash_read(f, 3, is, 5), 0);
    is(f->progs, 2);
    is(f->prog_bytes, 12);
    is(f->erases, 9);
    is(f->syncs, 1);
    is(f->reads, 2);
    is(f->read_bytes, 21);
    is(f->ops, 11);
    is(f->sector_erases[0], 2);
    is(f->sector_erases[1], 3);
    is(f->sector_erases[2], 3);
    flash_wear(f, &least, &most);
    is(least, 1);
    is(most, 3);
    for (int i = 0; i < 3; i++)
        is(flash_erase(f, 0), 0);
    flash_wear(f, &least, &most);
    is(most, 5);
    f = fresh(FLASH_NOR, 4);
    flash_wear(f, &least, &most);
    is(least + most, 0);
    is(flash_read(f, SIZE, is, 0), 0);
}

TEST(the_read_map_counts_each_byte_since_boot)
{
    flash *f = fresh(FLASH_NOR, 4);
    uint8_t is[SIZE];

    is(flash_most_read(f), 0);
    is(flash_read(f, 0, is, 10), 0);
    is(flash_read(f, 10, is, SIZE - 10), 0);
    is(flash_most_read(f), 1);
    is(flash_read(f, 9, is, 2), 0);
    is(flash_most_read(f), 2);
    is(f->read_map[8], 1);
    is(f->read_map[9], 2);
    is(f->read_map[10], 2);
    is(f->read_map[11], 1);
    for (int i = 0; i < 300; i++)
        is(flash_read(f, 0, is, 1), 0);
    is(flash_most_read(f), UINT8_MAX);
    flash_boot(f);
    is(flash_most_read(f), 0);
}
