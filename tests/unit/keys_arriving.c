/* SPDX-License-Identifier: 0BSD */
/*
 * Shows that the texts in which keys arrive become the bytes that others make
 * of them, and that whatever is next to such a text is refused: every other
 * character at every place, one character more or fewer.  What fails has not
 * touched the key.
 */
#include "unit.h"

/* Behind each key, and in it before: what nobody writes. */
#define UNTOUCHED 0xA5

static struct { unsigned char key[300]; size_t len; } got;

static void prepare(size_t room)
{
    memset(got.key, UNTOUCHED, sizeof got.key);
    got.len = room;
}

static void is_untouched_from(size_t at)
{
    for (; at < sizeof got.key; at++)
        is(got.key[at], UNTOUCHED);
}

/* Each reading with the rest of its arguments as they usually are; a text that
   is a literal's, or of a length.  What failed has changed no byte. */
typedef int reading(const char *text, size_t len);

static int judge(int result)
{
    if (result != IDEM_OK)
        is_untouched_from(0);
    return result;
}

static int uuid(const char *text, size_t len)
{
    prepare(0);
    return judge(idem_key_uuid(got.key, text, len, 0));
}

static int ulid(const char *text, size_t len)
{
    prepare(0);
    return judge(idem_key_ulid(got.key, text, len));
}

static int http(const char *text, size_t len)
{
    prepare(sizeof got.key);
    return judge(idem_key_http(got.key, &got.len, text, len));
}

static int hex(const char *text, size_t len)
{
    prepare(sizeof got.key);
    return judge(idem_key_hex(got.key, &got.len, text, len));
}

#define TEXT(literal) (literal), sizeof(literal) - 1

/* ---------------------------------------------------------------------------
   UUIDs and ULIDs
   ------------------------------------------------------------------------ */

typedef struct vector {
    const char   *text;
    unsigned char key[16];
} vector;

/* RFC 9562: of each version, of the text's form, the largest. */
static const vector uuids[] = {
    { "C232AB00-9414-11EC-B3C8-9F6BDECED846",
      { 0xc2, 0x32, 0xab, 0x00, 0x94, 0x14, 0x11, 0xec,
        0xb3, 0xc8, 0x9f, 0x6b, 0xde, 0xce, 0xd8, 0x46 } },
    { "5df41881-3aed-3515-88a7-2f4a814cf09e",
      { 0x5d, 0xf4, 0x18, 0x81, 0x3a, 0xed, 0x35, 0x15,
        0x88, 0xa7, 0x2f, 0x4a, 0x81, 0x4c, 0xf0, 0x9e } },
    { "919108f7-52d1-4320-9bac-f847db4148a8",
      { 0x91, 0x91, 0x08, 0xf7, 0x52, 0xd1, 0x43, 0x20,
        0x9b, 0xac, 0xf8, 0x47, 0xdb, 0x41, 0x48, 0xa8 } },
    { "2ed6657d-e927-568b-95e1-2665a8aea6a2",
      { 0x2e, 0xd6, 0x65, 0x7d, 0xe9, 0x27, 0x56, 0x8b,
        0x95, 0xe1, 0x26, 0x65, 0xa8, 0xae, 0xa6, 0xa2 } },
    { "1EC9414C-232A-6B00-B3C8-9F6BDECED846",
      { 0x1e, 0xc9, 0x41, 0x4c, 0x23, 0x2a, 0x6b, 0x00,
        0xb3, 0xc8, 0x9f, 0x6b, 0xde, 0xce, 0xd8, 0x46 } },
    { "017F22E2-79B0-7CC3-98C4-DC0C0C07398F",
      { 0x01, 0x7f, 0x22, 0xe2, 0x79, 0xb0, 0x7c, 0xc3,
        0x98, 0xc4, 0xdc, 0x0c, 0x0c, 0x07, 0x39, 0x8f } },
    { "2489E9AD-2EE2-8E00-8EC9-32D5F69181C0",
      { 0x24, 0x89, 0xe9, 0xad, 0x2e, 0xe2, 0x8e, 0x00,
        0x8e, 0xc9, 0x32, 0xd5, 0xf6, 0x91, 0x81, 0xc0 } },
    { "5c146b14-3c52-8afd-938a-375d0df1fbf6",
      { 0x5c, 0x14, 0x6b, 0x14, 0x3c, 0x52, 0x8a, 0xfd,
        0x93, 0x8a, 0x37, 0x5d, 0x0d, 0xf1, 0xfb, 0xf6 } },
    { "f81d4fae-7dec-11d0-a765-00a0c91e6bf6",
      { 0xf8, 0x1d, 0x4f, 0xae, 0x7d, 0xec, 0x11, 0xd0,
        0xa7, 0x65, 0x00, 0xa0, 0xc9, 0x1e, 0x6b, 0xf6 } },
    { "FFFFFFFF-FFFF-FFFF-FFFF-FFFFFFFFFFFF",
      { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
        0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff } }
};

