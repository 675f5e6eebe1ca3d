#!/usr/bin/env python3
# SPDX-License-Identifier: 0BSD
"""Injects the bugs of faults.txt into copies of idem.h, one in each.  Each must
be found: those under [crash] by the power-cut explorer, the others by any test.
It is a failure too if the old text of a bug is no longer in the header.

    faults.py [NAME...]         all, or these
    SHORT=1 faults.py           those with a star
    IDEM_ALL=1                  the explorer tries them all, the others too
"""
import concurrent.futures
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../tools"))

from finders import JOBS, JUDGES, SHORT, Finders
from locals import Shape

LIST = os.path.join(os.path.dirname(__file__), "faults.txt")
BODY = r"^[A-Za-z][^;{}=#]*?\b%s\([^;{}]*?\)\n\{.*?^\}"


class Fault:
    """One of the list."""

    def __init__(self, name, function, rules, finder):
        self.name, self.function = name.rstrip("*"), function
        self.is_short, self.finder = name.endswith("*"), finder
        self.rules = rules
        self.changes = []

    def take(self, line):
        """A line of what is changed."""
        function = self.function
        other = re.match(r"(\w+):: (.*)", line)
        if other:
            function, line = other.groups()
        old, new = re.split(r" =>(?: |$)", line)
        self.changes.append((function, old, new))

    def injected(self, text):
        """The header with it; exits if it does not fit."""
        for function, old, new in self.changes:
            body = re.search(BODY % function, text, re.M | re.S)
            shape = Shape(old)
            found = list(shape.pattern.finditer(body.group())) if body else []
            if len(found) != 1:
                return None
            at = body.start() + found[0].start()
            text = text[:at] + shape.fill(found[0], new) + \
                text[body.start() + found[0].end():]
        return text


def read_list():
    """The faults, in order."""
    faults, section = [], ""
    with open(LIST, encoding="utf-8") as file:
        for line in file:
            if line.startswith(" "):
                faults[-1].take(line.strip())
            elif line.startswith("["):
                section = line.strip("[]\n")
            elif line.strip() and not line.startswith("#"):
                name, function, *rules = line.split()
                rules = rules[0].split(",") if rules else []
                faults.append(Fault(name, function, rules, section))
    return faults


def tests_for(fault, finders):
    """Which tests are to find it, in which order."""
    if os.environ.get("IDEM_ALL") == "1":
        return ["crash"] + finders.tests
    return [fault.finder] if fault.finder in JUDGES else finders.tests


def judge(fault, text, finders):
    """Whether it is found, and in words by what."""
    header = fault.injected(text)
    if header is None:
        return False, "does not fit the header"
    with finders.injected(header) as directory:
        if not directory:
            return False, "does not compile"
        reason = finders.judge(directory, tests_for(fault, finders))
    return reason is not None, reason or "not found"


def main():
    with open("idem.h", encoding="utf-8") as file:
        text = file.read()
    wanted = sys.argv[1:]
    # One that fits no more is judged always: it would be found missing late.
    faults = [fault for fault in read_list()
              if (fault.name in wanted if wanted else
                  fault.is_short or not SHORT or fault.injected(text) is None)]
    if not faults:
        sys.exit("faults: tests/mutate/faults.txt has no bug of that name")
    finders = Finders()
    found = 0
    with concurrent.futures.ThreadPoolExecutor(JOBS) as pool:
        run = pool.map(lambda fault: judge(fault, text, finders), faults)
        for fault, (is_found, reason) in zip(faults, run):
            found += is_found
            name = fault.name
            if not is_found:
                name = " ".join(["FAILED:", name] + fault.rules)
            print("%s: %s" % (name, reason), flush=True)
    print("faults: %d of %d found" % (found, len(faults)))
    return 0 if 0 < found == len(faults) and not finders.unsound else 1


if __name__ == "__main__":
    sys.exit(main())
