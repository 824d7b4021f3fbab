/* test_levels.c - which level a context uses: options.isa, LOWBIT_ISA and
 * options.cpu_off, and what it reports about the CPU.
 *
 * The levels that this machine can run come from base/cpu.h, which test_cpu.c
 * tests with recorded CPUs; expected consequences are written out in this file.
 */
/* ctest: simde bochs nehalem a53 */
#include <stdlib.h>

#include "base/cpu.h"
#include "check.h"
#include "kernels/tuning.h"

static const lb_level levels[] = {LB_LEVEL_REF, LB_LEVEL_NEON, LB_LEVEL_AVX2,
                                  LB_LEVEL_AVX512, LB_LEVEL_AVX512VNNI};
enum { N_LEVELS = sizeof levels / sizeof *levels };

/* The level of a context opened with these settings; "" and the message in why
 * if it cannot be opened. */
static char why[256];
static const char *used(const lb_options *o)
{
    lb_ctx *cx = lb_open(o);
    const char *isa = lb_isa(cx); /* static */
    if (!cx) lb_open_why(o, why, sizeof why);
    lb_close(cx);
    return isa;
}

static void by_name(void)
{
    for (int i = 0; i < N_LEVELS; i++) {
        const char *name = lb_level_name(levels[i]);
        const bool can = lb_level_available(levels[i]);
        CHECK_EQ_S(used(&(lb_options){.isa = name}), can ? name : "");
        if (!can) CHECK(strstr(why, "options.isa is \"") && strstr(why, name));
        setenv("LOWBIT_ISA", name, 1);
        CHECK_EQ_S(used(NULL), can ? name : "");
        if (!can) {
            CHECK(strstr(why, "LOWBIT_ISA is \"") && strstr(why, name));
            CHECK(strstr(why, lb_isa_best()) != NULL);
        }
        CHECK_EQ_S(used(&(lb_options){.isa = "ref"}), "ref");
        unsetenv("LOWBIT_ISA");
    }
    setenv("LOWBIT_ISA", "", 1); /* as if it were not set */
    CHECK_EQ_S(used(NULL), lb_isa_best());
    unsetenv("LOWBIT_ISA");
    CHECK_EQ_S(used(NULL), lb_isa_best());
    CHECK_EQ_S(lb_isa_best(), lb_level_name(lb_cpu_best()));
}

/* The level that remains if some are off, written as a table and not as the
 * rule: which of avx2 to amx are off, and the result for each. */
static void what_is_left(void)
{
    enum { A = 1 << LB_LEVEL_AVX2, B = 1 << LB_LEVEL_AVX512 };
    enum { C = 1 << LB_LEVEL_AVX512VNNI, D = 1 << LB_LEVEL_AMX };
    enum { NEON = 1 << LB_LEVEL_NEON };
    const lb_level r = LB_LEVEL_REF, a = LB_LEVEL_AVX2, b = LB_LEVEL_AVX512;
    const lb_level c = LB_LEVEL_AVX512VNNI, d = LB_LEVEL_AMX;
    const struct {
        uint64_t off;
        lb_level of_avx2, of_avx512, of_vnni, of_amx;
    } want[] = {
        {0, a, b, c, d},        {NEON, a, b, c, d},     {C, a, b, b, b},
        {B, a, a, a, a},        {B | C, a, a, a, a},    {A, r, r, r, r},
        {A | B, r, r, r, r},    {A | C, r, r, r, r},    {A | B | C, r, r, r, r},
        {C | NEON, a, b, b, b}, {B | NEON, a, a, a, a}, {D, a, b, c, c},
        {C | D, a, b, b, b},    {A | D, r, r, r, r},    {D | NEON, a, b, c, c},
    };
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        const uint64_t off = want[i].off;
        CHECK_EQ_I(lb_level_without(r, off), r);
        CHECK_EQ_I(lb_level_without(a, off), want[i].of_avx2);
        CHECK_EQ_I(lb_level_without(b, off), want[i].of_avx512);
        CHECK_EQ_I(lb_level_without(c, off), want[i].of_vnni);
        CHECK_EQ_I(lb_level_without(d, off), want[i].of_amx);
        CHECK_EQ_I(lb_level_without(LB_LEVEL_NEON, off),
                   off & NEON ? r : LB_LEVEL_NEON);
        /* and a context behaves the same with this machine's levels */
        const lb_level left = lb_level_without(lb_cpu_best(), off);
        CHECK_EQ_S(used(&(lb_options){.cpu_off = off}), lb_level_name(left));
        CHECK_EQ_S(used(&(lb_options){.cpu_off = off, .isa = "ref"}), "ref");
    }
    /* A level that isa requests and cpu_off forbids does not run. */
    const uint64_t all = A | B | C | D | NEON;
    CHECK_EQ_S(used(&(lb_options){.cpu_off = all, .isa = lb_isa_best()}),
               "ref");
    setenv("LOWBIT_ISA", lb_isa_best(), 1);
    CHECK_EQ_S(used(&(lb_options){.cpu_off = all}), "ref");
    unsetenv("LOWBIT_ISA");
}

static void refused(void)
{
    for (int bit = 0; bit < 64; bit++) {
        const uint64_t off = (uint64_t)1 << bit;
        const bool fine = bit >= LB_LEVEL_NEON && bit <= LB_LEVEL_AMX;
        CHECK_EQ_I(*used(&(lb_options){.cpu_off = off}) != 0, fine);
        if (fine) continue;
        char hex[32];
        snprintf(hex, sizeof hex, "cpu_off is 0x%llx,",
                 (unsigned long long)off);
        CHECK(strstr(why, hex) && strstr(why, " 0x3e "));
    }
    /* A caller compiled before cpu_off existed does not set it. */
    const size_t before = offsetof(lb_options, cpu_off);
    CHECK_EQ_S(used(&(lb_options){.struct_size = before, .cpu_off = 1}),
               lb_isa_best());
    /* No padding at the end: fields appended by later versions are past this
     * size. */
    CHECK_EQ_I(offsetof(lb_options, team) + sizeof((lb_options *)0)->team,
               sizeof(lb_options));
}

static void what_it_says(void)
{
    const lb_cpu_id id = lb_cpu_detect().id;
    for (int i = 0; i < N_LEVELS; i++) {
        if (!lb_level_available(levels[i])) continue;
        lb_ctx *cx = lb_open(&(lb_options){.isa = lb_level_name(levels[i])});
        CHECK_EQ_S(lb_cpu_name(cx), id.name);
        CHECK_EQ_S(
            lb_cpu_family(cx),
            lb_tuning_find(levels[i], id.vendor, id.family, id.model)->family);
        printf("%s: tuned for %s\n", lb_isa(cx), lb_cpu_family(cx));
        lb_close(cx);
    }
}

int main(void)
{
    unsetenv("LOWBIT_ISA"); /* set when all tests run at one level */
    by_name();
    what_is_left();
    refused();
    what_it_says();
    return check_report("levels");
}
