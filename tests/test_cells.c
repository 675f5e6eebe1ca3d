/* SPDX-License-Identifier: 0BSD */
/*
 * The journal of IDEM_CELLS: what storage it takes, what it makes of a damaged
 * one, what outlasts restarts, callbacks that fail.  What power cuts leave is
 * the matter of crash.c, built with IDEM_CELLS.
 */
#define IDEM_CELLS
#define IDEM_IMPLEMENTATION
#include "idem.h"

#include "fixture.h"
#include "flash.h"
#include "ready.h"

enum { SIZE = 3072, SPARE = 6 };

// A table, and its storage.
typedef struct device {
    fixture f;
    flash medium;
    idem_storage storage;
    size_t size;                // of the table's memory
    uint8_t read_map[SIZE];
    uint32_t bytes[FLASH_MEMORY(SIZE, 1) / 4];
} device;

/* The storage that is needed, and some cells more. */
static uint32_t size_of(const idem_config *c, uint32_t granule)
{
    uint32_t least = (uint32_t)IDEM_CELLS_SIZE(c->capacity, c->key_max,
                                               c->response_max, c->state_max,
                                               granule);
    uint32_t more = (uint32_t)IDEM_CELLS_SIZE(c->capacity + SPARE, c->key_max,
                                              c->response_max, c->state_max,
                                              granule);

    return more <= SIZE ? more : least;
}

/* Makes the medium blank, of that granule and size. */
static void make(device *d, uint32_t granule, uint32_t size)
{
    flash *m = &d->medium;

    memset(m, 0, sizeof *m);
    m->kind = FLASH_INPLACE;
    m->sector_size = size;
    m->sector_count = 1;
    m->prog_size = granule;
    m->erased = 0xFF;
    assert_true(size <= SIZE);
    assert_int_equal(flash_init(m, d->bytes), 0);
    d->storage.ctx = m;
    d->storage.read = flash_read;
    d->storage.prog = flash_prog;
    d->storage.erase = NULL;
    d->storage.sector_size = size;
    d->storage.sector_count = 1;
    d->storage.prog_size = (uint16_t)granule;
    d->storage.erased = 0xFF;
    d->f.config.storage = &d->storage;
}

static int device_setup(void **state)
{
    device *d = (device *)calloc(1, sizeof *d);
    idem_config *c;

    if (!d)
        return -1;
    c = &d->f.config;
    c->capacity = 4;
    c->key_max = 8;
    c->response_max = 6;
    c->state_max = 4;
    c->lease_ms = LEASE;
    c->retention_ms = RETENTION;
    memcpy(c->secret, "sixteen secrets.", sizeof c->secret);
    *state = d;
    make(d, 1, size_of(c, 1));
    return 0;
}

static int device_teardown(void **state)
{
    device *d = (device *)*state;

    free(d->f.memory);
    free(d);
    return 0;
}

#define CELLS(name)                                                            \
    cmocka_unit_test_setup_teardown(name, device_setup, device_teardown)

/* Opens the table on what the storage holds; fails unless that is `result`. */
static void reopen(device *d, int result)
{
    fixture *f = &d->f;

    flash_boot(&d->medium);
    free(f->memory);
    f->memory = NULL;
    assert_int_equal(idem_open(&f->table, &f->config, NULL, 0, 0),
                     IDEM_E_MEMORY);
    d->size = f->table.needed;
    f->memory = malloc(d->size);
    assert_non_null(f->memory);
    memset(f->memory, 0xA5, d->size);
    assert_int_equal(idem_open(&f->table, &f->config, f->memory, d->size, 0),
                     result);
    assert_int_equal(d->medium.violations, 0);
    if (result == IDEM_OK) {
        assert_int_equal(idem_check(&f->table), 0);
        assert_null(unready(&f->table));
    }
}

/* What becomes of a key that is asked for now. */
static int asked(device *d, const char *key)
{
    return begin(&d->f, "", key, "pour", 1);
}

/* A finished key, with its name as the response. */
static void done(device *d, const char *key)
{
    assert_int_equal(asked(d, key), IDEM_EXECUTE);
    assert_int_equal(complete(&d->f, &d->f.claim, key, 1), IDEM_OK);
}

static int never_erasing(void *ctx)
{
    (void)ctx;
    return 0;
}

static void a_storage_that_cannot_be_is_refused(void **state)
{
    device *d = (device *)*state;
    idem_config *c = &d->f.config;
    idem_table t;

#define REFUSED(change, back)                                                  \
    change;                                                                    \
    assert_int_equal(idem_open(&t, c, NULL, 0, 0), IDEM_E_ARG);                \
    back
    REFUSED(d->storage.erase = flash_erase, d->storage.erase = NULL);
    REFUSED(d->storage.sector_count = 2, d->storage.sector_count = 1);
    REFUSED(d->storage.prog_size = 3, d->storage.prog_size = 1);
    REFUSED(d->storage.prog_size = 0, d->storage.prog_size = 1);
    REFUSED(d->storage.prog_size = 512, d->storage.prog_size = 1);
    REFUSED(d->storage.prog_size = 64; d->storage.sector_size--,
            d->storage.prog_size = 1; d->storage.sector_size++);
    REFUSED(d->storage.prog = NULL, d->storage.prog = flash_prog);
    REFUSED(d->storage.read = NULL, d->storage.read = flash_read);
    REFUSED(d->storage.erasing = never_erasing, d->storage.erasing = NULL);
    REFUSED(c->volatile_claims = 1, c->volatile_claims = 0);
    REFUSED(c->durability = 2, c->durability = IDEM_BATCH);
    reopen(d, IDEM_OK);
}

static void the_size_that_would_do_does(void **state)
{
    static const uint32_t granules[] = { 1, 4, 16, 64 };
    device *d = (device *)*state;
    fixture *f = &d->f;
    uint32_t i, needed;

    for (i = 0; i < COUNT(granules); i++) {
        uint32_t granule = granules[i];
        make(d, granule, 64);
        reopen(d, IDEM_E_SPACE);
        needed = (uint32_t)f->table.needed;
        assert_int_equal(needed, IDEM_CELLS_SIZE(4, 8, 6, 4, granule));
        make(d, granule, needed - granule);
        reopen(d, IDEM_E_SPACE);
        make(d, granule, needed);
        reopen(d, IDEM_OK);
        assert_int_equal(f->table.journal->count, 6);
        assert_true(IDEM_CELLS_MEMORY_SIZE(4, 8, 6, 4, needed, granule) >=
                    d->size);
    }
}

static void a_kilobyte_holds_sixteen_keys(void **state)
{
    device *d = (device *)*state;
    idem_config *c = &d->f.config;
    uint32_t k;

    c->capacity = 16;
    c->response_max = 4;
    c->state_max = 0;
    make(d, 1, 1024);
    reopen(d, IDEM_OK);
    for (k = 0; k < 16; k++) {
        char key[9];
        sprintf(key, "key%05u", (unsigned)k);
        assert_int_equal(asked(d, key), IDEM_EXECUTE);
        assert_int_equal(complete(&d->f, &d->f.claim, key + 4, 1), IDEM_OK);
        reopen(d, IDEM_OK);
    }
    assert_int_equal(asked(d, "another"), IDEM_E_FULL);
    assert_int_equal(asked(d, "key00011"), IDEM_REPLAY);
    assert_string_equal(d->f.buffer, "0011");
    assert_int_equal(live(&d->f, 1), 16);
}

static void opening_writes_nothing_and_reads_each_byte_once(void **state)
{
    device *d = (device *)*state;
    int k;

    for (k = 0; k < 3; k++) {
        uint32_t progs = d->medium.progs;
        reopen(d, IDEM_OK);
        flash_boot(&d->medium);
        memset(d->read_map, 0, sizeof d->read_map);
        d->medium.read_map = d->read_map;
        assert_int_equal(idem_open(&d->f.table, &d->f.config, d->f.memory,
                                   d->size, 0), IDEM_OK);
        assert_true(flash_most_read(&d->medium) <= 1);
        d->medium.read_map = NULL;
        assert_int_equal(d->medium.progs, progs);
        done(d, nth((uint32_t)k));
    }
}

static void what_is_not_ours_is_not_touched(void **state)
{
    device *d = (device *)*state;
    idem_config *c = &d->f.config;
    uint32_t size = d->storage.sector_size;

    flash_noise(&d->medium, 0, size, 1);
    reopen(d, IDEM_E_FORMAT);
    make(d, 1, size);
    flash_noise(&d->medium, 0, 6, 1);       // somebody's few bytes
    reopen(d, IDEM_E_FORMAT);
    make(d, 1, size);
    flash_fill(&d->medium, size - 1, 1, 0);
    reopen(d, IDEM_E_FORMAT);
    make(d, 1, size);
    reopen(d, IDEM_OK);
    done(d, "a");
    c->secret[0] ^= 1;
    reopen(d, IDEM_E_FORMAT);
    c->secret[0] ^= 1;
    c->response_max++;
    reopen(d, IDEM_E_FORMAT);
    c->response_max--;
    reopen(d, IDEM_OK);
    assert_int_equal(asked(d, "a"), IDEM_REPLAY);
    assert_int_equal(idem_format(&d->f.table, c, d->f.memory, d->size, 0),
                     IDEM_OK);
    assert_int_equal(asked(d, "a"), IDEM_EXECUTE);
}

/* A byte of somebody's is seen wherever it is, also behind the last cell. */
static void what_is_behind_the_headers_is_looked_at(void **state)
{
    device *d = (device *)*state;
    uint32_t size = d->storage.sector_size + 5;

    for (uint32_t at = 16; at < size; at += 7) {
        make(d, 1, size);
        reopen(d, IDEM_OK);
        flash_fill(&d->medium, at, 1, 0);
        reopen(d, IDEM_E_FORMAT);
    }
}

/* Power cuts leave a granule torn in each of two headers, which may be anything
   then.  What more there is was somebody's. */
static void three_torn_granules_of_headers_are_somebodys(void **state)
{
    device *d = (device *)*state;
    uint32_t size = d->storage.sector_size;

    for (uint32_t count = 1; count < 5; count++)
        for (uint32_t at = 0; at + count <= 16; at++) {
            make(d, 1, size);
            flash_fill(&d->medium, at, count, 0);
            reopen(d, count > 2 ? IDEM_E_FORMAT : IDEM_OK);
        }
    // Where granules are so large, also a single bit behind a header.
    for (uint32_t at = 8; at < 64; at++) {
        make(d, 64, SIZE);
        flash_flip(&d->medium, at, at % 8);
        reopen(d, IDEM_E_FORMAT);
    }
}

/* Finishes and forgets keys at random, so that the cells are free in no order;
   in the end the first two are finished, and all else gone. */
static void shuffle(device *d, uint32_t seed)
{
    fixture *f = &d->f;

    for (unsigned n = 0; n < 40; n++) {
        const char *key = n < 36 ? nth(dice(&seed) % 4) : nth(n % 4);
        int last = n >= 36 && n % 4 < 2;
        (void)forget(f, "", key, 1);
        if (last || (n < 36 && dice(&seed) % 2))
            done(d, key);
    }
}

