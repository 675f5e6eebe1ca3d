#!/usr/bin/env python3
# SPDX-License-Identifier: 0BSD
"""A second reader of the journal's format, written from the description.

    history FIRST COUNT | reader.py       compares: each line is a journal, and
                                          what idem.h finds in it

It shares nothing with idem.h but its comments >>format, >>recovery and >>hash:
if these are not enough to write it, they have a fault.  Python, and slow.
"""
import json
import sys
from dataclasses import dataclass, field, replace

SIPHASH, HALFSIPHASH, FNV = 1, 2, 3
IN_PROGRESS, COMPLETED, FAILED = 1, 2, 3
M32 = 0xffffffff


# ------------------------------------------------------------------- hashes

# By bits: the words that it starts from, and by how much they are rotated.
SIP = {
    64: ((0x736f6d6570736575, 0x646f72616e646f6d, 0x6c7967656e657261,
          0x7465646279746573), (13, 16, 17, 21, 32)),
    32: ((0, 0, 0x6c796765, 0x74656462), (5, 8, 13, 7, 16)),
}


def sip(secret, data, bits, strong=False):
    """The first 32 bits of SipHash-1-3 (bits 64) or HalfSipHash-1-3 (32); if it
    is to be strong all 64 bits of 2-4."""
    size = bits // 8
    mask = (1 << bits) - 1
    v, (a, b, c, d, half) = SIP[bits]
    k0 = int.from_bytes(secret[:size], "little")
    k1 = int.from_bytes(secret[size:2 * size], "little")
    v = [v[0] ^ k0, v[1] ^ k1, v[2] ^ k0, v[3] ^ k1]
    twice = strong and bits == 32
    if twice:
        v[1] ^= 0xee

    def rotate(x, n):
        return ((x << n) | (x >> (bits - n))) & mask

    def round_():
        v[0] = (v[0] + v[1]) & mask
        v[1] = rotate(v[1], a) ^ v[0]
        v[0] = rotate(v[0], half)
        v[2] = (v[2] + v[3]) & mask
        v[3] = rotate(v[3], b) ^ v[2]
        v[0] = (v[0] + v[3]) & mask
        v[3] = rotate(v[3], d) ^ v[0]
        v[2] = (v[2] + v[1]) & mask
        v[1] = rotate(v[1], c) ^ v[2]
        v[2] = rotate(v[2], half)

    padded = data + bytes(size - 1 - len(data) % size) + bytes([len(data) & 255])
    for at in range(0, len(padded), size):
        word = int.from_bytes(padded[at:at + size], "little")
        v[3] ^= word
        for _ in range(1 + strong):
            round_()
        v[0] ^= word
    v[2] ^= 0xee if twice else 0xff
    for _ in range(3 + strong):
        round_()
    if twice:
        low = v[1] ^ v[3]
        v[1] ^= 0xdd
        for _ in range(4):
            round_()
        return (v[1] ^ v[3]) << 32 | low
    if strong:
        return v[0] ^ v[1] ^ v[2] ^ v[3]
    return (v[0] ^ v[1] ^ v[2] ^ v[3] if bits == 64 else v[1] ^ v[3]) & M32


def fnv1a(data, value=0x811c9dc5, prime=0x01000193, mask=M32):
    for byte in data:
        value = (value ^ byte) * prime & mask
    return value


def strong_hash(device, data):
    """As fingerprints are made; 8 bytes, as they are stored."""
    if device.hash == SIPHASH:
        value = sip(device.secret, data, 64, True)
    elif device.hash == HALFSIPHASH:
        value = sip(device.secret[:8], data, 32, True)
    else:
        value = fnv1a(data + len(data).to_bytes(8, "little"),
                      0xcbf29ce484222325, 0x100000001b3, (1 << 64) - 1)
    return value.to_bytes(8, "little")


