/* SPDX-License-Identifier: 0BSD */
/* cc -std=c99 inspect.c -o inspect && ./inspect journal
 *
 * Shows what a journal of idem.h holds: a file of IDEM_FILE_STORAGE, or a dump
 * of flash, EEPROM or FRAM.  It only reads.  It is written from the manual's
 * >>format and >>recovery alone and shares no line with idem.h: a second reader
 * of the format.
 *
 * What it cannot tell without the device's secret: whether a fingerprint is
 * that of some payload, and whether the secret is the one that the journal was
 * written with.  The check of it, of which headers have the low half, is what
 * most records agree on: if that is a single one, it may be a damaged one.
 * What no journal tells: the default retention (--retention), the default
 * reservation, the leases.
 *
 * Exit status: 0 sound, or blank; 1 damage; 2 not a journal, or wrong usage.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SOUND = 0, DAMAGED = 1, NO_JOURNAL = 2 };
enum { HEADER = 40, HEADER_CRC = 36, MAGIC = 4 };

// Flags of a header
enum { FIRST_OF_BOOT = 1, ATTEMPT = 2 };
// Flags of a record's first byte, and of its second
enum { CLAIM = 1, OUTCOME = 2, STATE = 4, MOVED = 8, MORE = 16, SYNCED = 32,
       HAS_SCOPE = 64, RECORD = 128 };
enum { FAILED = 1, OWED = 2, DELIVERED = 4, CUT = 8, HAS_RETENTION = 16,
       HAS_RESERVATION = 32, HAS_ATTEMPTS = 64, HAS_CODE = 128 };

#define UNKNOWN UINT64_MAX

// What was asked for on the command line; UINT32_MAX: not given.
typedef struct options {
    const char *path;
    int      json;
    int      hex;
    uint32_t retention;
    uint32_t offset;
    uint32_t sector_size;
    uint32_t granule;
    uint32_t erased;
} options;

typedef struct header {
    uint32_t hash, granule, sector_size, sector_count;
    uint32_t secret;            // the check of it
    uint32_t known;             // damaged stretches that were known
    uint64_t time;
    uint64_t doubt;             // until then unknown keys may be lost ones
    uint32_t sequence;
    uint32_t before;            // sectors back to the one before
    uint32_t flags;
    uint32_t oldest;            // sectors back to the oldest needed
    uint32_t before_end;        // where the records of the one before end
    uint32_t own_end;           // where those here before the second copy end
} header;

enum { NO_HEADER, ONE_HEADER, BOTH_HEADERS };
enum { BAD, GOOD, MENDED };     // a copy; MENDED: but for one bit

typedef struct ring_sector {
    int      headers;           // none, the first copy only, or both
    int      first, second;     // of each copy: GOOD, MENDED or BAD
    uint32_t needed;            // 0: not; else 1 for the newest, and so on back
    header   h;
    uint32_t records, appended; // found in it; of those, behind the header
    uint32_t end;               // where they end
} ring_sector;

typedef struct record {
    uint32_t at;                // in the image
    uint32_t len;
    uint32_t first, more;
    uint64_t slot, time;
    uint64_t back;              // bytes back to its claim
    uint64_t token;             // a claim's, or moved
    uint64_t age;               // moved: ms back to what its key's time tells
    uint32_t attempts;
    uint64_t retention, reserved;   // UNKNOWN: the default
    uint64_t fingerprint;
    int32_t  code;
    const uint8_t *scope, *key, *state, *response;
    uint32_t scope_len, key_len, state_len, response_len;
} record;

// A slot of the table that wrote the journal, and the key in it
typedef struct entry {
    int      used;              // as an entry of the array; else it is free
    int      status;            // 0: no key; CLAIM, or OUTCOME
    uint64_t slot;
    uint64_t time;              // of completion, or when it was cut
    int      cut;
    record   claim, outcome;
} entry;

// The latest claim of a key that was read
typedef struct latest {
    const uint8_t *scope, *key; // NULL: none
    uint32_t scope_len, key_len;
    uint64_t token;
} latest;

typedef struct boot {
    uint32_t sequence;          // of its first sector
    uint64_t time;              // of its opening
} boot;

typedef struct stretch {
    uint32_t sector, at, len;
    const char *what;
} stretch;

typedef struct journal {
    const options *o;
    const uint8_t *bytes;       // from the offset asked for
    size_t   size;
    header   geometry;
    uint32_t gap;               // bytes of a header in whole granules
    int      erased;            // -1: not known
    uint32_t check;             // that the records are written with
    uint32_t records_for_it;    // how many say so
    ring_sector *sectors;
    uint32_t newest;
    uint64_t now;               // the newest logical time found
    boot    *boots;             // of what was read, oldest first
    size_t   boot_count;
    entry   *entries;           // open-addressed by slot
    latest  *claims;            // the same by key
    size_t   entry_count;       // of either, a power of two
    entry  **keys;              // those that are live, by scope and key
    size_t   key_count;
    const uint8_t *state;
    uint32_t state_len;
    stretch *stretches;
    size_t   stretch_count;
} journal;

/* ------------------------------------------------------------------- basics */

static void *get(size_t count, size_t size)
{
    void *p = calloc(count ? count : 1, size);

    if (!p) {
        fputs("inspect: out of memory\n", stderr);
        exit(NO_JOURNAL);
    }
    return p;
}

static uint64_t number(const uint8_t *p, unsigned bytes)
{
    uint64_t n = 0;

    while (bytes--)
        n = n << 8 | p[bytes];
    return n;
}

/* What a byte makes of a CRC-32C (Castagnoli, reflected) of zero. */
static uint32_t crc32c_step(uint8_t byte)
{
    static uint32_t table[256];

    if (!table[1])
        for (uint32_t i = 0; i < 256; i++) {
            table[i] = i;
            for (int bit = 0; bit < 8; bit++)
                table[i] = table[i] >> 1 ^ (table[i] & 1 ? 0x82F63B78u : 0);
        }
    return table[byte];
}

