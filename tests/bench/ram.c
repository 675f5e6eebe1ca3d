/* SPDX-License-Identifier: 0BSD */
/*
 * The table of idem.h beside khash (Debian: libhts-dev) and uthash (uthash-dev)
 * that do the same job.  Wrong answers fail it; times never do.
 *
 *   build/bench_ram [--short]
 *   build/bench_known [--short]
 *   build/bench_static [--short]
 *
 * The last two have one configuration, known when compiling (IDEM_CONFIG), and
 * measure that alone.  In the first of them idem.h could be called from other
 * files; in the second all is static (IDEM_STATIC), as all of the peers is.
 *
 * The work: a claim hashes the 16-byte payload (SipHash-2-4), looks its key up
 * (SipHash-1-3 of 16 bytes, for all of them), and keeps status, token, end of
 * lease and fingerprint; a completion checks the token and stores status, end
 * of retention and a 16-byte response.  A replay compares the fingerprint, and
 * hands out status, code and response.  Every claim and replay first looks
 * whether a key has expired.  All memory is touched before the clock starts,
 * and there is room for all keys.
 *
 * Each peer is programmed as somebody would who knows it well:
 *
 *   khash    a map from the 16 bytes of the key to a struct that has fingerprint
 *            and response in it, made for all keys, so that it does not grow.
 *            A claim is one kh_put, which looks up and inserts.  It keeps the
 *            place of its key, so a completion compares the key there, and
 *            hashes it again only if the map was rebuilt meanwhile, as one from
 *            which keys are deleted is at times.  Expiry is a ring of key and
 *            place, in the order of completion; a deletion has its place there.
 *   uthash   one hash for HASH_FIND and HASH_ADD; nodes from a pool, with
 *            fingerprint and response in them.  They stay where they are, so a
 *            completion and a deletion have theirs without looking it up.  The
 *            order in which uthash keeps them serves for expiry.
 *
 * idem.h keeps the slot in its claim.  M1 and M2 are compared with khash alone:
 * uthash takes longer than that in both.
 *
 *   M1  N fresh keys, claimed and completed.
 *   M2  Replays of random ones of N finished keys; and by idem_begin_many, 16
 *       in a call, beside single replays of the peer.
 *   M3  75 % of 65,536 slots live; each step the oldest expires, and another is
 *       claimed and completed.
 *   Q2  M3 of idem.h alone, with the numbers of N senders, drawn at random, and
 *       a quarter more entries than N (at most 32,767).  Then the one call in
 *       which all keys of a full table expire.
 */
#define _POSIX_C_SOURCE 200809L

#include "idem.h"

#ifdef BENCH_KNOWN
static const idem_config known = {
    .capacity = BENCH_KNOWN, .key_max = 16, .response_max = 16,
    .retention_ms = 86400000, .lease_ms = 30000 };
#define IDEM_CONFIG known
#ifdef IDEM_STATIC
#define KNOWN "configured when compiling, all static"
#else
#define KNOWN "configured when compiling"
#endif
#endif
#define IDEM_IMPLEMENTATION
#include "idem.h"
#include "tests/inside.h"
#include "tests/bench/common.h"

enum {
    PAYLOAD_LEN = 16,
    RESPONSE_LEN = 16,
    LEASE_MS = 30000,
    DAY_MS = 86400000,
    CHURN_CAPACITY = 65536,
    CHURN_LIVE = CHURN_CAPACITY / 4 * 3
};

static const idem_config keyed = { .secret = {
    0x5b, 0x0e, 0x91, 0x27, 0xd4, 0x66, 0x8f, 0x13,
    0x77, 0xc2, 0x3a, 0xe8, 0x19, 0xbd, 0x40, 0xf5,
} };

/* With the rounds compiled in, as idem.h has them inside */
#define FLAT __attribute__((flatten))

FLAT static uint32_t hash_key(const void *key)
{
    idem_fingerprint_state state;

    inside_hash_init(&state, &keyed, 0);
    inside_hash_update(&state, key, KEY_LEN);
    return (uint32_t)inside_hash_final(&state);
}

