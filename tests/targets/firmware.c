/* SPDX-License-Identifier: 0BSD
   A device whose power is cut.  The sender is the one who runs it: it prints the
   first command that it has no answer to yet (argument 0), and how often the
   device has been started before (argument 1).  The device first gets the few
   commands before that one again, as duplicates, then all that follow; or so
   many of them (argument 2).

   Everything is printed before and after it happens, a line each, for audit.awk:

     open, opened KEYS LOST          KEYS: the application's state
     begin K, and then one of        execute K: this line is the effect
                                     claimed K: no effect, it will be released
                                     recover K, replay K RESPONSE
     complete K RESPONSE, done K RESPONSE
     release K, released K; forget K, forgot K
     maintain, maintained
     wrong K RESULT                  what must not happen here
     error K RESULT                  the storage failed; the device stops
     end

   A line that was printed whole ends with " ."

   What the audit must find out:
     INJECT_LATE    a program reaches the medium with the next one only
     INJECT_AGAIN   an interrupted command is executed once more
     INJECT_BLANK   a restart begins with nothing */
#define IDEM_IMPLEMENTATION
#include "idem.h"
#include "board.h"
#include "medium.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { COMMANDS = 64 };
enum { CAPACITY = 6, KEY_MAX = 4, RESPONSE_MAX = 12, STATE_MAX = 4 };
enum { AGAIN = CAPACITY - 2 };          // duplicates after a restart
enum { KEY_LEN = 3 };                   // the scope is a byte

static idem_storage storage;             // the medium, or what is injected
static const idem_config config = {
    .capacity = CAPACITY, .key_max = KEY_MAX, .response_max = RESPONSE_MAX,
    .state_max = STATE_MAX, .max_attempts = 255,
    .secret = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16 },
    .storage = &storage
};
static idem_table table;
static uint32_t memory[IDEM_JOURNAL_MEMORY_SIZE(CAPACITY, KEY_MAX, RESPONSE_MAX,
                                                STATE_MAX, 16) / 4];
static uint32_t now;

int program(void);

/* ----------------------------------------------------------------- printing */

static char response[RESPONSE_MAX + 1];  // a text

/* A line, which goes out in one piece where the board can do that. */
__attribute__((format(printf, 1, 2)))
static void report(const char *format, ...)
{
    char line[48];
    va_list args;

    va_start(args, format);
    vsnprintf(line, sizeof line - sizeof " .\n", format, args);
    va_end(args);
    board_text(strcat(line, " .\n"));
}

static void wrong(unsigned number, int result)
{
    report("wrong %u %d", number, result);
}

/* ----------------------------------------------------------------- commands */

static idem_claim claim;
static idem_reply reply;

static idem_request request_of(unsigned number, const char *payload)
{
    static char key[KEY_LEN];
    idem_request request = { .scope = "p", .scope_len = 1, .key = key,
                             .key_len = sizeof key, .payload = payload,
                             .payload_len = 1 };

    key[0] = (char)('0' + number % 64);
    key[1] = (char)('0' + number / 64 % 64);
    key[2] = (char)('0' + number / 64 / 64);
    return request;
}

static void stop_if_failed(unsigned number, int result)
{
    if (result != IDEM_E_STORAGE && result != IDEM_E_SPACE)
        return;
    report("error %u %d", number, result);
    board_exit(3);
}

static int begin(unsigned number, const char *payload)
{
    idem_request request = request_of(number, payload);
    int result;

    request.buffer = response;
    request.buffer_size = RESPONSE_MAX;
    now += 10;
    result = idem_begin(&table, &claim, &reply, &request, now);
    stop_if_failed(number, result);
    return result;
}

/* Writes when and how a command was done, in 3 to RESPONSE_MAX bytes. */
static size_t respond(unsigned number, int recovered)
{
    uint32_t boot = board_argument(1);
    size_t len = 0;

    memset(response, 0, sizeof response);
    response[len++] = recovered ? 'r' : 'x';
    response[len++] = (char)('a' + boot % 26);
    response[len++] = (char)('a' + number % 26);
    while (len < 3 + number % (RESPONSE_MAX - 2))
        response[len++] = '-';
    return len;
}

static void complete(unsigned number, int recovered)
{
    uint32_t state = number + 1;
    idem_outcome outcome = { .response = response, .state = &state,
                             .state_len = STATE_MAX };
    int result;

    outcome.response_len = respond(number, recovered);
    report("complete %u %s", number, response);
    now += 10;
    result = idem_complete(&table, &claim, &outcome, now);
    stop_if_failed(number, result);
    if (result != IDEM_OK)
        wrong(number, result);
    report("done %u %s", number, response);
}

