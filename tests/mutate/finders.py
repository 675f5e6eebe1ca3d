# SPDX-License-Identifier: 0BSD
"""The tests that can find a fault in a header: all of storage, journal and
table.  The unit tests are built once (as tests/unit/unit.sh does, with the
header compiled once for all of them) and run with another header's library; the
others have the header inside and are built for each.  Most faults are found in
less time than gcc optimizes a library in: tcc makes the one for the first tests.

    finders = Finders()
    finders.judge(directory, names)     the first of these that fails
"""
import atexit
import collections
import contextlib
import glob
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading

OUT = "build/mutate/%d" % os.getpid()     # two may run at once
JOBS = int(os.environ.get("IDEM_JOBS", "2"))
SHORT = os.environ.get("SHORT") == "1"
UNITS = os.environ.get("B", "build") + "/unit"
MEMORY = 2 << 30
CC = os.environ.get("CC", "cc")
SOURCE = "tests/check/compile/c.c"          # nothing but the header
INCLUDES = ["-I.", "-Itests", "-Itests/storage", "-Itests/targets/vendor",
            "-Itests/targets/vendor_avr"]
# An index that is out of bounds ends the program.
PLAIN = [CC, "-std=c99", "-O1", "-w", "-fsanitize=bounds",
         "-fsanitize-undefined-trap-on-error"]
QUICK = [CC, "-std=c99", "-O0", "-w"]
TCC = ["tcc", "-std=c99", "-w"] if shutil.which("tcc") else QUICK
UNIT = QUICK if SHORT else PLAIN            # tcc knows no TEST
SHARED = ["-fPIC", "-shared"]
REASON = re.compile(r"(?:\[  FAILED  \]|violation:|idem\.h asserts:) *(.*)")

# name: source, arguments, options
JUDGES = {
    "crash": ("tests/storage/crash.c", ["--short", "--first"], []),
    "extremes": ("tests/storage/extremes.c", ["profiles", "16", "23"], []),
    "erases": ("tests/storage/extremes.c", ["rings", "1", "1500"], []),
    "images": ("fuzz/lives.c", ["3000", "12000"], ["-DIMAGE"]),
}
SOUND = {"crash": ["--geometry", "nor8"]}   # in the short form, without a fault
SLOWEST = ["model", "lives"]            # of the unit tests

# Of the unit tests those that find most in least time, with a library of tcc
FIRST = ["full", "clock", "life", "keys", "api", "journal_time", "senders",
         "journal_rotation", "journal_opening", "table", "journal_damage"]
# Then those, with one of the compiler
SECOND = ["numbers", "journal", "journal_failing", "journal_senders"]


def compiles(command):
    """Whether it does; prints nothing."""
    return not subprocess.run(command, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL).returncode


def limits(seconds):
    """A hang is ended by the time that it takes, not by that of others."""
    def set_limits():
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    return set_limits


def end(run):
    """With what it has started."""
    try:
        os.killpg(run.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def passes(command, seconds, library):
    """Runs a test up to the first fault that it finds: the seconds that it
    took, or in words what that is."""
    env = dict(os.environ, IDEM_CALLS="100000", LD_LIBRARY_PATH=library)
    run = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        preexec_fn=limits(seconds), start_new_session=True, env=env)
    watch = threading.Timer(60 + 10 * seconds, end, (run,))
    watch.start()
    reason = None
    for line in run.stdout:
        found = REASON.match(line.decode(errors="replace"))
        if found:
            reason = found.group(1).strip()
            end(run)
            break
    _, status, usage = os.wait4(run.pid, 0)
    watch.cancel()
    run.stdout.close()
    run.returncode = status
    if status or reason:
        return reason or "status %d" % status
    return usage.ru_utime + usage.ru_stime


