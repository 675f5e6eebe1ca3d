/* SPDX-License-Identifier: 0BSD */
/* bench NAME PLACE COMMANDS GATEWAYS: begins and completes so many commands in
 * each of so many processes at the same time; prints a row: commands a second
 * in all, and how long one takes: the tenth of 100 from the fastest on (which
 * other work on the machine does not disturb), the middle one, and the 99th. */
#include "subject.h"

#include "tests/bench/common.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static const idem_config config = {
    .capacity = 3000, .key_max = 40, .response_max = 16,
    .secret = { 0x31, 0x9c, 0x55, 0xe0, 0x27, 0xb8, 0x4d, 0x6a,
                0xd3, 0x0f, 0x82, 0x71, 0xc6, 0x1e, 0xa9, 0x44 } };

static void run(subject *s, int gateway, int number)
{
    char text[32];
    idem_request request = { .scope = "pump", .scope_len = 4, .key = text,
                             .payload = "5 ml", .payload_len = 4 };
    idem_outcome outcome = { .response = "poured 5 ml", .response_len = 11 };
    idem_reply reply = { .buffer = NULL };
    idem_claim claim;

    request.key_len =
        (size_t)snprintf(text, sizeof text, "%08d/%07d", gateway, number);
    if (SUBJECT(s, begin, &claim, &reply, &request) != IDEM_EXECUTE ||
        SUBJECT(s, complete, &claim, &outcome) != IDEM_OK)
        fail("%s", s->f.reason);
}

/* A gateway: tells the parent how long each of its commands took. */
static void work(const char *place, int gateway, int commands, int out)
{
    subject s;

    if (subject_open(&s, place, &config) != IDEM_OK)
        fail("%s: %s", place, s.f.reason);
    for (int i = 0; i < commands; i++) {
        double start = now_us(), took;
        run(&s, gateway, i);
        took = now_us() - start;
        if (write(out, &took, sizeof took) != sizeof took)
            _exit(1);
    }
    subject_close(&s);
    _exit(0);
}

int main(int argc, char **argv)
{
    int commands = argc == 5 ? atoi(argv[3]) : 0;
    int gateways = argc == 5 ? atoi(argv[4]) : 0;
    int ends[2], status, failed = 0, n = 0;
    double *took, start = now_us(), all;

    signal(SIGPIPE, SIG_IGN);
    if (commands < 1 || gateways < 1 || pipe(ends) != 0)
        return 2;
    for (int i = 0; i < gateways; i++)
        if (fork() == 0)
            work(argv[2], i, commands, ends[1]);
    close(ends[1]);
    took = (double *)malloc(sizeof *took * (size_t)(commands * gateways));
    while (n < commands * gateways &&
           read(ends[0], &took[n], sizeof *took) == sizeof *took)
        n++;
    all = now_us() - start;
    while (wait(&status) > 0)
        failed |= status;
    if (failed || n != commands * gateways)
        return 1;
    qsort(took, (size_t)n, sizeof *took, by_value);
    printf("| %s | %d | %.0f | %.2f | %.2f | %.2f |\n", argv[1], gateways,
           n / all * 1e6, took[n / 10] / 1e3, took[n / 2] / 1e3,
           took[n * 99 / 100] / 1e3);
    free(took);
    return 0;
}
