/* SPDX-License-Identifier: 0BSD */
/* PostgreSQL (postgresql, libpq-dev) on a unix socket, as it comes: prepared
   statements; those in flight go through a pipeline as one transaction. */
#define _POSIX_C_SOURCE 200809L

#include "tests/bench/store.h"

#include <libpq-fe.h>

static PGconn *connection;

static PGresult *must(PGresult *r)
{
    ExecStatusType status = PQresultStatus(r);

    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK &&
        status != PGRES_PIPELINE_SYNC)
        fail("PostgreSQL: %s", PQerrorMessage(connection));
    return r;
}

static void run(const char *sql)
{
    PQclear(must(PQexec(connection, sql)));
}

static void prepare(const char *name, const char *sql)
{
    PQclear(must(PQprepare(connection, name, sql, 0, NULL)));
}

static const char *open_postgres(const char *folder)
{
    char where[600];
    double start = now_us();

    if (server_start("postgres", folder))
        return "postgresql is not installed, or its user may not come here";
    snprintf(where, sizeof where,
             "host=%s/socket dbname=postgres user=postgres", folder);
    while (connection = PQconnectdb(where),
           PQstatus(connection) != CONNECTION_OK) {
        PQfinish(connection);
        if (now_us() - start > 60e6)
            return "the server does not answer";
        pause_ms(1);
    }
    run("set client_min_messages = warning");
    run("create table if not exists keys (key bytea primary key, fingerprint "
        "bigint not null, status int not null, token bigint not null, until "
        "bigint not null, response bytea)");
    prepare("begin", "insert into keys values ($1::bytea, $2::bigint, 1, "
                     "$3::bigint, $4::bigint) on conflict do nothing");
    prepare("look", "select fingerprint, status, response from keys where "
                    "key = $1::bytea");
    prepare("complete", "update keys set status = 2, until = $3::bigint, "
                        "response = $4::bytea where key = $1::bytea and "
                        "token = $2::bigint and status = 1");
    return NULL;
}

static void close_postgres(void)
{
    PQfinish(connection);
    server_stop("postgres");
}

/* A number as a parameter in binary: the highest byte first */
static void big_endian(char bytes[8], uint64_t value)
{
    int i;

    for (i = 0; i < 8; i++)
        bytes[i] = (char)(value >> (56 - 8 * i));
}

static void send_query(const char *name, const char *const *values,
                       const int *lengths, int count)
{
    static const int binary[4] = { 1, 1, 1, 1 };

    if (!PQsendQueryPrepared(connection, name, count, values, lengths, binary,
                             1))
        fail("PostgreSQL: %s", PQerrorMessage(connection));
}

/* The result of the next query in the pipeline */
static PGresult *next_result(void)
{
    PGresult *r = must(PQgetResult(connection));

    PQclear(PQgetResult(connection));       // the NULL that ends it
    return r;
}

/* Ends a pipeline, and with it the transaction. */
static void end_pipeline(void)
{
    PQclear(must(PQgetResult(connection)));
    if (!PQexitPipelineMode(connection))
        fail("PostgreSQL: %s", PQerrorMessage(connection));
}

static void look_up(struct job *job)
{
    const char *values[1] = { (const char *)job->key };
    int lengths[1] = { KEY_LEN }, binary[1] = { 1 };
    char fingerprint[8];
    PGresult *r = must(PQexecPrepared(connection, "look", 1, values, lengths,
                                      binary, 1));

    if (PQntuples(r) != 1)
        fail("PostgreSQL: a key that is there is not found");
    big_endian(fingerprint, job->fingerprint);
    job->answer = IDEM_BUSY;
    if (memcmp(PQgetvalue(r, 0, 0), fingerprint, sizeof fingerprint) != 0)
        job->answer = IDEM_MISMATCH;
    else if (PQgetvalue(r, 0, 1)[3] == IDEM_COMPLETED) {
        memcpy(job->stored, PQgetvalue(r, 0, 2), RESPONSE_LEN);
        job->answer = IDEM_REPLAY;
    }
    PQclear(r);
}

/* Sends one statement for each job, and sets `answer` where it changed a row,
   `otherwise` where not. */
static void pipeline(struct job *jobs, int count, const char *name, int answer,
                     int otherwise)
{
    uint64_t now_ms = (uint64_t)(now_us() / 1000);
    char numbers[3][8];
    int i, is_begin = strcmp(name, "begin") == 0;

    PQenterPipelineMode(connection);
    for (i = 0; i < count; i++) {
        const char *begin[4] = { (const char *)jobs[i].key, numbers[0],
                                 numbers[1], numbers[2] };
        const char *complete[4] = { (const char *)jobs[i].key, numbers[1],
                                    numbers[2],
                                    (const char *)jobs[i].response };
        static const int lengths[2][4] = { { KEY_LEN, 8, 8, RESPONSE_LEN },
                                           { KEY_LEN, 8, 8, 8 } };
        if (is_begin)
            jobs[i].token = new_token();
        big_endian(numbers[0], jobs[i].fingerprint);
        big_endian(numbers[1], jobs[i].token);
        big_endian(numbers[2], now_ms + (is_begin ? LEASE_MS : RETENTION_MS));
        send_query(name, is_begin ? begin : complete, lengths[is_begin], 4);
    }
    if (!PQpipelineSync(connection))
        fail("PostgreSQL: %s", PQerrorMessage(connection));
    for (i = 0; i < count; i++) {
        PGresult *r = next_result();
        jobs[i].answer = PQcmdTuples(r)[0] == '1' ? answer : otherwise;
        PQclear(r);
    }
    end_pipeline();
}

static void begin_postgres(struct job *jobs, int count)
{
    int i;

    pipeline(jobs, count, "begin", IDEM_EXECUTE, IDEM_REPLAY);
    for (i = 0; i < count; i++)
        if (jobs[i].answer != IDEM_EXECUTE)
            look_up(&jobs[i]);
}

static void complete_postgres(struct job *jobs, int count)
{
    pipeline(jobs, count, "complete", IDEM_OK, IDEM_E_FENCED);
}

/* What went into the write-ahead log */
static uint64_t written_postgres(void)
{
    PGresult *r = must(PQexec(connection,
                              "select pg_wal_lsn_diff(pg_current_wal_lsn(), "
                              "'0/0')::bigint"));
    uint64_t bytes = strtoull(PQgetvalue(r, 0, 0), NULL, 10);

    PQclear(r);
    return bytes;
}

const struct store postgres_store = { "PostgreSQL", open_postgres,
                                      close_postgres, begin_postgres,
                                      complete_postgres, written_postgres };