/* The specification: examples, counting on, the largest; and the smallest. */
static const vector ulids[] = {
    { "01ARZ3NDEKTSV4RRFFQ69G5FAV",
      { 0x01, 0x56, 0x3e, 0x3a, 0xb5, 0xd3, 0xd6, 0x76,
        0x4c, 0x61, 0xef, 0xb9, 0x93, 0x02, 0xbd, 0x5b } },
    { "01AN4Z07BY79KA1307SR9X4MV3",
      { 0x01, 0x55, 0x49, 0xf0, 0x1d, 0x7e, 0x3a, 0x66,
        0xa0, 0x8c, 0x07, 0xce, 0x13, 0xd2, 0x53, 0x63 } },
    { "01BX5ZZKBKACTAV9WEVGEMMVRY",
      { 0x01, 0x5f, 0x4b, 0xff, 0xcd, 0x73, 0x53, 0x34,
        0xad, 0xa7, 0x8e, 0xdc, 0x1d, 0x4a, 0x6f, 0x1e } },
    { "01BX5ZZKBKACTAV9WEVGEMMVRZ",
      { 0x01, 0x5f, 0x4b, 0xff, 0xcd, 0x73, 0x53, 0x34,
        0xad, 0xa7, 0x8e, 0xdc, 0x1d, 0x4a, 0x6f, 0x1f } },
    { "01BX5ZZKBKACTAV9WEVGEMMVS0",
      { 0x01, 0x5f, 0x4b, 0xff, 0xcd, 0x73, 0x53, 0x34,
        0xad, 0xa7, 0x8e, 0xdc, 0x1d, 0x4a, 0x6f, 0x20 } },
    { "7ZZZZZZZZZZZZZZZZZZZZZZZZZ",
      { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
        0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff } },
    { "00000000000000000000000000",
      { 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
        0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00 } }
};

static void fold(char *text, const char *from, int upper)
{
    do {
        int c = (unsigned char)*from;
        if (upper && c >= 'a' && c <= 'z')
            c += 'A' - 'a';
        if (!upper && c >= 'A' && c <= 'Z')
            c += 'a' - 'A';
        *text++ = (char)c;
    } while (*from++);
}

static void are_read(reading *read, const vector *v, size_t count)
{
    char text[40];
    int upper;

    for (; count > 0; count--, v++)
        for (upper = 0; upper < 2; upper++) {
            fold(text, v->text, upper);
            is(read(text, strlen(text)), IDEM_OK);
            assert_memory_equal(got.key, v->key, sizeof v->key);
            is_untouched_from(sizeof v->key);
        }
}

TEST(published_uuids_are_their_bytes)
{
    are_read(uuid, uuids, COUNT(uuids));
}

TEST(published_ulids_are_their_bytes)
{
    are_read(ulid, ulids, COUNT(ulids));
}

/* One of `digits`, in either case, and which: by looking it up. */
static int value_of(int c, const char *digits)
{
    const char *found;

    if (c >= 'a' && c <= 'z')
        c += 'A' - 'a';
    found = c ? strchr(digits, c) : NULL;
    return found ? (int)(found - digits) : -1;
}

