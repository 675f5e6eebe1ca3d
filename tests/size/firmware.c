/* SPDX-License-Identifier: 0BSD
   What a firmware links: measured, not run.  WHOLE calls everything public,
   otherwise it is open, begin, complete, release and maintain.  With
   IDEM_NO_JOURNAL the table alone. */
#define IDEM_IMPLEMENTATION
#include "idem.h"

extern const idem_config config;
extern const idem_request request;
extern const idem_outcome outcome;
void firmware(void);

idem_table table;
idem_claim claim;
idem_reply reply;
uint32_t memory[IDEM_MEMORY_SIZE(16, 16, 16, 0) / 4];

#ifdef WHOLE
idem_entry entry;
size_t len;
uint32_t horizon;
idem_fingerprint_state state;
static int handle(void *ctx, idem_outcome *out, const idem_request *rq,
                  const idem_claim *held, int answer, uint32_t *now_ms)
{
    (void)ctx, (void)out, (void)rq, (void)held, (void)answer, (void)now_ms;
    return 0;
}
#endif

void firmware(void)
{
    idem_open(&table, &config, memory, sizeof memory, 0);
    idem_begin(&table, &claim, &reply, &request, 1);
    idem_complete(&table, &claim, &outcome, 2);
    idem_release(&table, &claim, 3);
    idem_maintain(&table, 4);
#ifdef WHOLE
    idem_run(&table, &claim, &reply, &request, handle, NULL, 5);
    idem_renew(&table, &claim, 6, 6);
    idem_elapse(&table, 7);
    idem_find(&table, &entry, &request, 8);
    idem_next(&table, &entry, 9);
    idem_pending(&table, &entry, 10);
    idem_delivered(&table, &claim);
    idem_response(&table, memory, &len, &claim, 0);
    idem_state(&table, memory, &len);
    idem_forget(&table, &request, 11);
    idem_horizon(&table, &horizon, 12);
    idem_sync(&table);
    idem_format(&table, &config, memory, sizeof memory, 13);
    idem_check(&table);
    idem_text(IDEM_OK);
    idem_fingerprint_init(&state, &config);
    idem_fingerprint_update(&state, memory, 4);
    idem_fingerprint_final(&state);
#endif
}

const idem_config config;
const idem_request request;
const idem_outcome outcome;
