/* SPDX-License-Identifier: 0BSD
   Tries out the callbacks of an idem_storage, on the device that they are for,
   and prints what is wrong with them.  Run it once, when a port is new:

       uint32_t at;
       const char *wrong = port_check(&storage, restart, NULL, &at);
       if (wrong)
           printf("%s (at %lu)\n", wrong, (unsigned long)at);

   restart is your function that makes the driver start as after a reset, or
   NULL.  The check erases each sector a few times, and in the end all of them.
   Takes 0.6 KB of memory, and minutes on a slow chip.

   It begins on a blank storage only.  So it finds a wrong base address, or a
   storage that ends beyond the chip and goes on at address 0, before it erases
   other data: these are not blank.  Then it programs the ends of each sector,
   which fails in protected blocks, and erases one sector in the middle: so it
   sees if the chip erases more at once, up to half of the storage.  port_clear
   makes a storage blank, whatever is there.

   It cannot see whether a program that a power cut interrupts leaves the rest
   of the sector as it was, whether bytes are durable after prog or sync, and
   whether reads and programs of more than 256 bytes are right. */
#ifndef PORT_CHECK_H
#define PORT_CHECK_H

#include "idem.h"

#include <string.h>

enum { PORT_CHUNK = 256 };              /* a granule is at most that */
enum { PORT_GUARD = 8 };                /* bytes beside what read may write */
#define PORT_PATIENCE UINT32_C(100000000)   /* that erasing is asked */

typedef struct port_trial {
    const idem_storage *s;
    uint32_t size;                      /* of the storage, bytes */
    uint32_t at;                        /* where something was wrong */
    uint8_t  round;                     /* other bytes each time */
    uint8_t  out[PORT_CHUNK + 1];       /* what is programmed */
    uint8_t  in[PORT_CHUNK + 2 * PORT_GUARD];
} port_trial;

/* What the byte at an address is to be in this round; differs from those one
   bit of address or one round away. */
static inline uint8_t port_byte(const port_trial *p, uint32_t at)
{
    uint32_t x = (at + 1u + p->round * UINT32_C(0x01000193)) *
                 UINT32_C(0x9E3779B1);

    return (uint8_t)(x >> 24);
}

static inline const char *port_wrong(port_trial *p, uint32_t at,
                                     const char *what)
{
    p->at = at;
    return what;
}

/* ----------------------------------------------------------------- geometry */

static inline const char *port_geometry(port_trial *p)
{
    const idem_storage *s = p->s;
    uint32_t granule = s->prog_size;

    if (!s->read || !s->prog)
        return "read and prog must be there";
    if (!s->erase && s->erasing)
        return "erasing without erase";
    if (!granule || granule > PORT_CHUNK || (granule & (granule - 1)))
        return "prog_size: 1, 2, 4 .. 256";
    if (s->sector_size < 64 || s->sector_size > UINT32_C(262144) ||
        s->sector_size % granule || s->sector_size / granule < 5)
        return "sector_size: 64 .. 262144, at least 5 times prog_size, and a "
               "multiple";
    if (s->sector_count < 5 || s->sector_count > 65535u ||
        s->sector_count > UINT32_C(0xFFFFFFFF) / s->sector_size)
        return "sector_count: 5 .. 65535, and all below 4 GB";
    p->size = s->sector_size * s->sector_count;
    return NULL;
}

/* ------------------------------------------------------------- single calls */

/* Reads into the middle of p->in; the bytes beside it must stay. */
static inline const char *port_read(port_trial *p, uint32_t at, uint32_t len)
{
    unsigned i;

    memset(p->in, 0x3C, sizeof p->in);
    if ((p->s->read)(p->s->ctx, at, p->in + PORT_GUARD, len))
        return port_wrong(p, at, "read fails: did it return something else "
                                 "than 0 for success, a length for example?");
    for (i = 0; i < PORT_GUARD; i++)
        if (p->in[i] != 0x3C || p->in[PORT_GUARD + len + i] != 0x3C)
            return port_wrong(p, at, "read writes more than it is asked for");
    return NULL;
}

