/* SPDX-License-Identifier: 0BSD */
/* The calls of postgres.c, one statement each.  Times are clock_timestamp(),
 * which a statement that waited for a lock sees as it is after that. */
#ifndef FLEET_POSTGRES_SQL_H
#define FLEET_POSTGRES_SQL_H

/* In the statements @ is NAME, # the time in ms. */
#define OVER "(r.state = 0 OR r.until + r.retention <= #)"
#define FIELDS "r.id, r.state, r.token, r.attempts, r.fingerprint, r.until, " \
               "r.retention, r.reserved, r.code, r.owed::int, r.response"

/* fleet_may_claim, in SQL: $1 id, $2 fingerprint, $3 lease, $4 retention,
   $5 reserved, $6 attempts allowed, $7 age, $8 since when it remembers. */
#define FRESH "($7 = 0 OR $7 < $4 AND $7 < # - $8)"
#define MAY_CLAIM "CASE WHEN " OVER " THEN " FRESH " ELSE r.state = 1 AND " \
    "r.fingerprint = $2 AND r.until <= # AND r.attempts < $6 END"

/* What is known and not to be claimed is seen without a lock; the row that is
   to be claimed is looked at again when it is locked. */
static const char claim_sql[] =
    "WITH claimed AS (INSERT INTO @ AS r (id, state, token, attempts,"
    "  fingerprint, until, retention, reserved)"
    " SELECT $1, 1, nextval('@_token'), 1, $2, # + $3, $4, $5"
    "  WHERE coalesce((SELECT " MAY_CLAIM " FROM @ r WHERE id = $1), " FRESH ")"
    " ON CONFLICT (id) DO UPDATE SET state = 1, token = nextval('@_token'),"
    "  attempts = CASE WHEN " OVER " THEN 1 ELSE r.attempts + 1 END,"
    "  fingerprint = $2, until = # + $3, retention = $4, reserved = $5,"
    "  code = 0, owed = false, response = ''"
    " WHERE " MAY_CLAIM " RETURNING 1 AS one, " FIELDS "),"
    " seen AS (SELECT * FROM claimed UNION ALL SELECT 0, " FIELDS
    "  FROM @ r WHERE id = $1 AND NOT EXISTS (SELECT FROM claimed))"
    " SELECT #, seen.* FROM (SELECT) one LEFT JOIN seen ON true";

#define HELD "r.token = $1 AND r.state = 1 AND NOT " OVER

/* $1 token, $2 status, $3 code, $4 owed, $5 response.  What it
   answers: `meaning` in postgres_send.c. */
static const char complete_sql[] =
    "WITH done AS (UPDATE @ r SET state = $2, code = $3, owed = $4 = 1,"
    "  response = $5, until = #"
    "  WHERE " HELD " AND length($5) <= r.reserved RETURNING 1)"
    " SELECT CASE WHEN EXISTS (SELECT FROM done) THEN 0"
    " WHEN EXISTS (SELECT FROM @ r WHERE " HELD " AND length($5) > r.reserved)"
    " THEN 2 ELSE 1 END";
/* $1 token; renew: $2 lease */
static const char release_sql[] =
    "WITH done AS (UPDATE @ r SET state = 0, until = # WHERE " HELD
    " RETURNING 1) SELECT 1 - count(*) FROM done";
static const char renew_sql[] =
    "WITH done AS (UPDATE @ r SET until = greatest(until, # + $2) WHERE " HELD
    " RETURNING 1) SELECT 1 - count(*) FROM done";

/* $1 id */
static const char find_sql[] =
    "SELECT #, seen.* FROM (SELECT) one"
    " LEFT JOIN (SELECT 0, " FIELDS " FROM @ r WHERE id = $1) seen ON true";
/* $1 token of the one before */
static const char pending_sql[] =
    "SELECT #, 0, " FIELDS " FROM @ r WHERE r.owed AND NOT " OVER
    " AND (r.until, r.token) > (SELECT coalesce(max(until), 0),"
    "  coalesce(max(token), 0) FROM @ WHERE token = $1 AND state > 1)"
    " ORDER BY r.until, r.token LIMIT 1";
/* $1 token */
static const char delivered_sql[] =
    "WITH done AS (UPDATE @ r SET owed = false WHERE r.token = $1 AND"
    " r.state > 1 AND NOT " OVER " RETURNING 1)"
    " SELECT 3 * (1 - count(*)) FROM done";

/* A statement under way may still have a token for a row that is over, so those
   go a minute later: no statement takes so long. */
static const char maintain_sql[] =
    "WITH done AS (DELETE FROM @ WHERE id IN (SELECT id FROM @ r"
    " WHERE r.until + r.retention < # - 60000"
    " ORDER BY r.until + r.retention LIMIT 1000 FOR UPDATE SKIP LOCKED)"
    " RETURNING 1) SELECT 4 * (count(*) / 1000) FROM done";

/* Numbers start with the microseconds, above those of one that was dropped. */
static const char make_sql[] =
    "CREATE TABLE @ (id bytea PRIMARY KEY, state smallint NOT NULL,"
    " token bigint NOT NULL UNIQUE, attempts int NOT NULL,"
    " fingerprint bigint NOT NULL, until bigint NOT NULL,"
    " retention bigint NOT NULL, reserved int NOT NULL,"
    " code int NOT NULL DEFAULT 0, owed boolean NOT NULL DEFAULT false,"
    " response bytea NOT NULL DEFAULT '');"
    "CREATE INDEX ON @ (until, token) WHERE owed;"
    "CREATE INDEX ON @ ((until + retention));"
    "CREATE SEQUENCE @_token OWNED BY @.token;"
    "SELECT setval('@_token', 1000 * #);";

/* Whoever opens first makes it; the others wait for that, and look only then:
   a statement that waits sees what was there before. */
static const char lock_sql[] =
    "BEGIN; SELECT pg_advisory_xact_lock(hashtext('idem fleet'))";
static const char look_sql[] =
    "SELECT #, to_regclass('@') IS NOT NULL,"
    " coalesce(obj_description(to_regclass('@'), 'pg_class'), '')";
static const char session_sql[] =
    "SET statement_timeout = 4000;"
    "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ COMMITTED;"
    "SELECT set_config('synchronous_commit', 'on', false)"
    " WHERE current_setting('synchronous_commit') = 'off'";

#endif
