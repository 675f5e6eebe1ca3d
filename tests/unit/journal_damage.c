/* SPDX-License-Identifier: 0BSD */
/*
 * Storage that was damaged: nothing is answered wrongly, what is intact is
 * read, and losses are counted (S5); after a loss every claim is uncertain for
 * one retention (S4).
 */
#define _POSIX_C_SOURCE 200809L
#include "scenario.h"

#include <sys/mman.h>
#include <unistd.h>

// The outcome of b is lost; a and c are known.
#define LOST_B "Ba Ca Bb Cb note Bc Cc damage P lost1 "

#define LONG(key) "B" key ",retention=777777 C" key ",len=24 "

static const scenario scenarios[] = {
    // The time between is lost, and the newer record would make it older.
    { "s6_a_relocated_key_is_no_older_than_the_rest_records",
      "nor: E,n=1000000 Ba Ca Bb,ms=50000 note Cb rotate7 M damage P "
      "Ba,ms=70000:replay" },
    // Nor is it later, when the older record has left the journal.
    { "s10_nor_is_it_at_a_later_boot",
      "Bb note Ba,retention=9000000 Ca,confirm Cb Da,ms=5000000 P Bc "
      "damage,how=# P loss Ga,ms=8999000:ok P loss Bd:uncertain P lost0 "
      "Ga,ms=8999000:ok" },
    // A head that D6 would not find, for two sectors were skipped before it, is
    // followed by another one, which names it.
    { "a_head_after_two_skipped_sectors_is_missed",
      "nor: Aa P fail1,forever Bb:storage works Bb note Cb damage,how=6 P lost1 "
      "Bb:uncertain" },
    // Sectors with lost records are not erased for programs that fail: nothing
    // has recorded the loss yet.
    { "a_loss_is_not_forgotten_when_no_head_can_be_made",
      "nor: Aa P Bb note Cb damage,how=6 P lost1 fail1,forever Bc:storage "
      "Bc:storage Bc:storage Bc:storage Bc:storage Bc:storage Bc:storage works "
      "P lost1 Bb:uncertain" },
    // the end of the newest
    { "one_unreadable_record_at_the_end_may_be_torn",
      "roomy: Ba Ca Bb Cb note damage,how=# P lost0 Ba:replay Bb:recover" },
    { "one_unreadable_record_that_another_follows_is_a_loss",
      "roomy: Ba Ca Bb Cb note Bc damage,how=# P lost1 Ba:replay Bb:uncertain "
      "Bc:uncertain" },
    // It may be of a batch that was never acknowledged.
    { "in_batch_mode_an_unreadable_end_is_no_loss",
      "roomy: batch Ba Ca note Y Bb Cb Bc Cc Bd Cd Be Ce damage,back P lost0 "
      "Ba:replay Bb Cb" },
    // .. also for who writes each record durably now: the sector has how its
    // records were written.
    { "a_torn_batch_is_no_loss_when_each_is_durable_now",
      "roomy: batch Ba Ca note Y Bb Cb Bc Cc Bd Cd Be Ce damage,back unjudged "
      "+batch=0 P lost0 Ba:replay Bb:execute" },
    { "an_unreadable_end_of_durable_records_is_a_loss_in_batch_mode_too",
      "roomy: rotate1 " LONG("0") LONG("1") LONG("2") LONG("3") LONG("4")
      "B5 note C5,len=24 " LONG("6") "B7 damage,how=#,back unjudged +batch P "
      "loss B4:replay "
      "B5:uncertain" },
    { "four_unreadable_records_at_the_end_are_a_loss",
      "roomy: rotate1 " LONG("0") LONG("1") LONG("2") LONG("3") LONG("4")
      "B5 note C5,len=24 " LONG("6") "B7 damage,how=#,back P loss B4:replay "
      "B5:uncertain "
      "B6:uncertain" },
    { "seven_unreadable_records_at_the_end_are_a_loss",
      "ecc: rotate1 " LONG("0") LONG("1") LONG("2") "B3 note C3,len=24 "
      LONG("4") LONG("5") LONG("6") "damage,how=#,back P loss B2:replay "
      "B3:uncertain B6:uncertain" },
    { "a_relocated_record_in_the_middle_is_a_loss",
      "roomy: A0 A1 A2 A3 A4 A5 A6 rotate4 rotated note,n=8 damage,how=# P "
      "lost1 B0:replay B1:replay B2:replay B3:replay B4:replay B5:uncertain "
      "B6:replay" },
    // It is as good as torn, and nothing after it in its sector shows that it
    // was not: but the next header has where that ends.

    { "the_last_record_before_a_known_end_is_a_loss",
      "K@ rotate1 note,back damage,how=5,at=7 P loss" },
    { "a_journal_without_any_header_is_none_that_is_blank",
      "nor: Ba Ca note rotate1 note1 rotate1 note2 rotate1 note3 rotate1 note4 "
      "damage,how=6 damage1,how=6 damage2,how=6 damage3,how=6 damage4,how=6 P "
      "lost2 Ba:uncertain Bb:uncertain" },
    // What would show that such a record is after the end of its sector is
    // damaged.  Its time is ahead of that in the headers after it, which were
    // written by who knew nothing of it.
    { "time_that_would_go_back_stands",
      "nor: rotate1 Bc,ms=0 Cc,ms=0 Ba,ms=0 Ca,ms=0 Bb,ms=50000 note "
      "damage,how=4 P rotate1 note1 rotate1 damage1,how=6 restore P lost1 Ga,ms=49900:ok "
      "Ga,ms=100:none" },
    // A boot that cannot read it begins a head after the record before that.
    // Power fails before the commit record.  The next boot cannot erase the
    // head.
    { "the_last_header_that_names_a_sector_has_its_end",
      "nor: Aa Bb note damage,how=4 P Bc note1 note2,n=1 restore damage1,how=3 "
      "damage2,how=3 P fail2 Bd rotated P lost0 Ba:replay Bb:recover" },
    // The medium reports twice that an outcome failed which it has; and the
    // header of the sector where the second stands is damaged, so the end that
    // it has for the first one's is not known.
    { "of_two_outcomes_of_one_claim_one_is_replayed",
      "nor: unjudged rotate1 Ba fail1,how=1 Ca:storage fail1,at=2,how=1 "
      "Ca:storage note Ca rotated damage,how=6 P lost1 Ba:replay" },

    // b's record alone has the time of a long silence; what is after it is as
    // young as it was.
    { "s6_a_damaged_record_of_a_long_silence_shortens_nothing",
      "nor_8: size=1024 retention=3600000 Aa M,ms=7200000 M,ms=259200000 Bb "
      "note Bc Cc rotate1 damage,how=5,at=97 P loss Bc:replay" },
    { "what_expires_after_a_lost_silence_stays_so_for_weeks",
      "nor_8: size=1024 retention=3600000 Aa M,ms=7200000 M,ms=259200000 Bb "
      "note Bc Cc rotate1 Bd,ms=172800000 damage,how=5,at=97 P loss "
      "M,ms=3700000 Bc:execute" },
    { "s6_nor_does_one_shorten_a_longer_retention",
      "nor_8: size=1024 retention=3600000 Aa M,ms=7200000 M,ms=259200000 Bb "
      "note Bc,retention=1296000000 Cc rotate1 damage,how=5,at=97 P loss "
      "M,ms=3700000 M Bc:replay" },
    // In the last batch of a boot it looks torn; the record that the next boot
    // has rewritten still has its time.
    { "s6_nor_does_one_in_the_last_batch_of_a_boot",
      "nor_8: size=1024 batch retention=3600000 Ba Ca Y Bb,ms=3000000 note Bc "
      "Cc Bd Y P Bc:replay damage,how=5,at=97 P lost0 Bc,ms=1200000:replay" },
    { "s6_and_the_time_of_the_rewritten_record_counts",
      "nor_8: size=1024 batch retention=3600000 Ba Ca Bb note Bc Cc "
      "Bd,ms=2000000 Y P Bc:replay damage,how=5,at=97 P lost0 "
      "Bc,ms=1700000:execute" },
    // .. also after bytes that were skipped,
    { "s6_and_does_so_after_a_record_that_was_torn",
      "nor_8: size=1024 batch retention=3600000 Ba Ca Bb note Bc Cc Be note1 "
      "Bd,ms=2000000 Y damage1 P Bc:replay damage,how=5,at=97 P lost0 "
      "Bc,ms=1700000:execute" },
    // .. and that of no other, if nothing is left of it.
    { "s6_and_no_time_counts_for_one_that_is_lost",
      "nor_8: size=1024 batch retention=3600000 Ba Ca Y Bb note Bc "
      "Cc,ms=3000000 Bd note1 Y P Bc:replay damage,how=5,at=97 damage1,how=3 P "
      "lost0 Bc,ms=1200000:replay" },
    // .. nor within a boot, which rewrites none.
    { "s6_and_none_for_one_whose_program_failed",
      "nor_8: size=1024 batch retention=3600000 Ba Ca Bb note Bc Cc "
      "fail1,how=1 Bd,ms=2000000:storage Be rotated Y damage,how=5,at=97 P loss "
      "Bc,ms=1700000:replay" },
    // Of a sector that is lost only its own time is.
    { "what_is_read_after_a_lost_sector_ages",
      "nor: Bb,retention Cb rotate1 note rotate1 Ba Ca fail1 Bc:storage "
      "Bc,ms=30000 rotated fail1 Bd:storage Bd,ms=30000 rotated damage,how=6 P "
      "lost1 Ga,ms=60000:none" },

    // how long claims are uncertain after it
    { "s4_unknown_keys_are_uncertain_for_a_retention",
      "roomy: keys=96 " LOST_B "uncertain100000 Bx,ms=0:uncertain px,n=1 "
      "Rx,ms=0 "
      "wait99999 uncertain1 By,ms=0:uncertain wait1 uncertain0 "
      "Bz,ms=0:execute" },
    { "s4_uncertainty_goes_on_over_looks_at_all_slots_and_ends",
      "roomy: keys=96 retention=2592000000 " LOST_B "Bx,ms=0:uncertain "
      "wait500000000 uncertain2092000000 By,ms=0:uncertain wait2000000000 "
      "uncertain92000000 wait92000000 uncertain0 wait2000000000 uncertain0 "
      "wait2000000000 uncertain0 Bz,ms=0:execute" },
    { "s4_uncertainty_goes_on_over_restarts_and_ends",
      "nor_8: keys=96 " LOST_B "Bd:uncertain Cd P wait20000 Be:uncertain Ce P "
      "wait20000 Bf:uncertain Cf P wait20000 Bg:uncertain Cg P wait20000 lost0 "
      "uncertain,n=100000 Bx:uncertain Cx wait100000 By Cy P lost0 Bz Cz" },
    { "s4_a_later_loss_with_a_shorter_default_ends_nothing_sooner",
      "roomy: keys=96 retention=2592000000 " LOST_B "Bd:uncertain Cd "
      "unjudged +retention=60000 P Be:uncertain Ce note Bf:uncertain Cf "
      "damage P loss wait70000 Bx:uncertain" },
    { "s10_after_a_loss_known_keys_are_answered_as_ever",
      "nor: keys=96 " LOST_B "Ba:replay Bc:replay Wa:mismatch Bb:uncertain "
      "Bb:busy Bx,age=100000:old Bd:uncertain Be:uncertain Bf:uncertain "
      "Bg:uncertain Bh:uncertain Bx:full" },
    // Though the ring is so large that the damage would stay where it is for
    // long, and be found again at each boot.
    { "s4_uncertainty_ends_on_a_device_that_restarts_often",
      "roomy: sectors=60 " LOST_B "Bd,ms=20000:uncertain Rd P "
      "Be,ms=20000:uncertain "
      "Re P Bf,ms=20000:uncertain Rf P Bg,ms=20000:uncertain Rg P "
      "Bh,ms=20000:execute" },
    { "a_loss_is_reported_at_every_boot_until_relocation_is_past_it",
      "nor: " LOST_B "P lost1 rotate,n=1 P lost0 Ba:replay" },

    // a claim that is not next to the mark that it was durable: in a batch only
    // the last record has it, for all before it; a rotation makes durable what
    // no record marks; idle work takes no mark away
    { "a_damaged_claim_of_a_batch_is_a_loss",
      "nor: batch Aa Y Bb note Bc Y Cb Cc Y Bd Y Cd Y damage,how=5,at=112 P "
      "lost1 Bb:uncertain" },
    { "a_damaged_claim_before_a_rotation_is_a_loss",
      "nor: batch Aa Y Bb note Bc rotate1 damage,how=5,at=112 P lost1 "
      "Bb:uncertain" },
    { "a_damaged_claim_before_idle_work_is_a_loss",
      "eeprom: Aa Bb note M Cb damage,how=5,at=112 P lost1 Bb:uncertain" },
    // In a new head, whose header is damaged.
    { "an_outcome_whose_claim_is_there_is_a_loss",
      "nor: Ba fail1 Ca:storage Ca:ok note damage,how=6 P lost1 Ba:uncertain "
      "Bb:uncertain" },
    // .. which is not erased before another header has recorded that as a loss.
    { "s4_what_shows_a_loss_is_there_until_it_is_recorded",
      "nor: Ba fail1 Ca:storage Ca:ok note damage,how=6 P lost1 cut@ Bs:any P "
      "Bb:uncertain" },
    // .. or that has the header of the sector before, which is not valid there.
    { "s4_a_sector_under_the_header_of_another_one_is_a_loss",
      "nor: Ba rotate1 Ca note damage,how=7 P lost1 Ba:uncertain" },
    { "so_is_a_sender_that_was_forgotten",
      "nor: numbers Ba Ca P na:ok note damage,how=6 P lost1" },
    { "so_is_a_number_that_was_refused",
      "nor: beside=10 Ba,retention=9000000 Ca Bc,retention=1000 P wait2000 "
      "Bc:old note damage,how=6 P lost1" },
    // Sectors of 64 KB: the low 16 bits of both tokens are the same offset.
    { "s3_an_outcome_is_bound_by_all_bits_of_its_token",
      "vast: capacity=2 unjudged Bb Bc,retention=1000000 Cc L T fail1 Ba:storage "
      "works Ba note Ca damage,how=5,at=98 P loss Bb:uncertain" },
    { "s3_in_a_torn_batch_an_outcome_is_bound_by_its_key",
      "vast: batch capacity=2 unjudged Bb Bc,retention=1000000 Cc Y L T fail1 "
      "Ba:storage works Ba note Ca damage,how=4 P lost0 Ba:replay" },
    // Nor is one that is lost in front of an outcome which the next boot has
    // rewritten, and whose claim has left the journal since.
    { "a_rewritten_outcome_shows_what_was_durable_before_it",
      "nor: size=1024 batch Ba rotate1 Bb Cb note Bc Cc Y Ca Y P Bb:replay "
      "rotate2 Y damage,how=5,at=80 P loss Bb:uncertain" },
    // Neither claim is there, but an outcome has one: they cannot both
    // be one torn record.
    { "two_damaged_records_before_an_outcome_are_a_loss",
      "roomy: Aa Bb note Bc note1 Cb damage1 damage,how=# P loss Ba:replay "
      "Bb:uncertain Bc:uncertain" },
    // A restart, after which the slot has another claim.
    { "two_damaged_records_before_an_outcome_of_another_claim_are_a_loss",
      "roomy: capacity=1 Bc P wait100100 rotate1 Bb note Cb note1 Bb "
      "damage,how=# P loss Bb:uncertain" },
    // All keys leave the sectors up to the loss: as many in each new head as it
    // has room for, to the byte.
    { "a_head_takes_no_more_than_it_has_room_for",
      "nor: capacity=18 B0 C0,len=@ B1 C1,len=@ B2 C2,len=@ B3 C3,len=# B4 "
      "C4,len=22 B5 C5,len=24 B6 C6,len=24 B7 C7,len=24 B8 C8,len=24 B9 "
      "C9,len=24 B10 C10,len=24 B11 C11,len=24 B12 C12,len=24 B13 C13,len=24 "
      "B14 C14,len=24 B15 note C15,len=24 B16 C16,len=24 M,ms=50000 "
      "damage,how=5 P lost1 B17:uncertain P lost0 B0:replay B5:replay "
      "B10:replay B14:replay B16:replay" },
    // In a batch: the first record after it was torn, too.
    { "a_commit_record_that_is_lost_is_no_loss_of_its_own",
      "nor_8: batch Ba Ca Y P Bb note,n=1 note1 damage damage1 Bc Cc Y P lost0 "
      "Ba:replay Bc:replay" },
    // b's response holds it, byte for byte; the record around that is damaged,
    // so its inside is looked at.
    // Of a batch the outcome of b is left alone.  Its claim's token is bound by
    // 16 bits: those of an older claim in the slot may be the same.
    { "s3_an_outcome_whose_claim_may_be_torn_away_has_its_key",
      "roomy: batch Ba Y Ra note1 Bb note2 Cb damage1,how=3 damage2,how=3 P "
      "lost0 Bb:replay" },
    { "s3_a_record_hidden_in_a_response_is_not_taken",
      "nor: size=4096 response=208 Bb Ba Ra Ib note Bc damage,how=5,at=0 P "
      "lost1 Ga:none" },
};

