/* SPDX-License-Identifier: 0BSD */
/* A pump, its journal and its log, started from the command line.  The servers
 * in coap/, http/ and modbus/ share it.  Include it after idem.h. */
#ifndef STATION_H
#define STATION_H

#include "pump.h"
#include <signal.h>

enum { STATION_TEXT = 32 };     // bytes of the longest text of an outcome

static const char station_help[] =
    "  --port P         on 127.0.0.1\n"
    "  --journal FILE   the journal; made at the first start, as is\n"
    "                   FILE.secret\n"
    "  --log FILE       log of the pours\n"
    "  --ml-ms MS       how long the pump takes for 1 ml (0)\n";

typedef struct station {
    journal  j;
    pump     p;
    int      port;
} station;

static volatile sig_atomic_t station_stop;

static inline void station_on_signal(int number)
{
    (void)number;
    station_stop = 1;
}

/* A number of an option; ends the program if it is none, or over max. */
static inline uint32_t station_number(const char *option, const char *text,
                                      unsigned long max)
{
    char *end;
    unsigned long number = strtoul(text, &end, 10);

    if (*text < '0' || *text > '9' || *end || number > max)
        journal_die(option, "not a number, or too large; see --help");
    return (uint32_t)number;
}

/* Takes the options above and one more; *value is its default. */
static inline void station_parse(station *s, char **argv, const char *help,
                                 const char *option, const char **value)
{
    for (argv++; *argv; argv++) {
        const char *name = *argv;
        if (!strcmp(name, "--help")) {
            printf("%s%s", help, station_help);
            exit(0);
        }
        if (!*++argv)
            journal_die(name, "no value; see --help");
        if (!strcmp(name, "--port"))
            s->port = (int)station_number(name, *argv, 65535);
        else if (!strcmp(name, "--journal"))
            s->j.path = *argv;
        else if (!strcmp(name, "--log"))
            s->p.path = *argv;
        else if (!strcmp(name, "--ml-ms"))
            s->p.ml_ms = station_number(name, *argv, 1000000);
        else if (option && !strcmp(name, option))
            *value = *argv;
        else
            journal_die(name, "no such option; see --help");
    }
}

/* Opens journal and log.  The configuration is the caller's, but for what every
   station has. */
static inline void station_open(station *s)
{
    struct sigaction action;

    s->j.config.max_attempts = 255;     // each looks into the log first
    memset(&action, 0, sizeof action);
    action.sa_handler = station_on_signal;
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    journal_open(&s->j);
    pump_open(&s->p, &s->j);
}

/* From now on a signal ends the program well: what has begun comes to its
   end. */
static inline void station_ready(void)
{
    puts("ready");
    fflush(stdout);
}

static inline void station_close(station *s)
{
    printf("replayed %lu\n",
           (unsigned long)s->j.table.stats.answers[IDEM_REPLAY]);
    fflush(stdout);
    close(s->p.fd);
    journal_close(&s->j);
}

/* True until a signal has come, and the pump has stopped. */
static inline int station_runs(const station *s)
{
    return !station_stop || s->p.running;
}

/* True if a command may begin now.  If not, it is given back. */
static inline int station_may_begin(const station *s)
{
    return !station_stop && !s->p.running;
}

static inline int station_granted(int result)
{
    return result == IDEM_EXECUTE || result == IDEM_RECOVER ||
           result == IDEM_UNCERTAIN;
}

/* Records an outcome, whose code is the transport's.  A sender that has begun a
   newer epoch has given up its older numbers: nobody will ask for this one. */
static inline void station_complete(station *s, const idem_claim *claim,
                                    int code, int failed, const char *text)
{
    idem_outcome outcome = { .response = text, .response_len = strlen(text),
                             .code = code, .failed = (uint8_t)failed };
    int result = idem_complete(&s->j.table, claim, &outcome, journal_millis());

    if (result != IDEM_E_FENCED)
        journal_need(&s->j, result);
}

/* Gives a claim back: nothing has happened, and a retry is new. */
static inline void station_release(station *s, const idem_claim *claim)
{
    journal_need(&s->j, idem_release(&s->j.table, claim, journal_millis()));
}

static inline void station_poured(char text[STATION_TEXT], long ml)
{
    snprintf(text, STATION_TEXT, "poured %ld ml", ml);
}

#endif
