/* SPDX-License-Identifier: 0BSD */
/*
 * What random workloads and power cuts hardly ever come to: each test brings a
 * table, or one function of it, to one edge of a condition.  So these know the
 * inside of the journal (>>records, >>journal, >>opening), unlike all others.
 */
#define IDEM_IMPLEMENTATION
#include "idem.h"

#include "fixture.h"
#include "flash.h"
#include "journal.h"

#define EDGE_TEST(name)                                                        \
    cmocka_unit_test_setup_teardown(name, device_setup, device_teardown)

static const geometry usual =
    { "usual",    FLASH_NOR,     4, 512, 10, 0xFF, 0, 0, 0 };
static const geometry in_place =
    { "in place", FLASH_INPLACE, 1, 512, 10, 0x00, 0, 0, 0 };

static const geometry tight =
    { "tight", FLASH_NOR, 4, 512, 0, 0xFF, 0, 0, 0 };

static const geometry even =
    { "even", FLASH_NOR, 64, 1024, 0, 0xFF, 0, 0, 0 };

static void all_fail(device *d, int call)
{
    flash_fail(&d->medium, call, 0, FLASH_UNDONE, 1);
}

static void none_fails(device *d, int call)
{
    flash_fail(&d->medium, call, 0, 0, 0);
}

/* The slot that has a key. */
static unsigned slot_of(device *d, const char *scope, const char *key)
{
    idem_request rq = request_of(&d->f, scope, key, "");
    idem_table *t = &d->f.table;
    unsigned slot = 0;

    while (!idemi_slot_at(t, slot)->state || !idemi_slot_has_id(t, slot, &rq))
        assert_true(++slot < t->capacity);
    return slot;
}

/* ---------------------------------------------------------------------------
   keys whose hashes are equal, which take years to find
   ------------------------------------------------------------------------ */

static void s3_equal_hashes_do_not_make_equal_keys(void **state)
{
    static const struct { const char *scope, *key; int equal; } others[] = {
        { "ab", "cd", 1 }, { "ab", "cde", 0 }, { "abc", "d", 0 },
        { "a", "bcd", 0 }, { "ax", "cd", 0 },  { "ab", "cx", 0 },
        { "abc", "cd", 0 },
    };
    device *d = (device *)*state;
    idem_table *t = &d->f.table;
    unsigned slot;

    for (int in_ram = 0; in_ram < 2; in_ram++) {
        d->f.config.in_ram = (uint8_t)in_ram;
        device_start(d, &usual);
        finish(&d->f, "ab", "cd", d->now);
        slot = slot_of(d, "ab", "cd");
        for (size_t i = 0; i < COUNT(others); i++) {
            idem_request rq = request_of(&d->f, others[i].scope, others[i].key,
                                         "");
            assert_int_equal(idemi_slot_has_id(t, slot, &rq), others[i].equal);
        }
    }
}

/* The hash that the index has of a key in the scope "twin". */
static idem_number hash_of(const device *d, const char *key)
{
    return idemi_index_hash(
        idemi_hash_id(&d->f.config, "twin", 4, key, strlen(key)));
}

static int compare_words(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;

    return (left > right) - (left < right);
}

enum { CANDIDATES = 1 << 18 };

/* Finds two keys whose hashes are equal: of so many, some are. */
static void find_twins(const device *d, char a[8], char b[8])
{
    uint64_t *words = (uint64_t *)malloc(CANDIDATES * sizeof *words);
    unsigned i;

    assert_non_null(words);
    for (i = 0; i < CANDIDATES; i++) {
        snprintf(a, 8, "%05x", i);
        words[i] = (uint64_t)hash_of(d, a) << 32 | i;
    }
    qsort(words, CANDIDATES, sizeof *words, compare_words);
    for (i = 1; words[i] >> 32 != words[i - 1] >> 32; i++)
        assert_true(i + 1 < CANDIDATES);
    snprintf(a, 8, "%05x", (unsigned)(words[i] & UINT32_MAX));
    snprintf(b, 8, "%05x", (unsigned)(words[i - 1] & UINT32_MAX));
    free(words);
}

static void s3_two_keys_of_one_hash_are_two_keys(void **state)
{
    device *d = (device *)*state;
    fixture *f = &d->f;
    char a[8], b[8];

    find_twins(d, a, b);
    for (int batch = 0; batch < 2; batch++) {
        f->config.durability = batch ? IDEM_BATCH : IDEM_EACH;
        device_start(d, &usual);
        assert_int_equal(begin(f, "twin", a, "pour", d->now), IDEM_EXECUTE);
        assert_int_equal(complete(f, &f->claim, "first", d->now), IDEM_OK);
        assert_int_equal(begin(f, "twin", b, "pour", d->now), IDEM_EXECUTE);
        assert_int_equal(complete(f, &f->claim, "second", d->now), IDEM_OK);
        assert_int_equal(hash_of(d, a), hash_of(d, b));
        for (int boot = 0; boot < 3; boot++) {
            assert_int_equal(begin(f, "twin", a, "pour", d->now), IDEM_REPLAY);
            assert_string_equal(f->buffer, "first");
            assert_int_equal(begin(f, "twin", b, "pour", d->now), IDEM_REPLAY);
            assert_string_equal(f->buffer, "second");
            assert_int_equal(device_open(d), IDEM_OK);
        }
        assert_int_equal(forget(f, "twin", a, d->now), IDEM_OK);
        assert_int_equal(find(f, "twin", b, d->now), IDEM_OK);
    }
    f->config.durability = IDEM_EACH;
}

static void a_record_of_another_slot_or_claim_is_not_taken(void **state)
{
    device *d = (device *)*state;
    idem_table *t = &d->f.table;
    idem_place *place;
    unsigned a, b;

    device_start(d, &usual);
    finish(&d->f, "s", "a", d->now);
    finish(&d->f, "s", "b", d->now);
    a = slot_of(d, "s", "a");
    b = slot_of(d, "s", "b");
    place = idemi_slot_place(t, a);
    assert_int_equal(idemi_journal_fetch(t, a, place->claim, 0), IDEM_OK);
    assert_int_equal(idemi_journal_fetch(t, a, place->outcome, 0), IDEM_OK);
    assert_int_equal(idemi_journal_fetch(t, b, place->claim, 0),
                     IDEM_E_STORAGE);
    // An outcome whose claim is another one.
    place->claim += t->config->storage->prog_size;
    assert_int_equal(idemi_journal_fetch(t, a, place->outcome, 0),
                     IDEM_E_STORAGE);
}

/* Puts a record where another was programmed, as only who has the storage in
   his hands can. */
static void replace(device *d, uint32_t at, const uint8_t *record,
                    unsigned len)
{
    const idem_table *t = &d->f.table;
    uint8_t bytes[32];
    uint32_t linear = idemi_storage_linear(t, at);

    memcpy(bytes, record, len);
    idemi_basics_store(bytes + len,
                       idemi_crc_update(idemi_record_seed(t, at), bytes, len),
                       4);
    memcpy(d->medium.bytes + linear, bytes, len + 4);
    flash_settle(&d->medium, linear, len + 4);
}

/* What was read before is not taken for what such a record does not say: here
   how much was reserved. */
static void a_record_without_the_part_it_is_read_for_is_none(void **state)
{
    // length, slot, time, token, age
    uint8_t empty[] = { IDEMI_RECORD | IDEMI_MOVED, 4, 0, 0, 0, 0 };
    // what follows, length, slot, time, reservation, fingerprint, key
    uint8_t large[] = { IDEMI_RECORD | IDEMI_HAS_CLAIM | IDEMI_HAS_MORE,
                        IDEMI_MORE_RESERVED, 13, 0, 0, 0xFF, 0x7F,
                        0, 0, 0, 0, 0, 0, 0, 0, 'b' };
    char response[RESPONSE_MAX + 2];
    device *d = (device *)*state;
    fixture *f = &d->f;
    idem_table *t = &f->table;
    idem_request rq;
    idem_claim a, b;

    memset(response, 'r', sizeof response - 1);
    response[sizeof response - 1] = 0;
    device_start(d, &usual);
    assert_int_equal(begin(f, "", "a", "pour", d->now), IDEM_EXECUTE);
    a = f->claim;
    assert_int_equal(begin(f, "", "b", "pour", d->now), IDEM_EXECUTE);
    b = f->claim;
    empty[2] = (uint8_t)a.slot;
    large[3] = (uint8_t)b.slot;
    replace(d, idemi_slot_place(t, a.slot)->claim, empty, sizeof empty);
    replace(d, idemi_slot_place(t, b.slot)->claim, large, sizeof large);
    assert_int_equal(complete(f, &b, "poured", d->now), IDEM_E_STORAGE);
    assert_int_equal(complete(f, &a, response, d->now), IDEM_E_STORAGE);

    // Of a stale slot it may say that it is empty: that is no failure.
    rq = request_of(f, "", "a", "");
    t->journal->loaded = IDEMI_NOWHERE;
    t->journal->failed = 0;
    idemi_slot_at(t, a.slot)->state |= IDEMI_STALE;
    assert_false(idemi_slot_has_id(t, a.slot, &rq));
    assert_false(t->journal->failed);
    idemi_slot_at(t, a.slot)->state &= (uint8_t)~IDEMI_STALE;

    device_start(d, &usual);
    a = finish(f, "", "c", d->now);
    empty[2] = (uint8_t)a.slot;
    replace(d, idemi_slot_place(t, a.slot)->outcome, empty, sizeof empty);
    assert_int_equal(begin(f, "", "c", "pour", d->now), IDEM_E_STORAGE);
}

static void a_key_that_comes_twice_is_told_from_others(void **state)
{
    static const struct { const char *scope, *key; int equal; } others[] = {
        { "ab", "cd", 1 }, { "ab", "cde", 0 }, { "a", "cd", 0 },
        { "ab", "ce", 0 },
    };
    device *d = (device *)*state;
    idem_table *t = &d->f.table;
    const idem_record *r;
    idemi_late late = { IDEMI_NONE, 0, 2, 2 };
    unsigned mine;

    device_start(d, &usual);
    r = &t->journal->record;
    for (size_t i = 0; i < COUNT(others); i++)
        finish(&d->f, others[i].scope, others[i].key, d->now);
    mine = slot_of(d, "ab", "cd");
    for (size_t i = 0; i < COUNT(others); i++) {
        unsigned other = slot_of(d, others[i].scope, others[i].key);
        t->journal->loaded = IDEMI_NOWHERE;
        assert_int_equal(idemi_journal_load(t, mine, 0), IDEM_OK);
        late.id_at = r->id_at;
        assert_int_equal(idemi_recover_same(t, other, &late),
                         others[i].equal);
    }
    flash_flip(&d->medium, idemi_storage_linear(
                   t, idemi_slot_place(t, mine)->claim) + 5, 1);
    assert_false(idemi_recover_same(t, mine, &late));
}

/* ---------------------------------------------------------------------------
   records that a smaller configuration cannot hold
   ------------------------------------------------------------------------ */

static void what_is_over_smaller_limits_is_lost(void **state)
{
    device *d = (device *)*state;
    fixture *f = &d->f;
    idem_config was = f->config;
    idem_entry entry;
    unsigned finished;

    for (unsigned limit = 0; limit < 3; limit++) {
        f->config = was;
        device_start(d, &usual);
        for (unsigned n = 0; n < 3; n++) {
            // The second is over all three limits.
            f->outcome.state = n == 1 ? "12345678" : NULL;
            f->outcome.state_len = n == 1 ? 8 : 0;
            assert_int_equal(begin(f, "", n == 1 ? "long key" : nth(n), "pour",
                                   d->now), IDEM_EXECUTE);
            assert_int_equal(complete(f, &f->claim, n == 1 ? "poured" : "ok",
                                      d->now), IDEM_OK);
        }
        f->config.key_max = limit == 0 ? 7 : was.key_max;
        f->config.state_max = limit == 1 ? 7 : was.state_max;
        f->config.response_max = limit == 2 ? 5 : was.response_max;
        assert_int_equal(device_open(d), IDEM_OK);
        memset(&entry, 0, sizeof entry);
        for (finished = 0; checked(f, idem_next(&f->table, &entry, d->now)) ==
                               IDEM_OK;)
            finished += entry.status == IDEM_COMPLETED;
        assert_int_equal(finished, 2);
        assert_true(f->table.stats.lost > 0);
    }
    f->config = was;
}

/* Puts a record together as it never is, and takes it apart where so many bytes
   of it are there. */
static uint32_t decoded(device *d, const uint8_t *body, uint8_t parts,
                        unsigned len, uint32_t have)
{
    idem_table *t = &d->f.table;
    uint32_t at = idemi_storage_place(t, t->journal->head, t->journal->at);
    uint8_t bytes[80] = { 0 };

    bytes[0] = IDEMI_RECORD | parts;
    bytes[1] = (uint8_t)len;
    memcpy(bytes + 2, body, len);
    idemi_basics_store(bytes + 2 + len,
                       idemi_crc_update(idemi_record_seed(t, at), bytes,
                                        len + 2), 4);
    return idemi_record_decode(t, at, bytes, bytes, have);
}

static void a_record_that_is_short_of_something_is_none(void **state)
{
    // slot, time; fingerprint; length of the scope; scope and key
    static const uint8_t claim[] = {
        0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 1, 'a', 'b'
    };
    device *d = (device *)*state;
    unsigned whole = sizeof claim;

    device_start(d, &usual);
    finish(&d->f, "s", "a", d->now);
    for (unsigned len = 2; len <= whole; len++)
        assert_int_equal(decoded(d, claim, IDEMI_HAS_CLAIM | IDEMI_HAS_SCOPE,
                                 len, 80), len == whole ? whole + 6 : 0);
    for (unsigned have = 0; have <= whole + 6; have++)
        assert_int_equal(decoded(d, claim, IDEMI_HAS_CLAIM | IDEMI_HAS_SCOPE,
                                 whole, have),
                         have == whole + 6 ? whole + 6 : 0);
    // A second byte that is not there is not looked at.
    assert_int_equal(decoded(d, claim, IDEMI_HAS_MORE, whole, 1), 0);
    assert_int_equal(d->f.table.journal->record.more, 0);
}

/* Nor is one whose end is in the middle of a number: of what stands behind it
   nothing is taken, whatever that is. */
static void a_record_takes_nothing_of_what_is_behind_it(void **state)
{
    // Without parts: first byte, length, slot, time, distance
    static const uint8_t record[] = { IDEMI_RECORD, 3, 0x80, 0x80, 0x80 };
    device *d = (device *)*state;
    idem_table *t = &d->f.table;

    device_start(d, &usual);
    finish(&d->f, "s", "a", d->now);
    for (uint32_t at = 0; at < usual.sector_size; at++)
        for (uint32_t len = 0; len < 4; len++) {
            uint32_t place = idemi_storage_place(t, t->journal->head, at);
            uint8_t bytes[80] = { 0 };
            memcpy(bytes, record, sizeof record);
            bytes[1] = (uint8_t)len;
            idemi_basics_store(bytes + 2 + len, idemi_crc_update(
                                   idemi_record_seed(t, place), bytes,
                                   len + 2), 4);
            assert_int_equal(idemi_record_decode(t, place, bytes, bytes,
                                                 sizeof bytes), 0);
        }
}

/* Nothing is kept that is longer than what the table can write. */
static void a_record_longer_than_any_is_none(void **state)
{
    device *d = (device *)*state;
    idem_table *t = &d->f.table;
    uint32_t at, most;

    device_start(d, &usual);
    finish(&d->f, "s", "a", d->now);
    at = idemi_storage_place(t, t->journal->head, t->journal->at);
    most = t->journal->record_max;
    assert_in_range(most, 64, 0x7F + 6);
    for (uint32_t len = most - 1; len < most + 2; len++) {
        // Without parts: first byte, length, slot, time, distance
        uint8_t bytes[256] = { IDEMI_RECORD };
        bytes[1] = (uint8_t)(len - 6);
        idemi_basics_store(bytes + len - 4, idemi_crc_update(
                               idemi_record_seed(t, at), bytes, len - 4), 4);
        assert_int_equal(idemi_record_decode(t, at, bytes, bytes,
                                             sizeof bytes),
                         len > most ? 0 : len);
    }
}

/* What is in the buffer of an earlier part of a sector does not end a record
   that begins where the sector ends. */
static void a_record_does_not_go_on_behind_its_sector(void **state)
{
    // length, slot, time, token, age
    uint8_t record[10] = { IDEMI_RECORD | IDEMI_MOVED, 4, 0, 0, 0, 0 };
    enum { HALF = 5 };
    device *d = (device *)*state;
    idem_table *t = &d->f.table;
    uint32_t front, last, at;
    uint8_t *sector;

    device_start(d, &in_place);
    front = idemi_journal_front(t);
    last = in_place.sector_size - HALF;
    sector = d->medium.bytes + in_place.sector_size;
    idemi_journal_sector(t, 1)->sequence = 7;
    idemi_basics_store(record + 6, idemi_crc_update(idemi_record_seed(
                           t, idemi_storage_place(t, 1, last)), record, 6), 4);
    memcpy(sector + last, record, HALF);
    for (at = front; at < last - HALF; at++) {
        memcpy(sector + at, record + HALF, sizeof record - HALF);
        assert_false(idemi_journal_used(t, 1, front));
        memset(sector + at, in_place.erased, sizeof record - HALF);
    }
}

/* Bytes of storage from a claim to what belongs to it, also round the end */
static void the_distance_to_a_claim_goes_round_the_end(void **state)
{
    static const uint32_t sizes[] = { 512, 640 };
    device *d = (device *)*state;
    const idem_table *t = &d->f.table;

    for (size_t i = 0; i < COUNT(sizes); i++) {
        geometry g = usual;
        uint32_t last = usual.sector_count - 1, from;
        g.sector_size = sizes[i];
        device_start(d, &g);
        from = idemi_storage_place(t, last, 8);
        assert_int_equal(idemi_record_distance(
                             t, from, idemi_storage_place(t, last, 48)), 40);
        assert_int_equal(idemi_record_distance(
                             t, from, idemi_storage_place(t, 1, 48)),
                         2 * sizes[i] + 40);
    }
}

/* What is behind it in memory is not touched. */
static void a_record_ends_where_its_padding_does(void **state)
{
    device *d = (device *)*state;
    idem_table *t = &d->f.table;
    idem_record *r;
    idemi_parts parts = { NULL, NULL, NULL, "s" };

    device_start(d, &usual);
    finish(&d->f, "s", "a", d->now);
    r = &t->journal->record;
    for (unsigned len = 0; len < 8; len++) {
        const unsigned char *src;
        uint32_t padded;
        memset(idemi_journal_out(t), 0xA5, t->journal->record_max);
        memset(r, 0, sizeof *r);
        r->parts = IDEMI_HAS_STATE | IDEMI_MOVED;
        r->state_len = (uint16_t)(len > 0);
        r->time = UINT32_C(1) << 4 * len;
        padded = idemi_record_encode(
            t, &src, idemi_storage_place(t, t->journal->head, t->journal->at),
            &parts);
        assert_int_equal(padded % usual.granule, 0);
        assert_int_not_equal(src[padded - 1], 0xA5);
        for (unsigned i = 0; i < 8; i++)
            assert_int_equal(src[padded + i], 0xA5);
    }
}

