/* SPDX-License-Identifier: 0BSD */
/* faults WHAT URL: one kind of bad luck, for faults.sh, which makes it happen.
 * Where the script has something to do between, "now" is printed, and a line
 * awaited.  The last line is how many checks passed; exits 1 if one did not. */
#define _DEFAULT_SOURCE
#include "story.h"

#include <libpq-fe.h>
#include <time.h>

static subject s;

static void is_refused(const char *url, const idem_config *c, const char *why)
{
    at = url;
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
        is_refused(urls[i], &config, "no URL");
    quota.quota = 1;
    is_refused(place, &quota, "quota");
    endless.lease_ms = IDEM_LEASE_NONE;
    is_refused(place, &endless, "lease_ms");
    no_keys.key_max = 0;
    is_refused(place, &no_keys, "key_max");
}

static double seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* The store is gone, or silent, in the middle of everything. */
static void away(void)
{
    idem_request request = { .key = "2", .key_len = 1 };
    idem_entry entry = { .id = NULL };
    double start;

    tell(&s, "O B1 B3 !");
    start = seconds();
    tell(&s, "U2:storage");
    CHECK(seconds() - start < 12);
    tell(&s, "C1:storage !");
    // Nothing was lost, and it connects again by itself.
    for (int i = 0; i < 50; i++) {
        if (fleet_find(&s.f, &entry, &request) != IDEM_E_STORAGE)
            break;
        usleep(100000);
    }
    // A silent store may do, when it wakes up, what it was asked meanwhile.
    tell(&s, "C1:ok/fenced B1:replay B2:execute/busy B3:busy C3");
}

/* What is there is another's. */
static void foreign(void)
{
    tell(&s, "O:format");
    CHECK(strstr(s.f.reason, "not this fleet's") ||
          strstr(s.f.reason, "WRONG") || strstr(s.f.reason, "Validation"));
}

/* ------------------------------------------------ the caller's own database */

typedef struct step {
    const char *sql;
    int      number;                // that it tells
    const char *line;               // of words, behind it
} step;

/* Row and outcome in the caller's own transaction: both, or neither. */
static const step bought[] = {
    { "CREATE TABLE tank (ml int); INSERT INTO tank VALUES (100)", 0, "B1" },
    { "BEGIN; UPDATE tank SET ml = ml - 5", 0, "I1" },
    { "ROLLBACK; SELECT ml FROM tank", 100, "" },
    { "BEGIN; UPDATE tank SET ml = ml - 5", 0, "I1" },
    { "COMMIT; SELECT ml FROM tank", 95, "B1:replay" },
    { "BEGIN", 0, "I1:fenced" },
    { "ROLLBACK", 0, "B2,reserve=4" },
    { "BEGIN", 0, "I2,len=16:large" },
    { "ROLLBACK", 0, "i2:refused C2,len=16:large R2" }, { NULL, 0, NULL } };

/* What is over is dropped, by claims, two of it by each; numbers stay old. */
#define COUNT "SELECT count(*) FROM dropped"
#define DAY ",retention=86400000 "
static const step dropped[] = {
    { "SELECT 0", 0, "B#1" DAY "C#1 B#2" DAY "C#2 B#3" DAY "C#3 B#4" DAY
      "C#4 B1 B#4:replay" },
    { COUNT, 5, "" },
    { "UPDATE dropped SET until = until - 2 * retention WHERE state > 1", 0,
      "B2" },
    { COUNT, 4, "B3" },
    { COUNT, 3, "B4" },
    { COUNT, 4, "B1:busy B#3:old B#4:old B#5" }, { NULL, 0, NULL } };

static void take(const step *steps)
{
    PGconn *mine;

    tell(&s, "O");
    transaction = mine = PQconnectdb(s.f.url);
    for (; steps->sql; steps++) {
        PGresult *r = PQexec(mine, steps->sql);
        at = steps->sql;
        CHECK(PQresultStatus(r) == PGRES_COMMAND_OK ||
              PQresultStatus(r) == PGRES_TUPLES_OK);
        CHECK((PQntuples(r) ? atoi(PQgetvalue(r, 0, 0)) : 0) == steps->number);
        PQclear(r);
        tell(&s, steps->line);
    }
    PQfinish(mine);
}

/* ------------------------------------------------------------------ running */

static const struct luck {
    const char *name, *line;
    void (*function)(void);
    const step *steps;
} kinds[] = {
    { "arguments", NULL, arguments, NULL },
    { "down_at_start", "O:storage U1:storage", NULL, NULL },
    { "away", NULL, away, NULL },
    { "foreign", NULL, foreign, NULL },
    { "another_secret", "O B1 C1 Q X O:format X O B1:replay", NULL, NULL },
    // Refused until it is opened again
    { "emptied", "O B1 ! C1:format B2:format B2:format Q O B2", NULL, NULL },
    { "made_anew", "O B1 ! C1:storage C1:format C1:format Q O B1", NULL, NULL },
    { "foreign_key", "O ! Bstring:format Bhash:format Bfree", NULL, NULL },
    // What is held can be completed, nothing new begun.
    { "full", "O B1 Bdone Cdone ! B2:full Bdone:replay N1 C1 ! B1:replay B2",
      NULL, NULL },
    { "transaction", NULL, NULL, bought },
    { "dropped", NULL, NULL, dropped } };

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    signal(SIGPIPE, SIG_IGN);
    told = make_tales(1);
    running = argv[1];
    place = argv[2];
    config.lease_ms = 60000;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (strcmp(running, kinds[i].name) != 0)
            continue;
        if (kinds[i].line)
            tell(&s, kinds[i].line);
        else if (kinds[i].steps)
            take(kinds[i].steps);
        else
            kinds[i].function();
    }
    fprintf(stderr, "%s\n", s.f.reason);
    if (s.f.store)
        fleet_close(&s.f);
    printf("%s: %d checks passed, %d failed\n", running, told->passed,
           told->failed);
    return told->failed || !told->passed;
}
