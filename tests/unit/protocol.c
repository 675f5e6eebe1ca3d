/* SPDX-License-Identifier: 0BSD */
/*
 * Shows that the decoder of examples/serial finds every complete frame, and
 * nothing else, whatever is on the line before, between and inside frames; and
 * that it stays in its memory.  Whatever bytes come, a decoded message lies
 * inside the decoder, is no longer than it may be, and encodes to a frame that
 * decodes to the same.
 */
#include "test.h"

#include "examples/serial/protocol.c"

/* True if the message is the body of len bytes, one part after the other. */
static int is_inside(const protocol_decoder *d, size_t len,
                     const protocol_message *m)
{
    return m->scope == d->body + HEAD && m->key == m->scope + m->scope_len &&
           m->payload == m->key + m->key_len &&
           m->payload + m->payload_len + CRC_SIZE == d->body + len;
}

static int is_same(const protocol_message *a, const protocol_message *b)
{
    return a->kind == b->kind && a->result == b->result &&
           a->scope_len == b->scope_len && a->key_len == b->key_len &&
           a->payload_len == b->payload_len &&
           !memcmp(a->scope, b->scope, a->scope_len) &&
           !memcmp(a->key, b->key, a->key_len) &&
           !memcmp(a->payload, b->payload, a->payload_len);
}

/* Brings the frame of a message over a line in any state: it arrives with its
   last byte. */
static void arrives(protocol_decoder *d, const protocol_message *m)
{
    uint8_t frame[PROTOCOL_FRAME_MAX];
    protocol_message got;
    size_t len = protocol_encode(frame, m), at;

    assert_in_range(len, 1, sizeof frame);
    assert_null(memchr(frame + 1, 0, len - 2));
    // The zero in front may end a frame that only lacked that.
    (void)protocol_decode(d, &got, frame[0]);
    for (at = 1; at + 1 < len; at++)
        assert_false(protocol_decode(d, &got, frame[at]));
    assert_true(protocol_decode(d, &got, frame[at]));
    assert_true(is_same(&got, m));
}

/* A byte from the line; whether it completes a message, which is whole. */
static int take(protocol_decoder *d, uint8_t byte)
{
    protocol_decoder other = *d;
    protocol_message m;

    if (!protocol_decode(d, &m, byte))
        return 0;
    assert_true(is_inside(d, other.len, &m));
    assert_in_range(m.scope_len + m.key_len + m.payload_len, 0,
                    PROTOCOL_CONTENT_MAX);
    arrives(&other, &m);
    return 1;
}

static struct {
    protocol_decoder decoder;
    uint8_t after[64];
} line;

static void start(void)
{
    memset(&line, 0, sizeof line);
    memset(line.after, 0xA5, sizeof line.after);
}

