// SPDX-License-Identifier: 0BSD
// A user's file in C++, with the warnings that C++ projects have on: the
// header's macros and structs give none.
#define _POSIX_C_SOURCE 200809L
#define IDEM_FILE_STORAGE
#include "idem.h"

enum { KEYS = 8, KEY = 16, RESPONSE = 8, STATE = 4 };
constexpr uint32_t sector = 1024, granule = 8;

struct device {
    idem_table table;
    idem_file file;
    uint32_t memory[IDEM_JOURNAL_MEMORY_SIZE(KEYS, KEY, RESPONSE, STATE,
                                             granule) / 4];
    uint32_t alone[IDEM_MEMORY_SIZE(8, 16, 8, 4) / 4];
};

int open_device(device &d, idem_config &config, uint32_t now_ms);
size_t size_of(const idem_config &config, uint32_t prog_size);

int open_device(device &d, idem_config &config, uint32_t now_ms)
{
    config.lease_ms = IDEM_LEASE_NONE;
    config.retention_ms = IDEM_RETENTION_MAX;
    config.capacity = KEYS;
    int result = idem_file_open(
        &d.file, "journal", sector,
        IDEM_SECTORS(KEYS, KEY, RESPONSE, STATE, sector, granule));
    config.storage = &d.file.storage;
    return result < 0 ? result
                      : idem_open(&d.table, &config, d.memory, sizeof d.memory,
                                  now_ms);
}

size_t size_of(const idem_config &config, uint32_t prog_size)
{
    return IDEM_JOURNAL_MEMORY_SIZE(config.capacity, config.key_max,
                                    config.response_max, config.state_max,
                                    prog_size) +
           IDEM_SECTORS(config.capacity, config.key_max, config.response_max,
                        config.state_max, sector, prog_size);
}

#ifdef MOVED
device make();

device make()
{
    device first;
    device second(static_cast<device &&>(first));
    return second;
}
#endif
