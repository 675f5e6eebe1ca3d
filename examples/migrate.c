/* SPDX-License-Identifier: 0BSD */
/* cc -I.. migrate.c -o migrate
 * ./migrate pump.journal 64,32,32,0,4096 new.journal 256,32,64,0,8192
 * (a sixth number: senders, if the device's configuration has some)
 *
 * Copies a journal's file into a new one of another geometry: every key with
 * its fingerprint; if finished, its response, code, what is left of its
 * retention, whether it is undelivered; if interrupted, its attempts; and the
 * application state.  Ages start anew.  The old file is not changed: when this
 * has succeeded, put the new one in its place; the secret stays.
 *
 * Replay windows of senders are not copied, nor how far back evictions reach:
 * it says so.  A journal that has lost records is refused as long as unknown
 * keys may be lost ones: to the new one they would be new.
 *
 * Uses the public interface alone, so it copies between flash and a file
 * likewise: give copy_journal two tables of your own.  Both need the same
 * secret and IDEM_HASH: what is kept of a payload is its hash with these.
 */
#define _POSIX_C_SOURCE 200809L
#define IDEM_FILE_STORAGE
#define IDEM_IMPLEMENTATION
#include "idem.h"
#include "secret.h"
#include <stdlib.h>

static const char help[] =
    "migrate OLD GEOMETRY NEW GEOMETRY [SECRET-FILE]\n"
    "copies a journal into a new file\n\n"
    "  GEOMETRY is capacity,key_max,response_max,state_max,sector_size and,\n"
    "  if there are any, ,senders\n"
    "  SECRET-FILE has the 16 bytes of both; it is OLD.secret if not given\n";

/* A journal in a file */
typedef struct journal {
    const char *path;
    idem_file   file;
    idem_config config;
    idem_table  table;
} journal;

/* A key, with room for scope and key */
typedef struct key {
    idem_entry entry;
    unsigned char id[UINT8_MAX];
} key;

static uint32_t now_ms;         // time goes on only where a lease is to end

static void *allocate(size_t size)
{
    void *memory = malloc(size ? size : 1);

    if (!memory) {
        fprintf(stderr, "migrate: memory: %s\n", strerror(errno));
        exit(1);
    }
    return memory;
}

/* ---------------------------------------------------------------------------
   copying
   ------------------------------------------------------------------------ */

/* In the order in which they are to be begun: the oldest completion first, as
   it is to be evicted and delivered; interrupted keys last.  Of numbers the
   older epoch first: after a newer one it would be refused. */
static int compare(const void *a, const void *b)
{
    const idem_entry *x = &((const key *)a)->entry;
    const idem_entry *y = &((const key *)b)->entry;
    int x_open = x->status == IDEM_IN_PROGRESS;
    int y_open = y->status == IDEM_IN_PROGRESS;

    if (x_open != y_open)
        return x_open - y_open;
    if (x->age_ms != y->age_ms)
        return x->age_ms < y->age_ms ? 1 : -1;
    return (x->epoch > y->epoch) - (x->epoch < y->epoch);
}

/* All keys of a table; their number. */
static size_t list_keys(key **keys, idem_table *from)
{
    idem_entry entry;
    size_t count = 0;
    unsigned char id[UINT8_MAX];

    memset(&entry, 0, sizeof entry);
    entry.id = id;
    entry.id_size = sizeof id;
    *keys = (key *)allocate(from->used * sizeof **keys);
    while (idem_next(from, &entry, now_ms) == IDEM_OK) {
        (*keys)[count].entry = entry;
        memcpy((*keys)[count].id, id, sizeof id);
        count++;
    }
    qsort(*keys, count, sizeof **keys, compare);
    return count;
}

static idem_request request_of(const key *k)
{
    idem_request request;

    memset(&request, 0, sizeof request);
    request.scope = k->id;
    request.scope_len = k->entry.scope_len;
    request.key = k->id + k->entry.scope_len;
    request.key_len = k->entry.key_len;
    request.epoch = k->entry.epoch;             // of a number, which is no key
    request.sequence = k->entry.sequence;
    request.fingerprint = k->entry.fingerprint;
    request.has_fingerprint = 1;
    return request;
}

