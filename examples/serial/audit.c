/* SPDX-License-Identifier: 0BSD */
#include "audit.h"
#include "device.h"
#include "flash_file.h"
#include "host.h"
#include "../secret.h"
#include "traffic.h"
#include <stdlib.h>

#define LINE_SIZE 160
#define ORDINALS (8 * AUDIT_COMMANDS_MAX)

/* What is known of a command */
typedef struct finding {
    uint32_t executions;
    int      answered;
    int      wrong;
    char     answer[2 * DEVICE_RESPONSE_MAX + 1];       /* the first, in hex */
} finding;

/* The n-th pour or label, from 1: whose it is, and the meter after it */
typedef struct effect {
    uint32_t command;           /* TRAFFIC_NONE: unknown, or void */
    uint32_t ml;
} effect;

static struct {
    uint32_t seed;
    uint32_t commands;
    uint32_t strange;
    uint32_t interrupted;
    uint32_t unexplained;       /* pours that the meter counts, and nothing
                                   shows whose they are */
    uint32_t pours, labels;
    finding  of[AUDIT_COMMANDS_MAX];
    effect   pour[ORDINALS];
    effect   label[ORDINALS];
} found;

static FILE *open_file(const char *dir, const char *name)
{
    char path[512];

    snprintf(path, sizeof path, "%s/%s", dir, name);
    return fopen(path, "r");
}

/* A text file's next line without its end; 0 if there is none.  What has no
   end is not a line: it was being written. */
static int next_line(FILE *file, char *text)
{
    size_t len;

    if (!file || !fgets(text, LINE_SIZE, file))
        return 0;
    len = strlen(text);
    if (len == 0 || text[len - 1] != '\n')
        return 0;
    text[len - 1] = 0;
    return 1;
}

/* The next effect; TRAFFIC_NONE: one that does not count */
static void enter(effect *effects, uint32_t *count, uint32_t command)
{
    if (*count + 1 == ORDINALS) {
        fputs("audit: more effects than can be\n", stderr);
        exit(2);
    }
    effects[++*count].command = command;
    if (command != TRAFFIC_NONE)
        found.of[command].executions++;
}

/* ---------------------------------------------------------------------------
   the files of the device
   ------------------------------------------------------------------------ */

/* The command that "scope key ..." names, if the text is exactly what it asks
   for. */
static uint32_t command_of(const char *text)
{
    traffic_command command;
    char expected[LINE_SIZE];
    size_t scope_len = strcspn(text, " ");
    const char *key = text + scope_len + (text[scope_len] == ' ');
    uint32_t index = traffic_find(text, scope_len, key, strcspn(key, " "));

    if (index >= found.commands)
        return TRAFFIC_NONE;
    traffic_make(&command, found.seed, index);
    if (command.ml)
        snprintf(expected, sizeof expected, "%s %s %u", command.scope,
                 command.key, command.ml);
    else
        snprintf(expected, sizeof expected, "%s %s %s", command.scope,
                 command.key, (const char *)command.payload + 1);
    return strcmp(text, expected) == 0 ? index : TRAFFIC_NONE;
}

static int is_void(const char *text)
{
    size_t len = strlen(text);

    return len >= 5 && strcmp(text + len - 5, " VOID") == 0;
}

static void read_labels(const char *dir)
{
    FILE *file = open_file(dir, "labels");
    char text[LINE_SIZE];

    while (next_line(file, text)) {
        enter(found.label, &found.labels, command_of(text));
        found.strange += found.label[found.labels].command == TRAFFIC_NONE &&
                         !is_void(text);
    }
    if (file)
        fclose(file);
}

static void read_ledger(const char *dir)
{
    FILE *file = open_file(dir, "ledger");
    char text[LINE_SIZE];

    while (next_line(file, text)) {
        enter(found.pour, &found.pours, command_of(text));
        found.strange += found.pour[found.pours].command == TRAFFIC_NONE;
    }
    if (file)
        fclose(file);
}

/* The command that a key or number in the journal is of */
static uint32_t command_of_key(const idem_info *info, const uint8_t *id)
{
    uint8_t number[PROTOCOL_NUMBER_SIZE];

    if (!info->sequence)
        return traffic_find(id, info->scope_len, id + info->scope_len,
                            info->key_len);
    protocol_put32(number, info->epoch);
    protocol_put32(number + 4, info->sequence);
    return traffic_find(id, info->scope_len, number, sizeof number);
}

