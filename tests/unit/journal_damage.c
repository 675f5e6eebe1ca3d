/* SPDX-License-Identifier: 0BSD */
/*
 * Storage that was damaged: nothing is answered wrongly, what is intact is
 * read, and what is lost is told (S5); after a loss unknown keys are in doubt
 * for one retention (S4).
 */
#include "device.h"

static const medium roomy = { "NOR, large", FLASH_NOR, 0, 8, 4096, 0xFF };
static const medium roomy_ecc = { "ECC, large", FLASH_ECC, 0, 16, 4096, 0xFF };

/* How many keys, of those that were finished, are not replayed.  Those are
   recovered: never executed, never answered with another's outcome. */
static uint32_t missing(device *d, uint32_t from, uint32_t to)
{
    uint32_t count = 0;

    for (uint32_t n = from; n < to; n++) {
        if (find(d, nth(n)) == IDEM_OK && d->entry.status == IDEM_COMPLETED) {
            replays(d, nth(n));
            continue;
        }
        count++;
        answers(begin(d, nth(n)), IDEM_RECOVER);
        answers(release(d, &d->claim), IDEM_OK);
    }
    return count;
}

/* Keys in several sectors; the newest record tells of none of them. */
static device *filled(const medium *m)
{
    device *d = device_on(m);

    for (uint32_t n = 0; n < 6; n++) {
        finish(d, nth(n));
        if (n % 2)
            turn(d, 1);
    }
    answers(begin(d, "~"), IDEM_EXECUTE);
    answers(release(d, &d->claim), IDEM_OK);
    return d;
}

/* -------------------------------------------------------------- the bit, S5 */

static void flip_each(const medium *m, uint32_t step)
{
    device *d = filled(m);
    snapshot s = save(d);

    for (uint32_t bit = 0; bit < 8 * d->medium.size; bit += step) {
        uint32_t at = bit / 8, lost;
        if (d->medium.bytes[at] == m->erased)
            continue;
        flash_flip(&d->medium, at, bit % 8);
        restart(d);
        lost = missing(d, 0, 6);
        assert_in_range(lost, 0, at % m->sector_size < d->header_len ? 0 : 1);
        if (lost)
            assert_int_not_equal(d->table.stats.lost, 0);
        load(d, &s);
    }
    free(s.memory);
}

TEST(s5_a_flipped_bit_costs_one_record_and_in_a_header_none)
{
    flip_each(&nor_8, 7);
    flip_each(&zeros, 11);
    flip_each(&eeprom, 11);
}

TEST(s5_many_flipped_bits_are_never_believed)
{
    device *d = filled(&nor);
    snapshot s = save(d);

    for (int round = 0; round < 500; round++) {
        for (uint32_t n = 2 + dice(d, 9); n > 0; n--)
            flash_flip(&d->medium, dice(d, d->medium.size), dice(d, 8));
        if (reopen(d) == IDEM_OK)
            for (uint32_t n = 0; n < 6; n++)
                if (begin(d, nth(n)) == IDEM_REPLAY)
                    assert_true(is_outcome_of(d, nth(n)));
        load(d, &s);
    }
    free(s.memory);
}

TEST(s5_an_unreadable_granule_is_a_loss_or_none)
{
    device *d = filled(&ecc);
    snapshot s = save(d);

    for (uint32_t at = 0; at < d->medium.size; at += ecc.granule) {
        d->dead_at = at;
        d->dead_len = ecc.granule;
        restart(d);
        if (missing(d, 0, 6))
            assert_int_not_equal(d->table.stats.lost, 0);
        load(d, &s);
    }
    free(s.memory);
}

TEST(s5_a_lost_sector_is_a_loss_or_none)
{
    device *d = filled(&nor_8);
    snapshot s = save(d);
    uint32_t head = newest(d).at / 512;

    for (uint32_t sector = 0; sector < d->storage.sector_count; sector++)
        for (int how = 0; how < 3; how++) {
            if (how == 0)
                flash_fill(&d->medium, sector * 512, 512, 0xFF);
            else if (how == 1)
                flash_noise(&d->medium, sector * 512, 512, sector);
            else
                d->medium.bad[sector] = FLASH_BAD_READ;
            restart(d);
            d->medium.bad[sector] = 0;
            // Of the newest one nothing at all may be left to tell.
            if (sector != head && missing(d, 0, 6))
                assert_int_not_equal(d->table.stats.lost, 0);
            load(d, &s);
        }
    free(s.memory);
}

