/* SPDX-License-Identifier: 0BSD */
/*
 * Callbacks that fail: failures use up no working storage (S7), whatever fails,
 * and for how long.  journal.c shows that a single failing call changed
 * nothing, and has all cases that a line can describe.
 */
#include "scenario.h"

// Thrice: it answers that, and writes nothing.
#define REFUSED "Bc:storage untouched Y:storage untouched Ba:replay "           \
                "untouched m untouched "
#define STAYS REFUSED REFUSED REFUSED "P Ba:replay Ac Y:ok"

static const scenario scenarios[] = {
    { "after_a_sync_that_failed_nothing_is_written",
      "cached: Aa Bb fail3,how=# Cb:storage " STAYS },
    { "after_a_sync_that_failed_nothing_is_written_to_flash",
      "synced: Aa Bb fail3,how=# Cb:storage " STAYS },
    { "after_a_sync_of_a_batch_that_failed_nothing_is_written",
      "cached: batch Aa Bb fail3,how=# Cb:ok Y:storage " STAYS },
    { "after_a_sync_of_a_batch_that_failed_nothing_is_written_to_flash",
      "synced: batch Aa Bb fail3,how=# Cb:ok Y:storage " STAYS },
    // Even if sectors were skipped until no claim has room.
    { "after_a_sync_that_failed_no_rotation_makes_room",
      "cached: Ba Ca Bb fail1,forever Bc:storage Bc:storage Bc:storage "
      "Bc:storage Bc:storage works fail3 Cb:storage Bc:storage untouched P "
      "Ba:replay Ac" },
    // .. nor is a second state in a batch, before which the first is synced.
    { "after_a_sync_that_failed_no_second_state_is_written",
      "cached: batch Ba Bb Y Ca,state fail3 Cb,state:storage P" },
    { "a_delivery_is_refused_when_no_head_can_be_made",
      "nor: Ba Ca,confirm P fail1,forever Da:storage works Da:ok" },
    // It is reported, and not tried again and again.
    { "an_erase_that_fails_in_idle_time_is_reported",
      "nor: Ba fail2 m:storage m untouched Ca:ok rotate1" },
    // A commit record is there, but reported as failed; the next head has none,
    // as the power goes, and the next boot cannot erase that.
    { "a_head_that_does_not_count_hides_none",
      "nor: Ba Ca P fail1,at=2,how=1 | Bb | fail2 Bc P lost0 Ba:replay" },
    { "verify_fails_if_what_was_programmed_cannot_be_read",
      "nor_8: verify Ba Ca unjudged fail0 Bb:storage Bb P Ba:replay "
      "Bb:recover" },
    { "verify_reads_all_that_was_programmed",
      "nor_8: verify Ba Ca unjudged fail0,at=1 Bb:storage Bb P Ba:replay "
      "Bb:recover" },
};

TESTS(scenarios, run_scenario)

/* Nor is the time written again and again while no head can be made, as each try
   erases: for new keys that are refused; in idle time, and in that of a boot that
   has not written. */
TEST(no_time_is_written_to_a_storage_that_takes_no_bytes)
{
    static const char calls[] = "Bmm";

    for (unsigned n = 0; n < 3; n++) {
        device *d = device_on(&nor, n == 2 ? "capacity=1 Ba Ca P"
                                           : "capacity=1 Ba Ca");
        uint32_t erased = 0;
        run("fail1,forever wait70000");
        for (unsigned left = 100; left > 0; left--) {
            d->now += 100;
            (void)answer(calls[n], 1);
            erased += d->erases;
        }
        assert_in_range(erased, 1, 4);
        run("works wait31000 Bb:execute Cb wait20000 M P Bb:replay");
        assert_in_range(inside_clock(d->table), 120000, UINT32_MAX);
    }
}

/* A call that may fail, and then does what it must when it is repeated. */
static void in_time(char what, unsigned key, int expected)
{
    int result = IDEM_E_STORAGE;

    for (int left = 4; left > 0 && result == IDEM_E_STORAGE; left--)
        result = answer(what, key);
    is(result, expected);
}

static uint32_t progs_before_failure;

static int sync_fails(void *ctx)
{
    progs_before_failure = ((device *)ctx)->medium.progs;
    return FLASH_E_FAULT;
}

/* .. in a boot that finds an interrupted rotation. */
TEST(after_a_sync_that_failed_no_more_is_erased)
{
    static const medium *const synced_ones[] = { &cached, &synced };

    for (unsigned n = 0; n < 2 * 20; n++) {
        device_on(synced_ones[n % 2], "A1 P");
        flash_cut(&the.medium, n / 2, FLASH_ALL);
        the.damaged = 1;
        (void)answer('B', 5);
        is(reopen(), IDEM_OK);
        the.storage.sync = sync_fails;
        is(answer('B', 6), IDEM_E_STORAGE);
        is(the.medium.progs, progs_before_failure);
    }
}

