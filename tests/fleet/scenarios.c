/* SPDX-License-Identifier: 0BSD */
/* Scenarios (script.h) of a fleet, and of what it is compared with:
 *
 *     scenarios promises PLACE...
 *
 * the promises of idem.h that make sense for a fleet, on each place
 * (subject.h): each in its own process and on its own data, the places at the
 * same time.  Prints a row for each: its name, and for each place "yes", or the
 * letter of the note in README.md of examples/fleet that explains the
 * difference.
 *
 *     scenarios LUCK URL
 *
 * one kind of fault, for faults.sh, which makes it: where that must act, this
 * prints "now" and waits for a line.  Both print in the end how many checks
 * passed, and exit 1 if one did not. */
#define _DEFAULT_SOURCE
#include "script.h"

#include <sys/socket.h>
#include <sys/syscall.h>

static subject s;

/* ---------------------------------------------------------------- promises */

enum { RACERS = 4, RACE_KEYS = 25 };

#define ON(kind) (1 << (kind))
#define TABLES (ON(RAM) | ON(JOURNAL))
#define FLEETS (ON(REDIS) | ON(POSTGRES) | ON(DYNAMODB))

#define MAX_KEY "012345678901234567890123456789012345"     /* with "pump" */

static const struct scenario {
    const char *promise, *name, *line;
    struct { int kinds; char note; const char *line; } but[2];
} scenarios[] = {
    { "S1", "a claim that is not current changes nothing",
      "Ba L Ba:recover ca:fenced Ra,old:fenced Na,old,lease=3600000:fenced "
      "Ba:busy Ca Ca,len=3:fenced Ra:fenced Na:fenced ca:fenced Cz:fenced "
      "Rz:fenced Ba:replay Bb Rb Bb cb:fenced Cb", { { 0 } } },

    { "S1", "two processes share it",
      "@open @Ba Ba:busy L Ba:recover Na,lease=1000000 @ca:fenced "
      "@Na,old:fenced @Ra,old:fenced @Ba:busy Ca @Ba:replay",
      { { ON(JOURNAL), 'e', "@open:lock" },
        { ON(RAM), 'e', "Ba @open @Ba" } } },          // its own memory

    { "S1", "of many at once one executes", NULL, { { TABLES, 'e', "" } } },

    { "S1", "tokens grow over restarts", "Ba Ca Bb Cb Bc Cc close open Bd Cd",
      { { ON(RAM), 'a', "Ba Ca Bb Cb Bc Cc close open Bd Cd" },
        { ON(DYNAMODB), 'g', "Ba Ca Bb Cb Bc Cc close open Bd Cd Be Re "
          "Be" } } },

    { "S2", "an outcome is replayed byte for byte",
      "Ba Ba:busy Ca Ba:replay Ba:replay Ba,buffer=7:replay Bb Cb,failed "
      "Bb:replay Bc Cc,len=0 Bc:replay Bd Cd,len=16 Bd:replay", { { 0 } } },

    { "S2", "retention ends",
      "Ba,retention=120000 Ca Ga wait120000 Ga:none Ba,payload=1", { { 0 } } },

    { "S3", "keys and scopes are kept apart",
      "Bab.c Cab.c Ga.bc:none Ba.bc,payload=1 Ca.bc G.abc:none B.abc C.abc "
      "Gabc.c:none Babc.c Cabc.c Gab.C:none Bab.C Cab.C Gab.c^:none Bab.c^ "
      "Cab.c^ Gab.c':none Bab.c' Cab.c' Bab.c~ Bab.c:replay Gab.c~ Ga.bc",
      { { 0 } } },

    { "S3", "another payload is refused in every state",
      "Ba Ba,payload=1:mismatch Ba,payload=2:mismatch L "      // in progress
      "Ba,payload=1:mismatch Ba:recover Ba,payload=1:mismatch " // interrupted
      "L Ba:recover L Ba:exhausted Ba,payload=1:mismatch "
      "Bb Cb Bb,payload=1:mismatch Bc Cc,failed Bc,payload=1:mismatch "
      "Bd Rd Bd,payload=1 "                         // given back: unknown
      "Be,payload=4 Ce Be,payload=4:replay Be,payload=5:mismatch", { { 0 } } },

    { "S4", "an interrupted attempt is recover",
      "Ba L Ba:recover Ba:busy L Ba:recover Ra Ba "
      "Bb,retention=120000 L wait120000 Bb,retention=120000 "
      "L Cb Bb:replay", { { 0 } } },        // late, but nobody has taken over

    { "S4", "a killed process is survived",
      "close @open @Ba @Ca,confirm @Bb kill open Ba:replay oa Bb:busy L "
      "Bb:recover",
      { { ON(JOURNAL), 0,
          "close @open @Ba @Ca,confirm @Bb kill open Ba:replay oa Bb:recover" },
        { ON(RAM), 'a', "close @open @Ba @Ca,confirm @Bb kill open Ba Bb" } } },

    { "S4", "a number is never executed again",
      "B1#7 B1#7:busy B1#7,payload=3:mismatch G1#7 B1#7,both:refused "
      "B~~~\1~~~\7 B\7~~~\1~~~ B1#8 C1#8 B1#8:replay B1#9 R1#9 L B1#7:recover "
      "L wait300000 B1#7:old B1#8:old B1#9 C1#9 "        // that was given back
      "B4294967295#4294967295 reopen B1#8:old", { { 0 } } },

    { "S4", "what is unknown and too old is refused",
      "L Ba Ca Ba,age=3600000:replay Bb,age=3600000:old "
      "Bb,retention=7200000,age=7200000:old Bb,age=1", { { 0 } } },

    { "S4", "memory reaches back to its start", "Ba,age=1800000:old",
      { { ON(JOURNAL), 'c', "Ba,age=1800000" } } },

    { "S4", "what is below an old number is too old",
      "B#10 C#10 B#20 C#20 B#30 C#30 B#25 R#25 wait300000 B#31 B#30:old "
      "Bvalve.#5 B#5:old B#25:old B#29:old",
      { { ON(DYNAMODB), 'f', "B#10 C#10 B#20 C#20 B#30 C#30 B#25 R#25 "
          "wait300000 "
          "B#31 B#30:old Bvalve.#5 B#5" } } },

    { "S4", "a newer epoch ends the older",
      "B1#6 C1#6 B1#7 B2#1 B1#6:replay B1#8:old B1#7:old C1#7:fenced "
      "N1#7:fenced R1#7:fenced Bvalve.1#1",
      { { ON(DYNAMODB), 'f', "B1#6 C1#6 B1#7 B2#1 B1#6:replay B1#8 C1#7" } } },

    { "S6", "a lease is lengthened and never shortened",
      "Ba Na,lease=600000 Na,lease=1 L Ba:busy Ca Ba:replay", { { 0 } } },

    { "S7", "a call that fails changed nothing",
      "B:refused G:refused B" MAX_KEY "6:large G" MAX_KEY "6:large "
      "G" MAX_KEY ":none B" MAX_KEY " Ba,lease=536870913:refused "
      "Ba,retention=2592000001:refused Ba,reserve=17:large Ga:none "
      "Ba,reserve=4 Ca,len=17:large Ca,len=5:large Ca,len=1,null:refused "
      "Na,lease=536870913:refused Ga Ca,len=4 Ba:replay", { { 0 } } },

    { "L2", "attempts that are all interrupted end",
      "Ba L Ba:recover L Ba:recover L Ba:exhausted Ba:exhausted Bb",
      { { 0 } } },

    { "L2", "a lease outlives its killed holder",
      "close @open @Ba kill open Ba:busy",
      { { ON(JOURNAL), 'b', "close @open @Ba kill open Ba:recover" },
        { ON(RAM), 'b', "close @open @Ba kill open Ba" } } },

    { "L2", "a lease may be without end", "Ba,lease",
      { { FLEETS, 'd', "Ba,lease:refused" } } },

    { "", "an outcome is listed until it is delivered",
      "B#1 C#1 o:none B1 C1,confirm wait1 B2 C2,confirm wait1 B3 C3,confirm "
      "wait1 B4 C4 B5 o1 o2 o3 o:none D1 D1 Dz,old:none Dz:none D5:none first "
      "o2 D2 o3 D3 first o:none B1:replay "             // after one delivered
      "B6,retention=120000 C6,len=0,confirm first o6 wait120000 first "
      "o:none", { { 0 } } },

    { "", "a key is described", "Ga:none Ba Ga L Ga Ca Ga", { { 0 } } },

    { "", "one handler runs on all",
      "Ua,back:released Ua Ua:replay Ub,keep,called:busy Ub:busy L "
      "Ub,keep,called:busy L Ub Ub:replay", { { 0 } } }
};
enum { SCENARIOS = sizeof scenarios / sizeof *scenarios };

