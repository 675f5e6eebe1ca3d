/* SPDX-License-Identifier: 0BSD */
/* A file's name is durable once its folder is synced. */
#ifndef FOLDER_H
#define FOLDER_H

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Makes the name of a file durable; returns whether it is.  (EINVAL: the file
   system cannot sync a folder.) */
static inline int folder_sync(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *folder = slash ? strndup(path, (size_t)(slash + 1 - path))
                         : strdup(".");
    int fd = folder ? open(folder, O_RDONLY) : -1;
    int done = fd >= 0 && (fsync(fd) == 0 || errno == EINVAL);

    if (fd >= 0)
        close(fd);
    free(folder);
    return done;
}

#endif