TESTS(scenarios, run_scenario)

// Outcomes of 4 to 9 in several sectors; the newest record is of another key.
#define FILLED "B4 C4,len=0 B5 C5,len=24 rotate1 B6 C6,len=7 B7 C7,len=1 "   \
               "rotate1 B8 C8,len=16 B9 C9,len=5 rotate1 K1"

/* How many keys, of those that were finished, are not replayed.  Those are
   recovered: never executed, never answered with another's outcome. */
static uint32_t missing(unsigned from, unsigned to)
{
    uint32_t count = 0;

    for (unsigned key = from; key < to; key++) {
        if (answer('G', key) == IDEM_OK && the.shown.status == IDEM_COMPLETED) {
            run_of("B@:replay", key);
            continue;
        }
        count++;
        run_of("B@:uncertain R@", key);
    }
    return count;
}

/* Missing outcomes are counted as a loss. */
static uint32_t counted_or_there(unsigned from, unsigned to)
{
    uint32_t count = missing(from, to);

    if (count)
        assert_int_not_equal(the.table->stats.lost, 0);
    return count;
}

/* A device that is to be damaged again and again. */
static device *filled_on(const medium *m)
{
    device *d = device_on(m, FILLED);

    save();
    return d;
}

/* What is replayed is right, if it opens; so is what the calls look at. */
static void never_wrong(void)
{
    if (reopen() == IDEM_OK)
        for (unsigned key = 4; key < 10; key++)
            (void)answer('B', key);
    load();
}

