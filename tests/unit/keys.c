/* SPDX-License-Identifier: 0BSD */
/*
 * Shows the life of a key: each arrow of the manual's picture (>>promises), each
 * arrow that must not exist, and each row of its table of answers.
 *
 * Promises: S1 (one current claim), S2 (replay), S3 (fingerprints), S4
 * (recover, not execute), S7 (a refusal changes nothing; a completion always
 * fits), L2 (attempts end).  Deadlines are met to the millisecond; what becomes
 * of them when the tick misbehaves is in time.c.
 */
#include "fixture.h"

#include "inside.h"

/* ---------------------------------------------------------------------------
   every state, every call
   ------------------------------------------------------------------------ */
enum state {
    UNKNOWN,
    CLAIMED,
    OVER,           // the lease is
    OVERTAKEN,      // claimed by somebody else; the claim is the first one's
    EXHAUSTED,
    COMPLETED,
    FAILED,
    RELEASED,
    FORGOTTEN,
    DROPPED,        // at the end of retention
    STATES
};

enum call {
    BEGIN,
    BEGIN_OTHER,    // with another payload
    COMPLETE,
    RELEASE,
    RENEW,
    FORGET,
    DELIVERED,
    RESPONSE,
    CALLS
};

/* Opens a table, brings the key "k" to a state, and gives the time at which it
   is there, and a claim on it that was once granted. */
static uint32_t bring_to(fixture *f, enum state state, idem_claim *claim)
{
    uint32_t now = 10;

    f->config.max_attempts = 2;
    f->outcome.failed = state == FAILED;
    fixture_open(f, 0);
    memset(claim, 0, sizeof *claim);
    if (state == UNKNOWN)
        return now;
    is(ask(f, "k", now), IDEM_EXECUTE);
    *claim = f->claim;
    switch (state) {
    case OVER:
        return now + LEASE;
    case OVERTAKEN:
        is(ask(f, "k", now + LEASE), IDEM_RECOVER);
        return now + LEASE;
    case EXHAUSTED:
        is(ask(f, "k", now + LEASE), IDEM_RECOVER);
        *claim = f->claim;
        return now + LEASE + LEASE;
    case COMPLETED:
    case FAILED:
        is(complete(f, claim, "poured", now), IDEM_OK);
        return now;
    case RELEASED:
        is(release(f, claim, now), IDEM_OK);
        return now;
    case FORGOTTEN:
        is(forget(f, "panel", "k", now + LEASE), IDEM_OK);
        return now + LEASE;
    case DROPPED:
        return now + LEASE + RETENTION;
    default:
        return now;
    }
}

static int make(fixture *f, enum call call, const idem_claim *claim,
                uint32_t now)
{
    char piece[RESPONSE_MAX];
    size_t len = sizeof piece;

    switch (call) {
    case BEGIN:
        return ask(f, "k", now);
    case BEGIN_OTHER:
        return begin(f, "panel", "k", "pour more", now);
    case COMPLETE:
        return complete(f, claim, "done", now);
    case RELEASE:
        return release(f, claim, now);
    case RENEW:
        return renew(f, claim, LEASE, now);
    case FORGET:
        return forget(f, "panel", "k", now);
    case DELIVERED:
        return checked(f, idem_delivered(&f->table, claim));
    default:
        return checked(f, idem_response(&f->table, piece, &len, claim, 0));
    }
}

/* Short names, for the table below. */
enum {
    EXEC = IDEM_EXECUTE,
    RECO = IDEM_RECOVER,
    REPL = IDEM_REPLAY,
    BUSY = IDEM_BUSY,
    MISM = IDEM_MISMATCH,
    EXHA = IDEM_EXHAUSTED,
    DONE = IDEM_OK,
    FENC = IDEM_E_FENCED,
    NONE = IDEM_E_NOT_FOUND
};

/* What each call answers in each state, and which status the key has then: 0
   unknown, 1 in progress, 2 completed, 3 failed.  All of S1 is in here. */
static const struct {
    int answer[CALLS];
    const char *after;
} life[STATES] = {
    /*  begin other compl relea renew forge deliv respo */
    [UNKNOWN] =
      { { EXEC, EXEC, FENC, FENC, FENC, NONE, NONE, NONE }, "11000000" },
    [CLAIMED] =
      { { BUSY, MISM, DONE, DONE, DONE, BUSY, NONE, NONE }, "11201111" },
    [OVER] =
      { { RECO, MISM, DONE, DONE, DONE, DONE, NONE, NONE }, "11201011" },
    [OVERTAKEN] =
      { { BUSY, MISM, FENC, FENC, FENC, BUSY, NONE, NONE }, "11111111" },
    [EXHAUSTED] =
      { { EXHA, MISM, DONE, DONE, DONE, DONE, NONE, NONE }, "11201011" },
    [COMPLETED] =
      { { REPL, MISM, FENC, FENC, FENC, DONE, DONE, DONE }, "22222022" },
    [FAILED] =
      { { REPL, MISM, FENC, FENC, FENC, DONE, DONE, DONE }, "33333033" },
    [RELEASED] =
      { { EXEC, EXEC, FENC, FENC, FENC, NONE, NONE, NONE }, "11000000" },
    [FORGOTTEN] =
      { { EXEC, EXEC, FENC, FENC, FENC, NONE, NONE, NONE }, "11000000" },
    [DROPPED] =
      { { EXEC, EXEC, FENC, FENC, FENC, NONE, NONE, NONE }, "11000000" },
};

/* Calls f with every pair of state and call. */
static void for_each_pair(fixture *f,
                          void (*check)(fixture *, enum state, enum call))
{
    int state, call;

    for (state = 0; state < STATES; state++)
        for (call = 0; call < CALLS; call++)
            check(f, (enum state)state, (enum call)call);
}

static void check_answer(fixture *f, enum state state, enum call call)
{
    idem_claim claim;
    uint32_t now = bring_to(f, state, &claim);

    f->outcome.failed = 0;
    is(make(f, call, &claim, now), life[state].answer[call]);
    (void)find(f, "panel", "k", now);
    is(f->entry.status, life[state].after[call] - '0');
}

