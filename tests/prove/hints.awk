# SPDX-License-Identifier: 0BSD
# Puts the hints for Eva in the first file into the header in the second: in
# front of every line of a function that is told by its text.  Says on stderr
# what it does not find, and fails.
function place(line) {
    at = name SUBSEP line
    wanted[at] = 1
}
FNR == 1 { file++ }
file == 1 && $1 == "in" { name = $2 }
file == 1 && $1 == "before" { place(substr($0, 8)) }
file == 1 && $1 == "branch" { place(substr($0, 8)); branch[at] = 1 }
file == 1 && $1 == "//@" { hint[at] = hint[at] $0 "\n" }
file == 1 { next }
/^[A-Za-z].*\(/ && !/;$/ {
    inside = $0
    sub(/\(.*/, "", inside)
    sub(/.*[ *]/, "", inside)
}
{
    text = $0
    sub(/^ */, "", text)
}
(inside, text) in wanted {
    at = inside SUBSEP text
    found[at] = 1
    printf "%s", hint[at]
    if (at in branch)
        sub(/;$/, " ? 1 : 0;")
}
/^}/ { inside = "" }
{ print }
END {
    for (at in wanted)
        if (!(at in found)) {
            sub(SUBSEP, ": ", at)
            print "no such line: " at > "/dev/stderr"
            bad = 1
        }
    exit bad
}
