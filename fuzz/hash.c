/* SPDX-License-Identifier: 0BSD */
/*
 * Hashes in pieces, of whatever lengths, are those of the whole; and a state
 * that is copied half-way goes on as the one that it was copied from.
 */
#define IDEM_STATIC
#define IDEM_IMPLEMENTATION
#include "idem.h"
#include "../tests/inside.h"

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

/* One of the two hashes, in one piece. */
static uint64_t whole(const message *m, const idem_config *config, int strong)
{
    idem_fingerprint_state state;

    inside_hash_init(&state, config, strong);
    inside_hash_update(&state, m->bytes, m->len);
    return inside_hash_final(&state);
}

static void check_pieces(message m, const idem_config *config, int strong)
{
    uint64_t expected = whole(&m, config, strong);
    idem_fingerprint_state state, copy;
    size_t at = 0, len = 0;

    inside_hash_init(&state, config, strong);
    copy = state;
    for (; at < m.len; at += len) {
        len = next_piece(&m, at);
        copy = state;
        inside_hash_update(&state, m.bytes + at, len);
    }
    inside_hash_update(&copy, m.bytes + m.len - len, len);
    PROMISE(inside_hash_final(&copy) == expected);
    PROMISE(inside_hash_final(&state) == expected);
}

/* A fingerprint made in pieces is the one that idem_begin makes: it is the
   same command for it. */
static void check_fingerprint(message m, const idem_config *config)
{
    static idem_table table;
    static uint32_t memory[IDEM_MEMORY_SIZE(1, 1, 0, 0) / 4];
    idem_request request = { .key = "k", .key_len = 1,
                             .payload = m.bytes, .payload_len = m.len };
    idem_fingerprint_state state;
    idem_claim claim;
    idem_reply reply = { 0 };
    size_t at = 0, len;

    PROMISE(!idem_open(&table, config, memory, sizeof memory, 0));
    PROMISE(idem_begin(&table, &claim, &reply, &request, 0) == IDEM_EXECUTE);
    idem_fingerprint_init(&state, config);
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
    idem_config config = { .capacity = 1, .key_max = 1 };
    message m;

    input_bytes(in, config.secret, sizeof config.secret);
    config.secret[0] |= 1;
    config.secret[8] |= 1;
    m.lengths.left = input_below(in, 64);
    if (m.lengths.left > in->left)
        m.lengths.left = in->left;
    m.lengths.at = in->at;
    in->at += m.lengths.left;
    in->left -= m.lengths.left;
    m.len = input_bytes(in, m.bytes, sizeof m.bytes);
    check_pieces(m, &config, 0);
    check_pieces(m, &config, 1);
    check_fingerprint(m, &config);
}
