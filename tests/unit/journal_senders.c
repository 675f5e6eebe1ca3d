/* SPDX-License-Identifier: 0BSD */
/*
 * Numbers and entries (>>numbers of the manual) over restarts: the losses with
 * a record, with an entry, with another configuration.  numbers.c has the tests
 * that need only calls.
 *
 * With beside=10 the keys 0, 2, 4 are the numbers 1, 2, 3 of a sender, ten of
 * an epoch.  With scopes=3 and most=9 the keys 0, 1, 2 are each the number 1 of
 * one sender, 3, 4, 5 the number 2; the last sender fills the ring.
 */
#include "scenario.h"

// All retentions end, and it is written that they did.
#define OVER " wait100100 M M "

#define NEXT(key)                                                              \
    " B" key " C" key " P lost0 B" key ":replay" OVER "B" key ":old"
// The sender of 18 had no entry at a restart, which found 18 again.
#define UNCOUNTED                                                              \
    "senders=1 scopes=2 most=9 B18 B0,lease L" OVER "R0 B1 C1 P n1:ok "

// Of 5, of a newer epoch, nothing is known any more when 1 is claimed.
#define OLDER_EPOCH                                                            \
    "nor: evict senders=1 scopes=2 most=2 B5,retention=1000 C5 wait2000 M "    \
    "B18,retention=1000 C18 wait2000 M B1,lease:execute "

#define KEPT "P B52:old B5:old B54:execute R54 rotate25 "

