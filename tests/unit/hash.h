/* SPDX-License-Identifier: 0BSD */
/*
 * Shows that the hash that IDEM_HASH selects has the values that its authors
 * publish, the strong variant and the quick one, and the same value however a
 * message is split into pieces and wherever it is in memory.
 *
 * The header has one hash at a time; so there is a program for each, with its
 * expected values: hash_siphash.c, hash_halfsiphash.c, hash_fnv.c.
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

/* Both hashes of a message in pieces, the first of `piece` bytes, the others of
   `step`; `v` has what they must be. */
static void check(const struct vector *v, size_t piece, size_t step)
{
    idem_fingerprint_state strong, quick;
    size_t at = 0;

    idem_fingerprint_init(&strong, &config);
    inside_hash_init(&quick, &config, 0);
    do {
        if (piece > v->len - at)
            piece = v->len - at;
        idem_fingerprint_update(&strong, v->message + at, piece);
        inside_hash_update(&quick, v->message + at, piece);
        idem_fingerprint_update(&strong, NULL, 0);
        inside_hash_update(&quick, NULL, 0);
        at += piece;
        piece = step;
    } while (at < v->len);
    expect("strong", v->len, idem_fingerprint_final(&strong), v->strong);
    expect("quick", v->len, (uint32_t)inside_hash_final(&quick), v->quick);
}

TEST(every_vector_matches_in_any_two_pieces_and_byte_by_byte)
{
    for (size_t i = 0; i < vectors; i++) {
        struct vector v = vector_at(i);
        for (size_t piece = 1; piece <= v.len; piece++)
            check(&v, piece, v.len);
        check(&v, 1, 1);
    }
}

/* The message ends where the block does, so that a memory checker sees a read
   beyond it. */
TEST(every_vector_matches_at_any_alignment)
{
    for (size_t i = 0; i < vectors; i++)
        for (size_t offset = 1; offset < 8; offset++) {
            struct vector v = vector_at(i);
            uint8_t *block = malloc(offset + v.len);
            assert_non_null(block);
            memcpy(block + offset, v.message, v.len);
            v.message = block + offset;
            check(&v, v.len, 1);
            free(block);
        }
}

TEST(the_index_hash_is_that_of_scope_key_and_the_scopes_length)
{
    enum { LEN = 9 };
    uint8_t message[LEN + 1];

    memcpy(message, counting, sizeof message);
    for (size_t scope_len = 0; scope_len <= LEN; scope_len++) {
        idem_fingerprint_state quick;

        message[LEN] = (uint8_t)scope_len;
        inside_hash_init(&quick, &config, 0);
        inside_hash_update(&quick, message, sizeof message);
        expect("index", sizeof message,
               inside_hash_id(&config, message, scope_len, message + scope_len,
                              LEN - scope_len),
               (uint32_t)inside_hash_final(&quick));
    }
}

TEST(a_long_message_in_pieces_hashes_as_one)
{
    struct vector whole = { counting, sizeof counting, 0, 0 };
    idem_fingerprint_state strong, quick;

    idem_fingerprint_init(&strong, &config);
    inside_hash_init(&quick, &config, 0);
    idem_fingerprint_update(&strong, counting, sizeof counting);
    inside_hash_update(&quick, counting, sizeof counting);
    whole.strong = idem_fingerprint_final(&strong);
    whole.quick = (uint32_t)inside_hash_final(&quick);
    for (size_t piece = 1; piece < 10; piece++)
        for (size_t step = 1; step < 42; step++)
            check(&whole, piece, step);
}

#endif /* HASH_H */
