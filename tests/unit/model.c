/* SPDX-License-Identifier: 0BSD */
/*
 * Shows that a table answers as its manual says, call for call: random calls go
 * to a table and to the model of model.h, and after each of them the answer,
 * all that it hands out, the counters and every invariant must agree.
 *
 * A run is a sequence of rounds.  Each opens a table with a configuration of
 * its own: from a slot to two hundred, small key spaces, so that duplicates,
 * mismatches and full tables are frequent, durations from a millisecond to
 * weeks, and a clock that stands still, steps, jumps to the edge of a deadline,
 * wraps and goes backwards.
 *
 * In the environment, IDEM_CALLS is the number of calls, IDEM_SEED starts the
 * random numbers.  A failure names the seed of its round, which makes that
 * round the first one.
 */
#include "unit.h"

#include "model.h"

#define CALLS_DEFAULT 300000
#define SEED_DEFAULT  1

// Calls from which on every answer of idem_begin must have come.
#define CALLS_FOR_ALL 100000

#define HALF_RANGE UINT32_C(0x80000000)

#define HELD 256

// Filled in where nothing may be written.
#define UNTOUCHED 0x5A

#define LOWEST_RESULT IDEM_E_LOCK
#define RESULTS       (IDEM_MORE - LOWEST_RESULT + 1)

struct run {
    uint64_t limit;             // calls to make
    uint64_t calls;
    uint64_t rounds;
    uint64_t came[32][RESULTS]; // by operation and result
    uint64_t expired, undelivered, evicted, backwards;

    // The round.
    uint64_t seed;
    uint64_t random;
    uint64_t round_calls;
    uint64_t round_limit;
    unsigned operation;
    idem_config config;
    uint32_t *memory;
    idem_table *table;          // one of the two that follow
    idem_table tables[2];
    model model;
    uint32_t tick;
    uint64_t token;             // of the latest claim
    idem_claim held[HELD];      // granted once, current or not
    unsigned held_next;
    unsigned key_count;         // in the key space
    unsigned scope_count, scope_first;
    unsigned digits;            // bytes that tell its keys apart
    int padded;                 // all keys as long as key_max allows
    unsigned span_bits;         // of the longest usual duration
    unsigned anomaly;           // one call in so many; 0: none
};

/* ------------------------------------------------------------- reporting */

static const char *result_name(int64_t result)
{
#define RESULT_NAME(name, value, text)                                         \
    case name:                                                                 \
        return #name;

    switch (result) {
        IDEM_RESULTS(RESULT_NAME)
    default:
        return "not a result";
    }
}

static const char *operation_name(const struct run *r);

static void tell_where(const struct run *r)
{
    print_error("call %" PRIu64 ", %s\n"
                "again: IDEM_SEED=0x%" PRIx64 " IDEM_CALLS=%" PRIu64 "\n",
                r->calls + 1, operation_name(r), r->seed, r->round_calls + 1);
    print_error("tick %" PRIu32 ", clock %" PRIu64 ", capacity %" PRIu32
                ", quota %" PRIu32 ", full %d, attempts %d\n",
                r->tick, r->model.clock, r->config.capacity, r->config.quota,
                r->config.full, r->config.max_attempts);
}

static void expect(const struct run *r, const char *what, uint64_t expected,
                   uint64_t got)
{
    if (expected == got)
        return;
    tell_where(r);
    print_error("%s: expected %" PRIu64 ", got %" PRIu64 "\n", what, expected,
                got);
    fail();
}

static void expect_answer(const struct run *r, int expected, int got)
{
    if (expected == got)
        return;
    tell_where(r);
    print_error("result: expected %s, got %s\n", result_name(expected),
                result_name(got));
    fail();
}

/* The same, for what an operation answers in the end. */
static void expect_result(struct run *r, int expected, int got)
{
    expect_answer(r, expected, got);
    r->came[r->operation][got - LOWEST_RESULT]++;
}

static void expect_bytes(const struct run *r, const char *what,
                         const void *expected, const void *got, size_t len)
{
    const uint8_t *e = (const uint8_t *)expected;
    const uint8_t *g = (const uint8_t *)got;
    size_t i;

    if (len == 0 || memcmp(e, g, len) == 0)
        return;
    for (i = 0; e[i] == g[i];)
        i++;
    tell_where(r);
    print_error("%s, byte %zu of %zu: expected %02x, got %02x\n", what, i, len,
                e[i], g[i]);
    fail();
}

static void expect_untouched(const struct run *r, const uint8_t *bytes,
                             size_t len)
{
    size_t i;

    for (i = 0; i < len; i++)
        expect(r, "a byte that nobody asked for", UNTOUCHED, bytes[i]);
}

/* What holds after every call.  The table drops keys when it comes by, the
   model at once: dropped or still there, the sum is the same. */
static void settle(struct run *r)
{
    const idem_stats *want = &r->model.stats;
    const idem_stats *got = &r->table->stats;
    size_t i;

    expect(r, "idem_check", 0, (uint64_t)idem_check(r->table));
    expect(r, "used + stats.expired", r->model.count + want->expired,
           r->table->used + got->expired);
    expect(r, "pending + stats.undelivered",
           model_pending_count(&r->model) + want->undelivered,
           r->table->pending + got->undelivered);
    expect(r, "used at least", 1, r->table->used >= r->model.count);
    expect(r, "stats.evicted", want->evicted, got->evicted);
    expect(r, "stats.full", want->full, got->full);
    expect(r, "stats.fenced", want->fenced, got->fenced);
    expect(r, "stats.backwards", want->backwards, got->backwards);
    for (i = 0; i < COUNT(want->answers); i++)
        expect(r, "stats.answers", want->answers[i], got->answers[i]);
    r->calls++;
    r->round_calls++;
}

