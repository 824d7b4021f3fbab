/* test_cpu.c - levels, identification and tuning of CPUs, from recorded CPUID
 * answers: no expected value depends on the CPU that runs the test.
 *
 * The CPU of this machine is only checked for what holds for every CPU.
 */
/* ctest: simde bochs nehalem a53 */
#include <ctype.h>

#include "base/cpu.h"
#include "check.h"
#include "cpuid_records.h"
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
    {LB_LEVEL_AMX, "amx"},
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

/* ---- recorded CPUID ----------------------------------------------------- */

/* The effect of LOWBIT_ISA on a CPU with that best level. */
static void check_choices(lb_level best)
{
    /* rows: best; columns: requested name. cppcheck takes the designators for
     * side effects. */
    static const bool runs[N_TABLE][N_TABLE] = {
        /* cppcheck-suppress unknownEvaluationOrder */
        [LB_LEVEL_REF] = {[LB_LEVEL_REF] = true},
        [LB_LEVEL_NEON] = {[LB_LEVEL_REF] = true, [LB_LEVEL_NEON] = true},
        [LB_LEVEL_AVX2] = {[LB_LEVEL_REF] = true, [LB_LEVEL_AVX2] = true},
        [LB_LEVEL_AVX512] = {[LB_LEVEL_REF] = true,
                             [LB_LEVEL_AVX2] = true,
                             [LB_LEVEL_AVX512] = true},
        [LB_LEVEL_AVX512VNNI] = {[LB_LEVEL_REF] = true,
                                 [LB_LEVEL_AVX2] = true,
                                 [LB_LEVEL_AVX512] = true,
                                 [LB_LEVEL_AVX512VNNI] = true},
        [LB_LEVEL_AMX] = {[LB_LEVEL_REF] = true,
                          [LB_LEVEL_AVX2] = true,
                          [LB_LEVEL_AVX512] = true,
                          [LB_LEVEL_AVX512VNNI] = true,
                          [LB_LEVEL_AMX] = true},
    };
    lb_level got;
    CHECK_EQ_I(lb_level_choose(NULL, best, &got), LB_CHOICE_OK);
    CHECK_EQ_I(got, best);
    CHECK_EQ_I(lb_level_choose("", best, &got), LB_CHOICE_OK);
    CHECK_EQ_I(got, best);
    CHECK_EQ_I(lb_level_choose("sse2", best, &got), LB_CHOICE_UNKNOWN);
    for (int l = 0; l < N_TABLE; l++) {
        const bool can = runs[best][l];
        CHECK_EQ_I(lb_level_included(table[l].level, best), can);
        CHECK_EQ_I(lb_level_choose(table[l].name, best, &got),
                   can ? LB_CHOICE_OK : LB_CHOICE_UNAVAILABLE);
        if (can) CHECK_EQ_I(got, table[l].level);
    }
    CHECK(!lb_level_included((lb_level)(LB_LEVEL_AMX + 1), best));
}

static const char *row_of(lb_level level, const lb_cpu_id *id)
{
    return lb_tuning_find(level, id->vendor, id->family, id->model)->family;
}

static void check_record(const struct cpuid_record *r)
{
    lb_cpuid a = cpuid_answers(r);
    const lb_cpu_info cpu = lb_cpu_from_cpuid(&a);
    const lb_cpu_id *id = &cpu.id;
    printf("%-38s %s 0x%x 0x%x: %s%s, %s\n", id->name, id->vendor,
           (unsigned)id->family, (unsigned)id->model, lb_level_name(cpu.best),
           cpu.vbmi ? " + vbmi" : "", row_of(cpu.best, id));
    CHECK_EQ_I(cpu.best, r->best);
    CHECK_EQ_I(cpu.vbmi, r->vbmi);
    CHECK(!cpu.dotprod);
    CHECK_EQ_I(id->family, r->family);
    CHECK_EQ_I(id->model, r->model);
    CHECK_EQ_S(row_of(cpu.best, id), r->tuning);
    CHECK_EQ_I(strlen(id->vendor), 12);
    const size_t n = strlen(id->name);
    CHECK(n > 0 && id->name[0] != ' ' && id->name[n - 1] != ' ');
    CHECK(!strncmp(r->brand, id->name, n));
    check_choices(cpu.best);
}

