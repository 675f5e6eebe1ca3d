/* SPDX-License-Identifier: 0BSD */
/*
 * The life of a key in RAM, to the millisecond: how long a claim and an outcome
 * last, who may use a claim, the number of attempts, delivery; and the answer
 * of each call in each state.  The same over restarts is in journal.c.
 *
 * Promises: S1 (one current claim), S2 (replay), S4 (recover, not execute), S7
 * (a refusal changes nothing), L2 (attempts end).
 */
#include "scenario.h"

static const scenario scenarios[] = {
    { "a_caller_s_mistake_is_refused_and_changes_nothing",
      "Ba Ca e0 e1 e2 e3 e4 e5 e6 e7 e8 e9 e10 e11 e12 e13 e14 e15 e16 "
      "Ba:replay" },
    // how long
    { "s4_a_lease_covers_the_millisecond_before_its_end_and_no_more",
      "ram Ba,lease=1,retention Ba,ms=0:busy Ba:recover Bb,lease=2,retention "
      "Bb:busy Bb:recover Bc Bc,ms=99:busy Bc:recover Bd,lease=30000 "
      "Bd,ms=29999:busy Bd:recover Be,lease=536870912 Be,ms=536870911:busy "
      "Be:recover Bf Bf,ms=101:recover" },
    { "s1_a_lease_without_end_is_never_taken_over",
      "times=200 ram Ba,ms=86400000,lease Xa,ms=0:busy" },
    { "s1_who_has_a_lease_without_end_may_complete_whenever",
      "ram Ba,lease Ba,ms=2000000000:busy Ba,ms=2000000000:busy Ca:ok "
      "Ba,ms=99999:replay Ba:execute" },
    { "s2_retention_counts_from_the_completion_to_the_millisecond",
      "ram Ba,retention=1 Ca,ms=5 Ba,ms=0:replay Ba:execute Bb,retention=2 "
      "Cb,ms=5 Bb:replay Bb:execute Bc,retention=2047 Cc,ms=5 Bc,ms=2046:replay "
      "Bc:execute Bd Cd,ms=5 Bd,ms=99999:replay Bd:execute Be Ce,ms=5 "
      "Be,ms=100001:execute" },
    { "s4_an_interrupted_key_is_kept_one_retention_from_the_leases_end",
      "ram Ba,ms=0 Bb,ms=0 Ba,ms=100099:recover Bb:execute" },

    { "the_default_lease_is_half_a_minute",
      "ram lease=0 retention=0 Ba Ba,ms=29999:busy Ba:recover" },
    { "the_default_retention_is_a_day",
      "ram retention=0 Ba,ms=0 Ca,ms=0 Ba,ms=86399999:replay Ba:execute" },

    // who holds a claim
    { "s1_a_claim_that_was_never_granted_is_fenced",
      "ram capacity=4 Ba ca:fenced ja,how=0 ja,how=1 ja,how=2 ja,how=3 "
      "ja,how=4 ja,how=5 ja,how=6 ja,how=7 ja,how=8 ja,how=9 ja,how=10 "
      "ja,how=11 ja,how=3,n=7 Ca:ok ja,how=0 ja,how=3" },
    { "s1_a_late_holder_may_complete_if_nobody_took_over",
      "ram Ba Ca,ms=100099:ok Ba:replay" },
    { "s1_a_late_holder_is_fenced_once_its_key_is_dropped",
      "ram Ba Ca,ms=100100:fenced Ga:none" },
    { "s1_a_late_holder_may_renew_and_is_protected_again",
      "ram Ba Na,lease=50,ms=110:ok Ba,ms=49:busy Ba:recover" },
    { "s1_only_the_newest_of_several_holders_is_current",
      "ram attempts=5 Ba:execute L Ba:recover ca:fenced ! L Ba:recover "
      "ca:fenced ! L Ba:recover ! L Ba:recover ca:fenced ! Ca:ok Ca:fenced ! "
      "Ba:replay" },
    { "s1_a_claim_is_fenced_when_its_slot_has_another_key",
      "ram capacity=1 Ba Ra:ok ! Bb:execute ! Ra:fenced Ca:fenced Cb:ok !" },

    // attempts
    { "l2_a_key_is_exhausted_after_max_attempts",
      "ram attempts=1 Ba:execute L Ba:exhausted Ga" },
    { "l2_a_key_is_exhausted_after_3_attempts_by_default",
      "ram Ba:execute L Ba:recover L Ba:recover L Ba:exhausted Ga" },
    { "l2_a_key_is_exhausted_after_255_attempts_at_most",
      "times=300 ram attempts=255 Ba,ms=100 Ga,ms=0" },
    { "attempts_start_anew_after_release_and_forget",
      "times=3 ram Ba:execute L Ba:recover Ra Ba:execute L Ba:recover L "
      "Ba:recover L Ba:exhausted Xa:ok" },

    // renewal
    { "renewing_lengthens_and_never_shortens",
      "ram Ba Na,lease=10,ms=20:ok Ga Na,lease=100:ok Ga Ga,ms=50 "
      "Na,lease=100:ok Ga Na,lease=200,ms=10:ok Ga "
      "Na,lease=536870912:ok Ga Na,lease:ok Ga" },
    { "renewing_a_lease_without_end_changes_nothing",
      "ram Ba,lease Na,lease=10:ok Ga Na,lease:ok Ba,ms=5000:busy" },
    { "a_renewed_claim_is_kept_one_retention_from_its_new_end",
      "ram Ba,ms=0 Na,lease=5000,ms=50 Ga,ms=104999:ok Ga:none" },

    // outcomes and state
    { "s7_reserving_nothing_reserves_response_max",
      "ram response=16 Ba Ca,len=17:large Ca,len=16:ok Ba:replay" },
    { "a_reservation_over_response_max_claims_nothing",
      "ram e,n=1 a Ba,reserve=24:execute Ca,len=24:ok" },
    { "a_claim_taken_over_has_what_the_new_request_asks",
      "ram Ba,reserve=4 Ba,ms=100,reserve=6,lease=300,retention=2000:recover "
      "Ga Ca,len=6:ok Ba,ms=1999:replay Ba:execute" },
    { "a_response_is_read_in_pieces",
      "ram Aa Bb Cb,len=10 gb,at=0,most=4 gb,at=1,most=4 gb,at=6,most=4 "
      "gb,at=7,most=4 gb,at=9,most=4 gb,at=10,most=4 gb,at=13,most=4 "
      "gb,at=4294967295,most=4 gb,at=3,most=0 gb,at=0,most=10" },
    { "s7_what_is_a_mistake_is_refused_and_changes_nothing",
      "ram Ba e,n=0 e,n=1 e,n=2 e,n=3 e,n=4 e,n=5 e,n=6 e,n=7 e,n=8 e,n=9 "
      "e,n=10 e,n=11 e,n=12 e,n=13 e,n=14 e,n=15 e,n=16 e,n=17 ?" },
    { "an_empty_response_is_one",
      "ram response=0 Ba Ca,len=1:large Ca,len=0:ok Ba:replay ga" },
    { "s7_a_refused_completion_leaves_the_state",
      "ram Ba Sa Ca,state=1:fenced s Bb Cb,state=9:large s Cb,state=1,len=25:"
      "large s Cb,state=1,len=24:ok s" },

    // idem_run
    { "run_executes_once_and_replays_afterwards",
      "ram Ua,takes=20,len=6 Ua,ms=50 Ba:replay Ua,ms=50 Fb Ub,failed Ub" },
    { "run_releases_after_not_done",
      "ram Ua,back a Ga:none Ua,back Ua Ga:ok" },
    { "run_that_gives_back_or_completes_what_it_lost_is_fenced",
      "ram Ua,back,takes=100100 Ga:none Ub,takes=100100 Gb:none Uc,takes=100099 "
      "Gc:ok" },
    { "run_gives_the_handler_the_answer",
      "ram Ba Ua,failed,ms=99 Ga:ok Ua,failed Ba:replay" },

    // delivery
    { "undelivered_outcomes_are_listed_oldest_completion_first",
      "ram Ba Bb Bc Bd Oc,ms=0 Oa,ms=0 Cd Ob,ms=0 o" },
    { "a_delivered_outcome_is_no_longer_pending",
      "ram Ba Bb Bc Bd Oc Oa Cd Ob o Da:ok o Da:none da:ok o Ba:replay "
      "Bd:replay dd:ok o Gd Xc:ok o" },
    { "results_may_be_delivered_while_they_are_listed",
      "ram Ba Oa Bb Ob Bc Oc Bd Od o,n=2 o o,n=1 o" },
};

