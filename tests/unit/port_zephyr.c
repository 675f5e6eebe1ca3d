/* SPDX-License-Identifier: 0BSD
   examples/port/zephyr.h on a model of a flash partition, whose driver does not
   report that a program or an erase did nothing. */
#include "chip.h"
#include "examples/port/zephyr.h"

enum { SECTORS = 8, GRANULE = 8 };

enum { BEFORE = 5 * 4096 };             // of the flash, before the partition

static struct flash_area area;
static uint32_t align, page;
static uint8_t erased;
static bool interrupted;

static zephyr_flash map;
static const idem_storage storage = ZEPHYR_STORAGE(&map, 4096, SECTORS,
                                                   GRANULE);

int flash_area_open(uint8_t id, const struct flash_area **fa)
{
    *fa = &area;
    return id == FIXED_PARTITION_ID(idem) ? 0 : -ENOENT;
}

static int outside(off_t at, size_t len)
{
    return at < 0 || (size_t)at > area.fa_size ||
           len > area.fa_size - (size_t)at;
}

int flash_area_read(const struct flash_area *fa, off_t at, void *dst,
                    size_t len)
{
    return fa != &area || outside(at, len)
               ? -EINVAL
               : flash_read(&medium, (uint32_t)at, dst, (uint32_t)len);
}

int flash_area_write(const struct flash_area *fa, off_t at, const void *src,
                     size_t len)
{
    if (fa != &area || outside(at, len) || (size_t)at % align || len % align)
        return -EINVAL;
    return chip_protected ? 0
                   : flash_prog(&medium, (uint32_t)at, src, (uint32_t)len);
}

int flash_area_erase(const struct flash_area *fa, off_t at, size_t len)
{
    if (fa != &area || outside(at, len) || at % 4096 || len != 4096)
        return -EINVAL;
    return chip_protected ? 0 : flash_erase(&medium, (uint32_t)at / 4096);
}

uint32_t flash_area_align(const struct flash_area *fa)
{
    return fa == &area ? align : 0;
}

uint8_t flash_area_erased_val(const struct flash_area *fa)
{
    return fa == &area ? erased : 0x55;
}

int flash_get_page_info_by_offs(const struct device *dev, off_t offset,
                                struct flash_pages_info *info)
{
    is(dev, area.fa_dev);
    if (offset < BEFORE || (size_t)(offset - BEFORE) >= area.fa_size)
        return -EINVAL;
    info->size = page;
    info->index = (uint32_t)offset / page;
    info->start_offset = (off_t)(info->index * page);
    return 0;
}

int k_mutex_lock(struct k_mutex *mutex, k_timeout_t timeout)
{
    is(timeout.ticks, -1);
    mutex->count++;
    return 0;
}

int k_mutex_unlock(struct k_mutex *mutex)
{
    mutex->count--;
    return 0;
}

bool k_is_in_isr(void)
{
    return interrupted;
}

static void make(void)
{
    area.fa_off = BEFORE;
    area.fa_size = SECTORS * 4096;
    page = 4096;
    align = GRANULE;
    erased = 0xFF;
    chip_storage = &storage;
    chip_make(FLASH_NOR, 4096, SECTORS, GRANULE);
    is(zephyr_flash_start(&storage, FIXED_PARTITION_ID(idem)), 0);
}

TEST(a_partition_that_does_not_fit_is_refused)
{
    make();
    is(zephyr_flash_start(&storage, 1), -ENOENT);
    align = 16;
    is(zephyr_flash_start(&storage, 0), -EINVAL);
    align = 4;
    is(zephyr_flash_start(&storage, 0), 0);
    area.fa_size -= 1;
    is(zephyr_flash_start(&storage, 0), -EINVAL);
    area.fa_size += 1;
    erased = 0;
    is(zephyr_flash_start(&storage, 0), -EINVAL);
    erased = 0xFF;
    is(zephyr_flash_start(&storage, 0), 0);
}

/* Some drivers then erase the whole page, with a sector beside it. */
TEST(sectors_that_are_not_whole_pages_are_refused)
{
    make();
    page = 8192;
    is(zephyr_flash_start(&storage, 0), -EINVAL);
    is(chip_open(), IDEM_E_STORAGE);
    page = 3072;
    is(zephyr_flash_start(&storage, 0), -EINVAL);
    page = 2048;
    is(zephyr_flash_start(&storage, 0), 0);
    is(chip_open(), IDEM_OK);
}

/* Who forgot to start it, or went on after that failed. */
TEST(nothing_is_touched_before_it_is_started)
{
    make();
    map.area = NULL;
    chip_is_left_alone();
    is(zephyr_flash_start(&storage, 1), -ENOENT);
    chip_is_left_alone();
}

TEST(the_lock_is_the_mutex)
{
    K_MUTEX_DEFINE(mutex);

    is(zephyr_lock(&mutex), 0);
    is(mutex.count, 1);
    zephyr_unlock(&mutex);
    is(mutex.count, 0);
}

/* There it would be that of the thread which is interrupted. */
TEST(an_interrupt_is_refused_the_mutex)
{
    K_MUTEX_DEFINE(mutex);

    interrupted = true;
    is(zephyr_lock(&mutex), -EWOULDBLOCK);
    is(mutex.count, 0);
    interrupted = false;
    is(zephyr_lock(&mutex), 0);
}