class Finders:
    """All tests, and how long each takes with a header that has no fault."""

    def __init__(self):
        self.lock = threading.Lock()
        self.took = {}                  # seconds, without a fault
        self.limits = {}                # seconds
        self.found = collections.Counter()      # faults
        self.unsound = set()            # those that find what nobody injected
        self.bin = os.path.abspath(OUT + "/bin")
        self.sound = os.path.abspath(OUT + "/sound")
        atexit.register(shutil.rmtree, OUT, ignore_errors=True)
        os.makedirs(self.bin)
        os.makedirs(self.sound)
        shutil.copy("idem.h", self.sound)
        sources = glob.glob("tests/unit/*.c")
        names = {os.path.basename(path)[:-2] for path in sources} - {"idem"}
        self.own = {name for name in names
                    if self.implements("tests/unit/%s.c" % name)}
        rest = sorted(names - set(FIRST + SECOND), key=lambda name: (
            name in SLOWEST, name in self.own, name))
        self.units = [name for name in FIRST + SECOND if name in names] + rest
        self.tests = self.units + ["extremes", "erases", "images", "crash"]

    @staticmethod
    def implements(path):
        """Whether a test has the header inside, itself or what it includes."""
        defined = subprocess.run([CC, "-dM", "-E"] + INCLUDES + [path],
                                 check=True, capture_output=True, text=True)
        return "#define IDEM_IMPLEMENTATION_DONE" in defined.stdout

    @staticmethod
    def library(directory, name):
        """The folder with the library of a header that a unit test is run with;
        nothing if it does not compile."""
        compiler = TCC if name in FIRST else UNIT
        folder = "%s/%s" % (directory, "first" if name in FIRST else "later")
        if not os.path.exists(folder + "/libidem.so"):
            os.makedirs(folder, exist_ok=True)
            if not compiles(compiler + SHARED + ["-I" + directory] + INCLUDES + [
                    "tests/unit/idem.c", "-o", folder + "/libidem.so"]):
                return None
        return folder

    @contextlib.contextmanager
    def injected(self, header, options=()):
        """A directory with this header; nothing if that does not compile."""
        with tempfile.TemporaryDirectory(dir=OUT) as directory:
            with open(directory + "/idem.h", "w", encoding="utf-8") as file:
                file.write(header)
            source = list(options) + ["-I" + directory] + INCLUDES + [SOURCE]
            yield directory if \
                compiles(QUICK + ["-fsyntax-only"] + source) and \
                compiles(TCC + source + ["-c", "-o", directory + "/o"]) else None

    def build_unit(self, name):
        """Links a unit test for any header; in the short form what `make test`
        has compiled, if that is there."""
        source = "tests/unit/%s.c" % name
        if SHORT:
            source = "%s/%s.o" % (UNITS, name)
            subprocess.run(["sh", "tests/unit/unit.sh", "--do", "compile",
                            name], env=dict(os.environ, unit=UNITS))
        if not compiles((QUICK if name in FIRST else UNIT) + INCLUDES + [
                source, "-o", self.bin + "/" + name,
                "-L%s" % self.library(self.sound, name), "-lidem", "-lcmocka",
                "-lpthread"]):
            sys.exit("FAILED: %s does not compile" % name)

    def run(self, name, directory, seconds, more=()):
        """One test of the header in a directory: as passes() does."""
        if name in JUDGES:
            source, arguments, options = JUDGES[name]
        else:
            source, arguments, options = "tests/unit/%s.c" % name, [], []
        inside = name not in self.units or name in self.own
        library = self.library(directory, FIRST[0] if inside else name)
        program = (directory if inside else self.bin) + "/" + name
        compiler = QUICK if name in self.units else TCC if SHORT else PLAIN
        if not library or inside and not compiles(
                compiler + options + ["-I" + directory] + INCLUDES + [
                    source, "-o", program, "-L" + library, "-lidem",
                    "-lcmocka", "-lpthread"]):
            return "does not compile"
        return passes([program] + arguments + list(more), seconds, library)

    def limit(self, name):
        """The seconds that a test may take: several times what it needs.  0 if
        it finds something without a fault: then it cannot be asked."""
        with self.lock:
            if name not in self.took:
                if name in self.units and name not in self.own:
                    self.build_unit(name)
                few = SOUND.get(name, []) if SHORT else []
                took = self.run(name, self.sound, 600, few)
                if not isinstance(took, float):
                    print("FAILED: %s, without a fault: %s" % (name, took))
                    self.unsound.add(name)
                    took = None
                self.took[name] = took
                self.limits[name] = 0 if took is None else \
                    60 if few else int(2 + 3 * took)
            return self.limits[name]

    def best(self, names):
        """Those first that have found most until now, in least time."""
        return sorted(names, key=lambda name: -self.found[name] /
                      (self.took.get(name) or 1))

    def judge(self, directory, names):
        """Who finds the fault in a header, and what; None if nobody does."""
        for name in names:
            seconds = self.limit(name)
            result = seconds and self.run(name, directory, seconds)
            if isinstance(result, str):
                self.found[name] += 1
                return "%s: %s" % (name, result)
        return None
