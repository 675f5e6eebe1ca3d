/* SPDX-License-Identifier: 0BSD */
/*
 * Shows that the decoder of examples/serial finds every frame that is whole,
 * and nothing else, whatever is on the line before, between and inside frames;
 * and that it keeps to its memory.
 */
#include "test.h"

#include "examples/serial/protocol.c"

// What came out of a decoder, as it was when it came, since start().
static struct {
    protocol_decoder decoder;
    uint8_t behind[64];
    unsigned count;
    protocol_message message[8];
    uint8_t content[8][PROTOCOL_CONTENT_MAX];
} got;

static void start(void)
{
    memset(&got, 0, sizeof got);
    memset(got.behind, 0xA5, sizeof got.behind);
}

static void receive(const uint8_t *bytes, size_t len)
{
    protocol_message m;

    for (size_t i = 0; i < len; i++) {
        if (!protocol_decode(&got.decoder, &m, bytes[i]))
            continue;
        assert_true(got.count < COUNT(got.message));
        assert_ptr_equal(m.key, m.scope + m.scope_len);
        assert_ptr_equal(m.payload, m.key + m.key_len);
        got.message[got.count] = m;
        memcpy(got.content[got.count], m.scope,
               (size_t)m.scope_len + m.key_len + m.payload_len);
        got.count++;
    }
}

/* So many messages came, and the last of them is this. */
static void has_come(unsigned count, const protocol_message *m)
{
    const protocol_message *last = &got.message[count - 1];

    is(got.count, count);
    is(last->kind, m->kind);
    is(last->result, m->result);
    is(last->scope_len, m->scope_len);
    is(last->key_len, m->key_len);
    is(last->payload_len, m->payload_len);
    assert_memory_equal(got.content[count - 1], m->scope,
                        (size_t)m->scope_len + m->key_len + m->payload_len);
}

static protocol_message message(const uint8_t *content, unsigned scope_len,
                                unsigned key_len, unsigned payload_len)
{
    return (protocol_message){
        .kind = PROTOCOL_COMMAND, .scope = content, .key = content + scope_len,
        .payload = content + scope_len + key_len,
        .scope_len = (uint8_t)scope_len, .key_len = (uint8_t)key_len,
        .payload_len = (uint8_t)payload_len
    };
}

// A usual command, with zeros in its payload, and its frame, twice.
static protocol_message usual;
static uint8_t frames[2 * PROTOCOL_FRAME_MAX];

/* The length of one. */
static size_t make_usual(void)
{
    size_t len;

    usual = message((const uint8_t *)"panel00017p\x05\0\0\xff", 5, 5, 5);
    len = protocol_encode(frames, &usual);
    memcpy(frames + len, frames, len);
    start();
    return len;
}

