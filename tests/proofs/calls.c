// SPDX-License-Identifier: 0BSD
//
// A table without storage is opened, then any calls come, in any order and
// number, with any arguments inside their contract, at any time.  That hashes
// and the closing of a gap in the index stay in bounds is assumed (any.h), and
// shown by WP (contracts.acsl).
//
// Lengths of what is given go up to MOST, of what is asked for up to SMALL.
#include "any.h"

enum { CAPACITY = 2, KEY_MAX = 3, RESPONSE_MAX = 3, STATE_MAX = 2, MOST = 5,
       SMALL = 2 };

#include "table.h"

static uint32_t memory[IDEM_MEMORY_SIZE(CAPACITY, KEY_MAX, RESPONSE_MAX,
                                        STATE_MAX) / 4];
static unsigned char bytes[MOST];

static const void *some(size_t *len)
{
    ANY(bytes);
    *len = below(MOST + 1);
    return bytes;
}

static void any_outcome(idem_outcome *outcome)
{
    ANY(*outcome);
    outcome->response = some(&outcome->response_len);
    outcome->state = some(&outcome->state_len);
}

static int handler(idem_job *job)
{
    any_outcome(&job->outcome);
    return (int)any();
}

static void ask(void)
{
    unsigned char buffer[SMALL];
    idem_request request;
    idem_claim claim;
    idem_reply reply;
    idem_info info;
    int answer;

    ANY(request);
    request.scope = some(&request.scope_len);
    request.key = some(&request.key_len);
    request.payload = some(&request.payload_len);
    request.buffer = buffer;
    request.buffer_size = below(SMALL + 1);
    ANY(info);
    info.id = buffer;
    info.id_size = below(SMALL + 1);
    switch (below(5)) {
    case 0: idem_begin(&table, &claim, &reply, &request, any()); break;
    case 1:
        idem_run(&table, &reply, &request, handler, NULL, any);
        break;
    case 2: idem_find(&table, &info, &request, any()); break;
    case 3:
        idem_begin_many(&table, &answer, &reply, &request, 1, any());
        break;
    default: idem_forget(&table, &request, any()); break;
    }
}

static void claimed(uint32_t slot)
{
    unsigned char buffer[SMALL];
    size_t len = below(SMALL + 1);
    idem_claim claim;
    idem_outcome outcome;

    ANY(claim);
    claim.slot = slot;
    any_outcome(&outcome);
    switch (below(5)) {
    case 0: idem_complete(&table, &claim, &outcome, any()); break;
    case 1: idem_release(&table, &claim, any()); break;
    case 2: idem_renew(&table, &claim, any(), any()); break;
    case 3: idem_delivered(&table, &claim); break;
    default: idem_response(&table, buffer, &len, &claim, any()); break;
    }
}

static void rest(void)
{
    unsigned char buffer[SMALL];
    size_t len = below(SMALL + 1);
    idem_info info;
    uint32_t ms;

    ANY(info);
    info.id = buffer;
    info.id_size = below(SMALL + 1);
    switch (below(10)) {
    case 0: idem_maintain(&table, any()); break;
    case 1: idem_sync(&table); break;
    case 2: idem_elapse(&table, any()); break;
    case 3: idem_state(&table, buffer, &len); break;
    case 4: idem_horizon(&table, &ms, any()); break;
    case 5: idem_uncertain(&table, &ms, any()); break;
    case 6: idem_next(&table, &info, any()); break;
    case 7: idem_pending(&table, &info, any()); break;
    case 8: idem_check(&table); break;
    default: idem_text((int)any()); break;
    }
}

int main(void)
{
    configure(NULL);
    if (idem_open(&table, &config, memory, sizeof memory, any()) != IDEM_OK)
        return 1;
    while (below(2))
        switch (below(5)) {
        case 0: ask(); break;
        case 1: claimed(0); break;
        case 2: claimed(1); break;
        case 3: claimed(CAPACITY + below(9)); break;
        default: rest(); break;
        }
    return 0;
}