/* True if what was read is that of this round, or erased if `blank`. */
static inline const char *port_compare(port_trial *p, uint32_t at, uint32_t len,
                                       int blank, const char *what)
{
    uint32_t i;

    for (i = 0; i < len; i++)
        if (p->in[PORT_GUARD + i] !=
            (blank ? p->s->erased : port_byte(p, at + i)))
            return port_wrong(p, at + i, what);
    return NULL;
}

/* Reads a part of the storage, and compares. */
static inline const char *port_look(port_trial *p, uint32_t from, uint32_t to,
                                    int blank, const char *what)
{
    const char *wrong = NULL;
    uint32_t len;

    for (; from < to && !wrong; from += len) {
        len = to - from;
        if (len > PORT_CHUNK)
            len = PORT_CHUNK;
        wrong = port_read(p, from, len);
        if (!wrong)
            wrong = port_compare(p, from, len, blank, what);
    }
    return wrong;
}

/* Programs len bytes of this round from a buffer that is not aligned. */
static inline const char *port_prog(port_trial *p, uint32_t at, uint32_t len,
                                    const char *what)
{
    uint32_t i;

    for (i = 0; i < len; i++)
        p->out[1 + i] = port_byte(p, at + i);
    if ((p->s->prog)(p->s->ctx, at, p->out + 1, len))
        return port_wrong(p, at, what);
    for (i = 0; i < len; i++)
        if (p->out[1 + i] != port_byte(p, at + i))
            return port_wrong(p, at, "prog changes the bytes that it is given");
    return NULL;
}

/* Starts to erase a sector; without erase it is programmed so. */
static inline const char *port_start_erase(port_trial *p, uint32_t sector)
{
    uint32_t from = sector * p->s->sector_size, at;

    if (p->s->erase)
        return (p->s->erase)(p->s->ctx, sector)
                   ? port_wrong(p, from, "erase fails: is the sector outside "
                                         "the flash, or locked?")
                   : NULL;
    memset(p->out, p->s->erased, sizeof p->out);
    for (at = from; at < from + p->s->sector_size; at += p->s->prog_size)
        if ((p->s->prog)(p->s->ctx, at, p->out, p->s->prog_size))
            return port_wrong(p, at, "prog fails: is the sector writable?");
    return NULL;
}

/* Waits for its end; then the sector is blank. */
static inline const char *port_finish_erase(port_trial *p, uint32_t sector)
{
    uint32_t patience = PORT_PATIENCE, from = sector * p->s->sector_size;
    int busy = 1;

    while (p->s->erasing && busy == 1 && patience--)
        busy = (p->s->erasing)(p->s->ctx);
    if (p->s->erasing && busy == 1)
        return port_wrong(p, from, "erasing never returns 0: it has finished");
    if (p->s->erasing && busy)
        return port_wrong(p, from, "erasing fails: 0 is finished, 1 not yet");
    return port_look(p, from, from + p->s->sector_size, 1, p->s->erase
        ? "a sector that was erased is not blank: without `erasing` erase must "
          "wait for its end; or it erases less than sector_size, the sector is "
          "protected, or a cache keeps old bytes"
        : "a program does not replace the old bytes: this storage needs an "
          "erase");
}

/* ------------------------------------------------------------------- trials */

/* A storage that is not blank may be somebody else's. */
static inline const char *port_is_blank(port_trial *p)
{
    return port_look(p, 0, p->size, 1,
                     "the storage is not blank, and nothing was changed: is "
                     "`erased` the right value, does read read all, does the "
                     "storage end beyond the chip, is something of another's "
                     "there?  If it may go: port_clear");
}

/* Programs the first and the last granule of each sector but one, or looks at
   them. */