static const scenario scenarios[] = {
    // answers that rely on the newest record: it is lost between two boots,
    // which a cut may have torn
    { "too_old_is_recorded_before_it_is_answered",
      "nor: evict capacity=1 beside=10 Bi Ci Bg note P Bi:old rotated Bi:old "
      "untouched damage,how=4 P lost0 Bi:old Bg:recover" },
    // It expired in this boot: there is nothing to be written but that, and its
    // sender's floor: in one record, with a retention too short to matter.
    { "that_a_number_expired_is_recorded_with_its_floor",
      "keys=96 beside=10 B56,retention=1000 C56 note P m,ms=1000:ok "
      "untouched B54:old rotated damage,how=4 P lost0 B54:old B56:old B38:old "
      "P lost0 B54:old B56:old B38:old P lost0 B54:old B56:old B38:old" },
    // A claim that was never completed has left, and raised the floor.  A
    // restart finds it, with a retention that begins anew: so the floor is
    // written before anything relies on it, and once.
    { "a_number_that_was_refused_stays_so",
      "beside=10 Bc L" OVER "fail1 Ba:storage Ba:old "
      "untouched,n=1 Ba:old untouched Bi Ci P "
      "Ba:old" },
    // .. and when a newer one leaves after the restart, before its first record.
    { "so_it_does_when_a_newer_one_leaves_after_the_restart",
      "beside=10 Bi L wait100100 Bo,retention=1000 Co Bi:old P wait2000 M "
      "Bb P Bi:old" },
    // Its sender has an older one that is known: so not all up to the floor are
    // gone, and each number that is refused is written.
    { "so_it_does_beside_an_older_one_that_is_known",
      "beside=10 Ba,retention=9000000 Ca Bg,retention=1000 Bi,retention=1000 "
      "wait2000 Bg:old Be:old Bi:old P lost0 Bg:old Be:old Bi:old Ba:replay "
      "Bm Cm rotate3 P lost0 Bg:old Be:old Bi:old Bm:replay Ba:replay" },
    { "that_it_was_refused_stays_when_the_ring_goes_round",
      "beside=10 Ba,retention=9000000 Ca Bg,retention=1000 wait2000 "
      "Bg:old rotate9 P Bg:old Ba:replay" },
    // .. also as the newest record, which a cut may have torn.
    { "that_is_recorded_too",
      "nor: beside=10 Ba,retention=9000000 Ca Bg,retention=1000 wait2000 "
      "Bg:old note P Bg:old rotated damage,how=4 P lost0 Bg:old Ba:replay" },
    { "also_if_no_record_of_it_is_left",
      "nor: beside=10 Ba,retention=9000000 Ca Bg,retention=1000 wait2000 M "
      "Be:old note P Be:old rotated damage,how=4 P lost0 Be:old Ba:replay" },
    // .. as what left, which has nothing of those that had left with it.
    { "nor_does_it_bring_back_what_had_left_before",
      "beside=10 Bg,retention=1000 Bi,retention=1000 Bb,retention=1000 "
      "Bd,retention=1000 wait2000 Bi:old Bk,retention=9000000 Ck "
      "Bm,retention=1000 wait2000 M Bg:old P Bi:old rotated P Bi:old "
      "Bk:replay" },
    // .. nor the key that was in its slot before.
    { "nor_does_it_bring_back_what_was_in_its_slot",
      "capacity=1 beside=10 Bb L wait100100 Ba,retention=1000 P wait2000 M "
      "Ba:old P Bb:execute" },
    // .. but once for all if those that left were outcomes: a restart finds
    // these expired.
    { "outcomes_that_left_are_refused_with_one_record",
      "keys=96 beside=10 Ba,retention=9000000 Ca Bc,retention=1000 Cc "
      "Bg,retention=1000 Cg wait2000 Bg:old untouched,n=1 Bg:old untouched "
      "Be:old untouched Bc:old untouched P lost0 Ba:replay Bc:old Be:old "
      "Bg:old rotate9 P lost0 Ba:replay Bc:old Be:old Bg:old" },
    { "also_outcomes_of_an_older_epoch",
      "keys=96 beside=10 Ba,retention=1000 Ca Bc,retention=1000 Cc wait1000 "
      "B20,retention=9000000 C20 B24,retention=1000 C24 wait2000 Ba:old "
      "untouched,n=1 Ba:old untouched Bc:old untouched P lost0 Ba:old Bc:old "
      "B24:old B20:replay" },
    // .. if that could be written, and once more after each one that leaves.
    { "they_are_not_refused_by_what_could_not_be_written",
      "beside=10 Ba,retention=5000 Ca Bc,retention=1000 Cc wait2000 fail1 "
      "Bc:storage works Bc:old untouched,n=4 Bc:old untouched wait4000 Ba:old "
      "untouched,n=1 Ba:old untouched P lost0 Ba:old Bc:old" },
    // Nor is each of an older epoch written beside a claim that left: theirs
    // have expired with the epoch.
    { "of_an_older_epoch_one_refused_number_is_written",
      "keys=96 beside=10 Ba,retention=1000 Bc,retention=1000 wait2000 "
      "B20,retention=9000000 C20 B24,retention=1000 wait2000 Ba:old "
      "untouched,n=1 Ba:old untouched Bc:old untouched P lost0 Ba:old Bc:old "
      "B24:recover" },
    // .. and when the older one has left, all are written at once.
    { "when_the_older_one_has_left_all_are_old",
      "beside=10 Ba,retention=9000 Ca Bg,retention=1000 Bi,retention=1000 "
      "wait2000 Bg:old Bi:old wait9000 Bi:old untouched,n=1 Bg:old Be:old "
      "Bi:old untouched P lost0 Bg:old Be:old Bi:old Ba:old" },
    { "also_when_it_was_given_back",
      "beside=10 Ba,lease Bg,retention=1000 Bi,retention=1000 wait2000 Bg:old "
      "Bi:old Ra Bi:old untouched,n=1 Bg:old Be:old Bi:old untouched P lost0 "
      "Bg:old Be:old Bi:old" },
    // What is refused for its age alone, above the floor, has not left.
    { "a_number_above_the_floor_that_is_too_old_raises_it_not",
      "beside=10 Ba,retention=9000000 Ca Bc,retention=1000 wait2000 M "
      "Bi,age=200000:old Bi,age=200000:old P Bi:execute" },
    // A key that is too old by its age relies on no floor: none is written.
    { "a_key_that_is_too_old_writes_no_floor",
      "keys=96 senders=2 scopes=2 most=9 B0 L" OVER "B94,age=200000:old "
      "untouched B0:old untouched,n=1 B94,age=200000:old untouched "
      "B1,age=200000:old untouched" },
    // Nor a number of a sender that has none: its record would forget the sender.
    { "a_number_that_is_too_old_forgets_no_sender",
      "beside=10 Ba Ca Bc,age=200000:old P Ba:replay" OVER "na:ok Ba Ca "
      "Bc,age=200000:old P Ba:replay" },
    // The record that forgets it is rewritten after a restart, and no more: not
    // after keys that came later.
    { "what_comes_after_a_sender_was_forgotten_stays",
      "beside=10 Ba Ca na:ok P Bg Cg Bi rotate9 P Bg:replay Bi:recover" },
    // Nor does the state that came with it go, when a cut interrupts another.
    { "the_state_of_a_number_that_is_gone_stays",
      "nor: beside=10 Ba Ca,state=4 Bi | Ci,state=4 | P" OVER "Ba:old P Ba:old "
      "P s:ok" },
    // A claim that cannot be written takes no entry over.
    { "a_begin_that_fails_forgets_no_sender",
      "keys=96 evict senders=2 scopes=3 most=9 B0 C0 B1 C1" OVER "fail1 "
      "B2:storage works B0:old B1:old B2:execute" },
    // Who is given back has not left: no floor rises, and none is written.
    { "a_number_that_is_given_back_makes_no_floor_unsaved",
      "beside=10 Bc L" OVER "Ba:old untouched,n=1 Be Re Ba:old untouched" },
    { "nor_does_it_in_a_new_epoch",
      "keys=96 beside=10 B20 C20 Ba:old Ba:old untouched B22 R22 Ba:old "
      "untouched" },
    // Its claim is found again, and is below the floor that was written.
    { "a_floor_stays_where_its_sender_could_not_be_forgotten",
      "beside=10 Bc L" OVER "Ba:old fail1 na:storage works Ba:old" },
    { "the_number_of_the_floor_is_gone_itself",
      "beside=10 Bc L" OVER "Ba:old P Bc:old" },
    { "so_is_that_of_a_newer_epoch",
      "keys=96 beside=10 B24 L" OVER "B20:old P B24:old B22:old" },
    // The next number takes the slot of 2, which has expired; 1 is kept.
    { "below_a_floor_that_rises_while_it_is_read_none_is_gone",
      "keys=96 capacity=2 beside=10 B20,retention=9000000 C20 "
      "B22,retention=1000 C22 wait2000 B24 C24 P B20:replay" },
    { "nor_if_some_were_in_the_epoch_before",
      "keys=96 capacity=2 beside=10 Bc L" OVER "Ba:old B20,retention=9000000 "
      "C20 B22,retention=1000 C22 wait2000 B24 C24 P B20:replay" },
    { "nor_if_its_sender_was_forgotten",
      "capacity=2 beside=10 Bc L" OVER "Ba:old na:ok Ba,retention=9000000 Ca "
      "Bc,retention=1000 Cc wait2000 Be Ce P Ba:replay" },
    { "a_sender_that_was_forgotten_has_no_floor_to_save",
      "beside=10 Bc L" OVER "na:ok Ba Ca rotate9 P Ba:replay" },
    // Outcomes of an older epoch that are kept change nothing in that, not even
    // those that are relocated after the record of the floor.
    { "an_older_epoch_does_not_hide_that_a_number_was_refused",
      "keys=96 beside=10 Ba,retention=9000000 Ca B22,retention=1000 wait5000 "
      "wait5000 untouched,n=1 B22:old untouched,n=1 B22:old untouched P B22:old "
      "Ba:replay" },
    // Then one record is for all again.
    { "nor_does_an_older_one_that_was_known_before_the_epoch",
      "keys=96 beside=10 Ba,retention=9000000 Ca Bg,retention=1000 wait2000 "
      "Bg:old Bg:old B20 untouched,n=1 Bg:old untouched,n=1 Bg:old untouched P "
      "Bg:old B20:recover" },
    { "nor_does_an_outcome_of_it_that_is_relocated",
      "keys=96 beside=10 Ba,retention=9000000 Ca rotate3 B22,retention=1000 "
      "B24,retention=1000 wait5000 wait5000 B22:old rotate5 P B22:old "
      "Ba:replay" },
    // .. or that expires before the record of the floor is rewritten.
    { "nor_does_an_outcome_of_it_that_expires_after_the_opening",
      "keys=96 beside=10 Ba,retention=20000 Ca B22,retention=13000 wait14000 "
      "B22:old P wait7000 M Bb Cb P B22:old" },
    { "what_left_in_an_older_epoch_has_not_left_in_a_newer_one",
      "keys=96 beside=10 Bi L" OVER "Ba:old B22,retention=9000000 C22 "
      "B24 L" OVER "B20:old P B22:replay B20:old" },
    // Nor is it answered so while that is not durable.
    { "a_number_is_not_refused_by_what_could_not_be_synced",
      "cached: beside=10 Bc L" OVER "fail3 Ba:storage Ba:storage P Ba" },
    { "too_old_goes_before_uncertain_after_a_loss",
      "nor: keys=96 beside=10 B56 C56" OVER "Bb note Cb rotate1 "
      "damage,how=5,at=67 P lost1 "
      "B56:old B20:old B58:uncertain p58,n=1 Bd:uncertain" },

    // another configuration at a boot: three senders have floors, each in a
    // record of its own, and a table is opened that keeps two
    { "fewer_senders_than_floors_are_a_loss",
      "keys=96 sectors=20 senders=3 scopes=4 most=9 B32 C32 B33 C33 B35 "
      "C35" OVER "P lost0 "
      "rotate,n=2 unjudged +senders=2 P lost1 B2:full evicted1 +senders=3 P "
      "lost0 "
      "B32:old B33:old B35:old" },
    // The same, where their floors follow from their keys, not from a record.
    // Then everything unknown may be a lost one.
    { "with_eviction_fewer_senders_than_floors_are_no_loss",
      "nor: keys=96 evict senders=3 scopes=4 most=9 B32 C32 B33 C33 B35 C35" OVER
      "P lost0 unjudged +senders=2 P lost0 evicted1" },
    { "numbers_of_more_senders_than_entries_are_a_loss",
      "nor: keys=96 capacity=3 sectors=20 senders=3 scopes=3 most=4 B21 C21 "
      "B22 C22 B23 C23 wait100100 B33 C33 B34 C34 B35 C35 wait100100 unjudged "
      "+senders=1 P loss +senders=4 capacity=4 P lost0" },
    // A number whose slot another key has, and for which no entry is left.
    { "a_floor_without_an_entry_is_a_loss",
      "nor: capacity=1 senders=2 scopes=2 most=9 B0 C0" OVER "B1 C1" OVER
      "B3 C3 P unjudged +senders=1 P loss" },
    { "without_senders_entries_count_as_lost",
      "nor: keys=96 beside=10 B56 C56" OVER "rotate,n=2 unjudged +senders=0 "
      "P loss "
      "Bb:uncertain" },

    { "without_senders_numbers_count_as_lost",
      "nor: keys=96 beside=10 B56 C56 unjudged +senders=0 P loss "
      "Bb:uncertain" },
    // A journal of keys alone.
    { "without_senders_what_was_forgotten_is_no_loss",
      "nor: beside=10 Bb Cb nb:ok Bd Cd +senders=0 P lost0 Bd:replay" },
    { "without_senders_there_is_none_to_forget",
      "nor: keys=96 evict senders=2 scopes=3 most=9 B24 C24" OVER "B25 C25" OVER
      "B26 C26 evicted1 unjudged +senders=0 P" },
    // Its outcomes may have been evicted until then, but not if none ever is.
    { "outcomes_of_a_known_sender_may_have_been_evicted_before_an_opening",
      "nor: evict senders=2 scopes=2 E,n=1000000 Ba Ca P Bc,age=500:old" },
    { "none_was_if_none_ever_is",
      "nor: senders=2 scopes=2 Ba Ca P Bc,age=5000:execute" },

    // more senders than there is room for: the entry of 24's goes, or 1's
    { "who_was_not_forgotten_is_known_in_every_boot_after",
      "keys=96 evict senders=2 scopes=3 most=9 B24 C24" OVER "B25 C25" OVER
      "B26 C26 evicted1 P lost0 B25:old B26:replay rotate,n=1 P lost0 B25:old "
      "B26:replay rotate,n=2 P lost0 B25:old B26:replay" },
    // Nor does a restart choose again who is forgotten, with what it knows.
    { "who_was_forgotten_is_recorded",
      "nor: keys=96 evict capacity=8 senders=2 scopes=3 most=9 "
      "B1,retention=60000 C1 wait1800000 B0,retention=60000 C0 wait1800000 "
      "B94,retention=60000 C94 wait1800000 B1:old B0:old wait1800000 "
      "B2,retention=60000 C2 B1:old P lost0 B1:old rotate,n=1 P lost0 B1:old" },
    // .. also in the newest record, which a restart writes again.
    { "who_was_forgotten_by_the_newest_claim_stays_recorded",
      "nor: keys=96 evict capacity=8 senders=2 scopes=3 most=9 "
      "B1,retention=60000 C1 wait1800000 B0,retention=60000 C0 wait1800000 "
      "B94,retention=60000 C94 wait1800000 B1:old B0:old wait1800000 "
      "B2,retention=60000 P lost0 B1:old P lost0 B1:old rotate,n=1 P lost0 "
      "B1:old" },
    // Keys that have expired take no entry, and no other's count.
    { "an_expired_key_takes_no_entry_at_an_opening",
      "nor: evict capacity=4 senders=1 scopes=2 Ba,retention=1000 Ca "
      "Bc,retention=1000 Cc wait2000 Bb,retention=1000 Cb wait2000 Bb:old Bd "
      "Rd Bb:old P lost0 Bb:old" },
    { "an_expired_key_is_not_counted_at_an_opening",
      "senders=2 scopes=2 Ba,retention=1000 Ca Bc,lease wait2000 Cc P Bc:replay" },
    { "an_expired_key_takes_no_count_of_another_at_an_opening",
      "nor: capacity=4 quota=3 senders=2 scopes=3 Bd,retention=1000 Cd "
      "Bg,retention=1000 Cg wait2000 Bc Cc +senders=1 quota=1 P Bf:full" },
    { "a_quota_holds_after_the_keys_of_another_have_expired",
      "nor: capacity=8 quota=3 senders=1 scopes=3 Ba,retention=1000 Ca "
      "Bd,retention=1000 Cd Bg,retention=1000 Cg wait2000 Bc Bf P Bi:execute "
      "Bl:full" },
    // Who takes an entry over takes the numbers of the old sender, not its keys.
    { "a_key_stays_when_another_takes_its_senders_entry",
      "nor: keys=96 evict senders=1 scopes=2 most=9 B94,retention=9000000 "
      "B2,retention=1000 wait300000000 B2:old B95 R95 P B94:recover" },
    // Who has keys is never forgotten for another, also not by an opening.
    { "an_opening_forgets_no_sender_that_has_keys",
      "nor: keys=96 evict senders=2 scopes=3 most=9 B12 C12" OVER
      "B15,retention=36000000 C15 B1,ms=3600000 C1 M,ms=3600000 B2 C2 B12:old "
      "P B15:replay B12:old" },
    // An opening that needs an entry for a number takes an idle one first.
    { "an_opening_takes_no_count_of_keys_where_a_sender_is_idle",
      "nor: keys=96 senders=2 quota=1 scopes=3 most=9 B0 C0 B1 R1 B29 C29 P "
      "lost0 B3:full" },
    // A count that was given up for a number begins anew, and not below nothing:
    // also when keys leave that were there before.
    { "a_count_that_was_given_up_does_not_go_below_zero",
      "nor: keys=96 evict quota=2 beside=10 Bb Cb B20,retention=1000 C20 "
      "unjudged +senders=1 P wait2000 M Bd:execute Cd Xb Xd Bf:execute" },
    // One whose numbers came when the entry was another's is not counted below
    // nothing, and is forgotten without an entry, too.
    { "a_count_that_was_never_begun_does_not_go_below_zero",
      "nor: keys=96 evict quota=4 senders=1 scopes=2 most=9 B18,retention=1000 "
      "C18 B20,retention=1000 C20 wait2000 B19,retention=1000 C19 "
      "B21,retention=1000 C21 wait2000 B19:old P B23:execute" },
    // Nor does a key that came when all entries were in use take the count of
    // another: its sender would lose its entry, and with it its floor.
    { "a_key_that_was_not_counted_takes_no_count_with_it",
      UNCOUNTED "B0:execute X18:ok B1:full P lost0 B0:recover" },
    { "nor_does_it_when_it_was_completed_meanwhile",
      UNCOUNTED "B0:execute B18:recover C18 X18:ok B1:full P lost0 "
      "B0:recover" },
    { "nor_is_it_evicted_for_its_senders_quota",
      "evict quota=2 " UNCOUNTED "B0:execute C0 B18:recover C18 B2:execute C2 "
      "unjudged B4:execute C4 B6:execute B0:old B2:old B18:replay" },
    { "it_is_forgotten_with_its_sender",
      UNCOUNTED "B0:execute R0 n0:ok B18:execute" },
    // It is counted if it is read again when its sender has an entry.
    { "a_key_that_was_not_counted_is_when_it_is_read_again",
      "evict senders=1 scopes=2 most=9 B0 B2,lease L" OVER "R2 B1,lease B3 "
      "C1,state P lost0 B1:replay" },
    { "a_number_that_was_not_counted_is_when_it_is_read_again",
      "nor: keys=96 evict senders=2 scopes=3 most=9 B0 C0 B1 C1 unjudged "
      "+senders=1 P lost0 n0:ok K@ K@ K@ K@ M M P B1:replay" },
    { "a_number_that_is_gone_and_was_not_counted_takes_no_count",
      "nor: keys=96 evict quota=1 senders=2 scopes=2 most=9 B0,retention=1000 "
      "C0 B1,retention=1000 C1 wait2000 n0:ok B1:old unjudged +senders=1 P "
      "B1:old B3:execute" },
    { "a_claim_that_was_not_counted_is_when_it_is_read_again",
      "nor: keys=96 capacity=4 quota=1 evict senders=2 scopes=3 most=9 "
      "B7,retention=1000 wait2000 B6,lease rotate3 unjudged +senders=1 P "
      "B6:recover P" },
    // The last number of an entry is gone, and a sender takes it over for a key
    // while its own number is still to be asked whether it has left.
    { "who_takes_an_entry_over_when_all_is_read_keeps_its_numbers",
      "nor: evict senders=1 scopes=2 most=9 B18,lease B2,lease B0 L" OVER
      "R2 R18 B0:old B1 B19 P lost0 B1:recover B19:recover" },
    { "a_sender_without_an_entry_stays_forgotten",
      "nor: keys=96 evict senders=1 scopes=2 most=9 B18,retention=1000 C18 "
      "B20,retention=1000 C20 wait2000 B1 C1 n1:ok P B1:execute" },
    // A floor that began anew, when another had the entry, is below that which
    // an opening finds; but what was gone is.
    { "a_number_is_gone_below_a_floor_that_was_forgotten",
      "evict senders=1 scopes=2 most=9 B2,retention=1000 C2 wait2000 M "
      "B19,retention=1000 C19 wait2000 M B0 L" OVER "B0:old P B0:old" },
    // Also where it is lost that it was forgotten.
    { "a_number_is_gone_below_a_floor_that_a_loss_brings_back",
      "beside=10 Bi Ci na:ok note Bc,retention=1000:execute wait2000 Bc:old "
      "damage,how=# P loss Bc:old" },
    // A number that came after its sender was forgotten is not gone, though it
    // is lost that it was: by damage to that record, or to the claim of the
    // sender that took its entry.
    { "a_number_that_comes_after_that_is_known",
      "beside=10 Be,retention=1000 wait2000 Be:old na:ok note Bc:execute Cc "
      "damage,how=# P loss Bc:replay" },
    { "so_is_one_that_is_claimed_again",
      "beside=10 Be,retention=1000 wait2000 Be:old na:ok note Bc:execute Bb "
      "damage,how=# P loss Bc:uncertain" },
    { "so_is_one_after_its_entry_was_taken",
      "nor: keys=96 evict senders=1 scopes=2 most=9 B4,retention=1000 wait2000 "
      "B4:old B1,retention=1000 note C1 wait2000 M B2 C2 damage P loss "
      "B2:replay" },
    // What was gone of one epoch means nothing for another: the sender was
    // forgotten and began anew, which damage to the record of that undoes.
    { "what_was_gone_is_of_its_epoch",
      "keys=96 beside=10 B28,retention=1000 wait2000 B28:old na:ok note Bg Cg "
      "Be,retention=1000 wait2000 Be:old damage,how=# P loss Bg:replay" },
    // .. and stays gone when its floor rises past numbers that are not.
    { "what_was_gone_stays_so_below_a_higher_floor",
      "beside=10 Ba,retention=1000 Bc,retention=1000 Be,retention=1000 "
      "wait2000 Be:old Bg Cg Bi,retention=1000 Ci wait2000 Bi:old P Ba:old "
      "Bc:old Be:old Bg:replay Bi:old" },
    { "a_sender_without_an_entry_stays_forgotten_in_every_boot_after",
      "evict senders=1 scopes=2 most=9 B2,lease B0 L" OVER
      "R2 B1 C1 n1:ok P lost0 B0:execute P lost0 G1:none" },
    // .. also where fewer entries than before left it none.
    { "a_sender_that_was_forgotten_is_so_when_it_has_no_entry",
      "nor: keys=10 capacity=4 quota=4 evict senders=2 scopes=2 most=9 "
      "B8,retention=9000000 wait600000 B1,retention=1000 n8:ok unjudged "
      "+senders=1 P B1:recover P B8:full" },
    // The release of 0 is lost: so an opening finds no entry for 2, and in the
    // end gives its sender one for the key 95.  That has a time then where it
    // had a sequence: a high one, after 30 days.
    { "the_eviction_time_of_a_new_entry_is_no_sequence",
      "keys=96 evict senders=2 scopes=3 most=9 E,n=3000000000 B1,lease "
      "B0,lease R0 note B2,retention C2 B95,retention C95 R1 B0,lease "
      "E,n=300000000 R0 damage,how=# P loss wait100100 B2:replay" },
    // Its floor is forgotten, and nobody relies on the record that has it.
    { "a_floor_without_an_entry_may_be_lost_between_two_boots",
      "evict senders=1 scopes=2 most=9 B2,lease B0 L" OVER
      "R2 B1,retention=1000 C1 wait2000 B1:old note P B0:execute rotated "
      "damage,how=4 P lost0" },
    { "a_floor_without_an_entry_is_not_rewritten",
      "nor: capacity=4 quota=1 evict senders=2 scopes=3 most=9 "
      "B0,retention=9000000 B1,retention=1000 wait300000000 "
      "B1,retention=9000000:old unjudged +senders=1 P "
      "B3,retention=9000000:full +senders=2 P B1:recover" },
    // Who has lost its entry may begin in an older epoch.
    { "an_epoch_may_be_older_than_one_that_was_forgotten",
      OLDER_EPOCH "P B1:recover" },
    { "its_outcomes_stay_whatever_time_passes",
      OLDER_EPOCH "C1,ms=600000000:ok P lost0 B1:replay P lost0 B1:replay" },
    { "nor_does_an_older_claim_that_is_left_bring_it_back",
      "nor: evict senders=1 scopes=2 most=2 B1,lease B5:execute C5 rotate,n=3 "
      "P lost0 B1:old B3:old" },
    // Not all numbers up to a floor that an opening has raised are gone.
    { "what_an_opening_lets_expire_takes_nothing_else_with_it",
      "beside=10 Bg,retention=9000000 Cg Bi P wait200100 Bg:replay P Bg:replay "
      "P Bg:replay" },
    { "nor_does_a_floor_that_rises_before_the_first_record",
      "keys=96 beside=10 Bi,retention=1000 Bm,retention=9000000 Cm Bo wait2000 "
      "Bi:old Bi:old P wait200100 Bm:replay P Bm:replay P Bm:replay" },
    // .. by a sweep, before the newest record is rewritten: that of the floor, or
    // that of the number.
    { "nor_does_a_floor_that_rises_in_its_own_record",
      "beside=10 Bg,retention=2000000000 Cg Bi,retention=1000000 Ci Bc L" OVER
      "Ba:old P wait300000000 Gg Bm:execute P Bg:replay" },
    { "what_expires_as_the_newest_record_stays_gone",
      "beside=10 Bg,retention=2000000000 Cg Bi,retention=1000000 Ci P "
      "wait300000000 Gg Bm:execute P Bg:replay Bi:old" },
    // Keys that had expired when another took their sender's entry do not hold
    // that while the journal is read.
    { "who_took_an_entry_over_has_it_after_a_restart",
      "nor: keys=96 evict senders=1 scopes=2 most=9 B0,retention=20000 C0 "
      "B2,retention=1000 C2 wait10000 M wait20000 M B13,retention=1000 C13 "
      "wait10000 M B13:old P B13:old P B13:old" },
    // Under eviction the one whose entry another has was forgotten by choice.
    { "who_was_forgotten_for_another_is_no_loss",
      "nor: keys=96 evict capacity=4 senders=1 scopes=2 most=9 B18 B20 "
      "wait300000 M M B1 C1 P lost0 K2 P lost0" },
    // Not for one who was idle for longer, and was forgotten, but whose entry
    // is still in the journal.
    { "an_opening_forgets_who_is_idle_for_longest",
      "nor: keys=96 evict senders=2 scopes=3 most=9 B24 C24 "
      "wait600000 M M B26 C26" OVER
      "rotate@ rotate@ B25 C25 evicted1 B26:old P B26:old" },
    { "who_was_forgotten_for_another_is_not_in_its_way",
      "nor: keys=96 evict senders=1 scopes=8 most=9" NEXT("1") NEXT("2")
      NEXT("3") NEXT("4") NEXT("9") NEXT("10") NEXT("19") NEXT("49") },
    { "more_senders_and_more_keys_keep_the_floors",
      "keys=96 sectors=40 senders=2 scopes=2 most=9 B52 C52 B5 C5" OVER
      "rotate30 "
      "+senders=3 capacity=8 " KEPT "+senders=5 capacity=10 " KEPT
      "+senders=8 capacity=13 " KEPT },

    // Number 1, beside 2, which has left, and an entry that the ring has moved.
    { "the_first_number_of_an_epoch_is_not_gone_with_others",
      "keys=96 beside=10 B20,retention=9000000 C20 B22,retention=1000 C22 "
      "wait2000 M rotate9 P lost0 B20:replay B22:old" },
    // .. nor with those that were gone of the sender that had the entry before.
    { "the_first_number_of_a_sender_is_not_gone_with_those_of_another",
      "nor: keys=96 evict senders=1 scopes=2 most=9 B0,retention=1000 C0 "
      "B2,retention=1000 C2 wait2000 M B0:old B1,retention=9000000 C1 "
      "B3,retention=1000 C3 evicted1 wait2000 B5 C5 P B1:replay B3:old" },
    // The number that is the floor, if a restart finds its claim again beside
    // the floor, which the ring has moved.
    { "a_number_that_came_back_with_its_floor_stays",
      "beside=10 Ba,retention=150000 Ca Be,retention=1000 Ce wait2000 M rotate1 "
      "Bb,retention=9000000 Cb Bi Bj" OVER "rotate@ P wait60000 M Bi Ci Bc:old "
      "P lost0 Bi" },
    // The answer comes from the sender's entry.
    { "a_command_that_a_quota_refuses_costs_no_storage",
      "keys=96 capacity=8 quota=4 beside=50 Ba Ca Bc Cc Be Ce Bg Cg P Bb Cb "
      "Bi:full untouched Bk:full untouched Bm:full untouched" OVER
      "P Bi Ci Bg:old" },
};

