# SPDX-License-Identifier: 0BSD
# The functions that idem.h defines, each with its section: "name section".
/^   >>[a-z]+ / { section = substr($1, 3) }
/^[A-Za-z].*[ *]idem[a-z0-9_]*\(/ {
    name = $0
    sub(/\(.*/, "", name)
    sub(/.*[ *]/, "", name)
}
/;$/ { name = "" }
/^\{$/ && name {
    print name, section
    name = ""
}
