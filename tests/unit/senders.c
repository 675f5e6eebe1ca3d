/* SPDX-License-Identifier: 0BSD */
/*
 * Numbers instead of keys, quotas, entries (>>senders of the manual), for one
 * boot: their edges, and who has which entry.  What becomes old, and when, is
 * in numbers.c; the same over restarts in journal_senders.c.
 *
 * What several calls show is a line of words, after modes (model/call.h):
 *
 *     7.-1        number -1, the last one, of epoch 7: executed and completed
 *     c/7.1:old   of the sender c, not of "panel", answered so
 *     c/k         the key k of c, with any epoch, which means nothing
 *     7.1,20      asked for by who is 20 ms late
 *     ?7.1 !7.1   7.1 is looked for; it is forgotten
 *     T +9        a retention passes, and what is over is dropped; 9 ms pass
 *     y2 f3 m1    2 were evicted, 3 found no room; there was one misuse
 *
 * "execute" is a claim that is left alone.
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

/* Begins, and completes if nothing else is said; looks; forgets. */
static int make(char what, const idem_request *rq, int whole)
{
    static const idem_outcome outcome;
    idem_entry entry = { .id = NULL };
    int result;

    if (what == '?')
        return idem_find(the.table, &entry, rq, the.now);
    if (what == '!')
        return idem_forget(the.table, rq, the.now);
    result = begin(rq);
    return whole && result == IDEM_EXECUTE
               ? idem_complete(the.table, &claim, &outcome, the.now) : result;
}

static void run_number(const char *word)
{
    char scope[24] = "panel", id[24] = "";
    const char *from = word + (*word == '?' || *word == '!');
    const char *slash = strchr(word, '/'), *age = strchr(word, ',');
    const char *colon = strchr(word, ':');
    call c = call_of(*word, 0);
    long long epoch, sequence;
    idem_request rq;
    int result;

    if (slash) {
        (void)snprintf(scope, sizeof scope, "%.*s", (int)(slash - from), from);
        from = slash + 1;
    }
    (void)sscanf(from, "%23[^:,]", id);
    if (colon)
        (void)call_read_answer(&c, colon);
    rq = number_of(scope, the.now, 0);
    if (sscanf(id, "%lli.%lli", &epoch, &sequence) == 2) {
        rq = number_of(scope, (uint32_t)epoch, (uint32_t)sequence);
    } else {
        rq.key = id;
        rq.key_len = strlen(id);
    }
    rq.age_ms = age ? (uint32_t)strtoul(age + 1, NULL, 10) : 0;
    result = make(*word, &rq, !colon);
    if (result != (colon ? answer_names[c.answer].answer : IDEM_OK))
        fail_msg("%s: %d", word, result);
}

