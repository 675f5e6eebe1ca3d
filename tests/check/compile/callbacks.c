/* SPDX-License-Identifier: 0BSD
   Every callback's name is a macro with arguments, as `read` and `close` are in
   lwIP and `erase` in curses: what calls through a pointer is not one of them.
   The system's headers come first, for they declare functions of these names. */
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define read(...)    (a macro is expanded: read)
#define prog(...)    (a macro is expanded: prog)
#define erase(...)   (a macro is expanded: erase)
#define erasing(...) (a macro is expanded: erasing)
#define sync(...)    (a macro is expanded: sync)
#define sync_unlocked(...) (a macro is expanded: sync_unlocked)
#define lock(...)    (a macro is expanded: lock)
#define unlock(...)  (a macro is expanded: unlock)
#define handler(...) (a macro is expanded: handler)
#define now(...)     (a macro is expanded: now)
#define restart(...) (a macro is expanded: restart)
#define close(...)   (a macro is expanded: close)

#define IDEM_FILE_STORAGE
#define IDEM_IMPLEMENTATION
#include "idem.h"
#include "examples/port/check.h"
