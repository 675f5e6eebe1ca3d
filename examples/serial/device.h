/* SPDX-License-Identifier: 0BSD */
/*
 * The device half: takes bytes from the line, executes each command at most
 * once, and answers.  It is a drinks dispenser that keeps a meter (how often it
 * poured, and how much) and prints labels.  No stdio, no allocation, no
 * operating system: the same file is firmware on a microcontroller, with
 * tests/demo/firmware, and a process in `make demo`, with device_main.c.
 *
 * A port supplies what differs, a device_port; an idem_storage if the device
 * is to remember through a restart; and memory.  Then:
 *
 *     static const device_port port = { .put = uart_put, .millis = ticks,
 *         .work = wait, .print = print, .printed = printed,
 *         .secret = (const uint8_t *)PROVISIONED_AT };
 *     static uint32_t memory[DEVICE_MEMORY_SIZE(8) / 4];     // granule
 *     static device dispenser;
 *
 *     if (device_start(&dispenser, &port, &flash, memory, sizeof memory))
 *         alarm();                // it executes and answers nothing
 *     for (;;)
 *         if (uart_get(&byte))
 *             device_receive(&dispenser, byte);
 *         else
 *             device_idle(&dispenser);
 *
 * Firmware with one storage, a constant, makes device.c smaller: one file has
 *
 *     static const idem_storage flash = { .read = ... };
 *     #define DEVICE_STORAGE flash
 *     #include "device.c"
 *
 * and then device_start takes no other storage.
 *
 * device_receive may take as long as a command does: an interrupt puts the
 * bytes into a ring, or only does protocol_decode.
 *
 * A command has a key or a number.  Its response is kept for a day; a number is
 * refused after that, for ever, but a key is new again.  The scope is from the
 * message, and nobody has proved it: on a line that several share, whoever
 * is on it can use another's keys, and with numbers the place of a sender, for
 * ever.
 *
 * Commands, as payloads; numbers have the lowest byte first:
 *
 *     'p' ml:2        pour.  The effect is the meter: application state that is
 *                     committed together with the outcome, so an interrupted
 *                     pour has not happened.  (A pump would be driven by the
 *                     meter, as a control loop is by its setpoint.)
 *                     If the journal was damaged, it may have happened and been
 *                     forgotten: then it is not poured, PROTOCOL_LOOK
 *                     Response: pours:4, ml in all:4, this one included
 *     'l' text        print a label "scope key text", or, with a number,
 *                     "scope #epoch.sequence text"; a key that begins with #
 *                     has none.  The effect is outside; after an interrupted
 *                     attempt the device looks whether the label is there.
 *                     Response: number of the label:4
 *     anything else   a final failure
 */
#ifndef DEVICE_H
#define DEVICE_H

#include "idem.h"
#include "protocol.h"

/* How many commands are remembered, of how many senders, and for how long.  The
   same in all files */
#ifndef DEVICE_KEYS
#define DEVICE_KEYS 64
#endif
#ifndef DEVICE_SENDERS
#define DEVICE_SENDERS 4                /* scopes */
#endif
#ifndef DEVICE_RETENTION_MS
#define DEVICE_RETENTION_MS 86400000    /* 24 hours */
#endif

#define DEVICE_KEY_MAX 24               /* scope and key together */
#define DEVICE_RESPONSE_MAX 8
#define DEVICE_STATE_MAX 8              /* pours:4, ml:4 */
#define DEVICE_NAME_MAX PROTOCOL_CONTENT_MAX
#define DEVICE_LABEL_MAX (PROTOCOL_CONTENT_MAX + 24u)

/* Bytes of memory for device_start, a multiple of 4; with IDEM_EVICT_OLDEST and
   a quota add IDEM_QUOTA_MEMORY_SIZE */
#define DEVICE_MEMORY_SIZE(prog_size)                                          \
    (IDEM_JOURNAL_MEMORY_SIZE(DEVICE_KEYS, DEVICE_KEY_MAX,                     \
                              DEVICE_RESPONSE_MAX, DEVICE_STATE_MAX,           \
                              prog_size) +                                     \
     IDEM_SENDERS_MEMORY_SIZE(DEVICE_SENDERS))

/* Sectors that its storage must have */
#define DEVICE_SECTORS(sector_size, prog_size)                                 \
    IDEM_SECTORS(DEVICE_KEYS + DEVICE_SENDERS, DEVICE_KEY_MAX,                 \
                 DEVICE_RESPONSE_MAX, DEVICE_STATE_MAX, sector_size,           \
                 prog_size)

#define DEVICE_CANNOT_SEE UINT32_MAX

/* What the world is to the device.  ctx is handed to all, untouched. */
typedef struct device_port {
    void     *ctx;
    void    (*put)(void *ctx, uint8_t byte);     /* to the line */
    idem_now *millis;                            /* a tick, may wrap; to stand
                                                    in sleep, if meanwhile
                                                    bytes wait to be read */
    void    (*work)(void *ctx);                  /* NULL, or: what takes time
                                                    in a pour.  Power may go */
    uint32_t (*print)(void *ctx, const char *label, size_t len);
                                                 /* the label's number, from 1;
                                                    0 if it cannot be printed */
    uint32_t (*printed)(void *ctx, const char *label, size_t len);
                                                 /* the same label's number, 0
                                                    if it is not there, or
                                                    DEVICE_CANNOT_SEE */
    const uint8_t *secret;                       /* 16 random bytes, this
                                                    device's alone, written
                                                    when it is made */
} device_port;

typedef struct device {
    const device_port *port;
    idem_config        config;
    idem_table         table;
    int                open;        /* 1: it knows what it has executed */
    protocol_decoder   decoder;
    uint8_t            response[DEVICE_RESPONSE_MAX];
} device;

/* Opens the device's memory of commands; storage as in idem_config.  Kept by
   pointer: port, storage, memory; and the device must not be moved.  Returns
   what idem_open does; IDEM_E_ARG even if it was given no secret.  Unless it is
   IDEM_OK, the device does not answer: senders ask again. */
int device_start(device *d, const device_port *port,
                 const idem_storage *storage, void *memory, size_t size);

/* Takes a byte from the line; executes and answers if it ends a command. */
void device_receive(device *d, uint8_t byte);

/* Does a step of what can wait.  Returns 1 while there is more of it. */
int device_idle(device *d);

/* What device.c does with a command, for a device that does it without idem.h:
   sends an answer; writes its key, or "#epoch.sequence", as a text (room for
   DEVICE_NAME_MAX); writes the label that it asks for (room for
   DEVICE_LABEL_MAX).  Return the length, 0 of what cannot be a label. */
void device_answer(const device_port *port, const protocol_message *command,
                   uint8_t result, const uint8_t *payload, size_t len);
size_t device_name(char *name, const protocol_message *command);
size_t device_label(char *label, const protocol_message *command);

#endif
