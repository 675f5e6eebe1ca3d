#!/bin/sh
# SPDX-License-Identifier: 0BSD
# The journal of format 2, as every machine must write it.
#     golden.sh           compares, with what this machine writes and reads, and
#                         an emulated big-endian one if it is there
#     golden.sh write     writes golden/ anew: only if the format changes
#     golden.sh digests HASH RUN...   compares the digests that RUN prints
# golden/HASH.txt has a digest for each medium of tests/targets/image.c;
# HASH-nor8 and HASH-numbers there are whole journals, the third and the sixth
# of them, which every later version of the header has to read.
set -eu
cd "$(dirname "$0")/../.."

golden=tests/format/golden
out=build/golden
mkdir -p "$out"

# image PROGRAM FLAGS...
image() {
    program=$1
    shift
    ${CC:-cc} -std=c99 -O1 -I. "$@" tests/targets/image.c tests/targets/host.c \
        -o "$out/$program"
}

# build HASH: the programs that write and read
build() {
    number=$(sed -n "s/^#define IDEM_HASH_$(echo "$1" | tr a-z A-Z) *//p" idem.h)
    image "$1" -DIDEM_HASH="$number"
    image "$1-read" -DIDEM_HASH="$number" -DIMAGE_READS
}

# reads HASH RUN...: the whole journals, with what reads one
reads() {
    hash=$1
    shift
    base64 -d "$golden/$hash-nor8.gz.base64" | gunzip | "$@" 3
    base64 -d "$golden/$hash-numbers.gz.base64" | gunzip | "$@" 6
}

# keep NAME: the journal that is told in hexadecimal digits
keep() {
    tr a-f A-F | basenc --base16 -d -i | gzip -9n | base64 \
        > "$golden/$1.gz.base64"
}

# digests HASH RUN...
digests() {
    hash=$1
    shift
    "$@" > "$out/digests"
    diff "$golden/$hash.txt" "$out/digests" ||
        { echo "FAILED: $hash: other bytes"; exit 1; }
}

case ${1:-} in
write)
    for hash in siphash halfsiphash fnv; do
        build $hash
        "$out/$hash" > $golden/$hash.txt
        "$out/$hash" 3 | keep $hash-nor8
        "$out/$hash" 6 | keep $hash-numbers
    done ;;
digests)
    shift
    digests "$@" ;;
*)
    passed=0
    for hash in siphash halfsiphash fnv; do
        build $hash
        digests $hash "$out/$hash"
        reads $hash "$out/$hash-read"
        passed=$((passed + 3))
        command -v s390x-linux-gnu-gcc qemu-s390x > /dev/null || continue
        CC="s390x-linux-gnu-gcc -static" build $hash
        digests $hash qemu-s390x "$out/$hash"
        reads $hash qemu-s390x "$out/$hash-read"
        passed=$((passed + 3))
    done
    echo "golden: $passed passed, 0 failed" ;;
esac
