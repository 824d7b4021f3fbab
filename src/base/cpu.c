/* cpu.c - the levels of cpu.h, found by asking the CPU and the system.
 *
 * On x86 a level needs two answers: CPUID says that the instructions exist,
 * and XCR0 that the system saves their registers on a context switch (bits 1
 * and 2: xmm and ymm; 5 to 7: masks and zmm). Asked here, in one place, since
 * __builtin_cpu_supports does not know F16C in every compiler. NEON is part of
 * every aarch64.
 */
#include "base/cpu.h"

#include <stdio.h>
#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

#if defined(__x86_64__) && !defined(LB_SIMDE)

#define XCR0_YMM 0x06u
#define XCR0_ZMM 0xe6u

static bool has(unsigned reg, unsigned bits)
{
    return (reg & bits) == bits;
}

static lb_level best_x86(void)
{
    unsigned a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d)) return LB_LEVEL_REF;
    if (!has(c, bit_OSXSAVE | bit_AVX | bit_FMA | bit_F16C))
        return LB_LEVEL_REF;
    /* legal only where OSXSAVE is set */
    unsigned xcr0, xcr0_high;
    __asm__ volatile("xgetbv" : "=a"(xcr0), "=d"(xcr0_high) : "c"(0));
    (void)xcr0_high;
    if (!has(xcr0, XCR0_YMM)) return LB_LEVEL_REF;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return LB_LEVEL_REF;
    if (!has(b, bit_AVX2)) return LB_LEVEL_REF;
    if (!has(xcr0, XCR0_ZMM) ||
        !has(b, bit_AVX512F | bit_AVX512BW | bit_AVX512VL | bit_AVX512DQ))
        return LB_LEVEL_AVX2;
    return has(c, bit_AVX512VNNI) ? LB_LEVEL_AVX512VNNI : LB_LEVEL_AVX512;
}
#endif

bool lb_cpu_has_vbmi(void)
{
#if defined(LB_SIMDE)
    return true;
#elif defined(__x86_64__)
    unsigned a, b, c = 0, d;
    return best_x86() == LB_LEVEL_AVX512VNNI &&
           __get_cpuid_count(7, 0, &a, &b, &c, &d) && has(c, bit_AVX512VBMI);
#else
    return false;
#endif
}

bool lb_cpu_has_dotprod(void)
{
#if defined(__aarch64__)
    return getauxval(AT_HWCAP) & HWCAP_ASIMDDP;
#else
    return false;
#endif
}

/* By level. */
static const char *const names[] = {"ref", "neon", "avx2", "avx512",
                                    "avx512vnni"};
#define N_LEVELS ((int)(sizeof names / sizeof names[0]))

_Static_assert(LB_LEVEL_AVX512VNNI == sizeof names / sizeof names[0] - 1,
               "a name for every level");

lb_level lb_cpu_best(void)
{
#if defined(LB_SIMDE) /* for tests: all levels are emulated */
    return LB_LEVEL_AVX512VNNI;
#elif defined(__x86_64__)
    return best_x86();
#elif defined(__aarch64__)
    return LB_LEVEL_NEON;
#else
    return LB_LEVEL_REF;
#endif
}

const char *lb_level_name(lb_level level)
{
    const int i = (int)level;
    return i >= 0 && i < N_LEVELS ? names[i] : "unknown";
}

bool lb_level_parse(const char *name, lb_level *out)
{
    if (!name) return false;
    for (int i = 0; i < N_LEVELS; i++) {
        if (!strcmp(name, names[i])) {
            *out = (lb_level)i;
            return true;
        }
    }
    return false;
}

bool lb_level_available(lb_level level)
{
    if (level == LB_LEVEL_REF) return true;
    /* A stronger level includes the weaker ones of its own architecture. */
    const lb_level best = lb_cpu_best();
    const bool neon = level == LB_LEVEL_NEON;
    return level <= best && neon == (best == LB_LEVEL_NEON);
}

lb_level lb_level_without(lb_level level, uint64_t off)
{
    lb_level best = LB_LEVEL_REF;
    const int first = level == LB_LEVEL_NEON ? LB_LEVEL_NEON : LB_LEVEL_AVX2;
    for (int l = first; l <= (int)level && !(off >> l & 1); l++)
        best = (lb_level)l;
    return best;
}

/* ---- which CPU ---------------------------------------------------------- */

#if defined(__x86_64__)
/* The name is 48 characters in three leaves, padded with blanks in front or
 * behind. */
static void copy_name(char *to, size_t size)
{
    const unsigned first = 0x80000002;
    enum { LEAVES = 3, REGS = 4 };
    unsigned text[LEAVES * REGS + 1] = {0};
    for (unsigned i = 0; i < LEAVES; i++) {
        unsigned *r = text + REGS * i;
        if (!__get_cpuid(first + i, &r[0], &r[1], &r[2], &r[3])) return;
    }
    const char *begin = (const char *)text;
    while (*begin == ' ')
        begin++;
    size_t n = strlen(begin);
    while (n && begin[n - 1] == ' ')
        n--;
    snprintf(to, size, "%.*s", (int)n, begin);
}

static void identify(lb_cpu_id *id)
{
    unsigned a, b, c, d;
    if (!__get_cpuid(0, &a, &b, &c, &d)) return;
    const unsigned vendor[] = {b, d, c};
    memcpy(id->vendor, vendor, sizeof vendor);
    if (!__get_cpuid(1, &a, &b, &c, &d)) return;
    const int family = (int)(a >> 8 & 0xf), model = (int)(a >> 4 & 0xf);
    const int more_family = (int)(a >> 20 & 0xff);
    const int more_model = (int)(a >> 16 & 0xf);
    id->family = family == 0xf ? family + more_family : family;
    id->model = family == 0xf || family == 6 ? more_model << 4 | model : model;
    copy_name(id->name, sizeof id->name);
}
#elif defined(__aarch64__)
static void identify(lb_cpu_id *id)
{
    snprintf(id->vendor, sizeof id->vendor, "arm");
    if (!(getauxval(AT_HWCAP) & HWCAP_CPUID)) return;
    uint64_t midr; /* the system answers for it */
    __asm__("mrs %0, midr_el1" : "=r"(midr));
    id->family = (int)(midr >> 24 & 0xff);
    id->model = (int)(midr >> 4 & 0xfff);
    snprintf(id->name, sizeof id->name,
             "aarch64, implementer 0x%02x, part 0x%03x", id->family, id->model);
}
#else
static void identify(lb_cpu_id *id)
{
    (void)id;
}
#endif

lb_cpu_id lb_cpu_identify(void)
{
    lb_cpu_id id = {.family = 0};
    identify(&id);
    return id;
}
