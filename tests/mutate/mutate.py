#!/usr/bin/env python3
# SPDX-License-Identifier: 0BSD
"""Plants small faults in copies of idem.h, one in each, and looks whether the
tests see them.

    mutate.py [SECTION...]      a sample of 300 of all, or of sections; those
                                of journal, recovery and claims: "critical"
    mutate.py "journal: idemi_journal_enter: swapped"   those named so
    SHORT=1 mutate.py            4 of critical code, the same ones each time
    IDEM_MUTANTS=1000           so many, or all with 0; IDEM_SKIP=300 after
                                those; IDEM_JOBS=2 at a time; VERBOSE=1 tells of
                                each what killed it, and the seconds;
                                IDEM_KNOWN=1 tries those again that are listed

Which ones is decided by a hash of what is changed, so that a change elsewhere
in the file takes no other sample.  A mutant that does not compile, or gives the
same object code, does not count.  At least 95 % must be killed, and of critical
code all.  What survives is listed; survivors.txt has those that are known, as
paragraphs of

    section: function: what is done: the line
        equivalent: why

Those do not count either, for they are no faults; other reasons only tell.
"""
import concurrent.futures
import hashlib
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time

OUT = "build/mutate"
LEAST = 95.0                    # percent
SHORT_SAMPLE = 4

TCC = ["tcc", "-std=c99", "-w"]
GCC = ["gcc", "-std=c99", "-Og", "-w"]
MEMORY = 2 << 30
UNBUILT = "does not compile"
EQUIVALENT = "equivalent"
FAILS = re.compile(rb"(?:\[  FAILED  \]|violation:) (.*)")
CRITICAL = ["storage", "crc", "records", "keys", "journal", "opening", "cells",
            "commands"]

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
# With two that are equal it is the same whether the one is made the other.
LIMIT = re.compile(r"(?=\bif \(([^()]+) ([<>]) ([^()]+)\)\s+\1 = \3;|"
                   r"(?<=[ (])([^ ()]+) (>) ([^ ()]+) \? \4 - \6\s+: 0)")
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


def independent(one, two):
    """True if two statements are plain assignments, and neither touches what
    the other changes: swapping them is no fault."""
    changed = []
    for statement in (one, two):
        parts = re.split(r" [-+|&]?= ", statement.strip(" ;\n"))
        step = re.fullmatch(r"([^()]*?)(?:\+\+|--)", parts[0])
        if re.search(r"\w\(", statement) or (len(parts) < 2 and not step):
            return False
        changed.append([step.group(1)] if step else parts[:-1])

    def touches(statement, names):
        return any(re.search(re.escape(name) + r"(?!\w)", statement)
                   for name in names)

    return not touches(two, changed[0]) and not touches(one, changed[1])


def in_body(code, start, end, void):
    """(what is done, from, to, text instead) in one function's body."""
    body = code[start:end]
    limits = {max(m.start(2), m.start(5)) for m in LIMIT.finditer(body)}
    for kind, pattern, text in REPLACEMENTS:
        for m in re.finditer(pattern, body):
            if m.start() in limits and text.strip() in ("<=", ">="):
                continue
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
        if one.end() + 1 == two.start() and one.group(1) == two.group(1) and \
                not independent(one.group(0), two.group(0)):
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
        self.line = text.count("\n", 0, self.start) + 1

    def rank(self):
        return hashlib.sha256(self.name.encode()).hexdigest()

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
    seen = {}
    for mutant in mutants:      # the second of a name is one too
        seen[mutant.name] = seen.get(mutant.name, 0) + 1
        if seen[mutant.name] > 1:
            mutant.name += " (%d)" % seen[mutant.name]
    return sorted(mutants, key=Mutant.rank)


# ------------------------------------------------------------------ the tests

CELLS = ["-DIDEM_CELLS"]
SANITIZER = ["-fsanitize=address"]
# name: source, compiler and options, arguments
STAGES = {name: ("tests/test_%s.c" % name, TCC, []) for name in (
    "hash", "flash", "keys", "api", "edges", "time", "table", "full", "model",
    "cells", "threads", "anomalies")}
STAGES.update({
    "journal": ("tests/test_journal.c", GCC, []),
    "file": ("tests/test_file.c", GCC, []),
    "images": ("tests/test_images.c", TCC, []),
    "sanitized": ("tests/test_edges.c", GCC + SANITIZER, []),
    "failures": ("tests/test_failures.c", GCC, []),
    "erases": ("tests/erases.c", GCC, ["1", "4000", "tests/erases.txt"]),
    "cell failures": ("tests/test_failures_cells.c", GCC, []),
    "cuts": ("tests/crash.c", TCC, ["--short", "--geometry", "nor8"]),
    "crash": ("tests/crash.c", GCC, ["--short"]),
    "cell cuts": ("tests/crash.c", TCC + CELLS,
                  ["--short", "--geometry", "eeprom"]),
    "cell crash": ("tests/crash.c", GCC + CELLS, ["--short"]),
})


