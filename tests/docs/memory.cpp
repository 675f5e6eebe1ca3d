// SPDX-License-Identifier: 0BSD
// A C++17 class that holds a table, from the manual alone: a storage in memory,
// which another object opens again; designated initialisers are C++20's, so
// fields are assigned.
#include "idem.h"
#include <array>
#include <cstdio>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

using fram = std::vector<unsigned char>;

class commands {
public:
    explicit commands(fram &bytes)
    {
        storage.ctx = &bytes;
        storage.read = [](void *ctx, uint32_t at, void *dst, uint32_t len) {
            std::memcpy(dst, static_cast<fram *>(ctx)->data() + at, len);
            return 0;
        };
        storage.prog = [](void *ctx, uint32_t at, const void *src,
                          uint32_t len) {
            std::memcpy(static_cast<fram *>(ctx)->data() + at, src, len);
            return 0;
        };
        storage.sector_size = sector;
        storage.sector_count = sectors;
        storage.prog_size = 1;
        config.capacity = keys;
        config.key_max = 16;
        config.response_max = 8;
        config.secret[0] = config.secret[8] = 1;    // of a test only
        config.storage = &storage;
        config.retention_ms = 60000;
        result = idem_open(&table, &config, memory.data(), sizeof memory, 0);
    }

    template <class Effect>
    int run(std::string_view key, Effect &&effect, uint32_t now_ms)
    {
        idem_request request{};
        idem_claim claim;
        idem_reply reply{};
        idem_outcome outcome{};
        request.key = key.data();
        request.key_len = key.size();
        int answer = idem_begin(&table, &claim, &reply, &request, now_ms);
        if (answer == IDEM_EXECUTE) {
            std::forward<Effect>(effect)();
            if (int failed = idem_complete(&table, &claim, &outcome, now_ms))
                return failed;
        }
        return answer;
    }

    static constexpr uint32_t keys = 8, sector = 1024;
    static constexpr uint32_t sectors = IDEM_SECTORS(keys, 16, 8, 0, sector, 1);
    int result;

private:
    idem_storage storage{};
    idem_config config{};
    idem_table table{};
    std::array<uint32_t, IDEM_JOURNAL_MEMORY_SIZE(keys, 16, 8, 0, 1) / 4>
        memory{};
};

int main()
{
    fram bytes(commands::sector * commands::sectors);
    int executed = 0;

    for (uint32_t boot = 0; boot < 3; boot++) {
        commands c(bytes);
        if (c.result != IDEM_OK)
            return 1;
        c.run("a", [&] { executed++; }, boot);
        c.run("b", [&] { executed++; }, boot);
    }
    std::printf("executed %d\n", executed);
    return executed != 2;
}
