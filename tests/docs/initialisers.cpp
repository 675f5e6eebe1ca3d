// SPDX-License-Identifier: 0BSD
// Designated initialisers in the order of examples and manual: C++20 takes them
// only in the order of the struct.
#include "idem.h"

const idem_storage storage = {
    .ctx = nullptr, .read = nullptr, .prog = nullptr, .erase = nullptr,
    .erasing = nullptr, .sync = nullptr, .sector_size = 4096,
    .sector_count = 8, .prog_size = 1, .erased = 0xFF, .verify = 0
};

const idem_config config = {
    .capacity = 64, .senders = 2, .key_max = 24, .response_max = 16,
    .state_max = 4, .max_attempts = 3, .storage = &storage, .lease_ms = 1000,
    .retention_ms = 60000, .lock_ctx = nullptr, .lock = nullptr,
    .unlock = nullptr, .quota = 8, .full = IDEM_EVICT_OLDEST,
    .durability = IDEM_BATCH,
    .secret = { 0x5b, 0x0e, 0x91, 0x27, 0xd4, 0x66, 0x8f, 0x13,
                0x30, 0xa8, 0x4c, 0xf7, 0x1d, 0xb2, 0x69, 0xe5 }
};

const idem_request request = {
    .scope = "panel", .scope_len = 5, .key = "42", .key_len = 2,
    .payload = "pour", .payload_len = 4, .fingerprint = 0,
    .has_fingerprint = 0, .response_size = 8, .lease_ms = 100,
    .retention_ms = 1000, .age_ms = 10, .buffer = nullptr, .buffer_size = 0
};

const idem_outcome outcome = {
    .response = "poured", .response_len = 6, .state = "5", .state_len = 1,
    .code = 0, .failed = 0, .confirm = 1
};

const idem_info info = { .id = nullptr, .id_size = 0 };

const idem_patience patience = {
    .base_ms = 60, .cap_ms = 1000, .deadline_ms = 43200000
};

const idem_sent sent = {
    .times = 1, .elapsed_ms = 60, .retry_after_ms = 1000, .random = 0x5b0e9127
};