/* Begins all keys, as the others do at the same time. */
static void race(int executed[RACE_KEYS])
{
    uint64_t last = 0;

    CHECK(subject_open(&s, place, &config) == IDEM_OK);
    for (int i = 0; i < RACE_KEYS; i++) {
        char key = (char)('a' + i);
        idem_request request = { .key = &key, .key_len = 1 };
        idem_reply reply;
        idem_outcome outcome = { .code = 7 };
        idem_claim claim;
        int answer = SUBJECT(&s, begin, &claim, &reply, &request);
        if (answer != IDEM_EXECUTE) {
            CHECK(answer == IDEM_BUSY || answer == IDEM_REPLAY);
            continue;
        }
        CHECK(claim.token > last || s.kind == DYNAMODB);
        last = claim.token;
        __atomic_add_fetch(&executed[i], 1, __ATOMIC_SEQ_CST);
        CHECK(SUBJECT(&s, complete, &claim, &outcome) == IDEM_OK);
    }
    subject_close(&s);
    _exit(0);
}

/* A store that none has opened: they make it at the same time, too. */
static void races(void)
{
    int *executed = (int *)(void *)make_trials(1), status;

    for (int i = 0; i < RACERS; i++)
        if (fork() == 0)
            race(executed);
    for (int i = 0; i < RACERS; i++)
        CHECK(wait(&status) > 0 && status == 0);
    for (int i = 0; i < RACE_KEYS; i++)
        CHECK(executed[i] == 1);
}

