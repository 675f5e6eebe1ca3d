/* SPDX-License-Identifier: 0BSD */
/* cc -I.. burst.c -o burst && ./burst 5684 burst.journal burst.log &
 * KEY=$(od -An -N16 -tx1 /dev/urandom | tr -d ' ')
 * printf '%s 5' "$KEY" | nc -u -w 1 127.0.0.1 5684
 *
 * A UDP server for Linux that takes up to 16 commands at a time.  They share
 * one begin, and three syncs instead of 48; only then all are answered:
 *
 *     begin all | sync | execute, sync the log | complete each | sync | answer
 *
 * A command is "KEY ML": 32 hexadecimal digits, and 1 to 1000.  Its effect is a
 * line in the log, which after a crash is there or not.  (An effect that can be
 * half done needs a line before it too, as in station/pump.h.)  The answer is
 * KEY and one of: "done" or "failed" with the outcome; "refused": the key was
 * used for another command; "retry": send the same again, as if there were no
 * answer (idem_retry).  An outcome is remembered for 24 hours: send nothing
 * later than 12 hours after the first time, which is idem_retry's deadline.  A
 * datagram that is not a command gets no answer: two servers could answer each
 * other for ever.
 *
 * The scope is the sender's address, not its port, which a restart changes.  It
 * is as secure as the network: whoever can send from an address uses its keys
 * and its quota.  A sender whose address changes (DHCP, NAT) is another one:
 * what it repeats is executed again.  With DTLS take the identity that the
 * sender has proved. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE             /* recvmmsg */
#endif
#define IDEM_FILE_STORAGE
#define IDEM_IMPLEMENTATION
#include "idem.h"
#include "station/station.h"

#include <arpa/inet.h>
#include <sys/socket.h>

enum { KEY_SIZE = 16, DIGITS = 2 * KEY_SIZE, COMMAND_MAX = DIGITS + 8 };

typedef struct command {
    struct sockaddr_in from;
    char    text[COMMAND_MAX];
    uint8_t key[KEY_SIZE];
    long    ml;
    int     found;                  // in the log
} command;

static station the = { .j = { .config = {
    .capacity = 20000, .senders = 20,
    .key_max = sizeof(struct in_addr) + KEY_SIZE, .response_max = STATION_TEXT,
    .quota = 1000,                  // in a day
    .durability = IDEM_BATCH } } };

// One burst
static struct mmsghdr messages[IDEM_MANY];
static command commands[IDEM_MANY];
static idem_request requests[IDEM_MANY];
static idem_reply replies[IDEM_MANY];
static int answers[IDEM_MANY];

/* Receives what is there, or waits for one if asked to; below 1: none.  (The
   socket has a time limit: recvmmsg's own works only when something comes.) */
static int receive(int fd, int wait)
{
    struct iovec parts[IDEM_MANY];
    int i, count;

    for (i = 0; i < IDEM_MANY; i++) {
        parts[i].iov_base = commands[i].text;
        parts[i].iov_len = COMMAND_MAX;
        messages[i].msg_hdr.msg_name = &commands[i].from;
        messages[i].msg_hdr.msg_namelen = sizeof commands[i].from;
        messages[i].msg_hdr.msg_iov = &parts[i];
        messages[i].msg_hdr.msg_iovlen = 1;
    }
    count = recvmmsg(fd, messages, IDEM_MANY,
                     wait ? MSG_WAITFORONE : MSG_DONTWAIT, NULL);
    if (count < 0 && errno != EAGAIN && errno != EINTR)
        journal_die("recvmmsg", strerror(errno));
    return count;
}

/* Makes a request of a message; one without a key, which is IDEM_E_ARG, if that
   is no command. */
static void read_command(command *c, idem_request *r, const struct mmsghdr *m)
{
    size_t key_len = KEY_SIZE, ml_at = DIGITS + 1;

    memset(r, 0, sizeof *r);
    if (m->msg_len < ml_at || (m->msg_hdr.msg_flags & MSG_TRUNC) ||
        c->text[DIGITS] != ' ' ||
        idem_key_hex(c->key, &key_len, c->text, DIGITS) != IDEM_OK)
        return;
    c->ml = pump_amount(c->text + ml_at, m->msg_len - ml_at);
    r->scope = &c->from.sin_addr;
    r->scope_len = sizeof c->from.sin_addr;
    r->key = c->key;
    r->key_len = c->ml ? key_len : 0;
    r->payload = c->text + ml_at;
    r->payload_len = m->msg_len - ml_at;
}

