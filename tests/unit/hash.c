/* SPDX-License-Identifier: 0BSD */
/*
 * Shows that the hashes of idem.h, which are SipHash, HalfSipHash and FNV-1a,
 * give the values their authors expect, and give the same value however a
 * message is cut into pieces and wherever it lies in memory.
 *
 * The hashes stand in one table, and every test runs over the whole of it.
 */
#include "unit.h"

#include "vectors_fnv.h"
#include "vectors_siphash.h"

enum family { SIPHASH, HALFSIPHASH, FNV1A };

struct hash {
    const char *name;
    enum family family;
    int c_rounds, d_rounds;
    int bits;
    // The vectors of the keyed hashes, in the one that fits.
    const uint32_t *want32;
    const uint64_t *want64;
};

static const struct hash hashes[] = {
    { "SipHash-2-4", SIPHASH, 2, 4, 64, NULL, siphash_2_4_64 },
    { "SipHash-1-3", SIPHASH, 1, 3, 64, NULL, siphash_1_3_64 },
    { "HalfSipHash-2-4-32", HALFSIPHASH, 2, 4, 32, halfsiphash_2_4_32, NULL },
    { "HalfSipHash-2-4-64", HALFSIPHASH, 2, 4, 64, NULL, halfsiphash_2_4_64 },
    { "HalfSipHash-1-3-32", HALFSIPHASH, 1, 3, 32, halfsiphash_1_3_32, NULL },
    { "HalfSipHash-1-3-64", HALFSIPHASH, 1, 3, 64, NULL, halfsiphash_1_3_64 },
    { "FNV-1a-32", FNV1A, 0, 0, 32, NULL, NULL },
    { "FNV-1a-64", FNV1A, 0, 0, 64, NULL, NULL },
};

// HalfSipHash takes the first half of it.
static const uint8_t key[16] = {
    0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15,
};

// The bytes 00 01 02 ..., starting over after ff; main fills it.
static uint8_t counting[1000];

static uint64_t hash_whole(const struct hash *h, const void *data, size_t len)
{
    switch (h->family) {
    case SIPHASH:
        return idem_siphash(key, h->c_rounds, h->d_rounds, data, len);
    case HALFSIPHASH:
        return idem_halfsiphash(key, h->c_rounds, h->d_rounds, h->bits, data,
                                len);
    default:
        return h->bits == 32 ? idem_fnv1a32(data, len)
                             : idem_fnv1a64(data, len);
    }
}

struct stream {
    const struct hash *hash;
    union {
        idem_siphash_state sip;
        idem_halfsiphash_state half;
        uint32_t fnv32;
        uint64_t fnv64;
    } state;
};

static void stream_begin(struct stream *s, const struct hash *h)
{
    s->hash = h;
    if (h->family == SIPHASH)
        idem_siphash_init(&s->state.sip, key, h->c_rounds, h->d_rounds);
    else if (h->family == HALFSIPHASH)
        idem_halfsiphash_init(&s->state.half, key, h->c_rounds, h->d_rounds,
                              h->bits);
    else if (h->bits == 32)
        s->state.fnv32 = IDEM_FNV1A32_INIT;
    else
        s->state.fnv64 = IDEM_FNV1A64_INIT;
}

static void stream_add(struct stream *s, const void *data, size_t len)
{
    if (s->hash->family == SIPHASH)
        idem_siphash_update(&s->state.sip, data, len);
    else if (s->hash->family == HALFSIPHASH)
        idem_halfsiphash_update(&s->state.half, data, len);
    else if (s->hash->bits == 32)
        s->state.fnv32 = idem_fnv1a32_update(s->state.fnv32, data, len);
    else
        s->state.fnv64 = idem_fnv1a64_update(s->state.fnv64, data, len);
}

static uint64_t stream_end(struct stream *s)
{
    switch (s->hash->family) {
    case SIPHASH:
        return idem_siphash_final(&s->state.sip);
    case HALFSIPHASH:
        return idem_halfsiphash_final(&s->state.half);
    default:
        return s->hash->bits == 32 ? s->state.fnv32 : s->state.fnv64;
    }
}

