/* SPDX-License-Identifier: 0BSD */
/* conformance PLACE [CASE ...]: the promises of idem.h that make sense for a
 * fleet, asked of PLACE (subject.h), each in a process of its own, and on
 * nothing that another has used.  Prints a line for each: its name, and "yes",
 * or the note under which README.md of examples/fleet tells what differs (which
 * is then checked to be so); the last line is how many checks passed.  Exits 1
 * if one did not. */
#define _DEFAULT_SOURCE
#include "subject.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LEASE = 1000, RETENTION = 1200, KEPT = 3000, HOUR = 3600000 };
// What is left of one is at most so much, for DynamoDB knows time to the second
enum { AT_MOST = LEASE + 2100, KEPT_AT_MOST = RETENTION + 2100 };
enum { RACERS = 4, RACE_KEYS = 25 };

// What the processes of a case count together
typedef struct tally {
    int passed, failed, differs;
    char note;
    int executed[RACE_KEYS];
} tally;

static tally *told;
static const char *place;           // of the case that runs
static const char *running;
static const subject *opened;       // by this process, the last one

static idem_config config = {
    .capacity = 100, .key_max = 40, .response_max = 16,
    .secret = { 0x31, 0x9c, 0x55, 0xe0, 0x27, 0xb8, 0x4d, 0x6a,
                0xd3, 0x0f, 0x82, 0x71, 0xc6, 0x1e, 0xa9, 0x44 },
    .lease_ms = LEASE, .retention_ms = HOUR, .senders = 8 };

#define CHECK(what) check((what) ? 1 : 0, __LINE__, #what)
#define IS(call, wanted) is(call, wanted, __LINE__, #call)

static void check(int holds, int line, const char *what)
{
    __atomic_add_fetch(holds ? &told->passed : &told->failed, 1,
                       __ATOMIC_SEQ_CST);
    if (!holds)
        fprintf(stderr, "%s: %s: line %d: not so: %s\n", place, running, line,
                what);
}

static void is(int result, int wanted, int line, const char *call)
{
    char text[600];

    snprintf(text, sizeof text, "%s is \"%s\", wanted \"%s\"; %s", call,
             idem_text(result), idem_text(wanted),
             result < 0 ? opened->f.reason : "");
    check(result == wanted, line, text);
}

/* What follows differs from what is promised, as README.md tells in a note. */
static void differs(char note)
{
    told->differs = 1;
    told->note = note;
}

static void open_or_die(subject *s)
{
    int result = subject_open(s, place, &config);

    opened = s;
    if (result == IDEM_OK)
        return;
    fprintf(stderr, "%s: %s; %s\n", place, idem_text(result), s->f.reason);
    told->failed++;
    exit(1);
}

static idem_request ask(const char *key, const char *payload)
{
    idem_request request = { .scope = "pump", .scope_len = 4, .key = key,
                             .key_len = strlen(key), .payload = payload,
                             .payload_len = strlen(payload) };
    return request;
}

// The claim and the reply of the last begin, for cases that need no others
static idem_claim claim;
static char buffer[16];
static idem_reply reply = { .buffer = buffer, .buffer_size = sizeof buffer };

static int begin(subject *s, const char *key, const char *payload)
{
    idem_request request = ask(key, payload);

    return subject_begin(s, &claim, &reply, &request);
}

static int complete(subject *s, const idem_claim *c, const char *response)
{
    idem_outcome outcome = { .response = response,
                             .response_len = strlen(response), .code = -7 };

    return subject_complete(s, c, &outcome);
}

/* Begins and completes a key. */
static void finish(subject *s, const char *key, const char *payload, int failed,
                   int confirm)
{
    idem_outcome outcome = { .response = "poured", .response_len = 6,
                             .failed = (uint8_t)failed,
                             .confirm = (uint8_t)confirm };

    IS(begin(s, key, payload), IDEM_EXECUTE);
    IS(subject_complete(s, &claim, &outcome), IDEM_OK);
}

static int find(subject *s, const char *key, idem_entry *entry)
{
    idem_request request = ask(key, "");

    return subject_find(s, entry, &request);
}

/* ---------------------------------------------------------------- the cases */