static int copy_finished(idem_table *to, idem_table *from, const key *k)
{
    idem_request request = request_of(k);
    size_t len = k->entry.response_len;
    void *response = allocate(len);
    idem_outcome outcome;
    idem_reply reply;
    idem_claim claim;
    int result;

    if (len > UINT16_MAX || k->entry.left_ms == 0) {
        free(response);
        return len > UINT16_MAX ? IDEM_E_TOO_LARGE : IDEM_OK;
    }
    memset(&outcome, 0, sizeof outcome);
    outcome.response = response;
    outcome.code = k->entry.code;
    outcome.failed = k->entry.status == IDEM_FAILED;
    outcome.confirm = k->entry.undelivered != 0;
    request.retention_ms = k->entry.left_ms;
    request.response_size = (uint16_t)len;
    result = idem_response(from, response, &len, &k->entry.claim, 0);
    outcome.response_len = len;
    if (result == IDEM_OK)
        result = idem_begin(to, &claim, &reply, &request, now_ms);
    if (result >= 0)
        result = idem_complete(to, &claim, &outcome, now_ms);
    free(response);
    return result;
}

/* Claims it as often as it was claimed, with leases that are over. */
static int copy_interrupted(idem_table *to, const key *k)
{
    idem_request request = request_of(k);
    idem_reply reply;
    idem_claim claim;
    uint32_t i;
    int result = IDEM_OK;

    request.lease_ms = 1;
    for (i = 0; i < k->entry.attempts && result >= 0; i++, now_ms += 2)
        result = idem_begin(to, &claim, &reply, &request, now_ms);
    return result;
}

/* The state comes with a completion, here that of a key which is none of the
   journal's: of scope and key one byte each. */
static int copy_state(idem_table *to, idem_table *from, size_t size)
{
    idem_request request = { .scope = "", .scope_len = 1, .key = "",
                             .key_len = 1 };
    idem_outcome outcome;
    idem_reply reply;
    idem_claim claim;
    void *state = allocate(size);
    int result;

    memset(&outcome, 0, sizeof outcome);
    result = idem_state(from, state, &size);
    outcome.state = state;
    outcome.state_len = size;
    if (result == IDEM_OK && size) {
        result = idem_begin(to, &claim, &reply, &request, now_ms);
        if (result >= 0)
            result = idem_complete(to, &claim, &outcome, now_ms);
        if (result >= 0)
            result = idem_forget(to, &request, now_ms);
    }
    free(state);
    return result;
}

/* Copies all there is into a table that has no key; how it ended, as
   idem_complete, and how many keys.  IDEM_UNCERTAIN: nothing was copied, as
   unknown keys may be lost ones. */
static int copy_journal(idem_table *to, idem_table *from, size_t *copied)
{
    key *keys;
    size_t count;
    uint32_t left_ms;
    int result = idem_uncertain(from, &left_ms, now_ms);

    *copied = 0;
    if (result < 0 || left_ms)
        return result < 0 ? result : IDEM_UNCERTAIN;
    count = list_keys(&keys, from);
    result = copy_state(to, from, from->config->state_max);
    for (*copied = 0; *copied < count && result >= 0; ++*copied)
        result = keys[*copied].entry.status == IDEM_IN_PROGRESS
                     ? copy_interrupted(to, &keys[*copied])
                     : copy_finished(to, from, &keys[*copied]);
    free(keys);
    return result < 0 ? result : IDEM_OK;
}

/* ---------------------------------------------------------------------------
   the two files
   ------------------------------------------------------------------------ */

/* False if the text is no geometry. */
static int parse(journal *j, uint32_t *sector_size, const char *text)
{
    unsigned capacity, key_max, response_max, state_max, sector, senders = 0;

    if (sscanf(text, "%u,%u,%u,%u,%u,%u", &capacity, &key_max, &response_max,
               &state_max, &sector, &senders) < 5 ||
        key_max > UINT8_MAX || response_max > UINT16_MAX ||
        state_max > UINT16_MAX)
        return 0;
    j->config.capacity = capacity;
    j->config.key_max = (uint16_t)key_max;
    j->config.response_max = (uint16_t)response_max;
    j->config.state_max = (uint16_t)state_max;
    j->config.senders = senders;
    j->config.retention_ms = 24 * 60 * 60 * 1000;
    j->config.max_attempts = UINT8_MAX;
    *sector_size = sector;
    return 1;
}

