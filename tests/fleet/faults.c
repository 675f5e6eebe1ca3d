/* SPDX-License-Identifier: 0BSD */
/* faults WHAT URL: one kind of bad luck, for faults.sh, which makes it happen.
 * Where the script has something to do between, "now" is printed, and a line
 * awaited.  The last line is how many checks passed; exits 1 if one did not. */
#define _POSIX_C_SOURCE 200809L
#include "fleet.h"

#include <libpq-fe.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static idem_config config = {
    .capacity = 1, .key_max = 40, .response_max = 64,
    .secret = { 0x31, 0x9c, 0x55, 0xe0, 0x27, 0xb8, 0x4d, 0x6a,
                0xd3, 0x0f, 0x82, 0x71, 0xc6, 0x1e, 0xa9, 0x44 },
    .lease_ms = 60000 };
static int passed, failed;
static fleet f;
static idem_claim claim;
static char buffer[64];
static idem_reply reply = { .buffer = buffer, .buffer_size = sizeof buffer };

#define CHECK(what) check((what) ? 1 : 0, __LINE__, #what)
#define IS(call, wanted) is(call, wanted, __LINE__, #call)

static void check(int holds, int line, const char *what)
{
    *(holds ? &passed : &failed) += 1;
    if (!holds)
        fprintf(stderr, "faults: line %d: not so: %s; %s\n", line, what,
                f.reason);
}

static void is(int result, int wanted, int line, const char *call)
{
    char text[200];

    snprintf(text, sizeof text, "%s is \"%s\", wanted \"%s\"", call,
             idem_text(result), idem_text(wanted));
    check(result == wanted, line, text);
}

/* Lets the script do its part. */
static void now(void)
{
    char line[8];

    puts("now");
    fflush(stdout);
    CHECK(fgets(line, sizeof line, stdin) != NULL);
}

static idem_request ask(const char *key)
{
    idem_request request = { .key = key, .key_len = strlen(key) };

    return request;
}

static int begin(const char *key)
{
    idem_request request = ask(key);

    return fleet_begin(&f, &claim, &reply, &request);
}

static int complete(const idem_claim *c)
{
    idem_outcome outcome = { .response = "poured", .response_len = 6 };

    return fleet_complete(&f, c, &outcome);
}

static int never(void *ctx, idem_outcome *outcome, const idem_request *request,
                 const idem_claim *held, int answer, uint32_t *now_ms)
{
    (void)ctx, (void)outcome, (void)request, (void)held, (void)answer;
    (void)now_ms;
    check(0, __LINE__, "the handler was called");
    return 0;
}

static void arguments(const char *url)
{
    static const char *const urls[] = { "", "mysql://host", "redis:/x",
        "redis://host#", "redis://host#Upper", "postgres:///x#a'b",
        "redis://host#0123456789012345678901234567890123456789x" };
    idem_config wrong = config;

    for (size_t i = 0; i < sizeof urls / sizeof *urls; i++) {
        IS(fleet_open(&f, urls[i], &config), IDEM_E_ARG);
        CHECK(strstr(f.reason, "no URL"));
    }
    wrong.quota = 1;
    IS(fleet_open(&f, url, &wrong), IDEM_E_ARG);
    wrong = config;
    wrong.lease_ms = IDEM_LEASE_NONE;
    IS(fleet_open(&f, url, &wrong), IDEM_E_ARG);
    wrong = config;
    wrong.key_max = 0;
    IS(fleet_open(&f, url, &wrong), IDEM_E_ARG);
    CHECK(strstr(f.reason, "key_max"));
}

static void down_at_start(const char *url)
{
    idem_request request = ask("1");

    IS(fleet_open(&f, url, &config), IDEM_E_STORAGE);
    CHECK(*f.reason);
    fprintf(stderr, "%s\n", f.reason);
    IS(fleet_run(&f, &claim, &reply, &request, never, NULL), IDEM_E_STORAGE);
}