/* Sets bits in a byte of the newest record, and the right check. */
static void set_bits(unsigned byte, uint8_t bits)
{
    const idem_table *t = the.table;
    uint32_t sequence = inside_sequence(t), at = newest().at, check;
    uint32_t offset = at % nor.sector_size, len = newest().len;
    uint8_t *bytes = the.medium.bytes + at;

    memcpy(&check, bytes + len - 4, 4);
    check ^= inside_check(t, bytes, sequence, offset, len);
    bytes[byte] |= bits;
    check ^= inside_check(t, bytes, sequence, offset, len);
    memcpy(bytes + len - 4, &check, 4);
}

/* An outcome with a bit of a field that outcomes have not; the time with one of
   any, which it has not (W5). */
TEST(a_record_with_a_field_of_another_kind_is_none)
{
    device_on(&nor, "Ba Ca unjudged");
    set_bits(1, 0x40);
    run("P Ba:recover");
    device_on(&nor, "Ba Ca unjudged M,ms=50000");
    set_bits(1, 1);
    run("P Ga,ms=60000:ok");
}

/* A record of the time with a slot that is free: it changes nothing there. */
TEST(a_record_of_a_free_slot_changes_nothing)
{
    device_on(&nor, "Ba Ca unjudged M,ms=50000");
    set_bits(2, 5);
    run("P lost0 Ba:replay");
}

