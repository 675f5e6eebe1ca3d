/* SPDX-License-Identifier: 0BSD */
/*
 * Callbacks that fail: failures use up nothing that works (S7), whatever fails,
 * and for how long.  That one call that fails changed nothing is in journal.c.
 */
#include "device.h"

#include "../inside.h"

static const int hows[] = { FLASH_UNDONE, FLASH_DONE, FLASH_HALF };

/* A call that may fail, and then does what it must when it is repeated. */
#define answers_in_time(call, expected)                                        \
    do {                                                                       \
        int r_ = 0, left_ = 4;                                                 \
        while (left_-- > 0 && (r_ = (call)) == IDEM_E_STORAGE)                 \
            ;                                                                  \
        answers_at(r_, expected, #call, __FILE__, __LINE__);                   \
    } while (0)

/* ----------------------------------------------------------- many that fail */

/* So many operations fail, one after the other; then all works again. */
static void fail_many(const medium *m, int call, uint32_t fails)
{
    device *d = device_on(m);
    idem_claim claim;
    uint32_t left = 300;

    finish(d, "a");
    answers(begin(d, "b"), IDEM_EXECUTE);
    claim = d->claim;
    memset(&d->claim, 0, sizeof d->claim);
    while (fails > 0 && left-- > 0) {
        flash_fail(&d->medium, call, 0, FLASH_UNDONE, 0);
        (void)(left % 2 ? begin(d, "~") : release(d, &d->claim));
        fails -= !d->medium.faults[call].how;
    }
    flash_fail(&d->medium, call, 0, 0, 0);
    answers(complete_as(d, &claim, "b"), IDEM_OK);
    d->now += LEASE;
    (void)forget(d, "~");
    for (uint32_t n = 0; n < 60; n++) {
        finish(d, nth(n));
        answers(forget(d, nth(n)), IDEM_OK);
    }
    for (int boot = 0; boot < 2; boot++) {
        replays(d, "a");
        replays(d, "b");
        restart(d);
        is(d->table.stats.lost, 0);
    }
}

TEST(failures_that_are_over_use_up_no_place_that_works)
{
    for (size_t m = 0; m < COUNT(media); m++)
        for (uint32_t fails = 1; fails < 25; fails += 1 + fails / 9) {
            fail_many(media[m], FLASH_PROG, fails);
            if (media[m]->kind != FLASH_INPLACE)
                fail_many(media[m], FLASH_ERASE, fails);
        }
}

/* While nothing can be written: duplicates are answered, nothing new begins;
   and behind it everything goes on as if it had not been. */
TEST(a_storage_that_is_out_for_a_while_loses_nothing)
{
    for (size_t m = 0; m < COUNT(media); m++)
        for (int call = FLASH_READ; call <= FLASH_ERASE; call++) {
            device *d = device_on(media[m]);
            idem_claim claim;
            finish(d, "a");
            answers(begin(d, "b"), IDEM_EXECUTE);
            claim = d->claim;
            for (uint32_t n = 0; n < 300; n++) {
                int result;
                flash_fail(&d->medium, call, 0, FLASH_UNDONE, n % 100 < 20);
                if (n % 100 >= 20)
                    flash_fail(&d->medium, call, 0, 0, 0);
                replays(d, "a");
                (void)maintain(d);
                result = begin(d, "~");
                if (n % 100 >= 20 && result == IDEM_BUSY)
                    d->now += LEASE;
                if (result == IDEM_EXECUTE || result == IDEM_RECOVER)
                    (void)release(d, &d->claim);
                else if (result == IDEM_EXHAUSTED)
                    (void)forget(d, "~");
                if (call == FLASH_PROG && n % 100 < 20)
                    assert_true(result < 0 || result == IDEM_BUSY);
            }
            answers(complete_as(d, &claim, "b"), IDEM_OK);
            restart(d);
            replays(d, "a");
            replays(d, "b");
            is(d->table.stats.lost, 0);
        }
}

/* -------------------------------------------------------------- bad sectors */

TEST(bad_sectors_are_passed_over)
{
    static const uint8_t bads[] = { FLASH_BAD_ERASE, FLASH_BAD_PROG,
                                    FLASH_STUCK_PROG, FLASH_STUCK_ERASE };

    for (size_t b = 0; b < COUNT(bads); b++)
        for (uint32_t bad = 0; bad < 8; bad++) {
            device *d = device_on(&nor_8);
            uint32_t sectors = d->storage.sector_count + 4;
            device_start(d, &nor_8, sectors);
            d->storage.verify = b >= 2;
            d->medium.bad[bad] = bads[b];
            d->medium.bad[(bad + 3 * (bad % 2)) % sectors] = bads[b];
            for (uint32_t n = 0; n < 3; n++)
                answers_in_time(begin(d, nth(n)), IDEM_EXECUTE);
            for (uint32_t n = 0; n < 250; n++) {
                idem_claim claim;
                answers_in_time(begin(d, "a"), IDEM_EXECUTE);
                claim = d->claim;
                answers_in_time(complete_as(d, &claim, "a"), IDEM_OK);
                if (n % 60 == 0) {
                    restart(d);
                    is(d->table.stats.lost, 0);
                }
                answers_in_time(begin(d, "a"), IDEM_REPLAY);
                assert_true(is_outcome_of(d, "a"));
                answers_in_time(forget(d, "a"), IDEM_OK);
            }
            for (uint32_t n = 0; n < 3; n++)
                answers(find(d, nth(n)), IDEM_OK);
        }
}

/* An erase that fails leaves the place with the header of a round ago. */
TEST(what_is_in_a_place_passed_over_is_not_read)
{
    device *d = device_on(&nor_8);

    device_start(d, &nor_8, d->storage.sector_count + 2);
    turn(d, 2 * d->storage.sector_count);
    finish(d, "a");
    for (uint32_t n = 0; n < 40; n++) {
        idem_claim claim;
        flash_fail(&d->medium, FLASH_ERASE, 0, FLASH_UNDONE, 0);
        answers_in_time(begin(d, "b"), IDEM_EXECUTE);
        claim = d->claim;
        answers_in_time(release(d, &claim), IDEM_OK);
        restart(d);
        is(d->table.stats.lost, 0);
        replays(d, "a");
    }
}

/* One place after the other wears out. */
TEST(with_too_few_sectors_left_only_new_claims_are_refused)
{
    device *d = device_on(&nor_8);
    idem_claim held[3];
    uint32_t n, bad = 0;
    int result = IDEM_EXECUTE;

    device_start(d, &nor_8, d->storage.sector_count + 6);
    d->ask.retention_ms = IDEM_RETENTION_MAX;
    finish(d, "a");
    for (n = 0; n < 3; n++) {
        answers(begin(d, nth(n)), IDEM_EXECUTE);
        held[n] = d->claim;
        answers(renew(d, &held[n], IDEM_LEASE_NONE), IDEM_OK);
    }
    for (n = 0; n < 5000 && result != IDEM_E_SPACE; n++) {
        if (n % 200 == 199 && bad < d->storage.sector_count)
            d->medium.bad[bad++] = FLASH_BAD_ERASE;
        result = begin(d, "~");
        if (result == IDEM_EXECUTE || result == IDEM_RECOVER)
            (void)release(d, &d->claim);
        else if (result == IDEM_BUSY)
            d->now += LEASE;
        else if (result == IDEM_EXHAUSTED)
            (void)forget(d, "~");
        replays(d, "a");
    }
    answers(result, IDEM_E_SPACE);
    assert_in_range(bad, 3, d->storage.sector_count);
    memset(d->medium.bad, 0, d->storage.sector_count);
    for (n = 0; n < 3; n++)
        answers(complete_as(d, &held[n], nth(n)), IDEM_OK);
    for (int boot = 0; boot < 2; boot++) {
        for (n = 0; n < 3; n++)
            replays(d, nth(n));
        memset(d->medium.bad, 0, d->storage.sector_count);
        restart(d);
    }
}

/* A journal ends after 2^32 sectors: completions still fit. */
TEST(s7_the_last_sequence_refuses_new_claims_only)
{
    for (size_t m = 0; m < COUNT(media); m++) {
        device *d = device_on(media[m]);
        idem_claim held[3];
        int result = IDEM_EXECUTE;
        inside_start_far(&d->table, UINT32_MAX - 1000);
        finish(d, "a");
        for (uint32_t n = 0; n < 3; n++) {
            d->ask.lease_ms = IDEM_LEASE_NONE;
            answers(begin(d, nth(n)), IDEM_EXECUTE);
            held[n] = d->claim;
        }
        for (uint32_t n = 0; n < 50000 && result == IDEM_EXECUTE; n++)
            if ((result = begin(d, "~")) == IDEM_EXECUTE)
                answers(release(d, &d->claim), IDEM_OK);
        answers(result, IDEM_E_SPACE);
        for (uint32_t n = 0; n < 3; n++)
            answers(complete_as(d, &held[n], nth(n)), IDEM_OK);
        answers(begin(d, "new"), IDEM_E_SPACE);
        for (int boot = 0; boot < 3; boot++) {
            restart(d);
            is(d->table.stats.lost, 0);
            (void)maintain(d);
            answers(find(d, "a"), IDEM_OK);
            for (uint32_t n = 0; n < 3; n++)
                answers(find(d, nth(n)), IDEM_OK);
        }
    }
}

/* -------------------------------------------------------------------- syncs */

TEST(after_a_sync_that_failed_nothing_is_written)
{
    for (size_t h = 0; h < COUNT(hows); h++)
        for (int batch = 0; batch < 4; batch++) {
            device *d = device_on(batch < 2 ? &cached : &nor_8);
            uint32_t progs;
            d->storage.sync = flash_sync;
            d->config.durability = batch % 2 ? IDEM_BATCH : IDEM_EACH;
            restart(d);
            finish(d, "a");
            answers(sync_all(d), IDEM_OK);
            answers(begin(d, "b"), IDEM_EXECUTE);
            flash_fail(&d->medium, FLASH_SYNC, 0, hows[h], 0);
            if (batch % 2) {
                answers(complete(d, "b"), IDEM_OK);
                answers(sync_all(d), IDEM_E_STORAGE);
            } else {
                answers(complete(d, "b"), IDEM_E_STORAGE);
            }
            progs = d->medium.progs;
            for (int n = 0; n < 3; n++) {
                answers(begin(d, "c"), IDEM_E_STORAGE);
                answers(sync_all(d), IDEM_E_STORAGE);
                replays(d, "a");
                (void)maintain(d);
            }
            is(d->medium.progs, progs);
            restart(d);
            is(d->table.stats.lost, 0);
            replays(d, "a");
            finish(d, "c");
            answers(sync_all(d), IDEM_OK);
        }
}

/* Also where so many places were passed over that no claim has room. */
TEST(after_a_sync_that_failed_no_turn_makes_room)
{
    device *d = device_on(&cached);
    idem_claim held;
    uint32_t progs;

    finish(d, "a");
    answers(begin(d, "b"), IDEM_EXECUTE);
    held = d->claim;
    flash_fail(&d->medium, FLASH_PROG, 0, FLASH_UNDONE, 1);
    while (inside_dead(&d->table) > 3)
        answers(begin(d, "c"), IDEM_E_STORAGE);
    flash_fail(&d->medium, FLASH_PROG, 0, FLASH_UNDONE, 0);
    flash_fail(&d->medium, FLASH_SYNC, 0, FLASH_UNDONE, 0);
    answers(complete_as(d, &held, "b"), IDEM_E_STORAGE);
    assert_in_range(inside_dead(&d->table), 0, 1);
    progs = d->medium.progs;
    assert_true(begin(d, "c") < 0);
    is(d->medium.progs, progs);
    restart(d);
    is(d->table.stats.lost, 0);
    replays(d, "a");
    finish(d, "c");
}

/* ------------------------------------------------------------------ opening */

TEST(a_read_that_fails_while_opening_is_damage)
{
    for (size_t m = 0; m < COUNT(media); m++)
        for (uint32_t n = 0; n < 30; n++) {
            device *d = device_on(media[m]);
            int result;
            finish(d, "a");
            turn(d, 2);
            finish(d, "b");
            flash_fail(&d->medium, FLASH_READ, n, FLASH_UNDONE, 0);
            result = reopen(d);
            if (result == IDEM_OK) {
                if (begin(d, "a") != IDEM_REPLAY)
                    assert_int_not_equal(d->table.stats.lost, 0);
            } else {
                answers(result, IDEM_E_STORAGE);
            }
            restart(d);
            replays(d, "a");
        }
}

TEST(a_storage_that_does_not_read_at_all_is_not_blank)
{
    for (int full = 0; full < 2; full++)
        for (size_t m = 0; m < COUNT(media); m++) {
            device *d = device_on(media[m]);
            if (full)
                finish(d, "a");
            flash_fail(&d->medium, FLASH_READ, 0, FLASH_UNDONE, 1);
            answers(reopen(d), IDEM_E_STORAGE);
            is(d->table.storage_error, FLASH_E_FAULT);
            answers(idem_maintain(&d->table, 0), IDEM_E_ARG);
            flash_fail(&d->medium, FLASH_READ, 0, 0, 0);
            restart(d);
            if (full)
                replays(d, "a");
        }
}

/* ------------------------------------------------------------------- verify */

TEST(verify_finds_a_program_that_did_nothing)
{
    device *d = device_on(&nor_8);

    d->storage.verify = 1;
    finish(d, "a");
    for (uint32_t n = 0; n < 40; n++) {
        flash_fail(&d->medium, FLASH_PROG, n % 4, FLASH_SILENT, 0);
        answers_in_time(begin(d, "b"), IDEM_EXECUTE);
        answers_in_time(release(d, &d->claim), IDEM_OK);
    }
    restart(d);
    is(d->table.stats.lost, 0);
    replays(d, "a");
    answers(find(d, "b"), IDEM_E_NOT_FOUND);
}

TEST(verify_fails_if_what_was_programmed_cannot_be_read)
{
    device *d = device_on(&nor_8);

    d->storage.verify = 1;
    finish(d, "a");
    flash_fail(&d->medium, FLASH_READ, 0, FLASH_UNDONE, 0);
    answers_in_time(begin(d, "b"), IDEM_EXECUTE);
    restart(d);
    replays(d, "a");
    answers(begin(d, "b"), IDEM_RECOVER);
}

/* ---------------------------------------------------- erases that take time */

TEST(an_erase_that_fails_late_gives_its_place_up)
{
    for (int idle = 0; idle < 2; idle++) {
        device *d = device_on(&nor_8);
        d->storage.erasing = device_erasing;
        d->polls = 2;
        restart(d);
        finish(d, "a");
        for (uint32_t n = 0; n < 60; n++) {
            idem_claim claim;
            if (n % 10 == 0)
                d->late_error = 5;
            if (idle)
                while (maintain(d) == IDEM_MORE)
                    ;
            answers_in_time(begin(d, "b"), IDEM_EXECUTE);
            claim = d->claim;
            answers_in_time(release(d, &claim), IDEM_OK);
        }
        is(d->table.storage_error, 5);
        d->late_error = 0;
        restart(d);
        is(d->table.stats.lost, 0);
        replays(d, "a");
    }
}
