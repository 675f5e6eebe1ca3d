#!/usr/bin/env python3
# SPDX-License-Identifier: 0BSD
"""A second reader of the journal's format, written from the description.

    history FIRST COUNT | reader.py       compares: each line is a journal, and
                                          what idem.h says is in it

It shares nothing with idem.h but its comments >>format, >>recovery and >>hash:
what cannot be read from these is a fault of theirs.  Python, and slow.
"""
import json
import sys
from dataclasses import dataclass, field, replace

SIPHASH, HALFSIPHASH, FNV = 1, 2, 3
IN_PROGRESS, COMPLETED, FAILED = 1, 2, 3
M32 = 0xffffffff


# ------------------------------------------------------------------- hashes

# By bits: the words that it starts from, and by how much they are turned.
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

    def turn(x, n):
        return ((x << n) | (x >> (bits - n))) & mask

    def round_():
        v[0] = (v[0] + v[1]) & mask
        v[1] = turn(v[1], a) ^ v[0]
        v[0] = turn(v[0], half)
        v[2] = (v[2] + v[3]) & mask
        v[3] = turn(v[3], b) ^ v[2]
        v[0] = (v[0] + v[3]) & mask
        v[3] = turn(v[3], d) ^ v[0]
        v[2] = (v[2] + v[1]) & mask
        v[1] = turn(v[1], c) ^ v[2]
        v[2] = turn(v[2], half)

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
        self.shape = index_hash(self, self.same_in_headers(), self.secret[:8])
        self.record_max = self.longest_record()

    def whole(self, n):
        return -(-n // self.granule) * self.granule

    def place(self, sequence):
        at = sequence % self.sector_count * self.sector_size
        return self.bytes[at:at + self.sector_size]

    def longest_record(self):
        return self.whole(52 + self.key_max + self.response_max +
                          self.state_max)

    def same_in_headers(self):
        return (b"idem" + bytes([4, self.hash]) +
                self.granule.to_bytes(2, "little") +
                self.sector_size.to_bytes(3, "little") + bytes([self.erased]) +
                self.sector_count.to_bytes(2, "little") + bytes(2))

    def check(self, sequence, offset, data):
        return index_hash(self, le32(sequence) + le32(offset ^ self.shape),
                          data)


# ------------------------------------------------------------------- headers

HEADER = 56


@dataclass
class Header:
    first: bool                 # of a boot
    sequence: int
    tail: int                   # oldest sector needed
    before: int                 # the sector before it that counts, 0: none
    before_end: int             # where that one's records end
    carried_end: int
    batched: bool               # durable with idem_sync only
    time: int
    retention: int              # usual values of the records' numbers
    response_max: int


def header_of(device, data):
    """What bytes say, if they are right."""
    words = [int.from_bytes(data[i:i + 4], "little")
             for i in range(0, HEADER, 4)]
    unsummed = data[:14] + bytes(2) + data[16:HEADER - 4]
    if words[13] != device.check(0, 0, unsummed):
        return None
    return Header(bool(words[7] >> 24), words[4], words[5], words[6],
                  words[7] & 0xffffff, words[8] & 0xffffff, bool(words[8] >> 24),
                  words[9], words[11], words[12])


def find_header(device, place):
    """The header in a place, also if one bit of it is wrong."""
    data = device.place(place)[:HEADER]
    other = int.from_bytes(data[:4], "little") ^ int.from_bytes(b"idem", "little")
    if bin(other).count("1") > 1:
        return None
    header = header_of(device, data)
    for bit in range(8 * HEADER):
        if header:
            break
        other = bytearray(data)
        other[bit // 8] ^= 1 << bit % 8
        header = header_of(device, bytes(other))
    if header and header.sequence % device.sector_count == place and \
            header.sequence - header.tail & M32 < device.sector_count:
        return header
    return None


# ------------------------------------------------------------------- records

OWED, HAS_KEY, CUT, HAS_STATE, DURABLE = 4, 8, 0x10, 0x20, 0x40
HAS_ACCOUNT, OVER = OWED, CUT   # of status 0
NO_CLAIM, OTHER_CLAIM = 1, 2
NUMBER = 8                      # bytes


@dataclass
class Record:
    """In a slot it is what is known of the key."""
    at: int
    end: int                    # where the next one may begin
    status: int
    flags: int
    carried: bool
    slot: int
    time: int                   # since the one before; in a slot that of its
                                # completion, or of the restart that cut it
    code: int = 0
    scope: bytes = b""
    key: bytes = b""
    is_number: bool = False
    fingerprint: int = 0
    attempts: int = 1
    retention: int = 0
    token: int = 0
    age: int = 0
    account: bytes = b""
    floor: tuple = (0, 0)       # epoch, sequence
    state: bytes = b""
    response: bytes = b""
    orphan: int = 0             # what it is bound to is not there
    cut: bool = False           # in a slot
    after_gap: bool = False
    owed: bool = False


class Walk:
    """Takes fields off bytes."""

    def __init__(self, data):
        self.data = data
        self.at = 0
        self.rare_bits = 0

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

    def rare(self, usual):
        there = self.rare_bits & 1
        self.rare_bits >>= 1
        return self.varint() if there else usual


def number_of(data):
    """Epoch and sequence: so one is above the other, or not."""
    return (int.from_bytes(data[4:], "little"),
            int.from_bytes(data[:4], "little"))


def record_of(device, header, at, slots):
    """The record at an offset in a sector, if there is one."""
    sequence = header.sequence
    data = device.place(sequence)[at:]
    if len(data) < 8 or not data[0] & 0x80 or data[0] == 0xff:
        return None
    walk = Walk(data)
    flags = walk.take(1)[0]
    status = flags & 3
    finished = status in (COMPLETED, FAILED)
    token = sequence * device.sector_size + at & M32
    try:
        walk.rare_bits = walk.take(1)[0]
        carried = bool(walk.rare_bits & 0x80)
        r = Record(at, 0, status, flags, carried, walk.varint(), walk.varint())
        if finished:
            code = walk.rare(0)
            r.code = code - (1 << 32) if code >> 31 else code
            response_len = walk.rare(header.response_max)
        if flags & HAS_KEY:
            scope_len = walk.rare(0)
            r.attempts = walk.rare(1)
            r.retention = walk.rare(header.retention)
            r.token = walk.rare(token)
            r.age = walk.rare(0)
            key_len = walk.varint()
            r.fingerprint = int.from_bytes(walk.take(8), "little")
            r.is_number = key_len == 0
            r.scope = walk.take(scope_len)
            r.key = walk.take(key_len or NUMBER)
        if status == 0 and flags & HAS_ACCOUNT and not flags & HAS_KEY:
            r.account = walk.take(8)
            r.floor = number_of(walk.take(NUMBER))
        if flags & HAS_STATE:
            r.state = walk.take(walk.varint())
        if finished:
            r.response = walk.take(response_len)
        length = walk.at
        check = int.from_bytes(walk.take(4), "little")
    except ValueError:
        return None
    if carried != (at < header.carried_end) or r.slot > device.capacity or \
            not r.slot and flags & (HAS_KEY | 3) or len(r.state) > device.state_max or \
            len(r.scope) + len(r.key) > device.key_max or \
            len(r.response) > device.response_max:
        return None
    check ^= device.check(sequence, at, data[:length])
    if status and not flags & HAS_KEY and not check & 0xffff:
        slot = slots.get(r.slot)
        if not slot or (slot.status != IN_PROGRESS or slot.cut if finished
                        else slot.status == IN_PROGRESS):
            r.orphan = NO_CLAIM
        elif check != slot.token * 0x9E3779B1 & 0xffff0000:
            r.orphan = OTHER_CLAIM
        check = 0
    if check:
        return None
    r.end = at + device.whole(length + 4)
    return r


# ------------------------------------------------------------------ recovery

@dataclass
class Table:
    slots: dict = field(default_factory=dict)
    floors: dict = field(default_factory=dict)  # by the scope's strong hash
    left: dict = field(default_factory=dict)    # numbers that have, likewise
    state: bytes = b""
    time: int = 0
    lost: bool = False


def cut_short(table):
    for slot in table.slots.values():
        if slot.status == IN_PROGRESS and not slot.cut:
            slot.cut = True
            slot.time = table.time


def advance(table, time):
    if 0 < (time - table.time) & M32 < 0xf0000000:
        table.time = time & M32


def raise_floor(table, account, number):
    table.floors[account] = max(number, table.floors.get(account, (0, 0)))


def comes(device, table, slot):
    """A number raises its sender's floor to its epoch."""
    if slot.is_number:
        raise_floor(table, strong_hash(device, slot.scope),
                    (number_of(slot.key)[0], 0))


def comes_again(device, table, slot):
    """A number of which a record comes has not left, nor one above it."""
    if slot.is_number:
        sender = strong_hash(device, slot.scope)
        epoch, sequence = table.left.get(sender, (0, 0))
        if number_of(slot.key)[0] == epoch and \
                number_of(slot.key)[1] <= sequence:
            table.left[sender] = (epoch, number_of(slot.key)[1] - 1)


def has_left(device, table, slot):
    """Whether a sender's record says so, of the floor's epoch."""
    if not slot.is_number:
        return False
    sender = strong_hash(device, slot.scope)
    left, number = table.left.get(sender, (0, 0)), number_of(slot.key)
    return number[0] == left[0] == table.floors[sender][0] and \
        number[1] <= left[1]


def sender(device, table, r):
    """What a sender's record says: it was forgotten; or its floor, and whether
    all numbers up to that have left."""
    if r.floor == (0, 0):
        table.slots = {n: slot for n, slot in table.slots.items()
                       if strong_hash(device, slot.scope) != r.account}
        table.floors.pop(r.account, None)
        table.left.pop(r.account, None)
        return
    if r.flags & CUT and r.floor >= table.floors.get(r.account, (0, 0)):
        table.left[r.account] = r.floor
    raise_floor(table, r.account, r.floor)


def is_over(device, table, slot):
    """And in the end to itself."""
    if slot.is_number:
        raise_floor(table, strong_hash(device, slot.scope),
                    number_of(slot.key))


def is_past(device, table, slot):
    """Whether a slot has a claim of an older epoch than its sender's."""
    return (slot.is_number and slot.status == IN_PROGRESS and
            number_of(slot.key)[0] <
            table.floors[strong_hash(device, slot.scope)][0])


def apply(device, table, r):
    """What a record says becomes so."""
    advance(table, table.time + r.time)
    time = table.time
    if r.account:
        sender(device, table, r)
    if r.flags & HAS_STATE:
        table.state = r.state
    if r.flags & HAS_KEY:
        table.slots = {n: slot for n, slot in table.slots.items()
                       if (slot.scope, slot.key, slot.is_number) !=
                       (r.scope, r.key, r.is_number)}
        if r.slot in table.slots:
            is_over(device, table, table.slots[r.slot])
        table.slots[r.slot] = replace(r, status=IN_PROGRESS, time=time - r.age,
                                      cut=bool(r.flags & CUT))
        comes_again(device, table, r)
        comes(device, table, r)
    slot = table.slots.get(r.slot)
    if not slot or r.orphan:
        return
    if r.status in (COMPLETED, FAILED):
        if slot.status == IN_PROGRESS:
            slot.status = r.status
            slot.code = r.code
            slot.response = r.response
            slot.owed = bool(r.flags & OWED)
            slot.time = time - r.age
    elif r.status == 0:
        if r.flags & OVER:
            is_over(device, table, slot)
        del table.slots[r.slot]
    elif not r.flags & HAS_KEY:
        slot.owed = False


def read_records(device, table, header, at, end, stated, same_boot, after):
    """The records between two offsets; `after`: the next header, if it states
    the end."""
    behind = dirty = at
    gap = had_gap = False
    while at < end:
        r = record_of(device, header, at, table.slots)
        if not r:
            if device.place(header.sequence)[at] != device.erased:
                dirty = at
            at += device.granule
            continue
        gap = gap or at > behind
        had_gap = had_gap or gap
        if gap and (r.flags & DURABLE or r.carried):
            table.lost = True
            gap = False
        apply(device, table, r)
        if had_gap and not r.carried and not r.orphan and \
                r.status in (COMPLETED, FAILED):
            table.slots[r.slot].after_gap = True
        gap = gap or r.orphan == OTHER_CLAIM
        behind = at = r.end
    if behind < end or (gap and same_boot) if stated else \
            dirty >= behind + device.record_max and not header.batched:
        table.lost = True
    later = (after.time - table.time) & M32 if after else 0
    for slot in table.slots.values():
        if slot.after_gap and had_gap and later <= 0xd0000000:
            slot.time += later
        slot.after_gap = False


def has_record(device, header, at, about_a_slot, slots):
    """Whether there is one that was not carried."""
    while at < device.sector_size:
        r = record_of(device, header, at, slots)
        if r and about_a_slot and r.orphan:
            r = None
        if r and (r.slot or not about_a_slot):
            return True
        at += device.granule
    return False


def counts(device, header):
    """Whether a sector with a header may be the head."""
    at = device.front
    while at < header.carried_end:
        r = record_of(device, header, at, {})
        if not r:
            break
        at = r.end
    if at != header.carried_end:
        at = header.carried_end + device.granule
    return has_record(device, header, at, False, {})


def is_passed_over(header, behind):
    """No header names it, and the next one names an older one."""
    named = [after.before for after in behind]
    return header.sequence not in named and named[0] < header.sequence


def sectors_that_count(table, headers, head):
    """Oldest first.  Who is named, and not there, is lost."""
    sectors = [h for s, h in sorted(headers.items())
               if head.tail <= s <= head.sequence]
    sectors = [h for i, h in enumerate(sectors)
               if h is head or not is_passed_over(h, sectors[i + 1:])]
    named = sectors[0].before if sectors[0].sequence == head.tail else 0
    for header in sectors:
        if header.before != named:
            table.lost = True
        named = header.sequence
    return sectors


def read(device):
    """What an opening finds."""
    table = Table()
    headers = {}
    for place in range(device.sector_count):
        header = find_header(device, place)
        if header:
            headers[header.sequence] = header
    head = None
    for sequence in sorted(headers, reverse=True):
        if counts(device, headers[sequence]):
            head = headers[sequence]
            break
    if not head:
        # None counts; but the oldest may tell that one did.
        table.lost = bool(headers and headers[min(headers)].before)
    sectors = sectors_that_count(table, headers, head) if head else []
    if head:
        table.time = sectors[0].time
    for header, after in zip(sectors, sectors[1:] + [None]):
        named = after and after.before == header.sequence
        advance(table, header.time)
        if header.first:
            cut_short(table)
        read_records(device, table, header, device.front, header.carried_end,
                     True, True, None)
        read_records(device, table, header, header.carried_end,
                     after.before_end if named else device.sector_size, named,
                     named and not after.first, after if named else None)
    cut_short(table)
    table.slots = {n: slot for n, slot in table.slots.items()
                   if not has_left(device, table, slot)}
    for further in (1, 2):      # behind a header that is damaged
        beyond = Header(False, (head.sequence if head else 0) + further, 0, 0,
                        0, 0, False, 0, device.retention, device.response_max)
        if has_record(device, beyond, device.front, True, table.slots):
            table.lost = True
    return table


# ---------------------------------------------------------------- comparison

def told(device, table, scopes):
    """The same as a line of history says."""
    keys = []
    for slot in table.slots.values():
        age = (table.time - slot.time) & M32
        if age >= slot.retention or is_past(device, table, slot):
            is_over(device, table, slot)
            continue
        key = {"scope": slot.scope.hex(), "key": slot.key.hex(),
               "is_number": int(slot.is_number),
               "status": slot.status, "attempts": slot.attempts,
               "fingerprint": slot.fingerprint}
        if slot.status != IN_PROGRESS:
            key.update(code=slot.code, age=age, left=slot.retention - age,
                       owed=int(slot.owed), response=slot.response.hex())
        keys.append(key)
    floors = {scope: list(table.floors.get(
        strong_hash(device, scope.encode()), (0, 0))) for scope in scopes}
    return {"keys": sorted(keys, key=lambda k: (k["scope"], k["key"])),
            "floors": floors,
            "state": table.state.hex(), "lost": int(table.lost)}


SCOPES = ["", "a", "ab", "abc"] # of which a line of history tells the floors


def main():
    passed = failed = 0
    for line in sys.stdin:
        d = json.loads(line)
        device = Device(d)
        found = told(device, read(device), SCOPES)
        d["keys"].sort(key=lambda k: (k["scope"], k["key"]))
        wrong = [name for name in found if found[name] != d[name]]
        if not wrong or not d["opened"]:
            passed += 1
            continue
        failed += 1
        for name in wrong:
            print(f"seed {d['seed']}, {name}:\n  idem.h says {d[name]}\n"
                  f"  the format  {found[name]}")
    print(f"format: {passed} passed, {failed} failed")
    sys.exit(1 if failed or not passed else 0)


main()