FLAT static uint64_t hash_payload(const void *payload)
{
    idem_fingerprint_state state;

    inside_hash_init(&state, &keyed, 1);
    inside_hash_update(&state, payload, PAYLOAD_LEN);
    return inside_hash_final(&state);
}

/* Zeros, with each page written to: volatile, for out of malloc and
   memset compilers make calloc, whose pages come only when they are used. */
static void *warm_alloc(size_t size)
{
    volatile char *block = calloc(1, size + 1);
    size_t at;

    if (!block)
        fail("out of memory");
    for (at = 0; at < size; at += 4096)
        block[at] = 0;
    return (void *)(uintptr_t)block;
}

/* khash is made empty, and gets its arrays by this, before the clock starts. */
static void *warm_realloc(void *block, size_t size)
{
    return block ? realloc(block, size) : warm_alloc(size);
}

static size_t first_buckets, first_buckets_log2;

#define kmalloc(size)        warm_alloc(size)
#define kcalloc(count, size) warm_alloc((count) * (size))
#define krealloc(block, size) warm_realloc(block, size)
#include <htslib/khash.h>

#define uthash_malloc(size)           warm_alloc(size)
#define uthash_free(block, size)      free(block)
#define HASH_FUNCTION(key, len, hash) ((hash) = hash_key(key))
#define HASH_INITIAL_NUM_BUCKETS      first_buckets
#define HASH_INITIAL_NUM_BUCKETS_LOG2 first_buckets_log2
#include <uthash.h>

/* ---------------------------------------------------------------------------
   Commands, each made from its number; and who executes them
   ------------------------------------------------------------------------ */
struct command {
    unsigned char key[KEY_LEN];
    unsigned char payload[PAYLOAD_LEN];
    unsigned char response[RESPONSE_LEN];
};

static void make_command(struct command *c, uint64_t number)
{
    uint64_t words[2] = { mix(number), mix(~number) };

    memcpy(c->key, words, sizeof words);
    words[0] += 1;
    memcpy(c->payload, words, sizeof words);
    words[1] += 1;
    memcpy(c->response, words, sizeof words);
}

/* A claim: idem.h's, or what a peer holds on to; and the details of an answer,
   of which peers set what a replay needs */
struct ticket {
    idem_claim claim;
    idem_reply reply;
    uint64_t token;
    uint32_t place;             // of khash
    struct node *node;          // of uthash
};

/* All answer with the results of idem.h. */
struct subject {
    const char *name;
    void (*open)(size_t keys, uint32_t retention_ms);
    void (*close)(void);
    int (*begin)(struct ticket *ticket, unsigned char *response,
                 const struct command *c, uint32_t now_ms);
    int (*complete)(const struct ticket *ticket, const struct command *c,
                    uint32_t now_ms);
    size_t (*live)(uint32_t now_ms);        // keys that are not over
};

/* ------------------------------------------------------------------ idem.h */
static idem_config config;
static idem_table table;
static void *memory;
static uint32_t senders;                // of Q2, else 0
static uint32_t sequence;               // the last one sent

static void idem_subject_open(size_t keys, uint32_t retention_ms)
{
    uint32_t entries = senders + senders / 4;
    size_t size;

    config = keyed;
    config.senders = entries < IDEM_SENDERS_MAX ? entries : IDEM_SENDERS_MAX;
    size = IDEM_MEMORY_SIZE(keys, KEY_LEN, RESPONSE_LEN, 0) +
           IDEM_SENDERS_MEMORY_SIZE(config.senders);
    sequence = 0;
    config.capacity = (uint32_t)keys;
    config.key_max = KEY_LEN;
    config.response_max = RESPONSE_LEN;
    config.retention_ms = retention_ms;
    config.lease_ms = LEASE_MS;
    memory = warm_alloc(size);
    if (idem_open(&table, &config, memory, size, 0) != IDEM_OK)
        fail("idem.h: cannot open");
}

static void idem_subject_close(void)
{
    int broken = idem_check(&table);

    if (broken)
        fail("idem.h: idem_check answers %d", broken);
    free(memory);
}

