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
    assert_int_equal(ask(f, "k", now), IDEM_EXECUTE);
    *claim = f->claim;
    switch (state) {
    case OVER:
        return now + LEASE;
    case OVERTAKEN:
        assert_int_equal(ask(f, "k", now + LEASE), IDEM_RECOVER);
        return now + LEASE;
    case EXHAUSTED:
        assert_int_equal(ask(f, "k", now + LEASE), IDEM_RECOVER);
        *claim = f->claim;
        return now + LEASE + LEASE;
    case COMPLETED:
    case FAILED:
        assert_int_equal(complete(f, claim, "poured", now), IDEM_OK);
        return now;
    case RELEASED:
        assert_int_equal(release(f, claim, now), IDEM_OK);
        return now;
    case FORGOTTEN:
        assert_int_equal(forget(f, "panel", "k", now + LEASE), IDEM_OK);
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
    assert_int_equal(make(f, call, &claim, now), life[state].answer[call]);
    (void)find(f, "panel", "k", now);
    assert_int_equal(f->entry.status, life[state].after[call] - '0');
}

static void s1_s3_every_call_answers_as_the_state_of_the_key_says(void **state)
{
    for_each_pair((fixture *)*state, check_answer);
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
    assert_int_equal(make(f, call, &claim, now), answer);
    (void)find(f, "panel", "k", now);
    assert_memory_equal(&f->entry, &before, sizeof before);
}

static void s7_what_is_not_done_leaves_the_key_as_it_was(void **state)
{
    for_each_pair((fixture *)*state, check_refusal);
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
        assert_int_equal(ask(f, "k", now), IDEM_MISMATCH);
    }
    f->request.fingerprint = fingerprint;
    assert_int_not_equal(ask(f, "k", now), IDEM_MISMATCH);
    f->request.has_fingerprint = 0;
}

static void s3_one_other_bit_is_a_mismatch_in_every_state(void **state)
{
    for_each_pair((fixture *)*state, check_fingerprint);
}

