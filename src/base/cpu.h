/* cpu.h - which instruction-set level this machine and its system allow. */
#ifndef LB_CPU_H
#define LB_CPU_H

#include <stdbool.h>
#include <stdint.h>

#include "lowbit_ext.h"

/* The strongest level the CPU has and the OS saves registers for. */
lb_level lb_cpu_best(void);
/* "ref", "neon", "avx2", "avx512", "avx512vnni"; static. */
const char *lb_level_name(lb_level level);
/* False if the name is not one of them. */
bool lb_level_parse(const char *name, lb_level *out);
/* True if level can run here (a level of another architecture cannot). */
bool lb_level_available(lb_level level);
/* The strongest level that level includes (itself too) when those of off, bit
 * l for level l, may not be run: what includes one of them may not either. */
lb_level lb_level_without(lb_level level, uint64_t off);
/* Whether the CPU has, with AVX-512 and VNNI, also VBMI (vpermb). */
bool lb_cpu_has_vbmi(void);
/* Whether the CPU has, with NEON, also sdot and udot. */
bool lb_cpu_has_dotprod(void);

/* Who made the CPU and which one it is. On x86 as CPUID has it, the extended
 * family and model added; on aarch64 vendor is "arm", family the implementer
 * and model the part of MIDR_EL1. What is not known is 0 or "". */
typedef struct lb_cpu_id {
    char vendor[16]; /* "AuthenticAMD", "GenuineIntel" */
    int family, model;
    char name[64]; /* what it calls itself */
} lb_cpu_id;
lb_cpu_id lb_cpu_identify(void);

#endif
