/* idem.h  0.1.0   execute each command at most once per idempotency key
   SPDX-License-Identifier: 0BSD        (the text is at the end of the file)

   A device gets commands over a link that loses, repeats, delays and reorders
   them.  The sender cannot tell a lost command from a lost answer, so it sends
   again: with the same idempotency key.  This header is the device's memory of
   what it has been asked.  Ask idem_begin() what to do with a command, do that.

   In one C or C++ file of the program:          in every other file:
       #define IDEM_IMPLEMENTATION                   #include "idem.h"
       #include "idem.h"

   C99 or C++11.  Memory is yours, time is an argument.  No allocation, no
   clock, no globals, no recursion, no floating point, no dependencies.

   Contents (search for the marker)
     manual     >>synopsis >>idea >>answers >>replying >>identity >>time
                >>full >>delivery >>memory >>options >>concurrency >>patterns
                >>words
     interface  >>config >>types >>functions
     code       >>basics >>hash >>clock >>slots >>index >>order >>keys
                >>check >>public
     licence    >>licence

   ---------------------------------------------------------------------------
   >>synopsis

   ```c
   #define IDEM_IMPLEMENTATION
   #include "idem.h"
   #include <stdio.h>
   #include <string.h>

   static const idem_config config = {
       .capacity = 64,                    // keys remembered at the same time
       .key_max = 24,                     // bytes of scope and key together
       .response_max = 16,                // bytes of the longest answer
       .secret = { 0x5b, 0x0e, 0x91, 0x27, 0xd4, 0x66, 0x8f, 0x13,  // random,
                   0x30, 0xa8, 0x4c, 0xf7, 0x1d, 0xb2, 0x69, 0xe5 } // yours
   };
   static idem_table table;
   static uint32_t memory[IDEM_MEMORY_SIZE(64, 24, 16, 0) / 4];
   extern uint32_t millis(void);          // any millisecond tick

   static const char *finish(idem_claim *claim, int failed, const char *answer)
   {
       idem_outcome outcome = { .failed = (uint8_t)failed, .response = answer,
                                .response_len = strlen(answer) + 1 };
       if (idem_complete(&table, claim, &outcome, millis()) < 0)
           return "error";       // not recorded: never report it as done
       return answer;
   }

   static const char *on_command(const char *sender, const char *key,
                                 const char *command)
   {
       static char answer[16];
       idem_request request = {
           .scope = sender, .scope_len = strlen(sender),
           .key = key, .key_len = strlen(key),
           .payload = command, .payload_len = strlen(command) };
       idem_reply reply = { .buffer = answer, .buffer_size = sizeof answer };
       idem_claim claim;

       switch (idem_begin(&table, &claim, &reply, &request, millis())) {
       case IDEM_EXECUTE:        // first time: the claim is yours
           printf("pump: %s\n", command);
           return finish(&claim, 0, "poured");
       case IDEM_RECOVER:        // an attempt was cut short: never pour twice
           return finish(&claim, 1, "check the cup");
       case IDEM_REPLAY:   return answer;          // what was answered before
       case IDEM_BUSY:     return "wait";          // being executed right now
       case IDEM_MISMATCH: return "key reused";    // for another command
       default:            return "refused";       // full, exhausted, ...
       }
   }

   uint32_t millis(void) { static uint32_t tick; return tick += 100; }

   int main(void)
   {
       if (idem_open(&table, &config, memory, sizeof memory, millis()) < 0)
           return 1;
       puts(on_command("panel", "42", "pour 5 ml"));   // pump, poured
       puts(on_command("panel", "42", "pour 5 ml"));   // poured
       puts(on_command("panel", "42", "pour 9 ml"));   // key reused
       return 0;
   }
   ```
   ```text
   pump: pour 5 ml
   poured
   poured
   key reused
   ```

   ---------------------------------------------------------------------------
   >>idea

   The life of a key:

                     EXECUTE               complete
         unknown ---------------> claimed -----------> finished
          ^ ^ ^                    |  | ^               |    |  ^
          | | |      release       |  | |  RECOVER      |    |  | REPLAY
          | | +--------------------+  | +--- lease -----+    +--+
          | |                         |      over
          | +-- over, forgotten ------+                 |
          +---- retention over, evicted, forgotten -----+

     arrow                  call           what it needs
     unknown  -> claimed    idem_begin     room; answers IDEM_EXECUTE
     claimed  -> claimed    idem_begin     the lease over and attempts left;
                                           answers IDEM_RECOVER, new token
     claimed  -> finished   idem_complete  the current claim
     claimed  -> unknown    idem_release   the current claim
     claimed  -> unknown    idem_forget    the lease over
     claimed  -> unknown    (time)         one retention since the lease ended
     finished -> finished   idem_begin     nothing; answers IDEM_REPLAY
     finished -> unknown    idem_forget    nothing
     finished -> unknown    (time)         one retention since completion
     finished -> unknown    idem_begin     for another key, IDEM_EVICT_OLDEST,
                                           and the table full or the scope's
                                           quota used up

   There are no others.  What is promised (S safety, L liveness, H honesty):

     S1  At most one claim on a key is current.  A claim that is not current
         changes nothing: complete, release and renew answer IDEM_E_FENCED.
     S2  An outcome is replayed, byte for byte, until its retention ends (or it
         is forgotten by idem_forget or, if so configured, evicted).
     S3  A stored response is never given to a different payload, key or scope.
         The fingerprint is compared in every state of a key.
     S4  A command is never answered IDEM_EXECUTE if an earlier attempt may have
         had an effect: a lease that ran out answers IDEM_RECOVER until somebody
         completes, releases or forgets, or one retention has passed since it
         ended.
     S6  Time never shortens a lease or a retention: not a wrapping, stopped or
         backward tick.  Only a tick that really runs ahead can.
     S7  A call that fails changed nothing, or its contract says what.  A claim
         is admitted only if its outcome is certain to fit: completing never
         fails for want of room.
     S8  Nothing outside the given memory is touched.
     S9  Keys chosen by an enemy cost no more than random ones (keyed hash), and
         push out no other scope's records beyond the configured quota.
     L1  Every call ends in bounded steps; the bounds are in >>memory.
     L2  The table never wedges: leases end (but IDEM_LEASE_NONE, which is asked
         for), retention ends, a command whose attempts are all cut short ends
         in IDEM_EXHAUSTED.
     H1  "Exactly once" is not promised, by nature: an outside effect that is
         neither harmless to repeat nor visible afterwards may happen once too
         often or not at all when its execution is cut short.  IDEM_RECOVER is
         where you learn of it, and where you look at the world.

   This table lives in RAM: the promises hold for one boot.  After a restart it
   knows nothing, and what was executed before is IDEM_EXECUTE again; unless the
   sender tells the age of its command (idem_request.age_ms): what it first sent
   before the restart is answered IDEM_TOO_OLD.

   When not to use it: where outcomes must survive a restart and the sender
   cannot tell the age of its command; for agreement among several devices; as
   access control (a key is a name, not a password); where commands are
   idempotent by themselves ("set valve to 30 %") and their order does not
   matter.

   ---------------------------------------------------------------------------
   >>answers

   Zero and up: the call did its job.  Below zero: it refused.

     result            changed?  do next
     IDEM_OK           as asked  -
     IDEM_EXECUTE      claimed   do it, then complete (or release)
     IDEM_RECOVER      claimed   an earlier attempt was cut short: look at the
                                 world, or do it again if that is harmless, then
                                 complete; claim.attempt counts the attempts
     IDEM_REPLAY       no        send the stored outcome that is in the reply
     IDEM_BUSY         no        a live lease: the sender is to wait
                                 reply.retry_after_ms
     IDEM_MISMATCH     no        same key, other payload: refuse; the sender has
                                 a bug, or is not who it says
     IDEM_TOO_OLD      no        unknown, and older than memory reaches: refuse,
                                 executing is unsafe
     IDEM_EXHAUSTED    no        max_attempts attempts were cut short: refuse,
                                 raise an alarm
     IDEM_MORE         yes       idem_maintain has more to do
     IDEM_E_ARG        no        a caller's mistake: NULL, a table that is not
                                 open, a value out of range; or an empty key,
                                 which is the sender's, and never asserted
     IDEM_E_TOO_LARGE  no        key, response or state over its limit; or the
                                 buffer is too short, and the length is told
     IDEM_E_FULL       no        no room, or the scope's quota is used up; try
                                 after reply.retry_after_ms if that is not 0
     IDEM_E_FENCED     no        the claim is not current: throw the result away
     IDEM_E_NOT_FOUND  no        no such key, or no such outcome any more
     IDEM_E_MEMORY     no        at open: too little, or misaligned;
                                 table.needed says how many bytes would do
     IDEM_E_LOCK       no        the lock hook refused, or the call came from
                                 inside a callback

   ---------------------------------------------------------------------------
   >>replying

   What to tell the sender:

     result             HTTP                CoAP   MQTT 5 reason code
     executed, REPLAY   the outcome's own   2.04   0x00 success
     IDEM_BUSY          409 + Retry-After   5.03   0x97 quota exceeded
     IDEM_MISMATCH      422                 4.22   0x99 payload format invalid
     IDEM_TOO_OLD       410                 4.12   0x83 implementation specific
     IDEM_EXHAUSTED     500                 5.00   0x83
     IDEM_E_FULL        503 + Retry-After   5.03   0x97
     no key, too long   400                 4.00   0x83
     other errors       500                 5.00   0x80 unspecified error

   409 and 422 are those of the IETF's Idempotency-Key draft.

   ---------------------------------------------------------------------------
   >>identity

   A key is known by its scope and its bytes, both, exactly: compared in full,
   never truncated, never as a digest.  The scope says whose key it is (sender,
   topic, tenant); the empty scope is legal, the empty key is not.
   ("ab","c") and ("a","bc") are two keys.  Take the scope from what the
   transport has proved, not from what the message claims: quotas go by it.

   The fingerprint is a 64-bit hash of the payload and its length, keyed unless
   IDEM_HASH says otherwise.  It
   catches a key reused for another command (IDEM_MISMATCH, answered before
   everything else that is said of a known key).  If two spellings of a payload
   mean the same, hash a canonical form yourself, and give request.fingerprint:
   idem_fingerprint_init/update/final compute, piece by piece, what idem_begin
   computes from a payload.  Every 64-bit value is legal, zero too.

   The index uses SipHash-1-3, the fingerprint SipHash-2-4; machines below 64
   bits use HalfSipHash with the same rounds.  Both are keyed with
   config.secret, 16 bytes that nobody else knows and no two devices share.
   HalfSipHash takes the first eight bytes for the fingerprint and the last
   eight for the index; a secret of which either half is zero is refused.

   ---------------------------------------------------------------------------
   >>time

   Every call that needs the time takes a millisecond tick, now_ms: a uint32_t
   that may start anywhere and may wrap (after 49.7 days).  The table keeps its
   own logical clock, and each call adds to it what the tick has advanced since
   the call before.  A difference of half the tick's range or more is a step
   back, and adds nothing:

     up to 65.5 s    is waited out; the clock stands until the tick is again
                     where it was.  So calls may overtake one another, with
                     ticks read some time before
     more            is a tick that was reset; the clock goes on with it.  If it
                     was none, and the tick comes back to where it was, the way
                     back up is not counted

   So a stopped, reset or backward tick lengthens leases and retentions, and
   never shortens them.  Call something, idem_maintain for instance, at least
   every 24 days, or the time between is not seen.  An RTC that knows how long
   the tick stood still can tell with idem_elapse.

     lease      covers [begin, begin + lease): in the millisecond in which it
                ends it is over.  At most IDEM_LEASE_MAX (6.2 days), 0 is the
                default, IDEM_LEASE_NONE never ends while this boot lasts.
                A holder whose lease is over may still complete, renew or
                release, until somebody takes over or the key is dropped; then
                it is fenced.
     retention  covers [start, start + retention) likewise.  It starts with the
                completion; for a claim never completed, with the end of its
                lease.  At most IDEM_RETENTION_MAX (30 days), 0 is the default.

   claim.token, the fencing token, is larger than that of every earlier claim
   since the opening.  Hand it to whatever executes: a driver that refuses a
   token smaller than the largest it has seen is safe from a holder that was
   suspended, overtaken, and wakes up late.  An opening starts anew at 1: throw
   away the claims, and what the driver has seen.  (A slot keeps the token's low
   half: a claim held while 2^32 others are granted is fenced.)

   ---------------------------------------------------------------------------
   >>full

   A table holds config.capacity keys, whatever the order in which they come
   and go.  When all are live:

     IDEM_REJECT (default)   a new key is answered IDEM_E_FULL.  Known keys are
                             answered as ever, also those cut short.
     IDEM_EVICT_OLDEST       the oldest completion makes room; never a claim,
                             never an outcome whose delivery is not confirmed.
                             The evicted key comes back as IDEM_EXECUTE: this
                             is amnesia by choice; S2 and S4 hold under
                             IDEM_REJECT.

   With config.quota no scope has more live keys than that: over it, its new
   keys are answered IDEM_E_FULL or, under eviction, cost its own oldest
   finished key.  idem_horizon tells how long a finished key is really
   remembered at present.

   A request that tells its age (age_ms: how long ago the sender first sent it,
   0 if it does not say) is answered IDEM_TOO_OLD if the key is unknown and
   memory may once have held it: the age is at least the retention its outcome
   would have, or reaches back to a completion evicted from its scope, or to
   before the opening.  (Scopes share four such memories, by keyed hash: an
   eviction may make commands of another scope too old, never too young.)

   Sizing is a line in the code, checked when it is compiled:

   ```c
   #include "idem.h"
   enum { COMMANDS_PER_MINUTE = 6, RETENTION_MINUTES = 120, CAPACITY = 1024 };
   typedef char table_is_large_enough
       [COMMANDS_PER_MINUTE * RETENTION_MINUTES <= CAPACITY ? 1 : -1];
   ```

   ---------------------------------------------------------------------------
   >>delivery

   An outcome completed with `confirm` set is owed to somebody.  idem_pending
   lists what is owed, oldest first, until idem_delivered(claim) says that the
   result arrived: a queue of results, sent at least once under the same key.
   Such outcomes are not evicted.  At the end of their retention they are
   dropped like others, and counted in stats.undelivered.

   ```c
   #include "idem.h"
   extern int publish(const void *id, size_t id_len, int32_t code);

   void publish_results(idem_table *table, uint32_t now_ms)
   {
       unsigned char id[255];             // at least key_max
       idem_entry entry = { .id = id, .id_size = sizeof id };
       while (idem_pending(table, &entry, now_ms) == IDEM_OK)
           if (publish(id, entry.scope_len + entry.key_len, entry.code))
               idem_delivered(table, &entry.claim);
   }
   ```

   ---------------------------------------------------------------------------
   >>memory

   IDEM_MEMORY_SIZE(capacity, key_max, response_max, state_max) is a constant
   expression, a multiple of 4, for a static array of uint32_t.  Per key:

       key_max + response_max     as they are, together rounded up to 4
       24   stored with them: fingerprint, code, lengths, time, retention
       6    token, state, attempts
       10   finding it: two index words, a hash, two links   (28 if IDEM_WIDE)

   The table itself takes less than 192 bytes on a 32-bit machine.  It holds no
   pointer into itself and may be moved while no call is under way; the memory,
   and what config points to, may not.

   Bounds, with n = capacity.  A lookup looks at the words from the key's home
   to the next empty one: 2 or 3 on average, at worst all n in use.

     begin, known key     one lookup, one comparison, one copy of the response
     begin, new key       one lookup.  The oldest completion is dropped if it is
                          over.  If then no slot is free, and something younger
                          may be over, a look at all n slots.  To evict,
                          undelivered outcomes are stepped over.  With a quota,
                          all n slots are looked at
     complete, renew,     no lookup
     delivered, response
     release              the words from the key's home to the next empty one
     find, forget         one lookup; forget: one release
     maintain             64 slots, each at most one release
     next, pending        n slots at worst
     open                 clears all the memory
     any that is told     a look at all n slots, each at most one release, for
     the time, elapse     every 2^28 ms (3.1 days) that the clock advances, so
                          that 32 bits of time suffice: at most 8 times in one
                          call, 16 in idem_elapse

   begin, find and forget hash scope and key, begin the payload too, before the
   lock is taken; with age_ms, and to evict, the scope again.

   ---------------------------------------------------------------------------
   >>options      default, effect, and where the macro must be seen

     IDEM_IMPLEMENTATION   not set; makes the code, in one file
     IDEM_STATIC           not set; all functions static, a private copy for
                           the file with the implementation.  That file
     IDEM_API              extern; linkage of the public functions.  Every file
     IDEM_ASSERT(x)        nothing; called for a caller's mistakes (which are
                           refused all the same) and broken invariants.
                           Implementation
     IDEM_DEBUG            not set; every call but idem_open hands the result of
                           idem_check to IDEM_ASSERT.  Slow.  Implementation
     IDEM_WIDE             1 on 64-bit machines, else 0; slot numbers of 32 bits
                           for up to 16,777,215 keys; without it of 16 bits for
                           up to 32,767.  EVERY FILE: IDEM_MEMORY_SIZE depends
                           on it
     IDEM_HASH             IDEM_HASH_SIPHASH on 64-bit machines, else
                           IDEM_HASH_HALFSIPHASH; or IDEM_HASH_FNV, unkeyed, for
                           links on which nobody is hostile: whoever chooses
                           keys can make every lookup slow, and make two
                           payloads with one fingerprint.  Implementation
     IDEM_MEMCPY, IDEM_MEMSET, IDEM_MEMCMP
                           those of <string.h>; define all three and it is not
                           included.  Implementation

   ---------------------------------------------------------------------------
   >>concurrency

   Without hooks a table belongs to one thread, or to code that an interrupt
   does not enter twice.  With config.lock and config.unlock every call holds
   the lock while it looks at anything that can change (arguments are checked
   and hashed before), for the bounded time of >>memory, and runs none of your
   code meanwhile; idem_run lets go of it while your handler executes.

   lock returns 0 when it is held; otherwise the call is refused with
   IDEM_E_LOCK.  The hooks must not call the table.  A call in the middle of
   another is refused likewise, and never waits for itself: by the table, if one
   thread may take the lock twice (a recursive mutex, nested disabling of
   interrupts); by the hook, if the mutex can tell (PTHREAD_MUTEX_ERRORCHECK, a
   trylock with a limit).  A mutex that waits for its own thread is a wrong one.

   idem_check and the table's fields are read without the lock.

   ---------------------------------------------------------------------------
   >>patterns

   A command that resets the device (reboot, update): complete, and answer,
   before the effect; completed after it, the reset cuts every attempt short.
   The reset also empties this table: a duplicate that arrives after it is
   IDEM_EXECUTE, unless the sender tells its age (IDEM_TOO_OLD).

   Emergency stop: do not deduplicate.  Stopping twice is harmless, and refusing
   to stop because a table is full is not.

   A long operation renews its lease while it runs, and stops when that answers
   IDEM_E_FENCED.

   An effect that can be seen afterwards: on IDEM_RECOVER look first, and if it
   has happened, complete without doing it again.

   An effect that is the application's own state (a total, a counter): give the
   new state to idem_complete as outcome.state.  State and outcome are one: on
   IDEM_RECOVER the effect has not happened.  Each completion replaces the state
   whole: let no other command between reading it and completing.

   A transient failure (the sensor did not answer): release, and a retry is new.
   A final one (no such valve): complete it with `failed`; it is replayed.

   ---------------------------------------------------------------------------
   >>words

   key, scope        the sender's bytes naming one operation; whose key it is
   payload           the command's bytes
   fingerprint       64-bit keyed hash of the payload and its length
   claim             the right to execute, given by idem_begin
   token             the claim's number, for fencing
   lease             how long a claim is protected against being taken over
   outcome           completed or failed, a code, and the response
   response          the bytes to answer with
   replay            answering a duplicate with the stored outcome
   retention         how long an outcome is remembered
   recover           a claim on a key whose earlier attempt was cut short
   table             all of it in RAM
   slot              one key's place
   index             the open-addressed array that finds the slot
   sweep             a look at every slot
   over              of a lease, a retention: ended.  Of a key, a slot: due
   due               when a key is dropped if nothing happens: at the end of its
                     retention
   live              of a lease: not ended.  Of a key, a slot: not due
   order             the finished slots, oldest completion first
   home              the position in the index that a hash names
*/

