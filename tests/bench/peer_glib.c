/* SPDX-License-Identifier: 0BSD */
/* GHashTable (libglib2.0-dev) of nodes from malloc.
   With our hash, and with that of g_bytes_hash. */
#define _POSIX_C_SOURCE 200809L

#include "tests/bench/subject.h"

#include <glib.h>

struct node {
    unsigned char key[KEY_LEN];
    struct entry entry;
};

static GHashTable *nodes;
static size_t before;           // bytes in the heap

static guint own_hash(gconstpointer key)
{
    return hash_key(key);
}

/* What g_bytes_hash does, on the bytes themselves: times 33, by D. J.
   Bernstein */
static guint default_hash(gconstpointer key)
{
    const signed char *p = key;
    guint hash = 5381;
    int i;

    for (i = 0; i < KEY_LEN; i++)
        hash = (hash << 5) + hash + (guint)p[i];
    return hash;
}

static gboolean equal(gconstpointer a, gconstpointer b)
{
    return memcmp(a, b, KEY_LEN) == 0;
}

static void glib_open_with(GHashFunc hash, size_t keys, uint32_t retention_ms)
{
    before = heap_bytes();
    peer_open(retention_ms);
    queue_open(keys);
    nodes = g_hash_table_new_full(hash, equal, free, NULL);
}

static void glib_open(size_t keys, uint32_t retention_ms)
{
    glib_open_with(own_hash, keys, retention_ms);
}

static void glib_default_open(size_t keys, uint32_t retention_ms)
{
    glib_open_with(default_hash, keys, retention_ms);
}

static void glib_close(void)
{
    g_hash_table_destroy(nodes);
    queue_close();
}

static int glib_begin(struct ticket *ticket, unsigned char *response,
                      const struct command *c, uint32_t now_ms)
{
    uint64_t fingerprint = hash_payload(c->payload);
    struct node *node = g_hash_table_lookup(nodes, c->key);

    ticket->node = node;
    if (node)
        return entry_again(&node->entry, ticket, response, fingerprint,
                           now_ms);
    ticket->node = node = malloc(sizeof *node);
    if (!node)
        return IDEM_E_FULL;
    memcpy(node->key, c->key, KEY_LEN);
    g_hash_table_add(nodes, node);
    return entry_first(&node->entry, ticket, fingerprint, now_ms);
}

static int glib_complete(const struct ticket *ticket, const struct command *c,
                         uint32_t now_ms)
{
    struct node *node = g_hash_table_lookup(nodes, c->key);
    int result = node ? entry_complete(&node->entry, ticket, c, now_ms)
                      : IDEM_E_FENCED;

    if (result == IDEM_OK)
        queue_put(c->key, node->entry.until);
    return result;
}

static int glib_known(const struct command *c)
{
    return g_hash_table_lookup(nodes, c->key) != NULL;
}

static void glib_expire(uint32_t now_ms)
{
    const struct due *due;

    while ((due = queue_take(now_ms)) != NULL)
        g_hash_table_remove(nodes, due->key);
}

static size_t glib_live(uint32_t now_ms)
{
    glib_expire(now_ms);
    return g_hash_table_size(nodes);
}

static size_t glib_bytes(void)
{
    return heap_bytes() - before;
}

const struct subject glib_subject = {
    "GLib", glib_open, glib_close, glib_begin, glib_complete, glib_known,
    glib_expire, glib_live, glib_bytes, 1 };
const struct subject glib_default_subject = {
    "GLib, its hash", glib_default_open, glib_close, glib_begin, glib_complete,
    glib_known, glib_expire, glib_live, glib_bytes, 1 };
