/* SPDX-License-Identifier: 0BSD */
/*
 * What a table with a journal promises over restarts, as calls and answers: the
 * promises of the manual's >>idea, one after the other, and the edges that it
 * decides.  Nothing fails here and nothing is damaged; power may go.
 */
#include "device.h"

#define ON_EACH_MEDIUM(d)                                                      \
    for (size_t m_ = 0; m_ < COUNT(media) && (d = device_on(state, media[m_]));\
         m_++)

/* Opens once more with what a test has changed in d->config. */
static device *configured(device *d)
{
    restart(d);
    return d;
}

/* ---------------------------------------------------------------- S1 and S3 */

static void s1_claims_of_the_boot_before_are_fenced(void **state)
{
    device *d = device_on(state, &nor);
    idem_claim old;

    answers(begin(d, "a"), IDEM_EXECUTE);
    old = d->claim;
    restart(d);
    answers(complete_as(d, &old, "a"), IDEM_E_FENCED);
    answers(release(d, &old), IDEM_E_FENCED);
    answers(renew(d, &old, 0), IDEM_E_FENCED);
    answers(begin(d, "a"), IDEM_RECOVER);
    answers(complete_as(d, &old, "a"), IDEM_E_FENCED);
    answers(complete(d, "a"), IDEM_OK);
}

static void s1_a_takeover_holds_after_a_restart(void **state)
{
    device *d = device_on(state, &nor_8);
    idem_claim first, second;

    answers(begin(d, "a"), IDEM_EXECUTE);
    first = d->claim;
    d->now += LEASE;
    answers(begin(d, "a"), IDEM_RECOVER);
    second = d->claim;
    answers(complete_as(d, &first, "b"), IDEM_E_FENCED);
    answers(complete_as(d, &second, "a"), IDEM_OK);
    answers(complete_as(d, &second, "b"), IDEM_E_FENCED);
    restart(d);
    replays(d, "a");
}

static void a_claim_stays_current_after_its_lease_until_taken_over(void **state)
{
    device *d = device_on(state, &nor);

    answers(begin(d, "a"), IDEM_EXECUTE);
    d->now += 2 * LEASE;
    answers(complete(d, "a"), IDEM_OK);
    restart(d);
    replays(d, "a");
}

static void tokens_increase_over_restarts_that_wrote_nothing(void **state)
{
    device *d;
    uint64_t token = 0;

    ON_EACH_MEDIUM(d) {
        token = 0;
        for (uint32_t n = 0; n < 20; n++) {
            answers(begin(d, nth(n)), IDEM_EXECUTE);
            assert_true(d->claim.token > token);
            token = d->claim.token;
            answers(release(d, &d->claim), IDEM_OK);
            if (n % 3)
                restart(d);
            restart(d);
        }
    }
}

static void s3_another_payload_is_a_mismatch_in_every_state(void **state)
{
    device *d = device_on(state, &nor);

    d->config.max_attempts = 1;
    configured(d);
    finish(d, "done");
    answers(begin(d, "live"), IDEM_EXECUTE);
    for (int boot = 0; boot < 3; boot++) {
        answers(begin_with(d, "done", "spill"), IDEM_MISMATCH);
        answers(begin_with(d, "live", "spill"), IDEM_MISMATCH);
        answers(begin(d, "live"), boot ? IDEM_EXHAUSTED : IDEM_BUSY);
        restart(d);
    }
}

static void s3_the_same_key_of_two_scopes_is_two_keys(void **state)
{
    device *d = device_on(state, &nor);

    finish(d, "a");
    d->ask.scope = "cloud";
    d->ask.scope_len = 5;
    answers(begin(d, "a"), IDEM_EXECUTE);
    answers(complete(d, "b"), IDEM_OK);
    restart(d);
    answers(begin(d, "a"), IDEM_REPLAY);
    assert_true(is_outcome_of(d, "b"));
    d->ask.scope_len = 0;
    replays(d, "a");
}

/* ----------------------------------------------------------------------- S2 */

static void s2_every_outcome_is_replayed_byte_for_byte(void **state)
{
    device *d;

    ON_EACH_MEDIUM(d) {
        // Responses of 0, 1, 23 and 24 bytes, codes of all sizes and signs.
        static const char *const keys[] = { "d", "}", "{", "|", "a", "B" };
        for (size_t i = 0; i < COUNT(keys); i++) {
            d->tell.failed = i == 4;
            finish(d, keys[i]);
        }
        d->tell.failed = 0;
        for (int boot = 0; boot < 4; boot++) {
            for (size_t i = 0; i < COUNT(keys); i++) {
                replays(d, keys[i]);
                assert_int_equal(d->reply.status, i == 4 ? IDEM_FAILED
                                                         : IDEM_COMPLETED);
                assert_int_equal(d->reply.claim.attempt, 1);
            }
            if (boot)
                turn(d, 1 + d->storage.sector_count * (boot == 2));
            restart(d);
            assert_int_equal(d->table.stats.lost, 0);
        }
    }
}

