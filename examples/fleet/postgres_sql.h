/* SPDX-License-Identifier: 0BSD */
/* The statements of postgres.c, run by postgres_connection.c.  All
 * is in one table NAME, so it can only be emptied as a whole:
 *     slot, id        a key's row, the fields of store.h under their names;
 *                     due: when it may go, at the earliest; of a number also
 *                     scope and number; place: the order of undelivered ones
 *     0, ''           the mark, in response; until: when records were lost
 *     0, 'SCOPE#'     the floor of a scope that numbers its commands
 * NAME_token has the tokens.  A completion changes no indexed column, so it
 * writes no index (HOT).  The row of a released key stays until it is due, so
 * that the next token is taken under the lock of the row.
 *
 * In them %1$s is the table, %2$s the sequence of the tokens. */
#ifndef FLEET_POSTGRES_SQL_H
#define FLEET_POSTGRES_SQL_H

/* A row in the order of FLEET_GOT_*.  The floor is also raised by numbers whose
   retention has ended and which are still there: by those that ended last, for
   there may be millions.  (decide.c makes last what was answered from it.) */
#define ROW                                                                    \
    "WITH t AS MATERIALIZED (SELECT " NOW " AS now) "                          \
    "SELECT 0, t.now, r.id, encode(r.response, 'hex'), m.until, greatest("     \
    "  f.number, (SELECT max(x.number) FROM (SELECT e.number FROM %1$s e"      \
    "    WHERE e.scope = f_scope AND e.due <= (SELECT now FROM t)"             \
    "    AND e.state > 0 ORDER BY e.due DESC LIMIT 100) x)), r.state, "        \
    "  r.token, r.attempts, r.fingerprint, r.until, r.retention, r.reserved, " \
    "  r.code, r.pending FROM t CROSS JOIN %1$s m "

