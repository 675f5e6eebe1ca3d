/* SPDX-License-Identifier: 0BSD */
/*
 * The protocol of idem.h, without its bytes: two workers, two keys, leases that
 * end at any time, power cuts at any time, and a journal of which nothing is
 * known but the rules R1 to R4 of the manual (>>recovery).  Spin visits every
 * state there is.
 *
 * What a cut interrupts is in doubt, for ever: a record is `weak`, and reads or
 * does not, anew at each opening; a header that was being programmed makes one
 * more `version` of the journal, and each opening may find any of them.  The
 * first write of a boot turns to a new sector: if its header gets whole, there
 * is one version again, with what this boot has seen.
 *
 * Checked, as assertions:
 *
 *     S1  only the claim granted last, in this boot, completes (fencing)
 *     S2  an outcome that was acknowledged, or replayed once, is replayed
 *     S4  IDEM_EXECUTE only if nothing may have had an effect
 *
 * With one of these it must fail (tests/spin.sh):
 *
 *     BROKEN_FENCE    completing asks not whose claim is current
 *     BROKEN_CLAIM    the claim is written after the effect
 *     BROKEN_CONFIRM  the newest record is not written once more (R2, R4)
 *     BROKEN_RELY     ... not before an answer that relies on it (R4)
 *     BROKEN_BEHIND   the first write of a boot goes behind the doubt (R1)
 *     BROKEN_HEADER   a header in doubt may count again later (R3)
 *     BROKEN_REPLY    acknowledged before it is durable
 */
#ifndef CUTS
#define CUTS 2
#endif
#ifndef BEGINS
#define BEGINS 5                    /* calls of idem_begin, by all */
#endif
#define KEYS     2
#define VERSIONS (CUTS + 1)

/* What is known of a key: its status, and the token of its claim. */
#define UNKNOWN  0
#define CLAIMED  1
#define FINISHED 2
#define RECORD(status, token) ((status) + 4 * (token))
#define STATUS(record) ((record) & 3)

/* The journal. */
byte logs[VERSIONS * KEYS];         /* what each version has of each key */
byte weak_key[VERSIONS] = KEYS;     /* and its weak record; KEYS: none */
byte weak_record[VERSIONS];
byte versions = 1;

/* The table. */
byte ram[KEYS];
bool cut_short[KEYS];               /* the claim is of an earlier boot */
bool over[KEYS];                    /* its lease has ended */
byte version;                       /* that this opening has found */
bool seen;                          /* its weak record was read */
bool turned;                        /* this boot has written */
byte token;
bool alive[2];                      /* a worker was not cut since it began */
byte cuts, begins;
bool lost;                          /* power went in the call */

/* What the promises are about. */
byte acknowledged[KEYS];            /* token of the outcome; 0: none */
bool effect[KEYS];                  /* there may have been one */
byte latest[KEYS];                  /* token granted last */

byte i;                             /* in atomic steps only, 0 outside */

inline open_table()
{
    alive[0] = false;
    alive[1] = false;
    turned = false;
    seen = false;
    version = 0;
    do
    :: version + 1 < versions -> version++
    :: break
    od;
    i = 0;
    do
    :: i < KEYS -> ram[i] = logs[version * KEYS + i]; i++
    :: else -> break
    od;
    if
    :: weak_key[version] < KEYS ->
        ram[weak_key[version]] = weak_record[version];
        seen = true
    :: true
    fi;
    i = 0;
    do
    :: i < KEYS ->
        cut_short[i] = STATUS(ram[i]) == CLAIMED;
        over[i] = false;
        i++
    :: else -> break
    od;
    i = 0
}

/* The first write of a boot: what it has seen is in a new version, alone. */
inline turn()
{
    if
    :: cuts < CUTS ->               /* in the header: one version more */
        cuts++;
        lost = true;
        i = 0;
        do
        :: i < KEYS -> logs[versions * KEYS + i] = ram[i]; i++
        :: else -> break
        od;
        weak_key[versions] = KEYS;
        versions++;
        open_table()
    :: true ->
        i = 0;
        do
        :: i < KEYS ->
#ifdef BROKEN_CONFIRM
            logs[i] = logs[version * KEYS + i];
#else
            logs[i] = ram[i];
#endif
            i++
        :: else -> break
        od;
#ifdef BROKEN_CONFIRM
        weak_key[0] = weak_key[version];
        weak_record[0] = weak_record[version];
#else
        weak_key[0] = KEYS;
        weak_record[0] = 0;
#endif
#ifndef BROKEN_HEADER
        do                          /* what is no more is the same for Spin */
        :: versions > 1 ->
            versions--;
            logs[versions * KEYS] = 0;
            logs[versions * KEYS + 1] = 0
        :: else -> break
        od;
#endif
        version = 0;
        turned = true;
        i = 0
    fi
}

/* Writes what is new of a key; with `lost` it is not known what came of it. */
inline write(key, record)
{
    lost = false;
#ifdef BROKEN_BEHIND
    if
    :: !turned && weak_key[version] < KEYS && !seen ->
        weak_key[version] = key;    /* it is programmed over the weak one */
        weak_record[version] = record
    :: else ->
#endif
    if
    :: !turned -> turn()
    :: else
    fi;
    if
    :: !lost && cuts < CUTS ->
        cuts++;
        lost = true;
        weak_key[0] = key;
        weak_record[0] = record;
        open_table()
    :: !lost -> logs[key] = record
    :: lost
    fi
#ifdef BROKEN_BEHIND
    fi
#endif
}

/* Whether what is known of a key may look different at the next opening. */
#define DIFFERS(v, key) \
    (v < versions && (logs[(v) * KEYS + (key)] != ram[key] || \
                      weak_key[v] == (key)))
#define UNSURE(key) \
    (!turned && (DIFFERS(0, key) || DIFFERS(1, key) || \
                 (CUTS > 1 && DIFFERS(VERSIONS - 1, key))))

/* idem_begin; `mine` is the token of the claim, 0 if there is none. */
inline begin(key)
{
    begins++;
    mine = 0;
    lost = false;
#if !defined BROKEN_RELY && !defined BROKEN_BEHIND
    if
    :: UNSURE(key) -> turn()
    :: else
    fi;
#endif
    if
    :: lost
    :: !lost && STATUS(ram[key]) == FINISHED ->     /* IDEM_REPLAY */
        assert(!acknowledged[key] || acknowledged[key] == ram[key] / 4);
        acknowledged[key] = ram[key] / 4
    :: !lost && STATUS(ram[key]) == CLAIMED && !cut_short[key] && !over[key]
                                                    /* IDEM_BUSY */
    :: !lost && (STATUS(ram[key]) == UNKNOWN ||
                 (STATUS(ram[key]) == CLAIMED &&
                  (cut_short[key] || over[key]))) ->
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
            cut_short[key] = false;
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
#define CURRENT(key) (ram[key] == RECORD(CLAIMED, mine) && !cut_short[key])
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
    :: atomic { cuts < CUTS -> cuts++; open_table() }
    :: atomic { begins >= BEGINS -> break }
    od
}

init {
    atomic { run Worker(0); run Worker(1); run World() }
}