/* True if it is open; if not, prints why. */
static int open_journal(journal *j, const char *path, const char *geometry,
                        const uint8_t *secret)
{
    size_t size;
    uint32_t sector;
    int result;

    if (!parse(j, &sector, geometry)) {
        fprintf(stderr, "migrate: %s: no geometry\n%s", geometry, help);
        return 0;
    }
    memcpy(j->config.secret, secret, sizeof j->config.secret);
    j->path = path;
    result = idem_file_open(&j->file, path, sector,
                            IDEM_SECTORS(j->config.capacity + j->config.senders,
                                         j->config.key_max,
                                         j->config.response_max,
                                         j->config.state_max, sector, 1));
    if (result != IDEM_OK) {
        reason_print_file(path, result, &j->file);
        return 0;
    }
    j->config.storage = &j->file.storage;
    size = IDEM_JOURNAL_MEMORY_SIZE(j->config.capacity, j->config.key_max,
                                    j->config.response_max,
                                    j->config.state_max, 1) +
           IDEM_SENDERS_MEMORY_SIZE(j->config.senders);
    result = idem_open(&j->table, &j->config, allocate(size), size, now_ms);
    if (result != IDEM_OK)
        reason_print(path, result, &j->table, &j->config);
    return result == IDEM_OK;
}

/* Prints what the new journal does not know. */
static void warn(journal *from)
{
    uint32_t reach_ms;

    if (from->config.senders)
        fprintf(stderr, "%s: the replay windows of senders are not copied: let "
                "each begin a new epoch\n", from->path);
    if (idem_horizon(&from->table, &reach_ms, now_ms) == IDEM_OK &&
        reach_ms < from->config.retention_ms)
        fprintf(stderr, "%s: what was completed more than %lu s ago may have "
                "been evicted: it will be new\n", from->path,
                (unsigned long)(reach_ms / 1000));
}

static int copy(journal *to, journal *from)
{
    size_t copied;
    int result = copy_journal(&to->table, &from->table, &copied);

    if (result == IDEM_UNCERTAIN) {
        fprintf(stderr, "%s: records were lost, so unknown keys may have been "
                "executed: go on with it for one retention, then copy it\n",
                from->path);
        return 1;
    }
    if (result < 0) {
        fprintf(stderr, "key %lu of the old: ", (unsigned long)copied);
        reason_print(to->path, result, &to->table, &to->config);
        return 1;
    }
    printf("%lu keys copied\n", (unsigned long)copied);
    warn(from);
    result = idem_file_close(&to->file);
    if (result != IDEM_OK)
        reason_print_file(to->path, IDEM_E_STORAGE, &to->file);
    return result != IDEM_OK;
}

int main(int argc, char **argv)
{
    static journal from, to;
    uint8_t secret[SECRET_SIZE];
    char beside[SECRET_PATH];

    if (argc != 5 && argc != 6) {
        int asked = argc == 2 && strcmp(argv[1], "--help") == 0;
        fputs(help, asked ? stdout : stderr);
        return asked ? 0 : 2;
    }
    if (access(argv[1], F_OK) != 0)     // opening it would make it
        return !secret_wrong(argv[1], strerror(errno));
    if (!secret_path(beside, argv[1], ".secret") ||
        !secret_read(secret, argc == 6 ? argv[5] : beside) ||
        !open_journal(&from, argv[1], argv[2], secret) ||
        !open_journal(&to, argv[3], argv[4], secret))
        return 1;
    if (to.table.used || to.table.stats.lost) {
        fprintf(stderr, "migrate: %s: not a new journal\n", argv[3]);
        return 1;
    }
    return copy(&to, &from);
}
