/* SPDX-License-Identifier: 0BSD */
#include "device.h"
#include <string.h>

static const idem_config fixed = {
    .capacity = DEVICE_KEYS, .senders = DEVICE_SENDERS,
    .key_max = DEVICE_KEY_MAX, .response_max = DEVICE_RESPONSE_MAX,
    .state_max = DEVICE_STATE_MAX,
    .max_attempts = 255,        /* power that fails is not a command's fault */
#ifdef DEVICE_STORAGE
    .storage = &DEVICE_STORAGE,
#endif
    .retention_ms = DEVICE_RETENTION_MS
};

/* With its storage all but the secret is known when compiling. */
#ifdef DEVICE_STORAGE
#define IDEM_CONFIG fixed
#endif
#define IDEM_IMPLEMENTATION
#include "idem.h"

/* False for flash that was never programmed: it is the same in all devices. */
static int is_secret(const uint8_t *secret)
{
    size_t i;

    for (i = 1; secret && i < sizeof fixed.secret; i++)
        if (secret[i] != secret[0])
            return 1;
    return 0;
}

int device_start(device *d, const device_port *port,
                 const idem_storage *storage, void *memory, size_t size)
{
    int result;

    memset((void *)d, 0, sizeof *d);
    d->port = port;
    d->config = fixed;
    d->config.storage = storage;
    if (!is_secret(port->secret))
        return IDEM_E_ARG;
    memcpy(d->config.secret, port->secret, sizeof d->config.secret);
    result = idem_open(&d->table, &d->config, memory, size, port->millis());
    d->open = result == IDEM_OK;
    return result;
}

/* ---------------------------------------------------------------------------
   commands
   ------------------------------------------------------------------------ */

/* The meter is the only effect, and it changes with the outcome or not at all:
   an interrupted attempt has not changed it.  But if the journal was damaged,
   the outcome may be lost, and the meter does not show it: nobody knows, so it
   does not pour, and answers that somebody must look. */
static int pour(device *d, idem_outcome *outcome, const uint8_t *ml, int answer)
{
    uint8_t *meter = d->response;
    size_t len = DEVICE_STATE_MAX;

    if (answer == IDEM_UNCERTAIN) {
        outcome->failed = 1;
        outcome->code = PROTOCOL_LOOK;
        return IDEM_HANDLED;
    }
    if (idem_state(&d->table, meter, &len) < 0)
        return IDEM_NOT_DONE;
    if (len == 0)
        memset(meter, 0, DEVICE_STATE_MAX);
    if (d->port->work)
        d->port->work(d->port->ctx);
    protocol_put32(meter, protocol_get32(meter) + 1);
    protocol_put32(meter + 4, protocol_get32(meter + 4) + protocol_get16(ml));
    outcome->state = outcome->response = meter;
    outcome->state_len = outcome->response_len = DEVICE_STATE_MAX;
    return IDEM_HANDLED;
}

/* Appends what can be printed; a label that could be read in two ways could
   not be looked for.  Returns the new length, 0 if there is anything else. */
static size_t append(char *label, size_t at, const uint8_t *text, size_t len,
                     uint8_t lowest)
{
    size_t i;

    for (i = 0; i < len; i++) {
        if (text[i] < lowest || text[i] > '~')
            return 0;
        label[at++] = (char)text[i];
    }
    label[at++] = ' ';
    return at;
}

/* Writes a number in digits; returns how many. */
static size_t write_number(char *text, uint32_t number)
{
    size_t len = 0, i;

    do {
        for (i = len++; i > 0; i--)
            text[i] = text[i - 1];
        text[0] = (char)('0' + number % 10);
    } while ((number /= 10) != 0);
    return len;
}

/* What the name of a number begins with.  A key that does has no label: that
   could be a number's. */
#define NUMBER_SIGN '#'

size_t device_name(char *name, const protocol_message *command)
{
    size_t len = command->key_len;

    if (command->kind != PROTOCOL_NUMBERED) {
        memcpy(name, command->key, len);
        return len;
    }
    name[0] = NUMBER_SIGN;
    len = 1 + write_number(name + 1, protocol_get32(command->key));
    name[len++] = '.';
    return len + write_number(name + len, protocol_get32(command->key + 4));
}

size_t device_label(char *label, const protocol_message *command)
{
    char name[DEVICE_NAME_MAX] = "";
    size_t name_len = device_name(name, command);
    size_t at = append(label, 0, command->scope, command->scope_len, '!');

    if (command->kind != PROTOCOL_NUMBERED && name[0] == NUMBER_SIGN)
        return 0;
    if (at)
        at = append(label, at, (const uint8_t *)name, name_len, '!');
    if (at)
        at = append(label, at, command->payload + 1,
                    command->payload_len - 1u, ' ');
    return at ? at - 1 : 0;
}

