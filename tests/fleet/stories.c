/* SPDX-License-Identifier: 0BSD */
/* Stories (story.h) of a fleet, and of what it is compared with:
 *
 *     stories promises PLACE...
 *
 * the promises of idem.h that make sense for a fleet, of each place
 * (subject.h), each in a process of its own, and on nothing that another has
 * used.  Prints a row for each: its name, and of each place "yes", or the note
 * under which README.md of examples/fleet tells what differs (which is then
 * what is told).
 *
 *     stories LUCK URL
 *
 * one kind of bad luck, for faults.sh, which makes it happen: where that has
 * something to do between, "now" is printed, and a line awaited.  Both print in
 * the end how many checks passed, and exit 1 if one did not.
 *
 *     stories cost PLACE COMMANDS GATEWAYS
 *
 * Each of so many processes begins and completes so many commands, all at the
 * same time.  Prints a row: commands a second in all, and how long one takes:
 * the tenth of 100 from the fastest on (which other work on the machine does
 * not disturb), the middle one, and the 99th. */
#define _DEFAULT_SOURCE
#include "story.h"

#include "tests/bench/common.h"

static subject s;

/* ---------------------------------------------------------------- promises */

enum { RACERS = 4, RACE_KEYS = 25 };

#define ON(kind) (1 << (kind))
#define TABLES (ON(RAM) | ON(JOURNAL))
#define FLEETS (ON(REDIS) | ON(POSTGRES) | ON(DYNAMODB))

#define MAX_KEY "012345678901234567890123456789012345"     /* with "pump" */

