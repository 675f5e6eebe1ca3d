/* SPDX-License-Identifier: 0BSD */
/*
 * Shows that examples/inspect.c, which shares no line with idem.h, reads every
 * journal as idem.h does: key by key, over random histories with restarts and
 * power cuts, on every medium, and with flipped bits.  So the manual's format
 * chapter is enough to write a reader.
 *
 * Runs the program `inspect` that is beside it, or $INSPECT, and writes an
 * image there.  $HISTORIES says how many are lived through on each medium.
 */
#define _POSIX_C_SOURCE 200809L
#ifndef NO_FILE                     // a machine with a C library, no system
#define IDEM_FILE_STORAGE
#endif
#define IDEM_IMPLEMENTATION
#include "idem.h"

#include "fixture.h"
#include "flash.h"
#include "journal.h"

#include <sys/wait.h>

enum { SOUND = 0, DAMAGED = 1, NO_JOURNAL = 2 };
enum { STEPS = 400 };

static char beside[256];            // this program's directory, with its /
static unsigned looks, losses;      // how often all was sound; something lost

// An image that is read by inspect, and by a table that must not write
typedef struct frozen {
    uint8_t *image;
    idem_storage storage;
    idem_config config;
    idem_table table;
    void    *memory;
    int      opened;                // what idem_open said
    int      status;                // inspect's exit status
    char    *json;                  // what inspect said
} frozen;

/* ------------------------------------------------------------------- frozen */

static int frozen_read(void *ctx, uint32_t at, void *dst, uint32_t len)
{
    memcpy(dst, (uint8_t *)ctx + at, len);
    return 0;
}

static int frozen_prog(void *ctx, uint32_t at, const void *src, uint32_t len)
{
    (void)ctx, (void)at, (void)src, (void)len;
    fail_msg("who looks must not write");
    return -1;
}

static int frozen_erase(void *ctx, uint32_t sector)
{
    (void)ctx, (void)sector;
    fail_msg("who looks must not erase");
    return -1;
}

/* What the medium reads as now, with all that is unstable in it. */
static uint8_t *photograph(device *d)
{
    uint8_t *image = (uint8_t *)malloc(d->medium.size);

    assert_non_null(image);
    for (uint32_t at = 0; at < d->medium.size; at += d->medium.prog_size)
        flash_read(&d->medium, at, image + at, d->medium.prog_size);
    return image;
}

static void write_image(const void *bytes, size_t len)
{
    char path[300];
    FILE *f;

    snprintf(path, sizeof path, "%sinspect.image", beside);
    f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, len, f), len);
    assert_int_equal(fclose(f), 0);
}

/* Runs inspect on the image; its output ends with a zero. */
static char *run_inspect(const char *arguments, int *status)
{
    char command[800];
    size_t room = 65536, len = 0, n;
    char *text = (char *)malloc(room);
    FILE *p;

    if (getenv("INSPECT"))
        snprintf(command, sizeof command, "%s %s %sinspect.image 2>&1",
                 getenv("INSPECT"), arguments, beside);
    else
        snprintf(command, sizeof command, "%sinspect %s %sinspect.image 2>&1",
                 beside, arguments, beside);
    p = popen(command, "r");
    assert_non_null(p);
    assert_non_null(text);
    while ((n = fread(text + len, 1, room - len - 1, p)) > 0) {
        len += n;
        if (room - len < 2)
            text = (char *)realloc(text, room *= 2);
        assert_non_null(text);
    }
    text[len] = 0;
    *status = pclose(p);
    assert_true(WIFEXITED(*status));
    *status = WEXITSTATUS(*status);
    return text;
}

/* Opens the image, and inspects it. */
static void frozen_open(frozen *z, const device *d, uint8_t *image)
{
    char arguments[100];

    memset(z, 0, sizeof *z);
    z->image = image;
    z->storage = d->storage;
    z->storage.ctx = image;
    z->storage.read = frozen_read;
    z->storage.prog = frozen_prog;
    z->storage.erase = d->storage.erase ? frozen_erase : NULL;
    z->storage.sync = NULL;
    z->config = d->f.config;
    z->config.storage = &z->storage;
    idem_open(&z->table, &z->config, NULL, 0, 0);
    z->memory = malloc(z->table.needed);
    assert_non_null(z->memory);
    z->opened = idem_open(&z->table, &z->config, z->memory, z->table.needed, 0);
    write_image(image, d->medium.size);
    snprintf(arguments, sizeof arguments,
             "--json --hex --retention %lu --sector-size %lu --granule %u "
             "--erased %u",
             (unsigned long)z->config.retention_ms,
             (unsigned long)z->storage.sector_size, z->storage.prog_size,
             z->storage.erased);
    z->json = run_inspect(arguments, &z->status);
}

