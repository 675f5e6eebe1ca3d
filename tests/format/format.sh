#!/bin/sh
# SPDX-License-Identifier: 0BSD
# The journal of format 4, with each hash, here, with 32 bits, and on an emulated
# big-endian machine if there is one.
#     format.sh [PART...]
#         golden    the bytes are those that every machine must write, and
#                   journals that were kept are read
#         reader    a reader that was written from the manual alone (reader.py)
#                   finds the same in journals as idem.h.  SEEDS: in how many;
#                   SEED: others
#     format.sh write     writes golden/ anew: only if the format changes
# golden/HASH.txt is what tests/targets/image.c prints: a digest of hashes, and
# one for each medium; siphash-nor8 and -numbers there are whole journals, on the
# third and the sixth of them, which every later version of the header has to
# read, whatever it writes.  (With another hash nothing else is in how one is
# read.)
set -eu
cd "$(dirname "$0")/../.."

golden=tests/targets/golden
out=build/format
hashes="siphash halfsiphash fnv"        # 1, 2, 3
seeds=3000
[ "${SHORT:-}" != 1 ] || seeds=300
seeds=${SEEDS:-$seeds}
passed=0
mkdir -p "$out"

# takes HASH: whether a machine other than this one is asked for it
takes() { [ "${SHORT:-}" != 1 ] || [ $hash = "$1" ]; }

# on_each WHAT: does it with what is built here, and with what other machines
# would write; with SHORT=1 each of those with the one hash that is its default
on_each() {
    compiler=${CC:-cc} runner= machine=here
    $1
    compiler="gcc -m32 -idirafter /usr/include/$(gcc -print-multiarch)"
    machine=small runner="sh tests/tools/narrow.sh"
    ! takes halfsiphash || $1
    takes siphash || return 0
    command -v s390x-linux-gnu-gcc qemu-s390x > /dev/null || return 0
    compiler="s390x-linux-gnu-gcc -static" runner=qemu-s390x machine=big
    $1
}

# build NAME SOURCE...
build() {
    name=$1
    shift
    $compiler -std=c99 -O1 ${CFLAGS:-} -I. -Itests -DIDEM_HASH="$number" "$@" \
        -o "$out/$name-$hash-$machine"
}

# run NAME ARGUMENT...: what was built
run() {
    name=$1
    shift
    $runner "$out/$name-$hash-$machine" "$@"
}

fail() { echo "FAILED: $hash, $machine: $*"; exit 1; }

build_golden() {
    build image tests/targets/image.c tests/targets/host.c
    build read -DIMAGE_READS tests/targets/image.c tests/targets/host.c
}

# kept NAME: a whole journal's bytes
kept() { base64 -d "$golden/$hash-$1.gz.base64" | gunzip; }

check_golden() {
    build_golden
    run image > "$out/digests"
    diff "$golden/$hash.txt" "$out/digests" ||
        fail "writes other bytes than in $golden/$hash.txt"
    passed=$((passed + 1))
    [ $hash = siphash ] || return 0
    kept nor8 | run read 3 || fail "the kept journal nor8 is not read"
    kept numbers | run read 6 || fail "the kept journal numbers is not read"
    passed=$((passed + 2))
}

# keep NAME: the journal that comes in hexadecimal digits
keep() {
    tr a-f A-F | basenc --base16 -d -i | gzip -9n | base64 \
        > "$golden/$hash-$1.gz.base64"
}

write_golden() {
    compiler=${CC:-cc} runner= machine=here
    build_golden
    run image > "$golden/$hash.txt"
    [ $hash = siphash ] || return 0
    run image 3 | keep nor8
    run image 6 | keep numbers
}

check_reader() {
    first=$(((number * 1000000 + (${SEED:-1} - 1) * 10000) % 4000000000))
    build history tests/format/history.c
    if [ $machine = here ]; then
        run history $first "$seeds" > "$out/journals"
        python3 tests/format/reader.py < "$out/journals" ||
            fail "the reader and idem.h find different things in a journal"
    else
        run history $first 50 > "$out/journals-$machine"
        head -n 50 "$out/journals" | cmp - "$out/journals-$machine" ||
            fail "this machine writes other bytes than the host"
    fi
}

for part in ${*:-golden reader}; do
    number=0
    for hash in $hashes; do
        number=$((number + 1))
        case $part in
        write) write_golden ;;
        *) on_each "check_$part" ;;
        esac
    done
    [ "$part" != golden ] || echo "golden: $passed passed, 0 failed"
done
