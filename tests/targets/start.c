/* SPDX-License-Identifier: 0BSD
   Bare Cortex-M, Cortex-A and RISC-V: from reset to program(), and semihosting,
   by which a debugger or an emulator serves what it runs. */
#include "board.h"

#include <stddef.h>

enum { WRITE0 = 0x04, GET_CMDLINE = 0x15, EXIT_EXTENDED = 0x20 };
enum { APPLICATION_EXIT = 0x20026 };

extern uint32_t data_source[], data_start[], data_end[];
extern uint32_t bss_start[], bss_end[];

int program(void);
void begin(void);

/* One semihosting call; what its answer means depends on the operation. */
uintptr_t semihost(uintptr_t operation, const void *arguments);

#if defined __riscv

__asm__(".section .start, \"ax\"\n"
        ".globl start\n"
        "start:  la sp, stack_top\n"
        "        j begin\n"
        ".section .text\n"
        ".balign 16\n"          // the three must be of one page and full size
        ".option push\n"
        ".option norvc\n"
        ".globl semihost\n"
        "semihost:\n"
        "        slli zero, zero, 0x1f\n"
        "        ebreak\n"
        "        srai zero, zero, 7\n"
        "        ret\n"
        ".option pop\n");

#elif __ARM_ARCH_PROFILE == 'A'

__asm__(".section .start, \"ax\"\n"
        ".arm\n"
        ".globl start\n"
        "start:  ldr sp, =stack_top\n"
        "        ldr r0, =begin\n"
        "        bx r0\n"
        ".ltorg\n"
        ".section .text\n"
        ".thumb\n"
        ".thumb_func\n"
        ".globl semihost\n"
        ".type semihost, %function\n"
        "semihost:\n"
        "        svc 0xab\n"
        "        bx lr\n");

#else

__attribute__((naked)) uintptr_t semihost(uintptr_t operation,
                                          const void *arguments)
{
    (void)operation, (void)arguments;
    __asm__("bkpt 0xab\n"
            "bx lr\n");
}

static void fault(void)
{
    board_text("fault\n");
    board_exit(99);
}

void stack_top(void);            // a function to the table of vectors only
extern void (*const start[16])(void);

__attribute__((section(".start"), used))
void (*const start[16])(void) = {
    stack_top, begin, fault, fault, fault, fault, fault
};

#endif

void board_text(const char *text)
{
    semihost(WRITE0, text);
}

void board_exit(int status)
{
    uintptr_t reason[2] = { APPLICATION_EXIT, (uintptr_t)status };

    semihost(EXIT_EXTENDED, reason);
    for (;;)
        ;
}

/* The command line is the program's name and numbers, with blanks between. */
uint32_t board_argument(int n)
{
    static char line[80];
    struct { char *at; uintptr_t size; } buffer = { line, sizeof line };
    const char *at = line;
    uint32_t number = 0;

    semihost(GET_CMDLINE, &buffer);
    for (n++; *at && n; at++)
        n -= *at == ' ';
    for (; *at >= '0' && *at <= '9'; at++)
        number = number * 10 + (uint32_t)(*at - '0');
    return number;
}

/* Memory as C expects it; nothing may be used that has a value before. */
__attribute__((used)) void begin(void)
{
    const uint32_t *from = data_source;

    for (uint32_t *to = data_start; to < data_end; to++)
        *to = *from++;
    for (uint32_t *to = bss_start; to < bss_end; to++)
        *to = 0;
    board_exit(program());
}