TESTS(scenarios, run_scenario)

/* A number of sender `by` was to make room for one of epoch 5 of "", which may
   be refused.  It neither takes the entry of that, nor its number. */
static void stays_apart(int answered, const char *by, unsigned next)
{
    int granted = answered == IDEM_EXECUTE || answered == IDEM_UNCERTAIN;

    if (!granted)
        is(answered, IDEM_E_FULL);
    is(inside_counted(the.table, ""), granted);
    is(inside_counted(the.table, by), 0);
    assert_true(inside_floor(the.table, by) >> 32 == 0);
    assert_int_not_equal(answer('B', next), IDEM_TOO_OLD);
    is(idem_check(the.table), 0);
}

/* The sender of 0 has nothing to remember when its next number comes; that of 1
   has no entry, and its number has expired. */
TEST(s4_no_number_is_counted_for_another_sender_when_one_expires)
{
    for (int evicts = 0; evicts < 2; evicts++) {
        device_on(&nor, filled("evict=@ keys=96 senders=2 scopes=2 most=4 "
                               "B0,lease B1,retention=1000 C1 unjudged "
                               "+senders=1 P X0:ok wait2000", 0,
                               evicts ? IDEM_EVICT_OLDEST : IDEM_REJECT));
        stays_apart(answer('B', 40), "a", 3);
    }
}

