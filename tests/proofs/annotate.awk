# SPDX-License-Identifier: 0BSD
# Puts the contracts in the first file, and those of loops, into idem.h,
# the second.  Prints on stderr what does not fit, and fails.
function unfit(text) {
    print text > "/dev/stderr"
    bad = 1
}
FNR == 1 { file++ }
file == 1 && /^\/\// { next }
file == 1 && $1 == "logic" { name = "" }
file == 1 && ($1 == "function" || $1 == "assumed") {
    name = $2
    proved[name] = $1 == "function"
    contract[name] = before
    before = ""
}
file == 1 && $1 == "loop" && NF == 1 { loops[name]++ }
file == 1 && (NF == 1 || /^(function|assumed) /) { next }
file == 1 && !name { before = before $0 "\n"; next }
file == 1 && loops[name] {
    loop[name, loops[name]] = loop[name, loops[name]] $0 "\n"
    next
}
file == 1 { contract[name] = contract[name] $0 "\n"; next }

# A declaration ends in a semicolon, the front of a definition does not.
head || /^(static|IDEM_API|IDEMI_INLINE)[^;=]*[ *]idemi?_[a-z0-9_]+\(/ {
    head = head $0 "\n"
    if (/;$/ || /\)$/) {
        inside = head
        sub(/\(.*/, "", inside)
        sub(/.*[ *]/, "", inside)
        if (/\)$/ && inside in contract) {
            print contract[inside]
            found[inside]++
        }
        printf "%s", head
        head = ""
        at = 0
    }
    next
}
/^ *IDEMI_UNROLL$/ { next }             # a loop is what is annotated
proved[inside] && /^ *(for|while) \(|^ *do \{$/ { print loop[inside, ++at] }
proved[inside] && /^}/ && at != loops[inside] + 0 {
    unfit(inside ": " at " loops, " loops[inside] + 0 " annotations")
}
{ print }
END {
    for (name in contract)
        if (!found[name])
            unfit("not in idem.h: " name)
    exit bad
}
