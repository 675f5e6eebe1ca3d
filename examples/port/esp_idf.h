/* SPDX-License-Identifier: 0BSD
   A partition of ESP-IDF as a storage of idem.h, with flash encryption or
   without.  The lock is that of freertos.h.

       partitions.csv:    idem, data, undefined, , 64K, encrypted

       static idem_storage storage;
       static idem_config config = { ..., .storage = &storage };
       static uint32_t memory[IDEM_JOURNAL_MEMORY_SIZE(KEYS, KEY_MAX,
                                  RESPONSE_MAX, 0, ESP_IDF_GRANULE) / 4];

       if (esp_idf_storage(&storage, "idem", SECTORS) == ESP_OK)
           idem_open(&table, &config, memory, sizeof memory, ...);

   SECTORS is IDEM_SECTORS(.., ESP_IDF_SECTOR, ESP_IDF_GRANULE), a constant; 0
   means that there is no solution: ESP_ERR_INVALID_SIZE.

   With encryption a write has whole blocks of 16 bytes, on the first ESP32 of
   32: that is the granule (without encryption it is 1, and needs no more memory
   or sectors).  An erased block decrypts to noise: so each block is read raw
   too, and one that is erased is given to the library as erased.  A torn block
   decrypts to noise, which the library's checks see.

   A journal from before encryption was switched on is IDEM_E_FORMAT. */
#ifndef IDEM_ESP_IDF_H
#define IDEM_ESP_IDF_H

#include "idem.h"

#include <esp_partition.h>
#include <sdkconfig.h>
#include <string.h>

enum { ESP_IDF_SECTOR = 4096, ESP_IDF_BLOCK = 16, ESP_IDF_CHUNK = 128 };
#ifdef CONFIG_IDF_TARGET_ESP32
enum { ESP_IDF_GRANULE = 32 };
#else
enum { ESP_IDF_GRANULE = 16 };
#endif

static inline int esp_idf_is_erased(const uint8_t *block)
{
    for (int i = 0; i < ESP_IDF_BLOCK; i++)
        if (block[i] != 0xFF)
            return 0;
    return 1;
}

/* Some bytes of an encrypted partition, `skip` after the start of a block; all
   their blocks have at most ESP_IDF_CHUNK bytes. */
static inline int esp_idf_decrypt(const esp_partition_t *partition, uint32_t at,
                                  uint8_t *dst, uint32_t len)
{
    uint8_t raw[ESP_IDF_CHUNK];
    uint32_t skip = at % ESP_IDF_BLOCK, i;
    uint32_t blocks = (skip + len + ESP_IDF_BLOCK - 1) / ESP_IDF_BLOCK;

    if (esp_partition_read_raw(partition, at - skip, raw,
                               blocks * ESP_IDF_BLOCK) ||
        esp_partition_read(partition, at, dst, len))
        return -1;
    for (i = 0; i < len; i++)
        if (esp_idf_is_erased(raw + (skip + i) / ESP_IDF_BLOCK * ESP_IDF_BLOCK))
            dst[i] = 0xFF;
    return 0;
}

static inline int esp_idf_read(void *ctx, uint32_t at, void *dst, uint32_t len)
{
    const esp_partition_t *partition = (const esp_partition_t *)ctx;
    uint8_t *to = (uint8_t *)dst;

    if (!partition->encrypted)
        return esp_partition_read(partition, at, dst, len);
    while (len) {
        uint32_t part = ESP_IDF_CHUNK - at % ESP_IDF_BLOCK;
        if (part > len)
            part = len;
        if (esp_idf_decrypt(partition, at, to, part))
            return -1;
        at += part;
        to += part;
        len -= part;
    }
    return 0;
}

static inline int esp_idf_prog(void *ctx, uint32_t at, const void *src,
                               uint32_t len)
{
    return esp_partition_write((const esp_partition_t *)ctx, at, src, len);
}

/* A protected chip ignores an erase, and no error is reported. */
static inline int esp_idf_erase(void *ctx, uint32_t sector)
{
    const esp_partition_t *partition = (const esp_partition_t *)ctx;
    uint32_t at = sector * ESP_IDF_SECTOR, end = at + ESP_IDF_SECTOR, i;
    uint8_t raw[ESP_IDF_CHUNK];

    if (esp_partition_erase_range(partition, at, ESP_IDF_SECTOR))
        return -1;
    for (; at < end; at += sizeof raw) {
        if (esp_partition_read_raw(partition, at, raw, sizeof raw))
            return -1;
        for (i = 0; i < sizeof raw; i += ESP_IDF_BLOCK)
            if (!esp_idf_is_erased(raw + i))
                return -1;
    }
    return 0;
}

/* Finds the data partition with a label, and makes it a storage. */
static inline esp_err_t esp_idf_storage(idem_storage *storage,
                                        const char *label, uint32_t sectors)
{
    const esp_partition_t *partition = esp_partition_find_first(
        ESP_PARTITION_TYPE_DATA, ESP_PARTITION_SUBTYPE_ANY, label);

    memset(storage, 0, sizeof *storage);
    if (!partition)
        return ESP_ERR_NOT_FOUND;
    if (!sectors || sectors > partition->size / ESP_IDF_SECTOR ||
        partition->erase_size != ESP_IDF_SECTOR)
        return ESP_ERR_INVALID_SIZE;
    storage->ctx = (void *)(uintptr_t)partition;
    storage->read = esp_idf_read;
    storage->prog = esp_idf_prog;
    storage->erase = esp_idf_erase;
    storage->sector_size = ESP_IDF_SECTOR;
    storage->sector_count = sectors;
    storage->prog_size = partition->encrypted ? ESP_IDF_GRANULE : 1;
    storage->erased = 0xFF;
    storage->verify = 1;
    return ESP_OK;
}

#endif /* IDEM_ESP_IDF_H */
