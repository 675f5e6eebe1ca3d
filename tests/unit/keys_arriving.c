/* SPDX-License-Identifier: 0BSD */
/*
 * Shows that texts in which keys arrive become the bytes that other
 * implementations make of them, and that texts close to such a text are
 * refused: every other character at every place, others at every two places,
 * one character more or fewer; and every short string of characters that mean
 * something in one.
 *
 * A slow parser that follows the contract alone is the reference; it is tested
 * with published texts.  Each text is read by it and by the library, by that
 * also in place; a failing call changes no byte.
 */
#define IDEM_MISUSE() ((void)misuse++)
static unsigned misuse;

#include "test.h"

#include "arriving.h"

static example example_of(unsigned kind, const char *text, size_t len)
{
    example e;

    memset(&e, 0, sizeof e);
    e.kind = kind;
    e.room = 300;
    e.text_len = len;
    memcpy(e.text, text, len);
    return e;
}

/* Reads a text in both ways; what both answer. */
static int reads(example *e)
{
    read_slowly(e);
    check(e);
    return e->result;
}

static int reads_text(unsigned kind, const char *text, size_t len)
{
    example e = example_of(kind, text, len);

    return reads(&e);
}

/* How many of the texts that have one other character, anywhere, are read. */
static unsigned neighbours(unsigned kind, const char *text)
{
    size_t len = strlen(text);
    unsigned count = 0;

    for (size_t at = 0; at < len; at++)
        for (int c = 0; c < 256; c++) {
            example e = example_of(kind, text, len);
            e.text[at] = (char)c;
            count += reads(&e) == IDEM_OK;
        }
    return count;
}

/* The only length of a text's beginnings that is read. */
static size_t length_read(unsigned kind, const char *text)
{
    size_t found = 0;

    for (size_t len = 0; len <= strlen(text); len++)
        if (reads_text(kind, text, len) == IDEM_OK) {
            is(found, 0);
            found = len;
        }
    return found;
}

/* Reads the texts that have two other characters, anywhere. */
static void read_second_neighbours(unsigned kind, const char *text)
{
    static const char others[] = "08fZ-\\\"";
    size_t len = strlen(text);
    example e = example_of(kind, text, len);

    for (size_t b = 1; b < len; b++)
        for (size_t a = 0; a < b; a++)
            for (size_t i = 0; i < 7 * 7; i++) {
                memcpy(e.text, text, len);
                e.text[a] = others[i % 7];
                e.text[b] = others[i / 7];
                reads(&e);
            }
}

#define UUID_TEXT "f81d4fae-7dec-11d0-a765-00a0c91e6bf6"
#define ULID_TEXT "01ARZ3NDEKTSV4RRFFQ69G5FAV"

TEST(published_texts_and_others_are_their_bytes)
{
    static const struct { unsigned kind; const char *text, *key; } texts[] = {
        // RFC 9562: of each version, of the text's form, the largest
        { UUID, "C232AB00-9414-11ec-B3c8-9F6BDECED846",
          "\xc2\x32\xab\x00\x94\x14\x11\xec\xb3\xc8\x9f\x6b\xde\xce\xd8\x46" },
        { UUID, UUID_TEXT,
          "\xf8\x1d\x4f\xae\x7d\xec\x11\xd0\xa7\x65\x00\xa0\xc9\x1e\x6b\xf6" },
        { UUID, "C232AB00-9414-11EC-B3C8-9F6BDECED846", NULL },
        { UUID, "5df41881-3aed-3515-88a7-2f4a814cf09e", NULL },
        { UUID, "919108f7-52d1-4320-9bac-f847db4148a8", NULL },
        { UUID, "2ed6657d-e927-568b-95e1-2665a8aea6a2", NULL },
        { UUID, "1EC9414C-232A-6B00-B3C8-9F6BDECED846", NULL },
        { UUID, "017F22E2-79B0-7CC3-98C4-DC0C0C07398F", NULL },
        { UUID, "2489E9AD-2EE2-8E00-8EC9-32D5F69181C0", NULL },
        { UUID, "5c146b14-3c52-8afd-938a-375d0df1fbf6", NULL },
        { UUID, "FFFFFFFF-FFFF-FFFF-FFFF-FFFFFFFFFFFF", NULL },
        // The specification: examples, counting on, the largest; the smallest
        { ULID, ULID_TEXT,
          "\x01\x56\x3e\x3a\xb5\xd3\xd6\x76\x4c\x61\xef\xb9\x93\x02\xbd\x5b" },
        { ULID, "01AN4Z07BY79KA1307SR9X4MV3",
          "\x01\x55\x49\xf0\x1d\x7e\x3a\x66\xa0\x8c\x07\xce\x13\xd2\x53\x63" },
        { ULID, "01BX5ZZKBKACTAV9WEVGEMMVRY",
          "\x01\x5f\x4b\xff\xcd\x73\x53\x34\xad\xa7\x8e\xdc\x1d\x4a\x6f\x1e" },
        { ULID, "01BX5ZZKBKACTAV9WEVGEMMVRZ",
          "\x01\x5f\x4b\xff\xcd\x73\x53\x34\xad\xa7\x8e\xdc\x1d\x4a\x6f\x1f" },
        { ULID, "01bx5zzkbkactav9wevgemmvs0",
          "\x01\x5f\x4b\xff\xcd\x73\x53\x34\xad\xa7\x8e\xdc\x1d\x4a\x6f\x20" },
        { ULID, "7ZZZZZZZZZZZZZZZZZZZZZZZZZ",
          "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff" },
        { ULID, "00000000000000000000000001",
          "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1" },
        { HTTP, "\"8e03978e-40d5-43dd-bc93-6894a57f9324\"",
          "8e03978e-40d5-43dd-bc93-6894a57f9324" },
        { HTTP, "\"foo bar\"", "foo bar" }, { HTTP, "\"   \"", "   " },
        { HTTP, "\"foo \\\"bar\\\" \\\\ baz\"", "foo \"bar\" \\ baz" },
        { HTTP, "\"\\\\\"", "\\" }, { HTTP, "\"\\\"\"", "\"" },
        { HTTP, "\"a;b=1, c\"", "a;b=1, c" }, { HTTP, "  \"a\"", "a" },
        { HTTP, "\"a\"   ", "a" }, { HTTP, " \" a \" ", " a " },
        { HEX, "00fF7e81c0DE", "\0\xff\x7e\x81\xc0\xde" },
    };

    for (size_t i = 0; i < COUNT(texts); i++) {
        example e = example_of(texts[i].kind, texts[i].text,
                               strlen(texts[i].text));
        size_t len = e.kind < HTTP ? 16 : e.kind == HEX ? e.text_len / 2
                                                        : strlen(texts[i].key);
        is(reads(&e), IDEM_OK);
        if (e.kind >= HTTP)
            is(e.len, len);
        if (texts[i].key)
            assert_memory_equal(e.key, texts[i].key, len);
    }
}