TEST(s1_s3_every_call_answers_as_the_state_of_the_key_says)
{
    for_each_pair(f, check_answer);
}

static void check_refusal(fixture *f, enum state state, enum call call)
{
    int answer = life[state].answer[call];
    idem_claim claim;
    idem_entry before;
    uint32_t now = bring_to(f, state, &claim);

    if (answer == EXEC || answer == RECO || answer == DONE)
        return;
    (void)find(f, "panel", "k", now);
    before = f->entry;
    is(make(f, call, &claim, now), answer);
    (void)find(f, "panel", "k", now);
    assert_memory_equal(&f->entry, &before, sizeof before);
}

TEST(s7_what_is_not_done_leaves_the_key_as_it_was)
{
    for_each_pair(f, check_refusal);
}

static void check_fingerprint(fixture *f, enum state state, enum call call)
{
    idem_claim claim;
    uint32_t now = bring_to(f, state, &claim);
    uint64_t fingerprint;

    // Whatever happened before: what is known now decides.
    (void)make(f, call, &claim, now);
    if (find(f, "panel", "k", now) != IDEM_OK)
        return;
    f->request.has_fingerprint = 1;
    fingerprint = f->entry.fingerprint;
    for (int bit = 0; bit < 64; bit++) {
        f->request.fingerprint = fingerprint ^ UINT64_C(1) << bit;
        is(ask(f, "k", now), IDEM_MISMATCH);
    }
    f->request.fingerprint = fingerprint;
    assert_int_not_equal(ask(f, "k", now), IDEM_MISMATCH);
    f->request.has_fingerprint = 0;
}

TEST(s3_one_other_bit_is_a_mismatch_in_every_state)
{
    for_each_pair(f, check_fingerprint);
}

TEST(every_answer_of_the_manual_comes)
{
    idem_claim claim, none = { 0 };

    fixture_open(f, 1000);
    is(ask(f, "k", 1000), IDEM_EXECUTE);
    is(ask(f, "k", 1000), IDEM_BUSY);
    is(begin(f, "panel", "k", "?", 1000), IDEM_MISMATCH);
    is(ask(f, "k", 1100), IDEM_RECOVER);
    is(ask(f, "k", 1200), IDEM_RECOVER);
    claim = f->claim;
    is(ask(f, "k", 1300), IDEM_EXHAUSTED);
    is(complete(f, &claim, "poured", 1300), IDEM_OK);
    is(ask(f, "k", 1300), IDEM_REPLAY);
    f->request.age_ms = 301;
    is(ask(f, "young", 1300), IDEM_TOO_OLD);
    f->request.age_ms = 0;

    is(ask(f, "", 1300), IDEM_E_ARG);
    is(ask(f, "20 bytes and a scope", 1300), IDEM_E_TOO_LARGE);
    is(complete(f, &none, "", 1300), IDEM_E_FENCED);
    is(find(f, "panel", "?", 1300), IDEM_E_NOT_FOUND);
    for (uint32_t i = 0; i < CAPACITY - 1; i++)
        is(ask(f, nth(i), 1300), IDEM_EXECUTE);
    is(ask(f, nth(CAPACITY - 1), 1300), IDEM_E_FULL);

    f->config.capacity = 100;
    fixture_open(f, 0);
    is(maintain(f, 0), IDEM_MORE);
    is(idem_open(&f->table, &f->config, f->memory, 1, 0), IDEM_E_MEMORY);
}

static int refuse(void *ctx)
{
    (void)ctx;
    return 1;
}

static void ignore(void *ctx)
{
    (void)ctx;
}

TEST(a_lock_that_is_refused_is_the_last_of_the_answers)
{
    f->config.lock = refuse;
    f->config.unlock = ignore;
    fixture_open(f, 0);
    is(ask(f, "k", 0), IDEM_E_LOCK);
}

/* ---------------------------------------------------------------------------
   deadlines
   ------------------------------------------------------------------------ */

/* Begins "k" in a new table, and again `wait` ms later. */
static int ask_twice(fixture *f, uint32_t wait)
{
    fixture_open(f, 7);
    is(ask(f, "k", 7), IDEM_EXECUTE);
    // No call may be further from the last one than half the tick's range.
    return ask(f, "k", 7 + wait);
}

TEST(s4_a_lease_covers_the_millisecond_before_its_end_and_no_more)
{
    static const uint32_t leases[] = { 1, 2, LEASE, 30000, IDEM_LEASE_MAX };

    f->request.retention_ms = IDEM_RETENTION_MAX;
    for (size_t i = 0; i < COUNT(leases); i++) {
        f->request.lease_ms = leases[i];
        is(ask_twice(f, leases[i] - 1), IDEM_BUSY);
        is(f->reply.retry_after_ms, 1);
        is(ask_twice(f, leases[i]), IDEM_RECOVER);
        is(f->claim.attempt, 2);
        is(f->reply.retry_after_ms, 0);
        is(ask_twice(f, leases[i] + 1), IDEM_RECOVER);
    }
}

TEST(the_default_lease_is_half_a_minute)
{
    f->config.lease_ms = 0;
    f->config.retention_ms = 0;
    is(ask_twice(f, 29999), IDEM_BUSY);
    is(ask_twice(f, 30000), IDEM_RECOVER);
}

TEST(s1_a_lease_without_end_is_never_taken_over)
{
    uint32_t now = 7;
    idem_claim claim;

    f->request.lease_ms = IDEM_LEASE_NONE;
    is(ask_twice(f, 0), IDEM_BUSY);
    is(f->reply.retry_after_ms, IDEM_LEASE_NONE);

    fixture_open(f, now);
    is(ask(f, "k", now), IDEM_EXECUTE);
    claim = f->claim;
    for (int day = 0; day < 200; day++) {
        now += 86400000;
        is(ask(f, "k", now), IDEM_BUSY);
        is(f->reply.retry_after_ms, IDEM_LEASE_NONE);
        is(forget(f, "panel", "k", now), IDEM_BUSY);
    }
    is(complete(f, &claim, "poured", now), IDEM_OK);
    is(ask(f, "k", now), IDEM_REPLAY);
    is(ask(f, "k", now + RETENTION), IDEM_EXECUTE);
}