static void frozen_close(frozen *z)
{
    free(z->image);
    free(z->memory);
    free(z->json);
}

/* --------------------------------------------------------------------- JSON */

/* The text of a field behind `from`, up to what ends it.  Lasts until the next
   call. */
static const char *field(const char *from, const char *name)
{
    static char value[2048];
    char pattern[40];
    const char *at;
    size_t len;

    snprintf(pattern, sizeof pattern, "\"%s\":", name);
    at = strstr(from, pattern);
    if (!at)
        fail_msg("no %s in %s", name, from);
    at += strlen(pattern);
    len = *at == '"' ? strcspn(++at, "\"") : strcspn(at, ",}\n");
    assert_in_range(len, 0, sizeof value - 1);
    memcpy(value, at, len);
    value[len] = 0;
    return value;
}

static unsigned long long number(const char *from, const char *name)
{
    return strtoull(field(from, name), NULL, 10);
}

/* Bytes of a field in hex; returns how many. */
static size_t bytes(const char *from, const char *name, uint8_t *dst,
                    size_t room)
{
    const char *hex = field(from, name);
    size_t len = strlen(hex) / 2;

    assert_in_range(len, 0, room);
    for (size_t i = 0; i < len; i++) {
        unsigned byte;
        assert_int_equal(sscanf(hex + 2 * i, "%2x", &byte), 1);
        dst[i] = (uint8_t)byte;
    }
    return len;
}

/* The next of the lines that keys are on, or NULL. */
static const char *next_key(const char *at)
{
    return strstr(at, "\n{\"scope\":") ? strstr(at, "\n{\"scope\":") + 1 : NULL;
}

/* A value of JSON: where it ends, or NULL.  No deeper than inspect's. */
static const char *json_end(const char *at, int depth)
{
    char close = *at == '{' ? '}' : ']';
    int object = *at == '{';
    char *end;

    if (*at == '"') {
        while (*++at && *at != '"')
            if ((unsigned char)*at < ' ' || (*at == '\\' && !*++at))
                return NULL;
        return *at ? at + 1 : NULL;
    }
    if (strchr("tfn", *at) && *at) {
        size_t len = strspn(at, "truefalsn");
        return len == 4 || len == 5 ? at + len : NULL;
    }
    if (*at != '{' && *at != '[') {
        strtod(at, &end);
        return end > at ? end : NULL;
    }
    if (!depth)
        return NULL;
    at += 1 + strspn(at + 1, "\n");
    if (*at == close)
        return at + 1;
    for (;; at += 1 + strspn(at + 1, "\n")) {
        if (object && (*at != '"' || !(at = json_end(at, 0)) || *at++ != ':'))
            return NULL;
        at = json_end(at, depth - 1);
        if (!at || *at == close)
            return at ? at + 1 : NULL;
        if (*at != ',')
            return NULL;
    }
}

/* --------------------------------------------------------------- comparison */

/* How many of the table's keys are the one that inspect tells; the last of them
   in *e.  After damage two may be, the earlier of which should be gone. */
static unsigned same_keys(frozen *z, idem_entry *e, const char *line)
{
    uint8_t scope[255], key[255], id[255];
    size_t scope_len = bytes(line, "scope", scope, sizeof scope);
    size_t key_len = bytes(line, "key", key, sizeof key);
    idem_entry next = { .id = id, .id_size = sizeof id };
    unsigned count = 0;

    while (idem_next(&z->table, &next, 0) == IDEM_OK)
        if (next.scope_len == scope_len && next.key_len == key_len &&
            !memcmp(id, scope, scope_len) &&
            !memcmp(id + scope_len, key, key_len)) {
            *e = next;
            count++;
        }
    if (!count)
        fail_msg("inspect alone has %.*s: %s", (int)key_len, key, z->json);
    return count;
}

