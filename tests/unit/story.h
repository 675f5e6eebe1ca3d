/* SPDX-License-Identifier: 0BSD */
/*
 * Stories: what a table promises as lines of calls, with what each must answer
 * where that is not left to the model (tests/model/call.h).  A story is a test
 * of its own, told on each kind of medium; or once, in RAM.
 *
 *     { "what it shows", "modes Ba:execute Ca:ok P Ba:replay" }
 *
 * "times=9" in front tells the rest of the line nine times.
 * In "%1,at=@,how=#" (a program fails) # stands for 0 to 2, @ for 0 to 11, one
 * after the other.
 *
 * With bars, "before | cut | after", the middle is cut in each of its storage
 * operations, in at most some twenty variants of each, and `after` is told
 * after the restart.  In the end all is as the model has it, also after one
 * restart more.
 */
#ifndef STORY_H
#define STORY_H

#include "unit.h"

#include "../model/call.h"
#include "media.h"

enum { STORY_KEYS = 20, LEASE = 100, RETENTION = 100000 };
enum { KEY_MAX = 16, RESPONSE_MAX = 24, STATE_MAX = 6 };

typedef struct story {
    const char *name, *line;
} story;

static device the;
static known keys[100];
static unsigned story_keys = STORY_KEYS;
static const medium *on;
static const story *told_story;

static void broken(const char *what, const char *file, int line)
{
    print_error("%s:%d: %s\non %s: %s\n", file, line, what, on->name,
                told_story->line);
    device_tell(&the);
    fail();
    abort();
}

/* Makes a device of a medium, with the modes of a line; returns the rest. */
static const char *story_device(const char *line, unsigned *times)
{
    idem_config *c = &the.config;
    uint32_t sectors;

    *times = 1;
    if (sscanf(line, "times=%u", times) == 1)
        line += strcspn(line, " ");
    memset(&the, 0, sizeof the);
    numbered_own.number = 0;
    the.flags = on->flags | (on == &zeros ? SPLIT : 0);
    the.scopes = 2;
    the.polls = 2;
    the.medium.kind = on->kind;
    the.storage.sector_size = on->sector_size;
    the.storage.prog_size = on->granule;
    the.storage.erased = on->erased;
    c->capacity = 8;
    c->key_max = KEY_MAX;
    c->response_max = RESPONSE_MAX;
    c->state_max = STATE_MAX;
    c->lease_ms = LEASE;
    c->retention_ms = RETENTION;
    memcpy(c->secret, SECRET, sizeof c->secret);
    c->storage = &the.storage;
    line = call_modes(&the, line);
    sectors = device_sectors(&the);
    assert_int_not_equal(sectors, 0);
    if (the.storage.sector_count < sectors)
        the.storage.sector_count = sectors;
    device_make(&the, keys, story_keys);
    the.medium.watch = NULL;            // a cut's variant is said
    the.medium.draws = 2;
    the.now = UINT32_MAX - 5;
    device_open(&the);
    return line;
}

/* The part of a line up to a bar or its end; returns what is behind it. */
static const char *story_part(char *part, const char *line)
{
    size_t len = strcspn(line, "|");

    assert_true(len < 500);
    memcpy(part, line, len);
    part[len] = 0;
    return line + len + (line[len] != 0);
}

static void story_end(void)
{
    call_line(&the, "? P ? Bt ?");
    is(the.lost, 0);
    device_end(&the);
}

/* Tells it with a cut; returns how many variants there are of that operation,
   0: there are fewer operations. */
static uint32_t tell_cut(const story *s, uint32_t operation, uint32_t variant)
{
    char part[500];
    unsigned times;
    const char *line = story_part(part, story_device(s->line, &times));
    uint32_t variants;

    call_line(&the, part);
    line = story_part(part, line);
    flash_cut(&the.medium, operation, variant);
    call_line(&the, part);
    variants = the.medium.off ? the.medium.variants : 0;
    call_line(&the, "P ?");
    call_line(&the, line);
    story_end();
    return variants;
}

/* Tells it with a cut in each operation. */
static void tell_cuts(const story *s)
{
    uint32_t count = 1;

    for (uint32_t n = 0; count; n++)
        for (uint32_t v = 0, step = 1; v < count || !v; v += step) {
            count = tell_cut(s, n, v);
            step = 1 + count / 20;
        }
}

/* A copy of a line in which the digits stand that are wanted. */
static const char *filled(const char *line, unsigned how, unsigned at)
{
    static char text[1000];
    size_t len = 0;

    for (; *line && len < sizeof text - 3; line++)
        if (*line == '@')
            len += (size_t)sprintf(text + len, "%u", at);
        else
            text[len++] = (char)(*line == '#' ? '0' + (int)how : *line);
    text[len] = 0;
    return text;
}

static void tell_whole(const char *line)
{
    unsigned times;

    for (line = story_device(line, &times); times > 0; times--)
        call_line(&the, line);
    story_end();
}

static void tell(void **state)
{
    const story *s = told_story = (const story *)*state;
    unsigned hows = strchr(s->line, '#') ? 3 : 1;
    unsigned ats = strchr(s->line, '@') ? 12 : 1;

    for (size_t m = 0; m < COUNT(media); m++) {
        on = media[m];
        if (strchr(s->line, '|'))
            tell_cuts(s);
        else
            for (unsigned n = 0; n < hows * ats; n++)
                tell_whole(filled(s->line, n % hows, n / hows));
        if (!the.config.storage)
            return;                     // no medium matters
    }
}

/* Each is a test of its name. */
static inline void tell_all(const story *stories, size_t count)
{
    for (size_t i = 0; i < count; i++)
        test_add(stories[i].name, tell, NULL, NULL, &stories[i]);
}

#endif /* STORY_H */