/* Damage: every loss is counted. */
static void damage_is_counted(uint32_t at, uint32_t len, int how)
{
    damage(at, len, how);
    run("P");
    dead_len = 0;
    counted_or_there(4, 10);
    load();
}

static void flip_each(const medium *m, uint32_t step)
{
    device *d = filled_on(m);

    for (uint32_t bit = 0; bit < 8 * d->medium.size; bit += step) {
        uint32_t at = bit / 8;
        if (d->medium.bytes[at] == m->erased)
            continue;
        flip(at, bit % 8);
        run("P");
        assert_in_range(counted_or_there(4, 10), 0,
                        at % m->sector_size >= wrote.header_len);
        load();
    }
}

TEST(s5_a_flipped_bit_costs_one_record_and_in_a_header_none)
{
    flip_each(&nor_8, 7);
    flip_each(&zeros, 11);
    flip_each(&eeprom, 11);
}

TEST(s5_many_flipped_bits_or_a_truncated_storage_are_never_believed)
{
    device *d = filled_on(&nor);
    uint32_t chance = 1;

    for (int round = 0; round < 500; round++) {
        chance = flash_mix(chance + 1);
        for (uint32_t n = 2 + chance % 9; n > 0; n--) {
            chance = flash_mix(chance + 1);
            flip((chance >> 3) % d->medium.size, chance % 8);
        }
        never_wrong();
    }
    d = filled_on(&nor_8);
    for (uint32_t at = 0; at < d->medium.size; at += 56) {
        flash_truncate(&d->medium, at);
        never_wrong();
    }
}

TEST(s5_an_unreadable_granule_is_a_loss_or_none)
{
    device *d = filled_on(&ecc);

    for (uint32_t at = 0; at < d->medium.size; at += ecc.granule)
        damage_is_counted(at, ecc.granule, DEAD);
}

/* But of the newest one nothing at all may be left. */
TEST(s5_a_lost_sector_is_a_loss_or_none_and_a_header_hides_nothing)
{
    device *d = filled_on(&nor_8);
    uint32_t head = newest_sector();

    for (uint32_t at = 0; at < d->medium.size; at += 512) {
        for (int how = 0; how <= BLANK && at != head; how++)
            damage_is_counted(at, 512, how);
        for (uint32_t i = 0; i < wrote.header_len; i += 3)
            damage_is_counted(at + i, 3, ANYTHING);
    }
}

TEST(damage_while_the_table_is_open_does_no_harm)
{
    device *d = device_on(&nor, FILLED);

    damage(0, d->medium.size, ANYTHING);
    is(missing(4, 10), 0);
    run("lost0");
}

/* A sector's last byte looks like the begin of a record: what would be after
   it is not read, which is outside the table's memory (a sanitizer sees it) if
   the longest record fills that. */
TEST(s8_a_record_that_begins_in_the_last_byte_ends_there)
{
    for (uint8_t more = 0; more < 4; more++) {
        device *d = device_on(&nor, FILLED);
        for (uint32_t at = 511; at < d->medium.size; at += 512)
            flash_fill(&d->medium, at, 1, 0x88);
        d->damaged = 1;
        d->config.key_max = (uint16_t)(KEY_MAX - more);
        run("P");
        is(missing(4, 10), 0);
    }
}

/* Whichever bit flips, also one that makes a retention impossible.  The next boot
   rewrites the newest record, not those before it: an outcome, of which half of
   the check is its claim's; and a batch. */
TEST(s5_a_flipped_bit_before_a_boots_newest_record_is_a_loss)
{
    static const struct { const char *before, *after; int key, is; } lines[] = {
        { "Ba Ca Bb,retention", "Cb Bc", 1, IDEM_REPLAY },
        { "Ba Ca Bb Cb", "Bc P Ba:replay", 1, IDEM_REPLAY },
        { "batch Ba Ca Bb Cb", "Y Bc Y P Ba:replay", 1, IDEM_REPLAY },
        { "batch Ba Ca Bb Cb Bd", "Y Bc Y P Ba:replay", 3, IDEM_RECOVER },
    };
    operation o;

    for (unsigned i = 0; i < COUNT(lines); i++)
        for (uint32_t bit = 0; bit == 0 || bit < 8 * o.len; bit++) {
            device_on(&roomy, lines[i].before);
            o = newest();
            run(lines[i].after);
            flip(o.at + bit / 8, bit % 8);
            run("P Ba:replay");
            if (answer('B', (unsigned)lines[i].key) != lines[i].is)
                assert_int_not_equal(the.table->stats.lost, 0);
        }
}

static struct { uint32_t at, after; int byte; } fickle;

/* Some reads from an address on are as they should be, and then no more. */
static int fickle_read(void *ctx, uint32_t at, void *dst, uint32_t len)
{
    int result = device_read(ctx, at, dst, len);

    if (at == fickle.at && fickle.after-- == 0) {
        memset(dst, fickle.byte, len);
        fickle.after = 0;
    }
    return result;
}

/* The first reads of an address are as if all from it on were not there. */
static int late_read(void *ctx, uint32_t at, void *dst, uint32_t len)
{
    int result = device_read(ctx, at, dst, len);
    uint32_t before = fickle.at - at;

    if (before < len && fickle.after) {
        memset((uint8_t *)dst + before, fickle.byte, len - before);
        fickle.after--;
    }
    return result;
}

static void make_fickle(uint32_t at, uint32_t after, int byte)
{
    fickle.at = at;
    fickle.after = after;
    fickle.byte = byte;
    the.storage.read = fickle_read;
    the.damaged = 1;
}

/* The storage was not ready, as long as it reads otherwise; then it is a
   loss. */
TEST(a_header_that_reads_otherwise_a_moment_later_is_not_hidden)
{
    for (uint32_t after = 0; after < 6; after++) {
        device_on(&nor_8, FILLED " B10 C10");
        make_fickle(newest_sector(), after, 0x5A);
        if (reopen() != IDEM_OK)
            is(reopen(), IDEM_OK);
        counted_or_there(10, 11);
    }
}