static void every_answer_of_the_manual_comes(void **state)
{
    fixture *f = (fixture *)*state;
    idem_claim claim, none = { 0 };

    fixture_open(f, 1000);
    assert_int_equal(ask(f, "k", 1000), IDEM_EXECUTE);
    assert_int_equal(ask(f, "k", 1000), IDEM_BUSY);
    assert_int_equal(begin(f, "panel", "k", "?", 1000), IDEM_MISMATCH);
    assert_int_equal(ask(f, "k", 1100), IDEM_RECOVER);
    assert_int_equal(ask(f, "k", 1200), IDEM_RECOVER);
    claim = f->claim;
    assert_int_equal(ask(f, "k", 1300), IDEM_EXHAUSTED);
    assert_int_equal(complete(f, &claim, "poured", 1300), IDEM_OK);
    assert_int_equal(ask(f, "k", 1300), IDEM_REPLAY);
    f->request.age_ms = 301;
    assert_int_equal(ask(f, "young", 1300), IDEM_TOO_OLD);
    f->request.age_ms = 0;

    assert_int_equal(ask(f, "", 1300), IDEM_E_ARG);
    assert_int_equal(ask(f, "20 bytes and a scope", 1300), IDEM_E_TOO_LARGE);
    assert_int_equal(complete(f, &none, "", 1300), IDEM_E_FENCED);
    assert_int_equal(find(f, "panel", "?", 1300), IDEM_E_NOT_FOUND);
    for (uint32_t i = 0; i < CAPACITY - 1; i++)
        assert_int_equal(ask(f, nth(i), 1300), IDEM_EXECUTE);
    assert_int_equal(ask(f, nth(CAPACITY - 1), 1300), IDEM_E_FULL);

    f->config.capacity = 100;
    fixture_open(f, 0);
    assert_int_equal(maintain(f, 0), IDEM_MORE);
    assert_int_equal(idem_open(&f->table, &f->config, f->memory, 1, 0),
                     IDEM_E_MEMORY);
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

static void a_lock_that_is_refused_is_the_last_of_the_answers(void **state)
{
    fixture *f = (fixture *)*state;

    f->config.lock = refuse;
    f->config.unlock = ignore;
    fixture_open(f, 0);
    assert_int_equal(ask(f, "k", 0), IDEM_E_LOCK);
}

/* ---------------------------------------------------------------------------
   deadlines
   ------------------------------------------------------------------------ */

/* Begins "k" in a new table, and again `wait` ms later. */
static int ask_twice(fixture *f, uint32_t wait)
{
    fixture_open(f, 7);
    assert_int_equal(ask(f, "k", 7), IDEM_EXECUTE);
    // No call may be further from the last one than half the tick's range.
    return ask(f, "k", 7 + wait);
}

static void s4_a_lease_covers_the_millisecond_before_its_end_and_no_more(
    void **state)
{
    static const uint32_t leases[] = { 1, 2, LEASE, 30000, IDEM_LEASE_MAX };
    fixture *f = (fixture *)*state;

    f->request.retention_ms = IDEM_RETENTION_MAX;
    for (size_t i = 0; i < COUNT(leases); i++) {
        f->request.lease_ms = leases[i];
        assert_int_equal(ask_twice(f, leases[i] - 1), IDEM_BUSY);
        assert_int_equal(f->reply.retry_after_ms, 1);
        assert_int_equal(ask_twice(f, leases[i]), IDEM_RECOVER);
        assert_int_equal(f->claim.attempt, 2);
        assert_int_equal(f->reply.retry_after_ms, 0);
        assert_int_equal(ask_twice(f, leases[i] + 1), IDEM_RECOVER);
    }
}

static void the_default_lease_is_half_a_minute(void **state)
{
    fixture *f = (fixture *)*state;

    f->config.lease_ms = 0;
    f->config.retention_ms = 0;
    assert_int_equal(ask_twice(f, 29999), IDEM_BUSY);
    assert_int_equal(ask_twice(f, 30000), IDEM_RECOVER);
}

static void s1_a_lease_without_end_is_never_taken_over(void **state)
{
    fixture *f = (fixture *)*state;
    uint32_t now = 7;
    idem_claim claim;

    f->request.lease_ms = IDEM_LEASE_NONE;
    assert_int_equal(ask_twice(f, 0), IDEM_BUSY);
    assert_int_equal(f->reply.retry_after_ms, IDEM_LEASE_NONE);

    fixture_open(f, now);
    assert_int_equal(ask(f, "k", now), IDEM_EXECUTE);
    claim = f->claim;
    for (int day = 0; day < 200; day++) {
        now += 86400000;
        assert_int_equal(ask(f, "k", now), IDEM_BUSY);
        assert_int_equal(f->reply.retry_after_ms, IDEM_LEASE_NONE);
        assert_int_equal(forget(f, "panel", "k", now), IDEM_BUSY);
    }
    assert_int_equal(complete(f, &claim, "poured", now), IDEM_OK);
    assert_int_equal(ask(f, "k", now), IDEM_REPLAY);
    assert_int_equal(ask(f, "k", now + RETENTION), IDEM_EXECUTE);
}

/* Finishes "k" in a new table 5 ms after its begin, and begins it again `wait`
   ms after that. */
static int ask_finished(fixture *f, uint32_t wait)
{
    fixture_open(f, 7);
    assert_int_equal(ask(f, "k", 7), IDEM_EXECUTE);
    assert_int_equal(complete(f, &f->claim, "poured", 12), IDEM_OK);
    return ask(f, "k", 12 + wait);
}

static void s2_retention_counts_from_the_completion_to_the_millisecond(
    void **state)
{
    static const uint32_t retentions[] = { 1, 2, RETENTION, 2047 };
    fixture *f = (fixture *)*state;

    for (size_t i = 0; i < COUNT(retentions); i++) {
        f->request.retention_ms = retentions[i];
        assert_int_equal(ask_finished(f, retentions[i] - 1), IDEM_REPLAY);
        assert_int_equal(f->reply.age_ms, retentions[i] - 1);
        assert_string_equal(f->buffer, "poured");
        assert_int_equal(ask_finished(f, retentions[i]), IDEM_EXECUTE);
        assert_int_equal(f->claim.attempt, 1);
        assert_int_equal(ask_finished(f, retentions[i] + 1), IDEM_EXECUTE);
    }
}

static void the_default_retention_is_a_day(void **state)
{
    fixture *f = (fixture *)*state;

    f->config.retention_ms = 0;
    assert_int_equal(ask_finished(f, 86399999), IDEM_REPLAY);
    assert_int_equal(ask_finished(f, 86486400), IDEM_EXECUTE);
}

static void s4_a_cut_short_key_is_kept_one_retention_from_the_leases_end(
    void **state)
{
    fixture *f = (fixture *)*state;
    uint32_t end = LEASE + RETENTION;

    assert_int_equal(ask_twice(f, end - 1), IDEM_RECOVER);
    assert_int_equal(ask_twice(f, end), IDEM_EXECUTE);
    assert_int_equal(f->claim.attempt, 1);
    assert_int_equal(ask_twice(f, end + 1), IDEM_EXECUTE);
}

static void l2_an_exhausted_key_is_kept_one_retention_from_the_leases_end(
    void **state)
{
    fixture *f = (fixture *)*state;
    uint32_t end = LEASE + RETENTION;

    f->config.max_attempts = 1;
    assert_int_equal(ask_twice(f, LEASE), IDEM_EXHAUSTED);
    assert_int_equal(ask_twice(f, end - 1), IDEM_EXHAUSTED);
    // Asking does not keep it longer.
    assert_int_equal(ask(f, "k", 7 + end), IDEM_EXECUTE);
    assert_int_equal(f->claim.attempt, 1);
}

/* ---------------------------------------------------------------------------
   claims
   ------------------------------------------------------------------------ */
static void s1_a_late_holder_may_complete_if_nobody_took_over(void **state)
{
    fixture *f = (fixture *)*state;

    assert_int_equal(ask(f, "k", 0), IDEM_EXECUTE);
    assert_int_equal(complete(f, &f->claim, "late", LEASE + RETENTION - 1),
                     IDEM_OK);
    assert_int_equal(ask(f, "k", LEASE + RETENTION), IDEM_REPLAY);
    assert_string_equal(f->buffer, "late");
    assert_int_equal(f->reply.age_ms, 1);
}

static void s1_a_late_holder_is_fenced_once_its_key_is_dropped(void **state)
{
    fixture *f = (fixture *)*state;

    assert_int_equal(ask(f, "k", 0), IDEM_EXECUTE);
    assert_int_equal(complete(f, &f->claim, "late", LEASE + RETENTION),
                     IDEM_E_FENCED);
    assert_int_equal(find(f, "panel", "k", LEASE + RETENTION),
                     IDEM_E_NOT_FOUND);
}

static void s1_a_late_holder_may_renew_and_is_protected_again(void **state)
{
    fixture *f = (fixture *)*state;

    assert_int_equal(ask(f, "k", 0), IDEM_EXECUTE);
    assert_int_equal(renew(f, &f->claim, 50, LEASE + 10), IDEM_OK);
    assert_int_equal(ask(f, "k", LEASE + 59), IDEM_BUSY);
    assert_int_equal(ask(f, "k", LEASE + 60), IDEM_RECOVER);
}

static void s1_only_the_newest_of_several_holders_is_current(void **state)
{
    fixture *f = (fixture *)*state;
    idem_claim claims[5];
    uint32_t now = 0;

    f->config.max_attempts = COUNT(claims);
    fixture_open(f, now);
    for (size_t i = 0; i < COUNT(claims); i++, now += LEASE) {
        assert_int_equal(ask(f, "k", now), i ? IDEM_RECOVER : IDEM_EXECUTE);
        claims[i] = f->claim;
        for (size_t j = 0; j < i; j++) {
            assert_int_equal(complete(f, &claims[j], "", now), IDEM_E_FENCED);
            assert_int_equal(release(f, &claims[j], now), IDEM_E_FENCED);
            assert_int_equal(renew(f, &claims[j], 0, now), IDEM_E_FENCED);
        }
    }
    assert_int_equal(f->table.stats.fenced, 3 * (1 + 2 + 3 + 4));
    assert_int_equal(complete(f, &claims[4], "last", now), IDEM_OK);
    assert_int_equal(complete(f, &claims[4], "twice", now), IDEM_E_FENCED);
    assert_int_equal(ask(f, "k", now), IDEM_REPLAY);
    assert_string_equal(f->buffer, "last");
}

static void s1_a_claim_is_fenced_when_its_slot_has_another_key(void **state)
{
    fixture *f = (fixture *)*state;
    idem_claim gone;

    f->config.capacity = 1;
    fixture_open(f, 0);
    assert_int_equal(ask(f, "a", 0), IDEM_EXECUTE);
    gone = f->claim;
    assert_int_equal(release(f, &gone, 0), IDEM_OK);
    assert_int_equal(ask(f, "b", 0), IDEM_EXECUTE);
    assert_int_equal(complete(f, &gone, "", 0), IDEM_E_FENCED);
    assert_int_equal(release(f, &gone, 0), IDEM_E_FENCED);
    assert_int_equal(complete(f, &f->claim, "", 0), IDEM_OK);
    assert_int_equal(checked(f, idem_delivered(&f->table, &gone)),
                     IDEM_E_NOT_FOUND);
}

static void s1_a_claim_that_was_never_granted_is_fenced(void **state)
{
    fixture *f = (fixture *)*state;
    idem_claim claim;

    assert_int_equal(ask(f, "k", 0), IDEM_EXECUTE);
    for (uint64_t token = 0; token < 4; token++)
        for (uint32_t slot = 0; slot < CAPACITY + 2; slot++) {
            claim.token = token;
            claim.slot = slot;
            claim.attempt = 1;
            if (token == f->claim.token && slot == f->claim.slot)
                continue;
            assert_int_equal(complete(f, &claim, "", 0), IDEM_E_FENCED);
        }
    claim = f->claim;
    claim.slot = UINT32_MAX;
    assert_int_equal(complete(f, &claim, "", 0), IDEM_E_FENCED);
    assert_int_equal(complete(f, &f->claim, "", 0), IDEM_OK);
}

static void tokens_increase_strictly_over_all_keys(void **state)
{
    fixture *f = (fixture *)*state;
    uint64_t last = 0;
    uint32_t seed = 1;

    for (uint32_t now = 0; now < 20000; now += 10) {
        int answer = ask(f, nth(dice(&seed) % 5), now);
        if (answer == IDEM_EXECUTE || answer == IDEM_RECOVER) {
            assert_true(f->claim.token > last);
            last = f->claim.token;
        } else {
            assert_int_equal(f->claim.token, 0);
        }
        if (dice(&seed) % 2)
            (void)release(f, &f->claim, now);
    }
    assert_true(last > 100);
}

static void s1_behind_the_last_token_no_claim_is_granted(void **state)
{
    fixture *f = (fixture *)*state;

    inside_set_token(&f->table, (idem_token)-2);
    assert_int_equal(ask(f, "last", 0), IDEM_EXECUTE);
    assert_true(f->claim.token == (idem_token)-1);
    assert_int_equal(ask(f, "more", 0), IDEM_E_SPACE);
    assert_int_equal(complete(f, &f->claim, "", 0), IDEM_E_FENCED);
}

static void s1_the_low_half_of_the_token_may_wrap(void **state)
{
    fixture *f = (fixture *)*state;
    idem_claim claims[CAPACITY];

    inside_set_token(&f->table, 0xFFFFFFFE);        // as after 4e9 claims
    if (sizeof claims[0].token == 4) {              // there are no more
        assert_int_equal(ask(f, nth(0), 0), IDEM_EXECUTE);
        assert_int_equal(ask(f, nth(1), 0), IDEM_E_SPACE);
        assert_int_equal(complete(f, &f->claim, "", 0), IDEM_E_FENCED);
        return;
    }
    for (uint32_t i = 0; i < CAPACITY; i++) {
        assert_int_equal(ask(f, nth(i), 0), IDEM_EXECUTE);
        claims[i] = f->claim;
        assert_true(claims[i].token == UINT64_C(0xFFFFFFFF) + i);
    }
    for (uint32_t i = 0; i < CAPACITY; i++) {
        idem_claim other = claims[i];
        other.token ^= UINT64_C(1) << 32;
        assert_int_equal(complete(f, &other, "", 0), IDEM_E_FENCED);
        assert_int_equal(renew(f, &claims[i], 0, 0), IDEM_OK);
        assert_int_equal(complete(f, &claims[i], "", 0), IDEM_OK);
        assert_int_equal(ask(f, nth(i), 0), IDEM_REPLAY);
        assert_true(f->reply.claim.token == claims[i].token);
        assert_int_equal(checked(f, idem_delivered(&f->table, &claims[i])),
                         IDEM_OK);
        assert_int_equal(checked(f, idem_delivered(&f->table, &other)),
                         IDEM_E_NOT_FOUND);
    }
}

static void a_claim_that_is_not_granted_is_zero_and_so_is_the_reply(
    void **state)
{
    static const idem_claim zero = { 0 };
    fixture *f = (fixture *)*state;

    assert_int_equal(ask(f, "k", 0), IDEM_EXECUTE);
    assert_int_equal(f->reply.claim.token, 0);
    assert_int_equal(f->reply.response_len, 0);
    assert_int_equal(f->reply.status, 0);
    assert_int_equal(f->reply.code, 0);
    assert_int_equal(f->reply.age_ms, 0);
    assert_int_equal(f->reply.retry_after_ms, 0);
    assert_ptr_equal(f->reply.buffer, f->buffer);

    assert_int_equal(ask(f, "k", 0), IDEM_BUSY);
    assert_memory_equal(&f->claim, &zero, sizeof zero);
    assert_int_equal(ask(f, "", 0), IDEM_E_ARG);
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
        assert_int_equal(answer, granted == 1 ? IDEM_EXECUTE : IDEM_RECOVER);
        assert_int_equal(f->claim.attempt, granted);
    }
}