/* A label is outside, and stays whatever happens here: so look first.  If the
   printer cannot be looked at, nobody knows yet. */
static int print(device *d, idem_outcome *outcome,
                 const protocol_message *command, int answer)
{
    const device_port *port = d->port;
    char label[DEVICE_LABEL_MAX];
    size_t len = device_label(label, command);
    uint32_t number = 0;

    if (len && answer != IDEM_EXECUTE)
        number = port->printed(port->ctx, label, len);
    if (number == DEVICE_CANNOT_SEE)
        return IDEM_CANNOT_TELL;
    if (len && !number)
        number = port->print(port->ctx, label, len);
    protocol_put32(d->response, number);
    outcome->failed = !number;
    outcome->response = d->response;
    outcome->response_len = 4;
    return IDEM_HANDLED;
}

/* The arguments of the handler */
typedef struct execution {
    device                 *by;
    const protocol_message *command;
} execution;

static int execute(idem_job *job)
{
    const execution *e = (const execution *)job->ctx;
    const protocol_message *command = e->command;
    device *d = e->by;

    if (command->payload_len == 3 && command->payload[0] == 'p')
        return pour(d, &job->outcome, command->payload + 1, job->answer);
    if (command->payload_len > 0 && command->payload[0] == 'l')
        return print(d, &job->outcome, command, job->answer);
    job->outcome.failed = 1;
    return IDEM_HANDLED;
}

/* ---------------------------------------------------------------------------
   answers
   ------------------------------------------------------------------------ */

void device_answer(const device_port *port, const protocol_message *command,
                   uint8_t result, const uint8_t *payload, size_t len)
{
    uint8_t frame[PROTOCOL_FRAME_MAX];
    protocol_message answer = *command;
    size_t i, frame_len;

    answer.kind = PROTOCOL_ANSWER;
    answer.result = result;
    answer.payload = payload;
    answer.payload_len = (uint8_t)len;
    frame_len = protocol_encode(frame, &answer);
    for (i = 0; i < frame_len; i++)
        port->put(port->ctx, frame[i]);
}

static void answer_wait(const device *d, const protocol_message *command,
                        uint32_t ms)
{
    uint8_t wait[2];

    protocol_put16(wait, ms < 1000 ? (uint16_t)ms : 1000);
    device_answer(d->port, command, PROTOCOL_WAIT, wait, sizeof wait);
}

/* How a command ended.  A failure without a code was not executed; one with a
   code may have been: PROTOCOL_LOOK, or idem_run's IDEM_CODE_INVALID. */
static uint8_t ending(const idem_reply *reply)
{
    if (reply->status == IDEM_COMPLETED)
        return PROTOCOL_DONE;
    return reply->code ? PROTOCOL_LOOK : PROTOCOL_FAILED;
}

static void answer(device *d, const protocol_message *command, int result,
                   const idem_reply *reply)
{
    uint8_t refusal = (uint8_t)result;

    switch (result) {
    case IDEM_DONE:
    case IDEM_REPLAY:
        device_answer(d->port, command, ending(reply), d->response,
                      reply->response_len);
        break;
    case IDEM_BUSY:
    case IDEM_E_FULL:
        answer_wait(d, command, reply->retry_after_ms);
        break;
    case IDEM_RELEASED:         // nothing has happened
    case IDEM_E_STORAGE:        // not recorded: never report it as done
        break;                  // the sender will ask again
    default:
        device_answer(d->port, command, PROTOCOL_REFUSED, &refusal, 1);
    }
}

static void identify(idem_request *request, const protocol_message *command)
{
    request->scope = command->scope;
    request->scope_len = command->scope_len;
    if (command->kind == PROTOCOL_NUMBERED) {
        request->epoch = protocol_get32(command->key);
        request->sequence = protocol_get32(command->key + 4);
    } else {
        request->key = command->key;
        request->key_len = command->key_len;
    }
}

void device_receive(device *d, uint8_t byte)
{
    protocol_message command;
    execution e;
    idem_request request = { 0 };
    idem_reply reply;
    int result;

    if (!d->open || !protocol_decode(&d->decoder, &command, byte) ||
        !protocol_is_command(&command))
        return;
    e.by = d;
    e.command = &command;
    identify(&request, &command);
    request.payload = command.payload;
    request.payload_len = command.payload_len;
    request.buffer = d->response;
    request.buffer_size = sizeof d->response;
    result = idem_run(&d->table, &reply, &request, execute, &e,
                      d->port->millis);
    answer(d, &command, result, &reply);
}

int device_idle(device *d)
{
    return idem_maintain(&d->table, d->port->millis()) == IDEM_MORE;
}
