/* SPDX-License-Identifier: 0BSD */
/*
 * Hashes in pieces, of whatever lengths, are those of the whole; and a state
 * that is copied half-way goes on as the one that it was copied from.
 */
#define IDEM_STATIC
#define IDEM_IMPLEMENTATION
#include "idem.h"

#include "harness.h"

enum { LONGEST = 600 };

/* A message, and the input from which the lengths of its pieces are taken. */
typedef struct message {
    uint8_t bytes[LONGEST];
    size_t len;
    input lengths;
} message;

/* The next piece, which may be empty, and at the end is what is left. */
static size_t next_piece(message *m, size_t at)
{
    size_t len;

    if (!m->lengths.left)
        return m->len - at;
    len = input_byte(&m->lengths) % 20;
    return len < m->len - at ? len : m->len - at;
}

static void check_siphash(message m, const uint8_t *key, int c, int d)
{
    idem_siphash_state state, copy;
    size_t at = 0, len;

    idem_siphash_init(&state, key, c, d);
    for (; at < m.len; at += len) {
        len = next_piece(&m, at);
        copy = state;
        idem_siphash_update(&state, m.bytes + at, len);
    }
    if (m.len) {
        idem_siphash_update(&copy, m.bytes + m.len - len, len);
        PROMISE(idem_siphash_final(&copy) ==
                idem_siphash(key, c, d, m.bytes, m.len));
    }
    PROMISE(idem_siphash_final(&state) ==
            idem_siphash(key, c, d, m.bytes, m.len));
}

static void check_halfsiphash(message m, const uint8_t *key, int c, int d,
                              int bits)
{
    idem_halfsiphash_state state;
    size_t at = 0, len;

    idem_halfsiphash_init(&state, key, c, d, bits);
    for (; at < m.len; at += len) {
        len = next_piece(&m, at);
        idem_halfsiphash_update(&state, m.bytes + at, len);
    }
    PROMISE(idem_halfsiphash_final(&state) ==
            idem_halfsiphash(key, c, d, bits, m.bytes, m.len));
}

static void check_fnv1a(message m)
{
    uint32_t hash32 = IDEM_FNV1A32_INIT;
    uint64_t hash64 = IDEM_FNV1A64_INIT;
    size_t at = 0, len;

    for (; at < m.len; at += len) {
        len = next_piece(&m, at);
        hash32 = idem_fnv1a32_update(hash32, m.bytes + at, len);
        hash64 = idem_fnv1a64_update(hash64, m.bytes + at, len);
    }
    PROMISE(hash32 == idem_fnv1a32(m.bytes, m.len));
    PROMISE(hash64 == idem_fnv1a64(m.bytes, m.len));
}

/* A fingerprint made in pieces is the one that idem_begin makes: it is the
   same command for it. */
static void check_fingerprint(message m, const uint8_t *key)
{
    static idem_table table;
    static uint32_t memory[IDEM_MEMORY_SIZE(1, 1, 0, 0) / 4];
    idem_config config = { .capacity = 1, .key_max = 1 };
    idem_request request = { .key = "k", .key_len = 1,
                             .payload = m.bytes, .payload_len = m.len };
    idem_fingerprint_state state;
    idem_claim claim;
    idem_reply reply = { 0 };
    size_t at = 0, len;

    memcpy(config.secret, key, sizeof config.secret);
    config.secret[0] |= 1;
    config.secret[8] |= 1;
    PROMISE(!idem_open(&table, &config, memory, sizeof memory, 0));
    PROMISE(idem_begin(&table, &claim, &reply, &request, 0) == IDEM_EXECUTE);
    idem_fingerprint_init(&state, &config);
    for (; at < m.len; at += len) {
        len = next_piece(&m, at);
        idem_fingerprint_update(&state, m.bytes + at, len);
    }
    request.fingerprint = idem_fingerprint_final(&state);
    request.has_fingerprint = 1;
    PROMISE(idem_begin(&table, &claim, &reply, &request, 0) == IDEM_BUSY);
    request.fingerprint ^= UINT64_C(1) << (m.len % 64);
    PROMISE(idem_begin(&table, &claim, &reply, &request, 0) == IDEM_MISMATCH);
}

static void run(input *in)
{
    static const int rounds[][2] = { { 1, 3 }, { 2, 4 }, { 3, 3 }, { 4, 8 } };
    const int *cd = rounds[input_below(in, 4)];
    uint8_t key[16] = { 0 };
    message m;

    input_bytes(in, key, sizeof key);
    m.lengths.left = input_below(in, 64);
    if (m.lengths.left > in->left)
        m.lengths.left = in->left;
    m.lengths.at = in->at;
    in->at += m.lengths.left;
    in->left -= m.lengths.left;
    m.len = input_bytes(in, m.bytes, sizeof m.bytes);
    check_siphash(m, key, cd[0], cd[1]);
    check_halfsiphash(m, key, cd[0], cd[1], 32);
    check_halfsiphash(m, key, cd[0], cd[1], 64);
    check_fnv1a(m);
    check_fingerprint(m, key);
}
