/* SPDX-License-Identifier: 0BSD */
/*
 * Numbers and accounts (>>senders of the manual) over restarts and power cuts:
 * what is known to be old is so for ever.
 */
#include "device.h"

enum { LAST = UINT32_MAX };             // of the sequences

/* A device of two senders, in the configuration that the test gave it. */
static device *defaults(void)
{
    device *d = &the_device;

    device_defaults(d);
    d->config.senders = 2;
    d->ask.scope = "meter";             // of keys too
    d->ask.scope_len = 5;
    return d;
}

static device *senders_on(const medium *m)
{
    device *d = defaults();

    device_start(d, m, 0);
    return d;
}

static idem_request number_of(const device *d, const char *scope,
                              uint32_t epoch, uint32_t sequence)
{
    idem_request rq = d->ask;

    rq.scope = scope;
    rq.scope_len = strlen(scope);
    rq.epoch = epoch;
    rq.sequence = sequence;
    rq.payload = "pour";
    rq.payload_len = 4;
    return rq;
}

static int begin_request(device *d, const idem_request *rq)
{
    memset(&d->claim, 0xEE, sizeof d->claim);
    memset(&d->reply, 0xEE, sizeof d->reply);
    d->reply.buffer = d->answer;
    d->reply.buffer_size = sizeof d->answer;
    device_before(d);
    return device_after(
        d, idem_begin(&d->table, &d->claim, &d->reply, rq, d->now));
}

static int number_from(device *d, const char *scope, uint32_t epoch,
                       uint32_t sequence)
{
    idem_request rq = number_of(d, scope, epoch, sequence);

    return begin_request(d, &rq);
}

/* Of a sender that does not matter. */
static int number(device *d, uint32_t epoch, uint32_t sequence)
{
    return number_from(d, "meter", epoch, sequence);
}

static int forget_number(device *d, uint32_t epoch, uint32_t sequence)
{
    idem_request rq = number_of(d, "meter", epoch, sequence);

    device_before(d);
    return device_after(d, idem_forget(&d->table, &rq, d->now));
}

#define done(d, epoch, sequence)                                               \
    (answers(number(d, epoch, sequence), IDEM_EXECUTE),                        \
     answers(complete(d, "x"), IDEM_OK))
#define done_from(d, scope, epoch, sequence)                                   \
    (answers(number_from(d, scope, epoch, sequence), IDEM_EXECUTE),            \
     answers(complete(d, "x"), IDEM_OK))
#define is_old(d, epoch, sequence)                                             \
    answers(number(d, epoch, sequence), IDEM_TOO_OLD)

/* A number that is above the floor, and stays what it was. */
#define is_new(d, epoch, sequence)                                             \
    (answers(number(d, epoch, sequence), IDEM_EXECUTE),                        \
     answers(release(d, &d->claim), IDEM_OK))

/* All retentions end, and it is written that they did. */
static void all_over(device *d)
{
    d->now += RETENTION + LEASE;
    (void)rest(d);
    (void)rest(d);
    is(d->table.used, 0);
}

/* ---------------------------------------------------------------- for ever */

TEST(old_numbers_are_refused_after_100_restarts)
{
    for (size_t m = 0; m < COUNT(media); m++) {
        device *d = senders_on(media[m]);
        done(d, 3, 10);
        done(d, 3, 7);
        all_over(d);
        for (int boot = 0; boot < 100; boot++) {
            restart(d);
            is(d->table.stats.lost, 0);
            for (uint32_t n = 1; n <= 10; n++)
                is_old(d, 3, n);
            is_old(d, 2, LAST);
            is_old(d, 0, 1);
            if (boot % 10 == 0) {
                is_new(d, 3, 11);
                is_new(d, 3, LAST);
            }
        }
    }
}

/* Keys come and go meanwhile: with and without idle time, and restarts. */
TEST(floors_survive_the_ring_going_round_many_times)
{
    for (size_t m = 0; m < COUNT(media); m++)
        for (int how = 0; how < 4; how++) {
            device *d = senders_on(media[m]);
            done(d, 3, 10);
            done_from(d, "other", 0, LAST);
            all_over(d);
            for (uint32_t n = 0; n < 5 * d->medium.sector_count; n++) {
                turn(d, 1);
                if (how & 1)
                    (void)rest(d);
                if (how & 2)
                    restart(d);
                is_old(d, 3, 10);
                is_old(d, 2, 11);
                answers(number_from(d, "other", 0, LAST), IDEM_TOO_OLD);
            }
            restart(d);
            is(d->table.stats.lost, 0);
            is_old(d, 3, 10);
            is_new(d, 3, 11);
            is_new(d, 4, 1);
        }
}

