/* SPDX-License-Identifier: 0BSD */
/*
 * The protocol of idem.h, without its bytes: two workers, two keys, leases that
 * end at any time, power cuts at every step, and a journal of which nothing is
 * known but the table of a rotation and the rules R1 to R5 of the manual
 * (>>recovery).  Spin visits every state there is.
 *
 * A rotation erases, relocates, writes the header, then the commit record; the
 * record follows.  A write that a cut interrupts is there from then on or is
 * not; or, UNSTABLE times, it is there at one opening and not at another.  A
 * header with a commit record is the head; later ones without one do not count.
 *
 * Checked, as assertions:
 *
 *     S1  only the claim granted last, in this boot, completes (fencing)
 *     S2  an outcome that was acknowledged, or replayed once, is replayed
 *     S4  IDEM_EXECUTE only if nothing may have had an effect
 *
 * With one of these it must fail (prove.sh):
 *
 *     BROKEN_FENCE    completing asks not whose claim is current
 *     BROKEN_CLAIM    the claim is written after the effect
 *     BROKEN_REPLY    acknowledged before it is durable
 *     BROKEN_COMMIT   a header counts without a commit record (R2)
 *     BROKEN_RELOCATE header and commit come before the relocated records (R2)
 *     BROKEN_CONFIRM  the newest record is not rewritten (R3)
 *     BROKEN_RELY     ... not before an answer that relies on it (R3)
 *     BROKEN_BEHIND   the first record of a boot follows a torn one (R3)
 */
#ifndef CUTS
#define CUTS 2
#endif
#ifndef UNSTABLE
#define UNSTABLE 1
#endif
#ifndef BEGINS
#define BEGINS 5                    /* calls of idem_begin, by all */
#endif
#define KEYS  2
#define HEADS (CUTS + 2)

/* What is known of a key: its status, and the token of its claim. */
#define UNKNOWN  0
#define CLAIMED  1
#define FINISHED 2
#define RECORD(status, token) ((status) + 4 * (token))
#define STATUS(record) ((record) & 3)

/* Whether something in the storage is there. */
#define NO      0
#define YES     1
#define MAYBE   2                   /* unstable */

/* The journal: the oldest head that may be taken for the newest, and those that
   were tried after it. */
byte heads = 1;
byte header[HEADS];
byte commit[HEADS];
byte record_of[HEADS * KEYS];       /* of a key, in it or in those before */
byte newest[HEADS] = KEYS;          /* the key of its newest record */
byte marginal[HEADS];               /* an unstable record, and */
byte marginal_key[HEADS] = KEYS;    /* its key; KEYS: none */

/* The table. */
byte ram[KEYS];
bool interrupted[KEYS];             /* the claim is of an earlier boot */
bool over[KEYS];                    /* its lease has ended */
byte head;                          /* that this opening has found */
byte before = YES;                  /* the one before it, with what was */
                                    /* relocated there */
byte last = KEYS;                   /* the key of the newest record it has read */
bool rotated;                       /* this boot has written */
byte token;
bool alive[2];                      /* a worker was not cut since it began */
byte cuts, begins, unstable_cuts;
bool lost;                          /* power went in the call */
byte torn;                          /* what it left */

/* What the promises are about. */
byte acknowledged[KEYS];            /* token of the outcome; 0: none */
bool effect[KEYS];                  /* there may have been one */
byte latest[KEYS];                  /* token granted last */

byte i;                             /* in atomic steps only, 0 outside */

/* Looks for something that may be there. */
inline look(what, found)
{
    found = what == YES;
    if
    :: what == MAYBE -> found = true
    :: true
    fi
}

