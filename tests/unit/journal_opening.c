/* SPDX-License-Identifier: 0BSD */
/*
 * Which storages idem_open takes and refuses, and how idem_explain explains it;
 * the storage after idem_format.
 */
#include "scenario.h"

/* What is read at once is as much as the memory has room for, up to a bound. */
TEST(a_journal_is_read_alike_in_any_memory)
{
    static const size_t more[] = { 0, 5000, (size_t)2 << 20 };

    for (size_t i = 0; i < COUNT(more); i++) {
        device_on(&nor_8, "sectors=20 Ba Ca rotate3")->more = more[i];
        run("P Ba:replay");
    }
}

TEST(opening_reads_no_byte_more_than_seven_times)
{
    for (size_t m = 0; m < COUNT(media); m++) {
        medium counting = *media[m];
        counting.flags |= READ_MAP;
        device_on(&counting, "");
        for (unsigned n = 0; n < 95; n++) {
            run_of("B@ C@ X@ P", n);
            the.medium.read_map = the.read_map;
            assert_in_range(flash_most_read(&the.medium), 1, 7);
            the.medium.read_map = NULL;
        }
    }
}

/* The last sequences are those of the sectors after the last head (D6). */
TEST(l1_sequences_do_not_wrap)
{
    for (uint32_t left = 0; left < 4; left++) {
        device *d = device_on(&nor, "unjudged");
        inside_start_far(d->table, UINT32_MAX - 3 - left);
        d->damaged = 1;
        for (uint32_t boot = 0; boot < 5; boot++) {
            is(answer('B', 0), IDEM_E_SPACE);
            is(reopen(), IDEM_OK);
            is(inside_sequence(d->table),
               UINT32_MAX - 2 - (left > boot ? left - boot : 0));
        }
    }
}

/* Where no record is, as on blank storage, bytes are not read one by one. */
TEST(opening_reads_many_bytes_at_once)
{
    for (size_t m = 0; m < COUNT(media); m++)
        for (unsigned filled = 0; filled < 2; filled++) {
            device *d = device_on(media[m], filled ? "Ba Ca" : "");
            uint32_t reads = d->medium.reads;
            uint32_t bytes = d->medium.read_bytes;
            run("P");
            assert_in_range((d->medium.read_bytes - bytes) /
                                (d->medium.reads - reads), 16, UINT32_MAX);
        }
}

/* Nor is any read again and again because it may begin another's header. */
TEST(l1_what_looks_like_the_begin_of_headers_is_read_once)
{
    for (size_t m = 0; m < COUNT(media); m++)
        for (unsigned step = 1; step <= 4; step += 3) {
            device *d = device_on(media[m], "");
            uint32_t bytes = d->medium.read_bytes, blank;
            run("P");
            blank = d->medium.read_bytes - bytes;
            for (uint32_t at = 0; at < 3 * d->medium.sector_size; at++)
                flash_fill(&d->medium, d->medium.sector_size + at, 1,
                           "idem"[at % step]);
            bytes = d->medium.read_bytes;
            run("P");
            bytes = d->medium.read_bytes - bytes;
            // In each sector the last header may end in the next one.
            assert_in_range(bytes, blank, blank + 3 * 2 * HEADER_BYTES *
                                                      HEADER_BYTES);
            bytes = d->medium.read_bytes;
            assert_null(idem_explain(&d->config));
            assert_in_range(d->medium.read_bytes - bytes, 1,
                            2 * d->medium.size +
                                d->config.storage->sector_count * HEADER_BYTES);
        }
}

/* A cut may leave anything where the first heads go, and nothing elsewhere. */
TEST(foreign_data_is_refused_and_not_touched)
{
    for (size_t m = 0; m < COUNT(media); m++) {
        uint32_t size = media[m]->sector_size;
        for (uint32_t at = 4 * size; at < 6 * size; at += size / 3 + 1) {
            device *d = device_on(media[m], "sectors=6");
            flash_fill(&d->medium, at, 1, 'x');
            is(reopen(), IDEM_E_FORMAT);
            is(d->medium.bytes[at], 'x');
            is(idem_maintain(d->table, 0), IDEM_E_ARG);
            flash_fill(&d->medium, at, 1, media[m]->erased);
            run("P");
        }
    }
}

