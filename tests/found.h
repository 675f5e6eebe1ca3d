/* SPDX-License-Identifier: 0BSD */
/*
 * Inputs that a fuzzer has found, each a test: nothing that its harness
 * promises is broken.  To be included after the harness.
 */
#ifndef FOUND_H
#define FOUND_H

static void replay(const uint8_t *bytes, size_t len)
{
    input in = { bytes, len };

    run(&in);
}

#define FOUND(name, ...)                                                       \
    static void name(void **state)                                             \
    {                                                                          \
        static const uint8_t bytes[] = { __VA_ARGS__ };                        \
                                                                               \
        (void)state;                                                           \
        replay(bytes, sizeof bytes);                                           \
    }

#endif /* FOUND_H */