static void l2_a_key_is_exhausted_after_max_attempts(void **state)
{
    static const struct { uint8_t max; uint32_t granted; } cases[] = {
        { 0, 3 }, { 1, 1 }, { 2, 2 }, { 3, 3 }, { 4, 4 }, { 255, 255 },
    };
    fixture *f = (fixture *)*state;

    for (size_t i = 0; i < COUNT(cases); i++) {
        uint32_t now = 0;
        f->config.max_attempts = cases[i].max;
        fixture_open(f, now);
        assert_int_equal(attempts_granted(f, &now), cases[i].granted);
        assert_int_equal(ask(f, "k", now), IDEM_EXHAUSTED);
        assert_int_equal(find(f, "panel", "k", now), IDEM_OK);
        assert_int_equal(f->entry.attempts, cases[i].granted);
    }
}

static void attempts_start_anew_after_release_and_forget(void **state)
{
    fixture *f = (fixture *)*state;
    uint32_t now = 0;

    assert_int_equal(ask(f, "k", now), IDEM_EXECUTE);
    assert_int_equal(ask(f, "k", now += LEASE), IDEM_RECOVER);
    assert_int_equal(release(f, &f->claim, now), IDEM_OK);
    assert_int_equal(attempts_granted(f, &now), 3);
    assert_int_equal(forget(f, "panel", "k", now), IDEM_OK);
    assert_int_equal(attempts_granted(f, &now), 3);
}