static void an_outcome_is_replayed_byte_for_byte(subject *s)
{
    static const char bytes[8] = { 0, '\'', '\\', (char)0xFF, '\n', 0, 1, 0 };
    idem_outcome outcome = { .response = bytes, .response_len = 8,
                             .code = INT32_MIN };
    idem_request request = ask("42", "5 ml");
    idem_claim mine;
    idem_reply small = { .buffer = buffer, .buffer_size = 7 };

    IS(begin(s, "42", "5 ml"), IDEM_EXECUTE);
    mine = claim;
    CHECK(mine.token > 0 && mine.attempt == 1);
    IS(begin(s, "42", "5 ml"), IDEM_BUSY);
    CHECK(claim.token == 0);
    CHECK(reply.retry_after_ms > 0 && reply.retry_after_ms <= AT_MOST);
    IS(subject_complete(s, &mine, &outcome), IDEM_OK);
    for (int i = 0; i < 2; i++) {
        memset(buffer, 'x', sizeof buffer);
        IS(begin(s, "42", "5 ml"), IDEM_REPLAY);
        CHECK(reply.response_len == 8 && !memcmp(buffer, bytes, 8));
        CHECK(buffer[8] == 'x');
        CHECK(reply.status == IDEM_COMPLETED && reply.code == INT32_MIN);
        CHECK(reply.claim.token == mine.token && reply.age_ms < HOUR);
        CHECK(claim.token == 0);
    }
    memset(buffer, 'x', sizeof buffer);
    IS(subject_begin(s, &claim, &small, &request), IDEM_REPLAY);
    CHECK(small.response_len == 8 && buffer[0] == 'x');
    finish(s, "44", "5 ml", 1, 0);
    IS(begin(s, "44", "5 ml"), IDEM_REPLAY);
    CHECK(reply.status == IDEM_FAILED && reply.response_len == 6);
    IS(begin(s, "45", ""), IDEM_EXECUTE);
    IS(complete(s, &claim, ""), IDEM_OK);
    IS(begin(s, "45", ""), IDEM_REPLAY);
    CHECK(reply.response_len == 0 && reply.code == -7);
}

static void a_claim_that_is_not_current_changes_nothing(subject *s)
{
    static const idem_claim none = { .token = 0 };
    idem_claim first, second;

    IS(begin(s, "42", "5 ml"), IDEM_EXECUTE);
    first = claim;
    subject_wait(s, LEASE);
    IS(begin(s, "42", "5 ml"), IDEM_RECOVER);
    second = claim;
    CHECK(second.token > first.token && second.attempt == 2);
    IS(complete(s, &first, "late"), IDEM_E_FENCED);
    IS(subject_release(s, &first), IDEM_E_FENCED);
    IS(subject_renew(s, &first, HOUR), IDEM_E_FENCED);
    IS(begin(s, "42", "5 ml"), IDEM_BUSY);
    CHECK(reply.retry_after_ms <= AT_MOST);
    IS(complete(s, &second, "poured"), IDEM_OK);
    IS(complete(s, &second, "again"), IDEM_E_FENCED);
    IS(subject_release(s, &second), IDEM_E_FENCED);
    IS(subject_renew(s, &second, 0), IDEM_E_FENCED);
    IS(complete(s, &first, "late"), IDEM_E_FENCED);
    IS(complete(s, &none, "none"), IDEM_E_FENCED);
    IS(subject_release(s, &none), IDEM_E_FENCED);
    IS(begin(s, "42", "5 ml"), IDEM_REPLAY);
    CHECK(!memcmp(buffer, "poured", 6) && reply.response_len == 6);
    IS(begin(s, "43", "5 ml"), IDEM_EXECUTE);
    first = claim;
    IS(subject_release(s, &first), IDEM_OK);
    IS(begin(s, "43", "5 ml"), IDEM_EXECUTE);
    CHECK(claim.token > first.token && claim.attempt == 1);
    IS(complete(s, &first, "late"), IDEM_E_FENCED);
    IS(complete(s, &claim, "poured"), IDEM_OK);
}

static void keys_and_scopes_are_kept_apart(subject *s)
{
    idem_request request = { .scope = "ab", .scope_len = 2, .key = "c",
                             .key_len = 1, .payload = "1", .payload_len = 1 };
    static const struct { const char *scope, *key; } others[] = {
        { "a", "bc" }, { "", "abc" }, { "abc", "c" }, { "ab", "C" },
        { "ab", "c:" }, { "ab", "c'" } };
    idem_entry entry = { .id = NULL };

    IS(subject_begin(s, &claim, &reply, &request), IDEM_EXECUTE);
    IS(complete(s, &claim, "first"), IDEM_OK);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        idem_request other = { .scope = others[i].scope,
                               .scope_len = strlen(others[i].scope),
                               .key = others[i].key,
                               .key_len = strlen(others[i].key),
                               .payload = "2", .payload_len = 1 };
        IS(subject_find(s, &entry, &other), IDEM_E_NOT_FOUND);
        IS(subject_begin(s, &claim, &reply, &other), IDEM_EXECUTE);
        IS(complete(s, &claim, "other"), IDEM_OK);
    }
    request.key = "c\0";                // a NUL is a byte like another
    request.key_len = 2;
    IS(subject_begin(s, &claim, &reply, &request), IDEM_EXECUTE);
    request.key_len = 1;
    IS(subject_begin(s, &claim, &reply, &request), IDEM_REPLAY);
    CHECK(reply.response_len == 5 && !memcmp(buffer, "first", 5));
}

