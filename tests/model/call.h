/* SPDX-License-Identifier: 0BSD */
/*
 * Makes a call (words.h) on a device (device.h).  Random calls (chance.h) and
 * the calls of a line use the same struct, and one model judges them.  With
 * tracing each call is printed as the word that makes it.  A device has the
 * words of words.h, and these:
 *
 *     na      the sender of a is forgotten
 *     da      delivered, by its claim if that is known; D takes a pending one
 *     Aa      the calls that finish a from any state, then duplicates of it
 *     ga      read its response: at most
 *     s o a ? look at the state; at undelivered ones, delivering each n-th; at
 *             all keys; at all that can be looked at
 *     M m Y   idle work until there is no more; one step of it; sync
 *     E       a lease, or n, is added by idem_elapse
 *     H P     a call with the time alone; a restart between two calls: n
 *     K9 J9   nine times: claim and release, or complete and forget, the last
 *             key; the same, each time after a restart
 *     rotate2 the same until two sectors were begun, or rings: n
 *     lost1   stats.lost is that number
 *     +       modes, from the next opening on: "+senders=2 P"
 *     ! fn ja all old claims are fenced; the n-th is; a's claim, forged (how),
 *             is
 *     e v     a mistake of the caller, the n-th; the table is moved
 *     |       the operations that the test examines begin here
 *     cut2 fail1 works    the power goes in the second operation from now: tear;
 *             the callback 1 fails: at how forever; none fails any more
 *
 * Before each word but lost `ms` pass, in a line 1.  After a colon is the
 * answer that it must get: "Ba:execute Ca:ok Ba:replay".  A word without one
 * may get any answer that the model allows; on a device that was damaged, or
 * that evicts and has fewer entries than senders, it must get execute or ok.
 */
#ifndef CALL_H
#define CALL_H

#include "device.h"

/* Prints a call as it would be read. */
static inline void call_trace(const call *c)
{
    call shown = *c, read = call_of(c->what, 0);
    int is_letter = c->key < 26 && !strchr("KJf", c->what);
    char letter[2] = { c->what, 0 };
    const char *name = letter;

    read.ms = c->what > FULL;
    for (size_t i = 0; i < COUNT(call_names); i++)
        if (call_names[i].what == c->what)
            name = call_names[i].name;
    is_letter &= name == letter;
    trace(is_letter ? "%s%c" : "%s%u", name,
          is_letter ? 'a' + c->key : c->key);
    for (size_t i = 0; i < COUNT(fields); i++) {
        uint32_t value = *call_field(&shown, i);
        if (value == *call_field(&read, i))
            continue;
        trace(value == fields[i].alone ? ",%s" : ",%s=%u", fields[i].name,
              value);
    }
    trace("\n");
}

#define MODE(field) offsetof(device, field), sizeof((device *)0)->field, 1, 0

// The words that a line begins with.
static const setting mode_words[] = {
    { "batch", MODE(config.durability), "" },
    { "evict", MODE(config.full), "" },
    { "ram", MODE(in_ram), "" },
    { "capacity", MODE(config.capacity), "" },
    { "key", MODE(config.key_max), "" },
    { "response", MODE(config.response_max), "" },
    { "state", MODE(config.state_max), "" },
    { "attempts", MODE(config.max_attempts), "" },
    { "lease", MODE(config.lease_ms), "" },         // the default
    { "retention", MODE(config.retention_ms), "" },
    { "senders", MODE(config.senders), "" },
    { "quota", MODE(config.quota), "" },
    { "keys", MODE(keys), "" },
    { "scopes", MODE(scopes), "" },
    { "kind", MODE(medium.kind), "" },
    { "size", MODE(storage.sector_size), "" },
    { "sectors", MODE(storage.sector_count), "" },  // or more, if it takes more
    { "granule", MODE(storage.prog_size), "" },
    { "erased", MODE(storage.erased), "" },
    { "verify", MODE(storage.verify), "" },
    { "polls", MODE(polls), "" },
    // How many numbers an epoch has: all keys are numbers, but for the last of
    // each scope; or all of the one scope; or of one, another has the rest.
    { "most", MODE(per_epoch), "all" },
    { "all", MODE(most_number), "" },
    { "numbers", MODE(per_epoch), "first senders=2 scopes=1 key=8" },
    { "beside", MODE(per_epoch), "first senders=2 scopes=2 key=9" },
    { "first", MODE(first_numbers), "" },
};

