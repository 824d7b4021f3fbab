/* unpack_none.c - the choice of a level that unpacks, and one that declines:
 * then runs are decoded and converted. */
#include "kernels/unpack.h"

static bool bytes(lb_meaning meaning, const int8_t *code, int64_t n,
                  const lb_spans *s, lb_sink to)
{
    (void)meaning, (void)code, (void)n, (void)s, (void)to;
    return false;
}

static bool levels(const float *level, const uint8_t *code, int64_t n,
                   const lb_spans *s, lb_sink to)
{
    (void)level, (void)code, (void)n, (void)s, (void)to;
    return false;
}

static bool fields(lb_fields f, const uint8_t *byte, int64_t n,
                   const lb_spans *s, lb_sink to)
{
    (void)f, (void)byte, (void)n, (void)s, (void)to;
    return false;
}

static bool blocks(const uint8_t *from, int64_t n, lb_sink to)
{
    (void)from, (void)n, (void)to;
    return false;
}

static bool halves32(const int8_t *level, const uint8_t *from, int64_t n,
                     lb_sink to)
{
    (void)level, (void)from, (void)n, (void)to;
    return false;
}

static const lb_unpack_kernel none = {
    .name = "unpack none",
    .bytes = bytes,
    .halves = levels,
    .fields = fields,
    .levels = levels,
    .bytes32 = blocks,
    .halves32 = halves32,
    .pairs256 = blocks,
    .trits256 = blocks,
};

const lb_unpack_kernel *lb_unpack_kernel_for(const lb_cpu *cpu)
{
#if defined(__x86_64__)
    if (cpu->level >= LB_LEVEL_AVX512VNNI && cpu->vbmi)
        return &lb_unpack_kernel_vbmi;
    if (cpu->level >= LB_LEVEL_AVX512) return &lb_unpack_kernel_avx512;
    if (cpu->level >= LB_LEVEL_AVX2) return &lb_unpack_kernel_avx2;
#endif
    (void)cpu;
    return &none;
}