static void the_last_holder_of_an_exhausted_key_may_complete(void **state)
{
    fixture *f = (fixture *)*state;
    idem_claim last;

    f->config.max_attempts = 1;
    fixture_open(f, 0);
    assert_int_equal(ask(f, "k", 0), IDEM_EXECUTE);
    last = f->claim;
    assert_int_equal(ask(f, "k", LEASE), IDEM_EXHAUSTED);
    assert_int_equal(complete(f, &last, "after all", LEASE), IDEM_OK);
    assert_int_equal(ask(f, "k", LEASE), IDEM_REPLAY);
}

/* ---------------------------------------------------------------------------
   renewal
   ------------------------------------------------------------------------ */

/* What is left of the lease of "k". */
static uint32_t left(fixture *f, uint32_t now)
{
    assert_int_equal(find(f, "panel", "k", now), IDEM_OK);
    return f->entry.left_ms;
}

static void renewing_lengthens_and_never_shortens(void **state)
{
    fixture *f = (fixture *)*state;
    idem_claim claim;

    assert_int_equal(ask(f, "k", 0), IDEM_EXECUTE);
    claim = f->claim;
    assert_int_equal(renew(f, &claim, 10, 20), IDEM_OK);
    assert_int_equal(left(f, 20), LEASE - 20);
    assert_int_equal(renew(f, &claim, 200, 30), IDEM_OK);
    assert_int_equal(left(f, 30), 200);
    assert_int_equal(renew(f, &claim, 0, 180), IDEM_OK);    // the default
    assert_int_equal(left(f, 180), LEASE);
    assert_int_equal(renew(f, &claim, IDEM_LEASE_MAX, 180), IDEM_OK);
    assert_int_equal(left(f, 180), IDEM_LEASE_MAX);
    assert_int_equal(renew(f, &claim, IDEM_LEASE_NONE, 180), IDEM_OK);
    assert_int_equal(left(f, 180), IDEM_LEASE_NONE);
    assert_int_equal(f->entry.attempts, 1);
}

static void renewing_a_lease_without_end_changes_nothing(void **state)
{
    fixture *f = (fixture *)*state;

    f->request.lease_ms = IDEM_LEASE_NONE;
    assert_int_equal(ask(f, "k", 0), IDEM_EXECUTE);
    assert_int_equal(renew(f, &f->claim, 10, 5), IDEM_OK);
    assert_int_equal(left(f, 5), IDEM_LEASE_NONE);
    assert_int_equal(renew(f, &f->claim, IDEM_LEASE_NONE, 5), IDEM_OK);
    assert_int_equal(ask(f, "k", 5000), IDEM_BUSY);
}

static void a_renewed_claim_is_kept_one_retention_from_its_new_end(
    void **state)
{
    fixture *f = (fixture *)*state;

    assert_int_equal(ask(f, "k", 0), IDEM_EXECUTE);
    assert_int_equal(renew(f, &f->claim, 5000, 50), IDEM_OK);
    assert_int_equal(find(f, "panel", "k", 5049 + RETENTION), IDEM_OK);
    assert_int_equal(find(f, "panel", "k", 5050 + RETENTION),
                     IDEM_E_NOT_FOUND);
}

static void a_lease_out_of_range_is_refused(void **state)
{
    static const uint32_t wrong[] = { IDEM_LEASE_MAX + 1, IDEM_LEASE_NONE - 1 };
    fixture *f = (fixture *)*state;
    idem_claim claim;

    assert_int_equal(ask(f, "k", 0), IDEM_EXECUTE);
    claim = f->claim;
    for (size_t i = 0; i < COUNT(wrong); i++) {
        assert_int_equal(renew(f, &claim, wrong[i], 0), IDEM_E_ARG);
        f->request.lease_ms = wrong[i];
        assert_int_equal(ask(f, "other", 0), IDEM_E_ARG);
    }
    f->request.lease_ms = 0;
    f->request.retention_ms = IDEM_RETENTION_MAX + 1;
    assert_int_equal(ask(f, "other", 0), IDEM_E_ARG);
    assert_int_equal(left(f, 0), LEASE);
    assert_int_equal(f->table.used, 1);
}

/* ---------------------------------------------------------------------------
   outcomes
   ------------------------------------------------------------------------ */
static void s7_a_response_over_the_reservation_leaves_the_claim(void **state)
{
    fixture *f = (fixture *)*state;
    idem_claim claim;

    f->request.response_size = 4;
    assert_int_equal(ask(f, "k", 0), IDEM_EXECUTE);
    claim = f->claim;
    assert_int_equal(complete(f, &claim, "12345", 0), IDEM_E_TOO_LARGE);
    assert_int_equal(ask(f, "k", 0), IDEM_BUSY);
    assert_int_equal(complete(f, &claim, "1234", 0), IDEM_OK);
    assert_int_equal(ask(f, "k", 0), IDEM_REPLAY);
    assert_string_equal(f->buffer, "1234");
}

static void s7_reserving_nothing_reserves_response_max(void **state)
{
    fixture *f = (fixture *)*state;
    idem_claim claim;

    assert_int_equal(ask(f, "k", 0), IDEM_EXECUTE);
    claim = f->claim;
    assert_int_equal(complete(f, &claim, "one byte too long", 0),
                     IDEM_E_TOO_LARGE);
    assert_int_equal(complete(f, &claim, "just long enough", 0), IDEM_OK);
    assert_int_equal(ask(f, "k", 0), IDEM_REPLAY);
    assert_string_equal(f->buffer, "just long enough");
}

static void a_reservation_over_response_max_claims_nothing(void **state)
{
    fixture *f = (fixture *)*state;

    f->request.response_size = RESPONSE_MAX + 1;
    assert_int_equal(ask(f, "k", 0), IDEM_E_TOO_LARGE);
    assert_int_equal(f->table.used, 0);
    f->request.response_size = RESPONSE_MAX;
    assert_int_equal(ask(f, "k", 0), IDEM_EXECUTE);
}

