/* SPDX-License-Identifier: 0BSD */
/*
 * Shows that a table with a journal keeps its promises over restarts, on every
 * medium and geometry, when the storage is damaged, and when it fails: each
 * promise by number (S1 to S10, L1 to L3), and each decided edge that is about
 * storage.  Power cuts in every operation are in crash.c.
 */
#define IDEM_IMPLEMENTATION
#include "idem.h"

#include "fixture.h"
#include "flash.h"
#include "journal.h"

#define JOURNAL_TEST(name)                                                     \
    cmocka_unit_test_setup_teardown(name, device_setup, device_teardown)

/* ---------------------------------------------------------------------------
   geometries
   ------------------------------------------------------------------------ */

static const geometry geometries[] = {
    { "nor1",    FLASH_NOR,     1,   256,    0, 0xFF, 0, 0, 0 },
    { "nor2",    FLASH_NOR,     2,   512,    0, 0xFF, 1, 0, 0 },
    { "nor4",    FLASH_NOR,     4,   512,    0, 0x00, 0, 1, 0 },
    { "nor8",    FLASH_NOR,     8,   1024,   0, 0xFF, 0, 0, 1 },
    { "nor16",   FLASH_NOR,     16,  1024,   0, 0xFF, 1, 1, 0 },
    { "nor32",   FLASH_NOR,     32,  2048,   0, 0x00, 0, 0, 0 },
    { "nor64",   FLASH_NOR,     64,  2048,   0, 0xFF, 0, 0, 0 },
    { "nor128",  FLASH_NOR,     128, 4096,   0, 0xFF, 1, 0, 0 },
    { "nor256",  FLASH_NOR,     256, 4096,   0, 0xFF, 0, 0, 0 },
    { "sixty",   FLASH_NOR,     1,   512,   64, 0xFF, 0, 0, 0 },
    { "large",   FLASH_NOR,     4,   65536,  0, 0xFF, 0, 0, 0 },
    { "largest", FLASH_NOR,     8,   262144, 0, 0xFF, 0, 0, 0 },
    { "odd",     FLASH_NOR,     1,   321,    0, 0xA7, 0, 0, 0 },
    { "ecc8",    FLASH_ECC,     8,   512,    0, 0xFF, 0, 0, 0 },
    { "ecc16",   FLASH_ECC,     16,  2048,   0, 0xFF, 0, 1, 0 },
    { "eeprom",  FLASH_INPLACE, 1,   256,    0, 0xFF, 0, 0, 1 },
    { "eeprom4", FLASH_INPLACE, 4,   512,   11, 0xFF, 1, 1, 0 },
    { "fram",    FLASH_INPLACE, 1,   256,   64, 0x00, 0, 0, 1 },
    { "file",    FLASH_INPLACE, 1,   4096,   0, 0x00, 0, 0, 0 },
};

/* The one that most tests are run on: several sectors, some records in each. */
static const geometry usual =
    { "usual",   FLASH_NOR,     4,   512,   10, 0xFF, 0, 0, 0 };
static const geometry in_place =
    { "in place", FLASH_INPLACE, 1,  512,   10, 0x00, 0, 0, 0 };

static unsigned any(device *d, unsigned below)
{
    return dice(&d->seed) % below;
}

/* One command of whatever kind. */
static void anything(device *d, unsigned keys)
{
    static const uint32_t retentions[] = { 0, 0, 0, 500, 2000 };
    static const uint32_t leases[] = { 0, 0, 10, 1000, IDEM_LEASE_NONE };
    unsigned key = any(d, keys), what = any(d, 100), max;
    known *k = &d->truth.keys[key];
    idem_claim claim = k->claim;

    max = k->reserved;
    memset(&d->f.outcome, 0, sizeof d->f.outcome);
    d->payload = any(d, 16) == 0;
    d->f.request.retention_ms = retentions[any(d, 5)];
    d->f.request.lease_ms = leases[any(d, 5)];
    d->f.request.response_size =
        (uint16_t)(any(d, 2) ? 0 : any(d, d->f.config.response_max + 1u));
    d->now += any(d, 4);
    if (what < 45) {
        device_begin(d, key);
    } else if (what < 75) {
        d->f.outcome.code = any(d, 3) ? 0 : -7;
        d->f.outcome.failed = any(d, 4) == 0;
        d->f.outcome.confirm = any(d, 4) == 0;
        if (d->f.config.state_max && any(d, 3) == 0) {
            d->f.outcome.state = "twenty four bytes of it.";
            d->f.outcome.state_len = any(d, d->f.config.state_max + 1u);
        }
        device_complete(d, key, any(d, 3) ? max : any(d, max + 1u));
    } else if (what < 80) {
        device_release(d, key, &claim);
    } else if (what < 86) {
        device_forget(d, key);
    } else if (what < 88) {
        device_deliver(d, key);
    } else if (what < 91) {
        device_renew(d, key, leases[2 + any(d, 3)]);
    } else if (what < 93) {
        d->now += 400;
    } else if (what < 94) {
        device_elapse(d, any(d, 3000));
    } else if (what < 97) {
        device_maintain(d);
    } else if (what < 98) {
        device_restart(d);
    } else {
        device_look(d);
    }
}

/* Claims keys until there are as many as the table may have, finds it full, and
   completes all with as much as they reserved. */
static void fill_and_complete(device *d, unsigned keys)
{
    unsigned first = any(d, keys);

    memset(&d->f.request, 0, sizeof d->f.request);
    memset(&d->f.outcome, 0, sizeof d->f.outcome);
    d->payload = 0;
    d->f.request.lease_ms = IDEM_LEASE_NONE;
    for (unsigned i = 0; i < keys; i++)
        device_begin(d, (first + i) % keys);
    assert_int_equal(truth_live(&d->truth), d->f.config.capacity);
    d->f.outcome.code = INT32_MIN;
    d->f.outcome.confirm = 1;
    d->f.outcome.state = "twenty four bytes of it.";
    d->f.outcome.state_len = d->f.config.state_max;
    first = any(d, keys);
    for (unsigned i = 0; i < keys; i++) {
        unsigned key = (first + i) % keys;
        if (d->truth.keys[key].held)
            device_complete(d, key, d->truth.keys[key].reserved);
    }
}

/* A table of `capacity` keys, with the largest records that a sector takes. */
static void tight(device *d, const geometry *g, unsigned capacity)
{
    d->f.config.capacity = capacity;
    d->f.config.in_ram = 0;
    d->f.config.key_max = 8;            // "panel" and "k00"
    d->f.config.response_max = g->sector_size < 512 ? 4 : 24;
    d->f.config.state_max = g->sector_size < 512 ? 2 : 24;
    device_start(d, g);
}

static void churn(device *d, unsigned commands)
{
    unsigned keys = d->f.config.capacity + 3 + d->f.config.capacity / 2;

    if (keys > KEYS)
        keys = KEYS;
    for (unsigned i = 0; i < commands; i++) {
        anything(d, keys);
        if (any(d, 200) == 0)
            fill_and_complete(d, keys);
    }
    device_restart(d);
}

static void churn_everywhere(device *d, unsigned capacity, unsigned commands)
{
    for (unsigned i = 0; i < COUNT(geometries); i++) {
        tight(d, &geometries[i], capacity);
        churn(d, d->medium.size > 100000 ? commands / 4 : commands);
    }
}

static void capacity_holds_on_every_geometry_whatever_order(void **state)
{
    churn_everywhere((device *)*state, 5, 3000);
}

static void capacity_holds_for_one_key_and_for_many(void **state)
{
    churn_everywhere((device *)*state, 1, 400);
    churn_everywhere((device *)*state, 17, 1500);
}

static void l3_with_idle_time_no_begin_waits_for_an_erase(void **state)
{
    device *d = (device *)*state;

    d->idle = 1;
    churn_everywhere(d, 5, 1500);
    churn_everywhere(d, 12, 1000);
}

/* Where a sector has room for three outcomes or so, every other claim needs one
   more beside the head; never two at once. */
static void l3_outcomes_in_many_sectors_cost_an_erase_at_most(void **state)
{
    device *d = (device *)*state;
    geometry g = { "few", FLASH_NOR, 8, 512, 40, 0xFF, 1, 0, 0 };

    for (unsigned more = 0; more < 24; more++) {
        int is_volatile = more % 2;
        d->f.config.capacity = 14 + more / 4;
        d->f.config.key_max = 16;
        d->f.config.response_max =
            (uint16_t)((is_volatile ? 44 : 112) + more / 2);
        d->f.config.state_max = 0;
        d->f.config.volatile_claims = (uint8_t)is_volatile;
        device_start(d, &g);
        if (more % 3 == 0)
            device_split(d, 5);
        d->f.request.lease_ms = IDEM_LEASE_NONE;
        d->f.request.retention_ms = 150;
        for (unsigned n = 0; n < 3000; n++) {
            unsigned key = any(d, KEYS), left = KEYS;
            int held = (int)any(d, 2);
            d->now += any(d, 30);
            for (; d->truth.keys[key].held != held && left > 0; left--)
                key = (key + 1) % KEYS;
            if (d->truth.keys[key].held)
                device_complete(d, key, any(d, d->f.config.response_max + 1u));
            else
                device_begin(d, key);
        }
    }
}

static void capacity_holds_in_batch_mode_and_with_volatile_claims(void **state)
{
    device *d = (device *)*state;
    unsigned refused = 0;

    for (unsigned i = 0; i < COUNT(geometries); i++)
        for (unsigned mode = 1; mode < 4; mode++) {
            d->f.config.durability = mode & 1 ? IDEM_BATCH : IDEM_EACH;
            d->f.config.volatile_claims = 0;
            tight(d, &geometries[i], 5);
            d->f.config.volatile_claims = mode >> 1;
            d->f.config.in_ram |= mode >> 1;
            // A volatile outcome has the claim in it, and takes more room.
            if (mode & 2 && !device_medium(d, &geometries[i])) {
                refused++;
                continue;
            }
            device_start(d, &geometries[i]);
            churn(d, 600);
        }
    assert_in_range(refused, 1, COUNT(geometries));
}

/* The manual's table of storage operations, on a medium that is not verified.
   What is carried forward is at most what goes into one sector. */
static void l1_no_call_does_more_than_the_manual_says(void **state)
{
    device *d = (device *)*state;
    uint32_t carried;

    tight(d, &usual, 5);
    carried = usual.sector_size / 50;
    for (unsigned n = 0; n < 4000; n++) {
        unsigned key = any(d, 8), turned = d->f.table.journal->turned;
        int result = device_begin(d, key);
        if (result == IDEM_EXECUTE || result == IDEM_RECOVER) {
            assert_in_range(d->progs, 1, 4 + carried);
            assert_in_range(d->reads, 0, 2 + 2 * carried);
        } else if (turned) {
            assert_int_equal(d->progs, 0);
            assert_in_range(d->reads, 0, 2);
        }
        device_complete(d, key, any(d, 20));
        assert_in_range(d->progs, 0, 3 + carried);
        assert_in_range(d->reads, 0, 1 + 2 * carried);
        device_maintain(d);
        assert_in_range(d->progs, 0, 8);
        assert_in_range(d->reads, 0, 2 * 8 + 2);
        if (n % 3 == 0) {
            device_forget(d, key);
            assert_in_range(d->progs, 0, 4 + carried);
            assert_in_range(d->reads, 0, 2 + 2 * carried);
        }
        d->now += 60;
        if (n % 500 == 0)
            device_restart(d);
    }
}

/* The same with far more claims open than a sector has room for their outcomes:
   work is done ahead of the need, so that no call is left with all of it, but
   with a quarter of what a sector holds. */
static void l1_with_many_claims_open_no_call_does_more_either(void **state)
{
    static const geometry wide =
        { "wide", FLASH_NOR, 64, 2048, 0, 0xFF, 0, 0, 0 };
    enum { CLAIMS = 80 };
    device *d = (device *)*state;
    fixture *f = &d->f;
    flash *m = &d->medium;
    idem_claim claims[CLAIMS];
    int open[CLAIMS] = { 0 };
    uint32_t carried = wide.sector_size / 64 / 4;

    f->config.capacity = CLAIMS;
    f->config.key_max = 8;
    f->config.response_max = 24;
    f->config.state_max = 0;
    f->config.lease_ms = IDEM_LEASE_NONE;
    device_start(d, &wide);
    for (unsigned n = 0; n < 20 * CLAIMS; n++) {
        unsigned i = any(d, CLAIMS);
        char key[4] = { 'k', (char)('0' + i / 10), (char)('0' + i % 10), 0 };
        uint32_t progs, erases, reads;
        if (!open[i])
            (void)forget(f, "", key, d->now);
        progs = m->progs, erases = m->erases, reads = m->reads;
        if (!open[i]) {
            assert_int_equal(begin(f, "", key, "pour", d->now), IDEM_EXECUTE);
            claims[i] = f->claim;
            open[i] = 1;
            assert_in_range(m->progs - progs, 1, 4 + carried);
            assert_in_range(m->erases - erases, 0, 1);
            assert_in_range(m->reads - reads, 0, 2 + 2 * carried);
        } else if (any(d, 8) == 0) {
            assert_int_equal(complete(f, &claims[i], "twenty-four bytes of it.",
                                      d->now), IDEM_OK);
            open[i] = 0;
            assert_in_range(m->progs - progs, 1, 3);
            assert_int_equal(m->erases - erases, 0);
            assert_in_range(m->reads - reads, 0, 1);
        }
    }
}

/* The manual counts an age from completion, or from the restart that cut a
   claim short.  One that is held has none, so its record stays as short as is
   counted upon. */
static void a_held_claim_is_carried_without_an_age(void **state)
{
    device *d = (device *)*state;
    idem_table *t = &d->f.table;

    for (unsigned i = 0; i < COUNT(geometries); i++) {
        unsigned carried = 0, n;
        uint32_t slot, at;
        tight(d, &geometries[i], 5);
        d->f.request.lease_ms = IDEM_LEASE_NONE;
        d->f.request.retention_ms = IDEM_RETENTION_MAX;
        device_begin(d, 0);             // is carried before, with an age
        device_complete(d, 0, 3);
        assert_int_equal(device_begin(d, 1), IDEM_EXECUTE);
        slot = d->f.claim.slot;
        at = idemi_slot_place(t, slot)->claim;
        for (n = 0; n < 300 && carried < 3; n++) {
            d->now += 1000;
            device_begin(d, 2 + n % 3);
            device_complete(d, 2 + n % 3, 3);
            device_forget(d, 2 + n % 3);
            if (idemi_slot_place(t, slot)->claim == at)
                continue;
            carried++;
            at = idemi_slot_place(t, slot)->claim;
            assert_int_equal(idemi_journal_fetch(t, slot, at, 0), IDEM_OK);
            assert_int_equal(t->journal->record.age, 0);
        }
        assert_true(carried || n == 300);
        memset(&d->f.request, 0, sizeof d->f.request);
    }
}

/* Nor has a state alone, or what says that a slot is empty: these are as short
   as they can be.  Both are written when a boot writes first, if the newest
   record was an outcome: with a state, or of a key that is over by then. */
static void a_record_of_no_claim_has_no_token_and_no_age(void **state)
{
    device *d = (device *)*state;
    idem_table *t = &d->f.table;

    for (unsigned i = 0; i < COUNT(geometries); i++)
        for (unsigned over = 0; over < 2; over++) {
            uint32_t at, len, head, found = 0;
            tight(d, &geometries[i], 5);
            d->f.config.retention_ms = 1000;
            assert_int_equal(play_event(d, 'B', 0), IDEM_EXECUTE);
            assert_int_equal(play_event(d, over ? 'C' : 'S', 0), IDEM_OK);
            device_restart(d);
            device_elapse(d, over ? 1000 : 999);
            assert_int_equal(device_begin(d, 1), IDEM_EXECUTE);
            head = t->journal->head;
            for (at = idemi_journal_front(t); at < d->medium.sector_size;
                 at += idemi_storage_granules(t, len)) {
                const uint8_t *p = d->medium.bytes + at +
                                   head * d->medium.sector_size;
                len = idemi_record_decode(t, idemi_storage_place(t, head, at),
                                          p, p, d->medium.sector_size - at);
                if (!len)
                    break;
                if (t->journal->record.parts & (IDEMI_HAS_CLAIM |
                                                IDEMI_HAS_OUTCOME))
                    continue;
                found++;
                assert_int_equal(t->journal->record.age, 0);
                assert_int_equal(t->journal->record.body.token,
                                 (uint32_t)idemi_record_token(
                                     t, idemi_storage_place(t, head, at)));
            }
            assert_int_equal(found, 1);
        }
}

/* Restarts after every command, or every few.  A boot takes a new sector; it
   must leave as many dead ones as it found. */
static void l2_restarts_in_a_row_never_use_up_the_ring(void **state)
{
    device *d = (device *)*state;

    for (unsigned i = 0; i < COUNT(geometries); i++)
        for (unsigned commands = 1; commands < 4; commands++) {
            tight(d, &geometries[i], 5);
            d->f.config.max_attempts = 255;
            for (unsigned boot = 0; boot < 60; boot++) {
                for (unsigned n = 0; n < commands; n++)
                    anything(d, 8);
                device_restart(d);
            }
        }
}

/* Nor where a sector holds but two or three of the longest records, and a boot
   writes no more than what it must to repeat an answer, or a claim. */
static void l2_nor_do_they_where_a_sector_holds_few_records(void **state)
{
    geometry g = { "few", FLASH_NOR, 16, 832, 0, 0xFF, 0, 0, 0 };
    device *d = (device *)*state;
    fixture *f = &d->f;
    char response[201] = { 0 };
    unsigned tried = 0;

    memset(response, 'r', sizeof response - 1);
    f->config.capacity = 9;
    f->config.key_max = 6;
    f->config.response_max = sizeof response - 1;
    f->config.retention_ms = IDEM_RETENTION_MAX;
    for (; g.sector_size < 1152; g.sector_size += 64)
        for (unsigned what = 0; what < 3; what++) {
            f->config.volatile_claims = f->config.in_ram = what > 0;
            if (what > 0 && !device_medium(d, &g))
                continue;
            tried++;
            device_start(d, &g);
            for (unsigned n = 0; n < 8; n++) {
                assert_int_equal(ask(f, nth(n), d->now), IDEM_EXECUTE);
                assert_int_equal(complete(f, &f->claim, response, d->now),
                                 IDEM_OK);
            }
            for (unsigned n = 0; n < 2 * d->medium.sector_count; n++) {
                assert_int_equal(device_open(d), IDEM_OK);
                assert_int_equal(ask(f, what < 2 ? nth(7) : "x", d->now),
                                 what < 2 ? IDEM_REPLAY : IDEM_EXECUTE);
            }
            for (unsigned n = 0; n < 8; n++)
                assert_int_equal(ask(f, nth(n), d->now), IDEM_REPLAY);
        }
    assert_int_equal(tried, 9);
}

/* A boot that writes begins a sector; idle work erases one ahead, but no more
   while nothing is claimed: the next boot would erase those again. */
static void a_restart_costs_one_erase_and_one_more_with_idle_time(void **state)
{
    device *d = (device *)*state;

    for (unsigned i = 0; i < COUNT(geometries); i++)
        for (unsigned idle = 0; idle < 2; idle++) {
            tight(d, &geometries[i], 5);
            for (unsigned boot = 0; boot < 30; boot++) {
                uint32_t erases = d->medium.erases;
                device_begin(d, boot % 5);
                device_complete(d, boot % 5, 3);
                device_forget(d, boot % 5);
                if (idle)
                    device_rest(d);
                assert_in_range(d->medium.erases - erases, 0, 1 + idle);
                device_restart(d);
            }
        }
}

/* How much more often one sector was erased than another, after commands. */
static uint32_t uneven(device *d, unsigned commands)
{
    uint32_t least, most;

    for (unsigned n = 0; n < commands; n++) {
        device_begin(d, n % 8);
        device_complete(d, n % 8, d->f.config.response_max);
        d->now += 250;
    }
    flash_wear(&d->medium, &least, &most);
    return most - least;
}

/* Without restarts the sectors are used strictly in turn. */
static void wear_is_even(void **state)
{
    device *d = (device *)*state;

    for (unsigned i = 0; i < COUNT(geometries); i++)
        for (d->idle = 0; d->idle < 2; d->idle++) {
            if (geometries[i].kind == FLASH_INPLACE ||
                geometries[i].sector_size > 4096)
                continue;
            tight(d, &geometries[i], 5);
            assert_in_range(uneven(d, 400), 0, 1);
        }
}

/* A sector of which a cut has left the header in doubt is passed over once. */
static void wear_is_even_after_a_torn_header_too(void **state)
{
    device *d = (device *)*state;

    for (uint32_t n = 0; n < 5; n++) {
        tight(d, &usual, 5);
        play(d, NULL, "B0 C0");
        device_restart(d);
        flash_cut(&d->medium, n, 0);
        d->unsure = 1;
        (void)device_begin(d, 1);
        d->unsure = 0;
        device_restart_after(d);
        assert_in_range(uneven(d, 300), 0, 2);
    }
}

/* Reads as blank, wherever it is asked. */
static int blank_read(void *ctx, uint32_t at, void *dst, uint32_t len)
{
    const idem_storage *m = (const idem_storage *)ctx;

    assert_true(at + len <= m->sector_size * m->sector_count);
    memset(dst, m->erased, len);
    return 0;
}

static int never_prog(void *ctx, uint32_t at, const void *src, uint32_t len)
{
    (void)ctx, (void)at, (void)src, (void)len;
    fail();
    return 0;
}

static int never_erase(void *ctx, uint32_t sector)
{
    (void)ctx, (void)sector;
    fail();
    return 0;
}

static void blank_storage(device *d, uint32_t size, uint32_t count,
                          uint16_t granule)
{
    memset(&d->storage, 0, sizeof d->storage);
    d->storage.ctx = &d->storage;
    d->storage.read = blank_read;
    d->storage.prog = never_prog;
    d->storage.erase = never_erase;
    d->storage.sector_size = size;
    d->storage.sector_count = count;
    d->storage.prog_size = granule;
    d->f.config.storage = &d->storage;
}

/* Opens with as much memory as it takes, if it gets so far. */
static int open_freely(device *d)
{
    fixture *f = &d->f;
    size_t size;
    int result = idem_open(&f->table, &f->config, NULL, 0, 0);

    if (result != IDEM_E_MEMORY)
        return result;
    size = f->table.needed;
    free(f->memory);
    f->memory = malloc(size);
    assert_non_null(f->memory);
    return idem_open(&f->table, &f->config, f->memory, size, 0);
}

static void a_storage_that_is_none_is_refused(void **state)
{
    device *d = (device *)*state;
    idem_storage *m = &d->storage;
    enum { CASES = 14 };

    for (unsigned i = 0; i < CASES; i++) {
        blank_storage(d, 512, 20, 4);
        assert_int_equal(open_freely(d), IDEM_OK);
        switch (i) {
        case 0:  m->read = NULL; break;
        case 1:  m->prog = NULL; break;
        case 2:  m->erase = NULL; m->erasing = flash_sync; break;
        case 3:  m->prog_size = 0; break;
        case 4:  m->prog_size = 3; break;
        case 5:  m->prog_size = 512; break;
        case 6:  m->sector_size = 252; break;
        case 7:  m->sector_size = 0; break;
        case 8:  m->sector_size = 0x40004; break;
        case 9:  m->sector_size = 514; break;
        case 10: m->sector_count = 0; break;
        case 11: m->sector_count = 65536; break;
        case 12: m->sector_count = 16384; m->sector_size = 0x40000; break;
        default: m->sector_count = UINT32_MAX; break;
        }
        assert_int_equal(open_freely(d), IDEM_E_ARG);
        assert_int_equal(idem_maintain(&d->f.table, 0), IDEM_E_ARG);
    }
}

static void what_needs_a_journal_or_memory_is_refused_without(void **state)
{
    device *d = (device *)*state;

    blank_storage(d, 1024, 20, 4);
    d->f.config.volatile_claims = 1;
    assert_int_equal(open_freely(d), IDEM_E_ARG);
    d->f.config.in_ram = 1;
    assert_int_equal(open_freely(d), IDEM_OK);
    d->f.config.durability = 2;
    assert_int_equal(open_freely(d), IDEM_E_ARG);
    d->f.config.durability = IDEM_EACH;
    d->f.config.volatile_claims = 0;
    d->f.config.storage = NULL;
    assert_int_equal(open_freely(d), IDEM_OK);
    assert_int_equal(idem_format(&d->f.table, &d->f.config, d->f.memory, 100000,
                                 0), IDEM_E_ARG);
}

/* Of every size: the number of sectors that idem_open names is the smallest
   that it takes; where it names none, none is enough. */
static void too_few_sectors_are_told_how_many_would_do(void **state)
{
    static const uint32_t sizes[] = { 256, 512, 768, 1024, 4096, 65536,
                                      262144 };
    static const uint16_t capacities[] = { 1, 2, 7, 60, 500 };
    static const uint16_t responses[] = { 0, 16, 300, 2000 };
    device *d = (device *)*state;
    unsigned taken = 0;

    for (unsigned i = 0; i < COUNT(sizes) * COUNT(capacities) *
                             COUNT(responses) * 9; i++) {
        uint16_t granule = (uint16_t)(1u << i % 9);
        uint32_t size = sizes[i / 9 % COUNT(sizes)], needed;
        d->f.config.capacity =
            capacities[i / 9 / COUNT(sizes) % COUNT(capacities)];
        d->f.config.response_max =
            responses[i / 9 / COUNT(sizes) / COUNT(capacities)];
        for (uint32_t count = 1; count < 3; count++) {
            blank_storage(d, size, count, granule);
            assert_int_equal(open_freely(d), IDEM_E_SPACE);
        }
        needed = (uint32_t)d->f.table.needed;
        if (!needed) {
            d->storage.sector_count = 300;
            assert_int_equal(open_freely(d), IDEM_E_SPACE);
            assert_int_equal(d->f.table.needed, 0);
            continue;
        }
        assert_in_range(needed, 3, 65535);
        d->storage.sector_count = needed - 1;
        assert_int_equal(open_freely(d), IDEM_E_SPACE);
        assert_int_equal(d->f.table.needed, needed);
        if (needed * size > 2000000)
            continue;
        d->storage.sector_count = needed;
        assert_int_equal(open_freely(d), IDEM_OK);
        taken++;
    }
    assert_true(taken > 700);
}

