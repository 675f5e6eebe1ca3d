/* SPDX-License-Identifier: 0BSD
   The header with one configuration, known when compiling: 16 random keys of 16
   bytes, in RAM; with JOURNAL also in flash; with FEATURES four senders, state,
   and eviction. */
#include "idem.h"

#ifdef FEATURES
enum { SENDERS = 4, STATE = 16, FULL = IDEM_EVICT_OLDEST };
#else
enum { SENDERS = 0, STATE = 0, FULL = IDEM_REJECT };
#endif

#ifdef JOURNAL
extern int flash_read(void *ctx, uint32_t at, void *dst, uint32_t len);
extern int flash_prog(void *ctx, uint32_t at, const void *src, uint32_t len);
extern int flash_erase(void *ctx, uint32_t sector);
static const idem_storage flash = {
    .read = flash_read, .prog = flash_prog, .erase = flash_erase,
    .sector_size = 4096,
    .sector_count = IDEM_SECTORS(16 + SENDERS, 16, 16, STATE, 4096, 8),
    .prog_size = 8, .erased = 0xFF };
#endif

static const idem_config config = {
#ifdef JOURNAL
    .storage = &flash,
#endif
    .capacity = 16, .key_max = 16, .response_max = 16, .state_max = STATE,
    .senders = SENDERS, .quota = SENDERS, .full = FULL };

#define IDEM_CONFIG config
#define IDEM_IMPLEMENTATION
#include "idem.h"
