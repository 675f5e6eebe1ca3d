/* SPDX-License-Identifier: 0BSD */
/* examples/migrate.c: keys in every state from one journal into another that
   has more and larger sectors and another granule; what that says then, after a
   restart. */
#define main migrate_main
#include "examples/migrate.c"
#undef main

#define CHECK(condition)                                                       \
    do {                                                                       \
        if (!(condition)) {                                                    \
            printf("%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);     \
            exit(1);                                                           \
        }                                                                      \
    } while (0)

enum { OWED = 1, FINAL = 2, CODE = -77 };

typedef struct device {
    unsigned char bytes[1 << 18];
    idem_storage storage;
    idem_config config;
    idem_table table;
    uint32_t memory[1 << 14];
} device;

static int ram_read(void *ctx, uint32_t at, void *dst, uint32_t len)
{
    memcpy(dst, ((device *)ctx)->bytes + at, len);
    return 0;
}

static int ram_prog(void *ctx, uint32_t at, const void *src, uint32_t len)
{
    memcpy(((device *)ctx)->bytes + at, src, len);
    return 0;
}

static void start(device *d)
{
    CHECK(idem_open(&d->table, &d->config, d->memory, sizeof d->memory,
                    now_ms) == IDEM_OK);
}

static void make(device *d, uint32_t keys, uint32_t sector, uint16_t granule)
{
    memset(d, 0, sizeof *d);
    d->storage.ctx = d;
    d->storage.read = ram_read;
    d->storage.prog = ram_prog;
    d->storage.sector_size = sector;
    d->storage.sector_count = (1 << 18) / sector;
    d->storage.prog_size = granule;
    d->config.capacity = keys;
    d->config.key_max = 16;
    d->config.response_max = 24;
    d->config.state_max = 8;
    d->config.retention_ms = 3600000;
    memset(d->config.secret, 7, sizeof d->config.secret);
    d->config.storage = &d->storage;
    start(d);
}

static int begin(device *d, idem_claim *claim, idem_reply *reply,
                 const char *name, int number)
{
    static char text[16];
    idem_request request = { .scope = "panel", .scope_len = 5, .key = text,
                             .payload = name, .payload_len = strlen(name) };

    request.key_len = (size_t)snprintf(text, sizeof text, "%s%d", name, number);
    request.lease_ms = 1000;
    return idem_begin(&d->table, claim, reply, &request, now_ms += 10);
}

static void finish(device *d, const char *name, int number, int flags)
{
    idem_outcome outcome = { .response = name, .response_len = strlen(name),
                             .state = name, .state_len = 4 };
    idem_reply reply = { 0 };
    idem_claim claim;

    outcome.code = number + CODE;
    outcome.confirm = (flags & OWED) != 0;
    outcome.failed = (flags & FINAL) != 0;
    CHECK(begin(d, &claim, &reply, name, number) == IDEM_EXECUTE);
    CHECK(idem_complete(&d->table, &claim, &outcome, now_ms) == IDEM_OK);
}

static void is_finished(device *d, const char *name, int number, int status)
{
    char response[24];
    idem_reply reply = { .buffer = response, .buffer_size = sizeof response };
    idem_claim claim;

    CHECK(begin(d, &claim, &reply, name, number) == IDEM_REPLAY);
    CHECK(reply.response_len == strlen(name));
    CHECK(memcmp(response, name, strlen(name)) == 0);
    CHECK(reply.code == number + CODE && reply.status == status);
}

/* What is owed comes in the order of completion. */
static void is_owed_in_order(device *d)
{
    unsigned char id[16];
    idem_entry entry = { .id = id, .id_size = sizeof id };
    int count = 0;

    while (idem_pending(&d->table, &entry, now_ms) == IDEM_OK)
        CHECK(id[5 + 4] == '0' + count++);
    CHECK(count == 5);
}

static void fill(device *d)
{
    idem_reply reply = { 0 };
    idem_claim claim;
    int i;

    for (i = 0; i < 5; i++)
        finish(d, "owed", i, OWED);
    for (i = 0; i < 5; i++) {
        finish(d, "done", i, 0);
        finish(d, "fail", i, FINAL);
    }
    for (i = 0; i < 2; i++) {                   // the third is under way
        CHECK(begin(d, &claim, &reply, "cut", 0) >= IDEM_OK);
        now_ms += 2000;
    }
    CHECK(begin(d, &claim, &reply, "cut", 0) == IDEM_RECOVER);
}

int main(void)
{
    static device from, to;
    idem_reply reply = { 0 };
    idem_claim claim;
    char state[8];
    size_t copied, len = sizeof state;
    int i;

    make(&from, 16, 1024, 1);
    fill(&from);
    start(&from);                               // as a migration finds it
    make(&to, 10, 4096, 8);                     // too small: told
    CHECK(copy_journal(&to.table, &from.table, &copied) == IDEM_E_FULL);
    make(&to, 40, 4096, 8);
    CHECK(copy_journal(&to.table, &from.table, &copied) == IDEM_OK);
    CHECK(copied == 16 && to.table.used == 16);
    to.config.max_attempts = 4;
    start(&to);
    CHECK(idem_check(&to.table) == 0 && to.table.stats.lost == 0);
    for (i = 0; i < 5; i++) {
        is_finished(&to, "owed", i, IDEM_COMPLETED);
        is_finished(&to, "done", i, IDEM_COMPLETED);
        is_finished(&to, "fail", i, IDEM_FAILED);
    }
    is_owed_in_order(&to);
    CHECK(idem_state(&to.table, state, &len) == IDEM_OK);
    CHECK(len == 4 && memcmp(state, "fail", 4) == 0);
    CHECK(begin(&to, &claim, &reply, "cut", 0) == IDEM_RECOVER);
    CHECK(claim.attempt == 4);
    now_ms += 2000;
    CHECK(begin(&to, &claim, &reply, "cut", 0) == IDEM_EXHAUSTED);
    now_ms += 3600000;
    CHECK(begin(&to, &claim, &reply, "done", 1) == IDEM_EXECUTE);
    puts("migrate: every key, its state and what is owed came over");
    return 0;
}