/* Executes what was granted and is not in the log, by one durable write, and
   records the outcomes: a failure if the log has half a line, or another ML. */
static void execute(int count)
{
    static char lines[IDEM_MANY * PUMP_LINE];
    char id[PUMP_ID], *end = lines;
    int i;

    for (i = 0; i < count; i++)
        if (station_granted(answers[i])) {
            command *c = &commands[i];
            pump_id(id, &requests[i]);
            c->found = pump_look(&the.p, answers[i], id, c->ml);
            if (c->found == PUMP_MAY_POUR)
                end += pump_poured(end, id, c->ml);
        }
    if (end > lines)
        pump_write(&the.p, lines);
    for (i = 0; i < count; i++)
        if (station_granted(answers[i])) {
            int failed = commands[i].found == PUMP_LOOK_AT_THE_CUP;
            char text[STATION_TEXT] = "failed look into the log";
            if (!failed)
                snprintf(text, sizeof text, "done %ld ml", commands[i].ml);
            station_complete(&the, &replies[i].claim, 0, failed, text);
            answers[i] = IDEM_DONE;
        }
}

/* Sends an answer; one that cannot be sent is lost, as on the way. */
static void answer(int fd, const command *c, int result, const idem_claim *done)
{
    const char *how = result == IDEM_MISMATCH    ? "refused"
                      : result == IDEM_EXHAUSTED ? "failed look into the log:"
                                                 : "retry";
    char all[DIGITS + 100], text[STATION_TEXT];
    size_t len = sizeof text;       // as much of an outcome as fits

    if ((result == IDEM_DONE || result == IDEM_REPLAY) &&
        idem_response(&the.j.table, text, &len, done, 0) == IDEM_OK)
        snprintf(all, sizeof all, "%.*s %.*s", DIGITS, c->text, (int)len, text);
    else
        snprintf(all, sizeof all, "%.*s %s %s", DIGITS, c->text,
                 how, idem_text(result));
    sendto(fd, all, strlen(all), MSG_DONTWAIT,
           (const struct sockaddr *)&c->from, sizeof c->from);
}

/* Answers wait for the last sync, those of replays too: their records may be of
   a process before this one, which was killed before it synced them. */
static void serve(int fd, int count)
{
    int i, asked = 0, granted = 0;

    for (i = 0; i < count; i++)
        read_command(&commands[i], &requests[i], &messages[i]);
    journal_need(&the.j, idem_begin_many(&the.j.table, answers, replies,
                                         requests, (size_t)count,
                                         journal_millis()));
    for (i = 0; i < count; i++) {
        if (answers[i] == IDEM_E_STORAGE)
            journal_need(&the.j, answers[i]);
        asked += answers[i] != IDEM_E_ARG;
        granted += station_granted(answers[i]);
    }
    if (granted) {
        journal_need(&the.j, idem_sync(&the.j.table));
        execute(count);
    }
    if (asked)
        journal_need(&the.j, idem_sync(&the.j.table));
    for (i = 0; i < count; i++)
        if (answers[i] != IDEM_E_ARG)
            answer(fd, &commands[i], answers[i], &replies[i].claim);
}

int main(int argc, char **argv)
{
    int help = argc == 2 && strcmp(argv[1], "--help") == 0, more = 0, fd;
    struct sockaddr_in at = { .sin_family = AF_INET };
    struct timeval wait = { 0, 100000 };

    if (argc != 4) {
        fputs("burst PORT JOURNAL LOG\nexecutes commands that arrive over UDP "
              "at 127.0.0.1, each once\n", help ? stdout : stderr);
        return help ? 0 : 2;
    }
    at.sin_port = htons((uint16_t)station_number("PORT", argv[1], 65535));
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    the.j.path = argv[2];
    the.p.path = argv[3];
    station_open(&the);
    fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof at) != 0 ||
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait) != 0)
        journal_die(argv[1], strerror(errno));
    station_ready();
    while (!station_stop) {         // idle work while nothing has come
        int count = receive(fd, !more);
        if (count > 0)
            serve(fd, count);
        else
            more = idem_maintain(&the.j.table, journal_millis()) == IDEM_MORE;
    }
    station_close(&the);
    return 0;
}
