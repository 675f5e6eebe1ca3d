# SPDX-License-Identifier: 0BSD
# Joins functions of idem.h, taken by name, with the contracts in the first
# file, in its order.  Says on stderr what it does not find, and fails.  With
# -v hash=NAME the hash is IDEM_HASH_NAME: what is for others is not there.
function take(from, to,    i, text) {
    text = ""
    for (i = 1; i <= lines; i++)
        if (line[i] ~ from)
            break
    if (i > lines)
        return ""
    for (; i <= lines; i++) {
        text = text line[i] "\n"
        if (line[i] ~ to)
            return text
    }
}
# The definition of a function: not a declaration, which ends in a semicolon.
function definition(name,    i, j, text) {
    for (i = 1; i <= lines; i++) {
        if (line[i] !~ "^(static|IDEM_API)[^;]*[ *]" name "\\(")
            continue
        for (j = i; line[j] !~ /[;)]$/; j++)
            ;
        if (line[j] ~ /;$/)
            continue
        text = ""
        for (j = i; line[j] != "}"; j++)
            text = text line[j] "\n"
        return text "}\n"
    }
    return ""
}
function annotated(text,    part, n, i, k) {
    n = split(text, part, "\n")
    text = ""
    k = 0
    for (i = 1; i < n; i++) {
        if (part[i] ~ /^ *(for|while) \(|^ *do \{$/)
            text = text loops[++k] "\n"
        text = text part[i] "\n"
    }
    if (k != loop_count) {
        print name ": " k " loops, " loop_count " annotations" > "/dev/stderr"
        bad = 1
    }
    return text
}
function flush_entry(    text) {
    if (kind == "function" || kind == "assumed")
        text = definition(name)
    else if (kind == "type")
        text = take("^typedef struct " name " ", "^} " name ";")
    else if (kind == "define")
        text = take("^#define " name " ", ".")
    else
        text = kind ? "\n" : ""
    if (kind && text == "") {
        print "not in idem.h: " name > "/dev/stderr"
        bad = 1
    }
    if (kind == "assumed")
        sub(/\n\{.*/, ";\n", text)
    if (kind == "function")
        text = annotated(text)
    print contract text
    kind = contract = name = ""
    loop_count = 0
}
FNR == 1 { file++ }
file == 1 && /^#(el)?if IDEM_HASH == IDEM_HASH_[A-Z]+$/ { here = $NF; next }
file == 1 && here && $1 == "#else" { here = "IDEM_HASH_FNV"; next }
file == 1 && here && $1 == "#endif" { here = ""; next }
file == 1 && here && here != "IDEM_HASH_" hash { next }
file == 1 { line[++lines] = $0; next }
/^\/\// { next }
/^(function|assumed|type|define|predicate|logic|axiom)( |$)/ {
    flush_entry()
    kind = $1
    name = $2
    next
}
$1 == "loop" && NF == 1 { loops[++loop_count] = ""; next }
loop_count { loops[loop_count] = loops[loop_count] $0 "\n"; next }
{ contract = contract $0 "\n" }
END { flush_entry(); exit bad }
