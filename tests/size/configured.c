/* SPDX-License-Identifier: 0BSD
   The header with one configuration, known when compiling: 16 random keys of 16
   bytes, in RAM; with JOURNAL also in flash; with FEATURES four senders, state,
   and eviction.  With IMAGE a program that makes the calls of link.sh, all in
   one file. */
#ifdef IMAGE
#define IDEM_STATIC
#endif
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

#ifdef IMAGE
extern uint32_t tick(void);
extern void read_secret(uint8_t secret[16]);
extern int receive(idem_request *request);
extern int execute(const idem_claim *claim, idem_outcome *outcome);
extern void answer(int result, const idem_reply *reply);

static idem_table table;
static uint32_t memory[(IDEM_JOURNAL_MEMORY_SIZE(16, 16, 16, STATE, 8) +
                        IDEM_SENDERS_MEMORY_SIZE(SENDERS) +
                        IDEM_QUOTA_MEMORY_SIZE(16, SENDERS)) / 4];

int main(void)
{
    idem_request request;
    idem_outcome outcome;
    idem_claim claim;
    idem_reply reply;
    static idem_config own;
    int result;

    own = config;
    read_secret(own.secret);
    result = idem_open(&table, &own, memory, sizeof memory, tick());
    while (result == IDEM_OK) {
        if (!receive(&request)) {
            (void)idem_maintain(&table, tick());
            continue;
        }
        answer(idem_begin(&table, &claim, &reply, &request, tick()), &reply);
        if (!claim.token)
            continue;
        result = execute(&claim, &outcome)
                     ? idem_complete(&table, &claim, &outcome, tick())
                     : idem_release(&table, &claim, tick());
    }
    return result;
}
#endif
