/* SPDX-License-Identifier: 0BSD
   A journal in the file that JOURNAL in the environment names, as the storage
   of a board (tests/targets) that is a process.  Exits with 3 if it is not
   opened. */
#define _POSIX_C_SOURCE 200809L
#define IDEM_FILE_STORAGE
#define IDEM_STATIC
#define IDEM_IMPLEMENTATION
#include "tests/targets/medium.h"

#include <stdio.h>
#include <stdlib.h>

enum { SECTOR = 1024, SECTORS = 8 };

static idem_file file;

static int file_read(void *ctx, uint32_t at, void *dst, uint32_t len)
{
    (void)ctx;
    return file.storage.read(file.storage.ctx, at, dst, len);
}

static int file_prog(void *ctx, uint32_t at, const void *src, uint32_t len)
{
    (void)ctx;
    return file.storage.prog(file.storage.ctx, at, src, len);
}

static int file_sync(void *ctx)
{
    (void)ctx;
    return file.storage.sync(file.storage.ctx);
}

const idem_storage medium = {
    .read = file_read, .prog = file_prog, .sync = file_sync,
    .sector_size = SECTOR, .sector_count = SECTORS, .prog_size = 1
};

void medium_start(void)
{
    int result = idem_file_open(&file, getenv("JOURNAL"), SECTOR, SECTORS);

    printf("%d %s%s%s\n", result, idem_text(result), file.error ? ": " : "",
           file.error ? strerror(file.error) : "");
    fflush(stdout);
    if (result < 0)
        exit(3);
}
