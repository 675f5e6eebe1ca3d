/* SPDX-License-Identifier: 0BSD */
/*
 * The device of the serial example, whose effect is its own state: if power
 * fails before an outcome is recorded, nothing has changed, so it pours on
 * IDEM_RECOVER.  After a record was lost nobody knows, so it does not pour on
 * IDEM_UNCERTAIN.  Its labels are outside, so no two commands have the same
 * text.
 */
#include "../../examples/serial/device.c"
#include "../../examples/serial/protocol.c"
#include "test.h"

enum { SIZE = 4096, SECTORS = DEVICE_SECTORS(SIZE, 1) };

static unsigned char bytes[SIZE * SECTORS];
static uint32_t memory[DEVICE_MEMORY_SIZE(1) / 4];
static device dispenser;
static protocol_decoder decoder;
static unsigned answers, done, looks, failed, progs_left;
static uint32_t poured, tick;           // in all, as the latest answer has it

static int bytes_read(void *ctx, uint32_t at, void *dst, uint32_t len)
{
    (void)ctx;
    memcpy(dst, bytes + at, len);
    return 0;
}

static int bytes_prog(void *ctx, uint32_t at, const void *src, uint32_t len)
{
    (void)ctx;
    if (!progs_left)
        return 1;
    progs_left--;
    memcpy(bytes + at, src, len);
    return 0;
}

static const idem_storage storage = {
    .read = bytes_read, .prog = bytes_prog, .sector_size = SIZE,
    .sector_count = SECTORS, .prog_size = 1,
};

static uint32_t millis(void)
{
    return tick++;
}

static void put(void *ctx, uint8_t byte)
{
    protocol_message m;

    (void)ctx;
    if (!protocol_decode(&decoder, &m, byte))
        return;
    answers++;
    done += m.result == PROTOCOL_DONE;
    looks += m.result == PROTOCOL_LOOK;
    failed += m.result == PROTOCOL_FAILED;
    if (m.result == PROTOCOL_DONE)
        poured = protocol_get32(m.payload + 4);
}

static const uint8_t secret[16] = "of this test....";
static const device_port port = { .put = put, .millis = millis,
                                  .secret = secret };

static void restart(void)
{
    progs_left = UINT32_MAX;
    answers = done = looks = failed = 0;
    is(device_start(&dispenser, &port, &storage, memory, sizeof memory),
       IDEM_OK);
}

static void blank(void)
{
    memset(bytes, 0, sizeof bytes);
    restart();
}

static void command(const char *key, const char *payload)
{
    uint8_t frame[PROTOCOL_FRAME_MAX];
    protocol_message m = {
        .kind = PROTOCOL_COMMAND, .payload = (const uint8_t *)payload,
        .payload_len = 3,
        .scope = (const uint8_t *)"panel", .scope_len = 5,
        .key = (const uint8_t *)key, .key_len = (uint8_t)strlen(key),
    };
    size_t len = protocol_encode(frame, &m);

    for (size_t i = 0; i < len; i++)
        device_receive(&dispenser, frame[i]);
}

static void pour_five(const char *key)
{
    command(key, "p\005\000");
}

/* The claim is written, and nothing after it. */
TEST(s4_an_interrupted_pour_is_poured_once_after_a_restart)
{
    blank();
    pour_five("first");
    progs_left = 1;
    pour_five("second");
    is(done, 1);
    restart();
    pour_five("second");
    is(done, 1);
    is(poured, 10);
    pour_five("second");
    is(poured, 10);
}

/* One bit of the record that has a's outcome: the claim is still there. */
TEST(s4_a_pour_whose_outcome_was_lost_is_not_poured_again)
{
    static const char id[] = "panelfirst";
    size_t last = 0;

    blank();
    pour_five("first");
    pour_five("second");
    is(poured, 10);
    for (size_t i = 0; i + sizeof id < sizeof bytes; i++)
        if (!memcmp(bytes + i, id, sizeof id - 1))
            last = i;
    bytes[last] ^= 1;
    restart();
    assert_true(dispenser.table.stats.lost > 0);
    pour_five("first");
    is(done, 0);
    is(looks, 1);
    pour_five("new");                           // may be a lost one, too
    is(looks, 2);
    pour_five("second");
    is(done, 1);
    is(poured, 10);
    command("third", "???");                    // of nobody, whatever was lost
    is(failed, 1);
    restart();
    pour_five("first");
    is(done, 0);
    is(looks, 1);
}

/* An outcome that idem_run cannot record is a failure with a code.  Its command
   was executed, and no answer is that it was not. */
TEST(after_an_invalid_outcome_the_answer_is_to_look)
{
    const idem_request request = {
        .scope = "panel", .scope_len = 5, .key = "first", .key_len = 5,
        .payload = "p\005", .payload_len = 3 };
    const idem_outcome outcome = { .code = IDEM_CODE_INVALID, .failed = 1 };
    idem_claim claim;
    idem_reply reply;

    blank();
    is(idem_begin(&dispenser.table, &claim, &reply, &request, millis()),
       IDEM_EXECUTE);
    is(idem_complete(&dispenser.table, &claim, &outcome, millis()), IDEM_OK);
    pour_five("first");
    is(looks, 1);
}

/* The label that a command of panel's asks for; "" if it has none. */
static const char *label_of(uint8_t kind, const void *key, size_t key_len)
{
    static char label[DEVICE_LABEL_MAX + 1];
    protocol_message m = {
        .kind = kind, .payload = (const uint8_t *)"ltea", .payload_len = 4,
        .scope = (const uint8_t *)"panel", .scope_len = 5,
        .key = (const uint8_t *)key, .key_len = (uint8_t)key_len,
    };

    label[device_label(label, &m)] = 0;
    return label;
}

/* Flash that nobody programmed is the same in all devices.  And one that cannot
   open its memory does not know what it has executed: it refuses nothing. */
TEST(a_device_without_a_secret_of_its_own_does_not_start)
{
    static const uint8_t zeros[16];
    uint8_t erased[16];
    const uint8_t *const none[] = { NULL, zeros, erased };
    device_port other = port;

    blank();
    memset(erased, 0xFF, sizeof erased);
    for (size_t i = 0; i < COUNT(none); i++) {
        other.secret = none[i];
        is(device_start(&dispenser, &other, &storage, memory, sizeof memory),
           IDEM_E_ARG);
        pour_five("first");
        is(answers, 0);
    }
}

TEST(no_key_has_the_label_of_a_number)
{
    static const uint8_t number[PROTOCOL_NUMBER_SIZE] = { 7, 0, 0, 0, 1 };

    assert_string_equal(label_of(PROTOCOL_NUMBERED, number, sizeof number),
                        "panel #7.1 tea");
    assert_string_equal(label_of(PROTOCOL_COMMAND, "7.1", 3), "panel 7.1 tea");
    assert_string_equal(label_of(PROTOCOL_COMMAND, "#7.1", 4), "");
    assert_string_equal(label_of(PROTOCOL_COMMAND, "7#1", 3), "panel 7#1 tea");
}