static void the_named_amount_of_memory_is_enough(void **state)
{
    device *d = (device *)*state;
    idem_config *c = &d->f.config;
    static uint32_t memory[20000];

    for (unsigned i = 0; i < 200; i++) {
        size_t size, named;
        c->capacity = 1 + any(d, 40);
        c->key_max = (uint8_t)(1 + any(d, 60));
        c->response_max = (uint16_t)any(d, 70);
        c->state_max = (uint16_t)any(d, 70);
        c->in_ram = i & 1;
        blank_storage(d, 4096, 5 + any(d, 20), (uint16_t)(1u << any(d, 9)));
        assert_int_equal(idem_open(&d->f.table, c, NULL, 0, 0), IDEM_E_MEMORY);
        size = d->f.table.needed;
        named = c->in_ram
                    ? IDEM_JOURNAL_IN_RAM_MEMORY_SIZE(
                          c->capacity, c->key_max, c->response_max,
                          c->state_max, d->storage.sector_count,
                          d->storage.prog_size)
                    : IDEM_JOURNAL_MEMORY_SIZE(
                          c->capacity, c->key_max, c->response_max,
                          c->state_max, d->storage.sector_count,
                          d->storage.prog_size);
        assert_in_range(size, 1, named);
        assert_int_equal(idem_open(&d->f.table, c, memory, size - 1, 0),
                         IDEM_E_MEMORY);
        assert_int_equal(d->f.table.needed, size);
        assert_int_equal(idem_open(&d->f.table, c, (char *)memory + 1,
                                   sizeof memory - 1, 0), IDEM_E_MEMORY);
        assert_int_not_equal(idem_open(&d->f.table, c, memory, size, 0),
                             IDEM_E_MEMORY);
    }
}

/* ---------------------------------------------------------------------------
   opening, and what it costs
   ------------------------------------------------------------------------ */

static void opening_writes_nothing_on_blank_storage_either(void **state)
{
    device *d = (device *)*state;

    for (unsigned i = 0; i < COUNT(geometries); i++) {
        flash *m = &d->medium;
        tight(d, &geometries[i], 5);
        assert_in_range(flash_most_read(m), 0, 1);
        device_look(d);
        device_rest(d);
        device_elapse(d, 100);
        assert_int_equal(device_sync(d), IDEM_OK);
        assert_int_equal(device_forget(d, 0), IDEM_E_NOT_FOUND);
        assert_int_equal(ask(&d->f, "", d->now), IDEM_E_ARG);
        assert_int_equal(ask(&d->f, "too long a key", d->now),
                         IDEM_E_TOO_LARGE);
        assert_int_equal(m->progs + m->erases, 0);
        assert_int_equal(device_begin(d, 0), IDEM_EXECUTE);
        assert_true(m->progs > 0);
    }
}

/* Also of looking, of duplicates, and of idle time without anything to do. */
static void a_boot_that_writes_nothing_costs_nothing(void **state)
{
    device *d = (device *)*state;

    for (unsigned i = 0; i < COUNT(geometries); i++) {
        uint8_t *image;
        uint32_t progs, erases;
        tight(d, &geometries[i], 5);
        d->f.request.lease_ms = IDEM_LEASE_NONE;
        play(d, NULL, "B0 S0 B1 O1 B2 C2 B3 P B4 P B0");
        device_restart(d);
        image = device_image(d);
        progs = d->medium.progs;
        erases = d->medium.erases;
        for (unsigned boot = 0; boot < 20; boot++) {
            device_restart(d);
            d->now += 10;
            assert_int_equal(device_begin(d, 0), IDEM_REPLAY);
            assert_int_equal(device_begin(d, 1), IDEM_REPLAY);
            assert_int_equal(device_renew(d, 3, 100), IDEM_E_FENCED);
        }
        assert_int_equal(d->medium.progs, progs);
        assert_int_equal(d->medium.erases, erases);
        assert_memory_equal(d->medium.bytes, image, d->medium.size);
        free(image);
    }
}

/* In the buffer of a record at a time, or of all there is. */
static void more_memory_means_fewer_reads_and_nothing_else(void **state)
{
    device *d = (device *)*state;
    uint32_t reads = UINT32_MAX;

    d->f.config.capacity = 8;
    device_start(d, &usual);
    play(d, NULL, "B0 C0 B1 S1 B2 O2 B3 P B4 L4 B5 B6 R6 B7 C7 X7 P");
    for (size_t spare = 0; spare < 2000; spare = 3 * spare + 41) {
        flash_boot(&d->medium);
        assert_int_equal(device_open_with(d, spare), IDEM_OK);
        assert_in_range(flash_most_read(&d->medium), 1, 1);
        assert_in_range(d->reads, 1, reads);
        reads = d->reads;
        device_look(d);
    }
    // A header and the records of each sector.
    assert_in_range(reads, 1, 2 * d->medium.sector_count);
}

/* What is blank goes by a buffer at a time. */
static void the_blank_rest_of_a_sector_takes_few_reads(void **state)
{
    static const geometry large =
        { "large", FLASH_NOR, 4, 16384, 0, 0xFF, 0, 0, 0 };
    device *d = (device *)*state;

    device_start(d, &large);
    play(d, NULL, "B0");
    assert_int_equal(device_open(d), IDEM_OK);
    // The headers of each sector; and in the head what is left of a granule.
    assert_in_range(d->reads, 1, d->medium.sector_count + 1 +
                    large.sector_size / (d->f.table.journal->in_size - 4));
}

static int some_read(void *ctx, uint32_t at, void *dst, uint32_t len)
{
    assert_int_not_equal(len, 0);
    return flash_read(ctx, at, dst, len);
}

static int some_prog(void *ctx, uint32_t at, const void *src, uint32_t len)
{
    assert_int_not_equal(len, 0);
    return flash_prog(ctx, at, src, len);
}

/* There are bus drivers that do not end then. */
static void no_callback_is_asked_for_no_bytes(void **state)
{
    device *d = (device *)*state;

    for (unsigned i = 0; i < COUNT(geometries); i++) {
        tight(d, &geometries[i], 5);
        d->storage.read = some_read;
        d->storage.prog = some_prog;
        churn(d, d->medium.size > 100000 ? 40 : 150);
    }
}

/* L1, and the figure of the contract: 0 programs, 0 erases, 2 reads. */
static void a_duplicate_costs_two_reads_at_most(void **state)
{
    device *d = (device *)*state;

    for (unsigned i = 0; i < COUNT(geometries); i++) {
        tight(d, &geometries[i], 5);
        play(d, NULL, "B0 L0 B1 F1 B2 S2 B3");
        for (unsigned boot = 0; boot < 3; boot++) {
            for (unsigned key = 0; key < 3; key++) {
                assert_int_equal(device_begin(d, key), IDEM_REPLAY);
                // The first may have to be confirmed in this boot.
                assert_int_equal(device_begin(d, key), IDEM_REPLAY);
                assert_int_equal(d->progs + d->erases, 0);
                assert_in_range(d->reads, 0, d->f.config.in_ram ? 0 : 2);
                d->payload = 1;
                assert_int_equal(device_begin(d, key), IDEM_MISMATCH);
                assert_int_equal(d->progs + d->erases, 0);
                assert_in_range(d->reads, 0, d->f.config.in_ram ? 0 : 2);
                d->payload = 0;
            }
            device_restart(d);
        }
    }
}

static void looking_costs_two_reads_a_key(void **state)
{
    device *d = (device *)*state;

    device_start(d, &usual);
    play(d, NULL, "B0 C0 B1 S1 B2 O2 P B3 M");
    for (unsigned key = 0; key < 5; key++) {
        device_before(d);
        find(&d->f, "panel", key_name(key), d->now);
        device_after(d, 0);
        assert_in_range(d->reads, 0, 2);
        assert_int_equal(d->progs + d->erases, 0);
    }
}

/* In one call. */
static void what_was_read_is_not_read_again(void **state)
{
    device *d = (device *)*state;
    unsigned slot;

    device_start(d, &usual);
    play(d, NULL, "B0 C0 B1");
    slot = (unsigned)d->truth.keys[0].claim.slot;
    device_before(d);
    for (unsigned n = 0; n < 3; n++)
        assert_int_equal(idemi_journal_load(&d->f.table, slot, n > 0), IDEM_OK);
    device_after(d, 0);
    assert_int_equal(d->reads, 2);
}

/* ---------------------------------------------------------------------------
   restarts
   ------------------------------------------------------------------------ */

static void s2_every_outcome_is_replayed_byte_for_byte(void **state)
{
    device *d = (device *)*state;

    for (unsigned i = 0; i < COUNT(geometries); i++)
        for (unsigned ram = 0; ram < 2; ram++) {
            tight(d, &geometries[i], 8);
            d->f.config.in_ram = (uint8_t)ram;
            device_start(d, &geometries[i]);
            play(d, NULL, "B0 C0 B1 F1 B2 E2 B3 L3 B4 S4 B5 O5 B6 B7");
            for (unsigned boot = 0; boot < 6; boot++) {
                for (unsigned key = 0; key < 6; key++)
                    assert_int_equal(device_begin(d, key), IDEM_REPLAY);
                device_restart(d);
                // Half of the boots write, half of them do not.
                if (boot & 1)
                    play(d, NULL, "X3 B3 L3");
            }
        }
}

static void s3_another_payload_is_a_mismatch_also_after_a_restart(void **state)
{
    device *d = (device *)*state;

    device_start(d, &usual);
    play(d, NULL, "B0 C0 B1 B2 F2 P");
    d->payload = 1;
    for (unsigned key = 0; key < 3; key++)
        assert_int_equal(device_begin(d, key), IDEM_MISMATCH);
    device_restart(d);
    d->payload = 1;
    for (unsigned key = 0; key < 3; key++)
        assert_int_equal(device_begin(d, key), IDEM_MISMATCH);
}

/* device_grant compares each token with the largest of all boots. */
static void tokens_increase_over_restarts_that_wrote_nothing(void **state)
{
    device *d = (device *)*state;

    for (int loose = 0; loose < 2; loose++) {
        d->f.config.in_ram = d->f.config.volatile_claims = (uint8_t)loose;
        device_start(d, &usual);
        for (unsigned boot = 0; boot < 200; boot++) {
            for (unsigned n = boot % 5; n > 0; n--) {
                assert_int_equal(device_begin(d, 0), IDEM_EXECUTE);
                device_release(d, 0, &d->f.claim);
            }
            truth_restart(&d->truth);
            flash_boot(&d->medium);
            assert_int_equal(device_open(d), IDEM_OK);
        }
    }
}

static void s1_claims_of_the_boot_before_are_fenced(void **state)
{
    device *d = (device *)*state;
    idem_claim claim;

    device_start(d, &usual);
    d->f.request.lease_ms = IDEM_LEASE_NONE;
    play(d, NULL, "B0 B1 B2 P");
    for (unsigned key = 0; key < 3; key++) {
        claim = d->truth.keys[key].claim;
        assert_int_equal(device_complete(d, key, 3), IDEM_E_FENCED);
        assert_int_equal(device_renew(d, key, 100), IDEM_E_FENCED);
        assert_int_equal(device_release(d, key, &claim), IDEM_E_FENCED);
        assert_int_equal(device_begin(d, key), IDEM_RECOVER);
        assert_int_equal(device_release(d, key, &claim), IDEM_E_FENCED);
        assert_int_equal(device_complete_as(d, key, &claim, 3), IDEM_E_FENCED);
        assert_int_equal(device_complete(d, key, 3), IDEM_OK);
        assert_int_equal(device_complete(d, key, 3), IDEM_E_FENCED);
    }
}

static void l2_a_key_that_resets_the_device_ends_exhausted(void **state)
{
    device *d = (device *)*state;

    for (unsigned attempts = 0; attempts < 6; attempts++) {
        d->f.config.max_attempts = (uint8_t)attempts;
        device_start(d, &usual);
        assert_int_equal(device_begin(d, 0), IDEM_EXECUTE);
        for (unsigned n = 1; n < (attempts ? attempts : 3); n++) {
            device_restart(d);
            assert_int_equal(device_begin(d, 0), IDEM_RECOVER);
            assert_int_equal(d->f.claim.attempt, n + 1);
        }
        for (unsigned n = 0; n < 3; n++) {
            device_restart(d);
            assert_int_equal(device_begin(d, 0), IDEM_EXHAUSTED);
            // Other keys go on.
            play(d, NULL, "B1 C1 X1");
        }
        // Forgetting is the way out, and starts anew; so does release.
        assert_int_equal(device_forget(d, 0), IDEM_OK);
        device_restart(d);
        assert_int_equal(device_begin(d, 0), IDEM_EXECUTE);
        assert_int_equal(d->f.claim.attempt, 1);
        assert_int_equal(device_release(d, 0, &d->f.claim), IDEM_OK);
        device_restart(d);
        assert_int_equal(device_begin(d, 0), IDEM_EXECUTE);
        assert_int_equal(d->f.claim.attempt, 1);
    }
}

static void attempts_are_counted_over_leases_and_restarts_alike(void **state)
{
    device *d = (device *)*state;

    d->f.config.max_attempts = 5;
    device_start(d, &usual);
    assert_int_equal(device_begin(d, 0), IDEM_EXECUTE);
    d->now += 100;
    assert_int_equal(device_begin(d, 0), IDEM_RECOVER);
    device_restart(d);
    assert_int_equal(device_begin(d, 0), IDEM_RECOVER);
    d->now += 100;
    assert_int_equal(device_begin(d, 0), IDEM_RECOVER);
    device_restart(d);
    assert_int_equal(device_begin(d, 0), IDEM_RECOVER);
    assert_int_equal(d->f.claim.attempt, 5);
    assert_int_equal(device_begin(d, 0), IDEM_BUSY);
    d->now += 100;
    assert_int_equal(device_begin(d, 0), IDEM_EXHAUSTED);
    assert_int_equal(device_complete(d, 0, 3), IDEM_OK);
    device_restart(d);
    assert_int_equal(device_begin(d, 0), IDEM_REPLAY);
}

/* To the millisecond: the clock goes on from the newest time written. */
static void s6_retention_goes_on_after_a_restart(void **state)
{
    device *d = (device *)*state;

    for (unsigned ram = 0; ram < 2; ram++) {
        d->f.config.in_ram = (uint8_t)ram;
        device_start(d, &usual);
        play(d, NULL, "B0 C0");             // completed at 2
        d->now += 400;
        play(d, NULL, "B1 P");              // written at 403
        assert_int_equal(d->truth.clock, 403);
        d->now += 598;
        assert_int_equal(device_begin(d, 0), IDEM_REPLAY);
        assert_int_equal(d->f.reply.age_ms, 999);
        device_restart(d);                  // nothing was written: 403 again
        d->now += 598;
        assert_int_equal(device_begin(d, 0), IDEM_REPLAY);
        d->now += 1;
        assert_int_equal(device_begin(d, 0), IDEM_EXECUTE);
    }
}

/* Though by then it is over for longer than times are told apart. */
static void a_shorter_retention_counts_for_what_is_stored(void **state)
{
    device *d = (device *)*state;

    for (unsigned ram = 0; ram < 2; ram++) {
        d->f.config.in_ram = (uint8_t)ram;
        d->f.config.retention_ms = IDEM_RETENTION_MAX;
        device_start(d, &usual);
        assert_int_equal(ask(&d->f, "done", d->now), IDEM_EXECUTE);
        assert_int_equal(complete(&d->f, &d->f.claim, "ok", d->now), IDEM_OK);
        assert_int_equal(ask(&d->f, "cut short", d->now), IDEM_EXECUTE);
        for (unsigned boot = 0; boot < 3; boot++) {
            assert_int_equal(device_open(d), IDEM_OK);
            assert_int_equal(idem_elapse(&d->f.table,
                                         UINT32_C(8) * 86400000), IDEM_OK);
            while (idem_maintain(&d->f.table, d->now) == IDEM_MORE)
                ;
            assert_int_equal(ask(&d->f, "once", d->now), IDEM_EXECUTE);
            assert_int_equal(release(&d->f, &d->f.claim, d->now), IDEM_OK);
        }
        d->f.config.retention_ms = 5000;
        assert_int_equal(device_open(d), IDEM_OK);
        assert_int_equal(idem_check(&d->f.table), 0);
        assert_int_equal(ask(&d->f, "done", d->now), IDEM_EXECUTE);
        assert_int_equal(ask(&d->f, "cut short", d->now), IDEM_EXECUTE);
        assert_int_equal(idem_check(&d->f.table), 0);
    }
}

static void s4_a_cut_short_key_is_remembered_from_the_restart_on(void **state)
{
    device *d = (device *)*state;

    device_start(d, &usual);
    play(d, NULL, "B0");
    d->now += 400;
    play(d, NULL, "B1 C1 P");               // cut at 403
    // What this boot writes does not make it shorter in the next.
    d->now += 100;
    play(d, NULL, "B2 C2 P");
    assert_int_equal(d->truth.clock, 505);
    d->now += 403 + 999 - 505;
    assert_int_equal(device_begin(d, 0), IDEM_RECOVER);
    device_restart(d);
    assert_int_equal(device_begin(d, 0), IDEM_RECOVER);
    assert_int_equal(d->f.claim.attempt, 3);
}

/* The reader must not infer from a lease's first end that the key is over, and
   its slot free, or that the writer thought so. */
static void s6_a_renewed_claim_is_known_after_a_restart(void **state)
{
    device *d = (device *)*state;

    for (unsigned ram = 0; ram < 2; ram++) {
        d->f.config.in_ram = (uint8_t)ram;
        device_start(d, &usual);
        assert_int_equal(device_begin(d, 0), IDEM_EXECUTE);
        for (unsigned n = 0; n < 200; n++) {
            d->now += 99;
            assert_int_equal(device_renew(d, 0, 100), IDEM_OK);
            device_begin(d, 1 + n % 5);
            device_complete(d, 1 + n % 5, 5);
        }
        device_restart(d);
        assert_int_equal(device_begin(d, 0), IDEM_RECOVER);
    }
}

static void a_lease_without_end_ends_with_the_boot(void **state)
{
    device *d = (device *)*state;

    device_start(d, &usual);
    d->f.request.lease_ms = IDEM_LEASE_NONE;
    play(d, NULL, "B0 B1");
    for (unsigned n = 0; n < 40; n++)
        device_elapse(d, UINT32_MAX);
    assert_int_equal(device_begin(d, 0), IDEM_BUSY);
    assert_int_equal(device_complete(d, 1, 5), IDEM_OK);
    device_restart(d);
    assert_int_equal(device_begin(d, 0), IDEM_RECOVER);
    assert_int_equal(device_begin(d, 0), IDEM_BUSY);
    assert_int_equal(device_begin(d, 1), IDEM_REPLAY);
}

static void an_rtc_may_tell_how_long_the_power_was_off(void **state)
{
    device *d = (device *)*state;

    device_start(d, &usual);
    play(d, NULL, "B0 C0 B1 P");
    device_elapse(d, 500);
    assert_int_equal(device_begin(d, 0), IDEM_REPLAY);
    assert_int_equal(d->f.reply.age_ms, 501);
    device_elapse(d, 498);
    assert_int_equal(device_begin(d, 0), IDEM_REPLAY);
    assert_int_equal(device_begin(d, 1), IDEM_RECOVER);
    device_restart(d);
    device_elapse(d, 1);
    assert_int_equal(device_begin(d, 0), IDEM_EXECUTE);
    device_restart(d);
    assert_int_equal(device_begin(d, 0), IDEM_RECOVER);
}

static void s1_a_takeover_holds_after_a_restart(void **state)
{
    device *d = (device *)*state;
    idem_claim first;

    device_start(d, &usual);
    play(d, NULL, "B0");
    first = d->f.claim;
    d->now += 100;
    play(d, NULL, "B0 L0");
    assert_int_equal(device_complete_as(d, 0, &first, 2), IDEM_E_FENCED);
    device_restart(d);
    assert_int_equal(device_begin(d, 0), IDEM_REPLAY);
    assert_int_equal(d->f.reply.claim.attempt, 2);
    assert_int_equal(device_complete_as(d, 0, &first, 2), IDEM_E_FENCED);
}

/* 64 bits of time: what was finished before each jump is over after it, what is
   finished after it is not, and restarts agree. */
static void time_may_pass_the_32_bits_again_and_again(void **state)
{
    static const uint32_t jumps[] = { 0x10000000, 0x7FFFFFFF, 0x80000000,
                                      0xFFFFFFFF, 0xFFFFFC18, 1000, 999 };
    device *d = (device *)*state;

    for (unsigned ram = 0; ram < 2; ram++) {
        d->f.config.in_ram = (uint8_t)ram;
        device_start(d, &usual);
        for (unsigned n = 0; n < 60; n++) {
            unsigned key = n % 3;
            d->f.request.lease_ms = n % 2 ? IDEM_LEASE_NONE : 0;
            device_begin(d, key);
            if (n % 3)
                device_complete(d, key, 5);
            if (n % 5 == 0)
                device_restart(d);
            device_elapse(d, jumps[n % COUNT(jumps)]);
            if (n % 7 == 0)
                device_elapse(d, UINT32_MAX);
            if (n % 4 == 0)
                device_restart(d);
        }
        assert_true(d->truth.clock > UINT64_C(10) << 32);
    }
}

/* Without bodies in memory a slot has a number for its retention, of which
   there are few; then a longer one is used. */
static void s6_many_retentions_are_never_shortened(void **state)
{
    device *d = (device *)*state;
    idem_config *c = &d->f.config;

    for (unsigned ram = 0; ram < 2; ram++) {
        c->in_ram = (uint8_t)ram;
        c->capacity = 28;
        device_start(d, &usual);
        for (unsigned key = 0; key < 28; key++) {
            d->f.request.retention_ms = 2000 + 37 * (key * 11 % 28);
            assert_int_equal(ask(&d->f, key_name(key), d->now), IDEM_EXECUTE);
            assert_int_equal(complete(&d->f, &d->f.claim, "5 ml", d->now),
                             IDEM_OK);
        }
        for (unsigned boot = 0; boot < 3; boot++) {
            for (unsigned key = 0; key < 28; key++) {
                assert_int_equal(find(&d->f, "panel", key_name(key), d->now),
                                 IDEM_OK);
                assert_true(d->f.entry.left_ms >=
                            2000 + 37 * (key * 11 % 28));
            }
            flash_boot(&d->medium);
            assert_int_equal(device_open(d), IDEM_OK);
        }
        memset(&d->f.request, 0, sizeof d->f.request);
    }
}

/* A key that is finished, with a retention; what is there of it goes before. */
static void keep(device *d, unsigned key, uint32_t retention_ms)
{
    fixture *f = &d->f;
    char name[4] = { (char)('a' + key / 100), (char)('0' + key / 10 % 10),
                     (char)('0' + key % 10), 0 };

    (void)forget(f, "", name, d->now);
    f->request.retention_ms = retention_ms;
    assert_int_equal(begin(f, "", name, "pour", d->now), IDEM_EXECUTE);
    assert_int_equal(complete(f, &f->claim, "5 ml", d->now), IDEM_OK);
    assert_int_equal(find(f, "", name, d->now), IDEM_OK);
    if (retention_ms)
        assert_int_equal(f->entry.left_ms, retention_ms);
}

/* There are numbers for thirteen beside the default and the longest; that of a
   key that is gone is free again. */
static void s6_a_few_retentions_are_kept_exactly(void **state)
{
    static const unsigned capacities[] = { 1, 5, 12, 13, 300 };
    device *d = (device *)*state;

    for (unsigned i = 0; i < COUNT(capacities); i++) {
        unsigned keys = capacities[i], others = keys < 13 ? keys : 13;
        d->f.config.capacity = keys;
        device_start(d, &usual);
        for (unsigned key = 0; key < keys; key++)
            keep(d, key, 0);
        keep(d, 0, 0);
        for (unsigned n = 0; n < 5 * others; n++)
            keep(d, keys - 1 - n % others, 2000 + 37 * n);
    }
}

/* All thirteen at once: none becomes the next longer one. */
static void s6_a_few_retentions_are_the_same_after_a_restart(void **state)
{
    enum { RETENTIONS = 13 };
    device *d = (device *)*state;
    fixture *f = &d->f;

    f->config.capacity = RETENTIONS;
    device_start(d, &usual);
    for (unsigned n = 0; n < RETENTIONS; n++) {
        f->request.retention_ms = 2000 + 37 * n;
        (void)finish(f, "panel", key_name(n), d->now);
    }
    for (unsigned boot = 0; boot < 3; boot++) {
        assert_int_equal(device_open(d), IDEM_OK);
        for (unsigned n = 0; n < RETENTIONS; n++) {
            assert_int_equal(find(f, "panel", key_name(n), d->now), IDEM_OK);
            assert_int_equal(f->entry.left_ms, 2000 + 37 * n);
        }
    }
}

static void the_state_is_that_of_the_last_outcome_that_had_one(void **state)
{
    device *d = (device *)*state;

    for (unsigned i = 0; i < COUNT(geometries); i++) {
        d->f.config.state_max = 8;
        d->f.config.key_max = 8;
        d->f.config.response_max = 4;
        d->f.config.capacity = 3;
        if (geometries[i].sector_size < 300)
            d->f.config.response_max = 0, d->f.config.state_max = 2;
        if (!device_medium(d, &geometries[i]))
            continue;
        device_start(d, &geometries[i]);
        device_look(d);
        for (unsigned n = 0; n < 60; n++) {
            device_begin(d, n % 4);
            memset(&d->f.outcome, 0, sizeof d->f.outcome);
            // It is carried for long before it changes, in length too.
            if (n % 20 == 7) {
                d->f.outcome.state = "state 12";
                d->f.outcome.state_len = n % 40 == 7 ? d->f.config.state_max
                                                     : 0;
            }
            device_complete(d, n % 4, d->truth.keys[n % 4].reserved);
            d->now += 500;
            if (n % 5 == 0)
                device_restart(d);
        }
    }
}