TEST(every_length_comes_back)
{
    uint8_t frame[PROTOCOL_FRAME_MAX], content[PROTOCOL_CONTENT_MAX];
    unsigned most = PROTOCOL_CONTENT_MAX;

    for (unsigned fill = 0; fill < 3; fill++) {
        for (unsigned i = 0; i < sizeof content; i++)   // zeros, few, none
            content[i] = (uint8_t)(fill * i * 7 % 251 + (fill == 2));
        for (unsigned scope = 0; scope <= most; scope++)
            for (unsigned key = 0; scope + key <= most; key++)
                for (unsigned len = 0; scope + key + len <= most; len++) {
                    protocol_message m = message(content, scope, key, len);
                    size_t size = protocol_encode(frame, &m);
                    assert_in_range(size, 1, sizeof frame);
                    // A frame has zeros at its ends only.
                    is(frame[0], 0);
                    assert_ptr_equal(memchr(frame + 1, 0, size - 1),
                                     frame + size - 1);
                    start();
                    receive(frame, size);
                    has_come(1, &m);
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
    protocol_message m = message((const uint8_t *)"sk1p\x05", 1, 2, 2);

    is(protocol_encode(frames, &m), sizeof golden);
    assert_memory_equal(frames, golden, sizeof golden);
}

TEST(content_that_is_too_long_is_not_encoded)
{
    static const uint8_t content[PROTOCOL_CONTENT_MAX + 1];
    protocol_message m = message(content, 20, 20, PROTOCOL_CONTENT_MAX - 39);

    is(protocol_encode(frames, &m), 0);
}

TEST(every_split_of_the_input_gives_the_same)
{
    size_t len = make_usual();

    for (size_t first = 0; first <= 2 * len; first++)
        for (size_t second = first; second <= 2 * len; second++) {
            start();
            receive(frames, first);
            receive(frames + first, second - first);
            receive(frames + second, 2 * len - second);
            has_come(2, &usual);
        }
}

/* The rest of a frame that was cut anywhere is lost, the next is not. */
TEST(whatever_is_cut_out_the_next_frame_is_found)
{
    size_t len = make_usual();

    for (size_t from = 0; from <= len; from++)
        for (size_t to = from; to <= len; to++) {
            int whole = from == to || (from == 0 && to == 1) ||
                        (from == len - 1 && to == len);
            start();
            receive(frames, from);
            receive(frames + to, 2 * len - to);
            has_come(whole ? 2 : 1, &usual);
        }
}

/* At the end it joins the next frame, whose zero in front ends it: as one byte
   too many. */
TEST(every_byte_changed_is_noticed_and_the_next_frame_found)
{
    size_t len = make_usual();

    for (size_t at = 0; at < len; at++)
        for (unsigned value = 0; value < 256; value++) {
            (void)make_usual();
            if (frames[at] == value)
                continue;
            frames[at] = (uint8_t)value;
            receive(frames, 2 * len);
            has_come(1, &usual);
        }
}

TEST(garbage_before_and_between_costs_nothing_else)
{
    uint8_t garbage[300] = { 0 };           // at first zeros: no frames
    size_t len = make_usual();

    srand(1);
    for (size_t n = 0; n < sizeof garbage; n++) {
        for (size_t i = 0; i < n && n >= 100; i++)
            garbage[i] = (uint8_t)(rand() >> 7);
        start();
        for (unsigned times = 1; times < 3; times++) {
            receive(garbage, n);
            receive(frames, len);
            has_come(times, &usual);
        }
    }
}

/* A body that would fit but for one byte, and ever longer ones, up to some that
   would wrap a byte that counts; each code in turn. */
TEST(overlong_frames_are_dropped_and_memory_is_kept)
{
    size_t len = make_usual();

    for (unsigned code = 1; code < 256; code++)
        for (unsigned length = PROTOCOL_BODY_MAX; length < 700; length += 7) {
            uint8_t byte = (uint8_t)code;
            start();
            for (unsigned i = 0; i < length; i++) {
                receive(&byte, 1);
                assert_true(got.decoder.len <= PROTOCOL_BODY_MAX);
            }
            receive(frames, len);
            has_come(1, &usual);
            for (size_t i = 0; i < sizeof got.behind; i++)
                is(got.behind[i], 0xA5);
        }
}

/* A right CRC over lengths that reach beyond the body */
TEST(lengths_that_lie_are_refused)
{
    for (unsigned scope_len = 0; scope_len < 256; scope_len += 5)
        for (unsigned key_len = 0; key_len < 256; key_len += 5) {
            uint8_t body[4 + 10], tail[4];
            uint32_t crc = CRC_INIT, ignored = 0;
            encoder e = { .frame = frames };
            memset(body, 'x', sizeof body);
            body[2] = (uint8_t)scope_len;
            body[3] = (uint8_t)key_len;
            begin_block(&e);
            add(&e, &crc, body, sizeof body);
            protocol_put32(tail, ~crc);
            add(&e, &ignored, tail, sizeof tail);
            frames[e.len++] = 0;
            start();
            receive(frames, e.len);
            is(got.count, scope_len + key_len <= 10);
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
