/* SPDX-License-Identifier: 0BSD */
/*
 * Shows what every public function does with impossible arguments, with a table
 * that is not open, with memory that does not fit, and with a lock; and that a
 * refused call changes nothing (S7).
 *
 * All functions are in one table, and most tests run over all of it.
 */
#include "scenario.h"

// Copying may be interrupted: by code that calls the table again.
static void (*interrupt)(void);

static void call_hook(void (**hook)(void))
{
    void (*then)(void) = *hook;

    *hook = NULL;
    if (then)
        then();
}

static void copying(const void *src)
{
    (void)src;
    call_hook(&interrupt);
}

/* ---------------------------------------- every function that takes a table */

enum {
    TABLE = 1, CLAIM = 2, REPLY = 4, REQUEST = 8, OUTCOME = 16, INFO = 32,
    HANDLER = 64, BYTES = 128, LEN = 256, HORIZON = 512, NOW_MS = 1024
};

/* The functions that take a table: which pointers, what they answer with a
   claim on "a" and nothing else, whether they take the lock, and a call: a
   little after the claim, so a clock that moved is seen in the table. */
#define FUNCTIONS(X)                                                           \
    X(BEGIN, TABLE | CLAIM | REPLY | REQUEST, IDEM_BUSY, 1,                    \
      idem_begin(t, claim, reply, request, now))                               \
    X(BEGIN_MANY, TABLE | REPLY | REQUEST, IDEM_BUSY, 1,                       \
      begin_one_of_many(t, reply, request, now))                               \
    X(COMPLETE, TABLE | CLAIM | OUTCOME, IDEM_OK, 1,                           \
      idem_complete(t, claim, outcome, now))                                   \
    X(RELEASE, TABLE | CLAIM, IDEM_OK, 1, idem_release(t, claim, now))         \
    X(RENEW, TABLE | CLAIM, IDEM_OK, 1, idem_renew(t, claim, 0, now))          \
    X(RUN, TABLE | REPLY | REQUEST | HANDLER | NOW_MS, IDEM_BUSY, 1,              \
      idem_run(t, reply, request, handler, NULL, asked_now))                   \
    X(MAINTAIN, TABLE, IDEM_OK, 1, idem_maintain(t, now))                      \
    X(SYNC, TABLE, IDEM_OK, 1, idem_sync(t))                                   \
    X(ELAPSE, TABLE, IDEM_OK, 1, idem_elapse(t, 1))                            \
    X(FIND, TABLE | INFO | REQUEST, IDEM_OK, 1,                                \
      idem_find(t, info, request, now))                                        \
    X(NEXT, TABLE | INFO, IDEM_OK, 1, idem_next(t, info, now))                 \
    X(PENDING, TABLE | INFO, IDEM_E_NOT_FOUND, 1,                              \
      idem_pending(t, info, now))                                              \
    X(DELIVERED, TABLE | CLAIM, IDEM_E_NOT_FOUND, 1, idem_delivered(t, claim)) \
    X(RESPONSE, TABLE | BYTES | LEN | CLAIM, IDEM_E_NOT_FOUND, 1,              \
      idem_response(t, bytes, len, claim, 0))                                  \
    X(STATE, TABLE | BYTES | LEN, IDEM_OK, 1, idem_state(t, bytes, len))       \
    X(FORGET, TABLE | REQUEST, IDEM_BUSY, 1, idem_forget(t, request, now))     \
    X(AGE, TABLE | HORIZON, IDEM_OK, 1, idem_horizon(t, horizon, now))         \
    X(UNCERTAIN, TABLE | HORIZON, IDEM_OK, 1,                                  \
      idem_uncertain(t, horizon, now))                                         \
    X(CHECK, TABLE, 0, 0, idem_check(t))

#define NAME(name, takes, answer, locks, call) name,
enum { FUNCTIONS(NAME) COUNT_OF_FUNCTIONS };

#define ROW(name, takes, answer, locks, call) { takes, answer, locks },
static const struct function { unsigned takes; int answer, locks; }
    functions[] = { FUNCTIONS(ROW) };

