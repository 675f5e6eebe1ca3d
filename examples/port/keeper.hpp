// SPDX-License-Identifier: 0BSD
// A table of idem.h with its memory and its lock in one object, for C++11 and
// later, with or without exceptions.
//
//     struct millis { static uint32_t now(); };       // the tick, in ms
//     static idem_keeper<millis, 64, 24, 16> keeper;  // keys, bytes, bytes
//
//     idem_config config = idem_config();
//     ... secret, retention_ms; with a journal: storage
//     if (keeper.open(config) != IDEM_OK)
//         return 1;
//
//     auto answer = keeper.run(request, [&](idem_job &job) -> int {
//         if (job.answer != IDEM_EXECUTE)             // it may have poured
//             job.outcome.code = NOBODY_KNOWS;        // a code of yours
//         job.outcome.failed = job.outcome.code != 0 || pour() != 0;
//         return IDEM_HANDLED;
//     });
//
// answer.result is that of idem_run; answer.response, of answer.size bytes, is
// the outcome's.  The object cannot be copied or moved, has the sizes from one
// list, and copies the configuration; the storage, if there is one, lives as
// long.  Any thread may call it.  Calls before open, after an open that failed,
// or from inside the storage's callbacks are IDEM_E_LOCK; calls from a handler
// are not, for no lock is held there.  A handler that throws has returned
// IDEM_CANNOT_TELL: the claim is kept, and the next attempt is IDEM_RECOVER.  A
// thread that runs a handler must not be cancelled: that ends the process.
// With IDEM_BATCH idem_sync(keeper.table()) comes before the effect, and again
// before the answer is sent (>>concurrency).
#ifndef IDEM_KEEPER_HPP
#define IDEM_KEEPER_HPP

#include "idem.h"

#include <atomic>
#include <cstring>
#include <mutex>
#include <thread>
#include <type_traits>

// With a journal Granule is the storage's prog_size; 0: in RAM.
template <class Clock, uint32_t Keys, uint16_t KeyMax, uint16_t ResponseMax,
          uint16_t Granule = 0, uint16_t StateMax = 0>
class idem_keeper {
    static_assert(Keys > 0 && KeyMax > 0, "a table has keys, and they bytes");

public:
    struct answer {
        int result;                 // of idem_run
        idem_reply reply;
        size_t size;                // bytes of the response
        unsigned char response[ResponseMax + 1];    // then a zero
    };

    idem_keeper() : owner_(std::thread::id()), open_(false), table_() {}
    idem_keeper(const idem_keeper &) = delete;
    idem_keeper &operator=(const idem_keeper &) = delete;

    // Sizes and lock are the object's; the rest is as in `config`.  To be
    // called again only when an earlier call has failed.
    int open(const idem_config &config)
    {
        if (lock(this) != 0)
            return IDEM_E_LOCK;
        int result = open_ ? IDEM_E_ARG : open_locked(config);
        unlock(this);
        return result;
    }

    // What is wrong with the configuration, or NULL.
    const char *explain() const
    {
        return fits() ? idem_explain(&config_)
                      : "storage: Granule must be its prog_size, or 0 if there "
                        "is none";
    }

    // Request.buffer is not used: the response comes in the answer.
    template <class Handler>
    answer run(idem_request request, Handler handler)
    {
        answer a;

        std::memset(&a, 0, sizeof a);
        request.buffer = a.response;
        request.buffer_size = ResponseMax;
        a.result = open_ ? idem_run(&table_, &a.reply, &request,
                                    call<Handler>, &handler, Clock::now)
                         : IDEM_E_LOCK;
        if (a.result == IDEM_DONE || a.result == IDEM_REPLAY)
            a.size = a.reply.response_len;
        return a;
    }

    // In idle time, again while it returns IDEM_MORE.
    int maintain()
    {
        return open_ ? idem_maintain(&table_, Clock::now()) : IDEM_E_LOCK;
    }

    // For calls that have no function here.
    idem_table *table() { return open_ ? &table_ : nullptr; }

private:
    int open_locked(const idem_config &config)
    {
        config_ = config;
        config_.capacity = Keys;
        config_.key_max = KeyMax;
        config_.response_max = ResponseMax;
        config_.state_max = StateMax;
        config_.senders = 0;
        config_.lock_ctx = this;
        config_.lock = lock;
        config_.unlock = unlock;
        if (!fits())
            return IDEM_E_ARG;
        int result = idem_open(&table_, &config_, memory_, sizeof memory_,
                               Clock::now());
        open_ = result == IDEM_OK;
        return result;
    }

    // The memory is for a journal with that granule, or for none.
    bool fits() const
    {
        return config_.storage
                   ? Granule && config_.storage->prog_size == Granule
                   : !Granule;
    }

    template <class Handler>
    static int call(idem_job *job)
    {
        Handler &handler = *static_cast<Handler *>(job->ctx);
#if defined __cpp_exceptions || defined __EXCEPTIONS || defined _CPPUNWIND
        // An exception must not pass through idem_run, which may be C.
        try {
            return handler(*job);
        } catch (...) {
            return IDEM_CANNOT_TELL;
        }
#else
        return handler(*job);
#endif
    }

    // A thread that holds the lock is refused, instead of waiting for itself.
    static int lock(void *ctx)
    {
        idem_keeper *keeper = static_cast<idem_keeper *>(ctx);

        if (keeper->owner_.load() == std::this_thread::get_id())
            return -1;
        keeper->mutex_.lock();
        keeper->owner_.store(std::this_thread::get_id());
        return 0;
    }

    static void unlock(void *ctx)
    {
        idem_keeper *keeper = static_cast<idem_keeper *>(ctx);

        keeper->owner_.store(std::thread::id());
        keeper->mutex_.unlock();
    }

    std::mutex mutex_;
    std::atomic<std::thread::id> owner_;
    std::atomic<bool> open_;
    idem_config config_ = idem_config();
    idem_table table_;
    uint32_t memory_[(Granule ? IDEM_JOURNAL_MEMORY_SIZE(Keys, KeyMax,
                                    ResponseMax, StateMax,
                                    (Granule ? Granule : 1))
                              : IDEM_MEMORY_SIZE(Keys, KeyMax, ResponseMax,
                                                 StateMax)) / 4];
};

#endif
