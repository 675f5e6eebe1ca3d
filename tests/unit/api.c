/* SPDX-License-Identifier: 0BSD */
/*
 * Shows what every public function does with arguments that cannot be, with
 * tables that are not open, with memory that does not fit, and with a lock; and
 * that nothing is touched by a call that was refused (S7).
 *
 * Uses promised names only: no idemi_, no field that is not promised.  All
 * functions stand in one table, and most tests run over the whole of it.
 */
#include "fixture.h"

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
    TABLE = 1, CLAIM = 2, REPLY = 4, REQUEST = 8, OUTCOME = 16, ENTRY = 32,
    HANDLER = 64, BYTES = 128, LEN = 256, HORIZON = 512
};

// A little after the claim, so a clock that moved is seen in the table.
enum { NOW = 5 };

/* The functions that take a table: which pointers, what they answer with a
   claim on "key" and nothing else, whether they take the lock, and a call. */
#define FUNCTIONS(X)                                                           \
    X(BEGIN, TABLE | CLAIM | REPLY | REQUEST, IDEM_BUSY, 1,                    \
      idem_begin(t, claim, reply, request, NOW))                               \
    X(COMPLETE, TABLE | CLAIM | OUTCOME, IDEM_OK, 1,                           \
      idem_complete(t, claim, outcome, NOW))                                   \
    X(RELEASE, TABLE | CLAIM, IDEM_OK, 1, idem_release(t, claim, NOW))         \
    X(RENEW, TABLE | CLAIM, IDEM_OK, 1, idem_renew(t, claim, 0, NOW))          \
    X(RUN, TABLE | CLAIM | REPLY | REQUEST | HANDLER, IDEM_BUSY, 1,            \
      idem_run(t, claim, reply, request, handler, NULL, NOW))                  \
    X(MAINTAIN, TABLE, IDEM_OK, 1, idem_maintain(t, NOW))                      \
    X(SYNC, TABLE, IDEM_OK, 1, idem_sync(t))                                   \
    X(ELAPSE, TABLE, IDEM_OK, 1, idem_elapse(t, 1))                            \
    X(FIND, TABLE | ENTRY | REQUEST, IDEM_OK, 1,                               \
      idem_find(t, entry, request, NOW))                                       \
    X(NEXT, TABLE | ENTRY, IDEM_OK, 1, idem_next(t, entry, NOW))               \
    X(PENDING, TABLE | ENTRY, IDEM_E_NOT_FOUND, 1,                             \
      idem_pending(t, entry, NOW))                                             \
    X(DELIVERED, TABLE | CLAIM, IDEM_E_NOT_FOUND, 1, idem_delivered(t, claim)) \
    X(RESPONSE, TABLE | BYTES | LEN | CLAIM, IDEM_E_NOT_FOUND, 1,              \
      idem_response(t, bytes, len, claim, 0))                                  \
    X(STATE, TABLE | BYTES | LEN, IDEM_OK, 1, idem_state(t, bytes, len))       \
    X(FORGET, TABLE | REQUEST, IDEM_BUSY, 1, idem_forget(t, request, NOW))     \
    X(AGE, TABLE | HORIZON, IDEM_OK, 1, idem_horizon(t, horizon, NOW))         \
    X(DOUBT, TABLE | HORIZON, IDEM_OK, 1, idem_doubt(t, horizon, NOW))         \
    X(CHECK, TABLE, 0, 0, idem_check(t))

#define NAME(name, takes, answer, locks, call) name,
enum { FUNCTIONS(NAME) COUNT_OF_FUNCTIONS };

#define ROW(name, takes, answer, locks, call) { takes, answer, locks },
static const struct function { unsigned takes; int answer, locks; }
    functions[] = { FUNCTIONS(ROW) };

static int work(void *ctx, idem_outcome *outcome, const idem_request *request,
                const idem_claim *claim, int answer, uint32_t *now_ms)
{
    return !ctx && outcome && request && claim && answer && now_ms ? 0 : -1;
}

static idem_claim given;        // that of the latest call