/* -------------------------------------------------------------- choosing */

/* SplitMix64 of Steele, Lea and Flood. */
static uint64_t random64(struct run *r)
{
    uint64_t z = r->random += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static uint32_t below(struct run *r, uint32_t limit)
{
    return (uint32_t)((random64(r) >> 32) * limit >> 32);
}

static int one_in(struct run *r, uint32_t n)
{
    return below(r, n) == 0;
}

/* Up to `max`, and once in `often` times perhaps one more than is allowed. */
static uint32_t length(struct run *r, uint32_t max, uint32_t often)
{
    return below(r, max + (one_in(r, often) ? 2u : 1u));
}

/* One that is a half, a quarter, an eighth ... of 2^bits, equally often. */
static uint32_t duration(struct run *r, unsigned bits)
{
    return (uint32_t)(random64(r) >> 32) >> (32 - 1 - below(r, bits));
}

/* The next moment at which something ends by itself, or MODEL_NEVER; of all
   keys or, now and then, of one. */
static uint64_t next_end(struct run *r)
{
    size_t only = one_in(r, 4) ? below(r, MODEL_KEYS) : MODEL_KEYS;
    uint64_t next = MODEL_NEVER;
    size_t i;

    for (i = 0; i < r->model.count; i++) {
        const model_key *k = &r->model.keys[i];
        uint64_t end = model_due(k);
        if (only < r->model.count && i != only)
            continue;
        if (k->status == IDEM_IN_PROGRESS && k->lease_end > r->model.clock)
            end = k->lease_end;
        if (end < next)
            next = end;
    }
    return next;
}

/* How far it is to the edge of that, if less than `limit`, else 0. */
static uint32_t to_the_edge(struct run *r, uint64_t limit)
{
    uint64_t end = next_end(r);
    uint64_t far;

    if (end == MODEL_NEVER)
        return 0;
    far = end + below(r, 3) - 1 - r->model.clock;
    return far < limit ? (uint32_t)far : 0;
}

/* What a tick must not do, and does. */
static uint32_t strange_step(struct run *r)
{
    static const uint32_t edges[] = {
        UINT32_MAX, HALF_RANGE, HALF_RANGE + 1, HALF_RANGE - 1, HALF_RANGE / 2,
        UINT32_C(1) << 28, (UINT32_C(1) << 28) - 1,
        UINT32_MAX - 65534, UINT32_MAX - 65535, UINT32_MAX - 65536,
    };

    switch (below(r, 4)) {
    case 0:
        return edges[below(r, COUNT(edges))];
    case 1:
        return 0u - duration(r, 32);
    case 2:
        return duration(r, 31);
    default:
        return (uint32_t)random64(r);
    }
}

/* The time of the next call. */
static uint32_t choose_tick(struct run *r)
{
    uint32_t kind = below(r, 16);

    if (r->anomaly && one_in(r, r->anomaly))
        r->tick += strange_step(r);
    else if (kind < 2)
        r->tick += to_the_edge(r, HALF_RANGE);
    else if (kind < 3)
        r->tick += duration(r, r->span_bits);
    else if (kind < 8)
        r->tick += below(r, 3);
    return r->tick;
}

/* A request, and the bytes that it is about */
struct command {
    idem_request rq;
    uint8_t key[MODEL_ID + 1];
    uint8_t payload[MODEL_PAYLOAD];
};

/* A key of the key space.  Its scope and the start of its key are often "abc"
   together, divided here or there; so only the border tells keys apart, or only
   the scope. */
static void choose_id(struct run *r, struct command *c, uint32_t number)
{
    static const char *const scopes[] = { "", "a", "ab", "abc", "b", "xbc" };
    static const uint8_t alphabet[] = { 0, 'a', 0xFF };
    const char *scope =
        scopes[(r->scope_first + number % r->scope_count) % COUNT(scopes)];
    size_t scope_len = strlen(scope);
    uint32_t rest = number / r->scope_count;
    size_t len = 0;

    if (rest % 2 == 0) {
        len = 3 - scope_len;
        memcpy(c->key, &"abc"[scope_len], len);
    }
    do {
        c->key[len++] = alphabet[rest % 3];
        rest /= 3;
    } while (rest > 0);
    while (r->padded && scope_len + len < r->config.key_max)
        c->key[len++] = 'x';
    c->rq.scope = scope_len || one_in(r, 2) ? scope : NULL;
    c->rq.scope_len = scope_len;
    c->rq.key = c->key;
    c->rq.key_len = len;
}

/* Five commands that differ in little; a key mostly comes with its own. */
static void choose_payload(struct run *r, struct command *c, uint32_t number)
{
    uint32_t variant = one_in(r, 12) ? below(r, 5) : number % 5;
    size_t len = number % 9 + 1;

    memset(c->payload, 'p', sizeof c->payload);
    if (variant < 2) {
        c->rq.has_fingerprint = one_in(r, 2) ? 1 : 0x80;
        c->rq.fingerprint = number | (uint64_t)variant << 32;
        return;
    }
    if (variant == 2)
        len = 0;
    if (variant == 3)
        c->payload[len - 1]++;
    c->rq.payload = len || one_in(r, 2) ? c->payload : NULL;
    c->rq.payload_len = len;
}

static uint32_t choose_lease(struct run *r)
{
    switch (below(r, 32)) {
    case 0:
        return IDEM_LEASE_NONE;
    case 1:
        return IDEM_LEASE_MAX;
    case 2:
    case 3:
    case 4:
    case 5:
    case 6:
        return 0;
    default:
        return duration(r, r->span_bits < 30 ? r->span_bits : 29);
    }
}

static uint32_t choose_retention(struct run *r)
{
    uint32_t ms;

    if (one_in(r, 3))
        return 0;
    if (one_in(r, 40))
        return IDEM_RETENTION_MAX;
    ms = duration(r, r->span_bits);
    return ms < IDEM_RETENTION_MAX ? ms : IDEM_RETENTION_MAX;
}

/* Ages are most interesting where they reach just as far as memory. */
static uint32_t choose_age(struct run *r, const idem_request *rq)
{
    uint64_t edge = 0;

    switch (below(r, 4)) {
    case 0:
        return duration(r, one_in(r, 4) ? 32 : r->span_bits);
    case 1:
        edge = r->model.clock;
        break;
    case 2:
        edge = model_retention_of(&r->model, rq);
        break;
    default:
        edge = r->model.clock - r->model.reach;
    }
    edge = edge + below(r, 5) - 1;
    return edge <= UINT32_MAX ? (uint32_t)edge : UINT32_MAX;
}

static void choose_command(struct run *r, struct command *c)
{
    uint32_t number = below(r, r->key_count);

    memset(c, 0, sizeof *c);
    choose_id(r, c, number);
    choose_payload(r, c, number);
    c->rq.lease_ms = choose_lease(r);
    c->rq.retention_ms = choose_retention(r);
    if (!one_in(r, 3))
        c->rq.response_size = (uint16_t)length(r, r->config.response_max, 20);
    if (one_in(r, 6))
        c->rq.age_ms = choose_age(r, &c->rq);
}

/* A claim that is not one: it has the number of another slot, or a token that
   differs in its high half only.  Or the claim of zeros. */
static void forge(struct run *r, idem_claim *claim)
{
    switch (below(r, 4)) {
    case 0:
        claim->slot = (claim->slot + 1) % (r->config.capacity + 1);
        break;
    case 1:
        claim->slot = one_in(r, 2) ? UINT32_MAX : r->config.capacity;
        break;
    case 2:
        claim->token ^= (idem_token)1
                        << (8 * sizeof claim->token - 1 - below(r, 8));
        break;
    default:
        memset(claim, 0, sizeof *claim);
    }
}

/* Looks for the claim of a key in progress; or, if outcome is set, for the name
   of an outcome.  Returns whether one was found. */
static int choose_live(struct run *r, idem_claim *claim, int outcome)
{
    size_t count = r->model.count;
    size_t at = count ? below(r, (uint32_t)count) : 0;
    size_t i, j;

    for (i = 0; i < count; i++) {
        const model_key *k = &r->model.keys[(at + i) % count];
        if ((k->status != IDEM_IN_PROGRESS) != outcome)
            continue;
        for (j = 0; j < HELD; j++) {
            *claim = r->held[j];
            if (claim->token == k->token)
                return 1;
        }
    }
    return 0;
}

/* One that is of use, or any granted in this round, or a forged one.  Returns
   its token, 0 if it is forged. */
static uint64_t choose_claim(struct run *r, idem_claim *claim, int outcome)
{
    if (one_in(r, 5) || !choose_live(r, claim, outcome))
        *claim = r->held[below(r, HELD)];
    if (!one_in(r, 30))
        return claim->token;
    forge(r, claim);
    return 0;
}

static void hold(struct run *r, const idem_claim *claim)
{
    r->token = claim->token;
    r->held[r->held_next++ % HELD] = *claim;
}

/* Bytes of an outcome: what they are made of is its code. */
struct result {
    idem_outcome out;
    uint8_t response[MODEL_RESPONSE + 1];
    uint8_t state[MODEL_STATE + 1];
};

static void choose_outcome(struct run *r, struct result *o)
{
    size_t i;

    memset(o, 0, sizeof *o);
    o->out.code = (int32_t)(uint32_t)random64(r);
    for (i = 0; i < sizeof o->response; i++)
        o->response[i] = (uint8_t)((uint32_t)o->out.code + i);
    for (i = 0; i < sizeof o->state; i++)
        o->state[i] = (uint8_t)((uint32_t)o->out.code ^ i);
    o->out.response_len = length(r, r->config.response_max, 8);
    if (one_in(r, 2))
        o->out.response_len /= 4;
    o->out.response = o->out.response_len ? o->response : NULL;
    if (one_in(r, 3)) {
        o->out.state = o->state;
        o->out.state_len = length(r, r->config.state_max, 16);
    }
    o->out.failed = one_in(r, 4) ? (uint8_t)(1 + below(r, 255)) : 0;
    o->out.confirm = one_in(r, 3) ? (uint8_t)(1 + below(r, 255)) : 0;
}

/* ------------------------------------------------------------- comparing */

static void compare_entry(struct run *r, const model_key *k,
                          const idem_entry *e)
{
    const model *m = &r->model;

    expect(r, "scope_len", k->scope_len, e->scope_len);
    expect(r, "key_len", k->key_len, e->key_len);
    expect(r, "status", (uint64_t)k->status, (uint64_t)e->status);
    expect(r, "attempts", k->attempts, e->attempts);
    expect(r, "undelivered", (uint64_t)k->undelivered,
           (uint64_t)e->undelivered);
    if (k->has_fingerprint)
        expect(r, "fingerprint", k->fingerprint, e->fingerprint);
    if (k->status == IDEM_IN_PROGRESS) {
        expect(r, "response_len", k->reserved, e->response_len);
        expect(r, "left_ms", model_lease_left(m, k), e->left_ms);
        expect(r, "claim.token", 0, e->claim.token);
        return;
    }
    expect(r, "response_len", k->response_len, e->response_len);
    expect(r, "left_ms", model_due(k) - m->clock, e->left_ms);
    expect(r, "age_ms", m->clock - k->completed, e->age_ms);
    expect(r, "code", (uint32_t)k->code, (uint32_t)e->code);
    expect(r, "claim.token", k->token, e->claim.token);
    expect(r, "claim.attempt", k->attempts, e->claim.attempt);
}

static void compare_id(const struct run *r, const model_key *k,
                       const uint8_t *id, size_t size)
{
    size_t len = k->scope_len + k->key_len;

    if (len > size)
        len = 0;
    expect_bytes(r, "id", k->id, id, len);
    expect_untouched(r, id + len, MODEL_ID - len);
}

static void compare_reply(const struct run *r, int result,
                          const idem_reply *want, const idem_reply *got)
{
    const uint8_t *buffer = (const uint8_t *)got->buffer;
    size_t len = want->response_len;

    expect(r, "reply.status", (uint64_t)want->status, (uint64_t)got->status);
    expect(r, "reply.code", (uint32_t)want->code, (uint32_t)got->code);
    expect(r, "reply.response_len", len, got->response_len);
    expect(r, "reply.age_ms", want->age_ms, got->age_ms);
    expect(r, "reply.claim.token", want->claim.token, got->claim.token);
    expect(r, "reply.claim.attempt", want->claim.attempt, got->claim.attempt);
    if (result == IDEM_E_FULL)
        expect(r, "reply.retry_after_ms is not too long", 1,
               got->retry_after_ms <= want->retry_after_ms);
    else
        expect(r, "reply.retry_after_ms", want->retry_after_ms,
               got->retry_after_ms);
    if (!buffer)
        return;
    if (len > got->buffer_size)
        len = 0;
    expect_bytes(r, "response", want->buffer, buffer, len);
    expect_untouched(r, buffer + len, MODEL_RESPONSE - len);
}

/* A claim that was granted, or is zeroed. */
static void compare_claim(struct run *r, const idem_claim *want,
                          const idem_claim *got)
{
    expect(r, "claim.token", want->token, got->token);
    expect(r, "claim.attempt", want->attempt, got->attempt);
    if (!got->token) {
        expect(r, "claim.slot", 0, got->slot);
        return;
    }
    expect(r, "claim.slot is one", 1, got->slot < r->config.capacity);
    expect(r, "claim.token increases", 1, got->token > r->token);
    hold(r, got);
}

static void prepare_reply(struct run *r, idem_reply *reply, uint8_t *buffer)
{
    memset(buffer, UNTOUCHED, MODEL_RESPONSE);
    memset(reply, UNTOUCHED, sizeof *reply);
    reply->buffer = one_in(r, 8) ? NULL : buffer;
    reply->buffer_size = one_in(r, 4) ? below(r, 12) : MODEL_RESPONSE;
}

/* Asks the model what the table was asked, and compares the answer and the
   claim; *want is the reply to be expected. */
static void compare_begin(struct run *r, int answer, const idem_claim *claim,
                          idem_reply *want, const idem_request *rq,
                          uint32_t now_ms)
{
    idem_claim want_claim;
    int expected = model_begin(&r->model, &want_claim, want, rq, claim->token,
                               now_ms);

    expect_answer(r, expected, answer);
    compare_claim(r, &want_claim, claim);
}

/* ------------------------------------------------------------ operations */

/* A payload that arrived in pieces is still the same payload. */
static void hash_in_pieces(struct run *r, idem_request *rq)
{
    const uint8_t *payload = (const uint8_t *)rq->payload;
    size_t first = below(r, (uint32_t)rq->payload_len + 1);
    idem_fingerprint_state pieces;

    idem_fingerprint_init(&pieces, &r->config);
    idem_fingerprint_update(&pieces, payload, first);
    if (first < rq->payload_len)
        idem_fingerprint_update(&pieces, payload + first,
                                rq->payload_len - first);
    rq->fingerprint = idem_fingerprint_final(&pieces);
    rq->has_fingerprint = 1;
}

static int begin(struct run *r, const struct command *c, uint32_t now)
{
    uint8_t buffer[MODEL_RESPONSE];
    idem_request asked = c->rq;
    idem_claim claim;
    idem_reply reply, want;
    int result;

    prepare_reply(r, &reply, buffer);
    memset(&claim, UNTOUCHED, sizeof claim);
    if (!asked.has_fingerprint && one_in(r, 3))
        hash_in_pieces(r, &asked);
    result = idem_begin(r->table, &claim, &reply, &asked, now);
    compare_begin(r, result, &claim, &want, &c->rq, now);
    compare_reply(r, result, &want, &reply);
    r->came[0][result - LOWEST_RESULT]++;
    settle(r);
    return result;
}

/* The time of a call that needs the request to be right.  Whether a refused
   call moves the clock is not promised, so then it stands still. */
static uint32_t choose_tick_for(struct run *r, int right)
{
    return right < 0 ? r->tick : choose_tick(r);
}

static void op_begin(struct run *r)
{
    struct command c;

    choose_command(r, &c);
    begin(r, &c, choose_tick_for(r, model_request_right(&r->model, &c.rq)));
}

/* Every attempt is cut short, until none is allowed any more. */
static void op_wear_out(struct run *r)
{
    struct command c;
    int result;

    choose_command(r, &c);
    if (model_request_right(&r->model, &c.rq) < 0)
        return;
    do {
        const model_key *k = model_lookup(&r->model, &c.rq);
        uint32_t left = k ? model_lease_left(&r->model, k) : 0;
        if (left < IDEM_LEASE_NONE)
            r->tick += left;
        result = begin(r, &c, r->tick);
    } while (result == IDEM_EXECUTE || result == IDEM_RECOVER);
}

static void op_complete(struct run *r)
{
    struct result o;
    idem_claim claim;
    uint64_t token = choose_claim(r, &claim, 0);
    uint32_t now = choose_tick(r);
    int result;

    choose_outcome(r, &o);
    result = idem_complete(r->table, &claim, &o.out, now);
    expect_result(r, model_complete(&r->model, token, &o.out, now), result);
    settle(r);
}

static void op_release(struct run *r)
{
    idem_claim claim;
    uint64_t token = choose_claim(r, &claim, 0);
    uint32_t now = choose_tick(r);
    int result = idem_release(r->table, &claim, now);

    expect_result(r, model_release(&r->model, token, now), result);
    settle(r);
}

static void op_renew(struct run *r)
{
    idem_claim claim;
    uint64_t token = choose_claim(r, &claim, 0);
    uint32_t lease_ms = choose_lease(r);
    uint32_t now = choose_tick(r);
    int result = idem_renew(r->table, &claim, lease_ms, now);

    expect_result(r, model_renew(&r->model, token, lease_ms, now), result);
    settle(r);
}

#define NOT_HANDLED (-1000)

/* What the handler of idem_run does, and what it was told. */
struct job {
    struct run *run;
    struct result result;
    idem_claim claim;
    int answer;                 // or NOT_HANDLED
    int release;
    uint32_t now;               // at its end
};

static int handle(void *ctx, idem_outcome *outcome, const idem_request *request,
                  const idem_claim *claim, int answer, uint32_t *now_ms)
{
    struct job *job = (struct job *)ctx;

    (void)request;
    job->answer = answer;
    job->claim = *claim;
    job->now = choose_tick(job->run);
    *now_ms = job->now;
    *outcome = job->result.out;
    return job->release;
}

/* The second half of idem_run: how the job ended. */
static void compare_job(struct run *r, const struct job *job, int result,
                        const idem_reply *reply)
{
    uint64_t token = job->claim.token;
    int ended = job->release
                    ? model_release(&r->model, token, job->now)
                    : model_complete(&r->model, token, &job->result.out,
                                     job->now);
    idem_reply want;

    memset(&want, 0, sizeof want);
    if (ended == IDEM_OK && job->release) {
        ended = IDEM_RELEASED;
    } else if (ended == IDEM_OK) {
        model_replay(&r->model, model_outcome(&r->model, token), &want);
        ended = job->answer;
    }
    expect_result(r, ended, result);
    compare_reply(r, result, &want, reply);
}

static void op_run(struct run *r)
{
    uint8_t buffer[MODEL_RESPONSE];
    struct command c;
    struct job job;
    idem_claim claim;
    idem_reply reply, want;
    uint32_t now;
    int result;

    choose_command(r, &c);
    choose_outcome(r, &job.result);
    prepare_reply(r, &reply, buffer);
    memset(&claim, UNTOUCHED, sizeof claim);
    now = choose_tick_for(r, model_request_right(&r->model, &c.rq));
    job.run = r;
    job.answer = NOT_HANDLED;
    job.release = one_in(r, 6);
    result = idem_run(r->table, &claim, &reply, &c.rq, handle, &job, now);
    compare_begin(r, job.answer == NOT_HANDLED ? result : job.answer, &claim,
                  &want, &c.rq, now);
    if (job.answer == NOT_HANDLED) {
        expect(r, "granted, but not handled", 0, claim.token);
        expect_result(r, result, result);
        compare_reply(r, result, &want, &reply);
    } else {
        expect(r, "the handler's token", claim.token, job.claim.token);
        compare_job(r, &job, result, &reply);
    }
    settle(r);
}

static void op_maintain(struct run *r)
{
    uint32_t now = choose_tick(r);
    int result = idem_maintain(r->table, now);

    expect_result(r, model_maintain(&r->model, now), result);
    if (r->config.capacity <= MODEL_MAINTAIN)
        expect(r, "used after maintenance", r->model.count, r->table->used);
    settle(r);
}

static void op_elapse(struct run *r)
{
    uint32_t off_ms = to_the_edge(r, UINT64_C(1) << 32);

    if (one_in(r, 2))
        off_ms = duration(r, r->span_bits);
    if (r->anomaly && one_in(r, r->anomaly))
        off_ms = one_in(r, 2) ? UINT32_MAX : duration(r, 32);
    expect_result(r, IDEM_OK, idem_elapse(r->table, off_ms));
    model_elapse(&r->model, off_ms);
    settle(r);
}

static void op_find(struct run *r)
{
    uint8_t id[MODEL_ID];
    idem_entry entry;
    const model_key *found = NULL;
    struct command c;
    uint32_t now;
    int result;

    choose_command(r, &c);
    memset(id, UNTOUCHED, sizeof id);
    memset(&entry, 0, sizeof entry);
    entry.id = id;
    entry.id_size = one_in(r, 4) ? below(r, 8) : sizeof id;
    entry.cursor = 17;
    now = choose_tick_for(r, model_id_right(&r->model, &c.rq));
    result = idem_find(r->table, &entry, &c.rq, now);
    expect_result(r, model_find(&r->model, &found, &c.rq, now), result);
    expect(r, "entry.cursor", 17, entry.cursor);
    if (result == IDEM_OK) {
        compare_entry(r, found, &entry);
        compare_id(r, found, id, entry.id_size);
    } else {
        expect_untouched(r, id, sizeof id);
    }
    settle(r);
}

static void op_forget(struct run *r)
{
    struct command c;
    uint32_t now;
    int result;

    choose_command(r, &c);
    now = choose_tick_for(r, model_id_right(&r->model, &c.rq));
    result = idem_forget(r->table, &c.rq, now);
    expect_result(r, model_forget(&r->model, &c.rq, now), result);
    settle(r);
}

/* The table's contents, whole: each key of it is in the model as it is, and
   they are as many. */
static void op_next(struct run *r)
{
    uint8_t id[MODEL_ID];
    idem_entry entry;
    size_t seen = 0;
    int result;

    memset(&entry, 0, sizeof entry);
    entry.id = id;
    entry.id_size = sizeof id;
    (void)choose_tick(r);
    for (;;) {
        const model_key *k;
        idem_request rq = { 0 };
        model_tick(&r->model, r->tick);
        memset(id, UNTOUCHED, sizeof id);
        result = idem_next(r->table, &entry, r->tick);
        expect_result(r, result == IDEM_OK ? IDEM_OK : IDEM_E_NOT_FOUND,
                      result);
        settle(r);
        if (result != IDEM_OK)
            break;
        rq.scope = id;
        rq.scope_len = entry.scope_len;
        rq.key = id + entry.scope_len;
        rq.key_len = entry.key_len;
        k = model_lookup(&r->model, &rq);
        expect(r, "a key of idem_next is known", 1, k != NULL);
        compare_entry(r, k, &entry);
        compare_id(r, k, id, sizeof id);
        seen++;
    }
    expect(r, "keys seen by idem_next", r->model.count, seen);
}

/* Walks the queue of results, delivers some, sometimes while time passes. */
static void op_pending(struct run *r)
{
    int hurry = one_in(r, 2);
    uint8_t id[MODEL_ID];
    idem_entry entry;
    int result;

    memset(&entry, 0, sizeof entry);
    entry.id = id;
    entry.id_size = sizeof id;
    do {
        uint32_t now = hurry ? r->tick : choose_tick(r);
        uint64_t after = entry.claim.token;
        const model_key *found;
        memset(id, UNTOUCHED, sizeof id);
        result = idem_pending(r->table, &entry, now);
        expect_result(r, model_pending(&r->model, &found, after, now), result);
        if (result == IDEM_OK) {
            compare_entry(r, found, &entry);
            compare_id(r, found, id, sizeof id);
        }
        settle(r);
        if (result == IDEM_OK && one_in(r, 2)) {
            expect_result(r, IDEM_OK,
                          idem_delivered(r->table, &entry.claim));
            model_delivered(&r->model, entry.claim.token);
            settle(r);
        }
    } while (result == IDEM_OK && (hurry || !one_in(r, 8)));
}

static void op_delivered(struct run *r)
{
    idem_claim claim;
    uint64_t token = choose_claim(r, &claim, 1);
    int result = idem_delivered(r->table, &claim);

    expect_result(r, model_delivered(&r->model, token), result);
    settle(r);
}

static void op_response(struct run *r)
{
    uint8_t piece[MODEL_RESPONSE];
    const uint8_t *want_piece = NULL;
    idem_claim claim;
    uint64_t token = choose_claim(r, &claim, 1);
    size_t at = one_in(r, 20) ? SIZE_MAX : below(r, r->config.response_max + 2);
    size_t len = one_in(r, 4) ? sizeof piece : below(r, 8);
    size_t want_len = len;
    int result;

    if (one_in(r, 3))
        at = 0;
    memset(piece, UNTOUCHED, sizeof piece);
    result = idem_response(r->table, len ? piece : NULL, &len, &claim, at);
    expect_result(r, model_response(&r->model, &want_piece, &want_len, token,
                                    at), result);
    expect(r, "len", want_len, len);
    expect_bytes(r, "piece", want_piece, piece, len);
    expect_untouched(r, piece + len, sizeof piece - len);
    settle(r);
}

static void op_state(struct run *r)
{
    uint8_t state[MODEL_STATE];
    size_t len = below(r, sizeof state + 1);
    size_t want_len = len;
    int result;

    memset(state, UNTOUCHED, sizeof state);
    result = idem_state(r->table, len ? state : NULL, &len);
    expect_result(r, model_state(&r->model, &want_len), result);
    expect(r, "len", want_len, len);
    if (result < 0)
        len = 0;
    expect_bytes(r, "state", r->model.state, state, len);
    expect_untouched(r, state + len, sizeof state - len);
    settle(r);
}

static void op_horizon(struct run *r)
{
    uint32_t horizon = 0;
    uint32_t now = choose_tick(r);

    expect_result(r, IDEM_OK, idem_horizon(r->table, &horizon, now));
    expect(r, "horizon", model_horizon(&r->model, now), horizon);
    settle(r);
}

/* A table may be moved while no call is under way. */
static void op_move(struct run *r)
{
    idem_table *from = r->table;

    r->table = from == r->tables ? &r->tables[1] : &r->tables[0];
    *r->table = *from;
    memset(from, UNTOUCHED, sizeof *from);
}

/* --------------------------------------------------------------- mistakes */

static int mistaken_begin(struct run *r, const idem_request *rq)
{
    uint8_t buffer[MODEL_RESPONSE];
    idem_claim claim;
    idem_reply reply, want;
    int result;

    prepare_reply(r, &reply, buffer);
    memset(&claim, UNTOUCHED, sizeof claim);
    memset(&want, 0, sizeof want);
    result = idem_begin(r->table, &claim, &reply, rq, r->tick);
    if (rq)
        compare_begin(r, result, &claim, &want, rq, r->tick);
    compare_reply(r, result, &want, &reply);
    return result;
}

/* A request that is right but for one thing. */
static void op_begin_mistaken(struct run *r)
{
    uint32_t kind = below(r, 8);
    struct command c;

    choose_command(r, &c);
    if (model_request_right(&r->model, &c.rq) < 0)
        return;
    switch (kind) {
    case 0:
        c.rq.key_len = 0;
        break;
    case 1:
        c.rq.key = NULL;
        break;
    case 2:
        c.rq.scope = NULL;
        c.rq.scope_len = 1;
        c.rq.key_len = 1;
        break;
    case 3:
        c.rq.payload = NULL;
        c.rq.payload_len = 1;
        break;
    case 4:
        c.rq.lease_ms = IDEM_LEASE_MAX + 1 + below(r, 2) * 0xDFFFFFFDu;
        break;
    case 5:
        c.rq.retention_ms = IDEM_RETENTION_MAX + 1;
        break;
    case 6:
        c.rq.scope_len = SIZE_MAX - below(r, 4);
        c.rq.scope = c.payload;
        break;
    default:
        c.rq.key_len = r->config.key_max + 1u - c.rq.scope_len;
    }
    r->came[0][mistaken_begin(r, &c.rq) - LOWEST_RESULT]++;
    settle(r);
}

/* Other calls that are refused, and change nothing. */
static void op_mistake(struct run *r)
{
    idem_table *t = r->table;
    idem_claim claim;
    idem_outcome out = { 0 };
    idem_entry entry = { 0 };
    idem_request rq = { 0 };
    size_t len = 1;
    int result;

    choose_claim(r, &claim, 0);
    switch (below(r, 10)) {
    case 0:
        out.response_len = 1;
        result = idem_complete(t, &claim, &out, r->tick);
        break;
    case 1:
        out.state_len = 1;
        result = idem_complete(t, &claim, &out, r->tick);
        break;
    case 2:
        result = idem_complete(t, &claim, NULL, r->tick);
        break;
    case 3:
        result = idem_renew(t, &claim, IDEM_LEASE_NONE - 1, r->tick);
        break;
    case 4:
        result = idem_release(t, NULL, r->tick);
        break;
    case 5:
        result = idem_find(t, &entry, &rq, r->tick);
        break;
    case 6:
        result = idem_forget(t, &rq, r->tick);
        break;
    case 7:
        result = idem_response(t, NULL, &len, &claim, 0);
        break;
    case 8:
        result = idem_state(t, NULL, &len);
        break;
    default:
        result = mistaken_begin(r, NULL);
    }
    expect_result(r, IDEM_E_ARG, result);
    settle(r);
}

/* ------------------------------------------------------------ the rounds */

static const struct operation {
    const char *name;
    unsigned weight;
    void (*call)(struct run *r);
} operations[] = {
    { "idem_begin", 100, op_begin },
    { "idem_complete", 40, op_complete },
    { "idem_release", 6, op_release },
    { "idem_renew", 12, op_renew },
    { "idem_run", 8, op_run },
    { "idem_maintain", 4, op_maintain },
    { "idem_elapse", 4, op_elapse },
    { "idem_find", 8, op_find },
    { "idem_forget", 6, op_forget },
    { "idem_next", 1, op_next },
    { "idem_pending", 3, op_pending },
    { "idem_delivered", 8, op_delivered },
    { "idem_response", 8, op_response },
    { "idem_state", 3, op_state },
    { "idem_horizon", 4, op_horizon },
    { "another mistake", 3, op_mistake },
    // What follows is counted as idem_begin, or not at all.
    { "wearing out", 1, op_wear_out },
    { "idem_begin, mistaken", 3, op_begin_mistaken },
    { "moving", 1, op_move },
};

static const char *operation_name(const struct run *r)
{
    return operations[r->operation].name;
}

static void call_one(struct run *r)
{
    uint32_t total = 0, pick;
    unsigned i;

    for (i = 0; i < COUNT(operations); i++)
        total += operations[i].weight;
    pick = below(r, total);
    for (i = 0; pick >= operations[i].weight; i++)
        pick -= operations[i].weight;
    r->operation = i;
    operations[i].call(r);
}

/* Key space and clock. */
static void choose_world(struct run *r)
{
    uint32_t capacity = r->config.capacity;
    uint32_t rest;

    r->scope_count = 1 + below(r, 4);
    r->scope_first = below(r, 6);
    r->key_count = 1 + below(r, 2 * capacity + 4);
    r->digits = 1;
    for (rest = r->key_count / r->scope_count; rest >= 3; rest /= 3)
        r->digits++;
    r->padded = one_in(r, 4);
    r->span_bits = 2 + below(r, 31);
    r->anomaly = one_in(r, 3) ? 0 : one_in(r, 2) ? 20 : 500;
    switch (below(r, 4)) {
    case 0:
        r->tick = 0;
        break;
    case 1:
        r->tick = 0u - below(r, 100);
        break;
    default:
        r->tick = (uint32_t)random64(r);
    }
}

static void choose_limits(struct run *r)
{
    idem_config *c = &r->config;
    unsigned longest = 3 + r->digits;

    c->key_max = (uint8_t)(longest + below(r, 3));
    if (one_in(r, 10))
        c->key_max = (uint8_t)(1 + below(r, longest));
    if (one_in(r, 20))
        c->key_max = 255;
    c->response_max = (uint16_t)below(r, 21);
    if (one_in(r, 20))
        c->response_max = 300;
    c->state_max = (uint16_t)below(r, 9);
    c->lease_ms = choose_lease(r);
    c->retention_ms = choose_retention(r);
    c->quota = one_in(r, 2) ? 0 : below(r, 6);
    c->full = one_in(r, 2) ? IDEM_REJECT : IDEM_EVICT_OLDEST;
    c->max_attempts = (uint8_t)(one_in(r, 20) ? 255 : below(r, 6));
}

static void choose_config(struct run *r)
{
    // Where the steps of maintenance end, and where they do not.
    static const uint32_t large[] = { 63, 64, 65, 128, 129, 200 };
    idem_config *c = &r->config;
    size_t i;

    memset(c, 0, sizeof *c);
    c->capacity = one_in(r, 16) ? large[below(r, COUNT(large))]
                                : 1 + below(r, one_in(r, 2) ? 6 : 40);
    choose_world(r);
    choose_limits(r);
    for (i = 0; i < sizeof c->secret; i++)
        c->secret[i] = (uint8_t)random64(r);
    c->secret[0] |= 1;
}

/* Opens a table in memory that is exactly as large as it must be, and full of
   what others left behind. */
static void open_round(struct run *r)
{
    const idem_config *c = &r->config;
    size_t size = IDEM_MEMORY_SIZE(c->capacity, c->key_max, c->response_max,
                                   c->state_max);

    r->memory = (uint32_t *)malloc(size);
    assert_non_null(r->memory);
    memset(r->memory, UNTOUCHED, size);
    r->table = r->tables;
    memset(r->table, UNTOUCHED, sizeof *r->table);
    assert_int_equal(idem_open(r->table, c, r->memory, size - 1, r->tick),
                     IDEM_E_MEMORY);
    assert_int_equal(r->table->needed, size);
    assert_int_equal(idem_find(r->table, NULL, NULL, r->tick), IDEM_E_ARG);
    assert_int_equal(idem_open(r->table, c, r->memory, size, r->tick),
                     IDEM_OK);
    model_open(&r->model, c, r->tick);
    assert_int_equal(idem_check(r->table), 0);
}

static void play_round(struct run *r)
{
    r->random = r->seed;
    r->round_calls = 0;
    r->token = 0;
    r->held_next = 0;
    memset(r->held, 0, sizeof r->held);
    choose_config(r);
    r->round_limit = 100 + duration(r, 13);
    open_round(r);
    while (r->round_calls < r->round_limit && r->calls < r->limit)
        call_one(r);
    free(r->memory);
    r->expired += r->model.stats.expired;
    r->undelivered += r->model.stats.undelivered;
    r->evicted += r->model.stats.evicted;
    r->backwards += r->model.stats.backwards;
    r->rounds++;
    r->seed = random64(r);
}

/* -------------------------------------------------------------- the test */

static void tell_results(const struct run *r)
{
    unsigned i;
    int result;

    for (i = 0; i < COUNT(operations); i++) {
        uint64_t all = 0;
        for (result = LOWEST_RESULT; result <= IDEM_MORE; result++)
            all += r->came[i][result - LOWEST_RESULT];
        if (!all)
            continue;
        printf("%-16s", operations[i].name);
        for (result = LOWEST_RESULT; result <= IDEM_MORE; result++)
            if (r->came[i][result - LOWEST_RESULT])
                printf(" %s %" PRIu64, result_name(result) + strlen("IDEM_"),
                       r->came[i][result - LOWEST_RESULT]);
        printf("\n");
    }
    printf("expired %" PRIu64 ", of these undelivered %" PRIu64 ", evicted %"
           PRIu64 ", ticks backwards %" PRIu64 "\n",
           r->expired, r->undelivered, r->evicted, r->backwards);
    printf("%" PRIu64 " calls in %" PRIu64 " rounds\n", r->calls, r->rounds);
}

static void every_answer_of_begin_came(const struct run *r)
{
    static const int answers[] = {
        IDEM_EXECUTE, IDEM_RECOVER, IDEM_REPLAY, IDEM_BUSY, IDEM_MISMATCH,
        IDEM_TOO_OLD, IDEM_EXHAUSTED, IDEM_E_FULL, IDEM_E_TOO_LARGE, IDEM_E_ARG,
    };
    size_t i;

    for (i = 0; i < COUNT(answers); i++) {
        if (r->came[0][answers[i] - LOWEST_RESULT])
            continue;
        print_error("%s never came\n", result_name(answers[i]));
        fail();
    }
}

static uint64_t environment(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);

    return text && *text ? strtoull(text, NULL, 0) : otherwise;
}

static void the_table_agrees_with_the_model(void **state)
{
    static struct run run;

    (void)state;
    run.limit = environment("IDEM_CALLS", CALLS_DEFAULT);
    run.seed = environment("IDEM_SEED", SEED_DEFAULT);
    printf("IDEM_SEED=0x%" PRIx64 " IDEM_CALLS=%" PRIu64 "\n", run.seed,
           run.limit);
    while (run.calls < run.limit)
        play_round(&run);
    tell_results(&run);
    if (run.limit >= CALLS_FOR_ALL)
        every_answer_of_begin_came(&run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_table_agrees_with_the_model),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