/* A claim is given back, or its lease ends, or the key is forgotten: so another
   may follow.  The answer to the begin. */
static int one_more(void)
{
    int result = answer('B', 20);

    if (result == IDEM_EXECUTE || result == IDEM_RECOVER)
        (void)answer('R', 20);
    else if (result == IDEM_BUSY)
        run("L");
    else if (result == IDEM_EXHAUSTED)
        (void)answer('X', 20);
    return result;
}

/* `fails` operations fail, one after the other; then all works again. */
static void fail_many(const medium *m, int callback, unsigned fails)
{
    device_on(m, "Ba Ca Bb,lease");
    for (unsigned left = 300; fails > 0 && left > 0; left--) {
        run_of("fail@", (unsigned)callback);
        run(left % 2 ? "Bt" : "Rt");
        fails -= !the.medium.faults[callback].how;
    }
    run("works Cb:ok L Xt K60 Ba:replay Bb:replay P Ba:replay Bb:replay P");
}

TEST(failures_that_have_ended_use_up_no_sector_that_works)
{
    for (size_t m = 0; m < COUNT(media); m++)
        for (unsigned fails = 1; fails < 25; fails += 1 + fails / 9) {
            fail_many(media[m], FLASH_PROG, fails);
            if (media[m]->kind != FLASH_INPLACE)
                fail_many(media[m], FLASH_ERASE, fails);
        }
}

static void pass_over(uint8_t how, uint32_t bad)
{
    device *d = device_on(&nor_8, "sectors=18 unjudged");

    d->storage.verify = how >= FLASH_STUCK_PROG;
    d->medium.bad[bad] = how;
    d->medium.bad[(bad + 3 * (bad % 2)) % d->storage.sector_count] = how;
    for (unsigned key = 4; key < 7; key++)
        in_time('B', key, IDEM_EXECUTE);
    for (unsigned n = 0; n < 250; n++) {
        in_time('B', 0, IDEM_EXECUTE);
        in_time('C', 0, IDEM_OK);
        if (n % 60 == 0)
            run("P lost0");
        in_time('B', 0, IDEM_REPLAY);
        in_time('X', 0, IDEM_OK);
    }
    run("Ge Gf Gg");
}

TEST(bad_sectors_are_skipped)
{
    static const uint8_t hows[] = { FLASH_BAD_ERASE, FLASH_BAD_PROG,
                                    FLASH_STUCK_PROG, FLASH_STUCK_ERASE };

    for (size_t i = 0; i < COUNT(hows); i++)
        for (uint32_t bad = 0; bad < 8; bad++)
            pass_over(hows[i], bad);
}

/* One sector after the other wears out. */
TEST(with_too_few_sectors_left_only_new_claims_are_refused)
{
    device *d = device_on(&nor_8, "sectors=18 Ba,retention Ca "
                                  "Bb,retention,lease Bc,retention,lease "
                                  "Bd,retention,lease");
    unsigned bad = 0;
    int result = IDEM_EXECUTE;

    for (unsigned n = 0; n < 5000 && result != IDEM_E_SPACE; n++) {
        if (n % 200 == 199 && bad < d->storage.sector_count)
            d->medium.bad[bad++] = FLASH_BAD_ERASE;
        result = one_more();
        run("Ba:replay");
    }
    is(result, IDEM_E_SPACE);
    assert_in_range(bad, 3, d->storage.sector_count);
    memset(d->medium.bad, 0, d->storage.sector_count);
    run("Cb:ok Cc:ok Cd:ok Bb:replay Bc:replay Bd:replay");
    memset(d->medium.bad, 0, d->storage.sector_count);
    run("P Bb:replay Bc:replay Bd:replay");
}

/* A journal ends after 2^32 sectors, without IDEM_WIDE after 4 GB: completions
   still fit. */
TEST(s7_the_last_sequence_refuses_new_claims_only)
{
    for (size_t m = 0; m < COUNT(media); m++) {
        int result = IDEM_EXECUTE;
        device *d = device_on(media[m], "");
        uint32_t end =
            IDEM_WIDE ? UINT32_MAX : UINT32_MAX / d->storage.sector_size;
        inside_start_far(d->table, end - 1000);
        the.runs_out = 1;
        run("Ba Ca Bb,lease Bc,lease Bd,lease");
        for (uint32_t n = 0; n < 50000 && result == IDEM_EXECUTE; n++)
            result = one_more();
        is(result, IDEM_E_SPACE);
        run("Cb:ok Cc:ok Cd:ok Bn:space P m Ga:ok Gb:ok Gc:ok Gd:ok P m Ga:ok "
            "Gb:ok Gc:ok Gd:ok");
    }
}

