/* SPDX-License-Identifier: 0BSD */
/*
 * Shows what every public function does with arguments that cannot be, with
 * tables that are not open, with memory that does not fit, and with a lock; and
 * that nothing outside table and memory is touched (S8), and nothing inside
 * them by a call that was refused (S7).
 *
 * Uses promised names only: no idemi_, no field that is not promised.  All
 * functions stand in one table, and most tests run over the whole of it.
 */
#include "fixture.h"

// Copying may be interrupted: by code that calls the table again.
static void (*interrupt)(void);
// Copying without the lock, if there is one, is counted.
static const int *lock_depth;
static int unlocked;

static void copying(void)
{
    void (*now)(void) = interrupt;

    if (lock_depth && !*lock_depth)
        unlocked++;
    interrupt = NULL;
    if (now)
        now();
}

/* ---------------------------------------------------------------------------
   every function that takes a table
   ------------------------------------------------------------------------ */

/* A set of arguments that are all right, for any function. */
struct arguments {
    idem_table *table;
    idem_claim *claim;
    idem_reply *reply;
    idem_request *request;
    idem_outcome *outcome;
    idem_entry *entry;
    idem_handler *handler;
    char *bytes;
    size_t *len;
    uint32_t *horizon;
    // What they point to
    idem_claim a_claim;
    idem_reply a_reply;
    idem_request a_request;
    idem_outcome an_outcome;
    idem_entry an_entry;
    char some_bytes[RESPONSE_MAX];
    size_t a_len;
    uint32_t a_horizon;
};

enum pointer {
    TABLE   = 1,
    CLAIM   = 2,
    REPLY   = 4,
    REQUEST = 8,
    OUTCOME = 16,
    ENTRY   = 32,
    HANDLER = 64,
    BYTES   = 128,
    LEN     = 256,
    HORIZON = 512
};

static int work(void *ctx, idem_outcome *outcome, const idem_request *request,
                const idem_claim *claim, int answer, uint32_t *now_ms)
{
    (void)ctx;
    (void)outcome;
    (void)request;
    (void)claim;
    (void)answer;
    (void)now_ms;
    return 0;
}

/* Gives arguments, but NULL for those in `without`. */
static void arguments_without(struct arguments *a, fixture *f,
                              unsigned without)
{
    memset(a, 0, sizeof *a);
    a->a_claim = f->claim;
    a->a_request = request_of(f, "panel", "key", "pour");
    a->a_len = sizeof a->some_bytes;
    a->table = without & TABLE ? NULL : &f->table;
    a->claim = without & CLAIM ? NULL : &a->a_claim;
    a->reply = without & REPLY ? NULL : &a->a_reply;
    a->request = without & REQUEST ? NULL : &a->a_request;
    a->outcome = without & OUTCOME ? NULL : &a->an_outcome;
    a->entry = without & ENTRY ? NULL : &a->an_entry;
    a->handler = without & HANDLER ? NULL : work;
    a->bytes = without & BYTES ? NULL : a->some_bytes;
    a->len = without & LEN ? NULL : &a->a_len;
    a->horizon = without & HORIZON ? NULL : &a->a_horizon;
}

// A little after the claim, so a clock that moved is seen in the table.
enum { NOW = 5 };

/* The functions that take a table. */
enum call {
    BEGIN, COMPLETE, RELEASE, RENEW, RUN, MAINTAIN, SYNC, ELAPSE, FIND, NEXT,
    PENDING, DELIVERED, GET_RESPONSE, GET_STATE, FORGET, GET_HORIZON, DOUBT,
    CHECK
};

