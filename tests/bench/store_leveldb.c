/* SPDX-License-Identifier: 0BSD */
/* LevelDB (libleveldb-dev): write batches with sync. */
#define _POSIX_C_SOURCE 200809L

#include "tests/bench/store.h"

#include <leveldb/c.h>

static leveldb_t *db;
static leveldb_options_t *options;
static leveldb_readoptions_t *reading;
static leveldb_writeoptions_t *writing;

static void must(char *error)
{
    if (error)
        fail("LevelDB: %s", error);
}

static const char *open_leveldb(const char *folder)
{
    char *error = NULL;

    options = leveldb_options_create();
    leveldb_options_set_create_if_missing(options, 1);
    reading = leveldb_readoptions_create();
    writing = leveldb_writeoptions_create();
    leveldb_writeoptions_set_sync(writing, 1);
    db = leveldb_open(options, folder, &error);
    must(error);
    return NULL;
}

static void close_leveldb(void)
{
    leveldb_close(db);
    leveldb_writeoptions_destroy(writing);
    leveldb_readoptions_destroy(reading);
    leveldb_options_destroy(options);
}

/* Reads the value of a key; returns whether there is one. */
static int get(struct value *v, const uint8_t *key)
{
    char *error = NULL;
    size_t len;
    char *data = leveldb_get(db, reading, (const char *)key, KEY_LEN, &len,
                             &error);

    must(error);
    if (!data)
        return 0;
    memcpy(v, data, sizeof *v);
    leveldb_free(data);
    return 1;
}

static void put(leveldb_writebatch_t *batch, const uint8_t *key,
                const struct value *v)
{
    leveldb_writebatch_put(batch, (const char *)key, KEY_LEN,
                           (const char *)v, sizeof *v);
}

static void commit(leveldb_writebatch_t *batch, int count)
{
    char *error = NULL;

    if (count)
        leveldb_write(db, writing, batch, &error);
    must(error);
    leveldb_writebatch_destroy(batch);
}

static void begin_leveldb(struct job *jobs, int count)
{
    leveldb_writebatch_t *batch = leveldb_writebatch_create();
    int i, fresh = 0;

    for (i = 0; i < count; i++) {
        struct value v;
        if (get(&v, jobs[i].key)) {
            value_answer(&v, &jobs[i]);
            continue;
        }
        v = value_claim(&jobs[i]);
        put(batch, jobs[i].key, &v);
        fresh++;
    }
    commit(batch, fresh);
}

static void complete_leveldb(struct job *jobs, int count)
{
    leveldb_writebatch_t *batch = leveldb_writebatch_create();
    int i, current = 0;

    for (i = 0; i < count; i++) {
        struct value v;
        jobs[i].answer = IDEM_E_FENCED;
        if (get(&v, jobs[i].key) && value_complete(&v, &jobs[i])) {
            put(batch, jobs[i].key, &v);
            current++;
        }
    }
    commit(batch, current);
}

const struct store leveldb_store = { "LevelDB", open_leveldb, close_leveldb,
                                     begin_leveldb, complete_leveldb,
                                     self_written };