static void another_payload_is_refused_in_every_state(subject *s)
{
    idem_request request = ask("given", "");

    IS(begin(s, "42", "5 ml"), IDEM_EXECUTE);           // in progress
    IS(begin(s, "42", "6 ml"), IDEM_MISMATCH);
    IS(begin(s, "42", "5 ml "), IDEM_MISMATCH);
    subject_wait(s, LEASE);
    IS(begin(s, "42", "6 ml"), IDEM_MISMATCH);          // cut short
    IS(begin(s, "42", "5 ml"), IDEM_RECOVER);
    IS(begin(s, "42", "6 ml"), IDEM_MISMATCH);          // taken over
    subject_wait(s, LEASE);
    IS(begin(s, "42", "5 ml"), IDEM_RECOVER);
    subject_wait(s, LEASE);
    IS(begin(s, "42", "5 ml"), IDEM_EXHAUSTED);         // exhausted
    IS(begin(s, "42", "6 ml"), IDEM_MISMATCH);
    finish(s, "43", "5 ml", 0, 0);                      // completed
    memset(buffer, 'x', sizeof buffer);
    IS(begin(s, "43", "6 ml"), IDEM_MISMATCH);
    CHECK(buffer[0] == 'x' && reply.response_len == 0);
    finish(s, "44", "5 ml", 1, 0);                      // failed
    IS(begin(s, "44", "6 ml"), IDEM_MISMATCH);
    IS(begin(s, "45", "5 ml"), IDEM_EXECUTE);           // given back: unknown
    IS(subject_release(s, &claim), IDEM_OK);
    IS(begin(s, "45", "6 ml"), IDEM_EXECUTE);
    request.has_fingerprint = 1;
    request.fingerprint = UINT64_C(0xFFFFFFFFFFFFFFFF);
    IS(subject_begin(s, &claim, &reply, &request), IDEM_EXECUTE);
    IS(complete(s, &claim, "poured"), IDEM_OK);
    IS(subject_begin(s, &claim, &reply, &request), IDEM_REPLAY);
    request.fingerprint--;
    IS(subject_begin(s, &claim, &reply, &request), IDEM_MISMATCH);
}

static void what_was_cut_short_is_recover(subject *s)
{
    idem_request brief = ask("brief", "5 ml");

    IS(begin(s, "42", "5 ml"), IDEM_EXECUTE);
    subject_wait(s, LEASE);
    IS(begin(s, "42", "5 ml"), IDEM_RECOVER);
    IS(begin(s, "42", "5 ml"), IDEM_BUSY);
    subject_wait(s, LEASE);
    IS(begin(s, "42", "5 ml"), IDEM_RECOVER);
    CHECK(claim.attempt == 3);
    IS(subject_release(s, &claim), IDEM_OK);
    IS(begin(s, "42", "5 ml"), IDEM_EXECUTE);
    CHECK(claim.attempt == 1);
    brief.lease_ms = LEASE;
    brief.retention_ms = RETENTION;
    IS(subject_begin(s, &claim, &reply, &brief), IDEM_EXECUTE);
    subject_wait(s, LEASE);
    subject_wait(s, RETENTION);
    IS(subject_begin(s, &claim, &reply, &brief), IDEM_EXECUTE);
    CHECK(claim.attempt == 1);
    // Its lease is over, but nobody has taken over: the holder may complete.
    subject_wait(s, LEASE);
    IS(complete(s, &claim, "late"), IDEM_OK);
    IS(subject_begin(s, &claim, &reply, &brief), IDEM_REPLAY);
}

/* Runs `act` in another process, that is killed as soon as it has acted. */
static void in_a_killed_process(void act(subject *s))
{
    int ends[2], killed;
    char acted = 0;
    pid_t child;

    if (pipe(ends) != 0)
        exit(2);
    child = fork();
    if (child == 0) {
        subject s;
        open_or_die(&s);
        act(&s);
        if (write(ends[1], "!", 1) == 1)
            pause();
        _exit(1);
    }
    close(ends[1]);
    CHECK(read(ends[0], &acted, 1) == 1);
    kill(child, SIGKILL);
    waitpid(child, &killed, 0);
    close(ends[0]);
}

static void begin_one_and_finish_another(subject *s)
{
    finish(s, "done", "5 ml", 0, 1);
    IS(begin(s, "cut", "5 ml"), IDEM_EXECUTE);
}

static void a_killed_process_is_survived(subject *s)
{
    idem_entry entry = { .id = NULL };

    subject_close(s);
    in_a_killed_process(begin_one_and_finish_another);
    open_or_die(s);
    if (s->kind == RAM) {
        differs('a');
        IS(begin(s, "done", "5 ml"), IDEM_EXECUTE);
        IS(begin(s, "cut", "5 ml"), IDEM_EXECUTE);
        return;
    }
    IS(begin(s, "done", "5 ml"), IDEM_REPLAY);
    CHECK(!memcmp(buffer, "poured", 6));
    IS(subject_pending(s, &entry), IDEM_OK);
    CHECK(entry.claim.token == reply.claim.token && entry.key_len == 4);
    if (subject_is_fleet(s)) {
        IS(begin(s, "cut", "5 ml"), IDEM_BUSY);
        CHECK(reply.retry_after_ms <= AT_MOST);
        subject_wait(s, LEASE);
    }
    IS(begin(s, "cut", "5 ml"), IDEM_RECOVER);
    CHECK(claim.attempt == 2);
}