/* Or its number is evicted. */
TEST(s4_no_number_is_counted_for_another_sender_when_one_is_evicted)
{
    device_on(&nor, "evict capacity=3 keys=96 senders=3 scopes=3 most=4 "
                    "B0,lease B1,lease B2 C2 unjudged +senders=2 P X0:ok "
                    "B4,lease");
    stays_apart(answer('B', 60), "ab", 5);
}

/* The sectors from which it follows could be erased. */
TEST(idem_check_finds_a_floor_without_a_sector)
{
    idem_table *t = device_on(&nor, "evict capacity=1 beside=10 Bi Ci Bg "
                                    "P Bi:old")->table;

    is(idem_check(t), 0);
    for (uint32_t n = 1; n <= t->config->senders; n++)
        inside_set_need(t, t->capacity + n, UINT32_MAX);
    is(idem_check(t), 18);
}

/* Calls of a torn batch; then power goes, and of what was not synced a cache
   has lost some. */
static void lose_some(const char *line, uint32_t variant)
{
    device_on(&cached, line)->medium.draws = 100;
    flash_off(&the.medium, variant);
    run("P");
}

/* Of a torn batch the claim that had the slot next may be there, and the note
   that its key before was given back may not. */
TEST(in_batch_mode_what_was_given_back_is_not_old)
{
    uint32_t kept = 0;

    for (uint32_t lost = 0; lost < 100; lost++) {
        lose_some("batch capacity=1 beside=10 Bi Y Ri Bk", lost);
        kept += answer('B', 10) == IDEM_RECOVER;
        run("Rk Bi:execute");
    }
    assert_in_range(kept, 1, 99);
}