TEST(s5_a_truncated_storage_is_never_believed)
{
    device *d = filled(&nor_8);
    snapshot s = save(d);

    for (uint32_t at = 0; at < d->medium.size; at += 56) {
        flash_truncate(&d->medium, at);
        if (reopen(d) == IDEM_OK)
            for (uint32_t n = 0; n < 6; n++)
                if (begin(d, nth(n)) == IDEM_REPLAY)
                    assert_true(is_outcome_of(d, nth(n)));
        load(d, &s);
    }
    free(s.memory);
}

TEST(damage_while_the_table_is_open_does_no_harm)
{
    device *d = filled(&nor);

    flash_noise(&d->medium, 0, d->medium.size, 3);
    is(missing(d, 0, 6), 0);
    is(d->table.stats.lost, 0);
}

/* ---------------------------------------------------- the end of the newest */

enum { ANYTHING, ZEROS, DEAD, HOWS };

static void spoil(device *d, uint32_t at, uint32_t len, int how)
{
    if (how == ANYTHING)
        flash_noise(&d->medium, at, len, at);
    else if (how == ZEROS)
        flash_fill(&d->medium, at, len, 0);
    else {
        d->dead_at = at;
        d->dead_len = len;
    }
}

/* A sector's last byte looks like the begin of a record: what would be behind
   it is not read, which is outside the table's memory (a sanitizer sees it) if
   the longest record fills that. */
TEST(s8_a_record_that_begins_in_the_last_byte_ends_there)
{
    for (uint8_t more = 0; more < 4; more++) {
        device *d = filled(&nor);
        for (uint32_t n = 1; n <= d->storage.sector_count; n++)
            flash_fill(&d->medium, n * d->storage.sector_size - 1, 1, 0x88);
        d->config.key_max = (uint16_t)(KEY_MAX - more);
        restart(d);
        is(missing(d, 0, 6), 0);
    }
}

/* Seven outcomes in one sector, of which the last records cannot be read. */
static void lose_last(const medium *m, uint32_t records, int how)
{
    device *d = device_on(m);
    operation o[14];

    turn(d, 1);
    for (uint32_t n = 0; n < 7; n++) {
        answers(begin(d, nth(n)), IDEM_EXECUTE);
        o[2 * n] = newest(d);
        answers(complete(d, nth(n)), IDEM_OK);
        o[2 * n + 1] = newest(d);
    }
    spoil(d, o[14 - records].at,
          o[13].at + o[13].len - o[14 - records].at, how);
    restart(d);
    assert_int_not_equal(d->table.stats.lost, 0);
    is(missing(d, 0, 7), (records + 1) / 2);
}

TEST(three_unreadable_records_at_the_end_are_a_loss)
{
    for (int how = 0; how < HOWS; how++)
        for (uint32_t records = 3; records < 8; records++) {
            lose_last(&roomy, records, how);
            lose_last(&roomy_ecc, records, how);
        }
}

TEST(one_unreadable_record_at_the_end_may_be_torn)
{
    for (int how = 0; how < HOWS; how++) {
        device *d = device_on(&roomy);
        finish(d, "a");
        finish(d, "b");
        spoil(d, newest(d).at, newest(d).len, how);
        restart(d);
        is(d->table.stats.lost, 0);
        replays(d, "a");
        answers(begin(d, "b"), IDEM_RECOVER);
    }
}

/* It may be of a batch that was never acknowledged. */
TEST(in_batch_mode_an_unreadable_end_is_no_loss)
{
    device *d = device_on(&roomy);
    uint32_t end;

    d->config.durability = IDEM_BATCH;
    restart(d);
    finish(d, "a");
    end = newest(d).at + newest(d).len;
    answers(sync_all(d), IDEM_OK);
    for (uint32_t n = 0; n < 5; n++)
        finish(d, nth(n));
    flash_noise(&d->medium, end, newest(d).at + newest(d).len - end, 1);
    restart(d);
    is(d->table.stats.lost, 0);
    replays(d, "a");
    finish(d, "b");
}

