/* SPDX-License-Identifier: 0BSD
   What a machine must get right, in plain C, for machines that can do little:
   hashes, the life of a key, and with a journal power cuts at every storage
   operation.  Says what failed by line; returns 0 if nothing did.

     SELFTEST_STRIDE  of the ways to tear an operation, one in so many
     IDEM_NO_JOURNAL  no media */
#define IDEM_IMPLEMENTATION
#include "idem.h"
#include "tests/inside.h"
#ifndef IDEM_NO_JOURNAL
#include "tests/storage/flash.h"
#endif
#include "board.h"

#ifdef SELFTEST_STRIDE
enum { STRIDE = SELFTEST_STRIDE };
#else
enum { STRIDE = 1 };
#endif

int program(void);

enum { CAPACITY = 2, KEY_MAX = 4, RESPONSE_MAX = 8 };
enum { LEASE = 100, RETENTION = 1000 };

static uint32_t checks;

static void check(int holds, int line)
{
    checks++;
    if (holds)
        return;
    board_text("FAILED: selftest.c, line ");
    board_number((uint32_t)line);
    board_text("\n");
    board_exit(1);
}

#define CHECK(condition) check((condition) != 0, __LINE__)

/* ------------------------------------------------------------------- hashes */

#if IDEM_HASH != IDEM_HASH_FNV
/* A digest of the hashes of 0 to 63 bytes.  tests/unit/hash.h compares them
   with the vectors of their authors, all under the key 00 01 02 ... */
static uint64_t digest(int strong)
{
    uint64_t all = UINT64_C(0xcbf29ce484222325);
    idem_config hashed;
    uint8_t data[64];

    memset(&hashed, 0, sizeof hashed);
    for (unsigned i = 0; i < sizeof hashed.secret; i++)
        hashed.secret[i] =
            (uint8_t)(IDEM_HASH == IDEM_HASH_SIPHASH ? i : i % 8);
    for (unsigned len = 0; len < sizeof data; len++) {
        idem_fingerprint_state state;
        uint64_t hash;
        data[len] = (uint8_t)len;
        inside_hash_init(&state, &hashed, strong);
        inside_hash_update(&state, data, len);
        hash = inside_hash_final(&state);
        for (unsigned i = 0; i < 8; i++)
            all = (all ^ (hash >> 8 * i & 0xFF)) * UINT64_C(0x100000001b3);
    }
    return all;
}
#endif

static void hashes_are_those_published(void)
{
#if IDEM_HASH == IDEM_HASH_SIPHASH
    CHECK(digest(1) == UINT64_C(0xdf6e50c71553c78c));
    CHECK(digest(0) == UINT64_C(0x973f893ba162c4ed));
#elif IDEM_HASH == IDEM_HASH_HALFSIPHASH
    CHECK(digest(1) == UINT64_C(0xeab2099caf5ec8e2));
    CHECK(digest(0) == UINT64_C(0x950e07011af19bed));
#else
    idem_fingerprint_state state;

    inside_hash_init(&state, NULL, 0);
    inside_hash_update(&state, "foobar", 6);
    CHECK((uint32_t)inside_hash_final(&state) == UINT32_C(0xbf9cf968));
#endif
}

/* -------------------------------------------------------------------- calls */

static idem_config config = {
    .capacity = CAPACITY, .key_max = KEY_MAX, .response_max = RESPONSE_MAX,
    .lease_ms = LEASE, .retention_ms = RETENTION,
    .secret = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16 }
};
static idem_table table;
static idem_claim claim;
static idem_reply reply;
static char buffer[RESPONSE_MAX];
static uint32_t now;

static int begin_with(char key, char payload)
{
    idem_request request = { .key = &key, .key_len = 1, .payload = &payload,
                             .payload_len = 1 };

    memset(buffer, 0, sizeof buffer);
    reply.buffer = buffer;
    reply.buffer_size = sizeof buffer;
    return idem_begin(&table, &claim, &reply, &request, ++now);
}

