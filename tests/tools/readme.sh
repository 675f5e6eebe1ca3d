#!/bin/sh
# SPDX-License-Identifier: 0BSD
# Writes a table into README, or into tests/FIGURES.md, between its two markers;
# CI fails if that changes it.
#     readme.sh NAME FILE [COMPILER...]
# The begin marker has the versions of the compilers that made the table.  If
# one is another version here, it writes nothing and reports it; with ANEW=1 it
# writes in any case.
set -eu

name=$1 table=$2
shift 2
with=
for compiler in "$@"; do
    with="$with${with:+, }$compiler $("$compiler" -dumpversion)"
done
page=$(grep -l "<!-- $name: begin" README.md tests/FIGURES.md)
had=$(sed -n "s/<!-- $name: begin.* with \(.*\) -->/\1/p" "$page")
if [ -n "$had" ] && [ "$had" != "$with" ] && [ "${ANEW:-}" != 1 ]; then
    echo "skipped: $page, $name: made with $had, here is $with"
    exit
fi
awk -v name="$name" -v table="$table" -v with="${with:+ with $with}" '
    $0 ~ "<!-- " name ": end -->" { hidden = 0 }
    hidden                        { next }
    $0 !~ "<!-- " name ": begin"  { print; next }
    {   sub(/( with .*)? -->/, with " -->")
        print
        while ((getline line < table) > 0)
            print line
        hidden = 1 }' "$page" > "$table.md"
if ! cmp -s "$page" "$table.md"; then
    cp "$table.md" "$page"
    echo "$page: the table has changed"
fi
