# SPDX-License-Identifier: 0BSD
# To be sourced: what firmware links of the header.  Needs $out, and of a machine
# $cc, its compiler with the options that it always has, and $nm.

firmware="idem_open_ idem_begin idem_complete idem_release idem_maintain"

# compile_of SOURCE NAME FLAGS...: the header, in a source, as an object of that
# name; another header than this one with a -I
compile_of() {
    source=$1 name=$2
    shift 2
    $cc -Os -ffunction-sections -fdata-sections -w "$@" -I. \
        -c "$source" -o "$out/$name.o"
}

# compile NAME FLAGS...: the same with nothing but the header
compile() {
    echo '#include <idem.h>' | compile_of - "$@" -DIDEM_IMPLEMENTATION -x c
}

# alone HEADER: a copy of it as $out/alone/idem.h, in which no table ever has a
# journal: the table alone, configured at run time.  (With IDEM_CONFIG a
# configuration without storage does the same.)  Each macro with that must be
# found: otherwise the figures would be of the journal too.
alone() {
    mkdir -p "$out/alone"
    sed -E 's/^(#define IDEMI_EVER_JOURNAL +).*/\10/
        s/^(#define IDEMI_(JOURNAL|STORAGE)\((\w+)\) +).*/\1((void)(\3), 0)/
        ' "$1" > "$out/alone/idem.h"
    none=$(sed -nE 's/^#define IDEMI_(\w+)(\(\w+\))? .* 0\)?$/\1/p' \
        "$out/alone/idem.h" | grep -xE 'EVER_JOURNAL|JOURNAL|STORAGE' | sort -u)
    [ "$(echo "$none" | wc -w)" != 3 ] || return 0
    echo "alone: $1 finds in another way whether there is a journal" >&2
    return 1
}

# link NAME CALLS...: what a program that makes these calls links of it, without
# the C library
link() {
    object=$1
    shift
    roots=
    for call in "$@"; do
        roots="$roots -Wl,-u,$call"
    done
    $cc -nostdlib -Wl,--gc-sections -Wl,-e,0 \
        -Wl,--unresolved-symbols=ignore-all $roots \
        "$out/$object.o" -o "$out/$object.elf"
}

# calls NAME: what calls.awk prints of an object, the deepest first
calls() {
    compile "$@" -fstack-usage -fcallgraph-info=su
    awk -f tests/size/calls.awk "$out/$1.ci" | sort -rn
}

# deepest: of what calls prints, bytes of the deepest call that firmware makes:
# idem_begin_many has room for 16 commands, on hosts
deepest() {
    awk '$3 != "idem_begin_many" && !found++ { print $1 }'
}

# object NAME: bytes of one of ram.c
object() {
    $cc -I. -c tests/size/ram.c -o "$out/ram.o"
    $nm -S -t d "$out/ram.o" | awk -v name="$1" '$4 == name { print $2 + 0 }'
}