/* Of numbers that are known, whatever turns in between, only the highest that
   has left counts. */
TEST(a_floor_rises_from_boot_to_boot)
{
    for (size_t m = 0; m < COUNT(media); m++) {
        device *d = senders_on(media[m]);
        for (uint32_t n = 1; n < 60; n++) {
            done(d, 0, 10 * n);
            restart(d);
            answers(number(d, 0, 10 * n), IDEM_REPLAY);
            all_over(d);
            if (n % 3 == 0)
                turn(d, n % 5);
            restart(d);
            is_old(d, 0, 10 * n);
            is_old(d, 0, 10 * n - 9);
            is_new(d, 0, 10 * n + 1);
        }
    }
}

TEST(what_was_evicted_stays_old)
{
    for (size_t m = 0; m < COUNT(media); m++) {
        device *d = defaults();
        d->config.capacity = 2;
        d->config.full = IDEM_EVICT_OLDEST;
        device_start(d, media[m], 0);
        for (uint32_t n = 100; n < 300; n++) {
            done(d, 0, n);
            if (n % 7 == 0)
                restart(d);
            for (uint32_t old = n - 3; n > 110 && old < n - 1; old++)
                is_old(d, 0, old);
            if (n > 100)
                answers(number(d, 0, n - 1), IDEM_REPLAY);
        }
        restart(d);
        for (uint32_t n = 1; n < 298; n++)
            is_old(d, 0, n);
        is(d->table.stats.lost, 0);
    }
}

TEST(a_claim_that_was_never_completed_raises_the_floor)
{
    for (size_t m = 0; m < COUNT(media); m++) {
        device *d = senders_on(media[m]);
        answers(number(d, 0, 20), IDEM_EXECUTE);
        restart(d);
        answers(number(d, 0, 20), IDEM_RECOVER);
        is_new(d, 0, 19);
        restart(d);
        all_over(d);
        turn(d, 2);
        for (int boot = 0; boot < 3; boot++) {
            is_old(d, 0, 20);
            is_old(d, 0, 19);
            is_new(d, 0, 21);
            turn(d, d->medium.sector_count);
            restart(d);
        }
    }
}

/* Not where its release is found, nor where that is long dead. */
TEST(what_was_released_or_forgotten_raises_no_floor)
{
    for (size_t m = 0; m < COUNT(media); m++) {
        device *d = senders_on(media[m]);
        for (uint32_t n = 50; n < 60; n++) {
            answers(number(d, 0, n), IDEM_EXECUTE);
            answers(release(d, &d->claim), IDEM_OK);
            done(d, 0, n + 10);
            answers(forget_number(d, 0, n + 10), IDEM_OK);
            if (n % 2)
                restart(d);
            turn(d, n % 3);
        }
        for (int boot = 0; boot < 3; boot++) {
            is_new(d, 0, 1);
            restart(d);
            turn(d, d->medium.sector_count);
        }
    }
}

/* ------------------------------------------------------------------ epochs */

TEST(an_epoch_that_was_claimed_counts_in_every_boot_after)
{
    for (size_t m = 0; m < COUNT(media); m++) {
        device *d = senders_on(media[m]);
        idem_request spill;
        done(d, 1, 10);
        answers(number(d, 1, 11), IDEM_EXECUTE);
        is_new(d, 2, 1);
        for (int boot = 0; boot < 4; boot++) {
            restart(d);
            is_old(d, 1, 12);
            is_old(d, 1, 11);                       // not recover
            answers(number(d, 1, 10), IDEM_REPLAY);
            for (uint32_t n = 10; n <= 11; n++) {
                spill = number_of(d, "meter", 1, n);
                spill.payload = "spil";
                answers(begin_request(d, &spill), IDEM_MISMATCH);
            }
            is_new(d, 2, 1);
            turn(d, 3);
        }
        all_over(d);
        turn(d, 2 * d->medium.sector_count);
        restart(d);
        is_old(d, 1, LAST);
        is_new(d, 2, 1);
    }
}

/* A restart ends it too, and nobody can complete it afterwards. */
TEST(a_fenced_claim_without_end_is_over_in_the_end)
{
    device *d = defaults();
    idem_claim endless;

    d->config.capacity = 2;
    device_start(d, &nor, 0);
    d->ask.lease_ms = IDEM_LEASE_NONE;
    answers(number(d, 1, 1), IDEM_EXECUTE);
    endless = d->claim;
    d->ask.lease_ms = 0;
    done(d, 2, 1);
    answers(renew(d, &endless, IDEM_LEASE_NONE), IDEM_E_FENCED);
    answers(number(d, 2, 2), IDEM_E_FULL);
    restart(d);
    answers(complete_as(d, &endless, "x"), IDEM_E_FENCED);
    is_old(d, 1, 1);
    answers(number(d, 2, 2), IDEM_E_FULL);
    all_over(d);
    is_old(d, 1, 1);
    done(d, 2, 2);
    done(d, 2, 3);
}