/* The commit record was there a moment ago; now nothing is from the relocated
   records on. */
TEST(a_head_that_reads_blank_a_moment_later_is_a_loss)
{
    device_on(&nor_8, "Aa P Ab");
    make_fickle(newest_sector() + wrote.header_len, 0, nor_8.erased);
    run("P lost1 Ba:uncertain");
}

TEST(two_bytes_of_garbage_in_a_header_hide_no_loss)
{
    // In the newest header, and in the only one.
    static const char *const lines[] = { "B4 C4 rotate2 B5 C5 B6 C6 Bz",
                                         "B4 C4 Bz" };

    for (size_t m = 0; m < COUNT(media); m++)
        for (uint32_t i = 0; i < 62; i++) {
            device *d = device_on(media[m], lines[i % 2]);
            uint8_t *header = d->medium.bytes + newest_sector() + i / 2;
            header[0] ^= 0xA5;
            header[1] ^= 0x3C;
            d->damaged = 1;
            run("P");
            if (i % 2 == 0)
                run("B4:replay");
            counted_or_there(4, i % 2 ? 5 : 7);
        }
}

/* The records of a key that was forgotten, put after the newest one. */
TEST(a_record_in_another_position_is_not_taken)
{
    device *d = device_on(&roomy, "Ba");
    operation claim = newest();
    uint8_t copy[512];
    uint32_t len;

    run("Ca");
    len = newest().at + newest().len - claim.at;
    memcpy(copy, d->medium.bytes + claim.at, len);
    run("Xa");
    flash_load(&d->medium, newest().at + newest().len, copy, len);
    d->damaged = 1;
    run("P Ga:none");
}

/* A sector as it was one round of the ring ago. */
TEST(a_sector_of_an_earlier_round_is_not_taken)
{
    device *d = device_on(&nor_8, "rotate1 Ba Ca");
    uint32_t size = d->medium.size;
    uint8_t *old = (uint8_t *)medium_allocate(size);

    memcpy(old, d->medium.bytes, size);
    run_of("Xa Ba Ca rotate@", d->storage.sector_count);
    save();
    for (uint32_t at = 0; at < size; at += 512) {
        flash_load(&d->medium, at, old + at, 512);
        if (reopen() == IDEM_OK)
            (void)answer('B', 0);
        load();
    }
    free(old);
}

/* A cut ends a rotation after its relocations.  The next one relocates less to
   the same sector, and its erase has left the rest. */
TEST(what_an_erase_has_left_after_relocated_records_is_not_taken)
{
    device *d = device_on(&roomy, "A0 A1 A2 A3 A4 A5 A6");
    uint32_t size = d->medium.sector_size, from, end, at;
    uint8_t old[4096];
    int n = 0;

    for (d->damaged = 1; n < 5; run("R20")) {
        save();
        run("P B20");
        n = relocated();
    }
    load();
    run("P");
    // After an erase and n records.
    run_of("cut@ B20:any", 1 + (unsigned)n);
    from = newest_sector();
    memcpy(old, d->medium.bytes + from, size);
    end = wrote.of[n].at + wrote.of[n].len;
    run("P wait100001 G0:none G1:none G2:none G3:none G4:none G5:none G6:none "
        "Bz");
    at = newest().at + newest().len;
    at += (8 - at % 8) % 8;
    is(at / size * size, from);
    assert_in_range(at, from, end - 1);
    flash_load(&d->medium, at, old + (at - from), end - at);
    run("P");
    is(d->table->used, 1);
    run("Bz:uncertain");
}

/* The same, and the relocated records are left: later than they should be. */
TEST(time_does_not_run_back_in_what_an_erase_has_left)
{
    device *d = device_on(&roomy, "Ba Ca P wait9000 unjudged cut2 Bb:any");
    uint8_t old[512];
    operation o;

    // an erase, one record
    o = wrote.of[1];
    memcpy(old, d->medium.bytes + o.at, o.len);
    run("P Bb,ms=200");
    is(wrote.of[1].at, o.at);
    is(wrote.of[1].len, o.len);
    run("rotate1");                         // its header is earlier than that
    flash_load(&d->medium, o.at, old, o.len);
    run("P Ga");
    assert_in_range(d->shown.age_ms, 200, 9100);
    run("Ba:replay Bb:recover");
}

/* The only head is destroyed, and the next has no more than its header: that
   shows that there was one before. */
TEST(s4_a_header_names_the_head_before_that_is_gone)
{
    for (uint32_t n = 0; n < 6; n++) {
        device *d = device_on(&roomy, "Ba Ca");
        uint32_t size = d->medium.sector_size, head = newest_sector();
        run_of("unjudged P cut@ B20:any", n);
        flash_fill(&d->medium, head, size, d->medium.erased);
        run("P");
        if (d->medium.bytes[head + size] != d->medium.erased)
            assert_int_not_equal(answer('B', 0), IDEM_EXECUTE);
    }
}

static uint32_t erases_that_fail;

static int erase_fails(void *ctx, uint32_t sector)
{
    if (!erases_that_fail)
        return device_erase(ctx, sector);
    erases_that_fail--;
    return device_operated((device *)ctx, FLASH_E_FAULT);
}

/* The same after a failing sector, in a ring whose oldest sector is needed; the
   first erases after the loss fail, too: no more is erased than makes room. */
TEST(s4_nor_is_it_erased_after_an_erase_that_failed)
{
    for (uint32_t n = 0; n < 24 * 3 * 10; n++) {
        device *d = device_on(&nor, "A4");
        d->storage.erase = erase_fails;
        run_of("rotate@", 1 + n / 30);
        erases_that_fail = 1;
        run("unjudged rotate1 B5:execute C5:ok");
        lose_header(newest_sector());
        run("P loss");
        erases_that_fail = n / 10 % 3;
        run_of("cut@ B20:any", n % 10);
        erases_that_fail = 0;
        run("P B5:uncertain");
    }
}

/* After a rotation that a cut has left without a commit record, two sectors
   fail: the next head is not where a damaged header is looked for. */
TEST(s4_a_head_after_two_failing_sectors_is_missed)
{
    for (uint32_t n = 0; n < 8; n++) {
        device *d = device_on(&nor_8, "Aa P");
        uint32_t next = newest_sector() / d->medium.sector_size + 1;
        run_of("unjudged cut@ B20:any P", n);
        d->medium.bad[next] = d->medium.bad[next + 1] = FLASH_BAD_ERASE;
        if (answer('B', 5) != IDEM_EXECUTE)
            run("B5:execute");
        run("C5:ok");
        d->medium.bad[next] = d->medium.bad[next + 1] = 0;
        lose_header(newest_sector());
        run("P loss B5:uncertain");
    }
}

