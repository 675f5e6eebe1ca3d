/* SPDX-License-Identifier: 0BSD */
/* Prints on standard error why a call of idem.h failed: the result in words,
   the fault in the configuration, the number that would do, and the error of
   the system.  Copy it into a program of your own. */
#ifndef REASON_H
#define REASON_H

#include "idem.h"
#include <stdio.h>
#include <string.h>

/* `what` names the storage, as a path does.  The storage's callbacks are to
   return an errno, as those of idem_file do. */
static inline void reason_print(const char *what, int result,
                                const idem_table *table,
                                const idem_config *config)
{
    const char *words = NULL;

    fprintf(stderr, "%s: %s", what, idem_text(result));
    if (result == IDEM_E_ARG || result == IDEM_E_FORMAT ||
        result == IDEM_E_SPACE)
        words = idem_explain(config);
    if (words)
        fprintf(stderr, "; %s", words);
    if (result == IDEM_E_MEMORY)
        fprintf(stderr, "; %lu bytes would do", (unsigned long)table->needed);
    if (result == IDEM_E_SPACE && config->storage &&
        table->needed > config->storage->sector_count)
        fprintf(stderr, "; %lu sectors would do", (unsigned long)table->needed);
    // 0: it read back something else, with no error to name
    if (result == IDEM_E_STORAGE && table->storage_error)
        fprintf(stderr, "; %s", strerror(table->storage_error));
    fputc('\n', stderr);
}

#ifdef IDEM_FILE_STORAGE
/* The same of idem_file_open, to which `path` was given. */
static inline void reason_print_file(const char *path, int result,
                                     const idem_file *file)
{
    fprintf(stderr, "%s: %s", path, idem_text(result));
    if (result == IDEM_E_ARG)
        fprintf(stderr, "; no journal has %lu sectors of %lu bytes",
                (unsigned long)file->storage.sector_count,
                (unsigned long)file->storage.sector_size);
    if (result == IDEM_E_LOCK)
        fputs("; another process has the file open, or this one", stderr);
    if (result == IDEM_E_FORMAT)
        fprintf(stderr, "; such a journal is a file of %lu bytes.  If it is "
                "one of another size, migrate.c copies it: to empty it would "
                "be to forget every command",
                (unsigned long)file->storage.sector_size *
                    (unsigned long)file->storage.sector_count);
    if (result == IDEM_E_STORAGE)
        fprintf(stderr, "; %s", strerror(file->error));
    fputc('\n', stderr);
}
#endif

#endif