static void what_is_owed_is_owed_until_delivered_over_restarts(void **state)
{
    device *d = (device *)*state;

    d->f.config.retention_ms = 100000;
    device_start(d, &usual);
    play(d, NULL, "B0 O0 B1 C1 B2 O2 B3 O3");
    for (unsigned boot = 0; boot < 12; boot++) {
        if (boot == 3)
            assert_int_equal(device_deliver(d, 2), IDEM_OK);
        if (boot == 5)
            assert_int_equal(device_deliver(d, 2), IDEM_OK);
        if (boot == 7)
            assert_int_equal(device_deliver(d, 0), IDEM_OK);
        device_restart(d);
        if (boot % 2) {
            assert_int_equal(device_begin(d, 1), IDEM_REPLAY);
            assert_int_equal(device_forget(d, 1), IDEM_OK);
            play(d, NULL, "B1 C1");
        }
        assert_int_equal(d->f.table.pending, boot < 3 ? 3 : boot < 7 ? 2 : 1);
    }
}

/* What is owed is listed in the order of completion, also after it was carried
   forward in the order of slots. */
static void the_order_of_completion_survives(void **state)
{
    static const unsigned order[] = { 2, 0, 5, 1, 4, 3 };
    device *d = (device *)*state;

    d->f.config.capacity = 7;
    d->f.config.retention_ms = 10000000;
    device_start(d, &usual);
    play(d, NULL, "B0 B1 B2 B3 B4 B5");
    for (unsigned i = 0; i < COUNT(order); i++) {
        d->now += 10;
        play_event(d, 'O', order[i]);
    }
    for (unsigned n = 0; n < 200; n++) {
        idem_entry e = { .id = d->f.id, .id_size = sizeof d->f.id };
        for (unsigned i = 0; i < COUNT(order); i++) {
            assert_int_equal(idem_pending(&d->f.table, &e, d->now), IDEM_OK);
            assert_memory_equal((char *)e.id + 5, key_name(order[i]), 3);
        }
        play(d, NULL, n % 7 ? "B6 L6 X6" : "P");
    }
}

static void eviction_takes_the_oldest_completion_over_restarts(void **state)
{
    device *d = (device *)*state;
    fixture *f = &d->f;

    f->config.full = IDEM_EVICT_OLDEST;
    f->config.retention_ms = 10000000;
    device_start(d, &usual);
    // The first is owed, and stays.  Of the others the three newest do.
    for (unsigned key = 0; key < KEYS; key++) {
        f->outcome.confirm = key == 0;
        assert_int_equal(ask(f, key_name(key), d->now), IDEM_EXECUTE);
        assert_int_equal(complete(f, &f->claim, "poured", d->now), IDEM_OK);
        d->now += 10;
        flash_boot(&d->medium);
        assert_int_equal(device_open(d), IDEM_OK);
        for (unsigned old = 0; old <= key; old++)
            assert_int_equal(find(f, "panel", key_name(old), d->now),
                             !old || key - old < 3 ? IDEM_OK
                                                   : IDEM_E_NOT_FOUND);
    }
    assert_int_equal(f->table.pending, 1);
}

/* Under eviction the table does not know what it forgot before the opening. */
static void too_old_reaches_to_the_opening_only_under_eviction(void **state)
{
    device *d = (device *)*state;
    fixture *f = &d->f;

    for (unsigned full = IDEM_REJECT; full <= IDEM_EVICT_OLDEST; full++) {
        f->config.full = (uint8_t)full;
        device_start(d, &usual);
        f->request.age_ms = 0;
        assert_int_equal(ask(f, "a", d->now), IDEM_EXECUTE);
        assert_int_equal(complete(f, &f->claim, "poured", d->now), IDEM_OK);
        flash_boot(&d->medium);
        assert_int_equal(device_open(d), IDEM_OK);
        d->now += 10;
        f->request.age_ms = 500;
        assert_int_equal(ask(f, "a", d->now), IDEM_REPLAY);
        assert_int_equal(ask(f, "b", d->now), full ? IDEM_TOO_OLD
                                                   : IDEM_EXECUTE);
        f->request.age_ms = 1000;
        assert_int_equal(ask(f, "c", d->now), IDEM_TOO_OLD);
        f->request.age_ms = 5;
        assert_int_equal(ask(f, "d", d->now), IDEM_EXECUTE);
    }
}

static void s9_a_quota_holds_over_restarts(void **state)
{
    device *d = (device *)*state;
    fixture *f = &d->f;

    for (unsigned ram = 0; ram < 2; ram++) {
        f->config.in_ram = (uint8_t)ram;
        f->config.quota = 2;
        device_start(d, &usual);
        assert_int_equal(ask(f, "a", d->now), IDEM_EXECUTE);
        assert_int_equal(ask(f, "b", d->now), IDEM_EXECUTE);
        flash_boot(&d->medium);
        assert_int_equal(device_open(d), IDEM_OK);
        assert_int_equal(ask(f, "c", d->now), IDEM_E_FULL);
        assert_int_equal(begin(f, "boiler", "c", "heat", d->now),
                         IDEM_EXECUTE);
        assert_int_equal(ask(f, "a", d->now), IDEM_RECOVER);
        assert_int_equal(release(f, &f->claim, d->now), IDEM_OK);
        assert_int_equal(ask(f, "c", d->now), IDEM_EXECUTE);
    }
}

static void s7_a_response_over_the_reservation_leaves_the_claim(void **state)
{
    device *d = (device *)*state;

    for (unsigned ram = 0; ram < 2; ram++) {
        d->f.config.in_ram = (uint8_t)ram;
        device_start(d, &usual);
        d->f.request.response_size = 7;
        play(d, NULL, "B0");
        assert_int_equal(device_complete(d, 0, 8), IDEM_E_TOO_LARGE);
        assert_int_equal(d->progs, 0);
        device_restart(d);
        // Taken over, it has the reservation of the new request.
        d->f.request.response_size = 9;
        play(d, NULL, "B0");
        assert_int_equal(device_complete(d, 0, 10), IDEM_E_TOO_LARGE);
        assert_int_equal(device_complete(d, 0, 9), IDEM_OK);
        d->f.request.response_size = 0;
    }
}

/* A slot is used again; a completion of the one that had it before does not
   bind to the one that has it now. */
static void a_completion_binds_only_to_its_own_claim(void **state)
{
    device *d = (device *)*state;

    device_start(d, &usual);
    d->f.config.max_attempts = 255;
    for (unsigned n = 0; n < 300; n++) {
        static const char *const lives[] = {
            "B0 R0", "B0 C0 X0", "B0", "B0 F0 X0", "B0 R0 B1 R1", "P", "B0 L0 T"
        };
        const char *life = lives[any(d, COUNT(lives))];
        unsigned key;
        char what;
        while ((what = script_next(&life, &key)) != 0)
            play_event(d, what, key);
        device_look(d);
    }
}

/* ---------------------------------------------------------------------------
   a cache before the medium, and claims that are not written
   ------------------------------------------------------------------------ */

/* In a cut of a cache, what was synced survives.  What was not is there or not,
   key by key, and never counts as lost. */
static void s2_in_batch_mode_what_was_synced_survives_a_cut(void **state)
{
    static const char script[] =
        "B0 L0 B1 B2 S2 Y B3 F3 B1 C1 X0 B5 D2 R5 B6 Y B7 C7 X3 B0 C6 O0";
    device *d = (device *)*state;
    unsigned variants = 1;

    d->f.config.durability = IDEM_BATCH;
    d->f.config.capacity = 9;
    d->f.config.lease_ms = 1;
    for (unsigned stop = 0; stop < 30; stop++)
        for (unsigned v = 0; v < variants; v++) {
            const char *rest = script;
            truth synced, now;
            unsigned key;
            char what = 'Y';
            device_start(d, &in_place);
            device_cache(d);
            d->medium.draws = 4;
            assert_int_equal(device_open(d), IDEM_OK);
            memset(&d->truth, 0, sizeof d->truth);
            synced = d->truth;
            for (unsigned n = 0; n < stop; n++) {
                what = script_next(&rest, &key);
                if (!what)
                    return;
                play_event(d, what, key);
                if (what == 'Y')
                    synced = d->truth;
            }
            now = d->truth;
            flash_off(&d->medium, v);
            variants = d->medium.variants;
            flash_boot(&d->medium);
            assert_int_equal(device_open(d), IDEM_OK);
            assert_int_equal(d->f.table.stats.lost, 0);
            for (key = 0; key < 9; key++) {
                const known *a = &synced.keys[key], *b = &now.keys[key];
                int found = find(&d->f, "panel", key_name(key), d->now);
                int is = found == IDEM_OK ? d->f.entry.status : 0;
                truth *t = &d->truth;
                // Between the two it may have been claimed.
                if (a->status == b->status && a->token == b->token)
                    assert_int_equal(is, a->status);
                else
                    assert_true(is == a->status || is == b->status ||
                                is == IDEM_IN_PROGRESS);
                if (is != IDEM_COMPLETED && is != IDEM_FAILED)
                    continue;
                *t = is == a->status && d->f.entry.claim.token == a->token
                         ? synced : now;
                t->clock = t->keys[key].completed + d->f.entry.age_ms;
                device_look_at(d, key);
            }
        }
}

static void in_batch_mode_no_call_but_sync_and_turning_syncs(void **state)
{
    device *d = (device *)*state;

    d->f.config.durability = IDEM_BATCH;
    device_start(d, &in_place);
    play(d, NULL, "B0");
    for (unsigned n = 0; n < 5; n++) {
        uint32_t syncs = d->medium.syncs;
        play(d, NULL, "C0 B1 R1 X0 B0");
        assert_int_equal(d->medium.syncs, syncs);
        assert_int_equal(device_sync(d), IDEM_OK);
        assert_int_equal(d->medium.syncs, syncs + 1);
        // There is nothing to sync.
        assert_int_equal(device_sync(d), IDEM_OK);
        assert_int_equal(d->medium.syncs, syncs + 1);
        play(d, NULL, "P B0");
    }
}

static void in_each_mode_every_record_is_synced_at_once(void **state)
{
    device *d = (device *)*state;

    device_start(d, &in_place);
    device_cache(d);
    assert_int_equal(device_open(d), IDEM_OK);
    d->f.config.capacity = 4;
    for (unsigned n = 0; n < 30; n++) {
        play(d, NULL, "B0");
        assert_int_equal(d->medium.unsynced, 0);
        play(d, NULL, "S0");
        assert_int_equal(d->medium.unsynced, 0);
        play(d, NULL, "X0 B1 R1");
        assert_int_equal(d->medium.unsynced, 0);
    }
}

/* After a sync that failed nobody knows what is on the medium. */
static void after_a_sync_that_failed_nothing_is_written(void **state)
{
    static const int hows[] = { FLASH_UNDONE, FLASH_DONE, FLASH_HALF };
    device *d = (device *)*state;
    fixture *f = &d->f;

    for (unsigned i = 0; i < COUNT(hows) * 2; i++) {
        idem_claim claim;
        uint32_t progs;
        f->config.durability = i < COUNT(hows) ? IDEM_BATCH : IDEM_EACH;
        device_start(d, &in_place);
        device_cache(d);
        assert_int_equal(device_open(d), IDEM_OK);
        memset(&d->truth, 0, sizeof d->truth);
        play(d, NULL, "B0 C0 B1 Y");
        claim = f->claim;
        flash_fail(&d->medium, FLASH_SYNC, 0, hows[i % COUNT(hows)], 0);
        if (f->config.durability == IDEM_EACH) {
            assert_int_equal(ask(f, "d", d->now), IDEM_E_STORAGE);
        } else {
            assert_int_equal(ask(f, "d", d->now), IDEM_EXECUTE);
            assert_int_equal(idem_sync(&f->table), IDEM_E_STORAGE);
        }
        assert_int_equal(f->table.storage_error, FLASH_E_FAULT);
        progs = d->medium.progs;
        assert_int_equal(idem_sync(&f->table), IDEM_E_STORAGE);
        assert_int_equal(ask(f, "e", d->now), IDEM_E_STORAGE);
        assert_int_equal(complete(f, &claim, "poured", d->now),
                         IDEM_E_STORAGE);
        assert_int_equal(release(f, &claim, d->now), IDEM_E_STORAGE);
        assert_int_equal(forget(f, "panel", "k00", d->now), IDEM_E_STORAGE);
        assert_int_equal(maintain(f, d->now), IDEM_E_STORAGE);
        assert_int_equal(ask(f, "k00", d->now), IDEM_MISMATCH);
        assert_int_equal(d->medium.progs, progs);
        // What was synced before is there.
        flash_off(&d->medium, 0);
        flash_boot(&d->medium);
        assert_int_equal(device_open(d), IDEM_OK);
        assert_int_equal(f->table.stats.lost, 0);
        assert_int_equal(begin(f, "panel", "k00", "pour 5 ml", d->now),
                         IDEM_REPLAY);
        assert_int_equal(begin(f, "panel", "k01", "pour 5 ml", d->now),
                         IDEM_RECOVER);
        assert_int_equal(complete(f, &f->claim, "poured", d->now), IDEM_OK);
    }
}

static void volatile_claims_are_given_up_by_a_restart_only(void **state)
{
    device *d = (device *)*state;
    unsigned tried = 0;

    for (unsigned i = 0; i < COUNT(geometries); i++) {
        d->f.config.volatile_claims = 0;
        tight(d, &geometries[i], 5);
        d->f.config.volatile_claims = d->f.config.in_ram = 1;
        // A volatile outcome has the claim in it, so it takes more room.
        if (!device_medium(d, &geometries[i]))
            continue;
        tried++;
        device_start(d, &geometries[i]);
        for (unsigned n = 0; n < 40; n++) {
            idem_claim claim;
            play(d, NULL, "B0 B1 B2 R2 B3");
            // In this boot S4 holds: a lease that ends is recovered.
            d->now += 100;
            assert_int_equal(device_begin(d, 3), IDEM_RECOVER);
            claim = d->truth.keys[1].claim;
            play(d, NULL, "S0 B2 O2");
            device_look(d);
            device_restart(d);
            for (unsigned key = 0; key < KEYS; key++)
                assert_int_not_equal(truth_status(&d->truth, key),
                                     IDEM_IN_PROGRESS);
            assert_int_equal(device_release(d, 1, &claim), IDEM_E_FENCED);
            assert_int_equal(device_begin(d, 0), IDEM_REPLAY);
            assert_int_equal(device_begin(d, 1), IDEM_EXECUTE);
            assert_int_equal(device_begin(d, 2), IDEM_REPLAY);
            device_forget(d, 0);
            device_forget(d, 2);
            d->now += 2000;
        }
    }
    assert_in_range(tried, COUNT(geometries) / 2, COUNT(geometries));
}

static void a_volatile_claim_is_not_written_and_its_outcome_is(void **state)
{
    device *d = (device *)*state;
    uint32_t progs;

    d->f.config.volatile_claims = d->f.config.in_ram = 1;
    device_start(d, &usual);
    play(d, NULL, "B0");
    progs = d->medium.progs;
    play(d, NULL, "B1 R1 B1 B2");
    d->now += 100;
    assert_int_equal(device_begin(d, 1), IDEM_RECOVER);
    assert_int_equal(d->medium.progs, progs);
    play(d, NULL, "C1");
    assert_int_equal(d->medium.progs, progs + 1);
    device_restart(d);
    assert_int_equal(device_begin(d, 1), IDEM_REPLAY);
    // Wherever the head ends, if its outcome has a sector to go to.
    for (unsigned n = 0; n < 200; n++) {
        play(d, NULL, "B0 C0 B2 C2 X0 X1 X2 M");
        progs = d->medium.progs;
        play(d, NULL, "B1");
        assert_int_equal(d->medium.progs, progs);
        assert_int_equal(device_complete(d, 1, n % 5), IDEM_OK);
    }
}

/* So a full sector is the outcome's matter. */
static void a_volatile_claim_needs_no_room(void **state)
{
    static const geometry roomy =
        { "roomy", FLASH_NOR, 1, 1024, 0, 0xFF, 1, 0, 0 };
    device *d = (device *)*state;
    fixture *f = &d->f;

    f->config.volatile_claims = 1;
    f->request.retention_ms = RETENTION + 1;
    device_start(d, &roomy);
    finish(f, "", "twenty-four bytes or key", d->now);
    for (unsigned n = 0; n < 120; n++) {
        uint32_t progs;
        device_rest(d);
        d->now += RETENTION + 1;
        progs = d->medium.progs;
        assert_int_equal(begin(f, "", "twenty-four bytes or key", "pour",
                               d->now), IDEM_EXECUTE);
        assert_int_equal(d->medium.progs, progs);
        assert_int_equal(complete(f, &f->claim, &"sixteen bytes or"[n % 16],
                                  d->now), IDEM_OK);
    }
    assert_true(f->table.journal->sequence > 5);
}

/* Their tokens go on without a write, far beyond where their outcomes are
   written: most of all if the last is completed first. */
static void s2_outcomes_of_many_volatile_claims_outlive_a_restart(void **state)
{
    static const geometry roomy =
        { "roomy", FLASH_NOR, 1, 4096, 32, 0xFF, 1, 0, 0 };
    enum { CLAIMS = 200 };
    device *d = (device *)*state;
    fixture *f = &d->f;
    idem_claim claims[CLAIMS];
    char key[12];

    f->config.capacity = CLAIMS;
    f->config.volatile_claims = 1;
    device_start(d, &roomy);
    for (unsigned n = 0; n < CLAIMS; n++) {
        (void)snprintf(key, sizeof key, "%03u", n);
        assert_int_equal(ask(f, key, d->now), IDEM_EXECUTE);
        claims[n] = f->claim;
    }
    for (unsigned n = CLAIMS; n-- > 0;)
        assert_int_equal(complete(f, &claims[n], "poured", d->now), IDEM_OK);
    assert_int_equal(device_open(d), IDEM_OK);
    for (unsigned n = 0; n < CLAIMS; n++) {
        (void)snprintf(key, sizeof key, "%03u", n);
        assert_int_equal(ask(f, key, d->now), IDEM_REPLAY);
        assert_string_equal(f->buffer, "poured");
        assert_int_equal(f->reply.claim.token, claims[n].token);
    }
    assert_int_equal(f->table.stats.lost, 0);
}

/* After restarts in a row, each of which took a sector, there may be as many
   claims open as ever: none is refused for want of room, nor waits for a second
   erase. */
static void s7_volatile_claims_are_granted_after_restarts_too(void **state)
{
    static const struct {
        geometry g;
        unsigned claims, boots;
    } rings[] = {
        { { "16", FLASH_NOR, 16, 4000, 0, 0xFF, 1, 0, 0 }, 40, 7 },
        { { "16", FLASH_NOR, 16, 4000, 0, 0xFF, 1, 0, 0 }, 40, 21 },
        { { "64", FLASH_NOR, 64, 3968, 0, 0xFF, 1, 0, 0 }, 60, 8 },
        { { "large", FLASH_NOR, 16, 8000, 0, 0xFF, 1, 0, 0 }, 160, 14 },
    };
    device *d = (device *)*state;
    fixture *f = &d->f;
    char key[12], response[177] = { 0 };

    memset(response, 'r', sizeof response - 1);
    f->config.key_max = 8;
    f->config.response_max = sizeof response - 1;
    f->config.state_max = 90;
    f->config.volatile_claims = 1;
    f->config.full = IDEM_EVICT_OLDEST;
    f->request.lease_ms = IDEM_LEASE_NONE;
    f->request.retention_ms = IDEM_RETENTION_MAX;
    for (unsigned i = 0; i < COUNT(rings); i++) {
        unsigned claims = rings[i].claims;
        f->config.capacity = claims;
        device_start(d, &rings[i].g);
        for (unsigned n = 0; n < claims; n++) {
            (void)snprintf(key, sizeof key, "%03u", n);
            assert_int_equal(ask(f, key, d->now), IDEM_EXECUTE);
            assert_int_equal(complete(f, &f->claim, response, d->now),
                             IDEM_OK);
        }
        for (unsigned n = 0; n < rings[i].boots; n++) {
            assert_int_equal(device_open(d), IDEM_OK);
            assert_int_equal(ask(f, key, d->now), IDEM_REPLAY);
        }
        for (unsigned n = 0; n < claims; n++) {
            uint32_t erases = d->medium.erases;
            (void)snprintf(key, sizeof key, "%03u", claims + n);
            assert_int_equal(ask(f, key, d->now), IDEM_EXECUTE);
            assert_in_range(d->medium.erases - erases, 0, 1);
        }
        assert_int_equal(f->table.stats.evicted, claims);
    }
}

/* Whatever number of them there is in a sector; which is begun when those of
   the one before are used up. */
static void s1_tokens_of_volatile_claims_stay_below_the_next_sector(
    void **state)
{
    device *d = (device *)*state;
    fixture *f = &d->f;
    const idem_journal *j;
    uint64_t token = 0, first = 0;

    f->config.volatile_claims = f->config.in_ram = 1;
    device_start(d, &usual);
    play(d, NULL, "B0 C0");
    device_restart(d);
    j = f->table.journal;
    for (uint32_t n = 0; n < 2 * usual.sector_size + 9; n++) {
        uint64_t sequence;
        assert_int_equal(ask(f, "k", d->now), IDEM_EXECUTE);
        sequence = idemi_journal_sector(&f->table, j->head)->sequence;
        if (!n)
            first = sequence;
        assert_int_equal(sequence - first, n / usual.sector_size);
        assert_true(f->claim.token > token);
        token = f->claim.token;
        assert_true(token < (sequence + 1) * usual.sector_size);
        assert_int_equal(release(f, &f->claim, d->now), IDEM_OK);
    }
}

/* Not even if the sector that is begun then takes much that is carried. */
static void l3_a_complete_never_erases_when_tokens_are_used_up(void **state)
{
    static const geometry roomy =
        { "roomy", FLASH_NOR, 4, 1536, 0, 0xFF, 1, 0, 0 };
    enum { FINISHED = 50, HELD = 2 };
    device *d = (device *)*state;
    fixture *f = &d->f;
    idem_request rq = request_of(f, "", "passes by", "");

    f->config.capacity = FINISHED + HELD + 1;
    f->config.volatile_claims = 1;
    f->config.retention_ms = IDEM_RETENTION_MAX;
    f->request.lease_ms = IDEM_LEASE_NONE;
    device_start(d, &roomy);
    for (unsigned n = 0; n < FINISHED; n++) {
        const char key[] = { (char)('0' + n), '\0' };
        finish(f, "s", key, d->now);
    }
    for (uint32_t n = 0; n < 3 * d->medium.sector_count; n++) {
        idem_claim held[HELD];
        uint32_t sequence = f->table.journal->sequence, erases;
        for (unsigned i = 0; i < HELD; i++) {
            assert_int_equal(ask(f, nth(i), d->now), IDEM_EXECUTE);
            held[i] = f->claim;
        }
        for (;;) {
            assert_int_equal(idem_begin(&f->table, &f->claim, &f->reply, &rq,
                                        d->now), IDEM_EXECUTE);
            if (f->table.journal->sequence != sequence)
                break;
            assert_int_equal(idem_release(&f->table, &f->claim, d->now),
                             IDEM_OK);
        }
        erases = d->medium.erases;
        for (unsigned i = 0; i < HELD; i++)
            assert_int_equal(complete(f, &held[i], "poured", d->now), IDEM_OK);
        assert_int_equal(d->medium.erases, erases);
        assert_int_equal(release(f, &f->claim, d->now), IDEM_OK);
        for (unsigned i = 0; i < HELD; i++)
            assert_int_equal(forget(f, "panel", nth(i), d->now), IDEM_OK);
    }
}

/* Without a restart: its key is over, and its sector is cleaned. */
static void l2_idle_time_frees_what_is_stale(void **state)
{
    device *d = (device *)*state;
    fixture *f = &d->f;
    unsigned left = 400;

    f->config.retention_ms = 1000;
    device_start(d, &usual);
    assert_int_equal(ask(f, "a", d->now), IDEM_EXECUTE);
    assert_int_equal(idem_elapse(&f->table, 2 * IDEMI_SWEEP_MS), IDEM_OK);
    assert_int_equal(f->table.stale, 1);
    for (; left > 0; left--) {
        uint32_t steps = 0, progs;
        assert_int_equal(ask(f, "b", d->now), IDEM_EXECUTE);
        assert_int_equal(release(f, &f->claim, d->now), IDEM_OK);
        progs = d->medium.progs;
        while (idem_maintain(&f->table, d->now) == IDEM_MORE)
            assert_true(++steps < 100);
        assert_true(d->medium.progs - progs <= 1);
        if (!f->table.stale)
            break;
    }
    assert_true(left > 0);
    assert_int_equal(f->table.stale, 0);
    assert_int_equal(f->table.used, 0);
}

/* Wherever its claim is by then: one record says so, beside the two headers of
   a sector that is begun for it. */
static void what_is_stale_is_emptied_once(void **state)
{
    static const geometry roomy =
        { "roomy", FLASH_NOR, 1, 1024, 5, 0xFF, 0, 0, 0 };
    device *d = (device *)*state;
    fixture *f = &d->f;

    f->config.key_max = 8;
    f->config.response_max = 4;
    f->config.state_max = 0;
    device_start(d, &roomy);
    for (unsigned round = 0; round < 250; round++) {
        unsigned steps = 0;
        uint32_t progs, head;
        assert_int_equal(ask(f, "a", d->now), IDEM_EXECUTE);
        for (unsigned n = 0; n < round; n++) {
            assert_int_equal(ask(f, "b", d->now), IDEM_EXECUTE);
            assert_int_equal(release(f, &f->claim, d->now), IDEM_OK);
        }
        assert_int_equal(idem_elapse(&f->table, 2 * IDEMI_SWEEP_MS), IDEM_OK);
        assert_int_equal(f->table.stale, 1);
        progs = d->medium.progs;
        head = f->table.journal->head;
        while (maintain(f, d->now) == IDEM_MORE)
            assert_true(++steps < 100);
        progs += f->table.journal->head == head ? 1 : 3;
        assert_int_equal(d->medium.progs, progs);
        assert_int_equal(f->table.stale, 0);
    }
}