/* A finished pour: its response has its number. */
static void take_outcome(device *d, const idem_info *info, const uint8_t *id)
{
    traffic_command command;
    uint8_t response[DEVICE_RESPONSE_MAX];
    size_t len = sizeof response;
    uint32_t ordinal, index = command_of_key(info, id);

    if (index >= found.commands || info->status != IDEM_COMPLETED ||
        idem_response(&d->table, response, &len, &info->claim, 0) < 0) {
        found.strange++;
        return;
    }
    found.interrupted += info->attempts - 1;
    traffic_make(&command, found.seed, index);
    if (!command.ml)
        return;
    ordinal = protocol_get32(response);
    found.of[index].executions++;
    if (len != DEVICE_RESPONSE_MAX || ordinal == 0 || ordinal > found.pours ||
        found.pour[ordinal].command != TRAFFIC_NONE)
        found.strange++;
    else
        found.pour[ordinal].command = index;
}

/* The tick of all calls here: no time passes while a journal is audited. */
static uint32_t no_millis(void)
{
    return 0;
}

/* The meter counts the pours, the outcomes name them. */
static void read_journal(device *d)
{
    uint8_t meter[DEVICE_STATE_MAX] = { 0 }, id[DEVICE_KEY_MAX];
    size_t len = sizeof meter;
    idem_info info;
    uint32_t i, ml = 0;

    idem_state(&d->table, meter, &len);
    found.pours = protocol_get32(meter);
    if (found.pours >= ORDINALS) {
        found.strange++;
        found.pours = 0;
    }
    for (i = 1; i <= found.pours; i++)
        found.pour[i].command = TRAFFIC_NONE;
    memset(&info, 0, sizeof info);
    info.id = id;
    info.id_size = sizeof id;
    while (idem_next(&d->table, &info, no_millis()) == IDEM_OK)
        take_outcome(d, &info, id);
    for (i = 1; i <= found.pours; i++) {
        traffic_command command;

        if (found.pour[i].command == TRAFFIC_NONE) {
            found.unexplained++;
            continue;
        }
        traffic_make(&command, found.seed, found.pour[i].command);
        ml += command.ml;
    }
    if (!found.unexplained && ml != protocol_get32(meter + 4))
        found.strange++;
}

static void read_meter(device *d)
{
    uint8_t meter[DEVICE_STATE_MAX] = { 0 };
    size_t len = sizeof meter;

    idem_state(&d->table, meter, &len);
    found.pours = protocol_get32(meter);
}

/* Opens the device's memory, and hands it to a reader. */
static int read_flash(const char *dir, void (*reader)(device *d))
{
    static uint8_t secret[SECRET_SIZE];
    static const device_port port = { NULL, NULL, no_millis, NULL, NULL, NULL,
                                      secret };
    static uint32_t memory[DEVICE_MEMORY_SIZE(FLASH_GRANULE) / 4];
    static flash_file flash;
    static device d;
    char path[512];
    int result;

    snprintf(path, sizeof path, "%s/secret", dir);
    if (!secret_read(secret, path))
        return -1;
    snprintf(path, sizeof path, "%s/flash", dir);
    if (flash_file_open(&flash, path) < 0) {
        perror(path);
        return -1;
    }
    result = device_start(&d, &port, &flash.storage, memory, sizeof memory);
    if (result == IDEM_OK)
        reader(&d);
    else
        reason_print(path, result, &d.table, &d.config);
    close(flash.fd);
    return result;
}

/* ---------------------------------------------------------------------------
   the answers
   ------------------------------------------------------------------------ */

static void sum_up_the_meter(void)
{
    uint32_t i, ml = 0;

    for (i = 1; i <= found.pours; i++) {
        traffic_command command;

        if (found.pour[i].command != TRAFFIC_NONE) {
            traffic_make(&command, found.seed, found.pour[i].command);
            ml += command.ml;
        }
        found.pour[i].ml = ml;
    }
}

/* True if an answer is true: that pour, that label is this command's,
   and the meter was there. */
