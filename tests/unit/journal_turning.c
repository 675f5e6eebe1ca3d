/* SPDX-License-Identifier: 0BSD */
/*
 * The ring of sectors: that it never runs full, what it costs, and what a turn
 * that was cut off leaves.  That no cut and no row of cuts loses anything shows
 * the explorer (tests/storage).
 */
#include "device.h"

#include "../inside.h"

static const medium w1 = { "NOR, 4096", FLASH_NOR, 0, 16, 4096, 0xFF };

/* ----------------------------------------------------- boots and their cost */

/* R4: whichever of the newest sectors a boot takes for the head, what it needs
   is there. */
TEST(before_a_turn_three_sectors_are_dead)
{
    for (size_t m = 0; m < COUNT(media); m++) {
        device *d = device_on(media[m]);
        uint32_t sectors = d->storage.sector_count;
        for (uint32_t n = 0; n < 8; n++)
            finish(d, nth(n));
        for (uint32_t n = 0; n < 400; n++) {
            answers(forget(d, nth(n % 8)), IDEM_OK);
            assert_in_range(inside_dead(&d->table), 3, sectors);
            finish(d, nth(n % 8));
            assert_in_range(inside_dead(&d->table), 3, sectors);
        }
    }
}

/* What stays is carried in idle time, if there is any: then a call that turns
   has its record to write, and what a new head takes. */
TEST(with_idle_time_no_call_carries)
{
    for (size_t m = 0; m < COUNT(media); m++)
        for (int idle = 0; idle < 2; idle++) {
            device *d = device_on(media[m]);
            uint32_t most = 0;
            for (uint32_t n = 0; n < 8; n++)
                finish(d, nth(n));
            for (uint32_t n = 0; n < 300; n++) {
                answers(forget(d, nth(n % 4)), IDEM_OK);
                most = d->progs > most ? d->progs : most;
                if (idle)
                    rest(d);
                answers(begin(d, nth(n % 4)), IDEM_EXECUTE);
                most = d->progs > most ? d->progs : most;
                answers(complete(d, nth(n % 4)), IDEM_OK);
                most = d->progs > most ? d->progs : most;
            }
            if (media[m]->kind != FLASH_INPLACE)    // else it is wiped, too
                assert_in_range(most, 2, idle ? 4 : 20);
        }
}

TEST(idle_work_comes_to_an_end)
{
    for (size_t m = 0; m < COUNT(media); m++) {
        device *d = device_on(media[m]);
        rest(d);
        for (uint32_t n = 0; n < 8; n++)
            finish(d, nth(n));
        rest(d);
        for (int n = 0; n < 50; n++) {
            answers(maintain(d), IDEM_OK);
            is(d->progs + d->erases, 0);
        }
        restart(d);
        rest(d);
        for (uint32_t n = 0; n < 8; n++)
            replays(d, nth(n));
    }
}

TEST(wear_is_even)
{
    device *d = device_on(&nor_8);
    uint32_t least, most;

    for (uint32_t n = 0; n < 3; n++)
        finish(d, nth(n));
    turn(d, 40 * d->storage.sector_count);
    flash_wear(&d->medium, &least, &most);
    assert_in_range(least, 39, 41);
    assert_in_range(most - least, 0, 1);
}

/* W1 of 1,000 commands: bytes for each, beside the 72 that there must be. */
static uint32_t w1_bytes(device *d, uint32_t capacity)
{
    enum { COMMANDS = 1000 };
    uint32_t from = 0;

    device_defaults(d);
    d->config.capacity = capacity;
    d->config.response_max = 16;
    d->config.state_max = 0;
    d->config.retention_ms = capacity;
    d->config.full = IDEM_EVICT_OLDEST;
    device_medium(d, &w1, 8);
    is(d->storage.sector_count, 8);
    answers(device_open(d), IDEM_OK);
    for (uint32_t n = 0; n < 2 * COMMANDS; n++) {
        char key[17];
        idem_request rq;
        idem_outcome out;
        if (n == COMMANDS)
            from = d->medium.prog_bytes;
        sprintf(key, "%016x", (unsigned)flash_mix(n));
        rq = request_for(d, key, "pour");
        rq.scope_len = 0;
        d->now++;
        answers(idem_begin(&d->table, &d->claim, &d->reply, &rq, d->now),
                IDEM_EXECUTE);
        memset(&out, 0, sizeof out);
        out.response = key;
        out.response_len = 16;
        out.code = (int32_t)(flash_mix(n) & 0xFFFF);
        answers(idem_complete(&d->table, &d->claim, &out, d->now), IDEM_OK);
    }
    return (d->medium.prog_bytes - from) / COMMANDS;
}

