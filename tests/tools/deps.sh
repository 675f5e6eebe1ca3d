#!/bin/sh
# SPDX-License-Identifier: 0BSD
# Installs the named Debian packages that are missing, or names them where
# there is no apt.
set -eu

missing=
for package in "$@"; do
    dpkg-query -W -f '${Status}' "$package" 2>/dev/null |
        grep -q 'ok installed' || missing="$missing $package"
done
[ -n "$missing" ] || exit 0
if ! command -v apt-get >/dev/null 2>&1; then
    echo "please install the equivalents of these Debian packages:$missing"
    exit 1
fi
as_root=
[ "$(id -u)" = 0 ] || as_root=sudo
$as_root apt-get -q update
$as_root env DEBIAN_FRONTEND=noninteractive apt-get -q \
    -o DPkg::Lock::Timeout=900 install -y --no-install-recommends $missing
