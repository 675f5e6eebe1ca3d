#!/usr/bin/env python3
# SPDX-License-Identifier: 0BSD
"""Injects small faults into copies of idem.h, one in each, and looks whether a
test fails.

    mutate.py               300 of all, drawn at random
    mutate.py NAME...       each of these sections or functions of the header
    SHORT=1 mutate.py       a dozen, and those unit tests that find most
    SEED=1                  the same ones again; without it others each time
    MUTANTS=1000            that many
    VERBOSE=1               prints the result of each

A mutant that does not compile, or gives the same object code, does not count.
At least 95 % must be killed.  In the short form a quarter: it has only a dozen
mutants, and not all tests, so it only shows that the tool works.  Mutants that
survive are listed, as FUNCTION: OLD TEXT => NEW TEXT; survivors.txt has those
that are known not to be faults, and why: they do not count either.
"""
import concurrent.futures
import os
import random
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../tools"))
from finders import (FIRST, JOBS, PLAIN, SECOND, SHORT, SOURCE, Finders,
                     compiles)
from locals import Shape

LEAST = 25.0 if SHORT else 95.0             # percent
SAMPLE = 12 if SHORT else 300
KNOWN = os.path.join(os.path.dirname(__file__), "survivors.txt")
OPTIONS = ["-DIDEM_FILE_STORAGE", "-D_POSIX_C_SOURCE=200809L"]
BUILDS = [[], ["-D_GNU_SOURCE"], ["-DIDEM_HASH=2"], ["-DIDEM_HASH=3"]]

# Sections for which these tests are enough
OWN = {
    "hash": ["hash_siphash", "hash_halfsiphash", "hash_fnv", "full"],
    "file": ["file", "file_statx"],
    "arriving": ["keys_arriving"],
    "retry": ["sending"],
}

# ----------------------------------------------------------------- the source


def squeeze(text):
    """On one line, with single blanks."""
    return re.sub(r"\s+", " ", text).strip()


def blank_comments(text):
    """The code alone, with everything where it was."""
    def blank(match):
        return re.sub(r"[^\n]", " ", match.group(0))
    return re.sub(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|'
                  r'^[ ]*#(?:\\\n|[^\n])*$', blank, text, flags=re.S | re.M)


def sections(text):
    """(name, start, end) of each section of the implementation."""
    start = text.index("#define IDEM_IMPLEMENTATION_DONE")
    mark = re.compile(r"^   >>(\w+)", re.M)
    marks = [(m.group(1), m.start()) for m in mark.finditer(text, start)]
    return [(name, at, marks[i + 1][1])
            for i, (name, at) in enumerate(marks[:-1])]


def functions(code):
    """(name, returns nothing, start and end of the body) of each function."""
    found = []
    for head in re.finditer(r"^(?!typedef|enum|struct)[A-Za-z][^;{}=]*?"
                            r"(\w+)\([^;{}]*?\)\n\{", code, re.M):
        end = code.index("\n}", head.end())
        void = re.search(r"\bvoid\s+\w+\($", head.group(0)[:head.group(0).index(
            head.group(1) + "(") + len(head.group(1)) + 1])
        found.append((head.group(1), bool(void), head.end(), end))
    return found


# ---------------------------------------------------------------- the mutants

REPLACEMENTS = [
    (r"(?<![<\-])<(?![<=])", "<="),
    (r"<=", "<"),
    (r"(?<![>\-])>(?![>=])", ">="),
    (r">=", ">"),
    (r"==", "!="),
    (r"!=", "=="),
    (r"&&", "||"),
    (r"\|\|", "&&"),
    (r"(?<=\w|\)) \+ (?=\w|\()", " - "),
    (r"(?<=\w|\)) - (?=\w|\()", " + "),
    (r"(?<=\w)\+\+|\+\+(?=\w)", "--"),
    (r"(?<=\w)--|--(?=\w)", "++"),
    (r" \+= ", " -= "),
    (r" -= ", " += "),
    (r"(?<=\w|\)|\]) & (?=\w|\(|~)", " | "),
    (r"(?<=\w|\)|\]) \| (?=\w|\(|~)", " & "),
    (r" \|= ", " &= "),
    (r" &= ", " |= "),
    (r"(?<= )<<(?= )", ">>"),
    (r"(?<= )>>(?= )", "<<"),
]
# With two that are equal it is the same whether the one is made the other.
LIMIT = re.compile(r"(?=\bif \(([^()]+) ([<>]) ([^()]+)\)\s+\1 = \3;|"
                   r"(?<=[ (])([^ ()]+) (>) ([^ ()]+) \? \4 - \6\s+: 0)")
