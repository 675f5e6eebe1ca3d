#!/bin/sh
# SPDX-License-Identifier: 0BSD
# Uses the folders that `make package` writes, and the manifests in
# examples/port/, as a project would.  CMake, pkg-config and Arduino (for an
# ATmega328P) build hello with them; of ESP-IDF, Zephyr and PlatformIO there is
# no package: what they read is looked at, with stand-ins for the functions that
# it calls.
set -eu

B=${B:-build}
from=$(cd "$B/package" && pwd)
out=$B/package_test
hello=$(pwd)/examples/hello.c
passed=0
rm -rf "$out"
mkdir -p "$out"
out=$(cd "$out" && pwd)

fail() { echo "package: $*" >&2; tail -n 20 "$out/log" >&2; exit 1; }

# try NAME COMMAND...
try() {
    name=$1
    shift
    "$@" >"$out/log" 2>&1 || fail "$name"
    passed=$((passed + 1))
}

# project NAME: one that has idem by the lines of stdin, with hello
project() {
    mkdir -p "$out/$1"
    {
        printf 'cmake_minimum_required(VERSION 3.14)\nproject(user C)\n'
        cat
        echo "add_executable(hello \"$hello\")"
        echo 'target_link_libraries(hello PRIVATE idem::idem)'
    } >"$out/$1/CMakeLists.txt"
}

# installed PREFIX: a project finds it there
installed() {
    rm -rf "$out/found"
    cmake -S "$out/finding" -B "$out/found" \
        -DCMAKE_PREFIX_PATH="$1" &&
        cmake --build "$out/found" && "$out/found/hello"
}

cmake_project() {
    echo 'find_package(idem 0.1 REQUIRED)' | project finding
    cmake -S "$from/cmake/idem" -B "$out/cmake" \
        -DCMAKE_INSTALL_PREFIX="$out/prefix" &&
        cmake --build "$out/cmake" --target install &&
        installed "$out/prefix"
}

make_install() {
    (umask 077 && ${MAKE:-make} install PREFIX="$out/local") &&
        [ -z "$(find "$out/local" ! -perm -a=r)" ] && installed "$out/local"
}

# Before 1.0 the second number is the interface's.
another_version() {
    for wanted in 0.0.9 0.1.1 0.2 1.0; do
        echo "find_package(idem $wanted REQUIRED)" | project other
        ! cmake -S "$out/other" -B "$out/other_found" \
            -DCMAKE_PREFIX_PATH="$out/local" || return
    done
}

# One that fetches the repository.
fetched() {
    project fetching <<END
include(FetchContent)
set(FETCHCONTENT_SOURCE_DIR_IDEM "$(pwd)")
FetchContent_Declare(idem SOURCE_SUBDIR examples/port/cmake)
FetchContent_MakeAvailable(idem)
END
    cmake -S "$out/fetching" -B "$out/fetched" &&
        cmake --build "$out/fetched" && "$out/fetched/hello"
}

pkg_config() {
    PKG_CONFIG_PATH=$out/local/lib/pkgconfig
    export PKG_CONFIG_PATH
    flags=$(pkg-config --cflags 'idem >= 0.1.0') &&
        eval "${CC:-cc} -std=c99 $flags \"\$hello\" -o \"\$out/hello\"" &&
        "$out/hello"
}

