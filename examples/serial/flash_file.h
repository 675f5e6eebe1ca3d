/* SPDX-License-Identifier: 0BSD */
/* NOR flash in a file.  Programmed bytes are there after kill -9.  It programs
   slowly, granule by granule, so a kill can leave half a record, or half an
   erased sector. */
#ifndef FLASH_FILE_H
#define FLASH_FILE_H

#include "device.h"

/* The geometry, the same in all files */
#ifndef FLASH_SECTOR
#define FLASH_SECTOR 4096u
#endif
#ifndef FLASH_GRANULE
#define FLASH_GRANULE 8u
#endif
#ifndef FLASH_SECTORS
#define FLASH_SECTORS DEVICE_SECTORS(FLASH_SECTOR, FLASH_GRANULE)
#endif

typedef struct flash_file {
    idem_storage storage;       /* for device_start */
    int          fd;
    uint32_t     slow_us;       /* a granule's programming; may be set */
} flash_file;

/* Opens the file, or makes it, blank.  Must not be moved from then on.  Returns
   0, or -1 with errno; EBUSY: another process has it open. */
int flash_file_open(flash_file *f, const char *path);

/* True if it is there, and was made to its end. */
int flash_file_is_whole(const char *path);

#endif
