/* SPDX-License-Identifier: 0BSD */
/* The clients of an HTTP server, each known by its bearer token: each has its
   own keys.  Behind a proxy that authenticates, or with TLS client
   certificates, take the name from there.  Include it after journal.h. */
#ifndef CLIENTS_H
#define CLIENTS_H

#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { CLIENTS = 32, CLIENT_NAME = 32, CLIENT_TOKEN = 64 };
enum { CLIENT_TOKEN_MIN = 32 };

typedef struct clients {
    int count;
    char name[CLIENTS][CLIENT_NAME + 1], token[CLIENTS][CLIENT_TOKEN + 1];
} clients;

/* Reads lines "NAME TOKEN"; ends the program with a reason if it cannot.  What
   is too long is refused: the rest of a name must not be taken for a token.  So
   is a line that begins with "#": its token would go on being good; and a token
   that two lines have: under the other name a repeat is executed again. */
static inline void clients_read(clients *all, const char *path)
{
    FILE *f = fopen(path, "r");
    char line[CLIENT_NAME + CLIENT_TOKEN + 8], rest;
    int i;

    if (!f)
        journal_die(path, strerror(errno));
    for (all->count = 0; fgets(line, sizeof line, f); all->count++) {
        char name[CLIENT_NAME + 1], token[CLIENT_TOKEN + 1];
        if (all->count == CLIENTS || (!strchr(line, '\n') && !feof(f)) ||
            sscanf(line, " %32[^# \n]%*[ ]%64s %c", name, token, &rest) != 2)
            journal_die(path, "up to 32 lines \"NAME TOKEN\", of at most 32 "
                              "and 64 characters, and no comments");
        if (strlen(token) < CLIENT_TOKEN_MIN)
            journal_die(path, "a token has 32 characters at least");
        for (i = 0; i < all->count; i++)
            if (!strcmp(token, all->token[i]))
                journal_die(path, "two lines have the same token");
        strcpy(all->name[all->count], name);
        strcpy(all->token[all->count], token);
    }
    if (ferror(f) || all->count == 0)
        journal_die(path, "has no line \"NAME TOKEN\"");
    fclose(f);
}

/* True if two tokens are the same; takes as long for any two. */
static inline int clients_same(const char *a, const char *b)
{
    char x[CLIENT_TOKEN + 1] = "", y[CLIENT_TOKEN + 1] = "";
    unsigned differ = 0;
    size_t i;

    if (strlen(a) > CLIENT_TOKEN)
        return 0;
    strcpy(x, a);
    strcpy(y, b);
    for (i = 0; i <= CLIENT_TOKEN; i++)
        differ |= (unsigned)(x[i] ^ y[i]);
    return differ == 0;
}

/* The name of the client with the token in an Authorization field; NULL: none,
   or there is no such field. */
static inline const char *clients_find(const clients *all, const char *value)
{
    const char *found = NULL;
    int i;

    if (!value || strncasecmp(value, "Bearer ", 7) != 0)
        return NULL;
    for (i = 0; i < all->count; i++)
        if (clients_same(value + 7, all->token[i]))
            found = all->name[i];
    return found;
}

#endif
