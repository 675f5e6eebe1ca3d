/* SPDX-License-Identifier: 0BSD */
/* Takes a command out of a CoAP request: scope, key, fingerprint.  For coapd.c;
   include it after idem.h. */
#ifndef REQUEST_H
#define REQUEST_H

#include <coap3/coap.h>
#include <string.h>

// The option with the sender's key.  Critical, as its number is odd: a server
// that does not know it answers 4.02, and executes nothing.  Numbers from 65000
// on are for experiments (RFC 7252, 12.2).
enum { OPTION_KEY = 65001 };
enum { COMMAND_KEY = 32, COMMAND_SCOPE = 64, COMMAND_RESPONSE = 32 };
enum { COMMAND_KEY_MAX = COMMAND_SCOPE + COMMAND_KEY };
// A message id names one message for as long as this (RFC 7252, 4.8.2).
enum { EXCHANGE_LIFETIME_MS = 247000 };

/* A request, taken out of its message. */
typedef struct command {
    char     scope[COMMAND_SCOPE];
    uint8_t  key[COMMAND_KEY_MAX];
    char     response[COMMAND_RESPONSE];
    int      no_key;            // 1: the key is message id and token
    idem_request request;
} command;

/* The sender's address.  Its port is part of the key, where that is a message
   id, and the scope then ends in a colon.  So an address has two scopes, and
   two quotas; with the port in the scope one host would take the place of all
   senders. */
static inline void command_read_scope(command *c,
                                      const coap_session_t *session)
{
    const coap_address_t *remote = coap_session_get_addr_remote(session);
    size_t len = coap_print_addr(remote, (unsigned char *)c->scope,
                                 sizeof c->scope);
    size_t port = len;

    while (port > 0 && c->scope[--port] != ':')
        ;
    c->request.scope = c->scope;
    c->request.scope_len = c->no_key ? port + 1 : port;
    if (c->no_key) {
        memcpy(c->key + c->request.key_len, c->scope + port, len - port);
        c->request.key_len += len - port;
    }
}

/* How long a message may be on its way: MAX_LATENCY of RFC 7252 */
#define LATENCY_S 100u

/* "age=SECONDS": when it was sent, how long ago it was first sent.  An age must
   not be too small: so it is rounded up, and the message may have been on its
   way.  0: it is something else, or a second one. */
static inline int command_read_query(command *c, const uint8_t *text,
                                     size_t len)
{
    uint32_t s = 0;
    size_t i;

    if (c->request.age_ms || len < 5 || len > 11 ||
        memcmp(text, "age=", 4) != 0)
        return 0;
    for (i = 4; i < len; i++) {
        if (text[i] < '0' || text[i] > '9')
            return 0;
        s = s * 10 + (uint32_t)(text[i] - '0');
    }
    s += 1 + LATENCY_S;
    c->request.age_ms = s > IDEM_RETENTION_MAX / 1000 ? IDEM_RETENTION_MAX
                                                      : s * 1000;
    return 1;
}

/* Message id and token: all that a request without a key of its own has.  0: an
   extended token (RFC 8974) is longer than anything that we keep. */
static inline int command_read_message_id(command *c, coap_session_t *session,
                                          const coap_pdu_t *message)
{
    coap_bin_const_t token = coap_pdu_get_token(message);
    const coap_async_t *async = coap_find_async(session, token);
    unsigned mid = (unsigned)coap_pdu_get_mid(message);

    if (token.length > 8)
        return 0;
    if (async)
        mid = (unsigned)(uintptr_t)coap_async_get_app_data(async);
    c->key[0] = (uint8_t)(mid >> 8);
    c->key[1] = (uint8_t)mid;
    if (token.length)
        memcpy(c->key + 2, token.s, token.length);
    c->request.key_len = 2 + token.length;
    c->request.retention_ms = EXCHANGE_LIFETIME_MS;
    c->no_key = 1;
    return 1;
}

/* Takes what it understands out of the options; 0 if that is not all: a second
   key, an empty or too long one, a block of a longer payload, a condition,
   two ages, other queries. */
static inline int command_read_options(command *c, const coap_pdu_t *message)
{
    coap_opt_iterator_t at;
    const coap_opt_t *option;

    coap_option_iterator_init(message, &at, COAP_OPT_ALL);
    while ((option = coap_option_next(&at)) != NULL) {
        size_t len = coap_opt_length(option);
        if (at.number == COAP_OPTION_BLOCK1 ||
            at.number == COAP_OPTION_IF_MATCH ||
            at.number == COAP_OPTION_IF_NONE_MATCH)
            return 0;
        if (at.number == COAP_OPTION_URI_QUERY &&
            !command_read_query(c, coap_opt_value(option), len))
            return 0;
        if (at.number != OPTION_KEY)
            continue;
        if (c->request.key_len || len == 0 || len > COMMAND_KEY)
            return 0;
        memcpy(c->key, coap_opt_value(option), len);
        c->request.key_len = len;
    }
    return 1;
}

/* Has libcoap call the handler again later, after coap_async_trigger.  The
   request has another message id then, which libcoap made up: so the first one
   is kept. */
static inline coap_async_t *command_wait(coap_session_t *session,
                                         const coap_pdu_t *message)
{
    coap_async_t *async = coap_register_async(session, message, 0);

    if (async)
        coap_async_set_app_data(
            async, (void *)(uintptr_t)(unsigned)coap_pdu_get_mid(message));
    return async;
}

/* All that makes two requests the same command: method, path, payload. */
static inline void command_make_fingerprint(command *c,
                                            const idem_config *config,
                                            const coap_pdu_t *message,
                                            const coap_str_const_t *path)
{
    idem_fingerprint_state state;
    const uint8_t *payload = NULL;
    size_t len = 0;
    uint8_t head[2];

    coap_get_data(message, &len, &payload);
    idem_fingerprint_init(&state, config);
    head[0] = (uint8_t)coap_pdu_get_code(message);
    head[1] = (uint8_t)path->length;
    idem_fingerprint_update(&state, head, sizeof head);
    idem_fingerprint_update(&state, path->s, path->length);
    idem_fingerprint_update(&state, payload, len);
    c->request.fingerprint = idem_fingerprint_final(&state);
    c->request.has_fingerprint = 1;
    c->request.payload = payload;
    c->request.payload_len = len;
}

/* 0: answer 4.00, and execute nothing. */
static inline int command_read(command *c, const idem_config *config,
                               coap_resource_t *resource,
                               coap_session_t *session,
                               const coap_pdu_t *message)
{
    memset(c, 0, sizeof *c);
    if (!command_read_options(c, message))
        return 0;
    if (c->request.key_len == 0 &&
        !command_read_message_id(c, session, message))
        return 0;
    c->request.key = c->key;
    command_read_scope(c, session);
    command_make_fingerprint(c, config, message,
                             coap_resource_get_uri_path(resource));
    c->request.lease_ms = IDEM_LEASE_NONE;  // the pump runs as long as we do
    c->request.buffer = c->response;
    c->request.buffer_size = sizeof c->response;
    return 1;
}

#endif