static void expect(const struct hash *h, size_t len, uint64_t got,
                   uint64_t want)
{
    if (got != want)
        fail_msg("%s of %zu bytes is %016" PRIx64 ", not %016" PRIx64,
                 h->name, len, got, want);
}

typedef void check_fn(const struct hash *h, const uint8_t *message,
                      size_t len, uint64_t want);

static void for_every_vector(check_fn *check)
{
    for (const struct hash *h = hashes; h < hashes + COUNT(hashes); h++) {
        if (h->family == FNV1A) {
            for (size_t i = 0; i < COUNT(fnv_vectors); i++)
                check(h, (const uint8_t *)fnv_vectors[i].text,
                      fnv_vectors[i].len,
                      h->bits == 32 ? fnv_vectors[i].fnv1a32
                                    : fnv_vectors[i].fnv1a64);
        } else {
            for (size_t i = 0; i < COUNT(siphash_2_4_64); i++)
                check(h, counting, i, h->want32 ? h->want32[i] : h->want64[i]);
        }
    }
}

static void check_whole(const struct hash *h, const uint8_t *message,
                        size_t len, uint64_t want)
{
    expect(h, len, hash_whole(h, message, len), want);
}

static void every_vector_matches_in_one_call(void **unused)
{
    (void)unused;
    for_every_vector(check_whole);
}

static void check_bytes(const struct hash *h, const uint8_t *message,
                        size_t len, uint64_t want)
{
    struct stream s;

    stream_begin(&s, h);
    for (size_t i = 0; i < len; i++)
        stream_add(&s, message + i, 1);
    expect(h, len, stream_end(&s), want);
}

static void every_vector_matches_byte_by_byte(void **unused)
{
    (void)unused;
    for_every_vector(check_bytes);
}

static void check_splits(const struct hash *h, const uint8_t *message,
                         size_t len, uint64_t want)
{
    for (size_t at = 0; at <= len; at++) {
        struct stream s;

        stream_begin(&s, h);
        stream_add(&s, message, at);
        stream_add(&s, NULL, 0);
        stream_add(&s, message + at, len - at);
        expect(h, len, stream_end(&s), want);
    }
}

static void every_vector_matches_when_split_anywhere(void **unused)
{
    (void)unused;
    for_every_vector(check_splits);
}

static void check_offsets(const struct hash *h, const uint8_t *message,
                          size_t len, uint64_t want)
{
    for (size_t offset = 1; offset < 8; offset++) {
        // The message ends where the block does, so that a memory checker
        // sees a read beyond it.
        uint8_t *block = malloc(offset + len);

        assert_non_null(block);
        memcpy(block + offset, message, len);
        check_whole(h, block + offset, len, want);
        free(block);
    }
}

static void every_vector_matches_at_any_alignment(void **unused)
{
    (void)unused;
    for_every_vector(check_offsets);
}

// A number from 0 to 40, the same sequence in every run.
static size_t random_length(void)
{
    static uint32_t x = 1;

    x = x * UINT32_C(1664525) + UINT32_C(1013904223);
    return (x >> 16) % 41;
}

static void a_long_message_in_random_pieces_hashes_as_one(void **unused)
{
    (void)unused;
    for (const struct hash *h = hashes; h < hashes + COUNT(hashes); h++) {
        uint64_t want = hash_whole(h, counting, sizeof counting);

        for (int round = 0; round < 100; round++) {
            struct stream s;
            size_t at = 0;

            stream_begin(&s, h);
            while (at < sizeof counting) {
                size_t left = sizeof counting - at;
                size_t len = random_length();

                if (len > left)
                    len = left;
                stream_add(&s, counting + at, len);
                at += len;
            }
            expect(h, sizeof counting, stream_end(&s), want);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_vector_matches_in_one_call),
        cmocka_unit_test(every_vector_matches_byte_by_byte),
        cmocka_unit_test(every_vector_matches_when_split_anywhere),
        cmocka_unit_test(every_vector_matches_at_any_alignment),
        cmocka_unit_test(a_long_message_in_random_pieces_hashes_as_one),
    };

    for (size_t i = 0; i < sizeof counting; i++)
        counting[i] = (uint8_t)i;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