static int begin(char key)
{
    return begin_with(key, 'p');
}

/* The response to a key is its byte as often as its place in the alphabet. */
static size_t response_of(char *response, char key)
{
    size_t len = (size_t)(key - 'a') % RESPONSE_MAX + 1;

    memset(response, key, len);
    return len;
}

static int complete(const idem_claim *held, char key)
{
    char response[RESPONSE_MAX];
    idem_outcome outcome = { .response = response, .code = key };

    outcome.response_len = response_of(response, key);
    return idem_complete(&table, held, &outcome, ++now);
}

/* Whether the latest reply is that to this key. */
static int replayed(char key)
{
    char response[RESPONSE_MAX];
    size_t len = response_of(response, key);

    return reply.response_len == len && reply.code == key &&
           reply.status == IDEM_COMPLETED && !memcmp(buffer, response, len);
}

static int forget(char key)
{
    idem_request request = { .key = &key, .key_len = 1 };

    return idem_forget(&table, &request, ++now);
}

/* ------------------------------------------------------------ life of a key */

static uint32_t memory_without[IDEM_MEMORY_SIZE(CAPACITY, KEY_MAX, RESPONSE_MAX,
                                                0) / 4];

static void open_without_storage(uint32_t tick)
{
    config.storage = NULL;
    now = tick;
    CHECK(idem_open(&table, &config, memory_without, sizeof memory_without,
                    now) == IDEM_OK);
}

static void a_key_lives(uint32_t tick)
{
    idem_claim first;

    open_without_storage(tick);
    CHECK(begin('a') == IDEM_EXECUTE);
    first = claim;
    CHECK(begin('a') == IDEM_BUSY);
    CHECK(reply.retry_after_ms == LEASE - 1);
    CHECK(begin_with('a', 'd') == IDEM_MISMATCH);
    now += LEASE;
    CHECK(begin('a') == IDEM_RECOVER);
    CHECK(claim.attempt == 2);
    CHECK(complete(&first, 'a') == IDEM_E_FENCED);
    CHECK(complete(&claim, 'a') == IDEM_OK);
    CHECK(complete(&claim, 'a') == IDEM_E_FENCED);
    CHECK(begin('a') == IDEM_REPLAY && replayed('a'));
    CHECK(begin_with('a', 'd') == IDEM_MISMATCH);
    CHECK(idem_check(&table) == 0);
}

static void a_full_table_refuses(uint32_t tick)
{
    idem_claim second;

    open_without_storage(tick);
    CHECK(begin('a') == IDEM_EXECUTE);
    CHECK(complete(&claim, 'a') == IDEM_OK);
    CHECK(begin('b') == IDEM_EXECUTE);
    second = claim;
    CHECK(begin('c') == IDEM_E_FULL);
    CHECK(idem_release(&table, &second, ++now) == IDEM_OK);
    CHECK(begin('c') == IDEM_EXECUTE);
    CHECK(begin('a') == IDEM_REPLAY && replayed('a'));
    now += RETENTION;
    CHECK(begin('a') == IDEM_EXECUTE);
    CHECK(idem_check(&table) == 0);
}

static void attempts_end(uint32_t tick)
{
    open_without_storage(tick);
    CHECK(begin('a') == IDEM_EXECUTE);
    now += LEASE;
    CHECK(begin('a') == IDEM_RECOVER);
    now += LEASE;
    CHECK(begin('a') == IDEM_RECOVER);
    now += LEASE;
    CHECK(begin('a') == IDEM_EXHAUSTED);
    CHECK(forget('a') == IDEM_OK);
    CHECK(begin('a') == IDEM_EXECUTE);
    // A tick that goes back shortens nothing.
    now -= 10000;
    CHECK(begin('a') == IDEM_BUSY);
    CHECK(idem_check(&table) == 0);
}