static double seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* The store is gone, or silent, in the middle of everything. */
static void away(const char *url)
{
    idem_claim held, other;
    idem_entry entry = { .id = NULL };
    idem_request request = ask("2");
    double start;
    int result;

    IS(fleet_open(&f, url, &config), IDEM_OK);
    IS(begin("1"), IDEM_EXECUTE);
    held = claim;
    IS(begin("3"), IDEM_EXECUTE);
    other = claim;
    now();
    start = seconds();
    IS(fleet_run(&f, &claim, &reply, &request, never, NULL), IDEM_E_STORAGE);
    CHECK(claim.token == 0 && *f.reason);
    CHECK(seconds() - start < 12);
    IS(complete(&held), IDEM_E_STORAGE);
    now();
    // Nothing was lost, and it connects again by itself.
    for (int i = 0; i < 50; i++) {
        struct timespec t = { 0, 100000000 };
        result = fleet_find(&f, &entry, &request);
        if (result != IDEM_E_STORAGE)
            break;
        nanosleep(&t, NULL);
    }
    // A silent store may do, when it wakes up, what it was asked meanwhile.
    result = complete(&held);
    CHECK(result == IDEM_OK || result == IDEM_E_FENCED);
    IS(begin("1"), IDEM_REPLAY);
    CHECK(reply.response_len == 6 && !memcmp(buffer, "poured", 6));
    result = begin("2");
    CHECK(result == IDEM_EXECUTE || result == IDEM_BUSY);
    IS(begin("3"), IDEM_BUSY);
    IS(complete(&other), IDEM_OK);
}

/* What is there is another's. */
static void foreign(const char *url)
{
    IS(fleet_open(&f, url, &config), IDEM_E_FORMAT);
    fprintf(stderr, "%s\n", f.reason);
    CHECK(strstr(f.reason, "not this fleet's") || strstr(f.reason, "WRONG") ||
          strstr(f.reason, "Validation"));
}

static void another_secret(const char *url)
{
    IS(fleet_open(&f, url, &config), IDEM_OK);
    IS(begin("1"), IDEM_EXECUTE);
    IS(complete(&claim), IDEM_OK);
    fleet_close(&f);
    config.secret[0] ^= 1;
    IS(fleet_open(&f, url, &config), IDEM_E_FORMAT);
    config.secret[0] ^= 1;
    IS(fleet_open(&f, url, &config), IDEM_OK);
    IS(begin("1"), IDEM_REPLAY);
}

/* Emptied while it is open: refused, until it is opened again. */
static void emptied(const char *url)
{
    IS(fleet_open(&f, url, &config), IDEM_OK);
    IS(begin("1"), IDEM_EXECUTE);
    now();
    IS(complete(&claim), IDEM_E_FORMAT);
    IS(begin("2"), IDEM_E_FORMAT);
    IS(begin("2"), IDEM_E_FORMAT);
    fleet_close(&f);
    IS(fleet_open(&f, url, &config), IDEM_OK);
    IS(begin("2"), IDEM_EXECUTE);
}

/* A key with another's data under it. */
static void foreign_key(const char *url)
{
    IS(fleet_open(&f, url, &config), IDEM_OK);
    now();
    IS(begin("string"), IDEM_E_FORMAT);
    IS(begin("hash"), IDEM_E_FORMAT);
    IS(begin("free"), IDEM_EXECUTE);
}

/* Out of memory: what is held can be completed, nothing new begun. */
static void full(const char *url)
{
    idem_claim held;

    IS(fleet_open(&f, url, &config), IDEM_OK);
    IS(begin("1"), IDEM_EXECUTE);
    held = claim;
    IS(begin("done"), IDEM_EXECUTE);
    IS(complete(&claim), IDEM_OK);
    now();
    IS(begin("2"), IDEM_E_FULL);
    IS(begin("done"), IDEM_REPLAY);
    IS(fleet_renew(&f, &held, 0), IDEM_OK);
    IS(complete(&held), IDEM_OK);
    now();
    IS(begin("1"), IDEM_REPLAY);
    IS(begin("2"), IDEM_EXECUTE);
}

/* Runs a statement of the business, and returns the number it tells. */
static int business(PGconn *mine, const char *sql)
{
    PGresult *r = PQexec(mine, sql);
    int number = PQntuples(r) ? atoi(PQgetvalue(r, 0, 0)) : 0;

    CHECK(PQresultStatus(r) == PGRES_COMMAND_OK ||
          PQresultStatus(r) == PGRES_TUPLES_OK);
    PQclear(r);
    return number;
}

