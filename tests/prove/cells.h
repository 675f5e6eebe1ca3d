/* SPDX-License-Identifier: 0BSD */
/* The medium of calls.c with IDEM_CELLS, and names for what it is to keep
 * apart.  Reading gives any bytes, each time others: so whatever image there
 * is, also one that was forged, and worn and torn cells.  Any callback may fail
 * at any call; a read that does has set its bytes, or none.
 *
 * A cell more than it takes, so that one may be given up.
 */
enum { GRANULE = 4, CELLS = CAPACITY + 3,
       CELL = IDEMI_CELL_SIZE(1u, KEY_MAX, RESPONSE_MAX, STATE_MAX, 4u),
       SIZE = IDEMI_CELLS_HEADERS(4u) + CELLS * CELL };

#define BODIES 1
#define MEDIUM_ANY cells_any

/* Runs in which these differ are not mixed (-eva-partition-value).  The header
   neither reads nor knows them: cells.txt says where they are set in the copy
   that is analysed. */
static uint32_t
    eva_scope,                  /* bytes of the scope of the record that was
                                   taken apart, plus one */
    eva_scope_0, eva_scope_1;   /* and of the slots' */

#ifdef CALLED
/* And while it is open (cells_called.h) */
static uint32_t
    eva_slots, eva_index,       /* what the slot is, and where in the index */
    eva_over,                   /* that it is over */
    eva_found, eva_record,      /* that the key that is asked for has one; and
                                   how far a call is */
    eva_owns,                   /* that it has a cell */
    eva_queue, eva_kept,        /* which; and the free ones; those set aside */
    eva_replaced, eva_copied;   /* why the one at hand is */

/* What stands in the copy that is analysed */
struct idemi_cell;
static void eva_slots_of(const idem_table *t);
static void eva_queue_of(const idem_table *t);
static void eva_asked(void);
static void eva_keep(const idem_table *t, unsigned cell);
static int programmed_or_not(idem_table *t, uint32_t at, uint32_t len);
static uint32_t encoded(idem_table *t, unsigned cell,
                        const struct idemi_cell *c);
static uint32_t doubted(idem_table *t);
static void described(const idem_table *t, unsigned slot, struct idemi_cell *c);
static int put_or_not(idem_table *t, unsigned slot, struct idemi_cell *c);
static int settled_or_not(idem_table *t);
static int written_or_not(idem_table *t, unsigned slot, struct idemi_cell *c);
#endif

static void eva_scope_of(uint32_t slot, uint32_t scope_len)
{
    if (slot == 0)
        eva_scope_0 = scope_len;
    else
        eva_scope_1 = scope_len;
}

/* What a medium may rely on */
/*@ requires inside: at <= SIZE && len <= SIZE - at;
    requires room: \valid((char *)dst + (0 .. len - 1));
    assigns ((char *)dst)[0 .. len - 1] \from \nothing;
    ensures \initialized((char *)dst + (0 .. len - 1)); */
void cells_any(uint32_t at, void *dst, uint32_t len);

/*@ requires inside: at <= SIZE && len <= SIZE - at;
    requires granules: at % GRANULE == 0 && len % GRANULE == 0;
    requires set: \initialized((char *)src + (0 .. len - 1));
    assigns \nothing; */
void cells_keep(uint32_t at, const void *src, uint32_t len);

static int cells_read(void *ctx, uint32_t at, void *dst, uint32_t len)
{
    (void)ctx;
    if (below(2))
        return 1;
    cells_any(at, dst, len);
    return below(2) ? 1 : 0;    // two runs, not mixed (cells.txt)
}

static int cells_prog(void *ctx, uint32_t at, const void *src, uint32_t len)
{
    (void)ctx;
    cells_keep(at, src, len);
    return (int)below(2);
}

static int cells_sync(void *ctx)
{
    (void)ctx;
    return (int)below(2);
}

static idem_storage cells = {
    .read = cells_read, .prog = cells_prog, .sync = cells_sync,
    .sector_size = SIZE, .sector_count = 1, .prog_size = GRANULE };

static uint32_t memory[IDEM_CELLS_MEMORY_SIZE(CAPACITY, KEY_MAX, RESPONSE_MAX,
                                              STATE_MAX, SIZE, GRANULE) / 4];