/* ---------------------------------------------------------------------------
   reads that fail in the middle of a call
   ------------------------------------------------------------------------ */

static void what_cannot_be_read_is_evicted_from_all_scopes(void **state)
{
    device *d = (device *)*state;
    fixture *f = &d->f;

    f->config.full = IDEM_EVICT_OLDEST;
    device_start(d, &usual);
    d->now += 100;              // what is older than the opening is too old
    for (unsigned i = 0; i < f->config.capacity; i++)
        finish(f, "s", nth(i), d->now);
    all_fail(d, FLASH_READ);
    assert_int_equal(begin(f, "t", "new", "pour", d->now + 10), IDEM_EXECUTE);
    none_fails(d, FLASH_READ);
    assert_int_equal(f->table.stats.evicted, 1);
    assert_int_equal(f->table.stats.full, 0);   // it stands behind reach
    // Whose it was is not known: so all are too old from then on.
    f->request.age_ms = 11;
    for (unsigned i = 4; i < 12; i++)
        assert_int_equal(begin(f, nth(i), "x", "pour", d->now + 10),
                         IDEM_TOO_OLD);
}

static void with_a_quota_an_unreadable_key_counts_for_nobody(void **state)
{
    device *d = (device *)*state;
    fixture *f = &d->f;

    f->config.quota = 1;
    device_start(d, &usual);
    finish(f, "s", "a", d->now);
    assert_int_equal(begin(f, "s", "b", "pour", d->now), IDEM_E_FULL);
    all_fail(d, FLASH_READ);
    assert_int_equal(begin(f, "s", "b", "pour", d->now), IDEM_EXECUTE);
    none_fails(d, FLASH_READ);
}

static void looking_says_that_an_outcome_does_not_read(void **state)
{
    device *d = (device *)*state;
    fixture *f = &d->f;
    idem_claim claim;
    uint8_t piece[4];
    size_t len = sizeof piece;

    device_start(d, &usual);
    claim = finish(f, "panel", "a", d->now);
    // The claim reads, what follows it does not.
    flash_fail(&d->medium, FLASH_READ, 1, FLASH_UNDONE, 1);
    assert_int_equal(find(f, "panel", "a", d->now), IDEM_E_STORAGE);
    flash_fail(&d->medium, FLASH_READ, 1, FLASH_UNDONE, 1);
    assert_int_equal(checked(f, idem_response(&f->table, piece, &len, &claim,
                                              0)), IDEM_E_STORAGE);
    assert_int_equal(len, 0);
    none_fails(d, FLASH_READ);
    assert_int_equal(find(f, "panel", "a", d->now), IDEM_OK);
}

static void nothing_is_lost_while_nothing_at_all_reads(void **state)
{
    device *d = (device *)*state;
    fixture *f = &d->f;
    unsigned refused = 0;

    device_start(d, &usual);
    d->unsure = 1;
    finish(f, "s", "a", d->now);
    all_fail(d, FLASH_READ);
    for (unsigned i = 0; i < 400; i++) {
        int result = begin(f, "s", nth(1 + i % 2), "pour", d->now);
        if (result == IDEM_EXECUTE)
            result = release(f, &f->claim, d->now);
        refused += result == IDEM_E_STORAGE;
    }
    assert_true(refused > 2);
    assert_int_equal(f->table.stats.lost, 0);
    none_fails(d, FLASH_READ);
    assert_int_equal(find(f, "s", "a", d->now), IDEM_OK);
}

// What is at this address reads only so often.
static uint32_t flaky_at, flaky_left;

static int flaky_read(void *ctx, uint32_t at, void *dst, uint32_t len)
{
    if (at <= flaky_at && flaky_at < at + len) {
        if (!flaky_left)
            return FLASH_E_FAULT;
        flaky_left--;
    }
    return flash_read(ctx, at, dst, len);
}

enum { LATE, HELD, OWED, STATES_OF_A_KEY };

/* The call that a key in each of these states waits for; its record reads when
   the key is looked for, and then no more. */
static int ask_flaky(device *d, int what, const idem_claim *claim)
{
    flaky_left = 1;
    if (what == LATE)
        return begin(&d->f, "s", "a", "pour", d->now);
    if (what == HELD)
        return complete(&d->f, claim, "poured", d->now);
    return checked(&d->f, idem_delivered(&d->f.table, claim));
}

/* A key in one of these states, with so many other records behind it, and one
   before it.  Returns whether a call on it lost it: that had to carry it twice,
   and could not read it.  What could be carried is what it was. */
static int lose_in_a_call(device *d, int what, const char *first,
                          unsigned before)
{
    static const int answers[] = { IDEM_RECOVER, IDEM_E_FENCED, IDEM_OK };
    fixture *f = &d->f;
    idem_claim claim;
    int result, lost;

    f->outcome.confirm = what == OWED;
    device_start(d, &usual);
    finish(f, "s", first, d->now);
    assert_int_equal(begin(f, "s", "a", "pour", d->now), IDEM_EXECUTE);
    claim = f->claim;
    if (what == OWED)
        assert_int_equal(complete(f, &claim, "poured", d->now), IDEM_OK);
    if (what == LATE)
        d->now += LEASE;
    for (; before > 0; before--) {
        assert_int_equal(begin(f, "s", "x", "pour", d->now), IDEM_EXECUTE);
        assert_int_equal(release(f, &f->claim, d->now), IDEM_OK);
    }
    flaky_at = idemi_storage_linear(
        &f->table, idemi_slot_place(&f->table, slot_of(d, "s", "a"))->claim);
    d->storage.read = flaky_read;
    if (ask_flaky(d, what, &claim) != IDEM_E_STORAGE)
        return 0;
    assert_int_equal(f->table.stats.lost, 0);
    result = ask_flaky(d, what, &claim);
    lost = f->table.stats.lost != 0;
    assert_int_equal(result, what == HELD && !lost ? IDEM_OK : answers[what]);
    if (what == LATE)
        assert_int_equal(complete(f, &f->claim, "poured", d->now), IDEM_OK);
    assert_int_equal(begin(f, "s", "a", "pour", d->now),
                     what == LATE || !lost ? IDEM_REPLAY : IDEM_RECOVER);
    return lost;
}

static void s4_a_key_lost_while_room_is_made_for_it_is_never_new(void **state)
{
    device *d = (device *)*state;

    for (int what = 0; what < STATES_OF_A_KEY; what++) {
        unsigned came = 0;
        for (unsigned before = 60; before < 90; before++)
            for (const char *first = "a key of twenty bytes"; *first; first++)
                came += (unsigned)lose_in_a_call(d, what, first, before);
        assert_true(came > 0);
    }
}

static void what_reads_again_is_known_again(void **state)
{
    device *d = (device *)*state;
    fixture *f = &d->f;
    uint32_t first;

    device_start(d, &usual);
    finish(f, "s", "z", d->now);            // its slot will be used again
    finish(f, "s", "a", d->now);
    first = f->table.journal->head;
    while (f->table.journal->head == first) {
        assert_int_equal(begin(f, "s", "x", "pour", d->now), IDEM_EXECUTE);
        assert_int_equal(release(f, &f->claim, d->now), IDEM_OK);
    }
    d->medium.bad[first] = FLASH_BAD_READ;
    assert_int_equal(device_open(d), IDEM_OK);
    assert_int_equal(f->table.stats.lost, 1);
    assert_int_equal(begin(f, "s", "b", "pour", d->now), IDEM_RECOVER);
    d->medium.bad[first] = 0;
    assert_int_equal(device_open(d), IDEM_OK);
    // It was told once, and the doubt goes on.
    assert_int_equal(f->table.stats.lost, 0);
    assert_int_equal(begin(f, "s", "a", "pour", d->now), IDEM_REPLAY);
    assert_string_equal(f->buffer, "poured");
    assert_int_equal(begin(f, "s", "c", "pour", d->now), IDEM_RECOVER);
}

static void s10_nothing_unsure_is_answered_once_a_sync_failed(void **state)
{
    device *d = (device *)*state;
    fixture *f = &d->f;

    device_start(d, &usual);
    finish(f, "s", "a", d->now);
    assert_int_equal(device_open(d), IDEM_OK);
    flash_fail(&d->medium, FLASH_SYNC, 0, FLASH_UNDONE, 0);
    assert_int_equal(checked(f, idem_sync(&f->table)), IDEM_E_STORAGE);
    assert_int_equal(begin(f, "s", "a", "pour", d->now), IDEM_E_STORAGE);
    assert_int_equal(device_open(d), IDEM_OK);
    assert_int_equal(begin(f, "s", "a", "pour", d->now), IDEM_REPLAY);
}

/* A cut claim that reads well took the slot of a key that was evicted: once it
   was said that this is gone, it does not come back where the claim is torn. */
static void s10_a_key_whose_slot_was_taken_stays_gone(void **state)
{
    const geometry *const media[] = { &usual, &in_place };
    device *d = (device *)*state;
    fixture *f = &d->f;

    f->config.capacity = 1;
    f->config.full = IDEM_EVICT_OLDEST;
    for (size_t i = 0; i < COUNT(media); i++) {
        uint32_t at;
        device_start(d, media[i]);
        finish(f, "s", "a", d->now);
        assert_int_equal(begin(f, "s", "b", "pour", d->now), IDEM_EXECUTE);
        at = idemi_storage_linear(
            &f->table, idemi_slot_place(&f->table, f->claim.slot)->claim);
        assert_int_equal(device_open(d), IDEM_OK);
        assert_int_equal(forget(f, "s", "a", d->now), IDEM_E_NOT_FOUND);
        flash_flip(&d->medium, at + 1, 0);
        assert_int_equal(device_open(d), IDEM_OK);
        assert_int_equal(find(f, "s", "a", d->now), IDEM_E_NOT_FOUND);
    }
}

/* Behind a header nothing stands but what it has confirmed: that is confirmed
   again, for the header may be torn. */
static void s10_what_a_header_confirmed_is_confirmed_again(void **state)
{
    device *d = (device *)*state;
    fixture *f = &d->f;

    device_start(d, &usual);
    finish(f, "s", "a", d->now);
    for (unsigned boot = 0; boot < 3; boot++) {
        uint32_t progs = d->medium.progs;
        assert_int_equal(device_open(d), IDEM_OK);
        assert_int_equal(begin(f, "s", "a", "pour", d->now), IDEM_REPLAY);
        assert_true(d->medium.progs > progs);
        progs = d->medium.progs;
        assert_int_equal(begin(f, "s", "a", "pour", d->now), IDEM_REPLAY);
        assert_int_equal(d->medium.progs, progs);
    }
}

/* The keys that are listed as undelivered, and what ends the list. */
static int list_owed(device *d, char *keys)
{
    fixture *f = &d->f;
    int result;

    memset(&f->entry, 0, sizeof f->entry);
    f->entry.id = f->id;
    f->entry.id_size = sizeof f->id - 1;
    for (;;) {
        result = checked(f, idem_pending(&f->table, &f->entry, d->now));
        if (result != IDEM_OK)
            break;
        *keys++ = f->id[f->entry.scope_len];
    }
    *keys = '\0';
    return result;
}

/* What cannot be read hides no outcome behind it. */
static void s5_what_is_owed_is_listed_beside_what_cannot_be_read(void **state)
{
    static const char *const owed[] = { "bcd", "cd", "bd", "bc" };
    device *d = (device *)*state;
    fixture *f = &d->f;
    char keys[8];

    device_start(d, &usual);
    for (unsigned n = 0; n < COUNT(owed); n++) {
        const char name[] = { (char)('a' + n), '\0' };
        f->outcome.confirm = n > 0;
        finish(f, "s", name, d->now);
    }
    for (unsigned n = 0; n < COUNT(owed); n++) {
        const char name[] = { (char)('a' + n), '\0' };
        unsigned slot = slot_of(d, "s", name);
        uint32_t at = idemi_storage_linear(
            &f->table, idemi_slot_place(&f->table, slot)->claim);
        flash_flip(&d->medium, at + 1, 0);
        // Another record is in the buffer then.
        assert_int_equal(find(f, "s", n ? "a" : "b", d->now), IDEM_OK);
        assert_int_equal(list_owed(d, keys),
                         n == 3 ? IDEM_E_STORAGE : IDEM_E_NOT_FOUND);
        assert_string_equal(keys, owed[n]);
        flash_flip(&d->medium, at + 1, 0);
    }
    assert_int_equal(list_owed(d, keys), IDEM_E_NOT_FOUND);
    assert_string_equal(keys, "bcd");
}

/* Nor does the list begin again where the one that it goes on from does not. */
static void a_list_goes_on_once_its_place_can_be_read(void **state)
{
    device *d = (device *)*state;
    fixture *f = &d->f;
    idem_entry e;
    uint32_t at;

    memset(&e, 0, sizeof e);
    device_start(d, &usual);
    f->outcome.confirm = 1;
    finish(f, "s", "a", d->now);
    finish(f, "s", "b", d->now);
    at = idemi_storage_linear(
        &f->table, idemi_slot_place(&f->table, slot_of(d, "s", "a"))->claim);
    assert_int_equal(idem_pending(&f->table, &e, d->now), IDEM_OK);
    assert_int_equal(find(f, "s", "b", d->now), IDEM_OK);
    flash_flip(&d->medium, at + 1, 0);
    assert_int_equal(idem_pending(&f->table, &e, d->now), IDEM_E_STORAGE);
    flash_flip(&d->medium, at + 1, 0);
    assert_int_equal(idem_pending(&f->table, &e, d->now), IDEM_OK);
    assert_int_equal(idem_pending(&f->table, &e, d->now), IDEM_E_NOT_FOUND);
}

/* ---------------------------------------------------------------------------
   damage that tests of single bits and records do not come to
   ------------------------------------------------------------------------ */

/* A command that leaves nothing; where its last record ended. */
static uint32_t pass_by(device *d)
{
    fixture *f = &d->f;

    assert_int_equal(begin(f, "t", "x", "pour", d->now), IDEM_EXECUTE);
    assert_int_equal(release(f, &f->claim, d->now), IDEM_OK);
    return idemi_storage_linear(
        &f->table, idemi_storage_place(&f->table, f->table.journal->head,
                                       f->table.journal->at));
}

/* Commands that leave nothing, until a sector is the head; those that fail are
   repeated. */
static void pass_to(device *d, uint32_t sector)
{
    fixture *f = &d->f;
    unsigned left = 1000;

    while (f->table.journal->head != sector) {
        if (begin(f, "t", "x", "pour", d->now) >= 0)
            (void)release(f, &f->claim, d->now);
        assert_int_not_equal(--left, 0);
    }
}

static void more_stretches_than_a_byte_counts_are_all_seen(void **state)
{
    static const geometry large =
        { "large", FLASH_NOR, 1, 16384, 10, 0xFF, 0, 0, 0 };
    static const unsigned counts[] = { 254, 255, 256, 257, 300 };
    device *d = (device *)*state;
    fixture *f = &d->f;

    for (size_t i = 0; i < COUNT(counts); i++) {
        uint32_t first;
        device_start(d, &large);
        finish(f, "s", "a", d->now);
        first = f->table.journal->head;
        for (unsigned n = 0; n < counts[i]; n++)
            flash_flip(&d->medium, pass_by(d) - 2, 0);
        finish(f, "s", "b", d->now);
        assert_int_equal(device_open(d), IDEM_OK);
        assert_int_equal(f->table.stats.lost, counts[i]);
        assert_int_equal(begin(f, "s", "a", "pour", d->now), IDEM_REPLAY);
        assert_int_equal(begin(f, "s", "b", "pour", d->now), IDEM_REPLAY);
        assert_int_equal(begin(f, "s", "c", "pour", d->now), IDEM_RECOVER);
        assert_int_not_equal(f->table.journal->head, first);
        // They were told once; what comes now is told again.
        assert_int_equal(device_open(d), IDEM_OK);
        assert_int_equal(f->table.stats.lost, 0);
        assert_int_equal(begin(f, "s", "d", "pour", d->now), IDEM_RECOVER);
        assert_int_equal(begin(f, "s", "a", "pour", d->now), IDEM_REPLAY);
    }
}

/* Damages what is written from one place on up to another; how many granules
   that are. */
static uint32_t damage(device *d, uint32_t from, uint32_t to)
{
    flash_fill(&d->medium, from, to - from, 0);
    return (to - from) / usual.granule;
}

/* The next header tells of all that is damaged how many stretches, and how many
   granules that are: in front of the first record, and behind the last. */
static void a_header_counts_what_is_damaged(void **state)
{
    enum { STRETCHES = 13, GRANULES = 27, END = 30 };
    device *d = (device *)*state;
    fixture *f = &d->f;
    uint32_t size = usual.sector_size, granules = 0, head = 0;

    device_start(d, &usual);
    for (unsigned round = 1; round < 3; round++) {
        uint32_t from = round == 1 ? 2 * IDEMI_HEADER : pass_by(d);
        const uint8_t *header = d->medium.bytes + (head + 1) * size;
        granules += damage(d, from, pass_by(d));
        from = pass_by(d);
        pass_to(d, head + 1);
        granules += damage(d, from, head * size + header[END] +
                                        256u * header[END + 1]);
        assert_int_equal(device_open(d), IDEM_OK);
        assert_int_equal(f->table.stats.lost, 2);
        assert_int_equal(begin(f, "s", nth(round), "pour", d->now),
                         IDEM_RECOVER);
        head = f->table.journal->head;
        header = d->medium.bytes + head * size;
        assert_int_equal(header[STRETCHES], 2 * round);
        assert_int_equal(header[GRANULES] >> 2, granules % 64);
        d->now += RETENTION;            // doubt is over
    }
    // Of a sector that was erased nothing is told.
    pass_to(d, usual.sector_count - 1);
    pass_to(d, 3);
    head = f->table.journal->head;
    assert_int_equal(d->medium.bytes[head * size + STRETCHES], 0);
    assert_int_equal(d->medium.bytes[head * size + GRANULES] >> 2, 0);
}

/* However much memory there is to read with, behind a long stretch the records
   are found again: what is left of a granule at the end of a buffer moves none
   of the places at which records are looked for. */
static void what_is_behind_a_long_stretch_is_found(void **state)
{
    static const geometry coarse =
        { "coarse", FLASH_NOR, 64, 4096, 8, 0xFF, 0, 0, 0 };
    device *d = (device *)*state;
    fixture *f = &d->f;

    for (size_t spare = 0; spare < coarse.granule; spare++) {
        idem_table *t = &f->table;
        uint32_t at, end;
        device_start(d, &coarse);
        at = end = pass_by(d);
        for (unsigned n = 0; n < 8; n++)
            end = pass_by(d);
        flash_fill(&d->medium, at, end - at, 0xFF);
        finish(f, "s", "a", d->now);
        assert_int_equal(device_open_with(d, spare), IDEM_OK);
        assert_int_equal(t->stats.lost, 1);
        assert_int_equal(begin(f, "s", "a", "pour", d->now), IDEM_REPLAY);
    }
}

