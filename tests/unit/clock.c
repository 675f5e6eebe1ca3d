/* SPDX-License-Identifier: 0BSD */
/*
 * Shows S6: time never shortens a lease or a retention, whatever the tick does:
 * wrap, stop, go back, start over.  Only a tick that really runs ahead can.
 *
 * The model has the rule of the manual (>>time): add what the tick has
 * advanced, or nothing if that is half its range or more; a step back of more
 * than 65,024 ms is a new start, and a leap back to near where the tick was is
 * not counted.  The table's clock is held against it after every call; and
 * against true time where threads call late.
 */
#include "scenario.h"

// Steps back, as a tick of 32 bits has them.
#define BACK_1 "4294967295"
#define BACK_40 "4294967256"
#define BACK_JITTER_LESS "4294902273"   // 65,023
#define BACK_JITTER "4294902272"
#define BACK_JITTER_MORE "4294902271"
#define BACK_70000 "4294897296"
#define BACK_DAY "4208567296"
#define HALF "2147483648"
#define HALF_MORE "2147483649"
#define HALF_LESS "2147483647"
#define DAY "86400000"

#define JITTER(back, up)                                                       \
    "Ba,ms=" back " Bb,ms=1 Ga,ms=30 Gb,ms=0 Ba,ms=" up " Gb,ms=0 "

#define UP_5 "m,ms=6550 m,ms=6550 m,ms=6550 m,ms=6550 m,ms=6550 "
#define ROUND_16 UP_5 UP_5 "m,ms=4294901796 "                  // 65,500 back