/* The first begin of a journal is cut.  On a medium with ECC the header may read
   as torn first, and as valid a moment later: it is not of another journal. */
TEST(what_a_cut_left_of_the_first_header_is_not_foreign)
{
    static const medium small = { "small", FLASH_ECC, 0, 8, 512, 0xFF };

    for (uint32_t n = 0, count = 1; count; n++)
        for (uint32_t v = 0; v < count; v++) {
            device *d = device_on(&small, "");
            d->medium.draws = 40;
            flash_cut(&d->medium, n, v);
            (void)answer('B', 0);
            count = d->medium.off ? d->medium.variants : 0;
            is(reopen(), IDEM_OK);
        }
}

/* Foreign data, and reads that fail from the nth on: a storage that cannot be
   read looks like another journal. */
TEST(foreign_data_is_no_reason_when_a_read_failed)
{
    device *d = device_on(&nor, "sectors=6");
    uint32_t reads, n;

    flash_fill(&d->medium, 0, 6 * nor.sector_size, 'x');
    reads = d->medium.reads;
    is(reopen(), IDEM_E_FORMAT);
    reads = d->medium.reads - reads;
    for (n = 0; n < reads; n++) {
        flash_fail(&d->medium, FLASH_READ, n, FLASH_UNDONE, 1);
        is(idem_open(d->table, &d->config, d->memory, d->memory_size, d->now),
           IDEM_E_STORAGE);
    }
}

/* The storage holds another journal: idem_explain has the cause in words. */
static void differs(const char *words)
{
    const char *text;

    is(reopen(), IDEM_E_FORMAT);
    text = idem_explain(&the.config);
    if (!text || !strstr(text, words))
        fail_msg("\"%s\", expected: %s", text ? text : "(nothing)", words);
}

/* A journal with something in it, in more sectors than it needs. */
static device *journal_on(const medium *m)
{
    device *d = device_on(m, "sectors=20 Ba Ca rotate3");

    assert_null(idem_explain(&d->config));
    return d;
}

TEST(either_half_of_the_secret_is_checked)
{
    for (size_t m = 0; m < COUNT(media); m++)
        for (int byte = 0; byte < 16; byte++) {
            device *d = journal_on(media[m]);
            d->config.secret[byte] ^= 0x40;
            differs("secret");
            d->config.secret[byte] ^= 0x40;
            assert_null(idem_explain(&d->config));
            run("P lost0 Ba:replay");
        }
}

TEST(the_geometry_is_explained)
{
    static const struct {
        uint32_t sector_size, sectors;
        uint16_t granule;
        const char *words;
    } others[] = {
        { 1024, 10, 8, "another sector_size" },
        { 512, 19, 8, "another sector_count" },
        { 512, 20, 4, "another prog_size" },
        { 512, 20, 2, "another prog_size" },
    };

    for (size_t i = 0; i < COUNT(others); i++) {
        idem_storage *s = &journal_on(&nor_8)->storage;
        s->sector_size = others[i].sector_size;
        s->sector_count = others[i].sectors;
        s->prog_size = others[i].granule;
        differs(others[i].words);
    }
}

/* A young one too, whose headers stand where no other geometry has one: at any
   granule, or across the end of a sector. */