/* Of an outcome whose claim is lost the state does not count either, wherever
   the claim was: before it in its sector, in the one before that, or, if that
   is the first, in the last. */
static void a_state_does_not_count_where_its_claim_is_lost(void **state)
{
    device *d = (device *)*state;
    fixture *f = &d->f;

    for (uint32_t sector = 0; sector < 3; sector++)
        for (uint32_t before = 0; before < 2; before++) {
            char buffer[STATE_MAX];
            size_t len = sizeof buffer;
            idem_claim claim;
            uint32_t at;
            device_start(d, &usual);
            f->outcome.state = "old";
            f->outcome.state_len = 3;
            finish(f, "s", "a", d->now);
            f->outcome.state = "new";
            pass_to(d, 4);
            pass_to(d, (sector + usual.sector_count - before) %
                           usual.sector_count);
            assert_int_equal(begin(f, "s", "b", "pour", d->now), IDEM_EXECUTE);
            at = idemi_storage_linear(
                &f->table, idemi_slot_place(&f->table,
                                            (unsigned)f->claim.slot)->claim);
            claim = f->claim;
            pass_to(d, sector);
            assert_int_equal(complete(f, &claim, "poured", d->now), IDEM_OK);
            flash_flip(&d->medium, at + 5, 0);
            assert_int_equal(device_open(d), IDEM_OK);
            assert_int_equal(f->table.stats.lost, 1);
            assert_int_equal(idem_state(&f->table, buffer, &len), IDEM_OK);
            assert_int_equal(len, 3);
            assert_memory_equal(buffer, "old", 3);
        }
}

/* A header that was torn has what it was to have, in part; and one granule of
   it, if that is small, may be anything.  The manual's fields from 13 on are
   not the same in every header. */
static void storage_is_blank_but_for_one_granule_of_a_header(void **state)
{
    // Two bytes that no header has there
    static const struct { uint32_t granule, a, b; int blank; } torn[] = {
        { 1, 4, 4, 1 },   { 1, 0, 4, 0 },    { 1, 4, 13, 1 },
        { 1, 4, 39, 1 },  { 1, 4, 40, 0 },   { 16, 0, 4, 1 },
        { 16, 4, 39, 1 }, { 16, 4, 40, 0 },  { 16, 40, 40, 1 },
        { 32, 4, 4, 0 },  { 32, 13, 39, 1 }, { 32, 40, 40, 0 },
    };
    device *d = (device *)*state;

    for (size_t i = 0; i < COUNT(torn); i++) {
        geometry g = usual;
        g.granule = torn[i].granule;
        device_start(d, &g);
        flash_fill(&d->medium, torn[i].a, 1, 0);
        flash_fill(&d->medium, torn[i].b, 1, 0);
        assert_int_equal(device_open(d),
                         torn[i].blank ? IDEM_OK : IDEM_E_FORMAT);
        if (torn[i].blank)
            finish(&d->f, "s", "a", d->now);
    }
}

/* Another's header is no torn one of ours, though but one byte of it differs,
   and there is nothing else. */
static void a_header_alone_of_another_version_is_refused(void **state)
{
    device *d = (device *)*state;
    uint8_t header[IDEMI_HEADER];

    device_start(d, &usual);
    finish(&d->f, "s", "a", d->now);
    memcpy(header, d->medium.bytes, sizeof header);
    header[4]++;
    idemi_basics_store(header + 36, idemi_crc_update(UINT32_MAX, header, 36),
                       4);
    for (unsigned copy = 0; copy < 2; copy++) {
        device_start(d, &usual);
        flash_load(&d->medium, copy * IDEMI_HEADER, header, sizeof header);
        assert_int_equal(device_open(d), IDEM_E_FORMAT);
    }
}

/* The next header states where the records of a sector end, also where there
   are none. */
static void a_sector_without_records_ends_where_they_would_begin(void **state)
{
    enum { END = 30 };
    device *d = (device *)*state;
    fixture *f = &d->f;

    device_start(d, &usual);
    // Power goes when the two headers are there.
    flash_cut(&d->medium, 2, 0);
    assert_int_equal(begin(f, "s", "a", "pour", d->now), IDEM_E_STORAGE);
    flash_boot(&d->medium);
    assert_int_equal(device_open(d), IDEM_OK);
    finish(f, "s", "a", d->now);
    assert_int_equal(idemi_basics_load32(d->medium.bytes + usual.sector_size +
                                         END) & 0xFFFFFF, 2 * IDEMI_HEADER);
}

/* At the end of the newest sector what a cut leaves is no loss, however it
   reads, blank granules too: as much as one record may take, behind others or
   the headers.  What is longer is one. */
static void what_is_longer_than_a_record_is_no_torn_one(void **state)
{
    enum { A_RECORD = 46 + KEY_MAX + RESPONSE_MAX };
    device *d = (device *)*state;
    fixture *f = &d->f;
    uint32_t size = usual.sector_size, granule = usual.granule, most;

    for (unsigned way = 0; way < 4; way++) {
        uint32_t from, len;
        int hollow = way / 2;
        device_start(d, &usual);
        from = way % 2 ? pass_by(d) : 2 * IDEMI_HEADER;
        assert_int_equal(begin(f, "s", "a", "pour", d->now), IDEM_EXECUTE);
        most = f->table.journal->record_max + granule;
        for (len = granule; from + len <= size; len += granule) {
            flash_fill(&d->medium, from, size - from, usual.erased);
            flash_noise(&d->medium, from, hollow ? granule : len, way);
            flash_noise(&d->medium, from + len - granule, granule, way);
            assert_int_equal(device_open(d), IDEM_OK);
            if (len <= A_RECORD || len > most)
                assert_int_equal(f->table.stats.lost, len > most);
        }
    }
}

/* In a new boot, the power goes in the n-th operation of a call.  Returns
   whether of the headers of a sector only the first is there then. */
static int cut_in_header(device *d, uint32_t sector, uint32_t n)
{
    fixture *f = &d->f;
    const uint8_t *p = d->medium.bytes + sector * usual.sector_size;

    assert_int_equal(device_open(d), IDEM_OK);
    flash_cut(&d->medium, n, 0);
    assert_int_equal(begin(f, "s", "b", "pour", d->now), IDEM_E_STORAGE);
    flash_boot(&d->medium);
    return p[0] == 'i' && p[IDEMI_HEADER] == usual.erased;
}

/* Goes on to a sector in a new boot, and the power goes before its second
   header is there. */
static void doubt_header(device *d, uint32_t sector)
{
    uint32_t n = 0;

    do {
        device_start(d, &usual);
        finish(&d->f, "s", "a", d->now);
        pass_to(d, (sector + usual.sector_count - 1) % usual.sector_count);
        finish(&d->f, "s", "c", d->now);
        pass_by(d);
    } while (!cut_in_header(d, sector, n++));
}

/* Of a header in doubt it is not known whether it counts: the sector behind it
   is dead in either case, and is taken next. */
static void r3_a_sector_with_a_header_in_doubt_is_passed_over(void **state)
{
    device *d = (device *)*state;
    fixture *f = &d->f;

    for (uint32_t sector = 0; sector < usual.sector_count; sector++) {
        uint32_t next = (sector + 1) % usual.sector_count, was[2];
        const uint32_t *erases;
        doubt_header(d, sector);
        erases = d->medium.sector_erases;
        was[0] = erases[sector];
        was[1] = erases[next];
        assert_int_equal(device_open(d), IDEM_OK);
        assert_int_equal(begin(f, "s", "a", "pour", d->now), IDEM_REPLAY);
        assert_int_equal(begin(f, "s", "b", "pour", d->now), IDEM_EXECUTE);
        assert_int_equal(erases[sector], was[0]);
        assert_int_equal(erases[next], was[1] + 1);
    }
}

/* Who goes on behind one has seen that it does not count; so it never does, if
   it is seen later, and is taken next: nor does the one behind it, if that is
   in doubt, too.  Nothing names that as one that is needed. */
static void r3_a_header_in_doubt_that_was_passed_over_never_counts(void **state)
{
    device *d = (device *)*state;
    fixture *f = &d->f;
    uint32_t size = usual.sector_size, n = 0, erases;

    do
        doubt_header(d, 5);
    while (!cut_in_header(d, 6, n++));
    flash_load(&d->medium, 5 * size + IDEMI_HEADER,
               d->medium.bytes + 5 * size, IDEMI_HEADER);
    erases = d->medium.sector_erases[5];
    assert_int_equal(device_open(d), IDEM_OK);
    assert_int_equal(f->table.stats.lost, 0);
    finish(f, "s", "b", d->now);
    assert_int_equal(d->medium.sector_erases[5], erases + 1);
    flash_fill(&d->medium, 6 * size, 2 * IDEMI_HEADER, usual.erased);
    assert_int_equal(device_open(d), IDEM_OK);
    assert_int_equal(f->table.stats.lost, 0);
    assert_int_equal(begin(f, "s", "a", "pour", d->now), IDEM_REPLAY);
    assert_int_equal(begin(f, "s", "b", "pour", d->now), IDEM_REPLAY);
}

/* The sector that a header in doubt names counts, for that was written when it
   did, though its own second header is damaged since. */
static void r3_the_sector_that_a_header_in_doubt_names_counts(void **state)
{
    device *d = (device *)*state;
    fixture *f = &d->f;
    uint32_t size = usual.sector_size;

    for (uint32_t sector = 1; sector < 5; sector++) {
        doubt_header(d, sector);
        flash_noise(&d->medium, (sector - 1) * size + IDEMI_HEADER,
                    IDEMI_HEADER, 7);
        assert_int_equal(device_open(d), IDEM_OK);
        assert_int_equal(f->table.stats.lost, 0);
        assert_int_equal(begin(f, "s", "a", "pour", d->now), IDEM_REPLAY);
        assert_int_equal(begin(f, "s", "c", "pour", d->now), IDEM_REPLAY);
    }
}

/* Of two headers in doubt neither is seen at one boot, which writes in the
   place of the first.  That counts, for there is a record in it, though the
   second, that has a higher sequence, is seen later and names the sector
   before. */
static void r3_a_header_in_doubt_that_is_seen_late_hides_nothing(void **state)
{
    device *d = (device *)*state;
    fixture *f = &d->f;
    uint32_t size = usual.sector_size, n = 0;
    uint8_t header[IDEMI_HEADER];

    do
        doubt_header(d, 5);
    while (!cut_in_header(d, 6, n++));
    memcpy(header, d->medium.bytes + 6 * size, sizeof header);
    flash_fill(&d->medium, 5 * size, 2 * IDEMI_HEADER, usual.erased);
    flash_fill(&d->medium, 6 * size, 2 * IDEMI_HEADER, usual.erased);
    assert_int_equal(device_open(d), IDEM_OK);
    assert_int_equal(f->table.stats.lost, 0);
    finish(f, "s", "b", d->now);
    flash_load(&d->medium, 6 * size, header, sizeof header);
    for (unsigned boot = 0; boot < 2; boot++) {
        assert_int_equal(device_open(d), IDEM_OK);
        assert_int_equal(f->table.stats.lost, 0);
        assert_int_equal(begin(f, "s", "a", "pour", d->now), IDEM_REPLAY);
        assert_int_equal(begin(f, "s", "b", "pour", d->now), IDEM_REPLAY);
    }
}

/* Fills a table but for one key, goes on by some commands, and restarts. */
static void fill_but_one(device *d, unsigned before)
{
    for (unsigned i = 1; i < d->f.config.capacity; i++)
        finish(&d->f, "s", nth(i), d->now);
    for (; before > 0; before--)
        pass_by(d);
    assert_int_equal(device_open(d), IDEM_OK);
}

/* Fills a table but for one key, from a sector on, goes on by some commands,
   and in the next boot the power goes in the n-th operation.  Returns whether
   that was right behind the second header of a sector, *sector then. */
static int end_with_header(device *d, uint32_t start, unsigned before,
                           uint32_t n, uint32_t *sector)
{
    fixture *f = &d->f;
    const uint8_t *header;
    uint32_t last, end;

    device_start(d, &tight);
    pass_by(d);
    pass_to(d, start);
    fill_but_one(d, before);
    last = f->table.journal->head;
    flash_cut(&d->medium, n, 0);
    (void)begin(f, "t", "y", "pour", d->now);
    flash_boot(&d->medium);
    assert_int_equal(device_open(d), IDEM_OK);
    *sector = f->table.journal->head;
    header = d->medium.bytes + *sector * tight.sector_size + IDEMI_HEADER;
    end = idemi_basics_load32(header + 32) >> 8;
    return *sector != last && header[0] == 'i' &&
           header[end - IDEMI_HEADER] == tight.erased;
}

/* What the sector before the newest needs is not erased while that may turn out
   not to count, whatever fails. */
static void r3_while_a_header_is_in_doubt_both_ways_are_kept(void **state)
{
    device *d = (device *)*state;
    fixture *f = &d->f;
    unsigned came = 0;

    f->config.capacity = 12;
    for (unsigned before = 40; before < 220; before += 9)
        for (uint32_t n = 2; n < 8; n++) {
            uint32_t sector, start = before < 100 ? 9 : 0;
            if (!end_with_header(d, start, before, n, &sector))
                continue;
            came++;
            all_fail(d, FLASH_PROG);
            for (unsigned i = 0; i < 10; i++)
                assert_int_equal(begin(f, "t", "z", "pour", d->now),
                                 IDEM_E_STORAGE);
            none_fails(d, FLASH_PROG);
            flash_fill(&d->medium,
                       sector * usual.sector_size + IDEMI_HEADER,
                       IDEMI_HEADER, usual.erased);
            assert_int_equal(device_open(d), IDEM_OK);
            assert_int_equal(f->table.stats.lost, 0);
            for (unsigned i = 1; i < f->config.capacity; i++)
                assert_int_equal(find(f, "s", nth(i), d->now), IDEM_OK);
        }
    assert_true(came > 0);
}

/* But once a record stands behind a header that counts for certain: then all
   that it does not need may be used, if the others fail. */
static void r3_behind_a_record_all_that_is_dead_is_used(void **state)
{
    device *d = (device *)*state;
    fixture *f = &d->f;

    f->config.capacity = 12;
    for (unsigned before = 100; before < 140; before += 5) {
        uint32_t count, dead, last, n;
        device_start(d, &tight);
        fill_but_one(d, before);
        assert_int_equal(begin(f, "t", "y", "pour", d->now), IDEM_EXECUTE);
        assert_int_equal(device_open(d), IDEM_OK);
        count = d->medium.sector_count;
        last = f->table.journal->head;
        dead = count - 1 - d->medium.bytes[last * tight.sector_size + 28];
        for (n = 1; n < dead; n++)
            d->medium.bad[(last + n) % count] = FLASH_BAD_ERASE;
        for (n = 1; n < dead; n++)
            assert_int_equal(forget(f, "s", "b", d->now), IDEM_E_STORAGE);
        assert_int_equal(forget(f, "s", "b", d->now), IDEM_OK);
    }
}

/* The first header of all was torn, anywhere, and reads as nothing whole, or as
   the first of two; and the sector behind it may be anything after a cut while
   it was erased.  That comes next, with a higher sequence, for the torn one may
   be seen another time. */
static void s10_a_first_header_that_is_seen_later_hides_nothing(void **state)
{
    enum { SEQUENCE = 16 };
    device *d = (device *)*state;
    fixture *f = &d->f;
    uint32_t size = usual.sector_size, count = usual.sector_count;
    uint8_t header[IDEMI_HEADER];

    device_start(d, &usual);
    finish(f, "s", "a", d->now);
    memcpy(header, d->medium.bytes, sizeof header);
    assert_int_equal(header[SEQUENCE], 1);
    for (uint32_t torn = 0; torn < count; torn++)
        for (unsigned way = 0; way < 4; way++) {
            uint32_t next = (torn + 1) % count;
            device_start(d, &usual);
            flash_load(&d->medium, torn * size, header,
                       way & 1 ? sizeof header : SEQUENCE);
            if (way & 2)
                flash_noise(&d->medium, next * size, size, torn);
            assert_int_equal(device_open(d), IDEM_OK);
            finish(f, "s", "a", d->now);
            assert_int_equal(d->medium.erases, 1);
            assert_int_equal(d->medium.sector_erases[next], 1);
            assert_true(d->medium.bytes[next * size + SEQUENCE] >
                        (way & 2 ? 2 : 1));
            flash_load(&d->medium, torn * size, header, sizeof header);
            assert_int_equal(device_open(d), IDEM_OK);
            assert_int_equal(f->table.stats.lost, 0);
            assert_int_equal(begin(f, "s", "a", "pour", d->now), IDEM_REPLAY);
        }
}

/* In so many boots in a row power goes behind the first header of all, before
   the second is there. */
static void cut_first_headers(device *d, uint32_t boots)
{
    device_start(d, &usual);
    for (uint32_t boot = 0; boot < boots; boot++) {
        // Only the first erases nothing.
        flash_cut(&d->medium, boot ? 2 : 1, 0);
        assert_int_equal(begin(&d->f, "s", "a", "pour", d->now),
                         IDEM_E_STORAGE);
        flash_boot(&d->medium);
        assert_int_equal(device_open(d), IDEM_OK);
    }
}

static void wear_is_even_before_there_is_a_journal(void **state)
{
    device *d = (device *)*state;
    uint32_t least, most;

    cut_first_headers(d, 1 + 3 * usual.sector_count);
    flash_wear(&d->medium, &least, &most);
    assert_int_equal(least, 3);
    assert_int_equal(most, 3);
    finish(&d->f, "s", "a", d->now);
}

/* Then it goes while the sector behind those is erased: that may be anything,
   and is erased first, or another one might be such, too. */
static void the_one_sector_that_may_be_anything_is_erased_first(void **state)
{
    device *d = (device *)*state;

    for (uint32_t torn = 1; torn < 4; torn++) {
        cut_first_headers(d, torn);
        flash_noise(&d->medium, torn * usual.sector_size, usual.sector_size,
                    torn);
        assert_int_equal(device_open(d), IDEM_OK);
        finish(&d->f, "s", "a", d->now);
        assert_int_equal(d->medium.erases, torn);
        assert_int_equal(d->medium.sector_erases[torn], 1);
    }
}

/* What is known to be damaged is counted in the sectors of the ring.  One that
   could not be erased, and was passed over, has the header of a round before,
   which tells of damage that is gone with its sector. */
