/* SPDX-License-Identifier: 0BSD */
/*
 * Lives: what calls.c does with the bytes of a fuzzer, or with -DIMAGE image.c,
 * with bytes by chance, the same in every run.  It finds what needs many steps,
 * each of which shows a fuzzer nothing new.
 *
 *     lives FIRST COUNT       that many; TRACE=1 lives LIFE 1 prints all calls
 */
#ifdef IMAGE
#include "image.c"
#else
#include "calls.c"
#endif

#include <signal.h>

enum { LIFE_BYTES = 400 };

static uint32_t life;

/* Lives the next one. */
static void live(void)
{
    static uint8_t bytes[LIFE_BYTES];
    uint32_t chance = life * UINT32_C(0x9E3779B1);
    input in = { bytes, LIFE_BYTES };

    for (unsigned i = 0; i < LIFE_BYTES; i++) {
        chance = flash_mix(chance + 1);
        bytes[i] = (uint8_t)(chance >> 13);
    }
    run(&in);
    life++;
}

#ifdef LIVES
static void print_life(int what)
{
    fprintf(stderr, "life %u\n", (unsigned)life);
    signal(what, SIG_DFL);
    raise(what);
}

int main(int argc, char **argv)
{
    uint32_t end;

    if (argc != 3) {
        fprintf(stderr, "use: lives FIRST COUNT\n");
        return 2;
    }
    signal(SIGABRT, print_life);
    signal(SIGSEGV, print_life);
    life = (uint32_t)strtoul(argv[1], NULL, 10);
    for (end = life + (uint32_t)strtoul(argv[2], NULL, 10); life != end;)
        live();
    return 0;
}
#endif