TESTS(scenarios, run_scenario)

/* What each call answers in each state: begin, with another payload, complete,
   release, renew, forget, delivered, response.  All of S1 is in here.  Which
   state comes then the model knows; in that, one other bit of the fingerprint is
   a mismatch. */
static const struct state {
    const char *name, *line;
    const char *answers;        // E execute R recover P replay Y busy M mismatch
                                // X exhausted O ok F fenced N none
} life[] = {
    /*                                             BWCRNXdg */
    { "unknown", "", "EEFFFNNN" },
    { "claimed", "Bb", "YMOOOYNN" },
    { "its lease has ended", "Bb L", "RMOOOONN" },
    { "overtaken", "Bb L Bb", "YMFFFYNN" },
    { "exhausted", "Bb L Bb L", "XMOOOONN" },
    { "completed", "Bb Cb,len=6", "PMFFFOOO" },
    { "failed", "Bb Fb,len=6", "PMFFFOOO" },
    { "released", "Bb Rb", "EEFFFNNN" },
    { "forgotten", "Bb L Xb", "EEFFFNNN" },
    { "dropped with its claim", "Bb L T", "EEFFFNNN" },
    { "dropped with its outcome", "Bb Cb T", "EEFFFNNN" },
};

static const struct { char letter; int answer; } letters[] = {
    { 'E', IDEM_EXECUTE }, { 'R', IDEM_RECOVER }, { 'P', IDEM_REPLAY },
    { 'Y', IDEM_BUSY }, { 'M', IDEM_MISMATCH }, { 'X', IDEM_EXHAUSTED },
    { 'O', IDEM_OK }, { 'F', IDEM_E_FENCED }, { 'N', IDEM_E_NOT_FOUND },
};

