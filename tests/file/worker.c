/* SPDX-License-Identifier: 0BSD */
/*
 * A device that executes commands with its journal in a file, to be killed at
 * any instant and started again; file.sh does that.
 *
 *     file_worker                         say how long the file is
 *     file_worker open FILE               open, say what came of it, close
 *     file_worker hold FILE               the same, but wait for stdin's end
 *     file_worker work FILE LEDGER COUNT  execute so many commands
 *     file_worker check FILE LEDGER       ask for all recent keys once more
 *
 * Every event is appended to the ledger, durably, before the next begins: it is
 * the outside world, and what a sender was told.  Each start reads it, and
 * every event, old or new, must be one that the events before it allow:
 *
 *     B key           idem_begin is called
 *     E key           it answered IDEM_EXECUTE: the first such answer
 *     R key           IDEM_RECOVER: there was a B before this one, and no A
 *     X key           the effect; after an E, or if an R found no X
 *     C key response  idem_complete is called
 *     A key           it answered IDEM_OK: from now on every answer is a P
 *     P key response  IDEM_REPLAY, with the bytes of the last C
 *     S key           IDEM_E_STORAGE
 *
 * Exit status: 0 done, 1 a promise was broken, 2 IDEM_E_LOCK when opening the
 * file, 3 refused otherwise, or the storage failed: start again.
 */
#define _POSIX_C_SOURCE 200809L
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define IDEM_FILE_STORAGE
#define IDEM_IMPLEMENTATION
#include "idem.h"

// The ring goes round every few dozen commands.  Keys are asked for again until
// RECENT others have come, which is long before a retention is over.
enum { CAPACITY = 64, KEY_MAX = 16, RESPONSE_MAX = 40, SECTOR = 1024 };
enum { SECTORS = IDEM_SECTORS(CAPACITY, KEY_MAX, RESPONSE_MAX, 0, SECTOR, 1) };
enum { RETENTION = 40, RECENT = 8, KEYS_MAX = 1000000 };

enum { DONE = 0, BROKEN = 1, BUSY = 2, REFUSED = 3 };

/* What the ledger tells of a key. */
struct key {
    unsigned begun;
    unsigned char granted, effects, completed;
    char response[RESPONSE_MAX];
};

static struct key keys[KEYS_MAX];
static unsigned key_count;
static unsigned serial;
static int ledger;
static idem_file file;
static idem_table table;
static uint32_t now;

static const idem_config config = {
    .capacity = CAPACITY, .key_max = KEY_MAX, .response_max = RESPONSE_MAX,
    .secret = "sixteen secrets", .storage = &file.storage,
    .retention_ms = RETENTION, .max_attempts = 255
};

static void broken(const char *what, unsigned key)
{
    printf("BROKEN: key %u: %s\n", key, what);
    exit(BROKEN);
}

/* ---------------------------------------------------------------------------
   the ledger
   ------------------------------------------------------------------------ */

/* Takes note of an event, or says that it must not have happened. */
static void note(char event, unsigned key, const char *response)
{
    struct key *k = &keys[key];

    if (key >= KEYS_MAX)
        broken("the ledger is nonsense", key);
    if (key >= key_count)
        key_count = key + 1;
    if (k->completed && !strchr("BPS", event))
        broken("an outcome that was reported is forgotten", key);
    switch (event) {
    case 'B':
        k->begun++;
        break;
    case 'E':
        if (k->granted)
            broken("IDEM_EXECUTE twice", key);
        k->granted = 1;
        break;
    case 'R':
        if (k->begun < 2)
            broken("IDEM_RECOVER for a new key", key);
        k->granted = 1;
        break;
    case 'X':
        if (k->effects++)
            broken("executed twice", key);
        break;
    case 'C':
        (void)snprintf(k->response, sizeof k->response, "%s", response);
        break;
    case 'A':
        k->completed = 1;
        break;
    case 'P':
        if (!k->response[0] || strcmp(k->response, response))
            broken("another response than was stored", key);
        break;
    case 'S':
        break;
    default:
        broken("the ledger is nonsense", key);
    }
}

/* Something happens, and is known to have happened whatever comes. */
static void happen(char event, unsigned key, const char *response)
{
    char line[RESPONSE_MAX + 32];
    int len = snprintf(line, sizeof line, "%c %u %s\n", event, key, response);

    if (write(ledger, line, (size_t)len) != len || fsync(ledger) < 0)
        exit(REFUSED);
    note(event, key, response);
}

static void ledger_open(const char *path)
{
    char line[RESPONSE_MAX + 32];
    FILE *in = fopen(path, "r");

    while (in && fgets(line, sizeof line, in)) {
        char event, response[RESPONSE_MAX] = "";
        unsigned key;

        if (sscanf(line, "%c %u %39s", &event, &key, response) < 2)
            broken("the ledger is nonsense", 0);
        note(event, key, response);
        serial++;
    }
    if (in)
        (void)fclose(in);
    ledger = open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);
    if (ledger < 0)
        exit(REFUSED);
}