static const char *const statements[STATEMENTS] = {
    // The common case of a key at once: it is new, is not too old, and nothing
    // was lost.  mark, slot, id, fingerprint, lease, retention, reserved, age,
    // since, how long after a loss claims are uncertain
    [CLAIM_NEW] = "INSERT INTO %1$s (slot, id, state, token, attempts,"
    "  fingerprint, until, retention, reserved, due) "
    "SELECT $2::bigint, $3::text, 1, nextval('%2$s'), 1, $4::bigint,"
    "  t.now + $5::bigint, $6::bigint, $7::int,"
    "  t.now + $5::bigint + $6::bigint "
    "FROM %1$s m CROSS JOIN (SELECT " NOW " AS now) t "
    "WHERE m.slot = 0 AND m.id = '' AND m.response = $1::bytea"
    "  AND (m.until = 0 OR t.now >= m.until + $10::bigint)"
    "  AND ($8::bigint = 0 OR ($8::bigint < $6::bigint"
    "    AND $8::bigint < t.now - $9::bigint)) "
    "ON CONFLICT DO NOTHING RETURNING token, until",

    // Likewise: the claim is current.  mark, slot, token, state, code, pending,
    // response
    [COMPLETE_KEY] = "UPDATE %1$s r SET state = $4::int, code = $5::int,"
    "  pending = $6::int, response = decode($7::text, 'hex'), until = t.now,"
    "  place = CASE WHEN $6::int = 1 THEN nextval('%2$s') ELSE place END,"
    "  due = greatest(due, t.now + r.retention) "
    "FROM (SELECT " NOW " AS now) t WHERE r.slot = $2::bigint"
    "  AND r.token = $3::bigint AND r.state = 1 AND r.scope IS NULL"
    "  AND r.until + r.retention > t.now"
    "  AND length($7::text) <= 2 * r.reserved AND EXISTS (SELECT FROM %1$s m"
    "    WHERE m.slot = 0 AND m.id = '' AND m.response = $1::bytea) "
    "RETURNING r.token, r.until",

    // mark, slot, id, scope or NULL
    [BY_ID] = ROW
    "CROSS JOIN LATERAL (SELECT $4::text AS f_scope) s "
    "LEFT JOIN %1$s r ON r.slot = $2::bigint AND r.id = $3::text "
    "LEFT JOIN %1$s f ON f.slot = 0 AND f.id = f_scope || '#' "
    "WHERE m.slot = 0 AND m.id = '' AND m.response = $1::bytea",

    // mark, slot, token.  A claim that is all zero is nobody's; mark and floors
    // have no token.
    [BY_TOKEN] = ROW
    "LEFT JOIN %1$s r ON r.slot = $2::bigint AND r.token = $3::bigint "
    "  AND r.token > 0 "
    "CROSS JOIN LATERAL (SELECT r.scope AS f_scope) s "
    "LEFT JOIN %1$s f ON f.slot = 0 AND f.id = f_scope || '#' "
    "WHERE m.slot = 0 AND m.id = '' AND m.response = $1::bytea",

    // mark, slot and token of the one before
    [PENDING] = ROW
    "CROSS JOIN LATERAL (SELECT NULL::text AS f_scope) s "
    "LEFT JOIN %1$s f ON false "
    "LEFT JOIN %1$s r ON r.pending = 1 "
    "AND r.place > coalesce((SELECT max(l.place)"
    "  FROM %1$s l WHERE l.slot = $2::bigint AND l.token = $3::bigint), 0) "
    "  AND r.until + r.retention > t.now "
    "WHERE m.slot = 0 AND m.id = '' AND m.response = $1::bytea "
    "ORDER BY r.place LIMIT 1",

    // mark, slot, id, scope, number, whether its epoch is new, fingerprint,
    // until, retention, reserved.  The floor is looked at again here: a gateway
    // may have been suspended since it read, for longer than any retention.
    [INSERT] = "WITH raised AS (INSERT INTO %1$s AS f (slot, id, number, due) "
    "  SELECT 0, $4::text || '#', left($5::text, 8) || '00000000',"
    "  9000000000000"
    "  WHERE $6::int = 1 ON CONFLICT (slot, id) DO UPDATE SET"
    "  number = excluded.number WHERE f.number < excluded.number) "
    "INSERT INTO %1$s (slot, id, scope, number, state, token, attempts,"
    "  fingerprint, until, retention, reserved, due) "
    "SELECT $2::bigint, $3::text, $4::text, $5::text, 1, nextval('%2$s'), 1,"
    "  $7::bigint, $8::bigint, $9::bigint, $10::int, $8::bigint + $9::bigint "
    "FROM %1$s m WHERE m.slot = 0 AND m.id = '' AND m.response = $1::bytea"
    "  AND NOT EXISTS (SELECT FROM %1$s f WHERE f.slot = 0"
    "    AND f.id = $4::text || '#' AND f.number >= $5::text) "
    "ON CONFLICT DO NOTHING RETURNING token",

    // slot, id, the old token, state, until, pending; whether a claim, then
    // the new fields.  A number is due when it expires, because it raises the
    // floor then; a key may go later.
    [UPDATE] = "UPDATE %1$s SET token = CASE WHEN $7::int = 1 "
    "  THEN nextval('%2$s') ELSE token END, state = $8::int,"
    "  attempts = $9::int, fingerprint = $10::bigint, until = $11::bigint,"
    "  retention = $12::bigint, reserved = $13::int, code = $14::int,"
    "  pending = $15::int, response = decode($16::text, 'hex'),"
    "  place = CASE WHEN $15::int > pending THEN nextval('%2$s')"
    " ELSE place END,"
    "  due = CASE WHEN scope IS NULL THEN greatest(due, $11::bigint"
    "    + $12::bigint) ELSE $11::bigint + $12::bigint END "
    "WHERE slot = $1::bigint AND id = $2::text AND token = $3::bigint"
    "  AND state = $4::int AND until = $5::bigint AND pending = $6::int "
    "RETURNING token",

    // scope, number
    [RAISE] = "INSERT INTO %1$s AS f (slot, id, number, due) "
    "VALUES (0, $1::text || '#', $2::text, 9000000000000) "
    "ON CONFLICT (slot, id) DO UPDATE SET number = excluded.number "
    "WHERE f.number < excluded.number",

    // Rows go a minute late: a statement under way may still have a token for
    // one.
    [SWEEP] = "WITH dropped AS (DELETE FROM %1$s WHERE (slot, id) IN ("
    "  SELECT slot, id FROM %1$s WHERE due < (SELECT " NOW " - 60000)"
    "  ORDER BY due LIMIT 128 FOR UPDATE SKIP LOCKED)"
    "  RETURNING scope, number, state) "
    "INSERT INTO %1$s AS f (slot, id, number, due) "
    "SELECT 0, scope || '#', max(number), 9000000000000 FROM dropped "
    "WHERE scope IS NOT NULL AND state > 0 GROUP BY scope ORDER BY scope "
    "ON CONFLICT (slot, id) DO UPDATE SET"
    "  number = greatest(f.number, excluded.number)",

    [LOSE] = "UPDATE %1$s SET until = " NOW " WHERE slot = 0 AND id = ''"
};

/* Whoever opens first makes it; the others wait for that, and look then. */
static const char make[] = "CREATE TABLE %1$s (slot bigint NOT NULL,"
    " id text COLLATE \"C\" NOT NULL, scope text COLLATE \"C\","
    " number text COLLATE \"C\", state int NOT NULL DEFAULT 0,"
    " token bigint NOT NULL DEFAULT 0, attempts int NOT NULL DEFAULT 0,"
    " fingerprint bigint NOT NULL DEFAULT 0, until bigint NOT NULL DEFAULT 0,"
    " retention bigint NOT NULL DEFAULT 0, reserved int NOT NULL DEFAULT 0,"
    " code int NOT NULL DEFAULT 0, pending int NOT NULL DEFAULT 0,"
    " place bigint NOT NULL DEFAULT 0, due bigint NOT NULL,"
    " response bytea NOT NULL DEFAULT '', PRIMARY KEY (slot, id))"
    " WITH (fillfactor = 70);"
    "CREATE INDEX ON %1$s (due);"
    "CREATE INDEX ON %1$s (scope, due) WHERE scope IS NOT NULL;"
    "CREATE INDEX ON %1$s (place) WHERE pending = 1;"
    "CREATE SEQUENCE %2$s OWNED BY %1$s.token";

#endif