TEST(a_record_that_another_follows_was_not_torn)
{
    for (int how = 0; how < HOWS; how++) {
        device *d = device_on(&roomy);
        operation b;
        finish(d, "a");
        finish(d, "b");
        b = newest(d);
        answers(begin(d, "c"), IDEM_EXECUTE);
        spoil(d, b.at, b.len, how);
        restart(d);
        is(d->table.stats.lost, 1);
        replays(d, "a");
        answers(begin(d, "b"), IDEM_RECOVER);
        answers(begin(d, "c"), IDEM_RECOVER);
    }
}

/* How many programs the last call did before that of a header: the records that
   it carried. */
static uint32_t carried(const device *d)
{
    uint32_t i, count = 0;

    for (i = 0; i < d->writes; i++) {
        if (d->wrote[i].call != FLASH_PROG)
            continue;
        if (d->wrote[i].at % d->medium.sector_size == 0)
            return count;
        count++;
    }
    return 0;
}

/* Seven keys, and a call that has just carried three records or more. */
static device *carrying(const medium *m)
{
    device *d = device_on(m);

    for (uint32_t n = 0; n < 7; n++)
        finish(d, nth(n));
    for (;;) {
        answers(begin(d, "~"), IDEM_EXECUTE);
        if (carried(d) >= 3)
            return d;
        answers(release(d, &d->claim), IDEM_OK);
        if (carried(d) >= 3)
            return d;
    }
}

/* Begins, completes, forgets by turns: the n-th call of many. */
static void nth_call(device *d, uint32_t n)
{
    if (n % 3 == 0)
        answers(begin(d, nth(n / 3)), IDEM_EXECUTE);
    else if (n % 3 == 1)
        answers(complete(d, nth(n / 3)), IDEM_OK);
    else if (n > 9)
        answers(forget(d, nth(n / 3 - 3)), IDEM_OK);
}

/* The record behind which the next header says that its sector ends; it is as
   good as torn, and nothing behind it in its sector tells that it was not. */
TEST(the_last_record_before_a_stated_end_is_a_loss)
{
    for (size_t m = 0; m < COUNT(media); m++) {
        device *d = device_on(media[m]);
        operation last = { 0, 0, 0 };
        uint32_t n = 0;
        turn(d, 1);
        do {
            if (d->writes)
                last = newest(d);
            nth_call(d, n++);
        } while (!turned(d));
        flash_flip(&d->medium, last.at, 7);
        restart(d);
        assert_int_not_equal(d->table.stats.lost, 0);
        assert_int_not_equal(begin(d, nth((n - 1) / 3)), IDEM_EXECUTE);
    }
}

/* Where the sector begins that was written to last. */
static uint32_t header_of_newest(const device *d)
{
    uint32_t at = d->wrote[d->writes - 1].at;

    return at - at % d->medium.sector_size;
}

/* A record that one boot could not read, and the next one can; what would tell
   that it is behind the end of its sector is damaged.  Its time is ahead of
   that in the headers after it, which were written by who knew nothing of it. */
TEST(time_that_would_go_back_stands)
{
    device *d = device_on(&nor);
    uint8_t record[256];
    operation hidden;
    uint32_t header;

    turn(d, 1);
    finish(d, "a");
    d->now += RETENTION / 2;
    answers(begin(d, "b"), IDEM_EXECUTE);
    hidden = newest(d);
    assert_true(hidden.len <= sizeof record);
    memcpy(record, d->medium.bytes + hidden.at, hidden.len);
    memset(d->medium.bytes + hidden.at, d->medium.erased, hidden.len);
    restart(d);
    turn(d, 1);
    header = header_of_newest(d);
    turn(d, 1);
    flash_flip(&d->medium, header + 20, 0);
    flash_flip(&d->medium, header + 30, 0);
    memcpy(d->medium.bytes + hidden.at, record, hidden.len);
    restart(d);
    is(d->table.stats.lost, 1);
    answers(find(d, "a"), IDEM_OK);
    is(d->entry.left_ms, RETENTION / 2);
}

/* The medium says twice that an outcome failed which it has; and the header of
   the sector where the second stands is damaged, so the end that it states for
   the first one's is not known.  Of one claim one outcome is taken. */