static void compare_outcome(frozen *z, const char *line, const idem_entry *e)
{
    uint8_t told[2048], response[2048];
    size_t len = sizeof response;

    assert_string_equal(field(line, "state"),
                        e->status == IDEM_FAILED ? "failed" : "completed");
    assert_string_equal(field(line, "undelivered"),
                        e->undelivered ? "true" : "false");
    assert_int_equal(number(line, "age_ms"), e->age_ms);
    assert_int_equal(number(line, "left_ms"), e->left_ms);
    assert_int_equal(number(line, "token"), e->claim.token);
    assert_int_equal(strtol(field(line, "code"), NULL, 10), e->code);
    assert_int_equal(number(line, "response_len"), e->response_len);
    assert_int_equal(idem_response(&z->table, response, &len, &e->claim, 0),
                     IDEM_OK);
    assert_int_equal(bytes(line, "response", told, sizeof told), len);
    assert_memory_equal(told, response, len);
}

/* A key that inspect tells, in every detail as the table has it. */
static void compare_key(frozen *z, const char *line, const idem_entry *e)
{
    const char *state;

    assert_int_equal(number(line, "attempts"), e->attempts);
    assert_int_equal(strtoull(field(line, "fingerprint"), NULL, 16),
                     e->fingerprint);
    if (e->status != IDEM_IN_PROGRESS) {
        compare_outcome(z, line, e);
        return;
    }
    state = field(line, "state");
    assert_true(!strcmp(state, "cut") || !strcmp(state, "in progress"));
    if (strcmp(field(line, "response_len"), "null"))
        assert_int_equal(number(line, "response_len"), e->response_len);
    else
        assert_int_equal(e->response_len, z->config.response_max);
}

static void compare_state(frozen *z)
{
    uint8_t told[256], state[256];
    size_t len = sizeof state;

    assert_int_equal(idem_state(&z->table, state, &len), IDEM_OK);
    assert_int_equal(number(z->json, "state_len"), len);
    assert_int_equal(bytes(z->json, "state", told, sizeof told), len);
    assert_memory_equal(told, state, len);
}

/* All that inspect tells, and that it tells all. */
static void compare(frozen *z)
{
    idem_entry e = { .id = NULL };
    const char *line = z->json, *end = json_end(z->json, 3);
    unsigned count = 0;

    assert_int_equal(z->opened, IDEM_OK);
    if (!end || strcmp(end, "\n"))
        fail_msg("not JSON: %s", z->json);
    while ((line = next_key(line)) != NULL) {
        unsigned same = same_keys(z, &e, line);
        if (same == 1)
            compare_key(z, line, &e);
        else
            assert_int_equal(z->status, DAMAGED);
        count += same;
    }
    memset(&e, 0, sizeof e);
    while (idem_next(&z->table, &e, 0) == IDEM_OK)
        count--;
    // A key whose end was damaged the table may still have: inspect drops it if
    // it was claimed again.
    if (count && z->status != DAMAGED)
        fail_msg("the table has %d keys more: %s", -(int)count, z->json);
    compare_state(z);
}

/* ---------------------------------------------------------------- histories */

static unsigned any(device *d, unsigned below)
{
    return dice(&d->seed) % below;
}

static void complete_anyhow(device *d, const idem_claim *claim)
{
    uint8_t text[RESPONSES];
    idem_outcome out = { .response = text };

    for (unsigned i = 0; i < sizeof text; i++)
        text[i] = (uint8_t)any(d, 256);
    out.response_len = any(d, d->f.config.response_max + 1u);
    out.failed = any(d, 4) == 0;
    out.confirm = any(d, 3) == 0;
    out.code = any(d, 2) ? (int32_t)dice(&d->seed) : 0;
    if (any(d, 3) == 0) {
        out.state = text + 1;
        out.state_len = any(d, d->f.config.state_max + 1u);
    }
    idem_complete(&d->f.table, claim, &out, d->now);
}