/* A transient failure: the command is given back, and has had no effect. */
static void release(unsigned number)
{
    int result;

    report("claimed %u", number);
    report("release %u", number);
    now += 10;
    result = idem_release(&table, &claim, now);
    stop_if_failed(number, result);
    if (result != IDEM_OK)
        wrong(number, result);
    report("released %u", number);
}

static void on_command(unsigned number, int fails)
{
    int result;

    report("begin %u", number);
    result = begin(number, "+");
#ifdef INJECT_AGAIN
    if (result == IDEM_RECOVER)
        result = IDEM_EXECUTE;
#endif
    if (result == IDEM_EXECUTE && fails) {
        release(number);
    } else if (result == IDEM_EXECUTE) {
        report("execute %u", number);
        complete(number, 0);
    } else if (result == IDEM_RECOVER) {
        report("recover %u", number);
        complete(number, 1);
    } else if (result == IDEM_REPLAY) {
        response[reply.response_len] = 0;
        report("replay %u %s", number, response);
    } else {
        wrong(number, result);
    }
}

/* The sender has the answer and will not ask again. */
static void forget(unsigned number)
{
    idem_request request = request_of(number, "");
    int result;

    report("forget %u", number);
    now += 10;
    result = idem_forget(&table, &request, now);
    stop_if_failed(number, result);
    if (result != IDEM_OK && result != IDEM_E_NOT_FOUND)
        wrong(number, result);
    report("forgot %u", number);
}

static void rest(void)
{
    int result;

    report("maintain");
    now += 10;
    do
        result = idem_maintain(&table, now);
    while (result == IDEM_MORE);
    stop_if_failed(0, result);
    if (result != IDEM_OK)
        wrong(0, result);
    report("maintained");
}

/* Everything that comes with one command: it fails at first, comes twice, its
   key is used for something else, idle time follows. */
static void serve(unsigned number)
{
    int result;

    if (number % 5 == 4)
        on_command(number, 1);
    on_command(number, 0);
    on_command(number, 0);
    if (number % 7 == 3 && (result = begin(number, "-")) != IDEM_MISMATCH)
        wrong(number, result);
    if (number >= AGAIN)
        forget(number - AGAIN);
    if (number % 3 == 2)
        rest();
}

#ifdef INJECT_LATE
/* A driver that returns before its program has begun */
static uint32_t late_at, late_len;
static uint8_t late[512];

static int prog_late(void *ctx, uint32_t at, const void *src, uint32_t len)
{
    int result = late_len ? medium.prog(ctx, late_at, late, late_len) : 0;

    late_at = at;
    late_len = len;
    memcpy(late, src, len);
    return result;
}

static int read_late(void *ctx, uint32_t at, void *dst, uint32_t len)
{
    uint32_t i;
    int result = medium.read(ctx, at, dst, len);

    for (i = 0; i < len; i++)
        if (at + i - late_at < late_len)
            ((uint8_t *)dst)[i] = late[at + i - late_at];
    return result;
}
#endif

static void insert(void)
{
    medium_start();
    storage = medium;
#ifdef INJECT_LATE
    storage.prog = prog_late;
    storage.read = read_late;
#endif
}

static void open_table(void)
{
    uint32_t state = 0;                     // commands, done in order
    size_t len = STATE_MAX;
    int result;

    report("open");
    now = board_argument(1) * 1000003u;
#ifdef INJECT_BLANK
    result = idem_format(&table, &config, memory, sizeof memory, now);
    if (result != IDEM_OK)
        wrong((unsigned)table.needed, result);
#endif
    result = idem_open(&table, &config, memory, sizeof memory, now);
    stop_if_failed(0, result);
    if (result != IDEM_OK)
        wrong((unsigned)table.needed, result);
    idem_state(&table, &state, &len);
    report("opened %u %u", (unsigned)state, (unsigned)table.stats.lost);
}

int program(void)
{
    unsigned from = (unsigned)board_argument(0);
    unsigned count = (unsigned)board_argument(2);

    insert();
    open_table();
    if (from > AGAIN)
        forget(from - AGAIN - 1);
    for (unsigned i = from > AGAIN ? from - AGAIN : 0; i < from; i++)
        on_command(i, 0);
    for (unsigned i = from; i < (count ? from + count : COMMANDS); i++)
        serve(i);
    report("end");
    return 0;
}
