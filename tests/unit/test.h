/* SPDX-License-Identifier: 0BSD */
/*
 * The body after TEST(name) is a test, and is picked up automatically: main is
 * in here, and runs the tests of a file in their order.
 */
#ifndef TEST_H
#define TEST_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static struct CMUnitTest tests_there[200];
static size_t tests_count;

// What a call answers, or a number is.
#define is(actual, expected) assert_int_equal(actual, expected)

/* The next test; too many are reported before any runs. */
static inline void test_add(const char *name, CMUnitTestFunction run,
                            CMFixtureFunction setup, CMFixtureFunction teardown,
                            const void *state)
{
    struct CMUnitTest *test = &tests_there[tests_count];

    if (tests_count++ == COUNT(tests_there))
        exit(fprintf(stderr, "make tests_there larger: %s\n", name));
    test->name = name;
    test->test_func = run;
    test->setup_func = setup;
    test->teardown_func = teardown;
    test->initial_state = (void *)(uintptr_t)state;
}

/* A test with these; it takes a parameter, which is made out of `state`. */
#define TEST_WITH(name, setup, teardown, parameter, argument)                  \
    static void name(parameter);                                               \
    static void name##_of(void **state)                                        \
    {                                                                          \
        (void)state;                                                           \
        name(argument);                                                        \
    }                                                                          \
    __attribute__((constructor)) static void name##_there(void)                \
    {                                                                          \
        test_add(#name, name##_of, setup, teardown, NULL);                     \
    }                                                                          \
    static void name(parameter)

/* Each row of an array is a test, which `run` is given; with its name it begins. */
#define TESTS(rows, run)                                                       \
    __attribute__((constructor)) static void rows##_there(void)                \
    {                                                                          \
        for (size_t i = 0; i < COUNT(rows); i++)                               \
            test_add(*(const char *const *)&rows[i], run, NULL, NULL,          \
                     &rows[i]);                                                \
    }

/* A test that needs nothing. */
#define TEST(name) TEST_WITH(name, NULL, NULL, void, )

int main(void)
{
    // No test at all: a compiler that runs nothing before main.
    return !tests_count ||
           _cmocka_run_group_tests("tests", tests_there, tests_count, NULL,
                                   NULL);
}

#endif /* TEST_H */