static int work(idem_job *job)
{
    return !job->ctx && job->request && job->claim->token &&
                   job->answer == IDEM_EXECUTE
               ? IDEM_HANDLED : IDEM_CANNOT_TELL;
}

static uint32_t a_little_later(void)
{
    return the.now + 5;
}

static int begin_one_of_many(idem_table *t, idem_reply *reply,
                             const idem_request *request, uint32_t now)
{
    int answer, result = idem_begin_many(t, &answer, reply, request, 1, now);

    if (result == IDEM_E_LOCK)
        is(answer, result);
    return result == IDEM_OK ? answer : result;
}

static idem_claim given;        // that of the latest call

/* Calls a function, with NULL for the pointers in `without`. */
static int call_of_table(size_t which, unsigned without)
{
    char bytes_there[RESPONSE_MAX];
    uint8_t id[ID_MAX];
    size_t len_there = sizeof bytes_there;
    uint32_t horizon_there, now = a_little_later();
    idem_request request_there;
    idem_reply reply_there;
    int result = 1;
    idem_outcome outcome_there = { .response = NULL };
    idem_info info_there = { .id = NULL };
#define UNLESS(which, there) (without & (which) ? NULL : (there))
    idem_table *t = UNLESS(TABLE, the.table);
    idem_claim *claim = UNLESS(CLAIM, &given);
    idem_reply *reply = UNLESS(REPLY, &reply_there);
    idem_request *request = UNLESS(REQUEST, &request_there);
    idem_outcome *outcome = UNLESS(OUTCOME, &outcome_there);
    idem_info *info = UNLESS(INFO, &info_there);
    idem_handler *handler = UNLESS(HANDLER, work);
    idem_now *asked_now = UNLESS(NOW_MS, a_little_later);
    char *bytes = UNLESS(BYTES, bytes_there);
    size_t *len = UNLESS(LEN, &len_there);
    uint32_t *horizon = UNLESS(HORIZON, &horizon_there);

    memset(&reply_there, 0x5A, sizeof reply_there);
    memset(&request_there, 0, sizeof request_there);
    device_name(&the, &request_there, 0, id);
    (void)device_payload(&the, &request_there, 0, 0);
    given = the.held[0];
    switch (which) {
#define CASE(name, takes, answer, locks, call) case name: result = call; break;
        FUNCTIONS(CASE)
    }
    if (which == RUN)
        given = reply_there.claim;
    return result;
}

static struct {
    int depth, deepest, taken;
    int once;                   // a second time it is refused, as an
                                // error-checking mutex does
    int refuse;                 // from the call on with this number; 0: none
    void (*on_lock)(void);      // called with the lock held
    void (*on_unlock)(void);    // called when it is not held any more
} lock;

static int take(void *ctx)
{
    assert_ptr_equal(ctx, &lock);
    if (lock.once && lock.depth)
        return 1;
    lock.taken++;
    if (lock.refuse && lock.taken >= lock.refuse)
        return -1;
    if (++lock.depth > lock.deepest)
        lock.deepest = lock.depth;
    call_hook(&lock.on_lock);
    return 0;
}

static void give(void *ctx)
{
    assert_ptr_equal(ctx, &lock);
    assert_true(lock.depth > 0);
    lock.depth--;
    call_hook(&lock.on_unlock);
}

enum { NO_LOCK, LOCK, LOCK_ONCE };

/* A table after these calls, and a lock, at rest. */
static void start(const char *line, int how)
{
    device_on(&nor, line);
    memset(&lock, 0, sizeof lock);
    lock.once = how == LOCK_ONCE;
    the.config.lock_ctx = &lock;
    the.config.lock = how ? take : NULL;
    the.config.unlock = how ? give : NULL;
    unit_misuse = 0;
}

/* A call is answered so, and changes nothing; if it is to give a claim, that is
   none. */