/* Row and outcome in the caller's own transaction: both, or neither. */
static void transaction(const char *url)
{
    idem_outcome outcome = { .response = "poured", .response_len = 6 };
    idem_outcome large = { .response = buffer, .response_len = 64 };
    idem_request small = ask("small");
    PGconn *mine;

    IS(fleet_open(&f, url, &config), IDEM_OK);
    mine = PQconnectdb(f.url);
    business(mine, "CREATE TABLE tank (ml int)");
    business(mine, "INSERT INTO tank VALUES (100)");
    IS(begin("1"), IDEM_EXECUTE);
    business(mine, "BEGIN");
    business(mine, "UPDATE tank SET ml = ml - 5");
    IS(fleet_complete_in(&f, mine, &claim, &outcome), IDEM_OK);
    business(mine, "ROLLBACK");
    CHECK(business(mine, "SELECT ml FROM tank") == 100);
    business(mine, "BEGIN");
    business(mine, "UPDATE tank SET ml = ml - 5");
    IS(fleet_complete_in(&f, mine, &claim, &outcome), IDEM_OK);
    business(mine, "COMMIT");
    CHECK(business(mine, "SELECT ml FROM tank") == 95);
    IS(begin("1"), IDEM_REPLAY);
    business(mine, "BEGIN");
    IS(fleet_complete_in(&f, mine, &reply.claim, &outcome), IDEM_E_FENCED);
    business(mine, "ROLLBACK");
    small.response_size = 4;
    IS(fleet_begin(&f, &claim, &reply, &small), IDEM_EXECUTE);
    business(mine, "BEGIN");
    IS(fleet_complete_in(&f, mine, &claim, &large), IDEM_E_TOO_LARGE);
    business(mine, "ROLLBACK");
    IS(fleet_complete_in(&f, NULL, &claim, &outcome), IDEM_E_ARG);
    IS(complete(&claim), IDEM_E_TOO_LARGE);
    IS(fleet_release(&f, &claim), IDEM_OK);
    PQfinish(mine);
}

static int begin_number(uint32_t sequence)
{
    idem_request request = { .scope = "s", .scope_len = 1,
                             .sequence = sequence };

    return fleet_begin(&f, &claim, &reply, &request);
}

/* What is over is dropped, by claims, two of it by each; numbers stay old. */
static void dropped(const char *url)
{
    static const char count[] = "SELECT count(*) FROM dropped";
    PGconn *mine;

    IS(fleet_open(&f, url, &config), IDEM_OK);
    mine = PQconnectdb(f.url);
    for (uint32_t n = 1; n <= 4; n++) {
        IS(begin_number(n), IDEM_EXECUTE);
        IS(complete(&claim), IDEM_OK);
    }
    IS(begin("1"), IDEM_EXECUTE);
    IS(begin_number(4), IDEM_REPLAY);
    CHECK(business(mine, count) == 5);
    business(mine, "UPDATE dropped SET until = until - 2 * retention"
                   " WHERE state > 1");
    IS(begin("2"), IDEM_EXECUTE);
    CHECK(business(mine, count) == 4);
    IS(begin("3"), IDEM_EXECUTE);
    CHECK(business(mine, count) == 3);
    IS(begin("4"), IDEM_EXECUTE);
    CHECK(business(mine, count) == 4);
    IS(begin("1"), IDEM_BUSY);
    IS(begin_number(3), IDEM_TOO_OLD);
    IS(begin_number(4), IDEM_TOO_OLD);
    IS(begin_number(5), IDEM_EXECUTE);
    PQfinish(mine);
}

#define KINDS(X) X(arguments) X(down_at_start) X(away) X(foreign) \
    X(another_secret) X(emptied) X(foreign_key) X(full) X(transaction) \
    X(dropped)
#define ROW(name) { #name, name },
static const struct kind {
    const char *name;
    void (*function)(const char *url);
} kinds[] = { KINDS(ROW) };

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    signal(SIGPIPE, SIG_IGN);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (!strcmp(argv[1], kinds[i].name))
            kinds[i].function(argv[2]);
    if (f.store)
        fleet_close(&f);
    printf("%s: %d checks passed, %d failed\n", argv[1], passed, failed);
    return failed || !passed;
}