static int idem_subject_begin(struct ticket *ticket, unsigned char *response,
                              const struct command *c, uint32_t now_ms)
{
    idem_request request = {
        .key = c->key, .key_len = KEY_LEN,
        .payload = c->payload, .payload_len = PAYLOAD_LEN,
        .buffer = response, .buffer_size = RESPONSE_LEN };

    return idem_begin(&table, &ticket->claim, &ticket->reply, &request, now_ms);
}

/* The next number of a sender that the key chooses, 8 bytes of it. */
static int idem_subject_number(struct ticket *ticket, unsigned char *response,
                               const struct command *c, uint32_t now_ms)
{
    uint64_t scope, random;
    idem_request request = {
        .scope = &scope, .scope_len = sizeof scope, .sequence = ++sequence,
        .payload = c->payload, .payload_len = PAYLOAD_LEN,
        .buffer = response, .buffer_size = RESPONSE_LEN };

    memcpy(&random, c->key, sizeof random);
    scope = below(senders, random);
    return idem_begin(&table, &ticket->claim, &ticket->reply, &request, now_ms);
}

static int idem_subject_complete(const struct ticket *ticket,
                                 const struct command *c, uint32_t now_ms)
{
    idem_outcome outcome = {
        .response = c->response, .response_len = RESPONSE_LEN };

    return idem_complete(&table, &ticket->claim, &outcome, now_ms);
}

static size_t idem_subject_live(uint32_t now_ms)
{
    while (idem_maintain(&table, now_ms) == IDEM_MORE)
        ;
    return table.used;
}

/* ---------------------------------------------------------------------------
   What the peers keep of a key, and do with it
   ------------------------------------------------------------------------ */
struct entry {
    uint64_t fingerprint;
    uint64_t token;
    uint32_t until;             // in progress: end of lease; else of retention
    int32_t code;
    uint16_t response_len;
    uint8_t status;
    uint8_t attempts;
    unsigned char response[RESPONSE_LEN];
};

static uint32_t entry_retention_ms;
static uint64_t entry_token;

static int entry_expired(uint32_t until, uint32_t now_ms)
{
    return (int32_t)(now_ms - until) >= 0;
}

static int entry_begin(struct entry *e, int is_new, struct ticket *ticket,
                       unsigned char *response, uint64_t fingerprint,
                       uint32_t now_ms)
{
    if (is_new) {
        e->fingerprint = fingerprint;
        e->attempts = 0;
    } else if (e->fingerprint != fingerprint) {
        return IDEM_MISMATCH;
    } else if (e->status != IDEM_IN_PROGRESS) {
        ticket->reply.status = e->status;
        ticket->reply.code = e->code;
        ticket->reply.response_len = e->response_len;
        memcpy(response, e->response, e->response_len);
        return IDEM_REPLAY;
    } else if (!entry_expired(e->until, now_ms)) {
        return IDEM_BUSY;
    } else if (e->attempts >= 3) {
        return IDEM_EXHAUSTED;
    }
    e->status = IDEM_IN_PROGRESS;
    e->attempts++;
    e->until = now_ms + LEASE_MS;
    e->token = ticket->token = ++entry_token;
    return is_new ? IDEM_EXECUTE : IDEM_RECOVER;
}

static int entry_complete(struct entry *e, const struct ticket *ticket,
                          const struct command *c, uint32_t now_ms)
{
    if (e->token != ticket->token || e->status != IDEM_IN_PROGRESS)
        return IDEM_E_FENCED;
    e->status = IDEM_COMPLETED;
    e->code = 0;
    e->until = now_ms + entry_retention_ms;
    e->response_len = RESPONSE_LEN;
    memcpy(e->response, c->response, RESPONSE_LEN);
    return IDEM_OK;
}

/* Completed keys, the oldest first: a ring */
struct expiry {
    unsigned char key[KEY_LEN];
    uint32_t until, place;
};

static struct {
    struct expiry *ring;
    size_t size, first, count;
} queue;

static void queue_open(size_t size)
{
    queue.ring = warm_alloc(size * sizeof *queue.ring);
    queue.size = size;
    queue.first = queue.count = 0;
}

