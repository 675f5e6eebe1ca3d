/* SPDX-License-Identifier: 0BSD */
/*
 * Numbers instead of keys (>>numbers of the manual): an old number is old for
 * ever, over restarts, cuts and rotations of the ring.  Cases that need no
 * restart are in RAM; the limits of the numbers themselves are in senders.c.
 *
 * With numbers=20 the keys a to t are the numbers 1 to 20; with numbers=5 each
 * five are of one epoch.  With beside=10 every second key is a number, so a, c,
 * e are 1, 2, 3, and K and J rotate the ring with a key of another scope.
 */
#include "scenario.h"

static const scenario scenarios[] = {
    // one boot
    { "a_number_is_a_key_like_any_other_while_it_is_known",
      "ram numbers=20 Bi Bi,ms=99:busy Wi:mismatch Bi:recover L Bi:recover L "
      "Bi:exhausted Bh Ch Bh:replay" },
    { "the_order_may_be_reversed",
      "ram capacity=12 numbers=20 Bl Cl,ms=0 Bk Ck,ms=0 Bj Cj,ms=0 Bi Ci,ms=0 "
      "Bh Ch,ms=0 Bg Cg,ms=0 Bl,ms=99994:replay Bl:old Bk,ms=0:replay "
      "Bg,ms=0:replay wait4 Bk,ms=0:old Bh,ms=0:old Bg,ms=0:replay Bg:old "
      "Bm:execute" },
    { "what_was_released_or_forgotten_does_not_raise_the_floor",
      "ram numbers=20 Bj Rj Bk Ck Xk:ok Bl Xl:busy L Xl:ok Bi Ci Xi "
      "Ba:execute" },
    { "what_was_evicted_raises_the_floor",
      "ram evict capacity=2 numbers=20 Bj Cj Be Ce Bl Cl Bj:old Bg:old "
      "Be:replay Bk Ck Ba:old Bj:old Be:old Bk:replay Bl:replay" },
    { "what_expires_raises_the_floor_whatever_it_was",
      "ram numbers=20 Ba,ms=0 Ca,ms=0 Bc,ms=0 Bb,ms=100000:execute Ba,ms=0:old "
      "Bc,ms=100:old Bb,ms=0:recover Cb,ms=0:ok Bb:replay Bd:execute" },
    { "what_idle_work_drops_raises_the_floor",
      "ram numbers=20 Bj Cj T M a Bi:old Bt Ct E,n=300000000 E,n=300000000 a "
      "Bs:old" },
    { "a_number_is_known_to_be_old_for_ever",
      "times=240 ram numbers=5 Bm Cm E,n=2592000000 Bm,ms=0 Bk Bd Bn Rn" },
    { "too_old_goes_before_full",
      "ram capacity=2 numbers=5 Bj Cj T M Bg:old Bk Ck Bl Cl Bj:old Be:old "
      "Bm:full" },

    // b, which has raised the floor above a, is found alive again.
    { "what_left_below_a_floor_that_has_risen_in_this_boot_stays_old",
      "numbers=20 Bc Ba Rc P Bb T T M rotate@ P Ba:old" },

    // epochs
    { "of_an_older_epoch_all_is_too_old_that_is_not_finished",
      "ram numbers=5 Ba Ca Bb Bf Bb:old L Bb:old Bc:old Ba:replay Wa:mismatch "
      "Wb:old T Ba:old" },
    { "a_newer_epoch_begins_its_floor_anew",
      "ram numbers=5 Be Ce T M Bd:old Bi:execute Bf:execute Be:old" },
    { "a_newer_epoch_fences_the_claims_of_older_ones",
      "ram numbers=5 Ba Bb Bc Bf Ca:fenced Rb:fenced Nc:fenced Ba:old Bb:old "
      "Bc:old Cf:ok" },
    { "a_fenced_claim_without_end_does_not_keep_its_slot",
      "ram capacity=2 numbers=5 Ba,lease Bf,ms=0 Cf,ms=0 Bg:execute "
      "Na,lease:fenced Ca:fenced Bh:full T Bh:execute Ba:old" },
    { "fenced_claims_make_room_at_once",
      "ram capacity=4 numbers=5 Ba Bb Bc Bf:execute Bg:execute Bh:execute "
      "Bi:execute Bj:full" },
    { "fenced_claims_make_room_in_a_quota_at_once",
      "ram quota=2 numbers=2 Ba Bc:execute Bd:execute Bb:old Be:full" },
    { "one_stray_old_packet_does_not_rewind_an_epoch",
      "ram numbers=5 Bd Cd Bf Cf Be:old Bd:replay Bg Cg Bf:replay T Bd:old "
      "Bh:execute" },
    { "an_epoch_that_comes_back_has_expired",
      "ram numbers=2 Bb Cb T Bc Cc Ba:old Bb:old T Bf Cf Bd:old Bc:old Ba:old "
      "T Bg Cg Be:old Bf:old Bb:old" },
    { "an_epoch_counts_from_its_first_claim_on",
      "ram numbers=5 Ba Ca Bf Rf Bb:old Bf:execute" },

    // quota
    { "at_its_quota_a_sender_evicts_its_own_and_knows_its_floor",
      "ram evict quota=2 beside=10 Bb Cb Ba Ca Bc Cc Be Ce Ba:old Bc:replay "
      "Be:replay Bg Cg Bc:old Ba:old Be:replay Bi Ci Be:old Bg:replay "
      "Bb:replay" },
    { "a_quota_holds_while_expired_numbers_lie_about",
      "ram quota=2 beside=10 Bc,ms=0,retention=10 Cc,ms=0 Ba,ms=0 Ca,ms=0 "
      "Bb,ms=0 Cb,ms=0 Be,ms=9:full Be:execute Bg,ms=0:full Bc,ms=0:old "
      "Ba,ms=0:replay" },

    // senders: those of all scopes are numbers but the last key of each
    { "each_sender_has_its_own_numbers",
      "ram senders=4 scopes=4 most=9 Be Ce B1 C1 Bg Cg Bd Cd Bh Ch T M Be:old "
      "Ba:old Bb:old Bf:execute Bg:old Bk:execute Bh:old Bl:execute" },
    { "a_quota_limits_numbers_as_it_does_keys",
      "ram capacity=4 quota=2 senders=2 scopes=2 most=9 Bc Cc Bs:execute "
      "Be:full Bc:replay Bf:execute Rs:ok Be:execute Bg:full" },
    { "what_one_sender_evicts_makes_no_other_too_old",
      "ram evict quota=2 senders=2 scopes=2 most=10 wait100000 H Bb Cb Ba,ms=0 "
      "Ca,ms=0 Bc Cc Be Ce Bg Cg Bi Ci H Bk,age=8:old Bd,age=8:execute "
      "Bk,age=3:execute H" },

    // for ever
    { "old_numbers_are_refused_after_100_restarts",
      "times=100 beside=10 Bi Ci Bc Cc T L M M P Bi Ba Bg Bk Rk" },
    { "floors_survive_the_ring_going_round_many_times",
      "beside=10 Bi Ci T L M K99 Bi:old Bg:old P K99 Bi:old J60 Bi:old K9 M K9 "
      "M K9 M Bi:old P Ba:old Bk:execute" },
    { "a_floor_rises_from_boot_to_boot",
      "beside=10 Ba Ca P Ba:replay T L M K9 P Ba:old Be Ce P Be:replay T L M "
      "K20 P Bc:old Be:old Bi Ci P Bi:replay T L M P Bi:old Bg:old "
      "Bk:execute" },
    { "what_was_evicted_stays_old",
      "evict capacity=2 numbers=20 Ba Ca Bb Cb Bc Cc P Ba:old Bb:replay Bd Cd "
      "Be Ce Bf Cf P Bd:old Be:replay Bg Cg Bh Ch Bi Ci P P Bf:old Ba:old "
      "Bg:old Bh:replay Bi:replay" },
    { "a_claim_that_was_never_completed_raises_the_floor",
      "beside=10 Be P Be:recover Bc Rc P T L L M K9 Be:old Bc:old Bg:execute "
      "Rg K60 P Be:old Bc:old Bg:execute Rg K60 P Be:old" },
    { "what_was_released_or_forgotten_raises_no_floor",
      "times=9 beside=10 Bi Ri Bk Ck Xk P K9 Ba:execute Ra Bm Rm Bo Co Xo K30 "
      "P Ba:execute Ra" },
    { "an_epoch_that_was_claimed_counts_in_every_boot_after",
      "beside=2 Ba Ca Bc Be Re P Bc:old Ba:replay Wa:mismatch Wc:old "
      "Be:execute Re K9 P Bc:old Ba:replay Be Re T L M K60 P Bc:old Ba:old "
      "Be:execute" },
    { "a_fenced_claim_without_end_expires_at_once",
      "capacity=2 beside=2 Ba,lease Be Ce Na,lease:fenced Bg:execute P "
      "Ca:fenced Ba:old Bg:recover" },
    { "too_old_goes_before_full_over_restarts",
      "capacity=1 numbers=20 Bi Ci T L M Bj Cj P Bi:old Bk:full" },
    { "a_quota_of_numbers_holds_over_restarts",
      "quota=2 beside=10 Ba,retention=10 Ca Bc Cc Be:full wait10 Be:execute P "
      "Bg:full Ba:old Bb:execute" },
    // That 3 expired is nowhere written: after a restart its retention begins
    // anew.  So the floor must be written before the sector of 2 goes.
    { "what_leaves_below_the_floor_stays_old",
      "beside=10 Bc Cc K8 Be,retention=1000 wait2000 M Be:old T M Bc:old K@ K@ "
      "Bc:old P Bc:old" },
    { "what_raised_the_floor_before_stays_needed",
      "times=24 beside=10 Bc Cc T M K8 Be,retention=1000 Bb wait2000 M Rb K@ "
      "P Bc:old" },
    // Nor is that 5 was given up, which raised it; of 3 all has expired, too.
    { "that_a_number_below_the_floor_expired_is_recorded",
      "beside=10 Bi,retention=1000 Be,retention=1000 Ce P M,ms=1000 Be:old P "
      "Be:old" },
    { "of_an_unsaved_floor_the_oldest_sector_is_needed",
      "beside=10 Bi T L M Bi:old K8 Bk T L M Bk:old K60 P Bi:old" },

    // cuts, failures, modes
    { "floors_survive_power_cuts_at_every_operation",
      "evict capacity=2 beside=6 Ba Ca Bc Cc Be Ce Bg Cg K3 | Bi Ci Bm Cm K4 | "
      "Ba:old Bc:old P Ba:old Bc:old" },
    { "floors_survive_programs_that_fail",
      "beside=10 Be Ce T L M K20 fail1,at=@,how=# K6 Be K6 works P Be:old K40 "
      "P Be:old Bc:old Bg:execute" },
    { "floors_survive_erases_that_fail",
      "beside=10 Be Ce T L M K20 fail2,at=@,how=# K9 Be K9 works P Be:old K40 "
      "P Be:old Bc:old Bg:execute" },
    { "what_a_failed_claim_evicted_lets_nothing_be_executed",
      "evict capacity=2 beside=10 Bc,retention=1000 K8 Be Ce Cc fail1,how=0 Bg "
      "works wait2000 M Bc:old K@ K@ P Bc" },
    { "in_batch_mode_a_sync_makes_floors_durable",
      "batch evict capacity=2 numbers=20 Ba Ca Bb Cb Bc Cc Bd Cd Y Be Ce Bf Cf "
      "Bg | Y | Ba:old Bb:old P Bb:old" },
    { "a_begin_that_fails_evicts_nobody",
      "evict capacity=2 numbers=20 Ba Ca Bb Cb fail1,how=# Bc:storage works "
      "Ba:replay Bb:replay Bc Cc Ba:old Bb:replay P Ba:old" },
    { "a_begin_that_cannot_sync_evicts_nobody",
      "cached: evict capacity=2 numbers=20 Ba Ca Bb Cb fail3 Bc:storage "
      "Ba:replay Bb:replay" },

    // too old
    { "a_number_that_was_too_old_stays_so",
      "numbers=20 Bg L T M Bg:old P Bg:old Bf:old Bh:execute P K60 Bg:old" },
    { "all_numbers_that_were_too_old_stay_so",
      "numbers=20 Bc Bg Be L T M Bg:old Bc:old Be:old P Bc:old Be:old Bg:old P "
      "K60 Bg:old Bc:old Be:old" },
    { "what_left_below_a_floor_that_was_written_stays_old",
      "numbers=20 Bg,retention=1000 Bc L wait1000 M Bg:old Bc:recover L T M "
      "Bc:old P Bc:old Bg:old" },
    { "with_younger_numbers_what_was_too_old_stays_so",
      "numbers=20 Bc Bg L T M Bi Ci Bk Bc:old Bg:old P Bc:old Bg:old Bi:replay "
      "Bk:recover" },
    { "what_is_known_below_the_floor_is_known_after_a_restart",
      "numbers=20 Bc,lease Be Bg,retention=1000 Cg wait2000 M Bg:old P "
      "Bc:recover Be:recover Bg:old" },
    // While b is refused g leaves too, and so the floor passes c.
    { "what_is_known_below_a_floor_that_rises_meanwhile_stays_known",
      "numbers=20 Bc Cc Bb,retention=1000 Cb Bg,retention=1000 Cg wait2000 "
      "Bb:old P Bc:replay Bb:old Bg:old" },
    { "a_number_that_was_completed_is_not_claimed_again",
      "numbers=20 Bg,retention=2592000000 P "
      "Bg,retention=60000:recover Cg Bg:replay P wait120000 M Bg:old P Bg:old "
      "P Bg:old" },
    { "a_new_epoch_is_not_too_old_for_what_the_older_one_was",
      "numbers=5 Bc Be L T M Bc:old Be:old Bf Bg Cg P Bg:replay Bf:recover "
      "Be:old Bh:execute" },
    { "who_is_forgotten_is_unknown_after_a_restart",
      "numbers=20 Ba Ca Bg Cg L T M Bi Ci Bg:old na P Bg Cg Bi:execute Ba P "
      "Bg:replay Bi:recover Ba:recover" },
    { "who_is_forgotten_stays_so_while_the_ring_goes_round",
      "beside=10 Bc Cc Be L T M Be:old na rotate@ P Ba:execute Ra rotate@ P "
      "Bc:execute" },
    { "that_a_sender_was_forgotten_is_recorded",
      "numbers=20 Bc Cc L T M Bc:old na P Ba P Ba:recover Bc:execute" },

    // c has expired when the next boot reads what was written of a.
    { "an_entry_that_is_written_has_no_later_floor",
      "beside=10 Br Bc Ba E,n=200000000 Bp P Bp E,n=100000000 Ba:old Bd J40 "
      "P Bc:old" },
    // Nor does one that is read after c has expired, for the time since the
    // oldest sector is long.
    { "an_entry_that_is_relocated_lowers_no_floor",
      "beside=10 Bb,retention=2000000000 Cb Ba,retention=1000 Ca wait2000 "
      "Ba:old K@ Bc,retention=100000000 Cc K8 E,n=60000000 K1 P K1 "
      "E,n=240000000 K20 P lost0 K@ P Bc:old K@ P Bc:old K40 P Bc:old" },
    // The newest record is of a number that has expired when it is to be
    // rewritten: the one before it is not there again.
    { "what_expired_before_its_boot_wrote_is_no_claim_again",
      "numbers=20 Ba Ca P wait200000 Ga | Bb | Ba" },
    { "what_expired_before_its_boot_wrote_has_all_its_attempts",
      "numbers=20 Ba P Ba P wait200000 Ga | Bb | Ba" },
    // The record that f was released has its epoch, and may be torn.
    { "an_epoch_that_a_torn_note_has_is_known_from_then_on",
      "numbers=5 Bf fail1,how=1 Cf works | Rf | Ba Ra P Ba Ra P Ba" },
    { "what_is_given_back_after_a_failed_outcome_is_gone",
      "beside=10 Ba Ca Bc fail1,how=1 Cc works Rc:ok P Bc:execute" },
};

TESTS(scenarios, run_scenario)