static void a_claim_taken_over_has_what_the_new_request_asks(void **state)
{
    fixture *f = (fixture *)*state;

    f->request.response_size = 4;
    assert_int_equal(ask(f, "k", 0), IDEM_EXECUTE);
    f->request.response_size = 6;
    f->request.lease_ms = 300;
    f->request.retention_ms = 2000;
    assert_int_equal(ask(f, "k", LEASE), IDEM_RECOVER);
    assert_int_equal(left(f, LEASE), 300);
    assert_int_equal(f->entry.response_len, 6);
    assert_int_equal(complete(f, &f->claim, "123456", LEASE), IDEM_OK);
    assert_int_equal(ask(f, "k", LEASE + 1999), IDEM_REPLAY);
    assert_int_equal(ask(f, "k", LEASE + 2000), IDEM_EXECUTE);
}

static void an_empty_response_is_one(void **state)
{
    fixture *f = (fixture *)*state;
    size_t len = 0;

    f->config.response_max = 0;
    fixture_open(f, 0);
    assert_int_equal(ask(f, "k", 0), IDEM_EXECUTE);
    assert_int_equal(complete(f, &f->claim, "x", 0), IDEM_E_TOO_LARGE);
    assert_int_equal(complete(f, &f->claim, NULL, 0), IDEM_OK);
    assert_int_equal(ask(f, "k", 0), IDEM_REPLAY);
    assert_int_equal(f->reply.response_len, 0);
    assert_int_equal(idem_response(&f->table, NULL, &len, &f->reply.claim, 0),
                     IDEM_OK);
    assert_int_equal(len, 0);
}

/* Replays "k", 6 bytes long, into a buffer of that size. */
static void replay_into(fixture *f, void *buffer, size_t size)
{
    idem_request rq = request_of(f, "panel", "k", "pour");

    memset(f->buffer, '.', sizeof f->buffer);
    f->reply.buffer = buffer;
    f->reply.buffer_size = size;
    assert_int_equal(idem_begin(&f->table, &f->claim, &f->reply, &rq, 0),
                     IDEM_REPLAY);
    assert_int_equal(f->reply.response_len, 6);
}

static void a_buffer_too_short_is_not_touched_and_the_length_is_told(
    void **state)
{
    fixture *f = (fixture *)*state;

    (void)finish(f, "panel", "k", 0);
    replay_into(f, NULL, 0);
    replay_into(f, NULL, 100);
    replay_into(f, f->buffer, 0);
    assert_int_equal(f->buffer[0], '.');
    replay_into(f, f->buffer, 5);
    assert_int_equal(f->buffer[0], '.');
    replay_into(f, f->buffer, 6);
    assert_memory_equal(f->buffer, "poured.", 7);
    replay_into(f, f->buffer, 7);
    assert_memory_equal(f->buffer, "poured.", 7);
}

static void s2_an_outcome_is_replayed_in_every_detail(void **state)
{
    static const char bytes[5] = { 0, -1, 7, 0, 1 };
    fixture *f = (fixture *)*state;

    for (uint8_t failed = 0; failed < 2; failed++) {
        idem_outcome outcome = {
            .response = bytes, .response_len = sizeof bytes,
            .code = INT32_MIN + failed, .failed = failed,
        };
        idem_claim claim;
        fixture_open(f, 0);
        assert_int_equal(ask(f, "k", 0), IDEM_EXECUTE);
        claim = f->claim;
        assert_int_equal(idem_complete(&f->table, &claim, &outcome, 3),
                         IDEM_OK);
        for (uint32_t now = 3; now < 6; now++) {
            assert_int_equal(ask(f, "k", now), IDEM_REPLAY);
            assert_int_equal(f->reply.status,
                             failed ? IDEM_FAILED : IDEM_COMPLETED);
            assert_int_equal(f->reply.code, INT32_MIN + failed);
            assert_int_equal(f->reply.age_ms, now - 3);
            assert_int_equal(f->reply.response_len, sizeof bytes);
            assert_memory_equal(f->buffer, bytes, sizeof bytes);
            assert_true(f->reply.claim.token == claim.token);
            assert_int_equal(f->reply.claim.slot, claim.slot);
            assert_int_equal(f->reply.claim.attempt, 1);
        }
    }
}

static void a_response_is_read_in_pieces(void **state)
{
    fixture *f = (fixture *)*state;
    char piece[8] = ".......";
    size_t len;

    (void)finish(f, "panel", "other", 0);
    assert_int_equal(ask(f, "k", 0), IDEM_EXECUTE);
    assert_int_equal(complete(f, &f->claim, "0123456789", 0), IDEM_OK);
    for (size_t at = 0; at < 14; at++) {
        size_t rest = at < 10 ? 10 - at : 0;
        size_t want = rest < 4 ? rest : 4;
        len = 4;
        memset(piece, '.', 7);
        assert_int_equal(idem_response(&f->table, piece, &len, &f->claim, at),
                         IDEM_OK);
        assert_int_equal(len, want);
        assert_memory_equal(piece, &"0123456789"[at < 10 ? at : 0], want);
        assert_int_equal(piece[want], '.');
    }
    len = 4;
    assert_int_equal(
        idem_response(&f->table, piece, &len, &f->claim, SIZE_MAX), IDEM_OK);
    assert_int_equal(len, 0);
}

static void s3_a_response_that_is_gone_is_not_found(void **state)
{
    fixture *f = (fixture *)*state;
    idem_claim claim = finish(f, "panel", "k", 0);
    char piece[8];
    size_t len = 4;

    assert_int_equal(maintain(f, RETENTION), IDEM_OK);
    assert_int_equal(idem_response(&f->table, piece, &len, &claim, 0),
                     IDEM_E_NOT_FOUND);
    assert_int_equal(len, 0);
}

/* ---------------------------------------------------------------------------
   fingerprints
   ------------------------------------------------------------------------ */
