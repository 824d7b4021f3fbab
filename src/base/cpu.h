/* cpu.h - which CPU this is and which instruction-set levels it can run.
 *
 * Reading the CPU (lb_cpu_detect) is separate from interpreting what was read
 * (lb_cpu_from_cpuid, lb_cpu_from_midr), so that tests can pass the recorded
 * answers of any CPU.
 */
#ifndef LB_CPU_H
#define LB_CPU_H

#include <stdbool.h>
#include <stdint.h>

#include "lowbit_ext.h"

/* ---- identification ----------------------------------------------------- */

/* Vendor, family and model. x86: as in CPUID, with the extended family and
 * model added. aarch64: vendor is "arm", family the implementer and model the
 * part number of MIDR_EL1. Unknown fields are 0 or "". */
typedef struct lb_cpu_id {
    char vendor[16]; /* "AuthenticAMD", "GenuineIntel", "arm" */
    int family, model;
    char name[64]; /* the CPU's own name, without leading or trailing blanks */
} lb_cpu_id;

typedef struct lb_cpu_info {
    lb_cpu_id id;
    lb_level best; /* the strongest level that the CPU has and whose registers
                    * the operating system saves */
    bool vbmi;     /* AVX-512 VBMI (vpermb); only with avx512vnni, amx */
    bool dotprod;  /* sdot and udot; only with best = neon */
} lb_cpu_info;

/* Indices of registers in an answer of CPUID. */
enum { LB_EAX, LB_EBX, LB_ECX, LB_EDX, LB_CPUID_REGS };

/* Answers of CPUID, by leaf, and the low half of XCR0. Leaves above the
 * highest one (EAX of leaf 0 and of 0x80000000) may hold anything; xcr0 is 0
 * where OSXSAVE (leaf 1) is not set. */
typedef struct lb_cpuid {
    uint32_t leaf0[LB_CPUID_REGS];
    uint32_t leaf1[LB_CPUID_REGS];
    uint32_t leaf7[LB_CPUID_REGS];     /* subleaf 0 */
    uint32_t highest_extended;         /* EAX of 0x80000000 */
    uint32_t brand[3 * LB_CPUID_REGS]; /* 0x80000002 to 0x80000004 */
    uint32_t xcr0;
} lb_cpuid;

lb_cpu_info lb_cpu_from_cpuid(const lb_cpuid *answers);
/* midr: MIDR_EL1, ignored without HWCAP_CPUID; hwcap: AT_HWCAP of Linux. */
lb_cpu_info lb_cpu_from_midr(uint64_t midr, uint64_t hwcap);
/* The CPU that this program runs on. */
lb_cpu_info lb_cpu_detect(void);

/* Single fields of lb_cpu_detect(). */
lb_level lb_cpu_best(void);
bool lb_cpu_has_vbmi(void);
bool lb_cpu_has_dotprod(void);

/* ---- levels ------------------------------------------------------------- */

/* "ref", "neon", "avx2", "avx512", "avx512vnni", "amx"; static. */
const char *lb_level_name(lb_level level);
/* False if the name is not one of them. */
bool lb_level_parse(const char *name, lb_level *out);
/* True if a CPU whose best level is `best` can run level: levels include the
 * weaker ones of the same architecture, and ref. */
bool lb_level_included(lb_level level, lb_level best);
/* The same for the CPU that this program runs on. */
bool lb_level_available(lb_level level);

typedef enum lb_level_choice {
    LB_CHOICE_OK,
    LB_CHOICE_UNKNOWN,    /* no level has this name */
    LB_CHOICE_UNAVAILABLE /* the CPU cannot run it */
} lb_level_choice;
/* Applies a user's choice, such as LOWBIT_ISA: *out is the level of that name,
 * or best if name is NULL or "". */
lb_level_choice lb_level_choose(const char *name, lb_level best, lb_level *out);

/* The level, or the one below it if the operating system refuses to let this
 * process use its registers (those of amx). The first call for amx asks for
 * them, which cannot be undone: only for a level that will be used. */
lb_level lb_level_permitted(lb_level level);

/* The strongest level included in level (possibly itself) that does not
 * include any level in `off`, where bit l stands for level l. */
lb_level lb_level_without(lb_level level, uint64_t off);

#endif
