/* SPDX-License-Identifier: 0BSD
   A lock of idem.h for bare metal on one core, where interrupts call it too.
   They are off while a call holds the lock (tests/FIGURES.md has the longest
   time), and while its storage callbacks run: an erase may take 400 ms.  With
   such a storage do not call it from interrupts: let them put commands into a
   queue.

       static interrupts_state state;
       static idem_config config = { ..., .lock_ctx = &state,
                                     .lock = interrupts_lock,
                                     .unlock = interrupts_unlock };

   So no interrupt can call it in the middle of another call.  The table refuses
   a call from inside another call, as from a storage callback by mistake. */
#ifndef IDEM_INTERRUPTS_H
#define IDEM_INTERRUPTS_H

#include <stdint.h>

#if defined __AVR__

#include <avr/interrupt.h>
#include <avr/io.h>

static inline uint32_t interrupts_off(void)
{
    uint8_t before = SREG;

    cli();
    return before;
}

static inline void interrupts_restore(uint32_t before)
{
    __asm__ volatile("" : : : "memory");    // what was written, stays before
    SREG = (uint8_t)before;
}

#elif defined __riscv

static inline uint32_t interrupts_off(void)
{
    uintptr_t before;

    __asm__ volatile("csrrci %0, mstatus, 8" : "=r"(before) : : "memory");
    return (uint32_t)before & 8;
}

static inline void interrupts_restore(uint32_t before)
{
    __asm__ volatile("csrs mstatus, %0" : : "r"(before) : "memory");
}

#else                                   /* Cortex-M */

static inline uint32_t interrupts_off(void)
{
    uint32_t before;

    __asm__ volatile("mrs %0, primask\n cpsid i" : "=r"(before) : : "memory");
    return before;
}

static inline void interrupts_restore(uint32_t before)
{
    __asm__ volatile("msr primask, %0" : : "r"(before) : "memory");
}

#endif

typedef struct interrupts_state {
    uint32_t before;                    /* whether they were on */
    uint32_t depth;
} interrupts_state;

static inline int interrupts_lock(void *ctx)
{
    interrupts_state *state = (interrupts_state *)ctx;
    uint32_t before = interrupts_off();

    if (state->depth++ == 0)
        state->before = before;
    return 0;
}

static inline void interrupts_unlock(void *ctx)
{
    interrupts_state *state = (interrupts_state *)ctx;

    if (--state->depth == 0)
        interrupts_restore(state->before);
}

#endif /* IDEM_INTERRUPTS_H */