TEST(of_two_outcomes_of_one_claim_one_is_replayed)
{
    device *d = device_on(&nor);
    idem_claim claim;
    uint32_t header;

    turn(d, 1);
    answers(begin(d, "a"), IDEM_EXECUTE);
    claim = d->claim;
    flash_fail(&d->medium, FLASH_PROG, 0, FLASH_DONE, 0);
    answers(complete_as(d, &claim, "x"), IDEM_E_STORAGE);
    flash_fail(&d->medium, FLASH_PROG, 2, FLASH_DONE, 0);
    answers(complete_as(d, &claim, "x"), IDEM_E_STORAGE);
    header = header_of_newest(d);
    answers(complete_as(d, &claim, "y"), IDEM_OK);
    assert_int_not_equal(header_of_newest(d), header);
    flash_flip(&d->medium, header + 20, 0);
    flash_flip(&d->medium, header + 30, 0);
    restart(d);
    is(d->table.stats.lost, 1);
    answers(begin(d, "a"), IDEM_REPLAY);
    assert_true(is_outcome_of(d, "x") || is_outcome_of(d, "y"));
}

static uint32_t fickle_at, fickle_after;

/* So many reads of a header are as they should be, and then no more. */
static int fickle_read(void *ctx, uint32_t at, void *dst, uint32_t len)
{
    int result = device_read(ctx, at, dst, len);

    if (at == fickle_at && fickle_after-- == 0) {
        memset(dst, 0x5A, len);
        fickle_after = 0;
    }
    return result;
}

TEST(a_header_that_reads_otherwise_a_moment_later_is_a_loss)
{
    for (uint32_t after = 0; after < 6; after++) {
        device *d = filled(&nor_8);
        finish(d, "a");
        fickle_at = newest(d).at / 512 * 512;
        fickle_after = after;
        d->storage.read = fickle_read;
        restart(d);
        if (find(d, "a") == IDEM_OK) {
            replays(d, "a");
        } else {
            answers(begin(d, "a"), IDEM_RECOVER);
            assert_int_not_equal(d->table.stats.lost, 0);
        }
    }
}

TEST(a_carried_record_in_the_middle_is_a_loss)
{
    for (int how = 0; how < HOWS; how++)
        for (uint32_t i = 0; i < 3; i++) {
            device *d = carrying(&roomy);
            operation o = d->wrote[1 + i];      // behind an erase
            spoil(d, o.at, o.len, how);
            restart(d);
            is(d->table.stats.lost, 1);
            assert_in_range(missing(d, 0, 7), 0, 1);
        }
}

/* Whichever bit flips, also that which makes its retention an impossible one. */
TEST(a_flipped_bit_in_a_claim_of_the_longest_retention_is_told)
{
    for (uint32_t bit = 0;; bit++) {
        device *d = device_on(&roomy);
        operation o;
        finish(d, "a");
        d->ask.retention_ms = IDEM_RETENTION_MAX;
        answers(begin(d, "b"), IDEM_EXECUTE);
        o = newest(d);
        if (bit == 8 * o.len)
            break;
        answers(complete(d, "b"), IDEM_OK);
        answers(begin(d, "c"), IDEM_EXECUTE);
        flash_flip(&d->medium, o.at + bit / 8, bit % 8);
        restart(d);
        replays(d, "a");
        if (begin(d, "b") == IDEM_REPLAY)
            assert_true(is_outcome_of(d, "b"));
        else
            assert_int_not_equal(d->table.stats.lost, 0);
    }
}

/* --------------------------------------------------------------- the header */

TEST(two_bytes_of_garbage_in_the_newest_header_hide_nothing)
{
    for (size_t m = 0; m < COUNT(media); m++)
        for (uint32_t i = 0; i < 31; i++) {
            device *d = device_on(media[m]);
            uint32_t head;
            finish(d, nth(0));
            turn(d, 2);
            finish(d, nth(1));
            finish(d, nth(2));
            answers(begin(d, "~"), IDEM_EXECUTE);
            head = newest(d).at / d->medium.sector_size * d->medium.sector_size;
            d->medium.bytes[head + i] ^= 0xA5;
            d->medium.bytes[head + i + 1] ^= 0x3C;
            restart(d);
            replays(d, nth(0));
            if (missing(d, 1, 3))
                assert_int_not_equal(d->table.stats.lost, 0);
        }
}