inline open_table()
{
    alive[0] = false;
    alive[1] = false;
    rotated = false;
    head = 0;
    last = newest[0];
    for (i : 1 .. heads - 1) {
        look(header[i], lost);
#ifndef BROKEN_COMMIT
        if
        :: lost -> look(commit[i], lost)
        :: else
        fi;
#endif
        if
        :: lost -> head = i; last = newest[i]
        :: else
        fi
    }
    ram[0] = record_of[head * KEYS];
    ram[1] = record_of[head * KEYS + 1];
    if
    :: marginal_key[head] < KEYS -> ram[marginal_key[head]] = marginal[head]
    :: marginal_key[head] < KEYS -> last = KEYS
    :: marginal_key[head] == KEYS
    fi;
    look(before, lost);
    if
    :: !lost -> ram[0] = UNKNOWN; ram[1] = UNKNOWN
    :: else
    fi;
    for (i : 0 .. KEYS - 1) {
        interrupted[i] = STATUS(ram[i]) == CLAIMED;
        over[i] = false
    }
    i = 0;
    lost = true                     /* whoever called is no more */
}

/* Power goes; `torn` is what becomes of what was written. */
inline cut()
{
    cuts++;
    lost = true;
    if
    :: torn = NO
    :: torn = YES
    :: unstable_cuts < UNSTABLE -> torn = MAYBE; unstable_cuts++
    fi
}

/* Nothing is there any more of what was tried from a head on; what is no more
   is the same for Spin. */
inline clear(from)
{
    do
    :: heads > from ->
        heads--;
        header[heads] = NO;
        commit[heads] = NO;
        record_of[heads * KEYS] = 0;
        record_of[heads * KEYS + 1] = 0;
        newest[heads] = KEYS;
        marginal[heads] = 0;
        marginal_key[heads] = KEYS
    :: else -> break
    od
}

/* Relocates all that is known into the head that is tried: more than must be,
   and the same as an older head still has. */
inline relocate()
{
    heads = head + 2;
    record_of[(head + 1) * KEYS] = ram[0];
    record_of[(head + 1) * KEYS + 1] = ram[1]
}

/* The head that was tried is the oldest from now on. */
inline count()
{
    before = (head > 0 -> header[head] : before);
#ifdef BROKEN_CONFIRM
    record_of[0] = record_of[head * KEYS];
    record_of[1] = record_of[head * KEYS + 1];
    newest[0] = newest[head];
    marginal[0] = marginal[head];
    marginal_key[0] = marginal_key[head];
#else
    record_of[0] = ram[0];
    record_of[1] = ram[1];
    newest[0] = KEYS;
    marginal[0] = 0;
    marginal_key[0] = KEYS;
#endif
    clear(1);
    head = 0;
    last = KEYS;
    rotated = true
}

/* The first write of a boot begins a new head. */
inline rotate()
{
    if
    :: cuts < CUTS ->               /* in erasing what was tried before */
        cut();
        if
        :: torn == NO -> clear(head + 1)
        :: else
        fi;
        open_table()
    :: cuts < CUTS ->               /* in relocating, or in the header */
        clear(head + 1);
        cut();
        relocate();
#ifdef BROKEN_RELOCATE
        record_of[(head + 1) * KEYS] = UNKNOWN;
        commit[head + 1] = YES;
        torn = YES;
#endif
        header[head + 1] = torn;
        open_table()
    :: cuts < CUTS ->               /* in the commit record */
        clear(head + 1);
        cut();
        relocate();
        header[head + 1] = YES;
        commit[head + 1] = torn;
        open_table()
    :: true -> count()
    fi
}

/* Writes what is new of a key; with `lost` it is not known what came of it. */
inline write(key, record)
{
    lost = false;
    if
#ifdef BROKEN_BEHIND
    :: !rotated && last == KEYS && marginal_key[head] < KEYS ->
        marginal[head] = record;    /* programmed over the torn one */
        marginal_key[head] = key;
        newest[head] = key
    :: !rotated && !(last == KEYS && marginal_key[head] < KEYS) -> rotate()
#else
    :: !rotated -> rotate()
#endif
    :: rotated
    fi;
    if
    :: lost
    :: !lost && rotated && cuts < CUTS ->
        cut();
        newest[0] = key;
        if
        :: torn == YES -> record_of[key] = record
        :: torn == MAYBE -> marginal[0] = record; marginal_key[0] = key
        :: torn == NO -> newest[0] = KEYS
        fi;
        open_table()
    :: !lost && rotated ->
        record_of[key] = record;
        newest[0] = key;
        if
        :: marginal_key[0] == key -> marginal_key[0] = KEYS; marginal[0] = 0
        :: else
        fi
    :: !lost && !rotated
    fi;
    torn = NO
}

