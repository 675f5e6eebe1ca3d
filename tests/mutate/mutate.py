#!/usr/bin/env python3
# SPDX-License-Identifier: 0BSD
"""Plants small faults in copies of idem.h, one in each, and looks whether the
tests see them.

    mutate.py [SECTION]         IDEM_MUTANTS of them (300), all with 0
    SHORT=1 mutate.py           25, the same ones each time
    IDEM_JOBS=2                 so many at a time

Which ones is decided by a hash of what is changed, so that a change elsewhere
in the file takes no other sample.  A mutant that does not compile, or gives the
same object code, does not count.  What survives is listed; survivors.txt has
those that are known, as paragraphs of

    section: function: what is done: the line
        why

Those whose reason begins with "equivalent" do not count either.
"""
import concurrent.futures
import hashlib
import os
import re
import resource
import subprocess
import sys

OUT = "build/mutate"
LEAST = 95.0                    # percent
SHORT_SAMPLE = 25

TCC = ["tcc", "-std=c99", "-w"]
GCC = ["gcc", "-std=c99", "-O1", "-w"]
QUICK = ["hash", "flash", "keys", "api", "edges", "time", "table", "full",
         "model"]
OF_JOURNAL = ["storage", "crc", "records", "journal", "opening"]

# ----------------------------------------------------------------- the source


def blank_comments(text):
    """The code alone, with everything where it was."""
    def blank(match):
        return re.sub(r"[^\n]", " ", match.group(0))
    return re.sub(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|'
                  r'^[ ]*#(?:\\\n|[^\n])*$', blank, text, flags=re.S | re.M)


def sections(text):
    """(name, start, end) of each section of the implementation."""
    start = text.index(">>basics", text.index("Implementation\n"))
    mark = re.compile(r"^   >>(\w+)", re.M)
    marks = [(m.group(1), m.start()) for m in mark.finditer(text, start - 3)]
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
    ("comparison", r"(?<![<\-])<(?![<=])", "<="),
    ("comparison", r"<=", "<"),
    ("comparison", r"(?<![>\-])>(?![>=])", ">="),
    ("comparison", r">=", ">"),
    ("comparison", r"==", "!="),
    ("comparison", r"!=", "=="),
    ("logic", r"&&", "||"),
    ("logic", r"\|\|", "&&"),
    ("arithmetic", r"(?<=\w|\)) \+ (?=\w|\()", " - "),
    ("arithmetic", r"(?<=\w|\)) - (?=\w|\()", " + "),
    ("arithmetic", r"(?<=\w)\+\+|\+\+(?=\w)", "--"),
    ("arithmetic", r"(?<=\w)--|--(?=\w)", "++"),
    ("arithmetic", r" \+= ", " -= "),
    ("arithmetic", r" -= ", " += "),
    ("bits", r"(?<=\w|\)|\]) & (?=\w|\(|~)", " | "),
    ("bits", r"(?<=\w|\)|\]) \| (?=\w|\(|~)", " & "),
    ("bits", r" \|= ", " &= "),
    ("bits", r" &= ", " |= "),
    ("shift", r"(?<= )<<(?= )", ">>"),
    ("shift", r"(?<= )>>(?= )", "<<"),
]
STATEMENT = re.compile(
    r"^( +)(?!return|break|continue|goto|case|default|else|if|for|while|do\b|"
    r"switch|const |static |struct |unsigned |int |size_t |uint\w+ |"
    r"idemi?_\w+ |off_t |char |\})\w[^\n{}]*;$", re.M)


def closing(code, at):
    """The place of the parenthesis that closes the one there."""
    depth = 0
    for place in range(at, len(code)):
        depth += {"(": 1, ")": -1}.get(code[place], 0)
        if not depth:
            return place
    return -1


def in_body(code, start, end, void):
    """(what is done, from, to, text instead) in one function's body."""
    body = code[start:end]
    for kind, pattern, text in REPLACEMENTS:
        for m in re.finditer(pattern, body):
            yield kind + " becomes" + text.rstrip(), start + m.start(), \
                start + m.end(), text
    for m in re.finditer(r"(?<![\w.])(\d+)(u?)(?![\w.])", body):
        value = int(m.group(1))
        yield "constant", start + m.start(), start + m.end(), \
            "%d%s" % (value - 1 if value == 1 else value + 1, m.group(2))
    for m in re.finditer(r"\b(?:if|while) \(", body):
        open_at = start + m.end() - 1
        close = closing(code, open_at)
        yield "negated", open_at, close + 1, \
            "(!" + code[open_at:close + 1] + ")"
    statements = [m for m in STATEMENT.finditer(body)
                  if m.group(0).count("(") == m.group(0).count(")") and
                  re.search(r"[;{})]\s*$|\belse\s*$", body[:m.start()])]
    for m in statements:
        at = start + m.start() + len(m.group(1))
        yield "dropped", at, start + m.end(), ";"
        yield "early return", at, at, "return; " if void else "return 0; "
    for one, two in zip(statements, statements[1:]):
        if one.end() + 1 == two.start() and one.group(1) == two.group(1):
            yield "swapped with the next", start + one.start(), \
                start + two.end(), two.group(0) + "\n" + one.group(0)