/* The level that remains if the operating system does not save all registers.
 */
static void check_systems(const struct cpuid_record *r)
{
    static const struct {
        uint32_t xcr0;
        lb_level most;
    } want[] = {
        {0x0, LB_LEVEL_REF},
        {0x1, LB_LEVEL_REF},
        {0x3, LB_LEVEL_REF},
        {0x5, LB_LEVEL_REF},
        {0xe3, LB_LEVEL_REF},
        {0x7, LB_LEVEL_AVX2},
        {0x27, LB_LEVEL_AVX2},
        {0xa7, LB_LEVEL_AVX2},
        {0xc7, LB_LEVEL_AVX2},
        /* one of the two parts of tiles, and both without zmm */
        {0x2e7, LB_LEVEL_AVX512VNNI},
        {0x202e7, LB_LEVEL_AVX512VNNI},
        {0x402e7, LB_LEVEL_AVX512VNNI},
        {0x60207, LB_LEVEL_AVX2},
    };
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        lb_cpuid a = cpuid_answers(r);
        a.xcr0 = want[i].xcr0;
        const lb_level most = want[i].most;
        const lb_cpu_info cpu = lb_cpu_from_cpuid(&a);
        CHECK_EQ_I(cpu.best, r->best < most ? r->best : most);
        CHECK_EQ_I(cpu.vbmi, r->vbmi && most >= LB_LEVEL_AVX512VNNI);
    }
}

/* A feature that is missing, as under a hypervisor that hides it, and leaves
 * above the highest one, whose content is undefined. */
static void check_missing(const struct cpuid_record *r)
{
    const struct {
        int leaf, reg, bit;
        lb_level most;
    } want[] = {
        {1, LB_ECX, 12, LB_LEVEL_REF},        /* FMA */
        {1, LB_ECX, 27, LB_LEVEL_REF},        /* OSXSAVE */
        {1, LB_ECX, 28, LB_LEVEL_REF},        /* AVX */
        {1, LB_ECX, 29, LB_LEVEL_REF},        /* F16C */
        {7, LB_EBX, 5, LB_LEVEL_REF},         /* AVX2 */
        {7, LB_EBX, 16, LB_LEVEL_AVX2},       /* AVX512F */
        {7, LB_EBX, 17, LB_LEVEL_AVX2},       /* AVX512DQ */
        {7, LB_EBX, 30, LB_LEVEL_AVX2},       /* AVX512BW */
        {7, LB_EBX, 31, LB_LEVEL_AVX2},       /* AVX512VL */
        {7, LB_ECX, 11, LB_LEVEL_AVX512},     /* AVX512_VNNI */
        {7, LB_EDX, 24, LB_LEVEL_AVX512VNNI}, /* AMX-TILE */
        {7, LB_EDX, 25, LB_LEVEL_AVX512VNNI}, /* AMX-INT8 */
    };
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        lb_cpuid a = cpuid_answers(r);
        uint32_t *leaf = want[i].leaf == 1 ? a.leaf1 : a.leaf7;
        leaf[want[i].reg] &= ~(UINT32_C(1) << want[i].bit);
        const lb_level most = want[i].most;
        const lb_cpu_info cpu = lb_cpu_from_cpuid(&a);
        CHECK_EQ_I(cpu.best, r->best < most ? r->best : most);
        CHECK_EQ_I(cpu.vbmi, r->vbmi && most >= LB_LEVEL_AVX512VNNI);
    }
    lb_cpuid a = cpuid_answers(r);
    a.leaf7[LB_ECX] &= ~UINT32_C(2);
    CHECK(!lb_cpu_from_cpuid(&a).vbmi);
    CHECK_EQ_I(lb_cpu_from_cpuid(&a).best, r->best);
    a.leaf0[LB_EAX] = 6;
    CHECK_EQ_I(lb_cpu_from_cpuid(&a).best, LB_LEVEL_REF);
    CHECK_EQ_I(lb_cpu_from_cpuid(&a).id.family, r->family);
    a.leaf0[LB_EAX] = 0;
    a.highest_extended = 0x80000003;
    const lb_cpu_id id = lb_cpu_from_cpuid(&a).id;
    CHECK(id.family == 0 && id.model == 0 && !*id.name);
    CHECK_EQ_I(strlen(id.vendor), 12);
}

