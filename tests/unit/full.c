/* SPDX-License-Identifier: 0BSD */
/*
 * Shows what happens when a table is full, or a scope has used up its quota,
 * and how far back memory reaches (>>full of the manual).  In RAM, where the
 * model knows all of it exactly; journal.c has the same over restarts.
 *
 * Promises: the capacity holds in whatever order keys come and go (S7, L2); no
 * claim and no undelivered outcome is evicted (S4); quota (S9).
 */
#include "scenario.h"

static const scenario scenarios[] = {
    // IDEM_REJECT
    { "a_full_table_refuses_new_keys_and_answers_known_ones",
      "ram capacity=4 Ba Ab Bc Bd Be:full Ba:busy Bb:replay Be:full L "
      "Ba:recover Gb:ok Gc:ok Gd:ok Ge:none" },
    { "l2_an_abandoned_claim_does_not_keep_its_slot_for_ever",
      "ram capacity=2 Ba,ms=0 Bb,ms=0 wait100099 Bc,ms=0:full Bc:execute "
      "Bd,ms=0:execute a" },
    { "s7_whatever_holes_are_left_there_is_room_for_as_many",
      "times=9 ram capacity=4 Ba Bb Bc Bd Be:full Rb:ok Rd:ok Be:execute "
      "Bf:execute Bg:full Ca Xa:ok Re:ok Bg:execute Cg Bh:execute Bi:full T "
      "Xf:ok Xg:none Xh:ok Xc:ok" },
    { "s7_keys_that_expire_in_any_order_leave_as_much_room",
      "times=9 ram capacity=4 Ba,retention=300 Ca Bb,retention=100 Cb "
      "Bc,retention=200 Bd,retention=400 Cd Be:full wait99 Be:execute "
      "Bf:full wait199 Bf:execute Bg:execute Bh:full T T" },

    // IDEM_EVICT_OLDEST
    { "the_oldest_completion_makes_room_not_the_oldest_claim",
      "ram evict capacity=4 Ba Bb Bc Bd Cc Ca Cd Cb Be:execute Gc:none Bf "
      "Ga:none Bg Gd:none Bh Gb:none a Ch Bc:execute" },
    { "of_completions_of_one_millisecond_the_first_makes_room",
      "ram evict capacity=4 Ba Bb Bc Bd Cc,ms=0 Ca,ms=0 Cd,ms=0 Cb,ms=0 "
      "Be,ms=0:execute Gc:none Bf,ms=0 Ga:none Bg,ms=0 Gd:none Bh,ms=0 "
      "Gb:none" },
    { "expired_keys_make_room_before_others",
      "ram evict capacity=3 Aa Bb,retention=10 Cb Bc wait10 Bd:execute Ga:ok "
      "Gb:none Gc:ok Cd,ms=0 Be,ms=100 Ga:none Gd:ok" },
    { "s4_no_claim_is_ever_evicted_live_or_interrupted",
      "ram evict capacity=4 Ba Bb Bc Bd Cc Be:execute Gc:none Bf:full L "
      "Bf:full Ba:recover Bb:recover Bd:recover Be:recover" },
    { "an_undelivered_outcome_is_not_evicted_until_delivered",
      "ram evict capacity=4 Ba Bb Bc Bd Oc Oa Be:full Ba:replay da:ok "
      "Be:execute Ga:none Gc:ok Bf:full T Bf:execute" },

    // quota: even keys have one scope, odd ones another
    { "s9_a_scope_over_its_quota_is_refused_and_no_other",
      "ram capacity=6 senders=2 quota=2 Aa Bc:execute Be:full Ba:replay "
      "Bb:execute Bd:execute Bf:full Rc:ok Be:execute Bg:full T Bg:execute "
      "Bi:full" },
    { "s9_a_scope_over_its_quota_costs_its_own_oldest",
      "ram evict capacity=6 senders=2 quota=2 Ab Aa Ac Be:execute Ga:none "
      "Gb:ok Gc:ok Bg:execute Gc:none Ge:ok Bi:full Gb:ok" },
    { "s9_a_flood_from_one_scope_costs_others_nothing",
      "times=20 ram evict capacity=6 senders=2 quota=3 Aa Ac Ae Bb Cb Bd Cd "
      "Bf Cf Bh Ch Bj Cj Bl Cl Ba:replay Bc:replay Be:replay" },
    { "s9_a_quota_holds_also_while_expired_keys_lie_about",
      "ram evict capacity=6 senders=2 quota=2 Ba,retention=10 Ca wait20 Ac "
      "Ae Bg:execute Gc:none Ge:ok" },

    // how far back memory reaches: H looks
    { "memory_reaches_back_to_the_opening_and_at_most_one_retention",
      "ram H,ms=0 Ba,ms=0,age=1:old Ba,ms=0:execute Ra,ms=0 H,ms=300 "
      "Bb,ms=0,age=299:execute Rb,ms=0 Bb,ms=0,age=300:old E,ms=0,n=100 "
      "H,ms=0 Bb,ms=0,age=399:execute Rb,ms=0 Bb,ms=0,age=400:old H,ms=99599 "
      "Bb,ms=0,age=99998:execute Rb,ms=0 Bb,ms=0,age=99999:old H,ms=1 "
      "H,ms=86400000 Bb,ms=0,age=99999:execute Rb,ms=0 "
      "Bb,ms=0,age=100000:old" },
    { "memory_reaches_back_to_the_newest_completion_evicted",
      "ram evict capacity=3 H,ms=86400000 Ba,ms=10 Ca,ms=0 Bb,ms=20 Cb,ms=0 "
      "Bc,ms=20 Cc,ms=0 H,ms=50 Bd,ms=10 Cd,ms=0 H,ms=0 Be,ms=0,age=100:old "
      "Bf,ms=0,age=100:old Bf,ms=0,age=99:execute Gb:none H,ms=0 H,ms=99900 H "
      "H,ms=100000" },
    { "too_old_is_what_is_older_than_its_outcome_would_be_kept",
      "ram wait86400000 Ba,age=99999:execute Ra Ba,age=100000:old "
      "Ba,age=100001:old Ba,age=4294967295:old Ba:execute Ra "
      "Ba,retention=2000,age=1999:execute Ra Ba,retention=2000,age=2000:old" },
    // The newest eviction counts, and an older one does not take it back.
    { "too_old_goes_by_the_newest_completion_evicted",
      "ram evict capacity=3 senders=2 quota=3 wait86400000 Ba,ms=0 Oa,ms=0 "
      "Bc,ms=100 Cc,ms=0 Be,ms=100 Ce,ms=0 Bg,ms=0 Cg,ms=0 Gc,ms=0:none "
      "da,ms=0:ok Bi,ms=0 Ci,ms=0 Ga,ms=0:none H,ms=0 Bk,ms=0,age=100:old "
      "Bk,ms=0,age=99:execute H,ms=0" },
    // A mark of the past must not come round as one of today.
    { "how_far_memory_reaches_is_right_for_months",
      "times=4 ram evict capacity=1 Ba Ca Bb Cb H E,n=2000000000 H "
      "E,n=2000000000 H E,n=294900000 H E,n=60000 H E,n=60000 H "
      "Bc,age=99999:execute Rc" },
    { "how_far_a_senders_memory_reaches_is_right_for_months",
      "times=4 ram evict capacity=4 senders=2 quota=1 Ba Ca Bc Cc H "
      "E,n=2000000000 H E,n=2000000000 H E,n=294900000 H E,n=60000 H E,n=60000 "
      "H Be,age=99999:execute Re" },
    { "what_was_evicted_is_not_taken_for_longer_ago_than_it_is",
      "ram evict capacity=1 retention=2592000000 E,n=1400000000 Ba Ca Bb Cb "
      "E,n=300000000 H Bc,age=300000500:old" },
    { "memory_reaches_back_the_longest_retention_after_months",
      "ram retention=2592000000 E,n=2000000000 E,n=2000000000 "
      "Ba,age=2591999999:execute Bb,age=2592000000:old" },
    { "too_old_is_answered_for_unknown_keys_only",
      "ram wait86400000 Ba Ab Ba,age=4294967295:busy "
      "Bb,age=4294967295:replay Wb,age=4294967295:mismatch L "
      "Ba,age=4294967295:recover" },
    { "too_old_is_answered_before_full",
      "ram capacity=2 wait86400000 Ba Bb Bc,age=99999:full "
      "Bc,age=100000:old" },
    { "too_old_is_answered_before_the_quota",
      "ram senders=2 quota=1 Ba Bc,ms=0,age=1:old Bc,ms=0:full" },
};

TESTS(scenarios, run_scenario)