/* ===========================================================================
   Interface
   ======================================================================== */
#ifndef IDEM_H
#define IDEM_H

/* ---------------------------------------------------------------------------
   >>config    what may be defined before the header is included
   ------------------------------------------------------------------------ */
#include <stddef.h>
#include <stdint.h>

#define IDEM_VERSION 0x000100                       /* 0.1.0, a byte a number */

#ifndef IDEM_WIDE
#if UINTPTR_MAX > 0xFFFFFFFFu
#define IDEM_WIDE 1
#else
#define IDEM_WIDE 0
#endif
#endif

#define IDEM_HASH_SIPHASH     1
#define IDEM_HASH_HALFSIPHASH 2
#define IDEM_HASH_FNV         3

#ifndef IDEM_HASH
#if UINTPTR_MAX > 0xFFFFFFFFu
#define IDEM_HASH IDEM_HASH_SIPHASH
#else
#define IDEM_HASH IDEM_HASH_HALFSIPHASH
#endif
#endif

#if IDEM_HASH != IDEM_HASH_SIPHASH && IDEM_HASH != IDEM_HASH_HALFSIPHASH && \
    IDEM_HASH != IDEM_HASH_FNV
#error "IDEM_HASH: IDEM_HASH_SIPHASH, IDEM_HASH_HALFSIPHASH or IDEM_HASH_FNV"
#endif

#ifndef IDEM_API
#ifdef IDEM_STATIC
#define IDEM_API static inline         /* inline: no warning if not used */
#else
#define IDEM_API extern
#endif
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---------------------------------------------------------------------------
   >>types

   idem_config, _request, _claim, _reply, _outcome and _entry are the interface.
   The other structs are visible so that you can place them; their fields are
   for a debugger to read, and promised only where it says so.
   ------------------------------------------------------------------------ */

/* What a call answers; the manual's table (>>answers) says what to do next. */
#define IDEM_RESULTS(X)                                                        \
    X(IDEM_OK,           0, "done")                                            \
    X(IDEM_EXECUTE,      1, "first time: the claim is yours, execute it")      \
    X(IDEM_RECOVER,      2, "the claim is yours, an attempt was cut short")    \
    X(IDEM_REPLAY,       3, "finished before: send the stored outcome")        \
    X(IDEM_BUSY,         4, "being executed: the sender is to wait")           \
    X(IDEM_MISMATCH,     5, "the key was used for another payload")            \
    X(IDEM_TOO_OLD,      6, "unknown, and older than memory reaches")          \
    X(IDEM_EXHAUSTED,    7, "all attempts allowed were cut short")             \
    X(IDEM_MORE,         8, "done, and more idle work waits")                  \
    X(IDEM_E_ARG,       -1, "an argument is impossible")                       \
    X(IDEM_E_TOO_LARGE, -2, "over the limit, or the buffer is too short")      \
    X(IDEM_E_FULL,      -3, "no room for a new key")                           \
    X(IDEM_E_FENCED,    -4, "the claim is not current")                        \
    X(IDEM_E_NOT_FOUND, -5, "no such key or outcome")                          \
    X(IDEM_E_MEMORY,    -6, "too little memory, or misaligned")                \
    X(IDEM_E_LOCK,      -7, "the lock was refused, or the call is nested")

#define IDEMI_RESULT_ENUM(name, value, text) name = value,
enum { IDEM_RESULTS(IDEMI_RESULT_ENUM) };

/* idem_reply.status, idem_entry.status */
enum {
    IDEM_IN_PROGRESS = 1,
    IDEM_COMPLETED   = 2,
    IDEM_FAILED      = 3                       /* finally: replayed likewise */
};

/* idem_config.full: what happens to a new key when all slots are live */
enum {
    IDEM_REJECT       = 0,
    IDEM_EVICT_OLDEST = 1
};

#define IDEM_LEASE_NONE    UINT32_C(0xFFFFFFFF)   /* never ends in this boot */
#define IDEM_LEASE_MAX     UINT32_C(0x20000000)   /* ms: 6.2 days */
#define IDEM_RETENTION_MAX UINT32_C(2592000000)   /* ms: 30 days */

/* The part of a hash that the index keeps, or the number of a slot. */
#if IDEM_WIDE
#define IDEM_CAPACITY_MAX  UINT32_C(16777215)
typedef uint32_t idem_number;
#else
#define IDEM_CAPACITY_MAX  UINT32_C(32767)
typedef uint16_t idem_number;
#endif

/* Kept by pointer while the table is open, never written: may be in ROM.
   Zero is the safe default of every field that does not say "no default". */
typedef struct idem_config {
    uint32_t capacity;      /* keys, 1 .. IDEM_CAPACITY_MAX; no default */
    uint32_t lease_ms;      /* default lease: 1 .. IDEM_LEASE_MAX or
                               IDEM_LEASE_NONE; 0: 30 s */
    uint32_t retention_ms;  /* default retention: 1 .. IDEM_RETENTION_MAX;
                               0: 24 h */
    uint32_t quota;         /* live keys of one scope; 0: capacity */
    uint16_t response_max;  /* bytes of the longest response, may be 0 */
    uint16_t state_max;     /* bytes of application state, may be 0 */
    uint8_t  key_max;       /* bytes of scope and key together, 1 .. 255;
                               no default */
    uint8_t  max_attempts;  /* claims granted on a key before it is
                               IDEM_EXHAUSTED, the first included; 0: 3 */
    uint8_t  full;          /* IDEM_REJECT or IDEM_EVICT_OLDEST */
    uint8_t  secret[16];    /* key of the hashes, random, this device's own;
                               neither half zero; ignored by IDEM_HASH_FNV */
    void    *lock_ctx;      /* handed to the two hooks, untouched */
    int    (*lock)(void *lock_ctx);    /* 0 when held, else the call is refused
                                          (>>concurrency); both or neither */
    void   (*unlock)(void *lock_ctx);
} idem_config;

/* One command, as it arrived.  Zero the struct, then fill in what there is. */
typedef struct idem_request {
    const void *scope;          /* whose key; may be empty */
    size_t      scope_len;
    const void *key;            /* at least one byte */
    size_t      key_len;
    const void *payload;        /* hashed, not kept; may be empty */
    size_t      payload_len;
    uint64_t    fingerprint;    /* instead of the payload, if */
    uint8_t     has_fingerprint;                          /* this is not 0 */
    uint16_t    response_size;  /* bytes to reserve; 0: response_max */
    uint32_t    lease_ms;       /* 0: the default; or IDEM_LEASE_NONE */
    uint32_t    retention_ms;   /* 0: the default */
    uint32_t    age_ms;         /* since the sender first sent it; 0: untold */
} idem_request;

/* The right to execute; the name of an outcome once it is completed.  May be
   copied and kept.  All zero is the claim that is never current. */
typedef struct idem_claim {
    uint64_t token;             /* fencing token, > 0, strictly increasing */
    uint32_t slot;
    uint32_t attempt;           /* 1 at IDEM_EXECUTE; counts to 255 */
} idem_claim;

/* What idem_begin tells beside its answer.  Set buffer and its size; the other
   fields are zeroed first and set by the answers named. */
typedef struct idem_reply {
    void    *buffer;            /* in: where a response goes; may be NULL */
    size_t   buffer_size;       /* in: bytes there */
    idem_claim claim;           /* REPLAY: names the outcome, for
                                   idem_response and idem_delivered */
    size_t   response_len;      /* REPLAY: bytes of the response.  More than
                                   buffer_size: nothing was copied */
    int      status;            /* REPLAY: IDEM_COMPLETED or IDEM_FAILED */
    int32_t  code;              /* REPLAY: outcome.code */
    uint32_t age_ms;            /* REPLAY: since the completion */
    uint32_t retry_after_ms;    /* BUSY: until the lease ends (IDEM_LEASE_NONE
                                   if never); E_FULL: until a slot may be free,
                                   0 if not known, or the quota is used up */
} idem_reply;