static int call(enum call which, struct arguments *a)
{
    switch (which) {
    case BEGIN:
        return idem_begin(a->table, a->claim, a->reply, a->request, NOW);
    case COMPLETE: return idem_complete(a->table, a->claim, a->outcome, NOW);
    case RELEASE: return idem_release(a->table, a->claim, NOW);
    case RENEW: return idem_renew(a->table, a->claim, 0, NOW);
    case RUN:
        return idem_run(a->table, a->claim, a->reply, a->request, a->handler,
                        NULL, NOW);
    case MAINTAIN: return idem_maintain(a->table, NOW);
    case SYNC: return idem_sync(a->table);
    case ELAPSE: return idem_elapse(a->table, 1);
    case FIND: return idem_find(a->table, a->entry, a->request, NOW);
    case NEXT: return idem_next(a->table, a->entry, NOW);
    case PENDING: return idem_pending(a->table, a->entry, NOW);
    case DELIVERED: return idem_delivered(a->table, a->claim);
    case GET_RESPONSE:
        return idem_response(a->table, a->bytes, a->len, a->claim, 0);
    case GET_STATE: return idem_state(a->table, a->bytes, a->len);
    case FORGET: return idem_forget(a->table, a->request, NOW);
    case GET_HORIZON: return idem_horizon(a->table, a->horizon, NOW);
    case DOUBT: return idem_doubt(a->table, a->horizon, NOW);
    case CHECK: return idem_check(a->table);
    }
    return 1;
}

static const struct function {
    enum call which;
    unsigned takes;             // pointers
    int answer;                 // with a claim on "key", and nothing else
    int locks;
} functions[] = {
    { BEGIN, TABLE | CLAIM | REPLY | REQUEST, IDEM_BUSY, 1 },
    { COMPLETE, TABLE | CLAIM | OUTCOME, IDEM_OK, 1 },
    { RELEASE, TABLE | CLAIM, IDEM_OK, 1 },
    { RENEW, TABLE | CLAIM, IDEM_OK, 1 },
    { RUN, TABLE | CLAIM | REPLY | REQUEST | HANDLER, IDEM_BUSY, 1 },
    { MAINTAIN, TABLE, IDEM_OK, 1 },
    { SYNC, TABLE, IDEM_OK, 1 },
    { ELAPSE, TABLE, IDEM_OK, 1 },
    { FIND, TABLE | ENTRY | REQUEST, IDEM_OK, 1 },
    { NEXT, TABLE | ENTRY, IDEM_OK, 1 },
    { PENDING, TABLE | ENTRY, IDEM_E_NOT_FOUND, 1 },
    { DELIVERED, TABLE | CLAIM, IDEM_E_NOT_FOUND, 1 },
    { GET_RESPONSE, TABLE | BYTES | LEN | CLAIM, IDEM_E_NOT_FOUND, 1 },
    { GET_STATE, TABLE | BYTES | LEN, IDEM_OK, 1 },
    { FORGET, TABLE | REQUEST, IDEM_BUSY, 1 },
    { GET_HORIZON, TABLE | HORIZON, IDEM_OK, 1 },
    { DOUBT, TABLE | HORIZON, IDEM_OK, 1 },
    { CHECK, TABLE, 0, 0 },
};