static void a_fingerprint_given_streamed_or_computed_is_the_same(void **state)
{
    static const char payload[] = "dispense 5 ml into cup number 3";
    fixture *f = (fixture *)*state;
    idem_fingerprint_state hash;

    assert_int_equal(begin(f, "panel", "k", payload, 0), IDEM_EXECUTE);
    f->request.has_fingerprint = 1;
    for (size_t cut = 0; cut < sizeof payload; cut++) {
        idem_fingerprint_init(&hash, &f->config);
        idem_fingerprint_update(&hash, payload, cut);
        idem_fingerprint_update(&hash, payload + cut,
                                sizeof payload - 1 - cut);
        f->request.fingerprint = idem_fingerprint_final(&hash);
        // The payload beside a ready fingerprint is not looked at.
        assert_int_equal(ask(f, "k", 0), IDEM_BUSY);
    }
    assert_int_equal(find(f, "panel", "k", 0), IDEM_OK);
    assert_true(f->entry.fingerprint == f->request.fingerprint);
}

static void a_fingerprint_of_zero_is_legal(void **state)
{
    fixture *f = (fixture *)*state;

    f->request.has_fingerprint = 1;
    assert_int_equal(ask(f, "k", 0), IDEM_EXECUTE);
    assert_int_equal(ask(f, "k", 0), IDEM_BUSY);
    f->request.fingerprint = 1;
    assert_int_equal(ask(f, "k", 0), IDEM_MISMATCH);
    f->request.has_fingerprint = 0;                 // now it does not count
    f->request.fingerprint = 0;
    assert_int_equal(ask(f, "k", 0), IDEM_MISMATCH);
}

static void an_empty_payload_needs_no_pointer_and_is_a_payload(void **state)
{
    fixture *f = (fixture *)*state;
    idem_request rq = request_of(f, "", "k", "");

    rq.scope = NULL;
    rq.payload = NULL;
    assert_int_equal(begin_request(f, &rq, 0), IDEM_EXECUTE);
    assert_int_equal(begin(f, "", "k", "", 0), IDEM_BUSY);
    assert_int_equal(begin(f, "", "k", "x", 0), IDEM_MISMATCH);
}

/* ---------------------------------------------------------------------------
   application state
   ------------------------------------------------------------------------ */

/* Begins a new key and completes it with a state; what that answers. */
static int complete_with_state(fixture *f, const char *state, size_t len)
{
    idem_outcome outcome = { .state = state, .state_len = len };

    assert_int_equal(ask(f, nth(f->table.used), 0), IDEM_EXECUTE);
    return checked(f, idem_complete(&f->table, &f->claim, &outcome, 0));
}

static void assert_state(fixture *f, const char *state)
{
    char got[STATE_MAX + 1] = { 0 };
    size_t len = STATE_MAX;

    assert_int_equal(idem_state(&f->table, got, &len), IDEM_OK);
    assert_int_equal(len, strlen(state));
    assert_string_equal(got, state);
}

static void the_state_changes_only_with_an_outcome_that_has_one(void **state)
{
    fixture *f = (fixture *)*state;
    size_t len = 0;

    assert_int_equal(idem_state(&f->table, NULL, &len), IDEM_OK);
    assert_int_equal(len, 0);
    assert_int_equal(complete_with_state(f, "total 41", 8), IDEM_OK);
    assert_state(f, "total 41");
    assert_int_equal(complete_with_state(f, NULL, 0), IDEM_OK);
    assert_state(f, "total 41");
    assert_int_equal(complete_with_state(f, "42", 2), IDEM_OK);
    assert_state(f, "42");
    assert_int_equal(complete_with_state(f, "", 0), IDEM_OK);
    assert_state(f, "");
}

static void s7_a_refused_completion_leaves_the_state(void **state)
{
    fixture *f = (fixture *)*state;
    idem_outcome outcome = { .state = "B", .state_len = 1 };
    idem_claim done;

    assert_int_equal(complete_with_state(f, "A", 1), IDEM_OK);
    done = f->claim;
    assert_int_equal(checked(f, idem_complete(&f->table, &done, &outcome, 0)),
                     IDEM_E_FENCED);
    assert_int_equal(complete_with_state(f, "too large", 9), IDEM_E_TOO_LARGE);
    assert_state(f, "A");
    outcome.response = "a response too long";
    outcome.response_len = RESPONSE_MAX + 1;
    assert_int_equal(
        checked(f, idem_complete(&f->table, &f->claim, &outcome, 0)),
        IDEM_E_TOO_LARGE);
    assert_state(f, "A");
    outcome.response_len = RESPONSE_MAX;
    assert_int_equal(
        checked(f, idem_complete(&f->table, &f->claim, &outcome, 0)), IDEM_OK);
    assert_state(f, "B");
}

static void a_state_that_does_not_fit_tells_its_length(void **state)
{
    fixture *f = (fixture *)*state;
    char got[STATE_MAX] = ".......";
    size_t len = 4;

    assert_int_equal(complete_with_state(f, "total", 5), IDEM_OK);
    assert_int_equal(idem_state(&f->table, got, &len), IDEM_E_TOO_LARGE);
    assert_int_equal(len, 5);
    assert_string_equal(got, ".......");
    assert_int_equal(idem_state(&f->table, got, &len), IDEM_OK);
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
    assert_int_equal(request->key_len, 1);
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

static void run_executes_once_and_replays_afterwards(void **state)
{
    fixture *f = (fixture *)*state;
    struct job job = {
        .takes = 20,
        .outcome = { .response = "poured", .response_len = 6, .code = 5 },
    };

    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(run(f, &job, 10 + 50 * i),
                         i ? IDEM_REPLAY : IDEM_EXECUTE);
        assert_int_equal(job.calls, 1);
        assert_int_equal(f->reply.status, IDEM_COMPLETED);
        assert_int_equal(f->reply.code, 5);
        assert_int_equal(f->reply.response_len, 6);
        assert_string_equal(f->buffer, "poured");
        assert_true(f->reply.claim.token == job.token);
        // The completion is at the time that the handler said.
        assert_int_equal(f->reply.age_ms, i ? 50 * i - 20 : 0);
    }
    assert_int_equal(job.answer, IDEM_EXECUTE);
}

