/* SPDX-License-Identifier: 0BSD */
/*
 * Shows that looking at the keys (idem_next, idem_find) shows each live one,
 * once, as it is; what a key is told that is refused; and how much one step of
 * idle work does.  That each call's looks are right shows the model.
 */
#include "fixture.h"

/* Opens a table of so many keys. */
static void open_of(fixture *f, uint32_t capacity)
{
    f->config.capacity = capacity;
    fixture_open(f, 0);
}

/* Keys of every number. */
static int ask_number(fixture *f, uint32_t number, uint32_t now)
{
    char key[12];

    (void)snprintf(key, sizeof key, "%u", (unsigned)number);
    return ask(f, key, now);
}

TEST(a_refused_key_is_told_when_the_first_will_be_over)
{
    open_of(f, 2);
    is(ask(f, "a", 0), IDEM_EXECUTE);                   // until 1100
    (void)finish(f, "panel", "b", 30);                  // until 1030
    is(ask(f, "c", 40), IDEM_E_FULL);
    is(f->reply.retry_after_ms, RETENTION + 30 - 40);
    is(ask(f, "c", 1029), IDEM_E_FULL);
    is(f->reply.retry_after_ms, 1);
    is(ask(f, "c", 1030), IDEM_EXECUTE);                // until 2130
    is(ask(f, "d", 1030), IDEM_E_FULL);
    is(f->reply.retry_after_ms, 1100 - 1030);
    is(ask(f, "d", 1100), IDEM_EXECUTE);
}

TEST(a_refused_key_is_told_nothing_if_nothing_will_be_over)
{
    f->request.lease_ms = IDEM_LEASE_NONE;
    open_of(f, 1);
    is(ask(f, "a", 0), IDEM_EXECUTE);
    for (uint32_t day = 0; day < 10; day++) {
        is(ask(f, "b", day * 86400000), IDEM_E_FULL);
        is(f->reply.retry_after_ms, 0);
    }
}

TEST(l1_maintenance_frees_what_is_over_64_slots_at_a_time)
{
    static const uint32_t capacities[] = { 1, 63, 64, 65, 128, 200 };

    for (size_t i = 0; i < COUNT(capacities); i++) {
        uint32_t capacity = capacities[i];
        open_of(f, capacity);
        for (uint32_t key = 0; key < capacity; key++)
            is(ask_number(f, key, 0), IDEM_EXECUTE);
        for (int round = 0; round < 3; round++) {
            uint32_t now = round < 1 ? 0 : LEASE + RETENTION;
            uint32_t steps = 1;
            while (maintain(f, now) == IDEM_MORE) {
                if (round == 1)
                    is(f->table.used, capacity - 64 * steps);
                steps++;
            }
            is(steps, (capacity + 63) / 64);
            is(f->table.used, round < 1 ? capacity : 0);
        }
        is(f->table.stats.expired, capacity);
    }
}

/* Both go on after the key that the entry holds, whoever put it there. */
TEST(next_and_pending_step_alike)
{
    idem_entry entry = { .id = f->id, .id_size = sizeof f->id };

    f->outcome.confirm = 1;
    for (uint32_t i = 0; i < 4; i++)
        (void)finish(f, "panel", nth(i), 0);
    is(idem_next(&f->table, &entry, 0), IDEM_OK);
    is(f->id[5], 'a');
    is(idem_pending(&f->table, &entry, 0), IDEM_OK);
    is(f->id[5], 'b');
    is(idem_next(&f->table, &entry, 0), IDEM_OK);
    is(f->id[5], 'c');
    is(find(f, "panel", "b", 0), IDEM_OK);
    is(idem_next(&f->table, &f->entry, 0), IDEM_OK);
    is(f->id[5], 'c');
    is(idem_pending(&f->table, &f->entry, 0), IDEM_OK);
    is(f->id[5], 'd');
    is(idem_next(&f->table, &f->entry, 0), IDEM_E_NOT_FOUND);
    is(idem_pending(&f->table, &f->entry, 0), IDEM_E_NOT_FOUND);
}

/* What is not known yet is said to be nothing, whatever was there; the claim is
   the holder's alone. */
TEST(a_key_in_progress_shows_no_outcome)
{
    for (int again = 0; again < 2; again++) {
        f->request.response_size = 7;
        (void)ask(f, "key", 0);
        memset(&f->entry, again ? 0xEE : 0, sizeof f->entry);
        f->entry.id = f->id;
        f->entry.id_size = sizeof f->id;
        f->entry.attempts = 0;          // from the first key on
        is(idem_next(&f->table, &f->entry, 30), IDEM_OK);
        assert_string_equal(f->id, "panelkey");
        is(f->entry.scope_len, 5);
        is(f->entry.key_len, 3);
        is(f->entry.status, IDEM_IN_PROGRESS);
        is(f->entry.response_len, 7);
        is(f->entry.left_ms, LEASE - 30);
        is(f->entry.attempts, 1);
        is(f->entry.code, 0);
        is(f->entry.age_ms, 0);
        is(f->entry.undelivered, 0);
        is(f->entry.claim.token, 0);
    }
}

TEST(a_finished_key_shows_its_claim)
{
    idem_claim claim;

    is(ask(f, "key", 0), IDEM_EXECUTE);
    is(ask(f, "key", LEASE), IDEM_RECOVER);
    claim = f->claim;
    is(complete(f, &claim, "12345", LEASE), IDEM_OK);
    is(find(f, "panel", "key", LEASE), IDEM_OK);
    assert_true(f->entry.claim.token == claim.token);
    is(f->entry.claim.slot, claim.slot);
    is(f->entry.claim.attempt, 2);
}

TEST(an_id_that_does_not_fit_is_not_copied)
{
    idem_request rq = request_of(f, "panel", "key", "");

    (void)finish(f, "panel", "key", 0);
    for (size_t size = 0; size < 10; size++) {
        char id[10] = ".........";
        idem_entry entry = { .id = id, .id_size = size };
        is(idem_find(&f->table, &entry, &rq, 0), IDEM_OK);
        assert_string_equal(id, size < 8 ? "........." : "panelkey.");
        is(entry.key_len, 3);
    }
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
