/* SPDX-License-Identifier: 0BSD */
/* Runs lines of calls (model/words.h) on a subject: on idem.h, or on a fleet.
 *
 *     "Ba Ba,payload=1:mismatch L Ba:recover ca:fenced Ca"
 *
 * Without an answer in the line, B must answer execute, U done, all others ok.
 * Fields that only these have, or that mean more here:
 *     B       both: a key beside the number; late: it is granted, and the answer
 *             comes late
 *     C       null; within=1: the scenario's transaction, within=0: none
 *     U       called, where the answer does not show that the handler was;
 *             script, which does its part in it; :more, of a fleet: it
 *             asserts that the outcome was a mistake
 *     C R N D old: with the claim before the last; D of a key without an outcome
 *             has no token, or one that was never given
 * And words:
 *     oa first    the next undelivered is a; look from the first on
 *     open close reopen   reopen: close and open; RAM does not survive that,
 *                         and its scenario ends there
 *     @word kill  another process does it, after it has opened; kill -9 of it
 *     secret      from here on the config has another secret, or the first
 *     script again    the script does its part; the store answers again
 *     reason=word the last reason has the word
 *     {sql}7      on a connection of the scenario's own; answers 7, or nothing
 * The key "3#7", a number, is kept for a short time.
 *
 * All else that a call returns is compared with earlier calls: claims, the
 * reply and its buffer, the time that is left. */
#ifndef SCRIPT_H
#define SCRIPT_H

#include "subject.h"

#include "../model/words.h"

#include <libpq-fe.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LEASE = 100000, KEPT = 300000, HOUR = 3600000, RESPONSE_MAX = 16 };
// DynamoDB knows time to the second: this much longer something may be left.
enum { LONGER_MS = 2100 };

static idem_config config = {
    .capacity = 100, .key_max = 40, .response_max = RESPONSE_MAX,
    .secret = { 0x31, 0x9c, 0x55, 0xe0, 0x27, 0xb8, 0x4d, 0x6a,
                0xd3, 0x0f, 0x82, 0x71, 0xc6, 0x1e, 0xa9, 0x44 },
    .lease_ms = LEASE, .retention_ms = HOUR, .senders = 8 };

// What is known of a key
typedef struct known {
    int      named;
    char     name[CALL_ID];
    idem_claim claim[2];            // the last, and the one before
    uint32_t reserved, retention;
    int64_t  until;                 // in ms of the scenario
    int      status, undelivered;
    size_t   len;                   // of the response
    char     response[RESPONSE_MAX];
    int32_t  code;
} known;

// What the processes of a scenario share
typedef struct trial {
    int      passed, failed, differs;
    uint64_t last, forgotten;     // tokens; of the RAM before
    int64_t  now;
    known    keys[32];
} trial;

static trial *current;
static const char *place, *running, *at = "";   // of the scenario; it; the word
static PGconn *transaction;
static int answered;                // by the latest call

/* The first failure of a trial: what was asked, and why the rest of the line was
   run in vain. */
static void print_failure(const char *what)
{
    if (__atomic_load_n(&current->failed, __ATOMIC_SEQ_CST) > 1)
        return;
    fprintf(stderr, "%s: %s\n    asked: %.*s\n    answered: %s\n"
                    "    demanded: %s\n    before \"%s\"\n",
            place, running, (int)strcspn(at, " "), at, answer_name(answered),
            what, at);
}

static void check(int holds, const char *what)
{
    __atomic_add_fetch(holds ? &current->passed : &current->failed, 1,
                       __ATOMIC_SEQ_CST);
    if (!holds)
        print_failure(what);
}

#define CHECK(what) check((what) ? 1 : 0, #what)