/* The brand string may use all 48 characters, and begin with blanks. */
static void test_brand(void)
{
    lb_cpuid a = {.highest_extended = 0x80000004};
    memset(a.brand, 'x', sizeof a.brand);
    CHECK_EQ_I(strlen(lb_cpu_from_cpuid(&a).id.name), 48);
    memset(a.brand, ' ', sizeof a.brand);
    CHECK_EQ_S(lb_cpu_from_cpuid(&a).id.name, "");
    memcpy((char *)a.brand + 9, "a b", 3);
    CHECK_EQ_S(lb_cpu_from_cpuid(&a).id.name, "a b");
}

/* ---- recorded MIDR_EL1 -------------------------------------------------- */

static void test_midr(void)
{
    enum { CPUID = 1 << 11, ASIMDDP = 1 << 20 };
    static const struct {
        uint64_t midr, hwcap;
        int family, model;
        const char *tuning;
    } want[] = {
        /* Graviton 2 and Ampere Altra, Graviton 3, Graviton 4 */
        {0x413fd0c1, CPUID | ASIMDDP, 0x41, 0xd0c, "neoverse-n1"},
        {0x411fd401, CPUID | ASIMDDP, 0x41, 0xd40, "neoverse-v1"},
        {0x410fd4f1, CPUID | ASIMDDP, 0x41, 0xd4f, "neoverse-v2"},
        {0x611f0221, CPUID | ASIMDDP, 0x61, 0x022, "apple"}, /* M1, E-core */
        {0x611f0231, CPUID | ASIMDDP, 0x61, 0x023, "apple"}, /* M1, P-core */
        {0x611f0330, CPUID | ASIMDDP, 0x61, 0x033, "apple"}, /* M2 */
        {0xc00fac30, CPUID | ASIMDDP, 0xc0, 0xac3, "ampereone"},
        {0xc00fac40, CPUID | ASIMDDP, 0xc0, 0xac4, "ampereone"},
        {0x410fd034, CPUID, 0x41, 0xd03, "generic-neon"}, /* Cortex-A53 */
        {0x480fd010, CPUID | ASIMDDP, 0x48, 0xd01, "generic-neon"},
        {0x413fd0c1, ASIMDDP, 0, 0, "generic-neon"}, /* cannot be read */
        {0, 0, 0, 0, "generic-neon"},
    };
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        const lb_cpu_info cpu = lb_cpu_from_midr(want[i].midr, want[i].hwcap);
        CHECK_EQ_I(cpu.best, LB_LEVEL_NEON);
        CHECK_EQ_I(cpu.dotprod, (want[i].hwcap & ASIMDDP) != 0);
        CHECK(!cpu.vbmi);
        CHECK_EQ_S(cpu.id.vendor, "arm");
        CHECK_EQ_I(cpu.id.family, want[i].family);
        CHECK_EQ_I(cpu.id.model, want[i].model);
        CHECK_EQ_S(row_of(cpu.best, &cpu.id), want[i].tuning);
        CHECK_EQ_I(*cpu.id.name != 0, (want[i].hwcap & CPUID) != 0);
    }
    CHECK_EQ_S(lb_cpu_from_midr(0x413fd0c1, CPUID).id.name,
               "aarch64, implementer 0x41, part 0xd0c");
    check_choices(LB_LEVEL_NEON);
}

/* ---- tuning ------------------------------------------------------------- */