static void a_sector_that_is_passed_over_tells_of_no_damage(void **state)
{
    device *d = (device *)*state;
    fixture *f = &d->f;
    uint32_t count = usual.sector_count;

    for (uint32_t over = 0; over < count; over++) {
        device_start(d, &usual);
        pass_to(d, (over + count - 2) % count);
        flash_flip(&d->medium, pass_by(d) - 6, 0);
        pass_by(d);
        assert_int_equal(device_open(d), IDEM_OK);
        assert_int_equal(f->table.stats.lost, 1);
        pass_to(d, (over + 1) % count);
        d->now += RETENTION;            // doubt is over
        pass_to(d, (over + count - 1) % count);
        d->medium.bad[over] = FLASH_BAD_ERASE;
        pass_to(d, (over + 1) % count);
        for (unsigned boot = 0; boot < 2; boot++) {
            assert_int_equal(device_open(d), IDEM_OK);
            assert_int_equal(f->table.stats.lost, 0);
            (void)finish(f, "s", nth(boot), d->now);
        }
    }
}

/* A key was forgotten, came again, and the record that forgot it is damaged:
   in any place in the first sector, and up to the end of the last. */
static void a_key_whose_end_is_lost_comes_once(void **state)
{
    device *d = (device *)*state;
    fixture *f = &d->f;

    for (unsigned before = 0; before < 40; before++) {
        uint32_t end;
        device_start(d, &usual);
        pass_by(d);
        if (before >= 20)
            pass_to(d, usual.sector_count - 1);
        for (unsigned n = 0; n < before % 20; n++)
            pass_by(d);
        finish(f, "s", "a", d->now);
        finish(f, "s", "b", d->now);
        assert_int_equal(forget(f, "s", "a", d->now), IDEM_OK);
        end = idemi_storage_linear(
            &f->table, idemi_storage_place(&f->table, f->table.journal->head,
                                           f->table.journal->at));
        assert_int_equal(forget(f, "s", "b", d->now), IDEM_OK);
        assert_int_equal(begin(f, "s", "a", "stir", d->now), IDEM_EXECUTE);
        assert_int_equal(complete(f, &f->claim, "stirred", d->now), IDEM_OK);
        flash_flip(&d->medium, end - 4, 0);
        assert_int_equal(device_open(d), IDEM_OK);
        assert_int_equal(f->table.stats.lost, 1);
        assert_int_equal(begin(f, "s", "a", "stir", d->now), IDEM_REPLAY);
        assert_string_equal(f->buffer, "stirred");
        assert_int_equal(live(f, d->now), 1);
    }
}

/* A stale key takes another slot; the record that frees its own is damaged. */
static void a_stale_key_whose_end_is_lost_comes_once(void **state)
{
    device *d = (device *)*state;
    fixture *f = &d->f;
    idem_journal *j;
    uint32_t end;

    f->config.quota = 1;
    f->config.full = IDEM_EVICT_OLDEST;
    device_start(d, &usual);
    assert_int_equal(begin(f, "s", "a", "pour", d->now), IDEM_EXECUTE);
    assert_int_equal(device_open(d), IDEM_OK);
    finish(f, "t", "z", d->now);            // the claim was cut short now
    d->now += 5 * RETENTION;
    assert_int_equal(find(f, "s", "a", d->now), IDEM_E_NOT_FOUND);
    finish(f, "s", "b", d->now);
    assert_int_equal(f->table.stale, 1);
    j = f->table.journal;
    end = idemi_storage_linear(&f->table,
                               idemi_storage_place(&f->table, j->head, j->at));
    assert_int_equal(begin(f, "s", "a", "pour", d->now), IDEM_EXECUTE);
    assert_int_equal(f->table.stale, 0);
    flash_flip(&d->medium, end + 2, 0);
    assert_int_equal(device_open(d), IDEM_OK);
    assert_int_equal(f->table.stats.lost, 1);
    assert_int_equal(live(f, d->now), 1);
    assert_int_equal(begin(f, "s", "a", "pour", d->now), IDEM_RECOVER);
}

/* Two outcomes of one claim, as no table writes them. */
static void of_two_outcomes_of_a_claim_the_first_counts(void **state)
{
    device *d = (device *)*state;
    fixture *f = &d->f;
    idem_outcome outcome = { .response = "poured", .response_len = 6 };
    idem_place *place, was;
    idem_claim claim;

    device_start(d, &usual);
    assert_int_equal(begin(f, "s", "a", "pour", d->now), IDEM_EXECUTE);
    claim = f->claim;
    place = idemi_slot_place(&f->table, (unsigned)claim.slot);
    was = *place;
    assert_int_equal(idemi_journal_outcome(&f->table, (unsigned)claim.slot,
                                           &outcome), IDEM_OK);
    *place = was;
    f->table.journal->loaded = IDEMI_NOWHERE;
    assert_int_equal(complete(f, &claim, "spilled", d->now), IDEM_OK);
    assert_int_equal(device_open(d), IDEM_OK);
    assert_int_equal(begin(f, "s", "a", "pour", d->now), IDEM_REPLAY);
    assert_string_equal(f->buffer, "poured");
    assert_int_equal(live(f, d->now), 1);
}

/* Begins and completes keys until the power goes. */
static void work_until_off(device *d)
{
    fixture *f = &d->f;

    for (unsigned n = 0; !d->medium.off && n < 60; n++) {
        int result = begin(f, "s", nth(n % 12), "pour", d->now);
        if (result >= 0 && result != IDEM_REPLAY)
            (void)complete(f, &f->claim, nth(n % 12), d->now);
        if (n % 12 > 1 && !d->medium.off)
            (void)forget(f, "s", nth(n % 12 - 2), d->now);
    }
}

/* Nobody's outcome is given to somebody else. */
static void check_answers(device *d)
{
    for (unsigned n = 0; n < 12; n++)
        if (begin(&d->f, "s", nth(n), "pour", d->now) == IDEM_REPLAY)
            assert_string_equal(d->f.buffer, nth(n));
}

/* Power goes in each operation, and a sector loses both headers as well. */
static void s5_damage_on_top_of_a_cut_never_answers_wrongly(void **state)
{
    static const geometry both[] = {
        { "nor", FLASH_NOR, 4, 512, 0, 0xFF, 0, 0, 0 },
        { "in place", FLASH_INPLACE, 1, 512, 0, 0x00, 0, 0, 0 },
    };
    device *d = (device *)*state;

    for (unsigned i = 0; i < 2; i++)
        for (uint32_t n = 0, cut = 1; cut && n < 60; n++)
            for (uint32_t sector = 0; sector < 4; sector++) {
                int result;
                device_start(d, &both[i]);
                flash_cut(&d->medium, n, FLASH_ALL);
                work_until_off(d);
                cut = (uint32_t)d->medium.off;
                flash_boot(&d->medium);
                flash_noise(&d->medium, sector * d->medium.sector_size, 80, n);
                result = device_open(d);
                if (result == IDEM_OK)
                    check_answers(d);
                else
                    assert_int_equal(result, IDEM_E_FORMAT);
            }
}

/* Only a sector in which programming failed is given up: not one that was begun
   after it, and failed for what could not be read. */
static void a_read_that_fails_gives_no_sector_up(void **state)
{
    device *d = (device *)*state;
    fixture *f = &d->f;
    idem_table *t = &f->table;

    device_start(d, &usual);
    finish(f, "s", "a", d->now);
    flash_fail(&d->medium, FLASH_PROG, 0, FLASH_UNDONE, 0);
    assert_int_equal(idemi_journal_turn(t, 0, 0), IDEM_E_STORAGE);
    assert_int_equal(t->stats.retired, 1);
    all_fail(d, FLASH_READ);
    assert_int_equal(idemi_journal_turn(t, 0, usual.sector_count),
                     IDEM_E_STORAGE);
    none_fails(d, FLASH_READ);
    finish(f, "s", "b", d->now);
    assert_int_equal(t->stats.retired, 1);
}

/* Whatever there was in it before, that was shorter. */
static void what_is_in_a_head_that_failed_is_read_to_its_end(void **state)
{
    device *d = (device *)*state;
    fixture *f = &d->f;
    idem_table *t = &f->table;

    device_start(d, &usual);
    assert_int_equal(begin(f, "s", "a key that is long", "pour", d->now),
                     IDEM_EXECUTE);
    assert_int_equal(complete(f, &f->claim, "sixteen bytes or", d->now),
                     IDEM_OK);
    finish(f, "s", "b", d->now);
    for (unsigned n = 0; n < 2 * usual.sector_count; n++) {
        assert_int_equal(idemi_journal_turn(t, 0, n % 2 * usual.sector_count),
                         IDEM_OK);
        pass_by(d);
    }
    flash_fail(&d->medium, FLASH_PROG, 2, FLASH_UNDONE, 0);
    assert_int_equal(idemi_journal_turn(t, 0, usual.sector_count),
                     IDEM_E_STORAGE);
    assert_true(t->journal->stray);
    assert_int_equal(begin(f, "s", "a key that is long", "pour", d->now),
                     IDEM_REPLAY);
    assert_string_equal(f->buffer, "sixteen bytes or");
}

/* Once all have failed all get another chance: each is used but those that have
   failed since. */
static void sectors_that_failed_are_all_used_again(void **state)
{
    device *d = (device *)*state;
    fixture *f = &d->f;
    uint32_t sector, erases[16], unused = 0;

    device_start(d, &usual);
    for (unsigned n = 0; n < 120; n++)
        pass_by(d);
    finish(f, "s", "a", d->now);
    assert_int_equal(device_open(d), IDEM_OK);
    all_fail(d, FLASH_PROG);
    for (unsigned n = 0; n < 3 * usual.sector_count; n++)
        assert_int_equal(begin(f, "s", "a", "pour", d->now), IDEM_E_STORAGE);
    none_fails(d, FLASH_PROG);
    for (sector = 0; sector < usual.sector_count; sector++)
        erases[sector] = d->medium.sector_erases[sector];
    assert_int_equal(begin(f, "s", "a", "pour", d->now), IDEM_REPLAY);
    for (unsigned n = 0; n < 30 * usual.sector_count; n++)
        pass_by(d);
    for (sector = 0; sector < usual.sector_count; sector++)
        unused += d->medium.sector_erases[sector] == erases[sector];
    assert_int_equal(f->table.stats.retired, unused);
    assert_int_equal(f->table.stats.lost, 0);
}

// Erasing a sector leaves this byte of it as it was programmed.
static uint32_t stuck_at;

static int stuck_erase(void *ctx, uint32_t sector)
{
    flash *m = (flash *)ctx;
    uint32_t at = sector * m->sector_size + stuck_at;
    uint8_t was = m->bytes[at];
    int result = flash_erase(ctx, sector);

    if (was == m->erased)
        return result;
    m->bytes[at] = was;
    flash_settle(m, at, 1);
    return result;
}

/* Where a sector's headers go every byte is looked at before one is programmed,
   if the storage is to be verified. */
static void s8_no_header_goes_where_an_erase_left_a_byte(void **state)
{
    device *d = (device *)*state;
    fixture *f = &d->f;

    for (stuck_at = 0; stuck_at < 80; stuck_at++) {
        device_start(d, &usual);
        finish(f, "s", "a", d->now);
        for (uint32_t n = 0; n < usual.sector_count; n++)
            assert_int_equal(idemi_journal_turn(&f->table, 0,
                                                usual.sector_count), IDEM_OK);
        d->storage.verify = 1;
        d->storage.erase = stuck_erase;
        for (uint32_t n = 0; n < 2 * usual.sector_count; n++) {
            uint32_t progs = d->medium.progs;
            assert_int_equal(idemi_journal_turn(&f->table, 0, 0),
                             IDEM_E_STORAGE);
            assert_int_equal(d->medium.progs, progs);
        }
        assert_int_equal(begin(f, "s", "a", "pour", d->now), IDEM_REPLAY);
    }
}

/* What is read of the next head to verify that it was erased is not taken for
   a key that was read before. */
static void what_is_read_of_a_new_head_is_not_taken_for_a_key(void **state)
{
    device *d = (device *)*state;
    fixture *f = &d->f;
    idem_table *t = &f->table;
    unsigned slot;

    device_start(d, &usual);
    d->storage.verify = 1;
    finish(f, "panel", "a", d->now);
    slot = slot_of(d, "panel", "a");
    assert_int_equal(idemi_journal_turn(t, 0, 0), IDEM_OK);
    assert_non_null(idemi_slot_body(t, slot, 1));
    assert_int_equal(t->journal->spare, 0);
    assert_int_equal(idemi_journal_turn(t, 0, usual.sector_count), IDEM_OK);
    assert_int_equal(device_open(d), IDEM_OK);
    assert_int_equal(ask(f, "a", d->now), IDEM_REPLAY);
}

/* ---------------------------------------------------------------------------
   stale claims, volatile ones, and the last sequence
   ------------------------------------------------------------------------ */

/* Leaves key a over but not dropped, and key b finished, of one scope. */
static void make_stale(device *d)
{
    fixture *f = &d->f;

    f->config.quota = 1;
    device_start(d, &usual);
    assert_int_equal(begin(f, "s", "a", "pour", d->now), IDEM_EXECUTE);
    d->now += 5000;
    assert_int_equal(find(f, "s", "a", d->now), IDEM_E_NOT_FOUND);
    finish(f, "s", "b", d->now);
    assert_int_equal(f->table.stale, 1);
}

static void a_stale_key_takes_the_slot_that_its_quota_leaves(void **state)
{
    device *d = (device *)*state;
    fixture *f = &d->f;

    make_stale(d);
    assert_int_equal(begin(f, "s", "a", "pour", d->now), IDEM_E_FULL);
    f->config.full = IDEM_EVICT_OLDEST;
    make_stale(d);
    d->unsure = 1;
    all_fail(d, FLASH_PROG);
    assert_int_equal(begin(f, "s", "a", "pour", d->now), IDEM_E_STORAGE);
    none_fails(d, FLASH_PROG);
    while (begin(f, "s", "a", "pour", d->now) != IDEM_EXECUTE)
        assert_int_equal(f->table.stats.lost, 0);
    assert_int_equal(find(f, "s", "b", d->now), IDEM_E_NOT_FOUND);
    assert_int_equal(f->table.stale, 0);
}

/* That it is gone is written again where the sector that said so fails. */
static void a_stale_key_stays_gone_though_a_head_fails(void **state)
{
    device *d = (device *)*state;
    fixture *f = &d->f;
    idem_table *t = &f->table;
    uint32_t room;

    make_stale(d);
    // For nothing else there is room.
    room = usual.sector_size - idemi_journal_front(t) - 16;
    flash_fail(&d->medium, FLASH_PROG, 1, FLASH_UNDONE, 0);
    assert_int_equal(idemi_journal_turn(t, room, usual.sector_count),
                     IDEM_E_STORAGE);
    // What it says is that there is no key.
    assert_int_equal(idemi_slot_body(t, idemi_command_stale(t), 0)->key_len,
                     0);
    assert_int_equal(idemi_journal_turn(t, room, usual.sector_count), IDEM_OK);
    assert_int_equal(t->stale, 0);
    assert_int_equal(device_open(d), IDEM_OK);
    assert_int_equal(find(f, "s", "a", d->now), IDEM_E_NOT_FOUND);
    assert_int_equal(find(f, "s", "b", d->now), IDEM_OK);
}

/* Each of them is dropped with the head that says that it is empty. */
static void all_stale_keys_of_a_sector_go_with_the_next_head(void **state)
{
    device *d = (device *)*state;
    fixture *f = &d->f;
    idem_table *t = &f->table;

    device_start(d, &usual);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(ask(f, nth(i), d->now), IDEM_EXECUTE);
    d->now += 5000;
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(find(f, "panel", nth(i), d->now), IDEM_E_NOT_FOUND);
    assert_int_equal(t->stale, 3);
    assert_int_equal(idemi_journal_turn(t, 0, usual.sector_count), IDEM_OK);
    assert_int_equal(t->stale, 0);
    assert_int_equal(t->used, 0);
}

/* There may be more of them. */
static void idle_work_goes_on_after_a_stale_claim(void **state)
{
    device *d = (device *)*state;
    fixture *f = &d->f;

    make_stale(d);
    while (f->table.stale)
        assert_int_equal(maintain(f, d->now), IDEM_MORE);
}

/* Not that it was: only the claim is written, in a slot that the quota takes
   from another key of the scope. */
static void of_a_key_that_is_over_nothing_is_written(void **state)
{
    device *d = (device *)*state;
    fixture *f = &d->f;
    uint32_t progs;

    f->config.quota = 1;
    f->config.full = IDEM_EVICT_OLDEST;
    device_start(d, &usual);
    f->request.retention_ms = 5000;
    finish(f, "t", "x", d->now);            // the oldest, and not over
    f->request.retention_ms = 1000;
    finish(f, "s", "a", d->now);
    d->now += 1000;
    finish(f, "s", "b", d->now);
    assert_int_equal(f->table.used, 3);
    progs = d->medium.progs;
    assert_int_equal(begin(f, "s", "a", "pour", d->now), IDEM_EXECUTE);
    assert_int_equal(d->medium.progs - progs, 1);
    f->request.retention_ms = 0;
}

/* A slot has a number for its retention, and there are fewer numbers than keys.
   Who gets none of his own is remembered for the next longer time. */
static void s6_a_retention_too_many_is_made_the_next_longer_one(void **state)
{
    enum { LONGEST = IDEMI_RETENTIONS - 1 };
    static const geometry roomy =
        { "roomy", FLASH_NOR, 4, 4096, 0, 0xFF, 0, 0, 0 };
    device *d = (device *)*state;
    fixture *f = &d->f;
    char key[8];

    f->config.capacity = 2 * IDEMI_RETENTIONS;
    f->config.retention_ms = 1000 * LONGEST;
    device_start(d, &roomy);
    for (uint32_t i = 1; i < LONGEST; i++) {
        f->request.retention_ms = 1000 * ((5 * i) % LONGEST);
        snprintf(key, sizeof key, "s%u", (unsigned)i);
        finish(f, "s", key, d->now);
    }
    for (uint32_t i = 1; i <= LONGEST; i++) {
        f->request.retention_ms = 1000 * i - 500;
        snprintf(key, sizeof key, "t%u", (unsigned)i);
        finish(f, "t", key, d->now);
        assert_int_equal(find(f, "t", key, d->now), IDEM_OK);
        assert_int_equal(f->entry.left_ms, 1000 * i);
    }
    f->request.retention_ms = 1000 * LONGEST + 1;
    finish(f, "u", "x", d->now);
    assert_int_equal(find(f, "u", "x", d->now), IDEM_OK);
    assert_int_equal(f->entry.left_ms, IDEM_RETENTION_MAX);
    f->request.retention_ms = 0;
}

/* So it is at the next opening too, which has a number for it: that of the key
   that was evicted for it. */