/* A claim that was torn reads as nothing, until another answer relies on that,
   and as whole later: wherever it is, it is not there any more then. */
static void s10_what_a_cut_has_left_is_not_seen_later(void **state)
{
    device *d = (device *)*state;
    fixture *f = &d->f;
    uint32_t size = d->storage.sector_size;

    for (uint32_t seed = 1; seed < 40; seed++) {
        uint8_t torn[16];
        uint32_t at;
        make(d, 1, size);
        reopen(d, IDEM_OK);
        shuffle(d, seed);
        assert_int_equal(asked(d, "new"), IDEM_EXECUTE);
        at = idemi_cells_at(&f->table,
                            *idemi_cells_of(&f->table, f->claim.slot) - 1u);
        flash_flip(&d->medium, at + 5, 3);
        memcpy(torn, d->medium.bytes + at, sizeof torn);
        reopen(d, IDEM_OK);
        assert_int_equal(find(f, "", "new", 1), IDEM_E_NOT_FOUND);
        assert_int_equal(forget(f, "", nth(0), 1), IDEM_OK);
        if (memcmp(torn, d->medium.bytes + at, sizeof torn) == 0)
            flash_flip(&d->medium, at + 5, 3);
        reopen(d, IDEM_OK);
        assert_int_equal(f->table.stats.lost, 0);
        assert_int_equal(find(f, "", "new", 1), IDEM_E_NOT_FOUND);
        assert_int_equal(asked(d, nth(1)), IDEM_REPLAY);
    }
}

/* The other way round: it reads well, and as nothing later.  Of the key whose
   slot it took it was said that it is gone. */
static void s10_a_key_whose_slot_was_taken_stays_gone(void **state)
{
    device *d = (device *)*state;
    fixture *f = &d->f;
    uint32_t at;

    f->config.capacity = 1;
    f->config.full = IDEM_EVICT_OLDEST;
    reopen(d, IDEM_OK);
    done(d, "a");
    assert_int_equal(asked(d, "b"), IDEM_EXECUTE);
    at = idemi_cells_at(&f->table, *idemi_cells_of(&f->table, 0) - 1u);
    reopen(d, IDEM_OK);
    assert_int_equal(forget(f, "", "a", 1), IDEM_E_NOT_FOUND);
    flash_flip(&d->medium, at + 5, 3);
    reopen(d, IDEM_OK);
    assert_int_equal(find(f, "", "a", 1), IDEM_E_NOT_FOUND);
}

/* Of the free cells only the one that the newest record replaced is kept, and
   that only if there is a record in it. */
static void what_the_newest_replaced_is_kept_if_it_reads(void **state)
{
    device *d = (device *)*state;
    idem_table *t = &d->f.table;
    uint32_t size = d->storage.sector_size, step, from;

    for (uint32_t n = 0; n < 48; n++) {
        uint8_t was[16];
        uint32_t at;
        int damaged = n % 2;
        make(d, 1, size);
        reopen(d, IDEM_OK);
        step = t->journal->cell_size;
        from = idemi_cells_at(t, 0);
        done(d, "b");
        for (uint32_t i = 0; i < n / 4; i++) {
            assert_int_equal(asked(d, "x"), IDEM_EXECUTE);
            assert_int_equal(release(&d->f, &d->f.claim, 1), IDEM_OK);
        }
        // In the first slot, or in another
        if (n & 2)
            assert_int_equal(forget(&d->f, "", "b", 1), IDEM_OK);
        done(d, "a");
        reopen(d, IDEM_OK);
        at = from + (t->journal->replaced - 1u) * step;
        if (damaged)
            flash_fill(&d->medium, at, 1, 0xC1);
        memcpy(was, d->medium.bytes + at, sizeof was);
        reopen(d, IDEM_OK);
        assert_int_equal(asked(d, "a"), IDEM_REPLAY);
        assert_int_equal(memcmp(was, d->medium.bytes + at, sizeof was) != 0,
                         damaged);
        // The last two are what the copies have replaced.
        for (uint32_t i = 0; i < t->journal->frees - 2; i++) {
            uint32_t cell = from + *idemi_cells_free(t, i) * step;
            assert_int_equal(d->medium.bytes[cell] == 0,
                             damaged || cell != at);
        }
    }
}

/* Restarts, settles for an answer about a key, and loses power at the n-th
   operation of that.  False if there are not so many. */
static int cut_settling(device *d, const char *key, uint32_t n,
                        uint32_t variant)
{
    int result;

    reopen(d, IDEM_OK);
    flash_cut(&d->medium, n, variant);
    result = asked(d, key);
    assert_int_equal(result, d->medium.off ? IDEM_E_STORAGE : IDEM_REPLAY);
    return d->medium.off;
}

/* A tentative copy of what does not read any more is all there is: it is not
   written over, so a cut in the next settling does not lose it. */
static void s2_what_is_there_but_once_is_not_written_over(void **state)
{
    device *d = (device *)*state;
    uint32_t size = d->storage.sector_size, tried = 0;
    uint8_t *was = (uint8_t *)malloc(size);

    assert_non_null(was);
    for (uint32_t first = 0; first < 20; first++) {
        uint32_t at;
        make(d, 1, size);
        reopen(d, IDEM_OK);
        done(d, "a");
        at = idemi_cells_at(&d->f.table, *idemi_cells_of(&d->f.table, 0) - 1u);
        if (!cut_settling(d, "a", first, 0))
            break;
        reopen(d, IDEM_OK);
        if (!d->f.table.journal->tentative)
            continue;
        flash_flip(&d->medium, at + 5, 3);
        memcpy(was, d->medium.bytes, size);
        for (uint32_t n = 0, variant = 0;; variant++) {
            flash_load(&d->medium, 0, was, size);
            if (!cut_settling(d, "a", n, variant))
                break;
            reopen(d, IDEM_OK);
            assert_int_equal(d->f.table.stats.lost, 0);
            assert_int_equal(asked(d, "a"), IDEM_REPLAY);
            tried++;
            if (variant + 1 < d->medium.variants)
                continue;
            n++;
            variant = UINT32_MAX;
        }
    }
    assert_true(tried > 100);
    free(was);
}

/* No record is there yet, and one header is gone: it is written first, for the
   other is all there is; in granules that a cut leaves as anything. */
static void a_header_that_reads_is_not_torn(void **state)
{
    device *d = (device *)*state;
    uint32_t size = size_of(&d->f.config, 64);

    for (uint32_t copy = 0; copy < 2; copy++)
        for (uint32_t variant = 0, count = 1; variant < count; variant++) {
            uint32_t progs, cells;
            make(d, 64, size);
            reopen(d, IDEM_OK);
            flash_cut(&d->medium, 2, FLASH_NOTHING);
            assert_int_equal(asked(d, "a"), IDEM_E_STORAGE);
            flash_fill(&d->medium, copy * 64, 64, 0xFF);
            reopen(d, IDEM_OK);
            flash_cut(&d->medium, 0, variant);
            assert_int_equal(asked(d, "a"), IDEM_E_STORAGE);
            count = d->medium.variants;
            flash_fill(&d->medium, copy * 64, 64, 0xFF);
            reopen(d, IDEM_OK);
            flash_cut(&d->medium, 2, FLASH_NOTHING);
            assert_int_equal(asked(d, "a"), IDEM_E_STORAGE);
            assert_memory_equal(d->medium.bytes, d->medium.bytes + 64, 64);
            assert_int_equal(d->medium.bytes[2 * 64], 0xFF);
            reopen(d, IDEM_OK);
            // There is no record yet that could be confirmed.
            progs = d->medium.progs;
            cells = d->f.table.journal->count;
            assert_int_equal(asked(d, "a"), IDEM_EXECUTE);
            assert_int_equal(d->medium.progs - progs, 2 + cells + 1);
            assert_int_equal(d->f.claim.token, 1);
        }
}

/* Where there is no other cell than it takes, one that cannot be wiped is in
   the way of all that would rely on it. */
static void s10_what_cannot_be_wiped_ends_no_doubt(void **state)
{
    device *d = (device *)*state;
    uint32_t size = (uint32_t)IDEM_CELLS_SIZE(4, 8, 6, 4, 1);

    for (uint32_t n = 0; n < 4; n++) {
        make(d, 1, size);
        reopen(d, IDEM_OK);
        done(d, "a");
        reopen(d, IDEM_OK);
        flash_fail(&d->medium, FLASH_PROG, n, FLASH_UNDONE, 0);
        assert_int_equal(asked(d, "a"), IDEM_E_STORAGE);
        assert_int_equal(asked(d, "a"), IDEM_REPLAY);
        assert_int_equal(d->f.table.stats.retired, 0);
    }
}

/* What an answer relies on is written once more, and nothing else. */
static void s10_an_answer_writes_if_it_relies_on_the_newest(void **state)
{
    device *d = (device *)*state;
    fixture *f = &d->f;
    uint32_t progs;

    reopen(d, IDEM_OK);
    done(d, "a");
    done(d, "b");
    reopen(d, IDEM_OK);
    f->request.age_ms = RETENTION;
    for (unsigned n = 0; n < 2; n++) {
        // That there is no such key it may tell, too.
        progs = d->medium.progs;
        assert_int_equal(asked(d, "a"), IDEM_REPLAY);
        assert_int_equal(d->medium.progs, progs);
        assert_int_equal(asked(d, n ? "x" : "b"),
                         n ? IDEM_TOO_OLD : IDEM_REPLAY);
        assert_true(d->medium.progs > progs);
        reopen(d, IDEM_OK);
    }
    f->request.age_ms = 0;
}

/* Wherever the two are; but if that does not read, nothing. */
static void a_tentative_copy_names_what_it_is_a_copy_of(void **state)
{
    device *d = (device *)*state;
    idem_table *t = &d->f.table;
    uint32_t size = d->storage.sector_size, tentative = 0;

    for (uint32_t n = 0; n < 26; n++)
        for (uint32_t cut = 9; cut < 13; cut++) {
            unsigned was;
            make(d, 1, size);
            reopen(d, IDEM_OK);
            for (uint32_t i = 0; i < n / 2; i++) {
                assert_int_equal(asked(d, "x"), IDEM_EXECUTE);
                assert_int_equal(release(&d->f, &d->f.claim, 1), IDEM_OK);
            }
            if (n % 2)
                done(d, "b");
            done(d, "a");
            was = *idemi_cells_of(t, (unsigned)t->journal->newest);
            if (!cut_settling(d, "a", cut, FLASH_NOTHING))
                continue;
            reopen(d, IDEM_OK);
            if (!t->journal->tentative)
                continue;
            tentative++;
            assert_int_equal(t->journal->copied, was);
            flash_flip(&d->medium, idemi_cells_at(t, was - 1) + 5, 3);
            reopen(d, IDEM_OK);
            assert_int_equal(t->journal->copied, 0);
        }
    assert_true(tentative > 13);
}