TEST(there_is_no_cliff_below_the_capacity_that_is_accepted)
{
    device *d = &the_device;
    uint32_t most = 1, bytes;

    while (IDEM_SECTORS(most + 1, KEY_MAX, 16, 0, 4096, 16) <= 8)
        most++;
    assert_in_range(most, 64, 300);
    for (uint32_t tenths = 10; tenths >= 5; tenths -= tenths > 8 ? 1 : 3)
        if ((bytes = w1_bytes(d, most * tenths / 10)) > 72 * 3 / 2)
            fail_msg("%u keys: %u bytes for each command",
                     (unsigned)(most * tenths / 10), (unsigned)bytes);
}

/* --------------------------------------------------------------------- cuts */

static void before_turning(device *d)
{
    finish(d, "a");
    turn(d, 2);
    finish(d, "b");
    d->tell.state = "state";
    d->tell.state_len = 5;
    finish(d, "c");
}

static void all_three_are_there(device *d)
{
    char bytes[STATE_MAX];
    size_t len = sizeof bytes;

    is(d->table.stats.lost, 0);
    replays(d, "a");
    replays(d, "b");
    replays(d, "c");
    answers(idem_state(&d->table, bytes, &len), IDEM_OK);
    is(len, 5);
}

/* The power goes when a boot's first header is written, and nothing behind it:
   it may read well now and not later, so the next boot does not rely on it, and
   whatever becomes of it is no matter. */
TEST(a_header_in_doubt_leaves_the_chain)
{
    for (size_t m = 0; m < COUNT(media); m++) {
        device *d = device_on(media[m]);
        uint32_t size = d->medium.sector_size, header = 0, n = 0;
        before_turning(d);
        restart(d);
        answers(begin(d, "d"), IDEM_EXECUTE);
        for (uint32_t i = 0; i < d->writes; i++)
            if (d->wrote[i].call == FLASH_PROG && d->wrote[i].at % size == 0)
                n = i + 1;
        device_on(media[m]);
        before_turning(d);
        restart(d);
        flash_cut(&d->medium, n, FLASH_NOTHING);
        answers(begin(d, "d"), IDEM_E_STORAGE);
        for (n = 0; n < d->writes; n++)
            if (d->wrote[n].call == FLASH_PROG && d->wrote[n].at % size == 0)
                header = d->wrote[n].at;
        restart(d);
        all_three_are_there(d);
        finish(d, "e");
        if (newest(d).at / size != header / size)   // else it was used again
            flash_noise(&d->medium, header, size, 1);
        restart(d);
        all_three_are_there(d);
        replays(d, "e");
    }
}

/* Where nothing is erased the records of a turn that was cut off stand where
   those of the next one go, shorter or longer ones. */
TEST(records_of_an_abandoned_turn_are_not_believed)
{
    for (size_t m = 4; m < COUNT(media); m++)
        for (uint32_t n = 0; n < 60; n++) {
            device *d = device_on(media[m]);
            before_turning(d);
            restart(d);
            // Carries "c" and its state, then the power goes.
            flash_cut(&d->medium, n, FLASH_ALL);
            (void)begin(d, "d");
            if (!d->medium.off)
                break;
            restart(d);
            answers(forget(d, "c"), IDEM_OK);
            d->tell.state = "new";
            d->tell.state_len = 3;
            finish(d, "c");
            for (int boot = 0; boot < 3; boot++) {
                char bytes[STATE_MAX];
                size_t len = sizeof bytes;
                restart(d);
                is(d->table.stats.lost, 0);
                answers(idem_state(&d->table, bytes, &len), IDEM_OK);
                is(len, 3);
                replays(d, "c");
                replays(d, "a");
            }
        }
}

