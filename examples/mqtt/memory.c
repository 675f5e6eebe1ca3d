/* SPDX-License-Identifier: 0BSD */
/* The memory of pumpd: a journal that has the commands, the total, and the mark
   of its pump's log.  Journal and log are opened here, both or neither. */
#define _GNU_SOURCE 1           // Linux: a sync takes less
#define _POSIX_C_SOURCE 200809L
#define IDEM_IMPLEMENTATION
#include "pumpd.h"
#include "../secret.h"

// A sender that has used up its quota shuts out nobody else.
enum { SENDERS = 8, QUOTA_KEYS = 250, CAPACITY = SENDERS * QUOTA_KEYS };
enum { SECTOR = 65536, STATE_MAX = sizeof(pumpd_state) };
enum {
    SECTORS = IDEM_SECTORS(CAPACITY + SENDERS, KEY_MAX, RESPONSE_MAX, STATE_MAX,
                           SECTOR, 1)
};
typedef char sectors_too_small[SECTORS > 0 ? 1 : -1];

void pumpd_need(const pumpd *d, int result)
{
    if (result >= 0)
        return;
    fputs("pumpd: ", stderr);
    reason_print(d->journal, result, &d->table, &d->config);
    exit(1);
}

/* Commits the state with a command that is nobody's, and is forgotten.  If
   there is no room for it, the next outcome has the state; a start before that
   does all this once more. */
static void commit_state(pumpd *d)
{
    idem_request request = { .key = "state", .key_len = 5 };
    idem_outcome outcome = { .state = &d->state, .state_len = sizeof d->state };
    idem_reply reply;
    idem_claim claim;
    uint32_t now = pumpd_millis();
    int result;

    // What a start that was killed here has left
    (void)idem_forget(&d->table, &request, now);
    result = idem_begin(&d->table, &claim, &reply, &request, now);
    if (result == IDEM_E_FULL)
        return;
    pumpd_need(d, result);
    pumpd_need(d, idem_complete(&d->table, &claim, &outcome, now));
    pumpd_need(d, idem_forget(&d->table, &request, now));
}

/* Ends what was interrupted: the log in which it may have begun is not there,
   so nobody knows what was poured. */
static void give_up_interrupted(pumpd *d)
{
    char id[KEY_MAX];
    idem_info info = { .id = id, .id_size = sizeof id };
    idem_outcome outcome = { .failed = 1 };
    idem_reply reply;
    idem_claim claim;
    uint32_t now = pumpd_millis();

    pumpd_end(&outcome, SPECIFIC, "check the cup");
    while (idem_next(&d->table, &info, now) == IDEM_OK) {
        idem_request request = {
            .scope = id, .scope_len = info.scope_len,
            .key = id + info.scope_len, .key_len = info.key_len,
            .fingerprint = info.fingerprint, .has_fingerprint = 1 };

        int result = IDEM_EXHAUSTED;

        if (info.status == IDEM_IN_PROGRESS)
            result = idem_begin(&d->table, &claim, &reply, &request, now);
        pumpd_need(d, result);
        if (result != IDEM_EXHAUSTED)
            pumpd_need(d, idem_complete(&d->table, &claim, &outcome, now));
    }
}

/* Opens the pump's log, and checks that it is the one that the journal
   knows, or that nobody relies on its contents. */
static void open_pump(pumpd *d, size_t state_len)
{
    int is_first = state_len == 0 && d->table.stats.lost == 0;

    if (pump_open(&d->pump, d->log) != 0)
        pumpd_die(d->log, d->pump.why);
    if (d->no_idem)
        return;
    if (is_first && !pump_is_new(&d->pump))
        pumpd_die(d->log, "has commands, but the journal is new: restore the "
                          "journal and its secret, or begin another log too");
    d->log_is_whole = is_first || d->state.log_is_whole;
    if (state_len == sizeof d->state && pump_has(&d->pump, &d->state.log))
        return;
    if (!is_first) {
        fprintf(stderr, "pumpd: %s: not the log that was there before, or "
                "truncated: interrupted commands are recorded as failed\n",
                d->log);
        give_up_interrupted(d);
        d->log_is_whole = 0;
    }
    d->state.log_is_whole = d->log_is_whole;
    d->state.log = d->pump.mark;
    commit_state(d);
}

/* Returns the length of the state that is there. */
static size_t open_journal(pumpd *d)
{
    size_t len = sizeof d->state, size;

    d->config.capacity = CAPACITY;
    d->config.key_max = KEY_MAX;
    d->config.response_max = RESPONSE_MAX;
    d->config.state_max = STATE_MAX;
    d->config.retention_ms = RETENTION_S * UINT32_C(1000);
    // Nobody else takes over.  A lease that ends, and a retention after it,
    // would have ended for a daemon that is suspended for long while it pours.
    d->config.lease_ms = IDEM_LEASE_NONE;
    d->config.max_attempts = 255;       // each is looked up in the log first
    d->config.senders = SENDERS;
    d->config.quota = QUOTA_KEYS;
    if (secret_open_file(&d->config, &d->file, d->journal, SECTOR, SECTORS) !=
        IDEM_OK)
        exit(1);
    size = idem_memory_size(&d->config);
    d->memory = malloc(size);
    pumpd_need(d, idem_open(&d->table, &d->config, d->memory, size,
                            pumpd_millis()));
    pumpd_need(d, idem_state(&d->table, &d->state, &len));
    return len;
}

void pumpd_open(pumpd *d)
{
    open_pump(d, d->no_idem ? 0 : open_journal(d));
}
