/* SPDX-License-Identifier: 0BSD */
/* What examples/serial/controller.c prints of each result of a command: "nobody
   knows" is not a failure, and a person must look (words.sh). */
#define main controller_main
#include "examples/serial/controller.c"
#undef main

static void hear(uint32_t index, uint8_t result)
{
    traffic_command command;
    protocol_message m = { .kind = PROTOCOL_ANSWER, .result = result };

    traffic_make(&command, c.seed, index);
    m.scope = (const uint8_t *)command.scope;
    m.scope_len = (uint8_t)strlen(command.scope);
    m.key = (const uint8_t *)command.key;
    m.key_len = (uint8_t)strlen(command.key);
    take_answer(&m, host_millis());
}

int main(void)
{
    c.count = c.window = 4;
    c.patience_s = 100;
    open_commands(host_millis());
    hear(0, PROTOCOL_DONE);
    hear(1, PROTOCOL_LOOK);
    hear(1, PROTOCOL_LOOK);             // a repeated frame
    hear(2, PROTOCOL_FAILED);
    hear(3, PROTOCOL_DONE);
    return run();
}