static void what_was_formatted_is_a_journal_as_any(void **state)
{
    device *d = (device *)*state;
    fixture *f = &d->f;

    make(d, 4, size_of(&f->config, 4));
    reopen(d, IDEM_OK);
    done(d, "a");
    for (unsigned round = 0; round < 3; round++) {
        assert_int_equal(idem_format(&f->table, &f->config, f->memory, d->size,
                                     0), IDEM_OK);
        assert_int_equal(idem_check(&f->table), 0);
        assert_null(unready(&f->table));
        assert_int_equal(find(f, "", "a", 0), IDEM_E_NOT_FOUND);
        done(d, "b");
        reopen(d, IDEM_OK);
        assert_int_equal(asked(d, "b"), IDEM_REPLAY);
        assert_int_equal(asked(d, "a"), IDEM_EXECUTE);
    }
}

static void everything_outlasts_restarts(void **state)
{
    device *d = (device *)*state;
    fixture *f = &d->f;
    uint64_t token;
    char s[4];
    size_t len = sizeof s;

    reopen(d, IDEM_OK);
    assert_int_equal(asked(d, "a"), IDEM_EXECUTE);
    f->outcome.confirm = 1;
    f->outcome.code = -7;
    f->outcome.failed = 1;
    f->outcome.state = "st";
    f->outcome.state_len = 2;
    assert_int_equal(complete(f, &f->claim, "poured", 1), IDEM_OK);
    memset(&f->outcome, 0, sizeof f->outcome);
    assert_int_equal(asked(d, "b"), IDEM_EXECUTE);
    reopen(d, IDEM_OK);
    assert_int_equal(asked(d, "b"), IDEM_RECOVER);
    assert_int_equal(f->claim.attempt, 2);
    token = f->claim.token;
    reopen(d, IDEM_OK);
    assert_int_equal(asked(d, "b"), IDEM_RECOVER);
    assert_int_equal(f->claim.attempt, 3);
    assert_true(f->claim.token > token);
    reopen(d, IDEM_OK);
    assert_int_equal(asked(d, "b"), IDEM_EXHAUSTED);
    assert_int_equal(forget(f, "", "b", 1), IDEM_OK);
    reopen(d, IDEM_OK);
    assert_int_equal(asked(d, "a"), IDEM_REPLAY);
    assert_string_equal(f->buffer, "poured");
    assert_int_equal(f->reply.code, -7);
    assert_int_equal(f->reply.status, IDEM_FAILED);
    assert_int_equal(idem_state(&f->table, s, &len), IDEM_OK);
    assert_int_equal(len, 2);
    assert_memory_equal(s, "st", 2);
    memset(&f->entry, 0, sizeof f->entry);
    assert_int_equal(idem_pending(&f->table, &f->entry, 1), IDEM_OK);
    assert_int_equal(idem_delivered(&f->table, &f->entry.claim), IDEM_OK);
    assert_int_equal(forget(f, "", "a", 1), IDEM_OK);
    reopen(d, IDEM_OK);
    assert_int_equal(f->table.pending, 0);
    assert_int_equal(asked(d, "a"), IDEM_EXECUTE);
    assert_int_equal(idem_state(&f->table, s, &len), IDEM_OK);
    assert_memory_equal(s, "st", 2);        // outlives its key
}

/* What is written once more says all that was said before, of any scope. */
static void copies_say_the_same(void **state)
{
    device *d = (device *)*state;
    fixture *f = &d->f;

    reopen(d, IDEM_OK);
    assert_int_equal(begin(f, "scp", "key", "pour", 1), IDEM_EXECUTE);
    f->outcome.confirm = 1;
    f->outcome.code = -7;
    f->outcome.state = "st";
    f->outcome.state_len = 2;
    assert_int_equal(complete(f, &f->claim, "poured", 1), IDEM_OK);
    for (int boot = 0; boot < 3; boot++) {
        char s[4];
        size_t len = sizeof s;
        reopen(d, IDEM_OK);
        assert_int_equal(idem_state(&f->table, s, &len), IDEM_OK);
        assert_int_equal(len, 2);
        assert_memory_equal(s, "st", 2);
        assert_int_equal(f->table.pending, boot < 2);
        assert_int_equal(begin(f, "sc", "pkey", "pour", 1), IDEM_EXECUTE);
        assert_int_equal(release(f, &f->claim, 1), IDEM_OK);
        assert_int_equal(begin(f, "scp", "key", "stir", 1), IDEM_MISMATCH);
        assert_int_equal(begin(f, "scp", "key", "pour", 1), IDEM_REPLAY);
        assert_string_equal(f->buffer, "poured");
        assert_int_equal(f->reply.code, -7);
        assert_int_equal(find(f, "scp", "key", 1), IDEM_OK);
        assert_int_equal(f->entry.scope_len, 3);
        assert_string_equal(f->id, "scpkey");
        if (boot)
            assert_int_equal(idem_delivered(&f->table, &f->entry.claim),
                             IDEM_OK);
    }
}

static void a_retention_goes_on_over_restarts(void **state)
{
    device *d = (device *)*state;
    fixture *f = &d->f;
    int k;

    reopen(d, IDEM_OK);
    done(d, "a");
    assert_int_equal(asked(d, "cut"), IDEM_EXECUTE);
    for (k = 0; k < 9; k++) {
        reopen(d, IDEM_OK);
        assert_int_equal(elapse(f, RETENTION / 10), IDEM_OK);
        assert_int_equal(asked(d, "a"), IDEM_REPLAY);
        assert_int_equal(asked(d, "tick"), IDEM_EXECUTE);
        assert_int_equal(release(f, &f->claim, 1), IDEM_OK);
        assert_int_equal(find(f, "", "cut", 1), IDEM_OK);
    }
    reopen(d, IDEM_OK);
    assert_int_equal(elapse(f, RETENTION / 10 + 2), IDEM_OK);
    assert_int_equal(find(f, "", "a", 1), IDEM_E_NOT_FOUND);
    assert_int_equal(find(f, "", "cut", 1), IDEM_E_NOT_FOUND);
    done(d, "b");
    reopen(d, IDEM_OK);
    assert_int_equal(asked(d, "a"), IDEM_EXECUTE);
    assert_int_equal(asked(d, "cut"), IDEM_EXECUTE);
}

/* Also of keys that stay for long */
static void a_full_table_tells_when_there_is_room_after_a_restart(void **state)
{
    device *d = (device *)*state;
    const uint32_t days20 = UINT32_C(20) * 24 * 60 * 60 * 1000;

    reopen(d, IDEM_OK);
    d->f.request.retention_ms = days20;
    for (uint32_t k = 0; k < 4; k++)
        done(d, nth(k));
    d->f.request.retention_ms = 0;
    reopen(d, IDEM_OK);
    assert_int_equal(begin(&d->f, "", "e", "pour", 0), IDEM_E_FULL);
    assert_int_equal(d->f.reply.retry_after_ms, days20);
}

/* To the millisecond, by the time of the newest record. */
static void what_is_over_at_an_opening_takes_no_slot(void **state)
{
    device *d = (device *)*state;

    for (uint32_t early = 0; early < 2; early++) {
        make(d, 1, d->storage.sector_size);
        reopen(d, IDEM_OK);
        done(d, "a");
        assert_int_equal(begin(&d->f, "", "b", "pour", RETENTION),
                         IDEM_EXECUTE);
        assert_int_equal(complete(&d->f, &d->f.claim, "b",
                                  1 + RETENTION - early), IDEM_OK);
        reopen(d, IDEM_OK);
        assert_int_equal(d->f.table.used, 1 + early);
    }
}

/* At logical time 0 */
static void what_is_done_at_the_very_first_is_remembered(void **state)
{
    device *d = (device *)*state;
    fixture *f = &d->f;

    reopen(d, IDEM_OK);
    assert_int_equal(begin(f, "", "a", "pour", 0), IDEM_EXECUTE);
    assert_int_equal(complete(f, &f->claim, "a", 0), IDEM_OK);
    assert_int_equal(f->table.clock, 0);
    reopen(d, IDEM_OK);
    assert_int_equal(begin(f, "", "a", "pour", 0), IDEM_REPLAY);
}

static void time_has_forty_bits(void **state)
{
    device *d = (device *)*state;
    fixture *f = &d->f;

    reopen(d, IDEM_OK);
    assert_int_equal(elapse(f, UINT32_MAX - RETENTION / 2), IDEM_OK);
    done(d, "a");
    assert_int_equal(elapse(f, RETENTION - 2), IDEM_OK);
    assert_int_equal(f->table.journal->clock_high, 1);
    done(d, "b");
    reopen(d, IDEM_OK);
    assert_int_equal(f->table.journal->clock_high, 1);
    assert_int_equal(asked(d, "a"), IDEM_REPLAY);
    assert_int_equal(asked(d, "b"), IDEM_REPLAY);
    // After 49.7 days the low bits are as they were.
    assert_int_equal(elapse(f, UINT32_MAX), IDEM_OK);
    done(d, "c");
    reopen(d, IDEM_OK);
    assert_int_equal(live(f, 0), 1);
}

/* Its retention begins with the restart, and with no later one; whichever of
   the programs of that fails. */
static void a_claim_cut_short_is_told_of_once(void **state)
{
    // Of twelve cells three are current, and one is what the newest replaced.
    enum { WIPES = 8, TELL = WIPES + 2 };
    // What a call takes if the one before failed in a copy, a claim, its own:
    // first the free cells again, but what a copy is of, and that which failed
    static const uint8_t again[] = {
        8 + 1 + 2 + 2 + 1, 8 + 1 + 1 + 2 + 1, 9 + 1 + 2 + 1, 9 + 1 + 1 + 1,
        1 + 1
    };
    device *d = (device *)*state;
    fixture *f = &d->f;

    for (uint32_t n = 0; n < TELL + 4; n++) {
        uint32_t progs;
        make(d, 1, d->storage.sector_size);
        reopen(d, IDEM_OK);
        assert_int_equal(asked(d, "a"), IDEM_EXECUTE);
        assert_int_equal(asked(d, "b"), IDEM_EXECUTE);
        assert_int_equal(elapse(f, RETENTION - 1), IDEM_OK);
        done(d, "c");
        reopen(d, IDEM_OK);
        flash_fail(&d->medium, FLASH_PROG, n, FLASH_UNDONE, n == TELL + 1);
        if (asked(d, "d") < 0) {
            // What was copied is in doubt no more.
            if (n == TELL + 1)
                assert_int_equal(asked(d, "c"), IDEM_REPLAY);
            flash_fail(&d->medium, FLASH_PROG, 0, 0, 0);
            progs = d->medium.progs;
            assert_int_equal(asked(d, "d"), IDEM_EXECUTE);
            assert_int_equal(d->medium.progs - progs, again[n - WIPES]);
        }
        flash_fail(&d->medium, FLASH_PROG, 0, 0, 0);
        assert_int_equal(f->table.stats.retired, n <= TELL + 2);
        assert_int_equal(elapse(f, RETENTION - 2), IDEM_OK);
        assert_int_equal(release(f, &f->claim, 1), IDEM_OK);
        assert_int_equal(find(f, "", "a", 1), IDEM_OK);
        for (unsigned boot = 0; boot < 2; boot++) {
            reopen(d, IDEM_OK);
            assert_int_equal(find(f, "", "a", 0), IDEM_OK);
            assert_int_equal(find(f, "", "b", 0), IDEM_OK);
            assert_int_equal(elapse(f, 2), IDEM_OK);
            assert_int_equal(find(f, "", "a", 0), IDEM_E_NOT_FOUND);
            assert_int_equal(find(f, "", "b", 0), IDEM_E_NOT_FOUND);
        }
    }
}