static void test_tuning(void)
{
    static const struct {
        lb_level level;
        const char *vendor;
        int family, model;
        const char *row;
    } want[] = {
        /* the ends of ranges of models */
        {LB_LEVEL_AVX2, "AuthenticAMD", 0x17, 0x01, "generic-avx2"}, /* Zen 1 */
        {LB_LEVEL_AVX2, "AuthenticAMD", 0x17, 0x2f, "generic-avx2"},
        {LB_LEVEL_AVX2, "AuthenticAMD", 0x17, 0x30, "zen2"},
        {LB_LEVEL_AVX2, "AuthenticAMD", 0x19, 0x0f, "zen3"},
        {LB_LEVEL_AVX512VNNI, "AuthenticAMD", 0x19, 0x10, "zen4"},
        {LB_LEVEL_AVX512VNNI, "AuthenticAMD", 0x19, 0x1f, "zen4"},
        {LB_LEVEL_AVX2, "AuthenticAMD", 0x19, 0x20, "zen3"},
        {LB_LEVEL_AVX2, "AuthenticAMD", 0x19, 0x5f, "zen3"},
        {LB_LEVEL_AVX512VNNI, "AuthenticAMD", 0x19, 0x60, "zen4"},
        {LB_LEVEL_AVX512VNNI, "AuthenticAMD", 0x19, 0xa0, "zen4"}, /* Bergamo */
        {LB_LEVEL_AVX512VNNI, "AuthenticAMD", 0x19, 0xb0, "generic-avx512"},
        {LB_LEVEL_AVX512VNNI, "AuthenticAMD", 0x1a, 0x50, "generic-avx512"},
        {LB_LEVEL_AVX512VNNI, "AuthenticAMD", 0x1b, 0x00, "generic-avx512"},
        {LB_LEVEL_AVX512VNNI, "GenuineIntel", 6, 0xae, "graniterapids"},
        {LB_LEVEL_AMX, "GenuineIntel", 6, 0xae, "graniterapids"},
        {LB_LEVEL_AMX, "GenuineIntel", 6, 0xdd, "generic-avx512"},
        {LB_LEVEL_AVX2, "GenuineIntel", 6, 0xba, "raptorlake"},
        {LB_LEVEL_AVX2, "GenuineIntel", 6, 0xb5, "arrowlake"},
        {LB_LEVEL_AVX2, "GenuineIntel", 6, 0x3c, "generic-avx2"}, /* Haswell */
        /* rows that were measured serve every level, others their usual one */
        {LB_LEVEL_AVX2, "GenuineIntel", 6, 0x6a, "icelake"},
        {LB_LEVEL_REF, "AuthenticAMD", 0x19, 0x01, "zen3"},
        {LB_LEVEL_AVX2, "AuthenticAMD", 0x19, 0x11, "generic-avx2"},
        {LB_LEVEL_REF, "AuthenticAMD", 0x1a, 0x02, "generic-ref"},
        {LB_LEVEL_AVX512, "AuthenticAMD", 0x1a, 0x02, "zen5"},
        {LB_LEVEL_REF, "arm", 0x41, 0xd0c, "generic-ref"},
        /* the same family and model of another vendor */
        {LB_LEVEL_AVX2, "GenuineIntel", 0x19, 0x01, "generic-avx2"},
        {LB_LEVEL_AVX2, "  Shanghai  ", 0x07, 0x3b, "generic-avx2"},
        {LB_LEVEL_REF, "", 0, 0, "generic-ref"},
    };
    for (size_t i = 0; i < sizeof want / sizeof *want; i++)
        CHECK_EQ_S(lb_tuning_find(want[i].level, want[i].vendor, want[i].family,
                                  want[i].model)
                       ->family,
                   want[i].row);
}

static bool same_values(const lb_tuning *a, const lb_tuning *b)
{
    return a->streams == b->streams && a->stream_gap == b->stream_gap &&
           a->prefetch == b->prefetch && a->bypass == b->bypass &&
           a->l2_gemm == b->l2_gemm && a->l2_x == b->l2_x;
}