/* Takes the modes that a line begins with, "batch capacity=3"; returns the rest
   of the line. */
static inline const char *call_modes(device *d, const char *line)
{
    const setting *mode;

    do {
        line += strspn(line, " ");
        mode = call_read_setting(mode_words, COUNT(mode_words), d, &line,
                                 d->pick);
        if (mode)
            call_modes(d, mode->also);
    } while (mode);
    if (d->in_ram)
        d->config.storage = NULL;
    return line;
}

/* ------------------------------------------------------- >>making  of calls */

/* What a request has beside key and payload. */
static inline idem_request call_request(const call *c)
{
    return (idem_request){ .lease_ms = c->lease, .retention_ms = c->retention,
                           .age_ms = c->age,
                           .response_size = (uint16_t)c->reserve };
}

static inline int call_begin(device *d, const call *c)
{
    idem_request more = call_request(c);
    idem_claim claim;
    uint32_t failed = 0;
    int result;

    d->buffer_size = c->buffer;
    // A torn write that reads blank may make a program fail: the next sector is
    // next.
    do {
        d->now += failed > 0;
        result = device_begin(d, &claim, c->key, c->payload, &more);
    } while (result == IDEM_E_STORAGE && d->blank && !d->medium.off &&
             !d->model.faulty && ++failed < d->medium.sector_count);
    return result;
}

/* The bytes that the storage has of the claim that was granted last. */
static inline const uint8_t *call_echo(const device *d)
{
    const flash *f = &d->medium;
    uint64_t sequence = d->model.token / f->sector_size;

    return f->bytes + sequence % f->sector_count * f->sector_size +
           d->model.token % f->sector_size;
}

/* The outcome of a call: another with each number. */
static inline idem_outcome call_outcome(const device *d, const call *c)
{
    uint16_t response = d->config.response_max, state = d->config.state_max;
    uint32_t nth = d->number + 1;
    idem_outcome how = { 0 };

    how.response_len = c->len == AUTO ? 1 + nth % (response < 4 ? response : 4)
                                      : c->len;
    how.code = (int32_t)(c->code == AUTO ? nth * 65537 : c->code);
    how.failed = c->failed != 0;
    how.confirm = c->confirm != 0;
    if (c->echo) {
        how.response = call_echo(d);
        how.response_len = response;
    }
    if (c->state != NONE && state) {
        how.state = "";
        how.state_len = c->state == AUTO ? 1 + nth % state : c->state;
    }
    return how;
}

static inline int call_complete(device *d, const call *c,
                                const idem_claim *claims)
{
    idem_outcome how = call_outcome(d, c);

    return device_use(d, 'C', &claims[c->key], c->key, &how, 0);
}

static inline void call_run(device *d, const call *c)
{
    idem_outcome how = call_outcome(d, c);
    idem_request more = call_request(c);

    d->buffer_size = c->buffer;
    device_run(d, c->key, c->payload, &more, &how,
               c->keep ? IDEM_CANNOT_TELL
               : c->back ? IDEM_NOT_DONE : IDEM_HANDLED, c->takes);
}

/* Confirms the delivery of the key's outcome, if it is undelivered. */
static inline int call_delivered(device *d, unsigned key)
{
    uint8_t id[ID_MAX];
    idem_info info = { .id = id, .id_size = sizeof id };
    int result;

    do {
        device_before(d, 'L', key);
        result = idem_pending(d->table, &info, d->now);
        device_looked(d, "pending", result);
    } while (result == IDEM_OK && device_named(d, &info) != key);
    return result == IDEM_OK ? device_use(d, 'D', &info.claim, key, NULL, 0)
                             : result;
}