/* Nor does any boot after that start them again, in as many sectors as are begun
   and take no claim. */
TEST(s1_no_boot_starts_tokens_again)
{
    enum { SIZE = 1 << 17, LAST = 256 };
    const uint64_t end = (IDEM_WIDE ? UINT64_MAX >> 16 : UINT32_MAX) / SIZE;
    unsigned granted = 0;

    inside_start_far(device_on(&roomy, "size=131072")->table,
                     (uint32_t)end - LAST - 20);
    the.runs_out = 1;
    run("B1 C1");
    for (unsigned boot = 0; boot < 2 * LAST; boot++) {
        int result = answer('B', 0);
        if (result == IDEM_E_SPACE)
            assert_in_range(granted, 10, 20);
        else {
            is(result, IDEM_EXECUTE);
            run("R0");
            granted++;
        }
        run("P B1:replay");
    }
}

static uint32_t read_that_fails;

static void fail_a_read(void)
{
    flash_fail(&the.medium, FLASH_READ, read_that_fails, FLASH_UNDONE, 0);
}

static void fail_all_reads(void)
{
    flash_fail(&the.medium, FLASH_READ, 0, FLASH_UNDONE, 1);
}

TEST(a_read_that_fails_while_opening_is_damage)
{
    for (size_t m = 0; m < COUNT(media); m++)
        for (read_that_fails = 0; read_that_fails < 30; read_that_fails++) {
            int result;
            device_on(media[m], "Ba Ca rotate2 Bb Cb")->change = fail_a_read;
            result = reopen();
            if (result != IDEM_OK)
                is(result, IDEM_E_STORAGE);
            else if (answer('B', 0) != IDEM_REPLAY)
                assert_int_not_equal(the.table->stats.lost, 0);
            the.change = NULL;
            run("P Ba:replay");
        }
}

TEST(a_storage_that_does_not_read_at_all_is_not_blank)
{
    static const char *const before[] = { "", "Ba Ca" };
    static const char *const after[] = { "P", "P Ba:replay" };

    for (size_t m = 0; m < 2 * COUNT(media); m++) {
        device_on(media[m / 2], before[m % 2])->change = fail_all_reads;
        is(reopen(), IDEM_E_STORAGE);
        is(the.table->storage_error, FLASH_E_FAULT);
        is(idem_maintain(the.table, 0), IDEM_E_ARG);
        the.change = NULL;
        run(after[m % 2]);
    }
}

/* The n-th sync fails, and all after it. */
static struct { unsigned left; int failed; uint32_t progs; } syncs;

static int sync_or_fail(void *ctx)
{
    device *d = (device *)ctx;

    if (!syncs.failed && syncs.left-- > 0)
        return device_operated(d, flash_sync(&d->medium));
    if (!syncs.failed)
        syncs.progs = d->progs;
    syncs.failed = 1;
    return device_operated(d, FLASH_E_FAULT);
}

/* Not even a record for which a sector was made ready: after a loss the first
   rotation erases the sector that it has skipped, and that is not synced. */
TEST(after_a_failed_sync_nothing_is_written)
{
    int failed = 1;

    for (unsigned n = 0; failed; n++) {
        device *d = device_on(&cached,
                              n % 2 ? "batch Ba Ca Bb Cb Y note Bc Cc Y"
                                    : "Ba Ca Bb Cb note Bc Cc");
        idem_request rq = { 0 };
        uint8_t id[ID_MAX];
        int result;
        run("damage P lost1");
        device_name(d, &rq, 0, id);
        flash_fail(&d->medium, FLASH_PROG, 1, FLASH_UNDONE, 0);
        d->storage.sync = sync_or_fail;
        syncs.left = n / 2;
        syncs.failed = 0;
        result = idem_forget(d->table, &rq, d->now);
        failed = syncs.failed;
        is(result, failed ? IDEM_E_STORAGE : IDEM_OK);
        if (failed)
            is(d->progs, syncs.progs);
    }
}

/* Reads from the n-th of an opening on, `many`, fail: what they return
   then, or they read as erased, or as it once was. */
static struct {
    uint32_t from, many, count;
    int result;
    const uint8_t *once;                // the storage then; NULL: erased
} outage_of_reads;

