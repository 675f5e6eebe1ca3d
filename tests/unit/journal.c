/* SPDX-License-Identifier: 0BSD */
/*
 * What a table with a journal promises over restarts: the promises of the
 * manual's >>promises, one after the other, and the edges that it decides.
 * Power may go and callbacks fail; nothing is damaged here.
 */
#include "scenario.h"

static const scenario scenarios[] = {
    // S1, S3
    { "s1_claims_of_the_boot_before_are_fenced",
      "Ba:execute P ca:fenced ! Ba:recover ca:fenced ! Ca:ok" },
    { "s1_a_takeover_holds_after_a_restart",
      "Ba:execute L Ba:recover ca:fenced Ca:ok Ca:fenced P Ba:replay" },
    { "a_claim_stays_current_after_its_lease_until_taken_over",
      "Ba:execute L L Ca:ok P Ba:replay" },
    { "tokens_increase_over_restarts_that_wrote_nothing",
      "times=9 Ba:execute Ra:ok Bb:execute Rb:ok P Bc:execute Rc:ok P P" },
    { "s3_another_payload_is_a_mismatch_in_every_state",
      "attempts=1 Aa Bb:execute Wa:mismatch Wb:mismatch Bb:busy P Wa:mismatch "
      "Wb:mismatch Bb:exhausted P Wa:mismatch Wb:mismatch Bb:exhausted" },
    { "s3_the_same_key_of_two_scopes_is_two_keys",
      "Aa Bb:execute Cb:ok P Ba:replay Bb:replay Xa:ok Bb:replay Ga:none" },

    // S2
    { "s2_every_outcome_is_replayed_byte_for_byte",
      "Ba Ca,len=0,code=0 Bb Cb,len=1,code=2147483647 Bc Cc,len=23,code=63 Bd "
      "Cd,len=24,code=4294967293 Be Fe,code=64 Bf Cf,len=24,code=2147483648 P "
      "Ba:replay Bb:replay Bc:replay Bd:replay Be:replay Bf:replay ? P K60 Bd "
      "P Ba:replay Bb:replay Bc:replay Bd:replay Be:replay Bf:replay" },
    { "any_key_and_request_is_stored_as_it_is",
      "Ba P Wa:mismatch Wa,payload=21:mismatch Wa,payload=63:mismatch Xa Bc P "
      "Wc,payload=42:mismatch Wc,payload=64:mismatch Xc Br P Wr:mismatch Br" },
    { "all_records_may_be_shorter_than_a_header",
      "key=1 response=0 state=0 scopes=1 Ba:execute Ca,len=0 Bb "
      "| Cb,len=0 | Ba:replay Bb" },
    { "s2_a_cut_in_complete_leaves_all_or_nothing",
      "Aa Bb | Cb | Ba:replay Ab P Ba:replay Bb:replay" },
    { "s2_a_cut_in_the_first_write_of_a_boot_loses_nothing",
      "Aa Bb P Bb:recover Cb P | Bc | Ba:replay Bb:replay Ac P Bc:replay" },

    // S4, L2
    { "s4_an_interrupted_claim_is_recovered_at_every_restart",
      "times=9 attempts=255 Ba P P Ba:recover Ba:busy P Ba:recover L "
      "Ba:recover" },
    { "a_torn_claim_is_nothing", "| Ba | Ba P Ba:recover Ca:ok P Ba:replay" },
    { "l2_a_key_that_resets_the_device_ends_exhausted",
      "Ba:execute P Ba:recover P Ba:recover P Ba:exhausted P Ba:exhausted P "
      "Ba:exhausted Xa:ok Ba:execute" },
    { "attempts_count_leases_and_restarts_alike",
      "Ba:execute L Ba:recover P Ba:recover Ra:ok P Ba:execute" },
    { "a_lease_without_end_ends_with_the_boot",
      "Ba,lease:execute T T Ba:busy Xa:busy P Ba:recover" },

    // S10
    { "s10_what_one_boot_answered_all_later_ones_answer",
      "Aa Bb | Cb | Ab P Bb:replay P Bb:replay P Bb:replay" },
    { "s10_what_was_delivered_stays_delivered",
      "Bb Ob | Db | Bb:replay Db P o Bb:replay Db:none P Db:none P Db:none" },
    { "s10_what_was_forgotten_stays_forgotten",
      "Bb Ob | Xb | Xb Bb:execute Rb:ok P Gb:none P Gb:none P Gb:none" },
    { "calls_that_only_look_do_not_write",
      "Aa P Ga:ok ga,at=2 a o s H E,n=5 Wa:mismatch Ba:replay Ba:replay" },
    { "a_duplicate_costs_no_read", "Aa Ab Ac Ad Ae Af Ag Ah Aa Ab Ac Ad" },

    // release, forget, delivery
    { "what_was_given_back_is_new_after_a_restart",
      "Ba Ra:ok Ra:fenced Ab Xb:ok Xb:none P a Ba:execute Bb:execute" },
    { "a_key_that_came_again_is_there_once",
      "times=40 Ba:execute Ca Ba:replay Bb Xa:ok Rb Ba:execute Ca a Xa Ba Ca "
      "P a Ba:replay Xa" },
    { "a_key_that_comes_again_in_another_slot_is_there_once",
      "times=9 capacity=3 Ba Ca Bb Cb Bc Cc T Bb Cb P ? Bd Cd Ba Ca P ? T Bc "
      "Cc P ? Bb:execute Cb Bd Cd P ? T" },
    { "an_evicted_key_that_comes_again_in_another_slot_is_there_once",
      "times=9 evict capacity=3 Ba Ca Bb Cb Bc Cc Bd Cd P ? Ba Ca Bd P ? Bb "
      "Cb Bc Cc P ? Ba Ca Xa Bd P ? Xd Aa Xa Xb Xc" },
    { "forget_on_a_live_claim_is_busy",
      "Ba Xa:busy L Xa:ok Ba:execute P Xa:ok P Ba:execute" },
    { "outcomes_are_pending_in_order_until_delivered",
      "Bc Oc Ba,ms=3 Oa Bd,ms=3 Od Bb,ms=3 Ob o P o Da:ok Da:none da:ok o K40 "
      "o P o P o Ba:replay Dc:ok o P o" },

    // state
    { "the_state_is_that_of_the_last_outcome_that_had_one",
      "s Ba Sa Ab s P s Xa:ok K99 s P s Bc Cc,state=8 Bd Cd,state=9:large P s "
      "Bd:recover Cd,state=0 s P s" },
    { "state_and_outcome_are_one_step",
      "Ba Sa Bb | Sb | ? P ? P ? Bb Sb P ? K30 P ?" },

    // room
    { "a_known_interrupted_key_is_never_full",
      "capacity=4 Ba Bb Bc Bd Be:full P Be:full Ba:recover Bb:recover "
      "Bc:recover Bd:recover" },
    { "s7_a_response_over_the_reservation_leaves_the_claim",
      "e,n=1 Ba,reserve=4:execute Ca,len=5:large Ca,len=4:ok P Ba:replay" },
    { "eviction_takes_the_oldest_completion_over_restarts",
      "evict capacity=4 Bg Og Bh Nh,lease Aa Ab P Bh:recover Ac Ga:none Gb:ok "
      "P Gb:ok Gc:ok Gg:ok Bh:recover Aa P Gc:ok Gb:none" },
    { "memory_reaches_to_the_opening_under_eviction",
      "evict Ba P Bb,ms=50,age=50:old Bb,ms=0,age=49:execute H" },
    { "s9_a_quota_holds_over_restarts",
      "senders=2 quota=2 Aa Bc P Be:full Bc:recover Ab Xa:ok P Be:execute "
      "Bg:full" },

    // batch
    { "in_batch_mode_a_sync_makes_all_before_it_durable",
      "batch Ba Ca Bb Y Cb Bc Cc | Y | Ba:replay Bb Y:ok Y:ok ?" },
    { "in_each_mode_every_record_is_synced_at_once", "Aa | Bb Cb Xa | ? P ?" },
    { "sync_without_a_journal_is_done", "ram Y:ok Aa Y:ok Aa" },
    { "a_torn_batch_never_gives_state_without_outcome",
      "batch Ba Sa Y Bb Sb Bc Sc | Y | ? P ?" },
    { "a_lost_batch_is_no_loss_at_any_later_boot",
      "batch Aa Bb Cb Bc Cc Bd Cd Be Ce | Y | Ba:replay K1 Y P ? Ba:replay K1 "
      "Y P ? K1 Y" },

    // callbacks that fail: the call changed nothing, and may be repeated (S7)
    { "s7_a_program_that_fails_changed_nothing_and_may_be_repeated",
      "Aa Bo Oo P fail1,at=@,how=# Bb Bb Bb Cb Cb Cb Bc Bc Rc Rc Do Do Xa Xa "
      "Bd Rd Bd Rd Bd Rd works Bb:replay Bo:replay Ga:none Gc:none P Bb:replay "
      "Bo:replay Ga:none Gc:none P Bb:replay" },
    { "s7_an_erase_that_fails_changed_nothing_and_may_be_repeated",
      "Aa Bo Oo P fail2,at=@,how=# Bb Bb Bb Cb Cb Cb Bc Bc Rc Rc Do Do Xa Xa "
      "Bd Rd Bd Rd Bd Rd works Bb:replay Bo:replay Ga:none Gc:none P Bb:replay "
      "Bo:replay Ga:none Gc:none P Bb:replay" },
    { "a_claim_that_failed_is_not_granted",
      "K9 fail1,how=#,forever Ba Ga:none works P Ba Ca:ok P Ba:replay" },
    // Also the sectors that are tried instead.
    { "what_was_completed_at_the_second_try_is_what_counts",
      "K9 Ba fail1,how=#,forever Ca works Ca:ok Ba:replay P Ba:replay P "
      "Ba:replay" },
    { "a_completion_that_failed_is_there_or_not_whole",
      "K9 Ba fail1,how=#,forever Ca works P Ba Ca P Ba:replay" },
    // Also where a boot's first head is wanted, and what was begun for it.
    { "a_boots_first_write_may_fail",
      "Aa P fail1,at=1,how=#,forever Bb works Bb:execute Cb:ok P Ba:replay "
      "Bb:replay P Ba:replay Bb:replay" },
    // Duplicates are answered meanwhile.
    { "a_storage_that_is_out_for_a_while_loses_nothing",
      "Ba Ca Bb,lease K9 fail#,forever Ba:replay m Bc Rc Ba:replay m Bc L Rc "
      "Ba:replay m Bc Rc Ba:replay m Bc works K30 fail#,forever,at=5 K5 "
      "Ba:replay "
      "m Bc Rc Ba:replay m Bc Rc works K30 Ba:replay Cb:ok P Ba:replay "
      "Bb:replay" },
    // Also where an erase fails in the end, or in idle time.
    { "what_is_in_a_skipped_sector_is_not_read",
      "times=40 sectors=20 Aa K9 fail2 Bb Bb Rb Rb works K5 fail2 M Bb Rb "
      "works P Ba:replay" },
    { "idle_work_may_fail",
      "times=99 Ba Ca Bb Cb Bc Cc Bd Cd Be Ce Bf Cf Bg Cg Bh Ch Xa:ok Ba Ca "
      "fail1,how=2 m m m works M" },
    // That it is delivered is certain, but for the newest record.
    { "that_an_outcome_is_delivered_needs_no_head_if_it_is_old",
      "Aa Ab P ? fail1,forever da:ok db:storage works db:ok da:ok" },

    // the rest of an interrupted rotation: shorter records, or longer ones
    { "records_of_an_abandoned_rotation_are_not_believed",
      "Aa rotate2 Ab Bc Cc,state=5 P | Bd | Xc Bc Cc,state=3 P s Bc:replay "
      "Ba:replay P s Bc:replay" },
    // Two attempts at one head, some time apart, do not mix up how old it is.
    { "time_does_not_run_backwards_in_relocated_records",
      "Aa rotate2 Ab Bc Sc Bd,ms=5000 P wait700 | Be | Bf,ms=30 P Ba:replay" },
    { "what_is_bound_to_a_dead_claim_is_no_damage",
      "Ba,lease rotate@ Ca:ok Xa P a rotate1 P a rotate1 P a rotate1 P a "
      "rotate1 P a rotate1 P a rotate1 P a rotate1 P a rotate1 P a rotate1 P "
      "a" },

    // the ring: no call erases more than once, none after idle time (L3)
    { "opening_writes_nothing_on_blank_storage_either",
      "P P Ba:execute P Ba:recover" },
    { "boots_that_only_replay_never_use_up_the_ring",
      "times=99 Aa P Ba:replay Ba:replay P Ba:replay" },
    { "a_full_table_restarts_for_ever_in_the_tightest_ring",
      "times=19 attempts=255 Aa Ab Ac Ad Ae Af Ag Ah P Ba:replay Xa:ok Aa P "
      "Bb:replay P Bc:replay P Bd:replay Xd:ok Ad P Be:replay P Bf:replay P "
      "Bg:replay Xg:ok Ag P Bh:replay" },
    { "l3_no_call_has_more_than_one_erase",
      "times=40 Aa Ab Ac Ad Ae Af Ag Ah Xa Bi Ci Xb Bj Cj Xc Bk Ck Xd Bl Cl "
      "Xi Xj Xk Xl" },
    { "l3_after_idle_time_no_call_erases",
      "times=40 Aa Ab Ac Ad Ae Af Ag Ah M Xa M Bi M Ci M Xb M Bj M Cj M Xc M "
      "Bk M Ck M Xi M Xj M Xk M" },
    { "l3_a_boots_first_write_costs_one_erase_more_at_most",
      "times=20 Ba Sa Bb Sb Bc Sc Bd Sd Be Se Bf Sf Bg Sg Bh Sh P Xa Ba Sa P "
      "M Xb M Bb M Sb P Bc Xd P Xe Be Se P M Xf M Bf Sf Xd" },
    { "a_claim_is_relocated_as_long_as_it_is_held",
      "Ba,lease K400 Ca:ok K99 P Ba:replay" },
    // The groups of a rotation's plan hold all that a large ring needs.
    { "a_key_may_be_in_any_sector_of_a_large_ring",
      "nor:times=808 sectors=101 retention=2592000000 Aa rotate1 Xb Ab" },

    // time: it never shortens anything (S6), and it goes on (L2)
    { "s6_retention_goes_on_after_a_restart",
      "Ba,ms=0 Ca,ms=0 Bb,ms=60000 Cb,ms=0 P,ms=0 Ba,ms=0:replay "
      "Ba,ms=39999:replay Ga:none Bb:replay Ba:execute" },
    { "s6_unrecorded_time_has_not_passed",
      "Ba,ms=0 Ca,ms=0 Ba,ms=99999:replay P,ms=0 Ba,ms=0:replay "
      "Ba,ms=99999:replay" },
    { "a_retention_of_its_own_is_kept_exactly",
      "Ba,ms=0,retention=1 Ca,ms=0 Bb,ms=0,retention=16 Cb,ms=0 "
      "Bc,ms=0,retention=65536 Cc,ms=0 Bd,ms=0,retention=16777216 Cd,ms=0 "
      "Be,ms=0,retention Ce,ms=0 P,ms=0 Ga,ms=0:ok Gb,ms=0:ok Gc,ms=0:ok "
      "Gd,ms=0:ok Ge,ms=0:ok P,ms=0 Ga,ms=0:ok Ba,ms=0:replay Ga:none "
      "Gb,ms=14:ok Gb:none" },
    { "s4_an_interrupted_key_is_remembered_from_the_restart_on",
      "Ba,ms=0 Bb,ms=50 Cb,ms=0 P,ms=0 Ga,ms=99999:ok Ba:execute" },
    { "s4_a_renewed_claim_is_known_after_a_restart",
      "Ba Na,lease=536870912:ok Na,lease=1:ok T Ab T Ab T Ab T Ab Ba:busy K60 "
      "P Ba:recover P Ba:recover" },
    { "an_exhausted_key_is_forgotten_after_a_retention",
      "attempts=1 Ba,ms=0 Ba,ms=100:exhausted Ba,ms=99999:exhausted "
      "Ba:execute" },
    { "an_rtc_may_add_the_time_without_power",
      "Ba,ms=0 Ca,ms=0 P,ms=0 E,ms=0,n=99999 Ba,ms=0:replay E,ms=0,n=1 "
      "Ba,ms=0:execute" },
    { "s6_a_tick_that_goes_back_or_stops_shortens_nothing",
      "Aa wait1000 Ab wait4294966796 Ba:replay wait400 Ba:replay wait300 "
      "Ac P Ba:replay" },
    { "an_undelivered_outcome_ends_with_its_retention",
      "Ba Oa P o T M Ga:none o" },
    { "l2_an_interrupted_claim_ends_however_often_it_is_relocated",
      "Ba P wait25000 K30 P wait25000 K30 P wait25000 K30 P wait25000 K30 "
      "P wait25000 K30 P Ga:none" },
    { "months_between_two_records_are_counted",
      "Ba,retention Ca Ba,ms=604800000:replay Ba,ms=604800000:replay "
      "Ba,ms=604800000:replay Ba,ms=604800000:replay Bb,ms=0 Cb,ms=0 P,ms=0 "
      "Ba,ms=172799999:replay Ba:execute" },
    { "time_may_pass_the_32_bits_again_and_again",
      "times=40 Ba,ms=0,retention=1728000000:execute Ca,ms=0 Bb,lease:execute "
      "Ba,ms=1641600000:replay K8 P,ms=0 Ba,ms=0:replay "
      "Bb,lease:recover Ga,ms=86500000:none Cb:ok Xb:ok" },
    // A record has 32 bits of time: after more than that, expired keys would
    // be young again.  The held claim keeps the sector in which it all is.
    { "expired_keys_stay_so_after_more_time_than_a_record_has",
      "Ba Na,lease Ab Ac E,n=4294967290 E,n=50005 Ad P Ga:ok Gb:none Gc:none "
      "Bd:replay" },
};

TESTS(scenarios, run_scenario)

/* A state that is not durable is synced before the next one, which is made of
   it; claims and outcomes are not. */
TEST(in_batch_mode_a_state_has_only_the_one_before_synced)
{
    const flash *f = &device_on(&synced, "batch Ba Bb Y")->medium;
    uint32_t syncs = f->syncs;

    run("Bc Ca,state=3");
    is(f->syncs, syncs);
    run("Cb,state=3");
    is(f->syncs, syncs + 1);
}
