/* SPDX-License-Identifier: 0BSD */
/* outcome: what fleet_run records of an outcome that is refused, when it
 * asserts that this was a mistake.  The store here accepts every call. */
#define _POSIX_C_SOURCE 200809L
#define IDEM_IMPLEMENTATION
#include "store.h"

#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RESPONSE_MAX = 16 };

static sigjmp_buf asserted;
static int executed, recorded, failures;
static long long code;              // of what was recorded
static idem_outcome wrong;          // the handler's
static char bytes[2 * RESPONSE_MAX];

const fleet_store fleet_redis, fleet_postgres, fleet_dynamodb;

int fleet_ask(fleet *f, fleet_call *c)
{
    (void)f;
    if (c->what == FLEET_CLAIM) {
        c->has.token = 7;
        c->has.attempts = 1;
        return IDEM_EXECUTE;
    }
    if (c->what == FLEET_COMPLETE) {
        recorded++;
        failures += atoi(c->arg[FLEET_ARG_state]) == IDEM_FAILED;
        code = atoll(c->arg[FLEET_ARG_code]);
    }
    return IDEM_OK;
}

int64_t fleet_ms(void)
{
    return 5;
}

void fleet_back_off(int *ms)
{
    (void)ms;
}

static int handler(idem_job *job)
{
    executed++;
    job->outcome = wrong;
    return IDEM_HANDLED;
}

static void on_abort(int number)
{
    (void)number;
    siglongjmp(asserted, 1);
}

static void expect(const char *name, idem_outcome outcome)
{
    static const idem_config config = {
        .capacity = 1, .key_max = 20, .response_max = RESPONSE_MAX,
        .secret = "0123456789abcde" };
    static fleet f = { .config = &config };
    idem_request request = { .key = "k", .key_len = 1 };
    idem_reply reply;

    executed = recorded = failures = 0;
    wrong = outcome;
    signal(SIGABRT, on_abort);
    if (sigsetjmp(asserted, 1) == 0) {
        fleet_run(&f, &reply, &request, handler, NULL);
        printf("outcome: %s: nothing is asserted\n", name);
        exit(1);
    }
    if (executed == 1 && recorded == 1 && failures == 1 &&
        code == IDEM_CODE_INVALID)
        return;
    printf("outcome: %s: executed %d, recorded %d, as a failure %d, code "
           "%lld\n", name, executed, recorded, failures, code);
    exit(1);
}

int main(void)
{
    // What assert prints of these
    if (!freopen("/dev/null", "w", stderr))
        return 2;
    expect("too long a response", (idem_outcome){
        .response = bytes, .response_len = sizeof bytes });
    expect("no response, of four bytes", (idem_outcome){ .response_len = 4 });
    expect("a state", (idem_outcome){ .state = bytes, .state_len = 1 });
    puts("outcome: 3 checks passed, 0 failed");
    return 0;
}
