#!/bin/sh
# SPDX-License-Identifier: 0BSD
# Writes what a release has: the single file, a package for each build system,
# checksums.  The version is in the header's first line; all other places must
# have the same.
#     release.sh DIR PACKAGES [TAG]       DIR: all in it is removed first
#                                         TAG: v and the version
set -eu

out=$1 packages=$2 tag=${3:-}
version=$(sed -n '1s/.*idem\.h  *\([0-9.]*\).*/\1/p' idem.h)

wrong() { echo "FAILED: release $version: $*"; exit 1; }

number=$(printf '0x%02x%02x%02x' $(echo "$version" | tr . ' '))
grep -q "#define IDEM_VERSION $number " idem.h || wrong "IDEM_VERSION"
grep -q "This is $version " README.md || wrong "README.md"
grep -q "^#* *$version\b" tests/CHANGELOG.md || wrong "tests/CHANGELOG.md"
[ -z "$tag" ] || [ "$tag" = "v$version" ] || wrong "the tag is $tag"
[ -z "$tag" ] || ! grep -q "^#* *$version, not yet released" tests/CHANGELOG.md ||
    wrong "tests/CHANGELOG.md has it as not yet released"

# manifest PATH TEXT: has the version in this text
manifest() {
    grep -qF "$2" "$packages/$1" || wrong "$1"
}
manifest arduino/idem/library.properties "version=$version"
manifest platformio/idem/library.json "\"version\": \"$version\""
manifest esp-idf/idem/idf_component.yml "version: \"$version\""
manifest pkg-config/lib/pkgconfig/idem.pc "Version: $version"

rm -rf "$out"
mkdir -p "$out"
cp idem.h LICENSE "$out"
# The same bytes wherever it is made
when=$(git log -1 --format=%cI 2>/dev/null || echo 2000-01-01)
for package in "$packages"/*/; do
    name=$(basename "$package")
    tar --sort=name --owner=0 --group=0 --numeric-owner --mode=go=rX \
        --mtime="$when" -C "$package" -cf - . |
        gzip -9n > "$out/idem-$version-$name.tar.gz"
done
(cd "$out" && sha256sum * > SHA256SUMS && sha256sum -c --quiet SHA256SUMS)
echo "release: $version, $(ls "$out" | wc -l) files in $out"