static void queue_put(const unsigned char *key, uint32_t until,
                      uint32_t place)
{
    size_t at = queue.first + queue.count++;
    struct expiry *last = &queue.ring[at < queue.size ? at : at - queue.size];

    memcpy(last->key, key, KEY_LEN);
    last->until = until;
    last->place = place;
}

static const struct expiry *queue_take(uint32_t now_ms)
{
    const struct expiry *first = &queue.ring[queue.first];

    if (!queue.count || !entry_expired(first->until, now_ms))
        return NULL;
    queue.first = queue.first + 1 < queue.size ? queue.first + 1 : 0;
    queue.count--;
    return first;
}

/* ------------------------------------------------------------------- khash */
struct plain_key {
    unsigned char bytes[KEY_LEN];
};

#define plain_hash(key)    hash_key((key).bytes)
#define plain_equal(a, b) (memcmp((a).bytes, (b).bytes, KEY_LEN) == 0)
KHASH_INIT(plain, struct plain_key, struct entry, 1, plain_hash, plain_equal)

static khash_t(plain) *plain;

static struct plain_key plain_key(const unsigned char *bytes)
{
    struct plain_key key;

    memcpy(key.bytes, bytes, KEY_LEN);
    return key;
}

/* Where a key is: where it was, unless the map was rebuilt since. */
static khint_t plain_at(const unsigned char *key, khint_t at)
{
    if (at < kh_end(plain) && kh_exist(plain, at) &&
        memcmp(kh_key(plain, at).bytes, key, KEY_LEN) == 0)
        return at;
    return kh_get(plain, plain, plain_key(key));
}

static void plain_open(size_t keys, uint32_t retention_ms)
{
    entry_retention_ms = retention_ms;
    queue_open(keys);
    plain = kh_init(plain);
    kh_resize(plain, plain, (khint_t)((double)keys / __ac_HASH_UPPER) + 1);
}

static void plain_close(void)
{
    kh_destroy(plain, plain);
    free(queue.ring);
}

static void plain_expire(uint32_t now_ms)
{
    const struct expiry *first;

    while ((first = queue_take(now_ms)) != NULL)
        kh_del(plain, plain, plain_at(first->key, first->place));
}

static int plain_begin(struct ticket *ticket, unsigned char *response,
                       const struct command *c, uint32_t now_ms)
{
    uint64_t fingerprint;
    int absent;
    khint_t at;

    plain_expire(now_ms);
    fingerprint = hash_payload(c->payload);
    at = kh_put(plain, plain, plain_key(c->key), &absent);
    ticket->place = at;
    return entry_begin(&kh_val(plain, at), absent, ticket, response,
                       fingerprint, now_ms);
}

static int plain_complete(const struct ticket *ticket, const struct command *c,
                          uint32_t now_ms)
{
    khint_t at = plain_at(c->key, ticket->place);
    int result;

    if (at == kh_end(plain))
        return IDEM_E_FENCED;
    result = entry_complete(&kh_val(plain, at), ticket, c, now_ms);
    if (result == IDEM_OK)
        queue_put(c->key, kh_val(plain, at).until, at);
    return result;
}

static size_t plain_live(uint32_t now_ms)
{
    plain_expire(now_ms);
    return kh_size(plain);
}

/* ------------------------------------------------------------------ uthash */
struct node {
    unsigned char key[KEY_LEN];
    struct entry entry;
    struct node *next_free;
    UT_hash_handle hh;
};

static struct node *nodes, *pool, *spare;

/* uthash gets the first number of buckets: a power of two, 32 by default. */
static void nodes_open(size_t keys, uint32_t retention_ms)
{
    size_t i;

    entry_retention_ms = retention_ms;
    first_buckets = 32;
    first_buckets_log2 = 5;
    for (; first_buckets < keys; first_buckets *= 2)
        first_buckets_log2++;
    pool = warm_alloc(keys * sizeof *pool);
    nodes = spare = NULL;
    for (i = keys; i-- > 0; spare = &pool[i])
        pool[i].next_free = spare;
}

