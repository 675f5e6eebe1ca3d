/* SPDX-License-Identifier: 0BSD */
/* The clients of an HTTP server, by the bearer token that each has: a client's
   keys are its own.  Behind a proxy that authenticates, or with TLS client
   certificates, take the name from there.  Include it after journal.h. */
#ifndef CLIENTS_H
#define CLIENTS_H

#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { CLIENTS = 32, CLIENT_NAME = 32, CLIENT_TOKEN = 64 };

typedef struct clients {
    int count;
    char name[CLIENTS][CLIENT_NAME + 1], token[CLIENTS][CLIENT_TOKEN + 1];
} clients;

/* Reads lines "NAME TOKEN"; ends the program with a reason if it cannot. */
static inline void clients_read(clients *all, const char *path)
{
    FILE *f = fopen(path, "r");
    char rest[2];
    int n = 0;

    if (!f)
        journal_die(path, strerror(errno));
    while (n < CLIENTS && fscanf(f, "%32s %64s", all->name[n],
                                 all->token[n]) == 2)
        if (strlen(all->token[n++]) < 32)
            journal_die(path, "a token has 32 characters at least");
    if (n == 0 || fscanf(f, "%1s", rest) != EOF || ferror(f))
        journal_die(path, "1 to 32 lines \"NAME TOKEN\"");
    fclose(f);
    all->count = n;
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
