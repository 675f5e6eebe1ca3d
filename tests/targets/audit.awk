# SPDX-License-Identifier: 0BSD
# Compares what firmware.c printed, over all power cuts, with idem.h's promises.
# Between two starts a line "cut" stands, perhaps after part of a line.
# Prints each violation, and exits by whether there was one.  Or, asked with
#     -v ask=next   prints the first command that is not answered yet
#     -v ask=cuts   prints what was going on at each cut
function violation(text) {
    if (ask == "")
        print "violation: " text " (line " NR ": " $0 ")"
    bad = 1
}
BEGIN { answered = 0 }
$NF == "cut" { where[++cuts] = last; next }
$NF != "."   { next }
{ last = $1; k = $2 }
$1 == "wrong" { violation("not to be answered here") }
$1 == "error" { violation("the storage failed") }
$1 == "opened" {
    if ($3 != 0)
        violation("something is lost")
    if ($2 != answered &&
        !($2 == answered + 1 && (answered in intent)))
        violation("application state is not that of " answered " commands")
}
$1 == "begin" { begun[k]++; asked[k] = 1 }
# Right for a first begin, or one after a release that happened or may have.
$1 == "execute" || $1 == "claimed" {
    if (k in effect)
        violation("executed twice")
    if (k in answer)
        violation("an outcome is forgotten")
    if (k in claimed)
        violation("a claim is forgotten")
    claimed[k] = 1
}
$1 == "execute" { effect[k] = 1 }
$1 == "recover" {
    recovered[k] = 1
    if (k in answer)
        violation("an outcome is forgotten")
    if (begun[k] < 2)
        violation("was never begun before")
}
$1 == "release"  { delete claimed[k] }
$1 == "released" { begun[k] = 0 }
$1 == "complete" { intent[k] = intent[k] " " $3 " " }
$1 == "done" || $1 == "replay" {
    if (index(intent[k], " " $3 " ") == 0)
        violation("never was its response")
    if (k in answer && answer[k] != $3)
        violation("was answered " answer[k] " before")
    if (!(k in answer))
        answered++
    answer[k] = $3
}
$1 == "end" { ended = 1 }
END {
    if (ask == "next")
        print answered
    for (i = 1; ask == "cuts" && i <= cuts; i++)
        print where[i]
    if (ask != "")
        exit
    if (!ended)
        violation("it never ended")
    for (k in asked)
        if (!(k in answer) || !((k in effect) || (k in recovered)))
            violation("command " k " was not done")
    exit bad
}
