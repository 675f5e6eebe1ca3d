#!/bin/sh
# SPDX-License-Identifier: 0BSD
# Runs a command that makes a file, unless nothing has changed that the file was
# made from.
#     build.sh FILE COMMAND...        COMMAND names FILE, as in -o FILE
#
# A file is made from the command with all its flags, the compiler in its
# version, the files that the command names and, as the compiler lists them, all
# headers, the system's too.  Contents are compared, not times: a file that a
# stash or git put back is seen, and `touch` builds nothing.
# FILE.from keeps the names, FILE.sum what was in them.
set -eu

file=$1
shift
[ -d "${file%/*}" ] || mkdir -p "${file%/*}"

# All that the file is made from, as one text
sum() {
    echo "$*"
    "$1" --version 2>&1 || :
    xargs cksum < "$file.from" 2>&1
}

# The headers of each source, which a compiler that is given several cannot
# write while it compiles
headers() {
    for word in "$@"; do
        shift
        [ "$word" = -o ] || [ "$word" = "$file" ] || set -- "$@" "$word"
    done
    "$@" -M -w
}

if [ -e "$file" ] && [ -e "$file.sum" ] && sum "$@" | cmp -s - "$file.sum"
then exit; fi

rm -f "$file" "$file.sum" "$file.d"
: > "$file.start"
: > "$file.from"
sources=0
for word in "$@"; do
    case $word in
    *.c | *.cpp) sources=$((sources + 1)) ;;
    *) ;;
    esac
    [ "$word" = "$file" ] || [ ! -f "$word" ] || echo "$word" >> "$file.from"
done
case $sources in
0) "$@" ;;
1) "$@" -MD -MF "$file.d" ;;
*) "$@" && headers "$@" > "$file.d" ;;
esac || { rm -f "$file" "$file.start" "$file.from"; exit 1; }
# A compiler that lists nothing is asked to compile each time.
[ $sources = 0 ] || [ -s "$file.d" ] || exit 0
[ $sources = 0 ] || sed -e 's/^[^ ]*: / /' -e 's/\\$//' "$file.d" |
    tr -s ' ' '\n' | sed '/^$/d' | sort -u >> "$file.from"
# What was edited while the compiler read it is read again next time.
[ -n "$(find $(cat "$file.from") -newer "$file.start")" ] ||
    sum "$@" > "$file.sum"
rm -f "$file.start" "$file.d"