static void s10_a_retention_that_was_made_longer_stays_so(void **state)
{
    enum { NUMBERS = IDEMI_RETENTIONS - 2 };    // beside default and longest
    device *d = (device *)*state;
    fixture *f = &d->f;

    f->config.capacity = NUMBERS;
    f->config.full = IDEM_EVICT_OLDEST;
    device_start(d, &usual);
    for (uint32_t i = 0; i < NUMBERS; i++) {
        char key[8];
        snprintf(key, sizeof key, "s%u", (unsigned)i);
        f->request.retention_ms = 10000 * (i + 1);
        finish(f, "s", key, d->now);
    }
    f->request.retention_ms = 15000;
    finish(f, "t", "x", d->now);
    f->request.retention_ms = 0;
    for (unsigned boot = 0; boot < 3; boot++) {
        assert_int_equal(find(f, "t", "x", d->now), IDEM_OK);
        assert_int_equal(f->entry.left_ms, 20000);
        assert_int_equal(device_open(d), IDEM_OK);
    }
}

/* What stands behind them in memory is no retention. */
static void a_retention_is_looked_for_among_the_known_ones(void **state)
{
    device *d = (device *)*state;
    fixture *f = &d->f;
    uint32_t behind;

    device_start(d, &usual);
    finish(f, "s", "a", d->now);
    memcpy(&behind, f->table.journal + 1, sizeof behind);
    assert_in_range(behind, 1, IDEM_RETENTION_MAX);
    f->request.retention_ms = behind;
    assert_int_equal(begin(f, "s", "b", "pour", d->now), IDEM_EXECUTE);
    assert_in_range(idemi_slot_at(&f->table, f->claim.slot)->terms, 1,
                    IDEMI_RETENTIONS - 2);
    f->request.retention_ms = 0;
}

/* Of a claim's token the low half is kept, which tells it from 2^32 others. */
static void s3_a_claim_is_not_taken_for_one_of_long_ago(void **state)
{
    fixture *f = (fixture *)*state;

    fixture_open(f, 0);
    for (uint32_t more = 0; more < 2; more++) {
        assert_int_equal(ask(f, nth(more), 0), IDEM_EXECUTE);
        f->table.token = f->claim.token + UINT32_MAX + more;
        assert_int_equal(complete(f, &f->claim, "poured", 0),
                         more ? IDEM_E_FENCED : IDEM_OK);
    }
}

/* Nothing is read or written for it but what the claim says. */
static void what_is_delivered_already_costs_no_program(void **state)
{
    device *d = (device *)*state;
    fixture *f = &d->f;

    device_start(d, &usual);
    f->outcome.confirm = 1;
    finish(f, "s", "a", d->now);
    for (unsigned again = 0; again < 2; again++) {
        uint32_t progs = d->medium.progs, reads = d->medium.reads;
        assert_int_equal(idem_delivered(&f->table, &f->claim), IDEM_OK);
        assert_int_equal(d->medium.progs - progs, !again);
        assert_int_equal(d->medium.reads - reads, 1);
    }
}

/* Of a key that is evicted its claim is read, for its scope; no outcome. */
static void to_evict_takes_one_read(void **state)
{
    device *d = (device *)*state;
    fixture *f = &d->f;
    uint32_t reads;

    f->config.full = IDEM_EVICT_OLDEST;
    device_start(d, &usual);
    for (unsigned i = 0; i < f->config.capacity; i++)
        finish(f, "s", nth(i), d->now);
    reads = d->medium.reads;
    assert_int_equal(begin(f, "s", "x", "pour", d->now), IDEM_EXECUTE);
    assert_int_equal(f->table.stats.evicted, 1);
    assert_int_equal(d->medium.reads - reads, 1);
}

static void volatile_tokens_go_on_in_another_sector(void **state)
{
    device *d = (device *)*state;
    fixture *f = &d->f;
    uint64_t last = 0;

    f->config.volatile_claims = f->config.in_ram = 1;
    device_start(d, &usual);
    for (unsigned i = 0; i < 3 * usual.sector_size; i++) {
        assert_int_equal(begin(f, "s", "a", "pour", d->now), IDEM_EXECUTE);
        assert_true(f->claim.token > last);
        last = f->claim.token;
        assert_int_equal(release(f, &f->claim, d->now), IDEM_OK);
    }
    assert_true(f->table.journal->sequence >= 3);
    assert_int_equal(device_open(d), IDEM_OK);
    assert_int_equal(begin(f, "s", "a", "pour", d->now), IDEM_EXECUTE);
    assert_true(f->claim.token > last);
}

static void with_the_last_sequence_used_nothing_new_begins(void **state)
{
    device *d = (device *)*state;
    fixture *f = &d->f;
    idem_claim held;

    device_start(d, &usual);
    assert_int_equal(begin(f, "s", "a", "pour", d->now), IDEM_EXECUTE);
    held = f->claim;
    // No such journal can be made in a test's time.  Two rounds are kept.
    f->table.journal->sequence = UINT32_MAX - 2 * usual.sector_count;
    assert_int_equal(begin(f, "s", "b", "pour", d->now), IDEM_E_SPACE);
    f->table.journal->sequence--;
    assert_int_equal(begin(f, "s", "c", "pour", d->now), IDEM_EXECUTE);
    f->table.journal->sequence = UINT32_MAX;
    f->table.journal->at = usual.sector_size - 100;
    f->table.journal->end = f->table.journal->at;
    assert_int_equal(complete(f, &held, "poured", d->now), IDEM_OK);
    f->table.journal->at = usual.sector_size;
    assert_int_equal(begin(f, "s", "b", "pour", d->now), IDEM_E_SPACE);
    assert_int_equal(find(f, "s", "a", d->now), IDEM_OK);
}

/* Many claims reserve more than one sector.  Where no sequences are left for
   that they are refused, at the cost of no more erases than any other. */
static void s7_the_last_sequences_are_for_what_was_granted(void **state)
{
    enum { CLAIMS = 60 };
    static const geometry many =
        { "many", FLASH_NOR, 4, 512, 64, 0xFF, 0, 0, 0 };
    device *d = (device *)*state;
    fixture *f = &d->f;
    idem_claim claims[CLAIMS];

    f->config.capacity = CLAIMS;
    f->request.lease_ms = IDEM_LEASE_NONE;
    for (uint32_t left = 1; left < 20; left++) {
        char key[] = "?";
        unsigned granted = 0;
        uint32_t erases;
        int result;
        device_start(d, &many);
        // No such journal can be made in a test's time.
        f->table.journal->sequence =
            UINT32_MAX - 2 * f->config.storage->sector_count - left;
        do {
            key[0] = (char)(1 + granted);
            erases = d->medium.erases;
            result = ask(f, key, d->now);
            assert_true(d->medium.erases - erases <= 1);
            if (result == IDEM_EXECUTE)
                claims[granted++] = f->claim;
        } while (result == IDEM_EXECUTE && granted < CLAIMS);
        assert_true(result == IDEM_EXECUTE || result == IDEM_E_SPACE);
        while (granted > 0)
            assert_int_equal(complete(f, &claims[--granted], "sixteen bytes ..",
                                      d->now), IDEM_OK);
    }
}

/* A token has 64 bits, of which a table keeps the lower half. */
static void what_is_owed_for_more_than_32_bits_is_delivered(void **state)
{
    device *d = (device *)*state;
    fixture *f = &d->f;
    idem_entry entry = { .id = NULL };
    uint64_t token;

    f->outcome.confirm = 1;
    device_start(d, &usual);
    token = finish(f, "s", "owed", d->now).token;
    // As if so many sectors had been written since.
    f->table.journal->sequence += UINT32_MAX / usual.sector_size + 2;
    f->table.journal->at = usual.sector_size;
    assert_int_equal(begin(f, "s", "new", "pour", d->now), IDEM_EXECUTE);
    assert_true(f->claim.token - token > UINT32_MAX);
    assert_int_equal(idem_pending(&f->table, &entry, d->now), IDEM_OK);
    assert_int_equal(idem_delivered(&f->table, &entry.claim), IDEM_OK);
    assert_int_equal(idem_pending(&f->table, &entry, d->now),
                     IDEM_E_NOT_FOUND);
    assert_int_equal(idem_check(&f->table), 0);
}

static const geometry vast =
    { "vast", FLASH_NOR, 1, 65536, 0, 0xFF, 0, 0, 0 };
enum { LONG = 1 << 14 };

/* So many bytes are left of the head, that was opened 139 years ago. */
static void leave_in_old_head(device *d, uint32_t rest)
{
    idem_journal *j = d->f.table.journal;

    // No such time passes in a test.
    j->clock_high += 1 << 10;
    j->at = j->end = vast.sector_size - rest;
}

/* The head is never short of what the numbers take; and where it is enough for
   that no sector is begun. */
static void s7_an_outcome_fits_whatever_numbers_are_in_it(void **state)
{
    static const uint8_t bytes[LONG];
    device *d = (device *)*state;
    fixture *f = &d->f;

    f->config.state_max = LONG;
    f->outcome.state = bytes;
    f->outcome.state_len = LONG;
    for (uint32_t rest = LONG + 24; rest < LONG + 34; rest++)
        for (int code = 0; code < 2; code++) {
            uint32_t progs;
            device_start(d, &vast);
            assert_int_equal(begin(f, "", "a", "pour", d->now), IDEM_EXECUTE);
            leave_in_old_head(d, rest);
            f->outcome.code = code;
            progs = d->medium.progs;
            assert_int_equal(complete(f, &f->claim, "", d->now), IDEM_OK);
            if (rest >= LONG + (code ? 31 : 26))
                assert_int_equal(d->medium.progs, progs + 1);
        }
}

static void a_claim_fits_whatever_numbers_are_in_it(void **state)
{
    enum { USUAL, RESERVES, LASTS, CAME_BEFORE, KINDS };
    device *d = (device *)*state;
    fixture *f = &d->f;
    char key[101] = { 0 };

    memset(key, 'k', sizeof key - 1);
    f->config.key_max = sizeof key;
    f->config.response_max = LONG + 1;
    for (uint32_t rest = 124; rest < 140; rest++)
        for (int kind = 0; kind < KINDS; kind++) {
            uint32_t progs;
            device_start(d, &vast);
            assert_int_equal(begin(f, "s", kind == CAME_BEFORE ? key : "a",
                                   "pour", d->now), IDEM_EXECUTE);
            d->now += LEASE;
            leave_in_old_head(d, rest);
            f->request.response_size = kind == RESERVES ? LONG : 0;
            f->request.retention_ms = kind == LASTS ? IDEM_RETENTION_MAX : 0;
            progs = d->medium.progs;
            assert_int_equal(begin(f, "s", key, "pour", d->now),
                             kind == CAME_BEFORE ? IDEM_RECOVER : IDEM_EXECUTE);
            if (rest >= sizeof key + (kind ? 36 : 26))
                assert_int_equal(d->medium.progs, progs + 1);
        }
}

/* Also where its length, or that of what is in it, takes one byte more. */
static void a_record_is_read_whatever_its_length(void **state)
{
    static uint8_t bytes[LONG];
    device *d = (device *)*state;
    fixture *f = &d->f;
    char buffer[LONG];

    f->config.state_max = LONG;
    f->outcome.state = bytes;
    for (uint32_t i = 0; i < LONG; i++)
        bytes[i] = (uint8_t)flash_mix(i);
    for (uint32_t len = 110; len < LONG; len += len == 130 ? LONG - 160 : 1) {
        size_t size = sizeof buffer;
        device_start(d, &vast);
        f->outcome.state_len = len;
        finish(f, "s", "a", d->now);
        assert_int_equal(device_open(d), IDEM_OK);
        assert_int_equal(begin(f, "s", "a", "pour", d->now), IDEM_REPLAY);
        assert_string_equal(f->buffer, "poured");
        assert_int_equal(idem_state(&f->table, buffer, &size), IDEM_OK);
        assert_int_equal(size, len);
        assert_memory_equal(buffer, bytes, len);
    }
}

/* No key is forgotten too soon, or known too long, where many times 32 bits of
   time have passed between two records, and something more. */
static void s6_months_between_two_records_are_counted(void **state)
{
    static const uint32_t more[] = { 0, 1u << 28, 1u << 31, UINT32_MAX };
    device *d = (device *)*state;
    fixture *f = &d->f;

    f->config.capacity = 6;
    f->request.lease_ms = IDEM_LEASE_NONE;
    for (unsigned i = 0; i < COUNT(more); i++)
        for (unsigned times = 0; times < 4; times++) {
            idem_claim b, c;
            device_start(d, &usual);
            assert_int_equal(elapse(f, 10), IDEM_OK);
            finish(f, "s", "a", d->now);
            assert_int_equal(begin(f, "s", "b", "pour", d->now), IDEM_EXECUTE);
            b = f->claim;
            assert_int_equal(begin(f, "s", "c", "pour", d->now), IDEM_EXECUTE);
            c = f->claim;
            for (unsigned n = 0; n < times; n++)
                assert_int_equal(elapse(f, UINT32_MAX), IDEM_OK);
            assert_int_equal(elapse(f, times), IDEM_OK);
            assert_int_equal(elapse(f, more[i]), IDEM_OK);
            assert_int_equal(complete(f, &b, "poured", d->now), IDEM_OK);
            assert_int_equal(complete(f, &c, "poured", d->now + 1), IDEM_OK);
            for (uint32_t age = 1; age < 3; age++) {
                assert_int_equal(device_open(d), IDEM_OK);
                assert_int_equal(find(f, "s", "b", d->now), IDEM_OK);
                assert_int_equal(f->entry.age_ms, age);
                assert_int_equal(find(f, "s", "a", d->now),
                                 times || i ? IDEM_E_NOT_FOUND : IDEM_OK);
                finish(f, "t", nth(age), d->now + 1);
            }
            assert_int_equal(device_open(d), IDEM_OK);
            assert_int_equal(elapse(f, UINT32_MAX), IDEM_OK);
            assert_int_equal(find(f, "s", "b", d->now), IDEM_E_NOT_FOUND);
        }
}

/* The first header of a boot has the time of the opening.  What ends 50 days
   after that, which 32 bits do not tell, ends a little sooner. */
static void s4_doubt_that_is_found_late_lasts(void **state)
{
    enum { DAY = 86400000 };
    device *d = (device *)*state;
    fixture *f = &d->f;

    f->config.retention_ms = IDEM_RETENTION_MAX;
    device_start(d, &usual);
    assert_int_equal(elapse(f, 20 * DAY), IDEM_OK);
    idemi_journal_lose(&f->table);
    // Power goes when the two headers are there: so time goes on from them.
    flash_cut(&d->medium, 2, 0);
    assert_int_equal(begin(f, "s", "a", "pour", d->now), IDEM_E_STORAGE);
    flash_boot(&d->medium);
    assert_int_equal(device_open(d), IDEM_OK);
    for (unsigned days = 0; days < 40; days += 20) {
        assert_int_equal(begin(f, "s", nth(days / 20), "pour", d->now),
                         IDEM_RECOVER);
        assert_int_equal(elapse(f, 20 * DAY), IDEM_OK);
    }
    assert_int_equal(begin(f, "s", "c", "pour", d->now), IDEM_RECOVER);
}

/* Doubt goes on over restarts, and ends, wherever the 64 bits of time are. */
static void s4_doubt_lasts_beyond_32_bits_of_time(void **state)
{
    device *d = (device *)*state;
    fixture *f = &d->f;

    for (unsigned times = 0; times < 4; times++) {
        device_start(d, &usual);
        for (unsigned n = 0; n < times; n++)
            assert_int_equal(elapse(f, UINT32_MAX), IDEM_OK);
        flash_flip(&d->medium, pass_by(d) - 6, 0);
        pass_by(d);
        assert_int_equal(device_open(d), IDEM_OK);
        assert_int_equal(f->table.stats.lost, 1);
        assert_int_equal(begin(f, "s", "a", "pour", d->now), IDEM_RECOVER);
        assert_int_equal(device_open(d), IDEM_OK);
        assert_int_equal(f->table.stats.lost, 0);
        assert_int_equal(elapse(f, RETENTION / 2), IDEM_OK);
        assert_int_equal(begin(f, "s", "b", "pour", d->now), IDEM_RECOVER);
        assert_int_equal(elapse(f, RETENTION / 2), IDEM_OK);
        assert_int_equal(begin(f, "s", "c", "pour", d->now), IDEM_EXECUTE);
        assert_int_equal(device_open(d), IDEM_OK);
        assert_int_equal(begin(f, "s", "d", "pour", d->now), IDEM_EXECUTE);
    }
}

/* ---------------------------------------------------------------------------
   idle work
   ------------------------------------------------------------------------ */

static void idle_work_on_torn_storage_erases(void **state)
{
    device *d = (device *)*state;
    fixture *f = &d->f;

    device_start(d, &usual);
    d->unsure = 1;
    all_fail(d, FLASH_PROG);
    for (unsigned i = 0; f->table.journal->blank != IDEMI_TORN; i++) {
        assert_true(i < usual.sector_count);
        assert_int_equal(begin(f, "s", "a", "pour", d->now), IDEM_E_STORAGE);
    }
    none_fails(d, FLASH_PROG);
    assert_int_equal(maintain(f, d->now), IDEM_MORE);
    assert_int_equal(f->table.journal->spare, 1);
    assert_int_equal(begin(f, "s", "a", "pour", d->now), IDEM_EXECUTE);
}

/* A table of sixteen keys, most of which must be carried soon. */
static void fill_soon_carried(device *d, unsigned before)
{
    static const geometry roomy =
        { "roomy", FLASH_NOR, 1, 2048, 0, 0xFF, 0, 0, 0 };
    fixture *f = &d->f;

    f->config.capacity = 16;
    device_start(d, &roomy);
    for (unsigned i = 0; i < 12; i++)
        finish(f, "s", nth(i), d->now);
    for (; before > 0; before--) {
        assert_int_equal(begin(f, "t", "x", "pour", d->now), IDEM_EXECUTE);
        assert_int_equal(release(f, &f->claim, d->now), IDEM_OK);
    }
}

static void check_soon_carried(device *d)
{
    for (unsigned i = 0; i < 12; i++) {
        assert_int_equal(begin(&d->f, "s", nth(i), "pour", d->now),
                         IDEM_REPLAY);
        assert_string_equal(d->f.buffer, "poured");
    }
}

static void idle_work_carries_some_keys_and_no_more_at_a_time(void **state)
{
    device *d = (device *)*state;
    const idem_table *t = &d->f.table;
    unsigned most = 0;
    uint32_t least = UINT32_MAX;

    for (unsigned before = 0; before < 400; before += 4) {
        int result = IDEM_MORE;
        fill_soon_carried(d, before);
        for (unsigned n = 0; result == IDEM_MORE; n++) {
            uint32_t progs = d->medium.progs, rest = idemi_journal_rest(t);
            result = maintain(&d->f, d->now);
            assert_in_range(n, 0, 50);
            progs = d->medium.progs - progs;
            assert_in_range(progs, 0, IDEMI_MAINTAIN_CARRY);
            assert_true(progs < IDEMI_MAINTAIN_CARRY || result == IDEM_MORE);
            most = progs > most ? progs : most;
            if (progs)
                least = rest < least ? rest : least;
        }
        assert_int_equal(result, IDEM_OK);
    }
    assert_int_equal(most, IDEMI_MAINTAIN_CARRY);
    // As long as two of the longest records fit.
    assert_in_range(least, 2 * t->journal->carry_max,
                    3 * t->journal->carry_max - 1);
}

