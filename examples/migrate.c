/* SPDX-License-Identifier: 0BSD */
/* cc -I.. migrate.c -o migrate
 * ./migrate pump.journal 64,32,32,0,4096 new.journal 256,32,64,0,8192
 * (a sixth number: senders, if the device's configuration has some)
 *
 * Copies a journal's file into a new one of another geometry: each key with its
 * fingerprint; of a finished key also response, code, the rest of its
 * retention, and whether it is undelivered; of an interrupted key its attempts,
 * for 30 days; and the application state.  Ages start anew.  A new file gets as
 * many sectors as it needs; a file of zeros keeps its size (truncate -s 256K).
 * The old file is not changed.  After success put the new one in its place; the
 * secret stays.
 *
 * Replay windows of senders and the time of evictions are not copied: it prints
 * a warning.  It refuses a journal that has lost records while its unknown keys
 * are uncertain: the new journal would take them for new.
 *
 * copy_journal.h does the work, and can copy between flash and a file too.
 */
#define _POSIX_C_SOURCE 200809L
#define IDEM_FILE_STORAGE
#define IDEM_IMPLEMENTATION
#include "idem.h"
#include "copy_journal.h"
#include "secret.h"
#include <stdlib.h>
#include <sys/stat.h>

static const char help[] =
    "migrate OLD GEOMETRY NEW GEOMETRY [SECRET-FILE]\n"
    "copies a journal into a new file\n\n"
    "  GEOMETRY is capacity,key_max,response_max,state_max,sector_size and,\n"
    "  if there are any, ,senders\n"
    "  SECRET-FILE has the 16 bytes of both; it is OLD.secret if not given\n";

/* A journal in a file */
typedef struct journal {
    const char *path;
    idem_file   file;
    idem_config config;
    idem_table  table;
} journal;

/* ---------------------------------------------------------------------------
   the two files
   ------------------------------------------------------------------------ */

/* False if the text is no geometry. */
static int parse(journal *j, uint32_t *sector_size, const char *text)
{
    unsigned capacity, key_max, response_max, state_max, sector, senders = 0;
    int five = 0, six = 0;

    // 9 digits cannot overflow, and more than that is no size.
    sscanf(text, "%9u,%9u,%9u,%9u,%9u%n,%9u%n", &capacity, &key_max,
           &response_max, &state_max, &sector, &five, &senders, &six);
    if (!five || text[six ? six : five] || strchr(text, '-') ||
        key_max > UINT8_MAX || response_max > UINT16_MAX ||
        state_max > UINT16_MAX || senders > IDEM_SENDERS_MAX)
        return 0;
    j->config.capacity = capacity;
    j->config.key_max = (uint16_t)key_max;
    j->config.response_max = (uint16_t)response_max;
    j->config.state_max = (uint16_t)state_max;
    j->config.senders = senders;
    j->config.retention_ms = IDEM_RETENTION_MAX;
    j->config.max_attempts = UINT8_MAX;
    *sector_size = sector;
    return 1;
}

/* As many sectors as a file has; of one that is not there, or empty, as many as
   its keys take. */
static uint32_t sectors_of(const char *path, const idem_config *c,
                           uint32_t sector)
{
    struct stat is;

    if (sector && stat(path, &is) == 0 && is.st_size > 0)
        return (uint32_t)(is.st_size / sector);
    return IDEM_SECTORS(c->capacity + c->senders, c->key_max, c->response_max,
                        c->state_max, sector, 1);
}

/* True if it is open; if not, prints why. */
static int open_journal(journal *j, const char *path, const char *geometry,
                        const uint8_t *secret)
{
    const char *why;
    size_t size;
    uint32_t sector;
    int result;

    if (!parse(j, &sector, geometry)) {
        fprintf(stderr, "migrate: %s: not a geometry, see\n%s", geometry, help);
        return 0;
    }
    memcpy(j->config.secret, secret, sizeof j->config.secret);
    why = idem_explain(&j->config);     // before a file of that size is made
    if (why)
        return secret_wrong(geometry, why);
    j->path = path;
    result = idem_file_open(&j->file, path, sector,
                            sectors_of(path, &j->config, sector));
    if (result != IDEM_OK) {
        reason_print_file(path, result, &j->file);
        return 0;
    }
    j->config.storage = &j->file.storage;
    size = idem_memory_size(&j->config);
    result = idem_open(&j->table, &j->config, allocate(size), size, 0);
    if (result != IDEM_OK)
        reason_print(path, result, &j->table, &j->config);
    return result == IDEM_OK;
}

/* Prints what the new journal does not know. */
static void warn(journal *from, uint32_t now_ms)
{
    uint32_t remembered_ms;

    if (from->config.senders)
        fprintf(stderr, "%s: the replay windows of senders are not copied: let "
                "each begin a new epoch\n", from->path);
    if (idem_horizon(&from->table, &remembered_ms, now_ms) == IDEM_OK &&
        remembered_ms < from->config.retention_ms)
        fprintf(stderr, "%s: commands completed more than %lu s ago may have "
                "been evicted: to the new journal they are new\n", from->path,
                (unsigned long)(remembered_ms / 1000));
}

static int copy(journal *to, journal *from)
{
    size_t copied;
    uint32_t now_ms = 0;
    int result = copy_journal(&to->table, &from->table, &copied, &now_ms);

    if (result == IDEM_UNCERTAIN) {
        fprintf(stderr, "%s: records were lost, so unknown keys may have been "
                "executed: use it for one more retention, then copy it\n",
                from->path);
        return 1;
    }
    if (result != IDEM_OK) {
        fprintf(stderr, "key %lu of the old: ", (unsigned long)copied);
        reason_print(to->path, result, &to->table, &to->config);
        return 1;
    }
    printf("%lu keys copied\n", (unsigned long)copied);
    warn(from, now_ms);
    result = idem_file_close(&to->file);
    if (result != IDEM_OK)
        reason_print_file(to->path, IDEM_E_STORAGE, &to->file);
    return result != IDEM_OK;
}

int main(int argc, char **argv)
{
    static journal from, to;
    uint8_t secret[SECRET_SIZE];
    char beside[SECRET_PATH];

    if (argc != 5 && argc != 6) {
        int asked = argc == 2 && strcmp(argv[1], "--help") == 0;
        fputs(help, asked ? stdout : stderr);
        return asked ? 0 : 2;
    }
    if (access(argv[1], F_OK) != 0)     // opening it would make it
        return !secret_wrong(argv[1], strerror(errno));
    if (!secret_has_journal(argv[1]))
        return !secret_wrong(argv[1], "empty: it was a journal, restore it");
    if (!secret_path(beside, argv[1], ".secret") ||
        !secret_read(secret, argc == 6 ? argv[5] : beside) ||
        !open_journal(&from, argv[1], argv[2], secret) ||
        !open_journal(&to, argv[3], argv[4], secret))
        return 1;
    if (to.table.used || to.table.stats.lost) {
        fprintf(stderr, "migrate: %s: holds a journal: name a new file\n",
                argv[3]);
        return 1;
    }
    return copy(&to, &from);
}