static void run_releases_when_the_handler_says_so(void **state)
{
    fixture *f = (fixture *)*state;
    struct job job = { .result = -1 };

    assert_int_equal(run(f, &job, 0), IDEM_RELEASED);
    assert_int_equal(f->table.used, 0);
    assert_int_equal(f->reply.status, 0);
    assert_int_equal(f->reply.response_len, 0);
    job.result = 1;
    assert_int_equal(run(f, &job, 0), IDEM_RELEASED);
    job.result = 0;
    assert_int_equal(run(f, &job, 0), IDEM_EXECUTE);
    assert_int_equal(job.calls, 3);
    assert_int_equal(job.answer, IDEM_EXECUTE);
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

static void run_takes_a_response_that_is_in_the_buffer_already(void **state)
{
    fixture *f = (fixture *)*state;
    idem_request rq = request_of(f, "panel", "k", "pour");

    f->reply.buffer = f->buffer;
    f->reply.buffer_size = 6;
    for (int again = 0; again < 2; again++) {
        assert_int_equal(checked(f, idem_run(&f->table, &f->claim, &f->reply,
                                             &rq, answer_in_place, f, 0)),
                         again ? IDEM_REPLAY : IDEM_EXECUTE);
        assert_int_equal(f->reply.response_len, 6);
        assert_string_equal(f->buffer, "poured");
        memset(f->buffer, 0, sizeof f->buffer);
    }
}

/* Its length is told, and no byte of it is copied. */
static void run_with_a_buffer_too_short_tells_the_length(void **state)
{
    fixture *f = (fixture *)*state;
    idem_request rq = request_of(f, "panel", "k", "pour");
    struct job job = {
        .outcome = { .response = "poured", .response_len = 6 },
    };

    memset(f->buffer, '-', 6);
    f->reply.buffer = f->buffer;
    f->reply.buffer_size = 5;
    for (int again = 0; again < 2; again++) {
        assert_int_equal(checked(f, idem_run(&f->table, &f->claim, &f->reply,
                                             &rq, work, &job, 0)),
                         again ? IDEM_REPLAY : IDEM_EXECUTE);
        assert_int_equal(f->reply.response_len, 6);
        assert_memory_equal(f->buffer, "------", 6);
    }
}

/* Who was overtaken has nothing to give back. */
static void run_that_gives_back_what_it_lost_is_fenced(void **state)
{
    fixture *f = (fixture *)*state;
    struct job job = { .result = -1, .takes = LEASE + RETENTION };

    assert_int_equal(run(f, &job, 0), IDEM_E_FENCED);
    assert_int_equal(job.calls, 1);
}

static void run_tells_the_handler_of_a_recovery(void **state)
{
    fixture *f = (fixture *)*state;
    struct job job = { .outcome = { .failed = 1 } };

    assert_int_equal(ask(f, "k", 0), IDEM_EXECUTE);
    assert_int_equal(run(f, &job, LEASE - 1), IDEM_BUSY);
    assert_int_equal(job.calls, 0);
    assert_int_equal(run(f, &job, LEASE), IDEM_RECOVER);
    assert_int_equal(job.answer, IDEM_RECOVER);
    assert_int_equal(f->reply.status, IDEM_FAILED);
}

static void run_reports_an_outcome_that_does_not_fit(void **state)
{
    fixture *f = (fixture *)*state;
    struct job job = { .outcome = { .response = "much too long to be kept",
                                    .response_len = RESPONSE_MAX + 1 } };

    assert_int_equal(run(f, &job, 0), IDEM_E_TOO_LARGE);
    assert_int_equal(run(f, &job, 0), IDEM_BUSY);
    assert_int_equal(job.calls, 1);

    job.outcome.response = NULL;
    assert_int_equal(run(f, &job, LEASE), IDEM_E_ARG);
    assert_int_equal(complete(f, &f->claim, "short", LEASE), IDEM_OK);
}

static void run_reports_a_handler_that_was_overtaken(void **state)
{
    fixture *f = (fixture *)*state;
    struct job job = { .takes = LEASE + RETENTION };

    assert_int_equal(run(f, &job, 0), IDEM_E_FENCED);
    job.result = 1;
    assert_int_equal(run(f, &job, 5000), IDEM_E_FENCED);
    assert_int_equal(job.calls, 2);
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
        assert_int_equal(entry.undelivered, 1);
        keys[count++] = f->id[entry.scope_len];
    }
    keys[count] = 0;
    if (now < RETENTION)
        assert_int_equal(f->table.pending, count);
    return keys;
}

/* Begins a, b, c, d and completes c, a, d, b, all but d owed; gives a's. */
static idem_claim owe(fixture *f)
{
    static const char order[] = "cadb";
    idem_claim claims[4];

    fixture_open(f, 0);
    for (uint32_t i = 0; i < 4; i++) {
        assert_int_equal(ask(f, nth(i), 0), IDEM_EXECUTE);
        claims[i] = f->claim;
    }
    for (uint32_t i = 0; i < 4; i++) {
        f->outcome.confirm = order[i] != 'd';
        assert_int_equal(complete(f, &claims[order[i] - 'a'], "", i / 2),
                         IDEM_OK);
    }
    return claims[0];
}

static void what_is_owed_is_listed_oldest_completion_first(void **state)
{
    fixture *f = (fixture *)*state;

    (void)owe(f);
    assert_string_equal(owed(f, 1), "cab");
    assert_int_equal(f->table.pending, 3);
}

static void what_is_delivered_is_owed_no_more(void **state)
{
    fixture *f = (fixture *)*state;
    idem_claim claim = owe(f), nobody = { 0 };

    assert_int_equal(checked(f, idem_delivered(&f->table, &nobody)),
                     IDEM_E_NOT_FOUND);
    assert_int_equal(checked(f, idem_delivered(&f->table, &claim)), IDEM_OK);
    assert_string_equal(owed(f, 1), "cb");
    assert_int_equal(checked(f, idem_delivered(&f->table, &claim)), IDEM_OK);
    assert_string_equal(owed(f, 1), "cb");
    assert_int_equal(ask(f, "a", 1), IDEM_REPLAY);
    assert_int_equal(ask(f, "d", 1), IDEM_REPLAY);
    assert_int_equal(find(f, "panel", "d", 1), IDEM_OK);
    assert_int_equal(f->entry.undelivered, 0);
    assert_int_equal(checked(f, idem_delivered(&f->table, &f->reply.claim)),
                     IDEM_OK);
    assert_string_equal(owed(f, 1), "cb");
    assert_int_equal(forget(f, "panel", "c", 1), IDEM_OK);
    assert_string_equal(owed(f, 1), "b");
}