static void test_rows(void)
{
    for (int l = 0; l < N_TABLE; l++) {
        const lb_tuning *t = lb_tuning_for(&(lb_cpu){.level = table[l].level});
        CHECK(!strncmp(t->family, "generic-", 8));
        const char *like =
            table[l].level == LB_LEVEL_AMX ? "avx512" : table[l].name;
        CHECK(!strncmp(t->family + 8, like, 4));
        const lb_tuning *own = lb_tuning_at(0);
        CHECK(lb_tuning_for(
                  &(lb_cpu){.level = table[l].level, .tuning = own}) == own);
    }
    int n = 0;
    for (; lb_tuning_at(n); n++) {
        const lb_tuning *t = lb_tuning_at(n);
        CHECK(t->family && *t->family);
        CHECK(t->streams >= 1 && t->streams <= 8);
        CHECK(t->streams == 1 || t->stream_gap % 64 == 0);
        CHECK(t->prefetch % 64 == 0);
        CHECK(t->bypass > 0 && t->l2_gemm > 0 && t->l2_x > 0);
        for (int k = 0; k < n; k++)
            CHECK(strcmp(t->family, lb_tuning_at(k)->family) != 0);
    }
    CHECK(n > 0 && !lb_tuning_at(-1));
    /* A family that was not measured repeats the generic row of its level. */
    const lb_tuning *zen4 =
        lb_tuning_find(LB_LEVEL_AVX512VNNI, "AuthenticAMD", 0x19, 0x11);
    CHECK(same_values(zen4,
                      lb_tuning_for(&(lb_cpu){.level = LB_LEVEL_AVX512VNNI})));
    const lb_tuning *zen2 =
        lb_tuning_find(LB_LEVEL_AVX2, "AuthenticAMD", 0x17, 0x31);
    CHECK(same_values(zen2, lb_tuning_for(&(lb_cpu){.level = LB_LEVEL_AVX2})));
}

/* ---- the CPU at hand ---------------------------------------------------- */

static void test_detect(void)
{
    const lb_cpu_info cpu = lb_cpu_detect();
    const lb_cpu_id *id = &cpu.id;
    printf("this CPU: \"%s\", %s family 0x%x model 0x%x: %s, %s\n", id->name,
           id->vendor, (unsigned)id->family, (unsigned)id->model,
           lb_level_name(cpu.best), row_of(cpu.best, id));
    CHECK(memchr(id->vendor, 0, sizeof id->vendor) != NULL);
    CHECK(memchr(id->name, 0, sizeof id->name) != NULL);
    for (const char *c = id->name; *c; c++)
        CHECK(isprint((unsigned char)*c));
    CHECK_EQ_I(lb_cpu_best(), cpu.best);
    CHECK_EQ_I(lb_cpu_has_vbmi(), cpu.vbmi);
    CHECK_EQ_I(lb_cpu_has_dotprod(), cpu.dotprod);
    CHECK(!cpu.vbmi || cpu.best >= LB_LEVEL_AVX512VNNI);
    CHECK(!cpu.dotprod || cpu.best == LB_LEVEL_NEON);
    for (int l = 0; l < N_TABLE; l++)
        CHECK_EQ_I(lb_level_available(table[l].level),
                   lb_level_included(table[l].level, cpu.best));
#if defined(__x86_64__)
    CHECK(cpu.best != LB_LEVEL_NEON);
    CHECK(id->family >= 6); /* every x86-64 */
#elif defined(__aarch64__)
    CHECK_EQ_I(cpu.best, LB_LEVEL_NEON);
#else
    CHECK_EQ_I(cpu.best, LB_LEVEL_REF);
#endif
}

int main(void)
{
    test_names();
    for (int i = 0; i < N_CPUID_RECORDS; i++) {
        check_record(&cpuid_records[i]);
        check_systems(&cpuid_records[i]);
        check_missing(&cpuid_records[i]);
    }
    test_brand();
    test_midr();
    test_tuning();
    test_rows();
    test_detect();
    return check_report("cpu");
}
