# SPDX-License-Identifier: 0BSD
# To be sourced by who has a function `fail`, and a folder $work.

# Runs the rest of the arguments until they succeed, for up to two minutes.
wait_for() {
    tries=1200
    until "$@" >/dev/null 2>&1; do
        tries=$((tries - 1))
        [ $tries -gt 0 ] || fail "for two minutes this did not succeed: $*"
        sleep 0.1
    done
}

# preloaded NAME: $work/NAME.so from the C that follows
preloaded() {
    ${CC:-cc} -shared -fPIC -x c - -o "$work/$1.so" -ldl || fail "$1.so"
}

# preloaded_unread: unread.so, with which there is no memory for a line that is
# read: what is in it is not known
preloaded_unread() {
    preloaded unread <<'END'
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
ssize_t getline(char **line, size_t *size, FILE *file)
{
    (void)line, (void)size, (void)file;
    errno = ENOMEM;
    return -1;
}
END
}