TEST(other_texts_are_refused)
{
    static const struct { unsigned kind; const char *text; } texts[] = {
        { UUID, "f81d4fae7dec11d0a76500a0c91e6bf6" },
        { UUID, "{" UUID_TEXT "}" }, { UUID, "urn:uuid:" UUID_TEXT },
        { UUID, "f81d4fae7-dec-11d0-a765-00a0c91e6bf6" },
        { ULID, "8000000000000000000000000U" },
    };
    static const char *const values[] = {
        "", " ", "\"", "\"\"", " \"\" ", "a", "'foo'", "\"foo", "foo\"",
        "\"foo \\,\"", "\"foo \\\"", "\"foo \\", "\"\\\"", "\"\\a\"",
        "\"a\"b\"", "\"a\" \"b\"", "\"a\", \"b\"", "\"a\",", "\"a\";",
        "\"a\";p", "\"a\"; p=1", "\"a\";p=\"b\"", "(\"a\")", "k=\"a\"", "?1",
        "42", "4.5", "token", ":YQ==:", "@1", "%\"a\"", "W/\"a\"", "\"a\"\"",
        "\"f\xc3\xbc\"", "\"a\tb\"", "\"a\nb\"", "\"a\x7f\"",
        "\t\"a\"", "\"a\"\t", "\"a\"\r\n",
    };

    for (size_t i = 0; i < COUNT(texts); i++)
        is(reads_text(texts[i].kind, texts[i].text, strlen(texts[i].text)),
           IDEM_E_ARG);
    for (size_t i = 0; i < COUNT(values); i++)
        is(reads_text(HTTP, values[i], strlen(values[i])), IDEM_E_ARG);
    is(reads_text(HTTP, "\"a\0b\"", 5), IDEM_E_ARG);
    is(reads_text(HTTP, "\"a\"", 4), IDEM_E_ARG);       // its 0
    // Over 128 bits
    is(reads_text(ULID, "80000000000000000000000000", 26), IDEM_E_TOO_LARGE);
    is(reads_text(ULID, "ZZZZZZZZZZZZZZZZZZZZZZZZZZ", 26), IDEM_E_TOO_LARGE);
}

/* A digit of 22 at 32 places, a hyphen at 4; a digit of 54 at 25 places, and at
   the first one up to 7; a digit of 22 at 12 places.  In a string 93 characters
   at two places, that and another after a \, themselves at 5. */
TEST(no_other_character_is_read_at_any_place)
{
    is(neighbours(UUID, UUID_TEXT), 32 * 22 + 4);
    is(neighbours(ULID, ULID_TEXT), 25 * 54 + 8);
    is(neighbours(HEX, "00fF7e81c0DE"), 12 * 22);
    is(neighbours(HTTP, " \"a\\\"b\" "), 2 * ('~' - ' ' - 1) + 2 + 5);
}

