/* SPDX-License-Identifier: 0BSD */
/* The status of examples/modbus/gateway.c for a number that it did not
   claim: "refused" only if it was not executed, and never will be. */
#define main gateway_main
#include "examples/modbus/gateway.c"
#undef main

static const struct {
    int result, status;
} expected[] = {
    { IDEM_MISMATCH, STATUS_REFUSED },      { IDEM_E_ARG, STATUS_REFUSED },
    { IDEM_E_TOO_LARGE, STATUS_REFUSED },   { IDEM_TOO_OLD, STATUS_LOOK },
    { IDEM_EXHAUSTED, STATUS_LOOK },        { IDEM_BUSY, STATUS_RETRY },
    { IDEM_RELEASED, STATUS_RETRY },        { IDEM_E_FULL, STATUS_RETRY },
    { IDEM_E_STORAGE, STATUS_RETRY },       { IDEM_E_SPACE, STATUS_RETRY },
    { IDEM_E_LOCK, STATUS_RETRY }
};

int main(void)
{
    static const uint8_t window = 0;
    idem_request r = { .scope = &window, .scope_len = 1, .sequence = 1 };
    idem_reply reply = { 0 };
    size_t i;

    registers = modbus_mapping_new(0, 0, WINDOWS * WINDOW, 0);
    if (!registers)
        journal_die("statuses", modbus_strerror(errno));
    for (i = 0; i < sizeof expected / sizeof *expected; i++) {
        int status;

        answer_result(&r, expected[i].result, &reply);
        status = registers->tab_registers[ANSWER_AT + 4];
        if (status != expected[i].status) {
            fprintf(stderr, "statuses: %s: %d, not %d\n",
                    idem_text(expected[i].result), status, expected[i].status);
            return 1;
        }
    }
    modbus_mapping_free(registers);
    return 0;
}
