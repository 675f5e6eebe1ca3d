/* SPDX-License-Identifier: 0BSD
   examples/port/esp_idf.h on a model of a partition, with encryption and
   without.  Encrypted, a block of 16 bytes depends on all of its bits and on
   its address; so erased or torn flash reads as noise, and is erased only raw.
   The first ESP32 (port_esp_idf_esp32.c) programs rows of two blocks. */
#include "chip.h"
#include "examples/port/esp_idf.h"

enum { SECTORS = 8, BLOCK = 16 };
#ifdef CONFIG_IDF_TARGET_ESP32
enum { ROW = 32 };
#else
enum { ROW = 16 };
#endif

static esp_partition_t partition;
static idem_storage storage;

static void mix(uint32_t *to, const uint32_t *from, uint32_t key)
{
    for (int i = 0; i < 2; i++)
        to[i] ^= flash_mix(from[0] ^ flash_mix(from[1] + key + (uint32_t)i));
}

/* Eight rounds of two halves, which the other direction undoes. */
static void encrypt(uint8_t *block, uint32_t at, int decrypt)
{
    uint32_t half[4];

    memcpy(half, block, BLOCK);
    for (uint32_t i = 0; i < 8; i++) {
        uint32_t round = decrypt ? 7 - i : i;
        mix(half + (round % 2 ? 0 : 2), half + (round % 2 ? 2 : 0),
            flash_mix(at + round));
    }
    memcpy(block, half, BLOCK);
}

const esp_partition_t *esp_partition_find_first(esp_partition_type_t type,
                                                esp_partition_subtype_t subtype,
                                                const char *label)
{
    is(type, ESP_PARTITION_TYPE_DATA);
    is(subtype, ESP_PARTITION_SUBTYPE_ANY);
    return strcmp(label, partition.label) == 0 ? &partition : NULL;
}

static int outside(size_t at, size_t size)
{
    return at > partition.size || size > partition.size - at;
}

esp_err_t esp_partition_read_raw(const esp_partition_t *p, size_t at, void *dst,
                                 size_t size)
{
    is(p == &partition, 1);
    return outside(at, size)
               ? ESP_ERR_INVALID_SIZE
               : flash_read(&medium, (uint32_t)at, dst, (uint32_t)size);
}

/* Through the cache, which decrypts whole blocks. */
esp_err_t esp_partition_read(const esp_partition_t *p, size_t at, void *dst,
                             size_t size)
{
    uint32_t from = (uint32_t)at / BLOCK * BLOCK;
    uint32_t to = (uint32_t)(at + size), i;
    uint8_t blocks[256 + 2 * BLOCK];

    if (!p->encrypted || outside(at, size))
        return esp_partition_read_raw(p, at, dst, size);
    to = (to + BLOCK - 1) / BLOCK * BLOCK;
    assert_true(to - from <= sizeof blocks);
    if (flash_read(&medium, from, blocks, to - from))
        return -1;
    for (i = 0; i < to - from; i += BLOCK)
        encrypt(blocks + i, from + i, 1);
    memcpy(dst, blocks + (at - from), size);
    return ESP_OK;
}

esp_err_t esp_partition_write(const esp_partition_t *p, size_t at,
                              const void *src, size_t size)
{
    uint8_t row[ROW];

    if (outside(at, size))
        return ESP_ERR_INVALID_SIZE;
    if (chip_protected)
        return ESP_OK;
    if (!p->encrypted)
        return flash_prog(&medium, (uint32_t)at, src, (uint32_t)size);
    if (at % BLOCK)
        return ESP_ERR_INVALID_ARG;
    if (size % BLOCK)
        return ESP_ERR_INVALID_SIZE;
    // Half a row would program the other half again.
    assert_true(at % ROW == 0 && size % ROW == 0);
    for (size_t i = 0; i < size; i += ROW) {
        memcpy(row, (const uint8_t *)src + i, ROW);
        for (size_t j = 0; j < ROW; j += BLOCK)
            encrypt(row + j, (uint32_t)(at + i + j), 0);
        if (flash_prog(&medium, (uint32_t)(at + i), row, ROW))
            return -1;
    }
    return ESP_OK;
}

esp_err_t esp_partition_erase_range(const esp_partition_t *p, size_t at,
                                    size_t size)
{
    if (outside(at, size) || at % p->erase_size || size != p->erase_size)
        return ESP_ERR_INVALID_ARG;
    return chip_protected ? ESP_OK
                   : flash_erase(&medium, (uint32_t)(at / p->erase_size));
}

static void make_partition(int encrypted)
{
    memset(&partition, 0, sizeof partition);
    memcpy(partition.label, "idem", 5);
    partition.size = SECTORS * 4096;
    partition.erase_size = 4096;
    partition.encrypted = encrypted;
    chip_make(FLASH_NOR, 4096, SECTORS, encrypted ? ROW : 1);
    is(esp_idf_storage(&storage, "idem", SECTORS), ESP_OK);
    is(storage.prog_size, encrypted ? ROW : 1);
    chip_storage = &storage;
}

static void make_plain(void)
{
    make_partition(0);
}

static void make(void)
{
    make_partition(1);
}

TEST(the_port_check_accepts_it_without_encryption)
{
    make_plain();
    chip_is_accepted();
}

TEST(power_goes_at_each_operation_without_encryption)
{
    chip_cuts(make_plain);
}

TEST(nothing_of_a_journal_is_readable_in_an_encrypted_chip)
{
    uint32_t found[2] = { 0, 0 };

    for (int encrypted = 0; encrypted < 2; encrypted++) {
        make_partition(encrypted);
        chip_works();
        for (uint32_t i = 0; i + 8 < medium.size; i++)
            found[encrypted] += !memcmp(medium.bytes + i, "12345678", 8);
    }
    assert_true(found[0] >= CHIP_COMMANDS);
    is(found[1], 0);
}

/* Reads as all kinds of programs make them. */
TEST(reads_begin_and_end_anywhere)
{
    uint8_t written[160], got[160];
    uint32_t at, len;

    make();
    for (at = 0; at < sizeof written; at++)
        written[at] = (uint8_t)(at * 7);
    memset(written + 96, 0xFF, sizeof written - 96);
    is(esp_idf_prog(&partition, 0, written, 96), 0);
    for (at = 0; at < 40; at++)
        for (len = 1; len <= sizeof written - at; len++) {
            memset(got, 0, sizeof got);
            is(esp_idf_read(&partition, at, got, len), 0);
            assert_memory_equal(got, written + at, len);
        }
}

TEST(a_partition_that_does_not_fit_is_refused)
{
    make_plain();
    is(esp_idf_storage(&storage, "other", SECTORS), ESP_ERR_NOT_FOUND);
    is(esp_idf_storage(&storage, "idem", SECTORS + 1), ESP_ERR_INVALID_SIZE);
    is(esp_idf_storage(&storage, "idem", 0), ESP_ERR_INVALID_SIZE);
    partition.erase_size = 65536;
    is(esp_idf_storage(&storage, "idem", SECTORS), ESP_ERR_INVALID_SIZE);
}
