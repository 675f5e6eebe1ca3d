/* SPDX-License-Identifier: 0BSD */
#include "naive.h"
#include "host.h"
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void naive_start(naive *n, const device_port *port, const char *ledger,
                 uint32_t labels, int answers_first)
{
    FILE *file = fopen(ledger, "r");
    unsigned ml;

    memset(n, 0, sizeof *n);
    n->port = port;
    n->ledger = ledger;
    n->labels = labels;
    n->answers_first = answers_first;
    while (file && fscanf(file, "%*s %*s %u", &ml) == 1) {
        n->pours++;
        n->ml += ml;
    }
    if (file)
        fclose(file);
}

/* One short write: there is no half of a line, whenever the kill comes. */
static void enter(const naive *n, const protocol_message *command, unsigned ml)
{
    char line[128];
    int fd = open(n->ledger, O_WRONLY | O_APPEND | O_CREAT, 0600);
    int len = snprintf(line, sizeof line, "%.*s %.*s %u\n",
                       (int)command->scope_len, (const char *)command->scope,
                       (int)command->key_len, (const char *)command->key, ml);

    if (fd < 0 || write(fd, line, (size_t)len) != len)
        host_die(n->ledger);
    close(fd);
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
        command.kind != PROTOCOL_COMMAND)
        return;
    if (command.payload_len == 3 && command.payload[0] == 'p')
        pour(n, &command);
    else if (command.payload_len > 0 && command.payload[0] == 'l')
        print(n, &command);
}
