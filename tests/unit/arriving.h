/* SPDX-License-Identifier: 0BSD */
/*
 * Texts in which keys arrive.  The library must read any text as a second, slow
 * parser does, which follows the contract alone; and it must touch nothing but
 * the key.
 */
#ifndef ARRIVING_H
#define ARRIVING_H

#define IDEM_STATIC
#define IDEM_IMPLEMENTATION
#include "idem.h"

#include "../model/input.h"

#include <ctype.h>
#include <stdlib.h>

enum { UUID, ULID, HTTP, HEX, KINDS };
enum { LONGEST = 600, UNTOUCHED = 0xA5 };

/* A text and what it is to be read as */
typedef struct example {
    unsigned kind;
    size_t room;
    size_t text_len;
    char text[LONGEST];
    int result;
    size_t len;                     /* that is expected */
    uint8_t key[LONGEST];
} example;

/* ---------------------------------------------------------------------------
   the slow readings
   ------------------------------------------------------------------------ */

/* `count` hexadecimal digits of a text that ends with 0, as bytes, and what
   stands after them; 0 if there are others. */
static int slow_digits(example *e, const char **text, size_t count, char after)
{
    char pair[3] = "";

    for (; count > 0; count -= 2, *text += 2) {
        memcpy(pair, *text, 2);
        if (!isxdigit((unsigned char)pair[0]) ||
            !isxdigit((unsigned char)pair[1]))
            return 0;
        e->key[e->len++] = (uint8_t)strtoul(pair, NULL, 16);
    }
    return *(*text)++ == after;
}

static int slow_uuid(example *e)
{
    static const uint8_t nil[16];
    const char *text = e->text;

    if (strlen(text) != 36 || !slow_digits(e, &text, 8, '-') ||
        !slow_digits(e, &text, 4, '-') || !slow_digits(e, &text, 4, '-') ||
        !slow_digits(e, &text, 4, '-') || !slow_digits(e, &text, 12, 0))
        return IDEM_E_ARG;
    return memcmp(e->key, nil, 16) ? IDEM_OK : IDEM_E_ARG;
}

/* The key times 32 and a digit; what goes over. */
static unsigned slow_shift(uint8_t key[16], unsigned digit)
{
    int i;

    for (i = 15; i >= 0; i--) {
        unsigned more = key[i] * 32u + digit;

        key[i] = (uint8_t)more;
        digit = more / 256;
    }
    return digit;
}

static int slow_ulid(example *e)
{
    static const char digits[] = "0123456789abcdefghjkmnpqrstvwxyz";
    unsigned over = 0, any = 0;
    size_t i;

    if (strlen(e->text) != 26)
        return IDEM_E_ARG;
    for (i = 0; i < 26; i++) {
        const char *digit = strchr(digits, tolower((unsigned char)e->text[i]));

        if (!digit)
            return IDEM_E_ARG;
        over |= slow_shift(e->key, (unsigned)(digit - digits));
        any |= digit != digits;
    }
    if (!any)
        return IDEM_E_ARG;
    return over ? IDEM_E_TOO_LARGE : IDEM_OK;
}

/* As RFC 9651 parses an item (4.2) that is a string (4.2.5), step by step. */
static int slow_http(example *e)
{
    const char *p = e->text;

    while (*p == ' ')
        p++;
    if (*p++ != '"')
        return IDEM_E_ARG;
    while (*p != '"') {
        if (*p == '\\' && *++p != '"' && *p != '\\')
            return IDEM_E_ARG;
        if (*p < 0x20 || *p > 0x7E)
            return IDEM_E_ARG;
        e->key[e->len++] = (uint8_t)*p++;
    }
    p++;
    while (*p == ' ')
        p++;
    if (*p || e->len == 0)
        return IDEM_E_ARG;
    return e->len > 255 ? IDEM_E_TOO_LARGE : IDEM_OK;
}

static int slow_hex(example *e)
{
    const char *text = e->text;

    if (e->text_len == 0 || e->text_len % 2 ||
        !slow_digits(e, &text, e->text_len, 0))
        return IDEM_E_ARG;
    return IDEM_OK;
}

/* What is to come of the text.  It has a 0 after it; one inside it is refused
   by all readings, as no text may have one. */
static void read_slowly(example *e)
{
    static int (*const slow[KINDS])(example *) = {
        slow_uuid, slow_ulid, slow_http, slow_hex
    };

    e->len = 0;
    memset(e->key, 0, sizeof e->key);
    e->result = IDEM_E_ARG;
    if (strlen(e->text) == e->text_len)
        e->result = slow[e->kind](e);
    if (e->kind < HTTP)
        return;
    if (e->result == IDEM_OK && e->len > e->room)
        e->result = IDEM_E_TOO_LARGE;
    if (e->result == IDEM_E_ARG)
        e->len = 0;
}

/* ---------------------------------------------------------------------------
   the library's
   ------------------------------------------------------------------------ */

static int read_key(const example *e, uint8_t *key, size_t *len)
{
    switch (e->kind) {
    case UUID: return idem_key_uuid(key, e->text, e->text_len);
    case ULID: return idem_key_ulid(key, e->text, e->text_len);
    case HTTP: return idem_key_http(key, len, e->text, e->text_len);
    default:   return idem_key_hex(key, len, e->text, e->text_len);
    }
}

/* Reads a text for which `e` has what is to come of it. */
static void check(const example *e)
{
    uint8_t key[LONGEST];
    size_t at = 0, len = e->room, expected = e->kind < HTTP ? e->room : e->len;
    example place = *e;

    memset(key, UNTOUCHED, sizeof key);
    trace("kind %u, room %zu: %.*s\n", e->kind, e->room, (int)e->text_len,
          e->text);
    PROMISE(read_key(e, key, &len) == e->result);
    PROMISE(len == expected);
    if (e->result == IDEM_OK) {
        at = e->kind < HTTP ? 16 : e->len;
        PROMISE(!memcmp(key, e->key, at));
    }
    for (len = at; len < sizeof key; len++)
        PROMISE(key[len] == UNTOUCHED);
    len = e->room;
    PROMISE(read_key(&place, (uint8_t *)place.text, &len) == e->result);
    PROMISE(!memcmp(place.text, e->result == IDEM_OK ? (const char *)e->key
                                                     : e->text, at));
    PROMISE(!memcmp(place.text + at, e->text + at, sizeof e->text - at));
}

#endif /* ARRIVING_H */