/* Until a record stands behind it a header may have been torn: what the one
   before needs is not erased. */
static void r3_a_header_is_believed_when_a_record_follows(void **state)
{
    device *d = (device *)*state;
    idem_table *t = &d->f.table;
    unsigned differed = 0;

    device_start(d, &usual);
    for (unsigned boot = 0; boot < 30; boot++) {
        uint32_t before, tail;
        play(d, NULL, "B0 C0 B1 C1 B2 X0 X1 P");
        assert_int_equal(t->journal->kept, t->journal->tail);
        before = t->journal->head;
        assert_int_equal(idemi_journal_assure(t), IDEM_OK);
        assert_int_equal(t->journal->kept, t->journal->tail);
        tail = idemi_recover_before(t, before,
                                    idemi_journal_sector(t, before)->tail);
        device_restart(d);
        differed += t->journal->kept != t->journal->tail;
        if (t->journal->kept != t->journal->tail)
            assert_int_equal(t->journal->kept, tail);
        assert_true(idemi_journal_dead(
            t, idemi_journal_after(t, t->journal->head)));
        assert_false(idemi_journal_dead(t, t->journal->kept));
        // One record behind the header, where it ends.
        play(d, NULL, "B3 P");
        assert_int_equal(idemi_storage_offset(t, t->journal->newest),
                         t->journal->own_end);
        assert_int_equal(t->journal->kept, t->journal->tail);
        play(d, NULL, "X3");
    }
    assert_true(differed > 0);
}

/* On storage without erase the first that is written to a sector announces it;
   by that the next boot knows what is not to be taken for its own, whatever the
   time is, and however many sectors were written. */
static void r3_an_attempt_is_seen_at_whatever_time(void **state)
{
    static const uint32_t times[] = { 0, 1, 255, 256, 511 };
    device *d = (device *)*state;
    const idem_table *t = &d->f.table;

    d->still = 1;
    for (unsigned i = 0; i < 2 * COUNT(times); i++) {
        uint32_t sequence, next;
        device_start(d, &in_place);
        // No such journal can be made in a test's time.
        t->journal->sequence = i % 2 ? UINT32_C(0x7F000000) : 0;
        device_elapse(d, times[i / 2]);
        // Once around, so that there are old headers below.
        for (unsigned boot = 0; boot < 12; boot++) {
            play(d, NULL, "B0 X0");
            device_restart(d);
        }
        sequence = t->journal->sequence;
        next = idemi_journal_after(t, t->journal->head);
        flash_cut(&d->medium, 1, 0);
        d->unsure = 1;
        assert_int_equal(device_begin(d, 0), IDEM_E_STORAGE);
        d->unsure = 0;
        for (unsigned boot = 0; boot < 2; boot++) {
            device_restart(d);
            assert_int_equal(t->journal->sequence, sequence + 1);
            assert_int_equal(t->journal->attempt, next);
            // Whatever is in front of it.
            flash_fill(&d->medium, next * in_place.sector_size, IDEMI_HEADER,
                       0xFF);
        }
    }
}

/* ---------------------------------------------------------------------------
   one durable step
   ------------------------------------------------------------------------ */

/* Cuts the n-th operation of the last event of a script, in all variants, on a
   medium where `before` was played; then calls check.  Ends when the event has
   less operations. */
static void cut_last(device *d, const geometry *g, const char *before,
                     char what, unsigned key,
                     void (*check)(device *, const truth *was))
{
    unsigned variants = 1;

    for (uint32_t n = 0; variants; n++)
        for (unsigned v = 0; v < variants; v++) {
            truth was;
            device_start(d, g);
            d->medium.draws = 6;
            play(d, NULL, before);
            was = d->truth;
            flash_cut(&d->medium, n, v);
            d->unsure = 1;
            play_event(d, what, key);
            d->unsure = 0;
            variants = d->medium.off ? d->medium.variants : 0;
            if (!variants)
                break;
            d->truth.written = d->truth.clock;
            truth_restart(&d->truth);
            truth_restart(&was);
            flash_boot(&d->medium);
            assert_int_equal(device_open(d), IDEM_OK);
            assert_int_equal(d->f.table.stats.lost, 0);
            check(d, &was);
        }
}

static void check_all_or_nothing(device *d, const truth *was)
{
    uint8_t state[STATES];
    size_t len = sizeof state;
    const idem_entry *e = &d->f.entry;

    assert_int_equal(find(&d->f, "panel", "k01", d->now), IDEM_OK);
    assert_int_equal(idem_state(&d->f.table, state, &len), IDEM_OK);
    assert_int_equal(d->f.table.pending, e->status == IDEM_COMPLETED);
    if (e->status == IDEM_COMPLETED) {
        assert_int_equal(len, 5);
        assert_memory_equal(state, "later", 5);
        assert_int_equal(e->code, -3);
        assert_true(e->undelivered);
    } else {
        assert_int_equal(e->status, IDEM_IN_PROGRESS);
        assert_int_equal(len, was->state_len);
        assert_memory_equal(state, was->state, len);
    }
}

/* play_event sets the outcome that this test wants to have all parts of. */
static void outcome_state_and_delivery_are_one_step(void **state)
{
    device *d = (device *)*state;
    unsigned variants = 1;

    for (unsigned i = 0; i < COUNT(geometries); i++)
        for (unsigned v = 0; v < variants; v++) {
            truth was;
            if (geometries[i].sector_size < 512)
                break;
            tight(d, &geometries[i], 5);
            d->medium.draws = 3;
            play(d, NULL, "B0 S0 B1");
            was = d->truth;
            d->f.outcome.state = "later";
            d->f.outcome.state_len = 5;
            d->f.outcome.confirm = 1;
            d->f.outcome.code = -3;
            flash_cut(&d->medium, 0, v);
            d->unsure = 1;
            assert_int_equal(device_complete(d, 1, 9), IDEM_E_STORAGE);
            d->unsure = 0;
            variants = d->medium.variants;
            assert_true(variants);
            flash_boot(&d->medium);
            assert_int_equal(device_open(d), IDEM_OK);
            assert_int_equal(d->f.table.stats.lost, 0);
            check_all_or_nothing(d, &was);
        }
}

/* Whatever begin answers in a boot, all later boots agree with. */
static void check_stable(device *d, const truth *was)
{
    int answers[2] = { 0, 0 };

    (void)was;
    for (unsigned boot = 0; boot < 5; boot++) {
        // First in one order, then in the other.
        for (unsigned i = 0; i < 2; i++) {
            unsigned key = boot % 2 ? i : 1 - i;
            int answer = begin(&d->f, "panel", key_name(key), "pour 5 ml",
                               d->now);
            int shown = find(&d->f, "panel", key_name(key), d->now);
            assert_int_equal(shown, IDEM_OK);
            if (answer == IDEM_EXECUTE)
                answer = IDEM_RECOVER;
            assert_true(answer == IDEM_RECOVER || answer == IDEM_REPLAY);
            if (boot)
                assert_int_equal(answer, answers[key]);
            answers[key] = answer;
        }
        flash_boot(&d->medium);
        assert_int_equal(device_open(d), IDEM_OK);
    }
}

/* Bits that change from boot to boot and from read to read are among the
   variants of a cut. */
static void s10_what_one_boot_answered_all_later_ones_answer(void **state)
{
    static const geometry *const media[] = { &geometries[0], &geometries[3],
                                             &geometries[13], &in_place };
    device *d = (device *)*state;

    d->f.config.key_max = 8;
    d->f.config.response_max = 4;
    d->f.config.state_max = 2;
    d->f.config.max_attempts = 255;
    for (unsigned i = 0; i < COUNT(media); i++) {
        cut_last(d, media[i], "B0", 'B', 1, check_stable);
        cut_last(d, media[i], "B0 B1", 'C', 1, check_stable);
        cut_last(d, media[i], "B0 B1 S0", 'S', 1, check_stable);
        cut_last(d, media[i], "B0 B1", 'R', 1, check_stable);
        cut_last(d, media[i], "B0 B1 C1", 'X', 1, check_stable);
        cut_last(d, media[i], "B0 C0 P", 'B', 1, check_stable);
        cut_last(d, media[i], "B0 B1 C0 P", 'X', 0, check_stable);
    }
}

/* Whether a delivery that was cut short is done, idem_pending may show one way
   and the other; not so once idem_delivered was asked again. */
static void check_delivered(device *d, const truth *was)
{
    const known *k = &was->keys[0];

    assert_int_equal(idem_delivered(&d->f.table, &k->claim), IDEM_OK);
    for (unsigned boot = 0; boot < 5; boot++) {
        assert_int_equal(d->f.table.pending, 0);
        flash_boot(&d->medium);
        assert_int_equal(device_open(d), IDEM_OK);
    }
}

static void s10_what_was_delivered_stays_delivered(void **state)
{
    device *d = (device *)*state;

    cut_last(d, &usual, "B0 O0", 'D', 0, check_delivered);
    cut_last(d, &in_place, "B0 O0", 'D', 0, check_delivered);
}

static void check_forgotten(device *d, const truth *was)
{
    int result;

    (void)was;
    result = forget(&d->f, "panel", key_name(0), d->now);
    assert_true(result == IDEM_OK || result == IDEM_E_NOT_FOUND);
    for (unsigned boot = 0; boot < 5; boot++) {
        assert_int_equal(find(&d->f, "panel", key_name(0), d->now),
                         IDEM_E_NOT_FOUND);
        flash_boot(&d->medium);
        assert_int_equal(device_open(d), IDEM_OK);
    }
}

static void s10_what_was_forgotten_stays_forgotten(void **state)
{
    device *d = (device *)*state;

    cut_last(d, &usual, "B0 C0", 'X', 0, check_forgotten);
    cut_last(d, &in_place, "B0 C0", 'X', 0, check_forgotten);
}

/* Leaves the operation that is cut in any of its variants. */
static void any_variant(void *arg, const flash *f, const flash_op *op)
{
    device *d = (device *)arg;

    d->medium.cut_variant = any(d, flash_variants(f, op));
}

/* A cut in the first write of each boot, again and again, whatever it leaves:
   nothing is used up, and nothing that was known is lost. */
static void l1b_a_thousand_cuts_in_a_row_lose_nothing(void **state)
{
    device *d = (device *)*state;

    for (unsigned i = 0; i < COUNT(geometries); i++) {
        unsigned cuts = 0;
        if (geometries[i].sector_size > 4096)
            continue;
        d->f.config.retention_ms = 100000000;
        d->f.config.max_attempts = 255;
        tight(d, &geometries[i], 5);
        play(d, NULL, "B0 C0 B1 S1 B2 O2 B3 R3");
        d->medium.draws = 3;
        d->medium.watch = any_variant;
        d->medium.watch_arg = d;
        while (cuts < 1000) {
            idem_request rq = device_request(d, 3);
            int result;
            flash_boot(&d->medium);
            flash_cut(&d->medium, any(d, 5), 0);
            assert_int_equal(device_open(d), IDEM_OK);
            assert_int_equal(d->f.table.stats.lost, 0);
            result = begin_request(&d->f, &rq, d->now);
            cuts += d->medium.off != 0;
            if (!d->medium.off)
                assert_true(result == IDEM_EXECUTE || result == IDEM_RECOVER ||
                            result == IDEM_EXHAUSTED);
            // It was claimed at last; and is given back.
            if (!d->medium.off && result != IDEM_EXHAUSTED)
                (void)release(&d->f, &d->f.claim, d->now);
        }
        d->medium.watch = NULL;
        if (d->medium.violations)
            fail_msg("%s: %s", geometries[i].name, flash_text(&d->medium));
        flash_boot(&d->medium);
        assert_int_equal(device_open(d), IDEM_OK);
        for (unsigned key = 0; key < 3; key++) {
            const known *k = &d->truth.keys[key];
            assert_int_equal(begin(&d->f, "panel", key_name(key), "pour 5 ml",
                                   d->now), IDEM_REPLAY);
            assert_int_equal(d->f.reply.response_len, k->len);
            assert_memory_equal(d->f.buffer, k->response, k->len);
        }
    }
}

/* ---------------------------------------------------------------------------
   damage

   An image is a medium on which a script was played, with everything that was
   true after each of its calls.  It is damaged, opened, and judged by what
   idem_begin answers for each key: with loss nothing is executed that may have
   been before, and nothing is replayed that was not acknowledged; without loss
   the answers are all those of one moment, which is the last, or, if only the
   newest record was damaged, the one before.
   ------------------------------------------------------------------------ */

enum { PROBES = 10 };           // keys that are asked for, known ones first
enum { RECORDS = 160 };

typedef struct image {
    uint8_t *bytes;
    uint8_t *written;           // not 0: was programmed since its erase
    history  h;
    uint32_t front;             // bytes of a sector's headers
    uint32_t head;              // newest sector
    // All records, in the order in which they were written.
    struct { uint32_t at, len; } records[RECORDS];
    unsigned count;
} image;

static image picture;

static void note_record(void *arg, const flash *f, const flash_op *op)
{
    image *im = (image *)arg;

    if (op->call != FLASH_PROG || op->at % f->sector_size < im->front)
        return;
    assert_true(im->count < RECORDS);
    im->records[im->count].at = op->at;
    im->records[im->count++].len = op->len;
}

static void image_free(void)
{
    free(picture.bytes);
    free(picture.written);
    memset(&picture, 0, sizeof picture);
}

/* Plays a script on a blank medium, and makes an image of it. */
static image *image_of(device *d, const geometry *g, const char *script)
{
    image *im = &picture;
    uint32_t granule = g->granule;

    image_free();
    d->f.config.capacity = PROBES + 2;
    d->f.config.key_max = 16;
    d->f.config.response_max = 8;
    d->f.config.state_max = 8;
    d->f.config.max_attempts = 255;
    d->f.config.retention_ms = 100000;
    device_start(d, g);
    im->front = 2 * ((40 + granule - 1) / granule * granule);
    d->medium.watch = note_record;
    d->medium.watch_arg = im;
    play(d, &im->h, script);
    d->medium.watch = NULL;
    im->bytes = device_image(d);
    im->written = (uint8_t *)malloc(d->medium.size);
    assert_non_null(im->written);
    for (uint32_t i = 0; i < d->medium.size; i++)
        im->written[i] = d->medium.marks[i] & FLASH_PROGRAMMED;
    im->head = d->f.table.journal->head;
    return im;
}

/* The medium as it was when the image was made, powered on. */
static void image_load(device *d, const image *im)
{
    memset(d->medium.bad, 0, d->medium.sector_count);
    flash_load(&d->medium, 0, im->bytes, d->medium.size);
    flash_boot(&d->medium);
    memset(&d->medium.faults, 0, sizeof d->medium.faults);
}

static int in_header(const device *d, const image *im, uint32_t at)
{
    return at % d->medium.sector_size < im->front;
}

static int in_newest_record(const image *im, uint32_t at)
{
    uint32_t from = im->records[im->count - 1].at;

    return at >= from && at < from + im->records[im->count - 1].len;
}

/* What begin answered for a key, and what was shown of it before. */
typedef struct answer {
    int       result;
    int       payload;
    unsigned  attempt;
    int       status, owed;
    int32_t   code;
    size_t    len;
    uint8_t   response[RESPONSES];
} answer;

typedef struct answers {
    uint32_t lost;
    size_t   state_len;
    uint8_t  state[STATES];
    answer   of[PROBES];
} answers;

/* Opens what there is, and asks for everything. */
static void ask_everything(device *d, const image *im, answers *all)
{
    fixture *f = &d->f;
    const truth *now = &im->h.of[im->h.count - 1];

    memset(all, 0, sizeof *all);
    assert_int_equal(device_open(d), IDEM_OK);
    // What did not read then has its place, but may be used again.
    memset(d->medium.bad, 0, d->medium.sector_count);
    all->lost = f->table.stats.lost;
    all->state_len = sizeof all->state;
    assert_int_equal(idem_state(&f->table, all->state, &all->state_len),
                     IDEM_OK);
    for (unsigned key = 0; key < PROBES; key++) {
        int found = find(f, "panel", key_name(key), d->now);
        assert_true(found == IDEM_OK || found == IDEM_E_NOT_FOUND);
        all->of[key].owed = found == IDEM_OK && f->entry.undelivered;
    }
    for (unsigned key = 0; key < PROBES; key++) {
        answer *a = &all->of[key];
        a->result = begin(f, "panel", key_name(key),
                          payload_text(now->keys[key].payload), d->now);
        assert_true(a->result >= 0);
        a->attempt = f->claim.attempt;
        a->status = f->reply.status;
        a->code = f->reply.code;
        a->len = f->reply.response_len;
        memcpy(a->response, f->buffer, sizeof f->buffer);
    }
}

/* True if an answer is what it must be at a moment. */
static int answer_fits(const answer *a, const known *k, int lost)
{
    if (!k->status)
        return lost ? a->result == IDEM_RECOVER && a->attempt == 1
                    : a->result == IDEM_EXECUTE;
    if (k->status == IDEM_IN_PROGRESS)
        return a->result == IDEM_RECOVER && a->attempt == k->attempts + 1;
    return a->result == IDEM_REPLAY && a->status == k->status &&
           a->code == k->code && a->len == k->len && a->owed == k->owed &&
           !memcmp(a->response, k->response, k->len);
}

static int state_fits(const answers *all, const truth *t)
{
    return all->state_len == t->state_len &&
           !memcmp(all->state, t->state, t->state_len);
}

/* How many keys are not as they were at a moment. */
static unsigned answers_differ(const answers *all, const truth *t)
{
    unsigned differ = 0;

    for (unsigned key = 0; key < PROBES; key++)
        differ += !answer_fits(&all->of[key], &t->keys[key], all->lost != 0);
    return differ;
}

/* With loss: what differs is the answer that leaves the decision to the
   application, or one that was right at some moment. */
static void assert_never_wrong(const image *im, const answers *all)
{
    int known_state = 0;

    for (unsigned i = 0; i < im->h.count; i++)
        known_state |= state_fits(all, &im->h.of[i]);
    assert_true(known_state);
    for (unsigned key = 0; key < PROBES; key++) {
        const answer *a = &all->of[key];
        answer fit = *a;
        int right = a->result == IDEM_RECOVER;
        for (unsigned i = 0; i < im->h.count && !right; i++) {
            const known *k = &im->h.of[i].keys[key];
            // That it was delivered may be lost by itself.
            fit.owed = k->owed;
            right = k->status && answer_fits(&fit, k, 1);
        }
        if (!right)
            fail_msg("key %u: %s", key, idem_text(a->result));
    }
}

/* Opens the damaged image that is on the medium and judges it.  It may be as at
   the moment `since` or a later one if nothing is counted as lost; else at most
   `most` keys, and the state, may differ from what was true at the end.
   Returns what was counted. */
static uint32_t judge(device *d, const image *im, unsigned since,
                      unsigned most)
{
    unsigned moments = im->h.count, fits = 0;
    answers all;

    ask_everything(d, im, &all);
    if (all.lost) {
        assert_never_wrong(im, &all);
        assert_in_range(answers_differ(&all, &im->h.of[moments - 1]), 0, most);
        return all.lost;
    }
    for (unsigned i = since; i < moments; i++)
        fits += !answers_differ(&all, &im->h.of[i]) &&
                state_fits(&all, &im->h.of[i]);
    if (!fits)
        fail_msg("silently lost");
    return 0;
}

/* Opens it once more, after it was judged: no answer is taken back, loss is
   counted once, and unknown keys are doubtful still. */
static void judge_again(device *d, const image *im, uint32_t lost)
{
    answers first, again;

    flash_boot(&d->medium);
    ask_everything(d, im, &first);
    assert_int_equal(first.lost, 0);
    assert_int_equal(begin(&d->f, "panel", "new", "pour", d->now),
                     lost ? IDEM_RECOVER : IDEM_EXECUTE);
    assert_int_equal(release(&d->f, &d->f.claim, d->now), IDEM_OK);
    flash_boot(&d->medium);
    ask_everything(d, im, &again);
    assert_int_equal(again.lost, 0);
    for (unsigned key = 0; key < PROBES; key++) {
        // All are claimed or finished by now.
        assert_true(first.of[key].result == IDEM_RECOVER ||
                    first.of[key].result == IDEM_REPLAY);
        assert_int_equal(again.of[key].result, first.of[key].result);
        if (again.of[key].result == IDEM_REPLAY)
            assert_memory_equal(again.of[key].response,
                                first.of[key].response, first.of[key].len);
        else
            assert_int_equal(again.of[key].attempt,
                             first.of[key].attempt + 1);
    }
}

static const geometry pictures[] = {
    { "nor1",     FLASH_NOR,     1, 512,  0, 0xFF, 0, 0, 0 },
    { "nor8",     FLASH_NOR,     8, 1024, 0, 0xFF, 1, 0, 1 },
    { "in place", FLASH_INPLACE, 1, 512,  0, 0x00, 0, 0, 0 },
    { "zero",     FLASH_NOR,     4, 512,  0, 0x00, 0, 0, 0 },
};

static const char *const scripts[] = {
    // One sector, little in it.
    "B0 C0 B1",
    // Every kind of record; several boots; keys that were forgotten and came
    // back; the newest is a completion.
    "B0 C0 B1 S1 B2 O2 B3 F3 P X1 B4 B1 S1 B5 R5 D2 P B6 X3 B3 E3 B7 L7",
    // Records that were carried forward, state included, more than once.
    ("B0 S0 B1 O1 B2 L2 B3 P B4 C4 B9 C9 X9 B9 C9 X9 B9 C9 X9 B9 C9 X9 B9 C9 "
     "X9 B9 C9 X9 B9 C9 X9 P B9 C9 X9 B9 C9 X9 B9 C9 X9 P B5 L5 B9 R9"),
    // The newest is a release.
    "B0 C0 B1 P B1 B2 O2 D2 B3 R3",
};

/* Where something was written every step-th bit, elsewhere some. */
static void flip_everywhere(device *d, const geometry *g, const char *script,
                            uint32_t step)
{
    const image *im = image_of(d, g, script);
    uint32_t judged = 0;

    for (uint32_t bit = 0; bit < 8 * d->medium.size; bit++) {
        uint32_t at = bit / 8, lost;
        unsigned since = im->h.count - 1;
        if (bit % (im->written[at] ? step : 61))
            continue;
        image_load(d, im);
        flash_flip(&d->medium, at, bit % 8);
        if (in_newest_record(im, at))
            since--;
        lost = judge(d, im, since, 1);
        // In a sector's header nothing is lost, nor where nothing is written.
        if (in_header(d, im, at) || !im->written[at])
            assert_int_equal(lost, 0);
        if (judged++ % 37 == 0 && since == im->h.count - 1)
            judge_again(d, im, lost);
    }
}

static void s5_a_flipped_bit_costs_one_record_at_most(void **state)
{
    device *d = (device *)*state;

    for (unsigned i = 0; i < COUNT(pictures); i++)
        for (unsigned n = 0; n < COUNT(scripts); n++)
            flip_everywhere(d, &pictures[i], scripts[n], i ? 7 : 1);
}

/* Two flips may cost two records; in the two copies of a header, all records of
   its sector. */
static void s5_two_flipped_bits_are_never_believed(void **state)
{
    device *d = (device *)*state;

    for (unsigned i = 0; i < COUNT(pictures); i++)
        for (unsigned n = 0; n < COUNT(scripts); n++) {
            const image *im = image_of(d, &pictures[i], scripts[n]);
            for (unsigned round = 0; round < 600; round++) {
                unsigned since = im->h.count - 1;
                uint32_t a = any(d, d->medium.size), lost;
                // Often near each other.
                uint32_t b = round & 1 ? (a + any(d, 60)) % d->medium.size
                                       : any(d, d->medium.size);
                uint32_t size = d->medium.sector_size;
                int headers = in_header(d, im, a) && in_header(d, im, b) &&
                              a / size == b / size;
                image_load(d, im);
                flash_flip(&d->medium, a, any(d, 8));
                flash_flip(&d->medium, b, any(d, 8));
                if (headers && a / size == im->head)
                    continue;
                if (in_newest_record(im, a) || in_newest_record(im, b))
                    since--;
                // The last two look like one that is torn.
                if (in_newest_record(im, a) != in_newest_record(im, b))
                    since--;
                lost = judge(d, im, since, headers ? PROBES : 2);
                if (round % 61 == 0 && since == im->h.count - 1)
                    judge_again(d, im, lost);
            }
        }
}

/* One bit in each copy: a torn header never looks so, for the second is begun
   when the first is whole. */
static void s5_damage_to_both_headers_of_the_newest_sector_is_seen(void **state)
{
    device *d = (device *)*state;

    for (unsigned i = 0; i < COUNT(pictures); i++)
        for (unsigned n = 0; n < COUNT(scripts); n++) {
            const image *im = image_of(d, &pictures[i], scripts[n]);
            uint32_t head = im->head * d->medium.sector_size;
            for (unsigned round = 0; round < 200; round++) {
                image_load(d, im);
                flash_flip(&d->medium, head + any(d, 40), any(d, 8));
                flash_flip(&d->medium, head + im->front / 2 + any(d, 40),
                           any(d, 8));
                // In the only sector it may be anybody's.
                if (device_open(d) == IDEM_E_FORMAT)
                    continue;
                flash_boot(&d->medium);
                judge(d, im, im->h.count - 1, PROBES);
            }
        }
}