static void any_key_and_request_is_stored_as_it_is(void **state)
{
    device *d = device_on(state, &nor);
    const char *longest = "0123456789abcdef";

    d->ask.scope = "";
    d->ask.scope_len = 0;
    d->ask.has_fingerprint = 1;
    for (uint64_t f = 1; f; f <<= 21) {
        idem_request rq = request_for(d, longest, "");
        rq.scope_len = 0;
        rq.fingerprint = f;
        memset(&d->reply, 0, sizeof d->reply);
        answers(idem_begin(&d->table, &d->claim, &d->reply, &rq, d->now),
                IDEM_EXECUTE);
        restart(d);
        rq.fingerprint = f - 1;
        answers(idem_begin(&d->table, &d->claim, &d->reply, &rq, d->now),
                IDEM_MISMATCH);
        answers(idem_forget(&d->table, &rq, d->now), IDEM_OK);
    }
}

static void before_two(device *d)
{
    finish(d, "a");
    answers(begin(d, "b"), IDEM_EXECUTE);
}

static void complete_b(device *d)
{
    (void)complete(d, "b");
}

static void a_is_there_and_b_whole_or_not(device *d)
{
    assert_int_equal(d->table.stats.lost, 0);
    replays(d, "a");
    if (begin(d, "b") == IDEM_REPLAY)
        assert_true(is_outcome_of(d, "b"));
    else
        answers(complete(d, "b"), IDEM_OK);
    restart(d);
    replays(d, "a");
    replays(d, "b");
}

static void s2_a_cut_in_complete_leaves_all_or_nothing(void **state)
{
    for (size_t m = 0; m < COUNT(media); m++)
        assert_in_range(cut_each(state, media[m], before_two, complete_b,
                                 a_is_there_and_b_whole_or_not), 5, 2000);
}

static void complete_b_after_a_restart(device *d)
{
    restart(d);
    answers(begin(d, "b"), IDEM_RECOVER);
    answers(complete(d, "b"), IDEM_OK);
    restart(d);
}

static void before_a_first_write(device *d)
{
    before_two(d);
    complete_b_after_a_restart(d);
}

static void begin_c(device *d)
{
    (void)begin(d, "c");
}

static void a_b_and_c_is_claimed_or_new(device *d)
{
    int c;

    assert_int_equal(d->table.stats.lost, 0);
    replays(d, "a");
    replays(d, "b");
    c = begin(d, "c");
    assert_true(c == IDEM_EXECUTE || c == IDEM_RECOVER);
    answers(complete(d, "c"), IDEM_OK);
    restart(d);
    replays(d, "c");
}

/* The first write of a boot erases, carries, confirms and begins a sector. */
static void s2_a_cut_in_the_first_write_of_a_boot_loses_nothing(void **state)
{
    for (size_t m = 0; m < COUNT(media); m++)
        assert_in_range(cut_each(state, media[m], before_a_first_write, begin_c,
                                 a_b_and_c_is_claimed_or_new), 20, 9000);
}

/* ----------------------------------------------------------------------- S4 */

static void s4_a_cut_short_claim_is_recovered_at_every_restart(void **state)
{
    device *d;

    ON_EACH_MEDIUM(d) {
        d->config.max_attempts = 255;
        configured(d);
        answers(begin(d, "a"), IDEM_EXECUTE);
        for (unsigned n = 2; n < 30; n++) {
            restart(d);
            if (n % 3 == 0)
                continue;
            answers(begin(d, "a"), IDEM_RECOVER);
            answers(begin(d, "a"), IDEM_BUSY);
        }
        assert_int_equal(d->claim.attempt, 0);
        d->now += LEASE;
        answers(begin(d, "a"), IDEM_RECOVER);
        assert_int_equal(d->claim.attempt, 21);
        answers(complete(d, "a"), IDEM_OK);
        restart(d);
        replays(d, "a");
    }
}

static void nothing(device *d)
{
    (void)d;
}

static void begin_a(device *d)
{
    (void)begin(d, "a");
}

static void a_may_be_anything_but_done(device *d)
{
    int answer = begin(d, "a");

    assert_int_equal(d->table.stats.lost, 0);
    assert_true(answer == IDEM_EXECUTE || answer == IDEM_RECOVER);
    restart(d);
    answers(begin(d, "a"), IDEM_RECOVER);
    answers(complete(d, "a"), IDEM_OK);
    restart(d);
    replays(d, "a");
}

static void a_torn_claim_is_nothing(void **state)
{
    for (size_t m = 0; m < COUNT(media); m++)
        assert_in_range(cut_each(state, media[m], nothing, begin_a,
                                 a_may_be_anything_but_done), 5, 2000);
}

static void l2_a_key_that_resets_the_device_ends_exhausted(void **state)
{
    device *d = device_on(state, &nor_8);

    answers(begin(d, "a"), IDEM_EXECUTE);
    for (int n = 0; n < 2; n++) {
        restart(d);
        answers(begin(d, "a"), IDEM_RECOVER);
        assert_int_equal(d->claim.attempt, 2 + n);
    }
    for (int n = 0; n < 3; n++) {
        restart(d);
        answers(begin(d, "a"), IDEM_EXHAUSTED);
    }
    answers(forget(d, "a"), IDEM_OK);
    answers(begin(d, "a"), IDEM_EXECUTE);
    assert_int_equal(d->claim.attempt, 1);
}