/* Each life begins shortly before the tick wraps, and elsewhere. */
static void keys_live(void)
{
    static const uint32_t ticks[] = { 0, 0x7FFFFFC0, 0xFFFFFFC0, 0xFFFFFFFF };

    for (unsigned i = 0; i < sizeof ticks / sizeof ticks[0]; i++) {
        a_key_lives(ticks[i]);
        a_full_table_refuses(ticks[i]);
        attempts_end(ticks[i]);
    }
}

/* ------------------------------------------------------------------ journal */
#ifndef IDEM_NO_JOURNAL

typedef struct medium_kind {
    int kind;
    uint32_t granule, sector_size;
    uint8_t erased;
} medium_kind;

// Each of as few sectors as the table asks for.
static const medium_kind media[] = {
    { FLASH_NOR, 1, 512, 0xFF },
    { FLASH_INPLACE, 1, 512, 0xFF },
    { FLASH_NOR, 8, 512, 0xFF },
    { FLASH_ECC, 16, 640, 0xFF },
    { FLASH_NOR, 4, 512, 0x00 },
};

enum { MEDIUM_SIZE = 640, MEDIUM_COUNT = 6 };

static flash medium;
static idem_storage storage;
static uint32_t medium_memory[FLASH_MEMORY(MEDIUM_SIZE, MEDIUM_COUNT) / 4];
static uint32_t memory[IDEM_JOURNAL_MEMORY_SIZE(CAPACITY, KEY_MAX, RESPONSE_MAX,
                                                0, 16) / 4];
static uint32_t cuts;

static void insert(const medium_kind *kind)
{
    uint32_t count = IDEM_SECTORS(CAPACITY, KEY_MAX, RESPONSE_MAX, 0,
                                  kind->sector_size, kind->granule);

    CHECK(count && count <= MEDIUM_COUNT);
    memset(&medium, 0, sizeof medium);
    medium.kind = kind->kind;
    medium.sector_size = kind->sector_size;
    medium.sector_count = count;
    medium.prog_size = kind->granule;
    medium.erased = kind->erased;
    medium.seed = 1;
    CHECK(flash_init(&medium, medium_memory) == 0);
    memset(&storage, 0, sizeof storage);
    storage.ctx = &medium;
    storage.read = flash_read;
    storage.prog = flash_prog;
    storage.erase = kind->kind == FLASH_INPLACE ? NULL : flash_erase;
    storage.sector_size = kind->sector_size;
    storage.sector_count = count;
    storage.prog_size = (uint16_t)kind->granule;
    storage.erased = kind->erased;
}

/* Power comes back; the tick starts anywhere. */
static void start_again(void)
{
    flash_boot(&medium);
    config.storage = &storage;
    now = now * 5 + 1;
    CHECK(idem_open(&table, &config, memory, sizeof memory, now) == IDEM_OK);
    CHECK(table.stats.lost == 0);
    CHECK(idem_check(&table) == 0);
}

// What is certain of a key, and in doubt since the call that was cut short.
enum { UNKNOWN, CLAIMED, FINISHED };
enum { KEYS = 4 };
typedef struct certainty {
    uint8_t is, or_is;
} certainty;

static certainty keys[KEYS];
static idem_claim claims[KEYS];

/* One step of a workload: B, C, R, X (forget) of a key, or M.  Returns whether
   the power is still on. */
static int step(char what, char key)
{
    certainty *k = &keys[key - 'a'];
    idem_claim *held = &claims[key - 'a'];
    int result;

    k->or_is = what == 'B' ? CLAIMED : what == 'C' ? FINISHED :
               what == 'M' ? k->is : UNKNOWN;
    if (what == 'B') {
        result = begin(key);
        *held = claim;
    } else {
        result = what == 'C' ? complete(held, key) :
                 what == 'R' ? idem_release(&table, held, ++now) :
                 what == 'X' ? forget(key) : idem_maintain(&table, ++now);
    }
    if (medium.off) {
        // Without power it cannot have succeeded, but for the last operation.
        if (result >= 0)
            k->is = k->or_is;
        return 0;
    }
    CHECK(what == 'B' ? result == IDEM_EXECUTE : result >= 0);
    k->is = k->or_is;
    return 1;
}

