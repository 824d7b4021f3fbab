/* cpuid_records.h - recorded CPUID answers of real CPUs, and expected results.
 *
 * From the CPUID dumps of the InstLatx64 collection. They do not contain XCR0:
 * the supported bits of leaf 0xd are used, as if the operating system had
 * enabled them all.
 */
#ifndef LB_CPUID_RECORDS_H
#define LB_CPUID_RECORDS_H

#include <string.h>

#include "base/cpu.h"

/* clang-format off */
static const struct cpuid_record {
    char brand[48]; /* leaves 0x80000002 to 0x80000004, with their padding */
    uint32_t leaf0[4], leaf1[4], leaf7[4], highest_extended, xcr0;
    /* expected */
    lb_level best;
    bool vbmi;
    int family, model;
    const char *tuning;
} cpuid_records[] = {
    {"AMD Ryzen Threadripper PRO 3975WX 32-Cores     ",
     {0x00000010, 0x68747541, 0x444d4163, 0x69746e65},
     {0x00830f10, 0x00400800, 0x7ed8320b, 0x178bfbff},
     {0x00000000, 0x219c91a9, 0x00400004, 0x00000000},
     0x80000020, 0x00000207,
     LB_LEVEL_AVX2, false, 0x17, 0x31, "zen2"},
    {"AMD Ryzen 9 PRO 3900 12-Core Processor         ",
     {0x00000010, 0x68747541, 0x444d4163, 0x69746e65},
     {0x00870f10, 0x00180800, 0x7ed8320b, 0x178bfbff},
     {0x00000000, 0x219c91a9, 0x00400004, 0x00000000},
     0x80000020, 0x00000207,
     LB_LEVEL_AVX2, false, 0x17, 0x71, "zen2"},
    {"AMD EPYC 7713 64-Core Processor                ",
     {0x00000010, 0x68747541, 0x444d4163, 0x69746e65},
     {0x00a00f11, 0x00800800, 0x7eda320b, 0x178bfbff},
     {0x00000000, 0x219c97a9, 0x0040068c, 0x00000010},
     0x80000023, 0x00000207,
     LB_LEVEL_AVX2, false, 0x19, 0x01, "zen3"},
    {"AMD Ryzen 9 5950X 16-Core Processor            ",
     {0x00000010, 0x68747541, 0x444d4163, 0x69746e65},
     {0x00a20f10, 0x00200800, 0x7ed8320b, 0x178bfbff},
     {0x00000000, 0x219c97a9, 0x0040068c, 0x00000010},
     0x80000023, 0x00000207,
     LB_LEVEL_AVX2, false, 0x19, 0x21, "zen3"},
    {"AMD Ryzen 7 5800H with Radeon Graphics         ",
     {0x00000010, 0x68747541, 0x444d4163, 0x69746e65},
     {0x00a50f00, 0x00100800, 0x7ed8320b, 0x178bfbff},
     {0x00000000, 0x219c97a9, 0x0040068c, 0x00000010},
     0x80000023, 0x00000207,
     LB_LEVEL_AVX2, false, 0x19, 0x50, "zen3"},
    {"AMD EPYC 9654 96-Core Processor                ",
     {0x00000010, 0x68747541, 0x444d4163, 0x69746e65},
     {0x00a10f11, 0x00c00800, 0x7efa320b, 0x178bfbff},
     {0x00000001, 0xf1bf97a9, 0x00415fce, 0x10000010},
     0x80000028, 0x000002e7,
     LB_LEVEL_AVX512VNNI, true, 0x19, 0x11, "zen4"},
    {"AMD Ryzen 5 7600X 6-Core Processor             ",
     {0x00000010, 0x68747541, 0x444d4163, 0x69746e65},
     {0x00a60f12, 0x000c0800, 0x7ef8320b, 0x178bfbff},
     {0x00000001, 0xf1bf97a9, 0x00405fce, 0x10000010},
     0x80000028, 0x000002e7,
     LB_LEVEL_AVX512VNNI, true, 0x19, 0x61, "zen4"},
    {"AMD Ryzen 9 7940H w/ Radeon 780M Graphics     ",
     {0x00000010, 0x68747541, 0x444d4163, 0x69746e65},
     {0x00a70f41, 0x00100800, 0x7ef8320b, 0x178bfbff},
     {0x00000001, 0xf1bf97a9, 0x00405fce, 0x10000000},
     0x80000028, 0x000002e7,
     LB_LEVEL_AVX512VNNI, true, 0x19, 0x74, "zen4"},
    {"AMD EPYC 9655 96-Core Processor                ",
     {0x00000010, 0x68747541, 0x444d4163, 0x69746e65},
     {0x00b00f21, 0x00400800, 0x7efa320b, 0x178bfbff},
     {0x00000001, 0xf1bf97ab, 0x19415fce, 0x10000110},
     0x80000028, 0x000002e7,
     LB_LEVEL_AVX512VNNI, true, 0x1a, 0x02, "zen5"},
    {"AMD Ryzen AI 9 HX 370 w/ Radeon 890M           ",
     {0x00000010, 0x68747541, 0x444d4163, 0x69746e65},
     {0x00b20f40, 0x00180800, 0x7ed8320b, 0x178bfbff},
     {0x00000001, 0xf1bf97ab, 0x19405fce, 0x10000110},
     0x80000028, 0x000002e7,
     LB_LEVEL_AVX512VNNI, true, 0x1a, 0x24, "zen5"},
    {"AMD Ryzen 9 9950X 16-Core Processor            ",
     {0x00000010, 0x68747541, 0x444d4163, 0x69746e65},
     {0x00b40f40, 0x00200800, 0x7ed8320b, 0x178bfbff},
     {0x00000001, 0xf1bf97ab, 0x19405fce, 0x10000110},
     0x80000028, 0x000002e7,
     LB_LEVEL_AVX512VNNI, true, 0x1a, 0x44, "zen5"},
    {"Intel(R) Core(TM) i9-7900X CPU @ 3.30GHz",
     {0x00000016, 0x756e6547, 0x6c65746e, 0x49656e69},
     {0x00050654, 0x00200800, 0x7ffefbbf, 0xbfebfbff},
     {0x00000000, 0xd39ffffb, 0x00000000, 0x00000000},
     0x80000008, 0x000000ff,
     LB_LEVEL_AVX512, false, 6, 0x55, "skylakex"},
    {"Intel(R) Xeon(R) Gold 5215 CPU @ 2.50GHz",
     {0x00000016, 0x756e6547, 0x6c65746e, 0x49656e69},
     {0x00050657, 0x00200800, 0x7ffefbff, 0xbfebfbff},
     {0x00000000, 0xd39ffffb, 0x00000808, 0xbc000400},
     0x80000008, 0x000002ff,
     LB_LEVEL_AVX512VNNI, false, 6, 0x55, "skylakex"},
    {"Intel(R) Xeon(R) Gold 6330 CPU @ 2.00GHz",
     {0x0000001b, 0x756e6547, 0x6c65746e, 0x49656e69},
     {0x000606a6, 0x00800800, 0x7ffefbff, 0xbfebfbff},
     {0x00000000, 0xf3bfbfff, 0x40417f4e, 0xbc040412},
     0x80000008, 0x000002e7,
     LB_LEVEL_AVX512VNNI, true, 6, 0x6a, "icelake"},
    {"Intel(R) Core(TM) i7-1065G7 CPU @ 1.30GHz",
     {0x0000001b, 0x756e6547, 0x6c65746e, 0x49656e69},
     {0x000706e5, 0x00100800, 0x7ffafbbf, 0xbfebfbff},
     {0x00000000, 0xf2bf27ef, 0x40405f4e, 0xbc000410},
     0x80000008, 0x000002e7,
     LB_LEVEL_AVX512VNNI, true, 6, 0x7e, "icelake"},
    {"Intel(R) Xeon(R) w7-2475X",
     {0x00000020, 0x756e6547, 0x6c65746e, 0x49656e69},
     {0x000806f8, 0x00800800, 0x7ffefbff, 0xbfebfbff},
     {0x00000002, 0xf3bfbffb, 0xbb417fee, 0xffdd4430},
     0x80000008, 0x000602e7,
     LB_LEVEL_AMX, true, 6, 0x8f, "sapphirerapids"},
    {"INTEL(R) XEON(R) GOLD 5520+",
     {0x00000020, 0x756e6547, 0x6c65746e, 0x49656e69},
     {0x000c06f2, 0x00800800, 0x7ffefbff, 0xbfebfbff},
     {0x00000002, 0xf3bfbfff, 0xfb417fee, 0xffdd4432},
     0x80000008, 0x000602e7,
     LB_LEVEL_AMX, true, 6, 0xcf, "emeraldrapids"},
    {"Intel(R) Xeon(R) 658X",
     {0x00000024, 0x756e6547, 0x6c65746e, 0x49656e69},
     {0x000a06d1, 0x00800800, 0x7ffefbff, 0xbfebfbff},
     {0x00000002, 0xf3bfbffb, 0xbb417fee, 0xffdd4430},
     0x80000008, 0x000602e7,
     LB_LEVEL_AMX, true, 6, 0xad, "graniterapids"},
    {"12th Gen Intel(R) Core(TM) i9-12900K",
     {0x00000020, 0x756e6547, 0x6c65746e, 0x49656e69},
     {0x00090672, 0x00800800, 0x7ffafbff, 0xbfebfbff},
     {0x00000001, 0xf3bfa7eb, 0x98c07fee, 0xfc9cc510},
     0x80000008, 0x000002e7,
     LB_LEVEL_AVX512VNNI, true, 6, 0x97, "generic-avx512"}, /* E-cores off */
    {"12th Gen Intel(R) Core(TM) i9-12900H",
     {0x00000020, 0x756e6547, 0x6c65746e, 0x49656e69},
     {0x000906a3, 0x00800800, 0x7ffafbff, 0xbfebfbff},
     {0x00000001, 0x239ca7eb, 0x98c027ac, 0xfc1cc410},
     0x80000008, 0x00000207,
     LB_LEVEL_AVX2, false, 6, 0x9a, "alderlake"},
    {"13th Gen Intel(R) Core(TM) i9-13900K",
     {0x00000020, 0x756e6547, 0x6c65746e, 0x49656e69},
     {0x000b0671, 0x00800800, 0x7ffafbff, 0xbfebfbff},
     {0x00000002, 0x239c27eb, 0x98c027ac, 0xfc1cc410},
     0x80000008, 0x00000207,
     LB_LEVEL_AVX2, false, 6, 0xb7, "raptorlake"},
    {"Intel(R) Core(TM) Ultra 5 245K",
     {0x00000023, 0x756e6547, 0x6c65746e, 0x49656e69},
     {0x000c0662, 0x00800800, 0x7ffafbff, 0xbfebfbff},
     {0x00000002, 0x239ca7eb, 0x994027ac, 0xfc18c430},
     0x80000008, 0x00000207,
     LB_LEVEL_AVX2, false, 6, 0xc6, "arrowlake"},
    {"Intel(R) Core(TM) Ultra 9 285H",
     {0x00000023, 0x756e6547, 0x6c65746e, 0x49656e69},
     {0x000c0652, 0x00800800, 0x7ffafbff, 0xbfebfbff},
     {0x00000002, 0x239c27eb, 0x994027ac, 0xfc1cc430},
     0x80000008, 0x00000207,
     LB_LEVEL_AVX2, false, 6, 0xc5, "arrowlake"},
    {"Hygon C86 3185  8-core Processor               ",
     {0x0000000d, 0x6f677948, 0x656e6975, 0x6e65476e},
     {0x00900f02, 0x00100800, 0x74d83209, 0x178bfbff},
     {0x00000000, 0x009c01a9, 0x00000000, 0x00000000},
     0x8000001f, 0x00000007,
     LB_LEVEL_REF, false, 0x18, 0x00, "generic-ref"}, /* OSXSAVE is off */
    {"Hygon C86 3350  8-core Processor               ", /* unknown vendor */
     {0x0000000d, 0x6f677948, 0x656e6975, 0x6e65476e},
     {0x00900f22, 0x00100800, 0x7ed8320b, 0x178bfbff},
     {0x00000000, 0x209c01a9, 0x00000000, 0x00000000},
     0x8000001f, 0x00000007,
     LB_LEVEL_AVX2, false, 0x18, 0x02, "generic-avx2"},
    {"Quad-Core AMD Opteron(tm) Processor 2378",
     {0x00000005, 0x68747541, 0x444d4163, 0x69746e65},
     {0x00100f42, 0x00040800, 0x00802009, 0x178bfbff},
     {0x00000000, 0x00000000, 0x00000000, 0x00000000},
     0x8000001b, 0x00000000,
     LB_LEVEL_REF, false, 0x10, 0x04, "generic-ref"},
};
/* clang-format on */
enum { N_CPUID_RECORDS = sizeof cpuid_records / sizeof *cpuid_records };

/* The answers in the form that lb_cpu_from_cpuid takes. */
static inline lb_cpuid cpuid_answers(const struct cpuid_record *r)
{
    lb_cpuid a = {.highest_extended = r->highest_extended, .xcr0 = r->xcr0};
    memcpy(a.leaf0, r->leaf0, sizeof a.leaf0);
    memcpy(a.leaf1, r->leaf1, sizeof a.leaf1);
    memcpy(a.leaf7, r->leaf7, sizeof a.leaf7);
    memcpy(a.brand, r->brand, sizeof a.brand);
    return a;
}

#endif
