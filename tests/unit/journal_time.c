/* SPDX-License-Identifier: 0BSD */
/*
 * Time over restarts: it never shortens a lease or a retention (S6), and it
 * goes on, even if the device is off every night (L2).  The model checks the
 * age of each replayed outcome.
 */
#include "scenario.h"

static const uint32_t DAY = 86400000, MINUTE = 60000;

static const scenario scenarios[] = {
    { "another_default_counts_for_what_comes",
      "nor: Ba Ca +retention=400 P Bb Cb Gb,ms=400:none Ba:replay Bb Cb "
      "rotate,n=1 "
      "+retention=1000000 P Gb,ms=400:none Ba:replay Ga,ms=100000:none" },
    // The result of idle work is returned; a refused key is refused too.
    { "time_that_cannot_be_written_down_is_no_answer",
      "nor: B0 B1 B2 B3 B4 B5 B6 B7 M fail1,ms=50000,forever m:storage "
      "+retention=0 Bn:full works B0:recover" },
    // At the end of the head, then in two new ones: again after two minutes.
    { "time_that_was_not_written_down_is_still_to_be",
      "nor: +retention=8000000 P Ba,ms=0 Ca,ms=0 M,ms=0 fail1,ms=1000001,forever "
      "m,ms=0:storage m,ms=0:storage works M,ms=119000 M,ms=998 "
      "untouched M,ms=2 P Ga,ms=6879997:ok Ga,ms=1:none" },
    { "l2_a_refused_key_writes_the_time_once_in_a_minute",
      "nor: B0,ms=0 B1,ms=0 B2,ms=0 B3,ms=0 B4,ms=0 B5,ms=0 B6,ms=0 B7,ms=0 "
      "Bn,ms=1000:full untouched Bn,ms=58000:full untouched Bn,ms=1000:full "
      "untouched,n=1 Bn,ms=0:full untouched" },
    { "a_journal_that_evicts_nothing_remembers_the_longest_retention",
      "retention=2592000000 Ba,age=2591999999:execute Bb,age=2592000000:old" },
    // .. after which the next sector is to be erased.
    { "idle_work_that_makes_the_first_rotation_has_more_to_do",
      "nor: Ba Ca P m,ms=12501:more m:more m:ok" },
    { "idle_work_writes_the_time_when_it_is_an_eighth_of_a_retention_old",
      "nor: Ba,ms=0 Ca,ms=0 M,ms=0 m,ms=12500:ok untouched m,ms=1:ok "
      "untouched,n=1" },
    // The time of a delivery, the last record of its sector, is not followed once
    // its outcome's sector is not read any more.  The next header has it.
    { "the_time_of_an_orphan_and_a_long_silence_are_followed",
      "nor: retention=86400000 Ba,retention=2592000000 Oa rotate1 "
      "Bb,retention=2592000000,lease E,n=2142720000 Da E,n=1900800000 Bc P Bd Cd "
      "Be P Bd:replay Bb:recover Cb rotate1 rotate1 Bd,ms=60000:replay P "
      "Bd:replay P Bd:replay" },
    // Nor does the time that no key ages by hide how long ago the last sweep
    // was: b's age wraps.  In one variant the head is full after a loss.
    { "expired_keys_stay_so_when_time_passed_after_a_loss",
      "nor: beside=10 capacity=20 Ba,retention=1000 Ca wait2000 M "
      "Bb,retention=2592000000 Cb Bh,ms=134217728,retention=1 Ch Bd note Cd Bf K@ "
      "Bj,ms=135266304 Bl,ms=2080374784 m,ms=2080375000 Bn damage,how=4 P lost1 "
      "Bb:uncertain" },
    // a is rewritten 2^32 ms after it was completed, and a little more.
    { "expired_keys_stay_so_when_their_age_has_wrapped",
      "nor: Ba Ca P E,n=805356368 Bb,age=1000000:old E,n=1744830464 "
      "E,n=1744830464 | Bc | Bb,age=1000000 P Ba:execute" },
};

TESTS(scenarios, run_scenario)

static void repeat(const char *line, int times)
{
    while (times-- > 0)
        run(line);
}

/* A bit flips in what idle work wrote after a week.  A silence of five weeks
   follows, then a header: it is not too far ahead to be followed. */
TEST(s6_a_damaged_record_before_a_long_silence_sets_no_clock_back)
{
    for (uint32_t rotations = 0; rotations < 24; rotations++) {
        uint32_t clock;
        device_on(&nor, "retention=2592000000 Ba Ca rotate1 Bb,lease");
        run_of("rotate@", rotations);
        run("E,n=691200000 M note E,n=1728000000 E,n=1728000000 "
            "damage,how=5,at=97 Bc Bd");
        clock = inside_clock(the.table);
        run("unjudged P");
        is(inside_clock(the.table), clock);
    }
}

/* While nothing is remembered nothing is written, for longer than one record
   can have. */
TEST(months_without_a_record_do_no_harm)
{
    for (int days = 20; days < 200; days += 12)
        for (int boot = 0; boot < 2; boot++) {
            device_on(&nor, boot ? "Bz Rz P" : "Bz Rz");
            repeat("M,ms=86400000", days);
            run("Ba,ms=0 Ca,ms=0 Bb,ms=1000 Cb,ms=0 P Ba,ms=0:replay "
                "Ba,ms=98999:replay Ga:none Bb:replay");
        }
}