static int read_in_outage(void *ctx, uint32_t at, void *dst, uint32_t len)
{
    uint32_t n = outage_of_reads.count++;

    if (n < outage_of_reads.from ||
        n - outage_of_reads.from >= outage_of_reads.many)
        return device_read(ctx, at, dst, len);
    if (outage_of_reads.once)
        memcpy(dst, outage_of_reads.once + at, len);
    else
        memset(dst, the.medium.erased, len);
    return device_operated((device *)ctx, outage_of_reads.result);
}

static void begin_outage(uint32_t from, uint32_t many, int result)
{
    the.damaged = 1;
    the.storage.read = read_in_outage;
    outage_of_reads.from = from;
    outage_of_reads.many = many;
    outage_of_reads.count = 0;
    outage_of_reads.result = result;
    outage_of_reads.once = NULL;
}

/* Opens what was saved; all is read again after that. */
static int open_without(uint32_t from, uint32_t many, int result)
{
    int opened;

    load();
    begin_outage(from, many, result);
    opened = reopen();
    outage_of_reads.many = 0;
    return opened;
}

/* What is not replayed after such an opening is counted as lost, unless that is
   refused; but what was written last is as good as torn if a few reads alone
   did not work.  Returns how many reads it made. */
static uint32_t open_in_outage(uint32_t from, uint32_t many, int result)
{
    unsigned last = from > 0 && many < UINT32_MAX ? 5 : 6;
    int opened = open_without(from, many, result);
    uint32_t count = outage_of_reads.count;

    if (opened != IDEM_OK)
        is(opened, IDEM_E_STORAGE);
    for (unsigned key = 4; opened == IDEM_OK && key <= last; key++) {
        int answered = answer('B', key);
        if (answered == IDEM_REPLAY || answered == IDEM_E_STORAGE)
            continue;
        assert_int_not_equal(answered, IDEM_EXECUTE);
        assert_int_not_equal(the.table->stats.lost, 0);
    }
    return count;
}

/* For the first reads of an opening, or for all from one on, or in between. */
TEST(s5_an_outage_of_reads_while_opening_hides_nothing_uncounted)
{
    static const char *const lines[] = { "A4 A5 A6", "A4 A5 A6 P B6:replay",
                                         "A4 rotate2 A5 P rotate1 A6" };

    for (size_t m = 0; m < COUNT(lines) * COUNT(media); m++) {
        device_on(media[m / COUNT(lines)], lines[m % COUNT(lines)]);
        save();
        for (int blank = 0; blank < 2; blank++) {
            int result = blank ? FLASH_OK : FLASH_E_FAULT;
            uint32_t reads = open_in_outage(0, 0, result);
            for (uint32_t n = 0; n < reads; n += 1 + n / 16) {
                (void)open_in_outage(0, n + 1, result);
                (void)open_in_outage(n, UINT32_MAX, result);
                (void)open_in_outage(n, 2, result);
                (void)open_in_outage(n, 3, result);
                (void)open_in_outage(n, 20, result);
            }
        }
    }
}

/* What reads as it once was, until the headers are read for the last time. */
TEST(s2_older_contents_hide_no_newer_ones)
{
    static const char *const lines[][2] = {
        { "A4", "P A5 A6 A7" }, { "A4", "A3 rotate1 A5 A6 A7" },
        { "A4 rotate3", "P A5 A6 A7" },
    };

    for (size_t l = 0; l < COUNT(lines); l++) {
        static uint8_t once[16 * 512];
        device *d = device_on(&nor, lines[l][0]);
        assert_in_range(d->medium.size, 1, sizeof once);
        memcpy(once, d->medium.bytes, d->medium.size);
        run(lines[l][1]);
        save();
        for (uint32_t n = 0; n < 60 * 60; n++) {
            int opened;
            load();
            begin_outage(n / 60, 1 + n % 60, FLASH_OK);
            outage_of_reads.once = once;
            opened = reopen();
            outage_of_reads.many = 0;
            if (opened < 0 || n / 60 + n % 60 + d->storage.sector_count >=
                                  outage_of_reads.count)
                continue;
            if (answer('B', 5) != IDEM_REPLAY)
                run("loss");
        }
    }
}

/* The same of a journal of few sectors, each with a key, which is not taken for
   blank; then the first write is cut. */
