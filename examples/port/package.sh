#!/bin/sh
# SPDX-License-Identifier: 0BSD
# Writes a folder for each build system, to be copied or published as it is:
# header, ports, examples, licence, and what that system wants beside them.
#     package.sh DIR [URL]       DIR: all that is in it is removed first
#                                URL: where the repository is, for manifests
# The manifests are those in the tree; one with another version than the header
# is an error.
set -eu

out=$1
url=${2:-}
port=examples/port
version=$(sed -n '1s/.*idem\.h  *\([0-9.]*\).*/\1/p' idem.h)
rm -rf "$out"

for file in arduino/library.properties platformio/library.json \
    esp-idf/idem/idf_component.yml pkg-config/idem.pc \
    cmake/idem-config-version.cmake; do
    grep -qiE "version[\"=:( ]*[ \"]*$version([\")]|,|\$)" "$port/$file" ||
        { echo "package: $port/$file is not of version $version" >&2; exit 1; }
done

# folder NAME WHERE: a folder with licence, examples, and header and ports in
# WHERE
folder() {
    mkdir -p "$out/$1/$2/port"
    cp idem.h "$out/$1/$2"
    cp $port/*.h $port/*.hpp "$out/$1/$2/port"
    cp LICENSE "$out/$1"
}

# examples NAME: those that need no more than the header
examples() {
    mkdir -p "$out/$1/examples"
    for file in hello.c patterns.c fram.h random.h reason.h; do
        cp "examples/$file" "$out/$1/examples"
    done
}

# manifest FROM TO: with the repository's place
manifest() {
    if [ -n "$url" ]; then
        sed "s|https://example.com/idem|$url|" "$port/$1" >"$out/$2"
    else
        cp "$port/$1" "$out/$2"
    fi
}

# What the Arduino IDE shows in colours: types, functions, constants
keywords() {
    echo '# SPDX-License-Identifier: 0BSD'
    {
        sed -n 's/^} \(idem_[a-z_]*\);$/\1\tKEYWORD1/p' idem.h
        sed -n 's/^IDEM_API .*[ *]\(idem_[a-z_0-9]*\)(.*/\1\tKEYWORD2/p' idem.h
        sed -n 's/^#define \(idem_[a-z_]*\)(.*/\1\tKEYWORD2/p' idem.h
        sed -n -e 's/^    \(IDEM_[A-Z_]*\) *= *-\{0,1\}[0-9].*/\1\tLITERAL1/p' \
            -e 's/^    X(\(IDEM_[A-Z_]*\),.*/\1\tLITERAL1/p' idem.h
    } | LC_ALL=C sort -u
}

folder arduino/idem src
manifest arduino/library.properties arduino/idem/library.properties
cp -R $port/arduino/examples "$out/arduino/idem"
keywords >"$out/arduino/idem/keywords.txt"

folder platformio/idem include
examples platformio/idem
manifest platformio/library.json platformio/idem/library.json

folder esp-idf/idem include
examples esp-idf/idem
manifest esp-idf/idem/idf_component.yml esp-idf/idem/idf_component.yml
sed 's|INCLUDE_DIRS .*)|INCLUDE_DIRS "include")|' \
    $port/esp-idf/idem/CMakeLists.txt >"$out/esp-idf/idem/CMakeLists.txt"

folder zephyr/idem include
examples zephyr/idem
cp -R $port/zephyr-module/zephyr "$out/zephyr/idem"
sed 's|(\.\./.*)|(include)|' $port/zephyr-module/CMakeLists.txt \
    >"$out/zephyr/idem/CMakeLists.txt"

folder cmake/idem .
examples cmake/idem
cp $port/cmake/CMakeLists.txt $port/cmake/*.cmake "$out/cmake/idem"

folder pkg-config include
mkdir -p "$out/pkg-config/lib/pkgconfig"
cp $port/pkg-config/idem.pc "$out/pkg-config/lib/pkgconfig"
echo "package: idem $version in $out"
