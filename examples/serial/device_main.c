/* SPDX-License-Identifier: 0BSD */
/* The device as a process: device.c at a terminal or socket, with its flash and
   its label printer in files.  Made to be killed. */
#include "device.h"
#include "flash_file.h"
#include "host.h"
#include "naive.h"
#include "../secret.h"
#include <stdlib.h>

#define PATH_SIZE 512
#define STEP_MS 10000u          /* longer than any time between two calls */

static const char help[] =
    "device --line LINE --dir DIR [options]\n"
    "executes the commands that come over the line\n\n"
    "  --line LINE      a terminal, unix:PATH or tcp:HOST:PORT\n"
    "  --dir DIR        where it keeps flash, its secret, and labels\n"
    "  --no-idem WHEN   run without idem.h; answer `first' or `last'\n"
    "  --slow US        time that programming 8 bytes of flash takes (60)\n"
    "  --work US        longest time that a command takes (8000)\n"
    "  --away MS        time that has passed while it was off (0)\n"
    "  --seed N         of those times (1)\n";

/* What is outside the device */
static struct {
    int      line;
    uint8_t  out[4 * PROTOCOL_FRAME_MAX];
    size_t   out_len;
    uint32_t seed;
    uint32_t work_us;
    char     labels_path[PATH_SIZE];
    char     ledger_path[PATH_SIZE];
    uint32_t labels;
} world;

static void flush(void)
{
    if (world.out_len)
        host_write(world.line, world.out, world.out_len);
    world.out_len = 0;
}

static void put(void *ctx, uint8_t byte)
{
    (void)ctx;
    if (world.out_len == sizeof world.out)
        flush();
    world.out[world.out_len++] = byte;
}

/* It stands while the process or its machine is suspended: meanwhile copies of
   commands wait on the line, and no outcome may be forgotten before these are
   read. */
static uint32_t millis(void)
{
    static uint32_t last, tick;
    uint32_t now = host_millis(), passed = now - last;

    last = now;
    return tick += passed < STEP_MS ? passed : STEP_MS;
}

/* An answer that is waiting is on the line before the work begins. */
static void work(void *ctx)
{
    (void)ctx;
    flush();
    host_sleep_us(host_random(&world.seed, world.work_us + 1));
}

/* One write: as good as whole or not at all, whenever the kill comes. */
static void append(const char *path, const char *text, size_t len)
{
    int fd = open(path, O_WRONLY | O_APPEND | O_CREAT, 0600);
    ssize_t written = fd < 0 ? -1 : write(fd, text, len);

    if (written >= 0 && written < (ssize_t)len)
        errno = ENOSPC;
    if (written != (ssize_t)len)
        host_die(path);
    close(fd);
}

/* ---------------------------------------------------------------------------
   the label printer: a file, a line a label.  A label that was interrupted is
   completed with VOID when the printer starts, as a real one feeds paper.
   ------------------------------------------------------------------------ */

static uint32_t print(void *ctx, const char *label, size_t len)
{
    work(ctx);
    append(world.labels_path, label, len / 2);
    work(ctx);
    append(world.labels_path, label + len / 2, len - len / 2);
    append(world.labels_path, "\n", 1);
    work(ctx);
    return ++world.labels;
}

/* The number of the line that is this label; NULL: how many lines there are */
static uint32_t look(const char *label, size_t len)
{
    FILE *file = fopen(world.labels_path, "r");
    char line[128] = "";
    uint32_t number = 0, found = 0;

    if (!file && errno != ENOENT)
        return DEVICE_CANNOT_SEE;
    while (file && !found && fgets(line, sizeof line, file)) {
        number++;
        if (label && strlen(line) == len + 1 && memcmp(line, label, len) == 0)
            found = number;
    }
    if (file && ferror(file))
        found = number = DEVICE_CANNOT_SEE;
    if (file)
        fclose(file);
    if (!label && *line && !strchr(line, '\n'))
        append(world.labels_path, " VOID\n", 6);
    return label ? found : number;
}

static uint32_t printed(void *ctx, const char *label, size_t len)
{
    (void)ctx;
    return look(label, len);
}

/* ---------------------------------------------------------------------------
   running
   ------------------------------------------------------------------------ */

static uint8_t secret[SECRET_SIZE];
static const device_port port = { NULL, put, millis, work, print, printed,
                                  secret };