static void a_lease_outlives_its_killed_holder(subject *s)
{
    subject_close(s);
    in_a_killed_process(begin_one_and_finish_another);
    open_or_die(s);
    if (!subject_is_fleet(s)) {         // a restart ends all leases
        differs('b');
        IS(begin(s, "cut", "5 ml"),
           s->kind == RAM ? IDEM_EXECUTE : IDEM_RECOVER);
    } else
        IS(begin(s, "cut", "5 ml"), IDEM_BUSY);
}

static void tokens_grow_over_restarts(subject *s)
{
    idem_token before, now;

    finish(s, "1", "", 0, 0);
    finish(s, "2", "", 0, 0);
    before = claim.token;
    finish(s, "3", "", 0, 0);
    CHECK(claim.token > before);
    before = claim.token;
    subject_close(s);
    open_or_die(s);
    finish(s, "4", "", 0, 0);
    now = claim.token;
    if (s->kind == RAM) {
        differs('a');
        CHECK(now <= before);
    } else
        CHECK(now > before);
}

/* Begins a number of a scope; it is kept for a short time. */
static int begin_number(subject *s, const char *scope, uint32_t epoch,
                        uint32_t sequence)
{
    idem_request request = { .scope = scope, .scope_len = strlen(scope),
                             .epoch = epoch, .sequence = sequence,
                             .payload = "5 ml", .payload_len = 4,
                             .retention_ms = KEPT };

    return subject_begin(s, &claim, &reply, &request);
}

static void a_number_is_never_executed_again(subject *s)
{
    static const char bytes[8] = { 0, 0, 0, 1, 0, 0, 0, 7 };
    static const char other[8] = { 7, 0, 0, 0, 1, 0, 0, 0 };
    char id[16];
    idem_entry entry = { .id = id, .id_size = sizeof id };
    idem_request request = { .scope = "pump", .scope_len = 4, .epoch = 1,
                             .sequence = 7 };

    IS(begin_number(s, "pump", 1, 7), IDEM_EXECUTE);
    IS(begin_number(s, "pump", 1, 7), IDEM_BUSY);
    IS(subject_begin(s, &claim, &reply, &request), IDEM_MISMATCH);
    IS(subject_find(s, &entry, &request), IDEM_OK);
    CHECK(entry.scope_len == 4 && entry.key_len == 0);
    CHECK(entry.epoch == 1 && entry.sequence == 7 && !memcmp(id, "pump", 4));
    request.key = bytes;                    // a key, or a number
    request.key_len = 8;
    IS(subject_begin(s, &claim, &reply, &request), IDEM_E_ARG);
    request.sequence = 0;                   // its bytes are another key
    IS(subject_begin(s, &claim, &reply, &request), IDEM_EXECUTE);
    request.key = other;
    IS(subject_begin(s, &claim, &reply, &request), IDEM_EXECUTE);
    IS(begin_number(s, "pump", 1, 8), IDEM_EXECUTE);
    IS(complete(s, &claim, "poured"), IDEM_OK);
    IS(begin_number(s, "pump", 1, 8), IDEM_REPLAY);
    IS(begin_number(s, "pump", 1, 9), IDEM_EXECUTE);
    IS(subject_release(s, &claim), IDEM_OK);
    subject_wait(s, LEASE);
    IS(begin_number(s, "pump", 1, 7), IDEM_RECOVER);
    subject_wait(s, LEASE);
    subject_wait(s, KEPT);
    IS(begin_number(s, "pump", 1, 7), IDEM_TOO_OLD);    // cut short
    IS(begin_number(s, "pump", 1, 8), IDEM_TOO_OLD);    // completed
    IS(begin_number(s, "pump", 1, 9), IDEM_EXECUTE);    // given back
    IS(complete(s, &claim, "poured"), IDEM_OK);
    IS(begin_number(s, "pump", UINT32_MAX, UINT32_MAX), IDEM_EXECUTE);
    if (s->kind == RAM)
        return;
    subject_close(s);
    open_or_die(s);
    IS(begin_number(s, "pump", 1, 8), IDEM_TOO_OLD);
}

static void what_is_below_an_old_number_is_too_old(subject *s)
{
    for (uint32_t n = 10; n <= 30; n += 10) {
        IS(begin_number(s, "pump", 0, n), IDEM_EXECUTE);
        IS(complete(s, &claim, "poured"), IDEM_OK);
    }
    IS(begin_number(s, "pump", 0, 25), IDEM_EXECUTE);   // in any order
    IS(subject_release(s, &claim), IDEM_OK);
    subject_wait(s, KEPT);
    IS(begin_number(s, "pump", 0, 31), IDEM_EXECUTE);
    IS(begin_number(s, "pump", 0, 30), IDEM_TOO_OLD);   // so it has left
    IS(begin_number(s, "valve", 0, 5), IDEM_EXECUTE);   // its own account
    if (s->kind == DYNAMODB) {
        differs('f');
        IS(begin_number(s, "pump", 0, 5), IDEM_EXECUTE);
        return;
    }
    IS(begin_number(s, "pump", 0, 5), IDEM_TOO_OLD);
    IS(begin_number(s, "pump", 0, 25), IDEM_TOO_OLD);
    IS(begin_number(s, "pump", 0, 29), IDEM_TOO_OLD);
}

