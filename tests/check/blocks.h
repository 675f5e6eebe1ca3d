/* SPDX-License-Identifier: 0BSD */
/*
 * blocks: the basic blocks that are executed, as -fsanitize-coverage=trace-pc
 * counts them: a cost that is the same on a slow machine, and on a busy one.
 */
#ifndef BLOCKS_H
#define BLOCKS_H

#include <stdint.h>

#ifdef __clang__
#define NOT_COUNTED __attribute__((no_sanitize("coverage")))
#else
#define NOT_COUNTED __attribute__((no_sanitize_coverage))
#endif

static uint64_t blocks;

/* The compiler has it called by every basic block. */
void __sanitizer_cov_trace_pc(void);
NOT_COUNTED void __sanitizer_cov_trace_pc(void)
{
    blocks++;
}

#endif