static void attempts_count_leases_and_restarts_alike(void **state)
{
    device *d = device_on(state, &nor);

    answers(begin(d, "a"), IDEM_EXECUTE);
    d->now += LEASE;
    answers(begin(d, "a"), IDEM_RECOVER);
    restart(d);
    answers(begin(d, "a"), IDEM_RECOVER);
    assert_int_equal(d->claim.attempt, 3);
    answers(release(d, &d->claim), IDEM_OK);
    restart(d);
    answers(begin(d, "a"), IDEM_EXECUTE);
    assert_int_equal(d->claim.attempt, 1);
}

static void a_lease_without_end_ends_with_the_boot(void **state)
{
    device *d = device_on(state, &nor);

    d->ask.lease_ms = IDEM_LEASE_NONE;
    answers(begin(d, "a"), IDEM_EXECUTE);
    d->now += 10 * RETENTION;
    answers(begin(d, "a"), IDEM_BUSY);
    answers(forget(d, "a"), IDEM_BUSY);
    restart(d);
    answers(begin(d, "a"), IDEM_RECOVER);
}

/* ---------------------------------------------------------------------- S10 */

/* Whatever this boot says of b, every later one says too, though what the cut
   left may read otherwise then. */
static void b_stays_what_it_is_said_to_be(device *d)
{
    int answer = begin(d, "b");

    if (answer == IDEM_RECOVER) {
        d->tell.failed = 1;
        answers(complete(d, "b"), IDEM_OK);
    }
    for (int boot = 0; boot < 3; boot++) {
        restart(d);
        replays(d, "b");
        assert_int_equal(d->reply.status, answer == IDEM_REPLAY
                                              ? IDEM_COMPLETED : IDEM_FAILED);
        assert_int_equal(d->table.stats.lost, 0);
    }
}

static void s10_what_one_boot_answered_all_later_ones_answer(void **state)
{
    for (size_t m = 0; m < COUNT(media); m++)
        cut_each(state, media[m], before_two, complete_b,
                 b_stays_what_it_is_said_to_be);
}

static void b_is_owed(device *d)
{
    d->tell.confirm = 1;
    finish(d, "b");
    answers(begin(d, "b"), IDEM_REPLAY);
}

static void deliver_b(device *d)
{
    (void)deliver(d, &d->reply.claim);
}

static void b_stays_delivered(device *d)
{
    uint32_t owed;

    answers(begin(d, "b"), IDEM_REPLAY);
    owed = d->table.pending;
    if (owed)
        answers(deliver(d, &d->reply.claim), IDEM_OK);
    for (int boot = 0; boot < 3; boot++) {
        restart(d);
        replays(d, "b");
        assert_int_equal(d->table.pending, 0);
    }
}

static void s10_what_was_delivered_stays_delivered(void **state)
{
    cut_each(state, &nor_8, b_is_owed, deliver_b, b_stays_delivered);
    cut_each(state, &eeprom, b_is_owed, deliver_b, b_stays_delivered);
}

static void forget_b(device *d)
{
    (void)forget(d, "b");
}

static void b_stays_forgotten(device *d)
{
    int answer = forget(d, "b");

    assert_true(answer == IDEM_OK || answer == IDEM_E_NOT_FOUND);
    answers(begin(d, "b"), IDEM_EXECUTE);
    answers(release(d, &d->claim), IDEM_OK);
    for (int boot = 0; boot < 3; boot++) {
        restart(d);
        answers(find(d, "b"), IDEM_E_NOT_FOUND);
    }
}

static void s10_what_was_forgotten_stays_forgotten(void **state)
{
    cut_each(state, &nor_8, b_is_owed, forget_b, b_stays_forgotten);
    cut_each(state, &eeprom, b_is_owed, forget_b, b_stays_forgotten);
}

static void calls_that_only_look_do_not_write(void **state)
{
    device *d = device_on(state, &nor);
    idem_claim a;
    uint32_t horizon, reads;
    uint8_t bytes[8];
    size_t len = sizeof bytes;

    finish(d, "a");
    restart(d);
    reads = d->medium.reads;
    answers(find(d, "a"), IDEM_OK);
    a = d->entry.claim;
    assert_int_equal(live(d), 1);
    answers(idem_response(&d->table, bytes, &len, &a, 2), IDEM_OK);
    assert_int_equal(len, sizeof bytes);
    answers(idem_horizon(&d->table, &horizon, d->now), IDEM_OK);
    answers(idem_elapse(&d->table, 5), IDEM_OK);
    assert_int_equal(d->medium.reads, reads);
    assert_int_equal(d->writes, 0);
    answers(begin_with(d, "a", "spill"), IDEM_MISMATCH);
    answers(begin(d, "a"), IDEM_REPLAY);
    answers(begin(d, "a"), IDEM_REPLAY);
    assert_int_equal(d->progs + d->erases, 0);
}

static void a_duplicate_costs_no_read(void **state)
{
    device *d = device_on(state, &nor);

    for (uint32_t n = 0; n < 8; n++)
        finish(d, nth(n));
    for (uint32_t n = 0; n < 8; n++) {
        replays(d, nth(n));
        assert_int_equal(d->reads + d->progs, 0);
    }
}

/* ------------------------------------------------ release, forget, delivery */