/* Calls a function, with NULL for the pointers in `without`. */
static int call(const fixture *f, size_t which, unsigned without)
{
    char some_bytes[RESPONSE_MAX];
    size_t a_len = sizeof some_bytes;
    uint32_t a_horizon;
    idem_request a_request = request_of(f, "panel", "key", "pour");
    idem_reply a_reply = { .buffer = NULL };
    idem_outcome an_outcome = { .response = NULL };
    idem_entry an_entry = { .id = NULL };
    idem_table *t = without & TABLE ? NULL : (idem_table *)&f->table;
    idem_claim *claim = without & CLAIM ? NULL : &given;
    idem_reply *reply = without & REPLY ? NULL : &a_reply;
    idem_request *request = without & REQUEST ? NULL : &a_request;
    idem_outcome *outcome = without & OUTCOME ? NULL : &an_outcome;
    idem_entry *entry = without & ENTRY ? NULL : &an_entry;
    idem_handler *handler = without & HANDLER ? NULL : work;
    char *bytes = without & BYTES ? NULL : some_bytes;
    size_t *len = without & LEN ? NULL : &a_len;
    uint32_t *horizon = without & HORIZON ? NULL : &a_horizon;

    given = f->claim;
    switch (which) {
#define CASE(name, takes, answer, locks, call) case name: return call;
        FUNCTIONS(CASE)
    }
    return 1;
}