static inline const char *port_ends(port_trial *p, int write, uint32_t but,
                                    const char *what)
{
    uint32_t size = p->s->sector_size, granule = p->s->prog_size, sector, at;
    const char *wrong = NULL;

    for (sector = 0; sector < p->s->sector_count && !wrong; sector++)
        for (at = 0; at < size && !wrong && sector != but;
             at += size - granule) {
            uint32_t end = sector * size + at;
            wrong = write ? port_prog(p, end, granule, what)
                          : port_look(p, end, end + granule, 0, what);
        }
    return wrong;
}

/* Erases one sector in the middle: all others stay, even while it goes on. */
static inline const char *port_erase_one(port_trial *p)
{
    uint32_t all = p->s->sector_count, middle = all / 2;
    const char *wrong =
        port_ends(p, 1, all, "prog of one granule fails: did it return "
                  "something else than 0 for success, is prog_size too small, "
                  "is the sector outside the flash?");

    if (!wrong)
        wrong = port_ends(p, 0, all, "a programmed granule does "
                          "not read back: can read begin at an odd place, is "
                          "the sector protected, are addresses cut off, do "
                          "sectors overlap?");
    if (!wrong)
        wrong = port_start_erase(p, middle);
    if (!wrong)
        wrong = port_ends(p, 0, middle, "read of another sector is wrong while "
                          "one is erased, or the erase changed it: is "
                          "sector_size less than what is erased at once?");
    if (!wrong)
        wrong = port_finish_erase(p, middle);
    if (!wrong)
        wrong = port_ends(p, 0, middle, "an erase changed another sector: is "
                          "sector_size less than what is erased at once?");
    return wrong;
}

/* In a blank sector each granule by itself, the last first: its neighbours
   stay blank. */
static inline const char *port_backwards(port_trial *p)
{
    uint32_t granule = p->s->prog_size, size = p->s->sector_size;
    uint32_t end = (p->s->sector_count / 2 + 1) * size;
    const char *wrong = NULL;
    unsigned i;

    for (i = 1; i <= 4 && !wrong; i++) {
        wrong = port_prog(p, end - i * granule, granule,
                          "prog fails beside programmed bytes: is prog_size "
                          "too small?");
        if (!wrong)
            wrong = port_look(p, end - (i + 1) * granule, end - i * granule, 1,
                              "a program changes the granule before it");
    }
    return wrong ? wrong
                 : port_look(p, end - 4 * granule, end, 0,
                             "a program changes the granules beside it: is "
                             "prog_size too small?");
}

/* Erases that sector again; meanwhile programs a granule of the next one. */
static inline const char *port_prog_meanwhile(port_trial *p)
{
    uint32_t granule = p->s->prog_size, middle = p->s->sector_count / 2;
    uint32_t at = (middle + 1) * p->s->sector_size + granule;
    const char *wrong = port_start_erase(p, middle);

    if (!wrong)
        wrong = port_prog(p, at, granule,
                          "prog fails while another sector is erased");
    if (!wrong)
        wrong = port_finish_erase(p, middle);
    return wrong ? wrong
                 : port_look(p, at, at + granule, 0,
                             "bytes programmed while another sector is "
                             "erased do not read back: prog must wait for "
                             "the end, or suspend the erase");
}

static inline const char *port_erase_all(port_trial *p)
{
    const char *wrong = NULL;
    uint32_t sector;

    for (sector = 0; sector < p->s->sector_count && !wrong; sector++) {
        wrong = port_start_erase(p, sector);
        if (!wrong)
            wrong = port_finish_erase(p, sector);
    }
    return wrong;
}

/* Granule by granule at first, then in pieces that are no power of two, so that
   they cross whatever pages there are. */