class Mutant:
    """One fault in one place."""

    def __init__(self, text, section, function, change):
        what, self.start, self.end, self.instead = change
        line = text[text.rfind("\n", 0, self.start + 1) + 1:]
        line = line[:line.index("\n")]
        if not line.strip():
            line = text[self.start:self.end].strip().split("\n")[0]
        self.section = section
        self.name = re.sub(r"\s+", " ", "%s: %s: %s: %s" % (
            section, function, what, line.strip()))
        column = self.start - text.rfind("\n", 0, self.start)
        self.rank = hashlib.sha256(
            ("%s %d" % (self.name, column)).encode()).hexdigest()

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
    return sorted(mutants, key=lambda mutant: mutant.rank)


# ------------------------------------------------------------------ the tests


def limit(seconds):
    """A hang is ended by the time that it takes, not by that of others."""
    def set_limit():
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
    return set_limit


def builds(compiler, source, directory, program):
    return not subprocess.run(
        compiler + ["-I" + directory, "-I.", source, "-o", program,
                    "-lcmocka", "-lpthread"],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode


def passes(program, seconds, *options):
    """Runs a test until it fails somewhere."""
    run = subprocess.Popen([program, *options], stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT, preexec_fn=limit(seconds),
                           env=dict(os.environ, IDEM_CALLS="100000"))
    failed = False
    for line in run.stdout:
        if line.startswith(b"[  FAILED  ]"):
            failed = True
            run.kill()
    return run.wait() == 0 and not failed


def suite(section, short):
    """(name, compiler, CPU seconds, options) of the tests, in their order."""
    quick = [(name, TCC, 8, []) for name in QUICK]
    journal = [("journal", GCC, 30, [])]
    if section == "file":
        return [("file", GCC, 40, [])]
    if section not in OF_JOURNAL:
        return quick + journal
    edges = [test for test in quick if test[0] == "edges"]
    tests = edges + journal + [test for test in quick if test[0] != "edges"]
    if not short:
        tests.append(("crash", GCC, 150, ["--short", "--first"]))
    return tests


def same_object(compiler, directory):
    """Whether a compiler sees no difference."""
    objects = []
    program = os.path.join(directory, "object.o")
    for include in (directory, "."):
        if not builds(compiler + ["-c", "-DIDEM_FILE_STORAGE",
                                  "-D_POSIX_C_SOURCE=200809L"],
                      "tests/compile/c.c", include, program):
            return False
        subprocess.run(["strip", program], check=True)
        with open(program, "rb") as file:
            objects.append(file.read())
    return objects[0] == objects[1]


def judge(number, text, section, short):
    """What becomes of a header: killed by a test, or else."""
    directory = os.path.join(OUT, str(number))
    os.makedirs(directory, exist_ok=True)
    with open(os.path.join(directory, "idem.h"), "w") as file:
        file.write(text)
    if section != "none" and same_object(TCC, directory):
        return "same"
    for name, compiler, seconds, options in suite(section, short):
        source = "tests/%s.c" % (name if name == "crash" else "test_" + name)
        program = os.path.join(directory, name)
        if not builds(compiler, source, directory, program):
            return "does not compile"
        if not passes(program, seconds, *options):
            return "killed by " + name
    return "same" if same_object(GCC, directory) else "survived"


def read_known(path):
    known = {}
    name = None
    with open(path, encoding="utf-8") as file:
        for line in file:
            if line.startswith(" ") and name:
                known[name] += line.strip() + " "
            elif line.strip() and not line.startswith("#"):
                name = re.sub(r"\s+", " ", line).strip()
                known[name] = ""
    return known


def main():
    short = os.environ.get("SHORT") == "1"
    sample = SHORT_SAMPLE if short else \
        int(os.environ.get("IDEM_MUTANTS", "300"))
    with open("idem.h", encoding="utf-8") as file:
        text = file.read()
    known = read_known("tests/mutate/survivors.txt")
    verdict = judge("none", text, "none", True)
    if verdict != "same":
        print("mutate: FAILED, without a fault: " + verdict)
        return 1
    chosen = [mutant for mutant in all_mutants(text)
              if not sys.argv[1:] or mutant.section in sys.argv[1:]]
    total = len(chosen)
    chosen = chosen[:sample or total]
    killed, counted, left = {}, {}, []
    with concurrent.futures.ThreadPoolExecutor(
            int(os.environ.get("IDEM_JOBS", "1"))) as pool:
        verdicts = pool.map(lambda job: judge(
            job[0], job[1].text(text), job[1].section, short),
            enumerate(chosen))
        for mutant, verdict in zip(chosen, verdicts):
            if os.environ.get("VERBOSE"):
                print(verdict + ": " + mutant.name, flush=True)
            reason = known.get(mutant.name, "")
            if verdict in ("same", "does not compile") or \
                    (verdict == "survived" and reason.startswith("equivalent")):
                continue
            counted[mutant.section] = counted.get(mutant.section, 0) + 1
            if verdict == "survived":
                left.append("survived%s: %s" % (
                    ", known" if reason else "", mutant.name))
            else:
                killed[mutant.section] = killed.get(mutant.section, 0) + 1
    for section in counted:
        print("%-9s %4d of %4d" % (section, killed.get(section, 0),
                                   counted[section]))
    print("\n".join(sorted(left)))
    figure = 100.0 * sum(killed.values()) / max(1, sum(counted.values()))
    print("mutate: %d of %d killed, %.1f %%, in a sample of %d of %d: %s" % (
        sum(killed.values()), sum(counted.values()), figure, len(chosen),
        total, "passed" if figure >= LEAST else "FAILED"))
    return 0 if figure >= LEAST else 1


sys.exit(main())
