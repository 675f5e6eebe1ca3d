/* SPDX-License-Identifier: 0BSD */
/*
 * Cases that no scenario of a key has (life.c): the last token; requests with
 * an empty payload or a fingerprint of 0; listing keys one after the other;
 * expired keys, how they are dropped, counted and waited for; and how much one
 * step of idle work does.
 */
#include "scenario.h"

static idem_claim claim;

TEST(s1_after_the_last_token_no_claim_is_granted)
{
    // A slot keeps 48 bits of a token where numbers are wide.
    const uint64_t last = IDEM_WIDE ? UINT64_MAX >> 16 : UINT32_MAX;

    inside_set_token(device_on(&nor, "ram")->table, (idem_token)(last - 1));
    the.runs_out = 1;
    run("Ba:execute Bb:space Ca:ok");
    assert_true(the.held[0].token == last);
}

TEST(s1_the_low_half_of_the_token_may_wrap)
{
    inside_set_token(device_on(&nor, "ram")->table, 0xFFFFFFFE);
    if (sizeof(idem_token) == 4)
        skip();                                     // these are the last
    run("Ba Bb Bc Bd");                             // as after 4e9 claims
    for (unsigned key = 0; key < 4; key++) {
        idem_claim other = the.held[key];
        other.token ^= (idem_token)(UINT64_C(1) << 32);
        is(idem_delivered(the.table, &other), IDEM_E_NOT_FOUND);
        run_of("j@,how=3,n=31 N@:ok C@,confirm:ok B@:replay", key);
        is(idem_delivered(the.table, &other), IDEM_E_NOT_FOUND);
        run_of("d@:ok", key);
    }
}

/* A claim that is as old as that is as current as it was; so is an outcome. */
TEST(s1_a_claim_is_current_after_as_many_others)
{
    device_on(&nor, "ram Ba,lease Bb Ob");
    if (sizeof(idem_token) == 4)
        skip();
    inside_set_token(the.table, the.held[0].token +
                                    (idem_token)(UINT64_C(1) << 32) + 9);
    run("Bc Cc Ba:busy Na:ok db:ok Ca:ok Ba:replay");
}

/* A fingerprint of 0 is one; and none if has_fingerprint is not set.  An
   empty payload needs no pointer. */
TEST(s3_nothing_is_a_payload_like_any_other)
{
    static const struct { idem_request rq; int answer; } rows[] = {
        { { .key = "f", .has_fingerprint = 1 }, IDEM_EXECUTE },
        { { .key = "f", .has_fingerprint = 1 }, IDEM_BUSY },
        { { .key = "f", .has_fingerprint = 1, .fingerprint = 1 },
          IDEM_MISMATCH },
        { { .key = "f" }, IDEM_MISMATCH },
        { { .key = "p" }, IDEM_EXECUTE },
        { { .key = "p", .scope = "", .payload = "" }, IDEM_BUSY },
        { { .key = "p", .payload = "x", .payload_len = 1 }, IDEM_MISMATCH },
    };

    device_on(&nor, "ram");
    for (size_t i = 0; i < COUNT(rows); i++) {
        idem_request rq = rows[i].rq;
        rq.key_len = 1;
        is(begin_request(&claim, &rq), rows[i].answer);
    }
}

static uint8_t id[ID_MAX];
static idem_info info = { .id = id, .id_size = sizeof id };

static void find_b(void)
{
    uint8_t bytes[ID_MAX];
    idem_request rq;

    device_name(&the, &rq, 1, bytes);
    is(idem_find(the.table, &info, &rq, the.now), IDEM_OK);
}

/* True if the next key, or the next undelivered one, is this one. */
static int steps_to(int pending, unsigned key)
{
    return (pending ? idem_pending(the.table, &info, the.now)
                    : idem_next(the.table, &info, the.now)) == IDEM_OK &&
           device_named(&the, &info) == key;
}

/* Both go on after the key that *info holds, whoever put it there; where that
   was is not known any more when it is gone. */
TEST(next_and_pending_step_alike)
{
    device_on(&nor, "ram Ba Oa Bb Ob Bc Oc Bd Od");
    assert_true(steps_to(0, 0) && steps_to(1, 1) && steps_to(0, 2));
    find_b();
    assert_true(steps_to(0, 2) && steps_to(1, 3));
    is(idem_next(the.table, &info, the.now), IDEM_E_NOT_FOUND);
    is(idem_pending(the.table, &info, the.now), IDEM_E_NOT_FOUND);
    find_b();
    run("Xb");
    assert_true(steps_to(1, 0));
}

TEST(an_undelivered_outcome_is_dropped_with_its_retention_and_counted)
{
    const idem_table *t = device_on(&nor, "ram Ba,ms=0 Bb,ms=0 Bc,ms=0 Bd,ms=0 "
                                          "Oa,ms=0 Ob,ms=0 Cc Od,ms=0")->table;

    is(t->pending, 3);
    for (uint32_t late = 0; late < 2; late++) {
        run(late ? "m" : "m,ms=99999");
        is(t->stats.undelivered, 2 + late);
        is(t->stats.expired, 2 + 2 * late);
        is(t->pending, 1 - late);
    }
    is(idem_delivered(the.table, &the.held[3]), IDEM_E_NOT_FOUND);
}

/* The last of these is refused, and answered when to come again. */
static void refused_for(const char *line, uint32_t wait)
{
    run(line);
    is(the.reply.retry_after_ms, wait);
}

TEST(a_refused_key_is_answered_when_the_first_will_expire_if_any_will)
{
    device_on(&nor, "ram capacity=2 Ba,ms=0");          // until 100100
    refused_for("Bb,ms=30 Cb,ms=0 Bc,ms=10:full", 100030 - 40);
    refused_for("Bc,ms=99989:full", 1);
    refused_for("Bc:execute Bd,ms=0:full", 100100 - 100030);
    run("Bd,ms=70,lease:execute Be,ms=100030,lease:execute");
    for (int day = 1; day < 10; day++)
        refused_for("Bf,ms=86400000:full", 0);
}

TEST(l1_maintenance_frees_expired_keys_64_slots_at_a_time)
{
    static const uint32_t capacities[] = { 1, 63, 64, 65, 128, 200 };

    for (size_t i = 0; i < COUNT(capacities); i++) {
        uint32_t capacity = capacities[i];
        idem_table *t = device_on(&nor, filled("ram capacity=@", 0, capacity))
                            ->table;
        for (uint32_t key = 0; key < capacity; key++)
            is(begin_request(&claim, &(idem_request){ .key = &key,
                                                      .key_len = sizeof key }),
               IDEM_EXECUTE);
        for (int round = 0; round < 3; round++) {
            uint32_t now = the.now + (round < 1 ? 0 : LEASE + RETENTION);
            uint32_t steps = 1;
            for (; idem_maintain(t, now) == IDEM_MORE; steps++)
                is(t->used, round < 1 ? capacity :
                            round > 1 ? 0 : capacity - 64 * steps);
            is(steps, (capacity + 63) / 64);
            is(t->used, round < 1 ? capacity : 0);
        }
        is(t->stats.expired, capacity);
    }
}