/* ----------------------------------------------------- modes of durability */

/* What is synced is not lost with what is not. */
TEST(in_batch_mode_a_sync_makes_floors_durable)
{
    for (uint32_t lost = 0; lost < 30; lost++) {
        device *d = defaults();
        d->config.durability = IDEM_BATCH;
        d->config.capacity = 2;
        d->config.full = IDEM_EVICT_OLDEST;
        device_start(d, &cached, 0);
        for (uint32_t n = 1; n < 12 + lost; n++)
            done(d, 1, n);
        answers(sync_all(d), IDEM_OK);
        done(d, 1, 100);
        done(d, 1, 101);
        answers(number(d, 1, 102), IDEM_EXECUTE);
        is_old(d, 1, 100);
        d->medium.draws = 30;
        flash_off(&d->medium, lost);
        restart(d);
        is(d->table.stats.lost, 0);
        for (uint32_t n = 1; n < 12 + lost; n++)
            assert_int_not_equal(number(d, 1, n), IDEM_EXECUTE);
        is_old(d, 1, 9 + lost);
        is_old(d, 0, 1000);
    }
}

/* The note that a claim was given back may be there where the claim is not: it
   is none of the key that had the slot before. */
TEST(in_batch_mode_a_note_is_of_no_other_key)
{
    uint32_t alone = 0;

    for (uint32_t lost = 0; lost < 200; lost++) {
        device *d = defaults();
        int answer;
        d->config.durability = IDEM_BATCH;
        d->config.capacity = 1;
        d->config.full = IDEM_EVICT_OLDEST;
        device_start(d, &cached, 0);
        done(d, 0, 9);
        answers(sync_all(d), IDEM_OK);
        answers(number(d, 0, 10), IDEM_EXECUTE);            // 9 goes
        answers(release(d, &d->claim), IDEM_OK);
        d->medium.draws = 200;
        flash_off(&d->medium, lost);
        restart(d);
        answer = number(d, 0, 9);
        alone += answer == IDEM_REPLAY;
        assert_true(answer == IDEM_REPLAY || answer == IDEM_TOO_OLD);
    }
    assert_in_range(alone, 1, 199);
}

TEST(with_volatile_claims_what_was_completed_stays_old)
{
    for (size_t m = 0; m < COUNT(media); m++) {
        device *d = defaults();
        d->config.volatile_claims = 1;
        d->config.capacity = 2;
        d->config.full = IDEM_EVICT_OLDEST;
        device_start(d, media[m], 0);
        for (uint32_t n = 10; n < 200; n++) {
            done(d, 1, n);
            answers(number(d, 1, 1000), IDEM_EXECUTE);      // and is cut short
            if (n % 5 == 0)
                restart(d);
            else
                answers(release(d, &d->claim), IDEM_OK);
            for (uint32_t old = 1; old <= n; old += 1 + n / 20) {
                int answer = number(d, 1, old);
                if (answer == IDEM_EXECUTE)     // first, or was not executed
                    assert_true(old < 10 &&
                                release(d, &d->claim) == IDEM_OK);
            }
        }
        all_over(d);
        turn(d, 2 * d->medium.sector_count);
        restart(d);
        for (uint32_t n = 1; n < 200; n++)
            is_old(d, 1, n);
        is(d->table.stats.lost, 0);
    }
}

/* ----------------------------------------------------- callbacks that fail */

/* Each operation of the turns in which an account is carried fails once. */
TEST(floors_survive_callbacks_that_fail)
{
    static const int hows[] = { FLASH_UNDONE, FLASH_DONE, FLASH_HALF };
    static const int calls[] = { FLASH_PROG, FLASH_ERASE };

    for (size_t m = 0; m < COUNT(media); m++)
        for (size_t h = 0; h < COUNT(hows); h++)
            for (uint32_t n = 0; n < 24; n++) {
                device *d = senders_on(media[m]);
                uint32_t left = 400;
                done(d, 3, 10);
                all_over(d);
                turn(d, d->medium.sector_count - 3);
                flash_fail(&d->medium, calls[n % 2], n / 2, hows[h], 0);
                while (d->table.storage_error == 0 && left-- > 0) {
                    if (begin(d, "~") == IDEM_EXECUTE)
                        (void)release(d, &d->claim);
                    is_old(d, 3, 10);
                }
                flash_fail(&d->medium, calls[n % 2], 0, 0, 0);
                restart(d);
                is_old(d, 3, 10);
                turn(d, 2 * d->medium.sector_count);
                restart(d);
                is_old(d, 3, 10);
                is_old(d, 2, 11);
                is_new(d, 3, 11);
            }
}

