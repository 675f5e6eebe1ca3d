/* SPDX-License-Identifier: 0BSD */
/*
 * Every callback fails at every one of its calls, once or from then on, having
 * done nothing, half or all; in the course of every sequence of a few events,
 * with the head at every place between two turns.  Then a restart: what was
 * answered is still true.  Inputs of calls.c, in order instead of by chance:
 *
 *     failures                all of them
 *     failures ONE_IN         each so many-th
 *
 * One that breaks a promise is left in build/failures.input, for
 * TRACE=1 build/fuzz/calls FILE.
 */
#include "../../fuzz/calls.c"

#include <signal.h>

enum { WARM_MAX = 24, FAILS = 256, INPUT_MAX = 256 };

/* What follows the failure: bytes of calls.c.  Key 0 is claimed before (its
   claim is the first), key 1 is finished, as long as there is room for it. */
static const uint8_t events[][2] = {
    { 0x50, 0x08 },             // begin key 5, its claim is the second
    { 0x04, 0x30 },             // complete the first, with state; confirm
    { 0x14, 0x00 },             // complete the second
    { 0x07 },                   // release the first
    { 0x19 },                   // forget key 1
    { 0x0B },                   // maintain
    { 0x1A },                   // delivered
    { 0x0E },                   // restart
    { 0x0F, 3 },                // the power goes in the next operation
    { 0x4F, 7 },                // .. in the third from here
    { 0x1F, 33 },               // the next program fails, nothing done
    { 0x1F, 2 },                // the next erase fails, half done
};
static const uint8_t lengths[] = { 2, 2, 2, 1, 1, 1, 1, 1, 2, 2, 2, 2 };

enum { EVENTS = sizeof events / sizeof *events };
enum { SEQUENCES = (EVENTS + 1) * (EVENTS + 1) * (EVENTS + 1) };
enum { GEOMETRIES = sizeof geometries / sizeof *geometries };

static uint8_t bytes[INPUT_MAX];
static size_t bytes_len;

static void put(unsigned byte)
{
    bytes[bytes_len++] = (uint8_t)byte;
}

/* A broken promise: keeps what broke it. */
static void keep(int signal_number)
{
    FILE *file = fopen("build/failures.input", "wb");

    (void)signal_number;
    if (file) {
        fwrite(bytes, 1, bytes_len, file);
        fclose(file);
    }
    fputs("FAILED: see build/failures.input\n", stderr);
    _Exit(1);
}

/* Plain with state; claims not written; in batches.  The oldest completion
   makes room. */
static const uint8_t modes[] = { 16 | 1, 16 | 6, 16 | 8 };

enum { MODES = sizeof modes / sizeof *modes };

static void put_device(unsigned which, unsigned mode)
{
    bytes_len = 0;
    put(which);
    put(0);
    put(modes[mode]);
    put(3);                     // capacity - 1
    for (int i = 0; i < 4; i++)
        put(0);                 // the tick
}

/* Two keys as the events want them; then so many others come and go. */
static void put_warming(unsigned count)
{
    put(0x10);                  // key 1, claimed and completed, owed
    put(0);
    put(0x04);
    put(0x10);
    put(0x00);                  // key 0, claimed without end
    put(6);
    for (unsigned i = 0; i < count; i++) {
        put((2 + i % 3) << 4);
        put(0x08);              // its claim is the second
        put(0x14);
        put(i & 7);
    }
}

static void put_failure(unsigned what)
{
    put(0x1F);
    put(what);
}

/* The events of a number; then restarts, with a claim and its outcome between
   them.  False if they are those of a smaller number. */
static int put_events(unsigned number)
{
    for (; number > 0; number /= EVENTS + 1) {
        unsigned which = number % (EVENTS + 1);
        if (!which)
            return 0;
        for (unsigned i = 0; i < lengths[which - 1]; i++)
            put(events[which - 1][i]);
    }
    put(0x0E);
    put(0x20);
    put(0x10);
    put(0x24);
    put(0);
    put(0x0E);
    return 1;
}

/* The next digit of a number, of so many that there are. */
static unsigned digit(uint64_t *number, unsigned count)
{
    unsigned value = (unsigned)(*number % count);

    *number /= count;
    return value;
}

/* Goes the path of a number; false if it is that of a smaller one. */
static int go(uint64_t number)
{
    unsigned sequence = digit(&number, SEQUENCES);
    unsigned what = digit(&number, FAILS), warm = digit(&number, WARM_MAX);
    unsigned mode = digit(&number, MODES);
    input in = { bytes, 0 };

    put_device((unsigned)number, mode);
    put_warming(warm);
    put_failure(what);
    if (!put_events(sequence))
        return 0;
    in.left = bytes_len;
    run(&in);
    PROMISE(the.medium.ops > warm);
    return 1;
}

int main(int argc, char **argv)
{
    uint64_t all = (uint64_t)SEQUENCES * FAILS * WARM_MAX * MODES * GEOMETRIES;
    uint64_t step = argc > 1 ? strtoul(argv[1], NULL, 10) : 1;
    unsigned long paths = 0;

    signal(SIGABRT, keep);
    for (uint64_t number = 0; step > 0 && number < all; number += step)
        paths += (unsigned long)go(number);
    printf("failures: %lu paths, no promise broken\n", paths);
    return !paths;
}
