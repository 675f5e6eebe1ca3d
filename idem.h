/* idem.h  0.1.0   execute each command at most once per idempotency key
   SPDX-License-Identifier: 0BSD        (the text is at the end of the file)

   A device gets commands over a link that loses, repeats, delays and reorders
   them.  The sender cannot tell a lost command from a lost answer, so it sends
   again: with the same idempotency key.  This header is the device's memory of
   what it has been asked.  Ask idem_begin() what to do with a command, do that.
   It is kept in RAM; or with a journal in flash, EEPROM, FRAM or a file, where
   it outlives restarts and power cuts at any instant (>>durable).

   In one C or C++ file of the program:          in every other file:
       #define IDEM_IMPLEMENTATION                   #include "idem.h"
       #include "idem.h"

   C99 or C++11.  Memory is yours, time is an argument.  No allocation, no
   clock, no globals, no recursion, no floating point, no dependencies.

   Contents (search for the marker)
     manual     >>synopsis >>idea >>answers >>replying >>identity >>time
                >>full >>delivery >>durable >>porting >>format >>recovery
                >>eeprom >>memory >>options >>concurrency >>patterns >>words
     interface  >>config >>types >>functions
     code       >>basics >>hash >>clock >>defaults >>slots >>index >>order
                >>storage >>crc >>records >>keys >>journal >>opening
                >>cells >>commands >>check >>public >>file
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
         is forgotten by idem_forget or, if so configured, evicted): with a
         journal whatever power cuts come, at any instant, any number; but
         three in a row in certain places, if what two of them tear reads well
         at one boot and not at the next (>>recovery, >>eeprom).
     S3  A stored response is never given to a different payload, key or scope.
         The fingerprint is compared in every state of a key.
     S4  A command is never answered IDEM_EXECUTE if an earlier attempt may have
         had an effect: a lease that ran out, with a journal also a restart,
         answers IDEM_RECOVER until somebody completes, releases or forgets, or
         one retention has passed since it ended or was cut short.  After a
         loss of records every unknown key is answered so for one retention.
     S5  Damaged storage never gives a wrong answer, and hides nothing that is
         intact.  A flipped bit costs at most the record that it is in, in a
         sector's header nothing.  What was lost is counted.  One exception, by
         nature: damage to the newest record looks like a torn write.
     S6  Time never shortens a lease or a retention: not a wrapping, stopped or
         backward tick.  Only a tick that really runs ahead can.
     S7  A call that fails changed nothing, or its contract says what.  A claim
         is admitted only if its outcome is certain to fit: completing never
         fails for want of room.
     S8  No byte is programmed twice between erases, and none that a cut may
         have left half programmed.  Nothing outside the given memory and
         storage is touched.
     S9  Keys chosen by an enemy cost no more than random ones (keyed hash), and
         push out no other scope's records beyond the configured quota.
     S10 What one opening answered stays true at every later one, until a call
         changes it.  Two exceptions, by nature, if nothing was written
         meanwhile: a call that power cut short, of which nothing can be seen
         now, may be found done at a later opening; and time of which no record
         tells has not passed after a restart, so that a key that was over may
         be known again.
     L1  Every call ends in bounded steps; the bounds are in >>memory.
     L2  The table never wedges: leases end (but IDEM_LEASE_NONE, which is asked
         for), retention ends, a command whose attempts are all cut short ends
         in IDEM_EXHAUSTED.
     L3  If idem_maintain is called in idle time, neither begin nor complete
         ever waits for an erase; else at most one happens in a call, and none
         in complete.  (A callback that fails may cost more.)
     H1  "Exactly once" is not promised, by nature: an outside effect that is
         neither harmless to repeat nor visible afterwards may happen once too
         often or not at all when its execution is cut short.  IDEM_RECOVER is
         where you learn of it, and where you look at the world.

   With config.storage the table has a journal (>>durable), and the promises
   hold for good.  Without, it lives in RAM, and they hold for one boot: after a
   restart it knows nothing, and what was executed before is IDEM_EXECUTE again;
   unless the sender tells the age of its command (idem_request.age_ms): what it
   first sent before the restart is answered IDEM_TOO_OLD.

   When not to use it: for agreement among several devices; as
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
                                 inside a callback; of a file, another process
                                 has it open
     IDEM_E_STORAGE    no        a storage callback failed, its value is in
                                 table.storage_error; nothing was granted, or
                                 stored: the call may be repeated
     IDEM_E_FORMAT     no        at open: the storage holds something else,
                                 another version, geometry, hash or secret.
                                 Migrate it, or idem_format
     IDEM_E_SPACE      no        at open: too few or too small sectors;
                                 table.needed says how many would do (0: none).
                                 Later: too many sectors were retired for new
                                 claims, or nearly 2^32 filled; replay and
                                 completion go on

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
     IDEM_E_STORAGE     503                 5.03   0x83
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
   IDEM_HASH says otherwise.  It catches a key reused for another command
   (IDEM_MISMATCH, answered before everything else that is said of a known key).
   If two spellings of a payload mean the same, hash a canonical form yourself,
   and give request.fingerprint: idem_fingerprint_init/update/final compute,
   piece by piece, what idem_begin computes from a payload.  Every 64-bit value
   is legal, zero too.

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
   suspended, overtaken, and wakes up late.  With a journal tokens go on
   increasing over restarts.  Without, an opening starts anew at 1: throw away
   the claims, and what the driver has seen.  (A slot keeps the token's low
   half: a claim held while tokens grow by 2^32 is fenced.)

   With a journal logical time goes on, after a restart, from the newest time
   found in it: idem_elapse adds what an RTC knows of the time between.  The
   restart ends all leases; the retention of a key that it cut short counts from
   there.

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
   would have, or reaches back to a completion evicted from its scope or, under
   eviction and without a journal, to before the opening.  (Scopes share four
   such memories, by keyed hash: an eviction may make commands of another scope
   too old, never too young.)

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
   >>durable

   Give the table a storage, and what it knows survives:

       static const idem_storage flash = {
           .read = flash_read, .prog = flash_prog, .erase = flash_erase,
           .sector_size = 4096, .sector_count = 8, .prog_size = 8,
           .erased = 0xFF };
       config.storage = &flash;

   (or IDEM_FILE_STORAGE: a file on a POSIX system).  Blank storage is taken as
   it is, and written first when the first command comes.  What is neither blank
   nor this journal is IDEM_E_FORMAT, and only idem_format overwrites it.

     when the call returns        durable is
     idem_begin, a claim          the claim.  So a restart during the effect is
                                  IDEM_RECOVER afterwards, never IDEM_EXECUTE
     idem_complete                outcome, application state, and that delivery
                                  is owed: one record, all or nothing
     idem_release, _forget,       that
     _delivered
     idem_renew, and all that     nothing: nothing is written.  A duplicate
     only looks                   costs two reads; once after a restart, if the
                                  newest record tells of its key, a new sector

   IDEM_BATCH: the same becomes durable together, with the next idem_sync:
   execute what was claimed after one, answer what was completed after another.
   volatile_claims: claims are not written at all, outcomes are.  Half the wear;
   but what a restart cuts short is IDEM_EXECUTE again (S4 is given up for that,
   and nothing else); or what the key was before, if that was dropped for it and
   its retention goes on.

   Call idem_maintain when there is nothing else to do, until it answers
   IDEM_OK.  It erases ahead, and carries forward what is still needed from the
   oldest sector, which the commands that come would otherwise wait for.

   Wear is even, for the sectors are used in turn.  A command of 16-byte key and
   response takes 63 bytes of flash with granules of 1, 72 of 8, 80 of 16.  A
   restart costs one sector's erase more, once something is written; and those
   again that idle time had done ahead: one, or two while a claim is open.  When
   nearly 2^32 sectors have been filled new claims are IDEM_E_SPACE.

   idem_open refuses, with IDEM_E_SPACE, storage in which the configured keys do
   not fit whatever comes; table.needed is the number of sectors that would do.
   Roughly: twice what all keys take, and four sectors, if a sector holds many
   records; far more if it holds but two or three, and with volatile_claims it
   must hold three of the longest.  Two sectors never do: while one that was
   torn when power went is erased, the other is all there is, and its newest
   record may itself be in doubt.

   A callback that fails makes the call fail, and nothing has changed.  A sector
   that cannot be erased or begun is retired, until the next opening, or until
   there is no other.  After a sync that failed nobody knows what is on the
   medium: nothing is written any more until the table is opened again.

   Not in the journal: what was evicted.  Who goes from IDEM_EVICT_OLDEST to
   IDEM_REJECT is told IDEM_TOO_OLD of none of that any more.  Nor the default
   retention: who changes config.retention_ms changes it for what is stored,
   too; what was over may be known again when it is made longer.  Who makes
   capacity, key_max, response_max or state_max smaller than what is stored
   loses that, as if it were damaged.  Without in_ram there are 15 retentions
   at a time, the default and the longest possible among them: a key that asks
   for one more has the next longer one.

   ---------------------------------------------------------------------------
   >>porting

   Ready ones, and a test for yours (check.h), are in examples/port.  dst and
   src are aligned to nothing, and good during the call only.

   read    any bytes inside the storage; none is ever asked for 0 bytes.
   prog    whole granules inside one sector, in NOR flash erased ones.  They may
           cross the end of a page of the chip: then it is for prog to program
           each part.  When it returns 0 they are there for good; or if there is
           a sync, from then on.  Within a sector the headers come after later
           bytes.
   erase   one sector.  NULL for EEPROM, FRAM and files, where programming
           replaces.  If `erasing` is given erase only starts it; read and prog
           in other sectors may come while it goes on, and must wait, or suspend
           it, where the flash needs that.
   sync    makes durable what was programmed; NULL if there is no cache.  What
           idem_open reads it takes for durable: sync a cache that outlives a
           restart before.
   erased  what an erased byte reads as; without erase, what idem_format fills
           the storage with.

   prog_size is the smallest unit that may be programmed once: 8 on a STM32L4,
   16 on a STM32U5 or H5, 1 on most SPI NOR; what littlefs would be given.
   Reading a granule whose programming was cut short may fail (ECC): the
   callback says so, and that is all.  (On a STM32 the NMI tells; without a
   handler that clears it the first torn word stops the device.)  It may also
   read as anything.  Only if several do that in the very first header, of
   storage never written before, it looks like another's data: IDEM_E_FORMAT.
   verify reads back what was programmed: for flash that does not tell that it
   failed.

   ---------------------------------------------------------------------------
   >>format       version 1; numbers little-endian, offsets and lengths in bytes

   A varint has seven bits in each byte, the lowest first, and bit 7 set in all
   but the last.  G(n) is n rounded up to granules.  Every record and every
   header begins at a granule; the rest of its last granule has erased bytes.

     sector   0        header
              G(40)    the same header again
              2 G(40)  records, one behind the other

     header   0   4    "idem"
              4   1    version, 1
              5   1    low half: hash, 1 SipHash, 2 HalfSipHash, 3 FNV-1a; high
                       half: binary logarithm of prog_size
              6   3    sector_size
              9   2    sector_count
              11  2    the low half of the check: 32 bits that tell the secret,
                       the index hash of scope "idem" and no key, XOR the low
                       half of the fingerprint of the payload "idem"
              13  1    damaged stretches in the sectors from the oldest one
                       needed to the one before this; 255: or more
              14  2    for how long from the time below unknown keys may be lost
                       ones: bits 11 to 15 are n, the others how many times
                       2^n ms, counted from a multiple of that
              16  4    sequence: larger than that of every sector before
              20  6    logical milliseconds when the sector was opened; in the
                       first of a boot, when the table was
              26  1    how many sectors back the one before it is, round the end
              27  1    the sum of: 1, the first that was opened after a restart;
                       2, an attempt (storage without erase), written before
                       anything else where the second header will be: it
                       announces the sequence only; and 4 x the low six bits of
                       how many granules are damaged
              28  2    how many sectors back the oldest is that is still needed
                       (or, if that one was passed over, the next)
              30  3    where the records of the sector before it end
              33  3    where the records end that were here before the second
                       header
              36  4    CRC-32C of the 36 bytes before, without the complement
                       at the end: "123456789" gives 0x1CF96D7C

   In a record numbers in brackets are bits of its second byte, but for one.

     record   1        0x80, and added: 0x01 a claim, 0x02 an outcome, 0x04 a
                       state, 0x08 moved, 0x10 a second byte follows, 0x20 all
                       before it was durable when it was written (not said if
                       it were 0xFF then), 0x40 (with a claim) a scope
              1        (0x10)  0x01 failed, 0x02 delivery is owed, 0x04 it was
                       delivered, 0x08 a restart cut the claim short; and what
                       follows: 0x10 retention, 0x20 reservation, 0x40 attempts,
                       0x80 code
              varint   length of all that follows but the CRC
              varint   slot
              varint   milliseconds since the time in the header
              varint   (neither claim nor moved)  how many bytes back its claim
                       is, round the end of the storage
              varint   (moved)  with a claim: by how much its token is less
                       than one that were granted here, modulo 2^32; else 0
              varint   (moved)  milliseconds back to completion, or to the
                       restart that cut it short
       claim  1        (0x40)  attempts; else 1
              varint   (0x10)  retention; else the default
              varint   (0x20)  reserved bytes; else response_max
              8        fingerprint
              1        (0x40 in the first byte)  length of the scope; else 0
              1        (with an outcome)  length of the key; else the rest
              ...      scope, key
     outcome  4        (0x80)  code; else 0
       state  varint   length of the state
              ...      state
     outcome  ...      response: the rest
              4        CRC-32C of all of the above, that starts not from ones
                       but from the check, XOR 0x9E3779B1 x the sector's
                       sequence, XOR the complement of the record's offset
                       in the sector

   A claim puts its key into its slot, whatever was there before: that is how
   keys end that expire or are evicted.  A claim with an outcome is a finished
   key that was carried forward.  An outcome completes the claim in its slot, if
   that is the one it names; its state counts then, or if the sector of the
   claim that it names is not needed any more.  A state alone is one that was
   carried forward.
   With no part at all: 0x04 the outcome is delivered; else the key is gone.
   Numbers that no writer writes (a retention, an age of more than 30 days, more
   than is configured) make a record one that does not validate.
   Moved and nothing else: the slot is empty, whatever claim it had.
   The token of a claim is sequence x sector_size + offset, where it was written
   first; of one that was volatile, the next number after the last token, or
   after sequence x sector_size of the head then.

   ---------------------------------------------------------------------------
   >>recovery     what makes a power cut harmless, at any instant

   What a cut interrupts is in doubt, for ever: it may read as nothing, as all,
   as anything, and differently each time.  Five rules deal with that.

     R1  Nothing is appended behind doubt.  The first write of a boot goes to
         the next sector, which is erased first, even if it looks blank.
     R2  A sector counts from its second header on.  Before that, what must not
         be missed is in it: (a) the newest record of the boot before, in effect
         (it may read well only this time), (b) what was carried forward.  So
         the header replaces, in one step, the sectors that it no longer needs,
         and the end of the one before it, where (a) was.
     R3  A header leaves two dead sectors behind it, at least.  Of its second
         copy it may be in doubt whether it is there; one of the two is dead
         either way, and is taken next: the one behind the header if it counts,
         else the one behind that.  It names the sector before it, and by that
         says for ever whether the header in doubt counts.
     R4  What an answer relies on is written once more before it is given, if it
         is the newest record of the boot before; or if that is a header, what
         it confirmed, the first record in its sector.
     R5  A record validates only where it was written, in this round; one that
         belongs to a claim names it.  What does not validate is passed over,
         granule by granule, to the next that does.

   Reading: all headers.  A first header that validates when one bit is flipped
   counts as if it did.  Take the sector with the highest sequence.  If its
   second header is there (valid, or a single bit differs from the first, or a
   record stands behind those that were there before it) it is the newest.  Else
   the one that it names as the one before it is; or one with a higher sequence
   than that whose second header is there, and a record after it, or which names
   another as the one before it: the highest could not be seen when that was
   written.  The newest one's header says which is the oldest needed.  From
   there on every record, in order, up to the end that the next header states.
   A sector on the way that has no header is one damaged stretch; the one before
   it is then the one in front of it.  No header, and every byte erased but for
   torn headers where headers go: blank.

   If power goes ...

     while a claim or outcome is    it is there or not, whole; nobody was told.
     programmed                     R1, and R4 if it is there
     while a sector is erased       it was dead, and it is erased again
     before the second header       the sector does not count; all that was
     is there                       carried to it is still where it was
     in the second header           it counts or not, for good once the next
                                    header is there (R3); nothing was erased
                                    or appended yet
     between them all               nothing to do

   Damage and doubt look alike; whether something was lost is told by what comes
   after.  A stretch that does not validate is a loss if a record follows it
   that says that all before it was durable, or if it ends before the stated
   end, or is longer than one record can be as configured.  A torn tail is none
   of these.  Each header counts the stretches that are known, so that each is a
   loss once.

   It is not proof against everything.  Two cuts in a row, in headers that the
   boots right behind them see, and then either a third or a header that cannot
   be programmed, may lose the oldest sector, if no later boot sees any of these
   headers.  That is told: it counts as a loss.  No journal is proof against any
   number of cuts if what they tear reads differently from boot to boot: of what
   was written last a boot cannot know whether it will be seen again.  It writes
   it once more, and may be cut short in that; or it goes on, and relies on it.

   ---------------------------------------------------------------------------
   >>eeprom       IDEM_CELLS: a small journal where programming replaces

   For EEPROM, FRAM and the like: storage without erase, some hundred bytes and
   more.  Define IDEM_CELLS in every file, and another journal is in the build
   instead of the ring of sectors: half its code, and 1 KB of EEPROM holds 16
   keys of 8 bytes with responses of 4 (5 KB with the ring).  What all else in
   this manual says of storage holds, but for:

     - the storage has one sector of any size, and no erase; IDEM_CELLS_SIZE
       (capacity, key_max, response_max, state_max, prog_size) is what it must
       have, and what table.needed tells with IDEM_E_SPACE.  More is used, and
       spreads the wear
     - keys and responses are always in memory (config.in_ram is not looked at):
       IDEM_CELLS_MEMORY_SIZE (.. size of the storage, prog_size).  A duplicate
       costs no read, but once in a boot (below); what damages the storage later
       is seen at the next opening only
     - each key keeps its retention, whatever the default is later
     - IDEM_BATCH writes as IDEM_EACH does; volatile_claims is IDEM_E_ARG
     - every claim, outcome, release, removal and delivery is one program (and
       sync) of one cell.  The first of a boot takes more: two programs of a
       cell, one for each claim that the restart cut short, and one granule for
       each free cell
     - tokens are 32 bits of numbers: after 2^32 - 2^17 records new claims are
       IDEM_E_SPACE
     - a cell that fails is given up until the next opening, if there are more
       than it takes; if not, it is tried again with each call

   Layout (version 1; numbers little-endian).  G(n) is n rounded up to granules.

     0         8  a header: "idem"; CRC-32C, without the complement at the end,
                  of 1 byte version (1), 1 hash (>>format), 1 w, 2 prog_size,
                  4 the size of a cell, 2 the low half of the check (>>format)
     G(8)      8  the same header again
     2 G(8)       cells of G(42 + 2 w + key_max + response_max [+ 2 +
                  state_max, if that is not 0]) bytes, as many as fit

   w is the size of a slot's or cell's number: 1; 2 if then more than 254 cells
   fit; 3 if then more than 65534 do.

     record    1  flags: 0x40, and added: the status, 0 no key, 1 in progress,
                  2 completed, 3 failed; 4 delivery is owed; 0x10 a restart cut
                  the claim short; 0x20 tentative
               4  sequence, from 1 on; the token of a claim
               w  slot
               w  number, from 1 on, of the cell that this replaces; 0 none
               5  logical milliseconds, modulo 2^40
               1  for how long unknown keys may be lost ones: as many times 2^n
                  ms, from the last multiple before that time on; 2^n is the
                  least of which 128 are more than a retention
               2  census: the sum of number x (2 slot + 1), modulo 2^16, of the
                  cells of all slots
               2  [state_max is not 0] length of the application's state
     a key     1  attempts
               4  retention
               8  fingerprint
               4  finished, or cut short: milliseconds since
               2  length of the response; in progress, what is reserved
               1  length of the scope
               1  length of the key
     finished  4  code
     then         state, scope, key, response
               4  CRC-32C of all this, that starts from the check XOR 0x9E3779B1
                  x the number of the cell

   A slot is what its record with the highest sequence says; the state, the
   time and the census are those of the highest of all.  So an outcome is there
   with its state, or not at all, and each record carries the state on.

   What makes a power cut harmless:

     P1  A record goes to a free cell, the one that has been free for longest.
         So what the newest replaced is still there, and if the newest turns out
         torn it is as if it had never been.
     P2  What a cut interrupts may read as nothing, as all, as what was there
         before, differently each time.  A boot that only looks leaves it so.
         Before the first record of a boot (or an answer that would rely on the
         newest) the journal is settled.  First every free cell is wiped, which
         ends what could be seen later, but that which the newest names as
         replaced.  Then the newest is written again: as a tentative copy in a
         wiped cell, and, once that is durable, as another for good.  Nothing is
         answered before.
     P3  So of what has been answered there always is a record that no cut has
         touched: under a newest record that was torn, what it replaced; under a
         tentative copy, what it is a copy of, and what that replaced; and under
         a copy for good, the tentative one, that is whole if another follows.
         Where a tentative copy is the newest, it is written again in its place,
         so that repeated cuts tear but that one.
     P4  A claim that a restart cut short is written once more when settling,
         with the time: at later openings its retention has begun then.

   If power goes ...

     while a record is programmed   it is there or not, whole; nobody was told
     while cells are wiped          they were free, and are wiped again
     in a copy                      it counts or not, and says the same; it is
                                    written again
     in a header                    no record is there yet; or the other is

   It is not proof against everything.  Three cuts in a row, in settlings of the
   same record, may lose it: the first in its copy for good, the second while
   what is older is wiped, the third in the copy that is left; if each cell that
   was torn reads well at the boots between, and none at a later one.

   Damage is seen by the census: if it is not that of what was found, then
   something is lost, one is added to stats.lost, and unknown keys are
   IDEM_RECOVER for one retention, over restarts.  A slot whose record is
   damaged is what it was before, or empty.  Free cells may be anything.  Two
   damages may hide each other, once in 65,536.

   Blank is a storage of erased bytes, but for what a cut may leave of headers.
   A torn header in granules of more than 16 bytes may read as IDEM_E_FORMAT:
   only where the power went while the very first record was written.

   ---------------------------------------------------------------------------
   >>memory

   IDEM_MEMORY_SIZE(capacity, key_max, response_max, state_max) is a constant
   expression, a multiple of 4, for a static array of uint32_t.  Per key:

       key_max + response_max     as they are, together rounded up to 4
       24   stored with them: fingerprint, code, lengths, time, retention
       6    token, state, attempts
       10   finding it: two index words, a hash, two links
            (IDEM_WIDE: 24, three index words)

   With a journal keys and responses stay in storage, unless config.in_ram says
   otherwise: IDEM_JOURNAL_MEMORY_SIZE (.. sector_count, prog_size), per key 24
   bytes (48 if IDEM_WIDE), 20 for each sector, and four buffers of one record.
   More memory makes opening faster.

   The table itself takes 192 bytes on a 32-bit machine, or fewer.  It holds no
   pointer into itself and may be moved while no call is under way; the memory,
   and what config points to, may not.

   Bounds, with n = capacity.  A lookup looks at the words from the key's home
   to the next empty one: 2 or 3 on average, at worst all n in use.

     begin, known key     one lookup, one comparison, one copy of the response
     begin, new key       one lookup.  The oldest completion is dropped if it is
                          over.  If then no slot is free, and something younger
                          may be over, a look at all n slots.  To evict,
                          undelivered outcomes are stepped over.  With a quota,
                          all n slots are looked at; with a journal without
                          in_ram too, each at most one release, for a retention
                          that no key has
     complete, renew,     no lookup
     delivered, response
     release              the words from the key's home to the next empty one
     find, forget         one lookup; forget: one release
     maintain             64 slots, each at most one release
     next, pending        n slots at worst
     open                 clears all the memory; with a journal, reads it once
                          (a record again whose key, or hash, comes again when
                          it is not over; a sector again after two cuts in
                          first headers); with IDEM_CELLS, to put completions
                          in order, for each a look at all of them at worst
     any that writes      with a journal, for each sector that is cleaned a look
                          at all n slots; with IDEM_WIDE at those in it
     any that is told     a look at all n slots, each at most one release, for
     the time, elapse     every 2^28 ms (3.1 days) that the clock advances, so
                          that 32 bits of time suffice: at most 8 times in one
                          call, 16 in idem_elapse

   With a journal, calls of the callbacks in r reads, p programs, e erases:

     begin, duplicate     (but once after a restart, see >>durable)
                          2 r, and one for each other key with the same hash (16
                          bits, 32 if IDEM_WIDE).  With a quota one for each key
     begin, claim         1 p; when a sector is full, 3 p and 1 e more, and as
                          much carrying as goes into one sector (2 r, 1 p each);
                          without erase, one that has no header is read once
     complete             1 r, 1 p; when a sector is full 2 p more
     release, forget,     2 r, 1 p; when a sector is full as begin
     delivered
     maintain             1 e, or 8 times carrying, or 1 p; while claims are
                          open also 3 p and as much carrying as begin
     find, next, pending  2 r each

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
     IDEM_NO_JOURNAL       not set; leaves the journal out, config.storage is
                           not looked at.  Implementation
     IDEM_CELLS            not set; another journal, for EEPROM and FRAM
                           (>>eeprom).  EVERY FILE: structs depend on it
     IDEM_FILE_STORAGE     not set; declares idem_file, storage in a file of a
                           POSIX system.  Every file that uses it; and the file
                           with the implementation says, before it includes
                           anything, #define _POSIX_C_SOURCE 200809L (32-bit
                           systems, for 2 GB and more: _FILE_OFFSET_BITS 64 too)
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
   (Without a journal the reset also empties the table: a duplicate that arrives
   after it is IDEM_EXECUTE, unless the sender tells its age.)

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
   storage, journal  the medium; the ring of sectors that is kept in it
   record            one durable step
   sector, granule   what is erased at once; what is programmed at least
   head              the sector that is written to
   dead              of a sector: nothing in it is needed
   spare             of a dead sector: erased in this boot
   carry             write again, in the head, what is still needed
   volatile          of a claim: not written
   stale             of a claim: over, but still in its slot
   cell              with IDEM_CELLS, where one record is; current: of its slot,
                     else free
   settle            end all doubt about what the boot before wrote
   tentative         of a record: a copy that the one after it confirms
   loss              damage in which something acknowledged may have been
   in doubt          of storage: a cut may have left it half done.  Of a table:
                     after a loss, while unknown keys may be lost ones
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

#if defined(IDEM_CELLS) && defined(IDEM_NO_JOURNAL)
#error "IDEM_CELLS is a journal, IDEM_NO_JOURNAL is none"
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
    X(IDEM_E_LOCK,      -7, "locked by another, or a nested call")             \
    X(IDEM_E_STORAGE,   -8, "a storage callback failed")                       \
    X(IDEM_E_FORMAT,    -9, "the storage holds something else")                \
    X(IDEM_E_SPACE,    -10, "the storage is too small, or too worn")

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

/* idem_config.durability: when claims and outcomes are durable */
enum {
    IDEM_EACH  = 0,             /* before the call returns */
    IDEM_BATCH = 1              /* from the next idem_sync on */
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

/* A medium that keeps a table's journal.  Kept by pointer while the table is
   open, never written: may be in ROM.  Callbacks return 0, or anything else for
   a failure, which is kept in table.storage_error.  They are called with the
   lock held, and must not call the table.  Addresses count bytes from 0; a
   program never crosses the end of a sector. */
typedef struct idem_storage {
    void    *ctx;               /* handed to the callbacks, untouched */
    int    (*read)(void *ctx, uint32_t at, void *dst, uint32_t len);
    int    (*prog)(void *ctx, uint32_t at, const void *src, uint32_t len);
                                /* whole granules, durable (with sync: from
                                   then on) when it returns */
    int    (*erase)(void *ctx, uint32_t sector);
                                /* NULL: programming replaces what is there
                                   (EEPROM, FRAM, a file) */
    int    (*erasing)(void *ctx);
                                /* NULL: erase returns when it has finished.
                                   Else erase only starts it, and this tells: 0
                                   finished, 1 not yet, others failed */
    int    (*sync)(void *ctx);  /* NULL: what is programmed is durable */
    uint32_t sector_size;       /* bytes, 256 .. 262,144, whole granules; with
                                   IDEM_CELLS all there are, sector_count 1 */
    uint32_t sector_count;      /* 4 .. 65,535; together below 4 GB (with each
                                   rounded up to a power of two) */
    uint16_t prog_size;         /* the granule, bytes: 1, 2, 4 .. 256 */
    uint8_t  erased;            /* value of an erased byte: 0xFF, 0x00, ... */
    uint8_t  verify;            /* not 0: read back what was programmed */
} idem_storage;

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
    uint8_t  durability;    /* IDEM_EACH or IDEM_BATCH */
    uint8_t  volatile_claims;   /* not 0: claims are not written; gives up S4
                                   for attempts that a restart cuts short, and
                                   nothing else.  Needs in_ram */
    uint8_t  in_ram;        /* with storage, not 0: keys and responses are kept
                               in memory as well: nothing is read again */
    uint8_t  secret[16];    /* key of the hashes, random, this device's own;
                               neither half zero; ignored by IDEM_HASH_FNV */
    void    *lock_ctx;      /* handed to the two hooks, untouched */
    int    (*lock)(void *lock_ctx);    /* 0 when held, else the call is refused
                                          (>>concurrency); both or neither */
    void   (*unlock)(void *lock_ctx);
    const idem_storage *storage;   /* where the journal is; NULL: none */
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

/* A slot: what is kept in memory of every key.  What follows it depends on the
   table (>>slots): without storage, or with in_ram, an idem_body, scope and
   key, and the response; with storage, an idem_place. */
typedef struct idem_slot {
    uint32_t time;              /* logical ms: in progress, the end of the
                                   lease; finished, the completion */
    uint8_t  state;             /* 0: free; status, flags (>>slots) */
    uint8_t  terms;             /* with a body, the attempts; without, the
                                   number of its retention (>>keys) */
    idem_number hash;           /* of scope and key, as the index knows it */
} idem_slot;

/* The rest of what is known of a key, but for its bytes */
typedef struct idem_body {
    uint32_t retention;         /* ms from slot.time on */
    uint32_t token;             /* low half of the claim's */
    uint32_t fingerprint[2];    /* low word, high word */
    int32_t  code;
    uint16_t response_len;      /* in progress: what is reserved */
    uint8_t  scope_len;
    uint8_t  key_len;
} idem_body;

/* A slot's neighbours in the order of completion (>>order), as slot numbers */
typedef struct idem_link {
    idem_number older;
    idem_number newer;          /* of a free slot: the next free one */
} idem_link;

/* Where a key's records are, as addresses in the storage */
typedef struct idem_place {
    uint32_t claim;             /* IDEMI_NOWHERE: not written (volatile) */
    uint32_t outcome;           /* may be the same; of a claim of this boot, the
                                   low half of its token */
#if IDEM_WIDE
    idem_link written;          /* neighbours in the order of claim (>>journal);
                                   itself: it is not in it */
#endif
} idem_place;

/* A word of the index, and how many there are for each key */
#if IDEM_WIDE
#define IDEMI_WORD_SLOTS 0x1000000u     /* a word can tell that many apart, */
#define IDEMI_WORD_TAGS 32u             /* so many tags, */
#define IDEMI_WORD_PAST 7u              /* and distances to one below this */
typedef struct idem_word {
    unsigned slot : 24;         /* plus one; 0: the word is empty */
    unsigned past : 3;          /* positions past its home; 7: or more */
    unsigned tag : 5;           /* the low bits of the slot's hash */
} idem_word;
#define IDEMI_WORDS 3u
#else
typedef struct idem_word {
    idem_number slot;           /* plus one; 0: the word is empty */
} idem_word;
#define IDEMI_WORDS 2u
#endif

/* Counters since the opening, promised.  They wrap. */
typedef struct idem_stats {
    uint32_t full;              /* begins answered IDEM_E_FULL */
    uint32_t fenced;            /* calls answered IDEM_E_FENCED */
    uint32_t expired;           /* keys dropped at the end of retention */
    uint32_t evicted;           /* finished keys dropped before it */
    uint32_t undelivered;       /* of those expired: delivery still owed */
    uint32_t backwards;         /* ticks taken as going backwards */
    uint32_t lost;              /* stretches of storage found damaged in which
                                   something acknowledged may have been */
    uint32_t retired;           /* sectors given up at present */
    uint32_t answers[IDEM_EXHAUSTED + 1];  /* of idem_begin, by result >= 0 */
} idem_stats;

/* A sector, as the table knows it (>>journal) */
typedef struct idem_sector {
    uint32_t sequence;          /* 0: none known */
    uint32_t time;              /* of its header: logical ms, low half */
    uint32_t end;               /* where its records end, if it is not the
                                   head; while opening, its predecessor's */
    uint16_t time_high;
    uint16_t tail;              /* how many sectors back is needed */
    uint8_t  known;             /* while opening: in those, stretches known to
                                   be damaged.  Then: it is not in the ring, but
                                   its header may be there */
    uint8_t  sum;               /* granules in its own; while opening, in those:
                                   the low bits of their number */
    uint8_t  link;              /* while opening, the distance to its neighbour
                                   in the ring; 255: retired */
    uint8_t  lost;              /* stretches known to be damaged, up to 255 */
} idem_sector;

/* One record, taken apart (>>records) */
typedef struct idem_record {
    uint8_t  parts, more;
    uint8_t  attempts;
    uint16_t state_len;
    idem_body body;
    uint32_t time, time_high;   /* since the sector's header, ms */
    uint32_t slot;
    uint32_t age;               /* moved: of what slot.time tells, ms; without
                                   a claim, bytes back to where that is */
    uint32_t state_at;          /* where in the buffer its state is, if it has
                                   one, */
    uint32_t id_at;             /* scope and key, */
    uint32_t response_at;       /* and the response */
} idem_record;

#ifdef IDEM_CELLS
#define IDEMI_RETENTIONS 1

/* Bytes of a header, and of a record beside key, response, state and the two
   numbers */
#define IDEMI_CELLS_HEADER 8u
#define IDEMI_CELLS_FIXED  42u

/* Cells that it takes beside one for each key */
#define IDEMI_CELLS_FREE   2u

/* More cells than this make numbers of two bytes, of three. */
#define IDEMI_CELLS_NARROW 254u
#define IDEMI_CELLS_MIDDLE UINT32_C(65534)
#if IDEM_WIDE
#define IDEMI_CELLS_MOST UINT32_C(0xFFFFFE)
#else
#define IDEMI_CELLS_MOST IDEMI_CELLS_MIDDLE
#endif

/* All there is to know of a journal; behind it the number of each slot's cell,
   the queue of free ones, and a buffer of one cell (>>cells). */
typedef struct idem_journal {
    uint8_t  blank;             /* 1: there is no header */
    uint8_t  torn;              /* bit 0, 1: the first, second did not read */
    uint8_t  settled;           /* 1: this boot may write */
    uint8_t  tentative;         /* 1: the newest record is */
    uint8_t  whole;             /* 1: it was written in this boot */
    uint8_t  failed;            /* 1: programming the first free cell did */
    uint8_t  broken;            /* 1: a sync failed, nothing is believed */
    uint8_t  synced;            /* 1: all that was programmed is durable */
    uint8_t  in_doubt;
    uint8_t  beyond;            /* 1: a slot has a key that is not configured */
    uint8_t  wide;              /* bytes of the number of a slot or cell */
    uint16_t census;            /* of the current cells */
    uint32_t check;             /* tells one secret from another */
    uint32_t clock_high;        /* upper half of the logical time */
    uint32_t sequence;          /* of the newest record; 0: there is none */
    uint32_t newest;            /* its slot */
    uint32_t replaced;          /* the cell that it names, if it is of an
                                   earlier boot, plus one; 0: none */
    uint32_t copied;            /* the same of what a tentative one copies */
    uint32_t doubt;             /* logical ms: until then unknown keys may be
                                   lost ones */
    uint32_t cell_size;
    uint32_t retentions[IDEMI_RETENTIONS];      /* the default */
    unsigned count;             /* of cells */
    unsigned first;             /* place of the first free one in the queue */
    unsigned frees;             /* free cells */
} idem_journal;
#else
#define IDEMI_RETENTIONS 15

/* Bytes of the longest record beside key, response, state and padding */
#define IDEMI_RECORD_FIXED 64u

/* All there is to know of a journal; its sectors and buffers follow it. */
typedef struct idem_journal {
    uint8_t  blank;             /* not 0: nothing was ever committed */
    uint8_t  filling;           /* 1: the head is not committed yet */
    uint8_t  sealing;           /* 1: the new head's header may be there */
    uint8_t  worn;              /* 1: a program failed in the new head */
    uint8_t  turned;            /* 1: there is a head of this boot */
    uint8_t  known;             /* while opening: stretches known to be lost, */
    uint8_t  known_sum;                                     /* and granules */
    uint8_t  failed;            /* 1: a key could not be read in this call */
    uint8_t  broken;            /* 1: a sync failed, nothing is believed */
    uint8_t  stray;             /* 1: slots may be in a sector that failed
                                   before it was committed */
    uint8_t  had_erase;         /* 1: this call has had an erase */
    uint8_t  had_turn;          /* 1: it has begun a head, or tried to */
    uint8_t  in_doubt;
    uint8_t  synced;            /* 1: all that was programmed is durable */
    uint8_t  outcome_loaded;
    uint32_t shift;             /* bits of an offset in an address */
    uint32_t front;             /* where a sector's records begin */
    uint32_t clock_high;        /* upper half of the logical time */
    uint32_t opened, opened_high;   /* that time at the opening; while opening,
                                   of the header that tells of doubt */
    uint32_t sequence;          /* the highest that was ever used */
    uint32_t head;              /* sector that is written to */
    uint32_t at;                /* offset there of the next record; 0: none may
                                   be appended, the next goes to a new sector */
    uint32_t tail;              /* oldest sector that the head needs by its
                                   header; */
    uint32_t kept;              /* or the one before, which is the head if that
                                   header was torn */
    uint32_t clean;             /* oldest sector in which something is needed */
#if IDEM_WIDE
    idem_link written;          /* ends of the order in which slots' claims were
                                   written */
#else
    uint32_t cursor;            /* slot at which carrying goes on */
#endif
    uint32_t spare;             /* sectors after the head erased in this boot */
    uint32_t erasing;           /* sector of which an erase was started, plus
                                   one */
    uint32_t state_at;          /* address of the newest application state */
    uint32_t newest;            /* address of the record to be confirmed */
    uint32_t newest_slot;
    uint32_t newest_len;
    uint32_t doubt;             /* logical ms: until then unknown keys may be
                                   lost ones */
    uint32_t outcome_max;       /* bytes reserved for an outcome */
    uint32_t record_max;        /* of each buffer for one record */
    uint32_t end;               /* where the head's records end */
    uint32_t leave;             /* bytes of the head that carrying leaves */
    uint32_t low;               /* dead sectors below which carrying begins */
    uint32_t in_size;           /* bytes of the reading buffer */
    uint32_t loaded;            /* slot whose records are in it */
    uint32_t own_end;           /* while opening: up to where the head's records
                                   are certain to have been whole */
    uint32_t attempt;           /* while opening: a sector with a header that
                                   may be seen to be committed another time */
    uint32_t hint;              /* while opening: see idemi_recover_outcome */
    uint32_t check;             /* tells one secret from another */
    uint32_t carry_max;         /* of a record that is carried, at most */
    uint32_t least;             /* sectors that must not be retired */
    uint32_t unread;            /* slot that could not be carried once */
    idem_record record;
    uint32_t retentions[IDEMI_RETENTIONS];
} idem_journal;
#endif

#define IDEMI_REACHES 4         /* a power of two */

/* A table.  Any number may be open.  No pointer into itself: it may be moved
   while no call is under way. */
typedef struct idem_table {
    uint32_t magic;             /* marks an open table */
    uint8_t  inside;            /* 1: a call is under way */
    uint16_t state_len;
    idem_number free;           /* first free slot; capacity: none */
    idem_number tidy;           /* slot at which idem_maintain goes on */
    const idem_config *config;
    unsigned char *slots;       /* capacity x stride bytes */
    idem_link *links;           /* one for every slot, and the order's ends */
    idem_word *index;           /* IDEMI_WORDS x capacity words */
    unsigned char *state;       /* application state, state_max bytes */
    idem_journal *journal;      /* NULL: none */
    unsigned char *in;          /* its reading buffer */
    size_t   stride;            /* bytes from slot to slot */
    unsigned capacity;
    unsigned index_size;        /* words */
    uint32_t tick;              /* the now_ms that the clock followed last */
    uint32_t counted;           /* the tick up to which time was counted, before
                                   a step back that was followed; else tick */
    uint32_t clock;             /* logical ms */
    uint32_t swept;             /* clock at the last look at all slots */
    uint32_t soonest;           /* no slot is over before this time */
    uint32_t used;              /* slots in use, over ones too until they are
                                   dropped; promised */
    uint32_t pending;           /* of them: delivery owed; promised */
    uint32_t claimed;           /* of them: claims of this boot */
    uint32_t stale;             /* of them: claims that are over */
    uint64_t token;             /* last one granted */
    uint32_t evicted;           /* newest completion evicted, logical ms */
    uint32_t reach[IDEMI_REACHES];  /* by scope hash: newest completion that
                                       may be forgotten, logical ms */
    idem_stats stats;           /* promised */
    size_t   needed;            /* after IDEM_E_MEMORY, bytes of memory that
                                   would do; after IDEM_E_SPACE from idem_open,
                                   sectors (0: none would); promised */
    int      storage_error;     /* what a storage callback returned last that
                                   was not 0; promised */
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
#define IDEMI_BODY_SIZE(key_max, response_max)                                 \
    (sizeof(idem_body) +                                                       \
     IDEMI_ROUND4(UINT32_C(0) + (size_t)(key_max) + (response_max)))
#define IDEMI_TABLE_SIZE(capacity, slot_size, state_max)                       \
    ((size_t)(capacity) * (slot_size) +                                        \
     IDEMI_ROUND4(((size_t)(capacity) + 1u) * sizeof(idem_link)) +             \
     IDEMI_ROUND4((size_t)(capacity) * IDEMI_WORDS * sizeof(idem_word)) +      \
     IDEMI_ROUND4(state_max))
#define IDEM_MEMORY_SIZE(capacity, key_max, response_max, state_max)           \
    IDEMI_TABLE_SIZE(                                                          \
        capacity, sizeof(idem_slot) + IDEMI_BODY_SIZE(key_max, response_max),  \
        state_max)

#ifdef IDEM_CELLS
/* Bytes of storage that so many keys take, at least; then of memory for a table
   with a storage of `size` bytes. */
#define IDEMI_CELLS_PAD(n, prog_size)                                          \
    (((n) + (prog_size) - 1u) & ~(UINT32_C(0) + (prog_size) - 1u))
#define IDEMI_CELL_SIZE(wide, key_max, response_max, state_max, prog_size)     \
    IDEMI_CELLS_PAD(IDEMI_CELLS_FIXED + 2u * (wide) + UINT32_C(0) +            \
                        (size_t)(key_max) + (response_max) + (state_max) +     \
                        ((state_max) ? 2u : 0u), prog_size)
#define IDEMI_CELLS_HEADERS(prog_size)                                         \
    (2u * IDEMI_CELLS_PAD(IDEMI_CELLS_HEADER, prog_size))
#define IDEM_CELLS_SIZE(capacity, key_max, response_max, state_max, prog_size) \
    (IDEMI_CELLS_HEADERS(prog_size) +                                          \
     (UINT32_C(0) + (size_t)(capacity) + IDEMI_CELLS_FREE) *                   \
         IDEMI_CELL_SIZE(                                                      \
             (capacity) + IDEMI_CELLS_FREE > IDEMI_CELLS_MIDDLE   ? 3u         \
             : (capacity) + IDEMI_CELLS_FREE > IDEMI_CELLS_NARROW ? 2u         \
                                                                  : 1u,        \
             key_max, response_max, state_max, prog_size))
#define IDEM_CELLS_MEMORY_SIZE(capacity, key_max, response_max, state_max,     \
                               size, prog_size)                                \
    (IDEM_MEMORY_SIZE(capacity, key_max, response_max, state_max) +            \
     IDEMI_ROUND4(sizeof(idem_journal)) +                                      \
     IDEMI_ROUND4(((size_t)(capacity) +                                        \
                   ((size) - IDEMI_CELLS_HEADERS(prog_size)) /                 \
                       IDEMI_CELL_SIZE(1u, key_max, response_max, state_max,   \
                                       prog_size)) *                           \
                  sizeof(idem_number)) +                                       \
     IDEMI_ROUND4(IDEMI_CELL_SIZE(3u, key_max, response_max, state_max,        \
                                  prog_size)))
#else
/* The same for a table with storage; _IN_RAM_ with config.in_ram.  More than
   that makes opening faster: what is left over is a larger reading buffer. */
#define IDEMI_RECORD_SIZE(key_max, response_max, state_max, prog_size)         \
    IDEMI_ROUND4(IDEMI_RECORD_FIXED + (size_t)(key_max) + (response_max) +     \
                 (state_max) + (prog_size))
#define IDEMI_BUFFERS_SIZE(key_max, response_max, state_max, sector_count,     \
                           prog_size)                                          \
    (IDEMI_ROUND4(sizeof(idem_journal) +                                       \
                  (size_t)(sector_count) * sizeof(idem_sector)) +              \
     4u * IDEMI_RECORD_SIZE(key_max, response_max, state_max, prog_size))