/* However far the clock is */
static void the_sweep_goes_on_after_a_restart(void **state)
{
    device *d = (device *)*state;
    fixture *f = &d->f;

    reopen(d, IDEM_OK);
    assert_int_equal(elapse(f, 3 * IDEMI_SWEEP_MS), IDEM_OK);
    done(d, "a");
    reopen(d, IDEM_OK);
    assert_int_equal(elapse(f, IDEMI_SWEEP_MS), IDEM_OK);
    assert_int_equal(f->table.used, 0);
}

/* A full table always completes, however often it is opened between. */
static void completing_never_fails_for_space(void **state)
{
    device *d = (device *)*state;
    fixture *f = &d->f;
    uint32_t round, k;

    make(d, 1, (uint32_t)IDEM_CELLS_SIZE(4, 8, 6, 4, 1));
    for (round = 0; round < 20; round++) {
        idem_claim claims[4];
        reopen(d, IDEM_OK);
        for (k = 0; k < 4; k++) {
            assert_int_equal(asked(d, nth(k)), IDEM_EXECUTE);
            claims[k] = f->claim;
        }
        assert_int_equal(asked(d, "e"), IDEM_E_FULL);
        for (k = 0; k < 4; k++)
            assert_int_equal(complete(f, &claims[(k + round) % 4], "poured",
                                      1), IDEM_OK);
        reopen(d, IDEM_OK);
        for (k = 0; k < 4; k++)
            assert_int_equal(forget(f, "", nth(k), 1), IDEM_OK);
    }
}

/* Keys a (its response), b (owed), c (in progress), d (finished last); e was
   forgotten, f has never been. */
static void make_image(device *d)
{
    fixture *f = &d->f;

    reopen(d, IDEM_OK);
    done(d, "a");
    assert_int_equal(asked(d, "b"), IDEM_EXECUTE);
    f->outcome.confirm = 1;
    assert_int_equal(complete(f, &f->claim, "b", 1), IDEM_OK);
    f->outcome.confirm = 0;
    assert_int_equal(asked(d, "c"), IDEM_EXECUTE);
    done(d, "e");
    assert_int_equal(forget(f, "", "e", 1), IDEM_OK);
    done(d, "d");
}

/* How many of the keys of the image are not as they were; none is ever as it
   must not be. */
static unsigned wrong(device *d)
{
    static const int was[] = { IDEM_REPLAY, IDEM_REPLAY, IDEM_RECOVER,
                               IDEM_REPLAY };
    unsigned count = 0;
    uint32_t k;

    for (k = 0; k < 4; k++) {
        int result = asked(d, nth(k));
        if (result == was[k]) {
            if (result == IDEM_REPLAY)
                assert_string_equal(d->f.buffer, nth(k));
            continue;
        }
        count++;
        // The newest looks torn, and its claim was there before.
        assert_int_equal(result, IDEM_RECOVER);
        assert_true(d->f.table.stats.lost == 1 || k == 3);
    }
    return count;
}

static void a_flipped_bit_costs_a_record_at_most(void **state)
{
    device *d = (device *)*state;
    static uint8_t image[SIZE];
    uint32_t size, at, headers, losses = 0;

    make_image(d);
    size = d->medium.size;
    headers = 2 * IDEMI_CELLS_HEADER;
    memcpy(image, d->medium.bytes, size);
    for (at = 0; at < size; at++) {
        unsigned bit = at % 8;
        unsigned lost;
        flash_load(&d->medium, 0, image, size);
        flash_flip(&d->medium, at, bit);
        reopen(d, IDEM_OK);
        lost = d->f.table.stats.lost;
        assert_true(lost <= 1);
        assert_true(wrong(d) <= 1);
        assert_true(at >= headers || !lost);
        losses += lost;
        if (!lost) {
            assert_int_equal(asked(d, "f"), IDEM_E_FULL);
            continue;
        }
        // What is lost may be any key that is unknown, until it is not.
        assert_int_equal(elapse(&d->f, 2 * RETENTION), IDEM_OK);
        assert_int_equal(asked(d, "f"), IDEM_EXECUTE);
    }
    assert_true(losses > 50);               // most of three records
}

static void doubt_goes_on_over_restarts_and_ends(void **state)
{
    device *d = (device *)*state;
    fixture *f = &d->f;
    uint32_t at;
    int k;

    make_image(d);
    at = idemi_cells_at(&f->table, *idemi_cells_of(&f->table, 0) - 1u);
    flash_flip(&d->medium, at + 20, 3);
    reopen(d, IDEM_OK);
    assert_int_equal(f->table.stats.lost, 1);
    assert_int_equal(forget(f, "", "d", 1), IDEM_OK);
    for (k = 0; k < 9; k++) {
        assert_int_equal(elapse(f, RETENTION / 10), IDEM_OK);
        assert_int_equal(asked(d, "x"), IDEM_RECOVER);
        assert_int_equal(f->claim.attempt, 1);
        assert_int_equal(release(f, &f->claim, 1), IDEM_OK);
        reopen(d, IDEM_OK);
        assert_int_equal(f->table.stats.lost, 0);       // counted once
    }
    assert_int_equal(elapse(f, RETENTION / 10 + RETENTION / 50), IDEM_OK);
    assert_int_equal(asked(d, "x"), IDEM_EXECUTE);
}

/* To the last millisecond of it, whenever a restart comes. */
static void s4_doubt_lasts_to_its_end_over_restarts(void **state)
{
    device *d = (device *)*state;
    fixture *f = &d->f;

    for (uint32_t left = 1; left < 40; left++) {
        uint32_t at;
        make(d, 1, d->storage.sector_size);
        make_image(d);
        at = idemi_cells_at(&f->table, *idemi_cells_of(&f->table, 0) - 1u);
        flash_flip(&d->medium, at + 20, 3);
        reopen(d, IDEM_OK);
        assert_int_equal(f->table.stats.lost, 1);
        assert_int_equal(elapse(f, RETENTION - left), IDEM_OK);
        assert_int_equal(forget(f, "", "d", 0), IDEM_OK);
        reopen(d, IDEM_OK);
        assert_int_equal(begin(f, "", "x", "pour", left - 1), IDEM_RECOVER);
        assert_int_equal(release(f, &f->claim, left - 1), IDEM_OK);
    }
}

static void the_unit_of_doubt_is_the_least_that_will_do(void **state)
{
    device *d = (device *)*state;
    idem_table *t = &d->f.table;

    reopen(d, IDEM_OK);
    for (uint32_t ms = 1; ms < 3000; ms++) {
        uint32_t unit = 1;
        while (128 * unit <= ms)
            unit *= 2;
        t->journal->retentions[0] = ms;
        assert_int_equal(idemi_cells_unit(t), unit - 1);
    }
}

/* The key was given back in one slot and came to be in another; then what says
   so is damaged. */
static void a_key_that_comes_back_twice_is_the_newer(void **state)
{
    device *d = (device *)*state;
    fixture *f = &d->f;
    idem_claim other;
    uint32_t at;

    reopen(d, IDEM_OK);
    done(d, "a");                           // slot 0
    assert_int_equal(asked(d, "b"), IDEM_EXECUTE);
    other = f->claim;                       // slot 1
    assert_int_equal(forget(f, "", "a", 1), IDEM_OK);
    at = idemi_cells_at(&f->table, *idemi_cells_of(&f->table, 0) - 1u);
    assert_int_equal(asked(d, "c"), IDEM_EXECUTE);
    assert_int_equal(f->claim.slot, 0);
    at = idemi_cells_at(&f->table, *idemi_cells_of(&f->table, 0) - 1u);
    assert_int_equal(release(f, &other, 1), IDEM_OK);
    assert_int_equal(begin(f, "", "a", "stir", 1), IDEM_EXECUTE);
    assert_int_equal(f->claim.slot, 1);
    assert_int_equal(complete(f, &f->claim, "new", 1), IDEM_OK);
    // Slot 0 goes back to where "a" had been forgotten, and then further.
    flash_flip(&d->medium, at + 5, 0);
    reopen(d, IDEM_OK);
    at = idemi_cells_at(&f->table, *idemi_cells_of(&f->table, 0) - 1u);
    flash_flip(&d->medium, at + 5, 0);
    reopen(d, IDEM_OK);
    assert_true(idemi_slot_own(idemi_slot_at(&f->table, 0))->key_len == 1);
    assert_int_equal(live(f, 1), 1);
    assert_int_equal(begin(f, "", "a", "stir", 1), IDEM_REPLAY);
    assert_string_equal(f->buffer, "new");
    assert_int_equal(f->table.stats.lost, 1);
}

/* The key is in progress in slot 0; in slot 1 it had been finished before, and
   what ended it there is damaged. */
static void an_older_twin_in_a_later_slot_is_dropped(void **state)
{
    device *d = (device *)*state;
    fixture *f = &d->f;
    idem_claim first;
    uint32_t at;

    reopen(d, IDEM_OK);
    assert_int_equal(asked(d, "b"), IDEM_EXECUTE);
    first = f->claim;                       // slot 0
    done(d, "a");                           // slot 1
    done(d, "c");
    assert_int_equal(forget(f, "", "a", 1), IDEM_OK);
    at = idemi_cells_at(&f->table, *idemi_cells_of(&f->table, 1) - 1u);
    assert_int_equal(release(f, &first, 1), IDEM_OK);
    assert_int_equal(begin(f, "", "a", "stir", 1), IDEM_EXECUTE);
    assert_int_equal(f->claim.slot, 0);
    flash_flip(&d->medium, at + 5, 0);
    reopen(d, IDEM_OK);
    assert_int_equal(f->table.stats.lost, 1);
    assert_int_equal(live(f, 1), 2);
    assert_int_equal(begin(f, "", "a", "stir", 1), IDEM_RECOVER);
}