static void nodes_close(void)
{
    HASH_CLEAR(hh, nodes);
    free(pool);
}

static void nodes_expire(uint32_t now_ms)
{
    while (nodes && entry_expired(nodes->entry.until, now_ms)) {
        struct node *oldest = nodes;
        HASH_DEL(nodes, oldest);
        oldest->entry.status = 0;
        oldest->next_free = spare;
        spare = oldest;
    }
}

static int nodes_begin(struct ticket *ticket, unsigned char *response,
                       const struct command *c, uint32_t now_ms)
{
    uint64_t fingerprint;
    struct node *node;
    unsigned hash;
    int is_new;

    nodes_expire(now_ms);
    fingerprint = hash_payload(c->payload);
    HASH_VALUE(c->key, KEY_LEN, hash);
    HASH_FIND_BYHASHVALUE(hh, nodes, c->key, KEY_LEN, hash, node);
    is_new = !node;
    if (is_new && !spare)
        return IDEM_E_FULL;
    if (is_new) {
        node = spare;
        spare = node->next_free;
        memcpy(node->key, c->key, KEY_LEN);
        HASH_ADD_BYHASHVALUE(hh, nodes, key, KEY_LEN, hash, node);
    }
    ticket->node = node;
    return entry_begin(&node->entry, is_new, ticket, response, fingerprint,
                       now_ms);
}

static int nodes_complete(const struct ticket *ticket, const struct command *c,
                          uint32_t now_ms)
{
    return entry_complete(&ticket->node->entry, ticket, c, now_ms);
}

static size_t nodes_live(uint32_t now_ms)
{
    nodes_expire(now_ms);
    return HASH_COUNT(nodes);
}

enum { IDEM, KHASH, UTHASH, SUBJECTS };

static const struct subject subjects[SUBJECTS] = {
    { "idem.h", idem_subject_open, idem_subject_close, idem_subject_begin,
      idem_subject_complete, idem_subject_live },
    { "khash", plain_open, plain_close, plain_begin, plain_complete,
      plain_live },
    { "uthash", nodes_open, nodes_close, nodes_begin, nodes_complete,
      nodes_live },
};

/* ---------------------------------------------------------------------------
   Workloads.  Each measures one subject from its opening to its closing, in
   nanoseconds of processor time a step, and checks every answer.
   ------------------------------------------------------------------------ */
static double now_ns(void)
{
    return clock_us(CLOCK_PROCESS_CPUTIME_ID) * 1e3;
}

/* Step i is at the time of i ms, if time passes. */
static void claim_and_complete(const struct subject *s, uint64_t from,
                               uint64_t steps, int passes)
{
    unsigned char response[RESPONSE_LEN];
    struct ticket ticket;
    struct command c;
    uint64_t i;

    for (i = from; i < from + steps; i++) {
        uint32_t now_ms = passes ? (uint32_t)i : 0;
        make_command(&c, i);
        if (s->begin(&ticket, response, &c, now_ms) != IDEM_EXECUTE ||
            s->complete(&ticket, &c, now_ms) != IDEM_OK)
            fail("%s: an answer is wrong", s->name);
    }
}

static void replay(const struct subject *s, uint64_t keys, uint64_t steps)
{
    unsigned char response[RESPONSE_LEN];
    struct ticket ticket;
    struct command c;
    uint64_t i;

    for (i = 0; i < steps; i++) {
        make_command(&c, below(keys, mix(i)));
        if (s->begin(&ticket, response, &c, 0) != IDEM_REPLAY ||
            ticket.reply.status != IDEM_COMPLETED || ticket.reply.code != 0 ||
            ticket.reply.response_len != RESPONSE_LEN ||
            memcmp(response, c.response, RESPONSE_LEN) != 0)
            fail("%s: a replay is wrong", s->name);
    }
}

