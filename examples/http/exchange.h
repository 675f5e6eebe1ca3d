/* SPDX-License-Identifier: 0BSD */
/* A request and its answer over HTTP, for httpd.c.  Include it after
   station.h. */
#ifndef EXCHANGE_H
#define EXCHANGE_H

#include <microhttpd.h>
#include <stdio.h>
#include <string.h>

enum { KEY_MAX = 96, BODY_MAX = 1024, RESPONSE_MAX = 200 };

/* A request, from its first header to its answer */
typedef struct exchange {
    char     body[BODY_MAX];
    size_t   body_len;
    int      has_come;          // 1: all of it
    const char *client;
    char     key[KEY_MAX], response[RESPONSE_MAX];
    idem_request request;
    idem_reply reply;
} exchange;

/* Sends status and text; `head` are further headers, each ending in \n. */
static inline enum MHD_Result exchange_respond(struct MHD_Connection *c,
                                               int status, const char *head,
                                               const char *text)
{
    struct MHD_Response *r = MHD_create_response_from_buffer(
        strlen(text), (void *)(uintptr_t)text, MHD_RESPMEM_MUST_COPY);
    char line[RESPONSE_MAX], *value;
    enum MHD_Result result;
    size_t len;

    for (; *head; head += len + 1) {
        len = strcspn(head, "\n");
        snprintf(line, sizeof line, "%.*s", (int)len, head);
        value = strchr(line, ':');
        *value = 0;
        MHD_add_response_header(r, line, value + 2);
    }
    if (station_stop)                   // the last one of this connection
        MHD_add_response_header(r, MHD_HTTP_HEADER_CONNECTION, "close");
    result = MHD_queue_response(c, (unsigned)status, r);
    MHD_destroy_response(r);
    return result;
}

/* Prints why a request was refused: RFC 9457, as the draft asks for. */
static inline enum MHD_Result exchange_refuse(struct MHD_Connection *c,
                                              int status,
                                              uint32_t retry_after_s,
                                              const char *why)
{
    char head[RESPONSE_MAX], text[RESPONSE_MAX], more[48] = "";

    if (retry_after_s)
        snprintf(more, sizeof more, "Retry-After: %lu\n",
                 (unsigned long)retry_after_s);
    if (status == MHD_HTTP_UNAUTHORIZED)
        snprintf(more, sizeof more, "WWW-Authenticate: Bearer\n");
    snprintf(head, sizeof head, "Content-Type: application/problem+json\n%s",
             more);
    snprintf(text, sizeof text, "{\"status\":%d,\"title\":\"%s\"}\n", status,
             why);
    return exchange_respond(c, status, head, text);
}

/* Sends a stored outcome: status is its code; headers, an empty line and body
   its response.  One that could not be recorded has none. */
static inline enum MHD_Result exchange_replay(struct MHD_Connection *c,
                                              const exchange *e)
{
    char head[RESPONSE_MAX + 1];
    char *body;

    memcpy(head, e->response, e->reply.response_len);
    head[e->reply.response_len] = 0;
    body = strstr(head, "\n\n");
    if (!body)
        return exchange_refuse(c, MHD_HTTP_INTERNAL_SERVER_ERROR, 0,
                               "executed, its outcome is not known");
    body[1] = 0;
    return exchange_respond(c, (int)e->reply.code, head, body + 2);
}

#endif
