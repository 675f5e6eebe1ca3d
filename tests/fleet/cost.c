/* SPDX-License-Identifier: 0BSD */
/* cost PLACE COMMANDS GATEWAYS: GATEWAYS processes begin and complete COMMANDS
 * commands in all, at the same time; in turn with it, the same written by hand
 * as in articles, without fencing, fingerprints, attempts and age:
 *     Redis        SET key 1 NX PX lease; SET key response PX retention
 *     PostgreSQL   INSERT .. ON CONFLICT DO UPDATE .. WHERE the lease ended;
 *                  UPDATE; both prepared
 * Prints a row: gateways, commands a second by hand and as a fleet, the second
 * in parts of the first (the median of the rounds).
 *
 * cost PLACE: commands of a fleet alone, for the bytes of their keys. */
#define _DEFAULT_SOURCE
#include "subject.h"

#include "tests/bench/common.h"

#include <hiredis/hiredis.h>
#include <libpq-fe.h>
#include <signal.h>
#include <sys/wait.h>

enum { ROUNDS = 10, ALONE = 200, LEASE_MS = 30000, DAY_MS = 86400000 };

static const char *place;
static const idem_config config = {
    .capacity = 3000, .key_max = 40, .response_max = 16, .senders = 1,
    .secret = { 0x31, 0x9c, 0x55, 0xe0, 0x27, 0xb8, 0x4d, 0x6a,
                0xd3, 0x0f, 0x82, 0x71, 0xc6, 0x1e, 0xa9, 0x44 },
    .lease_ms = LEASE_MS, .retention_ms = DAY_MS };
static subject s;

static void must(int holds)
{
    if (!holds)
        fail("%s: failed; %s", place, s.f.reason);
}

/* Of the same length for both ways */
static int name_of(char dst[40], const char *way, int gateway, int number)
{
    return snprintf(dst, 40, "pump%s%04d/%07d", way, gateway, number);
}

/* --------------------------------------------------------------- the fleet */

static void fleet_command(int gateway, int number)
{
    idem_outcome outcome = { .response = "poured 5 ml", .response_len = 11 };
    char name[40];
    int len = name_of(name, "/flt", gateway, number);
    idem_request request = { .scope = name, .scope_len = 4,
                             .key = name + 4, .key_len = (size_t)len - 4,
                             .payload = "5 ml", .payload_len = 4 };
    idem_reply reply;
    idem_claim claim;

    must(SUBJECT(&s, begin, &claim, &reply, &request) == IDEM_EXECUTE);
    must(SUBJECT(&s, complete, &claim, &outcome) == IDEM_OK);
}

/* ----------------------------------------------------------------- by hand */

static redisContext *redis;
static PGconn *sql;

static void redis_command(int gateway, int number)
{
    char name[40];
    redisReply *r;

    name_of(name, "/hnd", gateway, number);
    r = (redisReply *)redisCommand(redis, "SET %s 1 NX PX 30000", name);
    must(r && r->type == REDIS_REPLY_STATUS);
    freeReplyObject(r);
    r = (redisReply *)redisCommand(redis, "SET %s %s PX 86400000", name,
                                   "poured 5 ml");
    must(r && r->type == REDIS_REPLY_STATUS);
    freeReplyObject(r);
}

static void prepare(void)
{
    static const char claim[] = "INSERT INTO hand VALUES ($1, 'processing',"
        " now() + interval '30 s') ON CONFLICT (key) DO UPDATE"
        " SET locked_until = excluded.locked_until"
        " WHERE hand.status = 'processing' AND hand.locked_until < now()"
        " RETURNING key";
    static const char complete[] = "UPDATE hand SET status = 'done',"
        " response = $2, locked_until = now() + interval '1 day'"
        " WHERE key = $1 AND status = 'processing'";

    PQclear(PQexec(sql, "SET client_min_messages = warning"));
    PQclear(PQexec(sql, "BEGIN; SELECT pg_advisory_xact_lock(7);"
                   "CREATE TABLE IF NOT EXISTS hand (key text PRIMARY KEY,"
                   " status text, locked_until timestamptz, response text);"
                   "COMMIT"));
    PQclear(PQprepare(sql, "claim", claim, 1, NULL));
    PQclear(PQprepare(sql, "complete", complete, 2, NULL));
}