#define IDEM_JOURNAL_MEMORY_SIZE(capacity, key_max, response_max, state_max,   \
                                 sector_count, prog_size)                      \
    (IDEMI_TABLE_SIZE(capacity, sizeof(idem_slot) + sizeof(idem_place),        \
                      state_max) +                                             \
     IDEMI_BUFFERS_SIZE(key_max, response_max, state_max, sector_count,        \
                        prog_size))
#define IDEM_JOURNAL_IN_RAM_MEMORY_SIZE(capacity, key_max, response_max,       \
                                        state_max, sector_count, prog_size)    \
    (IDEMI_TABLE_SIZE(capacity, sizeof(idem_slot) + sizeof(idem_place) +       \
                      IDEMI_BODY_SIZE(key_max, response_max), state_max) +     \
     IDEMI_BUFFERS_SIZE(key_max, response_max, state_max, sector_count,        \
                        prog_size))
#endif

/* ---------------------------------------------------------------------------
   >>functions   in the order of a table's life

   Arguments: the object, outputs, inputs, the time.  Every function that takes
   a table may answer IDEM_E_ARG (NULL where it is not allowed, a table that is
   not open) and IDEM_E_LOCK; then nothing changed, the clock included (idem_run
   says what else).  With a journal also IDEM_E_STORAGE, where the answer needs
   a record that cannot be read.  Apart from these, only the results named can
   come.
   ------------------------------------------------------------------------ */

/* Opens a table in `memory` (aligned as uint32_t, for size bytes; see
   IDEM_MEMORY_SIZE), empty, or as config->storage has it, which is only read.
   What table and memory held before is not looked at.  config is kept by
   pointer; it must stay as it is while the table is open.  Not to be called
   while another call on the table is under way; there is no close: let go of
   both when done.  Claims of an earlier opening are to be thrown away; without
   storage tokens start at 1 again.
     IDEM_OK
     IDEM_E_ARG      config: no capacity or key_max, a value out of range, a
                     secret with a zero half, one lock hook alone; a storage
                     that cannot be, volatile_claims without in_ram (with
                     IDEM_CELLS at all)
     IDEM_E_MEMORY   memory NULL, misaligned or too small: table->needed is the
                     size that would do (so NULL and 0 ask for it)
     IDEM_E_SPACE    the storage cannot keep that many keys, whatever comes:
                     table->needed is the number of sectors that would do, 0
                     if their size does not (with IDEM_CELLS, of bytes)
     IDEM_E_FORMAT   the storage is neither blank nor a journal of this version,
                     geometry, hash and secret
   What cannot be read is damage, not a failure: see stats.lost.  After a
   failure the table is closed. */
IDEM_API int idem_open(idem_table *table, const idem_config *config,
                       void *memory, size_t size, uint32_t now_ms);

/* The same, but whatever the storage holds is destroyed first; it is blank
   afterwards, and so is the table.  A power cut before the end leaves what was
   there, or that with what is lost told, or nothing that idem_open takes:
   format again.  Tokens start anew: whatever refuses those below the highest
   that it has seen has to forget that.
     as idem_open
     IDEM_E_ARG      also without storage
     IDEM_E_STORAGE  a callback failed; the table is closed */
IDEM_API int idem_format(idem_table *table, const idem_config *config,
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
     IDEM_E_STORAGE                   nothing is granted, but may be found
                                      granted after a restart (IDEM_RECOVER)
     IDEM_E_SPACE                     too many sectors are retired; or nearly
                                      2^32 were filled
   IDEM_RECOVER with claim->attempt 1 says not that the key was cut short, but
   that it may be a lost one.  A claim taken over (RECOVER) has the lease,
   retention and reservation of the new request.  *claim is zeroed unless it is
   granted; it must not be reply->claim. */
IDEM_API int idem_begin(idem_table *table, idem_claim *claim,
                        idem_reply *reply, const idem_request *request,
                        uint32_t now_ms);

/* Stores the outcome; from now on it is replayed.  Application state, if any,
   changes in the same step.
     IDEM_OK            the claim is used up
     IDEM_E_FENCED      the claim is not current
     IDEM_E_TOO_LARGE   response over what was reserved, state over state_max;
                        the claim stays, complete with something shorter
     IDEM_E_ARG         NULL with a length
     IDEM_E_STORAGE     the claim stays, repeat the call.  After a restart the
                        outcome is there or not, whole */
IDEM_API int idem_complete(idem_table *table, const idem_claim *claim,
                           const idem_outcome *outcome, uint32_t now_ms);

/* Gives the claim back after a transient failure; the key is unknown again, its
   attempts forgotten.  Only if the effect has not happened: the next begin is
   answered IDEM_EXECUTE.
     IDEM_OK, IDEM_E_FENCED
     IDEM_E_STORAGE, IDEM_E_SPACE   the claim stays, repeat the call */
IDEM_API int idem_release(idem_table *table, const idem_claim *claim,
                          uint32_t now_ms);

/* Lengthens the lease to lease_ms from now (0: the default lease,
   IDEM_LEASE_NONE: no end); never shortens it.  Writes nothing.
     IDEM_OK, IDEM_E_FENCED
     IDEM_E_ARG         lease out of range */
IDEM_API int idem_renew(idem_table *table, const idem_claim *claim,
                        uint32_t lease_ms, uint32_t now_ms);

/* A handler executes a command for idem_run, which holds the claim and not the
   lock.  answer is IDEM_EXECUTE or IDEM_RECOVER.  *outcome is zeroed, for it to
   fill in; what that points to must last until idem_run returns.  The response
   may be in reply->buffer, from its start on, but nowhere else in it.  *now_ms
   holds the tick that idem_run was given, and is to be set to the tick at the
   end.  Returns 0 to complete, anything else to release: only if the effect has
   not happened. */
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

/* One bounded step of idle work: erases a sector ahead, or carries some records
   forward, or else drops what is over in the next 64 slots.
     IDEM_MORE   there is more to do, or an erase is under way
     IDEM_OK     there is not; the next call starts another round
     IDEM_E_STORAGE, IDEM_E_SPACE   what was to be done is not; go on */
IDEM_API int idem_maintain(idem_table *table, uint32_t now_ms);

/* Makes everything before it durable, with IDEM_BATCH.
     IDEM_OK
     IDEM_E_STORAGE  it is not; what is not written by then may never be.  From
                     now on every call that would write is answered so, until
                     the table is opened again */
IDEM_API int idem_sync(idem_table *table);

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
     IDEM_OK, IDEM_E_NOT_FOUND (there are no more)
     IDEM_E_STORAGE     this one cannot be read; go on with the next */
IDEM_API int idem_next(idem_table *table, idem_entry *entry, uint32_t now_ms);

/* The next undelivered outcome, the oldest completion first, after the one
   that *entry holds from the call before; from the start if it is zeroed, or
   that outcome is no more.
     IDEM_OK, IDEM_E_NOT_FOUND (there are no more)
     IDEM_E_STORAGE     there are no more but what cannot be read; elsewhere in
                        the list that is stepped over */
IDEM_API int idem_pending(idem_table *table, idem_entry *entry,
                          uint32_t now_ms);

/* Marks an outcome as delivered: it is no longer owed, and may be evicted.
     IDEM_OK            also if it was, or never was owed
     IDEM_E_NOT_FOUND   no such outcome, or no more
     IDEM_E_STORAGE, IDEM_E_SPACE   nothing changed, repeat the call */
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
     IDEM_OK
     IDEM_E_NOT_FOUND   nothing was removed, as in idem_find: a claim that was
                        being written when power went may yet show up
     IDEM_BUSY          the key has a live lease, or one without end; nothing
                        changed
     IDEM_E_STORAGE, IDEM_E_SPACE   nothing changed, repeat the call
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

#ifdef IDEM_FILE_STORAGE
/* The file of a journal, for programs on a POSIX system.  Must not be moved or
   copied while it is open: storage points to it. */
typedef struct idem_file {
    idem_storage storage;       /* config.storage = &file.storage; its callbacks
                                   return an errno; promised */
    int  error;                 /* 0, or the errno of what failed: opening, or a
                                   sync, after which nothing is written until
                                   the file is opened again; promised */
    int  fd;                    /* -1: closed */
    long owner;                 /* the process that opened it */
} idem_file;

/* Opens a journal's file, sector_size x sector_count bytes, for this process
   alone; makes it, readable by its owner only and full of zeros, if there is
   none.  Then open a table with config.storage = &file->storage.
     IDEM_OK
     IDEM_E_LOCK      it is open, or being made: by another process, or as
                      another idem_file of this one
     IDEM_E_ARG       NULL, sizes that an idem_storage cannot have
     IDEM_E_FORMAT    not a regular file, or not of that size: not touched
     IDEM_E_STORAGE   the system refused; file->error is the errno
   Only after IDEM_OK is there something to close.  Do not open what is open.

   The file is made as `path` with ".new" behind it, a name that nobody else
   may use, and linked to `path` when it is whole.  A process that dies in the
   middle leaves nothing that stands in the way.  Wants a local file system
   with hard links.

   The lock is flock's: it keeps out who asks for it, and ends with the process.
   After a fork the file stays the parent's.  In the child every callback
   returns EPERM; a child that lives on should close it, for as long as its copy
   is open the parent's death does not end the lock.  So open it after
   daemonizing.  An exec closes it. */
IDEM_API int idem_file_open(idem_file *file, const char *path,
                            uint32_t sector_size, uint32_t sector_count);

/* Closes the file, and ends the lock (in a forked child: only the former).
   Let go of the table first; in batch mode what idem_sync has not made durable
   may be lost.  Closing again does nothing.
     IDEM_OK
     IDEM_E_ARG       NULL, or never opened
     IDEM_E_STORAGE   closed, but the system complained: see file->error */
IDEM_API int idem_file_close(idem_file *file);
#endif

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

#ifdef IDEM_FILE_STORAGE
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#ifdef __APPLE__
#error "IDEM_FILE_STORAGE: not here, where a sync does not reach the disk"
#endif
#ifndef O_CLOEXEC                       /* one that POSIX has since 2008 only */
#error "IDEM_FILE_STORAGE: _POSIX_C_SOURCE must be 200809L before any #include"
#endif
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
             (unsigned)-1 / IDEMI_WORDS >= IDEM_CAPACITY_MAX);
IDEMI_ASSUME(links_stay_aligned, sizeof(idem_slot) % 4 == 0);

/* Alignment that memory must have: that of its strictest tenant, a slot. */
typedef struct idemi_aligned {
    char      first;
    idem_slot slot;
} idemi_aligned;
#define IDEMI_ALIGNMENT offsetof(idemi_aligned, slot)
#ifndef IDEM_NO_JOURNAL
typedef struct idemi_aligned_journal {
    char         first;
    idem_journal journal;
} idemi_aligned_journal;
IDEMI_ASSUME(a_journal_needs_no_more_than_a_slot,
             offsetof(idemi_aligned_journal, journal) <= IDEMI_ALIGNMENT);
#endif

/* Where the compiler is told to optimize for size, a function's locals are kept
   out of its caller's stack frame.  Where it is not, everything below a
   function becomes part of it, and a few rounds are written out: a hash whose
   rounds are constants there takes half the time.  (`make size` and
   `make bench` measure both.) */
#if defined(__GNUC__) && defined(__OPTIMIZE_SIZE__)
#define IDEMI_APART __attribute__((noinline))
#define IDEMI_FLAT
#define IDEMI_UNROLL
#elif defined(__GNUC__)
#define IDEMI_APART
#define IDEMI_FLAT __attribute__((flatten))
#define IDEMI_UNROLL _Pragma("GCC unroll 4")
#else
#define IDEMI_APART
#define IDEMI_FLAT
#define IDEMI_UNROLL
#endif

/* What waits for a storage stays out of the way of what does not. */
#if defined(__GNUC__)
#define IDEMI_SLOW __attribute__((noinline))
#else
#define IDEMI_SLOW
#endif

/* Says which way the compiler is to make fast: the one that does not wait for a
   storage. */
#if defined(__GNUC__)
#define IDEMI_SELDOM(condition) __builtin_expect(!!(condition), 0)
#else
#define IDEMI_SELDOM(condition) (condition)
#endif

/* Asks for what a lookup is about to read; changes nothing but the time. */
#if defined(__GNUC__) && IDEM_WIDE
#define IDEMI_PREFETCH(address) __builtin_prefetch(address)
#else
#define IDEMI_PREFETCH(address) ((void)(address))
#endif

/* Where what a processor can do is asked at run time */
#if defined(__x86_64__) && defined(__GNUC__) && __STDC_HOSTED__ &&             \
    !defined(__FRAMAC__)
#define IDEMI_SSE
#endif

/* "idem", as a journal's headers begin, and open tables */
#define IDEMI_MAGIC UINT32_C(0x6D656469)

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

    IDEMI_UNROLL
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
   >>defaults  what a zero in the configuration means
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

static uint32_t idemi_default_lease(const idem_table *t, uint32_t asked_ms)
{
    return idemi_default(asked_ms, t->config->lease_ms, IDEMI_LEASE_MS);
}

IDEMI_APART
static uint32_t idemi_default_retention(const idem_table *t, uint32_t asked_ms)
{
    return idemi_default(asked_ms, t->config->retention_ms,
                         IDEMI_RETENTION_MS);
}

/* ---------------------------------------------------------------------------
   >>slots     one key's place, and the bytes behind it

       without storage        with storage      with storage, in_ram
       idem_slot              idem_slot         idem_slot
       idem_body              idem_place        idem_body
       scope, then key                          scope, then key   key_max bytes
       response                                 response     response_max bytes
       nothing                                  nothing      to a multiple of 4
                                                idem_place

   Whoever needs a body asks idemi_slot_body for it, which is NULL only if the
   storage does not give it.  A body that was read from there is good until the
   next is asked for, or something is written.

   state: bits 0-1 are 0 (free) or IDEM_IN_PROGRESS, _COMPLETED, _FAILED.
   ------------------------------------------------------------------------ */
#define IDEMI_STATUS      0x03u
#define IDEMI_IN_PROGRESS 0x01u         /* IDEM_IN_PROGRESS, to be combined */
#define IDEMI_FINISHED    0x02u         /* set in both finished states */
#define IDEMI_UNDELIVERED 0x04u
#define IDEMI_ENDLESS     0x08u         /* a lease without end */

/* A table's journal, a configuration's storage, and the states that only they
   bring; without them in the build the compiler sees that nothing of it ever
   happens.  With IDEM_CELLS all bodies are in memory. */
#ifdef IDEM_NO_JOURNAL
#define IDEMI_CUT   0x00u
#define IDEMI_STALE 0x00u
#define IDEMI_STALES(t) 0
#define IDEMI_JOURNAL(t) ((void)(t), (idem_journal *)NULL)
#define IDEMI_STORAGE(config) ((void)(config), (const idem_storage *)NULL)
#else
#define IDEMI_CUT   0x10u               /* a claim that a restart cut short */
#define IDEMI_STALE 0x20u               /* a claim that is over; its slot waits
                                           to be used again (>>journal) */
#define IDEMI_STALES(t) ((t)->stale)    /* how many */
#define IDEMI_JOURNAL(t) (IDEMI_SELDOM((t)->journal) ? (t)->journal : NULL)
#define IDEMI_STORAGE(config) ((config)->storage)
#endif
#ifdef IDEM_CELLS
#define IDEMI_UNTOLD 0x40u              /* cut short, and not yet written */
#define IDEMI_CLAIM_ASSURES 0           /* see idemi_command_begin */
#define IDEMI_BODIES(t) ((void)(t), 1)
#define IDEMI_LOAD(t, slot, outcome) ((void)(outcome), IDEM_OK)
#define IDEMI_STORED(t) ((void)(t), (idem_record *)NULL)
#define IDEMI_PLACES(config) ((void)(config), (const idem_storage *)NULL)
#define IDEMI_FAIL(t) ((void)(t))
#define IDEMI_UNREADABLE(t) ((void)(t), 0)
#define IDEMI_WRITTEN(t, slot) ((void)(t), (void)(slot), 1)
#define IDEMI_VOLATILE(config) ((void)(config), 0)
#else
#define IDEMI_UNTOLD 0x00u
#define IDEMI_CLAIM_ASSURES 1
#define IDEMI_BODIES(t) (!IDEMI_JOURNAL(t) || (t)->config->in_ram)
#define IDEMI_LOAD(t, slot, outcome) idemi_journal_load(t, slot, outcome)
#define IDEMI_STORED(t) (&(t)->journal->record)
#define IDEMI_PLACES(config) IDEMI_STORAGE(config)
#define IDEMI_FAIL(t) ((void)((t)->journal->failed = 1))
#define IDEMI_UNREADABLE(t) ((t)->journal->failed)
#define IDEMI_WRITTEN(t, slot)                                                 \
    (idemi_slot_place(t, slot)->claim != IDEMI_NOWHERE)
#define IDEMI_VOLATILE(config) ((config)->in_ram)

static int idemi_journal_load(idem_table *t, unsigned slot, int outcome);
#endif
#if defined(IDEM_NO_JOURNAL) || defined(IDEM_CELLS)
#define IDEMI_UNREAD(body) ((void)(body), 0)
#else
#define IDEMI_UNREAD(body) (!(body))    /* the storage does not give it */
#endif

static idem_slot *idemi_slot_at(const idem_table *t, unsigned slot)
{
    return (idem_slot *)(void *)(t->slots + slot * t->stride);
}

/* Bytes of a slot and what follows it: wider than size_t may be. */
static uint32_t idemi_slot_size(const idem_table *t)
{
    const idem_config *config = t->config;
    uint32_t size = sizeof(idem_slot);

    if (!IDEMI_PLACES(config) || config->in_ram)
        size += (uint32_t)IDEMI_BODY_SIZE(config->key_max,
                                          config->response_max);
    return IDEMI_PLACES(config) ? size + (uint32_t)sizeof(idem_place) : size;
}

/* True if keys and responses are in memory. */
static int idemi_slot_bodies(const idem_table *t)
{
    return IDEMI_BODIES(t);
}

/* Where the slot's records are.  Needs a journal. */
static idem_place *idemi_slot_place(const idem_table *t, unsigned slot)
{
    return (idem_place *)(void *)(t->slots + (slot + 1) * t->stride) - 1;
}

/* The body of a slot in memory. */
static idem_body *idemi_slot_own(idem_slot *s)
{
    return (idem_body *)(void *)(s + 1);
}

/* The body of a slot in use, wherever it is, with or without what it knows of
   the outcome; or NULL. */
static idem_body *idemi_slot_body(idem_table *t, unsigned slot, int outcome)
{
    if (idemi_slot_bodies(t))
        return idemi_slot_own(idemi_slot_at(t, slot));
    if (IDEMI_LOAD(t, slot, outcome) < 0)
        return NULL;
    return &IDEMI_STORED(t)->body;
}

/* Scope and key, one after the other, of the body last asked for. */
static unsigned char *idemi_slot_id(const idem_table *t, unsigned slot)
{
    if (idemi_slot_bodies(t))
        return (unsigned char *)(idemi_slot_own(idemi_slot_at(t, slot)) + 1);
    return t->in + IDEMI_STORED(t)->id_at;
}

/* The response of the body last asked for. */
static unsigned char *idemi_slot_response(const idem_table *t, unsigned slot)
{
    if (idemi_slot_bodies(t))
        return idemi_slot_id(t, slot) + t->config->key_max;
    return t->in + IDEMI_STORED(t)->response_at;
}

/* The attempts of the body last asked for. */
static unsigned idemi_slot_attempts(const idem_table *t, unsigned slot)
{
    if (idemi_slot_bodies(t))
        return idemi_slot_at(t, slot)->terms;
    return IDEMI_STORED(t)->attempts;
}

static int idemi_slot_has_scope(idem_table *t, unsigned slot,
                                const idem_request *rq)
{
    const idem_body *body = idemi_slot_body(t, slot, 0);

    return !IDEMI_UNREAD(body) && body->scope_len == rq->scope_len &&
           idemi_basics_equal(idemi_slot_id(t, slot), rq->scope,
                              rq->scope_len);
}

static int idemi_slot_has_id(idem_table *t, unsigned slot,
                             const idem_request *rq)
{
    const idem_body *body = idemi_slot_body(t, slot, 0);

    if (IDEMI_UNREAD(body))
        IDEMI_FAIL(t);
    return !IDEMI_UNREAD(body) && body->key_len == rq->key_len &&
           idemi_slot_has_scope(t, slot, rq) &&
           idemi_basics_equal(idemi_slot_id(t, slot) + rq->scope_len, rq->key,
                              rq->key_len);
}

/* How long the key is remembered after slot.time. */
static uint32_t idemi_slot_retention(const idem_table *t, const idem_slot *s)
{
    if (idemi_slot_bodies(t))
        return ((const idem_body *)(const void *)(s + 1))->retention;
    return t->journal->retentions[s->terms];
}

/* When the key is dropped, if nothing happens to it. */
static uint32_t idemi_slot_due(const idem_table *t, const idem_slot *s)
{
    if (s->state & IDEMI_ENDLESS)
        return t->clock + IDEMI_NEVER_MS;
    return s->time + idemi_slot_retention(t, s);
}