/* idem_begin; `mine` is the token of the claim, 0 if there is none. */
inline begin(key)
{
    begins++;
    mine = 0;
    lost = false;
#if !defined BROKEN_RELY
    if
    :: !rotated && last == key -> rotate()
    :: else
    fi;
#endif
    if
    :: lost
    :: !lost && STATUS(ram[key]) == FINISHED ->     /* IDEM_REPLAY */
        assert(!acknowledged[key] || acknowledged[key] == ram[key] / 4);
        acknowledged[key] = ram[key] / 4
    :: !lost && STATUS(ram[key]) == CLAIMED && !interrupted[key] && !over[key]
                                                    /* IDEM_BUSY */
    :: !lost && (STATUS(ram[key]) == UNKNOWN ||
                 (STATUS(ram[key]) == CLAIMED &&
                  (interrupted[key] || over[key]))) ->
        first = STATUS(ram[key]) == UNKNOWN;        /* IDEM_EXECUTE, or */
        token++;                                    /* IDEM_RECOVER */
#ifndef BROKEN_CLAIM
        write(key, RECORD(CLAIMED, token));
#endif
        if
        :: !lost ->
            assert(!acknowledged[key]);             /* S2 */
            assert(!first || !effect[key]);         /* S4 */
            ram[key] = RECORD(CLAIMED, token);
            interrupted[key] = false;
            over[key] = false;
            mine = token;
            alive[me] = true;
            latest[key] = token
        :: else
        fi
    fi
}

#ifdef BROKEN_FENCE
#define CURRENT(key) (STATUS(ram[key]) == CLAIMED)
#else
#define CURRENT(key) (ram[key] == RECORD(CLAIMED, mine) && !interrupted[key])
#endif

/* idem_complete */
inline complete(key)
{
    if
    :: CURRENT(key) ->
        assert(mine == latest[key] && alive[me]);   /* S1 */
        assert(!acknowledged[key]);
#ifdef BROKEN_REPLY
        acknowledged[key] = mine;
#endif
        write(key, RECORD(FINISHED, mine));
        if
        :: !lost ->
            ram[key] = RECORD(FINISHED, mine);
            acknowledged[key] = mine
        :: else
        fi
    :: else                                         /* IDEM_E_FENCED */
    fi
}

/* idem_release, of a first attempt without an effect */
inline release(key)
{
    if
    :: CURRENT(key) && !effect[key] ->
        write(key, UNKNOWN);
        if
        :: !lost -> ram[key] = UNKNOWN
        :: else
        fi
    :: else
    fi
}

proctype Worker(bit me)
{
    byte key, mine;
    bool first;

    do
    :: atomic {
        begins < BEGINS ->
        if
        :: key = 0
        :: key = 1
        fi;
        begin(key)
       }
       if
       :: mine ->
           if
           :: atomic { alive[me] -> effect[key] = true }
           :: true                  /* nothing, or not in this boot */
           fi;
           if
           :: atomic { complete(key) }
           :: atomic { first -> release(key) }
           :: true                  /* given up: the lease ends */
           fi
       :: else
       fi;
       mine = 0; first = false; alive[me] = false; key = 0
    :: atomic { begins >= BEGINS -> break }
    od
}

/* Leases end, and power goes between two calls. */
proctype World()
{
    do
    :: atomic { STATUS(ram[0]) == CLAIMED && !over[0] -> over[0] = true }
    :: atomic { STATUS(ram[1]) == CLAIMED && !over[1] -> over[1] = true }
    :: atomic { cuts < CUTS -> cuts++; open_table(); lost = false }
    :: atomic { begins >= BEGINS -> break }
    od
}

init {
    atomic { run Worker(0); run Worker(1); run World() }
}