static int work(const char *steps)
{
    for (; *steps; steps += 2)
        if (!step(steps[0], steps[1]))
            return 0;
    return 1;
}

static int known(char key)
{
    idem_request request = { .key = &key, .key_len = 1 };
    idem_entry entry = { .id = NULL };

    return idem_find(&table, &entry, &request, now) == IDEM_OK;
}

/* Asks again for a key as its sender would, and finishes what was cut short. */
static void ask(char key)
{
    certainty *k = &keys[key - 'a'];
    int result;

    if (!known(key)) {
        // What was cut short may still turn out to have happened (S10).
        CHECK(k->is == UNKNOWN || k->or_is == UNKNOWN);
        return;
    }
    result = begin(key);
    if (result == IDEM_REPLAY) {
        CHECK(k->is == FINISHED || k->or_is == FINISHED);
        CHECK(replayed(key));
    } else {
        CHECK(result == IDEM_RECOVER);
        CHECK(k->is == CLAIMED || k->or_is == CLAIMED);
        CHECK(complete(&claim, key) == IDEM_OK);
    }
    k->is = k->or_is = FINISHED;
}

static void ask_all(void)
{
    for (char key = 'a'; key < 'a' + KEYS; key++)
        ask(key);
}

/* Long enough for the ring of sectors to turn. */
static const char workload[] =
    "BaBbCaMaCbXaBcRcBcCcXbMaBaXcCaBbCbXaBaXbRaMaBcCcBdRdBdCdXcBaMaCa"
    "XdBbCbXaBcMaCcXbBdCdXcMaMaMaMa";

/* Returns how many ways there were to tear the n-th operation. */
static uint32_t cut(const medium_kind *kind, uint32_t n, uint32_t variant)
{
    insert(kind);
    memset(keys, 0, sizeof keys);
    start_again();
    flash_cut(&medium, n, variant);
    if (work(workload))
        return 0;
    cuts++;
    start_again();
    ask_all();
    start_again();
    ask_all();
    CHECK(medium.violations == 0);
    return medium.variants;
}

static void cuts_do_no_harm(void)
{
    for (unsigned i = 0; i < sizeof media / sizeof media[0]; i++)
        for (uint32_t n = 0, count = 1; count; n++) {
            count = cut(&media[i], n, 0);
            for (uint32_t v = STRIDE; v < count; v += STRIDE)
                cut(&media[i], n, v);
        }
}

static void restarts_do_no_harm(void)
{
    for (unsigned i = 0; i < sizeof media / sizeof media[0]; i++) {
        insert(&media[i]);
        memset(keys, 0, sizeof keys);
        start_again();
        CHECK(work("BaCaBb"));
        start_again();
        CHECK(begin('b') == IDEM_RECOVER && claim.attempt == 2);
        CHECK(idem_release(&table, &claims[1], ++now) == IDEM_E_FENCED);
        CHECK(complete(&claim, 'b') == IDEM_OK);
        start_again();
        CHECK(begin('a') == IDEM_REPLAY && replayed('a'));
        CHECK(begin('b') == IDEM_REPLAY && replayed('b'));
        CHECK(begin_with('b', 'd') == IDEM_MISMATCH);
        CHECK(begin('c') == IDEM_E_FULL);
        CHECK(medium.violations == 0);
    }
}

#endif /* IDEM_NO_JOURNAL */

int program(void)
{
    hashes_are_those_published();
    keys_live();
#ifndef IDEM_NO_JOURNAL
    restarts_do_no_harm();
    cuts_do_no_harm();
#endif
    board_number(checks);
    board_text(" checks");
#ifndef IDEM_NO_JOURNAL
    board_text(", ");
    board_number(cuts);
    board_text(" power cuts");
#endif
    board_text(" passed\n");
    return 0;
}