static void what_was_given_back_is_new_after_a_restart(void **state)
{
    device *d;

    ON_EACH_MEDIUM(d) {
        answers(begin(d, "a"), IDEM_EXECUTE);
        answers(release(d, &d->claim), IDEM_OK);
        answers(release(d, &d->claim), IDEM_E_FENCED);
        finish(d, "b");
        answers(forget(d, "b"), IDEM_OK);
        answers(forget(d, "b"), IDEM_E_NOT_FOUND);
        restart(d);
        assert_int_equal(live(d), 0);
        answers(begin(d, "a"), IDEM_EXECUTE);
        answers(begin(d, "b"), IDEM_EXECUTE);
    }
}

static void a_key_that_came_again_is_there_once(void **state)
{
    device *d = device_on(state, &nor);

    for (uint32_t n = 0; n < 200; n++) {
        answers(begin(d, "a"), IDEM_EXECUTE);
        answers(complete(d, n % 2 ? "x" : "y"), IDEM_OK);
        if (n % 7 == 0)
            restart(d);
        assert_int_equal(live(d), 1);
        answers(begin(d, "a"), IDEM_REPLAY);
        assert_true(is_outcome_of(d, n % 2 ? "x" : "y"));
        // Sometimes it is not the slot that it had before.
        if (n % 3)
            answers(begin(d, "b"), IDEM_EXECUTE);
        answers(forget(d, "a"), IDEM_OK);
        if (n % 3)
            answers(release(d, &d->claim), IDEM_OK);
    }
}

/* Keys end without a record that says so, and come again in any order: each in
   a slot that another one had. */
static void a_key_that_comes_again_in_another_slot_is_there_once(void **state)
{
    for (int evict = 0; evict < 2; evict++) {
        device *d = device_on(state, &nor_8);
        const char *is[4] = { NULL, NULL, NULL, NULL };
        static const char *const keys[4] = { "a", "b", "c", "d" };
        d->config.capacity = 3;
        d->config.full = evict ? IDEM_EVICT_OLDEST : IDEM_REJECT;
        configured(d);
        for (uint32_t n = 0; n < 300; n++) {
            uint32_t k = dice(d, 4);
            if (find(d, keys[k]) == IDEM_OK || (!evict && live(d) == 3)) {
                d->now += evict ? 1 : RETENTION;
                continue;
            }
            is[k] = dice(d, 2) ? "x" : "y";
            answers(begin(d, keys[k]), IDEM_EXECUTE);
            answers(complete(d, is[k]), IDEM_OK);
            if (dice(d, 3) == 0) {
                uint32_t alive = live(d);
                restart(d);
                assert_int_equal(live(d), alive);
            }
            for (k = 0; k < 4; k++)
                if (find(d, keys[k]) == IDEM_OK) {
                    answers(begin(d, keys[k]), IDEM_REPLAY);
                    assert_true(is_outcome_of(d, is[k]));
                }
        }
    }
}

static void forget_on_a_live_claim_is_busy(void **state)
{
    device *d = device_on(state, &nor);

    answers(begin(d, "a"), IDEM_EXECUTE);
    answers(forget(d, "a"), IDEM_BUSY);
    d->now += LEASE;
    answers(forget(d, "a"), IDEM_OK);
    answers(begin(d, "a"), IDEM_EXECUTE);
    restart(d);
    answers(forget(d, "a"), IDEM_OK);
    restart(d);
    answers(begin(d, "a"), IDEM_EXECUTE);
}

static void owes(device *d, const char *keys)
{
    memset(&d->entry, 0, sizeof d->entry);
    d->entry.id = d->id;
    d->entry.id_size = sizeof d->id;
    for (; *keys; keys++) {
        answers(idem_pending(&d->table, &d->entry, d->now), IDEM_OK);
        assert_int_equal(d->id[d->entry.scope_len], *keys);
    }
    answers(idem_pending(&d->table, &d->entry, d->now), IDEM_E_NOT_FOUND);
}

static void what_is_owed_is_owed_in_order_until_delivered(void **state)
{
    device *d;

    ON_EACH_MEDIUM(d) {
        d->tell.confirm = 1;
        for (const char *key = "c\0a\0d\0b\0"; *key; key += 2) {
            finish(d, key);
            d->now += 3;
        }
        for (int boot = 0; boot < 3; boot++) {
            owes(d, boot ? "cdb" : "cadb");
            answers(find(d, "a"), IDEM_OK);
            answers(deliver(d, &d->entry.claim), IDEM_OK);
            answers(deliver(d, &d->entry.claim), IDEM_OK);
            owes(d, "cdb");
            turn(d, 2);
            restart(d);
            assert_int_equal(d->table.pending, 3);
        }
        replays(d, "a");
    }
}

/* -------------------------------------------------------------------- state */

static void state_is(device *d, const char *expected)
{
    char bytes[STATE_MAX];
    size_t len = sizeof bytes;

    answers(idem_state(&d->table, bytes, &len), IDEM_OK);
    assert_int_equal(len, strlen(expected));
    assert_memory_equal(bytes, expected, len);
}

static void new_state(device *d, const char *is)
{
    d->tell.state = is;
    d->tell.state_len = is ? strlen(is) : 0;
}