TEST(s5_an_outage_of_reads_before_a_cut_hides_nothing_uncounted)
{
    for (unsigned heads = 1; heads <= 3; heads++) {
        device_on(&nor, "");
        for (unsigned n = 1; n <= heads; n++)
            run_of("P A@", n);
        save();
        for (uint32_t many = 1; many < 4000; many += 1 + many / 64)
            for (int blank = 0; blank < 2; blank++) {
                if (open_without(0, many, blank ? FLASH_OK : FLASH_E_FAULT) !=
                    IDEM_OK)
                    continue;
                if (!blank && answer('G', heads) != IDEM_OK)
                    run("loss");
                run("cut1 B9:any P");
                if (answer('B', heads) != IDEM_REPLAY)
                    run("loss");
            }
    }
}

/* The newest sectors have nothing but a commit record: boots that have only
   replayed.  What such an opening acknowledges is there at the next one. */
TEST(s5_an_outage_of_reads_hides_nothing_of_its_own_boot)
{
    for (unsigned boots = 1; boots < 14; boots++)
        for (uint32_t n = 2; n < 4000; n += 1 + n / 16) {
            device_on(&nor, "A1");
            for (unsigned boot = 0; boot < boots; boot++)
                run("P B1:replay");
            save();
            if (open_without(0, n / 2, n % 2 ? FLASH_OK : FLASH_E_FAULT) !=
                    IDEM_OK ||
                answer('B', 9) != IDEM_EXECUTE || answer('C', 9) != IDEM_OK)
                continue;
            run("P");
            if (answer('B', 9) != IDEM_REPLAY)
                run("loss");
        }
}

/* In one whole boot nothing but erased bytes is read: a journal is begun anew
   over a sector of the one that is there, but its own header is not read
   either. */
TEST(s5_nothing_is_acknowledged_in_a_boot_that_reads_nothing)
{
    static const char *const lines[] = { "sectors=5 capacity=2 B5,retention C5",
                                         "sectors=6 capacity=2 B5,retention C5",
                                         "sectors=20 rotate20 B5,retention "
                                         "C5" };

    for (unsigned n = 3; n < 3 * 20; n++) {
        device_on(&roomy, lines[n % 3]);
        run_of("rotate@", n / 3);
        begin_outage(0, UINT32_MAX, FLASH_OK);
        run("P B6:storage B6:storage");
        outage_of_reads.many = 0;
        is(reopen(), IDEM_OK);
        if (answer('B', 5) != IDEM_REPLAY)
            run("loss");
    }
}

/* In what is there nothing is read but erased bytes until a journal has been
   begun over it; then all is. */
static void begin_over(void)
{
    uint32_t reads;

    save();
    (void)open_without(0, UINT32_MAX, FLASH_OK);
    reads = outage_of_reads.count;
    load();
    begin_outage(0, reads + the.storage.sector_count, FLASH_OK);
    run("P B6:storage");
}

/* It is seen then, and left alone, though calls are repeated. */
TEST(s2_no_more_is_written_over_a_journal_that_is_seen)
{
    for (unsigned n = 0; n < 20; n++) {
        device_on(&nor, "sectors=8 capacity=4");
        run_of("rotate@ B5,retention C5", 10 + n);
        begin_over();
        run("B6:storage untouched B7:storage untouched m untouched P");
        if (answer('B', 5) != IDEM_REPLAY)
            run("loss");
    }
}

/* The same after a rotation that skipped a sector and was cut, and after a loss:
   few sectors are dead then.  The next boot erases none that is needed. */
TEST(s2_a_boot_that_sees_such_a_journal_erases_nothing_that_is_needed)
{
    for (uint32_t n = 0; n < 2 * 12 * 12; n++) {
        device_on(&nor, "sectors=8 capacity=4");
        run_of("rotate@ A4 B5 note C5 rotate4 P fail2 unjudged", 10 + n / 2 / 12);
        run_of("cut@ B20:any P:any", n / 2 % 12);
        if (n % 2)
            run("damage");              // a loss that has nothing to do with it
        begin_over();
        outage_of_reads.many = 0;
        is(reopen(), IDEM_OK);
        save();
        for (uint32_t cut = 0; cut < 12; cut++) {
            load();
            is(reopen(), IDEM_OK);
            if (answer('G', 4) != IDEM_OK)
                break;              // it was in the sector that was begun
            run_of("cut@ B21:any P G4:ok", cut);
        }
    }
}

/* In one whole boot nothing is read but what was written in it, over the first
   sector of the ring; later all else is there again. */
static void begin_over_all(flash *f)
{
    static uint8_t old[20 * 4096];

    memcpy(old, f->bytes, f->size);
    flash_fill(f, 0, f->size, f->erased);
    run("unjudged P B5:execute C5:ok");
    for (uint32_t at = 0; at < f->size; at += 4096)
        if (at != 4096)             // where the new one is
            flash_load(f, at, old + at, 4096);
}