/* The other way round: the older twin is the first in the order by then. */
static void the_order_goes_on_without_an_older_twin(void **state)
{
    device *d = (device *)*state;
    fixture *f = &d->f;
    uint32_t at;

    reopen(d, IDEM_OK);
    done(d, "a");                           // slot 0
    done(d, "b");                           // slot 1
    done(d, "c");
    assert_int_equal(forget(f, "", "a", 1), IDEM_OK);
    at = idemi_cells_at(&f->table, *idemi_cells_of(&f->table, 0) - 1u);
    assert_int_equal(forget(f, "", "b", 1), IDEM_OK);
    assert_int_equal(begin(f, "", "a", "stir", 1), IDEM_EXECUTE);
    assert_int_equal(f->claim.slot, 1);
    flash_flip(&d->medium, at + 5, 0);
    reopen(d, IDEM_OK);
    assert_int_equal(f->table.stats.lost, 1);
    assert_int_equal(live(f, 1), 2);
    assert_int_equal(asked(d, "c"), IDEM_REPLAY);
    assert_int_equal(begin(f, "", "a", "stir", 1), IDEM_RECOVER);
}

static void a_smaller_capacity_loses_what_is_beyond_it(void **state)
{
    device *d = (device *)*state;
    fixture *f = &d->f;
    uint32_t k;

    reopen(d, IDEM_OK);
    for (k = 0; k < 4; k++)
        done(d, nth(k));
    f->config.capacity = 2;
    reopen(d, IDEM_OK);
    assert_int_equal(f->table.stats.lost, 1);
    assert_int_equal(live(f, 1), 2);
    assert_int_equal(asked(d, "a"), IDEM_REPLAY);
}

/* What a slot beyond it had cannot be told from what it has. */
static void a_smaller_capacity_keeps_what_is_within_it(void **state)
{
    device *d = (device *)*state;
    fixture *f = &d->f;
    idem_claim third;

    reopen(d, IDEM_OK);
    done(d, "a");
    done(d, "b");
    assert_int_equal(asked(d, "c"), IDEM_EXECUTE);
    third = f->claim;
    assert_int_equal(release(f, &third, 1), IDEM_OK);
    f->config.capacity = 2;
    reopen(d, IDEM_OK);
    assert_int_equal(f->table.stats.lost, 1);
    assert_int_equal(asked(d, "a"), IDEM_REPLAY);
    assert_int_equal(asked(d, "b"), IDEM_REPLAY);
}

/* Nothing was in the slots beyond it when the capacity became smaller. */
static void a_smaller_capacity_loses_no_key_that_is_not_there(void **state)
{
    device *d = (device *)*state;
    fixture *f = &d->f;

    reopen(d, IDEM_OK);
    done(d, "a");
    done(d, "b");
    assert_int_equal(asked(d, "c"), IDEM_EXECUTE);
    assert_int_equal(release(f, &f->claim, 1), IDEM_OK);
    // Each settling wipes what was not current in the boot before.
    for (unsigned boot = 0; boot < 2; boot++) {
        reopen(d, IDEM_OK);
        f->request.age_ms = RETENTION;
        assert_int_equal(asked(d, "c"), IDEM_TOO_OLD);
        f->request.age_ms = 0;
    }
    f->config.capacity = 2;
    reopen(d, IDEM_OK);
    assert_int_equal(f->table.stats.lost, 0);
    assert_int_equal(asked(d, "a"), IDEM_REPLAY);
    assert_int_equal(asked(d, "b"), IDEM_REPLAY);
}

/* Cells of the same size may be configured with another share for the key. */
static void what_is_over_smaller_limits_is_lost(void **state)
{
    device *d = (device *)*state;
    idem_config *c = &d->f.config;

    for (uint32_t other = 0; other < 2; other++) {
        make(d, 1, d->storage.sector_size);
        reopen(d, IDEM_OK);
        assert_int_equal(asked(d, "eightlet"), IDEM_EXECUTE);
        assert_int_equal(complete(&d->f, &d->f.claim, "sixlet", 1), IDEM_OK);
        done(d, "a");
        c->key_max = other ? 9 : 7;
        c->response_max = other ? 5 : 7;
        reopen(d, IDEM_OK);
        assert_int_equal(d->f.table.stats.lost, 1);
        assert_int_equal(live(&d->f, 1), 1);
        assert_int_equal(asked(d, "a"), IDEM_REPLAY);
        c->key_max = 8;
        c->response_max = 6;
    }
}

static void a_truncated_storage_never_answers_wrongly(void **state)
{
    device *d = (device *)*state;
    static uint8_t image[SIZE];
    uint32_t size, at;

    make_image(d);
    size = d->medium.size;
    memcpy(image, d->medium.bytes, size);
    for (at = 0; at < size; at++) {
        uint32_t k;
        flash_load(&d->medium, 0, image, size);
        flash_truncate(&d->medium, at);
        reopen(d, IDEM_OK);
        for (k = 0; k < 4; k++)
            if (asked(d, nth(k)) == IDEM_REPLAY)
                assert_string_equal(d->f.buffer, nth(k));
    }
}

static void a_record_validates_in_its_own_cell_only(void **state)
{
    device *d = (device *)*state;
    idem_table *t = &d->f.table;
    uint32_t from, to;
    idemi_cell c;

    make_image(d);
    from = idemi_cells_at(t, *idemi_cells_of(t, 0) - 1u);
    to = idemi_cells_at(t, t->journal->count - 1u);
    assert_true(idemi_cells_decode(t, *idemi_cells_of(t, 0) - 1u, &c));
    flash_load(&d->medium, to, d->medium.bytes + from,
               t->journal->cell_size);
    assert_false(idemi_cells_decode(t, t->journal->count - 1u, &c));
    t->journal->check ^= 1;
    assert_false(idemi_cells_decode(t, *idemi_cells_of(t, 0) - 1u, &c));
}

/* What becomes of a call whose n-th program fails, and of the next. */
static void a_call_that_fails_can_be_repeated(void **state)
{
    static const int how[] = { FLASH_UNDONE, FLASH_DONE, FLASH_HALF };
    device *d = (device *)*state;
    fixture *f = &d->f;
    uint32_t n, h;
    int result;

    for (n = 0; n < 16; n++)
        for (h = 0; h < COUNT(how); h++) {
            make(d, 1, size_of(&f->config, 1));
            reopen(d, IDEM_OK);
            done(d, "a");
            reopen(d, IDEM_OK);
            flash_fail(&d->medium, FLASH_PROG, n, how[h], 0);
            result = asked(d, "b");
            if (result == IDEM_E_STORAGE)
                result = asked(d, "b");
            assert_int_equal(result, IDEM_EXECUTE);
            result = complete(f, &f->claim, "b", 1);
            if (result == IDEM_E_STORAGE)
                result = complete(f, &f->claim, "b", 1);
            assert_int_equal(result, IDEM_OK);
            flash_fail(&d->medium, FLASH_PROG, 0, 0, 0);
            reopen(d, IDEM_OK);
            assert_int_equal(f->table.stats.lost, 0);
            assert_int_equal(asked(d, "a"), IDEM_REPLAY);
            assert_int_equal(asked(d, "b"), IDEM_REPLAY);
            assert_string_equal(f->buffer, "b");
        }
}

/* Forged: its CRC is right, but there is no such cell. */
static void a_cell_that_is_not_there_was_not_replaced(void **state)
{
    device *d = (device *)*state;
    idem_table *t = &d->f.table;
    idem_journal *j;
    idemi_cell c;
    unsigned cell;

    reopen(d, IDEM_OK);
    done(d, "a");
    j = t->journal;
    cell = *idemi_cells_free(t, 0);
    idemi_cells_describe(t, 0, &c);
    c.field[IDEMI_CELL_FLAGS] |= IDEMI_CELL_MARK;
    c.field[IDEMI_CELL_SEQUENCE] = j->sequence + 1;
    c.field[IDEMI_CELL_REPLACED] = 255;
    c.field[IDEMI_CELL_CLOCK] = t->clock;
    c.field[IDEMI_CELL_CENSUS] = (uint16_t)(
        j->census - idemi_cells_weight(0, *idemi_cells_of(t, 0)) +
        idemi_cells_weight(0, cell + 1));
    flash_load(&d->medium, idemi_cells_at(t, cell), t->in,
               idemi_cells_encode(t, cell, &c));
    reopen(d, IDEM_OK);
    assert_int_equal(*idemi_cells_of(t, 0), cell + 1);
    assert_int_equal(t->journal->replaced, 0);
    assert_int_equal(t->stats.lost, 0);
    assert_int_equal(asked(d, "a"), IDEM_REPLAY);
    reopen(d, IDEM_OK);
    assert_int_equal(asked(d, "a"), IDEM_REPLAY);
}

static uint32_t dead;                   // offset of a byte that never changes

static int prog_around_the_dead(void *ctx, uint32_t at, const void *src,
                                uint32_t len)
{
    return dead - at < len ? -1 : flash_prog(ctx, at, src, len);
}

/* The same call, until it does not fail; a few times at most. */
static int persevere(device *d, const char *key, const char *response)
{
    int result = IDEM_E_STORAGE;

    for (unsigned times = 0; result == IDEM_E_STORAGE && times < 4; times++)
        result = response ? complete(&d->f, &d->f.claim, response, 1)
                          : asked(d, key);
    return result;
}

/* Where there are more cells than it takes, whichever of them is dead. */
static void l2_a_dead_cell_is_gone_round(void **state)
{
    device *d = (device *)*state;
    uint32_t size = size_of(&d->f.config, 1), from, step;

    reopen(d, IDEM_OK);
    from = idemi_cells_at(&d->f.table, 0);
    step = d->f.table.journal->cell_size;
    d->f.config.full = IDEM_EVICT_OLDEST;
    for (uint32_t cell = from; cell + step <= size; cell += step)
        for (unsigned how = 0; how < 4; how++) {
            // Its first byte, which is all that is wiped, or another
            uint32_t byte = cell + how / 2 * 20;
            make(d, 1, size);
            d->storage.prog = prog_around_the_dead;
            dead = how % 2 ? UINT32_MAX : byte;
            for (unsigned n = 0; n < 40; n++) {
                char key[] = { (char)('a' + n % 6), (char)('a' + n), 0 };
                if (n % 7 == 0)
                    reopen(d, IDEM_OK);
                assert_int_equal(d->f.table.stats.lost, 0);
                assert_int_equal(persevere(d, key, NULL), IDEM_EXECUTE);
                assert_int_equal(persevere(d, key, key), IDEM_OK);
                assert_true(d->f.table.stats.retired <= 1);
                if (n == 5)
                    dead = byte;        // a record may be in it
            }
        }
}

/* Only as long as there are more than it takes */
static void no_more_cells_are_given_up_than_there_may_be(void **state)
{
    device *d = (device *)*state;
    fixture *f = &d->f;

    for (unsigned settled = 0; settled < 2; settled++) {
        make(d, 1, size_of(&f->config, 1));
        reopen(d, IDEM_OK);
        done(d, "a");
        if (!settled)
            reopen(d, IDEM_OK);
        flash_fail(&d->medium, FLASH_PROG, 0, FLASH_UNDONE, 1);
        for (unsigned n = 0; n < 20; n++)
            assert_int_equal(asked(d, "b"), IDEM_E_STORAGE);
        assert_int_equal(f->table.stats.retired, SPARE);
        flash_fail(&d->medium, FLASH_PROG, 0, 0, 0);
        assert_int_equal(asked(d, "b"), IDEM_EXECUTE);
        assert_true(f->table.stats.retired <= SPARE);
    }
}