static trial *make_trials(size_t count)
{
    void *shared = mmap(NULL, count * sizeof(trial), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (shared == MAP_FAILED)
        exit(2);
    return (trial *)shared;
}

/* Holds a result against the answers that are allowed. */
static void judge(const subject *s, int result, const call *c)
{
    int otherwise = c->what == 'B' ? IDEM_EXECUTE
                    : c->what == 'U' ? IDEM_DONE : IDEM_OK;
    char text[400];

    snprintf(text, sizeof text, "%s; %s",
             c->answers ? "an answer that the word allows"
                        : answer_name(otherwise), s->f.reason);
    answered = result;
    check(call_allows(c, result, otherwise), text);
    if (result < 0 && subject_is_fleet(s))
        CHECK(*s->f.reason);
}

static known *know(const call *w)
{
    known *k = current->keys;

    while (k->named && (strlen(k->name) != w->name_len ||
                        memcmp(k->name, w->name, w->name_len) != 0))
        k++;
    if (!k->named) {
        k->named = 1;
        memcpy(k->name, w->name, w->name_len);
        k->claim[1].token = 12345;
        k->claim[1].slot = 1;
    }
    return k;
}

/* ------------------------------------------------------------------- calls */

/* The request of a word; its scope and key stand one after the other in `id`,
   as idem_find writes them. */
static idem_request request_of(const call *w, char id[CALL_ID])
{
    static const char *const payloads[] = { "5 ml", "6 ml", "5 ml ", "" };
    idem_request rq = call_names_key(w, "pump", id);

    rq.lease_ms = w->lease;
    rq.age_ms = w->age;
    rq.retention_ms = w->retention ? w->retention : rq.sequence ? KEPT : 0;
    rq.response_size = (uint16_t)w->reserve;
    rq.key_len = w->both ? 4 : rq.key_len;
    rq.has_fingerprint = w->payload > 3;        // large ones
    rq.fingerprint = UINT64_MAX - w->payload;
    rq.payload = w->payload > 3 ? "" : payloads[w->payload];
    rq.payload_len = strlen((const char *)rq.payload);
    return rq;
}

/* Something that ends at `end` has `ms` left. */
static void check_left(int64_t ms, int64_t end)
{
    int64_t left = end - current->now;

    CHECK(ms <= (left > 0 ? left + LONGER_MS : 0));
    CHECK(left <= 0 || ms > (left > 4 * LEASE ? left / 2 : 0));
}

static int is_granted(int answer)
{
    return answer == IDEM_EXECUTE || answer == IDEM_RECOVER ||
           answer == IDEM_UNCERTAIN;
}

static void check_claim(known *k, const idem_claim *claim, int answer)
{
    CHECK((claim->token != 0) == is_granted(answer));
    if (!claim->token)
        return;
    // DynamoDB has tokens for each key.
    CHECK(claim->token > (subject_kind(place) == DYNAMODB ? k->claim[0].token
                                                          : current->last));
    CHECK(!current->forgotten || claim->token <= current->forgotten);
    CHECK(answer == IDEM_UNCERTAIN || claim->attempt ==
          (answer == IDEM_RECOVER ? k->claim[0].attempt + 1 : 1));
    current->last = claim->token;
    k->claim[1] = k->claim[0];
    k->claim[0] = *claim;
}

/* A reply has the outcome, or nothing; the buffer was full of x. */
static void check_reply(const known *k, const idem_reply *r,
                        const idem_request *rq, int has_outcome)
{
    const char *buffer = (const char *)rq->buffer;
    size_t len = has_outcome && k->len <= rq->buffer_size ? k->len : 0;

    check(!memcmp(buffer, k->response, len),
          "S2, S3: the response is, byte for byte, what was recorded");
    CHECK(len == RESPONSE_MAX || buffer[len] == 'x');
    CHECK(r->response_len == (has_outcome ? k->len : 0));
    CHECK(r->status == (has_outcome ? k->status : 0));
    CHECK(r->code == (has_outcome ? k->code : 0));
    CHECK(!has_outcome || r->claim.token == k->claim[0].token);
    CHECK(r->age_ms < HOUR);
}

/* What a claim means for the key: if it is granted. */
static void claimed(known *k, const idem_request *rq)
{
    uint32_t lease = rq->lease_ms ? rq->lease_ms : config.lease_ms;

    k->status = IDEM_IN_PROGRESS;
    k->until = current->now + lease;
    k->retention = rq->retention_ms ? rq->retention_ms : config.retention_ms;
    k->reserved = rq->response_size ? rq->response_size : RESPONSE_MAX;
}

/* The outcome of a claim: another for each, of bytes that want quoting. */
static idem_outcome outcome_of(const call *w, const known *k,
                               const idem_claim *c)
{
    static char bytes[RESPONSE_MAX + 1] = { 0, '\'', '\\', '\xFF', '\n', 0 };
    idem_outcome o = { .response = w->null ? NULL : bytes,
                       .response_len = w->len == AUTO ? 8 : w->len,
                       .failed = (uint8_t)w->failed,
                       .confirm = (uint8_t)w->confirm };

    o.state = w->state == NONE ? NULL : "s";
    o.state_len = w->state != NONE;
    bytes[6] = (char)c->attempt;
    bytes[7] = (char)(k - current->keys);
    o.code = INT32_MIN + bytes[7] + 32 * (int32_t)(c->attempt - 1);
    return o;
}

/* Such an outcome is there now. */
static void finished(known *k, const idem_outcome *o)
{
    memcpy(k->response, o->response, o->response_len);
    k->len = o->response_len;
    k->code = o->code;
    k->status = o->failed ? IDEM_FAILED : IDEM_COMPLETED;
    k->undelivered = o->confirm;
    k->until = current->now + k->retention;
}

static int do_complete(subject *s, const call *w, known *k)
{
    const idem_claim *c = &k->claim[w->old];
    idem_outcome o = outcome_of(w, k, c);
    int result = w->within == NONE
                     ? SUBJECT(s, complete, c, &o)
                     : fleet_complete_in(
                           &s->f, w->within ? transaction : NULL, c, &o);

    if (result == IDEM_OK || result == IDEM_E_STORAGE)  // then it may be there
        finished(k, &o);
    return result;
}

/* Lets the script do its part. */
static int do_script(void)
{
    char line[8];

    puts("now");
    fflush(stdout);
    return fgets(line, sizeof line, stdin) ? IDEM_OK : IDEM_E_STORAGE;
}

typedef struct running_word {
    const call *w;
    known    *k;
    int      called;
} running_word;

/* What is recorded of an outcome that is refused */
static const idem_outcome mistaken = { .response = "", .failed = 1,
                                       .code = IDEM_CODE_INVALID };

static int is_mistaken(const idem_outcome *o)
{
    return o->response_len > RESPONSE_MAX || !o->response || o->state;
}

static int handler(idem_job *job)
{
    running_word *r = (running_word *)job->ctx;

    r->called++;
    if (r->w->script)
        do_script();
    check_claim(r->k, job->claim, job->answer);
    claimed(r->k, job->request);
    job->outcome = outcome_of(r->w, r->k, job->claim);
    if (r->w->back || r->w->keep)
        return r->w->keep ? IDEM_CANNOT_TELL : IDEM_NOT_DONE;
    finished(r->k, is_mistaken(&job->outcome) ? &mistaken : &job->outcome);
    return IDEM_HANDLED;
}

static sigjmp_buf asserted;

static void on_abort(int number)
{
    (void)number;
    siglongjmp(asserted, 1);
}

static int do_run(subject *s, idem_reply *reply, const idem_request *rq,
                  running_word *r)
{
    subject_tick = s->now;
    signal(SIGABRT, on_abort);
    if (sigsetjmp(asserted, 1))
        return IDEM_MORE;
    return subject_is_fleet(s)
               ? fleet_run(&s->f, reply, rq, handler, r)
               : idem_run(&s->table, reply, rq, handler, r, subject_now);
}

/* A begin, or all of a run. */
static int do_asked(subject *s, const call *w, known *k)
{
    char id[CALL_ID], buffer[RESPONSE_MAX];
    idem_request rq = request_of(w, id);
    idem_claim claim;
    idem_reply reply;
    running_word r = { w, k, 0 };
    int runs = w->what == 'U', answer;

    rq.buffer = buffer;
    rq.buffer_size = w->buffer < RESPONSE_MAX ? w->buffer : RESPONSE_MAX;
    memset(buffer, 'x', sizeof buffer);
    answer = runs ? do_run(s, &reply, &rq, &r)
                  : SUBJECT(s, begin, &claim, &reply, &rq);
    answered = answer;
    CHECK(!runs || r.called == (answer == IDEM_DONE ||
                                answer == IDEM_RELEASED || w->called));
    if (!runs)
        check_claim(k, &claim, answer);
    if ((is_granted(answer) && !runs) || answer == IDEM_E_STORAGE || w->late)
        claimed(k, &rq);                // or may have been
    k->claim[0].attempt += w->late;
    if (answer == IDEM_BUSY)
        check_left(reply.retry_after_ms, k->until);
    check_reply(k, &reply, &rq, answer == IDEM_REPLAY || answer == IDEM_DONE);
    return answer;
}

/* What is shown of a key is what is known. */
static void check_info(const call *w, const known *k, const idem_info *e)
{
    char id[CALL_ID];
    idem_request rq = request_of(w, id);
    int over = k->status != IDEM_IN_PROGRESS;

    CHECK(e->scope_len == rq.scope_len && e->key_len == rq.key_len);
    CHECK(!memcmp(e->id, id, rq.scope_len + rq.key_len));
    CHECK(e->epoch == rq.epoch && e->sequence == rq.sequence);
    CHECK(e->status == k->status && e->attempts == k->claim[0].attempt);
    CHECK(e->response_len == (over ? k->len : k->reserved));
    CHECK(e->code == (over ? k->code : 0));
    CHECK(e->claim.token == (over ? k->claim[0].token : 0));
    CHECK(e->undelivered == (over && k->undelivered) && e->age_ms < HOUR);
    check_left(e->left_ms, k->until);
}

static int do_looked(subject *s, const call *w, known *k)
{
    static char id[CALL_ID];
    static idem_info pending = { .id = id, .id_size = sizeof id };
    idem_info e = { .id = id, .id_size = sizeof id };
    char key[CALL_ID];
    idem_request rq = request_of(w, key);
    int result;

    if (w->what == FIRST)
        return memset(&pending.claim, 0, sizeof pending.claim), IDEM_OK;
    result = w->what == 'G' ? SUBJECT(s, find, &e, &rq)
                            : SUBJECT(s, pending, &pending);
    if (result == IDEM_OK)
        check_info(w, k, w->what == 'G' ? &e : &pending);
    return result;
}

static int do_delivered(subject *s, const call *w, known *k)
{
    const idem_claim *c = &k->claim[w->old];
    int result = subject_is_fleet(s) ? fleet_delivered(&s->f, c)
                                     : idem_delivered(&s->table, c);

    if (result == IDEM_OK)
        k->undelivered = 0;
    return result;
}

static int do_renew(subject *s, const call *w, known *k)
{
    int result = SUBJECT(s, renew, &k->claim[w->old], w->lease);
    int64_t end = current->now + (w->lease ? w->lease : config.lease_ms);

    if (result == IDEM_OK && k->until < end)
        k->until = end;
    return result;
}

/* -------------------------------------------------- processes, and the rest */

static int do_open(subject *s)
{
    int result = subject_open(s, place, &config);

    if (s->kind == RAM && current->last) {
        current->forgotten = current->last;
        current->last = 0;
    }
    return result;
}

static int do_wait(subject *s, uint32_t ms)
{
    subject_wait(s, ms);
    current->now += ms;
    return IDEM_OK;
}

/* Waits for a store that was away, as long as it takes. */
static int do_again(subject *s)
{
    idem_request rq = { .key = "w", .key_len = 1 };
    idem_info e = { .id = NULL };

    for (int i = 0; i < 1200; i++) {
        if (fleet_find(&s->f, &e, &rq) != IDEM_E_STORAGE)
            break;
        usleep(100000);
    }
    return IDEM_OK;
}

static void do_sql(const subject *s)
{
    char sql[200];
    size_t len = strcspn(at, "}");
    PGresult *r;

    if (!transaction)
        transaction = PQconnectdb(s->f.url);
    snprintf(sql, sizeof sql, "%.*s", (int)len - 1, at + 1);
    r = PQexec(transaction, sql);
    CHECK(PQresultStatus(r) == PGRES_COMMAND_OK ||
          PQresultStatus(r) == PGRES_TUPLES_OK);
    CHECK((PQntuples(r) ? atoi(PQgetvalue(r, 0, 0)) : 0) == atoi(at + len + 1));
    PQclear(r);
}

static void do_reason(const subject *s)
{
    const char *word = at + strlen("reason=");
    char text[CALL_ID];

    snprintf(text, sizeof text, "%.*s", (int)strcspn(word, " "), word);
    check(strstr(s->f.reason, text) != NULL, s->f.reason);
}

static int do_call(subject *s, const call *w, known *k)
{
    switch (w->what) {
    case 'B': case 'U': return do_asked(s, w, k);
    case 'C': case 'c': return do_complete(s, w, k);
    case 'R': return SUBJECT(s, release, &k->claim[w->old]);
    case 'N': return do_renew(s, w, k);
    case 'D': return do_delivered(s, w, k);
    case 'G': case 'o': case FIRST: return do_looked(s, w, k);
    case 'L': return do_wait(s, LEASE);
    case WAIT:
        return do_wait(s, (uint32_t)strtoul(w->name, NULL, 10));
    case OPEN: return do_open(s);
    case CLOSE: return subject_close(s), IDEM_OK;
    case REOPEN: return subject_close(s), do_open(s);
    case SECRET: return config.secret[0] ^= 1, IDEM_OK;
    case SCRIPT: return do_script();
    case AGAIN: return do_again(s);
    }
    call_unreadable(at);
    return 0;
}

/* The other process: the word is the same text in it. */
static pid_t other;
static int to_other[2], from_other[2];

static void do_word(subject *s);

static void be_other(void)
{
    subject mine;

    close(to_other[1]);
    while (read(to_other[0], &at, sizeof at) == (ssize_t)sizeof at) {
        do_word(&mine);
        if (write(from_other[1], "!", 1) != 1)
            break;
    }
    subject_close(&mine);
    _exit(0);
}

static void do_other(void)
{
    const char *theirs = at + 1;
    char done;

    if (!other) {
        if (pipe(to_other) != 0 || pipe(from_other) != 0)
            exit(2);
        other = fork();
        if (other == 0)
            be_other();
    }
    CHECK(write(to_other[1], &theirs, sizeof theirs) ==
          (ssize_t)sizeof theirs);
    CHECK(read(from_other[0], &done, 1) == 1);
}

/* Ends the other process, if there is one; it must agree, or not know. */
static void end_other(int how)
{
    int status;

    if (!other)
        return;
    if (how)
        kill(other, how);
    close(to_other[1]);
    waitpid(other, &status, 0);
    CHECK(how ? WIFSIGNALED(status) : status == 0);
    close(from_other[0]);
    other = 0;
}

/* True if the word `at` begins so. */
static int at_is(const char *name)
{
    return !strncmp(at, name, strlen(name));
}

/* Runs the word `at`. */
static void do_word(subject *s)
{
    const char *text = at;
    call w;

    if (*at == '@') {
        do_other();
    } else if (*at == '{') {
        do_sql(s);
    } else if (at_is("reason=")) {
        do_reason(s);
    } else if (at_is("kill")) {
        end_other(SIGKILL);
    } else {
        w = call_read_any(&text);
        w.old |= w.what == 'c';
        judge(s, do_call(s, &w, know(&w)), &w);
    }
}

/* Runs a line, of a subject that is open unless the line closes it. */
static void do_line(subject *s, const char *line)
{
    for (at = line; *at && (!at_is("reopen") || s->kind != RAM);
         at += strspn(at, " ")) {
        do_word(s);
        at += *at == '{' ? strcspn(at, "}") : 0;
        at += strcspn(at, " ");
    }
    end_other(0);
}

#endif
