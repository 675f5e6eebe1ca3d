/* SPDX-License-Identifier: 0BSD */
/*
 * Callbacks that fail: failures use up nothing that works (S7), whatever fails,
 * and for how long.  That one call that fails changed nothing is in journal.c,
 * as is what a line can say.
 */
#include "story.h"

// Thrice: it says so, and writes nothing.
#define REFUSED "Bc:storage = Y:storage = Ba:replay = m = "
#define STAYS REFUSED REFUSED REFUSED "P Ba:replay Ac Y:ok"

static const story stories[] = {
    { "after_a_sync_that_failed_nothing_is_written",
      "cached: Aa Bb %3,how=# Cb:storage " STAYS },
    { "after_a_sync_that_failed_nothing_is_written_to_flash",
      "synced: Aa Bb %3,how=# Cb:storage " STAYS },
    { "after_a_sync_of_a_batch_that_failed_nothing_is_written",
      "cached: batch Aa Bb %3,how=# Cb:ok Y:storage " STAYS },
    { "after_a_sync_of_a_batch_that_failed_nothing_is_written_to_flash",
      "synced: batch Aa Bb %3,how=# Cb:ok Y:storage " STAYS },
    // Also where so many places were passed over that no claim has room.
    { "after_a_sync_that_failed_no_turn_makes_room",
      "cached: Ba Ca Bb %1,forever Bc:storage Bc:storage Bc:storage Bc:storage "
      "Bc:storage w %3 Cb:storage Bc:storage = P Ba:replay Ac" },
    // It is told, and not tried again and again.
    { "an_erase_that_fails_in_idle_time_is_told",
      "nor: Ba %2 m:storage m = Ca:ok k1" },
    // A seal is there, but said to have failed; the head after it has no seal,
    // as the power goes, and the next boot cannot erase that.
    { "a_head_that_does_not_count_hides_none",
      "nor: Ba Ca P %1,at=2,how=1 | Bb | %2 Bc P l0 Ba:replay" },
    { "verify_fails_if_what_was_programmed_cannot_be_read",
      "nor_8: verify Ba Ca x %0 Bb:storage Bb P Ba:replay Bb:recover" },
};

TESTS(stories, tell)

/* A call that may fail, and then does what it must when it is repeated. */
static void in_time(char what, unsigned key, int expected)
{
    int result = IDEM_E_STORAGE;

    for (int left = 4; left > 0 && result == IDEM_E_STORAGE; left--)
        result = answer(what, key);
    is(result, expected);
}

/* A claim is given back, or its lease ends, or the key is forgotten: so another
   may follow.  The answer to the begin. */
static int one_more(void)
{
    int result = answer('B', 20);

    if (result == IDEM_EXECUTE || result == IDEM_RECOVER)
        (void)answer('R', 20);
    else if (result == IDEM_BUSY)
        say("L");
    else if (result == IDEM_EXHAUSTED)
        (void)answer('X', 20);
    return result;
}

/* So many operations fail, one after the other; then all works again. */
static void fail_many(const medium *m, int callback, unsigned fails)
{
    device_on(m, "Ba Ca Bb,lease");
    for (unsigned left = 300; fails > 0 && left > 0; left--) {
        say_of("%@", (unsigned)callback);
        say(left % 2 ? "Bt" : "Rt");
        fails -= !the.medium.faults[callback].how;
    }
    say("w Cb:ok L Xt K60 Ba:replay Bb:replay P Ba:replay Bb:replay P");
}

TEST(failures_that_are_over_use_up_no_place_that_works)
{
    for (size_t m = 0; m < COUNT(media); m++)
        for (unsigned fails = 1; fails < 25; fails += 1 + fails / 9) {
            fail_many(media[m], FLASH_PROG, fails);
            if (media[m]->kind != FLASH_INPLACE)
                fail_many(media[m], FLASH_ERASE, fails);
        }
}

