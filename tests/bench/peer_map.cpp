/* SPDX-License-Identifier: 0BSD */
/* std::unordered_map, reserved for all keys; with our hash, and with
   std::hash<std::string_view>. */
#include "tests/bench/subject.h"

#include <array>
#include <string_view>
#include <unordered_map>

namespace {

using map_key = std::array<unsigned char, KEY_LEN>;

struct own_hash {
    std::size_t operator()(const map_key &key) const
    {
        return hash_key(key.data());
    }
};

struct default_hash {
    std::size_t operator()(const map_key &key) const
    {
        const char *bytes = reinterpret_cast<const char *>(key.data());
        return std::hash<std::string_view>()(std::string_view(bytes, KEY_LEN));
    }
};

map_key key_of(const unsigned char *bytes)
{
    map_key key;

    memcpy(key.data(), bytes, KEY_LEN);
    return key;
}

template <class hash> struct map_of {
    using map_type = std::unordered_map<map_key, entry, hash>;
    static map_type *map;
    static std::size_t before;      // bytes in the heap

    static void open(std::size_t keys, uint32_t retention_ms)
    {
        before = heap_bytes();
        peer_open(retention_ms);
        queue_open(keys);
        map = new map_type(keys);
    }

    static void close()
    {
        delete map;
        queue_close();
    }

    static int begin(ticket *claim, unsigned char *response, const command *c,
                     uint32_t now_ms)
    {
        uint64_t fingerprint = hash_payload(c->payload);
        auto place = map->try_emplace(key_of(c->key));
        entry *e = &place.first->second;

        return place.second
                   ? entry_first(e, claim, fingerprint, now_ms)
                   : entry_again(e, claim, response, fingerprint, now_ms);
    }

    static int complete(const ticket *claim, const command *c, uint32_t now_ms)
    {
        auto place = map->find(key_of(c->key));
        int result = place == map->end()
                         ? static_cast<int>(IDEM_E_FENCED)
                         : entry_complete(&place->second, claim, c, now_ms);

        if (result == IDEM_OK)
            queue_put(c->key, place->second.until);
        return result;
    }

    static int known(const command *c)
    {
        return map->find(key_of(c->key)) != map->end();
    }

    static void expire(uint32_t now_ms)
    {
        while (const due *oldest = queue_take(now_ms))
            map->erase(key_of(oldest->key));
    }

    static std::size_t live(uint32_t now_ms)
    {
        expire(now_ms);
        return map->size();
    }

    static std::size_t bytes()
    {
        return heap_bytes() - before;
    }
};

template <class hash> typename map_of<hash>::map_type *map_of<hash>::map;
template <class hash> std::size_t map_of<hash>::before;

using own = map_of<own_hash>;
using with_default = map_of<default_hash>;

} // namespace

const subject map_subject = {
    "unordered_map", own::open, own::close, own::begin, own::complete,
    own::known, own::expire, own::live, own::bytes, 1 };
const subject map_default_subject = {
    "unordered_map, its hash", with_default::open, with_default::close,
    with_default::begin, with_default::complete, with_default::known,
    with_default::expire, with_default::live, with_default::bytes, 1 };
