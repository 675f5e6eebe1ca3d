/* SPDX-License-Identifier: 0BSD */
/*
 * What no story of a key tells (life.c): the last of the tokens; buffers that
 * are too short, and bytes that are the caller's own; that looking at keys shows
 * each live one once; what a key is told that is refused; and how much one step
 * of idle work does.
 */
#include "fixture.h"

#include "inside.h"

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
    if (sizeof claims[0].token == 4)
        skip();                                     // these are the last
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
    is(ask(f, "k", 0), IDEM_EXECUTE);
    is(renew(f, &f->claim, IDEM_LEASE_MAX + 1, 0), IDEM_E_ARG);
    is(renew(f, &f->claim, IDEM_LEASE_NONE - 1, 0), IDEM_E_ARG);
    for (uint32_t now = 0; now < 81; now += 80) {
        is(find(f, "panel", "k", now), IDEM_OK);
        is(f->entry.left_ms, LEASE);
        is(renew(f, &f->claim, 0, 80), IDEM_OK);
    }
}

/* ---------------------------------------------- payloads, outcomes, looking */

TEST(what_does_not_fit_is_not_copied_and_its_length_is_told)
{
    idem_request rq = request_of(f, "panel", "key", "pour");
    char got[STATE_MAX];
    size_t len = 4;

    f->outcome.state = "total";
    f->outcome.state_len = 5;
    (void)finish(f, "panel", "key", 0);
    for (size_t size = 0; size < 10; size++) {      // 9: there is no buffer
        char id[10] = ".........";
        idem_entry entry = { .id = id, .id_size = size };
        memset(f->buffer, '.', sizeof f->buffer);
        f->reply.buffer = size == 9 ? NULL : f->buffer;
        f->reply.buffer_size = size;
        is(idem_begin(&f->table, &f->claim, &f->reply, &rq, 0), IDEM_REPLAY);
        is(f->reply.response_len, 6);
        assert_memory_equal(f->buffer, size > 5 && size < 9 ? "poured."
                                                            : ".......", 7);
        is(idem_find(&f->table, &entry, &rq, 0), IDEM_OK);
        assert_string_equal(id, size < 8 ? "........." : "panelkey.");
        is(entry.key_len, 3);
    }
    memcpy(got, ".......", sizeof got);
    is(idem_state(&f->table, got, &len), IDEM_E_TOO_LARGE);
    is(len, 5);
    assert_string_equal(got, ".......");
    is(idem_state(&f->table, got, &len), IDEM_OK);
    assert_string_equal(got, "total..");
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

/* What is not known yet is said to be nothing, whatever was there; the claim is
   the holder's alone, until the key is finished. */
TEST(a_key_in_progress_shows_no_outcome_and_a_finished_one_its_claim)
{
    is(ask(f, "key", 0), IDEM_EXECUTE);
    is(ask(f, "key", LEASE), IDEM_RECOVER);
    for (int again = 0; again < 2; again++) {
        memset(&f->entry, again ? 0xEE : 0, sizeof f->entry);
        f->entry.id = f->id;
        f->entry.id_size = sizeof f->id;
        f->entry.attempts = 0;          // from the first key on
        is(idem_next(&f->table, &f->entry, LEASE), IDEM_OK);
        assert_string_equal(f->id, "panelkey");
        is(f->entry.status, IDEM_IN_PROGRESS);
        is(f->entry.code | f->entry.age_ms | f->entry.undelivered, 0);
        is(f->entry.claim.token, 0);
    }
    is(complete(f, &f->claim, "12345", LEASE), IDEM_OK);
    is(find(f, "panel", "key", LEASE), IDEM_OK);
    assert_true(f->entry.claim.token == f->claim.token);
    is(f->entry.claim.slot, f->claim.slot);
    is(f->entry.claim.attempt, 2);
}

/* Whether the next key, or the next that is owed, is that of a letter. */
static int steps_to(fixture *f, int pending, char letter)
{
    return (pending ? idem_pending(&f->table, &f->entry, 0)
                    : idem_next(&f->table, &f->entry, 0)) == IDEM_OK &&
           f->id[5] == letter;
}

/* Both go on after the key that the entry holds, whoever put it there; where
   that was is not known any more when it is gone. */
TEST(next_and_pending_step_alike)
{
    f->outcome.confirm = 1;
    for (uint32_t i = 0; i < 4; i++)
        (void)finish(f, "panel", nth(i), 0);
    is(find(f, "panel", "none", 0), IDEM_E_NOT_FOUND);  // an entry of zeros
    assert_true(steps_to(f, 0, 'a') && steps_to(f, 1, 'b') &&
                steps_to(f, 0, 'c'));
    is(find(f, "panel", "b", 0), IDEM_OK);
    assert_true(steps_to(f, 0, 'c') && steps_to(f, 1, 'd'));
    is(idem_next(&f->table, &f->entry, 0), IDEM_E_NOT_FOUND);
    is(idem_pending(&f->table, &f->entry, 0), IDEM_E_NOT_FOUND);
    is(find(f, "panel", "b", 0), IDEM_OK);
    is(forget(f, "panel", "b", 0), IDEM_OK);
    assert_true(steps_to(f, 1, 'a'));
}

TEST(looking_for_what_is_not_there_leaves_the_entry)
{
    idem_request rq = request_of(f, "panel", "k", "");
    idem_entry entry, before;

    memset(&entry, 0xEE, sizeof entry);
    before = entry;
    is(idem_find(&f->table, &entry, &rq, 0), IDEM_E_NOT_FOUND);
    rq.key_len = 0;
    is(idem_find(&f->table, &entry, &rq, 0), IDEM_E_ARG);
    rq.key_len = KEY_MAX + 1 - 5;
    is(idem_find(&f->table, &entry, &rq, 0), IDEM_E_TOO_LARGE);
    is(idem_forget(&f->table, &rq, 0), IDEM_E_TOO_LARGE);
    assert_memory_equal(&entry, &before, sizeof entry);
}

/* ----------------------------------------------------------------- idem_run */

/* A handler that gives the outcome that it is told of. */
static int work(void *ctx, idem_outcome *outcome, const idem_request *request,
                const idem_claim *claim, int answer, uint32_t *now_ms)
{
    static const idem_outcome zeroed;

    assert_memory_equal(outcome, &zeroed, sizeof zeroed);
    is(request->key_len, 1);
    assert_true(claim->token && answer && *now_ms <= LEASE);
    *outcome = *(idem_outcome *)ctx;
    return 0;
}

/* With so much of the buffer, which holds this. */
static int run(fixture *f, const char *response, size_t len, size_t size,
               uint32_t now)
{
    idem_request rq = request_of(f, "panel", "k", "pour");
    idem_outcome outcome = { .response = response, .response_len = len };

    f->reply.buffer = f->buffer;
    f->reply.buffer_size = size;
    return checked(f, idem_run(&f->table, &f->claim, &f->reply, &rq, work,
                               &outcome, now));
}

/* With a buffer too short the length is told, and no byte of it is copied. */
TEST(run_takes_a_response_that_is_in_the_buffer_already)
{
    for (size_t size = 5; size < 7; size++) {
        fixture_open(f, 0);
        strcpy(f->buffer, "poured");
        is(run(f, f->buffer, 6, size, 0), IDEM_EXECUTE);
        is(f->reply.response_len, 6);
        assert_string_equal(f->buffer, "poured");
        strcpy(f->buffer, "------");
        is(run(f, NULL, 0, size, 0), IDEM_REPLAY);
        is(f->reply.response_len, 6);
        assert_string_equal(f->buffer, size < 6 ? "------" : "poured");
        strcpy(f->buffer, "------");
        fixture_open(f, 0);
        is(run(f, "spilled", 6, size, 0), IDEM_EXECUTE);
        assert_string_equal(f->buffer, size < 6 ? "------" : "spille");
    }
}

TEST(run_reports_an_outcome_that_does_not_fit)
{
    is(run(f, "much too long to be kept", RESPONSE_MAX + 1, 63, 0),
       IDEM_E_TOO_LARGE);
    is(run(f, "not asked", 9, 63, 0), IDEM_BUSY);
    is(run(f, NULL, RESPONSE_MAX + 1, 63, LEASE), IDEM_E_ARG);
    is(complete(f, &f->claim, "short", LEASE), IDEM_OK);
}

/* ------------------------------------------------------------- what is over */

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

/* A key is refused, and told to come again so much later. */
static void refused_for(fixture *f, const char *key, uint32_t now,
                        uint32_t wait)
{
    is(ask(f, key, now), IDEM_E_FULL);
    is(f->reply.retry_after_ms, wait);
}

TEST(a_refused_key_is_told_when_the_first_will_be_over_if_any_will)
{
    f->config.capacity = 2;
    fixture_open(f, 0);
    is(ask(f, "a", 0), IDEM_EXECUTE);                   // until 1100
    (void)finish(f, "panel", "b", 30);                  // until 1030
    refused_for(f, "c", 40, RETENTION + 30 - 40);
    refused_for(f, "c", 1029, 1);
    is(ask(f, "c", 1030), IDEM_EXECUTE);                // until 2130
    refused_for(f, "d", 1030, 1100 - 1030);
    f->request.lease_ms = IDEM_LEASE_NONE;
    is(ask(f, "d", 1100), IDEM_EXECUTE);
    is(ask(f, "e", 2130), IDEM_EXECUTE);
    for (uint32_t day = 1; day < 10; day++)
        refused_for(f, "f", day * 86400000, 0);
}

TEST(l1_maintenance_frees_what_is_over_64_slots_at_a_time)
{
    static const uint32_t capacities[] = { 1, 63, 64, 65, 128, 200 };

    for (size_t i = 0; i < COUNT(capacities); i++) {
        uint32_t capacity = f->config.capacity = capacities[i];
        fixture_open(f, 0);
        for (uint32_t key = 1000; key < 1000 + capacity; key++) {
            (void)snprintf(f->id, sizeof f->id, "%u", (unsigned)key);
            is(ask(f, f->id, 0), IDEM_EXECUTE);
        }
        for (int round = 0; round < 3; round++) {
            uint32_t now = round < 1 ? 0 : LEASE + RETENTION;
            uint32_t steps = 1;
            for (; maintain(f, now) == IDEM_MORE; steps++)
                is(f->table.used, round < 1 ? capacity :
                                  round > 1 ? 0 : capacity - 64 * steps);
            is(steps, (capacity + 63) / 64);
            is(f->table.used, round < 1 ? capacity : 0);
        }
        is(f->table.stats.expired, capacity);
    }
}