static void run_words(const char *line)
{
    char word[50];

    for (int len; sscanf(line, "%49s%n", word, &len) == 1; line += len) {
        uint32_t n = (uint32_t)strtoul(word + 1, NULL, 10);
        if (strchr(word, '.') || strchr(word, '/'))
            run_number(word);
        else if (*word == '+')
            the.now += n;
        else if (*word == 'T')
            for (the.now += RETENTION;
                 idem_maintain(the.table, the.now) == IDEM_MORE;)
                ;
        else if (*word == 'm')
            is(unit_misuse - misuse, n);
        else
            is(*word == 'y' ? the.table->stats.senders_evicted : the.table->stats.full,
               n);
    }
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
      "ram senders=1 7.-1 7.0:refused T 7.1:old 7.-1:old 7.0:refused 8.1 -1.1 "
      "-1.-1 T -1.1:old -1.2:old -1.256:old -1.65536:old -1.0x7FFFFFFF:old "
      "-1.0x80000000:old -1.-2:old -1.-1:old" },
    { "a_sequence_without_senders_is_the_senders_mistake",
      "ram 0.1:refused ?0.1:refused !0.1:refused m0" },
    { "without_key_or_sequence_it_is_the_senders_mistake",
      "ram senders=1 5.0:refused ?5.0:refused m0 5.1" },
    { "a_number_takes_8_bytes_of_key_max",
      "ram senders=1 key=24 sssssssssssssssss/0.1:large ssssssssssssssss/0.1" },
    { "there_is_no_number_with_a_key_max_of_7",
      "ram senders=1 key=7 /0.1:large" },
    { "there_are_all_numbers_with_a_key_max_of_8",
      "ram senders=1 key=8 /-1.-1:execute /-1.-1:busy" },
    { "above_the_floor_in_any_order_with_gaps_of_any_width",
      "ram senders=1 capacity=11 0.49 T 0.49:old 0.1000 0.50 0.0x7FFFFFFF 0.51 "
      "0.0x80000000 0.-1 0.52 0.-2 0.999 0.65535 0.1000:replay 0.50:replay "
      "0.0x7FFFFFFF:replay 0.51:replay 0.0x80000000:replay 0.-1:replay "
      "0.52:replay 0.-2:replay 0.999:replay 0.65535:replay 0.1:old 0.2:old "
      "0.33:old 0.48:old 0.53" },

    { "a_number_is_found_and_forgotten_by_itself",
      "ram senders=1 0x55667788.0x11223344 ?0x55667788.0x11223344 "
      "?0x55667788.0x11223345:none ?0x55667787.0x11223344:none "
      "!0x55667787.0x11223344:none panel/key !0x55667788.0x11223344 "
      "?0x55667788.0x11223344:none 0x55667788.0x11223344" },

    // more senders than entries
    { "who_has_nothing_to_remember_makes_room",
      "ram senders=2 0.10 b/key c/0.1:full c/key:full y2 f2 b/key:replay "
      "+100000 c/0.1:execute y2 d/0.1:full 0.10:old y3" },
    { "with_eviction_the_idlest_without_keys_makes_room",   // b, then c
      "ram evict senders=3 a/0.10 +3600000 b/0.10 +3600000 c/0.10 +3599000 T "
      "a/0.11 d/0.10 y1 a/0.10:old c/0.10:old a/0.11:replay e/0.10 y2 "
      "b/0.11:full y3 a/0.11:replay" },
    // Of one that was forgotten all who are unknown have the reach.
    { "the_eviction_time_of_a_forgotten_sender_is_that_of_the_unknown",
      "ram evict senders=1 quota=1 T T 0.1 +10 0.2 +10 !0.2 other/0.1:execute "
      "y1 0.3,20:old 0.3,19:full y2" },

    // a sender is forgotten: its keys, its floor, its epoch
    { "who_is_forgotten_is_as_if_never_seen",
      "ram senders=2 7.5 7.6 panel/key b/0.5 !/0.0:none !c/0.0:none T 7.7 7.9 "
      "panel/key +9 7.7:replay 6.1:old !panel/0.0 ?7.7:none ?7.9:none "
      "?panel/key:none !panel/0.0:none 7.7 6.1:old 7.6:execute b/0.5:old m0" },
    { "who_has_a_live_claim_is_not_forgotten",
      "ram senders=1 0.1 0.2:execute !panel/0.0:busy 0.1:replay 0.2:busy +100 "
      "!panel/0.0 0.2:execute !panel/0.0:busy +99 !panel/0.0:busy +1 "
      "!panel/0.0 0.1:execute" },
    { "a_claim_of_an_older_epoch_is_no_live_one",
      "ram senders=1 1.1:execute 2.1 !1.1:none !panel/0.0 1.1" },
    { "who_is_forgotten_makes_room_for_another",
      "ram senders=3 a/0.1 b/0.1 c/0.1 T d/0.1:full d/0.1:full !b/0.0 d/0.1 "
      "b/0.1:full a/0.1:old c/0.1:old !d/0.0 !a/0.0 a/0.1 b/0.1 d/0.1:full" },
    { "keys_of_others_stay_where_one_is_forgotten",
      "ram senders=3 a/0.1 b/0.1 a/k b/k /k /0.1 !a/0.0 b/0.1:replay b/k:replay "
      "/k:replay /0.1:replay !/0.0 /k /0.1 b/k:replay a/0.1 a/k" },

    // What others ask of a window of counters, asked of a floor: the 34 values
    // of WireGuard's counter selftest, with T its width and one, 8129, each one
    // higher as 0 is no sequence.  Where its window has moved on, here all
    // before is over.  What is below a window but above the floor is executed,
    // and what comes again while it is known is replayed.
    { "vectors_of_a_counter_one_by_one",
      "ram senders=1 capacity=24 0.1 0.2 0.2:replay 0.10 0.9 0.8 0.8:replay "
      "0.8130 0.8129 0.8129:replay 0.8128 0.3 0.3:replay T 0.8146 0.4:old "
      "0.8146:replay T 0.32517 0.24389 0.11:old 0.24388 0.24387 0.24390 "
      "0.24389:replay 0.1:old 0.0:refused 0.-1 0.0:refused 0.-1:replay 0.-2 "
      "0.1:old 0.2:old 0.-2:replay 0.-3 0.1:old T 0.-3:old 0.-1:old 0.1:old" },
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
   forgotten when its retention is over, and executed again. */