static void a_newer_epoch_ends_the_older(subject *s)
{
    idem_claim old;

    IS(begin_number(s, "pump", 1, 6), IDEM_EXECUTE);
    IS(complete(s, &claim, "poured"), IDEM_OK);
    IS(begin_number(s, "pump", 1, 7), IDEM_EXECUTE);
    old = claim;
    IS(begin_number(s, "pump", 2, 1), IDEM_EXECUTE);
    IS(begin_number(s, "pump", 1, 6), IDEM_REPLAY);
    if (s->kind == DYNAMODB) {
        differs('f');
        IS(begin_number(s, "pump", 1, 8), IDEM_EXECUTE);
        IS(complete(s, &old, "late"), IDEM_OK);
        return;
    }
    IS(begin_number(s, "pump", 1, 8), IDEM_TOO_OLD);
    IS(begin_number(s, "pump", 1, 7), IDEM_TOO_OLD);
    IS(complete(s, &old, "late"), IDEM_E_FENCED);
    IS(subject_renew(s, &old, 0), IDEM_E_FENCED);
    IS(subject_release(s, &old), IDEM_E_FENCED);
    IS(begin_number(s, "valve", 1, 1), IDEM_EXECUTE);   // its own epochs
}

static void a_call_that_fails_changed_nothing(subject *s)
{
    static const char long_key[] = "0123456789012345678901234567890123456";
    idem_request request = ask("", "");
    idem_outcome outcome = { .response = "0123456789abcdef",
                             .response_len = 17 };
    idem_entry entry = { .id = NULL };

    IS(subject_begin(s, &claim, &reply, &request), IDEM_E_ARG);
    IS(subject_find(s, &entry, &request), IDEM_E_ARG);
    request = ask(long_key, "");                        // 4 + 37 bytes
    IS(subject_begin(s, &claim, &reply, &request), IDEM_E_TOO_LARGE);
    IS(subject_find(s, &entry, &request), IDEM_E_TOO_LARGE);
    request.key_len = 36;                               // exactly key_max
    IS(subject_find(s, &entry, &request), IDEM_E_NOT_FOUND);
    IS(subject_begin(s, &claim, &reply, &request), IDEM_EXECUTE);
    request = ask("42", "5 ml");
    request.lease_ms = IDEM_LEASE_MAX + 1;
    IS(subject_begin(s, &claim, &reply, &request), IDEM_E_ARG);
    request = ask("42", "5 ml");
    request.retention_ms = IDEM_RETENTION_MAX + 1;
    IS(subject_begin(s, &claim, &reply, &request), IDEM_E_ARG);
    request = ask("42", "5 ml");
    request.response_size = 17;
    IS(subject_begin(s, &claim, &reply, &request), IDEM_E_TOO_LARGE);
    IS(find(s, "42", &entry), IDEM_E_NOT_FOUND);
    request.response_size = 4;
    IS(subject_begin(s, &claim, &reply, &request), IDEM_EXECUTE);
    IS(subject_complete(s, &claim, &outcome), IDEM_E_TOO_LARGE);
    outcome.response_len = 5;                           // 4 were reserved
    IS(subject_complete(s, &claim, &outcome), IDEM_E_TOO_LARGE);
    outcome.response = NULL;
    outcome.response_len = 1;
    IS(subject_complete(s, &claim, &outcome), IDEM_E_ARG);
    IS(subject_renew(s, &claim, IDEM_LEASE_MAX + 1), IDEM_E_ARG);
    IS(find(s, "42", &entry), IDEM_OK);
    CHECK(entry.status == IDEM_IN_PROGRESS && entry.response_len == 4);
    IS(complete(s, &claim, "1234"), IDEM_OK);
    IS(subject_begin(s, &claim, &reply, &request), IDEM_REPLAY);
    CHECK(reply.response_len == 4 && !memcmp(buffer, "1234", 4));
}

static void attempts_that_are_all_cut_short_end(subject *s)
{
    IS(begin(s, "42", "5 ml"), IDEM_EXECUTE);
    for (int i = 0; i < 2; i++) {
        subject_wait(s, LEASE);
        IS(begin(s, "42", "5 ml"), IDEM_RECOVER);
    }
    CHECK(claim.attempt == 3);
    subject_wait(s, LEASE);
    IS(begin(s, "42", "5 ml"), IDEM_EXHAUSTED);
    CHECK(claim.token == 0);
    IS(begin(s, "42", "5 ml"), IDEM_EXHAUSTED);
    IS(begin(s, "43", "5 ml"), IDEM_EXECUTE);
}