/* The note that a key was given back may be there where its claim is not: it is
   none of the key that had the slot before. */
TEST(in_batch_mode_a_note_is_of_no_other_key)
{
    for (uint32_t lost = 0; lost < 100; lost++) {
        int result;
        lose_some("batch evict capacity=1 beside=10 Bi Ci Y Bk fail3,at=0 "
                  "Rk:storage", lost);
        result = answer('B', 8);
        assert_true(result == IDEM_REPLAY || result == IDEM_TOO_OLD);
    }
}

/* The newest record may be that of an entry: one that was relocated ahead. */
TEST(an_entry_that_is_the_newest_record_is_rewritten)
{
    operation last = { 0, 0, 0 };

    device_on(&nor, "beside=10 B56 C56" OVER);
    for (uint32_t n = 0; n < 200 && !last.len; n++) {
        run("rotate1");
        while (answer('m', 0) == IDEM_MORE)
            if (the.progs == 1 && relocated() < 0 && !the.erases)
                last = newest();
    }
    assert_int_not_equal(last.len, 0);
    run("P B56:old");
    run("rotated");
    lose(last);
    run("P B56:old");
}

/* The mark that all up to a floor are gone is followed by the time, where it may
   not be the newest record: with large granules perhaps in the next sector. */
TEST(a_mark_at_the_end_of_a_sector_has_the_time_after_it)
{
    static const medium wider = { "wider", FLASH_ECC, 0, 128, 2048, 0xFF };

    for (unsigned n = 0; n < 40; n++)
        for (int fails = 0; fails < 2; fails++) {
            device_on(&wider, "beside=10 Ba,retention=1000 Bc,retention=9000000 "
                              "wait2000");
            for (unsigned i = 0; i < n; i++)
                run(i % 2 ? "Rb" : "Bb");
            if (fails)
                run("fail2,forever Ba:old/storage/space works");
            run("Ba:old P wait2000 M Bb P Ba:old");
        }
}