/* How it ended.  Zero the struct, then fill in what there is. */
typedef struct idem_outcome {
    const void *response;       /* copied; may be empty */
    size_t      response_len;   /* at most what the request reserved */
    const void *state;          /* new application state, or NULL: unchanged */
    size_t      state_len;      /* at most state_max */
    int32_t     code;           /* the application's own, replayed */
    uint8_t     failed;         /* not 0: finally failed (replayed likewise) */
    uint8_t     confirm;        /* not 0: owed until idem_delivered */
} idem_outcome;

/* One key, looked at.  Set id and id_size; zero the struct before the first
   idem_next or idem_pending.  The claim of a key in progress is not told. */
typedef struct idem_entry {
    void    *id;                /* in: where scope and key go, one after the
                                   other, if both fit; may be NULL */
    size_t   id_size;           /* in: bytes there */
    size_t   scope_len;
    size_t   key_len;
    uint64_t fingerprint;
    int      status;            /* IDEM_IN_PROGRESS, _COMPLETED, _FAILED */
    int32_t  code;              /* finished: outcome.code */
    size_t   response_len;      /* finished: bytes; in progress: reserved */
    uint32_t age_ms;            /* finished: since the completion */
    uint32_t left_ms;           /* in progress: of the lease, IDEM_LEASE_NONE
                                   if it never ends; finished: of retention */
    uint32_t attempts;          /* claims granted on the key */
    int      undelivered;       /* 1: confirm was set, delivery is owed */
    idem_claim claim;           /* finished: names the outcome */
    uint32_t cursor;            /* where idem_next goes on */
} idem_entry;

/* A slot: what is kept of one key.  Its scope, key and response follow it. */
typedef struct idem_slot {
    uint32_t time;              /* logical ms: in progress, the end of the
                                   lease; finished, the completion */
    uint32_t retention;         /* ms from then on */
    uint32_t token;             /* low half of the claim's */
    uint32_t fingerprint[2];    /* low word, high word */
    int32_t  code;
    uint16_t response_len;      /* in progress: what is reserved */
    uint8_t  scope_len;
    uint8_t  key_len;
    uint8_t  state;             /* 0: free; status, flags (>>slots) */
    uint8_t  attempts;
    idem_number hash;           /* of scope and key, as the index knows it */
} idem_slot;

/* A slot's neighbours in the order of completion (>>order), as slot numbers */
typedef struct idem_link {
    idem_number older;
    idem_number newer;          /* of a free slot: the next free one */
} idem_link;

/* A word of the index */
typedef struct idem_word {
#if IDEM_WIDE
    idem_number hash;           /* the slot's, where it costs no further look */
#endif
    idem_number slot;           /* plus one; 0: the word is empty */
} idem_word;

/* Counters since the opening, promised.  They wrap. */
typedef struct idem_stats {
    uint32_t answers[IDEM_EXHAUSTED + 1];  /* of idem_begin, by result >= 0 */
    uint32_t full;              /* begins answered IDEM_E_FULL */
    uint32_t fenced;            /* calls answered IDEM_E_FENCED */
    uint32_t expired;           /* keys dropped at the end of retention */
    uint32_t evicted;           /* finished keys dropped before it */
    uint32_t undelivered;       /* of those expired: delivery still owed */
    uint32_t backwards;         /* ticks taken as going backwards */
} idem_stats;

#define IDEMI_REACHES 4         /* a power of two */

/* A table.  Any number may be open.  No pointer into itself: it may be moved
   while no call is under way. */
typedef struct idem_table {
    uint32_t magic;             /* marks an open table */
    uint8_t  inside;            /* 1: a call is under way */
    uint16_t state_len;
    const idem_config *config;
    unsigned char *slots;       /* capacity x stride bytes */
    idem_link *links;           /* one for every slot, and the order's ends */
    idem_word *index;           /* 2 x capacity words */
    unsigned char *state;       /* application state, state_max bytes */
    size_t   stride;            /* bytes from slot to slot */
    unsigned capacity;
    unsigned index_size;        /* words */
    unsigned free;              /* first free slot; capacity: none */
    unsigned tidy;              /* slot at which idem_maintain goes on */
    uint32_t tick;              /* the now_ms that the clock followed last */
    uint32_t counted;           /* the tick up to which time was counted, before
                                   a step back that was followed; else tick */
    uint32_t clock;             /* logical ms */
    uint32_t swept;             /* clock at the last look at all slots */
    uint32_t soonest;           /* no slot is over before this time */
    uint32_t used;              /* slots in use, over ones too until they are
                                   dropped; promised */
    uint32_t pending;           /* of them: delivery owed; promised */
    uint64_t token;             /* last one granted */
    uint32_t evicted;           /* newest completion evicted, logical ms */
    uint32_t reach[IDEMI_REACHES];  /* by scope hash: newest completion that
                                       may be forgotten, logical ms */
    idem_stats stats;           /* promised */
    size_t   needed;            /* bytes of memory that would do, after an
                                   IDEM_E_MEMORY; promised */
} idem_table;

/* Hash states.  No interior pointers: may be copied, also half-way. */
typedef struct idem_siphash_state {
    uint64_t v[4];
    uint64_t word;              /* bytes of the incomplete word */
    uint8_t  len;               /* bytes so far, modulo 256 */
    uint8_t  c_rounds, d_rounds;
} idem_siphash_state;

typedef struct idem_halfsiphash_state {
    uint32_t v[4];
    uint32_t word;
    uint8_t  len;
    uint8_t  c_rounds, d_rounds;
    uint8_t  wide;              /* 1: 64 bits are wanted */
} idem_halfsiphash_state;

typedef union idem_fingerprint_state {     /* IDEM_HASH says which of them */
    idem_siphash_state siphash;
    idem_halfsiphash_state halfsiphash;
    uint64_t fnv1a[2];          /* the hash, the length */
} idem_fingerprint_state;

/* Bytes of memory for a table: a constant expression, a multiple of 4. */
#define IDEMI_ROUND4(n) (((n) + 3u) / 4u * 4u)
#define IDEMI_SLOT_SIZE(key_max, response_max)                                 \
    (sizeof(idem_slot) + IDEMI_ROUND4((size_t)(key_max) + (response_max)))
#define IDEM_MEMORY_SIZE(capacity, key_max, response_max, state_max)           \
    ((size_t)(capacity) * IDEMI_SLOT_SIZE(key_max, response_max) +             \
     IDEMI_ROUND4(((size_t)(capacity) + 1u) * sizeof(idem_link)) +             \
     IDEMI_ROUND4((size_t)(capacity) * 2u * sizeof(idem_word)) +               \
     IDEMI_ROUND4(state_max))

/* ---------------------------------------------------------------------------
   >>functions   in the order of a table's life

   Arguments: the object, outputs, inputs, the time.  Every function that takes
   a table may answer IDEM_E_ARG (NULL where it is not allowed, a table that is
   not open) and IDEM_E_LOCK; then nothing changed, the clock included (idem_run
   says what else).  Apart from these, only the results named can come.
   ------------------------------------------------------------------------ */

/* Opens a table, empty, in `memory` (aligned as uint32_t, for size bytes; see
   IDEM_MEMORY_SIZE).  What either held before is not looked at.  config is
   kept by pointer.  Not to be called while another call on the table is under
   way; there is no close: let go of both when done.  Tokens start at 1 again:
   claims of an earlier opening are to be thrown away.
     IDEM_OK
     IDEM_E_ARG      config: no capacity or key_max, a value out of range, a
                     secret with a zero half, one lock hook alone
     IDEM_E_MEMORY   memory NULL, misaligned or too small: table->needed is the
                     size that would do (so NULL and 0 ask for it)
   After a failure the table is closed. */
IDEM_API int idem_open(idem_table *table, const idem_config *config,
                       void *memory, size_t size, uint32_t now_ms);

/* Asks what to do with a command.  One atomic step under the lock.
     IDEM_EXECUTE, IDEM_RECOVER       *claim is yours, and nobody else's until
                                      its lease ends
     IDEM_REPLAY                      *reply has the outcome
     IDEM_BUSY, IDEM_MISMATCH, IDEM_TOO_OLD, IDEM_EXHAUSTED
     IDEM_E_FULL
     IDEM_E_ARG                       key empty; lease or retention out of
                                      range; NULL with a length
     IDEM_E_TOO_LARGE                 scope and key over key_max, response_size
                                      over response_max
   A claim taken over (RECOVER) has the lease, retention and reservation of the
   new request.  *claim is zeroed unless it is granted; it must not be
   reply->claim. */
IDEM_API int idem_begin(idem_table *table, idem_claim *claim,
                        idem_reply *reply, const idem_request *request,
                        uint32_t now_ms);

/* Stores the outcome; from now on it is replayed.  Application state, if any,
   changes in the same step.
     IDEM_OK            the claim is used up
     IDEM_E_FENCED      the claim is not current
     IDEM_E_TOO_LARGE   response over what was reserved, state over state_max;
                        the claim stays, complete with something shorter
     IDEM_E_ARG         NULL with a length */
IDEM_API int idem_complete(idem_table *table, const idem_claim *claim,
                           const idem_outcome *outcome, uint32_t now_ms);

/* Gives the claim back after a transient failure; the key is unknown again, its
   attempts forgotten.  Only if the effect has not happened: the next begin is
   answered IDEM_EXECUTE.
     IDEM_OK, IDEM_E_FENCED */
IDEM_API int idem_release(idem_table *table, const idem_claim *claim,
                          uint32_t now_ms);

/* Lengthens the lease to lease_ms from now (0: the default lease,
   IDEM_LEASE_NONE: no end); never shortens it.
     IDEM_OK, IDEM_E_FENCED
     IDEM_E_ARG         lease out of range */
IDEM_API int idem_renew(idem_table *table, const idem_claim *claim,
                        uint32_t lease_ms, uint32_t now_ms);

/* A handler executes a command for idem_run, which holds the claim and not the
   lock.  answer is IDEM_EXECUTE or IDEM_RECOVER.  *outcome is zeroed, for it to
   fill in; what that points to (reply->buffer, for instance) must last until
   idem_run returns.  *now_ms holds the tick that idem_run was given, and is to
   be set to the tick at the end.  Returns 0 to complete, anything else to
   release: only if the effect has not happened. */
typedef int idem_handler(void *ctx, idem_outcome *outcome,
                         const idem_request *request, const idem_claim *claim,
                         int answer, uint32_t *now_ms);

/* Begin, your handler, complete or release: in one call.
     IDEM_EXECUTE, IDEM_RECOVER    handled and completed; *reply tells the
                                   outcome as IDEM_REPLAY does
     IDEM_OK                       handled and released
     others                        if claim->token is 0, as idem_begin; the
                                   handler was not called.  If not, as
                                   idem_complete or idem_release; it was called,
                                   and *claim may still be current
   A handler that completes by itself (>>patterns) makes it IDEM_E_FENCED. */
IDEM_API int idem_run(idem_table *table, idem_claim *claim, idem_reply *reply,
                      const idem_request *request, idem_handler *handler,
                      void *ctx, uint32_t now_ms);

/* One bounded step of idle work: drops what is over in the next 64 slots.
     IDEM_MORE   the round through the table is not finished
     IDEM_OK     it is; the next call starts another */
IDEM_API int idem_maintain(idem_table *table, uint32_t now_ms);

/* Adds off_ms to the logical clock: time that the tick has not seen.
     IDEM_OK */
IDEM_API int idem_elapse(idem_table *table, uint32_t off_ms);

/* Looks a key up, by the request's scope and key alone; claims nothing.
     IDEM_OK, IDEM_E_NOT_FOUND
     IDEM_E_ARG         key empty, NULL with a length
     IDEM_E_TOO_LARGE   over key_max
   *entry is set, but for cursor, on IDEM_OK only. */
IDEM_API int idem_find(idem_table *table, idem_entry *entry,
                       const idem_request *request, uint32_t now_ms);

/* The next key, in no useful order; a key that comes or goes meanwhile may be
   seen or not.
     IDEM_OK, IDEM_E_NOT_FOUND (there are no more) */
IDEM_API int idem_next(idem_table *table, idem_entry *entry, uint32_t now_ms);

/* The next undelivered outcome, the oldest completion first, after the one
   that *entry holds from the call before; from the start if it is zeroed, or
   that outcome is no more.
     IDEM_OK, IDEM_E_NOT_FOUND (there are no more) */
IDEM_API int idem_pending(idem_table *table, idem_entry *entry,
                          uint32_t now_ms);

/* Marks an outcome as delivered: it is no longer owed, and may be evicted.
     IDEM_OK            also if it was, or never was owed
     IDEM_E_NOT_FOUND   no such outcome, or no more */
IDEM_API int idem_delivered(idem_table *table, const idem_claim *claim);

/* Copies *len bytes of a response, or what there is, from byte `at` on, and
   sets *len to their number: 0 at its end.  The claim names the outcome, so
   pieces are never of two.  Does not move the clock.
     IDEM_OK
     IDEM_E_NOT_FOUND   no such outcome, or no more; *len is 0 */
IDEM_API int idem_response(idem_table *table, void *dst, size_t *len,
                           const idem_claim *claim, size_t at);

/* Copies the application state of the last outcome that had one, and sets *len
   (which holds the size of dst) to its length, 0 if there is none yet.
     IDEM_OK
     IDEM_E_TOO_LARGE   dst is too short; *len is what it takes */
IDEM_API int idem_state(idem_table *table, void *dst, size_t *len);

/* Removes a key: the administrator's way out.  The key is unknown afterwards,
   and its next begin is answered IDEM_EXECUTE.
     IDEM_OK, IDEM_E_NOT_FOUND
     IDEM_BUSY          the key has a live lease, or one without end; nothing
                        changed
     IDEM_E_ARG, IDEM_E_TOO_LARGE   as idem_find */
IDEM_API int idem_forget(idem_table *table, const idem_request *request,
                         uint32_t now_ms);

/* How long a finished key is really remembered at present: the default
   retention, or less if completions are being evicted.
     IDEM_OK */
IDEM_API int idem_horizon(idem_table *table, uint32_t *horizon_ms,
                          uint32_t now_ms);

/* A result in words, never NULL. */
IDEM_API const char *idem_text(int result);

/* Verifies every invariant of the table; 0, or the number of the first that is
   broken (>>check).  Takes capacity x the length of a lookup; without the lock.
   For tests, and for firmware that distrusts its RAM. */
IDEM_API int idem_check(const idem_table *table);

/* The fingerprint of a payload that arrives in pieces: init, update for each
   piece, final.  Equal to what idem_begin computes from the whole. */
