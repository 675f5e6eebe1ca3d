/* SPDX-License-Identifier: 0BSD */
/*
 * Shows that the hash that IDEM_HASH says gives the values its authors expect,
 * the strong one and the quick one, and gives the same value however a message
 * is cut into pieces and wherever it lies in memory.
 *
 * The header has one hash at a time; so there is a program for each, which says
 * what is expected: hash_siphash.c, hash_halfsiphash.c, hash_fnv.c.
 */
#ifndef HASH_H
#define HASH_H

#define IDEM_STATIC
#define IDEM_IMPLEMENTATION
#include "unit.h"

#include "../inside.h"

struct vector {
    const uint8_t *message;
    size_t len;
    uint64_t strong;
    uint32_t quick;
};

static const size_t vectors;
static struct vector vector_at(size_t i);

static const uint8_t secret[16];
static idem_config config;

// The bytes 00 01 02 ..., starting over after ff.
static uint8_t counting[1000];

static int hash_setup(void **state)
{
    (void)state;
    memcpy(config.secret, secret, sizeof secret);
    for (size_t i = 0; i < sizeof counting; i++)
        counting[i] = (uint8_t)i;
    return 0;
}

#undef TEST
#define TEST(name) TEST_WITH(name, hash_setup, NULL, void, )

static void expect(const char *what, size_t len, uint64_t got, uint64_t want)
{
    if (got != want)
        fail_msg("%s of %zu bytes is %016" PRIx64 ", not %016" PRIx64, what,
                 len, got, want);
}

// Both hashes of one message, made side by side.
struct stream {
    idem_fingerprint_state strong, quick;
};

static void stream_begin(struct stream *s)
{
    idem_fingerprint_init(&s->strong, &config);
    inside_hash_init(&s->quick, &config, 0);
}

static void stream_add(struct stream *s, const void *data, size_t len)
{
    idem_fingerprint_update(&s->strong, data, len);
    inside_hash_update(&s->quick, data, len);
}

static void stream_end(struct stream *s, const struct vector *v)
{
    expect("strong", v->len, idem_fingerprint_final(&s->strong), v->strong);
    expect("quick", v->len, (uint32_t)inside_hash_final(&s->quick), v->quick);
}

static void check_whole(const struct vector *v)
{
    struct stream s;

    stream_begin(&s);
    stream_add(&s, v->message, v->len);
    stream_end(&s, v);
}

TEST(every_vector_matches_in_one_piece)
{
    for (size_t i = 0; i < vectors; i++) {
        struct vector v = vector_at(i);

        check_whole(&v);
    }
}

TEST(every_vector_matches_byte_by_byte)
{
    for (size_t i = 0; i < vectors; i++) {
        struct vector v = vector_at(i);
        struct stream s;

        stream_begin(&s);
        for (size_t at = 0; at < v.len; at++)
            stream_add(&s, v.message + at, 1);
        stream_end(&s, &v);
    }
}

static void check_split(const struct vector *v, size_t at)
{
    struct stream s;

    stream_begin(&s);
    stream_add(&s, v->message, at);
    stream_add(&s, NULL, 0);
    stream_add(&s, v->message + at, v->len - at);
    stream_end(&s, v);
}

TEST(every_vector_matches_when_split_anywhere)
{
    for (size_t i = 0; i < vectors; i++) {
        struct vector v = vector_at(i);

        for (size_t at = 0; at <= v.len; at++)
            check_split(&v, at);
    }
}

static void check_offset(struct vector v, size_t offset)
{
    // The message ends where the block does, so that a memory checker sees a
    // read beyond it.
    uint8_t *block = malloc(offset + v.len);

    assert_non_null(block);
    memcpy(block + offset, v.message, v.len);
    v.message = block + offset;
    check_whole(&v);
    free(block);
}

TEST(every_vector_matches_at_any_alignment)
{
    for (size_t i = 0; i < vectors; i++)
        for (size_t offset = 1; offset < 8; offset++)
            check_offset(vector_at(i), offset);
}

// The index hash is that of scope, key and the scope's length: so a message
// whose last byte says where a scope may end in it is a scope and a key.
TEST(the_index_hash_matches_where_a_vector_is_a_scope_and_key)
{
    size_t checked = 0;

    for (size_t i = 0; i < vectors; i++) {
        struct vector v = vector_at(i);
        size_t scope_len = v.len ? v.message[v.len - 1] : 0;

        if (scope_len >= v.len)
            continue;
        expect("index", v.len,
               inside_hash_id(&config, v.message, scope_len,
                              v.message + scope_len, v.len - 1 - scope_len),
               v.quick);
        checked++;
    }
    assert_true(checked >= 4);
}

// A number from 0 to 40, the same sequence in every run.
static size_t random_length(void)
{
    static uint32_t x = 1;

    x = x * UINT32_C(1664525) + UINT32_C(1013904223);
    return (x >> 16) % 41;
}

static void add_random_pieces(struct stream *s)
{
    size_t at = 0;

    while (at < sizeof counting) {
        size_t left = sizeof counting - at;
        size_t len = random_length();

        if (len > left)
            len = left;
        stream_add(s, counting + at, len);
        at += len;
    }
}

TEST(a_long_message_in_random_pieces_hashes_as_one)
{
    struct vector whole = { counting, sizeof counting, 0, 0 };
    struct stream s;

    stream_begin(&s);
    stream_add(&s, counting, sizeof counting);
    whole.strong = idem_fingerprint_final(&s.strong);
    whole.quick = (uint32_t)inside_hash_final(&s.quick);
    for (int round = 0; round < 100; round++) {
        stream_begin(&s);
        add_random_pieces(&s);
        stream_end(&s, &whole);
    }
}

#endif /* HASH_H */
