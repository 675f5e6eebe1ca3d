/* SPDX-License-Identifier: 0BSD */
#include "protocol.h"
#include <string.h>

#define HEAD 4u
#define CRC_SIZE 4u
#define CRC_INIT UINT32_C(0xFFFFFFFF)
/* What is in the register after a body and its right CRC */
#define CRC_RESIDUE UINT32_C(0xDEBB20E3)

void protocol_put16(uint8_t *at, uint16_t value)
{
    at[0] = (uint8_t)(value & 0xFF);
    at[1] = (uint8_t)(value >> 8);
}

void protocol_put32(uint8_t *at, uint32_t value)
{
    protocol_put16(at, (uint16_t)(value & 0xFFFF));
    protocol_put16(at + 2, (uint16_t)(value >> 16));
}

uint16_t protocol_get16(const uint8_t *at)
{
    return (uint16_t)(at[0] | (unsigned)at[1] << 8);
}

uint32_t protocol_get32(const uint8_t *at)
{
    return (uint32_t)protocol_get16(at) |
           (uint32_t)protocol_get16(at + 2) << 16;
}

int protocol_is_command(const protocol_message *message)
{
    return message->kind == PROTOCOL_COMMAND ||
           (message->kind == PROTOCOL_NUMBERED &&
            message->key_len == PROTOCOL_NUMBER_SIZE);
}

/* CRC-32 (IEEE 802.3), half a byte at a time: 64 bytes of table instead of
   1024, a third of the time of single bits. */
static uint32_t crc_byte(uint32_t crc, uint8_t byte)
{
    static const uint32_t table[16] = {
        0x00000000, 0x1DB71064, 0x3B6E20C8, 0x26D930AC,
        0x76DC4190, 0x6B6B51F4, 0x4DB26158, 0x5005713C,
        0xEDB88320, 0xF00F9344, 0xD6D6A3E8, 0xCB61B38C,
        0x9B64C2B0, 0x86D3D2D4, 0xA00AE278, 0xBDBDF21C
    };

    crc ^= byte;
    crc = crc >> 4 ^ table[crc & 15];
    return crc >> 4 ^ table[crc & 15];
}

/* ---------------------------------------------------------------------------
   encoding
   ------------------------------------------------------------------------ */

typedef struct encoder {
    uint8_t *frame;
    size_t   len;
    size_t   code_at;       /* where the code of the bytes since it goes */
} encoder;

static void begin_block(encoder *e)
{
    e->code_at = e->len;
    e->frame[e->len++] = 1;
}

/* A body is too short for COBS's blocks of 254 bytes without a zero. */
static void add_byte(encoder *e, uint8_t byte)
{
    if (byte == 0) {
        begin_block(e);
    } else {
        e->frame[e->len++] = byte;
        e->frame[e->code_at]++;
    }
}

static void add(encoder *e, uint32_t *crc, const uint8_t *bytes, size_t len)
{
    size_t i;

    for (i = 0; i < len; i++) {
        *crc = crc_byte(*crc, bytes[i]);
        add_byte(e, bytes[i]);
    }
}

size_t protocol_encode(uint8_t *frame, const protocol_message *message)
{
    uint8_t head[HEAD], tail[CRC_SIZE];
    uint32_t crc = CRC_INIT, ignored = 0;
    encoder e;

    if ((unsigned)message->scope_len + message->key_len +
        message->payload_len > PROTOCOL_CONTENT_MAX)
        return 0;
    head[0] = message->kind;
    head[1] = message->result;
    head[2] = message->scope_len;
    head[3] = message->key_len;
    e.frame = frame;
    e.len = 0;
    e.frame[e.len++] = 0;
    begin_block(&e);
    add(&e, &crc, head, sizeof head);
    add(&e, &crc, message->scope, message->scope_len);
    add(&e, &crc, message->key, message->key_len);
    add(&e, &crc, message->payload, message->payload_len);
    protocol_put32(tail, ~crc);
    add(&e, &ignored, tail, sizeof tail);
    e.frame[e.len++] = 0;
    return e.len;
}

/* ---------------------------------------------------------------------------
   decoding
   ------------------------------------------------------------------------ */

static void keep(protocol_decoder *d, uint8_t byte)
{
    if (d->len == PROTOCOL_BODY_MAX) {
        d->bad = 1;
        return;
    }
    d->body[d->len++] = byte;
    d->crc = crc_byte(d->crc, byte);
}

/* A zero has ended what is in the body: is it a message? */
static int is_message(const protocol_decoder *d)
{
    if (d->bad || d->left || d->len < HEAD + CRC_SIZE || d->crc != CRC_RESIDUE)
        return 0;
    return HEAD + d->body[2] + d->body[3] + CRC_SIZE <= d->len;
}

static void take_apart(protocol_message *message, const protocol_decoder *d)
{
    message->kind = d->body[0];
    message->result = d->body[1];
    message->scope_len = d->body[2];
    message->key_len = d->body[3];
    message->scope = d->body + HEAD;
    message->key = message->scope + message->scope_len;
    message->payload = message->key + message->key_len;
    message->payload_len = (uint8_t)(d->len - HEAD - message->scope_len -
                                     message->key_len - CRC_SIZE);
}

int protocol_decode(protocol_decoder *decoder, protocol_message *message,
                    uint8_t byte)
{
    if (byte == 0) {
        int whole = is_message(decoder);

        if (whole)
            take_apart(message, decoder);
        decoder->len = decoder->left = decoder->code = decoder->bad = 0;
        return whole;
    }
    if (!decoder->code)
        decoder->crc = CRC_INIT;
    if (decoder->left) {
        keep(decoder, byte);
        decoder->left--;
        return 0;
    }
    // A code: it stands for the zero that it replaced, but for the first.  (And
    // for those after COBS's full blocks, which are too long for a body.)
    if (decoder->code)
        keep(decoder, 0);
    decoder->code = byte;
    decoder->left = (uint8_t)(byte - 1);
    return 0;
}
