/* idem.h  0.1.0   execute each command at most once per idempotency key
   SPDX-License-Identifier: 0BSD        (the text is at the end of the file)

   A sender that gets no answer sends its command again, with the same key.
   idem.h lets the device execute it once, and gives every repeat the same
   answer; with a journal (>>durable) also after restarts and power cuts.

   ```c
   #define IDEM_IMPLEMENTATION            // in one C or C++ file only
   #include "idem.h"
   #include <stdio.h>
   // 64 keys, 24 bytes of scope and key, 16 of a response; no state, no senders
   IDEM_DEFINE_MEMORY(pump, 64, 24, 16, 0, 0);
   static idem_config config = { IDEM_SIZES(pump) };
   static idem_table table;
   static uint32_t now(void) { static uint32_t ms; return ++ms; }  // a dummy
   static int pour(idem_job *job)
   {
       job->outcome.failed = job->answer != IDEM_EXECUTE;
       if (!job->outcome.failed)        // else it may have run: do not again
           puts("the pump runs");
       job->outcome.response = job->outcome.failed ? "look!" : "poured";
       job->outcome.response_len = 6;
       return IDEM_HANDLED;
   }
   int main(void)
   {
       char answer[17] = "";
       idem_reply reply;
       idem_request request = { .key = "42", .key_len = 2, .payload = "5 ml",
           .payload_len = 4, .buffer = answer, .buffer_size = 16 };
       FILE *random = fopen("/dev/urandom", "rb");
       if (!random || fread(config.secret, 1, 16, random) != 16)
           return 1;                    // the secret of a device: >>identity
       if (idem_open(&table, &config, pump_memory, sizeof pump_memory, now()))
           return 1;                    // idem_explain returns the reason
       for (int i = 0; i < 2; i++)      // the command, and a repeat of it
           if (idem_run(&table, &reply, &request, pour, NULL, now) >= 0)
               puts(answer);            // the pump runs, poured, poured
   }
   ```

   With a journal in flash; callbacks (>>porting) and a stored secret are yours:
   ```c
   // .. in sectors of 4096 bytes, of which 8 are programmed at a time
   IDEM_DEFINE_JOURNAL_MEMORY(pump, 64, 24, 16, 0, 0, 4096, 8);
   static const idem_storage flash = {
       .read = flash_read, .prog = flash_prog, .erase = flash_erase,
       .sector_size = pump_sector_size,
       .sector_count = 16,  // pump_sector_count (7) or more; never changed
       .prog_size = pump_prog_size, .erased = 0xFF };
   static idem_config config = { IDEM_SIZES(pump), .storage = &flash };
   ```

   Call idem_open once, idem_run for each command, idem_maintain when idle.
   C99, C++11.  No allocation, clock, globals, recursion, floats, dependencies.

   Contents (search for the marker)
     manual     >>life >>handler >>answers >>replying >>identity >>sizing >>time
                >>full >>durable >>damage >>porting >>migrating >>patterns
                >>delivery >>numbers >>duties >>concurrency >>promises
     interface  >>config >>types >>functions >>helpers >>posix (a file)
     code       "Below this line nothing is promised"; at its end >>licence

   >>life      of a key

                     EXECUTE                complete
         unknown ---------------> claimed ------------> finished
          ^ ^ ^                   | | | ^                | | ^
          | | |      release      | | | |  lease ended:  | | |  a repeat:
          | | +-------------------+ | +-+  RECOVER       | +-+  REPLAY
          | +-- expired, forgotten -+                    |
          +---- expired, evicted, forgotten -------------+

   The key names a command: a new command has a new key, a repeat has the key of
   its command.  idem_begin looks it up.  An unknown key gets a claim: the right
   to execute the command.  While the claim is held, a repeat is answered
   IDEM_BUSY.  idem_complete stores the outcome: a response, a code, and whether
   the command failed.  From then on a repeat is answered IDEM_REPLAY, with the
   outcome.  When the key's retention ends it expires, and is unknown again.

   A claim has a lease: the time for which nobody else gets one on its key.  If
   the lease ends before the outcome is stored, or the device restarts, the
   attempt was interrupted.  The next begin gets a claim, IDEM_RECOVER; then the
   old one is IDEM_E_FENCED.  (No journal: drop claims at boot; tokens restart.)

   >>handler   your code: the answers that it gets, and those that it returns

   idem_run claims the key, calls your handler, stores the outcome and fills in
   the reply; a response goes to request.buffer.  The handler gets job->answer:

     IDEM_EXECUTE     No earlier attempt is known.  Execute the command.
     IDEM_RECOVER     An earlier attempt was interrupted, and no outcome was
                      recorded.  It may have had its effect: look.  If it did
                      not, or if twice is harmless, execute the command.
     IDEM_UNCERTAIN   Stored records were lost by damage, and some of this key
                      may be among them.  It may have had its effect, and even
                      have been answered: look, as above.

   If you cannot look, and the effect must not happen twice, do not execute: set
   job->outcome.failed, and let a person look.  The handler returns

     IDEM_HANDLED      Store job->outcome; every repeat gets it.  A final
                       failure (no such valve) is an outcome with `failed`.
     IDEM_NOT_DONE     Neither this attempt nor an earlier one had an effect
                       (no water pressure): give the claim back.  A repeat
                       is then as the first (or too old: >>numbers).
     IDEM_CANNOT_TELL  (or any other number)  Keep the claim.  A repeat is BUSY
                       until the lease ends, then RECOVER: interrupted.

   If the effect ends long after the command has come, use the two halves of
   idem_run (examples/patterns.c).  idem_begin grants a claim, which you keep,
   and returns one of the three above; or it returns an answer for the sender.
   When the effect has ended, idem_complete stores the outcome: report it as
   done only if that succeeds.  idem_release gives the claim back.

   >>answers   zero and up: the question is answered; below zero: it failed

     result            changed?  meaning, and what to do next
     IDEM_OK           as asked  -
     IDEM_EXECUTE, _RECOVER, _UNCERTAIN
                       claimed   idem_begin: >>handler; complete or release
     IDEM_REPLAY       no        handled before: send the stored outcome
     IDEM_BUSY         no (*)    being executed, or its handler does not know:
                                 wait retry_after_ms (as idem_retry does)
     IDEM_MISMATCH     no        the key was used for another payload: refuse
     IDEM_TOO_OLD      no        unknown, and older than what is remembered: it
                                 may have been executed: refuse
     IDEM_EXHAUSTED    no        max_attempts (3) were interrupted: refuse, and
                                 raise an alarm; until idem_forget, or for one
                                 retention after the last of them
     IDEM_DONE         yes       idem_run: handled now: send the outcome
     IDEM_RELEASED     yes       idem_run: not done; the key is unknown again
     IDEM_MORE         yes       idem_maintain has more to do
     IDEM_E_ARG        no        a caller's mistake: NULL, closed, out of range;
                                 or a sender's: a command without a key
     IDEM_E_TOO_LARGE  no        longer than key_max or another limit; or the
                                 buffer is too short: *len is the length needed
     IDEM_E_FULL       no        no room, or the quota is used up: wait
                                 reply.retry_after_ms, if that is not 0
     IDEM_E_FENCED     no (*)    the claim is not current: drop the result
     IDEM_E_NOT_FOUND  no        no such key, or no such outcome any more
     IDEM_E_MEMORY     no        idem_open: memory too small, or misaligned
     IDEM_E_LOCK       no (*)    lock refused; called by a callback; file in use
     IDEM_E_STORAGE    maybe (*) the storage failed (table.storage_error):
                                 report nothing as done, repeat the call; if
                                 that does not help (after a failed sync it
                                 cannot), open the table again
     IDEM_E_FORMAT     no        idem_open: the storage holds something else:
                                 idem_explain names it (>>migrating)
     IDEM_E_SPACE      no (*)    idem_open: too few or too small sectors; later:
                                 too many sectors fail, or no token is left

   (*) From idem_run with a reply.claim.token: the handler ran (>>functions).
   An attempt counts from its claim on, even if power fails before the effect:
   if that is often so, and your handler can look, raise max_attempts (to 255).

   >>replying   answers to the sender (HTTP: the IETF's Idempotency-Key draft)

     result               HTTP               CoAP   MQTT 5 reason code
     DONE, REPLAY         the outcome's own  2.04   0x00 success
     the same, failed     the outcome's own  5.00   0x80 unspecified error
     BUSY                 409 + Retry-After  5.03   0x97 quota exceeded
     MISMATCH             422                4.22   0x99 payload format invalid
     TOO_OLD              410                4.12   0x83 implementation specific
     EXHAUSTED, UNCERTAIN 500                5.00   0x83
     E_FULL               503 + Retry-After  5.03   0x97
     no key, too long     400                4.00   0x83
     RELEASED, others     503                5.03   0x97

   For idem_retry put the result into the payload, too: these codes are too few.

   >>identity

   Scope and key are compared in full: ("ab","c") and ("a","bc") are two keys.
   The scope names the key's owner: a sender, a topic.  It may be empty; the key
   has at least one byte.  Take the scope from a name that the transport has
   proved, not from the message: a key is no password.  idem_key_uuid, _hex,
   _ulid and _http make a key from text; if they refuse, do not execute.

   The fingerprint is a 64-bit hash of the payload.  A known key with another
   fingerprint is IDEM_MISMATCH, before any other answer.  If two payloads mean
   the same, hash one form of them yourself, with idem_fingerprint_init, _update
   and _final, and set request.fingerprint.

   config.secret is the key of all hashes: 16 random bytes of this device's own,
   neither half zero.  A device gets them in the factory (od -An -N16 -tx1
   /dev/urandom), or from a hardware random generator at its first boot.  Store
   them before the journal is first opened, where nobody else reads them.  With
   another secret the journal is IDEM_E_FORMAT.

   >>sizing

     retention_ms   at least as long as a sender may repeat a command: a repeat
                    that comes later is executed again.  0: 24 hours
     capacity       commands per hour x hours of retention
     key_max        bytes of the longest scope and key together
     response_max   bytes of the longest response
     state_max      bytes of application state (>>patterns); else 0

   IDEM_DEFINE_MEMORY, or with a journal IDEM_DEFINE_JOURNAL_MEMORY, defines the
   memory and the numbers for config and storage; it does not compile if a
   sector is too small.  From other languages call idem_memory_size and
   idem_sector_count, and wrap idem_open, a macro, in a C function.

   If the program has one configuration, give it to the compiler (IDEM_CONFIG in
   >>config): without senders, eviction and state it leaves out a third.

   >>time

   now_ms is a tick of milliseconds: a uint32_t that starts anywhere and wraps
   every 49.7 days.  Each call adds the advance of the tick since the last call
   to the table's clock; 24.8 days or more are taken for a step back:

     up to 65.0 s   The clock stops until the tick passes its old value: threads
                    may call with ticks that they read a moment before.
     more           The clock follows the new tick.  If a call's tick is nearer
                    to the old value, one was late: it goes on from there.

   So a tick that wraps, stops or goes back makes leases and retentions longer,
   never shorter.  Four mistakes make them shorter: microseconds given as
   milliseconds; a wall clock that is set; calls that are late, one by more than
   65 s and the next by more than 32 s, or the first after a reset; a reset by
   more than 24.8 days, which looks like running on (open the table again).  The
   tick must have 32 bits.  Call at least once in 24 days, or use idem_elapse.

     lease      lease_ms from idem_begin on (0: the default, 30 s; at most
                IDEM_LEASE_MAX, 6.2 days; IDEM_LEASE_NONE: as long as this
                boot).  Set it above the longest command, or renew: a repeat
                after its end is RECOVER, even while the pump still runs.
                Without one the claim stays current until its key expires.
     retention  retention_ms from the completion on, or of an interrupted key
                from the end of its lease on (0: the default, 24 hours; at most
                IDEM_RETENTION_MAX, 30 days)

   A restart ends all leases.  With a journal the clock goes on from its newest
   record: later time, and time without power, is lost.  So the time is written
   when that record is old: by idem_maintain after retention / 8, by a begin
   with IDEM_E_FULL after a minute.  37 days without a record stop the clock.

   claim.token, the fencing token, grows with every claim since the opening, or
   with a journal since idem_format (unless damage to the two newest headers, or
   unnoticed damage, puts it back).  A driver that refuses a smaller one than
   before stops a late holder.  (No journal: reset it at boot.)

   >>full      all keys are in use, and none has expired

     config.full             a new key
     IDEM_REJECT (default)   is IDEM_E_FULL.  Known keys get their answers.
     IDEM_EVICT_OLDEST       replaces the oldest outcome; no claim, and nothing
                             undelivered (>>delivery).  A repeat of the evicted
                             one is IDEM_EXECUTE; of a number IDEM_TOO_OLD.

   config.quota, with config.senders, limits the keys of a scope: its commands
   in one retention.  Over it new keys are IDEM_E_FULL, or evict its own.

   A request may have an age: age_ms, from the first send to this call.  Add the
   longest time in the link, and round up: one that is too small may be executed
   twice.  Then an unknown key is IDEM_TOO_OLD, if its age is at least
     - the retention;
     - the time since an evicted outcome was completed (idem_horizon);
     - the time since the opening, without a journal or with IDEM_EVICT_OLDEST.

   >>durable   a journal: memory that survives power cuts

   Set config.storage (>>porting; a file: >>posix).  All keys are in RAM: no
   look-up reads the storage.

     call                     durable when it returns
     idem_begin, a claim      the claim.  So after a restart during the effect
                              the answer is IDEM_RECOVER, never IDEM_EXECUTE
     idem_complete            outcome, application state, and `confirm`: one
                              record, all or nothing
     idem_release, _forget,   that
     _delivered
     idem_begin, no claim     if need be the time (>>time), a floor (>>numbers).
                              The first begin of a boot rewrites the newest
                              record, which a cut may have left half programmed
     idem_maintain            if need be the time.  (All other calls: nothing.)

     durability IDEM_BATCH    all this is durable with the next idem_sync: sync
                              before you execute, and again before you answer.
                              The table syncs when it begins a sector, before a
                              second state in a batch, and with senders in
                              idem_release and idem_forget

   When the device is idle, call idem_maintain while it answers IDEM_MORE: it
   erases, and relocates old records, so that commands need not wait for that.
   Failing sectors are tried again later; three in a row can end new claims.

   >>damage    flipped bits, worn cells, a wild write

   A power cut loses nothing that was acknowledged (but see S2).  Damage can: a
   flipped bit at most its record, in a sector's header nothing.  After a loss
   stats.lost is not 0, and for a default retention (idem_uncertain) each claim
   is granted with IDEM_UNCERTAIN.  If no header can be read: IDEM_E_FORMAT.  A
   restored backup forgets later commands and tokens: stop the senders first.

   Not noticed is damage to the newest record, with IDEM_BATCH to a boot's last
   batch (it looks torn); to the newest sector's header and records together (it
   looks unused); to all headers, if the rest is in sectors 1 to 3 (blank).

   >>porting   a flash, EEPROM or FRAM: idem_storage in >>types has the rules

   First run examples/port/check.h with your callbacks on the device: it prints
   what is wrong.  A granule (prog_size) is the smallest unit that is programmed
   once: 8 bytes on an STM32L4, 16 on an STM32U5 or H5, 1 on most SPI NOR, as
   for littlefs.  Set verify if the chip reports no failed program or erase.

   >>migrating

   A journal opens with another capacity, key_max, response_max, state_max, full
   or durability, and more senders (fewer are not refused, but safe only if no
   number was used and no sender forgotten).  Stored keys keep their retention;
   what no longer fits is lost, as if damaged (IDEM_UNCERTAIN).  A key that was
   evicted before a change to IDEM_REJECT is IDEM_EXECUTE.  With another secret,
   IDEM_HASH, prog_size, erased, sector_size or sector_count it is
   IDEM_E_FORMAT: choose sector_count for the most keys that you may want; or

     copy it    examples/migrate.c copies keys, state and undelivered outcomes
                (same secret and IDEM_HASH).  Senders begin a new epoch.
     forget it  idem_format.  A repeat of an old command is executed again: wait
                until no sender can repeat one.

   >>patterns

     - A command that resets the device (reboot, update): complete and answer
       before the effect.  After it, the reset would interrupt every attempt.
     - Emergency stop: do not ask the table.  Stopping twice is harmless;
       refusing to stop because a table is full is not.
     - A long operation: call idem_renew meanwhile; on IDEM_E_FENCED, stop.
     - An effect that is the application's own state (a total, a counter): read
       it with idem_state, and give the new one to idem_complete as
       outcome.state.  They are one record, so on IDEM_RECOVER the effect has
       not happened: execute it.  On IDEM_UNCERTAIN it may have: let a person
       look.  Let no other command in between reading and completing.

   >>delivery

   An outcome completed with `confirm` is undelivered until
   idem_delivered(claim).  idem_pending lists such outcomes, oldest first: a
   queue of results, each sent at least once (examples/patterns.c).  They are
   not evicted; when retention ends they are dropped (stats.undelivered).

   >>numbers   quotas, and numbers instead of keys

   config.senders is for how many scopes the table keeps an entry.  Then a quota
   limits each, and a sender may number its commands (request.epoch, .sequence,
   no key), as LoRaWAN and Kafka do.  Numbers are compared by epoch, then by
   sequence.  One is a key while its outcome is remembered, and old after that:

     the number               the answer
     known                    as for any key (>>answers)
     of an older epoch        IDEM_TOO_OLD, unless its outcome is known
     at or below the floor    IDEM_TOO_OLD
     above it                 IDEM_EXECUTE, in any order, with gaps of any width
     of a newer epoch         IDEM_EXECUTE, if there is room: the floor starts
                              anew, claims of older epochs are fenced

   A refused number stays refused after a restart.  With a journal each refusal
   may write a record (>>functions): limit its rate.

   The floor is the lower edge of the replay window: the highest number that was
   evicted, or dropped after it expired.  Released and forgotten numbers do not
   raise it; they are refused, too, once it has passed them.  Sequences
   end at 4,294,967,295: then, or to count anew, the sender takes a higher
   epoch, from its clock or a counter of its starts.  Authenticate it: after a
   forged epoch of 4,294,967,295 it can take no other.

   A number takes 8 bytes of key_max.  Add IDEM_SENDERS_MEMORY_SIZE (to evict by
   quota IDEM_QUOTA_MEMORY_SIZE, too) to the memory, and senders to the capacity
   in IDEM_SECTORS.  A quarter more entries than senders keeps look-ups short.
   When all are in use, a new sender
     - takes over one with no keys and no floor;
     - or with IDEM_EVICT_OLDEST one without live keys: that whose last new key
       is oldest, to 9 minutes (after a restart any).  Its numbers are new then;
     - or is IDEM_E_FULL, with IDEM_REJECT until idem_forget frees an entry.
   After a change to fewer entries, damage, or a torn batch, old numbers of any
   sender may be IDEM_EXECUTE again, and its claims IDEM_E_FENCED.

   >>duties    of the sender

     - One key for each intention, not for each message: random, or a number.
     - Key and command are durable before they are sent, and after a restart the
       same bytes are sent again.  A table is such an outbox: examples/sender.c.
     - Wait and stop as idem_retry answers; without an answer nothing is known.

   >>concurrency

   Without lock functions a table belongs to one thread, or to code that no
   interrupt enters again.  With config.lock and unlock all calls but idem_open,
   _format, _explain and _check may come from any thread.  Storage callbacks run
   under the lock, except sync_unlocked, and all in idem_open, _format and
   _explain (hold it if others use the bus); your handler does not.  If lock
   does not return 0, the call is IDEM_E_LOCK; so is a call from inside another
   (a plain mutex hangs there: examples/port/threads.h).

   With IDEM_BATCH many threads can share one sync (examples/group.h): while
   idem_sync waits for a file, or for a storage with sync_unlocked, it does not
   hold the lock.  All that was written before it began is durable then.
   Before you send an answer, even IDEM_REPLAY, begin a sync and wait for it:
   the answer may rely on a record that is not durable yet.  A handler of
   idem_run calls idem_sync before the effect.

   >>promises   S: safety, L: liveness, H: honesty; without a journal, of a boot

     S1  At most one claim on a key is current.  A claim that is not current
         changes nothing: complete, release and renew answer IDEM_E_FENCED.
     S2  An outcome is replayed, byte for byte, until its retention ends (or
         idem_forget or eviction removes it).  With a journal that holds over
         any number of power cuts, at any instant, even during recovery.  (But
         two torn writes in a row may lose it if their cells are unstable.)
     S3  A stored response is never given to another payload, key or scope.
     S4  A command whose key is remembered is never answered IDEM_EXECUTE if an
         earlier attempt may have had an effect.  When that has ended it is
         IDEM_RECOVER (in the end IDEM_EXHAUSTED) until somebody completes,
         releases or forgets it, or for one retention.  After a loss it is
         IDEM_UNCERTAIN for one default retention.  A number is IDEM_EXECUTE
         again only if it was released or forgotten, its sender lost its entry,
         or its record was lost and that time has ended.
     S5  Damage that is noticed never gives a wrong answer, nor prevents the
         opening of the rest, if one header is whole (>>damage).
     S6  Time never shortens a lease or a retention (>>time has the exceptions).
     S7  A call that fails changed nothing but what its contract lists.  A claim
         is granted only if its outcome is certain to fit: completing fails only
         where the medium fails.
     S8  No byte is programmed twice between erases, nor where a cut may have
         left it half done.  Only the given memory and storage are touched.
     S9  Keys that an enemy chose cost no more than random ones (not so with
         IDEM_HASH_FNV), refused commands no more than accepted ones.  With a
         quota nobody pushes out another scope's keys under IDEM_REJECT; nor
         with eviction if quota x senders <= capacity, unless claims that came
         back (S10) put a scope over its quota.
     S10 An answer holds in later boots until a call changes it.  But time that
         is not recorded is lost, and an expired claim or number may come back.
         Calls that only look write nothing: what they showed may be lost.
     L1  Every call ends in bounded steps; the bounds are in >>functions.
     L2  The table never wedges, even if power fails every night, until tokens
         end (4 GB of journal without IDEM_WIDE).  Leases (but IDEM_LEASE_NONE)
         and retention end, attempts in IDEM_EXHAUSTED, entries by idem_forget.
     L3  A call that writes erases at most one sector, and none if idem_maintain
         had its idle time after the boot's first write; more after failures,
         losses and interrupted rotations (>>functions has the bounds).
     H1  "Exactly once" is not promised: an interrupted effect that is neither
         harmless to repeat nor visible may happen once too often or not at all.
*/

/* ===========================================================================
   Interface
   ======================================================================== */
#ifndef IDEM_H
#define IDEM_H

/* ---------------------------------------------------------------------------
   >>config    macros that may be defined before the header is included

   "All." after an option: the same in all files of a program.  idem_open
   refuses a file whose version, IDEM_WIDE or IDEM_HASH differs: IDEM_E_ARG.

     IDEM_STATIC          not set; makes all functions static, a private copy
     IDEM_API             extern; linkage of the public functions.  All.
     IDEM_ASSERT(x)       nothing; does what assert(x) does
     IDEM_MISUSE()        IDEM_ASSERT(0); is called for a caller's mistake
     IDEM_DEBUG           not set; ends each call on an open table with
                          IDEM_ASSERT(idem_check(table) == 0).  Slow
     IDEM_CONFIG          not set; the one configuration of a program (below)
     IDEM_WIDE            1 on 64-bit machines: up to 16,777,215 keys; else 0:
                          up to 32,767, with indices of 16 bits.  All.
     IDEM_HASH            IDEM_HASH_SIPHASH on 64-bit machines, else
                          IDEM_HASH_HALFSIPHASH; or IDEM_HASH_FNV, without a
                          secret, if nobody on the link is hostile.  All.
     IDEM_FILE_STORAGE    not set; declares idem_file_open (>>posix).  Define
                          before the first #include _POSIX_C_SOURCE 200809L; on
                          macOS _DARWIN_C_SOURCE too; on Linux _GNU_SOURCE: a
                          sync takes up to a third less; on 32-bit systems, for
                          files of 2 GB and more, _FILE_OFFSET_BITS 64
     IDEM_MEMCPY, IDEM_MEMSET, IDEM_MEMCMP    those of <string.h>; all or none

   IDEM_CONFIG is known when compiling, in the file of the implementation:

     #include "idem.h"
     static const idem_config fixed = { .. };
     #define IDEM_CONFIG fixed
     #define IDEM_IMPLEMENTATION
     #include "idem.h"

   idem_open takes fixed, or a copy of it with another secret, and nothing else.
   ------------------------------------------------------------------------ */
#include <stddef.h>
#include <stdint.h>
#ifdef IDEM_FILE_STORAGE
#include <pthread.h>
#endif

#define IDEM_VERSION 0x000100                       /* 0.1.0, a byte a number */

#define IDEM_HASH_SIPHASH     1
#define IDEM_HASH_HALFSIPHASH 2
#define IDEM_HASH_FNV         3

#ifndef IDEM_WIDE
#define IDEM_WIDE (UINTPTR_MAX > 0xFFFFFFFFu)
#endif

#if !defined(IDEM_HASH) && UINTPTR_MAX > 0xFFFFFFFFu
#define IDEM_HASH IDEM_HASH_SIPHASH
#elif !defined(IDEM_HASH)
#define IDEM_HASH IDEM_HASH_HALFSIPHASH
#endif

#if IDEM_HASH != IDEM_HASH_SIPHASH && IDEM_HASH != IDEM_HASH_HALFSIPHASH && \
    IDEM_HASH != IDEM_HASH_FNV
#error "IDEM_HASH: IDEM_HASH_SIPHASH, IDEM_HASH_HALFSIPHASH or IDEM_HASH_FNV"
#endif

/* The options that all files of a program share (>>config), for idem_open. */
#define IDEM_BUILD                                                             \
    (((IDEM_VERSION * UINT32_C(8) + (IDEM_WIDE != 0) * 4u + IDEM_HASH) *       \
      UINT32_C(1024)) + sizeof(idem_table))

/* On functions whose answer decides whether a command is executed. */
#ifdef __GNUC__
#define IDEMI_MUST_USE __attribute__((warn_unused_result))
#define IDEMI_EXTENSION __extension__   /* enumerators above 16 bits of int */
#else
#define IDEMI_MUST_USE
#define IDEMI_EXTENSION
#endif

#if !defined(IDEM_API) && defined(IDEM_STATIC)
#define IDEM_API static inline         /* inline: no warning if not used */
#elif !defined(IDEM_API)
#define IDEM_API extern
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---------------------------------------------------------------------------
   >>types

   Interface: idem_storage, idem_config, _request, _claim, _reply, _outcome,
   _job, _info, _stats.  The other structs are visible so that you can allocate
   them; their fields are for a debugger, and promised only where marked so.
   C++20 names fields in initializers as C99 does, but in this order; before
   that zero a struct, and assign its fields.
   ------------------------------------------------------------------------ */

/* The results of calls (>>answers) */
#define IDEM_RESULTS(X)                                                        \
    X(IDEM_OK,           0, "done")                                            \
    X(IDEM_EXECUTE,      1, "first time: the claim is yours, execute it")      \
    X(IDEM_RECOVER,      2, "the claim is yours, an attempt was interrupted")  \
    X(IDEM_UNCERTAIN,    3, "the claim is yours, but records were lost")       \
    X(IDEM_REPLAY,       4, "finished before: send the stored outcome")        \
    X(IDEM_BUSY,         5, "being executed: the sender is to wait")           \
    X(IDEM_MISMATCH,     6, "the key was used for another payload")            \
    X(IDEM_TOO_OLD,      7, "unknown, and older than what is remembered")      \
    X(IDEM_EXHAUSTED,    8, "all attempts allowed were interrupted")           \
    X(IDEM_DONE,         9, "handled, and the outcome is recorded")            \
    X(IDEM_RELEASED,    10, "not done, given back: a retry is new")            \
    X(IDEM_MORE,        11, "done, and more idle work waits")                  \
    X(IDEM_E_ARG,       -1, "an argument is impossible")                       \
    X(IDEM_E_TOO_LARGE, -2, "over the limit, or the buffer is too short")      \
    X(IDEM_E_FULL,      -3, "no room for a new key")                           \
    X(IDEM_E_FENCED,    -4, "the claim is not current")                        \
    X(IDEM_E_NOT_FOUND, -5, "no such key or outcome")                          \
    X(IDEM_E_MEMORY,    -6, "too little memory, or misaligned")                \
    X(IDEM_E_LOCK,      -7, "locked by another, or a nested call")             \
    X(IDEM_E_STORAGE,   -8, "the storage failed, or was not ready")            \
    X(IDEM_E_FORMAT,    -9, "the storage holds something else")                \
    X(IDEM_E_SPACE,    -10, "the storage is too small, or too worn")

#define IDEMI_RESULT_ENUM(name, value, text) name = value,
enum idem_result { IDEM_RESULTS(IDEMI_RESULT_ENUM) };

/* idem_reply.status, idem_info.status.  A final failure is replayed, too. */
enum idem_status { IDEM_IN_PROGRESS = 1, IDEM_COMPLETED = 2, IDEM_FAILED = 3 };

/* idem_config.full: the answer to a new key when all slots are live */
enum idem_full { IDEM_REJECT = 0, IDEM_EVICT_OLDEST = 1 };

/* idem_config.durability: durable when the call returns, or with idem_sync */
enum idem_durability { IDEM_EACH = 0, IDEM_BATCH = 1 };

/* idem_config.senders.  Slots, state and entries are numbered together
   (idemi_item), in 16 bits on small machines. */
#define IDEM_SENDERS_MAX   UINT32_C(32767)

#define IDEM_LEASE_NONE    UINT32_C(0xFFFFFFFF)   /* never ends in this boot */
#define IDEM_LEASE_MAX     UINT32_C(0x20000000)   /* ms: 6.2 days */
#define IDEM_RETENTION_MAX UINT32_C(2592000000)   /* ms: 30 days */

/* A slot's number, a part of a hash or a count; a token. */
#if IDEM_WIDE
#define IDEM_CAPACITY_MAX  UINT32_C(16777215)
typedef uint32_t idem_short;
typedef uint64_t idem_token;
#else
#define IDEM_CAPACITY_MAX  UINT32_C(32767)
typedef uint16_t idem_short;
typedef uint32_t idem_token;
#endif

/* The storage of a journal.  Never written: may be in ROM.  Callbacks return 0,
   or any other number for a failure, which is stored in table.storage_error
   (but see erasing and sync_unlocked).  After a failed program or erase nothing
   more is written to the sector until it is erased again; none is marked as
   bad.  Callbacks run with the lock held (>>concurrency has exceptions), and
   must not call the table.  Addresses count bytes from 0.  dst and src may have
   any alignment, and are valid during the call only. */
typedef struct idem_storage {
    void    *ctx;               /* handed to the callbacks, untouched */
    /* 1 to sector_size bytes; they may begin anywhere and span two sectors.  If
       a chip reads whole words only, read those, and copy the bytes out.  What
       was interrupted, a granule's programming or a sector's erase, may read as
       anything, or as a failure (ECC).  After a failure bytes are read again
       one by one.  A chip that is asleep, busy or absent must return a failure.
       Erased bytes would look like blank storage, and a new journal would
       replace the old one. */
    int    (*read)(void *ctx, uint32_t at, void *dst, uint32_t len);
    /* Whole granules of one sector, up to all of it.  With an erase these are
       erased; you may leave out granules of src that are all `erased`.
       They may cross a page of the chip: program each part.  Addresses do not
       ascend (so no NAND): a header is written after the first records.
       Durable when this returns 0; with a sync, when a later sync does. */
    int    (*prog)(void *ctx, uint32_t at, const void *src, uint32_t len);
    /* A sector by its number, from 0; it may be erased already.  With sync,
       erases must become durable in their order, and before later programs.
       NULL: programming replaces old bytes (EEPROM, FRAM, a file); a sector
       is then filled with `erased` before it is reused. */
    int    (*erase)(void *ctx, uint32_t sector);
    /* NULL: erase returns when it has finished.  Otherwise erase only starts
       it, and this returns 0 if it has finished, 1 if not yet, others if it
       failed.  It is called in a loop if a command must wait: feed the watchdog
       in it, and in the end do not return 1 (L1).  A read or program that comes
       before the end must wait, or suspend the erase; in idem_open, too: the
       chip may still erase after a restart. */
    int    (*erasing)(void *ctx);
    /* Makes all programs and erases durable; NULL: they are when their callback
       returns.  If a cache outlives a restart, sync it before idem_open. */
    int    (*sync)(void *ctx);
    /* As sync, but idem_sync calls it without the lock: from several threads at
       once, and while other callbacks run (>>concurrency).  Syncs must wait for
       each other; once one has failed, all fail until the storage is opened
       again.  storage_error gets the failure of the sync that follows.
       NULL: idem_sync calls sync, under the lock; without sync it must be
       NULL. */
    int    (*sync_unlocked)(void *ctx);
    uint32_t sector_size;       /* bytes, up to 262,144, whole granules; room
                                   for a header, three of the longest records
                                   and the state (if not: IDEM_SECTORS is 0).
                                   Some of the chip's sectors, if erase erases
                                   them all; without erase yours to choose */
    uint32_t sector_count;      /* 5 .. 65,535 (IDEM_SECTORS), never changed;
                                   together below 4 GB */
    uint16_t prog_size;         /* the granule, bytes: 1, 2, 4 .. 256 */
    uint16_t erased;            /* value of every erased byte: 0xFF or 0x00 (no
                                   record begins with one).  Flash that reads
                                   otherwise (encrypted) cannot be used */
    uint16_t verify;            /* not 0: read programmed bytes back; if they
                                   differ: IDEM_E_STORAGE, with storage_error
                                   as it was */
} idem_storage;

/* Never written: may be in ROM.  Zero is the safe default of every field that
   is not marked "no default".  Small fields have 16 bits, because Thumb cannot
   load a byte from 32 bytes on after the start of a struct. */
typedef struct idem_config {
    uint32_t capacity;      /* keys, 1 .. IDEM_CAPACITY_MAX; no default */
    uint32_t senders;       /* entries (>>numbers), 0 .. IDEM_SENDERS_MAX */
    uint16_t key_max;       /* bytes of scope and key together, 1 .. 255;
                               no default */
    uint16_t response_max;  /* bytes of the longest response, may be 0 */
    uint16_t state_max;     /* bytes of application state (>>patterns), or 0 */
    uint16_t max_attempts;  /* claims granted on a key until IDEM_EXHAUSTED,
                               1 .. 255; 0: 3 */
    const idem_storage *storage;   /* where the journal is; NULL: none */
    uint32_t lease_ms;      /* default lease: 1 .. IDEM_LEASE_MAX or
                               IDEM_LEASE_NONE; 0: 30 s */
    uint32_t retention_ms;  /* default retention: 1 .. IDEM_RETENTION_MAX;
                               0: 24 h */
    void    *lock_ctx;      /* handed to the two hooks, untouched */
    int    (*lock)(void *lock_ctx);    /* 0 when held, else the call is refused
                                          (>>concurrency); both or neither */
    void   (*unlock)(void *lock_ctx);
    uint32_t quota;         /* live keys of one scope, if there are senders;
                               0: capacity (with eviction S9 needs a quota) */
    uint16_t full;          /* IDEM_REJECT or IDEM_EVICT_OLDEST */
    uint16_t durability;    /* IDEM_EACH or IDEM_BATCH */
    uint8_t  secret[16];    /* key of the hashes (>>identity); no default.
                               IDEM_HASH_FNV hashes without it, but a journal
                               must be opened with its own first half */
} idem_config;

/* One command, as it arrived.  Zero the struct, then fill in its fields. */
typedef struct idem_request {
    const void *scope;          /* whose key; may be empty */
    size_t      scope_len;
    const void *key;            /* at least one byte; none with a sequence */
    size_t      key_len;
    uint32_t    epoch;          /* of the sequence (>>numbers) */
    uint32_t    sequence;       /* 1 and up: with epoch the key; 0: none */
    const void *payload;        /* hashed, not kept; may be empty */
    size_t      payload_len;
    uint64_t    fingerprint;    /* instead of the payload's */
    uint8_t     has_fingerprint;    /* not 0: fingerprint is set */
    uint16_t    response_size;  /* bytes to reserve; 0: response_max */
    uint32_t    lease_ms;       /* 0: the default; or IDEM_LEASE_NONE */
    uint32_t    retention_ms;   /* 0: the default, which also counts for a key
                                   that was lost (S4) */
    uint32_t    age_ms;         /* since the first send (>>full); 0: unknown */
    void       *buffer;         /* where a stored response is copied, or NULL;
                                   may be where scope, key or payload are */
    size_t      buffer_size;    /* bytes there */
} idem_request;

/* The right to execute; the name of an outcome once it is completed.  May be
   copied and kept.  (A restart changes the token of an outcome once 4 GB of
   journal were written after it.)  All zero: never current.  The same in all
   builds. */
typedef struct idem_claim {
    uint64_t token;             /* fencing token, > 0 (>>time) */
    uint32_t slot;
    uint32_t attempt;           /* of this key, from 1; counts to 255 */
} idem_claim;

/* The details of an answer of idem_begin and idem_run.  All fields are zeroed
   first; the answers named set them. */
typedef struct idem_reply {
    idem_claim claim;           /* the claim granted (idem_run: that the handler
                                   had); REPLAY, DONE: names the outcome, for
                                   idem_response, idem_delivered */
    size_t   response_len;      /* REPLAY, DONE: bytes of the response.  More
                                   than request.buffer_size: not copied */
    int      status;            /* REPLAY, DONE: IDEM_COMPLETED, IDEM_FAILED */
    int32_t  code;              /* REPLAY, DONE: outcome.code */
    uint32_t age_ms;            /* REPLAY, DONE: since the completion */
    uint32_t retry_after_ms;    /* BUSY: until the lease ends (IDEM_LEASE_NONE
                                   if never); E_FULL: until a key may expire
                                   (one may be released before); 0: not known,
                                   or the quota is used up */
} idem_reply;

/* How a command ended.  Zero the struct, then fill in its fields. */
typedef struct idem_outcome {
    const void *response;       /* copied when the handler has returned, so
                                   none of its locals; may be empty */
    size_t      response_len;   /* at most as reserved by the request */
    const void *state;          /* new application state, or NULL: unchanged */
    size_t      state_len;      /* at most state_max */
    int32_t     code;           /* the application's own, replayed; but for
                                   IDEM_CODE_INVALID */
    uint8_t     failed;         /* not 0: a final failure, replayed likewise */
    uint8_t     confirm;        /* not 0: undelivered until idem_delivered */
} idem_outcome;

/* idem_reply.code: the outcome of idem_run's handler cannot be recorded */
#define IDEM_CODE_INVALID INT32_MIN

/* A command that a handler of idem_run executes. */
typedef struct idem_job {
    void               *ctx;        /* as handed to idem_run */
    const idem_request *request;
    const idem_claim   *claim;      /* its own; the token fences, and
                                       idem_renew takes it */
    int                 answer;     /* IDEM_EXECUTE, _RECOVER, _UNCERTAIN */
    idem_outcome        outcome;    /* zeroed, for the handler to fill in */
} idem_job;

/* A key, as idem_find, _next and _pending return it.  Set id and id_size, zero
   the rest before the first idem_next or idem_pending. */
typedef struct idem_info {
    void    *id;                /* in: where scope and key go, one after the
                                   other, if both fit; may be NULL */
    size_t   id_size;           /* in: bytes there */
    size_t   scope_len;
    size_t   key_len;           /* 0: it is a number: 8 bytes in id, and here */
    uint32_t epoch;
    uint32_t sequence;          /* 0: it is not a number */
    uint64_t fingerprint;
    int      status;            /* IDEM_IN_PROGRESS, _COMPLETED, _FAILED */
    int32_t  code;              /* finished: outcome.code */
    size_t   response_len;      /* finished: bytes; in progress: reserved, 0
                                   if a restart has interrupted it */
    uint32_t age_ms;            /* finished: since the completion */
    uint32_t left_ms;           /* in progress: of the lease, IDEM_LEASE_NONE
                                   if it never ends; finished: of retention */
    uint32_t attempts;          /* claims granted on the key */
    int      undelivered;       /* 1: confirm was set, not delivered yet */
    idem_claim claim;           /* finished: names the outcome; in progress
                                   without the token, which is the holder's */
} idem_info;

/* A slot: all about one key.  Scope and key follow it, then the response
   (>>slots). */
typedef struct idem_slot {
    uint32_t time;              /* logical ms: in progress, the end of the
                                   lease; finished, the completion */
    uint32_t retention;         /* ms from then on */
    uint32_t token;             /* the claim's, its low half */
    uint32_t fingerprint[2];    /* low word, high word */
    int32_t  code;
    uint16_t response_len;      /* in progress: reserved */
    uint8_t  scope_len;
    uint8_t  key_len;           /* 0: a number, of 8 bytes */
    uint8_t  flags;             /* 0: free; the status and more (>>slots) */
    uint8_t  attempts;
#if IDEM_WIDE
    uint16_t token_high;        /* bits 32 to 47 of the claim's */
#endif
    idem_short hash;            /* of scope and key, as the index knows it */
} idem_slot;

/* A sender's entry (>>numbers) */
typedef struct idem_sender {
    uint32_t name[2];           /* keyed hash of its scope, low word, high word;
                                   0: the entry was never used */
    uint32_t floor[2];          /* sequence, epoch: numbers up to here are
                                   refused */
    union {                     /* to save 4 bytes */
        uint32_t evicted;       /* logical ms: its outcomes up to then may have
                                   been evicted */
        uint32_t gone;          /* while a journal is read: numbers of the
                                   floor's epoch up to this sequence had been
                                   removed (R1d of >>recovery) */
    } until;
    idem_short keys;            /* its slots in use */
    unsigned last_use : 14;     /* when its latest key came; later is larger */
    unsigned unsaved : 2;       /* IDEMI_UNSAVED flags */
} idem_sender;

/* A slot's neighbours in the order of completion (>>order), as slot numbers */
typedef struct idem_link {
    idem_short older;
    idem_short newer;           /* of a free slot: the next free one */
} idem_link;

/* A word of the index; IDEMI_WORDS for each key */
#define IDEMI_WORD_SLOTS  0x1000000u    /* numbers that `slot` can hold */
#define IDEMI_WORD_TAGS   32u
#define IDEMI_WORD_OFFSET 7u            /* that distance, or a longer one */
#define IDEMI_WORDS (IDEM_WIDE ? 3u : 2u)
typedef struct idem_word {
#if IDEM_WIDE
    unsigned slot : 24;         /* plus one; 0: the word is empty */
    unsigned offset : 3;        /* from its home, in positions; 7: or more */
    unsigned tag : 5;           /* the low bits of the slot's hash */
#else
    idem_short slot;            /* plus one; 0: the word is empty */
#endif
} idem_word;

/* Counters since the opening, promised.  They wrap.  Do not write to them: the
   journal reads some. */
typedef struct idem_stats {
    uint32_t full;              /* begins answered IDEM_E_FULL */
    uint32_t fenced;            /* calls answered IDEM_E_FENCED */
    uint32_t expired;           /* keys dropped at the end of retention, and
                                   claims of an older epoch */
    uint32_t evicted;           /* finished keys dropped before it */
    uint32_t undelivered;       /* of those expired: not delivered */
    uint32_t backwards;         /* ticks that went backwards */
    uint32_t lost;              /* damaged stretches of storage in which
                                   something acknowledged may have been; some
                                   are counted together */
    uint32_t skipped;           /* new heads that failed: sectors skipped */
    uint32_t senders_evicted;   /* times that a sender was refused an entry, or
                                   lost its floor to another, as all were in
                                   use; by idem_open, too */
    uint32_t answers[IDEM_EXHAUSTED + 1];  /* of idem_begin, by result >= 0 */
} idem_stats;

/* The journal's words, in this and the next struct, are those of >>format and
   >>recovery.  Defaults of optional fields of records: those of the
   configuration with which the sector was written. */
typedef struct idem_defaults {
    uint32_t retention;         /* ms */
    uint32_t lengths;           /* response_max; and above these 16 bits a
                                   quarter of the longest record's bytes */
} idem_defaults;

/* idem_journal.erase, of the next sector */
#define IDEMI_ERASING 1u        /* was started in this boot */
#define IDEMI_ERASED  2u        /* has ended in this boot */

/* idem_journal.unsynced: some programmed bytes may not be durable */
#define IDEMI_UNSYNCED       1u
#define IDEMI_UNSYNCED_STATE 2u     /* a record with state */

/* A journal, in one of these states:

     state       fields                         left by
     opened      rotated 0, at = sector_size    idemi_journal_rotate
     appending   rotated 1, at < sector_size    _close_sector, after a failure;
                                                or the sector is full
     closed      rotated 1, at = sector_size    idemi_journal_rotate
     broken      any of these with broken 1:    idem_open alone
                 a sync failed, or the
                 storage was not ready */
typedef struct idem_journal {
    uint8_t  rotated;           /* 1: a head of this boot counts */
    uint8_t  erase;             /* IDEMI_ERASING, IDEMI_ERASED or 0 */
    uint8_t  prepared;          /* 1: idle work does no more for it */
    uint8_t  unsynced;          /* IDEMI_UNSYNCED flags; 0: all is durable */
    uint8_t  broken;            /* 1: nothing more is written */
    uint8_t  last_flags;        /* with which the newest record is rewritten:
                                   HAS_STATE, 0x10, and 0x04 of a claim whose
                                   sender took over an entry */
    uint16_t sector_count, granule;         /* copies of the storage's */
    uint16_t head_room;         /* keys that can be relocated into a head */
    uint32_t sector_size;       /* copy of the storage's */
    unsigned last_item;         /* of the newest record (slot, state, sender):
                                   rewritten in a boot's first rotation */
    uint32_t tail;              /* oldest live sector */
    uint32_t damaged;           /* newest sector in which something is lost */
                                /* Here a header's words begin (idemi_header) */
    uint32_t sequence;          /* of the newest sector begun, head or not */
    uint32_t next_tail;         /* the tail once that sector counts */
    uint32_t head;              /* sequence of the head; 0: none yet */
    uint32_t end;               /* where its records end; before a boot's first
                                   rotation, where its newest one begins */
    uint32_t at;                /* where the next record of the newest sector
                                   goes; sector_size if it takes no more */
    uint32_t last_time;         /* logical ms, of the newest record or header;
                                   of the opening if there is none */
    uint32_t uncertain;         /* logical ms: until then an unknown key may be
                                   a lost one */
    idem_defaults defaults;
    uint32_t layout;            /* hash of secret and geometry, in checks */
    uint32_t records_at;        /* where a sector's records begin */
    uint32_t record_limit;      /* bytes of any record, in whole granules */
    uint32_t window_end;        /* opening: the end of the part of a sector that
                                   is in the buffer; 0: none */
    union {                     /* to save 4 bytes */
        uint32_t window;        /* opening: where that part begins */
        uint32_t durable;       /* later: claims before this position are
                                   durable.  The first rotation, which syncs,
                                   sets it before it is read */
    } from;
} idem_journal;

/* C++ must not copy these: two tables would write to one memory, and a copied
   file's storage would lead to the old one. */
#ifdef __cplusplus
#define IDEMI_NO_COPY(type)                                                    \
    type() = default;                                                          \
    type(const type &) = delete;                                               \
    type &operator=(const type &) = delete;
#else
#define IDEMI_NO_COPY(type)
#endif

/* A table.  Any number may be open.  No pointer into itself: in C it may be
   moved while no call is under way.  Read its fields with the lock held. */
typedef struct idem_table {
    uint32_t magic;             /* marks an open table */
    uint8_t  inside;            /* 1: a call is under way */
    uint8_t  settled;           /* 1: a call has followed the last step back */
    uint16_t state_len;
    idem_short free;            /* first free slot; capacity: none */
    idem_short tidy;            /* slot at which idem_maintain continues */
    const idem_config *config;
    unsigned char *slots;       /* this and the next six point into the memory,
                                   as idemi_opening_memory lays it out */
    idem_link *links;           /* one for each slot, and the order's ends */
    idem_link *own;             /* likewise of each sender's own order, the ends
                                   at its item; or NULL (IDEMI_OWN) */
    idem_word *index;
    unsigned char *state;       /* application state */
    idem_journal *journal;      /* NULL: none */
    unsigned char *buffer;      /* of the journal, for records */
    uint32_t buffer_size;
    size_t   stride;            /* bytes from slot to slot */
    unsigned capacity;          /* copy of config's: quicker to read */
    uint32_t tick;              /* the now_ms that the clock followed last */
    uint32_t counted;           /* tick, or what it was before the step back
                                   that was followed last */
    uint32_t clock;             /* logical ms */
    uint32_t swept;             /* clock at the last sweep of all slots */
    uint32_t soonest;           /* no slot expires before this time */
    uint32_t used;              /* slots in use, expired ones too until they are
                                   dropped; promised */
    uint32_t pending;           /* of them: undelivered; promised */
    idem_token token;           /* last one granted in this boot */
    uint32_t evicted_until;     /* logical ms: outcomes up to then may have been
                                   evicted, of senders without an entry */
    idem_stats stats;           /* promised */
    size_t   needed;            /* after IDEM_E_MEMORY, bytes of memory that
                                   suffice; after IDEM_E_SPACE from idem_open,
                                   sectors; promised.  0: no number does */
    int      storage_error;     /* the last failure that a storage callback
                                   returned; promised */
    IDEMI_NO_COPY(idem_table)
} idem_table;

/* A hash that is being made */
typedef struct idemi_hash_state {
#if IDEM_HASH == IDEM_HASH_SIPHASH
    uint64_t v[4], word;        /* word: bytes of the incomplete one */
    uint8_t  len;               /* bytes so far, modulo 256 */
#elif IDEM_HASH == IDEM_HASH_HALFSIPHASH
    uint32_t v[4], word;
    uint8_t  len;
#else
    uint64_t hash, prime, len;
#endif
    uint8_t  strong;            /* 1: 64 bits; else 32, with fewer rounds */
} idemi_hash_state;

/* A fingerprint that is being computed.  No pointer into itself: may be copied,
   even half-way.  Of one size in all builds. */
typedef union idem_fingerprint_state {
    idemi_hash_state state;
    uint64_t         room[6];
} idem_fingerprint_state;

/* Bytes of memory for a table: a constant expression, a multiple of 4.  A key
   takes key_max + response_max, rounded up to 4; 30 bytes (IDEM_WIDE: 32) for
   its other fields; and 10 (24) to find it.  The factor sizeof(char) makes it a
   size_t without a cast, which C++ compilers warn about. */
#define IDEMI_ROUND4(n) (((n) + 3u) / 4u * 4u)
#define IDEMI_SLOT_SIZE(key_max, response_max)                                 \
    (sizeof(idem_slot) +                                                       \
     IDEMI_ROUND4(UINT32_C(0) + (key_max) * sizeof(char) + (response_max)))
#define IDEM_MEMORY_SIZE(capacity, key_max, response_max, state_max)           \
    ((capacity) * IDEMI_SLOT_SIZE(key_max, response_max) +                     \
     ((capacity) + sizeof(char)) * sizeof(idem_link) +                         \
     (capacity) * sizeof(idem_word) * IDEMI_WORDS +                            \
     IDEMI_ROUND4(state_max))

/* With storage: also 4 bytes a key, the journal, and a buffer of one record.
   More memory makes the buffer larger, up to a sector, and opening faster. */
#define IDEM_JOURNAL_MEMORY_SIZE(capacity, key_max, response_max, state_max,   \
                                 prog_size)                                    \
    (IDEM_MEMORY_SIZE(capacity, key_max, response_max, state_max) +            \
     IDEMI_ROUND4(sizeof(idem_journal)) +                                      \
     4u * ((capacity) + sizeof(char)) +                                        \
     IDEMI_ROUND4(                                                             \
         IDEMI_RECORD_MAX(key_max, response_max, state_max, prog_size)))

/* The bytes of sender entries, to be added to either: 28, 24 without IDEM_WIDE,
   and 4 that only a journal needs. */
#define IDEM_SENDERS_MEMORY_SIZE(senders)                                      \
    ((senders) * (sizeof(idem_sender) + sizeof(uint32_t)))

/* With a quota under IDEM_EVICT_OLDEST also to be added: 8 for each key, 8 for
   each sender, and 8; 4 without IDEM_WIDE. */
#define IDEM_QUOTA_MEMORY_SIZE(capacity, senders)                              \
    (((capacity) + sizeof(char) + (senders)) * sizeof(idem_link))

/* Sectors that the storage of such a table must have, at least: a constant
   expression; a sender counts as a key.  0: the sectors are too small. */
#define IDEM_SECTORS(capacity, key_max, response_max, state_max, sector_size,  \
                     prog_size)                                                \
    IDEMI_SECTORS_OF(                                                          \
        capacity, sector_size,                                                 \
        IDEMI_SECTOR_MIN(                                                      \
            prog_size, state_max,                                              \
            IDEMI_RELOCATED_MAX(key_max, response_max, state_max, prog_size)), \
        IDEMI_RELOCATED_MAX(key_max, response_max, 0, prog_size))

/* Defines the memory of a table, pump_memory, and its sizes as constants,
   pump_capacity and so on; with senders enough for a quota that evicts.  With a
   journal also pump_sector_size, _sector_count and _prog_size; it does not
   compile if the sectors are too small. */
#define IDEM_DEFINE_MEMORY(name, capacity, key_max, response_max, state_max,   \
                           senders)                                            \
    IDEMI_DEFINE(name, capacity, key_max, response_max, state_max, senders,    \
                 IDEM_MEMORY_SIZE(capacity, key_max, response_max, state_max))
#define IDEM_DEFINE_JOURNAL_MEMORY(name, capacity, key_max, response_max,      \
                                   state_max, senders, sector_size, prog_size) \
    IDEMI_EXTENSION enum {                                                     \
        name##_sector_size = (sector_size),                                    \
        name##_prog_size = (prog_size),                                        \
        name##_sector_count =                                                  \
            IDEM_SECTORS((capacity) + (senders), key_max, response_max,        \
                         state_max, sector_size, prog_size)                    \
    };                                                                         \
    typedef char name##_sectors_too_small                                      \
        [name##_sector_count > 0 && name##_sector_count <= 65535 ? 1 : -1];    \
    IDEMI_DEFINE(name, capacity, key_max, response_max, state_max, senders,    \
                 IDEM_JOURNAL_MEMORY_SIZE(capacity, key_max, response_max,     \
                                          state_max, prog_size))
#define IDEMI_DEFINE(name, capacity, key_max, response_max, state_max,         \
                     senders, size)                                            \
    IDEMI_EXTENSION enum {                                                     \
        name##_capacity = (capacity), name##_key_max = (key_max),              \
        name##_response_max = (response_max), name##_state_max = (state_max),  \
        name##_senders = (senders)                                             \
    };                                                                         \
    static uint32_t name##_memory                                              \
        [((size) + IDEM_SENDERS_MEMORY_SIZE(senders) +                         \
          ((senders) > 0 ? IDEM_QUOTA_MEMORY_SIZE(capacity, senders) : 0)) / 4]

/* These sizes, in the initializer of an idem_config (C99, C++20). */
#define IDEM_SIZES(name)                                                       \
    .capacity = name##_capacity, .senders = name##_senders,                    \
    .key_max = name##_key_max, .response_max = name##_response_max,            \
    .state_max = name##_state_max

/* Bytes of the longest record, in whole granules: every optional field present
   at full length (>>format).  52 are flags, options 1 + 1, slot 4, time 5, code
   5, response_len 3, scope_len, attempts 2 + 2, retention, token, age 3 x 5,
   key_len 2, fingerprint 8, check 4.  A record with state has no age, which is
   longer than state_len.  48: a relocated record's time is 0, in one byte.
   (Only the newest record, rewritten, has both: 3 bytes more.  If the smallest
   sectors lack room for them, a call rotates twice.) */
#define IDEMI_UP(n, to) (((n) + (to) - 1u) & ~((to) - UINT32_C(1)))
#define IDEMI_RECORD_MAX(key_max, response_max, state_max, prog_size)          \
    IDEMI_UP(UINT32_C(52) + (key_max) + (response_max) + (state_max), prog_size)
#define IDEMI_RELOCATED_MAX(key_max, response_max, state_max, prog_size)       \
    IDEMI_UP(UINT32_C(48) + (key_max) + (response_max) + (state_max), prog_size)

/* The contents of a head, in whole granules:
     FRONT       the header, 56 bytes
     k - 1       relocated keys
     LAST_ROOM   three more records: the k-th relocated item, which may be the
                 state; the rewritten newest one; and the one that the head was
                 begun for, whose time may take 4 bytes more; and the commit
                 record, 12 bytes at most
   So a head takes k = IDEMI_HEAD_KEYS relocated items.
   All items fit into h = capacity / k + 1 heads.  S sectors are enough if
   h <= S - 3 - S / 15 (proof: idemi_journal_plan).  The rest of 3 h / 2 + 4 is
   room for sectors that fail. */
#define IDEMI_FRONT(prog_size) IDEMI_UP(56u, prog_size)
#define IDEMI_COMMIT_MAX(prog_size) IDEMI_UP(12u, prog_size)
#define IDEMI_LAST_ROOM(prog_size, relocated_max)                              \
    (3u * (relocated_max) + IDEMI_COMMIT_MAX(prog_size) +                      \
     IDEMI_UP(4u, prog_size))
#define IDEMI_SECTOR_MIN(prog_size, state_max, relocated_max)                  \
    (IDEMI_FRONT(prog_size) + IDEMI_LAST_ROOM(prog_size, relocated_max) +      \
     IDEMI_UP(UINT32_C(0) + (state_max), prog_size))
#define IDEMI_HEAD_KEYS(sector_size, sector_min, key_record)                   \
    (((sector_size) - (sector_min)) / (key_record) + 1u)
#define IDEMI_HEADS_SECTORS(capacity, head_keys)                               \
    (3u * ((capacity) / (head_keys) + 1u) / 2u + 4u)
#define IDEMI_SECTORS_OF(capacity, sector_size, sector_min, key_record)        \
    ((sector_size) < (sector_min)                                              \
         ? UINT32_C(0)                                                         \
         : IDEMI_HEADS_SECTORS(                                                \
               capacity,                                                       \
               IDEMI_HEAD_KEYS(sector_size, sector_min, key_record)))

/* ---------------------------------------------------------------------------
   >>functions   in the order of a table's life

   Arguments: the object, outputs, inputs, the time.
     - No pointer may be NULL but memory of idem_open, ctx of idem_run,
       request.buffer, info.id, a pointer to 0 bytes, and those that >>types
       allows.
     - Every function that takes an open table may answer IDEM_E_ARG (NULL where
       it is not allowed, a table that is not open) and, but for idem_check,
       IDEM_E_LOCK.  Then the table has not changed, the clock included (but see
       idem_run).  Apart from these only the results named can come.
     - Unless a function has others, IDEM_E_STORAGE and IDEM_E_SPACE mean:
       nothing changed, repeat the call.  After a failed sync only another
       opening helps.  After an opening the call may be found done.
     - idem_begin and idem_run zero claim and reply first, whatever they answer
       (idem_begin no reply if claim is NULL); idem_begin_many the replies,
       unless it is IDEM_E_ARG.  Other outputs that no result names stay as they
       were.

   Bounds, n = capacity.  A look-up reads 2 or 3 words on average, n at worst:

     begin, known key     one look-up, one comparison, one copy of the response
     begin, new key       one look-up; all n slots if something may have expired
                          and no slot is free, the quota is used up, or a new
                          sender finds no entry; or to find one to evict.
                          A number that is too old: n slots for each record
                          that is written.  That is one for all refusals of a
                          sender; but one for each while a lower number is
                          known, after a claim that expired unfinished
     .. with senders      three look-ups of a sender's entry for the key, one
                          for each key that is dropped.  A look-up reads 1 or 2
                          entries on average while half were never used, 3 while
                          a fifth were not, then about the square root of
                          senders; all if the sender is new then
     complete, release,   one look-up of a sender's entry for the claim of a
     renew                number
     complete, delivered  with a quota and eviction one more; delivered: passes
                          those of its sender's outcomes that are newer, and
                          were delivered before
     forget               a sender: all n slots, each with a hash of its scope
     the others           one look-up or none; next, pending: n slots at worst;
                          horizon: all entries
     maintain             64 slots, each at most one removal (one look-up of a
                          slot, one of an entry); once for each head also the
                          numbers of sectors of all items, twice at most
     open                 clears the memory that it needs; with a journal reads
                          the headers up to seven times (one that is torn up to
                          30 more), and the sectors from the tail on; or all of
                          blank storage.  Sorts the outcomes: n log n.  All n
                          slots for each boot in these sectors, each loss, and
                          each sender that was forgotten, or replaced when a
                          number of it had expired; all entries for each that
                          finds none
     any that writes      one program, or two for a number that is too old; in a
                          rotation one erase (after one that was interrupted,
                          one more for each sector that it had begun), the
                          header, the commit record, as many relocated records
                          as fit into a sector, and twice n numbers and entries
                          for each sector that is emptied.  A failing sector, a
                          loss, limits that have grown, state in the smallest
                          sectors, or a number that is too old with granules
                          from 64 bytes on: more rotations
     any with a time      all n slots and entries for every 3.1 days that the
                          clock advances, at most 8 times in one call, 16 in
                          idem_elapse.  Each claimed number, and each key that
                          expires, takes one look-up of an entry
   ------------------------------------------------------------------------ */

/* Opens a table in `memory` (aligned as uint32_t; see IDEM_MEMORY_SIZE): empty,
   or with the keys in config->storage, which is only read.  Earlier contents of
   table and memory are ignored.  config and its storage are kept by pointer,
   and must not change while the table is open.  Must not be called while
   another call on the table is under way.  There is no close: stop using table
   and memory.  Drop the claims of an earlier opening; without storage tokens
   start at 1.
     IDEM_OK
     IDEM_E_ARG      config: no capacity or key_max, a value out of range, a
                     secret with a zero half, one lock hook alone; an impossible
                     storage: idem_explain names the field.  Or the calling file
                     has other options (>>config): idem_explain returns NULL
     IDEM_E_MEMORY   memory NULL, misaligned or too small: table->needed is the
                     size that suffices (so NULL and 0 ask for it), 0 if that is
                     more than a size_t can hold
     IDEM_E_SPACE    the storage is too small for that many keys: table->needed
                     is the number of sectors that suffices, 0 if they are too
                     small themselves
     IDEM_E_FORMAT   the storage is neither blank nor a journal of this version,
                     geometry, hash and secret
     IDEM_E_STORAGE  the storage was not ready: read again it was different; or
                     there is no journal, and reads fail (B of >>recovery);
                     storage_error may be 0.  Open again
   Records of a journal that cannot be read are damage, not a failure: see
   stats.lost.  After a failure the table is closed; but if the calling file has
   other options it is not touched. */
#define idem_open(table, config, memory, size, now_ms)                         \
    idem_open_(table, config, memory, size, now_ms, IDEM_BUILD)
IDEM_API IDEMI_MUST_USE
int idem_open_(idem_table *table, const idem_config *config, void *memory,
               size_t size, uint32_t now_ms, uint32_t build);

/* As idem_open, but erases the storage first: storage and table are blank.
   Tokens start anew: reset a driver that refuses tokens below the highest it
   has seen.  A power cut before the end leaves the old journal, bytes that
   idem_open refuses, or a part of the journal (a loss, noticed unless only the
   newest sector was left): format again, with this configuration.
     as idem_open
     IDEM_E_ARG      also without storage
     IDEM_E_STORAGE  a callback failed; the table is closed */
#define idem_format(table, config, memory, size, now_ms)                       \
    idem_format_(table, config, memory, size, now_ms, IDEM_BUILD)
IDEM_API IDEMI_MUST_USE
int idem_format_(idem_table *table, const idem_config *config, void *memory,
                 size_t size, uint32_t now_ms, uint32_t build);

/* For other languages: bytes of memory that idem_open needs with this
   configuration; and sectors that its storage must have, at least.  First set
   the secret, read and prog, then sector_count from idem_sector_count.  0:
   there can be no such table or storage; set sector_count to 5, and ask
   idem_explain. */
IDEM_API size_t idem_memory_size(const idem_config *config);
IDEM_API uint32_t idem_sector_count(const idem_config *config);

/* Looks a command up, and claims it if it is to be executed.  One atomic step
   under the lock.
     IDEM_EXECUTE, IDEM_RECOVER, IDEM_UNCERTAIN
                        *claim is yours, and nobody else's until its lease ends
     IDEM_REPLAY        *reply has the outcome
     IDEM_BUSY, IDEM_MISMATCH, IDEM_TOO_OLD, IDEM_EXHAUSTED, IDEM_E_FULL
     IDEM_E_ARG         key empty; key and sequence; a sequence where there are
                        no senders; lease or retention out of range
     IDEM_E_TOO_LARGE   scope and key over key_max, response_size over
                        response_max
     IDEM_E_STORAGE     nothing is granted.  After a restart it may be found
                        granted (IDEM_RECOVER), and under IDEM_EVICT_OLDEST the
                        key or sender that was to make room may be gone
     IDEM_E_SPACE       too many sectors fail (stats.skipped); or tokens are at
                        their end (without IDEM_WIDE: 4 GB of journal written,
                        or without a journal 4,294,967,295 claims granted)
   A claim taken over (attempt above 1) has the lease, retention and reservation
   of the new request.  *claim is zero unless a claim is granted; but claim may
   be &reply->claim, which also names an outcome that is replayed. */
IDEM_API IDEMI_MUST_USE
int idem_begin(idem_table *table, idem_claim *claim, idem_reply *reply,
               const idem_request *request, uint32_t now_ms);

#define IDEM_MANY 16            /* requests in one call, at most */

/* As idem_begin of each request, one after the other, under one lock: for hosts
   that read requests in bursts.  Faster than single calls where the table is
   larger than the cache: the memory of all keys is fetched at the same time.
   Takes 2 KB of stack.  No request may have its bytes in another's buffer.
     IDEM_OK       answers[i] and replies[i] are those of requests[i]
     IDEM_E_ARG    NULL, closed, count over IDEM_MANY; none is answered
     IDEM_E_LOCK   nothing is granted; each answer is IDEM_E_LOCK, or the error
                   of that request
   Bounds are those of `count` calls. */
IDEM_API IDEMI_MUST_USE
int idem_begin_many(idem_table *table, int *answers, idem_reply *replies,
                    const idem_request *requests, size_t count,
                    uint32_t now_ms);

/* Stores the outcome, and with it the application state, if any, in one step.
   From then on the outcome is replayed.
     IDEM_OK            the claim is used up
     IDEM_E_FENCED      the claim is not current
     IDEM_E_TOO_LARGE   response longer than reserved, state over state_max; the
                        claim stays, complete with shorter ones
     IDEM_E_ARG         NULL with a length
     IDEM_E_STORAGE, IDEM_E_SPACE */
IDEM_API IDEMI_MUST_USE
int idem_complete(idem_table *table, const idem_claim *claim,
                  const idem_outcome *outcome, uint32_t now_ms);

/* Gives the claim back after a failure that may pass, if the effect has not
   happened.  The key is unknown again, its attempts are forgotten, and the next
   begin is answered as that of a new key; a number that the floor has passed
   meanwhile is IDEM_TOO_OLD.
     IDEM_OK, IDEM_E_FENCED
     IDEM_E_STORAGE, IDEM_E_SPACE */
IDEM_API int idem_release(idem_table *table, const idem_claim *claim,
                          uint32_t now_ms);

/* Lengthens the lease to lease_ms from now (0: the default lease,
   IDEM_LEASE_NONE: no end); never shortens it.  Writes nothing.
     IDEM_OK, IDEM_E_FENCED
     IDEM_E_ARG         lease out of range */
IDEM_API int idem_renew(idem_table *table, const idem_claim *claim,
                        uint32_t lease_ms, uint32_t now_ms);

/* A handler executes a command; idem_run holds the claim meanwhile, but not the
   lock.  It fills in job->outcome, whose bytes must last until idem_run
   returns.  The response may be in request->buffer, from its start on, but
   nowhere else in it.  Returns one of these (>>handler), not the result of a
   call: IDEM_OK is 0, too, and would record the outcome. */
typedef int idem_handler(idem_job *job);
enum idem_handled {
    IDEM_HANDLED     = 0,       /* record job->outcome */
    IDEM_NOT_DONE    = 100,     /* give the claim back */
    IDEM_CANNOT_TELL = 101      /* keep the claim; as all others */
};

/* The tick in ms (>>time), as HAL_GetTick or Arduino's millis return it. */
typedef uint32_t idem_now(void);

/* Begin, your handler, complete or release: in one call.  Calls `now` first,
   and after the handler.
     IDEM_DONE       IDEM_HANDLED: the outcome is recorded; *reply and the
                     request's buffer have it, as for IDEM_REPLAY
     IDEM_REPLAY     handled before; the outcome likewise
     IDEM_RELEASED   IDEM_NOT_DONE: not executed; a retry is as after
                     idem_release.  *reply has the claim that was released, and
                     nothing else
     IDEM_BUSY       another has the claim; or IDEM_CANNOT_TELL, and the claim
                     is kept: reply->retry_after_ms is the rest of its lease,
                     and then the attempt was interrupted
     others, if reply->claim.token is
       0             as idem_begin: the handler was not called
       not 0         it was.  IDEM_E_FENCED: another has taken over.  Otherwise
                     its result is not stored: after IDEM_HANDLED call
                     idem_complete with reply->claim, after IDEM_NOT_DONE
                     idem_release, until that succeeds or is fenced.  The job is
                     gone: your handler keeps what it returned, and the outcome,
                     in ctx.  Another idem_run is IDEM_BUSY until the lease ends
   An outcome that is too long, or NULL with a length, is a bug: it is recorded
   as failed, with IDEM_CODE_INVALID, without response and state; then, even if
   the storage failed, IDEM_MISUSE is called.  If a handler completed by
   itself (>>patterns), it is IDEM_E_FENCED, and the outcome is stored. */
IDEM_API IDEMI_MUST_USE
int idem_run(idem_table *table, idem_reply *reply, const idem_request *request,
             idem_handler *handler, void *ctx, idem_now *now);

/* One bounded step of idle work: erases a sector ahead, relocates a record
   ahead, writes the time, or drops expired keys in the next 64 slots.
     IDEM_MORE   there is more to do, or an erase is under way
     IDEM_OK     there is not; the next call starts another round
     IDEM_E_STORAGE, IDEM_E_SPACE   this step failed.  Do not repeat it in a
                                    loop: trying again wears.  The time is
                                    written one minute later for each sector
                                    that failed in this boot; what is erased and
                                    relocated ahead waits for a rotation */
IDEM_API int idem_maintain(idem_table *table, uint32_t now_ms);

/* Makes everything before it durable, with IDEM_BATCH.
     IDEM_OK
     IDEM_E_LOCK     the lock refused, before or after the sync: call again
     IDEM_E_STORAGE  it is not, and may never be.  From now on every call that
                     would write is answered so, until the table is opened
                     again */
IDEM_API IDEMI_MUST_USE int idem_sync(idem_table *table);

/* Adds off_ms to the table's clock: time that the tick did not count, such as
   the time without power.  Less if the clock stops on the way (>>time).
     IDEM_OK */
IDEM_API int idem_elapse(idem_table *table, uint32_t off_ms);

/* Looks a key up, by the request's scope and key alone; claims nothing.
     IDEM_OK, IDEM_E_NOT_FOUND
     IDEM_E_ARG         as idem_begin, of the key
     IDEM_E_TOO_LARGE   over key_max
   *info is set on IDEM_OK only. */
IDEM_API int idem_find(idem_table *table, idem_info *info,
                       const idem_request *request, uint32_t now_ms);

/* The key after the one in *info (from idem_next or idem_find), or the first if
   *info is zeroed but for id.  In no useful order; a key that is added or
   removed meanwhile may be seen or not.
     IDEM_OK, IDEM_E_NOT_FOUND (there are no more; *info stays as it is) */
IDEM_API int idem_next(idem_table *table, idem_info *info, uint32_t now_ms);

/* The next undelivered outcome, the oldest completion first (after a restart
   those of one ms in any order).  Starts again from the first if the key in
   *info is not finished, or is gone.
     IDEM_OK, IDEM_E_NOT_FOUND */
IDEM_API int idem_pending(idem_table *table, idem_info *info, uint32_t now_ms);

/* Marks an outcome as delivered; from then on it may be evicted.  Does not move
   the clock.
     IDEM_OK            even if it was, or needed no delivery
     IDEM_E_NOT_FOUND   no such outcome, or no longer
     IDEM_E_STORAGE, IDEM_E_SPACE */
IDEM_API int idem_delivered(idem_table *table, const idem_claim *claim);

/* Copies up to *len bytes of a response from byte `at` on, and sets *len to
   their number: 0 at its end.  The claim names the outcome: all pieces are of
   the same.  Does not move the clock.
     IDEM_OK
     IDEM_E_NOT_FOUND   no such outcome, or no longer; *len is 0 */
IDEM_API int idem_response(idem_table *table, void *dst, size_t *len,
                           const idem_claim *claim, size_t at);

/* Copies the application state of the last outcome that had one, and sets *len
   (which holds the size of dst) to its length, 0 if there is none yet.
     IDEM_OK
     IDEM_E_TOO_LARGE   dst is too short; *len is the length it needs */
IDEM_API int idem_state(idem_table *table, void *dst, size_t *len);

/* Removes a key: the administrator's way out.  The key is unknown afterwards,
   its next begin is answered as that of a new key; a number at or below its
   sender's floor stays IDEM_TOO_OLD.  A request with neither key nor sequence,
   of a table with senders, removes the sender of its scope: its keys, floor
   and epoch (>>numbers).  So make sure that a key that somebody typed is not
   empty.
     IDEM_OK
     IDEM_E_NOT_FOUND   no such key or sender; or all entries belong to others:
                        then forget its keys one by one
     IDEM_BUSY          the key, or one of the sender's, has a live lease, or
                        one without end; nothing changed
     IDEM_E_STORAGE, IDEM_E_SPACE
     IDEM_E_ARG, IDEM_E_TOO_LARGE   as idem_find, of a key
   After a restart a key may appear whose claim had expired, or was being
   written when power failed: forget it again. */
IDEM_API int idem_forget(idem_table *table, const idem_request *request,
                         uint32_t now_ms);

/* How long a finished key with the default retention is remembered at present:
   that, or less if outcomes are being evicted; without a journal, or with
   IDEM_EVICT_OLDEST, at most the time since the opening.
     IDEM_OK */
IDEM_API int idem_horizon(idem_table *table, uint32_t *horizon_ms,
                          uint32_t now_ms);

/* How long new claims are still granted with IDEM_UNCERTAIN, as records were
   lost; 0: none is.
     IDEM_OK */
IDEM_API int idem_uncertain(idem_table *table, uint32_t *left_ms,
                            uint32_t now_ms);

/* The text of a result of a call on a table, never NULL.  An AVR has all texts
   in RAM: 0.8 KB if this is called, 1.6 KB for idem_explain. */
IDEM_API const char *idem_text(int result);

/* A text that explains why idem_open refuses a configuration: the field, and
   its possible values, or that the journal in the storage has another.  It also
   reports a quota that does not keep S9 under IDEM_EVICT_OLDEST, which
   idem_open takes.  NULL: idem_open finds no fault either, except with the
   memory, other options, or a storage that is not ready.  If all headers are
   damaged, this may see none, or another journal's, where idem_open succeeds
   with a loss.  Reads all of the storage up to twice, without the lock: not
   while a table with that storage is in a call.  Changes nothing, takes 400
   bytes of stack.  Its texts are linked only where this or a function that
   computes a size is called. */
IDEM_API const char *idem_explain(const idem_config *config);

/* Verifies the invariants that the memory shows: 0; the number of one that is
   broken (IDEMI_BROKEN_ in >>check); or IDEM_E_ARG.  Takes (capacity + senders)
   x the length of a lookup; no lock.  For tests, and for firmware that does not
   trust its RAM. */
IDEM_API int idem_check(const idem_table *table);

/* The fingerprint of a payload that arrives in pieces: init, update for each
   piece, final, which uses the state up.  Equal to the one that idem_begin
   computes from the whole.  Pointers are not checked. */
IDEM_API void idem_fingerprint_init(idem_fingerprint_state *state,
                                    const idem_config *config);
IDEM_API void idem_fingerprint_update(idem_fingerprint_state *state,
                                      const void *data, size_t len);
IDEM_API uint64_t idem_fingerprint_final(idem_fingerprint_state *state);

/* ---------------------------------------------------------------------------
   >>helpers   beside the table: keys from text, and the waits of a sender

   They use no table, and no table uses them: leave out those you do not call.
   ------------------------------------------------------------------------ */

/* Make the bytes of a key from the text of a message, which need not end with
   0.  Texts that mean the same give the same bytes.  Pure; key may be equal to
   text.  After a failure do not execute: answer as for no key (>>replying).
     IDEM_OK
     IDEM_E_ARG         the text is not such a key: the sender's mistake, so not
                        asserted; or NULL
     IDEM_E_TOO_LARGE   it is one, but longer than allowed here, or than
                        *key_len
   *key_len holds the size of `key`, and is set to the key's length, even if
   that is too large; or to 0 if the text is not such a key.  A call that fails
   does not change key.

   uuid   16 bytes from 36 characters, 8-4-4-4-12 hexadecimal digits in either
          case, of any version.  The nil UUID, which a sender that forgot to
          make one sends, is refused.
   ulid   16 bytes from 26 of Crockford's base 32, in either case; I, L, O and
          U are no digits.  Over 7ZZZZZZZZZZZZZZZZZZZZZZZZZ is too large; the
          nil ULID is refused, too.
   http   from the value of an Idempotency-Key field, 255 bytes at most: one
          string of RFC 9651 (8941), with spaces around it, and nothing else: no
          parameters, token, list, empty string.
   hex    from hexadecimal digits in either case: an even number, 2 at least. */
IDEM_API IDEMI_MUST_USE
int idem_key_uuid(void *key, const char *text, size_t text_len);
IDEM_API IDEMI_MUST_USE
int idem_key_ulid(void *key, const char *text, size_t text_len);
IDEM_API IDEMI_MUST_USE
int idem_key_http(void *key, size_t *key_len, const char *value,
                  size_t value_len);
IDEM_API IDEMI_MUST_USE
int idem_key_hex(void *key, size_t *key_len, const char *text, size_t text_len);

/* How a sender waits, for idem_retry.  Zero is the default of each field. */
typedef struct idem_patience {
    uint32_t base_ms;           /* the first wait, at most; doubles.  0: 1 s */
    uint32_t cap_ms;            /* the longest one.  0: 60 s */
    uint32_t deadline_ms;       /* give up this long after the first send; must
                                   be less than the device's retention minus the
                                   longest time that a message can stay in the
                                   link.  0: 12 h */
} idem_patience;

/* A command that was sent.  Zero the struct, then fill in its fields. */
typedef struct idem_sent {
    uint32_t times;             /* number of sends, in this boot */
    uint32_t elapsed_ms;        /* since the first send, restarts included */
    uint32_t retry_after_ms;    /* from the answer; 0: not in it */
    uint32_t random;            /* 32 new random bits; 0: the longest wait */
} idem_sent;

#define IDEM_SILENCE 127        /* idem_retry: there was no answer */

/* Results of idem_retry alone, beside IDEM_DONE: the outcome is known. */
enum idem_verdict {
    IDEM_RESEND  = 20,          /* send the same bytes once more, later */
    IDEM_LOOK    = 21,          /* refused, but perhaps executed: look */
    IDEM_REFUSED = 22,          /* refused, and not executed */
    IDEM_GIVE_UP = 23           /* too late to send again; perhaps executed */
};

/* Decides for a sender after an answer (a result of this header), or after
   IDEM_SILENCE: no answer within the time that one may take.  Pure.
     IDEM_RESEND    after IDEM_SILENCE, IDEM_BUSY, IDEM_RELEASED, IDEM_E_FULL,
                    and results not named here: *delay_ms from now
     IDEM_DONE      after IDEM_OK, IDEM_DONE, IDEM_REPLAY
     IDEM_REFUSED   after IDEM_MISMATCH, IDEM_E_ARG, IDEM_E_TOO_LARGE
     IDEM_LOOK      after IDEM_TOO_OLD, IDEM_EXHAUSTED, and IDEM_UNCERTAIN (from
                    a device that could not look)
     IDEM_GIVE_UP   instead of IDEM_RESEND, at the deadline, or if
                    retry_after_ms would end there or later
     IDEM_E_ARG     NULL
   The wait is random, below a limit that doubles from base_ms up to cap_ms
   ("full jitter"), so that many senders that were cut off together do not come
   back together.  It is added to retry_after_ms (IDEM_LEASE_NONE counts as 0),
   and ends at the deadline at the latest.  *delay_ms is at least 1; UINT32_MAX
   if nothing is to be sent again. */
IDEM_API int idem_retry(uint32_t *delay_ms, const idem_patience *patience,
                        const idem_sent *sent, int answer);

#ifdef IDEM_FILE_STORAGE
/* ---------------------------------------------------------------------------
   >>posix     a journal in a file

     if the file                    then
     is opened by another process   IDEM_E_LOCK
     is replaced, renamed, removed  IDEM_E_STORAGE, error ESTALE, at the next
     or truncated while it is open  write that is synced; see idem_file_open
     is written over while it is    not noticed: stop the process first
     open, as cp does
     is restored from a backup or   old answers come back, and commands executed
     a snapshot of the machine      since then are executed again if repeated.
                                    First stop the senders for one retention, or
                                    let each begin a new epoch
     is on NFS or another network   not supported: a lock may not keep another
     file system                    machine out, a sync may end at the server
     is in a folder that may be     IDEM_E_STORAGE, error EACCES: the name of
     searched, not read             the file cannot be made durable
     is open when the disk fills    it has all its space already
   ------------------------------------------------------------------------ */

/* Must not be moved or copied while it is open: storage points to it. */
typedef struct idem_file {
    idem_storage storage;       /* config.storage = &file.storage; its callbacks
                                   return an errno; promised */
    int  error;                 /* 0, or the errno of a failed opening or sync;
                                   after a sync nothing is written until the
                                   file is opened again; promised */
    int  fd;                    /* -1: closed */
    int  sync_error;            /* that of the sync that failed */
    pthread_mutex_t syncing;    /* held for a sync, and for sync_error */
    long owner;                 /* the process that opened it */
    char path[4096];            /* from the root */
    IDEMI_NO_COPY(idem_file)
} idem_file;

/* Opens a journal's file, sector_size x sector_count bytes, for this process
   alone; makes it, readable by its owner only and full of zeros, if there is
   none, or a blank one (empty, or all zeros).  Then open a table with
   config.storage = &file->storage.
     IDEM_OK
     IDEM_E_LOCK      it is open: in another process, or as another idem_file of
                      this one
     IDEM_E_ARG       NULL, sizes that an idem_storage cannot have
     IDEM_E_FORMAT    not a regular file; or of another size, and not blank: not
                      touched
     IDEM_E_STORAGE   the system refused; file->error is the errno; ESTALE: the
                      file is renamed or replaced again and again
   Close a file only after IDEM_OK, and do not open it twice.

   The lock is flock's: it keeps out processes that ask for it, and ends with
   the process, or an exec.  After a fork the file stays the parent's: so open
   it after daemonizing.  In the child every callback returns EPERM; one that
   lives on should close the file, as its copy would keep the lock.

   Each sync checks that the path still names this file, and that it has its
   size, before the written bytes count as durable: nobody would find them.  If
   not, it fails with ESTALE, the call with IDEM_E_STORAGE, and nothing more is
   written.  Answers that need no sync, IDEM_REPLAY and IDEM_BUSY, still come
   from this file: close it, and open file and table again.  The path must stay
   reachable: open the file after chroot, and after giving up rights.
   A relative path starts where the process is. */
IDEM_API int idem_file_open(idem_file *file, const char *path,
                            uint32_t sector_size, uint32_t sector_count);

/* Closes the file, and ends the lock (in a forked child: only the former).
   Stop using the table first, in batch mode after idem_sync.  Closing again
   does nothing.
     IDEM_OK
     IDEM_E_ARG       NULL, or never opened
     IDEM_E_STORAGE   closed, but the system complained: see file->error */
IDEM_API int idem_file_close(idem_file *file);
#endif

#ifdef __cplusplus
}
#endif
#endif /* IDEM_H */

/* Below this line nothing is promised.  Sections:
     >>basics >>hash >>clock >>fields >>defaults >>slots >>index >>order
     >>format >>recovery >>storage >>items >>senders >>keys >>records >>reading
     >>journal >>opening >>commands >>check >>rules >>explain >>public >>run;
     beside the table, and not used by it: >>arriving >>retry >>file
   Letters: S L H >>promises, R V W Q A P D B >>recovery, C >>clock, T >>index,
     O >>order, N >>senders, K >>keys, F >>file */
#if defined(IDEM_IMPLEMENTATION) && !defined(IDEM_IMPLEMENTATION_DONE)
#define IDEM_IMPLEMENTATION_DONE

#if !defined(IDEM_ASSERT) && defined(IDEM_DEBUG)
#error "IDEM_DEBUG: define IDEM_ASSERT too, for instance as assert"
#elif !defined(IDEM_ASSERT)
#define IDEM_ASSERT(x) ((void)0)
#endif

#ifndef IDEM_MISUSE
#define IDEM_MISUSE() IDEM_ASSERT(0 && "idem: a caller's mistake")
#endif

#if !defined(IDEM_MEMCPY) && !defined(IDEM_MEMSET) && !defined(IDEM_MEMCMP)
#include <string.h>
#define IDEM_MEMCPY memcpy
#define IDEM_MEMSET memset
#define IDEM_MEMCMP memcmp
#elif !defined(IDEM_MEMCPY) || !defined(IDEM_MEMSET) || !defined(IDEM_MEMCMP)
#error "define all of IDEM_MEMCPY, IDEM_MEMSET and IDEM_MEMCMP, or none"
#endif

#ifdef IDEM_FILE_STORAGE
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#if defined(__APPLE__) && !defined(F_FULLFSYNC)
#error "IDEM_FILE_STORAGE: _DARWIN_C_SOURCE is needed too, before any #include"
#endif
#ifndef O_CLOEXEC                       /* one that POSIX has since 2008 only */
#error "IDEM_FILE_STORAGE: _POSIX_C_SOURCE must be 200809L before any #include"
#endif
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---------------------------------------------------------------------------
   >>basics    assumptions about the machine; words from bytes

   Words are made of bytes by shifts: order and alignment matter only here.
   ------------------------------------------------------------------------ */
#define IDEMI_ASSUME(name, condition)                                          \
    typedef char idemi_assume_##name[(condition) ? 1 : -1]

IDEMI_ASSUME(bytes_have_eight_bits, (unsigned char)-1 == 0xFF);
IDEMI_ASSUME(unsigned_numbers_every_index_word,
             (unsigned)-1 / IDEMI_WORDS >= IDEM_CAPACITY_MAX);
IDEMI_ASSUME(a_number_takes_every_item,
             (idem_short)-1 > IDEM_CAPACITY_MAX + IDEM_SENDERS_MAX);
IDEMI_ASSUME(links_stay_aligned, sizeof(idem_slot) % 4 == 0);
IDEMI_ASSUME(slots_stay_aligned, sizeof(idem_sender) % 4 == 0);

/* Alignment that memory must have: that of its strictest tenant. */
typedef struct idemi_aligned {
    char first;
    union {
        idem_slot    slot;
        idem_sender  sender;
        idem_journal journal;
    } tenant;
} idemi_aligned;
#define IDEMI_ALIGNMENT offsetof(idemi_aligned, tenant)

/* How a function is compiled (`make size` and `make bench` measure it):
     IDEMI_NOINLINE   with -Os never inlined: its locals stay out of the frame
                      of its caller
     IDEMI_INLINE     with -Os always inlined (`make size PART=hints`)
     IDEMI_FLATTEN    without -Os all that it calls becomes part of it
     IDEMI_UNROLL     without -Os a loop makes four rounds at a time
     IDEMI_SLOW       never inlined: it stays out of the fast path
     IDEMI_UNLIKELY   the condition is seldom true, to be fast in RAM */
#if defined(__GNUC__) && defined(__OPTIMIZE_SIZE__)
#define IDEMI_NOINLINE __attribute__((noinline))
#define IDEMI_INLINE static inline __attribute__((always_inline))
#else
#define IDEMI_NOINLINE
#define IDEMI_INLINE static
#endif
#if defined(__GNUC__) && !defined(__OPTIMIZE_SIZE__)
#define IDEMI_FLATTEN __attribute__((flatten))
#define IDEMI_UNROLL _Pragma("GCC unroll 4")
#else
#define IDEMI_FLATTEN
#define IDEMI_UNROLL
#endif
#ifdef __GNUC__
#define IDEMI_SLOW __attribute__((noinline))
#define IDEMI_UNLIKELY(condition) __builtin_expect(!!(condition), 0)
#else
#define IDEMI_SLOW
#define IDEMI_UNLIKELY(condition) (condition)
#endif

/* Loads memory that a lookup is about to read into the cache. */
#if defined(__GNUC__) && IDEM_WIDE
#define IDEMI_PREFETCH(address) __builtin_prefetch(address)
#else
#define IDEMI_PREFETCH(address) ((void)(address))
#endif

/* "No slot": larger than the number of any, and of any item. */
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

IDEMI_INLINE void idemi_basics_store32(unsigned char *p, uint32_t word)
{
    p[0] = (unsigned char)word;
    p[1] = (unsigned char)(word >> 8);
    p[2] = (unsigned char)(word >> 16);
    p[3] = (unsigned char)(word >> 24);
}

/* Decodes words of four bytes, the lowest first; `writing`: encodes them, after
   which decoding changes nothing. */
static void idemi_basics_code_words(unsigned char *bytes, uint32_t *words,
                                    unsigned count, int writing)
{
    for (; count > 0; count--, words++, bytes += 4) {
        if (writing)
            idemi_basics_store32(bytes, *words);
        *words = idemi_basics_load32(bytes);
    }
}

/* 64 bits that are stored as two words, and so need no more alignment. */
static uint64_t idemi_basics_join(const uint32_t words[2])
{
    return (uint64_t)words[1] << 32 | words[0];
}

static void idemi_basics_split(uint32_t words[2], uint64_t number)
{
    words[0] = (uint32_t)number;
    words[1] = (uint32_t)(number >> 32);
}

static uint32_t idemi_basics_min(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
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
               for trusted ones; and the two hashes that the table uses

   SipHash: J.-P. Aumasson, D. J. Bernstein, "SipHash: a fast short-input PRF",
   2012.  HalfSipHash: the reference implementation of the same authors; half
   the word size, made for machines where 64-bit words are slow.  FNV-1a: G.
   Fowler, L. C. Noll, K.-P. Vo.

                     fingerprint: strong          index hash: quick
     SipHash         2-4, 64 bits                 1-3, low half of its 64 bits
     HalfSipHash     2-4, 64 bits, with the       1-3, 32 bits, with the
                     secret's first half          secret's last half
     FNV-1a          64 bits, no secret           32 bits, no secret

   The index hash covers the scope, the key, and a byte: the scope's length.
   The fingerprint covers the payload; with FNV-1a also the payload's length, 8
   bytes after it.
   ------------------------------------------------------------------------ */
#if IDEM_HASH == IDEM_HASH_SIPHASH
typedef uint64_t idemi_hash_lane;
enum idemi_rotate { IDEMI_ROTATE_A = 13, IDEMI_ROTATE_B = 16,
                    IDEMI_ROTATE_C = 21, IDEMI_ROTATE_D = 17 };
#elif IDEM_HASH == IDEM_HASH_HALFSIPHASH
typedef uint32_t idemi_hash_lane;
enum idemi_rotate { IDEMI_ROTATE_A = 5, IDEMI_ROTATE_B = 8,
                    IDEMI_ROTATE_C = 7, IDEMI_ROTATE_D = 13 };
#endif

#if IDEM_HASH != IDEM_HASH_FNV
static idemi_hash_lane idemi_hash_rotate(idemi_hash_lane x, unsigned bits)
{
    return x << bits | x >> (8 * sizeof x - bits);
}

/* Takes in a word: "SipRound" of the paper, `rounds` times.  With word 0 only
   the rounds. */
static void idemi_hash_word(idemi_hash_state *state, idemi_hash_lane word,
                            int rounds)
{
    idemi_hash_lane v0 = state->v[0], v1 = state->v[1], v2 = state->v[2];
    idemi_hash_lane v3 = state->v[3] ^ word;
    const unsigned half = 4 * sizeof word;      // of its bits

    IDEMI_UNROLL
    for (; rounds > 0; rounds--) {
        v0 += v1;
        v1 = idemi_hash_rotate(v1, IDEMI_ROTATE_A) ^ v0;
        v0 = idemi_hash_rotate(v0, half);
        v2 += v3;
        v3 = idemi_hash_rotate(v3, IDEMI_ROTATE_B) ^ v2;
        v0 += v3;
        v3 = idemi_hash_rotate(v3, IDEMI_ROTATE_C) ^ v0;
        v2 += v1;
        v1 = idemi_hash_rotate(v1, IDEMI_ROTATE_D) ^ v2;
        v2 = idemi_hash_rotate(v2, half);
    }
    state->v[0] = v0 ^ word;
    state->v[1] = v1;
    state->v[2] = v2;
    state->v[3] = v3;
}
#endif

#if IDEM_HASH == IDEM_HASH_SIPHASH
static void idemi_hash_init(idemi_hash_state *state,
                            const idem_config *config, int strong)
{
    uint64_t k0 = idemi_basics_load64(config->secret);
    uint64_t k1 = idemi_basics_load64(config->secret + 8);

    // The constants are the paper's: "somepseudorandomlygeneratedbytes".
    state->v[0] = k0 ^ UINT64_C(0x736f6d6570736575);
    state->v[1] = k1 ^ UINT64_C(0x646f72616e646f6d);
    state->v[2] = k0 ^ UINT64_C(0x6c7967656e657261);
    state->v[3] = k1 ^ UINT64_C(0x7465646279746573);
    state->word = 0;
    state->len = 0;
    state->strong = (uint8_t)strong;
}

static void idemi_hash_update(idemi_hash_state *state, const void *data,
                              size_t len)
{
    const unsigned char *p = (const unsigned char *)data;
    const unsigned char *end;
    unsigned shift = 8u * (state->len & 7);

    if (!len)
        return;
    end = p + len;
    state->len = (uint8_t)(state->len + len);
    while (p < end && shift) {
        state->word |= (uint64_t)*p++ << shift;
        shift = (shift + 8) % 64;
        if (!shift) {
            idemi_hash_word(state, state->word, 1 + state->strong);
            state->word = 0;
        }
    }
    for (; end - p >= 8; p += 8)
        idemi_hash_word(state, idemi_basics_load64(p), 1 + state->strong);
    for (; p < end; shift += 8)
        state->word |= (uint64_t)*p++ << shift;
}

static uint64_t idemi_hash_final(idemi_hash_state *state)
{
    idemi_hash_word(state, state->word | (uint64_t)state->len << 56,
                    1 + state->strong);
    state->v[2] ^= 0xff;
    idemi_hash_word(state, 0, 3 + state->strong);
    return state->v[0] ^ state->v[1] ^ state->v[2] ^ state->v[3];
}

#elif IDEM_HASH == IDEM_HASH_HALFSIPHASH
static void idemi_hash_init(idemi_hash_state *state,
                            const idem_config *config, int strong)
{
    const unsigned char *key = config->secret + (strong ? 0 : 8);
    uint32_t k0 = idemi_basics_load32(key);
    uint32_t k1 = idemi_basics_load32(key + 4);

    state->v[0] = k0;
    state->v[1] = k1 ^ (strong ? 0xeeu : 0u);
    state->v[2] = k0 ^ UINT32_C(0x6c796765);
    state->v[3] = k1 ^ UINT32_C(0x74656462);
    state->word = 0;
    state->len = 0;
    state->strong = (uint8_t)strong;
}

static void idemi_hash_update(idemi_hash_state *state, const void *data,
                              size_t len)
{
    const unsigned char *p = (const unsigned char *)data;

    // Bytes enter at the top and move down, so after four the word is whole
    // and needs no clearing.
    for (; len > 0; len--) {
        state->word = state->word >> 8 | (uint32_t)*p++ << 24;
        state->len = (uint8_t)(state->len + 1);
        if ((state->len & 3) == 0)
            idemi_hash_word(state, state->word, 1 + state->strong);
    }
}

static uint32_t idemi_hash_output(idemi_hash_state *state)
{
    idemi_hash_word(state, 0, 3 + state->strong);
    return state->v[1] ^ state->v[3];
}

static uint64_t idemi_hash_final(idemi_hash_state *state)
{
    int rest = state->len & 3;
    // In two steps: a shift by 32 is undefined.
    uint32_t word = state->word >> 8 >> (24 - 8 * rest);
    uint32_t low;

    idemi_hash_word(state, word | (uint32_t)state->len << 24,
                    1 + state->strong);
    state->v[2] ^= state->strong ? 0xeeu : 0xffu;
    low = idemi_hash_output(state);
    if (!state->strong)
        return low;
    state->v[1] ^= 0xdd;
    return (uint64_t)idemi_hash_output(state) << 32 | low;
}

#else
/* The quick hash is the lower half, which never depends on the upper one. */
static void idemi_hash_init(idemi_hash_state *state,
                            const idem_config *config, int strong)
{
    (void)config;
    state->hash = strong ? UINT64_C(0xcbf29ce484222325) : 0x811c9dc5;
    state->prime = strong ? UINT64_C(0x00000100000001b3) : 0x01000193;
    state->len = 0;
    state->strong = (uint8_t)strong;
}

static void idemi_hash_update(idemi_hash_state *state, const void *data,
                              size_t len)
{
    const unsigned char *p = (const unsigned char *)data;

    state->len += len;
    for (; len > 0; len--)
        state->hash = (state->hash ^ *p++) * state->prime;
}

static uint64_t idemi_hash_final(idemi_hash_state *state)
{
    uint64_t len = state->len;
    int i;

    for (i = 0; state->strong && i < 8; i++) {
        unsigned char byte = (unsigned char)(len >> (8 * i));
        idemi_hash_update(state, &byte, 1);
    }
    return state->hash;
}
#endif

static uint64_t idemi_hash_strong(const idem_config *config, const void *data,
                                  size_t len)
{
    idemi_hash_state state;

    idemi_hash_init(&state, config, 1);
    idemi_hash_update(&state, data, len);
    return idemi_hash_final(&state);
}

IDEMI_FLATTEN
static uint32_t idemi_hash_pair(const idem_config *config,
                                const unsigned char *scope, size_t scope_len,
                                const unsigned char *key, size_t key_len)
{
    unsigned char border = (unsigned char)scope_len;
    idemi_hash_state state;

    idemi_hash_init(&state, config, 0);
    idemi_hash_update(&state, scope, scope_len);
    idemi_hash_update(&state, key, key_len);
    idemi_hash_update(&state, &border, 1);
    return (uint32_t)idemi_hash_final(&state);
}

/* ---------------------------------------------------------------------------
   >>clock     32 bits of logical time, compared by differences

   32 bits are 49.7 days.  Each of three kinds of time spans less, and is only
   compared with the clock and with others of its kind:

     kind             ago, at most                      ahead, at most
     completions      33.1 days: retention, one sweep   0
     ends of leases   33.1 days                         6.2 days
     expiries         3.1 days: one sweep               36.2 days: 6.2 + 30.0

   Every 2^28 ms of logical time the sweep (idemi_keys_sweep) drops all expired
   keys, so no time gets older than that, and comes back as one ahead.  So the
   functions that move the clock of an open table are in >>keys.

   C1  A lease that has an end ends at most IDEM_LEASE_MAX after the clock.
   C2  A completion is never after the clock.
   C3  No slot has been expired for longer than one sweep interval.
   C4  The last sweep is less than one sweep interval ago.
   ------------------------------------------------------------------------ */
#define IDEMI_SWEEP_MS UINT32_C(0x10000000)     /* 2^28 ms: 3.1 days */

/* The clock's window: times from this long ago (two sweep intervals) on.  Times
   up to the clock have been reached, the others are ahead. */
#define IDEMI_PAST_MS  UINT32_C(0x20000000)

/* A step back of the tick up to this is waited out.  It is less than 2^16 ms: a
   tick of 16 bits that is read often must be followed when it wraps. */
#define IDEMI_JITTER_MS UINT32_C(0xFE00)

/* Further ahead than any expiry, even after the clock has moved on by one sweep
   interval */
#define IDEMI_NEVER_MS UINT32_C(0xD0000000)

/* The longest silence of a journal.  The header after it may be further ahead
   of the clock that reads it, by the time of one record that is lost, or an
   orphan: at most a sweep interval (idemi_journal_is_silent).  By more, after a
   boot's first commit record that is lost, P3 and P6 only make keys younger. */
#define IDEMI_SILENCE_MS (IDEMI_NEVER_MS - IDEMI_SWEEP_MS)

IDEMI_ASSUME(never_is_inside_the_window,
             IDEMI_NEVER_MS <= UINT32_MAX - IDEMI_PAST_MS);
IDEMI_ASSUME(expiries_stay_below_never,
             IDEM_LEASE_MAX + IDEM_RETENTION_MAX <
                 IDEMI_NEVER_MS - IDEMI_SWEEP_MS);

/* Milliseconds from the start of the clock's window to `at`. */
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
   >>fields    the fields of the configuration, as the code reads them

   With IDEM_CONFIG they are constants, and the compiler leaves out the code
   that is not needed; without it they are the table's, and so are the sizes
   that follow from them.  The secret is always the table's.
   ------------------------------------------------------------------------ */
#ifdef IDEM_CONFIG
/* A function: in a macro a parameter of ours could have the user's name. */
static inline const idem_config *idemi_configured(void)
{
    return &(IDEM_CONFIG);
}
#undef IDEM_CONFIG
#define IDEM_CONFIG (*idemi_configured())

#define IDEMI_EITHER(stored, constant) ((void)(stored), (constant))
#define IDEMI_EVER(condition)   (condition)
#define IDEMI_JOURNAL(t)        ((void)(t), IDEMI_EVER_JOURNAL)
#else
#define IDEMI_EITHER(stored, constant) (stored)
#define IDEMI_EVER(condition)   1
#define IDEMI_JOURNAL(t)        IDEMI_UNLIKELY((t)->journal != NULL)
#endif

#define IDEMI_STORES_SIZES      IDEMI_EITHER(1, 0)
#define IDEMI_EVER_SENDERS      IDEMI_EVER(IDEM_CONFIG.senders != 0)
#define IDEMI_EVER_STATE        IDEMI_EVER(IDEM_CONFIG.state_max != 0)
#define IDEMI_EVER_JOURNAL      IDEMI_EVER(IDEM_CONFIG.storage != NULL)
#define IDEMI_EVER_EVICTS       IDEMI_EVER(IDEM_CONFIG.full != IDEM_REJECT)
#define IDEMI_EVER_OWN (IDEMI_EVER_EVICTS && IDEMI_EVER(IDEM_CONFIG.quota != 0))

#define IDEMI_GIVEN(config)     IDEMI_EITHER(config, &IDEM_CONFIG)
#define IDEMI_CONFIG_OF(t)      IDEMI_EITHER((t)->config, &IDEM_CONFIG)
#define IDEMI_CAPACITY(t)                                                      \
    IDEMI_EITHER((t)->capacity, (unsigned)IDEM_CONFIG.capacity)
#define IDEMI_STRIDE(t)                                                        \
    IDEMI_EITHER((t)->stride, (size_t)IDEMI_SLOT_SIZE(                         \
                                  IDEM_CONFIG.key_max,                         \
                                  IDEM_CONFIG.response_max))
#define IDEMI_SECTOR_SIZE(j)                                                   \
    IDEMI_EITHER((j)->sector_size, IDEM_CONFIG.storage->sector_size)
#define IDEMI_SECTOR_COUNT(j)                                                  \
    IDEMI_EITHER((j)->sector_count, IDEM_CONFIG.storage->sector_count)
#define IDEMI_GRANULE(j)                                                       \
    IDEMI_EITHER((j)->granule, IDEM_CONFIG.storage->prog_size)
#define IDEMI_RECORDS_AT(j)                                                    \
    IDEMI_EITHER((j)->records_at, IDEMI_FRONT(IDEMI_GRANULE(j)))
#define IDEMI_RECORD_LIMIT(j)                                                  \
    IDEMI_EITHER((j)->record_limit, IDEMI_RECORD_MAX(                          \
        IDEM_CONFIG.key_max, IDEM_CONFIG.response_max, IDEM_CONFIG.state_max,  \
        IDEM_CONFIG.storage->prog_size))

#define IDEMI_STORAGE(config)   (IDEMI_GIVEN(config)->storage)

#define IDEMI_SENDERS(t)                                                       \
    (IDEMI_EVER_SENDERS ? (unsigned)IDEMI_CONFIG_OF(t)->senders : 0u)

/* True if each sender's outcomes have an order of their own: evictions go by
   sender. */
#define IDEMI_OWN(t) (IDEMI_EVER_OWN && (t)->own)

/* True while an opening reads a journal: the table is not marked open yet. */
#define IDEMI_IS_OPENING(t) (IDEMI_EVER_JOURNAL && !(t)->magic)

/* ---------------------------------------------------------------------------
   >>defaults  for a zero in the configuration
   ------------------------------------------------------------------------ */
#define IDEMI_LEASE_MS     UINT32_C(30000)
#define IDEMI_RETENTION_MS UINT32_C(86400000)
#define IDEMI_MAX_ATTEMPTS 3

/* The first of up to three values that is not zero. */
static uint32_t idemi_default(uint32_t asked, uint32_t configured,
                              uint32_t otherwise)
{
    if (asked)
        return asked;
    return configured ? configured : otherwise;
}

static uint32_t idemi_default_retention(const idem_table *t, uint32_t asked_ms)
{
    return idemi_default(asked_ms, IDEMI_CONFIG_OF(t)->retention_ms,
                         IDEMI_RETENTION_MS);
}

/* ---------------------------------------------------------------------------
   >>slots     one key, and the bytes after it

       idem_slot
       scope, then key      key_max bytes
       response             response_max bytes; to a multiple of 4

   flags: bits 0-1 are 0 (free) or IDEM_IN_PROGRESS, _COMPLETED, _FAILED.
   ------------------------------------------------------------------------ */
#define IDEMI_STATUS      0x03u
#define IDEMI_CLAIMED     0x01u         /* IDEM_IN_PROGRESS, to be combined */
#define IDEMI_FINISHED    0x02u         /* set in both finished states */
#define IDEMI_UNDELIVERED 0x04u
#define IDEMI_ENDLESS     0x08u         /* a lease without end; while a journal
                                           is read, every claim of this boot */
#define IDEMI_INTERRUPTED 0x10u         /* a claim that a restart ended */
#define IDEMI_UNCOUNTED   (IDEMI_EVER_SENDERS && IDEMI_EVER_JOURNAL ? 0x20u : 0)
                                        /* by its sender's entry (N3) */
#define IDEMI_EXPIRED     0x10u         /* in a key's record: R1f */
#define IDEMI_ALL_GONE    0x10u         /* in a sender's record: R1d */

/* A scope and a key, and their hash in the index */
typedef struct idemi_id {
    const unsigned char *scope, *key;
    uint8_t scope_len;
    uint8_t key_len;            /* 0: a number; no other key is empty */
    idem_short hash;
} idemi_id;
#define IDEMI_NUMBER_BYTES 8u

/* What happened to a key.  In this order: up to ADDED it is there; after
   RELEASED, if it is a number, it leaves (R1b). */
enum idemi_event {
    IDEMI_KEY_KEPT,             /* read again */
    IDEMI_KEY_ADDED,
    IDEMI_KEY_RELEASED,
    IDEMI_KEY_EXPIRED,
    IDEMI_KEY_EVICTED
};

static idem_slot *idemi_slot_at(const idem_table *t, unsigned slot)
{
    return (idem_slot *)(void *)(t->slots + slot * IDEMI_STRIDE(t));
}

static unsigned char *idemi_slot_id(idem_slot *s)
{
    return (unsigned char *)(s + 1);
}

static unsigned char *idemi_slot_response(const idem_table *t, idem_slot *s)
{
    return idemi_slot_id(s) + IDEMI_CONFIG_OF(t)->key_max;
}

static unsigned idemi_slot_key_bytes(unsigned key_len)
{
    return key_len || !IDEMI_EVER_SENDERS ? key_len : IDEMI_NUMBER_BYTES;
}

IDEMI_INLINE int idemi_slot_has_scope(idem_slot *s, const idemi_id *id)
{
    return s->scope_len == id->scope_len &&
           idemi_basics_equal(idemi_slot_id(s), id->scope, id->scope_len);
}

IDEMI_INLINE int idemi_slot_has_id(idem_slot *s, const idemi_id *id)
{
    return s->key_len == id->key_len && idemi_slot_has_scope(s, id) &&
           idemi_basics_equal(idemi_slot_id(s) + id->scope_len, id->key,
                              idemi_slot_key_bytes(id->key_len));
}

/* The key if it is a number: its epoch, and below that its sequence; else 0. */
IDEMI_INLINE uint64_t idemi_slot_number(idem_slot *s)
{
    return !IDEMI_EVER_SENDERS || s->key_len
               ? 0
               : idemi_basics_load64(idemi_slot_id(s) + s->scope_len);
}

/* The token of its claim.  A slot stores 48 bits of it with IDEM_WIDE, else 32;
   none above that is granted. */
#if IDEM_WIDE
#define IDEMI_TOKEN_MAX (UINT64_MAX >> 16)
#else
#define IDEMI_TOKEN_MAX UINT32_MAX
#endif
static idem_token idemi_slot_token(const idem_slot *s)
{
#if IDEM_WIDE
    return (idem_token)s->token_high << 32 | s->token;
#else
    return s->token;
#endif
}

/* Restores the high half of a slot's token: of the highest one up to `newest`
   that has its low half. */
static void idemi_slot_widen_token(idem_slot *s, idem_token newest)
{
#if IDEM_WIDE
    newest -= (uint32_t)((uint32_t)newest - s->token);
    s->token_high = (uint16_t)(newest >> 32);
#else
    (void)s;
    (void)newest;
#endif
}

/* When the key expires, if no call changes it. */
static uint32_t idemi_slot_expiry(const idem_table *t, const idem_slot *s)
{
    if (s->flags & IDEMI_ENDLESS)
        return t->clock + IDEMI_NEVER_MS;
    return s->time + s->retention;
}

static int idemi_slot_has_expired(const idem_table *t, const idem_slot *s)
{
    return idemi_clock_reached(t->clock, idemi_slot_expiry(t, s));
}

/* The rest of a lease: 0 from the millisecond in which it ends.  By C1 a time
   more than IDEM_LEASE_MAX ahead of the clock is a past one. */
IDEMI_INLINE uint32_t idemi_slot_lease_left(const idem_table *t,
                                            const idem_slot *s)
{
    uint32_t left = s->time - t->clock;

    if (s->flags & IDEMI_ENDLESS)
        return IDEM_LEASE_NONE;
    return left <= IDEM_LEASE_MAX ? left : 0;
}

/* ---------------------------------------------------------------------------
   >>index     from a hash to a slot: open addressing, linear probing

   An array of 2 x capacity words, 3 x with IDEM_WIDE.  A key's home is its hash
   scaled to that; its word stands at its home, or at the next empty position
   after it.  A word is the slot's number plus one; 0 is empty.  The hash is in
   the slot.  With IDEM_WIDE a word also has five bits of the hash, and its
   distance from home: a search, and removing, pass the words of other keys
   without a cache miss.

       homes   2    2    3    5    5
       at      2    3    4    5    6    7
       word    a    b    c    d    e    -

   Removing a closes the gap, so that all keys stay reachable: b and c, whose
   homes are not after the gap, move back; d and e, whose home is, stay (e
   though it is not at home).  Marks for deleted words would be less code, but
   would fill the index, which is never rehashed.  Robin Hood order ends the
   search for an absent key one word earlier, and takes twice the code.

   T1  Every slot in use has exactly one word, and every word such a slot.
   T2  No word from a key's home to its own is empty, and its distance and tag
       are right: every key is found.
   T3  At least half of the words are empty: every search ends.
   ------------------------------------------------------------------------ */

/* Sets id->hash: of the hash of scope and key the part that the index uses. */
static void idemi_index_hash_id(const idem_config *config, idemi_id *id)
{
    uint32_t hash = idemi_hash_pair(config, id->scope, id->scope_len, id->key,
                                    idemi_slot_key_bytes(id->key_len));

    id->hash = (idem_short)(hash >> (32 - 8 * sizeof(idem_short)));
}

/* Sets *id: scope and key at `where`, of a slot's lengths, and their hash. */
static void idemi_index_identify(const idem_config *config, const idem_slot *s,
                                 const unsigned char *where, idemi_id *id)
{
    id->scope = where;
    id->scope_len = s->scope_len;
    id->key = where + s->scope_len;
    id->key_len = s->key_len;
    idemi_index_hash_id(config, id);
}

static unsigned idemi_index_size(const idem_table *t)
{
    return IDEMI_WORDS * IDEMI_CAPACITY(t);
}

static unsigned idemi_index_home(const idem_table *t, idem_short hash)
{
#if IDEM_WIDE
    return (unsigned)((uint64_t)hash * idemi_index_size(t) >> 32);
#else
    return (unsigned)((uint32_t)hash * idemi_index_size(t) >> 16);
#endif
}

static void idemi_index_prefetch(const idem_table *t, idem_short hash)
{
    IDEMI_PREFETCH(&t->index[idemi_index_home(t, hash)]);
}

static unsigned idemi_index_next(const idem_table *t, unsigned at)
{
    return ++at < idemi_index_size(t) ? at : 0;
}

/* The slot of the word at a position, or IDEMI_NONE if that is empty. */
static unsigned idemi_index_slot(const idem_table *t, unsigned at)
{
    return (unsigned)t->index[at].slot - 1u;
}

/* Prefetches the slot at the home of a hash: the first bytes and the last. */
static void idemi_index_prefetch_slot(const idem_table *t, idem_short hash)
{
    unsigned slot = idemi_index_slot(t, idemi_index_home(t, hash));

    if (slot != IDEMI_NONE) {
        IDEMI_PREFETCH(idemi_slot_at(t, slot));
        IDEMI_PREFETCH(t->slots + (slot + 1) * IDEMI_STRIDE(t) - 1);
    }
}

/* True if the word at `at`, which names `slot`, is of a key with that hash. */
static int idemi_index_has_hash(const idem_table *t, unsigned at, unsigned slot,
                                idem_short hash)
{
#if IDEM_WIDE
    if (t->index[at].tag != (hash % IDEMI_WORD_TAGS))
        return 0;
#else
    (void)at;
#endif
    return idemi_slot_at(t, slot)->hash == hash;
}

/* How far a slot's word, which is at a position, is from its home. */
static unsigned idemi_index_offset(const idem_table *t, unsigned at,
                                   unsigned slot)
{
    unsigned home;

#if IDEM_WIDE
    if (t->index[at].offset < IDEMI_WORD_OFFSET)
        return t->index[at].offset;
#endif
    home = idemi_index_home(t, idemi_slot_at(t, slot)->hash);
    return at >= home ? at - home : at + idemi_index_size(t) - home;
}

static void idemi_index_set_offset(const idem_table *t, unsigned at,
                                   unsigned offset)
{
#if IDEM_WIDE
    if (offset > IDEMI_WORD_OFFSET)
        offset = IDEMI_WORD_OFFSET;
    t->index[at].offset = offset % (IDEMI_WORD_OFFSET + 1);
#else
    (void)t;
    (void)at;
    (void)offset;
#endif
}

/* The slot of a key, or IDEMI_NONE.  Needs T2 and T3. */
static unsigned idemi_index_find(const idem_table *t, const idemi_id *id)
{
    unsigned at = idemi_index_home(t, id->hash);

    for (;; at = idemi_index_next(t, at)) {
        unsigned slot = idemi_index_slot(t, at);
        if (slot == IDEMI_NONE ||
            (idemi_index_has_hash(t, at, slot, id->hash) &&
             idemi_slot_has_id(idemi_slot_at(t, slot), id)))
            return slot;
    }
}

/* Inserts a slot whose key is not in the index.  Keeps T1, T2. */
static void idemi_index_insert(idem_table *t, unsigned slot)
{
    idem_short hash = idemi_slot_at(t, slot)->hash;
    unsigned at = idemi_index_home(t, hash), offset = 0;

    for (; idemi_index_slot(t, at) != IDEMI_NONE; offset++)
        at = idemi_index_next(t, at);
#if IDEM_WIDE
    t->index[at].slot = (slot + 1) % IDEMI_WORD_SLOTS;
    t->index[at].tag = hash % IDEMI_WORD_TAGS;
#else
    t->index[at].slot = (idem_short)(slot + 1);
#endif
    idemi_index_set_offset(t, at, offset);
}

/* Removes a slot from the index, and closes the gap: each later word moves back
   unless its home is after the gap.  Keeps T1, T2. */
static void idemi_index_remove(idem_table *t, unsigned slot)
{
    unsigned gap = idemi_index_home(t, idemi_slot_at(t, slot)->hash);
    unsigned at, other;
    unsigned steps;             // from the gap to `at`

    while (idemi_index_slot(t, gap) != slot)
        gap = idemi_index_next(t, gap);
    at = idemi_index_next(t, gap);
    for (steps = 1; (other = idemi_index_slot(t, at)) != IDEMI_NONE; steps++) {
        unsigned offset = idemi_index_offset(t, at, other);
        if (offset >= steps) {    // its home is not after the gap
            t->index[gap] = t->index[at];
            idemi_index_set_offset(t, gap, offset - steps);
            gap = at;
            steps = 0;
        }
        at = idemi_index_next(t, at);
    }
    t->index[gap].slot = 0;
}

/* ---------------------------------------------------------------------------
   >>order     finished slots from the oldest completion to the newest, and the
               free ones: two lists through one array of links

   links[capacity] is both ends of the order, so removing a slot or adding one
   at an end is no special case.

       links[capacity].newer -> oldest -> ... -> newest -> links[capacity]
                             <-        <-     <-        <-

   The oldest outcome is the one to evict, and almost always the next to expire:
   room is found without a search.  Only where retentions differ, or claims were
   abandoned, may a younger slot expire first: not before `soonest`, and the
   sweep (idemi_keys_sweep) finds it.  A sender at its quota evicts the oldest
   of its own: so with both each sender has an order, in t->own, with its ends
   at the sender's item, and no other outcomes are passed.

   O1  The order has the finished slots and no others, by completion.
   O2  The free list has the free slots and no others.
   O3  No slot expires before t->soonest.
   O4  A sender's own order has the finished slots that its entry counts and
       that are not undelivered, and no others, by completion.
   ------------------------------------------------------------------------ */

/* The time since an outcome was completed, ms */
IDEMI_INLINE uint32_t idemi_order_age(const idem_table *t, unsigned slot)
{
    return t->clock - idemi_slot_at(t, slot)->time;
}

/* Links a slot to the next newer one; either may be the ends of the order. */
static void idemi_order_link(idem_link *links, unsigned older, unsigned newer)
{
    links[older].newer = (idem_short)newer;
    links[newer].older = (idem_short)older;
}

static void idemi_order_take_out(idem_link *links, unsigned slot)
{
    idemi_order_link(links, links[slot].older, links[slot].newer);
}

/* Makes a slot the next one after another. */
static void idemi_order_insert(idem_link *links, unsigned older, unsigned slot)
{
    idemi_order_link(links, slot, links[older].newer);
    idemi_order_link(links, older, slot);
}

/* Takes a finished slot out of the order, and out of its sender's.  (While a
   journal is read it is in no sender's: its links there are 0.) */
static void idemi_order_remove(idem_table *t, unsigned slot)
{
    idemi_order_take_out(t->links, slot);
    if (IDEMI_OWN(t) && !(idemi_slot_at(t, slot)->flags &
                          (IDEMI_UNCOUNTED | IDEMI_UNDELIVERED)))
        idemi_order_take_out(t->own, slot);
}

static void idemi_order_add_free(idem_table *t, unsigned slot)
{
    t->links[slot].newer = t->free;
    t->free = (idem_short)slot;
}

/* Lowers `soonest` to a time at which a slot expires.  Keeps O3. */
static void idemi_order_lower_soonest(idem_table *t, uint32_t expiry)
{
    if (idemi_clock_rank(t->clock, expiry) <
        idemi_clock_rank(t->clock, t->soonest))
        t->soonest = expiry;
}

static void idemi_order_note_expiry(idem_table *t, const idem_slot *s)
{
    idemi_order_lower_soonest(t, idemi_slot_expiry(t, s));
}

/* The oldest outcome that may be evicted; or `capacity`.  Expired ones were
   dropped before (idemi_command_reclaim). */
IDEMI_INLINE unsigned idemi_order_evictable(const idem_table *t)
{
    unsigned slot = IDEMI_CAPACITY(t);

    do
        slot = t->links[slot].newer;
    while (slot != IDEMI_CAPACITY(t) &&
           idemi_slot_at(t, slot)->flags & IDEMI_UNDELIVERED);
    return slot;
}

/* ---------------------------------------------------------------------------
   >>format    the bytes of a journal: version 4, little-endian

   G(n) is n rounded up to whole granules.  >>hash has the two hashes.

   Sectors are numbered by a sequence, from 1 on (that of a number is another:
   >>numbers).  Sequence s stands in physical sector s modulo sector_count.  The
   head is the newest sector that counts (>>recovery); records are appended to
   it.  The tail is the oldest sector in which something is still needed; older
   sectors are dead.  Of 8 sectors, with head 21 and tail 16:

     physical sector     0     1     2     3     4     5     6     7
     sequence           16    17    18    19    20   [21]   14    15
                       tail                          head  dead  dead

   A sector.  Each record begins at a granule; the rest of its last granule is
   filled with erased bytes.

     offset          contents
     0               header
     G(56)           relocated records: written again, from older sectors
     relocated_end   commit record: the first record that is not relocated
     after it        all other records

   A header.

     offset  size  field           meaning
     0       4     magic           "idem"
     4       1     version         4 (3 is not used)
     5       1     hash            1 SipHash, 2 HalfSipHash, 3 FNV-1a
     6       2     prog_size
     8       3     sector_size
     11      1     erased
     12      2     sector_count
     14      2     sum             with it all 28 pairs of bytes add up to
                                   0xFFFF, modulo 2^16 - 1
     16      4     sequence        of this sector
     20      4     tail            sequence of the oldest sector needed
     24      4     previous        newest older sector that counts; 0: none
     28      3     previous_end    where the records of that one end
     31      1     first           1: the first header of a boot; else 0
     32      3     relocated_end   where the relocated records here end
     35      1     batched         1: records here are durable with idem_sync
     36      4     time            logical ms; in the first header of a boot,
                                   when the boot began
     40      4     uncertain       logical ms until which the table is uncertain
     44      4     retention       ms, default of the records here
     48      2     response_len    bytes, default of the records here
     50      2     longest         a quarter of the bytes of the longest record
                                   (>>recovery) when it was written
     52      4     check

   A record: these fields, one after the other, each if the record is of the
   kind in the third column:

     all         every record
     key         bit 0x08 of flags
     finished    status 2 or 3
     replacing   bits 0x04 and 0x08, but not status 2 or 3: its sender took over
                 another's entry
     both        finished or replacing
     sender      bit 0x04, but neither 0x08 nor a status
     state       bit 0x20

   n is a varint, at most five bytes: seven bits in a byte, the lowest first,
   and 0x80 in all bytes but the last.  n?  is an optional varint: if it is not
   there, its default holds.

     size  field         kind       meaning
     1     flags         all
     1     options       all
     n     slot          all        from 1 on; 0: none
     n     time          all        ms since the record before; of the first in
                                    a sector since the time in the header
     n?    code          finished   32 bits as they are; default 0
                         replacing  low half of the hash of the sender that had
                                    the entry
     n?    response_len  both       default: that of the header
     n?    scope_len     key        default 0
     n?    attempts      key        default 1
     n?    retention     key        ms; default: that of the header
     n?    token         key        low 32 bits; default: that of this position
     n?    age           key        ms from the completion, or from the restart
                                    that interrupted it, to the time of this
                                    record; default 0
     n     key_len       key        0: the key is a number, of 8 bytes
     8     fingerprint   key
     ..    scope         key
     ..    key           key        a number: sequence 4, epoch 4
     8     sender        sender     strong hash of the scope
     8     floor         sender     sequence 4, epoch 4; both 0: forgotten
     n     state_len     state
     ..    state         state
     ..    response      finished
     4     check         all

   flags: 0x80, and added

     value      meaning
     status 0   key: released or forgotten; with 0x10 expired, or a number
                that was refused, in slot 0; no key: nothing of a slot
            1   key: claimed; no key: delivered
            2   completed
            3   failed
     0x04       undelivered; with status 0 and no key: of a sender; with a key,
                not finished: its sender took over the entry of another
     0x08       has a key
     0x10       interrupted by a restart; of a sender: all its numbers up to the
                floor are gone
     0x20       has application state
     0x40       all before it in the sector was durable

   options: 0x80 for a relocated record.  Bit i: the i-th optional field is
   there, counted from 0 among those that a record of its kind can have: so
   scope_len has bit 2 in a record that is finished or replacing, else bit 0.

   The token of a claim is where it was first written, sequence x sector_size +
   offset.  Its high half is not stored: it is the highest token with that low
   half below (sequence + 1) x sector_size of the sector that the record is in.
   The commit record has status 0 and no key: 12 bytes at most.

   Checks and layout are index hashes.

               its scope, 8 bytes                    its key
     record    sequence 4, (offset XOR layout) 4     all bytes before the check
     header    0, layout                             all bytes before the check,
                                                     with a sum of 0

   layout's scope is the first 16 bytes of a header, with a sum of 0, its key
   the first 8 bytes of the secret.  A record that has a status and no key (an
   outcome, a delivery) is bound to its claim: the high half of (token x
   0x9E3779B1) modulo 2^32 is XORed into the high half of its check.  token is
   that of the claim, low 32 bits.  The sum of a header is computed last, and
   includes the check.
   ------------------------------------------------------------------------ */

/* ---------------------------------------------------------------------------
   >>recovery   how a rotation survives a power cut, and how a journal is read

   To read a journal that is not damaged, V, W, A1, P1 to P4 and R1 are enough.
   A boot is the time from one idem_open to the next.  An item is a slot, the
   application state, or a sender's entry.  It and its records are live while
   the journal has to keep them (R6).

   A rotation makes a new head; the record that it was made for follows it:

     physical sector       0     1     2     3     4     5     6     7   tail
     before               16    17    18    19   [20]   13    14    15    16
     1 erase              16    17    18    19   [20]    -    14    15    16
     2 relocate           16    17    18    19   [20]    r    14    15    16
     3 write the header   16    17    18    19   [20]   21    14    15    16
     4 commit             16    17    18    19    20   [21]   14    15    17

   Step 2 relocates the live records of the sectors that will be dead: here of
   16.  The header takes effect with the commit record: it has the new tail, and
   the end of the old head's records.

     power fails in     the next opening finds
     1, 2               no header: the old head, whole
     3                  no header, or one without a commit record: likewise
     4, or the record   a commit record or none.  With one, the new head
                        replaces in one step the tail, the end of the old head,
                        and its newest record, if that was rewritten
     a later record     all before it (with IDEM_BATCH from the last sync on)
     an erase ahead     what it erases is dead

     R1  A slot has the contents of its last full record (one with a key), and
         the changes after that.  A key that comes in another slot empties the
         old one.  A full record never raises the age of a known key.  If its
         age is higher, records between were lost, with their time: the lower
         age holds, and the sector of the key's earlier record stays needed.  A
         number leaves when it expires, is evicted, or another key takes its
         slot.  The contents of a sender's entry follow from these rules:
         a. A number that comes raises the floor to its epoch.  A claim of an
            older epoch has expired then.              (idemi_sender_follow)
         b. A number that leaves raises the floor to itself.   (the same)
         c. A sender's record with a floor raises the floor to that.  With 0 it
            removes the floor, and all keys of the sender that were read before.
                                                  (idemi_opening_apply_sender)
         d. With flag 0x10 it sets the floor.  Numbers of that epoch up to it,
            read before it, are removed at the end, if the floor still has this
            epoch.                                  (idemi_opening_finish_key)
            If a later record claims such a number, a record that forgot the
            sender is lost: that number and those above it stay.
                                                          (idemi_sender_follow)
         e. A key of a sender that took over another's entry, with a floor: all
            numbers of that one that were read before are gone, and its floor
            is removed.                         (idemi_opening_apply_takeover)
         f. A key's record with status 0 and flag 0x10 records that it had left:
            it leaves, in whatever slot it is; a key in the slot of the record
            had left before it came.  If a number is in no slot, the floor rises
            to it.                                  (idemi_opening_apply_left)
     R2  A sector counts from its commit record on.  A header alone may be torn:
         nothing relies on it, and it is erased before its sequence is used
         again.                   (idemi_journal_try_sector, _erase_uncommitted)
     R3  Nothing is appended after a write that may be torn: the first record of
         a boot goes to a new sector.  The newest record of the boot before is
         rewritten there, in full, as the last relocated one, before the first
         answer that relies on it.  (Except a time alone, which the header has,
         and a forgotten sender that has no entry.)
                                (idemi_journal_first_rotation, _make_ready)
     R4  The two sectors after the head are dead; right before a rotation three
         are.  So a boot may take the old head or the new one as its head, and
         all that it needs is there.  Failing sectors may leave fewer dead ones:
         then no claim is granted (idemi_journal_reserve), and no head is made
         if the needed records would not fit into other sectors later
         (_plan_next).
     R5  Every item can be relocated in time: for every sector q, the items that
         need q or an older one, written once more, fit into the heads that can
         be begun before q is erased.  An item is relocated when this would not
         hold any more, and no earlier.                     (idemi_journal_plan)
     R6  No sector is erased that is needed for a key, the state or a sender:
         idemi_items_needs has the oldest for each.  (idemi_journal_write,
         _need_tail, _rotate)

   A header is valid if and only if
     V1. at most one bit of "idem" is wrong;
     V2. its check holds, as it is or with one bit flipped; then the flipped bit
         is the right one;
     V3. it stands in the physical sector of its sequence;
     V4. its tail is less than sector_count before its sequence.

   A record at an offset is valid if and only if
     W1. its first byte has 0x80 and is not 0xFF;
     W2. it ends inside the sector, and is not longer than the longest: 52 +
         key_max + response_max + state_max bytes, in whole granules, and then
         rounded up to a multiple of 4;
     W3. it is marked as relocated if and only if it stands before
         relocated_end;
     W4. its check holds; of a record that is bound to a claim, the low half;
     W5. options has no bit but 0x80 and those of its optional fields.

   A valid record fits if its slot is at most capacity, and not 0 if it has a
   status, or a key that is no number; its lengths are within the configuration;
   attempts are not 0; retention is at most 30 days (2,592,000,000 ms); the
   table has senders if it is of a number, and the build if it is a sender's.
   One that does not fit changes nothing but the time.

   A bound record is an orphan if
     Q1. it is an outcome, and its slot has no claim (or is above capacity), or
         one that is finished or was interrupted by a restart;
     Q2. it is a delivery, and its slot has no outcome;
     Q3. the high half of its check does not name the claim of its slot.
   An orphan changes nothing but the time, and that only if another record (none
   of P5) follows: the last one may be torn.  Q1 and Q2 are no loss: the claim
   has been removed since.  In Q3 a record before it is missing, or it is
   damaged.

   A sector counts if and only if its header is valid, and
     A1. all its relocated records are valid, one after the other up to
         relocated_end, and a valid record follows that is not relocated; or
     A2. a valid record that is not relocated begins one granule or more after
         relocated_end: it was written after the commit record.

   A journal is read in this order:
     P1. The head is the newest sector that counts and is not skipped by D10, of
         those less than sector_count before the newest valid header.
     P2. The sectors from its tail to the head are read, oldest first: each up
         to the previous_end of the newest header that names it as previous, or
         to its end if none does.  A sector that no header names, while the next
         header names an older one, was abandoned: it is skipped.
     P3. The time is that of the first header; then each header's, and each
         record's added to it.  A time in the past, or more than 3,489,660,928
         (0xD0000000) ms ahead, is ignored: the time stays, and a header's
         uncertain is as far after it as after the header's time.  Whenever 2^28
         ms (3.1 days) have passed, keys that have expired by then are removed:
         times are modulo 2^32.
     P4. All claims are interrupted at the first header of each boot, at its
         time, and at the end.
     P5. In a sector, all but valid records is skipped granule by granule.
         A gap is skipped bytes, or the point after an orphan by Q3.  An orphan
         by Q3, or that does not begin at the end of a record or of the header,
         changes nothing (but see D1, D2), and its bytes are searched: half a
         check is no proof, as an enemy's key may hold such bytes.  But bytes up
         to its end do not count as skipped.
     P6. The time of a lost record is in the next header, too; but a key that
         came after that record must not age by it.  So no key ages from a
         sector's last record to the next header if the sector has a loss by D1
         to D4 or D9, or a record that does not fit (D8); or if it has a gap,
         and the next header is the first of a boot.  That boot has rewritten
         the first valid record from previous_end on.  If there is one, and it
         is no orphan, keys first age by its time.

   Records are lost, and the table is uncertain for one default retention from
   the time of the last record that was read on (or longer, by the header), if
     D1. skipped bytes stand before relocated_end;
     D2. a gap stands before a record with flag 0x40: all before that record
         was durable; or before the rewritten one of P6, with this flag;
     D3. skipped bytes stand right before a previous_end; or a gap stands
         anywhere before it, but not if the sector is batched and the header
         that has this previous_end is the first of its boot;
     D4. if the head is not batched, one longest record or more after its last
         record, a granule begins with a byte that is not erased;
     D5. a header, but not that of the tail, names a sector that is not there,
         or a sector that was read without an end, as this header could not be
         read at that moment; or no sector counts, and the oldest header names
         one; or the newest header is sector_count or more after the head's
         tail, in its place;
     D6. in one of the two physical sectors after the head no valid header
         stands, and a record there is valid for the sequence that would stand
         there, is of a slot, a refused number or a sender, not relocated, and
         no orphan (before claims are interrupted at the end).  The header is
         damaged: defaults are those of the configuration, and relocated_end is
         0;
     D7. a header names a newer sector than the one whose header stands in that
         position: a journal was begun over this one, when the storage was not
         ready;
     D8. a record does not fit, and is no orphan; or, if the table may not
         evict, a number or a floor finds no entry: it was written with another
         configuration;
     D9. a header's longest record is longer than that of the configuration,
         and in its sector a gap stands before a record, or after the last one
         a granule begins with a byte that is not erased: a longer record may
         stand there;
     D10. the newest sector counts, but one between it and the one that it
         names, less than sector_count before it, counts by A2.  So that one was
         the head later, and the newest is what an interrupted erase left: it is
         skipped, and the next that counts is the head.

   D7 is found again at each opening until one of the two headers is erased; D8
   of a number that has no entry until that has expired.

   A torn write is unstable if it reads differently from boot to boot.  Any
   number of stable ones is survived.  One unstable one is, if R3 rewrites it as
   the newest record; otherwise it may count as a loss.  Two in a row may lose
   the head that both were in: a loss.

   Storage is blank if no header is valid and every byte is erased.  Physical
   sectors 1 to 3, in which the first heads are begun, may hold anything but a
   whole header of another journal: "idem", a sum that is right, and a check
   that is not erased.  Such a header may begin at any offset there, and end in
   the next sector.  One at offset 0 that fulfils V1 to V3 is not of another
   journal.  One that fulfils V1 and V2 elsewhere is: the journal was moved.
   Storage that has no valid header, nothing by D6, and is not blank is
   IDEM_E_FORMAT.

   Storage may read as blank, or as older than it is, until it is ready.  So the
   headers, and the rest of the head, are read once more.  It was not ready
   (IDEM_E_STORAGE) if
     B1. a sector newer than the head counts by A2 now, by no orphan;
     B2. no loss is known, and the head has a record, and no orphan, after those
         that were read, and not right there;
     B3. the newest header is another one now, however often that is read;
     B4. no header was valid, it is not blank, and a read failed;
     B5. a header is valid right before the first sector of a journal is begun:
         then nothing is written;
     B6. right after it the newest header is not that sector's: then nothing is
         answered.
   ------------------------------------------------------------------------ */

/* ---------------------------------------------------------------------------
   >>storage   the callbacks, and their failures

   A sector is named by its sequence (>>format).  The bytes to program stand in
   t->buffer.
   ------------------------------------------------------------------------ */

/* The result of a call for what a callback returned; keeps a failure. */
static int idemi_storage_result(idem_table *t, int result)
{
    if (result == 0)
        return IDEM_OK;
    t->storage_error = result;
    return IDEM_E_STORAGE;
}

/* A length in whole granules. */
static uint32_t idemi_storage_granules(const idem_journal *j, uint32_t len)
{
    return IDEMI_UP(len, IDEMI_GRANULE(j));
}

/* Bytes from the start of the storage to an offset in a sector. */
IDEMI_NOINLINE
static uint32_t idemi_storage_at(const idem_table *t, uint32_t sequence,
                                 uint32_t offset)
{
    const idem_storage *m = IDEMI_CONFIG_OF(t)->storage;

    return sequence % m->sector_count * m->sector_size + offset;
}

static int idemi_storage_read(idem_table *t, uint32_t at, void *dst,
                              uint32_t len)
{
    const idem_storage *m = IDEMI_CONFIG_OF(t)->storage;

    return idemi_storage_result(t, (m->read)(m->ctx, at, dst, len));
}

/* Where the next record goes: the low half of a token (>>format). */
static uint32_t idemi_storage_position(const idem_journal *j)
{
    return j->sequence * IDEMI_SECTOR_SIZE(j) + j->at;
}

/* True of the token of a claim that may not be durable yet: it was written
   between the last sync and now. */
static int idemi_storage_is_unsynced(const idem_journal *j, uint32_t token)
{
    return token - j->from.durable <
           idemi_storage_position(j) - j->from.durable;
}

static void idemi_storage_note_synced(idem_journal *j)
{
    j->unsynced = 0;
    j->from.durable = idemi_storage_position(j);
}

/* Makes all programs durable.  After a failure nobody knows which are: nothing
   is written until the table is opened again. */
static int idemi_storage_sync(idem_table *t)
{
    const idem_storage *m = IDEMI_CONFIG_OF(t)->storage;
    idem_journal *j = t->journal;

    if (!j->broken && j->unsynced && m->sync)
        j->broken = idemi_storage_result(t, (m->sync)(m->ctx)) < 0;
    if (j->broken)
        return IDEM_E_STORAGE;
    idemi_storage_note_synced(j);
    return IDEM_OK;
}

/* Compares the first bytes of the buffer with the storage. */
static int idemi_storage_verify(idem_table *t, uint32_t at, uint32_t len)
{
    unsigned char back[16];
    uint32_t i, n;

    for (i = 0; i < len; i += n) {
        n = len - i < sizeof back ? len - i : (uint32_t)sizeof back;
        if (idemi_storage_read(t, at + i, back, n) < 0 ||
            IDEM_MEMCMP(back, t->buffer + i, (size_t)n) != 0)
            return IDEM_E_STORAGE;
    }
    return IDEM_OK;
}

/* Programs the first `len` bytes of the buffer, padded to whole granules, at an
   offset in a sector; with `verify` reads them back. */
static int idemi_storage_prog(idem_table *t, uint32_t sequence,
                              uint32_t offset, uint32_t len)
{
    const idem_storage *m = IDEMI_CONFIG_OF(t)->storage;
    uint32_t at = idemi_storage_at(t, sequence, offset);
    uint32_t padded = idemi_storage_granules(t->journal, len);
    int result;

    IDEM_MEMSET(t->buffer + len, (int)m->erased, (size_t)(padded - len));
    t->journal->unsynced |= IDEMI_UNSYNCED;
    result = idemi_storage_result(t, (m->prog)(m->ctx, at, t->buffer, padded));
    return result == IDEM_OK && m->verify ? idemi_storage_verify(t, at, padded)
                                          : result;
}

/* Erases the next sector where there is no callback for it: fills it, header
   first.  Otherwise records that an interrupted rotation left there could be
   taken for those of the next one, which has the same sequence. */
static int idemi_storage_fill(idem_table *t)
{
    const idem_storage *m = IDEMI_CONFIG_OF(t)->storage;
    idem_journal *j = t->journal;
    uint32_t at, len = IDEMI_RECORDS_AT(j);
    int result = IDEM_OK;

    for (at = 0; result == IDEM_OK && at < IDEMI_SECTOR_SIZE(j); at += len) {
        len = idemi_basics_min(len, IDEMI_SECTOR_SIZE(j) - at);
        IDEM_MEMSET(t->buffer, (int)m->erased, (size_t)len);
        result = idemi_storage_prog(t, j->sequence + 1, at, len);
        // The first, which removes the header; and the last: the next record
        // has the flag that all before it was durable.
        if (result == IDEM_OK && (at == 0 || at + len == IDEMI_SECTOR_SIZE(j)))
            result = idemi_storage_sync(t);
    }
    j->erase = result == IDEM_OK ? IDEMI_ERASED : 0;
    return result;
}

/* Erases the next sector, unless that was done ahead.  Without `wait`,
   IDEM_MORE while the erase is under way. */
static int idemi_storage_erase(idem_table *t, int wait)
{
    const idem_storage *m = IDEMI_CONFIG_OF(t)->storage;
    idem_journal *j = t->journal;
    int result = 0;

    if (j->erase == IDEMI_ERASED)
        return IDEM_OK;
    if (!m->erase)
        return idemi_storage_fill(t);
    if (j->erase != IDEMI_ERASING)
        result = (m->erase)(m->ctx, (j->sequence + 1) % m->sector_count);
    j->erase = 0;
    if (result == 0 && m->erasing) {
        do
            result = (m->erasing)(m->ctx);
        while (result == 1 && wait);
        if (result == 1) {
            j->erase = IDEMI_ERASING;
            return IDEM_MORE;
        }
    }
    if (result == 0)
        j->erase = IDEMI_ERASED;
    return idemi_storage_result(t, result);
}

/* Erases the next sector, and makes that durable: erases stay in order. */
IDEMI_INLINE int idemi_storage_erase_now(idem_table *t)
{
    int result;

    t->journal->erase = 0;
    result = idemi_storage_erase(t, 1);
    t->journal->unsynced |= IDEMI_UNSYNCED;
    return result == IDEM_OK ? idemi_storage_sync(t) : result;
}

/* ---------------------------------------------------------------------------
   >>items     and the sectors that are needed for them (R6)
   ------------------------------------------------------------------------ */

/* A slot by its number, the state, a sender n (IDEMI_STATE + n); IDEMI_NONE */
typedef unsigned idemi_item;
#define IDEMI_STATE(t)   IDEMI_CAPACITY(t)
#define IDEMI_NO_ITEM(t) IDEMI_CAPACITY(t)      /* of a record: time alone, or a
                                                   key that is in no slot; not
                                                   with IDEMI_IN_FULL */

/* "No sector": larger than the sequence of any */
#define IDEMI_NOWHERE UINT32_MAX

static idemi_item idemi_items_highest(const idem_table *t)
{
    return IDEMI_CAPACITY(t) + IDEMI_SENDERS(t);
}

/* For each item the oldest sector needed for it (R6); or IDEMI_NOWHERE */
static uint32_t *idemi_items_needs(const idem_table *t)
{
    return (uint32_t *)(void *)(t->journal + 1);
}

/* ---------------------------------------------------------------------------
   >>senders   an entry for each scope (config.senders)

   An entry counts its sender's keys in the table, and has its floor, and the
   time up to which its outcomes may have been evicted.  A claim of a newer
   epoch raises the floor to that epoch at once: claims of older epochs are
   fenced, and make room, as if they had expired.

   The search for an entry starts at a hash of the scope, and ends at an entry
   that was never used.  So no entry is ever moved, or marked as free; another
   sender may take it over.  A claim that takes over an entry with a floor
   records whose that was, so that every later boot drops the same floor (R1e).
   Two scopes with one hash share an entry: floors only rise, so more is
   refused, and nothing is executed twice.

   With a journal an entry follows from records of keys, or has a record of its
   own, which is written when the oldest of those must be relocated.  A floor
   that rose in this boot is unsaved: the next boot may find the claim or
   outcome again.  So the entry is written before a number is refused, with the
   mark that all up to the floor are gone.  If the table still has an older
   number, the mark is left out; or, if a claim that left may be found again,
   each number that is refused is written instead.

   N1  With a journal each floor has a sector (R6) or is unsaved, and no sector
       is needed for an entry without one.  That sector and newer ones have all
       records from which the floor follows.            (idemi_sender_follow)
   N2  From the start of the search for a sender to its entry all entries were
       used.                                  (idemi_sender_find_or_idlest)
   N3  An entry counts the keys of its sender, but for those that came from a
       journal when all entries were in use.              (IDEMI_UNCOUNTED)
       A key that is counted has an entry: none with keys is taken over.
   ------------------------------------------------------------------------ */

/* idem_sender.unsaved: the next boot may find this otherwise, so a record is
   written before a number is refused (idemi_command_save_refused) */
#define IDEMI_UNSAVED        1u /* its floor rose, or a number below it left */
#define IDEMI_UNSAVED_CLAIMS 2u /* one left that may be found as a claim */

/* `last_use` has steps of 2^19 ms (8.7 minutes) since the last sweep, plus
   IDEMI_USE_SWEPT.  Each sweep lowers all by the steps that have passed: so
   none wraps, and after 96 days it is 0. */
#define IDEMI_USE_STEP  0x80000u
#define IDEMI_USE_MAX   0x3FFFu
#define IDEMI_USE_SWEPT (IDEMI_USE_MAX - IDEMI_SWEEP_MS / IDEMI_USE_STEP - 1)

/* Entry n is the n-th before the slots (idemi_opening_memory).  0 is none. */
static idem_sender *idemi_sender_at(const idem_table *t, unsigned sender)
{
    return (idem_sender *)(void *)t->slots - sender;
}

IDEMI_NOINLINE
static idemi_item idemi_sender_item(const idem_table *t, const idem_sender *e)
{
    return IDEMI_STATE(t) + (unsigned)(idemi_sender_at(t, 0) - e);
}

/* Steps of `last_use` since the last sweep. */
static unsigned idemi_sender_steps(const idem_table *t)
{
    uint32_t swept = t->swept / IDEMI_USE_STEP * IDEMI_USE_STEP;

    return (unsigned)((t->clock - swept) / IDEMI_USE_STEP);
}

/* Rank of an entry without keys and floor: above any with a floor.  One more if
   its eviction time is the table's: then nothing is lost. */
#define IDEMI_IDLE (IDEMI_USE_MAX + 2)

/* Ranks an entry for a new sender: the higher, the less is lost; 0: it must
   stay.  The entry of the newest record must: that will be rewritten with the
   entry's name. */
IDEMI_INLINE uint32_t idemi_sender_rank(const idem_table *t,
                                        const idem_sender *e)
{
    if (e->keys || (IDEMI_JOURNAL(t) && !IDEMI_IS_OPENING(t) &&
                    t->journal->last_item == idemi_sender_item(t, e)))
        return 0;
    if (!idemi_basics_join(e->floor))
        return IDEMI_IDLE + (e->until.evicted == t->evicted_until);
    return IDEMI_CONFIG_OF(t)->full == IDEM_REJECT
               ? 0
               : 1 + IDEMI_USE_MAX - e->last_use;
}

/* Raises the time up to which outcomes may have been evicted. */
static void idemi_sender_raise_evicted(const idem_table *t,
                                       uint32_t *evicted_until, uint32_t by)
{
    if (t->clock - by < t->clock - *evicted_until)
        *evicted_until = by;
}

/* Where the search for the entry of a name begins, and how it goes on */
static idem_sender *idemi_sender_first(const idem_table *t, uint32_t low)
{
    unsigned senders = IDEMI_SENDERS(t);

    return idemi_sender_at(
        t, senders - (unsigned)((low >> 16) * senders >> 16));
}

static idem_sender *idemi_sender_next(const idem_table *t, idem_sender *e)
{
    return ++e == idemi_sender_at(t, 0) ? idemi_sender_at(t, IDEMI_SENDERS(t))
                                        : e;
}

/* The entry of the sender with a name; or the one that loses least if this
   sender takes it over, or NULL.  Needs and keeps N2. */
IDEMI_SLOW
static idem_sender *idemi_sender_find_or_idlest(const idem_table *t,
                                                uint64_t name)
{
    unsigned left = IDEMI_SENDERS(t);
    idem_sender *e = idemi_sender_first(t, (uint32_t)name), *best = NULL;
    uint32_t idlest = 0;

    for (; left > 0; left--, e = idemi_sender_next(t, e)) {
        uint32_t idle;
        if (idemi_basics_join(e->name) == name)
            return e;
        idle = idemi_sender_rank(t, e);
        if (idle > idlest) {
            idlest = idle;
            best = e;
        }
        if (!idemi_basics_join(e->name))
            break;
    }
    return best;
}

/* The entry of the sender with a name, or NULL. */
static idem_sender *idemi_sender_find(const idem_table *t, uint64_t name)
{
    idem_sender *e = idemi_sender_find_or_idlest(t, name);

    return e && idemi_basics_join(e->name) == name ? e : NULL;
}

/* True if a sender without an entry can get one, and no floor is lost. */
static int idemi_sender_has_room(const idem_table *t, uint64_t name)
{
    const idem_sender *e = idemi_sender_find_or_idlest(t, name);

    return e && !idemi_basics_join(e->floor);
}

static uint64_t idemi_sender_name(const idem_table *t,
                                  const unsigned char *scope, size_t scope_len)
{
    return idemi_hash_strong(t->config, scope, scope_len);
}

static void idemi_sender_drop_floor(const idem_table *t, idem_sender *e)
{
    if (IDEMI_IS_OPENING(t))
        e->until.gone = 0;
    e->floor[0] = e->floor[1] = 0;
    e->unsaved = 0;
    if (IDEMI_JOURNAL(t))
        idemi_items_needs(t)[idemi_sender_item(t, e)] = IDEMI_NOWHERE;
}

/* Gives an entry to the sender with a name; counts that if a floor is lost.
   The table's eviction time, which a new sender gets, rises to the entry's: the
   old sender will be new when it returns. */
static void idemi_sender_take_over(idem_table *t, idem_sender *e, uint64_t name)
{
    t->stats.senders_evicted += idemi_basics_join(e->floor) != 0;
    idemi_sender_raise_evicted(t, &t->evicted_until, e->until.evicted);
    if (IDEMI_OWN(t)) {
        idemi_item item = idemi_sender_item(t, e);
        idemi_order_link(t->own, item, item);
    }
    idemi_basics_split(e->name, name);
    e->until.evicted = t->evicted_until;
    e->last_use = 0;
    idemi_sender_drop_floor(t, e);
}

/* Finds the entry of the sender with a name; if it has none, gives it one that
   nobody needs.  If there is none of these either, counts that (as a loss if it
   is D8), and returns NULL. */
static idem_sender *idemi_sender_find_or_add(idem_table *t, uint64_t name)
{
    idem_sender *e = idemi_sender_find_or_idlest(t, name);

    if (e && idemi_basics_join(e->name) == name)
        return e;
    if (e && !idemi_basics_join(e->floor)) {
        idemi_sender_take_over(t, e, name);
        return e;
    }
    if (IDEMI_IS_OPENING(t) && IDEMI_CONFIG_OF(t)->full == IDEM_REJECT)
        t->stats.lost++;
    else
        t->stats.senders_evicted++;
    return NULL;
}

IDEMI_INLINE uint64_t idemi_sender_name_of(const idem_table *t, idem_slot *s)
{
    return idemi_sender_name(t, idemi_slot_id(s), s->scope_len);
}

static idem_sender *idemi_sender_of(const idem_table *t, idem_slot *s)
{
    return IDEMI_SENDERS(t) ? idemi_sender_find(t, idemi_sender_name_of(t, s))
                            : NULL;
}

/* True if a number that was read was gone before the restart. */
static int idemi_sender_is_gone(const idem_sender *e, uint64_t number)
{
    return number >> 32 == e->floor[1] && (uint32_t)number <= e->until.gone;
}

/* Makes an entry need a sector: one of its records raises the floor. */
IDEMI_NOINLINE
static void idemi_sender_need(const idem_table *t, const idem_sender *e,
                              uint32_t sequence)
{
    uint32_t *need = &idemi_items_needs(t)[idemi_sender_item(t, e)];

    *need = idemi_basics_min(*need, sequence);
}

/* Notes that a number has expired or was evicted.  From a later record the next
   boot infers that an outcome has left.  A claim that left may be found
   again. */
static void idemi_sender_note_left(idem_sender *e, const idem_slot *s)
{
    e->unsaved |= IDEMI_UNSAVED;
    if (!(s->flags & IDEMI_FINISHED))
        e->unsaved |= IDEMI_UNSAVED_CLAIMS;
}

/* Updates the floor of a sender when its number comes or leaves (`event`):
     1  of a newer epoch: claims of older ones expire now (O3), none is gone
     2  one that comes after the record of R1d is not gone
     3  the floor rises to its epoch (R1a); if it leaves, to it (R1b)
     4  a saved floor that does not rise is unsaved once a number leaves: the
        next boot may find that number again
     5  one that rose, or was unsaved, follows from this number's records, too
        (N1)
     6  if it leaves, and is what the newest record is about: that will be
        rewritten as expired
   Keeps O3 and N1. */
static void idemi_sender_follow(idem_table *t, idem_sender *e, unsigned slot,
                                int event)
{
    idem_slot *s = idemi_slot_at(t, slot);
    uint64_t number = idemi_slot_number(s);
    int rises, is_saved;

    if (number >> 32 > e->floor[1]) {                       // 1
        idemi_order_lower_soonest(t, t->clock);
        if (IDEMI_IS_OPENING(t))
            e->until.gone = 0;
    }
    // 2: a record that forgot its sender is lost.
    if (IDEMI_IS_OPENING(t) && event <= IDEMI_KEY_ADDED &&
        idemi_sender_is_gone(e, number))
        e->until.gone = (uint32_t)number - 1;
    if (event <= IDEMI_KEY_RELEASED)                        // 3
        number &= UINT64_MAX << 32;
    rises = number > idemi_basics_join(e->floor);
    if (rises)
        idemi_basics_split(e->floor, number);
    if (!IDEMI_JOURNAL(t))
        return;
    // Not all numbers up to the new floor are gone.
    if (rises && idemi_sender_item(t, e) == t->journal->last_item)
        t->journal->last_flags &= (uint8_t)~IDEMI_ALL_GONE;
    is_saved = !rises && !e->unsaved;                       // 4
    if (event > IDEMI_KEY_RELEASED)
        idemi_sender_note_left(e, s);
    else if (rises || (event == IDEMI_KEY_RELEASED && !is_saved))
        e->unsaved |= IDEMI_UNSAVED;
    if (is_saved)
        return;
    idemi_sender_need(t, e, idemi_items_needs(t)[slot]);    // 5
    if (slot == t->journal->last_item && event > IDEMI_KEY_RELEASED)
        t->journal->last_flags |= IDEMI_EXPIRED;            // 6
}

/* Takes the key in a slot out of its sender's count.  Keeps N3. */
static void idemi_sender_uncount(const idem_table *t, idem_sender *e,
                                 unsigned slot)
{
    if (!(idemi_slot_at(t, slot)->flags & IDEMI_UNCOUNTED))
        e->keys--;
}

/* Counts a key that came or left, and follows a number.  Keeps N3. */
static void idemi_sender_apply_event(idem_table *t, idem_sender *e,
                                     unsigned slot, int event)
{
    if (event == IDEMI_KEY_ADDED) {
        e->last_use = (IDEMI_USE_SWEPT + idemi_sender_steps(t)) & IDEMI_USE_MAX;
        e->keys++;
    } else if (event != IDEMI_KEY_KEPT)
        idemi_sender_uncount(t, e, slot);
    if (!idemi_slot_at(t, slot)->key_len)
        idemi_sender_follow(t, e, slot, event);
}

/* Updates the entry of a slot's sender; marks the key if there is none.  While
   a journal is read only numbers are counted; keys, which have no floor, are
   counted by idemi_opening_finish.  Later this gives nobody an entry: the call
   under way may have chosen it for its own sender. */
static void idemi_sender_note_event(idem_table *t, unsigned slot, int event)
{
    idem_slot *s = idemi_slot_at(t, slot);
    idem_sender *e = NULL;

    if (IDEMI_EVER_SENDERS && IDEMI_IS_OPENING(t) && s->key_len)
        return;
    if (IDEMI_SENDERS(t)) {
        uint64_t name = idemi_sender_name_of(t, s);
        e = IDEMI_JOURNAL(t) &&
                    (event == IDEMI_KEY_ADDED || IDEMI_IS_OPENING(t))
                ? idemi_sender_find_or_add(t, name)
                : idemi_sender_find(t, name);
    }
    if (event == IDEMI_KEY_EVICTED)
        idemi_sender_raise_evicted(
            t, e ? &e->until.evicted : &t->evicted_until, s->time);
    if (e)
        idemi_sender_apply_event(t, e, slot, event);
    else
        s->flags |= IDEMI_UNCOUNTED;
}

/* Adds an outcome to its sender's own order, if it belongs there; a delivered
   one is not always the newest.  Keeps O4. */
static void idemi_sender_add_outcome(idem_table *t, unsigned slot)
{
    idem_slot *s = idemi_slot_at(t, slot);
    uint32_t age = idemi_order_age(t, slot);
    unsigned ends, older;

    if (!IDEMI_OWN(t) || s->flags & (IDEMI_UNCOUNTED | IDEMI_UNDELIVERED))
        return;
    // A key that is counted has an entry (N3).
    ends = idemi_sender_item(t, idemi_sender_of(t, s));
    older = t->own[ends].older;
    while (older != ends && idemi_order_age(t, older) < age)
        older = t->own[older].older;
    idemi_order_insert(t->own, older, slot);
}

/* True of a claim of an older epoch than its sender's. */
IDEMI_INLINE int idemi_sender_is_outdated(const idem_table *t, idem_slot *s)
{
    const idem_sender *e = s->key_len || s->flags & IDEMI_FINISHED
                               ? NULL
                               : idemi_sender_of(t, s);

    return e && idemi_slot_number(s) >> 32 < e->floor[1];
}

/* ---------------------------------------------------------------------------
   >>keys      the life of a key

   A key's state changes (>>life) in >>opening, when it is read, and in
     unknown to claimed, and claimed anew   idemi_command_grant
     claimed to finished                    idemi_keys_finish
     claimed or finished to unknown         idemi_keys_expire, _forget,
                                            idemi_command_release, idem_forget;
                                            idemi_command_grant, which evicts

   K1  A slot in use is in progress, completed or failed; only finished ones can
       be undelivered, only one in progress can be endless.
   K2  Its lengths are inside the configured limits.
   K3  used and pending are the numbers of slots in use and undelivered ones.
   K4  It has had at least one attempt, and its token was granted.
   ------------------------------------------------------------------------ */

/* A request; the hashes of key and payload are made before the lock is taken */
typedef struct idemi_query {
    idemi_id id;
    idem_slot fresh;            /* the claim, for its record; of a query only
                                   the fingerprint is set */
    const idem_request *rq;
    idem_claim *claim;
    idem_reply *reply;
    uint64_t name;              /* of its sender; of a key that is not known */
    idem_sender *sender;        /* its entry, or NULL; of a number that is too
                                   old; NULL if that needs no record */
    idem_sender *takes;         /* without one, that which it takes over */
    unsigned char number[IDEMI_NUMBER_BYTES];   /* a key that is one */
} idemi_query;

/* Keeps K3. */
IDEMI_INLINE void idemi_keys_clear_undelivered(idem_table *t, idem_slot *s)
{
    t->pending -= (s->flags & IDEMI_UNDELIVERED) != 0;
    s->flags &= (uint8_t)~IDEMI_UNDELIVERED;
}

/* Frees a slot in use.  Keeps T1, O1, O2, O4 and K3. */
static void idemi_keys_remove(idem_table *t, unsigned slot)
{
    idem_slot *s = idemi_slot_at(t, slot);

    idemi_index_remove(t, slot);
    if (s->flags & IDEMI_FINISHED)
        idemi_order_remove(t, slot);
    idemi_keys_clear_undelivered(t, s);
    s->flags = 0;
    if (IDEMI_JOURNAL(t))
        idemi_items_needs(t)[slot] = IDEMI_NOWHERE;
    t->used--;
    idemi_order_add_free(t, slot);
}

/* Removes a key, after its sender has followed that it leaves (`event`). */
static void idemi_keys_drop(idem_table *t, unsigned slot, int event)
{
    idemi_sender_note_event(t, slot, event);
    idemi_keys_remove(t, slot);
}

/* True of a key that has expired, and of a claim of an older epoch. */
static int idemi_keys_has_expired(const idem_table *t, idem_slot *s)
{
    return idemi_slot_has_expired(t, s) || idemi_sender_is_outdated(t, s);
}

/* Frees a slot if its key has expired; returns whether. */
static int idemi_keys_expire(idem_table *t, unsigned slot)
{
    idem_slot *s = idemi_slot_at(t, slot);

    if (!s->flags || !idemi_keys_has_expired(t, s))
        return 0;
    t->stats.expired++;
    if (s->flags & IDEMI_UNDELIVERED)
        t->stats.undelivered++;
    idemi_keys_drop(t, slot, IDEMI_KEY_EXPIRED);
    return 1;
}

/* Takes the first free slot, which has scope, key and hash, from the free list
   into the index.  (While a journal is read any: there is no list yet.) */
static void idemi_keys_enter(idem_table *t, unsigned slot)
{
    t->free = t->links[slot].newer;
    idemi_index_insert(t, slot);
    t->used++;
}

/* Lengthens a lease to lease_ms from now (0: the default).  Keeps C1. */
IDEMI_INLINE void idemi_keys_lengthen_lease(const idem_table *t, idem_slot *s,
                                            uint32_t lease_ms)
{
    lease_ms =
        idemi_default(lease_ms, IDEMI_CONFIG_OF(t)->lease_ms, IDEMI_LEASE_MS);
    if (lease_ms == IDEM_LEASE_NONE)
        s->flags |= IDEMI_ENDLESS;
    else if (lease_ms > idemi_slot_lease_left(t, s))
        s->time = t->clock + lease_ms;
}

/* Makes a claim an outcome with the status in `flags`, completed `age` ms
   ago, the newest of the order.  Keeps O1 (while a journal is read
   idemi_opening_sort does), O3, C2, K1 and K3. */
static void idemi_keys_finish(idem_table *t, unsigned slot, unsigned flags,
                              uint32_t age)
{
    idem_slot *s = idemi_slot_at(t, slot);

    s->time = t->clock - age;
    s->flags = (uint8_t)((flags & (IDEMI_STATUS | IDEMI_UNDELIVERED)) |
                         (s->flags & IDEMI_UNCOUNTED));
    t->pending += (flags & IDEMI_UNDELIVERED) != 0;
    idemi_order_insert(t->links, t->links[IDEMI_CAPACITY(t)].older, slot);
    idemi_order_note_expiry(t, s);
}

/* A past time, but none before the longest retention: so it stays in the
   clock's window. */
static uint32_t idemi_keys_cap_age(const idem_table *t, uint32_t at)
{
    return t->clock - idemi_basics_min(t->clock - at, IDEM_RETENTION_MAX);
}

/* Interrupts a slot's claim, if it has one that no restart has interrupted.
   While a journal is read these are endless. */
static void idemi_keys_interrupt(const idem_table *t, idem_slot *s)
{
    if (!(s->flags & IDEMI_ENDLESS))
        return;
    s->flags ^= IDEMI_ENDLESS | IDEMI_INTERRUPTED;
    s->time = t->clock;
}

/* Drops all expired keys, and makes `soonest` exact.  Keeps C3 and O3. */
IDEMI_SLOW
static void idemi_keys_sweep(idem_table *t)
{
    unsigned steps = idemi_sender_steps(t), i;

    t->soonest = t->clock + IDEMI_NEVER_MS;
    for (i = 0; i < IDEMI_CAPACITY(t); i++)
        if (!idemi_keys_expire(t, i) && idemi_slot_at(t, i)->flags)
            idemi_order_note_expiry(t, idemi_slot_at(t, i));
    t->evicted_until = idemi_keys_cap_age(t, t->evicted_until);
    for (i = 1; i <= IDEMI_SENDERS(t); i++) {
        idem_sender *e = idemi_sender_at(t, i);
        if (!IDEMI_IS_OPENING(t))
            e->until.evicted = idemi_keys_cap_age(t, e->until.evicted);
        e->last_use = (e->last_use > steps ? e->last_use - steps : 0) &
                      IDEMI_USE_MAX;
    }
    if (IDEMI_JOURNAL(t) &&
        idemi_clock_reached(t->clock, t->journal->uncertain))
        t->journal->uncertain = t->clock;
    t->swept = t->clock;
}

/* Sweeps if a key may have expired since the last sweep. */
static void idemi_keys_sweep_if_expired(idem_table *t)
{
    if (idemi_clock_reached(t->clock, t->soonest))
        idemi_keys_sweep(t);
}

/* True if a slot that has not expired has a claim with a live lease. */
static int idemi_keys_is_live(const idem_table *t, const idem_slot *s)
{
    return !(s->flags & IDEMI_FINISHED) && idemi_slot_lease_left(t, s);
}

IDEMI_INLINE int idemi_keys_is_of(const idem_table *t, uint64_t name,
                                  unsigned slot)
{
    idem_slot *s = idemi_slot_at(t, slot);

    return s->flags && idemi_sender_name_of(t, s) == name;
}

/* Removes the keys of the sender with a name: all; or, while a journal is read,
   the numbers that its entry counts.  Its entry, if it has one, has nothing to
   remember then. */
static void idemi_keys_forget(idem_table *t, uint64_t name, idem_sender *e,
                              int all)
{
    unsigned slot = IDEMI_CAPACITY(t);

    while ((all || e->keys) && slot-- > 0)
        if ((all || !idemi_slot_at(t, slot)->key_len) &&
            idemi_keys_is_of(t, name, slot)) {
            if (!all)
                idemi_sender_uncount(t, e, slot);
            idemi_keys_remove(t, slot);
        }
    if (!e)
        return;
    e->keys = 0;
    idemi_sender_drop_floor(t, e);
}

/* Moves the clock, and sweeps on the way, so that a jump of 24 days takes no
   slot out of its window.  If no record was written for IDEMI_SILENCE_MS the
   clock stops until one is: a record's time is a 32-bit difference.  Keeps C3
   and C4. */
static void idemi_keys_advance(idem_table *t, uint32_t ms)
{
    if (IDEMI_JOURNAL(t) && !IDEMI_IS_OPENING(t)) {
        uint32_t most = IDEMI_SILENCE_MS - (t->clock - t->journal->last_time);
        ms = idemi_basics_min(ms, most);
    }
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

/* Follows the tick (>>time).  S6 is here: no time counts twice.
     1  back by up to 65 s: a late call.  (If the clock followed that, threads
        that read the tick before they take the lock would make it run fast.)
     2  back by more: a new start, or a very late call.  `counted` is the tick
        before it; or still that before an earlier step, if no call came between
     3  beyond `counted`: what is beyond it passed
     4  below it, but nearer to it than to the tick: 2 was a late call
     5  below it: 2 was a new start */
static void idemi_keys_tick(idem_table *t, uint32_t now_ms)
{
    uint32_t passed = now_ms - t->tick;
    uint32_t again = t->counted - t->tick;

    if (passed >= UINT32_C(0x80000000)) {
        t->stats.backwards++;                               // 1
        if (0 - passed > IDEMI_JITTER_MS) {                 // 2
            if (t->settled)
                t->counted = t->tick;
            t->tick = now_ms;
        }
        t->settled = 0 - passed <= IDEMI_JITTER_MS;
        return;
    }
    if (!passed)
        return;                 // as it was: many commands a millisecond
    t->tick = now_ms;
    if (passed >= again) {                                  // 3
        passed -= again;
        t->counted = now_ms;
    } else if (passed >= again - passed) {                  // 4
        t->tick = t->counted;
        return;
    } else                                                  // 5
        t->settled = 1;
    idemi_keys_advance(t, passed);
}

/* ---------------------------------------------------------------------------
   >>records   the bytes of a record, and of a header (>>format)

   One function encodes and decodes, so that the two cannot differ: each step of
   the cursor writes the value that it is given, or reads one, and returns it.
   ------------------------------------------------------------------------ */
#define IDEMI_RECORD     0x80u          /* always: no record begins with an
                                           erased byte, 0x00 or 0xFF */
#define IDEMI_HAS_KEY    0x08u          /* without a status: the key is gone */
#define IDEMI_HAS_STATE  0x20u
#define IDEMI_SYNCED     0x40u          /* all before it is durable */
#define IDEMI_RELOCATED  0x8000u        /* written before the sector's header;
                                           in the second byte */

/* Not written: how a record is composed */
#define IDEMI_OF_QUERY   0x0100u        /* of a key that is not in the table */
#define IDEMI_IN_FULL    0x0200u        /* all that is known of the item now */

/* idemi_record.orphan */
#define IDEMI_NO_CLAIM    1u
#define IDEMI_OTHER_CLAIM 2u

/* Kinds of records without a key, beside an outcome */
#define IDEMI_TIME       0u             /* the time alone */
#define IDEMI_DELIVERED  IDEM_IN_PROGRESS
#define IDEMI_SENDER     IDEMI_UNDELIVERED      /* of no slot: a sender entry */

/* A record, to be written or as it was read. */
typedef struct idemi_record {
    union {
        idem_slot *s;
        const idem_slot *fresh;     /* of a claim to be granted: unchanged */
        idem_sender *sender;
    } of;                       /* its other fields */
    uint16_t flags;
    uint8_t  orphan;            /* read: not 0: changes nothing (>>recovery) */
    uint8_t  fits;              /* read: 0: changes nothing (>>recovery, D8) */
    idemi_id id;                /* of a key */
    const unsigned char *response, *state;
    uint32_t slot;              /* plus one; 0: none */
    uint32_t time;              /* ms since the record before, or the header */
    uint32_t age;               /* ms from s->time to then */
    uint16_t state_len;
} idemi_record;

/* The words of a header, in this order (>>format).  Four come before them,
   which are the same in all headers but for the sum; the check comes after. */
typedef struct idemi_header {
    uint32_t sequence;
    uint32_t tail;
    uint32_t previous;
    uint32_t previous_end;      /* read: and IDEMI_FIRST */
    uint32_t relocated_end;     /* read: and IDEMI_BATCHED */
    uint32_t time;
    uint32_t uncertain;
    idem_defaults defaults;
} idemi_header;
#define IDEMI_HEADER      56u
#define IDEMI_HEADER_SAME 16u
/* "idem": the first bytes of a journal's headers; marks an open table */
#define IDEMI_MAGIC UINT32_C(0x6D656469)
/* 3 is not used: torn, where an erased byte is 0, it may read as 1. */
#define IDEMI_FORMAT_NUMBER 4u
#define IDEMI_SUM_AT      14u
#define IDEMI_FIRST_AT    31u
#define IDEMI_FIRST       0x1000000u    /* that byte, in its word */
#define IDEMI_BATCHED_AT  35u
#define IDEMI_BATCHED     0x1000000u
#define IDEMI_TIME_AT     36u
#define IDEMI_UNCERTAIN_AT 40u
#define IDEMI_OFFSET      0x0FFFFFFu    /* the rest of these words */

IDEMI_ASSUME(a_header_is_its_words,
             IDEMI_HEADER_SAME + sizeof(idemi_header) + 4 == IDEMI_HEADER);
IDEMI_ASSUME(a_journal_has_the_words_of_a_header,
             offsetof(idem_journal, defaults) -
                     offsetof(idem_journal, sequence) ==
                 offsetof(idemi_header, defaults));
IDEMI_ASSUME(a_buffer_takes_a_header,
             IDEMI_ROUND4(IDEMI_RECORD_MAX(1, 0, 0, 1)) >= IDEMI_FRONT(1));

/* A position in bytes that are encoded or decoded.  `at` never passes `end`:
   a step that would sets `bad`. */
typedef struct idemi_cursor {
    unsigned char *at, *end;
    unsigned char *mask;        /* bits of optional fields that are there */
    uint8_t bit;                /* of the next one */
    uint8_t writing;
    uint8_t bad;
} idemi_cursor;

static uint32_t idemi_cursor_byte(idemi_cursor *p, uint32_t byte)
{
    if (p->at == p->end) {
        p->bad = 1;
        return 0;
    }
    if (p->writing)
        *p->at = (unsigned char)byte;
    return *p->at++;
}

static uint32_t idemi_cursor_varint(idemi_cursor *p, uint32_t number)
{
    uint32_t result = 0, byte;
    unsigned shift = 0;

    do {
        byte = idemi_cursor_byte(p, number > 0x7F ? number | 0x80 : number);
        number >>= 7;
        result |= (byte & 0x7F) << shift;
        shift += 7;
    } while (byte & 0x80 && shift < 35);
    return result;
}

/* A number that is left out if it has its default, `otherwise`. */
static uint32_t idemi_cursor_optional(idemi_cursor *p, uint32_t number,
                                      uint32_t otherwise)
{
    uint8_t bit = p->bit;

    p->bit = (uint8_t)(bit << 1);
    if (p->writing && number != otherwise)
        *p->mask |= bit;
    return (*p->mask & bit) ? idemi_cursor_varint(p, number) : otherwise;
}

static void idemi_cursor_words(idemi_cursor *p, uint32_t *words, unsigned count)
{
    if ((uint32_t)(p->end - p->at) < 4 * count) {
        p->bad = 1;
        return;
    }
    idemi_basics_code_words(p->at, words, count, p->writing);
    p->at += 4 * count;
}

/* Bytes: returns those that were given; when reading, those in the record. */
static const unsigned char *idemi_cursor_bytes(idemi_cursor *p,
                                               const unsigned char *bytes,
                                               uint32_t len)
{
    unsigned char *at = p->at;

    if (len > (uint32_t)(p->end - at)) {
        p->bad = 1;
        len = 0;
    }
    p->at = at + len;
    if (!p->writing)
        return at;
    idemi_basics_copy(at, bytes, (size_t)len);
    return bytes;
}

/* The token of a claim that is first written at this position (>>format) */
static idem_token idemi_record_token(const idem_table *t, uint32_t sequence,
                                     uint32_t offset)
{
    return (idem_token)sequence * IDEMI_SECTOR_SIZE(t->journal) + offset;
}

static int idemi_record_has_sender(unsigned flags)
{
    return (flags & (IDEMI_SENDER | IDEMI_HAS_KEY | IDEMI_STATUS)) ==
           IDEMI_SENDER;
}

/* True of a key that had expired, or of a number that was refused. */
static int idemi_record_has_left(unsigned flags)
{
    return (flags & (IDEMI_HAS_KEY | IDEMI_EXPIRED | IDEMI_STATUS)) ==
           (IDEMI_HAS_KEY | IDEMI_EXPIRED);
}

/* True of a key that is not finished (claimed, or given back since), and whose
   sender took over the entry of another one. */
static int idemi_record_replaces(unsigned flags)
{
    return (flags & (IDEMI_SENDER | IDEMI_HAS_KEY | IDEMI_FINISHED)) ==
           (IDEMI_SENDER | IDEMI_HAS_KEY);
}

/* Encodes or decodes all of a record but its check; `token`: the default of
   that field, that of a claim first written here. */
static void idemi_record_codec(const idem_defaults *defaults, idemi_cursor *p,
                               idemi_record *r, uint32_t token)
{
    idem_slot *s = r->of.s;
    uint32_t relocated = r->flags >> 8 & IDEMI_RELOCATED >> 8;

    r->flags = (uint16_t)idemi_cursor_byte(p, r->flags);
    p->mask = p->at;
    p->bit = 1;
    relocated = idemi_cursor_byte(p, relocated);
    r->flags |= (uint16_t)(relocated << 8 & IDEMI_RELOCATED);
    r->slot = idemi_cursor_varint(p, r->slot);
    r->time = idemi_cursor_varint(p, r->time);
    if (r->flags & IDEMI_FINISHED || idemi_record_replaces(r->flags)) {
        s->code = (int32_t)idemi_cursor_optional(p, (uint32_t)s->code, 0);
        s->response_len = (uint16_t)idemi_cursor_optional(
            p, s->response_len, defaults->lengths & 0xFFFF);
    }
    if (r->flags & IDEMI_HAS_KEY) {
        s->scope_len = (uint8_t)idemi_cursor_optional(p, s->scope_len, 0);
        s->attempts = (uint8_t)idemi_cursor_optional(p, s->attempts, 1);
        s->retention =
            idemi_cursor_optional(p, s->retention, defaults->retention);
        s->token = idemi_cursor_optional(p, s->token, token);
        r->age = idemi_cursor_optional(p, r->age, 0);
        s->key_len = (uint8_t)idemi_cursor_varint(p, s->key_len);
        idemi_cursor_words(p, s->fingerprint, 2);
        r->id.scope = idemi_cursor_bytes(p, r->id.scope, s->scope_len);
        r->id.key = idemi_cursor_bytes(p, r->id.key,
                                       idemi_slot_key_bytes(s->key_len));
    }
    if (idemi_record_has_sender(r->flags)) {
        idemi_cursor_words(p, r->of.sender->name, 2);
        idemi_cursor_words(p, r->of.sender->floor, 2);
    }
    if (r->flags & IDEMI_HAS_STATE) {
        r->state_len = (uint16_t)idemi_cursor_varint(p, r->state_len);
        r->state = idemi_cursor_bytes(p, r->state, r->state_len);
    }
    if (r->flags & IDEMI_FINISHED)
        r->response = idemi_cursor_bytes(p, r->response, s->response_len);
}

/* The check of bytes: a keyed hash of them, their sector, and their offset
   XORed with the layout.  So no bytes validate that were moved, are left from
   an earlier round, or were hidden in a key or response by an enemy (he gets
   half a check right now and then: P5). */
IDEMI_INLINE uint32_t idemi_record_check(const idem_config *config,
                                         uint32_t sequence, uint32_t at,
                                         const unsigned char *p, uint32_t len)
{
    unsigned char where[8];

    idemi_basics_store32(where, sequence);
    idemi_basics_store32(where + 4, at);
    return idemi_hash_pair(config, where, sizeof where, p, (size_t)len);
}

/* True of a record whose check includes the token of its claim: an outcome
   without its key, or a delivery. */
static int idemi_record_is_bound(unsigned flags)
{
    return !(flags & IDEMI_HAS_KEY) && flags & IDEMI_STATUS;
}

/* XORed into that check: 16 bits that depend on all bits of the token, as its
   low ones may be an offset alone.  The factor is 2^32 divided by the golden
   ratio (D. E. Knuth, The Art of Computer Programming 3, 6.4): tokens less than
   29,000 apart never give the same bits. */
static uint32_t idemi_record_binding(uint32_t token)
{
    return token * UINT32_C(0x9E3779B1) & UINT32_C(0xFFFF0000);
}

/* The bytes that are the same in all headers; the sum is 0 */
static void idemi_header_put_same(const idem_storage *m, unsigned char *p)
{
    uint32_t words[IDEMI_HEADER_SAME / 4];

    words[0] = IDEMI_MAGIC;
    words[1] = IDEMI_FORMAT_NUMBER | IDEM_HASH << 8 |
               (uint32_t)m->prog_size << 16;
    words[2] = m->sector_size | (uint32_t)m->erased << 24;
    words[3] = m->sector_count;
    idemi_basics_code_words(p, words, IDEMI_HEADER_SAME / 4, 1);
}

/* The layout: bytes written with another geometry or secret do not validate. */
IDEMI_INLINE uint32_t idemi_header_layout(const idem_config *config)
{
    unsigned char same[IDEMI_HEADER_SAME];

    idemi_header_put_same(IDEMI_GIVEN(config)->storage, same);
    return idemi_hash_pair(config, same, sizeof same, config->secret, 8);
}

/* The sum of a header's pairs of bytes modulo 2^16 - 1, as in RFC 1071: 0xFFFF
   with the header's own sum, whatever the secret. */
static uint32_t idemi_header_sum(const unsigned char *p)
{
    uint32_t sum = 0;
    unsigned i;

    for (i = 0; i < IDEMI_HEADER; i += 2) {
        sum += p[i] + ((uint32_t)p[i + 1] << 8);
        sum = (sum & 0xFFFF) + (sum >> 16);
    }
    return sum;
}

/* True of a header of any journal that is not torn.  A torn one differs by bits
   that are still to be programmed: fewer than 16 do not add up to 2^16 - 1; one
   in 65,536 others does, but its check is erased. */
IDEMI_INLINE int idemi_header_is_whole(const unsigned char *p)
{
    uint32_t erased = p[11] * UINT32_C(0x01010101);

    return idemi_basics_load32(p) == IDEMI_MAGIC &&
           idemi_header_sum(p) == 0xFFFF &&
           idemi_basics_load32(p + IDEMI_HEADER - 4) != erased;
}

/* ---------------------------------------------------------------------------
   >>reading   headers and records, from the bytes in a storage
   ------------------------------------------------------------------------ */

/* Reads bytes; if that fails, one by one: those that fail seem not erased. */
static void idemi_reading_read(idem_table *t, uint32_t at, unsigned char *dst,
                               uint32_t len)
{
    if (idemi_storage_read(t, at, dst, len) == IDEM_OK)
        return;
    for (; len > 0; len--, at++, dst++)
        if (idemi_storage_read(t, at, dst, 1) < 0)
            *dst = (unsigned char)~IDEMI_CONFIG_OF(t)->storage->erased;
}

/* Bytes of a sector from an offset on, at least `len`, or all that are left.
   The buffer moves over the sector: no byte is read twice. */
static unsigned char *idemi_reading_bytes(idem_table *t, uint32_t sequence,
                                          uint32_t at, uint32_t len)
{
    idem_journal *j = t->journal;
    uint32_t from = at, rest = IDEMI_SECTOR_SIZE(j) - at;

    if (at + len <= j->window_end || j->window_end == IDEMI_SECTOR_SIZE(j))
        return t->buffer + (at - j->from.window);
    for (; from < j->window_end; from++)
        t->buffer[from - at] = t->buffer[from - j->from.window];
    j->from.window = at;
    j->window_end = at + idemi_basics_min(rest, t->buffer_size);
    idemi_reading_read(t, idemi_storage_at(t, sequence, from),
                       t->buffer + (from - at), j->window_end - from);
    return t->buffer;
}

/* Zeroes the sum of bytes, and flips a bit if that makes their check right;
   returns whether they are a header of the journal with that layout. */
static int idemi_reading_mend_header(const idem_config *config, uint32_t layout,
                                     unsigned char *p)
{
    uint32_t other = idemi_basics_load32(p) ^ IDEMI_MAGIC;
    unsigned i;

    if (other & (other - 1))
        return 0;
    p[IDEMI_SUM_AT] = p[IDEMI_SUM_AT + 1] = 0;
    // Bit i / 2 is flipped after an even i, and flipped back after an odd one:
    // only the first even i has bytes that were not checked before.
    for (i = 0; i < 16 * IDEMI_HEADER; i++) {
        if ((i == 0 || i % 2) &&
            idemi_basics_load32(p + IDEMI_HEADER - 4) ==
                idemi_record_check(config, 0, layout, p, IDEMI_HEADER - 4))
            return 1;
        p[i / 16] = (unsigned char)(p[i / 16] ^ 1u << i / 2 % 8);
    }
    return 0;
}

/* Reads the header in the physical sector of a sequence; NULL if it is not
   valid.  It is decoded where it was read: the next read replaces it. */
static const idemi_header *idemi_reading_header(idem_table *t,
                                                uint32_t sequence)
{
    uint32_t at = idemi_storage_at(t, sequence, 0);
    idemi_header *h;

    idemi_reading_read(t, at, t->buffer, IDEMI_HEADER);
    if (!idemi_reading_mend_header(t->config, t->journal->layout, t->buffer))
        return NULL;
    h = (idemi_header *)(void *)(t->buffer + IDEMI_HEADER_SAME);
    idemi_basics_code_words(t->buffer + IDEMI_HEADER_SAME, &h->sequence,
                            sizeof *h / 4, 0);
    if (h->sequence - h->tail >= IDEMI_SECTOR_COUNT(t->journal))
        return NULL;
    return idemi_storage_at(t, h->sequence, 0) == at ? h : NULL;
}

/* As idemi_reading_header, but NULL if the header has another sequence. */
static const idemi_header *idemi_reading_header_of(idem_table *t,
                                                   uint32_t sequence)
{
    const idemi_header *h = idemi_reading_header(t, sequence);

    return h && h->sequence == sequence ? h : NULL;
}

/* Bytes of the longest record, a multiple of 4 as a header has it */
static uint32_t idemi_reading_longest(const idem_journal *j)
{
    return IDEMI_ROUND4(IDEMI_RECORD_LIMIT(j));
}

/* True if a valid record fits (>>recovery). */
static int idemi_reading_fits(const idem_table *t, const idemi_record *r)
{
    const idem_config *config = IDEMI_CONFIG_OF(t);
    const idem_slot *s = r->of.s;

    if (!IDEMI_EVER_SENDERS && idemi_record_has_sender(r->flags))
        return 0;               // there is no code for such a record
    return !r->orphan && r->slot <= IDEMI_CAPACITY(t) &&
           r->state_len <= config->state_max &&
           (r->slot || !(r->flags & IDEMI_STATUS)) &&
           (!(r->flags & IDEMI_FINISHED) ||
            s->response_len <= config->response_max) &&
           (!(r->flags & IDEMI_HAS_KEY) ||
            (s->scope_len + idemi_slot_key_bytes(s->key_len) <=
                 config->key_max &&
             (s->key_len ? r->slot : IDEMI_SENDERS(t)) && s->attempts &&
             s->retention <= IDEM_RETENTION_MAX));
}

/* Whether, and why, a record bound to a claim is an orphan (Q1 to Q3): a value
   of idemi_record.orphan.  `check` is the stored check XORed with that of the
   bytes: the binding. */
static uint8_t idemi_reading_orphan(const idem_table *t, const idemi_record *r,
                                    uint32_t check)
{
    const idem_slot *s;
    unsigned wanted =
        r->flags & IDEMI_FINISHED ? IDEMI_ENDLESS : IDEMI_FINISHED;

    if (r->slot - 1 >= IDEMI_CAPACITY(t))
        return IDEMI_NO_CLAIM;
    s = idemi_slot_at(t, (unsigned)r->slot - 1);
    if (!(s->flags & wanted))
        return IDEMI_NO_CLAIM;
    return check == idemi_record_binding(s->token) ? 0 : IDEMI_OTHER_CLAIM;
}

/* Reads the record at an offset in a sector; returns its length in whole
   granules, or 0 if there is none (W2, W4, W5). */
static uint32_t idemi_reading_parse(idem_table *t, uint32_t sequence,
                                    uint32_t at, idemi_record *r,
                                    unsigned char *start)
{
    const idem_journal *j = t->journal;
    uint32_t len, check;
    idemi_cursor p;

    p.at = start;
    p.end = t->buffer + (j->window_end - j->from.window);
    if (p.end - start < 8)
        return 0;
    p.end -= 4;
    p.writing = p.bad = 0;
    r->age = r->state_len = 0;
    idemi_record_codec(&j->defaults, &p, r,
                       (uint32_t)idemi_record_token(t, sequence, at));
    len = (uint32_t)(p.at - start);
    if (p.bad || len + 4 > idemi_reading_longest(j) ||
        (*p.mask & ~(IDEMI_RELOCATED >> 8)) >= p.bit)           // W5
        return 0;
    // The index word is loaded while the check is computed.
    if (r->flags & IDEMI_HAS_KEY) {
        idemi_index_identify(t->config, r->of.s, r->id.scope, &r->id);
        idemi_index_prefetch(t, r->id.hash);
    }
    check = idemi_basics_load32(p.at) ^
            idemi_record_check(t->config, sequence, at ^ j->layout, start,
                               len);
    r->orphan = 0;
    if (idemi_record_is_bound(r->flags) && !(check & 0xFFFF)) {
        r->orphan = idemi_reading_orphan(t, r, check);
        check = 0;
    }
    if (check)
        return 0;
    r->fits = (uint8_t)idemi_reading_fits(t, r);
    return idemi_storage_granules(j, len + 4);
}

/* As idemi_reading_parse, but reads the bytes first: at most offsets one byte
   shows that there is no record (W1). */
static uint32_t idemi_reading_record(idem_table *t, uint32_t sequence,
                                     uint32_t at, idemi_record *r)
{
    unsigned char *start = idemi_reading_bytes(t, sequence, at, 1);

    if (!(*start & IDEMI_RECORD) || *start == 0xFF)
        return 0;
    start = idemi_reading_bytes(t, sequence, at,
                                idemi_reading_longest(t->journal));
    return idemi_reading_parse(t, sequence, at, r, start);
}

/* Returns the next offset after `at` at which a record may begin: not with an
   erased byte.  Looks no further than `end`, and the bytes in memory. */
static uint32_t idemi_reading_skip(const idem_table *t, uint32_t at,
                                   uint32_t end)
{
    const idem_journal *j = t->journal;
    uint32_t granule = IDEMI_GRANULE(j), window = j->from.window;
    const unsigned char *buffer = t->buffer;
    const unsigned erased = IDEMI_CONFIG_OF(t)->storage->erased;

    end = idemi_basics_min(end, j->window_end);
    do
        at += granule;
    while (at < end && buffer[at - window] == erased);
    return at;
}

/* A record that is read, with its fields: a slot's, or a sender's */
typedef struct idemi_found {
    idemi_record r;
    union {
        idem_slot   slot;
        idem_sender sender;
    } data;
} idemi_found;

/* Makes *found empty, and the buffer: the next read is from the storage. */
static void idemi_reading_reset(idem_table *t, idemi_found *found)
{
    IDEM_MEMSET(found, 0, sizeof *found);
    found->r.of.s = &found->data.slot;
    t->journal->window_end = 0;
}

/* As an offset: only records after the commit record are looked at. */
#define IDEMI_AFTER_COMMIT UINT32_MAX

/* Records that prove that a sector was written, if they are not relocated */
enum idemi_proof {
    IDEMI_OF_ITEM,              /* of a slot, a refused number or a sender, and
                                   no orphan */
    IDEMI_NO_ORPHAN,            /* all but orphans: the commit record, too */
    IDEMI_ANY
};

/* True if a sector has such a record that is not relocated.  First passes the
   relocated ones from `at` on; if one is missing, starts one granule after
   relocated_end, where the commit record stands.  Needs the defaults of the
   header. */
static int idemi_reading_has_record(idem_table *t, uint32_t sequence,
                                    uint32_t at, uint32_t relocated_end,
                                    unsigned which)
{
    idem_journal *j = t->journal;
    uint32_t len;
    idemi_found found;
    idemi_record *r = &found.r;

    idemi_reading_reset(t, &found);
    relocated_end =
        idemi_basics_min(relocated_end & IDEMI_OFFSET, IDEMI_SECTOR_SIZE(j));
    while (at < relocated_end &&
           (len = idemi_reading_record(t, sequence, at, r)) != 0 &&
           r->flags & IDEMI_RELOCATED)
        at += len;
    if (at != relocated_end)
        at = relocated_end + IDEMI_GRANULE(j);
    j->window_end = 0;          // read again: the proof must be on the storage
    for (; at < IDEMI_SECTOR_SIZE(j);
         at = idemi_reading_skip(t, at, IDEMI_SECTOR_SIZE(j)))
        if (idemi_reading_record(t, sequence, at, r) &&
            !(r->flags & IDEMI_RELOCATED) &&
            (!r->orphan || which == IDEMI_ANY) &&
            (r->slot || which != IDEMI_OF_ITEM ||
             (IDEMI_EVER_SENDERS && r->flags & (IDEMI_HAS_KEY | IDEMI_SENDER))))
            return 1;
    return 0;
}

/* Reads all headers: returns the sequence of the newest, or 0.  Until there is
   a head, counts D7, once. */
static uint32_t idemi_reading_scan_headers(idem_table *t)
{
    uint32_t position, newest = 0, named;
    const idemi_header *h;

    for (position = 0; position < IDEMI_SECTOR_COUNT(t->journal); position++) {
        h = idemi_reading_header(t, position);
        if (!h)
            continue;
        if (h->sequence > newest)
            newest = h->sequence;
        if (t->journal->head || t->stats.lost)
            continue;
        named = h->previous;
        h = idemi_reading_header(t, named);
        if (h && h->sequence < named)
            t->stats.lost++;
    }
    return newest;
}

/* A torn header that reads right every other time reads wrong that often in a
   row once in 10^9 times. */
#define IDEMI_REREADINGS 30u

/* Reads all headers again; returns whether the newest one is another one now.
   A torn one may come and go: it is read up to IDEMI_REREADINGS times, and if
   it is once as before, nothing has changed. */
static int idemi_reading_has_changed(idem_table *t)
{
    const idem_journal *j = t->journal;
    uint32_t is = idemi_reading_scan_headers(t);
    unsigned times = 0;

    // Once without the newer header, or with the one that was missing
    while (is != j->sequence && times++ < IDEMI_REREADINGS)
        if (is > j->sequence ? !idemi_reading_header(t, is)
                             : idemi_reading_header(t, j->sequence) != NULL)
            is = j->sequence;
    return is != j->sequence;
}

/* True if a sector after one sequence and before another counts by A2.  Of the
   head only records after those that were read are looked at.  Leaves the
   defaults of the header that was read last.  A sector of an earlier round of
   the ring can only stand there because its erase has failed: no more than a
   round is searched. */
static int idemi_reading_is_used(idem_table *t, uint32_t after, uint32_t before,
                                 unsigned which)
{
    idem_journal *j = t->journal;
    uint32_t left = IDEMI_SECTOR_COUNT(j);

    while (left-- > 0 && --before > after) {
        const idemi_header *h = idemi_reading_header_of(t, before);
        if (!h)
            continue;
        j->defaults = h->defaults;
        if (idemi_reading_has_record(
                t, before, IDEMI_AFTER_COMMIT,
                before == j->head ? j->at : h->relocated_end, which))
            return 1;
    }
    return 0;
}

/* Makes the newest sector that counts the head, if there is one (P1, D10).  If
   none counts, and the oldest header names one: D5.  Leaves the defaults of the
   header that was read last. */
static void idemi_reading_find_head(idem_table *t)
{
    idem_journal *j = t->journal;
    uint32_t left = IDEMI_SECTOR_COUNT(j), sequence = j->sequence, named = 0;

    for (; left > 0 && sequence > 0; left--, sequence--) {
        const idemi_header *h = idemi_reading_header_of(t, sequence);
        uint32_t tail;
        if (!h)
            continue;
        tail = h->tail;
        named = h->previous;
        j->defaults = h->defaults;
        if (!idemi_reading_has_record(t, sequence, IDEMI_RECORDS_AT(j),
                                      h->relocated_end, IDEMI_ANY))
            continue;
        if (idemi_reading_is_used(t, named, sequence, IDEMI_ANY)) { // D10
            t->stats.lost++;
            continue;
        }
        j->head = sequence;
        j->tail = tail;
        if (j->sequence - tail >= IDEMI_SECTOR_COUNT(j)) {          // D5
            j->tail = j->sequence + 1 - IDEMI_SECTOR_COUNT(j);
            t->stats.lost++;
        }
        return;
    }
    if (named)
        t->stats.lost++;
}

/* True if the head that was found is not the newest one, or not all of it was
   read (B1; and B2, for which the head itself is searched). */
static int idemi_reading_was_early(idem_table *t)
{
    const idem_journal *j = t->journal;

    if (!j->head)
        return idemi_reading_is_used(t, 0, j->sequence + 1, IDEMI_NO_ORPHAN);
    return idemi_reading_is_used(t, j->head - !t->stats.lost,
                                 j->head + IDEMI_SECTOR_COUNT(j),
                                 IDEMI_NO_ORPHAN);
}

/* ---------------------------------------------------------------------------
   >>journal   the ring of sectors, and writing to it

   Rules R2 to R6 of >>recovery are kept here.

   One record is written in these steps (idemi_journal_...):

     make_ready   rotates until the head has room for any record
     compose      encodes the record into the buffer
     write        writes the buffer into the head
     put          compose, write
     end_append   the head ends after it; or takes no more, after a failure
     append       put, end_append
     record       make_ready, append
   ------------------------------------------------------------------------ */

/* Physical sectors 1 to 3: the first heads of a journal are begun in them, and
   may be torn.  (sector - 1 < IDEMI_FIRST_SECTORS: of sector 0 that wraps.) */
#define IDEMI_FIRST_SECTORS 3u

/* Dead sectors after the newest one that was begun. */
static uint32_t idemi_journal_count_dead(const idem_table *t)
{
    const idem_journal *j = t->journal;
    uint32_t positions = j->head ? IDEMI_SECTOR_COUNT(j) : IDEMI_FIRST_SECTORS;

    return positions - (j->sequence + 1 - j->tail);
}

static int idemi_journal_has_room(const idem_journal *j, uint32_t bytes)
{
    return j->at + bytes <= IDEMI_SECTOR_SIZE(j);
}

static int idemi_journal_is_uncertain(const idem_table *t)
{
    return !idemi_clock_reached(t->clock, t->journal->uncertain);
}

/* True if the newest record is `ms` old or older: a restart loses that time. */
static int idemi_journal_is_stale(const idem_table *t, uint32_t ms)
{
    return t->clock - t->journal->last_time >= ms;
}

/* A begin that finds the table full records the time if the newest record is at
   least this old. */
#define IDEMI_STALE_MS UINT32_C(60000)

/* True if the time is to be written, as no record has it for that long.  While
   rotations fail it is tried less and less often: each try erases. */
static int idemi_journal_needs_time(const idem_table *t, uint32_t ms)
{
    if (t->journal->sequence != t->journal->head)
        ms += t->stats.skipped * IDEMI_STALE_MS;
    return idemi_journal_is_stale(t, ms);
}

/* True if the next record would have a longer time than a record may have, but
   for a boot's first commit record: its header has the boot's time (P6). */
static int idemi_journal_is_silent(const idem_table *t)
{
    return idemi_journal_is_stale(t, IDEMI_SWEEP_MS + 1);
}

/* True if a slot can be answered without a rotation: the newest record, which
   alone may be unstable (R3), is about something else. */
static int idemi_journal_is_stable(const idem_table *t, unsigned slot)
{
    return slot != IDEMI_NONE && slot != t->journal->last_item;
}

/* Encodes the next record of the head, about an item, into the buffer, all but
   its check; returns its length.  `more` has the fields that are not in the
   table: an idemi_query with IDEMI_OF_QUERY, otherwise an idem_outcome or
   NULL. */
static uint32_t idemi_journal_compose(idem_table *t, idemi_item item,
                                      unsigned flags, const void *more)
{
    idem_journal *j = t->journal;
    // For the state and a sender any slot: none of its fields is written.
    idem_slot *s = idemi_slot_at(t, item < IDEMI_CAPACITY(t) ? item : 0);
    unsigned full = IDEMI_EVER_STATE ? IDEMI_HAS_STATE : 0;
    idemi_record r;
    idemi_cursor p;

    r.of.s = s;
    r.slot = 0;
    r.id.scope = idemi_slot_id(s);
    r.id.key = r.id.scope + s->scope_len;
    r.response = idemi_slot_response(t, s);
    r.state = t->state;
    r.state_len = t->state_len;
    if (flags & IDEMI_OF_QUERY) {
        r.of.fresh = &((const idemi_query *)more)->fresh;
        r.id = ((const idemi_query *)more)->id;
    } else if (more) {
        r.state = (const unsigned char *)((const idem_outcome *)more)->state;
        r.state_len = (uint16_t)((const idem_outcome *)more)->state_len;
    }
    if (item < IDEMI_CAPACITY(t)) {
        full = IDEMI_HAS_KEY | (s->flags & (IDEMI_STATUS | IDEMI_UNDELIVERED |
                                            IDEMI_INTERRUPTED));
        r.slot = item + 1;
    } else if (item > IDEMI_STATE(t)) {
        full = IDEMI_SENDER;
        r.of.sender = idemi_sender_at(t, item - IDEMI_STATE(t));
    }
    if (flags & IDEMI_IN_FULL)
        flags |= full;
    r.flags = (uint16_t)(flags | IDEMI_RECORD |
                         (j->unsynced ? 0 : IDEMI_SYNCED));
    r.time = flags & IDEMI_RELOCATED ? 0 : t->clock - j->last_time;
    r.age = 0;
    // Expired: for how long is no matter.
    if (flags & IDEMI_IN_FULL && flags & (IDEMI_FINISHED | IDEMI_INTERRUPTED))
        r.age = idemi_basics_min(j->last_time + r.time - s->time, s->retention);
    p.at = t->buffer;
    p.end = t->buffer + IDEMI_RECORD_LIMIT(j);
    p.writing = 1;
    idemi_record_codec(&j->defaults, &p, &r, idemi_storage_position(j));
    return (uint32_t)(p.at - t->buffer);
}

/* Writes the record in the buffer, which was composed with these arguments and
   has that length, into the head, which has room for it.  Keeps R6: the item
   needs this sector from now on.  A failure changes no need. */
static int idemi_journal_write(idem_table *t, idemi_item item, unsigned flags,
                               uint32_t len)
{
    idem_journal *j = t->journal;
    uint32_t *needs = idemi_items_needs(t);
    uint32_t check = idemi_record_check(t->config, j->sequence,
                                        j->at ^ j->layout, t->buffer, len);
    int result, needed;

    flags |= t->buffer[0];      // IDEMI_IN_FULL: compose has added some
    if (idemi_record_is_bound(flags))
        check ^= idemi_record_binding(idemi_slot_at(t, item)->token);
    idemi_basics_store32(t->buffer + len, check);
    result = idemi_storage_prog(t, j->sequence, j->at, len + 4);
    if (result < 0)
        return result;
    j->at += idemi_storage_granules(j, len + 4);
    if (!(flags & IDEMI_RELOCATED))
        j->last_time = t->clock;
    // A released key needs no sector, nor does a sender that was forgotten; nor
    // yet an item that is not in the table.
    needed = item > IDEMI_STATE(t)
                 ? idemi_basics_join(
                       idemi_sender_at(t, item - IDEMI_STATE(t))->floor) != 0
                 : (flags & IDEMI_STATUS) != 0;
    if (item > IDEMI_STATE(t) ||
        (flags & (IDEMI_HAS_KEY | IDEMI_OF_QUERY)) == IDEMI_HAS_KEY)
        needs[item] = needed ? j->sequence : IDEMI_NOWHERE;
    if (flags & IDEMI_HAS_STATE) {
        needs[IDEMI_STATE(t)] = j->sequence;
        j->unsynced |= IDEMI_UNSYNCED_STATE;
    }
    return IDEM_OK;
}

static int idemi_journal_put(idem_table *t, idemi_item item, unsigned flags,
                             const void *more)
{
    return idemi_journal_write(t, item, flags,
                               idemi_journal_compose(t, item, flags, more));
}

/* Closes the newest sector: it has no room for more records. */
static void idemi_journal_close_sector(idem_journal *j)
{
    j->at = IDEMI_SECTOR_SIZE(j);
}

/* A plan counts sectors in at most this many groups, to bound the stack.  With
   fewer than 15 sectors each group is one sector. */
#define IDEMI_GROUPS 16u

/* Dead sectors that are kept after the head (R4); one rotation tries as many,
   and D6 searches as many. */
#define IDEMI_KEPT_DEAD 2u

/* Plans a rotation that makes `head` the newest sector.  Sets next_tail: the
   oldest sector that is needed then.  Returns how many items, the oldest first,
   must be relocated into it to keep R5.  For each sector q: `items` need q or
   an older one; `fit` of them can wait, as they have room in the heads that can
   be begun after `head` and before q is erased.  Returns the largest of all
   items - fit.  A group counts as its oldest sector.

   That is at most k, the room of a head, if there are S = IDEM_SECTORS sectors.
   For a q older than the last head: the plan before this one left no more items
   than fit into the heads that come before q is erased, and `head` is one of
   them.  For the last head itself: it may need all items, h k at most.  S - 3
   heads come before it is erased, this one included; S / 15 less, as its group
   may begin that many sectors earlier; and h <= S - 3 - S / 15. */
static uint32_t idemi_journal_plan(idem_table *t, uint32_t head)
{
    idem_journal *j = t->journal;
    const uint32_t *needs = idemi_items_needs(t);
    uint32_t size = IDEMI_SECTOR_COUNT(j) / (IDEMI_GROUPS - 1) + 1;
    uint32_t first = j->tail - j->tail % size, items = 0, must = 0;
    // Heads that can be begun before the first group is erased
    uint32_t heads = first + IDEMI_SECTOR_COUNT(j) - IDEMI_KEPT_DEAD - 1 - head;
    idem_short need[IDEMI_GROUPS];      // the items of each group
    idemi_item item = idemi_items_highest(t) + 1;
    unsigned i;

    j->next_tail = head;
    IDEM_MEMSET(need, 0, sizeof need);
    while (item-- > 0)
        if (needs[item] < head) {
            if (needs[item] < j->next_tail)
                j->next_tail = needs[item];
            need[(needs[item] - first) / size]++;
        }
    for (i = 0; i < IDEMI_GROUPS; i++, heads += size) {
        // `heads` is below zero after more skipped sectors than are dead.
        uint32_t fit = (int32_t)heads < 0 ? 0 : heads * j->head_room;
        items += need[i];
        if (items > fit + must)
            must = items - fit;
    }
    return must;
}

/* Relocates the items that must leave their sectors, the oldest sector first.
     flags IDEMI_RELOCATED   in a rotation: all that have room in this head
     flags 0                 in idle work: one that the next head would have to
                             take; IDEM_MORE
   All items leave a sector with a loss: the next opening must not find that
   again.  By R5 all have room.  After skipped sectors, or with larger limits
   than before, some may not: then another head is begun. */
static int idemi_journal_relocate(idem_table *t, unsigned flags)
{
    unsigned ahead = !flags;
    idem_journal *j = t->journal;
    const uint32_t *needs = idemi_items_needs(t);
    // The commit record, and the rewritten newest one, composed later: it may
    // be as long as any.
    uint32_t after = IDEMI_COMMIT_MAX(IDEMI_GRANULE(j)) +
                     (j->last_item != IDEMI_NONE ? IDEMI_RECORD_LIMIT(j) : 0);

    for (;;) {
        idemi_item item = idemi_items_highest(t) + 1;
        uint32_t left = idemi_journal_plan(t, j->sequence + ahead);
        if (j->next_tail <= j->damaged)
            left = item;
        if (!left)
            return IDEM_OK;
        while (left > 0 && item-- > 0) {
            uint32_t len;
            int result;
            if (needs[item] > j->next_tail)
                continue;
            len = idemi_journal_compose(t, item, flags | IDEMI_IN_FULL, NULL);
            if (!idemi_journal_has_room(
                    j, after + idemi_storage_granules(j, len + 4)))
                return IDEM_OK;
            result = idemi_journal_write(t, item, flags, len);
            if (result < 0)
                return result;
            if (ahead)
                return IDEM_MORE;
            left--;
        }
    }
}

/* Writes the header of the newest sector from the journal's fields, durable
   before and after. */
IDEMI_NOINLINE
static int idemi_journal_write_header(idem_table *t)
{
    const idem_storage *m = IDEMI_CONFIG_OF(t)->storage;
    idem_journal *j = t->journal;
    unsigned char *p = t->buffer;
    int result = idemi_storage_sync(t);

    if (result < 0)
        return result;
    idemi_header_put_same(m, p);
    idemi_basics_code_words(p + IDEMI_HEADER_SAME, &j->sequence,
                            sizeof(idemi_header) / 4, 1);
    p[IDEMI_FIRST_AT] = !j->rotated;
    p[IDEMI_BATCHED_AT] = IDEMI_CONFIG_OF(t)->durability == IDEM_BATCH;
    // Longer ago it could leave the window before the next boot sweeps.
    if (!idemi_journal_is_uncertain(t))
        IDEM_MEMCPY(p + IDEMI_UNCERTAIN_AT, p + IDEMI_TIME_AT, 4);
    idemi_basics_store32(p + IDEMI_HEADER - 4,
                         idemi_record_check(t->config, 0, j->layout, p,
                                            IDEMI_HEADER - 4));
    idemi_basics_store32(
        p + 12, m->sector_count | (0xFFFF - idemi_header_sum(p)) << 16);
    result = idemi_storage_prog(t, j->sequence, 0, IDEMI_HEADER);
    return result == IDEM_OK ? idemi_storage_sync(t) : result;
}

/* Tries to make the next sector the new head, in the steps of >>recovery.
   After a failure it is the newest sector, and idemi_journal_rotate puts right
   last_time, `at` and the needs.  Keeps R2. */
static int idemi_journal_try_sector(idem_table *t)
{
    idem_journal *j = t->journal;
    int result = idemi_storage_erase(t, 1);                 // 1 erase

    j->sequence++;
    j->erase = j->prepared = 0;
    if (result < 0)
        return result;
    j->at = IDEMI_RECORDS_AT(j);
    if (j->rotated)             // else last_time is when the boot began
        j->last_time = t->clock;
    result = idemi_journal_relocate(t, IDEMI_RELOCATED);    // 2 relocate
    if (result == IDEM_OK && j->last_item != IDEMI_NONE)
        result = idemi_journal_put(
            t, j->last_item,
            j->last_flags | IDEMI_IN_FULL | IDEMI_RELOCATED, NULL);
    if (result == IDEM_OK)
        result = idemi_journal_write_header(t);             // 3 the header
    if (result == IDEM_OK)                                  // 4 commit
        result = idemi_journal_put(t, IDEMI_NO_ITEM(t), IDEMI_TIME, NULL);
    // The tail moves with the commit record: it must be durable before an older
    // sector is erased.
    return result == IDEM_OK ? idemi_storage_sync(t) : result;
}

/* Makes the items that a failed rotation relocated need the tail: their old
   sectors are not known any more.  Of the newest record's item it is known.
   Keeps R6. */
static void idemi_journal_need_tail(idem_table *t, uint32_t last_needs)
{
    const idem_journal *j = t->journal;
    uint32_t *needs = idemi_items_needs(t);
    idemi_item item = idemi_items_highest(t) + 1;

    while (item-- > 0)
        if (needs[item] == j->sequence)
            needs[item] = j->tail;
    if (j->last_item != IDEMI_NONE)
        needs[j->last_item] = last_needs;
}

/* Erases uncommitted sectors after the head that have the sequence `from` or a
   later one, the newest first: so none can be taken for the head later, and
   their sequences can be used again.  One that cannot be erased ends this; but
   if it has no header it cannot count, and is passed over for an older one. */
static void idemi_journal_erase_uncommitted(idem_table *t, uint32_t from)
{
    idem_journal *j = t->journal;
    uint32_t last = j->head ? j->head : j->tail - 1;

    // Of the sector after the newest one: it ends before another begins.
    if (j->erase == IDEMI_ERASING)
        (void)idemi_storage_erase(t, 1);
    while (j->sequence > last && j->sequence >= from) {
        j->sequence--;
        if (idemi_storage_erase_now(t) < 0 &&
            (j->broken || j->sequence < from ||
             idemi_reading_header_of(t, j->sequence + 1))) {
            j->sequence++;
            return;
        }
    }
}

/* Erases the sectors that an earlier boot began after the head, and the one
   after them: if power failed while that was erased, it may read as erased now,
   and as a head later. */
static void idemi_journal_erase_interrupted(idem_table *t)
{
    const idem_journal *j = t->journal;

    if (j->head && j->sequence > j->head && idemi_journal_count_dead(t))
        (void)idemi_storage_erase(t, 1);
    if (!j->broken)
        idemi_journal_erase_uncommitted(t, 0);
}

/* Erases the sectors between the old head and the new one, which has recorded a
   loss: none may show it to the next boot, or pass for a head (D10). */
static void idemi_journal_erase_skipped(idem_table *t)
{
    idem_journal *j = t->journal;
    uint32_t head = j->sequence--;

    idemi_journal_erase_uncommitted(t, 0);
    j->sequence = head;
    j->erase = 0;
}

/* True if a head in the next sector leaves room to begin another one later.
   Right after the head R5 has that.  After skipped sectors all live items must
   fit into the heads that are left.  These may use the two sectors of R4: so
   the plan is for a head two sequences lower.  Sequences must not wrap.
   Sets next_tail, as the plan does. */
static int idemi_journal_plan_next(idem_table *t)
{
    const idem_journal *j = t->journal;

    return j->sequence < UINT32_MAX - IDEMI_KEPT_DEAD &&
           idemi_journal_count_dead(t) &&
           (!j->head || j->sequence == j->head ||
            !idemi_journal_plan(t, j->sequence - IDEMI_KEPT_DEAD));
}

/* Makes room for a head in the next sector; returns whether there is.  For this
   it erases sectors that do not count, the newest first, and no more than must
   be.  Those with lost records (D6, D10) go last: until a header has recorded
   the loss, the next opening must find them, too.  After a failure the newest
   may be bad: then the one before it goes, too, if it has a header (so no loss
   by D6).  Keeps R4. */
static int idemi_journal_make_room(idem_table *t)
{
    const idem_journal *j = t->journal;

    while (!idemi_journal_plan_next(t)) {
        uint32_t newest = j->sequence;
        idemi_journal_erase_uncommitted(
            t, newest - (t->stats.skipped &&
                         idemi_reading_header_of(t, newest - 1)));
        if (j->sequence == newest)
            return 0;
    }
    return 1;
}

/* Makes a new head:
     a  looks again at a storage that read as blank
     b  in a boot's first rotation erases the sectors that an earlier boot began
     c  tries the next sector: steps 1 to 4 of >>recovery; after a failure once
        more
     d  looks again at a storage that was blank
     e  after a loss erases the sectors that the new head has skipped
     f  the new sector is the head, and the tail moves
   After a failure the old head is closed: the new one may count at the next
   opening, whatever was returned. */
static int idemi_journal_rotate(idem_table *t)
{
    idem_journal *j = t->journal;
    uint32_t last_time = j->last_time, last_needs = 0;
    int result = IDEM_E_STORAGE;
    unsigned tries = IDEMI_KEPT_DEAD;

    // a: (B5)
    if (!j->sequence && idemi_reading_has_changed(t))
        return IDEM_E_STORAGE;
    if (j->last_item != IDEMI_NONE)
        last_needs = idemi_items_needs(t)[j->last_item];

    // b: not after a loss: they may hold the lost records (D6); nor after a
    // failure: that sector would be tried again.
    if (!j->rotated && !t->stats.skipped && !t->stats.lost)
        idemi_journal_erase_interrupted(t);
    for (; tries > 0 && result < 0 && !j->broken; tries--) {
        if (!idemi_journal_make_room(t))
            return IDEM_E_SPACE;
        result = idemi_journal_try_sector(t);                   // c
        if (result < 0) {
            j->last_time = last_time;
            idemi_journal_close_sector(j);
            idemi_journal_need_tail(t, last_needs);
            t->stats.skipped++;
        }
    }
    if (result < 0)
        return result;
    // d: it has another newest header: it was not ready (B6), and an older
    // journal could hide this one.  Acknowledge nothing; write no more over it.
    if (!j->head && idemi_reading_has_changed(t)) {
        idemi_journal_close_sector(j);
        if (idemi_reading_scan_headers(t) > j->sequence)
            j->broken = 1;
        return IDEM_E_STORAGE;
    }
    if (!j->rotated && t->stats.lost)                       // e
        idemi_journal_erase_skipped(t);
    j->rotated = 1;                                         // f
    j->last_item = IDEMI_NONE;
    j->tail = j->next_tail;
    j->head = j->sequence;
    j->end = j->at;
    return IDEM_OK;
}

/* Rotates until the head has room for any record.  At least once with `anew`,
   or if no record was written for a sweep interval: then the new header has the
   time, and the record none that could be lost with it (IDEMI_SILENCE_MS). */
IDEMI_SLOW
static int idemi_journal_make_ready(idem_table *t, int anew)
{
    const idem_journal *j = t->journal;
    uint32_t left = IDEMI_SECTOR_COUNT(j);
    int result = IDEM_OK;

    if (j->broken)
        return IDEM_E_STORAGE;
    if (idemi_journal_is_silent(t))
        anew = 1;
    while (result == IDEM_OK &&
           (anew || !idemi_journal_has_room(j, IDEMI_RECORD_LIMIT(j)))) {
        // Begin one more if all would be lost with one sector: with the header
        // of a head that D6 does not look at; or the only record of a loss.
        uint32_t found_to = j->head + IDEMI_KEPT_DEAD;
        int is_lone = !j->rotated && t->stats.lost;
        result = left-- > 0 ? idemi_journal_rotate(t) : IDEM_E_SPACE;
        anew = is_lone || t->journal->head > found_to;
    }
    return result;
}

/* Ends writing a record: after a failure the head is closed (R3); otherwise it
   ends after the record, which is durable, unless in batch mode. */
static int idemi_journal_end_append(idem_table *t, int result)
{
    idem_journal *j = t->journal;

    if (result < 0) {
        idemi_journal_close_sector(j);
        return result;
    }
    j->end = j->at;
    return IDEMI_CONFIG_OF(t)->durability == IDEM_EACH ? idemi_storage_sync(t)
                                                       : result;
}

static int idemi_journal_append(idem_table *t, idemi_item item, unsigned flags,
                                const void *more)
{
    return idemi_journal_end_append(t, idemi_journal_put(t, item, flags, more));
}

static int idemi_journal_record(idem_table *t, idemi_item item, unsigned flags)
{
    int result = idemi_journal_make_ready(t, 0);

    return result == IDEM_OK ? idemi_journal_append(t, item, flags, NULL)
                             : result;
}

/* Records the time after another record, in the same sector if it has room. */
static int idemi_journal_record_time(idem_table *t)
{
    const idem_journal *j = t->journal;

    return idemi_journal_has_room(j, IDEMI_COMMIT_MAX(IDEMI_GRANULE(j)))
               ? idemi_journal_append(t, IDEMI_NO_ITEM(t), IDEMI_TIME, NULL)
               : idemi_journal_record(t, IDEMI_NO_ITEM(t), IDEMI_TIME);
}

/* From this sequence on no claim is granted: in the last sectors before tokens
   end the outcomes of earlier ones must fit (S7). */
#define IDEMI_LAST_SECTORS 256u
static uint32_t idemi_journal_sequence_end(const idem_journal *j)
{
    idem_token end = IDEMI_TOKEN_MAX / IDEMI_SECTOR_SIZE(j);

    return (end < UINT32_MAX ? (uint32_t)end : UINT32_MAX) - IDEMI_LAST_SECTORS;
}

/* Makes room for a claim and its outcome (S7). */
static int idemi_journal_reserve(idem_table *t)
{
    const idem_journal *j = t->journal;
    int result = idemi_journal_make_ready(t, 0);

    if (result < 0)
        return result;
    // Too few dead sectors, after skipped ones: a rotation makes others dead.
    if (idemi_journal_count_dead(t) < IDEMI_KEPT_DEAD)
        result = idemi_journal_make_ready(t, 1);
    if (result == IDEM_OK &&
        (idemi_journal_count_dead(t) < IDEMI_KEPT_DEAD ||
         j->sequence >= idemi_journal_sequence_end(j)))
        result = IDEM_E_SPACE;
    return result;
}

/* Writes the outcome of a slot's claim.  With its key
     - if the claim is not durable: a torn batch could keep the outcome alone,
       and 16 bits do not prove that it is not of an older claim (S3);
     - with state: both must be in one record.
   An earlier state in this batch is synced first: this one was computed from
   it, and a torn batch could keep the later one alone. */
static int idemi_journal_append_outcome(idem_table *t, unsigned slot,
                                        unsigned flags, const idem_outcome *out)
{
    if (idemi_storage_is_unsynced(t->journal, idemi_slot_at(t, slot)->token))
        flags |= IDEMI_HAS_KEY;
    if (out->state && IDEMI_CONFIG_OF(t)->state_max) {
        flags |= IDEMI_HAS_KEY | IDEMI_HAS_STATE;
        if (t->journal->unsynced & IDEMI_UNSYNCED_STATE &&
            idemi_storage_sync(t) < 0)
            return IDEM_E_STORAGE;
    }
    return idemi_journal_append(t, slot, flags, out);
}

/* Rotates, if this boot has not: before the first answer that relies on earlier
   records.  The new header has the end of the old head, so no later boot reads
   more records there than this one did (S10). */
IDEMI_INLINE int idemi_journal_first_rotation(idem_table *t)
{
    return IDEMI_JOURNAL(t) && !t->journal->rotated
               ? idemi_journal_make_ready(t, 1)
               : IDEM_OK;
}

/* One step of idle work: erases or relocates ahead; IDEM_MORE if it did, or an
   erase is under way.  A boot that has not written wears nothing.  After a long
   silence the next rotation relocates. */
static int idemi_journal_maintain(idem_table *t)
{
    idem_journal *j = t->journal;
    int result;

    if (j->broken || !j->rotated || j->prepared)
        return IDEM_OK;
    j->prepared = 1;            // unless there may be another step
    if (j->erase != IDEMI_ERASED && idemi_journal_count_dead(t))
        result = idemi_storage_erase(t, 0);
    else if (idemi_journal_is_silent(t))
        return IDEM_OK;
    else {
        result = idemi_journal_relocate(t, 0);
        if (result == IDEM_OK)
            return result;
        result = idemi_journal_end_append(t, result);
    }
    if (result < 0)
        return result;
    j->prepared = 0;
    return IDEM_MORE;
}

/* ---------------------------------------------------------------------------
   >>opening   a table in memory, and from the bytes in a storage to the table
               that wrote them

   The order, and the loss rules D1 to D10, are those of >>recovery.
   ------------------------------------------------------------------------ */

/* Counts a loss, in a sector that all items must leave. */
IDEMI_NOINLINE
static void idemi_opening_count_loss(idem_table *t, uint32_t sequence)
{
    t->stats.lost++;
    t->journal->damaged = sequence;
}

/* Moves the clock to the time of a record or header, `ms` later, unless that is
   in the past or impossibly far ahead.  With `hold` no key ages: lost records
   may have recorded that time. */
IDEMI_INLINE void idemi_opening_follow_time(idem_table *t, uint32_t ms,
                                            int hold)
{
    unsigned slot = IDEMI_CAPACITY(t);

    if (ms > IDEMI_NEVER_MS)
        return;
    if (hold) {
        while (slot-- > 0)
            idemi_slot_at(t, slot)->time += ms;
        t->clock += ms;
        t->swept += ms;
    } else
        idemi_keys_advance(t, ms);
}

/* Applies a record with a key: a claim, which stays without end until a restart
   interrupts it, so that one that was still held is never dropped.  Another key
   in the slot had expired, or was evicted.  Keeps R1, R6. */
static void idemi_opening_apply_key(idem_table *t, idemi_record *r,
                                    uint32_t sequence)
{
    unsigned slot = (unsigned)r->slot - 1;
    idem_slot *s = idemi_slot_at(t, slot);
    unsigned other = idemi_index_find(t, &r->id);
    uint32_t needs = sequence;
    int event = IDEMI_KEY_ADDED;

    if (other != IDEMI_NONE) {
        const idem_slot *known = idemi_slot_at(t, other);
        if (!(known->flags & IDEMI_UNCOUNTED))
            event = IDEMI_KEY_KEPT;
        // Records before this one may be lost, and their time with them: then
        // the key needs the record before.
        if (t->clock - known->time < r->age) {
            r->age = t->clock - known->time;
            needs = idemi_items_needs(t)[other];
        }
        idemi_keys_remove(t, other);
    }
    if (s->flags)
        idemi_keys_drop(t, slot, IDEMI_KEY_EXPIRED);
    *s = *r->of.s;
    idemi_slot_widen_token(s, idemi_record_token(t, sequence + 1, 0));
    s->response_len = 0;
    s->time = t->clock - r->age;
    s->flags = IDEMI_CLAIMED | (r->flags & IDEMI_INTERRUPTED ? IDEMI_INTERRUPTED
                                                             : IDEMI_ENDLESS);
    idemi_basics_copy(idemi_slot_id(s), r->id.scope,
                      s->scope_len + idemi_slot_key_bytes(s->key_len));
    s->hash = r->id.hash;
    idemi_keys_enter(t, slot);
    idemi_items_needs(t)[slot] = needs;
    idemi_sender_note_event(t, slot, event);
}

/* Applies a record of a sender entry.  It changes nothing if there is no entry
   for its floor, or if that is higher now without a mark (R1d): keys may have
   expired since.  Without a floor the sender was forgotten.  Returns the item
   number of the entry, or IDEMI_NONE.  Keeps N1. */
static idemi_item idemi_opening_apply_sender(idem_table *t, idemi_record *r,
                                             uint32_t sequence)
{
    uint64_t name = idemi_basics_join(r->of.sender->name);
    uint64_t floor = idemi_basics_join(r->of.sender->floor);
    idem_sender *e =
        floor || IDEMI_SENDERS(t) ? idemi_sender_find_or_add(t, name) : NULL;
    idemi_item item = e ? idemi_sender_item(t, e) : IDEMI_NONE;

    if (!floor) {
        idemi_keys_forget(t, name, e, 1);
        return item;
    }
    if (!e || (!(r->flags & IDEMI_ALL_GONE) &&
               floor < idemi_basics_join(e->floor))) {
        r->fits = 0;
        return IDEMI_NONE;
    }
    if (r->of.sender->floor[1] != e->floor[1])
        e->until.gone = 0;
    if (r->flags & IDEMI_ALL_GONE && r->of.sender->floor[0] > e->until.gone)
        e->until.gone = r->of.sender->floor[0];
    idemi_basics_split(e->floor, floor);
    idemi_items_needs(t)[item] = sequence;
    e->unsaved = 0;
    return item;
}

/* Applies that a key had left (R1f): returns the slot that it leaves, or
   IDEMI_NONE if it is in none. */
static unsigned idemi_opening_apply_left(idem_table *t, const idemi_record *r)
{
    unsigned slot = idemi_index_find(t, &r->id), came = (unsigned)r->slot - 1;

    if (r->slot && slot != came && idemi_slot_at(t, came)->flags)
        idemi_keys_drop(t, came, IDEMI_KEY_EXPIRED);
    if (slot != IDEMI_NONE)
        idemi_keys_drop(t, slot, IDEMI_KEY_EXPIRED);
    return slot;
}

/* Of a key that is in no slot makes the record one of no slot; of a number, the
   record of its sender, whose floor is this number (R1f). */
static void idemi_opening_make_sender(const idem_table *t, idemi_record *r)
{
    r->slot = 0;
    if (r->of.s->key_len)
        return;
    idemi_basics_split(r->of.sender->name,
                       idemi_sender_name(t, r->id.scope, r->id.scope_len));
    idemi_basics_split(r->of.sender->floor, idemi_basics_load64(r->id.key));
    r->flags = (r->flags & IDEMI_HAS_STATE) | IDEMI_SENDER;
}

/* Applies a record in a sector; returns its item, or IDEMI_NONE.  Keeps R1. */
IDEMI_NOINLINE
static idemi_item idemi_opening_apply(idem_table *t, idemi_record *r,
                                      uint32_t sequence)
{
    unsigned slot = (unsigned)r->slot - 1;
    idemi_item of = IDEMI_NONE;
    idem_slot *s;

    if (IDEMI_EVER_STATE && r->flags & IDEMI_HAS_STATE) {
        of = IDEMI_STATE(t);
        t->state_len = r->state_len;
        idemi_basics_copy(t->state, r->state, r->state_len);
        idemi_items_needs(t)[of] = sequence;
    }
    if (IDEMI_EVER_SENDERS && idemi_record_has_left(r->flags)) {
        slot = idemi_opening_apply_left(t, r);
        if (slot != IDEMI_NONE)
            return slot;
        idemi_opening_make_sender(t, r);
    }
    if (IDEMI_EVER_SENDERS && idemi_record_has_sender(r->flags))
        of = idemi_opening_apply_sender(t, r, sequence);
    if (!r->slot)
        return of;
    s = idemi_slot_at(t, slot);
    if (r->flags & IDEMI_HAS_KEY)
        idemi_opening_apply_key(t, r, sequence);
    if (!s->flags)
        return of;
    if (r->flags & IDEMI_FINISHED) {
        s->code = r->of.s->code;
        s->response_len = r->of.s->response_len;
        idemi_basics_copy(idemi_slot_response(t, s), r->response,
                          s->response_len);
        idemi_keys_finish(t, slot, r->flags, r->age);
    } else if (!(r->flags & IDEMI_STATUS))
        idemi_keys_drop(t, slot, IDEMI_KEY_RELEASED);
    else if (!(r->flags & IDEMI_HAS_KEY))
        idemi_keys_clear_undelivered(t, s);
    return slot;
}

/* Removes the numbers and the floor of the sender whose entry the sender of
   this claim took over, if there is one (R1e).  The number that had the claim's
   slot goes first: mostly it is the last one, and no other slot need be looked
   at. */
IDEMI_NOINLINE
static void idemi_opening_apply_takeover(idem_table *t, const idemi_record *r)
{
    unsigned left = IDEMI_SENDERS(t), slot = (unsigned)r->slot - 1;
    idem_sender *e;
    uint64_t name;
    uint32_t low;

    if (!left || !idemi_record_replaces(r->flags))
        return;
    low = (uint32_t)r->of.s->code;
    e = idemi_sender_first(t, low);
    for (; e->name[0] != low; e = idemi_sender_next(t, e))
        if (!idemi_basics_join(e->name) || --left == 0)
            return;
    name = idemi_basics_join(e->name);
    if (idemi_keys_is_of(t, name, slot))
        idemi_keys_drop(t, slot, IDEMI_KEY_EXPIRED);
    idemi_keys_forget(t, name, e, 0);
}

/* A sector that is read: its header, and what later headers record about it */
typedef struct idemi_scan {
    idemi_header h;
    uint32_t end;               /* previous_end, and IDEMI_FIRST, of the last
                                   header that names it; 0: none does */
    int is_abandoned;           /* a later header names an older sector, and
                                   none this one */
} idemi_scan;

/* True if records at the end of a sector are lost.
     gap     a gap (P5) is not counted as a loss yet
     at      where reading stopped
     dirty   the last skipped granule that does not begin with an erased byte */
static int idemi_opening_is_loss(const idem_table *t, const idemi_scan *scan,
                                 int gap, uint32_t at, uint32_t dirty)
{
    const idem_journal *j = t->journal;
    uint32_t longest = idemi_reading_longest(j);

    if (scan->h.defaults.lengths >> 16 > longest / 4 &&
        (gap || dirty >= j->at))
        return 1;                                               // D9
    if (scan->end)
        return at > j->at ||                                    // D3
               (gap && !(scan->end & IDEMI_FIRST &&
                         scan->h.relocated_end & IDEMI_BATCHED));
    return j->at < (scan->h.relocated_end & IDEMI_OFFSET) ||    // D1
           (dirty >= j->at + longest &&                         // D4
            !(scan->h.relocated_end & IDEMI_BATCHED));
}

/* True of an orphan at an offset that may not be a record, or not the one that
   was written (P5): half its check is right. */
static int idemi_opening_is_unproven(const idem_journal *j,
                                     const idemi_record *r, uint32_t at)
{
    return r->orphan == IDEMI_OTHER_CLAIM || (r->orphan && at != j->at);
}

/* P6: after a gap before the first header of a boot, moves the clock to the
   time of the record that this boot rewrote, the first valid one from an offset
   on.  Returns whether that has IDEMI_SYNCED (D2). */
static int idemi_opening_follow_rewritten(idem_table *t, const idemi_scan *scan,
                                          int gap, uint32_t at, idemi_record *r)
{
    uint32_t end =
        gap && scan->end & IDEMI_FIRST ? IDEMI_SECTOR_SIZE(t->journal) : 0;

    while (at < end && !idemi_reading_record(t, scan->h.sequence, at, r))
        at = idemi_reading_skip(t, at, end);
    if (at >= end)
        return 0;
    if (!r->orphan)
        idemi_opening_follow_time(t, r->time, 0);
    return (r->flags & IDEMI_SYNCED) != 0;
}

/* Notes the record that was read at j->at as the newest one, about an item. */
static void idemi_opening_set_newest(idem_journal *j, const idemi_record *r,
                                     idemi_item of)
{
    j->last_item = of;
    j->last_flags = r->flags & (IDEMI_HAS_STATE | IDEMI_INTERRUPTED);
    if (idemi_record_replaces(r->flags))
        j->last_flags |= IDEMI_SENDER;
}

/* Reads a sector.  For each position:
     1  no valid record, or one on the wrong side of relocated_end (W3): go on
     2  a gap before a record: lost, if all before that was durable (D1, D2)
     3  an orphan that is unproven is searched, too, and changes nothing more
     4  the record's time, of an orphan when it is not the last record: that may
        be torn; its content, or a loss if that does not fit (D8)
     5  it is the newest record, and the next header will end the sector here
   6  at the end: the record that the next boot rewrote (P6), D1 to D4 and D9.
   Returns whether a gap may have been records with a time. */
IDEMI_FLATTEN
static int idemi_opening_sector(idem_table *t, const idemi_scan *scan)
{
    idem_journal *j = t->journal;
    uint32_t at = IDEMI_RECORDS_AT(j), dirty = 0;
    uint32_t end = scan->end ? scan->end & IDEMI_OFFSET : IDEMI_SECTOR_SIZE(j);
    uint32_t sequence = scan->h.sequence;
    uint32_t relocated_end = scan->h.relocated_end & IDEMI_OFFSET;
    uint32_t orphan_time = 0;   // of the record before
    int gap = 0, lost;
    idemi_found found;
    idemi_record *r = &found.r;

    idemi_reading_reset(t, &found);
    j->end = relocated_end;
    j->at = at;
    while (at < end && at < IDEMI_SECTOR_SIZE(j)) {
        uint32_t len = idemi_reading_record(t, sequence, at, r);
        int relocated = (r->flags & IDEMI_RELOCATED) != 0;
        idemi_item of = IDEMI_NONE;
        if (!len || relocated != (at < relocated_end)) {        // 1
            if (t->buffer[at - j->from.window] !=
                IDEMI_CONFIG_OF(t)->storage->erased)
                dirty = at;
            at = idemi_reading_skip(t, at, end);
            continue;
        }
        gap |= at > j->at;                                      // 2
        if (gap && (j->at < relocated_end || r->flags & IDEMI_SYNCED)) {
            idemi_opening_count_loss(t, sequence);
            gap = 0;
        }
        if (idemi_opening_is_unproven(j, r, at)) {              // 3
            // An outcome whose claim is lost, or itself damaged; the last one
            // of the sector may be torn.
            gap |= r->orphan == IDEMI_OTHER_CLAIM;
            j->at = at + len;
            at = idemi_reading_skip(t, at, end);
            continue;
        }
        idemi_opening_follow_time(t, orphan_time, 0);           // 4
        orphan_time = r->orphan ? r->time : 0;
        idemi_opening_follow_time(t, r->time - orphan_time, 0);
        if (!r->fits && !r->orphan)
            idemi_opening_count_loss(t, sequence);
        if (r->fits) {
            idemi_opening_apply_takeover(t, r);
            of = idemi_opening_apply(t, r, sequence);
        }
        // Not the commit record: as long as it is the last one, the rewritten
        // record before it is the newest.
        if (at != relocated_end || r->slot)                     // 5
            idemi_opening_set_newest(j, r, of);
        // The sector ends before this record if the next boot rewrites it, or
        // the header has its time (R3); after one that forgot a sender.
        j->end = idemi_basics_min(j->at, at);
        j->at = at += len;
        if (r->fits && idemi_record_has_sender(r->flags) && of == IDEMI_NONE)
            j->end = at;
    }
    lost = idemi_opening_follow_rewritten(t, scan, gap, at, r); // 6
    if (lost || idemi_opening_is_loss(t, scan, gap, at, dirty))
        idemi_opening_count_loss(t, sequence);
    return gap;
}

/* The header of the oldest sector from a sequence to the head; or NULL */
static const idemi_header *idemi_opening_next_header(idem_table *t,
                                                     uint32_t sequence)
{
    for (; sequence <= t->journal->head; sequence++) {
        const idemi_header *h = idemi_reading_header_of(t, sequence);
        if (h)
            return h;
    }
    return NULL;
}

/* Sets *scan for the oldest sector that has a header, from a sequence on;
   returns whether there is one. */
IDEMI_NOINLINE
static int idemi_opening_next_sector(idem_table *t, uint32_t sequence,
                                     idemi_scan *scan)
{
    const idemi_header *h = idemi_opening_next_header(t, sequence);

    if (!h)
        return 0;
    scan->h = *h;
    scan->end = 0;
    scan->is_abandoned = 0;
    while ((h = idemi_opening_next_header(t, h->sequence + 1)) != NULL &&
           h->previous <= scan->h.sequence) {
        if (h->previous == scan->h.sequence)
            scan->end = h->previous_end;
        scan->is_abandoned = !scan->end;
    }
    return 1;
}

/* Reads all sectors from the tail to the head (P2 to P4).  Counts D5, and a
   head whose header does not read the same again. */
IDEMI_NOINLINE
static void idemi_opening_sectors(idem_table *t)
{
    idem_journal *j = t->journal;
    uint32_t named = 0, sequence = j->tail;
    int is_named = 1;           // the sector before, by a later header
    int hold, gap = 0;
    unsigned slot;
    idemi_scan scan;

    for (; idemi_opening_next_sector(t, sequence, &scan); sequence++) {
        sequence = scan.h.sequence;
        if (!named)
            t->clock = t->swept = scan.h.time;
        if (scan.is_abandoned)
            continue;
        // (The first sector has just set the clock: holding has no effect.)
        hold = j->damaged == named || gap;
        if ((scan.h.previous != named || !is_named) && sequence != j->tail)
            idemi_opening_count_loss(t, sequence - 1);
        named = sequence;
        is_named = scan.end != 0;
        j->defaults = scan.h.defaults;
        idemi_opening_follow_time(t, scan.h.time - t->clock, hold);
        // From the header's time on, even if that was not followed
        j->uncertain = t->clock + scan.h.uncertain - scan.h.time;
        if (scan.h.previous_end & IDEMI_FIRST)      // of a boot
            for (slot = 0; slot < IDEMI_CAPACITY(t); slot++)
                idemi_keys_interrupt(t, idemi_slot_at(t, slot));
        gap = idemi_opening_sector(t, &scan);
    }
    if (named != j->head)
        idemi_opening_count_loss(t, j->head);
}

/* True if a header of another journal begins at an offset of a sector: a whole
   one, which may end in the next sector, or a moved one of this journal.  (A
   header of this journal in its place was torn before, and reads as valid.) */
static int idemi_opening_is_foreign(idem_table *t, uint32_t sector, uint32_t at)
{
    idem_journal *j = t->journal;
    unsigned char *p = idemi_reading_bytes(t, sector, at, IDEMI_HEADER);

    if (at == 0 || IDEMI_SECTOR_SIZE(j) - at < IDEMI_HEADER) {
        j->window_end = 0;      // mended in place, or in two sectors
        p = t->buffer;
        idemi_reading_read(t, idemi_storage_at(t, sector, at), p, IDEMI_HEADER);
    }
    return idemi_header_is_whole(p) &&
           (at > 0 ||
            !idemi_reading_mend_header(t->config, j->layout, p) ||
            idemi_basics_load32(p + IDEMI_HEADER_SAME) %
                    IDEMI_SECTOR_COUNT(j) != sector);
}

/* Reads a whole storage that has no header: IDEM_OK if it is blank, else
   IDEM_E_STORAGE if it was not ready (B4), or IDEM_E_FORMAT. */
static int idemi_opening_check_blank(idem_table *t)
{
    idem_journal *j = t->journal;
    uint32_t sector, at;

    for (sector = 0; sector < IDEMI_SECTOR_COUNT(j); sector++) {
        j->window_end = 0;
        for (at = 0; at < IDEMI_SECTOR_SIZE(j); at++) {
            unsigned char byte = *idemi_reading_bytes(t, sector, at, 1);
            if (sector - 1 < IDEMI_FIRST_SECTORS
                    ? byte == (IDEMI_MAGIC & 0xFF) &&
                          idemi_opening_is_foreign(t, sector, at)
                    : byte != IDEMI_CONFIG_OF(t)->storage->erased)
                return idemi_reading_scan_headers(t) || t->storage_error
                           ? IDEM_E_STORAGE
                           : IDEM_E_FORMAT;
        }
    }
    return idemi_reading_has_changed(t) ? IDEM_E_STORAGE : IDEM_OK;
}

/* Sets the defaults of a sector that is begun now. */
static void idemi_opening_set_defaults(idem_table *t)
{
    t->journal->defaults.retention = idemi_default_retention(t, 0);
    t->journal->defaults.lengths = idemi_reading_longest(t->journal) << 14 |
                                   IDEMI_CONFIG_OF(t)->response_max;
}

/* Counts D6 in the sectors after the head; returns the sequence of the last of
   them, or 0. */
IDEMI_NOINLINE
static uint32_t idemi_opening_count_headless(idem_table *t)
{
    idem_journal *j = t->journal;
    uint32_t sequence, last = 0;

    for (sequence = j->head + 1; sequence - j->head <= IDEMI_KEPT_DEAD;
         sequence++)
        if (!idemi_reading_header(t, sequence) &&
            idemi_reading_has_record(t, sequence, IDEMI_RECORDS_AT(j),
                                     IDEMI_RECORDS_AT(j), IDEMI_OF_ITEM)) {
            t->stats.lost++;
            last = sequence;
        }
    return last;
}

/* Reads the journal, if there is one, into the table: it is in the state
   `opened` then, and no free slot is in the list yet (idemi_opening_finish). */
static int idemi_opening_journal(idem_table *t)
{
    idem_journal *j = t->journal;
    uint32_t until, begun_over, headless;

    j->last_item = IDEMI_NONE;
    j->sequence = idemi_reading_scan_headers(t);
    begun_over = t->stats.lost;                             // D7
    j->tail = j->sequence + 1;  // without a head no sector is live
    idemi_reading_find_head(t);
    idemi_opening_sectors(t);
    idemi_opening_set_defaults(t);
    headless = idemi_opening_count_headless(t);
    // It was not ready (B1 to B3): after all that was read.
    if (idemi_reading_has_changed(t) || idemi_reading_was_early(t))
        return IDEM_E_STORAGE;
    idemi_opening_set_defaults(t);      // again: those were of other sectors
    // Sectors with D6 count as begun: none must be erased before a header has
    // recorded the loss.
    if (j->sequence < headless)
        j->sequence = headless;
    // After D7 alone the sectors that were begun hold nothing: they are used
    // again, as others may show D7.
    if (begun_over && begun_over == t->stats.lost && j->head)
        j->sequence = j->head;
    // If D7 shows only in the next two sectors, which are 1 and 2, a rotation
    // would erase it before a header has the loss: they count as begun.
    if (begun_over && idemi_journal_count_dead(t) >= IDEMI_KEPT_DEAD &&
        (j->sequence + 1) % IDEMI_SECTOR_COUNT(j) == 1)
        j->sequence += IDEMI_KEPT_DEAD;
    until = t->clock + j->defaults.retention;
    // An earlier loss may have been recorded with a longer default.
    if (t->stats.lost && idemi_clock_rank(t->clock, j->uncertain) <
                             idemi_clock_rank(t->clock, until))
        j->uncertain = until;
    j->last_time = t->clock;
    idemi_journal_close_sector(j);
    return j->sequence ? IDEM_OK : idemi_opening_check_blank(t);
}

/* Erases the storage, the newest sector last: a power cut leaves a head that
   names the missing sectors. */
IDEMI_NOINLINE
static int idemi_opening_format(idem_table *t)
{
    idem_journal *j = t->journal;
    uint32_t left = IDEMI_SECTOR_COUNT(j);
    int result = IDEM_OK;

    // Its physical sector: a sequence could wrap on the way.
    j->sequence = idemi_reading_scan_headers(t) % left;
    for (; result == IDEM_OK && left > 0; left--) {
        result = idemi_storage_erase_now(t);
        j->sequence++;
    }
    j->erase = 0;
    t->stats.lost = 0;          // of the journal that was there
    return result;
}

/* Wide enough for the size of the largest table, even where size_t is not. */
typedef idem_token idemi_size;

/* Lays an empty table out in memory, if that is large enough and aligned:

                  sender entries, the last one first
     slots        capacity x stride bytes
     links        capacity + 1
     own          capacity + 1 + senders, with a quota under IDEM_EVICT_OLDEST
     index        capacity x IDEMI_WORDS words
     state        state_max bytes, to a multiple of 4
     journal      idem_journal; this and all that follows only with storage
                  for each item the sector that it needs (idemi_items_needs)
     buffer       all that is left, up to a sector */
static int idemi_opening_memory(idem_table *t, unsigned char *memory,
                                size_t size)
{
    const idem_config *config = IDEMI_CONFIG_OF(t);
    idemi_size capacity = config->capacity;
    idemi_size stride = (idemi_size)IDEMI_SLOT_SIZE(config->key_max,
                                                    config->response_max);
    idemi_size state = IDEMI_ROUND4((idemi_size)config->state_max);
    idemi_size senders = IDEMI_SENDERS(t);
    idemi_size needed =
        capacity * (stride + (idemi_size)sizeof(idem_link) +
                    IDEMI_WORDS * (idemi_size)sizeof(idem_word)) +
        (idemi_size)sizeof(idem_link) + state +
        senders * (idemi_size)sizeof(idem_sender);
    uint32_t own = 0;
    uint32_t record_max = 0;
    idem_link *end;

    if (IDEMI_STORAGE(config)) {
        record_max = IDEMI_RECORD_MAX(config->key_max, config->response_max,
                                      config->state_max,
                                      config->storage->prog_size);
        needed += IDEMI_ROUND4((idemi_size)sizeof(idem_journal)) +
                  4 * (capacity + 1 + senders) + IDEMI_ROUND4(record_max);
    }
    if (IDEMI_EVER_OWN && config->quota && config->full == IDEM_EVICT_OLDEST)
        own = (uint32_t)(capacity + 1 + senders);
    needed += own * (uint32_t)sizeof(idem_link);
    t->needed = (size_t)needed;
    if (t->needed != needed)
        t->needed = 0;
    if (!memory || size < needed || (uintptr_t)memory % IDEMI_ALIGNMENT)
        return IDEM_E_MEMORY;
    IDEM_MEMSET(memory, 0, t->needed);
    if (IDEMI_STORES_SIZES) {
        t->stride = (size_t)stride;
        t->capacity = (unsigned)capacity;
    }
    t->slots = memory + (size_t)senders * sizeof(idem_sender);
    t->links = (idem_link *)(void *)(t->slots +
                                     IDEMI_STRIDE(t) * IDEMI_CAPACITY(t));
    end = t->links + IDEMI_CAPACITY(t) + 1;
    if (own)
        t->own = end;
    end += own;
    t->index = (idem_word *)(void *)end;
    t->state = (unsigned char *)(t->index + idemi_index_size(t));
    t->links[capacity].older = t->links[capacity].newer = (idem_short)capacity;
    if (!IDEMI_STORAGE(config))
        return IDEM_OK;
    t->journal = (idem_journal *)(void *)(t->state + state);
    if (IDEMI_STORES_SIZES)
        t->journal->record_limit = record_max;
    t->buffer = (unsigned char *)(idemi_items_needs(t) +
                                  idemi_items_highest(t) + 1);
    IDEM_MEMSET(idemi_items_needs(t), 0xFF,
                (size_t)(t->buffer - (unsigned char *)idemi_items_needs(t)));
    size -= (size_t)(t->buffer - memory);       // all that is left
    t->buffer_size = config->storage->sector_size;
    if (size < t->buffer_size)
        t->buffer_size = (uint32_t)size;
    return IDEM_OK;
}

/* Sets the journal's geometry; IDEM_E_SPACE if the sectors are too small or too
   few for the configured keys. */
static int idemi_opening_geometry(idem_table *t)
{
    const idem_config *config = IDEMI_CONFIG_OF(t);
    const idem_storage *m = config->storage;
    idem_journal *j = t->journal;
    // As in IDEM_SECTORS: a sender counts as a key.
    uint32_t keys = config->capacity + IDEMI_SENDERS(t);
    uint32_t relocated_key = IDEMI_RELOCATED_MAX(
        config->key_max, config->response_max, 0, m->prog_size);
    uint32_t relocated_max =
        IDEMI_RELOCATED_MAX(config->key_max, config->response_max,
                            config->state_max, m->prog_size);
    uint32_t sector_min =
        IDEMI_SECTOR_MIN(m->prog_size, config->state_max, relocated_max);
    uint32_t sectors;

    t->needed = 0;
    if (m->sector_size < sector_min)
        return IDEM_E_SPACE;
    if (IDEMI_STORES_SIZES) {
        j->sector_size = m->sector_size;
        j->sector_count = (uint16_t)m->sector_count;
        j->granule = m->prog_size;
        j->records_at = IDEMI_FRONT(m->prog_size);
    }
    j->head_room =
        (uint16_t)IDEMI_HEAD_KEYS(m->sector_size, sector_min, relocated_key);
    sectors = IDEMI_HEADS_SECTORS(keys, j->head_room);
    // A storage has no more sectors: they are too small.
    t->needed = sectors > UINT16_MAX ? 0 : (size_t)sectors;
    if (m->sector_count < sectors)
        return IDEM_E_SPACE;
    j->layout = idemi_header_layout(t->config);
    return IDEM_OK;
}

/* Interrupts a claim that was read; removes a key that has expired, or counts
   it; removes a number that is gone (R1d). */
static void idemi_opening_finish_key(idem_table *t, unsigned slot)
{
    idem_slot *s = idemi_slot_at(t, slot);
    idem_sender *e;

    idemi_keys_interrupt(t, s);
    if (s->key_len) {
        if (idemi_keys_has_expired(t, s))
            idemi_keys_remove(t, slot);
        else
            idemi_sender_note_event(t, slot, IDEMI_KEY_ADDED);
        return;
    }
    e = idemi_sender_of(t, s);
    // Without a floor a key has taken the entry over since, and until.gone is
    // an eviction time now.
    if (e && e->floor[0] && idemi_sender_is_gone(e, idemi_slot_number(s))) {
        idemi_sender_uncount(t, e, slot);
        idemi_keys_remove(t, slot);
    }
}

/* Returns the end of the sorted run of outcomes that begins at `slot`: the slot
   after it, or `capacity`. */
static unsigned idemi_opening_run_end(const idem_table *t, unsigned slot)
{
    unsigned ends = IDEMI_CAPACITY(t), older = slot;

    while (slot != ends &&
           idemi_order_age(t, slot) <= idemi_order_age(t, older)) {
        older = slot;
        slot = t->links[slot].newer;
    }
    return slot;
}

/* Sorts the outcomes by completion: relocated ones were read after newer ones.
   Merges each two runs that are sorted, until there is one.  Makes O1 hold. */
static void idemi_opening_sort(idem_table *t)
{
    unsigned ends = IDEMI_CAPACITY(t);

    while (idemi_opening_run_end(t, t->links[ends].newer) != ends) {
        unsigned a = t->links[ends].newer, last = ends;
        while (a != ends) {
            unsigned b = idemi_opening_run_end(t, a), a_end = b;
            unsigned b_end = idemi_opening_run_end(t, b);
            while (a != a_end || b != b_end) {
                unsigned *next = b == b_end || (a != a_end &&
                                                idemi_order_age(t, a) >=
                                                    idemi_order_age(t, b))
                                     ? &a : &b;
                idemi_order_link(t->links, last, *next);
                last = *next;
                *next = t->links[last].newer;
            }
            a = b_end;
        }
        idemi_order_link(t->links, last, ends);
    }
}

/* The last step of an opening: lists the free slots, interrupts all claims,
   counts each key in its sender's entry, drops expired keys, and sorts the
   outcomes, all (O1) and those of each sender (O4).  No floor is unsaved: each
   was read.  until.evicted is set last: before that it may still be `gone`. */
static void idemi_opening_finish(idem_table *t, uint32_t now_ms)
{
    unsigned slot = IDEMI_CAPACITY(t), i;

    t->free = (idem_short)slot;
    t->magic = IDEMI_MAGIC;
    while (slot-- > 0)
        if (IDEMI_JOURNAL(t) && idemi_slot_at(t, slot)->flags)
            idemi_opening_finish_key(t, slot);
        else
            idemi_order_add_free(t, slot);
    // Any outcome from before may have been evicted, but by IDEM_REJECT none.
    t->evicted_until = t->clock;
    idemi_keys_sweep(t);
    if (IDEMI_JOURNAL(t))
        idemi_opening_sort(t);
    slot = t->links[IDEMI_CAPACITY(t)].newer;
    for (; IDEMI_OWN(t) && slot != IDEMI_CAPACITY(t);
         slot = t->links[slot].newer)
        idemi_sender_add_outcome(t, slot);
    if (IDEMI_JOURNAL(t) && IDEMI_CONFIG_OF(t)->full == IDEM_REJECT)
        t->evicted_until -= IDEM_RETENTION_MAX;
    for (i = IDEMI_JOURNAL(t) ? IDEMI_SENDERS(t) : 0; i > 0; i--) {
        idemi_sender_at(t, i)->until.evicted = t->evicted_until;
        idemi_sender_at(t, i)->unsaved = 0;
    }
    t->stats.expired = t->stats.undelivered = 0;
    t->tick = t->counted = now_ms;
}

/* ---------------------------------------------------------------------------
   >>commands  the calls, with the lock held

   A call writes first, if there is a journal, and then changes the table, which
   cannot fail: so a call that fails changed nothing (S7).  An earlier change is
   put back, or shows in no answer, as the dropping of expired keys.
   ------------------------------------------------------------------------ */

#define IDEMI_MAINTAIN_SLOTS 64

/* Frees the slot if its key has expired; returns whether the key is unknown. */
static int idemi_command_drop_expired(idem_table *t, unsigned slot)
{
    return slot == IDEMI_NONE || idemi_keys_expire(t, slot);
}

/* The slot that a claim names, if it has that claim or its outcome, and one of
   these bits in its state; or NULL. */
IDEMI_INLINE idem_slot *idemi_command_slot_of(idem_table *t,
                                              const idem_claim *claim,
                                              unsigned bits)
{
    idem_slot *s;

    if (claim->slot >= IDEMI_CAPACITY(t))
        return NULL;
    s = idemi_slot_at(t, (unsigned)claim->slot);
    return s->flags & bits && !(s->flags & IDEMI_INTERRUPTED) &&
                   idemi_slot_token(s) == claim->token &&
                   !idemi_keys_has_expired(t, s)
               ? s
               : NULL;
}

/* The slot of a claim that is current.  Of another one NULL, and it counts as
   fenced.  S1 is here. */
static idem_slot *idemi_command_check_claim(idem_table *t,
                                            const idem_claim *claim)
{
    idem_slot *s = idemi_command_slot_of(t, claim, IDEMI_STATUS);

    if (s && !(s->flags & IDEMI_FINISHED))
        return s;
    t->stats.fenced++;
    return NULL;
}

static void idemi_command_set_claim(const idem_table *t, unsigned slot,
                                    idem_claim *claim)
{
    const idem_slot *s = idemi_slot_at(t, slot);

    claim->token = idemi_slot_token(s);
    claim->slot = slot;
    claim->attempt = s->attempts;
}

/* True of a number at or below its sender's floor. */
static int idemi_command_below_floor(const idem_sender *e,
                                     const idem_request *rq)
{
    return e && rq->sequence &&
           ((uint64_t)rq->epoch << 32 | rq->sequence) <=
               idemi_basics_join(e->floor);
}

/* True if an unknown key may have been known before: by its age. */
static int idemi_command_is_aged(const idem_table *t, const idem_sender *e,
                                 const idem_request *rq)
{
    uint32_t age = rq->age_ms;

    return age && (age >= idemi_default_retention(t, rq->retention_ms) ||
                   age >= t->clock - (e ? e->until.evicted : t->evicted_until));
}

static int idemi_command_over_quota(const idem_table *t, const idem_sender *e)
{
    return e && IDEMI_CONFIG_OF(t)->quota &&
           e->keys >= IDEMI_CONFIG_OF(t)->quota;
}

/* Drops the oldest outcome if it has expired: its slot is used again while it
   is still in the cache.  Drops all expired keys if there is no free slot, the
   sender is at its quota, or it can have no entry that nobody needs. */
static void idemi_command_reclaim(idem_table *t, const idemi_query *q)
{
    unsigned none = IDEMI_CAPACITY(t), oldest = t->links[none].newer;

    if (!idemi_clock_reached(t->clock, t->soonest))
        return;
    if (oldest != none)
        idemi_keys_expire(t, oldest);
    if (t->free == none || idemi_command_over_quota(t, q->sender) ||
        (IDEMI_SENDERS(t) && !q->sender &&
         !idemi_sender_has_room(t, q->name)))
        idemi_keys_sweep(t);
}

/* Searches for a slot for the request's key: a free one, or one whose outcome
   may be evicted.  Or `capacity`; then sets retry_after_ms, if it is known:
   with eviction the next completion makes room. */
static unsigned idemi_command_find_room(idem_table *t, const idemi_query *q)
{
    const idem_sender *e = q->sender;
    int over_quota = idemi_command_over_quota(t, e);
    unsigned none = IDEMI_CAPACITY(t);

    if (!over_quota && t->free != none)
        return t->free;
    // The ends of an order that is empty are above all slots.
    if (IDEMI_CONFIG_OF(t)->full == IDEM_EVICT_OLDEST)
        return over_quota
                   ? (unsigned)idemi_basics_min(
                         none, t->own[idemi_sender_item(t, e)].newer)
                   : idemi_order_evictable(t);
    if (!over_quota && t->soonest - t->clock < IDEMI_NEVER_MS - IDEMI_SWEEP_MS)
        q->reply->retry_after_ms = t->soonest - t->clock;
    return none;
}

/* Releases a key: writes that, and frees its slot.  With senders the record is
   synced: a torn batch could lose it and keep a later key in the slot, as if a
   number there had expired, which raises the floor (R1b). */
IDEMI_INLINE int idemi_command_release(idem_table *t, unsigned slot)
{
    int result = IDEM_OK;

    if (IDEMI_JOURNAL(t)) {
        result = idemi_journal_record(t, slot, IDEMI_HAS_KEY);
        if (result == IDEM_OK && IDEMI_SENDERS(t))
            result = idemi_storage_sync(t);
    }
    if (result == IDEM_OK)
        idemi_keys_drop(t, slot, IDEMI_KEY_RELEASED);
    return result;
}

/* Searches for the keys of a sender: IDEM_OK if it has some, IDEM_BUSY if one
   of them has a live lease, IDEM_E_NOT_FOUND if it has none. */
static int idemi_command_find_keys(idem_table *t, uint64_t name)
{
    int result = IDEM_E_NOT_FOUND;
    unsigned slot;

    for (slot = 0; slot < IDEMI_CAPACITY(t); slot++) {
        if (!idemi_keys_is_of(t, name, slot))
            continue;
        result = IDEM_OK;
        if (idemi_keys_is_live(t, idemi_slot_at(t, slot)))
            return IDEM_BUSY;
    }
    return result;
}

/* Forgets a sender and its keys.  Writes its entry, without a floor. */
static int idemi_command_forget_sender(idem_table *t, const idem_request *rq)
{
    uint64_t name = idemi_sender_name(t, (const unsigned char *)rq->scope,
                                      rq->scope_len);
    idem_sender *e = idemi_sender_find(t, name);
    int result;

    if (!e)
        return IDEM_E_NOT_FOUND;
    idemi_keys_sweep_if_expired(t);
    result = idemi_command_find_keys(t, name);
    if (idemi_basics_join(e->floor) && result < 0)
        result = IDEM_OK;
    // First, with the true floor: a rotation may relocate this entry.
    if (result == IDEM_OK && IDEMI_JOURNAL(t))
        result = idemi_journal_make_ready(t, 0);
    if (result == IDEM_OK && IDEMI_JOURNAL(t)) {
        uint64_t floor = idemi_basics_join(e->floor);
        e->floor[0] = e->floor[1] = 0;
        result = idemi_journal_append(t, idemi_sender_item(t, e), IDEMI_SENDER,
                                      NULL);
        idemi_basics_split(e->floor, floor);
        if (result == IDEM_OK)
            result = idemi_storage_sync(t);
    }
    if (result == IDEM_OK)
        idemi_keys_forget(t, name, e, 1);
    return result;
}

/* Puts a slot's outcome into the reply, and the response into the request's
   buffer if that is large enough. */
static void idemi_command_replay(const idem_table *t, unsigned slot,
                                 idemi_query *q)
{
    idem_reply *reply = q->reply;
    idem_slot *s = idemi_slot_at(t, slot);

    reply->status = s->flags & IDEMI_STATUS;
    reply->code = s->code;
    reply->response_len = s->response_len;
    reply->age_ms = t->clock - s->time;
    idemi_command_set_claim(t, slot, &reply->claim);
    if (q->rq->buffer && s->response_len <= q->rq->buffer_size)
        IDEM_MEMCPY(q->rq->buffer, idemi_slot_response(t, s), s->response_len);
}

/* Enters a new key in its slot, and its sender if that had no entry. */
IDEMI_INLINE void idemi_command_enter(idem_table *t, unsigned slot,
                                      idemi_query *q)
{
    unsigned char *id = idemi_slot_id(idemi_slot_at(t, slot));

    idemi_basics_copy(id, q->id.scope, q->id.scope_len);
    idemi_basics_copy(id + q->id.scope_len, q->id.key,
                      idemi_slot_key_bytes(q->id.key_len));
    idemi_keys_enter(t, slot);
    if (!IDEMI_SENDERS(t))
        return;
    if (q->takes)
        idemi_sender_take_over(t, q->sender = q->takes, q->name);
    idemi_sender_apply_event(t, q->sender, slot, IDEMI_KEY_ADDED);
}

/* Fills a slot with the query's claim, all but state and lease.  Called for the
   record and once more for the slot: a copy would be slower on a host, as wide
   loads wait for the narrow stores before them. */
static void idemi_command_fill_claim(const idem_table *t, unsigned attempt,
                                     const idemi_query *q, idem_slot *s)
{
    const idem_request *rq = q->rq;

    s->time = t->clock;
    s->retention = idemi_default_retention(t, rq->retention_ms);
    s->token = (uint32_t)t->token;
    idemi_slot_widen_token(s, t->token);
    s->fingerprint[0] = q->fresh.fingerprint[0];
    s->fingerprint[1] = q->fresh.fingerprint[1];
    s->response_len = rq->response_size ? rq->response_size
                                        : IDEMI_CONFIG_OF(t)->response_max;
    s->scope_len = q->id.scope_len;
    s->key_len = q->id.key_len;
    s->attempts = (uint8_t)attempt;
    s->hash = q->id.hash;
}

/* Grants a claim on a slot: another one on its key, or the first on a new key,
   which replaces the old one.  The journal has room for it.  Keeps K4. */
IDEMI_NOINLINE
static int idemi_command_grant(idem_table *t, unsigned slot, unsigned attempt,
                               idemi_query *q)
{
    idem_slot *s = idemi_slot_at(t, slot);
    idem_sender *takes = IDEMI_SENDERS(t) && attempt == 1 ? q->takes : NULL;
    int replaces =
        IDEMI_EVER_EVICTS && takes && idemi_basics_join(takes->floor);

    // It grows, unless a loss made the journal use a sequence again.
    t->token = IDEMI_JOURNAL(t) ? idemi_record_token(t, t->journal->sequence,
                                                     t->journal->at)
                                : t->token + 1;
    if (IDEMI_JOURNAL(t)) {
        int result;
        idemi_command_fill_claim(t, attempt, q, &q->fresh);
        if (replaces)
            q->fresh.code = (int32_t)takes->name[0];
        result = idemi_journal_append(
            t, slot,
            IDEMI_CLAIMED | IDEMI_HAS_KEY | IDEMI_OF_QUERY |
                (replaces ? IDEMI_SENDER : 0), q);
        if (result < 0)
            return result;
    }
    // Nothing can fail now: the evicted outcome and the other sender may go.
    if (IDEMI_EVER_EVICTS && attempt == 1 && s->flags) {
        t->stats.evicted++;
        idemi_keys_drop(t, slot, IDEMI_KEY_EVICTED);
    }
    idemi_command_fill_claim(t, attempt, q, s);
    s->flags = (uint8_t)(IDEM_IN_PROGRESS | (s->flags & IDEMI_UNCOUNTED));
    idemi_keys_lengthen_lease(t, s, q->rq->lease_ms);
    if (IDEMI_JOURNAL(t))
        idemi_items_needs(t)[slot] = t->journal->sequence;
    if (attempt == 1)
        idemi_command_enter(t, slot, q);
    idemi_order_note_expiry(t, s);
    idemi_command_set_claim(t, slot, &q->reply->claim);
    idemi_command_set_claim(t, slot, q->claim);
    return IDEM_OK;
}

/* Sets the reply to the slot of a known key; returns the answer: IDEM_RECOVER
   if a claim is to be granted. */
static int idemi_command_answer_known(idem_table *t, unsigned slot,
                                      idemi_query *q)
{
    idem_slot *s = idemi_slot_at(t, slot);

    // One expression without a branch: its time does not depend on how many
    // bits agree.
    if ((s->fingerprint[0] ^ q->fresh.fingerprint[0]) |
        (s->fingerprint[1] ^ q->fresh.fingerprint[1]))
        return IDEM_MISMATCH;
    if (s->flags & IDEMI_FINISHED) {
        idemi_command_replay(t, slot, q);
        return IDEM_REPLAY;
    }
    q->reply->retry_after_ms = idemi_slot_lease_left(t, s);
    if (q->reply->retry_after_ms)
        return IDEM_BUSY;
    return s->attempts >=
                   idemi_default(0, IDEMI_CONFIG_OF(t)->max_attempts,
                                 IDEMI_MAX_ATTEMPTS)
               ? IDEM_EXHAUSTED
               : IDEM_RECOVER;
}

/* Drops expired keys if room is needed, and finds a slot for an unknown key and
   an entry for its sender, but takes neither; returns the answer. */
IDEMI_INLINE int idemi_command_answer_unknown(idem_table *t, unsigned *slot,
                                              idemi_query *q)
{
    q->sender = NULL;
    if (IDEMI_SENDERS(t)) {
        q->name = idemi_sender_name(t, q->id.scope, q->id.scope_len);
        q->sender = idemi_sender_find(t, q->name);
    }
    // A number that expires just now may be above: no harm.
    if (idemi_command_below_floor(q->sender, q->rq))
        return IDEM_TOO_OLD;
    if (idemi_command_is_aged(t, q->sender, q->rq)) {
        // The answer relies on no floor.
        q->sender = NULL;
        return IDEM_TOO_OLD;
    }
    idemi_command_reclaim(t, q);
    *slot = idemi_command_find_room(t, q);
    if (*slot == IDEMI_CAPACITY(t))
        return IDEM_E_FULL;
    q->takes = NULL;
    if (IDEMI_SENDERS(t) && !q->sender) {
        q->takes = idemi_sender_find_or_idlest(t, q->name);
        if (!q->takes) {
            t->stats.senders_evicted++;
            return IDEM_E_FULL;
        }
    }
    return IDEM_EXECUTE;
}

/* Which of a sender's numbers, of its floor's epoch, the table has: those up to
   its floor, later ones, both, or 0. */
#define IDEMI_OLD_NUMBERS 1u
#define IDEMI_NEW_NUMBERS 2u
IDEMI_INLINE unsigned idemi_command_find_numbers(const idem_table *t,
                                                 const idem_sender *e,
                                                 const idemi_id *id)
{
    unsigned found = 0, slot;

    for (slot = 0; slot < IDEMI_CAPACITY(t); slot++) {
        idem_slot *s = idemi_slot_at(t, slot);
        uint64_t number = idemi_slot_number(s);
        if (s->flags && !s->key_len && idemi_slot_has_scope(s, id) &&
            number >> 32 == e->floor[1])
            found |= number > idemi_basics_join(e->floor) ? IDEMI_NEW_NUMBERS
                                                          : IDEMI_OLD_NUMBERS;
    }
    return found;
}

/* Writes, before a number is refused for its floor, a record so that no later
   boot grants a claim on it (S10):
     no older number is known    the sender's entry, with the mark that all
                                 numbers up to its floor are gone
     one is; outcomes have left  the entry without the mark
     one is; claims have left    this number alone (R1f), and one record for all
                                 of an older epoch */
static int idemi_command_save_refused(idem_table *t, idemi_query *q)
{
    idem_sender *e = q->sender;
    unsigned found = IDEMI_OLD_NUMBERS;     // until it was looked for
    int result;

    if (!e || !e->unsaved)
        return IDEM_OK;
    // An expired one may raise the floor, and be the last older number.
    idemi_keys_sweep_if_expired(t);
    if (e->unsaved & IDEMI_UNSAVED)
        found = idemi_command_find_numbers(t, e, &q->id);
    else if (q->rq->epoch < e->floor[1])
        return IDEM_OK;         // one record was enough: their claims expire
    result = idemi_journal_reserve(t);
    if (result < 0)
        return result;
    if (!(found & IDEMI_OLD_NUMBERS) || e->unsaved == IDEMI_UNSAVED) {
        result = idemi_journal_append(t, idemi_sender_item(t, e),
                                      found & IDEMI_OLD_NUMBERS
                                          ? IDEMI_SENDER
                                          : IDEMI_SENDER | IDEMI_ALL_GONE,
                                      NULL);
        // If a later number can raise the floor, this must not be the newest
        // record: that is rewritten with the new floor, without the mark.
        if (result == IDEM_OK && found == IDEMI_NEW_NUMBERS)
            result = idemi_journal_record_time(t);
        if (result == IDEM_OK)
            e->unsaved = 0;
        return result;
    }
    idemi_command_fill_claim(t, 1, q, &q->fresh);
    result = idemi_journal_append(
        t, IDEMI_NO_ITEM(t),
        IDEMI_HAS_KEY | IDEMI_EXPIRED | IDEMI_OF_QUERY, q);
    if (result == IDEM_OK)
        e->unsaved = IDEMI_UNSAVED_CLAIMS;
    return result;
}

/* Grants a claim in a slot, once there is room for it and its outcome.  Keeps
   S7. */
static int idemi_command_claim(idem_table *t, unsigned slot, unsigned attempt,
                               idemi_query *q)
{
    int result = IDEM_OK;

    if (IDEMI_JOURNAL(t))
        result = idemi_journal_reserve(t);
    else if (t->token >= IDEMI_TOKEN_MAX)
        result = IDEM_E_SPACE;
    return result == IDEM_OK ? idemi_command_grant(t, slot, attempt, q)
                             : result;
}

static int idemi_command_grants(int answer)
{
    return answer >= IDEM_EXECUTE && answer <= IDEM_UNCERTAIN;
}

/* Answers a request, grants the claim if it is to be executed, and counts the
   answer.  A failure grants nothing, but may have dropped expired keys and used
   up a token. */
static int idemi_command_begin(idem_table *t, idemi_query *q)
{
    unsigned slot = idemi_index_find(t, &q->id), attempt = 1;
    int started = idemi_journal_first_rotation(t), answer, result = IDEM_OK;

    if (started < 0 && !idemi_journal_is_stable(t, slot))
        return started;
    if (idemi_command_drop_expired(t, slot))
        answer = idemi_command_answer_unknown(t, &slot, q);
    else {
        attempt = idemi_slot_at(t, slot)->attempts + 1u;
        answer = idemi_command_answer_known(t, slot, q);
    }
    // Any key may have had lost records.
    if (idemi_command_grants(answer) && IDEMI_JOURNAL(t) &&
        idemi_journal_is_uncertain(t))
        answer = IDEM_UNCERTAIN;
    if (idemi_command_grants(answer))
        result = started < 0 ? started
                             : idemi_command_claim(t, slot, attempt, q);
    else if (IDEMI_EVER_SENDERS && answer == IDEM_TOO_OLD && IDEMI_JOURNAL(t))
        result = idemi_command_save_refused(t, q);
    if (result < 0)
        return result;
    if (answer >= 0)
        t->stats.answers[answer]++;
    else {
        t->stats.full++;
        // Without records the clock would stand at each restart: a device that
        // is switched off every night would be full for ever.  A failure is no
        // harm: a later begin tries again.
        if (IDEMI_JOURNAL(t) && idemi_journal_needs_time(t, IDEMI_STALE_MS))
            (void)idemi_journal_record(t, IDEMI_NO_ITEM(t), IDEMI_TIME);
    }
    return answer;
}

/* Makes a current claim an outcome.  After a failure the claim is as it was
   (S7), but for code and response, which nothing reads of a claim. */
static int idemi_command_complete(idem_table *t, const idem_claim *claim,
                                  const idem_outcome *out)
{
    unsigned slot = (unsigned)claim->slot;
    idem_slot *s = idemi_command_check_claim(t, claim);
    unsigned flags = (out->failed ? IDEM_FAILED : IDEM_COMPLETED) |
                     (out->confirm ? IDEMI_UNDELIVERED : 0u);
    int result = IDEM_OK;
    uint16_t reserved;

    if (!s)
        return IDEM_E_FENCED;
    reserved = s->response_len;
    if (out->response_len > reserved ||
        out->state_len > IDEMI_CONFIG_OF(t)->state_max)
        return IDEM_E_TOO_LARGE;
    if (IDEMI_JOURNAL(t))
        result = idemi_journal_make_ready(t, 0);
    if (result < 0)
        return result;
    s->code = out->code;
    s->response_len = (uint16_t)out->response_len;
    idemi_basics_copy(idemi_slot_response(t, s), out->response,
                      out->response_len);
    if (IDEMI_JOURNAL(t))
        result = idemi_journal_append_outcome(t, slot, flags, out);
    if (result < 0) {
        s->response_len = reserved;
        return result;
    }
    if (out->state) {
        t->state_len = (uint16_t)out->state_len;
        idemi_basics_copy(t->state, out->state, out->state_len);
    }
    idemi_keys_finish(t, slot, flags, 0);
    idemi_sender_add_outcome(t, slot);
    return IDEM_OK;
}

/* Records that an outcome was delivered.  If it was before, the answer may rely
   on the newest record of an earlier boot.  Keeps O4. */
static int idemi_command_deliver(idem_table *t, const idem_claim *claim)
{
    idem_slot *s = idemi_command_slot_of(t, claim, IDEMI_FINISHED);
    int result;

    if (!s)
        return IDEM_E_NOT_FOUND;
    result = idemi_journal_first_rotation(t);
    if (!(s->flags & IDEMI_UNDELIVERED))
        return result < 0 && idemi_journal_is_stable(t, (unsigned)claim->slot)
                   ? IDEM_OK
                   : result;
    if (result == IDEM_OK && IDEMI_JOURNAL(t))
        result =
            idemi_journal_record(t, (unsigned)claim->slot, IDEMI_DELIVERED);
    if (result == IDEM_OK) {
        idemi_keys_clear_undelivered(t, s);
        idemi_sender_add_outcome(t, (unsigned)claim->slot);
    }
    return result;
}

static void idemi_command_describe(const idem_table *t, unsigned slot,
                                   idem_info *e)
{
    idem_slot *s = idemi_slot_at(t, slot);
    size_t id_len = s->scope_len + idemi_slot_key_bytes(s->key_len);

    e->scope_len = s->scope_len;
    e->key_len = s->key_len;
    e->epoch = (uint32_t)(idemi_slot_number(s) >> 32);
    e->sequence = (uint32_t)idemi_slot_number(s);
    e->fingerprint = idemi_basics_join(s->fingerprint);
    e->status = s->flags & IDEMI_STATUS;
    e->attempts = s->attempts;
    e->undelivered = (s->flags & IDEMI_UNDELIVERED) != 0;
    e->response_len = s->response_len;
    if (e->id && id_len <= e->id_size)
        IDEM_MEMCPY(e->id, idemi_slot_id(s), id_len);
    idemi_command_set_claim(t, slot, &e->claim);
    if (s->flags & IDEMI_FINISHED) {
        e->code = s->code;
        e->age_ms = t->clock - s->time;
        e->left_ms = idemi_slot_expiry(t, s) - t->clock;
    } else {
        e->code = 0;
        e->age_ms = 0;
        e->left_ms = idemi_slot_lease_left(t, s);
        e->claim.token = 0;     // the holder's alone
    }
}

/* Copies a piece of a response from `at` on: *len bytes, or those that are
   left. */
static int idemi_command_response(idem_table *t, void *dst, size_t *len,
                                  const idem_claim *claim, size_t at)
{
    idem_slot *s = idemi_command_slot_of(t, claim, IDEMI_FINISHED);
    size_t wanted = *len, rest;

    *len = 0;
    if (!s)
        return IDEM_E_NOT_FOUND;
    if (at > s->response_len)
        at = s->response_len;
    rest = s->response_len - at;
    *len = wanted < rest ? wanted : rest;
    idemi_basics_copy(dst, idemi_slot_response(t, s) + at, *len);
    return IDEM_OK;
}

/* One step of idle work: for the journal; writes the time if no record has it;
   or drops expired keys in some slots. */
static int idemi_command_maintain(idem_table *t)
{
    unsigned left = IDEMI_MAINTAIN_SLOTS;
    int rotated = 0;            // then the next sector is to be erased

    if (IDEMI_JOURNAL(t)) {
        uint32_t head = t->journal->head;
        int result = idemi_journal_maintain(t);
        if (result == IDEM_OK && t->used &&
            idemi_journal_needs_time(t, idemi_default_retention(t, 0) / 8 + 1))
            result = idemi_journal_record(t, IDEMI_NO_ITEM(t), IDEMI_TIME);
        if (result != IDEM_OK)
            return result;
        rotated = t->journal->head != head;
    }
    for (; left > 0 && t->tidy < IDEMI_CAPACITY(t); left--)
        idemi_keys_expire(t, t->tidy++);
    if (t->tidy < IDEMI_CAPACITY(t))
        return IDEM_MORE;
    t->tidy = 0;
    return rotated ? IDEM_MORE : IDEM_OK;
}

/* ---------------------------------------------------------------------------
   >>check     the invariants that the memory of a table shows

   Not checked: T3, which follows from the sizes; R1 to R5, and of N1 which
   records a sector has, which only the storage can show.
   ------------------------------------------------------------------------ */
enum idemi_broken {
    IDEMI_BROKEN_T1 = 1,  IDEMI_BROKEN_T2,  IDEMI_BROKEN_C1, IDEMI_BROKEN_C2,
    IDEMI_BROKEN_C3,      IDEMI_BROKEN_K1,  IDEMI_BROKEN_K2, IDEMI_BROKEN_K3,
    IDEMI_BROKEN_K4,      IDEMI_BROKEN_O1,  IDEMI_BROKEN_O2, IDEMI_BROKEN_O3,
    IDEMI_BROKEN_SIZES,         /* not those of the configuration */
    IDEMI_BROKEN_N2,      IDEMI_BROKEN_N3,
    IDEMI_BROKEN_R6,
    IDEMI_BROKEN_RING,          /* a sector stands twice: tail to newest */
    IDEMI_BROKEN_N1,
    IDEMI_BROKEN_O4,
    IDEMI_BROKEN_C4,
    IDEMI_BROKEN_STATES         /* not one of idem_journal's */
};

/* True if an item that has records needs a sector, and no other does.  After a
   failed sync a released key may still be known, and nothing is relocated. */
static int idemi_check_needs(const idem_table *t, idemi_item item,
                             int has_records)
{
    return !IDEMI_JOURNAL(t) || t->journal->broken ||
           (idemi_items_needs(t)[item] != IDEMI_NOWHERE) == has_records;
}

/* True if a token may have been granted: any, at their end, where positions
   wrap. */
static int idemi_check_token(const idem_table *t, idem_token token)
{
    const idem_journal *j = t->journal;

    if (!IDEMI_JOURNAL(t))
        return token - 1 < t->token;
    return j->sequence >= idemi_journal_sequence_end(j) ||
           token - 1 < idemi_record_token(t, j->sequence + 1, 0);
}

/* C1 to C3, K1, K2, K4 and O3 of a slot in use. */
static int idemi_check_slot(const idem_table *t, unsigned slot)
{
    idem_slot *s = idemi_slot_at(t, slot);
    unsigned status = s->flags & IDEMI_STATUS;
    unsigned misplaced = s->flags & IDEMI_FINISHED
                             ? IDEMI_ENDLESS | IDEMI_INTERRUPTED
                             : IDEMI_UNDELIVERED;
    uint32_t expiry;

    if (!status || (s->flags & (misplaced | (0xE0u ^ IDEMI_UNCOUNTED))))
        return IDEMI_BROKEN_K1;
    if (s->scope_len + idemi_slot_key_bytes(s->key_len) >
            IDEMI_CONFIG_OF(t)->key_max ||
        s->response_len > IDEMI_CONFIG_OF(t)->response_max)
        return IDEMI_BROKEN_K2;
    if (!s->attempts || !idemi_check_token(t, idemi_slot_token(s)))
        return IDEMI_BROKEN_K4;
    if (s->flags & IDEMI_ENDLESS)
        return 0;
    if (status == IDEM_IN_PROGRESS && s->time - t->clock > IDEM_LEASE_MAX &&
        t->clock - s->time > IDEM_RETENTION_MAX + IDEMI_SWEEP_MS)
        return IDEMI_BROKEN_C1;
    if (status != IDEM_IN_PROGRESS &&
        t->clock - s->time > s->retention + IDEMI_SWEEP_MS)
        return IDEMI_BROKEN_C2;
    if (idemi_slot_has_expired(t, s) &&
        t->clock - idemi_slot_expiry(t, s) > t->clock - t->swept)
        return IDEMI_BROKEN_C3;
    expiry = idemi_sender_is_outdated(t, s) ? t->clock
                                            : idemi_slot_expiry(t, s);
    if (idemi_clock_rank(t->clock, t->soonest) >
        idemi_clock_rank(t->clock, expiry))
        return IDEMI_BROKEN_O3;
    return 0;
}

/* A slot in use: the search for its key must find its word. */
static int idemi_check_probe(const idem_table *t, unsigned slot)
{
    idem_slot *s = idemi_slot_at(t, slot);
    unsigned at = idemi_index_home(t, s->hash);
    unsigned offset = 0, other;
    idemi_id id;

    idemi_index_identify(t->config, s, idemi_slot_id(s), &id);
    if (s->hash != id.hash)
        return IDEMI_BROKEN_T2;
    while ((other = idemi_index_slot(t, at)) != slot) {
        if (other == IDEMI_NONE || ++offset == idemi_index_size(t))
            return IDEMI_BROKEN_T2;
        at = idemi_index_next(t, at);
    }
    if (!idemi_index_has_hash(t, at, slot, s->hash) ||
        idemi_index_offset(t, at, slot) != offset)
        return IDEMI_BROKEN_T2;
    return 0;
}

/* The states of a journal, R6, and the ring. */
static int idemi_check_journal(const idem_table *t)
{
    const idem_journal *j = t->journal;
    const idem_storage *m = IDEMI_CONFIG_OF(t)->storage;
    const uint32_t *needs = idemi_items_needs(t);
    idemi_item item = idemi_items_highest(t) + 1;

    if (IDEMI_SECTOR_SIZE(j) != m->sector_size ||
        IDEMI_SECTOR_COUNT(j) != m->sector_count ||
        IDEMI_GRANULE(j) != m->prog_size)
        return IDEMI_BROKEN_SIZES;
    if (j->at > IDEMI_SECTOR_SIZE(j) || j->end > j->at ||
        j->head > j->sequence ||
        (!j->rotated && (j->at < IDEMI_SECTOR_SIZE(j) || j->prepared)))
        return IDEMI_BROKEN_STATES;
    while (item-- > 0)
        if (needs[item] < j->tail)
            return IDEMI_BROKEN_R6;
    return j->sequence + 1 - j->tail > IDEMI_SECTOR_COUNT(j)
               ? IDEMI_BROKEN_RING
               : 0;
}

typedef struct idemi_tally {
    uint32_t used, pending, in_progress;    /* slots */
    uint32_t counted;                       /* by entries of senders */
    uint32_t listed;                        /* in the order and the free list */
    uint32_t own;                           /* in the orders of senders */
} idemi_tally;

/* All slots, by themselves; counts them. */
static int idemi_check_slots(const idem_table *t, idemi_tally *tally)
{
    unsigned slot;

    for (slot = 0; slot < IDEMI_CAPACITY(t); slot++) {
        const idem_slot *s = idemi_slot_at(t, slot);
        int broken;
        if (!idemi_check_needs(t, slot, s->flags != 0))
            return IDEMI_BROKEN_R6;
        if (!s->flags)
            continue;
        tally->used++;
        tally->pending += (s->flags & IDEMI_UNDELIVERED) != 0;
        tally->in_progress += !(s->flags & IDEMI_FINISHED);
        tally->counted += !(s->flags & IDEMI_UNCOUNTED);
        tally->own += (s->flags & (IDEMI_FINISHED | IDEMI_UNCOUNTED |
                                   IDEMI_UNDELIVERED)) == IDEMI_FINISHED;
        broken = idemi_check_slot(t, slot);
        if (!broken)
            broken = idemi_check_probe(t, slot);
        if (broken)
            return broken;
    }
    return 0;
}

/* The number of slots in the order, or in a sender's own; or IDEMI_NONE if one
   is not in its place, or does not belong there. */
static unsigned idemi_check_order(const idem_table *t, const idem_sender *e)
{
    const idem_link *links = e ? t->own : t->links;
    unsigned ends = e ? idemi_sender_item(t, e) : IDEMI_CAPACITY(t);
    unsigned slot = ends, listed = 0;
    uint32_t age = UINT32_MAX;

    while (links[slot].newer != ends) {
        unsigned older = slot;
        idem_slot *s;
        slot = links[slot].newer;
        // A slot that links back to its predecessor cannot come twice.
        if (slot >= IDEMI_CAPACITY(t) || links[slot].older != older)
            return IDEMI_NONE;
        listed++;
        s = idemi_slot_at(t, slot);
        if (!(s->flags & IDEMI_FINISHED) || idemi_order_age(t, slot) > age ||
            (e && (s->flags & IDEMI_UNDELIVERED || idemi_sender_of(t, s) != e)))
            return IDEMI_NONE;
        age = idemi_order_age(t, slot);
    }
    return links[ends].older == slot ? listed : IDEMI_NONE;
}

/* O2; and all slots are listed or in progress. */
static int idemi_check_free(const idem_table *t, idemi_tally *tally)
{
    unsigned slot = t->free;

    for (; slot != IDEMI_CAPACITY(t); slot = t->links[slot].newer)
        if (slot > IDEMI_CAPACITY(t) || idemi_slot_at(t, slot)->flags ||
            ++tally->listed > IDEMI_CAPACITY(t))
            return IDEMI_BROKEN_O2;
    return tally->listed + tally->in_progress == IDEMI_CAPACITY(t)
               ? 0
               : IDEMI_BROKEN_O2;
}

/* O4 and N1 to N3. */
static int idemi_check_senders(const idem_table *t, const idemi_tally *tally)
{
    uint32_t counted = 0, listed = 0;
    unsigned sender;

    for (sender = 1; sender <= IDEMI_SENDERS(t); sender++) {
        idem_sender *e = idemi_sender_at(t, sender);
        uint64_t name = idemi_basics_join(e->name);
        int has_floor = idemi_basics_join(e->floor) != 0;
        counted += e->keys;
        if (name && idemi_sender_find(t, name) != e)
            return IDEMI_BROKEN_N2;
        // An entry that was never used has no ends yet.
        if (IDEMI_OWN(t) && name) {
            unsigned more = idemi_check_order(t, e);
            if (more == IDEMI_NONE)
                return IDEMI_BROKEN_O4;
            listed += more;
        }
        if (!(has_floor && e->unsaved) &&
            !idemi_check_needs(t, idemi_sender_item(t, e), has_floor))
            return IDEMI_BROKEN_N1;
    }
    if (IDEMI_SENDERS(t) && counted != tally->counted)
        return IDEMI_BROKEN_N3;
    return IDEMI_OWN(t) && listed != tally->own ? IDEMI_BROKEN_O4 : 0;
}

static int idemi_check_all(const idem_table *t)
{
    idemi_tally tally = { 0, 0, 0, 0, 0, 0 };
    uint32_t words = 0;
    unsigned at;
    int broken;

    if (IDEMI_CAPACITY(t) != IDEMI_CONFIG_OF(t)->capacity ||
        IDEMI_STRIDE(t) != IDEMI_SLOT_SIZE(IDEMI_CONFIG_OF(t)->key_max,
                                           IDEMI_CONFIG_OF(t)->response_max) ||
        t->state_len > IDEMI_CONFIG_OF(t)->state_max)
        return IDEMI_BROKEN_SIZES;
    if (t->clock - t->swept >= IDEMI_SWEEP_MS)
        return IDEMI_BROKEN_C4;
    broken = idemi_check_slots(t, &tally);
    if (broken)
        return broken;
    // Finished slots that are not listed make O2 fail.
    tally.listed = idemi_check_order(t, NULL);
    if (tally.listed == IDEMI_NONE)
        return IDEMI_BROKEN_O1;
    for (at = 0; at < idemi_index_size(t); at++)
        words += t->index[at].slot != 0;
    if (words != tally.used)
        return IDEMI_BROKEN_T1;
    if (tally.used != t->used || tally.pending != t->pending)
        return IDEMI_BROKEN_K3;
    broken = idemi_check_senders(t, &tally);
    if (!broken && IDEMI_JOURNAL(t))
        broken = idemi_check_journal(t);
    return broken ? broken : idemi_check_free(t, &tally);
}

/* ---------------------------------------------------------------------------
   >>rules     for a storage and a configuration, each with the text of
               idem_explain for one that breaks it
   ------------------------------------------------------------------------ */

static int idemi_rules_valid_lease(uint32_t lease_ms)
{
    return lease_ms <= IDEM_LEASE_MAX || lease_ms == IDEM_LEASE_NONE;
}

#define IDEMI_STORAGE_RULES(RULE)                                              \
    RULE(m->read && m->prog, "storage.read, prog: both are needed")            \
    RULE(m->erase || !m->erasing,                                              \
         "storage.erasing: polls an erase that is missing")                    \
    RULE(m->sync || !m->sync_unlocked,                                         \
         "storage.sync_unlocked: needs sync")                                  \
    RULE(m->erased == 0xFF || !m->erased, "storage.erased: 0xFF or 0x00")      \
    RULE(m->prog_size - 1u < 256 && !(m->prog_size & (m->prog_size - 1)),      \
         "storage.prog_size: 1, 2, 4 .. 256")                                  \
    RULE(m->sector_size - 1 < 0x40000 &&                                       \
             !(m->sector_size & (m->prog_size - 1u)),                          \
         "storage.sector_size: a multiple of prog_size, at most 262,144")      \
    RULE(m->sector_count - 5 <= 65535 - 5,                                     \
         "storage.sector_count: 5 to 65,535")                                  \
    RULE((m->sector_size + 3) / 4 * m->sector_count < UINT32_C(1) << 30,       \
         "storage.sector_count: less than 4 GB in all")
#ifdef IDEM_CONFIG
IDEMI_ASSUME(nothing_in_front_of_the_secret_is_padding,
             offsetof(idem_config, secret) ==
                 5 * sizeof(uint32_t) + 6 * sizeof(uint16_t) +
                     2 * sizeof(void *) + 2 * sizeof(void (*)(void)));

#define IDEMI_BUILT_IN_RULE(RULE)                                              \
    RULE(IDEM_MEMCMP(given, &IDEM_CONFIG, offsetof(idem_config, secret)) == 0, \
         "config: neither IDEM_CONFIG nor a copy with another secret")
#else
#define IDEMI_BUILT_IN_RULE(RULE)
#endif
#define IDEMI_CONFIG_RULES(RULE)                                               \
    IDEMI_BUILT_IN_RULE(RULE)                                                  \
    RULE(idemi_rules_valid_secret(given),                                      \
         "secret: 16 random bytes, neither half zero")                         \
    RULE(config->capacity - 1 < IDEM_CAPACITY_MAX,                             \
         "capacity: at least 1, at most IDEM_CAPACITY_MAX")                    \
    RULE(config->key_max - 1u < 255, "key_max: 1 to 255")                      \
    RULE(config->max_attempts <= 255, "max_attempts: at most 255")             \
    RULE(idemi_rules_valid_lease(config->lease_ms),                            \
         "lease_ms: over IDEM_LEASE_MAX, and not IDEM_LEASE_NONE")             \
    RULE(config->retention_ms <= IDEM_RETENTION_MAX,                           \
         "retention_ms: over IDEM_RETENTION_MAX")                              \
    RULE(config->full <= IDEM_EVICT_OLDEST,                                    \
         "full: IDEM_REJECT or IDEM_EVICT_OLDEST")                             \
    RULE(config->senders <= IDEM_SENDERS_MAX,                                  \
         "senders: over IDEM_SENDERS_MAX")                                     \
    RULE(!config->quota || config->senders,                                    \
         "quota: is of senders, and there are none")                           \
    RULE(config->durability <= IDEM_BATCH,                                     \
         "durability: IDEM_EACH or IDEM_BATCH")                                \
    RULE(!config->lock == !config->unlock, "lock, unlock: both or neither")
#define IDEMI_RULE_HOLDS(condition, text) (condition) &&

static int idemi_rules_valid_storage(const idem_storage *m)
{
    return IDEMI_STORAGE_RULES(IDEMI_RULE_HOLDS) 1;
}

/* True if neither half of the secret is zero.  FNV has none. */
IDEMI_INLINE int idemi_rules_valid_secret(const idem_config *config)
{
    unsigned char first = IDEM_HASH == IDEM_HASH_FNV;
    unsigned char last = first;
    int i;

    for (i = 0; i < 8; i++) {
        first |= config->secret[i];
        last |= config->secret[i + 8];
    }
    return first && last;
}

static int idemi_rules_valid_config(const idem_config *given)
{
    const idem_config *config = IDEMI_GIVEN(given);

    return IDEMI_CONFIG_RULES(IDEMI_RULE_HOLDS)(
        !IDEMI_STORAGE(config) || idemi_rules_valid_storage(config->storage));
}

/* ---------------------------------------------------------------------------
   >>explain   the fault of a configuration, in words

   The order of checks is that of idem_open.  Texts are arrays, which go with a
   function that nobody calls: some linkers keep all literals, and AVR in RAM.
   ------------------------------------------------------------------------ */
#define IDEMI_RETURN_TEXT(text) { static const char a[] = text; return a; }
#define IDEMI_EXPLAIN(wrong, text) if (wrong) IDEMI_RETURN_TEXT(text)
#define IDEMI_RULE_EXPLAIN(condition, text) IDEMI_EXPLAIN(!(condition), text)

static const char *idemi_explain_config(const idem_config *given)
{
    const idem_config *config = IDEMI_GIVEN(given);

    IDEMI_CONFIG_RULES(IDEMI_RULE_EXPLAIN)
    return NULL;
}

static const char *idemi_explain_storage(const idem_storage *m)
{
    IDEMI_STORAGE_RULES(IDEMI_RULE_EXPLAIN)
    return NULL;
}

/* The sectors that a configuration needs; 0: they are too small. */
static uint32_t idemi_explain_sectors(const idem_config *config)
{
    const idem_storage *m = config->storage;
    uint32_t keys = config->capacity + config->senders;

    return IDEM_SECTORS(keys, config->key_max, config->response_max,
                        config->state_max, m->sector_size, m->prog_size);
}

static const char *idemi_explain_room(const idem_config *config)
{
    uint32_t sectors = idemi_explain_sectors(config);

    IDEMI_EXPLAIN(!sectors, "storage.sector_size: too small for a header, "
                            "three of the longest records and the state")
    IDEMI_EXPLAIN(config->storage->sector_count < sectors,
                  "storage.sector_count: too few for the keys; "
                  "see IDEM_SECTORS and table.needed")
    return NULL;
}

/* The field in which a whole header of another journal differs. */
static const char *idemi_explain_header(const idem_config *config,
                                        const unsigned char *p)
{
    const idem_storage *m = config->storage;

    IDEMI_EXPLAIN(p[4] != IDEMI_FORMAT_NUMBER,
                  "version: the journal is of another version of idem.h")
    IDEMI_EXPLAIN(p[5] != IDEM_HASH,
                  "hash: the journal was written with another IDEM_HASH")
    IDEMI_EXPLAIN(idemi_basics_load32(p + 4) >> 16 != m->prog_size,
                  "geometry: the journal was written with another prog_size")
    IDEMI_EXPLAIN((idemi_basics_load32(p + 8) & 0xFFFFFF) != m->sector_size,
                  "geometry: the journal was written with another sector_size")
    IDEMI_EXPLAIN(p[11] != m->erased,
                  "geometry: the journal was written with another erased")
    IDEMI_EXPLAIN((idemi_basics_load32(p + 12) & 0xFFFF) != m->sector_count,
                  "geometry: the journal was written with another "
                  "sector_count")
    IDEMI_RETURN_TEXT("secret: the journal was written with another secret")
}

/* NULL if a header of this journal stands in its sector.  If not, the text for
   the first header of another journal, or of this one if it was moved, at
   any offset; or for the first byte that is not blank (>>recovery); or NULL. */
static const char *idemi_explain_journal(const idem_config *config)
{
    static const char unread[] = "the storage cannot be read";
    static const char foreign[] =
        "not a journal: the storage holds something else";
    const idem_storage *m = config->storage;
    const char *text = NULL;
    uint32_t layout = idemi_header_layout(config);
    uint32_t size = m->sector_size * m->sector_count, at;
    unsigned char block[2 * IDEMI_HEADER], *p = block;
    uint32_t have = 0;          // bytes in the block; 0: it cannot be read

    for (at = 0; at < size; at += m->sector_size)
        if ((m->read)(m->ctx, at, p, IDEMI_HEADER) == 0 &&
            idemi_reading_mend_header(config, layout, p) &&
            idemi_basics_load32(p + IDEMI_HEADER_SAME) % m->sector_count ==
                at / m->sector_size)
            return NULL;
    for (at = 0; at < size; at++) {
        // A block, and the next one: a header may end there.
        if (at % IDEMI_HEADER == 0) {
            uint32_t left = size - at;
            p = block;
            have = idemi_basics_min(left, 2 * IDEMI_HEADER);
            if ((m->read)(m->ctx, at, block, have) != 0) {
                have = idemi_basics_min(left, IDEMI_HEADER);
                if ((m->read)(m->ctx, at, block, have) != 0)
                    have = 0;
            }
        }
        if (have >= at % IDEMI_HEADER + IDEMI_HEADER &&
            idemi_header_is_whole(p)) {
            text = idemi_explain_header(config, p);
            IDEMI_EXPLAIN(idemi_reading_mend_header(config, layout, p),
                          "geometry: the journal was written at another place")
            return text;
        }
        if (!text && at / m->sector_size - 1 >= IDEMI_FIRST_SECTORS &&
            (!have || *p != m->erased))
            text = have ? foreign : unread;
        p++;
    }
    return text;
}

/* A fault that idem_open accepts. */
static const char *idemi_explain_quota(const idem_config *config)
{
    uint32_t quota = idemi_default(config->quota, config->capacity, 0);

    IDEMI_EXPLAIN(config->full == IDEM_EVICT_OLDEST && config->senders > 1 &&
                      quota > config->capacity / config->senders,
                  "quota: x senders is over the capacity, so that a sender can "
                  "evict the outcomes of others (S9); idem_open takes it")
    return NULL;
}

/* ---------------------------------------------------------------------------
   >>public    validate, lock, do, unlock
   ------------------------------------------------------------------------ */

/* The answer to every caller's mistake. */
static int idemi_public_refuse(void)
{
    IDEM_MISUSE();
    return IDEM_E_ARG;
}

IDEMI_INLINE int idemi_public_is_open(const idem_table *t)
{
    return t && t->magic == IDEMI_MAGIC;
}

/* Takes the lock for a call whose arguments are `valid`, on an open table.
   IDEM_OK; or IDEM_E_ARG or IDEM_E_LOCK without the lock. */
IDEMI_INLINE int idemi_public_enter(idem_table *t, int valid)
{
    const idem_config *config;

    if (!valid || !idemi_public_is_open(t))
        return idemi_public_refuse();
    config = IDEMI_CONFIG_OF(t);
    if (config->lock && (config->lock)(config->lock_ctx) != 0)
        return IDEM_E_LOCK;
    if (t->inside) {
        if (config->unlock)
            (config->unlock)(config->lock_ctx);
        return IDEM_E_LOCK;
    }
    t->inside = 1;
    return IDEM_OK;
}

/* As idemi_public_enter, and follows the tick. */
static int idemi_public_enter_at(idem_table *t, int valid, uint32_t now_ms)
{
    int result = idemi_public_enter(t, valid);

    if (result == IDEM_OK)
        idemi_keys_tick(t, now_ms);
    return result;
}

/* Gives the lock back at the end of a call; returns its result. */
static int idemi_public_leave(idem_table *t, int result)
{
    const idem_config *config = IDEMI_CONFIG_OF(t);

#ifdef IDEM_DEBUG
    IDEM_ASSERT(idemi_check_all(t) == 0);
#endif
    t->inside = 0;
    if (config->unlock)
        (config->unlock)(config->lock_ctx);
    return result;
}

static int idemi_public_valid_bytes(const void *data, size_t len)
{
    return data || !len;
}

/* Validates scope and key (keeps K2), and hashes them. */
IDEMI_INLINE int idemi_public_query(const idem_table *t, idemi_query *q,
                                    const idem_request *rq)
{
    size_t key_max, key_len;

    if (!idemi_public_is_open(t) || !rq ||
        !idemi_public_valid_bytes(rq->key, rq->key_len) ||
        !idemi_public_valid_bytes(rq->scope, rq->scope_len) ||
        (rq->sequence && rq->key_len))
        return idemi_public_refuse();
    // These are mistakes of the sender, not of the caller.
    if (rq->sequence ? !IDEMI_SENDERS(t) : !rq->key_len)
        return IDEM_E_ARG;
    key_max = IDEMI_CONFIG_OF(t)->key_max;
    key_len = rq->sequence ? IDEMI_NUMBER_BYTES : rq->key_len;
    if (key_len > key_max || rq->scope_len > key_max - key_len)
        return IDEM_E_TOO_LARGE;
    q->rq = rq;
    q->id.scope = (const unsigned char *)rq->scope;
    q->id.scope_len = (uint8_t)rq->scope_len;
    q->id.key = (const unsigned char *)rq->key;
    q->id.key_len = (uint8_t)key_len;
    if (rq->sequence) {
        q->id.key_len = 0;
        idemi_basics_store32(q->number, rq->sequence);
        idemi_basics_store32(q->number + 4, rq->epoch);
        q->id.key = q->number;
    }
    idemi_index_hash_id(t->config, &q->id);
    idemi_index_prefetch(t, q->id.hash);
    return IDEM_OK;
}

/* As idemi_public_query, for a request that begins: validates the other fields,
   too, and hashes the payload. */
static int idemi_public_request(const idem_table *t, idemi_query *q,
                                const idem_request *rq)
{
    int result = idemi_public_query(t, q, rq);
    uint64_t fingerprint;

    if (result != IDEM_OK)
        return result;
    if (!idemi_public_valid_bytes(rq->payload, rq->payload_len) ||
        !idemi_rules_valid_lease(rq->lease_ms) ||
        rq->retention_ms > IDEM_RETENTION_MAX)
        return idemi_public_refuse();
    if (rq->response_size > IDEMI_CONFIG_OF(t)->response_max)
        return IDEM_E_TOO_LARGE;
    fingerprint = rq->fingerprint;
    if (!rq->has_fingerprint)
        fingerprint =
            idemi_hash_strong(t->config, rq->payload, rq->payload_len);
    idemi_basics_split(q->fresh.fingerprint, fingerprint);
    return IDEM_OK;
}

/* The part of idem_open and idem_format before the storage is read.  (Parts: a
   program that never formats does not link that.)  The table of another build
   may be smaller: it is not touched. */
static int idemi_public_prepare(idem_table *table, const idem_config *config,
                                void *memory, size_t size, uint32_t build)
{
    int result;

    if (!table || build != IDEM_BUILD)
        return idemi_public_refuse();
    IDEM_MEMSET((void *)table, 0, sizeof *table);
    if (!config || !idemi_rules_valid_config(config))
        return idemi_public_refuse();
    table->config = config;
    result = idemi_opening_memory(table, (unsigned char *)memory, size);
    if (result < 0)
        return result;
    if (!IDEMI_JOURNAL(table))
        return IDEM_OK;
    return idemi_opening_geometry(table);
}

/* The part after that: reads the journal, unless `result` is a failure. */
static int idemi_public_load(idem_table *table, int result, uint32_t now_ms)
{
    if (result == IDEM_OK && IDEMI_JOURNAL(table))
        result = idemi_opening_journal(table);
    if (result == IDEM_OK)
        idemi_opening_finish(table, now_ms);
    return result;
}

IDEM_API int idem_open_(idem_table *table, const idem_config *config,
                        void *memory, size_t size, uint32_t now_ms,
                        uint32_t build)
{
    int result = idemi_public_prepare(table, config, memory, size, build);

    return idemi_public_load(table, result, now_ms);
}

IDEM_API int idem_format_(idem_table *table, const idem_config *config,
                          void *memory, size_t size, uint32_t now_ms,
                          uint32_t build)
{
    int result = idemi_public_prepare(table, config, memory, size, build);

    if (result == IDEM_OK)
        result = IDEMI_JOURNAL(table) ? idemi_opening_format(table)
                                      : idemi_public_refuse();
    return idemi_public_load(table, result, now_ms);
}

/* These call idemi_explain_config, not idemi_rules_valid_config: with a second
   caller that would no longer be inlined into idem_open. */
IDEM_API size_t idem_memory_size(const idem_config *config)
{
    idem_table t;

    if (!config || idemi_explain_config(config) ||
        (IDEMI_STORAGE(config) && idemi_explain_storage(config->storage)))
        return 0;
    return idemi_public_prepare(&t, config, NULL, 0, IDEM_BUILD) ==
                   IDEM_E_MEMORY
               ? t.needed
               : 0;
}

IDEM_API uint32_t idem_sector_count(const idem_config *config)
{
    idem_storage m;

    if (!config || !IDEMI_STORAGE(config) || idemi_explain_config(config))
        return 0;
    m = *config->storage;
    m.sector_count = 5;
    if (idemi_explain_storage(&m))
        return 0;
    m.sector_count = idemi_explain_sectors(config);
    return idemi_explain_storage(&m) ? 0 : m.sector_count;
}

IDEMI_FLATTEN
IDEM_API int idem_begin(idem_table *table, idem_claim *claim, idem_reply *reply,
                        const idem_request *request, uint32_t now_ms)
{
    idemi_query q;
    int result;

    if (claim)
        IDEM_MEMSET(claim, 0, sizeof *claim);
    if (!claim || !reply)
        return idemi_public_refuse();
    IDEM_MEMSET(reply, 0, sizeof *reply);
    result = idemi_public_request(table, &q, request);
    if (result == IDEM_OK)
        result = idemi_public_enter_at(table, 1, now_ms);
    if (result != IDEM_OK)
        return result;
    q.claim = claim;
    q.reply = reply;
    return idemi_public_leave(table, idemi_command_begin(table, &q));
}

/* Three passes, so that the words of the index are fetched at the same time,
   and then the slots.  Until it is begun, a valid request's answer is IDEM_OK,
   which no begin gives. */
IDEMI_FLATTEN
IDEM_API int idem_begin_many(idem_table *table, int *answers,
                             idem_reply *replies, const idem_request *requests,
                             size_t count, uint32_t now_ms)
{
    idemi_query q[IDEM_MANY];
    size_t i, left = 0;
    int result;

    if (!answers || !replies || !requests || count > IDEM_MANY ||
        !idemi_public_is_open(table))
        return idemi_public_refuse();
    IDEM_MEMSET(replies, 0, count * sizeof *replies);
    for (i = 0; i < count; i++) {
        q[i].claim = &replies[i].claim;
        q[i].reply = &replies[i];
        answers[i] = idemi_public_request(table, &q[i], &requests[i]);
        left += answers[i] == IDEM_OK;
    }
    if (!left)
        return IDEM_OK;
    result = idemi_public_enter_at(table, 1, now_ms);
    for (i = 0; i < count; i++)
        if (answers[i] == IDEM_OK && result < 0)
            answers[i] = result;
        else if (answers[i] == IDEM_OK)
            idemi_index_prefetch_slot(table, q[i].id.hash);
    if (result < 0)
        return result;
    for (i = 0; i < count; i++)
        if (answers[i] == IDEM_OK)
            answers[i] = idemi_command_begin(table, &q[i]);
    return idemi_public_leave(table, IDEM_OK);
}

static int idemi_public_valid_outcome(const idem_outcome *outcome)
{
    return outcome &&
           idemi_public_valid_bytes(outcome->response, outcome->response_len) &&
           idemi_public_valid_bytes(outcome->state, outcome->state_len);
}

IDEMI_FLATTEN
IDEM_API int idem_complete(idem_table *table, const idem_claim *claim,
                           const idem_outcome *outcome, uint32_t now_ms)
{
    int result = idemi_public_enter_at(
        table, claim && idemi_public_valid_outcome(outcome), now_ms);

    if (result < 0)
        return result;
    return idemi_public_leave(table,
                              idemi_command_complete(table, claim, outcome));
}

IDEM_API int idem_release(idem_table *table, const idem_claim *claim,
                          uint32_t now_ms)
{
    int result = idemi_public_enter_at(table, claim != NULL, now_ms);

    if (result < 0)
        return result;
    result = idemi_command_check_claim(table, claim)
                 ? idemi_command_release(table, (unsigned)claim->slot)
                 : IDEM_E_FENCED;
    return idemi_public_leave(table, result);
}

IDEM_API int idem_renew(idem_table *table, const idem_claim *claim,
                        uint32_t lease_ms, uint32_t now_ms)
{
    int result = idemi_public_enter_at(
        table, claim && idemi_rules_valid_lease(lease_ms), now_ms);
    idem_slot *s;

    if (result < 0)
        return result;
    s = idemi_command_check_claim(table, claim);
    if (s)
        idemi_keys_lengthen_lease(table, s, lease_ms);
    return idemi_public_leave(table, s ? IDEM_OK : IDEM_E_FENCED);
}

IDEM_API int idem_maintain(idem_table *table, uint32_t now_ms)
{
    int result = idemi_public_enter_at(table, 1, now_ms);

    if (result < 0)
        return result;
    return idemi_public_leave(table, idemi_command_maintain(table));
}

/* Syncs without the lock.  If the next record still goes to the same position,
   nothing was written meanwhile, and all is durable.  After a failure the sync
   under the lock fails too, and stops all writing. */
static int idemi_public_sync_unlocked(idem_table *t)
{
    const idem_storage *m = IDEMI_CONFIG_OF(t)->storage;
    idem_journal *j = t->journal;
    uint32_t position = idemi_storage_position(j);
    int failed, result;

    (void)idemi_public_leave(t, IDEM_OK);
    failed = (m->sync_unlocked)(m->ctx);
    result = idemi_public_enter(t, 1);
    if (result < 0)
        return result;
    if (failed)
        j->unsynced |= IDEMI_UNSYNCED;
    else if (idemi_storage_position(j) == position)
        idemi_storage_note_synced(j);
    else if (idemi_storage_is_unsynced(j, position))
        j->from.durable = position;
    return idemi_public_leave(t, failed ? idemi_storage_sync(t) : IDEM_OK);
}

IDEM_API int idem_sync(idem_table *table)
{
    int result = idemi_public_enter(table, 1);

    if (result < 0)
        return result;
    if (!IDEMI_JOURNAL(table))
        return idemi_public_leave(table, result);
    if (table->journal->broken || !table->journal->unsynced ||
        !IDEMI_CONFIG_OF(table)->storage->sync_unlocked)
        return idemi_public_leave(table, idemi_storage_sync(table));
    return idemi_public_sync_unlocked(table);
}

IDEM_API int idem_elapse(idem_table *table, uint32_t off_ms)
{
    int result = idemi_public_enter(table, 1);

    if (result < 0)
        return result;
    idemi_keys_advance(table, off_ms);
    return idemi_public_leave(table, IDEM_OK);
}

/* Takes the lock, and finds the slot of a request's key.  If there is none,
   gives the lock back: IDEM_E_NOT_FOUND. */
static int idemi_public_lookup(idem_table *table, unsigned *slot,
                               const idem_request *request, uint32_t now_ms)
{
    idemi_query q;
    int result = idemi_public_query(table, &q, request);

    if (result == IDEM_OK)
        result = idemi_public_enter_at(table, 1, now_ms);
    if (result != IDEM_OK)
        return result;
    *slot = idemi_index_find(table, &q.id);
    if (idemi_command_drop_expired(table, *slot))
        return idemi_public_leave(table, IDEM_E_NOT_FOUND);
    return IDEM_OK;
}

IDEM_API int idem_find(idem_table *table, idem_info *info,
                       const idem_request *request, uint32_t now_ms)
{
    unsigned slot;
    int result;

    if (!info)
        return idemi_public_refuse();
    result = idemi_public_lookup(table, &slot, request, now_ms);
    if (result != IDEM_OK)
        return result;
    idemi_command_describe(table, slot, info);
    return idemi_public_leave(table, IDEM_OK);
}

IDEM_API int idem_forget(idem_table *table, const idem_request *request,
                         uint32_t now_ms)
{
    unsigned slot;
    int result;

    // Neither a key nor a number: a sender
    if (idemi_public_is_open(table) && IDEMI_SENDERS(table) && request &&
        !request->key_len && !request->sequence &&
        idemi_public_valid_bytes(request->scope, request->scope_len)) {
        result = idemi_public_enter_at(table, 1, now_ms);
        if (result < 0)
            return result;
        return idemi_public_leave(
            table, idemi_command_forget_sender(table, request));
    }
    result = idemi_public_lookup(table, &slot, request, now_ms);
    if (result != IDEM_OK)
        return result;
    if (idemi_keys_is_live(table, idemi_slot_at(table, slot)))
        return idemi_public_leave(table, IDEM_BUSY);
    return idemi_public_leave(table, idemi_command_release(table, slot));
}

IDEM_API int idem_next(idem_table *table, idem_info *info, uint32_t now_ms)
{
    int result = idemi_public_enter_at(table, info != NULL, now_ms);
    uint32_t slot;

    if (result < 0)
        return result;
    for (slot = info->attempts ? info->claim.slot + 1 : 0;
         slot < IDEMI_CAPACITY(table); slot++) {
        idem_slot *s = idemi_slot_at(table, (unsigned)slot);
        if (!s->flags || idemi_keys_has_expired(table, s))
            continue;
        idemi_command_describe(table, (unsigned)slot, info);
        return idemi_public_leave(table, IDEM_OK);
    }
    return idemi_public_leave(table, IDEM_E_NOT_FOUND);
}

IDEM_API int idem_pending(idem_table *table, idem_info *info, uint32_t now_ms)
{
    unsigned slot;
    int result = idemi_public_enter_at(table, info != NULL, now_ms);

    if (result < 0)
        return result;
    slot = IDEMI_CAPACITY(table);
    if (idemi_command_slot_of(table, &info->claim, IDEMI_FINISHED))
        slot = (unsigned)info->claim.slot;
    while ((slot = table->links[slot].newer) != IDEMI_CAPACITY(table)) {
        const idem_slot *s = idemi_slot_at(table, slot);
        if (!(s->flags & IDEMI_UNDELIVERED) || idemi_slot_has_expired(table, s))
            continue;
        idemi_command_describe(table, slot, info);
        return idemi_public_leave(table, IDEM_OK);
    }
    return idemi_public_leave(table, IDEM_E_NOT_FOUND);
}

IDEM_API int idem_delivered(idem_table *table, const idem_claim *claim)
{
    int result = idemi_public_enter(table, claim != NULL);

    if (result < 0)
        return result;
    return idemi_public_leave(table, idemi_command_deliver(table, claim));
}

IDEM_API int idem_response(idem_table *table, void *dst, size_t *len,
                           const idem_claim *claim, size_t at)
{
    int result = idemi_public_enter(
        table, len && claim && idemi_public_valid_bytes(dst, *len));

    if (result < 0)
        return result;
    return idemi_public_leave(
        table, idemi_command_response(table, dst, len, claim, at));
}

IDEM_API int idem_state(idem_table *table, void *dst, size_t *len)
{
    size_t size;
    int result =
        idemi_public_enter(table, len && idemi_public_valid_bytes(dst, *len));

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
    uint32_t until;
    unsigned i;
    int result = idemi_public_enter_at(table, horizon_ms != NULL, now_ms);

    if (result < 0)
        return result;
    until = table->clock - idemi_default_retention(table, 0);
    idemi_sender_raise_evicted(table, &until, table->evicted_until);
    for (i = 1; i <= IDEMI_SENDERS(table); i++)
        idemi_sender_raise_evicted(table, &until,
                                   idemi_sender_at(table, i)->until.evicted);
    *horizon_ms = table->clock - until;
    return idemi_public_leave(table, IDEM_OK);
}

IDEM_API int idem_uncertain(idem_table *table, uint32_t *left_ms,
                            uint32_t now_ms)
{
    int result = idemi_public_enter_at(table, left_ms != NULL, now_ms);

    if (result < 0)
        return result;
    *left_ms = 0;
    if (IDEMI_JOURNAL(table) && idemi_journal_is_uncertain(table))
        *left_ms = table->journal->uncertain - table->clock;
    return idemi_public_leave(table, IDEM_OK);
}

/* Its texts are arrays, as in >>explain. */
IDEM_API const char *idem_text(int result)
{
#define IDEMI_RESULT_CASE(name, value, text) case name: IDEMI_RETURN_TEXT(text)

    switch (result) {
        IDEM_RESULTS(IDEMI_RESULT_CASE)
    default:
        IDEMI_RETURN_TEXT("not a result of a call on a table")
    }
}

IDEM_API const char *idem_explain(const idem_config *config)
{
    const char *text;

    IDEMI_EXPLAIN(!config, "there is no configuration")
    text = idemi_explain_config(config);
    if (!text && IDEMI_STORAGE(config))
        text = idemi_explain_storage(config->storage);
    if (!text && IDEMI_STORAGE(config))
        text = idemi_explain_room(config);
    if (!text && IDEMI_STORAGE(config))
        text = idemi_explain_journal(config);
    return text ? text : idemi_explain_quota(config);
}

IDEM_API int idem_check(const idem_table *table)
{
    if (!idemi_public_is_open(table))
        return idemi_public_refuse();
    return idemi_check_all(table);
}

IDEM_API void idem_fingerprint_init(idem_fingerprint_state *state,
                                    const idem_config *config)
{
    idemi_hash_init(&state->state, config, 1);
}

IDEM_API void idem_fingerprint_update(idem_fingerprint_state *state,
                                      const void *data, size_t len)
{
    idemi_hash_update(&state->state, data, len);
}

IDEM_API uint64_t idem_fingerprint_final(idem_fingerprint_state *state)
{
    return idemi_hash_final(&state->state);
}

/* ---------------------------------------------------------------------------
   >>run       begin, the handler, complete or release
   ------------------------------------------------------------------------ */

/* Sets the reply to an outcome that was stored just now, as a replay would. */
static void idemi_run_set_reply(idem_reply *reply, const idem_request *rq,
                                const idem_outcome *outcome)
{
    reply->status = outcome->failed ? IDEM_FAILED : IDEM_COMPLETED;
    reply->code = outcome->code;
    reply->response_len = outcome->response_len;
    if (outcome->response_len && rq->buffer &&
        rq->buffer != outcome->response &&
        outcome->response_len <= rq->buffer_size)
        IDEM_MEMCPY(rq->buffer, outcome->response, outcome->response_len);
}

/* Completes with a handler's outcome, even if that is invalid: the effect has
   happened. */
static int idemi_run_handled(idem_table *table, idem_reply *reply,
                             const idem_request *rq,
                             idem_outcome *outcome, uint32_t now_ms)
{
    int result = idemi_public_valid_outcome(outcome)
                     ? idem_complete(table, &reply->claim, outcome, now_ms)
                     : IDEM_E_TOO_LARGE;

    if (result == IDEM_E_TOO_LARGE) {
        outcome->response = outcome->state = NULL;
        outcome->response_len = outcome->state_len = 0;
        outcome->code = IDEM_CODE_INVALID;
        outcome->failed = 1;
        result = idem_complete(table, &reply->claim, outcome, now_ms);
        IDEM_MISUSE();          // the outcome is stored: it may not return
    }
    if (result != IDEM_OK)
        return result;
    idemi_run_set_reply(reply, rq, outcome);
    return IDEM_DONE;
}

/* Keeps a claim whose end nobody knows: sets the rest of its lease. */
static int idemi_run_kept(idem_table *table, idem_reply *reply, uint32_t now_ms)
{
    int result = idemi_public_enter_at(table, 1, now_ms);
    const idem_slot *s;

    if (result < 0)
        return result;
    s = idemi_command_check_claim(table, &reply->claim);
    if (s)
        reply->retry_after_ms = idemi_slot_lease_left(table, s);
    return idemi_public_leave(table, s ? IDEM_BUSY : IDEM_E_FENCED);
}

/* Calls the handler with a claim that was granted with `answer`, and completes,
   releases or keeps the claim. */
IDEMI_NOINLINE
static int idemi_run_handler(idem_table *table, idem_reply *reply,
                             const idem_request *request, idem_handler *handler,
                             void *ctx, idem_now *now, int answer)
{
    idem_job job;
    int result;

    IDEM_MEMSET(&job, 0, sizeof job);
    job.ctx = ctx;
    job.request = request;
    job.claim = &reply->claim;
    job.answer = answer;
    switch ((handler)(&job)) {
    case IDEM_HANDLED:
        result = idemi_run_handled(table, reply, request, &job.outcome,
                                   (now)());
        break;
    case IDEM_NOT_DONE:
        result = idem_release(table, &reply->claim, (now)());
        if (result == IDEM_OK)
            result = IDEM_RELEASED;
        break;
    default:
        result = idemi_run_kept(table, reply, (now)());
    }
    // A handler may have opened the table again, in vain; IDEM_E_ARG means: not
    // executed.
    return result == IDEM_E_ARG ? IDEM_E_FENCED : result;
}

IDEM_API int idem_run(idem_table *table, idem_reply *reply,
                      const idem_request *request, idem_handler *handler,
                      void *ctx, idem_now *now)
{
    int answer;

    if (reply)
        IDEM_MEMSET(reply, 0, sizeof *reply);
    if (!reply || !handler || !now)
        return idemi_public_refuse();
    answer = idem_begin(table, &reply->claim, reply, request, (now)());
    return idemi_command_grants(answer)
               ? idemi_run_handler(table, reply, request, handler, ctx,
                                   now, answer)
               : answer;
}

/* ---------------------------------------------------------------------------
   >>arriving  keys as they arrive, from texts

   A text is checked to its end before a byte is written.
   ------------------------------------------------------------------------ */

/* The value of a digit of Crockford's base 32, whose first sixteen are the
   hexadecimal ones; 32 if it is none. */
static unsigned idemi_arriving_digit(char c)
{
    static const char digits[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
    unsigned value = 0;

    if (c >= 'a' && c <= 'z')
        c = (char)(c - ('a' - 'A'));
    while (value < 32 && digits[value] != c)
        value++;
    return value;
}

/* The byte of two hexadecimal digits, or -1. */
static int idemi_arriving_byte(const char *two)
{
    unsigned high = idemi_arriving_digit(two[0]);
    unsigned low = idemi_arriving_digit(two[1]);

    return high < 16 && low < 16 ? (int)(high << 4 | low) : -1;
}

/* Sets *key_len to the bytes that a key takes (0: no key); IDEM_OK if they
   fit. */
static int idemi_arriving_fits(size_t *key_len, size_t takes, size_t most)
{
    size_t room = *key_len < most ? *key_len : most;

    *key_len = takes;
    if (takes == 0)
        return IDEM_E_ARG;
    return takes > room ? IDEM_E_TOO_LARGE : IDEM_OK;
}

/* Bytes of a quoted string, 0 if the text is none; writes them if dst is not
   NULL. */
static size_t idemi_arriving_string(unsigned char *dst, const char *text,
                                    size_t text_len)
{
    size_t at, len = 0;

    if (!text_len || text[0] != '"' || text[text_len - 1] != '"')
        return 0;
    for (at = 1; at + 1 < text_len; at++) {
        char c = text[at];
        if (c == '\\') {
            c = text[++at];
            if (at + 1 == text_len || (c != '"' && c != '\\'))
                return 0;
        } else if (c < ' ' || c > '~' || c == '"') {
            return 0;
        }
        if (dst)
            dst[len] = (unsigned char)c;
        len++;
    }
    return len;
}

IDEM_API int idem_key_uuid(void *key, const char *text, size_t text_len)
{
    unsigned char bytes[16];
    int i, byte, any = 0;

    if (!key || !idemi_public_valid_bytes(text, text_len))
        return idemi_public_refuse();
    if (text_len != 36)
        return IDEM_E_ARG;
    for (i = 0; i < 16; i++) {
        if ((i == 4 || i == 6 || i == 8 || i == 10) && *text++ != '-')
            return IDEM_E_ARG;
        byte = idemi_arriving_byte(text);
        if (byte < 0)
            return IDEM_E_ARG;
        bytes[i] = (unsigned char)byte;
        any |= byte;
        text += 2;
    }
    if (!any)
        return IDEM_E_ARG;
    IDEM_MEMCPY(key, bytes, sizeof bytes);
    return IDEM_OK;
}

IDEM_API int idem_key_ulid(void *key, const char *text, size_t text_len)
{
    unsigned char bytes[17];        // 26 x 5 bits, and 6 in front of them
    unsigned word = 0, bits = 6, len = 0, any = 0;
    size_t i;

    if (!key || !idemi_public_valid_bytes(text, text_len))
        return idemi_public_refuse();
    if (text_len != 26)
        return IDEM_E_ARG;
    for (i = 0; i < text_len; i++) {
        unsigned digit = idemi_arriving_digit(text[i]);
        if (digit == 32)
            return IDEM_E_ARG;
        any |= digit;
        word = (word << 5 | digit) & 0xFFF;
        bits += 5;
        if (bits >= 8) {
            bits -= 8;
            bytes[len++] = (unsigned char)(word >> bits);
        }
    }
    if (!any)
        return IDEM_E_ARG;
    if (bytes[0])
        return IDEM_E_TOO_LARGE;
    IDEM_MEMCPY(key, bytes + 1, 16);
    return IDEM_OK;
}

IDEM_API int idem_key_http(void *key, size_t *key_len, const char *value,
                           size_t value_len)
{
    int result;

    if (!key || !key_len || !idemi_public_valid_bytes(value, value_len))
        return idemi_public_refuse();
    for (; value_len && value[0] == ' '; value_len--)
        value++;
    while (value_len && value[value_len - 1] == ' ')
        value_len--;
    result = idemi_arriving_fits(
        key_len, idemi_arriving_string(NULL, value, value_len), 255);
    if (result == IDEM_OK)
        (void)idemi_arriving_string((unsigned char *)key, value, value_len);
    return result;
}

IDEM_API int idem_key_hex(void *key, size_t *key_len, const char *text,
                          size_t text_len)
{
    unsigned char *to = (unsigned char *)key;
    size_t i, takes = text_len % 2 ? 0 : text_len / 2;
    int result;

    if (!key || !key_len || !idemi_public_valid_bytes(text, text_len))
        return idemi_public_refuse();
    for (i = 0; i < takes; i++)
        if (idemi_arriving_byte(text + 2 * i) < 0)
            takes = 0;
    result = idemi_arriving_fits(key_len, takes, takes);
    for (i = 0; result == IDEM_OK && i < takes; i++)
        to[i] = (unsigned char)idemi_arriving_byte(text + 2 * i);
    return result;
}

/* ---------------------------------------------------------------------------
   >>retry     when to send again

   Nothing wraps: sums never exceed the time that is left.
   ------------------------------------------------------------------------ */

/* The result of idem_retry for an answer, but for the deadline. */
static int idemi_retry_verdict(int answer)
{
    switch (answer) {
    case IDEM_OK:
    case IDEM_DONE:
    case IDEM_REPLAY:
        return IDEM_DONE;
    case IDEM_UNCERTAIN:
    case IDEM_TOO_OLD:
    case IDEM_EXHAUSTED:
        return IDEM_LOOK;
    case IDEM_MISMATCH:
    case IDEM_E_ARG:
    case IDEM_E_TOO_LARGE:
        return IDEM_REFUSED;
    default:
        return IDEM_RESEND;
    }
}

/* The longest wait after `times` sends: base x 2^(times - 1), at most cap. */
static uint32_t idemi_retry_longest(uint32_t base, uint32_t cap,
                                    uint32_t times)
{
    for (; times > 1 && base < cap; times--)
        base = base > cap / 2 ? cap : base * 2;
    return idemi_basics_min(base, cap);
}

IDEM_API int idem_retry(uint32_t *delay_ms, const idem_patience *patience,
                        const idem_sent *sent, int answer)
{
    uint32_t deadline, left, wait, after;
    int verdict = idemi_retry_verdict(answer);

    if (!delay_ms || !patience || !sent)
        return idemi_public_refuse();
    *delay_ms = UINT32_MAX;
    if (verdict != IDEM_RESEND)
        return verdict;
    deadline = patience->deadline_ms ? patience->deadline_ms : 43200000u;
    left = deadline > sent->elapsed_ms ? deadline - sent->elapsed_ms : 0;
    after = sent->retry_after_ms;
    if (after == IDEM_LEASE_NONE)
        after = 0;
    if (left <= after)
        return IDEM_GIVE_UP;
    wait = idemi_retry_longest(patience->base_ms ? patience->base_ms : 1000,
                               patience->cap_ms ? patience->cap_ms : 60000,
                               sent->times);
    wait -= (uint32_t)((uint64_t)wait * sent->random >> 32);
    *delay_ms = after + idemi_basics_min(wait, left - after);
    return IDEM_RESEND;
}

#ifdef IDEM_FILE_STORAGE
/* ---------------------------------------------------------------------------
   >>file      storage in a file

   F1  The holder of the lock fills a blank file, of any size, with zeros, so a
       journal has no holes.  One filled half-way is still blank.       (_fill)
   F2  Bytes that are read are on the disk, and so is the file's name.  A killed
       process leaves programs that only the kernel has: opening syncs. (_flush)
   F3  After a failed sync nothing is written, except by threads that call
       before idem_sync has the lock again.  The kernel reports lost bytes once,
       so a second sync would succeed, and prove nothing: there is one at a
       time, and a failure stays.                      (_prog, _sync_unlocked)
   F4  Only the process that opened the file touches it. (idemi_file_is_mine)
   F5  The locked file is the one that the path names, at opening and whenever a
       sync has succeeded; and it has its size.        (_check_name)

   Functions return 0 or an errno, unless their comment has another result; _is_
   functions whether it is so.
   ------------------------------------------------------------------------ */

/* Bytes of the longest path, and of zeros written at a time. */
#define IDEMI_FILE_BLOCK 4096u

static int idemi_file_is_mine(const idem_file *file)
{
    return file->owner == (long)getpid();
}

/* Locks a file; EWOULDBLOCK if somebody else has the lock. */
static int idemi_file_lock(int fd)
{
    while (flock(fd, LOCK_EX | LOCK_NB) < 0)
        if (errno != EINTR)
            return errno;
    return 0;
}

/* Reads bytes to dst, or writes them from src; the other is NULL. */
static int idemi_file_move(int fd, uint32_t at, void *dst, const void *src,
                           uint32_t len)
{
    uint32_t done = 0;

    while (done < len) {
        off_t from = (off_t)at + (off_t)done;
        ssize_t n =
            dst ? pread(fd, (unsigned char *)dst + done, len - done, from)
                : pwrite(fd, (const unsigned char *)src + done, len - done,
                         from);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)             // 0: somebody has truncated the file
            return n < 0 ? errno : EIO;
        done += (uint32_t)n;
    }
    return 0;
}

/* Make a file durable (0, or -1 with errno), and make the kernel forget its
   pages.  On macOS fsync ends at the disk's own cache, and nothing does the
   latter. */
#ifdef __APPLE__
static int idemi_file_full_sync(int fd)
{
    return fcntl(fd, F_FULLFSYNC);
}
#define IDEMI_FILE_SYNC idemi_file_full_sync
#define IDEMI_FILE_SYNC_DATA idemi_file_full_sync
#define IDEMI_FILE_FORGET(fd) ((void)(fd))
#else
#define IDEMI_FILE_SYNC fsync
#define IDEMI_FILE_SYNC_DATA fdatasync
#define IDEMI_FILE_FORGET(fd)                                                  \
    ((void)posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED))
#endif

/* Syncs.  Keeps F2 even after a failure: pages that the disk may not have must
   not be read when the file is opened again. */
static int idemi_file_flush(int fd, int (*flush)(int fd))
{
    int error = 0;

    while (!error && flush(fd) < 0) {
        error = errno;
        if (error == EINTR)
            error = 0;
        else
            IDEMI_FILE_FORGET(fd);
    }
    return error;
}

static int idemi_file_read(void *ctx, uint32_t at, void *dst, uint32_t len)
{
    const idem_file *file = (const idem_file *)ctx;

    return idemi_file_is_mine(file)
               ? idemi_file_move(file->fd, at, dst, NULL, len)
               : EPERM;
}

static int idemi_file_prog(void *ctx, uint32_t at, const void *src,
                           uint32_t len)
{
    const idem_file *file = (const idem_file *)ctx;

    if (!idemi_file_is_mine(file))
        return EPERM;
    if (file->error)
        return file->error;
    return idemi_file_move(file->fd, at, NULL, src, len);
}

/* The facts of a file: one with the same two numbers is the same. */
typedef struct idemi_file_facts {
    uint64_t inode, device;
    off_t size;
    int is_regular;
} idemi_file_facts;

/* Sets *f for the file at a path; without one for the open file.  Returns 0, or
   -1 with errno set.  Asks for no times, if it can: Linux since 6.13 writes
   times again after they were asked for, and each sync would wait for that. */
static int idemi_file_ask(int fd, const char *path, idemi_file_facts *f)
{
    struct stat is;
#ifdef STATX_INO
    struct statx it;

    if (statx(path ? AT_FDCWD : fd, path ? path : "", path ? 0 : AT_EMPTY_PATH,
              STATX_INO | STATX_SIZE | STATX_TYPE, &it) == 0) {
        f->inode = it.stx_ino;
        f->device = (uint64_t)it.stx_dev_major << 32 | it.stx_dev_minor;
        f->size = (off_t)it.stx_size;
        f->is_regular = S_ISREG(it.stx_mode);
        return 0;
    }
    if (errno != ENOSYS && errno != EPERM)      // forbidden, by seccomp
        return -1;
#endif
    if ((path ? stat(path, &is) : fstat(fd, &is)) < 0)
        return -1;
    f->inode = (uint64_t)is.st_ino;
    f->device = (uint64_t)is.st_dev;
    f->size = is.st_size;
    f->is_regular = S_ISREG(is.st_mode);
    return 0;
}

/* Sets *is to the facts of the open file; ESTALE if the path does not name it
   (any more). */
static int idemi_file_check_name(const idem_file *file, idemi_file_facts *is)
{
    idemi_file_facts named;

    if (idemi_file_ask(file->fd, NULL, is) < 0)
        return errno;
    if (idemi_file_ask(-1, file->path, &named) < 0)
        return errno == ENOENT || errno == ENOTDIR ? ESTALE : errno;
    return is->inode == named.inode && is->device == named.device ? 0 : ESTALE;
}

static uint32_t idemi_file_size(const idem_file *file)
{
    return file->storage.sector_size * file->storage.sector_count;
}

/* Syncs, perhaps while other callbacks run: `error` is theirs.  Checks name and
   size last: a file that lost them meanwhile is not durable. */
static int idemi_file_sync_unlocked(void *ctx)
{
    idem_file *file = (idem_file *)ctx;
    idemi_file_facts is;
    int error;

    if (!idemi_file_is_mine(file))
        return EPERM;
    if (file->fd < 0)
        return EBADF;           // the mutex is gone, too
    (void)pthread_mutex_lock(&file->syncing);
    if (!file->sync_error)
        file->sync_error = idemi_file_flush(file->fd, IDEMI_FILE_SYNC_DATA);
    if (!file->sync_error)
        file->sync_error = idemi_file_check_name(file, &is);
    if (!file->sync_error && is.size != (off_t)idemi_file_size(file))
        file->sync_error = ESTALE;
    error = file->sync_error;
    (void)pthread_mutex_unlock(&file->syncing);
    return error;
}

static int idemi_file_sync(void *ctx)
{
    idem_file *file = (idem_file *)ctx;

    if (!idemi_file_is_mine(file))
        return EPERM;
    if (!file->error)
        file->error = idemi_file_sync_unlocked(file);
    return file->error;
}

/* True if all bytes are zero; not if it is larger than a storage may be.  Sets
   file->error. */
static int idemi_file_is_blank(idem_file *file, off_t size)
{
    unsigned char block[IDEMI_FILE_BLOCK], any = 0;
    off_t at;

    if ((uint64_t)size > UINT32_MAX)
        return 0;
    IDEM_MEMSET(block, 0, sizeof block);
    for (at = 0; at < size && !file->error && !any; at += IDEMI_FILE_BLOCK) {
        uint32_t len = IDEMI_FILE_BLOCK, i;
        if (size - at < (off_t)len)
            len = (uint32_t)(size - at);
        file->error = idemi_file_read(file, (uint32_t)at, block, len);
        for (i = 0; !file->error && i < len; i++)
            any |= block[i];
    }
    return !any && !file->error;
}

/* Makes a blank file of that size.  Writes the zeros and leaves no hole: the
   blocks of a later program are there, and its sync writes nothing else. */
static int idemi_file_fill(int fd, uint32_t size)
{
    unsigned char zeros[IDEMI_FILE_BLOCK];
    uint32_t at, len;
    int error = 0;

    IDEM_MEMSET(zeros, 0, sizeof zeros);
    if (ftruncate(fd, 0) < 0)
        return errno;
    for (at = 0; at < size && !error; at += len) {
        len = size - at < IDEMI_FILE_BLOCK ? size - at : IDEMI_FILE_BLOCK;
        error = idemi_file_move(fd, at, NULL, zeros, len);
    }
    return error;
}

/* Follows the last name of `path` (IDEMI_FILE_BLOCK bytes, from the root) while
   that is a symbolic link. */
static int idemi_file_follow(char *path)
{
    char target[IDEMI_FILE_BLOCK];
    int links;

    for (links = 0; links < 40; links++) {      // as many as Linux follows
        ssize_t len = readlink(path, target, sizeof target);
        size_t folder;
        if (len < 0)
            return errno == EINVAL ? 0 : errno;
        folder = target[0] == '/' ? 0 : (size_t)(strrchr(path, '/') + 1 - path);
        if (folder + (size_t)len >= IDEMI_FILE_BLOCK)
            return ENAMETOOLONG;
        IDEM_MEMCPY(path + folder, target, (size_t)len);
        path[folder + (size_t)len] = 0;
    }
    return ELOOP;
}

/* Syncs the directory that holds the file: not a link to it. */
static int idemi_file_sync_name(const idem_file *file)
{
    char folder[IDEMI_FILE_BLOCK];
    int fd, error;

    IDEM_MEMCPY(folder, file->path, sizeof folder);
    error = idemi_file_follow(folder);
    if (error)
        return error;
    strrchr(folder, '/')[1] = 0;
    fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return errno;
    error = idemi_file_flush(fd, IDEMI_FILE_SYNC);
    (void)(close)(fd);
    // EINVAL: this file system knows no such sync, or needs none.
    return error == EINVAL ? 0 : error;
}

/* Locks the open file, and checks that it is one to use: IDEM_OK, IDEM_E_LOCK,
   IDEM_E_FORMAT, or IDEM_E_STORAGE with file->error set. */
static int idemi_file_take(idem_file *file)
{
    uint32_t size = idemi_file_size(file);
    idemi_file_facts is;

    file->error = idemi_file_lock(file->fd);
    if (file->error == EWOULDBLOCK)
        return IDEM_E_LOCK;
    if (!file->error)
        file->error = idemi_file_check_name(file, &is);
    if (!file->error && !is.is_regular)
        return IDEM_E_FORMAT;
    if (!file->error && idemi_file_is_blank(file, is.size))
        file->error = idemi_file_fill(file->fd, size);
    else if (!file->error && is.size != (off_t)size)
        return IDEM_E_FORMAT;
    if (!file->error)
        file->error = idemi_file_flush(file->fd, IDEMI_FILE_SYNC);
    if (!file->error)
        file->error = idemi_file_sync_name(file);
    return file->error ? IDEM_E_STORAGE : IDEM_OK;
}

/* Opens and takes the file that the path names now; if none is to be used,
   nothing is open. */
static int idemi_file_try(idem_file *file)
{
    idemi_file_facts is;
    int result;

    // Before opening it: some devices take that as a command.
    if (idemi_file_ask(-1, file->path, &is) == 0 && !is.is_regular)
        return IDEM_E_FORMAT;
    file->fd = open(file->path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (file->fd < 0) {
        file->error = errno;
        return IDEM_E_STORAGE;
    }
    result = idemi_file_take(file);
    if (result != IDEM_OK) {
        (void)(close)(file->fd);
        file->fd = -1;
    }
    return result;
}

/* Stores the path, from the root: the process may change its folder. */
static int idemi_file_keep_path(idem_file *file, const char *path)
{
    size_t len = 0;

    if (!path[0])
        return ENOENT;
    if (path[0] != '/') {
        if (!getcwd(file->path, sizeof file->path))
            return errno;
        len = strlen(file->path);
        file->path[len++] = '/';        // replaces the 0
    }
    if (strlen(path) >= sizeof file->path - len)
        return ENAMETOOLONG;
    IDEM_MEMCPY(file->path + len, path, strlen(path) + 1);
    return 0;
}

/* Makes *file a closed one, with a storage of these sectors. */
static void idemi_file_reset(idem_file *file, uint32_t sector_size,
                             uint32_t sector_count)
{
    IDEM_MEMSET((void *)file, 0, sizeof *file);
    file->storage.ctx = file;
    file->storage.read = idemi_file_read;
    file->storage.prog = idemi_file_prog;
    file->storage.sync = idemi_file_sync;
    file->storage.sync_unlocked = idemi_file_sync_unlocked;
    file->storage.sector_size = sector_size;
    file->storage.sector_count = sector_count;
    file->storage.prog_size = 1;
    file->fd = -1;
    file->owner = (long)getpid();
}

IDEM_API int idem_file_open(idem_file *file, const char *path,
                            uint32_t sector_size, uint32_t sector_count)
{
    off_t end;                  // of 32 bits: may be negative
    int result, tries = 0;

    if (!file || !path)
        return idemi_public_refuse();
    idemi_file_reset(file, sector_size, sector_count);
    end = (off_t)idemi_file_size(file);
    if (!idemi_rules_valid_storage(&file->storage) || end < 0)
        return idemi_public_refuse();
    file->error = idemi_file_keep_path(file, path);
    if (file->error)
        return IDEM_E_STORAGE;
    do {        // again, if the file has lost its name before it was locked
        file->error = 0;
        result = idemi_file_try(file);
    } while (file->error == ESTALE && ++tries < 10);
    if (result == IDEM_OK)
        (void)pthread_mutex_init(&file->syncing, NULL);
    return result;
}

IDEM_API int idem_file_close(idem_file *file)
{
    int fd;

    if (!file || file->storage.ctx != file)
        return idemi_public_refuse();
    fd = file->fd;
    file->fd = -1;
    if (fd < 0)
        return IDEM_OK;
    // A child has the parent's lock, not one of its own: unlocking there would
    // unlock here, and without unlocking here the child would keep it.
    if (idemi_file_is_mine(file))
        (void)flock(fd, LOCK_UN);
    (void)pthread_mutex_destroy(&file->syncing);
    if ((close)(fd) == 0)
        return IDEM_OK;
    file->error = errno;
    return IDEM_E_STORAGE;
}
#endif

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