static const scenario scenarios[] = {
    // The tick is 107 later each time when it starts.
    { "s6_the_tick_may_wrap_at_any_point_of_a_lease_and_a_retention",
      "times=999 ram Ba,ms=0:execute Bb,ms=0:execute Cb,ms=0 Ba,ms=99:busy "
      "Ba,ms=1:recover Bb,ms=99899:replay Gb,ms=1:none wait4294867189 P" },
    // Back from the top, a little on, and up again.
    { "s6_a_tick_that_goes_back_only_lengthens",
      "times=9 ram Ba,lease=300 Ab " JITTER(BACK_1, "1") JITTER(BACK_40, "40")
      JITTER(BACK_JITTER_LESS, "65023") JITTER(BACK_JITTER, "65024")
      JITTER(BACK_JITTER_MORE, "65025") JITTER(BACK_DAY, DAY)
      JITTER(HALF_MORE, HALF_LESS) JITTER(HALF, HALF) "Xa Xb" },
    { "s6_a_tick_that_starts_over_only_lengthens",
      "times=9 ram Ba Ab Ba,ms=" BACK_JITTER ":busy Bb Ga,ms=40 Ba,ms="
      BACK_JITTER_MORE ":busy Bb Ga,ms=30 Ba,ms=" BACK_DAY " Bb Ga,ms=25 Ba,ms="
      HALF " Bb Ga,ms=20 Ba,ms=" HALF_MORE " Bb T T" },
    { "s6_a_tick_that_goes_back_for_one_call_is_not_counted_twice",
      "times=9 ram Ba,ms=0 Ab Ba,ms=40 Ba,ms=" BACK_JITTER_MORE " Ba,ms=65026 "
      "Bb Ba,ms=" BACK_DAY " Ba,ms=86400001 Bb Ba,ms=" BACK_DAY " Ba,ms="
      BACK_DAY " Ba,ms=172800001 Bb Ba,ms=" BACK_DAY " Ba,ms=43200000 "
      "Ba,ms=43200001 Bb Ba,ms=" BACK_40 " Ba,ms=" BACK_40 " Ba,ms=82 Ba,ms="
      BACK_DAY " Ba,ms=" DAY " Bb,ms=5 Xa" },
    // One call was 70 s late, and the next one overtakes that before it.
    { "s6_a_late_call_ends_no_lease_for_one_that_is_a_little_late",
      "times=9 ram Ba,ms=0 Ba,ms=" BACK_70000 " Ba,ms=69999:busy Ba,ms=1:busy "
      "Ba,ms=" BACK_70000 " Ba,ms=70099:busy Ba,ms=1:recover Ra" },
    // .. long after the tick started over; and when it does so again.
    { "s6_a_late_call_ends_no_lease_after_a_step_back_either",
      "times=9 ram m,ms=" DAY " m,ms=" BACK_DAY " m,ms=1000 m,ms=1000000 "
      "Ba,ms=1000000 m,ms=" BACK_70000 " Ba,ms=70001:busy Ba,ms=98:busy "
      "Ba,ms=1:recover Ra" },
    { "s6_the_longest_step_that_is_waited_out_belongs_to_the_new_tick",
      "times=9 ram m,ms=" DAY " m,ms=" BACK_DAY " Ba,ms=0 m,ms=" BACK_JITTER
      " m,ms=" BACK_70000 " Ba,ms=135025:busy Ba,ms=98:busy Ba,ms=1:recover "
      "Ra" },
    { "s6_a_call_from_before_the_second_step_back_ends_no_retention",
      "times=9 ram m,ms=" DAY " m,ms=" BACK_DAY " m,ms=1000 m,ms=20000000 "
      "Aa,ms=20000000 m,ms=4254965295 m,ms=40001000 Ba,ms=1:replay Xa" },
    { "s6_ticks_that_overtake_one_another_do_not_add_up",
      "times=20000 ram Ba,ms=0 m,ms=1 m,ms=" BACK_1 },
    // A tick of 16 bits, which wraps four times.
    { "s6_a_tick_of_16_bits_does_not_make_the_clock_stand",
      "ram Ba,ms=0,lease=200000 " ROUND_16 ROUND_16 ROUND_16 "Ba,ms=0:busy "
      ROUND_16 "Ba,ms=0:recover" },
    { "s6_a_tick_that_stands_still_ends_nothing",
      "times=999 ram Ba,ms=0 Bb,ms=0 Cb,ms=0 Ba,ms=0:busy Bb,ms=0:replay "
      "m,ms=0:ok" },
    { "s6_half_the_ticks_range_counts_as_backwards",
      "ram Ba,ms=0 Bb,ms=0 Cb,ms=0 Ba,ms=" HALF ":busy Bb,ms=0:replay "
      "Ba,ms=99:busy Ba,ms=1:recover Bb,ms=99899:replay Bb,ms=1:execute" },
    { "s6_less_than_half_the_ticks_range_counts_as_ahead",
      "ram Ba,ms=0 Bb,ms=0 Cb,ms=0 Bb,ms=" HALF_LESS ":execute "
      "Ba,ms=0:execute" },
    { "s6_a_claim_without_end_outlasts_any_two_anomalies",
      "times=20 ram Ba,lease Ab Ba,ms=" HALF_LESS ":busy Ba,ms=" HALF ":busy "
      "Ba,ms=" HALF_LESS ":busy Ba,ms=" BACK_1 ":busy Ba,ms=" BACK_DAY ":busy "
      "Ba,ms=0:busy Ba,ms=" HALF_LESS ":busy Bb Ba,ms=" BACK_JITTER_MORE
      ":busy Ba,ms=" HALF_LESS ":busy Ba,ms=" HALF_LESS ":busy Ba,ms=71" },

    // long times
    { "s6_a_month_of_retention_ends_in_time_in_steps_of_an_hour",
      "times=730 ram Ba,retention Ca m,ms=3600000 Ga" },
    { "s6_a_month_of_retention_ends_in_time_in_steps_of_a_day",
      "times=70 ram Ba,retention Ca m,ms=" DAY " Ga,ms=0 M" },
    { "s6_a_month_of_retention_ends_in_time_in_steps_of_eight_days",
      "times=70 ram Ba,retention Ca m,ms=700000001 Ga,ms=0 M" },
    { "s6_a_month_of_retention_ends_in_time_in_the_longest_steps",
      "times=70 ram Ba,retention Ca M,ms=" HALF_LESS " Ga:ok Ga,ms="
      HALF_LESS ":none" },
    // So the sweeps and the wrap of logical time are met from all sides.
    { "s6_deadlines_are_exact_wherever_the_logical_clock_stands",
      "times=260 ram Ba,ms=0:execute Bb,ms=0:execute Cb,ms=0 Ba,ms=99:busy "
      "Ba,ms=1:recover Ra,ms=0:ok Bb,ms=99899:replay Gb,ms=1:none "
      "E,n=33554432" },
    { "s6_time_off_is_added_at_once",
      "ram Ba,ms=0 Bb,ms=0 Cb,ms=0 E,n=40,ms=0 Ba,ms=59:busy Ba,ms=1:recover "
      "Bb,ms=99899:replay Gb,ms=1:none" },
    { "s6_time_off_is_added_at_once_also_49_days",
      "ram Ba Ab Bc,lease Bd,lease=536870912,retention E,n=4294967290 "
      "Ba:execute Gb:none Bd:execute Bc:busy" },
    // For ten years.
    { "s6_years_of_busy_work_keep_every_deadline",
      "times=420 ram Ba,retention Ca Bb,retention=77777777 Cb "
      "Bc,lease=536870912 Ga,ms=" DAY " Gb Gc Ga,ms=200000000 Gb Gc "
      "Ga,ms=471000000 Gb Bc" },
};

