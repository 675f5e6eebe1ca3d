/* SPDX-License-Identifier: 0BSD */
/*
 * The ring of sectors: it never runs full; its cost; the storage after an
 * interrupted rotation.  The explorer (tests/storage) shows that no series of
 * cuts loses anything.
 */
#include "scenario.h"

static const scenario scenarios[] = {
    // R4: whichever of the newest sectors a boot takes for the head, what it
    // needs is there.
    { "before_a_rotation_three_sectors_are_dead",
      "times=50 Aa Ab Ac Ad Ae Af Ag Ah Xa dead Ba Ca dead Xb dead Bb Cb dead "
      "Xc dead Bc Cc dead Xd dead Bd Cd dead Xe dead Be Ce dead Xf dead Bf Cf "
      "dead Xg dead Bg Cg dead Xh dead Bh Ch dead" },
    { "idle_work_comes_to_an_end",
      "Aa Ab Ac Ad Ae Af Ag Ah M m:ok untouched m:ok untouched m:ok untouched "
      "m:ok untouched m:ok untouched m:ok untouched" },
};

TESTS(scenarios, run_scenario)

static const medium w1 = { "NOR, 4096", FLASH_NOR, 0, 16, 4096, 0xFF };

/* Live items are relocated in idle time, if there is any: a call that rotates
   has its record to write, and what a new head takes. */
TEST(with_idle_time_no_call_relocates)
{
    static const char *const lines[] = { "X@", "M", "B@", "C@,len=18" };

    for (size_t m = 0; m < COUNT(media); m++)
        for (int idle = 0; idle < 2; idle++) {
            uint32_t most = 0;
            device_on(media[m], "");
            for (unsigned key = 0; key < 8; key++)
                run_of("B@ C@,len=18", key);
            for (unsigned n = 0; n < 1200; n++) {
                if (n % 4 == 1 && !idle)
                    continue;
                run_of(lines[n % 4], n / 4 % 4);
                if (n % 4 != 1 && the.progs > most)
                    most = the.progs;
            }
            if (media[m]->kind != FLASH_INPLACE)    // else it is wiped, too
                assert_in_range(most, 2, idle ? 5 : 20);
        }
}

/* Nor does a boot rewrite anything that was found on blank storage, or after a
   record that has nothing but the time: not even an empty state. */
TEST(a_boot_that_has_nothing_to_rewrite_relocates_nothing)
{
    static const char *const lines[] = {
        "state=0 P Ba rotated", "P Ba rotated",
        "state=0 Ba Ca wait20000 M P Bb rotated",
        "Ba,len=1 Ca wait20000 M P Bb rotated",
        "state=0 Ba Ca wait20000 M P Bb rotated P Bc",
    };

    for (size_t m = 0; m < COUNT(media); m++)
        for (size_t i = 0; i < COUNT(lines); i++) {
            if (media[m]->kind == FLASH_INPLACE)    // else it is wiped, too
                continue;
            device_on(media[m], lines[i]);
            is(relocated() > 0, i == 4);        // the claim of the boot before
        }
}

/* R5: of an old sector only what would not find room later. */
TEST(no_more_is_relocated_than_must_be)
{
    static const char *const lines[] = { "B94", "R94" };

    device_on(&w1, "capacity=60 keys=96 retention=2592000000");
    for (unsigned key = 0; key < 40; key++)
        run_of("B@ C@,len=18", key);
    for (unsigned n = 0; n < 1000 && relocated() <= 0; n++)
        run(lines[n % 2]);
    assert_in_range(relocated(), 1, 5);
}

/* The length of the record of a claim with a retention, and of the one that is
   relocated later. */
static void lengths_of_claim(const char *claim, uint32_t *first,
                             uint32_t *relocated_later)
{
    device_on(&nor, claim);
    *first = newest().len;
    for (unsigned n = 0; n < 1000 && relocated() <= 0; n++)
        run(n % 2 ? "R6" : "B6");
    is(relocated(), 1);
    *relocated_later = wrote.of[1].len;         // after the erase
}

/* A claim has no age: only the retention makes its record longer. */
TEST(a_relocated_claim_takes_no_more_than_its_token)
{
    uint32_t first, longer, relocated, relocated_longer;

    lengths_of_claim("Ba,lease,retention=100", &first, &relocated);
    lengths_of_claim("Ba,lease,retention=2592000000", &longer,
                     &relocated_longer);
    is(longer - first, 4);
    is(relocated_longer - relocated, 4);
}