/* Runs one at a place that no other uses. */
static void run(const char *all, int number)
{
    const struct scenario *scenario = &scenarios[number];
    const char *line = scenario->line;
    static char mine[600];

    snprintf(mine, sizeof mine, "%s%s%d", all,
             strstr(all, "://") ? "#case_" : ".", number);
    place = mine;
    running = scenario->name;
    for (int i = 0; i < 2; i++)
        if (scenario->but[i].kinds & ON(subject_kind(all))) {
            line = scenario->but[i].line;
            current->differs = scenario->but[i].note;
        }
    if (line) {
        do_line(&s, "open");
        if (current->failed)
            exit(1);
        do_line(&s, line);
        subject_close(&s);
    } else {
        races();
    }
    exit(0);
}

static void print_trial(const trial *of)
{
    if (of->failed)
        printf(" | FAILED");
    else if (of->differs)
        printf(" | no (%c)", of->differs);
    else
        printf(" | yes");
}

/* All of a place, one after the other: they move its clock. */
static void run_all(const char *all, trial *trials, int step)
{
    int status, failed = 0;

    for (int i = 0; i < SCENARIOS; i++) {
        current = &trials[i * step];
        if (fork() == 0)
            run(all, i);
        failed |= wait(&status) < 0 || status != 0;
    }
    exit(failed);
}

/* The last of the trials counts for all. */
static void promises(int count, char **places)
{
    trial *all = make_trials((size_t)(SCENARIOS * count + 1)), *sum;
    int status;

    sum = &all[SCENARIOS * count];
    for (int i = 0; i < count; i++)
        if (fork() == 0)
            run_all(places[i], &all[i], count);
    while (wait(&status) > 0)
        sum->failed += status != 0;
    for (current = all; current < sum; current++) {
        const struct scenario *scenario = &scenarios[(current - all) / count];
        if ((current - all) % count == 0)
            printf("| %s%s| %s", scenario->promise, *scenario->promise ? " " : "",
                   scenario->name);
        print_trial(current);
        sum->passed += current->passed;
        sum->failed += current->failed;
        if ((current - all) % count == count - 1)
            puts(" |");
    }
}