/* Finishes "k" in a new table 5 ms after its begin, and begins it again `wait`
   ms after that. */
static int ask_finished(fixture *f, uint32_t wait)
{
    fixture_open(f, 7);
    is(ask(f, "k", 7), IDEM_EXECUTE);
    is(complete(f, &f->claim, "poured", 12), IDEM_OK);
    return ask(f, "k", 12 + wait);
}

TEST(s2_retention_counts_from_the_completion_to_the_millisecond)
{
    static const uint32_t retentions[] = { 1, 2, RETENTION, 2047 };

    for (size_t i = 0; i < COUNT(retentions); i++) {
        f->request.retention_ms = retentions[i];
        is(ask_finished(f, retentions[i] - 1), IDEM_REPLAY);
        is(f->reply.age_ms, retentions[i] - 1);
        assert_string_equal(f->buffer, "poured");
        is(ask_finished(f, retentions[i]), IDEM_EXECUTE);
        is(f->claim.attempt, 1);
        is(ask_finished(f, retentions[i] + 1), IDEM_EXECUTE);
    }
}

TEST(the_default_retention_is_a_day)
{
    f->config.retention_ms = 0;
    is(ask_finished(f, 86399999), IDEM_REPLAY);
    is(ask_finished(f, 86486400), IDEM_EXECUTE);
}

TEST(s4_a_cut_short_key_is_kept_one_retention_from_the_leases_end)
{
    uint32_t end = LEASE + RETENTION;

    is(ask_twice(f, end - 1), IDEM_RECOVER);
    is(ask_twice(f, end), IDEM_EXECUTE);
    is(f->claim.attempt, 1);
    is(ask_twice(f, end + 1), IDEM_EXECUTE);
}

TEST(l2_an_exhausted_key_is_kept_one_retention_from_the_leases_end)
{
    uint32_t end = LEASE + RETENTION;

    f->config.max_attempts = 1;
    is(ask_twice(f, LEASE), IDEM_EXHAUSTED);
    is(ask_twice(f, end - 1), IDEM_EXHAUSTED);
    // Asking does not keep it longer.
    is(ask(f, "k", 7 + end), IDEM_EXECUTE);
    is(f->claim.attempt, 1);
}

/* ---------------------------------------------------------------------------
   claims
   ------------------------------------------------------------------------ */
TEST(s1_a_late_holder_may_complete_if_nobody_took_over)
{
    is(ask(f, "k", 0), IDEM_EXECUTE);
    is(complete(f, &f->claim, "late", LEASE + RETENTION - 1), IDEM_OK);
    is(ask(f, "k", LEASE + RETENTION), IDEM_REPLAY);
    assert_string_equal(f->buffer, "late");
    is(f->reply.age_ms, 1);
}

TEST(s1_a_late_holder_is_fenced_once_its_key_is_dropped)
{
    is(ask(f, "k", 0), IDEM_EXECUTE);
    is(complete(f, &f->claim, "late", LEASE + RETENTION), IDEM_E_FENCED);
    is(find(f, "panel", "k", LEASE + RETENTION), IDEM_E_NOT_FOUND);
}

TEST(s1_a_late_holder_may_renew_and_is_protected_again)
{
    is(ask(f, "k", 0), IDEM_EXECUTE);
    is(renew(f, &f->claim, 50, LEASE + 10), IDEM_OK);
    is(ask(f, "k", LEASE + 59), IDEM_BUSY);
    is(ask(f, "k", LEASE + 60), IDEM_RECOVER);
}

TEST(s1_only_the_newest_of_several_holders_is_current)
{
    idem_claim claims[5];
    uint32_t now = 0;

    f->config.max_attempts = COUNT(claims);
    fixture_open(f, now);
    for (size_t i = 0; i < COUNT(claims); i++, now += LEASE) {
        is(ask(f, "k", now), i ? IDEM_RECOVER : IDEM_EXECUTE);
        claims[i] = f->claim;
        for (size_t j = 0; j < i; j++) {
            is(complete(f, &claims[j], "", now), IDEM_E_FENCED);
            is(release(f, &claims[j], now), IDEM_E_FENCED);
            is(renew(f, &claims[j], 0, now), IDEM_E_FENCED);
        }
    }
    is(f->table.stats.fenced, 3 * (1 + 2 + 3 + 4));
    is(complete(f, &claims[4], "last", now), IDEM_OK);
    is(complete(f, &claims[4], "twice", now), IDEM_E_FENCED);
    is(ask(f, "k", now), IDEM_REPLAY);
    assert_string_equal(f->buffer, "last");
}

TEST(s1_a_claim_is_fenced_when_its_slot_has_another_key)
{
    idem_claim gone;

    f->config.capacity = 1;
    fixture_open(f, 0);
    is(ask(f, "a", 0), IDEM_EXECUTE);
    gone = f->claim;
    is(release(f, &gone, 0), IDEM_OK);
    is(ask(f, "b", 0), IDEM_EXECUTE);
    is(complete(f, &gone, "", 0), IDEM_E_FENCED);
    is(release(f, &gone, 0), IDEM_E_FENCED);
    is(complete(f, &f->claim, "", 0), IDEM_OK);
    is(checked(f, idem_delivered(&f->table, &gone)), IDEM_E_NOT_FOUND);
}

TEST(s1_a_claim_that_was_never_granted_is_fenced)
{
    idem_claim claim;

    is(ask(f, "k", 0), IDEM_EXECUTE);
    for (uint64_t token = 0; token < 4; token++)
        for (uint32_t slot = 0; slot < CAPACITY + 2; slot++) {
            claim.token = token;
            claim.slot = slot;
            claim.attempt = 1;
            if (token == f->claim.token && slot == f->claim.slot)
                continue;
            is(complete(f, &claim, "", 0), IDEM_E_FENCED);
        }
    claim = f->claim;
    claim.slot = UINT32_MAX;
    is(complete(f, &claim, "", 0), IDEM_E_FENCED);
    is(complete(f, &f->claim, "", 0), IDEM_OK);
}