/* Who repeats a number that is refused does not use up the last sectors. */
TEST(s7_refused_numbers_leave_room_for_outcomes)
{
    uint64_t tokens = IDEM_WIDE ? UINT64_MAX : UINT32_MAX;
    uint64_t last = tokens / nor.sector_size;
    device *d = device_on(&nor, "beside=10 unjudged");
    int result = IDEM_TOO_OLD;

    inside_start_far(d->table,
                     (uint32_t)(last < UINT32_MAX ? last : UINT32_MAX) - 260);
    d->damaged = 1;
    run("Ba,retention=9000000 Ca Bc,retention=1000 Bm,lease wait2000");
    for (unsigned n = 0; n < 9999 && result == IDEM_TOO_OLD; n++)
        result = answer('B', 2);
    is(result, IDEM_E_SPACE);
    run("Cm:ok Bm:replay");
}

static idem_claim claim;

static int begin_number(const char *scope, uint32_t sequence,
                        uint32_t retention)
{
    idem_request rq = { .scope = scope, .scope_len = strlen(scope),
                        .sequence = sequence, .lease_ms = 1000,
                        .retention_ms = retention };

    return begin_request(&claim, &rq);
}

/* A claim has left.  So each refusal of its number is written if its sender has
   an older one; but not if that is another's, whose name is as long. */
