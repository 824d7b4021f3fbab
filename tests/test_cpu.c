/* test_cpu.c - levels: names, what this machine says it can run, and which
 * row of the tuning table is its.
 *
 * The reference for the latter is the compiler's run-time library, which has
 * its own detection (F16C aside: it comes with every AVX2).
 */
#include <ctype.h>
#include <string.h>

#include "base/cpu.h"
#include "check.h"
#include "kernels/tuning.h"

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
    CHECK_EQ_I(lb_cpu_has_vbmi(), expected == LB_LEVEL_AVX512VNNI &&
                                      __builtin_cpu_supports("avx512vbmi"));
}
#endif

/* ---- which CPU, and its numbers ----------------------------------------- */

static void test_identity(void)
{
    const lb_cpu_id id = lb_cpu_identify();
    printf("cpu: \"%s\", %s family 0x%x model 0x%x\n", id.name, id.vendor,
           (unsigned)id.family, (unsigned)id.model);
    CHECK(memchr(id.vendor, 0, sizeof id.vendor) != NULL);
    CHECK(memchr(id.name, 0, sizeof id.name) != NULL);
    const size_t n = strlen(id.name);
    for (size_t i = 0; i < n; i++)
        CHECK(isprint((unsigned char)id.name[i]));
    CHECK(n == 0 || (id.name[0] != ' ' && id.name[n - 1] != ' '));
#if defined(__x86_64__)
    CHECK_EQ_I(strlen(id.vendor), 12);
    CHECK(id.family >= 6); /* of every x86-64 */
    CHECK_EQ_I(!strcmp(id.vendor, "AuthenticAMD"), __builtin_cpu_is("amd"));
    CHECK_EQ_I(!strcmp(id.vendor, "GenuineIntel"), __builtin_cpu_is("intel"));
    /* The compiler's library puts family and model together on its own, but
     * may be older than the CPU. */
    const lb_tuning *t =
        lb_tuning_find(lb_cpu_best(), id.vendor, id.family, id.model);
    if (__builtin_cpu_is("znver3")) CHECK_EQ_S(t->family, "zen3");
    if (__builtin_cpu_is("icelake-server")) CHECK_EQ_S(t->family, "icelake");
#elif defined(__aarch64__)
    CHECK_EQ_S(id.vendor, "arm");
#endif
}

static void test_tuning(void)
{
    static const struct {
        lb_level level;
        const char *vendor;
        int family, model;
        const char *row;
    } want[] = {
        {LB_LEVEL_AVX2, "AuthenticAMD", 0x19, 0x01, "zen3"}, /* Milan */
        {LB_LEVEL_AVX2, "AuthenticAMD", 0x19, 0x21, "zen3"}, /* Vermeer */
        {LB_LEVEL_AVX512VNNI, "AuthenticAMD", 0x19, 0x11, "generic-avx512"},
        {LB_LEVEL_AVX2, "AuthenticAMD", 0x17, 0x01, "generic-avx2"},
        {LB_LEVEL_AVX512VNNI, "GenuineIntel", 6, 0x6a, "icelake"},
        {LB_LEVEL_AVX2, "GenuineIntel", 6, 0x6a, "icelake"}, /* held back */
        {LB_LEVEL_AVX512, "GenuineIntel", 6, 0x55, "generic-avx512"},
        {LB_LEVEL_AVX2, "GenuineIntel", 0x19, 0x01, "generic-avx2"},
        {LB_LEVEL_REF, "", 0, 0, "generic-ref"},
        {LB_LEVEL_NEON, "arm", 0x41, 0xd0c, "generic-neon"},
    };
    for (size_t i = 0; i < sizeof want / sizeof *want; i++)
        CHECK_EQ_S(lb_tuning_find(want[i].level, want[i].vendor, want[i].family,
                                  want[i].model)
                       ->family,
                   want[i].row);
    for (int l = 0; l < N_TABLE; l++) {
        const lb_tuning *t = lb_tuning_for(&(lb_cpu){.level = table[l].level});
        CHECK(!strncmp(t->family, "generic-", 8));
        CHECK(!strncmp(t->family + 8, table[l].name, 4));
        const lb_tuning *own = lb_tuning_at(0);
        CHECK(lb_tuning_for(
                  &(lb_cpu){.level = table[l].level, .tuning = own}) == own);
    }
    int n = 0;
    for (; lb_tuning_at(n); n++) {
        const lb_tuning *t = lb_tuning_at(n);
        CHECK(t->streams >= 1 && t->streams <= 8);
        CHECK(t->streams == 1 || t->stream_gap % 64 == 0);
        CHECK(t->prefetch % 64 == 0);
        CHECK(t->bypass > 0 && t->l2_gemm > 0 && t->l2_x > 0);
        for (int k = 0; k < n; k++)
            CHECK(strcmp(t->family, lb_tuning_at(k)->family) != 0);
    }
    CHECK(n > 0 && !lb_tuning_at(-1));
}

int main(void)
{
    test_identity();
    test_tuning();
    test_names();
    test_available();
#if defined(__x86_64__) && !defined(LB_SIMDE)
    test_agrees_with_compiler();
#endif
    return check_report("cpu");
}
