/* SPDX-License-Identifier: 0BSD */
/*
 * Shows that looking at the keys (idem_next, idem_find) shows each live one,
 * once, as it is; what a key is told that is refused; and how much one step of
 * idle work does.
 */
#include "fixture.h"

/* Opens a table under a policy. */
static void open_full(fixture *f, uint8_t policy, uint32_t capacity)
{
    f->config.full = policy;
    f->config.capacity = capacity;
    fixture_open(f, 0);
}

/* The live keys of one letter, of whatever scope, in alphabetical order. */
static const char *keys(fixture *f, uint32_t now)
{
    static char found[27];
    idem_entry entry = { .id = f->id, .id_size = sizeof f->id };
    char seen[26] = { 0 };
    size_t count = 0;

    while (checked(f, idem_next(&f->table, &entry, now)) == IDEM_OK) {
        int letter = f->id[entry.scope_len] - 'a';
        assert_in_range(letter, 0, 25);
        assert_int_equal(seen[letter], 0);
        seen[letter] = 1;
    }
    for (int letter = 0; letter < 26; letter++)
        if (seen[letter])
            found[count++] = (char)('a' + letter);
    found[count] = 0;
    return found;
}

static void a_refused_key_is_told_when_the_first_will_be_over(void **state)
{
    fixture *f = (fixture *)*state;

    open_full(f, IDEM_REJECT, 2);
    assert_int_equal(ask(f, "a", 0), IDEM_EXECUTE);     // until 1100
    (void)finish(f, "panel", "b", 30);                  // until 1030
    assert_int_equal(ask(f, "c", 40), IDEM_E_FULL);
    assert_int_equal(f->reply.retry_after_ms, RETENTION + 30 - 40);
    assert_int_equal(ask(f, "c", 1029), IDEM_E_FULL);
    assert_int_equal(f->reply.retry_after_ms, 1);
    assert_int_equal(ask(f, "c", 1030), IDEM_EXECUTE);  // until 2130
    assert_int_equal(ask(f, "d", 1030), IDEM_E_FULL);
    assert_int_equal(f->reply.retry_after_ms, 1100 - 1030);
    assert_int_equal(ask(f, "d", 1100), IDEM_EXECUTE);
}

static void a_refused_key_is_told_nothing_if_nothing_will_be_over(void **state)
{
    fixture *f = (fixture *)*state;

    f->request.lease_ms = IDEM_LEASE_NONE;
    open_full(f, IDEM_REJECT, 1);
    assert_int_equal(ask(f, "a", 0), IDEM_EXECUTE);
    for (uint32_t day = 0; day < 10; day++) {
        assert_int_equal(ask(f, "b", day * 86400000), IDEM_E_FULL);
        assert_int_equal(f->reply.retry_after_ms, 0);
    }
}

/* Keys of every number, not only the first twelve. */
static int ask_number(fixture *f, uint32_t number, uint32_t now)
{
    char key[12];

    (void)snprintf(key, sizeof key, "%u", (unsigned)number);
    return ask(f, key, now);
}

static void l1_maintenance_frees_what_is_over_64_slots_at_a_time(void **state)
{
    static const uint32_t capacities[] = { 1, 63, 64, 65, 128, 200 };
    fixture *f = (fixture *)*state;

    for (size_t i = 0; i < COUNT(capacities); i++) {
        uint32_t capacity = capacities[i];
        open_full(f, IDEM_REJECT, capacity);
        for (uint32_t key = 0; key < capacity; key++)
            assert_int_equal(ask_number(f, key, 0), IDEM_EXECUTE);
        for (int round = 0; round < 3; round++) {
            uint32_t now = round < 1 ? 0 : LEASE + RETENTION;
            uint32_t steps = 1;
            while (maintain(f, now) == IDEM_MORE) {
                if (round == 1)
                    assert_int_equal(f->table.used, capacity - 64 * steps);
                steps++;
            }
            assert_int_equal(steps, (capacity + 63) / 64);
            assert_int_equal(f->table.used, round < 1 ? capacity : 0);
        }
        assert_int_equal(f->table.stats.expired, capacity);
    }
}

static void next_shows_each_live_key_once(void **state)
{
    fixture *f = (fixture *)*state;

    open_full(f, IDEM_REJECT, 6);
    assert_string_equal(keys(f, 0), "");
    for (uint32_t i = 0; i < 6; i++) {
        f->request.retention_ms = 1000 + i % 2;
        (void)finish(f, "panel", nth(i), 0);
    }
    assert_string_equal(keys(f, 999), "abcdef");
    assert_int_equal(forget(f, "panel", "c", 999), IDEM_OK);
    assert_string_equal(keys(f, 999), "abdef");
    assert_string_equal(keys(f, 1000), "bdf");
    assert_string_equal(keys(f, 1001), "");
    assert_int_equal(live(f, 1001), 0);
}

/* Both go on after the key that the entry holds, whoever put it there. */
static void next_and_pending_step_alike(void **state)
{
    fixture *f = (fixture *)*state;
    idem_entry entry = { .id = f->id, .id_size = sizeof f->id };

    open_full(f, IDEM_REJECT, 4);
    f->outcome.confirm = 1;
    for (uint32_t i = 0; i < 4; i++)
        (void)finish(f, "panel", nth(i), 0);
    assert_int_equal(idem_next(&f->table, &entry, 0), IDEM_OK);
    assert_int_equal(f->id[5], 'a');
    assert_int_equal(idem_pending(&f->table, &entry, 0), IDEM_OK);
    assert_int_equal(f->id[5], 'b');
    assert_int_equal(idem_next(&f->table, &entry, 0), IDEM_OK);
    assert_int_equal(f->id[5], 'c');
    assert_int_equal(find(f, "panel", "b", 0), IDEM_OK);
    assert_int_equal(idem_next(&f->table, &f->entry, 0), IDEM_OK);
    assert_int_equal(f->id[5], 'c');
    assert_int_equal(idem_pending(&f->table, &f->entry, 0), IDEM_OK);
    assert_int_equal(f->id[5], 'd');
    assert_int_equal(idem_next(&f->table, &f->entry, 0), IDEM_E_NOT_FOUND);
    assert_int_equal(idem_pending(&f->table, &f->entry, 0), IDEM_E_NOT_FOUND);
}

