/* SPDX-License-Identifier: 0BSD */
/*
 * Measures the table of idem.h beside tables that do the same job: khash
 * (Debian: libhts-dev), uthash (uthash-dev), and those of the peer_* files that
 * are there.  Wrong answers, and an index that gets longer probes as keys come
 * and go, fail it; times never do.
 *
 *   sh tests/bench/build_ram.sh
 *   build/bench                long: some minutes
 *   build/bench --short        about ten seconds
 *   build/bench --grow         khash and uthash start small, not with room for
 *                              all keys
 *   build/bench --names        who takes part
 *   build/bench --one M1 100000 khash
 *                              one workload of one subject, for counting its
 *                              instructions: count.sh
 *
 * The work: a claim hashes the 16-byte payload (SipHash-2-4), looks its key up
 * (SipHash-1-3 of 16 bytes, for all of them), and keeps status, token, end of
 * lease and fingerprint; a completion checks the token and stores status, end
 * of retention and a 16-byte response.  A replay compares the fingerprint and
 * copies the response out.  All memory is touched before the clock starts.
 *
 * How the peers were written:
 *   khash    a map from the 16 bytes of the key to a struct; one kh_put both
 *            looks up and inserts.  Its places move, so a completion looks its
 *            key up again.  Beside it a queue of keys in order of completion.
 *   khash+   as strong as it gets: each key carries its hash, so a command is
 *            hashed once; and a completion first looks where the claim was.
 *   uthash   HASH_FIND and HASH_ADD, HASH_FIND again to complete; nodes from a
 *            pool.  The order in which uthash keeps them serves as the queue.
 *   uthash+  as strong as it gets: a command is hashed once, a claim holds its
 *            node.
 *   others   as their files say; what has "its hash" in its name does not use
 *            SipHash for the index, nor does stb_ds, whose hash is fixed.
 */
#define _POSIX_C_SOURCE 200809L

#define IDEM_IMPLEMENTATION
#include "idem.h"
#include "tests/bench/subject.h"

#include <malloc.h>
#include <sys/utsname.h>

static size_t first_buckets, first_buckets_log2;

#define kmalloc(size)        counted_alloc(size)
#define kcalloc(count, size) counted_alloc((count) * (size))
#define krealloc(old, size)  counted_realloc(old, size)
#define kfree(block)         counted_free(block)
#include <htslib/khash.h>

#define uthash_malloc(size)           counted_alloc(size)
#define uthash_free(block, size)      counted_free(block)
#define HASH_FUNCTION(key, len, hash) ((hash) = hash_key(key))
#define HASH_INITIAL_NUM_BUCKETS      first_buckets
#define HASH_INITIAL_NUM_BUCKETS_LOG2 first_buckets_log2
#include <uthash.h>

#define TEXT(macro) TEXT_OF(macro)
#define TEXT_OF(macro) #macro
#define NOINLINE __attribute__((noinline))

/* A compiler does not say how it was called. */
#if !defined(BENCH_FLAGS) && defined(__OPTIMIZE__)
#define BENCH_FLAGS "not told (-DBENCH_FLAGS does), optimizing"
#elif !defined(BENCH_FLAGS)
#define BENCH_FLAGS "not told (-DBENCH_FLAGS does), NOT OPTIMIZING"
#endif
#ifdef __clang__
#define COMPILER "clang"
#else
#define COMPILER "gcc"
#endif

enum {
    DAY_MS = 86400000,
    CHURN_CAPACITY = 65536,
    CHURN_LIVE = CHURN_CAPACITY / 4 * 3
};

static const uint8_t secret[16] = {
    0x5b, 0x0e, 0x91, 0x27, 0xd4, 0x66, 0x8f, 0x13,
    0x77, 0xc2, 0x3a, 0xe8, 0x19, 0xbd, 0x40, 0xf5,
};

static int grow;                // --grow

/* ---------------------------------------------------------------------------
   Memory, counted, and touched when it is handed out
   ------------------------------------------------------------------------ */
enum { COUNT_SIZE = 16 };       // keeps the alignment of malloc

size_t allocated;

void *counted_realloc(void *old, size_t size)
{
    unsigned char *block = old ? (unsigned char *)old - COUNT_SIZE : NULL;
    size_t old_size = 0;

    if (block)
        memcpy(&old_size, block, sizeof old_size);
    block = realloc(block, COUNT_SIZE + size);
    if (!block)
        fail("realloc: out of memory");
    if (!old)
        memset(block, 0, COUNT_SIZE + size);
    memcpy(block, &size, sizeof size);
    allocated += size - old_size;
    return block + COUNT_SIZE;
}

void *counted_alloc(size_t size)
{
    return counted_realloc(NULL, size);
}

void counted_free(void *block)
{
    size_t size;

    if (!block)
        return;
    memcpy(&size, (unsigned char *)block - COUNT_SIZE, sizeof size);
    allocated -= size;
    free((unsigned char *)block - COUNT_SIZE);
}