TEST(two_bytes_of_garbage_in_the_only_header_are_told)
{
    for (size_t m = 0; m < COUNT(media); m++)
        for (uint32_t i = 0; i < 31; i++) {
            device *d = device_on(media[m]);
            uint32_t head;
            finish(d, nth(0));
            answers(begin(d, "~"), IDEM_EXECUTE);
            head = newest(d).at / d->medium.sector_size * d->medium.sector_size;
            d->medium.bytes[head + i] ^= 0xA5;
            d->medium.bytes[head + i + 1] ^= 0x3C;
            restart(d);
            if (missing(d, 0, 1))
                assert_int_not_equal(d->table.stats.lost, 0);
        }
}

TEST(a_header_in_the_middle_hides_nothing)
{
    device *d = filled(&nor_8);
    snapshot s = save(d);

    for (uint32_t at = 0; at < d->medium.size; at += 512)
        for (uint32_t i = 0; i < d->header_len; i += 3) {
            flash_noise(&d->medium, at + i, 3, at);
            restart(d);
            if (missing(d, 0, 6))
                assert_int_not_equal(d->table.stats.lost, 0);
            load(d, &s);
        }
    free(s.memory);
}

/* ------------------------------------------------------- the doubt after it */

/* A device that has lost the outcome of "b", and knows "a" and "c"; with at
   least so many sectors. */
static device *in_doubt(const medium *m, uint32_t sectors)
{
    device *d = device_on(m);
    operation b;

    device_start(d, m, sectors);
    finish(d, "a");
    finish(d, "b");
    b = newest(d);
    answers(begin(d, "c"), IDEM_EXECUTE);
    answers(complete(d, "c"), IDEM_OK);
    flash_noise(&d->medium, b.at, b.len, 1);
    restart(d);
    is(d->table.stats.lost, 1);
    return d;
}

/* How long unknown keys are still in doubt. */
static uint32_t doubt_left(device *d)
{
    uint32_t ms = 1;

    answers(idem_doubt(&d->table, &ms, d->now), IDEM_OK);
    return ms;
}

TEST(s4_unknown_keys_are_in_doubt_for_a_retention)
{
    device *d = in_doubt(&roomy, 0);

    is(doubt_left(d), RETENTION);
    answers(begin(d, "x"), IDEM_RECOVER);
    is(d->claim.attempt, 1);
    answers(release(d, &d->claim), IDEM_OK);
    d->now += RETENTION - 1;
    is(doubt_left(d), 1);
    answers(begin(d, "y"), IDEM_RECOVER);
    d->now += 1;
    is(doubt_left(d), 0);
    answers(begin(d, "z"), IDEM_EXECUTE);
}

TEST(s4_doubt_goes_on_over_restarts_and_ends)
{
    device *d = in_doubt(&nor_8, 0);

    for (uint32_t n = 0; n < 4; n++) {
        answers(begin(d, nth(n)), IDEM_RECOVER);
        answers(complete(d, nth(n)), IDEM_OK);
        restart(d);
        d->now += RETENTION / 5;
    }
    is(d->table.stats.lost, 0);                 // but not over:
    assert_in_range(doubt_left(d), 1, RETENTION);
    answers(begin(d, "x"), IDEM_RECOVER);
    answers(complete(d, "x"), IDEM_OK);
    d->now += RETENTION;
    finish(d, "y");
    restart(d);
    is(d->table.stats.lost, 0);
    finish(d, "z");
}

/* Though the ring is so large that the damage would stay where it is for long,
   and be found again at each boot. */
TEST(s4_doubt_ends_on_a_device_that_restarts_often)
{
    device *d = in_doubt(&roomy, 60);
    int answer = IDEM_RECOVER;

    for (uint32_t n = 0; n < 20; n++) {
        d->now += RETENTION / 5;
        answer = begin(d, nth(n));
        assert_true(answer == IDEM_RECOVER || answer == IDEM_EXECUTE);
        answers(release(d, &d->claim), IDEM_OK);
        restart(d);
    }
    answers(answer, IDEM_EXECUTE);
}