TEST(tokens_increase_strictly_over_all_keys)
{
    uint64_t last = 0;
    uint32_t seed = 1;

    for (uint32_t now = 0; now < 20000; now += 10) {
        int answer = ask(f, nth(dice(&seed) % 5), now);
        if (answer == IDEM_EXECUTE || answer == IDEM_RECOVER) {
            assert_true(f->claim.token > last);
            last = f->claim.token;
        } else {
            is(f->claim.token, 0);
        }
        if (dice(&seed) % 2)
            (void)release(f, &f->claim, now);
    }
    assert_true(last > 100);
}

TEST(s1_behind_the_last_token_no_claim_is_granted)
{
    inside_set_token(&f->table, (idem_token)-2);
    is(ask(f, "last", 0), IDEM_EXECUTE);
    assert_true(f->claim.token == (idem_token)-1);
    is(ask(f, "more", 0), IDEM_E_SPACE);
    is(complete(f, &f->claim, "", 0), IDEM_E_FENCED);
}

TEST(s1_the_low_half_of_the_token_may_wrap)
{
    idem_claim claims[CAPACITY];

    inside_set_token(&f->table, 0xFFFFFFFE);        // as after 4e9 claims
    if (sizeof claims[0].token == 4) {              // there are no more
        is(ask(f, nth(0), 0), IDEM_EXECUTE);
        is(ask(f, nth(1), 0), IDEM_E_SPACE);
        is(complete(f, &f->claim, "", 0), IDEM_E_FENCED);
        return;
    }
    for (uint32_t i = 0; i < CAPACITY; i++) {
        is(ask(f, nth(i), 0), IDEM_EXECUTE);
        claims[i] = f->claim;
        assert_true(claims[i].token == UINT64_C(0xFFFFFFFF) + i);
    }
    for (uint32_t i = 0; i < CAPACITY; i++) {
        idem_claim other = claims[i];
        other.token ^= UINT64_C(1) << 32;
        is(complete(f, &other, "", 0), IDEM_E_FENCED);
        is(renew(f, &claims[i], 0, 0), IDEM_OK);
        is(complete(f, &claims[i], "", 0), IDEM_OK);
        is(ask(f, nth(i), 0), IDEM_REPLAY);
        assert_true(f->reply.claim.token == claims[i].token);
        is(checked(f, idem_delivered(&f->table, &claims[i])), IDEM_OK);
        is(checked(f, idem_delivered(&f->table, &other)), IDEM_E_NOT_FOUND);
    }
}

TEST(a_claim_that_is_not_granted_is_zero_and_so_is_the_reply)
{
    static const idem_claim zero = { 0 };

    is(ask(f, "k", 0), IDEM_EXECUTE);
    is(f->reply.claim.token, 0);
    is(f->reply.response_len, 0);
    is(f->reply.status, 0);
    is(f->reply.code, 0);
    is(f->reply.age_ms, 0);
    is(f->reply.retry_after_ms, 0);
    assert_ptr_equal(f->reply.buffer, f->buffer);

    is(ask(f, "k", 0), IDEM_BUSY);
    assert_memory_equal(&f->claim, &zero, sizeof zero);
    is(ask(f, "", 0), IDEM_E_ARG);
    assert_memory_equal(&f->claim, &zero, sizeof zero);
}

/* ---------------------------------------------------------------------------
   attempts
   ------------------------------------------------------------------------ */

/* How many claims a key gets when every holder dies. */
static uint32_t attempts_granted(fixture *f, uint32_t *now)
{
    uint32_t granted = 0;

    for (;; *now += LEASE) {
        int answer = ask(f, "k", *now);
        if (answer == IDEM_EXHAUSTED)
            return granted;
        granted++;
        is(answer, granted == 1 ? IDEM_EXECUTE : IDEM_RECOVER);
        is(f->claim.attempt, granted);
    }
}

TEST(l2_a_key_is_exhausted_after_max_attempts)
{
    static const struct { uint8_t max; uint32_t granted; } cases[] = {
        { 0, 3 }, { 1, 1 }, { 2, 2 }, { 3, 3 }, { 4, 4 }, { 255, 255 },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        uint32_t now = 0;
        f->config.max_attempts = cases[i].max;
        fixture_open(f, now);
        is(attempts_granted(f, &now), cases[i].granted);
        is(ask(f, "k", now), IDEM_EXHAUSTED);
        is(find(f, "panel", "k", now), IDEM_OK);
        is(f->entry.attempts, cases[i].granted);
    }
}

TEST(attempts_start_anew_after_release_and_forget)
{
    uint32_t now = 0;

    is(ask(f, "k", now), IDEM_EXECUTE);
    is(ask(f, "k", now += LEASE), IDEM_RECOVER);
    is(release(f, &f->claim, now), IDEM_OK);
    is(attempts_granted(f, &now), 3);
    is(forget(f, "panel", "k", now), IDEM_OK);
    is(attempts_granted(f, &now), 3);
}

TEST(the_last_holder_of_an_exhausted_key_may_complete)
{
    idem_claim last;

    f->config.max_attempts = 1;
    fixture_open(f, 0);
    is(ask(f, "k", 0), IDEM_EXECUTE);
    last = f->claim;
    is(ask(f, "k", LEASE), IDEM_EXHAUSTED);
    is(complete(f, &last, "after all", LEASE), IDEM_OK);
    is(ask(f, "k", LEASE), IDEM_REPLAY);
}

/* ---------------------------------------------------------------------------
   renewal
   ------------------------------------------------------------------------ */

/* What is left of the lease of "k". */
static uint32_t left(fixture *f, uint32_t now)
{
    is(find(f, "panel", "k", now), IDEM_OK);
    return f->entry.left_ms;
}

TEST(renewing_lengthens_and_never_shortens)
{
    idem_claim claim;

    is(ask(f, "k", 0), IDEM_EXECUTE);
    claim = f->claim;
    is(renew(f, &claim, 10, 20), IDEM_OK);
    is(left(f, 20), LEASE - 20);
    is(renew(f, &claim, 200, 30), IDEM_OK);
    is(left(f, 30), 200);
    is(renew(f, &claim, 0, 180), IDEM_OK);                  // the default
    is(left(f, 180), LEASE);
    is(renew(f, &claim, IDEM_LEASE_MAX, 180), IDEM_OK);
    is(left(f, 180), IDEM_LEASE_MAX);
    is(renew(f, &claim, IDEM_LEASE_NONE, 180), IDEM_OK);
    is(left(f, 180), IDEM_LEASE_NONE);
    is(f->entry.attempts, 1);
}

