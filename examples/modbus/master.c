/* SPDX-License-Identifier: 0BSD */
/* cc -I../.. master.c -lmodbus -o master
 * ./master 1502 0 number commands
 *
 * The sender's half of gateway.c: lets the gateway pour each line of a file, in
 * millilitres, once, even if link, gateway or this program fail in between.
 *
 * Its memory is one file: epoch, sequence and ml of the current command,
 * durable before it is sent; one master has it at a time (NUMBER.lock).  Line n
 * of the commands has sequence n: only append to them; other commands need a
 * new number file.  After a restart the current command is sent again with its
 * number, and then the next line with the next number.  The epoch is the time
 * at which the file was made.  If the file is lost, the next start begins a new
 * epoch; then only the gateway's log shows what was poured in the old one.
 */
#define _POSIX_C_SOURCE 200809L
#define IDEM_STATIC
#define IDEM_IMPLEMENTATION
#include "idem.h"
#include "../clock.h"
#include "../folder.h"
#include "registers.h"

#include <errno.h>
#include <fcntl.h>
#include <modbus/modbus.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

static const char help[] =
    "master PORT WINDOW NUMBER COMMANDS\n"
    "lets the gateway at 127.0.0.1 pour each line of COMMANDS, 1 to 1000 ml,\n"
    "once; NUMBER is a file in which it keeps the current number\n"
    "prints epoch.sequence, ml and the result; after a kill, that of the last\n"
    "one again\n"
    "exit status: 0 all that it printed are poured, 1 not all, 2 it could not "
    "run\n";

enum { ML_MAX = 1000, TEXT = 72 };

/* The current command; ml is 0 if there was none yet. */
typedef struct number {
    unsigned long epoch, sequence, ml;
} number;

static const char *path;        // of the file with the number
static modbus_t *bus;
static int connected;
static int window;

static void die(const char *what, const char *why)
{
    fprintf(stderr, "master: %s: %s\n", what, why);
    exit(2);
}

static void pause_ms(uint32_t ms)
{
    struct timespec t = { (time_t)(ms / 1000), (long)(ms % 1000) * 1000000 };

    nanosleep(&t, NULL);
}

/* ------------------------------------------------------------------- number */

/* Writes a number as it stands in its file; returns the length. */
static int write_number(char text[TEXT], const number *n)
{
    return snprintf(text, TEXT, "%lu %lu %lu\n", n->epoch, n->sequence, n->ml);
}

/* Keeps other masters from the number, until this process ends.  Two that make
   it at once have two epochs, and each would have all lines poured.  (The lock
   has a file of its own, because save replaces that of the number.) */
static void lock(void)
{
    char beside[512];
    int fd;

    if (snprintf(beside, sizeof beside, "%s.lock", path) >= (int)sizeof beside)
        die(path, "the name is too long");
    fd = open(beside, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0)
        die(beside, strerror(errno));
    if (flock(fd, LOCK_EX | LOCK_NB) != 0)
        die(path, errno != EWOULDBLOCK ? strerror(errno)
                  : "another master has it: let that end, or give this one "
                    "another window and number");
}

