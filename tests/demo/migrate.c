/* SPDX-License-Identifier: 0BSD */
/* examples/migrate.c: keys in every state from one journal into another that
   has more and larger sectors and another granule; after a restart the new one
   gives the same answers as the old one. */
#define _POSIX_C_SOURCE 200809L
#define IDEM_FILE_STORAGE
#define IDEM_IMPLEMENTATION
#include "tests/model/call.h"

#define main migrate_main
#define asked is_asked          // of its own, not the model's
#include "examples/migrate.c"
#undef main
#undef asked

enum { KEYS = 26 };
#define LENGTHS " key=16 response=24 state=8 scopes=3"
#define LARGE " size=4096 granule=8" LENGTHS

static device from, to;
static uint32_t now_ms;

static void broken(const char *what, const char *file, int line)
{
    printf("%s:%d: failed: %s\n", file, line, what);
    exit(1);
}

/* Blank, on a device that has run for four weeks */
static void make(device *d, known *keys, const char *modes)
{
    device_reset(d);
    call_modes(d, modes);
    if (d->config.durability == IDEM_BATCH) {   // a file, with its cache
        d->medium.kind = FLASH_INPLACE;
        d->flags = CACHE;
    }
    d->now = UINT32_C(0x90000000);
    d->storage.sector_count = (1 << 18) / d->storage.sector_size;
    device_make(d, keys, KEYS);
    device_open(d);
}

static void restart(device *d)
{
    PROMISE(idem_open(d->table, &d->config, d->memory, d->memory_size,
                      now_ms) == IDEM_OK);
    PROMISE(idem_check(d->table) == 0 && d->table->stats.lost == 0);
}

/* The outcome of a key is the same in both. */
static void same_outcome(const idem_info *a, const idem_info *b)
{
    uint8_t one[KEYS], other[KEYS];
    size_t len = sizeof one, len_too = sizeof other;

    PROMISE(a->code == b->code && a->undelivered == b->undelivered);
    PROMISE(b->left_ms >= a->left_ms && b->left_ms - a->left_ms < 100);
    PROMISE(!idem_response(from.table, one, &len, &a->claim, 0));
    PROMISE(!idem_response(to.table, other, &len_too, &b->claim, 0));
    PROMISE(len == len_too && !memcmp(one, other, len));
}

/* All keys are the same; their number. */
static unsigned same_keys(void)
{
    key k;
    unsigned count = 0;

    memset(&k, 0, sizeof k);
    k.info.id = k.id;
    k.info.id_size = sizeof k.id;
    for (; idem_next(from.table, &k.info, now_ms) == IDEM_OK; count++) {
        idem_request request = request_of(&k);
        idem_info is = { .id = NULL };
        PROMISE(idem_find(to.table, &is, &request, now_ms) == IDEM_OK);
        PROMISE(is.status == k.info.status);
        PROMISE(is.fingerprint == k.info.fingerprint);
        if (is.status == IDEM_IN_PROGRESS)
            PROMISE(is.attempts == k.info.attempts);
        else
            same_outcome(&k.info, &is);
    }
    return count;
}

/* Interrupted keys in the new one */
static unsigned interrupted(void)
{
    idem_info is = { .id = NULL };
    unsigned count = 0;

    while (idem_next(to.table, &is, now_ms) == IDEM_OK)
        count += is.status == IDEM_IN_PROGRESS;
    return count;
}

/* Undelivered outcomes come in the order of completion; returns their
   number. */
static unsigned same_debts(void)
{
    key a, b;
    unsigned count = 0;

    memset(&a, 0, sizeof a);
    memset(&b, 0, sizeof b);
    a.info.id = a.id;
    b.info.id = b.id;
    a.info.id_size = b.info.id_size = sizeof a.id;
    for (; idem_pending(from.table, &a.info, now_ms) == IDEM_OK; count++) {
        PROMISE(idem_pending(to.table, &b.info, now_ms) == IDEM_OK);
        PROMISE(!memcmp(a.id, b.id, a.info.scope_len + a.info.key_len));
    }
    return count;
}

static void same_state(void)
{
    uint8_t one[8], other[8];
    size_t len = sizeof one, len_too = sizeof other;

    PROMISE(idem_state(from.table, one, &len) == IDEM_OK && len > 0);
    PROMISE(idem_state(to.table, other, &len_too) == IDEM_OK);
    PROMISE(len == len_too && !memcmp(one, other, len));
}

static known keys[KEYS], others[KEYS];

/* Copies the journal that a line of calls has made into a new one. */
static int copy_into(const char *modes, const char *line, size_t *copied)
{
    make(&from, keys, "capacity=16 size=1024 granule=1" LENGTHS);
    call_line(&from, line);
    now_ms = from.now;
    make(&to, others, modes);
    return copy_journal(to.table, from.table, copied, &now_ms);
}

static void end_both(void)
{
    device_end(&from);
    device_end(&to);
}

/* A finished key has as much time left in the new journal as in the old one,
   though interrupted ones have moved its tick on. */
