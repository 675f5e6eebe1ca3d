/* SPDX-License-Identifier: 0BSD */
/* cc -I.. file.c -o file && ./file pump.journal 42 'pour 5 ml'
 *
 * One command per run, remembered in a file.  Repeat it, use the key for
 * another command, kill it while it pours.  ./inspect pump.journal shows the
 * keys.  The first run makes a secret, in pump.journal.secret: keep the two
 * together.
 *
 * The table's clock runs only while the program does, here hardly ever: so it
 * keeps the last 64 commands, however old they are.  (One that was killed, and
 * is not repeated, is ended when there is no room.)  In a daemon of your own
 * set .retention_ms, and let it refuse commands when it is full (the default of
 * .full).  If your program can see what it did (a line in a log), look on
 * IDEM_RECOVER and IDEM_UNCERTAIN: if nothing has happened, execute the
 * command.
 */
#define _POSIX_C_SOURCE 200809L
#define IDEM_FILE_STORAGE
#define IDEM_IMPLEMENTATION
#include "idem.h"
#include "secret.h"
#include <time.h>
#include <unistd.h>

/* keys, bytes of scope and key, of a response; no state, no senders; sectors */
IDEM_DEFINE_JOURNAL_MEMORY(pump, 64, 32, 32, 0, 0, 4096, 1);

static idem_file file;
static idem_config config = {
    IDEM_SIZES(pump),
    .max_attempts = 255,
    .lease_ms = IDEM_LEASE_NONE,    /* until this process ends */
    .full = IDEM_EVICT_OLDEST       /* the oldest outcome makes room */
};
static idem_table table;
static const uint64_t step_ms = 10000;      /* longer than a pour */
static const char look[] = "check the cup";

/* It stands while the process is suspended, but for a step: else all outcomes
   would be forgotten meanwhile, and their commands be new. */
static uint32_t millis(void)
{
    static uint64_t last, tick;
    uint64_t now, passed;
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    now = (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
    passed = now - last;
    last = now;
    return (uint32_t)(tick += passed < step_ms ? passed : step_ms);
}

static int handle(idem_job *job)
{
    const char *response = "poured";

    if (job->answer != IDEM_EXECUTE) {  /* it may have poured: never twice */
        job->outcome.failed = 1;
        response = look;
    } else {
        puts("PUMP RUNS");
        fflush(stdout);
        sleep(1);
    }
    job->outcome.response = response;
    job->outcome.response_len = strlen(response);
    return IDEM_HANDLED;
}

/* Opens file, secret and table; prints why if one of them refuses. */
static int open_journal(const char *path)
{
    int result = secret_open_file(&config, &file, path, pump_sector_size,
                                  pump_sector_count);

    if (result != IDEM_OK)
        return result;
    result = idem_open(&table, &config, pump_memory, sizeof pump_memory,
                       millis());
    if (result != IDEM_OK)
        reason_print(path, result, &table, &config);
    return result;
}

/* Ends what was interrupted: an outcome can make room, a claim cannot.  (The
   file is ours alone, so nobody is at it.) */
static int end_interrupted(void)
{
    unsigned char id[pump_key_max];
    idem_info info = { .id = id, .id_size = sizeof id };
    idem_outcome outcome = { .response = look, .response_len = sizeof look - 1,
                             .failed = 1 };
    idem_reply reply;
    idem_claim claim;
    int result = IDEM_OK;

    while (result >= 0 && idem_next(&table, &info, millis()) == IDEM_OK) {
        idem_request request = { .scope = id, .scope_len = info.scope_len,
            .key = id + info.scope_len, .key_len = info.key_len,
            .fingerprint = info.fingerprint, .has_fingerprint = 1 };

        if (info.status == IDEM_IN_PROGRESS)
            result = idem_begin(&table, &claim, &reply, &request, millis());
        if (info.status == IDEM_IN_PROGRESS && claim.token)
            result = idem_complete(&table, &claim, &outcome, millis());
    }
    return result;
}

/* Returns whether it was executed, now or before, and did not fail. */
static int execute(const char *path, const char *key, const char *command)
{
    char answer[pump_response_max + 1] = "";
    idem_reply reply;
    idem_request request = { .scope = "shell", .scope_len = 5,
        .key = key, .key_len = strlen(key),
        .payload = command, .payload_len = strlen(command),
        .buffer = answer, .buffer_size = sizeof answer - 1 };
    int result = idem_run(&table, &reply, &request, handle, NULL, millis);

    if (result == IDEM_E_FULL && end_interrupted() >= 0)
        result = idem_run(&table, &reply, &request, handle, NULL, millis);
    if (result < 0)
        reason_print(path, result, &table, &config);
    else
        printf("%s: %s\n", idem_text(result), answer);
    return (result == IDEM_DONE || result == IDEM_REPLAY) &&
           reply.status == IDEM_COMPLETED;
}

int main(int argc, char **argv)
{
    int help = argc == 2 && strcmp(argv[1], "--help") == 0, done;

    if (argc != 4) {
        fputs("file JOURNAL KEY COMMAND\n"
              "executes a command once for each key; the journal is a file, "
              "made if there is none\n"
              "exit status: 0 done, now or before, 1 not, or nobody knows\n",
              help ? stdout : stderr);
        return help ? 0 : 2;
    }
    if (open_journal(argv[1]) != IDEM_OK)
        return 1;
    done = execute(argv[1], argv[2], argv[3]);
    if (idem_file_close(&file) != IDEM_OK) {
        reason_print_file(argv[1], IDEM_E_STORAGE, &file);
        return 1;
    }
    return !done;
}