/* Makes the number durable: the old one or the new one, nothing between. */
static void save(const number *n)
{
    char fresh[512], text[TEXT];
    int len = write_number(text, n), fd;

    if (snprintf(fresh, sizeof fresh, "%s.new", path) >= (int)sizeof fresh)
        die(path, "the name is too long");
    fd = open(fresh, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (fd < 0 || write(fd, text, (size_t)len) != len || fsync(fd) != 0 ||
        close(fd) != 0 || rename(fresh, path) != 0)
        die(path, strerror(errno));
    if (!folder_sync(path))     // with it the rename is durable
        die(path, strerror(errno));
}

/* Reads what save has written, and nothing else: what is cut to fit into a
   register, or has lost its end, would be another command. */
static void load(number *n)
{
    FILE *f = fopen(path, "r");
    char text[TEXT] = "", same[TEXT];

    memset(n, 0, sizeof *n);
    if (!f && errno != ENOENT)
        die(path, strerror(errno));
    if (!f) {
        n->epoch = clock_epoch();
        return;
    }
    if (fgets(text, sizeof text, f))
        sscanf(text, "%lu %lu %lu", &n->epoch, &n->sequence, &n->ml);
    write_number(same, n);
    if (strcmp(text, same) != 0 || getc(f) != EOF || n->epoch > UINT32_MAX ||
        !n->sequence || n->sequence > UINT32_MAX || !n->ml || n->ml > ML_MAX)
        die(path, "not a number that master has written, or not whole");
    fclose(f);
}

/* ----------------------------------------------------------------- commands */

/* A number of decimal digits alone, up to `most`; ends the program if it is
   none.  What is cut to fit into a register would be another command. */
static unsigned long parse(const char *what, const char *text,
                           unsigned long most)
{
    char *end;
    unsigned long n = strtoul(text, &end, 10);

    if (*text < '0' || *text > '9' || *end || n > most)
        die(what, "not a number, or too large");
    return n;
}

/* The next line of the commands; 0 if there is none. */
static unsigned long next_ml(FILE *commands)
{
    char text[16];
    unsigned long ml;
    size_t len;

    if (!fgets(text, sizeof text, commands)) {
        if (ferror(commands))
            die("commands", strerror(errno));
        return 0;
    }
    len = strcspn(text, "\n");
    if (!text[len])             // its rest, or what is left of it, is another
        die("commands", "a line is too long, or has no newline");
    text[len] = 0;
    ml = parse("commands", text, ML_MAX);
    if (ml == 0)
        die("commands", "a line is a number from 1 to 1000 (ml)");
    return ml;
}

/* Writes the command, and reads its answer, in one message each.  Returns a
   STATUS_ of registers.h; STATUS_NONE: no answer, or not one to this. */
static int ask(const number *n, uint32_t *retry_ms)
{
    uint16_t command[COMMAND_LEN], got[ANSWER_LEN];

    if (!connected && modbus_connect(bus) != 0)
        return STATUS_NONE;
    connected = 1;
    registers_set(command, (uint32_t)n->epoch);
    registers_set(command + 2, (uint32_t)n->sequence);
    command[4] = (uint16_t)n->ml;
    if (modbus_write_and_read_registers(
            bus, WINDOW * window, COMMAND_LEN, command,
            WINDOW * window + ANSWER_AT, ANSWER_LEN, got) != ANSWER_LEN) {
        // It is another device, or has no such window, and never will pour.
        if (errno == EMBXILFUN || errno == EMBXILADD || errno == EMBXILVAL)
            die("gateway", modbus_strerror(errno));
        modbus_close(bus);      // what comes later is not taken for an answer
        connected = 0;
        return STATUS_NONE;
    }
    *retry_ms = got[5] * UINT32_C(100);
    return registers_get(got) == n->epoch &&
           registers_get(got + 2) == n->sequence ? got[4] : STATUS_NONE;
}

/* Asks until there is a final answer, as idem_retry answers.  The time before a
   restart need not count: a number that is too old is never executed. */
static int command(const number *n)
{
    static const char *const words[] = { "given up", "poured", "given up",
                                         "refused", "look at the cup" };
    static const idem_patience patience = { .base_ms = 200, .cap_ms = 2000 };
    long long first_ms = clock_ms();
    idem_sent sent = { 0 };
    uint32_t delay_ms;
    unsigned seed = (unsigned)first_ms ^ (unsigned)getpid();
    int status, verdict;

    for (;;) {
        sent.times++;
        sent.retry_after_ms = 0;
        status = ask(n, &sent.retry_after_ms);
        sent.elapsed_ms = clock_elapsed(clock_ms() - first_ms);
        sent.random = (uint32_t)rand_r(&seed) << 16 ^ (uint32_t)rand_r(&seed);
        verdict = idem_retry(&delay_ms, &patience, &sent,
                             status == STATUS_NONE ? IDEM_SILENCE
                             : status == STATUS_RETRY ? IDEM_BUSY : IDEM_OK);
        if (verdict != IDEM_RESEND)
            break;
        pause_ms(delay_ms);
    }
    printf("%lu.%lu %lu %s\n", n->epoch, n->sequence, n->ml,
           status <= STATUS_LOOK ? words[status] : "not understood");
    if (fflush(stdout) != 0 || ferror(stdout))
        die("stdout", strerror(errno));
    return status == STATUS_POURED;
}

int main(int argc, char **argv)
{
    number n, next;
    int all = 1;
    FILE *commands;

    if (argc != 5) {
        int asked = argc == 2 && strcmp(argv[1], "--help") == 0;
        fputs(help, asked ? stdout : stderr);
        return asked ? 0 : 2;
    }
    window = (int)parse("WINDOW", argv[2], WINDOWS - 1);
    path = argv[3];
    commands = fopen(argv[4], "r");
    if (!commands)
        die(argv[4], strerror(errno));
    bus = modbus_new_tcp("127.0.0.1", (int)parse("PORT", argv[1], 65535));
    if (!bus)
        die("modbus_new_tcp", modbus_strerror(errno));
    modbus_set_response_timeout(bus, 1, 0);
    lock();
    load(&n);
    if (n.ml)
        all &= command(&n);
    next = n;
    for (next.sequence = 1; (next.ml = next_ml(commands)) != 0;
         next.sequence++) {
        if (next.sequence == n.sequence && next.ml != n.ml)
            break;
        if (next.sequence <= n.sequence)
            continue;
        save(&next);
        all &= command(&next);
    }
    if (next.sequence <= n.sequence)
        die(argv[4], "does not have the current number's line: lines of "
                     "another file would be skipped");
    fclose(commands);
    modbus_free(bus);
    return !all;
}
