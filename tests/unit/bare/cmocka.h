/* SPDX-License-Identifier: 0BSD
   As much of cmocka as the tests use, for machines that cmocka is not built
   for: 32-bit x86, big-endian, MemorySanitizer.  Prints what passes as TAP; the
   first failure ends it. */
#ifndef BARE_CMOCKA_H
#define BARE_CMOCKA_H

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef void (*CMUnitTestFunction)(void **state);
typedef int (*CMFixtureFunction)(void **state);

struct CMUnitTest {
    const char *name;
    CMUnitTestFunction test_func;
    CMFixtureFunction setup_func, teardown_func;
    void *initial_state;
};

static void bare_fail(const char *what, const char *file, int line)
{
    printf("%s:%d: failed: %s\n", file, line, what);
    exit(1);
}

static int bare_skipped;

static int bare_in_range(uint64_t x, uint64_t low, uint64_t high)
{
    return x >= low && x <= high;
}

#define BARE_CHECK(condition, what)                                            \
    ((condition) ? (void)0 : bare_fail(what, __FILE__, __LINE__))
#define assert_true(x) BARE_CHECK(x, #x)
#define assert_false(x) BARE_CHECK(!(x), "not " #x)
#define assert_int_equal(a, b) BARE_CHECK((a) == (b), #a " == " #b)
#define assert_int_not_equal(a, b) BARE_CHECK((a) != (b), #a " != " #b)
#define assert_ptr_equal(a, b) BARE_CHECK((a) == (b), #a " == " #b)
#define assert_null(a) BARE_CHECK((a) == NULL, #a " is NULL")
#define assert_non_null(a) BARE_CHECK((a) != NULL, #a " is not NULL")
#define assert_string_equal(a, b) BARE_CHECK(strcmp(a, b) == 0, #a " == " #b)
#define assert_string_not_equal(a, b)                                          \
    BARE_CHECK(strcmp(a, b) != 0, #a " != " #b)
#define assert_memory_equal(a, b, n)                                           \
    BARE_CHECK(memcmp(a, b, n) == 0, #a " == " #b)
#define assert_memory_not_equal(a, b, n)                                       \
    BARE_CHECK(memcmp(a, b, n) != 0, #a " != " #b)
#define assert_in_range(x, low, high)                                          \
    BARE_CHECK(bare_in_range((uint64_t)(x), low, high),                        \
               #x " in " #low ".." #high)
#define fail() bare_fail("fail()", __FILE__, __LINE__)
#define fail_msg(...) (printf(__VA_ARGS__), fail())
/* For the test itself, which ends with it. */
#define skip() do { bare_skipped = 1; return; } while (0)
#define print_error printf

#define _cmocka_run_group_tests(name, tests, count, setup, teardown)           \
    bare_run(tests, count)

static int bare_run(const struct CMUnitTest *tests, size_t count)
{
    size_t i;

    for (i = 0; i < count; i++) {
        void *state = tests[i].initial_state;
        if (tests[i].setup_func)
            assert_int_equal(tests[i].setup_func(&state), 0);
        bare_skipped = 0;
        tests[i].test_func(&state);
        if (tests[i].teardown_func)
            assert_int_equal(tests[i].teardown_func(&state), 0);
        printf(bare_skipped ? "not ok %u # SKIP %s\n" : "ok %u - %s\n",
               (unsigned)i + 1, tests[i].name);
    }
    return 0;
}

#endif
