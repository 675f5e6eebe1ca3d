/* SPDX-License-Identifier: 0BSD */
/*
 * Shows that idem_begin_many answers each request as idem_begin would, one by
 * one: two tables get the same calls by chance, one of them in bursts.
 * Keys are few, so most bursts have duplicates; some requests are mistakes.
 * Afterwards answers, replies, tables and journals are the same.
 */
#include "unit.h"

#include "model/media.h"

enum { KEY = 6, RESPONSE = 8, KEYS = 40, BURSTS = 3000 };

static struct side {
    idem_config config;
    idem_table table;
    flash medium;
    idem_storage storage;
    void *memory;
    idem_claim held[KEYS];
    uint8_t responses[IDEM_MANY][RESPONSE];
} one, many;

static uint32_t chance, answered[IDEM_EXHAUSTED + 1];
static int refuse, locks;       // the lock does; how often it was taken

static uint32_t dice(uint32_t n)
{
    chance = flash_mix(chance + 1);
    return chance % n;
}

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

static void open_side(struct side *s, const idem_config *c, int journal)
{
    size_t size = IDEM_SENDERS_MEMORY_SIZE(c->senders) +
                  IDEM_QUOTA_MEMORY_SIZE(c->capacity, c->senders);

    medium_end(&s->medium);
    free(s->memory);
    memset(s, 0, sizeof *s);
    s->config = *c;
    s->storage = (idem_storage){
        .ctx = &s->medium, .read = flash_read, .prog = flash_prog,
        .erase = flash_erase, .sector_size = 1024, .prog_size = 8,
        .erased = 0xFF };
    size += journal ? IDEM_JOURNAL_MEMORY_SIZE(c->capacity, KEY, RESPONSE, 0, 8)
                    : IDEM_MEMORY_SIZE(c->capacity, KEY, RESPONSE, 0);
    if (journal) {
        s->config.storage = &s->storage;
        s->storage.sector_count = medium_sectors(&s->config, &s->storage);
        s->medium.kind = FLASH_NOR;
        is(medium_make(&s->medium, &s->storage, 0), 0);
    }
    s->memory = medium_allocate(size);
    is(idem_open(&s->table, &s->config, s->memory, size, 0), IDEM_OK);
}

/* A request about a key; returns that. */
static uint32_t make_request(idem_request *rq, uint8_t key[KEY], uint32_t keys)
{
    uint32_t number = dice(keys);

    memset(rq, 0, sizeof *rq);
    memset(key, (int)number, KEY);
    rq->scope = key;
    rq->scope_len = number % 3;
    rq->key = key;
    rq->key_len = dice(30) ? 3 : 0;             // none
    rq->payload = key;
    rq->payload_len = dice(10) ? 2 : 1;         // another
    rq->lease_ms = dice(8);
    rq->response_size = dice(30) ? 0 : RESPONSE + 1;
    rq->age_ms = dice(20) ? 0 : dice(300);
    rq->buffer_size = RESPONSE;
    return number;
}

/* Completes some of the claims, and gives some back; the sum of the answers. */
static int go_on(struct side *s, uint32_t what, uint32_t now)
{
    int sum = 0;

    for (uint32_t i = 0; i < KEYS; i++, what = flash_mix(what + 1)) {
        idem_outcome outcome = { .response = &i, .response_len = 1 + i % 4 };
        if (!s->held[i].token || what % 4 > 1)
            continue;
        sum += what % 4
                    ? idem_complete(&s->table, &s->held[i], &outcome, now)
                    : idem_release(&s->table, &s->held[i], now);
        memset(&s->held[i], 0, sizeof *s->held);
    }
    return sum;
}

static void hold(struct side *s, uint32_t key, const idem_claim *claim)
{
    if (claim->token)
        s->held[key] = *claim;
}

static void same_claims(const idem_claim *a, const idem_claim *b)
{
    assert_true(a->token == b->token && a->slot == b->slot &&
                a->attempt == b->attempt);
}

static void a_burst(uint32_t keys, uint32_t now)
{
    static uint8_t names[IDEM_MANY][KEY];
    idem_request requests[IDEM_MANY];
    idem_reply replies[IDEM_MANY], reply;
    int answers[IDEM_MANY + 1], mistakes = 0;
    uint32_t numbers[IDEM_MANY];
    size_t count = dice(IDEM_MANY + 1);

    for (size_t i = 0; i < count; i++) {
        numbers[i] = make_request(&requests[i], names[i], keys);
        requests[i].buffer = many.responses[i];
    }
    locks = 0;
    memset(replies, 0x5A, sizeof replies);
    answers[count] = IDEM_OK;
    is(idem_begin_many(&many.table, answers, replies, requests, count, now),
       IDEM_OK);
    is(answers[count], IDEM_OK);                // it is of no request
    assert_true(locks <= 1);
    for (size_t i = 0; i < count; i++) {
        static const idem_claim none;
        idem_claim claim;
        int answer;
        requests[i].buffer = one.responses[i];
        answer = idem_begin(&one.table, &claim, &reply, &requests[i], now);
        is(answers[i], answer);
        mistakes += answer == IDEM_E_ARG || answer == IDEM_E_TOO_LARGE;
        same_claims(&replies[i].claim, &reply.claim);
        same_claims(&claim, answer == IDEM_REPLAY ? &none : &reply.claim);
        is(replies[i].response_len, reply.response_len);
        is(replies[i].status, reply.status);
        is(replies[i].code, reply.code);
        is(replies[i].age_ms, reply.age_ms);
        is(replies[i].retry_after_ms, reply.retry_after_ms);
        if (answer != IDEM_REPLAY) {
            hold(&one, numbers[i], &claim);
            hold(&many, numbers[i], &replies[i].claim);
        }
    }
    is(locks, (int)count - mistakes + ((int)count > mistakes));
    assert_memory_equal(one.responses, many.responses, sizeof one.responses);
}

