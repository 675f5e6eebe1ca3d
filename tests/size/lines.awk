# SPDX-License-Identifier: 0BSD
# Lines of the header: in all, of the manual (what is above the first
# directive), and of code, without comments and blank ones, in the sections that
# `of` names.  Comments are whole lines or the end of one.
/^#/ && !manual { manual = NR - 1 }
/^   >>[a-z]+ / { section = substr($1, 3) }
{
    line = $0
    while (match(line, /\/\*([^*]|\*[^\/])*\*\//))
        line = substr(line, 1, RSTART - 1) substr(line, RSTART + RLENGTH)
    if (inside && sub(/.*\*\//, "", line))
        inside = 0
    sub(/\/\/.*/, "", line)
    opens = sub(/\/\*.*/, "", line)
    if (!inside && line !~ /^[ \t]*$/ && index(" " of " ", " " section " "))
        code++
    if (opens)
        inside = 1
}
END { print NR, manual, code + 0 }
