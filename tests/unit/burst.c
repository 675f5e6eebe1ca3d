/* SPDX-License-Identifier: 0BSD */
/*
 * Bursts, idem_begin_many: what one request changes the next one finds, and a
 * burst is refused whole or not at all.  That each request of a burst is
 * answered as alone shows the model, whose device begins in both ways
 * (model/device.h).
 */
#include "scenario.h"

static idem_request requests[IDEM_MANY + 1];
static idem_reply replies[IDEM_MANY + 1];
static int answers[IDEM_MANY + 2];
static uint8_t ids[IDEM_MANY][ID_MAX];
static int refuse, locks;       // the lock does; how often it was taken

static int lock(void *ctx)
{
    (void)ctx;
    locks++;
    return refuse;
}

static void unlock(void *ctx)
{
    (void)ctx;
}

/* Begins these keys, by number; -1 names none, -2 has too long a response.  What
   stands after the answers stays, though it is what a request has that waits. */
static int begin_keys(const int *numbers, size_t count)
{
    int result;

    for (size_t i = 0; i < count; i++) {
        unsigned key = numbers[i] < 0 ? 0 : (unsigned)numbers[i];
        memset(&requests[i], 0, sizeof requests[i]);
        if (numbers[i] == -1)
            continue;
        device_name(&the, &requests[i], key, ids[i]);
        (void)device_payload(&the, &requests[i], key, 0);
        requests[i].response_size = numbers[i] < 0 ? RESPONSE_MAX + 1 : 0;
    }
    locks = 0;
    answers[count] = IDEM_OK;
    memset(replies, 0x5A, sizeof replies);
    result = idem_begin_many(the.table, answers, replies, requests, count,
                             the.now);
    is(answers[count], IDEM_OK);
    return result;
}

/* After a line of calls a burst of three keys is answered so, under one lock. */
static void burst(const char *line, int a, int b, int c, const int expected[3])
{
    const int numbers[] = { a, b, c };

    device_on(&nor, line);
    the.config.lock = lock;
    the.config.unlock = unlock;
    is(begin_keys(numbers, COUNT(numbers)), IDEM_OK);
    is(locks, 1);
    for (int i = 0; i < 3; i++) {
        if (answers[i] != expected[i])
            fail_msg("%s: %s", line, idem_text(answers[i]));
        is(replies[i].claim.token != 0,
           answers[i] == IDEM_EXECUTE || answers[i] == IDEM_REPLAY);
    }
    is(idem_check(the.table), 0);
}

TEST(s1_what_a_request_changes_the_next_one_finds)
{
    enum { X = IDEM_EXECUTE, B = IDEM_BUSY, R = IDEM_REPLAY, F = IDEM_E_FULL };
    enum { A = IDEM_E_ARG, L = IDEM_E_TOO_LARGE };

    for (int journal = 0; journal < 2; journal++) {
#define ON(line) (journal ? (line) : "ram " line)
        burst(ON("capacity=4"), 0, 0, 1, (int[]){ X, B, X });
        burst(ON("capacity=2 Aa"), 0, 1, 2, (int[]){ R, X, F });
        // What makes room is unknown, or replayed before that.
        burst(ON("evict capacity=2 Aa Ab"), 2, 0, 1, (int[]){ X, X, F });
        burst(ON("evict capacity=2 Aa Ab"), 0, 2, 0, (int[]){ R, X, X });
        burst(ON("evict capacity=4 senders=2 quota=1 Aa"), 2, 0, 1,
              (int[]){ X, F, X });
        burst(ON("capacity=1 Aa T"), 1, 0, -1, (int[]){ X, F, A });
        burst(ON("capacity=4 Ba"), -2, 0, 1, (int[]){ L, B, X });
    }
}

TEST(a_burst_that_is_too_long_or_has_no_lock_is_refused_whole)
{
    int numbers[IDEM_MANY + 1] = { -1 };

    device_on(&nor, "ram");
    the.config.lock = lock;
    the.config.unlock = unlock;
    is(begin_keys(numbers, 0), IDEM_OK);
    is(begin_keys(numbers, 1), IDEM_OK);
    is(answers[0], IDEM_E_ARG);
    is(locks, 0);
    is(idem_begin_many(the.table, answers, replies, requests, IDEM_MANY + 1,
                       0), IDEM_E_ARG);
    is(idem_begin_many(the.table, NULL, replies, requests, 1, 0), IDEM_E_ARG);
    refuse = 1;
    is(begin_keys(numbers, 2), IDEM_E_LOCK);
    refuse = 0;
    is(answers[0], IDEM_E_ARG);
    is(answers[1], IDEM_E_LOCK);
    is(the.table->used, 0);
    is(begin_keys(numbers, IDEM_MANY), IDEM_OK);
    is(answers[1], IDEM_EXECUTE);
    is(answers[IDEM_MANY - 1], IDEM_BUSY);
}
