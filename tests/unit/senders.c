/* SPDX-License-Identifier: 0BSD */
/*
 * Numbers instead of keys, quotas, entries (>>numbers of the manual), in one
 * boot: their limits, and which sender has which entry.  When a number becomes
 * old is in numbers.c; the same over restarts in journal_senders.c.
 *
 * Tests of several calls are a line of words (model/words.h), after modes:
 *
 *     A7#-1       number -1, the last one, of epoch 7: executed and completed
 *     Bc.7#1:old  of the sender c, not of "panel", begun, and answered so
 *     Ac.k        the key k of c, with an epoch, which is ignored
 *     G7#1 X7#1   7.1 is looked up; it is forgotten
 *     T           a retention passes, and expired keys are dropped
 *     evicted2 full3 misuse1  2 were evicted, 3 refused as full; one misuse
 *
 * A word without an answer must succeed.
 */
#include "scenario.h"

#define LAST UINT32_MAX                 // of the sequences

static unsigned misuse;                 // before the line
static idem_claim claim;

static idem_request number_of(const char *scope, uint32_t epoch,
                              uint32_t sequence)
{
    return (idem_request){ .scope = scope, .scope_len = strlen(scope),
                           .epoch = epoch, .sequence = sequence };
}

static int begin(const idem_request *rq)
{
    int result = begin_request(&claim, rq);

    is(claim.token == 0, result != IDEM_EXECUTE);
    is(the.reply.retry_after_ms, result == IDEM_BUSY ? LEASE : 0);
    return result;
}

/* Begins, and completes; begins; looks; forgets. */
static int make(char what, const idem_request *rq)
{
    static const idem_outcome outcome;
    idem_info info = { .id = NULL };
    int result;

    if (what == 'G')
        return idem_find(the.table, &info, rq, the.now);
    if (what == 'X')
        return idem_forget(the.table, rq, the.now);
    result = begin(rq);
    return what == 'A' && result == IDEM_EXECUTE
               ? idem_complete(the.table, &claim, &outcome, the.now) : result;
}

static void run_word(const char **line)
{
    const char *word = *line + strspn(*line, " ");
    call c = call_read_any(line);
    uint32_t n = (uint32_t)strtoul(c.name, NULL, 10);
    char id[CALL_ID];
    idem_request rq;
    int result;

    switch (c.what) {
    case WAIT: the.now += n; break;
    case 'T':
        for (the.now += RETENTION;
             idem_maintain(the.table, the.now) == IDEM_MORE;)
            ;
        break;
    case MISUSE: is(unit_misuse - misuse, n); break;
    case FULL: is(the.table->stats.full, n); break;
    case 'y': is(the.table->stats.senders_evicted, n); break;
    default:
        rq = call_names_key(&c, "panel", id);
        rq.age_ms = c.age;
        rq.retention_ms = c.retention;
        rq.epoch = rq.key_len ? the.now : rq.epoch; // no key cares
        result = make(c.what, &rq);
        if (!call_allows(&c, result, IDEM_OK))
            fail_msg("%s: it answered %s", word, answer_name(result));
    }
}

static void run_words(const char *line)
{
    while (*(line += strspn(line, " ")))
        run_word(&line);
}

/* .. to a table that is new. */
static void run_on_new(const char *line)
{
    misuse = unit_misuse;
    run_words(make_device(&nor, 1, line));
}

