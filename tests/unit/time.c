/* SPDX-License-Identifier: 0BSD */
/*
 * Shows S6 where it takes long: retentions of every length, and years in which
 * nobody looks.  The other stories of time are in clock.c.
 */
#include "fixture.h"

#define DAY  UINT32_C(86400000)
#define HOUR UINT32_C(3600000)
#define HALF UINT32_C(0x80000000)       // of the tick's range

static const uint32_t strides[] = {
    HOUR, 7 * HOUR + 1, DAY, UINT32_C(0x10000000), UINT32_C(0x20000000),
    24 * DAY, HALF - 1,
};

/* What becomes of a key that nobody looks at, `count` times `stride` later. */
static void assert_fate(fixture *f, uint32_t lease, uint32_t retention,
                        uint32_t stride, int count)
{
    uint64_t ms = 0;
    int found;

    f->request.lease_ms = lease ? lease : 1;
    f->request.retention_ms = retention;
    fixture_open(f, 0);
    if (lease)
        is(ask(f, "k", 0), IDEM_EXECUTE);
    else
        (void)finish(f, "panel", "k", 0);
    for (; count > 0; count--, ms += stride)
        is(elapse(f, stride), IDEM_OK);
    found = find(f, "panel", "k", 0);
    is(found, ms < (uint64_t)lease + retention ? IDEM_OK : IDEM_E_NOT_FOUND);
    if (ms < lease)
        is(f->entry.left_ms, lease - ms);
    else
        assert_true(!lease || f->entry.left_ms == 0);
}

TEST(s4_s6_what_nobody_looks_at_for_years_is_not_resurrected)
{
    static const struct { uint32_t lease, retention; } keys[] = {
        { 0, 1 },                       // finished
        { 0, DAY },
        { 0, IDEM_RETENTION_MAX },
        { 1, 1 },                       // abandoned
        { 1, IDEM_RETENTION_MAX },
        { IDEM_LEASE_MAX, 1 },
        { IDEM_LEASE_MAX, IDEM_RETENTION_MAX },
    };

    for (size_t i = 0; i < COUNT(keys); i++)
        for (size_t j = 0; j < COUNT(strides); j++)
            for (int count = 0; count < 40; count++)
                assert_fate(f, keys[i].lease, keys[i].retention, strides[j],
                            count);
}

TEST(a_retention_of_any_length_ends_to_the_millisecond)
{
    uint32_t seed = 5;

    for (int i = 0; i < 5000; i++) {
        uint32_t ms = 1 + (dice(&seed) >> i % 32) % IDEM_RETENTION_MAX;
        if (i == 0)
            ms = IDEM_RETENTION_MAX;
        f->request.retention_ms = ms;
        fixture_open(f, 0);
        (void)finish(f, "panel", "k", 0);
        is(find(f, "panel", "k", 0), IDEM_OK);
        is(f->entry.left_ms, ms);
        is(elapse(f, ms - 1), IDEM_OK);
        is(ask(f, "k", 0), IDEM_REPLAY);
        is(ask(f, "k", 1), IDEM_EXECUTE);
    }
}
