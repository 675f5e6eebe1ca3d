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

/* ---------------------------------------------------------------------------
   what is not said
   ------------------------------------------------------------------------ */

TEST(the_default_lease_is_half_a_minute)
{
    f->config.lease_ms = 0;
    f->config.retention_ms = 0;
    fixture_open(f, 7);
    is(ask(f, "k", 7), IDEM_EXECUTE);
    is(ask(f, "k", 7 + 29999), IDEM_BUSY);
    is(ask(f, "k", 7 + 30000), IDEM_RECOVER);
}

TEST(the_default_retention_is_a_day)
{
    f->config.retention_ms = 0;
    fixture_open(f, 7);
    (void)finish(f, "panel", "k", 7);
    is(ask(f, "k", 7 + 86399999), IDEM_REPLAY);
    is(ask(f, "k", 7 + 86486400), IDEM_EXECUTE);
}

/* ---------------------------------------------------------------------------
   claims
   ------------------------------------------------------------------------ */
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