TEST(renewing_a_lease_without_end_changes_nothing)
{
    f->request.lease_ms = IDEM_LEASE_NONE;
    is(ask(f, "k", 0), IDEM_EXECUTE);
    is(renew(f, &f->claim, 10, 5), IDEM_OK);
    is(left(f, 5), IDEM_LEASE_NONE);
    is(renew(f, &f->claim, IDEM_LEASE_NONE, 5), IDEM_OK);
    is(ask(f, "k", 5000), IDEM_BUSY);
}

TEST(a_renewed_claim_is_kept_one_retention_from_its_new_end)
{
    is(ask(f, "k", 0), IDEM_EXECUTE);
    is(renew(f, &f->claim, 5000, 50), IDEM_OK);
    is(find(f, "panel", "k", 5049 + RETENTION), IDEM_OK);
    is(find(f, "panel", "k", 5050 + RETENTION), IDEM_E_NOT_FOUND);
}

TEST(a_lease_out_of_range_is_refused)
{
    static const uint32_t wrong[] = { IDEM_LEASE_MAX + 1, IDEM_LEASE_NONE - 1 };
    idem_claim claim;

    is(ask(f, "k", 0), IDEM_EXECUTE);
    claim = f->claim;
    for (size_t i = 0; i < COUNT(wrong); i++) {
        is(renew(f, &claim, wrong[i], 0), IDEM_E_ARG);
        f->request.lease_ms = wrong[i];
        is(ask(f, "other", 0), IDEM_E_ARG);
    }
    f->request.lease_ms = 0;
    f->request.retention_ms = IDEM_RETENTION_MAX + 1;
    is(ask(f, "other", 0), IDEM_E_ARG);
    is(left(f, 0), LEASE);
    is(f->table.used, 1);
}

/* ---------------------------------------------------------------------------
   outcomes
   ------------------------------------------------------------------------ */
TEST(s7_a_response_over_the_reservation_leaves_the_claim)
{
    idem_claim claim;

    f->request.response_size = 4;
    is(ask(f, "k", 0), IDEM_EXECUTE);
    claim = f->claim;
    is(complete(f, &claim, "12345", 0), IDEM_E_TOO_LARGE);
    is(ask(f, "k", 0), IDEM_BUSY);
    is(complete(f, &claim, "1234", 0), IDEM_OK);
    is(ask(f, "k", 0), IDEM_REPLAY);
    assert_string_equal(f->buffer, "1234");
}

TEST(s7_reserving_nothing_reserves_response_max)
{
    idem_claim claim;

    is(ask(f, "k", 0), IDEM_EXECUTE);
    claim = f->claim;
    is(complete(f, &claim, "one byte too long", 0), IDEM_E_TOO_LARGE);
    is(complete(f, &claim, "just long enough", 0), IDEM_OK);
    is(ask(f, "k", 0), IDEM_REPLAY);
    assert_string_equal(f->buffer, "just long enough");
}

TEST(a_reservation_over_response_max_claims_nothing)
{
    f->request.response_size = RESPONSE_MAX + 1;
    is(ask(f, "k", 0), IDEM_E_TOO_LARGE);
    is(f->table.used, 0);
    f->request.response_size = RESPONSE_MAX;
    is(ask(f, "k", 0), IDEM_EXECUTE);
}

TEST(a_claim_taken_over_has_what_the_new_request_asks)
{
    f->request.response_size = 4;
    is(ask(f, "k", 0), IDEM_EXECUTE);
    f->request.response_size = 6;
    f->request.lease_ms = 300;
    f->request.retention_ms = 2000;
    is(ask(f, "k", LEASE), IDEM_RECOVER);
    is(left(f, LEASE), 300);
    is(f->entry.response_len, 6);
    is(complete(f, &f->claim, "123456", LEASE), IDEM_OK);
    is(ask(f, "k", LEASE + 1999), IDEM_REPLAY);
    is(ask(f, "k", LEASE + 2000), IDEM_EXECUTE);
}

TEST(an_empty_response_is_one)
{
    size_t len = 0;

    f->config.response_max = 0;
    fixture_open(f, 0);
    is(ask(f, "k", 0), IDEM_EXECUTE);
    is(complete(f, &f->claim, "x", 0), IDEM_E_TOO_LARGE);
    is(complete(f, &f->claim, NULL, 0), IDEM_OK);
    is(ask(f, "k", 0), IDEM_REPLAY);
    is(f->reply.response_len, 0);
    is(idem_response(&f->table, NULL, &len, &f->reply.claim, 0), IDEM_OK);
    is(len, 0);
}

/* Replays "k", 6 bytes long, into a buffer of that size. */
static void replay_into(fixture *f, void *buffer, size_t size)
{
    idem_request rq = request_of(f, "panel", "k", "pour");

    memset(f->buffer, '.', sizeof f->buffer);
    f->reply.buffer = buffer;
    f->reply.buffer_size = size;
    is(idem_begin(&f->table, &f->claim, &f->reply, &rq, 0), IDEM_REPLAY);
    is(f->reply.response_len, 6);
}

TEST(a_buffer_too_short_is_not_touched_and_the_length_is_told)
{
    (void)finish(f, "panel", "k", 0);
    replay_into(f, NULL, 0);
    replay_into(f, NULL, 100);
    replay_into(f, f->buffer, 0);
    is(f->buffer[0], '.');
    replay_into(f, f->buffer, 5);
    is(f->buffer[0], '.');
    replay_into(f, f->buffer, 6);
    assert_memory_equal(f->buffer, "poured.", 7);
    replay_into(f, f->buffer, 7);
    assert_memory_equal(f->buffer, "poured.", 7);
}