def index_hash(device, scope, key):
    data = scope + key + bytes([len(scope)])
    if device.hash == SIPHASH:
        return sip(device.secret, data, 64)
    if device.hash == HALFSIPHASH:
        return sip(device.secret[8:], data, 32)
    return fnv1a(data)


# ------------------------------------------------------------------- storage

def le32(number):
    return number.to_bytes(4, "little")


class Device:
    """The storage's bytes, and how they came to be."""

    def __init__(self, d):
        vars(self).update(d)
        self.secret = bytes.fromhex(d["secret"])
        self.bytes = bytes.fromhex(d["bytes"])
        self.front = self.whole(HEADER)
        self.layout = index_hash(self, self.same_in_headers(), self.secret[:8])
        self.record_max = self.longest_record()

    def whole(self, n):
        return -(-n // self.granule) * self.granule

    def sector(self, sequence):
        at = sequence % self.sector_count * self.sector_size
        return self.bytes[at:at + self.sector_size]

    def longest_record(self):
        whole = self.whole(52 + self.key_max + self.response_max +
                           self.state_max)
        return -(-whole // 4) * 4

    def same_in_headers(self):
        return (b"idem" + bytes([4, self.hash]) +
                self.granule.to_bytes(2, "little") +
                self.sector_size.to_bytes(3, "little") + bytes([self.erased]) +
                self.sector_count.to_bytes(2, "little") + bytes(2))

    def check(self, sequence, offset, data):
        return index_hash(self, le32(sequence) + le32(offset ^ self.layout),
                          data)


# ------------------------------------------------------------------- headers

HEADER = 56


@dataclass
class Header:
    first: bool                 # of a boot
    sequence: int
    tail: int                   # oldest sector needed
    previous: int               # the sector before it that counts, 0: none
    previous_end: int           # where that one's records end
    relocated_end: int
    batched: bool               # durable with idem_sync only
    time: int
    retention: int              # default values of the records' numbers
    response_max: int
    longest: int                # bytes of the longest record then


def header_of(device, data):
    """A header from its bytes, if they are right."""
    words = [int.from_bytes(data[i:i + 4], "little")
             for i in range(0, HEADER, 4)]
    unsummed = data[:14] + bytes(2) + data[16:HEADER - 4]
    if words[13] != device.check(0, 0, unsummed):
        return None
    return Header(bool(words[7] >> 24), words[4], words[5], words[6],
                  words[7] & 0xffffff, words[8] & 0xffffff,
                  bool(words[8] >> 24), words[9], words[11],
                  words[12] & 0xffff, words[12] >> 16 << 2)


def repaired_header(device, data):
    """The header that bytes are, even if one bit is wrong."""
    other = int.from_bytes(data[:4], "little") ^ int.from_bytes(b"idem",
                                                              "little")
    if bin(other).count("1") > 1:
        return None
    header = header_of(device, data)
    for bit in range(8 * HEADER):
        if header:
            break
        other = bytearray(data)
        other[bit // 8] ^= 1 << bit % 8
        header = header_of(device, bytes(other))
    return header


def find_header(device, position):
    """The header in a physical sector, if it is valid."""
    header = repaired_header(device, device.sector(position)[:HEADER])
    if header and header.sequence % device.sector_count == position and \
            header.sequence - header.tail & M32 < device.sector_count:
        return header
    return None


# ------------------------------------------------------------------- records

UNDELIVERED, HAS_KEY, INTERRUPTED, HAS_STATE, DURABLE = 4, 8, 0x10, 0x20, 0x40
IS_SENDER, ALL_GONE = UNDELIVERED, INTERRUPTED  # with neither status nor key
REPLACES = UNDELIVERED          # with a key, and not finished
NO_CLAIM, OTHER_CLAIM = 1, 2
NUMBER = 8                      # bytes
RETENTION_MAX = 2592000000      # 30 days
SWEEP = 1 << 28                 # 3.1 days


@dataclass
class Record:
    """In a slot it is what is known of the key."""
    at: int
    end: int                    # where the next one may begin
    status: int
    flags: int
    relocated: bool
    slot: int
    time: int                   # since the one before; in a slot that of its
                                # completion, or of the restart
    code: int = 0
    scope: bytes = b""
    key: bytes = b""
    is_number: bool = False
    fingerprint: int = 0
    attempts: int = 1
    retention: int = 0
    token: int = 0
    age: int = 0
    sender: bytes = b""
    floor: tuple = (0, 0)       # epoch, sequence
    state: bytes = b""
    response: bytes = b""
    orphan: int = 0             # bound to a claim that is not there
    fits: bool = True           # into the configuration
    interrupted: bool = False   # in a slot
    undelivered: bool = False


class Cursor:
    """Takes fields off bytes."""

    def __init__(self, data):
        self.data = data
        self.at = 0
        self.options = 0

    def take(self, n):
        if n > len(self.data) - self.at:
            raise ValueError
        self.at += n
        return self.data[self.at - n:self.at]

    def varint(self):
        value = shift = 0
        while True:
            byte = self.take(1)[0]
            value |= (byte & 0x7f) << shift
            shift += 7
            if not byte & 0x80:
                return value & M32
            if shift >= 35:
                raise ValueError

    def optional(self, default):
        there = self.options & 1
        self.options >>= 1
        return self.varint() if there else default


def number_of(data):
    """Epoch and sequence: so one is above the other, or not."""
    return (int.from_bytes(data[4:], "little"),
            int.from_bytes(data[:4], "little"))


def fits(device, r):
    """Whether the configuration allows what was read.  (Without senders no number
    is written: how many senders there are does not count here.)"""
    return r.slot <= device.capacity and \
        (r.slot or not r.status and (r.is_number or not r.key)) and \
        len(r.state) <= device.state_max and \
        len(r.scope) + len(r.key) <= device.key_max and \
        len(r.response) <= device.response_max and \
        r.attempts and r.retention <= RETENTION_MAX


def orphan_of(r, slot, rest):
    """What a bound record lacks; `rest` is what its check leaves."""
    if r.status in (COMPLETED, FAILED):
        there = slot and slot.status == IN_PROGRESS and not slot.interrupted
    else:
        there = slot and slot.status != IN_PROGRESS
    if not there:
        return NO_CLAIM
    return 0 if rest == slot.token * 0x9E3779B1 & 0xffff0000 else OTHER_CLAIM


def record_of(device, header, at, slots):
    """The record at an offset in a sector, if there is one."""
    sequence = header.sequence
    data = device.sector(sequence)[at:]
    if len(data) < 8 or not data[0] & 0x80 or data[0] == 0xff:
        return None
    cursor = Cursor(data)
    flags = cursor.take(1)[0]
    status = flags & 3
    finished = status in (COMPLETED, FAILED)
    replaces = not finished and flags & HAS_KEY and flags & REPLACES
    token = sequence * device.sector_size + at & M32
    try:
        options = cursor.take(1)[0]
        relocated = bool(options & 0x80)
        cursor.options = options & 0x7f
        r = Record(at, 0, status, flags, relocated, cursor.varint(),
                   cursor.varint())
        if finished or replaces:
            code = cursor.optional(0)
            r.code = code - (1 << 32) if code >> 31 else code
            response_len = cursor.optional(header.response_max)
        if flags & HAS_KEY:
            scope_len = cursor.optional(0)
            r.attempts = cursor.optional(1)
            r.retention = cursor.optional(header.retention)
            r.token = cursor.optional(token)
            r.age = cursor.optional(0)
            key_len = cursor.varint()
            r.fingerprint = int.from_bytes(cursor.take(8), "little")
            r.is_number = key_len == 0
            r.scope = cursor.take(scope_len)
            r.key = cursor.take(key_len or NUMBER)
        if status == 0 and flags & IS_SENDER and not flags & HAS_KEY:
            r.sender = cursor.take(8)
            r.floor = number_of(cursor.take(NUMBER))
        if flags & HAS_STATE:
            r.state = cursor.take(cursor.varint())
        if finished:
            r.response = cursor.take(response_len)
        length = cursor.at
        check = int.from_bytes(cursor.take(4), "little")
    except ValueError:
        return None
    if length + 4 > device.record_max or cursor.options or \
            relocated != (at < header.relocated_end):
        return None
    check ^= device.check(sequence, at, data[:length])
    if status and not flags & HAS_KEY and not check & 0xffff:
        r.orphan = orphan_of(r, slots.get(r.slot), check)
        check = 0
    if check:
        return None
    r.fits = fits(device, r)
    r.end = at + device.whole(length + 4)
    return r


# ------------------------------------------------------------------ recovery

@dataclass
class Table:
    slots: dict = field(default_factory=dict)
    floors: dict = field(default_factory=dict)  # by the scope's strong hash
    gone: dict = field(default_factory=dict)    # numbers, likewise
    state: bytes = b""
    time: int = 0
    swept: int = 0
    lost: set = field(default_factory=set)      # by which rules
    opened: bool = True


def interrupt(table):
    for slot in table.slots.values():
        if slot.status == IN_PROGRESS and not slot.interrupted:
            slot.interrupted = True
            slot.time = table.time


def is_ahead(ms):
    return ms & M32 <= 0xd0000000


def raise_floor(table, sender, number):
    table.floors[sender] = max(number, table.floors.get(sender, (0, 0)))


def has_gone(device, table, slot):
    """Whether a sender's record has it gone, of the floor's epoch."""
    if not slot.is_number:
        return False
    sender = strong_hash(device, slot.scope)
    gone, number = table.gone.get(sender, (0, 0)), number_of(slot.key)
    return number[0] == gone[0] == table.floors[sender][0] and \
        number[1] <= gone[1]


def comes(device, table, slot):
    """A number raises its sender's floor to its epoch.  It is not gone, nor are
    those above it, whatever a record before it has."""
    if slot.is_number:
        sender, number = strong_hash(device, slot.scope), number_of(slot.key)
        raise_floor(table, sender, (number[0], 0))
        if has_gone(device, table, slot):
            table.gone[sender] = (number[0], number[1] - 1)


def apply_sender(device, table, r):
    """Applies a sender's record: it was forgotten; or its floor, and whether
    all numbers up to that are gone."""
    if r.floor == (0, 0):
        table.slots = {n: slot for n, slot in table.slots.items()
                       if strong_hash(device, slot.scope) != r.sender}
        table.floors.pop(r.sender, None)
        table.gone.pop(r.sender, None)
        return
    if r.flags & ALL_GONE:
        gone = table.gone.get(r.sender, (0, 0))
        if gone[0] != r.floor[0] or gone < r.floor:
            table.gone[r.sender] = r.floor
        table.floors[r.sender] = r.floor
    raise_floor(table, r.sender, r.floor)


def replace_sender(device, table, low):
    """The sender whose hash has this low word has lost its entry: its numbers
    were gone, and its floor goes."""
    table.floors = {sender: floor for sender, floor in table.floors.items()
                    if int.from_bytes(sender[:4], "little") != low}
    table.gone = {sender: gone for sender, gone in table.gone.items()
                  if sender in table.floors}
    table.slots = {n: slot for n, slot in table.slots.items()
                   if not slot.is_number or
                   strong_hash(device, slot.scope) in table.floors}


def expires(device, table, slot):
    """A number raises its sender's floor to itself then."""
    if slot.is_number:
        raise_floor(table, strong_hash(device, slot.scope),
                    number_of(slot.key))


def sweep(device, table):
    """Keys that have expired are removed."""
    for n, slot in list(table.slots.items()):
        if table.time - slot.time & M32 >= slot.retention and \
                (slot.status != IN_PROGRESS or slot.interrupted):
            expires(device, table, slot)
            del table.slots[n]
    table.swept = table.time


def advance(device, table, time):
    """Time goes on, with a sweep on the way each time that 2^28 ms have
    passed, for times wrap."""
    if not is_ahead(time - table.time):
        return
    passed = time - table.time & M32
    while passed >= SWEEP - (table.time - table.swept & M32):
        step = SWEEP - (table.time - table.swept & M32)
        table.time = table.time + step & M32
        passed -= step
        sweep(device, table)
    table.time = table.time + passed & M32


def hold(table, time):
    """Time goes on, and no key ages."""
    later = time - table.time
    if is_ahead(later):
        for slot in table.slots.values():
            slot.time += later
        table.swept += later
        table.time = time


def is_past(device, table, slot):
    """Whether a slot has a claim of an older epoch than its sender's."""
    return (slot.is_number and slot.status == IN_PROGRESS and
            number_of(slot.key)[0] <
            table.floors.get(strong_hash(device, slot.scope), (0, 0))[0])


def apply(device, table, r):
    """Applies a record to the table."""
    time = table.time
    if r.orphan or not r.fits:
        return
    if r.sender:
        apply_sender(device, table, r)
    if r.status < COMPLETED and r.flags & HAS_KEY and r.flags & REPLACES:
        replace_sender(device, table, r.code & M32)
    if r.flags & HAS_STATE:
        table.state = r.state
    if r.flags & HAS_KEY:
        for slot in table.slots.values():
            if (slot.scope, slot.key, slot.is_number) == \
                    (r.scope, r.key, r.is_number):
                r.age = min(r.age, time - slot.time & M32)
        table.slots = {n: slot for n, slot in table.slots.items()
                       if (slot.scope, slot.key, slot.is_number) !=
                       (r.scope, r.key, r.is_number)}
        if r.slot in table.slots:
            expires(device, table, table.slots.pop(r.slot))
        if r.status == 0 and r.flags & INTERRUPTED:     # it had left
            expires(device, table, r)
            return
        table.slots[r.slot] = replace(r, status=IN_PROGRESS, time=time - r.age,
                                      interrupted=bool(r.flags & INTERRUPTED))
        comes(device, table, r)
    slot = table.slots.get(r.slot)
    if not slot:
        return
    if r.status in (COMPLETED, FAILED):
        slot.status = r.status
        slot.code = r.code
        slot.response = r.response
        slot.undelivered = bool(r.flags & UNDELIVERED)
        slot.time = time - r.age
    elif r.status == 0:
        del table.slots[r.slot]
    elif not r.flags & HAS_KEY:
        slot.undelivered = False


def is_unproven(r, at, expected):
    """Whether an orphan may be none that was written; `expected`: the end of
    the record before it."""
    return r.orphan == OTHER_CLAIM or r.orphan and at != expected


def read_sector(device, table, header, named_by):
    """The records of a sector; `named_by`: the last header that names it.
    Returns whether any are lost, or may be torn: no key ages until the next
    header."""
    at = expected = device.front
    dirty = 0
    end = named_by.previous_end if named_by else device.sector_size
    gap, lost = False, set()
    orphan_time = 0                     # of the record before
    while at < end:
        r = record_of(device, header, at, table.slots)
        if not r:
            if device.sector(header.sequence)[at] != device.erased:
                dirty = at
            at += device.granule
            continue
        gap = gap or at > expected
        if gap and (expected < header.relocated_end or r.flags & DURABLE):
            lost.add("D1" if expected < header.relocated_end else "D2")
            gap = False
        if is_unproven(r, at, expected):
            gap = gap or r.orphan == OTHER_CLAIM
            expected = r.end
            at += device.granule
            continue
        advance(device, table, table.time + orphan_time)
        orphan_time = r.time if r.orphan else 0
        advance(device, table, table.time + r.time - orphan_time)
        apply(device, table, r)
        if not r.fits and not r.orphan:
            lost.add("D8")
        expected = at = r.end
    if gap and named_by and named_by.first:
        while at < device.sector_size:
            r = record_of(device, header, at, table.slots)
            if r:
                if not r.orphan:
                    advance(device, table, table.time + r.time)
                if r.flags & DURABLE:
                    lost.add("D2")
                break
            at += device.granule
    if named_by and (expected < end or
                     gap and not (header.batched and named_by.first)):
        lost.add("D3")
    if not named_by and expected < header.relocated_end:
        lost.add("D1")
    if not named_by and not header.batched and \
            dirty >= expected + device.record_max:
        lost.add("D4")
    if header.longest > device.record_max and (gap or dirty >= expected):
        lost.add("D9")
    table.lost |= lost
    return bool(lost) or gap


def has_record(device, header, at, slots=None):
    """Whether there is one that was not relocated; with slots, one of a slot, a
    refused number or a sender."""
    while at < device.sector_size:
        r = record_of(device, header, at, slots or {})
        if r and (slots is None or r.sender or r.key or
                  r.slot and not r.orphan):
            return True
        at += device.granule
    return False


def counts(device, header):
    """Whether a sector does: it has a commit record after all that was
    relocated, or any record after that."""
    at = device.front
    while at < header.relocated_end:
        r = record_of(device, header, at, {})
        if not r:
            break
        at = r.end
    if at != header.relocated_end:
        at = header.relocated_end + device.granule
    return has_record(device, header, at)


def is_stale(device, table, headers, header):
    """Whether a sector between it and the one that it names was a head."""
    between = [h for h in headers.values()
               if header.previous < h.sequence < header.sequence and
               header.sequence - h.sequence < device.sector_count and
               has_record(device, h, h.relocated_end + device.granule)]
    if between:
        table.lost.add("D10")
    return bool(between)


def is_skipped(header, newer):
    """No header names it, and the next one names an older one."""
    named = [after.previous for after in newer]
    return header.sequence not in named and named[0] < header.sequence


def sectors_that_count(table, headers, head):
    """Oldest first.  One that is named, and not there, is lost."""
    sectors = [h for s, h in sorted(headers.items())
               if head.tail <= s <= head.sequence]
    sectors = [h for i, h in enumerate(sectors)
               if h is head or not is_skipped(h, sectors[i + 1:])]
    named = sectors[0].previous if sectors[0].sequence == head.tail else 0
    for header in sectors:
        if header.previous != named:
            table.lost.add("D5")
        named = header.sequence
    return sectors


def look_for_headless(device, table, headers, head):
    """Records after the head whose header is damaged.  True if there are."""
    found = False
    for sequence in (head + 1, head + 2):
        stands = [s for s in headers
                  if (s - sequence) % device.sector_count == 0]
        beyond = Header(False, sequence, 0, 0, 0, 0, False, 0,
                        device.retention, device.response_max,
                        device.record_max)
        if not stands and has_record(device, beyond, device.front,
                                     table.slots):
            table.lost.add("D6")
            found = True
    return found


def look_for_overwritten(device, table, headers):
    """Sectors that a header names, under an older header."""
    for header in headers.values():
        stands = [s for s in headers
                  if (s - header.previous) % device.sector_count == 0]
        if header.previous and stands and stands[0] < header.previous:
            table.lost.add("D7")


def has_other_header(device, n):
    """Whether the whole header of another journal begins in a physical sector."""
    size = device.sector_size
    data = device.bytes[n * size:(n + 1) * size + HEADER - 1]
    for at in range(len(data) - HEADER + 1):
        header = data[at:at + HEADER]
        pairs = sum(int.from_bytes(header[i:i + 2], "little")
                    for i in range(0, HEADER, 2))
        whole = header[4] in (1, 2) or \
            (pairs % 0xffff == 0 and header[52:] != header[11:12] * 4)
        own = None if at else repaired_header(device, header)
        if header[:4] == b"idem" and whole and \
                not (own and own.sequence % device.sector_count == n):
            return True
    return False


def is_blank(device):
    erased = bytes([device.erased]) * device.sector_size
    return all(device.sector(n) == erased or
               1 <= n <= 3 and not has_other_header(device, n)
               for n in range(device.sector_count))


def read(device):
    """What an opening finds."""
    table = Table()
    headers = {}
    for position in range(device.sector_count):
        header = find_header(device, position)
        if header:
            headers[header.sequence] = header
    newest_first = [headers[s] for s in sorted(headers, reverse=True)
                    if s + device.sector_count > max(headers)]
    head = next((h for h in newest_first if counts(device, h) and
                 not is_stale(device, table, headers, h)), None)
    if newest_first and not head and newest_first[-1].previous:
        table.lost.add("D5")
    if head and max(headers) - head.tail >= device.sector_count:
        table.lost.add("D5")
    sectors = sectors_that_count(table, headers, head) if head else []
    if head:
        table.time = table.swept = sectors[0].time
    lost = False
    for header, after in zip(sectors, sectors[1:] + [None]):
        if lost:
            hold(table, header.time)
        advance(device, table, header.time)
        if header.first:
            interrupt(table)
        named = after and after.previous == header.sequence
        lost = read_sector(device, table, header, after if named else None)
    newest = head.sequence if head else 0
    headless = look_for_headless(device, table, headers, newest)
    look_for_overwritten(device, table, headers)
    interrupt(table)
    table.slots = {n: slot for n, slot in table.slots.items()
                   if not has_gone(device, table, slot)}
    table.opened = bool(headers or headless or is_blank(device))
    return table


# ---------------------------------------------------------------- comparison

def found_in(device, table, scopes):
    """The same as in a line of history."""
    keys = []
    for slot in table.slots.values():
        age = (table.time - slot.time) & M32
        if age >= slot.retention or is_past(device, table, slot):
            expires(device, table, slot)
            continue
        key = {"scope": slot.scope.hex(), "key": slot.key.hex(),
               "is_number": int(slot.is_number),
               "status": slot.status, "attempts": slot.attempts,
               "fingerprint": slot.fingerprint}
        if slot.status != IN_PROGRESS:
            key.update(code=slot.code, age=age, left=slot.retention - age,
                       undelivered=int(slot.undelivered),
                       response=slot.response.hex())
        keys.append(key)
    floors = {scope: list(table.floors.get(
        strong_hash(device, scope.encode()), (0, 0))) for scope in scopes}
    return {"opened": int(table.opened),
            "keys": sorted(keys, key=lambda k: (k["scope"], k["key"])),
            "floors": floors,
            "state": table.state.hex(), "lost": int(bool(table.lost))}


SCOPES = ["", "a", "ab", "abc"] # whose floors are in a line of history


def main():
    passed = failed = 0
    rules = {f"D{n}": 0 for n in range(1, 11)}
    for line in sys.stdin:
        d = json.loads(line)
        device = Device(d)
        table = read(device)
        for rule in table.lost:
            rules[rule] += 1
        found = found_in(device, table, SCOPES)
        d["keys"].sort(key=lambda k: (k["scope"], k["key"]))
        wrong = [name for name in found if found[name] != d[name]]
        if not wrong or not (found["opened"] or d["opened"]):
            passed += 1
            continue
        failed += 1
        for name in wrong:
            print(f"seed {d['seed']}, {name}:\n  idem.h     {d[name]}\n"
                  f"  the format {found[name]} {sorted(table.lost)}")
    print("losses:", ", ".join(f"{n} by {rule}" for rule, n in rules.items()))
    print(f"format: {passed} passed, {failed} failed")
    sys.exit(1 if failed or not passed else 0)


main()