static int is_true(uint32_t index, unsigned result, const char *hex)
{
    traffic_command command;
    uint8_t response[DEVICE_RESPONSE_MAX] = { 0 };
    uint32_t ordinal;
    size_t i, len = strlen(hex) / 2;

    if (result != PROTOCOL_DONE || len > sizeof response)
        return 0;
    for (i = 0; i < len; i++) {
        char byte[3] = { hex[2 * i], hex[2 * i + 1], 0 };

        response[i] = (uint8_t)strtoul(byte, NULL, 16);
    }
    traffic_make(&command, found.seed, index);
    ordinal = protocol_get32(response);
    if (!command.ml)
        return len == 4 && ordinal > 0 && ordinal <= found.labels &&
               found.label[ordinal].command == index;
    return len == 8 && ordinal > 0 && ordinal <= found.pours &&
           found.pour[ordinal].command == index &&
           found.pour[ordinal].ml == protocol_get32(response + 4);
}

static void take_answer(uint32_t index, unsigned result, const char *hex)
{
    finding *f = &found.of[index];

    if (!f->answered)
        strcpy(f->answer, hex);
    f->answered = 1;
    if (!is_true(index, result, hex) || strcmp(f->answer, hex) != 0)
        f->wrong = 1;
}

typedef void answer_taker(uint32_t index, unsigned result, const char *hex);

static int read_answers(const char *dir, const char *name, answer_taker *take)
{
    FILE *file = open_file(dir, name);
    char text[LINE_SIZE], hex[2 * DEVICE_RESPONSE_MAX + 1];
    unsigned index, result;

    if (!file) {
        perror(name);
        return -1;
    }
    while (next_line(file, text)) {
        hex[0] = 0;
        if (sscanf(text, "%u %u %16s", &index, &result, hex) >= 2 &&
            index < found.commands)
            take(index, result, hex);
        else
            found.strange++;
    }
    fclose(file);
    return 0;
}

int audit_make(audit *a, const char *dir, uint32_t seed, uint32_t commands,
               int with_idem)
{
    uint32_t i;

    memset(&found, 0, sizeof found);
    found.seed = seed;
    found.commands = commands;
    read_labels(dir);
    if (with_idem && read_flash(dir, read_journal) < 0)
        return -1;
    if (!with_idem)
        read_ledger(dir);
    sum_up_the_meter();
    if (read_answers(dir, "answers", take_answer) < 0)
        return -1;
    memset(a, 0, sizeof *a);
    a->commands = commands;
    a->twice = found.unexplained;
    a->strange = found.strange;
    a->interrupted = found.interrupted;
    for (i = 0; i < commands; i++) {
        const finding *f = &found.of[i];

        a->once += f->executions == 1;
        a->twice += f->executions > 1;
        a->never += f->executions == 0;
        a->wrong += f->wrong || !f->answered;
    }
    return 0;
}

/* ---------------------------------------------------------------------------
   the same commands again
   ------------------------------------------------------------------------ */

/* wrong: it was answered otherwise */
static void take_refusal(uint32_t index, unsigned result, const char *hex)
{
    finding *f = &found.of[index];

    f->answered = 1;
    if (result != PROTOCOL_REFUSED || strtol(hex, NULL, 16) != IDEM_TOO_OLD)
        f->wrong = 1;
}

uint32_t audit_effects(const char *dir)
{
    FILE *file = open_file(dir, "labels");
    char text[LINE_SIZE];
    uint32_t labels = 0;

    memset(&found, 0, sizeof found);
    if (read_flash(dir, read_meter) < 0)
        exit(2);
    while (next_line(file, text))
        labels += !is_void(text);
    if (file)
        fclose(file);
    return found.pours + labels;
}

int audit_make_again(audit_again *a, const char *dir, uint32_t commands,
                     uint32_t effects)
{
    uint32_t i;

    a->executed = audit_effects(dir) - effects;
    a->refused = 0;
    memset(&found, 0, sizeof found);
    found.commands = commands;
    if (read_answers(dir, "answers-again", take_refusal) < 0)
        return -1;
    for (i = 0; i < commands; i++)
        a->refused += found.of[i].answered && !found.of[i].wrong;
    return found.strange ? -1 : 0;
}