TEST(s2_an_outcome_is_replayed_in_every_detail)
{
    static const char bytes[5] = { 0, -1, 7, 0, 1 };

    for (uint8_t failed = 0; failed < 2; failed++) {
        idem_outcome outcome = {
            .response = bytes, .response_len = sizeof bytes,
            .code = INT32_MIN + failed, .failed = failed,
        };
        idem_claim claim;
        fixture_open(f, 0);
        is(ask(f, "k", 0), IDEM_EXECUTE);
        claim = f->claim;
        is(idem_complete(&f->table, &claim, &outcome, 3), IDEM_OK);
        for (uint32_t now = 3; now < 6; now++) {
            is(ask(f, "k", now), IDEM_REPLAY);
            is(f->reply.status, failed ? IDEM_FAILED : IDEM_COMPLETED);
            is(f->reply.code, INT32_MIN + failed);
            is(f->reply.age_ms, now - 3);
            is(f->reply.response_len, sizeof bytes);
            assert_memory_equal(f->buffer, bytes, sizeof bytes);
            assert_true(f->reply.claim.token == claim.token);
            is(f->reply.claim.slot, claim.slot);
            is(f->reply.claim.attempt, 1);
        }
    }
}

TEST(a_response_is_read_in_pieces)
{
    char piece[8] = ".......";
    size_t len;

    (void)finish(f, "panel", "other", 0);
    is(ask(f, "k", 0), IDEM_EXECUTE);
    is(complete(f, &f->claim, "0123456789", 0), IDEM_OK);
    for (size_t at = 0; at < 14; at++) {
        size_t rest = at < 10 ? 10 - at : 0;
        size_t want = rest < 4 ? rest : 4;
        len = 4;
        memset(piece, '.', 7);
        is(idem_response(&f->table, piece, &len, &f->claim, at), IDEM_OK);
        is(len, want);
        assert_memory_equal(piece, &"0123456789"[at < 10 ? at : 0], want);
        is(piece[want], '.');
    }
    len = 4;
    is(idem_response(&f->table, piece, &len, &f->claim, SIZE_MAX), IDEM_OK);
    is(len, 0);
}

TEST(s3_a_response_that_is_gone_is_not_found)
{
    idem_claim claim = finish(f, "panel", "k", 0);
    char piece[8];
    size_t len = 4;

    is(maintain(f, RETENTION), IDEM_OK);
    is(idem_response(&f->table, piece, &len, &claim, 0), IDEM_E_NOT_FOUND);
    is(len, 0);
}

/* ---------------------------------------------------------------------------
   fingerprints
   ------------------------------------------------------------------------ */
TEST(a_fingerprint_given_streamed_or_computed_is_the_same)
{
    static const char payload[] = "dispense 5 ml into cup number 3";
    idem_fingerprint_state hash;

    is(begin(f, "panel", "k", payload, 0), IDEM_EXECUTE);
    f->request.has_fingerprint = 1;
    for (size_t cut = 0; cut < sizeof payload; cut++) {
        idem_fingerprint_init(&hash, &f->config);
        idem_fingerprint_update(&hash, payload, cut);
        idem_fingerprint_update(&hash, payload + cut,
                                sizeof payload - 1 - cut);
        f->request.fingerprint = idem_fingerprint_final(&hash);
        // The payload beside a ready fingerprint is not looked at.
        is(ask(f, "k", 0), IDEM_BUSY);
    }
    is(find(f, "panel", "k", 0), IDEM_OK);
    assert_true(f->entry.fingerprint == f->request.fingerprint);
}

TEST(a_fingerprint_of_zero_is_legal)
{
    f->request.has_fingerprint = 1;
    is(ask(f, "k", 0), IDEM_EXECUTE);
    is(ask(f, "k", 0), IDEM_BUSY);
    f->request.fingerprint = 1;
    is(ask(f, "k", 0), IDEM_MISMATCH);
    f->request.has_fingerprint = 0;                 // now it does not count
    f->request.fingerprint = 0;
    is(ask(f, "k", 0), IDEM_MISMATCH);
}

TEST(an_empty_payload_needs_no_pointer_and_is_a_payload)
{
    idem_request rq = request_of(f, "", "k", "");

    rq.scope = NULL;
    rq.payload = NULL;
    is(begin_request(f, &rq, 0), IDEM_EXECUTE);
    is(begin(f, "", "k", "", 0), IDEM_BUSY);
    is(begin(f, "", "k", "x", 0), IDEM_MISMATCH);
}

/* ---------------------------------------------------------------------------
   application state
   ------------------------------------------------------------------------ */

/* Begins a new key and completes it with a state; what that answers. */
static int complete_with_state(fixture *f, const char *state, size_t len)
{
    idem_outcome outcome = { .state = state, .state_len = len };

    is(ask(f, nth(f->table.used), 0), IDEM_EXECUTE);
    return checked(f, idem_complete(&f->table, &f->claim, &outcome, 0));
}

static void assert_state(fixture *f, const char *state)
{
    char got[STATE_MAX + 1] = { 0 };
    size_t len = STATE_MAX;

    is(idem_state(&f->table, got, &len), IDEM_OK);
    is(len, strlen(state));
    assert_string_equal(got, state);
}

TEST(the_state_changes_only_with_an_outcome_that_has_one)
{
    size_t len = 0;

    is(idem_state(&f->table, NULL, &len), IDEM_OK);
    is(len, 0);
    is(complete_with_state(f, "total 41", 8), IDEM_OK);
    assert_state(f, "total 41");
    is(complete_with_state(f, NULL, 0), IDEM_OK);
    assert_state(f, "total 41");
    is(complete_with_state(f, "42", 2), IDEM_OK);
    assert_state(f, "42");
    is(complete_with_state(f, "", 0), IDEM_OK);
    assert_state(f, "");
}