/* .. if its claim is known. */
static inline int call_deliver(device *d, unsigned key)
{
    version *v = model_only(&d->model.keys[key]);
    idem_claim claim;

    if (!v || !version_finished(v) || !v->claim.token)
        return IDEM_E_NOT_FOUND;
    claim = v->claim;
    return device_use(d, 'D', &claim, key, NULL, 0);
}

/* All that can be seen is as the model has it; looking changes nothing. */
static inline void call_look(device *d)
{
    for (unsigned key = 0; key < d->model.count; key++) {
        device_look(d, key);
        device_look_at_response(d, key, 0, d->config.response_max);
    }
    device_look_at_all(d);
    device_look_at_pending(d, 0);
    device_look_at_state(d);
}

/* Only a sync makes durable. */
static inline void call_sync_batch(device *d)
{
    if (d->config.durability == IDEM_BATCH && !d->medium.off)
        device_sync(d);
}

/* Brings a key to its end, as an application would: execute after the sync,
   answer after the sync; then a duplicate costs nothing. */
static inline void call_achieve(device *d, unsigned key)
{
    call b = call_of('B', key), c = call_of('C', key);
    int result = call_begin(d, &b);

    call_sync_batch(d);
    if (d->medium.off)
        return;
    if (model_grants(result)) {
        d->now++;
        call_complete(d, &c, d->held);
        call_sync_batch(d);
        result = IDEM_REPLAY;
    }
    if (result != IDEM_REPLAY || d->medium.off)
        return;
    d->now++;
    PROMISE(call_begin(d, &b) == IDEM_REPLAY);
    PROMISE(!d->progs && !d->erases);
}

/* Idle work until there is none. */
static inline void call_rest(device *d)
{
    for (unsigned steps = 0; device_maintain(d) == IDEM_MORE; steps++)
        PROMISE(steps < 200000);
}

/* Another boot, perhaps with another configuration; the tick may begin
   anywhere. */
static inline int call_restart(device *d, uint32_t tick)
{
    device_stop(d);
    if (d->change)
        d->change();
    device_make_memory(d);
    d->now = d->medium.boots * 7919u + tick;
    return device_start(d);
}

/* Rotates the journal with records that nobody needs; or, with restarts, with
   heads. */
static inline void call_churn(device *d, unsigned times, int restarts)
{
    call b = call_of('B', d->model.count - 1), c = b;

    for (unsigned i = 0; i < times && !d->medium.off; i++) {
        int result, granted;
        if (restarts)
            call_restart(d, 0);
        if (d->lost)
            return;
        d->now++;
        result = call_begin(d, &b);
        granted = model_grants(result);
        if (d->medium.off || (!granted && result != IDEM_REPLAY))
            return;
        d->now++;
        if (granted && i % 2 == 0) {
            device_use(d, 'R', &d->held[b.key], b.key, NULL, 0);
            continue;
        }
        if (granted)
            call_complete(d, &c, d->held);
        if (!d->medium.off)
            device_forget(d, b.key);
    }
}

/* .. until that many sectors were begun. */
static inline void call_rotate(device *d, unsigned sectors)
{
    for (unsigned steps = 0; sectors > 0 && !d->medium.off; steps++) {
        uint32_t before = d->headers;
        PROMISE(steps < 200000);
        call_churn(d, 1, 0);
        sectors -= d->headers != before;
    }
}

/* Claims that are used up are fenced, for ever. */
static inline void call_fenced(device *d, unsigned n, unsigned how)
{
    if (d->old[n % OLD_CLAIMS].token)
        device_try(d, &d->old[n % OLD_CLAIMS], how);
}

static inline void call_all_fenced(device *d)
{
    for (unsigned i = 0; i < 3 * OLD_CLAIMS; i++)
        call_fenced(d, i / 3, i);
}