/* ---------------------------------------------------------------------------
   the device
   ------------------------------------------------------------------------ */

static void give_up(unsigned key)
{
    happen('S', key, "");
    exit(REFUSED);
}

/* Completes what was claimed; the storage may fail once. */
static void complete(const idem_claim *claim, unsigned key)
{
    idem_outcome outcome = { .code = (int32_t)key };
    char response[RESPONSE_MAX];
    int result = IDEM_E_STORAGE, tries;

    // Of any length, and never the same twice
    serial++;
    outcome.response_len =
        (size_t)snprintf(response, sizeof response, "%u.%.*s", serial,
                         (int)(serial % 24), "abcdefghijklmnopqrstuvwx");
    outcome.response = response;
    happen('C', key, response);
    for (tries = 0; tries < 2 && result == IDEM_E_STORAGE; tries++)
        result = idem_complete(&table, claim, &outcome, now);
    if (result == IDEM_E_STORAGE)
        give_up(key);
    if (result != IDEM_OK)
        broken(idem_text(result), key);
    happen('A', key, "");
}

/* A command arrives. */
static void command(unsigned key)
{
    char id[16], response[RESPONSE_MAX + 1] = "";
    idem_reply reply = { .buffer = response, .buffer_size = RESPONSE_MAX };
    idem_request rq = { .scope = "s", .scope_len = 1, .key = id };
    idem_claim claim;
    int answer = IDEM_E_STORAGE, tries;

    rq.key_len = (size_t)snprintf(id, sizeof id, "%u", key);
    rq.payload = id;
    rq.payload_len = rq.key_len;
    // Time passes with each key that is new, or was lost on its way: so that
    // it is known how many are remembered.
    now += !keys[key].granted;
    happen('B', key, "");
    for (tries = 0; tries < 2 && answer == IDEM_E_STORAGE; tries++)
        answer = idem_begin(&table, &claim, &reply, &rq, now);
    switch (answer) {
    case IDEM_EXECUTE:
        happen('E', key, "");
        happen('X', key, "");
        complete(&claim, key);
        break;
    case IDEM_RECOVER:
        happen('R', key, "");
        if (!keys[key].effects)         // looks at the world
            happen('X', key, "");
        complete(&claim, key);
        break;
    case IDEM_REPLAY:
        happen('P', key, response);
        break;
    case IDEM_E_STORAGE:
    case IDEM_E_SPACE:          // writing failed in too many places by now
        give_up(key);
        break;
    default:
        broken(idem_text(answer), key);
    }
}

/* Opens the file; leaves if that is refused. */
static void open_file(const char *path)
{
    int result = idem_file_open(&file, path, SECTOR, SECTORS);

    printf("%d %s%s%s\n", result, idem_text(result), file.error ? ": " : "",
           file.error ? strerror(file.error) : "");
    (void)fflush(stdout);
    if (result == IDEM_E_LOCK)
        exit(BUSY);
    if (result < 0)
        exit(REFUSED);
}

static void open_table(void)
{
    static uint32_t memory[4096];
    int result = idem_open(&table, &config, memory, sizeof memory, now);

    if (result == IDEM_E_STORAGE)
        exit(REFUSED);
    if (result < 0)
        broken(idem_text(result), (unsigned)table.needed);
    if (table.stats.lost)
        broken("something counts as lost", 0);
}

int main(int argc, char **argv)
{
    const char *mode = argc > 2 ? argv[1] : "";
    unsigned i, count = argc > 4 ? (unsigned)atoi(argv[4]) : 0;

    if (argc == 1)
        return printf("%d\n", SECTOR * SECTORS) < 0;

    if (!strcmp(mode, "open") || !strcmp(mode, "hold")) {
        open_file(argv[2]);
        while (mode[0] == 'h' && getchar() != EOF)
            ;
        return idem_file_close(&file) == IDEM_OK ? DONE : REFUSED;
    }
    if (argc < 4)
        return REFUSED;
    open_file(argv[2]);                 // its lock is the ledger's, too
    ledger_open(argv[3]);
    open_table();
    i = key_count > RECENT ? key_count - RECENT : 0;
    while (!strcmp(mode, "check") && i < key_count)
        command(i++);
    for (i = 0; i < count; i++) {
        unsigned back = 1 + serial % RECENT;

        command(i % 2 == 0 ? key_count :
                key_count > back ? key_count - back : 0);
        if (i % 5 == 4 && idem_maintain(&table, now) == IDEM_E_STORAGE)
            give_up(0);
    }
    if (table.storage_error)
        printf("in between: %s\n", strerror(table.storage_error));
    return idem_file_close(&file) == IDEM_OK ? DONE : REFUSED;
}