TEST(s7_a_refused_completion_leaves_the_state)
{
    idem_outcome outcome = { .state = "B", .state_len = 1 };
    idem_claim done;

    is(complete_with_state(f, "A", 1), IDEM_OK);
    done = f->claim;
    is(checked(f, idem_complete(&f->table, &done, &outcome, 0)), IDEM_E_FENCED);
    is(complete_with_state(f, "too large", 9), IDEM_E_TOO_LARGE);
    assert_state(f, "A");
    outcome.response = "a response too long";
    outcome.response_len = RESPONSE_MAX + 1;
    is(checked(f, idem_complete(&f->table, &f->claim, &outcome, 0)),
       IDEM_E_TOO_LARGE);
    assert_state(f, "A");
    outcome.response_len = RESPONSE_MAX;
    is(checked(f, idem_complete(&f->table, &f->claim, &outcome, 0)), IDEM_OK);
    assert_state(f, "B");
}

TEST(a_state_that_does_not_fit_tells_its_length)
{
    char got[STATE_MAX] = ".......";
    size_t len = 4;

    is(complete_with_state(f, "total", 5), IDEM_OK);
    is(idem_state(&f->table, got, &len), IDEM_E_TOO_LARGE);
    is(len, 5);
    assert_string_equal(got, ".......");
    is(idem_state(&f->table, got, &len), IDEM_OK);
    assert_string_equal(got, "total..");
}

/* ---------------------------------------------------------------------------
   idem_run
   ------------------------------------------------------------------------ */
struct job {
    int calls;
    int answer;             // what the handler was told
    uint64_t token;
    uint32_t takes;         // ms
    int result;             // of the handler
    idem_outcome outcome;
};

static int work(void *ctx, idem_outcome *outcome, const idem_request *request,
                const idem_claim *claim, int answer, uint32_t *now_ms)
{
    static const idem_outcome zeroed;
    struct job *job = (struct job *)ctx;

    assert_memory_equal(outcome, &zeroed, sizeof zeroed);
    is(request->key_len, 1);
    job->calls++;
    job->answer = answer;
    job->token = claim->token;
    *outcome = job->outcome;
    *now_ms += job->takes;
    return job->result;
}

static int run(fixture *f, struct job *job, uint32_t now)
{
    idem_request rq = request_of(f, "panel", "k", "pour");

    memset(f->buffer, 0, sizeof f->buffer);
    f->reply.buffer = f->buffer;
    f->reply.buffer_size = sizeof f->buffer - 1;
    return checked(f, idem_run(&f->table, &f->claim, &f->reply, &rq, work, job,
                               now));
}

TEST(run_executes_once_and_replays_afterwards)
{
    struct job job = {
        .takes = 20,
        .outcome = { .response = "poured", .response_len = 6, .code = 5 },
    };

    for (uint32_t i = 0; i < 3; i++) {
        is(run(f, &job, 10 + 50 * i), i ? IDEM_REPLAY : IDEM_EXECUTE);
        is(job.calls, 1);
        is(f->reply.status, IDEM_COMPLETED);
        is(f->reply.code, 5);
        is(f->reply.response_len, 6);
        assert_string_equal(f->buffer, "poured");
        assert_true(f->reply.claim.token == job.token);
        // The completion is at the time that the handler said.
        is(f->reply.age_ms, i ? 50 * i - 20 : 0);
    }
    is(job.answer, IDEM_EXECUTE);
}

TEST(run_releases_when_the_handler_says_so)
{
    struct job job = { .result = -1 };

    is(run(f, &job, 0), IDEM_RELEASED);
    is(f->table.used, 0);
    is(f->reply.status, 0);
    is(f->reply.response_len, 0);
    job.result = 1;
    is(run(f, &job, 0), IDEM_RELEASED);
    job.result = 0;
    is(run(f, &job, 0), IDEM_EXECUTE);
    is(job.calls, 3);
    is(job.answer, IDEM_EXECUTE);
}

static int answer_in_place(void *ctx, idem_outcome *outcome,
                           const idem_request *request,
                           const idem_claim *claim, int answer,
                           uint32_t *now_ms)
{
    fixture *f = (fixture *)ctx;

    (void)request;
    (void)claim;
    (void)answer;
    (void)now_ms;
    memcpy(f->buffer, "poured", 6);
    outcome->response = f->buffer;
    outcome->response_len = 6;
    return 0;
}

TEST(run_takes_a_response_that_is_in_the_buffer_already)
{
    idem_request rq = request_of(f, "panel", "k", "pour");

    f->reply.buffer = f->buffer;
    f->reply.buffer_size = 6;
    for (int again = 0; again < 2; again++) {
        is(checked(f, idem_run(&f->table, &f->claim, &f->reply, &rq,
                               answer_in_place, f, 0)),
           again ? IDEM_REPLAY : IDEM_EXECUTE);
        is(f->reply.response_len, 6);
        assert_string_equal(f->buffer, "poured");
        memset(f->buffer, 0, sizeof f->buffer);
    }
}

/* Its length is told, and no byte of it is copied. */
TEST(run_with_a_buffer_too_short_tells_the_length)
{
    idem_request rq = request_of(f, "panel", "k", "pour");
    struct job job = {
        .outcome = { .response = "poured", .response_len = 6 },
    };

    memset(f->buffer, '-', 6);
    f->reply.buffer = f->buffer;
    f->reply.buffer_size = 5;
    for (int again = 0; again < 2; again++) {
        is(checked(f, idem_run(&f->table, &f->claim, &f->reply, &rq, work, &job,
                               0)),
           again ? IDEM_REPLAY : IDEM_EXECUTE);
        is(f->reply.response_len, 6);
        assert_memory_equal(f->buffer, "------", 6);
    }
}

/* Who was overtaken has nothing to give back. */
TEST(run_that_gives_back_what_it_lost_is_fenced)
{
    struct job job = { .result = -1, .takes = LEASE + RETENTION };

    is(run(f, &job, 0), IDEM_E_FENCED);
    is(job.calls, 1);
}

TEST(run_tells_the_handler_of_a_recovery)
{
    struct job job = { .outcome = { .failed = 1 } };

    is(ask(f, "k", 0), IDEM_EXECUTE);
    is(run(f, &job, LEASE - 1), IDEM_BUSY);
    is(job.calls, 0);
    is(run(f, &job, LEASE), IDEM_RECOVER);
    is(job.answer, IDEM_RECOVER);
    is(f->reply.status, IDEM_FAILED);
}