/* In the smallest ring, after a loss: power goes twice before a new head counts,
   and the one sector that is left is bad.  What was begun in vain makes room. */
TEST(l2_a_bad_sector_after_a_loss_and_two_cuts_is_not_the_end)
{
    static const medium small = { "small", FLASH_NOR, 0, 1, 1024, 0xFF };
    static const uint8_t hows[] = { FLASH_BAD_ERASE, FLASH_BAD_PROG };

    for (uint32_t n = 0; n < 2 * 12 * 12; n++) {
        device *d = device_on(&small, "capacity=4 Aa P Ab note Ac unjudged "
                                      "damage P loss");
        int result = IDEM_E_SPACE;
        run_of("cut@ Bd:any P", n % 12);
        run_of("cut@ Bd:any P", n / 12 % 12);
        d->medium.bad[(inside_sequence(d->table) + 1) %
                      d->storage.sector_count] = hows[n / 144];
        for (unsigned times = 0; times < 4 && result < 0; times++)
            result = answer('B', 'd' - 'a');
        assert_in_range(result, IDEM_EXECUTE, IDEM_UNCERTAIN);
        run("Cd:ok P Ba:replay Bd:replay");
    }
}

/* The records of the head cannot be read in one boot, which knows of a loss and
   makes another head.  Later the first one is found again, and the other was
   begun in vain. */
TEST(s2_what_follows_such_a_boot_is_not_skipped_with_it)
{
    for (size_t m = 0; m < COUNT(media); m++) {
        device *d = device_on(media[m], "A1 P B2");
        flip(newest().at + 4, 3);
        run("C2 P A3");
        dead_at = newest_sector() + wrote.header_len;
        dead_len = d->medium.sector_size - wrote.header_len;
        run("P");
        (void)answer('B', 4);
        dead_len = 0;
        run("P B5:uncertain C5:ok P B5:replay");
    }
}

/* Of a journal only the headers are left, and, with `kept`, a sector of an
   earlier round, which is not erased any more. */
static void leave_headers(const medium *m, int kept)
{
    device *d = device_on(m, "");
    uint32_t size = d->medium.sector_size, sector;

    inside_start_far(d->table, 4000);
    run("rotate6 Aa Ab");
    sector = newest_sector();
    if (kept)
        d->medium.bad[sector / size] = FLASH_BAD_ERASE | FLASH_BAD_PROG;
    run("rotate30");
    for (uint32_t at = 0; at < d->medium.size; at += size)
        if (at != sector || !kept)
            damage(at + wrote.header_len, size - wrote.header_len, ANYTHING);
    run("P loss");
}

/* The head that follows names no other. */
TEST(s2_a_head_is_not_skipped_for_one_of_an_earlier_round)
{
    for (size_t m = 0; m < COUNT(media); m++) {
        leave_headers(media[m], 1);
        run("B5:uncertain C5:ok P B5:replay");
    }
}

TEST(l1_no_more_headers_are_looked_for_than_there_may_be)
{
    for (size_t m = 0; m < COUNT(media); m++) {
        uint32_t reads;
        leave_headers(media[m], 0);
        run("B5:uncertain C5:ok");
        reads = the.medium.reads;
        run("P");
        assert_in_range(the.medium.reads - reads, 1, 2000);
    }
}

/* Two heads were begun in vain.  The erase of the newer one was cut, and left
   bits that read as erased in the next boot, and as before later. */
TEST(s2_a_sector_whose_erase_was_cut_does_not_come_back)
{
    uint32_t size = nor.sector_size, erases;
    operation older, newer;
    unsigned sector;

    for (unsigned heads = 3; heads < 3 + 8; heads++) {
        device_on(&nor, "sectors=8 capacity=4");
        run_of("rotate@ A3 P B3:replay", heads);
        older = newest();                   // a commit record
        run("P B3:replay");
        newer = (operation){ FLASH_ERASE, newest_sector(), size };
        sector = newer.at / size;
        damage(older.at, older.len, BLANK);
        lose(newer);
        erases = the.medium.sector_erases[sector];
        is(reopen(), IDEM_OK);
        run("B3:replay A4");
        if (the.medium.sector_erases[sector] == erases)
            memcpy(the.medium.bytes + newer.at, hidden.bytes, size);
        is(reopen(), IDEM_OK);
        run("B3:replay B4:replay");
    }
}

/* The three newest headers are damaged, and one that a cut left without a commit
   record stands where the tail was.  Of the three a boot finds records (D6); or
   nothing, if they have only the time. */
TEST(s5_a_tail_that_was_begun_anew_is_a_loss)
{
    static const char *const newest_three[] = {
        "rotate3", "A5 A6 B7,ms=330000000:full B7,ms=330000000:full "
                   "B7,ms=330000000:full"
    };
    unsigned begun = 0;

    for (unsigned n = 0; n < 2 * 12 * 8; n++) {
        device *d = device_on(&nor, "capacity=3 retention=2592000000");
        uint32_t size = d->medium.sector_size, head;
        uint32_t sectors = d->storage.sector_count;
        run_of("rotate@ A4", 10 + n % 12);
        run_of("rotate@", sectors - 4);
        run(newest_three[n / 96]);
        run("P unjudged");
        head = newest_sector() / size + sectors;
        run_of("cut@ B4:any", n % 96 / 12);
        for (uint32_t back = 0; back < 3; back++)
            lose_header((head - back) % sectors * size);
        run("P");
        is(idem_check(the.table), 0);
        if (d->table->journal->sequence == d->table->journal->head + 4) {
            run("loss uncertain,n=2592000000");
            begun++;
        }
        if (answer('B', 4) != IDEM_REPLAY)
            run("loss uncertain,n=2592000000");
    }
    assert_true(begun > 20);
}

/* Writes a record at an address, in a sector with a sequence.  Half its check,
   its last four bytes, is right; the other half names a claim that nobody knows:
   one of 65,536 secrets gives an enemy that much of any bytes of his. */
static void forge_orphan(uint32_t at, uint32_t sequence, uint8_t *record,
                         uint32_t len)
{
    uint32_t check = inside_check(the.table, record, sequence,
                                  at % the.medium.sector_size, len) ^
                     0x12340000;

    for (unsigned i = 0; i < 4; i++)
        record[len - 4 + i] = (uint8_t)(check >> 8 * i);
    the.damaged = 1;
    memcpy(the.medium.bytes + at, record, len);
}

