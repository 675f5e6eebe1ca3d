#!/usr/bin/env python3
# SPDX-License-Identifier: 0BSD
"""Compares the coverage of idem.h with the exceptions.

    gate.py idem.h exceptions.txt EXPORTED...

For each EXPORTED, EXPORTED.json and EXPORTED.lcov have the output of llvm-cov
export for one program.  (For several programs at once llvm-cov drops functions
that have the same name and were compiled differently.)  EXPORTED.folded has the
lines of llvm-cov show that name constants: a branch that the compiler decided
does not count for that program.

Every line, every outcome of every branch, and in every decision each condition
on its own (MC/DC) must be covered, except for the exceptions, and each of these
must still be there.  A paragraph has those of one reason, a line each:

    function: what: text of the line, or of the expression
        why

where `what` is line, true, false (an outcome of a branch), true/false (both),
or alone (MC/DC).
Local names in the text may differ from those in the header.
"""
import json
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../tools"))
from locals import Shape                # noqa: E402

MOST_EXCEPTED = 0.02            # of lines, of branches, of conditions: each


def squeeze(text):
    return re.sub(r"\s+", " ", text).strip()


class Source:
    """idem.h, by place: the text there, and the function around it."""

    def __init__(self, path):
        with open(path, encoding="utf-8") as file:
            self.lines = file.read().split("\n")

    def text(self, line, column, end_line, end_column):
        cut = self.lines[line - 1:end_line]
        cut[-1] = cut[-1][:end_column - 1]
        cut[0] = cut[0][column - 1:]
        return squeeze(" ".join(cut))

    def function(self, line):
        """A definition begins at the margin, a body is indented."""
        for text in reversed(self.lines[:line]):
            name = re.match(r"[A-Za-z].*?(\w+)\(", text)
            if name:
                return name.group(1)
        return "?"


def lines_of(path, header):
    """Line by line, how often it was executed, of what lcov is given."""
    here = False
    with open(path, encoding="utf-8") as file:
        for line in file:
            word, _, value = line.partition(":")
            if word == "SF":
                here = value.strip().endswith("/" + header)
            elif word == "DA" and here:
                yield map(int, value.split(","))


def add(points, key, covered):
    points[key] = points.get(key, False) or covered


def add_lines(points, lines, source):
    for line, executed in lines:
        text = source.lines[line - 1]
        # In a function that a program does not call all lines count.
        if text.strip() and not text.lstrip().startswith(("//", "#")):
            add(points, ((line, 1, line, len(text) + 1), "line"), executed > 0)


def constants_of(path):
    """Branches by where they begin, conditions by decision and number."""
    constants = set()
    decision = ()
    with open(path, encoding="utf-8") as file:
        for line in file:
            numbers = tuple(map(int, re.findall(r"\d+", line)))
            if "Decision Region" in line:
                decision = numbers
            elif "-Pair" in line:
                constants.add(decision + numbers)
            else:
                constants.add(numbers)
    return constants


def add_decisions(points, data, constants):
    for branch in data["branches"]:
        place, (true, false) = tuple(branch[:4]), branch[4:6]
        # In a macro a branch has no width, and a constant one no outcome.
        if place[:2] in constants or (place[:2] == place[2:] and
                                      not true and not false):
            continue
        add(points, (place, "true"), true > 0)
        add(points, (place, "false"), false > 0)
    for decision in data.get("mcdc_records", []):
        place = tuple(decision[:4])
        for number, covered in enumerate(decision[-1]):
            if place + (number + 1,) not in constants:
                add(points, (place, "alone %d" % (number + 1)), covered)


def read_exceptions(path):
    """Each by its line: whether it has a reason."""
    excepted = {}
    names = []
    with open(path, encoding="utf-8") as file:
        for line in file:
            if not line.strip():
                names = []
            elif line[0] == " ":
                excepted.update(dict.fromkeys(names, True))
            elif line[0] != "#":
                names += [re.sub(": true/false:", outcome, squeeze(line))
                          for outcome in (": true:", ": false:")]
                excepted.update(dict.fromkeys(names, False))
    return excepted


def main():
    header, exceptions, *exported = sys.argv[1:]
    source = Source(header)
    points = {}                         # (place, what) -> covered
    for path in exported:
        add_lines(points, lines_of(path + ".lcov", header), source)
        constants = constants_of(path + ".folded")
        with open(path + ".json", encoding="utf-8") as file:
            files = json.load(file)["data"][0]["files"]
        for data in files:
            if data["filename"].endswith("/" + header):
                add_decisions(points, data, constants)
    excepted = read_exceptions(exceptions)
    unused = set(excepted)
    shapes = {name: Shape(name).pattern for name in excepted}
    wrong = ["without a reason: " + name
             for name, reason in excepted.items() if not reason]
    figures = {}
    for (place, what), covered in sorted(points.items()):
        kind = "branches" if what in ("true", "false") else \
            "lines" if what == "line" else "MC/DC conditions"
        figure = figures.setdefault(kind, [0, 0, 0])
        figure[2] += 1
        if covered:
            figure[0] += 1
            continue
        name = squeeze("%s: %s: %s" % (source.function(place[0]), what,
                                       source.text(*place)))
        found = {each for each in excepted if shapes[each].fullmatch(name)}
        if found:
            figure[1] += 1
            unused -= found
        else:
            wrong.append("not covered: %s:%d: %s" % (header, place[0], name))
    wrong += ["excepted, but covered or not there: " + name for name in unused]
    for kind, (covered, left, total) in sorted(figures.items()):
        print("%-17s %5d of %5d, %.2f %%; %d excepted" %
              (kind, covered, total, 100.0 * covered / total, left))
        if left > MOST_EXCEPTED * total:
            wrong.append("too many exceptions: %d of %d %s" %
                         (left, total, kind))
    for line in sorted(wrong):
        print(line)
    good = figures and not wrong
    print("cover: %s" % ("passed" if good else "FAILED"))
    return 0 if good else 1


sys.exit(main())