/* One call of some kind; claims are kept, to be completed late or never. */
static void anything(device *d, idem_claim *claims)
{
    static const uint32_t retentions[] = { 0, 0, 0, 300, 5000 };
    unsigned key = any(d, KEYS), what = any(d, 100);
    idem_request rq = device_request(d, key);
    idem_reply reply = { .buffer = NULL };
    idem_claim claim;
    idem_entry e = { .id = NULL };
    int result;

    d->now += any(d, 8) ? any(d, 20) : any(d, 400);
    if (what < 45) {
        rq.retention_ms = retentions[any(d, COUNT(retentions))];
        rq.response_size = any(d, 2) ? 0 : d->f.config.response_max;
        result = idem_begin(&d->f.table, &claim, &reply, &rq, d->now);
        if (result == IDEM_EXECUTE || result == IDEM_RECOVER)
            claims[key] = claim;
    } else if (what < 75) {
        complete_anyhow(d, &claims[key]);
    } else if (what < 80) {
        idem_release(&d->f.table, &claims[key], d->now);
    } else if (what < 84) {
        idem_forget(&d->f.table, &rq, d->now);
    } else if (what < 88) {
        if (idem_pending(&d->f.table, &e, d->now) == IDEM_OK)
            idem_delivered(&d->f.table, &e.claim);
    } else if (what < 90) {
        idem_renew(&d->f.table, &claims[key], 500, d->now);
    } else if (what < 91) {
        idem_elapse(&d->f.table, any(d, 100));
    } else if (what < 93) {
        idem_sync(&d->f.table);
    } else {
        idem_maintain(&d->f.table, d->now);
    }
}

/* Power goes in some operation, torn somehow. */
static void arm(device *d)
{
    d->medium.draws = 2;
    flash_cut(&d->medium, any(d, 40), any(d, 9));
}

/* An image that nothing has damaged is sound, whatever a cut has left in it.
   False if nothing was ever committed. */
static int look_at_sound(device *d)
{
    frozen z;
    int committed;

    frozen_open(&z, d, photograph(d));
    compare(&z);
    assert_int_equal(z.table.stats.lost, 0);
    if (z.status != SOUND)
        fail_msg("sound, but exit status %d: %s", z.status, z.json);
    committed = strcmp(field(z.json, "verdict"), "blank") != 0;
    frozen_close(&z);
    looks++;
    return committed;
}

/* Somewhere in the image, rather not where it is blank. */
static uint32_t somewhere(device *d, const uint8_t *image)
{
    uint32_t at = 0;

    for (int tries = 200; tries; tries--) {
        at = any(d, d->medium.size);
        if (image[at] != d->medium.erased)
            break;
    }
    return at;
}

/* With a flipped bit in some sectors both still tell the same, and what is a
   loss to the table is damage to inspect; but for what is longer than one
   record, where nothing follows: how long that is no other reader knows. */
static void look_at_damaged(device *d)
{
    uint8_t *image = photograph(d);
    uint32_t at = somewhere(d, image), size = d->medium.sector_size;
    frozen z;

    image[at] ^= (uint8_t)(1u << any(d, 8));
    for (uint32_t before = at; any(d, 2); before = at)
        if ((at = somewhere(d, image)) / size > before / size)
            image[at] ^= (uint8_t)(1u << any(d, 8));
        else
            at = before;
    frozen_open(&z, d, image);
    // A single record may be the damaged one, and say with which check it is
    // right: nothing else tells inspect, which does not know the secret.
    if (z.opened == IDEM_OK && number(z.json, "records_for_it") > 1) {
        compare(&z);
        if (z.table.stats.lost && z.status != DAMAGED &&
            number(z.json, "tail") < 64)
            fail_msg("%lu lost, but exit status %d: %s",
                     (unsigned long)z.table.stats.lost, z.status, z.json);
        losses += z.table.stats.lost != 0;
    }
    frozen_close(&z);
}

static void look(device *d)
{
    if (look_at_sound(d))
        look_at_damaged(d);
}

static void live_through(device *d, const geometry *g, unsigned which)
{
    idem_claim claims[KEYS];

    memset(claims, 0, sizeof claims);
    d->f.config.full = which % 4 == 1 || which % 8 == 7 ? IDEM_EVICT_OLDEST
                                                        : IDEM_REJECT;
    d->f.config.in_ram = d->f.config.volatile_claims = which % 4 == 3;
    d->f.config.durability = which % 4 == 2 ? IDEM_BATCH : IDEM_EACH;
    assert_true(device_medium(d, g));
    if (g->kind == FLASH_INPLACE && !g->no_sync)
        device_cache(d);
    d->seed = flash_mix(which + 7919u) | 1;
    assert_int_equal(device_open(d), IDEM_OK);
    arm(d);
    for (unsigned step = 0; step < STEPS; step++) {
        anything(d, claims);
        if (!d->medium.off && any(d, 60))
            continue;
        if (d->medium.off || any(d, 2)) {
            flash_boot(&d->medium);
            look(d);
            d->now = dice(&d->seed);
            assert_int_equal(device_open(d), IDEM_OK);
            memset(claims, 0, sizeof claims);
            arm(d);
        } else {
            look(d);
        }
    }
}