/* -------------------------------------------------------------- power cuts */

static void three_are_old_and_two_are_known(device *d)
{
    d->config.senders = 2;
    d->config.capacity = 2;
    d->config.full = IDEM_EVICT_OLDEST;
    device_start(d, d->config.storage->prog_size == 16 ? &ecc : &nor_8, 0);
    for (uint32_t n = 10; n < 15; n++)
        done(d, 1, n);
    turn(d, 1);
}

static void two_more_and_a_new_epoch(device *d)
{
    for (uint32_t n = 15; n < 17 && !d->medium.off; n++)
        if (number(d, 1, n) == IDEM_EXECUTE)
            (void)complete(d, "x");
    if (!d->medium.off && number(d, 2, 1) == IDEM_EXECUTE)
        (void)complete(d, "x");
    while (!d->medium.off && !turned(d))
        if (begin(d, "~") == IDEM_EXECUTE && !turned(d))
            (void)release(d, &d->claim);
}

static void what_was_completed_is_not_executed(device *d)
{
    for (int boot = 0; boot < 2; boot++) {
        is(d->table.stats.lost, 0);
        for (uint32_t n = 1; n < 13; n++)
            is(number(d, 1, n), IDEM_TOO_OLD);
        for (uint32_t n = 13; n < 15; n++) {
            int answer = number(d, 1, n);
            assert_true(answer == IDEM_REPLAY || answer == IDEM_TOO_OLD);
        }
        restart(d);
    }
}

TEST(floors_survive_power_cuts_at_every_operation)
{
    assert_true(cut_each(&nor_8, three_are_old_and_two_are_known,
                         two_more_and_a_new_epoch,
                         what_was_completed_is_not_executed) > 50);
    assert_true(cut_each(&ecc, three_are_old_and_two_are_known,
                         two_more_and_a_new_epoch,
                         what_was_completed_is_not_executed) > 50);
}

/* ---------------------------------- answers that rely on the newest record */

/* A record that a cut may have torn is as if it had never been: the medium
   loses it between two boots. */
static void lose(device *d, operation of)
{
    memset(d->medium.bytes + of.at, d->medium.erased, of.len);
}

/* What says that a number is old is what the boot before wrote last. */
TEST(too_old_is_confirmed_before_it_is_answered)
{
    device *d = defaults();
    operation last;

    d->config.capacity = 1;
    d->config.full = IDEM_EVICT_OLDEST;
    device_start(d, &nor, 0);
    done(d, 0, 9);
    answers(number(d, 0, 8), IDEM_EXECUTE);     // 9 goes
    last = newest(d);
    restart(d);
    is_old(d, 0, 9);
    assert_true(turned(d));
    is_old(d, 0, 9);
    is(d->progs, 0);
    lose(d, last);
    restart(d);
    is(d->table.stats.lost, 0);
    is_old(d, 0, 9);
    answers(number(d, 0, 8), IDEM_RECOVER);
}

/* It was over in this boot: there is nothing to be written but that, and its
   sender's floor. */
TEST(that_a_number_is_over_is_confirmed_with_its_floor)
{
    for (size_t m = 0; m < COUNT(media); m++) {
        device *d = defaults();
        operation last;
        d->config.volatile_claims = 1;          // so one record has all
        device_start(d, media[m], 0);
        d->ask.retention_ms = 1000;             // too short to be told
        done(d, 4, 9);
        last = newest(d);
        restart(d);
        d->now += 1000;
        answers(maintain(d), IDEM_OK);
        is(d->table.used, 0);
        is(d->progs, 0);
        is_old(d, 4, 8);
        assert_true(turned(d));
        lose(d, last);
        for (int boot = 0; boot < 3; boot++) {
            restart(d);
            is(d->table.stats.lost, 0);
            is_old(d, 4, 8);
            is_old(d, 4, 9);
            is_old(d, 3, 10);
        }
    }
}

/* Also of one below the floor: what raised that is written nowhere yet.  5 was
   given up; after a restart its retention begins anew. */
TEST(that_a_number_below_the_floor_is_over_is_confirmed)
{
    for (size_t m = 0; m < COUNT(media); m++) {
        device *d = senders_on(media[m]);
        d->ask.retention_ms = 1000;             // too short to be told
        answers(number(d, 0, 5), IDEM_EXECUTE);
        done(d, 0, 3);
        restart(d);
        d->now += 1000;
        (void)rest(d);
        is(d->table.used, 0);
        is_old(d, 0, 3);
        assert_true(turned(d));
        restart(d);
        is(d->table.stats.lost, 0);
        is_old(d, 0, 3);
    }
}