TEST(in_doubt_known_keys_are_answered_as_ever)
{
    device *d = in_doubt(&nor, 0);

    replays(d, "a");
    replays(d, "c");
    answers(begin_with(d, "a", "spill"), IDEM_MISMATCH);
    answers(begin(d, "b"), IDEM_RECOVER);
    answers(begin(d, "b"), IDEM_BUSY);
    d->ask.age_ms = RETENTION;
    answers(begin(d, "x"), IDEM_TOO_OLD);
    d->ask.age_ms = 0;
    for (uint32_t n = 0; n < 5; n++)
        answers(begin(d, nth(n)), IDEM_RECOVER);
    answers(begin(d, "x"), IDEM_E_FULL);
}

TEST(s10_a_loss_is_told_at_every_boot_until_it_is_carried_past)
{
    device *d = in_doubt(&nor, 0);

    restart(d);
    is(d->table.stats.lost, 1);
    turn(d, d->storage.sector_count);
    restart(d);
    is(d->table.stats.lost, 0);
    replays(d, "a");
}

/* ---------------------------------------------------------- what is no loss */

/* The claim is in a sector that is dead, the outcome in one that is not. */
TEST(what_is_bound_to_a_dead_claim_is_no_damage)
{
    device *d = device_on(&nor);

    for (uint32_t n = 0; n < d->storage.sector_count; n++) {
        idem_claim claim;
        answers(begin(d, "a"), IDEM_EXECUTE);
        claim = d->claim;
        d->ask.lease_ms = 0;
        turn(d, n);
        answers(complete_as(d, &claim, "a"), IDEM_OK);
        answers(forget(d, "a"), IDEM_OK);
        for (uint32_t turns = 0; turns < d->storage.sector_count; turns++) {
            restart(d);
            is(d->table.stats.lost, 0);
            is(live(d), 0);
            turn(d, 1);
        }
    }
}

/* ------------------------------------------------ what is not taken for one */

/* A response holds, byte for byte, a record that was there before; the record
   around it is damaged, so its inside is looked at. */
TEST(s3_a_record_hidden_in_a_response_is_not_taken)
{
    device *d = &the_device;

    for (uint32_t shift = 0; shift < 8; shift++) {
        uint8_t hidden[8 + 200];
        idem_outcome out;
        operation o;
        device_defaults(d);
        d->config.response_max = sizeof hidden;
        device_start(d, &roomy, 0);
        memset(hidden, 0x80, sizeof hidden);
        memset(&out, 0, sizeof out);
        answers(begin(d, "a"), IDEM_EXECUTE);
        assert_true(newest(d).len <= 200);
        memcpy(hidden + shift, d->medium.bytes + newest(d).at, newest(d).len);
        answers(release(d, &d->claim), IDEM_OK);
        answers(begin(d, "b"), IDEM_EXECUTE);
        out.response = hidden;
        out.response_len = sizeof hidden;
        answers(idem_complete(&d->table, &d->claim, &out, d->now), IDEM_OK);
        o = newest(d);
        answers(begin(d, "c"), IDEM_EXECUTE);
        flash_flip(&d->medium, o.at, 0);
        restart(d);
        is(d->table.stats.lost, 1);
        answers(find(d, "a"), IDEM_E_NOT_FOUND);
    }
}

/* The records of a key that was forgotten, put behind the newest one. */
TEST(a_record_in_another_place_is_not_taken)
{
    device *d = device_on(&roomy);
    uint8_t copy[512];
    operation claim, end;

    answers(begin(d, "a"), IDEM_EXECUTE);
    claim = newest(d);
    answers(complete(d, "a"), IDEM_OK);
    end = newest(d);
    memcpy(copy, d->medium.bytes + claim.at, end.at + end.len - claim.at);
    answers(forget(d, "a"), IDEM_OK);
    flash_load(&d->medium, newest(d).at + newest(d).len, copy,
               end.at + end.len - claim.at);
    restart(d);
    answers(find(d, "a"), IDEM_E_NOT_FOUND);
}