/* What such a boot has acknowledged is hidden, and is counted, where the ring has
   gone round before. */
TEST(s5_a_journal_begun_anew_over_another_is_a_loss)
{
    static const char *const lines[] = { "sectors=5 capacity=3 rotate6 A1",
                                         "sectors=6 capacity=2 rotate7",
                                         "sectors=20 rotate21" };

    for (unsigned n = 0; n < 3 * 24; n++) {
        flash *f = &device_on(&roomy, lines[n % 3])->medium;
        run_of("rotate@", 1 + n / 3);
        begin_over_all(f);
        run("P loss");
        save();
        for (uint32_t cut = 0; cut < 6 * 6; cut++) {
            load();
            run_of("P cut@ B6:any P", cut % 6);
            run_of("cut@ B6:any P B5:uncertain", cut / 6);
        }
        for (unsigned boot = 0; boot < 40; boot++)
            run("P K1");
        run("P lost0");
        load();
        run("format lost0 B6:execute");     // that forgets it, too
    }
}

/* .. also if of both nothing is left but headers, and the oldest, after two that
   failed, names no other. */
TEST(s5_so_it_is_if_only_headers_are_left)
{
    device *d = device_on(&roomy, "sectors=5 capacity=2");
    flash *f = &d->medium;
    uint64_t last;

    f->bad[1] = f->bad[2] = FLASH_BAD_PROG;
    while (!d->table->journal->head)
        (void)answer('B', 95);
    f->bad[1] = f->bad[2] = 0;
    while (inside_sequence(d->table) < 7)
        (void)(answer('B', 94), answer('R', 94));
    last = the.held[94].token;
    begin_over_all(f);
    for (uint32_t at = 0; at < f->size; at += 4096)
        damage(at + HEADER_BYTES, 4096 - HEADER_BYTES, ANYTHING);
    run("P loss B5:uncertain");
    assert_in_range(last, 1, the.held[5].token - 1);
}

TEST(verify_finds_a_program_that_did_nothing)
{
    device_on(&nor_8, "verify Ba Ca unjudged");
    for (uint32_t n = 0; n < 40; n++) {
        flash_fail(&the.medium, FLASH_PROG, n % 4, FLASH_SILENT, 0);
        in_time('B', 1, IDEM_EXECUTE);
        in_time('R', 1, IDEM_OK);
    }
    run("P lost0 Ba:replay Gb:none");
}

static uint32_t wrong;          // the byte, of what is programmed, that flips

static int prog_wrongly(void *ctx, uint32_t at, const void *src, uint32_t len)
{
    int result = device_prog(ctx, at, src, len);

    if (wrong < len)
        flash_flip(&the.medium, at + wrong, 0);
    return result;
}

TEST(verify_finds_one_wrong_bit_wherever_it_is)
{
    for (wrong = 0; wrong < 24; wrong++) {
        device_on(&nor_8, "verify Ba Ca unjudged")->storage.prog = prog_wrongly;
        is(answer('B', 1), IDEM_E_STORAGE);
    }
}

/* A few commands long, whatever the ring looks like. */
static void outage(unsigned before, unsigned commands)
{
    static const medium large = { "granules of 8", FLASH_NOR, 0, 8, 1024,
                                  0xFF };

    device_on(&large, "capacity=16");
    for (unsigned n = 0; n < before; n++)
        run_of("wait6666 B@ C@,len=24,code=70000", n);
    run("fail1,how=1,forever");
    while (commands-- > 0)
        (void)answer('B', 94);
    run("works wait300000 M P");
    for (unsigned boot = 0; boot < 3; boot++)
        run("wait300000 M A93 X93 P");
}

TEST(l2_no_outage_is_the_end_of_a_ring)
{
    for (unsigned before = 1; before < 80; before++)
        for (unsigned commands = 2; commands < 5; commands++)
            outage(before, commands);
}

/* One key in the oldest, and more sectors than are counted one by one. */
TEST(l2_no_outage_is_the_end_of_a_ring_of_many_sectors)
{
    for (unsigned before = 1; before < 4; before++)
        for (unsigned commands = 13; commands < 17; commands++) {
            device_on(&nor, "sectors=30 K1");
            run_of("rotate@ Ba,retention Ca fail1,forever", before);
            for (unsigned n = 0; n < commands; n++)
                (void)answer('B', 94);
            run("works Bb:execute");
        }
}

/* In the middle some erases work once more, and with them a head.  The oldest
   sector has more claims than a head has room for with their outcomes. */
