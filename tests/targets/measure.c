/* SPDX-License-Identifier: 0BSD
   What calls cost: each is put between two marks, and what counts instructions
   or cycles (instructions.c, simavr.c) prints how many there were.  Argument 0:

     0   one call of each kind, in the order of figures.sh
     1   every time that a begin holds the lock, in many commands
     2   every time that a complete holds it

   The medium is memory, so what a real one takes comes on top. */
#define IDEM_IMPLEMENTATION
#include "idem.h"
#include "board.h"

#include <string.h>

#ifdef __AVR__
#include <avr/io.h>
static void mark_from(void)
{
    GPIOR0 = 0xA5;
}

static void mark_to(void)
{
    GPIOR0 = 0x5A;
}
#else
// Not equal, or the compiler makes one of them.
__attribute__((noinline, used)) static void mark_from(void)
{
    __asm__ volatile("" : : "r"(1));
}

__attribute__((noinline, used)) static void mark_to(void)
{
    __asm__ volatile("" : : "r"(2));
}
#endif

int program(void);

enum { CAPACITY = 8, KEY_MAX = 16, RESPONSE_MAX = 16 };
enum { PAYLOAD = 32, COMMANDS = 300 };
enum { SECTOR = 1120,
       SECTORS = IDEM_SECTORS(CAPACITY, KEY_MAX, RESPONSE_MAX, 0, SECTOR, 8),
       SIZE = SECTOR * SECTORS, ERASED = 0xFF };

/* ------------------------------------------------------------------- medium */

// Of an erase only that it happens: no machine spends instructions on it.
#include "ram.h"

static const idem_storage storage = {
    .read = ram_read, .prog = ram_prog, .erase = ram_erase,
    .sector_size = SECTOR, .sector_count = SECTORS, .prog_size = 8,
    .erased = ERASED
};

/* -------------------------------------------------------------------- calls */

static int marks_calls, marks_lock;     // who sets the marks

static void from(int marks)
{
    if (marks)
        mark_from();
}

static void to(int marks)
{
    if (marks)
        mark_to();
}

static int lock(void *ctx)
{
    (void)ctx;
    from(marks_lock);
    return 0;
}

static void unlock(void *ctx)
{
    (void)ctx;
    to(marks_lock);
}

static idem_config config = {
    .capacity = CAPACITY, .key_max = KEY_MAX, .response_max = RESPONSE_MAX,
    .secret = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16 },
    .lock = lock, .unlock = unlock
};
static idem_table table;
static uint32_t memory[IDEM_JOURNAL_MEMORY_SIZE(CAPACITY, KEY_MAX, RESPONSE_MAX,
                                                0, 8) / 4];
static idem_claim claim;
static char buffer[RESPONSE_MAX];
static idem_reply reply;
static uint8_t payload[PAYLOAD];
static uint32_t now;

static int check(int holds)
{
    if (!holds) {
        board_text("FAILED\n");
        board_exit(1);
    }
    return holds;
}

static int begin(uint32_t number)
{
    char key[KEY_MAX] = "key of 16 bytes";
    idem_request request = { .key = key, .key_len = sizeof key,
                             .payload = payload, .payload_len = PAYLOAD,
                             .buffer = buffer, .buffer_size = sizeof buffer };
    int result;

    memcpy(key, &number, sizeof number);
    from(marks_calls);
    result = idem_begin(&table, &claim, &reply, &request, ++now);
    to(marks_calls);
    return result;
}

static int complete(void)
{
    idem_outcome outcome = { .response = "response of 16 b",
                             .response_len = RESPONSE_MAX };
    int result;

    from(marks_calls);
    result = idem_complete(&table, &claim, &outcome, ++now);
    to(marks_calls);
    return result;
}

static void forget(uint32_t number)
{
    char key[KEY_MAX] = "key of 16 bytes";
    idem_request request = { .key = key, .key_len = sizeof key };

    memcpy(key, &number, sizeof number);
    check(idem_forget(&table, &request, ++now) == IDEM_OK);
}

static void open_table(const idem_storage *where)
{
    int result;

    config.storage = where;
    from(marks_calls);
    result = idem_open(&table, &config, memory, sizeof memory, ++now);
    to(marks_calls);
    check(result == IDEM_OK);
}

/* In this order: begin, complete, begin a duplicate of it. */
static void one_of_each(uint32_t number)
{
    check(begin(number) == IDEM_EXECUTE);
    check(complete() == IDEM_OK);
    check(begin(number) == IDEM_REPLAY);
}

static void hash(void)
{
    idem_fingerprint_state state;
    volatile uint64_t fingerprint;

    mark_from();
    idem_fingerprint_init(&state, &config);
    idem_fingerprint_update(&state, payload, PAYLOAD);
    fingerprint = idem_fingerprint_final(&state);
    mark_to();
    (void)fingerprint;
}

/* The table is nearly full, and stays so through every round of the ring. */
static void many(int marks_complete)
{
    uint32_t i;

    open_table(&storage);
    for (i = 0; i < COMMANDS; i++) {
        marks_lock = !marks_complete;
        check(begin(i) == IDEM_EXECUTE);
        marks_lock = marks_complete;
        check(complete() == IDEM_OK);
        marks_lock = 0;
        if (i >= CAPACITY - 1)
            forget(i - (CAPACITY - 1));
    }
}

int program(void)
{
    uint32_t what = board_argument(0);

    memset(bytes, ERASED, sizeof bytes);
    if (what) {
        many(what == 2);
        return 0;
    }
    marks_calls = 1;
    hash();
    open_table(NULL);
    one_of_each(1);
    open_table(&storage);
    // The first writes a header too: it is not what comes later.
    one_of_each(0);
    one_of_each(1);
    for (uint32_t i = 2; i < CAPACITY; i++)
        one_of_each(i);
    open_table(&storage);
    return 0;
}
