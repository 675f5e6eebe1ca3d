/* SPDX-License-Identifier: 0BSD */
#include "naive.h"
#include <string.h>

#define NUMBER_MAX 5u           /* digits of 16 bits */

void naive_start(naive *n, const device_port *port, naive_ledger *ledger,
                 uint32_t labels, int answers_first)
{
    memset(n, 0, sizeof *n);
    n->port = port;
    n->ledger = ledger;
    n->labels = labels;
    n->answers_first = answers_first;
}

void naive_remember(naive *n, char c)
{
    if (c == '\n') {
        n->pours++;
        n->ml += n->number;
        n->blanks = 0;
        n->number = 0;
    } else if (c == ' ') {
        n->blanks++;
    } else if (n->blanks == 2) {
        n->number = n->number * 10 + (uint32_t)(c - '0');
    }
}

static size_t append(char *line, size_t at, const void *text, size_t len)
{
    memcpy(line + at, text, len);
    line[at + len] = ' ';
    return at + len + 1;
}

static void enter(const naive *n, const protocol_message *command, unsigned ml)
{
    char line[DEVICE_LABEL_MAX + 2 + NUMBER_MAX + 1];
    char digits[NUMBER_MAX], name[DEVICE_NAME_MAX];
    size_t len = append(line, 0, command->scope, command->scope_len);
    unsigned count = 0;

    len = append(line, len, name, device_name(name, command));
    do
        digits[count++] = (char)('0' + ml % 10);
    while ((ml /= 10) != 0);
    while (count)
        line[len++] = digits[--count];
    line[len++] = '\n';
    n->ledger(line, len);
}

static void pour(naive *n, const protocol_message *command)
{
    unsigned ml = protocol_get16(command->payload + 1);
    uint8_t meter[DEVICE_STATE_MAX];

    n->pours++;
    n->ml += ml;
    protocol_put32(meter, n->pours);
    protocol_put32(meter + 4, n->ml);
    if (n->answers_first)
        device_answer(n->port, command, PROTOCOL_DONE, meter, sizeof meter);
    n->port->work(n->port->ctx);
    enter(n, command, ml);
    if (!n->answers_first)
        device_answer(n->port, command, PROTOCOL_DONE, meter, sizeof meter);
}

static void print(naive *n, const protocol_message *command)
{
    char label[DEVICE_LABEL_MAX];
    size_t len = device_label(label, command);
    uint8_t number[4];

    protocol_put32(number, ++n->labels);
    if (n->answers_first)
        device_answer(n->port, command, PROTOCOL_DONE, number, sizeof number);
    n->port->print(n->port->ctx, label, len);
    if (!n->answers_first)
        device_answer(n->port, command, PROTOCOL_DONE, number, sizeof number);
}

void naive_receive(naive *n, uint8_t byte)
{
    protocol_message command;

    if (!protocol_decode(&n->decoder, &command, byte) ||
        !protocol_is_command(&command))
        return;
    if (command.payload_len == 3 && command.payload[0] == 'p')
        pour(n, &command);
    else if (command.payload_len > 0 && command.payload[0] == 'l')
        print(n, &command);
}