TEST(l2_no_head_in_an_outage_is_the_last_one)
{
    for (unsigned commands = 4; commands < 10; commands++)
        for (unsigned erases = 1; erases < 4; erases++) {
            device_on(&nor, "capacity=16 lease=4294967295 Ba Bb Bc Bd Be Bf Bg "
                            "Bh Bi Bj Bk Bl Bm Bn Bo Ca,len=24 Cb,len=24 "
                            "Cg,len=24 Ch,len=24 fail1,how=1,forever "
                            "fail2,how=1,forever");
            for (unsigned n = 0; n < commands; n++)
                (void)answer('B', 94);
            flash_fail(&the.medium, FLASH_PROG, 0, 0, 0);
            flash_fail(&the.medium, FLASH_ERASE, erases, 1, 1);
            (void)answer('B', 94);
            run("works P B93 P Ba:replay Bg:replay");
        }
}

/* What an outage leaves half done on blank storage is excused like a cut. */
TEST(an_outage_at_the_first_commands_is_over_after_a_restart)
{
    for (unsigned commands = 1; commands < 9; commands++) {
        device_on(&nor, "");
        the.medium.faults[FLASH_PROG].how = FLASH_HALF;
        the.medium.faults[FLASH_PROG].forever = 1;
        for (unsigned n = 0; n < commands; n++)
            (void)answer('B', 0);
        assert_null(idem_explain(&the.config));
        run("works P Ba:execute");
    }
}

/* The oldest sector has more outcomes than a head has room for, and a boot
   skips sectors: it begins another head, for less than two are dead, or D6 would
   not find this one. */
TEST(l2_a_boot_that_skips_sectors_grants_claims)
{
    static const medium large = { "large", FLASH_NOR, 0, 1, 2048, 0xFF };

    for (unsigned commands = 2; commands < 5; commands += 2) {
        device_on(&large, "state=0 capacity=10 keys=96 response=200 "
                          "retention=2592000000");
        for (unsigned key = 0; key < 8; key++)
            run_of("B@", key);
        for (unsigned key = 0; key < 8; key++)
            run_of("C@,len=200", key);
        run("B90 P fail1,forever");
        for (unsigned n = 0; n < commands; n++)
            (void)answer('B', 94);
        run("works B93:execute");
        is(the.erases, 2);
    }
}

static uint32_t headers_that_fail;

static int prog_header_fails(void *ctx, uint32_t at, const void *src,
                             uint32_t len)
{
    if (at % the.medium.sector_size || headers_that_fail == 0)
        return device_prog(ctx, at, src, len);
    headers_that_fail--;
    return device_operated((device *)ctx, FLASH_E_FAULT);
}

/* In the smallest sectors, in which hardly more than one key fits: a boot's
   first rotation fails twice, at its header, and then all is well. */
static void fail_first_rotation(unsigned capacity, uint16_t granule,
                                unsigned before)
{
    medium small = { "small", FLASH_NOR, 0, granule, 256, 0xFF };

    while (!IDEM_SECTORS(capacity, KEY_MAX, 12, 0, small.sector_size, granule))
        small.sector_size += granule;
    device_on(&small, filled("response=12 state=0 keys=96 capacity=@", 0,
                             capacity));
    the.storage.prog = prog_header_fails;
    for (unsigned key = 0; key + 1 < capacity; key++)
        run_of("B@ C@,len=1", key);
    for (unsigned n = 0; n < before; n++)
        run("B90 C90,len=1 X90");
    if (before % 2)
        run("B90 C90,len=1");
    run("P unjudged");
    headers_that_fail = 2;
    (void)answer('B', 0);
    headers_that_fail = 0;
    run("X90:any B0:replay");
    for (unsigned n = 0; n < 60; n++)
        run("B90:execute C90,len=1:ok X90:ok");
}

TEST(l2_two_failures_in_a_first_rotation_are_not_the_end_of_a_ring)
{
    for (unsigned capacity = 4; capacity < 8; capacity += 3)
        for (uint16_t granule = 1; granule <= 16; granule *= 4)
            for (unsigned before = 0; before < 24; before++)
                fail_first_rotation(capacity, granule, before);
}

/* Opened for longer responses, with as many sectors as these take: what was
   begun for shorter ones is relocated in time. */
