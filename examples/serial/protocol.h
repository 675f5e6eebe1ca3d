/* SPDX-License-Identifier: 0BSD */
/*
 * Messages over a serial line, each in a frame that is found again whatever
 * the line does to it.  For both ends; no allocation, no stdio, 76 bytes of
 * memory for a receiver.
 *
 * A frame is 0x00, then a body from which COBS has removed all zeros, then
 * 0x00.  So a zero is always an end, and damage costs no more than the frame
 * that it hits.  (The zero in front ends a frame that noise began.)
 *
 *     body   0   1    kind, PROTOCOL_COMMAND, _NUMBERED or _ANSWER
 *            1   1    result, of an answer; 0 in a command
 *            2   1    length of the scope
 *            3   1    length of the key
 *            4   ...  scope, key, payload (the rest)
 *            .   4    CRC-32 of all before it, the lowest byte first
 *
 * The key of a command with a number is 8 bytes: epoch:4, sequence:4.
 */
#ifndef PROTOCOL_H
#define PROTOCOL_H

#include <stddef.h>
#include <stdint.h>

#define PROTOCOL_CONTENT_MAX 56u    /* scope, key and payload together */
#define PROTOCOL_BODY_MAX (4u + PROTOCOL_CONTENT_MAX + 4u)
#define PROTOCOL_FRAME_MAX (1u + 1u + PROTOCOL_BODY_MAX + 1u)

#define PROTOCOL_NUMBER_SIZE 8u     /* of such a key */

enum { PROTOCOL_COMMAND = 1, PROTOCOL_ANSWER = 2, PROTOCOL_NUMBERED = 3 };

/* The result of an answer */
enum {
    PROTOCOL_DONE = 1,      /* executed, now or before; payload: response */
    PROTOCOL_FAILED = 2,    /* finally: it is not executed; payload: response */
    PROTOCOL_WAIT = 3,      /* ask again; payload: in how many ms, 2 bytes */
    PROTOCOL_REFUSED = 4,   /* no outcome; payload: the idem.h result, which
                               idem_retry understands */
    PROTOCOL_LOOK = 5       /* finally; nobody knows whether it was executed:
                               look at the cup */
};

typedef struct protocol_message {
    uint8_t        kind;
    uint8_t        result;
    uint8_t        scope_len;
    uint8_t        key_len;
    uint8_t        payload_len;
    const uint8_t *scope;
    const uint8_t *key;
    const uint8_t *payload;
} protocol_message;

/* What has arrived of a frame; all zero to begin with.  May be copied. */
typedef struct protocol_decoder {
    uint32_t crc;           /* of body[0 .. len), inverted */
    uint8_t  body[PROTOCOL_BODY_MAX];
    uint8_t  len;           /* bytes in body */
    uint8_t  left;          /* bytes before the next COBS code */
    uint8_t  code;          /* the last one; 0: none since the frame began */
    uint8_t  bad;           /* 1: too long, skip to the next zero */
} protocol_decoder;

/* Writes a message as a frame; frame has room for PROTOCOL_FRAME_MAX.  Returns
   the frame's length, or 0 if the content is too long. */
size_t protocol_encode(uint8_t *frame, const protocol_message *message);

/* Takes the next byte from the line, in constant time: fit for an interrupt.
   Returns 1 if it completes a frame that is whole: *message then points into
   the decoder, until the next call.  Otherwise 0; *message is not touched. */
int protocol_decode(protocol_decoder *decoder, protocol_message *message,
                    uint8_t byte);

/* Numbers in payloads, the lowest byte first */
void     protocol_put16(uint8_t *at, uint16_t value);
void     protocol_put32(uint8_t *at, uint32_t value);
uint16_t protocol_get16(const uint8_t *at);
uint32_t protocol_get32(const uint8_t *at);

/* True if a message is a command that can be taken. */
int protocol_is_command(const protocol_message *message);

#endif