/* With a claim that need not be current. */
static int make(char what, const idem_claim *claim)
{
    char piece[RESPONSE_MAX];
    size_t len = sizeof piece;
    idem_outcome how = { .response_len = 1 };
    int result;

    switch (what) {
    case 'W': case 'B': case 'X': {
        call c = call_of_letter(what);
        c.key = 1;
        return call_table(&the, &c);
    }
    case 'd': return idem_delivered(the.table, claim);
    case 'g':
        result = idem_response(the.table, piece, &len, claim, 0);
        is(len, result ? 0 : 6);
        return result;
    }
    return device_use(&the, what, claim, 1, &how, LEASE);
}

static void every_call(void **state)
{
    static const char calls[] = "BWCRNXdg";
    const struct state *in = (const struct state *)*state;

    for (size_t i = 0; i < sizeof calls - 1; i++) {
        size_t n = 0;
        device_on(&nor, "ram attempts=2");
        run(in->line);
        (void)answer('G', 1);                   // not all calls have the time
        while (letters[n].letter != in->answers[i])
            n++;
        // Of two claims the first: it was overtaken, or is used up.
        is(make(calls[i], strcmp(in->name, "overtaken") ? &the.held[1]
                                                        : &the.before[1]),
           letters[n].answer);
        run("?");
        if (answer('G', 1) != IDEM_OK)
            continue;
        for (unsigned bit = 0; bit < 64; bit++)     // S3
            if ((the.shown.fingerprint ^ spread(1)) != UINT64_C(1) << bit)
                run_of("Bb,ms=0,payload=@:mismatch", 64 + bit);
    }
}

TESTS(life, every_call)