static void sql_command(int gateway, int number)
{
    char name[40];
    const char *const values[] = { name, "poured 5 ml" };
    PGresult *r;

    name_of(name, "/hnd", gateway, number);
    r = PQexecPrepared(sql, "claim", 1, values, NULL, NULL, 0);
    must(PQntuples(r) == 1);
    PQclear(r);
    r = PQexecPrepared(sql, "complete", 2, values, NULL, NULL, 0);
    must(!strcmp(PQcmdTuples(r), "1"));
    PQclear(r);
}

static void open_by_hand(void)
{
    char url[512];

    snprintf(url, sizeof url, "%.*s", (int)strcspn(place, "#"), place);
    if (subject_kind(place) == REDIS) {
        redis = redisConnectUnix(url + strlen("redis://"));
        must(redis && !redis->err);
    } else {
        sql = PQconnectdb(url);
        must(PQstatus(sql) == CONNECTION_OK);
        prepare();
    }
}

/* ------------------------------------------------------------------ rounds */

/* A gateway: waits for each round, does its part, and writes a byte. */
static void work(int gateway, int is_fleet, int commands, int go, int out)
{
    void (*one)(int gateway, int number) =
        is_fleet                         ? fleet_command
        : subject_kind(place) == REDIS   ? redis_command : sql_command;
    int number = 0;
    char c;

    if (is_fleet)
        must(subject_open(&s, place, &config) == IDEM_OK);
    else
        open_by_hand();
    one(gateway, number++);             // prepares, loads scripts
    must(write(out, "!", 1) == 1);
    while (read(go, &c, 1) == 1) {
        for (int i = 0; i < commands; i++)
            one(gateway, number++);
        must(write(out, "!", 1) == 1);
    }
    _exit(0);
}

typedef struct crew {
    int      go, out;               /* pipes */
    struct sample rate;
} crew;

/* Until each of them is ready, or has done its part. */
static void await(const crew *c, int gateways)
{
    char byte;

    while (gateways--)
        must(read(c->out, &byte, 1) == 1);
}

static void hire(crew *c, int is_fleet, int commands, int gateways)
{
    int go[2], out[2];

    must(pipe(go) == 0 && pipe(out) == 0);
    for (int i = 0; i < gateways; i++)
        if (fork() == 0) {
            close(go[1]);
            work(i + 10 * gateways, is_fleet, commands, go[0], out[1]);
        }
    close(go[0]);
    close(out[1]);
    c->go = go[1];
    c->out = out[0];
    await(c, gateways);
}

/* A round; its commands a second */
static double play(crew *c, int commands, int gateways)
{
    double start = now_us(), rate;

    for (int i = 0; i < gateways; i++)
        must(write(c->go, "!", 1) == 1);
    await(c, gateways);
    rate = commands * gateways / (now_us() - start) * 1e6;
    sample_add(&c->rate, rate);
    return rate;
}

int main(int argc, char **argv)
{
    int commands = argc == 4 ? atoi(argv[2]) / ROUNDS : 0;
    int gateways = argc == 4 ? atoi(argv[3]) : 0;
    struct sample ratio = { .count = 0 };
    static crew ours, hand;

    place = argv[1];
    if (argc == 2) {
        must(subject_open(&s, place, &config) == IDEM_OK);
        for (int i = 0; i < ALONE; i++)
            fleet_command(0, i);
        return 0;
    }
    if (commands < 1 || gateways < 1)
        return 2;
    signal(SIGPIPE, SIG_IGN);
    commands = (commands + gateways - 1) / gateways;
    hire(&ours, 1, commands, gateways);
    hire(&hand, 0, commands, gateways);
    for (int i = 0; i < ROUNDS; i++) {
        double theirs = i % 2 ? play(&hand, commands, gateways) : 0;
        double rate = play(&ours, commands, gateways);
        if (i % 2 == 0)
            theirs = play(&hand, commands, gateways);
        sample_add(&ratio, rate / theirs);
    }
    printf("%d | %.0f | %.0f | %.2f |\n", gateways, sample_median(&hand.rate),
           sample_median(&ours.rate), sample_median(&ratio));
    close(ours.go);
    close(hand.go);
    while (wait(NULL) > 0)
        continue;
    return 0;
}
