#!/bin/sh
# SPDX-License-Identifier: 0BSD
# Writes a folder for each build system, to be copied or published as it is:
# header, licence, and what that system wants beside them.
#     package.sh DIR [URL]       URL: the repository's, for those that show it
set -eu

out=$1
url=${2:-}
port=examples/port
version=$(sed -n '1s/.*idem\.h  *\([0-9.]*\).*/\1/p' idem.h)
rm -rf "$out"

# folder NAME WHERE: a folder with the licence, and the header in WHERE
folder() {
    mkdir -p "$out/$1/$2"
    cp idem.h "$out/$1/$2"
    cp LICENSE "$out/$1"
}

# fill FROM TO: a file with what is known here put in
fill() {
    mkdir -p "$(dirname "$out/$2")"
    sed -e "s|@VERSION@|$version|" -e "s|@URL@|$url|" \
        "$port/$1" >"$out/$2"
}

folder arduino/idem src
fill arduino/library.properties arduino/idem/library.properties
fill arduino/examples/Hello/Hello.ino arduino/idem/examples/Hello/Hello.ino

folder platformio/idem include
cat >"$out/platformio/idem/library.json" <<END
{
    "name": "idem",
    "version": "$version",
    "description": "Execute each command at most once per idempotency key",
    "license": "0BSD",
    "frameworks": "*",
    "platforms": "*",
    "headers": "idem.h"
}
END

folder esp-idf/idem include
fill esp-idf/idem/idf_component.yml esp-idf/idem/idf_component.yml
sed 's|"[./]*"|"include"|' $port/esp-idf/idem/CMakeLists.txt \
    >"$out/esp-idf/idem/CMakeLists.txt"

folder zephyr/idem include
mkdir -p "$out/zephyr/idem/zephyr"
cp $port/zephyr-module/zephyr/module.yml "$out/zephyr/idem/zephyr"
sed 's|(\.\./[./]*)|(include)|' $port/zephyr-module/CMakeLists.txt \
    >"$out/zephyr/idem/CMakeLists.txt"

folder cmake/idem .
cp $port/cmake/CMakeLists.txt "$out/cmake/idem"

folder pkg-config include
fill pkg-config/idem.pc pkg-config/lib/pkgconfig/idem.pc
echo "package: idem $version in $out"