static uint32_t newest_sequence(void)
{
    return the.medium.bytes[newest_sector() + 16];
}

/* In the next physical sector it is no record whose header is damaged. */
TEST(an_old_outcome_in_the_next_sector_is_no_loss)
{
    enum { FRONT = 56, LEN = 9 };
    uint8_t outcome[LEN] = { 0x80 | IDEM_COMPLETED, 2, 3, 0, 0 };
    uint32_t sequence;

    device_on(&nor, "Aa");
    sequence = newest_sequence() + 1;
    forge_orphan(sequence % the.medium.sector_count * the.medium.sector_size +
                     FRONT,
                 sequence, outcome, LEN);
    run("P lost0 Bb:execute");
}

/* A delivery of an empty slot, 3.1 days later */
static void forge_delivery(uint32_t at)
{
    uint8_t bytes[] = { 0x81, 0, 8, 0xFF, 0xFF, 0xFF, 0x7F, 0, 0, 0, 0 };

    forge_orphan(at, newest_sequence(), bytes, sizeof bytes);
}

/* In a key that an enemy chose, whose claim is cut */
TEST(s6_a_record_hidden_in_a_torn_key_moves_no_time)
{
    for (uint32_t torn = 1; torn < 30; torn++) {
        device_on(&nor, "Aa Bb");
        flash_fill(&the.medium, newest().at + newest().len, torn, 0x88);
        forge_delivery(newest().at + newest().len + torn);
        run("P lost0 Ba:replay Bb:recover P Ba:replay");
    }
}

/* .. nor a boot's that comes later, which looks for what the one before has
   rewritten. */
TEST(s6_nor_if_it_stands_where_a_sector_ends)
{
    device_on(&nor, "batch Aa Bb Y");
    damage(newest().at, newest().len, ZEROS);
    forge_delivery(newest().at + 3);
    run("P lost0 Ba:replay P Ba:replay");

    // After another gap: it seems to be what that boot has rewritten.
    device_on(&nor, "batch Aa Y Bb");
    damage(newest().at, newest().len, ZEROS);
    run("Bc");
    forge_delivery(newest().at + newest().len);
    run("P lost0 Ba:replay P Ba:replay");
}

/* .. nor an outcome that is torn, which names no claim. */
TEST(s6_an_outcome_of_another_claim_moves_no_time)
{
    uint8_t bytes[] = { 0x82, 2, 2, 0xFF, 0xFF, 0xFF, 0x7F, 0, 0, 0, 0, 0 };

    for (unsigned boots = 0; boots < 2; boots++) {
        device_on(&nor, boots ? "Aa P Bb Y" : "Aa Bb");
        forge_orphan(newest().at + newest().len, newest_sequence(), bytes,
                     sizeof bytes);
        run("P lost0 Ba:replay Bb:recover P lost0 Ba:replay Bb:recover");
    }
}

/* Such bytes in a torn write that reads as erased, and as meant a moment later,
   are not what a storage had that was not ready: in a key, or in the commit
   record of a sector that was begun in vain. */
TEST(s5_a_record_hidden_in_an_unstable_write_prevents_no_opening)
{
    for (uint32_t n = 0; n < 2 * 9; n++) {
        int commit = n % 2;
        uint32_t at;
        device_on(&nor, commit ? "Aa P Ba:replay" : "Aa Bb");
        at = newest().at + (commit ? 0 : newest().len);
        if (commit)
            flash_fill(&the.medium, at, newest().len, 0x88);
        forge_delivery(at + 3);
        make_fickle(at, n / 2, nor.erased);
        the.storage.read = late_read;
        run(commit ? "P lost0 Ba:replay" : "P lost0 Ba:replay Bb:recover");
    }
}

/* Runs two lines.  The last bytes of the newest record of the first become the
   head of a record whose response and check are what the second wrote. */
static void hide_record(const char *line, const char *next)
{
    enum { HEAD = 7, RESPONSE = 40, LEN = HEAD + RESPONSE + 4 };
    uint8_t bytes[LEN] = { 0x82, 1 << 1, 8, 0, 0, 0, RESPONSE };
    uint32_t at, check, time = 0;

    device_on(&nor, line);
    at = newest().at + newest().len - HEAD;
    run(next);
    memcpy(bytes + HEAD, the.medium.bytes + at + HEAD, LEN - HEAD);
    do {
        assert_true(++time < 1u << 21);
        bytes[3] = 0x80 | (time & 127);
        bytes[4] = 0x80 | (time >> 7 & 127);
        bytes[5] = time >> 14 & 127;
        check = inside_check(the.table, bytes, newest_sequence(),
                             at % the.medium.sector_size, LEN);
    } while ((check & 0xFFFF) !=
             (bytes[LEN - 4] | (uint32_t)bytes[LEN - 3] << 8));
    the.damaged = 1;
    memcpy(the.medium.bytes + at, bytes, HEAD);
}

/* In a record that is damaged it hides none that follows. */
TEST(s5_a_hidden_record_hides_none_that_follows)
{
    hide_record("Aa Bb,retention=777777", "Bc Cc Bd");
    run("P loss Ba:replay Bc:replay Bd:uncertain");
}

/* In a torn batch it ends after the newest record, and is no loss later. */
TEST(a_hidden_record_does_not_move_the_end_of_a_sector)
{
    hide_record("batch Aa Y Bb,retention=777777", "Bc");
    run("P lost0 Bc:recover Y P lost0 Bd Y P lost0 Ba:replay");
}

/* A sector's header gets a byte changed, and a check that is right. */
static void forge_header(uint32_t sector, unsigned at, uint8_t value)
{
    enum { LEN = HEADER_BYTES, SUM = 14, CHECK = LEN - 4 };
    uint8_t *header = the.medium.bytes + sector;
    uint32_t check;

    the.damaged = 1;
    memset(header + SUM, 0, 2);
    header[at] = value;
    check = inside_check(the.table, header, 0, 0, LEN);
    for (unsigned i = 0; i < 4; i++)
        header[CHECK + i] = (uint8_t)(check >> 8 * i);
    set_sum(header);
}

/* A header that needs what is not in the ring any more is none; so the records
   after it are lost. */
TEST(a_header_whose_tail_is_not_in_the_ring_is_none)
{
    device_on(&nor, "Aa");
    forge_header(newest_sector(), 20 + 2, 1);
    run("P lost1 Ba:uncertain");
}