TEST(a_young_journal_of_another_geometry_is_not_blank)
{
    static const struct { uint32_t size, sectors, other, others; } pairs[] = {
        { 1536, 16, 1024, 16 }, { 1280, 16, 1024, 16 }, { 768, 16, 704, 16 },
        { 12288, 16, 8192, 16 }, { 2048, 16, 1024, 16 }, { 3072, 16, 1024, 16 },
        { 1024, 32, 2048, 16 }, { 4096, 16, 1024, 16 }, { 1024, 16, 1024, 15 },
        { 760, 16, 512, 16 }, { 1000, 16, 512, 16 },
    };

    for (size_t i = 0; i < COUNT(pairs); i++) {
        medium m = nor_8;
        idem_storage *s;
        m.sector_size = pairs[i].size;
        s = &device_on(&m, filled("sectors=@ Ba Ca", 0, pairs[i].sectors))
                 ->storage;
        s->sector_size = pairs[i].other;
        s->sector_count = pairs[i].others;
        differs("geometry: the journal was written with another sector_");
        s->sector_size = pairs[i].size;
        s->sector_count = pairs[i].sectors;
        run("P lost0 Ba:replay");
    }
}

TEST(what_is_no_journal_is_refused)
{
    device *d = device_on(&nor_8, "");

    assert_null(idem_explain(&d->config));      // blank is as good as ours
    flash_noise(&d->medium, 0, d->medium.size, 1);
    differs("not a journal");
    flash_fill(&d->medium, 0, d->medium.size, 0);
    differs("not a journal");
    d->config.storage = NULL;
    assert_null(idem_explain(&d->config));
}

/* Reads that touch one byte fail. */
static uint32_t unreadable;
static int (*read_all)(void *ctx, uint32_t at, void *dst, uint32_t len);

static int read_but_one(void *ctx, uint32_t at, void *dst, uint32_t len)
{
    return unreadable - at < len ? 1 : read_all(ctx, at, dst, len);
}

/* Bytes that begin as a header does, and cannot be read to their end: a first
   header may be torn so. */
TEST(what_may_be_a_torn_header_is_no_journal)
{
    device *d = device_on(&nor_8, "");
    uint32_t at = 2 * d->storage.sector_size + 32;

    flash_load(&d->medium, at, "idem", 4);
    unreadable = at + 12;
    read_all = d->storage.read;
    d->storage.read = read_but_one;
    is(reopen(), IDEM_OK);
    assert_null(idem_explain(&d->config));
}

/* A young one, which has its header alone. */
TEST(a_journal_of_another_version_is_refused)
{
    device *d = device_on(&nor_8, "Ba");
    uint8_t header[HEADER_BYTES];

    memcpy(header, d->medium.bytes + newest_sector(), sizeof header);
    header[4] = 7;                      // two bits: one would be mended
    set_sum(header);
    flash_fill(&d->medium, 0, d->medium.size, d->medium.erased);
    flash_load(&d->medium, 512, header, sizeof header);
    differs("version");
}

/* A young journal has one header.  With a bit flipped it is taken as it is;
   torn, it is as good as blank. */
TEST(explain_takes_the_headers_that_opening_takes)
{
    device *d = device_on(&nor_8, "Ba Ca");

    for (uint32_t bit = 0; bit < 48 * 8; bit++) {
        flip(512 + bit / 8, bit % 8);
        is(reopen(), IDEM_OK);
        if (idem_explain(&d->config))
            fail_msg("bit %u: %s", (unsigned)bit, idem_explain(&d->config));
        flip(512 + bit / 8, bit % 8);
    }
    flash_fill(&d->medium, 512 + 24, 488, 0xFF);
    is(reopen(), IDEM_OK);
    assert_null(idem_explain(&d->config));
    flash_fill(&d->medium, 4 * 512, 1, 0);
    differs("not a journal");
}

/* Blank storage may have any bytes where the first heads are begun, no other. */
TEST(explain_takes_the_torn_sectors_that_opening_takes)
{
    device *d = device_on(&nor_8, "");

    for (uint32_t sector = 0; sector < 6; sector++) {
        flash_fill(&d->medium, sector * 512 + 100, 1, 0);
        if (sector >= 1 && sector <= 3) {
            is(reopen(), IDEM_OK);
            assert_null(idem_explain(&d->config));
        } else
            differs("not a journal");
        flash_fill(&d->medium, sector * 512 + 100, 1, 0xFF);
    }
}

