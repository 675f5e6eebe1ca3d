/* SPDX-License-Identifier: 0BSD */
/*
 * Shows what happens when a table is full, or a scope has used up its quota,
 * and how far back memory reaches (>>full of the manual); and that looking at
 * the keys (idem_next, idem_find) shows each live one, once, as it is.
 *
 * Promises: capacity whatever the order in which keys come and go (S7, L2),
 * S4 (no claim and no owed outcome makes room), S9 (quota).
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

/* ---------------------------------------------------------------------------
   IDEM_REJECT
   ------------------------------------------------------------------------ */
static void a_full_table_refuses_new_keys_and_answers_known_ones(void **state)
{
    fixture *f = (fixture *)*state;

    assert_int_equal(ask(f, "a", 0), IDEM_EXECUTE);
    (void)finish(f, "panel", "b", 0);
    assert_int_equal(ask(f, "c", 50), IDEM_EXECUTE);
    assert_int_equal(ask(f, "d", 50), IDEM_EXECUTE);
    assert_int_equal(ask(f, "e", 50), IDEM_E_FULL);
    assert_int_equal(f->claim.token, 0);
    assert_int_equal(ask(f, "a", 50), IDEM_BUSY);
    assert_int_equal(ask(f, "b", 50), IDEM_REPLAY);
    // Cut short and known: taken over, never refused for want of room.
    assert_int_equal(ask(f, "a", LEASE), IDEM_RECOVER);
    assert_string_equal(keys(f, LEASE), "abcd");
    assert_int_equal(f->table.stats.full, 1);
    assert_int_equal(f->table.stats.evicted, 0);
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

static void l2_an_abandoned_claim_does_not_keep_its_slot_for_ever(void **state)
{
    fixture *f = (fixture *)*state;

    for (uint32_t opened = 0; opened < 2; opened++) {
        open_full(f, IDEM_REJECT, CAPACITY);
        for (uint32_t i = 0; i < CAPACITY; i++)
            assert_int_equal(ask(f, nth(i), opened), IDEM_EXECUTE);
        assert_int_equal(ask(f, "e", opened + LEASE + RETENTION - 1),
                         IDEM_E_FULL);
        for (uint32_t i = 0; i < CAPACITY; i++)
            assert_int_equal(ask(f, nth(4 + i), opened + LEASE + RETENTION),
                             IDEM_EXECUTE);
        assert_int_equal(f->table.stats.expired, CAPACITY);
    }
}

/* ---------------------------------------------------------------------------
   capacity is a promise
   ------------------------------------------------------------------------ */

/* Keys of every number, not only the first twelve. */
static int ask_number(fixture *f, uint32_t number, uint32_t now)
{
    char key[12];

    (void)snprintf(key, sizeof key, "%u", (unsigned)number);
    return ask(f, key, now);
}

/* As many new keys as there should be room for, and not one more. */
static void assert_room(fixture *f, uint32_t room, uint32_t now)
{
    for (uint32_t i = 0; i < room; i++)
        assert_int_equal(ask_number(f, 1000 + i, now), IDEM_EXECUTE);
    assert_int_equal(ask_number(f, 1000 + room, now), IDEM_E_FULL);
}

/* Fills a table, key i finished if bit i of `finished` is set; gives claims. */
static void fill(fixture *f, unsigned finished, idem_claim *claims)
{
    fixture_open(f, 0);
    for (uint32_t i = 0; i < f->config.capacity; i++) {
        assert_int_equal(ask(f, nth(i), 0), IDEM_EXECUTE);
        claims[i] = f->claim;
        if (finished >> i & 1)
            assert_int_equal(complete(f, &claims[i], "", 0), IDEM_OK);
    }
}

/* Takes the first `gone` keys of `order` away, claims by release, finished ones
   by forget, and fills the holes. */
static void leave_holes(fixture *f, const uint32_t *order, unsigned finished,
                        uint32_t gone)
{
    idem_claim claims[6];

    fill(f, finished, claims);
    for (uint32_t i = 0; i < gone; i++) {
        uint32_t key = order[i];
        if (finished >> key & 1)
            assert_int_equal(forget(f, "panel", nth(key), 0), IDEM_OK);
        else
            assert_int_equal(release(f, &claims[key], 0), IDEM_OK);
    }
    assert_room(f, gone, 0);
}

/* The same by time: key order[i] is over after 1000 + i ms. */
static void expire_holes(fixture *f, const uint32_t *order, unsigned finished,
                         uint32_t gone)
{
    uint32_t capacity = f->config.capacity;

    fixture_open(f, 0);
    for (uint32_t key = 0; key < capacity; key++) {
        uint32_t i = 0;
        while (order[i] != key)
            i++;
        f->request.retention_ms = 1000 + i - (finished >> key & 1 ? 0 : LEASE);
        assert_int_equal(ask(f, nth(key), 0), IDEM_EXECUTE);
        if (finished >> key & 1)
            assert_int_equal(complete(f, &f->claim, "", 0), IDEM_OK);
    }
    f->request.retention_ms = 0;
    assert_room(f, gone, gone ? 999 + gone : 999);
}

/* Calls f with every order of the keys below `capacity`, by Heap's method
   without the recursion. */
static void for_each_order(fixture *f, uint32_t capacity,
                           void (*check)(fixture *, const uint32_t *))
{
    uint32_t order[6], turns[6] = { 0 };

    for (uint32_t i = 0; i < capacity; i++)
        order[i] = i;
    check(f, order);
    for (uint32_t i = 0; i < capacity;) {
        uint32_t other = i % 2 ? turns[i] : 0, key = order[i];
        if (turns[i] == i) {
            turns[i++] = 0;
            continue;
        }
        order[i] = order[other];
        order[other] = key;
        turns[i]++;
        i = 0;
        check(f, order);
    }
}

/* All ways to remove; all kinds of keys if there are few, else some. */
static void check_holes(fixture *f, const uint32_t *order)
{
    uint32_t capacity = f->config.capacity;
    unsigned all = (1u << capacity) - 1;

    for (unsigned finished = 0; finished <= all; finished++)
        for (uint32_t gone = 0; gone <= capacity; gone++) {
            if (capacity > 4 && finished != (0x15 & all) && finished != all)
                continue;
            leave_holes(f, order, finished, gone);
            expire_holes(f, order, finished, gone);
        }
}

static void s7_capacity_is_promised_whatever_holes_any_order_leaves(
    void **state)
{
    fixture *f = (fixture *)*state;

    for (uint32_t capacity = 1; capacity <= 6; capacity++) {
        f->config.capacity = capacity;
        for_each_order(f, capacity, check_holes);
    }
}

/* A step of anything. */
static void step_at_random(fixture *f, idem_claim *claims, uint32_t *seed,
                           uint32_t now)
{
    uint32_t key = dice(seed) % 9;
    int answer;

    f->request.lease_ms = 1 + dice(seed) % 200;
    f->request.retention_ms = 1 + dice(seed) % 500;
    switch (dice(seed) % 4) {
    case 0:
        (void)complete(f, &claims[key], "", now);
        return;
    case 1:
        (void)(dice(seed) % 2 ? release(f, &claims[key], now)
                              : renew(f, &claims[key], 0, now));
        return;
    case 2:
        (void)(dice(seed) % 2 ? forget(f, "panel", nth(key), now)
                              : maintain(f, now));
        return;
    default:
        answer = ask(f, nth(key), now);
        if (answer == IDEM_EXECUTE || answer == IDEM_RECOVER)
            claims[key] = f->claim;
        if (answer == IDEM_E_FULL)
            assert_int_equal(live(f, now), f->config.capacity);
    }
}

static void s7_only_a_table_of_live_keys_is_ever_full(void **state)
{
    fixture *f = (fixture *)*state;
    uint32_t seed = 11;

    for (uint32_t capacity = 1; capacity <= 6; capacity++) {
        idem_claim claims[9] = { { 0 } };
        open_full(f, IDEM_REJECT, capacity);
        for (uint32_t now = 0; now < 60000; now += dice(&seed) % 20)
            step_at_random(f, claims, &seed, now);
        assert_true(f->table.stats.full > 10);
        assert_true(f->table.stats.expired > 10);
    }
}

/* ---------------------------------------------------------------------------
   IDEM_EVICT_OLDEST
   ------------------------------------------------------------------------ */

/* Fills a table with a, b, c, d; completes the keys of `order`, each after the
   one before by `apart` ms; the last at 100. */
static void fill_in_order(fixture *f, const char *order, uint32_t apart)
{
    uint32_t now = 100 - apart * (uint32_t)(strlen(order) - 1);
    idem_claim claims[CAPACITY];

    open_full(f, IDEM_EVICT_OLDEST, CAPACITY);
    for (uint32_t i = 0; i < CAPACITY; i++) {
        assert_int_equal(ask(f, nth(i), now), IDEM_EXECUTE);
        claims[i] = f->claim;
    }
    for (; *order; order++, now += apart)
        assert_int_equal(complete(f, &claims[*order - 'a'], "", now), IDEM_OK);
}

static void the_oldest_completion_makes_room_not_the_oldest_claim(void **state)
{
    fixture *f = (fixture *)*state;

    // With 0 ms between the completions the order is that of the calls.
    for (uint32_t apart = 0; apart < 3; apart++) {
        fill_in_order(f, "cadb", apart);
        assert_int_equal(ask(f, "e", 100), IDEM_EXECUTE);
        assert_string_equal(keys(f, 100), "abde");
        assert_int_equal(ask(f, "f", 100), IDEM_EXECUTE);
        assert_string_equal(keys(f, 100), "bdef");
        assert_int_equal(ask(f, "g", 100), IDEM_EXECUTE);
        assert_string_equal(keys(f, 100), "befg");
        assert_int_equal(ask(f, "h", 100), IDEM_EXECUTE);
        assert_string_equal(keys(f, 100), "efgh");
        assert_int_equal(f->table.stats.evicted, 4);
        assert_int_equal(f->table.stats.expired, 0);
        // Amnesia by choice.
        assert_int_equal(complete(f, &f->claim, "", 100), IDEM_OK);
        assert_int_equal(ask(f, "c", 100), IDEM_EXECUTE);
    }
}

static void what_is_over_makes_room_before_what_is_not(void **state)
{
    fixture *f = (fixture *)*state;

    open_full(f, IDEM_EVICT_OLDEST, 3);
    (void)finish(f, "panel", "a", 0);
    f->request.retention_ms = 10;
    (void)finish(f, "panel", "b", 1);
    assert_int_equal(ask(f, "c", 2), IDEM_EXECUTE);
    f->request.retention_ms = 0;
    assert_int_equal(ask(f, "d", 11), IDEM_EXECUTE);
    assert_string_equal(keys(f, 11), "acd");
    assert_int_equal(ask(f, "e", 2 + LEASE + 10), IDEM_EXECUTE);
    assert_string_equal(keys(f, 2 + LEASE + 10), "ade");
    assert_int_equal(f->table.stats.evicted, 0);
    assert_int_equal(f->table.stats.expired, 2);
}

static void s4_no_claim_is_ever_evicted_live_or_cut_short(void **state)
{
    fixture *f = (fixture *)*state;

    fill_in_order(f, "c", 0);
    assert_int_equal(ask(f, "e", 100), IDEM_EXECUTE);
    assert_int_equal(ask(f, "f", 100), IDEM_E_FULL);
    assert_int_equal(ask(f, "f", 100 + LEASE), IDEM_E_FULL);
    assert_string_equal(keys(f, 100 + LEASE), "abde");
    assert_int_equal(ask(f, "a", 100 + LEASE), IDEM_RECOVER);
}

static void an_outcome_that_is_owed_is_not_evicted_until_delivered(
    void **state)
{
    fixture *f = (fixture *)*state;
    idem_claim owed;

    f->outcome.confirm = 1;
    fill_in_order(f, "ca", 1);
    assert_int_equal(ask(f, "e", 100), IDEM_E_FULL);
    assert_int_equal(ask(f, "a", 100), IDEM_REPLAY);
    owed = f->reply.claim;
    assert_int_equal(checked(f, idem_delivered(&f->table, &owed)), IDEM_OK);
    assert_int_equal(ask(f, "e", 100), IDEM_EXECUTE);   // past "c"
    assert_string_equal(keys(f, 100), "bcde");
    assert_int_equal(ask(f, "f", 100), IDEM_E_FULL);
    // At the end of its retention it makes room like any other.
    assert_int_equal(ask(f, "f", 99 + RETENTION), IDEM_EXECUTE);
    assert_int_equal(f->table.stats.undelivered, 1);
}

/* ---------------------------------------------------------------------------
   quota
   ------------------------------------------------------------------------ */
static void open_with_quota(fixture *f, uint8_t policy, uint32_t quota)
{
    f->config.quota = quota;
    open_full(f, policy, 6);
}

static void s9_a_scope_over_its_quota_is_refused_and_no_other(void **state)
{
    fixture *f = (fixture *)*state;
    idem_claim claim;

    open_with_quota(f, IDEM_REJECT, 2);
    (void)finish(f, "A", "a", 0);
    assert_int_equal(begin(f, "A", "b", "x", 50), IDEM_EXECUTE);
    claim = f->claim;
    assert_int_equal(begin(f, "A", "c", "x", 50), IDEM_E_FULL);
    assert_int_equal(f->reply.retry_after_ms, 0);       // not another's time
    assert_int_equal(begin(f, "A", "a", "pour", 50), IDEM_REPLAY);
    assert_int_equal(begin(f, "B", "c", "x", 50), IDEM_EXECUTE);
    assert_int_equal(begin(f, "", "d", "x", 50), IDEM_EXECUTE);
    assert_int_equal(begin(f, "AA", "e", "x", 50), IDEM_EXECUTE);
    assert_string_equal(keys(f, 50), "abcde");
    // What is given back, or over, does not count.
    assert_int_equal(release(f, &claim, 50), IDEM_OK);
    assert_int_equal(begin(f, "A", "f", "x", 50), IDEM_EXECUTE);
    assert_int_equal(begin(f, "A", "g", "x", 50), IDEM_E_FULL);
    assert_int_equal(begin(f, "A", "g", "x", RETENTION), IDEM_EXECUTE);
    assert_int_equal(begin(f, "A", "h", "x", RETENTION), IDEM_E_FULL);
}

static void s9_a_scope_over_its_quota_costs_its_own_oldest(void **state)
{
    fixture *f = (fixture *)*state;

    open_with_quota(f, IDEM_EVICT_OLDEST, 2);
    (void)finish(f, "B", "a", 0);
    (void)finish(f, "A", "b", 1);
    (void)finish(f, "A", "c", 2);
    assert_int_equal(begin(f, "A", "d", "x", 3), IDEM_EXECUTE);
    assert_string_equal(keys(f, 3), "acd");
    assert_int_equal(begin(f, "A", "e", "x", 3), IDEM_EXECUTE);
    assert_string_equal(keys(f, 3), "ade");
    // Two claims are all it has: there is nothing of its own to give up.
    assert_int_equal(begin(f, "A", "f", "x", 3), IDEM_E_FULL);
    assert_string_equal(keys(f, 3), "ade");
    assert_int_equal(f->table.stats.evicted, 2);
}

static void s9_a_flood_from_one_scope_costs_others_nothing(void **state)
{
    fixture *f = (fixture *)*state;

    open_with_quota(f, IDEM_EVICT_OLDEST, 3);
    for (uint32_t i = 0; i < 3; i++)
        (void)finish(f, "good", nth(i), 0);
    for (uint32_t i = 0; i < 500; i++) {
        char key[8];
        (void)snprintf(key, sizeof key, "%u", (unsigned)i);
        (void)finish(f, "flood", key, 1);
    }
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(begin(f, "good", nth(i), "pour", 2), IDEM_REPLAY);
}

/* A key that is over but still in its slot is neither counted nor given up in
   place of a live one: found here as one key too many. */
static void s9_a_quota_holds_also_while_expired_keys_lie_about(void **state)
{
    fixture *f = (fixture *)*state;

    open_with_quota(f, IDEM_EVICT_OLDEST, 2);
    f->request.retention_ms = 10;
    (void)finish(f, "A", "a", 0);
    f->request.retention_ms = 0;
    (void)finish(f, "A", "b", 20);
    (void)finish(f, "A", "c", 20);
    assert_int_equal(begin(f, "A", "d", "x", 21), IDEM_EXECUTE);
    assert_string_equal(keys(f, 21), "cd");
    assert_int_equal(f->table.stats.evicted, 1);
}

static void s9_no_scope_ever_has_more_live_keys_than_its_quota(void **state)
{
    static const char *const scopes[] = { "", "A", "B" };
    fixture *f = (fixture *)*state;
    uint32_t seed = 13;

    open_with_quota(f, IDEM_EVICT_OLDEST, 2);
    for (uint32_t now = 0; now < 20000; now += dice(&seed) % 40) {
        const char *scope = scopes[dice(&seed) % COUNT(scopes)];
        idem_entry entry = { .id = f->id, .id_size = sizeof f->id };
        int used['B' + 1] = { 0 };
        f->request.retention_ms = 1 + dice(&seed) % 300;
        if (begin(f, scope, nth(dice(&seed) % 12), "x", now) == IDEM_EXECUTE &&
            dice(&seed) % 4)
            assert_int_equal(complete(f, &f->claim, "", now), IDEM_OK);
        while (idem_next(&f->table, &entry, now) == IDEM_OK)
            assert_in_range(++used[entry.scope_len ? f->id[0] : 0], 1, 2);
    }
    assert_true(f->table.stats.evicted > 10);
}

/* ---------------------------------------------------------------------------
   how far back memory reaches
   ------------------------------------------------------------------------ */
static uint32_t horizon(fixture *f, uint32_t now)
{
    uint32_t ms = 0;

    assert_int_equal(checked(f, idem_horizon(&f->table, &ms, now)), IDEM_OK);
    return ms;
}

/* A begin with an age, of a key that is not known and is not kept. */
static int ask_aged(fixture *f, const char *scope, uint32_t age, uint32_t now)
{
    int answer;

    f->request.age_ms = age;
    answer = begin(f, scope, "aged", "pour", now);
    f->request.age_ms = 0;
    if (answer == IDEM_EXECUTE)
        assert_int_equal(release(f, &f->claim, now), IDEM_OK);
    return answer;
}

/* Memory reaches back so far, and idem_horizon says so. */
static void assert_reaches(fixture *f, uint32_t ms, uint32_t now)
{
    assert_int_equal(horizon(f, now), ms);
    if (ms > 1)
        assert_int_equal(ask_aged(f, "A", ms - 1, now), IDEM_EXECUTE);
    if (ms)
        assert_int_equal(ask_aged(f, "A", ms, now), IDEM_TOO_OLD);
}

static void memory_reaches_back_to_the_opening_and_at_most_one_retention(
    void **state)
{
    fixture *f = (fixture *)*state;

    fixture_open(f, 5000);
    assert_int_equal(horizon(f, 5000), 0);
    assert_int_equal(ask_aged(f, "A", 1, 5000), IDEM_TOO_OLD);
    assert_int_equal(ask_aged(f, "A", 0, 5000), IDEM_EXECUTE);
    assert_reaches(f, 300, 5300);
    // Time that passed while the power was off is before it, too.
    assert_int_equal(elapse(f, 100), IDEM_OK);
    assert_reaches(f, 400, 5300);
    assert_reaches(f, RETENTION - 1, 5000 + RETENTION - 101);
    assert_reaches(f, RETENTION, 5000 + RETENTION - 100);
    assert_reaches(f, RETENTION, 86400000);
    f->config.retention_ms = 0;
    fixture_open(f, 0);
    assert_reaches(f, 86400000, 90000000);
}

static void memory_reaches_back_to_the_newest_completion_evicted(void **state)
{
    fixture *f = (fixture *)*state;
    uint32_t now = 86400000;

    open_full(f, IDEM_EVICT_OLDEST, 3);
    assert_reaches(f, RETENTION, now);
    (void)finish(f, "panel", "a", now + 10);
    (void)finish(f, "panel", "b", now + 30);
    (void)finish(f, "panel", "c", now + 50);
    assert_int_equal(horizon(f, now + 100), RETENTION);
    (void)finish(f, "panel", "d", now + 110);           // evicts "a"
    assert_int_equal(horizon(f, now + 110), 100);
    assert_int_equal(ask_aged(f, "panel", 100, now + 110), IDEM_TOO_OLD);
    // One reach for all scopes.
    assert_int_equal(ask_aged(f, "other", 100, now + 110), IDEM_TOO_OLD);
    assert_int_equal(ask_aged(f, "other", 99, now + 110), IDEM_EXECUTE);
    assert_int_equal(f->table.stats.evicted, 2);        // "b", too
    assert_int_equal(horizon(f, now + 110), 80);
    assert_reaches(f, RETENTION - 1, now + 29 + RETENTION);
    assert_reaches(f, RETENTION, now + 50 + RETENTION);
}

static void too_old_is_what_is_older_than_its_outcome_would_be_kept(
    void **state)
{
    fixture *f = (fixture *)*state;
    uint32_t now = 86400000;

    assert_int_equal(ask_aged(f, "A", RETENTION - 1, now), IDEM_EXECUTE);
    assert_int_equal(ask_aged(f, "A", RETENTION, now), IDEM_TOO_OLD);
    assert_int_equal(ask_aged(f, "A", RETENTION + 1, now), IDEM_TOO_OLD);
    assert_int_equal(ask_aged(f, "A", UINT32_MAX, now), IDEM_TOO_OLD);
    assert_int_equal(ask_aged(f, "A", 0, now), IDEM_EXECUTE);
    f->request.retention_ms = 2000;
    assert_int_equal(ask_aged(f, "A", 1999, now), IDEM_EXECUTE);
    assert_int_equal(ask_aged(f, "A", 2000, now), IDEM_TOO_OLD);
}

/* The newest eviction counts, and an older one does not take it back. */
static void too_old_goes_by_the_newest_completion_evicted(void **state)
{
    fixture *f = (fixture *)*state;
    uint32_t now = 86400000;
    idem_claim claim;

    f->config.quota = 3;
    open_full(f, IDEM_EVICT_OLDEST, 3);
    f->outcome.confirm = 1;
    claim = finish(f, "A", "old", now);
    f->outcome.confirm = 0;
    (void)finish(f, "A", "new", now + 100);
    (void)finish(f, "A", "a", now + 200);
    (void)finish(f, "A", "b", now + 200);               // evicts "new"
    assert_int_equal(idem_delivered(&f->table, &claim), IDEM_OK);
    (void)finish(f, "A", "c", now + 200);               // evicts "old"
    assert_int_equal(f->table.stats.evicted, 2);
    assert_int_equal(horizon(f, now + 200), 100);
    assert_int_equal(ask_aged(f, "A", 100, now + 200), IDEM_TOO_OLD);
    assert_int_equal(ask_aged(f, "A", 99, now + 200), IDEM_EXECUTE);
    assert_int_equal(f->table.stats.evicted, 3);        // "a", of this moment
    assert_int_equal(horizon(f, now + 200), 0);
}

/* A mark of the past must not come round as one of today. */
static void how_far_memory_reaches_is_right_for_years(void **state)
{
    fixture *f = (fixture *)*state;

    f->config.retention_ms = IDEM_RETENTION_MAX;
    open_full(f, IDEM_EVICT_OLDEST, 1);
    (void)finish(f, "A", "a", 0);
    (void)finish(f, "A", "b", 0);                       // evicts "a"
    for (uint32_t day = 1; day < 1000; day++) {
        assert_int_equal(elapse(f, 86400000), IDEM_OK);
        if (day < 31) {
            assert_int_equal(horizon(f, 0), day * 86400000);
            continue;
        }
        assert_in_range(horizon(f, 0), IDEM_RETENTION_MAX,
                        IDEM_RETENTION_MAX + IDEM_RETENTION_MAX / 1000);
        assert_int_equal(ask_aged(f, "A", IDEM_RETENTION_MAX - 1, 0),
                         IDEM_EXECUTE);
    }
}

static void too_old_is_said_of_unknown_keys_only(void **state)
{
    fixture *f = (fixture *)*state;
    uint32_t now = 86400000;

    assert_int_equal(ask(f, "a", now), IDEM_EXECUTE);
    (void)finish(f, "panel", "b", now);
    f->request.age_ms = UINT32_MAX;
    assert_int_equal(ask(f, "a", now), IDEM_BUSY);
    assert_int_equal(ask(f, "b", now), IDEM_REPLAY);
    assert_int_equal(begin(f, "panel", "b", "?", now), IDEM_MISMATCH);
    assert_int_equal(ask(f, "a", now + LEASE), IDEM_RECOVER);
}

static void too_old_is_said_before_full(void **state)
{
    fixture *f = (fixture *)*state;
    uint32_t now = 86400000;

    for (uint32_t i = 0; i < CAPACITY; i++)
        assert_int_equal(ask(f, nth(i), now), IDEM_EXECUTE);
    assert_int_equal(ask_aged(f, "panel", RETENTION - 1, now), IDEM_E_FULL);
    assert_int_equal(ask_aged(f, "panel", RETENTION, now), IDEM_TOO_OLD);
    f->config.quota = 1;
    fixture_open(f, now);
    assert_int_equal(ask(f, "a", now), IDEM_EXECUTE);
    assert_int_equal(ask_aged(f, "panel", 1, now), IDEM_TOO_OLD);
}

/* S4 over amnesia: with its age told, no key that was ever completed is
   executed again, whatever was evicted or expired in between. */
static void s4_with_its_age_told_nothing_is_executed_twice(void **state)
{
    fixture *f = (fixture *)*state;
    struct { uint32_t sent, done; } commands[12] = { { 0, 0 } };
    uint32_t seed = 17, again = 0;

    open_full(f, IDEM_EVICT_OLDEST, 3);
    assert_int_equal(elapse(f, 86400000), IDEM_OK);
    for (uint32_t now = 100; now < 100000; now += dice(&seed) % 60) {
        uint32_t i = dice(&seed) % 12;
        int answer;
        // What was sent two retentions ago is given up; a new one is sent.
        if (now - commands[i].sent > 2 * RETENTION || !commands[i].sent) {
            commands[i].sent = now;
            commands[i].done = 0;
            // Its key may be known still: it is the same command then.
            (void)forget(f, "panel", nth(i), now);
        }
        f->request.age_ms = now - commands[i].sent;
        answer = ask(f, nth(i), now);
        again += answer == IDEM_TOO_OLD && commands[i].done;
        if (answer != IDEM_EXECUTE)
            continue;
        // In the millisecond in which it was first sent it has no age to tell.
        assert_false(commands[i].done && f->request.age_ms);
        assert_int_equal(complete(f, &f->claim, "", now), IDEM_OK);
        commands[i].done = 1;
    }
    assert_true(again > 100);
    assert_true(f->table.stats.evicted > 100);
}

/* ---------------------------------------------------------------------------
   idle work, and looking
   ------------------------------------------------------------------------ */
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
    f->entry.cursor = 0;
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
    assert_int_equal(f->entry.cursor, 0);
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
        TEST(a_full_table_refuses_new_keys_and_answers_known_ones),
        TEST(a_refused_key_is_told_when_the_first_will_be_over),
        TEST(a_refused_key_is_told_nothing_if_nothing_will_be_over),
        TEST(l2_an_abandoned_claim_does_not_keep_its_slot_for_ever),
        TEST(s7_capacity_is_promised_whatever_holes_any_order_leaves),
        TEST(s7_only_a_table_of_live_keys_is_ever_full),
        TEST(the_oldest_completion_makes_room_not_the_oldest_claim),
        TEST(what_is_over_makes_room_before_what_is_not),
        TEST(s4_no_claim_is_ever_evicted_live_or_cut_short),
        TEST(an_outcome_that_is_owed_is_not_evicted_until_delivered),
        TEST(s9_a_scope_over_its_quota_is_refused_and_no_other),
        TEST(s9_a_scope_over_its_quota_costs_its_own_oldest),
        TEST(s9_a_flood_from_one_scope_costs_others_nothing),
        TEST(s9_a_quota_holds_also_while_expired_keys_lie_about),
        TEST(s9_no_scope_ever_has_more_live_keys_than_its_quota),
        TEST(memory_reaches_back_to_the_opening_and_at_most_one_retention),
        TEST(memory_reaches_back_to_the_newest_completion_evicted),
        TEST(too_old_is_what_is_older_than_its_outcome_would_be_kept),
        TEST(too_old_goes_by_the_newest_completion_evicted),
        TEST(how_far_memory_reaches_is_right_for_years),
        TEST(too_old_is_said_of_unknown_keys_only),
        TEST(too_old_is_said_before_full),
        TEST(s4_with_its_age_told_nothing_is_executed_twice),
        TEST(l1_maintenance_frees_what_is_over_64_slots_at_a_time),
        TEST(next_shows_each_live_key_once),
        TEST(a_key_in_progress_is_shown_as_it_is),
        TEST(a_finished_key_is_shown_as_it_is),
        TEST(an_id_that_does_not_fit_is_not_copied),
        TEST(looking_for_what_is_not_there_leaves_the_entry),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
