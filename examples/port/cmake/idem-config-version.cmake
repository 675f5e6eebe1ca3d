# SPDX-License-Identifier: 0BSD
# Until 1.0 the second number changes with the interface: it must be the same.
set(PACKAGE_VERSION "0.1.0")
if(PACKAGE_FIND_VERSION VERSION_EQUAL PACKAGE_VERSION)
    set(PACKAGE_VERSION_EXACT TRUE)
endif()
string(REGEX MATCH "^[0-9]+[.][0-9]+" idem_has "${PACKAGE_VERSION}")
string(REGEX MATCH "^[0-9]+[.][0-9]+" idem_wanted "${PACKAGE_FIND_VERSION}.0")
if(PACKAGE_FIND_VERSION VERSION_LESS_EQUAL PACKAGE_VERSION AND
   idem_has STREQUAL idem_wanted)
    set(PACKAGE_VERSION_COMPATIBLE TRUE)
endif()