/* Statistics are those of a boot. */
TEST(what_expired_before_an_opening_is_not_counted)
{
    device_on(&nor, "Ba,retention=100 Ca,confirm Bb,ms=200000000 Cb,ms=0 "
                    "Bc,ms=200000000 P Ga:none");
    is(the.table->stats.expired, 0);
    is(the.table->stats.undelivered, 0);
}

/* Expired keys stay so, though the 32 bits of time went round meanwhile, and
   its sector is read for the state that is in it. */
TEST(expired_keys_do_not_come_back_after_months)
{
    for (int days = 40; days < 110; days++) {
        device_on(&nor, "retention=259200000 Bo So");
        repeat("a,ms=86400000", days);
        run("Ba Ca P Go:none Ba:replay");
    }
}

/* The newest record before is a delivery, and when a header names the time the
   sector with the outcome is needed no more: so the delivery has no time.
   The header is further ahead than the clock goes without records: if that is
   too far, its time is not followed, but nothing is uncertain by it. */
TEST(s6_a_delivery_before_a_long_silence_costs_no_time)
{
    static const uint32_t delivered[] = { 1, 3600000, 86400000, 300000000 };

    for (size_t i = 0; i < COUNT(delivered); i++) {
        device_on(&nor, "Bb,retention=400000000 Ob rotate3 Ba,retention "
                        "Ca,state=6");
        run_of("Ha,ms=@ db", delivered[i]);
        run("E,ms,n=2000000000 E,ms,n=2000000000 fail1 Bc,ms:execute works");
        run(i == COUNT(delivered) - 1 ? "unjudged P lost0 Bd:execute"
                                      : "P lost0 Bd:execute Ba:execute");
    }
}

/* Days until a device takes a new key again: its table is full of keys that are
   remembered for a week, and it is switched off every night. */
static uint32_t days_full(const medium *m, int idle)
{
    uint32_t day;

    device_on(m, "retention=604800000 A0 A1 A2 A3 A4 A5 A6 A7");
    for (day = 0; day < 1000; day++) {
        for (int hour = 0; hour < 10; hour++) {
            run(idle ? "M,ms=3600000" : "wait3600000");
            if (!idle && answer('B', 10) == IDEM_EXECUTE)
                return day;
        }
        if (answer('B', 10) == IDEM_EXECUTE)
            return day;
        run("P");
    }
    return day;
}

TEST(l2_a_full_table_that_is_off_every_night_is_not_full_for_ever)
{
    // Ten hours a day are counted, but for at most an eighth of a week.
    for (size_t m = 0; m < COUNT(media); m++)
        for (int idle = 0; idle < 2; idle++)
            assert_in_range(days_full(media[m], idle), 16, 20);
}

/* Calls idle work once in 20 s, `times` times; returns how often it answered
   that there is nothing to do. */
static unsigned idle_seldom(unsigned times)
{
    unsigned nothing = 0;

    while (times-- > 0) {
        the.now += RETENTION / 5;
        nothing += device_maintain(&the) == IDEM_OK;
    }
    return nothing;
}

/* Each time it is so late that the time is to be written.  What has expired
   goes all the same; and with the last key the time is none to be written. */
TEST(l2_idle_work_that_comes_seldom_drops_what_has_expired)
{
    static const char *const lines[] = { "Ba Ca Bb Bc",
                                         "keys=96 capacity=90 Ba Ca Bb Bc" };

    for (size_t m = 0; m < 2 * COUNT(media); m++) {
        uint32_t progs;
        device_on(media[m / 2], lines[m % 2]);
        (void)idle_seldom(60);
        is(the.table->used, 0);
        progs = the.medium.progs;
        is(idle_seldom(30), m % 2 ? 15 : 30);
        is(the.medium.progs, progs);
    }
}

/* While a key is remembered, the time is written as often as it is to be, and
   then there is nothing more to do. */
TEST(l2_idle_work_that_comes_seldom_comes_to_an_end)
{
    for (size_t m = 0; m < COUNT(media); m++) {
        uint32_t progs;
        device_on(media[m], "Ba,retention Ca");
        (void)idle_seldom(60);
        progs = the.medium.progs;
        assert_in_range(idle_seldom(30), 15, 30);
        assert_in_range(the.medium.progs - progs, 15, 45);
        run("P Ga");
        assert_in_range(the.shown.age_ms, 17 * RETENTION, 19 * RETENTION);
    }
}

/* In idle time alone, though no command comes. */
TEST(l2_idle_time_writes_down_the_time)
{
    uint32_t progs, boot = 0;

    device_on(&nor, "retention=691200000 Ba Ca");
    do {
        the.now += DAY + MINUTE;
        run("M P");
    } while (answer('G', 0) == IDEM_OK && ++boot < 100);
    assert_in_range(boot, 7, 9);
    progs = the.medium.progs;
    repeat("M,ms=86400000", 30);            // and nothing is remembered
    assert_in_range(the.medium.progs - progs, 0, 1);
}

/* .. of which seven bits are one byte of a record. */
TEST(a_time_of_up_to_127_ms_takes_one_byte)
{
    uint32_t len;

    device_on(&nor, "Ba Ra,ms=1");
    len = newest().len;
    run("Ba Ra,ms=127");
    is(newest().len, len);
    run("Ba Ra,ms=128");
    is(newest().len, len + 1);
}
