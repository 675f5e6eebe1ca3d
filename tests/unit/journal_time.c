/* SPDX-License-Identifier: 0BSD */
/*
 * Time over restarts: it never shortens anything (S6), and it goes on, whatever
 * the device does at night (L2).
 */
#include "device.h"

static const uint32_t DAY = 86400000, MINUTE = 60000;

/* Opens once more, with the default retention this long. */
static void retain(device *d, uint32_t retention_ms)
{
    d->config.retention_ms = retention_ms;
    restart(d);
}

TEST(another_default_counts_for_what_comes)
{
    device *d = device_on(&nor);

    finish(d, "a");
    retain(d, 400);
    finish(d, "b");
    d->now += 400;
    answers(find(d, "b"), IDEM_E_NOT_FOUND);
    replays(d, "a");
    finish(d, "b");
    turn(d, d->storage.sector_count);
    retain(d, 10 * RETENTION);
    d->now += 400;
    answers(find(d, "b"), IDEM_E_NOT_FOUND);
    replays(d, "a");
    d->now += RETENTION;
    answers(find(d, "a"), IDEM_E_NOT_FOUND);
}

/* While nothing is remembered nothing is written, for longer than one record
   can tell. */
TEST(months_without_a_record_do_no_harm)
{
    for (int days = 20; days < 200; days += 12)
        for (int boot = 0; boot < 2; boot++) {
            device *d = device_on(&nor);
            answers(begin(d, "first"), IDEM_EXECUTE);
            answers(release(d, &d->claim), IDEM_OK);
            if (boot)
                restart(d);
            for (int n = 0; n < days; n++) {
                d->now += DAY;
                rest(d);
            }
            finish(d, "a");
            d->now += 1000;
            finish(d, "b");
            restart(d);
            replays(d, "a");
            is(d->reply.age_ms, 1000);
            d->now += RETENTION - 1001;
            replays(d, "a");
            d->now += 1;
            answers(find(d, "a"), IDEM_E_NOT_FOUND);
            replays(d, "b");
        }
}

/* What is over stays over, though the 32 bits of time went round meanwhile, and
   its sector is read for the state that is in it. */
TEST(what_is_over_does_not_come_back_after_months)
{
    for (int days = 40; days < 110; days++) {
        device *d = device_on(&nor);
        retain(d, 3 * DAY);
        d->tell.state = "state";
        d->tell.state_len = 5;
        finish(d, "old");
        memset(&d->tell, 0, sizeof d->tell);
        for (int n = 0; n < days; n++) {
            d->now += DAY;
            is(live(d), n < 2);
        }
        finish(d, "a");
        restart(d);
        answers(find(d, "old"), IDEM_E_NOT_FOUND);
        replays(d, "a");
        is(d->reply.age_ms, 0);
    }
}

/* -------------------------------------------------------------- every night */

/* Days until a device takes a new key again: its table is full of keys that are
   remembered for a week, and it is switched off every night. */
static uint32_t days_full(device *d, int idle)
{
    uint32_t day;

    retain(d, 7 * DAY);
    for (uint32_t n = 0; n < 8; n++)
        finish(d, nth(n));
    for (day = 0; day < 1000; day++) {
        for (int hour = 0; hour < 10; hour++) {
            d->now += 60 * MINUTE;
            if (idle)
                rest(d);
            else if (begin(d, "new") == IDEM_EXECUTE)
                return day;
        }
        if (begin(d, "new") == IDEM_EXECUTE)
            return day;
        restart(d);
    }
    return day;
}

TEST(l2_a_full_table_that_is_off_every_night_is_not_full_for_ever)
{
    for (size_t m = 0; m < COUNT(media); m++) {
        // Ten hours a day are counted, but for at most an eighth of a week.
        assert_in_range(days_full(device_on(media[m]), 0), 16, 20);
        assert_in_range(days_full(device_on(media[m]), 1), 16, 20);
    }
}

/* In idle time alone, though no command comes. */
TEST(l2_idle_time_writes_down_the_time)
{
    device *d = device_on(&nor);
    uint32_t progs, boot;

    retain(d, 8 * DAY);
    finish(d, "a");
    for (boot = 0; boot < 100; boot++) {
        d->now += DAY + MINUTE;
        rest(d);
        restart(d);
        if (find(d, "a") == IDEM_E_NOT_FOUND)
            break;
    }
    assert_in_range(boot, 7, 9);
    progs = d->medium.progs;
    for (boot = 0; boot < 30; boot++) {     // and nothing is remembered
        d->now += DAY;
        rest(d);
    }
    assert_in_range(d->medium.progs - progs, 0, 1);
}

TEST(l2_a_refused_key_writes_the_time_once_in_a_minute)
{
    device *d = device_on(&nor);
    uint32_t progs;

    for (uint32_t n = 0; n < 8; n++)
        answers(begin(d, nth(n)), IDEM_EXECUTE);
    progs = d->medium.progs;
    for (int n = 0; n < 59; n++) {
        d->now += 1000;
        answers(begin(d, "new"), IDEM_E_FULL);
    }
    is(d->medium.progs, progs);
    d->now += 1000;
    answers(begin(d, "new"), IDEM_E_FULL);
    assert_in_range(d->medium.progs, progs + 1, progs + 2);
    answers(begin(d, "new"), IDEM_E_FULL);
    is(d->progs, 0);
}

/* What is idle work to do is told; a refused key is refused all the same. */
TEST(time_that_cannot_be_written_down_is_no_answer)
{
    device *d = device_on(&nor);

    for (uint32_t n = 0; n < 8; n++)
        answers(begin(d, nth(n)), IDEM_EXECUTE);
    rest(d);
    d->now += RETENTION / 2;
    flash_fail(&d->medium, FLASH_PROG, 0, FLASH_UNDONE, 1);
    answers(maintain(d), IDEM_E_STORAGE);
    d->config.retention_ms = 0;
    answers(begin(d, "new"), IDEM_E_FULL);
    flash_fail(&d->medium, FLASH_PROG, 0, 0, 0);
    answers(begin(d, nth(0)), IDEM_RECOVER);
}