size_t heap_bytes(void)
{
    struct mallinfo2 info = mallinfo2();

    return info.uordblks + info.hblkhd;
}

IDEMI_FLAT
uint32_t hash_key(const void *key)
{
    return (uint32_t)idem_siphash(secret, 1, 3, key, KEY_LEN);
}

IDEMI_FLAT
uint64_t hash_payload(const void *payload)
{
    return idem_siphash(secret, 2, 4, payload, PAYLOAD_LEN);
}

/* ------------------------------------------------------------------ idem.h */
static idem_config config;
static idem_table table;
static void *memory;

static void idem_subject_open(size_t keys, uint32_t retention_ms)
{
    size_t size = IDEM_MEMORY_SIZE(keys, KEY_LEN, RESPONSE_LEN, 0);

    memset(&config, 0, sizeof config);
    config.capacity = (uint32_t)keys;
    config.key_max = KEY_LEN;
    config.response_max = RESPONSE_LEN;
    config.retention_ms = retention_ms;
    config.lease_ms = LEASE_MS;
    memcpy(config.secret, secret, sizeof secret);
    memory = counted_alloc(size);
    if (idem_open(&table, &config, memory, size, 0) != IDEM_OK)
        fail("idem.h: cannot open");
}

static void idem_subject_close(void)
{
    int broken = idem_check(&table);

    if (broken) {
        fprintf(stderr, "bench: idem.h: idem_check answers %d\n", broken);
        exit(1);
    }
    counted_free(memory);
}

static int idem_subject_begin(struct ticket *ticket, unsigned char *response,
                              const struct command *c, uint32_t now_ms)
{
    idem_request request = {
        .key = c->key, .key_len = KEY_LEN,
        .payload = c->payload, .payload_len = PAYLOAD_LEN };
    idem_reply reply = { .buffer = response, .buffer_size = RESPONSE_LEN };

    return idem_begin(&table, &ticket->claim, &reply, &request, now_ms);
}

static int idem_subject_complete(const struct ticket *ticket,
                                 const struct command *c, uint32_t now_ms)
{
    idem_outcome outcome = {
        .response = c->response, .response_len = RESPONSE_LEN };

    return idem_complete(&table, &ticket->claim, &outcome, now_ms);
}

static int idem_subject_known(const struct command *c)
{
    idem_request request = { .key = c->key, .key_len = KEY_LEN };
    idem_entry entry = { .id = NULL };

    return idem_find(&table, &entry, &request, table.tick) == IDEM_OK;
}

/* Nothing: idem_begin finds room by itself. */
static void idem_subject_expire(uint32_t now_ms)
{
    (void)now_ms;
}

static size_t idem_subject_live(uint32_t now_ms)
{
    while (idem_maintain(&table, now_ms) == IDEM_MORE)
        ;
    return table.used;
}

static size_t idem_subject_bytes(void)
{
    return allocated + sizeof table;
}

/* ------------------------------------------------ what the peers have alike */

uint32_t entry_retention_ms;
uint64_t entry_token;

static struct {
    struct due *ring;
    size_t size, first, count;
} queue;

void queue_open(size_t size)
{
    queue.ring = counted_alloc(size * sizeof *queue.ring);
    queue.size = size;
    queue.first = queue.count = 0;
}

void queue_close(void)
{
    counted_free(queue.ring);
}

struct due *queue_put(const unsigned char *key, uint32_t until)
{
    size_t at = queue.first + queue.count++;
    struct due *due = &queue.ring[at < queue.size ? at : at - queue.size];

    memcpy(due->key, key, KEY_LEN);
    due->until = until;
    return due;
}

const struct due *queue_take(uint32_t now_ms)
{
    const struct due *due = &queue.ring[queue.first];

    if (!queue.count || !entry_over(due->until, now_ms))
        return NULL;
    queue.first = queue.first + 1 < queue.size ? queue.first + 1 : 0;
    queue.count--;
    return due;
}

void peer_open(uint32_t retention_ms)
{
    entry_retention_ms = retention_ms;
    entry_token = 0;
}

size_t peer_bytes(void)
{
    return allocated;
}