TESTS(scenarios, run_scenario)

/* The model knows what has become of them, and how long the lease goes on. */
TEST(s4_s6_what_nobody_looks_at_for_years_is_not_resurrected)
{
    static const char *const keys_left[] = {
        "ram Ba,ms=0,retention=1 Ca,ms=0",
        "ram Ba,ms=0,retention=86400000 Ca,ms=0",
        "ram Ba,ms=0,retention Ca,ms=0",
        "ram Ba,ms=0,lease=1,retention=1",
        "ram Ba,ms=0,lease=1,retention",
        "ram Ba,ms=0,lease=536870912,retention=1",
        "ram Ba,ms=0,lease=536870912,retention",
    };
    static const uint32_t strides[] = {
        3600000, 25200001, 86400000, 0x10000000, 0x20000000, 2073600000,
        INT32_MAX,
    };

    for (size_t i = 0; i < COUNT(keys_left) * COUNT(strides); i++)
        for (int count = 0; count < 40; count++) {
            device_on(&nor, keys_left[i / COUNT(strides)]);
            for (int n = 0; n < count; n++)
                device_elapse(&the, strides[i % COUNT(strides)]);
            run("Ga,ms=0");
        }
}

/* A number below a limit, by chance. */
static uint32_t draw(uint32_t limit)
{
    static uint32_t state = 5;

    state = state * 1664525u + 1013904223u;
    return (state >> 8) % limit;
}

/* Threads read the tick up to 32 s before they call.  One call in ten is later
   than that, and now and then the tick starts over, but no two of that in a
   row.  The clock never shows more time than has passed, or after each start than
   that and the lateness of its first call; without one all of it in the end. */
TEST(s6_late_calls_never_make_the_clock_run_ahead)
{
    enum { LATE = 32000, VERY_LATE = 600000, STEP = 4000 };

    for (unsigned n = 0; n < 100; n++) {
        device *d = device_on(&nor, "ram");
        uint32_t start = d->now, passed = 0, starts = 0;
        int odd = 0;
        for (unsigned i = 0; i < 1000; i++) {
            uint32_t late = draw(LATE);
            odd = !odd && draw(10) == 0;
            if (odd && n % 2 && draw(10) == 0) {
                start -= VERY_LATE + draw(1000000000);
                starts++;
            } else if (odd)
                late = draw(VERY_LATE);
            passed += draw(STEP);
            is(idem_maintain(d->table, start + passed - late), IDEM_OK);
            assert_true((int32_t)inside_clock(d->table) <=
                        (int32_t)(passed + starts * LATE));
        }
        is(idem_maintain(d->table, start + passed), IDEM_OK);
        if (!starts)
            is(inside_clock(d->table), passed);
    }
}
