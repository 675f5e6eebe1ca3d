/* SPDX-License-Identifier: 0BSD */
/*
 * The frame decoder of the demo.  Whatever bytes come, a decoded message lies
 * inside the decoder, is no longer than it may be, and encodes to a frame that
 * decodes to the same; and an intact frame arrives, whatever came before it.
 */
#ifndef FRAME_H
#define FRAME_H

#include "examples/serial/protocol.c"

#include "input.h"

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

    PROMISE(len > 0 && len <= sizeof frame);
    PROMISE(!memchr(frame + 1, 0, len - 2));
    // The zero in front may end a frame that only lacked that.
    (void)protocol_decode(d, &got, frame[0]);
    for (at = 1; at + 1 < len; at++)
        PROMISE(!protocol_decode(d, &got, frame[at]));
    PROMISE(protocol_decode(d, &got, frame[at]));
    PROMISE(is_same(&got, m));
}

/* A byte from the line; what it completes is a message. */
static void take(protocol_decoder *d, uint8_t byte)
{
    protocol_decoder other = *d;
    protocol_message m;

    trace("%02x ", byte);
    if (!protocol_decode(d, &m, byte))
        return;
    PROMISE(is_inside(d, other.len, &m));
    PROMISE(m.scope_len + m.key_len + m.payload_len <=
            (int)PROTOCOL_CONTENT_MAX);
    trace("\na message of %u + %u + %u bytes\n", m.scope_len, m.key_len,
          m.payload_len);
    arrives(&other, &m);
}

/* A message as in the input, with what is in `content`. */
static protocol_message make_message(input *in, uint8_t *content)
{
    protocol_message m = { 0 };
    size_t len;

    m.kind = input_byte(in);
    m.result = input_byte(in);
    m.scope_len = (uint8_t)input_below(in, PROTOCOL_CONTENT_MAX + 1);
    m.key_len = (uint8_t)input_below(in, PROTOCOL_CONTENT_MAX + 1u -
                                             m.scope_len);
    len = (size_t)m.scope_len + m.key_len;
    m.payload_len = (uint8_t)input_below(
        in, (unsigned)(PROTOCOL_CONTENT_MAX + 1 - len));
    memset(content, 0, PROTOCOL_CONTENT_MAX);
    input_bytes(in, content, len + m.payload_len);
    m.scope = content;
    m.key = m.scope + m.scope_len;
    m.payload = m.key + m.key_len;
    return m;
}

/* A body of any bytes with the right CRC, as a frame: it passes for a message
   only if its lengths are right. */
static void forge(protocol_decoder *d, input *in)
{
    uint8_t frame[PROTOCOL_FRAME_MAX + 8], body[PROTOCOL_BODY_MAX], tail[4];
    uint32_t crc = CRC_INIT, ignored = 0;
    size_t len = input_bytes(in, body, input_below(in, sizeof body)), at;
    encoder e = { frame, 1, 0 };

    begin_block(&e);
    add(&e, &crc, body, len);
    protocol_put32(tail, ~crc);
    add(&e, &ignored, tail, sizeof tail);
    take(d, 0);
    for (at = 1; at < e.len; at++)
        take(d, frame[at]);
    take(d, 0);
}

/* A message's frame, with some bytes damaged. */
static void damage(protocol_decoder *d, input *in)
{
    uint8_t frame[PROTOCOL_FRAME_MAX], content[PROTOCOL_CONTENT_MAX];
    protocol_message m = make_message(in, content);
    size_t len = protocol_encode(frame, &m), at;
    unsigned count = input_below(in, 4);

    for (; count > 0; count--)
        frame[input_byte(in) % len] ^= input_byte(in);
    for (at = 0; at < len; at++)
        take(d, frame[at]);
}

static void run(input *in)
{
    protocol_decoder d = { 0 };
    uint8_t content[PROTOCOL_CONTENT_MAX];
    protocol_message m;
    unsigned count;

    while (in->left)
        switch (input_below(in, 4)) {
        case 0:
            for (count = input_byte(in); count > 0 && in->left; count--)
                take(&d, input_byte(in));
            break;
        case 1:
            damage(&d, in);
            break;
        case 2:
            forge(&d, in);
            break;
        case 3:
            m = make_message(in, content);
            arrives(&d, &m);
            break;
        }
    m = make_message(in, content);
    arrives(&d, &m);
}

#endif /* FRAME_H */
