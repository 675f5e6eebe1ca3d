#!/usr/bin/env python3
# SPDX-License-Identifier: 0BSD
"""Each rule of idem.h has a test: a bug of faults.txt breaks it, or a unit test
has its number in its name (s1_ ... l3_).  Prints the rules that have none, and
those that are named but are not in the header.
"""
import glob
import re
import sys

from faults import read_list

# Rules that no code can break, and why
EXCEPTIONS = {
    "H1": "it says what is not promised",
}

# Where a line begins: "S1  At", "S10 An", "V1. at"; after R1 "a. A" is R1a.
LABEL = re.compile(r"^ +(?:([A-Z]\d+)(?:\.|  | (?=[A-Z]))|([a-z])\. [A-Z])",
                   re.M)
TEST = re.compile(r"\b((?:[sl]\d+_)+)[a-z]+_[a-z]")


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def defined():
    """The rules of the header."""
    rules, last = set(), ""
    for rule, letter in LABEL.findall(read("idem.h")):
        last = rule or last
        rules.add(last + letter)
    return rules


def tested():
    """The rules in the names of unit tests."""
    rules = set()
    for path in glob.glob("tests/unit/*.c"):
        for start in TEST.findall(read(path)):
            rules.update(start.upper().split("_")[:-1])
    return rules


def main():
    rules = defined()
    broken = {rule for fault in read_list() for rule in fault.rules}
    wrong = ["%s: no bug of faults.txt breaks it, and no unit test is named "
             "after it" % rule
             for rule in rules - broken - tested() - set(EXCEPTIONS)]
    wrong += ["%s: idem.h has no such rule" % rule
              for rule in broken.union(EXCEPTIONS) - rules]
    for line in sorted(wrong):
        print("rules:", line)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