/* It takes more steps if an erase takes longer. */
TEST(idle_work_starts_an_erase_and_does_not_wait_for_it)
{
    uint32_t more = 0;

    device_on(&zeros, "rotate1")->polls = 5;
    while (answer('m', 0) == IDEM_MORE)
        more++;
    assert_in_range(more, 5, 20);
    is(the.polls_left, 0);
}

TEST(wear_is_levelled)
{
    uint32_t least, most;

    device_on(&nor_8, "A0 A1 A2");
    run_of("rotate@", 40 * the.storage.sector_count);
    flash_wear(&the.medium, &least, &most);
    assert_in_range(least, 39, 41);
    assert_in_range(most - least, 0, 1);
}

/* Erases the next sector by programs, with a cut in operation n; returns how
   many variants that has, 0: there are fewer operations. */
static uint32_t erase_by_programs(uint32_t n, uint32_t variant)
{
    uint32_t size = cached.sector_size, erased, variants;
    uint8_t was[512];
    const uint8_t *now;

    device_on(&cached, "Aa rotate13");
    erased = (newest_sector() + size) % the.medium.size;
    now = the.medium.bytes + erased;
    memcpy(was, now, size);
    assert_int_not_equal(was[0], the.medium.erased);
    flash_cut(&the.medium, n, variant);
    run("M");
    variants = the.medium.off ? the.medium.variants : 0;
    run("P");
    if (!variants || memcmp(now + HEADER_BYTES, was + HEADER_BYTES,
                            size - HEADER_BYTES) != 0)
        for (uint32_t i = 0; i < (variants ? HEADER_BYTES : size); i++)
            is(now[i], the.medium.erased);
    return variants;
}

/* .. and where it is made by programs: every byte is erased in the end, and
   before any other one those of the header. */
TEST(an_erase_by_programs_begins_with_the_header)
{
    uint32_t count = 1;

    for (uint32_t n = 0; count; n++)
        for (uint32_t v = 0; v < count || !v; v++)
            count = erase_by_programs(n, v);
}

/* What a record does not fill of its last granule is erased. */
TEST(a_granule_is_filled_with_erased_bytes)
{
    static const char *const lines[] = { "Ba", "Ca,len=7", "Bb", "Cb,len=2",
                                         "Bc", "Rc" };
    operation exact[COUNT(lines)];

    device_on(&nor, "");
    for (size_t i = 0; i < COUNT(lines); i++) {
        run(lines[i]);
        exact[i] = newest();
    }
    device_on(&wide, "");
    for (size_t i = 0; i < COUNT(lines); i++) {
        run(lines[i]);
        is(newest().len, 64);
        for (uint32_t at = exact[i].len; at < 64; at++)
            is(the.medium.bytes[newest().at + at], the.medium.erased);
    }
}

/* The operation that writes a header, of a boot's first begin; 0: none does. */
static uint32_t header_at(uint32_t *found)
{
    for (uint32_t i = 0; i < wrote.count; i++)
        if (wrote.of[i].call == FLASH_PROG &&
            wrote.of[i].at % the.medium.sector_size == 0)
            *found = i + 1;
    return *found ? wrote.of[*found - 1].at : 0;
}

/* The power goes when a boot's first header is written, and nothing after it:
   it may read well now and not later, so the next boot does not rely on it, and
   whatever becomes of it is no matter. */
TEST(an_unstable_header_leaves_the_chain)
{
    static const char line[] = "Ba Ca rotate2 Bb Cb Bc Sc P";

    for (size_t m = 0; m < COUNT(media); m++) {
        uint32_t size = media[m]->sector_size, cut = 0, header;
        device_on(media[m], line);
        run("Bd");
        header = header_at(&cut);
        device_on(media[m], line);
        flash_cut(&the.medium, cut, FLASH_NOTHING);
        run("Bd");
        is(the.medium.off, 1);
        run("P Ba:replay Bb:replay Bc:replay s Be Ce");
        if (newest_sector() != header)              // else it was used again
            damage(header, size, ANYTHING);
        run("P lost0 Ba:replay Bb:replay Bc:replay Be:replay");
    }
}

