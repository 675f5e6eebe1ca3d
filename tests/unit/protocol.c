/* SPDX-License-Identifier: 0BSD */
/*
 * Shows that the decoder of examples/serial finds every frame that is whole,
 * and nothing else, whatever is on the line before, between and inside frames;
 * and that it keeps to its memory.
 */
#include "test.h"

#include "examples/serial/protocol.c"

#define FRAMES_KEPT 8

/* What came out of a decoder, as it was when it came */
struct received {
    unsigned count;
    protocol_message message[FRAMES_KEPT];
    uint8_t content[FRAMES_KEPT][PROTOCOL_CONTENT_MAX];
};

static void receive(struct received *r, protocol_decoder *d,
                    const uint8_t *bytes, size_t len)
{
    protocol_message m;
    size_t i;

    for (i = 0; i < len; i++) {
        if (!protocol_decode(d, &m, bytes[i]))
            continue;
        assert_true(r->count < FRAMES_KEPT);
        assert_ptr_equal(m.key, m.scope + m.scope_len);
        assert_ptr_equal(m.payload, m.key + m.key_len);
        r->message[r->count] = m;
        memcpy(r->content[r->count], m.scope,
               (size_t)m.scope_len + m.key_len + m.payload_len);
        r->count++;
    }
}

static struct received receive_all(const uint8_t *bytes, size_t len)
{
    struct received r;
    protocol_decoder d;

    memset(&r, 0, sizeof r);
    memset(&d, 0, sizeof d);
    receive(&r, &d, bytes, len);
    return r;
}

static protocol_message message(const uint8_t *content, unsigned scope_len,
                                unsigned key_len, unsigned payload_len)
{
    protocol_message m;

    m.kind = PROTOCOL_COMMAND;
    m.result = 0;
    m.scope = content;
    m.scope_len = (uint8_t)scope_len;
    m.key = content + scope_len;
    m.key_len = (uint8_t)key_len;
    m.payload = content + scope_len + key_len;
    m.payload_len = (uint8_t)payload_len;
    return m;
}

static void assert_is(const struct received *r, unsigned i,
                      const protocol_message *m)
{
    assert_true(i < r->count);
    is(r->message[i].kind, m->kind);
    is(r->message[i].result, m->result);
    is(r->message[i].scope_len, m->scope_len);
    is(r->message[i].key_len, m->key_len);
    is(r->message[i].payload_len, m->payload_len);
    assert_memory_equal(r->content[i], m->scope,
                        (size_t)m->scope_len + m->key_len + m->payload_len);
}

/* A usual command, with zeros in its payload */
static const uint8_t usual[] = "panel00017p\x05\0\0\xff";
static size_t usual_frame(uint8_t *frame, protocol_message *m)
{
    *m = message(usual, 5, 5, 5);
    return protocol_encode(frame, m);
}

TEST(every_length_comes_back)
{
    uint8_t frame[PROTOCOL_FRAME_MAX], content[PROTOCOL_CONTENT_MAX];
    unsigned scope, key, payload, fill;

    for (fill = 0; fill < 3; fill++) {
        unsigned i;

        for (i = 0; i < sizeof content; i++)    // zeros, few, none
            content[i] = (uint8_t)(fill * i * 7 % 251 + (fill == 2));
        for (scope = 0; scope <= PROTOCOL_CONTENT_MAX; scope++)
            for (key = 0; scope + key <= PROTOCOL_CONTENT_MAX; key++)
                for (payload = 0; scope + key + payload <=
                     PROTOCOL_CONTENT_MAX; payload++) {
                    protocol_message m = message(content, scope, key, payload);
                    size_t len = protocol_encode(frame, &m);
                    struct received r = receive_all(frame, len);

                    assert_true(len > 0 && len <= sizeof frame);
                    // A frame has zeros at its ends only.
                    is(frame[0], 0);
                    assert_ptr_equal(memchr(frame + 1, 0, len - 1),
                                     frame + len - 1);
                    is(r.count, 1);
                    assert_is(&r, 0, &m);
                }
    }
}

/* As another program computed it, with zlib's CRC. */
TEST(the_bytes_are_as_ever)
{
    static const uint8_t golden[] = {
        0x00, 0x02, 0x01, 0x0c, 0x01, 0x02, 0x73, 0x6b, 0x31, 0x70, 0x05,
        0x91, 0x42, 0x64, 0x32, 0x00
    };
    uint8_t frame[PROTOCOL_FRAME_MAX];
    protocol_message m = message((const uint8_t *)"sk1p\x05", 1, 2, 2);

    is(protocol_encode(frame, &m), sizeof golden);
    assert_memory_equal(frame, golden, sizeof golden);
}

TEST(content_that_is_too_long_is_not_encoded)
{
    uint8_t frame[PROTOCOL_FRAME_MAX], content[PROTOCOL_CONTENT_MAX + 1] = { 0 };
    protocol_message m = message(content, 20, 20, PROTOCOL_CONTENT_MAX - 39);

    is(protocol_encode(frame, &m), 0);
}

/* The rest of a frame that was cut anywhere is lost, the next is not. */
TEST(every_split_of_the_input_gives_the_same)
{
    uint8_t bytes[3 * PROTOCOL_FRAME_MAX];
    protocol_message m;
    size_t len = usual_frame(bytes, &m), first, second;

    memcpy(bytes + len, bytes, len);
    for (first = 0; first <= 2 * len; first++)
        for (second = first; second <= 2 * len; second++) {
            struct received r;
            protocol_decoder d;

            memset(&r, 0, sizeof r);
            memset(&d, 0, sizeof d);
            receive(&r, &d, bytes, first);
            receive(&r, &d, bytes + first, second - first);
            receive(&r, &d, bytes + second, 2 * len - second);
            is(r.count, 2);
            assert_is(&r, 0, &m);
            assert_is(&r, 1, &m);
        }
}

