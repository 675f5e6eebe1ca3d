# SPDX-License-Identifier: 0BSD
# To be sourced by who has a function `fail`.

# Runs the rest of the arguments until they succeed, for up to two minutes.
wait_for() {
    tries=1200
    until "$@" >/dev/null 2>&1; do
        tries=$((tries - 1))
        [ $tries -gt 0 ] || fail "for two minutes this did not succeed: $*"
        sleep 0.1
    done
}