/* A sector as it was one round of the ring ago. */
TEST(a_sector_of_an_earlier_round_is_not_taken)
{
    device *d = device_on(&nor_8);
    uint8_t *old;
    uint32_t size = d->medium.size;

    turn(d, 1);
    finish(d, "a");
    old = (uint8_t *)device_alloc(size);
    memcpy(old, d->medium.bytes, size);
    answers(forget(d, "a"), IDEM_OK);
    answers(begin(d, "a"), IDEM_EXECUTE);
    answers(complete(d, "b"), IDEM_OK);
    turn(d, d->storage.sector_count);
    for (uint32_t at = 0; at < size; at += 512) {
        snapshot s = save(d);
        flash_load(&d->medium, at, old + at, 512);
        restart(d);
        if (begin(d, "a") == IDEM_REPLAY)
            assert_true(is_outcome_of(d, "b"));
        load(d, &s);
        free(s.memory);
    }
    free(old);
}

/* A cut ends a turn behind what it carried.  At the next one less is carried to
   the same place, and its erase has left the rest. */
TEST(what_an_erase_has_left_behind_the_carried_is_not_taken)
{
    device *d = device_on(&roomy);
    uint32_t size = d->medium.sector_size, from, end, at, n = 0;
    uint8_t old[4096];
    snapshot s;

    for (uint32_t k = 0; k < 7; k++)
        finish(d, nth(k));
    for (s = save(d); n < 5;) {
        free(s.memory);
        s = save(d);
        restart(d);
        answers(begin(d, "~"), IDEM_EXECUTE);
        n = carried(d);
        answers(release(d, &d->claim), IDEM_OK);
    }
    load(d, &s);
    free(s.memory);
    restart(d);
    flash_cut(&d->medium, 1 + n, FLASH_NOTHING);    // an erase, n records
    answers(begin(d, "~"), IDEM_E_STORAGE);
    from = d->wrote[n].at / size * size;
    memcpy(old, d->medium.bytes + from, size);
    end = d->wrote[n].at + d->wrote[n].len;
    restart(d);
    d->now += RETENTION + 1;
    for (uint32_t k = 0; k < 7; k++)
        answers(find(d, nth(k)), IDEM_E_NOT_FOUND);
    answers(begin(d, "new"), IDEM_EXECUTE);
    at = newest(d).at + newest(d).len;
    at += (8 - at % 8) % 8;
    is(at / size * size, from);
    assert_in_range(at, from, end - 1);
    flash_load(&d->medium, at, old + (at - from), end - at);
    restart(d);
    is(live(d), 1);
    answers(begin(d, "new"), IDEM_RECOVER);
}

/* The same, and what is left is what was carried: later than it should be. */
TEST(time_does_not_run_back_in_what_an_erase_has_left)
{
    device *d = device_on(&roomy);
    uint8_t old[512];
    operation o;

    finish(d, "a");
    restart(d);
    d->now += 9000;
    flash_cut(&d->medium, 2, FLASH_NOTHING);        // an erase, one record
    answers(begin(d, "b"), IDEM_E_STORAGE);
    o = d->wrote[1];
    memcpy(old, d->medium.bytes + o.at, o.len);
    restart(d);
    d->now += 200;
    answers(begin(d, "b"), IDEM_EXECUTE);
    is(d->wrote[1].at, o.at);
    is(d->wrote[1].len, o.len);
    turn(d, 1);                             // its header is earlier than that
    flash_load(&d->medium, o.at, old, o.len);
    restart(d);
    replays(d, "a");
    assert_in_range(d->reply.age_ms, 200, 9000);
    answers(begin(d, "b"), IDEM_RECOVER);
}

/* The only head is destroyed, and the next has no more than its header: that
   tells that there was one before. */
TEST(s4_a_header_tells_of_the_head_before_that_is_gone)
{
    for (uint32_t n = 0; n < 6; n++) {
        device *d = device_on(&roomy);
        uint32_t size = d->medium.sector_size, head;
        finish(d, nth(0));
        head = newest(d).at / size * size;
        restart(d);
        flash_cut(&d->medium, n, FLASH_NOTHING);
        (void)begin(d, "~");
        flash_fill(&d->medium, head, size, d->medium.erased);
        restart(d);
        if (d->medium.bytes[head + size] != d->medium.erased)
            assert_int_not_equal(begin(d, nth(0)), IDEM_EXECUTE);
    }
}