/* Where none is needed yet idle work carries nothing before the last quarter of
   a sector: what is needed now may be over then. */
static void idle_work_waits_for_the_last_quarter_of_a_sector(void **state)
{
    device *d = (device *)*state;
    const idem_table *t = &d->f.table;
    uint32_t most = 0;

    d->f.config.retention_ms = IDEM_RETENTION_MAX;
    device_start(d, &even);
    finish(&d->f, "s", "a", d->now);
    for (unsigned n = 0; n < 200; n++) {
        uint32_t progs = d->medium.progs, rest = idemi_journal_rest(t);
        int needed = idemi_journal_gap(t, t->journal->clean) < t->journal->low;
        while (maintain(&d->f, d->now) == IDEM_MORE)
            ;
        if (d->medium.progs != progs && !needed)
            most = rest > most ? rest : most;
        pass_by(d);
    }
    assert_int_equal(most, even.sector_size / 4);
}

static void s7_idle_work_that_fails_loses_nothing(void **state)
{
    device *d = (device *)*state;
    unsigned failed = 0;

    for (unsigned before = 0; before < 400; before += 9)
        for (unsigned n = 0; n < 8; n++) {
            int result = IDEM_MORE;
            fill_soon_carried(d, before);
            flash_fail(&d->medium, FLASH_PROG, n, FLASH_HALF, 0);
            while (result == IDEM_MORE)
                result = maintain(&d->f, d->now);
            assert_true(result == IDEM_OK || result == IDEM_E_STORAGE);
            failed += result == IDEM_E_STORAGE;
            none_fails(d, FLASH_PROG);
            check_soon_carried(d);
            assert_int_equal(device_open(d), IDEM_OK);
            assert_int_equal(d->f.table.stats.lost, 0);
            check_soon_carried(d);
        }
    assert_true(failed > 0);
}

/* What is programmed cannot be read back for long, on storage that nothing was
   written to: in the end every sector has been tried. */
static void idle_work_finds_no_sector_where_all_were_tried(void **state)
{
    device *d = (device *)*state;
    fixture *f = &d->f;
    unsigned none = 0;

    device_start(d, &usual);
    d->unsure = 1;
    all_fail(d, FLASH_READ);
    for (unsigned n = 0; n < 3 * usual.sector_count; n++) {
        int result;
        assert_int_equal(begin(f, "s", "a", "pour", d->now), IDEM_E_STORAGE);
        result = maintain(f, d->now);
        assert_true(result >= 0);
        none += result == IDEM_OK && f->table.journal->blank == IDEMI_TORN;
    }
    assert_true(none > 0);
    none_fails(d, FLASH_READ);
    assert_int_equal(begin(f, "s", "a", "pour", d->now), IDEM_EXECUTE);
    assert_int_equal(complete(f, &f->claim, "poured", d->now), IDEM_OK);
    assert_int_equal(device_open(d), IDEM_OK);
    assert_int_equal(begin(f, "s", "a", "pour", d->now), IDEM_REPLAY);
}

enum { HELD_KEYS = 12 };

/* Claims many keys; who is refused asks again. */
static void claim_many(device *d, idem_claim *claims, unsigned count)
{
    fixture *f = &d->f;

    for (unsigned i = 0; i < count; i++) {
        int result = IDEM_E_STORAGE;
        for (unsigned n = 0; n < 8 && result == IDEM_E_STORAGE; n++)
            result = begin(f, "held", nth(i), "pour", d->now);
        assert_int_equal(result, IDEM_EXECUTE);
        claims[i] = f->claim;
    }
}

/* A table of sixteen keys, with some sectors more than it takes. */
static void start_with_more(device *d, const geometry *g, uint32_t more)
{
    geometry larger = *g;

    d->f.config.capacity = 16;
    assert_true(device_medium(d, g));
    larger.sector_count = d->medium.sector_count + more;
    device_start(d, &larger);
}

/* Wherever the head is, and whatever failed: the outcomes of all who were
   granted a claim fit, with the longest response and state; and none waits for
   an erase. */
static void hold_many(device *d, const geometry *g, unsigned before, int call,
                      unsigned n)
{
    fixture *f = &d->f;
    idem_claim claims[HELD_KEYS];
    uint32_t erases;

    memset(&f->outcome, 0, sizeof f->outcome);
    start_with_more(d, g, call < FLASH_CALLS);
    for (unsigned i = 0; i < 4; i++)
        finish(f, "s", nth(i), d->now);
    for (; before > 0; before--)
        pass_by(d);
    if (call < FLASH_CALLS)
        flash_fail(&d->medium, call, n, FLASH_HALF, 0);
    claim_many(d, claims, HELD_KEYS);
    flash_fail(&d->medium, FLASH_PROG, 0, 0, 0);
    flash_fail(&d->medium, FLASH_READ, 0, 0, 0);
    f->outcome.state = "eight by";
    f->outcome.state_len = STATE_MAX;
    f->outcome.code = INT32_MIN;
    erases = d->medium.erases;
    for (unsigned i = 0; i < HELD_KEYS; i++)
        assert_int_equal(complete(f, &claims[i], "sixteen bytes or", d->now),
                         IDEM_OK);
    assert_int_equal(d->medium.erases, erases);
    assert_int_equal(device_open(d), IDEM_OK);
    assert_int_equal(f->table.stats.lost, 0);
    for (unsigned i = 0; i < HELD_KEYS; i++) {
        assert_int_equal(begin(f, "held", nth(i), "pour", d->now),
                         IDEM_REPLAY);
        assert_string_equal(f->buffer, "sixteen bytes or");
    }
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(begin(f, "s", nth(i), "pour", d->now), IDEM_REPLAY);
}

static const geometry small[] = {
    { "nor",      FLASH_NOR,     4, 512,  0, 0xFF, 0, 0, 0 },
    { "in place", FLASH_INPLACE, 1, 512,  0, 0x00, 0, 0, 0 },
    { "larger",   FLASH_NOR,     1, 1024, 0, 0xFF, 0, 0, 0 },
};

static void s7_many_claims_are_kept_wherever_the_head_is(void **state)
{
    for (unsigned i = 0; i < COUNT(small); i++)
        for (unsigned before = 0; before < 500; before += 3)
            hold_many((device *)*state, &small[i], before, FLASH_CALLS, 0);
}

static void s7_many_claims_are_kept_whatever_fails(void **state)
{
    static const int calls[] = { FLASH_READ, FLASH_PROG };

    for (unsigned i = 0; i < COUNT(small); i++)
        for (unsigned before = 0; before < 500; before += 29)
            for (unsigned n = 0; n < 24; n++)
                for (unsigned c = 0; c < COUNT(calls); c++)
                    hold_many((device *)*state, &small[i], before, calls[c],
                              n);
}

/* Finished keys, commands that pass by, then claims of which nothing is
   written: so the head stays as it was while they reserve sector after
   sector. */
static void hold_volatile(device *d, unsigned finished, unsigned before,
                          unsigned held)
{
    static const geometry coarse =
        { "coarse", FLASH_NOR, 64, 2048, 0, 0xFF, 1, 0, 0 };
    fixture *f = &d->f;
    idem_claim claims[36];
    char key[] = "?";
    uint32_t erases;

    f->config.capacity = held + finished;
    device_start(d, &coarse);
    for (unsigned n = 0; n < finished; n++) {
        key[0] = (char)('a' + n);
        finish(f, "s", key, d->now);
    }
    for (unsigned n = 0; n < before; n++) {
        finish(f, "t", "x", d->now);
        assert_int_equal(forget(f, "t", "x", d->now), IDEM_OK);
    }
    for (unsigned n = 0; n < held; n++) {
        key[0] = (char)('a' + n);
        erases = d->medium.erases;
        assert_int_equal(ask(f, key, d->now), IDEM_EXECUTE);
        assert_in_range(d->medium.erases - erases, 0, 1);
        claims[n] = f->claim;
    }
    erases = d->medium.erases;
    for (unsigned n = 0; n < held; n++)
        assert_int_equal(complete(f, &claims[n], "sixteen bytes or", d->now),
                         IDEM_OK);
    assert_int_equal(d->medium.erases, erases);
}

static void l3_many_volatile_claims_wait_for_one_erase_each(void **state)
{
    device *d = (device *)*state;

    d->f.config.key_max = 16;
    d->f.config.volatile_claims = 1;
    d->f.config.state_max = 64;
    d->f.config.retention_ms = IDEM_RETENTION_MAX;
    for (unsigned before = 100; before < 170; before++)
        hold_volatile(d, 10, before, 26);
    for (unsigned before = 320; before < 340; before++)
        hold_volatile(d, 20, before, 9);
    for (unsigned before = 355; before < 395; before++)
        hold_volatile(d, 0, before, 36);
}

/* Nor one by one, where a sector holds but a few outcomes, and what is kept
   takes all but what must be dead. */
static void l3_each_volatile_claim_waits_for_one_erase_at_most(void **state)
{
    static const geometry scarce =
        { "scarce", FLASH_NOR, 64, 1920, 0, 0xFF, 1, 0, 0 };
    static const char response[346] = "as long as it may be";
    device *d = (device *)*state;
    fixture *f = &d->f;
    char key[] = "?";

    f->config.volatile_claims = 1;
    f->config.capacity = 29;
    f->config.state_max = 0;
    f->config.response_max = sizeof response - 1;
    f->outcome.response = response;
    d->seed = 1;
    for (unsigned kept = 9; kept < 29; kept++) {
        device_start(d, &scarce);
        for (unsigned n = 0; n < kept + 150; n++) {
            uint32_t erases = d->medium.erases;
            key[0] = (char)('0' + (n < kept ? n : kept));
            assert_int_equal(ask(f, key, d->now), IDEM_EXECUTE);
            assert_in_range(d->medium.erases - erases, 0, 1);
            erases = d->medium.erases;
            f->outcome.response_len = dice(&d->seed) % sizeof response;
            assert_int_equal(idem_complete(&f->table, &f->claim, &f->outcome,
                                           d->now), IDEM_OK);
            assert_int_equal(d->medium.erases, erases);
            if (n >= kept)
                assert_int_equal(forget(f, "panel", key, d->now), IDEM_OK);
            assert_in_range(d->medium.erases - erases, 0, 1);
        }
    }
}

/* To the byte: every sector but the last may end with less than an outcome.
   Where it is not, room is made. */
static void what_is_just_enough_for_outcomes_is_enough(void **state)
{
    device *d = (device *)*state;
    idem_table *t = &d->f.table;
    idem_journal *j;
    uint32_t room, spare, most;

    device_start(d, &in_place);
    play(d, NULL, "B0");
    j = t->journal;
    spare = idemi_journal_spare(t);
    assert_int_equal(spare, idemi_journal_gap(t, j->clean) - 2);
    room = in_place.sector_size - idemi_journal_front(t) - j->outcome_max;
    most = spare * room / j->outcome_max + 1;
    assert_true(spare > 1);
    j->at = in_place.sector_size - (most * j->outcome_max - spare * room);
    assert_true(idemi_journal_enough(t, 0, most));
    assert_false(idemi_journal_enough(t, 1, most));
    assert_int_equal(idemi_journal_reserve(t, 1, most), IDEM_OK);
    assert_true(idemi_journal_enough(t, 1, most));
}

/* A failure leaves nothing spare: the next claim makes good all that those
   before it need.  With such granules an outcome takes all that is kept. */
static void make_good(device *d, const geometry *g, uint16_t response_max)
{
    static const char response[118] = "as long as it may be";
    fixture *f = &d->f;
    idem_claim claims[HELD_KEYS];
    idem_outcome longest = { .code = INT32_MIN, .state = "eight by",
                             .state_len = STATE_MAX, .response = response,
                             .response_len = response_max };

    f->config.response_max = response_max;
    for (unsigned n = 0; n < 3; n++)
        for (unsigned held = 4; held <= HELD_KEYS; held++) {
            uint32_t erases;
            start_with_more(d, g, 2);
            claim_many(d, claims, held - 1);
            // In the head; then in the one that is begun after it.
            flash_fail(&d->medium, FLASH_PROG, 0, FLASH_HALF, 0);
            assert_int_equal(begin(f, "t", "x", "pour", d->now),
                             IDEM_E_STORAGE);
            flash_fail(&d->medium, FLASH_PROG, n, FLASH_HALF, 0);
            assert_int_equal(begin(f, "t", "x", "pour", d->now),
                             IDEM_E_STORAGE);
            assert_int_equal(begin(f, "t", "x", "pour", d->now),
                             IDEM_EXECUTE);
            claims[held - 1] = f->claim;
            erases = d->medium.erases;
            for (unsigned i = 0; i < held; i++)
                assert_int_equal(idem_complete(&f->table, &claims[i], &longest,
                                               d->now), IDEM_OK);
            assert_int_equal(d->medium.erases, erases);
        }
}

static void s7_what_a_failure_took_the_next_claim_makes_good(void **state)
{
    static const geometry whole =
        { "whole", FLASH_NOR, 64, 640, 0, 0xFF, 0, 0, 0 };
    // Of a sector four fifths of an outcome are left.
    static const geometry odd =
        { "odd", FLASH_NOR, 32, 736, 0, 0xFF, 0, 0, 0 };

    make_good((device *)*state, &whole, 80);
    make_good((device *)*state, &odd, 118);
}

/* Records of two granules or one, which fill each sector to its end. */
static void a_sector_is_used_up_before_the_next_is_begun(void **state)
{
    char longest[87] = { 0 };
    device *d = (device *)*state;
    fixture *f = &d->f;

    memset(longest, 'r', sizeof longest - 1);
    f->config.response_max = sizeof longest - 1;
    f->outcome.state = "eight by";
    f->outcome.state_len = STATE_MAX;
    device_start(d, &even);
    for (uint32_t sector = 1; sector < 40; sector++)
        for (unsigned n = 0; n < (sector % 2 ? 7 : 5); n++) {
            uint32_t erases;
            assert_int_equal(begin(f, "t", "x", "pour", d->now), IDEM_EXECUTE);
            erases = d->medium.erases;
            if (sector % 2 || n == 0) {
                assert_int_equal(release(f, &f->claim, d->now), IDEM_OK);
            } else {
                assert_int_equal(complete(f, &f->claim, longest, d->now),
                                 IDEM_OK);
                d->now += RETENTION;
            }
            assert_int_equal(d->medium.erases, erases);
            assert_int_equal(f->table.journal->sequence, sector);
        }
}

/* An outcome without a state that takes two granules to the byte. */
static void a_sector_ends_with_an_outcome_to_the_byte(void **state)
{
    char response[103] = { 0 };
    device *d = (device *)*state;
    fixture *f = &d->f;
    const idem_journal *j;

    memset(response, 'r', sizeof response - 1);
    f->config.response_max = sizeof response - 1;
    device_start(d, &even);
    assert_int_equal(begin(f, "t", "y", "pour", d->now), IDEM_EXECUTE);
    j = f->table.journal;
    while (idemi_journal_rest(&f->table) > 3 * even.granule)
        (void)pass_by(d);
    assert_int_equal(idemi_journal_rest(&f->table), 3 * even.granule);
    assert_int_equal(begin(f, "t", "x", "pour", d->now), IDEM_EXECUTE);
    assert_int_equal(complete(f, &f->claim, response, d->now), IDEM_OK);
    assert_int_equal(j->sequence, 1);
    assert_int_equal(idemi_journal_rest(&f->table), 0);
}

/* A volatile claim needs no room in the head. */
static void a_volatile_claim_is_granted_with_a_full_head(void **state)
{
    static const geometry roomy =
        { "roomy", FLASH_NOR, 64, 1024, 16, 0xFF, 1, 0, 0 };
    device *d = (device *)*state;
    fixture *f = &d->f;
    uint32_t progs;

    f->config.volatile_claims = 1;
    device_start(d, &roomy);
    do {
        finish(f, "t", "x", d->now);
        assert_int_equal(forget(f, "t", "x", d->now), IDEM_OK);
    } while (idemi_journal_rest(&f->table));
    while (maintain(f, d->now) == IDEM_MORE)
        continue;
    progs = d->medium.progs;
    assert_int_equal(begin(f, "t", "x", "pour", d->now), IDEM_EXECUTE);
    assert_int_equal(d->medium.progs, progs);
}

/* The same while claims are open that reserve more than half of it, if they are
   written: then nothing is due before. */
static void a_sector_is_used_up_though_claims_are_open(void **state)
{
    enum { FEW = 4 };
    device *d = (device *)*state;
    const idem_table *t = &d->f.table;
    idem_claim claims[FEW];
    uint32_t len;

    start_with_more(d, &tight, 0);
    for (unsigned i = 0; i < 11; i++)
        finish(&d->f, "s", nth(i), d->now);
    claim_many(d, claims, FEW);
    len = t->journal->at;
    (void)pass_by(d);
    len = t->journal->at - len;
    for (unsigned n = 0; n < 300; n++) {
        int fits = idemi_journal_enough(t, len, t->claimed + 1);
        uint32_t sequence = t->journal->sequence;
        assert_int_equal(begin(&d->f, "t", "x", "pour", d->now), IDEM_EXECUTE);
        if (fits)
            assert_int_equal(t->journal->sequence, sequence);
        assert_int_equal(release(&d->f, &d->f.claim, d->now), IDEM_OK);
    }
}

/* Large granules and outcomes: the claims of one head reserve several. */
static void s7_what_a_head_of_claims_reserves_is_made_in_place(void **state)
{
    static const geometry coarse =
        { "coarse", FLASH_INPLACE, 128, 4096, 0, 0x00, 0, 0, 0 };
    device *d = (device *)*state;

    d->f.config.response_max = d->f.config.state_max = 300;
    for (unsigned before = 0; before < 150; before++)
        hold_many(d, &coarse, before, FLASH_CALLS, 0);
}

/* Who makes room for one more, by cleaning or in a new head that fails, leaves
   in this one what the claims before have reserved there: they complete though
   no other sector takes anything. */