/* The first header stands there so, alone: no other journal, as it is torn. */
static void open_torn(device *d, uint32_t at, const uint8_t *torn)
{
    flash_fill(&d->medium, at, d->medium.sector_size, d->medium.erased);
    flash_load(&d->medium, at, torn, HEADER_BYTES);
    d->damaged = 1;
    run("P lost0");
    assert_null(idem_explain(&d->config));
}

/* The first header, cut after some bytes, with a sum that is right by chance:
   the storage is blank all the same. */
TEST(l2_a_torn_first_header_never_passes_for_that_of_another_journal)
{
    enum { LEN = HEADER_BYTES, SUM = 14 };

    for (size_t m = 0; m < COUNT(media); m++)
        for (unsigned cut = SUM + 2; cut <= LEN - 4; cut++) {
            device *d = device_on(media[m], "Ba");
            uint32_t at = newest_sector();
            uint8_t torn[LEN];
            memset(torn, d->medium.erased, LEN);
            memcpy(torn, d->medium.bytes + at, cut);
            set_sum(torn);
            open_torn(d, at, torn);
        }
}

/* .. nor does one in which two bits are not programmed yet that weigh the same:
   one of the sum, too. */
TEST(l2_nor_does_one_that_lacks_two_bits)
{
    enum { PAIRS = HEADER_BYTES / 2 };

    for (unsigned bit = 0; bit < 16; bit++)
        for (unsigned one = 0; one < PAIRS; one++)
            for (unsigned two = 0; two < one; two++) {
                device *d = device_on(&nor, "Ba");
                uint32_t at = newest_sector();
                uint8_t torn[HEADER_BYTES], mask = (uint8_t)(1u << bit % 8);
                uint8_t *first = torn + 2 * one + bit / 8;
                uint8_t *second = torn + 2 * two + bit / 8;
                memcpy(torn, d->medium.bytes + at, sizeof torn);
                if (*first & mask || *second & mask)
                    continue;
                *first |= mask;
                *second |= mask;
                open_torn(d, at, torn);
            }
}

/* A partition that was moved, by sectors or less: what its journal has is not
   overwritten, though all of it is where heads begin. */
TEST(a_young_journal_at_another_address_is_refused)
{
    static const uint32_t places[] = { 512 + 1, 512 + 8, 1016, 2 * 512,
                                       3 * 512, 5 * 512 };

    for (size_t i = 0; i < COUNT(places); i++) {
        device *d = device_on(&nor_8, "Ba Ca");
        flash_load(&d->medium, places[i], d->medium.bytes + 512, 512);
        flash_fill(&d->medium, 512, places[i] < 1024 ? places[i] - 512 : 512,
                   0xFF);
        differs("another place");
    }
}

/* After a byte that may begin a header, too. */
TEST(nor_is_one_overlooked_that_begins_twice)
{
    device *d = device_on(&nor_8, "Ba Ca");

    flash_load(&d->medium, 512 + 24, d->medium.bytes + 512, 512 - 24);
    flash_fill(&d->medium, 512, 24, 0xFF);
    flash_load(&d->medium, 512 + 4, "i", 1);
    differs("another place");
}

/* Also where sectors are no multiple of what headers are sought by. */
TEST(explain_sees_every_header_that_an_opening_sees)
{
    device_on(&eeprom, "Ba")->config.secret[0]++;
    differs("secret");
}

TEST(explain_skips_sectors_that_cannot_be_read)
{
    device *d = journal_on(&nor_8);

    damage(newest_sector() + 8, 1, DEAD);
    assert_null(idem_explain(&d->config));          // there are others
    damage(512 + 8, d->medium.size, DEAD);
    assert_non_null(strstr(idem_explain(&d->config), "read"));
    damage(0, d->medium.size, DEAD);
    assert_non_null(idem_explain(&d->config));
    dead_len = 0;
    assert_null(idem_explain(&d->config));
}

