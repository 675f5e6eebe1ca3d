/* SPDX-License-Identifier: 0BSD */
/*
 * A configuration that is known when compiling, without state and senders,
 * opens a journal of a firmware that had them: records of features that the
 * compiler left out are still read, and lost.  The header is here twice: static
 * and configured, and the one of all unit tests.
 */
#define idem_open_ configured_open
#define idem_begin configured_begin
#define idem_complete configured_complete
#define idem_forget configured_forget
#define IDEM_STATIC
#include "idem.h"

#include "configured.h"

static const idem_config less = {
    .capacity = 4, .key_max = 16, .response_max = 16, .full = IDEM_EVICT_OLDEST,
    .secret = "sixteen secrets", .storage = &storage,
};

#define IDEM_CONFIG less
#define IDEM_IMPLEMENTATION
#include "idem.h"
#undef idem_open_
#undef idem_begin
#undef idem_complete
#undef idem_forget

extern int idem_open_(idem_table *, const idem_config *, void *, size_t,
                      uint32_t, uint32_t);
extern int idem_begin(idem_table *, idem_claim *, idem_reply *,
                      const idem_request *, uint32_t);
extern int idem_complete(idem_table *, const idem_claim *,
                         const idem_outcome *, uint32_t);
extern int idem_forget(idem_table *, const idem_request *, uint32_t);

static idem_table table;
static uint32_t memory[(IDEM_JOURNAL_MEMORY_SIZE(4, 16, 16, 4, 8) +
                        IDEM_SENDERS_MEMORY_SIZE(2) + 3) / 4];
static idem_claim claim;
static idem_reply reply;
static const idem_request request = { .key = "a", .key_len = 1 };

/* On new storage a command whose outcome has, or seems to have, state. */
static void executed(const idem_config *with, size_t state_len)
{
    const idem_outcome outcome = { .response = "poured", .response_len = 6,
                                   .state = "full", .state_len = state_len };

    begin_new_storage();
    is(idem_open_(&table, with, memory, sizeof memory, 0, IDEM_BUILD), IDEM_OK);
    is(idem_begin(&table, &claim, &reply, &request, 0), IDEM_EXECUTE);
    is(idem_complete(&table, &claim, &outcome, 0), IDEM_OK);
}

static int opened(void)
{
    return configured_open(&table, &less, memory, sizeof memory, 0, IDEM_BUILD);
}

TEST(s5_a_state_for_which_there_is_no_room_is_lost_and_counted)
{
    idem_config more = less;

    more.state_max = 4;
    executed(&more, 4);
    is(opened(), IDEM_OK);
    is(table.stats.lost, 1);
    is(configured_begin(&table, &claim, &reply, &request, 0), IDEM_UNCERTAIN);
}

TEST(s2_a_state_without_bytes_is_none_where_there_is_no_room)
{
    executed(&less, 0);
    is(opened(), IDEM_OK);
    is(table.stats.lost, 0);
    is(configured_begin(&table, &claim, &reply, &request, 0), IDEM_REPLAY);
    is(reply.response_len, 6);
}

TEST(s10_a_sender_that_was_forgotten_does_not_come_back_uncounted)
{
    static const idem_request its_sender = { 0 };
    idem_config more = less;

    more.capacity = more.senders = 2;
    executed(&more, 0);
    is(idem_forget(&table, &its_sender, 0), IDEM_OK);
    is(opened(), IDEM_OK);
    is(table.stats.lost, 1);
}
