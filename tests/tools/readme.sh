#!/bin/sh
# SPDX-License-Identifier: 0BSD
# Writes a table into README between its two markers; CI fails if that changes
# it.
#     readme.sh NAME FILE
set -eu

awk -v name="$1" -v table="$2" '
    $0 ~ "<!-- " name ": end -->" { hidden = 0 }
    !hidden                       { print }
    $0 ~ "<!-- " name ": begin"   { while ((getline line < table) > 0)
                                        print line
                                    hidden = 1 }' README.md > "$2.md"
if ! cmp -s README.md "$2.md"; then
    cp "$2.md" README.md
    echo "README.md: the table has changed"
fi