/* A small table is filled over and over. */
static double m1(const struct subject *s, uint64_t keys)
{
    double ns = 0;
    uint64_t done;

    for (done = 0; done < 200000; done += keys) {
        double start;
        s->open(keys, DAY_MS);
        start = now_ns();
        claim_and_complete(s, 0, keys, 0);
        ns += now_ns() - start;
        if (s->live(0) != keys)
            fail("%s: a key is missing", s->name);
        s->close();
    }
    return ns / (double)done;
}

/* The same of idem.h, many in a call */
static void replay_many(uint64_t keys, uint64_t steps)
{
    static unsigned char responses[IDEM_MANY][RESPONSE_LEN];
    static struct command c[IDEM_MANY];
    static idem_request requests[IDEM_MANY];
    static idem_reply replies[IDEM_MANY];
    int answers[IDEM_MANY];
    uint64_t i, at;

    for (i = 0; i < steps; i += IDEM_MANY) {
        for (at = 0; at < IDEM_MANY; at++) {
            make_command(&c[at], below(keys, mix(i + at)));
            requests[at] = (idem_request){
                .key = c[at].key, .key_len = KEY_LEN,
                .payload = c[at].payload, .payload_len = PAYLOAD_LEN,
                .buffer = responses[at], .buffer_size = RESPONSE_LEN };
        }
        if (idem_begin_many(&table, answers, replies, requests, IDEM_MANY,
                            0) != IDEM_OK)
            fail("idem.h: 16 in a call are refused");
        for (at = 0; at < IDEM_MANY; at++)
            if (answers[at] != IDEM_REPLAY ||
                memcmp(responses[at], c[at].response, RESPONSE_LEN) != 0)
                fail("idem.h: a replay of 16 is wrong");
    }
}

static double m2_of(const struct subject *s, uint64_t keys, int many)
{
    enum { STEPS = 400000 };
    double ns;

    s->open(keys, DAY_MS);
    claim_and_complete(s, 0, keys, 0);
    replay(s, keys, STEPS / 4);
    ns = now_ns();
    if (many)
        replay_many(keys, STEPS);
    else
        replay(s, keys, STEPS);
    ns = now_ns() - ns;
    s->close();
    return ns / STEPS;
}

static double m2(const struct subject *s, uint64_t keys)
{
    return m2_of(s, keys, 0);
}

/* The peers have no such call. */
static double m2_many(const struct subject *s, uint64_t keys)
{
    return m2_of(s, keys, s->open == idem_subject_open);
}

/* Retention is as many steps as there are to be live keys; before the clock
   starts every slot has been used. */
static double m3(const struct subject *s, uint64_t live)
{
    enum { STEPS = 400000, WARM = 2 * CHURN_CAPACITY };
    double ns;

    s->open(CHURN_CAPACITY, (uint32_t)live);
    claim_and_complete(s, 0, WARM, 1);
    ns = now_ns();
    claim_and_complete(s, WARM, STEPS, 1);
    ns = now_ns() - ns;
    if (s->live(WARM + STEPS - 1) != live)
        fail("%s: not as many keys live as ought to", s->name);
    s->close();
    return ns / STEPS;
}

/* The longest call, in ms: a full table, and time for which no key is kept. */
static double longest_call(const struct subject *s)
{
    unsigned char response[RESPONSE_LEN];
    struct ticket ticket;
    struct command c;
    double ns;

    s->open(CHURN_CAPACITY, DAY_MS);
    claim_and_complete(s, 0, CHURN_CAPACITY, 0);
    make_command(&c, CHURN_CAPACITY);
    ns = now_ns();
    if (s->begin(&ticket, response, &c, 4u * DAY_MS) != IDEM_EXECUTE)
        fail("%s: an answer is wrong", s->name);
    ns = now_ns() - ns;
    if (table.stats.expired != CHURN_CAPACITY)
        fail("%s: not all keys expired in one call", s->name);
    s->close();
    return ns / 1e6;
}

/* ---------------------------------------------------------------------------
   Comparing: all take turns, and only figures of one turn make a ratio.
   ------------------------------------------------------------------------ */
struct workload {
    const char *name;
    double (*measure)(const struct subject *s, uint64_t keys);
    uint32_t keys;
    int subjects;
    double budget[SUBJECTS], moonshot[SUBJECTS];    // of idem.h's ns to theirs
};