static void what_is_unknown_and_too_old_is_refused(subject *s)
{
    idem_request request = ask("42", "5 ml");

    subject_wait(s, LEASE);
    finish(s, "42", "5 ml", 0, 0);
    request.age_ms = HOUR;                              // but it is known
    IS(subject_begin(s, &claim, &reply, &request), IDEM_REPLAY);
    request.key = "43";
    IS(subject_begin(s, &claim, &reply, &request), IDEM_TOO_OLD);
    request.retention_ms = 2 * HOUR;
    request.age_ms = 2 * HOUR;
    IS(subject_begin(s, &claim, &reply, &request), IDEM_TOO_OLD);
    request.retention_ms = 0;
    request.age_ms = 1;
    IS(subject_begin(s, &claim, &reply, &request), IDEM_EXECUTE);
    CHECK(claim.attempt == 1);
}

static void memory_reaches_back_to_its_start(subject *s)
{
    idem_request request = ask("42", "5 ml");

    request.age_ms = HOUR / 2;
    if (s->kind == JOURNAL) {
        differs('c');
        IS(subject_begin(s, &claim, &reply, &request), IDEM_EXECUTE);
    } else
        IS(subject_begin(s, &claim, &reply, &request), IDEM_TOO_OLD);
}

static void a_lease_is_lengthened_and_never_shortened(subject *s)
{
    idem_claim mine;

    IS(begin(s, "42", "5 ml"), IDEM_EXECUTE);
    mine = claim;
    IS(subject_renew(s, &mine, 6 * LEASE), IDEM_OK);
    IS(subject_renew(s, &mine, 1), IDEM_OK);
    subject_wait(s, LEASE);
    IS(begin(s, "42", "5 ml"), IDEM_BUSY);
    CHECK(reply.retry_after_ms > LEASE);
    CHECK(reply.retry_after_ms <= 5 * LEASE + AT_MOST);
    IS(complete(s, &mine, "poured"), IDEM_OK);
    IS(begin(s, "42", "5 ml"), IDEM_REPLAY);
}

static void retention_ends(subject *s)
{
    idem_request request = ask("42", "5 ml");
    idem_entry entry = { .id = NULL };

    request.retention_ms = RETENTION;
    IS(subject_begin(s, &claim, &reply, &request), IDEM_EXECUTE);
    IS(complete(s, &claim, "poured"), IDEM_OK);
    IS(find(s, "42", &entry), IDEM_OK);
    CHECK(entry.left_ms > 0 && entry.left_ms <= KEPT_AT_MOST);
    subject_wait(s, RETENTION);
    IS(find(s, "42", &entry), IDEM_E_NOT_FOUND);
    IS(begin(s, "42", "6 ml"), IDEM_EXECUTE);
    CHECK(claim.attempt == 1);
}

static void a_key_is_described(subject *s)
{
    char id[8] = "";
    idem_entry entry = { .id = id, .id_size = sizeof id };

    IS(find(s, "42", &entry), IDEM_E_NOT_FOUND);
    IS(begin(s, "42", "5 ml"), IDEM_EXECUTE);
    IS(find(s, "42", &entry), IDEM_OK);
    CHECK(entry.status == IDEM_IN_PROGRESS && entry.attempts == 1);
    CHECK(entry.scope_len == 4 && entry.key_len == 2);
    CHECK(!memcmp(id, "pump42", 6));
    CHECK(entry.response_len == 16 && entry.claim.token == 0);
    CHECK(entry.left_ms > 0 && entry.left_ms <= AT_MOST);
    subject_wait(s, LEASE);
    IS(find(s, "42", &entry), IDEM_OK);
    CHECK(entry.left_ms == 0);
    IS(complete(s, &claim, "poured"), IDEM_OK);
    IS(find(s, "42", &entry), IDEM_OK);
    CHECK(entry.status == IDEM_COMPLETED && entry.code == -7);
    CHECK(entry.response_len == 6 && entry.claim.token == claim.token);
    CHECK(entry.left_ms > HOUR / 2 && !entry.undelivered);
}

