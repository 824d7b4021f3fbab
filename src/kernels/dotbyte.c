/* dotbyte.c - which kernel a level has. */
#include "kernels/dotbyte.h"

#include "kernels/dotlut.h"

static const struct {
    lb_level level;
    const lb_dotbyte *kernel;
    bool stronger; /* than its level: serves those above as well */
    bool dotprod;  /* the CPU must have it */
    bool signs;    /* only for such weights (lb_dotbyte_need) */
} kernels[] = {
#if defined(__x86_64__)
    {LB_LEVEL_AMX, &lb_dotbyte_amx, true, false, false},
    {LB_LEVEL_AVX512VNNI, &lb_dotbyte_vnni, true, false, false},
    {LB_LEVEL_AVX2, &lb_dotlut_avx2, true, false, true},
    {LB_LEVEL_AVX2, &lb_dotbyte_avx2, true, false, false},
    {LB_LEVEL_AVX2, &lb_dotwide_avx2, true, false, false},
#elif defined(__aarch64__)
    {LB_LEVEL_NEON, &lb_dotbyte_dotprod, false, true, false},
#endif
    {LB_LEVEL_REF, &lb_dotbyte_ref, false, false, false},
};

const lb_dotbyte *lb_dotbyte_for(const lb_cpu *cpu, const lb_dotbyte_need *n)
{
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++) {
        const lb_dotbyte *k = kernels[i].kernel;
        if (kernels[i].stronger ? cpu->level < kernels[i].level
                                : cpu->level != kernels[i].level)
            continue;
        if (kernels[i].dotprod && !cpu->dotprod) continue;
        if (kernels[i].signs && !n->signs) continue;
        if (n->most_w <= k->most_w && (n->along || k->across) &&
            (n->words || k->x_size == 1) && (!k->widths || k->widths & n->bits))
            return k;
    }
    return NULL;
}

const lb_dotbyte *lb_dotword_for(const lb_cpu *cpu)
{
#if defined(__x86_64__)
    if (cpu->level >= LB_LEVEL_AMX) return &lb_dotword_amx;
    if (cpu->level >= LB_LEVEL_AVX512VNNI) return &lb_dotword_vnni;
    if (cpu->level >= LB_LEVEL_AVX2) return &lb_dotword_avx2;
#elif defined(__aarch64__)
    if (cpu->level == LB_LEVEL_NEON) return &lb_dotword_neon;
#endif
    (void)cpu;
    return &lb_dotword_ref;
}

const lb_dotbyte *lb_dotlines_for(const lb_cpu *cpu)
{
#if defined(__x86_64__)
    if (cpu->level >= LB_LEVEL_AVX512VNNI) return &lb_dotlines_vnni;
#endif
    (void)cpu;
    return NULL;
}
