/* SPDX-License-Identifier: 0BSD */
/*
 * A call as a word that people can read, and as a struct.  Words are run by
 * call.h on a device and its model, by fleet/script.h on a table or a store, by
 * unit/senders.c on a table; each documents what is special there.
 *
 *     "Ba Ca,len=3 P Ba,payload=1,ms=500:mismatch"
 *
 * A word is a letter, or a name of three letters or more, then a key, and fields
 * after commas.  Keys are a to z or a number; of a store or a sender, also
 * "scope.key", and "epoch#sequence" as key.  A line may begin with modes.
 *
 *     Ba      begin: payload lease retention age reserve buffer
 *     Ca      complete: len code state failed confirm echo; a field that is
 *             left out differs with each outcome.  `state` alone: any state
 *     Ua      both in one call: all of these, takes; or back, or keep
 *     ca      complete with the claim before the last: fenced
 *     Ra Na Xa    release; renew: lease; forget
 *     Da      delivered
 *     Wa Fa Za Sa Oa Qa Ia    begin with another payload; complete as failed,
 *             no response, with state, to confirm, with both, with what the
 *             storage has of the claim that was granted last
 *     Ga      look at a
 *     o       look at undelivered outcomes
 *     L T wait9   a lease passes; a retention; 9 ms
 *
 * After a colon is the answer that it must get, or several: "Ba:execute/busy".
 */
#ifndef WORDS_H
#define WORDS_H

#include "idem.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

// Of a field: as the call is the n-th; or there is none.
#define AUTO UINT32_MAX
#define NONE (UINT32_MAX - 1)
enum { LEN_MAX = 65535 };

typedef struct call {
    char     what;
    const char *name;           // the key, as text
    size_t   name_len;
    uint32_t key, ms;
    uint32_t payload, lease, retention, age, reserve, buffer;
    uint32_t len, code, state, failed, confirm, echo, takes, back, keep;
    uint32_t n, at, most, how, forever, tear;
    uint32_t old, null, both, called, late, script, within;
    uint32_t answers;           // that it may have: bits by answer_names; 0:
                                // none is given
} call;

// What a name stands for, where no letter is.
enum { WAIT = 1, OPEN, CLOSE, REOPEN, KILL, SECRET, SCRIPT, AGAIN, FIRST, MISUSE,
       FULL };

static const struct { const char *name; char what; } call_names[] = {
    { "wait", WAIT }, { "open", OPEN }, { "close", CLOSE },
    { "reopen", REOPEN }, { "kill", KILL }, { "secret", SECRET }, { "script", SCRIPT },
    { "again", AGAIN }, { "first", FIRST }, { "misuse", MISUSE },
    { "full", FULL }, { "cut", '*' }, { "fail", '%' }, { "works", 'w' },
    { "lost", 'l' }, { "evicted", 'y' }, { "rotate", 'k' }, { "note", 'z' },
    { "damage", 'b' }, { "restore", 'h' }, { "unjudged", 'x' },
    { "format", 'i' }, { "rotated", 'V' }, { "untouched", '=' },
    { "loss", 'u' }, { "dead", 'r' }, { "uncertain", 'q' },
};

// A word that sets a field, ",len=7"; or alone, ",confirm".
typedef struct setting {
    const char *name;
    size_t      at, size;
    uint32_t    alone;          // its value then
    uint32_t    otherwise;      // if it is not there; but ms is 1 in a line
    const char *also;           // modes that follow from it
} setting;

#define FIELD(name) #name, offsetof(call, name), sizeof(uint32_t)

static const setting fields[] = {
    { FIELD(ms), 0, 0, "" }, { FIELD(payload), 1, 0, "" },
    { FIELD(lease), IDEM_LEASE_NONE, 0, "" },
    { FIELD(retention), IDEM_RETENTION_MAX, 0, "" }, { FIELD(age), 1, 0, "" },
    { FIELD(reserve), 1, 0, "" }, { FIELD(buffer), 0, LEN_MAX, "" },
    { FIELD(len), 0, AUTO, "" }, { FIELD(code), 0, AUTO, "" },
    { FIELD(state), AUTO, NONE, "" }, { FIELD(failed), 1, 0, "" },
    { FIELD(confirm), 1, 0, "" }, { FIELD(echo), 1, 0, "" },
    { FIELD(takes), 1, 0, "" }, { FIELD(back), 1, 0, "" },
    { FIELD(keep), 1, 0, "" },
    { FIELD(n), 1, 0, "" }, { FIELD(at), 0, 0, "" },
    { FIELD(most), 0, 100, "" }, { FIELD(how), 0, 0, "" },
    { FIELD(forever), 1, 0, "" }, { FIELD(tear), 0, 0, "" },
    { FIELD(old), 1, 0, "" }, { FIELD(null), 1, 0, "" },
    { FIELD(both), 1, 0, "" }, { FIELD(called), 1, 0, "" },
    { FIELD(late), 1, 0, "" }, { FIELD(script), 1, 0, "" },
    { FIELD(within), 1, NONE, "" },
};