static const scenario scenarios[] = {
    { "more_room_is_no_other_journal",
      "nor: sectors=26 Ba Ca rotate3 unjudged +capacity=12 retention=200000 "
      "attempts=9 senders=1 quota=7 P lost0 Ba:replay" },
    { "s5_less_capacity_loses_what_is_beyond_it_and_counts_it",
      "nor: Ba Ca Bb Cb Bc Cc Bd Cd Be unjudged +capacity=2 P loss Ba:replay "
      "Bb:replay Gc:none" },
    // The outcome of the one beyond it is an orphan, whatever stands after the
    // last slot.
    { "s5_an_outcome_beyond_less_capacity_is_not_counted_once_more",
      "nor: capacity=13 B0 B1 B2 B3 B4 B5 B6 B7 B8 B9 B10 B11 B12 C3 C8 C7 C12 "
      "R0 unjudged +capacity=12 P lost1 B3:replay" },
    // e's outcome alone has the time at which a had expired.  (Were it the last
    // record it might be torn.)
    { "less_capacity_does_not_lose_the_time_of_an_outcome_beyond_it",
      "nor: Ba Ca Bb Bc Bd Be,retention=1000000 Ce,ms=150000 Bb unjudged "
      "+capacity=4 P loss Ga:none" },
    { "s5_less_room_loses_the_response_that_is_beyond_it_and_counts_it",
      "nor: Ba Ca,len=4 Bb Cb,len=3 Bc Cc,len=24 Bd Cd,len=2 unjudged "
      "+response=3 P loss Ba:uncertain Bb:replay Bc:uncertain Bd:replay" },
    // The newest record, which nothing follows, is no torn one.
    { "s5_the_newest_response_that_is_beyond_it_is_counted",
      "Ba Ca Bb Cb,len=4 unjudged +response=3 P loss Ba:replay Bb:uncertain P "
      "lost0 Bb:uncertain" },
    { "s5_the_newest_response_that_is_beyond_it_is_counted_in_a_batch",
      "batch Ba Ca Bb Cb,len=4 Y unjudged +response=3 P loss Ba:replay "
      "Bb:uncertain" },
    { "s5_the_newest_key_that_is_beyond_less_room_is_counted",
      "scopes=1 key=8 Ba Ca Bb unjudged +key=4 P loss Ba:replay" },
    { "s5_the_newest_key_that_is_beyond_less_capacity_is_counted",
      "Ba Ca Bb unjudged +capacity=1 P loss Ba:replay" },
    { "s5_the_newest_state_that_is_beyond_less_room_is_counted",
      "Ba Ca Bb Sb,len=3,state=6 unjudged +state=5 P loss Ba:replay "
      "Bb:uncertain" },
    { "s5_a_newest_record_that_is_longer_than_any_may_be_is_counted",
      "roomy: response=200 Ba Ca Bb Cb,len=200 unjudged +response=3 P loss "
      "Ba:replay Bb:uncertain" },
    { "s5_even_if_that_is_nearly_as_long",
      "roomy: batch response=200 Ba Ca,len=200 Y unjudged "
      "+response=100 P loss Ba:uncertain" },
    // In a batch nothing follows that shows that they were durable.
    { "s5_responses_that_are_longer_than_any_may_be_are_counted_in_a_batch",
      "roomy: batch response=200 Ba Ca,len=200 Bb Cb,len=200 Y "
      "unjudged +response=3 P loss Ba:uncertain Bb:uncertain" },
    { "s5_one_before_a_shorter_one_is_counted_in_a_batch",
      "roomy: batch response=200 Ba Ca,len=200 Bb Cb,len=2 Y unjudged "
      "+response=3 P loss Ba:uncertain Bb:replay" },
    { "an_outcome_without_its_claim_is_no_loss_of_its_own",
      "nor: Ba note Ca,len=4 Bb unjudged damage +response=3 P lost1" },
    { "s5_a_key_that_is_longer_than_any_may_be_is_counted_in_a_batch",
      "roomy: batch scopes=1 key=100 Ba Ca Bb Y unjudged +key=4 P loss" },
    { "s5_a_state_that_is_longer_than_any_may_be_is_counted_in_a_batch",
      "roomy: batch Ba Sa,state=6 Y unjudged +state=0 P loss "
      "Ba:uncertain" },
    { "what_no_longer_fits_is_lost_once",
      "batch Ba Sa,state=2 Bb Bc Cb,len=4 Cc,len=1 Y unjudged +response=3 P "
      "loss Bd:uncertain Y P lost0 Be:uncertain Y P lost0 Ba:replay "
      "Bc:replay" },
    // What a claim had reserved may be more than there is room for now.
    { "less_room_loses_no_response_that_fits",
      "nor: Ba Ca,len=2 Bb Bc Oc,len=3 unjudged +response=3 P lost0 Ba:replay "
      "Bc:replay Bb:recover Cb,len=4:large Cb,len=3:ok" },

    { "formatting_forgets_what_was_there_for_good",
      "sectors=20 Ba Ca rotate3 note damage,how=6 format Ga:none P lost0 "
      "Ga:none Bb Cb P lost0 Ga:none Bc Cc P lost0 Ga:none Bd Cd Bb:replay" },
    { "formatting_reports_an_erase_that_fails",
      "nor: sectors=20 Ba Ca rotate3 fail2,at=# format:storage format Ba" },
    { "formatting_reports_a_program_that_fails",
      "cached: sectors=20 Ba Ca rotate3 fail1,at=# format:storage format Ba" },
    { "formatting_reports_a_sync_that_fails",
      "cached: sectors=20 Ba Ca rotate3 fail3 format:storage format Ba" },
};

