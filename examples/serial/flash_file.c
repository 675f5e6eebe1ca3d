/* SPDX-License-Identifier: 0BSD */
#include "flash_file.h"
#include "host.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define ERASE_STEP 256u

/* 0, or an errno if not all bytes were read or written */
static int why(ssize_t done, size_t len, int if_short)
{
    if (done < 0)
        return errno;
    return (size_t)done == len ? 0 : if_short;
}

static int fill(int fd, uint32_t at)
{
    uint8_t blank[ERASE_STEP];

    memset(blank, 0xFF, sizeof blank);
    return why(pwrite(fd, blank, sizeof blank, (off_t)at), sizeof blank,
               ENOSPC);
}

static int flash_read(void *ctx, uint32_t at, void *dst, uint32_t len)
{
    const flash_file *f = (const flash_file *)ctx;

    return why(pread(f->fd, dst, len, (off_t)at), len, EIO);
}

/* Flash clears bits, and a granule once only: more is a mistake of the
   caller's, which real flash would answer with garbage. */
static int flash_prog(void *ctx, uint32_t at, const void *src, uint32_t len)
{
    const flash_file *f = (const flash_file *)ctx;
    const uint8_t *bytes = (const uint8_t *)src;
    uint8_t old[FLASH_GRANULE], blank[FLASH_GRANULE];
    uint32_t done;
    int result;

    memset(blank, 0xFF, sizeof blank);
    for (done = 0; done < len; done += FLASH_GRANULE) {
        if (flash_read(ctx, at + done, old, sizeof old) != 0 ||
            memcmp(old, blank, sizeof old) != 0)
            return EIO;
        result = why(pwrite(f->fd, bytes + done, FLASH_GRANULE,
                            (off_t)(at + done)), FLASH_GRANULE, ENOSPC);
        if (result != 0)
            return result;
        if (f->slow_us)
            host_sleep_us(f->slow_us);
    }
    return 0;
}

static int flash_erase(void *ctx, uint32_t sector)
{
    const flash_file *f = (const flash_file *)ctx;
    uint32_t done;

    for (done = 0; done < FLASH_SECTOR; done += ERASE_STEP) {
        int result = fill(f->fd, sector * FLASH_SECTOR + done);

        if (result != 0)
            return result;
        if (f->slow_us)
            host_sleep_us(f->slow_us);
    }
    return 0;
}

static const idem_storage nor = {
    .read = flash_read, .prog = flash_prog, .erase = flash_erase,
    .sector_size = FLASH_SECTOR, .sector_count = FLASH_SECTORS,
    .prog_size = FLASH_GRANULE, .erased = 0xFF
};

static const uint32_t size = FLASH_SECTORS * FLASH_SECTOR;

int flash_file_is_whole(const char *path)
{
    struct stat is;

    return stat(path, &is) == 0 && is.st_size >= (off_t)size;
}

int flash_file_open(flash_file *f, const char *path)
{
    struct stat is;
    uint32_t at;

    f->storage = nor;
    f->storage.ctx = f;
    f->slow_us = 0;
    f->fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (f->fd < 0 || fstat(f->fd, &is) < 0)
        return -1;
    if (flock(f->fd, LOCK_EX | LOCK_NB) < 0) {
        errno = errno == EWOULDBLOCK ? EBUSY : errno;
        return -1;
    }
    // A file that is too short is one that was being made.
    at = (uint32_t)is.st_size / ERASE_STEP * ERASE_STEP;
    for (; at < size; at += ERASE_STEP) {
        errno = fill(f->fd, at);
        if (errno != 0)
            return -1;
    }
    return 0;
}