/* A record was written, though that failed: while it is there, and newer than
   what counts, its cell is not left. */
static void a_cell_with_a_record_that_failed_is_not_given_up(void **state)
{
    device *d = (device *)*state;
    fixture *f = &d->f;

    reopen(d, IDEM_OK);
    done(d, "a");
    flash_fail(&d->medium, FLASH_PROG, 0, FLASH_DONE, 0);
    assert_int_equal(asked(d, "b"), IDEM_E_STORAGE);
    flash_fail(&d->medium, FLASH_PROG, 0, FLASH_UNDONE, 1);
    for (unsigned n = 0; n < 4; n++)
        assert_int_equal(asked(d, "c"), IDEM_E_STORAGE);
    assert_int_equal(f->table.stats.retired, 0);
    flash_fail(&d->medium, FLASH_PROG, 0, 0, 0);
    done(d, "c");
    reopen(d, IDEM_OK);
    assert_int_equal(find(f, "", "b", 1), IDEM_E_NOT_FOUND);
    assert_int_equal(asked(d, "c"), IDEM_REPLAY);
    assert_int_equal(f->table.stats.lost, 0);
}

/* One is dead, and another program fails in the same settling. */
static void what_is_given_up_is_counted_once(void **state)
{
    device *d = (device *)*state;
    fixture *f = &d->f;

    for (uint32_t n = 0; n < 14; n++) {
        make(d, 1, size_of(&f->config, 1));
        d->storage.prog = prog_around_the_dead;
        dead = UINT32_MAX;
        reopen(d, IDEM_OK);
        done(d, "a");
        reopen(d, IDEM_OK);
        dead = idemi_cells_at(&f->table, 5);
        flash_fail(&d->medium, FLASH_PROG, n, FLASH_UNDONE, 0);
        if (asked(d, "a") < 0)
            assert_int_equal(asked(d, "a"), IDEM_REPLAY);
        flash_fail(&d->medium, FLASH_PROG, 0, 0, 0);
        assert_in_range(f->table.stats.retired, 1, 2);
    }
}

/* The one that does not read is written again before the first record; where
   that fails the other will do, for as long as it takes. */
static void s5_a_header_that_fails_to_be_written_again_costs_nothing(
    void **state)
{
    device *d = (device *)*state;
    uint32_t header;

    reopen(d, IDEM_OK);
    done(d, "a");
    header = idemi_cells_header(&d->f.table);
    for (uint32_t copy = 0; copy < 2; copy++) {
        const char *key = copy ? "b" : "c";
        flash_flip(&d->medium, copy * header + 1, 0);
        for (unsigned boot = 0; boot < 3; boot++) {
            reopen(d, IDEM_OK);
            flash_fail(&d->medium, FLASH_PROG, 0, FLASH_UNDONE, 0);
            assert_int_equal(asked(d, key),
                             boot ? IDEM_RECOVER : IDEM_EXECUTE);
            assert_memory_not_equal(d->medium.bytes, d->medium.bytes + header,
                                    header);
        }
        reopen(d, IDEM_OK);
        assert_int_equal(asked(d, "a"), IDEM_REPLAY);
        assert_int_equal(forget(&d->f, "", key, 1), IDEM_OK);
        assert_memory_equal(d->medium.bytes, d->medium.bytes + header, header);
    }
}

/* Storage of erased bytes, of any size. */
static int read_blank(void *ctx, uint32_t at, void *dst, uint32_t len)
{
    (void)ctx, (void)at;
    memset(dst, 0xFF, len);
    return 0;
}

/* Around 254 cells numbers begin to take two bytes, and cells are larger: if so
   many fewer would fit, they do not. */
static void storage_of_any_size_that_is_enough_is_taken(void **state)
{
    device *d = (device *)*state;
    fixture *f = &d->f;
    uint32_t least, most = 0, count = 0;

    f->config.capacity = 250;
    f->config.key_max = 12;
    f->config.response_max = 8;
    f->config.state_max = 0;
    least = (uint32_t)IDEM_CELLS_SIZE(250, 12, 8, 0, 1);
    for (uint32_t size = least - 1; size < least + 1000; size++) {
        int result;
        d->storage.sector_size = size;
        assert_int_equal(idem_open(&f->table, &f->config, NULL, 0, 0),
                         IDEM_E_MEMORY);
        assert_true(f->table.needed <=
                    IDEM_CELLS_MEMORY_SIZE(250, 12, 8, 0, size, 1));
        free(f->memory);
        f->memory = malloc(f->table.needed);
        assert_non_null(f->memory);
        d->storage.read = read_blank;
        result = idem_open(&f->table, &f->config, f->memory, f->table.needed,
                           0);
        assert_int_equal(result, size < least ? IDEM_E_SPACE : IDEM_OK);
        if (result < 0)
            continue;
        assert_true(f->table.journal->count >= count);
        count = f->table.journal->count;
        most = f->table.journal->wide;
    }
    assert_int_equal(most, 2);
}

static void a_sync_that_failed_ends_writing(void **state)
{
    device *d = (device *)*state;
    uint32_t syncs;

    d->storage.sync = flash_sync;
    reopen(d, IDEM_OK);
    done(d, "a");
    flash_fail(&d->medium, FLASH_SYNC, 0, FLASH_UNDONE, 0);
    assert_int_equal(asked(d, "b"), IDEM_E_STORAGE);
    assert_int_equal(asked(d, "b"), IDEM_E_STORAGE);
    assert_int_equal(idem_sync(&d->f.table), IDEM_E_STORAGE);
    assert_int_equal(asked(d, "a"), IDEM_REPLAY);
    reopen(d, IDEM_OK);
    syncs = d->medium.syncs;
    assert_int_equal(idem_sync(&d->f.table), IDEM_OK);
    assert_int_equal(d->medium.syncs, syncs);       // nothing was programmed
    assert_int_equal(asked(d, "a"), IDEM_REPLAY);
    d->storage.sync = NULL;
}

/* What was programmed and is not durable yet: nothing, or what is wiped */
static enum { ALL_DURABLE, WIPED, WRITTEN } pending;
static unsigned early;                  // programs that came before the sync

static int prog_in_order(void *ctx, uint32_t at, const void *src, uint32_t len)
{
    int result = flash_prog(ctx, at, src, len);

    if (pending == WRITTEN || (pending == WIPED && len > 1))
        early++;
    pending = result != 0 ? ALL_DURABLE : len > 1 ? WRITTEN : WIPED;
    return result;
}

static int sync_in_order(void *ctx)
{
    pending = ALL_DURABLE;
    return flash_sync(ctx);
}

/* But for cells that are wiped one after the other */
static void each_program_is_durable_before_the_next(void **state)
{
    device *d = (device *)*state;

    d->storage.sync = sync_in_order;
    d->storage.prog = prog_in_order;
    pending = ALL_DURABLE;
    early = 0;
    reopen(d, IDEM_OK);
    done(d, "a");
    assert_int_equal(asked(d, "b"), IDEM_EXECUTE);
    reopen(d, IDEM_OK);
    done(d, "c");
    // The cell of a record that failed is wiped as well.
    flash_fail(&d->medium, FLASH_PROG, 0, FLASH_UNDONE, 0);
    assert_int_equal(asked(d, "d"), IDEM_E_STORAGE);
    assert_int_equal(asked(d, "d"), IDEM_EXECUTE);
    assert_int_equal(pending, ALL_DURABLE);
    assert_int_equal(early, 0);
    d->storage.sync = NULL;
}

static void a_program_that_did_nothing_is_noticed(void **state)
{
    device *d = (device *)*state;
    fixture *f = &d->f;
    unsigned noticed = 0;

    for (uint32_t n = 0; n < 10; n++) {
        int result;
        make(d, 1, size_of(&f->config, 1));
        d->storage.verify = 1;
        reopen(d, IDEM_OK);
        flash_fail(&d->medium, FLASH_PROG, n, FLASH_SILENT, 0);
        result = asked(d, "a");
        noticed += result == IDEM_E_STORAGE;
        if (result == IDEM_E_STORAGE)
            result = asked(d, "a");
        assert_int_equal(result, IDEM_EXECUTE);
        flash_fail(&d->medium, FLASH_PROG, 0, 0, 0);
        reopen(d, IDEM_OK);
        assert_int_equal(asked(d, "a"), IDEM_RECOVER);
    }
    assert_int_equal(noticed, 3);           // two headers, and the record
    d->storage.verify = 0;
}

/* Programs one bit wrongly, and does not say so. */
static int prog_with_an_error(void *ctx, uint32_t at, const void *src,
                              uint32_t len)
{
    flash *m = (flash *)ctx;
    int result = flash_prog(ctx, at, src, len);

    if (dead - at < len)
        m->bytes[dead] ^= 1;
    return result;
}

/* In any byte of a record, or in the one that is wiped */
static void one_wrong_bit_is_noticed(void **state)
{
    device *d = (device *)*state;
    idem_table *t = &d->f.table;
    uint32_t size = (uint32_t)IDEM_CELLS_SIZE(4, 8, 6, 4, 1);
    uint32_t noticed = 0;

    d->storage.verify = 1;
    for (uint32_t byte = 0; byte < 60; byte++) {
        int result;
        make(d, 1, size);
        d->storage.prog = prog_with_an_error;
        dead = UINT32_MAX;
        reopen(d, IDEM_OK);
        assert_int_equal(asked(d, "a"), IDEM_EXECUTE);
        dead = idemi_cells_at(t, *idemi_cells_free(t, 0)) + byte;
        result = complete(&d->f, &d->f.claim, "a", 1);
        dead = UINT32_MAX;
        noticed += result == IDEM_E_STORAGE;
        if (result == IDEM_E_STORAGE)
            assert_int_equal(complete(&d->f, &d->f.claim, "a", 1), IDEM_OK);
        reopen(d, IDEM_OK);
        dead = idemi_cells_at(t, 4);
        assert_int_equal(asked(d, "a"), IDEM_E_STORAGE);
        dead = UINT32_MAX;
        assert_int_equal(asked(d, "a"), IDEM_REPLAY);
    }
    assert_int_equal(noticed, 42 + 2 + 2 + 1 + 1);
    // And nothing else is: of records of any length
    shuffle(d, 1);
    d->storage.verify = 0;
}

/* A free cell keeps its record, though it was wiped; then power goes while what
   the boot before wrote last is confirmed. */