static const geometry geometries[] = {
    { "odd",     FLASH_NOR,     1,   521,  0, 0xA7, 0, 0, 0 },
    { "eeprom4", FLASH_INPLACE, 4,   512,  0, 0xFF, 0, 0, 0 },
    { "nor1",    FLASH_NOR,     1,   512,  0, 0xFF, 0, 0, 0 },
    { "nor256",  FLASH_NOR,     256, 4096, 0, 0x00, 0, 0, 0 },
    { "nor8",    FLASH_NOR,     8,   1024, 0, 0xFF, 0, 0, 1 },
    { "nor64",   FLASH_NOR,     64,  2048, 0, 0xFF, 0, 0, 0 },
    { "nor16",   FLASH_NOR,     16,  1024, 0, 0x00, 0, 0, 0 },
    { "fram",    FLASH_INPLACE, 1,   512, 40, 0x5A, 0, 0, 1 },
    { "file",    FLASH_INPLACE, 1,   4096, 0, 0x00, 0, 0, 0 },
};

static void inspect_tells_what_the_table_tells(void **state)
{
    device *d = (device *)*state;

    unsigned histories = getenv("HISTORIES") ? (unsigned)atoi(
                                                   getenv("HISTORIES")) : 4;

    d->f.config.capacity = 9;
    for (unsigned i = 0; i < COUNT(geometries); i++)
        for (unsigned which = 0; which < histories; which++)
            live_through(d, &geometries[i], which);
    print_message("%u looks, %u losses\n", looks, losses);
}

static void expect(const char *arguments, int status, const char *text)
{
    int got;
    char *said = run_inspect(arguments, &got);

    if (got != status || !strstr(said, text))
        fail_msg("inspect %s: %d, %s", arguments, got, said);
    free(said);
}

static void foreign_and_blank_are_told_apart(void **state)
{
    uint8_t *image = (uint8_t *)malloc(16384);

    (void)state;
    assert_non_null(image);
    for (int value = 0; value < 256; value += 85) {
        memset(image, value, 16384);
        write_image(image, 16384);
        expect("--json", SOUND, "\"verdict\":\"blank\"");
    }
    image[5000] = 1;
    write_image(image, 16384);
    expect("--json", NO_JOURNAL, "not a journal");
    write_image(image, 0);
    expect("", NO_JOURNAL, "not a journal");
    write_image("idem, but only in name, and much too short", 40);
    expect("", NO_JOURNAL, "not a journal");
    expect("--unknown", NO_JOURNAL, "usage");
    expect("--granule x", NO_JOURNAL, "usage");
    free(image);
}

#ifdef IDEM_FILE_STORAGE
/* A file of IDEM_FILE_STORAGE, while its owner has it open. */
static void a_file_in_use_is_read(void **state)
{
    device *d = (device *)*state;
    char path[300];
    idem_file file;
    idem_claim claim;

    snprintf(path, sizeof path, "%sinspect.image", beside);
    remove(path);
    assert_int_equal(idem_file_open(&file, path, 4096, 8), IDEM_OK);
    d->f.config.storage = &file.storage;
    assert_int_equal(device_open(d), IDEM_OK);
    expect("--json", SOUND, "\"verdict\":\"blank\"");
    assert_int_equal(ask(&d->f, "open", 0), IDEM_EXECUTE);
    assert_int_equal(ask(&d->f, "done", 0), IDEM_EXECUTE);
    claim = d->f.claim;
    d->f.outcome.code = -7;
    d->f.outcome.confirm = 1;
    assert_int_equal(complete(&d->f, &claim, "poured", 70), IDEM_OK);
    expect("", SOUND, "in progress");
    expect("--json", SOUND, "\"erased\":0}");
    expect("--hex --retention 1000", SOUND,
           "completed   owed    1          0.0          1.0      6      -7  "
           "panel done\n    706f75726564\n");
    // A restart cuts short what was in progress, once something is written.
    assert_int_equal(device_open(d), IDEM_OK);
    assert_int_equal(ask(&d->f, "next", 100), IDEM_EXECUTE);
    expect("", SOUND, "cut");
    assert_int_equal(idem_file_close(&file), IDEM_OK);
}
#endif

/* A header has a copy so that a flipped bit costs nothing: it is told all the
   same, wherever it is. */