/* So is one that is forged. */
static inline void call_forged(device *d, const call *c)
{
    idem_claim claim = d->held[c->key];

    switch (c->how % 4) {
    case 0: claim.slot = (claim.slot + 1) % (d->config.capacity + 1); break;
    case 1: claim.slot = UINT32_MAX; break;
    case 2: claim.slot = d->config.capacity; break;
    default:
        claim.token ^= UINT64_C(1) << (8 * sizeof(idem_token) - 1 - c->n % 32);
    }
    device_try(d, &claim, c->how / 4);
}

/* Calls that are refused, and change nothing: the first five for being too
   large.  (Any pointer may be NULL in unit/api.c.) */
static inline void call_mistake(device *d, unsigned kind)
{
    const idem_config *c = &d->config;
    idem_table *t = d->table;
    idem_claim claim = { 1, 0, 0 };
    idem_reply reply = { 0 };
    idem_outcome out = { 0 };
    idem_info info = { 0 };
    idem_request rq = { .key = "k", .key_len = 1,
                        .payload = "p", .payload_len = 1 };
    uint32_t now = d->now, more = d->model.calls % 45;
    int result, begins = 0;

    device_before(d, 'S', 0);
    rq.scope = kind < 3 ? "" : NULL;
    switch (kind) {
    case 0: rq.scope_len = SIZE_MAX; rq.key_len = 2; break;     // the sum is 1
    case 1: rq.response_size = c->response_max + 1u; break;
    case 2: rq.scope_len = c->key_max; rq.key_len = 1 + more; break;
    case 3: case 4: rq.key_len = c->key_max + 1u + more; break;
    case 5: rq.key = NULL; break;
    case 6: rq.scope_len = 1; break;
    case 7: rq.payload = NULL; break;
    case 8: rq.lease_ms = IDEM_LEASE_MAX + 1; break;
    case 9: rq.lease_ms = IDEM_LEASE_NONE - 1; break;
    case 10: rq.retention_ms = IDEM_RETENTION_MAX + 1; break;
    case 11: out.response_len = 1; break;
    case 12: out.state_len = 1; break;
    default: rq.key_len = 0;            // which the others do not look at
    }
    // No key and no sequence is the sender, if there are any.
    if (kind == 14 && c->senders)
        rq.scope_len = 1;
    // There is no more than the most.
    if (!rq.response_size && kind == 1)
        rq.key_len = c->key_max + 1u;
    switch (kind) {
    case 3: case 13: result = idem_find(t, &info, &rq, now); break;
    case 4: case 14: result = idem_forget(t, &rq, now); break;
    case 11: case 12: result = idem_complete(t, &claim, &out, now); break;
    case 15: result = idem_renew(t, &claim, IDEM_LEASE_NONE - 1, now); break;
    case 16: result = idem_renew(t, &claim, IDEM_LEASE_MAX + 1, now); break;
    default: begins = 1;
             result = idem_begin(t, &claim, &reply, &rq, now);
    }
    PROMISE(result == (kind < 5 ? IDEM_E_TOO_LARGE : IDEM_E_ARG));
    PROMISE(!begins || !claim.token);
    PROMISE(!info.status && !info.key_len);
    device_looked(d, "mistake", result);
}

/* A table may be moved while no call is under way. */
static inline void call_move(device *d)
{
    idem_table *from = d->table;

    d->table = from == d->tables ? &d->tables[1] : d->tables;
    *d->table = *from;
    memset(from, 0x5A, sizeof *from);
}

/* Something is about to go wrong: a cut. */
static inline void call_arm_cut(device *d, const call *c)
{
    d->tear = c->tear;
    flash_cut(&d->medium, c->key, 0);
}

/* .. or a callback fails, once or from then on. */
static inline void call_arm_failure(device *d, const call *c)
{
    static const int hows[] = { FLASH_UNDONE, FLASH_DONE, FLASH_HALF };

    d->fails = d->boot_failed = 1;
    d->reads_fail |= c->key == FLASH_READ;
    flash_fail(&d->medium, (int)c->key, c->at, hows[c->how % 3],
               c->forever != 0);
}

