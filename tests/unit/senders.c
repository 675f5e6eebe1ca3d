/* SPDX-License-Identifier: 0BSD */
/*
 * Numbers instead of keys, quotas, accounts (>>senders of the manual), for one
 * boot: their edges, and who has which account.  What becomes old, and when, is
 * in numbers.c; the same over restarts in journal_senders.c.
 *
 * What several calls show is a line of words:
 *
 *     7.-1        number -1, the last one, of epoch 7: executed and completed
 *     c/7.1:old   of the sender c, not of "panel", answered so
 *     c/k         the key k of c
 *     ?7.1 !7.1   7.1 is looked for; it is forgotten
 *     T +9        a retention passes, and what is over is dropped; 9 ms pass
 *
 * "execute" is a claim that is left alone.
 */
#include "fixture.h"

#define LAST UINT32_MAX                 // of the sequences

static uint32_t now;

static idem_request number_of(const fixture *f, const char *scope,
                              uint32_t epoch, uint32_t sequence)
{
    idem_request rq = request_of(f, scope, "", "pour");

    rq.key = NULL;
    rq.epoch = epoch;
    rq.sequence = sequence;
    return rq;
}

/* Of a sender that does not matter. */
static int number(fixture *f, uint32_t epoch, uint32_t sequence)
{
    idem_request rq = number_of(f, "panel", epoch, sequence);

    return begin_request(f, &rq, now);
}

static const struct { const char *name; int answer; } answers[] = {
    { "", IDEM_OK }, { "execute", IDEM_EXECUTE }, { "old", IDEM_TOO_OLD },
    { "replay", IDEM_REPLAY }, { "full", IDEM_E_FULL }, { "busy", IDEM_BUSY },
    { "refused", IDEM_E_ARG }, { "large", IDEM_E_TOO_LARGE },
    { "none", IDEM_E_NOT_FOUND },
};

/* Begins, and completes if nothing else is said; looks; forgets. */
static int make(fixture *f, char what, const idem_request *rq, int whole)
{
    int result;

    if (what == '?')
        return find_request(f, rq, now);
    if (what == '!')
        return checked(f, idem_forget(&f->table, rq, now));
    result = begin_request(f, rq, now);
    return whole && result == IDEM_EXECUTE
               ? complete(f, &f->claim, "poured", now) : result;
}

static void tell_word(fixture *f, const char *word)
{
    char scope[24] = "panel", id[24] = "", told[16] = "";
    const char *from = word + (*word == '?' || *word == '!');
    const char *slash = strchr(word, '/');
    long long epoch, sequence;
    idem_request rq;
    size_t i = 0;
    int result;

    if (slash) {
        (void)snprintf(scope, sizeof scope, "%.*s", (int)(slash - from), from);
        from = slash + 1;
    }
    (void)sscanf(from, "%23[^:]:%15s", id, told);
    while (strcmp(answers[i].name, told) != 0)
        assert_true(++i < COUNT(answers));
    rq = sscanf(id, "%lli.%lli", &epoch, &sequence) == 2
             ? number_of(f, scope, (uint32_t)epoch, (uint32_t)sequence)
             : request_of(f, scope, id, "pour");
    result = make(f, *word, &rq, !*told);
    if (result != answers[i].answer)
        fail_msg("%s: %d", word, result);
}

static void tell(fixture *f, const char *line)
{
    char word[50];

    for (int len; sscanf(line, "%49s%n", word, &len) == 1; line += len) {
        if (*word == '+')
            now += (uint32_t)strtoul(word + 1, NULL, 10);
        else if (*word != 'T')
            tell_word(f, word);
        else
            for (now += RETENTION; maintain(f, now) == IDEM_MORE;)
                ;
    }
}

/* .. to a table that is new. */
static void tell_new(fixture *f, uint32_t senders, uint32_t capacity,
                     const char *line)
{
    f->config.senders = senders;
    f->config.capacity = capacity;
    now = 0;
    fixture_open(f, 0);
    tell(f, line);
}

/* -------------------------------------------------------- what a number is */

TEST(a_sender_of_which_nothing_is_known_may_begin_anywhere)
{
    static const uint32_t anywhere[] = { 1, 2, 77, 0x80000000u, LAST - 1,
                                         LAST };

    for (size_t e = 0; e <= COUNT(anywhere); e++)
        for (size_t s = 0; s < COUNT(anywhere); s++) {
            uint32_t epoch = e < COUNT(anywhere) ? anywhere[e] : 0;
            tell_new(f, 1, 4, "");
            is(number(f, epoch, anywhere[s]), IDEM_EXECUTE);
            is(number(f, epoch, anywhere[s]), IDEM_BUSY);
        }
}

