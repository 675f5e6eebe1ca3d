#!/usr/bin/env python3
# SPDX-License-Identifier: 0BSD
"""Senders to examples/burst.c.

burst.py together PORT PID ADDRESS TEXT...
    Sends the texts from an address while the server is suspended, so that it
    receives them at once; prints what it answers.  {N} is key N, \\x00 a byte.
burst.py send PORT ADDRESS FIRST COUNT SEED
    Sends as many commands, from number FIRST on, until each has its outcome;
    now and then one that has it.  Prints lines ID ML, "poured" or
    "interrupted"; and how many were sent again."""
import os
import random
import re
import signal
import socket
import sys
import time

LAST = "f" * 32         # a key: its answer comes after those of all others
WINDOW = 40             # commands under way
GIVE_UP_S = 120


def key(number):
    return f"{number:032x}"


def link_from(address, seconds):
    link = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    link.bind((address, 0))
    link.settimeout(seconds)
    return link


def suspend(pid):
    os.kill(pid, signal.SIGSTOP)
    while True:
        with open(f"/proc/{pid}/stat", encoding="ascii") as stat:
            if stat.read().rpartition(")")[2].split()[0] in "Tt":
                return
        time.sleep(0.01)


def together(port, pid, address, texts):
    link = link_from(address, GIVE_UP_S)
    suspend(pid)
    for text in texts + [LAST + " 1"]:
        text = re.sub(r"{(\d+)}", lambda m: key(int(m[1])), text)
        text = text.encode().decode("unicode_escape").encode("latin1")
        link.sendto(text, ("127.0.0.1", port))
    os.kill(pid, signal.SIGCONT)
    while True:
        got, _, text = link.recv(1500).decode().partition(" ")
        if got == LAST:
            break
        print(int(got, 16), text)


class Sender:
    def __init__(self, port, address, seed):
        self.link = link_from(address, 0.05)
        self.port, self.chance = port, random.Random(seed)
        self.replayed, self.outcomes = 0, {}

    def receive(self, amounts):
        """Notes what is answered, until nothing more comes."""
        while True:
            try:
                answer = self.link.recv(1500).decode()
            except TimeoutError:
                return
            name, _, text = answer.partition(" ")
            if text.startswith("retry "):
                continue
            if text not in (f"done {amounts[name]} ml",
                            "failed look into the log"):
                sys.exit(f"wrong: {answer}")
            if self.outcomes.setdefault(name, text) != text:
                sys.exit(f"another outcome: {answer}")

    def run(self, amounts):
        began = time.monotonic()
        while len(self.outcomes) < len(amounts):
            if time.monotonic() - began > GIVE_UP_S:
                sys.exit("given up")
            names = [n for n in amounts if n not in self.outcomes][:WINDOW]
            again = self.chance.sample(sorted(self.outcomes),
                                       min(4, len(self.outcomes)))
            self.replayed += len(again)
            for name in self.chance.sample(names + again, len(names + again)):
                self.link.sendto(f"{name} {amounts[name]}".encode(),
                                 ("127.0.0.1", self.port))
            self.receive(amounts)


def send(port, address, first, count, seed):
    sender = Sender(port, address, seed)
    amounts = {key(i): 1 + i * 7 % 9 for i in range(first, first + count)}
    sender.run(amounts)
    scope = socket.inet_aton(address).hex()
    for name, text in sender.outcomes.items():
        print(f"{scope}/{name}", amounts[name],
              "poured" if text.startswith("done") else "interrupted")
    print("replayed", sender.replayed)


def main(what, *words):
    if what == "together":
        together(int(words[0]), int(words[1]), words[2], list(words[3:]))
    else:
        send(int(words[0]), words[1], *map(int, words[2:]))


main(*sys.argv[1:])
