/* SPDX-License-Identifier: 0BSD */
/*
 * Test vectors for the 32-bit and the 64-bit FNV-1a.
 *
 * These are some of the test strings of the authors of FNV, with the hash
 * values the authors expect of them. Some strings hold NUL bytes, so
 * each comes with its length.
 *
 * Strings and values are those of test_fnv.c in https://github.com/lcn2/fnv,
 * in the public domain, at commit 953444cde78daec734ed1b3702768c4602c4822e:
 * its arrays fnv_test_str, fnv1a_32_vector and fnv1a_64_vector.
 */
#ifndef VECTORS_FNV_H
#define VECTORS_FNV_H

#include <stddef.h>
#include <stdint.h>

#define TIMES10(s) s s s s s s s s s s
#define TIMES500(s) TIMES10(TIMES10(s s s s s))

static const struct {
    const char *text;
    size_t len;
    uint32_t fnv1a32;
    uint64_t fnv1a64;
} fnv_vectors[] = {
    { "", 0, UINT32_C(0x811c9dc5), UINT64_C(0xcbf29ce484222325) },
    { "a", 1, UINT32_C(0xe40c292c), UINT64_C(0xaf63dc4c8601ec8c) },
    { "b", 1, UINT32_C(0xe70c2de5), UINT64_C(0xaf63df4c8601f1a5) },
    { "c", 1, UINT32_C(0xe60c2c52), UINT64_C(0xaf63de4c8601eff2) },
    { "d", 1, UINT32_C(0xe10c2473), UINT64_C(0xaf63d94c8601e773) },
    { "e", 1, UINT32_C(0xe00c22e0), UINT64_C(0xaf63d84c8601e5c0) },
    { "f", 1, UINT32_C(0xe30c2799), UINT64_C(0xaf63db4c8601ead9) },
    { "fo", 2, UINT32_C(0x6222e842), UINT64_C(0x08985907b541d342) },
    { "foo", 3, UINT32_C(0xa9f37ed7), UINT64_C(0xdcb27518fed9d577) },
    { "foob", 4, UINT32_C(0x3f5076ef), UINT64_C(0xdd120e790c2512af) },
    { "fooba", 5, UINT32_C(0x39aaa18a), UINT64_C(0xcac165afa2fef40a) },
    { "foobar", 6, UINT32_C(0xbf9cf968), UINT64_C(0x85944171f73967e8) },
    { "\000", 1, UINT32_C(0x050c5d1f), UINT64_C(0xaf63bd4c8601b7df) },
    { "a\000", 2, UINT32_C(0x2b24d044), UINT64_C(0x089be207b544f1e4) },
    { TIMES500("\000"),
      500, UINT32_C(0xfa823dd5), UINT64_C(0x1fe3fce62bd816b5) },
    { TIMES500("\007"),
      500, UINT32_C(0x21a27271), UINT64_C(0xc23e9fccd6f70591) },
};

#undef TIMES10
#undef TIMES500

#endif