static const struct story {
    const char *promise, *name, *line;
    struct { int kinds; char note; const char *line; } but[2];
} stories[] = {
    { "S1", "a claim that is not current changes nothing",
      "Ba L Ba:recover ca:fenced ra:fenced na,lease=3600000:fenced Ba:busy Ca "
      "Ca,len=3:fenced Ra:fenced Na:fenced ca:fenced Cz:fenced Rz:fenced "
      "Ba:replay Bb Rb Bb cb:fenced Cb", { { 0 } } },

    { "S1", "two processes share it",
      "@O @Ba Ba:busy L Ba:recover Na,lease=10000 @ca:fenced @na:fenced "
      "@ra:fenced @Ba:busy Ca @Ba:replay",
      { { ON(JOURNAL), 'e', "@O:lock" },
        { ON(RAM), 'e', "Ba @O @Ba" } } },          // its own memory

    { "S1", "of many at once one executes", NULL, { { TABLES, 'e', "" } } },

    { "S1", "tokens grow over restarts", "Ba Ca Bb Cb Bc Cc Q O Bd Cd",
      { { ON(RAM), 'a', "Ba Ca Bb Cb Bc Cc Q O Bd Cd" } } },

    { "S2", "an outcome is replayed byte for byte",
      "Ba Ba:busy Ca Ba:replay Ba:replay Ba,buffer=7:replay Bb Cb,failed "
      "Bb:replay Bc Cc,len=0 Bc:replay Bd Cd,len=16 Bd:replay", { { 0 } } },

    { "S2", "retention ends",
      "Ba,retention=1200 Ca Ga T1200 Ga:none Ba,payload=1", { { 0 } } },

    { "S3", "keys and scopes are kept apart",
      "Bab.c Cab.c Ga.bc:none Ba.bc,payload=1 Ca.bc G.abc:none B.abc C.abc "
      "Gabc.c:none Babc.c Cabc.c Gab.C:none Bab.C Cab.C Gab.c^:none Bab.c^ "
      "Cab.c^ Gab.c':none Bab.c' Cab.c' Bab.c~ Bab.c:replay Gab.c~ Ga.bc",
      { { 0 } } },

    { "S3", "another payload is refused in every state",
      "Ba Ba,payload=1:mismatch Ba,payload=2:mismatch L "      // in progress
      "Ba,payload=1:mismatch Ba:recover Ba,payload=1:mismatch "    // cut short
      "L Ba:recover L Ba:exhausted Ba,payload=1:mismatch "
      "Bb Cb Bb,payload=1:mismatch Bc Cc,failed Bc,payload=1:mismatch "
      "Bd Rd Bd,payload=1 "                         // given back: unknown
      "Be,payload=4 Ce Be,payload=4:replay Be,payload=5:mismatch", { { 0 } } },

    { "S4", "what was cut short is recover",
      "Ba L Ba:recover Ba:busy L Ba:recover Ra Ba "
      "Bb,retention=1200 L T1200 Bb,retention=1200 "
      "L Cb Bb:replay", { { 0 } } },        // late, but nobody has taken over

    { "S4", "a killed process is survived",
      "Q @O @Ba @Ca,owed @Bb K O Ba:replay Pa Bb:busy L Bb:recover",
      { { ON(JOURNAL), 0,
          "Q @O @Ba @Ca,owed @Bb K O Ba:replay Pa Bb:recover" },
        { ON(RAM), 'a', "Q @O @Ba @Ca,owed @Bb K O Ba Bb" } } },

    { "S4", "a number is never executed again",
      "B1#7 B1#7:busy B1#7,payload=3:mismatch G1#7 B1#7,both:refused "
      "B~~~\1~~~\7 B\7~~~\1~~~ B1#8 C1#8 B1#8:replay B1#9 R1#9 L B1#7:recover "
      "L T3000 B1#7:old B1#8:old B1#9 C1#9 "        // that was given back
      "B4294967295#4294967295 o B1#8:old", { { 0 } } },

    { "S4", "what is unknown and too old is refused",
      "L Ba Ca Ba,age=3600000:replay Bb,age=3600000:old "
      "Bb,retention=7200000,age=7200000:old Bb,age=1", { { 0 } } },

    { "S4", "memory reaches back to its start", "Ba,age=1800000:old",
      { { ON(JOURNAL), 'c', "Ba,age=1800000" } } },

    { "S4", "what is below an old number is too old",
      "B#10 C#10 B#20 C#20 B#30 C#30 B#25 R#25 T3000 B#31 B#30:old "
      "Bvalve.#5 B#5:old B#25:old B#29:old",
      { { ON(DYNAMODB), 'f', "B#10 C#10 B#20 C#20 B#30 C#30 B#25 R#25 T3000 "
          "B#31 B#30:old Bvalve.#5 B#5" } } },

    { "S4", "a newer epoch ends the older",
      "B1#6 C1#6 B1#7 B2#1 B1#6:replay B1#8:old B1#7:old C1#7:fenced "
      "N1#7:fenced R1#7:fenced Bvalve.1#1",
      { { ON(DYNAMODB), 'f', "B1#6 C1#6 B1#7 B2#1 B1#6:replay B1#8 C1#7" } } },

    { "S6", "a lease is lengthened and never shortened",
      "Ba Na,lease=6000 Na,lease=1 L Ba:busy Ca Ba:replay", { { 0 } } },

    { "S7", "a call that fails changed nothing",
      "B:refused G:refused B" MAX_KEY "6:large G" MAX_KEY "6:large "
      "G" MAX_KEY ":none B" MAX_KEY " Ba,lease=536870913:refused "
      "Ba,retention=2592000001:refused Ba,reserve=17:large Ga:none "
      "Ba,reserve=4 Ca,len=17:large Ca,len=5:large Ca,len=1,null:refused "
      "Na,lease=536870913:refused Ga Ca,len=4 Ba:replay", { { 0 } } },

    { "L2", "attempts that are all cut short end",
      "Ba L Ba:recover L Ba:recover L Ba:exhausted Ba:exhausted Bb",
      { { 0 } } },

    { "L2", "a lease outlives its killed holder", "Q @O @Ba K O Ba:busy",
      { { ON(JOURNAL), 'b', "Q @O @Ba K O Ba:recover" },
        { ON(RAM), 'b', "Q @O @Ba K O Ba" } } },

    { "L2", "a lease may be without end", "Ba,lease",
      { { FLEETS, 'd', "Ba,lease:refused" } } },

    { "", "what is owed is listed until it is delivered",
      "P:none B1 C1,owed T1 B2 C2,owed T1 B3 C3,owed T1 B4 C4 B5 "
      "P1 P2 P3 P:none D1 D1 dz:none Dz:none D5:none p P2 D2 "
      "P3 D3 p P:none B1:replay "                   // after one delivered
      "B6,retention=1200 C6,len=0,owed p P6 T1200 p P:none", { { 0 } } },

    { "", "a key is described", "Ga:none Ba Ga L Ga Ca Ga", { { 0 } } },

    { "", "one handler runs on all",
      "Ua,back:released Ua,keep:busy Ua:busy L Ua:done Ua:replay", { { 0 } } }
};
enum { STORIES = sizeof stories / sizeof *stories };