static inline void call_works(device *d)
{
    for (int callback = 0; callback < FLASH_CALLS; callback++)
        flash_fail(&d->medium, callback, 0, 0, 0);
}

/* Makes a call on the table; returns its answer. */
static inline int call_table(device *d, const call *c)
{
    switch (c->what) {
    case 'B': return call_begin(d, c);
    case 'C': return call_complete(d, c, d->held);
    case 'c': return call_complete(d, c, d->before);
    case 'R': case 'N':
        return device_use(d, c->what, &d->held[c->key], c->key, NULL,
                          c->lease ? c->lease : 2 * d->config.lease_ms);
    case 'X': return device_forget(d, c->key);
    case 'n': return device_forget_sender(d, c->key);
    case 'D': return call_delivered(d, c->key);
    case 'd': return call_deliver(d, c->key);
    case 'G': return device_look(d, c->key);
    case 'm': return device_maintain(d);
    case 'Y': return device_sync(d);
    default:  call_unreadable(c->name); return 0;
    }
}

/* Makes a call; what it answered, if there is but one answer. */
static inline int call_make(device *d, const call *c)
{
    int result = IDEM_OK, expected;

    if (*tracing())
        call_trace(c);
    PROMISE(!strchr("BCUcRNXDdAGgjn", c->what) || c->key < d->model.count);
    d->now += c->ms;
    switch (c->what) {
    case 'U': call_run(d, c); break;
    case 'A': call_achieve(d, c->key); break;
    case 'g': device_look_at_response(d, c->key, c->at, c->most); break;
    case 's': device_look_at_state(d); break;
    case 'o': device_look_at_pending(d, c->n); break;
    case 'a': device_look_at_all(d); break;
    case '?': call_look(d); break;
    case 'M': call_rest(d); break;
    case WAIT: d->now += c->key; break;
    case 'L': d->now += d->config.lease_ms; break;
    case 'T': d->now += d->config.retention_ms; break;
    case 'E': device_elapse(d, c->n == AUTO ? d->config.lease_ms : c->n); break;
    case 'H': device_tick(d, d->now); break;
    case 'P': result = call_restart(d, c->n); break;
    case 'K': case 'J': call_churn(d, c->key, c->what == 'J'); break;
    case 'k': call_rotate(d, c->key + c->n * d->medium.sector_count); break;
    case 'l': PROMISE(d->table->stats.lost == c->key); break;
    case '!': call_all_fenced(d); break;
    case 'f': call_fenced(d, c->key, c->how); break;
    case 'j': call_forged(d, c); break;
    case 'e': call_mistake(d, c->n); break;
    case 'v': call_move(d); break;
    case '*': call_arm_cut(d, c); break;
    case '%': call_arm_failure(d, c); break;
    case 'w': call_works(d); break;
    case '|': d->marked = 1; break;
    default:
        result = d->word ? d->word(c) : NO_WORD;
        if (result == NO_WORD)
            result = call_table(d, c);
    }
    expected = d->damaged != DAMAGED &&
                       !(d->line && !model_keeps_numbers(&d->model))
                   ? ANY_ANSWER
               : c->what == 'B' ? IDEM_EXECUTE : IDEM_OK;
    PROMISE(d->medium.off || call_allows(c, result, expected));
    return result;
}

/* The next call of the line. */
static inline call call_next(device *d)
{
    while (*(d->at += strspn(d->at, " ")) == '+')
        d->at = call_modes(d, d->at + 1);
    return call_read(&d->at);
}

/* Makes the calls of a line, until the power goes. */
static inline void call_line(device *d, const char *line)
{
    d->line = d->at = line;
    for (call c = call_next(d); c.what && !d->lost; c = call_next(d)) {
        call_make(d, &c);
        if (d->medium.off)
            break;
    }
    d->line = NULL;
}

#endif /* CALL_H */