def suite(section):
    """The names of the tests, those first that find most in least time."""
    quick = ["keys", "api", "cells", "flash", "hash"]
    model = ["time", "model", "full", "table", "threads"]
    ring = ["cuts", "cell cuts", "edges", "journal", "images", "failures",
            "erases", "anomalies"]
    slow = ["cell failures", "crash", "cell crash", "sanitized"]
    if section == "file":
        return ["file"]
    if section == "cells":
        return ["cells", "cell cuts", "cell failures", "cell crash"]
    if section in CRITICAL and section not in ("keys", "commands"):
        return quick + ring + model + slow
    return quick + model + ring + slow


def limits(seconds, memory):
    """A hang is ended by the time that it takes, not by that of others."""
    def set_limits():
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    return set_limits


def builds(compiler, source, directory, program):
    libraries = [] if "-c" in compiler else ["-lcmocka", "-lpthread"]
    return not subprocess.run(
        compiler + ["-I" + directory, "-I.", "-Itests", source, "-o", program] +
        libraries, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL).returncode


def end(run):
    """With what it has started."""
    try:
        os.killpg(run.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def passes(command, seconds, memory):
    """Runs a test until it fails somewhere: the seconds that it took, or what
    failed."""
    run = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        preexec_fn=limits(seconds, memory), start_new_session=True,
        env=dict(os.environ, IDEM_CALLS="100000"))
    watch = threading.Timer(60 + 10 * seconds, end, (run,))
    watch.start()
    failed = None
    for line in run.stdout:
        found = FAILS.match(line)
        if found and not failed:
            failed = found.group(1).decode(errors="replace").strip()
            end(run)
    _, status, usage = os.wait4(run.pid, 0)
    watch.cancel()
    run.stdout.close()
    run.returncode = status
    if status or failed:
        return failed or "status %d" % status
    return usage.ru_utime + usage.ru_stime


def try_stage(name, directory, seconds):
    """The seconds that a test took, or what failed."""
    source, compiler, options = STAGES[name]
    program = os.path.join(directory, name.replace(" ", "-"))
    if not builds(compiler, source, directory, program):
        return UNBUILT
    if source.endswith("crash.c"):
        options = options + ["--first"]
    # A sanitizer's shadow is of all the memory that there could be.
    memory = resource.RLIM_INFINITY if SANITIZER[0] in compiler else MEMORY
    return passes([program] + options, seconds, memory)


def objects(compiler, directory):
    """What a compiler makes of the header there, with a ring and with cells."""
    program = os.path.join(directory, "object.o")
    made = []
    for options in (["-DIDEM_FILE_STORAGE", "-D_POSIX_C_SOURCE=200809L"],
                    CELLS):
        if not builds(compiler + ["-c"] + options, "tests/compile/c.c",
                      directory, program):
            return None
        subprocess.run(["strip", program], check=True)
        with open(program, "rb") as file:
            made.append(file.read())
    return made


class Sound:
    """The header without a fault.  What there is to know of it is looked at
    when it is first needed."""

    def __init__(self, text, directory):
        self.directory = directory
        self.lock = threading.Lock()
        self.objects = {}
        self.limits = {}
        with open(os.path.join(directory, "idem.h"), "w") as file:
            file.write(text)

    def same(self, compiler, directory):
        """Whether a compiler makes the same of the header there, with a ring
        and with cells; None if it makes nothing of it."""
        with self.lock:
            name = compiler[0]
            if name not in self.objects:
                self.objects[name] = objects(compiler, self.directory)
                if not self.objects[name]:
                    sys.exit("mutate: FAILED, without a fault: " + name)
        made = objects(compiler, directory)
        return made and [one == sound for one, sound
                         in zip(made, self.objects[name])]

    def limit(self, name):
        """The seconds that a test may take: several times what it needs."""
        with self.lock:
            if name not in self.limits:
                took = try_stage(name, self.directory, 600)
                if not isinstance(took, float):
                    sys.exit("mutate: FAILED, without a fault: " + name)
                self.limits[name] = int(3 + 2 * took)
            return self.limits[name]


