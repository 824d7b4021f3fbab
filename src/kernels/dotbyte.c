/* dotbyte.c - which kernel a level has. */
#include "kernels/dotbyte.h"

static const struct {
    lb_level level;
    const lb_dotbyte *kernel;
    bool stronger; /* than its level: serves those above as well */
    bool dotprod;  /* the CPU must have it */
} kernels[] = {
#if defined(__x86_64__)
    {LB_LEVEL_AMX, &lb_dotbyte_amx, true, false},
    {LB_LEVEL_AVX512VNNI, &lb_dotbyte_vnni, true, false},
    {LB_LEVEL_AVX2, &lb_dotbyte_avx2, true, false},
#elif defined(__aarch64__)
    {LB_LEVEL_NEON, &lb_dotbyte_dotprod, false, true},
#endif
    {LB_LEVEL_REF, &lb_dotbyte_ref, false, false},
};

const lb_dotbyte *lb_dotbyte_for(const lb_cpu *cpu, int most_w, bool along)
{
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++) {
        const lb_dotbyte *k = kernels[i].kernel;
        if (kernels[i].stronger ? cpu->level < kernels[i].level
                                : cpu->level != kernels[i].level)
            continue;
        if (kernels[i].dotprod && !cpu->dotprod) continue;
        if (most_w <= k->most_w && (along || k->across)) return k;
    }
    return NULL;
}

const lb_dotbyte *lb_dotword_for(const lb_cpu *cpu)
{
#if defined(__x86_64__)
    if (cpu->level >= LB_LEVEL_AMX) return &lb_dotword_amx;
    if (cpu->level >= LB_LEVEL_AVX512VNNI) return &lb_dotword_vnni;
#endif
    (void)cpu;
    return NULL;
}

const lb_dotbyte *lb_dotword_any(const lb_cpu *cpu)
{
#if defined(__x86_64__)
    if (cpu->level >= LB_LEVEL_AMX) return &lb_dotword_amx;
    if (cpu->level >= LB_LEVEL_AVX512VNNI) return &lb_dotword_vnni;
    if (cpu->level >= LB_LEVEL_AVX2) return &lb_dotword_avx2;
#endif
    return cpu->level == LB_LEVEL_REF ? &lb_dotword_ref : NULL;
}

const lb_dotbyte *lb_dotlines_for(const lb_cpu *cpu)
{
#if defined(__x86_64__)
    if (cpu->level >= LB_LEVEL_AVX512VNNI) return &lb_dotlines_vnni;
#endif
    (void)cpu;
    return NULL;
}