IDEM_API void idem_fingerprint_init(idem_fingerprint_state *state,
                                    const idem_config *config);
IDEM_API void idem_fingerprint_update(idem_fingerprint_state *state,
                                      const void *data, size_t len);
IDEM_API uint64_t idem_fingerprint_final(idem_fingerprint_state *state);

/* SipHash-c-d of Aumasson and Bernstein, 64-bit output (c, d: 2, 4 or 1, 3);
   HalfSipHash-c-d, its 32-bit sibling, with an output of 32 or 64 bits.  In
   one call, or init, update for each piece, final.  Data may be NULL if its
   length is 0. */
IDEM_API uint64_t idem_siphash(const uint8_t key[16], int c_rounds,
                               int d_rounds, const void *data, size_t len);
IDEM_API void idem_siphash_init(idem_siphash_state *state,
                                const uint8_t key[16], int c_rounds,
                                int d_rounds);
IDEM_API void idem_siphash_update(idem_siphash_state *state, const void *data,
                                  size_t len);
IDEM_API uint64_t idem_siphash_final(idem_siphash_state *state);

IDEM_API uint64_t idem_halfsiphash(const uint8_t key[8], int c_rounds,
                                   int d_rounds, int bits, const void *data,
                                   size_t len);
IDEM_API void idem_halfsiphash_init(idem_halfsiphash_state *state,
                                    const uint8_t key[8], int c_rounds,
                                    int d_rounds, int bits);
IDEM_API void idem_halfsiphash_update(idem_halfsiphash_state *state,
                                      const void *data, size_t len);
IDEM_API uint64_t idem_halfsiphash_final(idem_halfsiphash_state *state);

/* FNV-1a of Fowler, Noll and Vo.  Not keyed: no defence against anybody.  To
   hash in pieces start with the INIT value, and hand each result on. */
#define IDEM_FNV1A32_INIT UINT32_C(0x811c9dc5)
#define IDEM_FNV1A64_INIT UINT64_C(0xcbf29ce484222325)
IDEM_API uint32_t idem_fnv1a32(const void *data, size_t len);
IDEM_API uint32_t idem_fnv1a32_update(uint32_t hash, const void *data,
                                      size_t len);
IDEM_API uint64_t idem_fnv1a64(const void *data, size_t len);
IDEM_API uint64_t idem_fnv1a64_update(uint64_t hash, const void *data,
                                      size_t len);

#ifdef __cplusplus
}
#endif
#endif /* IDEM_H */

/* Below this line nothing is promised. */
#if defined(IDEM_IMPLEMENTATION) && !defined(IDEM_IMPLEMENTATION_DONE)
#define IDEM_IMPLEMENTATION_DONE

#ifndef IDEM_ASSERT
#define IDEM_ASSERT(x) ((void)0)
#endif

#if !defined(IDEM_MEMCPY) && !defined(IDEM_MEMSET) && !defined(IDEM_MEMCMP)
#include <string.h>
#define IDEM_MEMCPY memcpy
#define IDEM_MEMSET memset
#define IDEM_MEMCMP memcmp
#elif !defined(IDEM_MEMCPY) || !defined(IDEM_MEMSET) || !defined(IDEM_MEMCMP)
#error "define all of IDEM_MEMCPY, IDEM_MEMSET and IDEM_MEMCMP, or none"
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---------------------------------------------------------------------------
   >>basics    what is assumed of the machine, and how bytes become words

   Words are put together from bytes by shifting, so neither byte order nor
   alignment is a topic anywhere else.
   ------------------------------------------------------------------------ */
#define IDEMI_ASSUME(name, condition)                                          \
    typedef char idemi_assume_##name[(condition) ? 1 : -1]

IDEMI_ASSUME(bytes_have_eight_bits, (unsigned char)-1 == 0xFF);
IDEMI_ASSUME(unsigned_numbers_every_index_word,
             (unsigned)-1 / 2u >= IDEM_CAPACITY_MAX);
IDEMI_ASSUME(links_stay_aligned, sizeof(idem_slot) % 4 == 0);

/* Alignment that memory must have: that of its strictest tenant, a slot. */
typedef struct idemi_aligned {
    char      first;
    idem_slot slot;
} idemi_aligned;
#define IDEMI_ALIGNMENT offsetof(idemi_aligned, slot)

/* Where the compiler is told to optimize for size, a function's locals are kept
   out of its caller's stack frame.  Where it is not, everything below a
   function becomes part of it: a hash whose rounds are constants there takes
   half the time.  (`make size` and `make bench` measure both.) */
#if defined(__GNUC__) && defined(__OPTIMIZE_SIZE__)
#define IDEMI_APART __attribute__((noinline))
#define IDEMI_FLAT
#elif defined(__GNUC__)
#define IDEMI_APART
#define IDEMI_FLAT __attribute__((flatten))
#else
#define IDEMI_APART
#define IDEMI_FLAT
#endif

/* Asks for what a lookup is about to read; changes nothing but the time. */
#if defined(__GNUC__) && IDEM_WIDE
#define IDEMI_PREFETCH(address) __builtin_prefetch(address)
#else
#define IDEMI_PREFETCH(address) ((void)0)
#endif

/* "No slot": larger than every number of one. */
#define IDEMI_NONE ((unsigned)-1)

static uint32_t idemi_basics_load32(const unsigned char *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 |
           (uint32_t)p[3] << 24;
}

static uint64_t idemi_basics_load64(const unsigned char *p)
{
    return (uint64_t)idemi_basics_load32(p + 4) << 32 | idemi_basics_load32(p);
}

/* memcmp and memcpy for bytes that may be NULL where there are none. */
static int idemi_basics_equal(const void *a, const void *b, size_t len)
{
    return len == 0 || IDEM_MEMCMP(a, b, len) == 0;
}

static void idemi_basics_copy(void *dst, const void *src, size_t len)
{
    if (len)
        IDEM_MEMCPY(dst, src, len);
}

/* ---------------------------------------------------------------------------
   >>hash      SipHash for hostile keys, HalfSipHash on small machines, FNV-1a
               for trusted ones; then the two uses that the table makes of them

   SipHash: J.-P. Aumasson, D. J. Bernstein, "SipHash: a fast short-input PRF",
   2012.  HalfSipHash: the reference implementation of the same authors; half
   the word size, made for machines where 64-bit words are slow.
   ------------------------------------------------------------------------ */
static uint64_t idemi_hash_rotate64(uint64_t x, int bits)
{
    return x << bits | x >> (64 - bits);
}

/* "SipRound" of the paper, `rounds` times. */
static void idemi_hash_sip_rounds(uint64_t v[4], int rounds)
{
    uint64_t v0 = v[0], v1 = v[1], v2 = v[2], v3 = v[3];

    for (; rounds > 0; rounds--) {
        v0 += v1;
        v1 = idemi_hash_rotate64(v1, 13) ^ v0;
        v0 = idemi_hash_rotate64(v0, 32);
        v2 += v3;
        v3 = idemi_hash_rotate64(v3, 16) ^ v2;
        v0 += v3;
        v3 = idemi_hash_rotate64(v3, 21) ^ v0;
        v2 += v1;
        v1 = idemi_hash_rotate64(v1, 17) ^ v2;
        v2 = idemi_hash_rotate64(v2, 32);
    }
    v[0] = v0;
    v[1] = v1;
    v[2] = v2;
    v[3] = v3;
}

static void idemi_hash_sip_word(idem_siphash_state *state, uint64_t word)
{
    state->v[3] ^= word;
    idemi_hash_sip_rounds(state->v, state->c_rounds);
    state->v[0] ^= word;
}

IDEM_API void idem_siphash_init(idem_siphash_state *state,
                                const uint8_t key[16], int c_rounds,
                                int d_rounds)
{
    uint64_t k0 = idemi_basics_load64(key);
    uint64_t k1 = idemi_basics_load64(key + 8);

    // The constants are the paper's: "somepseudorandomlygeneratedbytes".
    state->v[0] = k0 ^ UINT64_C(0x736f6d6570736575);
    state->v[1] = k1 ^ UINT64_C(0x646f72616e646f6d);
    state->v[2] = k0 ^ UINT64_C(0x6c7967656e657261);
    state->v[3] = k1 ^ UINT64_C(0x7465646279746573);
    state->word = 0;
    state->len = 0;
    state->c_rounds = (uint8_t)c_rounds;
    state->d_rounds = (uint8_t)d_rounds;
}

static void idemi_hash_sip_byte(idem_siphash_state *state, unsigned char byte)
{
    state->word |= (uint64_t)byte << (8 * (state->len & 7));
    state->len = (uint8_t)(state->len + 1);
    if ((state->len & 7) == 0) {
        idemi_hash_sip_word(state, state->word);
        state->word = 0;
    }
}

IDEM_API void idem_siphash_update(idem_siphash_state *state, const void *data,
                                  size_t len)
{
    const unsigned char *p = (const unsigned char *)data;

    for (; len > 0 && (state->len & 7) != 0; len--)
        idemi_hash_sip_byte(state, *p++);
    for (; len >= 8; len -= 8) {
        idemi_hash_sip_word(state, idemi_basics_load64(p));
        state->len = (uint8_t)(state->len + 8);
        p += 8;
    }
    for (; len > 0; len--)
        idemi_hash_sip_byte(state, *p++);
}

IDEM_API uint64_t idem_siphash_final(idem_siphash_state *state)
{
    idemi_hash_sip_word(state, state->word | (uint64_t)state->len << 56);
    state->v[2] ^= 0xff;
    idemi_hash_sip_rounds(state->v, state->d_rounds);
    return state->v[0] ^ state->v[1] ^ state->v[2] ^ state->v[3];
}

IDEM_API uint64_t idem_siphash(const uint8_t key[16], int c_rounds,
                               int d_rounds, const void *data, size_t len)
{
    idem_siphash_state state;

    idem_siphash_init(&state, key, c_rounds, d_rounds);
    idem_siphash_update(&state, data, len);
    return idem_siphash_final(&state);
}

static uint32_t idemi_hash_rotate32(uint32_t x, int bits)
{
    return x << bits | x >> (32 - bits);
}

static void idemi_hash_half_rounds(uint32_t v[4], int rounds)
{
    uint32_t v0 = v[0], v1 = v[1], v2 = v[2], v3 = v[3];

    for (; rounds > 0; rounds--) {
        v0 += v1;
        v1 = idemi_hash_rotate32(v1, 5) ^ v0;
        v0 = idemi_hash_rotate32(v0, 16);
        v2 += v3;
        v3 = idemi_hash_rotate32(v3, 8) ^ v2;
        v0 += v3;
        v3 = idemi_hash_rotate32(v3, 7) ^ v0;
        v2 += v1;
        v1 = idemi_hash_rotate32(v1, 13) ^ v2;
        v2 = idemi_hash_rotate32(v2, 16);
    }
    v[0] = v0;
    v[1] = v1;
    v[2] = v2;
    v[3] = v3;
}

static void idemi_hash_half_word(idem_halfsiphash_state *state, uint32_t word)
{
    state->v[3] ^= word;
    idemi_hash_half_rounds(state->v, state->c_rounds);
    state->v[0] ^= word;
}

/* d rounds, and the half of the output that they give */
static uint32_t idemi_hash_half_output(idem_halfsiphash_state *state)
{
    idemi_hash_half_rounds(state->v, state->d_rounds);
    return state->v[1] ^ state->v[3];
}

IDEM_API void idem_halfsiphash_init(idem_halfsiphash_state *state,
                                    const uint8_t key[8], int c_rounds,
                                    int d_rounds, int bits)
{
    uint32_t k0 = idemi_basics_load32(key);
    uint32_t k1 = idemi_basics_load32(key + 4);

    state->wide = bits == 64;
    state->v[0] = k0;
    state->v[1] = k1 ^ (state->wide ? 0xeeu : 0u);
    state->v[2] = k0 ^ UINT32_C(0x6c796765);
    state->v[3] = k1 ^ UINT32_C(0x74656462);
    state->word = 0;
    state->len = 0;
    state->c_rounds = (uint8_t)c_rounds;
    state->d_rounds = (uint8_t)d_rounds;
}

IDEM_API void idem_halfsiphash_update(idem_halfsiphash_state *state,
                                      const void *data, size_t len)
{
    const unsigned char *p = (const unsigned char *)data;

    // Bytes enter at the top and move down, so after four the word is whole
    // and needs no clearing.
    for (; len > 0; len--) {
        state->word = state->word >> 8 | (uint32_t)*p++ << 24;
        state->len = (uint8_t)(state->len + 1);
        if ((state->len & 3) == 0)
            idemi_hash_half_word(state, state->word);
    }
}

IDEM_API uint64_t idem_halfsiphash_final(idem_halfsiphash_state *state)
{
    int rest = state->len & 3;
    uint32_t word = rest > 0 ? state->word >> (32 - 8 * rest) : 0;
    uint32_t low;

    idemi_hash_half_word(state, word | (uint32_t)state->len << 24);
    state->v[2] ^= state->wide ? 0xeeu : 0xffu;
    low = idemi_hash_half_output(state);
    if (!state->wide)
        return low;
    state->v[1] ^= 0xdd;
    return (uint64_t)idemi_hash_half_output(state) << 32 | low;
}

IDEM_API uint64_t idem_halfsiphash(const uint8_t key[8], int c_rounds,
                                   int d_rounds, int bits, const void *data,
                                   size_t len)
{
    idem_halfsiphash_state state;

    idem_halfsiphash_init(&state, key, c_rounds, d_rounds, bits);
    idem_halfsiphash_update(&state, data, len);
    return idem_halfsiphash_final(&state);
}

IDEM_API uint32_t idem_fnv1a32_update(uint32_t hash, const void *data,
                                      size_t len)
{
    const unsigned char *p = (const unsigned char *)data;

    for (; len > 0; len--)
        hash = (hash ^ *p++) * UINT32_C(0x01000193);        // the FNV prime
    return hash;
}

IDEM_API uint32_t idem_fnv1a32(const void *data, size_t len)
{
    return idem_fnv1a32_update(IDEM_FNV1A32_INIT, data, len);
}

IDEM_API uint64_t idem_fnv1a64_update(uint64_t hash, const void *data,
                                      size_t len)
{
    const unsigned char *p = (const unsigned char *)data;

    for (; len > 0; len--)
        hash = (hash ^ *p++) * UINT64_C(0x00000100000001b3);
    return hash;
}