static const scenario scenarios[] = {
    // what a number is
    { "sequences_do_not_wrap_an_epoch_goes_on",
      "ram senders=1 A7#-1 B7#0:refused T B7#1:old B7#-1:old B7#0:refused A8#1 "
      "A-1#1 A-1#-1 T B-1#1:old B-1#2:old B-1#256:old B-1#65536:old "
      "B-1#0x7FFFFFFF:old B-1#0x80000000:old B-1#-2:old B-1#-1:old" },
    { "a_sequence_without_senders_is_the_senders_mistake",
      "ram B0#1:refused G0#1:refused X0#1:refused misuse0" },
    { "without_key_or_sequence_it_is_the_senders_mistake",
      "ram senders=1 B5#0:refused G5#0:refused misuse0 A5#1" },
    { "a_number_takes_8_bytes_of_key_max",
      "ram senders=1 key=24 Bsssssssssssssssss.0#1:large "
      "Assssssssssssssss.0#1" },
    { "there_is_no_number_with_a_key_max_of_7",
      "ram senders=1 key=7 B.0#1:large" },
    { "there_are_all_numbers_with_a_key_max_of_8",
      "ram senders=1 key=8 B.-1#-1:execute B.-1#-1:busy" },
    { "above_the_floor_in_any_order_with_gaps_of_any_width",
      "ram senders=1 capacity=11 A0#49 T B0#49:old A0#1000 A0#50 A0#0x7FFFFFFF "
      "A0#51 A0#0x80000000 A0#-1 A0#52 A0#-2 A0#999 A0#65535 B0#1000:replay "
      "B0#50:replay B0#0x7FFFFFFF:replay B0#51:replay B0#0x80000000:replay "
      "B0#-1:replay B0#52:replay B0#-2:replay B0#999:replay B0#65535:replay "
      "B0#1:old B0#2:old B0#33:old B0#48:old A0#53" },

    { "a_number_is_found_and_forgotten_by_itself",
      "ram senders=1 A0x55667788#0x11223344 G0x55667788#0x11223344 "
      "G0x55667788#0x11223345:none G0x55667787#0x11223344:none "
      "X0x55667787#0x11223344:none Apanel.key X0x55667788#0x11223344 "
      "G0x55667788#0x11223344:none A0x55667788#0x11223344" },

    // more senders than entries
    { "who_has_nothing_to_remember_makes_room",
      "ram senders=2 A0#10 Ab.key Bc.0#1:full Bc.key:full evicted2 full2 "
      "Bb.key:replay wait100000 Bc.0#1:execute evicted2 Bd.0#1:full B0#10:old "
      "evicted3" },
    { "with_eviction_the_idlest_without_keys_makes_room",   // b, then c
      "ram evict senders=3 Aa.0#10 wait3600000 Ab.0#10 wait3600000 Ac.0#10 "
      "wait3599000 T Aa.0#11 Ad.0#10 evicted1 Ba.0#10:old Bc.0#10:old "
      "Ba.0#11:replay Ae.0#10 evicted2 Bb.0#11:full evicted3 Ba.0#11:replay" },
    { "expired_keys_make_room_before_a_floor_is_given_up",
      "ram evict senders=2 Aa.0#1 T Ab.k Ab.m wait100000 Ac.0#1 evicted0 "
      "Ba.0#1:old" },
    { "a_new_sender_has_no_floor_of_whose_entry_it_takes",
      "ram evict senders=1 Aa.0#10 T Ab.0#7 Bb.0#5:execute" },
    { "a_sender_of_one_letter_at_its_quota_costs_its_own_oldest",
      "ram evict senders=2 quota=1 Aa.k Ab.k Ab.m Ga.k Gb.k:none" },
    // Unknown senders have the eviction time of one that was forgotten.
    { "the_eviction_time_of_a_forgotten_sender_is_that_of_the_unknown",
      "ram evict senders=1 quota=1 T T A0#1 wait10 A0#2 wait10 X0#2 "
      "Bother.0#1:execute evicted1 B0#3,age=20:old B0#3,age=19:full evicted2" },
    { "so_is_it_of_the_next_sender_in_another_entry",
      "ram evict senders=2 quota=1 T T Ab.0#1 A0#1 wait10 A0#2 wait10 "
      "Xpanel.0#0 Bc.0#1:execute Xb.0#0 Ad.0#1 Bd.0#3,age=20:old "
      "Bd.0#3,age=19:execute" },
    { "of_two_entries_a_new_sender_takes_that_which_costs_it_no_memory",
      "ram evict senders=2 quota=1 T T Ab.0#1 A0#1 wait10 A0#2 wait10 "
      "Xpanel.0#0 Xb.0#0 Ac.0#1 Bc.0#3,age=20:execute" },

    // a sender is forgotten: its keys, its floor, its epoch
    { "who_is_forgotten_is_as_if_never_seen",
      "ram senders=2 A7#5 A7#6 Apanel.key Ab.0#5 X.0#0:none Xc.0#0:none T A7#7 "
      "A7#9 Apanel.key wait9 B7#7:replay B6#1:old Xpanel.0#0 G7#7:none "
      "G7#9:none Gpanel.key:none Xpanel.0#0:none A7#7 B6#1:old B7#6:execute "
      "Bb.0#5:old misuse0" },
    { "who_has_a_live_claim_is_not_forgotten",
      "ram senders=1 A0#1 B0#2:execute Xpanel.0#0:busy B0#1:replay B0#2:busy "
      "wait100 Xpanel.0#0 B0#2:execute Xpanel.0#0:busy wait99 Xpanel.0#0:busy "
      "wait1 Xpanel.0#0 B0#1:execute" },
    { "a_claim_of_an_older_epoch_is_no_live_one",
      "ram senders=1 B1#1:execute A2#1 X1#1:none Xpanel.0#0 A1#1" },
    { "who_is_forgotten_makes_room_for_another",
      "ram senders=3 Aa.0#1 Ab.0#1 Ac.0#1 T Bd.0#1:full Bd.0#1:full Xb.0#0 "
      "Ad.0#1 Bb.0#1:full Ba.0#1:old Bc.0#1:old Xd.0#0 Xa.0#0 Aa.0#1 Ab.0#1 "
      "Bd.0#1:full" },
    { "keys_of_others_stay_where_one_is_forgotten",
      "ram senders=3 Aa.0#1 Ab.0#1 Aa.k Ab.k A.k A.0#1 Xa.0#0 Bb.0#1:replay "
      "Bb.k:replay B.k:replay B.0#1:replay X.0#0 A.k A.0#1 Bb.k:replay Aa.0#1 "
      "Aa.k" },

    // What others ask of a window of counters, asked of a floor: the 34 values
    // of WireGuard's counter selftest, with T its width and one, 8129, each one
    // higher as 0 is no sequence.  Where its window has moved on, here all
    // before has expired.  One below a window but above the floor is executed,
    // and what comes again while it is known is replayed.
    { "vectors_of_a_counter_one_by_one",
      "ram senders=1 capacity=24 A0#1 A0#2 B0#2:replay A0#10 A0#9 A0#8 "
      "B0#8:replay A0#8130 A0#8129 B0#8129:replay A0#8128 A0#3 B0#3:replay T "
      "A0#8146 B0#4:old B0#8146:replay T A0#32517 A0#24389 B0#11:old A0#24388 "
      "A0#24387 A0#24390 B0#24389:replay B0#1:old B0#0:refused A0#-1 "
      "B0#0:refused B0#-1:replay A0#-2 B0#1:old B0#2:old B0#-2:replay A0#-3 "
      "B0#1:old T B0#-3:old B0#-1:old B0#1:old" },
};

