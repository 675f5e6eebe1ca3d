/* SPDX-License-Identifier: 0BSD */
/* cc -I.. inspect.c -o inspect && ./inspect pump.journal
 *
 * Reads a journal, from its file or a dump of its flash, and prints what a
 * device that starts with it would know: keys, outcomes, ages, undelivered
 * outcomes, losses.  Writes nothing.  Stop the device first: what is read while
 * it writes may be of two moments, which looks like a loss.  Without options it
 * expects a journal of file.c; for others give the options with which they were
 * configured.  The secret is read from a file: everybody can see a command line.
 *
 * The hash is chosen at compile time: for a journal of a machine with less than
 * 64 bits add -DIDEM_HASH=IDEM_HASH_HALFSIPHASH.  Keys and responses are
 * printed as text, other bytes as \xHH, numbers as epoch.sequence.  Ages are
 * those at the newest record: the journal does not know how long ago that was.
 */
#define IDEM_IMPLEMENTATION
#include "idem.h"
#include "reason.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SOUND = 0, LOST = 1, REFUSED = 2 };

static const char help[] =
    "inspect [options] FILE\n"
    "prints the content of a journal; without options, of one of file.c\n"
    "stop the device first: a journal that is being written to may look as if\n"
    "records were lost\n\n"
    "  --capacity N --key-max N --response-max N --state-max N\n"
    "  --senders N          also prints the number of keys of each (0)\n"
    "  --retention MS       retention_ms of the config (24 hours)\n"
    "  --secret-file FILE   16 bytes (FILE.secret)\n"
    "  --sector N           bytes of a sector; FILE has as many as fit\n"
    "  --granule N          prog_size: bytes of a granule (1)\n"
    "  --erased N           what an erased byte reads as (0)\n"
    "  --flash N            1: flash, which has an erase; 0: EEPROM, FRAM, file"
    "\n"
    "  --config FILE        such options, one a line, without --\n\n"
    "exit status: 0 no loss, 1 records were lost, 2 it cannot be opened\n";

static void die(const char *what, const char *why)
{
    fprintf(stderr, "inspect: %s: %s\n", what, why);
    exit(REFUSED);
}

static void *allocate(size_t size)
{
    void *memory = malloc(size ? size : 1);

    if (!memory)
        die("memory", strerror(errno));
    return memory;
}

/* ---------------------------------------------------------------------------
   the storage: a file's bytes, which are only read
   ------------------------------------------------------------------------ */

static unsigned char *bytes;

static int image_read(void *ctx, uint32_t at, void *dst, uint32_t len)
{
    (void)ctx;
    memcpy(dst, bytes + at, len);
    return 0;
}

static int refuse_prog(void *ctx, uint32_t at, const void *src, uint32_t len)
{
    (void)ctx, (void)at, (void)src, (void)len;
    return EROFS;
}

static int refuse_erase(void *ctx, uint32_t sector)
{
    (void)ctx, (void)sector;
    return EROFS;
}

/* The whole file; its length. */
static size_t read_whole(unsigned char **dst, const char *path)
{
    FILE *file = fopen(path, "rb");
    size_t len = 0, size = 1 << 16, got;

    if (!file)
        die(path, strerror(errno));
    *dst = (unsigned char *)allocate(size);
    while ((got = fread(*dst + len, 1, size - len, file)) > 0) {
        len += got;
        if (len == size) {
            *dst = (unsigned char *)realloc(*dst, size *= 2);
            if (!*dst)
                die(path, strerror(errno));
        }
    }
    if (ferror(file))
        die(path, strerror(errno));
    fclose(file);
    return len;
}

/* ---------------------------------------------------------------------------
   options
   ------------------------------------------------------------------------ */

// Those of file.c
static idem_storage storage = {
    .read = image_read, .prog = refuse_prog, .sector_size = 4096,
    .prog_size = 1
};
static idem_config config = {
    .capacity = 64, .key_max = 32, .response_max = 32,
    .storage = &storage, .retention_ms = 24 * 60 * 60 * 1000
};

/* Decimal, or hexadecimal after 0x: 032 is 32. */
static uint32_t number(const char *option, const char *text, uint32_t most)
{
    int base = strncmp(text, "0x", 2) == 0 ? 16 : 10;
    char *end;
    unsigned long long n = strtoull(text, &end, base);

    if (*text < '0' || *text > '9' || *end || n > most)
        die(option, "not a number, or too large");
    return (uint32_t)n;
}