TEST(whatever_is_cut_out_the_next_frame_is_found)
{
    uint8_t frame[PROTOCOL_FRAME_MAX], bytes[2 * PROTOCOL_FRAME_MAX];
    protocol_message m;
    size_t len = usual_frame(frame, &m), from, to;

    for (from = 0; from <= len; from++)
        for (to = from; to <= len; to++) {
            size_t left = len - (to - from);
            int whole = from == to || (from == 0 && to == 1) ||
                        (from == len - 1 && to == len);
            struct received r;

            memcpy(bytes, frame, from);
            memcpy(bytes + from, frame + to, len - to);
            memcpy(bytes + left, frame, len);
            r = receive_all(bytes, left + len);
            is(r.count, whole ? 2 : 1);
            assert_is(&r, r.count - 1, &m);
        }
}

/* At the end it joins the next frame, whose zero in front ends it: as one byte
   too many. */
TEST(every_byte_changed_is_noticed_and_the_next_frame_found)
{
    uint8_t frame[PROTOCOL_FRAME_MAX], bytes[2 * PROTOCOL_FRAME_MAX];
    protocol_message m;
    size_t len = usual_frame(frame, &m);

    for (size_t at = 0; at < len; at++)
        for (unsigned value = 0; value < 256; value++) {
            struct received r;
            memcpy(bytes, frame, len);
            memcpy(bytes + len, frame, len);
            if (bytes[at] == value)
                continue;
            bytes[at] = (uint8_t)value;
            r = receive_all(bytes, 2 * len);
            is(r.count, 1);
            assert_is(&r, 0, &m);
        }
}

TEST(garbage_before_and_between_costs_nothing_else)
{
    uint8_t frame[PROTOCOL_FRAME_MAX], garbage[300];
    protocol_message m;
    size_t len = usual_frame(frame, &m), n, i;

    srand(1);
    for (n = 0; n < sizeof garbage; n++) {
        struct received r;
        protocol_decoder d;

        memset(&r, 0, sizeof r);
        memset(&d, 0, sizeof d);
        for (i = 0; i < n; i++)             // at first zeros: no frames
            garbage[i] = (uint8_t)(n < 100 ? 0 : rand() >> 7);
        receive(&r, &d, garbage, n);
        receive(&r, &d, frame, len);
        receive(&r, &d, garbage, n);
        receive(&r, &d, frame, len);
        is(r.count, 2);
        assert_is(&r, 0, &m);
        assert_is(&r, 1, &m);
    }
}

/* A body that would fit but for one byte, and ever longer ones, up to some that
   would wrap a byte that counts; each code in turn. */
TEST(overlong_frames_are_dropped_and_memory_is_kept)
{
    struct { protocol_decoder d; uint8_t behind[64]; } guarded;
    uint8_t frame[PROTOCOL_FRAME_MAX];
    protocol_message m;
    size_t len = usual_frame(frame, &m), i;
    unsigned code, length;

    for (code = 1; code < 256; code++)
        for (length = PROTOCOL_BODY_MAX; length < 700; length += 7) {
            struct received r;

            memset(&r, 0, sizeof r);
            memset(&guarded, 0, sizeof guarded);
            memset(guarded.behind, 0xA5, sizeof guarded.behind);
            for (i = 0; i < length; i++) {
                uint8_t byte = (uint8_t)code;

                receive(&r, &guarded.d, &byte, 1);
                assert_true(guarded.d.len <= PROTOCOL_BODY_MAX);
            }
            receive(&r, &guarded.d, frame, len);
            is(r.count, 1);
            assert_is(&r, 0, &m);
            for (i = 0; i < sizeof guarded.behind; i++)
                is(guarded.behind[i], 0xA5);
        }
}

/* A right CRC over lengths that reach beyond the body */
TEST(lengths_that_lie_are_refused)
{
    unsigned scope_len, key_len;

    for (scope_len = 0; scope_len < 256; scope_len += 5)
        for (key_len = 0; key_len < 256; key_len += 5) {
            uint8_t body[4 + 10], frame[PROTOCOL_FRAME_MAX], tail[4];
            uint32_t crc = CRC_INIT, ignored = 0;
            encoder e;

            memset(body, 'x', sizeof body);
            body[2] = (uint8_t)scope_len;
            body[3] = (uint8_t)key_len;
            e.frame = frame;
            e.len = 0;
            begin_block(&e);
            add(&e, &crc, body, sizeof body);
            protocol_put32(tail, ~crc);
            add(&e, &ignored, tail, sizeof tail);
            frame[e.len++] = 0;
            is(receive_all(frame, e.len).count, scope_len + key_len <= 10);
        }
}

/* A number has its length; what is neither is not taken for a command. */
TEST(commands_have_a_key_or_a_number)
{
    protocol_message m = message((const uint8_t *)"epochsequ", 0, 0, 9);

    for (m.key_len = 0; m.key_len < 10; m.key_len++) {
        m.kind = PROTOCOL_COMMAND;
        assert_true(protocol_is_command(&m));
        m.kind = PROTOCOL_NUMBERED;
        is(protocol_is_command(&m), m.key_len == 8);
        m.kind = PROTOCOL_ANSWER;
        assert_false(protocol_is_command(&m));
    }
}

TEST(a_decoder_fits_where_it_says)
{
    assert_true(sizeof(protocol_decoder) <= 76);
}