static void run_alone(void **state)
{
    run_on_new(((const scenario *)*state)->line);
}

TESTS(scenarios, run_alone)

TEST(a_sender_of_which_nothing_is_known_may_begin_anywhere)
{
    static const uint32_t anywhere[] = { 0, 1, 2, 77, 0x80000000u, LAST - 1,
                                         LAST };

    for (size_t e = 0; e < COUNT(anywhere); e++)
        for (size_t s = 1; s < COUNT(anywhere); s++) {
            idem_request rq = number_of("panel", anywhere[e], anywhere[s]);
            run_on_new("ram senders=1");
            is(begin(&rq), IDEM_EXECUTE);
            is(begin(&rq), IDEM_BUSY);
        }
}

/* The bytes of a key may be those of a number; it is another key.  It is
   forgotten when its retention ends, and executed again. */
TEST(a_number_is_no_key_of_the_same_bytes)
{
    static const char bytes[8] = { 9, 0, 0, 0, 3, 0, 0, 0 };
    idem_request rq = number_of("panel", 0, 0);

    run_on_new("ram senders=1 A3#9");
    rq.key = bytes;
    rq.key_len = sizeof bytes;
    is(begin(&rq), IDEM_EXECUTE);
    run_words("B3#9:replay");
    is(the.table->used, 2);
    run_words("wait100000 B3#9:old wait100");
    is(begin(&rq), IDEM_EXECUTE);
}

