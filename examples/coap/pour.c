/* SPDX-License-Identifier: 0BSD */
/* cc -I../.. pour.c -lcoap-3-notls -o pour && ./pour 5683 2026-11-20/1 5
 *
 * The sender's half of coapd: sends a command, and the same command again under
 * the same key, until the outcome is known.  idem_retry decides when to send
 * again, and when to stop.  Each time is a new request to libcoap, with its own
 * message id.  libcoap repeats that message as in RFC 7252, but not after it
 * was acknowledged, and not after a restart.
 *
 * A key's deadline and age begin anew at each start: start it again with the
 * same key within 11 hours of the first time: it asks for 12 hours from then,
 * and coapd remembers an outcome for 24 (python/outbox.py takes care of that).
 *
 * Prints key, ml, response code and text.  Exit status: 0 it poured, 1 it did
 * not or nobody knows, 2 it could not run.
 */
#define IDEM_STATIC
#define IDEM_IMPLEMENTATION
#define _POSIX_C_SOURCE 200809L
#include "idem.h"
#include "../clock.h"
#include "../random.h"

#include <coap3/coap.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { OPTION_KEY = 65001, WAIT_S = 3, KEY_MAX = 32, ML_MAX = 7 };
enum { DEADLINE_MS = 43200000 };

static const char help[] =
    "pour PORT KEY ML ...         or lines \"KEY ML\" on standard input\n"
    "asks coapd at 127.0.0.1 to pour, and repeats that until it is answered\n";

typedef struct sender {
    coap_context_t *context;
    coap_session_t *session;
    unsigned seed;
    // The command under way
    const char *key, *ml;
    uint32_t times;             // how often it was sent
    long long first_ms;
    uint64_t token;             // of the message that was sent last
    // The answer
    int      answered;
    unsigned code;
    uint32_t retry_after_ms;
    char     text[64];
} sender;

static sender the;              // a libcoap handler has no argument of ours

static void die(const char *what)
{
    fprintf(stderr, "pour: %s\n", what);
    exit(2);
}

/* An answer counts if it is to the request that was sent last. */
static coap_response_t on_response(coap_session_t *session,
                                   const coap_pdu_t *sent,
                                   const coap_pdu_t *received,
                                   const coap_mid_t mid)
{
    coap_bin_const_t token = coap_pdu_get_token(received);
    coap_opt_iterator_t at;
    const coap_opt_t *age;
    const uint8_t *data = NULL;
    size_t len = 0;

    (void)session, (void)sent, (void)mid;
    if (token.length != sizeof the.token ||
        memcmp(token.s, &the.token, sizeof the.token) != 0)
        return COAP_RESPONSE_OK;
    the.answered = 1;
    the.code = (unsigned)coap_pdu_get_code(received);
    the.retry_after_ms = 0;
    age = coap_check_option(received, COAP_OPTION_MAXAGE, &at);
    if (age) {
        unsigned s = coap_decode_var_bytes(coap_opt_value(age),
                                           coap_opt_length(age));
        the.retry_after_ms = s < UINT32_MAX / 1000 ? 1000 * s : UINT32_MAX - 1;
    }
    coap_get_data(received, &len, &data);
    snprintf(the.text, sizeof the.text, "%.*s", (int)len,
             data ? (const char *)data : "");
    for (char *c = the.text; *c; c++)
        *c = *c < ' ' || *c > '~' ? '.' : *c;
    return COAP_RESPONSE_OK;
}

/* The answer, as a result of idem.h.  5.00 is final: the command was
   interrupted, or all of its attempts were. */
static int result_of(void)
{
    if (!the.answered)
        return IDEM_SILENCE;
    switch (the.code) {
    case COAP_RESPONSE_CODE_CHANGED:                return IDEM_OK;
    case COAP_RESPONSE_CODE_UNPROCESSABLE:          return IDEM_MISMATCH;
    case COAP_RESPONSE_CODE_PRECONDITION_FAILED:    return IDEM_TOO_OLD;
    case COAP_RESPONSE_CODE_INTERNAL_ERROR:         return IDEM_EXHAUSTED;
    case COAP_RESPONSE_CODE_SERVICE_UNAVAILABLE:    return IDEM_BUSY;
    default:                                        return IDEM_E_ARG;
    }
}

static long long elapsed_ms(void)
{
    return clock_ms() - the.first_ms;
}

/* Sends the command once more; 0 if it is too late for that, though it was not
   when it was decided: a machine may sleep in between.  Each time has its own
   token: a late answer to an earlier one is not taken for one to this.  (The
   first is random: a process before this one may have had the same port.)  And
   it is not confirmable: libcoap sends a confirmable one again by itself, for a
   minute and more, keeps the next ones until then, and sends them with the age
   that they had, whatever the deadline. */
