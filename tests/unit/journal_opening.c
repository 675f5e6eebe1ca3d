/* SPDX-License-Identifier: 0BSD */
/*
 * What idem_open takes, what it refuses and how idem_explain tells why; what
 * idem_format leaves.
 */
#include "device.h"

/* A size that a program may rely on when it is compiled. */
enum {
    SECTORS_OF_8 = IDEM_SECTORS(8, KEY_MAX, RESPONSE_MAX, STATE_MAX, 512, 1)
};

static int tries(device *d)
{
    return idem_open(&d->table, &d->config, NULL, 0, 0);
}

/* ------------------------------------------------- configurations, storages */

TEST(what_is_at_its_limit_is_taken)
{
    device *d = device_on(&nor);

    d->config.lease_ms = IDEM_LEASE_NONE;
    d->config.retention_ms = IDEM_RETENTION_MAX;
    d->config.capacity = IDEM_CAPACITY_MAX;
    d->config.key_max = 255;
    answers(tries(d), IDEM_E_MEMORY);
    device_defaults(d);
    d->config.storage = &d->storage;
    d->storage.sector_size = 262144;
    d->storage.sector_count = 8192;
    d->storage.prog_size = 256;
    answers(tries(d), IDEM_E_MEMORY);
    d->storage.sector_size = 32768;
    d->storage.sector_count = 65535;
    answers(tries(d), IDEM_E_MEMORY);
}

TEST(too_few_sectors_are_told_how_many_would_do)
{
    device *d = device_on(&nor);

    is(d->storage.sector_count, SECTORS_OF_8);
    assert_null(idem_explain(&d->config));
    d->storage.sector_count--;
    answers(device_open(d), IDEM_E_SPACE);
    is(d->table.needed, SECTORS_OF_8);
    assert_non_null(idem_explain(&d->config));
    answers(begin(d, "a"), IDEM_E_ARG);         // it is closed
    d->config.capacity = 1;
    assert_true(device_sectors(d) >= 4);
    d->storage.sector_count = device_sectors(d);
    answers(device_open(d), IDEM_OK);
}

TEST(of_too_small_sectors_none_would_do)
{
    device *d = device_on(&nor);

    for (d->storage.sector_size = 64; device_sectors(d) == 0;
         d->storage.sector_size += 64) {
        answers(device_open(d), IDEM_E_SPACE);
        is(d->table.needed, 0);
        assert_non_null(idem_explain(&d->config));
    }
    assert_in_range(d->storage.sector_size, 128, 512);
    d->storage.sector_count = device_sectors(d) - 1;
    answers(device_open(d), IDEM_E_SPACE);
    is(d->table.needed, device_sectors(d));
}

#if IDEM_WIDE
TEST(a_capacity_that_no_ring_holds_is_told_so)
{
    device *d = device_on(&nor);

    d->config.capacity = 300000;
    answers(device_open(d), IDEM_E_SPACE);
    assert_true(d->table.needed > 65535);
    is(d->table.needed, device_sectors(d));
}
#endif

TEST(the_named_amount_of_memory_is_enough)
{
    device *d = device_on(&nor_8);
    size_t size = IDEM_JOURNAL_MEMORY_SIZE(8, KEY_MAX, RESPONSE_MAX, STATE_MAX,
                                           8);
    char *memory = (char *)device_alloc(size + 5000);

    answers(tries(d), IDEM_E_MEMORY);
    assert_true(d->table.needed <= size);
    assert_true(size < IDEM_JOURNAL_MEMORY_SIZE(9, KEY_MAX, RESPONSE_MAX,
                                                STATE_MAX, 8));
    size = d->table.needed;
    answers(idem_open(&d->table, &d->config, memory, size - 1, 0),
            IDEM_E_MEMORY);
    answers(idem_open(&d->table, &d->config, memory + 1, size + 8, 0),
            IDEM_E_MEMORY);
    is(d->table.needed, size);
    answers(idem_open(&d->table, &d->config, memory, size, 0), IDEM_OK);
    finish(d, "a");
    // More is a larger window, and nothing else.
    answers(idem_open(&d->table, &d->config, memory, size + 5000, 0), IDEM_OK);
    replays(d, "a");
    free(memory);
}

/* -------------------------------------------------------------------- blank */

TEST(a_boot_that_writes_nothing_costs_nothing)
{
    device *d = device_on(&ecc);
    uint32_t erases;

    finish(d, "a");
    erases = d->medium.erases;
    for (int boot = 0; boot < 100; boot++) {
        restart(d);
        answers(find(d, "a"), IDEM_OK);
    }
    is(d->medium.erases, erases);
    finish(d, "b");
    assert_in_range(d->medium.erases - erases, 1, 2);
}

