/* SPDX-License-Identifier: 0BSD */
/* cc -std=c99 -I.. patterns.c -o patterns && ./patterns
 *
 * Commands that are not simply executed and answered, each as a device would
 * handle it.  The exit status is 0 if each ends as it must.
 *
 *     reboot     a command that resets the device
 *     stop       an emergency stop
 *     long       an operation that takes longer than its lease
 *     poison     a command that crashes the device every time
 *     outbox     results that must arrive, over a link that loses them
 *
 * The device's journal is in FRAM, here a static array.  After a restart the
 * table is opened again, and only the array is as before.
 */
#include "fram.h"
#include <stdio.h>
#include <string.h>

#define CHECK(condition)                                                       \
    do {                                                                       \
        if (!(condition)) {                                                    \
            printf("%s:%d: failed: %s\n", __FILE__, __LINE__, #condition);     \
            return 1;                                                          \
        }                                                                      \
    } while (0)

/* ---------------------------------------------------------------------------
   reboot: complete before the effect.  Completed after it, it never would be:
   the reboot ends every attempt.
   ------------------------------------------------------------------------ */

static int reboots;

static void on_reboot(const char *key)
{
    idem_claim claim;
    idem_reply reply;
    int result = begin(&claim, &reply, key);

    // IDEM_RECOVER: power went between claim and completion.  The device has
    // started since, but by itself.  IDEM_UNCERTAIN: it may
    // have rebooted for this one; one more reboot is harmless.
    if (result != IDEM_EXECUTE && result != IDEM_RECOVER &&
        result != IDEM_UNCERTAIN)
        return;                                 // and send what is stored
    if (complete(&claim, "rebooting") < 0)
        return;                                 // the sender will ask again
    reboots++;
    power_on();
}

static int reboot(void)
{
    idem_claim claim;
    idem_reply reply;
    int i;

    CHECK(first_power_on() == IDEM_OK);
    for (i = 0; i < 10; i++)
        on_reboot("reboot 1");
    CHECK(reboots == 1);
    CHECK(begin(&claim, &reply, "reboot 2") == IDEM_EXECUTE);
    CHECK(power_on() == IDEM_OK);               // before it was completed
    for (i = 0; i < 10; i++)
        on_reboot("reboot 2");
    CHECK(reboots == 2);
    return 0;
}

/* ---------------------------------------------------------------------------
   stop: does not ask.  To stop twice is harmless; not to stop because a table
   is full is not.  A run that was sent before may come after it, late: so it
   is a switch, which holds until somebody at the machine releases it.
   ------------------------------------------------------------------------ */

static int motor_runs;
static int is_stopped;              /* the switch: it outlasts a restart */

static const char *on_motor(const char *key, const char *what)
{
    idem_claim claim;
    idem_reply reply;

    if (strcmp(what, "stop") == 0) {
        motor_runs = 0;
        is_stopped = 1;
        return "stopped";
    }
    switch (begin(&claim, &reply, key)) {
    case IDEM_EXECUTE:
        if (is_stopped)
            return complete(&claim, "stopped") == IDEM_OK ? "stopped"
                                                          : "ask again";
        motor_runs = 1;
        return complete(&claim, "runs") == IDEM_OK ? "runs" : "ask again";
    case IDEM_RECOVER:                          // it may have run, and have
    case IDEM_UNCERTAIN:                        // been stopped since
        return complete(&claim, "look") == IDEM_OK ? "look" : "ask again";
    case IDEM_EXHAUSTED:
        return "look";
    case IDEM_REPLAY:
        return response(&reply.claim);
    }
    return "ask again";                         // full, or busy
}

static int stop(void)
{
    char key[] = "run 0";
    idem_claim claim;
    idem_reply reply;
    int i;

    CHECK(first_power_on() == IDEM_OK);
    for (i = 0; i < KEYS; i++, key[4]++)
        CHECK(strcmp(on_motor(key, "run"), "runs") == 0);
    CHECK(strcmp(on_motor("run 8", "run"), "ask again") == 0);  // it is full
    CHECK(motor_runs);
    CHECK(strcmp(on_motor("stop 1", "stop"), "stopped") == 0);
    CHECK(!motor_runs);
    CHECK(strcmp(on_motor("run 0", "run"), "runs") == 0);       // a duplicate
    CHECK(!motor_runs);
    CHECK(strcmp(on_motor("stop 1", "stop"), "stopped") == 0);
    CHECK(first_power_on() == IDEM_OK);
    CHECK(strcmp(on_motor("run 9", "run"), "stopped") == 0);    // it was late
    CHECK(!motor_runs);
    is_stopped = 0;                             // somebody released it
    CHECK(begin(&claim, &reply, "run 1") == IDEM_EXECUTE);
    CHECK(power_on() == IDEM_OK);               // while it started the motor
    for (i = 0; i < 9; i++)
        CHECK(strcmp(on_motor("run 1", "run"), "look") == 0);
    for (i = 0; i < 3; i++) {
        CHECK(begin(&claim, &reply, "run 2") > 0);
        CHECK(power_on() == IDEM_OK);
    }
    CHECK(strcmp(on_motor("run 2", "run"), "look") == 0);
    CHECK(!motor_runs);
    return 0;
}

/* ---------------------------------------------------------------------------
   long: renews its lease at each step, and stops when somebody else has it.
   ------------------------------------------------------------------------ */

static int steps_done;

static int one_step(const idem_claim *claim)
{
    int result = idem_renew(&table, claim, 0, now_ms);

    if (result == IDEM_OK)
        steps_done++;
    return result;
}

static int long_operation(void)
{
    idem_claim claim, other;
    idem_reply reply;
    int i;

    CHECK(first_power_on() == IDEM_OK);
    CHECK(begin(&claim, &reply, "calibrate") == IDEM_EXECUTE);
    for (i = 0; i < 10; i++) {                  // ten times 0.9 leases
        CHECK(one_step(&claim) == IDEM_OK);
        now_ms += 900;
        CHECK(begin(&other, &reply, "calibrate") == IDEM_BUSY);
        CHECK(reply.retry_after_ms > 0 && reply.retry_after_ms <= 1000);
    }
    CHECK(steps_done == 10);
    now_ms += 5000;                             // it hangs: its lease ends
    CHECK(begin(&other, &reply, "calibrate") == IDEM_RECOVER);
    CHECK(one_step(&claim) == IDEM_E_FENCED);   // and wakes up too late
    CHECK(complete(&claim, "from the first") == IDEM_E_FENCED);
    CHECK(complete(&other, "from the second") == IDEM_OK);
    CHECK(steps_done == 10);
    return 0;
}

/* ---------------------------------------------------------------------------
   poison: three attempts, then nobody tries again.
   ------------------------------------------------------------------------ */

static int poison(void)
{
    idem_claim claim;
    idem_reply reply;
    int crashes = 0, result, i;

    CHECK(first_power_on() == IDEM_OK);
    for (i = 0; i < 10; i++) {
        result = begin(&claim, &reply, "poison");
        if (result != IDEM_EXECUTE && result != IDEM_RECOVER)
            continue;
        CHECK(result == (crashes ? IDEM_RECOVER : IDEM_EXECUTE));
        CHECK(claim.attempt == (uint32_t)crashes + 1);
        crashes++;
        CHECK(power_on() == IDEM_OK);
    }
    CHECK(crashes == 3);
    CHECK(begin(&claim, &reply, "poison") == IDEM_EXHAUSTED);
    CHECK(begin(&claim, &reply, "another") == IDEM_EXECUTE);
    return 0;
}

/* ---------------------------------------------------------------------------
   outbox: a result is undelivered until the other side has confirmed it, even
   over restarts.  It may arrive twice, with the same key: so the other side
   can know it.
   ------------------------------------------------------------------------ */

enum { RESULTS = 5 };
static int arrived[RESULTS];
static int transmissions;

/* A link that loses every third message, and every third receipt.
   Returns whether the receipt arrived. */
static int publish(const unsigned char *key)
{
    int turn = transmissions++ % 3;

    if (turn != 0)
        arrived[key[5] - '0']++;
    return turn == 2;
}

static void publish_pending(void)
{
    unsigned char key[KEY_MAX];
    idem_info info = { .id = key, .id_size = sizeof key };

    while (idem_pending(&table, &info, now_ms) == IDEM_OK)
        if (publish(key) && idem_delivered(&table, &info.claim) < 0)
            return;                     // later: the storage fails
}

static int outbox(void)
{
    idem_outcome outcome = { .response = "21.5", .response_len = 4,
                             .confirm = 1 };
    idem_info info = { 0 };
    idem_claim claim;
    idem_reply reply;
    char key[] = "read 0";
    int i, rounds = 0;

    CHECK(first_power_on() == IDEM_OK);
    for (i = 0; i < RESULTS; i++, key[5]++) {
        CHECK(begin(&claim, &reply, key) == IDEM_EXECUTE);
        CHECK(idem_complete(&table, &claim, &outcome, now_ms++) == IDEM_OK);
    }
    while (idem_pending(&table, &info, now_ms) == IDEM_OK) {
        CHECK(++rounds < 20);
        publish_pending();
        CHECK(power_on() == IDEM_OK);
        memset(&info, 0, sizeof info);
    }
    for (i = 0; i < RESULTS; i++)
        CHECK(arrived[i] >= 1);
    CHECK(rounds > 1);
    return 0;
}

int main(int argc, char **argv)
{
    static const struct {
        int (*run)(void);
        const char *shows;
    } patterns[] = {
        { reboot, "reboot    exactly one, however often it is repeated" },
        { stop, "stop      also when the table is full" },
        { long_operation, "long      keeps its lease; fenced when overtaken" },
        { poison, "poison    three crashes, then IDEM_EXHAUSTED" },
        { outbox, "outbox    every result arrives, through restarts" }
    };
    size_t i;
    int failed = 0;

    if (argc > 1) {
        puts("patterns\nruns five commands that are not \"do it and answer\"; "
             "takes no options");
        return strcmp(argv[1], "--help") != 0;
    }
    for (i = 0; i < sizeof patterns / sizeof patterns[0]; i++) {
        int result = patterns[i].run();

        printf("%s  %s\n", result ? "FAILED" : "ok    ", patterns[i].shows);
        failed |= result;
    }
    return failed;
}
