/* SPDX-License-Identifier: 0BSD */
#include "line.h"
#include "host.h"
#include <string.h>

static int happens(line *l, uint32_t percent)
{
    return host_random(&l->seed, 100) < percent;
}

/* Turns a bit over, or loses a byte, or makes one up. */
static void corrupt(line *l, line_frame *f)
{
    uint32_t at = host_random(&l->seed, (uint32_t)f->len);
    uint8_t *byte = f->bytes + at;

    switch (host_random(&l->seed, 3)) {
    case 0:
        *byte ^= (uint8_t)(1u << host_random(&l->seed, 8));
        break;
    case 1:
        memmove(byte, byte + 1, f->len - at - 1);
        f->len--;
        break;
    default:
        memmove(byte + 1, byte, f->len - at);
        *byte = (uint8_t)host_random(&l->seed, 256);
        f->len++;
    }
}

/* A queue that is full loses, as a UART does. */
static void enqueue(line *l, const line_frame *f, uint32_t due)
{
    line_frame *to;

    if (l->queued == LINE_QUEUE) {
        l->lost++;
        return;
    }
    to = &l->queue[l->queued++];
    *to = *f;
    to->due = due;
    if (happens(l, l->rates.corrupt)) {
        l->corrupted++;
        corrupt(l, to);
    }
}

static void take_frame(line *l, uint32_t now)
{
    const line_frame *f = &l->coming;
    uint32_t due = now;

    l->frames++;
    if (happens(l, l->rates.lose)) {
        l->lost++;
        return;
    }
    if (happens(l, l->rates.delay))
        due += 1 + host_random(&l->seed, LINE_DELAY_MS);
    enqueue(l, f, due);
    if (happens(l, l->rates.repeat)) {
        l->repeated++;
        enqueue(l, f, due + host_random(&l->seed, LINE_LATE_MS));
    }
}

void line_take(line *l, const uint8_t *bytes, size_t len, uint32_t now)
{
    line_frame *f = &l->coming;
    size_t i;

    for (i = 0; i < len; i++) {
        f->bytes[f->len++] = bytes[i];
        // The zero in front of a frame belongs to it.
        if ((bytes[i] != 0 || f->len == 1) && f->len < LINE_CHUNK)
            continue;
        take_frame(l, now);
        f->number++;
        f->len = 0;
    }
}

/* The first of those that are due, or LINE_QUEUE */
static unsigned first_due(const line *l, uint32_t now)
{
    unsigned i, first = LINE_QUEUE;

    for (i = 0; i < l->queued; i++) {
        const line_frame *f = &l->queue[i];

        if ((int32_t)(now - f->due) < 0)
            continue;
        if (first == LINE_QUEUE ||
            (int32_t)(f->due - l->queue[first].due) < 0 ||
            (f->due == l->queue[first].due &&
             f->number < l->queue[first].number))
            first = i;
    }
    return first;
}

static int until_next(const line *l, uint32_t now)
{
    int32_t wait = 1000;
    unsigned i;

    for (i = 0; i < l->queued; i++)
        if ((int32_t)(l->queue[i].due - now) < wait)
            wait = (int32_t)(l->queue[i].due - now);
    return wait;
}

int line_deliver(line *l, int fd, uint32_t now)
{
    unsigned i;

    while ((i = first_due(l, now)) != LINE_QUEUE) {
        line_frame *f = &l->queue[i];

        if (!host_write(fd, f->bytes, f->len))
            l->lost++;
        if (f->number < l->newest)
            l->overtaken++;
        else
            l->newest = f->number;
        *f = l->queue[--l->queued];
    }
    return until_next(l, now);
}