/* A granule that does not read is damage to that place, and to nothing else. */
static void s5_a_granule_that_does_not_read_costs_one_record(void **state)
{
    static const geometry ecc = { "ecc", FLASH_ECC, 8, 512, 0, 0xFF, 0, 0, 0 };
    device *d = (device *)*state;

    for (unsigned ram = 0; ram < 2; ram++)
        for (unsigned n = 0; n < COUNT(scripts); n++) {
            const image *im;
            d->f.config.in_ram = (uint8_t)ram;
            im = image_of(d, &ecc, scripts[n]);
            for (uint32_t at = 0; at < d->medium.size; at += 8) {
                unsigned since = im->h.count - 1;
                uint32_t lost;
                image_load(d, im);
                memset(d->medium.marks + at, FLASH_PROGRAMMED | FLASH_TORN, 8);
                d->medium.soft = 1;
                if (in_newest_record(im, at))
                    since--;
                lost = judge(d, im, since, 1);
                if (in_header(d, im, at))
                    assert_int_equal(lost, 0);
                if (at % 11 == 0 && since == im->h.count - 1)
                    judge_again(d, im, lost);
            }
        }
}

/* Whatever is cut off, and however the rest reads. */
static void s5_a_truncated_storage_is_never_believed(void **state)
{
    device *d = (device *)*state;

    for (unsigned i = 0; i < COUNT(pictures); i++)
        for (unsigned n = 0; n < COUNT(scripts); n++) {
            const image *im = image_of(d, &pictures[i], scripts[n]);
            uint32_t size = d->medium.size;
            for (uint32_t cut = 0; cut < size; cut++)
                for (int zero = 0; zero < 2; zero++) {
                    unsigned since = im->h.count - 1;
                    if (cut % (!im->written[cut] ? 31 : i ? 5 : 1))
                        continue;
                    image_load(d, im);
                    flash_fill(&d->medium, cut, size - cut,
                               zero ? 0 : d->medium.erased);
                    // What is cut off the newest sector was never written, for
                    // all that anybody can tell.
                    if (cut < (im->head + 1) * d->medium.sector_size)
                        since = 0;
                    if (cut < d->medium.sector_size &&
                        device_open(d) == IDEM_E_FORMAT)
                        continue;
                    flash_boot(&d->medium);
                    judge(d, im, since, PROBES);
                }
        }
}

enum lost_how { ERASED, ZERO, NOISE, UNREADABLE, LOST_HOWS };

static void s5_a_lost_sector_is_never_believed(void **state)
{
    device *d = (device *)*state;

    for (unsigned i = 0; i < COUNT(pictures); i++)
        for (unsigned n = 0; n < COUNT(scripts); n++) {
            const image *im = image_of(d, &pictures[i], scripts[n]);
            uint32_t size = d->medium.sector_size;
            for (uint32_t s = 0; s < d->medium.sector_count; s++)
                for (int how = 0; how < LOST_HOWS; how++) {
                    uint32_t lost;
                    int opened;
                    image_load(d, im);
                    if (how == ERASED)
                        flash_fill(&d->medium, s * size, size,
                                   d->medium.erased);
                    else if (how == ZERO)
                        flash_fill(&d->medium, s * size, size, 0);
                    else if (how == NOISE)
                        flash_noise(&d->medium, s * size, size, s);
                    else
                        d->medium.bad[s] = FLASH_BAD_READ;
                    opened = device_open(d);
                    flash_boot(&d->medium);
                    // It may have been the only one.
                    if (!n && s == im->head && opened == IDEM_E_FORMAT)
                        continue;
                    assert_int_equal(opened, IDEM_OK);
                    // The newest may have been begun when power went, for all
                    // that anybody can tell.
                    lost = judge(d, im, s == im->head ? 0 : im->h.count - 1,
                                 PROBES);
                    if (s != im->head && how != UNREADABLE)
                        judge_again(d, im, lost);
                }
        }
}

/* A record that was carried forward was whole before the header of its sector
   was: so its damage is no torn write, though nothing follows it. */
static void s5_a_carried_record_is_not_taken_for_a_torn_one(void **state)
{
    device *d = (device *)*state;

    for (unsigned i = 0; i < COUNT(pictures); i++) {
        // Begin confirms the newest record, and appends none.
        const image *im = image_of(d, &pictures[i], "B0 C0 P B0");
        uint32_t at = im->records[im->count - 1].at;
        for (uint32_t n = 0; n < im->records[im->count - 1].len; n++) {
            image_load(d, im);
            flash_flip(&d->medium, at + n, n % 8);
            judge(d, im, im->h.count - 1, 1);
        }
    }
}

/* Nor when a cut has torn the header of the sector that comes next. */
static void s5_nor_under_a_header_that_was_torn(void **state)
{
    device *d = (device *)*state;
    uint8_t header[256];

    for (unsigned i = 0; i < COUNT(pictures); i++) {
        const image *im = image_of(d, &pictures[i], "B0 C0 P B0");
        uint32_t at = im->records[im->count - 1].at, next;
        assert_in_range(im->front / 2, 1, sizeof header);
        device_restart(d);
        assert_int_equal(device_begin(d, 1), IDEM_EXECUTE);
        next = d->f.table.journal->head * d->medium.sector_size;
        memcpy(header, d->medium.bytes + next, im->front / 2);
        for (uint32_t n = 0; n < im->records[im->count - 1].len; n++) {
            image_load(d, im);
            flash_load(&d->medium, next, header, im->front / 2);
            flash_flip(&d->medium, at + n, n % 8);
            judge(d, im, im->h.count - 1, 1);
        }
    }
}

/* ---------------------------------------------------------------------------
   loss
   ------------------------------------------------------------------------ */

/* Damages the i-th of the records of an image. */
static void damage_record(device *d, const image *im, unsigned i)
{
    flash_flip(&d->medium, im->records[i].at + im->records[i].len / 2, 3);
}

/* Opens an image in which a record was lost, that of k0. */
static void open_with_loss(device *d, const geometry *g)
{
    const image *im = image_of(d, g, "B0 B1 C1 B2");

    image_load(d, im);
    damage_record(d, im, 0);
    d->f.config.retention_ms = 1000;
    assert_int_equal(device_open(d), IDEM_OK);
    assert_int_equal(d->f.table.stats.lost, 1);
}

static int ask_new(device *d, const char *key)
{
    int result = ask(&d->f, key, d->now);

    if (result == IDEM_RECOVER)
        assert_int_equal(d->f.claim.attempt, 1);
    if (result == IDEM_RECOVER || result == IDEM_EXECUTE)
        assert_int_equal(release(&d->f, &d->f.claim, d->now), IDEM_OK);
    return result;
}

static void s4_unknown_keys_are_in_doubt_for_a_retention(void **state)
{
    device *d = (device *)*state;

    for (unsigned i = 0; i < COUNT(pictures); i++) {
        open_with_loss(d, &pictures[i]);
        assert_int_equal(ask_new(d, "a"), IDEM_RECOVER);
        d->now += 999;
        assert_int_equal(ask_new(d, "a"), IDEM_RECOVER);
        assert_int_equal(ask_new(d, "b"), IDEM_RECOVER);
        d->now += 1;
        assert_int_equal(ask_new(d, "a"), IDEM_EXECUTE);
        assert_int_equal(ask_new(d, "c"), IDEM_EXECUTE);
        assert_int_equal(d->f.table.stats.lost, 1);
    }
}

/* In logical time, which stands still while nothing is written. */
static void s4_doubt_goes_on_over_restarts_and_ends(void **state)
{
    device *d = (device *)*state;

    for (unsigned i = 0; i < COUNT(pictures); i++) {
        uint32_t passed = 0;
        open_with_loss(d, &pictures[i]);
        while (passed < 999) {
            uint32_t step = 1 + any(d, 150);
            if (passed + step > 999)
                step = 999 - passed;
            d->now += step;
            passed += step;
            assert_int_equal(ask_new(d, "a"), IDEM_RECOVER);
            flash_boot(&d->medium);
            assert_int_equal(device_open(d), IDEM_OK);
            assert_int_equal(d->f.table.stats.lost, 0);
            assert_int_equal(ask_new(d, "b"), IDEM_RECOVER);
        }
        // It may have become longer by the unit that it is kept in.
        d->now += 1 + 256;
        assert_int_equal(ask_new(d, "a"), IDEM_EXECUTE);
        flash_boot(&d->medium);
        assert_int_equal(device_open(d), IDEM_OK);
        assert_int_equal(ask_new(d, "c"), IDEM_EXECUTE);
    }
}

/* The longer it is, the coarser is what a header says of it. */
static void s4_doubt_of_days_goes_on_over_restarts_and_ends(void **state)
{
    enum { DAY = 86400000, UNIT = 262144 };
    device *d = (device *)*state;
    unsigned days = 6;

    open_with_loss(d, &usual);
    d->f.config.retention_ms = days * DAY;
    flash_boot(&d->medium);
    assert_int_equal(device_open(d), IDEM_OK);
    for (; days > 0; days--) {
        assert_int_equal(ask_new(d, "a"), IDEM_RECOVER);
        flash_boot(&d->medium);
        assert_int_equal(device_open(d), IDEM_OK);
        assert_int_equal(d->f.table.stats.lost, 0);
        assert_int_equal(ask_new(d, "b"), IDEM_RECOVER);
        d->now += DAY - (days == 1);
    }
    assert_int_equal(ask_new(d, "a"), IDEM_RECOVER);
    d->now += 1 + UNIT;
    assert_int_equal(ask_new(d, "a"), IDEM_EXECUTE);
}

/* Also while the header that told of it is still the newest. */
static void s4_doubt_that_has_ended_stays_ended(void **state)
{
    enum { DAY = 86400000 };
    device *d = (device *)*state;

    for (uint32_t days = 1; days < 70; days += 4) {
        open_with_loss(d, &usual);
        assert_int_equal(ask_new(d, "a"), IDEM_RECOVER);
        for (uint32_t day = 0; day < days; day++) {
            d->now += DAY;
            assert_true(maintain(&d->f, d->now) >= 0);
        }
        assert_int_equal(ask_new(d, "b"), IDEM_EXECUTE);
        flash_boot(&d->medium);
        assert_int_equal(device_open(d), IDEM_OK);
        assert_int_equal(ask_new(d, "c"), IDEM_EXECUTE);
    }
}

static void s4_doubt_starts_again_with_each_opening_until_one_writes(
    void **state)
{
    device *d = (device *)*state;

    open_with_loss(d, &usual);
    for (unsigned boot = 0; boot < 3; boot++) {
        d->now += 5000;
        assert_true(maintain(&d->f, d->now) >= 0);
        flash_boot(&d->medium);
        assert_int_equal(device_open(d), IDEM_OK);
        assert_int_equal(d->f.table.stats.lost, 1);
    }
    assert_int_equal(ask_new(d, "a"), IDEM_RECOVER);
}

/* In a header it ends at most one unit later, and the unit is the smallest that
   will do; also where the clock's low half wraps. */
static void s4_doubt_is_written_as_exactly_as_it_can_be(void **state)
{
    static const uint32_t times[] = { 0, 1, 0x12345678, 0x7FFFFFFF, 0x80000001,
                                      0xFFFFFC00, 0xFFFFFFFF };
    static const uint32_t lengths[] = { 1, 1000, 2047, 2048, 100000,
                                        IDEM_RETENTION_MAX };
    device *d = (device *)*state;
    idem_table *t = &d->f.table;

    device_start(d, &usual);
    for (unsigned i = 0; i < COUNT(times); i++)
        for (unsigned n = 0; n < COUNT(lengths); n++) {
            uint32_t from = times[i], doubt = from + lengths[n];
            uint32_t field, unit, half, end;
            t->clock = from;
            t->journal->doubt = doubt;
            t->journal->in_doubt = 1;
            field = idemi_journal_doubt(t, from);
            unit = UINT32_C(1) << (field >> 11);
            half = unit / 2;
            end = (from & ~(unit - 1)) + (field & 0x7FF) * unit;
            assert_in_range(end - doubt, 0, unit - 1);
            if (half)
                assert_true(doubt - (from & ~(half - 1)) > 0x7FF * half);
        }
}

static void in_doubt_known_keys_are_answered_as_ever(void **state)
{
    device *d = (device *)*state;
    fixture *f = &d->f;

    open_with_loss(d, &usual);
    assert_int_equal(begin(f, "panel", "k01", "pour 5 ml", d->now),
                     IDEM_REPLAY);
    assert_int_equal(begin(f, "panel", "k01", "pour 9 ml", d->now),
                     IDEM_MISMATCH);
    assert_int_equal(begin(f, "panel", "k02", "pour 5 ml", d->now),
                     IDEM_RECOVER);
    assert_int_equal(f->claim.attempt, 2);
    // An unknown one may be completed, and is replayed then.
    assert_int_equal(ask(f, "a", d->now), IDEM_RECOVER);
    assert_int_equal(ask(f, "a", d->now), IDEM_BUSY);
    assert_int_equal(complete(f, &f->claim, "", d->now), IDEM_E_FENCED);
    d->now += 100;
    assert_int_equal(ask(f, "a", d->now), IDEM_RECOVER);
    assert_int_equal(f->claim.attempt, 2);
    assert_int_equal(complete(f, &f->claim, "poured", d->now), IDEM_OK);
    assert_int_equal(ask(f, "a", d->now), IDEM_REPLAY);
    // What is too old is refused before.
    f->request.age_ms = 1000;
    assert_int_equal(ask(f, "b", d->now), IDEM_TOO_OLD);
}

static void in_doubt_a_full_table_is_full(void **state)
{
    device *d = (device *)*state;
    fixture *f = &d->f;
    uint32_t n = 0;

    open_with_loss(d, &usual);
    while (f->table.used < f->config.capacity)
        assert_int_equal(ask(f, nth(n++), d->now), IDEM_RECOVER);
    assert_int_equal(ask(f, "new", d->now), IDEM_E_FULL);
}

/* Of any two records, one is lost in one boot, and the other in the next, when
   the first is known already; also if they are neighbours, or only one record
   is between two that are lost. */
static void s5_each_loss_is_counted_when_it_comes(void **state)
{
    static const char script[] = "B0 C0 B1 C1 B2 C2 B3 C3 B4 C4 P B5 C5 B6 C6";
    device *d = (device *)*state;

    for (unsigned i = 0; i < COUNT(pictures); i++) {
        const image *im = image_of(d, &pictures[i], script);
        for (unsigned n = 0; n < 81; n++) {
            unsigned a = n % 9, b = n / 9;
            image_load(d, im);
            damage_record(d, im, a);
            assert_int_equal(device_open(d), IDEM_OK);
            assert_int_equal(d->f.table.stats.lost, 1);
            d->now += 1;
            assert_int_equal(ask_new(d, "a"), IDEM_RECOVER);
            // Doubt passes.
            d->now += 200000;
            assert_int_equal(ask_new(d, "a"), IDEM_EXECUTE);
            flash_boot(&d->medium);
            assert_int_equal(device_open(d), IDEM_OK);
            assert_int_equal(d->f.table.stats.lost, 0);
            if (a == b)
                continue;
            // Only if that is still needed.
            if (d->f.table.journal->tail != im->records[b].at /
                                                d->medium.sector_size)
                continue;
            flash_boot(&d->medium);
            damage_record(d, im, b);
            assert_int_equal(device_open(d), IDEM_OK);
            if (!d->f.table.stats.lost)
                fail_msg("%s: record %u after record %u", pictures[i].name, b,
                         a);
        }
    }
}

static void s5_records_of_several_keys_are_counted_stretch_by_stretch(
    void **state)
{
    device *d = (device *)*state;
    const image *im = image_of(d, &pictures[0], "B0 B1 B2 B3 B4 B5 B6 B7");

    image_load(d, im);
    damage_record(d, im, 0);
    damage_record(d, im, 2);
    damage_record(d, im, 3);
    damage_record(d, im, 5);
    assert_int_equal(device_open(d), IDEM_OK);
    assert_int_equal(d->f.table.stats.lost, 3);
}

/* Its end does not read, and it was begun again in another place: what counts
   is that. */
static void s5_a_key_whose_end_is_damaged_is_not_there_twice(void **state)
{
    device *d = (device *)*state;

    for (unsigned i = 0; i < COUNT(pictures); i++) {
        // The place that became free last is taken first.
        const image *im = image_of(d, &pictures[i], "B0 C0 B1 C1 X0 X1 B0");
        image_load(d, im);
        damage_record(d, im, 4);
        assert_int_equal(device_open(d), IDEM_OK);
        assert_int_equal(d->f.table.stats.lost, 1);
        assert_int_equal(live(&d->f, d->now), 1);
        assert_int_equal(begin(&d->f, "panel", "k00", "pour 5 ml", d->now),
                         IDEM_RECOVER);
        assert_int_equal(d->f.claim.attempt, 2);
    }
}

/* One slot less: what was in the last is lost, and nothing else. */
static void s5_a_smaller_capacity_loses_what_is_beyond_it(void **state)
{
    device *d = (device *)*state;

    for (unsigned i = 0; i < COUNT(pictures); i++) {
        const image *im = image_of(d, &pictures[i], "B0 C0 B1 C1 B2 C2 X0");
        image_load(d, im);
        d->f.config.capacity = 2;
        assert_int_equal(device_open(d), IDEM_OK);
        assert_int_equal(idem_check(&d->f.table), 0);
        assert_int_equal(d->f.table.stats.lost, 1);
        assert_int_equal(live(&d->f, d->now), 1);
        assert_int_equal(begin(&d->f, "panel", "k01", "pour 5 ml", d->now),
                         IDEM_REPLAY);
        assert_int_equal(begin(&d->f, "panel", "k02", "pour 5 ml", d->now),
                         IDEM_RECOVER);
    }
}

/* Which no table writes, but somebody's bytes may be: the counts stay right. */
static void an_outcome_of_a_claim_that_was_cut_short_is_no_claim_less(
    void **state)
{
    device *d = (device *)*state;
    fixture *f = &d->f;

    f->outcome.response = "5";
    f->outcome.response_len = 1;
    for (unsigned i = 0; i < COUNT(geometries); i++) {
        tight(d, &geometries[i], 5);
        assert_int_equal(device_begin(d, 0), IDEM_EXECUTE);
        device_restart(d);
        assert_int_equal(device_begin(d, 1), IDEM_EXECUTE);
        assert_int_equal(find(f, "panel", key_name(0), d->now), IDEM_OK);
        assert_int_equal(idemi_journal_outcome(&f->table, f->entry.claim.slot,
                                               &f->outcome), IDEM_OK);
        flash_boot(&d->medium);
        assert_int_equal(device_open(d), IDEM_OK);
        assert_int_equal(f->table.claimed, 0);
    }
}

/* What was counted, and reads again, hides nothing that is lost since. */
static void s5_damage_that_heals_hides_no_other(void **state)
{
    device *d = (device *)*state;
    fixture *f = &d->f;

    for (unsigned i = 0; i < COUNT(pictures); i++) {
        const image *im = image_of(d, &pictures[i], "B0 C0 B1 C1 B2");
        uint32_t at;
        image_load(d, im);
        damage_record(d, im, 0);
        assert_int_equal(device_open(d), IDEM_OK);
        assert_int_equal(f->table.stats.lost, 1);
        assert_int_equal(ask(f, "a", d->now), IDEM_RECOVER);
        at = idemi_slot_place(&f->table, f->claim.slot)->claim;
        at = idemi_storage_linear(&f->table, at);
        assert_int_equal(complete(f, &f->claim, "", d->now), IDEM_OK);
        assert_int_equal(ask(f, "b", d->now), IDEM_RECOVER);
        damage_record(d, im, 0);        // the bit is what it was
        flash_flip(&d->medium, at + 5, 3);
        flash_boot(&d->medium);
        assert_int_equal(device_open(d), IDEM_OK);
        assert_int_equal(f->table.stats.lost, 1);
    }
}

/* Far more than a header can say. */
static void s5_hundreds_of_losses_are_told_once_too(void **state)
{
    static const geometry roomy =
        { "roomy", FLASH_NOR, 4, 1024, 64, 0xFF, 0, 0, 0 };
    enum { LOSSES = 300 };
    device *d = (device *)*state;
    fixture *f = &d->f;
    uint32_t at[LOSSES];

    device_start(d, &roomy);
    for (unsigned n = 0; n < LOSSES; n++) {
        assert_int_equal(ask(f, "a", d->now), IDEM_EXECUTE);
        at[n] = idemi_slot_place(&f->table, f->claim.slot)->claim;
        at[n] = idemi_storage_linear(&f->table, at[n]);
        assert_int_equal(complete(f, &f->claim, "poured", d->now), IDEM_OK);
        assert_int_equal(forget(f, "panel", "a", d->now), IDEM_OK);
    }
    for (unsigned n = 0; n < LOSSES; n++)
        flash_flip(&d->medium, at[n] + 5, 3);
    flash_boot(&d->medium);
    assert_int_equal(device_open(d), IDEM_OK);
    assert_in_range(f->table.stats.lost, 1, LOSSES);
    for (unsigned boot = 0; boot < 3; boot++) {
        assert_int_equal(ask(f, "b", d->now), IDEM_RECOVER);
        flash_boot(&d->medium);
        assert_int_equal(device_open(d), IDEM_OK);
        assert_int_equal(f->table.stats.lost, 0);
    }
}

/* ---------------------------------------------------------------------------
   what is not this journal
   ------------------------------------------------------------------------ */

static uint32_t crc32c(uint32_t crc, const uint8_t *p, uint32_t len)
{
    for (; len > 0; len--) {
        crc ^= *p++;
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? UINT32_C(0x82F63B78) : 0);
    }
    return crc;
}

/* By tables, and by what the processor has for it */
static void the_check_of_records_is_crc32c(void **state)
{
    static const uint8_t digits[] = "123456789";
    uint8_t bytes[64];

    (void)state;
    // The check value in the catalogues of CRCs
    assert_int_equal((uint32_t)~idemi_crc_update(UINT32_MAX, digits, 9),
                     0xE3069283);
    for (unsigned i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)(i * 37 + (i >> 3));
    for (uint32_t at = 0; at < 9; at++)
        for (uint32_t len = 0; len <= sizeof bytes - at; len++) {
            uint32_t before = at * UINT32_C(77777777);
            uint32_t crc = crc32c(before, bytes + at, len);
            assert_int_equal(idemi_crc_update(before, bytes + at, len), crc);
#if IDEM_WIDE
            assert_int_equal(idemi_crc_rows(before, bytes + at, len), crc);
#endif
        }
}

/* Who knows the check can hide a record in a response, to be found when what is
   around it is damaged; who knows all but the secret cannot. */
static void s3_a_record_hidden_in_a_response_is_not_taken(void **state)
{
    device *d = (device *)*state;

    for (unsigned insider = 0; insider < 2; insider++) {
        // Slot 0 is empty.
        uint8_t hidden[] = { 0x88, 4, 0, 1, 1, 0, 0, 0, 0, 0 };
        uint32_t at, crc;
        device_start(d, &usual);
        play(d, NULL, "B0 C0 B1 C1 B2 C2");
        at = idemi_slot_place(&d->f.table, 1)->outcome + 8;
        crc = crc32c((insider ? d->f.table.journal->check : 0) ^
                         UINT32_C(0x9E3779B1) * d->f.table.journal->sequence ^
                         ~(at % usual.sector_size),
                     hidden, 6);
        for (int i = 0; i < 4; i++)
            hidden[6 + i] = (uint8_t)(crc >> 8 * i);
        memcpy(d->medium.bytes + at, hidden, sizeof hidden);
        flash_boot(&d->medium);
        assert_int_equal(device_open(d), IDEM_OK);
        assert_true(d->f.table.stats.lost > 0);
        assert_int_equal(find(&d->f, "panel", key_name(0), d->now),
                         insider ? IDEM_E_NOT_FOUND : IDEM_OK);
    }
}

/* Changes a byte of all valid headers, and makes them valid again.  As the
   format says: 40 bytes, the last four the CRC of those before. */
static void patch_headers(device *d, const image *im, uint32_t offset,
                          uint8_t change)
{
    flash *m = &d->medium;

    image_load(d, im);
    for (uint32_t s = 0; s < m->sector_count; s++)
        for (uint32_t copy = 0; copy < 2; copy++) {
            uint32_t at = s * m->sector_size + copy * im->front / 2;
            uint8_t header[40];
            uint32_t crc;
            memcpy(header, m->bytes + at, 40);
            crc = crc32c(UINT32_MAX, header, 36);
            if ((crc & 255) != header[36] || (crc >> 24) != header[39])
                continue;
            header[offset] ^= change;
            crc = crc32c(UINT32_MAX, header, 36);
            for (int i = 0; i < 4; i++)
                header[36 + i] = (uint8_t)(crc >> 8 * i);
            flash_load(m, at, header, 40);
        }
}

/* It is refused, untouched; and after idem_format there is a table. */
static void assert_foreign(device *d)
{
    uint8_t *before = device_image(d);
    flash *m = &d->medium;

    flash_boot(m);
    assert_int_equal(device_open(d), IDEM_E_FORMAT);
    assert_memory_equal(m->bytes, before, m->size);
    assert_int_equal(idem_maintain(&d->f.table, 0), IDEM_E_ARG);
    free(before);
    memset(&d->truth, 0, sizeof d->truth);
    device_format(d);
    for (uint32_t i = 0; i < m->size; i++)
        assert_int_equal(m->bytes[i], m->erased);
    device_look(d);
    play(d, NULL, "B0 C0 B1 P B0 B1 S1 B2 P");
}

static void another_version_hash_geometry_or_secret_is_refused(void **state)
{
    // Bytes of a header, by the format: version, hash and granule, sector_size,
    // sector_count, the secret's check.
    static const uint8_t offsets[] = { 0, 3, 4, 5, 5, 6, 7, 9, 10, 11, 12 };
    static const uint8_t changes[] = { 32, 1, 3, 3, 16, 1, 2, 1, 1, 1, 128 };
    device *d = (device *)*state;

    for (unsigned i = 0; i < COUNT(pictures); i++)
        for (unsigned n = 0; n < COUNT(scripts); n++)
            for (unsigned k = 0; k < COUNT(offsets); k++) {
                const image *im = image_of(d, &pictures[i], scripts[n]);
                // Nothing changed: it is opened.
                patch_headers(d, im, 0, 0);
                assert_int_equal(judge(d, im, im->h.count - 1, 0), 0);
                patch_headers(d, im, offsets[k], changes[k]);
                assert_foreign(d);
            }
}