TESTS(scenarios, run_scenario)

TEST(formatting_needs_memory)
{
    device *d = device_on(&nor, "");

    is(idem_format(d->table, &d->config, NULL, 0, 0), IDEM_E_MEMORY);
}

TEST(formatting_waits_for_each_erase)
{
    device *d = journal_on(&zeros);

    d->polls = 3;
    is(format(), IDEM_OK);
    is(d->polls_left, 0);
    is(d->erasing, 0);
    for (uint32_t at = 0; at < d->medium.size; at++)
        is(d->medium.bytes[at], 0);
}

/* Near the last sequence, of a journal whose sectors do not divide 2^32. */
TEST(formatting_erases_all_sectors_where_sequences_would_wrap)
{
    device *d = device_on(&nor, "sectors=300 unjudged");

    inside_start_far(d->table, UINT32_MAX - 200);
    is(answer('B', 0), IDEM_E_SPACE);
    for (uint32_t at = 100; at < d->medium.size; at += nor.sector_size)
        flash_fill(&d->medium, at, 1, 'x');
    is(format(), IDEM_OK);
    for (uint32_t at = 0; at < d->medium.size; at++)
        is(d->medium.bytes[at], nor.erased);
}

static void cut_format(const medium *m)
{
    uint32_t n, v, count = 1;

    for (n = 0; count; n++)
        for (v = 0, count = 1; v < count; v++) {
            device *d = device_on(m, "Ba Ca rotate2 Bb Cb");
            int result;
            d->medium.draws = 1;
            flash_cut(&d->medium, n, v);
            (void)format();
            count = d->medium.off ? d->medium.variants : 0;
            if (!count)
                break;
            result = reopen();
            if (result != IDEM_OK)
                is(result, IDEM_E_FORMAT);
            else if (answer('B', 0) == IDEM_RECOVER)
                assert_int_not_equal(d->table->stats.lost, 0);
            is(format(), IDEM_OK);
            run("Ba Ca");
        }
}

TEST(an_interrupted_format_can_be_done_again)
{
    cut_format(&nor_8);
    cut_format(&ecc);
}