static void a_key_in_progress_is_shown_as_it_is(void **state)
{
    fixture *f = (fixture *)*state;
    idem_fingerprint_state hash;

    f->request.response_size = 7;
    assert_int_equal(ask(f, "key", 0), IDEM_EXECUTE);
    idem_fingerprint_init(&hash, &f->config);
    idem_fingerprint_update(&hash, "pour", 4);
    assert_int_equal(find(f, "panel", "key", 30), IDEM_OK);
    assert_true(f->entry.fingerprint == idem_fingerprint_final(&hash));
    assert_string_equal(f->id, "panelkey");
    assert_int_equal(f->entry.scope_len, 5);
    assert_int_equal(f->entry.key_len, 3);
    assert_int_equal(f->entry.status, IDEM_IN_PROGRESS);
    assert_int_equal(f->entry.code, 0);
    assert_int_equal(f->entry.response_len, 7);
    assert_int_equal(f->entry.age_ms, 0);
    assert_int_equal(f->entry.left_ms, LEASE - 30);
    assert_int_equal(f->entry.attempts, 1);
    assert_int_equal(f->entry.undelivered, 0);
    // What is not known yet is said to be nothing, whatever was there.
    f->entry.code = -1;
    f->entry.age_ms = 1;
    f->entry.attempts = 0;              // from the first key on
    assert_int_equal(idem_next(&f->table, &f->entry, 30), IDEM_OK);
    assert_int_equal(f->entry.code, 0);
    assert_int_equal(f->entry.age_ms, 0);
    // The claim is the holder's alone.
    assert_int_equal(f->entry.claim.token, 0);
    assert_int_equal(find(f, "panel", "key", LEASE), IDEM_OK);
    assert_int_equal(f->entry.left_ms, 0);
}

static void a_finished_key_is_shown_as_it_is(void **state)
{
    fixture *f = (fixture *)*state;
    idem_claim claim;

    f->outcome.code = -7;
    f->outcome.failed = 1;
    f->outcome.confirm = 1;
    assert_int_equal(ask(f, "key", 0), IDEM_EXECUTE);
    assert_int_equal(ask(f, "key", LEASE), IDEM_RECOVER);
    claim = f->claim;
    assert_int_equal(complete(f, &claim, "12345", LEASE + 5), IDEM_OK);
    assert_int_equal(find(f, "panel", "key", LEASE + 30), IDEM_OK);
    assert_int_equal(f->entry.status, IDEM_FAILED);
    assert_int_equal(f->entry.code, -7);
    assert_int_equal(f->entry.response_len, 5);
    assert_int_equal(f->entry.age_ms, 25);
    assert_int_equal(f->entry.left_ms, RETENTION - 25);
    assert_int_equal(f->entry.attempts, 2);
    assert_int_equal(f->entry.undelivered, 1);
    assert_true(f->entry.claim.token == claim.token);
    assert_int_equal(f->entry.claim.slot, claim.slot);
    assert_int_equal(f->entry.claim.attempt, 2);
}

static void an_id_that_does_not_fit_is_not_copied(void **state)
{
    fixture *f = (fixture *)*state;
    idem_request rq = request_of(f, "panel", "key", "");

    (void)finish(f, "panel", "key", 0);
    for (size_t size = 0; size < 10; size++) {
        char id[10] = ".........";
        idem_entry entry = { .id = id, .id_size = size };
        assert_int_equal(idem_find(&f->table, &entry, &rq, 0), IDEM_OK);
        assert_string_equal(id, size < 8 ? "........." : "panelkey.");
        assert_int_equal(entry.key_len, 3);
    }
}

static void looking_for_what_is_not_there_leaves_the_entry(void **state)
{
    fixture *f = (fixture *)*state;
    idem_request rq = request_of(f, "panel", "k", "");
    idem_entry entry, before;

    memset(&entry, 0xEE, sizeof entry);
    before = entry;
    assert_int_equal(idem_find(&f->table, &entry, &rq, 0), IDEM_E_NOT_FOUND);
    rq.key_len = 0;
    assert_int_equal(idem_find(&f->table, &entry, &rq, 0), IDEM_E_ARG);
    rq.key_len = KEY_MAX + 1 - 5;
    assert_int_equal(idem_find(&f->table, &entry, &rq, 0), IDEM_E_TOO_LARGE);
    assert_int_equal(idem_forget(&f->table, &rq, 0), IDEM_E_TOO_LARGE);
    assert_memory_equal(&entry, &before, sizeof entry);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_refused_key_is_told_when_the_first_will_be_over),
        TEST(a_refused_key_is_told_nothing_if_nothing_will_be_over),
        TEST(l1_maintenance_frees_what_is_over_64_slots_at_a_time),
        TEST(next_shows_each_live_key_once),
        TEST(next_and_pending_step_alike),
        TEST(a_key_in_progress_is_shown_as_it_is),
        TEST(a_finished_key_is_shown_as_it_is),
        TEST(an_id_that_does_not_fit_is_not_copied),
        TEST(looking_for_what_is_not_there_leaves_the_entry),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