static void the_state_is_that_of_the_last_outcome_that_had_one(void **state)
{
    device *d;

    ON_EACH_MEDIUM(d) {
        state_is(d, "");
        new_state(d, "one");
        finish(d, "a");
        new_state(d, NULL);
        finish(d, "b");
        restart(d);
        state_is(d, "one");
        answers(forget(d, "a"), IDEM_OK);
        turn(d, d->storage.sector_count + 1);
        restart(d);
        state_is(d, "one");
        new_state(d, "longest!");
        finish(d, "c");
        new_state(d, "too long.");
        answers(begin(d, "d"), IDEM_EXECUTE);
        answers(complete(d, "d"), IDEM_E_TOO_LARGE);
        new_state(d, "");
        restart(d);
        state_is(d, "longest!");
        answers(begin(d, "d"), IDEM_RECOVER);
        answers(complete(d, "d"), IDEM_OK);
        state_is(d, "");
        restart(d);
        state_is(d, "");
    }
}

static void before_new_state(device *d)
{
    new_state(d, "old");
    finish(d, "a");
    answers(begin(d, "b"), IDEM_EXECUTE);
    new_state(d, "new");
}

static void state_is_new_if_b_is_done(device *d)
{
    for (int boot = 0; boot < 3; boot++) {
        int done = find(d, "b") == IDEM_OK && d->entry.status == IDEM_COMPLETED;
        state_is(d, done ? "new" : "old");
        restart(d);
    }
    if (begin(d, "b") == IDEM_RECOVER) {
        state_is(d, "old");
        new_state(d, "last");
        answers(complete(d, "b"), IDEM_OK);
        restart(d);
        state_is(d, "last");
    } else {
        turn(d, 3);
        restart(d);
        state_is(d, "new");
    }
}

static void state_and_outcome_are_one_step(void **state)
{
    for (size_t m = 0; m < COUNT(media); m++)
        cut_each(state, media[m], before_new_state, complete_b,
                 state_is_new_if_b_is_done);
}

/* --------------------------------------------------------------------- room */

/* Random commands on a table that is always full: every key is admitted, and
   every claim completes. */
static void capacity_holds(void **state, const medium *m, uint32_t capacity)
{
    device *d = (device *)*state;
    char keys[16][8];
    int done[16] = { 0 };

    device_defaults(d);
    d->config.capacity = capacity;
    d->config.max_attempts = 255;
    device_start(d, m, 0);
    for (uint32_t n = 0; n < 60 * capacity; n++) {
        uint32_t k = n < capacity ? n : dice(d, capacity);
        if (n >= capacity) {
            if (done[k] || dice(d, 2)) {
                d->now += LEASE;
                answers(forget(d, keys[k]), IDEM_OK);
            } else {
                d->now += LEASE;
                answers(begin(d, keys[k]), IDEM_RECOVER);
                answers(complete(d, keys[k]), IDEM_OK);
                done[k] = 1;
                continue;
            }
        }
        sprintf(keys[k], "%c%u", 'A' + (int)dice(d, 50), (unsigned)n);
        new_state(d, dice(d, 3) ? NULL : "is new!!");
        answers(begin(d, keys[k]), IDEM_EXECUTE);
        if ((done[k] = dice(d, 3) != 0) != 0)
            answers(complete(d, keys[k]), IDEM_OK);
        if (dice(d, 40) == 0)
            restart(d);
    }
    assert_int_equal(live(d), capacity);
    answers(begin(d, "~"), IDEM_E_FULL);
    for (uint32_t k = 0; k < capacity; k++) {
        answers(find(d, keys[k]), IDEM_OK);
        assert_int_equal(d->entry.status, done[k] ? IDEM_COMPLETED
                                                  : IDEM_IN_PROGRESS);
        if (done[k])
            replays(d, keys[k]);
    }
}

static void capacity_is_a_promise_whatever_holes_are_left(void **state)
{
    for (size_t m = 0; m < COUNT(media); m++) {
        capacity_holds(state, media[m], 1);
        capacity_holds(state, media[m], 2);
        capacity_holds(state, media[m], 5);
        capacity_holds(state, media[m], 16);
    }
}

static void a_known_key_that_was_cut_short_is_never_full(void **state)
{
    device *d = device_on(state, &nor);

    for (uint32_t n = 0; n < 8; n++)
        answers(begin(d, nth(n)), IDEM_EXECUTE);
    answers(begin(d, "more"), IDEM_E_FULL);
    restart(d);
    answers(begin(d, "more"), IDEM_E_FULL);
    for (uint32_t n = 0; n < 8; n++)
        answers(begin(d, nth(n)), IDEM_RECOVER);
}

static void s7_a_response_over_the_reservation_leaves_the_claim(void **state)
{
    device *d = device_on(state, &nor);

    d->ask.response_size = RESPONSE_MAX + 1;
    answers(begin(d, "a"), IDEM_E_TOO_LARGE);
    d->ask.response_size = 4;
    answers(begin(d, "a"), IDEM_EXECUTE);
    answers(complete(d, "|"), IDEM_E_TOO_LARGE);
    assert_int_equal(d->progs, 0);
    answers(complete(d, "h"), IDEM_OK);
    restart(d);
    answers(begin(d, "a"), IDEM_REPLAY);
    assert_true(is_outcome_of(d, "h"));
}