static void pass_over(uint8_t how, uint32_t bad)
{
    device *d = device_on(&nor_8, "sectors=18");

    d->damaged = 1;
    d->storage.verify = how >= FLASH_STUCK_PROG;
    d->medium.bad[bad] = how;
    d->medium.bad[(bad + 3 * (bad % 2)) % d->storage.sector_count] = how;
    for (unsigned key = 4; key < 7; key++)
        in_time('B', key, IDEM_EXECUTE);
    for (unsigned n = 0; n < 250; n++) {
        in_time('B', 0, IDEM_EXECUTE);
        in_time('C', 0, IDEM_OK);
        if (n % 60 == 0)
            say("P l0");
        in_time('B', 0, IDEM_REPLAY);
        in_time('X', 0, IDEM_OK);
    }
    say("Ge Gf Gg");
}

TEST(bad_sectors_are_passed_over)
{
    static const uint8_t hows[] = { FLASH_BAD_ERASE, FLASH_BAD_PROG,
                                    FLASH_STUCK_PROG, FLASH_STUCK_ERASE };

    for (size_t i = 0; i < COUNT(hows); i++)
        for (uint32_t bad = 0; bad < 8; bad++)
            pass_over(hows[i], bad);
}

/* One place after the other wears out. */
TEST(with_too_few_sectors_left_only_new_claims_are_refused)
{
    device *d = device_on(&nor_8, "sectors=18 Ba,retention Ca "
                                  "Bb,retention,lease Bc,retention,lease "
                                  "Bd,retention,lease");
    unsigned bad = 0;
    int result = IDEM_EXECUTE;

    for (unsigned n = 0; n < 5000 && result != IDEM_E_SPACE; n++) {
        if (n % 200 == 199 && bad < d->storage.sector_count)
            d->medium.bad[bad++] = FLASH_BAD_ERASE;
        result = one_more();
        say("Ba:replay");
    }
    is(result, IDEM_E_SPACE);
    assert_in_range(bad, 3, d->storage.sector_count);
    memset(d->medium.bad, 0, d->storage.sector_count);
    say("Cb:ok Cc:ok Cd:ok Bb:replay Bc:replay Bd:replay");
    memset(d->medium.bad, 0, d->storage.sector_count);
    say("P Bb:replay Bc:replay Bd:replay");
}

/* A journal ends after 2^32 sectors: completions still fit. */
TEST(s7_the_last_sequence_refuses_new_claims_only)
{
    for (size_t m = 0; m < COUNT(media); m++) {
        int result = IDEM_EXECUTE;
        inside_start_far(device_on(media[m], "")->table, UINT32_MAX - 1000);
        the.runs_out = 1;
        say("Ba Ca Bb,lease Bc,lease Bd,lease");
        for (uint32_t n = 0; n < 50000 && result == IDEM_EXECUTE; n++)
            result = one_more();
        is(result, IDEM_E_SPACE);
        say("Cb:ok Cc:ok Cd:ok Bn:space P m Ga:ok Gb:ok Gc:ok Gd:ok P m Ga:ok "
            "Gb:ok Gc:ok Gd:ok");
    }
}

static uint32_t read_that_fails;

static void fail_a_read(void)
{
    flash_fail(&the.medium, FLASH_READ, read_that_fails, FLASH_UNDONE, 0);
}

static void fail_all_reads(void)
{
    flash_fail(&the.medium, FLASH_READ, 0, FLASH_UNDONE, 1);
}

TEST(a_read_that_fails_while_opening_is_damage)
{
    for (size_t m = 0; m < COUNT(media); m++)
        for (read_that_fails = 0; read_that_fails < 30; read_that_fails++) {
            int result;
            device_on(media[m], "Ba Ca k2 Bb Cb")->change = fail_a_read;
            result = reopen();
            if (result != IDEM_OK)
                is(result, IDEM_E_STORAGE);
            else if (answer('B', 0) != IDEM_REPLAY)
                assert_int_not_equal(the.table->stats.lost, 0);
            the.change = NULL;
            say("P Ba:replay");
        }
}