# The sketch with the whole core, as the Arduino IDE builds it.  The float.h of
# Debian's compiler has DECIMAL_DIG for C only.
core=/usr/share/arduino/hardware/arduino/avr
arduino() {
    flags="-Os -mmcu=atmega328p -DF_CPU=16000000L -DARDUINO=10819
        -I$core/cores/arduino -I$core/variants/standard -ffunction-sections
        -fdata-sections"
    for file in "$core"/cores/arduino/*.c; do
        avr-gcc -std=gnu11 -w $flags -c "$file" \
            -o "$out/$(basename "$file").o" || return
    done
    for file in "$core"/cores/arduino/*.cpp; do
        avr-g++ -std=gnu++11 -fno-exceptions -fno-threadsafe-statics -w $flags \
            -DDECIMAL_DIG=__DECIMAL_DIG__ -c "$file" -o "$out/$(basename "$file").o" || return
    done
    avr-g++ -std=gnu++11 -fno-exceptions $flags -Wall -Werror \
        -I"$from/arduino/idem/src" -include Arduino.h -x c++ \
        -c "$from/arduino/idem/examples/Hello/Hello.ino" \
        -o "$out/sketch.o" &&
        avr-gcc -mmcu=atmega328p -Wl,--gc-sections "$out"/*.o -lm \
            -o "$out/sketch.elf" && avr-size "$out/sketch.elf"
}

# The sketch with a journal is for a board with more EEPROM.
arduino_mega() {
    avr-g++ -std=gnu++11 -fno-exceptions -Os -mmcu=atmega2560 \
        -DF_CPU=16000000L -DARDUINO=10819 -I$core/cores/arduino \
        -I$core/variants/mega -Wall -Werror -I"$from/arduino/idem/src" \
        -include Arduino.h -x c++ \
        -c "$from/arduino/idem/examples/Remember/Remember.ino" \
        -o "$out/mega"
}

# manifest FOLDER FUNCTION [WORD]: its CMakeLists.txt, with this standing in for
# the system's own; the word must be handed to it
manifest() {
    rm -f "$out/$2"
    cat >"$out/manifest.cmake" <<END
set(CONFIG_IDEM y)
function($2)
    foreach(header idem.h port/check.h)
        set(found FALSE)
        foreach(folder IN LISTS ARGN)
            if(EXISTS "$1/\${folder}/\${header}")
                set(found TRUE)
            endif()
        endforeach()
        if(NOT found)
            message(FATAL_ERROR "no \${header} in \${ARGN}")
        endif()
    endforeach()
    list(FIND ARGN "${3-}" at)
    if(NOT "${3-}" STREQUAL "" AND at LESS 0)
        message(FATAL_ERROR "no ${3-}")
    endif()
    file(WRITE "$out/$2" called)
endfunction()
include("$1/CMakeLists.txt")
END
    cmake -P "$out/manifest.cmake" && test -f "$out/$2"
}

platformio() {
    python3 -c 'import json, sys
m = json.load(open(sys.argv[1] + "/library.json"))
open(sys.argv[1] + "/include/" + m["headers"])
for e in m["examples"]:
    for f in e["files"]: open("/".join([sys.argv[1], e["base"], f]))
assert m["version"] and m["name"] == "idem"' "$from/platformio/idem"
}

# Every public function is one, and each name is one.
keywords() {
    file=$from/arduino/idem/keywords.txt
    for word in $(sed -n 's/^IDEM_API .*[ *]\(idem_[a-z_]*\)(.*/\1/p' idem.h); do
        grep -q "^$word	KEYWORD2$" "$file" || { echo "no $word"; return 1; }
    done
    grep -q '^idem_table	KEYWORD1$' "$file" &&
        grep -q '^IDEM_REPLAY	LITERAL1$' "$file" &&
        [ -z "$(cut -f 1 "$file" | sort | uniq -d)" ]
}

# What is in a package compiles with nothing else.
ports_and_examples() {
    for folder in arduino/idem/src platformio/idem/include esp-idf/idem/include \
        zephyr/idem/include cmake/idem; do
        ${CC:-cc} -std=c99 -I"$from/$folder" -fsyntax-only -x c - <<END || return
#include "idem.h"
#include "port/check.h"
#include "port/spi_nor.h"
END
    done
    for folder in platformio esp-idf zephyr cmake; do
        for example in hello patterns; do
            ${CC:-cc} -std=c99 "$from/$folder/idem/examples/$example.c" \
                -I"$from/$folder/idem" -I"$from/$folder/idem/include" \
                -o "$out/$example" && "$out/$example" || return
        done
    done
}

# The same bytes from files that only their owner may read
release() {
    cp -R "$from" "$out/private" && chmod -R go= "$out/private" &&
        sh tests/tools/release.sh "$out/release" "$from" &&
        sh tests/tools/release.sh "$out/again" "$out/private" &&
        cmp "$out/release/SHA256SUMS" "$out/again/SHA256SUMS"
}

# The sketch with a journal, on this machine
remember() {
    ${CXX:-c++} -std=c++11 -g -Wall -Wextra -I. -Iexamples \
        -Itests/demo/stand_in tests/demo/remember.cpp -o "$out/remember" &&
        "$out/remember"
}

try CMake cmake_project
try "make install" make_install
try "another version" another_version
try FetchContent fetched
try pkg-config pkg_config
for folder in "$from/esp-idf/idem" "$(pwd)/examples/port/esp-idf/idem"; do
    try ESP-IDF manifest "$folder" idf_component_register esp_partition
done
for folder in "$from/zephyr/idem" "$(pwd)/examples/port/zephyr-module"; do
    try Zephyr manifest "$folder" zephyr_include_directories
done
try PlatformIO platformio
try keywords keywords
try "sketch, power cuts" remember
try "ports and examples" ports_and_examples
try release release
if [ -d "$core" ]; then
    try "Arduino Mega" arduino_mega
    try Arduino arduino
    tail -n 1 "$out/log" | awk '{
        print "package: sketch on an ATmega328P: text", $1, "RAM", $2 + $3 }'
else
    echo "package: Arduino is left out: no arduino-core-avr"
fi
echo "package: $passed passed, 0 failed"