/* -------------------------------------------------------------------- luck */

static void is_refused(const char *url, const idem_config *c, const char *why)
{
    CHECK(fleet_open(&s.f, url, c) == IDEM_E_ARG);
    CHECK(strstr(s.f.reason, why));
}

static void arguments(void)
{
    static const char *const urls[] = { "", "mysql://host", "redis:/x",
        "redis://", "redis://:80", "redis://user@host", "redis://[::1",
        "redis://host:0", "redis://host:70000", "redis://host:6379x",
        "redis://host:4294973675", "redis://a:% 4@host",
        "redis://host/db", "redis://a:%4@host", "redis://a:%zz@host",
        "redis://a:%00@host", "redis://host#", "redis://host#Upper",
        "postgres:///x#a'b", "postgres://a:b@[::1/c", "postgres://a:b%zz@c",
        "postgres://a:b/c@host/d", "postgres://a:b@c@host/d",
        "redis://host#0123456789012345678901234567890123456789x" };
    idem_config quota = config, endless = config, no_keys = config;
    idem_config hasty = config;

    for (size_t i = 0; i < sizeof urls / sizeof *urls; i++)
        is_refused(at = urls[i], &config, "not a URL");
    quota.quota = 1;
    is_refused(place, &quota, "quota");
    endless.lease_ms = IDEM_LEASE_NONE;
    is_refused(place, &endless, "lease_ms");
    hasty.lease_ms = 999;
    is_refused(place, &hasty, "lease_ms");
    is_refused("rediss://host", &config, "TLS");
    no_keys.key_max = 0;
    is_refused(place, &no_keys, "key_max");
}

enum { OPENERS = 4, OPENINGS = 50 };

static void *open_often(void *failed)
{
    for (int i = 0; i < OPENINGS; i++) {
        fleet f;
        if (fleet_open(&f, place, &config) != IDEM_OK)
            __atomic_add_fetch((int *)failed, 1, __ATOMIC_SEQ_CST);
        fleet_close(&f);
    }
    return NULL;
}

/* A fleet belongs to one thread, but a program may have many. */
static void threads(void)
{
    pthread_t thread[OPENERS];
    int failed = 0;

    for (int i = 0; i < OPENERS; i++)
        CHECK(!pthread_create(&thread[i], NULL, open_often, &failed));
    for (int i = 0; i < OPENERS; i++)
        pthread_join(thread[i], NULL);
    CHECK(!failed);
}

enum { KEY_MOST = 255, RESPONSE_MOST = UINT16_MAX, SMALL_BUFFER = 8192 };

/* Sockets as those of a network, which take no more than a part of a large
   request while nobody reads. */
int socket(int domain, int type, int protocol)
{
    int size = SMALL_BUFFER;
    int fd = (int)syscall(SYS_socket, domain, type, protocol);

    if (fd >= 0)
        setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
    return fd;
}

/* The longest key and response, of all bytes; and the store falls silent when
   it is to take such a response. */
