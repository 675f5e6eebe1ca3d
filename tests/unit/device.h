/* SPDX-License-Identifier: 0BSD */
/*
 * A device of a story (story.h) on which a test does what no call does: damages
 * its medium, lets callbacks fail where a program stood, counts.  A line goes
 * on where the one before ended:
 *
 *     device *d = device_on(&nor, "Ba Ca Bb Cb");
 *     damage(newest().at, newest().len, ANYTHING);
 *     say("P l1 Ba:replay Bb:recover");
 *
 * Behind damage the model knows nothing but the outcomes that a key has had:
 * what a line does not say must be execute or ok.
 *
 * Uses what idem.h promises and the medium's calls, nothing else: where a
 * record is, is known from the program that wrote it.
 */
#ifndef DEVICE_STORY_H
#define DEVICE_STORY_H

#include "story.h"


enum { DEVICE_KEYS = 96 };          // the last one is K's

// A program or an erase, as it was asked for.
typedef struct operation {
    int call;
    uint32_t at, len;
} operation;

// What the latest call did that wrote.
static struct {
    uint32_t call, count, header_len;
    operation of[512];
} wrote;

static uint32_t dead_at, dead_len;  // bytes that cannot be read
static char said[500];              // for broken()
static story said_as = { "", said };

// A medium as it was, to be damaged once more.
static struct { flash medium; void *memory; } saved;

static void device_watch(void *arg, const flash *f, const flash_op *op)
{
    if (op->call == FLASH_SYNC)
        return;
    if (wrote.call != ((device *)arg)->model.calls)
        wrote.count = 0;
    wrote.call = ((device *)arg)->model.calls;
    if (op->call == FLASH_PROG && op->at % f->sector_size == 0)
        wrote.header_len = op->len;
    if (wrote.count < COUNT(wrote.of))
        wrote.of[wrote.count++] = (operation){ op->call, op->at, op->len };
}

static int device_read_alive(void *ctx, uint32_t at, void *dst, uint32_t len)
{
    int result = device_read(ctx, at, dst, len);

    if (at >= dead_at + dead_len || dead_at >= at + len)
        return result;
    memset(dst, 0x5A, len);
    return 77;
}

/* The test's device, anew, on such a medium; its modes and first calls. */
static device *device_on(const medium *m, const char *line)
{
    unsigned times;

    device_end(&the);
    memset(&wrote, 0, sizeof wrote);
    dead_len = 0;
    on = m;
    told_story = &said_as;
    story_keys = DEVICE_KEYS;
    snprintf(said, sizeof said, "%s", line);
    line = story_device(line, &times);
    the.medium.watch = device_watch;
    the.storage.read = device_read_alive;
    call_line(&the, line);
    return &the;
}

static inline void say(const char *line)
{
    snprintf(said, sizeof said, "%s", line);
    call_line(&the, line);
}

/* .. in which @ is a number. */
static inline void say_of(const char *line, unsigned n)
{
    say(filled(line, 0, n));
}

/* A call; what it answers, which may be anything. */
static inline int answer(char what, unsigned key)
{
    call c = call_of(what, key);

    return call_table(&the, &c);
}

/* The power goes and comes; what the opening answers. */
static inline int reopen(void)
{
    the.damaged = 1;
    return call_restart(&the, 0);
}

static int device_setup(void **state)
{
    (void)state;
    memset(&the, 0, sizeof the);
    return 0;
}

static int device_teardown(void **state)
{
    (void)state;
    device_end(&the);
    free(saved.memory);
    saved.memory = NULL;
    return 0;
}

#undef TEST
#define TEST(name) TEST_WITH(name, device_setup, device_teardown, void, )

/* ------------------------------------------------------------ what it wrote */

/* The program that was done last: that of the newest record, if the call did
   not turn. */
static inline operation newest(void)
{
    assert_int_not_equal(wrote.count, 0);
    return wrote.of[wrote.count - 1];
}

/* Where the sector begins that was written to last. */
static inline uint32_t newest_sector(void)
{
    return newest().at - newest().at % the.medium.sector_size;
}

/* How many programs the latest call that wrote did before that of a header, in
   its turn: the records that it carried.  -1: it did not turn. */
static inline int carried(void)
{
    int count = 0;

    for (uint32_t i = 0; i < wrote.count; i++) {
        if (wrote.of[i].call != FLASH_PROG)
            continue;
        if (wrote.of[i].at % the.medium.sector_size == 0)
            return count;
        count++;
    }
    return -1;
}

/* ------------------------------------------------------------------- damage */

enum { ANYTHING, ZEROS, DEAD, HOWS, BLANK = HOWS };

static inline void damage(uint32_t at, uint32_t len, int how)
{
    the.damaged = 1;
    if (how == ANYTHING)
        flash_noise(&the.medium, at, len, at);
    else if (how != DEAD)
        flash_fill(&the.medium, at, len, how == ZEROS ? 0 : the.medium.erased);
    else {
        dead_at = at;
        dead_len = len;
    }
}

static inline void flip(uint32_t at, unsigned bit)
{
    the.damaged = 1;
    flash_flip(&the.medium, at, bit);
}

static inline void save(void)
{
    size_t size = FLASH_MEMORY(the.medium.sector_size, the.medium.sector_count);

    free(saved.memory);
    saved.medium = the.medium;
    saved.memory = medium_allocate(size);
    memcpy(saved.memory, the.medium.sector_erases, size);
}

static inline void load(void)
{
    the.medium = saved.medium;
    memcpy(the.medium.sector_erases, saved.memory,
           FLASH_MEMORY(the.medium.sector_size, the.medium.sector_count));
    dead_len = 0;
}

#endif /* DEVICE_STORY_H */
