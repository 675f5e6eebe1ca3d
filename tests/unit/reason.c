/* SPDX-License-Identifier: 0BSD */
/* Shows that examples/reason.h prints for a failure the number that would do,
   if there is one; and that examples/secret.h leaves nothing open after one: a
   program may try again once somebody has restored what is missing. */
#include "unit.h"

static FILE *printed;

#undef stderr
#define stderr printed
#include "examples/reason.h"
#include "examples/secret.h"
#undef stderr

static void prints(int result, const idem_table *table,
                   const idem_config *config, const char *text)
{
    char got[200] = "";

    printed = tmpfile();
    assert_non_null(printed);
    reason_print("pump", result, table, config);
    rewind(printed);
    assert_non_null(fgets(got, sizeof got, printed));
    fclose(printed);
    assert_string_equal(got, text);
}

static int read_zeros(void *ctx, uint32_t at, void *dst, uint32_t len)
{
    (void)ctx, (void)at;
    memset(dst, 0, len);
    return 0;
}

static int write_nothing(void *ctx, uint32_t at, const void *src, uint32_t len)
{
    (void)ctx, (void)at, (void)src, (void)len;
    return 0;
}

static const idem_storage small = {
    .read = read_zeros, .prog = write_nothing, .sector_size = 1024,
    .sector_count = 5, .prog_size = 1 };

enum { KEYS = 200, KEY_MAX = 8 };
static uint32_t memory[IDEM_JOURNAL_MEMORY_SIZE(KEYS, KEY_MAX, 0, 0, 1) / 4];

/* The result of opening a table with `size` bytes of memory. */
static int opens(idem_table *table, idem_config *config, size_t size)
{
    config->capacity = KEYS;
    config->key_max = KEY_MAX;
    memcpy(config->secret, "0123456789abcde", 16);
    return idem_open(table, config, memory, size, 0);
}

/* A table in RAM answers IDEM_E_SPACE when its tokens are at their end. */
TEST(without_a_storage_no_sectors_would_do)
{
    idem_config config = { .storage = NULL };
    idem_table table;

    is(opens(&table, &config, sizeof memory), IDEM_OK);
    assert_true(table.needed > 0);
    prints(IDEM_E_SPACE, &table, &config,
           "pump: the storage is too small, or too worn\n");
}

TEST(so_many_bytes_or_sectors_would_do)
{
    idem_config config = { .storage = NULL };
    idem_table table;
    char text[200];

    is(opens(&table, &config, 8), IDEM_E_MEMORY);
    snprintf(text, sizeof text, "pump: too little memory, or misaligned; %lu "
             "bytes would do\n", (unsigned long)table.needed);
    prints(IDEM_E_MEMORY, &table, &config, text);
    config.storage = &small;
    is(opens(&table, &config, sizeof memory), IDEM_E_SPACE);
    snprintf(text, sizeof text, "pump: the storage is too small, or too worn; "
             "storage.sector_count: too few for the keys; see IDEM_SECTORS "
             "and table.needed; %lu sectors would do\n",
             (unsigned long)table.needed);
    prints(IDEM_E_SPACE, &table, &config, text);
}

/* A storage that takes no byte, and reports nothing, has no error to name. */
TEST(what_reads_back_otherwise_is_no_success)
{
    idem_storage worn = small;
    idem_config config = { .storage = &worn };
    idem_request request = { .key = "a", .key_len = 1 };
    idem_claim claim;
    idem_reply reply;
    idem_table table;

    worn.verify = 1;
    worn.sector_count = 100;
    is(opens(&table, &config, sizeof memory), IDEM_OK);
    is(idem_begin(&table, &claim, &reply, &request, 0), IDEM_E_STORAGE);
    prints(IDEM_E_STORAGE, &table, &config,
           "pump: the storage failed, or was not ready\n");
}

enum { SECTOR = 4096, SECTORS = 5 };

/* What the file of that name in the folder has from now on; NULL: none. */
static void put(const char *folder, const char *name, const char *bytes,
                size_t len)
{
    char path[300];
    FILE *file;

    snprintf(path, sizeof path, "%s/%s", folder, name);
    if (!bytes) {
        is(remove(path), 0);
        return;
    }
    file = fopen(path, "wb");
    assert_non_null(file);
    is(fwrite(bytes, 1, len, file), len);
    is(fclose(file), 0);
}

TEST(a_secret_that_is_restored_is_found)
{
    static char bytes[SECTOR * SECTORS];
    const char *parent = getenv("TMPDIR");
    char folder[200], path[300];
    idem_config config = { .capacity = 1 };
    idem_file file;

    snprintf(folder, sizeof folder, "%s/idem-XXXXXX", parent ? parent : "/tmp");
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/journal", folder);
    printed = tmpfile();
    assert_non_null(printed);
    bytes[0] = 1;                       // not one that is new
    put(folder, "journal", bytes, sizeof bytes);
    is(secret_open_file(&config, &file, path, SECTOR, SECTORS), IDEM_E_STORAGE);
    put(folder, "journal.secret", "0123456789abcde", 16);
    is(secret_open_file(&config, &file, path, SECTOR, SECTORS), IDEM_OK);
    is(idem_file_close(&file), IDEM_OK);
    fclose(printed);
    put(folder, "journal.secret", NULL, 0);
    put(folder, "journal", NULL, 0);
    is(rmdir(folder), 0);
}