static void refused(size_t which, unsigned without, int answer)
{
    static unsigned char memory[4096];
    idem_table table = *the.table;

    assert_in_range(the.memory_size, 1, sizeof memory);
    memcpy(memory, the.memory, the.memory_size);
    is(call_of_table(which, without), answer);
    assert_memory_equal(the.table, &table, sizeof table);
    assert_memory_equal(the.memory, memory, the.memory_size);
    if ((which == BEGIN && !(without & CLAIM)) ||
        (which == RUN && !(without & REPLY)))
        is(given.token, 0);
}

/* ------------------------------------------------------------------- misuse */

TEST(s7_null_for_any_pointer_is_refused_asserted_and_harmless)
{
    for (size_t i = 0; i < COUNT(functions); i++)
        for (unsigned pointer = 1; pointer <= NOW_MS; pointer <<= 1) {
            if (!(functions[i].takes & pointer))
                continue;
            start("ram Ba", LOCK);
            refused(i, pointer, IDEM_E_ARG);
            is(unit_misuse, 1);
            is(lock.taken, 0);
        }
    refused(RUN, REPLY | HANDLER, IDEM_E_ARG);
}

/* Whatever is in the table is not an open one. */
static void is_closed(void)
{
    for (size_t i = 0; i < COUNT(functions); i++) {
        unit_misuse = 0;
        refused(i, 0, IDEM_E_ARG);
        is(unit_misuse, 1);
    }
}

/* .. and what it held is not looked at when it is opened. */
TEST(s7_a_table_that_is_not_open_is_refused)
{
    uint32_t chance = 23;

    start("ram Ba", NO_LOCK);
    is(the.table->used, 1);
    is(the.table->stats.answers[IDEM_EXECUTE], 1);
    memset(the.table, 0, sizeof *the.table);
    is_closed();
    memset(the.table, 0xFF, sizeof *the.table);
    is_closed();
    for (int i = 0; i < 100; i++) {
        for (size_t j = 0; j < sizeof *the.table; j++)
            ((uint8_t *)the.table)[j] =
                (uint8_t)((chance = flash_mix(chance + 1)) >> 7);
        is_closed();
    }
}

TEST(s7_a_table_whose_opening_failed_is_closed)
{
    static const struct { uint32_t capacity; size_t size; int format, is; }
    rows[] = {
        { 8, 3, 0, IDEM_E_MEMORY }, { 0, 100000, 0, IDEM_E_ARG },
        { 0, 100000, 1, IDEM_E_ARG },
        { 8, 100000, 1, IDEM_E_ARG },       // no storage
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        start("ram Ba", NO_LOCK);
        the.config.capacity = rows[i].capacity;
        is((rows[i].format ? idem_format_ : idem_open_)(
               the.table, &the.config, the.memory, rows[i].size, 0, IDEM_BUILD),
           rows[i].is);
        is(unit_misuse, rows[i].is == IDEM_E_ARG);
        is_closed();
    }
    start("ram Ba", NO_LOCK);
    is(idem_open(the.table, NULL, the.memory, 1000, 0), IDEM_E_ARG);
    is(idem_open(NULL, &the.config, the.memory, 1000, 0), IDEM_E_ARG);
    is(idem_format(the.table, NULL, the.memory, 1000, 0), IDEM_E_ARG);
    is(idem_format(NULL, &the.config, the.memory, 1000, 0), IDEM_E_ARG);
    is(unit_misuse, 4);
    is_closed();
}

/* Other refusals: scenarios (life.c). */
TEST(s7_null_with_a_length_is_refused_when_looking)
{
    idem_request rq = { .scope_len = 5, .key = "key", .key_len = 3 };
    idem_info info = { .id = NULL };

    start("ram", NO_LOCK);
    is(idem_find(the.table, &info, &rq, 0), IDEM_E_ARG);
    is(idem_forget(the.table, &rq, 0), IDEM_E_ARG);
    is(unit_misuse, 2);
}