static void a_wipe_that_did_nothing_harms_no_key(void **state)
{
    device *d = (device *)*state;
    fixture *f = &d->f;

    for (uint32_t n = 0; n < 6; n++)
        for (uint32_t cut = 6; cut < 16; cut++) {
            make(d, 1, size_of(&f->config, 1));
            reopen(d, IDEM_OK);
            done(d, "a");
            for (unsigned i = 0; i < 2; i++) {
                assert_int_equal(asked(d, "b"), IDEM_EXECUTE);
                assert_int_equal(release(f, &f->claim, 1), IDEM_OK);
            }
            done(d, "b");
            reopen(d, IDEM_OK);
            flash_fail(&d->medium, FLASH_PROG, n, FLASH_SILENT, 0);
            flash_cut(&d->medium, cut, FLASH_ALL);
            (void)asked(d, "c");
            flash_fail(&d->medium, FLASH_PROG, 0, 0, 0);
            for (unsigned boot = 0; boot < 3; boot++) {
                reopen(d, IDEM_OK);
                assert_int_equal(f->table.stats.lost, 0);
                assert_int_equal(asked(d, "b"), IDEM_REPLAY);
                assert_string_equal(f->buffer, "b");
                assert_int_equal(asked(d, "a"), IDEM_REPLAY);
                assert_string_equal(f->buffer, "a");
            }
        }
}

static void with_the_last_sequences_what_was_granted_completes(void **state)
{
    device *d = (device *)*state;
    fixture *f = &d->f;
    idem_claim held;

    reopen(d, IDEM_OK);
    assert_int_equal(asked(d, "a"), IDEM_EXECUTE);
    held = f->claim;
    // No such journal can be made in a test's time.
    f->table.journal->sequence = IDEMI_CELLS_LAST;
    assert_int_equal(asked(d, "b"), IDEM_E_SPACE);
    assert_int_equal(complete(f, &held, "poured", 1), IDEM_OK);
    f->table.journal->sequence = UINT32_MAX;
    assert_int_equal(forget(f, "", "a", 1), IDEM_E_SPACE);
    assert_int_equal(asked(d, "a"), IDEM_REPLAY);
}

static void formatting_reports_what_fails(void **state)
{
    device *d = (device *)*state;
    fixture *f = &d->f;
    uint32_t n;
    int result = IDEM_E_STORAGE;

    reopen(d, IDEM_OK);
    for (n = 0; result == IDEM_E_STORAGE; n++) {
        flash_fail(&d->medium, FLASH_PROG, n, FLASH_UNDONE, 0);
        result = idem_format(&f->table, &f->config, f->memory, d->size, 0);
    }
    assert_int_equal(result, IDEM_OK);
    assert_true(n > 2);
    flash_fail(&d->medium, FLASH_PROG, 0, 0, 0);
    d->storage.sync = flash_sync;
    flash_fail(&d->medium, FLASH_SYNC, 0, FLASH_UNDONE, 0);
    assert_int_equal(idem_format(&f->table, &f->config, f->memory, d->size, 0),
                     IDEM_E_STORAGE);
    d->storage.sync = NULL;
}

/* Reading what is behind the headers fails. */
static void what_does_not_read_is_not_blank(void **state)
{
    device *d = (device *)*state;

    flash_fail(&d->medium, FLASH_READ, 4, FLASH_UNDONE, 1);
    reopen(d, IDEM_E_FORMAT);
    flash_fail(&d->medium, FLASH_READ, 0, 0, 0);
    reopen(d, IDEM_OK);
}

/* A cut leaves a small granule as anything, of a large one some bytes. */
static void somebodys_granule_is_told_from_a_torn_one(void **state)
{
    device *d = (device *)*state;
    fixture *f = &d->f;

    make(d, 16, size_of(&f->config, 16));
    flash_noise(&d->medium, 0, 16, 1);
    reopen(d, IDEM_OK);
    done(d, "a");
    make(d, 32, size_of(&f->config, 32));
    flash_noise(&d->medium, 0, 32, 1);
    reopen(d, IDEM_E_FORMAT);
    // Nobody else's begins as a header does.
    flash_load(&d->medium, 32, "idem", 4);
    reopen(d, IDEM_OK);
    done(d, "a");
}

static void idem_check_finds_cells_that_cannot_be(void **state)
{
    device *d = (device *)*state;
    idem_table *t = &d->f.table;
    idem_number was;
    uint16_t census;

    reopen(d, IDEM_OK);
    done(d, "a");
    was = *idemi_cells_of(t, 0);
    *idemi_cells_of(t, 0) = 0;
    assert_int_equal(idem_check(t), 14);
    *idemi_cells_of(t, 0) = (idem_number)(t->journal->count + 1);
    assert_int_equal(idem_check(t), 14);
    census = t->journal->census;            // even if that is as it says
    t->journal->census = (uint16_t)(census + t->journal->count + 1 - was);
    assert_int_equal(idem_check(t), 14);
    t->journal->census = census;
    *idemi_cells_of(t, 0) = was;
    t->journal->census ^= 1;
    assert_int_equal(idem_check(t), 14);
    t->journal->census ^= 1;
    t->journal->frees--;                    // of the free cells one is lost
    assert_int_equal(idem_check(t), 15);
    t->journal->frees++;
    assert_int_equal(idem_check(t), 0);
}

#define UNREADY(...)                                                           \
    do {                                                                       \
        make(d, 32, size_of(&f->config, 32));                                  \
        reopen(d, IDEM_OK);                                                    \
        done(d, "a");                                                          \
        assert_null(unready(t));                                               \
        j = t->journal;                                                        \
        __VA_ARGS__;                                                           \
        assert_non_null(unready(t));                                           \
    } while (0)

/* What make prove believes of an opening is not believed in vain (ready.h). */
static void unready_names_what_was_corrupted(void **state)
{
    device *d = (device *)*state;
    fixture *f = &d->f;
    idem_table *t = &f->table;
    idem_journal *j;

    UNREADY(*idemi_cells_of(t, 0) = (idem_number)(j->count + 1));
    UNREADY(*idemi_cells_of(t, 0) = 0);
    UNREADY(j->sequence = 0);
    UNREADY(j->newest = t->capacity);
    UNREADY(j->torn = 4);
    UNREADY(j->replaced = j->count + 1);
    UNREADY(j->copied = j->count + 1);
    UNREADY(j->first = j->count);
    UNREADY(j->frees--);
    UNREADY(t->stats.retired = 1);
    UNREADY(*idemi_cells_free(t, 1) = (idem_number)j->count);
    UNREADY(*idemi_cells_free(t, 1) = *idemi_cells_free(t, 0));
    UNREADY(*idemi_cells_free(t, 1) = (idem_number)(*idemi_cells_of(t, 0) - 1));
    UNREADY(idemi_slot_at(t, 0)->state |= IDEMI_UNTOLD);
    UNREADY(t->tidy = t->capacity + 1);
}

/* With a cell for each key and two, these two are free once all are there. */
static void idem_check_finds_too_few_free_cells(void **state)
{
    device *d = (device *)*state;
    idem_table *t = &d->f.table;

    make(d, 1, (uint32_t)IDEM_CELLS_SIZE(4, 8, 6, 4, 1));
    reopen(d, IDEM_OK);
    for (uint32_t k = 0; k < 4; k++)
        done(d, nth(k));
    assert_int_equal(t->journal->frees, 2);
    t->journal->frees = 1;
    assert_int_equal(idem_check(t), 15);
    t->journal->frees = 2;
    assert_int_equal(idem_check(t), 0);
}

/* Two copies of the newest, which tell of its claim as well; one record for the
   other claim that the restart cut short; a granule for each free cell. */
static void the_first_record_of_a_boot_takes_what_is_told(void **state)
{
    device *d = (device *)*state;
    uint32_t progs, frees;

    reopen(d, IDEM_OK);
    done(d, "a");
    assert_int_equal(asked(d, "b"), IDEM_EXECUTE);
    assert_int_equal(asked(d, "c"), IDEM_EXECUTE);
    reopen(d, IDEM_OK);
    progs = d->medium.progs;
    frees = d->f.table.journal->count - 3;
    assert_int_equal(asked(d, "a"), IDEM_REPLAY);
    assert_int_equal(d->medium.progs, progs);
    assert_int_equal(asked(d, "d"), IDEM_EXECUTE);
    assert_int_equal(d->medium.progs - progs, frees + 2 + 1 + 1);
}

/* What is behind the last slot in memory is none, whatever bits it has. */
static void only_slots_are_told_of(void **state)
{
    device *d = (device *)*state;
    idem_config *c = &d->f.config;
    uint32_t progs, cells;

    c->capacity = 64;
    c->key_max = 2;
    c->response_max = c->state_max = 0;
    make(d, 1, (uint32_t)IDEM_CELLS_SIZE(64, 2, 0, 0, 1));
    reopen(d, IDEM_OK);
    assert_int_equal(asked(d, "a"), IDEM_EXECUTE);
    assert_int_equal(complete(&d->f, &d->f.claim, NULL, 1), IDEM_OK);
    reopen(d, IDEM_OK);
    progs = d->medium.progs;
    cells = d->f.table.journal->count;
    assert_int_equal(asked(d, "a"), IDEM_REPLAY);
    assert_int_equal(d->medium.progs - progs, cells - 2 + 2);
}

/* Storage of any size that is blank. */
static int blank_read(void *ctx, uint32_t at, void *dst, uint32_t len)
{
    (void)ctx, (void)at;
    memset(dst, 0xFF, len);
    return 0;
}

/* Numbers take more bytes where there are more cells. */
static void many_keys_take_wider_numbers(void **state)
{
    static const struct { uint32_t keys; int wide; } all[] = {
        { 252, 1 }, { 253, 2 }, { 65532, 2 }, { 65533, 3 }, { 66000, 3 },
    };
    device *d = (device *)*state;
    fixture *f = &d->f;
    uint32_t needed;

    d->storage.read = blank_read;
    for (size_t i = 0; i < COUNT(all); i++) {
        if (all[i].keys > IDEM_CAPACITY_MAX)
            continue;
        f->config.capacity = all[i].keys;
        d->storage.sector_size = 64;
        reopen(d, IDEM_E_SPACE);
        needed = (uint32_t)f->table.needed;
        assert_int_equal(needed, IDEM_CELLS_SIZE(all[i].keys, 8, 6, 4, 1));
        d->storage.sector_size = needed;
        reopen(d, IDEM_OK);
        assert_int_equal(f->table.journal->wide, all[i].wide);
        assert_int_equal(f->table.journal->count, all[i].keys + 2);
    }
    // More than numbers can tell apart are not used.
    d->storage.sector_size = UINT32_MAX;
    f->config.key_max = 1;
    f->config.response_max = f->config.state_max = 0;
    f->table.config = &f->config;
    assert_int_equal(idemi_public_cells(&f->config, 3),
                     IDEM_WIDE ? 0xFFFFFE : 65534);
    // Nor is there a storage for all that may be configured.
    f->config.key_max = 255;
    f->config.response_max = UINT16_MAX;
    f->table.capacity = 1u << 20;
    assert_int_equal(idemi_public_geometry(&f->table), IDEM_E_SPACE);
    assert_int_equal(f->table.needed, 0);
}