static void another_configuration_is_refused(void **state)
{
    device *d = (device *)*state;

    for (unsigned n = 0; n < 5; n++) {
        const image *im = image_of(d, &pictures[0], scripts[1]);
        idem_config config = d->f.config;
        idem_storage storage = d->storage;
        uint8_t *before;
        // There is no secret then.
        if (IDEM_HASH == IDEM_HASH_FNV && n < 2)
            continue;
        image_load(d, im);
        before = device_image(d);
        switch (n) {
        case 0:  d->f.config.secret[0] ^= 1; break;
        case 1:  d->f.config.secret[15] ^= 1; break;
        case 2:  d->storage.sector_count--; break;
        case 3:  d->storage.sector_size *= 2; d->storage.sector_count /= 2;
                 break;
        default: d->storage.prog_size = 2; break;
        }
        assert_int_equal(open_freely(d), n == 2 ? IDEM_E_SPACE
                                                : IDEM_E_FORMAT);
        assert_memory_equal(d->medium.bytes, before, d->medium.size);
        d->f.config = config;
        d->storage = storage;
        assert_int_equal(judge(d, im, im->h.count - 1, 0), 0);
        free(before);
    }
}

/* An EEPROM has old contents; so has a flash that was something else's. */
static void foreign_data_is_refused(void **state)
{
    device *d = (device *)*state;

    for (unsigned i = 0; i < COUNT(geometries); i++)
        for (unsigned n = 0; n < 8; n++) {
            flash *m = &d->medium;
            if (geometries[i].sector_size > 5000)
                continue;
            // One small granule may be anything, after a cut.
            if (n == 6 && geometries[i].granule <= 16)
                continue;
            tight(d, &geometries[i], 5);
            switch (n) {
            case 0: flash_noise(m, 0, m->size, 7); break;
            case 1: flash_fill(m, 0, m->size, m->erased ^ 255); break;
            case 2: flash_noise(m, 2 * m->sector_size - 100, 100, 7); break;
            case 3: flash_fill(m, m->size - 1, 1, m->erased ^ 1); break;
            case 4: flash_noise(m, 0, m->size - m->sector_size, 7); break;
            case 5: flash_noise(m, 0, 2 * IDEMI_HEADER, 7); break;
            case 6: flash_fill(m, 0, 1, ~'i' & 255); break;
            default: flash_fill(m, 0, m->size, 'x'); break;
            }
            assert_foreign(d);
        }
}

static void formatting_forgets_what_was_there_for_good(void **state)
{
    device *d = (device *)*state;

    for (unsigned i = 0; i < COUNT(geometries); i++) {
        tight(d, &geometries[i], 5);
        for (unsigned n = 0; n < 8; n++) {
            play(d, NULL, "B0 L0 B1 S1 B2 P B3 L3");
            if (n & 1)
                flash_boot(&d->medium);
            device_format(d);
            device_look(d);
            if (n & 2)
                device_restart(d);
        }
    }
}

/* A ring in which three keys are finished, and a fourth is again and again, so
   that its head goes on. */
static void go_round(device *d, unsigned times)
{
    fixture *f = &d->f;

    device_start(d, &usual);
    finish(f, "s", "a", d->now);
    finish(f, "s", "b", d->now);
    for (; times > 0; times--) {
        finish(f, "s", "c", d->now);
        assert_int_equal(forget(f, "s", "c", d->now), IDEM_OK);
    }
    finish(f, "s", "d", d->now);
}

/* Power goes between two erases: all is still there, or it is told that
   something is lost.  Never an older state. */
static void formatting_that_power_ended_leaves_nothing_that_looks_whole(
    void **state)
{
    device *d = (device *)*state;
    fixture *f = &d->f;
    unsigned whole = 0, lost = 0;

    for (unsigned times = 0; times < 100; times += 3)
        for (uint32_t cut = 0;; cut++) {
            unsigned there;
            size_t size;
            int result;
            go_round(d, times);
            assert_int_equal(idem_open(&f->table, &f->config, NULL, 0, 0),
                             IDEM_E_MEMORY);
            size = f->table.needed;
            flash_cut(&d->medium, cut, 0);
            result = idem_format(&f->table, &f->config, f->memory, size,
                                 d->now);
            if (!d->medium.off) {
                assert_int_equal(result, IDEM_OK);
                break;
            }
            flash_boot(&d->medium);
            result = idem_open(&f->table, &f->config, f->memory, size, d->now);
            assert_int_equal(result, IDEM_OK);
            there = (find(f, "s", "a", d->now) == IDEM_OK) +
                    (find(f, "s", "b", d->now) == IDEM_OK) +
                    (find(f, "s", "d", d->now) == IDEM_OK);
            whole += there == 3;
            lost += f->table.stats.lost > 0;
            assert_true(there == 3 || f->table.stats.lost);
        }
    assert_true(whole && lost);
}

/* The application's state is carried forward by itself: no key, no outcome, and
   no second byte. */
static void a_state_that_is_carried_is_a_record_of_its_own(void **state)
{
    device *d = (device *)*state;
    unsigned carried = 0;
    uint32_t at;

    device_start(d, &usual);
    play(d, NULL, "B0 S0");
    at = d->f.table.journal->state_at;
    for (unsigned n = 0; n < 300; n++) {
        const idem_journal *j = d->f.table.journal;
        play(d, NULL, "B1 C1 X1");
        if (j->state_at == at)
            continue;
        at = j->state_at;
        carried++;
        assert_int_equal(
            d->medium.bytes[idemi_storage_linear(&d->f.table, at)] &
                ~IDEMI_SYNCED,
            0x80 | IDEMI_HAS_STATE | IDEMI_MOVED);
    }
    assert_in_range(carried, 2, 100);
}

/* Where formatting programs, it programs whole granules, however much memory
   there is. */
static void formatting_programs_whole_granules(void **state)
{
    geometry g = { "wide", FLASH_INPLACE, 4, 4096, 8, 0xFF, 0, 0, 0 };
    device *d = (device *)*state;
    fixture *f = &d->f;

    for (; g.granule <= 64; g.granule *= 2)
        for (size_t more = 0; more <= g.granule; more++) {
            size_t size;
            void *memory;
            device_start(d, &g);
            play(d, NULL, "B0 C0");
            assert_int_equal(idem_open(&f->table, &f->config, NULL, 0, 0),
                             IDEM_E_MEMORY);
            size = f->table.needed + more;
            memory = malloc(size);
            assert_non_null(memory);
            assert_int_equal(idem_format(&f->table, &f->config, memory, size,
                                         d->now), IDEM_OK);
            assert_int_equal(d->medium.violations, 0);
            assert_int_equal(begin(f, "s", "a", "pour", d->now), IDEM_EXECUTE);
            free(memory);
        }
}

/* Also where an erase is only started: it is not used before that is done. */
static void formatting_waits_for_each_erase(void **state)
{
    device *d = (device *)*state;

    device_start(d, &usual);
    device_split(d, 7);
    play(d, NULL, "B0 L0 B1 S1");
    device_format(d);
    device_look(d);
    assert_false(d->erasing);
    for (uint32_t at = 0; at < d->medium.size; at++)
        assert_int_equal(d->medium.bytes[at], usual.erased);
}

/* With a right CRC too: there is no such sector. */
static void a_header_that_points_out_of_the_ring_is_none(void **state)
{
    static const uint8_t fields[] = { 26, 28, 29 };
    device *d = (device *)*state;
    const idem_table *t = &d->f.table;

    device_start(d, &usual);
    play(d, NULL, "B0");
    for (unsigned i = 0; i < COUNT(fields); i++)
        for (unsigned value = 0; value < 2; value++) {
            uint8_t header[IDEMI_HEADER];
            memcpy(header,
                   d->medium.bytes + t->journal->head * usual.sector_size,
                   sizeof header);
            // The last sector that there is, or with the high byte the first;
            // and the next.
            header[fields[i]] = (uint8_t)(
                value + (fields[i] == 29 ? 0 : usual.sector_count - 1));
            idemi_basics_store(header + 36, crc32c(UINT32_MAX, header, 36), 4);
            assert_int_equal(idemi_recover_header(t, header),
                             value ? IDEMI_NO_HEADER : IDEMI_OURS);
        }
}

/* A second header counts if it is the first but for one bit, wherever that is;
   not if two are different. */
static void a_second_header_counts_but_for_one_bit(void **state)
{
    device *d = (device *)*state;
    const idem_journal *j;
    uint32_t head, before, second, bit, end;

    device_start(d, &usual);
    play(d, NULL, "B0 L0");
    before = d->f.table.journal->head;
    device_restart(d);
    play(d, NULL, "B1");
    j = d->f.table.journal;
    head = j->head;
    assert_int_not_equal(head, before);
    second = head * usual.sector_size + idemi_journal_front(&d->f.table) / 2;
    end = idemi_basics_load32(d->medium.bytes + second + 32) >> 8;
    // No record behind it tells that it counts.
    flash_fill(&d->medium, head * usual.sector_size + end,
               usual.sector_size - end, usual.erased);
    for (bit = 0; bit < 8 * IDEMI_HEADER; bit++) {
        flash_flip(&d->medium, second + bit / 8, bit % 8);
        assert_int_equal(device_open(d), IDEM_OK);
        assert_int_equal(d->f.table.journal->head, head);
        flash_flip(&d->medium, second + (bit + 9) / 8 % IDEMI_HEADER,
                   bit % 8);
        assert_int_equal(device_open(d), IDEM_OK);
        assert_int_equal(d->f.table.journal->head, before);
        flash_flip(&d->medium, second + (bit + 9) / 8 % IDEMI_HEADER,
                   bit % 8);
        flash_flip(&d->medium, second + bit / 8, bit % 8);
    }
}

/* The oldest sector needed may be many behind, as long as they are there. */
static void a_header_that_points_far_back_is_one(void **state)
{
    static const geometry many =
        { "many", FLASH_NOR, 4, 512, 600, 0xFF, 0, 0, 0 };
    device *d = (device *)*state;
    const idem_table *t = &d->f.table;

    device_start(d, &many);
    play(d, NULL, "B0");
    for (uint32_t back = 100; back < 1000; back += 100) {
        uint8_t header[IDEMI_HEADER];
        memcpy(header, d->medium.bytes + t->journal->head * many.sector_size,
               sizeof header);
        idemi_basics_store(header + 28, back, 2);
        idemi_basics_store(header + 36, crc32c(UINT32_MAX, header, 36), 4);
        assert_int_equal(idemi_recover_header(t, header),
                         back < many.sector_count ? IDEMI_OURS
                                                  : IDEMI_NO_HEADER);
    }
}

/* A key of its own for each number up to 99 */
static void finish_nth(device *d, unsigned number)
{
    finish(&d->f, nth(number / 10), nth(number % 10), d->now);
}

/* Each sector that has no header is a stretch that is lost, and so is the rest
   of the one before, for where that ended stood in the header. */
static void s5_sectors_without_a_header_are_counted_each(void **state)
{
    device *d = (device *)*state;
    fixture *f = &d->f;
    uint32_t sector, live;

    f->config.capacity = 80;
    device_start(d, &usual);
    for (unsigned i = 0; i < f->config.capacity; i++)
        finish_nth(d, i);
    sector = f->table.journal->tail;
    live = idemi_journal_distance(&f->table, sector, f->table.journal->head);
    assert_true(live >= 5);
    for (unsigned lost = 1; lost <= 2; lost++) {
        sector = idemi_journal_after(&f->table,
                                     idemi_journal_after(&f->table, sector));
        flash_fill(&d->medium, sector * usual.sector_size,
                   idemi_journal_front(&f->table), 0x5A);
        assert_int_equal(device_open(d), IDEM_OK);
        assert_int_equal(f->table.stats.lost, 2 * lost);
    }
}

/* What is behind the head's last record is no loss while a record that was cut
   short, and a granule, may be all of it. */
static void s5_the_rest_of_a_head_is_lost_if_no_cut_leaves_it(void **state)
{
    device *d = (device *)*state;
    fixture *f = &d->f;
    uint32_t at, longest;

    device_start(d, &usual);
    finish(f, "panel", "k00", d->now);
    at = idemi_storage_place(&f->table, f->table.journal->head,
                             f->table.journal->at);
    longest = idemi_storage_granules(&f->table, f->table.journal->record_max) +
              usual.granule;
    assert_true(idemi_storage_offset(&f->table, at) + longest <
                usual.sector_size);
    for (unsigned more = 0; more <= 1; more++) {
        flash_fill(&d->medium, at, longest + more * usual.granule, 0x5A);
        assert_int_equal(device_open(d), IDEM_OK);
        assert_int_equal(f->table.stats.lost, more);
    }
}

/* Of the dead sectors two are left as they are, for no outcome may go there;
   not even where there is never room enough. */
static void no_sector_is_erased_that_no_outcome_may_use(void **state)
{
    device *d = (device *)*state;
    fixture *f = &d->f;
    const idem_journal *j;

    f->config.capacity = 80;
    device_start(d, &usual);
    j = f->table.journal;
    for (unsigned i = 0; i < 40; i++) {
        finish_nth(d, i);
        assert_true(j->spare + 2 <= idemi_journal_gap(&f->table, j->clean));
    }
    assert_int_equal(idemi_journal_reserve(&f->table, 1, 1000), IDEM_E_SPACE);
    assert_true(j->spare + 2 <= idemi_journal_gap(&f->table, j->clean));
}

/* A head is begun ahead of the need where that leaves what is needed: what it
   has room for, and what is erased. */
static void no_head_is_begun_ahead_of_what_is_needed(void **state)
{
    device *d = (device *)*state;
    fixture *f = &d->f;
    idem_journal *j;
    uint32_t most;
    unsigned i;

    f->config.capacity = 80;
    f->config.in_ram = f->config.volatile_claims = 1;
    device_start(d, &usual);
    j = f->table.journal;
    for (i = 0; i < 40 || idemi_journal_rest(&f->table) >= 2 * j->carry_max;
         i++)
        finish_nth(d, i);
    j->had_turn = j->had_erase = 0;     // as a call begins
    assert_true(j->spare > 0);
    most = 100 + j->spare * idemi_journal_room(&f->table);
    assert_true(idemi_journal_due(&f->table, most, 1000, 100));
    assert_false(idemi_journal_due(&f->table, most + 1, 1000, 100));
}

/* A head with room, and all that may be is erased. */
static idem_journal *erased_ahead(device *d)
{
    idem_table *t = &d->f.table;

    d->f.config.capacity = 80;
    device_start(d, &usual);
    for (unsigned i = 0;
         i < 40 || idemi_journal_rest(t) < 2 * usual.sector_size / 3; i++)
        finish_nth(d, i);
    while (idemi_journal_erase(t, 1) == IDEM_OK)
        assert_true(t->journal->spare < t->config->storage->sector_count);
    return t->journal;
}

/* Nor while no claim is open, though there is idle time: not even where an
   erase is under way of what does not come next any more. */
static void idle_work_begins_no_head_that_no_claim_needs(void **state)
{
    device *d = (device *)*state;
    idem_table *t = &d->f.table;
    idem_journal *j = erased_ahead(d);
    uint32_t head = j->head;

    while (idemi_journal_gap(t, j->clean) <= idemi_journal_gap(t, j->kept))
        assert_int_equal(idemi_journal_clean(t), IDEM_OK);
    assert_true(j->spare > 0);
    j->erasing = head + 1;
    assert_true(idemi_journal_maintain(t) >= 0);
    assert_int_equal(j->erasing, 0);
    assert_int_equal(j->head, head);
}

/* Nor where that would gain nothing: all that was cleaned is erased already. */
static void idle_work_begins_no_head_that_lets_erase_nothing(void **state)
{
    device *d = (device *)*state;
    idem_table *t = &d->f.table;
    idem_journal *j = erased_ahead(d);
    uint32_t head = j->head;

    t->claimed = 1000;                  // more than all the spare ones hold
    assert_true(j->spare < idemi_journal_beside(t, t->claimed));
    assert_true(j->spare > 0);
    assert_int_equal(idemi_journal_gap(t, j->clean),
                     idemi_journal_gap(t, j->kept));
    assert_true(idemi_journal_maintain(t) >= 0);
    assert_int_equal(j->head, head);
}

/* Every field has the place that the manual says; byte n is n here. */
static void a_header_is_taken_apart(void **state)
{
    device *d = (device *)*state;
    const idem_sector *s;
    uint8_t header[IDEMI_HEADER];

    device_start(d, &usual);
    for (unsigned i = 0; i < sizeof header; i++)
        header[i] = (uint8_t)i;
    idemi_recover_sector(&d->f.table, 3, header);
    s = idemi_journal_sector(&d->f.table, 3);
    assert_int_equal(s->known, 13);
    assert_int_equal(s->sequence, 0x13121110);
    assert_int_equal(s->time, 0x17161514);
    assert_int_equal(s->time_high, 0x1918);
    assert_int_equal(s->link, 26);
    assert_int_equal(s->sum, 27 >> 2);
    assert_int_equal(s->tail, 0x1D1C);
    assert_int_equal(s->end, 0x201F1E | IDEMI_FIRST);
}

/* Without an erase, a reading buffer at a time: each is a call of the system,
   if it is a file. */
static void formatting_without_an_erase_takes_few_programs(void **state)
{
    device *d = (device *)*state;
    uint32_t each;

    device_start(d, &in_place);
    device_format(d);
    each = in_place.sector_size / d->f.table.journal->in_size + 1;
    assert_in_range(d->medium.progs, 1, each * d->medium.sector_count);
    for (uint32_t at = 0; at < d->medium.size; at++)
        assert_int_equal(d->medium.marks[at], FLASH_PROGRAMMED);
}

/* A cut in the very first write of all: the storage is as good as blank. */
static void a_torn_first_header_is_blank(void **state)
{
    static const geometry *const media[] = { &geometries[0], &geometries[2],
                                             &geometries[8], &geometries[13],
                                             &geometries[15], &in_place };
    device *d = (device *)*state;

    for (unsigned i = 0; i < COUNT(media); i++) {
        unsigned variants = 1;
        for (uint32_t n = 0; variants; n++)
            for (unsigned v = 0; v < variants; v++) {
                tight(d, media[i], 5);
                d->medium.draws = 6;
                flash_cut(&d->medium, n, v);
                (void)ask(&d->f, "k00", d->now);
                variants = d->medium.off ? d->medium.variants : 0;
                if (!variants)
                    break;
                memset(&d->truth, 0, sizeof d->truth);
                flash_boot(&d->medium);
                assert_int_equal(device_open(d), IDEM_OK);
                assert_int_equal(d->f.table.stats.lost, 0);
                // What is torn may have a sequence another time, and stays
                // while the sector behind it is erased.
                if (d->f.table.journal->blank == IDEMI_TORN) {
                    assert_true(d->f.table.journal->sequence > 0);
                    assert_int_equal(d->f.table.journal->tail, 1);
                }
                // On blank storage doubt cannot be seen.
                d->unsure = 1;
                assert_true(ask(&d->f, "k00", d->now) > 0);
                assert_int_equal(complete(&d->f, &d->f.claim, "", d->now),
                                 IDEM_OK);
                d->unsure = 0;
                flash_boot(&d->medium);
                assert_int_equal(device_open(d), IDEM_OK);
                assert_int_equal(ask(&d->f, "k00", d->now), IDEM_REPLAY);
                memset(d->medium.violations_of, 0,
                       sizeof d->medium.violations_of);
                d->medium.violations = 0;
            }
    }
}

/* Whatever the fields of headers say, as long as the CRC does: opening ends,
   and what is opened may be used. */
static void l1b_opening_ends_for_every_image(void **state)
{
    device *d = (device *)*state;

    for (unsigned i = 0; i < COUNT(pictures); i++)
        for (unsigned n = 0; n < 1500; n++) {
            const image *im = n % 500 ? &picture
                                      : image_of(d, &pictures[i],
                                                 scripts[1 + n / 500 % 2]);
            flash *m = &d->medium;
            image_load(d, im);
            for (unsigned damage = any(d, 6); damage < 6; damage++) {
                uint32_t at = any(d, m->sector_count) * m->sector_size +
                              any(d, 2) * im->front / 2;
                uint8_t header[40];
                uint32_t crc;
                memcpy(header, m->bytes + at, 40);
                // A field of what tells about the ring.
                header[16 + any(d, 20)] = (uint8_t)dice(&d->seed);
                if (any(d, 4) == 0)
                    header[26 + any(d, 4)] = 0;
                crc = crc32c(UINT32_MAX, header, 36);
                for (int k = 0; k < 4; k++)
                    header[36 + k] = (uint8_t)(crc >> 8 * k);
                flash_load(m, at, header, 40);
            }
            flash_boot(m);
            if (open_freely(d) != IDEM_OK)
                continue;
            for (unsigned key = 0; key < 6; key++) {
                idem_table *t = &d->f.table;
                idem_request rq = request_of(&d->f, "panel", nth(key), "pour");
                idem_outcome out = { .response = "poured", .response_len = 6 };
                idem_reply reply = { .buffer = NULL };
                idem_claim claim;
                idem_entry entry = { .id = NULL };
                (void)idem_begin(t, &claim, &reply, &rq, d->now);
                (void)idem_complete(t, &claim, &out, d->now);
                (void)idem_find(t, &entry, &rq, d->now);
                (void)idem_forget(t, &rq, d->now);
                (void)idem_maintain(t, d->now);
            }
            // The medium may have been misused: it was told lies.
            m->violations = 0;
        }
    image_free();
}

/* ---------------------------------------------------------------------------
   callbacks that fail
   ------------------------------------------------------------------------ */

// Every call that writes, all kinds of records, and more than one sector.
static const char *const busy =
    "B0 C0 B1 S1 B2 O2 B3 R3 D2 X0 B4 F4 B5 L5 B0 E0 X1 B1 S1 M X4 B4 O4 X5 B5 "
    "R5 B5 C5 X2 B2 L2 D4 X0 B0 B6 F6 X5 B5 L5 M X6 B6 L6 X5 B5 E5 X1 B1 S1 X6 "
    "B6 C6 X5 B5 C5 B0 X4 B4 L4 C0 X0 B0 L0 X1 B1 L1 X2 B2 L2 X0 B0 L0 X1 B1 "
    "L1 X2 B2 L2 X0 B0 L0 X1 B1 L1 X2 B2 L2 M X0 B0 L0 X1 B1 L1 X2 B2 L2";

static const geometry failing[] = {
    { "nor",      FLASH_NOR,     4, 512, 0, 0xFF, 0, 0, 0 },
    { "nor ram",  FLASH_NOR,     1, 512, 0, 0xFF, 1, 0, 0 },
    { "verified", FLASH_NOR,     2, 512, 0, 0xFF, 0, 1, 0 },
    { "ecc",      FLASH_ECC,     8, 512, 0, 0xFF, 0, 0, 0 },
    { "in place", FLASH_INPLACE, 1, 512, 0, 0x00, 0, 0, 0 },
};

static void start_failing(device *d, const geometry *g)
{
    geometry larger = *g;

    d->f.config.max_attempts = 255;
    d->f.config.retention_ms = 100000;
    d->f.request.lease_ms = IDEM_LEASE_NONE;
    d->still = 1;
    d->unsure = 0;
    // Two sectors may go.
    tight(d, g, 8);
    larger.sector_count = d->medium.sector_count + 2;
    tight(d, &larger, 8);
    d->tried.claim.slot = UINT32_MAX;
}

/* What was carried to a sector that then failed is carried on to the next, also
   if that is not the one behind it. */
static void s2_what_was_carried_is_carried_on_from_sectors_that_fail(
    void **state)
{
    device *d = (device *)*state;

    for (uint32_t first = 0; first < 6; first++)
        for (uint32_t second = 0; second < 6; second++) {
            start_failing(d, &usual);
            play(d, NULL, "B0 C0 B1 C1 P");
            d->unsure = 1;
            flash_fail(&d->medium, FLASH_PROG, first, FLASH_UNDONE, 0);
            (void)device_begin(d, 1);
            flash_fail(&d->medium, FLASH_PROG, second, FLASH_DONE, 0);
            (void)device_begin(d, 1);
            flash_fail(&d->medium, FLASH_PROG, 0, 0, 0);
            play(d, NULL, "B1");
            device_restart_after(d);
            play(d, NULL, "B0 B1");
        }
}

/* Sectors that are not in the ring, but whose header may be there. */
static unsigned known_headers(const idem_table *t)
{
    unsigned count = 0;

    for (uint32_t n = 0; n < t->config->storage->sector_count; n++)
        count += idemi_journal_sector(t, n)->known != 0;
    return count;
}

/* They are used last while they may be taken for the head, which ends when
   there is another. */
static void a_header_that_failed_means_nothing_behind_another(void **state)
{
    device *d = (device *)*state;

    for (uint32_t n = 0; n < 2; n++) {
        start_failing(d, &usual);
        play(d, NULL, "B0 C0");
        d->unsure = 1;
        flash_fail(&d->medium, FLASH_PROG, 0, FLASH_HALF, 0);
        assert_int_equal(device_begin(d, 1), IDEM_E_STORAGE);
        flash_fail(&d->medium, FLASH_PROG, n, FLASH_HALF, 0);
        assert_int_equal(device_begin(d, 1), IDEM_E_STORAGE);
        assert_int_equal(known_headers(&d->f.table), 1);
        assert_int_equal(device_begin(d, 1), IDEM_EXECUTE);
        assert_int_equal(known_headers(&d->f.table), 0);
    }
}

/* Makes one callback fail, in one way, at one time; and whoever is refused asks
   again.  Returns whether it came to that. */