/* One with a future time hides all others, and that is counted. */
TEST(a_header_much_older_than_the_head_is_a_loss)
{
    device *d = device_on(&nor, "sectors=32 Aa K300");
    uint32_t dead = newest_sector() + d->medium.sector_size;

    if (dead == d->medium.size)
        dead = 0;
    forge_header(dead, 20 + 2, 1);
    forge_header(dead, 16 + 2, 1);
    run("P lost1 Ba:uncertain");
}

/* One whose time is too far ahead to be followed (P3): for how long the table is
   uncertain is known all the same. */
TEST(s4_a_time_that_is_not_followed_ends_no_uncertainty)
{
    device_on(&nor, "Aa Ad P Bb Cb note Bc damage,how=6 P loss Ba:replay "
                    "rotate1");
    forge_header(newest_sector(), 39, 0xF0);            // the time
    forge_header(newest_sector(), 43, 0xF0);            // uncertain
    run("P lost0 Ba:replay Bb:uncertain");
}

/* A header that has a later end of the sector before than there is. */
TEST(no_more_is_read_of_a_sector_than_it_has)
{
    device_on(&nor, "Aa P Ab");
    forge_header(newest_sector(), 28 + 2, 1);
    run("P lost1 Ba:replay Bb:replay");
}

/* The head's header is gone: its tokens were given all the same. */
TEST(tokens_increase_over_a_lost_header)
{
    uint64_t last;

    device_on(&nor, "Aa P Ab Bc Bd");
    last = the.held[3].token;
    lose_header(newest_sector());
    run("P lost1 Be:uncertain");
    assert_true(the.held[4].token > last);
}

/* A rotation was cut right after its commit record, and an erase of that sector
   was cut, too, which left header and commit record alone: it does not count. */
TEST(s2_a_sector_whose_relocated_records_are_torn_does_not_count)
{
    static const char line[] = "A0 A1 A2 A3 A4 A5 A6 K@ P";
    unsigned torn = 0;

    for (unsigned churn = 1; churn < 60; churn += 4) {
        uint32_t from, ops;
        operation commit;
        device_on(&roomy, filled(line, 0, churn));
        (void)answer('B', 20);
        ops = wrote.count - 1;
        device_on(&roomy, filled(line, 0, churn));
        run_of("cut@ B20:any", ops);
        commit = wrote.of[wrote.count - 2];
        from = newest_sector() + wrote.header_len;
        torn += commit.at > from;
        damage(from, commit.at - from, BLANK);
        run("P lost0 B0:replay B1:replay B2:replay B3:replay B4:replay "
            "B5:replay B6:replay");
    }
    assert_int_not_equal(torn, 0);
}

/* What looks like a record has lengths beyond the bytes that were read: those
   of its fields, which end where the memory does. */
TEST(a_damaged_record_is_not_read_beyond_the_memory)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    uint32_t sector;
    void *pages;

    device_on(&nor, "A0 A1");
    sector = newest_sector();
    assert_true(the.memory_size <= page);
    is(posix_memalign(&pages, page, 2 * page), 0);
    is(mprotect((char *)pages + page, page, PROT_NONE), 0);
    for (uint32_t seed = 0; seed < 40; seed++) {
        flash_noise(&the.medium, sector + 56, nor.sector_size - 56, seed);
        is(idem_open(the.table, &the.config,
                     (char *)pages + page - the.memory_size, the.memory_size,
                     the.now), IDEM_OK);
    }
    // Nor is a bit flipped there of a header that is as long as the buffer.
    lose_header(sector);
    the.config.capacity = the.config.key_max = 1;
    the.config.response_max = the.config.state_max = 0;
    the.memory_size = idem_memory_size(&the.config);
    is(idem_open(the.table, &the.config,
                 (char *)pages + page - the.memory_size, the.memory_size,
                 the.now), IDEM_OK);
    is(mprotect((char *)pages + page, page, PROT_READ | PROT_WRITE), 0);
    free(pages);
}

/* D4, D9: how far a byte that is not erased must be from the last record, and
   that one granule is enough. */
TEST(s5_what_stands_a_longest_record_after_the_last_is_a_loss)
{
    enum { LONGEST = 52 + KEY_MAX + RESPONSE_MAX + STATE_MAX + 2 + 4 };

    for (uint32_t granules = 0; granules < 2; granules++) {
        device_on(&nor_8, "rotate1 Ba");
        flash_fill(&the.medium,
                   newest().at + newest().len + LONGEST - 8 * granules, 1, 0);
        the.damaged = 1;
        run_of("P lost@", !granules);
    }
}

TEST(s5_one_granule_of_a_longer_record_is_a_loss)
{
    operation of;

    device_on(&roomy, "batch response=200 Ba Ca,len=200");
    of = newest();
    run("Y unjudged +response=3");
    flash_fill(&the.medium, of.at + 8, of.len - 8, 0xFF);
    run("P loss");
}

/* Cuts have left headers before the first head, which lacks its own now. */
TEST(s5_the_first_head_is_missed_after_any_number_of_cuts)
{
    for (unsigned n = 0; n < 8; n++) {
        device_on(&nor, "unjudged");
        for (unsigned i = 0; i < n; i++)
            run("cut2,tear=0 Ba:any P");
        run("Ba:execute Ca:ok Bb:execute Cb:ok note damage,how=6 P loss "
            "Ba:uncertain");
    }
}

/* Two bits flip in a sector that ends before a boot's first header: one in the
   half of an outcome's check that names the claim, one in the record after it,
   which that boot has rewritten. */
TEST(s5_an_orphan_before_a_boots_first_header_is_a_loss)
{
    for (unsigned bit = 0; bit < 16; bit++) {
        operation outcome, rewritten;
        uint32_t end;
        device_on(&nor, "Ba Ca Bb Cb");
        outcome = newest();
        run("Bc");
        rewritten = newest();
        run("P Ba:replay");
        end = outcome.at + outcome.len;
        flip(end - 2 + bit / 8, bit % 8);
        flip(rewritten.at, 3);
        run("P loss Bb:uncertain");
    }
}

/* A boot has answered after a loss, and written nothing but that: whichever bit
   of its newest sector flips, the next one knows of the loss. */
TEST(s4_a_loss_that_was_recorded_outlives_a_flipped_bit)
{
    uint32_t sector, end;

    device_on(&nor_8, "Aa Ad P Bb Cb note Bc damage,how=6 P loss Ba:replay");
    sector = newest_sector();
    end = newest().at + newest().len;
    save();
    for (uint32_t bit = 8 * sector; bit < 8 * end; bit++) {
        load();
        flip(bit / 8, bit % 8);
        run("P Bb:uncertain");
    }
}