static void largest(void)
{
    static uint8_t key[KEY_MOST], response[RESPONSE_MOST], got[RESPONSE_MOST];
    idem_request request = { .scope = key, .scope_len = 100, .key = key + 100,
                             .key_len = KEY_MOST - 100, .payload = response,
                             .payload_len = sizeof response, .buffer = got,
                             .buffer_size = sizeof got };
    idem_outcome outcome = { .response = response,
                             .response_len = sizeof response };
    idem_claim claim;
    idem_reply reply;

    config.key_max = KEY_MOST;
    config.response_max = RESPONSE_MOST;
    for (int i = 0; i < RESPONSE_MOST; i++)
        response[i] = key[i % KEY_MOST] = (uint8_t)(i % KEY_MOST);
    CHECK(fleet_open(&s.f, place, &config) == IDEM_OK);
    for (int silent = 0; silent < 2; silent++) {
        key[0] = (uint8_t)('a' + silent);
        CHECK(fleet_begin(&s.f, &claim, &reply, &request) == IDEM_EXECUTE);
        if (silent) {
            do_script();
            alarm(20);              // it is given up after 5 s
            CHECK(fleet_complete(&s.f, &claim, &outcome) == IDEM_E_STORAGE);
            alarm(0);
            do_script();
        }
        CHECK(fleet_complete(&s.f, &claim, &outcome) == IDEM_OK);
        CHECK(fleet_begin(&s.f, &claim, &reply, &request) == IDEM_REPLAY);
        CHECK(reply.response_len == sizeof response);
        CHECK(!memcmp(got, response, sizeof got));
    }
}

static int begin_number(uint32_t number, idem_claim *claim)
{
    idem_request request = { .sequence = number, .retention_ms = KEPT };
    idem_reply reply;

    return fleet_begin(&s.f, claim, &reply, &request);
}

static void do_numbers(uint32_t first, uint32_t last)
{
    idem_outcome outcome = { .code = 7 };
    idem_claim claim;

    for (uint32_t n = first; n <= last; n++) {
        CHECK(begin_number(n, &claim) == IDEM_EXECUTE);
        CHECK(fleet_complete(&s.f, &claim, &outcome) == IDEM_OK);
    }
}

/* Too many expire at once for all of them to raise the floor; the highest
   ended neither first nor last. */
static void numbers(void)
{
    idem_claim claim;

    CHECK(subject_open(&s, place, &config) == IDEM_OK);
    do_numbers(1, 110);
    do_numbers(1001, 1020);
    do_numbers(111, 220);
    subject_wait(&s, 2 * KEPT);
    CHECK(begin_number(1010, &claim) == IDEM_TOO_OLD);
    CHECK(begin_number(110, &claim) == IDEM_TOO_OLD);
    do_numbers(1021, 1021);
}

#define DROPPED "{SELECT count(*) FROM dropped}"