STATEMENT = re.compile(
    r"^( +)(?!return|break|continue|goto|case|default|else|if|for|while|do\b|"
    r"switch|const |static |struct |unsigned |int |size_t |uint\w+ |"
    r"idemi?_\w+ |off_t |char |\})\w[^\n{}]*;$", re.M)
CHANGES = re.compile(r"\b(?!UINT\d+_C\(|idemi_slot_number\(|"
                     r"idemi_basics_(?:min|join|load)|idemi_slot_lease_left\(|"
                     r"idemi_default_retention\()\w+\(")


def closing(code, at):
    """The place of the parenthesis that closes the one there."""
    depth = 0
    for place in range(at, len(code)):
        depth += {"(": 1, ")": -1}.get(code[place], 0)
        if not depth:
            return place
    return -1


def independent(one, two):
    """True if two statements are plain assignments, but for functions that
    change nothing, and neither touches what the other changes: swapping them is
    no fault."""
    changed = []
    for statement in (one, two):
        parts = re.split(r" [-+|&]?= ", statement.strip(" ;\n"))
        step = re.fullmatch(r"([^()]*?)(?:\+\+|--)", parts[0])
        if CHANGES.search(statement) or \
                (len(parts) < 2 and not step):
            return False
        changed.append([step.group(1)] if step else parts[:-1])

    def touches(statement, names):
        return any(re.search(re.escape(name) + r"(?!\w)", statement)
                   for name in names)

    return not touches(two, changed[0]) and not touches(one, changed[1])


def in_body(code, start, end, void):
    """(from, to, text instead) in one function's body."""
    body = code[start:end]
    limits = {max(m.start(2), m.start(5)) for m in LIMIT.finditer(body)}
    for pattern, text in REPLACEMENTS:
        for m in re.finditer(pattern, body):
            if m.start() in limits and text.strip() in ("<=", ">="):
                continue
            yield start + m.start(), start + m.end(), text
    for m in re.finditer(r"(?<![\w.])(\d+)(u?)(?![\w.])", body):
        value = int(m.group(1))
        yield start + m.start(), start + m.end(), \
            "%d%s" % (value - 1 if value == 1 else value + 1, m.group(2))
    for m in re.finditer(r"\b(?:if|while) \(", body):
        open_at = start + m.end() - 1
        close = closing(code, open_at)
        yield open_at, close + 1, "(!" + code[open_at:close + 1] + ")"
    statements = [m for m in STATEMENT.finditer(body)
                  if m.group(0).count("(") == m.group(0).count(")") and
                  re.search(r"[;{})]\s*$|\belse\s*$", body[:m.start()])]
    for m in statements:
        at = start + m.start() + len(m.group(1))
        yield at, start + m.end(), ";"
        yield at, at, "return; " if void else "return 0; "
    for one, two in zip(statements, statements[1:]):
        if one.end() + 1 == two.start() and one.group(1) == two.group(1) and \
                not independent(one.group(0), two.group(0)):
            yield start + one.start(), start + two.end(), \
                two.group(0) + "\n" + one.group(0)


class Mutant:
    """One fault in one place."""

    def __init__(self, text, section, function, change):
        self.start, self.end, self.instead = change
        first = text.rfind("\n", 0, self.start) + 1
        last = text.index("\n", self.end)
        self.section, self.function = section, function
        self.name = squeeze("%s: %s => %s" % (
            function, text[first:last], text[first:self.start] + self.instead +
            text[self.end:last]))

    def text(self, text):
        return text[:self.start] + self.instead + text[self.end:]