/* A key or the state would be lost; or there are more sectors than there can. */
TEST(idem_check_finds_a_wrong_tail)
{
    static const char *const lines[] = { "Ba Ca", "Ba Ca,state=4 Xa" };

    for (size_t i = 0; i < COUNT(lines); i++) {
        idem_table *t = device_on(&nor, lines[i])->table;
        uint32_t sectors = the.storage.sector_count;
        run_of("rotate@", 3 * sectors);
        inside_move_tail(t, sectors);
        is(idem_check(t), 16);
        inside_move_tail(t, 0 - 2 * sectors);
        is(idem_check(t), 17);
        inside_move_tail(t, sectors);
        is(idem_check(t), 0);
    }
}

/* No journal is in such a state: a head after the newest sector; an end after
   the place of the next record, or that outside its sector, or in it before the
   boot has a head; or idle work that is done before that. */
TEST(idem_check_finds_a_state_that_is_none)
{
    idem_table *t = device_on(&nor, "Ba Ca")->table;
    uint32_t by = 2 * the.storage.sector_size;

    for (unsigned part = 0; inside_move_state(t, part, by); part++) {
        is(idem_check(t), 21);
        inside_move_state(t, part, 0 - by);
        is(idem_check(t), 0);
    }
    run("P");
    inside_set_prepared(t, 1);
    is(idem_check(t), 21);
    inside_set_prepared(t, 0);
    is(idem_check(t), 0);
}

/* One that is not the configuration's would have live sectors written over. */
TEST(idem_check_finds_a_wrong_size)
{
    idem_table *t = device_on(&nor, "Ba Ca")->table;

    for (unsigned part = 0; inside_move_size(t, part, 8); part++) {
        is(idem_check(t), 13);
        inside_move_size(t, part, -8);
        is(idem_check(t), 0);
    }
}

/* What is relocated for a slot without a key would empty another. */
TEST(idem_check_finds_a_sector_that_is_needed_for_nothing)
{
    idem_table *t = device_on(&nor, "Ba Ca")->table;

    inside_set_need(t, t->capacity - 1, t->journal->sequence);
    is(idem_check(t), 16);
}

TEST(idem_check_finds_a_key_that_needs_no_sector)
{
    idem_table *t = device_on(&nor, "Ba Ca")->table;

    inside_set_need(t, the.held[0].slot, UINT32_MAX);
    is(idem_check(t), 16);
}

/* At the end of tokens positions wrap: in sectors that take no claim. */
TEST(idem_check_finds_a_token_that_was_not_granted)
{
    idem_table *t = device_on(&nor, "Ba Ca")->table;

    t->journal->sequence = 0;
    is(idem_check(t), 9);
    t = device_on(&nor, "Ba Ca")->table;
    inside_clear_token(t, the.held[0].slot);
    is(idem_check(t), 9);
    t = device_on(&nor, "Ba Ca")->table;
    inside_start_far(t, inside_last_sequence(t));
    is(idem_check(t), 0);
}

/* Until a sync the outcome of a claim has its key: also where the low half of
   positions wraps inside a sector. */
TEST(s3_a_claim_of_a_batch_is_not_durable_on_either_side_of_4_gb)
{
    device *d = device_on(&nor, "size=384 batch unjudged");
    uint32_t sequence = (uint32_t)((UINT64_C(1) << 32) / 384);
    unsigned seen = 0;

    if (sizeof(idem_token) != 8)
        skip();
    inside_start_far(d->table, sequence - 2);
    while (inside_sequence(d->table) <= sequence) {
        uint32_t at = inside_sequence(d->table);
        run("Ba Bb");
        at -= inside_sequence(d->table);
        run("Ca");
        if (at == 0 && inside_sequence(d->table) == sequence) {
            assert_true(d->medium.bytes[newest().at] & 0x08);
            seen++;
        }
        run("Rb Xa");
    }
    assert_in_range(seen, 2, 20);
}

/* A record has the low half of a token: the other follows from its sector. */
TEST(s1_tokens_whose_low_half_wraps_are_known_after_a_restart)
{
    idem_table *t = device_on(&nor, "")->table;
    idem_claim claims[3];

    if (sizeof(idem_token) == 4)
        skip();
    inside_start_far(t, (uint32_t)((UINT64_C(1) << 32) / the.storage.sector_size)
                            - 3);
    run("Ba Ca,confirm rotate2 Bb Cb,confirm rotate12 Bc Cc,confirm");
    memcpy(claims, the.held, sizeof claims);
    run("P");
    for (size_t i = 0; i < COUNT(claims); i++)
        is(idem_delivered(the.table, &claims[i]), IDEM_OK);
}