/* A table with a claim on "key", in f->claim. */
static void start(fixture *f)
{
    fixture_open(f, 0);
    is(ask(f, "key", 0), IDEM_EXECUTE);
    unit_misuse = 0;
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

/* A table with a claim on "key", and the lock, at rest. */
static void start_locked(fixture *f, int once)
{
    memset(&lock, 0, sizeof lock);
    f->config.lock_ctx = &lock;
    f->config.lock = take;
    f->config.unlock = give;
    start(f);
    memset(&lock, 0, sizeof lock);
    lock.once = once;
}

/* Everything there is of a table. */
struct image {
    idem_table table;
    unsigned char memory[1024];
};

static void take_image(struct image *image, const fixture *f)
{
    size_t size = IDEM_MEMORY_SIZE(CAPACITY, KEY_MAX, RESPONSE_MAX, STATE_MAX);

    memset(image, 0, sizeof *image);
    memcpy(&image->table, &f->table, sizeof f->table);
    assert_in_range(size, 1, sizeof image->memory);
    memcpy(image->memory, f->memory, size);
}

static void assert_untouched(const struct image *before, const fixture *f)
{
    struct image after;

    take_image(&after, f);
    assert_memory_equal(&after, before, sizeof after);
}

/* A call is answered so, and changes nothing; if it is to give a claim, that is
   none. */
static void refused(const fixture *f, size_t which, unsigned without,
                    int answer)
{
    struct image before;

    take_image(&before, f);
    is(call(f, which, without), answer);
    assert_untouched(&before, f);
    if ((which == BEGIN || which == RUN) && !(without & CLAIM))
        is(given.token, 0);
}

/* ------------------------------------------------------------------- misuse */

TEST(s7_null_for_any_pointer_is_refused_asserted_and_harmless)
{
    for (size_t i = 0; i < COUNT(functions); i++)
        for (unsigned pointer = 1; pointer <= HORIZON; pointer <<= 1) {
            if (!(functions[i].takes & pointer))
                continue;
            start_locked(f, 0);
            refused(f, i, pointer, IDEM_E_ARG);
            is(unit_misuse, 1);
            is(lock.taken, 0);
        }
    refused(f, RUN, CLAIM | HANDLER, IDEM_E_ARG);
}

/* Whatever f->table holds is not an open table. */
static void assert_closed(const fixture *f)
{
    for (size_t i = 0; i < COUNT(functions); i++) {
        unit_misuse = 0;
        refused(f, i, 0, IDEM_E_ARG);
        is(unit_misuse, 1);
    }
}

/* .. and what it held is not looked at when it is opened. */
TEST(s7_a_table_that_is_not_open_is_refused)
{
    uint32_t seed = 23;

    memset(&f->table, 0, sizeof f->table);
    assert_closed(f);
    memset(&f->table, 0xFF, sizeof f->table);
    assert_closed(f);
    start(f);
    is(f->table.used, 1);
    is(f->table.stats.answers[IDEM_EXECUTE], 1);
    for (int i = 0; i < 100; i++) {
        unsigned char *byte = (unsigned char *)&f->table;
        for (size_t j = 0; j < sizeof f->table; j++)
            byte[j] = (unsigned char)(dice(&seed) >> 7);
        assert_closed(f);
    }
}

TEST(s7_a_table_whose_opening_failed_is_closed)
{
    idem_config wrong = f->config;

    is(idem_open(&f->table, &f->config, f->memory, 3, 0), IDEM_E_MEMORY);
    assert_closed(f);
    start(f);
    wrong.capacity = 0;
    is(idem_open(&f->table, &wrong, f->memory, 1000, 0), IDEM_E_ARG);
    assert_closed(f);
    start(f);
    is(idem_open(&f->table, NULL, f->memory, 1000, 0), IDEM_E_ARG);
    assert_closed(f);
    start(f);                               // no storage
    is(idem_format(&f->table, &f->config, f->memory, 100000, 0), IDEM_E_ARG);
    is(unit_misuse, 1);
    assert_closed(f);
    unit_misuse = 0;
    is(idem_open(NULL, &f->config, f->memory, 1000, 0), IDEM_E_ARG);
    is(idem_format(&f->table, NULL, f->memory, 1000, 0), IDEM_E_ARG);
    is(idem_format(NULL, &f->config, f->memory, 1000, 0), IDEM_E_ARG);
    is(unit_misuse, 3);
}

/* What else is refused tell stories (life.c). */
TEST(s7_null_with_a_length_is_refused_when_looking)
{
    idem_request rq = request_of(f, "panel", "key", "");

    rq.scope = NULL;
    start(f);
    is(idem_find(&f->table, &f->entry, &rq, 0), IDEM_E_ARG);
    is(idem_forget(&f->table, &rq, 0), IDEM_E_ARG);
    is(unit_misuse, 2);
}

/* ------------------------------------------------------------------ opening */

TEST(memory_that_does_not_serve_is_refused_and_the_size_told)
{
    size_t needed =
        IDEM_MEMORY_SIZE(CAPACITY, KEY_MAX, RESPONSE_MAX, STATE_MAX);
    uint32_t *memory = (uint32_t *)malloc(needed + 4);
    unsigned char *bytes = (unsigned char *)memory;

    assert_non_null(memory);
    unit_misuse = 0;
    memset(memory, 0x5A, needed + 4);
    for (size_t size = 0; size < needed; size++) {
        is(idem_open(&f->table, &f->config, memory, size, 0), IDEM_E_MEMORY);
        is(f->table.needed, needed);
    }
    for (size_t off = 1; off < 4; off++)
        is(idem_open(&f->table, &f->config, bytes + off, needed, 0),
           IDEM_E_MEMORY);
    is(idem_open(&f->table, &f->config, NULL, needed, 0), IDEM_E_MEMORY);
    is(f->table.needed, needed);
    for (size_t i = 0; i < needed + 4; i++)
        is(bytes[i], 0x5A);
    is(idem_open(&f->table, &f->config, memory, needed, 0), IDEM_OK);
    is(unit_misuse, 0);                        // not a caller's mistake
    free(memory);
}

TEST(s8_the_largest_table_is_not_taken_for_a_small_one)
{
    static uint32_t memory[1024];
    uint64_t least;

    f->config.key_max = 255;
    f->config.response_max = UINT16_MAX;
    for (uint32_t capacity = IDEM_CAPACITY_MAX; capacity > 100; capacity--) {
        f->config.capacity = capacity;
        least = (uint64_t)capacity * (255 + UINT16_MAX);
        is(idem_open(&f->table, &f->config, memory, sizeof memory, 0),
           IDEM_E_MEMORY);
        assert_true(f->table.needed >= least ||
                    f->table.needed == (size_t)-1);
        if (capacity > 40000)
            capacity -= capacity / 64;
    }
}

/* ----------------------------------------------------------------- the lock */

/* Whatever the answer: "key" is claimed, finished, or unknown. */
TEST(every_function_does_its_work_and_takes_the_lock_once)
{
    for (int round = 0; round < 3; round++)
        for (size_t i = 0; i < COUNT(functions); i++) {
            int answer;
            start_locked(f, 0);
            if (round == 1)
                is(complete(f, &f->claim, "", 0), IDEM_OK);
            if (round == 2)
                is(release(f, &f->claim, 0), IDEM_OK);
            lock.taken = 0;
            answer = call(f, i, 0);
            if (round == 0)
                is(answer, functions[i].answer);
            is(unit_misuse, 0);
            // To run a handler is to begin and to complete.
            is(lock.taken,
               functions[i].locks + (i == RUN && answer == IDEM_EXECUTE));
            is(lock.depth, 0);
        }
}

TEST(s7_a_refused_lock_refuses_the_call)
{
    for (size_t i = 0; i < COUNT(functions); i++) {
        if (!functions[i].locks)
            continue;
        start_locked(f, 0);
        lock.refuse = 1;
        refused(f, i, 0, IDEM_E_LOCK);
        is(lock.depth, 0);
    }
}

// What is called in the middle of another call, and what that answered.
static struct { fixture *f; int answer; } nested;

static void call_everything(void)
{
    for (size_t i = 0; i < COUNT(functions); i++)
        refused(nested.f, i, 0, functions[i].locks ? IDEM_E_LOCK : 0);
}

/* Calls everything while a begin copies the response of "key" out. */
static void interrupt_a_replay(fixture *f)
{
    is(complete(f, &f->claim, "poured", 0), IDEM_OK);
    nested.f = f;
    interrupt = call_everything;
    is(ask(f, "key", 0), IDEM_REPLAY);
    assert_null(interrupt);
    assert_string_equal(f->buffer, "poured");
}

TEST(a_call_in_the_middle_of_another_is_refused_by_the_lock_or_the_table)
{
    start(f);                               // without hooks: an interrupt
    interrupt_a_replay(f);
    for (int once = 0; once < 2; once++) {
        start_locked(f, once);
        interrupt_a_replay(f);
        is(lock.depth, 0);
        is(lock.deepest, 2 - once);
    }
}

static void call_maintain_nested(void)
{
    nested.answer = idem_maintain(&nested.f->table, 0);
}

/* By a lock that can tell.  Before the first look at the table and after the
   last there is nothing to protect: a call that another lock lets pass is done
   whole, or is refused. */
TEST(a_call_from_a_hook_is_refused_or_does_no_harm)
{
    for (int how = 0; how < 3; how++) {
        start_locked(f, how == 0);
        nested.f = f;
        nested.answer = -100;
        *(how == 2 ? &lock.on_unlock : &lock.on_lock) = call_maintain_nested;
        is(complete(f, &f->claim, "poured", 0), IDEM_OK);
        assert_true((how && nested.answer == IDEM_OK) ||
                    nested.answer == IDEM_E_LOCK);
        is(lock.depth, 0);
        is(ask(f, "key", 0), IDEM_REPLAY);
    }
}

struct errand {
    fixture *f;
    int refuse_afterwards;
};

static int use_the_table(void *ctx, idem_outcome *outcome,
                         const idem_request *request, const idem_claim *claim,
                         int answer, uint32_t *now_ms)
{
    struct errand *errand = (struct errand *)ctx;
    idem_table *t = &errand->f->table;
    idem_claim other;
    idem_reply reply = { .buffer = NULL };
    idem_request rq = request_of(errand->f, "panel", "other", "pour");

    (void)outcome;
    is(answer, IDEM_EXECUTE);
    is(lock.depth, 0);
    is(idem_begin(t, &other, &reply, request, *now_ms), IDEM_BUSY);
    is(idem_begin(t, &other, &reply, &rq, *now_ms), IDEM_EXECUTE);
    is(idem_release(t, &other, *now_ms), IDEM_OK);
    is(idem_renew(t, claim, 0, *now_ms), IDEM_OK);
    lock.refuse = errand->refuse_afterwards;
    return 0;
}

TEST(run_lets_go_of_the_lock_while_the_handler_works)
{
    idem_request rq = request_of(f, "panel", "errand", "pour");

    for (int refuse = 0; refuse < 2; refuse++) {
        struct errand errand = { f, refuse };
        start_locked(f, 1);
        is(idem_run(&f->table, &f->claim, &f->reply, &rq, use_the_table,
                    &errand, 0),
           refuse ? IDEM_E_LOCK : IDEM_EXECUTE);
        is(lock.taken, 2 + 4);
        is(lock.depth, 0);
        lock.refuse = 0;
        if (refuse)                         // what was not recorded can be
            is(complete(f, &f->claim, "at last", 0), IDEM_OK);
        is(ask(f, "errand", 0), IDEM_REPLAY);
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
    const char *unknown = idem_text(1000);

    for (size_t i = 0; i < COUNT(rows); i++) {
        is(rows[i].result, rows[i].value);
        assert_string_equal(idem_text(rows[i].result),
                            *rows[i].text ? rows[i].text : unknown);
        assert_string_not_equal(rows[i].text, unknown);
        for (size_t j = 0; j < i && *rows[i].text; j++)
            assert_string_not_equal(rows[i].text, rows[j].text);
    }
}

/* All copying is watched, whatever the test is about. */
__attribute__((constructor)) static void watch_copying(void)
{
    unit_copying = copying;
}