TEST(texts_with_two_other_characters_are_read_as_the_contract_has_it)
{
    read_second_neighbours(UUID, UUID_TEXT);
    read_second_neighbours(UUID, "00000000-0000-0000-0000-000000000000");
    read_second_neighbours(ULID, ULID_TEXT);
    read_second_neighbours(HEX, "00fF7e81c0DE");
    read_second_neighbours(HTTP, " \"a\\\"b\" ");
}

/* Of up to eight characters, of those that mean something: 87,381 texts. */
TEST(short_strings_are_read_as_the_contract_has_it)
{
    static const char characters[] = "\"\\ a";
    example e = example_of(HTTP, "", 0);

    for (uint32_t count = 1; e.text_len < 9; e.text_len++, count *= 4)
        for (uint32_t number = 0; number < count; number++) {
            for (size_t i = 0; i < e.text_len; i++)
                e.text[i] = characters[number >> 2 * i & 3];
            reads(&e);
        }
}

TEST(lengths_of_uuids_and_ulids_are_exact)
{
    is(length_read(UUID, UUID_TEXT "f81d"), 36);
    is(length_read(ULID, ULID_TEXT "01AR"), 26);
}

/* Nearly nil is another one. */
TEST(the_nil_uuid_and_ulid_are_refused)
{
    static const char uuid[] = "00000000-0000-0000-0000-000000000000";
    static const char ulid[] = "00000000000000000000000000";
    example nil = example_of(UUID, uuid, 36);

    is(reads(&nil), IDEM_E_ARG);
    is(neighbours(UUID, uuid), 32 * 21);
    nil = example_of(ULID, ulid, 26);
    is(reads(&nil), IDEM_E_ARG);
}

TEST(two_hundred_and_fifty_five_bytes_are_the_most)
{
    for (int escape = 0; escape < 2; escape++)
        for (size_t len = 1; len < 260; len++) {
            example e = example_of(HTTP, "\"", 1);
            for (size_t i = 0; i < len; i++) {
                if (escape)
                    e.text[e.text_len++] = '\\';
                e.text[e.text_len++] = escape ? '"' : 'k';
            }
            e.text[e.text_len++] = '"';
            is(reads(&e), len <= 255 ? IDEM_OK : IDEM_E_TOO_LARGE);
            is(e.len, len);
        }
}

TEST(what_does_not_fit_is_reported)
{
    for (size_t room = 0; room < 8; room++) {
        example string = example_of(HTTP, "\"ab\\\"cd\"", 8);
        example digits = example_of(HEX, "0102030405", 10);
        string.room = digits.room = room;
        is(reads(&string), room < 5 ? IDEM_E_TOO_LARGE : IDEM_OK);
        is(reads(&digits), room < 5 ? IDEM_E_TOO_LARGE : IDEM_OK);
        is(string.len, 5);
        is(digits.len, 5);
    }
}

TEST(digits_come_in_pairs_and_one_pair_at_least)
{
    static const char text[] = "00fF7e81c0DE";

    for (size_t len = 0; len < sizeof text; len++)
        is(reads_text(HEX, text, len),
           len > 0 && len % 2 == 0 ? IDEM_OK : IDEM_E_ARG);
}

/* But what a sender wrote, or left out, is nobody's mistake here. */
TEST(null_is_the_callers_mistake)
{
    uint8_t key[16];
    size_t len = sizeof key;

    for (unsigned kind = 0; kind < KINDS; kind++)
        is(reads_text(kind, "x", 1), IDEM_E_ARG);
    is(idem_key_uuid(key, NULL, 0), IDEM_E_ARG);
    is(idem_key_ulid(key, NULL, 0), IDEM_E_ARG);
    is(idem_key_http(key, &len, NULL, 0), IDEM_E_ARG);
    is(idem_key_hex(key, &len, NULL, 0), IDEM_E_ARG);
    is(misuse, 0);

    is(idem_key_uuid(NULL, UUID_TEXT, 36), IDEM_E_ARG);
    is(idem_key_uuid(key, NULL, 36), IDEM_E_ARG);
    is(idem_key_ulid(NULL, ULID_TEXT, 26), IDEM_E_ARG);
    is(idem_key_ulid(key, NULL, 26), IDEM_E_ARG);
    is(idem_key_http(NULL, &len, "\"a\"", 3), IDEM_E_ARG);
    is(idem_key_http(key, NULL, "\"a\"", 3), IDEM_E_ARG);
    is(idem_key_http(key, &len, NULL, 3), IDEM_E_ARG);
    is(idem_key_hex(NULL, &len, "00", 2), IDEM_E_ARG);
    is(idem_key_hex(key, NULL, "00", 2), IDEM_E_ARG);
    is(idem_key_hex(key, &len, NULL, 2), IDEM_E_ARG);
    is(misuse, 10);
}
