/* SPDX-License-Identifier: 0BSD */
/*
 * Numbers and accounts (>>senders of the manual) over restarts: what is lost
 * with a record, with an account, with another configuration.  What is a matter
 * of calls alone is in numbers.c.
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

/* ----------------------------------------------------- modes of durability */

/* Of a torn batch the claim that had the slot next may be there, and the note
   that its key before was given back may not. */
TEST(in_batch_mode_what_was_given_back_is_not_old)
{
    uint32_t kept = 0;

    for (uint32_t lost = 0; lost < 100; lost++) {
        device *d = defaults();
        d->config.durability = IDEM_BATCH;
        d->config.capacity = 1;
        device_start(d, &cached, 0);
        answers(number(d, 0, 9), IDEM_EXECUTE);
        answers(sync_all(d), IDEM_OK);
        answers(release(d, &d->claim), IDEM_OK);
        answers(number(d, 0, 10), IDEM_EXECUTE);
        d->medium.draws = 100;
        flash_off(&d->medium, lost);
        restart(d);
        kept += number(d, 0, 10) == IDEM_RECOVER;
        answers(release(d, &d->claim), IDEM_OK);
        answers(number(d, 0, 9), IDEM_EXECUTE);
    }
    assert_in_range(kept, 1, 99);
}

/* The note that a key was given back may be there where its claim is not: it is
   none of the key that had the slot before. */
TEST(in_batch_mode_a_note_is_of_no_other_key)
{
    for (uint32_t lost = 0; lost < 100; lost++) {
        device *d = defaults();
        int answer;
        d->config.durability = IDEM_BATCH;
        d->config.capacity = 1;
        d->config.full = IDEM_EVICT_OLDEST;
        device_start(d, &cached, 0);
        done(d, 0, 9);
        answers(sync_all(d), IDEM_OK);
        answers(number(d, 0, 10), IDEM_EXECUTE);            // 9 goes
        d->medium.draws = 100;
        flash_fail(&d->medium, FLASH_SYNC, 1, FLASH_UNDONE, 0);
        answers(release(d, &d->claim), IDEM_E_STORAGE);
        flash_off(&d->medium, lost);
        restart(d);
        answer = number(d, 0, 9);
        assert_true(answer == IDEM_REPLAY || answer == IDEM_TOO_OLD);
    }
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