static void eviction_takes_the_oldest_completion_over_restarts(void **state)
{
    device *d = device_on(state, &nor);

    d->config.full = IDEM_EVICT_OLDEST;
    d->config.capacity = 4;
    configured(d);
    d->tell.confirm = 1;
    finish(d, "owed");
    d->tell.confirm = 0;
    answers(begin(d, "live"), IDEM_EXECUTE);
    answers(renew(d, &d->claim, IDEM_LEASE_NONE), IDEM_OK);
    finish(d, "a");
    d->now++;
    finish(d, "b");
    restart(d);
    answers(begin(d, "live"), IDEM_RECOVER);
    finish(d, "c");                             // evicts a
    assert_int_equal(d->table.stats.evicted, 1);
    replays(d, "b");
    restart(d);
    replays(d, "b");
    replays(d, "c");
    replays(d, "owed");
    answers(begin(d, "live"), IDEM_RECOVER);
    d->now += 1;
    finish(d, "a");                             // evicts b
    restart(d);
    replays(d, "c");
    answers(find(d, "b"), IDEM_E_NOT_FOUND);
}

static void an_evicted_key_comes_back_as_new_or_too_old(void **state)
{
    device *d = device_on(state, &nor);

    d->config.full = IDEM_EVICT_OLDEST;
    d->config.capacity = 1;
    configured(d);
    d->now += 1000;
    finish(d, "a");
    d->now += 500;
    finish(d, "b");                             // evicts a
    d->ask.age_ms = 500;
    answers(begin(d, "a"), IDEM_TOO_OLD);
    d->ask.age_ms = 499;
    answers(begin(d, "a"), IDEM_EXECUTE);
}

static void only_claims_and_owed_outcomes_leave_nothing_to_evict(void **state)
{
    device *d = device_on(state, &nor);

    d->config.full = IDEM_EVICT_OLDEST;
    d->config.capacity = 2;
    configured(d);
    answers(begin(d, "live"), IDEM_EXECUTE);
    d->tell.confirm = 1;
    finish(d, "owed");
    answers(begin(d, "a"), IDEM_E_FULL);
    answers(deliver(d, &d->claim), IDEM_E_NOT_FOUND);
    answers(begin(d, "owed"), IDEM_REPLAY);
    answers(deliver(d, &d->reply.claim), IDEM_OK);
    answers(begin(d, "a"), IDEM_EXECUTE);
}

static void memory_reaches_to_the_opening_only_under_eviction(void **state)
{
    device *d = device_on(state, &nor);
    uint32_t horizon;

    d->ask.age_ms = RETENTION - 1;
    answers(begin(d, "a"), IDEM_EXECUTE);
    d->ask.age_ms = RETENTION;
    answers(begin(d, "b"), IDEM_TOO_OLD);
    answers(begin(d, "a"), IDEM_BUSY);          // known: its age is no matter
    answers(idem_horizon(&d->table, &horizon, d->now), IDEM_OK);
    assert_int_equal(horizon, RETENTION);
    d->config.full = IDEM_EVICT_OLDEST;
    configured(d);
    d->now += 50;
    d->ask.age_ms = 50;
    answers(begin(d, "b"), IDEM_TOO_OLD);
    d->ask.age_ms = 49;
    answers(begin(d, "b"), IDEM_EXECUTE);
    answers(idem_horizon(&d->table, &horizon, d->now), IDEM_OK);
    assert_int_equal(horizon, 50);
}

static void too_old_comes_before_full(void **state)
{
    device *d = device_on(state, &nor);

    for (uint32_t n = 0; n < 8; n++)
        finish(d, nth(n));
    d->ask.age_ms = RETENTION;
    answers(begin(d, "more"), IDEM_TOO_OLD);
    d->ask.age_ms = 1;
    answers(begin(d, "more"), IDEM_E_FULL);
}

static void s9_a_quota_holds_over_restarts(void **state)
{
    device *d = device_on(state, &nor);

    d->config.quota = 2;
    configured(d);
    finish(d, "a");
    answers(begin(d, "b"), IDEM_EXECUTE);
    restart(d);
    answers(begin(d, "c"), IDEM_E_FULL);
    answers(begin(d, "b"), IDEM_RECOVER);
    d->ask.scope = "other";
    d->ask.scope_len = 5;
    finish(d, "a");
    d->ask.scope_len = 0;
    answers(forget(d, "a"), IDEM_OK);
    restart(d);
    answers(begin(d, "c"), IDEM_EXECUTE);
    answers(begin(d, "d"), IDEM_E_FULL);
}

/* --------------------------------------------------- batch, volatile claims */

static void in_batch_mode_a_sync_makes_all_before_it_durable(void **state)
{
    device *d;

    for (uint32_t lost = 0; lost < 20; lost++) {
        d = device_on(state, &cached);
        d->config.durability = IDEM_BATCH;
        configured(d);
        finish(d, "a");
        answers(begin(d, "b"), IDEM_EXECUTE);
        answers(sync_all(d), IDEM_OK);
        assert_int_equal(d->syncs, 1);
        answers(sync_all(d), IDEM_OK);
        assert_int_equal(d->syncs, 0);          // nothing new
        answers(complete(d, "b"), IDEM_OK);
        assert_int_equal(d->syncs, 0);
        finish(d, "c");
        d->medium.draws = 20;
        flash_off(&d->medium, lost);
        restart(d);
        assert_int_equal(d->table.stats.lost, 0);
        replays(d, "a");
        if (begin(d, "b") != IDEM_RECOVER)
            assert_true(is_outcome_of(d, "b"));
        answers(sync_all(d), IDEM_OK);
    }
}

