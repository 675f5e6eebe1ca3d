/* SPDX-License-Identifier: 0BSD */
/* stb_ds (libstb-dev): a map from keys to structs.  It hashes by itself,
   16 bytes with its own kind of SipHash; its places move, so a completion looks
   its key up again. */
#define _POSIX_C_SOURCE 200809L

#include "tests/bench/subject.h"

#define STBDS_REALLOC(context, block, size) counted_realloc(block, size)
#define STBDS_FREE(context, block)          counted_free(block)
#define STB_DS_IMPLEMENTATION
#include <stb/stb_ds.h>

struct stb_key {
    unsigned char bytes[KEY_LEN];
};

struct stb_pair {
    struct stb_key key;
    struct entry value;
};

static struct stb_pair *map;

static struct stb_key stb_key(const unsigned char *bytes)
{
    struct stb_key key;

    memcpy(key.bytes, bytes, KEY_LEN);
    return key;
}

static void stb_open(size_t keys, uint32_t retention_ms)
{
    peer_open(retention_ms);
    queue_open(keys);
    stbds_rand_seed(0x5b0e9127d4668f13u);
    map = NULL;
}

static void stb_close(void)
{
    hmfree(map);
    queue_close();
}

static int stb_begin(struct ticket *ticket, unsigned char *response,
                     const struct command *c, uint32_t now_ms)
{
    uint64_t fingerprint = hash_payload(c->payload);
    struct stb_pair pair = { .key = stb_key(c->key) };
    ptrdiff_t at = hmgeti(map, pair.key);

    if (at >= 0)
        return entry_again(&map[at].value, ticket, response, fingerprint,
                           now_ms);
    entry_first(&pair.value, ticket, fingerprint, now_ms);
    hmputs(map, pair);
    return IDEM_EXECUTE;
}

static int stb_complete(const struct ticket *ticket, const struct command *c,
                        uint32_t now_ms)
{
    struct stb_key key = stb_key(c->key);
    ptrdiff_t at = hmgeti(map, key);
    int result = at < 0 ? IDEM_E_FENCED
                        : entry_complete(&map[at].value, ticket, c, now_ms);

    if (result == IDEM_OK)
        queue_put(c->key, map[at].value.until);
    return result;
}

static int stb_known(const struct command *c)
{
    struct stb_key key = stb_key(c->key);

    return hmgeti(map, key) >= 0;
}

static void stb_expire(uint32_t now_ms)
{
    const struct due *due;

    while ((due = queue_take(now_ms)) != NULL) {
        struct stb_key key = stb_key(due->key);
        hmdel(map, key);
    }
}

static size_t stb_live(uint32_t now_ms)
{
    stb_expire(now_ms);
    return (size_t)hmlen(map);
}

const struct subject stb_subject = {
    "stb_ds", stb_open, stb_close, stb_begin, stb_complete, stb_known,
    stb_expire, stb_live, peer_bytes, 1 };