def all_mutants(text):
    code = blank_comments(text)
    mutants = []
    for name, start, end in sections(text):
        for function, void, first, last in functions(code):
            if start <= first < end:
                mutants += [Mutant(text, name, function, change)
                            for change in in_body(code, first, last, void)]
    return mutants


# ------------------------------------------------------------------ the tests


def order(section, finders):
    """The tests, those first that find most in least time."""
    if section in OWN:
        return OWN[section]
    units = [name for name in FIRST + SECOND if name in finders.units]
    if SHORT:
        return units
    return units + [name for name in finders.tests if name not in units]


def object_code(directory):
    """What the compiler makes of the header there, in each build."""
    program = directory + "/object.o"
    made = []
    for more in BUILDS:
        if not compiles(PLAIN + OPTIONS + more + [
                "-I" + directory, "-c", SOURCE, "-o", program]):
            return None
        subprocess.run(["strip", program], check=True)
        with open(program, "rb") as file:
            made.append(file.read())
    return made


def judge(mutant, text, finders, sound):
    """What becomes of a mutant: None if it is no fault, else who kills it, or
    that it survives.  What the compiler makes of the header without a fault is
    made once, before: two at a time would write the same file."""
    with finders.injected(mutant.text(text), OPTIONS) as directory:
        if not directory:
            return None
        names = order(mutant.section, finders)
        found = finders.judge(directory, finders.best(names[:len(FIRST)]))
        if found and found.endswith(": does not compile") or \
                not found and object_code(directory) in (None, sound):
            return None
        return found or finders.judge(
            directory, finders.best(names[len(FIRST):])) or "survived"


def is_known(mutants):
    """Whether each is one of those that are no faults."""
    with open(KNOWN, encoding="utf-8") as file:
        lines = [line for line in map(str.rstrip, file)
                 if line and not line.startswith((" ", "#"))]
    known = set()
    for line in lines:
        pattern = Shape(line).pattern
        found = {each for each in mutants if pattern.fullmatch(each.name)}
        if not found:
            print("no such mutant: " + line)
        known |= found
    return known


def choose(mutants, wanted):
    """All mutants asked for; of everything, or in the short form, a sample."""
    seed = os.environ.get("SEED") or str(random.randrange(1000000))
    mutants = [each for each in mutants if not wanted or
               each.section in wanted or each.function in wanted]
    if not mutants:
        sys.exit("mutate: idem.h has no section or function of that name")
    sample = int(os.environ.get("MUTANTS") or
                 (len(mutants) if wanted and not SHORT else SAMPLE))
    random.Random(seed).shuffle(mutants)
    print("mutate: SEED=%s: %d of %d" % (
        seed, min(sample, len(mutants)), len(mutants)), flush=True)
    return mutants[:sample]


def main():
    with open("idem.h", encoding="utf-8") as file:
        text = file.read()
    mutants = all_mutants(text)
    known = is_known(mutants)
    mutants = [mutant for mutant in choose(mutants, sys.argv[1:])
               if mutant not in known]
    finders = Finders()
    sound = object_code(finders.sound)
    killed = counted = 0
    with concurrent.futures.ThreadPoolExecutor(JOBS) as pool:
        run = pool.map(lambda mutant: judge(mutant, text, finders, sound),
                       mutants)
        for mutant, verdict in zip(mutants, run):
            counted += verdict is not None
            killed += verdict not in (None, "survived")
            if verdict == "survived" or os.environ.get("VERBOSE"):
                print("%s: %s" % (mutant.name, verdict or "no fault"),
                      flush=True)
    figure = 100.0 * killed / max(1, counted)
    good = figure >= LEAST and not finders.unsound
    print("mutate: %d of %d killed, %.1f %%: %s" % (
        killed, counted, figure, "passed" if good else "FAILED"))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