TEST(a_number_is_no_key_of_the_same_bytes)
{
    static const char bytes[8] = { 9, 0, 0, 0, 3, 0, 0, 0 };
    idem_request rq = number_of("panel", 0, 0);

    run_on_new("ram senders=1 3.9");
    rq.key = bytes;
    rq.key_len = sizeof bytes;
    is(begin(&rq), IDEM_EXECUTE);
    run_words("3.9:replay");
    is(the.table->used, 2);
    run_words("+100000 3.9:old +100");
    is(begin(&rq), IDEM_EXECUTE);
}

TEST(a_sequence_with_a_key_is_a_misuse)
{
    idem_request rq = number_of("panel", 0, 1);

    rq.key = "k";
    rq.key_len = 1;
    run_on_new("ram senders=1");
    is(make('B', &rq, 0), IDEM_E_ARG);
    is(make('?', &rq, 0), IDEM_E_ARG);
    run_words("m2");
    is(the.table->used, 0);
}

TEST(an_entry_takes_the_memory_that_the_manual_says)
{
    is(sizeof(idem_sender), IDEM_WIDE ? 28 : 24);
    is(IDEM_SENDERS_MEMORY_SIZE(3), 3 * (sizeof(idem_sender) + 4));
}

/* How idle a sender is, stays right for years. */
TEST(a_sender_in_use_is_never_forgotten_for_another)
{
    run_on_new("ram evict senders=2 capacity=4");
    for (unsigned n = 1; n < 400; n++)
        run_words(filled("+86400000 good/0.@ +86400000 @/0.@ good/0.@:old", 0,
                         n));
    run_words("y398");
}

/* .. with no number that is kept of it for 32 bits of milliseconds. */
TEST(who_was_used_least_recently_is_forgotten_after_years)
{
    static const struct { unsigned a, b, c; } days[] = {
        { 0, 31, 20 }, { 0, 1, 49 }, { 3, 49, 1 }, { 1, 60, 60 }, { 0, 90, 40 },
    };

    for (size_t i = 0; i < COUNT(days); i++) {
        run_on_new("ram evict senders=2 capacity=4");
        for (unsigned day = 0; day < days[i].a; day++)
            run_words("+86400000 ?x/0.1:none");
        run_words("a/0.7");
        for (unsigned day = 0; day < days[i].b; day++)
            run_words("+86400000 ?x/0.1:none");
        run_words("b/0.7");
        for (unsigned day = 0; day < days[i].c; day++)
            run_words("+86400000 ?x/0.1:none");
        run_words("T c/0.7 y1 b/0.7:old c/0.7:replay");
    }
}

/* Words of a sender and its number. */
static void run_for(const char *words, unsigned who, unsigned number)
{
    char line[80];

    (void)snprintf(line, sizeof line, words, who, number);
    run_words(line);
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
            run_for(is_known ? "!%u/0.0" : "!%u/0.0:none", who, 0);
            count -= is_known;
            latest[who] = 0;
        } else if (!is_known && count == ENTRIES) {
            run_for("%u/0.%u:full", who, round);
        } else {
            count += !is_known;
            latest[who] = round;
            run_for("%u/0.%u", who, round);
        }
        if (round % 100 == 0) {
            run_words("T");
            for (who = 0; who < SENDERS; who++)
                if (latest[who])
                    run_for("%u/0.%u:old", who, latest[who]);
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
            (void)snprintf(line, sizeof line, "%u/1.10 T %u/1.9:old %u/0.1",
                           *other, *other, n);
            run_on_new("ram senders=2");
            run_words(line);
            pairs++;
        }
        *other = n;
    }
    assert_in_range(pairs, 1, 40);
}