/* Begins all keys, as the others do at the same time. */
static void race(int executed[RACE_KEYS])
{
    idem_token last = 0;

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
        CHECK(claim.token > last);
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
    int *executed = (int *)(void *)make_tales(1), status;

    for (int i = 0; i < RACERS; i++)
        if (fork() == 0)
            race(executed);
    for (int i = 0; i < RACERS; i++)
        CHECK(wait(&status) > 0 && status == 0);
    for (int i = 0; i < RACE_KEYS; i++)
        CHECK(executed[i] == 1);
}

/* Tells one at a place that no other uses. */
static void run(const char *all, int number)
{
    const struct story *story = &stories[number];
    const char *line = story->line;
    static char mine[600];

    snprintf(mine, sizeof mine, "%s%s%d", all,
             strstr(all, "://") ? "#case_" : ".", number);
    place = mine;
    running = story->name;
    for (int i = 0; i < 2; i++)
        if (story->but[i].kinds & ON(subject_kind(all))) {
            line = story->but[i].line;
            told->differs = story->but[i].note;
        }
    if (line) {
        tell(&s, "O");
        if (told->failed)
            exit(1);
        tell(&s, line);
        subject_close(&s);
    } else {
        races();
    }
    exit(0);
}

static void print_told(const tale *of)
{
    if (of->failed)
        printf(" | FAILED");
    else if (of->differs)
        printf(" | no (%c)", of->differs);
    else
        printf(" | yes");
}

/* The last of the tales counts for all. */
static void promises(int count, char **places)
{
    tale *all = make_tales((size_t)(STORIES * count + 1)), *sum;
    int status;

    sum = &all[STORIES * count];
    for (told = all; told < sum; told++)
        if (fork() == 0)
            run(places[(told - all) % count], (int)(told - all) / count);
    while (wait(&status) > 0)
        sum->failed += status != 0;
    for (told = all; told < sum; told++) {
        const struct story *story = &stories[(told - all) / count];
        if ((told - all) % count == 0)
            printf("| %s%s| %s", story->promise, *story->promise ? " " : "",
                   story->name);
        print_told(told);
        sum->passed += told->passed;
        sum->failed += told->failed;
        if ((told - all) % count == count - 1)
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
        "redis://host#", "redis://host#Upper", "postgres:///x#a'b",
        "redis://host#0123456789012345678901234567890123456789x" };
    idem_config quota = config, endless = config, no_keys = config;

    for (size_t i = 0; i < sizeof urls / sizeof *urls; i++)
        is_refused(at = urls[i], &config, "no URL");
    quota.quota = 1;
    is_refused(place, &quota, "quota");
    endless.lease_ms = IDEM_LEASE_NONE;
    is_refused(place, &endless, "lease_ms");
    no_keys.key_max = 0;
    is_refused(place, &no_keys, "key_max");
}

#define DAY ",retention=86400000 "
#define LEFT "{SELECT count(*) FROM dropped}"

