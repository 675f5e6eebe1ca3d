// SPDX-License-Identifier: 0BSD
// The header and its implementation in C++, and a table placed statically.
#define IDEM_IMPLEMENTATION
#include "idem.h"

static idem_table table;
static uint32_t memory[IDEM_MEMORY_SIZE(8, 16, 8, 4) / 4];

int main()
{
    idem_config config = idem_config();
    config.capacity = 8;
    config.key_max = 16;
    config.response_max = 8;
    config.state_max = 4;
    config.secret[0] = config.secret[8] = 1;    // no secret at all, but two
                                                // halves that are not zero
    return idem_open(&table, &config, memory, sizeof memory, 0);
}