IDEM_API uint64_t idem_fnv1a64(const void *data, size_t len)
{
    return idem_fnv1a64_update(IDEM_FNV1A64_INIT, data, len);
}

/* SipHash's last word carries the length, and the number of words the rest of
   it, so the fingerprint is one of the payload and its length.  FNV-1a has the
   length appended, eight bytes little-endian. */
IDEM_API void idem_fingerprint_init(idem_fingerprint_state *state,
                                    const idem_config *config)
{
#if IDEM_HASH == IDEM_HASH_SIPHASH
    idem_siphash_init(&state->siphash, config->secret, 2, 4);
#elif IDEM_HASH == IDEM_HASH_HALFSIPHASH
    idem_halfsiphash_init(&state->halfsiphash, config->secret, 2, 4, 64);
#else
    (void)config;
    state->fnv1a[0] = IDEM_FNV1A64_INIT;
    state->fnv1a[1] = 0;
#endif
}

IDEM_API void idem_fingerprint_update(idem_fingerprint_state *state,
                                      const void *data, size_t len)
{
#if IDEM_HASH == IDEM_HASH_SIPHASH
    idem_siphash_update(&state->siphash, data, len);
#elif IDEM_HASH == IDEM_HASH_HALFSIPHASH
    idem_halfsiphash_update(&state->halfsiphash, data, len);
#else
    state->fnv1a[0] = idem_fnv1a64_update(state->fnv1a[0], data, len);
    state->fnv1a[1] += len;
#endif
}

IDEM_API uint64_t idem_fingerprint_final(idem_fingerprint_state *state)
{
#if IDEM_HASH == IDEM_HASH_SIPHASH
    return idem_siphash_final(&state->siphash);
#elif IDEM_HASH == IDEM_HASH_HALFSIPHASH
    return idem_halfsiphash_final(&state->halfsiphash);
#else
    uint64_t hash = state->fnv1a[0];
    int i;

    for (i = 0; i < 8; i++) {
        unsigned char byte = (unsigned char)(state->fnv1a[1] >> (8 * i));
        hash = idem_fnv1a64_update(hash, &byte, 1);
    }
    return hash;
#endif
}

/* The index hash of scope and key.  The scope's length comes last, as a byte,
   so that moving the border between the two gives another hash. */
IDEMI_FLAT
static uint32_t idemi_hash_id(const idem_config *config, const void *scope,
                              size_t scope_len, const void *key,
                              size_t key_len)
{
    unsigned char border = (unsigned char)scope_len;
#if IDEM_HASH == IDEM_HASH_SIPHASH
    idem_siphash_state state;

    idem_siphash_init(&state, config->secret, 1, 3);
    idem_siphash_update(&state, scope, scope_len);
    idem_siphash_update(&state, key, key_len);
    idem_siphash_update(&state, &border, 1);
    return (uint32_t)idem_siphash_final(&state);
#elif IDEM_HASH == IDEM_HASH_HALFSIPHASH
    idem_halfsiphash_state state;

    idem_halfsiphash_init(&state, config->secret + 8, 1, 3, 32);
    idem_halfsiphash_update(&state, scope, scope_len);
    idem_halfsiphash_update(&state, key, key_len);
    idem_halfsiphash_update(&state, &border, 1);
    return (uint32_t)idem_halfsiphash_final(&state);
#else
    uint32_t hash = idem_fnv1a32(scope, scope_len);

    (void)config;
    hash = idem_fnv1a32_update(hash, key, key_len);
    return idem_fnv1a32_update(hash, &border, 1);
#endif
}

/* ---------------------------------------------------------------------------
   >>clock     32 bits of logical time, compared by differences

   A slot keeps 32 bits of time, so times are only ever told apart inside a
   window around the logical clock:

       clock - 33.1 days          clock                  clock + 36.2 days
       |--------------------------|----------------------------------|
       completed or lease ended   now    lease ends: at most 6.2 days
       (retention + one sweep)           due: at most 6.2 + 30.0 days

   The sweep (>>keys) looks at every slot each 2^28 ms of logical time and drops
   what is over, so nothing leaves the window and comes back as its opposite.

   C1  A lease ends at most IDEM_LEASE_MAX after the clock.
   C2  A completion is never after the clock.
   C3  No slot is over for longer than one sweep interval.
   ------------------------------------------------------------------------ */
#define IDEMI_SWEEP_MS UINT32_C(0x10000000)     /* 2^28 ms: 3.1 days */

/* What counts as reached may lie this far back: two sweep intervals.  Needs
   IDEM_LEASE_MAX + IDEM_RETENTION_MAX + this below 2^32. */
#define IDEMI_PAST_MS  UINT32_C(0x20000000)

/* A step back of the tick up to this is waited out. */
#define IDEMI_JITTER_MS UINT32_C(0x10000)

/* "Never", from the clock on: above every real due time, also when it has aged
   by a sweep interval; and inside the window. */
#define IDEMI_NEVER_MS UINT32_C(0xD0000000)

IDEMI_ASSUME(never_is_inside_the_window,
             IDEMI_NEVER_MS <= UINT32_MAX - IDEMI_PAST_MS);
IDEMI_ASSUME(due_times_stay_below_never,
             IDEM_LEASE_MAX + IDEM_RETENTION_MAX <
                 IDEMI_NEVER_MS - IDEMI_SWEEP_MS);

/* Milliseconds from `clock` to `at`, counted so that all of the window, past
   part included, is in order. */
static uint32_t idemi_clock_rank(uint32_t clock, uint32_t at)
{
    return at - clock + IDEMI_PAST_MS;
}

/* True from the millisecond `at` on. */
static int idemi_clock_reached(uint32_t clock, uint32_t at)
{
    return clock - at <= IDEMI_PAST_MS;
}

/* ---------------------------------------------------------------------------
   >>slots     one key's place, and the bytes behind it

       idem_slot         32 bytes, 36 if IDEM_WIDE
       scope, then key   key_max bytes
       response          response_max bytes
       nothing           to the next multiple of 4

   state: bits 0-1 are 0 (free) or IDEM_IN_PROGRESS, _COMPLETED, _FAILED.
   ------------------------------------------------------------------------ */
#define IDEMI_STATUS      0x03u
#define IDEMI_FINISHED    0x02u         /* set in both finished states */
#define IDEMI_UNDELIVERED 0x04u
#define IDEMI_ENDLESS     0x08u         /* a lease without end */

static idem_slot *idemi_slot_at(const idem_table *t, unsigned slot)
{
    return (idem_slot *)(void *)(t->slots + slot * t->stride);
}

static unsigned char *idemi_slot_id(idem_slot *s)
{
    return (unsigned char *)(s + 1);
}

static unsigned char *idemi_slot_response(const idem_table *t, idem_slot *s)
{
    return idemi_slot_id(s) + t->config->key_max;
}

static int idemi_slot_has_scope(idem_slot *s, const idem_request *rq)
{
    return s->scope_len == rq->scope_len &&
           idemi_basics_equal(idemi_slot_id(s), rq->scope, rq->scope_len);
}

static int idemi_slot_has_id(idem_slot *s, const idem_request *rq)
{
    return s->key_len == rq->key_len && idemi_slot_has_scope(s, rq) &&
           idemi_basics_equal(idemi_slot_id(s) + s->scope_len, rq->key,
                              rq->key_len);
}

/* When the key is dropped, if nothing happens to it. */
static uint32_t idemi_slot_due(const idem_table *t, const idem_slot *s)
{
    if (s->state & IDEMI_ENDLESS)
        return t->clock + IDEMI_NEVER_MS;
    return s->time + s->retention;
}

static int idemi_slot_over(const idem_table *t, const idem_slot *s)
{
    return idemi_clock_reached(t->clock, idemi_slot_due(t, s));
}

/* What is left of a lease: 0 from the millisecond on in which it ends.  Needs
   C1: what is ahead of the clock by more than IDEM_LEASE_MAX is behind it. */
static uint32_t idemi_slot_lease_left(const idem_table *t, const idem_slot *s)
{
    uint32_t left = s->time - t->clock;

    if (s->state & IDEMI_ENDLESS)
        return IDEM_LEASE_NONE;
    return left <= IDEM_LEASE_MAX ? left : 0;
}

/* ---------------------------------------------------------------------------
   >>index     from a hash to a slot: open addressing, linear probing

   An array of 2 x capacity words.  A key's home is its hash scaled to that; its
   word stands at its home, or at the next empty position after it.  A word is
   the slot's number plus one, so that one in use is never 0.  The hash stands
   in the slot and, with IDEM_WIDE, in the word too: such machines have caches,
   and the words of other keys are passed without leaving the index.

       homes   2    2    3    5
       at      2    3    4    5    6
       word    a    b    c    d    -

   Erasing a closes the gap: b and c move back, for they are not at home, and
   nothing that was reached over a may become unreachable; d stays.  Marking the
   word as deleted would be shorter, but nothing here ever rehashes, and marks
   would fill the index.  Homes are told from the hashes that are kept, so
   nothing is hashed or compared when a key leaves.

   Why not Robin Hood order with the distance packed into the word: it ends the
   search for an absent key one word earlier, and needs twice the code, for a
   distance may outgrow its bits.

   T1  Every slot in use has exactly one word, and every word such a slot.
   T2  From a key's home to its word none is empty: so every key is found.
   T3  At least half of the words are empty: so every search ends.
   ------------------------------------------------------------------------ */

/* The part of a hash that the index works with. */
static idem_number idemi_index_hash(uint32_t hash)
{
    return (idem_number)(hash >> (32 - 8 * sizeof(idem_number)));
}

static unsigned idemi_index_home(const idem_table *t, idem_number hash)
{
#if IDEM_WIDE
    return (unsigned)((uint64_t)hash * t->index_size >> 32);
#else
    return (unsigned)((uint32_t)hash * t->index_size >> 16);
#endif
}

static unsigned idemi_index_next(const idem_table *t, unsigned at)
{
    return ++at < t->index_size ? at : 0;
}

/* The slot of the word at a position, or IDEMI_NONE if that is empty. */
static unsigned idemi_index_slot(const idem_table *t, unsigned at)
{
    return (unsigned)t->index[at].slot - 1u;
}

/* The hash of the word at a position that is not empty. */
static idem_number idemi_index_hash_at(const idem_table *t, unsigned at)
{
#if IDEM_WIDE
    return t->index[at].hash;
#else
    return idemi_slot_at(t, idemi_index_slot(t, at))->hash;
#endif
}

/* The slot of a key, or IDEMI_NONE.  Needs T2 and T3. */
static unsigned idemi_index_find(const idem_table *t, idem_number hash,
                                 const idem_request *rq)
{
    unsigned at = idemi_index_home(t, hash);

    for (;; at = idemi_index_next(t, at)) {
        unsigned slot = idemi_index_slot(t, at);
        if (slot == IDEMI_NONE ||
            (idemi_index_hash_at(t, at) == hash &&
             idemi_slot_has_id(idemi_slot_at(t, slot), rq)))
            return slot;
    }
}

/* Puts a slot whose key is not in the index into it.  Keeps T1, T2. */
static void idemi_index_insert(idem_table *t, idem_number hash, unsigned slot)
{
    unsigned at = idemi_index_home(t, hash);

    while (idemi_index_slot(t, at) != IDEMI_NONE)
        at = idemi_index_next(t, at);
    t->index[at].slot = (idem_number)(slot + 1);
#if IDEM_WIDE
    t->index[at].hash = hash;
#endif
    idemi_slot_at(t, slot)->hash = hash;
}

/* Positions from `from` on to `to`, round the end. */
static unsigned idemi_index_distance(const idem_table *t, unsigned from,
                                     unsigned to)
{
    return to >= from ? to - from : to + t->index_size - from;
}

/* Takes a slot that is in the index out of it, and closes the gap: a word moves
   back into it unless its home is behind the gap.  Keeps T1, T2. */
static void idemi_index_erase(idem_table *t, unsigned slot)
{
    unsigned gap = idemi_index_home(t, idemi_slot_at(t, slot)->hash);
    unsigned at;

    while (idemi_index_slot(t, gap) != slot)
        gap = idemi_index_next(t, gap);
    for (at = gap;;) {
        unsigned home;
        at = idemi_index_next(t, at);
        if (idemi_index_slot(t, at) == IDEMI_NONE)
            break;
        home = idemi_index_home(t, idemi_index_hash_at(t, at));
        if (idemi_index_distance(t, home, at) <
            idemi_index_distance(t, gap, at))
            continue;
        t->index[gap] = t->index[at];
        gap = at;
    }
    t->index[gap].slot = 0;
}

/* ---------------------------------------------------------------------------
   >>order     finished slots from the oldest completion to the newest, and the
               free ones: two lists through one array of links

   The order: links[capacity] is both its ends, so taking a slot out or putting
   one at the end has no special case.

       links[capacity].newer -> oldest -> ... -> newest -> links[capacity]
                             <-        <-     <-        <-

   The oldest is what eviction looks for, and almost always what expires next;
   so room is found without a search.  Only where retentions differ, or claims
   were abandoned, may something younger be over first: `soonest` bounds when,
   and a look at all slots (the sweep, >>keys) finds it.

   O1  The order has the finished slots and no others, none before one that was
       completed earlier.
   O2  The free list has the free slots and no others.
   O3  No slot is over before t->soonest.
   ------------------------------------------------------------------------ */

/* Puts a slot at the newest end of the order. */
static void idemi_order_append(idem_table *t, unsigned slot)
{
    unsigned ends = t->capacity;
    unsigned newest = t->links[ends].older;

    t->links[slot].older = (idem_number)newest;
    t->links[slot].newer = (idem_number)ends;
    t->links[newest].newer = (idem_number)slot;
    t->links[ends].older = (idem_number)slot;
}

/* Takes a slot out of the order. */
static void idemi_order_remove(idem_table *t, unsigned slot)
{
    const idem_link *link = &t->links[slot];

    t->links[link->older].newer = link->newer;
    t->links[link->newer].older = link->older;
}

/* Puts a slot in front of the free list. */
static void idemi_order_free(idem_table *t, unsigned slot)
{
    t->links[slot].newer = (idem_number)t->free;
    t->free = slot;
}

