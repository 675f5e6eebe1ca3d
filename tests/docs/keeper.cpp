// SPDX-License-Identifier: 0BSD
// examples/port/keeper.hpp: threads that all send the same commands execute each
// once; what is a mistake is refused.
#define IDEM_IMPLEMENTATION
#include "examples/port/keeper.hpp"

#include <cstdio>
#include <type_traits>
#include <vector>

static int failed;

#define IS(actual, expected) is(__LINE__, (actual), (expected))
static void is(int line, long actual, long expected)
{
    if (actual == expected)
        return;
    std::printf("keeper.cpp:%d: %ld, not %ld\n", line, actual, expected);
    failed = 1;
}

static std::atomic<uint32_t> tick(0);

struct ticks {
    static uint32_t now() { return tick++; }
};

enum { KEYS = 50, THREADS = 4, SECTOR = 4096, SECTORS = 8 };

typedef idem_keeper<ticks, KEYS, 8, 8> in_ram;
typedef idem_keeper<ticks, KEYS, 8, 8, 1> journal;

static_assert(!std::is_copy_constructible<in_ram>::value &&
              !std::is_move_constructible<in_ram>::value &&
              !std::is_copy_assignable<in_ram>::value, "one table, one place");

static idem_config config()
{
    idem_config c = idem_config();
    c.secret[0] = c.secret[8] = 1;
    return c;
}

static idem_request request(const uint32_t &key)
{
    idem_request r = idem_request();
    r.key = &key;
    r.key_len = sizeof key;
    return r;
}

static int pour(idem_job &job)
{
    job.outcome.response = "poured";
    job.outcome.response_len = 6;
    return IDEM_HANDLED;
}

// True if that field is the one to be mended
template <class Keeper>
static bool explains(const Keeper &keeper, const char *field)
{
    const char *text = keeper.explain();

    return text && std::strncmp(text, field, std::strlen(field)) == 0;
}

static void mistakes()
{
    static in_ram keeper;
    const uint32_t key = 1;

    // Not IDEM_E_ARG: for a sender that means that it was not executed.
    IS(keeper.run(request(key), pour).result, IDEM_E_LOCK);
    IS(keeper.maintain(), IDEM_E_LOCK);
    IS(keeper.table() == nullptr, 1);
    IS(keeper.open(idem_config()), IDEM_E_ARG);     // no secret
    IS(explains(keeper, "secret: "), 1);
    IS(keeper.run(request(key), pour).result, IDEM_E_LOCK);
    IS(keeper.open(config()), IDEM_OK);
    IS(keeper.open(idem_config()), IDEM_E_ARG);     // it is open
    IS(keeper.explain() == nullptr, 1);
    in_ram::answer a = keeper.run(request(key), [&](idem_job &job) {
        const uint32_t other = 2;
        IS(keeper.run(request(other), pour).result, IDEM_DONE);
        return pour(job);
    });
    IS(a.result, IDEM_DONE);
    IS(a.size, 6);
    IS(std::strcmp(reinterpret_cast<char *>(a.response), "poured"), 0);
    a = keeper.run(request(key), pour);
    IS(a.result, IDEM_REPLAY);
    IS(std::strcmp(reinterpret_cast<char *>(a.response), "poured"), 0);
}

#ifdef __cpp_exceptions
static void exceptions()
{
    static in_ram keeper;
    const uint32_t key = 3;
    int answer = 0;

    IS(keeper.open(config()), IDEM_OK);
    in_ram::answer a = keeper.run(request(key), [](idem_job &) -> int {
        throw 1;
    });
    IS(a.result, IDEM_BUSY);
    tick += a.reply.retry_after_ms;
    a = keeper.run(request(key), [&](idem_job &job) {
        answer = job.answer;
        return pour(job);
    });
    IS(a.result, IDEM_DONE);
    IS(answer, IDEM_RECOVER);
}
#else
static void exceptions() {}
#endif

static void threads()
{
    static in_ram keeper;
    static std::atomic<int> pours[KEYS];
    std::vector<std::thread> all;

    IS(keeper.open(config()), IDEM_OK);
    for (int i = 0; i < THREADS; i++)
        all.emplace_back([] {
            for (uint32_t key = 0; key < KEYS; key++)
                keeper.run(request(key), [&](idem_job &job) {
                    pours[key]++;
                    return pour(job);
                });
        });
    for (std::thread &thread : all)
        thread.join();
    for (int key = 0; key < KEYS; key++)
        IS(pours[key], 1);
}

// A storage that calls the table, which holds the lock meanwhile
static uint8_t bytes[SECTOR * SECTORS];
static journal *inside, *opening;
static int from_inside;
static idem_storage s;

static int read_bytes(void *, uint32_t at, void *dst, uint32_t len)
{
    if (journal *keeper = opening) {
        idem_config c = config();
        c.storage = &s;
        opening = nullptr;
        from_inside = keeper->open(c);
    }
    std::memcpy(dst, bytes + at, len);
    return 0;
}

static int prog_bytes(void *, uint32_t at, const void *src, uint32_t len)
{
    if (inside)
        from_inside = inside->maintain();
    std::memcpy(bytes + at, src, len);
    return 0;
}

static void storage()
{
    static journal keeper;
    static in_ram without;
    static const uint32_t key = 1;
    idem_config c = config();

    s.read = read_bytes;
    s.prog = prog_bytes;
    s.sector_size = SECTOR;
    s.sector_count = SECTORS;
    s.prog_size = 8;
    IS(keeper.open(c), IDEM_E_ARG);                 // no storage
    IS(explains(keeper, "storage: "), 1);
    c.storage = &s;
    IS(keeper.open(c), IDEM_E_ARG);                 // another granule
    IS(explains(keeper, "storage: "), 1);
    s.prog_size = 1;
    IS(without.open(c), IDEM_E_ARG);                // a storage for one in RAM
    IS(explains(without, "storage: "), 1);
    opening = &keeper;
    IS(keeper.open(c), IDEM_OK);
    IS(from_inside, IDEM_E_LOCK);                   // two at once
    IS(keeper.explain() == nullptr, 1);
    inside = &keeper;
    IS(keeper.run(request(key), pour).result, IDEM_DONE);
    IS(from_inside, IDEM_E_LOCK);
}

int main()
{
    mistakes();
    exceptions();
    threads();
    storage();
    return failed;
}
