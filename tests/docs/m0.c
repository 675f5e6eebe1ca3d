/* SPDX-License-Identifier: 0BSD */
/* Bare metal, from the manual alone: a Cortex-M0 that switches a valve.  Memory
   of its own, no C library; flash by three functions of the board's. */
#define IDEM_IMPLEMENTATION
#include "idem.h"

enum { KEYS = 120, KEY_MAX = 20, RESPONSE_MAX = 8, SECTOR = 1024, GRANULE = 4 };

extern int board_read(void *ctx, uint32_t at, void *dst, uint32_t len);
extern int board_prog(void *ctx, uint32_t at, const void *src, uint32_t len);
extern int board_erase(void *ctx, uint32_t sector);
extern uint32_t board_millis(void);
extern int board_receive(idem_request *request);
extern void board_send(const void *answer, size_t len);
extern void board_alarm(const char *words);
extern void board_valve(const void *payload, size_t len);
extern int board_valve_is(const void *payload, size_t len);
int main(void);

static const idem_storage flash = {
    .read = board_read, .prog = board_prog, .erase = board_erase,
    .sector_size = SECTOR,
    .sector_count = IDEM_SECTORS(KEYS, KEY_MAX, RESPONSE_MAX, 0, SECTOR,
                                 GRANULE),
    .prog_size = GRANULE, .erased = 0xFF
};
static const idem_config config = {
    .capacity = KEYS, .key_max = KEY_MAX, .response_max = RESPONSE_MAX,
    .secret = { 0x42, 0x1d, 0x9a, 0x70, 0xc6, 0x3e, 0xf8, 0x05,
                0xb1, 0x57, 0x2c, 0xe9, 0x84, 0x6d, 0x13, 0xda },
    .storage = &flash, .retention_ms = UINT32_C(12) * 60 * 60 * 1000
};
static idem_table table;
static uint32_t memory[IDEM_JOURNAL_MEMORY_SIZE(KEYS, KEY_MAX, RESPONSE_MAX, 0,
                                                GRANULE) / 4];

static int handle(void *ctx, idem_outcome *outcome, const idem_request *request,
                  const idem_claim *claim, int answer, uint32_t *now_ms)
{
    (void)ctx, (void)claim;
    if (answer == IDEM_EXECUTE ||
        !board_valve_is(request->payload, request->payload_len))
        board_valve(request->payload, request->payload_len);
    outcome->response = "done";
    outcome->response_len = 4;
    *now_ms = board_millis();
    return 0;
}

int main(void)
{
    static char answer[RESPONSE_MAX];
    idem_request request = { 0 };
    idem_reply reply = { .buffer = answer, .buffer_size = sizeof answer };
    idem_claim claim;
    int result = idem_open(&table, &config, memory, sizeof memory,
                           board_millis());

    if (result != IDEM_OK)
        board_alarm(idem_explain(&config));
    while (result == IDEM_OK) {
        if (!board_receive(&request)) {
            (void)idem_maintain(&table, board_millis());
            continue;
        }
        if (idem_run(&table, &claim, &reply, &request, handle, NULL,
                     board_millis()) >= 0)
            board_send(answer, reply.response_len);
    }
    return 1;
}
