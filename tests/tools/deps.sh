#!/bin/sh
# SPDX-License-Identifier: 0BSD
# Installs those of the named Debian packages that are missing.  Where there is
# no apt it prints what is needed, and what the tests do without the rest: it
# installs nothing and does not fail.
set -eu

if ! command -v apt-get >/dev/null 2>&1; then
    if [ "$*" = libcmocka-dev ]; then
        ! echo '#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>' | ${CC:-cc} -E - >/dev/null 2>&1 || exit 0
        echo "make test needs https://cmocka.org: the package cmocka, cmocka-dev" \
            "or libcmocka-devel"
    else
        echo "The rest needs what Debian 12 calls"
        echo "$*" | fold -s -w 76 | sed 's/^/    /'
        echo "The container in .devcontainer/ has all of it."
    fi
    exit 0
fi

missing=
for package in "$@"; do
    dpkg-query -W -f '${Status}' "$package" 2>/dev/null |
        grep -q 'ok installed' || missing="$missing $package"
done
[ -n "$missing" ] || exit 0
as_root=
[ "$(id -u)" = 0 ] || as_root=sudo
$as_root apt-get -q update
$as_root env DEBIAN_FRONTEND=noninteractive apt-get -q \
    -o DPkg::Lock::Timeout=900 install -y --no-install-recommends $missing