static inline uint32_t *call_field(call *c, size_t field)
{
    return (uint32_t *)(void *)((char *)c + fields[field].at);
}

/* Reads a number; or of "1-9/20" one of these, by chance. */
static inline uint32_t call_number(const char **at, uint32_t (*pick)(uint32_t))
{
    const char *one = *at;
    uint32_t count = 1, first, last;
    char *end;

    for (; **at && strchr("0123456789-/", **at); (*at)++)
        count += **at == '/';
    for (count = count > 1 ? pick(count) : 0; count > 0; count--)
        one = strchr(one, '/') + 1;
    first = last = (uint32_t)strtoul(one, &end, 10);
    if (*end == '-')
        last = (uint32_t)strtoul(end + 1, NULL, 10);
    return first < last ? first + pick(last - first + 1) : first;
}

/* Sets a field of `of` by one of these words, and passes it; or NULL. */
static inline const setting *
call_read_setting(const setting *words, size_t count, void *of, const char **at,
                  uint32_t (*pick)(uint32_t))
{
    size_t len = strcspn(*at, "=,:/ ");

    for (const setting *w = words; w < words + count; w++) {
        void *field = (char *)of + w->at;
        uint32_t value = w->alone;
        if (strlen(w->name) != len || strncmp(*at, w->name, len))
            continue;
        *at += len;
        if (**at == '=') {
            ++*at;
            value = call_number(at, pick);
        }
        if (w->size == 1)
            *(uint8_t *)field = (uint8_t)value;
        else if (w->size == 2)
            *(uint16_t *)field = (uint16_t)value;
        else
            *(uint32_t *)field = value;
        return w;
    }
    return NULL;
}

/* ------------------------------------------------------------- >>answers */

enum { ANY_ANSWER = -1000 };

static const struct { const char *name; int answer; } answer_names[] = {
    { "ok", IDEM_OK }, { "execute", IDEM_EXECUTE }, { "recover", IDEM_RECOVER },
    { "uncertain", IDEM_UNCERTAIN }, { "done", IDEM_DONE },
    { "replay", IDEM_REPLAY }, { "busy", IDEM_BUSY },
    { "mismatch", IDEM_MISMATCH }, { "exhausted", IDEM_EXHAUSTED },
    { "old", IDEM_TOO_OLD }, { "released", IDEM_RELEASED },
    { "full", IDEM_E_FULL }, { "fenced", IDEM_E_FENCED },
    { "none", IDEM_E_NOT_FOUND }, { "large", IDEM_E_TOO_LARGE },
    { "more", IDEM_MORE }, { "storage", IDEM_E_STORAGE },
    { "space", IDEM_E_SPACE }, { "format", IDEM_E_FORMAT },
    { "lock", IDEM_E_LOCK }, { "refused", IDEM_E_ARG }, { "any", ANY_ANSWER },
};

/* The name of an answer in a line. */
static inline const char *answer_name(int answer)
{
    size_t i = 0;

    while (answer_names[i].answer != answer && i + 1 < COUNT(answer_names))
        i++;
    return answer_names[i].name;
}

/* True if a line allows this answer; `otherwise` does if it states none. */
static inline int call_allows(const call *c, int answer, int otherwise)
{
    int allowed = !c->answers && (otherwise == answer ||
                                  otherwise == ANY_ANSWER);

    for (size_t i = 0; i < COUNT(answer_names); i++)
        allowed |= (c->answers >> i & 1) && (answer_names[i].answer == answer ||
                                answer_names[i].answer == ANY_ANSWER);
    return allowed;
}

/* ------------------------------------------------------------- >>reading */

/* A call with defaults, but for its kind and key. */
static inline call call_of(char what, uint32_t key)
{
    call c;

    c.what = what;
    c.name = "";
    c.name_len = 0;
    c.key = key;
    c.answers = 0;
    for (size_t i = 0; i < COUNT(fields); i++)
        *call_field(&c, i) = fields[i].otherwise;
    return c;
}

