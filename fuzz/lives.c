/* SPDX-License-Identifier: 0BSD */
/*
 * Lives: runs calls.c, or with -DIMAGE image.c, with random numbers instead of
 * a fuzzer's input; the same in every run.
 *
 *     lives FIRST COUNT       that many; TRACE=1 lives LIFE 1 prints all calls
 */
#ifdef IMAGE
#include "../tests/model/image.h"
#else
#include "../tests/model/calls.h"
#endif

#include <signal.h>

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
    signal(SIGSEGV, print_life);
    life = (uint32_t)strtoul(argv[1], NULL, 10);
    for (end = life + (uint32_t)strtoul(argv[2], NULL, 10); life != end; life++)
        run(NULL);
    return 0;
}