static int ask(void)
{
    coap_pdu_t *pdu;
    char age[24];

    the.answered = 0;
    the.code = 0;
    if (elapsed_ms() > DEADLINE_MS)
        return 0;
    the.times++;
    the.token++;
    snprintf(age, sizeof age, "age=%lld", elapsed_ms() / 1000);
    pdu = coap_new_pdu(COAP_MESSAGE_NON, COAP_REQUEST_CODE_POST, the.session);
    if (!pdu ||
        !coap_add_token(pdu, sizeof the.token, (uint8_t *)&the.token) ||
        !coap_add_option(pdu, COAP_OPTION_URI_PATH, 4,
                         (const uint8_t *)"pour") ||
        !coap_add_option(pdu, COAP_OPTION_URI_QUERY, strlen(age),
                         (const uint8_t *)age) ||
        !coap_add_option(pdu, OPTION_KEY, strlen(the.key),
                         (const uint8_t *)the.key) ||
        !coap_add_data(pdu, strlen(the.ml), (const uint8_t *)the.ml))
        die("the command does not fit into a message");
    coap_send(the.session, pdu);
    return 1;
}

/* What to do next; *delay_ms from now, if it is IDEM_RESEND. */
static int decide(uint32_t *delay_ms)
{
    static const idem_patience patience = { .base_ms = 500, .cap_ms = 4000,
                                            .deadline_ms = DEADLINE_MS };
    idem_sent sent = { 0 };

    sent.times = the.times;
    sent.elapsed_ms = clock_elapsed(elapsed_ms());
    sent.retry_after_ms = the.answered ? the.retry_after_ms : 0;
    sent.random = (uint32_t)rand_r(&the.seed) << 16 ^
                  (uint32_t)rand_r(&the.seed);
    return idem_retry(delay_ms, &patience, &sent, result_of());
}

static void process_until(long long end_ms, int until_answered)
{
    while (clock_ms() < end_ms && !(until_answered && the.answered))
        if (coap_io_process(the.context, 20) < 0)
            die("coap_io_process failed");
}

/* Sends a command until its outcome is known, or it is too late for one; true
   if it was poured. */
static int command(const char *key, const char *ml)
{
    uint32_t delay_ms = 0;
    int verdict;

    // What is truncated would be another command.
    if (!*key || strlen(key) > KEY_MAX || strlen(ml) > ML_MAX)
        die("KEY has 1 to 32 bytes, ML 1 to 1000");
    the.key = key;
    the.ml = ml;
    the.first_ms = clock_ms();
    the.times = 0;
    do {
        process_until(clock_ms() + delay_ms, 0);
        if (ask())
            process_until(clock_ms() + 1000 * WAIT_S, 1);
        verdict = decide(&delay_ms);
    } while (verdict == IDEM_RESEND);
    if (verdict == IDEM_GIVE_UP)
        snprintf(the.text, sizeof the.text,
                 "given up: nobody knows whether it was poured");
    printf("%s %s %u.%02u %s\n", key, ml, the.code >> 5, the.code & 31,
           the.text);
    if (fflush(stdout) != 0 || ferror(stdout))
        die("the answer cannot be printed");
    return verdict == IDEM_DONE;
}

static void start(int port)
{
    coap_address_t at;

    if (!random_fill(&the.token, sizeof the.token))
        die("/dev/urandom: no random bytes");
    coap_startup();
    coap_set_log_level(LOG_ERR);
    coap_address_init(&at);
    at.addr.sin.sin_family = AF_INET;
    at.addr.sin.sin_port = htons((uint16_t)port);
    at.addr.sin.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    at.size = sizeof at.addr.sin;
    the.context = coap_new_context(NULL);
    if (the.context)
        the.session = coap_new_client_session(the.context, NULL, &at,
                                              COAP_PROTO_UDP);
    if (!the.session)
        die("cannot make a session with the server");
    coap_register_response_handler(the.context, on_response);
}

/* Runs the lines of standard input; true if all were poured. */
static int run_lines(void)
{
    char *line = NULL, *key, *ml;
    size_t size = 0;
    int all = 1;

    while (getline(&line, &size, stdin) > 0) {
        if (!strchr(line, '\n'))
            die("the last line has no newline: it may be incomplete");
        key = strtok(line, " \t\r\n");
        ml = key ? strtok(NULL, " \t\r\n") : NULL;
        if (key && (!ml || strtok(NULL, " \t\r\n")))
            die("a line is KEY ML");
        if (key)
            all &= command(key, ml);
    }
    if (!feof(stdin)) {                 // the rest is not known
        perror("pour: standard input");
        exit(2);
    }
    free(line);
    return all;
}

int main(int argc, char **argv)
{
    int all = 1;
    char *end;
    long port;

    if (argc < 2 || !strcmp(argv[1], "--help")) {
        fputs(help, argc < 2 ? stderr : stdout);
        return argc < 2 ? 2 : 0;
    }
    port = strtol(argv[1], &end, 10);
    if (*end || port < 1 || port > 65535 || argc % 2 != 0)
        die("give PORT KEY ML ...; see --help");
    the.seed = (unsigned)clock_ms() ^ (unsigned)getpid();
    start((int)port);
    if (argc == 2)
        all = run_lines();
    for (argv += 2; argv[0] && argv[1]; argv += 2)
        all &= command(argv[0], argv[1]);
    coap_session_release(the.session);
    coap_free_context(the.context);
    coap_cleanup();
    return !all;
}