/* The bytes of a key may be those of a number; it is another key. */
TEST(a_number_is_no_key_of_the_same_bytes)
{
    static const char bytes[8] = { 9, 0, 0, 0, 3, 0, 0, 0 };
    idem_request rq = request_of(f, "panel", "", "pour");

    tell_new(f, 1, 4, "3.9");
    rq.key = bytes;
    rq.key_len = sizeof bytes;
    is(begin_request(f, &rq, 0), IDEM_EXECUTE);
    tell(f, "3.9:replay");
    is(live(f, 0), 2);
    now = RETENTION;
    tell(f, "3.9:old");
    is(complete(f, &f->claim, "x", 0), IDEM_E_FENCED);
    // A key is forgotten when its retention is over, and executed again.
    is(begin_request(f, &rq, RETENTION + LEASE), IDEM_EXECUTE);
}

typedef struct named {
    uint64_t hash;
    unsigned number;
} named;

/* By the low half of the hash. */
static int by_half(const void *a, const void *b)
{
    uint32_t x = (uint32_t)((const named *)a)->hash;
    uint32_t y = (uint32_t)((const named *)b)->hash;

    return x < y ? -1 : x > y;
}

/* An account is found by a hash of the scope, which is that of a payload: two
   scopes with one half of it alike are sought among many. */
TEST(who_has_half_a_hash_of_another_is_another)
{
    enum { MANY = 300000 };
    static named names[MANY];
    char line[60];
    unsigned pairs = 0;

    for (unsigned i = 0; i < MANY; i++) {
        idem_fingerprint_state hash;
        int len = snprintf(line, sizeof line, "%u", i);
        idem_fingerprint_init(&hash, &f->config);
        idem_fingerprint_update(&hash, line, (size_t)len);
        names[i] = (named){ idem_fingerprint_final(&hash), i };
    }
    qsort(names, MANY, sizeof *names, by_half);
    for (const named *n = names; n < names + MANY - 1; n++) {
        if (by_half(n, n + 1) != 0)
            continue;
        (void)snprintf(line, sizeof line, "%u/1.10 T %u/1.9:old %u/0.1",
                       n[0].number, n[0].number, n[1].number);
        tell_new(f, 2, 4, line);
        pairs++;
    }
    assert_in_range(pairs, 1, 40);
}

TEST(sequences_do_not_wrap_an_epoch_goes_on)
{
    tell_new(f, 1, 4, "7.-1 7.0:refused T 7.1:old 7.-1:old 7.0:refused 8.1 "
                      "-1.1 -1.-1 T");
    for (uint32_t sequence = 1; sequence; sequence <<= 1)
        is(number(f, LAST, sequence), IDEM_TOO_OLD);
}

TEST(a_sequence_with_a_key_or_without_senders_is_a_misuse)
{
    idem_request rq = number_of(f, "panel", 0, 1);

    unit_misuse = 0;
    tell_new(f, 0, 4, "0.1:refused !0.1:refused");
    is(unit_misuse, 2);
    rq.key = "k";
    rq.key_len = 1;
    tell_new(f, 1, 4, "");
    is(begin_request(f, &rq, 0), IDEM_E_ARG);
    is(idem_find(&f->table, &f->entry, &rq, 0), IDEM_E_ARG);
    is(unit_misuse, 4);
    // Without either it is the sender's mistake: nobody is told.
    tell(f, "5.0:refused ?5.0:refused !5.0:refused");
    is(f->claim.token, 0);
    is(unit_misuse, 4);
    is(f->table.used, 0);
    tell(f, "5.1");
}

TEST(with_a_key_an_epoch_means_nothing)
{
    f->request.epoch = 5;
    tell_new(f, 1, 4, "panel/key");
    f->request.epoch = 6;
    tell(f, "panel/key:replay");
}

TEST(a_number_takes_8_bytes_of_key_max)
{
    tell_new(f, 1, 4, "sssssssssssssssss/0.1:large ssssssssssssssss/0.1");
    f->config.key_max = 7;
    tell_new(f, 1, 4, "/0.1:large");
    f->config.key_max = 8;
    tell_new(f, 1, 4, "/-1.-1:execute /-1.-1:busy");
}

TEST(an_account_takes_the_memory_that_the_manual_says)
{
    size_t without = f->table.needed;

    is(sizeof(idem_sender), IDEM_WIDE ? 28 : 24);
    is(IDEM_SENDERS_MEMORY_SIZE(3), 3 * (sizeof(idem_sender) + 4));
    tell_new(f, 3, CAPACITY, "");
    is(f->table.needed, without + 3 * sizeof(idem_sender));
}

TEST(above_the_floor_in_any_order_with_gaps_of_any_width)
{
    tell_new(f, 1, 16,
             "0.49 +1000 0.49:old 0.1000 0.50 0.0x7FFFFFFF 0.51 0.0x80000000 "
             "0.-1 0.52 0.-2 0.999 0.65535 0.1000:replay 0.50:replay "
             "0.0x7FFFFFFF:replay 0.51:replay 0.0x80000000:replay 0.-1:replay "
             "0.52:replay 0.-2:replay 0.999:replay 0.65535:replay");
    for (uint32_t n = 1; n < 50; n++)
        is(number(f, 0, n), IDEM_TOO_OLD);
    is(f->table.used, 10);
}

/* ---------------------------------------------- more senders than accounts */