TEST(opening_reads_no_byte_more_than_three_times)
{
    for (size_t m = 0; m < COUNT(media); m++) {
        device *d = device_on(media[m]);
        for (uint32_t n = 0; n < 100; n++) {
            finish(d, nth(n));
            answers(forget(d, nth(n)), IDEM_OK);
            restart(d);
            assert_in_range(flash_most_read(&d->medium), 1, 3);
        }
    }
}

/* A cut may leave anything where the first heads go, and nothing elsewhere. */
TEST(foreign_data_is_refused_and_not_touched)
{
    for (size_t m = 0; m < COUNT(media); m++) {
        uint32_t size = media[m]->sector_size;
        for (uint32_t at = 4 * size; at < 6 * size; at += size / 3 + 1) {
            device *d = device_on(media[m]);
            device_start(d, media[m], 6);
            flash_fill(&d->medium, at, 1, 'x');
            answers(reopen(d), IDEM_E_FORMAT);
            is(d->medium.bytes[at], 'x');
            answers(begin(d, "a"), IDEM_E_ARG);
            flash_fill(&d->medium, at, 1, media[m]->erased);
            restart(d);
        }
    }
}

/* ------------------------------------------------------------------ explain */

/* True if one of some words, with bars between, is in a text. */
static int any_of(const char *text, const char *words)
{
    char word[32];

    while (*words) {
        size_t len = strcspn(words, "|");
        memcpy(word, words, len);
        word[len] = 0;
        if (strstr(text, word))
            return 1;
        words += len + (words[len] == '|');
    }
    return 0;
}

/* What the storage holds is another's, and why is told in words. */
static void differs(device *d, const char *words)
{
    const char *text;

    answers(reopen(d), IDEM_E_FORMAT);
    text = idem_explain(&d->config);
    is(d->writes, 0);
    if (!text || !any_of(text, words))
        fail_msg("\"%s\", expected: %s", text ? text : "(nothing)", words);
}

/* A journal with something in it, in more sectors than it needs. */
static device *journal_on(const medium *m)
{
    device *d = device_on(m);

    device_start(d, m, 2 * d->storage.sector_count);
    finish(d, "a");
    turn(d, 3);
    assert_null(idem_explain(&d->config));
    return d;
}

TEST(either_half_of_the_secret_is_told)
{
    for (size_t m = 0; m < COUNT(media); m++)
        for (int byte = 0; byte < 16; byte++) {
            device *d = journal_on(media[m]);
            d->config.secret[byte] ^= 0x40;
            differs(d, "secret");
            d->config.secret[byte] ^= 0x40;
            assert_null(idem_explain(&d->config));
            restart(d);
            replays(d, "a");
        }
}

TEST(the_geometry_is_told)
{
    device *d = journal_on(&nor_8);

    d->storage.sector_size = 1024;
    d->storage.sector_count /= 2;
    differs(d, "sector_size|size of a sector|sector size|geometry");
    d = journal_on(&nor_8);
    d->storage.sector_count--;
    differs(d, "sector_count|number of sectors|sector count|geometry");
    d = journal_on(&nor_8);
    d->storage.prog_size = 4;
    differs(d, "prog_size|granule|geometry");
    d = journal_on(&nor_8);
    d->storage.prog_size = 16;
    differs(d, "prog_size|granule|geometry");
}

TEST(what_is_no_journal_is_told)
{
    device *d = device_on(&nor_8);

    assert_null(idem_explain(&d->config));      // blank is as good as ours
    flash_noise(&d->medium, 0, d->medium.size, 1);
    differs(d, "not a journal|no journal");
    flash_fill(&d->medium, 0, d->medium.size, 0);
    differs(d, "not a journal|no journal");
    d->config.storage = NULL;
    assert_null(idem_explain(&d->config));
    d->config.storage = &d->storage;
}

static uint32_t crc32c(const uint8_t *p, size_t len)
{
    uint32_t crc = UINT32_MAX;

    while (len-- > 0) {
        crc ^= *p++;
        for (int i = 0; i < 8; i++)
            crc = crc >> 1 ^ (crc & 1 ? UINT32_C(0x82F63B78) : 0);
    }
    return crc;
}