/* The newest record may be that of an account: one that was carried ahead. */
TEST(an_account_that_is_the_newest_record_is_confirmed)
{
    device *d = senders_on(&nor);
    operation last = { 0, 0, 0 };

    done(d, 4, 9);
    all_over(d);
    for (uint32_t n = 0; n < 200 && !last.len; n++) {
        turn(d, 1);
        while (maintain(d) == IDEM_MORE)
            if (d->progs == 1 && !turned(d) && !d->erases)
                last = newest(d);
    }
    assert_int_not_equal(last.len, 0);
    restart(d);
    is_old(d, 4, 9);
    assert_true(turned(d));
    lose(d, last);
    restart(d);
    is_old(d, 4, 9);
}

/* ------------------------------------------------------------ after a loss */

TEST(too_old_goes_before_recover_after_a_loss)
{
    device *d = senders_on(&nor);
    operation record;

    done(d, 2, 10);
    all_over(d);
    answers(begin(d, "a"), IDEM_EXECUTE);
    record = newest(d);
    answers(complete(d, "a"), IDEM_OK);
    turn(d, 1);
    flash_flip(&d->medium, record.at + 8, 3);
    restart(d);
    is(d->table.stats.lost, 1);
    is_old(d, 2, 10);
    is_old(d, 1, 1);
    answers(number(d, 2, 11), IDEM_RECOVER);
    is(d->claim.attempt, 1);
    answers(begin(d, "b"), IDEM_RECOVER);
}

TEST(too_old_goes_before_full)
{
    device *d = defaults();

    d->config.capacity = 1;
    device_start(d, &nor, 0);
    done(d, 2, 10);
    all_over(d);
    done(d, 2, 11);
    restart(d);
    is_old(d, 2, 10);
    answers(number(d, 2, 12), IDEM_E_FULL);
}

/* ------------------------------------------------------------------- quota */

/* It says no out of the sender's account: nothing is read, nothing written. */
TEST(a_command_that_a_quota_refuses_costs_no_storage)
{
    for (size_t m = 0; m < COUNT(media); m++) {
        device *d = defaults();
        d->config.capacity = 40;
        d->config.quota = 20;
        device_start(d, media[m], 0);
        for (uint32_t n = 1; n <= 20; n++)
            done(d, 0, n);
        restart(d);
        done_from(d, "other", 0, 1);            // the boot has written
        for (uint32_t n = 21; n < 200; n++) {
            answers(number(d, 0, n), IDEM_E_FULL);
            is(d->reads + d->progs + d->erases + d->syncs, 0);
        }
        is(d->table.stats.full, 179);
        all_over(d);
        restart(d);
        done(d, 0, 21);
        is_old(d, 0, 20);
    }
}

TEST(a_quota_of_numbers_holds_over_restarts)
{
    device *d = defaults();

    d->config.quota = 2;
    device_start(d, &nor, 0);
    d->ask.retention_ms = 10;
    done(d, 0, 1);
    d->ask.retention_ms = 0;
    done(d, 0, 2);
    answers(number(d, 0, 3), IDEM_E_FULL);
    d->now += 10;
    answers(number(d, 0, 3), IDEM_EXECUTE);     // 1 lay about
    restart(d);
    answers(number(d, 0, 4), IDEM_E_FULL);
    is_old(d, 0, 1);
    answers(number_from(d, "other", 0, 4), IDEM_EXECUTE);
}

/* ----------------------------------------- another configuration at a boot */

/* Three senders have floors, and a table is opened that keeps two. */
TEST(fewer_senders_than_floors_are_a_loss)
{
    for (size_t m = 0; m < COUNT(media); m++) {
        device *d = defaults();
        d->config.senders = 3;
        d->ask.scope = "a";
        d->ask.scope_len = 1;
        device_start(d, media[m], 0);
        done_from(d, "a", 0, 10);
        done_from(d, "b", 0, 10);
        done_from(d, "c", 0, 10);
        all_over(d);
        restart(d);
        is(d->table.stats.lost, 0);
        turn(d, 2 * d->medium.sector_count);    // each in a record of its own
        d->config.senders = 2;
        restart(d);
        assert_true(d->table.stats.lost > 0);
        answers(number_from(d, "d", 0, 1), IDEM_E_FULL);
        is(d->table.stats.crowded, 1);
        // Of those that it has, nothing is lost.
        d->config.senders = 3;
        restart(d);
        is(d->table.stats.lost, 0);
        answers(number_from(d, "a", 0, 10), IDEM_TOO_OLD);
        answers(number_from(d, "b", 0, 10), IDEM_TOO_OLD);
        answers(number_from(d, "c", 0, 10), IDEM_TOO_OLD);
    }
}