static void what_is_owed_is_listed_until_it_is_delivered(subject *s)
{
    static const idem_claim none = { .token = 12345, .slot = 1 };
    idem_claim made[3];
    idem_request brief = ask("brief", "5 ml");
    idem_outcome owed = { .confirm = 1 };
    char id[8];
    idem_entry entry = { .id = id, .id_size = sizeof id };
    idem_entry again = { .id = NULL };

    IS(subject_pending(s, &entry), IDEM_E_NOT_FOUND);
    for (int i = 0; i < 3; i++) {
        char key[2] = { (char)('1' + i), 0 };
        finish(s, key, "", 0, 1);
        made[i] = claim;
        subject_wait(s, 1);
    }
    finish(s, "4", "", 0, 0);
    IS(begin(s, "5", ""), IDEM_EXECUTE);
    for (int i = 0; i < 3; i++) {
        IS(subject_pending(s, &entry), IDEM_OK);
        CHECK(entry.claim.token == made[i].token && entry.undelivered == 1);
        CHECK(entry.key_len == 1 && id[4] == '1' + i);
    }
    IS(subject_pending(s, &entry), IDEM_E_NOT_FOUND);
    IS(subject_delivered(s, &made[0]), IDEM_OK);
    IS(subject_delivered(s, &made[0]), IDEM_OK);
    IS(subject_delivered(s, &none), IDEM_E_NOT_FOUND);
    IS(subject_delivered(s, &claim), IDEM_E_NOT_FOUND);   // in progress
    IS(subject_pending(s, &again), IDEM_OK);
    CHECK(again.claim.token == made[1].token);
    IS(subject_delivered(s, &made[1]), IDEM_OK);
    IS(subject_pending(s, &again), IDEM_OK);        // after one delivered
    CHECK(again.claim.token == made[2].token);
    IS(subject_delivered(s, &made[2]), IDEM_OK);
    memset(&again, 0, sizeof again);
    IS(subject_pending(s, &again), IDEM_E_NOT_FOUND);
    IS(begin(s, "1", ""), IDEM_REPLAY);
    brief.retention_ms = RETENTION;
    IS(subject_begin(s, &claim, &reply, &brief), IDEM_EXECUTE);
    IS(subject_complete(s, &claim, &owed), IDEM_OK);
    IS(subject_pending(s, &again), IDEM_OK);
    subject_wait(s, RETENTION);
    memset(&again, 0, sizeof again);
    IS(subject_pending(s, &again), IDEM_E_NOT_FOUND);
}

static int handler(void *ctx, idem_outcome *outcome,
                   const idem_request *request, const idem_claim *held,
                   int answer, uint32_t *now_ms)
{
    int *times = (int *)ctx;

    (void)now_ms;
    CHECK(request->key_len == 2 && held->token > 0);
    CHECK(answer == IDEM_EXECUTE);
    outcome->response = "poured";
    outcome->response_len = 6;
    return ++*times == 1;               // the first time not: given back
}

static void one_handler_runs_on_all(subject *s)
{
    static const int wanted[] = { IDEM_RELEASED, IDEM_EXECUTE, IDEM_REPLAY };
    idem_request request = ask("42", "5 ml");
    int times = 0;

    for (int i = 0; i < 3; i++) {
        memset(buffer, 0, sizeof buffer);
        IS(subject_run(s, &claim, &reply, &request, handler, &times),
           wanted[i]);
        CHECK(i == 0 || !memcmp(buffer, "poured", 7));
        CHECK(i == 0 || (reply.response_len == 6 &&
                         reply.status == IDEM_COMPLETED));
    }
    CHECK(times == 2);
}

static void a_lease_may_be_without_end(subject *s)
{
    idem_request request = ask("42", "5 ml");

    request.lease_ms = IDEM_LEASE_NONE;
    if (subject_is_fleet(s)) {
        differs('d');
        IS(subject_begin(s, &claim, &reply, &request), IDEM_E_ARG);
    } else
        IS(subject_begin(s, &claim, &reply, &request), IDEM_EXECUTE);
}

/* A process of its own that does `act`; waits for the one before it to say go,
   on `in`, and says so itself on `out`. */
static void hand(int fd)
{
    CHECK(write(fd, "!", 1) == 1);
}

static void await(int fd)
{
    char c;

    CHECK(read(fd, &c, 1) == 1);
}

static void hold_too_long(int in, int out)
{
    subject s;
    idem_claim mine;

    open_or_die(&s);
    IS(begin(&s, "42", "5 ml"), IDEM_EXECUTE);
    mine = claim;
    hand(out);
    await(in);                          // the other has taken over
    IS(complete(&s, &mine, "late"), IDEM_E_FENCED);
    IS(subject_renew(&s, &mine, 0), IDEM_E_FENCED);
    IS(subject_release(&s, &mine), IDEM_E_FENCED);
    IS(begin(&s, "42", "5 ml"), IDEM_BUSY);
    hand(out);
    await(in);                          // and completed
    IS(begin(&s, "42", "5 ml"), IDEM_REPLAY);
    CHECK(!memcmp(buffer, "by other", 8));
    subject_close(&s);
}