TEST(s7_no_sender_is_forgotten_by_a_call_that_is_refused)
{
    idem_request rq = { .scope = "pump", .scope_len = 4 };

    start("ram senders=2", LOCK);
    is(idem_forget(the.table, NULL, 0), IDEM_E_ARG);
    is(unit_misuse, 1);
    lock.refuse = lock.taken + 1;
    is(idem_forget(the.table, &rq, 0), IDEM_E_LOCK);
    lock.refuse = 0;
    is(idem_forget(the.table, &rq, 0), IDEM_E_NOT_FOUND);
}

/* ------------------------------------------------------------------ opening */

/* .. which is not a caller's mistake. */
TEST(memory_that_does_not_serve_is_refused_and_the_size_set)
{
    size_t needed = IDEM_MEMORY_SIZE(8, KEY_MAX, RESPONSE_MAX, STATE_MAX);
    unsigned char *bytes = (unsigned char *)malloc(needed + 4);

    assert_non_null(bytes);
    memset(bytes, 0x5A, needed + 4);
    start("ram", NO_LOCK);
    for (size_t off = 0; off < 4; off++)
        for (size_t size = 0; size < needed + (off > 0); size++) {
            is(idem_open(the.table, &the.config, bytes + off, size, 0),
               IDEM_E_MEMORY);
            is(the.table->needed, needed);
        }
    is(idem_open(the.table, &the.config, NULL, needed, 0), IDEM_E_MEMORY);
    is(the.table->needed, needed);
    for (size_t i = 0; i < needed + 4; i++)
        is(bytes[i], 0x5A);
    is(idem_open(the.table, &the.config, bytes, needed, 0), IDEM_OK);
    is(unit_misuse, 0);
    free(bytes);
}

TEST(s8_the_largest_table_is_not_taken_for_a_small_one)
{
    idem_config *c = &device_on(&nor, "ram key=255 response=65535")->config;

    for (c->capacity = IDEM_CAPACITY_MAX; c->capacity > 100; c->capacity--) {
        uint64_t least = (uint64_t)c->capacity * (255 + UINT16_MAX);
        is(idem_open(the.table, c, the.memory, 4096, 0), IDEM_E_MEMORY);
        assert_true(the.table->needed >= least || !the.table->needed);
        if (c->capacity > 40000)
            c->capacity -= c->capacity / 64;
    }
}

/* ----------------------------------------------------------------- the lock */

/* Whatever the answer: "a" is claimed, finished, or unknown. */
TEST(every_function_does_its_work_and_takes_the_lock_once)
{
    static const char *const lines[] = { "ram Ba", "ram Ba Ca", "ram Ba Ra" };

    for (size_t n = 0; n < COUNT(lines) * COUNT(functions); n++) {
        size_t i = n / COUNT(lines);
        int answer;
        start(lines[n % COUNT(lines)], LOCK);
        answer = call_of_table(i, 0);
        if (n % COUNT(lines) == 0)
            is(answer, functions[i].answer);
        is(unit_misuse, 0);
        // To run a handler is to begin and to complete.
        is(lock.taken,
           functions[i].locks + (i == RUN && answer == IDEM_DONE));
        is(lock.depth, 0);
    }
}

TEST(s7_a_refused_lock_refuses_the_call)
{
    for (size_t i = 0; i < COUNT(functions); i++) {
        if (!functions[i].locks)
            continue;
        start("ram Ba", LOCK);
        lock.refuse = 1;
        refused(i, 0, IDEM_E_LOCK);
        is(lock.depth, 0);
    }
}

static void call_everything(void)
{
    for (size_t i = 0; i < COUNT(functions); i++)
        refused(i, 0, functions[i].locks ? IDEM_E_LOCK : 0);
}

/* .. while a begin copies a response out; without hooks: an interrupt. */
TEST(a_call_in_the_middle_of_another_is_refused_by_the_lock_or_the_table)
{
    for (int how = NO_LOCK; how <= LOCK_ONCE; how++) {
        start("ram Ba Ca", how);
        interrupt = call_everything;
        run("Ba:replay");
        assert_null(interrupt);
        is(lock.depth, 0);
        is(lock.deepest, how == LOCK ? 2 : how > 0);
    }
}