/* The same, where their floors follow from their keys, not from a record. */
TEST(numbers_of_more_senders_than_accounts_are_a_loss)
{
    device *d = defaults();

    d->config.senders = 3;
    d->config.capacity = 3;
    device_start(d, &nor, 20);
    for (uint32_t round = 1; round <= 2; round++) {
        done_from(d, "a", round, 10);
        done_from(d, "b", round, 10);
        done_from(d, "c", round, 10);
        d->now += RETENTION + LEASE;
    }
    d->config.senders = 1;
    restart(d);
    assert_true(d->table.stats.lost > 0);
    // Then everything unknown may be a lost one.
    d->config.senders = 4;
    d->config.capacity = 4;
    restart(d);
    is(d->table.stats.lost, 0);
}

TEST(more_senders_and_more_keys_keep_the_floors)
{
    for (size_t m = 0; m < COUNT(media); m++) {
        device *d = defaults();
        device_medium(d, media[m], 40);
        d->now = 7;
        answers(device_open(d), IDEM_OK);
        done(d, 5, 10);
        done_from(d, "other", 0, 3);
        all_over(d);
        turn(d, 30);
        for (uint32_t n = 3; n < 9; n++) {
            d->config.senders = n;
            d->config.capacity = 5 + n;
            restart(d);
            is(d->table.stats.lost, 0);
            is_old(d, 5, 10);
            answers(number_from(d, "other", 0, 3), IDEM_TOO_OLD);
            is_new(d, 5, 11);
            turn(d, 25);
        }
    }
}

TEST(without_senders_accounts_are_told_as_lost)
{
    device *d = senders_on(&nor);

    done(d, 5, 10);
    all_over(d);
    turn(d, 2 * d->medium.sector_count);
    d->config.senders = 0;
    restart(d);
    assert_true(d->table.stats.lost > 0);
    answers(begin(d, "key"), IDEM_RECOVER);
}

/* ------------------------------------- more senders than there is room for */

TEST(who_was_not_forgotten_is_known_in_every_boot_after)
{
    for (size_t m = 0; m < COUNT(media); m++) {
        device *d = defaults();
        d->config.full = IDEM_EVICT_OLDEST;
        d->ask.scope = "c";
        d->ask.scope_len = 1;
        device_start(d, media[m], 0);
        done_from(d, "a", 0, 10);
        all_over(d);
        done_from(d, "b", 0, 10);
        all_over(d);
        done_from(d, "c", 0, 10);               // a goes
        is(d->table.stats.crowded, 1);
        for (int boot = 0; boot < 3; boot++) {
            turn(d, boot * d->medium.sector_count);
            restart(d);
            is(d->table.stats.lost, 0);
            answers(number_from(d, "b", 0, 10), IDEM_TOO_OLD);
            answers(number_from(d, "c", 0, 10), IDEM_REPLAY);
        }
    }
}

/* Not for one who was idle for longer, and was forgotten, but whose account is
   still in the journal. */
TEST(an_opening_forgets_who_is_idle_for_longest)
{
    for (unsigned turns = 1; turns < 30; turns++) {
        device *d = defaults();
        d->config.full = IDEM_EVICT_OLDEST;
        d->ask.scope = "b";
        d->ask.scope_len = 1;
        device_start(d, &nor, 0);
        done_from(d, "a", 0, 10);
        all_over(d);
        done_from(d, "b", 0, 10);
        all_over(d);
        turn(d, turns);
        done_from(d, "c", 0, 10);               // a goes
        is(d->table.stats.crowded, 1);
        answers(number_from(d, "b", 0, 10), IDEM_TOO_OLD);
        restart(d);
        answers(number_from(d, "b", 0, 10), IDEM_TOO_OLD);
    }
}

TEST(who_was_forgotten_for_another_is_not_in_its_way)
{
    device *d = defaults();

    d->config.full = IDEM_EVICT_OLDEST;
    d->config.senders = 1;
    device_start(d, &nor, 0);
    for (uint32_t n = 1; n < 50; n++) {
        const char *scope = nth(n);
        done_from(d, scope, 0, n);
        restart(d);
        is(d->table.stats.lost, 0);
        answers(number_from(d, scope, 0, n), IDEM_REPLAY);
        all_over(d);
        answers(number_from(d, scope, 0, n), IDEM_TOO_OLD);
    }
}