static void results_may_be_delivered_while_they_are_listed(void **state)
{
    fixture *f = (fixture *)*state;
    idem_entry entry = { .id = NULL };
    int sent = 0;

    (void)owe(f);
    while (idem_pending(&f->table, &entry, 1) == IDEM_OK) {
        sent++;
        assert_int_equal(idem_delivered(&f->table, &entry.claim), IDEM_OK);
    }
    assert_int_equal(sent, 3);
    assert_int_equal(f->table.pending, 0);
}

/* Where a list was is not known any more when that key is gone. */
static void a_list_begins_anew_behind_what_was_forgotten(void **state)
{
    fixture *f = (fixture *)*state;
    idem_entry entry = { .id = f->id, .id_size = sizeof f->id };

    (void)owe(f);
    assert_int_equal(idem_pending(&f->table, &entry, 1), IDEM_OK);
    assert_int_equal(idem_pending(&f->table, &entry, 1), IDEM_OK);
    assert_int_equal(f->id[entry.scope_len], 'a');
    assert_int_equal(forget(f, "panel", "a", 1), IDEM_OK);
    assert_int_equal(idem_pending(&f->table, &entry, 1), IDEM_OK);
    assert_int_equal(f->id[entry.scope_len], 'c');
}

static void what_is_owed_is_dropped_with_its_retention_and_counted(
    void **state)
{
    fixture *f = (fixture *)*state;
    idem_claim claim = owe(f);

    assert_string_equal(owed(f, RETENTION - 1), "cab");
    assert_string_equal(owed(f, RETENTION), "b");
    assert_int_equal(checked(f, idem_delivered(&f->table, &claim)),
                     IDEM_E_NOT_FOUND);
    assert_int_equal(maintain(f, RETENTION), IDEM_OK);
    assert_int_equal(f->table.stats.undelivered, 2);
    assert_int_equal(f->table.stats.expired, 2);
    assert_int_equal(maintain(f, RETENTION + 1), IDEM_OK);
    assert_int_equal(f->table.stats.undelivered, 3);
    assert_int_equal(f->table.stats.expired, 4);
    assert_int_equal(f->table.pending, 0);
}

/* ---------------------------------------------------------------------------
   counters
   ------------------------------------------------------------------------ */
static void the_counters_count_what_begin_answers(void **state)
{
    fixture *f = (fixture *)*state;
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
        assert_int_equal(f->table.stats.answers[i], count[i]);
    }
    assert_true(full > 0);
    assert_int_equal(f->table.stats.full, full);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(s1_s3_every_call_answers_as_the_state_of_the_key_says),
        TEST(s7_what_is_not_done_leaves_the_key_as_it_was),
        TEST(s3_one_other_bit_is_a_mismatch_in_every_state),
        TEST(every_answer_of_the_manual_comes),
        TEST(a_lock_that_is_refused_is_the_last_of_the_answers),
        TEST(s4_a_lease_covers_the_millisecond_before_its_end_and_no_more),
        TEST(the_default_lease_is_half_a_minute),
        TEST(s1_a_lease_without_end_is_never_taken_over),
        TEST(s2_retention_counts_from_the_completion_to_the_millisecond),
        TEST(the_default_retention_is_a_day),
        TEST(s4_a_cut_short_key_is_kept_one_retention_from_the_leases_end),
        TEST(l2_an_exhausted_key_is_kept_one_retention_from_the_leases_end),
        TEST(s1_a_late_holder_may_complete_if_nobody_took_over),
        TEST(s1_a_late_holder_is_fenced_once_its_key_is_dropped),
        TEST(s1_a_late_holder_may_renew_and_is_protected_again),
        TEST(s1_only_the_newest_of_several_holders_is_current),
        TEST(s1_a_claim_is_fenced_when_its_slot_has_another_key),
        TEST(s1_a_claim_that_was_never_granted_is_fenced),
        TEST(tokens_increase_strictly_over_all_keys),
        TEST(s1_behind_the_last_token_no_claim_is_granted),
        TEST(s1_the_low_half_of_the_token_may_wrap),
        TEST(a_claim_that_is_not_granted_is_zero_and_so_is_the_reply),
        TEST(l2_a_key_is_exhausted_after_max_attempts),
        TEST(attempts_start_anew_after_release_and_forget),
        TEST(the_last_holder_of_an_exhausted_key_may_complete),
        TEST(renewing_lengthens_and_never_shortens),
        TEST(renewing_a_lease_without_end_changes_nothing),
        TEST(a_renewed_claim_is_kept_one_retention_from_its_new_end),
        TEST(a_lease_out_of_range_is_refused),
        TEST(s7_a_response_over_the_reservation_leaves_the_claim),
        TEST(s7_reserving_nothing_reserves_response_max),
        TEST(a_reservation_over_response_max_claims_nothing),
        TEST(a_claim_taken_over_has_what_the_new_request_asks),
        TEST(an_empty_response_is_one),
        TEST(a_buffer_too_short_is_not_touched_and_the_length_is_told),
        TEST(s2_an_outcome_is_replayed_in_every_detail),
        TEST(a_response_is_read_in_pieces),
        TEST(s3_a_response_that_is_gone_is_not_found),
        TEST(a_fingerprint_given_streamed_or_computed_is_the_same),
        TEST(a_fingerprint_of_zero_is_legal),
        TEST(an_empty_payload_needs_no_pointer_and_is_a_payload),
        TEST(the_state_changes_only_with_an_outcome_that_has_one),
        TEST(s7_a_refused_completion_leaves_the_state),
        TEST(a_state_that_does_not_fit_tells_its_length),
        TEST(run_executes_once_and_replays_afterwards),
        TEST(run_releases_when_the_handler_says_so),
        TEST(run_takes_a_response_that_is_in_the_buffer_already),
        TEST(run_with_a_buffer_too_short_tells_the_length),
        TEST(run_that_gives_back_what_it_lost_is_fenced),
        TEST(run_tells_the_handler_of_a_recovery),
        TEST(run_reports_an_outcome_that_does_not_fit),
        TEST(run_reports_a_handler_that_was_overtaken),
        TEST(what_is_owed_is_listed_oldest_completion_first),
        TEST(what_is_delivered_is_owed_no_more),
        TEST(results_may_be_delivered_while_they_are_listed),
        TEST(a_list_begins_anew_behind_what_was_forgotten),
        TEST(what_is_owed_is_dropped_with_its_retention_and_counted),
        TEST(the_counters_count_what_begin_answers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
