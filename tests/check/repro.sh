#!/bin/sh
# SPDX-License-Identifier: 0BSD
# Builds the examples twice, in two directories with names of different lengths,
# and compares the bytes.  What is planted (the time of the build) must show.
# SHORT=1 builds one.
set -eu

out=$PWD/build/check/repro
rm -rf "$out"
mkdir -p "$out"
targets="build/hello build/patterns build/file build/serial/demo"
[ "${SHORT:-}" != 1 ] || targets=build/hello

# build DIRECTORY: the tree as it is in git's index, built there
build() {
    mkdir -p "$1"
    git checkout-index -a --prefix="$1/"
    (cd "$1" && make -s $targets \
        CFLAGS="-std=c99 -O1 -g -ffile-prefix-map=$1=." > log 2>&1) ||
        { cat "$1/log"; exit 1; }
}

differing() {
    for target in $targets; do
        cmp -s "$out/one/$target" "$out/a/second/one/$target" || echo "$target"
    done
}

build "$out/one"
build "$out/a/second/one"
differ=$(differing)
[ -z "$differ" ] || { echo "FAILED: repro: differ: $differ"; exit 1; }
echo "repro: $(echo "$targets" | wc -w) programs, two builds, equal"

echo 'const char *const built = __FILE__ " " __TIME__;' \
    >> "$out/a/second/one/examples/hello.c"
sleep 1
(cd "$out/a/second/one" && make -s build/hello > log 2>&1)
[ -n "$(differing)" ] || { echo "FAILED: repro: compares nothing"; exit 1; }
echo "repro: planted and found: the time of the build"