static const char hex_digits[] = "0123456789ABCDEF";
static const char crockford[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

static int is_hyphen_at(size_t at)
{
    return at == 8 || at == 13 || at == 18 || at == 23;
}

TEST(every_character_at_every_place_of_a_uuid)
{
    char text[] = "f81d4fae-7dec-11d0-a765-00a0c91e6bf6";
    size_t at;
    int c;

    for (at = 0; at < 36; at++)
        for (c = 0; c < 256; c++) {
            char was = text[at];
            int good = is_hyphen_at(at) ? c == '-'
                                        : value_of(c, hex_digits) >= 0;

            text[at] = (char)c;
            is(uuid(text, 36), good ? IDEM_OK : IDEM_E_ARG);
            text[at] = was;
        }
}

TEST(every_character_at_every_place_of_a_ulid)
{
    char text[] = "01ARZ3NDEKTSV4RRFFQ69G5FAV";
    size_t at;
    int c;

    for (at = 0; at < 26; at++)
        for (c = 0; c < 256; c++) {
            char was = text[at];
            int value = value_of(c, crockford);
            int expected = value < 0 ? IDEM_E_ARG
                         : at == 0 && value > 7 ? IDEM_E_TOO_LARGE : IDEM_OK;

            text[at] = (char)c;
            is(ulid(text, 26), expected);
            text[at] = was;
        }
}

TEST(lengths_of_uuids_and_ulids_are_exact)
{
    static const char uuid_text[] = "f81d4fae-7dec-11d0-a765-00a0c91e6bf6f81d";
    static const char ulid_text[] = "01ARZ3NDEKTSV4RRFFQ69G5FAV01AR";
    size_t len;

    for (len = 0; len < 40; len++)
        is(uuid(uuid_text, len), len == 36 ? IDEM_OK : IDEM_E_ARG);
    for (len = 0; len < 30; len++)
        is(ulid(ulid_text, len), len == 26 ? IDEM_OK : IDEM_E_ARG);
    is(uuid(NULL, 0), IDEM_E_ARG);
    is(ulid(NULL, 0), IDEM_E_ARG);
}

TEST(other_spellings_of_a_uuid_are_refused)
{
    is(uuid(TEXT("f81d4fae7dec11d0a76500a0c91e6bf6")), IDEM_E_ARG);
    is(uuid(TEXT("{f81d4fae-7dec-11d0-a765-00a0c91e6bf6}")), IDEM_E_ARG);
    is(uuid(TEXT("urn:uuid:f81d4fae-7dec-11d0-a765-"
                 "00a0c91e6bf6")),
       IDEM_E_ARG);
    is(uuid(TEXT("f81d4fae7-dec-11d0-a765-00a0c91e6bf6")), IDEM_E_ARG);
}

/* Nearly nil is another one. */
TEST(the_nil_uuid_must_be_asked_for)
{
    static const unsigned char zeros[16];
    char text[] = "00000000-0000-0000-0000-000000000000";
    size_t at;

    is(uuid(text, 36), IDEM_E_ARG);
    prepare(0);
    is(idem_key_uuid(got.key, text, 36, 1), IDEM_OK);
    assert_memory_equal(got.key, zeros, sizeof zeros);
    for (at = 0; at < 36; at++) {
        if (is_hyphen_at(at))
            continue;
        text[at] = '1';
        is(uuid(text, 36), IDEM_OK);
        text[at] = '0';
    }
}

TEST(a_ulid_over_128_bits_is_too_large)
{
    is(ulid(TEXT("80000000000000000000000000")), IDEM_E_TOO_LARGE);
    is(ulid(TEXT("ZZZZZZZZZZZZZZZZZZZZZZZZZZ")), IDEM_E_TOO_LARGE);
    is(ulid(TEXT("8000000000000000000000000U")), IDEM_E_ARG);
}

/* ---------------------------------------------------------------------------
   structured fields' strings
   ------------------------------------------------------------------------ */

static void is_http_key(const char *value, size_t value_len, const char *key,
                        size_t len)
{
    is(http(value, value_len), IDEM_OK);
    is(got.len, len);
    assert_memory_equal(got.key, key, len);
    is_untouched_from(len);
}

static void is_no_http_key(const char *value, size_t len)
{
    is(http(value, len), IDEM_E_ARG);
    is(got.len, 0);
}

TEST(strings_are_their_characters)
{
    is_http_key(TEXT("\"8e03978e-40d5-43dd-bc93-6894a57f9324\""),
                TEXT("8e03978e-40d5-43dd-bc93-6894a57f9324"));
    is_http_key(TEXT("\"foo bar\""), TEXT("foo bar"));
    is_http_key(TEXT("\"   \""), TEXT("   "));
    is_http_key(TEXT("\"foo \\\"bar\\\" \\\\ baz\""),
                TEXT("foo \"bar\" \\ baz"));
    is_http_key(TEXT("\"\\\\\""), TEXT("\\"));
    is_http_key(TEXT("\"\\\"\""), TEXT("\""));
    is_http_key(TEXT("\"a;b=1, c\""), TEXT("a;b=1, c"));
}

TEST(spaces_around_a_string_are_dropped_and_tabs_are_not)
{
    is_http_key(TEXT("  \"a\""), TEXT("a"));
    is_http_key(TEXT("\"a\"   "), TEXT("a"));
    is_http_key(TEXT(" \" a \" "), TEXT(" a "));
    is_no_http_key(TEXT("\t\"a\""));
    is_no_http_key(TEXT("\"a\"\t"));
    is_no_http_key(TEXT("\"a\"\r\n"));
    is_no_http_key("\"a\"", 4);                 // its 0
}

TEST(all_but_one_string_is_refused)
{
    static const char *const values[] = {
        "", " ", "\"", "\"\"", " \"\" ", "a", "'foo'", "\"foo", "foo\"",
        "\"foo \\,\"", "\"foo \\\"", "\"foo \\", "\"\\\"", "\"\\a\"",
        "\"a\"b\"", "\"a\" \"b\"", "\"a\", \"b\"", "\"a\",", "\"a\";",
        "\"a\";p", "\"a\"; p=1", "\"a\";p=\"b\"", "(\"a\")", "k=\"a\"", "?1",
        "42", "4.5", "token", ":YQ==:", "@1", "%\"a\"", "W/\"a\"", "\"a\"\"",
        "\"f\xc3\xbc\"", "\"a\tb\"", "\"a\nb\"", "\"a\x7f\""
    };
    size_t i;

    for (i = 0; i < COUNT(values); i++)
        is_no_http_key(values[i], strlen(values[i]));
    is_no_http_key(TEXT("\"a\0b\""));
    is_no_http_key(NULL, 0);
}

TEST(every_character_in_a_string_plain_and_escaped)
{
    char plain[] = "\"a?b\"", escaped[] = "\"a\\?b\"", key[] = "a?b";
    int c;

    for (c = 0; c < 256; c++) {
        int quoted = c == '"' || c == '\\';

        plain[2] = escaped[3] = key[1] = (char)c;
        if (c >= 0x20 && c < 0x7F && !quoted)
            is_http_key(TEXT(plain), TEXT(key));
        else
            is_no_http_key(TEXT(plain));
        if (quoted)
            is_http_key(TEXT(escaped), TEXT(key));
        else
            is_no_http_key(TEXT(escaped));
    }
}

/* A string that means `len` times c, each escaped if that is asked for. */
static size_t make_string(char *text, int escape, char c, size_t len)
{
    char *at = text;

    *at++ = '"';
    for (; len > 0; len--) {
        if (escape)
            *at++ = '\\';
        *at++ = c;
    }
    *at++ = '"';
    return (size_t)(at - text);
}

TEST(two_hundred_and_fifty_five_bytes_are_the_most)
{
    char text[600];
    size_t len;
    int escape;

    for (escape = 0; escape < 2; escape++)
        for (len = 1; len < 260; len++) {
            size_t text_len = make_string(text, escape, escape ? '"' : 'k',
                                          len);

            is(http(text, text_len), len <= 255 ? IDEM_OK : IDEM_E_TOO_LARGE);
            is(got.len, len);
            is_untouched_from(len <= 255 ? len : 0);
        }
}

TEST(what_does_not_fit_is_told)
{
    size_t room;

    for (room = 0; room < 8; room++) {
        prepare(room);
        is(judge(idem_key_http(got.key, &got.len, TEXT("\"ab\\\"cd\""))),
           room < 5 ? IDEM_E_TOO_LARGE : IDEM_OK);
        is(got.len, 5);
        is_untouched_from(5);
        prepare(room);
        is(judge(idem_key_hex(got.key, &got.len, TEXT("0102030405"))),
           room < 5 ? IDEM_E_TOO_LARGE : IDEM_OK);
        is(got.len, 5);
        is_untouched_from(5);
    }
}

/* ---------------------------------------------------------------------------
   hexadecimal digits
   ------------------------------------------------------------------------ */

TEST(every_pair_of_characters_as_digits)
{
    char text[2];
    int a, b;

    for (a = 0; a < 256; a++)
        for (b = 0; b < 256; b++) {
            int high = value_of(a, hex_digits), low = value_of(b, hex_digits);

            text[0] = (char)a;
            text[1] = (char)b;
            if (high < 0 || low < 0) {
                is(hex(text, 2), IDEM_E_ARG);
                is(got.len, 0);
                continue;
            }
            is(hex(text, 2), IDEM_OK);
            is(got.len, 1);
            is(got.key[0], 16 * high + low);
            is_untouched_from(1);
        }
}

TEST(digits_come_in_pairs_and_one_pair_at_least)
{
    static const char text[] = "00fF7e81c0DE";
    static const unsigned char bytes[] = { 0x00, 0xFF, 0x7E, 0x81, 0xC0, 0xDE };
    char spoilt[sizeof text];
    size_t len, at;

    for (len = 0; len < sizeof text; len++) {
        int good = len > 0 && len % 2 == 0;

        is(hex(text, len), good ? IDEM_OK : IDEM_E_ARG);
        is(got.len, good ? len / 2 : 0);
        assert_memory_equal(got.key, bytes, got.len);
        is_untouched_from(got.len);
    }
    for (at = 0; at + 1 < sizeof text; at++) {
        memcpy(spoilt, text, sizeof text);
        spoilt[at] = 'g';
        is(hex(spoilt, sizeof text - 1), IDEM_E_ARG);
    }
    is(hex(NULL, 0), IDEM_E_ARG);
}

/* ---------------------------------------------------------------------------
   all of them
   ------------------------------------------------------------------------ */

TEST(a_key_may_be_where_its_text_is)
{
    char text[40];
    size_t len = sizeof text;

    strcpy(text, uuids[0].text);
    is(idem_key_uuid(text, text, 36, 0), IDEM_OK);
    assert_memory_equal(text, uuids[0].key, 16);
    strcpy(text, ulids[0].text);
    is(idem_key_ulid(text, text, 26), IDEM_OK);
    assert_memory_equal(text, ulids[0].key, 16);
    strcpy(text, " \"a\\\\\\\"b\" ");
    is(idem_key_http(text, &len, text, strlen(text)), IDEM_OK);
    is(len, 4);
    assert_memory_equal(text, "a\\\"b", 4);
    strcpy(text, "6a6b6c");
    len = sizeof text;
    is(idem_key_hex(text, &len, text, 6), IDEM_OK);
    is(len, 3);
    assert_memory_equal(text, "jkl", 3);
}

/* But what a sender wrote is nobody's mistake here. */
TEST(null_is_the_callers_mistake)
{
    unsigned misuse = unit_misuse;
    size_t len = sizeof got.key;

    is(uuid("x", 1), IDEM_E_ARG);
    is(ulid("x", 1), IDEM_E_ARG);
    is(http("x", 1), IDEM_E_ARG);
    is(hex("x", 1), IDEM_E_ARG);
    is(unit_misuse, misuse);

    is(idem_key_uuid(NULL, uuids[0].text, 36, 0), IDEM_E_ARG);
    is(idem_key_uuid(got.key, NULL, 36, 0), IDEM_E_ARG);
    is(idem_key_ulid(NULL, ulids[0].text, 26), IDEM_E_ARG);
    is(idem_key_ulid(got.key, NULL, 26), IDEM_E_ARG);
    is(idem_key_http(NULL, &len, "\"a\"", 3), IDEM_E_ARG);
    is(idem_key_http(got.key, NULL, "\"a\"", 3), IDEM_E_ARG);
    is(idem_key_http(got.key, &len, NULL, 3), IDEM_E_ARG);
    is(idem_key_hex(NULL, &len, "00", 2), IDEM_E_ARG);
    is(idem_key_hex(got.key, NULL, "00", 2), IDEM_E_ARG);
    is(idem_key_hex(got.key, &len, NULL, 2), IDEM_E_ARG);
    is(unit_misuse, misuse + 10);
}
