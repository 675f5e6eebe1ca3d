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

/* ------------------------------------------------- every state, every call */

/* What each call answers in each state, and which status the key has then: 0
   unknown, 1 in progress, 2 completed, 3 failed.  All of S1 is in here. */
static const struct row {
    const char *state;
    const char *steps;          // by which the key "k" is brought there
    const char *answers;        // to each of CALLS, as in `letters`
    const char *after;
} life[] = {
    /*                               BWCRNXdg */
    { "unknown", "",                "EEFFFNNN", "11000000" },
    { "claimed", "B",               "YMOOOYNN", "11201111" },
    { "its lease is over", "BL",    "RMOOOONN", "11201011" },
    { "overtaken", "BLb",           "YMFFFYNN", "11111111" },
    { "exhausted", "BLBL",          "XMOOOONN", "11201011" },
    { "completed", "BC",            "PMFFFOOO", "22222022" },
    { "failed", "BD",               "PMFFFOOO", "33333033" },
    { "released", "BR",             "EEFFFNNN", "11000000" },
    { "forgotten", "BLX",           "EEFFFNNN", "11000000" },
    { "dropped with its claim", "BLT", "EEFFFNNN", "11000000" },
    { "dropped with its outcome", "BCT", "EEFFFNNN", "11000000" },
};

static const struct { char letter; int answer; } letters[] = {
    { 'E', IDEM_EXECUTE }, { 'R', IDEM_RECOVER }, { 'P', IDEM_REPLAY },
    { 'Y', IDEM_BUSY }, { 'M', IDEM_MISMATCH }, { 'X', IDEM_EXHAUSTED },
    { 'O', IDEM_OK }, { 'F', IDEM_E_FENCED }, { 'N', IDEM_E_NOT_FOUND },
};

// begin, with another payload, complete, release, renew, forget, delivered,
// response
static const char CALLS[] = "BWCRNXdg";

static int make(fixture *f, char call, const idem_claim *claim, uint32_t now)
{
    char piece[RESPONSE_MAX];
    size_t len = sizeof piece;
    int result;

    switch (call) {
    case 'B': return ask(f, "k", now);
    case 'W': return begin(f, "panel", "k", "pour more", now);
    case 'C': return complete(f, claim, "done", now);
    case 'R': return release(f, claim, now);
    case 'N': return renew(f, claim, LEASE, now);
    case 'X': return forget(f, "panel", "k", now);
    case 'd': return checked(f, idem_delivered(&f->table, claim));
    }
    result = checked(f, idem_response(&f->table, piece, &len, claim, 0));
    is(len, result ? 0 : 6);
    return result;
}

/* Opens a table, makes the steps (D fails, b is somebody else's claim), and
   gives the time then, and the claim of the last B. */
static uint32_t bring_to(fixture *f, const struct row *row, idem_claim *claim)
{
    uint32_t now = 10;

    f->config.max_attempts = 2;
    fixture_open(f, 0);
    memset(claim, 0, sizeof *claim);
    for (const char *step = row->steps; *step; step++) {
        f->outcome.failed = *step == 'D';
        switch (*step) {
        case 'L': now += LEASE; break;
        case 'T': now += RETENTION; break;
        case 'C': case 'D': is(complete(f, claim, "poured", now), 0); break;
        case 'b': is(ask(f, "k", now), IDEM_RECOVER); break;
        case 'B':
            is(ask(f, "k", now), now > 10 ? IDEM_RECOVER : IDEM_EXECUTE);
            *claim = f->claim;
            break;
        default: is(make(f, *step, claim, now), IDEM_OK);
        }
    }
    f->outcome.failed = 0;
    return now;
}

/* A call in a state: its answer, the status afterwards; what is refused leaves
   the key as it was. */
static void check_answer(fixture *f, const struct row *row, size_t call)
{
    idem_claim claim;
    idem_entry before;
    uint32_t now = bring_to(f, row, &claim);
    size_t i = 0;
    int answer;

    while (letters[i].letter != row->answers[call])
        i++;
    answer = letters[i].answer;
    (void)find(f, "panel", "k", now);
    before = f->entry;
    if (make(f, CALLS[call], &claim, now) != answer)
        fail_msg("%c in the state: %s", CALLS[call], row->state);
    if (call < 2)
        assert_ptr_equal(f->reply.buffer, f->buffer);
    (void)find(f, "panel", "k", now);
    is(f->entry.status, row->after[call] - '0');
    if (!strchr("ERO", row->answers[call]))
        assert_memory_equal(&f->entry, &before, sizeof before);
}