static void in_each_mode_every_record_is_synced_at_once(void **state)
{
    device *d = device_on(state, &cached);

    finish(d, "a");
    assert_int_equal(d->syncs, 1);
    assert_int_equal(d->medium.unsynced, 0);
    answers(forget(d, "a"), IDEM_OK);
    assert_int_equal(d->medium.unsynced, 0);
    answers(sync_all(d), IDEM_OK);
    assert_int_equal(d->syncs, 0);
}

static void sync_without_a_journal_is_done(void **state)
{
    device *d = device_on(state, &nor);

    finish(d, "a");
    answers(sync_all(d), IDEM_OK);
    d->config.storage = NULL;
    configured(d);
    answers(sync_all(d), IDEM_OK);
    finish(d, "a");
    assert_int_equal(d->reads + d->progs, 0);
    d->config.storage = &d->storage;
}

/* A batch with new state, and the power goes before the sync: whatever part of
   it is there, the state is that of the newest outcome that is. */
static void a_torn_batch_never_gives_state_without_outcome(void **state)
{
    for (uint32_t v = 0; v < 60; v++) {
        device *d = device_on(state, &cached);
        int b, c;
        d->config.durability = IDEM_BATCH;
        configured(d);
        new_state(d, "a");
        finish(d, "a");
        answers(sync_all(d), IDEM_OK);
        new_state(d, "b");
        finish(d, "b");
        new_state(d, "c");
        finish(d, "c");
        d->medium.draws = 60;
        flash_off(&d->medium, v);
        restart(d);
        assert_int_equal(d->table.stats.lost, 0);
        b = find(d, "b") == IDEM_OK && d->entry.status == IDEM_COMPLETED;
        c = find(d, "c") == IDEM_OK && d->entry.status == IDEM_COMPLETED;
        state_is(d, c ? "c" : b ? "b" : "a");
    }
}

static void a_lost_batch_is_no_loss_at_any_later_boot(void **state)
{
    for (uint32_t v = 0; v < 40; v++) {
        device *d = device_on(state, &cached);
        d->config.durability = IDEM_BATCH;
        configured(d);
        finish(d, "a");
        answers(sync_all(d), IDEM_OK);
        for (uint32_t n = 0; n < 4; n++)
            finish(d, nth(n));
        d->medium.draws = 40;
        flash_off(&d->medium, v);
        for (int boot = 0; boot < 4; boot++) {
            restart(d);
            assert_int_equal(d->table.stats.lost, 0);
            replays(d, "a");
            answers(begin(d, "~"), IDEM_EXECUTE);
            answers(release(d, &d->claim), IDEM_OK);
            answers(sync_all(d), IDEM_OK);
        }
    }
}

static void a_volatile_claim_is_given_up_by_a_restart_only(void **state)
{
    device *d = device_on(state, &nor);

    d->config.volatile_claims = 1;
    configured(d);
    finish(d, "a");
    answers(begin(d, "b"), IDEM_EXECUTE);
    assert_int_equal(d->progs, 0);
    answers(begin(d, "b"), IDEM_BUSY);
    d->now += LEASE;
    answers(begin(d, "b"), IDEM_RECOVER);
    answers(complete(d, "b"), IDEM_OK);
    answers(begin(d, "c"), IDEM_EXECUTE);
    restart(d);
    replays(d, "a");
    replays(d, "b");
    assert_int_equal(d->reply.claim.attempt, 2);
    answers(begin(d, "c"), IDEM_EXECUTE);
}

static void volatile_claims_leave_no_trace_and_take_no_room(void **state)
{
    device *d = device_on(state, &nor_8);
    uint64_t token = 0;

    d->config.volatile_claims = 1;
    configured(d);
    for (uint32_t n = 0; n < 400; n++) {
        answers(begin(d, nth(n)), IDEM_EXECUTE);
        assert_true(d->claim.token > token);
        token = d->claim.token;
        if (n % 4 == 0) {
            answers(complete(d, nth(n)), IDEM_OK);
            answers(begin(d, nth(n)), IDEM_REPLAY);
            answers(forget(d, nth(n)), IDEM_OK);
        } else {
            answers(release(d, &d->claim), IDEM_OK);
        }
        if (n % 50 == 49) {
            restart(d);
            assert_int_equal(live(d), 0);
        }
    }
}

/* More of them than a sector has bytes, and nothing is written. */
static void tokens_of_volatile_claims_increase_over_restarts(void **state)
{
    device *d = device_on(state, &nor);
    idem_token last = 0;

    d->config.volatile_claims = 1;
    d->ask.lease_ms = d->ask.retention_ms = 1;
    for (int boot = 0; boot < 3; boot++) {
        restart(d);
        for (int n = 0; n < 700; n++) {
            answers(begin(d, "a"), IDEM_EXECUTE);
            assert_true(d->claim.token > last);
            last = d->claim.token;
            d->now += 2;
        }
    }
}