static int fail_once(device *d, const geometry *g, int call, int how,
                     uint32_t n)
{
    const char *script = busy;
    unsigned key, refused = 0;
    char what;

    start_failing(d, g);
    flash_fail(&d->medium, call, n, how, 0);
    while ((what = script_next(&script, &key)) != 0) {
        int result;
        d->unsure = 1;
        result = play_event(d, what, key);
        d->unsure = d->medium.faults[call].how != 0;
        if (result >= 0)
            continue;
        assert_int_equal(result, IDEM_E_STORAGE);
        assert_in_range(++refused, 1, 1);
        if (how != FLASH_SILENT)
            assert_int_equal(d->f.table.storage_error, FLASH_E_FAULT);
        // After a sync that failed nothing is written in this boot.
        if (call == FLASH_SYNC)
            break;
        device_look(d);
        // A completion may have to erase now.
        d->unsure = 1;
        result = play_event(d, what, key);
        d->unsure = 0;
        if (result < 0)
            fail_msg("%s: %c%u again: %s (call %d, how %d, n %u)", g->name,
                     what, key, idem_text(result), call, how, n);
    }
    if (d->medium.faults[call].how)
        return 0;
    device_look(d);
    if (!refused || call != FLASH_SYNC)
        d->tried.claim.slot = UINT32_MAX;
    device_restart_after(d);
    play(d, NULL, "B7 S7 B2 B4 X7 B7 P B7 C7 P");
    return 1;
}

static void fail_everywhere(device *d, int call, int how)
{
    for (unsigned i = 0; i < COUNT(failing); i++) {
        uint32_t n = 0;
        if (how == FLASH_SILENT && !failing[i].verify)
            continue;
        if (call == FLASH_ERASE && failing[i].kind == FLASH_INPLACE)
            continue;
        if (call == FLASH_READ && failing[i].in_ram)
            continue;
        while (fail_once(d, &failing[i], call, how, n))
            n++;
        assert_true(n > 3);
    }
}

static void s7_a_program_that_fails_changes_nothing(void **state)
{
    for (int how = FLASH_UNDONE; how <= FLASH_SILENT; how++)
        fail_everywhere((device *)*state, FLASH_PROG, how);
}

static void s7_an_erase_that_fails_retires_a_sector(void **state)
{
    for (int how = FLASH_UNDONE; how <= FLASH_SILENT; how++)
        fail_everywhere((device *)*state, FLASH_ERASE, how);
}

static void s7_a_read_that_fails_changes_nothing(void **state)
{
    for (int how = FLASH_UNDONE; how <= FLASH_HALF; how++)
        fail_everywhere((device *)*state, FLASH_READ, how);
}

static void s7_a_sync_that_fails_leaves_all_or_nothing(void **state)
{
    for (int how = FLASH_UNDONE; how <= FLASH_HALF; how++)
        fail_everywhere((device *)*state, FLASH_SYNC, how);
}

/* Programs fail again and again, so that what was carried is carried on from
   several heads that failed; and a restart finds all of it. */
static void s2_programs_may_fail_now_and_then(void **state)
{
    static const char events[] = "BBBBBCCCCFESOLRXDM";
    device *d = (device *)*state;
    unsigned strays = 0;

    for (unsigned seed = 0; seed < 60; seed++) {
        start_failing(d, &failing[seed % COUNT(failing)]);
        play(d, NULL, "B7 C7 X7");
        for (unsigned i = 0; i < 600; i++) {
            if (any(d, 6) == 0)
                flash_fail(&d->medium, FLASH_PROG, any(d, 14), FLASH_UNDONE,
                           0);
            d->unsure = 1;
            (void)play_event(d, events[any(d, sizeof events - 1)],
                             any(d, 10));
            strays += d->f.table.journal->stray;
            assert_int_equal(idem_check(&d->f.table), 0);
            if (i % 200 == 199)
                device_restart_after(d);
        }
    }
    assert_true(strays > 100);
}

/* From one time on all calls of a callback fail.  What is known is still
   answered; what is refused three times is given up; then it is well again. */
static void fail_for_ever(device *d, int call, int how)
{
    for (unsigned i = 0; i < COUNT(failing); i++)
        for (uint32_t n = 0; n < 60; n++) {
            const char *script = busy;
            unsigned key, refused = 0;
            char what;
            if (how == FLASH_SILENT && !failing[i].verify)
                continue;
            start_failing(d, &failing[i]);
            // Not on blank storage, where doubt cannot be seen.
            play(d, NULL, "B7 C7 X7");
            flash_fail(&d->medium, call, n, how, 1);
            d->unsure = 1;
            while (refused < 3 && (what = script_next(&script, &key)) != 0) {
                int result = play_event(d, what, key);
                for (refused = 0; result < 0 && refused < 3; refused++)
                    result = play_event(d, what, key);
                // Completion needs no erase, and only erasing fails.
                if (call == FLASH_ERASE && strchr("CFESOL", what))
                    assert_int_equal(refused, 0);
            }
            if (call != FLASH_READ)
                device_look(d);
            if (!refused)
                d->tried.claim.slot = UINT32_MAX;
            device_restart_after(d);
            // What did not read for long may have been given up as lost.
            if (call != FLASH_READ)
                play(d, NULL, "B7 S7 X7 B7 P B7 C7 P");
        }
}

static void s7_programs_may_fail_for_ever(void **state)
{
    for (int how = FLASH_UNDONE; how <= FLASH_SILENT; how++)
        fail_for_ever((device *)*state, FLASH_PROG, how);
}

static void s7_erases_may_fail_for_ever(void **state)
{
    for (int how = FLASH_UNDONE; how <= FLASH_SILENT; how++)
        fail_for_ever((device *)*state, FLASH_ERASE, how);
}

static void s7_reads_may_fail_for_ever(void **state)
{
    for (int how = FLASH_UNDONE; how <= FLASH_HALF; how++)
        fail_for_ever((device *)*state, FLASH_READ, how);
}

static void s7_syncs_may_fail_for_ever(void **state)
{
    for (int how = FLASH_UNDONE; how <= FLASH_HALF; how++)
        fail_for_ever((device *)*state, FLASH_SYNC, how);
}

/* All callbacks fail for a while, and work again: nothing was damaged. */
static void s2_a_bus_that_is_out_for_a_while_loses_nothing(void **state)
{
    device *d = (device *)*state;

    for (unsigned i = 0; i < COUNT(failing); i++)
        for (unsigned when = 0; when < 60; when++) {
            start_failing(d, &failing[i]);
            play(d, NULL, "B0 L0 B1 S1 B2 O2 B3");
            for (unsigned n = 0; n < when; n++)
                play(d, NULL, "B4 L4 X4");
            d->unsure = 1;
            for (int call = 0; call < FLASH_CALLS; call++)
                if (call != FLASH_SYNC)
                    flash_fail(&d->medium, call, 0, FLASH_UNDONE, 1);
            for (unsigned n = 0; n < 30; n++) {
                (void)device_maintain(d);
                (void)device_begin(d, 5);
                (void)device_begin(d, 0);
            }
            for (int call = 0; call < FLASH_CALLS; call++)
                flash_fail(&d->medium, call, 0, 0, 0);
            assert_int_equal(d->f.table.stats.lost, 0);
            device_look(d);
            for (unsigned n = 0; n < 40; n++) {
                (void)device_begin(d, 4);
                (void)device_complete(d, 4, 3);
                (void)device_forget(d, 4);
            }
            assert_int_equal(d->f.table.stats.lost, 0);
            device_look(d);
            d->tried.claim.slot = UINT32_MAX;
            device_restart_after(d);
        }
}

/* Answers that need no storage are given while all of it fails. */
static void in_ram_duplicates_are_answered_by_a_dead_storage(void **state)
{
    device *d = (device *)*state;

    d->f.config.in_ram = 1;
    device_start(d, &usual);
    play(d, NULL, "B0 S0 B1 O1 B2");
    for (int call = 0; call < FLASH_CALLS; call++)
        flash_fail(&d->medium, call, 0, FLASH_UNDONE, 1);
    assert_int_equal(device_begin(d, 0), IDEM_REPLAY);
    assert_int_equal(device_begin(d, 1), IDEM_REPLAY);
    assert_int_equal(device_begin(d, 2), IDEM_BUSY);
    device_look(d);
    d->unsure = 1;
    assert_int_equal(device_complete(d, 2, 3), IDEM_E_STORAGE);
    assert_int_equal(device_begin(d, 3), IDEM_E_STORAGE);
    device_look(d);
}

/* A key whose record does not read is not taken for an unknown one. */
static void looking_says_that_a_record_does_not_read(void **state)
{
    device *d = (device *)*state;
    fixture *f = &d->f;
    idem_entry entry = { .id = NULL };
    idem_claim claim;
    uint8_t piece[4];
    size_t len = sizeof piece;

    device_start(d, &usual);
    play(d, NULL, "B0 O0 B1");
    claim = d->truth.keys[0].claim;
    flash_fail(&d->medium, FLASH_READ, 0, FLASH_UNDONE, 1);
    d->unsure = 1;
    for (unsigned n = 0; n < 3; n++) {
        entry.cursor = 0;
        assert_int_equal(device_begin(d, 0), IDEM_E_STORAGE);
        assert_int_equal(device_begin(d, 1), IDEM_E_STORAGE);
        assert_int_equal(device_complete(d, 1, 3), IDEM_E_STORAGE);
        assert_int_equal(device_forget(d, 0), IDEM_E_STORAGE);
        assert_int_equal(device_deliver(d, 0), IDEM_E_STORAGE);
        assert_int_equal(find(f, "panel", "k00", d->now), IDEM_E_STORAGE);
        assert_int_equal(checked(f, idem_next(&f->table, &entry, d->now)),
                         IDEM_E_STORAGE);
        assert_int_equal(checked(f, idem_pending(&f->table, &entry, d->now)),
                         IDEM_E_STORAGE);
        assert_int_equal(checked(f, idem_response(&f->table, piece, &len,
                                                  &claim, 0)),
                         IDEM_E_STORAGE);
        assert_int_equal(len, 0);
        len = sizeof piece;
    }
    assert_int_equal(f->table.storage_error, FLASH_E_FAULT);
    flash_fail(&d->medium, FLASH_READ, 0, 0, 0);
    d->unsure = 0;
    device_look(d);
    assert_int_equal(device_begin(d, 0), IDEM_REPLAY);
    assert_int_equal(device_complete(d, 1, 3), IDEM_OK);
}

/* Bits flip while the table is open: the record is refused as long as it is
   asked for, and lost when it is to be carried forward; then there is doubt. */
static void s5_damage_while_the_table_is_open_is_noticed(void **state)
{
    device *d = (device *)*state;
    fixture *f = &d->f;

    for (uint32_t n = 0; n < 20; n++) {
        const image *im = image_of(d, &pictures[0], "B0 C0 B1 C1");
        unsigned record = n % 4, key = record / 2;
        flash_flip(&d->medium,
                   im->records[record].at + n % im->records[record].len, n % 8);
        assert_int_equal(begin(f, "panel", key_name(key), "pour 5 ml", d->now),
                         IDEM_E_STORAGE);
        assert_int_equal(begin(f, "panel", key_name(1 - key), "pour 5 ml",
                               d->now), IDEM_REPLAY);
        for (unsigned i = 0; i < 400 && !f->table.stats.lost; i++) {
            int result = ask(f, "a", d->now);
            if (result == IDEM_E_STORAGE)
                continue;
            if (f->table.stats.lost)
                break;
            assert_int_equal(result, IDEM_EXECUTE);
            if (release(f, &f->claim, d->now) != IDEM_OK)
                assert_int_equal(release(f, &f->claim, d->now), IDEM_OK);
        }
        assert_int_equal(f->table.stats.lost, 1);
        assert_int_equal(begin(f, "panel", key_name(key), "pour 5 ml", d->now),
                         IDEM_RECOVER);
        assert_int_equal(f->claim.attempt, 1);
        assert_int_equal(begin(f, "panel", key_name(1 - key), "pour 5 ml",
                               d->now), IDEM_REPLAY);
        flash_boot(&d->medium);
        assert_int_equal(device_open(d), IDEM_OK);
        assert_int_equal(ask(f, "b", d->now), IDEM_RECOVER);
    }
}

/* An opening during which one read fails, or all from one on. */
static void s5_a_read_that_fails_while_opening_is_damage(void **state)
{
    device *d = (device *)*state;

    for (unsigned i = 0; i < COUNT(pictures); i++)
        for (unsigned n = 0; n < COUNT(scripts); n++) {
            const image *im = image_of(d, &pictures[i], scripts[n]);
            for (uint32_t at = 0, done = 0; !done; at++) {
                image_load(d, im);
                flash_fail(&d->medium, FLASH_READ, at, FLASH_UNDONE, 0);
                assert_int_equal(device_open(d), IDEM_OK);
                done = d->medium.faults[FLASH_READ].how != 0;
                flash_fail(&d->medium, FLASH_READ, 0, 0, 0);
                // A second try was good, granule by granule.
                assert_int_equal(d->f.table.stats.lost, 0);
                if (at % 9 == 0)
                    play(d, NULL, "M");
            }
        }
}

/* Nothing reads: that is no journal, and no blank storage either. */
static void a_storage_that_does_not_read_at_all_is_not_blank(void **state)
{
    device *d = (device *)*state;

    for (unsigned i = 0; i < COUNT(pictures); i++) {
        const image *im = image_of(d, &pictures[i], scripts[1]);
        int result;
        image_load(d, im);
        flash_fail(&d->medium, FLASH_READ, 0, FLASH_UNDONE, 1);
        result = device_open(d);
        assert_true(result == IDEM_E_STORAGE || result == IDEM_E_FORMAT);
        assert_int_equal(d->f.table.storage_error, FLASH_E_FAULT);
        assert_int_equal(idem_maintain(&d->f.table, 0), IDEM_E_ARG);
        flash_fail(&d->medium, FLASH_READ, 0, 0, 0);
        assert_int_equal(judge(d, im, im->h.count - 1, 0), 0);
    }
}

static void formatting_reports_a_storage_that_fails(void **state)
{
    device *d = (device *)*state;
    fixture *f = &d->f;

    for (unsigned i = 0; i < COUNT(failing); i++)
        for (int call = FLASH_PROG; call <= FLASH_SYNC; call++) {
            size_t size;
            start_failing(d, &failing[i]);
            play(d, NULL, busy);
            if ((call == FLASH_ERASE) == !d->storage.erase &&
                call != FLASH_SYNC)
                continue;
            if (call == FLASH_PROG && d->storage.erase)
                continue;
            assert_int_equal(idem_open(&f->table, &f->config, NULL, 0, 0),
                             IDEM_E_MEMORY);
            size = f->table.needed;
            flash_fail(&d->medium, call, call == FLASH_SYNC ? 0 : 3,
                       FLASH_UNDONE, 0);
            assert_int_equal(idem_format(&f->table, &f->config, f->memory, size,
                                         0), IDEM_E_STORAGE);
            assert_int_equal(f->table.storage_error, FLASH_E_FAULT);
            assert_int_equal(idem_maintain(&f->table, 0), IDEM_E_ARG);
            device_format(d);
            play(d, NULL, "B0 C0 P");
        }
}

/* A call that is refused because a sector fails succeeds when it is repeated
   for each. */
static int persist(device *d, char what, unsigned key)
{
    int result = play_event(d, what, key);

    for (unsigned n = 0; result == IDEM_E_STORAGE && n < 8; n++)
        result = play_event(d, what, key);
    return result;
}

static void bad_sectors_are_retired_and_the_journal_goes_on(void **state)
{
    static const uint8_t bads[] = { FLASH_BAD_ERASE, FLASH_BAD_PROG,
                                    FLASH_STUCK_PROG, FLASH_STUCK_ERASE };
    device *d = (device *)*state;

    d->f.config.max_attempts = 255;
    for (unsigned i = 0; i < 4 * COUNT(bads); i++) {
        geometry g = { "bad", FLASH_NOR, 4, 512, 0, 0xFF, 0, 1, 0 };
        unsigned count = 1 + i / 4 % 3, retired = 0;
        tight(d, &g, 5);
        g.sector_count = d->medium.sector_count + 1 + count;
        tight(d, &g, 5);
        for (unsigned n = 0; n < count; n++)
            d->medium.bad[1 + any(d, g.sector_count - 1)] = bads[i % 4];
        d->unsure = 1;
        for (unsigned n = 0; n < 400; n++) {
            unsigned key = n % 5;
            assert_int_equal(persist(d, 'B', key), IDEM_EXECUTE);
            assert_int_equal(persist(d, n % 9 ? 'L' : 'S', key), IDEM_OK);
            assert_int_equal(persist(d, 'B', key), IDEM_REPLAY);
            if (n % 2)
                assert_int_equal(persist(d, 'X', key), IDEM_OK);
            else
                d->now += 1000;
            assert_in_range(d->f.table.stats.retired, 0, count);
            if (n % 50 != 49)
                continue;
            retired |= d->f.table.stats.retired;
            d->tried.claim.slot = UINT32_MAX;
            device_restart_after(d);
            d->unsure = 1;
        }
        assert_true(retired);
    }
}

/* Nothing can be written for long, as on a full disk: one sector after another
   is tried.  A header has a byte for how far back the one before it is. */
static void s2_no_head_is_further_away_than_its_header_can_tell(void **state)
{
    static const geometry rings[] = {
        { "nor",      FLASH_NOR,     1, 512, 400, 0xFF, 0, 0, 0 },
        { "in place", FLASH_INPLACE, 1, 512, 400, 0x00, 0, 0, 0 },
    };
    device *d = (device *)*state;
    fixture *f = &d->f;

    for (unsigned n = 0; n < 10; n++) {
        unsigned bad = 253 + n / 2;
        device_start(d, &rings[n % 2]);
        (void)finish(f, "panel", "a", d->now);
        flash_fail(&d->medium, FLASH_PROG, 0, FLASH_UNDONE, 1);
        for (unsigned i = 0; i <= bad; i++)
            assert_int_equal(ask(f, "b", d->now), IDEM_E_STORAGE);
        flash_fail(&d->medium, FLASH_PROG, 0, 0, 0);
        (void)finish(f, "panel", "b", d->now);
        // The 255th sector from the head is the last that may be next.
        assert_int_equal(f->table.stats.retired, n % 2 ? 0 : bad % 255);
        assert_int_equal(device_open(d), IDEM_OK);
        assert_int_equal(f->table.stats.lost, 0);
        assert_int_equal(ask(f, "a", d->now), IDEM_REPLAY);
        assert_int_equal(ask(f, "b", d->now), IDEM_REPLAY);
    }
}

/* So many that the configured keys would not fit any more. */
static void too_few_sectors_left_refuse_new_claims_only(void **state)
{
    device *d = (device *)*state;

    for (unsigned i = 0; i < 3; i++) {
        static const uint8_t bads[] = { FLASH_BAD_ERASE, FLASH_BAD_PROG,
                                        FLASH_STUCK_ERASE };
        geometry g = { "worn", FLASH_NOR, 4, 512, 0, 0xFF, 0, 1, 0 };
        int result = IDEM_OK;
        unsigned spare = 4;
        d->still = 1;
        tight(d, &g, 7);
        d->f.request.lease_ms = IDEM_LEASE_NONE;
        play(d, NULL, "B0 L0 B1 L1 B2 B3");
        for (uint32_t s = 0; s < d->medium.sector_count; s++)
            if (s != d->f.table.journal->head)
                d->medium.bad[s] = bads[i];
        d->unsure = 1;
        for (unsigned n = 0; n < 300 && result != IDEM_E_SPACE; n++) {
            result = persist(d, 'B', spare);
            if (result != IDEM_EXECUTE || persist(d, 'R', spare) == IDEM_OK)
                continue;
            // What a claim reserved is enough to give it back; unless it is in
            // a sector that cannot be programmed.
            assert_int_equal(bads[i], FLASH_BAD_PROG);
            spare++;
        }
        assert_int_equal(result, IDEM_E_SPACE);
        assert_true(d->f.table.stats.retired > 0);
        for (unsigned n = 0; n < 3; n++) {
            assert_int_equal(device_begin(d, 0), IDEM_REPLAY);
            assert_int_equal(device_begin(d, 1), IDEM_REPLAY);
            assert_int_equal(device_begin(d, 2), n ? IDEM_REPLAY : IDEM_BUSY);
            assert_int_equal(device_begin(d, spare), IDEM_E_SPACE);
            if (n)
                continue;
            // What was reserved for them may be in a sector that does not
            // program.
            if (bads[i] == FLASH_BAD_PROG)
                break;
            assert_int_equal(play_event(d, 'L', 2), IDEM_OK);
            assert_int_equal(play_event(d, 'L', 3), IDEM_OK);
        }
        d->tried.claim.slot = UINT32_MAX;
        device_restart_after(d);
    }
}

/* ---------------------------------------------------------------------------
   an erase in two parts
   ------------------------------------------------------------------------ */

static void idle_work_starts_an_erase_and_does_not_wait_for_it(void **state)
{
    device *d = (device *)*state;

    device_start(d, &usual);
    device_split(d, 7);
    for (unsigned n = 0; n < 300; n++) {
        unsigned steps = 0;
        device_begin(d, n % 4);
        device_complete(d, n % 4, 16);
        d->now += 1000;
        for (;;) {
            uint32_t polled = d->polled;
            int result = device_maintain(d);
            assert_in_range(d->polled - polled, 0, 1);
            if (result == IDEM_OK)
                break;
            assert_in_range(++steps, 1, 200);
        }
        assert_false(d->erasing);
        // So no begin waits.
        d->polled = 0;
        device_begin(d, n % 4);
        assert_int_equal(d->polled, 0);
        device_release(d, n % 4, &d->f.claim);
        if (n % 20 == 0)
            device_restart(d);
    }
}

static void a_begin_waits_for_one_erase_at_most_and_only_if_it_must(
    void **state)
{
    device *d = (device *)*state;
    unsigned waited = 0, went_on = 0;

    device_start(d, &usual);
    device_split(d, 5);
    for (unsigned n = 0; n < 1000; n++) {
        int under_way;
        if (n % 3 == 0)
            device_maintain(d);
        d->polled = 0;
        under_way = d->erasing;
        device_begin(d, n % 4);
        assert_in_range(d->polled, 0, 12);
        waited += d->polled > 0;
        went_on += under_way && d->progs && !d->polled;
        d->polled = 0;
        device_complete(d, n % 4, 16);
        // S7: a completion waits for none.
        assert_int_equal(d->polled, 0);
        d->now += 400;
        if (n % 97 == 0)
            device_restart(d);
    }
    assert_true(waited > 10);
    assert_true(went_on > 10);
}

static void an_erase_that_ends_when_no_other_is_due_is_no_failure(void **state)
{
    device *d = (device *)*state;
    idem_table *t = &d->f.table;
    uint32_t sector;
    int result, steps = 0;

    device_start(d, &usual);
    device_split(d, 3);
    play(d, NULL, "B0 L0");
    while (device_maintain(d) == IDEM_MORE)
        ;
    // It was started as the next that is dead, which all are spare now.
    sector = idemi_journal_next(t, t->journal->head);
    assert_int_equal(d->storage.erase(d->storage.ctx, sector), 0);
    t->journal->erasing = sector + 1;
    t->journal->spare =
        idemi_journal_gap(t, t->journal->kept);
    do {
        result = device_maintain(d);
        steps++;
    } while (result == IDEM_MORE);
    assert_int_equal(result, IDEM_OK);
    assert_true(steps > 1);
    assert_false(d->erasing);
}

static int failing_polls;

static int failing_erasing(void *ctx)
{
    int result = split_erasing(ctx);

    if (result == 0 && failing_polls > 0 && failing_polls-- == 1)
        return -77;
    return result;
}

static void an_erase_that_fails_late_retires_its_sector(void **state)
{
    device *d = (device *)*state;
    unsigned retired = 0;

    d->f.config.max_attempts = 255;
    for (int n = 1; n < 40; n++) {
        geometry g = usual;
        g.sector_count = 14;
        device_start(d, &g);
        device_split(d, 3);
        d->storage.erasing = failing_erasing;
        assert_int_equal(device_open(d), IDEM_OK);
        memset(&d->truth, 0, sizeof d->truth);
        failing_polls = n;
        d->unsure = 1;
        for (unsigned k = 0; k < 100; k++) {
            assert_int_equal(persist(d, 'B', k % 4), IDEM_EXECUTE);
            assert_int_equal(persist(d, 'L', k % 4), IDEM_OK);
            if (n % 2)
                (void)device_maintain(d);
            assert_int_equal(persist(d, 'X', k % 4), IDEM_OK);
        }
        retired += d->f.table.stats.retired;
        if (d->f.table.stats.retired)
            assert_int_equal(d->f.table.storage_error, -77);
        d->tried.claim.slot = UINT32_MAX;
        d->storage.erasing = split_erasing;
        device_restart_after(d);
    }
    failing_polls = 0;
    assert_true(retired > 5);
}

/* ---------------------------------------------------------------------------
   the end of all sequences, and the format
   ------------------------------------------------------------------------ */

/* A sector's sequence has 32 bits; with the last of them new claims are refused
   and what was granted is completed. */