/* What is carried tells how old it is; two attempts at one head, some time
   apart, must not mix it up. */
TEST(time_does_not_run_backwards_in_what_is_carried)
{
    for (size_t m = 0; m < COUNT(media); m++)
        for (uint32_t n = 0; n < 60; n++) {
            device *d = device_on(media[m]);
            before_turning(d);
            d->now += 5000;
            answers(begin(d, "d"), IDEM_EXECUTE);
            restart(d);
            d->now += 700;
            flash_cut(&d->medium, n, n % 2 ? FLASH_ALL : FLASH_NOTHING);
            (void)begin(d, "e");
            if (!d->medium.off)
                break;
            restart(d);
            d->now += 30;
            answers(begin(d, "f"), IDEM_EXECUTE);
            restart(d);
            replays(d, "a");
            assert_in_range(d->reply.age_ms, 5030, 5730);
        }
}

/* --------------------------------------------------------------------- room */

/* Of keys, responses and states of all sizes: the sectors asked for will do. */
TEST(as_many_sectors_as_are_asked_for_are_enough)
{
    static const uint16_t granules[] = { 1, 2, 16, 64 };

    for (uint32_t round = 0; round < 60; round++) {
        device *d = &the_device;
        medium m = { "any", FLASH_NOR, 0, 1, 0, 0xFF };
        uint32_t capacity = 1 + round % 9;
        char keys[9][8] = { "" };
        device_defaults(d);
        m.granule = granules[round % 4];
        d->config.capacity = capacity;
        d->config.state_max = (uint16_t)(round * 5 % 60);
        m.sector_size = m.granule;
        do {
            m.sector_size += m.granule;
            d->storage.sector_size = m.sector_size;
            d->storage.prog_size = m.granule;
        } while (!device_sectors(d));
        m.sector_size += (round % 3) * 8 * m.granule;
        device_start(d, &m, 0);
        for (uint32_t n = 0; n < 60 * capacity; n++) {
            static const char bytes[60];
            uint32_t k = dice(d, capacity);
            d->now += LEASE;
            if (keys[k][0])
                answers(forget(d, keys[k]), IDEM_OK);
            sprintf(keys[k], "|%u", (unsigned)n);       // the longest response
            d->tell.state = dice(d, 2) ? bytes : NULL;
            d->tell.state_len = d->tell.state ? d->config.state_max : 0;
            answers(begin(d, keys[k]), IDEM_EXECUTE);
            if (dice(d, 5))
                answers(complete(d, keys[k]), IDEM_OK);
            if (dice(d, 10) == 0)
                restart(d);
        }
    }
}

/* ---------------------------------------------------- erases that take time */

TEST(idle_work_starts_an_erase_and_does_not_wait_for_it)
{
    device *d = device_on(&nor);
    uint32_t more = 0;

    d->storage.erasing = device_erasing;
    d->polls = 5;
    restart(d);
    turn(d, 1);
    while (maintain(d) == IDEM_MORE)
        more++;
    assert_in_range(more, 5, 20);
    is(d->polls_left, 0);
    for (uint32_t n = 0; n < 200; n++) {
        finish(d, "a");
        answers(forget(d, "a"), IDEM_OK);
        if (n % 3 == 0)
            (void)maintain(d);
    }
    finish(d, "a");
    restart(d);
    replays(d, "a");
}

/* ---------------------------------------------------------------- idem_check */

TEST(idem_check_finds_a_wrong_tail)
{
    device *d = device_on(&nor);
    uint32_t sectors = d->storage.sector_count;

    finish(d, "a");
    turn(d, 3 * sectors);
    inside_move_tail(&d->table, sectors);           // "a" would be lost
    is(idem_check(&d->table), 14);
    inside_move_tail(&d->table, 0 - 2 * sectors);   // more than there is
    is(idem_check(&d->table), 15);
    inside_move_tail(&d->table, sectors);
    is(idem_check(&d->table), 0);
}
