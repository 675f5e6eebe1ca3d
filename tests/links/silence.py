#!/usr/bin/env python3
# SPDX-License-Identifier: 0BSD
"""silence.py CLOCK: a CoAP server that does not answer the command k0, and
to each other answers once: busy.  Sets the sender's clock ahead, in the
file CLOCK: for k0 to half an hour, and then to after its deadline.  Prints the
port that it listens at; when all others are done

- how many of the messages of k0 were older than their age, by minutes;
- how many of them came after its deadline;
- for how many of the others a second message came later than after a second.
  The first wait is at most half of that."""
import os
import re
import socket
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../servers"))
from ahead import set_ahead

BUSY, CHANGED = 0xa3, 0x44
COUNT, SILENT_S, DEADLINE_S, OLDER_S = 24, 1800, 43200, 300


class Server:
    def __init__(self, path):
        self.clock, self.now_s = path, 0
        self.link = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.link.bind(("127.0.0.1", 0))
        print(self.link.getsockname()[1], flush=True)

    def go_on(self, seconds):
        """The sender's clock"""
        self.now_s += seconds
        set_ahead(self.clock, seconds)

    def receive(self, seconds=0.03):
        """The key and the age in the next message; None: nothing comes"""
        self.link.settimeout(seconds)
        try:
            self.message, self.sender = self.link.recvfrom(1500)
        except TimeoutError:
            return None
        return (re.search(rb"k\d+", self.message).group(),
                int(re.search(rb"age=(\d+)", self.message)[1]))

    def answer(self, code):
        """With the acknowledgement, if that is asked for"""
        kind = 0x50 if self.message[0] >> 4 & 1 else 0x60
        end = 4 + (self.message[0] & 15)
        self.link.sendto(bytes([kind | end - 4, code]) + self.message[2:end],
                         self.sender)

    def be_silent(self):
        older, stale, _ = 0, 0, self.receive(60)
        while self.now_s < SILENT_S:
            got = self.receive(0.01)
            if got:
                older += self.now_s > got[1] + OLDER_S
            self.go_on(5)
        self.go_on(DEADLINE_S)
        time.sleep(0.2)
        while got := self.receive(0.01):    # on its way, or sent after that
            stale += got[1] > DEADLINE_S
        return older, stale

    def be_busy(self, stale):
        """Until all are done; or something of k0 has come, or nothing comes"""
        busy_s, done, late = {}, set(), 0
        end = time.monotonic() + 240    # a busy machine takes that long
        while len(done) < COUNT and stale < 3 and time.monotonic() < end:
            key, _ = self.receive() or (None, None)
            if key is None:
                self.go_on(0.25 if busy_s else 5)
            elif key == b"k0":
                stale += 1
            elif key not in busy_s:
                busy_s[key] = self.now_s
                self.answer(BUSY)
            else:
                late += key not in done and self.now_s > busy_s[key] + 1
                done.add(key)
                self.answer(CHANGED)
        return stale, len(done), late


def main(path):
    server = Server(path)
    older, stale = server.be_silent()
    stale, done, late = server.be_busy(stale)
    print(f"{older} older, {stale} after the deadline, {done} others:",
          "late" if late > COUNT / 3 else "soon")


main(sys.argv[1])