TEST(a_storage_that_does_not_read_at_all_is_not_blank)
{
    static const char *const before[] = { "", "Ba Ca" };
    static const char *const after[] = { "P", "P Ba:replay" };

    for (size_t m = 0; m < 2 * COUNT(media); m++) {
        device_on(media[m / 2], before[m % 2])->change = fail_all_reads;
        is(reopen(), IDEM_E_STORAGE);
        is(the.table->storage_error, FLASH_E_FAULT);
        is(idem_maintain(the.table, 0), IDEM_E_ARG);
        the.change = NULL;
        say(after[m % 2]);
    }
}

TEST(verify_finds_a_program_that_did_nothing)
{
    device_on(&nor_8, "verify Ba Ca")->damaged = 1;
    for (uint32_t n = 0; n < 40; n++) {
        flash_fail(&the.medium, FLASH_PROG, n % 4, FLASH_SILENT, 0);
        in_time('B', 1, IDEM_EXECUTE);
        in_time('R', 1, IDEM_OK);
    }
    say("P l0 Ba:replay Gb:none");
}

/* A few commands long, whatever the ring looks like. */
static void outage(unsigned before, unsigned commands)
{
    static const medium large = { "granules of 8", FLASH_NOR, 0, 8, 1024,
                                  0xFF };

    device_on(&large, "capacity=16");
    for (unsigned n = 0; n < before; n++)
        say_of("t,ms=6666 B@ C@,len=24,code=70000", n);
    say_of("%@,how=1,forever", FLASH_PROG);
    while (commands-- > 0)
        (void)answer('B', 94);
    say("w t,ms=300000 M P");
    for (unsigned boot = 0; boot < 3; boot++)
        say("t,ms=300000 M A93 X93 P");
}

TEST(l2_no_outage_is_the_end_of_a_ring)
{
    for (unsigned before = 1; before < 80; before++)
        for (unsigned commands = 2; commands < 5; commands++)
            outage(before, commands);
}

/* In the midst of it so many erases work once more, and with them a head. */
TEST(l2_no_head_in_an_outage_is_the_last_one)
{
    for (unsigned commands = 4; commands < 10; commands++)
        for (unsigned erases = 1; erases < 4; erases++) {
            device_on(&nor, "Aa Ab Ac Ad Ae Af Ag");
            say_of("%@,how=1,forever", FLASH_PROG);
            say_of("%@,how=1,forever", FLASH_ERASE);
            for (unsigned n = 0; n < commands; n++)
                (void)answer('B', 94);
            flash_fail(&the.medium, FLASH_PROG, 0, 0, 0);
            flash_fail(&the.medium, FLASH_ERASE, erases, 1, 1);
            (void)answer('B', 94);
            say("w P B93 P Ba:replay Bg:replay");
        }
}

/* What an outage leaves half done on blank storage is excused like a cut. */
TEST(an_outage_at_the_first_commands_is_over_after_a_restart)
{
    for (unsigned commands = 1; commands < 9; commands++) {
        device_on(&nor, "");
        the.medium.faults[FLASH_PROG].how = FLASH_HALF;
        the.medium.faults[FLASH_PROG].forever = 1;
        for (unsigned n = 0; n < commands; n++)
            (void)answer('B', 0);
        assert_null(idem_explain(&the.config));
        say("w P Ba:execute");
    }
}

/* A boot's first begin tries two places, and no more: it does not try to make a
   head for its answer, and again for its claim. */
TEST(l3_a_begin_that_finds_no_head_does_not_look_for_one_twice)
{
    for (size_t m = 0; m < COUNT(media); m++) {
        device_on(media[m], "Ba Ab P");
        say_of("%@,how=0,forever", FLASH_PROG);
        (void)answer('B', 0);
        assert_in_range(the.erases, 0, 2);
        assert_in_range(the.progs, 0, 2);
        say("w Bb:replay Ba:recover");
    }
}
