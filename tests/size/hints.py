#!/usr/bin/env python3
# SPDX-License-Identifier: 0BSD
"""Finds which private functions of idem.h gcc should inline at -Os (IDEMI_INLINE
instead of static), and which not (IDEMI_NOINLINE before it).

    hints.py [NAME...]      all functions that are called twice or more, or these

It tries another mark, or none, on one function after the other, and keeps it if
the builds of size.sh get smaller in all, and neither the deepest stack nor the
longest chain of calls grows.  Takes an hour; the result fits the compiler that
is installed.
"""
import concurrent.futures
import os
import re
import subprocess
import sys

MARKS = ("static", "IDEMI_NOINLINE\nstatic", "IDEMI_INLINE")
BUILDS = {
    "table": "alone $out/idem.h; compile %s -I$out/alone",
    "whole": "compile %s -I$out -fstack-usage -fcallgraph-info=su",
    "random": "compile_of tests/size/configured.c %s -I$out",
    "random_journal": "compile_of tests/size/configured.c %s -I$out -DJOURNAL",
    "features_journal":
        "compile_of tests/size/configured.c %s -I$out -DFEATURES -DJOURNAL",
}
FIRST = ("table", "whole")
SCRIPT = """set -eu
out=%s
cc="arm-none-eabi-gcc -std=c99 -mcpu=cortex-m0 -mthumb"
nm=arm-none-eabi-nm
. tests/size/link.sh
%s
link %s $firmware
arm-none-eabi-size -A "$out/%s.elf" |
    awk '$1 ~ /^\\.(text|rodata)/ { n += $2 } END { print n }'
[ ! -f "$out/%s.ci" ] || awk -f tests/size/calls.awk "$out/%s.ci"
"""
FUNCTION = re.compile(
    r"^(static|IDEMI_NOINLINE\nstatic|IDEMI_INLINE) [^;{}=#]*?\b(idemi_\w+)"
    r"\([^;{}]*?\)\n\{", re.M)


def build(name, out):
    """Bytes, deepest stack and longest chain, if they are asked for."""
    script = SCRIPT % (out, BUILDS[name] % name, name, name, name, name)
    run = subprocess.run(["sh", "-c", script], capture_output=True, text=True)
    if run.returncode:
        return None
    size, *calls = run.stdout.splitlines()
    rows = [row.split() for row in calls if "idem_begin_many" not in row]
    return (int(size), max((int(row[0]) for row in rows), default=0),
            max((int(row[1]) for row in rows), default=0))


def measure(text, out, names):
    """What a header takes, build by build; None if one fails."""
    with open(os.path.join(out, "idem.h"), "w", encoding="utf-8") as file:
        file.write(text)
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        sizes = dict(zip(names, pool.map(lambda n: build(n, out), names)))
    return None if None in sizes.values() else sizes


def is_better(new, old):
    """True if it is smaller in all, and neither deeper nor longer."""
    names = list(new)
    return sum(new[n][0] for n in names) < sum(old[n][0] for n in names) and \
        all(new[n][1] <= old[n][1] and new[n][2] <= old[n][2] for n in names)


def marked(text, function, mark):
    """The header with a mark in front of a function, or None if it has that."""
    for found in FUNCTION.finditer(text):
        if found.group(2) == function and found.group(1) != mark:
            return text[:found.start()] + mark + text[found.end(1):]
    return None


def main():
    """Tries all marks on all functions."""
    out = "build/size/hints"
    os.makedirs(out, exist_ok=True)
    with open("idem.h", encoding="utf-8") as file:
        text = file.read()
    names = sys.argv[1:] or [
        found.group(2) for found in FUNCTION.finditer(text)
        if len(re.findall(r"\b%s\(" % found.group(2), text)) > 2]
    now = measure(text, out, BUILDS)
    for name in names:
        for mark in MARKS:
            trial = marked(text, name, mark)
            if not trial:
                continue
            sizes = measure(trial, out, FIRST)
            if not sizes or not is_better(sizes, {n: now[n] for n in FIRST}):
                continue
            sizes = measure(trial, out, BUILDS)
            if not sizes or not is_better(sizes, now):
                continue
            print(name, mark.replace("\n", " "), *(sizes[n][0] - now[n][0] for n in BUILDS),
                  flush=True)
            text, now = trial, sizes
    with open("idem.h", "w", encoding="utf-8") as file:
        file.write(text)
    print(*(f"{n}: {now[n][0]}" for n in BUILDS))


main()