TEST(a_sequence_with_a_key_is_a_misuse)
{
    idem_request rq = number_of("panel", 0, 1);

    rq.key = "k";
    rq.key_len = 1;
    run_on_new("ram senders=1");
    is(make('B', &rq), IDEM_E_ARG);
    is(make('G', &rq), IDEM_E_ARG);
    run_words("misuse2");
    is(the.table->used, 0);
}

TEST(an_entry_takes_the_documented_memory)
{
    is(sizeof(idem_sender), IDEM_WIDE ? 28 : 24);
    is(IDEM_SENDERS_MEMORY_SIZE(3), 3 * (sizeof(idem_sender) + 4));
    is(sizeof(idem_link), IDEM_WIDE ? 8 : 4);
    is(IDEM_QUOTA_MEMORY_SIZE(5, 3), 9 * sizeof(idem_link));
}

/* Words of a sender and its number. */
static void run_for(const char *words, unsigned who, unsigned number)
{
    char line[80];

    (void)snprintf(line, sizeof line, words, who, number);
    run_words(line);
}

/* How idle a sender is, stays right for years. */
TEST(a_sender_in_use_is_never_forgotten_for_another)
{
    run_on_new("ram evict senders=2 capacity=4");
    for (unsigned n = 1; n < 400; n++) {
        char line[90];
        (void)snprintf(line, sizeof line, "wait86400000 Agood.0#%u "
                       "wait86400000 A%u.0#%u Bgood.0#%u:old", n, n, n, n);
        run_words(line);
    }
    run_words("evicted398");
}

/* .. with no number that is kept of it for 32 bits of milliseconds. */
TEST(who_was_used_least_recently_is_forgotten_after_years)
{
    static const struct { unsigned a, b, c; } days[] = {
        { 0, 31, 20 }, { 0, 1, 49 }, { 3, 49, 1 }, { 1, 60, 60 }, { 0, 90, 40 },
        { 0, 160, 45 },
    };

    for (size_t i = 0; i < COUNT(days); i++) {
        run_on_new("ram evict senders=2 capacity=4");
        for (unsigned day = 0; day < days[i].a; day++)
            run_words("wait86400000 Gx.0#1:none");
        run_words("Aa.0#7");
        for (unsigned day = 0; day < days[i].b; day++)
            run_words("wait86400000 Gx.0#1:none");
        run_words("Ab.0#7");
        for (unsigned day = 0; day < days[i].c; day++)
            run_words("wait86400000 Gx.0#1:none");
        run_words("T Ac.0#7 evicted1 Bb.0#7:old Bc.0#7:replay");
    }
}

/* .. even if all slots are swept every five minutes, as in a table that is full
   but for a key that expires. */
TEST(who_was_used_least_recently_is_forgotten_after_many_sweeps)
{
    static const char *const orders[][3] = {
        { "Aa.0#7", "Ab.0#7", "Ad.0#1 evicted1 Bb.0#7:old" },
        { "Ab.0#7", "Aa.0#7", "Ad.0#1 evicted1 Ba.0#7:old" },
    };

    for (size_t i = 0; i < COUNT(orders); i++) {
        run_on_new("ram evict senders=4 capacity=3");
        run_words("Al.0#1,retention Al.0#2,retention");
        for (unsigned n = 1; n < 600; n++) {
            if (n == 1 || n == 4)
                run_words(orders[i][n / 4]);
            run_for("wait300000 A%u.0#%u", 9, n);
        }
        run_words(orders[i][2]);
    }
}

/* With eviction one that is at its quota costs others' outcomes nothing, not even
   a look at each: the next search begins where the last one ended. */