static char *secret_path;       // NULL: beside the journal

static char *join(const char *path, const char *ending)
{
    char *joined = (char *)allocate(strlen(path) + strlen(ending) + 1);

    strcpy(joined, path);
    return strcat(joined, ending);
}

static void read_secret(const char *journal)
{
    char *path = secret_path ? secret_path : join(journal, ".secret");
    unsigned char *secret;

    if (read_whole(&secret, path) != sizeof config.secret)
        die(path, "not a secret, which has 16 bytes");
    memcpy(config.secret, secret, sizeof config.secret);
    free(secret);
    free(path);
}

static void take_options_of(const char *path);

static void take_option(const char *name, const char *value)
{
    if (!strcmp(name, "capacity"))
        config.capacity = number(name, value, IDEM_CAPACITY_MAX);
    else if (!strcmp(name, "key-max"))
        config.key_max = (uint16_t)number(name, value, UINT8_MAX);
    else if (!strcmp(name, "response-max"))
        config.response_max = (uint16_t)number(name, value, UINT16_MAX);
    else if (!strcmp(name, "state-max"))
        config.state_max = (uint16_t)number(name, value, UINT16_MAX);
    else if (!strcmp(name, "senders"))
        config.senders = number(name, value, IDEM_SENDERS_MAX);
    else if (!strcmp(name, "retention"))
        config.retention_ms = number(name, value, IDEM_RETENTION_MAX);
    else if (!strcmp(name, "secret-file"))
        secret_path = join(value, "");
    else if (!strcmp(name, "sector"))
        storage.sector_size = number(name, value, 262144);
    else if (!strcmp(name, "granule"))
        storage.prog_size = (uint16_t)number(name, value, 256);
    else if (!strcmp(name, "erased"))
        storage.erased = (uint8_t)number(name, value, UINT8_MAX);
    else if (!strcmp(name, "flash"))
        storage.erase = number(name, value, 1) ? refuse_erase : NULL;
    else if (!strcmp(name, "config"))
        take_options_of(value);
    else
        die(name, "no such option; see --help");
}

static void take_options_of(const char *path)
{
    FILE *file = fopen(path, "r");
    char line[300], name[20], value[sizeof line], rest;

    if (!file)
        die(path, strerror(errno));
    while (fgets(line, sizeof line, file)) {
        int found = sscanf(line, " %19s %299s %c", name, value, &rest);

        if (!strchr(line, '\n') && !feof(file))
            die(path, "a line is too long");
        if (found < 1 || name[0] == '#')
            continue;
        if (found < 2)
            die(name, "no value; see --help");
        if (found > 2)
            die(name, "a value is one word, and a comment has its own line");
        take_option(name, value);
    }
    if (ferror(file))
        die(path, strerror(errno));
    fclose(file);
}

/* ---------------------------------------------------------------------------
   what there is to see
   ------------------------------------------------------------------------ */

static void print_bytes(const char *name, const unsigned char *text, size_t len)
{
    size_t i;

    printf("%s \"", name);
    for (i = 0; i < len; i++)
        if (text[i] >= ' ' && text[i] <= '~' && text[i] != '"' &&
            text[i] != '\\')
            putchar(text[i]);
        else
            printf("\\x%02x", text[i]);
    putchar('"');
}

static void print_time(const char *name, uint32_t ms)
{
    printf(", %s %u.%03u s", name, (unsigned)(ms / 1000),
           (unsigned)(ms % 1000));
}

static void print_response(idem_table *table, const idem_info *info)
{
    unsigned char *response = (unsigned char *)allocate(config.response_max);
    size_t len = config.response_max;
    int result = idem_response(table, response, &len, &info->claim, 0);

    if (result < 0)
        printf(", its response: %s", idem_text(result));
    else
        print_bytes(", response", response, len);
    free(response);
}