TEST(l2_a_larger_response_max_is_not_the_end_of_a_ring)
{
    for (uint16_t response = 60; response < 300; response += 80)
        for (unsigned before = 1; before < 40; before += 3) {
            medium m = { "grows", FLASH_NOR, 0, 1, 500, 0xFF };
            while (!IDEM_SECTORS(8, KEY_MAX, response, 0, m.sector_size, 1))
                m.sector_size += 100;
            device_on(&m, filled("state=0 keys=96 response=@", 0, response));
            the.config.response_max = 4;
            run("P");
            for (unsigned key = 0; key < 7; key++)
                run_of("B@ C@,len=1", key);
            for (unsigned n = 0; n < before; n++)
                run("B90 C90,len=1 X90");
            the.config.response_max = response;
            run("P lost0");
            for (unsigned n = 0; n < 60; n++)
                run("B90:execute C90:ok X90:ok");
            run("B0:replay B6:replay");
        }
}

/* The commit record, which follows a header, is reported several times as
   failed; it is programmed, or not. */
static uint32_t commits_that_fail;
static int commits_are_written;

static int prog_commit_fails(void *ctx, uint32_t at, const void *src,
                             uint32_t len)
{
    static int is_commit;
    int fails = is_commit && commits_that_fail > 0;
    int result = FLASH_OK;

    is_commit = at % the.medium.sector_size == 0;
    if (!fails || commits_are_written)
        result = device_prog(ctx, at, src, len);
    if (!fails || result != FLASH_OK)
        return result;
    commits_that_fail--;
    return device_operated((device *)ctx, FLASH_E_FAULT);
}

/* What was begun in vain is erased while the sector after it is being erased
   ahead: all of that, or one of them would be the head of the next boot. */
TEST(s2_an_erase_ahead_does_not_stand_for_one_of_what_was_begun_in_vain)
{
    unsigned completed = 0;

    for (unsigned before = 1; before < 40; before++) {
        device_on(&zeros, "capacity=12 A0 A1 A2 A3 A4 A5 A6 A7 A8 A9 unjudged");
        the.storage.prog = prog_commit_fails;
        for (unsigned n = 0; n < before; n++)
            run("B10 C10 X10");
        commits_that_fail = 4;
        commits_are_written = 1;
        for (unsigned n = 0; n < 60 && commits_that_fail > 0; n++)
            if (answer('B', 11) == IDEM_EXECUTE)
                (void)answer('R', 11);
        (void)answer('m', 0);
        if (answer('B', 12) != IDEM_EXECUTE || answer('C', 12) != IDEM_OK)
            continue;
        completed++;
        run("P B12:replay B0:replay B9:replay");
    }
    assert_in_range(completed, 10, 40);
}

/* After a loss, in a ring in which there is no room but where a head was begun
   in vain. */
TEST(s1_tokens_grow_by_less_than_the_ring_after_a_loss)
{
    for (unsigned before = 1; before < 80; before++) {
        uint64_t token;
        device_on(&nor, "capacity=20 unjudged");
        for (unsigned key = 0; key < 20; key++)
            run_of("B@ C@,len=24", key);
        for (unsigned n = 0; n < before; n++)
            run("X3 B3 C3,len=24");
        token = the.held[3].token;
        run("P");
        the.storage.prog = prog_commit_fails;
        commits_are_written = 0;
        commits_that_fail = 2;
        (void)answer('B', 30);
        the.config.capacity = 19;
        run("P loss");
        for (unsigned key = 0; key < 6; key++) {
            run_of("X@:any B@:any", key);
            assert_in_range(the.held[key].token, token + 1,
                            token + 2 * the.medium.size);
            token = the.held[key].token;
        }
    }
}

/* Under lower limits the newest sectors have only records that are too long
   (keys 1, 9 and 17): an older one is the head.  The first write is cut, and then
   the limits are back. */
TEST(s4_keys_that_lower_limits_hide_are_there_again_or_counted)
{
    for (uint32_t cut = 0; cut < 20; cut++) {
        device_on(&roomy, "scopes=1 key=100 capacity=8 response=4 state=0 "
                          "A0 A2 A3 A4 P a P B17 P B1 P B9 unjudged +key=8 P "
                          "loss");
        run_of("cut@ B7:any +key=100 P", cut);
        assert_int_not_equal(answer('B', 1), IDEM_EXECUTE);
        assert_int_not_equal(answer('B', 9), IDEM_EXECUTE);
    }
}

/* A boot's first begin tries two sectors, no more: it does not try to make a
   head for its answer, and again for its claim. */
TEST(l3_a_begin_that_finds_no_head_does_not_look_for_one_twice)
{
    for (size_t m = 0; m < COUNT(media); m++) {
        device_on(media[m], "Ba Ab P fail1,forever");
        (void)answer('B', 0);
        assert_in_range(the.erases, 0, 2);
        assert_in_range(the.progs, 0, 2);
        run("works Bb:replay Ba:recover");
    }
}