static void enter(const char *line, size_t len)
{
    append(world.ledger_path, line, len);
}

/* Not before nobody else has the device: a label that he prints would be cut
   short. */
static void start_printer(const char *dir)
{
    snprintf(world.labels_path, sizeof world.labels_path, "%s/labels", dir);
    world.labels = look(NULL, 0);
    if (world.labels == DEVICE_CANNOT_SEE)
        host_die(world.labels_path);
}

static void run_naive(const char *dir, int answers_first)
{
    static naive n;
    FILE *ledger;
    uint8_t bytes[64];
    int len, i;

    start_printer(dir);
    snprintf(world.ledger_path, sizeof world.ledger_path, "%s/ledger", dir);
    naive_start(&n, &port, enter, world.labels, answers_first);
    ledger = fopen(world.ledger_path, "r");
    while (ledger && (i = getc(ledger)) != EOF)
        naive_remember(&n, (char)i);
    if (ledger)
        fclose(ledger);
    while ((len = host_read(world.line, bytes, sizeof bytes, -1)) >= 0)
        for (i = 0; i < len; i++) {
            naive_receive(&n, bytes[i]);
            flush();
        }
}

static void run(const char *dir, uint32_t slow_us, uint32_t away_ms)
{
    static uint32_t memory[DEVICE_MEMORY_SIZE(FLASH_GRANULE) / 4];
    static flash_file flash;
    static device d;
    char path[PATH_SIZE], secret_at[PATH_SIZE];
    uint8_t bytes[64];
    int result, len, i, more = 1;

    snprintf(path, sizeof path, "%s/flash", dir);
    snprintf(secret_at, sizeof secret_at, "%s/secret", dir);
    // The flash was whole before there was a secret.
    if (access(secret_at, F_OK) == 0 && !flash_file_is_whole(path)) {
        secret_wrong(path, "the secret is there, the flash is not, or not "
                     "whole: restore it; without it all commands are new "
                     "again, if you want that remove the secret too");
        exit(2);
    }
    if (flash_file_open(&flash, path) < 0)
        host_die(path);
    if (!secret_open(secret, secret_at, path, flash.storage.erased))
        exit(2);
    start_printer(dir);
    flash.slow_us = slow_us;
    result = device_start(&d, &port, &flash.storage, memory, sizeof memory);
    if (result == IDEM_OK)
        result = idem_elapse(&d.table, away_ms);
    if (result < 0) {
        reason_print(path, result, &d.table, &d.config);
        exit(2);
    }
    while ((len = host_read(world.line, bytes, sizeof bytes,
                            more ? 0 : 100)) >= 0) {
        for (i = 0; i < len; i++) {
            device_receive(&d, bytes[i]);
            flush();
        }
        more = len || device_idle(&d);
    }
}

int main(int argc, char **argv)
{
    const char *line = NULL, *dir = NULL, *naive_answers = NULL;
    uint32_t slow_us = 60, away_ms = 0;
    int i;

    world.work_us = 8000;
    world.seed = 1;
    for (i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--line") == 0)
            line = argv[i + 1];
        else if (strcmp(argv[i], "--dir") == 0)
            dir = argv[i + 1];
        else if (strcmp(argv[i], "--no-idem") == 0)
            naive_answers = argv[i + 1];
        else if (strcmp(argv[i], "--slow") == 0)
            slow_us = host_number(argv[i + 1], 1000000);
        else if (strcmp(argv[i], "--work") == 0)
            world.work_us = host_number(argv[i + 1], 1000000);
        else if (strcmp(argv[i], "--away") == 0)
            away_ms = host_number(argv[i + 1], UINT32_MAX);
        else if (strcmp(argv[i], "--seed") == 0)
            world.seed = host_number(argv[i + 1], UINT32_MAX);
        else
            break;
    }
    if (i != argc || !line || !dir)
        return host_help(argc, argv, help);
    if (strlen(dir) + sizeof "/labels" > PATH_SIZE) {   // no name is longer
        fputs("device: --dir: too long\n", stderr);
        return 2;
    }
    world.line = host_open_line(line);
    if (world.line < 0)
        return 2;
    if (naive_answers)
        run_naive(dir, strcmp(naive_answers, "first") == 0);
    else
        run(dir, slow_us, away_ms);
    host_die("the line was closed");
    return 2;
}