TEST(who_has_nothing_to_remember_makes_room)
{
    tell_new(f, 2, 8, "0.10 b/key c/0.1:full c/key:full");
    is(f->reply.retry_after_ms, 0);
    is(f->table.stats.crowded, 2);
    is(f->table.stats.full, 2);
    tell(f, "b/key:replay");
    // Nobody asks for it, but it is in the way, and over.
    now = RETENTION;
    tell(f, "c/0.1:execute");
    is(f->table.stats.crowded, 2);
    // A number is remembered, though no key is.
    tell(f, "d/0.1:full 0.10:old");
    is(f->table.stats.crowded, 3);
}

TEST(with_eviction_the_idlest_without_keys_makes_room)
{
    f->config.full = IDEM_EVICT_OLDEST;
    tell_new(f, 3, 8, "a/0.10 +3600000 b/0.10 +3600000 c/0.10 +3599000 T "
                      "a/0.11 d/0.10");
    is(f->table.stats.crowded, 1);                      // b went
    tell(f, "a/0.10:old c/0.10:old a/0.11:replay e/0.10");
    is(f->table.stats.crowded, 2);                      // c went
    tell(f, "b/0.11:full");                             // all have keys now
    is(f->table.stats.crowded, 3);
    tell(f, "a/0.11:replay");
}

/* How idle somebody is, is told right for years. */
TEST(a_sender_in_use_is_never_forgotten_for_another)
{
    char line[60];

    f->config.full = IDEM_EVICT_OLDEST;
    tell_new(f, 2, 4, "");
    for (int n = 1; n < 400; n++) {
        (void)snprintf(line, sizeof line,
                       "+86400000 good/0.%d +86400000 %d/0.%d good/0.%d:old", n,
                       n, n, n);
        tell(f, line);
    }
    is(f->table.stats.crowded, 398);
}

/* Of one that was forgotten all who are unknown have the reach. */
TEST(the_reach_of_a_forgotten_sender_is_that_of_the_unknown)
{
    f->config.quota = 1;
    f->config.full = IDEM_EVICT_OLDEST;
    tell_new(f, 1, 8, "");
    is(elapse(f, 2 * RETENTION), IDEM_OK);
    tell(f, "0.1 +10 0.2 +10 !0.2 other/0.1:execute");
    is(f->table.stats.crowded, 1);
    f->request.age_ms = 20;
    tell(f, "0.3:old");
    f->request.age_ms = 19;                 // the one account has a live key
    tell(f, "0.3:full");
    is(f->table.stats.crowded, 2);
}

/* ---------------------------------------------------- looking, and vectors */

/* An id that is one byte too short for it is not touched. */
TEST(a_number_is_found_shown_and_forgotten_by_itself)
{
    static const unsigned char bytes[13] = {
        'p', 'a', 'n', 'e', 'l', 0x44, 0x33, 0x22, 0x11, 0x88, 0x77, 0x66, 0x55
    };
    idem_entry entry = { .id = f->id, .id_size = sizeof f->id };
    idem_request rq = number_of(f, "panel", 0x55667788, 0x11223344);

    tell_new(f, 1, 4, "0x55667788.0x11223344 ?0x55667788.0x11223344");
    is(f->entry.scope_len, 5);
    is(f->entry.key_len, 0);
    assert_memory_equal(f->id, bytes, sizeof bytes);
    tell(f, "?0x55667788.0x11223345:none ?0x55667787.0x11223344:none "
            "!0x55667787.0x11223344:none panel/key");
    for (int n = 0; n < 2; n++) {
        is(idem_next(&f->table, &entry, 0), IDEM_OK);
        is(entry.sequence, entry.key_len ? 0 : 0x11223344);
        is(entry.epoch, entry.key_len ? 0 : 0x55667788);
    }
    memset(f->id, '.', sizeof f->id);
    entry.id_size = sizeof bytes - 1;
    is(idem_find(&f->table, &entry, &rq, 0), IDEM_OK);
    is(f->id[0], '.');
    tell(f, "!0x55667788.0x11223344 ?0x55667788.0x11223344:none "
            "0x55667788.0x11223344");
}

/* What others ask of a window of counters, asked of a floor: the 34 values of
   WireGuard's counter selftest, with T its width and one, 8129, each one higher
   as 0 is no sequence.  Where its window has moved on, here all before is over.
   What is behind a window but above the floor is executed, and what comes again
   while it is known is replayed. */
TEST(vectors_of_a_counter_one_by_one)
{
    tell_new(f, 1, 24,
             "0.1 0.2 0.2:replay 0.10 0.9 0.8 0.8:replay 0.8130 0.8129 "
             "0.8129:replay 0.8128 0.3 0.3:replay T "
             "0.8146 0.4:old 0.8146:replay T "           // T + 17
             "0.32517 0.24389 0.11:old "                 // 4 T + 1, 3 T + 2
             "0.24388 0.24387 0.24390 0.24389:replay "
             "0.1:old 0.0:refused "                      // past the last one
             "0.-1 0.0:refused 0.-1:replay 0.-2 0.1:old "
             "0.2:old 0.-2:replay 0.-3 0.1:old T "
             "0.-3:old 0.-1:old 0.1:old");
}