TEST(s9_a_sender_at_its_quota_is_not_sought_anew)
{
    enum { QUOTA = 300 };

    run_on_new("ram evict senders=2 quota=300 capacity=600");
    for (unsigned who = 1; who <= 2; who++)
        for (unsigned n = 1; n <= QUOTA; n++)
            run_for("A%u.0#%u", who, n);
    run_for("A%u.0#%u", 2, QUOTA + 1);
    unit_compared = 0;
    run_for("A%u.0#%u", 2, QUOTA + 2);
    assert_in_range(unit_compared, 0, 20);
    run_words("B2.0#2:old B2.0#3:replay B1.0#1:replay");
}

/* Whether idle work has dropped its expired keys makes no difference. */
TEST(a_sender_whose_keys_have_expired_is_not_there)
{
    static const idem_outcome outcome = { .confirm = 1 };
    const idem_request sender = number_of("a", 0, 0);
    idem_request rq = sender;

    rq.key = "k";
    rq.key_len = 1;
    for (unsigned idle = 0; idle < 2; idle++) {
        run_on_new("ram senders=2");
        is(begin(&rq), IDEM_EXECUTE);
        is(idem_complete(the.table, &claim, &outcome, the.now), IDEM_OK);
        the.now += RETENTION;
        if (idle)
            is(idem_maintain(the.table, the.now), IDEM_OK);
        is(idem_forget(the.table, &sender, the.now), IDEM_E_NOT_FOUND);
        is(the.table->stats.expired, 1);
        is(the.table->stats.undelivered, 1);
    }
}

/* Senders come and go in as many entries as there are: each is found, and none
   in the place of another. */
TEST(who_has_an_entry_is_found_in_a_full_array)
{
    enum { ENTRIES = 97, SENDERS = 150, ROUNDS = 900 };
    unsigned latest[SENDERS] = { 0 }, count = 0;    // number, 0: unknown

    run_on_new("ram senders=97 capacity=1000");
    for (uint32_t round = 1, c = 1; round <= ROUNDS; round++) {
        unsigned who = (c = flash_mix(c + 1)) % SENDERS;
        unsigned is_known = latest[who] != 0;
        if (round > ROUNDS / 3 && c >> 16 & 1) {
            run_for(is_known ? "X%u.0#0" : "X%u.0#0:none", who, 0);
            count -= is_known;
            latest[who] = 0;
        } else if (!is_known && count == ENTRIES) {
            run_for("B%u.0#%u:full", who, round);
        } else {
            count += !is_known;
            latest[who] = round;
            run_for("A%u.0#%u", who, round);
        }
        if (round % 100 == 0) {
            run_words("T");
            for (who = 0; who < SENDERS; who++)
                if (latest[who])
                    run_for("B%u.0#%u:old", who, latest[who]);
        }
    }
    is(idem_check(the.table), 0);
}

/* The hash by which an entry is found, in two halves. */
static uint64_t hash_of(unsigned n)
{
    const char *scope = filled("@", 0, n);
    idem_fingerprint_state hash;

    idem_fingerprint_init(&hash, &the.config);
    idem_fingerprint_update(&hash, scope, strlen(scope));
    return idem_fingerprint_final(&hash);
}

/* An entry is found by a hash of the scope, which is that of a payload: two
   scopes with one half of it alike are sought among many. */
TEST(who_has_half_a_hash_of_another_is_another)
{
    static unsigned seen[1 << 20];      // the number of the latest such half
    unsigned pairs = 0;

    run_on_new("ram");
    for (unsigned n = 1; n < 300000; n++) {
        uint32_t half = (uint32_t)hash_of(n);
        unsigned *other = &seen[half % COUNT(seen)];
        if (*other && (uint32_t)hash_of(*other) == half) {
            char line[60];
            (void)snprintf(line, sizeof line, "A%u.1#10 T B%u.1#9:old A%u.0#1",
                           *other, *other, n);
            run_on_new("ram senders=2");
            run_words(line);
            pairs++;
        }
        *other = n;
    }
    assert_in_range(pairs, 1, 40);
}