/* .. after which one other bit is a mismatch. */
static void check_fingerprint(fixture *f, const struct row *row, size_t call)
{
    idem_claim claim;
    uint32_t now = bring_to(f, row, &claim);
    uint64_t fingerprint;

    // Whatever happened before: what is known now decides.
    (void)make(f, CALLS[call], &claim, now);
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

TEST(s1_s3_s7_every_call_answers_as_the_state_of_the_key_says)
{
    for (size_t i = 0; i < 8 * COUNT(life); i++)
        check_answer(f, &life[i / 8], i % 8);
}

TEST(s3_one_other_bit_is_a_mismatch_in_every_state)
{
    for (size_t i = 0; i < 8 * COUNT(life); i++)
        check_fingerprint(f, &life[i / 8], i % 8);
}

/* ------------------------------------------------------------------- claims */

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

TEST(renewing_for_nothing_is_for_the_default_and_out_of_range_for_none)
{
    static const struct { uint32_t lease, now; int answer; } rows[] = {
        { IDEM_LEASE_MAX + 1, 0, IDEM_E_ARG },
        { IDEM_LEASE_NONE - 1, 0, IDEM_E_ARG },
        { 0, 80, IDEM_OK },
    };

    is(ask(f, "k", 0), IDEM_EXECUTE);
    for (size_t i = 0; i < COUNT(rows); i++) {
        is(renew(f, &f->claim, rows[i].lease, rows[i].now), rows[i].answer);
        is(find(f, "panel", "k", rows[i].now), IDEM_OK);
        is(f->entry.left_ms, LEASE);
    }
}

/* ------------------------------------------------ payloads, outcomes, state */

TEST(a_buffer_too_short_is_not_touched_and_the_length_is_told)
{
    idem_request rq = request_of(f, "panel", "k", "pour");

    (void)finish(f, "panel", "k", 0);
    for (size_t size = 0; size < 9; size++) {       // 8: there is none
        memset(f->buffer, '.', sizeof f->buffer);
        f->reply.buffer = size == 8 ? NULL : f->buffer;
        f->reply.buffer_size = size;
        is(idem_begin(&f->table, &f->claim, &f->reply, &rq, 0), IDEM_REPLAY);
        is(f->reply.response_len, 6);
        assert_memory_equal(f->buffer, size == 6 || size == 7 ? "poured."
                                                              : ".......", 7);
    }
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

TEST(a_state_that_does_not_fit_tells_its_length)
{
    char got[STATE_MAX] = ".......";
    size_t len = 4;

    f->outcome.state = "total";
    f->outcome.state_len = 5;
    (void)finish(f, "panel", "k", 0);
    is(idem_state(&f->table, got, &len), IDEM_E_TOO_LARGE);
    is(len, 5);
    assert_string_equal(got, ".......");
    is(idem_state(&f->table, got, &len), IDEM_OK);
    assert_string_equal(got, "total..");
}

/* ----------------------------------------------------------------- idem_run */

struct job {
    int calls;
    int answer;             // what the handler was told
    uint64_t token;
    uint32_t takes;         // ms
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
    return 0;
}

/* With so much of the buffer. */
static int run(fixture *f, struct job *job, size_t size, uint32_t now)
{
    idem_request rq = request_of(f, "panel", "k", "pour");

    f->reply.buffer = f->buffer;
    f->reply.buffer_size = size;
    return checked(f, idem_run(&f->table, &f->claim, &f->reply, &rq, work, job,
                               now));
}

/* With a buffer too short the length is told, and no byte of it is copied. */
TEST(run_takes_a_response_that_is_in_the_buffer_already)
{
    for (size_t size = 5; size < 7; size++) {
        struct job job = {
            .outcome = { .response = f->buffer, .response_len = 6 },
        };
        fixture_open(f, 0);
        memcpy(f->buffer, "poured", 7);
        is(run(f, &job, size, 0), IDEM_EXECUTE);
        is(f->reply.response_len, 6);
        assert_string_equal(f->buffer, "poured");
        memcpy(f->buffer, "------", 7);
        is(run(f, &job, size, 0), IDEM_REPLAY);
        is(f->reply.response_len, 6);
        assert_string_equal(f->buffer, size < 6 ? "------" : "poured");
        job.outcome.response = "spilled";
        memcpy(f->buffer, "------", 7);
        fixture_open(f, 0);
        is(run(f, &job, size, 0), IDEM_EXECUTE);
        assert_string_equal(f->buffer, size < 6 ? "------" : "spille");
    }
}

TEST(run_reports_an_outcome_that_does_not_fit)
{
    struct job job = { .outcome = { .response = "much too long to be kept",
                                    .response_len = RESPONSE_MAX + 1 } };

    is(run(f, &job, 63, 0), IDEM_E_TOO_LARGE);
    is(run(f, &job, 63, 0), IDEM_BUSY);
    is(job.calls, 1);
    job.outcome.response = NULL;
    is(run(f, &job, 63, LEASE), IDEM_E_ARG);
    is(complete(f, &f->claim, "short", LEASE), IDEM_OK);
}

/* ----------------------------------------------------------------- delivery */

/* Where a list was is not known any more when that key is gone. */
TEST(a_list_begins_anew_behind_what_was_forgotten)
{
    idem_entry entry = { .id = f->id, .id_size = sizeof f->id };

    f->outcome.confirm = 1;
    for (uint32_t i = 0; i < 3; i++)
        (void)finish(f, "panel", nth(i), i);
    is(idem_pending(&f->table, &entry, 3), IDEM_OK);
    is(idem_pending(&f->table, &entry, 3), IDEM_OK);
    is(f->id[entry.scope_len], 'b');
    is(forget(f, "panel", "b", 3), IDEM_OK);
    is(idem_pending(&f->table, &entry, 3), IDEM_OK);
    is(f->id[entry.scope_len], 'a');
}

TEST(what_is_owed_is_dropped_with_its_retention_and_counted)
{
    for (uint32_t i = 0; i < 4; i++) {
        f->outcome.confirm = i != 2;
        (void)finish(f, "panel", nth(i), i / 2);
    }
    is(f->table.pending, 3);
    for (uint32_t late = 0; late < 2; late++) {
        is(maintain(f, RETENTION + late), IDEM_OK);
        is(f->table.stats.undelivered, 2 + late);
        is(f->table.stats.expired, 2 + 2 * late);
        is(f->table.pending, 1 - late);
    }
    is(checked(f, idem_delivered(&f->table, &f->claim)), IDEM_E_NOT_FOUND);
}
