# SPDX-License-Identifier: 0BSD
# The promises, tested on idem.h and on all stores at the same time.  The table
# of who keeps what must be the one in README.md of examples/fleet.

build fleet/conformance $here/scenarios.c $STORES $LIBS
need redis postgres dynamodb
"$B/fleet/conformance" promises ram "file:$work/journal" "$redis_url" \
    "$postgres_url" "$dynamodb_url" >"$work/printed" \
    2>"$work/failed" || {
    cat "$work/failed"
    grep FAILED "$work/printed"
    echo "FAILED: conformance; again: make fleet PART=conformance"
    exit 1
}
tail -n 1 "$work/printed"
count "$(tail -n 1 "$work/printed")"
sed '$d' "$work/printed" >"$work/table"
sed -n '/^<!-- conformance: begin/,/^<!-- conformance: end/p' $F/README.md |
    sed '1,3d; $d' | diff - "$work/table" ||
    fail "conformance: the table of $F/README.md is not what was seen"
echo "conformance: the table of $F/README.md is what was seen"
