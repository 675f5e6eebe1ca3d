# SPDX-License-Identifier: 0BSD
# find_package(idem) finds this; the header is where it was installed, or moved
# to, beside it.
get_filename_component(idem_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.."
    ABSOLUTE)
if(NOT TARGET idem::idem)
    add_library(idem::idem INTERFACE IMPORTED)
    set_target_properties(idem::idem PROPERTIES
        INTERFACE_INCLUDE_DIRECTORIES "${idem_prefix}/include")
endif()