static void two_processes_share_it(subject *s)
{
    int to[2], from[2], status;
    idem_claim mine;
    pid_t child;

    if (!subject_is_fleet(s)) {
        subject second;
        differs('e');
        if (s->kind == JOURNAL)         // one process at a time
            IS(subject_open(&second, place, &config), IDEM_E_LOCK);
        else {                          // its own memory
            IS(begin(s, "42", "5 ml"), IDEM_EXECUTE);
            IS(subject_open(&second, place, &config), IDEM_OK);
            IS(begin(&second, "42", "5 ml"), IDEM_EXECUTE);
        }
        return;
    }
    if (pipe(to) != 0 || pipe(from) != 0)
        exit(2);
    child = fork();
    if (child == 0) {
        hold_too_long(to[0], from[1]);
        _exit(0);
    }
    await(from[0]);
    IS(begin(s, "42", "5 ml"), IDEM_BUSY);
    subject_wait(s, LEASE);
    IS(begin(s, "42", "5 ml"), IDEM_RECOVER);
    mine = claim;
    IS(subject_renew(s, &mine, 10 * LEASE), IDEM_OK);
    hand(to[1]);
    await(from[0]);
    IS(complete(s, &mine, "by other"), IDEM_OK);
    hand(to[1]);
    waitpid(child, &status, 0);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* Begins all keys, as the others do at the same time. */
static void race(void)
{
    subject s;
    idem_token last = 0;

    open_or_die(&s);
    for (int i = 0; i < RACE_KEYS; i++) {
        char key[4];
        int result;
        snprintf(key, sizeof key, "%d", i);
        result = begin(&s, key, "5 ml");
        if (result == IDEM_EXECUTE) {
            CHECK(claim.token > last);
            last = claim.token;
            __atomic_add_fetch(&told->executed[i], 1, __ATOMIC_SEQ_CST);
            IS(complete(&s, &claim, "poured"), IDEM_OK);
        } else
            CHECK(result == IDEM_BUSY || result == IDEM_REPLAY);
    }
    subject_close(&s);
    _exit(0);
}

static void of_many_at_once_one_executes(subject *s)
{
    static char fresh[600];
    int status;

    if (!subject_is_fleet(s)) {
        differs('e');
        return;
    }
    // A store that none has opened: they make it at the same time, too.
    snprintf(fresh, sizeof fresh, "%s_race", place);
    place = fresh;
    for (int i = 0; i < RACERS; i++)
        if (fork() == 0)
            race();
    for (int i = 0; i < RACERS; i++) {
        CHECK(wait(&status) > 0);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    for (int i = 0; i < RACE_KEYS; i++)
        CHECK(told->executed[i] == 1);
}

/* ------------------------------------------------------------------ running */

#define CASES(X) \
    X("S1", a_claim_that_is_not_current_changes_nothing) \
    X("S1", two_processes_share_it) \
    X("S1", of_many_at_once_one_executes) \
    X("S1", tokens_grow_over_restarts) \
    X("S2", an_outcome_is_replayed_byte_for_byte) \
    X("S2", retention_ends) \
    X("S3", keys_and_scopes_are_kept_apart) \
    X("S3", another_payload_is_refused_in_every_state) \
    X("S4", what_was_cut_short_is_recover) \
    X("S4", a_killed_process_is_survived) \
    X("S4", a_number_is_never_executed_again) \
    X("S4", what_is_unknown_and_too_old_is_refused) \
    X("S4", memory_reaches_back_to_its_start) \
    X("S4", what_is_below_an_old_number_is_too_old) \
    X("S4", a_newer_epoch_ends_the_older) \
    X("S6", a_lease_is_lengthened_and_never_shortened) \
    X("S7", a_call_that_fails_changed_nothing) \
    X("L2", attempts_that_are_all_cut_short_end) \
    X("L2", a_lease_outlives_its_killed_holder) \
    X("L2", a_lease_may_be_without_end) \
    X("", what_is_owed_is_listed_until_it_is_delivered) \
    X("", a_key_is_described) \
    X("", one_handler_runs_on_all)

#define ROW(promise, function) { promise, #function, function },
static const struct test {
    const char *promise, *name;
    void (*function)(subject *s);
} tests[] = { CASES(ROW) };
enum { TESTS = sizeof tests / sizeof *tests };

/* The place of a case: one that no other uses. */
static void name_place(char *dst, size_t size, const char *all, int test)
{
    snprintf(dst, size, "%s%s%d", all, strstr(all, "://") ? "#case_" : ".",
             test);
}

static void run_case(const char *all, int test)
{
    static char mine[600];
    subject s;

    name_place(mine, sizeof mine, all, test);
    place = mine;
    running = tests[test].name;
    told += test;
    open_or_die(&s);
    tests[test].function(&s);
    subject_close(&s);
    exit(0);
}

int main(int argc, char **argv)
{
    int passed = 0, failed = 0, status;

    if (argc != 2)
        return 2;
    signal(SIGPIPE, SIG_IGN);
    told = (tally *)mmap(NULL, sizeof *told * TESTS, PROT_READ | PROT_WRITE,
                         MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (told == MAP_FAILED)
        return 2;
    for (int i = 0; i < TESTS; i++)
        if (fork() == 0)
            run_case(argv[1], i);
    while (wait(&status) > 0)
        failed += !WIFEXITED(status) || WEXITSTATUS(status) != 0;
    for (int i = 0; i < TESTS; i++) {
        printf("%s\t%s\t", tests[i].promise, tests[i].name);
        if (told[i].failed)
            puts("FAILED");
        else if (told[i].differs)
            printf("no (%c)\n", told[i].note);
        else
            puts("yes");
        passed += told[i].passed;
        failed += told[i].failed;
    }
    printf("%s: %d checks passed, %d failed\n", argv[1], passed, failed);
    return failed || !passed;
}