/* Buckets that khash needs to hold so many keys */
static khint_t khash_buckets(size_t keys)
{
    return grow ? 4 : (khint_t)((double)keys / __ac_HASH_UPPER) + 1;
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

static void plain_open(size_t keys, uint32_t retention_ms)
{
    peer_open(retention_ms);
    queue_open(keys);
    plain = kh_init(plain);
    kh_resize(plain, plain, khash_buckets(keys));
}

static void plain_close(void)
{
    kh_destroy(plain, plain);
    queue_close();
}

static int plain_begin(struct ticket *ticket, unsigned char *response,
                       const struct command *c, uint32_t now_ms)
{
    uint64_t fingerprint = hash_payload(c->payload);
    int absent;
    khint_t at = kh_put(plain, plain, plain_key(c->key), &absent);

    if (absent)
        return entry_first(&kh_val(plain, at), ticket, fingerprint, now_ms);
    return entry_again(&kh_val(plain, at), ticket, response, fingerprint,
                       now_ms);
}

static int plain_complete(const struct ticket *ticket, const struct command *c,
                          uint32_t now_ms)
{
    khint_t at = kh_get(plain, plain, plain_key(c->key));
    int result;

    if (at == kh_end(plain))
        return IDEM_E_FENCED;
    result = entry_complete(&kh_val(plain, at), ticket, c, now_ms);
    if (result == IDEM_OK)
        queue_put(c->key, kh_val(plain, at).until);
    return result;
}

static int plain_known(const struct command *c)
{
    return kh_get(plain, plain, plain_key(c->key)) != kh_end(plain);
}

static void plain_expire(uint32_t now_ms)
{
    const struct due *due;

    while ((due = queue_take(now_ms)) != NULL)
        kh_del(plain, plain, kh_get(plain, plain, plain_key(due->key)));
}

static size_t plain_live(uint32_t now_ms)
{
    plain_expire(now_ms);
    return kh_size(plain);
}

/* ------------------------------------------------------------------ khash+ */
struct hashed_key {
    unsigned char bytes[KEY_LEN];
    khint_t hash;
};

#define hashed_hash(key) ((key).hash)
#define hashed_equal(a, b) \
    ((a).hash == (b).hash && memcmp((a).bytes, (b).bytes, KEY_LEN) == 0)
KHASH_INIT(hashed, struct hashed_key, struct entry, 1, hashed_hash,
           hashed_equal)

static khash_t(hashed) *hashed;

static struct hashed_key hashed_key(const unsigned char *bytes, khint_t hash)
{
    struct hashed_key key;

    memcpy(key.bytes, bytes, KEY_LEN);
    key.hash = hash;
    return key;
}

static void hashed_open(size_t keys, uint32_t retention_ms)
{
    peer_open(retention_ms);
    queue_open(keys);
    hashed = kh_init(hashed);
    kh_resize(hashed, hashed, khash_buckets(keys));
}

static void hashed_close(void)
{
    kh_destroy(hashed, hashed);
    queue_close();
}

static int hashed_begin(struct ticket *ticket, unsigned char *response,
                        const struct command *c, uint32_t now_ms)
{
    uint64_t fingerprint = hash_payload(c->payload);
    khint_t hash = hash_key(c->key);
    int absent;
    khint_t at = kh_put(hashed, hashed, hashed_key(c->key, hash), &absent);

    ticket->at = at;
    ticket->hash = hash;
    if (absent)
        return entry_first(&kh_val(hashed, at), ticket, fingerprint, now_ms);
    return entry_again(&kh_val(hashed, at), ticket, response, fingerprint,
                       now_ms);
}

/* Where the claim's key is: where it was, unless the map was built anew. */
static khint_t hashed_find(const struct ticket *ticket,
                           const struct command *c)
{
    struct hashed_key key = hashed_key(c->key, ticket->hash);
    khint_t at = ticket->at;

    if (at < kh_end(hashed) && kh_exist(hashed, at) &&
        hashed_equal(kh_key(hashed, at), key))
        return at;
    return kh_get(hashed, hashed, key);
}

static int hashed_complete(const struct ticket *ticket,
                           const struct command *c, uint32_t now_ms)
{
    khint_t at = hashed_find(ticket, c);
    int result;

    if (at == kh_end(hashed))
        return IDEM_E_FENCED;
    result = entry_complete(&kh_val(hashed, at), ticket, c, now_ms);
    if (result == IDEM_OK)
        queue_put(c->key, kh_val(hashed, at).until)->hash = ticket->hash;
    return result;
}

static int hashed_known(const struct command *c)
{
    struct hashed_key key = hashed_key(c->key, hash_key(c->key));

    return kh_get(hashed, hashed, key) != kh_end(hashed);
}

static void hashed_expire(uint32_t now_ms)
{
    const struct due *due;

    while ((due = queue_take(now_ms)) != NULL)
        kh_del(hashed, hashed,
               kh_get(hashed, hashed, hashed_key(due->key, due->hash)));
}

static size_t hashed_live(uint32_t now_ms)
{
    hashed_expire(now_ms);
    return kh_size(hashed);
}

/* ------------------------------------------------------------------ uthash */
struct node {
    unsigned char key[KEY_LEN];
    struct entry entry;
    struct node *next_free;
    UT_hash_handle hh;
};

static struct node *nodes, *pool, *spare;

/* uthash is told the first number of buckets: a power of two, 32 by default. */
static void nodes_open(size_t keys, uint32_t retention_ms)
{
    size_t i;

    peer_open(retention_ms);
    first_buckets = 32;
    first_buckets_log2 = 5;
    for (; !grow && first_buckets < keys; first_buckets *= 2)
        first_buckets_log2++;
    pool = counted_alloc(keys * sizeof *pool);
    nodes = spare = NULL;
    for (i = keys; i-- > 0; spare = &pool[i])
        pool[i].next_free = spare;
}

static void nodes_close(void)
{
    HASH_CLEAR(hh, nodes);
    counted_free(pool);
}

/* A node from the pool, or NULL; the caller puts it into the table. */
static struct node *nodes_take(const struct command *c)
{
    struct node *node = spare;

    if (node) {
        spare = node->next_free;
        memcpy(node->key, c->key, KEY_LEN);
    }
    return node;
}

static int nodes_begin(struct ticket *ticket, unsigned char *response,
                       const struct command *c, uint32_t now_ms)
{
    uint64_t fingerprint = hash_payload(c->payload);
    struct node *node;

    HASH_FIND(hh, nodes, c->key, KEY_LEN, node);
    if (node)
        return entry_again(&node->entry, ticket, response, fingerprint,
                           now_ms);
    node = nodes_take(c);
    if (!node)
        return IDEM_E_FULL;
    HASH_ADD(hh, nodes, key, KEY_LEN, node);
    return entry_first(&node->entry, ticket, fingerprint, now_ms);
}

static int nodes_complete(const struct ticket *ticket, const struct command *c,
                          uint32_t now_ms)
{
    struct node *node;

    HASH_FIND(hh, nodes, c->key, KEY_LEN, node);
    return node ? entry_complete(&node->entry, ticket, c, now_ms)
                : IDEM_E_FENCED;
}

static int nodes_known(const struct command *c)
{
    struct node *node;

    HASH_FIND(hh, nodes, c->key, KEY_LEN, node);
    return node != NULL;
}

static void nodes_expire(uint32_t now_ms)
{
    while (nodes && entry_over(nodes->entry.until, now_ms)) {
        struct node *oldest = nodes;
        HASH_DEL(nodes, oldest);
        oldest->entry.status = 0;
        oldest->next_free = spare;
        spare = oldest;
    }
}

static size_t nodes_live(uint32_t now_ms)
{
    nodes_expire(now_ms);
    return HASH_COUNT(nodes);
}

/* ----------------------------------------------------------------- uthash+ */
static int once_begin(struct ticket *ticket, unsigned char *response,
                      const struct command *c, uint32_t now_ms)
{
    uint64_t fingerprint = hash_payload(c->payload);
    uint32_t hash = hash_key(c->key);
    struct node *node;

    HASH_FIND_BYHASHVALUE(hh, nodes, c->key, KEY_LEN, hash, node);
    ticket->node = node;
    if (node)
        return entry_again(&node->entry, ticket, response, fingerprint,
                           now_ms);
    ticket->node = node = nodes_take(c);
    if (!node)
        return IDEM_E_FULL;
    HASH_ADD_BYHASHVALUE(hh, nodes, key, KEY_LEN, hash, node);
    return entry_first(&node->entry, ticket, fingerprint, now_ms);
}

/* The pool is never given back, so a token can be looked for where the claim's
   node was. */
static int once_complete(const struct ticket *ticket, const struct command *c,
                         uint32_t now_ms)
{
    return entry_complete(&ticket->node->entry, ticket, c, now_ms);
}

static const struct subject idem_subject = {
    "idem.h", idem_subject_open, idem_subject_close, idem_subject_begin,
    idem_subject_complete, idem_subject_known, idem_subject_expire,
    idem_subject_live, idem_subject_bytes, 1 };
static const struct subject plain_subject = {
    "khash", plain_open, plain_close, plain_begin, plain_complete, plain_known,
    plain_expire, plain_live, peer_bytes, 1 };
static const struct subject hashed_subject = {
    "khash+", hashed_open, hashed_close, hashed_begin, hashed_complete,
    hashed_known, hashed_expire, hashed_live, peer_bytes, 1 };
static const struct subject nodes_subject = {
    "uthash", nodes_open, nodes_close, nodes_begin, nodes_complete, nodes_known,
    nodes_expire, nodes_live, peer_bytes, 1 };
static const struct subject once_subject = {
    "uthash+", nodes_open, nodes_close, once_begin, once_complete, nodes_known,
    nodes_expire, nodes_live, peer_bytes, 1 };

enum { IDEM, KHASH, KHASH_PLUS, UTHASH, UTHASH_PLUS };

/* The first five as the names above say; then what is installed. */
static const struct subject *const subjects[] = {
    &idem_subject, &plain_subject, &hashed_subject, &nodes_subject,
    &once_subject,
#ifdef BENCH_STB
    &stb_subject,
#endif
#ifdef BENCH_GLIB
    &glib_subject, &glib_default_subject,
#endif
#ifdef BENCH_MAP
    &map_subject, &map_default_subject,
#endif
#ifdef BENCH_SQLITE
    &sqlite_subject,
#endif
};

/* ---------------------------------------------------------------------------
   Workloads.  Each measures one subject from its opening to its closing, in
   nanoseconds of processor time a step, and checks every answer.
   ------------------------------------------------------------------------ */
struct figures {
    double ns;                  // a step
    double bytes;               // of memory for each live key
    double steps;               // in the loop that is timed
};

/* A loop answers how many of its steps went right. */
typedef uint64_t loop(const struct subject *s, uint64_t from, uint64_t steps);

static uint64_t m1_loop(const struct subject *s, uint64_t from, uint64_t steps)
{
    uint64_t right = 0, i;
    unsigned char response[RESPONSE_LEN];
    struct ticket ticket;
    struct command c;

    for (i = from; i < from + steps; i++) {
        make_command(&c, i);
        right += s->begin(&ticket, response, &c, 0) == IDEM_EXECUTE &&
                 s->complete(&ticket, &c, 0) == IDEM_OK;
    }
    return right;
}

/* Here `from` is how many keys there are to choose from. */
static uint64_t m2_loop(const struct subject *s, uint64_t from, uint64_t steps)
{
    uint64_t right = 0, i;
    unsigned char response[RESPONSE_LEN];
    struct ticket ticket;
    struct command c;

    for (i = 0; i < steps; i++) {
        make_command(&c, below(from, mix(i)));
        right += s->begin(&ticket, response, &c, 0) == IDEM_REPLAY &&
                 memcmp(response, c.response, RESPONSE_LEN) == 0;
    }
    return right;
}

/* Keys that are not there, of which the table has as many as can be */
static uint64_t absent_loop(const struct subject *s, uint64_t from,
                            uint64_t steps)
{
    uint64_t right = 0, i;
    struct command c;

    for (i = from; i < from + steps; i++) {
        make_command(&c, i);
        right += !s->known(&c);
    }
    return right;
}

/* Step i is at the time of i ms. */
static uint64_t m3_loop(const struct subject *s, uint64_t from, uint64_t steps)
{
    uint64_t right = 0, i;
    unsigned char response[RESPONSE_LEN];
    struct ticket ticket;
    struct command c;

    for (i = from; i < from + steps; i++) {
        make_command(&c, i);
        s->expire((uint32_t)i);
        right += s->begin(&ticket, response, &c, (uint32_t)i) == IDEM_EXECUTE &&
                 s->complete(&ticket, &c, (uint32_t)i) == IDEM_OK;
    }
    return right;
}

/* What the loops cost by themselves */
static uint64_t empty_loop(uint64_t steps)
{
    uint64_t sum = 0, i;
    struct command c;

    for (i = 0; i < steps; i++) {
        make_command(&c, i);
        sum += c.key[0] + c.payload[1] + c.response[15];
    }
    return sum;
}

static double now_ns(void)
{
    return clock_us(CLOCK_PROCESS_CPUTIME_ID) * 1e3;
}

/* The only loop that counts: what callgrind is to collect. */
static NOINLINE uint64_t timed(struct figures *f, loop *run,
                               const struct subject *s, uint64_t from,
                               uint64_t steps)
{
    double start = now_ns();
    uint64_t right = run(s, from, steps);

    f->ns += now_ns() - start;
    f->steps += (double)steps;
    return right;
}

static void expect(uint64_t got, uint64_t want, const char *what,
                   const struct subject *s)
{
    if (got != want)
        fail("%s: %s", s->name, what);
}

/* N fresh keys; a small table is filled over and over. */
static struct figures measure_m1(const struct subject *s, uint64_t keys,
                                 uint64_t steps)
{
    struct figures f = { 0, 0, 0 };

    while (f.steps < (double)steps) {
        s->open(keys, DAY_MS);
        expect(timed(&f, m1_loop, s, 0, keys), keys,
               "M1: an answer is wrong", s);
        f.bytes = (double)s->bytes() / (double)keys;
        expect(s->live(0), keys, "M1: a key is missing", s);
        s->close();
    }
    f.ns /= f.steps;
    return f;
}

/* Replays of random finished keys */
static struct figures measure_m2(const struct subject *s, uint64_t keys,
                                 uint64_t steps)
{
    struct figures f = { 0, 0, 0 };

    s->open(keys, DAY_MS);
    expect(m1_loop(s, 0, keys), keys, "M2: an answer is wrong", s);
    m2_loop(s, keys, steps / 4);
    expect(timed(&f, m2_loop, s, keys, steps), steps,
           "M2: a replay is wrong", s);
    f.bytes = (double)s->bytes() / (double)keys;
    s->close();
    f.ns /= f.steps;
    return f;
}

/* Looking for keys that are absent from a full table */
static struct figures measure_absent(const struct subject *s, uint64_t keys,
                                     uint64_t steps)
{
    struct figures f = { 0, 0, 0 };

    s->open(keys, DAY_MS);
    expect(m1_loop(s, 0, keys), keys, "absent: an answer is wrong", s);
    expect(absent_loop(s, 0, keys), 0, "absent: a key is missing", s);
    expect(timed(&f, absent_loop, s, keys, steps), steps,
           "absent: a key was found", s);
    f.bytes = (double)s->bytes() / (double)keys;
    s->close();
    f.ns /= f.steps;
    return f;
}

/* The oldest key goes, a new one comes.  Retention is as many steps as there
   are to be live keys; before the clock starts every slot has been used. */
static struct figures measure_churn(const struct subject *s, uint64_t live,
                                    uint64_t slots, uint64_t steps)
{
    struct figures f = { 0, 0, 0 };
    uint64_t warm = 2 * slots;

    s->open(slots, (uint32_t)live);
    expect(m3_loop(s, 0, warm), warm, "M3: an answer is wrong", s);
    expect(timed(&f, m3_loop, s, warm, steps), steps,
           "M3: an answer is wrong", s);
    f.bytes = (double)s->bytes() / (double)live;
    expect(s->live((uint32_t)(warm + steps - 1)), live,
           "M3: not as many keys live as ought to", s);
    s->close();
    f.ns /= f.steps;
    return f;
}

static struct figures measure_m3(const struct subject *s, uint64_t live,
                                 uint64_t steps)
{
    return measure_churn(s, live, live / 3 * 4, steps);
}

/* The same with every slot live */
static struct figures measure_full(const struct subject *s, uint64_t live,
                                   uint64_t steps)
{
    return measure_churn(s, live, live, steps);
}

struct workload {
    const char *name, *title;
    struct figures (*measure)(const struct subject *, uint64_t keys,
                              uint64_t steps);
    uint32_t keys;
    uint32_t steps, short_steps;    // at least; 0: not in the short form
};

#define M1_TITLE     "claim and complete a fresh key of N"
#define M2_TITLE     "replay one of N"
#define ABSENT_TITLE "look for a key that is not among N"
#define M3_TITLE     "expire the oldest of N live keys, claim and complete " \
                     "another"

static const struct workload workloads[] = {
    { "M1", M1_TITLE, measure_m1, 1000, 500000, 100000 },
    { "M1", M1_TITLE, measure_m1, 100000, 500000, 100000 },
    { "M1", M1_TITLE, measure_m1, 1000000, 1000000, 0 },
    { "M2", M2_TITLE, measure_m2, 1000, 1000000, 200000 },
    { "M2", M2_TITLE, measure_m2, 100000, 1000000, 200000 },
    { "M2", M2_TITLE, measure_m2, 1000000, 1000000, 0 },
    { "absent", ABSENT_TITLE, measure_absent, 1000, 1000000, 200000 },
    { "absent", ABSENT_TITLE, measure_absent, 100000, 1000000, 0 },
    { "absent", ABSENT_TITLE, measure_absent, 1000000, 1000000, 0 },
    { "M3", M3_TITLE ", 75 % of the slots live", measure_m3, CHURN_LIVE,
      2000000, 200000 },
    { "full", M3_TITLE ", all slots live", measure_full, CHURN_CAPACITY,
      2000000, 0 },
};

/* ---------------------------------------------------------------------------
   Comparing: each repetition measures every subject, and only figures of one
   repetition make a ratio.
   ------------------------------------------------------------------------ */
struct comparison {
    struct sample ns[COUNT(subjects)];
    struct sample ratios[COUNT(subjects)];      // idem.h / it
    struct sample to_best;                      // idem.h / fastest peer
    double bytes[COUNT(subjects)];
};

/* A database is left out where it would take minutes. */
static int takes_part(const struct subject *s, const struct workload *w)
{
    return s->slower == 1 || w->keys <= 1000;
}

/* One repetition: each subject once, beginning with that of `first`. */
static void repeat(struct comparison *c, const struct workload *w,
                   uint64_t steps, size_t first)
{
    struct figures f[COUNT(subjects)];
    double best = 0;
    size_t turn, s;

    for (turn = 0; turn < COUNT(subjects); turn++) {
        s = (turn + first) % COUNT(subjects);
        if (takes_part(subjects[s], w))
            f[s] = w->measure(subjects[s], w->keys,
                              steps / subjects[s]->slower);
    }
    for (s = 0; s < COUNT(subjects); s++) {
        if (!takes_part(subjects[s], w))
            continue;
        sample_add(&c->ns[s], f[s].ns);
        sample_add(&c->ratios[s], f[IDEM].ns / f[s].ns);
        c->bytes[s] = f[s].bytes;
        if (s != IDEM && f[IDEM].ns / f[s].ns > best)
            best = f[IDEM].ns / f[s].ns;
    }
    sample_add(&c->to_best, best);
}

/* Who begins changes from one repetition to the next; the first is only to
   warm up. */
static void compare(struct comparison *c, const struct workload *w,
                    uint64_t steps, int reps)
{
    static const struct comparison none;
    int i;

    for (i = -1; i < reps; i++) {
        if (i <= 0)
            *c = none;
        repeat(c, w, steps, (size_t)(i + 1));
    }
}

static void print_comparison(struct comparison *c, const struct workload *w)
{
    char plot[32];
    size_t s;

    printf("\n%s, N = %lu: %s\n\n| | ns | idem.h / it | bytes a key |\n"
           "|---|--:|--:|--:|\n", w->name, (unsigned long)w->keys, w->title);
    snprintf(plot, sizeof plot, "ram_%s_%lu", w->name, (unsigned long)w->keys);
    for (s = 0; s < COUNT(subjects); s++) {
        if (!c->ns[s].count)
            continue;
        printf("| %s |", subjects[s]->name);
        print_sample(&c->ns[s], " %.0f (%.0f..%.0f) |");
        print_sample(&c->ratios[s], " %.2f (%.2f..%.2f) |");
        printf(" %.0f |\n", c->bytes[s]);
        plot_row(plot, subjects[s]->name, "ns", &c->ns[s]);
    }
    fflush(stdout);
}

static void print_budget(const char *what, struct sample *ratios, double limit)
{
    printf("| %s | %.2f |", what, limit);
    print_sample(ratios, " %.2f (%.2f..%.2f) |");
    printf(" %s |\n", sample_median(ratios) <= limit ? "met" : "missed");
}

/* The budgets of this design; "level" leaves room for noise. */
static void print_budgets(struct comparison *m1, struct comparison *m2,
                          struct comparison *m3)
{
    printf("\n| budget, host | limit | measured | |\n|---|--:|--:|---|\n");
    print_budget("M1, 100000 keys: idem / khash", &m1->ratios[KHASH], 0.80);
    print_budget("M3, 75 % live: idem / uthash", &m3->ratios[UTHASH], 0.65);
    print_budget("M2, 100000 keys: idem / the fastest peer", &m2->to_best,
                 1.05);
}

static void compare_all(int is_short)
{
    static struct comparison results[COUNT(workloads)];
    struct comparison *m1 = NULL, *m2 = NULL, *m3 = NULL;
    size_t i;

    printf("\nNanoseconds of processor time a step, medians of repetitions that "
           "take turns, with\n(least..most); ratios only of the same "
           "repetition.  Below 1 idem.h is faster.\n");
    for (i = 0; i < COUNT(workloads); i++) {
        const struct workload *w = &workloads[i];
        uint32_t steps = is_short ? w->short_steps : w->steps;
        int reps = is_short || w->keys >= 1000000 ? 3 : 7;
        if (!steps)
            continue;
        compare(&results[i], w, steps, reps);
        print_comparison(&results[i], w);
        if (w->keys == 100000 && w->measure == measure_m1)
            m1 = &results[i];
        if (w->keys == 100000 && w->measure == measure_m2)
            m2 = &results[i];
        if (w->measure == measure_m3)
            m3 = &results[i];
    }
    print_budgets(m1, m2, m3);
}

/* ---------------------------------------------------------------------------
   Churn: do probes get longer as keys come and go in any order?
   ------------------------------------------------------------------------ */

/* Words looked at: to find a key, and to find that one is absent */
struct probes {
    double hit, miss;
    unsigned hit_max, miss_max;
};

static struct probes count_probes(const idem_table *t)
{
    struct probes p = { 0, 0, 0, 0 };
    unsigned at;

    for (at = 0; at < t->index_size; at++) {
        unsigned looks = 1, end = at;
        for (; t->index[end].slot; looks++)
            end = idemi_index_next(t, end);
        p.miss += looks;
        if (looks > p.miss_max)
            p.miss_max = looks;
        if (!t->index[at].slot)
            continue;
        looks = 1 + idemi_index_past(t, at, idemi_index_slot(t, at));
        p.hit += looks;
        if (looks > p.hit_max)
            p.hit_max = looks;
    }
    p.hit /= t->used;
    p.miss /= t->index_size;
    return p;
}

/* Removes the key of a random slot. */
static void churn_forget(uint64_t *bits, uint32_t now_ms)
{
    unsigned char key[KEY_LEN];
    idem_request request = { .key = key, .key_len = KEY_LEN };
    unsigned slot;
    int result;

    do {
        *bits = mix(*bits);
        slot = (unsigned)below(table.capacity, *bits);
    } while (!idemi_slot_at(&table, slot)->state);
    memcpy(key, idemi_slot_id(&table, slot), KEY_LEN);
    result = idem_forget(&table, &request, now_ms);
    if (result != IDEM_OK && result != IDEM_E_NOT_FOUND)    // over meanwhile
        fail("churn: a key that is there cannot be forgotten");
}

static void churn_fill(unsigned keys, uint64_t *number, uint32_t now_ms)
{
    while (table.used < keys) {
        unsigned char response[RESPONSE_LEN];
        struct ticket ticket;
        struct command c;
        make_command(&c, (*number)++);
        if (idem_subject_begin(&ticket, response, &c, now_ms) !=
                IDEM_EXECUTE ||
            idem_subject_complete(&ticket, &c, now_ms) != IDEM_OK)
            fail("churn: an answer is wrong");
    }
}

static void print_probes(uint64_t steps, const struct probes *p)
{
    printf("| %lu | %lu | %lu | %.3f | %u | %.3f | %u |\n",
           (unsigned long)steps, (unsigned long)table.used,
           (unsigned long)table.stats.expired, p->hit, p->hit_max, p->miss,
           p->miss_max);
    fflush(stdout);
}

/* In each step a random key is forgotten, a slot is tidied of what is over (one
   key in seven dies so), and new keys come until there are as many again. */
static void churn(unsigned keys, uint64_t steps)
{
    struct probes first = { 0, 0, 0, 0 }, now;
    uint64_t number = 0, bits = 1, next = 1000, i;

    idem_subject_open(CHURN_CAPACITY, 2 * CHURN_LIVE);
    churn_fill(keys, &number, 0);
    for (i = 1; i <= steps; i++) {
        uint32_t now_ms = (uint32_t)i;
        churn_forget(&bits, now_ms);
        if (i % 64 == 0)
            idem_maintain(&table, now_ms);
        churn_fill(keys, &number, now_ms);
        if (i != next)
            continue;
        now = count_probes(&table);
        print_probes(i, &now);
        if (i == 1000)
            first = now;
        next *= 10;
    }
    now = count_probes(&table);
    idem_subject_close();
    if (now.hit > 1.5 * first.hit || now.miss > 1.5 * first.miss)
        fail("churn: probes have grown");
}

/* Linear probing with random keys, after Knuth (1963) */
static void print_expected(double load)
{
    printf("| random keys, in theory | | | %.3f | | %.3f | |\n",
           (1 + 1 / (1 - load)) / 2, (1 + 1 / ((1 - load) * (1 - load))) / 2);
}

static void churn_all(int is_short)
{
    printf("\nIndex words looked at in a lookup, in a table of %d slots; keys "
           "leave in any order\n\n"
           "| churn steps | keys | of them expired | found: mean | max | "
           "absent: mean | max |\n|--:|--:|--:|--:|--:|--:|--:|\n",
           CHURN_CAPACITY);
    churn(CHURN_LIVE, is_short ? 100000 : 10000000);
    print_expected(0.75 / IDEMI_WORDS);
    churn(CHURN_CAPACITY, is_short ? 100000 : 1000000);
    print_expected(1.0 / IDEMI_WORDS);
}

/* ---------------------------------------------------------------------------
   The program
   ------------------------------------------------------------------------ */
static void print_processor(void)
{
    FILE *f = fopen("/proc/cpuinfo", "r");
    char line[256];

    while (f && fgets(line, sizeof line, f))
        if (strncmp(line, "model name", 10) == 0) {
            printf("- processor:%s", strchr(line, ':') + 1);
            break;
        }
    if (f)
        fclose(f);
}

static void print_facts(int argc, char **argv)
{
    struct utsname system;
    volatile uint64_t sink;
    double start;
    int i;

    printf("- command:");
    for (i = 0; i < argc; i++)
        printf(" %s", argv[i]);
    printf("\n- compiler: %s %s, flags %s\n", COMPILER, __VERSION__,
           BENCH_FLAGS);
    printf("- idem.h %06x, khash %s, uthash %s\n", IDEM_VERSION,
           AC_VERSION_KHASH_H, TEXT(UTHASH_VERSION));
    if (uname(&system) == 0)
        printf("- system: %s %s %s\n", system.sysname, system.release,
               system.machine);
    print_processor();
    start = now_ns();
    sink = empty_loop(1000000);
    (void)sink;
    printf("- of each figure, making the command takes %.1f ns\n",
           (now_ns() - start) / 1e6);
}

static int one(const char *name, const char *keys, const char *peer)
{
    size_t w, s;

    for (w = 0; w < COUNT(workloads); w++)
        for (s = 0; s < COUNT(subjects); s++)
            if (strcmp(workloads[w].name, name) == 0 &&
                workloads[w].keys == strtoul(keys, NULL, 10) &&
                strcmp(subjects[s]->name, peer) == 0) {
                struct figures f = workloads[w].measure(
                    subjects[s], workloads[w].keys,
                    20000 / subjects[s]->slower);
                printf("%s %s %s: %.0f steps, %.1f ns a step\n", name, keys,
                       peer, f.steps, f.ns);
                return 0;
            }
    return 2;
}

static int print_names(void)
{
    size_t s;

    for (s = 0; s < COUNT(subjects); s++)
        printf("%s\n", subjects[s]->name);
    return 0;
}

int main(int argc, char **argv)
{
    int is_short = 0, i;

    for (i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--one") == 0 && argc - i == 4)
            return one(argv[i + 1], argv[i + 2], argv[i + 3]);
        if (strcmp(argv[i], "--names") == 0)
            return print_names();
        if (strcmp(argv[i], "--short") == 0)
            is_short = 1;
        else if (strcmp(argv[i], "--grow") == 0)
            grow = 1;
        else
            return 2;
    }
    print_facts(argc, argv);
    compare_all(is_short);
    churn_all(is_short);
    return 0;
}
