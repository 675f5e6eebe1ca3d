/* SPDX-License-Identifier: 0BSD */
/* The demo's device after its storage was damaged.  It may have forgotten a
   pour, and the meter does not show it: so it does not pour again, and answers
   that nobody knows, which is not a failure. */
#include "examples/serial/device.c"
#include <stdio.h>
#include <stdlib.h>

enum { SECTOR = 1024, SECTORS = DEVICE_SECTORS(SECTOR, 1) };

static uint8_t fram[SECTOR * SECTORS], answer_frame[2 * PROTOCOL_FRAME_MAX];
static size_t answer_len;
static device d;

static int fram_read(void *ctx, uint32_t at, void *dst, uint32_t len)
{
    (void)ctx;
    memcpy(dst, fram + at, len);
    return 0;
}

static int fram_prog(void *ctx, uint32_t at, const void *src, uint32_t len)
{
    (void)ctx;
    memcpy(fram + at, src, len);
    return 0;
}

static void put(void *ctx, uint8_t byte)
{
    (void)ctx;
    answer_frame[answer_len++ % sizeof answer_frame] = byte;
}

static uint32_t no_millis(void)
{
    return 0;
}

static void expect(const char *what, unsigned is, unsigned wanted)
{
    if (is == wanted)
        return;
    fprintf(stderr, "damage: %s: %u, not %u\n", what, is, wanted);
    exit(1);
}

static int start(const uint8_t *secret)
{
    static device_port port = { .put = put, .millis = no_millis };
    static const idem_storage storage = {
        .read = fram_read, .prog = fram_prog, .sector_size = SECTOR,
        .sector_count = SECTORS, .prog_size = 1 };
    static uint32_t memory[DEVICE_MEMORY_SIZE(1) / 4];

    port.secret = secret;
    return device_start(&d, &port, &storage, memory, sizeof memory);
}

static void power_on(void)
{
    static const uint8_t secret[16] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 1 };

    expect("start", (unsigned)start(secret), IDEM_OK);
}

/* Sends a command of three bytes under a key; the result of the answer. */
static uint8_t send(const char *key, const char *payload)
{
    protocol_message m = {
        .kind = PROTOCOL_COMMAND, .scope_len = 5, .payload_len = 3,
        .key_len = (uint8_t)strlen(key), .scope = (const uint8_t *)"panel",
        .key = (const uint8_t *)key, .payload = (const uint8_t *)payload };
    uint8_t frame[PROTOCOL_FRAME_MAX];
    size_t len = protocol_encode(frame, &m), i;
    protocol_decoder decoder = { 0 };

    answer_len = 0;
    for (i = 0; i < len; i++)
        device_receive(&d, frame[i]);
    for (i = 0; i < answer_len; i++)
        if (protocol_decode(&decoder, &m, answer_frame[i]))
            return m.result;
    return 0;
}

static uint8_t pour_5(const char *key)
{
    return send(key, "p\005\000");
}

/* Flash that nobody programmed is the same in all devices.  And one that cannot
   open its memory does not know what it has executed: it refuses nothing. */
static void needs_a_secret(void)
{
    uint8_t erased[16];

    memset(erased, 0xFF, sizeof erased);
    expect("no secret", (unsigned)start(erased), (unsigned)IDEM_E_ARG);
    expect("an answer without memory", pour_5("one"), 0);
}

static void damage(const char *name)
{
    size_t len = strlen(name), i;

    for (i = 0; i + len <= sizeof fram; i++)
        if (memcmp(fram + i, name, len) == 0)
            fram[i] ^= 0xFF;
}

int main(void)
{
    uint8_t meter[DEVICE_STATE_MAX];
    size_t len = sizeof meter;

    needs_a_secret();
    power_on();
    expect("one", pour_5("one"), PROTOCOL_DONE);
    expect("two", pour_5("two"), PROTOCOL_DONE);
    damage("panelone");
    power_on();
    expect("a loss", d.table.stats.lost > 0, 1);
    expect("one, again", pour_5("one"), PROTOCOL_LOOK);
    expect("one, once more", pour_5("one"), PROTOCOL_LOOK);
    expect("no command", send("three", "???"), PROTOCOL_FAILED);
    expect("two, again", pour_5("two"), PROTOCOL_DONE);
    expect("state", (unsigned)idem_state(&d.table, meter, &len), IDEM_OK);
    expect("pours", protocol_get32(meter), 2);
    power_on();
    expect("one, after a restart", pour_5("one"), PROTOCOL_LOOK);
    puts("damage: what may have poured is not poured again: look");
    return 0;
}