static inline const char *port_fill_sector(port_trial *p, uint32_t sector)
{
    uint32_t granule = p->s->prog_size;
    uint32_t from = sector * p->s->sector_size, at = from;
    uint32_t end = from + p->s->sector_size;
    uint32_t piece = PORT_CHUNK;
    const char *wrong = NULL;

    if (PORT_CHUNK / granule > 3)
        piece = PORT_CHUNK / 4 * 3 / granule * granule;
    for (; at < from + 4 * granule && !wrong; at += granule) {
        wrong = port_prog(p, at, granule, "prog of one granule fails");
        if (!wrong)
            wrong = port_look(p, from, at + granule, 0,
                              "a programmed granule does not read "
                              "back: is prog_size too small?");
    }
    for (; at < end && !wrong; at += piece) {
        if (piece > end - at)
            piece = end - at;
        wrong = port_prog(p, at, piece, "prog of several granules fails");
        if (!wrong)
            wrong = port_look(p, at, at + piece, 0,
                              "several programmed granules do not "
                              "read back: do they cross a page?");
    }
    return wrong;
}

/* Fills the storage, one sector after another, and looks at it as a whole. */
static inline const char *port_fill(port_trial *p)
{
    const char *wrong = NULL;
    uint32_t sector;

    for (sector = 0; sector < p->s->sector_count && !wrong; sector++)
        wrong = port_fill_sector(p, sector);
    if (!wrong)
        wrong = port_look(p, 0, p->size, 0,
                          "a program changed another place: are addresses cut "
                          "off, are sectors mixed up?");
    return wrong;
}

/* Reads that begin and end anywhere, over the ends of sectors too. */
static inline const char *port_read_anywhere(port_trial *p)
{
    static const uint8_t lens[] = { 1, 2, 3, 5, 8, 17, 64, 96, 255 };
    const char *wrong = NULL;
    uint32_t at;
    unsigned i, j;

    for (i = 0; i < sizeof lens && lens[i] <= p->s->sector_size && !wrong; i++)
        for (j = 0; j < 9 && !wrong; j++) {
            at = p->s->sector_size - lens[i] / 2 - j;
            wrong = port_look(p, at, at + lens[i], 0,
                              "read from an odd place, or of an odd length, or "
                              "over the end of a sector, is wrong");
        }
    return wrong;
}

/* What is synced is there after a restart of the driver. */
static inline const char *port_persist(port_trial *p, void (*restart)(void *),
                                       void *ctx)
{
    if (p->s->sync && (p->s->sync)(p->s->ctx))
        return port_wrong(p, 0, "sync fails");
    if (!restart)
        return NULL;
    (restart)(ctx);
    return port_look(p, 0, p->size, 0,
                     "programmed bytes are gone after a restart: does sync, "
                     "or prog without it, leave it in a cache?");
}

/* Erases all of the storage, whatever it holds.  NULL, or what is wrong. */
static inline const char *port_clear(const idem_storage *storage, uint32_t *at)
{
    static port_trial trial;
    const char *wrong;

    memset(&trial, 0, sizeof trial);
    trial.s = storage;
    wrong = port_geometry(&trial);
    if (!wrong)
        wrong = port_erase_all(&trial);
    *at = trial.at;
    return wrong;
}

/* NULL if nothing is found to be wrong, else what is, and *at where.  restart,
   if not NULL, makes the driver start again as after a reset, and is handed
   ctx.  Not to be called while a table is open on the storage. */
static inline const char *port_check(const idem_storage *storage,
                                     void (*restart)(void *ctx), void *ctx,
                                     uint32_t *at)
{
    static port_trial trial;
    port_trial *p = &trial;
    const char *wrong;

    memset(p, 0, sizeof *p);
    p->s = storage;
    if (!(wrong = port_geometry(p)) && !(wrong = port_is_blank(p)) &&
        !(wrong = port_erase_one(p)) && !(wrong = port_backwards(p)))
        wrong = port_prog_meanwhile(p);
    // Twice, the second time other bytes over what the first left
    for (; p->round < 2 && !wrong; p->round++)
        if (!(wrong = port_erase_all(p)) && !(wrong = port_fill(p)) &&
            !(wrong = port_read_anywhere(p)))
            wrong = port_persist(p, restart, ctx);
    if (!wrong)
        wrong = port_erase_all(p);
    *at = p->at;
    return wrong;
}

#endif /* PORT_CHECK_H */