/* Bytes from the line; how many messages they bring, which must be this. */
static unsigned receive(const uint8_t *bytes, size_t len,
                        const protocol_message *m)
{
    unsigned count = 0;

    for (size_t i = 0; i < len; i++) {
        size_t body = line.decoder.len;
        protocol_message got;
        if (!protocol_decode(&line.decoder, &got, bytes[i]))
            continue;
        assert_true(is_inside(&line.decoder, body, &got));
        assert_true(is_same(&got, m));
        count++;
    }
    return count;
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

// A command, with zeros in its payload, and its frame, twice.
static protocol_message sample;
static uint8_t frames[2 * PROTOCOL_FRAME_MAX];

/* The length of one. */
static size_t make_frames(void)
{
    size_t len;

    sample = message((const uint8_t *)"panel00017p\x05\0\0\xff", 5, 5, 5);
    len = protocol_encode(frames, &sample);
    memcpy(frames + len, frames, len);
    start();
    return len;
}

/* A frame has zeros at its ends only. */
TEST(every_length_comes_back)
{
    uint8_t content[PROTOCOL_CONTENT_MAX];
    unsigned most = PROTOCOL_CONTENT_MAX;

    for (unsigned fill = 0; fill < 3; fill++) {
        for (unsigned i = 0; i < sizeof content; i++)   // zeros, few, none
            content[i] = (uint8_t)(fill * i * 7 % 251 + (fill == 2));
        for (unsigned scope = 0; scope <= most; scope++)
            for (unsigned key = 0; scope + key <= most; key++)
                for (unsigned len = 0; scope + key + len <= most; len++) {
                    protocol_message m = message(content, scope, key, len);
                    start();
                    arrives(&line.decoder, &m);
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

/* The rest of a frame that was cut anywhere is lost, the next is not. */
TEST(whatever_is_cut_out_the_next_frame_is_found)
{
    size_t len = make_frames();

    for (size_t from = 0; from <= len; from++)
        for (size_t to = from; to <= len; to++) {
            int whole = from == to || (from == 0 && to == 1) ||
                        (from == len - 1 && to == len);
            start();
            is(receive(frames, from, &sample) +
                   receive(frames + to, 2 * len - to, &sample),
               whole ? 2 : 1);
        }
}

/* At the end it joins the next frame, whose zero in front ends it: as one byte
   too many. */
TEST(every_byte_changed_is_noticed_and_the_next_frame_found)
{
    size_t len = make_frames();

    for (size_t at = 0; at < len; at++)
        for (unsigned value = 0; value < 256; value++) {
            (void)make_frames();
            if (frames[at] == value)
                continue;
            frames[at] = (uint8_t)value;
            is(receive(frames, 2 * len, &sample), 1);
        }
}

/* Garbage, and frames that are damaged or cut. */
TEST(whatever_is_on_the_line_the_next_frame_arrives)
{
    srand(1);
    for (unsigned round = 0; round < 20000; round++) {
        size_t len = 2 * make_frames(), from = (size_t)rand() % len;
        for (unsigned count = round % 8 + (round % 9 == 0) * 200; count > 0;
             count--)
            frames[(size_t)rand() % len] = (uint8_t)(rand() >> 7);
        for (size_t i = from; i < len; i++)
            (void)take(&line.decoder, frames[i]);
        arrives(&line.decoder, &sample);
    }
}

/* A body of any length with the right CRC is a message only if the lengths in it
   are not longer. */
TEST(lengths_that_are_beyond_the_body_are_no_messages)
{
    for (unsigned len = 0; len <= PROTOCOL_BODY_MAX - CRC_SIZE; len++)
        for (unsigned n = 0; n < 16 * 16; n++) {
            uint8_t body[PROTOCOL_BODY_MAX] = {
                PROTOCOL_COMMAND, 0, (uint8_t)(n / 16 * 17),
                (uint8_t)(n % 16 * 17) };
            uint8_t frame[PROTOCOL_FRAME_MAX + 8], tail[CRC_SIZE];
            uint32_t crc = CRC_INIT, ignored = 0;
            encoder e = { frame, 1, 0 };
            unsigned taken = 0;

            begin_block(&e);
            add(&e, &crc, body, len);
            protocol_put32(tail, ~crc);
            add(&e, &ignored, tail, sizeof tail);
            frame[e.len++] = 0;
            start();
            for (size_t at = 1; at < e.len; at++)
                taken += (unsigned)take(&line.decoder, frame[at]);
            is(taken, len >= HEAD && HEAD + (unsigned)body[2] + body[3] <= len);
        }
}

/* A body that would fit but for one byte, and ever longer ones, up to some that
   would wrap a byte that counts; each code in turn. */
TEST(overlong_frames_are_dropped_and_memory_is_kept)
{
    size_t len = make_frames();

    for (unsigned code = 1; code < 256; code++)
        for (unsigned length = PROTOCOL_BODY_MAX; length < 700; length += 7) {
            uint8_t byte = (uint8_t)code;
            start();
            for (unsigned i = 0; i < length; i++) {
                is(receive(&byte, 1, &sample), 0);
                assert_true(line.decoder.len <= PROTOCOL_BODY_MAX);
            }
            is(receive(frames, len, &sample), 1);
            for (size_t i = 0; i < sizeof line.after; i++)
                is(line.after[i], 0xA5);
        }
}

/* .. also one that was whole before its last byte. */
TEST(a_frame_that_is_one_byte_too_long_is_no_message)
{
    static const uint8_t content[PROTOCOL_CONTENT_MAX] = { 0 };
    protocol_message m = message(content, 1, 1, PROTOCOL_CONTENT_MAX - 2);
    size_t len = protocol_encode(frames, &m);

    frames[len - 1] = 1;                        // one zero more, and the end
    frames[len] = 0;
    start();
    is(receive(frames, len + 1, &m), 0);
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

TEST(a_decoder_takes_76_bytes_at_most)
{
    assert_true(sizeof(protocol_decoder) <= 76);
}