static void s7_the_last_sequence_refuses_new_claims_only(void **state)
{
    device *d = (device *)*state;
    unsigned granted = 0;

    for (uint32_t left = 1; left < 20; left++) {
        idem_request rq;
        int result, claimed;
        device_start(d, &usual);
        d->f.request.lease_ms = IDEM_LEASE_NONE;
        // No such journal can be made in a test's time.
        d->f.table.journal->sequence =
            UINT32_MAX - 2 * d->f.config.storage->sector_count - left;
        d->unsure = 1;
        assert_int_equal(device_begin(d, 0), IDEM_EXECUTE);
        assert_int_equal(device_complete(d, 0, 16), IDEM_OK);
        claimed = device_begin(d, 2) == IDEM_EXECUTE;
        do {
            result = device_begin(d, 3);
            if (result == IDEM_EXECUTE)
                result = device_complete(d, 3, 16);
            if (result == IDEM_OK)
                result = device_forget(d, 3);
        } while (result == IDEM_OK);
        assert_int_equal(result, IDEM_E_SPACE);
        assert_int_equal(device_begin(d, 0), IDEM_REPLAY);
        if (claimed)
            assert_int_equal(device_complete(d, 2, 16), IDEM_OK);
        assert_int_equal(device_begin(d, 0), IDEM_REPLAY);
        granted += (unsigned)claimed;
        d->tried.claim.slot = UINT32_MAX;
        device_restart_after(d);
        assert_int_equal(device_begin(d, 0), IDEM_REPLAY);
        // What comes behind the last of all fails, and changes nothing.
        device_restart_after(d);
        d->f.table.journal->sequence = UINT32_MAX;
        rq = device_request(d, 0);
        assert_int_equal(idem_forget(&d->f.table, &rq, d->now), IDEM_E_SPACE);
        device_restart_after(d);
        // The way out.
        device_format(d);
        play(d, NULL, "B0 L0 P B1");
    }
    assert_true(granted > 5);
}

/* Claims that reserve much more than the head has make room for it, without
   touching what is needed. */
static void s7_claims_make_room_for_long_outcomes(void **state)
{
    device *d = (device *)*state;
    fixture *f = &d->f;
    geometry g = usual;
    unsigned n;

    g.sector_size = 1024;
    f->config.response_max = 200;
    f->config.capacity = 8;
    f->config.lease_ms = IDEM_LEASE_NONE;
    device_start(d, &g);
    for (n = 0; n < 200; n++) {
        finish(f, "s", "c", d->now);
        assert_int_equal(forget(f, "s", "c", d->now), IDEM_OK);
    }
    for (n = 0; n < f->config.capacity; n++) {
        assert_int_equal(ask(f, nth(n), d->now), IDEM_EXECUTE);
        while (n == 0 && idem_maintain(&f->table, d->now) == IDEM_MORE)
            ;
    }
    assert_int_equal(idem_check(&f->table), 0);
    assert_int_equal(d->medium.violations, 0);
}

/* What a journal looks like, byte for byte: the same on every machine, and read
   by all later versions.  If the format changes, the test prints what is
   to stand here. */
enum { GOLDEN_SECTOR = 512, GOLDEN_SECTORS = 12 };

static const geometry golden_medium =
    { "golden", FLASH_NOR, 4, GOLDEN_SECTOR, GOLDEN_SECTORS, 0xFF, 0, 0, 0 };

// What tells the secret, for each IDEM_HASH.
static const uint32_t golden_checks[4] = {
    0, UINT32_C(0x5BEE151C), UINT32_C(0xFAFB6201), UINT32_C(0xB9BC9004)
};

// The front part of each sector in turn, as IDEM_HASH_SIPHASH has it: its
// length in two bytes, high first, then its bytes.
static const uint8_t golden[] = {
    1, 38, 105, 100, 101, 109, 1, 33, 0, 2, 0, 12, 0, 28, 21,
    0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1,
    0, 0, 0, 0, 0, 80, 0, 0, 44, 129, 247, 136, 105, 100, 101,
    109, 1, 33, 0, 2, 0, 12, 0, 28, 21, 0, 0, 0, 1, 0,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0,
    80, 0, 0, 44, 129, 247, 136, 225, 19, 0, 1, 239, 205, 171, 137,
    103, 69, 35, 1, 5, 112, 97, 110, 101, 108, 107, 48, 48, 139, 178,
    250, 89, 255, 255, 255, 162, 4, 0, 2, 28, 239, 50, 107, 174, 172,
    255, 255, 225, 19, 1, 3, 239, 205, 171, 137, 103, 69, 35, 1, 5,
    112, 97, 110, 101, 108, 107, 48, 49, 0, 93, 136, 192, 255, 255, 255,
    241, 48, 23, 2, 4, 240, 162, 4, 5, 239, 205, 171, 137, 103, 69,
    35, 1, 5, 112, 97, 110, 101, 108, 107, 48, 50, 154, 49, 241, 208,
    255, 255, 166, 9, 2, 5, 32, 2, 115, 148, 251, 142, 233, 224, 44,
    202, 2, 255, 241, 112, 25, 1, 238, 7, 2, 240, 162, 4, 5, 239,
    205, 171, 137, 103, 69, 35, 1, 5, 112, 97, 110, 101, 108, 107, 48,
    49, 132, 97, 57, 233, 178, 129, 10, 1, 239, 7, 32, 251, 255, 255,
    255, 181, 176, 44, 215, 64, 31, 255, 255, 255, 241, 48, 24, 0, 240,
    7, 240, 162, 4, 5, 239, 205, 171, 137, 103, 69, 35, 1, 5, 112,
    97, 110, 101, 108, 107, 48, 51, 170, 201, 90, 208, 255, 162, 8, 0,
    241, 7, 32, 202, 194, 87, 159, 173, 201, 181, 6, 1, 43, 105, 100,
    101, 109, 1, 33, 0, 2, 0, 12, 0, 28, 21, 0, 0, 0, 2,
    0, 0, 0, 241, 3, 0, 0, 0, 0, 1, 1, 1, 0, 24, 1,
    0, 120, 0, 0, 13, 137, 11, 155, 105, 100, 101, 109, 1, 33, 0,
    2, 0, 12, 0, 28, 21, 0, 0, 0, 2, 0, 0, 0, 241, 3,
    0, 0, 0, 0, 1, 1, 1, 0, 24, 1, 0, 120, 0, 0, 13,
    137, 11, 155, 251, 16, 30, 0, 2, 216, 2, 2, 240, 162, 4, 239,
    205, 171, 137, 103, 69, 35, 1, 5, 3, 112, 97, 110, 101, 108, 107,
    48, 51, 202, 194, 87, 159, 13, 168, 107, 223, 255, 255, 255, 225, 19,
    3, 2, 239, 205, 171, 137, 103, 69, 35, 1, 5, 112, 97, 110, 101,
    108, 107, 48, 48, 178, 146, 88, 28, 255, 255, 255, 178, 2, 4, 3,
    3, 28, 238, 2, 205, 118, 9, 255, 176, 4, 3, 3, 3, 40, 28,
    117, 221, 14, 255, 255, 160, 3, 0, 5, 92, 8, 134, 168, 209, 255,
    255, 255, 225, 19, 0, 6, 239, 205, 171, 137, 103, 69, 35, 1, 5,
    112, 97, 110, 101, 108, 107, 48, 51, 199, 234, 241, 41, 255, 255, 255,
    160, 3, 0, 7, 28, 225, 30, 42, 209, 255, 255, 255, 225, 19, 0,
    8, 239, 205, 171, 137, 103, 69, 35, 1, 5, 112, 97, 110, 101, 108,
    107, 48, 51, 142, 38, 144, 133, 255, 255, 255, 225, 23, 3, 136, 128,
    128, 128, 16, 239, 205, 171, 137, 103, 69, 35, 1, 5, 112, 97, 110,
    101, 108, 107, 48, 49, 139, 200, 35, 250, 255, 255, 255, 162, 9, 3,
    137, 128, 128, 128, 16, 32, 135, 143, 246, 136, 138, 209, 0, 149, 105,
    100, 101, 109, 1, 33, 0, 2, 0, 12, 0, 28, 21, 0, 0, 0,
    3, 0, 0, 0, 250, 3, 0, 0, 1, 0, 1, 1, 2, 0, 28,
    1, 0, 112, 0, 0, 143, 107, 196, 86, 105, 100, 101, 109, 1, 33,
    0, 2, 0, 12, 0, 28, 21, 0, 0, 0, 3, 0, 0, 0, 250,
    3, 0, 0, 1, 0, 1, 1, 2, 0, 28, 1, 0, 112, 0, 0,
    143, 107, 196, 86, 235, 25, 3, 1, 212, 2, 1, 239, 205, 171, 137,
    103, 69, 35, 1, 5, 3, 112, 97, 110, 101, 108, 107, 48, 49, 135,
    143, 196, 56, 88, 44, 255, 225, 19, 1, 1, 239, 205, 171, 137, 103,
    69, 35, 1, 5, 112, 97, 110, 101, 108, 107, 48, 48, 57, 246, 204,
    163, 255, 255, 255, 162, 3, 1, 3, 28, 117, 173, 91, 67, 0, 0,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    0,
};

static void golden_configure(device *d)
{
    d->f.config.capacity = 4;
    d->f.config.key_max = 12;
    d->f.config.response_max = 12;
    d->f.config.state_max = 8;
    d->f.config.max_attempts = 4;
    d->f.config.retention_ms = 1000;
    d->f.config.lease_ms = 100;
    d->still = 0;
    d->now = 0;
}

/* All kinds of records, and all parts that they may have. */
static void golden_write(device *d)
{
    idem_request *rq = &d->f.request;

    golden_configure(d);
    assert_true(device_medium(d, &golden_medium));
    assert_int_equal(d->medium.sector_count, GOLDEN_SECTORS);
    assert_int_equal(device_open(d), IDEM_OK);
    rq->has_fingerprint = 1;
    rq->fingerprint = UINT64_C(0x0123456789ABCDEF);
    play(d, NULL, "B0 C0 B1");
    rq->retention_ms = 70000;
    rq->response_size = 5;
    play(d, NULL, "B2 S2");
    d->now += 1000;
    play(d, NULL, "B1 F1 B3 C3 P");
    rq->retention_ms = 0;
    rq->response_size = 0;
    play(d, NULL, "B2 B0 O0 D0 X3 B3 R3 B3");
    device_elapse(d, UINT32_MAX);
    play(d, NULL, "B1 C1 P B0 B1 E0");
}

/* The front part of a sector: all but the erased bytes at its end. */
static uint32_t golden_length(const uint8_t *sector)
{
    uint32_t len = GOLDEN_SECTOR;

    while (len > 0 && sector[len - 1] == 0xFF)
        len--;
    return len;
}

static void golden_store(uint8_t *p, uint32_t word)
{
    for (int i = 0; i < 4; i++)
        p[i] = (uint8_t)(word >> 8 * i);
}

/* Makes a header that of another IDEM_HASH. */
static void golden_header(uint8_t *header, unsigned hash)
{
    header[5] = (uint8_t)((header[5] & 0xF0) | hash);
    header[11] = (uint8_t)golden_checks[hash];
    header[12] = (uint8_t)(golden_checks[hash] >> 8);
    golden_store(header + 36, crc32c(UINT32_MAX, header, 36));
}

/* The same for the records of a sector. */
static void golden_records(uint8_t *sector, unsigned hash)
{
    uint32_t sequence = (uint32_t)sector[16] | (uint32_t)sector[17] << 8;
    uint32_t at = 80;

    while (at < GOLDEN_SECTOR && sector[at] != 0xFF) {
        uint32_t body = sector[at] & 0x10 ? 2 : 1;
        uint32_t len = body + 1 + sector[at + body];
        golden_store(sector + at + len,
                     crc32c(golden_checks[hash] ^
                                UINT32_C(0x9E3779B1) * sequence ^ ~at,
                            sector + at, len));
        at += (len + 4 + 3) & ~UINT32_C(3);
    }
}

/* Makes an image that of another IDEM_HASH. */
static void golden_rehash(uint8_t *bytes, unsigned hash)
{
    for (uint32_t s = 0; s < GOLDEN_SECTORS; s++) {
        uint8_t *sector = bytes + s * GOLDEN_SECTOR;
        if (memcmp(sector, "idem", 4))
            continue;
        golden_header(sector, hash);
        golden_header(sector + 40, hash);
        golden_records(sector, hash);
    }
}

static void golden_print(const device *d)
{
    uint32_t column = 0;

    printf("golden, hash %d, check 0x%08lX\n", IDEM_HASH,
           (unsigned long)d->f.table.journal->check);
    for (uint32_t s = 0; s < GOLDEN_SECTORS; s++) {
        const uint8_t *sector = d->medium.bytes + s * GOLDEN_SECTOR;
        uint32_t len = golden_length(sector);
        for (uint32_t i = 0; i < len + 2; i++) {
            unsigned byte = i == 0 ? len >> 8 : i == 1 ? len & 255
                                              : sector[i - 2];
            printf("%s%u,", column ? " " : "    ", byte);
            column = column == 14 ? 0 : column + 1;
            if (!column)
                printf("\n");
        }
    }
    printf("\n");
}

/* What the image above is; false if it is none. */
static int golden_image(uint8_t *bytes)
{
    uint32_t at = 0;

    memset(bytes, 0xFF, GOLDEN_SECTORS * GOLDEN_SECTOR);
    for (uint32_t s = 0; s < GOLDEN_SECTORS && at + 2 <= sizeof golden; s++) {
        uint32_t len = (uint32_t)golden[at] << 8 | golden[at + 1];
        at += 2;
        if (len > GOLDEN_SECTOR || len > sizeof golden - at)
            return 0;
        memcpy(bytes + s * GOLDEN_SECTOR, golden + at, len);
        at += len;
    }
    golden_rehash(bytes, IDEM_HASH);
    return at == sizeof golden;
}

static void the_format_is_what_it_was(void **state)
{
    static uint8_t bytes[GOLDEN_SECTORS * GOLDEN_SECTOR];
    device *d = (device *)*state;

    golden_write(d);
    if (!golden_image(bytes) || memcmp(bytes, d->medium.bytes, sizeof bytes)) {
        golden_print(d);
        fail();
    }
}

/* And is understood, from those bytes alone. */
static void a_journal_of_another_machine_is_read(void **state)
{
    static uint8_t bytes[GOLDEN_SECTORS * GOLDEN_SECTOR];
    device *d = (device *)*state;
    truth t;

    golden_write(d);
    t = d->truth;
    assert_true(golden_image(bytes));
    assert_true(device_medium(d, &golden_medium));
    flash_load(&d->medium, 0, bytes, sizeof bytes);
    d->truth = t;
    device_restart(d);
    assert_int_equal(device_begin(d, 0), IDEM_REPLAY);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        JOURNAL_TEST(l1_no_call_does_more_than_the_manual_says),
        JOURNAL_TEST(l1_with_many_claims_open_no_call_does_more_either),
        JOURNAL_TEST(a_held_claim_is_carried_without_an_age),
        JOURNAL_TEST(a_record_of_no_claim_has_no_token_and_no_age),
        JOURNAL_TEST(a_restart_costs_one_erase_and_one_more_with_idle_time),
        JOURNAL_TEST(wear_is_even),
        JOURNAL_TEST(wear_is_even_after_a_torn_header_too),
        JOURNAL_TEST(a_storage_that_is_none_is_refused),
        JOURNAL_TEST(what_needs_a_journal_or_memory_is_refused_without),
        JOURNAL_TEST(the_named_amount_of_memory_is_enough),
        JOURNAL_TEST(opening_writes_nothing_on_blank_storage_either),
        JOURNAL_TEST(a_boot_that_writes_nothing_costs_nothing),
        JOURNAL_TEST(more_memory_means_fewer_reads_and_nothing_else),
        JOURNAL_TEST(the_blank_rest_of_a_sector_takes_few_reads),
        JOURNAL_TEST(no_callback_is_asked_for_no_bytes),
        JOURNAL_TEST(a_duplicate_costs_two_reads_at_most),
        JOURNAL_TEST(looking_costs_two_reads_a_key),
        JOURNAL_TEST(what_was_read_is_not_read_again),
        JOURNAL_TEST(s2_every_outcome_is_replayed_byte_for_byte),
        JOURNAL_TEST(s3_another_payload_is_a_mismatch_also_after_a_restart),
        JOURNAL_TEST(tokens_increase_over_restarts_that_wrote_nothing),
        JOURNAL_TEST(s1_claims_of_the_boot_before_are_fenced),
        JOURNAL_TEST(l2_a_key_that_resets_the_device_ends_exhausted),
        JOURNAL_TEST(attempts_are_counted_over_leases_and_restarts_alike),
        JOURNAL_TEST(s6_retention_goes_on_after_a_restart),
        JOURNAL_TEST(a_shorter_retention_counts_for_what_is_stored),
        JOURNAL_TEST(s4_a_cut_short_key_is_remembered_from_the_restart_on),
        JOURNAL_TEST(s6_a_renewed_claim_is_known_after_a_restart),
        JOURNAL_TEST(a_lease_without_end_ends_with_the_boot),
        JOURNAL_TEST(an_rtc_may_tell_how_long_the_power_was_off),
        JOURNAL_TEST(s1_a_takeover_holds_after_a_restart),
        JOURNAL_TEST(time_may_pass_the_32_bits_again_and_again),
        JOURNAL_TEST(s6_many_retentions_are_never_shortened),
        JOURNAL_TEST(s6_a_few_retentions_are_kept_exactly),
        JOURNAL_TEST(s6_a_few_retentions_are_the_same_after_a_restart),
        JOURNAL_TEST(the_state_is_that_of_the_last_outcome_that_had_one),
        JOURNAL_TEST(what_is_owed_is_owed_until_delivered_over_restarts),
        JOURNAL_TEST(the_order_of_completion_survives),
        JOURNAL_TEST(eviction_takes_the_oldest_completion_over_restarts),
        JOURNAL_TEST(too_old_reaches_to_the_opening_only_under_eviction),
        JOURNAL_TEST(s9_a_quota_holds_over_restarts),
        JOURNAL_TEST(s7_a_response_over_the_reservation_leaves_the_claim),
        JOURNAL_TEST(a_completion_binds_only_to_its_own_claim),
        JOURNAL_TEST(s2_in_batch_mode_what_was_synced_survives_a_cut),
        JOURNAL_TEST(in_batch_mode_no_call_but_sync_and_turning_syncs),
        JOURNAL_TEST(in_each_mode_every_record_is_synced_at_once),
        JOURNAL_TEST(after_a_sync_that_failed_nothing_is_written),
        JOURNAL_TEST(a_volatile_claim_is_not_written_and_its_outcome_is),
        JOURNAL_TEST(a_volatile_claim_needs_no_room),
        JOURNAL_TEST(
            s1_tokens_of_volatile_claims_stay_below_the_next_sector),
        JOURNAL_TEST(l3_a_complete_never_erases_when_tokens_are_used_up),
        JOURNAL_TEST(s2_outcomes_of_many_volatile_claims_outlive_a_restart),
        JOURNAL_TEST(s7_volatile_claims_are_granted_after_restarts_too),
        JOURNAL_TEST(l2_idle_time_frees_what_is_stale),
        JOURNAL_TEST(what_is_stale_is_emptied_once),
        JOURNAL_TEST(r3_a_header_is_believed_when_a_record_follows),
        JOURNAL_TEST(r3_an_attempt_is_seen_at_whatever_time),
        JOURNAL_TEST(s10_what_was_delivered_stays_delivered),
        JOURNAL_TEST(s10_what_was_forgotten_stays_forgotten),
        JOURNAL_TEST(s5_a_lost_sector_is_never_believed),
        JOURNAL_TEST(s5_a_carried_record_is_not_taken_for_a_torn_one),
        JOURNAL_TEST(s5_nor_under_a_header_that_was_torn),
        JOURNAL_TEST(s4_unknown_keys_are_in_doubt_for_a_retention),
        JOURNAL_TEST(s4_doubt_goes_on_over_restarts_and_ends),
        JOURNAL_TEST(s4_doubt_of_days_goes_on_over_restarts_and_ends),
        JOURNAL_TEST(s4_doubt_that_has_ended_stays_ended),
        JOURNAL_TEST(s4_doubt_starts_again_with_each_opening_until_one_writes),
        JOURNAL_TEST(s4_doubt_is_written_as_exactly_as_it_can_be),
        JOURNAL_TEST(in_doubt_known_keys_are_answered_as_ever),
        JOURNAL_TEST(in_doubt_a_full_table_is_full),
        JOURNAL_TEST(s5_each_loss_is_counted_when_it_comes),
        JOURNAL_TEST(s5_a_smaller_capacity_loses_what_is_beyond_it),
        JOURNAL_TEST(an_outcome_of_a_claim_that_was_cut_short_is_no_claim_less),
        JOURNAL_TEST(s5_damage_that_heals_hides_no_other),
        JOURNAL_TEST(s5_hundreds_of_losses_are_told_once_too),
        JOURNAL_TEST(s5_a_key_whose_end_is_damaged_is_not_there_twice),
        JOURNAL_TEST(s5_records_of_several_keys_are_counted_stretch_by_stretch),
        JOURNAL_TEST(another_version_hash_geometry_or_secret_is_refused),
        JOURNAL_TEST(another_configuration_is_refused),
        JOURNAL_TEST(foreign_data_is_refused),
        JOURNAL_TEST(formatting_forgets_what_was_there_for_good),
        JOURNAL_TEST(
            formatting_that_power_ended_leaves_nothing_that_looks_whole),
        JOURNAL_TEST(a_state_that_is_carried_is_a_record_of_its_own),
        JOURNAL_TEST(formatting_programs_whole_granules),
        JOURNAL_TEST(formatting_waits_for_each_erase),
        JOURNAL_TEST(a_header_that_points_out_of_the_ring_is_none),
        JOURNAL_TEST(a_header_that_points_far_back_is_one),
        JOURNAL_TEST(a_second_header_counts_but_for_one_bit),
        JOURNAL_TEST(s5_sectors_without_a_header_are_counted_each),
        JOURNAL_TEST(s5_the_rest_of_a_head_is_lost_if_no_cut_leaves_it),
        JOURNAL_TEST(no_sector_is_erased_that_no_outcome_may_use),
        JOURNAL_TEST(no_head_is_begun_ahead_of_what_is_needed),
        JOURNAL_TEST(idle_work_begins_no_head_that_no_claim_needs),
        JOURNAL_TEST(idle_work_begins_no_head_that_lets_erase_nothing),
        JOURNAL_TEST(a_header_is_taken_apart),
        JOURNAL_TEST(formatting_without_an_erase_takes_few_programs),
        JOURNAL_TEST(s7_an_erase_that_fails_retires_a_sector),
        JOURNAL_TEST(in_ram_duplicates_are_answered_by_a_dead_storage),
        JOURNAL_TEST(looking_says_that_a_record_does_not_read),
        JOURNAL_TEST(s5_damage_while_the_table_is_open_is_noticed),
        JOURNAL_TEST(s5_a_read_that_fails_while_opening_is_damage),
        JOURNAL_TEST(a_storage_that_does_not_read_at_all_is_not_blank),
        JOURNAL_TEST(formatting_reports_a_storage_that_fails),
        JOURNAL_TEST(bad_sectors_are_retired_and_the_journal_goes_on),
        JOURNAL_TEST(s2_no_head_is_further_away_than_its_header_can_tell),
        JOURNAL_TEST(too_few_sectors_left_refuse_new_claims_only),
        JOURNAL_TEST(idle_work_starts_an_erase_and_does_not_wait_for_it),
        JOURNAL_TEST(a_begin_waits_for_one_erase_at_most_and_only_if_it_must),
        JOURNAL_TEST(an_erase_that_ends_when_no_other_is_due_is_no_failure),
        JOURNAL_TEST(an_erase_that_fails_late_retires_its_sector),
        JOURNAL_TEST(s7_the_last_sequence_refuses_new_claims_only),
        JOURNAL_TEST(s7_claims_make_room_for_long_outcomes),
        JOURNAL_TEST(s2_what_was_carried_is_carried_on_from_sectors_that_fail),
        JOURNAL_TEST(a_header_that_failed_means_nothing_behind_another),
        JOURNAL_TEST(s2_programs_may_fail_now_and_then),
        JOURNAL_TEST(the_check_of_records_is_crc32c),
        JOURNAL_TEST(s3_a_record_hidden_in_a_response_is_not_taken),
        JOURNAL_TEST(the_format_is_what_it_was),
        JOURNAL_TEST(a_journal_of_another_machine_is_read),
        // Those that take longest are the last.
        JOURNAL_TEST(capacity_holds_on_every_geometry_whatever_order),
        JOURNAL_TEST(capacity_holds_for_one_key_and_for_many),
        JOURNAL_TEST(l3_with_idle_time_no_begin_waits_for_an_erase),
        JOURNAL_TEST(l3_outcomes_in_many_sectors_cost_an_erase_at_most),
        JOURNAL_TEST(capacity_holds_in_batch_mode_and_with_volatile_claims),
        JOURNAL_TEST(too_few_sectors_are_told_how_many_would_do),
        JOURNAL_TEST(volatile_claims_are_given_up_by_a_restart_only),
        JOURNAL_TEST(s2_a_bus_that_is_out_for_a_while_loses_nothing),
        JOURNAL_TEST(l1b_opening_ends_for_every_image),
        JOURNAL_TEST(s5_damage_to_both_headers_of_the_newest_sector_is_seen),
        JOURNAL_TEST(s5_two_flipped_bits_are_never_believed),
        JOURNAL_TEST(s5_a_granule_that_does_not_read_costs_one_record),
        JOURNAL_TEST(s7_syncs_may_fail_for_ever),
        JOURNAL_TEST(s7_reads_may_fail_for_ever),
        JOURNAL_TEST(s7_programs_may_fail_for_ever),
        JOURNAL_TEST(s7_erases_may_fail_for_ever),
        JOURNAL_TEST(outcome_state_and_delivery_are_one_step),
        JOURNAL_TEST(s7_a_read_that_fails_changes_nothing),
        JOURNAL_TEST(a_torn_first_header_is_blank),
        JOURNAL_TEST(s7_a_sync_that_fails_leaves_all_or_nothing),
        JOURNAL_TEST(l2_restarts_in_a_row_never_use_up_the_ring),
        JOURNAL_TEST(l2_nor_do_they_where_a_sector_holds_few_records),
        JOURNAL_TEST(s5_a_truncated_storage_is_never_believed),
        JOURNAL_TEST(l1b_a_thousand_cuts_in_a_row_lose_nothing),
        JOURNAL_TEST(s7_a_program_that_fails_changes_nothing),
        JOURNAL_TEST(s10_what_one_boot_answered_all_later_ones_answer),
        JOURNAL_TEST(s5_a_flipped_bit_costs_one_record_at_most),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