/* A table with a claim on "key", in f->claim. */
static void start(fixture *f)
{
    fixture_open(f, 0);
    is(ask(f, "key", 0), IDEM_EXECUTE);
    unit_misuse = 0;
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

/* ---------------------------------------------------------------------------
   misuse
   ------------------------------------------------------------------------ */
TEST(every_function_does_its_work)
{
    for (size_t i = 0; i < COUNT(functions); i++) {
        struct arguments a;
        start(f);
        arguments_without(&a, f, 0);
        is(call(functions[i].which, &a), functions[i].answer);
        is(unit_misuse, 0);
    }
}

TEST(s7_null_for_any_pointer_is_refused_asserted_and_harmless)
{
    for (size_t i = 0; i < COUNT(functions); i++)
        for (unsigned pointer = 1; pointer <= HORIZON; pointer <<= 1) {
            struct arguments a;
            struct image before;
            if (!(functions[i].takes & pointer))
                continue;
            start(f);
            take_image(&before, f);
            arguments_without(&a, f, pointer);
            is(call(functions[i].which, &a), IDEM_E_ARG);
            is(unit_misuse, 1);
            assert_untouched(&before, f);
        }
}

/* Whatever f->table holds is not an open table. */
static void assert_closed(fixture *f)
{
    for (size_t i = 0; i < COUNT(functions); i++) {
        struct arguments a;
        struct image before;
        unit_misuse = 0;
        take_image(&before, f);
        arguments_without(&a, f, 0);
        is(call(functions[i].which, &a), IDEM_E_ARG);
        is(unit_misuse, 1);
        assert_untouched(&before, f);
    }
}

TEST(s7_a_table_that_is_not_open_is_refused)
{
    uint32_t seed = 23;

    memset(&f->table, 0, sizeof f->table);
    assert_closed(f);
    memset(&f->table, 0xFF, sizeof f->table);
    assert_closed(f);
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
    unit_misuse = 0;
    is(idem_open(NULL, &f->config, f->memory, 1000, 0), IDEM_E_ARG);
    is(unit_misuse, 1);
}

static int begin_wrong(fixture *f, const idem_request *rq)
{
    return idem_begin(&f->table, &f->claim, &f->reply, rq, 0);
}

TEST(s7_null_with_a_length_is_refused)
{
    const idem_request good = request_of(f, "panel", "new", "pour");
    const idem_outcome wrong[] = {
        { .response_len = 1 }, { .state_len = 1 },
    };
    idem_request rq = good;
    struct image before;
    idem_claim claim;
    size_t len = 1;

    start(f);
    claim = f->claim;
    take_image(&before, f);
    rq.scope = NULL;
    is(begin_wrong(f, &rq), IDEM_E_ARG);
    is(idem_find(&f->table, &f->entry, &rq, 0), IDEM_E_ARG);
    is(idem_forget(&f->table, &rq, 0), IDEM_E_ARG);
    rq = good;
    rq.key = NULL;
    is(begin_wrong(f, &rq), IDEM_E_ARG);
    rq = good;
    rq.payload = NULL;
    is(begin_wrong(f, &rq), IDEM_E_ARG);
    for (size_t i = 0; i < COUNT(wrong); i++)
        is(idem_complete(&f->table, &claim, &wrong[i], 0), IDEM_E_ARG);
    is(idem_response(&f->table, NULL, &len, &claim, 0), IDEM_E_ARG);
    is(idem_state(&f->table, NULL, &len), IDEM_E_ARG);
    is(len, 1);
    is(unit_misuse, 9);
    assert_untouched(&before, f);
}

TEST(what_the_world_does_is_never_asserted)
{
    uint32_t seed = 29;

    start(f);
    for (uint32_t now = 0; now < 20000; now += dice(&seed) % 50) {
        idem_claim claim;
        const char *key = nth(dice(&seed) % 8);
        f->request.response_size = (uint16_t)(dice(&seed) % 20);
        (void)begin(f, "panel", key, dice(&seed) % 9 ? "x" : "y", now);
        claim = f->claim;
        if (dice(&seed) % 2)
            (void)complete(f, &claim, "four", now);
        else if (dice(&seed) % 4 == 0)
            (void)forget(f, "panel", key, now - dice(&seed) % 1000);
        (void)find(f, "a scope that is longer than all", "key", now);
        is(begin(f, "panel", "", "x", now), IDEM_E_ARG);
        is(find(f, "panel", "", now), IDEM_E_ARG);
        (void)release(f, &claim, now);
    }
    is(unit_misuse, 0);
    assert_true(f->table.stats.full > 0 && f->table.stats.fenced > 0);
    assert_true(f->table.stats.backwards > 0);
}

TEST(a_claim_is_zeroed_whatever_refuses_it)
{
    idem_request rq = request_of(f, "panel", "key", "x");
    idem_table closed;
    idem_claim claim;

    memset(&closed, 0, sizeof closed);
    claim.token = 77;
    is(idem_begin(&closed, &claim, &f->reply, &rq, 0), IDEM_E_ARG);
    is(claim.token, 0);
    claim.token = 77;
    is(idem_begin(NULL, &claim, &f->reply, &rq, 0), IDEM_E_ARG);
    is(claim.token, 0);
    claim.token = 77;
    is(idem_run(&f->table, &claim, &f->reply, &rq, NULL, NULL, 0), IDEM_E_ARG);
    is(claim.token, 0);
    is(idem_run(&f->table, NULL, &f->reply, &rq, NULL, NULL, 0), IDEM_E_ARG);
    claim.token = 77;
    is(idem_begin(&f->table, &claim, NULL, &rq, 0), IDEM_E_ARG);
    is(claim.token, 0);
}

/* ---------------------------------------------------------------------------
   opening
   ------------------------------------------------------------------------ */
TEST(formatting_without_storage_is_refused)
{
    unit_misuse = 0;
    is(idem_format(&f->table, &f->config, f->memory,
                   IDEM_MEMORY_SIZE(CAPACITY, KEY_MAX, RESPONSE_MAX, STATE_MAX),
                   0),
       IDEM_E_ARG);
    is(unit_misuse, 1);
    assert_closed(f);
    unit_misuse = 0;
    is(idem_format(&f->table, NULL, f->memory, 100000, 0), IDEM_E_ARG);
    is(idem_format(NULL, &f->config, f->memory, 100000, 0), IDEM_E_ARG);
    is(unit_misuse, 2);
}

/* HalfSipHash takes one half for the index, the other for fingerprints. */
TEST(s9_a_secret_with_a_zero_half_is_refused_where_it_is_used)
{
    for (int i = -1; i < 8; i++)
        for (int j = -1; j < 8; j++) {
            int keyed = IDEM_HASH != IDEM_HASH_FNV;
            memset(f->config.secret, 0, sizeof f->config.secret);
            if (i >= 0)
                f->config.secret[i] = 1;
            if (j >= 0)
                f->config.secret[8 + j] = 1;
            is(idem_open(&f->table, &f->config, NULL, 0, 0),
               keyed && (i < 0 || j < 0) ? IDEM_E_ARG : IDEM_E_MEMORY);
        }
}

TEST(the_limits_of_the_configuration_are_inside_it)
{
    f->config.lease_ms = IDEM_LEASE_MAX;
    f->config.retention_ms = IDEM_RETENTION_MAX;
    f->config.senders = IDEM_SENDERS_MAX;
    f->config.quota = UINT32_MAX;
    f->config.max_attempts = 255;
    f->config.key_max = 255;
    f->config.response_max = UINT16_MAX;
    f->config.state_max = UINT16_MAX;
    start(f);
    f->config.lease_ms = IDEM_LEASE_NONE;
    f->config.capacity = 1;
    f->config.key_max = 8;                  // "panel" and "key"
    f->config.response_max = 0;
    f->config.state_max = 0;
    start(f);
    is(complete(f, &f->claim, NULL, 0), IDEM_OK);
}

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

#define SHAPES(X)                                                              \
    X(1, 1, 0, 0) X(1, 255, 65535, 65535) X(2, 1, 1, 1) X(3, 7, 2, 3)          \
    X(4, 24, 16, 8) X(5, 16, 5, 0) X(64, 24, 16, 0) X(63, 23, 15, 13)          \
    X(255, 2, 1, 5) X(256, 33, 0, 64) X(1000, 16, 16, 0) X(1001, 17, 18, 19)

TEST(a_static_array_of_memory_size_is_enough_and_not_too_much)
{
#define OPEN(capacity_, key_, response_, state_)                               \
    do {                                                                       \
        static uint32_t                                                        \
            array[IDEM_MEMORY_SIZE(capacity_, key_, response_, state_) / 4];   \
        f->config.capacity = capacity_;                                        \
        f->config.key_max = key_;                                              \
        f->config.response_max = response_;                                    \
        f->config.state_max = state_;                                          \
        is(IDEM_MEMORY_SIZE(capacity_, key_, response_, state_) % 4, 0);       \
        is(idem_open(&f->table, &f->config, array, sizeof array, 0), IDEM_OK); \
        is(idem_open(&f->table, &f->config, array, sizeof array - 1, 0),       \
           IDEM_E_MEMORY);                                                     \
        is(f->table.needed, sizeof array);                                     \
    } while (0);

    SHAPES(OPEN)
#undef OPEN
}

TEST(what_memory_and_table_held_before_is_not_looked_at)
{
    start(f);
    memset(&f->table, 0xFF, sizeof f->table);
    is(idem_open(&f->table, &f->config, f->memory,
                 IDEM_MEMORY_SIZE(CAPACITY, KEY_MAX, RESPONSE_MAX, STATE_MAX),
                 0),
       IDEM_OK);
    is(f->table.used, 0);
    is(f->table.stats.answers[IDEM_EXECUTE], 0);
    is(ask(f, "key", 0), IDEM_EXECUTE);
}

/* ---------------------------------------------------------------------------
   S8
   ------------------------------------------------------------------------ */
enum { GUARD = 256 };

struct guarded {
    unsigned char before[GUARD];
    idem_table table;
    unsigned char after[GUARD];
};

static void assert_guard(const unsigned char *guard)
{
    for (int i = 0; i < GUARD; i++)
        is(guard[i], 0xC5);
}

/* All that can be done, at random, with lengths up to their limits. */
static void be_busy(idem_table *t, const idem_config *config, uint32_t *seed)
{
    static char bytes[300];
    char out[300];
    idem_claim claim = { 0 };
    uint32_t now = 0;

    for (int i = 0; i < 3000; i++) {
        idem_reply reply = { .buffer = out, .buffer_size = sizeof out };
        idem_entry entry = { .id = out, .id_size = sizeof out };
        idem_outcome outcome = {
            .response = bytes, .response_len = config->response_max,
            .state = bytes, .state_len = config->state_max,
            .confirm = dice(seed) % 4 == 0,
        };
        idem_request rq = {
            .key = bytes, .key_len = 1 + dice(seed) % config->key_max,
            .scope = bytes + dice(seed) % 3, .payload = bytes,
        };
        bytes[0] = (char)(dice(seed) % 3);
        rq.scope_len = config->key_max - rq.key_len;
        if (dice(seed) % 3)
            (void)idem_begin(t, &claim, &reply, &rq, now);
        if (dice(seed) % 2)
            (void)idem_complete(t, &claim, &outcome, now);
        if (dice(seed) % 8 == 0)
            (void)idem_release(t, &claim, now);
        if (dice(seed) % 8 == 0)
            (void)idem_forget(t, &rq, now);
        if (dice(seed) % 8 == 0)
            (void)idem_maintain(t, now);
        if (idem_find(t, &entry, &rq, now) == IDEM_OK)
            (void)idem_delivered(t, &entry.claim);
        (void)idem_next(t, &entry, now);
        now += dice(seed) % 100;
        is(idem_check(t), 0);
    }
}

TEST(s8_nothing_outside_table_and_memory_is_touched)
{
#define SHAPE(capacity_, key_, response_, state_)                              \
    { capacity_, key_, response_, state_ },
    static const struct { uint32_t n, k, r, s; } shapes[] = { SHAPES(SHAPE) };
#undef SHAPE
    struct guarded g;
    uint32_t seed = 31;

    for (size_t i = 0; i < COUNT(shapes); i++) {
        size_t size;
        unsigned char *memory;
        if (shapes[i].n > 100 || shapes[i].r > 100)
            continue;
        f->config.capacity = shapes[i].n;
        f->config.key_max = (uint16_t)shapes[i].k;
        f->config.response_max = (uint16_t)shapes[i].r;
        f->config.state_max = (uint16_t)shapes[i].s;
        f->config.full = i % 2 ? IDEM_REJECT : IDEM_EVICT_OLDEST;
        size = IDEM_MEMORY_SIZE(shapes[i].n, shapes[i].k, shapes[i].r,
                                shapes[i].s);
        memory = (unsigned char *)malloc(size + 2 * GUARD);
        assert_non_null(memory);
        memset(memory, 0xC5, size + 2 * GUARD);
        memset(&g, 0xC5, sizeof g);
        is(idem_open(&g.table, &f->config, memory + GUARD, size, 0), IDEM_OK);
        be_busy(&g.table, &f->config, &seed);
        assert_true(g.table.stats.answers[IDEM_REPLAY] > 0);
        assert_guard(memory);
        assert_guard(memory + GUARD + size);
        assert_guard(g.before);
        assert_guard(g.after);
        free(memory);
    }
}

TEST(a_table_may_be_moved)
{
    idem_table moved;
    idem_reply reply = { .buffer = NULL };
    idem_request rq = request_of(f, "panel", "key", "pour");
    idem_outcome outcome = { .confirm = 1 };
    idem_entry entry = { .id = NULL };
    idem_claim claim;

    start(f);
    claim = f->claim;
    memcpy(&moved, &f->table, sizeof moved);
    memset(&f->table, 0xFF, sizeof f->table);
    is(idem_begin(&moved, &claim, &reply, &rq, 0), IDEM_BUSY);
    is(idem_complete(&moved, &f->claim, &outcome, 0), IDEM_OK);
    memcpy(&f->table, &moved, sizeof moved);
    memset(&moved, 0xFF, sizeof moved);
    is(ask(f, "key", 0), IDEM_REPLAY);
    is(idem_pending(&f->table, &entry, 0), IDEM_OK);
    for (uint32_t i = 0; i < CAPACITY - 1; i++)
        is(ask(f, nth(i), 0), IDEM_EXECUTE);
    is(maintain(f, LEASE + RETENTION), IDEM_OK);
    is(f->table.used, 0);
}

/* ---------------------------------------------------------------------------
   the lock
   ------------------------------------------------------------------------ */
struct lock {
    int depth, deepest;
    int taken;
    int refuse;                 // from the call on with this number; 0: none
    void (*on_lock)(void);      // called with the lock held
    void (*on_unlock)(void);    // called when it is not held any more
};

/* May be taken twice, like a recursive mutex. */
static int lock_again(void *ctx)
{
    struct lock *lock = (struct lock *)ctx;
    void (*then)(void) = lock->on_lock;

    lock->taken++;
    if (lock->refuse && lock->taken >= lock->refuse)
        return -1;
    if (++lock->depth > lock->deepest)
        lock->deepest = lock->depth;
    lock->on_lock = NULL;
    if (then)
        then();
    return 0;
}

/* Can tell that it is held, like an error-checking mutex. */
static int lock_once(void *ctx)
{
    struct lock *lock = (struct lock *)ctx;

    return lock->depth ? 1 : lock_again(ctx);
}

static void unlock(void *ctx)
{
    struct lock *lock = (struct lock *)ctx;
    void (*then)(void) = lock->on_unlock;

    assert_true(lock->depth > 0);
    lock->depth--;
    lock->on_unlock = NULL;
    if (then)
        then();
}

/* A table with a claim on "key", and its lock, at rest. */
static void start_locked(fixture *f, struct lock *lock, int (*hook)(void *))
{
    memset(lock, 0, sizeof *lock);
    f->config.lock_ctx = lock;
    f->config.lock = hook;
    f->config.unlock = unlock;
    start(f);
    memset(lock, 0, sizeof *lock);
}

/* Whatever the answer: "key" is claimed, finished, or unknown. */
TEST(every_call_takes_the_lock_once_and_gives_it_back)
{
    struct lock lock;

    for (int round = 0; round < 3; round++)
        for (size_t i = 0; i < COUNT(functions); i++) {
            struct arguments a;
            int answer;
            start_locked(f, &lock, lock_again);
            if (round == 1)
                is(complete(f, &f->claim, "", 0), IDEM_OK);
            if (round == 2)
                is(release(f, &f->claim, 0), IDEM_OK);
            lock.taken = 0;
            arguments_without(&a, f, 0);
            answer = call(functions[i].which, &a);
            // To run a handler is to begin and to complete.
            is(lock.taken,
               functions[i].locks +
                   (functions[i].which == RUN && answer == IDEM_EXECUTE));
            is(lock.depth, 0);
        }
}

TEST(what_is_refused_at_once_leaves_the_lock_alone)
{
    struct lock lock;

    for (size_t i = 0; i < COUNT(functions); i++)
        for (unsigned pointer = CLAIM; pointer <= HORIZON; pointer <<= 1) {
            struct arguments a;
            if (!(functions[i].takes & pointer))
                continue;
            start_locked(f, &lock, lock_again);
            arguments_without(&a, f, pointer);
            is(call(functions[i].which, &a), IDEM_E_ARG);
            is(lock.taken, 0);
        }
}

TEST(nothing_is_copied_without_the_lock)
{
    struct lock lock;
    uint32_t seed = 37;

    start_locked(f, &lock, lock_once);
    unlocked = 0;
    lock_depth = &lock.depth;
    be_busy(&f->table, &f->config, &seed);
    lock_depth = NULL;
    is(unlocked, 0);
    is(lock.depth, 0);
    assert_true(lock.taken > 3000);
}

TEST(s7_a_refused_lock_refuses_the_call)
{
    struct lock lock;

    for (size_t i = 0; i < COUNT(functions); i++) {
        struct arguments a;
        struct image before;
        if (!functions[i].locks)
            continue;
        start_locked(f, &lock, lock_again);
        lock.refuse = 1;
        take_image(&before, f);
        arguments_without(&a, f, 0);
        is(call(functions[i].which, &a), IDEM_E_LOCK);
        is(lock.depth, 0);
        assert_untouched(&before, f);
    }
}

/* What is called in the middle of another call, and what that answered. */
static struct {
    fixture *f;
    int answers[COUNT(functions)];
} nested;

static void call_everything(void)
{
    struct image before;

    take_image(&before, nested.f);
    for (size_t i = 0; i < COUNT(functions); i++) {
        struct arguments a;
        arguments_without(&a, nested.f, 0);
        nested.answers[i] = call(functions[i].which, &a);
        assert_untouched(&before, nested.f);
    }
}

/* Calls everything while a begin copies the response of "key" out. */
static void interrupt_a_replay(fixture *f)
{
    idem_request rq = request_of(f, "panel", "key", "pour");
    idem_claim claim = f->claim;

    is(complete(f, &f->claim, "poured", 0), IDEM_OK);
    nested.f = f;
    memset(nested.answers, 0, sizeof nested.answers);
    f->reply.buffer = f->buffer;
    f->reply.buffer_size = sizeof f->buffer;
    interrupt = call_everything;
    is(idem_begin(&f->table, &claim, &f->reply, &rq, 0), IDEM_REPLAY);
    assert_null(interrupt);
    for (size_t i = 0; i < COUNT(functions); i++)
        is(nested.answers[i], functions[i].locks ? IDEM_E_LOCK : 0);
    assert_string_equal(f->buffer, "poured");
}

TEST(a_call_in_the_middle_of_another_is_refused_by_the_table)
{
    struct lock lock;

    start(f);                               // without hooks: an interrupt
    interrupt_a_replay(f);
    start_locked(f, &lock, lock_again);
    interrupt_a_replay(f);
    is(lock.depth, 0);
    is(lock.deepest, 2);
}

TEST(a_call_in_the_middle_of_another_is_refused_by_the_lock)
{
    struct lock lock;

    start_locked(f, &lock, lock_once);
    interrupt_a_replay(f);
    is(lock.depth, 0);
    is(lock.deepest, 1);
}

static void call_maintain_nested(void)
{
    nested.answers[0] = idem_maintain(&nested.f->table, 0);
}

TEST(a_call_from_a_hook_is_refused_by_a_lock_that_can_tell)
{
    struct lock lock;

    start_locked(f, &lock, lock_once);
    nested.f = f;
    nested.answers[0] = 0;
    lock.on_lock = call_maintain_nested;
    is(renew(f, &f->claim, 0, 0), IDEM_OK);
    is(nested.answers[0], IDEM_E_LOCK);
    is(lock.depth, 0);
}

/* Before the first look at the table and after the last there is nothing to
   protect: such a call, if the lock lets it pass, is done whole. */
TEST(a_call_from_a_hook_that_passes_the_lock_does_no_harm)
{
    struct lock lock;

    for (int after = 0; after < 2; after++) {
        start_locked(f, &lock, lock_again);
        nested.f = f;
        nested.answers[0] = -100;
        if (after)
            lock.on_unlock = call_maintain_nested;
        else
            lock.on_lock = call_maintain_nested;
        is(complete(f, &f->claim, "poured", 0), IDEM_OK);
        assert_true(nested.answers[0] == IDEM_OK ||
                    nested.answers[0] == IDEM_E_LOCK);
        is(lock.depth, 0);
        is(ask(f, "key", 0), IDEM_REPLAY);
    }
}

struct errand {
    fixture *f;
    struct lock *lock;
    int refuse_afterwards;
};

static int use_the_table(void *ctx, idem_outcome *outcome,
                         const idem_request *request, const idem_claim *claim,
                         int answer, uint32_t *now_ms)
{
    struct errand *errand = (struct errand *)ctx;
    idem_claim other;
    idem_reply reply = { .buffer = NULL };
    idem_request rq = request_of(errand->f, "panel", "other", "pour");

    (void)outcome;
    is(answer, IDEM_EXECUTE);
    is(errand->lock->depth, 0);
    is(idem_begin(&errand->f->table, &other, &reply, request, *now_ms),
       IDEM_BUSY);
    is(idem_begin(&errand->f->table, &other, &reply, &rq, *now_ms),
       IDEM_EXECUTE);
    is(idem_release(&errand->f->table, &other, *now_ms), IDEM_OK);
    is(idem_renew(&errand->f->table, claim, 0, *now_ms), IDEM_OK);
    if (errand->refuse_afterwards)
        errand->lock->refuse = 1;
    return 0;
}

TEST(run_lets_go_of_the_lock_while_the_handler_works)
{
    struct lock lock;
    struct errand errand = { .f = f, .lock = &lock };
    idem_request rq = request_of(f, "panel", "errand", "pour");
    idem_reply reply = { .buffer = NULL };
    idem_claim claim;

    start_locked(f, &lock, lock_once);
    is(idem_run(&f->table, &claim, &reply, &rq, use_the_table, &errand, 0),
       IDEM_EXECUTE);
    is(lock.taken, 2 + 4);
    is(lock.depth, 0);
    is(ask(f, "errand", 0), IDEM_REPLAY);
}

TEST(run_reports_a_lock_that_is_refused_at_the_end)
{
    struct lock lock;
    struct errand errand = { .f = f, .lock = &lock, .refuse_afterwards = 1 };
    idem_request rq = request_of(f, "panel", "errand", "pour");
    idem_reply reply = { .buffer = NULL };
    idem_claim claim;

    start_locked(f, &lock, lock_once);
    is(idem_run(&f->table, &claim, &reply, &rq, use_the_table, &errand, 0),
       IDEM_E_LOCK);
    lock.refuse = 0;
    is(complete(f, &claim, "at last", 0), IDEM_OK);
    is(ask(f, "errand", 0), IDEM_REPLAY);
}

/* ---------------------------------------------------------------------------
   results in words
   ------------------------------------------------------------------------ */
TEST(every_result_has_its_own_text)
{
#define ROW(name, value, text) { name, value, text },
    static const struct { int result, value; const char *text; } rows[] = {
        IDEM_RESULTS(ROW)
    };
#undef ROW
    static const int unknown[] = { INT32_MIN, -1000, 1000, INT32_MAX };

    for (size_t i = 0; i < COUNT(rows); i++) {
        is(rows[i].result, rows[i].value);
        assert_string_equal(idem_text(rows[i].result), rows[i].text);
        for (size_t j = 0; j < i; j++)
            assert_string_not_equal(rows[i].text, rows[j].text);
        for (size_t j = 0; j < COUNT(unknown); j++)
            assert_string_not_equal(rows[i].text, idem_text(unknown[j]));
    }
    for (size_t j = 0; j < COUNT(unknown); j++)
        assert_true(strlen(idem_text(unknown[j])) > 0);
}

/* All copying is watched, whatever the test is about. */
__attribute__((constructor)) static void watch_copying(void)
{
    unit_copying = copying;
}
