# SPDX-License-Identifier: 0BSD
# Read by the scripts that build benchmarks with the peers that are installed.

# peer NAME SOURCE MACRO HEADER COMPILER FLAGS LIBRARIES: compiles the source if
# the header is there; adds to $objects, $defines and $libraries.
peer() {
    mkdir -p "$out"
    object=$out/$(basename "$2").o
    if echo "#include <$4>" | $5 $6 -E - >"$out/probe" 2>&1; then
        $5 $6 -O2 -I. -c "$2" -o "$object"
        objects="$objects $object"
        defines="$defines -D$3"
        libraries="$libraries $7"
    else
        echo "bench: without $1: <$4> is not installed"
    fi
}
objects=
defines=
libraries=
cc=${CC:-cc}
