# SPDX-License-Identifier: 0BSD
# What each public call takes of the stack, and how deep it goes, from the call
# graph that gcc writes with -fcallgraph-info=su.  A line for each call: bytes,
# private functions in its longest chain, name.
# Callbacks, the user's handler and the C library count 0.
match($0, /title: "[^"]*"/) && /^node/ {
    name = substr($0, RSTART + 8, RLENGTH - 9)
    frame[name] = match($0, /[0-9]+ bytes/) ? substr($0, RSTART) + 0 : 0
}
/^edge/ {
    match($0, /sourcename: "[^"]*"/)
    from = substr($0, RSTART + 13, RLENGTH - 14)
    match($0, /targetname: "[^"]*"/)
    calls[from] = calls[from] " " substr($0, RSTART + 13, RLENGTH - 14)
}

# Fills deepest[] and longest[] for a function and all below it.
function walk(name,    list, n, i, below) {
    if (name in deepest)
        return
    n = split(calls[name], list, " ")
    deepest[name] = longest[name] = 0
    for (i = 1; i <= n; i++) {
        below = list[i]
        walk(below)
        if (deepest[below] > deepest[name])
            deepest[name] = deepest[below]
        if (longest[below] > longest[name])
            longest[name] = longest[below]
    }
    deepest[name] += frame[name]
    longest[name] += name ~ /:/         # a private one: "file.c:name"
}

END {
    for (name in frame)
        if (name ~ /^idem_/) {
            walk(name)
            print deepest[name], longest[name], name
        }
}