static void a_flipped_bit_in_a_header_is_told(void **state)
{
    static const geometry g = { "g", FLASH_NOR, 8, 512, 8, 0xFF, 0, 0, 0 };
    device *d = (device *)*state;
    uint8_t *image;

    assert_true(device_medium(d, &g));
    assert_int_equal(device_open(d), IDEM_OK);
    assert_int_equal(ask(&d->f, "k", 0), IDEM_EXECUTE);
    image = photograph(d);
    for (unsigned bit = 0; bit < 2 * 40 * 8; bit += 7) {
        image[bit / 8] ^= (uint8_t)(1u << bit % 8);
        write_image(image, d->medium.size);
        expect("", DAMAGED, "panel k");
        expect("--json", DAMAGED,
               bit < 40 * 8 ? "\"header\",\"sector\":0,\"at\":0,\"len\":40}"
                            : "copy\",\"sector\":0,\"at\":40,\"len\":40}");
        image[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    free(image);
}

/* A journal somewhere in a larger dump, and one whose end is missing. */
static void a_part_of_a_dump_is_read(void **state)
{
    static const geometry g = { "g", FLASH_NOR, 8, 512, 8, 0xFF, 0, 0, 0 };
    device *d = (device *)*state;
    uint8_t *dump, *image;

    assert_true(device_medium(d, &g));
    assert_int_equal(device_open(d), IDEM_OK);
    assert_int_equal(ask(&d->f, "k", 0), IDEM_EXECUTE);
    image = photograph(d);
    dump = (uint8_t *)calloc(1, d->medium.size + 2000);
    assert_non_null(dump);
    memcpy(dump + 1000, image, d->medium.size);
    write_image(dump, d->medium.size + 2000);
    expect("", NO_JOURNAL, "not a journal");
    expect("--offset 1000", SOUND, "panel k");
    expect("--offset 1000 --granule 16", NO_JOURNAL, "not a journal");
    write_image(image, d->medium.size - 1);
    expect("", DAMAGED, "the image ends");
    free(dump);
    free(image);
}

/* Whatever is in an image, inspect ends by itself, with a status of its own. */
static void no_image_is_too_much(void **state)
{
    static const geometry g = { "g", FLASH_NOR, 1, 512, 8, 0xFF, 0, 0, 0 };
    device *d = (device *)*state;
    idem_claim claims[KEYS] = { { 0, 0, 0 } };
    uint8_t *image;

    assert_true(device_medium(d, &g));
    assert_int_equal(device_open(d), IDEM_OK);
    for (unsigned i = 0; i < 60; i++)
        anything(d, claims);
    image = photograph(d);
    for (unsigned round = 0; round < 300; round++) {
        uint8_t *copy = photograph(d), *header;
        uint32_t crc;
        int status;
        for (unsigned i = any(d, 60); i; i--)
            copy[somewhere(d, copy)] = (uint8_t)dice(&d->seed);
        // A header that validates, and says what it should not.
        header = copy + any(d, d->medium.sector_count) * 512 + any(d, 2) * 40;
        memcpy(header, image, 40);
        for (unsigned i = 1 + any(d, 3); i; i--)
            header[5 + any(d, 31)] = (uint8_t)dice(&d->seed);
        crc = idemi_crc_update(UINT32_MAX, header, 36);
        for (unsigned i = 0; i < 4; i++)
            header[36 + i] = (uint8_t)(crc >> 8 * i);
        write_image(copy, d->medium.size);
        free(run_inspect(any(d, 2) ? "--json --hex" : "--hex", &status));
        assert_in_range(status, SOUND, NO_JOURNAL);
        free(copy);
    }
    free(image);
}

#define DEVICE_TEST(name)                                                      \
    cmocka_unit_test_setup_teardown(name, device_setup, device_teardown)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        DEVICE_TEST(inspect_tells_what_the_table_tells),
        DEVICE_TEST(foreign_and_blank_are_told_apart),
#ifdef IDEM_FILE_STORAGE
        DEVICE_TEST(a_file_in_use_is_read),
#endif
        DEVICE_TEST(a_flipped_bit_in_a_header_is_told),
        DEVICE_TEST(a_part_of_a_dump_is_read),
        DEVICE_TEST(no_image_is_too_much),
    };

    if (argc && strrchr(argv[0], '/'))
        snprintf(beside, sizeof beside, "%.*s/",
                 (int)(strrchr(argv[0], '/') - argv[0]), argv[0]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
