/* SPDX-License-Identifier: 0BSD */
/*
 * Fuzzing a command parser together with idem.h: the fuzzer's bytes choose what
 * arrives on the line (also damaged, also repeated), when power goes, and which
 * flash operation fails; the assertion is that nothing is executed twice but
 * after IDEM_RECOVER.  To use it for a parser of your own, replace what is in
 * >>yours and the encoder in send_command; the rest stays.
 *
 *     clang -g -O1 -I. -fsanitize=fuzzer,address,undefined fuzz/template.c
 *         libFuzzer, with a directory for what it learns: ./a.out corpus
 *     afl-clang-fast -O2 -I. -fsanitize=fuzzer fuzz/template.c
 *         AFL++, persistent: afl-fuzz -i seeds -o out -- ./a.out
 *     cc -g -I. -DREPLAY fuzz/template.c
 *         anything else, and to look at what was found: ./a.out FILE...
 *
 * -DINJECT injects a bug that must be found.
 *
 * The input is a list of steps, each a byte that chooses one (of STEPS) and the
 * bytes that it needs; zeros where the input ends early.
 */
#define IDEM_IMPLEMENTATION
#include "idem.h"
#include "examples/serial/protocol.c"
#include "tests/model/flash.h"

#include "harness.h"

enum { CAPACITY = 8, KEY_MAX = 16, SECTORS = 8, SECTOR = 1024, GRANULE = 8 };

/* ---------------------------------------------------------------------------
   the world: flash, time, and what was executed
   ------------------------------------------------------------------------ */

static flash nor;
static uint32_t nor_memory[FLASH_MEMORY(SECTOR, SECTORS) / 4 + 1];
static uint32_t now_ms;

static const idem_storage storage = {
    .ctx = &nor, .read = flash_read, .prog = flash_prog, .erase = flash_erase,
    .sector_size = SECTOR, .sector_count = SECTORS, .prog_size = GRANULE,
    .erased = 0xFF
};

/* Scopes and keys of the commands that were executed as never before */
#define EXECUTED_MAX 256
static struct identity {
    uint8_t len, scope_len;
    uint8_t id[KEY_MAX];
} executed[EXECUTED_MAX];
static unsigned executed_count;

/* The oracle: the only thing that must never happen. */
static void execute_first_time(const uint8_t *scope, size_t scope_len,
                               const uint8_t *key, size_t key_len)
{
    struct identity new = { 0 };
    unsigned i;

    new.len = (uint8_t)(scope_len + key_len);
    new.scope_len = (uint8_t)scope_len;
    memcpy(new.id, scope, scope_len);
    memcpy(new.id + scope_len, key, key_len);
    for (i = 0; i < executed_count; i++)
        if (memcmp(&executed[i], &new, sizeof new) == 0)
            broken("executed twice", __FILE__, __LINE__);
    if (executed_count < EXECUTED_MAX)
        executed[executed_count++] = new;
}

/* ---------------------------------------------------------------------------
   >>yours    the device: what it does when it starts, and with a byte
   ------------------------------------------------------------------------ */

static const idem_config config = {
    .capacity = CAPACITY, .key_max = KEY_MAX, .response_max = 4,
    .storage = &storage, .retention_ms = IDEM_RETENTION_MAX,
    .secret = { 0xc3, 0x18, 0x5a, 0xf4, 0x07, 0x9d, 0x62, 0xbe,
                0x2e, 0x81, 0xd0, 0x4b, 0x96, 0x3f, 0x75, 0xea }
};
static idem_table table;
static uint32_t memory[IDEM_JOURNAL_MEMORY_SIZE(CAPACITY, KEY_MAX, 4, 0,
                                                GRANULE) / 4];
static protocol_decoder decoder;

static int device_start(void)
{
    memset(&decoder, 0, sizeof decoder);
    return idem_open(&table, &config, memory, sizeof memory, now_ms);
}

