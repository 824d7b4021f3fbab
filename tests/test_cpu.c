/* test_cpu.c - levels: names, and what this machine says it can run.
 *
 * The reference for the latter is the compiler's run-time library, which has
 * its own detection (F16C aside: it comes with every AVX2).
 */
#include "base/cpu.h"
#include "check.h"

static const struct {
    lb_level level;
    const char *name;
} table[] = {
    {LB_LEVEL_REF, "ref"},
    {LB_LEVEL_NEON, "neon"},
    {LB_LEVEL_AVX2, "avx2"},
    {LB_LEVEL_AVX512, "avx512"},
    {LB_LEVEL_AVX512VNNI, "avx512vnni"},
};
#define N_TABLE ((int)(sizeof table / sizeof table[0]))

static void test_names(void)
{
    for (int i = 0; i < N_TABLE; i++) {
        CHECK_EQ_S(lb_level_name(table[i].level), table[i].name);
        lb_level got = (lb_level)-1;
        CHECK(lb_level_parse(table[i].name, &got));
        CHECK_EQ_I(got, table[i].level);
    }
    lb_level untouched = LB_LEVEL_AVX2;
    CHECK(!lb_level_parse("avx", &untouched));
    CHECK(!lb_level_parse("AVX2", &untouched));
    CHECK(!lb_level_parse("avx2 ", &untouched));
    CHECK(!lb_level_parse("", &untouched));
    CHECK(!lb_level_parse(NULL, &untouched));
    CHECK_EQ_I(untouched, LB_LEVEL_AVX2);
    CHECK(lb_level_name((lb_level)99) != NULL);
}

static void test_available(void)
{
    const lb_level best = lb_cpu_best();
    printf("best level: %s\n", lb_level_name(best));
    CHECK(lb_level_available(LB_LEVEL_REF));
    CHECK(lb_level_available(best));
    CHECK(!lb_level_available((lb_level)(LB_LEVEL_AVX512VNNI + 1)));
#if defined(__x86_64__)
    CHECK(!lb_level_available(LB_LEVEL_NEON));
    for (int l = LB_LEVEL_AVX2; l <= LB_LEVEL_AVX512VNNI; l++)
        CHECK_EQ_I(lb_level_available((lb_level)l), l <= (int)best);
#elif defined(__aarch64__)
    CHECK_EQ_I(best, LB_LEVEL_NEON);
    CHECK(!lb_level_available(LB_LEVEL_AVX2));
#endif
}

#if defined(__x86_64__) && !defined(LB_SIMDE)
/* Not /proc/cpuinfo: under an emulator that is the host's. */
static void test_agrees_with_compiler(void)
{
    __builtin_cpu_init();
    lb_level expected = LB_LEVEL_REF;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
        expected = LB_LEVEL_AVX2;
        if (__builtin_cpu_supports("avx512f") &&
            __builtin_cpu_supports("avx512bw") &&
            __builtin_cpu_supports("avx512vl") &&
            __builtin_cpu_supports("avx512dq"))
            expected = __builtin_cpu_supports("avx512vnni")
                           ? LB_LEVEL_AVX512VNNI
                           : LB_LEVEL_AVX512;
    }
    CHECK_EQ_I(lb_cpu_best(), expected);
}
#endif

int main(void)
{
    test_names();
    test_available();
#if defined(__x86_64__) && !defined(LB_SIMDE)
    test_agrees_with_compiler();
#endif
    return check_report("cpu");
}