def judge(text, section, sound):
    """What becomes of a header: killed by a test, or else."""
    with tempfile.TemporaryDirectory(dir=OUT) as directory:
        with open(os.path.join(directory, "idem.h"), "w") as file:
            file.write(text)
        same = sound.same(TCC, directory)
        if same is None:
            return UNBUILT
        compilers = [TCC]
        for name in suite(section):
            compiler = STAGES[name][1][0]
            if compiler == GCC[0] and GCC not in compilers:
                compilers.append(GCC)
                gcc = sound.same(GCC, directory)
                if gcc is None:
                    return UNBUILT
                same = [one or other for one, other in zip(same, gcc)]
            if all(same):
                return "same"
            if same[name.startswith("cell")]:
                continue
            result = try_stage(name, directory, sound.limit(name))
            if result == UNBUILT:
                return result
            if not isinstance(result, float):
                return "killed by %s, %s" % (name, result)
        return "survived"


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


def choose(mutants, wanted):
    """Those of the sections that are wanted, or with what is in their name."""
    sections_wanted = [each for each in wanted if ":" not in each]
    names = [each for each in wanted if ":" in each]
    if "critical" in sections_wanted:
        sections_wanted += CRITICAL
    return [mutant for mutant in mutants
            if not wanted or mutant.section in sections_wanted or
            any(name in mutant.name for name in names)]


class Tally:
    """What became of the mutants."""

    def __init__(self, known):
        self.known = known
        self.killed, self.counted, self.left = {}, {}, []
        self.unknown = 0        # survivors in critical code, without a reason

    def add(self, mutant, verdict):
        reason = self.known.get(mutant.name, "")
        proved = reason.startswith(EQUIVALENT)
        if proved and verdict.startswith("killed"):
            self.left.append("not equivalent: " + mutant.name)
            self.unknown += 1
        if verdict in ("same", UNBUILT, EQUIVALENT) or \
                (verdict == "survived" and proved):
            return
        section = mutant.section
        self.counted[section] = self.counted.get(section, 0) + 1
        if verdict != "survived":
            self.killed[section] = self.killed.get(section, 0) + 1
            return
        self.left.append("survived%s: idem.h:%d: %s" % (
            ", known" if reason else "", mutant.line, mutant.name))
        if section in CRITICAL:
            self.unknown += 1

    def report(self, sample, total):
        killed = sum(self.killed.values())
        counted = sum(self.counted.values())
        for section in self.counted:
            print("%-9s %4d of %4d" % (section, self.killed.get(section, 0),
                                       self.counted[section]))
        print("\n".join(sorted(self.left)))
        figure = 100.0 * killed / max(1, counted)
        good = figure >= LEAST and not self.unknown
        print("mutate: %d of %d killed, %.1f %%, in a sample of %d of %d: %s" %
              (killed, counted, figure, sample, total,
               "passed" if good else "FAILED"))
        return 0 if good else 1


def main():
    short = os.environ.get("SHORT") == "1"
    sample = SHORT_SAMPLE if short else \
        int(os.environ.get("IDEM_MUTANTS", "300"))
    skip = int(os.environ.get("IDEM_SKIP", "0"))
    again = os.environ.get("IDEM_KNOWN") == "1"
    with open("idem.h", encoding="utf-8") as file:
        text = file.read()
    tally = Tally(read_known("tests/mutate/survivors.txt"))
    every = all_mutants(text)
    mutants = choose(every, sys.argv[1:] or ["critical"] * short)
    chosen = mutants[skip:skip + sample] if sample else mutants[skip:]
    os.makedirs(OUT, exist_ok=True)
    for name in set(tally.known) - {mutant.name for mutant in every}:
        print("no such mutant: " + name)

    def run(mutant):
        began = time.monotonic()
        if not again and \
                tally.known.get(mutant.name, "").startswith(EQUIVALENT):
            return EQUIVALENT, 0.0
        verdict = judge(mutant.text(text), mutant.section, sound)
        return verdict, time.monotonic() - began

    with tempfile.TemporaryDirectory(dir=OUT) as directory, \
            concurrent.futures.ThreadPoolExecutor(
                int(os.environ.get("IDEM_JOBS", "2" if short else "1"))) as pool:
        sound = Sound(text, directory)
        for mutant, (verdict, took) in zip(chosen, pool.map(run, chosen)):
            if os.environ.get("VERBOSE"):
                print("%5.1f %s: idem.h:%d: %s" % (
                    took, verdict, mutant.line, mutant.name), flush=True)
            tally.add(mutant, verdict)
    return tally.report(len(chosen), len(mutants))


if __name__ == "__main__":
    sys.exit(main())
