/* SPDX-License-Identifier: 0BSD */
/* The secret of a table whose journal is a file: 16 random bytes, which are
   made at the first start and kept beside the journal, in JOURNAL.secret.  Copy
   it into a program of your own.

   The journal's file is made first, and locked; its secret after that, under
   the lock.  So one of the two was lost if there is a secret and the journal is
   missing or empty, or if the journal has records and there is no secret: then
   neither is made again.  A journal that was overwritten with zeros looks like
   one that was never written to.  Where that matters the sensor must show it,
   as the log of station/pump.h does. */
#ifndef SECRET_H
#define SECRET_H

#include "folder.h"
#include "idem.h"
#include "random.h"
#include "reason.h"
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SECRET_SIZE = 16, SECRET_PATH = 512 };

/* Prints what is wrong with a file, and returns 0. */
static inline int secret_wrong(const char *path, const char *why)
{
    fprintf(stderr, "%s: %s\n", path, why);
    return 0;
}

/* Writes PATH and an ending; returns whether there was room. */
static inline int secret_path(char *dst, const char *path, const char *ending)
{
    int len = snprintf(dst, SECRET_PATH, "%s%s", path, ending);

    return (len >= 0 && len < SECRET_PATH) ||
           secret_wrong(path, "the name is too long");
}

/* Reads a secret that is there; returns whether it is one. */
static inline int secret_read(uint8_t *secret, const char *path)
{
    uint8_t bytes[SECRET_SIZE + 1];
    const char *why = NULL;
    FILE *file = fopen(path, "rb");
    size_t len = file ? fread(bytes, 1, sizeof bytes, file) : 0;

    if (!file || ferror(file))
        why = strerror(errno);
    else if (len == 0)
        why = "empty, not 16 bytes: restore it";
    else if (len < SECRET_SIZE)
        why = "shorter than 16 bytes: restore it";
    else if (len > SECRET_SIZE)
        why = "longer than 16 bytes: restore it";
    if (file)
        fclose(file);
    if (why)
        return secret_wrong(path, why);
    memcpy(secret, bytes, SECRET_SIZE);
    return 1;
}

/* Makes a secret, whole or not at all, whenever this process is killed: under
   another name first.  The caller holds the journal's lock, so nobody else
   makes one. */
static inline int secret_make(const char *path)
{
    uint8_t secret[SECRET_SIZE];
    char fresh[SECRET_PATH];
    int fd, written;

    if (!random_fill(secret, sizeof secret))
        return secret_wrong("/dev/random", strerror(errno));
    if (!secret_path(fresh, path, ".new"))
        return 0;
    (void)unlink(fresh);        // one that is there, others may read
    fd = open(fresh, O_WRONLY | O_CREAT | O_EXCL, 0600);
    if (fd < 0)
        return secret_wrong(fresh, strerror(errno));
    written = write(fd, secret, sizeof secret) == (ssize_t)sizeof secret &&
              fsync(fd) == 0;
    if (close(fd) != 0 || !written || rename(fresh, path) != 0 ||
        !folder_sync(path))
        return secret_wrong(fresh, errno ? strerror(errno) : "not written");
    return 1;
}

/* True if a file has only bytes of that value, as a journal that nothing was
   written to. */
static inline int secret_is_blank(const char *journal, int erased)
{
    FILE *file = fopen(journal, "rb");
    int c = erased;

    while (file && (c = getc(file)) == erased)
        ;
    if (file && ferror(file))           // what is there is not known
        c = erased;
    if (file)
        fclose(file);
    return c == EOF;
}

/* Reads the secret of a journal, or makes it if the journal is blank.  Prints
   the cause if it returns 0. */
static inline int secret_open(uint8_t *secret, const char *path,
                              const char *journal, int erased)
{
    if (access(path, F_OK) != 0) {
        if (!secret_is_blank(journal, erased))
            return secret_wrong(path, "the journal is there, its secret is "
                                "not: restore it, or remove the journal too");
        if (!secret_make(path))
            return 0;
    }
    return secret_read(secret, path);
}

#ifdef IDEM_FILE_STORAGE
/* True if a journal's file is there, and has any bytes: a crash may leave it
   empty, and then it would be taken for a new one. */
static inline int secret_has_journal(const char *path)
{
    struct stat is;

    return stat(path, &is) == 0 && is.st_size > 0;
}

/* Opens a journal's file as idem_file_open does, and its secret: then open the
   table.  Otherwise than IDEM_OK prints the cause, and leaves nothing open. */
static inline int secret_open_file(idem_config *config, idem_file *file,
                                   const char *path, uint32_t sector_size,
                                   uint32_t sector_count)
{
    char secret[SECRET_PATH];
    int result;

    if (!secret_path(secret, path, ".secret"))
        return IDEM_E_ARG;
    // In this order: where there is a secret, there was a journal before, and
    // it had all its bytes.
    if (access(secret, F_OK) == 0 && !secret_has_journal(path)) {
        secret_wrong(path, "the secret is there, the journal is not, or is "
                           "empty: restore it; without it all commands are new "
                           "again, if you want that remove the secret too");
        return IDEM_E_STORAGE;
    }
    result = idem_file_open(file, path, sector_size, sector_count);
    if (result != IDEM_OK) {
        reason_print_file(path, result, file);
        return result;
    }
    config->storage = &file->storage;
    if (secret_open(config->secret, secret, path, file->storage.erased))
        return IDEM_OK;
    (void)idem_file_close(file);
    return IDEM_E_STORAGE;
}
#endif

#endif