/* ------------------------------------------------------------- never twice */

typedef struct mode {
    const char *name;
    uint8_t durability, volatile_claims, full;
} mode;

/* The next cut tears in one of the ways there are for what it interrupts. */
static void tear(void *arg, const flash *f, const flash_op *op)
{
    device *d = (device *)arg;
    uint32_t count = 0;

    device_watch(arg, f, op);
    if (!f->armed || f->cut_in)
        return;
    for (int kind = 0; kind < FLASH_SWAY_BOOT; kind++)
        count += flash_torn_count(f, op, kind);
    d->medium.cut_variant %= count;
}

/* Against a memory that forgets nothing, over restarts, idle time and power
   that fails anywhere. */
static void a_life(const medium *m, const mode *of, uint32_t seed)
{
    enum { EPOCHS = 5, NUMBERS = 128, CALLS = 700 };
    static const char *const scopes[] = { "a", "b" };
    uint8_t completed[2][EPOCHS][NUMBERS] = { { { 0 } } };
    uint8_t synced[2][EPOCHS][NUMBERS] = { { { 0 } } };
    device *d = defaults();

    d->seed = seed;
    d->config.capacity = 4;
    d->config.quota = 3;
    d->config.durability = of->durability;
    d->config.volatile_claims = of->volatile_claims;
    d->config.full = of->full;
    device_start(d, m, 0);
    d->medium.watch = tear;
    for (uint32_t i = 0; i < CALLS; i++) {
        uint32_t who = dice(d, 2), step = i % (CALLS / EPOCHS + 1);
        uint32_t epoch = i / (CALLS / EPOCHS + 1);
        uint32_t sequence = 1 + step * 3 / 4 + dice(d, 4);
        int answer;
        if (epoch && dice(d, 6) == 0)
            epoch--;
        if (sequence > 4 && dice(d, 3) == 0)
            sequence -= dice(d, sequence < 40 ? sequence : 40);
        d->now += dice(d, 8) ? dice(d, RETENTION / 16) : dice(d, 2 * LEASE);
        if (!of->durability && dice(d, 12) == 0) {
            d->medium.draws = 3;
            flash_cut(&d->medium, dice(d, 6), dice(d, 1000));
        }
        answer = number_from(d, scopes[who], epoch, sequence);
        if (answer == IDEM_EXECUTE)
            assert_false(completed[who][epoch][sequence]);
        if (answer == IDEM_EXECUTE || answer == IDEM_RECOVER) {
            int ended = dice(d, 5);
            if (ended > 1 && complete(d, "x") == IDEM_OK)
                completed[who][epoch][sequence] = 1;
            else if (ended == 1 && answer == IDEM_EXECUTE)
                (void)release(d, &d->claim);
        }
        if (dice(d, 9) == 0 && !d->medium.off)
            (void)rest(d);
        if (of->durability && dice(d, 3) == 0 && sync_all(d) == IDEM_OK)
            memcpy(synced, completed, sizeof synced);
        if (d->medium.off || dice(d, 15) == 0) {
            if (of->durability) {
                d->medium.draws = 7;
                if (d->medium.durable && d->medium.unsynced)
                    flash_off(&d->medium, dice(d, 7));
                memcpy(completed, synced, sizeof completed);
            }
            restart(d);
            is(d->table.stats.lost, 0);
        }
    }
}

TEST(s4_no_number_is_ever_executed_twice)
{
    static const mode modes[] = {
        { "each", IDEM_EACH, 0, IDEM_REJECT },
        { "evict", IDEM_EACH, 0, IDEM_EVICT_OLDEST },
        { "volatile", IDEM_EACH, 1, IDEM_REJECT },
        { "volatile, evict", IDEM_EACH, 1, IDEM_EVICT_OLDEST },
        { "batch", IDEM_BATCH, 0, IDEM_REJECT },
        { "batch, evict", IDEM_BATCH, 0, IDEM_EVICT_OLDEST },
    };

    for (size_t m = 0; m < COUNT(media); m++)
        for (size_t i = 0; i < COUNT(modes); i++)
            for (uint32_t seed = 1; seed < 9; seed++)
                a_life(media[m], &modes[i], seed);
}

/* ---------------------------------------------- faults that are not mended */

/* 3 is completed; 5 is claimed a sector later, given up, and over; then 3 is.
   That 5 is over is nowhere written: after a restart its retention begins anew.
   So the floor must be written before the sector of 3 goes, which leaves below
   it. */