TEST(run_reports_an_outcome_that_does_not_fit)
{
    struct job job = { .outcome = { .response = "much too long to be kept",
                                    .response_len = RESPONSE_MAX + 1 } };

    is(run(f, &job, 0), IDEM_E_TOO_LARGE);
    is(run(f, &job, 0), IDEM_BUSY);
    is(job.calls, 1);

    job.outcome.response = NULL;
    is(run(f, &job, LEASE), IDEM_E_ARG);
    is(complete(f, &f->claim, "short", LEASE), IDEM_OK);
}

TEST(run_reports_a_handler_that_was_overtaken)
{
    struct job job = { .takes = LEASE + RETENTION };

    is(run(f, &job, 0), IDEM_E_FENCED);
    job.result = 1;
    is(run(f, &job, 5000), IDEM_E_FENCED);
    is(job.calls, 2);
}

/* ---------------------------------------------------------------------------
   delivery
   ------------------------------------------------------------------------ */

/* The keys of pending outcomes, in order. */
static const char *owed(fixture *f, uint32_t now)
{
    static char keys[CAPACITY + 1];
    idem_entry entry = { .id = f->id, .id_size = sizeof f->id };
    int count = 0;

    while (checked(f, idem_pending(&f->table, &entry, now)) == IDEM_OK) {
        assert_true(count < CAPACITY);
        is(entry.undelivered, 1);
        keys[count++] = f->id[entry.scope_len];
    }
    keys[count] = 0;
    if (now < RETENTION)
        is(f->table.pending, count);
    return keys;
}

/* Begins a, b, c, d and completes c, a, d, b, all but d owed; gives a's. */
static idem_claim owe(fixture *f)
{
    static const char order[] = "cadb";
    idem_claim claims[4];

    fixture_open(f, 0);
    for (uint32_t i = 0; i < 4; i++) {
        is(ask(f, nth(i), 0), IDEM_EXECUTE);
        claims[i] = f->claim;
    }
    for (uint32_t i = 0; i < 4; i++) {
        f->outcome.confirm = order[i] != 'd';
        is(complete(f, &claims[order[i] - 'a'], "", i / 2), IDEM_OK);
    }
    return claims[0];
}

TEST(what_is_owed_is_listed_oldest_completion_first)
{
    (void)owe(f);
    assert_string_equal(owed(f, 1), "cab");
    is(f->table.pending, 3);
}

TEST(what_is_delivered_is_owed_no_more)
{
    idem_claim claim = owe(f), nobody = { 0 };

    is(checked(f, idem_delivered(&f->table, &nobody)), IDEM_E_NOT_FOUND);
    is(checked(f, idem_delivered(&f->table, &claim)), IDEM_OK);
    assert_string_equal(owed(f, 1), "cb");
    is(checked(f, idem_delivered(&f->table, &claim)), IDEM_OK);
    assert_string_equal(owed(f, 1), "cb");
    is(ask(f, "a", 1), IDEM_REPLAY);
    is(ask(f, "d", 1), IDEM_REPLAY);
    is(find(f, "panel", "d", 1), IDEM_OK);
    is(f->entry.undelivered, 0);
    is(checked(f, idem_delivered(&f->table, &f->reply.claim)), IDEM_OK);
    assert_string_equal(owed(f, 1), "cb");
    is(forget(f, "panel", "c", 1), IDEM_OK);
    assert_string_equal(owed(f, 1), "b");
}

TEST(results_may_be_delivered_while_they_are_listed)
{
    idem_entry entry = { .id = NULL };
    int sent = 0;

    (void)owe(f);
    while (idem_pending(&f->table, &entry, 1) == IDEM_OK) {
        sent++;
        is(idem_delivered(&f->table, &entry.claim), IDEM_OK);
    }
    is(sent, 3);
    is(f->table.pending, 0);
}

/* Where a list was is not known any more when that key is gone. */
TEST(a_list_begins_anew_behind_what_was_forgotten)
{
    idem_entry entry = { .id = f->id, .id_size = sizeof f->id };

    (void)owe(f);
    is(idem_pending(&f->table, &entry, 1), IDEM_OK);
    is(idem_pending(&f->table, &entry, 1), IDEM_OK);
    is(f->id[entry.scope_len], 'a');
    is(forget(f, "panel", "a", 1), IDEM_OK);
    is(idem_pending(&f->table, &entry, 1), IDEM_OK);
    is(f->id[entry.scope_len], 'c');
}

TEST(what_is_owed_is_dropped_with_its_retention_and_counted)
{
    idem_claim claim = owe(f);

    assert_string_equal(owed(f, RETENTION - 1), "cab");
    assert_string_equal(owed(f, RETENTION), "b");
    is(checked(f, idem_delivered(&f->table, &claim)), IDEM_E_NOT_FOUND);
    is(maintain(f, RETENTION), IDEM_OK);
    is(f->table.stats.undelivered, 2);
    is(f->table.stats.expired, 2);
    is(maintain(f, RETENTION + 1), IDEM_OK);
    is(f->table.stats.undelivered, 3);
    is(f->table.stats.expired, 4);
    is(f->table.pending, 0);
}

/* ---------------------------------------------------------------------------
   counters
   ------------------------------------------------------------------------ */
TEST(the_counters_count_what_begin_answers)
{
    uint32_t count[IDEM_EXHAUSTED + 1] = { 0 };
    uint32_t full = 0, seed = 7;

    for (uint32_t now = 0; now < 60000; now += 30) {
        const char *payload = dice(&seed) % 9 ? "x" : "y";
        int answer;
        f->request.age_ms = dice(&seed) % 4 ? 0 : 2000;
        answer = begin(f, "", nth(dice(&seed) % 6), payload, now);
        if (answer >= 0)
            count[answer]++;
        else
            full += answer == IDEM_E_FULL;
        if (answer == IDEM_EXECUTE && dice(&seed) % 2)
            (void)complete(f, &f->claim, "", now);
    }
    for (int i = IDEM_EXECUTE; i <= IDEM_EXHAUSTED; i++) {
        assert_true(count[i] > 0);
        is(f->table.stats.answers[i], count[i]);
    }
    assert_true(full > 0);
    is(f->table.stats.full, full);
}