TEST(numbers_of_a_name_as_long_are_those_of_another_sender)
{
    static const char *const names[][2] = { { "a", "b" }, { "pump", "fans" } };
    static const idem_outcome outcome;

    for (size_t i = 0; i < COUNT(names); i++)
        for (unsigned other = 0; other < 2; other++) {
            device *d = device_on(&nor, "beside=10 key=12 unjudged");
            uint32_t progs;
            is(begin_number(names[i][other], 1, 900000), IDEM_EXECUTE);
            is(idem_complete(d->table, &claim, &outcome, d->now), IDEM_OK);
            is(begin_number(names[i][0], 2, 1000), IDEM_EXECUTE);
            d->now += 5000;
            is(begin_number(names[i][0], 2, 1000), IDEM_TOO_OLD);
            progs = d->medium.progs;
            is(begin_number(names[i][0], 2, 1000), IDEM_TOO_OLD);
            is(d->medium.progs != progs, !other);
        }
}

/* Flags, options, no slot, one byte of time; then the hash of the scope, sequence
   and epoch of the floor, the check. */
TEST(the_record_of_a_floor_is_as_long_as_its_fields)
{
    device_on(&nor, "beside=10 Bc L" OVER "Ba:old");
    is(newest().len, 4 + 8 + 8 + 4);
}