static void what_a_volatile_claim_replaced_stays_gone_or_comes_whole(
    void **state)
{
    device *d = device_on(state, &nor);

    d->config.volatile_claims = 1;
    d->config.capacity = 1;
    d->config.full = IDEM_EVICT_OLDEST;
    configured(d);
    finish(d, "a");
    answers(begin(d, "b"), IDEM_EXECUTE);
    restart(d);
    if (begin(d, "a") == IDEM_REPLAY)
        assert_true(is_outcome_of(d, "a"));
    else
        answers(complete(d, "a"), IDEM_OK);
    restart(d);
    replays(d, "a");
}

/* Two such claims take the slots of what is evicted, and end of themselves: no
   record tells that the slots are free, or in which order. */
static void what_volatile_claims_replaced_is_not_there_twice(void **state)
{
    static const char *const keys[] = { "a", "b" };

    for (int again = 0; again < 2; again++) {
        device *d = device_on(state, &nor);
        d->config.volatile_claims = 1;
        d->config.capacity = 2;
        d->config.full = IDEM_EVICT_OLDEST;
        configured(d);
        finish(d, "a");
        finish(d, "b");
        d->ask.retention_ms = d->ask.lease_ms = 1;
        answers(begin(d, "x"), IDEM_EXECUTE);
        answers(begin(d, "y"), IDEM_EXECUTE);
        d->ask.retention_ms = d->ask.lease_ms = 0;
        d->now += 2;
        rest(d);
        assert_int_equal(live(d), 0);
        answers(begin(d, keys[again]), IDEM_EXECUTE);
        answers(complete(d, "z"), IDEM_OK);
        restart(d);
        answers(begin(d, keys[again]), IDEM_REPLAY);
        assert_true(is_outcome_of(d, "z"));
        answers(forget(d, keys[again]), IDEM_OK);
        answers(find(d, keys[again]), IDEM_E_NOT_FOUND);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(s1_claims_of_the_boot_before_are_fenced),
        TEST(s1_a_takeover_holds_after_a_restart),
        TEST(a_claim_stays_current_after_its_lease_until_taken_over),
        TEST(tokens_increase_over_restarts_that_wrote_nothing),
        TEST(s3_another_payload_is_a_mismatch_in_every_state),
        TEST(s3_the_same_key_of_two_scopes_is_two_keys),
        TEST(s2_every_outcome_is_replayed_byte_for_byte),
        TEST(any_key_and_request_is_stored_as_it_is),
        TEST(s2_a_cut_in_complete_leaves_all_or_nothing),
        TEST(s2_a_cut_in_the_first_write_of_a_boot_loses_nothing),
        TEST(s4_a_cut_short_claim_is_recovered_at_every_restart),
        TEST(a_torn_claim_is_nothing),
        TEST(l2_a_key_that_resets_the_device_ends_exhausted),
        TEST(attempts_count_leases_and_restarts_alike),
        TEST(a_lease_without_end_ends_with_the_boot),
        TEST(s10_what_one_boot_answered_all_later_ones_answer),
        TEST(s10_what_was_delivered_stays_delivered),
        TEST(s10_what_was_forgotten_stays_forgotten),
        TEST(calls_that_only_look_do_not_write),
        TEST(a_duplicate_costs_no_read),
        TEST(what_was_given_back_is_new_after_a_restart),
        TEST(a_key_that_came_again_is_there_once),
        TEST(a_key_that_comes_again_in_another_slot_is_there_once),
        TEST(forget_on_a_live_claim_is_busy),
        TEST(what_is_owed_is_owed_in_order_until_delivered),
        TEST(the_state_is_that_of_the_last_outcome_that_had_one),
        TEST(state_and_outcome_are_one_step),
        TEST(capacity_is_a_promise_whatever_holes_are_left),
        TEST(a_known_key_that_was_cut_short_is_never_full),
        TEST(s7_a_response_over_the_reservation_leaves_the_claim),
        TEST(eviction_takes_the_oldest_completion_over_restarts),
        TEST(an_evicted_key_comes_back_as_new_or_too_old),
        TEST(only_claims_and_owed_outcomes_leave_nothing_to_evict),
        TEST(memory_reaches_to_the_opening_only_under_eviction),
        TEST(too_old_comes_before_full),
        TEST(s9_a_quota_holds_over_restarts),
        TEST(in_batch_mode_a_sync_makes_all_before_it_durable),
        TEST(in_each_mode_every_record_is_synced_at_once),
        TEST(sync_without_a_journal_is_done),
        TEST(a_torn_batch_never_gives_state_without_outcome),
        TEST(a_lost_batch_is_no_loss_at_any_later_boot),
        TEST(a_volatile_claim_is_given_up_by_a_restart_only),
        TEST(volatile_claims_leave_no_trace_and_take_no_room),
        TEST(tokens_of_volatile_claims_increase_over_restarts),
        TEST(what_a_volatile_claim_replaced_stays_gone_or_comes_whole),
        TEST(what_volatile_claims_replaced_is_not_there_twice),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
