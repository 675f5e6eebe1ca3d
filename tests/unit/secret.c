/* SPDX-License-Identifier: 0BSD */
/* Shows that examples/secret.h leaves nothing open after a failure: a program
   may try again once somebody has restored what is missing. */
#include "unit.h"

static FILE *printed;

#undef stderr
#define stderr printed
#include "examples/secret.h"
#undef stderr

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
