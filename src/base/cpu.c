/* cpu.c - reads and interprets CPUID, XCR0, MIDR_EL1 and AT_HWCAP.
 *
 * On x86 a level needs both the instructions (CPUID) and an operating system
 * that saves their registers on a context switch (XCR0, bits 1 and 2: xmm and
 * ymm; 5 to 7: mask registers and zmm; 17 and 18: tiles, which a process has to
 * ask for as well). The compiler's detection is not used:
 * it knows only CPUs that are older than the compiler, and not F16C everywhere.
 * NEON is part of every aarch64.
 */
#include "base/cpu.h"

#include <stdio.h>
#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#elif defined(__aarch64__)
#include <sys/auxv.h>
#endif

/* ---- interpretation ----------------------------------------------------- */

/* Leaf 1, ECX */
#define CPUID_FMA     (1u << 12)
#define CPUID_OSXSAVE (1u << 27)
#define CPUID_AVX     (1u << 28)
#define CPUID_F16C    (1u << 29)
/* Leaf 7, EBX */
#define CPUID_AVX2     (1u << 5)
#define CPUID_AVX512F  (1u << 16)
#define CPUID_AVX512DQ (1u << 17)
#define CPUID_AVX512BW (1u << 30)
#define CPUID_AVX512VL (1u << 31)
/* Leaf 7, ECX */
#define CPUID_AVX512VBMI (1u << 1)
#define CPUID_AVX512VNNI (1u << 11)
/* Leaf 7, EDX */
#define CPUID_AMX_TILE (1u << 24)
#define CPUID_AMX_INT8 (1u << 25)

#define XCR0_YMM  0x06u
#define XCR0_ZMM  0xe6u
#define XCR0_TILE 0x60000u

/* AT_HWCAP of aarch64 Linux */
#define ARM_CPUID   (UINT64_C(1) << 11) /* MIDR_EL1 can be read */
#define ARM_ASIMDDP (UINT64_C(1) << 20)

static bool has(uint32_t reg, uint32_t bits)
{
    return (reg & bits) == bits;
}

static lb_level best_x86(const lb_cpuid *a)
{
    if (a->leaf0[LB_EAX] < 7) return LB_LEVEL_REF;
    const uint32_t ebx = a->leaf7[LB_EBX], ecx = a->leaf7[LB_ECX];
    if (!has(a->leaf1[LB_ECX],
             CPUID_OSXSAVE | CPUID_AVX | CPUID_FMA | CPUID_F16C) ||
        !has(ebx, CPUID_AVX2) || !has(a->xcr0, XCR0_YMM))
        return LB_LEVEL_REF;
    if (!has(ebx, CPUID_AVX512F | CPUID_AVX512BW | CPUID_AVX512VL |
                      CPUID_AVX512DQ) ||
        !has(a->xcr0, XCR0_ZMM))
        return LB_LEVEL_AVX2;
    if (!has(ecx, CPUID_AVX512VNNI)) return LB_LEVEL_AVX512;
    /* Leaf 0x1d has the sizes of tiles, but some hypervisors answer it with
     * zeros: palette 1 is used, eight tiles of 16 rows of 64 bytes. */
    return has(a->leaf7[LB_EDX], CPUID_AMX_TILE | CPUID_AMX_INT8) &&
                   has(a->xcr0, XCR0_TILE)
               ? LB_LEVEL_AMX
               : LB_LEVEL_AVX512VNNI;
}

/* The brand string has 48 characters, padded with blanks or zeros on either
 * side. */
static void copy_name(const lb_cpuid *a, char *to, size_t size)
{
    char text[sizeof a->brand + 1] = {0};
    if (a->highest_extended < 0x80000004) return;
    memcpy(text, a->brand, sizeof a->brand);
    const char *begin = text + strspn(text, " ");
    size_t n = strlen(begin);
    while (n && begin[n - 1] == ' ')
        n--;
    snprintf(to, size, "%.*s", (int)n, begin);
}

lb_cpu_info lb_cpu_from_cpuid(const lb_cpuid *a)
{
    lb_cpu_info cpu = {.best = best_x86(a)};
    const uint32_t vendor[] = {a->leaf0[LB_EBX], a->leaf0[LB_EDX],
                               a->leaf0[LB_ECX]};
    memcpy(cpu.id.vendor, vendor, sizeof vendor);
    if (a->leaf0[LB_EAX] >= 1) {
        const uint32_t eax = a->leaf1[LB_EAX];
        const int family = (int)(eax >> 8 & 0xf), model = (int)(eax >> 4 & 0xf);
        const int more_family = (int)(eax >> 20 & 0xff);
        const int more_model = (int)(eax >> 16 & 0xf);
        cpu.id.family = family == 0xf ? family + more_family : family;
        cpu.id.model =
            family == 0xf || family == 6 ? more_model << 4 | model : model;
    }
    copy_name(a, cpu.id.name, sizeof cpu.id.name);
    cpu.vbmi = cpu.best >= LB_LEVEL_AVX512VNNI &&
               has(a->leaf7[LB_ECX], CPUID_AVX512VBMI);
    return cpu;
}