static const struct workload workloads[] = {
#ifdef BENCH_KNOWN
    { "M1, " KNOWN, m1, BENCH_KNOWN, UTHASH, { 0, 1.0 }, { 0 } },
    { "M2, " KNOWN, m2, BENCH_KNOWN, UTHASH, { 0, 1.0 }, { 0 } },
#else
    { "M1, claim + complete", m1, 1000, UTHASH, { 0 }, { 0 } },
    { "M1, claim + complete", m1, 100000, UTHASH, { 0, 0.60 }, { 0, 0.48 } },
    { "M1, claim + complete", m1, 1000000, UTHASH, { 0 }, { 0 } },
    { "M2, replay", m2, 1000, UTHASH, { 0 }, { 0 } },
    { "M2, replay", m2, 100000, UTHASH, { 0 }, { 0 } },
    { "M2, replay", m2, 1000000, UTHASH, { 0, 1.35 }, { 0, 1.20 } },
    { "M2, 16 in a call", m2_many, 1000000, UTHASH, { 0, 0.60 }, { 0, 0.45 } },
    { "M3, churn", m3, CHURN_LIVE, SUBJECTS, { 0, 0, 0.65 }, { 0, 0, 0.55 } },
#endif
};

static void compare(const struct workload *w, int turns)
{
    struct sample ratios[SUBJECTS];
    int turn, i;

    memset(ratios, 0, sizeof ratios);
    for (turn = 0; turn < turns; turn++) {
        double is[SUBJECTS];
        for (i = 0; i < w->subjects; i++) {
            int s = (i + turn) % w->subjects;
            is[s] = w->measure(&subjects[s], w->keys);
        }
        for (i = KHASH; i < w->subjects; i++)
            sample_add(&ratios[i], is[IDEM] / is[i]);
    }
    for (i = KHASH; i < w->subjects; i++)
        print_row(sample_median(&ratios[i]), w->budget[i], w->moonshot[i],
                  "%s, %u keys: x %s", w->name, (unsigned)w->keys,
                  subjects[i].name);
}

#ifndef BENCH_KNOWN
static void compare_senders(int turns)
{
    static const struct subject numbered = {
        "idem.h", idem_subject_open, idem_subject_close, idem_subject_number,
        idem_subject_complete, idem_subject_live };
    static const uint32_t numbers[] = { 1, 1000, 10000, 32767 };
    static const double budget[] = { 0, 0, 1.5, 0 };
    static const double moonshot[] = { 0, 0, 1.2, 0 };
    struct sample ratios[COUNT(numbers)], ms[COUNT(numbers)];
    int turn;
    size_t i;

    memset(ratios, 0, sizeof ratios);
    memset(ms, 0, sizeof ms);
    for (turn = 0; turn < turns; turn++) {
        double one = 0;
        for (i = 0; i < COUNT(numbers); i++) {
            double is;
            senders = numbers[i];
            is = m3(&numbered, CHURN_LIVE);
            one = i ? one : is;
            sample_add(&ratios[i], is / one);
            sample_add(&ms[i], longest_call(&numbered));
        }
    }
    senders = 0;
    for (i = 1; i < COUNT(numbers); i++)
        print_row(sample_median(&ratios[i]), budget[i], moonshot[i],
                  "Q2, %u senders: x one sender", (unsigned)numbers[i]);
    for (i = 0; i < COUNT(numbers); i++)
        print_row(sample_median(&ms[i]), 0, 0,
                  "Q2, %u senders: longest call, all 65,536 keys expire: ms",
                  (unsigned)numbers[i]);
}

#endif

int main(int argc, char **argv)
{
    int is_short = argc > 1 && strcmp(argv[1], "--short") == 0;
    size_t i;

    for (i = 0; i < COUNT(workloads); i++)
        compare(&workloads[i],
                !is_short ? 11 : workloads[i].keys == 1000000 ? 1 : 3);
#ifndef BENCH_KNOWN
    compare_senders(is_short ? 3 : 11);
#endif
    return 0;
}
