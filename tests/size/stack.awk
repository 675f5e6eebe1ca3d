# SPDX-License-Identifier: 0BSD
# The deepest chain of stack frames below each public function, from the call
# graph that gcc writes with -fcallgraph-info=su.  Prints "bytes function" and
# the frames of that chain, deepest first by the caller's sort.  Hooks and the
# user's handler count 0.
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
function depth(name,    list, n, i, d, most) {
    if (name in known)
        return known[name]
    n = split(calls[name], list, " ")
    most = 0
    for (i = 1; i <= n; i++) {
        d = depth(list[i])
        if (d > most) {
            most = d
            next_of[name] = list[i]
        }
    }
    known[name] = frame[name] + most
    return known[name]
}
function frames(name,    all) {
    for (; name; name = next_of[name])
        all = all " " frame[name]
    return all
}
END {
    for (name in frame)
        if (name ~ /^idem_/)
            print depth(name), name frames(name)
}
