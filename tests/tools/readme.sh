#!/bin/sh
# SPDX-License-Identifier: 0BSD
# Writes a table into README, or into tests/FIGURES.md, between its two markers;
# CI fails if that changes it.
#     readme.sh NAME FILE
set -eu

page=$(grep -l "<!-- $1: begin" README.md tests/FIGURES.md)
awk -v name="$1" -v table="$2" '
    $0 ~ "<!-- " name ": end -->" { hidden = 0 }
    !hidden                       { print }
    $0 ~ "<!-- " name ": begin"   { while ((getline line < table) > 0)
                                        print line
                                    hidden = 1 }' "$page" > "$2.md"
if ! cmp -s "$page" "$2.md"; then
    cp "$2.md" "$page"
    echo "$page: the table has changed"
fi
