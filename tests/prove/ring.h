/* SPDX-License-Identifier: 0BSD */
/* The medium of calls.c with RING: the journal in a ring of sectors.  Reading
 * gives any bytes, each time others: so whatever image there is, also one that
 * was forged, and torn and worn sectors.  Any callback may fail at any call; a
 * read that does has set its bytes, or none.
 *
 * As few sectors as the capacity takes, each of six granules behind its
 * headers; the memory is the least there may be, so what was read moves.
 */
enum { GRANULE = 64, SHIFT = 9, SECTOR = 1 << SHIFT,
       SECTORS = CAPACITY == 1 ? 5 : 7, SIZE = SECTORS * SECTOR };

/* Where records begin, and where one may be */
enum { FRONT = 2 * GRANULE, WHOLE = SECTOR / GRANULE };
#define BODIES IN_RAM
#define MEDIUM_ANY ring_any
#define IS_ADDRESS(a) ((a) < SIZE && (a) % GRANULE == 0)

/* Sectors that there are, but for a head that is full: what is put together to
   stand behind the last is checked as if in the next, and not written. */
#ifdef APPEND
enum { EVA_SECTORS = SECTORS + 1 };
#else
enum { EVA_SECTORS = SECTORS };
#endif

/* Runs in which these differ are not mixed (-eva-partition-value).  The header
   neither reads nor knows them: ring.txt says where they are set in the copy
   that is analysed. */
static uint32_t
    eva_valid, eva_first,       /* that a header is one; the first of two */
    eva_pair,                   /* which of them counts, if one; 3: there is a
                                   head */
    eva_record,                 /* which parts the record has that was taken
                                   apart, and its slot; 0: none was */
    eva_slots,                  /* which slots are free, claimed, or else */
    eva_index, eva_late,        /* which are in the index, and to come there */
    eva_over, eva_was,          /* that the slot is; what it was (called.h) */
    eva_found;                  /* that the key that is asked for has one */

/* What a medium may rely on */
/*@ requires inside: at < SIZE && len <= SECTOR - at % SECTOR;
    requires room: \valid((char *)dst + (0 .. len - 1));
    assigns ((char *)dst)[0 .. len - 1] \from \nothing;
    ensures \initialized((char *)dst + (0 .. len - 1)); */
void ring_any(uint32_t at, void *dst, uint32_t len);

static int ring_read(void *ctx, uint32_t at, void *dst, uint32_t len)
{
    (void)ctx;
    if (below(2))
        return 1;
    ring_any(at, dst, len);
    return (int)below(2);
}

/* What any header may have left of a sector; how far back it points is the
   caller's. */
static void any_sector(idem_sector *s)
{
    s->sequence = any();
    s->time = any();
    s->end = any();
    s->time_high = (uint16_t)any();
    s->known = any_byte();
}

#ifdef WRITER
/*@ requires inside: at < SIZE && len <= SECTOR - at % SECTOR;
    requires granules: at % GRANULE == 0 && len % GRANULE == 0;
    requires set: \initialized((char *)src + (0 .. len - 1));
    assigns \nothing; */
void ring_keep(uint32_t at, const void *src, uint32_t len);

static int ring_prog(void *ctx, uint32_t at, const void *src, uint32_t len)
{
    (void)ctx;
    ring_keep(at, src, len);
    return (int)any();
}

static int ring_erase(void *ctx, uint32_t sector)
{
    (void)ctx;
    //@ assert sector < SECTORS;
    (void)sector;
    return (int)any();
}

/* Finished, not yet or failed.  More than 1 would be failed too; but there is
   no interval of all numbers without 1. */
static int ring_erasing(void *ctx)
{
    (void)ctx;
    switch (any()) {
    case 0:  return 0;
    case 1:  return 1;
    default: return -1 - (int)(any() >> 1);
    }
}

static int ring_sync(void *ctx)
{
    (void)ctx;
    return (int)any();
}
#else
/* Opening writes nothing. */
/*@ requires \false; */
int ring_prog(void *ctx, uint32_t at, const void *src, uint32_t len);
/*@ requires \false; */
int ring_erase(void *ctx, uint32_t sector);
/*@ requires \false; */
int ring_erasing(void *ctx);
/*@ requires \false; */
int ring_sync(void *ctx);

#endif

static idem_storage ring = {
    .read = ring_read, .prog = ring_prog, .erase = ring_erase,
    .erasing = ring_erasing, .sync = ring_sync,
    .sector_size = SECTOR, .sector_count = SECTORS, .prog_size = GRANULE };

#if IN_RAM
static uint32_t memory[IDEM_JOURNAL_IN_RAM_MEMORY_SIZE(
    CAPACITY, KEY_MAX, RESPONSE_MAX, STATE_MAX, SECTORS, GRANULE) / 4];
#else
static uint32_t memory[IDEM_JOURNAL_MEMORY_SIZE(
    CAPACITY, KEY_MAX, RESPONSE_MAX, STATE_MAX, SECTORS, GRANULE) / 4];
#endif
enum { IN_SIZE = 2 * IDEMI_ROUND4(IDEMI_RECORD_FIXED + KEY_MAX + RESPONSE_MAX +
                                  STATE_MAX + GRANULE) };

/* What stands in the copy that is analysed for functions of the header
   (ring.txt; replay.h) */
#ifdef RECORDS
struct idemi_late;
static uint32_t given(idem_table *t, uint32_t at, const unsigned char *start,
                      const unsigned char *p, uint32_t have);
static void enter_later(idem_table *t, struct idemi_late *late);
static void apply_later(idem_table *t, uint32_t at, struct idemi_late *late);
static void newest_later(idem_table *t, uint32_t at, const unsigned char *p,
                         uint32_t len);
#endif
#ifdef WRITER
static int fetched_or_not(idem_table *t, unsigned slot, uint32_t at,
                          uint32_t where);
#endif
#ifdef CALLED
struct idemi_parts;
static int loaded_or_not(idem_table *t, unsigned slot, int outcome);
static int appended_or_not(idem_table *t, const struct idemi_parts *from,
                           uint32_t *address);
static int header_or_not(idem_table *t, unsigned copy, unsigned flags,
                         uint32_t back, uint32_t end);
static int used_or_not(idem_table *t, uint32_t sector, uint32_t at);
static int carried_or_not(idem_table *t);
static int reserved_or_not(idem_table *t, uint32_t len, uint32_t outcomes);
static int room_or_not(idem_table *t, uint32_t len);
static int maintained_or_not(idem_table *t);
#endif
#if defined REPLAY || defined ENTER
struct idemi_late;
static int same_or_not(idem_table *t, unsigned slot,
                       const struct idemi_late *key);
#endif
#ifdef REPLAY
static void eva_slots_of(const idem_table *t);
static int any_headers(idem_table *t, int *seen);
static uint32_t any_records(idem_table *t, uint32_t sector, uint32_t limit,
                            int head);
#elif defined CALLED
static void eva_slots_of(const idem_table *t);
#else
static void eva_slots_of(const idem_table *t)
{
    (void)t;
}
#endif