/* In each boot the first to be written is the next after the newest record. */
static void wear_goes_on_where_it_was(void **state)
{
    device *d = (device *)*state;
    idem_table *t = &d->f.table;
    uint32_t seed = 1;

    make(d, 4, size_of(&d->f.config, 4));
    reopen(d, IDEM_OK);
    done(d, "a");
    for (unsigned n = 0; n < 100; n++) {
        unsigned newest, next, left;
        shuffle(d, dice(&seed));
        reopen(d, IDEM_OK);
        // This settles, and wipes: also the last cell.
        assert_int_equal(asked(d, nth(0)), IDEM_REPLAY);
        assert_int_equal(asked(d, nth(1)), IDEM_REPLAY);
        reopen(d, IDEM_OK);
        newest = next = *idemi_cells_of(t, (unsigned)t->journal->newest) - 1u;
        idemi_cells_collect(t);
        for (unsigned i = 0; i < t->journal->frees; i++) {
            do {
                next = (next + 1) % t->journal->count;
                left = 0;
                while (left < 4 && *idemi_cells_of(t, left) != next + 1)
                    left++;
            } while (left < 4);
            assert_int_equal(*idemi_cells_free(t, i), next);
        }
        assert_true(next != newest);
    }
}

static void wear_is_spread_over_all_cells(void **state)
{
    device *d = (device *)*state;
    uint32_t wear[16] = { 0 };
    uint32_t k, least = UINT32_MAX, most = 0;

    for (k = 0; k < 200; k++) {
        unsigned cell;
        reopen(d, IDEM_OK);
        done(d, "a");
        cell = *idemi_cells_of(&d->f.table, 0) - 1u;
        wear[cell]++;
        assert_int_equal(forget(&d->f, "", "a", 1), IDEM_OK);
    }
    for (k = 0; k < d->f.table.journal->count; k++) {
        least = wear[k] < least ? wear[k] : least;
        most = wear[k] > most ? wear[k] : most;
    }
    assert_true(least * 4 >= most);
}

/* A record's check, as it stands behind those bytes of a cell (from 1 on) */
static void assert_check(const device *d, unsigned number, uint32_t len)
{
    const idem_table *t = &d->f.table;
    const uint8_t *p = d->medium.bytes + idemi_cells_at(t, number - 1);

    assert_int_equal(idemi_basics_load32(p + len),
                     idemi_crc_update(t->journal->check ^
                                          number * UINT32_C(0x9E3779B1),
                                      p, len));
}

/* Of any granule; what is between is erased. */
static void the_headers_are_as_the_manual_says(void **state)
{
    static const uint32_t granules[] = { 1, 16, 64 };
    device *d = (device *)*state;

    d->f.config.capacity = 1;
    for (uint32_t i = 0; i < COUNT(granules); i++) {
        uint32_t granule = granules[i], size, at;
        uint8_t said[11] = { 1, IDEM_HASH, 1 }, headers[2 * 64];
        const uint8_t *p;
        size = (42 + 2 + 8 + 6 + 2 + 4 + granule - 1) / granule * granule;
        make(d, granule, (uint32_t)IDEM_CELLS_SIZE(1, 8, 6, 4, granule));
        reopen(d, IDEM_OK);
        done(d, "a");
        idemi_basics_store(said + 3, granule, 2);
        idemi_basics_store(said + 5, size, 4);
        idemi_basics_store(said + 9, d->f.table.journal->check & 0xFFFF, 2);
        for (unsigned copy = 0; copy < 2; copy++) {
            p = d->medium.bytes + copy * (granule < 8 ? 8 : granule);
            assert_memory_equal(p, "idem", 4);
            assert_int_equal(idemi_basics_load32(p + 4),
                             idemi_crc_update(UINT32_MAX, said, 11));
            for (at = 8; at < granule; at++)
                assert_int_equal(p[at], 0xFF);
        }
        // So is what is behind a record, here of no key.
        assert_int_equal(forget(&d->f, "", "a", 1), IDEM_OK);
        p = d->medium.bytes + idemi_cells_at(&d->f.table, 2);
        for (at = 17 + 4; at % granule; at++)
            assert_int_equal(p[at], 0xFF);
        // A header that is written again is as it was.
        memcpy(headers, d->medium.bytes, sizeof headers);
        flash_flip(&d->medium, 0, 3);
        reopen(d, IDEM_OK);
        assert_int_equal(asked(d, "b"), IDEM_EXECUTE);
        assert_memory_equal(d->medium.bytes, headers, 2 * 8);
        if (granule > 8)
            assert_memory_equal(d->medium.bytes, headers, 2 * granule);
    }
}

/* The bytes of a record */
static void the_format_is_as_the_manual_says(void **state)
{
    static const uint8_t claim[] = {
        0x41, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0,
        1, 0xE8, 0x03, 0, 0, 8, 7, 6, 5, 4, 3, 2, 1, 0, 0, 0, 0, 6, 0,
        1, 2, 'p', 'k', 'e'
    };
    static const uint8_t golden[] = {
        0x46, 2, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 2, 0, 1, 0,
        1, 0xE8, 0x03, 0, 0, 8, 7, 6, 5, 4, 3, 2, 1, 0, 0, 0, 0, 2, 0,
        1, 2, 0xFB, 0xFF, 0xFF, 0xFF, 's', 'p', 'k', 'e', 'o', 'k'
    };
    static const uint8_t gone[] = {
        0x40, 3, 0, 0, 0, 0, 2, 1, 0, 0, 0, 0, 0, 3, 0, 1, 0, 's'
    };
    device *d = (device *)*state;
    fixture *f = &d->f;

    reopen(d, IDEM_OK);
    f->request.has_fingerprint = 1;
    f->request.fingerprint = UINT64_C(0x0102030405060708);
    assert_int_equal(begin(f, "p", "ke", "", 1), IDEM_EXECUTE);
    assert_memory_equal(d->medium.bytes + idemi_cells_at(&f->table, 0), claim,
                        sizeof claim);
    assert_check(d, 1, sizeof claim);
    f->outcome.confirm = 1;
    f->outcome.code = -5;
    f->outcome.state = "s";
    f->outcome.state_len = 1;
    assert_int_equal(complete(f, &f->claim, "ok", 1), IDEM_OK);
    assert_memory_equal(d->medium.bytes, "idem", 4);
    assert_memory_equal(d->medium.bytes, d->medium.bytes + 8, 8);
    assert_memory_equal(d->medium.bytes + idemi_cells_at(&f->table, 1), golden,
                        sizeof golden);
    assert_check(d, 2, sizeof golden);
    assert_int_equal(forget(f, "p", "ke", 1), IDEM_OK);
    assert_memory_equal(d->medium.bytes + idemi_cells_at(&f->table, 2), gone,
                        sizeof gone);
    assert_check(d, 3, sizeof gone);
    assert_int_equal(begin(f, "", "a", "", 1), IDEM_EXECUTE);
    assert_int_equal(begin(f, "", "b", "", 1), IDEM_EXECUTE);
    assert_int_equal(d->medium.bytes[idemi_cells_at(&f->table, 4) + 13],
                     4 * 1 + 5 * 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CELLS(a_storage_that_cannot_be_is_refused),
        CELLS(the_size_that_would_do_does),
        CELLS(a_kilobyte_holds_sixteen_keys),
        CELLS(opening_writes_nothing_and_reads_each_byte_once),
        CELLS(what_is_not_ours_is_not_touched),
        CELLS(what_is_behind_the_headers_is_looked_at),
        CELLS(three_torn_granules_of_headers_are_somebodys),
        CELLS(what_was_formatted_is_a_journal_as_any),
        CELLS(a_header_that_reads_is_not_torn),
        CELLS(s10_what_cannot_be_wiped_ends_no_doubt),
        CELLS(s10_an_answer_writes_if_it_relies_on_the_newest),
        CELLS(everything_outlasts_restarts),
        CELLS(copies_say_the_same),
        CELLS(what_is_done_at_the_very_first_is_remembered),
        CELLS(time_has_forty_bits),
        CELLS(a_claim_cut_short_is_told_of_once),
        CELLS(the_sweep_goes_on_after_a_restart),
        CELLS(s10_what_a_cut_has_left_is_not_seen_later),
        CELLS(s10_a_key_whose_slot_was_taken_stays_gone),
        CELLS(what_the_newest_replaced_is_kept_if_it_reads),
        CELLS(a_tentative_copy_names_what_it_is_a_copy_of),
        CELLS(s2_what_is_there_but_once_is_not_written_over),
        CELLS(a_retention_goes_on_over_restarts),
        CELLS(a_full_table_tells_when_there_is_room_after_a_restart),
        CELLS(what_is_over_at_an_opening_takes_no_slot),
        CELLS(completing_never_fails_for_space),
        CELLS(a_flipped_bit_costs_a_record_at_most),
        CELLS(doubt_goes_on_over_restarts_and_ends),
        CELLS(s4_doubt_lasts_to_its_end_over_restarts),
        CELLS(the_unit_of_doubt_is_the_least_that_will_do),
        CELLS(a_key_that_comes_back_twice_is_the_newer),
        CELLS(a_smaller_capacity_loses_what_is_beyond_it),
        CELLS(a_smaller_capacity_loses_no_key_that_is_not_there),
        CELLS(what_is_over_smaller_limits_is_lost),
        CELLS(a_truncated_storage_never_answers_wrongly),
        CELLS(a_record_validates_in_its_own_cell_only),
        CELLS(a_call_that_fails_can_be_repeated),
        CELLS(a_cell_that_is_not_there_was_not_replaced),
        CELLS(l2_a_dead_cell_is_gone_round),
        CELLS(s5_a_header_that_fails_to_be_written_again_costs_nothing),
        CELLS(storage_of_any_size_that_is_enough_is_taken),
        CELLS(no_more_cells_are_given_up_than_there_may_be),
        CELLS(a_cell_with_a_record_that_failed_is_not_given_up),
        CELLS(what_is_given_up_is_counted_once),
        CELLS(a_sync_that_failed_ends_writing),
        CELLS(each_program_is_durable_before_the_next),
        CELLS(an_older_twin_in_a_later_slot_is_dropped),
        CELLS(the_order_goes_on_without_an_older_twin),
        CELLS(a_smaller_capacity_keeps_what_is_within_it),
        CELLS(a_program_that_did_nothing_is_noticed),
        CELLS(one_wrong_bit_is_noticed),
        CELLS(a_wipe_that_did_nothing_harms_no_key),
        CELLS(with_the_last_sequences_what_was_granted_completes),
        CELLS(formatting_reports_what_fails),
        CELLS(what_does_not_read_is_not_blank),
        CELLS(somebodys_granule_is_told_from_a_torn_one),
        CELLS(idem_check_finds_cells_that_cannot_be),
        CELLS(idem_check_finds_too_few_free_cells),
        CELLS(unready_names_what_was_corrupted),
        CELLS(the_first_record_of_a_boot_takes_what_is_told),
        CELLS(only_slots_are_told_of),
        CELLS(many_keys_take_wider_numbers),
        CELLS(wear_is_spread_over_all_cells),
        CELLS(wear_goes_on_where_it_was),
        CELLS(the_headers_are_as_the_manual_says),
        CELLS(the_format_is_as_the_manual_says),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