static const struct luck { const char *name, *line; } lucks[] = {
    { "down_at_start", "open:storage U1:storage" },
    { "refuses_password", "open:storage reason=take" },
    { "no_credentials", "open:storage reason=/credentials" },
    // Nothing is lost, and it connects again by itself.  A silent store may do,
    // when it wakes up, what it was asked meanwhile.
    { "away", "open B1 B3 script U2:storage C1:storage script again C1 "
      "B1:replay B2:execute/busy B3:busy C3 U4,script U4:replay" },
    // The answer comes when half of the lease is gone: nothing is begun then.
    // (On a busy machine not at all; then the store may not have done it.)
    { "late", "open script B1,lease=2000,late:busy/storage L again "
      "B1:recover/execute C1 B1:replay" },
    // The same again is done already; another outcome is not.
    { "repeated", "open B1 C1 C1 C1,len=3:fenced C1,failed:fenced B2 R2 R2 "
      "C2:fenced B2 C2 B2:replay B3 L B3:recover c3:fenced C3 C3" },
    // The handler has run: no answer may be that nothing was executed.
    { "mistaken", "open U1,len=17,called:more B1:replay "
      "U2,null,len=4,called:more B2:replay U3,state,called:more "
      "B3:replay" },
    { "foreign", "open:format reason=fleet's" },
    { "misfit", "open:format reason=Validation" },
    { "another_secret", "open B1 C1 close secret open:format secret open "
      "B1:replay" },
    // Whoever had it open notices, and leaves a note in the store for others.
    { "emptied", "open B1 Bdone Cdone script C1:fenced B2:uncertain B2:busy C2 "
      "B2:replay U3 U3:replay @open @Bdone:uncertain B#7:uncertain "
      "B5:uncertain L B5:uncertain wait3600000 B4 L B4:recover" },
    { "made_anew", "open B1 script C1:storage C1:fenced B1:uncertain" },
    // The last that was acknowledged is not there: older ones may be missing
    // too.
    { "restored", "open B1 C1 B4 script B2 C2 B3 script again B2:uncertain "
      "B1:replay B4:busy L B4:uncertain wait3600000 B5" },
    { "foreign_key", "open B1 script B1:format Bfree:uncertain script "
      "B1:format" },
    // What is held can be completed, nothing new begun.
    { "full", "open B1 Bdone Cdone script B2:full Bdone:replay N1 C1 script "
      "B1:replay B2" },
    // It is a replica for a while; then it has forgotten the scripts.
    { "replica", "open B1 script C1:storage C1:storage reason=replica script "
      "C1 B1:replay script B2 C2" },
    // The service refuses, or something in front of it
    { "refused", "open B1 C1 script B2:storage script B2:storage script "
      "B2:storage script B2:storage script B2:storage script B2:storage script "
      "B2 C2 B1:replay" },
    { "throttled", "open script B1 C1 B2 C2 B1:replay script B1:replay" },
    { "no_right", "open:storage reason=AccessDenied" },
    { "works", "open Bw Cw close open Bw:replay" },
    { "expired", "open B1 C1 script B2:storage reason=Expired script B2 C2" },
    // Row and outcome in the caller's own transaction: both, or neither
    { "transaction", "open {CREATE SCHEMA other; SET search_path = other; "
      "CREATE TABLE tank (ml int); INSERT INTO tank VALUES (100)} B1 "
      "{BEGIN; UPDATE tank SET ml = ml - 5} C1,within "
      "{ROLLBACK; SELECT ml FROM tank}100 "
      "{BEGIN; UPDATE tank SET ml = ml - 5} C1,within C1,within "
      "{COMMIT; SELECT ml FROM tank}95 B1:replay "
      "{BEGIN} C1,within,len=3:fenced {ROLLBACK} B2,reserve=4 {BEGIN} "
      "C2,within,len=16:large {ROLLBACK} C2,within=0:refused C2,len=16:large "
      "R2" },
    // Nobody is kept waiting while all that was never delivered is dropped.
    { "undelivered", "open B1 C1,confirm script o:storage o1 o:none" },
    // What has expired is read once more, and then it is listed nowhere.
    { "passed_by", "open B#1 C#1,confirm B2 C2,confirm B3 C3,confirm "
      "wait3900000 B4 C4,confirm o4 script o:none script B#1:old B2" },
    // Its retention may end before its lease would have: that is no loss.
    { "forgotten", "open B#1,lease=3600000 C#1 wait400000 @open @B2 "
      "{SELECT count(pg_terminate_backend(pid)) > 0 FROM pg_stat_activity "
      "WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()}t "
      "B3:storage B3 B#1:old" },
    // Claims drop what has expired; numbers stay old.
    { "dropped", "open B#1 C#1 B#2 C#2 B#3 C#3 B#4 C#4 B1 C1 B2 R2 "
      DROPPED "8 wait3900000 close open B3 "
      DROPPED "3 B#3:old B#4:old B#5 B1 B2" }
};

static void luck(void)
{
    config.lease_ms = 60000;
    current = make_trials(1);
    if (!strcmp(running, "arguments"))
        arguments();
    if (!strcmp(running, "threads"))
        threads();
    if (!strcmp(running, "largest"))
        largest();
    if (!strcmp(running, "numbers"))
        numbers();
    for (size_t i = 0; i < sizeof lucks / sizeof *lucks; i++)
        if (!strcmp(running, lucks[i].name))
            do_line(&s, lucks[i].line);
    fprintf(stderr, "%s\n", s.f.reason);
    PQfinish(transaction);
    if (s.f.store)
        fleet_close(&s.f);
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    signal(SIGPIPE, SIG_IGN);
    running = argv[1];
    place = argv[2];
    if (!strcmp(running, "promises"))
        promises(argc - 2, argv + 2);
    else
        luck();
    printf("%s: %d checks passed, %d failed\n", running, current->passed,
           current->failed);
    return current->failed || !current->passed;
}
