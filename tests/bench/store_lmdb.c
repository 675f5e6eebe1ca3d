/* SPDX-License-Identifier: 0BSD */
/* LMDB (liblmdb-dev) as it comes: a transaction's pages are written and synced
   when it commits. */
#define _POSIX_C_SOURCE 200809L

#include "tests/bench/store.h"

#include <lmdb.h>

static MDB_env *environment;
static MDB_dbi keys;
static MDB_txn *transaction;

static void must(int result)
{
    if (result)
        fail("LMDB: %s", mdb_strerror(result));
}

static const char *open_lmdb(const char *folder)
{
    must(mdb_env_create(&environment));
    must(mdb_env_set_mapsize(environment, (size_t)1 << 30));
    must(mdb_env_open(environment, folder, 0, 0600));
    must(mdb_txn_begin(environment, NULL, 0, &transaction));
    must(mdb_dbi_open(transaction, NULL, 0, &keys));
    must(mdb_txn_commit(transaction));
    return NULL;
}

static void close_lmdb(void)
{
    mdb_env_close(environment);
}

static void begin_lmdb(struct job *jobs, int count)
{
    int i;

    must(mdb_txn_begin(environment, NULL, 0, &transaction));
    for (i = 0; i < count; i++) {
        struct value v = value_claim(&jobs[i]);
        MDB_val key = { KEY_LEN, jobs[i].key }, data = { sizeof v, &v };
        int result = mdb_put(transaction, keys, &key, &data, MDB_NOOVERWRITE);
        if (result == MDB_KEYEXIST) {
            memcpy(&v, data.mv_data, sizeof v);
            value_answer(&v, &jobs[i]);
        } else
            must(result);
    }
    must(mdb_txn_commit(transaction));
}

static void complete_lmdb(struct job *jobs, int count)
{
    int i;

    must(mdb_txn_begin(environment, NULL, 0, &transaction));
    for (i = 0; i < count; i++) {
        MDB_val key = { KEY_LEN, jobs[i].key }, data;
        struct value v;
        must(mdb_get(transaction, keys, &key, &data));
        memcpy(&v, data.mv_data, sizeof v);
        data.mv_data = &v;
        if (value_complete(&v, &jobs[i]))
            must(mdb_put(transaction, keys, &key, &data, 0));
    }
    must(mdb_txn_commit(transaction));
}

const struct store lmdb_store = { "LMDB", open_lmdb, close_lmdb, begin_lmdb,
                                  complete_lmdb, self_written };