static int idemi_slot_over(const idem_table *t, const idem_slot *s)
{
    return (s->state & IDEMI_STALE) ||
           idemi_clock_reached(t->clock, idemi_slot_due(t, s));
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

   An array of 2 x capacity words, 3 x with IDEM_WIDE.  A key's home is its hash
   scaled to that; its word stands at its home, or at the next empty position
   after it.  A word is the slot's number plus one, so that one in use is never
   0.  The hash stands in the slot.  With IDEM_WIDE a word has five bits of it,
   and how far it is past its home: such machines have caches, and the words of
   other keys are passed, and moved, without leaving the index.  They also guess
   where a search will end, and with more words are right more often; fewer
   stay in the cache: 3 x 4 bytes won over 2 x 4, 4 x 4 and 2 x 8 in `make
   bench`.

       homes   2    2    3    5
       at      2    3    4    5    6
       word    a    b    c    d    -

   Erasing a closes the gap: b and c move back, for they are not at home, and
   nothing that was reached over a may become unreachable; d stays.  Marking the
   word as deleted would be shorter, but nothing here ever rehashes, and marks
   would fill the index.  Homes are told from what is kept, so nothing is hashed
   or compared when a key leaves.

   Why not Robin Hood order: it ends the search for an absent key one word
   earlier, and needs twice the code.

   T1  Every slot in use has exactly one word, and every word such a slot.
   T2  From a key's home to its word none is empty, and that says truly how far
       it is and what its tag is: so every key is found.
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

/* Asks for the word of a hash, which is about to be looked at. */
static void idemi_index_prefetch(const idem_table *t, idem_number hash)
{
    IDEMI_PREFETCH(&t->index[idemi_index_home(t, hash)]);
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

/* True if a slot, whose word is at a position, has a hash. */
static int idemi_index_is(const idem_table *t, unsigned at, unsigned slot,
                          idem_number hash)
{
#if IDEM_WIDE
    if (t->index[at].tag != (hash % IDEMI_WORD_TAGS))
        return 0;
#else
    (void)at;
#endif
    return idemi_slot_at(t, slot)->hash == hash;
}

/* Positions from `from` on to `to`, round the end. */
static unsigned idemi_index_distance(const idem_table *t, unsigned from,
                                     unsigned to)
{
    return to >= from ? to - from : to + t->index_size - from;
}

/* How far past its home a slot's word stands, which is at a position. */
static unsigned idemi_index_past(const idem_table *t, unsigned at,
                                 unsigned slot)
{
    idem_number hash;

#if IDEM_WIDE
    if (t->index[at].past < IDEMI_WORD_PAST)
        return t->index[at].past;
#endif
    hash = idemi_slot_at(t, slot)->hash;
    return idemi_index_distance(t, idemi_index_home(t, hash), at);
}

/* Has the word at a position say how far past its home it is, if words do. */
static void idemi_index_note(const idem_table *t, unsigned at, unsigned past)
{
#if IDEM_WIDE
    if (past > IDEMI_WORD_PAST)
        past = IDEMI_WORD_PAST;
    t->index[at].past = past % (IDEMI_WORD_PAST + 1);
#else
    (void)t;
    (void)at;
    (void)past;
#endif
}

/* The slot of a key, or IDEMI_NONE.  Needs T2 and T3. */
static unsigned idemi_index_find(idem_table *t, idem_number hash,
                                 const idem_request *rq)
{
    unsigned at = idemi_index_home(t, hash);

    for (;; at = idemi_index_next(t, at)) {
        unsigned slot = idemi_index_slot(t, at);
        if (slot == IDEMI_NONE ||
            (idemi_index_is(t, at, slot, hash) &&
             idemi_slot_has_id(t, slot, rq)))
            return slot;
    }
}

/* Puts a slot whose key is not in the index into it.  Keeps T1, T2. */
static void idemi_index_insert(idem_table *t, idem_number hash, unsigned slot)
{
    unsigned at = idemi_index_home(t, hash), past = 0;

    for (; idemi_index_slot(t, at) != IDEMI_NONE; past++)
        at = idemi_index_next(t, at);
#if IDEM_WIDE
    t->index[at].slot = (slot + 1) % IDEMI_WORD_SLOTS;
    t->index[at].tag = hash % IDEMI_WORD_TAGS;
#else
    t->index[at].slot = (idem_number)(slot + 1);
#endif
    idemi_index_note(t, at, past);
    idemi_slot_at(t, slot)->hash = hash;
}

/* Takes a slot that is in the index out of it, and closes the gap: a word moves
   back into it unless its home is behind the gap.  Keeps T1, T2. */
static void idemi_index_erase(idem_table *t, unsigned slot)
{
    unsigned gap = idemi_index_home(t, idemi_slot_at(t, slot)->hash);
    unsigned at, way, other;

    while (idemi_index_slot(t, gap) != slot)
        gap = idemi_index_next(t, gap);
    at = idemi_index_next(t, gap);
    for (way = 1; (other = idemi_index_slot(t, at)) != IDEMI_NONE; way++) {
        unsigned past = idemi_index_past(t, at, other);
        if (past >= way) {
            t->index[gap] = t->index[at];
            idemi_index_note(t, gap, past - way);
            gap = at;
            way = 0;
        }
        at = idemi_index_next(t, at);
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
    t->links[slot].newer = t->free;
    t->free = (idem_number)slot;
}

/* Takes a free slot out of the free list, where it is first, or not far behind
   slots that were freed since it was. */
static void idemi_order_take(idem_table *t, unsigned slot)
{
    idem_number *link = &t->free;

    while (*link != slot)
        link = &t->links[*link].newer;
    *link = t->links[slot].newer;
}

/* Lowers the bound to the due time of a slot.  Keeps O3. */
static void idemi_order_note(idem_table *t, const idem_slot *s)
{
    uint32_t due = idemi_slot_due(t, s);

    if (idemi_clock_rank(t->clock, due) <
        idemi_clock_rank(t->clock, t->soonest))
        t->soonest = due;
}

/* Puts a slot into the order by its time, going from the place of `hint`, a
   finished slot or `capacity`. */
IDEMI_APART
static void idemi_order_insert(idem_table *t, unsigned slot, unsigned hint)
{
    unsigned ends = t->capacity;
    uint32_t age = t->clock - idemi_slot_at(t, slot)->time;
    unsigned newer;

    while (hint != ends && t->clock - idemi_slot_at(t, hint)->time < age)
        hint = t->links[hint].older;
    for (;;) {
        newer = t->links[hint].newer;
        if (newer == ends || t->clock - idemi_slot_at(t, newer)->time < age)
            break;
        hint = newer;
    }
    t->links[slot].older = (idem_number)hint;
    t->links[slot].newer = (idem_number)newer;
    t->links[hint].newer = (idem_number)slot;
    t->links[newer].older = (idem_number)slot;
}

/* The oldest live completion that may be evicted, of the request's scope or,
   with NULL, of any; or `capacity`. */
static unsigned idemi_order_evictable(idem_table *t, const idem_request *rq)
{
    unsigned slot = t->capacity;

    for (;;) {
        idem_slot *s;
        slot = t->links[slot].newer;
        if (slot == t->capacity)
            return slot;
        s = idemi_slot_at(t, slot);
        if (!(s->state & IDEMI_UNDELIVERED) && !idemi_slot_over(t, s) &&
            (!rq || idemi_slot_has_scope(t, slot, rq)))
            return slot;
    }
}

/* ---------------------------------------------------------------------------
   >>storage   the callbacks, and what becomes of their failures
   ------------------------------------------------------------------------ */

/* Inside, an address is a sector's number, shifted, and an offset in it: so
   that both are had without a division.  This is none: */
#define IDEMI_NOWHERE UINT32_MAX

#ifdef IDEM_CELLS
static uint32_t idemi_storage_linear(const idem_table *t, uint32_t at)
{
    (void)t;
    return at;
}
#else
static uint32_t idemi_storage_sector(const idem_table *t, uint32_t at)
{
    return at >> t->journal->shift;
}

static uint32_t idemi_storage_offset(const idem_table *t, uint32_t at)
{
    return at & ((UINT32_C(1) << t->journal->shift) - 1);
}

/* The address of an offset in a sector. */
static uint32_t idemi_storage_place(const idem_table *t, uint32_t sector,
                                    uint32_t offset)
{
    return sector << t->journal->shift | offset;
}

/* Bytes from the start of the storage to an address. */
static uint32_t idemi_storage_linear(const idem_table *t, uint32_t at)
{
    return idemi_storage_sector(t, at) * t->config->storage->sector_size +
           idemi_storage_offset(t, at);
}
#endif

/* Keeps what a callback returned, if that was a failure. */
static int idemi_storage_result(idem_table *t, int result)
{
    if (result == 0)
        return IDEM_OK;
    t->storage_error = result;
    return IDEM_E_STORAGE;
}

static int idemi_storage_read(idem_table *t, uint32_t at, void *dst,
                              uint32_t len)
{
    const idem_storage *m = t->config->storage;

    return idemi_storage_result(
        t, m->read(m->ctx, idemi_storage_linear(t, at), dst, len));
}

/* Reads bytes; where that fails, granule by granule, so that one that cannot be
   read hides no byte of another: it has erased bytes then.  Returns whether all
   could be read. */
static int idemi_storage_salvage(idem_table *t, uint32_t at, unsigned char *dst,
                              uint32_t len)
{
    uint32_t granule = t->config->storage->prog_size, step;
    int result = 1;

    if (idemi_storage_read(t, at, dst, len) == IDEM_OK)
        return 1;
    for (; len > 0; len -= step, at += step, dst += step) {
        step = granule - (at & (granule - 1));
        if (step > len)
            step = len;
        if (idemi_storage_read(t, at, dst, step) == IDEM_OK)
            continue;
        IDEM_MEMSET(dst, t->config->storage->erased, (size_t)step);
        result = 0;
    }
    return result;
}

/* Rounds up to whole granules. */
static uint32_t idemi_storage_granules(const idem_table *t, uint32_t len)
{
    uint32_t granule = t->config->storage->prog_size;

    return (len + granule - 1) & ~(granule - 1);
}

/* Makes all that was programmed durable.  After a failure nobody knows what
   was; so nothing is believed until the table is opened again. */
static int idemi_storage_sync(idem_table *t)
{
    const idem_storage *m = t->config->storage;
    int result = IDEM_OK;

    if (m->sync)
        result = idemi_storage_result(t, m->sync(m->ctx));
    t->journal->synced = result == IDEM_OK;
    if (result < 0)
        t->journal->broken = 1;
    return result;
}

/* True if all of some bytes have a value. */
static int idemi_storage_all(const unsigned char *p, uint32_t len,
                             unsigned char value)
{
    for (; len > 0; len--)
        if (*p++ != value)
            return 0;
    return 1;
}

#ifndef IDEM_CELLS
/* The reading buffer has room for two records; before it is a copy of the one
   that is to be confirmed, and before that the one that is being written. */
static unsigned char *idemi_journal_copy(const idem_table *t)
{
    return t->in - t->journal->record_max;
}

static unsigned char *idemi_journal_out(const idem_table *t)
{
    return idemi_journal_copy(t) - t->journal->record_max;
}

IDEMI_APART
static idem_sector *idemi_journal_sector(const idem_table *t, uint32_t sector)
{
    return (idem_sector *)(void *)(t->journal + 1) + sector;
}

/* Programs whole granules, and reads them back if that is asked for. */
static int idemi_storage_prog(idem_table *t, uint32_t at,
                              const unsigned char *src, uint32_t len)
{
    const idem_storage *m = t->config->storage;
    unsigned char *back = t->in + t->journal->record_max;
    int result = idemi_storage_result(
        t, m->prog(m->ctx, idemi_storage_linear(t, at), src, len));

    t->journal->synced = !m->sync;
    t->journal->loaded = IDEMI_NOWHERE;
    if (result < 0)
        t->journal->worn = 1;
    if (result < 0 || (!m->verify && !t->journal->blank))
        return result;
    result = idemi_storage_read(t, at, back, len);
    if (result < 0 || IDEM_MEMCMP(src, back, (size_t)len) == 0)
        return result;
    t->journal->worn = 1;
    return IDEM_E_STORAGE;
}
#endif

/* ---------------------------------------------------------------------------
   >>crc       CRC-32C, low bit first: polynomial 0x1EDC6F41

   G. Castagnoli, S. Bräuer, M. Herrmann, "Optimization of cyclic redundancy-
   check codes with 24 and 32 parity bits", 1993.  Finds every change of up to
   five bits in a record of up to 655 bytes.
   ------------------------------------------------------------------------ */

/* The check of two things XORed is their checks XORed: so a whole table follows
   from its entries for single bits. */
#define IDEMI_CRC_2(x, a)       (x), (x) ^ (a)
#define IDEMI_CRC_4(x, a, b)    IDEMI_CRC_2(x, a), IDEMI_CRC_2((x) ^ (b), a)
#define IDEMI_CRC_8(x, a, b, c)                                                \
    IDEMI_CRC_4(x, a, b), IDEMI_CRC_4((x) ^ (c), a, b)
#define IDEMI_CRC_16(x, a, b, c, d)                                            \
    IDEMI_CRC_8(x, a, b, c), IDEMI_CRC_8((x) ^ (d), a, b, c)

#if IDEM_WIDE
#define IDEMI_CRC_64(x, a, b, c, d, e, f)                                      \
    IDEMI_CRC_16(x, a, b, c, d), IDEMI_CRC_16((x) ^ (e), a, b, c, d),          \
        IDEMI_CRC_16((x) ^ (f), a, b, c, d),                                   \
        IDEMI_CRC_16((x) ^ (e) ^ (f), a, b, c, d)
#define IDEMI_CRC_256(a, b, c, d, e, f, g, h)                                  \
    IDEMI_CRC_64(0, a, b, c, d, e, f), IDEMI_CRC_64(g, a, b, c, d, e, f),      \
        IDEMI_CRC_64(h, a, b, c, d, e, f),                                     \
        IDEMI_CRC_64((g) ^ (h), a, b, c, d, e, f)

/* What a byte leaves with none, one .. seven bytes of zeros behind it: eight
   bytes are taken at once. */
static const uint32_t idemi_crc_row[8][256] = {
    { IDEMI_CRC_256(0xf26b8303, 0xe13b70f7, 0xc79a971f, 0x8ad958cf,
                    0x105ec76f, 0x20bd8ede, 0x417b1dbc, 0x82f63b78) },
    { IDEMI_CRC_256(0x13a29877, 0x274530ee, 0x4e8a61dc, 0x9d14c3b8,
                    0x3fc5f181, 0x7f8be302, 0xff17c604, 0xfbc3faf9) },
    { IDEMI_CRC_256(0xa541927e, 0x4f6f520d, 0x9edea41a, 0x38513ec5,
                    0x70a27d8a, 0xe144fb14, 0xc76580d9, 0x8b277743) },
    { IDEMI_CRC_256(0xdd45aab8, 0xbf672381, 0x7b2231f3, 0xf64463e6,
                    0xe964b13d, 0xd725148b, 0xaba65fe7, 0x52a0c93f) },
    { IDEMI_CRC_256(0x38116fac, 0x7022df58, 0xe045beb0, 0xc5670b91,
                    0x8f2261d3, 0x1ba8b557, 0x37516aae, 0x6ea2d55c) },
    { IDEMI_CRC_256(0xef306b19, 0xdb8ca0c3, 0xb2f53777, 0x6006181f,
                    0xc00c303e, 0x85f4168d, 0x0e045beb, 0x1c08b7d6) },
    { IDEMI_CRC_256(0x68032cc8, 0xd0065990, 0xa5e0c5d1, 0x4e2dfd53,
                    0x9c5bfaa6, 0x3d5b83bd, 0x7ab7077a, 0xf56e0ef4) },
    { IDEMI_CRC_256(0x493c7d27, 0x9278fa4e, 0x211d826d, 0x423b04da,
                    0x847609b4, 0x0d006599, 0x1a00cb32, 0x34019664) }
};

static uint32_t idemi_crc_rows(uint32_t crc, const unsigned char *p,
                               uint32_t len)
{
    for (; len >= 8; len -= 8, p += 8) {
        uint32_t high = idemi_basics_load32(p + 4);
        crc ^= idemi_basics_load32(p);
        crc = idemi_crc_row[7][crc & 255] ^
              idemi_crc_row[6][crc >> 8 & 255] ^
              idemi_crc_row[5][crc >> 16 & 255] ^
              idemi_crc_row[4][crc >> 24 & 255] ^
              idemi_crc_row[3][high & 255] ^
              idemi_crc_row[2][high >> 8 & 255] ^
              idemi_crc_row[1][high >> 16 & 255] ^
              idemi_crc_row[0][high >> 24 & 255];
    }
    for (; len > 0; len--)
        crc = crc >> 8 ^ idemi_crc_row[0][(crc ^ *p++) & 255];
    return crc;
}

#ifdef IDEMI_SSE
/* The same by the instruction that SSE 4.2 has for this polynomial. */
__attribute__((target("sse4.2")))
static uint32_t idemi_crc_sse(uint32_t crc, const unsigned char *p,
                              uint32_t len)
{
    for (; len >= 8; len -= 8, p += 8)
        crc = (uint32_t)__builtin_ia32_crc32di(crc, idemi_basics_load64(p));
    for (; len > 0; len--)
        crc = __builtin_ia32_crc32qi(crc, *p++);
    return crc;
}
#endif

static uint32_t idemi_crc_update(uint32_t crc, const void *data, uint32_t len)
{
    const unsigned char *p = (const unsigned char *)data;

#ifdef IDEMI_SSE
    if (__builtin_cpu_supports("sse4.2"))
        return idemi_crc_sse(crc, p, len);
#endif
    return idemi_crc_rows(crc, p, len);
}
#else
/* What a nibble leaves */
static const uint32_t idemi_crc_table[16] = {
    IDEMI_CRC_16(0, 0x105ec76f, 0x20bd8ede, 0x417b1dbc, 0x82f63b78)
};

static uint32_t idemi_crc_update(uint32_t crc, const void *data, uint32_t len)
{
    const unsigned char *p = (const unsigned char *)data;

    for (; len > 0; len--) {
        crc ^= *p++;
        crc = crc >> 4 ^ idemi_crc_table[crc & 15];
        crc = crc >> 4 ^ idemi_crc_table[crc & 15];
    }
    return crc;
}
#endif

static unsigned char *idemi_basics_store(unsigned char *p, uint32_t word,
                                         unsigned bytes)
{
    for (; bytes > 0; bytes--) {
        *p++ = (unsigned char)word;
        word >>= 8;
    }
    return p;
}

/* A number that tells one secret from another: all of it. */
static uint32_t idemi_recover_check(const idem_table *t)
{
    idem_fingerprint_state state;
    unsigned char name[4];

    idemi_basics_store(name, IDEMI_MAGIC, 4);
    idem_fingerprint_init(&state, t->config);
    idem_fingerprint_update(&state, name, 4);
    return idemi_hash_id(t->config, name, 4, NULL, 0) ^
           (uint32_t)idem_fingerprint_final(&state);
}

#ifndef IDEM_CELLS
/* ---------------------------------------------------------------------------
   >>records   a record's bytes, and the two ways between them and its parts

   The layout is in the manual (>>format).
   ------------------------------------------------------------------------ */

/* A record's first byte: never an erased one, whether that is 0x00 or 0xFF. */
#define IDEMI_RECORD      0x80u
#define IDEMI_HAS_CLAIM   0x01u
#define IDEMI_HAS_OUTCOME 0x02u
#define IDEMI_HAS_STATE   0x04u
#define IDEMI_MOVED       0x08u
#define IDEMI_HAS_MORE    0x10u
#define IDEMI_SYNCED      0x20u
#define IDEMI_HAS_SCOPE   0x40u         /* with a claim */

/* Its second, if IDEMI_HAS_MORE */
#define IDEMI_MORE_FAILED    0x01u
#define IDEMI_MORE_CONFIRM   0x02u      /* an outcome that is undelivered */
#define IDEMI_MORE_DELIVERED 0x04u      /* without parts: it is delivered */
#define IDEMI_MORE_CUT       0x08u      /* moved: a claim cut short */
#define IDEMI_MORE_RETENTION 0x10u
#define IDEMI_MORE_RESERVED  0x20u
#define IDEMI_MORE_ATTEMPTS  0x40u
#define IDEMI_MORE_CODE      0x80u

/* Bytes that stand before a record's body, at most */
#define IDEMI_RECORD_FRONT 5u

static unsigned char *idemi_record_varint(unsigned char *p, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        *p++ = (unsigned char)(value | 0x80);
    *p++ = (unsigned char)value;
    return p;
}

static unsigned char *idemi_record_bytes(unsigned char *p, const void *src,
                                         size_t len)
{
    idemi_basics_copy(p, src, len);
    return p + len;
}

/* The start of a record's check: whose it is, and where.  So nothing validates
   that was moved, or is left from an earlier round, or that an enemy hides in a
   key or response, to be found when what is around it is damaged. */
static uint32_t idemi_record_seed(const idem_table *t, uint32_t at)
{
    uint32_t sector = idemi_storage_sector(t, at);

    return t->journal->check ^
           idemi_journal_sector(t, sector)->sequence * UINT32_C(0x9E3779B1) ^
           ~idemi_storage_offset(t, at);
}

/* The token of a claim whose record is at an address, its low half: tokens are
   places in the endless row of all sectors ever written, so they increase by
   themselves. */
static uint32_t idemi_record_token(const idem_table *t, uint32_t at)
{
    uint32_t sector = idemi_storage_sector(t, at);

    return idemi_journal_sector(t, sector)->sequence *
               t->config->storage->sector_size +
           idemi_storage_offset(t, at);
}

/* True if a record of these parts belongs to a claim that it does not hold. */
static int idemi_record_bound(const idem_record *r)
{
    return !(r->parts & (IDEMI_HAS_CLAIM | IDEMI_MOVED));
}

/* How far a claim's record is in front of another, round the end. */
static uint32_t idemi_record_distance(const idem_table *t, uint32_t claim,
                                      uint32_t at)
{
    const idem_storage *m = t->config->storage;

    at = idemi_storage_linear(t, at);
    claim = idemi_storage_linear(t, claim);
    return at >= claim ? at - claim
                       : at + m->sector_size * m->sector_count - claim;
}

/* True if all of a record is a state that was carried. */
static int idemi_record_is_state(const idem_record *r)
{
    return (r->parts & (IDEMI_HAS_CLAIM | IDEMI_HAS_OUTCOME |
                        IDEMI_HAS_STATE | IDEMI_MOVED)) ==
           (IDEMI_HAS_STATE | IDEMI_MOVED);
}

/* True if what stands at an address is of the claim that the slot has now. */
static int idemi_record_mine(const idem_table *t, uint32_t at)
{
    const idem_record *r = &t->journal->record;
    uint32_t claim = idemi_slot_place(t, (unsigned)r->slot)->claim;

    return !idemi_record_bound(r) ||
           r->age == idemi_record_distance(t, claim, at);
}

/* The bytes that belong to a record; their lengths are in t->journal->record.
   What it has no part for may be NULL, all of this too. */
typedef struct idemi_parts {
    const void *scope, *key, *response, *state;
} idemi_parts;

/* Puts the record together that is in t->journal->record, to stand at an
   address; what of it is not the default gets a field, and its bit in `more`.
   Returns its length, padded; it is in the writing buffer, at *src */
static uint32_t idemi_record_encode(idem_table *t, const unsigned char **src,
                                    uint32_t at, const idemi_parts *from)
{
    idem_record *r = &t->journal->record;
    const idem_body *b = &r->body;
    unsigned char *body = idemi_journal_out(t) + IDEMI_RECORD_FRONT;
    unsigned char *p = body;
    unsigned char *front;
    uint32_t len, padded;

    p = idemi_record_varint(p, r->slot);
    p = idemi_record_varint(p, (uint64_t)r->time_high << 32 | r->time);
    if (idemi_record_bound(r))
        p = idemi_record_varint(
            p, idemi_record_distance(
                   t, idemi_slot_place(t, (unsigned)r->slot)->claim, at));
    if (r->parts & IDEMI_MOVED) {
        p = idemi_record_varint(
            p, r->parts & IDEMI_HAS_CLAIM
                   ? idemi_record_token(t, at) - b->token
                   : 0);
        p = idemi_record_varint(p, r->age);
    }
    if (r->parts & IDEMI_HAS_CLAIM) {
        if (r->attempts != 1) {
            r->more |= IDEMI_MORE_ATTEMPTS;
            *p++ = r->attempts;
        }
        if (b->retention != t->journal->retentions[0]) {
            r->more |= IDEMI_MORE_RETENTION;
            p = idemi_record_varint(p, b->retention);
        }
        if (!(r->parts & IDEMI_HAS_OUTCOME) &&
            b->response_len != t->config->response_max) {
            r->more |= IDEMI_MORE_RESERVED;
            p = idemi_record_varint(p, b->response_len);
        }
        p = idemi_basics_store(p, b->fingerprint[0], 4);
        p = idemi_basics_store(p, b->fingerprint[1], 4);
        if (b->scope_len) {
            r->parts |= IDEMI_HAS_SCOPE;
            *p++ = b->scope_len;
        }
        if (r->parts & IDEMI_HAS_OUTCOME)
            *p++ = b->key_len;
        p = idemi_record_bytes(p, from->scope, b->scope_len);
        p = idemi_record_bytes(p, from->key, b->key_len);
    }
    if (r->parts & IDEMI_HAS_OUTCOME && b->code) {
        r->more |= IDEMI_MORE_CODE;
        p = idemi_basics_store(p, (uint32_t)b->code, 4);
    }
    if (r->parts & IDEMI_HAS_STATE) {
        p = idemi_record_varint(p, r->state_len);
        p = idemi_record_bytes(p, from->state, r->state_len);
    }
    if (r->parts & IDEMI_HAS_OUTCOME)
        p = idemi_record_bytes(p, from->response, b->response_len);
    // What stands in front of the body is as long as the body's length is.
    len = (uint32_t)(p - body);
    front = body - 2 - (len >= 0x80) - (len >= 0x4000) - (r->more != 0);
    *src = body = front;
    *front = (unsigned char)(IDEMI_RECORD | r->parts);
    if (r->more)
        *front |= IDEMI_HAS_MORE;
    if (t->journal->synced && (*front | IDEMI_SYNCED) != 0xFF)
        *front |= IDEMI_SYNCED;
    if (r->more)
        *++front = r->more;
    idemi_record_varint(front + 1, len);
    len = (uint32_t)(p - body);
    p = idemi_basics_store(
        p, idemi_crc_update(idemi_record_seed(t, at), body, len), 4);
    padded = idemi_storage_granules(t, len + 4);
    IDEM_MEMSET(p, t->config->storage->erased,
                (size_t)(padded - len - 4));
    return padded;
}

/* Bytes that are being taken apart.  `at` never passes `end`; whoever wants
   more than there is gets zeros, and `short_of` is set.  Places count from
   `start`. */
typedef struct idemi_bytes {
    const unsigned char *start, *at, *end;
    uint8_t short_of;
} idemi_bytes;

IDEMI_APART
static const unsigned char *idemi_record_take(idemi_bytes *b, size_t len)
{
    const unsigned char *at = b->at;

    if (len > (size_t)(b->end - b->at)) {
        b->short_of = 1;
        return NULL;
    }
    b->at += len;
    return at;
}

static uint32_t idemi_record_word(idemi_bytes *b)
{
    const unsigned char *p = idemi_record_take(b, 4);

    return p ? idemi_basics_load32(p) : 0;
}

static uint8_t idemi_record_byte(idemi_bytes *b)
{
    const unsigned char *p = idemi_record_take(b, 1);

    return p ? *p : 0;
}

static uint64_t idemi_record_number(idemi_bytes *b)
{
    uint64_t value = 0;
    unsigned shift = 0;
    uint8_t byte;

    do {
        byte = idemi_record_byte(b);
        value |= (uint64_t)(byte & 0x7F) << shift;
        shift += 7;
    } while (byte & 0x80 && shift < 63);
    return value;
}

/* A number that no writer makes more than `most`. */
static uint32_t idemi_record_limited(idemi_bytes *b, uint32_t most)
{
    uint64_t number = idemi_record_number(b);

    if (number > most)
        b->short_of = 1;
    return (uint32_t)number;
}

/* Takes the claim part apart. */
static void idemi_record_claim(const idem_table *t, idem_record *r,
                               idemi_bytes *b)
{
    idem_body *body = &r->body;
    size_t id_len;

    r->attempts = 1;
    body->retention = t->journal->retentions[0];
    body->response_len = t->config->response_max;
    if (r->more & IDEMI_MORE_ATTEMPTS)
        r->attempts = idemi_record_byte(b);
    if (r->more & IDEMI_MORE_RETENTION)
        body->retention = idemi_record_limited(b, IDEM_RETENTION_MAX);
    if (r->more & IDEMI_MORE_RESERVED)
        body->response_len =
            (uint16_t)idemi_record_limited(b, t->config->response_max);
    body->fingerprint[0] = idemi_record_word(b);
    body->fingerprint[1] = idemi_record_word(b);
    body->scope_len = 0;
    if (r->parts & IDEMI_HAS_SCOPE)
        body->scope_len = idemi_record_byte(b);
    if (r->parts & IDEMI_HAS_OUTCOME) {
        body->key_len = idemi_record_byte(b);
        id_len = (size_t)body->scope_len + body->key_len;
    } else {
        id_len = (size_t)(b->end - b->at);
        body->key_len = (uint8_t)(id_len - body->scope_len);
    }
    r->id_at = (uint32_t)(b->at - b->start);
    idemi_record_take(b, id_len);
    if (id_len <= body->scope_len || id_len > t->config->key_max)
        b->short_of = 1;
}

/* Takes the state part apart. */
static void idemi_record_state(const idem_table *t, idem_record *r,
                               idemi_bytes *b)
{
    r->state_len = (uint16_t)idemi_record_limited(b, t->config->state_max);
    r->state_at = (uint32_t)(b->at - b->start);
    idemi_record_take(b, r->state_len);
}

/* The response is all that is left. */
static void idemi_record_response(const idem_table *t, idem_record *r,
                                  idemi_bytes *b)
{
    size_t left = (size_t)(b->end - b->at);

    r->response_at = (uint32_t)(b->at - b->start);
    r->body.response_len = (uint16_t)left;
    if (left > t->config->response_max)
        b->short_of = 1;
}

/* Takes apart what stands behind the time of a record at an address. */
IDEMI_APART
static void idemi_record_rest(const idem_table *t, idem_record *r, uint32_t at,
                              idemi_bytes *b)
{
    if (idemi_record_bound(r))
        r->age = (uint32_t)idemi_record_number(b);
    else {
        r->age = 0;
        r->body.token = idemi_record_token(t, at);
    }
    if (r->parts & IDEMI_MOVED) {
        r->body.token -= (uint32_t)idemi_record_number(b);
        r->age = idemi_record_limited(b, IDEM_RETENTION_MAX);
    }
    if (r->parts & IDEMI_HAS_CLAIM)
        idemi_record_claim(t, r, b);
    r->body.code =
        r->more & IDEMI_MORE_CODE ? (int32_t)idemi_record_word(b) : 0;
    if (r->parts & IDEMI_HAS_STATE)
        idemi_record_state(t, r, b);
    if (r->parts & IDEMI_HAS_OUTCOME)
        idemi_record_response(t, r, b);
}

/* True if a record may begin with a byte. */
static int idemi_record_begins(unsigned char byte)
{
    return byte & IDEMI_RECORD && byte != 0xFF;
}

/* Takes the record apart that stands at p and at an address, if there is one
   in the `have` bytes there; into t->journal->record, the places in which count
   from `start`.  What that knows of a claim stays if the record has none.
   Returns its length, not padded, or 0. */
static uint32_t idemi_record_decode(idem_table *t, uint32_t at,
                                    const unsigned char *start,
                                    const unsigned char *p, uint32_t have)
{
    idem_record *r = &t->journal->record;
    idemi_bytes b;
    uint32_t front, len;
    uint64_t since;

    if (have > t->journal->record_max)
        have = t->journal->record_max;
    b.start = start;
    b.at = p;
    b.end = p + have;
    b.short_of = 0;
    r->parts = idemi_record_byte(&b);
    if (!idemi_record_begins(r->parts))
        return 0;
    r->more = r->parts & IDEMI_HAS_MORE ? idemi_record_byte(&b) : 0;
    len = idemi_record_limited(&b, have);
    front = (uint32_t)(b.at - p);
    if (b.short_of || (size_t)len + front + 4 > have)
        return 0;
    len += front;
    b.end = p + len;
    r->slot = idemi_record_limited(&b, t->capacity - 1);
    since = idemi_record_number(&b);
    r->time = (uint32_t)since;
    r->time_high = (uint32_t)(since >> 32);
    if (b.short_of ||
        idemi_crc_update(idemi_record_seed(t, at), p, len) !=
            idemi_basics_load32(p + len))
        return 0;
    idemi_record_rest(t, r, at, &b);
    return b.short_of ? 0 : len + 4;
}
#endif

/* ---------------------------------------------------------------------------
   >>keys      the life of a key; the only code that changes a slot's state

   K1  A slot in use is in progress, completed or failed; only finished ones can
       be undelivered, only one in progress can be endless.
   K2  Its lengths are inside the configured limits, its key is not empty.
   K3  used and pending count what the slots say.
   K4  It has had at least one attempt, and its token has been granted.
   ------------------------------------------------------------------------ */

/* A request, with the hashes that are made before the lock is taken; of one
   that asks for a claim also where the answer goes, and what it is to be */
typedef struct idemi_query {
    const idem_request *rq;
    idem_claim *claim;
    idem_reply *reply;
    uint32_t fingerprint[2];    /* low word, high word */
    uint32_t retention;
    uint32_t at;                /* where it was written */
    unsigned attempts;          /* with this one */
    idem_number hash;           /* of scope and key */
} idemi_query;

/* Makes a body what a request says, with the newest token. */
IDEMI_APART
static void idemi_keys_request(const idem_table *t, idem_body *body,
                               const idemi_query *q)
{
    const idem_request *rq = q->rq;

    body->retention = q->retention;
    body->token = (uint32_t)t->token;
    body->fingerprint[0] = q->fingerprint[0];
    body->fingerprint[1] = q->fingerprint[1];
    body->code = 0;
    body->response_len =
        rq->response_size ? rq->response_size : t->config->response_max;
    body->scope_len = (uint8_t)rq->scope_len;
    body->key_len = (uint8_t)rq->key_len;
}

/* The outcome is no longer owed. */
static void idemi_keys_delivered(idem_table *t, idem_slot *s)
{
    if (!(s->state & IDEMI_UNDELIVERED))
        return;
    s->state &= (uint8_t)~IDEMI_UNDELIVERED;
    t->pending--;
}

/* True if a slot in use has a claim that was granted in this boot. */
static unsigned idemi_keys_claimed(const idem_slot *s)
{
    return !(s->state & (IDEMI_FINISHED | IDEMI_CUT));
}

/* Frees a slot in use. */
static void idemi_keys_remove(idem_table *t, unsigned slot)
{
    idem_slot *s = idemi_slot_at(t, slot);
    unsigned oldest;

    idemi_index_erase(t, slot);
    if (s->state & IDEMI_FINISHED)
        idemi_order_remove(t, slot);
    oldest = t->links[t->capacity].newer;
    if (oldest != t->capacity)          // it is the next to go
        idemi_index_prefetch(t, idemi_slot_at(t, oldest)->hash);
    idemi_keys_delivered(t, s);
    t->claimed -= idemi_keys_claimed(s);
    t->stale -= (s->state & IDEMI_STALE) != 0 ? 1u : 0u;
    s->state = 0;
    t->used--;
    idemi_order_free(t, slot);
}

/* Frees a slot if its key is over; returns whether.  A claim in a journal
   becomes stale instead: nothing there tells when its lease ended, so its key
   must not come to be in another slot before the record that tells it is gone
   from this one. */
static int idemi_keys_expire(idem_table *t, unsigned slot)
{
    idem_slot *s = idemi_slot_at(t, slot);

    if (!s->state || s->state & IDEMI_STALE || !idemi_slot_over(t, s))
        return 0;
    t->stats.expired++;
    if (IDEMI_JOURNAL(t) && !(s->state & IDEMI_FINISHED) &&
        IDEMI_WRITTEN(t, slot)) {
        t->claimed -= idemi_keys_claimed(s);
        s->state = IDEMI_IN_PROGRESS | IDEMI_CUT | IDEMI_STALE;
        t->stale++;
        return 0;
    }
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
IDEMI_SLOW
static void idemi_keys_sweep(idem_table *t)
{
    unsigned i;

    t->soonest = t->clock + IDEMI_NEVER_MS;
    for (i = 0; i < t->capacity; i++)
        if (!idemi_keys_expire(t, i) && idemi_slot_at(t, i)->state &&
            !(idemi_slot_at(t, i)->state & IDEMI_STALE))
            idemi_order_note(t, idemi_slot_at(t, i));
    for (i = 0; i < IDEMI_REACHES; i++)
        t->reach[i] = idemi_keys_limit(t, t->reach[i]);
    t->evicted = idemi_keys_limit(t, t->evicted);
    if (IDEMI_JOURNAL(t) && idemi_clock_reached(t->clock, t->journal->doubt))
        t->journal->in_doubt = 0;
    t->swept = t->clock;
}

/* Adds to the clock, which has 64 bits where they are needed. */
static void idemi_keys_add(idem_table *t, uint32_t ms)
{
    t->clock += ms;
    if (IDEMI_JOURNAL(t))
        t->journal->clock_high += t->clock < ms;
}

/* Moves the clock, and stops for each sweep on the way: a jump of 24 days must
   not carry a slot through the window unseen. */
static void idemi_keys_advance(idem_table *t, uint32_t ms)
{
    for (;;) {
        uint32_t step = IDEMI_SWEEP_MS - (t->clock - t->swept);
        if (ms < step) {
            idemi_keys_add(t, ms);
            return;
        }
        idemi_keys_add(t, step);
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

    if (passed == 0)
        return;
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

/* The token of which a slot keeps the low half: the newest that ends so. */
static uint64_t idemi_keys_token(const idem_table *t, uint32_t low)
{
    return t->token - (uint32_t)((uint32_t)t->token - low);
}

/* The number by which a slot without a body keeps its retention.  The first is
   the default, the last the longest there is.  If more are in use than there
   are numbers, the next longer one: errors only lengthen.  What is over does
   not count, so that an opening, which has not dropped what the writer had,
   finds a number for all that the writer had one for. */
static uint8_t idemi_keys_terms(idem_table *t, uint32_t retention_ms)
{
    uint32_t *known = t->journal->retentions;
    unsigned used = 1u | 1u << (IDEMI_RETENTIONS - 1);
    unsigned i, best = IDEMI_RETENTIONS - 1;

    for (i = 0; i < IDEMI_RETENTIONS; i++)
        if (known[i] == retention_ms)
            return (uint8_t)i;
    for (i = 0; i < t->capacity; i++)
        if (!idemi_keys_expire(t, i) && idemi_slot_at(t, i)->state)
            used |= 1u << idemi_slot_at(t, i)->terms;
    for (i = 0; i < IDEMI_RETENTIONS; i++) {
        if (!(used >> i & 1u)) {
            known[i] = retention_ms;
            return (uint8_t)i;
        }
        if (known[i] > retention_ms && known[i] < known[best])
            best = i;
    }
    return (uint8_t)best;
}

#ifndef IDEM_CELLS
/* ---------------------------------------------------------------------------
   >>journal   the ring of sectors, and writing to it

                    tail          last records   head    dead
                     |                    |       |     |    |
       ... | dead | live | live | ... | live | live | dead | dead | ...

   The manual (>>format) has the layout and the rules by which it is read.

   J1  Every slot in use has its records in sectors from `clean` to the head, or
       (stray) in one that failed before it was committed; unless it is stale,
       or a volatile claim.
   J2  Two sectors after the head, at least, are retired, or dead by what its
       header says; so there is one to go to next whether that header is seen or
       not.
   J3  The outcomes of all claims of this boot fit into the rest of the head and
       the spare sectors after it.
   J4  Nothing is programmed into a sector that was not erased in this boot, but
       for in-place media and wholly blank storage.
   J5  With IDEM_WIDE, the order of writing has every slot in use whose claim is
       written, none before one with an older claim; but strays are first.
       Slots that were freed since may be anywhere in it.
   ------------------------------------------------------------------------ */

#define IDEMI_HEADER      40u
#define IDEMI_IDENTITY    13u           /* bytes that are always the same */
#define IDEMI_FORMAT      1u
#define IDEMI_RETIRED     255u          /* idem_sector.link */
#define IDEMI_ASIDE       254u          /* dead, but not to be used for the
                                           next head: its header may be seen */
#define IDEMI_BLANK       1u            /* idem_journal.blank: all of it is, */
#define IDEMI_TORN        2u            /* or was, but for torn headers */
#define IDEMI_BOOT        1u            /* header flags: first of a boot, */
#define IDEMI_ATTEMPT     2u            /* not to be committed by this */

/* Bytes of a record beside what has a length of its own: at most; at least */
#define IDEMI_CLAIM_FIXED   36u
#define IDEMI_OUTCOME_FIXED 31u
#define IDEMI_MARK_FIXED    23u
#define IDEMI_CLAIM_LEAST   16u
#define IDEMI_CLAIM_MORE    10u         /* of that, what is seldom there */
#define IDEMI_OUTCOME_MORE  5u
#define IDEMI_OUTCOME_LEAST 11u
#define IDEMI_WHOLE_LEAST   19u         /* a claim with its outcome */
#define IDEMI_CARRY_FIXED   46u
/* When one is carried that has no field that is seldom there (those do not
   grow): at most, a claim (one more for each 96 bytes), one with its outcome */
#define IDEMI_CARRY_CLAIM   31u
#define IDEMI_CARRY_WHOLE   32u

/* What a sector looks like where there is no journal: idem_sector.link, where
   it means nothing afterwards */
enum { IDEMI_LOOKS_OTHER, IDEMI_LOOKS_TORN, IDEMI_LOOKS_BLANK };

/* Slots that one idem_maintain carries forward, at most */
#define IDEMI_MAINTAIN_CARRY 8

/* The same of a call that needs room, beyond what it needs */
#define IDEMI_PACE_CARRY 4

static uint32_t idemi_journal_size(const idem_table *t)
{
    return t->config->storage->sector_size;
}

/* Where a sector's records begin. */
static uint32_t idemi_journal_front(const idem_table *t)
{
    return t->journal->front;
}

/* Bytes that are left in the head. */
static uint32_t idemi_journal_rest(const idem_table *t)
{
    return t->journal->at ? idemi_journal_size(t) - t->journal->at : 0;
}

static uint64_t idemi_journal_clock(const idem_table *t)
{
    return (uint64_t)t->journal->clock_high << 32 | t->clock;
}

/* Sectors from one on to another, round the end. */
static uint32_t idemi_journal_distance(const idem_table *t, uint32_t from,
                                       uint32_t to)
{
    return to >= from ? to - from
                      : to + t->config->storage->sector_count - from;
}

static uint32_t idemi_journal_after(const idem_table *t, uint32_t sector)
{
    return ++sector < t->config->storage->sector_count ? sector : 0;
}

/* The next sector after one that may be used; or if there is no other, that. */
static uint32_t idemi_journal_next(const idem_table *t, uint32_t sector)
{
    uint32_t from = sector;

    do
        sector = idemi_journal_after(t, sector);
    while (sector != from &&
           idemi_journal_sector(t, sector)->link >= IDEMI_ASIDE);
    return sector;
}

/* How many sectors there are strictly between the head and one that are not
   retired; if that is the head, all others. */
static uint32_t idemi_journal_gap(const idem_table *t, uint32_t to)
{
    uint32_t from = t->journal->head, count = 0;

    for (;;) {
        from = idemi_journal_after(t, from);
        if (from == to)
            return count;
        count += idemi_journal_sector(t, from)->link != IDEMI_RETIRED;
    }
}

/* Sectors after the head that an outcome may go to without an erase. */
static uint32_t idemi_journal_spare(const idem_table *t)
{
    const idem_journal *j = t->journal;
    uint32_t gap = idemi_journal_gap(t, j->clean);
    uint32_t dead = gap > 2 ? gap - 2 : 0;

    return t->config->storage->erase && j->spare < dead ? j->spare : dead;
}

/* Takes note that something acknowledged may be gone: for one retention from
   now on, unknown keys may be lost ones. */
IDEMI_APART
static void idemi_journal_lose(idem_table *t)
{
    idem_journal *j = t->journal;

    t->stats.lost++;
    j->in_doubt = 1;
    j->doubt = t->clock + j->retentions[0];
}

/* True while unknown keys may be lost ones. */
static int idemi_journal_in_doubt(const idem_table *t)
{
    return t->journal->in_doubt &&
           !idemi_clock_reached(t->clock, t->journal->doubt);
}

/* What was read of a sector into the reading buffer */
typedef struct idemi_window {
    uint32_t from, have;        /* offset in the sector; bytes */
} idemi_window;

/* Sees to it that the window begins at or before `at`, and holds what a record
   there may have, up to `limit`.  Each byte is read once: what is still needed
   moves to the front. */
static const unsigned char *idemi_journal_window(idem_table *t,
                                                 idemi_window *w,
                                                 uint32_t sector, uint32_t at,
                                                 uint32_t limit)
{
    unsigned char *in = t->in;
    uint32_t end = w->from + w->have, space, i;

    if (end < limit && end < at + t->journal->record_max) {
        for (i = at; i < end; i++)
            in[i - at] = in[i - w->from];
        w->have = end > at ? end - at : 0;
        w->from = at;
        space = t->journal->in_size - w->have;
        if (space > limit - at - w->have)
            space = limit - at - w->have;
        idemi_storage_salvage(t,
                           idemi_storage_place(t, sector, at + w->have),
                           in + w->have, space);
        w->have += space;
    }
    return in + (at - w->from);
}

/* True if a record of the sector's sequence stands in it, from the first whole
   granule behind `at` on. */
static int idemi_journal_used(idem_table *t, uint32_t sector, uint32_t at)
{
    idemi_window w = { 0, 0 };
    uint32_t limit = idemi_journal_size(t);

    while ((at = idemi_storage_granules(t, at)) < limit) {
        const unsigned char *p = idemi_journal_window(t, &w, sector, at, limit);
        if (idemi_record_decode(t, idemi_storage_place(t, sector, at), t->in,
                                p, w.from + w.have - at))
            return 1;
        at++;
    }
    return 0;
}

/* Reads a slot's record at an address, `where` in the reading buffer.  The one
   that is to be confirmed was kept when the table was opened: its bits may be
   unstable, and it is to be the same in all of this boot. */
static int idemi_journal_fetch(idem_table *t, unsigned slot, uint32_t at,
                               uint32_t where)
{
    idem_journal *j = t->journal;
    uint32_t sector = idemi_storage_sector(t, at);
    uint32_t len = sector == j->head ? j->end
                                     : idemi_journal_sector(t, sector)->end;
    unsigned char *in = t->in;

    // What is behind the records may be torn, and not be readable.
    len -= idemi_storage_offset(t, at);
    if (len > j->record_max)
        len = j->record_max;
    if (at == j->newest) {
        len = j->newest_len;
        IDEM_MEMCPY(in + where, idemi_journal_copy(t), (size_t)len);
    } else
        idemi_storage_salvage(t, at, in + where, len);
    return idemi_record_decode(t, at, in, in + where, len) &&
                   j->record.slot == slot && idemi_record_mine(t, at)
               ? IDEM_OK
               : IDEM_E_STORAGE;
}

/* Reads what the storage has of a slot into t->journal->record: the claim, and
   if it is asked for the outcome. */
IDEMI_SLOW
static int idemi_journal_load(idem_table *t, unsigned slot, int outcome)
{
    idem_journal *j = t->journal;
    idem_record *r = &j->record;
    const idem_place *place = idemi_slot_place(t, slot);
    int result = IDEM_OK;

    if (j->loaded != slot) {
        j->loaded = IDEMI_NOWHERE;
        result = idemi_journal_fetch(t, slot, place->claim, 0);
        if (result < 0)
            return result;
        // Of a stale slot it may say that it is empty: then there is no key.
        if (!(r->parts & IDEMI_HAS_CLAIM)) {
            r->body.key_len = 0;
            if (!(idemi_slot_at(t, slot)->state & IDEMI_STALE))
                return IDEM_E_STORAGE;
        }
        j->loaded = slot;
        j->outcome_loaded = (r->parts & IDEMI_HAS_OUTCOME) != 0;
    }
    if (outcome && !j->outcome_loaded) {
        result = idemi_journal_fetch(t, slot, place->outcome,
                                     j->record_max);
        if (!(r->parts & IDEMI_HAS_OUTCOME))
            result = IDEM_E_STORAGE;
        j->outcome_loaded = result == IDEM_OK;
        if (result < 0)
            j->loaded = IDEMI_NOWHERE;
    }
    return result;
}

/* Writes t->journal->record to the head, where the caller knows it to fit;
   *address is where.  After a failure nothing more is written to this sector,
   and what it holds of the record does not count. */
IDEMI_SLOW
static int idemi_journal_append(idem_table *t, const idemi_parts *from,
                                uint32_t *address)
{
    idem_journal *j = t->journal;
    const idem_sector *head = idemi_journal_sector(t, j->head);
    uint64_t since = idemi_journal_clock(t) -
                     ((uint64_t)head->time_high << 32 | head->time);
    uint32_t at = idemi_storage_place(t, j->head, j->at);
    const unsigned char *src;
    uint32_t len;
    int result;

    j->record.time = (uint32_t)since;
    j->record.time_high = (uint32_t)(since >> 32);
    len = idemi_record_encode(t, &src, at, from);
    if (len + j->leave > idemi_journal_rest(t))
        return IDEM_E_SPACE;
    result = idemi_storage_prog(t, at, src, len);
    if (result < 0) {
        j->at = 0;
        return result;
    }
    j->at += len;
    j->end = j->at;
    *address = at;
    return IDEM_OK;
}

/* The same for what was asked for in this call: durable, unless many calls are
   to become so at once. */
static int idemi_journal_commit(idem_table *t, const idemi_parts *from,
                                uint32_t *address)
{
    int result = idemi_journal_append(t, from, address);

    if (result == IDEM_OK && t->config->durability == IDEM_EACH)
        result = idemi_storage_sync(t);
    return result;
}

/* --------------------------------------------------------------- carrying */

/* True if an address is in a sector that is not part of the journal; or once
   there are no such slots, in the one that is being cleaned.  Not both at once:
   a sector full of claims may grow when it is carried, and not fit. */
static int idemi_journal_leaving(const idem_table *t, uint32_t at)
{
    const idem_journal *j = t->journal;
    uint32_t sector = idemi_storage_sector(t, at);
    uint32_t distance;

    if (at == IDEMI_NOWHERE)
        return 0;
    distance = idemi_journal_distance(t, j->clean, sector);
    return idemi_journal_sector(t, sector)->link >= IDEMI_ASIDE ||
           (distance == 0 && !j->stray && j->clean != j->head) ||
           distance > idemi_journal_distance(t, j->clean, j->head);
}

/* A table without IDEM_WIDE has so few slots that all are looked at for what is
   in the sector that is being cleaned.  Where there may be a million, a list
   has them in the order in which their claims were written: the next is always
   its first. */
#if IDEM_WIDE
/* A slot's neighbours in that order; for `capacity` its ends. */
static idem_link *idemi_journal_link(const idem_table *t, unsigned slot)
{
    return slot < t->capacity ? &idemi_slot_place(t, slot)->written
                              : &t->journal->written;
}

/* Takes a slot out of the order, and puts it in front of `newer`: it is in none
   if that is itself. */
static void idemi_journal_move(idem_table *t, unsigned slot, unsigned newer)
{
    idem_link *link = idemi_journal_link(t, slot);

    idemi_journal_link(t, link->older)->newer = link->newer;
    idemi_journal_link(t, link->newer)->older = link->older;
    link->older = (idem_number)slot;
    link->older = idemi_journal_link(t, newer)->older;
    link->newer = (idem_number)newer;
    idemi_journal_link(t, link->older)->newer = (idem_number)slot;
    idemi_journal_link(t, newer)->older = (idem_number)slot;
}

/* Before any claim was written. */
static void idemi_journal_unwritten(idem_table *t)
{
    unsigned slot;

    for (slot = 0; slot <= t->capacity; slot++) {
        idem_link *link = idemi_journal_link(t, slot);
        link->older = link->newer = (idem_number)slot;
    }
}

/* Takes note where the claim of a slot was written last.  Keeps J5. */
static void idemi_journal_wrote(idem_table *t, unsigned slot, uint32_t at)
{
    idemi_slot_place(t, slot)->claim = at;
    idemi_journal_move(t, slot, at == IDEMI_NOWHERE ? slot : t->capacity);
}

/* Makes what was carried to a sector the first to be carried. */
static void idemi_journal_rewind(idem_table *t, uint32_t sector)
{
    unsigned ends = t->capacity, first = ends;

    for (;;) {
        unsigned slot = idemi_journal_link(t, first)->older;
        if (slot == ends ||
            idemi_storage_sector(t, idemi_slot_place(t, slot)->claim) != sector)
            break;
        first = slot;
    }
    if (first != ends)
        idemi_journal_move(t, ends, first);
}

/* Frees the slots of which the head says that they are empty; it counts now.  A
   slot that is still stale ends the walk: it is in the order, further back. */
static void idemi_journal_vacate(idem_table *t)
{
    unsigned slot = idemi_journal_link(t, t->capacity)->older;

    while (t->stale &&
           idemi_storage_sector(t, idemi_slot_place(t, slot)->claim) ==
               t->journal->head) {
        unsigned older = idemi_journal_link(t, slot)->older;
        if (idemi_slot_at(t, slot)->state & IDEMI_STALE)
            idemi_keys_remove(t, slot);
        slot = older;
    }
}

/* The next slot that must be carried out of the sector that is being cleaned,
   or `capacity`.  A claim is before its outcome, so its place tells. */
static unsigned idemi_journal_first(idem_table *t)
{
    unsigned ends = t->capacity;

    for (;;) {
        unsigned slot = idemi_journal_link(t, ends)->newer;
        if (slot == ends)
            return ends;
        // Where the claim of a free slot was says nothing any more.
        if (!idemi_slot_at(t, slot)->state)
            idemi_journal_move(t, slot, slot);
        else if (!idemi_journal_leaving(t, idemi_slot_place(t, slot)->claim))
            return ends;
        else if (!idemi_keys_expire(t, slot))
            return slot;
    }
}
#else
static void idemi_journal_wrote(idem_table *t, unsigned slot, uint32_t at)
{
    idemi_slot_place(t, slot)->claim = at;
}

static void idemi_journal_rewind(idem_table *t, uint32_t sector)
{
    (void)sector;
    t->journal->cursor = 0;
}

static void idemi_journal_vacate(idem_table *t)
{
    unsigned slot;

    for (slot = 0; t->stale && slot < t->capacity; slot++)
        if (idemi_slot_at(t, slot)->state & IDEMI_STALE &&
            idemi_storage_sector(t, idemi_slot_place(t, slot)->claim) ==
                t->journal->head)
            idemi_keys_remove(t, slot);
}

static unsigned idemi_journal_first(idem_table *t)
{
    for (; t->journal->cursor < t->capacity; t->journal->cursor++) {
        unsigned slot = (unsigned)t->journal->cursor;
        if (idemi_slot_at(t, slot)->state &&
            idemi_journal_leaving(t, idemi_slot_place(t, slot)->claim) &&
            !idemi_keys_expire(t, slot))
            return slot;
    }
    t->journal->cursor = 0;
    return t->capacity;
}
#endif

/* Begins what is to be written: a record of these parts about a slot. */
IDEMI_APART
static idem_record *idemi_journal_record(idem_table *t, unsigned slot,
                                         unsigned parts)
{
    idem_record *r = &t->journal->record;

    r->slot = slot;
    r->parts = (uint8_t)parts;
    r->more = 0;
    r->age = 0;
    return r;
}

/* Fills t->journal->record with a slot in use, to be written as one record;
   false if the storage does not give it. */
static int idemi_journal_describe(idem_table *t, unsigned slot)
{
    idem_record *r = &t->journal->record;
    const idem_slot *s = idemi_slot_at(t, slot);
    const idem_body *body = idemi_slot_body(t, slot, s->state & IDEMI_FINISHED);
    unsigned parts = IDEMI_HAS_CLAIM | IDEMI_MOVED, more = 0;

    if (IDEMI_UNREAD(body))
        return 0;
    if (body != &r->body) {
        r->body = *body;
        r->attempts = s->terms;
    }
    if (s->state & IDEMI_FINISHED)
        parts |= IDEMI_HAS_OUTCOME;
    if ((s->state & IDEMI_STATUS) == IDEM_FAILED)
        more |= IDEMI_MORE_FAILED;
    if (s->state & IDEMI_UNDELIVERED)
        more |= IDEMI_MORE_CONFIRM;
    if (s->state & IDEMI_CUT)
        more |= IDEMI_MORE_CUT;
    idemi_journal_record(t, slot, parts)->more = (uint8_t)more;
    if (!idemi_keys_claimed(s))
        r->age = t->clock - s->time;
    return 1;
}

/* Writes a slot in use again, as one record.  What does not read in two calls,
   while something else does, is lost: a sector must not be kept for ever for
   what it does not give. */
static int idemi_journal_carry(idem_table *t, unsigned slot)
{
    idem_journal *j = t->journal;
    idemi_parts from;
    uint32_t at;
    int result;

    if (!idemi_journal_describe(t, slot)) {
        int again = j->unread == slot;
        j->unread = slot;
        if (!again || idemi_storage_read(t, idemi_storage_place(t, j->head, 0),
                                         t->in, IDEMI_HEADER) < 0)
            return IDEM_E_STORAGE;
        idemi_journal_lose(t);
        idemi_keys_remove(t, slot);
        return IDEM_OK;
    }
    from.scope = idemi_slot_id(t, slot);
    from.key = idemi_slot_id(t, slot) + j->record.body.scope_len;
    from.response = idemi_slot_response(t, slot);
    from.state = NULL;
    result = idemi_journal_append(t, &from, &at);
    if (result < 0)
        return result;
    idemi_journal_wrote(t, slot, at);
    if (idemi_slot_at(t, slot)->state & IDEMI_FINISHED)
        idemi_slot_place(t, slot)->outcome = at;
    return IDEM_OK;
}

/* Writes the application state again. */
static int idemi_journal_carry_state(idem_table *t)
{
    idem_record *r = idemi_journal_record(t, 0, IDEMI_HAS_STATE | IDEMI_MOVED);
    idemi_parts from = { NULL, NULL, NULL, NULL };

    from.state = t->state;
    r->state_len = t->state_len;
    return idemi_journal_append(t, &from, &t->journal->state_at);
}

/* Writes that a slot is empty, whatever claim it had.  Before the head counts
   the slot stays, to be written so again if it never does. */
static int idemi_journal_empty(idem_table *t, unsigned slot)
{
    uint32_t at;
    int result;

    idemi_journal_record(t, slot, IDEMI_MOVED);
    result = idemi_journal_append(t, NULL, &at);
    if (result < 0 || !idemi_slot_at(t, slot)->state)
        return result;
    if (t->journal->filling)
        idemi_journal_wrote(t, slot, at);
    else
        idemi_keys_remove(t, slot);
    return IDEM_OK;
}

/* Writes again what a slot has: a key, or none. */
static int idemi_journal_rewrite(idem_table *t, unsigned slot)
{
    const idem_slot *s = idemi_slot_at(t, slot);

    if (idemi_keys_expire(t, slot) || !s->state || s->state & IDEMI_STALE)
        return idemi_journal_empty(t, slot);
    return idemi_journal_carry(t, slot);
}

/* Writes that a key is gone, or (more) that its outcome is delivered. */
static int idemi_journal_mark(idem_table *t, unsigned slot, unsigned more)
{
    uint32_t at;

    idemi_journal_record(t, slot, 0)->more = (uint8_t)more;
    return idemi_journal_commit(t, NULL, &at);
}

/* Carries forward the next slot that has something in the sector that is being
   cleaned; or if there is none, goes on to the next sector.  Needs that not to
   be the head. */
static int idemi_journal_clean(idem_table *t)
{
    idem_journal *j = t->journal;
    unsigned slot = idemi_journal_first(t);

    if (slot < t->capacity)
        return idemi_journal_rewrite(t, slot);
    if (idemi_journal_leaving(t, j->state_at))
        return idemi_journal_carry_state(t);
    if (!j->stray)
        j->clean = idemi_journal_after(t, j->clean);
    j->stray = 0;
    return IDEM_OK;
}

/* ----------------------------------------------------------------- turning */

/* Stretches that are known to be damaged in what the head's header needs; *sum
   has the low bits of how many granules that are. */
static uint8_t idemi_journal_lost(const idem_table *t, unsigned *sum)
{
    uint32_t sector = t->journal->clean;
    unsigned lost = 0;

    *sum = 0;
    while (sector != t->journal->head) {
        const idem_sector *s = idemi_journal_sector(t, sector);
        lost += s->lost;
        *sum += s->sum;
        sector = idemi_journal_after(t, sector);
    }
    *sum &= 63;
    return (uint8_t)(lost < 255 ? lost : 255);
}

/* Puts a header's first bytes together, those that are always the same. */
static unsigned char *idemi_journal_identity(const idem_table *t,
                                             unsigned char *p)
{
    const idem_storage *m = t->config->storage;
    unsigned log2 = 0;

    while (m->prog_size >> log2 > 1)
        log2++;
    p = idemi_basics_store(p, IDEMI_MAGIC, 4);
    *p++ = IDEMI_FORMAT;
    *p++ = (unsigned char)(IDEM_HASH | log2 << 4);
    p = idemi_basics_store(p, m->sector_size, 3);
    p = idemi_basics_store(p, m->sector_count, 2);
    return idemi_basics_store(p, t->journal->check, 2);
}

/* For how long from a time on unknown keys may be lost ones: in units of 2^n ms
   (the low eleven bits), and n.  Counted from a multiple of the unit, or the
   rounding of many restarts would add up. */
IDEMI_APART
static uint32_t idemi_journal_doubt(const idem_table *t, uint64_t from)
{
    uint64_t until =
        idemi_journal_clock(t) + (uint32_t)(t->journal->doubt - t->clock);
    uint32_t exponent = 0;

    if (!idemi_journal_in_doubt(t))
        return 0;
    // From the unit that `from` is in to the one that has the last of it.
    until--;
    while (until - from >= 0x7FF) {
        until >>= 1;
        from >>= 1;
        exponent++;
    }
    return ((uint32_t)(until - from) + 1) | exponent << 11;
}

/* Programs one of the head's two headers.  `back` is the distance from the
   sector before it, `end` where the records there end. */
static int idemi_journal_header(idem_table *t, unsigned copy, unsigned flags,
                                uint32_t back, uint32_t end)
{
    idem_journal *j = t->journal;
    const idem_sector *head = idemi_journal_sector(t, j->head);
    unsigned char *out = t->in;
    uint32_t len = idemi_storage_granules(t, IDEMI_HEADER);
    unsigned sum;
    uint8_t lost = idemi_journal_lost(t, &sum);
    unsigned char *p = idemi_journal_identity(t, out);
    int result;

    *p++ = lost;
    p = idemi_basics_store(
        p,
        idemi_journal_doubt(t, (uint64_t)head->time_high << 32 | head->time),
        2);
    p = idemi_basics_store(p, head->sequence, 4);
    p = idemi_basics_store(p, head->time, 4);
    p = idemi_basics_store(p, head->time_high, 2);
    *p++ = (unsigned char)back;
    *p++ = (unsigned char)(flags | sum << 2);
    p = idemi_basics_store(p, idemi_journal_distance(t, j->clean, j->head), 2);
    p = idemi_basics_store(p, end, 3);
    p = idemi_basics_store(p, j->at, 3);
    p = idemi_basics_store(
        p, idemi_crc_update(UINT32_MAX, out, (uint32_t)(p - out)), 4);
    IDEM_MEMSET(p, t->config->storage->erased,
                (size_t)(len - IDEMI_HEADER));
    result = idemi_storage_prog(
        t, idemi_storage_place(t, j->head, copy * len), out, len);
    return result == IDEM_OK ? idemi_storage_sync(t) : result;
}

/* What became of an erase that was started: IDEM_MORE if it goes on, and is not
   waited for. */
static int idemi_journal_erased(idem_table *t, int wait)
{
    const idem_storage *m = t->config->storage;
    idem_journal *j = t->journal;
    int result;

    do
        result = m->erasing ? m->erasing(m->ctx) : 0;
    while (result == 1 && wait);
    if (result == 1)
        return IDEM_MORE;
    j->erasing = 0;
    return idemi_storage_result(t, result);
}

static void idemi_journal_retire(idem_table *t, uint32_t sector)
{
    idemi_journal_sector(t, sector)->link = IDEMI_RETIRED;
    t->stats.retired++;
}

/* The first dead sector after the head that is not spare. */
static uint32_t idemi_journal_unspared(const idem_table *t)
{
    uint32_t sector = idemi_journal_next(t, t->journal->head);
    uint32_t spare = t->journal->spare;

    for (; spare > 0; spare--)
        sector = idemi_journal_next(t, sector);
    return sector;
}

/* Looks whether a sector was erased where its headers go, if what is written is
   to be verified. */
static int idemi_journal_verify(idem_table *t, uint32_t sector)
{
    const idem_storage *m = t->config->storage;
    unsigned char *in = t->in;
    uint32_t front = idemi_journal_front(t);
    int result;

    if (!m->verify)
        return IDEM_OK;
    t->journal->loaded = IDEMI_NOWHERE;
    result = idemi_storage_read(t, idemi_storage_place(t, sector, 0), in,
                                front);
    if (result < 0 || idemi_storage_all(in, front, m->erased))
        return result;
    return IDEM_E_STORAGE;
}

/* True if a sector is after the head and before the oldest that is kept.  The
   head itself, where the round ends, is as far from it as can be. */
static int idemi_journal_dead(const idem_table *t, uint32_t sector)
{
    const idem_journal *j = t->journal;

    return idemi_journal_distance(t, j->head, sector) - 1 <
           idemi_journal_distance(t, j->head, j->kept) - 1;
}

/* Makes one dead sector more spare; or, without waiting, begins to.
   IDEM_E_SPACE: there is none, for some have been set aside. */
static int idemi_journal_erase(idem_table *t, int wait)
{
    const idem_storage *m = t->config->storage;
    idem_journal *j = t->journal;
    uint32_t sector = idemi_journal_unspared(t);
    int result = IDEM_OK;

    // What comes next may be another since that was started.
    if (j->erasing && j->erasing != sector + 1 &&
        idemi_journal_erased(t, wait) == IDEM_MORE)
        return IDEM_MORE;
    if (idemi_journal_sector(t, sector)->link >= IDEMI_ASIDE ||
        (!j->blank && !idemi_journal_dead(t, sector)))
        return IDEM_E_SPACE;
    j->had_erase = 1;
    if (!j->erasing) {
        result = idemi_storage_result(t, m->erase(m->ctx, sector));
        j->erasing = result == IDEM_OK ? sector + 1 : 0;
    }
    if (result == IDEM_OK)
        result = idemi_journal_erased(t, wait);
    if (result == IDEM_OK)
        result = idemi_journal_verify(t, sector);
    if (result < 0)
        idemi_journal_retire(t, sector);
    j->spare += result == IDEM_OK;
    return result;
}

/* Writes what the newest record of the boot before said once more.  It may have
   been torn, and read well only this time; its own place does not count any
   more. */
static int idemi_journal_confirm(idem_table *t)
{
    idem_journal *j = t->journal;
    uint32_t newest = j->newest;
    unsigned slot = (unsigned)j->newest_slot;
    int result = IDEM_OK;

    if (newest == IDEMI_NOWHERE)
        return IDEM_OK;
    if (slot < t->capacity)
        result = idemi_journal_rewrite(t, slot);
    if (result == IDEM_OK && j->state_at == newest)
        result = idemi_journal_carry_state(t);
    return result;
}

/* What is written to a new head before its header counts: whatever must be
   there once that does.  Cleans until `want` sectors are dead after it, or the
   next record would leave less than `room`. */
static int idemi_journal_fill(idem_table *t, uint32_t room, uint32_t want)
{
    idem_journal *j = t->journal;
    int result = idemi_journal_confirm(t);

    j->leave = room;
    while (result == IDEM_OK &&
           (j->stray || (j->clean != j->head &&
                         idemi_journal_gap(t, j->clean) < want))) {
        result = idemi_journal_clean(t);
        // No more fits.  Room is a wish, two dead sectors are not (J2).
        if (result != IDEM_E_SPACE)
            continue;
        if (!j->stray && idemi_journal_gap(t, j->clean) > 1)
            result = IDEM_OK;
        if (result == IDEM_OK || !j->leave)
            break;
        j->leave = 0;
        result = IDEM_OK;
    }
    j->leave = 0;
    return result;
}

/* Opens the sector `next` as the head. */
static int idemi_journal_enter(idem_table *t, uint32_t next, uint32_t room,
                               uint32_t want)
{
    idem_journal *j = t->journal;
    idem_sector *sector = idemi_journal_sector(t, next);
    uint32_t back = j->blank ? 0 : idemi_journal_distance(t, j->head, next);
    unsigned flags = j->turned ? 0 : IDEMI_BOOT;
    uint32_t end = j->end;
    int hidden = !t->config->storage->erase && !sector->sequence;
    int result = IDEM_OK;

    j->worn = 0;
    // Records whose header is damaged must not count with the new one.
    do
        sector->sequence = ++j->sequence;
    while (hidden && idemi_journal_used(t, next, idemi_journal_front(t)));
    // The first of a boot has the time of the opening: when claims were cut.
    sector->time = j->turned ? t->clock : j->opened;
    sector->time_high = (uint16_t)(j->turned ? j->clock_high : j->opened_high);
    sector->lost = sector->sum = sector->known = 0;
    if (!j->blank)
        idemi_journal_sector(t, j->head)->end = end;
    sector->end = idemi_journal_size(t);
    j->head = next;
    j->at = j->end = idemi_journal_front(t);
    j->filling = 1;
    if (!t->config->storage->erase)
        result = idemi_journal_header(t, 1, flags | IDEMI_ATTEMPT, back,
                                      end);
    if (result == IDEM_OK)
        result = idemi_journal_fill(t, room, want);
    if (result == IDEM_OK)
        result = idemi_storage_sync(t);
    j->sealing = result == IDEM_OK;
    if (result == IDEM_OK)
        result = idemi_journal_header(t, 0, flags, back, end);
    if (result == IDEM_OK)
        result = idemi_journal_header(t, 1, flags, back, end);
    return result;
}

/* Takes a new head, if that succeeded; or goes back to the one before. */
IDEMI_APART
static int idemi_journal_conclude(idem_table *t, int result, uint32_t last,
                                  uint32_t at, uint32_t end)
{
    idem_journal *j = t->journal;
    uint32_t sector = j->head;

    j->filling = 0;
    if (result == IDEM_OK) {
        idemi_journal_vacate(t);
        j->blank = 0;
        while ((sector = idemi_journal_after(t, sector)) != j->head) {
            idem_sector *s = idemi_journal_sector(t, sector);
            s->known = 0;
            if (s->link == IDEMI_ASIDE) {
                s->link = 0;
                j->spare = 0;           // others come next now
            }
        }
        j->tail = j->kept = j->clean;
        j->turned = 1;
        j->newest = IDEMI_NOWHERE;
        return IDEM_OK;
    }
    // Slots that were carried there stay there until they are carried on, so
    // it must not be used again before.
    if (j->worn && t->config->storage->erase && j->blank != IDEMI_BLANK)
        idemi_journal_retire(t, sector);
    else
        idemi_journal_sector(t, sector)->link = IDEMI_ASIDE;
    j->spare = 0;
    // If its header may be there, nothing behind what that states counts; and
    // a claim that was carried there is no claim to name, after a restart.
    idemi_journal_sector(t, sector)->known = j->sealing;
    j->head = last;
    j->at = j->sealing || j->end > idemi_journal_front(t) ? 0 : at;
    j->end = end;
    j->stray = !j->blank;
    j->clean = j->tail;
    idemi_journal_rewind(t, sector);
    return result;
}

/* Sets a sector aside that something is carried to, and is not in the ring. */
static void idemi_journal_set_aside(idem_table *t, uint32_t at)
{
    if (at != IDEMI_NOWHERE && idemi_journal_leaving(t, at) &&
        idemi_storage_sector(t, at) != t->journal->clean)
        idemi_journal_sector(t, idemi_storage_sector(t, at))->link =
            IDEMI_ASIDE;
}

/* True if the next sector that may be used is a dead one. */
static int idemi_journal_usable(const idem_table *t)
{
    const idem_journal *j = t->journal;
    uint32_t next = idemi_journal_next(t, j->head);

    if (j->blank)
        return idemi_journal_sector(t, next)->link < IDEMI_ASIDE;
    // Its header has a byte to say how far back the one before it is.
    return idemi_journal_dead(t, next) &&
           idemi_journal_distance(t, j->head, next) <= 255;
}

/* Gives the sectors that failed another chance: it may have been the disk that
   was full.  Those whose headers may be there too, if it must be: when power
   goes while one is erased, that is there now and then. */
static void idemi_journal_forgive(idem_table *t, int must)
{
    uint32_t number;
    unsigned slot;

    for (number = 0; number < t->config->storage->sector_count; number++) {
        idem_sector *s = idemi_journal_sector(t, number);
        s->link = s->known && !must ? IDEMI_ASIDE : 0;
    }
    for (slot = 0; slot < t->capacity; slot++)
        if (idemi_slot_at(t, slot)->state)
            idemi_journal_set_aside(t, idemi_slot_place(t, slot)->claim);
    idemi_journal_set_aside(t, t->journal->state_at);
    t->stats.retired = 0;
    t->journal->spare = 0;              // others come next now
    // On blank storage all are as good as erased, but not twice.
    if (t->journal->blank)
        t->journal->blank = IDEMI_TORN;
}

/* One attempt at the next sector. */
static int idemi_journal_attempt(idem_table *t, uint32_t room, uint32_t want)
{
    idem_journal *j = t->journal;
    uint32_t last = j->head, at = j->at, end = j->end;
    int must, result = IDEM_OK;

    if (!j->synced)
        result = idemi_storage_sync(t);
    if (result < 0)
        return result;
    for (must = 0; must < 2 && !idemi_journal_usable(t); must++)
        idemi_journal_forgive(t, must);
    // One is enough if another has failed: two are for a cut in a header.
    if (!idemi_journal_usable(t) || j->sequence == UINT32_MAX)
        return IDEM_E_SPACE;
    if (j->blank)
        j->clean = j->tail = idemi_journal_next(t, last);
    if (t->config->storage->erase && !j->spare && j->blank != IDEMI_BLANK)
        result = idemi_journal_erase(t, 1);
    if (result < 0)
        return result;
    j->spare -= j->spare > 0;
    result = idemi_journal_enter(t, idemi_journal_next(t, last), room, want);
    return idemi_journal_conclude(t, result, last, at, end);
}

/* Goes on to the next sector: at the first write of a boot, when the head is
   full, and after a failure.  Afterwards there is room in it.  What looks blank
   may have been begun to be programmed before a cut; then it fails, and the
   next is tried. */
IDEMI_SLOW
static int idemi_journal_turn(idem_table *t, uint32_t room, uint32_t want)
{
    int again = t->journal->blank == IDEMI_BLANK;
    int result;

    t->journal->had_turn = 1;
    result = idemi_journal_attempt(t, room, want);
    if (result < 0 && again && !t->journal->broken)
        result = idemi_journal_attempt(t, room, want);
    return result;
}

/* Goes on to a new head, in which what is reserved is to fit. */
static int idemi_journal_onward(idem_table *t)
{
    return idemi_journal_turn(t, t->claimed * t->journal->outcome_max,
                              t->journal->low);
}

/* Bytes of a sector that outcomes use for certain: it may end with less than
   one unused. */
static uint32_t idemi_journal_room(const idem_table *t)
{
    return idemi_journal_size(t) - idemi_journal_front(t) -
           t->journal->outcome_max;
}

/* True if a record of `len` bytes fits now, and after it that many outcomes. */
static int idemi_journal_enough(const idem_table *t, uint32_t len,
                                uint32_t outcomes)
{
    uint32_t rest = idemi_journal_rest(t);
    uint32_t need = outcomes * t->journal->outcome_max;

    if (len > rest)
        return 0;
    rest -= len;
    // Every sector but the last may end with less than an outcome unused.
    return need <= rest ||
           need <= rest + idemi_journal_spare(t) * idemi_journal_room(t);
}

/* True if the sectors that are left can keep what is configured, and there are
   sequences for two rounds: more than the outcomes of what was granted need. */
static int idemi_journal_sound(const idem_table *t)
{
    uint32_t sectors = t->config->storage->sector_count;

    return sectors - t->stats.retired >= t->journal->least &&
           UINT32_MAX - t->journal->sequence > 2 * sectors;
}

/* Sectors that so many outcomes may take beside the head. */
static uint32_t idemi_journal_beside(const idem_table *t, uint32_t outcomes)
{
    return outcomes * t->journal->outcome_max / idemi_journal_room(t);
}

/* Cleans a little ahead of the need, until so many sectors are dead after the
   head: IDEM_MORE if they are not yet, and there is room. */
static int idemi_journal_ahead(idem_table *t, unsigned slots, uint32_t dead,
                               uint32_t outcomes)
{
    idem_journal *j = t->journal;
    int result = IDEM_MORE;

    for (; slots > 0 && result >= 0; slots--) {
        if (j->clean == j->head || idemi_journal_gap(t, j->clean) >= dead ||
            !idemi_journal_enough(t, 2 * j->carry_max, outcomes))
            return IDEM_OK;
        result = idemi_journal_clean(t);
    }
    return result < 0 ? result : IDEM_MORE;
}

/* True if a turn is due though the head will do: without one now and then,
   claims that let erase nothing that was cleaned would leave several erases to
   one of them; the more so volatile ones, which fill no head.  With `room` left
   in the new head, what is needed must not take more than one. */
static int idemi_journal_due(const idem_table *t, uint32_t need,
                             uint32_t beside, uint32_t room)
{
    const idem_journal *j = t->journal;
    int unwritten = t->config->volatile_claims != 0;
    uint32_t dead, erasable;

    if (j->had_turn || j->had_erase || !j->spare ||
        need > room + j->spare * idemi_journal_room(t))
        return 0;
    dead = idemi_journal_gap(t, j->clean);
    if (unwritten && dead <= j->low + beside && j->clean != j->head &&
        idemi_journal_rest(t) < 2 * j->carry_max)
        return 1;
    erasable = idemi_journal_gap(t, j->kept);
    return dead > erasable && j->spare + 1 >= erasable &&
           j->spare <= beside + (unsigned)unwritten;
}

/* While outcomes may come to be reserved beside the head, cleans and erases a
   little in each call ahead of the need; so one call is never left with all of
   it.  What a turn has just taken is not replaced at once, if nothing needs it
   yet: idle time may do that. */
static int idemi_journal_pace(idem_table *t, uint32_t outcomes,
                              uint32_t beside)
{
    idem_journal *j = t->journal;
    int result = idemi_journal_ahead(t, IDEMI_PACE_CARRY,
                                     j->low + beside + 1, outcomes);

    if (result >= 0 && t->config->storage->erase && !j->had_erase &&
        j->spare <= beside && (beside || !j->had_turn))
        result = idemi_journal_erase(t, 1);
    return result < 0 && result != IDEM_E_SPACE ? result : IDEM_OK;
}

/* The token of the head's first byte. */
static uint64_t idemi_journal_token(const idem_table *t)
{
    return (uint64_t)idemi_journal_sector(t, t->journal->head)->sequence *
           idemi_journal_size(t);
}

/* True if no more can begin in the head: nothing more is written there, or the
   volatile claims, of which nothing is written, have used up its tokens. */
static int idemi_journal_full(const idem_table *t)
{
    return !t->journal->at ||
           (t->config->volatile_claims &&
            t->token + 1 >= idemi_journal_token(t) + idemi_journal_size(t));
}

/* Sees to it that a record of `len` bytes fits, and after it that many
   outcomes.  An erase at most: who finds the head full and nothing spare has
   next to nothing reserved. */
IDEMI_SLOW
static int idemi_journal_reserve(idem_table *t, uint32_t len,
                                 uint32_t outcomes)
{
    idem_journal *j = t->journal;
    uint32_t need = len + outcomes * j->outcome_max;
    uint32_t beside = idemi_journal_beside(t, outcomes);
    uint32_t low = j->low + beside;
    uint32_t half = (idemi_journal_size(t) - idemi_journal_front(t)) / 2;
    uint32_t room = need < half ? need : half;
    uint32_t turns = t->config->storage->sector_count;
    int result = IDEM_OK;

    if (j->broken)
        return IDEM_E_STORAGE;
    if (idemi_journal_rest(t) < len || idemi_journal_full(t))
        result = idemi_journal_turn(t, room, low);
    for (;;) {
        if (result < 0)
            return result;
        if (idemi_journal_enough(t, len, outcomes)) {
            // A head may have but half its room, and the next claim one more
            // outcome.
            if (need + j->outcome_max <= half)
                return result;
            if (!idemi_journal_due(t, need, beside, half / 2))
                return idemi_journal_pace(t, outcomes, beside);
            result = idemi_journal_turn(t, half / 2, low);
            continue;
        }
        if (t->config->storage->erase &&
            j->spare + 2 < idemi_journal_gap(t, j->clean)) {
            result = idemi_journal_erase(t, 1);
            if (result != IDEM_E_SPACE)
                continue;
        }
        j->leave = len + t->claimed * j->outcome_max;
        result = j->clean == j->head ? IDEM_E_SPACE : idemi_journal_clean(t);
        j->leave = 0;
        if (result == IDEM_E_SPACE && idemi_journal_gap(t, j->tail) > 1 &&
            turns-- > 0)
            result = idemi_journal_turn(t, room, low);
    }
}

/* The same for an outcome, whose claim has reserved it. */
static int idemi_journal_reserved(idem_table *t, uint32_t len)
{
    if (t->journal->broken)
        return IDEM_E_STORAGE;
    return len <= idemi_journal_rest(t) ? IDEM_OK : idemi_journal_onward(t);
}

/* True if an answer about a slot, or that a key has none, would rely on the
   newest record of the boot before, which may be torn. */
static int idemi_journal_unconfirmed(const idem_table *t, unsigned slot)
{
    const idem_journal *j = t->journal;

    if (j->newest == IDEMI_NOWHERE || j->newest_slot == IDEMI_NOWHERE)
        return 0;
    return slot == j->newest_slot || slot == IDEMI_NONE;
}

/* Goes on to the first sector of this boot, for before that nothing fits; that
   confirms the newest record of the boot before.  It leaves no room for more:
   if this is all that the boot writes it must carry what it can, or restarts in
   a row would use up the ring. */
static int idemi_journal_assure(idem_table *t)
{
    return idemi_journal_reserved(t, 1);
}

/* One bounded step of idle work on the journal.  IDEM_MORE if there is more. */
IDEMI_SLOW
static int idemi_journal_maintain(idem_table *t)
{
    idem_journal *j = t->journal;
    uint32_t want = 1, low = j->low;

    if (j->broken)
        return IDEM_E_STORAGE;
    if (j->blank == IDEMI_BLANK)
        return IDEM_OK;
    // Until a header of this boot is there, only the next sector is dead for
    // certain (R3).
    if (j->turned && t->claimed)
        want += 1 + idemi_journal_beside(t, t->claimed + 1);
    if (t->config->storage->erase && (j->erasing || j->spare < want)) {
        int result = idemi_journal_erase(t, 0);
        // What was cleaned since the last turn can be erased after the next.
        if (result == IDEM_E_SPACE && want > 1 && j->spare &&
            idemi_journal_gap(t, j->clean) > idemi_journal_gap(t, j->kept))
            result = idemi_journal_onward(t);
        if (result != IDEM_E_SPACE)
            return result < 0 ? result : IDEM_MORE;
    }
    // Not before the head is nearly full: what is needed now may be over then.
    if (idemi_journal_rest(t) <= idemi_journal_size(t) / 4)
        low += want;
    return idemi_journal_ahead(t, IDEMI_MAINTAIN_CARRY, low, t->claimed);
}

/* Makes a claim on a slot durable; q->at is where, and t->token its token. */
IDEMI_SLOW
static int idemi_journal_claim(idem_table *t, unsigned slot, idemi_query *q)
{
    idem_record *r = &t->journal->record;
    idemi_parts from = { NULL, NULL, NULL, NULL };
    const idem_request *rq = q->rq;
    uint32_t len = (uint32_t)(rq->scope_len + rq->key_len);
    uint64_t token;
    int result;

    if (!idemi_journal_sound(t))
        return IDEM_E_SPACE;
    len += q->attempts != 1 || rq->response_size ||
                   q->retention != t->journal->retentions[0]
               ? IDEMI_CLAIM_FIXED
               : IDEMI_CLAIM_FIXED - IDEMI_CLAIM_MORE;
    if (t->config->volatile_claims)
        len = 0;
    result = idemi_journal_reserve(t, len, t->claimed + 1);
    if (result < 0)
        return result;
    q->at = IDEMI_NOWHERE;
    if (t->config->volatile_claims) {
        // Counted, in the range of the head: later heads have larger ones.
        token = idemi_journal_token(t);
        if (token <= t->token)
            token = t->token + 1;
    } else {
        from.scope = rq->scope;
        from.key = rq->key;
        idemi_journal_record(t, slot, IDEMI_HAS_CLAIM);
        idemi_keys_request(t, &r->body, q);
        r->attempts = (uint8_t)q->attempts;
        result = idemi_journal_commit(t, &from, &q->at);
        token = idemi_journal_token(t) + idemi_storage_offset(t, q->at);
    }
    if (result == IDEM_OK)
        t->token = token;
    return result;
}

/* Makes an outcome durable, together with application state if it has any. */
IDEMI_SLOW
static int idemi_journal_outcome(idem_table *t, unsigned slot,
                                 const idem_outcome *out)
{
    idem_journal *j = t->journal;
    idem_record *r = &j->record;
    idem_place *place = idemi_slot_place(t, slot);
    idemi_parts from = { NULL, NULL, NULL, NULL };
    uint32_t at;
    int written = place->claim != IDEMI_NOWHERE;
    size_t len = out->response_len + (out->state ? out->state_len : 0);
    int result;

    len += !written ? IDEMI_RECORD_FIXED + t->config->key_max
           : out->code || out->failed || out->confirm
               ? IDEMI_OUTCOME_FIXED
               : IDEMI_OUTCOME_FIXED - IDEMI_OUTCOME_MORE;
    result = idemi_journal_reserved(t, (uint32_t)len);
    if (result == IDEM_OK && !idemi_slot_at(t, slot)->state)
        result = IDEM_E_FENCED;         // lost while room was made
    if (result < 0)
        return result;
    idemi_journal_record(t, slot, 0);
    if (!written) {
        idemi_journal_describe(t, slot);
        from.scope = idemi_slot_id(t, slot);
        from.key = idemi_slot_id(t, slot) + r->body.scope_len;
    }
    r->parts |= IDEMI_HAS_OUTCOME;
    r->body.code = out->code;
    r->body.response_len = (uint16_t)out->response_len;
    from.response = out->response;
    if (out->state) {
        r->parts |= IDEMI_HAS_STATE;
        r->state_len = (uint16_t)out->state_len;
        from.state = out->state;
    }
    if (out->failed)
        r->more |= IDEMI_MORE_FAILED;
    if (out->confirm)
        r->more |= IDEMI_MORE_CONFIRM;
    result = idemi_journal_commit(t, &from, &at);
    if (result < 0)
        return result;
    place->outcome = at;
    if (!written)
        idemi_journal_wrote(t, slot, at);
    if (out->state)
        j->state_at = at;
    return IDEM_OK;
}

/* Makes it durable that a claim on a slot was given back, or a key forgotten;
   or, with `more`, that an outcome was delivered.  What a claim reserved is
   enough for it. */
IDEMI_SLOW
static int idemi_journal_drop(idem_table *t, unsigned slot, unsigned more)
{
    const idem_slot *s = idemi_slot_at(t, slot);
    int result;

    if (idemi_slot_place(t, slot)->claim == IDEMI_NOWHERE)
        return IDEM_OK;
    result = idemi_journal_reserve(t, IDEMI_MARK_FIXED,
                                   t->claimed - idemi_keys_claimed(s));
    if (result < 0 || !s->state)
        return result;
    return idemi_journal_mark(t, slot, more);
}

/* Keeps where the claim of a slot was written, and its token. */
IDEMI_APART
static void idemi_journal_placed(idem_table *t, unsigned slot,
                                 const idemi_query *q)
{
    idemi_slot_place(t, slot)->outcome = (uint32_t)t->token;
    idemi_journal_wrote(t, slot, q->at);
}

/* ---------------------------------------------------------------------------
   >>opening   from the bytes in a storage to the table that wrote them

   First the headers of all sectors, then the records from the oldest sector
   that is needed to the newest: each byte once.  Nothing is written.
   ------------------------------------------------------------------------ */

/* What the bytes where a header belongs are */
enum { IDEMI_NO_HEADER, IDEMI_FOREIGN, IDEMI_OURS };

/* idem_sector.end, while opening: the sector is the first of a boot. */
#define IDEMI_FIRST UINT32_C(0x80000000)

/* What the header at p is. */
static int idemi_recover_header(const idem_table *t, const unsigned char *p)
{
    uint32_t count = t->config->storage->sector_count;
    unsigned char identity[IDEMI_IDENTITY];

    // The right check on what no journal says is damage, too.
    if (idemi_crc_update(UINT32_MAX, p, IDEMI_HEADER - 4) !=
            idemi_basics_load32(p + IDEMI_HEADER - 4) ||
        p[26] >= count || (uint32_t)(p[28] | p[29] << 8) >= count)
        return IDEMI_NO_HEADER;
    idemi_journal_identity(t, identity);
    return IDEM_MEMCMP(identity, p, sizeof identity) ? IDEMI_FOREIGN
                                                     : IDEMI_OURS;
}

/* True if bytes are the same but for one bit. */
static int idemi_recover_similar(const unsigned char *a, const unsigned char *b,
                                 unsigned len)
{
    unsigned differing = 0;
    unsigned i;

    for (i = 0; i < len; i++) {
        unsigned bits = a[i] ^ b[i];
        for (; bits; bits &= bits - 1)
            differing++;
    }
    return differing <= 1;
}

/* Mends a header in which one bit is flipped.  Returns whether it is one of
   ours then. */
static int idemi_recover_mend(const idem_table *t, unsigned char *p)
{
    unsigned char identity[IDEMI_IDENTITY];
    unsigned bit;

    idemi_journal_identity(t, identity);
    if (!idemi_recover_similar(identity, p, IDEMI_IDENTITY))
        return 0;
    for (bit = 0; bit < 8 * IDEMI_HEADER; bit++) {
        unsigned char mask = (unsigned char)(1u << bit % 8);
        p[bit / 8] ^= mask;
        if (idemi_recover_header(t, p) == IDEMI_OURS)
            return 1;
        p[bit / 8] ^= mask;
    }
    return 0;
}

/* What a sector whose headers are not ours looks like, by the bytes up to its
   records.  A torn header has the bits of a header that were programmed before
   it was torn, and one granule of it, if that is small, may be anything. */
static int idemi_recover_looks(const idem_table *t, const unsigned char *p)
{
    const idem_storage *m = t->config->storage;
    uint32_t copy = idemi_journal_front(t) / 2;
    uint32_t from = UINT32_MAX, to = 0, i;
    uint32_t mask = ~(uint32_t)(m->prog_size - 1u);
    unsigned char identity[IDEMI_IDENTITY];

    if (idemi_storage_all(p, 2 * copy, m->erased))
        return IDEMI_LOOKS_BLANK;
    idemi_journal_identity(t, identity);
    for (i = 0; i < 2 * copy; i++) {
        uint32_t at = i % copy;
        unsigned expected = at < IDEMI_IDENTITY ? identity[at] : m->erased;
        if (at >= IDEMI_IDENTITY && at < IDEMI_HEADER)
            continue;
        if ((p[i] ^ m->erased) & ~(expected ^ m->erased)) {
            from = from < i ? from : i;
            to = i;
        }
    }
    if (from > to)
        return IDEMI_LOOKS_TORN;
    return (from & mask) == (to & mask) && m->prog_size <= 16
               ? IDEMI_LOOKS_TORN
               : IDEMI_LOOKS_OTHER;
}

/* Takes the header at p for the sector's. */
static void idemi_recover_sector(idem_table *t, uint32_t number,
                                 const unsigned char *p)
{
    idem_sector *s = idemi_journal_sector(t, number);

    s->sequence = idemi_basics_load32(p + 16);
    s->time = idemi_basics_load32(p + 20);
    s->time_high = (uint16_t)(p[24] | p[25] << 8);
    s->tail = (uint16_t)(p[28] | p[29] << 8);
    s->known = p[13];
    s->sum = p[27] >> 2;
    s->link = p[26];
    s->end = idemi_basics_load32(p + 29) >> 8;
    if (p[27] & IDEMI_BOOT)
        s->end |= IDEMI_FIRST;
}

/* The sector that is some behind another, round the end. */
static uint32_t idemi_recover_before(const idem_table *t, uint32_t sector,
                                     uint32_t back)
{
    return idemi_journal_distance(t, back, sector);
}

/* Reads the two headers of a sector to the start of the reading buffer, and
   tells which of them counts, the one with the higher sequence, or NULL; *seen
   rises to the highest of what they are.  *whole: the sector is committed. */
IDEMI_APART
static const unsigned char *idemi_recover_pair(idem_table *t, uint32_t number,
                                               int *whole, int *seen)
{
    uint32_t front = idemi_journal_front(t);
    unsigned char *a = t->in;
    const unsigned char *b = a + front / 2;
    uint8_t *looks = &idemi_journal_sector(t, number)->link;
    int first, second;
    int legible = idemi_storage_salvage(t, idemi_storage_place(t, number, 0), a,
                                     front);

    first = idemi_recover_header(t, a);
    second = idemi_recover_header(t, b);
    if (first > *seen)
        *seen = first;
    if (second > *seen)
        *seen = second;
    if (second == IDEMI_OURS &&
        (first != IDEMI_OURS ||
         idemi_basics_load32(b + 16) > idemi_basics_load32(a + 16) ||
         !(b[27] & IDEMI_ATTEMPT))) {
        *whole = !(b[27] & IDEMI_ATTEMPT);
        return b;
    }
    if (first == IDEMI_OURS || idemi_recover_mend(t, a)) {
        *whole = idemi_recover_similar(a, b, IDEMI_HEADER);
        return a;
    }
    *looks = (uint8_t)idemi_recover_looks(t, a);
    if (!legible && *looks == IDEMI_LOOKS_BLANK)
        *looks = IDEMI_LOOKS_TORN;
    return NULL;
}

/* True if a sector counts though one with a higher sequence, which does not,
   names another before it: that was written first, and could not be seen when
   this one was.  For a record is after it; or it names itself another, which
   has been the head since. */
static int idemi_recover_since(idem_table *t, uint32_t named, uint32_t best,
                               uint32_t end)
{
    const idem_sector *s;

    if (best == IDEMI_NOWHERE)
        return 0;
    s = idemi_journal_sector(t, best);
    if (named != IDEMI_NOWHERE &&
        idemi_journal_sector(t, named)->sequence >= s->sequence)
        return 0;
    return (s->link && idemi_recover_before(t, best, s->link) != named) ||
           idemi_journal_used(t, best, end);
}

/* The oldest sector that the head needs, or the one before it, which is head if
   this one's header was torn: until that is decided (R3), neither's must be
   erased.  Where a sector had failed there may be none that both can spare;
   then this header is believed. */
static uint32_t idemi_recover_kept(const idem_table *t)
{
    const idem_journal *j = t->journal;
    const idem_sector *s = idemi_journal_sector(t, j->head);
    uint32_t before = idemi_recover_before(t, j->head, s->link);
    uint32_t needed = s->link + idemi_journal_sector(t, before)->tail;

    return s->tail < needed && needed + 1 < t->config->storage->sector_count
               ? idemi_recover_before(t, j->head, needed)
               : j->tail;
}

/* Reads all headers, and finds the head.  If the highest sequence is in a
   sector that is committed it is that one; if not the one before it, also if
   another seems to be committed: for who announced that sequence had seen that
   the other was not.  Returns whether there is a journal; if not, *seen is what
   there is else, the highest of the three. */
static int idemi_recover_headers(idem_table *t, int *seen)
{
    idem_journal *j = t->journal;
    uint32_t highest = IDEMI_NOWHERE, best = IDEMI_NOWHERE, number;
    uint32_t best_sequence = 0, best_end = 0, end;
    int whole;
    const idem_sector *s;

    j->check = idemi_recover_check(t);
    j->loaded = j->attempt = IDEMI_NOWHERE;
    *seen = IDEMI_NO_HEADER;
    for (number = 0; number < t->config->storage->sector_count; number++) {
        const unsigned char *p = idemi_recover_pair(t, number, &whole, seen);
        s = idemi_journal_sector(t, number);
        if (!p)
            continue;
        idemi_recover_sector(t, number, p);
        end = idemi_basics_load32(p + 32) >> 8;
        if (s->sequence > j->sequence) {
            j->sequence = s->sequence;
            j->doubt = idemi_basics_load32(p + 12) >> 16;
            j->own_end = p[27] & IDEMI_ATTEMPT ? idemi_journal_size(t) : end;
            highest = number;
        }
        if (whole && s->sequence > best_sequence) {
            best_sequence = s->sequence;
            best_end = end;
            best = number;
        }
    }
    if (highest == IDEMI_NOWHERE)
        return 0;
    s = idemi_journal_sector(t, highest);
    j->opened = s->time;
    j->opened_high = s->time_high;
    j->head = highest;
    if (best != highest && !idemi_journal_used(t, highest, j->own_end)) {
        uint32_t named = s->link ? idemi_recover_before(t, highest, s->link)
                                 : IDEMI_NOWHERE;
        j->attempt = highest;
        j->head = named;
        j->own_end = 0;
        if (named == best || idemi_recover_since(t, named, best, best_end)) {
            j->head = best;
            j->own_end = best_end;
        }
        if (j->head == IDEMI_NOWHERE ||
            !idemi_journal_sector(t, j->head)->sequence)
            return 0;
    }
    s = idemi_journal_sector(t, j->head);
    j->tail = idemi_recover_before(t, j->head, s->tail);
    j->kept = idemi_recover_kept(t);
    j->known = s->known;
    j->known_sum = s->sum;
    for (number = 0; number < t->config->storage->sector_count; number++)
        idemi_journal_sector(t, number)->sum = 0;
    return 1;
}

/* Goes from the newest sector back to the oldest that is needed, and turns each
   distance to the one before into the distance to the one behind. */
static void idemi_recover_chain(idem_table *t)
{
    idem_journal *j = t->journal;
    uint32_t left = idemi_journal_distance(t, j->tail, j->head);
    uint32_t sector = j->head;
    uint8_t forward = 0;

    for (;;) {
        idem_sector *s = idemi_journal_sector(t, sector);
        uint8_t back = s->sequence && s->link ? s->link : 1;
        s->link = forward;
        if (back > left)
            break;
        left -= back;
        forward = back;
        sector = idemi_recover_before(t, sector, back);
    }
    j->tail = sector;
}

/* Moves the clock to a time since a sector's header, unless it has passed that.
   All that is finished is over after half the range of the clock. */
static void idemi_recover_time(idem_table *t, const idem_sector *s,
                               uint64_t since)
{
    idem_journal *j = t->journal;
    uint64_t at = ((uint64_t)s->time_high << 32 | s->time) + since;
    uint64_t now = idemi_journal_clock(t);

    if (at <= now)
        return;
    if (at - now <= UINT32_MAX) {
        idemi_keys_advance(t, (uint32_t)(at - now));
        return;
    }
    idemi_keys_advance(t, UINT32_MAX);
    j->clock_high = (uint32_t)(at >> 32);
    t->clock = (uint32_t)at;
    idemi_keys_sweep(t);
}

/* The first sector of a boot has come, or this opening: whoever had a claim
   until then is gone. */
static void idemi_recover_cut(idem_table *t)
{
    unsigned slot;

    for (slot = 0; t->claimed; slot++) {
        idem_slot *s = idemi_slot_at(t, slot);
        if (!(s->state & IDEMI_ENDLESS))
            continue;
        s->state = IDEMI_IN_PROGRESS | IDEMI_CUT;
        s->time = t->clock;
        t->claimed--;
        idemi_order_note(t, s);
    }
}

/* A key that was claimed, and comes into the index when the next record was
   taken apart: what it needs of that has come from memory meanwhile. */
typedef struct idemi_late {
    unsigned slot;              /* IDEMI_NONE: there is none */
    uint32_t id_at;             /* where in the reading buffer it is */
    uint8_t  scope_len, key_len;
} idemi_late;

/* True if a slot has the late key. */
static int idemi_recover_same(idem_table *t, unsigned slot,
                              const idemi_late *late)
{
    idem_record *r = &t->journal->record;
    unsigned char *other = idemi_journal_out(t);
    uint32_t at = idemi_slot_place(t, slot)->claim;
    uint32_t len = idemi_journal_size(t) - idemi_storage_offset(t, at);
    idem_record mine;
    int same;

    mine = *r;
    if (len > t->journal->record_max)
        len = t->journal->record_max;
    idemi_storage_salvage(t, at, other, len);
    same = idemi_record_decode(t, at, other, other, len) &&
           r->body.scope_len == late->scope_len &&
           r->body.key_len == late->key_len &&
           IDEM_MEMCMP(other + r->id_at, t->in + late->id_at,
                       (size_t)late->scope_len + late->key_len) == 0;
    *r = mine;
    return same;
}

/* Puts the late key, if there is one, into the index; and drops what the writer
   had dropped before it claimed that: without a word, for it was over by then,
   though here it may be remembered longer (idemi_keys_terms, or another default
   retention); or with a record that is lost, though this one is not. */
static void idemi_recover_enter(idem_table *t, idemi_late *late)
{
    unsigned entering = late->slot, at;
    idem_number hash;

    if (entering == IDEMI_NONE)
        return;
    late->slot = IDEMI_NONE;
    hash = idemi_slot_at(t, entering)->hash;
    at = idemi_index_home(t, hash);
    while (idemi_index_slot(t, at) != IDEMI_NONE) {
        unsigned slot = idemi_index_slot(t, at);
        if (idemi_index_is(t, at, slot, hash)) {
            if (idemi_keys_expire(t, slot))
                continue;
            if ((idemi_slot_at(t, slot)->state & IDEMI_STALE) ||
                idemi_recover_same(t, slot, late)) {
                idemi_keys_remove(t, slot);
                continue;
            }
        }
        at = idemi_index_next(t, at);
    }
    idemi_index_insert(t, hash, entering);
}

/* Makes a slot what the claim part of a record says. */
static void idemi_recover_claim(idem_table *t, unsigned slot, uint32_t at,
                                idemi_late *late)
{
    idem_record *r = &t->journal->record;
    const unsigned char *id = t->in + r->id_at;
    idem_slot *s = idemi_slot_at(t, slot);

    idemi_recover_enter(t, late);
    if (s->state)
        idemi_keys_remove(t, slot);
    s->hash = idemi_index_hash(
        idemi_hash_id(t->config, id, r->body.scope_len,
                      id + r->body.scope_len, r->body.key_len));
    idemi_index_prefetch(t, s->hash);
    late->slot = slot;
    late->id_at = r->id_at;
    late->scope_len = r->body.scope_len;
    late->key_len = r->body.key_len;
    // Before the slot is in use: its number is not one of a retention yet.
    if (idemi_slot_bodies(t)) {
        idem_body *body = idemi_slot_own(s);
        *body = r->body;
        IDEM_MEMCPY(body + 1, id, (size_t)body->scope_len + body->key_len);
        s->terms = r->attempts;
    } else
        s->terms = idemi_keys_terms(t, r->body.retention);
    s->time = t->clock;
    s->state = IDEMI_IN_PROGRESS | IDEMI_ENDLESS;
    if (r->more & IDEMI_MORE_CUT) {
        s->state = IDEMI_IN_PROGRESS | IDEMI_CUT;
        s->time -= r->age;
    }
    idemi_journal_wrote(t, slot, at);
    idemi_order_note(t, s);
    t->used++;
    t->claimed += idemi_keys_claimed(s);
}

/* Makes a slot in progress what the outcome part of a record says. */
static void idemi_recover_outcome(idem_table *t, unsigned slot, uint32_t at)
{
    const idem_record *r = &t->journal->record;
    idem_slot *s = idemi_slot_at(t, slot);
    unsigned hint = t->links[t->capacity].older;    // the newest

    t->claimed -= idemi_keys_claimed(s);
    s->state = r->more & IDEMI_MORE_FAILED ? IDEM_FAILED : IDEM_COMPLETED;
    s->time = t->clock;
    if (r->parts & IDEMI_MOVED)
        s->time -= r->age;
    if (r->more & IDEMI_MORE_CONFIRM) {
        s->state |= IDEMI_UNDELIVERED;
        t->pending++;
    }
    idemi_slot_place(t, slot)->outcome = at;
    if (idemi_slot_bodies(t)) {
        idem_body *body = idemi_slot_own(s);
        body->code = r->body.code;
        body->response_len = r->body.response_len;
        idemi_basics_copy(idemi_slot_response(t, slot),
                          t->in + r->response_at,
                          r->body.response_len);
    }
    if (r->parts & IDEMI_MOVED) {
        hint = (unsigned)t->journal->hint;
        if (hint == slot ||
            (hint < t->capacity &&
             !(idemi_slot_at(t, hint)->state & IDEMI_FINISHED)))
            hint = t->capacity;
        t->journal->hint = slot;
    }
    idemi_order_insert(t, slot, hint);
    idemi_order_note(t, s);
}

/* True if the record in t->journal->record is of a claim that should be there,
   and is lost: so it is half of something, and its state does not count.  A
   claim in a sector that is not needed any more has done its part. */
static int idemi_recover_half(const idem_table *t, uint32_t at)
{
    const idem_storage *m = t->config->storage;
    const idem_record *r = &t->journal->record;
    uint32_t here = idemi_storage_linear(t, at), claim;

    if (idemi_record_mine(t, at))
        return 0;
    claim = here >= r->age ? here - r->age
                           : here + m->sector_size * m->sector_count - r->age;
    return idemi_journal_distance(t, t->journal->tail,
                                  claim / m->sector_size) <=
           idemi_journal_distance(t, t->journal->tail,
                                  idemi_storage_sector(t, at));
}

/* Does what the record in t->journal->record says. */
static void idemi_recover_apply(idem_table *t, uint32_t at, idemi_late *late)
{
    idem_journal *j = t->journal;
    idem_record *r = &j->record;
    unsigned slot = (unsigned)r->slot;
    idem_slot *s = idemi_slot_at(t, slot);

    // It was not over when it was carried, but retention may be shorter now.
    if (r->parts & IDEMI_MOVED && r->age > r->body.retention)
        r->age = r->body.retention;
    idemi_recover_time(t,
                       idemi_journal_sector(t, idemi_storage_sector(t, at)),
                       (uint64_t)r->time_high << 32 | r->time);
    if (r->parts & IDEMI_HAS_STATE && !idemi_recover_half(t, at)) {
        t->state_len = r->state_len;
        j->state_at = at;
        idemi_basics_copy(t->state, t->in + r->state_at,
                          r->state_len);
    }
    if (r->parts & IDEMI_HAS_CLAIM)
        idemi_recover_claim(t, slot, at, late);
    if (!s->state || !idemi_record_mine(t, at) || idemi_record_is_state(r))
        return;
    // So what is late is in progress, and not over when time goes on.
    if ((r->parts & (IDEMI_HAS_CLAIM | IDEMI_HAS_OUTCOME | IDEMI_MOVED)) !=
        IDEMI_HAS_CLAIM)
        idemi_recover_enter(t, late);
    // That may be the same key, in another slot.
    if (!s->state)
        return;
    if (r->parts & IDEMI_HAS_OUTCOME) {
        if (!(s->state & IDEMI_FINISHED))
            idemi_recover_outcome(t, slot, at);
    } else if (r->more & IDEMI_MORE_DELIVERED)
        idemi_keys_delivered(t, s);
    else if (!(r->parts & IDEMI_HAS_CLAIM))
        idemi_keys_remove(t, slot);
}

/* Keeps a copy of what may be the newest record, and notes where the head ends
   for the header that comes next.  While nothing stands behind the head's
   header, that itself may be torn: then the first record in the head is to be
   confirmed, for it is what the header has confirmed. */
static void idemi_recover_newest(idem_table *t, uint32_t at,
                                 const unsigned char *p, uint32_t len)
{
    idem_journal *j = t->journal;
    int carried = idemi_storage_offset(t, at) < j->own_end;

    j->end = idemi_storage_offset(t, at);
    if (carried)
        j->end += idemi_storage_granules(t, len);
    if (carried && j->newest != IDEMI_NOWHERE)
        return;
    IDEM_MEMCPY(idemi_journal_copy(t), p, (size_t)len);
    j->newest = at;
    j->newest_len = len;
    j->newest_slot =
        idemi_record_is_state(&j->record) ? IDEMI_NOWHERE : j->record.slot;
}

/* Does what the records of a sector up to `limit` say.  What does not validate
   is passed over granule by granule.  Returns the number of stretches in which
   something durable was: one that a record follows which was written when all
   before it was durable; and in the head, one that is longer than what a cut
   can leave.  In other sectors, every one up to the limit. */
IDEMI_FLAT
static uint32_t idemi_recover_records(idem_table *t, uint32_t sector,
                                      uint32_t limit, int head)
{
    const idem_storage *m = t->config->storage;
    idem_journal *j = t->journal;
    idem_sector *s = idemi_journal_sector(t, sector);
    idemi_window w = { 0, 0 };
    idemi_late late = { IDEMI_NONE, 0, 0, 0 };
    uint32_t at = idemi_journal_front(t);
    uint32_t hole = 0, garbage = 0, dirt = 0, holes = 0;
    uint32_t sure = head ? j->own_end : limit;
    uint32_t lost = 0;
    uint32_t sum = 0, open_sum = 0;

    idemi_recover_time(t, s, 0);
    if (s->end & IDEMI_FIRST)
        idemi_recover_cut(t);
    while (at < limit) {
        uint32_t here = idemi_storage_place(t, sector, at);
        const unsigned char *p;
        uint32_t have, len;
        // What is in the reading buffer may move.
        if (w.from + w.have < at + j->record_max)
            idemi_recover_enter(t, &late);
        p = idemi_journal_window(t, &w, sector, at, limit);
        have = w.from + w.have - at;
        len = idemi_record_decode(t, here, t->in, p, have);
        if (!len) {
            if (!hole)
                hole = at;
            // The blank rest of a sector goes by quickly, in whole granules:
            // what the buffer has of its last one may not be all of that.
            do {
                len = have < m->prog_size ? have : m->prog_size;
                at += m->prog_size;
                open_sum++;
                if (!idemi_storage_all(p, len, m->erased)) {
                    garbage = at;
                    if (!dirt)
                        dirt = at;
                }
                p += len;
                have -= len;
            } while (have >= m->prog_size && !idemi_record_begins(*p));
            continue;
        }
        if (hole) {
            holes++;
            sum += open_sum;
            lost += hole < sure || (j->record.parts & IDEMI_SYNCED);
        }
        hole = garbage = dirt = open_sum = 0;
        if (head)
            idemi_recover_newest(t, here, p, len);
        idemi_recover_apply(t, here, &late);
        at += idemi_storage_granules(t, len);
    }
    idemi_recover_enter(t, &late);
    if (hole && hole < sure) {
        sum += open_sum;
        holes++;
        lost++;
    } else if (head && m->erase &&
               garbage > dirt + idemi_storage_granules(t, j->record_max))
        lost++;
    s->lost = (uint8_t)(holes < 255 ? holes : 255);
    s->sum = (uint8_t)sum;
    return head ? lost : holes;
}

/* Does what all records say, from the oldest sector to the newest. */
static void idemi_recover_replay(idem_table *t)
{
    idem_journal *j = t->journal;
    uint32_t sector = j->tail, lost = 0;
    uint32_t exponent = j->doubt >> 11, units = j->doubt & 0x7FF;
    uint64_t until = (uint64_t)j->opened_high << 32 | j->opened, now;
    unsigned sum = 0;

    j->end = idemi_journal_front(t);
    for (;;) {
        idem_sector *s = idemi_journal_sector(t, sector);
        uint32_t next = sector;
        uint32_t limit = idemi_journal_size(t), end;
        uint8_t link = s->link;
        if (sector == j->head)
            break;
        for (; link > 0; link--)
            next = idemi_journal_after(t, next);
        end = idemi_journal_sector(t, next)->end & ~IDEMI_FIRST;
        if (idemi_journal_sector(t, next)->sequence && end < limit)
            limit = end;
        if (s->sequence) {
            lost += idemi_recover_records(t, sector, limit, 0);
            sum += s->sum;
            s->end = limit;
        } else {
            s->lost = s->sum = 1;
            sum++;
            lost++;
        }
        sector = next;
    }
    // The head's header knows how many there were.
    if (lost > 255)
        lost = 255;
    if (lost == j->known && (sum & 63) != j->known_sum)
        lost++;
    if (lost < j->known)
        lost = j->known;
    lost += idemi_recover_records(t, j->head, idemi_journal_size(t), 1);
    idemi_recover_cut(t);
    // Doubt that an earlier opening had goes on in logical time; it may have
    // ended longer ago, or end later, than 32 bits tell.
    now = idemi_journal_clock(t);
    until = ((until >> exponent) + units) << exponent;
    j->in_doubt = units && now < until;
    if (until > now + IDEMI_NEVER_MS)
        until = now + IDEMI_NEVER_MS;
    j->doubt = (uint32_t)until;
    for (; lost > j->known; lost--)
        idemi_journal_lose(t);
}

/* Decides what to make of a storage without a journal.  Blank, or torn in the
   first header, is a beginning; anything else is somebody's.  Where there is
   something torn the sector after it is erased before it is used, so one may be
   anything, after a cut in that. */
static int idemi_recover_blank(idem_table *t, int seen)
{
    const idem_storage *m = t->config->storage;
    idem_journal *j = t->journal;
    unsigned char *in = t->in;
    uint32_t other = 0, torn = 0, wrong = 0, next = 0, number;

    for (number = m->sector_count; number > 0; number--) {
        idem_sector *s = idemi_journal_sector(t, number - 1);
        uint32_t at = idemi_journal_front(t), len;
        if (s->sequence)                // its records were looked for before
            s->link = IDEMI_LOOKS_TORN;
        for (; at < m->sector_size && !s->sequence; at += len) {
            len = m->sector_size - at;
            if (len > j->in_size)
                len = j->in_size;
            if (!idemi_storage_salvage(
                    t, idemi_storage_place(t, number - 1, at), in, len) ||
                !idemi_storage_all(in, len, m->erased))
                s->link = IDEMI_LOOKS_OTHER;
        }
        if (s->link == IDEMI_LOOKS_OTHER) {
            other++;
            wrong = number - 1;
        }
        if (s->link == IDEMI_LOOKS_TORN) {
            torn++;
            next = idemi_journal_after(t, number - 1);
        }
    }
    if (seen == IDEMI_FOREIGN || other > 1 || (other && !torn))
        return IDEM_E_FORMAT;
    // A torn header may be seen another time, with a sequence of its own.
    if (j->sequence < torn + other)
        j->sequence = torn + other;
    j->blank = torn ? IDEMI_TORN : IDEMI_BLANK;
    if (other)
        next = wrong;
    else if (j->attempt != IDEMI_NOWHERE)
        next = idemi_journal_after(t, j->attempt);
    j->head = idemi_recover_before(t, next, 1);
    j->clean = j->tail = next;
    return IDEM_OK;
}

/* Makes the table what the storage says, or an empty one. */
static int idemi_recover_open(idem_table *t)
{
    idem_journal *j = t->journal;
    uint32_t number;
    int seen;

#if IDEM_WIDE
    idemi_journal_unwritten(t);
#endif
    j->hint = t->capacity;
    j->newest = j->state_at = j->unread = IDEMI_NOWHERE;
    j->synced = !t->config->storage->sync;
    j->retentions[0] = idemi_default_retention(t, 0);
    j->retentions[IDEMI_RETENTIONS - 1] = IDEM_RETENTION_MAX;
    if (!idemi_recover_headers(t, &seen))
        return idemi_recover_blank(t, seen);
    idemi_recover_chain(t);
    idemi_recover_replay(t);
    j->clean = j->tail;
    // A record behind it, or a sector that names it, says that the head's
    // header is there.
    if (j->attempt != IDEMI_NOWHERE ||
        (j->newest != IDEMI_NOWHERE &&
         idemi_storage_offset(t, j->newest) >= j->own_end))
        j->kept = j->tail;
    for (number = 0; number < t->config->storage->sector_count; number++) {
        idem_sector *s = idemi_journal_sector(t, number);
        s->known = number == j->attempt && idemi_journal_dead(t, number);
        s->link = s->known ? IDEMI_ASIDE : 0;
    }
    j->opened = t->clock;
    j->opened_high = j->clock_high;
    t->token = ((uint64_t)j->sequence + 1) * idemi_journal_size(t) - 1;
    return IDEM_OK;
}

/* Makes one sector blank; without an erase, by writing what would be there. */
static int idemi_recover_wipe(idem_table *t, uint32_t sector)
{
    const idem_storage *m = t->config->storage;
    unsigned char *in = t->in;
    uint32_t len = t->journal->in_size & ~(uint32_t)(m->prog_size - 1u), at = 0;
    int result = IDEM_OK;

    if (m->erase) {
        result = idemi_storage_result(t, m->erase(m->ctx, sector));
        return result < 0 ? result : idemi_journal_erased(t, 1);
    }
    IDEM_MEMSET(in, m->erased, (size_t)len);
    for (; at < m->sector_size && result == IDEM_OK; at += len) {
        if (len > m->sector_size - at)
            len = m->sector_size - at;
        result = idemi_storage_result(
            t, m->prog(m->ctx, sector * m->sector_size + at, in, len));
    }
    return result;
}

/* Destroys what a storage holds, from the sector after the newest on: so that
   what is left if power goes is the newest, with what it needs missing. */
static int idemi_recover_format(idem_table *t)
{
    idem_journal *j = t->journal;
    uint32_t left = t->config->storage->sector_count;
    uint32_t sector;
    int seen, result = IDEM_OK;

    idemi_recover_headers(t, &seen);
    for (sector = j->head; left > 0 && result == IDEM_OK; left--) {
        sector = idemi_journal_after(t, sector);
        result = idemi_recover_wipe(t, sector);
    }
    return result == IDEM_OK ? idemi_storage_sync(t) : result;
}
#else
/* ---------------------------------------------------------------------------
   >>cells     the journal of IDEM_CELLS: cells of equal size, and opening them

   The manual (>>eeprom) has the layout, and what makes a power cut harmless.
   Towards the rest the functions have the names that the ring's have.  All that
   is written comes from memory or from the caller: one cell is one durable
   step, and nothing is read again.

       slots   0    1    2              cells   0    1    2    3    4
       cell    4    -    1                      |    |    |    |    |
                                              free  [2]  free free [0]

   D1  A slot has one current cell at most, and no two have the same; all others
       are free, or given up for this boot.  The census is that of the current.
   D2  Once settled, two cells at least are free, in the order in which they
       became so: the one that the newest record replaced is the last of them,
       and is not written to before the next record is there.
   D3  A cell that is current is never programmed, but for the newest record
       while nothing relies upon it.
   ------------------------------------------------------------------------ */

/* A record's fields, in their order in a cell */
enum {
    IDEMI_CELL_FLAGS, IDEMI_CELL_SEQUENCE, IDEMI_CELL_SLOT,
    IDEMI_CELL_REPLACED, IDEMI_CELL_CLOCK, IDEMI_CELL_CLOCK_HIGH,
    IDEMI_CELL_DOUBT, IDEMI_CELL_CENSUS, IDEMI_CELL_STATE_LEN,
    // With a key
    IDEMI_CELL_ATTEMPTS, IDEMI_CELL_RETENTION, IDEMI_CELL_FINGERPRINT,
    IDEMI_CELL_FINGERPRINT_HIGH, IDEMI_CELL_AGE, IDEMI_CELL_RESPONSE_LEN,
    IDEMI_CELL_SCOPE_LEN, IDEMI_CELL_KEY_LEN,
    // With an outcome
    IDEMI_CELL_CODE,
    IDEMI_CELL_FIELDS
};

/* Flags: those of a slot that are kept, and two more */
#define IDEMI_CELL_KEPT      (IDEMI_STATUS | IDEMI_UNDELIVERED | IDEMI_CUT)
#define IDEMI_CELL_TENTATIVE 0x20u
#define IDEMI_CELL_MARK      0x40u      /* in every record */
#define IDEMI_CELL_MARKS     0xC0u

/* What idemi_journal_drop is told if it is not to drop */
#define IDEMI_MORE_DELIVERED 1u

/* What the bytes are with which a wiped cell begins: never a record's flags,
   as the erased value might be. */
#define IDEMI_CELL_WIPED 0x00

#define IDEMI_CELLS_FORMAT 1u

/* Sequences from here on are for what was promised before. */
#define IDEMI_CELLS_LAST UINT32_C(0xFFFE0000)

/* A record, taken apart or to be put together */
typedef struct idemi_cell {
    uint32_t field[IDEMI_CELL_FIELDS];
    const void *state, *scope, *key, *response;
} idemi_cell;

/* The body of a slot in use. */
static idem_body *idemi_cells_own(const idem_table *t, unsigned slot)
{
    return idemi_slot_own(idemi_slot_at(t, slot));
}

/* The place of the number of a slot's cell, plus one; 0: it has none. */
static idem_number *idemi_cells_of(const idem_table *t, unsigned slot)
{
    return (idem_number *)(void *)(t->journal + 1) + slot;
}

/* The place in the queue of the n-th free cell, or of the next to come. */
static idem_number *idemi_cells_free(const idem_table *t, unsigned n)
{
    const idem_journal *j = t->journal;
    unsigned left = j->count - j->first;

    return idemi_cells_of(t, t->capacity + (n < left ? j->first + n
                                                     : n - left));
}

/* Puts a cell at the end of the queue. */
static void idemi_cells_push(idem_table *t, unsigned cell)
{
    *idemi_cells_free(t, t->journal->frees) = (idem_number)cell;
    t->journal->frees++;
}

/* Takes the first cell out of the queue. */
static unsigned idemi_cells_pop(idem_table *t)
{
    idem_journal *j = t->journal;
    unsigned cell = *idemi_cells_free(t, 0);

    j->first = j->first + 1 < j->count ? j->first + 1 : 0;
    j->frees--;
    return cell;
}

/* Bytes from one header to the next. */
static uint32_t idemi_cells_header(const idem_table *t)
{
    return idemi_storage_granules(t, IDEMI_CELLS_HEADER);
}

/* Where a cell begins. */
static uint32_t idemi_cells_at(const idem_table *t, unsigned cell)
{
    return 2 * idemi_cells_header(t) + cell * t->journal->cell_size;
}

/* What a slot's cell (plus one) adds to the census: another in every cell. */
static uint16_t idemi_cells_weight(unsigned slot, unsigned cell)
{
    return (uint16_t)((uint32_t)cell * (2 * (uint32_t)slot + 1));
}

/* The start of a record's check: whose it is, and where. */
static uint32_t idemi_cells_seed(const idem_table *t, unsigned cell)
{
    return t->journal->check ^ (cell + UINT32_C(1)) * UINT32_C(0x9E3779B1);
}

/* Bytes of a field. */
static unsigned idemi_cells_width(const idem_table *t, unsigned field)
{
    static const uint8_t widths[IDEMI_CELL_FIELDS] = {
        1, 4, 0, 0, 4, 1, 1, 2, 2, 1, 4, 4, 4, 4, 2, 1, 1, 4
    };

    if (field == IDEMI_CELL_SLOT || field == IDEMI_CELL_REPLACED)
        return t->journal->wide;
    return field == IDEMI_CELL_STATE_LEN && !t->config->state_max
               ? 0
               : widths[field];
}

/* How many fields a record of these flags has. */
static unsigned idemi_cells_fields(uint32_t flags)
{
    if (!(flags & IDEMI_STATUS))
        return IDEMI_CELL_ATTEMPTS;
    return flags & IDEMI_FINISHED ? IDEMI_CELL_FIELDS : IDEMI_CELL_CODE;
}

/* Programs what is in the buffer, and reads it back if that is asked for. */
static int idemi_cells_prog(idem_table *t, uint32_t at, uint32_t len)
{
    const idem_storage *m = t->config->storage;
    unsigned char back[16];
    uint32_t done = 0, step = sizeof back;
    int result =
        idemi_storage_result(t, m->prog(m->ctx, at, t->in, len));

    for (; m->verify && result == IDEM_OK && done < len; done += step) {
        if (step > len - done)
            step = len - done;
        result = idemi_storage_read(t, at + done, back, step);
        if (result == IDEM_OK &&
            IDEM_MEMCMP(back, t->in + done, (size_t)step) != 0)
            result = IDEM_E_STORAGE;
    }
    return result;
}

/* Makes a cell one that never validates, whatever a cut has left in it. */
static int idemi_cells_wipe(idem_table *t, unsigned cell)
{
    uint32_t granule = t->config->storage->prog_size;

    IDEM_MEMSET(t->in, IDEMI_CELL_WIPED, (size_t)granule);
    return idemi_cells_prog(t, idemi_cells_at(t, cell), granule);
}

static unsigned char *idemi_cells_append(unsigned char *p, const void *src,
                                         uint32_t len)
{
    idemi_basics_copy(p, src, (size_t)len);
    return p + len;
}

/* Puts a record together in the buffer; returns its length, padded. */
static uint32_t idemi_cells_encode(idem_table *t, unsigned cell,
                                   const idemi_cell *c)
{
    const uint32_t *f = c->field;
    unsigned end = idemi_cells_fields(f[IDEMI_CELL_FLAGS]);
    unsigned char *p = t->in;
    unsigned i;
    uint32_t len, padded;

    for (i = 0; i < end; i++)
        p = idemi_basics_store(p, f[i], idemi_cells_width(t, i));
    p = idemi_cells_append(p, c->state, f[IDEMI_CELL_STATE_LEN]);
    p = idemi_cells_append(p, c->scope, f[IDEMI_CELL_SCOPE_LEN]);
    p = idemi_cells_append(p, c->key, f[IDEMI_CELL_KEY_LEN]);
    if (f[IDEMI_CELL_FLAGS] & IDEMI_FINISHED)
        p = idemi_cells_append(p, c->response, f[IDEMI_CELL_RESPONSE_LEN]);
    len = (uint32_t)(p - t->in);
    p = idemi_basics_store(
        p, idemi_crc_update(idemi_cells_seed(t, cell), t->in, len), 4);
    padded = idemi_storage_granules(t, len + 4);
    IDEM_MEMSET(p, t->config->storage->erased, (size_t)(padded - len - 4));
    return padded;
}

/* True if a record keeps to what is configured; what it says is not too long
   for a cell then. */
static int idemi_cells_fits(const idem_table *t, const uint32_t *f)
{
    const idem_config *config = t->config;

    if (f[IDEMI_CELL_STATE_LEN] > config->state_max)
        return 0;
    return !(f[IDEMI_CELL_FLAGS] & IDEMI_STATUS) ||
           (f[IDEMI_CELL_ATTEMPTS] && f[IDEMI_CELL_KEY_LEN] &&
            f[IDEMI_CELL_SCOPE_LEN] + f[IDEMI_CELL_KEY_LEN] <=
                config->key_max &&
            f[IDEMI_CELL_RESPONSE_LEN] <= config->response_max);
}

/* Reads a cell, and takes its record apart; returns whether there is one. */
static int idemi_cells_decode(idem_table *t, unsigned cell, idemi_cell *c)
{
    const unsigned char *p = t->in;
    uint32_t *f = c->field;
    unsigned i, k, end;

    IDEM_MEMSET(c, 0, sizeof *c);
    idemi_storage_salvage(t, idemi_cells_at(t, cell), t->in,
                          t->journal->cell_size);
    if ((*p & IDEMI_CELL_MARKS) != IDEMI_CELL_MARK)
        return 0;
    end = idemi_cells_fields(*p);
    for (i = 0; i < end; i++)
        for (k = 0; k < idemi_cells_width(t, i); k++)
            f[i] |= (uint32_t)*p++ << 8 * k;
    if (!idemi_cells_fits(t, f))
        return 0;
    c->state = p;
    p += f[IDEMI_CELL_STATE_LEN];
    c->scope = p;               // the key is behind it
    p += f[IDEMI_CELL_SCOPE_LEN] + f[IDEMI_CELL_KEY_LEN];
    c->response = p;
    if (f[IDEMI_CELL_FLAGS] & IDEMI_FINISHED)
        p += f[IDEMI_CELL_RESPONSE_LEN];
    return idemi_crc_update(idemi_cells_seed(t, cell), t->in,
                            (uint32_t)(p - t->in)) == idemi_basics_load32(p);
}

/* Milliseconds in which doubt is counted, less one; the unit is a power of two,
   such that a byte counts a retention. */
static uint32_t idemi_cells_unit(const idem_table *t)
{
    uint32_t mask = 0;

    while (t->journal->retentions[0] / 128 > mask)
        mask = 2 * mask + 1;
    return mask;
}

/* True while unknown keys may be lost ones.  Once they are not, they are never
   again, however far the clock goes. */
static int idemi_journal_in_doubt(idem_table *t)
{
    idem_journal *j = t->journal;

    if (j->in_doubt && idemi_clock_reached(t->clock, j->doubt))
        j->in_doubt = 0;
    return j->in_doubt;
}

/* For how many units from the clock's, rounded down, they may be. */
static uint32_t idemi_cells_doubt(idem_table *t)
{
    uint32_t mask = idemi_cells_unit(t);

    if (!idemi_journal_in_doubt(t))
        return 0;
    return (t->journal->doubt - (t->clock & ~mask)) / (mask + 1);
}

/* Takes note that something acknowledged may be gone. */
static void idemi_cells_lose(idem_table *t)
{
    idem_journal *j = t->journal;
    uint32_t mask = idemi_cells_unit(t);

    t->stats.lost++;
    j->in_doubt = 1;
    j->doubt = (t->clock + j->retentions[0] + mask) & ~mask;
}

/* What a record says of a body. */
static void idemi_cells_body(idemi_cell *c, const idem_body *body)
{
    c->field[IDEMI_CELL_RETENTION] = body->retention;
    c->field[IDEMI_CELL_FINGERPRINT] = body->fingerprint[0];
    c->field[IDEMI_CELL_FINGERPRINT_HIGH] = body->fingerprint[1];
    c->field[IDEMI_CELL_RESPONSE_LEN] = body->response_len;
    c->field[IDEMI_CELL_SCOPE_LEN] = body->scope_len;
    c->field[IDEMI_CELL_KEY_LEN] = body->key_len;
    c->field[IDEMI_CELL_CODE] = (uint32_t)body->code;
}

/* What a record says that has no key; the state is in each. */
static void idemi_cells_empty(const idem_table *t, idemi_cell *c)
{
    IDEM_MEMSET(c, 0, sizeof *c);
    c->state = t->state;
    c->field[IDEMI_CELL_STATE_LEN] = t->state_len;
}

/* What a record says of a slot, as it is. */
static void idemi_cells_describe(const idem_table *t, unsigned slot,
                                 idemi_cell *c)
{
    const idem_slot *s = idemi_slot_at(t, slot);
    const unsigned char *id = idemi_slot_id(t, slot);
    const idem_body *body = idemi_cells_own(t, slot);

    idemi_cells_empty(t, c);
    c->field[IDEMI_CELL_FLAGS] = s->state & IDEMI_CELL_KEPT;
    if (!s->state)
        return;
    idemi_cells_body(c, body);
    c->field[IDEMI_CELL_ATTEMPTS] = s->terms;
    if (s->state & (IDEMI_FINISHED | IDEMI_CUT))
        c->field[IDEMI_CELL_AGE] = t->clock - s->time;
    c->scope = id;
    c->key = id + body->scope_len;
    c->response = idemi_slot_response(t, slot);
}

/* Makes a record durable in a cell, which is the slot's then. */
static int idemi_cells_program(idem_table *t, unsigned cell, unsigned slot,
                               idemi_cell *c, uint32_t sequence)
{
    idem_journal *j = t->journal;
    idem_number *own = idemi_cells_of(t, slot);
    uint16_t census = (uint16_t)(j->census - idemi_cells_weight(slot, *own) +
                                 idemi_cells_weight(slot, cell + 1));
    int result;

    c->field[IDEMI_CELL_FLAGS] |= IDEMI_CELL_MARK;
    c->field[IDEMI_CELL_SEQUENCE] = sequence;
    c->field[IDEMI_CELL_SLOT] = slot;
    c->field[IDEMI_CELL_REPLACED] =
        c->field[IDEMI_CELL_FLAGS] & IDEMI_CELL_TENTATIVE ? j->replaced : *own;
    c->field[IDEMI_CELL_CLOCK] = t->clock;
    c->field[IDEMI_CELL_CLOCK_HIGH] = j->clock_high;
    c->field[IDEMI_CELL_DOUBT] = idemi_cells_doubt(t);
    c->field[IDEMI_CELL_CENSUS] = census;
    result = idemi_cells_prog(t, idemi_cells_at(t, cell),
                              idemi_cells_encode(t, cell, c));
    if (result == IDEM_OK)
        result = idemi_storage_sync(t);
    if (result < 0)
        return result;
    *own = (idem_number)(cell + 1);
    j->census = census;
    j->sequence = sequence;
    j->newest = slot;
    j->tentative =
        (c->field[IDEMI_CELL_FLAGS] & IDEMI_CELL_TENTATIVE) != 0;
    j->whole = 1;
    return IDEM_OK;
}

/* Counts a free cell as given up until the next opening, if there are more than
   it takes, and what reads there is no record that may be the newest.  Returns
   whether. */
static int idemi_cells_give_up(idem_table *t, unsigned cell)
{
    idem_journal *j = t->journal;
    const unsigned char *p = t->in;

    if (j->count - t->stats.retired <= t->capacity + IDEMI_CELLS_FREE ||
        idemi_storage_read(t, idemi_cells_at(t, cell), t->in,
                           j->cell_size) < 0 ||
        ((*p & IDEMI_CELL_MARKS) == IDEMI_CELL_MARK &&
         idemi_basics_load32(p + 1) > j->sequence))
        return 0;
    t->stats.retired++;
    return 1;
}

/* Sees to it that nothing is left of a record that failed in the first free
   cell: so that it never reads as one of two. */
static int idemi_cells_mend(idem_table *t)
{
    idem_journal *j = t->journal;
    unsigned cell = *idemi_cells_free(t, 0);
    int result = idemi_cells_wipe(t, cell);

    if (result == IDEM_OK)
        result = idemi_storage_sync(t);
    if (!j->broken && idemi_cells_give_up(t, cell)) {
        idemi_cells_pop(t);
        result = IDEM_OK;
    }
    return result;
}

/* Makes a record durable in the first free cell. */
static int idemi_cells_put(idem_table *t, unsigned slot, idemi_cell *c)
{
    idem_journal *j = t->journal;
    unsigned own = *idemi_cells_of(t, slot);
    int result = IDEM_OK;

    if (j->sequence == UINT32_MAX)
        return IDEM_E_SPACE;
    if (j->failed)
        result = idemi_cells_mend(t);
    if (result < 0)
        return result;
    result = idemi_cells_program(t, *idemi_cells_free(t, 0), slot, c,
                                 j->sequence + 1);
    j->failed = result < 0;
    if (result < 0)
        return result;
    idemi_cells_pop(t);
    if (own)
        idemi_cells_push(t, own - 1);
    return IDEM_OK;
}

/* Puts all that is not current into the queue, from the cell after the newest
   record's on, so that wear is spread over the boots too. */
static void idemi_cells_collect(idem_table *t)
{
    idem_journal *j = t->journal;
    idem_number *queue = idemi_cells_of(t, t->capacity);
    unsigned start, left, i, n = 0;

    IDEM_MEMSET(queue, 0, j->count * sizeof *queue);
    for (i = 0; i < t->capacity; i++)
        if (*idemi_cells_of(t, i))
            queue[*idemi_cells_of(t, i) - 1u] = 1;
    for (i = 0; i < j->count; i++)
        if (!queue[i])
            queue[n++] = (idem_number)i;
    j->frees = n;
    if (!j->sequence)
        return;
    start = *idemi_cells_of(t, (unsigned)j->newest);
    for (left = n; left > 0 && *idemi_cells_free(t, 0) < start; left--)
        idemi_cells_push(t, idemi_cells_pop(t));
}

/* Wipes all free cells but those that the newest record counts on if it turns
   out not to be there, which come last: what it replaced, unless it is of this
   boot, for then it is there; and if it is tentative, what it is a copy of, for
   the next boot may write it again in its place. */
static int idemi_cells_clear(idem_table *t)
{
    idem_journal *j = t->journal;
    unsigned kept[2], left, n = 0;
    int result = IDEM_OK;

    for (left = j->frees; left > 0 && result == IDEM_OK; left--) {
        unsigned cell = idemi_cells_pop(t);
        if ((!j->whole && cell + 1 == j->replaced) ||
            (j->tentative && cell + 1 == j->copied)) {
            kept[n++] = cell;
            continue;
        }
        result = idemi_cells_wipe(t, cell);
        if (result < 0 && idemi_cells_give_up(t, cell))
            result = IDEM_OK;
        else
            idemi_cells_push(t, cell);
    }
    while (n > 0)
        idemi_cells_push(t, kept[--n]);
    return result;
}

/* What a header of this storage is: a name, and a check of all that must be as
   it was when it was written. */
static void idemi_cells_identity(const idem_table *t, unsigned char *p)
{
    const idem_journal *j = t->journal;
    unsigned char said[11];
    unsigned char *q = said;

    *q++ = IDEMI_CELLS_FORMAT;
    *q++ = IDEM_HASH;
    *q++ = j->wide;
    q = idemi_basics_store(q, t->config->storage->prog_size, 2);
    q = idemi_basics_store(q, j->cell_size, 4);
    q = idemi_basics_store(q, j->check, 2);
    p = idemi_basics_store(p, IDEMI_MAGIC, 4);
    idemi_basics_store(
        p, idemi_crc_update(UINT32_MAX, said, (uint32_t)(q - said)), 4);
}

/* Writes the headers: before the first record both, first the one that did not
   read, so that what reads is not torn while it is the only one; afterwards
   only that one, and if that fails the other will do. */
static int idemi_cells_begin(idem_table *t)
{
    idem_journal *j = t->journal;
    uint32_t len = idemi_cells_header(t);
    unsigned n, copy;
    int result = IDEM_OK;

    for (n = 0; n < 2 && result == IDEM_OK; n++) {
        copy = j->torn == 2 ? 1 - n : n;
        if (j->sequence && !((unsigned)j->torn >> copy & 1u))
            continue;
        IDEM_MEMSET(t->in, t->config->storage->erased, (size_t)len);
        idemi_cells_identity(t, t->in);
        result = idemi_cells_prog(t, copy * len, len);
        if (result < 0 && j->sequence)
            return IDEM_OK;
        if (result == IDEM_OK)
            result = idemi_storage_sync(t);
    }
    return result;
}

/* Writes the newest record twice more: as a tentative one, or again in its own
   place if it is that already; and for good.  What this boot has written is not
   written again, if the settling has to be. */
static int idemi_cells_confirm(idem_table *t)
{
    idem_journal *j = t->journal;
    unsigned slot = (unsigned)j->newest;
    unsigned cell = *idemi_cells_of(t, slot) - 1u;
    idemi_cell c;
    int result = IDEM_OK;

    idemi_cells_describe(t, slot, &c);
    c.field[IDEMI_CELL_FLAGS] |= IDEMI_CELL_TENTATIVE;
    if (!j->whole && j->tentative && j->copied) {
        result = idemi_cells_program(t, cell, slot, &c, j->sequence);
    } else if (!j->whole) {
        result = idemi_cells_put(t, slot, &c);
        if (result == IDEM_OK)
            j->copied = cell + 1;
    }
    if (result < 0 || !j->tentative)
        return result;
    c.field[IDEMI_CELL_FLAGS] &= ~(uint32_t)IDEMI_CELL_TENTATIVE;
    result = idemi_cells_put(t, slot, &c);
    if (result == IDEM_OK)
        idemi_slot_at(t, slot)->state &= (uint8_t)~IDEMI_UNTOLD;
    return result;
}

/* Writes that a restart has cut claims short, and when. */
static int idemi_cells_tell(idem_table *t)
{
    unsigned slot;
    int result = IDEM_OK;

    for (slot = 0; slot < t->capacity && result == IDEM_OK; slot++) {
        idem_slot *s = idemi_slot_at(t, slot);
        idemi_cell c;
        if (!(s->state & IDEMI_UNTOLD))
            continue;
        idemi_cells_describe(t, slot, &c);
        result = idemi_cells_put(t, slot, &c);
        if (result == IDEM_OK)
            s->state &= (uint8_t)~IDEMI_UNTOLD;
    }
    return result;
}

/* Comes before whatever else a boot writes: ends all doubt about what the boot
   before left.  If it fails it is done again, from its beginning. */
IDEMI_SLOW
static int idemi_cells_settle(idem_table *t)
{
    idem_journal *j = t->journal;
    int result;

    if (j->broken)
        return IDEM_E_STORAGE;
    if (j->settled)
        return IDEM_OK;
    // Once: a cell that was given up, or failed last, stays known.
    if (!j->frees)
        idemi_cells_collect(t);
    result = idemi_cells_begin(t);
    // Blank storage hides nothing.
    if (result == IDEM_OK && !j->blank) {
        result = idemi_cells_clear(t);
        if (result == IDEM_OK)
            result = idemi_storage_sync(t);
        if (result == IDEM_OK && j->sequence)
            result = idemi_cells_confirm(t);
        if (result == IDEM_OK)
            result = idemi_cells_tell(t);
    }
    j->settled = result == IDEM_OK;
    return result;
}

/* Makes a record durable, after all that has to be before. */
static int idemi_cells_write(idem_table *t, unsigned slot, idemi_cell *c)
{
    int result = idemi_cells_settle(t);

    return result < 0 ? result : idemi_cells_put(t, slot, c);
}

/* Writes what the newest record of the boot before says once more. */
static int idemi_journal_assure(idem_table *t)
{
    return idemi_cells_settle(t);
}

/* True if an answer about a slot, or that a key has none, would rely on the
   newest record of the boot before, which may be torn. */
static int idemi_journal_unconfirmed(const idem_table *t, unsigned slot)
{
    const idem_journal *j = t->journal;

    if (j->settled || !j->sequence)
        return 0;
    return slot == j->newest || slot == IDEMI_NONE;
}

/* There is nothing to do ahead. */
static int idemi_journal_maintain(const idem_table *t)
{
    return t->journal->broken ? IDEM_E_STORAGE : IDEM_OK;
}

/* Where a claim was written is kept already. */
IDEMI_APART
static void idemi_journal_placed(idem_table *t, unsigned slot,
                                 const idemi_query *q)
{
    (void)t;
    (void)slot;
    (void)q;
}

/* Makes a claim on a slot durable.  Its token is the record's sequence. */
IDEMI_SLOW
static int idemi_journal_claim(idem_table *t, unsigned slot,
                               const idemi_query *q)
{
    const idem_request *rq = q->rq;
    idem_body body;
    idemi_cell c;
    int result;

    if (t->journal->sequence >= IDEMI_CELLS_LAST)
        return IDEM_E_SPACE;
    idemi_keys_request(t, &body, q);
    idemi_cells_empty(t, &c);
    idemi_cells_body(&c, &body);
    c.field[IDEMI_CELL_FLAGS] = IDEMI_IN_PROGRESS;
    c.field[IDEMI_CELL_ATTEMPTS] = q->attempts;
    c.scope = rq->scope;
    c.key = rq->key;
    result = idemi_cells_write(t, slot, &c);
    if (result == IDEM_OK)
        t->token = t->journal->sequence;
    return result;
}

/* Makes an outcome durable, together with application state if it has any. */
IDEMI_SLOW
static int idemi_journal_outcome(idem_table *t, unsigned slot,
                                 const idem_outcome *out)
{
    idemi_cell c;

    idemi_cells_describe(t, slot, &c);
    c.field[IDEMI_CELL_FLAGS] = out->failed ? IDEM_FAILED : IDEM_COMPLETED;
    if (out->confirm)
        c.field[IDEMI_CELL_FLAGS] |= IDEMI_UNDELIVERED;
    c.field[IDEMI_CELL_CODE] = (uint32_t)out->code;
    c.field[IDEMI_CELL_RESPONSE_LEN] = (uint32_t)out->response_len;
    c.response = out->response;
    if (out->state) {
        c.state = out->state;
        c.field[IDEMI_CELL_STATE_LEN] = (uint32_t)out->state_len;
    }
    return idemi_cells_write(t, slot, &c);
}

/* Makes it durable that a claim on a slot was given back, or a key forgotten;
   or, with `more`, that an outcome was delivered. */
IDEMI_SLOW
static int idemi_journal_drop(idem_table *t, unsigned slot, unsigned more)
{
    idemi_cell c;

    if (more == IDEMI_MORE_DELIVERED) {
        idemi_cells_describe(t, slot, &c);
        c.field[IDEMI_CELL_FLAGS] &= ~(uint32_t)IDEMI_UNDELIVERED;
    } else
        idemi_cells_empty(t, &c);
    return idemi_cells_write(t, slot, &c);
}

/* Puts what a record says into its slot; of its time that it is not in order
   yet, the rest of it for now where the hash will be. */
static void idemi_cells_restore(idem_table *t, const idemi_cell *c)
{
    const uint32_t *f = c->field;
    unsigned slot = (unsigned)f[IDEMI_CELL_SLOT];
    idem_slot *s = idemi_slot_at(t, slot);
    idem_body *body = idemi_cells_own(t, slot);
    size_t id_len = (size_t)(f[IDEMI_CELL_SCOPE_LEN] + f[IDEMI_CELL_KEY_LEN]);

    s->state = (uint8_t)(f[IDEMI_CELL_FLAGS] & IDEMI_CELL_KEPT);
    s->terms = (uint8_t)f[IDEMI_CELL_ATTEMPTS];
    s->time = f[IDEMI_CELL_CLOCK] - f[IDEMI_CELL_AGE];
    s->hash = (uint8_t)(f[IDEMI_CELL_CLOCK_HIGH] -
                        (f[IDEMI_CELL_CLOCK] < f[IDEMI_CELL_AGE]));
    body->retention = f[IDEMI_CELL_RETENTION];
    body->token = f[IDEMI_CELL_SEQUENCE];
    body->fingerprint[0] = f[IDEMI_CELL_FINGERPRINT];
    body->fingerprint[1] = f[IDEMI_CELL_FINGERPRINT_HIGH];
    body->code = (int32_t)f[IDEMI_CELL_CODE];
    body->response_len = (uint16_t)f[IDEMI_CELL_RESPONSE_LEN];
    body->scope_len = (uint8_t)f[IDEMI_CELL_SCOPE_LEN];
    body->key_len = (uint8_t)f[IDEMI_CELL_KEY_LEN];
    idemi_basics_copy(idemi_slot_id(t, slot), c->scope, id_len);
    if (s->state & IDEMI_FINISHED)
        idemi_basics_copy(idemi_slot_response(t, slot), c->response,
                          body->response_len);
}

/* Does what a cell's record says, if nothing newer is known of its slot; until
   all are read, a slot's token is the sequence of what is known, and the queue
   has the slot of each cell, plus one. */
static void idemi_cells_take(idem_table *t, unsigned cell)
{
    idem_journal *j = t->journal;
    idemi_cell c;
    const uint32_t *f = c.field;
    idem_number *own;
    uint32_t known, copied, mask = idemi_cells_unit(t);

    if (!idemi_cells_decode(t, cell, &c))
        return;
    if (f[IDEMI_CELL_SLOT] >= t->capacity) {
        if (f[IDEMI_CELL_FLAGS] & IDEMI_STATUS)
            j->beyond = 1;
        return;
    }
    *idemi_cells_of(t, t->capacity + cell) =
        (idem_number)(f[IDEMI_CELL_SLOT] + 1);
    own = idemi_cells_of(t, (unsigned)f[IDEMI_CELL_SLOT]);
    known = *own ? idemi_cells_own(t, (unsigned)f[IDEMI_CELL_SLOT])->token : 0;
    if (known >= f[IDEMI_CELL_SEQUENCE]) {
        // Nothing but what the newest copies has the sequence before it.
        if (f[IDEMI_CELL_SEQUENCE] + 1 == j->sequence)
            j->copied = cell + 1;
        return;
    }
    copied = known + 1 == f[IDEMI_CELL_SEQUENCE] ? *own : 0u;
    idemi_cells_restore(t, &c);
    *own = (idem_number)(cell + 1);
    if (f[IDEMI_CELL_SEQUENCE] <= j->sequence)
        return;
    j->copied = copied;
    j->sequence = f[IDEMI_CELL_SEQUENCE];
    j->newest = f[IDEMI_CELL_SLOT];
    j->replaced = f[IDEMI_CELL_REPLACED];
    j->tentative = (f[IDEMI_CELL_FLAGS] & IDEMI_CELL_TENTATIVE) != 0;
    j->census = (uint16_t)f[IDEMI_CELL_CENSUS];
    t->clock = f[IDEMI_CELL_CLOCK];
    j->clock_high = f[IDEMI_CELL_CLOCK_HIGH];
    j->in_doubt = f[IDEMI_CELL_DOUBT] != 0;
    j->doubt = (t->clock & ~mask) + f[IDEMI_CELL_DOUBT] * (mask + 1);
    t->state_len = (uint16_t)f[IDEMI_CELL_STATE_LEN];
    idemi_basics_copy(t->state, c.state, t->state_len);
}

/* The slot of the key that is in a slot, if the index has it; and its hash. */
static unsigned idemi_cells_twin(idem_table *t, unsigned slot,
                                 idem_number *hash)
{
    const idem_body *body = idemi_cells_own(t, slot);
    const unsigned char *id = idemi_slot_id(t, slot);
    idem_request rq;

    rq.scope = id;              // no more of it is looked at
    rq.scope_len = body->scope_len;
    rq.key = id + body->scope_len;
    rq.key_len = body->key_len;
    *hash = idemi_index_hash(idemi_hash_id(t->config, rq.scope, rq.scope_len,
                                           rq.key, rq.key_len));
    return idemi_index_find(t, *hash, &rq);
}

/* Puts a slot in use into index and order, if it is not over.  Returns whether
   it is in the order. */
static int idemi_cells_enlist(idem_table *t, unsigned slot, unsigned hint)
{
    idem_slot *s = idemi_slot_at(t, slot);
    unsigned twin;
    idem_number hash;
    uint32_t passed = t->clock - s->time;
    unsigned high = (uint8_t)(t->journal->clock_high - s->hash -
                              (t->clock < s->time));

    if (!(s->state & (IDEMI_FINISHED | IDEMI_CUT))) {
        s->state = IDEMI_IN_PROGRESS | IDEMI_CUT | IDEMI_UNTOLD;
        s->time = t->clock;
    } else if (high || passed >= idemi_cells_own(t, slot)->retention) {
        s->state = 0;
        return 0;
    }
    // A key is in two slots where what ended it in one was damaged.
    twin = idemi_cells_twin(t, slot, &hash);
    if (twin != IDEMI_NONE && idemi_cells_own(t, twin)->token >
                                  idemi_cells_own(t, slot)->token) {
        s->state = 0;
        return 0;
    }
    if (twin != IDEMI_NONE) {
        idemi_keys_remove(t, twin);
        hint = t->capacity;
    }
    idemi_index_insert(t, hash, slot);
    t->used++;
    t->pending += (s->state & IDEMI_UNDELIVERED) != 0;
    if (s->state & IDEMI_FINISHED)
        idemi_order_insert(t, slot, hint);
    idemi_order_note(t, s);
    return (s->state & IDEMI_FINISHED) != 0;
}

/* How many granules of a header's place have bits that no torn header has, less
   those that only a header has. */
static int idemi_cells_strange(const idem_table *t, const unsigned char *is,
                               const unsigned char *identity)
{
    const idem_storage *m = t->config->storage;
    int strange = 0;
    uint32_t at, i;

    for (at = 0; at < idemi_cells_header(t); at += m->prog_size) {
        int ours = 0, other = 0;
        for (i = at; i < at + m->prog_size; i++) {
            unsigned bits = is[i] ^ m->erased;
            unsigned meant =
                i < IDEMI_CELLS_HEADER ? identity[i] ^ m->erased : 0u;
            other |= (bits & ~meant) != 0;
            ours |= bits && bits == meant;
        }
        strange += other ? 1 : -ours;
    }
    return strange;
}

/* True if everything behind the headers has the erased value. */
static int idemi_cells_erased(idem_table *t)
{
    const idem_storage *m = t->config->storage;
    uint32_t at = idemi_cells_at(t, 0), len;

    for (; at < m->sector_size; at += len) {
        len = m->sector_size - at;
        if (len > t->journal->cell_size)
            len = t->journal->cell_size;
        if (!idemi_storage_salvage(t, at, t->in, len) ||
            !idemi_storage_all(t->in, len, m->erased))
            return 0;
    }
    return 1;
}

/* Reads the headers.  IDEM_OK if one is ours, or if nothing is there but what a
   cut may have left of the first. */
static int idemi_cells_headers(idem_table *t)
{
    idem_journal *j = t->journal;
    uint32_t len = idemi_cells_header(t);
    unsigned char identity[IDEMI_CELLS_HEADER];
    unsigned copy;
    int strange = 0;

    idemi_cells_identity(t, identity);
    for (copy = 0; copy < 2; copy++) {
        const unsigned char *in = t->in;
        idemi_storage_salvage(t, copy * len, t->in, len);
        if (IDEM_MEMCMP(in, identity, IDEMI_CELLS_HEADER) == 0)
            continue;
        j->torn = (uint8_t)(j->torn | 1u << copy);
        strange += idemi_cells_strange(t, in, identity);
    }
    if (j->torn != 3)
        return IDEM_OK;
    j->blank = 1;
    // Each cut may leave a granule as anything.
    return strange > 2 ||
                   (strange > 0 && t->config->storage->prog_size > 16) ||
                   !idemi_cells_erased(t)
               ? IDEM_E_FORMAT
               : IDEM_OK;
}

/* Makes the table what the storage says, or an empty one. */
static int idemi_recover_open(idem_table *t)
{
    idem_journal *j = t->journal;
    unsigned hint = t->capacity, slot, cell;
    uint16_t census = 0;
    int result;

    j->check = idemi_recover_check(t);
    j->synced = 1;
    j->retentions[0] = idemi_default_retention(t, 0);
    result = idemi_cells_headers(t);
    if (result < 0 || j->blank)
        return result;
    for (cell = 0; cell < j->count; cell++)
        idemi_cells_take(t, cell);
    // In its place there may be what a cut has left.
    if (j->replaced > j->count ||
        (j->replaced &&
         *idemi_cells_of(t, t->capacity + (unsigned)j->replaced - 1u) !=
             j->newest + 1))
        j->replaced = 0;
    t->swept = t->clock;
    t->soonest = t->clock + IDEMI_NEVER_MS;
    for (slot = 0; slot < t->capacity; slot++) {
        census = (uint16_t)(census + idemi_cells_weight(
                                         slot, *idemi_cells_of(t, slot)));
        if (idemi_slot_at(t, slot)->state && idemi_cells_enlist(t, slot, hint))
            hint = slot;
        else if (hint < t->capacity && !idemi_slot_at(t, hint)->state)
            hint = t->capacity;
    }
    if (census != j->census || j->beyond)
        idemi_cells_lose(t);
    j->census = census;
    t->token = j->sequence;
    return IDEM_OK;
}

/* Destroys what a storage holds, from the headers on. */
static int idemi_recover_format(idem_table *t)
{
    const idem_storage *m = t->config->storage;
    idem_journal *j = t->journal;
    uint32_t at, len;
    int result = IDEM_OK;

    IDEM_MEMSET(t->in, m->erased, (size_t)j->cell_size);
    for (at = 0; at < m->sector_size && result == IDEM_OK; at += len) {
        len = m->sector_size - at;
        if (len > j->cell_size)
            len = j->cell_size;
        result = idemi_cells_prog(t, at, len);
    }
    return result == IDEM_OK ? idemi_storage_sync(t) : result;
}

/* D1 for one slot in use */
static int idemi_check_place(const idem_table *t, unsigned slot)
{
    unsigned cell = *idemi_cells_of(t, slot);

    return cell && cell <= t->journal->count ? 0 : 14;
}

/* D1 and D2 */
static int idemi_check_journal(const idem_table *t)
{
    const idem_journal *j = t->journal;
    unsigned slot, current = 0;
    uint16_t census = 0;

    for (slot = 0; slot < t->capacity; slot++) {
        unsigned cell = *idemi_cells_of(t, slot);
        census = (uint16_t)(census + idemi_cells_weight(slot, cell));
        current += cell != 0;
    }
    if (census != j->census)
        return 14;
    return j->settled &&
                   (j->frees < 2 ||
                    current + j->frees + t->stats.retired != j->count)
               ? 15
               : 0;
}
#endif

/* ---------------------------------------------------------------------------
   >>commands  what the calls do once the lock is held

   What a call asks for is first written, if there is a journal, and then done
   in memory, where nothing can fail: so a call that fails changed nothing.
   ------------------------------------------------------------------------ */

/* Slots that one idem_maintain looks at. */
#define IDEMI_MAINTAIN_SLOTS 64

/* True if a slot has no live key. */
static int idemi_command_gone(idem_table *t, unsigned slot)
{
    return slot == IDEMI_NONE || idemi_keys_expire(t, slot) ||
           idemi_slot_at(t, slot)->state & IDEMI_STALE;
}

/* The slot of a claim that may be current, or NULL. */
static idem_slot *idemi_command_named(const idem_table *t,
                                      const idem_claim *claim)
{
    idem_slot *s;

    if (claim->slot >= t->capacity || t->token - claim->token > UINT32_MAX)
        return NULL;
    s = idemi_slot_at(t, (unsigned)claim->slot);
    return s->state && !idemi_slot_over(t, s) ? s : NULL;
}

/* The low half of the token of a claim that is held. */
static uint32_t idemi_command_token(const idem_table *t, unsigned slot)
{
    return idemi_slot_bodies(t) ? idemi_slot_own(idemi_slot_at(t, slot))->token
                                : idemi_slot_place(t, slot)->outcome;
}

/* The slot of a current claim, or NULL.  S1 is here. */
static idem_slot *idemi_command_current(idem_table *t, const idem_claim *claim)
{
    idem_slot *s = idemi_command_named(t, claim);

    if (s && idemi_keys_claimed(s) &&
        idemi_command_token(t, (unsigned)claim->slot) ==
            (uint32_t)claim->token)
        return s;
    t->stats.fenced++;
    return NULL;
}

/* The token of the body last asked for. */
static uint64_t idemi_command_full_token(const idem_table *t, unsigned slot)
{
    return idemi_keys_token(
        t, idemi_slot_bodies(t)
               ? idemi_slot_own(idemi_slot_at(t, slot))->token
               : IDEMI_STORED(t)->body.token);
}

/* IDEM_OK if a claim names an outcome that is there, else IDEM_E_NOT_FOUND; or
   IDEM_E_STORAGE if that cannot be told. */
static int idemi_command_outcome(idem_table *t, const idem_claim *claim)
{
    const idem_slot *s = idemi_command_named(t, claim);
    unsigned slot = (unsigned)claim->slot;

    if (!s || !(s->state & IDEMI_FINISHED))
        return IDEM_E_NOT_FOUND;
    if (!idemi_slot_body(t, slot, 0))
        return IDEM_E_STORAGE;
    return idemi_command_full_token(t, slot) == claim->token
               ? IDEM_OK
               : IDEM_E_NOT_FOUND;
}

/* Tells the claim of the body last asked for. */
static void idemi_command_name(const idem_table *t, unsigned slot,
                               idem_claim *claim)
{
    claim->token = idemi_command_full_token(t, slot);
    claim->slot = slot;
    claim->attempt = idemi_slot_attempts(t, slot);
}

/* How far back memory reaches for a scope. */
IDEMI_SLOW
static uint32_t *idemi_command_reach(idem_table *t, const void *scope,
                                     size_t scope_len)
{
    uint32_t hash = idemi_hash_id(t->config, scope, scope_len, NULL, 0);

    return &t->reach[hash & (IDEMI_REACHES - 1)];
}

/* True if memory may once have held an unknown key of that age. */
IDEMI_APART
static int idemi_command_too_old(idem_table *t, const idem_request *rq)
{
    uint32_t age = rq->age_ms;

    return age && (age >= idemi_default_retention(t, rq->retention_ms) ||
                   age >= t->clock - *idemi_command_reach(t, rq->scope,
                                                          rq->scope_len));
}

/* Lowers how far memory reaches to a time. */
static void idemi_command_forgot(const idem_table *t, uint32_t *reach,
                                 uint32_t at)
{
    if (t->clock - at < t->clock - *reach)
        *reach = at;
}

/* Drops a finished key before its time, and remembers that: for its scope or,
   if that cannot be read, for all. */
static void idemi_command_evict(idem_table *t, unsigned slot)
{
    uint32_t at = idemi_slot_at(t, slot)->time;
    const idem_body *body = idemi_slot_body(t, slot, 0);
    unsigned i;

    if (!IDEMI_UNREAD(body))
        idemi_command_forgot(
            t, idemi_command_reach(t, idemi_slot_id(t, slot), body->scope_len),
            at);
    for (i = 0; i < IDEMI_REACHES && IDEMI_UNREAD(body); i++)
        idemi_command_forgot(t, &t->reach[i], at);
    idemi_command_forgot(t, &t->evicted, at);
    t->stats.evicted++;
    idemi_keys_remove(t, slot);
}

/* True if one more key would put the request's scope over its quota. */
static int idemi_command_over_quota(idem_table *t, const idem_request *rq)
{
    uint32_t left = t->config->quota;
    unsigned slot;

    if (!left)
        return 0;
    for (slot = 0; slot < t->capacity && left > 0; slot++) {
        const idem_slot *s = idemi_slot_at(t, slot);
        if (s->state && !idemi_slot_over(t, s) &&
            idemi_slot_has_scope(t, slot, rq))
            left--;
    }
    return !left;
}

/* Sees to it that there is a free slot, if one is to be had without evicting.
   The oldest completion goes as soon as it is over, wanted or not: its slot is
   used again while it is still in the cache. */
static void idemi_command_reclaim(idem_table *t)
{
    unsigned none = t->capacity;
    unsigned oldest = t->links[none].newer;

    if (oldest != none)
        idemi_keys_expire(t, oldest);
    if (t->free == none && idemi_clock_reached(t->clock, t->soonest))
        idemi_keys_sweep(t);
}

/* A slot that has a stale claim; there is one. */
static unsigned idemi_command_stale(const idem_table *t)
{
    unsigned slot = 0;

    while (!(idemi_slot_at(t, slot)->state & IDEMI_STALE))
        slot++;
    return slot;
}

/* A slot that the request's key may have: one that is free, or in use by
   something that may be dropped for it; or `capacity`, and then
   retry_after_ms is set if it is known. */
static unsigned idemi_command_room(idem_table *t, const idemi_query *q)
{
    int over_quota = idemi_command_over_quota(t, q->rq);
    unsigned slot = t->capacity;

    if (!over_quota) {
        idemi_command_reclaim(t);
        if (t->free != slot)
            return t->free;
        if (IDEMI_STALES(t))
            return idemi_command_stale(t);
    }
    if (t->config->full == IDEM_EVICT_OLDEST)
        slot = idemi_order_evictable(t, over_quota ? q->rq : NULL);
    if (slot == t->capacity && !over_quota &&
        t->soonest - t->clock < IDEMI_NEVER_MS - IDEMI_SWEEP_MS)
        q->reply->retry_after_ms = t->soonest - t->clock;
    return slot;
}

/* Puts the request's key into a slot, from which whatever it holds goes. */
IDEMI_APART
static void idemi_command_occupy(idem_table *t, unsigned slot,
                                 const idemi_query *q)
{
    const idem_request *rq = q->rq;
    idem_slot *s = idemi_slot_at(t, slot);

    if (s->state & IDEMI_STALE)
        idemi_keys_remove(t, slot);
    else if (s->state)
        idemi_command_evict(t, slot);
    idemi_order_take(t, slot);
    if (idemi_slot_bodies(t)) {
        unsigned char *id = idemi_slot_id(t, slot);
        idemi_basics_copy(id, rq->scope, rq->scope_len);
        idemi_basics_copy(id + rq->scope_len, rq->key, rq->key_len);
    }
    idemi_index_insert(t, q->hash, slot);
    t->used++;
    t->claimed++;
}

/* Grants a claim on a slot.  The slot has the key, or with the first attempt is
   to have it. */
static int idemi_command_grant(idem_table *t, unsigned slot, idemi_query *q)
{
    const idem_request *rq = q->rq;
    idem_slot *s = idemi_slot_at(t, slot);
    uint32_t lease_ms = idemi_default_lease(t, rq->lease_ms);
    uint8_t terms = (uint8_t)q->attempts;

    q->retention = idemi_default_retention(t, rq->retention_ms);
    if (IDEMI_JOURNAL(t)) {
        int result;
        if (!idemi_slot_bodies(t)) {
            terms = idemi_keys_terms(t, q->retention);
            q->retention = t->journal->retentions[terms];
        }
        result = idemi_journal_claim(t, slot, q);
        if (result < 0)
            return result;
    } else
        t->token++;
    // Making room for the record may have freed the slot.
    if (q->attempts == 1 || !s->state)
        idemi_command_occupy(t, slot, q);
    else
        t->claimed += !idemi_keys_claimed(s);
    if (IDEMI_JOURNAL(t))
        idemi_journal_placed(t, slot, q);
    if (idemi_slot_bodies(t))
        idemi_keys_request(t, idemi_slot_own(s), q);
    s->terms = terms;
    s->state = IDEM_IN_PROGRESS;
    s->time = t->clock;
    if (lease_ms == IDEM_LEASE_NONE)
        s->state |= IDEMI_ENDLESS;
    else
        s->time += lease_ms;
    idemi_order_note(t, s);
    q->claim->token = t->token;
    q->claim->slot = slot;
    q->claim->attempt = q->attempts;
    return IDEM_OK;
}

/* Frees a slot in use for good. */
static int idemi_command_drop(idem_table *t, unsigned slot)
{
    if (IDEMI_JOURNAL(t)) {
        int result = idemi_journal_drop(t, slot, 0);
        if (result < 0)
            return result;
    }
    if (idemi_slot_at(t, slot)->state)  // else it went while room was made
        idemi_keys_remove(t, slot);
    return IDEM_OK;
}

/* Tells the outcome of a slot. */
static int idemi_command_replay(idem_table *t, unsigned slot,
                                idem_reply *reply)
{
    const idem_slot *s = idemi_slot_at(t, slot);
    const idem_body *body = idemi_slot_body(t, slot, 1);

    if (IDEMI_UNREAD(body))
        return IDEM_E_STORAGE;
    reply->status = s->state & IDEMI_STATUS;
    reply->code = body->code;
    reply->response_len = body->response_len;
    reply->age_ms = t->clock - s->time;
    idemi_command_name(t, slot, &reply->claim);
    if (body->response_len && reply->buffer &&
        body->response_len <= reply->buffer_size)
        IDEM_MEMCPY(reply->buffer, idemi_slot_response(t, slot),
                    body->response_len);
    return IDEM_REPLAY;
}

/* Begin on a key that is known. */
static int idemi_command_again(idem_table *t, unsigned slot, idemi_query *q)
{
    const idem_slot *s = idemi_slot_at(t, slot);
    const idem_body *body = idemi_slot_body(t, slot, 0);
    int result;

    if (IDEMI_UNREAD(body))
        return IDEM_E_STORAGE;
    // One expression without a branch: how many bits agree is not to be seen
    // in the time it takes.
    if ((body->fingerprint[0] ^ q->fingerprint[0]) |
        (body->fingerprint[1] ^ q->fingerprint[1]))
        return IDEM_MISMATCH;
    if (s->state & IDEMI_FINISHED)
        return IDEM_REPLAY;
    q->reply->retry_after_ms = idemi_slot_lease_left(t, s);
    if (q->reply->retry_after_ms)
        return IDEM_BUSY;
    q->attempts = idemi_slot_attempts(t, slot) + 1;
    if (q->attempts >
        idemi_default(0, t->config->max_attempts, IDEMI_MAX_ATTEMPTS))
        return IDEM_EXHAUSTED;
    result = idemi_command_grant(t, slot, q);
    return result < 0 ? result : IDEM_RECOVER;
}

/* Begin on a key that is not known.  `slot` may have it, stale. */
static int idemi_command_first(idem_table *t, unsigned slot, idemi_query *q)
{
    int stale =
        slot != IDEMI_NONE && (idemi_slot_at(t, slot)->state & IDEMI_STALE);
    unsigned own = slot;
    int result = IDEM_OK;

    if (idemi_command_too_old(t, q->rq))
        return IDEM_TOO_OLD;
    if (!stale || idemi_command_over_quota(t, q->rq))
        slot = idemi_command_room(t, q);
    if (slot == t->capacity)
        return IDEM_E_FULL;
    if (stale && slot != own)
        result = idemi_command_drop(t, own);
    if (result < 0)
        return result;
    q->attempts = 1;
    result = idemi_command_grant(t, slot, q);
    if (result < 0)
        return result;
    return IDEMI_JOURNAL(t) && idemi_journal_in_doubt(t) ? IDEM_RECOVER
                                                         : IDEM_EXECUTE;
}

/* Finds a key's slot, live or not; IDEMI_NONE if there is none. */
static int idemi_command_find(idem_table *t, unsigned *slot,
                              const idemi_query *q)
{
    *slot = idemi_index_find(t, q->hash, q->rq);
    if (!IDEMI_JOURNAL(t))
        return IDEM_OK;
    if (*slot == IDEMI_NONE && IDEMI_UNREADABLE(t))
        return IDEM_E_STORAGE;
    return IDEM_OK;
}

/* True if an answer about a slot would rely on the newest record of the boot
   before. */
static int idemi_command_unsure(const idem_table *t, unsigned slot)
{
    return IDEMI_JOURNAL(t) && idemi_journal_unconfirmed(t, slot);
}

/* Finds a key's slot for who relies on what is found. */
static int idemi_command_find_sure(idem_table *t, unsigned *slot,
                                   const idemi_query *q)
{
    int result = idemi_command_find(t, slot, q);

    if (result < 0 || !idemi_command_unsure(t, *slot))
        return result;
    result = idemi_journal_assure(t);
    return result == IDEM_OK ? idemi_command_find(t, slot, q) : result;
}

/* In a ring a claim makes sure of what it relies on when it is written: one new
   sector does for both.  Another answer waits for that, and is given from what
   is there then; so does a claim that sectors are missing for, of which some
   may be had again.  In cells all wait: that takes less stack. */
static int idemi_command_begin(idem_table *t, idemi_query *q)
{
    unsigned slot;
    int unsure, result;

    do {
        result = IDEMI_CLAIM_ASSURES ? idemi_command_find(t, &slot, q)
                                     : idemi_command_find_sure(t, &slot, q);
        if (result < 0)
            return result;
        unsure = idemi_command_unsure(t, slot);
        result = idemi_command_gone(t, slot)
                     ? idemi_command_first(t, slot, q)
                     : idemi_command_again(t, slot, q);
        if (!unsure || (result < IDEM_REPLAY && result != IDEM_E_SPACE))
            break;
        result = idemi_journal_assure(t);
    } while (result == IDEM_OK);
    if (result == IDEM_REPLAY)
        result = idemi_command_replay(t, slot, q->reply);
    if (result >= 0)
        t->stats.answers[result]++;
    else if (result == IDEM_E_FULL)
        t->stats.full++;
    return result;
}

static int idemi_command_complete(idem_table *t, const idem_claim *claim,
                                  const idem_outcome *out)
{
    unsigned slot = (unsigned)claim->slot;
    idem_slot *s = idemi_command_current(t, claim);
    idem_body *body;

    if (!s)
        return IDEM_E_FENCED;
    body = idemi_slot_body(t, slot, 0);
    if (IDEMI_UNREAD(body))
        return IDEM_E_STORAGE;
    if (out->response_len > body->response_len ||
        out->state_len > t->config->state_max)
        return IDEM_E_TOO_LARGE;
    if (IDEMI_JOURNAL(t)) {
        int result = idemi_journal_outcome(t, slot, out);
        if (result < 0)
            return result;
    }
    if (idemi_slot_bodies(t)) {
        body->code = out->code;
        body->response_len = (uint16_t)out->response_len;
        idemi_basics_copy(idemi_slot_response(t, slot), out->response,
                          out->response_len);
    }
    if (out->state) {
        t->state_len = (uint16_t)out->state_len;
        idemi_basics_copy(t->state, out->state, out->state_len);
    }
    t->claimed--;
    s->time = t->clock;
    s->state = out->failed ? IDEM_FAILED : IDEM_COMPLETED;
    idemi_order_append(t, slot);
    if (out->confirm) {
        s->state |= IDEMI_UNDELIVERED;
        t->pending++;
    }
    idemi_order_note(t, s);
    return IDEM_OK;
}

static int idemi_command_renew(idem_table *t, const idem_claim *claim,
                               uint32_t lease_ms)
{
    idem_slot *s = idemi_command_current(t, claim);

    if (!s)
        return IDEM_E_FENCED;
    lease_ms = idemi_default_lease(t, lease_ms);
    if (lease_ms == IDEM_LEASE_NONE)
        s->state |= IDEMI_ENDLESS;
    else if (lease_ms > idemi_slot_lease_left(t, s))
        s->time = t->clock + lease_ms;
    return IDEM_OK;
}

static int idemi_command_deliver(idem_table *t, const idem_claim *claim)
{
    unsigned slot = (unsigned)claim->slot;
    int result = idemi_command_outcome(t, claim);
    idem_slot *s;

    if (result == IDEM_OK && idemi_command_unsure(t, slot))
        result = idemi_journal_assure(t);
    if (result < 0)
        return result;
    s = idemi_slot_at(t, slot);
    if (!(s->state & IDEMI_UNDELIVERED))
        return IDEM_OK;
    if (IDEMI_JOURNAL(t))
        result = idemi_journal_drop(t, slot, IDEMI_MORE_DELIVERED);
    if (result == IDEM_OK && s->state)
        idemi_keys_delivered(t, s);
    return result;
}

/* Tells everything about a slot in use but where idem_next goes on. */
static int idemi_command_describe(idem_table *t, unsigned slot, idem_entry *e)
{
    const idem_slot *s = idemi_slot_at(t, slot);
    int finished = (s->state & IDEMI_FINISHED) != 0;
    const idem_body *body = idemi_slot_body(t, slot, 0);
    size_t id_len;

    if (IDEMI_UNREAD(body))
        return IDEM_E_STORAGE;
    id_len = (size_t)body->scope_len + body->key_len;
    e->scope_len = body->scope_len;
    e->key_len = body->key_len;
    e->fingerprint =
        (uint64_t)body->fingerprint[1] << 32 | body->fingerprint[0];
    e->status = s->state & IDEMI_STATUS;
    e->attempts = idemi_slot_attempts(t, slot);
    e->undelivered = (s->state & IDEMI_UNDELIVERED) != 0;
    if (e->id && id_len <= e->id_size)
        IDEM_MEMCPY(e->id, idemi_slot_id(t, slot), id_len);
    idemi_command_name(t, slot, &e->claim);
    body = idemi_slot_body(t, slot, finished);
    if (IDEMI_UNREAD(body))
        return IDEM_E_STORAGE;
    e->response_len = body->response_len;
    if (finished) {
        e->code = body->code;
        e->age_ms = t->clock - s->time;
        e->left_ms = idemi_slot_due(t, s) - t->clock;
    } else {
        e->code = 0;
        e->age_ms = 0;
        e->left_ms = idemi_slot_lease_left(t, s);
        e->claim.token = 0;     // the holder's alone
    }
    return IDEM_OK;
}

/* Copies a piece of a response. */
static int idemi_command_response(idem_table *t, void *dst, size_t *len,
                                  const idem_claim *claim, size_t at)
{
    unsigned slot = (unsigned)claim->slot;
    size_t wanted = *len, rest = 0;
    int result = idemi_command_outcome(t, claim);
    const idem_body *body;

    *len = 0;
    if (result < 0)
        return result;
    body = idemi_slot_body(t, slot, 1);
    if (IDEMI_UNREAD(body))
        return IDEM_E_STORAGE;
    if (at < body->response_len)
        rest = body->response_len - at;
    *len = wanted < rest ? wanted : rest;
    if (*len)
        IDEM_MEMCPY(dst, idemi_slot_response(t, slot) + at, *len);
    return IDEM_OK;
}

/* One bounded step of idle work: drops what is over in some slots; of claims
   that are over, one, for that is written. */
static int idemi_command_maintain(idem_table *t)
{
    unsigned left = IDEMI_MAINTAIN_SLOTS;
    int result = IDEM_OK;

    if (IDEMI_JOURNAL(t))
        result = idemi_journal_maintain(t);
    if (result != IDEM_OK)
        return result;
    for (; left > 0 && t->tidy < t->capacity; left--) {
        unsigned slot = t->tidy++;
        idemi_keys_expire(t, slot);
        if (idemi_slot_at(t, slot)->state & IDEMI_STALE) {
            result = idemi_command_drop(t, slot);
            return result < 0 ? result : IDEM_MORE;
        }
    }
    if (t->tidy < t->capacity)
        return IDEM_MORE;
    t->tidy = 0;
    return IDEM_OK;
}

/* ---------------------------------------------------------------------------
   >>check     every invariant, by number

   idem_check returns the number of the first that is broken:

     1 T1    2 T2          3 C1    4 C2    5 C3
     6 K1    7 K2          8 K3    9 K4   10 O1   11 O2   12 O3
    14 J1   15 J2 (with IDEM_CELLS D1, D2)   16 J5
    13 the sizes in the table are not those of its configuration
   ------------------------------------------------------------------------ */

/* One slot in use, by itself. */
static int idemi_check_slot(const idem_table *t, unsigned slot)
{
    const idem_slot *s = idemi_slot_at(t, slot);
    unsigned status = s->state & IDEMI_STATUS;
    unsigned misplaced = s->state & IDEMI_FINISHED
                             ? IDEMI_ENDLESS | IDEMI_CUT | IDEMI_STALE
                             : IDEMI_UNDELIVERED;

    if (!status || (s->state & (misplaced | (0xC0u & ~IDEMI_UNTOLD))))
        return 6;
    if (idemi_slot_bodies(t)) {
        const idem_body *body = idemi_slot_own(idemi_slot_at(t, slot));
        if (!body->key_len ||
            body->scope_len + body->key_len > t->config->key_max ||
            body->response_len > t->config->response_max)
            return 7;
        if (!s->terms || idemi_keys_token(t, body->token) - 1 >= t->token)
            return 9;
    }
    if (s->state & (IDEMI_ENDLESS | IDEMI_STALE))
        return 0;
    if (status == IDEM_IN_PROGRESS && s->time - t->clock > IDEM_LEASE_MAX &&
        t->clock - s->time > IDEM_RETENTION_MAX + IDEMI_SWEEP_MS)
        return 3;
    if (status != IDEM_IN_PROGRESS &&
        t->clock - s->time > idemi_slot_retention(t, s) + IDEMI_SWEEP_MS)
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
    const idem_slot *s = idemi_slot_at(t, slot);
    unsigned at = idemi_index_home(t, s->hash);
    unsigned past = 0, other;

    if (idemi_slot_bodies(t)) {
        const idem_body *body = idemi_slot_own(idemi_slot_at(t, slot));
        const unsigned char *id = idemi_slot_id(t, slot);
        if (s->hash != idemi_index_hash(idemi_hash_id(
                           t->config, id, body->scope_len,
                           id + body->scope_len, body->key_len)))
            return 2;
    }
    while ((other = idemi_index_slot(t, at)) != slot) {
        if (other == IDEMI_NONE || ++past == t->index_size)
            return 2;
        at = idemi_index_next(t, at);
    }
    if (!idemi_index_is(t, at, slot, s->hash) ||
        idemi_index_past(t, at, slot) != past)
        return 2;
    return 0;
}

#ifndef IDEM_CELLS
/* J1 for one slot in use. */
static int idemi_check_place(const idem_table *t, unsigned slot)
{
    const idem_journal *j = t->journal;
    const idem_place *place = idemi_slot_place(t, slot);
    const idem_slot *s = idemi_slot_at(t, slot);
    uint32_t live = idemi_journal_distance(t, j->clean, j->head);
    uint32_t claim = idemi_storage_sector(t, place->claim);
    uint32_t outcome = idemi_storage_sector(t, place->outcome);

    if (j->stray || s->state & IDEMI_STALE || place->claim == IDEMI_NOWHERE)
        return 0;
    if (idemi_journal_distance(t, j->clean, claim) > live ||
        idemi_journal_sector(t, claim)->link >= IDEMI_ASIDE)
        return 14;
    return s->state & IDEMI_FINISHED &&
                   idemi_journal_distance(t, j->clean, outcome) > live
               ? 14
               : 0;
}

/* J5 */
static int idemi_check_written(const idem_table *t)
{
#if IDEM_WIDE
    unsigned ends = t->capacity, slot = ends;
    uint32_t last = 0, written = 0;

    while (idemi_journal_link(t, slot)->newer != ends) {
        unsigned older = slot;
        const idem_place *place;
        uint32_t at;
        slot = idemi_journal_link(t, slot)->newer;
        // What links back to where it was reached from comes once only.
        if (slot > ends || idemi_journal_link(t, slot)->older != older)
            return 16;
        if (!idemi_slot_at(t, slot)->state)
            continue;
        place = idemi_slot_place(t, slot);
        at = idemi_storage_place(
            t, idemi_journal_distance(t, t->journal->clean,
                                      idemi_storage_sector(t, place->claim)),
            idemi_storage_offset(t, place->claim));
        if (at <= last && !t->journal->stray)
            return 16;
        last = at;
        written++;
    }
    for (slot = 0; slot < ends; slot++)
        written -= idemi_slot_at(t, slot)->state &&
                   idemi_slot_place(t, slot)->claim != IDEMI_NOWHERE;
    if (written)
        return 16;
#else
    (void)t;
#endif
    return 0;
}

/* J2, J5 */
static int idemi_check_journal(const idem_table *t)
{
    return !t->journal->blank &&
                   idemi_journal_gap(t, t->journal->tail) +
                           t->stats.retired < 2
               ? 15
               : idemi_check_written(t);
}
#endif

/* What idem_check counts on its way */
typedef struct idemi_tally {
    uint32_t used, pending, in_progress;    /* slots */
    uint32_t claimed, stale;
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
        tally->claimed += idemi_keys_claimed(s);
        tally->stale += (s->state & IDEMI_STALE) != 0;
        broken = idemi_check_slot(t, slot);
        if (!broken)
            broken = idemi_check_probe(t, slot);
        if (!broken && IDEMI_JOURNAL(t))
            broken = idemi_check_place(t, slot);
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
        // What links back to where it was reached from comes once only.
        if (slot > ends || t->links[slot].older != older)
            return 10;
        tally->listed++;
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
    idemi_tally tally = { 0, 0, 0, 0, 0, 0 };
    uint32_t words = 0;
    unsigned at;
    int broken;

    if (t->capacity != t->config->capacity ||
        t->index_size != IDEMI_WORDS * t->capacity ||
        t->stride != idemi_slot_size(t) ||
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
    if (tally.used != t->used || tally.pending != t->pending ||
        tally.claimed != t->claimed || tally.stale != t->stale)
        return 8;
    broken = IDEMI_JOURNAL(t) ? idemi_check_journal(t) : 0;
    return broken ? broken : idemi_check_free(t, &tally);
}

/* ---------------------------------------------------------------------------
   >>public    validate, lock, do, unlock
   ------------------------------------------------------------------------ */

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
#ifndef IDEM_CELLS
    if (IDEMI_JOURNAL(t)) {
        t->journal->loaded = IDEMI_NOWHERE;
        t->journal->failed = 0;
        t->journal->had_erase = 0;
        t->journal->had_turn = 0;
    }
#endif
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
    idemi_index_prefetch(t, q->hash);
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

#ifndef IDEM_CELLS
/* Bits of an offset in a sector. */
static unsigned idemi_public_shift(uint32_t sector_size)
{
    unsigned shift = 0;

    while ((sector_size - 1) >> shift)
        shift++;
    return shift;
}

/* True if a storage is one. */
static int idemi_public_storage(const idem_storage *m)
{
    return m->read && m->prog && (m->erase || !m->erasing) && m->prog_size &&
           m->prog_size <= 256 &&
           !(m->prog_size & (m->prog_size - 1)) && m->sector_size >= 256 &&
           m->sector_size <= 0x40000 && !(m->sector_size % m->prog_size) &&
           m->sector_count && m->sector_count <= 65535 &&
           m->sector_count <=
               UINT32_MAX >> idemi_public_shift(m->sector_size);
}
#else
static int idemi_public_storage(const idem_storage *m)
{
    return m->read && m->prog && !m->erase && !m->erasing && m->prog_size &&
           m->prog_size <= 256 &&
           !(m->prog_size & (m->prog_size - 1)) &&
           !(m->sector_size % m->prog_size) && m->sector_count == 1;
}
#endif

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
           (!IDEMI_STORAGE(config) ||
            (idemi_public_storage(config->storage) &&
             config->durability <= IDEM_BATCH &&
             (!config->volatile_claims || IDEMI_VOLATILE(config)))) &&
           !config->lock == !config->unlock;
}

/* Wide enough for the size of the largest table, so that no configuration is
   taken for a smaller one, however narrow size_t is. */
#if IDEM_WIDE
typedef uint64_t idemi_size;
#else
typedef uint32_t idemi_size;
#endif

#ifndef IDEM_CELLS
/* Bytes that are read at once, at most */
#define IDEMI_READ_MAX UINT32_C(0x100000)

/* Bytes of a buffer for one record. */
static idemi_size idemi_public_record(const idem_config *config)
{
    return IDEMI_ROUND4(IDEMI_RECORD_FIXED + (idemi_size)config->key_max +
                        config->response_max + config->state_max +
                        config->storage->prog_size);
}

/* Bytes of a journal. */
static idemi_size idemi_public_journal(const idem_config *config)
{
    return (idemi_size)sizeof(idem_journal) + 4 * idemi_public_record(config) +
           (idemi_size)sizeof(idem_sector) * config->storage->sector_count;
}

/* Lays the journal out, which ends at `end`; `spare` bytes behind it were not
   asked for, and make reading faster. */
static void idemi_public_buffers(idem_table *t, unsigned char *end,
                                 idemi_size spare)
{
    idemi_size buffers = 2 * idemi_public_record(t->config);

    t->journal->shift = idemi_public_shift(t->config->storage->sector_size);
    t->journal->front = 2 * idemi_storage_granules(t, IDEMI_HEADER);
    t->journal->record_max = (uint32_t)(buffers / 2);
    t->in = end - buffers;
    spare += buffers;
    t->journal->in_size =
        (uint32_t)(spare < IDEMI_READ_MAX ? spare : IDEMI_READ_MAX);
}
#else
/* Bytes of a cell with numbers of `wide` bytes. */
static idemi_size idemi_public_cell(const idem_config *config, unsigned wide)
{
    return (idemi_size)IDEMI_CELL_SIZE(wide, config->key_max,
                                       config->response_max, config->state_max,
                                       config->storage->prog_size);
}

/* Bytes of both headers. */
static idemi_size idemi_public_headers(const idem_config *config)
{
    return (idemi_size)IDEMI_CELLS_HEADERS(config->storage->prog_size);
}

/* The most cells that numbers of `wide` bytes tell apart. */
static idemi_size idemi_public_most(unsigned wide)
{
    if (wide == 1)
        return IDEMI_CELLS_NARROW;
    return wide == 2 ? IDEMI_CELLS_MIDDLE : IDEMI_CELLS_MOST;
}

/* How many cells there are with numbers of `wide` bytes. */
static idemi_size idemi_public_cells(const idem_config *config, unsigned wide)
{
    idemi_size size = config->storage->sector_size;
    idemi_size headers = idemi_public_headers(config);
    idemi_size most = idemi_public_most(wide);

    if (size > headers)
        size = (size - headers) / idemi_public_cell(config, wide);
    else
        size = 0;
    return size < most ? size : most;
}

/* Bytes of a number: more only if there are more cells with them. */
static unsigned idemi_public_wide(const idem_config *config)
{
    unsigned wide = 1;

    while (wide < 3 &&
           idemi_public_cells(config, wide + 1) > idemi_public_most(wide))
        wide++;
    return wide;
}

/* Bytes of a journal; before its buffer it has the numbers of cells. */
static idemi_size idemi_public_journal(const idem_config *config)
{
    unsigned wide = idemi_public_wide(config);
    idemi_size numbers =
        (config->capacity + idemi_public_cells(config, wide)) *
        (idemi_size)sizeof(idem_number);

    return IDEMI_ROUND4((idemi_size)sizeof(idem_journal)) +
           IDEMI_ROUND4(numbers) +
           IDEMI_ROUND4(idemi_public_cell(config, wide));
}

/* Lays the journal out, which ends at `end`. */
static void idemi_public_buffers(idem_table *t, unsigned char *end,
                                 idemi_size spare)
{
    idem_journal *j = t->journal;

    (void)spare;
    j->wide = (uint8_t)idemi_public_wide(t->config);
    j->cell_size = (uint32_t)idemi_public_cell(t->config, j->wide);
    j->count = (unsigned)idemi_public_cells(t->config, j->wide);
    t->in = end - IDEMI_ROUND4(j->cell_size);
}
#endif

/* Lays the table out in memory, if it is large enough and aligned. */
static int idemi_public_layout(idem_table *t, unsigned char *memory,
                               size_t size)
{
    const idem_config *config = t->config;
    idemi_size capacity = config->capacity;
    idemi_size stride = idemi_slot_size(t);
    idemi_size order = (capacity + 1) * (idemi_size)sizeof(idem_link);
    idemi_size words = capacity * IDEMI_WORDS * (idemi_size)sizeof(idem_word);
    idemi_size links = capacity * stride;
    idemi_size index = links + IDEMI_ROUND4(order);
    idemi_size state = index + IDEMI_ROUND4(words);
    idemi_size journal = state + IDEMI_ROUND4((idemi_size)config->state_max);
    idemi_size needed = journal;

    if (IDEMI_STORAGE(config))
        needed += idemi_public_journal(config);
    t->needed = (size_t)needed;
    if (t->needed != needed)
        t->needed = (size_t)-1;
    if (!memory || size < needed || (uintptr_t)memory % IDEMI_ALIGNMENT)
        return IDEM_E_MEMORY;
    IDEM_MEMSET(memory, 0, t->needed);
    t->stride = (size_t)stride;
    t->capacity = (unsigned)capacity;
    t->index_size = IDEMI_WORDS * t->capacity;
    t->slots = memory;
    t->links = (idem_link *)(void *)(memory + links);
    t->index = (idem_word *)(void *)(memory + index);
    t->state = memory + state;
    if (!IDEMI_STORAGE(config))
        return IDEM_OK;
    t->journal = (idem_journal *)(void *)(memory + journal);
    idemi_public_buffers(t, memory + needed, (idemi_size)size - needed);
    return IDEM_OK;
}

#ifndef IDEM_CELLS
/* How many heads it takes to carry all keys, each of which takes `carried`
   bytes, if a head holds `room` of them. */
static uint32_t idemi_public_heads(const idem_table *t, uint32_t carried,
                                   uint32_t room)
{
    return t->config->capacity * carried / room + 1;
}

/* By how many sectors the head gets ahead meanwhile, if all keys are in the
   oldest sectors, where each takes `stored` of their `usable` bytes. */
static uint32_t idemi_public_ahead(const idem_table *t, uint32_t carried,
                                   uint32_t stored, uint32_t room,
                                   uint32_t usable)
{
    uint32_t before = idemi_public_heads(t, carried, room) - 1;
    uint32_t emptied = before * room / carried * stored / usable;

    return before > emptied ? before - emptied : 0;
}

/* Finds out whether the sectors can keep the configured keys, whatever comes,
   and when carrying is to begin.  The worst is: every restart takes a head for
   one command, and the oldest sectors are full of what must be carried.  Beside
   that a head has the command, and what does not fit.  If no claim is written
   the header is the newest: so each head has, instead of the claim, what the
   one before it has confirmed once more, the longest record as may be. */
static int idemi_public_geometry(idem_table *t)
{
    const idem_config *config = t->config;
    const idem_storage *m = config->storage;
    idem_journal *j = t->journal;
    uint32_t front = idemi_journal_front(t);
    uint32_t usable = m->sector_size > front ? m->sector_size - front : 0;
    uint32_t key = config->key_max, response = config->response_max;
    uint32_t state = config->state_max ? config->state_max + 3u : 0;
    uint32_t first, both, moved, full, room, heads, ahead;

    first = idemi_storage_granules(t, IDEMI_CLAIM_LEAST + key);
    both = config->volatile_claims
               ? idemi_storage_granules(t, IDEMI_WHOLE_LEAST + key + response)
               : first + idemi_storage_granules(t, IDEMI_OUTCOME_LEAST +
                                                       response);
    moved = idemi_storage_granules(t, IDEMI_CARRY_FIXED + key);
    full = idemi_storage_granules(t, IDEMI_CARRY_FIXED + key + response);
    j->outcome_max = idemi_storage_granules(
        t, config->volatile_claims ? j->record_max
                                   : IDEMI_OUTCOME_FIXED + state + response);
    j->carry_max = full > j->outcome_max ? full : j->outcome_max;
    room = (config->volatile_claims
                ? full
                : idemi_storage_granules(t, IDEMI_CLAIM_FIXED + key)) +
           j->outcome_max + j->carry_max +
           (state ? idemi_storage_granules(t, IDEMI_MARK_FIXED + state) : 0);
    t->needed = 0;
    if (usable <= room ||
        config->capacity >
            UINT32_MAX / 2 / (both + moved + j->outcome_max + full))
        return IDEM_E_SPACE;
    room = usable - room;
    heads = idemi_public_heads(t, moved + j->outcome_max, room);
    moved = idemi_storage_granules(t, IDEMI_CARRY_CLAIM + key + key / 96);
    ahead = idemi_public_ahead(t, moved, first, room, usable);
    full = idemi_storage_granules(t, IDEMI_CARRY_WHOLE + key + response);
    full = idemi_public_ahead(t, full, both, room, usable);
    j->low = 3 + (ahead > full ? ahead : full);
    j->least = j->low + heads;
    t->needed = (size_t)j->least;
    return m->sector_count < j->least ? IDEM_E_SPACE : IDEM_OK;
}
#else
/* Finds out whether there is a cell for each key, and some that are free. */
static int idemi_public_geometry(idem_table *t)
{
    const idem_journal *j = t->journal;
    idemi_size cells = (idemi_size)t->capacity + IDEMI_CELLS_FREE;
    unsigned wide = cells > IDEMI_CELLS_MIDDLE   ? 3u
                    : cells > IDEMI_CELLS_NARROW ? 2u
                                                 : 1u;
    idemi_size size = idemi_public_cell(t->config, wide);

    t->needed = 0;
    // No size_t of 16 bits tells more than 64 KB.
    if (size <= (UINT32_MAX - 512u) / cells) {
        size = idemi_public_headers(t->config) + cells * size;
        t->needed = size == (size_t)size ? (size_t)size : (size_t)-1;
    }
    return j->count < cells ? IDEM_E_SPACE : IDEM_OK;
}
#endif

/* Everything about an empty table that is not zero. */
static void idemi_public_reset(idem_table *t)
{
    unsigned ends = t->capacity;

    t->links[ends].older = t->links[ends].newer = (idem_number)ends;
    t->soonest = t->clock + IDEMI_NEVER_MS;
}

/* The last step of an opening: what is not in use is free, and time begins.
   Memory reaches back to the opening; with a journal further, unless what it
   had evicted by then is not known. */
static void idemi_public_start(idem_table *t, uint32_t now_ms)
{
    unsigned slot = t->capacity;
    unsigned i;

    t->free = (idem_number)slot;
    while (slot > 0)
        if (!idemi_slot_at(t, --slot)->state)
            idemi_order_free(t, slot);
    t->tick = now_ms;
    t->counted = now_ms;
    t->evicted = t->clock - IDEM_RETENTION_MAX;
    for (i = 0; i < IDEMI_REACHES; i++)
        t->reach[i] = IDEMI_JOURNAL(t) && t->config->full == IDEM_REJECT
                          ? t->evicted
                          : t->clock - 1;
    t->magic = IDEMI_MAGIC;
}

/* The part of idem_open and idem_format before the storage is looked at. */
static int idemi_public_prepare(idem_table *table, const idem_config *config,
                                void *memory, size_t size)
{
    int result;

    if (!table)
        return IDEMI_MISUSE();
    IDEM_MEMSET(table, 0, sizeof *table);
    if (!config || !idemi_public_config(config))
        return IDEMI_MISUSE();
    table->config = config;
    result = idemi_public_layout(table, (unsigned char *)memory, size);
    if (result < 0)
        return result;
    idemi_public_reset(table);
    return IDEMI_JOURNAL(table) ? idemi_public_geometry(table) : IDEM_OK;
}

IDEM_API int idem_open(idem_table *table, const idem_config *config,
                       void *memory, size_t size, uint32_t now_ms)
{
    int result = idemi_public_prepare(table, config, memory, size);

    if (result == IDEM_OK && IDEMI_JOURNAL(table))
        result = idemi_recover_open(table);
    if (result == IDEM_OK)
        idemi_public_start(table, now_ms);
    return result;
}

IDEM_API int idem_format(idem_table *table, const idem_config *config,
                         void *memory, size_t size, uint32_t now_ms)
{
    int result = idemi_public_prepare(table, config, memory, size);

    if (result == IDEM_OK && !IDEMI_JOURNAL(table))
        result = IDEMI_MISUSE();
    if (result == IDEM_OK)
        result = idemi_recover_format(table);
    return result < 0 ? result
                      : idem_open(table, config, memory, size, now_ms);
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
    IDEM_MEMSET(&reply->claim, 0, sizeof *reply - offsetof(idem_reply, claim));
    if (!idemi_public_is_open(table))
        return IDEMI_MISUSE();
    result = idemi_public_query(table, &q, request);
    if (result == IDEM_OK)
        result = idemi_public_payload(table, &q);
    if (result == IDEM_OK)
        result = idemi_public_enter_at(table, 1, now_ms);
    if (result != IDEM_OK)
        return result;
    q.claim = claim;
    q.reply = reply;
    return idemi_public_leave(table, idemi_command_begin(table, &q));
}

/* True if the parts of an outcome that are there can be read. */
static int idemi_public_outcome(const idem_outcome *outcome)
{
    return outcome &&
           idemi_public_bytes(outcome->response, outcome->response_len) &&
           idemi_public_bytes(outcome->state, outcome->state_len);
}

IDEMI_FLAT
IDEM_API int idem_complete(idem_table *table, const idem_claim *claim,
                           const idem_outcome *outcome, uint32_t now_ms)
{
    int result = idemi_public_enter_at(
        table, claim && idemi_public_outcome(outcome), now_ms);

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
    if (idemi_command_current(table, claim))
        result = idemi_command_drop(table, (unsigned)claim->slot);
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
    return idemi_public_leave(table,
                              idemi_command_renew(table, claim, lease_ms));
}

/* Tells an outcome that was stored just now as a replay would. */
static void idemi_public_told(idem_reply *reply, const idem_claim *claim,
                              const idem_outcome *outcome)
{
    reply->status = outcome->failed ? IDEM_FAILED : IDEM_COMPLETED;
    reply->code = outcome->code;
    reply->response_len = outcome->response_len;
    reply->age_ms = 0;
    reply->claim = *claim;
    if (outcome->response_len && reply->buffer &&
        reply->buffer != outcome->response &&
        outcome->response_len <= reply->buffer_size)
        IDEM_MEMCPY(reply->buffer, outcome->response, outcome->response_len);
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
    result = idem_complete(table, claim, &outcome, now_ms);
    if (result < 0)
        return result;
    idemi_public_told(reply, claim, &outcome);
    return answer;
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
    int result = idemi_public_enter_at(table, 1, now_ms);

    if (result < 0)
        return result;
    return idemi_public_leave(table, idemi_command_maintain(table));
}

IDEM_API int idem_sync(idem_table *table)
{
    int result = idemi_public_enter(table, 1);

    if (result < 0)
        return result;
    if (IDEMI_JOURNAL(table) && table->journal->broken)
        result = IDEM_E_STORAGE;
    else if (IDEMI_JOURNAL(table) && !table->journal->synced)
        result = idemi_storage_sync(table);
    return idemi_public_leave(table, result);
}

IDEM_API int idem_elapse(idem_table *table, uint32_t off_ms)
{
    int result = idemi_public_enter(table, 1);

    if (result < 0)
        return result;
    idemi_keys_advance(table, off_ms);
    return idemi_public_leave(table, IDEM_OK);
}

/* The start of a call about one key: the lock, and the key's slot; `sure` if
   something is to be done about it. */
static int idemi_public_lookup(idem_table *table, unsigned *slot,
                               const idem_request *request, int sure,
                               uint32_t now_ms)
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
    result = sure ? idemi_command_find_sure(table, slot, &q)
                  : idemi_command_find(table, slot, &q);
    if (result == IDEM_OK && idemi_command_gone(table, *slot))
        result = IDEM_E_NOT_FOUND;
    return result == IDEM_OK ? result : idemi_public_leave(table, result);
}

IDEM_API int idem_find(idem_table *table, idem_entry *entry,
                       const idem_request *request, uint32_t now_ms)
{
    unsigned slot;
    int result;

    if (!entry)
        return IDEMI_MISUSE();
    result = idemi_public_lookup(table, &slot, request, 0, now_ms);
    if (result != IDEM_OK)
        return result;
    return idemi_public_leave(table,
                              idemi_command_describe(table, slot, entry));
}

IDEM_API int idem_forget(idem_table *table, const idem_request *request,
                         uint32_t now_ms)
{
    unsigned slot;
    int result = idemi_public_lookup(table, &slot, request, 1, now_ms);
    const idem_slot *s;

    if (result != IDEM_OK)
        return result;
    s = idemi_slot_at(table, slot);
    if (!(s->state & IDEMI_FINISHED) && idemi_slot_lease_left(table, s))
        return idemi_public_leave(table, IDEM_BUSY);
    return idemi_public_leave(table, idemi_command_drop(table, slot));
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
        return idemi_public_leave(table,
                                  idemi_command_describe(table, slot, entry));
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
    result = IDEM_E_NOT_FOUND;
    if (entry->claim.token)
        result = idemi_command_outcome(table, &entry->claim);
    if (result == IDEM_E_STORAGE)
        return idemi_public_leave(table, result);
    if (result == IDEM_OK)
        slot = (unsigned)entry->claim.slot;
    // What cannot be read does not hide what stands behind it.
    for (result = IDEM_E_NOT_FOUND;;) {
        const idem_slot *s;
        slot = table->links[slot].newer;
        if (slot == table->capacity)
            return idemi_public_leave(table, result);
        s = idemi_slot_at(table, slot);
        if (!(s->state & IDEMI_UNDELIVERED) || idemi_slot_over(table, s))
            continue;
        result = idemi_command_describe(table, slot, entry);
        if (result == IDEM_OK)
            return idemi_public_leave(table, result);
    }
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
        table, len && claim && idemi_public_bytes(dst, *len));

    if (result < 0)
        return result;
    return idemi_public_leave(
        table, idemi_command_response(table, dst, len, claim, at));
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
    *horizon_ms = idemi_default_retention(table, 0);
    if (reaches < *horizon_ms)
        *horizon_ms = reaches;
    return idemi_public_leave(table, IDEM_OK);
}

/* Arrays go with the function if nobody calls it; of literals some linkers keep
   all, and AVR has them in RAM. */
IDEM_API const char *idem_text(int result)
{
#define IDEMI_RESULT_CASE(name, value, text)                                   \
    case name: {                                                               \
        static const char own[] = text;                                        \
        return own;                                                            \
    }

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

#ifdef IDEM_FILE_STORAGE
/* ---------------------------------------------------------------------------
   >>file      storage in a file

   F1  `path` never names a file that is not whole.  It is written and synced
       as `path.new`, and linked: a rename could replace a live journal.
   F2  path.new is linked and removed only by who holds the lock of the file
       that it names.  A lock belongs to a file, not to a name; so each looks,
       once it has the lock, whether the name is still that file's.
   F3  What is read is on the disk, and so is the file's name.  A process that
       was killed leaves programs that only the kernel knows: opening syncs.
   F4  After a sync that failed nothing is written.  The kernel may have dropped
       what it could not write, and reports that once: the next sync would
       succeed, and mean nothing.
   F5  Only the process that opened the file touches it.

   Functions return 0 or an errno, where no contract says otherwise.
   ------------------------------------------------------------------------ */

/* Bytes of the longest path, and of zeros written at a time. */
#define IDEMI_FILE_BLOCK 4096u

static int idemi_file_is_mine(const idem_file *file)
{
    return file->owner == (long)getpid();
}

/* 1 if the open file is what `name` names. */
static int idemi_file_is(int fd, const char *name)
{
    struct stat opened, named;

    return fstat(fd, &opened) == 0 && stat(name, &named) == 0 &&
           opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
}

/* EWOULDBLOCK if somebody else has the lock. */
static int idemi_file_lock(int fd)
{
    while (flock(fd, LOCK_EX | LOCK_NB) < 0)
        if (errno != EINTR)
            return errno;
    return 0;
}

static int idemi_file_write(int fd, uint32_t at, const void *src, uint32_t len)
{
    const unsigned char *from = (const unsigned char *)src;

    while (len) {
        ssize_t n = pwrite(fd, from, len, (off_t)at);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)             // 0 would never end
            return n < 0 ? errno : EIO;
        from += n;
        at += (uint32_t)n;
        len -= (uint32_t)n;
    }
    return 0;
}

/* Keeps F3 also when it fails: what the kernel has, and the disk may not have,
   must not be read when the file is opened again. */
static int idemi_file_flush(int fd, int (*flush)(int fd))
{
    int error = 0;

    while (!error && flush(fd) < 0) {
        error = errno;
        if (error == EINTR)
            error = 0;
        else
            (void)posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    }
    return error;
}

/* The callbacks. */
static int idemi_file_read(void *ctx, uint32_t at, void *dst, uint32_t len)
{
    const idem_file *file = (const idem_file *)ctx;
    unsigned char *to = (unsigned char *)dst;

    if (!idemi_file_is_mine(file))
        return EPERM;
    while (len) {
        ssize_t n = pread(file->fd, to, len, (off_t)at);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)             // 0: somebody has cut the file short
            return n < 0 ? errno : EIO;
        to += n;
        at += (uint32_t)n;
        len -= (uint32_t)n;
    }
    return 0;
}

static int idemi_file_prog(void *ctx, uint32_t at, const void *src,
                           uint32_t len)
{
    const idem_file *file = (const idem_file *)ctx;

    if (!idemi_file_is_mine(file))
        return EPERM;
    if (file->error)
        return file->error;
    return idemi_file_write(file->fd, at, src, len);
}

static int idemi_file_sync(void *ctx)
{
    idem_file *file = (idem_file *)ctx;

    if (!idemi_file_is_mine(file))
        return EPERM;
    if (!file->error)
        file->error = idemi_file_flush(file->fd, fdatasync);
    return file->error;
}

/* Writes the zeros, rather than leaving a hole: a program later on finds its
   place on the disk, and its sync has nothing else to write. */
static int idemi_file_fill(int fd, uint32_t size)
{
    unsigned char zeros[IDEMI_FILE_BLOCK];
    uint32_t at, len;
    int error = 0;

    IDEM_MEMSET(zeros, 0, sizeof zeros);
    if (ftruncate(fd, 0) < 0)   // a creator died when it had written as much
        return errno;
    for (at = 0; at < size && !error; at += len) {
        len = size - at < IDEMI_FILE_BLOCK ? size - at : IDEMI_FILE_BLOCK;
        error = idemi_file_write(fd, at, zeros, len);
    }
    return error ? error : idemi_file_flush(fd, fsync);
}

/* Makes `path` out of the file `unborn`, which is open and locked; whatever
   comes of it, that name goes. */
static int idemi_file_deliver(int fd, const char *path, const char *unborn,
                              uint32_t size)
{
    struct stat is;
    int error = 0;

    if (fstat(fd, &is) < 0)
        return errno;
    // With another name a creator has linked it and died, and since then it may
    // have become a journal.
    if (is.st_nlink == 1) {
        error = idemi_file_fill(fd, size);
        if (!error && link(unborn, path) < 0 && errno != EEXIST)
            error = errno;      // EEXIST: somebody else was quicker
    }
    (void)unlink(unborn);
    return error;
}

/* Sees to it that there is a file `path`. */
static int idemi_file_create(const char *path, const char *unborn,
                             uint32_t size)
{
    int fd = open(unborn, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    int error;

    if (fd < 0)
        return errno;
    error = idemi_file_lock(fd);
    // Not named so any more: somebody else has delivered it meanwhile.
    if (!error && idemi_file_is(fd, unborn))
        error = idemi_file_deliver(fd, path, unborn, size);
    (void)close(fd);
    return error;
}

/* Syncs the directory that holds `path`, which is turned into its name. */
static int idemi_file_sync_name(char *path)
{
    char *slash = strrchr(path, '/');
    char *base = slash ? slash + 1 : path;
    int fd, error;

    IDEM_MEMCPY(base, ".", sizeof ".");
    fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return errno;
    error = idemi_file_flush(fd, fsync);
    (void)close(fd);
    return error == EINVAL ? 0 : error;     // this file system knows no such
}                                           // sync, or needs none

/* Whether the open file is the one to use: IDEM_OK, IDEM_E_LOCK, IDEM_E_FORMAT,
   or IDEM_E_STORAGE with file->error set. */
static int idemi_file_examine(idem_file *file, const char *path, char *unborn,
                              uint32_t size)
{
    struct stat is;

    file->error = idemi_file_lock(file->fd);
    if (file->error)
        return file->error == EWOULDBLOCK ? IDEM_E_LOCK : IDEM_E_STORAGE;
    if (!idemi_file_is(file->fd, path))
        return IDEM_E_LOCK;     // somebody is just replacing it
    if (fstat(file->fd, &is) < 0) {
        file->error = errno;
        return IDEM_E_STORAGE;
    }
    if (!S_ISREG(is.st_mode) || is.st_size != (off_t)size)
        return IDEM_E_FORMAT;
    // Its creator died between linking this name and removing the other.
    if (is.st_nlink > 1 && idemi_file_is(file->fd, unborn))
        (void)unlink(unborn);
    file->error = idemi_file_flush(file->fd, fdatasync);
    if (!file->error)
        file->error = idemi_file_sync_name(unborn);
    return file->error ? IDEM_E_STORAGE : IDEM_OK;
}

/* Opens a file that is there; else as idemi_file_examine. */
static int idemi_file_take(idem_file *file, const char *path, char *unborn,
                           uint32_t size)
{
    struct stat is;
    int result;

    // Looked at first: some devices take being opened as a command.
    if (stat(path, &is) == 0 && !S_ISREG(is.st_mode))
        return IDEM_E_FORMAT;
    file->fd = open(path, O_RDWR | O_CLOEXEC);
    if (file->fd < 0) {
        file->error = errno;
        return IDEM_E_STORAGE;
    }
    result = idemi_file_examine(file, path, unborn, size);
    if (result != IDEM_OK) {
        (void)close(file->fd);
        file->fd = -1;
    }
    return result;
}

static void idemi_file_reset(idem_file *file, uint32_t sector_size,
                             uint32_t sector_count)
{
    IDEM_MEMSET(file, 0, sizeof *file);
    file->storage.ctx = file;
    file->storage.read = idemi_file_read;
    file->storage.prog = idemi_file_prog;
    file->storage.sync = idemi_file_sync;
    file->storage.sector_size = sector_size;
    file->storage.sector_count = sector_count;
    file->storage.prog_size = 1;
    file->fd = -1;
    file->owner = (long)getpid();
}

IDEM_API int idem_file_open(idem_file *file, const char *path,
                            uint32_t sector_size, uint32_t sector_count)
{
    static const char suffix[] = ".new";
    char unborn[IDEMI_FILE_BLOCK];
    uint32_t size = sector_size * sector_count;
    off_t end;                  // of 32 bits: may be negative
    size_t len;
    int result;

    if (!file || !path)
        return IDEMI_MISUSE();
    idemi_file_reset(file, sector_size, sector_count);
    end = (off_t)size;
    if (!idemi_public_storage(&file->storage) || end < 0)
        return IDEMI_MISUSE();
    len = strlen(path);
    if (len > sizeof unborn - sizeof suffix) {
        file->error = ENAMETOOLONG;
        return IDEM_E_STORAGE;
    }
    IDEM_MEMCPY(unborn, path, len);
    IDEM_MEMCPY(unborn + len, suffix, sizeof suffix);

    result = idemi_file_take(file, path, unborn, size);
    if (result != IDEM_E_STORAGE || file->error != ENOENT)
        return result;
    file->error = idemi_file_create(path, unborn, size);
    if (file->error)
        return file->error == EWOULDBLOCK ? IDEM_E_LOCK : IDEM_E_STORAGE;
    return idemi_file_take(file, path, unborn, size);
}

IDEM_API int idem_file_close(idem_file *file)
{
    int fd;

    if (!file || file->storage.ctx != file)
        return IDEMI_MISUSE();
    fd = file->fd;
    file->fd = -1;
    if (fd < 0)
        return IDEM_OK;
    // A child has the parent's lock, not one of its own: unlocking there would
    // unlock here, and without unlocking here the child would keep it.
    if (idemi_file_is_mine(file))
        (void)flock(fd, LOCK_UN);
    if (close(fd) == 0)
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
