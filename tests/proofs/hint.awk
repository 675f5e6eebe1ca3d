# SPDX-License-Identifier: 0BSD
# Puts what the first file's `before` entries (function, and its names, as
# locals.py has them) have behind > into idem.h, before a line of a function.  Says on stderr what it does not find, or what would be
# the one statement of a condition then, and fails.
FNR == 1 { file++ }
file == 1 && $1 == "before" { name = $2; next }
file == 1 && !/^ / { name = ""; next }
file == 1 && name == "" { next }
file == 1 {
    sub(/^ +/, "")
    if (sub(/^> /, ""))
        hint[at] = hint[at] $0 "\n"
    else {
        at = name SUBSEP $0
        missing[at] = name ": " $0
    }
    next
}
/^[A-Za-z].*\(/ {
    within = $0
    sub(/\(.*/, "", within)
    sub(/.*[ *]/, "", within)
}
{
    code = $0
    sub(/^ +/, "", code)
    if ((within, code) in hint) {
        if (above ~ /(\)|else)$/ && hint[within, code] !~ /^\/\/@[^\n]*\n$/) {
            print "not in braces: " within ": " code > "/dev/stderr"
            bad = 1
        }
        printf "%s", hint[within, code]
        delete missing[within, code]
    }
    print
    above = code
}
END {
    for (at in missing) {
        print "not in idem.h: " missing[at] > "/dev/stderr"
        bad = 1
    }
    exit bad
}