/* What the short letters stand for. */
static inline call call_of_letter(char letter)
{
    call c = call_of(letter, 0);

    if (letter && strchr("FZSOQI", letter))
        c.what = 'C';
    switch (letter) {
    case 'W': c.what = 'B'; c.payload = 1; break;
    case 'F': c.failed = 1; break;
    case 'Z': c.len = 0; break;
    case 'O': c.confirm = 1; break;
    case 'Q': c.confirm = 1; c.state = AUTO; break;
    case 'S': c.state = AUTO; break;
    case 'I': c.echo = 1; break;
    case 'E': c.n = AUTO; break;
    }
    c.ms = letter > FULL && !strchr("lzbV=xuyrqpi", letter);
    return c;
}

/* A word that cannot be read, of whoever wrote it. */
static inline void call_unreadable(const char *at)
{
    fprintf(stderr, "not a word of tests/model/words.h: %s\n", at);
    exit(2);
}

/* Reads ":busy/fenced"; returns the rest. */
static inline const char *call_read_answers(call *c, const char *at)
{
    while (*at == (c->answers ? '/' : ':')) {
        size_t len = strcspn(++at, "/ ");
        uint32_t one = 0;
        for (uint32_t i = 0; i < COUNT(answer_names); i++)
            if (strlen(answer_names[i].name) == len &&
                !strncmp(at, answer_names[i].name, len))
                one = UINT32_C(1) << i;
        if (!one)
            call_unreadable(at);
        c->answers |= one;
        at += len;
    }
    return at;
}

/* Reads the letter, or the name, that a word begins with. */
static inline call call_read_what(const char **at)
{
    size_t len = strspn(*at, "abcdefghijklmnopqrstuvwxyz");
    call c;

    for (size_t i = 0; i < COUNT(call_names); i++)
        if (strlen(call_names[i].name) == len &&
            !strncmp(*at, call_names[i].name, len)) {
            *at += len;
            return call_of_letter(call_names[i].what);
        }
    c = call_of_letter(**at);
    for (size_t i = 0; i < COUNT(call_names); i++)
        if (call_names[i].what == **at)
            call_unreadable(*at);       // it has a name
    *at += **at != 0;
    return c;
}

/* Reads the next word of a line, with a key that may be any text; what 0: there
   is none. */
static inline call call_read_any(const char **line)
{
    const char *at = *line + strspn(*line, " ");
    call c = call_read_what(&at);

    c.name = at;
    at += c.name_len = strcspn(at, ",: ");
    while (*at == ',') {
        at++;
        if (!call_read_setting(fields, COUNT(fields), &c, &at, NULL))
            call_unreadable(at);
    }
    at = call_read_answers(&c, at);
    if (*at && *at != ' ')
        call_unreadable(at);
    *line = at;
    return c;
}

/* .. with a key that is a number, or a to z for 0 to 25. */
static inline call call_read(const char **line)
{
    call c = call_read_any(line);
    char *end = (char *)c.name + c.name_len;

    if (c.name_len == 1 && *c.name >= 'a' && *c.name <= 'z')
        c.key = (uint32_t)(*c.name - 'a');
    else if (c.name_len)
        c.key = (uint32_t)strtoul(c.name, &end, 10);
    if (end != c.name + c.name_len)
        call_unreadable(c.name);
    return c;
}

enum { CALL_ID = 48 };

/* The request for the scope and the key, or the number, that a word names, and
   which are written into `id`, one after the other: ~ is a NUL in them, ^ a
   colon.  A word without a scope means `scope`. */
static inline idem_request call_names_key(const call *c, const char *scope,
                                          char id[CALL_ID])
{
    const char *end = c->name + c->name_len;
    const char *dot = (const char *)memchr(c->name, '.', c->name_len);
    const char *key = dot ? dot + 1 : c->name;
    const char *number = (const char *)memchr(key, '#', (size_t)(end - key));
    size_t scope_len = dot ? (size_t)(dot - c->name) : strlen(scope);
    size_t len = (size_t)snprintf(id, CALL_ID, "%.*s%.*s", (int)scope_len,
                                  dot ? c->name : scope,
                                  number ? 0 : (int)(end - key), key);
    idem_request rq = { .scope = id, .scope_len = scope_len,
                        .key = id + scope_len, .key_len = len - scope_len };

    for (size_t i = 0; i < len; i++)
        id[i] = (char)(id[i] == '~' ? 0 : id[i] == '^' ? ':' : id[i]);
    if (number) {
        rq.epoch = (uint32_t)strtoul(key, NULL, 0);
        rq.sequence = (uint32_t)strtoul(number + 1, NULL, 0);
    }
    return rq;
}

#endif /* WORDS_H */