/* Lowers the bound to the due time of a slot.  Keeps O3. */
static void idemi_order_note(idem_table *t, const idem_slot *s)
{
    uint32_t due = idemi_slot_due(t, s);

    if (idemi_clock_rank(t->clock, due) <
        idemi_clock_rank(t->clock, t->soonest))
        t->soonest = due;
}

/* The oldest live completion that may be evicted, of the request's scope or,
   with NULL, of any; or `capacity`. */
static unsigned idemi_order_evictable(const idem_table *t,
                                      const idem_request *rq)
{
    unsigned slot = t->capacity;

    for (;;) {
        idem_slot *s;
        slot = t->links[slot].newer;
        if (slot == t->capacity)
            return slot;
        s = idemi_slot_at(t, slot);
        if (!(s->state & IDEMI_UNDELIVERED) && !idemi_slot_over(t, s) &&
            (!rq || idemi_slot_has_scope(s, rq)))
            return slot;
    }
}

/* ---------------------------------------------------------------------------
   >>keys      the life of a key; the only code that changes a slot's state

   K1  A slot in use is in progress, completed or failed; only finished ones can
       be undelivered, only one in progress can be endless.
   K2  Its lengths are inside the configured limits, its key is not empty.
   K3  used and pending count what the slots say.
   K4  It has had at least one attempt, and its token has been granted.
   ------------------------------------------------------------------------ */

/* What a zero in the configuration means. */
#define IDEMI_LEASE_MS     UINT32_C(30000)
#define IDEMI_RETENTION_MS UINT32_C(86400000)
#define IDEMI_MAX_ATTEMPTS 3

/* Attempts are counted up to this. */
#define IDEMI_ATTEMPTS_END 255

/* The first of up to three values that is not zero. */
static uint32_t idemi_keys_or(uint32_t asked, uint32_t configured,
                              uint32_t otherwise)
{
    if (asked)
        return asked;
    return configured ? configured : otherwise;
}

static uint32_t idemi_keys_lease(const idem_table *t, uint32_t asked_ms)
{
    return idemi_keys_or(asked_ms, t->config->lease_ms, IDEMI_LEASE_MS);
}

static uint32_t idemi_keys_retention(const idem_table *t, uint32_t asked_ms)
{
    return idemi_keys_or(asked_ms, t->config->retention_ms,
                         IDEMI_RETENTION_MS);
}

/* A request, with the hashes that are made before the lock is taken */
typedef struct idemi_query {
    const idem_request *rq;
    idem_number hash;           /* of scope and key */
    uint32_t fingerprint[2];    /* low word, high word */
} idemi_query;

/* Frees a slot in use. */
static void idemi_keys_remove(idem_table *t, unsigned slot)
{
    idem_slot *s = idemi_slot_at(t, slot);

    idemi_index_erase(t, slot);
    if (s->state & IDEMI_FINISHED)
        idemi_order_remove(t, slot);
    if (s->state & IDEMI_UNDELIVERED)
        t->pending--;
    s->state = 0;
    t->used--;
    idemi_order_free(t, slot);
}

/* Frees a slot if its key is over; returns whether. */
static int idemi_keys_expire(idem_table *t, unsigned slot)
{
    const idem_slot *s = idemi_slot_at(t, slot);

    if (!s->state || !idemi_slot_over(t, s))
        return 0;
    t->stats.expired++;
    if (s->state & IDEMI_UNDELIVERED)
        t->stats.undelivered++;
    idemi_keys_remove(t, slot);
    return 1;
}

/* Keeps a time that is only ever asked "how long ago" inside the window: what
   is longer ago than any retention need not be told apart. */
static uint32_t idemi_keys_limit(const idem_table *t, uint32_t at)
{
    if (t->clock - at > IDEM_RETENTION_MAX)
        return t->clock - IDEM_RETENTION_MAX;
    return at;
}

/* Drops whatever is over, and makes the bound exact.  Keeps C3 and O3. */
static void idemi_keys_sweep(idem_table *t)
{
    unsigned i;

    t->soonest = t->clock + IDEMI_NEVER_MS;
    for (i = 0; i < t->capacity; i++)
        if (!idemi_keys_expire(t, i) && idemi_slot_at(t, i)->state)
            idemi_order_note(t, idemi_slot_at(t, i));
    for (i = 0; i < IDEMI_REACHES; i++)
        t->reach[i] = idemi_keys_limit(t, t->reach[i]);
    t->evicted = idemi_keys_limit(t, t->evicted);
    t->swept = t->clock;
}

/* Moves the clock, and stops for each sweep on the way: a jump of 24 days must
   not carry a slot through the window unseen. */
static void idemi_keys_advance(idem_table *t, uint32_t ms)
{
    for (;;) {
        uint32_t step = IDEMI_SWEEP_MS - (t->clock - t->swept);
        if (ms < step) {
            t->clock += ms;
            return;
        }
        t->clock += step;
        ms -= step;
        idemi_keys_sweep(t);
    }
}

/* Follows the tick; S6 is here.  What was counted once is not counted again.
   After a step back that was followed, that is what a way up in one leap would
   pass over.  A small step is not followed at all, for the way up is made of
   small ones then: eight threads that read the tick before they take the lock
   would make the clock run at five times its speed. */
static void idemi_keys_tick(idem_table *t, uint32_t now_ms)
{
    uint32_t passed = now_ms - t->tick;
    uint32_t again = t->counted - t->tick;

    if (passed >= UINT32_C(0x80000000)) {
        t->stats.backwards++;
        if (0 - passed > IDEMI_JITTER_MS)
            t->tick = now_ms;
        return;
    }
    t->tick = now_ms;
    if (passed >= again) {
        passed -= again;
        t->counted = now_ms;
    }
    idemi_keys_advance(t, passed);
}

/* The slot of a live key, or IDEMI_NONE. */
static unsigned idemi_keys_find(idem_table *t, const idemi_query *q)
{
    unsigned slot = idemi_index_find(t, q->hash, q->rq);

    if (slot != IDEMI_NONE && idemi_keys_expire(t, slot))
        return IDEMI_NONE;
    return slot;
}

/* The token of a slot in use, from its low half: the newest that ends so. */
static uint64_t idemi_keys_token(const idem_table *t, const idem_slot *s)
{
    return t->token - (uint32_t)((uint32_t)t->token - s->token);
}

/* The live slot that a claim names, or NULL. */
static idem_slot *idemi_keys_named(const idem_table *t, const idem_claim *claim)
{
    idem_slot *s;

    if (claim->slot >= t->capacity)
        return NULL;
    s = idemi_slot_at(t, (unsigned)claim->slot);
    if (!s->state || s->token != (uint32_t)claim->token ||
        t->token - claim->token > UINT32_MAX || idemi_slot_over(t, s))
        return NULL;
    return s;
}

/* The slot of a current claim, or NULL.  S1 is here. */
static idem_slot *idemi_keys_current(idem_table *t, const idem_claim *claim)
{
    idem_slot *s = idemi_keys_named(t, claim);

    if (s && !(s->state & IDEMI_FINISHED))
        return s;
    t->stats.fenced++;
    return NULL;
}

/* The slot of an outcome, or NULL. */
static idem_slot *idemi_keys_outcome(const idem_table *t,
                                     const idem_claim *claim)
{
    idem_slot *s = idemi_keys_named(t, claim);

    return s && s->state & IDEMI_FINISHED ? s : NULL;
}

static void idemi_keys_name(const idem_table *t, unsigned slot,
                            idem_claim *claim)
{
    const idem_slot *s = idemi_slot_at(t, slot);

    claim->token = idemi_keys_token(t, s);
    claim->slot = slot;
    claim->attempt = s->attempts;
}

/* Grants a new claim on a slot that has its key and fingerprint. */
static void idemi_keys_grant(idem_table *t, unsigned slot, idem_claim *claim,
                             const idem_request *rq)
{
    idem_slot *s = idemi_slot_at(t, slot);
    uint32_t lease_ms = idemi_keys_lease(t, rq->lease_ms);

    s->token = (uint32_t)++t->token;
    s->state = IDEM_IN_PROGRESS;
    s->time = t->clock;
    if (lease_ms == IDEM_LEASE_NONE)
        s->state |= IDEMI_ENDLESS;
    else
        s->time += lease_ms;
    s->retention = idemi_keys_retention(t, rq->retention_ms);
    s->response_len =
        rq->response_size ? rq->response_size : t->config->response_max;
    if (s->attempts < IDEMI_ATTEMPTS_END)
        s->attempts++;
    idemi_order_note(t, s);
    idemi_keys_name(t, slot, claim);
}

static void idemi_keys_replay(const idem_table *t, unsigned slot,
                              idem_reply *reply)
{
    idem_slot *s = idemi_slot_at(t, slot);

    reply->status = s->state & IDEMI_STATUS;
    reply->code = s->code;
    reply->response_len = s->response_len;
    reply->age_ms = t->clock - s->time;
    idemi_keys_name(t, slot, &reply->claim);
    if (s->response_len && reply->buffer &&
        s->response_len <= reply->buffer_size)
        IDEM_MEMCPY(reply->buffer, idemi_slot_response(t, s), s->response_len);
}

/* Begin on a key that is known. */
static int idemi_keys_again(idem_table *t, unsigned slot, idem_claim *claim,
                            idem_reply *reply, const idemi_query *q)
{
    idem_slot *s = idemi_slot_at(t, slot);

    // One expression without a branch: how many bits agree is not to be seen
    // in the time it takes.
    if ((s->fingerprint[0] ^ q->fingerprint[0]) |
        (s->fingerprint[1] ^ q->fingerprint[1]))
        return IDEM_MISMATCH;
    if (s->state & IDEMI_FINISHED) {
        idemi_keys_replay(t, slot, reply);
        return IDEM_REPLAY;
    }
    reply->retry_after_ms = idemi_slot_lease_left(t, s);
    if (reply->retry_after_ms)
        return IDEM_BUSY;
    if (s->attempts >=
        idemi_keys_or(0, t->config->max_attempts, IDEMI_MAX_ATTEMPTS))
        return IDEM_EXHAUSTED;
    idemi_keys_grant(t, slot, claim, q->rq);
    return IDEM_RECOVER;
}

/* How far back memory reaches for a scope. */
IDEMI_APART
static uint32_t *idemi_keys_reach(idem_table *t, const void *scope,
                                  size_t scope_len)
{
    uint32_t hash = idemi_hash_id(t->config, scope, scope_len, NULL, 0);

    return &t->reach[hash & (IDEMI_REACHES - 1)];
}

/* True if memory may once have held an unknown key of that age. */
static int idemi_keys_too_old(idem_table *t, const idem_request *rq)
{
    uint32_t age = rq->age_ms;

    return age && (age >= idemi_keys_retention(t, rq->retention_ms) ||
                   age >= t->clock - *idemi_keys_reach(t, rq->scope,
                                                       rq->scope_len));
}

/* Drops a finished key before its time, and remembers that. */
static void idemi_keys_evict(idem_table *t, unsigned slot)
{
    idem_slot *s = idemi_slot_at(t, slot);
    uint32_t *reach = idemi_keys_reach(t, idemi_slot_id(s), s->scope_len);
    uint32_t age = t->clock - s->time;

    if (age < t->clock - *reach)
        *reach = s->time;
    if (age < t->clock - t->evicted)
        t->evicted = s->time;
    t->stats.evicted++;
    idemi_keys_remove(t, slot);
}

/* True if one more key would put the request's scope over its quota. */
static int idemi_keys_over_quota(const idem_table *t, const idem_request *rq)
{
    uint32_t left = t->config->quota;
    unsigned slot;

    if (!left)
        return 0;
    for (slot = 0; slot < t->capacity && left > 0; slot++) {
        idem_slot *s = idemi_slot_at(t, slot);
        if (s->state && idemi_slot_has_scope(s, rq) && !idemi_slot_over(t, s))
            left--;
    }
    return !left;
}

/* Sees to it that there is a free slot, if one is to be had without evicting.
   The oldest completion goes as soon as it is over, wanted or not: its slot is
   used again while it is still in the cache. */
static void idemi_keys_reclaim(idem_table *t)
{
    unsigned none = t->capacity;
    unsigned oldest = t->links[none].newer;

    if (oldest != none)
        idemi_keys_expire(t, oldest);
    if (t->free == none && idemi_clock_reached(t->clock, t->soonest))
        idemi_keys_sweep(t);
}

/* Sees to it that the request's scope may have one more key, and that there is
   a free slot for it.  Returns whether it is so; if not, reply->retry_after_ms
   is set if it is known. */
static int idemi_keys_room(idem_table *t, idem_reply *reply,
                           const idem_request *rq)
{
    int over_quota = idemi_keys_over_quota(t, rq);
    unsigned slot = t->capacity;

    if (!over_quota) {
        idemi_keys_reclaim(t);
        if (t->free != t->capacity)
            return 1;
    }
    if (t->config->full == IDEM_EVICT_OLDEST)
        slot = idemi_order_evictable(t, over_quota ? rq : NULL);
    if (slot != t->capacity) {
        idemi_keys_evict(t, slot);
        return 1;
    }
    if (!over_quota && t->soonest - t->clock < IDEMI_NEVER_MS - IDEMI_SWEEP_MS)
        reply->retry_after_ms = t->soonest - t->clock;
    return 0;
}

/* Begin on a key that is not known. */
static int idemi_keys_first(idem_table *t, idem_claim *claim,
                            idem_reply *reply, const idemi_query *q)
{
    const idem_request *rq = q->rq;
    unsigned slot;
    idem_slot *s;

    if (idemi_keys_too_old(t, rq))
        return IDEM_TOO_OLD;
    if (!idemi_keys_room(t, reply, rq))
        return IDEM_E_FULL;
    slot = t->free;
    t->free = t->links[slot].newer;
    s = idemi_slot_at(t, slot);
    s->fingerprint[0] = q->fingerprint[0];
    s->fingerprint[1] = q->fingerprint[1];
    s->scope_len = (uint8_t)rq->scope_len;
    s->key_len = (uint8_t)rq->key_len;
    s->attempts = 0;
    idemi_basics_copy(idemi_slot_id(s), rq->scope, rq->scope_len);
    idemi_basics_copy(idemi_slot_id(s) + rq->scope_len, rq->key, rq->key_len);
    idemi_index_insert(t, q->hash, slot);
    t->used++;
    idemi_keys_grant(t, slot, claim, rq);
    return IDEM_EXECUTE;
}