TEST(a_sector_in_another_position_is_nothing)
{
    device *d = journal_on(&nor_8);
    uint32_t sectors = d->storage.sector_count, head;

    run("Bb Cb");
    head = newest_sector() / 512;
    for (uint32_t ahead = 1; ahead < 5; ahead++)
        flash_load(&d->medium, (head + ahead) % sectors * 512,
                   d->medium.bytes + head * 512, 512);
    d->damaged = 1;
    for (int boot = 0; boot < 12; boot++)
        run("P lost0 Ba:replay Bb:replay rotate1");
}

/* A sector that was begun in vain, and whose erase was cut, reads as erased to
   one boot, which does this, and as it was to the next. */
static void bring_back(const char *between, const char *next)
{
    static uint8_t before[512 * 40], stale[512];
    device *d = device_on(&nor, "Ba Oa P");
    uint32_t at, end;

    memcpy(before, d->medium.bytes, d->medium.size);
    run("fail1,at=0 Bb");
    at = newest_sector();
    memcpy(stale, d->medium.bytes + at, sizeof stale);
    end = stale[32] + 256u * stale[33] + 8;         // of the commit record
    memset(stale + end, 0xFF, sizeof stale - end);
    flash_load(&d->medium, 0, before, d->medium.size);
    d->damaged = 1;
    run("P lost0 Ba:replay");
    run(between);
    is(newest_sector() + 512, at);
    flash_load(&d->medium, at, stale, sizeof stale);
    run("P loss Ba:replay");
    run(next);
}

/* What was written in between is newer, whatever it is. */
TEST(s2_a_sector_that_a_cut_erase_brings_back_is_no_head)
{
    bring_back("Bb Cb",
               "Bb:replay Bc:uncertain Cc P lost0 Bb:replay Bc:replay");
    bring_back("Da:ok", "Bb:uncertain");
}

/* Formatting erases the newest sector last, whenever power goes: each erase is
   durable before the next begins. */
TEST(s2_each_erase_of_a_format_is_synced)
{
    const device *d = device_on(&synced, "Ba Ca");
    uint32_t syncs = d->medium.syncs;

    run("format");
    is(d->medium.syncs - syncs, d->storage.sector_count);
}

/* A slot has up to 24 bits. */
TEST(claims_in_more_slots_than_14_bits_count_are_found_again)
{
    enum { MANY = (1 << 14) + IDEM_MANY };
    device *d = device_on(&roomy, "capacity=16400 response=0 state=0");
    idem_request requests[IDEM_MANY] = { { 0 } };
    idem_reply replies[IDEM_MANY];
    uint32_t numbers[IDEM_MANY] = { 0 };
    int answers[IDEM_MANY];

    for (unsigned i = 0; i < IDEM_MANY; i++) {
        requests[i].key = &numbers[i];
        requests[i].key_len = sizeof numbers[i];
    }
    for (uint32_t n = 0; n < MANY; n++) {
        numbers[n % IDEM_MANY] = n;
        if (n % IDEM_MANY == IDEM_MANY - 1)
            is(idem_begin_many(d->table, answers, replies, requests, IDEM_MANY,
                               d->now), IDEM_OK);
    }
    is(answers[0], IDEM_EXECUTE);
    is(reopen(), IDEM_OK);
    is(idem_begin_many(d->table, answers, replies, requests, IDEM_MANY,
                       d->now), IDEM_OK);
    for (unsigned i = 0; i < IDEM_MANY; i++)
        is(answers[i], IDEM_RECOVER);
    is(d->table->stats.lost, 0);
}

/* The newest record, which is rewritten, is none that is beyond the limits: an
   erase, the two keys, the header and the commit record; after the loss an
   erase, a header and a commit record more; the claim. */
TEST(what_does_not_fit_is_not_rewritten)
{
    device_on(&nor, "Ba Ca,len=2 Bb Cb,len=20 unjudged +response=10 P loss");
    run("Bc:uncertain");
    is(wrote.count, 1 + 2 + 2 + 3 + 1);
}