/* One key, on one line. */
static void print_key(idem_table *table, const idem_info *info)
{
    const unsigned char *id = (const unsigned char *)info->id;

    print_bytes("scope", id, info->scope_len);
    if (info->sequence)
        printf(" number %lu.%lu", (unsigned long)info->epoch,
               (unsigned long)info->sequence);
    else
        print_bytes(" key", id + info->scope_len, info->key_len);
    if (info->status == IDEM_IN_PROGRESS) {
        printf(": in progress");
    } else {
        printf(": %s, code %ld",
               info->status == IDEM_FAILED ? "failed" : "completed",
               (long)info->code);
        print_time("age", info->age_ms);
        print_time("left", info->left_ms);
        print_response(table, info);
    }
    printf(", attempts %u%s, payload %016llx\n", (unsigned)info->attempts,
           info->undelivered ? ", undelivered" : "",
           (unsigned long long)info->fingerprint);
}

/* A scope that has keys */
typedef struct sender {
    unsigned char  scope[UINT8_MAX];
    size_t         scope_len;
    uint32_t       keys;
    struct sender *next;
} sender;

/* Counts a key for its sender. */
static void count_key(sender **senders, const idem_info *info)
{
    sender **at = senders;

    while (*at && ((*at)->scope_len != info->scope_len ||
                   memcmp((*at)->scope, info->id, info->scope_len)))
        at = &(*at)->next;
    if (!*at) {
        *at = (sender *)allocate(sizeof **at);
        memcpy((*at)->scope, info->id, info->scope_len);
        (*at)->scope_len = info->scope_len;
        (*at)->keys = 0;
        (*at)->next = NULL;
    }
    (*at)->keys++;
}

static void print_senders(sender *senders)
{
    while (senders) {
        sender *next = senders->next;

        print_bytes("sender", senders->scope, senders->scope_len);
        printf(": keys %u\n", (unsigned)senders->keys);
        free(senders);
        senders = next;
    }
}

static void print_keys(idem_table *table)
{
    unsigned char id[UINT8_MAX];
    sender *senders = NULL;
    idem_info info;

    memset(&info, 0, sizeof info);
    info.id = id;
    info.id_size = sizeof id;
    while (idem_next(table, &info, 0) == IDEM_OK) {
        print_key(table, &info);
        if (config.senders)
            count_key(&senders, &info);
    }
    print_senders(senders);
}

static void print_state(idem_table *table)
{
    unsigned char *state = (unsigned char *)allocate(config.state_max);
    size_t len = config.state_max;

    if (idem_state(table, state, &len) == IDEM_OK && len) {
        print_bytes("state", state, len);
        putchar('\n');
    }
    free(state);
}

static void print_sum(const idem_table *table)
{
    printf("keys %u, undelivered %u, lost %u, sectors %u\n",
           (unsigned)table->used, (unsigned)table->pending,
           (unsigned)table->stats.lost, (unsigned)storage.sector_count);
}

/* After a loss, also one of an earlier boot: claims are IDEM_UNCERTAIN.
   Returns whether they are. */
static int print_uncertain(idem_table *table)
{
    uint32_t left = 0;

    if (idem_uncertain(table, &left, 0) == IDEM_OK && left)
        printf("records were lost: every claim is uncertain, for %.0f s\n",
               left / 1000.0);
    return left > 0;
}

/* Opens the table as the device does; prints what does not fit, if so. */
static void open_table(idem_table *table, const char *path)
{
    size_t len = read_whole(&bytes, path), size;
    int result;

    read_secret(path);
    if (storage.sector_size)
        storage.sector_count = (uint32_t)(len / storage.sector_size);
    size = idem_memory_size(&config);
    result = idem_open(table, &config, allocate(size), size, 0);
    if (result != IDEM_OK) {
        fputs("inspect: ", stderr);
        reason_print(path, result, table, &config);
        exit(REFUSED);
    }
}

int main(int argc, char **argv)
{
    static idem_table table;
    int i, lost;

    for (i = 1; i + 1 < argc && !strncmp(argv[i], "--", 2); i += 2)
        take_option(argv[i] + 2, argv[i + 1]);
    if (i + 1 == argc && !strcmp(argv[i], "--help")) {
        fputs(help, stdout);
        return SOUND;
    }
    if (i + 1 != argc) {
        fputs(help, stderr);
        return REFUSED;
    }
    open_table(&table, argv[i]);
    print_keys(&table);
    print_state(&table);
    print_sum(&table);
    lost = print_uncertain(&table) || table.stats.lost;
    if (fflush(stdout) != 0 || ferror(stdout))
        die("stdout", strerror(errno));
    return lost ? LOST : SOUND;
}
