/* SPDX-License-Identifier: 0BSD */
/* Scenarios of a subject: lines of words, each a call and what it must answer.
 *
 *     "Ba Ba,payload=1:mismatch L Ba:recover ca:fenced Ca"
 *
 * A word is a letter, a key, and what else is to be said of it:
 *     Ba          begin: payload lease retention age reserve buffer both; late:
 *                 it is granted, but the answer comes late
 *     Ca Ra Na    complete: len null failed confirm; release; renew: lease
 *     ca ra na da the same, and delivered, with the claim before the last; of a
 *                 key without, D has no token and d one that was never given
 *     Ia ia       complete within `transaction`; within none
 *     Ua          run: back, the handler's result; called, where the answer
 *                 does not say so; script, which does its part in it; and what
 *                 a begin and a completion take
 *     Ga          look at the key
 *     Da Pa p     delivered; the next undelivered is a; look from the first on
 *     L T9        a lease passes; 9 ms
 *     O Q o       open; close; both, which RAM does not survive: it ends here
 *     @word       another process does it, which has to open, too
 *     K           the other process is killed (kill -9)
 *     X           from here on the config has another secret, or the first
 *     ! Wa        the script does its part; the store answers again
 *     ?word       the last reason has the word
 *     {sql}7      on a connection of the scenario's own; answers 7, or nothing
 * Behind a colon is the answer, or several: ":ok/fenced".  If there is none it
 * is "execute" of B, "done" of U, and "ok" of all others.  The key "3#7" is a
 * number, 7 of epoch 3, kept for a short time; "ab.c" the key "c" of the scope
 * "ab"; ~ is a NUL in it, ^ a colon.
 *
 * All else that a call returns is compared with earlier calls: claims, the
 * reply and its buffer, the time that is left. */
#ifndef SCENARIO_H
#define SCENARIO_H

#include "subject.h"

#include <libpq-fe.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LEASE = 100000, KEPT = 300000, HOUR = 3600000, RESPONSE_MAX = 16,
       ID_SIZE = 48 };
// DynamoDB knows time to the second: so much longer something may be left.
enum { LONGER_MS = 2100 };

static idem_config config = {
    .capacity = 100, .key_max = 40, .response_max = RESPONSE_MAX,
    .secret = { 0x31, 0x9c, 0x55, 0xe0, 0x27, 0xb8, 0x4d, 0x6a,
                0xd3, 0x0f, 0x82, 0x71, 0xc6, 0x1e, 0xa9, 0x44 },
    .lease_ms = LEASE, .retention_ms = HOUR, .senders = 8 };