static void same_time(void)
{
    size_t copied;

    make(&from, keys, "capacity=26 size=4096 granule=1" LENGTHS);
    for (char name = 'a'; name < 'z'; name++) {
        char line[] = "Bk,lease=1 wait2 Bk,lease=1 wait2 Bk,lease=1 wait2";
        for (char *at = line; (at = strchr(at, 'k')) != NULL; at++)
            *at = name;
        call_line(&from, line);
    }
    call_line(&from, "Bz,retention=99 Cz");
    now_ms = from.now;
    make(&to, others, "capacity=40" LARGE);
    PROMISE(copy_journal(to.table, from.table, &copied, &now_ms) == IDEM_OK);
    PROMISE(copied == KEYS && to.table->used == KEYS);
    restart(&to);
    PROMISE(same_keys() == KEYS);
    end_both();
}

static idem_request number(uint32_t epoch, uint32_t sequence)
{
    idem_request request = { .scope = "n", .scope_len = 1, .epoch = epoch,
                             .sequence = sequence, .lease_ms = 1 };

    return request;
}

/* A number that the new table refuses, for it has a newer epoch, is not
   copied. */
static void refused_number(void)
{
    idem_request old = number(1, 5), newer = number(2, 1);
    idem_claim claim;
    idem_reply reply;
    size_t copied;

    make(&from, keys, "capacity=16 size=1024 granule=1 senders=2" LENGTHS);
    make(&to, others, "capacity=40 senders=2" LARGE);
    now_ms = from.now;
    PROMISE(idem_begin(from.table, &claim, &reply, &old, now_ms) > 0);
    PROMISE(idem_begin(to.table, &claim, &reply, &newer, now_ms) > 0);
    now_ms += newer.lease_ms;
    PROMISE(idem_forget(to.table, &newer, now_ms) == IDEM_OK);
    PROMISE(copy_journal(to.table, from.table, &copied, &now_ms) ==
            IDEM_TOO_OLD);
    end_both();
}

/* The state comes over where no key is longer than a byte, and no scope fits. */
static void shortest_keys(void)
{
    static uint32_t memory[2][IDEM_MEMORY_SIZE(4, 1, 0, 8) / 4];
    idem_config config = { .capacity = 4, .key_max = 1, .state_max = 8,
                           .secret = { 1, 0, 0, 0, 0, 0, 0, 0, 1 } };
    idem_request request = { .key = "k", .key_len = 1 };
    idem_outcome outcome = { .state = "the same", .state_len = 8 };
    idem_table old = { 0 }, new = { 0 };
    idem_claim claim;
    idem_reply reply;
    uint8_t state[8];
    size_t copied, len = sizeof state;

    now_ms = 0;
    PROMISE(!idem_open(&old, &config, memory[0], sizeof memory[0], now_ms));
    PROMISE(!idem_open(&new, &config, memory[1], sizeof memory[1], now_ms));
    PROMISE(idem_begin(&old, &claim, &reply, &request, now_ms) > 0);
    PROMISE(!idem_complete(&old, &claim, &outcome, now_ms));
    PROMISE(copy_journal(&new, &old, &copied, &now_ms) == IDEM_OK);
    PROMISE(copied == 1 && new.used == 1);
    PROMISE(!idem_state(&new, state, &len) && len == sizeof state);
    PROMISE(!memcmp(state, outcome.state, sizeof state));
}

/* A batch is durable when it is copied: who removes the old journal then would
   lose what is not. */
static void batch(void)
{
    size_t copied;

    PROMISE(copy_into("batch capacity=40" LARGE, "Bb Cb Bc Cc Bd", &copied) ==
            IDEM_OK);
    PROMISE(copied == 3 && to.medium.unsynced == 0);
    end_both();
}

/* A smaller table that evicts has not got all of them. */
static void evicted(void)
{
    size_t copied;

    PROMISE(copy_into("evict capacity=2" LARGE, "Ba Ca Bb Cb Bc Cc", &copied) ==
            IDEM_E_FULL);
    end_both();
}

int main(void)
{
    size_t copied;

    // Too small
    PROMISE(copy_into("capacity=10" LARGE,
                      "Ba Oa Bb Ob Bc Qc Bd Od Be Oe Bf Cf Bg Fg Bh Ch Bi Fi "
                      "Bj Cj,retention=9000 Bk Zk Bl Sl Bm Rm "
                      "Bz,lease=9 wait99 Bz,lease=9 wait99 Bz By P",
                      &copied) == IDEM_E_FULL);
    device_end(&to);
    make(&to, others, "capacity=40" LARGE);
    PROMISE(copy_journal(to.table, from.table, &copied, &now_ms) == IDEM_OK);
    restart(&to);
    PROMISE(copied == 14 && to.table->used == 14 && same_keys() == 14);
    PROMISE(same_debts() == 5);
    same_state();
    now_ms += UINT32_C(20) * 24 * 60 * 60 * 1000;
    PROMISE(interrupted() == 2);
    end_both();
    same_time();
    refused_number();
    shortest_keys();
    batch();
    evicted();
    puts("migrate: every key, its state and what is undelivered came over");
    return 0;
}