#define CRC_INIT 0xFFFFFFFFu

/* Begun with all ones for headers; not complemented at the end.  `crc` is
   CRC_INIT, or what the bytes before gave. */
static uint32_t crc32c(uint32_t crc, const uint8_t *p, size_t len)
{
    for (; len--; p++)
        crc = crc >> 8 ^ crc32c_step((uint8_t)(crc ^ *p));
    return crc;
}

/* What a CRC was begun with that ends as `crc`.  The tables' first bytes all
   differ, so each step can be taken back. */
static uint32_t crc32c_begun(uint32_t crc, const uint8_t *p, size_t len)
{
    uint8_t byte;

    for (p += len; len--;) {
        uint32_t step = 0;
        while ((crc32c_step((uint8_t)step) ^ crc) >> 24)
            step++;
        byte = *--p;
        crc = (crc ^ crc32c_step((uint8_t)step)) << 8 | (step ^ byte);
    }
    return crc;
}

static uint32_t granules(const journal *j, uint32_t bytes)
{
    uint32_t granule = j->geometry.granule;

    return (bytes + granule - 1) / granule * granule;
}

/* The sector so many before this one, round the end. */
static uint32_t sectors_back(const journal *j, uint32_t sector, uint32_t back)
{
    uint32_t count = j->geometry.sector_count;

    return (sector + count - back % count) % count;
}

/* A sector's bytes, or NULL if the image ends before. */
static const uint8_t *sector_bytes(const journal *j, uint32_t sector)
{
    uint64_t size = j->geometry.sector_size, at = sector * size;

    return at + size <= j->size ? j->bytes + at : NULL;
}

static int is_all(const uint8_t *p, size_t len, int value)
{
    while (len--)
        if (*p++ != value)
            return 0;
    return 1;
}

/* ------------------------------------------------------------------ headers */

/* The bytes that a header takes in whole granules. */
static uint32_t header_gap(uint32_t granule)
{
    return (HEADER + granule - 1) / granule * granule;
}

/* Takes a header apart.  False if it is none, or of another version. */
static int header_read(header *h, const uint8_t *p)
{
    uint32_t doubt = (uint32_t)number(p + 14, 2), n = doubt >> 11;

    if (memcmp(p, "idem", MAGIC) != 0 || p[4] != 1 ||
        number(p + HEADER_CRC, 4) != crc32c(CRC_INIT, p, HEADER_CRC))
        return 0;
    h->hash = p[5] & 15;
    h->granule = (uint32_t)1 << (p[5] >> 4);
    h->sector_size = (uint32_t)number(p + 6, 3);
    h->sector_count = (uint32_t)number(p + 9, 2);
    h->secret = (uint32_t)number(p + 11, 2);
    h->known = p[13];
    h->sequence = (uint32_t)number(p + 16, 4);
    h->time = number(p + 20, 6);
    h->doubt = ((h->time >> n) + (doubt & 2047)) << n;
    h->before = p[26];
    h->flags = p[27];
    h->oldest = (uint32_t)number(p + 28, 2);
    h->before_end = (uint32_t)number(p + 30, 3);
    h->own_end = (uint32_t)number(p + 33, 3);
    return h->granule <= 256 && h->sector_size >= 256 &&
           h->sector_size <= 262144 && h->sector_size % h->granule == 0 &&
           h->sector_size > 2 * header_gap(h->granule) &&
           h->sector_count >= 3;
}

/* The same for a header in which one bit may be flipped; `copy` gets it as it
   was.  Returns what it is. */
