/* SPDX-License-Identifier: 0BSD
   The flash chip that an RP2040's or RP2350's program runs from, as a storage
   of idem.h, over the pico-sdk (pico_flash, hardware_flash, pico_sync).

       #include "rp2040_flash.h"

       static const idem_storage storage = RP2040_FLASH_STORAGE(0x1E0000,
                                                                SECTORS);
       static mutex_t mutex;
       static const idem_config config = { ..., .storage = &storage,
                                     .lock_ctx = &mutex, .lock = rp2040_lock,
                                     .unlock = rp2040_unlock };

       mutex_init(&mutex);
       // on the other core, if it runs, before the table is opened; on both if
       // both use it:
       flash_safe_execute_core_init();

   While the chip programs (0.4 ms) or erases (45 to 400 ms) nothing can be
   fetched from it: flash_safe_execute stops interrupts, and parks the other
   core in RAM.  If that core does not answer, the call fails and nothing is
   written (a debug build of the SDK asserts).  So it is, too, where
   pico_multicore is linked and that core does not run: then define
   PICO_FLASH_ASSUME_CORE1_SAFE=1.  A core that waits with interrupts off cannot
   be parked: so the lock is a mutex, no critical section.  Do not call it from
   interrupts: there it waits 5 s for the program that is interrupted.  (Under
   FreeRTOS take that of freertos.h: a task that waits for the SDK's may keep a
   lower one from giving it back.) */
#ifndef RP2040_FLASH_H
#define RP2040_FLASH_H

#include "idem.h"

#include <hardware/flash.h>
#ifdef XIP_NOCACHE_NOALLOC_NOTRANSLATE_BASE
#include <hardware/structs/qmi.h>
#endif
#include <pico/flash.h>
#include <pico/mutex.h>
#include <string.h>

enum { RP2040_PARK_MS = 1000 };         /* that the other core may take */
enum { RP2040_LOCK_MS = 5000 };         /* an erase may be waited for */

/* A journal ends here at the latest.  After it BTstack keeps its keys, two
   sectors; and where an RP2350 is written to by UF2, the last sector is erased
   (its erratum E10).  Without both: define it as PICO_FLASH_SIZE_BYTES. */
#ifndef RP2040_FLASH_END
#define RP2040_FLASH_END (PICO_FLASH_SIZE_BYTES - 3 * FLASH_SECTOR_SIZE)
#endif

/* `first` is where the journal begins, counted from the start of the flash,
   after the program: a number, not one that changes with `sectors` (README.md,
   "Where it begins").  A storage that ends beyond RP2040_FLASH_END or begins
   inside a sector does not compile, nor 0 sectors, which is what IDEM_SECTORS
   answers if there is no solution.  Granules of one byte: a page may be
   programmed in parts. */
#define RP2040_FLASH_STORAGE(first, sectors)                                   \
    { .ctx = (void *)(uintptr_t)(first), .read = rp2040_flash_read,            \
      .prog = rp2040_flash_prog, .erase = rp2040_flash_erase,                  \
      .sector_size = sizeof(char[(first) % FLASH_SECTOR_SIZE == 0 &&           \
                                 (first) + (sectors) * FLASH_SECTOR_SIZE <=    \
                                     RP2040_FLASH_END ? 1 : -1]) *             \
                     FLASH_SECTOR_SIZE,                                        \
      .sector_count = sizeof(char[(sectors) > 0 ? 1 : -1]) * (sectors),        \
      .prog_size = 1, .erased = 0xFF, .verify = 1 }

extern char __flash_binary_end;         /* by the SDK's linker script */

/* What is done while nobody fetches from the chip; no data: erase. */
typedef struct rp2040_flash_job {
    uint32_t at;
    const uint8_t *page;
} rp2040_flash_job;

static inline int rp2040_lock(void *mutex)
{
    return mutex_enter_timeout_ms((mutex_t *)mutex, RP2040_LOCK_MS) ? 0 : -1;
}

static inline void rp2040_unlock(void *mutex)
{
    mutex_exit((mutex_t *)mutex);
}

static inline void rp2040_flash_alone(void *ctx)
{
    const rp2040_flash_job *job = (const rp2040_flash_job *)ctx;

    if (job->page)
        flash_range_program(job->at, job->page, FLASH_PAGE_SIZE);
    else
        flash_range_erase(job->at, FLASH_SECTOR_SIZE);
}

/* An RP2350 that runs from a partition has that at XIP_BASE.  Programs and
   erases count from the start of the chip, so reads must, too. */
static inline const uint8_t *rp2040_flash_mapped(void *ctx, uint32_t at)
{
#ifdef XIP_NOCACHE_NOALLOC_NOTRANSLATE_BASE
    return (const uint8_t *)(XIP_NOCACHE_NOALLOC_NOTRANSLATE_BASE +
                             (uintptr_t)ctx + at);
#else
    return (const uint8_t *)(XIP_BASE + (uintptr_t)ctx + at);
#endif
}

/* True if the program does not reach into the journal. */
static inline int rp2040_flash_is_free(void *ctx)
{
    uintptr_t end = (uintptr_t)&__flash_binary_end - XIP_BASE;

#ifdef XIP_NOCACHE_NOALLOC_NOTRANSLATE_BASE
    end += (qmi_hw->atrans[0] & 0xFFF) * FLASH_SECTOR_SIZE;
#endif
    return (uintptr_t)ctx >= end && (uintptr_t)ctx < RP2040_FLASH_END;
}

static inline int rp2040_flash_do(void *ctx, uint32_t at, const uint8_t *page)
{
    rp2040_flash_job job = { (uint32_t)(uintptr_t)ctx + at, page };

    if (!rp2040_flash_is_free(ctx))
        return -1;
    return flash_safe_execute(rp2040_flash_alone, &job, RP2040_PARK_MS);
}

static inline int rp2040_flash_read(void *ctx, uint32_t at, void *dst,
                                    uint32_t len)
{
    if (!rp2040_flash_is_free(ctx))
        return -1;
    memcpy(dst, rp2040_flash_mapped(ctx, at), len);
    return 0;
}

/* Page by page; bytes of 0xFF beside those that are meant program nothing. */
static inline int rp2040_flash_prog(void *ctx, uint32_t at, const void *src,
                                    uint32_t len)
{
    const uint8_t *from = (const uint8_t *)src;
    uint8_t page[FLASH_PAGE_SIZE];

    while (len) {
        uint32_t skip = at % FLASH_PAGE_SIZE, part = FLASH_PAGE_SIZE - skip;
        if (part > len)
            part = len;
        memset(page, 0xFF, sizeof page);
        memcpy(page + skip, from, part);
        if (rp2040_flash_do(ctx, at - skip, page))
            return -1;
        at += part;
        from += part;
        len -= part;
    }
    return 0;
}

/* A protected chip ignores an erase: so the sector is looked at. */
static inline int rp2040_flash_erase(void *ctx, uint32_t sector)
{
    uint32_t at = sector * FLASH_SECTOR_SIZE, i;
    const uint8_t *bytes = rp2040_flash_mapped(ctx, at);

    if (rp2040_flash_do(ctx, at, NULL))
        return -1;
    for (i = 0; i < FLASH_SECTOR_SIZE; i++)
        if (bytes[i] != 0xFF)
            return -1;
    return 0;
}

#endif /* RP2040_FLASH_H */