// What is known of a key
typedef struct known {
    char     name[ID_SIZE];
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

static void check(int holds, const char *what)
{
    __atomic_add_fetch(holds ? &current->passed : &current->failed, 1,
                       __ATOMIC_SEQ_CST);
    if (!holds)
        fprintf(stderr, "%s: %s: failed: %s; at \"%s\"\n", place, running, what,
                at);
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

/* ------------------------------------------------------------------- words */

typedef struct word {
    char     what;
    int      old;                   // the claim before the last is meant
    char     name[ID_SIZE];
    uint32_t payload, lease, retention, age, reserve, buffer, len, failed,
             confirm, null, back, both, called, late, script;
} word;

#define FIELD(name, alone) { #name, offsetof(word, name), alone }
static const struct {
    const char *name;
    size_t   at;
    uint32_t alone;                 // without a value
} fields[] = {
    FIELD(payload, 1), FIELD(lease, IDEM_LEASE_NONE), FIELD(retention, 0),
    FIELD(age, 1), FIELD(reserve, 1), FIELD(buffer, 0), FIELD(len, 0),
    FIELD(failed, 1), FIELD(confirm, 1), FIELD(null, 1), FIELD(back, 1),
    FIELD(both, 1), FIELD(called, 1), FIELD(late, 1), FIELD(script, 1) };

static const struct { const char *name; int answer; } answers[] = {
    { "ok", IDEM_OK }, { "execute", IDEM_EXECUTE }, { "recover", IDEM_RECOVER },
    { "uncertain", IDEM_UNCERTAIN }, { "done", IDEM_DONE },
    { "replay", IDEM_REPLAY }, { "busy", IDEM_BUSY },
    { "mismatch", IDEM_MISMATCH }, { "exhausted", IDEM_EXHAUSTED },
    { "old", IDEM_TOO_OLD }, { "released", IDEM_RELEASED },
    { "full", IDEM_E_FULL }, { "fenced", IDEM_E_FENCED },
    { "none", IDEM_E_NOT_FOUND }, { "large", IDEM_E_TOO_LARGE },
    { "storage", IDEM_E_STORAGE }, { "format", IDEM_E_FORMAT },
    { "refused", IDEM_E_ARG }, { "lock", IDEM_E_LOCK } };

enum { ANSWERS = sizeof answers / sizeof *answers,
       FIELDS = sizeof fields / sizeof *fields };

static void unreadable(void)
{
    fprintf(stderr, "no word: %s\n", at);
    exit(2);
}

/* True if `name` is what stands there, up to what ends it. */
static int stands(const char *name, const char *text)
{
    size_t len = strcspn(text, "=,:/ ");

    return strlen(name) == len && !strncmp(name, text, len);
}

/* Reads ",name=7" or ",name"; returns the rest. */
static const char *read_field(word *w, const char *text)
{
    size_t i = 0, len = strcspn(text + 1, "=,:/ ");
    char *end = (char *)text + 1 + len;

    while (i < FIELDS && !stands(fields[i].name, text + 1))
        i++;
    if (i == FIELDS)
        unreadable();
    *(uint32_t *)(void *)((char *)w + fields[i].at) =
        *end == '=' ? (uint32_t)strtoul(end + 1, &end, 10) : fields[i].alone;
    return end;
}

/* Reads the word `at`; returns its answers. */
static const char *read_word(word *w)
{
    const char *text = at + 1;
    size_t len = strcspn(text, ",: ");

    memset(w, 0, sizeof *w);
    w->old = strchr("crnd", *at) != NULL;
    w->what = (char)(w->old ? *at - 'a' + 'A' : *at);
    memcpy(w->name, text, len);
    w->buffer = RESPONSE_MAX;
    w->len = 8;
    for (text += len; *text == ',';)
        text = read_field(w, text);
    return *text == ':' ? text + 1 : *at == 'B' ? "execute "
                                      : *at == 'U' ? "done " : "ok ";
}

/* Holds a result against the answers that are allowed. */
static void judge(const subject *s, int result, const char *allowed)
{
    char text[400];
    size_t len = strcspn(allowed, " ");
    int holds = 0;

    for (const char *one = allowed; one < allowed + len;
         one += strcspn(one, "/ ") + 1)
        for (size_t i = 0; i < ANSWERS; i++)
            holds |= answers[i].answer == result &&
                     stands(answers[i].name, one);
    snprintf(text, sizeof text, "%.*s; it is \"%s\"; %s", (int)len, allowed,
             idem_text(result), s->f.reason);
    check(holds, text);
    if (result < 0 && subject_is_fleet(s))
        CHECK(*s->f.reason);
}

static known *know(const word *w)
{
    known *k = current->keys;

    while (*k->name && strcmp(k->name, w->name) != 0)
        k++;
    if (!*k->name) {
        strcpy(k->name, w->name);
        k->claim[1].token = 12345;
        k->claim[1].slot = 1;
    }
    return k;
}

/* ------------------------------------------------------------------- calls */

/* The request of a word; its scope and key stand one after the other in `id`,
   as idem_find writes them. */
static idem_request request_of(const word *w, char id[ID_SIZE])
{
    static const char *const payloads[] = { "5 ml", "6 ml", "5 ml ", "" };
    const char *dot = strchr(w->name, '.'), *key = dot ? dot + 1 : w->name;
    const char *number = strchr(key, '#');
    idem_request rq = { .scope = id, .lease_ms = w->lease, .age_ms = w->age,
                        .retention_ms = w->retention,
                        .response_size = (uint16_t)w->reserve };
    int scope_len = dot ? (int)(dot - w->name) : 4;
    size_t len = (size_t)snprintf(id, ID_SIZE, "%.*s%s", scope_len,
                                  dot ? w->name : "pump", number ? "" : key);

    for (size_t i = 0; i < len; i++)
        id[i] = (char)(id[i] == '~' ? 0 : id[i] == '^' ? ':' : id[i]);
    rq.scope_len = (size_t)scope_len;
    rq.key = id + rq.scope_len;
    rq.key_len = w->both ? 4 : len - rq.scope_len;
    if (number) {
        rq.epoch = (uint32_t)strtoul(key, NULL, 10);
        rq.sequence = (uint32_t)strtoul(number + 1, NULL, 10);
        rq.retention_ms = w->retention ? w->retention : KEPT;
    }
    rq.has_fingerprint = w->payload > 3;        // large ones
    rq.fingerprint = UINT64_MAX - w->payload;
    rq.payload = w->payload > 3 ? "" : payloads[w->payload];
    rq.payload_len = strlen((const char *)rq.payload);
    return rq;
}

/* Something that ends at `end` has so much left. */
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

    CHECK(!memcmp(buffer, k->response, len));
    CHECK(len == RESPONSE_MAX || buffer[len] == 'x');
    CHECK(r->response_len == (has_outcome ? k->len : 0));
    CHECK(r->status == (has_outcome ? k->status : 0));
    CHECK(r->code == (has_outcome ? k->code : 0));
    CHECK(!has_outcome || r->claim.token == k->claim[0].token);
    CHECK(r->age_ms < HOUR);
}

/* What a claim says of the key: if it is granted. */
static void claimed(known *k, const idem_request *rq)
{
    uint32_t lease = rq->lease_ms ? rq->lease_ms : config.lease_ms;

    k->status = IDEM_IN_PROGRESS;
    k->until = current->now + lease;
    k->retention = rq->retention_ms ? rq->retention_ms : config.retention_ms;
    k->reserved = rq->response_size ? rq->response_size : RESPONSE_MAX;
}

/* The outcome of a claim: another for each, of bytes that want quoting. */
static idem_outcome outcome_of(const word *w, const known *k,
                               const idem_claim *c)
{
    static char bytes[RESPONSE_MAX + 1] = { 0, '\'', '\\', '\xFF', '\n', 0 };
    idem_outcome o = { .response = w->null ? NULL : bytes,
                       .response_len = w->len, .failed = (uint8_t)w->failed,
                       .confirm = (uint8_t)w->confirm };

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

static int do_complete(subject *s, const word *w, known *k)
{
    const idem_claim *c = &k->claim[w->old];
    idem_outcome o = outcome_of(w, k, c);
    int result = w->what == 'C'
                     ? SUBJECT(s, complete, c, &o)
                     : fleet_complete_in(
                           &s->f, w->what == 'I' ? transaction : NULL, c, &o);

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
    const word *w;
    known    *k;
    int      called;
} running_word;

static int handler(idem_job *job)
{
    running_word *r = (running_word *)job->ctx;

    r->called++;
    if (r->w->script)
        do_script();
    check_claim(r->k, job->claim, job->answer);
    claimed(r->k, job->request);
    job->outcome = outcome_of(r->w, r->k, job->claim);
    if (!r->w->back)
        finished(r->k, &job->outcome);
    return (int)r->w->back;
}

static int do_run(subject *s, idem_reply *reply, const idem_request *rq,
                  running_word *r)
{
    subject_tick = s->now;
    return subject_is_fleet(s)
               ? fleet_run(&s->f, reply, rq, handler, r)
               : idem_run(&s->table, reply, rq, handler, r, subject_now);
}

/* A begin, or all of a run. */
static int do_asked(subject *s, const word *w, known *k)
{
    char id[ID_SIZE], buffer[RESPONSE_MAX];
    idem_request rq = request_of(w, id);
    idem_claim claim;
    idem_reply reply;
    running_word r = { w, k, 0 };
    int runs = w->what == 'U', answer;

    rq.buffer = buffer;
    rq.buffer_size = w->buffer;
    memset(buffer, 'x', sizeof buffer);
    answer = runs ? do_run(s, &reply, &rq, &r)
                  : SUBJECT(s, begin, &claim, &reply, &rq);
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

/* What an entry says is what is known. */
static void check_entry(const word *w, const known *k, const idem_entry *e)
{
    char id[ID_SIZE];
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

static int do_looked(subject *s, const word *w, known *k)
{
    static char id[ID_SIZE];
    static idem_entry pending = { .id = id, .id_size = sizeof id };
    idem_entry e = { .id = id, .id_size = sizeof id };
    char key[ID_SIZE];
    idem_request rq = request_of(w, key);
    int result;

    if (w->what == 'p')
        return memset(&pending.claim, 0, sizeof pending.claim), IDEM_OK;
    result = w->what == 'G' ? SUBJECT(s, find, &e, &rq)
                            : SUBJECT(s, pending, &pending);
    if (result == IDEM_OK)
        check_entry(w, k, w->what == 'G' ? &e : &pending);
    return result;
}

static int do_delivered(subject *s, const word *w, known *k)
{
    const idem_claim *c = &k->claim[w->old];
    int result = subject_is_fleet(s) ? fleet_delivered(&s->f, c)
                                     : idem_delivered(&s->table, c);

    if (result == IDEM_OK)
        k->undelivered = 0;
    return result;
}

static int do_renew(subject *s, const word *w, known *k)
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
static int do_again(subject *s, const word *w)
{
    char id[ID_SIZE];
    idem_request rq = request_of(w, id);
    idem_entry e = { .id = NULL };

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
    char text[ID_SIZE];

    snprintf(text, sizeof text, "%.*s", (int)strcspn(at + 1, " "), at + 1);
    check(strstr(s->f.reason, text) != NULL, s->f.reason);
}

static int do_call(subject *s, const word *w, known *k)
{
    switch (w->what) {
    case 'B': case 'U': return do_asked(s, w, k);
    case 'C': case 'I': case 'i': return do_complete(s, w, k);
    case 'R': return SUBJECT(s, release, &k->claim[w->old]);
    case 'N': return do_renew(s, w, k);
    case 'D': return do_delivered(s, w, k);
    case 'G': case 'P': case 'p': return do_looked(s, w, k);
    case 'L': return do_wait(s, LEASE);
    case 'T': return do_wait(s, (uint32_t)atoi(w->name));
    case 'O': return do_open(s);
    case 'Q': return subject_close(s), IDEM_OK;
    case 'o': return subject_close(s), do_open(s);
    case 'X': return config.secret[0] ^= 1, IDEM_OK;
    case '!': return do_script();
    case 'W': return do_again(s, w);
    }
    unreadable();
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

/* Tells the word `at`. */
static void do_word(subject *s)
{
    const char *allowed;
    word w;

    switch (*at) {
    case '@': do_other(); break;
    case 'K': end_other(SIGKILL); break;
    case '{': do_sql(s); break;
    case '?': do_reason(s); break;
    default:
        allowed = read_word(&w);
        judge(s, do_call(s, &w, know(&w)), allowed);
    }
}

/* Tells a line, of a subject that is open unless it says so. */
static void do_line(subject *s, const char *line)
{
    for (at = line; *at && (*at != 'o' || s->kind != RAM);
         at += strspn(at, " ")) {
        do_word(s);
        at += *at == '{' ? strcspn(at, "}") : 0;
        at += strcspn(at, " ");
    }
    end_other(0);
}

#endif
