/* SPDX-License-Identifier: 0BSD */
/* What Frama-C's value analysis runs of the file storage (prove.sh): a
 * file is opened and closed and its callbacks called, any number of times, in
 * two processes, on a system that does anything that POSIX allows: it may fail
 * with any errno, do less than it was asked for, and say anything of a file.
 *
 * Besides what Eva looks for: a descriptor that is used is open, and at the end
 * of a call none is but that of a file that is open.
 *
 * Small in size: four sectors, a few paths and sizes; a callback is asked for
 * up to 3 bytes.  Of more than 4 bytes the system writes some or all pieces of
 * 64, of more than 256 all.
 */
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "any.h"

/* Runs in which these differ are not mixed (-eva-partition-value). */
static int eva_slash;                   /* where the path's last one is, or -1 */
static unsigned open_now,               /* descriptors */
    eva_size,                           /* the file's, plus one: see eva_stat */
    eva_read,                           /* bytes that a call has got */
    eva_whole, eva_left;                /* bytes to be read, or written */

enum { SECTOR = 1024 + 64, SECTORS = 4 };

/* 0, or -1 and any errno. */
static int fails_or_not(void)
{
    if (below(2))
        return 0;
    errno = Frama_C_interval(1, 200);
    return -1;
}

static char *eva_strrchr(char *path, char c)
{
    if (eva_slash < 0)
        return NULL;
    //@ assert path[eva_slash] == c;
    return path + eva_slash;
}

static int eva_path(const char *path)
{
    //@ assert valid_read_string(path);
    (void)path;
    return fails_or_not();
}

static int eva_fd(int fd)
{
    //@ assert fd >= 3 && open_now > 0;
    (void)fd;
    return fails_or_not();
}

static int eva_open(const char *path)
{
    if (eva_path(path) < 0)
        return -1;
    open_now++;
    return Frama_C_interval(3, 1023);
}

static int eva_close(int fd)
{
    int result = eva_fd(fd);

    open_now--;
    return result;
}

/* Files are as long as they are to be, or up to two blocks, or longer than any
 * journal; or of a system that does not know. */
static int eva_stat(int result, struct stat *is)
{
    static const off_t sizes[] = {
        SECTOR * SECTORS, 0, 1, 3, 4096, 4097, 0x100000000 - 4096, 0x100000000,
        INT64_MAX, -1
    };

    eva_size = 0;
    if (result < 0)
        return result;
    Frama_C_make_unknown((char *)is, sizeof *is);
    eva_size = below(sizeof sizes / sizeof *sizes) + 1;
    //@ split eva_size;
    is->st_size = sizes[eva_size - 1];
    return 0;
}

/* How many bytes a call gets through. */
static ssize_t eva_part(int fd, size_t len)
{
    if (eva_fd(fd) < 0)
        return -1;
    if (len > 256)
        return (ssize_t)len;
    return len > 4 ? (ssize_t)(64 * below((unsigned)len / 64 + 1))
                   : (ssize_t)below((unsigned)len + 1);
}

static ssize_t eva_pread(int fd, void *dst, size_t len, off_t at)
{
    ssize_t n = eva_part(fd, len);

    //@ assert at >= 0;
    //@ assert \valid((char *)dst + (0 .. len - 1));
    (void)at;
    eva_read = 0;
    if (n <= 0)
        return n;
    eva_read = (unsigned)n;
    //@ split eva_read;
    memset(dst, any_byte(), eva_read);      // of each byte any value
    return eva_read;
}

static ssize_t eva_pwrite(int fd, const void *src, size_t len, off_t at)
{
    //@ assert at >= 0;
    //@ assert \initialized((char *)src + (0 .. len - 1));
    (void)src, (void)at;
    return eva_part(fd, len);
}

#define open(path, ...)       eva_open(path)
#define close(fd)             eva_close(fd)
#define stat(path, is)        eva_stat(eva_path(path), is)
#define fstat(fd, is)         eva_stat(eva_fd(fd), is)
#define flock(fd, how)        eva_fd(fd)
#define strrchr(path, c)      eva_strrchr(path, c)
#define fsync                 eva_fd
#define fdatasync             eva_fd
#define ftruncate(fd, size)   eva_fd(fd)
#define posix_fadvise(fd, at, len, what) eva_fd(fd)
#define pread(fd, dst, len, at)  eva_pread(fd, dst, len, at)
#define pwrite(fd, src, len, at) eva_pwrite(fd, src, len, at)
#define getpid()              ((pid_t)below(2))

#define IDEM_STATIC
#define IDEM_FILE_STORAGE
#define IDEM_IMPLEMENTATION
#include "idem.h"

static idem_file file;
static char path[5000];
static unsigned char bytes[3];

/* A path; the longest folder that fits, and one that does not, too. */
static void any_path(void)
{
    static const int slashes[] = { -1, 0, 1, 4093, 4094 };
    unsigned number = below(sizeof slashes / sizeof *slashes);

    //@ split number;
    eva_slash = slashes[number];
    memset(path, 0, sizeof path);
    memset(path, 'a', (size_t)(eva_slash + 2));
    if (eva_slash >= 0)
        path[eva_slash] = '/';
    if (below(2))
        path[eva_slash + 1] = 0;
}

static int open_any(void)
{
    any_path();
    switch (below(5)) {
    case 0:  return idem_file_open(NULL, path, SECTOR, SECTORS);
    case 1:  return idem_file_open(&file, NULL, SECTOR, SECTORS);
    case 2:  return idem_file_open(&file, path, any(), 0);
    case 3:  return idem_file_open(&file, path, 0, any());
    default: return idem_file_open(&file, path, SECTOR, SECTORS);
    }
}

static void use(void)
{
    idem_storage *m = &file.storage;
    uint32_t len = below(sizeof bytes + 1);
    uint32_t at = below(SECTORS * SECTOR - sizeof bytes);

    //@ split len;
    switch (below(4)) {
    case 0: m->read(m->ctx, at, bytes, len); break;
    case 1: m->prog(m->ctx, at, bytes, len); break;
    default: m->sync(m->ctx); break;
    }
}

int main(void)
{
    idem_file_close(below(2) ? &file : NULL);
    while (below(2)) {
        int result = open_any();

        eva_slash = -1;
        eva_size = eva_read = eva_whole = eva_left = 0;
        //@ split result == IDEM_OK;
        //@ assert open_now == (result == IDEM_OK ? 1 : 0);
        if (result != IDEM_OK)
            continue;
        while (below(2)) {
            use();
            eva_read = eva_whole = eva_left = 0;
        }
        idem_file_close(&file);
        //@ assert open_now == 0;
        idem_file_close(&file);
    }
    return 0;
}