static int idemi_keys_begin(idem_table *t, idem_claim *claim,
                            idem_reply *reply, const idemi_query *q)
{
    unsigned slot = idemi_keys_find(t, q);
    int result = slot == IDEMI_NONE
                     ? idemi_keys_first(t, claim, reply, q)
                     : idemi_keys_again(t, slot, claim, reply, q);

    if (result >= 0)
        t->stats.answers[result]++;
    else
        t->stats.full++;
    return result;
}

static int idemi_keys_complete(idem_table *t, const idem_claim *claim,
                               const idem_outcome *out)
{
    idem_slot *s = idemi_keys_current(t, claim);

    if (!s)
        return IDEM_E_FENCED;
    if (out->response_len > s->response_len ||
        out->state_len > t->config->state_max)
        return IDEM_E_TOO_LARGE;
    s->code = out->code;
    s->response_len = (uint16_t)out->response_len;
    idemi_basics_copy(idemi_slot_response(t, s), out->response,
                      out->response_len);
    if (out->state) {
        t->state_len = (uint16_t)out->state_len;
        idemi_basics_copy(t->state, out->state, out->state_len);
    }
    s->time = t->clock;
    s->state = out->failed ? IDEM_FAILED : IDEM_COMPLETED;
    idemi_order_append(t, (unsigned)claim->slot);
    if (out->confirm) {
        s->state |= IDEMI_UNDELIVERED;
        t->pending++;
    }
    idemi_order_note(t, s);
    return IDEM_OK;
}

static int idemi_keys_renew(idem_table *t, const idem_claim *claim,
                            uint32_t lease_ms)
{
    idem_slot *s = idemi_keys_current(t, claim);

    if (!s)
        return IDEM_E_FENCED;
    lease_ms = idemi_keys_lease(t, lease_ms);
    if (lease_ms == IDEM_LEASE_NONE)
        s->state |= IDEMI_ENDLESS;
    else if (lease_ms > idemi_slot_lease_left(t, s))
        s->time = t->clock + lease_ms;
    return IDEM_OK;
}

/* Tells everything about a slot in use but where idem_next goes on. */
static void idemi_keys_describe(const idem_table *t, unsigned slot,
                                idem_entry *e)
{
    idem_slot *s = idemi_slot_at(t, slot);
    size_t id_len = (size_t)s->scope_len + s->key_len;

    e->scope_len = s->scope_len;
    e->key_len = s->key_len;
    e->fingerprint = (uint64_t)s->fingerprint[1] << 32 | s->fingerprint[0];
    e->status = s->state & IDEMI_STATUS;
    e->response_len = s->response_len;
    e->attempts = s->attempts;
    e->undelivered = (s->state & IDEMI_UNDELIVERED) != 0;
    if (e->id && id_len <= e->id_size)
        IDEM_MEMCPY(e->id, idemi_slot_id(s), id_len);
    idemi_keys_name(t, slot, &e->claim);
    if (s->state & IDEMI_FINISHED) {
        e->code = s->code;
        e->age_ms = t->clock - s->time;
        e->left_ms = idemi_slot_due(t, s) - t->clock;
    } else {
        e->code = 0;
        e->age_ms = 0;
        e->left_ms = idemi_slot_lease_left(t, s);
        e->claim.token = 0;     // the holder's alone
    }
}

/* ---------------------------------------------------------------------------
   >>check     every invariant, by number

   idem_check returns the number of the first that is broken:

     1 T1    2 T2          3 C1    4 C2    5 C3
     6 K1    7 K2          8 K3    9 K4   10 O1   11 O2   12 O3
    13 the sizes in the table are not those of its configuration
   ------------------------------------------------------------------------ */

/* One slot in use, by itself. */
static int idemi_check_slot(const idem_table *t, const idem_slot *s)
{
    unsigned status = s->state & IDEMI_STATUS;
    unsigned misplaced =
        s->state & IDEMI_FINISHED ? IDEMI_ENDLESS : IDEMI_UNDELIVERED;

    if (!status || (s->state & ~(IDEMI_STATUS | IDEMI_UNDELIVERED |
                                 IDEMI_ENDLESS)) || (s->state & misplaced))
        return 6;
    if (!s->key_len || s->scope_len + s->key_len > t->config->key_max ||
        s->response_len > t->config->response_max)
        return 7;
    if (!s->attempts || idemi_keys_token(t, s) - 1 >= t->token)
        return 9;
    if (s->state & IDEMI_ENDLESS)
        return 0;
    if (status == IDEM_IN_PROGRESS && s->time - t->clock > IDEM_LEASE_MAX &&
        t->clock - s->time > IDEM_RETENTION_MAX + IDEMI_SWEEP_MS)
        return 3;
    if (status != IDEM_IN_PROGRESS &&
        t->clock - s->time > s->retention + IDEMI_SWEEP_MS)
        return 4;
    if (idemi_slot_over(t, s) &&
        t->clock - idemi_slot_due(t, s) > t->clock - t->swept)
        return 5;
    if (idemi_clock_rank(t->clock, t->soonest) >
        idemi_clock_rank(t->clock, idemi_slot_due(t, s)))
        return 12;
    return 0;
}

/* One slot in use, as the index sees it: its probe must come to its word. */
static int idemi_check_probe(const idem_table *t, unsigned slot)
{
    idem_slot *s = idemi_slot_at(t, slot);
    const unsigned char *id = idemi_slot_id(s);
    idem_number hash = idemi_index_hash(idemi_hash_id(
        t->config, id, s->scope_len, id + s->scope_len, s->key_len));
    unsigned at = idemi_index_home(t, hash);
    unsigned left = t->index_size;

    if (s->hash != hash)
        return 2;
    for (; left > 0 && t->index[at].slot; left--) {
        if (idemi_index_slot(t, at) == slot)
            return idemi_index_hash_at(t, at) == hash ? 0 : 2;
        at = idemi_index_next(t, at);
    }
    return 2;
}

/* What idem_check counts on its way */
typedef struct idemi_tally {
    uint32_t used, pending, in_progress;    /* slots */
    uint32_t listed;                        /* in the order and the free list */
} idemi_tally;

static int idemi_check_slots(const idem_table *t, idemi_tally *tally)
{
    unsigned slot;

    for (slot = 0; slot < t->capacity; slot++) {
        const idem_slot *s = idemi_slot_at(t, slot);
        int broken;
        if (!s->state)
            continue;
        tally->used++;
        tally->pending += (s->state & IDEMI_UNDELIVERED) != 0;
        tally->in_progress += !(s->state & IDEMI_FINISHED);
        broken = idemi_check_slot(t, s);
        if (!broken)
            broken = idemi_check_probe(t, slot);
        if (broken)
            return broken;
    }
    return 0;
}

static int idemi_check_order(const idem_table *t, idemi_tally *tally)
{
    unsigned ends = t->capacity;
    unsigned slot = ends;
    uint32_t age = UINT32_MAX;

    while (t->links[slot].newer != ends) {
        unsigned older = slot;
        const idem_slot *s;
        slot = t->links[slot].newer;
        if (slot > ends || t->links[slot].older != older ||
            ++tally->listed > ends)
            return 10;
        s = idemi_slot_at(t, slot);
        if (!(s->state & IDEMI_FINISHED) || t->clock - s->time > age)
            return 10;
        age = t->clock - s->time;
    }
    return t->links[ends].older == slot ? 0 : 10;
}

static int idemi_check_free(const idem_table *t, idemi_tally *tally)
{
    unsigned slot = t->free;

    for (; slot != t->capacity; slot = t->links[slot].newer)
        if (slot > t->capacity || idemi_slot_at(t, slot)->state ||
            ++tally->listed > t->capacity)
            return 11;
    return tally->listed + tally->in_progress == t->capacity ? 0 : 11;
}

static int idemi_check_all(const idem_table *t)
{
    idemi_tally tally = { 0, 0, 0, 0 };
    uint32_t words = 0;
    unsigned at;
    int broken;

    if (t->capacity != t->config->capacity ||
        t->index_size != 2 * t->capacity ||
        t->stride != IDEMI_SLOT_SIZE(t->config->key_max,
                                     t->config->response_max) ||
        t->state_len > t->config->state_max)
        return 13;
    broken = idemi_check_slots(t, &tally);
    if (!broken)
        broken = idemi_check_order(t, &tally);
    if (broken)
        return broken;
    for (at = 0; at < t->index_size; at++)
        words += t->index[at].slot != 0;
    if (words != tally.used)
        return 1;
    if (tally.used != t->used || tally.pending != t->pending)
        return 8;
    return idemi_check_free(t, &tally);
}

/* ---------------------------------------------------------------------------
   >>public    validate, lock, do, unlock
   ------------------------------------------------------------------------ */

/* Slots that one idem_maintain looks at. */
#define IDEMI_MAINTAIN_SLOTS 64

/* In every open table, and in no zeroed one: "idem". */
#define IDEMI_MAGIC UINT32_C(0x6D656469)

static void idemi_public_misuse(void)
{
    IDEM_ASSERT(!"idem: a caller's mistake");
}

/* What every caller's mistake is answered with. */
#define IDEMI_MISUSE() (idemi_public_misuse(), IDEM_E_ARG)

static int idemi_public_is_open(const idem_table *t)
{
    return t && t->magic == IDEMI_MAGIC;
}

/* The start of every call on an open table, if its arguments are `valid`: takes
   the lock.  IDEM_OK, or IDEM_E_ARG or IDEM_E_LOCK without the lock. */
static int idemi_public_enter(idem_table *t, int valid)
{
    const idem_config *config;

    if (!valid || !idemi_public_is_open(t))
        return IDEMI_MISUSE();
    config = t->config;
    if (config->lock && config->lock(config->lock_ctx) != 0)
        return IDEM_E_LOCK;
    if (t->inside) {
        if (config->unlock)
            config->unlock(config->lock_ctx);
        return IDEM_E_LOCK;
    }
    t->inside = 1;
    return IDEM_OK;
}

/* The same for a call that is told the time. */
static int idemi_public_enter_at(idem_table *t, int valid, uint32_t now_ms)
{
    int result = idemi_public_enter(t, valid);

    if (result == IDEM_OK)
        idemi_keys_tick(t, now_ms);
    return result;
}

static int idemi_public_leave(idem_table *t, int result)
{
    const idem_config *config = t->config;

#ifdef IDEM_DEBUG
    IDEM_ASSERT(idemi_check_all(t) == 0);
#endif
    t->inside = 0;
    if (config->unlock)
        config->unlock(config->lock_ctx);
    return result;
}

static int idemi_public_bytes(const void *data, size_t len)
{
    return data || !len;
}

static int idemi_public_lease(uint32_t lease_ms)
{
    return lease_ms <= IDEM_LEASE_MAX || lease_ms == IDEM_LEASE_NONE;
}

/* Validates scope and key, and hashes them. */
IDEMI_APART
static int idemi_public_query(const idem_table *t, idemi_query *q,
                              const idem_request *rq)
{
    size_t key_max = t->config->key_max;

    if (!rq || !idemi_public_bytes(rq->key, rq->key_len) ||
        !idemi_public_bytes(rq->scope, rq->scope_len))
        return IDEMI_MISUSE();
    if (!rq->key_len)
        return IDEM_E_ARG;          // the sender's mistake, not the caller's
    if (rq->key_len > key_max || rq->scope_len > key_max - rq->key_len)
        return IDEM_E_TOO_LARGE;
    q->rq = rq;
    q->hash = idemi_index_hash(idemi_hash_id(
        t->config, rq->scope, rq->scope_len, rq->key, rq->key_len));
    IDEMI_PREFETCH(&t->index[idemi_index_home(t, q->hash)]);
    return IDEM_OK;
}

/* Validates what only idem_begin needs, and hashes the payload. */
IDEMI_APART IDEMI_FLAT
static int idemi_public_payload(const idem_table *t, idemi_query *q)
{
    const idem_request *rq = q->rq;
    uint64_t fingerprint = rq->fingerprint;

    if (!idemi_public_bytes(rq->payload, rq->payload_len) ||
        !idemi_public_lease(rq->lease_ms) ||
        rq->retention_ms > IDEM_RETENTION_MAX)
        return IDEMI_MISUSE();
    if (rq->response_size > t->config->response_max)
        return IDEM_E_TOO_LARGE;
    if (!rq->has_fingerprint) {
        idem_fingerprint_state state;
        idem_fingerprint_init(&state, t->config);
        idem_fingerprint_update(&state, rq->payload, rq->payload_len);
        fingerprint = idem_fingerprint_final(&state);
    }
    q->fingerprint[0] = (uint32_t)fingerprint;
    q->fingerprint[1] = (uint32_t)(fingerprint >> 32);
    return IDEM_OK;
}

/* True if a configuration is one. */
static int idemi_public_config(const idem_config *config)
{
    // FNV has no secret; with it both halves pass.
    unsigned char first = IDEM_HASH == IDEM_HASH_FNV;
    unsigned char last = first;
    int i;

    for (i = 0; i < 8; i++) {
        first |= config->secret[i];
        last |= config->secret[i + 8];
    }
    return first && last && config->capacity && config->key_max &&
           config->capacity <= IDEM_CAPACITY_MAX &&
           idemi_public_lease(config->lease_ms) &&
           config->retention_ms <= IDEM_RETENTION_MAX &&
           config->full <= IDEM_EVICT_OLDEST &&
           !config->lock == !config->unlock;
}

/* Wide enough for the size of the largest table, so that no configuration is
   taken for a smaller one, however narrow size_t is. */
#if IDEM_WIDE
typedef uint64_t idemi_size;
#else
typedef uint32_t idemi_size;
#endif

