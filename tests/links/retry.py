#!/usr/bin/env python3
# SPDX-License-Identifier: 0BSD
"""retry.py FOLDER: what outbox.py in FOLDER answers to the lines of retry.c.
retry.py FOLDER SEED COUNT: prints random lines of that kind."""
import random
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[1])
import outbox  # noqa: E402


def answer(line):
    *numbers, name = line.split()[:8]
    base, cap, deadline, times, elapsed, wait, chance = map(int, numbers)
    verdict, delay = outbox.retry(name, times, elapsed, wait, chance, base, cap,
                                  deadline)
    return " ".join([*line.split()[:8], verdict.replace(" ", "-")] +
                    ([] if delay is None else [str(delay)]))


def number(chance):
    """Of any size, each size as likely"""
    return chance.getrandbits(chance.randrange(33))


if sys.argv[2:]:
    luck = random.Random(int(sys.argv[2]))
    names = [*outbox.VERDICTS, "BUSY", "E_FULL", "SILENCE", "SILENCE",
             "RELEASED", "E_STORAGE", "NEWER"]
    for _ in range(int(sys.argv[3])):
        print(*(number(luck) for _ in range(7)), luck.choice(names))
else:
    for given in sys.stdin:
        print(given.strip() if given[0] == "#" else answer(given))