static int header_mend(header *h, uint8_t *copy, const uint8_t *p)
{
    memcpy(copy, p, HEADER);
    if (header_read(h, copy))
        return GOOD;
    for (unsigned bit = 0; bit < 8 * HEADER; bit++) {
        copy[bit / 8] ^= (uint8_t)(1u << bit % 8);
        if (header_read(h, copy))
            return MENDED;
        copy[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    return BAD;
}

static int same_geometry(const header *a, const header *b)
{
    return a->granule == b->granule && a->sector_size == b->sector_size &&
           a->sector_count == b->sector_count;
}

/* Reads both copies of a sector's header.  One that is of another sequence, or
   another geometry, is what was there before. */
static void sector_read(const journal *j, ring_sector *s, const uint8_t *p)
{
    uint8_t first[HEADER], second[HEADER];
    header other;

    memset(s, 0, sizeof *s);
    if (!p)
        return;
    s->first = header_mend(&s->h, first, p);
    s->second = header_mend(&other, second, p + j->gap);
    if (s->first && !same_geometry(&s->h, &j->geometry))
        s->first = BAD;
    if (s->second && !same_geometry(&other, &j->geometry))
        s->second = BAD;
    if (s->first && s->second && memcmp(first, second, HEADER) != 0)
        s->second = BAD;
    if (!s->first)
        s->h = other;
    // An attempt stands where the second copy will, alone.
    if (!s->first && s->second && s->h.flags & ATTEMPT) {
        s->first = s->second;
        s->second = BAD;
    }
    s->headers = s->second ? BOTH_HEADERS : s->first ? ONE_HEADER : NO_HEADER;
}

/* True if nothing is there but, where headers go, what a cut may have left of
   one that was the first thing written. */
static int is_blank(const journal *j, uint32_t sector_size, uint32_t gap)
{
    const uint8_t *p = j->bytes;
    size_t at;

    gap *= 2;
    if (j->size <= gap)
        return 0;
    for (at = 0; at + sector_size <= j->size; at += sector_size)
        if (!is_all(p + at + gap, sector_size - gap, p[gap]))
            return 0;
    return is_all(p + at, j->size - at, p[gap]);
}

/* The same if no header tells the geometry. */
static int is_blank_somehow(const journal *j)
{
    const options *o = j->o;
    uint32_t whole = (uint32_t)(j->size < UINT32_MAX ? j->size : UINT32_MAX);
    uint32_t size = o->sector_size == UINT32_MAX ? whole : o->sector_size;
    uint32_t gap = o->granule == UINT32_MAX || !o->granule
                       ? HEADER
                       : header_gap(o->granule);

    return size > 2 * gap && is_blank(j, size, gap);
}

/* True if a header fits to where it is in the image, and to what was asked. */
static int header_fits(const journal *j, const header *h, size_t at)
{
    const options *o = j->o;
    size_t in = at % h->sector_size;

    return (in == 0 || in == header_gap(h->granule)) &&
           at / h->sector_size < h->sector_count &&
           (o->sector_size == UINT32_MAX || o->sector_size == h->sector_size) &&
           (o->granule == UINT32_MAX || o->granule == h->granule);
}

/* Finds the geometry in the first header that fits; if none does, in the first
   that would but for a flipped bit.  False if there is none. */
static int find_geometry(journal *j)
{
    uint8_t copy[HEADER];

    for (int worst = GOOD; worst <= MENDED; worst++)
        for (size_t at = 0; at + HEADER <= j->size; at++) {
            int equal = 0;
            for (unsigned i = 0; i < MAGIC; i++)
                equal += j->bytes[at + i] == (uint8_t)"idem"[i];
            if (equal + 1 < MAGIC + (worst == GOOD))
                continue;
            if ((worst == GOOD ? header_read(&j->geometry, j->bytes + at)
                               : header_mend(&j->geometry, copy,
                                             j->bytes + at)) &&
                header_fits(j, &j->geometry, at)) {
                j->gap = header_gap(j->geometry.granule);
                return 1;
            }
        }
    return 0;
}

/* The erased value: as told, or as the padding behind a header shows, or as a
   whole sector has it. */
static void find_erased(journal *j)
{
    j->erased = -1;
    if (j->o->erased != UINT32_MAX) {
        j->erased = (int)j->o->erased;
        return;
    }
    for (uint32_t i = 0; i < j->geometry.sector_count; i++) {
        const uint8_t *p = sector_bytes(j, i);
        if (!p)
            return;
        if (j->gap > HEADER && j->sectors[i].headers) {
            j->erased = p[HEADER];
            return;
        }
        if (is_all(p, j->geometry.sector_size, p[0]))
            j->erased = p[0];
    }
}

/* ------------------------------------------------------------------ records */

// Where a record is being read, up to where
typedef struct cursor {
    const uint8_t *p, *end;
    int failed;
} cursor;

static const uint8_t *take(cursor *c, uint64_t len)
{
    const uint8_t *p = c->p;

    if (c->failed || len > (uint64_t)(c->end - p)) {
        c->failed = 1;
        return NULL;
    }
    c->p += len;
    return p;
}

static uint64_t take_number(cursor *c, unsigned bytes)
{
    const uint8_t *p = take(c, bytes);

    return p ? number(p, bytes) : 0;
}

static uint64_t take_varint(cursor *c)
{
    uint64_t n = 0;

    for (unsigned shift = 0; shift < 64; shift += 7) {
        uint64_t byte = take_number(c, 1);
        n |= (byte & 127) << shift;
        if (!(byte & 128))
            return n;
    }
    c->failed = 1;
    return 0;
}

/* What follows slot and time, but for claim and outcome. */
static void take_place(record *r, cursor *c, uint64_t here)
{
    r->token = here;
    if (!(r->first & (CLAIM | MOVED)))
        r->back = take_varint(c);
    if (r->first & MOVED) {
        // Modulo 2^32; that of a volatile claim may be a little more.
        r->token = here - (uint64_t)(int64_t)(int32_t)take_varint(c);
        r->age = take_varint(c);
    }
}

static void take_claim(record *r, cursor *c)
{
    r->attempts = r->more & HAS_ATTEMPTS ? (uint32_t)take_number(c, 1) : 1;
    r->retention = r->more & HAS_RETENTION ? take_varint(c) : UNKNOWN;
    r->reserved = r->more & HAS_RESERVATION ? take_varint(c) : UNKNOWN;
    r->fingerprint = take_number(c, 8);
    r->scope_len = r->first & HAS_SCOPE ? (uint32_t)take_number(c, 1) : 0;
    if (r->first & OUTCOME)
        r->key_len = (uint32_t)take_number(c, 1);
    r->scope = take(c, r->scope_len);
    if (!(r->first & OUTCOME))
        r->key_len = (uint32_t)(c->end - c->p);
    r->key = take(c, r->key_len);
}

static void take_outcome(record *r, cursor *c)
{
    if (r->first & OUTCOME && r->more & HAS_CODE)
        r->code = (int32_t)(uint32_t)take_number(c, 4);
    if (r->first & STATE) {
        r->state_len = (uint32_t)take_varint(c);
        r->state = take(c, r->state_len);
    }
    if (r->first & OUTCOME) {
        r->response_len = (uint32_t)(c->end - c->p);
        r->response = take(c, r->response_len);
    }
}

/* What a record's CRC begins with, but for the check. */
static uint32_t place_in(const journal *j, uint32_t sector, uint32_t at)
{
    return 0x9E3779B1u * j->sectors[sector].h.sequence ^ ~at;
}

/* Takes apart what stands at an offset of a sector and must end before `end`.
   False if it cannot be a record. */
static int record_parse(const journal *j, record *r, uint32_t sector,
                       uint32_t at, uint32_t end)
{
    const header *h = &j->sectors[sector].h;
    const uint8_t *p = sector_bytes(j, sector);
    cursor c = { p + at, p + end, 0 };
    uint64_t len;

    memset(r, 0, sizeof *r);
    r->at = sector * h->sector_size + at;
    r->first = (uint32_t)take_number(&c, 1);
    if (!(r->first & RECORD) || r->first == 0xFF)
        return 0;
    if (r->first & MORE)
        r->more = (uint32_t)take_number(&c, 1);
    len = take_varint(&c);
    if (c.failed || len > (uint64_t)(c.end - c.p) ||
        (uint64_t)(c.end - c.p) - len < 4)
        return 0;
    c.end = c.p + len;
    r->len = (uint32_t)(c.end - (p + at)) + 4;
    r->slot = take_varint(&c);
    r->time = h->time + take_varint(&c);
    take_place(r, &c, (uint64_t)h->sequence * h->sector_size + at);
    if (r->first & CLAIM)
        take_claim(r, &c);
    take_outcome(r, &c);
    return !c.failed && c.p == c.end;
}

/* The same; false too if it does not validate. */
static int record_read(const journal *j, record *r, uint32_t sector,
                       uint32_t at, uint32_t end)
{
    const uint8_t *p = sector_bytes(j, sector) + at;

    return record_parse(j, r, sector, at, end) &&
           crc32c(j->check ^ place_in(j, sector, at), p, r->len - 4) ==
               number(p + r->len - 4, 4);
}

/* The check with which what can be a record would validate. */
static uint32_t check_of(const journal *j, const record *r, uint32_t sector,
                         uint32_t at)
{
    const uint8_t *p = sector_bytes(j, sector) + at;

    return crc32c_begun((uint32_t)number(p + r->len - 4, 4), p, r->len - 4) ^
           place_in(j, sector, at);
}

/* Finds the check, of which the headers have the low half only: the one with
   which most of what can be a record validates. */
static void find_check(journal *j)
{
    enum { GUESSES = 64 };
    struct { uint32_t check, times; } guess[GUESSES];
    uint32_t low = j->geometry.secret;
    unsigned count = 0, i;
    record r;

    j->check = low;
    for (uint32_t n = 0; n < j->geometry.sector_count; n++) {
        const header *h = &j->sectors[n].h;
        uint32_t at = j->sectors[n].headers ? 2 * j->gap : UINT32_MAX;
        for (; at < j->geometry.sector_size; at += h->granule) {
            uint32_t check;
            if (!record_parse(j, &r, n, at, h->sector_size))
                continue;
            check = check_of(j, &r, n, at);
            if ((check & 0xFFFF) != low)
                continue;
            for (i = 0; i < count && guess[i].check != check; i++)
                ;
            if (i == GUESSES)
                continue;
            if (i == count) {
                guess[count].check = check;
                guess[count++].times = 0;
            }
            if (++guess[i].times > j->records_for_it) {
                j->records_for_it = guess[i].times;
                j->check = check;
            }
        }
    }
}

/* --------------------------------------------------------------------- keys */

/* The entry of a slot, which is made if there is none. */
static entry *find_slot(journal *j, uint64_t slot)
{
    size_t i = (size_t)(slot * 0x9E3779B1u) & (j->entry_count - 1);

    while (j->entries[i].used && j->entries[i].slot != slot)
        i = (i + 1) & (j->entry_count - 1);
    j->entries[i].used = 1;
    j->entries[i].slot = slot;
    return &j->entries[i];
}

static int same_bytes(const uint8_t *a, uint32_t a_len, const uint8_t *b,
                      uint32_t b_len)
{
    return a_len == b_len && memcmp(a, b, a_len) == 0;
}

/* The latest claim of the key that r claims; its scope is NULL if there was
   none. */
static latest *find_latest(journal *j, const record *r)
{
    size_t i = crc32c(r->scope_len, r->scope, r->scope_len + r->key_len);
    latest *l;

    for (;; i++) {
        l = &j->claims[i & (j->entry_count - 1)];
        if (!l->scope ||
            (same_bytes(l->scope, l->scope_len, r->scope, r->scope_len) &&
             same_bytes(l->key, l->key_len, r->key, r->key_len)))
            return l;
    }
}

/* Where the claim is that a record names which is neither one nor moved. */
static uint64_t claim_at(const journal *j, const record *r)
{
    uint64_t size = (uint64_t)j->geometry.sector_size *
                    j->geometry.sector_count;

    return (r->at + size - r->back % size) % size;
}

/* True if a record that has no claim is about the one in the slot. */
static int names(const journal *j, const record *r, const entry *e)
{
    if (!e->status)
        return 0;
    return r->first & MOVED ? r->token == e->claim.token
                            : claim_at(j, r) == e->claim.at;
}

/* True if a record's claim should be there and is not: it is half of something,
   and its state does not count.  (The claim may rightly be gone if its sector
   is not needed any more.) */
static int is_half(const journal *j, const record *r, const entry *e)
{
    uint32_t size = j->geometry.sector_size, was;

    if (r->first & (CLAIM | MOVED) || names(j, r, e))
        return 0;
    was = j->sectors[claim_at(j, r) / size].needed;
    return was && was >= j->sectors[r->at / size].needed;
}

static void apply_claim(journal *j, entry *e, const record *r)
{
    latest *l = find_latest(j, r);

    l->scope = r->scope;
    l->scope_len = r->scope_len;
    l->key = r->key;
    l->key_len = r->key_len;
    l->token = r->token;
    e->status = CLAIM;
    e->claim = *r;
    e->cut = r->more & CUT ? 1 : 0;
    e->time = r->time - r->age;
}

static void apply_outcome(entry *e, const record *r)
{
    e->status = OUTCOME;
    e->outcome = *r;
    e->time = r->time - r->age;
}

/* What a record does to its slot, and to the application's state. */
static void apply(journal *j, const record *r)
{
    entry *e = find_slot(j, r->slot);

    if (r->time > j->now)
        j->now = r->time;
    if (r->first & STATE && !is_half(j, r, e)) {
        j->state = r->state;
        j->state_len = r->state_len;
    }
    if (r->first & CLAIM)
        apply_claim(j, e, r);
    if (r->first & OUTCOME) {
        if (names(j, r, e) || r->first & CLAIM)
            apply_outcome(e, r);
    } else if (!(r->first & (CLAIM | STATE))) {
        if (r->more & DELIVERED) {
            if (names(j, r, e))
                e->outcome.more |= DELIVERED;
        } else if (r->first & MOVED || names(j, r, e)) {
            e->status = 0;
        }
    }
}

/* --------------------------------------------------------------------- scan */

static void note_damage(journal *j, uint32_t sector, uint32_t at, uint32_t len,
                        const char *what)
{
    size_t count = j->stretch_count++;
    stretch *s;

    if ((count & (count - 1)) == 0)         // room for 1, 2, 4, 8 ...
        j->stretches = (stretch *)realloc(
            j->stretches, (count ? 2 * count : 1) * sizeof *j->stretches);
    if (!j->stretches)
        get(SIZE_MAX, 1);
    s = &j->stretches[count];
    s->sector = sector;
    s->at = at;
    s->len = len;
    s->what = what;
}

/* Reads the records of a sector up to `end`, in order.  Of `certain` bytes it
   is known that they were whole once. */
static void scan(journal *j, uint32_t sector, uint32_t end, uint32_t certain)
{
    ring_sector *s = &j->sectors[sector];
    uint32_t at = 2 * j->gap, gap = at;
    record r;

    s->end = at;
    while (at < end) {
        if (!record_read(j, &r, sector, at, end)) {
            at += j->geometry.granule;
            continue;
        }
        if (gap < at && (gap < certain || r.first & SYNCED))
            note_damage(j, sector, gap, at - gap, "records");
        apply(j, &r);
        s->records++;
        s->appended += r.at % j->geometry.sector_size >= s->h.own_end;
        at += granules(j, r.len);
        gap = s->end = at;
    }
    if (gap < certain)
        note_damage(j, sector, gap, certain - gap, "records");
}

/* True if something was appended to a sector after its second header. */
static int has_appended(const journal *j, uint32_t sector)
{
    const header *h = &j->sectors[sector].h;
    uint32_t at = h->flags & ATTEMPT ? h->sector_size : h->own_end;
    record r;

    for (; at < h->sector_size; at += h->granule)
        if (record_read(j, &r, sector, at, h->sector_size))
            return 1;
    return 0;
}

/* True if a sector's header names one before it, but not this. */
static int names_another(const journal *j, uint32_t sector, uint32_t than)
{
    uint32_t before = j->sectors[sector].h.before;

    return before && sectors_back(j, sector, before) != than;
}

/* The sector with the highest sequence among those that have so many copies of
   their header; the number of sectors if there is none. */
static uint32_t highest(const journal *j, int headers)
{
    uint32_t count = j->geometry.sector_count, found = count;

    for (uint32_t i = 0; i < count; i++)
        if (j->sectors[i].headers >= headers &&
            (found == count ||
             j->sectors[i].h.sequence > j->sectors[found].h.sequence))
            found = i;
    return found;
}

/* Finds the sector that the journal ends with: see Reading in >>recovery.
   False if nothing was ever committed. */
static int find_newest(journal *j)
{
    uint32_t count = j->geometry.sector_count, last = highest(j, ONE_HEADER);
    uint32_t before, both;

    j->newest = last;
    if (last < count && (j->sectors[last].headers == BOTH_HEADERS ||
                         has_appended(j, last)))
        return 1;
    if (last == count || is_blank(j, j->geometry.sector_size, j->gap))
        return 0;
    before = sectors_back(j, last, j->sectors[last].h.before);
    both = highest(j, BOTH_HEADERS);
    if (both < count &&
        (names_another(j, both, before) || has_appended(j, both)) &&
        (before == last || !j->sectors[before].headers ||
         j->sectors[both].h.sequence > j->sectors[before].h.sequence)) {
        j->newest = both;
        return 1;
    }
    j->newest = before;
    if (before != last && j->sectors[before].headers)
        return 1;
    note_damage(j, before, 0, 2 * j->gap, "no header");
    j->newest = highest(j, BOTH_HEADERS);
    return j->newest < count;
}

/* Lists the sectors from the newest to the oldest that is needed, as each
   header names the one before it.  Returns how many.  The oldest may be one
   that does not count; then it is the next that does. */
static uint32_t find_needed(journal *j, uint32_t *order)
{
    uint32_t at = j->newest, length = 0, step;
    uint32_t distance = j->sectors[at].h.oldest;

    for (;;) {
        const ring_sector *s = &j->sectors[at];
        order[length++] = at;
        j->sectors[at].needed = length;
        step = s->headers ? s->h.before : 1;
        if (!distance || step > distance)
            return length;
        distance -= step;
        at = sectors_back(j, at, step);
        if (!step || j->sectors[at].needed) {
            note_damage(j, at, 0, 0, "order of sectors");
            return length;
        }
    }
}

/* Tells what is wrong with a needed sector's header.  Of the second copy a cut
   may have left it in doubt, if nothing was appended behind it. */
static void check_header(journal *j, uint32_t sector)
{
    const ring_sector *s = &j->sectors[sector];

    if (!s->headers)
        note_damage(j, sector, 0, 2 * j->gap, "no header");
    else if (s->first != GOOD)
        note_damage(j, sector, 0, HEADER, "header");
    else if (s->second != GOOD && s->appended)
        note_damage(j, sector, j->gap, HEADER, "header's copy");
}

static void note_boot(journal *j, const header *h)
{
    if (h->time > j->now)
        j->now = h->time;
    if (h->flags & FIRST_OF_BOOT) {
        j->boots[j->boot_count].sequence = h->sequence;
        j->boots[j->boot_count++].time = h->time;
    }
}

/* Reads the needed sectors, the oldest first, each up to where the next one's
   header says that its records end. */
static void read_needed(journal *j)
{
    uint32_t count = j->geometry.sector_count, length;
    uint32_t *order = (uint32_t *)get(count, sizeof *order);

    j->boots = (boot *)get(count, sizeof *j->boots);
    length = find_needed(j, order);
    while (length--) {
        uint32_t at = order[length];
        const header *h = &j->sectors[at].h;
        uint32_t end = h->sector_size, certain = h->own_end;
        if (length && j->sectors[order[length - 1]].headers)
            end = certain = j->sectors[order[length - 1]].h.before_end;
        if (j->sectors[at].headers) {
            note_boot(j, h);
            scan(j, at, end < h->sector_size ? end : h->sector_size, certain);
        }
        check_header(j, at);
    }
    free(order);
}

/* ---------------------------------------------------------------- live keys */

static int compare_bytes(const uint8_t *a, size_t a_len, const uint8_t *b,
                         size_t b_len)
{
    int order = memcmp(a, b, a_len < b_len ? a_len : b_len);

    return order ? order : a_len < b_len ? -1 : a_len > b_len;
}

/* By scope and key. */
static int compare_keys(const void *a, const void *b)
{
    const record *x = &(*(entry *const *)a)->claim;
    const record *y = &(*(entry *const *)b)->claim;
    int order = compare_bytes(x->scope, x->scope_len, y->scope, y->scope_len);

    return order ? order
                 : compare_bytes(x->key, x->key_len, y->key, y->key_len);
}

static uint64_t retention(const journal *j, const entry *e)
{
    if (e->claim.retention != UNKNOWN)
        return e->claim.retention;
    return j->o->retention == UINT32_MAX ? UNKNOWN : j->o->retention;
}

/* How long the key is still remembered; 0: it is over. */
static uint64_t left(const journal *j, const entry *e)
{
    uint64_t whole = retention(j, e);
    uint64_t gone = j->now > e->time ? j->now - e->time : 0;

    return whole == UNKNOWN ? UNKNOWN : whole > gone ? whole - gone : 0;
}

/* The first restart after a claim cut it short; the last boot's are not yet. */
static void settle_claim(const journal *j, entry *e)
{
    uint64_t sequence = e->claim.token / j->geometry.sector_size;

    if (e->cut)
        return;
    e->time = j->now;
    for (size_t i = j->boot_count; i-- && j->boots[i].sequence > sequence;) {
        e->cut = 1;
        e->time = j->boots[i].time;
    }
}

/* Lists the keys that are live.  A key that was claimed later in another slot
   is not: whoever claimed it had dropped it here, without a word. */
static void find_keys(journal *j)
{
    j->keys = (entry **)get(j->entry_count, sizeof *j->keys);
    for (size_t i = 0; i < j->entry_count; i++) {
        entry *e = &j->entries[i];
        if (!e->status || find_latest(j, &e->claim)->token != e->claim.token)
            continue;
        if (e->status == CLAIM)
            settle_claim(j, e);
        if (left(j, e))
            j->keys[j->key_count++] = e;
    }
    qsort(j->keys, j->key_count, sizeof *j->keys, compare_keys);
}

/* ------------------------------------------------------------------- output */

static const char *verdict(const journal *j)
{
    return j->stretch_count ? "damaged" : j->newest == UINT32_MAX ? "blank"
                                                                  : "sound";
}

static const char *status(const entry *e)
{
    if (e->status == CLAIM)
        return e->cut ? "cut" : "in progress";
    return e->outcome.more & FAILED ? "failed" : "completed";
}

static int undelivered(const entry *e)
{
    return e->status == OUTCOME &&
           (e->outcome.more & (OWED | DELIVERED)) == OWED;
}

/* Milliseconds since completion, since the cut, or since the claim. */
static uint64_t age(const journal *j, const entry *e)
{
    uint64_t time = e->status == CLAIM && !e->cut ? e->claim.time : e->time;

    return j->now > time ? j->now - time : 0;
}

/* Bytes of the response, or reserved for it. */
static uint64_t response_len(const entry *e)
{
    return e->status == OUTCOME ? e->outcome.response_len : e->claim.reserved;
}

static const char *use(const journal *j, uint32_t sector)
{
    const ring_sector *s = &j->sectors[sector];
    const uint8_t *p = sector_bytes(j, sector);

    if (s->needed)
        return sector == j->newest ? "newest" : "needed";
    if (s->headers)
        return "dead";
    if (!p)
        return "missing";
    return is_all(p, j->geometry.sector_size, p[0]) ? "blank" : "unreadable";
}

/* Bytes behind the newest record, up to the last that is not erased: nothing, a
   torn record, damage (if longer than the longest record), or where programming
   replaces what was there before. */
static uint64_t tail(const journal *j)
{
    const uint8_t *p = sector_bytes(j, j->newest);
    uint32_t end = j->geometry.sector_size, from = j->sectors[j->newest].end;

    if (j->erased < 0)
        return UNKNOWN;
    while (end > from && p[end - 1] == j->erased)
        end--;
    return end - from;
}

static const char *hash_name(uint32_t hash)
{
    static const char *const names[] = { "SipHash", "HalfSipHash", "FNV-1a" };

    return hash >= 1 && hash <= 3 ? names[hash - 1] : "unknown";
}

static void put_hex(const uint8_t *p, size_t len)
{
    while (len--)
        printf("%02x", *p++);
}

static void put_hex_field(const char *name, const uint8_t *p, size_t len)
{
    printf("\"%s\":\"", name);
    put_hex(p, len);
    putchar('"');
}

static void put_number_field(const char *name, uint64_t n)
{
    if (n == UNKNOWN)
        printf(",\"%s\":null", name);
    else
        printf(",\"%s\":%llu", name, (unsigned long long)n);
}

/* Bytes as text: what is not printable, and backslashes, as \\xNN. */
static void put_text(const uint8_t *p, size_t len)
{
    for (; len--; p++)
        if (*p > ' ' && *p < 127 && *p != '\\')
            putchar(*p);
        else
            printf("\\x%02x", *p);
}

/* A string; bytes that are not ASCII, which a path may have, as \\u00NN. */
static void put_string(const char *text)
{
    putchar('"');
    for (; *text; text++)
        if ((unsigned char)*text < ' ' || (unsigned char)*text > 126 ||
            *text == '"' || *text == '\\')
            printf("\\u%04x", (unsigned char)*text);
        else
            putchar(*text);
    putchar('"');
}

static void json_key(const journal *j, const entry *e)
{
    putchar('{');
    put_hex_field("scope", e->claim.scope, e->claim.scope_len);
    putchar(',');
    put_hex_field("key", e->claim.key, e->claim.key_len);
    printf(",\"state\":\"%s\",\"undelivered\":%s,\"attempts\":%lu", status(e),
           undelivered(e) ? "true" : "false", (unsigned long)e->claim.attempts);
    put_number_field("age_ms", age(j, e));
    put_number_field("left_ms", left(j, e));
    put_number_field("response_len", response_len(e));
    printf(",\"code\":%ld,\"fingerprint\":\"%016llx\",\"token\":%llu",
           e->status == OUTCOME ? (long)e->outcome.code : 0L,
           (unsigned long long)e->claim.fingerprint,
           (unsigned long long)e->claim.token);
    if (j->o->hex && e->status == OUTCOME) {
        putchar(',');
        put_hex_field("response", e->outcome.response, e->outcome.response_len);
    }
    putchar('}');
}

static void json_sector(const journal *j, uint32_t sector)
{
    const ring_sector *s = &j->sectors[sector];

    printf("{\"sector\":%lu,\"use\":\"%s\"", (unsigned long)sector,
           use(j, sector));
    put_number_field("sequence", s->headers ? s->h.sequence : UNKNOWN);
    put_number_field("time_ms", s->headers ? s->h.time : UNKNOWN);
    printf(",\"first_of_boot\":%s",
           s->headers && s->h.flags & FIRST_OF_BOOT ? "true" : "false");
    put_number_field("records", s->needed ? s->records : UNKNOWN);
    put_number_field("end", s->needed && s->headers ? s->end : UNKNOWN);
    putchar('}');
}

static void json_head(const journal *j)
{
    const header *h = &j->geometry;
    int known = j->newest != UINT32_MAX;

    printf("{\"file\":");
    put_string(j->o->path);
    printf(",\"verdict\":\"%s\",\n\"format\":", verdict(j));
    if (!j->sectors) {
        printf("null");
    } else {
        printf("{\"version\":1,\"hash\":\"%s\",\"secret_check\":\"%04lx\"",
               hash_name(h->hash), (unsigned long)h->secret);
        put_number_field("records_for_it", j->records_for_it);
        put_number_field("granule", h->granule);
        put_number_field("sector_size", h->sector_size);
        put_number_field("sector_count", h->sector_count);
        put_number_field("erased", j->erased < 0 ? UNKNOWN
                                                 : (uint64_t)j->erased);
        putchar('}');
    }
    h = known ? &j->sectors[j->newest].h : h;
    printf(",\n\"boots_seen\":%lu", (unsigned long)j->boot_count);
    put_number_field("now_ms", j->now);
    put_number_field("sequence", known ? h->sequence : UNKNOWN);
    put_number_field("known_damage", known ? h->known : 0);
    put_number_field("doubt_ms",
                     known && h->doubt > j->now ? h->doubt - j->now : 0);
    put_number_field("tail", known ? tail(j) : UNKNOWN);
    put_number_field("state_len", j->state_len);
    if (j->o->hex) {
        putchar(',');
        put_hex_field("state", j->state, j->state_len);
    }
}

static void json(const journal *j)
{
    json_head(j);
    printf(",\n\"keys\":[");
    for (size_t i = 0; i < j->key_count; i++) {
        printf(i ? ",\n" : "\n");
        json_key(j, j->keys[i]);
    }
    printf("],\n\"sectors\":[");
    for (uint32_t i = 0; j->sectors && i < j->geometry.sector_count; i++) {
        printf(i ? ",\n" : "\n");
        json_sector(j, i);
    }
    printf("],\n\"damage\":[");
    for (size_t i = 0; i < j->stretch_count; i++) {
        const stretch *s = &j->stretches[i];
        printf("%s{\"what\":\"%s\",\"sector\":%lu,\"at\":%lu,\"len\":%lu}",
               i ? ",\n" : "\n", s->what, (unsigned long)s->sector,
               (unsigned long)s->at, (unsigned long)s->len);
    }
    printf("]}\n");
}

/* Milliseconds, or a dash, in a column. */
static void table_ms(uint64_t ms)
{
    if (ms == UNKNOWN)
        printf(" %12s", "-");
    else
        printf(" %10llu.%llu", (unsigned long long)(ms / 1000),
               (unsigned long long)(ms % 1000 / 100));
}

static void table_key(const journal *j, const entry *e)
{
    printf("%-11s %-5s %3lu", status(e), undelivered(e) ? "owed" : "",
           (unsigned long)e->claim.attempts);
    table_ms(age(j, e));
    table_ms(left(j, e));
    if (response_len(e) == UNKNOWN)
        printf(" %6s ", "-");
    else
        printf(" %6llu ", (unsigned long long)response_len(e));
    printf(" %6ld  ", e->status == OUTCOME ? (long)e->outcome.code : 0L);
    put_text(e->claim.scope, e->claim.scope_len);
    putchar(' ');
    put_text(e->claim.key, e->claim.key_len);
    if (j->o->hex && e->status == OUTCOME) {
        printf("\n    ");
        put_hex(e->outcome.response, e->outcome.response_len);
    }
    putchar('\n');
}

static void table_head(const journal *j)
{
    const header *h = &j->geometry;

    printf("%s: %s", j->o->path, verdict(j));
    if (j->sectors)
        printf(", %lu sectors of %lu bytes, granule %lu, %s, check of the "
               "secret %04lx",
               (unsigned long)h->sector_count, (unsigned long)h->sector_size,
               (unsigned long)h->granule, hash_name(h->hash),
               (unsigned long)h->secret);
    putchar('\n');
    if (j->newest == UINT32_MAX)
        return;
    h = &j->sectors[j->newest].h;
    printf("time %llu ms, each sector begun about %lu times, %lu bytes of "
           "state\n",
           (unsigned long long)j->now,
           (unsigned long)(h->sequence / h->sector_count),
           (unsigned long)j->state_len);
    if (tail(j) && tail(j) != UNKNOWN)
        printf("%llu bytes behind the newest record that are none: torn, old, "
               "or damaged\n", (unsigned long long)tail(j));
    if (h->doubt > j->now)
        printf("after a loss: unknown keys may be lost ones for %llu ms\n",
               (unsigned long long)(h->doubt - j->now));
    if (j->o->hex && j->state_len) {
        put_hex(j->state, j->state_len);
        putchar('\n');
    }
}

static void table(const journal *j)
{
    table_head(j);
    if (j->key_count)
        printf("\nstate       owed  try      age, s      left, s  bytes    "
               "code  scope key\n");
    for (size_t i = 0; i < j->key_count; i++)
        table_key(j, j->keys[i]);
    if (j->sectors)
        printf("\nsector  use         sequence       time, ms  records  end\n");
    for (uint32_t i = 0; j->sectors && i < j->geometry.sector_count; i++) {
        const ring_sector *s = &j->sectors[i];
        printf("%6lu  %-10s", (unsigned long)i, use(j, i));
        if (s->headers)
            printf("%10lu %14llu", (unsigned long)s->h.sequence,
                   (unsigned long long)s->h.time);
        if (s->headers && s->needed)
            printf(" %8lu %6lu", (unsigned long)s->records,
                   (unsigned long)s->end);
        printf("%s\n", s->headers && s->h.flags & FIRST_OF_BOOT ? "  restart"
                                                                : "");
    }
    for (size_t i = 0; i < j->stretch_count; i++)
        printf("damage: sector %lu, at %lu, %lu bytes: %s\n",
               (unsigned long)j->stretches[i].sector,
               (unsigned long)j->stretches[i].at,
               (unsigned long)j->stretches[i].len, j->stretches[i].what);
}

/* --------------------------------------------------------------------- main */

/* The smallest power of two that is twice the records that fit, or more. */
static size_t slots_for(size_t size)
{
    size_t n = 16;

    while (n < size / 4)
        n *= 2;
    return n;
}

/* Reads the journal.  False if it is none. */
static int read_journal(journal *j)
{
    const header *h = &j->geometry;

    j->newest = UINT32_MAX;
    j->erased = -1;
    if (!find_geometry(j)) {
        return is_blank_somehow(j);
    }
    j->sectors = (ring_sector *)get(h->sector_count, sizeof *j->sectors);
    for (uint32_t i = 0; i < h->sector_count; i++)
        sector_read(j, &j->sectors[i], sector_bytes(j, i));
    find_erased(j);
    if (!sector_bytes(j, h->sector_count - 1))
        note_damage(j, (uint32_t)(j->size / h->sector_size), 0, 0,
                    "the image ends");
    find_check(j);
    if (!find_newest(j)) {
        j->newest = UINT32_MAX;
        return 1;
    }
    j->entry_count = slots_for(j->size);
    j->entries = (entry *)get(j->entry_count, sizeof *j->entries);
    j->claims = (latest *)get(j->entry_count, sizeof *j->claims);
    read_needed(j);
    find_keys(j);
    return 1;
}

static uint8_t *load(const char *path, size_t *size)
{
    FILE *f = fopen(path, "rb");
    uint8_t *bytes = NULL;
    size_t room = 0, n = 1;

    for (*size = 0; f && n; *size += n) {
        if (*size == room) {
            uint8_t *more = (uint8_t *)realloc(bytes, room = 2 * room + 65536);
            if (!more)
                break;
            bytes = more;
        }
        n = fread(bytes + *size, 1, room - *size, f);
    }
    if (!f || n || ferror(f)) {
        perror(path);
        exit(NO_JOURNAL);
    }
    fclose(f);
    return bytes;
}

static void usage(void)
{
    fputs("usage: inspect [--json] [--hex] [--retention MS] [--offset N]\n"
          "               [--sector-size N] [--granule N] [--erased N] FILE\n"
          "  --json       for programs\n"
          "  --hex        responses and state, too\n"
          "  --retention  the table's default: drops keys that are over\n"
          "  --offset     where in the file the journal begins\n"
          "  others       what the headers must say if there are several, and\n"
          "               what they would say if none is readable\n"
          "exit status: 0 sound or blank, 1 damaged, 2 not a journal\n",
          stderr);
    exit(NO_JOURNAL);
}

/* Takes an option that has a number.  False if it is not one of them. */
static int parse_number(options *o, const char *name, const char *value)
{
    const struct { const char *name; uint32_t *value; } numbers[] = {
        { "--retention", &o->retention }, { "--offset", &o->offset },
        { "--sector-size", &o->sector_size }, { "--granule", &o->granule },
        { "--erased", &o->erased },
    };
    char *end;

    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (!strcmp(name, numbers[i].name) && value) {
            *numbers[i].value = (uint32_t)strtoul(value, &end, 0);
            return end != value && !*end;
        }
    return 0;
}

static void parse(options *o, char **argv)
{
    while (*++argv) {
        if (!strcmp(*argv, "--json"))
            o->json = 1;
        else if (!strcmp(*argv, "--hex"))
            o->hex = 1;
        else if (**argv != '-' && !o->path)
            o->path = *argv;
        else if (parse_number(o, *argv, argv[1]))
            argv++;
        else
            usage();
    }
    if (!o->path)
        usage();
}

int main(int argc, char **argv)
{
    options o = { .offset = 0, .retention = UINT32_MAX,
                  .sector_size = UINT32_MAX, .granule = UINT32_MAX,
                  .erased = UINT32_MAX };
    journal j = { .o = &o };
    uint8_t *bytes;
    size_t size;
    int damaged;

    (void)argc;
    parse(&o, argv);
    bytes = load(o.path, &size);
    j.bytes = o.offset < size ? bytes + o.offset : bytes;
    j.size = o.offset < size ? size - o.offset : 0;
    if (!read_journal(&j)) {
        fprintf(stderr, "%s: not a journal of idem.h, version 1\n", o.path);
        free(bytes);
        return NO_JOURNAL;
    }
    (o.json ? json : table)(&j);
    damaged = j.stretch_count != 0;
    free(j.sectors);
    free(j.boots);
    free(j.entries);
    free(j.claims);
    free(j.keys);
    free(j.stretches);
    free(bytes);
    return damaged ? DAMAGED : SOUND;
}