static void compare(const idem_config *c, int journal)
{
    uint32_t now = 0, keys = 2 + dice(KEYS - 2);

    open_side(&one, c, journal);
    open_side(&many, c, journal);
    for (uint32_t i = 0; i < BURSTS; i++) {
        uint32_t what = dice(UINT32_MAX);
        now += dice(4) ? dice(10) : 0;
        a_burst(keys, now);
        is(go_on(&one, what, now), go_on(&many, what, now));
    }
    is(idem_check(&one.table), 0);
    is(idem_check(&many.table), 0);
    is(one.table.used, many.table.used);
    assert_memory_equal(&one.table.stats, &many.table.stats,
                        sizeof one.table.stats);
    for (int answer = 0; answer <= IDEM_EXHAUSTED; answer++)
        answered[answer] += one.table.stats.answers[answer];
    if (journal)
        assert_memory_equal(one.medium.bytes, many.medium.bytes,
                            one.medium.size);
}

TEST(a_burst_is_answered_as_its_requests_would_be_one_by_one)
{
    for (int i = 0; i < 16; i++) {
        idem_config c = {
            .capacity = 1 + dice(30), .key_max = KEY, .response_max = RESPONSE,
            .retention_ms = 200, .max_attempts = 1 + dice(4) % 4,
            .full = i & 1 ? IDEM_EVICT_OLDEST : IDEM_REJECT,
            .senders = i & 2 ? 3 : 0, .quota = i & 2 ? dice(6) : 0,
            .secret = { 1, 2, 3, 4, 5, 6, 7, 8, 9 },
            .lock = lock, .unlock = unlock };
        compare(&c, i & 4);
    }
    for (int answer = IDEM_EXECUTE; answer <= IDEM_EXHAUSTED; answer++)
        if (answer != IDEM_UNCERTAIN)           // nothing is lost here
            assert_true(answered[answer] > 50);
}

TEST(s1_of_two_with_one_key_in_a_burst_one_is_executed)
{
    idem_config c = { .capacity = 4, .key_max = KEY, .response_max = RESPONSE,
                      .secret = { 1, 2, 3, 4, 5, 6, 7, 8, 9 } };
    idem_request requests[3] = { { .key = "a", .key_len = 1 },
                                 { .key = "a", .key_len = 1 },
                                 { .key = "b", .key_len = 1 } };
    idem_reply replies[3];
    int answers[3];

    open_side(&many, &c, 0);
    is(idem_begin_many(&many.table, answers, replies, requests, 3, 0), IDEM_OK);
    is(answers[0], IDEM_EXECUTE);
    is(answers[1], IDEM_BUSY);
    is(answers[2], IDEM_EXECUTE);
    assert_true(replies[0].claim.token && !replies[1].claim.token);
}

TEST(a_burst_that_is_too_long_or_has_no_lock_is_refused_whole)
{
    static idem_request requests[IDEM_MANY + 1];
    static idem_reply replies[IDEM_MANY + 1];
    static int answers[IDEM_MANY + 1];
    idem_config c = { .capacity = 40, .key_max = KEY, .response_max = RESPONSE,
                      .secret = { 1, 2, 3, 4, 5, 6, 7, 8, 9 },
                      .lock = lock, .unlock = unlock };

    for (int i = 1; i <= IDEM_MANY; i++)
        requests[i] = (idem_request){ .key = "a", .key_len = 1 };
    open_side(&many, &c, 0);
    is(idem_begin_many(&many.table, answers, replies, requests, IDEM_MANY + 1,
                       0), IDEM_E_ARG);
    is(idem_begin_many(&many.table, NULL, replies, requests, 1, 0), IDEM_E_ARG);
    is(many.table.used, 0);
    refuse = 1;
    is(idem_begin_many(&many.table, answers, replies, requests, 2, 0),
       IDEM_E_LOCK);
    refuse = 0;
    is(answers[0], IDEM_E_ARG);                 // has no key
    is(answers[1], IDEM_E_LOCK);
    is(answers[2], IDEM_OK);
    is(many.table.used, 0);
    is(idem_begin_many(&many.table, answers, replies, requests, 1, 0), IDEM_OK);
    is(answers[0], IDEM_E_ARG);
    is(idem_begin_many(&many.table, answers, replies, requests, IDEM_MANY, 0),
       IDEM_OK);
    is(answers[1], IDEM_EXECUTE);
    is(answers[IDEM_MANY - 1], IDEM_BUSY);
}
