/* SPDX-License-Identifier: 0BSD */
/*
 * An attacker who measures times learns nothing but the answer.  Run under
 * valgrind's memcheck, which follows bytes that are marked as undefined and
 * reports every branch and every address that depends on one:
 *
 *     secret and payload, in fingerprint and index hash       no report
 *     the payload, in idem_begin of a key that is known       one report
 *
 * The one report is the answer itself (a mismatch or not).  It must be one,
 * however many bits of the two fingerprints agree: so nothing else leaks.
 * Prints the counts; returns 1 if one is wrong.
 *
 *     INJECT_BRANCH  a branch on a bit of a hash, which it must find
 */
#define IDEM_STATIC
#define IDEM_IMPLEMENTATION
#include "idem.h"

#include "../inside.h"

#include <stdio.h>
#include <string.h>
#include <valgrind/memcheck.h>

enum { LENGTH = 40 };               // of the longest payload

static idem_config config = {
    .capacity = 8, .key_max = 16, .response_max = 8,
    .secret = { 0x5b, 0x0e, 0x91, 0x27, 0xd4, 0x66, 0x8f, 0x13,
                0x30, 0xa8, 0x4c, 0xf7, 0x1d, 0xb2, 0x69, 0xe5 } };
static idem_table table;
static uint32_t memory[IDEM_MEMORY_SIZE(8, 16, 8, 0) / 4];
static unsigned char payload[LENGTH];
static int failed;

/* Marks bytes as what nobody may learn. */
static void hide(const void *p, size_t len)
{
    (void)VALGRIND_MAKE_MEM_UNDEFINED(p, len);
}

static void show(const void *p, size_t len)
{
    (void)VALGRIND_MAKE_MEM_DEFINED(p, len);
}

/* Compares the reports since `before` with what there should be. */
static void judge(const char *what, unsigned before, unsigned expected)
{
    unsigned reports = (unsigned)VALGRIND_COUNT_ERRORS - before;

    printf("ct: %-32s %u reports, %u expected\n", what, reports, expected);
    failed |= reports != expected;
}

/* Marks must have got as far as here, or nothing was looked at. */
static void demand_hidden(const void *p, size_t len)
{
    unsigned char bits[8] = { 0 };

    (void)VALGRIND_GET_VBITS(p, bits, len);
    show(bits, sizeof bits);
    if (!bits[0]) {
        puts("ct: the marks are lost on the way: nothing was tested");
        failed = 1;
    }
}

#ifdef INJECT_BRANCH
/* What must be found: a branch that depends on a bit of the hash */
static volatile int sink;
#define INJECTED(hash) ((hash) & 1 ? (void)(sink = 1) : (void)0)
#else
#define INJECTED(hash) ((void)0)
#endif

/* Both hashes, of secret bytes under the secret key, in all lengths. */
static void hash_all(void)
{
    unsigned before = (unsigned)VALGRIND_COUNT_ERRORS;
    idem_fingerprint_state state;
    uint64_t fingerprint;
    uint32_t hash;

    hide(config.secret, sizeof config.secret);
    hide(payload, sizeof payload);
    for (size_t len = 1; len <= LENGTH; len++) {
        idem_fingerprint_init(&state, &config);
        idem_fingerprint_update(&state, payload, len / 3);
        idem_fingerprint_update(&state, payload + len / 3, len - len / 3);
        fingerprint = idem_fingerprint_final(&state);
        demand_hidden(&fingerprint, sizeof fingerprint);
        hash = inside_hash_id(&config, NULL, 0, payload, len);
        INJECTED(hash);
        demand_hidden(&hash, sizeof hash);
    }
    show(config.secret, sizeof config.secret);
    show(payload, sizeof payload);
    judge("both hashes: secret and payload", before, 0);
}

/* Begins a key, by its payload or by a fingerprint: what nobody may learn. */
static void compare(const char *what, const char *key, int by_payload,
                    uint64_t fingerprint, int expected)
{
    idem_claim claim;
    idem_reply reply;
    idem_request rq = { .key = key, .key_len = strlen(key),
                        .payload = payload, .payload_len = sizeof payload,
                        .fingerprint = fingerprint,
                        .has_fingerprint = !by_payload };
    unsigned before = (unsigned)VALGRIND_COUNT_ERRORS;
    int answer;

    hide(&rq.fingerprint, sizeof rq.fingerprint);
    hide(payload, sizeof payload);
    answer = idem_begin(&table, &claim, &reply, &rq, 1);
    show(payload, sizeof payload);
    show(&answer, sizeof answer);
    judge(what, before, expected != IDEM_EXECUTE);
    failed |= answer != expected;
}

int main(void)
{
    static const uint64_t is = UINT64_C(0x123456789abcdef0);

    if (!RUNNING_ON_VALGRIND) {
        puts("ct: to be run under valgrind (make check PART=attack)");
        return 1;
    }
    memset(payload, 'p', sizeof payload);
    hash_all();
    if (idem_open(&table, &config, memory, sizeof memory, 0) < 0)
        return 1;
    compare("a new fingerprint", "key", 0, is, IDEM_EXECUTE);
    compare("the same", "key", 0, is, IDEM_BUSY);
    compare("low half differs", "key", 0, is ^ 1, IDEM_MISMATCH);
    compare("high half differs", "key", 0, is ^ UINT64_C(1) << 63,
            IDEM_MISMATCH);
    compare("all bits differ", "key", 0, ~is, IDEM_MISMATCH);
    compare("a new payload", "other", 1, 0, IDEM_EXECUTE);
    compare("the same", "other", 1, 0, IDEM_BUSY);
    return failed;
}