static void make_room(device *d, unsigned kept, unsigned held)
{
    static const geometry coarse =
        { "coarse", FLASH_INPLACE, 64, 1024, 8, 0xFF, 0, 0, 0 };
    fixture *f = &d->f;
    idem_table *t = &f->table;
    const idem_journal *j;
    idem_claim claims[HELD_KEYS];

    f->config.capacity = 12;
    f->config.key_max = 8;
    f->config.response_max = 9;
    f->config.state_max = 0;
    device_start(d, &coarse);
    for (unsigned i = 0; i < kept; i++)
        finish(f, "s", nth(i), d->now);
    (void)pass_by(d);
    j = t->journal;
    pass_to(d, (j->head + 1) % coarse.sector_count);
    claim_many(d, claims, held);
    while (idemi_journal_rest(t) >= 64 + (held + 1) * j->outcome_max)
        (void)pass_by(d);
    assert_true(idemi_journal_rest(t) >= held * j->outcome_max);
    while (idemi_journal_gap(t, j->tail) > 2)
        idemi_journal_retire(t, idemi_journal_next(t, j->head));
    memset(d->medium.bad, FLASH_BAD_PROG, d->medium.sector_count);
    d->medium.bad[j->head] = 0;
    assert_int_equal(idemi_journal_reserve(t, 64, held + 1),
                     kept ? IDEM_E_STORAGE : IDEM_OK);
    for (unsigned i = 0; i < held; i++)
        assert_int_equal(complete(f, &claims[i], "nine byte", d->now),
                         IDEM_OK);
}

static void s7_room_is_not_made_at_the_cost_of_earlier_claims(void **state)
{
    make_room((device *)*state, 6, 1);
    make_room((device *)*state, 6, 5);
    make_room((device *)*state, 0, 5);
}

/* Giving back goes on where no sector can be made ready for what is reserved;
   and is refused, but nothing else, where none is left to go to. */
static void claims_are_given_back_while_no_sector_is_to_be_had(void **state)
{
    device *d = (device *)*state;
    fixture *f = &d->f;
    idem_table *t = &f->table;
    enum { FEW = 8 };
    idem_claim claims[FEW];
    uint32_t sector;

    f->config.capacity = 16;
    device_start(d, &small[0]);
    claim_many(d, claims, FEW);
    // One less than there were, and no other may be used.
    assert_true(t->journal->spare > idemi_journal_beside(t, FEW - 1));
    t->journal->spare = idemi_journal_beside(t, FEW - 1);
    sector = idemi_journal_unspared(t);
    for (; sector != t->journal->tail; sector = idemi_journal_after(t, sector))
        idemi_journal_sector(t, sector)->link = IDEMI_ASIDE;
    assert_int_equal(release(f, &claims[0], d->now), IDEM_OK);
    for (sector = 0; sector < d->medium.sector_count; sector++)
        if (idemi_journal_sector(t, sector)->link == IDEMI_ASIDE)
            idemi_journal_retire(t, sector);
    // The last is for outcomes, and for them what failed gets another chance.
    for (unsigned left = 2; left > 0; left--) {
        uint32_t progs = d->medium.progs, erases = d->medium.erases;
        while (t->stats.retired < d->medium.sector_count - left) {
            sector = idemi_journal_next(t, t->journal->head);
            idemi_journal_retire(t, sector);
        }
        assert_int_equal(release(f, &claims[1], d->now), IDEM_E_SPACE);
        assert_int_equal(d->medium.progs, progs);
        assert_int_equal(d->medium.erases, erases);
        assert_int_equal(t->stats.retired, d->medium.sector_count - left);
    }
    for (unsigned i = 1; i < FEW; i++)
        assert_int_equal(begin(f, "held", nth(i), "pour", d->now), IDEM_BUSY);
}

/* Many keys are carried by a call that leaves little room, to a head that
   fails; then by one that would leave more than there is. */
static void s2_many_keys_are_carried_twice(void **state)
{
    device *d = (device *)*state;
    fixture *f = &d->f;
    unsigned failed[2] = { 0, 0 };

    for (unsigned before = 0; before < 250; before++)
        for (unsigned n = 0; n < 32; n++) {
            int completes = n % 2;
            start_with_more(d, &small[0], 1);
            for (unsigned i = 0; i < 12; i++)
                finish(f, "s", nth(i), d->now);
            for (unsigned i = 0; i < before; i++)
                pass_by(d);
            assert_int_equal(begin(f, "t", "x", "pour", d->now), IDEM_EXECUTE);
            if (idemi_journal_rest(&f->table) >= IDEMI_MARK_FIXED)
                break;
            flash_fail(&d->medium, FLASH_PROG, n / 2, FLASH_HALF, 0);
            failed[completes] +=
                (completes ? complete(f, &f->claim, "poured", d->now)
                           : release(f, &f->claim, d->now)) == IDEM_E_STORAGE;
            none_fails(d, FLASH_PROG);
            assert_int_equal(begin(f, "t", "y", "pour", d->now), IDEM_EXECUTE);
            assert_int_equal(device_open(d), IDEM_OK);
            assert_int_equal(f->table.stats.lost, 0);
            check_soon_carried(d);
        }
    assert_true(failed[0] > 0 && failed[1] > 0);
}

/* All sectors are given up but three after the head, and the oldest is so full
   of keys that one does not hold them when they are written anew: two must be
   dead behind a head. */
static void what_cannot_be_carried_is_told_and_kept(void **state)
{
    static const geometry dense =
        { "dense", FLASH_NOR, 1, 1024, 0, 0xFF, 0, 0, 0 };
    enum { MANY = 60 };
    device *d = (device *)*state;
    fixture *f = &d->f;
    idem_table *t = &f->table;
    uint32_t sector;

    f->config.capacity = MANY;
    f->config.key_max = 8;
    f->config.state_max = 0;
    device_start(d, &dense);
    for (unsigned n = 0; n < MANY; n++) {
        const char key[] = { (char)(1 + n), 0 };
        finish(f, "", key, d->now);
    }
    assert_int_equal(idemi_journal_turn(t, 0, d->medium.sector_count), IDEM_OK);
    assert_int_equal(idemi_journal_turn(t, 0, d->medium.sector_count - 2),
                     IDEM_OK);
    assert_int_equal(idemi_journal_distance(t, t->journal->tail,
                                            t->journal->head), 1);
    d->now += RETENTION / 2;    // so that they take more room
    assert_int_equal(live(f, d->now), MANY);
    sector = t->journal->head;
    for (unsigned n = 0; n < 3; n++)
        sector = idemi_journal_after(t, sector);
    while ((sector = idemi_journal_after(t, sector)) != t->journal->tail)
        idemi_journal_retire(t, sector);
    // The first need not carry any, and is to leave all its room; so the second
    // must carry all.
    assert_int_equal(idemi_journal_turn(t, dense.sector_size, 3), IDEM_OK);
    assert_int_equal(idemi_journal_turn(t, dense.sector_size, 3), IDEM_E_SPACE);
    assert_int_equal(idem_check(t), 0);
    for (unsigned n = 0; n < MANY; n++) {
        const char key[] = { (char)(1 + n), 0 };
        assert_int_equal(begin(f, "", key, "pour", d->now), IDEM_REPLAY);
    }
}

/* So many sectors cannot be erased any more, every second of those to come. */
static void wear_out(device *d, unsigned bad)
{
    uint32_t sector = d->f.table.journal->head;

    for (; bad > 0; bad--) {
        sector = idemi_journal_after(&d->f.table, sector);
        d->medium.bad[sector] = FLASH_BAD_ERASE;
        sector = idemi_journal_after(&d->f.table, sector);
    }
}

/* Who holds a claim completes, though sector after sector turns out to be worn,
   up to nine of 19, while others come and go, and are refused in the end. */
static void s7_claims_complete_though_sectors_wear_out(void **state)
{
    device *d = (device *)*state;
    fixture *f = &d->f;
    idem_claim claims[HELD_KEYS];
    unsigned refused = 0;

    f->config.capacity = 16;
    for (unsigned before = 0; before < 300; before += 37)
        for (unsigned bad = 0; bad < 10; bad++) {
            device_start(d, &small[0]);
            for (unsigned n = 0; n < before; n++)
                pass_by(d);
            claim_many(d, claims, HELD_KEYS);
            wear_out(d, bad);
            for (unsigned n = 0; n < 100; n++) {
                int result = begin(f, "t", "x", "pour", d->now);
                if (result == IDEM_EXECUTE)
                    result = release(f, &f->claim, d->now);
                else
                    (void)forget(f, "t", "x", d->now);
                refused += result == IDEM_E_SPACE;
            }
            for (unsigned i = 0; i < HELD_KEYS; i++) {
                int result = IDEM_E_STORAGE;
                for (unsigned n = 0; n < 20 && result == IDEM_E_STORAGE; n++)
                    result = complete(f, &claims[i], "sixteen bytes or",
                                      d->now);
                assert_int_equal(result, IDEM_OK);
            }
            assert_int_equal(device_open(d), IDEM_OK);
            assert_int_equal(f->table.stats.lost, 0);
            for (unsigned i = 0; i < HELD_KEYS; i++)
                assert_int_equal(find(f, "held", nth(i), d->now), IDEM_OK);
        }
    assert_true(refused > 0);
}

/* One sector after another fails, until all get another chance but one that a
   key was carried to.  That is free again with the next head, and comes next,
   while the one behind it is being erased in idle time. */
static void s8_an_erase_under_way_is_of_one_sector(void **state)
{
    device *d = (device *)*state;
    fixture *f = &d->f;
    idem_table *t = &f->table;
    geometry ring = usual;
    unsigned came = 0;

    ring.sector_count = 12;
    for (unsigned before = 180; before < 220; before += 3)
        for (unsigned way = 2; way < 10; way++) {
            unsigned carried = way / 2;
            int usable = 1, idle = way % 2;
            device_start(d, &ring);
            d->erasing = 0;
            device_split(d, 1);
            finish(f, "s", "a", d->now);
            assert_int_equal(begin(f, "s", "held", "pour", d->now),
                             IDEM_EXECUTE);
            for (unsigned n = 0; n < before; n++)
                pass_by(d);
            for (unsigned n = 0; usable; n++) {
                usable = idemi_journal_usable(t);
                flash_fail(&d->medium, FLASH_PROG, n == carried, FLASH_UNDONE,
                           1);
                assert_int_equal(begin(f, "s", "b", "pour", d->now),
                                 IDEM_E_STORAGE);
            }
            none_fails(d, FLASH_PROG);
            for (unsigned n = 0; n < 3; n++)
                (void)maintain(f, d->now);
            came += d->erasing &&
                    idemi_journal_sector(t, idemi_recover_before(
                        t, d->erasing_sector, 1))->link == IDEMI_ASIDE;
            for (unsigned n = 0; n < 50; n++) {
                uint32_t head = t->journal->head;
                pass_by(d);
                if (!idle || head == t->journal->head)
                    continue;
                d->polls_left = 1;
                assert_int_equal(maintain(f, d->now), IDEM_MORE);
            }
            assert_string_equal(flash_text(&d->medium), "no violation");
        }
    assert_true(came > 0);
}

/* ---------------------------------------------------------------------------
   numbers near their limits
   ------------------------------------------------------------------------ */

static void more_losses_than_a_byte_counts_are_255(void **state)
{
    device *d = (device *)*state;
    idem_table *t = &d->f.table;
    idem_journal *j;
    unsigned sum;

    device_start(d, &usual);
    play(d, NULL, "B0 C0");
    j = t->journal;
    j->clean = idemi_recover_before(t, j->head, 2);
    idemi_journal_sector(t, j->clean)->lost = 200;
    assert_int_equal(idemi_journal_lost(t, &sum), 200);
    idemi_journal_sector(t, idemi_recover_before(t, j->head, 1))->lost = 100;
    assert_int_equal(idemi_journal_lost(t, &sum), 255);
    j->clean = j->head;
}

static void only_sectors_out_of_the_ring_are_set_aside(void **state)
{
    device *d = (device *)*state;
    idem_table *t = &d->f.table;
    idem_journal *j;
    uint32_t next, sector;

    device_start(d, &usual);
    play(d, NULL, "B0 C0");
    device_restart(d);
    j = t->journal;
    next = idemi_journal_after(t, j->head);
    j->clean = idemi_recover_before(t, j->head, 1);
    idemi_journal_set_aside(t, IDEMI_NOWHERE);
    idemi_journal_set_aside(t, idemi_storage_place(t, j->head, 80));
    idemi_journal_set_aside(t, idemi_storage_place(t, j->clean, 80));
    for (sector = 0; sector < usual.sector_count; sector++)
        assert_int_equal(idemi_journal_sector(t, sector)->link, 0);
    idemi_journal_set_aside(t, idemi_storage_place(t, next, 80));
    assert_int_equal(idemi_journal_sector(t, next)->link, IDEMI_ASIDE);
    idemi_journal_sector(t, next)->link = 0;
    j->clean = j->head;
}

/* With all other sectors passed over, also the tail, the round ends at it. */
static void the_head_is_never_dead(void **state)
{
    device *d = (device *)*state;
    idem_table *t = &d->f.table;
    idem_journal *j;

    device_start(d, &usual);
    play(d, NULL, "B0 C0");
    j = t->journal;
    assert_false(idemi_journal_dead(t, j->head));
    j->kept = idemi_recover_before(t, j->head, 1);
    assert_false(idemi_journal_dead(t, j->head));
    assert_false(idemi_journal_dead(t, j->kept));
    assert_true(idemi_journal_dead(t, idemi_journal_after(t, j->head)));
    for (uint32_t sector = 0; sector < usual.sector_count; sector++)
        if (sector != j->head)
            idemi_journal_sector(t, sector)->link = IDEMI_RETIRED;
    assert_false(idemi_journal_usable(t));
    assert_int_equal(idemi_journal_erase(t, 1), IDEM_E_SPACE);
    assert_int_equal(d->medium.sector_erases[j->head], 0);
}

static void a_capacity_that_no_storage_holds_is_refused(void **state)
{
    device *d = (device *)*state;
    idem_config config;

    device_start(d, &usual);
    config = d->f.config;
    // The memory that it takes is not to be had in a test.
    config.capacity = IDEM_CAPACITY_MAX;
    d->f.table.config = &config;
    assert_int_equal(idemi_public_geometry(&d->f.table), IDEM_E_SPACE);
    if (IDEM_WIDE)
        assert_int_equal(d->f.table.needed, 0);
    d->f.table.config = &d->f.config;
}

static void memory_beyond_what_is_read_at_once_is_not_used(void **state)
{
    device *d = (device *)*state;

    assert_true(device_medium(d, &in_place));
    assert_int_equal(device_open_with(d, 2 * IDEMI_READ_MAX), IDEM_OK);
    assert_int_equal(d->f.table.journal->in_size, IDEMI_READ_MAX);
}

static void sync_without_a_journal_or_a_table(void **state)
{
    device *d = (device *)*state;
    fixture *f = &d->f;

    assert_int_equal(idem_sync(NULL), IDEM_E_ARG);
    f->config.storage = NULL;
    fixture_open(f, 0);
    assert_int_equal(checked(f, idem_sync(&f->table)), IDEM_OK);
}

/* ---------------------------------------------------------------------------
   idem_check finds each invariant of a journal broken; calls find bad arguments
   ------------------------------------------------------------------------ */

static void claim_out_of_the_ring(idem_table *t)        // J1
{
    idemi_slot_place(t, 0)->claim = idemi_storage_place(
        t, idemi_journal_after(t, t->journal->head), 80);
}

#if IDEM_WIDE
static void word_of_another_hash(idem_table *t)         // T2
{
    unsigned at = 0;

    while (idemi_index_slot(t, at) == IDEMI_NONE)
        at++;
    t->index[at].tag ^= 1;
}

static void word_of_another_home(idem_table *t)         // T2
{
    unsigned at = 0;

    while (idemi_index_slot(t, at) == IDEMI_NONE)
        at++;
    t->index[at].past ^= 1;
}
#endif

static void outcome_out_of_the_ring(idem_table *t)      // J1
{
    idemi_slot_place(t, 0)->outcome = idemi_storage_place(
        t, idemi_journal_after(t, t->journal->head), 80);
}

static void head_set_aside(idem_table *t)               // J1
{
    idemi_journal_sector(t, t->journal->head)->link = IDEMI_ASIDE;
}

static void nothing_dead_behind_the_head(idem_table *t) // J2
{
    t->journal->tail = idemi_journal_after(t, t->journal->head);
}

#if IDEM_WIDE
static void a_written_claim_in_no_order(idem_table *t)
{
    idemi_journal_move(t, 0, 0);
}

static void a_younger_claim_first(idem_table *t)
{
    idemi_journal_move(t, t->capacity, 1);
}

static void an_order_that_leads_out_of_the_table(idem_table *t)
{
    idemi_journal_link(t, 1)->newer = (idem_number)(t->capacity + 1);
}

static void an_order_that_leads_nowhere(idem_table *t)
{
    idemi_journal_link(t, 1)->older = 1;
}
#endif

static void idem_check_names_what_was_corrupted(void **state)
{
    static const struct { int number; void (*plant)(idem_table *); } bad[] = {
        { 14, claim_out_of_the_ring }, { 14, outcome_out_of_the_ring },
        { 14, head_set_aside },        { 15, nothing_dead_behind_the_head },
#if IDEM_WIDE
        { 16, a_written_claim_in_no_order }, { 16, a_younger_claim_first },
        { 16, an_order_that_leads_nowhere },
        { 16, an_order_that_leads_out_of_the_table },
        { 2, word_of_another_hash },   { 2, word_of_another_home },
#endif
    };
    device *d = (device *)*state;

    for (size_t i = 0; i < COUNT(bad); i++) {
        device_start(d, &usual);
        play(d, NULL, "B0 C0 B1");
        bad[i].plant(&d->f.table);
        assert_int_equal(idem_check(&d->f.table), bad[i].number);
    }
}

#define UNREADY(...)                                                           \
    do {                                                                       \
        device_start(d, &usual);                                               \
        play(d, NULL, "B0 C0 B1");                                             \
        assert_null(unready(t));                                               \
        j = t->journal;                                                        \
        place = idemi_slot_place(t, 0);                                        \
        __VA_ARGS__;                                                           \
        assert_non_null(unready(t));                                           \
    } while (0)

/* What make prove believes of an opening is not believed in vain (ready.h). */
static void unready_names_what_was_corrupted(void **state)
{
    device *d = (device *)*state;
    idem_table *t = &d->f.table;
    idem_journal *j;
    idem_place *place;
    uint32_t sectors = usual.sector_count, capacity = d->f.config.capacity;

    UNREADY(j->head = sectors);
    UNREADY(j->tail = sectors);
    UNREADY(j->kept = sectors);
    UNREADY(j->clean = sectors);
    UNREADY(j->at = idemi_journal_front(t) - usual.granule);
    UNREADY(j->at = idemi_journal_size(t) + usual.granule);
    UNREADY(j->leave = 1);
    UNREADY(j->filling = 1);
    UNREADY(j->blank = 3);
    UNREADY(j->state_at = sectors << j->shift);
    UNREADY(j->newest = sectors << j->shift);
    UNREADY(j->newest_slot = capacity);
    UNREADY(j->newest_len = j->record_max + 1);
    UNREADY(j->record_max = j->in_size / 2 + 1);
    UNREADY(j->loaded = capacity);
    UNREADY(idemi_slot_at(t, 0)->terms = IDEMI_RETENTIONS);
    UNREADY(place->claim = sectors << j->shift);
    UNREADY(place->claim = IDEMI_NOWHERE);
    UNREADY(place->outcome = sectors << j->shift);
    UNREADY(place->outcome = IDEMI_NOWHERE);
#if IDEM_WIDE
    UNREADY(place->written.newer = 0);
    UNREADY(place->written.older = place->written.newer = 0);
#endif
    UNREADY(t->tidy = capacity + 1);
    UNREADY(idemi_slot_at(t, 1)->state |= IDEMI_STALE);
    UNREADY(idemi_slot_at(t, 1)->state |= IDEMI_CUT | IDEMI_ENDLESS);
    UNREADY(t->links[1].newer = (idem_number)(capacity + 1));
    UNREADY(t->links[1].older = (idem_number)(capacity + 1));
}