static int nested;              // what the call in the middle of one answered

static void call_maintain_nested(void)
{
    nested = idem_maintain(the.table, the.now);
}

/* By a lock that counts.  Before the first look at the table and after the
   last there is nothing to protect: a call that another lock lets pass is done
   whole, or is refused. */
TEST(a_call_from_a_hook_is_refused_or_does_no_harm)
{
    for (int how = 0; how < 3; how++) {
        start("ram Ba", how ? LOCK : LOCK_ONCE);
        nested = -100;
        *(how == 2 ? &lock.on_unlock : &lock.on_lock) = call_maintain_nested;
        run("Ca:ok");
        assert_true((how && nested == IDEM_OK) || nested == IDEM_E_LOCK);
        is(lock.depth, 0);
        run("Ba:replay");
    }
}

/* A handler that uses the table; then the lock may be refused. */
static int use_the_table(idem_job *job)
{
    idem_claim other;
    idem_reply reply;
    idem_request rq = { .key = "other", .key_len = 5 };

    is(job->answer, IDEM_EXECUTE);
    is(lock.depth, 0);
    is(idem_begin(the.table, &other, &reply, job->request, the.now), IDEM_BUSY);
    is(idem_begin(the.table, &other, &reply, &rq, the.now), IDEM_EXECUTE);
    is(idem_release(the.table, &other, the.now), IDEM_OK);
    is(idem_renew(the.table, job->claim, 0, the.now), IDEM_OK);
    lock.refuse = *(int *)job->ctx;
    return IDEM_HANDLED;
}

static uint32_t tick(void)
{
    return the.now;
}

TEST(run_lets_go_of_the_lock_while_the_handler_works)
{
    static const idem_outcome at_last;
    idem_request rq = { .key = "errand", .key_len = 6 };
    idem_reply reply;

    for (int refuse = 0; refuse < 2; refuse++) {
        start("ram", LOCK_ONCE);
        is(idem_run(the.table, &reply, &rq, use_the_table, &refuse, tick),
           refuse ? IDEM_E_LOCK : IDEM_DONE);
        is(lock.taken, 2 + 4);
        is(lock.depth, 0);
        lock.refuse = 0;
        if (refuse)                         // what was not recorded can be
            is(idem_complete(the.table, &reply.claim, &at_last, the.now),
               IDEM_OK);
        is(idem_run(the.table, &reply, &rq, use_the_table, &refuse, tick),
           IDEM_REPLAY);
    }
}

/* What a handler does, and what idem_run makes of it. */
typedef struct ending {
    const char *name;
    idem_outcome outcome;
    int returns, answer, status;
    int32_t code;
    unsigned misuse;
} ending;

static int end_so(idem_job *job)
{
    const ending *e = (const ending *)job->ctx;

    job->outcome = e->outcome;
    return e->returns;
}

static const ending endings[] = {
    { "recorded", { .response = "ab", .response_len = 2, .code = 7 },
      IDEM_HANDLED, IDEM_DONE, IDEM_COMPLETED, 7, 0 },
    { "recorded as failed", { .failed = 1, .code = 8 },
      IDEM_HANDLED, IDEM_DONE, IDEM_FAILED, 8, 0 },
    { "given back", { .code = 7 }, IDEM_NOT_DONE, IDEM_RELEASED, 0, 0, 0 },
    { "kept", { .code = 7 }, IDEM_CANNOT_TELL, IDEM_BUSY, 0, 0, 0 },
    { "kept, whatever else it returns", { .code = 7 }, -1, IDEM_BUSY, 0, 0, 0 },
    { "kept: its answer is none", { .code = 7 }, IDEM_EXECUTE, IDEM_BUSY, 0, 0,
      0 },
    { "kept: nor is another", { .code = 7 }, IDEM_RECOVER, IDEM_BUSY, 0, 0, 0 },
    { "response too long", { .response = "", .response_len = RESPONSE_MAX + 1 },
      IDEM_HANDLED, IDEM_DONE, IDEM_FAILED, IDEM_CODE_INVALID, 1 },
    { "response of nothing", { .response_len = 1 },
      IDEM_HANDLED, IDEM_DONE, IDEM_FAILED, IDEM_CODE_INVALID, 1 },
    { "state too long", { .state = "", .state_len = UINT16_MAX },
      IDEM_HANDLED, IDEM_DONE, IDEM_FAILED, IDEM_CODE_INVALID, 1 },
};