static void device_command(const protocol_message *m)
{
    uint8_t response[4];
    idem_claim claim;
    idem_reply reply;
    idem_outcome outcome = { .response = "done", .response_len = 4 };
    idem_request request = {
        .scope = m->scope, .scope_len = m->scope_len,
        .key = m->key, .key_len = m->key_len,
        .payload = m->payload, .payload_len = m->payload_len,
        .buffer = response, .buffer_size = sizeof response };
    int result = idem_begin(&table, &claim, &reply, &request, now_ms);

    if (result == IDEM_EXECUTE)
        execute_first_time(m->scope, m->scope_len, m->key, m->key_len);
    if (result != IDEM_EXECUTE && result != IDEM_RECOVER &&
        result != IDEM_UNCERTAIN)
        return;
    outcome.failed = result != IDEM_EXECUTE;
    result = idem_complete(&table, &claim, &outcome, now_ms);
#ifdef INJECT
    // "Not recorded?  Then tidy up, and let the sender try again."
    if (result < 0)
        idem_release(&table, &claim, now_ms);
#endif
}

static void device_byte(uint8_t byte)
{
    protocol_message m;

    if (protocol_decode(&decoder, &m, byte) && m.kind == PROTOCOL_COMMAND)
        device_command(&m);
}

static void device_idle(void)
{
    idem_maintain(&table, now_ms);
}

/* ---------------------------------------------------------------------------
   what the fuzzer does to it
   ------------------------------------------------------------------------ */

/* Power comes back. */
static void restart(void)
{
    flash_boot(&nor);
    PROMISE(device_start() == IDEM_OK);
}

static void receive(uint8_t byte)
{
    device_byte(byte);
    if (nor.off)
        restart();
}

static uint8_t frame[PROTOCOL_FRAME_MAX];
static size_t frame_len;

/* One of a few scopes, keys and payloads, so that they meet again */
static void send_command(input *in)
{
    static const uint8_t names[] = "aabbccddee";
    protocol_message m = { 0 };
    uint8_t which = input_byte(in);

    m.kind = PROTOCOL_COMMAND;
    m.scope = names;
    m.scope_len = which >> 6;
    m.key = names + (which & 7);
    m.key_len = (uint8_t)(1 + (which >> 3 & 1));
    m.payload = names;
    m.payload_len = which >> 4 & 1;
    frame_len = protocol_encode(frame, &m);
}

static void receive_frame(void)
{
    size_t i;

    for (i = 0; i < frame_len; i++)
        receive(frame[i]);
}

enum {
    SEND, REPEAT, DAMAGE, RAW, CUT, FAULT, TIME, IDLE, RESTART, STEPS
};

static void step(input *in)
{
    unsigned which = input_below(in, STEPS), a, b;

    switch (which) {
    case SEND:                          // a command
        send_command(in);
        receive_frame();
        break;
    case REPEAT:                        // the last one again
        receive_frame();
        break;
    case DAMAGE:                        // the last one, and one byte wrong
        a = frame_len ? input_below(in, (unsigned)frame_len) : 0;
        b = input_byte(in);
        frame[a] ^= (uint8_t)b;
        receive_frame();
        frame[a] ^= (uint8_t)b;
        break;
    case RAW:                           // anything
        for (a = input_below(in, 128); a > 0; a--)
            receive(input_byte(in));
        break;
    case CUT:                           // soon power goes, torn in some way
        a = input_below(in, 16);
        flash_cut(&nor, a, input_below(in, 16));
        break;
    case FAULT:                         // soon a flash operation fails
        a = input_below(in, 3);
        b = input_byte(in);
        flash_fail(&nor, (int)a, b % 4, FLASH_UNDONE + (int)(b / 4 % 3), 0);
        break;
    case TIME:
        now_ms += input_byte(in) * 256u;
        break;
    case IDLE:
        device_idle();
        if (nor.off)
            restart();
        break;
    default:
        restart();
    }
}

/* A new device, its flash blank. */
static void begin_anew(void)
{
    memset(&nor, 0, sizeof nor);
    nor.kind = FLASH_NOR;
    nor.sector_size = SECTOR;
    nor.sector_count = SECTORS;
    nor.prog_size = GRANULE;
    nor.erased = 0xFF;
    nor.draws = 4;
    PROMISE(flash_init(&nor, nor_memory) == 0);
    executed_count = 0;
    now_ms = 0;
    frame_len = 0;
    restart();
}

static void run(input *in)
{
    begin_anew();
    while (in->left) {
        step(in);
        PROMISE(idem_check(&table) == 0);
    }
}
