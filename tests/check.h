/* check.h - the test framework.
 *
 * A test is a program: it CHECKs conditions and ends with
 * `return check_report("name");`. A failed check prints its place, the
 * condition and the values, and the program continues. Single-threaded.
 */
#ifndef LB_CHECK_H
#define LB_CHECK_H

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static long check_count, check_failed;

/* Maximum of printed failures: a broken loop would print a million lines. */
#define CHECK_PRINT_MAX 50

/* Counts the check; true if it failed and the caller should print it. */
static inline bool check_fails(bool ok)
{
    check_count++;
    if (ok) return false;
    check_failed++;
    if (check_failed == CHECK_PRINT_MAX + 1)
        fprintf(stderr, "... further failures are only counted\n");
    return check_failed <= CHECK_PRINT_MAX;
}

static inline void check_true(bool ok, const char *file, int line,
                              const char *what)
{
    if (check_fails(ok)) fprintf(stderr, "%s:%d: %s\n", file, line, what);
}

static inline void check_eq_i(int64_t a, int64_t b, const char *file, int line,
                              const char *what)
{
    if (check_fails(a == b))
        fprintf(stderr, "%s:%d: %s: %" PRId64 " != %" PRId64 "\n", file, line,
                what, a, b);
}

/* Equal, both NaN, or no more than tol apart. */
static inline void check_near(double a, double b, double tol, const char *file,
                              int line, const char *what)
{
    const bool ok = a == b || (isnan(a) && isnan(b)) || fabs(a - b) <= tol;
    if (check_fails(ok))
        fprintf(stderr, "%s:%d: %s: %.17g and %.17g differ by %.3g > %.3g\n",
                file, line, what, a, b, fabs(a - b), tol);
}

static inline void check_eq_s(const char *a, const char *b, const char *file,
                              int line, const char *what)
{
    const bool ok = a == b || (a && b && !strcmp(a, b));
    if (check_fails(ok))
        fprintf(stderr, "%s:%d: %s: \"%s\" != \"%s\"\n", file, line, what,
                a ? a : "(null)", b ? b : "(null)");
}

#define CHECK(cond) check_true((cond) ? true : false, __FILE__, __LINE__, #cond)
#define CHECK_EQ_I(a, b)                                                       \
    check_eq_i((int64_t)(a), (int64_t)(b), __FILE__, __LINE__, #a " == " #b)
#define CHECK_NEAR(a, b, tol)                                                  \
    check_near(a, b, tol, __FILE__, __LINE__, #a " ~ " #b)
#define CHECK_EQ_S(a, b) check_eq_s(a, b, __FILE__, __LINE__, #a " == " #b)

/* Whether to skip a case of a test that has very many: with LB_TEST_EVERY=N in
 * the environment one of N is run, the same ones each time. For sanitizers and
 * emulators, under which a case takes many times as long. `share` increases the
 * fraction for tests that are shorter by that factor. */
static inline bool check_thins_by(int share)
{
    static uint64_t state = 1;
    static int every;
    if (!every) {
        const char *n = getenv("LB_TEST_EVERY");
        every = n && atoi(n) > 0 ? atoi(n) : 1;
    }
    const int of = every > share ? every / share : 1;
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 33) % (uint64_t)of != 0;
}

static inline bool check_thins(void)
{
    return check_thins_by(1);
}

/* For tests that take seconds and need thinning only in emulators: with
 * LB_TEST_EVERY below 20, as for sanitizers, all cases are run. */
static inline bool check_thins_short(void)
{
    return check_thins_by(10);
}

/* Return value of main if this machine has nothing to check (after printing
 * that): ctest counts the test as skipped. */
enum { CHECK_SKIPPED = 77 };

/* Return value of main: a test without any checks has failed as well. */
static inline int check_report(const char *name)
{
    printf("%s: %ld checks, %ld failed\n", name, check_count, check_failed);
    return check_failed != 0 || check_count == 0;
}

#endif