/* A header as version 1 wrote it, twice. */
TEST(a_journal_of_version_1_is_told)
{
    device *d = device_on(&nor_8);
    uint8_t header[40] = { 'i', 'd', 'e', 'm', 1, 0x31, 0, 2, 0 };
    uint32_t check;

    header[9] = (uint8_t)d->storage.sector_count;
    header[16] = 1;
    header[27] = 1;
    header[33] = 80;
    check = crc32c(header, 36);
    for (int i = 0; i < 4; i++)
        header[36 + i] = (uint8_t)(check >> 8 * i);
    flash_load(&d->medium, 512, header, sizeof header);
    flash_load(&d->medium, 512 + 40, header, sizeof header);
    flash_fill(&d->medium, 512 + 80, 24, 0x8D);
    differs(d, "version");
}

/* A young journal has one header.  With a bit flipped it is taken as it is;
   torn, it is as good as blank. */
TEST(explain_takes_the_headers_that_opening_takes)
{
    device *d = device_on(&nor_8);

    device_start(d, &nor_8, 0);
    finish(d, "a");
    for (uint32_t bit = 0; bit < 48 * 8; bit++) {
        flash_flip(&d->medium, 512 + bit / 8, bit % 8);
        answers(reopen(d), IDEM_OK);
        if (idem_explain(&d->config))
            fail_msg("bit %u: %s", (unsigned)bit, idem_explain(&d->config));
        flash_flip(&d->medium, 512 + bit / 8, bit % 8);
    }
    flash_fill(&d->medium, 512 + 24, 488, 0xFF);
    answers(reopen(d), IDEM_OK);
    assert_null(idem_explain(&d->config));
    flash_fill(&d->medium, 4 * 512, 1, 0);
    differs(d, "not a journal");
}

TEST(explain_takes_no_header_in_another_place)
{
    device *d = device_on(&nor_8);

    device_start(d, &nor_8, 0);
    finish(d, "a");
    assert_null(idem_explain(&d->config));
    flash_load(&d->medium, 5 * 512, d->medium.bytes + 512, 512);
    flash_fill(&d->medium, 512, 512, 0xFF);
    differs(d, "not a journal");
}

TEST(explain_reads_what_it_can)
{
    device *d = journal_on(&nor_8);

    flash_fail(&d->medium, FLASH_READ, 0, FLASH_UNDONE, 1);
    assert_non_null(idem_explain(&d->config));
    flash_fail(&d->medium, FLASH_READ, 0, 0, 0);
    assert_null(idem_explain(&d->config));
}

TEST(explain_passes_over_a_header_that_cannot_be_read)
{
    device *d = journal_on(&nor_8);
    uint32_t head = newest(d).at / 512 * 512;

    d->dead_at = head + 8;
    d->dead_len = 1;
    assert_null(idem_explain(&d->config));          // there are others
    d->dead_at = 512 + 8;
    d->dead_len = d->medium.size;
    assert_non_null(idem_explain(&d->config));
    assert_non_null(strstr(idem_explain(&d->config), "read"));
}

/* What is read at once is as much as the memory has room for, up to a bound. */
TEST(a_journal_is_read_alike_in_any_memory)
{
    device *d = journal_on(&nor_8);
    size_t size = (size_t)2 << 20;

    flash_boot(&d->medium);
    free(d->memory);
    d->memory = device_alloc(size);
    answers(idem_open(&d->table, &d->config, d->memory, size, d->now), IDEM_OK);
    is(d->table.stats.lost, 0);
    replays(d, "a");
}

/* ---------------------------------------------------- another configuration */

TEST(more_room_is_no_other_journal)
{
    device *d = journal_on(&nor);

    d->config.capacity = 12;
    d->config.retention_ms *= 2;
    d->config.max_attempts = 9;
    d->config.senders = 1;
    d->config.quota = 7;
    restart(d);
    is(d->table.stats.lost, 0);
    replays(d, "a");
}

TEST(s5_less_room_loses_what_is_beyond_it_and_tells)
{
    static const struct { uint32_t capacity; uint16_t response; } less[] = {
        { 2, RESPONSE_MAX }, { 8, 3 },
    };

    for (size_t i = 0; i < COUNT(less); i++) {
        device *d = device_on(&nor);
        uint32_t replayed = 0;
        for (uint32_t n = 0; n < 8; n++)
            finish(d, nth(n));
        d->config.capacity = less[i].capacity;
        d->config.response_max = less[i].response;
        restart(d);
        assert_int_not_equal(d->table.stats.lost, 0);
        for (uint32_t n = 0; n < 8; n++) {
            if (find(d, nth(n)) == IDEM_OK &&
                d->entry.status == IDEM_COMPLETED) {
                replays(d, nth(n));
                replayed++;
            }
        }
        assert_in_range(replayed, 0, 7);
        is(idem_check(&d->table), 0);
    }
}