/* The writer had dropped the first, which was over, without a word; who opens
   with a longer default retention would remember it still. */
static void s2_a_key_that_came_again_is_there_once(void **state)
{
    device *d = (device *)*state;
    fixture *f = &d->f;

    f->config.retention_ms = 1000;
    device_start(d, &usual);
    assert_int_equal(ask(f, "old", d->now), IDEM_EXECUTE);
    assert_int_equal(complete(f, &f->claim, "1", d->now), IDEM_OK);
    assert_int_equal(ask(f, "K", d->now), IDEM_EXECUTE);
    assert_int_equal(complete(f, &f->claim, "first", d->now), IDEM_OK);
    d->now += 2000;
    assert_int_equal(ask(f, "K", d->now), IDEM_EXECUTE);
    assert_int_equal(complete(f, &f->claim, "second", d->now), IDEM_OK);
    f->config.retention_ms = 100000;
    flash_boot(&d->medium);
    assert_int_equal(device_open(d), IDEM_OK);
    assert_int_equal(ask(f, "K", d->now), IDEM_REPLAY);
    assert_string_equal(f->buffer, "second");
    assert_int_equal(f->table.used, 1);
}

/* A volatile claim took the slot of one that was written, and was not written
   over it. */
static void s2_what_volatile_claims_replaced_stays_replaced(void **state)
{
    static const geometry roomy =
        { "roomy", FLASH_NOR, 4, 1024, 32, 0xFF, 1, 0, 0 };
    device *d = (device *)*state;
    fixture *f = &d->f;

    device_start(d, &roomy);
    assert_int_equal(ask(f, "K", d->now), IDEM_EXECUTE);
    f->config.volatile_claims = 1;
    assert_int_equal(device_open(d), IDEM_OK);
    assert_int_equal(ask(f, "K", d->now), IDEM_RECOVER);
    assert_int_equal(release(f, &f->claim, d->now), IDEM_OK);
    assert_int_equal(ask(f, "L", d->now), IDEM_EXECUTE);
    assert_int_equal(ask(f, "K", d->now), IDEM_EXECUTE);
    assert_int_equal(complete(f, &f->claim, "poured", d->now), IDEM_OK);
    f->config.volatile_claims = 0;
    assert_int_equal(device_open(d), IDEM_OK);
    assert_int_equal(ask(f, "K", d->now), IDEM_REPLAY);
}

static void the_end_of_a_granule_is_salvaged_by_itself(void **state)
{
    device *d = (device *)*state;
    unsigned char bytes[6];

    device_start(d, &usual);
    play(d, NULL, "B0");
    flash_fail(&d->medium, FLASH_READ, 0, FLASH_UNDONE, 0);
    memset(bytes, 0x55, sizeof bytes);
    assert_true(idemi_storage_salvage(&d->f.table, 0, bytes, 5));
    assert_memory_equal(bytes, d->medium.bytes, 5);
    assert_int_equal(bytes[5], 0x55);
}

/* Wherever reading begins: what cannot be read is one granule. */
static void what_is_beside_an_unreadable_granule_is_salvaged(void **state)
{
    device *d = (device *)*state;
    const uint8_t *bytes;
    unsigned char dst[12];

    device_start(d, &usual);
    play(d, NULL, "B0");
    bytes = d->medium.bytes;
    flaky_at = 5;                       // in the second granule
    flaky_left = 0;
    d->storage.read = flaky_read;
    for (uint32_t at = 0; at < 4; at++) {
        memset(dst, 0x55, sizeof dst);
        assert_false(idemi_storage_salvage(&d->f.table, at, dst, 12 - at));
        for (uint32_t i = at; i < 12; i++)
            assert_int_equal(dst[i - at],
                             i / 4 == 1 ? usual.erased : bytes[i]);
    }
}

/* A new head fails after a claim was carried to it.  The head before it has
   room for the outcome, but what that would name is no claim after a
   restart. */
static void an_outcome_names_no_claim_in_a_head_that_failed(void **state)
{
    device *d = (device *)*state;
    fixture *f = &d->f;
    idem_claim claim;

    device_start(d, &usual);
    assert_int_equal(begin(f, "", "a", "pour", d->now), IDEM_EXECUTE);
    claim = f->claim;
    assert_int_equal(begin(f, "", "b", "pour", d->now), IDEM_EXECUTE);
    flash_fail(&d->medium, FLASH_PROG, 1, FLASH_UNDONE, 0);
    assert_int_equal(idemi_journal_turn(&f->table, 0, usual.sector_count),
                     IDEM_E_STORAGE);
    assert_true(f->table.journal->stray);
    assert_int_equal(complete(f, &claim, "ok", d->now), IDEM_OK);
    assert_int_equal(device_open(d), IDEM_OK);
    assert_int_equal(begin(f, "", "a", "pour", d->now), IDEM_REPLAY);
}

/* A new head fails after the oldest key was carried to it; that goes on to the
   next before a key that is in a younger sector. */
static void what_is_in_a_head_that_failed_is_carried_first(void **state)
{
    device *d = (device *)*state;
    fixture *f = &d->f;
    idem_table *t = &f->table;

    device_start(d, &usual);
    finish(f, "", "a", d->now);
    assert_int_equal(idemi_journal_turn(t, 0, 0), IDEM_OK);
    finish(f, "", "b", d->now);
    flash_fail(&d->medium, FLASH_PROG, 1, FLASH_UNDONE, 0);
    assert_int_equal(idemi_journal_turn(t, 0, usual.sector_count - 2),
                     IDEM_E_STORAGE);
    assert_true(t->journal->stray);
    // What is dead is again what its header says.
    assert_int_equal(t->journal->clean, t->journal->tail);
    finish(f, "", "c", d->now);
    assert_false(t->journal->stray);
    assert_int_equal(idem_check(t), 0);
    assert_int_equal(device_open(d), IDEM_OK);
    assert_int_equal(begin(f, "", "a", "pour", d->now), IDEM_REPLAY);
}

/* A new head fails before anything is in it: the one before it goes on. */
static void a_head_goes_on_if_the_next_took_nothing(void **state)
{
    device *d = (device *)*state;
    fixture *f = &d->f;
    const idem_journal *j;
    uint32_t erases, head;

    device_start(d, &usual);
    assert_int_equal(begin(f, "", "a", "pour", d->now), IDEM_EXECUTE);
    j = f->table.journal;
    head = j->head;
    flash_fail(&d->medium, FLASH_PROG, 0, FLASH_UNDONE, 0);
    assert_int_equal(idemi_journal_turn(&f->table, 0, usual.sector_count),
                     IDEM_E_STORAGE);
    erases = d->medium.erases;
    assert_int_equal(complete(f, &f->claim, "ok", d->now), IDEM_OK);
    assert_int_equal(j->head, head);
    assert_int_equal(d->medium.erases, erases);
}

/* The state was carried to a head that failed, and that may be used again: not
   before the state has been carried on. */
static void s2_a_state_in_a_head_that_failed_is_carried_on(void **state)
{
    device *d = (device *)*state;
    fixture *f = &d->f;
    idem_table *t = &f->table;
    char buffer[STATE_MAX];
    size_t len = sizeof buffer;

    device_start(d, &usual);
    f->outcome.state = "eight by";
    f->outcome.state_len = STATE_MAX;
    finish(f, "", "a", d->now);
    d->now += RETENTION;
    assert_int_equal(find(f, "", "a", d->now), IDEM_E_NOT_FOUND);
    flash_fail(&d->medium, FLASH_PROG, 1, FLASH_UNDONE, 0);
    assert_int_equal(idemi_journal_turn(t, 0, usual.sector_count),
                     IDEM_E_STORAGE);
    idemi_journal_forgive(t, 1);
    assert_int_equal(idemi_journal_turn(t, 0, usual.sector_count), IDEM_OK);
    assert_int_equal(device_open(d), IDEM_OK);
    assert_int_equal(idem_state(t, buffer, &len), IDEM_OK);
    assert_int_equal(len, STATE_MAX);
    assert_memory_equal(buffer, "eight by", STATE_MAX);
}

/* Answers with what is in the reply's buffer already. */
static int answer_in_place(void *ctx, idem_outcome *outcome,
                           const idem_request *request,
                           const idem_claim *claim, int answer,
                           uint32_t *now_ms)
{
    (void)request, (void)claim, (void)answer, (void)now_ms;
    outcome->response = ctx;
    outcome->response_len = 2;
    return 0;
}

static void arguments_that_are_not_there_are_refused(void **state)
{
    device *d = (device *)*state;
    fixture *f = &d->f;
    idem_request rq = request_of(f, "s", "a", "pour");
    idem_reply reply = { .buffer = f->buffer, .buffer_size = 4 };

    device_start(d, &usual);
    assert_int_equal(idem_run(&f->table, NULL, &reply, &rq, answer_in_place,
                              f->buffer, d->now), IDEM_E_ARG);
    assert_int_equal(idem_run(&f->table, NULL, &reply, &rq, NULL, NULL,
                              d->now), IDEM_E_ARG);
    memcpy(f->buffer, "ok", 3);
    assert_int_equal(idem_run(&f->table, &f->claim, &reply, &rq,
                              answer_in_place, f->buffer, d->now),
                     IDEM_EXECUTE);
    assert_string_equal(f->buffer, "ok");
    assert_int_equal(idem_format(&f->table, &f->config, NULL, 0, 0),
                     IDEM_E_MEMORY);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        EDGE_TEST(s3_equal_hashes_do_not_make_equal_keys),
        EDGE_TEST(a_record_of_another_slot_or_claim_is_not_taken),
        EDGE_TEST(a_record_without_the_part_it_is_read_for_is_none),
        EDGE_TEST(a_key_that_comes_twice_is_told_from_others),
        EDGE_TEST(what_is_over_smaller_limits_is_lost),
        EDGE_TEST(a_record_that_is_short_of_something_is_none),
        EDGE_TEST(a_record_takes_nothing_of_what_is_behind_it),
        EDGE_TEST(a_record_longer_than_any_is_none),
        EDGE_TEST(a_record_does_not_go_on_behind_its_sector),
        EDGE_TEST(the_distance_to_a_claim_goes_round_the_end),
        EDGE_TEST(a_record_ends_where_its_padding_does),
        EDGE_TEST(what_cannot_be_read_is_evicted_from_all_scopes),
        EDGE_TEST(with_a_quota_an_unreadable_key_counts_for_nobody),
        EDGE_TEST(looking_says_that_an_outcome_does_not_read),
        EDGE_TEST(nothing_is_lost_while_nothing_at_all_reads),
        EDGE_TEST(a_stale_key_takes_the_slot_that_its_quota_leaves),
        EDGE_TEST(a_stale_key_stays_gone_though_a_head_fails),
        EDGE_TEST(all_stale_keys_of_a_sector_go_with_the_next_head),
        EDGE_TEST(idle_work_goes_on_after_a_stale_claim),
        EDGE_TEST(of_a_key_that_is_over_nothing_is_written),
        EDGE_TEST(s6_a_retention_too_many_is_made_the_next_longer_one),
        EDGE_TEST(s10_a_retention_that_was_made_longer_stays_so),
        EDGE_TEST(a_retention_is_looked_for_among_the_known_ones),
        EDGE_TEST(s3_a_claim_is_not_taken_for_one_of_long_ago),
        EDGE_TEST(what_is_delivered_already_costs_no_program),
        EDGE_TEST(to_evict_takes_one_read),
        EDGE_TEST(volatile_tokens_go_on_in_another_sector),
        EDGE_TEST(with_the_last_sequence_used_nothing_new_begins),
        EDGE_TEST(s7_the_last_sequences_are_for_what_was_granted),
        EDGE_TEST(what_is_owed_for_more_than_32_bits_is_delivered),
        EDGE_TEST(s7_an_outcome_fits_whatever_numbers_are_in_it),
        EDGE_TEST(a_claim_fits_whatever_numbers_are_in_it),
        EDGE_TEST(a_record_is_read_whatever_its_length),
        EDGE_TEST(s6_months_between_two_records_are_counted),
        EDGE_TEST(s4_doubt_that_is_found_late_lasts),
        EDGE_TEST(s4_doubt_lasts_beyond_32_bits_of_time),
        EDGE_TEST(idle_work_on_torn_storage_erases),
        EDGE_TEST(more_losses_than_a_byte_counts_are_255),
        EDGE_TEST(only_sectors_out_of_the_ring_are_set_aside),
        EDGE_TEST(a_capacity_that_no_storage_holds_is_refused),
        EDGE_TEST(memory_beyond_what_is_read_at_once_is_not_used),
        EDGE_TEST(sync_without_a_journal_or_a_table),
        EDGE_TEST(idem_check_names_what_was_corrupted),
        EDGE_TEST(unready_names_what_was_corrupted),
        EDGE_TEST(s2_a_key_that_came_again_is_there_once),
        EDGE_TEST(s2_what_volatile_claims_replaced_stays_replaced),
        EDGE_TEST(the_end_of_a_granule_is_salvaged_by_itself),
        EDGE_TEST(what_is_beside_an_unreadable_granule_is_salvaged),
        EDGE_TEST(an_outcome_names_no_claim_in_a_head_that_failed),
        EDGE_TEST(a_head_goes_on_if_the_next_took_nothing),
        EDGE_TEST(s2_a_state_in_a_head_that_failed_is_carried_on),
        EDGE_TEST(what_is_in_a_head_that_failed_is_carried_first),
        EDGE_TEST(a_read_that_fails_gives_no_sector_up),
        EDGE_TEST(what_is_in_a_head_that_failed_is_read_to_its_end),
        EDGE_TEST(sectors_that_failed_are_all_used_again),
        EDGE_TEST(s8_no_header_goes_where_an_erase_left_a_byte),
        EDGE_TEST(what_is_read_of_a_new_head_is_not_taken_for_a_key),
        EDGE_TEST(s3_two_keys_of_one_hash_are_two_keys),
        EDGE_TEST(s4_a_key_lost_while_room_is_made_for_it_is_never_new),
        EDGE_TEST(what_reads_again_is_known_again),
        EDGE_TEST(s10_nothing_unsure_is_answered_once_a_sync_failed),
        EDGE_TEST(s10_a_key_whose_slot_was_taken_stays_gone),
        EDGE_TEST(s10_what_a_header_confirmed_is_confirmed_again),
        EDGE_TEST(s5_what_is_owed_is_listed_beside_what_cannot_be_read),
        EDGE_TEST(a_list_goes_on_once_its_place_can_be_read),
        EDGE_TEST(idle_work_carries_some_keys_and_no_more_at_a_time),
        EDGE_TEST(idle_work_waits_for_the_last_quarter_of_a_sector),
        EDGE_TEST(s7_idle_work_that_fails_loses_nothing),
        EDGE_TEST(the_head_is_never_dead),
        EDGE_TEST(more_stretches_than_a_byte_counts_are_all_seen),
        EDGE_TEST(a_header_counts_what_is_damaged),
        EDGE_TEST(what_is_behind_a_long_stretch_is_found),
        EDGE_TEST(a_state_does_not_count_where_its_claim_is_lost),
        EDGE_TEST(storage_is_blank_but_for_one_granule_of_a_header),
        EDGE_TEST(a_header_alone_of_another_version_is_refused),
        EDGE_TEST(a_sector_without_records_ends_where_they_would_begin),
        EDGE_TEST(what_is_longer_than_a_record_is_no_torn_one),
        EDGE_TEST(r3_a_sector_with_a_header_in_doubt_is_passed_over),
        EDGE_TEST(r3_a_header_in_doubt_that_was_passed_over_never_counts),
        EDGE_TEST(r3_behind_a_record_all_that_is_dead_is_used),
        EDGE_TEST(r3_while_a_header_is_in_doubt_both_ways_are_kept),
        EDGE_TEST(r3_the_sector_that_a_header_in_doubt_names_counts),
        EDGE_TEST(r3_a_header_in_doubt_that_is_seen_late_hides_nothing),
        EDGE_TEST(s10_a_first_header_that_is_seen_later_hides_nothing),
        EDGE_TEST(wear_is_even_before_there_is_a_journal),
        EDGE_TEST(the_one_sector_that_may_be_anything_is_erased_first),
        EDGE_TEST(a_sector_that_is_passed_over_tells_of_no_damage),
        EDGE_TEST(a_key_whose_end_is_lost_comes_once),
        EDGE_TEST(of_two_outcomes_of_a_claim_the_first_counts),
        EDGE_TEST(s5_damage_on_top_of_a_cut_never_answers_wrongly),
        EDGE_TEST(a_stale_key_whose_end_is_lost_comes_once),
        EDGE_TEST(idle_work_finds_no_sector_where_all_were_tried),
        EDGE_TEST(s7_many_claims_are_kept_wherever_the_head_is),
        EDGE_TEST(s7_many_claims_are_kept_whatever_fails),
        EDGE_TEST(l3_many_volatile_claims_wait_for_one_erase_each),
        EDGE_TEST(l3_each_volatile_claim_waits_for_one_erase_at_most),
        EDGE_TEST(what_is_just_enough_for_outcomes_is_enough),
        EDGE_TEST(s7_what_a_failure_took_the_next_claim_makes_good),
        EDGE_TEST(a_sector_is_used_up_before_the_next_is_begun),
        EDGE_TEST(a_sector_is_used_up_though_claims_are_open),
        EDGE_TEST(a_sector_ends_with_an_outcome_to_the_byte),
        EDGE_TEST(a_volatile_claim_is_granted_with_a_full_head),
        EDGE_TEST(s7_what_a_head_of_claims_reserves_is_made_in_place),
        EDGE_TEST(s7_room_is_not_made_at_the_cost_of_earlier_claims),
        EDGE_TEST(claims_are_given_back_while_no_sector_is_to_be_had),
        EDGE_TEST(s2_many_keys_are_carried_twice),
        EDGE_TEST(what_cannot_be_carried_is_told_and_kept),
        EDGE_TEST(s7_claims_complete_though_sectors_wear_out),
        EDGE_TEST(s8_an_erase_under_way_is_of_one_sector),
        EDGE_TEST(arguments_that_are_not_there_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