static const struct luck { const char *name, *line; } lucks[] = {
    { "down_at_start", "O:storage U1:storage" },
    // Nothing is lost, and it connects again by itself.  A silent store may do,
    // when it wakes up, what it was asked meanwhile.
    { "away", "O B1 B3 ! U2:storage C1:storage ! W2 C1:ok/fenced B1:replay "
      "B2:execute/busy B3:busy C3" },
    { "foreign", "O:format ?fleet's" },
    { "misfit", "O:format ?Validation" },
    { "another_secret", "O B1 C1 Q X O:format X O B1:replay" },
    // Refused until it is opened again
    { "emptied", "O B1 ! C1:format B2:format B2:format Q O B2" },
    { "made_anew", "O B1 ! C1:storage C1:format C1:format Q O B1" },
    { "foreign_key", "O ! Bstring:format Bhash:format Bfree" },
    // What is held can be completed, nothing new begun.
    { "full", "O B1 Bdone Cdone ! B2:full Bdone:replay N1 C1 ! B1:replay B2" },
    // Row and outcome in the caller's own transaction: both, or neither
    { "transaction", "O "
      "{CREATE TABLE tank (ml int); INSERT INTO tank VALUES (100)} B1 "
      "{BEGIN; UPDATE tank SET ml = ml - 5} I1 "
      "{ROLLBACK; SELECT ml FROM tank}100 "
      "{BEGIN; UPDATE tank SET ml = ml - 5} I1 "
      "{COMMIT; SELECT ml FROM tank}95 B1:replay "
      "{BEGIN} I1:fenced {ROLLBACK} B2,reserve=4 {BEGIN} I2,len=16:large "
      "{ROLLBACK} i2:refused C2,len=16:large R2" },
    // What is over is dropped, by claims, two of it by each; numbers stay old.
    { "dropped", "O B#1" DAY "C#1 B#2" DAY "C#2 B#3" DAY "C#3 B#4" DAY "C#4 "
      "B1 B#4:replay " LEFT "5 "
      "{UPDATE dropped SET until = until - 2 * retention WHERE state > 1} "
      "B2 " LEFT "4 B3 " LEFT "3 B4 " LEFT "4 B1:busy B#3:old B#4:old B#5" }
};

static void luck(void)
{
    config.lease_ms = 60000;
    told = make_tales(1);
    if (!strcmp(running, "arguments"))
        arguments();
    for (size_t i = 0; i < sizeof lucks / sizeof *lucks; i++)
        if (!strcmp(running, lucks[i].name))
            tell(&s, lucks[i].line);
    fprintf(stderr, "%s\n", s.f.reason);
    PQfinish(transaction);
    if (s.f.store)
        fleet_close(&s.f);
}

/* -------------------------------------------------------------------- cost */

/* A gateway: tells the parent how long each of its commands took. */
static void work(int gateway, int commands, int out)
{
    idem_outcome outcome = { .response = "poured 5 ml", .response_len = 11 };
    char name[ID_SIZE];
    idem_reply reply;
    idem_claim claim;

    CHECK(subject_open(&s, place, &config) == IDEM_OK);
    for (int i = 0; i < commands; i++) {
        int len = snprintf(name, sizeof name, "pump%08d/%07d", gateway, i);
        idem_request request = { .scope = name, .scope_len = 4,
                                 .key = name + 4, .key_len = (size_t)len - 4,
                                 .payload = "5 ml", .payload_len = 4 };
        double start = now_us();
        CHECK(SUBJECT(&s, begin, &claim, &reply, &request) == IDEM_EXECUTE);
        CHECK(SUBJECT(&s, complete, &claim, &outcome) == IDEM_OK);
        start = now_us() - start;
        CHECK(write(out, &start, sizeof start) == sizeof start);
    }
    subject_close(&s);
    _exit(0);
}

static void cost(int commands, int gateways)
{
    double *took = (double *)calloc((size_t)(commands * gateways), sizeof *took);
    double start = now_us();
    int ends[2], n = 0;

    config.capacity = 3000;
    told = make_tales(1);
    CHECK(took && pipe(ends) == 0);
    for (int i = 0; i < gateways; i++)
        if (fork() == 0)
            work(i, commands, ends[1]);
    close(ends[1]);
    while (n < commands * gateways &&
           read(ends[0], &took[n], sizeof *took) == sizeof *took)
        n++;
    CHECK(n == commands * gateways);
    printf("%d | %.0f", gateways, n / (now_us() - start) * 1e6);
    qsort(took, (size_t)n, sizeof *took, by_value);
    printf(" | %.2f | %.2f | %.2f |\n", took[n / 10] / 1e3, took[n / 2] / 1e3,
           took[n * 99 / 100] / 1e3);
    free(took);
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
    else if (!strcmp(running, "cost") && argc == 5)
        cost(atoi(argv[3]), atoi(argv[4]));
    else
        luck();
    if (strcmp(running, "cost") != 0)
        printf("%s: %d checks passed, %d failed\n", running, told->passed,
               told->failed);
    return told->failed || !told->passed;
}