/* ------------------------------------------------------------------- format */

static int format(device *d)
{
    size_t size;
    int result;

    answers(idem_open(&d->table, &d->config, NULL, 0, 0), IDEM_E_MEMORY);
    size = d->table.needed;
    free(d->memory);
    d->memory = device_alloc(size);
    device_before(d);
    result = idem_format(&d->table, &d->config, d->memory, size, d->now);
    is(d->medium.violations, 0);
    return result;
}

TEST(formatting_forgets_what_was_there_for_good)
{
    for (size_t m = 0; m < COUNT(media); m++) {
        device *d = journal_on(media[m]);
        flash_noise(&d->medium, 0, 300, 1);
        answers(format(d), IDEM_OK);
        is(live(d), 0);
        for (int boot = 0; boot < 3; boot++) {
            restart(d);
            is(d->table.stats.lost, 0);
            answers(find(d, "a"), IDEM_E_NOT_FOUND);
            finish(d, nth((uint32_t)boot));
        }
        replays(d, nth(0));
    }
}

TEST(formatting_needs_a_storage_and_memory)
{
    device *d = device_on(&nor);

    answers(idem_format(&d->table, &d->config, NULL, 0, 0), IDEM_E_MEMORY);
    d->config.storage = NULL;
    answers(idem_format(&d->table, &d->config, d->memory, 100000, 0),
            IDEM_E_ARG);
    d->config.storage = &d->storage;
}

TEST(formatting_waits_for_each_erase)
{
    device *d = journal_on(&nor);

    d->storage.erasing = device_erasing;
    d->polls = 3;
    answers(format(d), IDEM_OK);
    is(d->polls_left, 0);
    for (uint32_t at = 0; at < d->medium.size; at++)
        is(d->medium.bytes[at], 0xFF);
}

TEST(formatting_reports_a_storage_that_fails)
{
    static const int calls[] = { FLASH_ERASE, FLASH_PROG, FLASH_SYNC };

    for (size_t i = 0; i < COUNT(calls); i++)
        for (uint32_t n = 0; n < 3; n++) {
            device *d = journal_on(i ? &cached : &nor);
            flash_fail(&d->medium, calls[i], calls[i] == FLASH_SYNC ? 0 : n,
                       FLASH_UNDONE, 0);
            answers(format(d), IDEM_E_STORAGE);
            is(d->table.storage_error, FLASH_E_FAULT);
            answers(idem_begin(&d->table, &d->claim, &d->reply, &d->ask, 0),
                    IDEM_E_ARG);
            answers(format(d), IDEM_OK);
            answers(begin(d, "a"), IDEM_EXECUTE);
        }
}

static void finish_two(device *d)
{
    finish(d, "a");
    turn(d, 2);
    finish(d, "b");
}

static void cut_format(const medium *m)
{
    uint32_t n, v, count = 1;

    for (n = 0; count; n++)
        for (v = 0, count = 1; v < count; v++) {
            device *d = device_on(m);
            int result, a = IDEM_OK;
            finish_two(d);
            d->medium.draws = 1;
            flash_cut(&d->medium, n, v);
            (void)format(d);
            count = d->medium.off ? d->medium.variants : 0;
            if (!count)
                break;
            result = reopen(d);
            if (result == IDEM_OK && (a = begin(d, "a")) == IDEM_REPLAY)
                assert_true(is_outcome_of(d, "a"));
            else if (result == IDEM_OK && a == IDEM_RECOVER)
                assert_int_not_equal(d->table.stats.lost, 0);
            else if (result != IDEM_OK)
                answers(result, IDEM_E_FORMAT);
            answers(format(d), IDEM_OK);
            finish(d, "a");
        }
}

TEST(a_format_that_is_cut_short_can_be_done_again)
{
    cut_format(&nor_8);
    cut_format(&ecc);
}

/* -------------------------------------------------------------------- place */

TEST(a_sector_in_another_place_is_nothing)
{
    device *d = journal_on(&nor_8);
    uint32_t head, other;

    finish(d, "b");
    head = d->wrote[d->writes - 1].at / 512;
    for (other = 0; other < d->storage.sector_count; other++) {
        uint32_t ahead = (other + d->storage.sector_count - head) %
                         d->storage.sector_count;
        if (ahead > 0 && ahead < 5)
            flash_load(&d->medium, other * 512, d->medium.bytes + head * 512,
                       512);
    }
    for (int boot = 0; boot < 12; boot++) {
        restart(d);
        is(d->table.stats.lost, 0);
        replays(d, "a");
        replays(d, "b");
        turn(d, 1);
    }
}