/* After a handler ran no answer is that nothing was executed: what a handler
   fills in wrongly is a failure, and replayed as one; an unknown end stays
   claimed, and is an interrupted attempt afterwards. */
TEST(run_records_gives_back_or_keeps)
{
    idem_request rq = { .key = "errand", .key_len = 6 };
    idem_reply reply;

    for (size_t i = 0; i < COUNT(endings); i++) {
        ending e = endings[i];
        int done = e.answer == IDEM_DONE, kept = e.answer == IDEM_BUSY;
        start("ram", LOCK);
        is(idem_run(the.table, &reply, &rq, end_so, &e, tick), e.answer);
        is(unit_misuse, e.misuse);
        is(reply.status, e.status);
        is(reply.code, e.code);
        is(reply.retry_after_ms, kept ? LEASE : 0);
        assert_true(reply.claim.token);
        is(idem_run(the.table, &reply, &rq, end_so, &e, tick),
           done ? IDEM_REPLAY : e.answer);
        is(reply.status, e.status);
        is(reply.code, e.code);
        is(reply.response_len, done ? e.code == 7 ? 2 : 0 : 0);
        is(the.table->stats.answers[IDEM_EXECUTE], done || kept ? 1 : 2);
        the.now += LEASE;
        e.returns = IDEM_HANDLED;
        e.outcome.response_len = e.outcome.state_len = 0;
        is(idem_run(the.table, &reply, &rq, end_so, &e, tick),
           done ? IDEM_REPLAY : IDEM_DONE);
        is(the.table->stats.answers[IDEM_RECOVER], kept);
        unit_misuse = 0;
    }
}

static int close_table(idem_job *job)
{
    (void)job;
    is(idem_open(the.table, &the.config, NULL, 0, 0), IDEM_E_MEMORY);
    return *(int *)job->ctx;
}

/* .. not even one that closes the table: IDEM_E_ARG would deny it. */
TEST(run_whose_handler_closes_the_table_does_not_deny_the_effect)
{
    idem_request rq = { .key = "errand", .key_len = 6 };
    idem_reply reply;

    static const int all[] = { IDEM_HANDLED, IDEM_NOT_DONE, IDEM_CANNOT_TELL };

    for (size_t i = 0; i < COUNT(all); i++) {
        int returns = all[i];
        start("ram", NO_LOCK);
        is(idem_run(the.table, &reply, &rq, close_table, &returns, tick),
           IDEM_E_FENCED);
        assert_true(unit_misuse > 0);
        unit_misuse = 0;
    }
}

/* --------------------------------------------------------- results in words */

TEST(every_result_has_its_own_text)
{
#define TEXT(name, value, text) { name, value, text },
    static const struct { int result, value; const char *text; } rows[] = {
        IDEM_RESULTS(TEXT)
        { INT32_MIN, INT32_MIN, "" }, { -1000, -1000, "" },     // unknown ones
        { 1000, 1000, "" }, { INT32_MAX, INT32_MAX, "" },
    };
    const char *other = idem_text(1000);

    for (size_t i = 0; i < COUNT(rows); i++) {
        is(rows[i].result, rows[i].value);
        assert_string_equal(idem_text(rows[i].result),
                            *rows[i].text ? rows[i].text : other);
        assert_string_not_equal(rows[i].text, other);
        for (size_t j = 0; j < i && *rows[i].text; j++)
            assert_string_not_equal(rows[i].text, rows[j].text);
    }
}

/* All copying is watched, whatever the test is about. */
__attribute__((constructor)) static void watch_copying(void)
{
    unit_copying = copying;
}