TEST(what_leaves_below_the_floor_stays_old)
{
    for (int volatile_claims = 0; volatile_claims < 2; volatile_claims++)
        for (unsigned turns = 1; turns < 30; turns++) {
            device *d = defaults();
            d->config.volatile_claims = (uint8_t)volatile_claims;
            device_start(d, &nor, 0);
            done(d, 0, 3);
            turn(d, 2);
            d->ask.retention_ms = 1000;
            answers(number(d, 0, 5), IDEM_EXECUTE);
            d->ask.retention_ms = 0;
            d->now += 2000;
            (void)rest(d);
            is_old(d, 0, 5);
            d->now += RETENTION;
            (void)rest(d);
            is_old(d, 0, 3);
            turn(d, turns);
            is_old(d, 0, 3);
            restart(d);
            is_old(d, 0, 3);
        }
}

/* The same of an eviction whose claim could not be written. */
TEST(what_a_failed_claim_evicted_lets_nothing_be_executed)
{
    for (unsigned turns = 0; turns < 30; turns++) {
        device *d = defaults();
        idem_claim three;
        d->config.full = IDEM_EVICT_OLDEST;
        d->config.capacity = 2;
        device_start(d, &nor, 0);
        d->ask.retention_ms = 1000;
        answers(number(d, 0, 3), IDEM_EXECUTE);
        three = d->claim;
        turn(d, 2);
        d->ask.retention_ms = 0;
        done(d, 0, 5);
        answers(complete_as(d, &three, "x"), IDEM_OK);
        flash_fail(&d->medium, FLASH_PROG, 0, FLASH_UNDONE, 0);
        answers(number(d, 0, 6), IDEM_E_STORAGE);
        d->now += 2000;
        (void)rest(d);
        is_old(d, 0, 3);
        turn(d, turns);
        restart(d);
        assert_int_not_equal(number(d, 0, 3), IDEM_EXECUTE);
    }
}

/* A number whose slot another key has, and for which no account is left. */
TEST(a_floor_without_an_account_is_a_loss)
{
    device *d = defaults();

    d->config.capacity = 1;
    device_start(d, &nor, 0);
    done_from(d, "a", 0, 1);
    all_over(d);
    done_from(d, "b", 0, 1);
    all_over(d);
    done_from(d, "b", 0, 2);
    restart(d);
    is(d->table.stats.lost, 0);
    d->config.senders = 1;
    restart(d);
    assert_true(d->table.stats.lost > 0);
}

/* An outcome that failed to be written, and is on the medium all the same. */
TEST(what_is_given_back_after_a_failed_outcome_is_gone)
{
    device *d = defaults();

    d->config.volatile_claims = 1;
    device_start(d, &nor, 0);
    done_from(d, "a", 0, 1);
    answers(number_from(d, "a", 0, 2), IDEM_EXECUTE);
    flash_fail(&d->medium, FLASH_PROG, 0, FLASH_DONE, 0);
    answers(complete(d, "a"), IDEM_E_STORAGE);
    answers(release(d, &d->claim), IDEM_OK);
    restart(d);
    answers(number_from(d, "a", 0, 2), IDEM_EXECUTE);
}

/* Two that were never completed: the older one's sector is needed. */
TEST(of_what_is_unsure_the_oldest_sector_is_needed)
{
    device *d = defaults();

    device_start(d, &nor, 0);
    answers(number_from(d, "a", 0, 5), IDEM_EXECUTE);
    all_over(d);
    answers(number_from(d, "a", 0, 5), IDEM_TOO_OLD);
    turn(d, 2);
    answers(number_from(d, "a", 0, 6), IDEM_EXECUTE);
    all_over(d);
    answers(number_from(d, "a", 0, 6), IDEM_TOO_OLD);
    turn(d, 2 * d->medium.sector_count);
    restart(d);
    answers(number_from(d, "a", 0, 5), IDEM_TOO_OLD);
}

/* Who has keys is never forgotten for another, also not by an opening. */
TEST(an_opening_forgets_no_sender_that_has_keys)
{
    const uint32_t hour = 3600000;
    device *d = defaults();

    d->config.full = IDEM_EVICT_OLDEST;
    device_start(d, &nor, 0);
    done_from(d, "b", 0, 5);
    all_over(d);
    d->ask.retention_ms = 10 * hour;
    done_from(d, "b", 0, 6);
    d->ask.retention_ms = 0;
    d->now += hour;
    done_from(d, "a", 0, 1);
    d->now += hour;
    (void)rest(d);
    done_from(d, "c", 0, 1);                    // a goes
    answers(number_from(d, "b", 0, 5), IDEM_TOO_OLD);
    restart(d);
    answers(number_from(d, "b", 0, 6), IDEM_REPLAY);
    answers(number_from(d, "b", 0, 5), IDEM_TOO_OLD);
}