lb_cpu_info lb_cpu_from_midr(uint64_t midr, uint64_t hwcap)
{
    lb_cpu_info cpu = {.id = {.vendor = "arm"}, .best = LB_LEVEL_NEON};
    cpu.dotprod = hwcap & ARM_ASIMDDP;
    if (!(hwcap & ARM_CPUID)) return cpu;
    lb_cpu_id *id = &cpu.id;
    id->family = (int)(midr >> 24 & 0xff);
    id->model = (int)(midr >> 4 & 0xfff);
    snprintf(id->name, sizeof id->name,
             "aarch64, implementer 0x%02x, part 0x%03x", (unsigned)id->family,
             (unsigned)id->model);
    return cpu;
}

/* ---- this CPU ----------------------------------------------------------- */

#if defined(__x86_64__)
static void ask(uint32_t leaf, uint32_t *to)
{
    unsigned a, b, c, d;
    __cpuid_count(leaf, 0, a, b, c, d);
    const uint32_t got[] = {a, b, c, d};
    memcpy(to, got, sizeof got);
}

lb_cpu_info lb_cpu_detect(void)
{
    lb_cpuid a = {.xcr0 = 0};
    uint32_t extended[LB_CPUID_REGS];
    ask(0, a.leaf0);
    ask(1, a.leaf1);
    ask(7, a.leaf7);
    ask(0x80000000, extended);
    a.highest_extended = extended[LB_EAX];
    for (uint32_t i = 0; i < 3; i++)
        ask(0x80000002 + i, a.brand + LB_CPUID_REGS * i);
    if (has(a.leaf1[LB_ECX], CPUID_OSXSAVE)) { /* else an illegal instruction */
        unsigned high;
        __asm__ volatile("xgetbv" : "=a"(a.xcr0), "=d"(high) : "c"(0));
        (void)high;
    }
    lb_cpu_info cpu = lb_cpu_from_cpuid(&a);
#if defined(LB_SIMDE) /* for tests: all levels are emulated */
    cpu.best = LB_LEVEL_AMX;
    cpu.vbmi = true;
#elif defined(LB_AMX_MODEL) /* the same of tiles alone */
    if (cpu.best == LB_LEVEL_AVX512VNNI) cpu.best = LB_LEVEL_AMX;
#endif
    return cpu;
}
#elif defined(__aarch64__)
lb_cpu_info lb_cpu_detect(void)
{
    const uint64_t hwcap = getauxval(AT_HWCAP);
    uint64_t midr = 0;
    /* The kernel traps the access and answers it. */
    if (hwcap & ARM_CPUID) __asm__("mrs %0, midr_el1" : "=r"(midr));
    return lb_cpu_from_midr(midr, hwcap);
}
#else
lb_cpu_info lb_cpu_detect(void)
{
    return (lb_cpu_info){.best = LB_LEVEL_REF};
}
#endif

/* Linux enables tile registers for processes that ask for them; ENOMEM: an
 * alternate signal stack is too small for them. */
static bool may_use_tiles(void)
{
#if defined(LB_SIMDE) || defined(LB_AMX_MODEL)
    return true;
#elif defined(__x86_64__) && defined(SYS_arch_prctl)
    enum { REQ_XCOMP_PERM = 0x1023, XTILEDATA = 18 };
    return syscall(SYS_arch_prctl, REQ_XCOMP_PERM, XTILEDATA) == 0;
#else
    return false;
#endif
}

lb_level lb_level_permitted(lb_level level)
{
    return level < LB_LEVEL_AMX || may_use_tiles() ? level
                                                   : LB_LEVEL_AVX512VNNI;
}

lb_level lb_cpu_best(void)
{
    return lb_cpu_detect().best;
}

bool lb_cpu_has_vbmi(void)
{
    return lb_cpu_detect().vbmi;
}

bool lb_cpu_has_dotprod(void)
{
    return lb_cpu_detect().dotprod;
}

/* ---- levels ------------------------------------------------------------- */

/* By level. */
static const char *const names[] = {"ref",    "neon",       "avx2",
                                    "avx512", "avx512vnni", "amx"};
#define N_LEVELS ((int)(sizeof names / sizeof names[0]))

_Static_assert(LB_LEVEL_AMX == sizeof names / sizeof names[0] - 1,
               "a name for every level");

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

bool lb_level_included(lb_level level, lb_level best)
{
    if (level == LB_LEVEL_REF) return true;
    const bool neon = level == LB_LEVEL_NEON;
    return level <= best && neon == (best == LB_LEVEL_NEON);
}

bool lb_level_available(lb_level level)
{
    return lb_level_included(level, lb_cpu_best());
}

lb_level_choice lb_level_choose(const char *name, lb_level best, lb_level *out)
{
    *out = best;
    if (!name || !*name) return LB_CHOICE_OK;
    if (!lb_level_parse(name, out)) return LB_CHOICE_UNKNOWN;
    return lb_level_included(*out, best) ? LB_CHOICE_OK : LB_CHOICE_UNAVAILABLE;
}

lb_level lb_level_without(lb_level level, uint64_t off)
{
    lb_level best = LB_LEVEL_REF;
    const int first = level == LB_LEVEL_NEON ? LB_LEVEL_NEON : LB_LEVEL_AVX2;
    for (int l = first; l <= (int)level && !(off >> l & 1); l++)
        best = (lb_level)l;
    return best;
}