/* Lays the table out in memory, if it is large enough and aligned. */
static int idemi_public_layout(idem_table *t, unsigned char *memory,
                               size_t size)
{
    const idem_config *config = t->config;
    idemi_size capacity = config->capacity;
    idemi_size tail = (idemi_size)config->key_max + config->response_max;
    idemi_size stride = (idemi_size)sizeof(idem_slot) + IDEMI_ROUND4(tail);
    idemi_size order = (capacity + 1) * (idemi_size)sizeof(idem_link);
    idemi_size words = capacity * 2 * (idemi_size)sizeof(idem_word);
    idemi_size links = capacity * stride;
    idemi_size index = links + IDEMI_ROUND4(order);
    idemi_size state = index + IDEMI_ROUND4(words);
    idemi_size needed = state + IDEMI_ROUND4((idemi_size)config->state_max);

    t->needed = (size_t)needed;
    if (t->needed != needed)
        t->needed = (size_t)-1;
    if (!memory || size < needed || (uintptr_t)memory % IDEMI_ALIGNMENT)
        return IDEM_E_MEMORY;
    IDEM_MEMSET(memory, 0, t->needed);
    t->stride = (size_t)stride;
    t->capacity = (unsigned)capacity;
    t->index_size = 2 * t->capacity;
    t->slots = memory;
    t->links = (idem_link *)(void *)(memory + links);
    t->index = (idem_word *)(void *)(memory + index);
    t->state = memory + state;
    return IDEM_OK;
}

/* Everything about an empty table that is not zero. */
static void idemi_public_reset(idem_table *t, uint32_t now_ms)
{
    unsigned slot = t->capacity;
    unsigned i;

    t->links[slot].older = t->links[slot].newer = (idem_number)slot;
    t->free = slot;
    while (slot > 0)
        idemi_order_free(t, --slot);
    t->tick = now_ms;
    t->counted = now_ms;
    t->soonest = t->clock + IDEMI_NEVER_MS;
    t->evicted = t->clock - IDEM_RETENTION_MAX;
    for (i = 0; i < IDEMI_REACHES; i++)
        t->reach[i] = t->clock - 1;     // what was sent before is not known
    t->magic = IDEMI_MAGIC;
}

IDEM_API int idem_open(idem_table *table, const idem_config *config,
                       void *memory, size_t size, uint32_t now_ms)
{
    if (!table)
        return IDEMI_MISUSE();
    IDEM_MEMSET(table, 0, sizeof *table);
    if (!config || !idemi_public_config(config))
        return IDEMI_MISUSE();
    table->config = config;
    if (idemi_public_layout(table, (unsigned char *)memory, size) < 0)
        return IDEM_E_MEMORY;
    idemi_public_reset(table, now_ms);
    return IDEM_OK;
}

IDEMI_FLAT
IDEM_API int idem_begin(idem_table *table, idem_claim *claim,
                        idem_reply *reply, const idem_request *request,
                        uint32_t now_ms)
{
    idemi_query q;
    int result;

    if (claim)
        IDEM_MEMSET(claim, 0, sizeof *claim);
    if (!claim || !reply)
        return IDEMI_MISUSE();
    reply->claim = *claim;
    reply->response_len = 0;
    reply->status = 0;
    reply->code = 0;
    reply->age_ms = 0;
    reply->retry_after_ms = 0;
    if (!idemi_public_is_open(table))
        return IDEMI_MISUSE();
    result = idemi_public_query(table, &q, request);
    if (result == IDEM_OK)
        result = idemi_public_payload(table, &q);
    if (result == IDEM_OK)
        result = idemi_public_enter_at(table, 1, now_ms);
    if (result != IDEM_OK)
        return result;
    return idemi_public_leave(table, idemi_keys_begin(table, claim, reply, &q));
}

/* True if the parts of an outcome that are there can be read. */
static int idemi_public_outcome(const idem_outcome *outcome)
{
    return outcome &&
           idemi_public_bytes(outcome->response, outcome->response_len) &&
           idemi_public_bytes(outcome->state, outcome->state_len);
}

/* idem_complete; with a reply, as idem_run wants it filled in. */
static int idemi_public_complete(idem_table *table, const idem_claim *claim,
                                 idem_reply *reply,
                                 const idem_outcome *outcome, uint32_t now_ms)
{
    int result = idemi_public_enter_at(
        table, claim && idemi_public_outcome(outcome), now_ms);

    if (result < 0)
        return result;
    result = idemi_keys_complete(table, claim, outcome);
    if (result == IDEM_OK && reply)
        idemi_keys_replay(table, (unsigned)claim->slot, reply);
    return idemi_public_leave(table, result);
}

IDEMI_FLAT
IDEM_API int idem_complete(idem_table *table, const idem_claim *claim,
                           const idem_outcome *outcome, uint32_t now_ms)
{
    return idemi_public_complete(table, claim, NULL, outcome, now_ms);
}

IDEM_API int idem_release(idem_table *table, const idem_claim *claim,
                          uint32_t now_ms)
{
    int result = idemi_public_enter_at(table, claim != NULL, now_ms);

    if (result < 0)
        return result;
    if (idemi_keys_current(table, claim))
        idemi_keys_remove(table, (unsigned)claim->slot);
    else
        result = IDEM_E_FENCED;
    return idemi_public_leave(table, result);
}

IDEM_API int idem_renew(idem_table *table, const idem_claim *claim,
                        uint32_t lease_ms, uint32_t now_ms)
{
    int result = idemi_public_enter_at(
        table, claim && idemi_public_lease(lease_ms), now_ms);

    if (result < 0)
        return result;
    return idemi_public_leave(table, idemi_keys_renew(table, claim, lease_ms));
}

/* The part of idem_run after the answer, for a claim that is held. */
IDEMI_APART
static int idemi_public_handle(idem_table *table, const idem_claim *claim,
                               idem_reply *reply, const idem_request *request,
                               idem_handler *handler, void *ctx, int answer,
                               uint32_t now_ms)
{
    idem_outcome outcome;
    int result;

    IDEM_MEMSET(&outcome, 0, sizeof outcome);
    if (handler(ctx, &outcome, request, claim, answer, &now_ms) != 0)
        return idem_release(table, claim, now_ms);
    result = idemi_public_complete(table, claim, reply, &outcome, now_ms);
    return result == IDEM_OK ? answer : result;
}

IDEM_API int idem_run(idem_table *table, idem_claim *claim, idem_reply *reply,
                      const idem_request *request, idem_handler *handler,
                      void *ctx, uint32_t now_ms)
{
    int answer;

    if (!handler) {
        if (claim)
            IDEM_MEMSET(claim, 0, sizeof *claim);
        return IDEMI_MISUSE();
    }
    answer = idem_begin(table, claim, reply, request, now_ms);
    if (answer != IDEM_EXECUTE && answer != IDEM_RECOVER)
        return answer;
    return idemi_public_handle(table, claim, reply, request, handler, ctx,
                               answer, now_ms);
}

IDEM_API int idem_maintain(idem_table *table, uint32_t now_ms)
{
    unsigned left = IDEMI_MAINTAIN_SLOTS;
    int result = idemi_public_enter_at(table, 1, now_ms);

    if (result < 0)
        return result;
    for (; left > 0 && table->tidy < table->capacity; left--)
        idemi_keys_expire(table, table->tidy++);
    if (table->tidy < table->capacity)
        return idemi_public_leave(table, IDEM_MORE);
    table->tidy = 0;
    return idemi_public_leave(table, IDEM_OK);
}

IDEM_API int idem_elapse(idem_table *table, uint32_t off_ms)
{
    int result = idemi_public_enter(table, 1);

    if (result < 0)
        return result;
    idemi_keys_advance(table, off_ms);
    return idemi_public_leave(table, IDEM_OK);
}

/* The start of a call about one key: the lock, and the key's slot. */
static int idemi_public_lookup(idem_table *table, unsigned *slot,
                               const idem_request *request, uint32_t now_ms)
{
    idemi_query q;
    int result;

    if (!idemi_public_is_open(table))
        return IDEMI_MISUSE();
    result = idemi_public_query(table, &q, request);
    if (result != IDEM_OK)
        return result;
    result = idemi_public_enter_at(table, 1, now_ms);
    if (result != IDEM_OK)
        return result;
    *slot = idemi_keys_find(table, &q);
    if (*slot == IDEMI_NONE)
        return idemi_public_leave(table, IDEM_E_NOT_FOUND);
    return IDEM_OK;
}

IDEM_API int idem_find(idem_table *table, idem_entry *entry,
                       const idem_request *request, uint32_t now_ms)
{
    unsigned slot;
    int result;

    if (!entry)
        return IDEMI_MISUSE();
    result = idemi_public_lookup(table, &slot, request, now_ms);
    if (result != IDEM_OK)
        return result;
    idemi_keys_describe(table, slot, entry);
    return idemi_public_leave(table, IDEM_OK);
}

IDEM_API int idem_forget(idem_table *table, const idem_request *request,
                         uint32_t now_ms)
{
    unsigned slot;
    int result = idemi_public_lookup(table, &slot, request, now_ms);
    const idem_slot *s;

    if (result != IDEM_OK)
        return result;
    s = idemi_slot_at(table, slot);
    if (!(s->state & IDEMI_FINISHED) && idemi_slot_lease_left(table, s))
        return idemi_public_leave(table, IDEM_BUSY);
    idemi_keys_remove(table, slot);
    return idemi_public_leave(table, IDEM_OK);
}

IDEM_API int idem_next(idem_table *table, idem_entry *entry, uint32_t now_ms)
{
    int result = idemi_public_enter_at(table, entry != NULL, now_ms);

    if (result < 0)
        return result;
    while (entry->cursor < table->capacity) {
        unsigned slot = (unsigned)entry->cursor++;
        const idem_slot *s = idemi_slot_at(table, slot);
        if (!s->state || idemi_slot_over(table, s))
            continue;
        idemi_keys_describe(table, slot, entry);
        return idemi_public_leave(table, IDEM_OK);
    }
    return idemi_public_leave(table, IDEM_E_NOT_FOUND);
}

IDEM_API int idem_pending(idem_table *table, idem_entry *entry,
                          uint32_t now_ms)
{
    unsigned slot;
    int result = idemi_public_enter_at(table, entry != NULL, now_ms);

    if (result < 0)
        return result;
    slot = table->capacity;
    if (idemi_keys_outcome(table, &entry->claim))
        slot = (unsigned)entry->claim.slot;
    do {
        slot = table->links[slot].newer;
        if (slot == table->capacity)
            return idemi_public_leave(table, IDEM_E_NOT_FOUND);
    } while (!(idemi_slot_at(table, slot)->state & IDEMI_UNDELIVERED) ||
             idemi_slot_over(table, idemi_slot_at(table, slot)));
    idemi_keys_describe(table, slot, entry);
    return idemi_public_leave(table, IDEM_OK);
}

IDEM_API int idem_delivered(idem_table *table, const idem_claim *claim)
{
    idem_slot *s;
    int result = idemi_public_enter(table, claim != NULL);

    if (result < 0)
        return result;
    s = idemi_keys_outcome(table, claim);
    if (!s)
        return idemi_public_leave(table, IDEM_E_NOT_FOUND);
    if (s->state & IDEMI_UNDELIVERED) {
        s->state &= (uint8_t)~IDEMI_UNDELIVERED;
        table->pending--;
    }
    return idemi_public_leave(table, IDEM_OK);
}

IDEM_API int idem_response(idem_table *table, void *dst, size_t *len,
                           const idem_claim *claim, size_t at)
{
    idem_slot *s;
    size_t rest = 0;
    int result = idemi_public_enter(
        table, len && claim && idemi_public_bytes(dst, *len));

    if (result < 0)
        return result;
    s = idemi_keys_outcome(table, claim);
    if (!s) {
        *len = 0;
        return idemi_public_leave(table, IDEM_E_NOT_FOUND);
    }
    if (at < s->response_len)
        rest = s->response_len - at;
    if (*len > rest)
        *len = rest;
    if (*len)
        IDEM_MEMCPY(dst, idemi_slot_response(table, s) + at, *len);
    return idemi_public_leave(table, IDEM_OK);
}

IDEM_API int idem_state(idem_table *table, void *dst, size_t *len)
{
    size_t size;
    int result =
        idemi_public_enter(table, len && idemi_public_bytes(dst, *len));

    if (result < 0)
        return result;
    size = *len;
    *len = table->state_len;
    if (size < *len)
        return idemi_public_leave(table, IDEM_E_TOO_LARGE);
    idemi_basics_copy(dst, table->state, *len);
    return idemi_public_leave(table, IDEM_OK);
}

IDEM_API int idem_horizon(idem_table *table, uint32_t *horizon_ms,
                          uint32_t now_ms)
{
    uint32_t reaches;
    int result = idemi_public_enter_at(table, horizon_ms != NULL, now_ms);

    if (result < 0)
        return result;
    reaches = table->clock - table->evicted;
    *horizon_ms = idemi_keys_retention(table, 0);
    if (reaches < *horizon_ms)
        *horizon_ms = reaches;
    return idemi_public_leave(table, IDEM_OK);
}

IDEM_API const char *idem_text(int result)
{
#define IDEMI_RESULT_CASE(name, value, text)                                   \
    case name:                                                                 \
        return text;

    switch (result) {
        IDEM_RESULTS(IDEMI_RESULT_CASE)
    default:
        return "not a result of idem.h";
    }
}

IDEM_API int idem_check(const idem_table *table)
{
    if (!idemi_public_is_open(table))
        return IDEMI_MISUSE();
    return idemi_check_all(table);
}

#ifdef __cplusplus
}
#endif
#endif /* IDEM_IMPLEMENTATION */

/* ---------------------------------------------------------------------------
   >>licence   BSD Zero Clause License (0BSD)

   Copyright (C) 2026 by the idem.h authors

   Permission to use, copy, modify, and/or distribute this software for any
   purpose with or without fee is hereby granted.

   THE SOFTWARE IS PROVIDED "AS IS" AND THE AUTHOR DISCLAIMS ALL WARRANTIES WITH
   REGARD TO THIS SOFTWARE INCLUDING ALL IMPLIED WARRANTIES OF MERCHANTABILITY
   AND FITNESS. IN NO EVENT SHALL THE AUTHOR BE LIABLE FOR ANY SPECIAL, DIRECT,
   INDIRECT, OR CONSEQUENTIAL DAMAGES OR ANY DAMAGES WHATSOEVER RESULTING FROM
   LOSS OF USE, DATA OR PROFITS, WHETHER IN AN ACTION OF CONTRACT, NEGLIGENCE OR
   OTHER TORTIOUS ACTION, ARISING OUT OF OR IN CONNECTION WITH THE USE OR
   PERFORMANCE OF THIS SOFTWARE.
   ------------------------------------------------------------------------ */
